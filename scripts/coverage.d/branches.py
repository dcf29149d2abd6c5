# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts branches: branches.py LIST MISSED < document of `llvm-cov export`

A branch is one outcome of one condition in the source. LIST (tests/branches.md) names branches that
are left out, under a heading for each reason. MISSED gets the others that the tests do not take.
"""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTCOMES = {4: "true", 5: "false"}  # the places of their counts


def read_list(path):
    """The reasons, by file, line of source and outcome."""
    reasons, heading, text = {}, "", path.read_text(encoding="utf-8").replace("\n      ", " ")
    for line in text.split("\n"):
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("    "):
            source, outcome = line.strip().rsplit(" => ", 1)
            reasons[source, outcome] = heading
    return reasons


def branches_of(document):
    """(file, line, column, number in a macro, outcome, whether it is taken), each once."""
    taken = collections.defaultdict(int)
    for file in document["data"][0]["files"]:
        name = str(pathlib.Path(file["filename"]).resolve().relative_to(ROOT))
        if not name.startswith("src/"):
            continue  # a public header
        found = [(*branch[:2], 0, branch) for branch in file["branches"]]
        for macro in file["expansions"]:
            found += [(*macro["source_region"][:2], number, branch)
                      for number, branch in enumerate(macro["branches"])]
        for line, column, number, branch in found:
            for place, outcome in OUTCOMES.items():
                taken[name, line, column, number, outcome] += branch[place]
    return [(*key, count > 0) for key, count in sorted(taken.items())]


def main():
    left_out, missed = read_list(pathlib.Path(sys.argv[1])), []
    sources, used = {}, set()
    folders, reasons = collections.defaultdict(lambda: [0, 0]), collections.Counter()
    for name, line, column, _, outcome, is_taken in branches_of(json.load(sys.stdin)):
        if name not in sources:
            sources[name] = (ROOT / name).read_text(encoding="utf-8").split("\n")
        text = re.sub(r"\s+", " ", sources[name][line - 1].strip())
        count = folders[name.rsplit("/", 1)[0]]
        count[0] += 1
        count[1] += is_taken
        if is_taken:
            continue
        key = (f"{name}: {text}", outcome)
        used.add(key)
        if key in left_out:
            reasons[left_out[key]] += 1
        else:
            missed.append(f"{name}:{line}:{column}: {text} => {outcome}")
    pathlib.Path(sys.argv[2]).write_text("".join(row + "\n" for row in missed), encoding="utf-8")
    for name, (total, taken) in sorted(folders.items()):
        print(f"{taken / total:7.1%} of {total:5} branches  {name}")
    for reason, count in reasons.items():
        print(f"{count:5} left out: {reason}")
    for source, outcome in sorted(left_out.keys() - used):
        print(f"in {sys.argv[1]}, but taken or gone: {source} => {outcome}")
    total, taken = (sum(column) for column in zip(*folders.values()))
    rest = total - sum(reasons.values())
    print(f"{taken} of {total} branches were taken ({taken / total:.1%}), and {taken / rest:.1%} "
          f"of those not left out")
    sys.exit(taken / rest < 0.95)


main()
