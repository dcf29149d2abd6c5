# SPDX-License-Identifier: GPL-2.0-or-later
# unfinished_change.py IMAGE CHANGE...: brings an image with CRC-32C into a state in which a change
# of btrfstune was interrupted. A CHANGE is one of:
#
#   blocks TYPE SHARE   `--csum TYPE`, last step: gives tree blocks whose address, in blocks, is a
#                       multiple of SHARE the new checksum, and sets the flag; all with SHARE 1.
#                       In a real change, `data TYPE done` comes before it
#   data TYPE STAGE     `--csum TYPE`, first steps: adds the checksums of data with the new type,
#                       and sets the flag. STAGE: `begun` some of them are in the first leaf with
#                       old ones, `adding` the first half of them is next to the old ones,
#                       `added` all are, `deleting` the last half of the old ones is deleted,
#                       `alone` all of these are, `renamed` the last new one has its final key,
#                       `done` all have
#   complete TYPE [lost]
#                       `--csum TYPE` has ended, after `data TYPE done`; an older block is left, a
#                       copy of the leaf of the root tree that names the new type. `lost`: one
#                       that names none is left, and nothing else of the root tree
#   fsid SHARE          `-u`: a new id for the superblock, and for tree blocks as above; if it is
#                       negative, only for their first mirrors, as a change stops between two
#   mixed SHARE         with a metadata_uuid: tree blocks as above have another id, which is that of
#                       the device items
#   uuid                `-m`: a new id for the superblock, whose old one becomes metadata_uuid
#   late                the superblock has an earlier generation: the last step did not reach it
#   groups COUNT TO     a conversion from a block group tree, or `to` it, has left the first block
#                       groups in the extent tree
#   flag BIT            sets a flag of the superblock
#
# TYPE is 2 (sha256) or 3 (blake2b). Tree blocks are found by the id and the checksum in them.
import functools
import hashlib
import mmap
import os
import struct
import sys

from crc32c import checksum

SUPERBLOCKS = (1 << 16, 1 << 26)
ADDED, FINAL, CSUM_ITEM, TEMPORARY = -13 & (1 << 64) - 1, -10 & (1 << 64) - 1, 128, 248
CHUNK = 228
KEY = struct.Struct('<QBQ')


# Most blocks are looked at several times, and CRC-32C is slow in Python.
known_checksum = functools.lru_cache(None)(checksum)


def sealed(body, kind):
    if kind == 0:
        return known_checksum(bytes(body))
    make = hashlib.sha256 if kind == 2 else lambda data: hashlib.blake2b(data, digest_size=32)
    return make(body).digest()


