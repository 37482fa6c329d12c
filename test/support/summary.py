"""Counts what a test run did. Usage: summary.py RESULTS

RESULTS holds ctest.xml, and NAME.xml of each ctest test NAME that is a Boost.Test program; both are JUnit files. A Boost.Test
program counts with its cases, any other test as one. Prints failures and skips with their reasons, then
"N passed, N failed, N skipped". Exit code 1 where something failed or nothing passed.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def reason_of(case):
    """Why a case was skipped: Boost.Test's reason, or what ctest knows."""
    text = case.findtext("system-out") or ""
    reason = re.search(r"- reason: '(?:precondition failed: )?(.*?)'\s*$", text, re.DOTALL)
    if reason:
        return reason.group(1)
    line = re.search(r"^skipped: (.*)$", text, re.MULTILINE)
    return line.group(1) if line else "no reason given"


def status_of(case):
    if case.find("skipped") is not None:
        return "skipped"
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed"


def cases_of(results, test):
    """(name, status, reason) of what one ctest test stands for."""
    name, status = test.get("name"), status_of(test)
    log = results / f"{name}.xml"
    try:
        cases = [
            (f"{name} {case.get('classname')}/{case.get('name')}", status_of(case), reason_of(case))
            for case in xml.parse(log).getroot().iter("testcase")
        ]
    except (FileNotFoundError, xml.ParseError):  # no Boost.Test program, or it did not live to write its log
        return [(name, status, reason_of(test))]
    if status == "failed" and all(case_status != "failed" for _, case_status, _ in cases):
        cases.append((f"{name} (the program's end)", "failed", ""))
    return cases


def main():
    results = pathlib.Path(sys.argv[1])
    cases = [case for test in xml.parse(results / "ctest.xml").getroot().iter("testcase") for case in cases_of(results, test)]
    count = collections.Counter(status for _, status, _ in cases)
    for name, status, _ in cases:
        if status == "failed":
            print(f"failed: {name}")
    reasons = collections.Counter(reason for _, status, reason in cases if status == "skipped")
    for reason, skipped in reasons.items():
        print(f"skipped: {skipped} cases: {reason}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
