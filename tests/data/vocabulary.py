# SPDX-License-Identifier: GPL-2.0-or-later
"""vocabulary.py TABLE < TABLES: compares the members of all records with tests/data/vocabulary, and
prints what is wrong. TABLES is the output of --dump-tables."""
import json
import sys

# Kinds whose names need not end alike.
MEASURES = {"type of a file", "count", "flag", "time", "records", "record", "flags"}
# Members of structures on disk keep the names of the format.
ON_DISK = {"superblockinfo": {"device", "copy", "offset", "message"}}


def read(path):
    """Yields (kind, types, names, exceptions)."""
    for line in open(path, encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            kind, types, names = (part.strip() for part in line.rsplit(":", 2))
            regular, _, exceptions = names.partition("*")
            yield kind, set(types.split()), regular.split(), exceptions.split()


def kinds_of(path):
    """Returns a dictionary from names to (kind, types)."""
    known = {}
    for kind, types, regular, exceptions in read(path):
        for name in regular + exceptions:
            if name in known:
                print(f"{name} has two kinds: {known[name][0]}, {kind}")
            known[name] = kind, types
        for name in regular:
            words = name.split("_")
            if kind not in MEASURES and not set(regular[0].split("_")) <= set(words):
                print(f"{name} is another name for {regular[0]}: {kind}")
    return known


def main():
    known, used = kinds_of(sys.argv[1]), set()
    for record in json.load(sys.stdin)["records"]:
        for member in record["members"]:
            name, form = member["name"], f"{member['type']}/{member['format']}"
            if name not in ON_DISK.get(record["name"], {name}):
                continue
            used.add(name)
            if name not in known:
                print(f"{record['name']}.{name} is not in the vocabulary")
            elif form not in known[name][1]:
                print(f"{record['name']}.{name} is {form}, but {name} is {known[name][0]}")
    for name in sorted(set(known) - used):
        print(f"{name} is the name of no member")


main()
