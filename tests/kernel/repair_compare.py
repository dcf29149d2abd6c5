#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""repair_compare - `btrfs check --repair`, `btrfs rescue` and `repair` on the same damage

usage: tests/kernel/repair_compare.py [--program PROGRAM] [--seed S] [--directory FOLDER]

Makes a file system with DUP metadata and data, and damages a copy of it in each of the ways of
DAMAGES. Each tool works on a copy of its own. Then a kernel that is a process (guest.py) mounts the
result for writing. Prints a table in Markdown, as in docs/repair.md: whether it can be mounted, how
many files are lost or differ (contents or attributes), and whether `btrfs check` is content.
"""
import json
import os
import random
import struct
import sys
import tempfile

import guest
import kernel
import repair
from kernel import run

SIZE = 300 << 20


class Damaged(repair.Damage):
    """Images with DUP, and the damages of the table."""

    def of_tree(self, tree, kind):
        """The first item of a kind in a tree, of a leaf with several items."""
        return next(item for item in self.items if item["tree"] == tree
                    and item["key"]["type"] == kind and item["key"]["objectid"] > 256)

    def lose(self, logical):
        for path, offset in self.places(logical):
            self.change(path, offset, bytes(self.node))

    def set_item(self, item, function):
        places = self.places(item["logical"])
        block = self.read(places)
        data, size = struct.unpack_from("<II", block, 101 + 25 * item["slot"] + 17)
        function(memoryview(block)[101 + data:101 + data + size])
        self.write(places, block)

    def first_superblock(self):
        self.change(self.images[0], 65536, bytes(4096))

    def both_superblocks_used(self):
        self.set_super(120, 8, lambda old: old + (1 << 20))

    def one_copy(self):
        path, offset = self.places(self.of_tree(5, "INODE_ITEM")["logical"])[0]
        self.change(path, offset, bytes(self.node))

    def flip_on_disk(self):
        places = self.places(self.of_tree(5, "INODE_ITEM")["logical"])
        block = self.read(places)
        block[3000] ^= 16
        for path, offset in places:
            self.change(path, offset, block)

    def flip_in_memory(self):
        item = self.of_tree(5, "DIR_INDEX")
        places = self.places(item["logical"])
        block = self.read(places)
        block[101 + 25 * item["slot"] + 9 + 4] ^= 1 # key.offset
        self.write(places, block)

    def link_count_wrong(self):
        self.set_item(self.of_tree(5, "INODE_ITEM"),
                      lambda data: struct.pack_into("<I", data, 40, 7))

    def directory_size_wrong(self):
        item = next(i for i in self.items if i["tree"] == 5 and i["key"]["type"] == "INODE_ITEM"
                    and i["key"]["objectid"] > 256 and i["item"]["mode"] >> 12 == 4)
        self.set_item(item, lambda data: struct.pack_into("<Q", data, 16, 12345))

    def free_space_wrong(self):
        item = [i for i in self.items if i["key"]["type"] == "FREE_SPACE_INFO"][-1]
        self.set_item(item, lambda data: struct.pack_into("<I", data, 0, 77))

    def lose_free_space(self):
        self.lose(next(i for i in self.items if i["key"]["type"] == "FREE_SPACE_INFO")["logical"])

    def lose_uuids(self):
        self.lose(next(i for i in self.items if i["key"]["type"] == "UUID_KEY_SUBVOL")["logical"])

    def lose_log(self):
        with open(self.images[0], "rb") as file:
            file.seek(65536 + 96)
            log, = struct.unpack("<Q", file.read(8))
        self.lose(log)

    def one_copy_of_data(self):
        self.data()

    def lose_leaf(self):
        leaves = sorted({i["logical"] for i in self.items if i["tree"] == 5})
        self.lose(leaves[len(leaves) // 2])

    def lose_root(self, tree):
        top = max((row for row in self.rows("dump") if row["tree"] == tree),
                  key=lambda row: row["level"])
        assert top["level"] == 1
        self.lose(top["logical"])

    def lose_root_of_files(self):
        self.lose_root(5)

    def lose_root_of_roots(self):
        self.lose_root(1)

    def lose_root_of_extents(self):
        self.lose_root(2)


DAMAGES = [
    ("the first superblock is lost", Damaged.first_superblock, ["super-recover", "-y"], []),
    ("`bytes_used` of all superblocks is wrong", Damaged.both_superblocks_used, None, []),
    ("one mirror of a leaf is lost", Damaged.one_copy, None, []),
    ("one mirror of data is bad", Damaged.one_copy_of_data, None, []),
    ("a bit of both mirrors of a leaf is flipped", Damaged.flip_on_disk, None, []),
    ("a key with a flipped bit, right checksum", Damaged.flip_in_memory, None, []),
    ("wrong link count", Damaged.link_count_wrong, None, []),
    ("wrong size of a directory", Damaged.directory_size_wrong, None, []),
    ("the free space tree is wrong", Damaged.free_space_wrong, None, []),
    ("a leaf of the free space tree is lost", Damaged.lose_free_space, None, []),
    ("the uuid tree is lost", Damaged.lose_uuids, ["clear-uuid-tree"], []),
    ("the log tree is lost", Damaged.lose_log, ["zero-log"], ["loss"]),
    ("the root node of files is lost", Damaged.lose_root_of_files, None, []),
    ("the root node of the root tree is lost", Damaged.lose_root_of_roots, None, []),
    ("the root node of the extent tree is lost", Damaged.lose_root_of_extents, None, []),
    ("both mirrors of a leaf of files are lost", Damaged.lose_leaf, None, []),
]


def make(directory, r):
    """Makes the file system, and the same with a log tree; returns what its files are."""
    with kernel.FileSystem(directory) as system:
        loop = system.add_image(SIZE)
        run("mkfs.btrfs", "-q", "-f", "-n", "4096", "-m", "dup", "-d", "dup", loop, check=True)
        system.mount_loops()
        run("btrfs", "subvolume", "create", system.path("subvolume"), check=True)
        for number in range(400):
            top = system.path("subvolume" if number % 4 == 0 else f"folder{number % 7}")
            os.makedirs(top, exist_ok=True)
            with open(os.path.join(top, f"file{number}"), "wb") as file:
                file.write(r.randbytes(r.choice([100, 3000, 20000])))
        run("btrfs", "subvolume", "snapshot", system.path("subvolume"), system.path("snapshot"),
            check=True)
        system.sync()
        files = kernel.read_tree(system.mount)
        with open(system.path("folder1", "synced"), "wb") as file:
            file.write(b"log " * 100)
            os.fsync(file.fileno())
        logged = kernel.copy_images(system.images, os.path.join(directory, "logged"))
        os.unlink(system.path("folder1", "synced"))
        system.unmount()
        system.loops, loops = [], system.loops
        for loop in loops:
            run("losetup", "-d", loop)
    return system.images, logged, files


SCRIPT = """
mkdir mount answers
mount -t btrfs "$1" mount || exit 8
{python} -B -c 'if True:
    import json, os, sys
    sys.path.append("{folder}")
    import kernel
    def describe(path):
        try:
            return real(path)
        except OSError as error:
            return {{"error": str(error), "inode": 0}}
    real, kernel.describe = kernel.describe, describe
    json.dump(kernel.read_tree("mount"), open("answers/files", "w"))'
