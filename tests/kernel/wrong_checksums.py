#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""wrong_checksums - rescue saves every file that a mount with rescue=all reads correctly, and more

usage: sudo tests/kernel/wrong_checksums.py [--count N] [--seed S] [--profile NAME]...
                                            [--program PROGRAM]

Makes file systems of each profile, size of nodes and type of checksum. In all copies, and the
parity, of some leaves and nodes of the tree of files, more than one bit is damaged: of the
checksum, of unused space, or anywhere. No file in SAVED/whole may be wrong, and each file that
the kernel reads correctly must be saved correctly. Needs root, and a kernel with
rescue=ignoremetacsums (6.11).
"""
import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
PROFILES = {"single": ("single", 1), "dup": ("dup", 1), "raid1": ("raid1", 2),
            "raid5": ("raid5", 3)}
CHECKSUMS = ("crc32c", "xxhash", "sha256", "blake2")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, check=False, **options)


def read_tree(top):
    """Contents of the regular files, by path; None for those that cannot be read."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
            except OSError:
                found[os.path.relpath(path, top)] = None
    return found


def make_files(top, picker, count):
    for number in range(count):
        folder = os.path.join(top, f"folder {number % 7}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file {number}"), "wb") as file:
            file.write(picker.randbytes(picker.choice((0, 50, 900, 5000, 40000))))


def damage_blocks(program, images, node, picker):
    """Damages some leaves, and in every second case a node, in all copies."""
    lines = run(program, "dump", "--tree", "fs", *images).stdout.decode().splitlines()
    leaves = [line.split() for line in lines if line.startswith("leaf ") and " items " in line]
    nodes = [line.split() for line in lines if line.startswith("node ") and " items " in line]
    chosen = picker.sample(leaves, min(len(leaves), picker.randint(1, 5)))
    chosen += picker.sample(nodes, min(len(nodes), picker.randint(0, 1)))
    for words in chosen:
        items, free = int(words[words.index("items") + 1]), int(words[words.index("space") + 1])
        kind = picker.choice(("checksum", "unused", "anywhere"))
        start = 1 if kind == "checksum" else picker.randrange(101, node - 4)
        if kind == "unused" and free > 16:
            start = 101 + (25 if words[0] == "leaf" else 33) * items + 4
        changes = [(start + i, picker.randrange(1, 256)) for i in range(3)]
        places = run(program, "map", "--raw", "-o", "devid,offset", *images[:1],
                     *(f"--device={image}" for image in images[1:]), words[1]).stdout.decode()
        for place in places.splitlines():
            devid, offset = map(int, place.split()[:2])
            with open(images[devid - 1], "r+b") as file:
                for at, change in changes:
                    file.seek(offset + at)
                    byte = file.read(1)[0]
                    file.seek(offset + at)
                    file.write(bytes([byte ^ change]))


def mount_and_read(images, folder):
    """What the kernel reads; nothing if it does not mount."""
    loops = [run("losetup", "-f", "--show", "-r", image).stdout.decode().strip()
             for image in images]
    devices = [f"device={loop}" for loop in loops]
    mounted = run("mount", "-t", "btrfs", "-o", ",".join(["ro", "rescue=all", *devices]), loops[0],
                  folder)
    files = {} if mounted.returncode else read_tree(folder)
    while not mounted.returncode and run("umount", folder).returncode:
        time.sleep(1)
    for loop in loops:
        run("losetup", "-d", loop)
    return files


def compare(program, right, images, work):
    """Prints what is wrong, and returns the numbers of files: the kernel's, and those saved."""
    mount, saved = os.path.join(work, "mount"), os.path.join(work, "saved")
    os.mkdir(mount)
    kernel = mount_and_read(images, mount)
    run(program, "rescue", "--extract", saved, *images)
    whole = read_tree(os.path.join(saved, "whole"))
    unverified = read_tree(os.path.join(saved, "unverified"))
    wrong = [path for path, data in whole.items() if right.get(path) != data]
    if wrong:
        yield f"verified, but wrong: {wrong[:3]}"
    missing = [path for path, data in kernel.items() if data == right.get(path) and
               right[path] not in (whole.get(path), unverified.get(path))]
    if missing:
        yield f"{len(missing)} files that only the kernel reads: {missing[:3]}"
    by_kernel = sum(data == right.get(path) for path, data in kernel.items())
    print(f"  {len(right)} files: kernel {by_kernel}, whole {len(whole)}, "
          f"unverified {len(unverified)}", flush=True)


def try_case(program, case, seed):
    profile, node, checksum = case
    metadata, count = PROFILES[profile]
    picker = random.Random(f"{case} {seed}")
    with tempfile.TemporaryDirectory() as work:
        top = os.path.join(work, "files")
        make_files(top, picker, 120 * node // 4096)
        images = [os.path.join(work, f"device{i + 1}") for i in range(count)]
        for image in images:
            with open(image, "wb") as file:
                file.truncate(300 * MIB)
        made = run("mkfs.btrfs", "-q", "--csum", checksum, "-n", str(node), "-m", metadata, "-d",
                   "single", *(["--rootdir", top] if count == 1 else []), *images)
        if made.returncode:
            return [made.stderr.decode()]
        if count > 1:
            folder = os.path.join(work, "empty")
            os.mkdir(folder)
            loops = [run("losetup", "-f", "--show", image).stdout.decode().strip()
                     for image in images]
            run("btrfs", "device", "scan", *loops)
            run("mount", "-t", "btrfs", loops[0], folder)
            run("cp", "-a", f"{top}/.", folder)
            while run("umount", folder).returncode:
                time.sleep(1)
            for loop in loops:
                run("losetup", "-d", loop)
        right = read_tree(top)
        damage_blocks(program, images, node, picker)
        print(f"{profile}, nodes of {node}, {checksum}, seed {seed}", flush=True)
        return list(compare(program, right, images, work))


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1, help="rounds")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--program", default="build/btrfs-walk")
    options.add_argument("--profile", action="append", choices=PROFILES)
    given = options.parse_args()
    program, failed = os.path.abspath(given.program), 0
    for seed in range(given.seed, given.seed + given.count):
        for case in itertools.product(given.profile or PROFILES, (4096, 16384), CHECKSUMS):
            for problem in try_case(program, case, seed):
                print(f"FAILED: {case}, seed {seed}: {problem}")
                failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
