"""Runs the example programs as a user does, and checks them against h5py and numpy.

Usage: examples.py FOLDER_OF_PROGRAMS GROUP.CASE, where GROUP_cases.py holds the case; exit code 77 where the case is
skipped, with a line `skipped: WHY`, which summary.py looks for.
"""

import importlib
import sys
import unittest

group, case = sys.argv[2].split(".")
cases = importlib.import_module(f"{group}_cases")
run = unittest.main(module=cases, argv=[sys.argv[0], f"{group}.test_{case}"], exit=False).result
for _, reason in run.skipped:
    print(f"skipped: {reason}")
sys.exit(77 if run.skipped else not run.wasSuccessful())
