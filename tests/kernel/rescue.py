#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""rescue - what is shown of a file system whose critical trees are lost must be what was there

usage: sudo tests/kernel/rescue.py [--profile NAME]... [--damage NAME]... [--count N] [--seed S]
                                   [--program PROGRAM] [--files N] [--keep DIRECTORY] [--reference]

Makes a file system for each profile, with snapshots, nested and deleted subvolumes, and a last
transaction that did much. Then damages copies of it: chunk root, root tree, superblocks, the first
128 MiB. Names and hashes of all files must be those of the sound image, as far as their own blocks
are left: that is what an image shows that has lost the same bytes, except for the critical trees.
With --reference, `btrfs rescue chunk-recover` repairs a further copy, and what is shown of that is
counted, too. With --count, so many profiles are chosen at random. Needs root,
mkfs.btrfs and a kernel with btrfs.
"""
import collections
import json
import os
import re
import shutil
import sys

import kernel
from kernel import run

SCAN = ["--scan"]
MIB = 1 << 20

# name: devices, options of mkfs.btrfs
PROFILES = {
    "single": (1, ["-m", "single", "-d", "single"]),
    "DUP": (1, ["-m", "dup", "-d", "single"]),
    "4 KiB nodes": (1, ["-m", "dup", "-d", "single", "-n", "4096", "--csum", "xxhash"]),
    "RAID1": (2, ["-m", "raid1", "-d", "raid1"]),
    "RAID1C3": (3, ["-m", "raid1c3", "-d", "raid1c3"]),
    "RAID10": (4, ["-m", "raid10", "-d", "raid10"]),
    "RAID0": (2, ["-m", "raid0", "-d", "raid0"]),
    "RAID5": (3, ["-m", "raid5", "-d", "raid5"]),
    "RAID6": (4, ["-m", "raid6", "-d", "raid6"]),
    "mixed": (1, ["--mixed"]),
    # All metadata lie behind the first 128 MiB of each device.
    "single, moved": (1, ["-m", "single", "-d", "single"]),
    "DUP, moved": (1, ["-m", "dup", "-d", "single"]),
    "RAID1, moved": (2, ["-m", "raid1", "-d", "raid1"]),
    "RAID10, moved": (4, ["-m", "raid10", "-d", "raid10"]),
}


class Made(kernel.FileSystem):
    """A file system, and the work on it."""

    def __init__(self, directory, profile, files):
        super().__init__(directory)
        self.files = files
        count, options = PROFILES[profile]
        loops = [self.add_image(1 << 30) for _ in range(count)]
        run("mkfs.btrfs", "-q", "-f", *options, *loops, check=True)
        self.attach("commit=5", "compress=zstd")
        self.work()
        if "moved" in profile:
            run("btrfs", "balance", "start", "-f", "-m", "-s", self.mount, check=True)
        self.detach()

    def fill(self, where, first, count):
        for i in range(first, first + count):
            folder = self.path(where, f"d{i // 50}")
            os.makedirs(folder, exist_ok=True)
            size = (i * 7919) % 6000 if i % 40 else 300000 + i * 100
            with open(os.path.join(folder, f"file-{i}"), "wb") as file:
                file.write((f"{where} {i} ".encode() * (size // 8 + 1))[:size] if i % 3
                           else os.urandom(size))

    def subvolume(self, *words):
        run("btrfs", "subvolume", *words[:-1], self.path(words[-1]), check=True)

    def snapshot(self, source, target):
        run("btrfs", "subvolume", "snapshot", self.path(source), self.path(target),
            check=True)

    def work(self):
        n = self.files
        self.fill(".", 0, n)
        self.subvolume("create", "home")
        self.fill("home", 0, n)
        self.sync()
        self.subvolume("create", "home/nested")
        self.fill("home/nested", 0, n // 4)
        self.subvolume("create", "gone")
        self.fill("gone", 0, n // 4)
        self.sync()
        self.snapshot("home", "home-1")
        self.snapshot("gone", "gone-1")
        self.fill("home", n, n // 2)
        self.sync()
        self.subvolume("delete", "gone")
        run("btrfs", "subvolume", "sync", self.mount, check=True)
        self.subvolume("create", "set-aside")
        os.rename(self.path("home/nested"), self.path("set-aside/moved"))
        self.sync()
        for i in range(0, n, 3):
            os.unlink(self.path("home", f"d{i // 50}", f"file-{i}"))
        self.fill("late", 0, n)
        self.fill("home/late", 0, n)
        self.subvolume("create", "last")
        self.fill("last", 0, n // 4)
        self.snapshot("home", "last/home-2")


class Images(kernel.Program):
    """The images of a file system, and what they hold."""

    def lines(self, *words):
        """Lines that a command prints, its messages and its exit status."""
        result = self.ask(*words)
        return (result.stdout.decode(errors="replace").splitlines(),
                result.stderr.decode(errors="replace").splitlines(), result.returncode)

    def shown(self, *options):
        names, messages, status = self.lines("walk", "--type", "f,d,l", "-o", "path,size,mtime",
                                             *options)
        sums, more, _ = self.lines("sum", "--algorithm", "xxh64", *options)
        subvolumes, _, _ = self.lines("subvolumes", "-o", "id,path,attributes", *options)
        return names, sums, subvolumes, messages + more, status

    def super(self):
        return json.loads(self.lines("super", "--json")[0][0])

    def blocks(self, tree):
        lines = self.lines("dump", "--tree", tree)[0]
        return sorted({int(found.group(1)) for line in lines
                       for found in [re.match(r"(?:leaf|node) (\d+) (?:items|level)", line)]
                       if found})

    def places(self, logical):
        """Where the mirrors of a block lie: paths and offsets."""
        return [(row["device"], row["offset"])
                for row in kernel.json_rows(self.ask("map", "--json", logical))
                if row["kind"] in ("copy", "P", "Q")]

    def copy(self, directory):
        return Images(self.path, kernel.copy_images(self.images, directory))


def erase(images, sound, ranges):
    """Zeroes ranges of the images: (path in `sound`, offset, length)."""
    for path, offset, length in ranges:
        with open(images.images[sound.images.index(path)], "r+b") as file:
            file.seek(offset)
            file.write(bytes(length))


def restore(images, sound, ranges):
    for path, offset, length in ranges:
        with open(path, "rb") as source, \
                open(images.images[sound.images.index(path)], "r+b") as target:
            source.seek(offset), target.seek(offset)
            target.write(source.read(length))


def critical_trees(sound):
    """Where superblocks, chunk tree, root tree and device tree are."""
    size = sound.super()["nodesize"]
    ranges = [(path, offset, 4096) for path in sound.images for offset in (64 << 10, 64 * MIB)]
    for tree in ("chunk", "root", "dev"):
        ranges += [(path, offset, size) for block in sound.blocks(tree)
                   for path, offset in sound.places(block)]
    return ranges


def root(sound, name):
    super_block = sound.super()
    return [(path, offset, super_block["nodesize"])
            for path, offset in sound.places(super_block[name])]


def supers(sound):
    return [(path, offset, 4096) for path in sound.images for offset in (64 << 10, 64 * MIB)]


def tree(sound, name):
    size = sound.super()["nodesize"]
    return [(path, offset, size) for block in sound.blocks(name)
            for path, offset in sound.places(block)]


DAMAGES = {
    "chunk root": lambda sound: root(sound, "chunk_root"),
    "chunk tree": lambda sound: tree(sound, "chunk"),
    "root of the root tree": lambda sound: root(sound, "root"),
    "root tree": lambda sound: tree(sound, "root"),
    "both roots": lambda sound: root(sound, "root") + root(sound, "chunk_root"),
    "superblocks": supers,
    "superblocks, both trees": lambda sound: supers(sound) + tree(sound, "root")
    + tree(sound, "chunk"),
    "first 128 MiB": lambda sound: [(path, 0, 128 * MIB) for path in sound.images[:1]],
    "first 128 MiB of all": lambda sound: [(path, 0, 128 * MIB) for path in sound.images],
}


def lacking(wanted, found):
    return sum((collections.Counter(wanted) - collections.Counter(found)).values())


def foreign_rows(found, known_rows):
    """Counts rows that were not there before. Rows of lost inodes are compared by name only."""
    names = [row.split("\t")[0] for row in known_rows]
    known = [row for row in found if not row.endswith("\t-\t-")]
    return lacking(known, known_rows) + lacking(
        [row.split("\t")[0] for row in found if row.endswith("\t-\t-")], names)


def reference(damaged, directory):
    """What is shown after `btrfs rescue chunk-recover`."""
    repaired = damaged.copy(directory)
    answer = run("timeout", "120", "btrfs", "rescue", "chunk-recover", "-y", repaired.images[0])
    shown = repaired.shown()
    shutil.rmtree(directory)
    return f"; chunk-recover {answer.returncode}: {len(shown[0])} names"


class Comparison:
    """What is shown of damaged images, and of the same images with restored critical trees."""

    def __init__(self, sound, before, damaged, ranges):
        """Erases the ranges in the damaged images."""
        self.sound, self.before, self.damaged = sound, before, damaged
        erase(damaged, sound, ranges)
        self.found = damaged.shown(*SCAN)

    def restore_critical_trees(self):
        restore(self.damaged, self.sound, critical_trees(self.sound))
        self.wanted = self.damaged.shown()

    def count(self):
        names, sums, subvolumes = self.found[:3]
        self.missing = lacking(self.wanted[0], names), lacking(self.wanted[1], sums)
        self.foreign = foreign_rows(names, self.before[0]), lacking(sums, self.before[1])
        self.others = lacking(self.wanted[2], subvolumes) + lacking(subvolumes, self.before[2])

    def is_good(self, profile, name):
        names, sums, _, messages, status = self.found
        # Every other stripe of the trees is lost, and with it which of the other blocks are in use.
        if profile == "RAID0" and name == "first 128 MiB":
            return names and self.foreign == (0, 0) and status == 1
        if not self.wanted[1]:
            return not sums and self.foreign == (0, 0) and status
        # With redundancy nothing is missing when one device is lost, although all superblocks of
        # that device are lost, too.
        is_whole = name == "first 128 MiB" and len(names) == len(self.before[0]) and \
            "damage:" not in "".join(messages)
        return self.missing == self.foreign == (0, 0) and not self.others and \
            status == (not is_whole)

    def __str__(self):
        return (f"{len(self.found[0])} of {len(self.wanted[0])} of {len(self.before[0])} names, "
                f"{self.missing} lacking, {self.foreign} foreign, {self.others} subvolumes, "
                f"status {self.found[4]}")


def compare_damage(options, directory, profile, name, sound, before):
    damaged = sound.copy(os.path.join(directory, "damaged"))
    comparison = Comparison(sound, before, damaged, DAMAGES[name](sound))
    repaired = reference(damaged, os.path.join(directory, "reference")) if options.reference else ""
    comparison.restore_critical_trees()
    comparison.count()
    print(f"{profile}, {name}: {comparison}{repaired}", flush=True)
    if options.verbose:
        print("    " + "\n    ".join(comparison.found[3][:6]))
    if not comparison.is_good(profile, name):
        yield f"{name}: {comparison}"
        yield from comparison.found[3][:6]


def compare(options, profile, directory):
    made = Made(os.path.join(directory, "sound"), profile, options.files)
    sound = Images(options.program, made.images)
    before = sound.shown()
    for name in options.damage or DAMAGES:
        yield from compare_damage(options, directory, profile, name, sound, before)


def main():
    parser = kernel.parser(__doc__, len(PROFILES))
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--damage", action="append", choices=DAMAGES)
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs")
    cases = {profile: profile for profile in options.profile or PROFILES}
    return kernel.compare_each(options, kernel.sample(options, cases), compare)


if __name__ == "__main__":
    sys.exit(main())
