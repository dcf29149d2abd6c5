#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""compressed - damaged compressed extents: the program and the kernel decompress the same bytes

usage: sudo tests/kernel/compressed.py [--count N] [--seed S] [--keep DIRECTORY]

Makes files of all compressions, with extents that are inline, short, full, or referred to in part,
and damages most of them: bits, lengths of lzo, ends that are zeros, other bytes. A mount with
rescue=all and `cat --ignore-checksums all` must then give the same bytes of each file, or both an
error. Two faults of the kernel (6.18) are counted, in which it reports no error: of inline data
whose zlib stream is damaged behind the last byte of the file, it reads what was in memory before;
if a zstd stream is cut off, it reads zeros. Needs root, mkfs.btrfs and a kernel with
rescue=ignoremetacsums (6.11).
"""
import os
import random
import re
import sys

import kernel
from kernel import run

METHODS = ("zlib", "lzo", "zstd")
WORDS = (b"lorem", b"ipsum ", b"dolor\n", b"0123456789abcdef", bytes(50), b"x" * 300)
SIZES = (100, 1500, 4096, 5000, 20000, 70000, 131072, 131073, 200000, 400000)
HEADER, INLINE = 101, 21  # sizes: the header of a tree block; a file extent before inline data


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xffffffff


class Case(kernel.FileSystem):
    def __init__(self, seed, directory):
        super().__init__(directory)
        self.random = random.Random(seed)
        self.nodes = self.random.choice((4096, 16384))
        self.leaves = set()
        self.names = [f"{method}{number}" for method in METHODS for number in range(40)]

    def contents(self, size):
        parts = bytearray()
        while len(parts) < size:
            parts += (self.random.choice(WORDS) if self.random.random() < 0.8
                      else self.random.randbytes(self.random.randrange(1, 200)))
        return bytes(parts[:size])

    def make(self):
        loop = self.add_image(300 << 20)
        run("mkfs.btrfs", "-q", "-f", "-m", "single", "-d", "single", "-n", self.nodes,
            loop, check=True)
        self.attach()
        for method in METHODS:
            run("mount", "-o", f"remount,compress-force={method}", self.mount, check=True)
            names = [name for name in self.names if name.startswith(method)]
            for name in names:
                with open(self.path(name), "wb") as file:
                    file.write(self.contents(self.random.choice(SIZES)))
            self.sync()
            for name in names[::4]:
                with open(self.path(name), "r+b") as file:
                    if os.fstat(file.fileno()).st_size > 9000:
                        file.seek(4096)
                        file.write(self.contents(4096))
            self.sync()
        self.detach()

    def stored(self, program):
        """Where compressed data are on the device: (offset, length)."""
        paths = ["/" + name for name in self.names]
        found = {(copy["offset"], place["length"])
                 for row in program.rows("extents", *paths) for extent in row["extents"]
                 for place in extent.get("places", ()) for copy in place["copies"]}
        item = leaf = None
        for line in program.text("dump", "--tree", "5").splitlines():
            if match := re.match(r"leaf (\d+) items", line):
                row, = program.rows("map", match[1])
                leaf = row["offset"]
                self.leaves.add(leaf)
            elif match := re.search(r"EXTENT_DATA \d+\) itemoff (\d+) itemsize", line):
                item = int(match[1])
            elif match := re.search(r"inline extent data size (\d+)", line):
                found.add((leaf + HEADER + item + INLINE, int(match[1])))
        return sorted(found)

    def damaged(self, data):
        """Compressed data with one kind of damage."""
        choose, data, length = self.random, bytearray(data), len(data)
        kind = choose.randrange(7)
        if kind <= 2:
            for _ in range(choose.choice((1, 1, 3))):
                reach = min(length, choose.choice((8, 64, length)))
                data[choose.randrange(reach)] ^= 1 << choose.randrange(8)
        elif kind == 3:
            data = bytes(length)
        elif kind == 4:
            data = choose.randbytes(length)
        elif kind == 5:
            kept = choose.randrange(length)
            data[kept:] = bytes(length - kept)
        elif length >= 8:
            place = choose.choice((0, 4))  # the length of lzo data, or of its first segment
            value = choose.randrange(1 << choose.choice((8, 13, 20, 32)))
            data[place:place + 4] = value.to_bytes(4, "little")
        return data

    def damage(self, places):
        with open(self.images[0], "r+b") as file:
            for offset, length in places:
                if self.random.random() < 0.3:
                    continue
                file.seek(offset)
                data = file.read(length)
                file.seek(offset)
                file.write(self.damaged(data))
            for leaf in self.leaves:  # inline data are damaged, but the leaf is not
                file.seek(leaf + 32)
                checksum = crc32c(file.read(self.nodes - 32))
                file.seek(leaf)
                file.write(checksum.to_bytes(4, "little"))

    def mounted(self):
        """What the kernel reads of each file; None if it does not read all of it."""
        self.attach_read_only("rescue=all")
        found = {}
        for name in self.names:
            try:
                with open(self.path(name), "rb") as file:
                    found[name] = file.read()
            except OSError:
                found[name] = None
        self.detach()
        return found


def compare(options, seed, directory):
    case = Case(seed, directory)
    case.make()
    program = kernel.Program(options.program, case.images)
    places = case.stored(program)
    case.damage(places)
    mounted = case.mounted()
    faults = 0
    for name, theirs in mounted.items():
        result = program.ask("cat", "--ignore-checksums", "all", "/" + name)
        ours = result.stdout if result.returncode == 0 else None
        is_inline = ours and name.startswith("zlib") and len(ours) <= 4096
        if ours == theirs:
            continue
        if theirs and (is_inline or b"zstd: the stream is cut off" in result.stderr):
            faults += 1
        else:
            sizes = [data if data is None else len(data) for data in (ours, theirs)]
            yield f"{name}: {sizes[0]} bytes, the kernel {sizes[1]}: {result.stderr[-300:]}"
    lost = sum(theirs is None for theirs in mounted.values())
    print(f"{len(places)} extents; {lost} of {len(mounted)} files with errors, "
          f"{faults} read wrongly by the kernel", flush=True)


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
