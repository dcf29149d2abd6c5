#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""fields - changes fields of items, repairs the checksums, and lists what `check` does not find

usage: tests/kernel/fields.py [--count N] [--seed S] [--program PROGRAM] [--reference]
                              [--type TYPE | --super | --garbage] [IMAGE...]

The images are the devices of a healthy file system, by default a fixture; they are copied first.
Each time one member of one item, of a key or of a header is changed in all copies of its block, as
the tables of items say where it lies. Members that may hold anything are left out. With --super it
is a member of the superblock, in one copy or in all; with --garbage, random bytes somewhere in a
block, or all of it. A change is found if `check` prints something else than about the healthy file
system. What is not found is listed, and is not wrong: some is for a reader to judge. An exit status
that `check` does not have, or 20 seconds, are wrong. With --reference, `btrfs check` runs on what
was not found. The checksums crc32c, sha256 and blake2 can be repaired.
"""
import collections
import hashlib
import json
import os
import random
import struct
import subprocess
import sys

import kernel
from kernel import run

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from crc32c import checksum

# Members that no check can verify, since any value is valid: TYPE/MEMBER, with * for any.
FREE = {
    # Set by users, by mounts, or by the history of a file.
    "*/atime", "*/mtime", "*/ctime", "*/otime", "*/stime", "*/rtime", "*/seconds", "*/nanoseconds",
    "INODE_ITEM/uid", "INODE_ITEM/gid",
    "INODE_ITEM/sequence", "QGROUP_LIMIT/*", "PERSISTENT_ITEM/key.offset", "XATTR_ITEM/data",
    "XATTR_ITEM/data_length", "PERSISTENT_ITEM/*", "TEMPORARY_ITEM/*",
    # Never read; mkfs.btrfs, btrfs-convert and kernels leave different values.
    "INODE_ITEM/reserved", "INODE_ITEM/block_group", "INODE_ITEM/device", "ROOT_ITEM/inode",
    "ROOT_ITEM/reserved", "ROOT_ITEM/byte_limit",
    "ROOT_ITEM/bytes_used", "CHUNK_ITEM/io_align", "CHUNK_ITEM/io_width", "CHUNK_ITEM/sub_stripes",
    "*/entries.transid", "DEV_ITEM/seek_speed", "DEV_ITEM/bandwidth", "DEV_ITEM/device_group",
    "DEV_ITEM/start_offset",
    "DEV_ITEM/io_align", "DEV_ITEM/io_width", "DEV_ITEM/sector_size", "DEV_ITEM/type",
    "DEV_ITEM/generation", "DEV_EXTENT/chunk_tree_uuid", "EXTENT_ITEM/key",
    # Set by `btrfs receive`, with values of the file system that was sent.
    "ROOT_ITEM/send_transid", "ROOT_ITEM/receive_transid", "ROOT_ITEM/parent_uuid",
    # If it differs from `generation`, an old kernel wrote the item, and all later members are
    # invalid.
    "ROOT_ITEM/generation_v2",
    "UNTYPED/*"}
# Any generation that is not later than the present one is valid, too.
EARLIER = {"INODE_ITEM/generation", "INODE_ITEM/transid", "ROOT_ITEM/last_snapshot",
           "ROOT_ITEM/change_transid", "ROOT_ITEM/origin_transid", "EXTENT_ITEM/generation"}
INLINE = "inline_references"  # of extents: their offsets and sizes vary


CHECKSUMS = {0: checksum, 2: lambda d: hashlib.sha256(d).digest(),
             3: lambda d: hashlib.blake2b(d, digest_size=32).digest()}


def members_of(members, prefix=""):
    """(name, offset, size) of the members of fixed size, including those of nested structures."""
    for m in members:
        name = prefix + m["name"] if m.get("name") else prefix
        if m.get("type") == "object" and "of" in m:
            for inner in members_of(m["of"]["members"], name + "."):
                yield inner[0], m["offset"] + inner[1], inner[2]
        elif m.get("type") == "array" and "of" in m and m["size"] == 0 and name != INLINE:
            for inner in members_of(m["of"]["members"], name + "."):
                yield inner[0], m["offset"] + inner[1], inner[2]
        elif m.get("size") and m["type"] not in ("text", "hexadecimal", "array"):
            yield name, m["offset"], m["size"]
        for choice in m.get("one_of", []):
            yield from members_of(choice["members"], prefix)


def members_of_extent(table, item):
    """The same for one extent item, whose members depend on its flags and references."""
    members, place = table["members"], 24
    block = item["key"]["type"] == "EXTENT_ITEM" and "TREE_BLOCK" in item["item"]["flags"]
    for m in members:
        if "one_of" in m and block:
            yield from members_of([m])
            place += 18
        elif m["name"] == INLINE:
            inline = m["of"]["members"]
        elif "one_of" not in m:
            yield from members_of([m])
    for reference in item["item"].get(INLINE, []):
        kinds = {c["description"]: c["members"] for m in inline for c in m.get("one_of", [])}
        here = list(members_of(inline[:1] + kinds[reference["type"]], INLINE + "."))
        for name, offset, size in here:
            yield name, place + offset, size
        place += max(offset + size for _, offset, size in here)


def is_free(kind, name):
    parts = {name, *name.split(".")}
    return any(f"{t}/{p}" in FREE for t in (kind, "*") for p in parts) or f"{kind}/*" in FREE


class Images(kernel.Program):
    """The images and the items in them."""

    def __init__(self, program, images):
        super().__init__(program, images)
        with open(images[0], "rb") as first:
            first.seek(65536)
            super_block = first.read(4096)
        self.type = struct.unpack_from("<H", super_block, 196)[0]
        self.sector, self.node = struct.unpack_from("<II", super_block, 144)
        self.paths = {row["devid"]: row["device"] for row in self.rows("devices")
                      if "device" in row}
        tables = json.loads(kernel.output(program, "--dump-tables"))
        self.tables = {item["type"]: item for item in tables["items"]}
        self.items = [row for row in self.rows("dump") if row.get("level") == 0 and "size" in row]

    def members(self, item):
        table = self.tables.get(item["key"]["type"], {"members": []})
        extent = any(m["name"] == INLINE for m in table["members"])
        return members_of_extent(table, item) if extent else members_of(table["members"])

    def places(self, logical):
        return [(self.paths[row["devid"]], row["offset"])
                for row in kernel.json_rows(self.ask("map", "--json", f"{logical}+{self.node}"))
                if row["kind"] == "copy" and row["length"] == self.node]

    def read(self, places):
        path, offset = places[0]
        with open(path, "rb") as file:
            file.seek(offset)
            return bytearray(file.read(self.node))

    def write(self, places, block):
        self.repair(block)
        for path, offset in places:
            with open(path, "r+b") as file:
                file.seek(offset)
                file.write(block)

    def repair(self, block):
        """Computes the checksum of a block."""
        block[:32] = CHECKSUMS[self.type](bytes(block[32:])).ljust(32, b"\0")


def change(r, block, offset, size):
    """Stores another value, mostly near to or far from the old one; returns old and new."""
    old = int.from_bytes(block[offset:offset + size], "little")
    top = (1 << 8 * size) - 1
    new = r.choice([old ^ 1 << r.randrange(8 * size), (old + 1) & top, (old - 1) & top, 0, top,
                    r.randrange(top + 1), (old + 4096) & top])
    if new == old:
        new = old ^ 1
    block[offset:offset + size] = new.to_bytes(size, "little")
    return old, new


def choose(r, system, kinds):
    """Chooses a member of an item: its name, its block, and its position in the block."""
    while True:
        kind = r.choice(kinds)
        item = r.choice([i for i in system.items if i["key"]["type"] == kind])
        places = system.places(item["logical"])
        if not places:
            continue
        block = system.read(places)
        header = 101 + 25 * item["slot"]
        data, size = struct.unpack_from("<II", block, header + 17)
        fields = [(f"{kind}/{n}", 101 + data + o, s) for n, o, s in system.members(item)
                  if o + s <= size and not is_free(kind, n)
                  and not (kind == "EXTENT_DATA" and o > 20
                           and block[101 + data + 20] == 0)] # the bytes of a small file
        fields += [(f"{kind}/{n}", header + o, s)
                   for n, o, s in (("key.objectid", 0, 8), ("key.type", 8, 1), ("key.offset", 9, 8),
                                   ("item.offset", 17, 4), ("item.size", 21, 4))
                   if f"{kind}/{n}" not in FREE]
        fields += [("header/" + n, o, s)
                   for n, o, s in (("bytenr", 48, 8), ("flags", 56, 7), ("generation", 80, 8),
                                   ("owner", 88, 8), ("nritems", 96, 4), ("level", 100, 1))
                   if r.random() < 0.05]
        name, offset, width = r.choice(fields)
        return name, item, places, block, offset, width


# Members of the superblock that matter: name, offset, size. Not listed are stripesize and most of
# dev_item, which are never read, and flags, cache_generation and uuid_tree_generation, for which an
# older value is valid, too.
SUPER = [("bytenr", 48, 8), ("magic", 64, 8), ("generation", 72, 8), ("root", 80, 8),
         ("chunk_root", 88, 8), ("log_root", 96, 8),
         ("total_bytes", 112, 8), ("bytes_used", 120, 8), ("root_dir_objectid", 128, 8),
         ("device_count", 136, 8), ("sectorsize", 144, 4),
         ("nodesize", 148, 4), ("leafsize", 152, 4), ("system_chunk_array_size", 160, 4),
         ("chunk_root_generation", 164, 8),
         ("compat_ro_flags", 180, 8), ("incompat_flags", 188, 8), ("csum_type", 196, 2),
         ("root_level", 198, 1),
         ("chunk_root_level", 199, 1), ("log_root_level", 200, 1), ("device.id", 201, 8),
         ("device.total_bytes", 209, 8), ("device.bytes_used", 217, 8),
         ("device.uuid", 267, 8), ("device.fsid", 283, 8), ("cache_generation", 555, 8),
         ("system_chunk.key.objectid", 811, 8), ("system_chunk.key.type", 819, 1),
         ("system_chunk.key.offset", 820, 8), ("system_chunk.length", 828, 8),
         ("system_chunk.owner", 836, 8), ("system_chunk.stripe_length", 844, 8),
         ("system_chunk.type", 852, 8), ("system_chunk.stripes", 872, 2),
         ("system_chunk.stripe.devid", 876, 8), ("system_chunk.stripe.offset", 884, 8),
         ("system_chunk.stripe.uuid", 892, 8), ("fsid", 32, 8)]


def change_super(r, system):
    """Changes superblocks; returns what was done, and [(path, offset, old bytes)]."""
    path = r.choice(system.images)
    name, offset, size = r.choice(SUPER)
    with open(path, "rb") as file:
        length = os.path.getsize(path)
        places = [p for p in (1 << 16, 1 << 26, 1 << 38) if p + 4096 <= length]
        old = []
        for place in places:
            file.seek(place)
            old.append((path, place, file.read(4096)))
    old = [o for o in old if o[2][64:72] == b"_BHRfS_M"]
    if r.random() < 0.3:
        old = [r.choice(old)]
    seed = r.random()
    for _, place, data in old:
        block = bytearray(data)
        values = change(random.Random(seed), block, offset, size)
        system.repair(block)
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(block)
    words = f"{os.path.basename(path)} {len(old)} of {len(places)} copies {name}: "
    return f"super/{name}", words + f"{values[0]} -> {values[1]}", old


def old_bytes(places, block):
    return [(path, offset, bytes(block)) for path, offset in places]


def change_garbage(r, system):
    """Fills a part of a block, or all of it, with random bytes."""
    while True:
        item = r.choice(system.items)
        places = system.places(item["logical"])
        if places:
            break
    block = system.read(places)
    old = old_bytes(places, block)
    start = r.choice([101, 0, r.randrange(len(block))])
    end = min(len(block), start + r.choice([1, 8, 64, 512, len(block)]))
    block[start:end] = r.choice([r.randbytes(end - start), bytes(end - start),
                                 b"\xff" * (end - start),
                                 bytes([r.randrange(256)]) * (end - start)])
    # The space between the table and the items is unused.
    count, level = struct.unpack_from("<IB", old[0][2], 96)
    used = 101 + count * (33 if level else 25)
    items = len(block) if level or not count else 101 + struct.unpack_from("<I", old[0][2],
                                                                           101 + 25 * count - 8)[0]
    block[used:items] = old[0][2][used:items]
    found = bytes(block[32:]) != old[0][2][32:]
    system.write(places, block)
    words = f"tree {item['tree']} block {item['logical']} bytes {start} to {end}"
    return "garbage", words + ("" if found else " (nothing changed)"), old


def change_item(r, system, kinds):
    name, item, places, block, offset, width = choose(r, system, kinds)
    saved = old_bytes(places, block)
    old, new = change(r, block, offset, width)
    while name in EARLIER and new <= old + 1:
        block[offset:offset + width] = old.to_bytes(width, "little")
        new = change(r, block, offset, width)[1]
    system.write(places, block)
    words = (f"tree {item['tree']} block {item['logical']} slot {item['slot']} "
             f"{name}: {old} -> {new}")
    return name, words, saved


def findings(system):
    result = subprocess.run(["timeout", "20", *system.words("check", "--data")],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                            text=True, errors="replace")
    lines = [line for line in result.stdout.splitlines()
             if line.split(" ")[0] in ("error", "warning", "note")]
    return result, sorted(lines)


def change_one(options, r, system, kinds):
    """Makes one change; returns its name, what was done, and the old bytes."""
    if options.super:
        return change_super(r, system)
    if options.garbage:
        return change_garbage(r, system)
    return change_item(r, system, kinds)


def undo(saved):
    for path, offset, data in saved:
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(data)


def answer_of_reference(system):
    answer = run("timeout", "20", "btrfs", "check", "--readonly", system.images[0])
    words = " ".join(answer.stdout.splitlines()[3:6])[:160]
    return f" (btrfs check: {answer.returncode} {words})"


def compare(options, images, directory):
    r = random.Random(options.seed)
    silent = collections.Counter()
    system = Images(options.program, kernel.copy_images(images, directory))
    if system.type not in CHECKSUMS:
        raise kernel.NotMade("checksums of this kind cannot be repaired")
    kinds = sorted({i["key"]["type"] for i in system.items} - {"UNTYPED"})
    kinds = [options.type] if options.type else kinds
    result, found = findings(system)
    healthy = result.returncode, found
    for _ in range(options.count):
        name, words, saved = change_one(options, r, system, kinds)
        result, found = findings(system)
        if result.returncode not in (0, 4, 8, 12):
            yield f"status {result.returncode}: {words}: {result.stdout[-2000:]}"
        elif (result.returncode, found) == healthy and "(nothing changed)" not in words:
            silent[name] += 1
            theirs = answer_of_reference(system) if options.reference else ""
            print(f"not found: {words}{theirs}", flush=True)
        undo(saved)
    print(f"{options.count} changes, {sum(silent.values())} not found: "
          f"{dict(silent.most_common())}")


def main():
    parser = kernel.parser(__doc__, 200, 50)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--type", help="change only items of this type")
    parser.add_argument("--super", action="store_true", help="change superblocks")
    parser.add_argument("--garbage", action="store_true", help="put random bytes into blocks")
    parser.add_argument("image", nargs="*")
    options = parser.parse_args()
    images = options.image or kernel.fixture("dup")
    return kernel.compare_each(options, {images[0]: images}, compare)


if __name__ == "__main__":
    sys.exit(main())
