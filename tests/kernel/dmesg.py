#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""dmesg - what `rescue --dmesg` says of the messages of this kernel

usage: sudo tests/kernel/dmesg.py [--count N] [--seed S] [--program PROGRAM] [--keep DIR]

Makes file systems, damages copies of them, and lets the kernel mount, read and scrub these. The
kernel's messages about them are given to `rescue --dmesg`: it must recognize all errors and
warnings, name the files that a mount of the sound file system shows for the inode or the address,
and say that a good mirror exists exactly if the kernel has read the file correctly. Needs root,
btrfs-progs and a kernel with btrfs.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

import kernel
from kernel import run

MIB = 1 << 20
PAUSE = 5  # seconds, in which the kernel forgets how many messages it has printed
DATA, LEAF, CHUNKS, SUPER = "data", "a leaf", "the chunk tree", "superblocks"
CASES = {f"{what}, {copies} of {profile}": (what, copies, profile)
         for what in (DATA, LEAF) for copies in ("one copy", "all copies")
         for profile in ("single", "dup", "raid1")
         if (what, copies, profile) not in ((DATA, "one copy", "single"),)}
CASES.update({f"{what}, all copies of dup": (what, "all copies", "dup")
              for what in (CHUNKS, SUPER)})


class Log:
    """The messages of the kernel from now on."""

    def __init__(self):
        self.mark = f"btrfs-walk test {os.getpid()} {random.randrange(1 << 30)}"
        with open("/dev/kmsg", "w", encoding="ascii") as kmsg:
            kmsg.write(self.mark + "\n")

    def about(self, loops):
        """Those about these devices."""
        names = "|".join(os.path.basename(loop) for loop in loops)
        lines = run("dmesg").stdout.splitlines()
        first = max(i for i, line in enumerate(lines) if self.mark in line)
        return [line for line in lines[first:] if re.search(rf"\b({names})\b", line)]


def make(directory, profile, seed):
    """A file system with files; returns its images, and the inodes and contents of the files."""
    rng = random.Random(seed)
    system = kernel.FileSystem(directory)
    for _ in range(2 if profile == "raid1" else 1):
        system.add_image(400 * MIB)
    run("mkfs.btrfs", "-q", "-f", "-d", profile, "-m", "dup" if profile == "single" else profile,
        *system.loops, check=True)
    system.mount_loops()
    run("btrfs", "subvolume", "create", system.path("sub"), check=True)
    for i in range(300):
        folder = system.path("sub" if i % 2 else ".", f"d{i % 7}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file-{i}"), "wb") as file:
            file.write(rng.randbytes(rng.choice((100, 9000, 70000))))
    system.sync()
    files = {path: entry for path, entry in kernel.read_tree(system.mount).items()
             if "sha256" in entry}
    system.detach()
    return system.images, files


def places(program, logical, count):
    rows = [row for row in program.rows("map", logical) if row["kind"] == "copy"]
    return [(row["device"], row["offset"]) for row in (rows if count == "all copies" else rows[:1])]


def choose(program, what, files, seed):
    """Logical addresses to damage, and the bytes at each."""
    rng = random.Random(seed)
    if what == DATA:
        large = sorted(path for path in files if files[path]["size"] > 5000)
        rows = [json.loads(line) for line in
                program.ask("extents", "--json", *rng.sample(large, 5)).stdout.splitlines()]
        return [row["extents"][0]["extent_logical"] for row in rows]
    tree = "chunk" if what == CHUNKS else "fs"
    rows = program.rows("dump", "--tree", tree, "-o", "logical,level")
    blocks = sorted({row["logical"] for row in rows if row["level"] == 0})
    return blocks if what == CHUNKS else [rng.choice(blocks)]


