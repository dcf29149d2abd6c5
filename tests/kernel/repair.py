#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""repair - damages random file systems, repairs them, and lets the kernel judge the result

usage: tests/kernel/repair.py [--count N] [--seed S] [--program PROGRAM] [--keep FOLDER]
                              [--rounds N] [--kinds N] [--way WAY] [--roll-back]

Each case is random work on a file system of one profile and checksum, with snapshots, and often
with quotas or a block group tree, with balances that are paused or convert some of the chunks, and
with devices that are added, removed, replaced and shrunk; then, N times, one kind of damage to a
copy of it, or three at once. `repair` writes overlays.
No image has changed then; `check --data` finds no error through the overlays, and a second plan is
empty. Then a kernel mounts the repaired copies for writing: first one that is a process, if
User Mode Linux is installed (guest.py), then the kernel of this machine. Each time all files and
their attributes are those of the undamaged file system, and files and a snapshot are made and
deleted. In the end a scrub and `btrfs check` find nothing.

--kinds N: always so many kinds of damage. --way WAY: always this one; several are done at once.
--roll-back: the root of the newest root tree is lost, in half of the cases after a device was added
and more transactions; if an older generation is offered, it is chosen. Its files are not known, but
all can be read, and the rest is as above.
"""
import json
import os
import random
import struct
import sys
import tempfile
import time

import fields
import guest
import history
import kernel
from change_item import change as change_item
from kernel import run

PROFILES = {"single": 1, "dup": 1, "raid1": 2, "raid10": 4, "raid5": 3, "raid6": 4}
CHECKSUMS = ["crc32c", "crc32c", "crc32c", "xxhash", "sha256", "blake2"]
SUPERBLOCKS = (1 << 16, 1 << 26)
EXTENT_TREE = 2
REPEATED = ["DIR_ITEM", "DIR_INDEX", "INODE_REF", "INODE_EXTREF", "ROOT_REF", "ROOT_BACKREF",
            "EXTENT_ITEM", "METADATA_ITEM", "TREE_BLOCK_REF", "SHARED_BLOCK_REF",
            "EXTENT_DATA_REF", "SHARED_DATA_REF", "DEV_EXTENT"]
ROOTS = (1, 3) # without their only leaf, no tree is found
CONVERTER = os.path.join(kernel.TOP, "scripts", "fixtures.d", "block-group-tree.py")


class Made(history.History):
    """A file system of one profile, and random work on it."""

    def image(self):
        return self.add_image(512 << 20)

    def make(self):
        r = self.random
        self.profile = r.choice(sorted(PROFILES))
        self.checksum = r.choice(CHECKSUMS)
        with_groups = self.checksum == "crc32c" and r.random() < 0.3
        devices = [self.image() for _ in range(PROFILES[self.profile])]
        words = ["mkfs.btrfs", "-q", "-f", "--csum", self.checksum]
        if with_groups:
            words += ["-n", "16384", "-m", "single", "-d", "single", "-R", "quota"]
        else:
            words += ["-n", r.choice(["4096", "16384", "16384", "65536"]), "-m", self.profile,
                      "-d", self.profile] + r.choice([[], ["-R", "quota"]])
        run(*words, *(devices[:1] if with_groups else devices), check=True)
        self.made = " ".join(words[3:])
        if with_groups:
            self.convert_to_groups(devices)
        self.options = r.sample(["compress=zstd", "nodatasum", "max_inline=0", "noatime",
                                 "commit=1"], r.choice([0, 0, 1, 2]))
        if not with_groups:
            self.attach()
        self.options += [] if not with_groups else ["block groups"]

    def convert_to_groups(self, devices):
        """The converter needs one device with single metadata and quotas, which it takes."""
        run(sys.executable, CONVERTER, self.images[0], check=True)
        run("losetup", "-c", devices[0])
        run("mount", devices[0], self.mount, check=True)
        if len(devices) > 1:
            run("btrfs", "device", "add", "-f", "-K", *devices[1:], self.mount, check=True)
        if self.profile != "single":
            run("btrfs", "balance", "start", "-f", f"-mconvert={self.profile}",
                f"-dconvert={self.profile}", f"-sconvert={self.profile}", self.mount, check=True)
        self.made += f" block group tree {self.profile}"

    def more_devices(self):
        """Adds a device, and commits several times with it, so that older states have one less."""
        if self.random.random() < 0.5:
            self.attempt(self.device)
            self.made += ", a device added"
        for _ in range(4):
            self.attempt(self.write)
            self.sync()

    def remove_device(self):
        number = self.random.randrange(len(self.loops))
        done = run("btrfs", "device", "remove", self.loops[number], self.mount)
        if done.returncode == 0:
            self.drop_image(number)

    def work(self, rolls_back=False):
        steps = self.usual_steps() + [self.quota, self.link, self.special, self.many]
        moves = [self.balance, self.balance, self.convert, self.convert, self.device,
                 self.remove_device, self.replace, self.shrink, self.remount]
        share = self.random.choice([0, 0.1, 0.3])
        for _ in range(self.random.choice([10, 30, 60])):
            self.attempt(self.random.choice(moves if self.random.random() < share else steps))
        self.attempt(self.snapshot)
        self.attempt(self.write)
        if rolls_back:
            self.more_devices()
        if self.random.random() < 0.8:
            run("btrfs", "balance", "cancel", self.mount) # of one that is paused
        self.detach()


class Damage(fields.Images):
    """The images of a case, and ways to damage them. A way that does not fit returns False."""

    def __init__(self, program, images, r):
        super().__init__(program, images)
        self.random, self.has_old_parity = r, False
        self.chunks = self.rows("chunks")
        self.leaves = sorted({item["logical"] for item in self.items})
        self.extent_leaves = sorted({item["logical"] for item in self.items
                                     if item["tree"] == EXTENT_TREE})
        self.deleted = ""

    def change(self, path, offset, new):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(new)

    def write(self, places, block):
        """Parity stays. CRC-32C is linear, so another block of the row that is made from it would
        have a right checksum and wrong bytes: none must be lost after this."""
        super().write(places, block)
        self.has_old_parity = self.has_parity()

    def has_parity(self):
        return any(chunk["profile"] in ("RAID5", "RAID6") for chunk in self.chunks)

    def profile(self, logical):
        """The profile of the chunk with an address."""
        return next(chunk["profile"] for chunk in self.chunks
                    if chunk["logical"] <= logical < chunk["logical"] + chunk["length"])

    def is_only_copy(self, logical):
        return self.profile(logical) in ("single", "RAID0")

    def any_place(self, logical):
        """One of the mirrors of a tree block; None if it has none that is in one piece."""
        places = [] if self.has_old_parity else self.places(logical)
        return self.random.choice(places) if places else None

    def map(self, logical, length):
        return [(row["kind"], self.paths[row["devid"]], row["offset"], row["length"])
                for row in kernel.json_rows(self.ask("map", "--json", f"{logical}+{length}"))]

    def superblock(self):
        """A copy is overwritten."""
        self.change(self.random.choice(self.images), self.random.choice(SUPERBLOCKS),
                    self.random.choice([bytes(4096), self.random.randbytes(4096)]))

    def superblock_bit(self):
        """A bit of a copy is flipped."""
        path, offset = self.random.choice(self.images), self.random.choice(SUPERBLOCKS)
        offset += self.random.randrange(32, 4096)
        with open(path, "rb") as file:
            file.seek(offset)
            old = file.read(1)[0]
        self.change(path, offset, bytes([old ^ 1 << self.random.randrange(8)]))

    def mirror(self):
        """One mirror of a tree block is overwritten."""
        leaf = self.random.choice(self.leaves)
        place = self.any_place(leaf)
        if self.is_only_copy(leaf) or not place:
            return False
        path, offset = place
        self.change(path, offset + self.random.randrange(self.node // 4096) * 4096,
                    self.random.randbytes(4096))

    def device_range(self):
        """Metadata on one device are overwritten in part."""
        leaf = self.random.choice(self.leaves)
        place = self.any_place(leaf)
        if self.is_only_copy(leaf) or not place:
            return False
        path, offset = place
        if self.profile(leaf) == "DUP":
            self.change(path, offset, self.random.randbytes(self.node))
        else:
            start = max(offset - offset % 65536, SUPERBLOCKS[0] + 4096)
            self.change(path, start, self.random.randbytes(65536))

    def root(self):
        """All copies of the root of the root tree are lost."""
        super_block = self.read([(self.images[0], SUPERBLOCKS[0])])
        for path, offset in self.places(int.from_bytes(super_block[80:88], "little")):
            self.change(path, offset, bytes(self.node))

    def bit(self):
        """The same bit is flipped in all mirrors of a tree block."""
        places = self.places(self.random.choice(self.leaves))
        if self.type or not places:
            return False
        block = self.read(places)
        block[self.random.randrange(32, self.node)] ^= 1 << self.random.randrange(8)
        for path, offset in places:
            self.change(path, offset, block)

    def tree_node(self):
        """All copies of an internal node are lost."""
        nodes = {}
        for row in self.rows("dump", statuses=(0, 1)):
            if row.get("level"):
                nodes.setdefault(row["tree"], set()).add(row["logical"])
        tree = self.random.choice(sorted(nodes)) if nodes else None
        places = self.places(self.random.choice(sorted(nodes[tree]))) if nodes else None
        if not places:
            return False
        for path, offset in places:
            self.change(path, offset, self.random.randbytes(self.node))

    def extent_leaf(self):
        """All mirrors of a leaf of the extent tree are lost."""
        leaf = self.random.choice(self.extent_leaves)
        places = [] if self.has_old_parity else self.places(leaf)
        for path, offset in places:
            self.change(path, offset, self.random.randbytes(self.node))
        return bool(places)

    def data(self):
        """A sector of one mirror of data with checksums is overwritten."""
        sums = [item for item in self.items if item["key"]["type"] == "EXTENT_CSUM"
                and not self.is_only_copy(item["key"]["offset"])]
        if not sums:
            return False
        item = self.random.choice(sums)
        copies = [row for row in self.map(item["key"]["offset"], 4096) if row[0] == "copy"]
        if not copies:
            return False
        _, path, offset, _ = self.random.choice(copies)
        self.change(path, offset, self.random.randbytes(4096))

    def parity(self):
        """A stripe of parity is overwritten."""
        if not self.has_parity():
            return False
        item = self.random.choice(self.items)
        rows = [row for row in self.map(item["logical"], self.node) if row[0] != "copy"]
        if not rows:
            return False
        _, path, offset, length = self.random.choice(rows)
        self.change(path, offset, self.random.randbytes(length))

    def set_super(self, offset, size, function):
        """Changes a number in all copies of all superblocks."""
        if self.type not in fields.CHECKSUMS:
            return False
        for path in self.images:
            for place in SUPERBLOCKS:
                with open(path, "rb") as file:
                    file.seek(place)
                    block = bytearray(file.read(4096))
                if block[64:72] != b"_BHRfS_M":
                    continue
                old = int.from_bytes(block[offset:offset + size], "little")
                block[offset:offset + size] = function(old).to_bytes(size, "little")
                self.repair(block)
                self.change(path, place, block)

    def used(self):
        """bytes_used of the superblocks is wrong."""
        return self.set_super(120, 8, lambda old: old + 4096 * self.random.randrange(1, 100))

    def total(self):
        """total_bytes of the superblocks is wrong."""
        return self.set_super(112, 8, lambda old: old - (16 << 20))

    def edit(self, kind, function):
        """Changes an item of a kind in all copies of its leaf: function(item, data) changes data,
        or returns False."""
        found = [item for item in self.items if item["key"]["type"] == kind]
        if self.type not in fields.CHECKSUMS or not found:
            return False
        item = self.random.choice(found)
        places = self.places(item["logical"])
        if not places:
            return False
        block = self.read(places)
        data, size = struct.unpack_from("<II", block, 101 + 25 * item["slot"] + 17)
        view = memoryview(block)[101 + data:101 + data + size]
        if function(item, view) is False:
            return False
        self.write(places, block)

    def free_space(self):
        """A block group has a wrong number of free extents."""
        def worsen(_, data):
            data[0] ^= 1 << self.random.randrange(3)
        return self.edit("FREE_SPACE_INFO", worsen)

    def edit_inode(self, is_fit, offset, size):
        """Changes a number in the INODE_ITEM of an inode that fits."""
        def worsen(item, data):
            old = int.from_bytes(data[offset:offset + size], "little")
            if item["key"]["objectid"] < 256 or not item["item"]["link_count"] or not is_fit(item):
                return False
            data[offset:offset + size] = (old + self.random.randrange(1, 9)).to_bytes(size,
                                                                                     "little")
        return any(self.edit("INODE_ITEM", worsen) is not False for _ in range(100))

    def link_count(self):
        """The link count of an inode is wrong."""
        return self.edit_inode(lambda item: True, 40, 4)

    def directory_size(self):
        """The size of a directory is wrong."""
        return self.edit_inode(lambda item: item["item"]["mode"] >> 12 == 4, 16, 8)

    def entry_type(self):
        """One of the two entries of a name has a wrong type."""
        def worsen(_, data):
            if data[29] not in (1, 2, 7):
                return False
            data[29] = 1 if data[29] != 1 else 2
        return any(self.edit(kind, worsen) is not False for kind in ("DIR_ITEM", "DIR_INDEX"))

    def missing_item(self):
        """An item that others repeat is deleted: an entry, a reference, or one of an extent."""
        found = {}
        for item in self.items:
            if item["key"]["type"] in REPEATED and item["slot"]: # its leaf keeps its first key
                found.setdefault(item["key"]["type"], []).append(item)
        if self.type not in fields.CHECKSUMS:
            return False
        deleted = self.random.choice(found[self.random.choice(sorted(found))])
        places = self.places(deleted["logical"])
        if not places:
            return False
        block = self.read(places)
        change_item(block, deleted["slot"], ["delete"])
        self.write(places, block)
        self.deleted = " ".join(["", str(deleted["tree"]), *map(str, deleted["key"].values())])
        self.items = [item for item in self.items if item["logical"] != deleted["logical"]]

    def header(self):
        """The generation in the header of a leaf has a flipped bit, which hides the leaf."""
        if self.type not in fields.CHECKSUMS:
            return False
        found = sorted({item["logical"] for item in self.items if item["tree"] not in ROOTS})
        leaf = self.random.choice(found)
        places = [] if self.has_old_parity else self.places(leaf)
        if not places:
            return False
        self.leaves.remove(leaf) # a second fault in this block would be too much
        block = self.read(places)
        # A lower generation could be what a lost write has left.
        generation = int.from_bytes(block[80:88], "little")
        bit = self.random.choice([bit for bit in range(63) if not generation >> bit & 1])
        block[80:88] = (generation | 1 << bit).to_bytes(8, "little")
        self.write(places, block)


ORDER = ["used", "total", "free_space", "link_count", "directory_size", "entry_type",
         "missing_item", "header", "mirror", "device_range", "bit", "tree_node", "extent_leaf",
         "data", "parity", "superblock", "superblock_bit"]
WAYS = sorted(ORDER)


def hurt(system, r, kinds, only):
    """Damages the images in so many ways; returns their names."""
    # First changes of all copies, in leaves that can be read; then of one copy. All of these need
    # the superblock.
    ways = sorted(only or r.sample(WAYS, kinds or r.choice([1, 1, 3])), key=ORDER.index)
    done = [way for way in ways if getattr(system, way)() is not False]
    if not done:
        done = ["superblock"]
        system.superblock()
    return [way + system.deleted if way == "missing_item" else way for way in done]


GUEST = """
set -e
mkdir mount answers
btrfs device scan > answers/scan 2>&1 || true # also of disks that it has not
mount -t btrfs "$1" mount
{python} -B -c 'if True:
    import json, sys
    sys.path.append("{folder}")
    import kernel
    json.dump(kernel.read_tree("mount"), open("answers/files", "w"))'
