#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""every_damage - what commands say of file systems with wrong bits and contents must be true

usage: sudo tests/kernel/every_damage.py [--profile NAME]... [--node N]... [--checksum NAME]...
                                         [--damage NAME]... [--each N] [--files N] [--count N]
                                         [--seed S] [--program PROGRAM] [--keep DIRECTORY]

Makes a file system for each profile, size of nodes and type of checksums, with compressed, sparse,
inline, preallocated and shared data, attributes, many hard links and snapshots. Copies of it are
damaged: bits and bytes of tree blocks, data, superblocks and checksums, in all mirrors or in one;
another file system made over it. Whatever the damage is: a file that is shown without a message has
the right contents, a file that is missing is told by the exit status and on stderr, `rescue` saves
each file that `mount -o ro,rescue=all` reads, nothing it calls whole is wrong, and what `repair`
writes has the same files. Nothing may be found in the copy without damage. Damage of one mirror
must not lose a file. With --count, so many combinations are chosen at random. Needs root, a
kernel with btrfs and rescue=all (6.11), mkfs.btrfs, mkfs.ext4 and mkfs.ntfs.
"""
import itertools
import os
import random
import shutil
import sys

import fields
import kernel
from kernel import run
from rescue import MIB, Images
from rescue_damage import sums_below

# name: devices, profiles of metadata and data
PROFILES = {"single": (1, "single", "single"), "dup": (1, "dup", "single"),
            "dup-dup": (1, "dup", "dup"), "raid1": (2, "raid1", "raid1"),
            "raid1c3": (3, "raid1c3", "raid1c3"), "raid1-single": (2, "raid1", "single"),
            "raid5": (3, "raid5", "raid5"), "raid6": (4, "raid6", "raid6"),
            "raid10": (4, "raid10", "raid10")}
CHECKSUMS = ("crc32c", "xxhash", "sha256", "blake2")  # their position is the number on disk
TREES = {"fs": 4, "csum": 1, "extent": 1, "root": 1, "chunk": 1}  # with how often they are damaged


class Made(kernel.FileSystem):
    """A sound file system, and the hashes of the files in it."""

    def __init__(self, directory, case, files, r):
        super().__init__(directory)
        (profile, node, checksum), self.random = case, r
        count, metadata, data = PROFILES[profile]
        loops = [self.add_image(r.choice((300, 400, 700, 1024)) * MIB) for _ in range(count)]
        run("mkfs.btrfs", "-q", "-f", "-m", metadata, "-d", data, "-n", node, "--csum", checksum,
            *loops, check=True)
        for number, option in enumerate(("compress=no", "compress-force=zstd",
                                         "compress-force=lzo", "compress-force=zlib")):
            self.attach(option)
            self.fill(f"part{number}", files // 4)
            if number == 1:
                self.links()
            run("btrfs", "subvolume", "snapshot", self.mount, self.path(f"snap{number}"),
                check=True)
            self.unmount()
        self.attach()
        self.change()
        self.detach()
        self.attach_read_only()
        self.right = sums_below(self.mount)
        self.detach()

    def fill(self, where, count):
        r = self.random
        for i in range(count):
            folder = self.path(where, f"d{i // 60}")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, f"file {i}" + "x" * r.choice((0, 0, 0, 90)))
            size = r.choice((0, 40, 900, 1900, 3000, 5000, 5000, 20000, 150000))
            kind = r.choice(("plain", "plain", "plain", "cut", "hole", "preallocated", "clone"))
            with open(path, "wb") as file:
                file.write(r.randbytes(size) if i % 2 else (b"%d again " % i * size)[:size])
                if kind == "cut":
                    file.truncate(size + r.choice((1, 4096, 1 << 20)))
                if kind == "hole":
                    file.seek(1 << 21)
                    file.write(r.randbytes(7000))
                if kind == "preallocated":
                    os.posix_fallocate(file.fileno(), 0, size + 70000)
            if kind == "clone":
                run("cp", "--reflink=always", path, path + " clone")
            if r.random() < 0.1:
                os.setxattr(path, "user.attribute", r.randbytes(r.choice((5, 300, 2000))))

    def links(self):
        """An inode with INODE_REFs in several directories, and INODE_EXTREFs; files without
        checksums."""
        for i in range(400):
            folder = self.path(f"links{i % 3}")
            os.makedirs(folder, exist_ok=True)
            os.link(self.path("part0", "d0", sorted(os.listdir(self.path("part0", "d0")))[0]),
                    os.path.join(folder, f"another name of it {i}"))
        run("chattr", "+C", self.path("links0"))
        for i in range(4):
            with open(self.path("links0", f"nodatacow {i}"), "wb") as file:
                file.write(self.random.randbytes(30000))

    def change(self):
        """Further transactions, so that older versions of blocks lie about."""
        for _ in range(3):
            for folder in ("part0", "part2"):
                for name in os.listdir(self.path(folder, "d0"))[::3]:
                    with open(self.path(folder, "d0", name), "ab") as file:
                        file.write(self.random.randbytes(3000))
            self.sync()


class Pool(Images):
    """The images of a file system, and what lies where."""

    def learn(self, checksum):
        self.checksum = checksum
        self.node = self.super()["nodesize"]
        self.fsid = self.rows("info")[0]["fsid"]
        snapshots = [str(row["subvolume"]) for row in self.rows("subvolumes")]
        self.trees = {tree: self.blocks(tree) for tree in TREES}
        self.trees["fs"] = sorted({block for tree in snapshots for block in self.blocks(tree)})
        self.data = []
        for item in self.rows("dump", "--tree", "csum"):
            if item["key"]["type"] == "EXTENT_CSUM" and not item["level"]:
                start, length = item["item"]["start"], item["item"]["length"]
                self.data += range(start, start + length, 4096)
        return self

    def copy(self, directory):
        other = Pool(self.path, kernel.copy_images(self.images, directory))
        for name in "checksum", "node", "fsid", "trees", "data":
            setattr(other, name, getattr(self, name))
        return other

    def some_blocks(self, r, most):
        for _ in range(r.randint(1, most)):
            yield r.choice(self.trees[r.choices(list(TREES), TREES.values())[0]])

    def some_data(self, r, most):
        return r.sample(self.data, min(len(self.data), most))

    def copies(self, logical):
        """Where the mirrors of a block are, without parity."""
        rows = kernel.json_rows(self.ask("map", "--json", f"{logical}+4096"))
        return [(row["device"], row["offset"]) for row in rows if row["kind"] == "copy"]

    def alter(self, place, length, change, seal=False):
        """Changes bytes: pairs of an offset and what is XORed."""
        with open(place[0], "r+b") as file:
            file.seek(place[1])
            data = bytearray(file.read(length))
            for at, mask in change:
                data[at] ^= mask
            if seal:
                hashed = fields.CHECKSUMS[CHECKSUMS.index(self.checksum)](bytes(data[32:]))
                data[:32] = hashed.ljust(32, b"\0")
            file.seek(place[1])
            file.write(data)

    def alter_all(self, logical, length, change, seal=False):
        for place in self.copies(logical):
            self.alter(place, length, change, seal)


# Each damage returns whether all files must still be readable.

def flip(r, first, end):
    return [(r.randrange(first, end), 1 << r.randrange(8))]


def flip_blocks(pool, r):
    for logical in pool.some_blocks(r, 6):
        pool.alter_all(logical, pool.node, flip(r, 0, pool.node))


def flip_data(pool, r):
    for logical in pool.some_data(r, 12):
        pool.alter_all(logical, 4096, flip(r, 0, 4096))


def damage_one_mirror(pool, r):
    image = r.choice(pool.images)
    for logical, length in [(block, pool.node) for block in pool.some_blocks(r, 8)] + \
            [(sector, 4096) for sector in pool.some_data(r, 20)]:
        places = pool.copies(logical)
        for place in places:
            if len(places) > 1 and place[0] == image:
                pool.alter(place, length, flip(r, 0, length) + flip(r, 0, length))
                break
    return True


def flip_super(pool, r):
    for image in pool.images:
        change = flip(r, 0, 2859)
        for start in r.choice(((65536,), (65536, 64 * MIB))):
            pool.alter((image, start), 4096, change)
    return True


def flip_stored_checksums(pool, r):
    """Checksums of data, in tree blocks whose own checksum is right."""
    if pool.checksum == "xxhash":
        return True
    for logical in r.choices(pool.trees["csum"], k=4):
        pool.alter_all(logical, pool.node, flip(r, pool.node - 600, pool.node), seal=True)
    return False


def break_checksums(pool, r):
    """Only the checksums of tree blocks are wrong."""
    for logical in pool.some_blocks(r, 6):
        pool.alter_all(logical, pool.node, [(at, r.randrange(1, 256)) for at in range(3)])


def break_blocks(pool, r):
    for logical in pool.some_blocks(r, 6):
        start = r.randrange(101, pool.node - 16)
        pool.alter_all(logical, pool.node, [(start + at, r.randrange(1, 256))
                                            for at in range(r.choice((2, 3, 16)))])


def make_over(*command):
    def damage(pool, r):
        for image in pool.images:
            options = [] if command[0] != "mkfs.btrfs" else \
                r.choice(([], ["-m", "single"], ["-b", "140m"], ["-n", "4096"]))
            run(*command, *options, image, check=True)
    return damage


DAMAGES = {
    "nothing": lambda pool, r: True, "bits of blocks": flip_blocks, "bits of data": flip_data,
    "one mirror": damage_one_mirror, "bits of superblocks": flip_super,
    "stored checksums": flip_stored_checksums, "checksums of blocks": break_checksums,
    "bytes of blocks": break_blocks,
    "mkfs.btrfs": make_over("mkfs.btrfs", "-q", "-f", "-K"),
    "mkfs.ext4": make_over("mkfs.ext4", "-q", "-F", "-E", "nodiscard"),
    "mkfs.ntfs": make_over("mkfs.ntfs", "-q", "-f", "-F"),
}


def is_told(result, missing, what):
    """Something that is missing is told by the status, and on stderr."""
    if missing and (result.returncode == 0 or not result.stderr):
        yield (f"{what}: status {result.returncode}, but {len(missing)} files are missing: "
               f"{sorted(missing)[:3]}")
    if result.returncode not in (0, 1, 2):
        yield f"{what}: status {result.returncode}: {result.stderr[-300:]}"


def are_right(found, right, what):
    # Nothing shows that data without checksums were overwritten; rescue counts them as unverified.
    wrong = [path for path, value in found.items()
             if right.get(path) != value and "/nodatacow " not in path]
    if wrong:
        yield f"{what}: {len(wrong)} wrong: {sorted(wrong)[:3]}"


def judge_sum(pool, right, options):
    result = pool.ask("sum", "--json", *options)
    found = {row["path"]: row["hash"] for row in kernel.json_rows(result) if "hash" in row}
    yield from are_right(found, right, "sum")
    yield from is_told(result, set(right) - set(found), "sum")


def judge_rescue(pool, right, must, directory, options):
    """`must` are the files that have to be saved."""
    saved = os.path.join(directory, "saved")
    result = pool.ask("rescue", "--json", *options)
    extracted = pool.ask("rescue", "--extract", saved, *options)
    whole, corrected, unverified = (sums_below(os.path.join(saved, name))
                                    for name in ("whole", "corrected", "unverified"))
    shutil.rmtree(saved, ignore_errors=True)
    yield from are_right(whole, right, "whole")
    yield from are_right(corrected, right, "corrected")
    lost = [path for path in must
            if right[path] not in (whole.get(path), corrected.get(path), unverified.get(path))]
    if lost:
        yield (f"rescue: {len(lost)} of {len(must)} are not saved: {sorted(lost)[:3]}: "
               f"{extracted.stderr[-200:]}")
    missing = set(right) - set(whole) - set(corrected) - set(unverified)
    yield from is_told(result, missing, "rescue --json")
    yield from is_told(extracted, missing, "rescue --extract")
    print(f"    {len(whole)} whole, {len(corrected)} corrected, {len(unverified)} unverified of "
          f"{len(right)}; the kernel reads {len(must)}", flush=True)


def judge_repair(pool, right, directory):
    target = os.path.join(directory, "fixed")
    result = pool.ask("repair", "--data", "-C", target)
    if result.returncode not in (0, 1, 2, 3):
        yield f"repair: status {result.returncode}: {result.stderr[-300:]}"
    if not os.path.isdir(target) or not os.listdir(target):
        return
    patches = [word for name in sorted(os.listdir(target))
               for word in ("--patch", os.path.join(target, name))]
    for line in judge_sum(pool, right, patches):
        yield f"after repair: {line}"
    checked = pool.ask("check", "--data", "--json", *patches)
    if result.returncode == 0 and checked.returncode:
        yield f"after repair: check: status {checked.returncode}: {checked.stdout[-300:]}"


def judge_check(pool, is_sound):
    result = pool.ask("check", "--data", "--json")
    found = [row for row in kernel.json_rows(result) if row.get("severity") in ("error", "warning")]
    if is_sound and (found or result.returncode):
        yield f"check: nothing is damaged, but status {result.returncode}: {found[:3]}"
    if result.returncode & ~13:
        yield f"check: status {result.returncode}: {result.stderr[-300:]}"
    if result.returncode == 0 and pool.ask("sum").returncode:
        yield "check: status 0, but files cannot be read"


def by_kernel(pool, right, directory):
    """The files that a mount with rescue=all lists and reads."""
    system = kernel.FileSystem(os.path.join(directory, "by-kernel"), pool.images)
    found = set()
    try:
        system.attach_read_only("degraded", "rescue=all")
        for folder, _, names in os.walk(system.mount):
            for name in names:
                path = os.path.join(folder, name)[len(system.mount):]
                try:
                    if kernel.digest(system.mount + path) == right.get(path):
                        found.add(path)
                except OSError:
                    pass
    except kernel.NotMade:
        pass
    finally:
        system.detach()
    return found


def judge(pool, right, name, is_harmless, directory):
    if name.startswith("mkfs"):
        options = ["--fsid", pool.fsid]
        yield from judge_rescue(pool, right, (), directory, options)
        yield from judge_sum(pool, right, options)
        return
    must = set(right) if is_harmless else by_kernel(pool, right, directory)
    yield from judge_sum(pool, right, [])
    yield from judge_rescue(pool, right, must, directory, [])
    yield from judge_repair(pool, right, directory)
    yield from judge_check(pool, name == "nothing")


def compare(options, case, directory):
    r = random.Random(f"{case} {options.seed}")
    made = Made(os.path.join(directory, "sound"), case, options.files, r)
    sound = Pool(options.program, made.images).learn(case[2])
    print(*case, f"{len(made.right)} files", flush=True)
    for name, number in itertools.product(options.damage or DAMAGES, range(options.each)):
        place = os.path.join(directory, "damaged")
        pool = sound.copy(place)
        print("  ", name, flush=True)
        is_harmless = DAMAGES[name](pool, random.Random(f"{case} {name} {number} {options.seed}"))
        wrong = list(judge(pool, made.right, name, is_harmless, place))
        for line in wrong:
            yield f"{name} {number}: {line}"
        if wrong:
            kernel.keep_images(options, f"{'-'.join(map(str, case))} {name} {number}", place)
        shutil.rmtree(place)


def main():
    parser = kernel.parser(__doc__, 4)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--node", action="append", type=int)
    parser.add_argument("--checksum", action="append", choices=CHECKSUMS)
    parser.add_argument("--damage", action="append", choices=DAMAGES)
    parser.add_argument("--each", type=int, default=1, help="how often each damage is done")
    parser.add_argument("--files", type=int, default=240)
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "btrfs", "mkfs.ext4", "mkfs.ntfs")
    cases = {" ".join(map(str, case)): case
             for case in itertools.product(options.profile or PROFILES,
                                           options.node or (4096, 16384),
                                           options.checksum or CHECKSUMS)}
    return kernel.compare_each(options, kernel.sample(options, cases), compare)


if __name__ == "__main__":
    sys.exit(main())
