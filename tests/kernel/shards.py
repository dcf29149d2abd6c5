#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""shards - file systems made by random work: the parts of --shard must be the same as one run

usage: sudo tests/kernel/shards.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

Makes trees with small nodes: directories with fragmented files, so that most leaves have extents
and few have entries, and directories with many files, some of them nested deeply; and snapshots,
between which files are made and directories moved. All files of the mount must be in one part, and
the parts together must have the lines of one run, also when blocks are lost. Needs root, mkfs.btrfs
and a kernel with btrfs.
"""
import os
import random
import sys

import kernel
from kernel import run

LISTINGS = ([], ["--type", "f,d", "-o", "path,inode,size"])


class Tree(kernel.FileSystem):
    """A subvolume, and snapshots of it."""

    def __init__(self, seed, directory):
        super().__init__(directory)
        self.random = random.Random(seed)
        self.number = 0

    def fill(self, directory, files):
        for _ in range(files):
            self.number += 1
            with open(f"{directory}/a file with number {self.number}", "w", encoding="ascii"):
                pass

    def fragment(self, directory):
        """Makes a file with some hundred extents."""
        self.number += 1
        with open(f"{directory}/extents {self.number}", "wb") as file:
            for block in range(self.random.choice([50, 500])):
                os.pwrite(file.fileno(), b"x", block * 8192)

    def nest(self, directories):
        """Makes directories in those made before, so that names lead through many leaves."""
        for number in range(self.random.choice([0, 1000])):
            directories.append(f"{self.random.choice(directories[-100:])}/N{number}")
            os.mkdir(directories[-1])
            self.fill(directories[-1], self.random.randrange(10))

    def make(self):
        loop = self.add_image(2 << 30)
        run("mkfs.btrfs", "-q", "-f", "-n", "4096", loop, check=True)
        self.attach("noatime")
        top = self.path("origin")
        run("btrfs", "subvolume", "create", top, check=True)
        outer = [f"{top}/D{number}" for number in range(20)]
        for directory in outer:
            os.mkdir(directory)
            for _ in range(self.random.choice([1, 4])):
                self.fragment(directory)
        inner = [f"{directory}/C{number}" for directory in outer for number in range(4)]
        for directory in inner:
            os.mkdir(directory)
            self.fill(directory, self.random.randrange(100))
        self.nest(outer[:1])
        for number in range(self.random.choice([0, 3])):
            run("btrfs", "subvolume", "snapshot", top, self.path(f"snapshot-{number}"), check=True)
            self.fill(self.random.choice(outer), self.random.choice([1, 300]))
            moved = self.random.choice([name for name in inner if os.path.exists(name)])
            os.rename(moved, f"{self.random.choice(outer)}/moved-{number}")


def lines(program, *words):
    return sorted(program.ask("walk", *words).stdout.splitlines())


def shard_differences(program, count, known, *words):
    """Yields how the parts differ from one run. Of a damaged file system, they may have more of the
    known paths, because they use more references."""
    parts = []
    for number in range(1, count + 1):
        parts += lines(program, "--shard", f"{number}/{count}", *words)
    missing = set(lines(program, *words)) - set(parts)
    unknown = {line.split(b"\t")[0] for line in parts} - known
    if missing or unknown or len(set(parts)) < len(parts):
        yield (f"{count} parts have {len(parts)} lines, {len(set(parts))} of them different, lack "
               f"{len(missing)}, and have {len(unknown)} wrong paths: {' '.join(words)}")


def compare(options, seed, directory):
    tree = Tree(seed, directory)
    tree.make()
    tree.sync()
    prefix = len(os.fsencode(tree.mount))
    files = sorted(os.fsencode(os.path.join(folder, name))[prefix:]
                   for folder, _, names in os.walk(tree.mount) for name in names)
    tree.detach()
    program = kernel.Program(options.program, tree.images)
    if lines(program) != files:
        yield "one run does not have the files of the mount"
    known = set(lines(program, "--type", "f,d"))
    for count in (2, 3, 8):
        if sorted(sum((lines(program, "--shard", f"{number}/{count}")
                       for number in range(1, count + 1)), [])) != files:
            yield f"{count} parts do not have the files of the mount"
        for words in LISTINGS:
            yield from shard_differences(program, count, known, *words)
            for rate in ("1%", "8%", "20%"):
                fault = f"debug/error-gen@verify,kind=tree-block,rate={rate},seed={seed % 100 + 1}"
                yield from shard_differences(program, count, known, *words, "--insert", fault)


def main():
    options = kernel.parser(__doc__, count=4).parse_args()
    kernel.need("mkfs.btrfs", "btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