head -c 100000 /dev/urandom > mount/new && sync && rm mount/new || exit 9
btrfs scrub start -B mount > answers/scrub 2>&1
umount mount || exit 9
cat answers/files
grep -q 'no errors found' answers/scrub || echo '; a scrub finds errors'
btrfs check "$1" > answers/check 2>&1 || echo '; `btrfs check` finds errors'
"""


def is_same(before, after):
    """Whether a file is the same, but for its directory's times."""
    ignored = {"ctime", "mtime"} if before["mode"] >> 12 == 4 else set()
    return all(before[key] == after.get(key) for key in before.keys() - ignored)


def judge(image, files):
    """What became of a repaired image, in words."""
    script = SCRIPT.format(python=sys.executable, folder=os.path.dirname(repair.__file__))
    status, output = guest.run_guest(script, [image], 240)
    if status == 8:
        return "does not mount"
    if status == 9:
        return "mounts, cannot be written to"
    if status:
        return f"the kernel stops ({status})"
    end = output.rindex(b"}") + 1
    found, others = json.loads(output[:end]), output[end:].decode().replace("\n", "")
    lost = [p for p in files if p not in found or "error" in found[p]]
    differ = [p for p in files if p in found and p not in lost and not is_same(files[p], found[p])]
    if not lost and not differ:
        return "all files" + others
    return ", ".join(f"{len(paths)} {what}" for paths, what in ((lost, "lost"), (differ, "differ"))
                     if paths) + others


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "qemu-img", guest.KERNEL)
    with tempfile.TemporaryDirectory(prefix="compare.", dir=options.directory) as directory:
        r = random.Random(options.seed)
        images, logged, files = make(directory, r)
        print("| damage | `btrfs check --repair` | `btrfs rescue` | `btrfs-walk repair` |")
        print("| --- | --- | --- | --- |", flush=True)
        for name, damage, rescue, allowed in DAMAGES:
            source = logged if damage is Damaged.lose_log else images
            folder = os.path.join(directory, "case")
            system = Damaged(options.program, kernel.copy_images(source, folder), r)
            damage(system)
            cells = []
            theirs = kernel.copy_images(system.images, os.path.join(directory, "theirs"))[0]
            words = ["--init-extent-tree"] if damage is Damaged.lose_root_of_extents else []
            done = run("timeout", "120", "btrfs", "check", "--repair", "--force", *words, theirs,
                       input="y\ny\ny\n")
            cells.append("".join(f"`{word}`: " for word in words))
            cells[-1] += judge(theirs, files) if done.returncode != 124 else "does not end"
            if rescue:
                theirs = kernel.copy_images(system.images, os.path.join(directory, "theirs"))[0]
                run("timeout", "120", "btrfs", "rescue", *rescue, theirs)
                cells.append(f"`{rescue[0]}`: {judge(theirs, files)}")
            else:
                cells.append("")
            words = ["--id", "1"] if allowed else []
            overlay = os.path.join(folder, "fixed.qcow2")
            system.ask("repair", "--data", *words, "-f", overlay)
            fixed = os.path.join(folder, "fixed.img")
            if os.path.exists(overlay):
                run("qemu-img", "convert", "-O", "raw", overlay, fixed, check=True)
                cells.append(judge(fixed, files))
            else:
                cells.append(f"writes nothing: {judge(system.images[0], files)}")
            run("rm", "-rf", folder)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
