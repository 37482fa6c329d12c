"""What the cases of all example programs share."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

programs = pathlib.Path(sys.argv[1])


class program_case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, name, *arguments, expect=0):
        done = subprocess.run([programs / name, *map(str, arguments)], capture_output=True, text=True, timeout=500)
        if done.returncode == 77 and expect == 0:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, expect, f"{name} {arguments}:\n{done.stdout}\n{done.stderr}")
        return done

    def start_program(self, name, *arguments, **how):
        """A program that runs beside the test; it is ended with the test at the latest."""
        running = subprocess.Popen([programs / name, *map(str, arguments)], stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(running.communicate)
        self.addCleanup(running.kill)
        return running

    def handles(self, running, number):
        """Whether a program has come so far that it looks after a signal itself."""
        for line in pathlib.Path(f"/proc/{running.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16) >> (number - 1) & 1
        return False

    def make_rows(self, *arguments, rows=5000, columns=64, name="rows.h5"):
        path = self.folder / name
        self.run_program("penstock-make-dataset", "rows", path, "--rows", rows, "--columns", columns, *arguments)
        return path

    def forget(self, *results):
        """Removes what a run has come to, so that another may begin anew."""
        for path in results:
            path.unlink(missing_ok=True)

    def assert_one_line(self, done, *words):
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
