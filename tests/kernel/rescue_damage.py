#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""rescue_damage - what `rescue` counts and saves of damaged file systems must be true

usage: sudo tests/kernel/rescue_damage.py [--profile NAME]... [--damage NAME]... [--count N]
                                          [--seed S] [--program PROGRAM] [--files N] [--keep DIR]
                                          [--reference]

Makes a file system for each profile, with subvolumes and snapshots, and remembers the contents of
all files at every commit, as the kernel shows them. Then damages copies of it in many ways.
`rescue --json` must count what `rescue --extract` saves; every file that it calls whole must have
the contents of the last commit, and every older, lost or deleted file those of some commit. The
printed commands, run by a shell, must save the same. With --reference, counts the files that
`btrfs restore` and a mount with rescue=all read correctly. Needs root, btrfs-progs and a kernel
with btrfs.
"""
import collections
import json
import os
import random
import shutil
import subprocess
import sys

import kernel
from kernel import run
from rescue import DAMAGES, MIB, PROFILES, Images, Made, erase, supers, tree


class Known(Made):
    """A file system, with the contents of its files: `now` by path, and `ever` as a set."""

    def __init__(self, directory, profile, files):
        self.ever, self.now = set(), {}
        super().__init__(directory, profile, files)

    def sync(self):
        super().sync()
        self.read()

    def snapshot(self, source, target):
        """A snapshot commits all subvolumes, but writes only the data of its source."""
        self.sync()
        super().snapshot(source, target)

    def read(self):
        self.now = {path: entry["sha256"] for path, entry in kernel.read_tree(self.mount).items()
                    if "sha256" in entry}
        self.ever |= set(self.now.values())

    def work(self):
        super().work()
        self.sync()
        for i in range(1, self.files, 7):
            path = self.path("home", f"d{i // 50}", f"file-{i}")
            if os.path.exists(path):
                with open(path, "ab") as file:
                    file.write(os.urandom(5000))
        self.sync()
        self.fill("home/later", 0, self.files // 4)
        self.sync()


def some_leaves(sound, name, number):
    """Some blocks of a tree, in all copies."""
    size = sound.super()["nodesize"]
    blocks = sound.blocks(name)[1:]
    picked = random.Random(len(blocks)).sample(blocks, min(number, len(blocks)))
    return [(path, offset, size) for block in picked for path, offset in sound.places(block)]


def subvolume(sound, name):
    rows = kernel.json_rows(sound.ask("subvolumes", "--json"))
    return str(next(row["subvolume"] for row in rows if row["subvolume_path"] == name))


def some_data(sound, number):
    """Sectors of files, in all copies."""
    paths = sound.ask("walk", "-0", "--size", "+5k").stdout.decode().split("\0")[:-1]
    picked = random.Random(len(paths)).sample(paths, min(number, len(paths)))
    rows = [extent for row in kernel.json_rows(sound.ask("extents", "--json", *picked))
            for extent in row["extents"] if extent.get("extent_logical")]
    return [(path, offset, 4096) for row in rows
            for path, offset in sound.places(row["extent_logical"])]


MORE = {
    "nothing": lambda sound: [],
    "primary superblock": lambda sound: [(path, 64 << 10, 4096) for path in sound.images],
    "a leaf": lambda sound: some_leaves(sound, subvolume(sound, "/home"), 1),
    "leaves": lambda sound: some_leaves(sound, subvolume(sound, "/home"), 4)
    + some_leaves(sound, "fs", 3),
    "roots of subvolumes": lambda sound: [
        (path, offset, sound.super()["nodesize"])
        for row in kernel.json_rows(sound.ask("subvolumes", "--json", "-o", "subvolume,root"))
        if "root" in row for path, offset in sound.places(row["root"])],
    "superblocks, root tree, extent tree": lambda sound: supers(sound) + tree(sound, "root")
    + tree(sound, "extent"),
    "checksum tree": lambda sound: tree(sound, "csum"),
    "checksum leaves": lambda sound: some_leaves(sound, "csum", 1),
    "extent tree": lambda sound: tree(sound, "extent"),
    "root tree, extent tree": lambda sound: tree(sound, "root") + tree(sound, "extent"),
    "data": lambda sound: some_data(sound, 20),
    "data and leaves": lambda sound: some_data(sound, 10)
    + some_leaves(sound, subvolume(sound, "/home"), 2),
}
ALL = {**{name: damage for name, damage in DAMAGES.items() if "128" not in name}, **MORE}
# With the number of devices that are missing.
MISSING = {"a missing device": 1, "two missing devices": 2, "a cut device": 0}


def damage(name, sound, directory):
    """A damaged copy of the images."""
    damaged = sound.copy(directory)
    if name in ALL:
        erase(damaged, sound, ALL[name](sound))
    elif name == "a cut device":
        os.truncate(damaged.images[-1], os.path.getsize(damaged.images[-1]) // 2)
    else:
        for _ in range(MISSING[name]):
            os.unlink(damaged.images.pop())
    return damaged


def sums_below(folder):
    """The hashes of the files in a folder, by path."""
    found = {}
    for path, _, files in os.walk(os.fsencode(folder)):
        for name in files:
            file = os.path.join(path, name)
            if not os.path.islink(file):
                found[os.fsdecode(file[len(os.fsencode(folder)):])] = kernel.digest(file)
    return found


def compare_saved(known, saved, counts):
    """What is wrong in the folders that `rescue --extract` made."""
    whole = sums_below(os.path.join(saved, "whole"))
    wrong = [path for path, digest in whole.items() if known.now.get(path) != digest]
    if wrong:
        yield f"{len(wrong)} files are not whole: {wrong[:3]}"
    unverified = sums_below(os.path.join(saved, "unverified"))
    expected = counts["verified"] + counts["unverified"] + counts["mismatched"]
    if len(whole) + len(unverified) != expected:
        yield (f"{len(whole)} whole and {len(unverified)} unverified files are saved, but "
               f"{dict(counts)} are counted")
    for name in os.listdir(saved):
        if not name.startswith(("generation", "lost", "deleted")) or \
                name.endswith((".json", "missed")):
            continue
        for path, digest in sums_below(os.path.join(saved, name)).items():
            if digest not in known.ever:
                yield f"{name}{path} was never like that"


def counts_of(answer):
    """Files by kind. Mismatched ones, partly readable or lost, are saved as they are, too."""
    counts = collections.Counter(mismatched=answer.get("mismatched_files", 0))
    for row in answer["by_subvolume"]:
        for kind in ("verified", "unverified", "partly", "lost"):
            counts[kind] += row[kind + "_files"]
    return counts


def compare_commands(damaged, answer, directory, saved):
    """The printed commands must save what --extract has saved."""
    os.makedirs(os.path.join(directory, "saved"))
    for step in answer["steps"]:
        words = step["shell_command"].replace("btrfs-walk", damaged.path, 1)
        subprocess.run(words, shell=True, cwd=directory, capture_output=True, check=False)
    found = run("diff", "-rq", "--no-dereference", "-x", "*.json", "-x", "unsaved",
                os.path.join(directory, "saved"), saved)
    if found.returncode:
        yield f"the printed commands save something else: {found.stdout[:300]}"


def compare_damage(options, directory, profile, name, sound, known):
    place = os.path.join(directory, "damaged")
    damaged = damage(name, sound, place)
    saved = os.path.join(directory, "saved-all")
    result = damaged.ask("rescue", "--json")
    if result.returncode == 2 and not result.stdout:
        print(f"{profile}, {name}: not opened: {result.stderr[:150]}", flush=True)
        shutil.rmtree(place)
        return
    answer = json.loads(result.stdout)
    counts = counts_of(answer)
    damaged.ask("rescue", "--extract", saved)
    wrong = list(compare_saved(known, saved, counts))
    wrong += compare_commands(damaged, answer, place, saved)
    right = sum(1 for path, digest in sums_below(os.path.join(saved, "whole")).items()
                if known.now.get(path) == digest)
    is_whole = not counts["partly"] and not counts["lost"] and right == len(known.now)
    harmless = ("nothing", "primary superblock", "extent tree", "root tree, extent tree",
                "superblocks, root tree, extent tree")
    if name in harmless and not is_whole:
        wrong.append(f"only {right} of {len(known.now)} files are whole")
    if result.returncode == 0 and not is_whole:
        wrong.append(f"the status is 0, but {right} of {len(known.now)} files are whole")
    print(f"{profile}, {name}: {right} of {len(known.now)} whole, {dict(counts)}, "
          f"{answer['hidden_files']} hidden, {answer['deleted_files']} deleted, "
          f"{[row['generation'] for row in answer['generations']]}, status {result.returncode}"
          + (reference(damaged, known, place) if options.reference else ""), flush=True)
    shutil.rmtree(saved)
    shutil.rmtree(place)
    for line in wrong:
        yield f"{name}: {line}"


def count_right(known, folder):
    sums = sums_below(folder)
    right = sum(1 for path, digest in sums.items() if known.now.get(path) == digest)
    return f"{right} right, {sum(1 for path in sums if path in known.now) - right} wrong"


def reference(damaged, known, place):
    """What btrfs-progs and the kernel read."""
    system = kernel.FileSystem(os.path.join(place, "reference"), damaged.images)
    os.makedirs(os.path.join(place, "restored"))
    system.add_loops("-r")
    run("timeout", "300", "btrfs", "restore", "-i", "-s", "-m", system.loops[0],
        os.path.join(place, "restored"))
    answer = "; btrfs restore: " + count_right(known, os.path.join(place, "restored"))
    words = "ro,degraded,rescue=all," + ",".join(f"device={loop}" for loop in system.loops)
    mounted = run("mount", "-t", "btrfs", "-o", words, system.loops[0], system.mount)
    if not mounted.returncode:
        run("timeout", "300", "cp", "-a", system.mount, os.path.join(place, "mounted"))
        answer += "; mount: " + count_right(known, os.path.join(place, "mounted"))
    system.detach()
    return answer


def compare(options, profile, directory):
    known = Known(os.path.join(directory, "sound"), profile, options.files)
    sound = Images(options.program, known.images)
    names = [name for name in options.damage or [*ALL, *MISSING]
             if len(known.images) > MISSING.get(name, 0)]
    for name in names:
        yield from compare_damage(options, directory, profile, name, sound, known)


def main():
    parser = kernel.parser(__doc__, len(PROFILES))
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--damage", action="append", choices=[*ALL, *MISSING])
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--reference", action="store_true")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "btrfs")
    cases = {profile: profile for profile in options.profile or PROFILES}
    return kernel.compare_each(options, kernel.sample(options, cases), compare)


if __name__ == "__main__":
    sys.exit(main())
