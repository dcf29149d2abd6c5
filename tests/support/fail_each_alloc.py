#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""fail_each_alloc.py LIBRARY PROGRAM ARGUMENT...: fails every allocation of a command once

LIBRARY is fail_alloc.c as a shared object. With any single allocation failed, the command must
either print everything and end with its usual status, or end with a status of at least 1 and a
message, and print no line that the whole output lacks: memory that ran out is neither a difference
nor damage. Prints each allocation that violates this, with its stack, and ends with 1.

ALLOC_EVERY=N tries one in N allocations, beginning with ALLOC_START; ALLOC_IGNORE is a regular
expression of lines that may differ, such as totals.
"""
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile

SLOTS, KEPT = 1 << 16, 12
SLOT = 8 * (1 + KEPT)
SIZE = 32 + SLOTS * SLOT


class Faults:
    def __init__(self, library, command):
        self.command = command
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(SIZE)
        self.map = mmap.mmap(self.file.fileno(), SIZE)
        self.environment = dict(os.environ, LD_PRELOAD=library, ALLOC_FILE=self.file.name)

    def run(self, fails=0, occurrence=1):
        """The status, the lines of stdout, stderr, and how often the allocation failed."""
        struct.pack_into("<4Q", self.map, 0, fails, occurrence, 0, 0)
        done = subprocess.run(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        fired = struct.unpack_from("<Q", self.map, 24)[0]
        # The width of columns, and the comma after a row of JSON, depend on the other rows.
        lines = [b" ".join(line.split()).rstrip(b",") for line in done.stdout.split(b"\n")]
        return done.returncode, lines, done.stderr, fired

    def allocations(self):
        """The hashes of all allocations of the last run, with their frames."""
        found = []
        for offset in range(32, SIZE, SLOT):
            numbers = struct.unpack_from("<%dQ" % (1 + KEPT), self.map, offset)
            if numbers[0]:
                found.append((numbers[0], [frame for frame in numbers[1:] if frame]))
        return sorted(found, key=lambda one: one[1])

    def stack(self, frames):
        lines = subprocess.run(
            ["addr2line", "-f", "-s", "-e", self.command[0]] + [hex(one - 1) for one in frames],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
        return " < ".join("%s %s" % pair for pair in zip(lines[::2], lines[1::2]))


def complaint(whole, got, ignored):
    """What is wrong with a run, or None."""
    status, lines, errors, _ = got
    if status < 0 or status > 127:
        return "ends by signal %d" % -status
    if b"runtime error" in errors or b"Sanitizer" in errors:
        return "a sanitizer: " + errors.decode(errors="replace")
    if status == whole[0] and lines == whole[1]:
        return None
    known = set(whole[1])
    # The last line may be cut, as by a full disk.
    invented = [line for line in lines[:-1] if line not in known and not ignored.match(line)]
    if invented:
        return "status %d, invents %s" % (status, invented[0].decode(errors="replace"))
    if status == 0:
        return "status 0, but the output lacks %d lines" % (len(whole[1]) - len(lines))
    # A command that lists problems in its output needs no message about them.
    as_usual = status == whole[0] and not whole[2] and len(lines) == len(whole[1])
    if not errors and not as_usual:
        return "status %d, without a message" % status
    return None


def main():
    faults = Faults(os.path.abspath(sys.argv[1]), sys.argv[2:])
    ignored = re.compile(os.environ.get("ALLOC_IGNORE", "(?!)").encode())
    whole = faults.run()
    allocations = faults.allocations()
    every = int(os.environ.get("ALLOC_EVERY", "1"))
    start = int(os.environ.get("ALLOC_START", "0"))
    failed = tried = 0
    for number in range(start % every, len(allocations), every):
        hash_, frames = allocations[number]
        try:
            got = faults.run(hash_)
        except subprocess.TimeoutExpired:
            got = (-9, [], b"", 1)
        tried += got[3] > 0
        wrong = complaint(whole, got, ignored)
        if wrong:
            failed += 1
            print("%s\n    at %s" % (wrong, faults.stack(frames)))
    print("%d of %d allocations tried, %d failed" % (tried, len(allocations), failed))
    return failed > 0 or not tried


if __name__ == "__main__":
    sys.exit(main())
