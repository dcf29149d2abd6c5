#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""send_sources - subvolumes sent from images that are not whole, or not plain

usage: sudo tests/kernel/send_sources.py [--count N] [--seed S] [--program PROGRAM]

A random history on a file system of several devices is sent from images as they are, which is
compared with the kernel by send.py. The same streams must come from these images: a qcow2 image, a
disk with a partition table, an image compressed with zstd, a file system with a missing device,
with mirrors of tree blocks and data that are damaged, without superblocks, and without a root tree
or a chunk tree. From contents without any good mirror, --on-error=zero and skip must send all other
files, as `diff --other` finds out. Needs root, btrfs-progs and a kernel with btrfs; qemu-img,
sfdisk and zstd for some of the images.
"""
import os
import re
import shutil
import struct
import subprocess
import sys

import kernel
from kernel import run
from send import Source, commands

WRITE = 15
SUPERBLOCKS = (64 << 10, 64 << 20, 256 << 30)


def send(program, images, *words):
    """The streams of a full send and an incremental one, and the messages."""
    asked = kernel.Program(program, images)
    full = asked.ask("send", *words, "snapshot0")
    changed = asked.ask("send", *words, "-p", "snapshot0", "snapshot1")
    return full, changed


def overwrite(path, offset, length=4096):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(bytes(length))


def places(program, images, address):
    """Where the copies of a logical address are: image and offset."""
    for row in kernel.Program(program, images).rows("map", address):
        yield images[int(row["devid"]) - 1], int(row["offset"])


class Variants:
    """Copies of the images, changed in one way each."""

    def __init__(self, program, images, directory):
        self.program, self.images, self.directory = program, images, directory

    def copies(self, name):
        return kernel.copy_images(self.images, os.path.join(self.directory, name))

    def qcow2(self):
        made = []
        for image in self.images:
            made.append(os.path.join(self.directory, os.path.basename(image) + ".qcow2"))
            run("qemu-img", "convert", "-O", "qcow2", image, made[-1], check=True)
        return made

    def compressed(self):
        made = []
        for image in self.images:
            made.append(os.path.join(self.directory, os.path.basename(image) + ".zst"))
            run("zstd", "-q", "-1", "-f", image, "-o", made[-1], check=True)
        return made

    def partition(self):
        made = []
        for image in self.images:
            disk = os.path.join(self.directory, os.path.basename(image) + ".disk")
            size = os.path.getsize(image)
            kernel.make_image(disk, size + (4 << 20))
            run("sfdisk", "-q", disk, input=f"2048,{size // 512}\n", check=True)
            run("dd", f"if={image}", f"of={disk}", "bs=1M", "seek=1", "conv=notrunc,sparse",
                check=True)
            made.append(disk)
        return made

    def degraded(self):
        return self.copies("degraded")[:-1]

    def damaged_copy(self):
        """All but the superblocks of one device are zeros in every second MiB."""
        images = self.copies("damaged")
        for offset in range(2 << 20, os.path.getsize(images[-1]), 2 << 20):
            if offset not in SUPERBLOCKS:
                overwrite(images[-1], offset, 1 << 20)
        return images

    def superblocks(self):
        """Only the last copy is left."""
        images = self.copies("superblocks")
        for image in images:
            overwrite(image, SUPERBLOCKS[0])
        return images

    def lost_root(self, member):
        images = self.copies(member)
        super_block = kernel.Program(self.program, images[:1]).rows("super")[0]
        for image, offset in list(places(self.program, images, super_block[member])):
            overwrite(image, offset, 16384)
        return images

    def root_tree(self):
        return self.lost_root("root")

    def chunk_tree(self):
        return self.lost_root("chunk_root")


WHOLE = {"qcow2": "qemu-img", "compressed": "zstd", "partition": "sfdisk", "degraded": None,
         "damaged_copy": None, "superblocks": None, "root_tree": None, "chunk_tree": None}


def unverified(program, images):
    """The paths of files without checksums. Their damage cannot be seen."""
    for name in ("snapshot0", "snapshot1"):
        for row in kernel.Program(program, images).rows("walk", "--subvol", name, "--type", "f"):
            if "nodatasum" in [flag.lower() for flag in row["flags"]]:
                yield os.fsencode(row["path"][1:])


def contents(stream, ignored=()):
    """All commands but the first, without the UUID of the subvolume and the transaction after it.
    These may be lost, and the UUID is a new one then."""
    found = list(commands(stream))
    first, at, uuid = found[0][1], 10, b""
    while not uuid and at < len(first):
        kind, length = struct.unpack_from("<HH", first, at)
        uuid = first[at + 4:at + 4 + length] if kind == 1 else b""
        at += 4 + length
    identity = re.compile(re.escape(uuid) + b".{12}", re.DOTALL)
    found = [(kind, identity.sub(b"", data[10:])) for kind, data in found[1:]]
    return [(kind, data) for kind, data in found
            if kind != WRITE or data[4:4 + struct.unpack_from("<H", data, 2)[0]] not in ignored]


def compare_variant(program, name, images, wanted, ignored):
    for ours, right, what in zip(send(program, images), wanted, ("full", "incremental")):
        if ours.returncode not in (0, 1):
            yield f"{name}, {what}: status {ours.returncode}: {ours.stderr[-300:]}"
        elif contents(ours.stdout, ignored) != contents(right.stdout, ignored):
            yield f"{name}, {what}: another stream: {ours.stderr[-300:]}"


def lost_contents(program, source, directory):
    """Data of one file without a good mirror."""
    images = kernel.copy_images(source.images, os.path.join(directory, "lost"))
    asked = kernel.Program(program, images)
    paths = [row["path"] for row in asked.rows("walk", "--subvol", "snapshot0", "--type", "f")
             if row.get("size", 0) > 16384 and "nodatasum" not in row["flags"]]
    rows = asked.rows("extents", "--subvol", "snapshot0", paths[0]) if paths else []
    extents = [extent for row in rows if row["checksums"] for extent in row["extents"]
               if extent.get("places") and extent["extent_kind"] != "unwritten"]
    if not extents:
        return
    for image, offset in list(places(program, images, extents[0]["places"][0]["logical"])):
        overwrite(image, offset)
    for how in ("fail", "zero", "skip"):
        stream = os.path.join(directory, how)
        result = asked.ask("send", f"--on-error={how}", "-f", stream, "snapshot0")
        if result.returncode != 1 or paths[0].encode()[1:] not in result.stderr:
            yield f"lost contents, {how}: {result.returncode} {result.stderr[-300:]}"
        if how == "fail":
            continue
        devices = [word for image in source.images[1:] for word in ("--device", image)]
        found = subprocess.run([program, "diff", "-q", "-o", "change,path", "--other", stream,
                                source.images[0], "snapshot0", *devices],
                               check=False, capture_output=True)
        lines = found.stdout.decode().splitlines()
        expected = {"zero": ("modified", "unknown"), "skip": "deleted"}[how]
        if not lines or any(not line.startswith(expected) for line in lines):
            yield f"lost contents, {how}: {lines[:5]} {found.stderr[-300:]}"


def compare(options, seed, directory):
    with Source(seed, os.path.join(directory, "source")) as source:
        os.makedirs(source.directory, exist_ok=True)
        for number in (1, 2):
            source.add_image(2 << 30)
        run("mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1", *source.loops, check=True)
        source.attach()
        source.begin()
        for name in ("snapshot0", "snapshot1"):
            source.work(source.random.choice([20, 60]))
            source.take_snapshot(name, streams=False)
        source.detach()
        wanted = send(options.program, source.images)
        for result in wanted:
            if result.returncode or result.stderr:
                yield f"as they are: status {result.returncode}: {result.stderr[-300:]}"
        ignored = set(unverified(options.program, source.images))
        variants = Variants(options.program, source.images, directory)
        for name, tool in WHOLE.items():
            if tool and not shutil.which(tool):
                continue
            images = getattr(variants, name)()
            yield from compare_variant(options.program, name, images, wanted,
                                       ignored if name == "damaged_copy" else ())
            for image in images:
                os.unlink(image)
        yield from lost_contents(options.program, source, directory)


def main():
    kernel.need("mkfs.btrfs", "btrfs")
    options = kernel.parser(__doc__, count=2).parse_args()
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
