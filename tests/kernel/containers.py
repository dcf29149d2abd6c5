#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""containers - random file systems in containers of all kinds

usage: sudo tests/kernel/containers.py [--count N] [--seed S] [--program PROGRAM]
                                       [--keep DIRECTORY]

The kernel writes a small file system with random contents, which is put into up to three
containers, one in the other: LUKS, LVM (also thin volumes), MD, bcache, partclone,
compressed and split files. The hashes of all files must be those of the mount, and a check must
find no more than in the bare image. Needs root, btrfs-progs and a kernel with btrfs. Kinds whose
tools are missing are left out: cryptsetup and the Python package cryptography, libnettle for other
ciphers than AES, thin_restore, partclone.btrfs, lz4, xz.
"""
import ctypes.util
import importlib.util
import os
import random
import shutil
import subprocess
import sys

import kernel
from kernel import run

sys.path.insert(0, os.path.join(kernel.TOP, "tests", "support"))
import wrap  # noqa: E402

KEY = "secret"


class Source(kernel.FileSystem):
    """A mounted file system with files of all sizes."""

    def __init__(self, chance, directory):
        super().__init__(directory)
        self.random = chance

    def make(self):
        image = kernel.make_image(os.path.join(self.directory, "bare.img"), 200 << 20)
        self.images = [image]
        run("mkfs.btrfs", "-q", "-m", self.random.choice(["single", "dup"]), "-n",
            self.random.choice(["4096", "16384", "65536"]), "--csum",
            self.random.choice(["crc32c", "xxhash", "blake2"]), image, check=True)
        self.attach(*self.random.choice([(), ("compress-force=zstd",), ("max_inline=0",)]))
        self.fill(self.mount, 3)
        run("btrfs", "subvolume", "snapshot", self.mount, self.path("snapshot"), check=True)
        self.fill(self.mount, 1)
        self.sync()

    def fill(self, folder, depth):
        for number in range(self.random.randrange(1, 12)):
            size = int(2 ** self.random.uniform(0, 20))
            block = self.random.randbytes(self.random.choice([1, 100, size]))
            with open(os.path.join(folder, f"file-{depth}-{number}"), "wb") as file:
                file.write((block * (size // len(block) + 1))[:size])
        for number in range(3 if depth else 0):
            inner = os.path.join(folder, f"folder-{depth}-{number}")
            os.makedirs(inner, exist_ok=True)
            self.fill(inner, depth - 1)

    def hashes(self):
        """As `sum` prints them, but sorted."""
        return sorted(f"{kernel.digest(os.path.join(folder, name))}  "
                      f"{os.path.join(folder, name)[len(self.mount):]}".encode()
                      for folder, _, names in os.walk(self.mount) for name in names)


# Kinds: functions that put an image into others, and return their paths.

def in_luks(chance, image, target):
    version = chance.choice(["luks1", "luks2"])
    names = ["aes", "aes"]
    if ctypes.util.find_library("nettle"):
        names += ["serpent", "twofish", "camellia"]
    name = chance.choice(names)
    mode, key = chance.choice([("xts-plain64", "512"), ("xts-plain64", "256"),
                               ("cbc-essiv:sha256", "256")])
    wrap.luks(image, target, type=version, cipher=f"{name}-{mode}", key=key, passphrase=KEY,
              sector=chance.choice(["512", "4096"]),
              slots=chance.choice(["1", "2"]) if name == "aes" else "1",
              pbkdf=chance.choice(["pbkdf2", "argon2id"]), memory="32768")
    return [target]


def in_lvm(chance, image, target):
    count = chance.choice([1, 2, 3])
    kind = chance.choice(["linear"] if count == 1
                         else ["linear", "striped", "raid0", "raid1", "mirror"])
    targets = [f"{target}.{number}" for number in range(count)]
    wrap.lvm(image, *targets, kind=kind, swap="no")
    return targets


def in_thin(chance, image, target):
    targets = [f"{target}.{number}" for number in range(chance.choice([1, 2]))]
    wrap.lvm_thin(image, *targets)
    return targets


def in_md(chance, image, target):
    level, count, layouts = chance.choice([
        ("linear", 3, [""]), ("0", 3, ["1", "2"]), ("1", 2, [""]), ("4", 3, [""]),
        ("5", 4, ["la", "ra", "ls", "rs"]), ("6", 5, ["ls", "zr", "nc", "ls6"]),
        ("10", 5, ["0x102", "0x201", "0x10201"])])
    targets = [f"{target}.{number}" for number in range(count)]
    words = {"layout": chance.choice(layouts)} if layouts != [""] else {}
    version = chance.choice(["1.0", "1.1", "1.2"] + (["0.90"] if level in "015" else []))
    wrap.md(image, *targets, level=level, version=version, **words)
    return targets


def in_bcache(chance, image, target):
    wrap.bcache(image, target, begin=chance.choice(["16", "64", "2048"]))
    return [target]


def in_partclone(_, image, target):
    """Also restores the backup: partclone 0.3 loses tree blocks of 64 KiB nodes."""
    log = ("-L", target + ".log")
    run("partclone.btrfs", "-c", "-s", image, "-o", target, *log, check=True)
    run("partclone.btrfs", "-r", "-W", "-s", target, "-o", restored(image), *log, check=True)
    return [target]


def restored(image):
    return image + ".restored"


def in_file(chance, image, target):
    tool = chance.choice([tool for tool in ("zstd", "gzip", "lz4", "xz") if shutil.which(tool)])
    with open(image, "rb") as source, open(target, "wb") as packed:
        subprocess.run([tool, "-1", "-c"], stdin=source, stdout=packed, check=True)
    if chance.choice([True, False]):
        return [target]
    run("split", "-b", max(os.path.getsize(target) // 3, 1), target, target + ".", check=True)
    return [target + ".aa"]


def usable_kinds():
    kinds = [in_lvm, in_md, in_bcache, in_file]
    if shutil.which("cryptsetup") and importlib.util.find_spec("cryptography"):
        kinds.append(in_luks)
    if shutil.which("thin_restore"):
        kinds.append(in_thin)
    return kinds


def put_inside(chance, image, directory):
    """Returns the images of the outermost container, and the kinds from inside out. Only the last
    one consists of several images."""
    images, kinds, usable = [image], [], usable_kinds()
    innermost = [in_partclone] if shutil.which("partclone.btrfs") else []
    for level in range(chance.choice([1, 1, 2, 3])):
        kind = chance.choice(usable + (innermost if not level else []))
        if kind is in_file:
            usable.remove(kind)
        if len(images) > 1 or images[0].endswith(".aa") or (kind is in_thin and in_thin in kinds):
            break
        if kind is in_luks and kinds:   # holes are not encrypted, but may be in tree blocks
            break
        images = kind(chance, images[0], os.path.join(directory, f"level{level}"))
        kinds.append(kind)
    return images, kinds


def compare(options, seed, directory):
    chance = random.Random(seed)
    with Source(chance, directory) as source:
        source.make()
        want = source.hashes()
        source.detach()
        images, kinds = put_inside(chance, source.images[0], directory)
    names = " > ".join(kind.__name__[3:] for kind in reversed(kinds))
    with open(os.path.join(directory, "key"), "w", encoding="ascii") as file:
        file.write(KEY)
    words = ["--key-file", os.path.join(directory, "key"),
             *(["--volume", "root"] if in_thin in kinds else [])]
    program, status = kernel.Program(options.program, images), 0
    if os.path.exists(restored(source.images[0])):
        backup = kernel.Program(options.program, [restored(source.images[0])]).ask("sum")
        status, want = backup.returncode, sorted(backup.stdout.splitlines())
    result = program.ask("sum", *words)
    if result.returncode != status or sorted(result.stdout.splitlines()) != want:
        yield f"{names}: sum: status {result.returncode}: {result.stderr[-500:]}"
    checked = program.ask("check", "--data", "-q", "--tolerate", "repairable", *words)
    if checked.returncode and not status:
        yield f"{names}: check: status {checked.returncode}: {checked.stdout[-500:]}"


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
