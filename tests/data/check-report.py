# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a report of `btrfs-walk check` is what those who read it expect.

    check-report.py JUNIT

The figures have to agree with the cases. Prints the codes that failed, each with its number."""
import collections
import sys
import xml.etree.ElementTree


def junit(text):
    failed = []
    for suite in xml.etree.ElementTree.fromstring(text):
        cases = suite.findall("testcase")
        figures = {"tests": len(cases),
                   **{name + suffix: sum(c.find(name) is not None for c in cases)
                                           for name, suffix in (("failure", "s"), ("error", "s"),
                                                                ("skipped", ""))}}
        for name, figure in figures.items():
            assert int(suite.get(name)) == figure, (suite.get("name"), name)
        failed += [case.get("name") for case in cases if case.find("failure") is not None
                   or case.find("error") is not None]
    return failed


def codes(read, name):
    with open(name, encoding="utf-8") as file:
        return [f"{code}:{number}"
                for code, number in sorted(collections.Counter(read(file.read())).items())]


print(*codes(junit, sys.argv[1]))
