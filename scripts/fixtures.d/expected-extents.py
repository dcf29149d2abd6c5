# SPDX-License-Identifier: GPL-2.0-or-later
"""
expected-extents - where the data of files is, from the tools of btrfs

usage: expected-extents.py MOUNT DEVICE...

Prints for files whose data is outside of the trees, and for a few others:

    PATH: SIZE
    OFFSET LENGTH LOGICAL STORED FLAGS DEVICE:OFFSET,...

with one such line for each extent or hole.  LOGICAL, STORED and the places of
all copies of its first byte are `-` if nothing is stored outside of the tree.
FLAGS are hole, inline, data or unwritten, and then `,encoded,` and the kind
of compression.  All numbers are bytes.
"""

import os
import re
import stat
import subprocess
import sys

MOUNT = sys.argv[1]
DEVICES = sys.argv[:1:-1]  # what has sprouted from a seed device is on the last one
KINDS = {0: "inline", 1: "data", 2: "unwritten"}


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode(errors="replace")


def read_tree(tree):
    """The file extents of a tree: inode -> [(offset, item)]."""
    text = run("btrfs", "inspect-internal", "dump-tree", "-t", str(tree), *DEVICES)
    inodes = {}
    for part in re.split(r"\n\titem \d+ ", text):
        key = re.match(r"key \((\d+) EXTENT_DATA (\d+)\)", part)
        if not key:
            continue
        kind = int(re.search(r"type (\d) ", part).group(1))
        compression = re.search(r"compression \d \((\w+)\)", part)
        item = {"kind": KINDS[kind], "compression": compression.group(1) if compression else "none"}
        if kind == 0:
            item["length"] = int(re.search(r"ram_bytes (\d+)", part).group(1))
        else:
            item["logical"], item["stored"] = map(int,
                                                  re.search(r"data disk byte (\d+) nr (\d+)",
                                                            part).groups())
            item["skip"], item["length"] = map(int,
                                               re.search(r"data offset (\d+) nr (\d+)",
                                                         part).groups())
        inodes.setdefault(int(key.group(1)), []).append((int(key.group(2)), item))
    return inodes


def with_holes(extents, size):
    """The same with one hole wherever nothing is stored; those behind the end do not count."""
    at, hole = 0, None
    end = max(size, max((offset + item["length"] for offset, item in extents), default=0))
    for offset, item in extents + [(end, None)]:
        if hole is None and at < offset:
            hole = at
        if item and item.get("logical") == 0:
            hole = offset if hole is None else hole
            at = offset + item["length"]
            continue
        if hole is not None and hole < size:
            yield hole, {"kind": "hole", "length": min(offset, size) - hole, "compression": "none"}
        hole = None
        if item:
            yield offset, item
            at = max(at, offset + item["length"])


def read_frags(path):
    """What the kernel says: [(offset, length, address, flags)]."""
    frags = []
    for line in run("filefrag", "-b4096", "-v", path).splitlines():
        match = re.match(r"\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+):"
                         r"\s*(?:\d+:)?\s*(.*)", line)
        if match:
            offset, address, length = (int(number) * 4096 for number in match.groups()[:3])
            frags.append((offset, length, address, match.group(4)))
    return frags


def hold_against(path, extents, frags):
    """Stops unless trees and kernel agree."""
    for offset, item in extents:
        if item["kind"] == "hole":
            continue
        for start, length, address, flags in frags:
            if start <= offset < start + length:
                break
        else:
            sys.exit("%s: filefrag does not know %d" % (path, offset))
        plain = item["compression"] == "none"
        assert plain != ("encoded" in flags), (path, offset, item, flags)
        assert (item["kind"] == "inline") == ("inline" in flags), (path, offset, item, flags)
        assert (item["kind"] == "unwritten") == ("unwritten" in flags), (path, offset, item, flags)
        if item["kind"] != "inline" and plain:
            assert item["logical"] + item["skip"] == address + offset - start, (path, offset, item,
                                                                                address)


def read_profiles():
    """The chunks: [(start, length, type)], and the paths of the devices by id."""
    text = run("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", *DEVICES)
    return [(int(start), int(length), kind) for start, length, kind in
            re.findall(r"CHUNK_ITEM (\d+)\).*\n\s*length (\d+) .* type (\S+)", text)]


def device_ids():
    ids = {}
    for device in DEVICES:
        text = run("btrfs", "inspect-internal", "dump-super", device)
        ids[device] = int(re.search(r"dev_item\.devid\s+(\d+)", text).group(1))
    return ids


def places(logical, chunks, ids):
    text = run("btrfs-map-logical", "-l", str(logical), "-b", "4096", DEVICES[0])
    found = re.findall(r"mirror (\d+) logical %d physical (\d+) device (\S+)" % logical, text)
    kind = next(kind for start, length, kind in chunks if start <= logical < start + length)
    if "RAID5" in kind or "RAID6" in kind:
        found = found[:1]
    return ",".join("%d:%s" % (ids[device], offset) for _, offset, device in found)


def describe(offset, item, chunks, ids):
    flags = item["kind"]
    if item["compression"] != "none":
        flags += ",encoded," + item["compression"]
    if "logical" not in item:
        return "%d %d - - %s -" % (offset, item["length"], flags)
    logical, stored = item["logical"], item["stored"]
    if item["compression"] == "none":
        logical, stored = logical + item["skip"], item["length"]
    return "%d %d %d %d %s %s" % (offset, item["length"], logical, stored, flags,
                                  places(logical, chunks, ids))


def files():
    for folder, folders, names in os.walk(MOUNT):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and re.fullmatch(r"[!-9;-~]+", path):
                yield path


def main():
    trees, ids, chunks = {}, device_ids(), read_profiles()
    inline_only = 0
    seen = set()
    for path in files():
        about = os.lstat(path)
        if (about.st_dev, about.st_ino) in seen:
            continue
        seen.add((about.st_dev, about.st_ino))
        if about.st_dev not in trees:
            root = run("btrfs", "inspect-internal", "rootid", os.path.dirname(path)).strip()
            trees[about.st_dev] = read_tree(root)
        extents = list(with_holes(trees[about.st_dev].get(about.st_ino, []), about.st_size))
        if not any("logical" in item for _, item in extents):
            inline_only += 1
            if inline_only > 16:
                continue
        hold_against(path, extents, read_frags(path))
        print("%s: %d" % (path[len(MOUNT):], about.st_size))
        for offset, item in extents:
            print(describe(offset, item, chunks, ids))


main()
