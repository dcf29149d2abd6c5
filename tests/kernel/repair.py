#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages images in random ways, repairs them, and lets the kernel judge the result: it mounts the
repaired copy for writing, all files equal those before the damage, something is written, and then
`btrfs check` and a scrub find nothing. A second repair has nothing to do, and no image was written
to. Needs root, loop devices, btrfs-progs and qemu-img; run it on a machine that may hang.

    tests/kernel/repair.py [--cases N] [--seed S] PROGRAM FOLDER
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import struct
import subprocess
import sys

PROFILES = {
    "single": (1, ["-m", "single", "-d", "single"]),
    "dup": (1, ["-m", "dup", "-d", "dup"]),
    "raid1": (2, ["-m", "raid1", "-d", "raid1"]),
    "raid10": (4, ["-m", "raid10", "-d", "raid10"]),
    "raid5": (3, ["-m", "raid5", "-d", "raid5"]),
    "raid6": (4, ["-m", "raid6", "-d", "raid6"]),
}
SUPERBLOCKS = (65536, 64 << 20)


def run(*words, check=True, **options):
    """Runs a program; its output as bytes."""
    result = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False, **options)
    if check and result.returncode:
        raise RuntimeError(f"{words}: {result.returncode}\n{result.stderr.decode()}"
                           f"{result.stdout.decode()[-2000:]}")
    return result.stdout


class Mount:
    """A pool that is mounted through loop devices."""

    def __init__(self, images, folder):
        self.folder = folder
        self.loops = [run("losetup", "-f", "--show", image).decode().strip() for image in images]
        try:
            run("btrfs", "device", "scan", *self.loops)
            folder.mkdir(exist_ok=True)
            run("mount", "-o", ",".join(f"device={loop}" for loop in self.loops), self.loops[0],
                folder)
        except RuntimeError:
            self.detach()
            raise

    def detach(self):
        """Forgets and detaches the loop devices."""
        for loop in self.loops:
            run("btrfs", "device", "scan", "--forget", loop, check=False)
            run("losetup", "-d", loop, check=False)

    def __enter__(self):
        return self.folder

    def __exit__(self, *_):
        run("umount", self.folder)
        self.detach()