def damage(directory, images, program, what, copies, files, seed):
    """A damaged copy of the images."""
    if what == SUPER:
        spots = [(image, 65536) for image in images] + [(image, 64 * MIB) for image in images]
    else:
        spots = [place for logical in choose(program, what, files, seed)
                 for place in places(program, logical, copies)]
    damaged = kernel.copy_images(images, directory)
    for image, offset in spots:
        with open(os.path.join(directory, os.path.basename(image)), "r+b") as file:
            file.seek(offset + 200)
            file.write(os.urandom(64))
    return damaged


def provoke(system):
    """Mounts, reads all files, and scrubs; returns the files that were read, and their hashes."""
    read = {}
    try:
        system.attach_read_only()
    except kernel.NotMade:
        return read
    for folder, _, names in os.walk(system.mount):
        for name in names:
            path = os.path.join(folder, name)
            try:
                read[path[len(system.mount):]] = kernel.digest(path)
            except OSError:
                pass
    run("btrfs", "scrub", "start", "-B", "-r", system.mount)
    time.sleep(0.2)
    return read


def compare_row(row, files, by_inode, read, is_complete):
    """The paths and the copy of one message. An inode in a lost leaf may have no path."""
    wrong = []
    paths = set(row.get("paths", ()))
    if row.get("inode") and row.get("subvolume"):
        wanted = by_inode.get((row["subvolume"], row["inode"]))
        if wanted and paths != {wanted} and (paths or is_complete):
            wrong.append(f"{row['kernel_message']} of inode {row['inode']}: {paths}, not {wanted}")
    elif "paths" in row and not paths <= set(files) | set(map(os.path.dirname, files)) | {"/"}:
        wrong.append(f"{row['kernel_message']}: unknown paths {sorted(paths)[:3]}")
    known = [path for path in paths if path in files]
    right = [read.get(path) == files[path]["sha256"] for path in known]
    if len(known) == 1 and row["kernel_message"] == "csum-failed" and "readable" in row and \
            row["readable"] != right[0]:
        wrong.append(f"{row['message']}: readable {row['readable']}, but the kernel's answer "
                     f"{right[0]}")
    return wrong


def compare(options, case, directory):
    (what, copies, profile), seed = case, options.seed
    sound = os.path.join(directory, "sound")
    os.makedirs(sound)
    images, files = make(sound, profile, seed)
    program = kernel.Program(options.program, images)
    subvolumes = {row["subvolume_path"]: row["subvolume"] for row in program.rows("subvolumes")}
    by_inode = {(subvolumes["/sub"] if path.startswith("/sub/") else 5, entry["inode"]): path
                for path, entry in files.items()}
    damaged = damage(os.path.join(directory, "damaged"), images, program, what, copies, files, seed)
    time.sleep(PAUSE)
    with kernel.FileSystem(directory, damaged) as system:
        log = Log()
        read = provoke(system)
        lines = log.about(system.loops)
    names = collections.Counter(re.findall(r"BTRFS:? (\w+)", "\n".join(lines)))
    path = os.path.join(directory, "log")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    if not names["error"] + names["warning"]:
        raise kernel.NotMade("the kernel has printed nothing, because it limits its messages")
    answer = kernel.Program(options.program, damaged).ask("rescue", "--json", "--dmesg", path)
    rows = kernel.json_rows(answer)
    is_complete = what != LEAF or copies == "one copy"
    wrong = [line for row in rows
             for line in compare_row(row, files, by_inode, read, is_complete)]
    unknown = re.search(rb"lines? (?:was|were) passed over, (\d+) of them errors", answer.stderr)
    if unknown and int(unknown[1]):
        wrong.append(f"{int(unknown[1])} errors are not recognized; the log: {lines}")
    if what in (DATA, LEAF) and not rows:
        wrong.append(f"no message is recognized: {lines}")
    return wrong


def main():
    options = kernel.parser(__doc__, count=len(CASES)).parse_args()
    kernel.need("mkfs.btrfs", "btrfs", "losetup", "dmesg")
    return kernel.compare_each(options, kernel.sample(options, CASES), compare)


if __name__ == "__main__":
    sys.exit(main())
