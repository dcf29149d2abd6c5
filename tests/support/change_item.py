# SPDX-License-Identifier: GPL-2.0-or-later
# change_item.py IMAGE CHANGE [and CHANGE]...: changes items or superblocks, and gives them new
# checksums (CRC-32C). Numbers may be negative. A CHANGE is one of:
#
#   TREE OBJECTID TYPE OFFSET ACTION...       of an item in every leaf of a tree that has it, in all
#                                             copies; OFFSET "-": the first item of that object and
#                                             type
#   at PLACE TREE OBJECTID TYPE OFFSET ACTION...
#                                             only in the leaf at a place of the image
#   super PLACE SIZE NUMBER                   of all copies of the superblock: writes a number
#   copy COPY PLACE SIZE NUMBER               of one copy, counted from 0
#   cache OFFSET PAGES set|add PLACE SIZE NUMBER
#                                             of a space cache, a file of so many pages of 4 KiB at
#                                             this offset of the image
#   flip PLACE BIT OFFSET...                  flips a bit of the tree blocks at these offsets
#
# and an ACTION is one of:
#
#   delete                          takes the item out
#   key OBJECTID TYPE OFFSET        gives it another key
#   set PLACE SIZE NUMBER           writes a number of SIZE bytes into it
#   add PLACE SIZE NUMBER           adds to a number of SIZE bytes in it
#   fill PLACE LEFT                 appends letters until the leaf has LEFT bytes, and adds their
#                                   number to the two bytes at PLACE
#   block PLACE SIZE NUMBER         writes a number of SIZE bytes into the tree block
#
# Without arguments they are read from lines, and each is answered by one: "done", or why not.
import os
import struct
import sys

from crc32c import checksum

HEADER, ITEM = 101, 25
SUPERBLOCKS = (1 << 16, 1 << 26, 1 << 38)
WRAP = (1 << 64) - 1
LOG = WRAP - 5


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
        final = HEADER + (count - 2) * ITEM
        last = data
        if slot < count - 1:
            last = HEADER + struct.unpack_from('<I', block, final + 17)[0]
        block[last + size:data + size] = block[last:data]
        for later in range(slot, count - 1):
            place = HEADER + later * ITEM + 17
            put(block, place, 4, struct.unpack_from('<I', block, place)[0] + size)
    elif action[0] == 'fill':
        last = HEADER + (struct.unpack_from('<I', block, 96)[0] - 1) * ITEM
        free = HEADER + struct.unpack_from('<I', block, last + 17)[0]
        more = free - (last + ITEM) - int(action[2])
        end = data + size
        block[free - more:end] = block[free:end] + b'f' * more
        put(block, start + 21, 4, size + more)
        for later in range(start, last + 1, ITEM):
            put(block, later + 17, 4, struct.unpack_from('<I', block, later + 17)[0] - more)
        place = data - more + int(action[1])
        put(block, place, 2, int.from_bytes(block[place:place + 2], 'little') + more)
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
            if len(header) < HEADER or header[32:48] != fsid or header[100]:
                continue
            if struct.unpack_from('<Q', header, 88)[0] == tree:
                yield start, bytearray(os.pread(image.fileno(), nodesize, start))
        place = hole


def write(image, start, block):
    os.pwrite(image.fileno(), checksum(block[32:]) + bytes(28) + block[32:], start)


def change_super(image, copies, place, size, value):
    changed = 0
    for copy in copies:
        start = SUPERBLOCKS[copy]
        block = bytearray(os.pread(image.fileno(), 4096, start))
        if block[64:72] == b'_BHRfS_M':
            put(block, int(place), int(size), int(value))
            write(image, start, block)
            changed += 1
    return changed


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


def flip(image, place, bit, *starts):
    nodesize = struct.unpack('<I', os.pread(image.fileno(), 4, SUPERBLOCKS[0] + 148))[0]
    for start in map(int, starts):
        block = bytearray(os.pread(image.fileno(), nodesize, start))
        block[int(place, 0)] ^= 1 << int(bit)
        write(image, start, block)
    return len(starts)


def change_leaves(image, only, arguments):
    superblock = os.pread(image.fileno(), 4096, SUPERBLOCKS[0])
    fsid = superblock[571:587] if superblock[189] & 4 else superblock[32:48]
    offset = None if arguments[3] == '-' else number(arguments[3])
    wanted = (number(arguments[1]), int(arguments[2]), offset)
    latest = struct.unpack_from('<Q', superblock, 72)[0]
    changed = 0
    nodesize, tree = struct.unpack_from('<I', superblock, 148)[0], number(arguments[0])
    for start, block in leaves(image, fsid, nodesize, tree):
        slot = find(block, wanted)
        if slot is None or only not in (None, start):
            continue
        if struct.unpack_from('<Q', block, 80)[0] > latest + (tree == LOG):
            continue
        change(block, slot, arguments[4:])
        write(image, start, block)
        changed += 1
    return changed


def apply(image, arguments):
    if arguments[0] == 'super':
        return change_super(image, range(3), *arguments[1:])
    if arguments[0] == 'copy':
        return change_super(image, [int(arguments[1])], *arguments[2:])
    if arguments[0] == 'cache':
        return change_cache(image, arguments[1:])
    if arguments[0] == 'flip':
        return flip(image, *arguments[1:])
    if arguments[0] == 'at':
        return change_leaves(image, int(arguments[1]), arguments[2:])
    return change_leaves(image, None, arguments)


def main(path, arguments):
    with open(path, 'r+b', buffering=0) as image:
        while arguments:
            end = arguments.index('and') if 'and' in arguments else len(arguments)
            if not apply(image, arguments[:end]):
                return False
            arguments = arguments[end + 1:]
    return True


def serve():
    for line in sys.stdin:
        words = line.split()
        print('done' if main(words[0], words[1:]) else 'no such item', flush=True)


if __name__ != '__main__':
    pass
elif len(sys.argv) == 1:
    serve()
elif not main(sys.argv[1], sys.argv[2:]):
    sys.exit('no such item')