btrfs subvolume snapshot mount mount/new-snapshot > answers/words
head -c 300000 /dev/urandom > mount/new-file
sync
rm mount/new-file
btrfs subvolume delete mount/new-snapshot > answers/words
umount mount
mount -t btrfs "$1" mount
touch mount/new-file
umount mount
if dmesg | grep -E 'BTRFS (error|critical|warning).*(corrupt|csum|transid|abort)|forced readonly'
then exit 9; fi
cat answers/files
"""


def differences(files, found):
    """What differs between two answers of read_tree()."""
    for path in sorted(files.keys() | found.keys()):
        before, after = files.get(path), found.get(path)
        if before and after and before["inode"] == after["inode"] == 2:
            continue # it stands for another subvolume, and has the time of the mount
        if before != after and before and after:
            yield f"{path}: " + ", ".join(f"{key} {before.get(key)} -> {after.get(key)}"
                                          for key in before | after
                                          if before.get(key) != after.get(key))
        elif before != after:
            yield f"{path}: " + ("gone" if before else "new")


def judge_in_guest(fixed, files):
    """A kernel that is a process mounts the repaired images. Compares `files`, if given."""
    script = GUEST.format(python=sys.executable, folder=os.path.dirname(__file__))
    status, output = guest.run_guest(script, fixed, 600)
    if status:
        yield f"guest: status {status}: {output[-600:].decode(errors='replace')}"
    elif files:
        yield from (f"guest: {line}" for line in differences(files, json.loads(output)))


def judge_here(fixed, directory, healthy, compares):
    """The kernel of this machine mounts them, with a scrub."""
    with kernel.FileSystem(os.path.join(directory, "judge"), fixed) as system:
        system.add_loops()
        run("btrfs", "device", "scan", *system.loops)
        system.mount_loops()
        found = kernel.read_tree(system.mount)
        if compares:
            yield from differences(healthy.files, found)
        run("btrfs", "subvolume", "snapshot", system.mount, system.path("new-snapshot"), check=True)
        with open(system.path("new-file"), "wb") as file:
            file.write(random.randbytes(300000))
        system.sync()
        os.unlink(system.path("new-file"))
        run("btrfs", "subvolume", "delete", system.path("new-snapshot"), check=True)
        scrub = run("btrfs", "scrub", "start", "-B", system.mount)
        if "no errors found" not in scrub.stdout:
            yield f"scrub: {scrub.stdout}"
        system.unmount()
        checked = run("btrfs", "check", system.loops[0])
        for _ in range(5):
            if "Device or resource busy" in checked.stdout: # another program reads it
                time.sleep(5)
                checked = run("btrfs", "check", system.loops[0])
        if healthy.is_accepted and checked.returncode:
            yield f"btrfs check: {checked.stdout[-600:]}"


def repair(system, directory, *words):
    """Repairs; returns the overlays' contents as images, or None and the messages."""
    folder = os.path.join(directory, "fixed")
    result = system.ask("repair", "--data", "-C", folder, *words)
    if result.returncode or not os.path.isdir(folder):
        return None, result
    fixed = []
    for image in system.images:
        devid = next(devid for devid, path in system.paths.items() if path == image)
        overlay = os.path.join(folder, f"devid-{devid}.qcow2")
        fixed.append(os.path.join(folder, os.path.basename(image)))
        if os.path.exists(overlay):
            run("qemu-img", "convert", "-O", "raw", overlay, fixed[-1], check=True)
        else:
            run("cp", "--sparse=always", image, fixed[-1], check=True)
    return fixed, result