def files_of(folder):
    """The hash of each file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def make(chance, folder, profile, checksum):
    """Makes a pool with random files, subvolumes and snapshots."""
    count, words = PROFILES[profile]
    images = [folder / f"disk{number}.img" for number in range(1, count + 1)]
    for image in images:
        with open(image, "wb") as file:
            file.truncate(260 << 20)
    run("mkfs.btrfs", "-q", "-f", "--csum", checksum, *words, *images)
    with Mount(images, folder / "mount") as top:
        run("btrfs", "subvolume", "create", top / "sub")
        for number in range(chance.randrange(50, 300)):
            where = top / chance.choice([".", "sub"]) / f"file{number}"
            where.write_bytes(chance.randbytes(chance.choice([10, 1000, 5000, 100000])))
            if chance.random() < 0.1:
                os.sync()
        run("btrfs", "subvolume", "snapshot", top / "sub", top / "snapshot")
        files = files_of(top)
    return images, files


def blocks_of(image, limit=64 << 20):
    """Offsets of what look like tree blocks, by the fsid of the superblock."""
    data = image.read_bytes()
    fsid = data[65536 + 32:65536 + 48]
    nodesize = struct.unpack_from("<I", data, 65536 + 148)[0]
    generation = struct.unpack_from("<Q", data, 65536 + 72)[0]
    return [(at, struct.unpack_from("<Q", data, at + 48)[0], nodesize)
            for at in range(1 << 20, min(len(data), limit * 4), 4096)
            if data[at + 32:at + 48] == fsid and at not in SUPERBLOCKS and
            struct.unpack_from("<Q", data, at + 80)[0] <= generation]


def change(image, offset, function):
    """Changes bytes at an offset."""
    with open(image, "r+b") as file:
        file.seek(offset)
        old = file.read(4096)
        file.seek(offset)
        file.write(function(bytearray(old)))


def damage_super(chance, images, _):
    """A copy of a superblock becomes zeros."""
    change(chance.choice(images), chance.choice(SUPERBLOCKS), lambda old: bytes(4096))


def damage_mirror(chance, images, profile):
    """One copy of a tree block is overwritten."""
    if profile == "single":
        return
    at, _, _ = chance.choice(blocks_of(images[0]))
    change(images[0], at, lambda old: chance.randbytes(4096))


def damage_flip(chance, images, _):
    """The same bit is flipped in all copies of a tree block."""
    _, bytenr, nodesize = chance.choice(blocks_of(images[0]))
    byte, bit = chance.randrange(32, nodesize), chance.randrange(8)

    def flip(old):
        old[byte % 4096] ^= 1 << bit
        return old
    for image in images:
        for at, address, _ in blocks_of(image):
            if address == bytenr:
                change(image, at + byte // 4096 * 4096, flip)


DAMAGES = [damage_super, damage_mirror, damage_flip]


def digest(images):
    """The hashes of the images."""
    return [hashlib.sha256(image.read_bytes()).hexdigest() for image in images]


def judge(program, folder, images, files):
    """Repairs, and returns why the result is not good; None: it is."""
    before = digest(images)
    plan = [json.loads(line) for line in
            run(program, "-q", "repair", "--data", "--json", "-C", folder / "fixed", *images,
                check=False).splitlines()]
    if digest(images) != before:
        return "an image was written to"
    overlays = sorted((folder / "fixed").glob("*.qcow2"))
    if not overlays:
        return None if not plan else "no overlay was written"
    fixed = []
    for overlay in overlays:
        fixed.append(overlay.with_suffix(".img"))
        run("qemu-img", "convert", "-O", "raw", overlay, fixed[-1])
    again = run(program, "-q", "repair", "--data", "--json", *fixed, check=False)
    if again:
        return f"a second plan is not empty: {again[:300]!r}"
    loops = [run("losetup", "-f", "--show", image).decode().strip() for image in fixed]
    try:
        run("btrfs", "device", "scan", *loops)
        run("btrfs", "check", loops[0])
    finally:
        for loop in loops:
            run("btrfs", "device", "scan", "--forget", loop, check=False)
            run("losetup", "-d", loop)
    with Mount(fixed, folder / "mount") as top:
        if files_of(top) != files:
            return "files differ"
        (top / "new").write_bytes(bytes(range(256)) * 1000)
        os.sync()
        if b"no errors found" not in run("btrfs", "scrub", "start", "-B", top):
            return "scrub finds errors"
    return None


def main():
    """Runs the cases; the status says whether all were good."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    wanted = parser.parse_args()
    failures = planned = 0
    for number in range(wanted.seed, wanted.seed + wanted.cases):
        chance = random.Random(number)
        folder = wanted.folder / str(number)
        folder.mkdir(parents=True)
        profile = chance.choice(sorted(PROFILES))
        checksum = chance.choice(["crc32c", "crc32c", "xxhash", "sha256", "blake2"])
        images, files = make(chance, folder, profile, checksum)
        damages = chance.sample(DAMAGES, chance.choice([1, 1, 3]))
        damages.sort(key=lambda damage: damage is damage_super) # others need the superblock
        if checksum != "crc32c":
            damages = [damage for damage in damages if damage is not damage_flip] or [damage_super]
        for damage in damages:
            damage(chance, images, profile)
        try:
            why = judge(wanted.program, folder, images, files)
        except RuntimeError as error:
            why = str(error)
        planned += (folder / "fixed").exists()
        names = " ".join(damage.__name__ for damage in damages)
        print(f"{number} {profile} {checksum} {names}: {why or 'good'}", flush=True)
        failures += bool(why)
        if not why:
            run("rm", "-rf", folder)
    print(f"{wanted.cases} cases, {failures} failures")
    return bool(failures)


sys.exit(main())
