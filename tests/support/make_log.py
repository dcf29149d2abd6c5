# SPDX-License-Identifier: GPL-2.0-or-later
# make_log.py IMAGE ROOT LEAF DATA: gives an image a log tree, as after fsync: its root tree is one
# block at ROOT, the tree of the subvolume with id 5 one at LEAF, and a file has an extent at DATA.
# In the image, all three are at their logical addresses.
import struct
import sys

from crc32c import checksum

LOG = (1 << 64) - 6
SUPERBLOCKS = (1 << 16, 1 << 26, 1 << 38)


def seal(block):
    block[0:4] = checksum(block[32:])


def write_leaf(image, superblock, place, key, data):
    nodesize = struct.unpack_from('<I', superblock, 148)[0]
    generation = struct.unpack_from('<Q', superblock, 72)[0] + 1
    image.seek(struct.unpack_from('<Q', superblock, 80)[0])
    block = bytearray(image.read(101)) + bytearray(nodesize - 101)
    struct.pack_into('<QQ', block, 48, place, 1 | 1 << 56)
    struct.pack_into('<QQIB', block, 80, generation, LOG, 1, 0)
    start = nodesize - len(data)
    struct.pack_into('<QBQII', block, 101, *key, start - 101, len(data))
    block[start:] = data
    seal(block)
    image.seek(place)
    image.write(block)
    return generation


root, leaf, extent = (int(word) for word in sys.argv[2:])
with open(sys.argv[1], 'r+b') as image:
    image.seek(SUPERBLOCKS[0])
    superblock = bytearray(image.read(4096))
    generation = write_leaf(image, superblock, leaf, (257, 108, 0), struct.pack(
        '<QQBBHBQQQQ', struct.unpack_from('<Q', superblock, 72)[0] + 1, 4096, 0, 0, 0, 1, extent,
        4096, 0, 4096))
    item = bytearray(439)
    struct.pack_into('<Q', item, 160, generation)
    struct.pack_into('<Q', item, 176, leaf)
    struct.pack_into('<I', item, 216, 1)
    struct.pack_into('<Q', item, 239, generation)
    write_leaf(image, superblock, root, (LOG, 132, 5), item)
    image.seek(0, 2)
    size = image.tell()
    for place in SUPERBLOCKS:
        if place + 4096 > size:
            continue
        image.seek(place)
        superblock = bytearray(image.read(4096))
        struct.pack_into('<Q', superblock, 96, root)
        superblock[200] = 0
        seal(superblock)
        image.seek(place)
        image.write(superblock)