def judge(program, healthy, system, directory, rolls_back):
    """Repairs damaged images and judges the result."""
    before = [kernel.digest(image) for image in system.images]
    fixed, result = repair(system, directory, *(["--allow", "rolled-back"] if rolls_back else []))
    if [kernel.digest(image) for image in system.images] != before:
        yield "an image was changed"
    if not fixed and rolls_back:
        print("    no older generation is offered", flush=True)
        return
    if not fixed:
        found = system.ask("check", "--data")
        if found.returncode or result.returncode:
            yield f"not repaired: {result.stderr.decode()[-900:]}"
            yield found.stdout.decode(errors="replace")[-900:]
        return
    checked = kernel.Program(program, fixed).ask("check", "--data")
    if checked.returncode and healthy.is_clean:
        yield f"check: {checked.stdout.decode(errors='replace')[-900:]}"
        yield f"repair said: {result.stderr.decode(errors='replace')[-600:]}"
        return
    again = kernel.Program(program, fixed).ask("repair", "--data", "--json")
    if again.stdout:
        yield f"a second plan is not empty: {again.stdout.decode()[-600:]}"
    if guest.is_there():
        yield from judge_in_guest(fixed, None if rolls_back else healthy.files)
    try:
        yield from judge_here(fixed, directory, healthy, not rolls_back)
    except (kernel.NotMade, OSError) as error:
        yield f"the kernel of this machine: {error}"


