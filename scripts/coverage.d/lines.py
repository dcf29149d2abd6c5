# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up the counts of gcov: lines.py LEAST MISSED < JSON documents of gcov, one per line."""
import collections
import json
import sys


def read(stream):
    """Returns {file: {line: count}} of the files in src/."""
    files = collections.defaultdict(lambda: collections.defaultdict(int))
    for document in stream:
        for part in json.loads(document)["files"]:
            if part["file"].startswith("src/"):
                for line in part["lines"]:
                    files[part["file"]][line["line_number"]] += line["count"]
    return files


def main():
    least, missed_path = float(sys.argv[1]), sys.argv[2]
    files = read(sys.stdin)
    lines = covered = 0
    by_share = []
    with open(missed_path, "w", encoding="utf-8") as missed:
        for name, counts in sorted(files.items()):
            gone = sorted(number for number, count in counts.items() if not count)
            lines += len(counts)
            covered += len(counts) - len(gone)
            by_share.append((1 - len(gone) / len(counts), name, len(gone)))
            missed.writelines(f"{name}:{number}\n" for number in gone)
    for share, name, gone in sorted(by_share)[:20]:
        print(f"{share:7.1%}  {gone:4} missed  {name}")
    percent = 100 * covered / lines if lines else 0
    print(f"{percent:.1f} % of {lines} lines in src were run")
    sys.exit(percent < least)


main()
