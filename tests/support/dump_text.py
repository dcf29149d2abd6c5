#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares what `dump` and `btrfs inspect-internal dump-tree` print.

    dump_text.py --record < TEXT       the SHA-256 of what the reference has printed
    dump_text.py --sums IMAGES < SUMS  runs $PROGRAM for each line "FIXTURE SHA-256", and prints a
                                       line for each: "same FIXTURE", or "FIXTURE: it differs"
    dump_text.py --compare < CASES     runs both ($PROGRAM and btrfs) for each line "NAME OPTIONS --
                                       IMAGES", with tabs between the words, and prints a line for
                                       each: "same NAME", or the first lines that differ

These differences are meant, and are taken out:

- Names and values: the reference prints their bytes, and values only up to the first NUL byte.
- Flags that btrfs-progs 6.2 does not know (VERITY, DEAD) have names here.
- The item of a device replacement is decoded here.
- The first line of the reference is its version, and it prints warnings of missing devices.
"""
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from itertools import zip_longest

ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f",
           b"r": b"\r", b"\\": b"\\"}


def unescape(line):
    line = re.sub(rb"\\([0-7]{3}|[abtnvfr\\])",
                  lambda m: ESCAPES.get(m[1]) or bytes([int(m[1], 8)]), line)
    return line.partition(b"\0")[0] if line.startswith(b"\t\tdata ") else line


def of_dump(text):
    text = re.sub(rb"\t\tsrc devid .*\n\t\tstate .*\n\t\tstart time .*\n\t\tstop time .*\n", b"",
                  text)
    text = re.sub(rb"(flags 0x[0-9a-f]+\()(VERITY|DEAD)\)", rb"\1none)", text)
    text = re.sub(rb"(flags 0x[0-9a-f]+\(.*)\|(VERITY|DEAD)\)", rb"\1)", text)
    return b"\n".join(unescape(line) if b"\\" in line else line for line in text.split(b"\n"))


def of_reference(text):
    return re.sub(rb"^warning, device \d+ is missing\n", b"", text.partition(b"\n")[2],
                  flags=re.MULTILINE)


def output(*command):
    environment = dict(os.environ, TZ="UTC")
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=environment, check=False, timeout=60).stdout


def check(images, name, wanted):
    ours = of_dump(output(os.environ["PROGRAM"], "dump", *sorted(glob(f"{images}/{name}/dev*"))))
    same = hashlib.sha256(ours).hexdigest() == wanted
    return f"same {name}" if same else f"{name}: it differs from what the reference has printed"


def compare(case):
    name, *options = case.split("\t")
    at = options.index("--")
    options, images = options[:at], options[at + 1:]
    reference = of_reference(output("btrfs", "inspect-internal", "dump-tree", "--noscan", *options,
                                    *images))
    ours = of_dump(output(os.environ["PROGRAM"], "dump", *options, *images))
    if not reference:
        return f"{name}: the reference cannot read it"
    if reference == ours:
        return f"same {name}"
    return f"{name}: " + next(f"'{a.decode(errors='replace')}' of the reference is "
                              f"'{b.decode(errors='replace')}'"
                              for a, b in zip_longest(reference.split(b"\n"), ours.split(b"\n"),
                                                      fillvalue=b"") if a != b)


def main(arguments):
    if arguments == ["--record"]:
        print(hashlib.sha256(of_reference(sys.stdin.buffer.read())).hexdigest())
    elif arguments[:1] == ["--sums"]:
        with ThreadPoolExecutor(2) as pool:
            print(*pool.map(lambda line: check(arguments[1], *line.split()),
                            sys.stdin.read().splitlines()), sep="\n")
    elif arguments == ["--compare"]:
        with ThreadPoolExecutor(2) as pool:
            print(*pool.map(compare, sys.stdin.read().splitlines()), sep="\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