class Healthy:
    """What is known about undamaged images."""

    def __init__(self, program, images, directory):
        with kernel.FileSystem(directory, images) as system:
            system.attach_read_only()
            self.files = kernel.read_tree(system.mount)
            system.unmount()
            self.is_accepted = not run("btrfs", "check", system.loops[0]).returncode
        self.is_clean = not kernel.Program(program, images).ask("check", "--data").returncode


def compare(options, seed, directory):
    r = random.Random(seed)
    with Made(seed, directory) as made:
        made.make()
        made.work(options.roll_back)
    healthy = Healthy(options.program, made.images, directory)
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            images = kernel.copy_images(made.images, os.path.join(folder, "damaged"))
            system = Damage(options.program, images, r)
            if options.roll_back:
                ways = ["root"]
                system.root()
            else:
                ways = hurt(system, r, options.kinds, options.way)
            print(f"{seed} {number}: {made}: {', '.join(ways)}", flush=True)
            wrong = list(judge(options.program, healthy, system, folder, options.roll_back))
            if wrong and options.keep:
                kernel.keep_images(options, f"{seed} {number}", os.path.join(folder, "damaged"))
            yield from (f"{number} {' '.join(ways)}: {line}" for line in wrong)


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="damages of each file system")
    parser.add_argument("--kinds", type=int, default=0, help="of damage at once; 0: 1 or 3")
    parser.add_argument("--way", choices=WAYS, action="append", help="only such damage")
    parser.add_argument("--roll-back", action="store_true", help="lose the newest root tree")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "qemu-img", "xfs_io")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
