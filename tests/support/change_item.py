# SPDX-License-Identifier: GPL-2.0-or-later
# change_item.py IMAGE TREE OBJECTID TYPE OFFSET ACTION...: changes an item in every leaf of a tree
# that has it, in all copies, and gives the leaves new checksums (CRC-32C). Numbers may be negative.
# With "-" as OFFSET the first item of that object and type is meant. Actions:
#   delete                          takes the item out
#   key OBJECTID TYPE OFFSET        gives it another key
#   set PLACE SIZE NUMBER           writes a number of SIZE bytes into it
#   add PLACE SIZE NUMBER           adds to a number of SIZE bytes in it
#   block PLACE SIZE NUMBER         writes a number of SIZE bytes into the tree block
# change_item.py IMAGE super PLACE SIZE NUMBER: writes a number into all copies of the superblock.
# change_item.py IMAGE cache OFFSET PAGES set|add PLACE SIZE NUMBER: changes a number in a space
# cache, a file of so many pages of 4 KiB at this offset of the image, and gives the page a new
# checksum.
import os
import struct
import sys

TABLE = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)
HEADER, ITEM = 101, 25
WRAP = (1 << 64) - 1


def checksum(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    return struct.pack('<I', value ^ 0xFFFFFFFF)


def number(text):
    return int(text) & WRAP


def put(data, place, size, value):
    data[place:place + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, 'little')


def change(block, slot, action):
    start = HEADER + slot * ITEM
    offset, size = struct.unpack_from('<II', block, start + 17)
    data = HEADER + offset
    if action[0] == 'delete':
        count = struct.unpack_from('<I', block, 96)[0]
        end = HEADER + count * ITEM
        block[start:end - ITEM] = block[start + ITEM:end]
        put(block, 96, 4, count - 1)
        last = HEADER + struct.unpack_from('<I', block, HEADER + (count - 1) * ITEM - ITEM
                                           + 17)[0] if slot < count - 1 else data
        block[last + size:data + size] = block[last:data]
        for later in range(slot, count - 1):
            place = HEADER + later * ITEM + 17
            put(block, place, 4, struct.unpack_from('<I', block, place)[0] + size)
    elif action[0] == 'block':
        put(block, int(action[1]), int(action[2]), int(action[3]))
    elif action[0] == 'key':
        struct.pack_into('<QBQ', block, start, number(action[1]), int(action[2]), number(action[3]))
    else:
        place, width, value = data + int(action[1]), int(action[2]), int(action[3])
        if action[0] == 'add':
            value += int.from_bytes(block[place:place + width], 'little')
        put(block, place, width, value)


def find(block, wanted):
    for slot in range(struct.unpack_from('<I', block, 96)[0]):
        key = struct.unpack_from('<QBQ', block, HEADER + slot * ITEM)
        if key[:2] == wanted[:2] and wanted[2] in (None, key[2]):
            return slot
    return None


def leaves(image, fsid, nodesize, tree):
    place, end = 0, os.fstat(image.fileno()).st_size
    while place < end:
        try:
            place = os.lseek(image.fileno(), place, os.SEEK_DATA)
        except OSError:
            return
        hole = os.lseek(image.fileno(), place, os.SEEK_HOLE)
        for start in range(place - place % 4096, hole, 4096):
            header = os.pread(image.fileno(), HEADER, start)
            is_leaf = len(header) == HEADER and header[32:48] == fsid and header[100] == 0
            if is_leaf and struct.unpack_from('<Q', header, 88)[0] == tree:
                yield start, bytearray(os.pread(image.fileno(), nodesize, start))
        place = hole


def change_cache(image, arguments):
    start, pages, place, width, value = (int(arguments[i]) for i in (0, 1, 3, 4, 5))
    cache = bytearray(os.pread(image.fileno(), pages * 4096, start))
    if arguments[2] == 'add':
        value += int.from_bytes(cache[place:place + width], 'little')
    put(cache, place, width, value)
    page = place // 4096
    skipped = 0 if page else 4 * pages
    cache[4 * page:4 * page + 4] = checksum(cache[page * 4096 + skipped:page * 4096 + 4096])
    return os.pwrite(image.fileno(), cache, start)


def main(path, arguments):
    changed = 0
    with open(path, 'r+b', buffering=0) as image:
        superblock = os.pread(image.fileno(), 4096, 65536)
        if arguments[0] == 'cache':
            return change_cache(image, arguments[1:])
        if arguments[0] == 'super':
            for start in (1 << 16, 1 << 26, 1 << 38):
                block = bytearray(os.pread(image.fileno(), 4096, start))
                if block[64:72] == b'_BHRfS_M':
                    put(block, int(arguments[1]), int(arguments[2]), int(arguments[3]))
                    os.pwrite(image.fileno(), checksum(block[32:]) + bytes(28) + block[32:], start)
                    changed += 1
            return changed
        metadata_uuid = superblock[571:587] if superblock[189] & 4 else superblock[32:48]
        wanted = (number(arguments[1]), int(arguments[2]), None if arguments[3] == '-'
                  else number(arguments[3]))
        for start, block in leaves(image, metadata_uuid,
                                   struct.unpack_from('<I', superblock, 148)[0],
                                   number(arguments[0])):
            slot = find(block, wanted)
            if slot is None or struct.unpack_from('<Q', block,
                                                  80)[0] > struct.unpack_from('<Q', superblock,
                                                                              72)[0]:
                continue
            change(block, slot, arguments[4:])
            os.pwrite(image.fileno(), checksum(block[32:]) + bytes(28) + block[32:], start)
            changed += 1
    return changed


sys.exit(0 if main(sys.argv[1], sys.argv[2:]) else 'no such item')
