# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: python3 block-group-tree.py IMAGE
#
# Adds the feature block-group-tree to a file system, which btrfs-progs 6.2 cannot do: moves the
# block group items from the extent tree into the one leaf of the quota tree, which becomes the
# block group tree. The image has to be small (each of these trees is one leaf), with single
# metadata, checksums crc32c, a free space tree and quotas. The kernel and "btrfs check" accept the
# result.

import re
import struct
import subprocess
import sys

EXTENT_TREE, QUOTA_TREE, BLOCK_GROUP_TREE = 2, 8, 11
ROOT_ITEM, METADATA_ITEM, BLOCK_GROUP_ITEM = 132, 169, 192
TREE_BLOCK_REF = 176
COMPAT_RO_BLOCK_GROUP_TREE = 8
HEADER = 101
ITEM = struct.Struct("<QBQII")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Leaf:
    """A leaf read from the image: header and [(key, data)]."""

    def __init__(self, image, logical, size):
        text = subprocess.run(["btrfs-map-logical", "-l", str(logical), image],
                              check=True, capture_output=True, text=True)
        self.physical = int(re.search(r"physical (\d+)", text.stdout)[1])
        self.size = size
        with open(image, "rb") as stream:
            stream.seek(self.physical)
            block = stream.read(size)
        self.header = bytearray(block[:HEADER])
        count, level = struct.unpack_from("<IB", block, 96)
        if level != 0:
            sys.exit("a tree is more than one leaf")
        self.items = []
        for i in range(count):
            *key, offset, length = ITEM.unpack_from(block, HEADER + 25 * i)
            data = block[HEADER + offset:HEADER + offset + length]
            self.items.append((tuple(key), data))

    def take(self, kind):
        taken = [item for item in self.items if item[0][1] == kind]
        self.items = [item for item in self.items if item[0][1] != kind]
        return taken

    def write(self, image):
        block = bytearray(self.size)
        self.items.sort(key=lambda item: item[0])
        struct.pack_into("<I", self.header, 96, len(self.items))
        block[:HEADER] = self.header
        end = self.size - HEADER
        for i, (key, data) in enumerate(self.items):
            end -= len(data)
            ITEM.pack_into(block, HEADER + 25 * i, *key, end, len(data))
            block[HEADER + end:HEADER + end + len(data)] = data
        struct.pack_into("<I", block, 0, crc32c(block[32:]))
        with open(image, "r+b") as stream:
            stream.seek(self.physical)
            stream.write(block)


def main():
    image = sys.argv[1]
    with open(image, "rb") as stream:
        stream.seek(65536)
        block = stream.read(4096)
    root_tree, = struct.unpack_from("<Q", block, 80)
    nodesize, = struct.unpack_from("<I", block, 148)

    roots = Leaf(image, root_tree, nodesize)
    where = {key[0]: struct.unpack_from("<Q", data, 176)[0]
             for key, data in roots.items if key[1] == ROOT_ITEM}
    extents = Leaf(image, where[EXTENT_TREE], nodesize)
    groups = Leaf(image, where[QUOTA_TREE], nodesize)

    groups.items = extents.take(BLOCK_GROUP_ITEM)
    struct.pack_into("<Q", groups.header, 88, BLOCK_GROUP_TREE)

    # The leaf belongs to another tree now.
    for i, (key, data) in enumerate(extents.items):
        if key[:2] == (where[QUOTA_TREE], METADATA_ITEM):
            data = data[:24] + struct.pack("<BQ", TREE_BLOCK_REF,
                                           BLOCK_GROUP_TREE)
            extents.items[i] = (key, data)
    roots.items = [((BLOCK_GROUP_TREE,) + key[1:] if key[0] == QUOTA_TREE
                    else key, data) for key, data in roots.items]

    for leaf in (roots, extents, groups):
        leaf.write(image)

    with open(image, "r+b") as stream:
        for offset in (65536, 67108864):
            stream.seek(offset)
            block = bytearray(stream.read(4096))
            flags, = struct.unpack_from("<Q", block, 180)
            struct.pack_into("<Q", block, 180,
                             flags | COMPAT_RO_BLOCK_GROUP_TREE)
            struct.pack_into("<I", block, 0, crc32c(block[32:]))
            stream.seek(offset)
            stream.write(block)


main()