def data_pages(file):
    """Where the pages of a file are that are not in holes: an image mostly consists of holes."""
    place, size = 0, os.fstat(file).st_size
    while place < size:
        try:
            place = os.lseek(file, place, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(file, place, os.SEEK_HOLE)
        yield from range(place // 4096 * 4096, end, 4096)
        place = end


class Image:
    def __init__(self, path):
        with open(path, 'rb') as file:
            self.pages = list(data_pages(file.fileno()))
            # The changes stay in memory until `write`.
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self.before = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.super = memoryview(self.data)[1 << 16:(1 << 16) + 4096]
        self.nodesize = struct.unpack_from('<I', self.super, 148)[0]
        self.id = bytes(self.super[32:48])
        if struct.unpack_from('<Q', self.super, 188)[0] & 1 << 10: # metadata_uuid
            self.id = bytes(self.super[571:587])

    @functools.cached_property
    def blocks(self):
        """The places of all mirrors of tree blocks. Changes move none of them."""
        places = []
        for place in self.pages:
            head = self.data[place:place + 48]
            if place >= 1 << 20 and head[32:] == self.id and place not in SUPERBLOCKS and \
                    head[:4] == sealed(self.data[place + 32:place + self.nodesize], 0):
                places.append(place)
        return places

    def chosen(self, share):
        """If the share is negative, only the first mirrors."""
        seen = set()
        for place in self.blocks:
            logical = struct.unpack_from('<Q', self.data, place + 48)[0]
            if logical // self.nodesize % share == 0 and not (share < 0 and logical in seen):
                yield place
            seen.add(logical)

    def seal(self, place, kind, size=0):
        size = size or self.nodesize
        self.data[place:place + 32] = sealed(self.data[place + 32:place + size], kind).ljust(
            32, b'\0')

    def change_supers(self, change):
        for place in SUPERBLOCKS:
            if self.data[place + 64:place + 72] == b'_BHRfS_M':
                change(place)
                self.seal(place, 0, 4096)

    def set_flag(self, bit, cleared=0):
        def change(place):
            flags = struct.unpack_from('<Q', self.data, place + 56)[0] & ~cleared | 1 << bit
            struct.pack_into('<Q', self.data, place + 56, flags)
        self.change_supers(change)

    def items(self, place):
        for slot in range(struct.unpack_from('<I', self.data, place + 96)[0]):
            start = place + 101 + slot * 25
            offset, size = struct.unpack_from('<II', self.data, start + 17)
            yield KEY.unpack_from(self.data, start), bytes(
                self.data[place + 101 + offset:place + 101 + offset + size])

    def write_leaf(self, place, items):
        items = sorted(items)
        end = self.nodesize - 101
        for slot, (key, value) in enumerate(items):
            end -= len(value)
            start = place + 101 + slot * 25
            KEY.pack_into(self.data, start, *key)
            struct.pack_into('<II', self.data, start + 17, end, len(value))
            self.data[place + 101 + end:place + 101 + end + len(value)] = value
        assert 25 * len(items) <= end, 'the leaf is full'
        struct.pack_into('<I', self.data, place + 96, len(items))
        self.seal(place, 0)

    def leaves_of(self, tree):
        """All mirrors of the leaves of a tree, of the last generation only."""
        newest = {}
        for place in self.blocks:
            address, generation, owner = struct.unpack_from('<Q24xQQ', self.data, place + 48)
            if owner == tree and self.data[place + 100] == 0:
                newest.setdefault(generation, []).append(place)
        return newest[max(newest)]

    def place_of(self, logical):
        """Where the first copy of an address is, on the first device."""
        for place in self.leaves_of(3):
            for (_, kind, start), chunk in self.items(place):
                if kind == CHUNK and start <= logical < start + struct.unpack_from('<Q', chunk)[0]:
                    return struct.unpack_from('<Q', chunk, 48 + 8)[0] + logical - start
        raise ValueError(f'no chunk contains {logical}')


def begin_data(image, kind):
    """Adds the first new checksums to a tree with several leaves."""
    places = image.leaves_of(7)
    first = min(next(image.items(place))[0] for place in places)
    for place in places:
        items = list(image.items(place))
        if items[0][0] != first:
            continue
        data = image.place_of(first[2])
        sums = b''.join(sealed(image.data[data + at:data + at + 4096], kind)
                        for at in range(0, 16 * 4096, 4096))
        image.write_leaf(place, [((ADDED, *first[1:]), sums), *items])
    for place in image.blocks:
        if image.data[place + 88] == 7 and image.data[place + 100] == 1:
            KEY.pack_into(image.data, place + 101, ADDED, *first[1:])
            image.seal(place, 0)


def change_data(image, kind, stage):
    for place in image.leaves_of(7):
        old = [item for item in image.items(place) if item[0][:2] == (FINAL, CSUM_ITEM)]
        new = []
        for (_, _, logical), sums in old:
            first = image.place_of(logical)
            sectors = [image.data[at:at + 4096]
                       for at in range(first, first + len(sums) // 4 * 4096, 4096)]
            assert all(sealed(sector, 0) == sums[4 * i:4 * i + 4]
                       for i, sector in enumerate(sectors)), 'the data are somewhere else'
            new += [((ADDED, CSUM_ITEM, logical + 4096 * i),
                     b''.join(sealed(sector, kind) for sector in sectors[i:i + 100]))
                    for i in range(0, len(sectors), 100)]
        if stage == 'adding':
            del new[len(new) // 2:]
        elif stage == 'deleting':
            del old[len(old) // 2:]
        elif stage != 'added':
            old = []
        renamed = {'renamed': 1, 'done': len(new)}.get(stage, 0)
        new = new[:len(new) - renamed] + [((FINAL, *key[1:]), value)
                                          for key, value in new[len(new) - renamed:]]
        image.write_leaf(place, new + old)
    add_temporary(image, kind)


def add_temporary(image, kind):
    for place in image.leaves_of(1):
        image.write_leaf(place, [*image.items(place), ((ADDED, TEMPORARY, kind), b'')])


def remove_temporary(image):
    for place in image.leaves_of(1):
        image.write_leaf(place, [item for item in image.items(place) if item[0][1] != TEMPORARY])


def complete(image, kind, lost):
    roots = image.leaves_of(1)
    if lost:
        remove_temporary(image)
    old = bytearray(image.data[roots[0]:roots[0] + image.nodesize])
    used = {struct.unpack_from('<Q', image.data, place + 48)[0] for place in image.blocks}
    free = max(used) + image.nodesize
    generation = struct.unpack_from('<Q', old, 80)[0]
    struct.pack_into('<Q', old, 48, free)
    struct.pack_into('<Q', old, 80, generation - 1)
    remove_temporary(image)
    for place in image.blocks:
        image.seal(place, kind)
    for place in roots if lost else []:
        image.data[place:place + image.nodesize] = bytes(image.nodesize)
    place = image.place_of(free)
    image.data[place:place + image.nodesize] = old
    image.seal(place, 0)
    image.blocks.append(place)
    for place in SUPERBLOCKS:
        flags = struct.unpack_from('<Q', image.data, place + 56)[0]
        struct.pack_into('<Q', image.data, place + 56, flags & ~(1 << 39))
        struct.pack_into('<H', image.data, place + 196, kind)
        image.seal(place, kind, 4096)


def main(path, change, *arguments):
    image = Image(path)
    if change == 'blocks':
        kind, share = map(int, arguments)
        for place in image.chosen(share):
            image.seal(place, kind)
        image.set_flag(40, cleared=1 << 39)
    elif change == 'complete':
        complete(image, int(arguments[0]), arguments[1:] == ('lost',))
    elif change == 'data' and arguments[1] == 'begun':
        begin_data(image, int(arguments[0]))
        add_temporary(image, int(arguments[0]))
        image.set_flag(39)
    elif change == 'data':
        change_data(image, int(arguments[0]), arguments[1])
        image.set_flag(39)
    elif change in ('fsid', 'mixed'): # some blocks and this member of superblocks have another id
        other = bytes(byte ^ 0x55 for byte in image.id)
        member = 32 if change == 'fsid' else 283
        for place in image.chosen(int(arguments[0])):
            image.data[place + 32:place + 48] = other
            image.seal(place, 0)

        def set_id(place):
            image.data[place + member:place + member + 16] = other
        image.change_supers(set_id)
        image.set_flag(35)
    elif change == 'groups':
        place = image.leaves_of(11)[0]
        moved = sorted(image.items(place))[:int(arguments[0])]
        for place in image.leaves_of(11):
            image.write_leaf(place, [item for item in image.items(place) if item not in moved])
        for place in image.leaves_of(2):
            image.write_leaf(place, [*image.items(place), *moved])
        if arguments[1] == 'to':
            def clear_feature(place):
                image.data[place + 180] &= ~8
            image.change_supers(clear_feature)
        image.set_flag(38)
    elif change == 'uuid':
        def move_id(place):
            image.data[place + 571:place + 587] = image.id
            image.data[place + 32:place + 48] = bytes(byte ^ 0x55 for byte in image.id)
            image.data[place + 189] |= 1 << 10 - 8
        image.change_supers(move_id)
    elif change == 'late':
        def set_back(place):
            generation = struct.unpack_from('<Q', image.data, place + 72)[0]
            struct.pack_into('<Q', image.data, place + 72, generation - 1)
        image.change_supers(set_back)
    else:
        image.set_flag(int(arguments[0]))
    # A leaf may have grown into a hole of the file.
    pages = {at for place in image.blocks for at in range(place, place + image.nodesize, 4096)}
    with open(path, 'r+b') as file:
        for at in sorted(pages.union(image.pages)):
            if image.data[at:at + 4096] != image.before[at:at + 4096]:
                file.seek(at)
                file.write(image.data[at:at + 4096])


main(*sys.argv[1:])
