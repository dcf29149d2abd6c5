#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Plants markers in the tree blocks of an image, and searches for them in a sanitized metadump.

    plant_markers.py check PROGRAM IMAGE [OTHER...]
    plant_markers.py sprays PROGRAM COUNT SEED IMAGE

check: every name, attribute value, link target, label, inline content, reserved or free byte of the
tree blocks becomes part of a marker. No 4 bytes of it may be in the metadump. Then the same with
damage: blocks with more items than they have, leaves on a higher level, items of another type, size
or place, inline extents that are said to be on disk, keys out of order.

sprays: markers at any place of blocks, COUNT times. Known numbers may keep up to 10 bytes of one.

Prints a line for each fault. All devices are given to the program; markers are on the first.
"""
import contextlib
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from crc32c import checksum
from metadump_items import pieces

HEADER, ITEM, POINTER, SUPER = 101, 25, 33, 65536
INODE, REF, EXTREF, XATTR, DIRS = 1, 12, 13, 24, (84, 96)
VERITY, EXTENT_DATA, CSUMS = (36, 37), 108, (120, 128)
ROOT, ROOT_REFS, STRING = 132, (144, 156), 253
SHORT = 4
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Marker:
    """An endless text of random letters."""

    def __init__(self, seed):
        dice = random.Random(seed)
        self.text = bytes(dice.choice(ALPHABET) for _ in range(4096))
        self.used = 0

    def take(self, length):
        start = self.used % 2048
        self.used += 37
        return (self.text[start:] * (1 + length // 2048))[:length]


class Block:
    """A tree block that can be changed."""

    def __init__(self, data, place, size):
        self.place = place
        self.original = data[place:place + size]
        self.bytes = bytearray(self.original)

    @property
    def count(self):
        return struct.unpack_from("<I", self.bytes, 96)[0]

    @property
    def level(self):
        return self.bytes[100]

    def items(self):
        """Slot, type, key, first byte and size of each item that is inside of the block."""
        for slot in range(0 if self.level else self.count):
            at = HEADER + ITEM * slot
            objectid, kind, offset, start, size = struct.unpack_from("<QBQII", self.bytes, at)
            if HEADER + start + size <= len(self.bytes):
                yield slot, kind, (objectid, offset), HEADER + start, size

    def put(self, start, data):
        self.bytes[start:start + len(data)] = data


def names_of(block, kind, start, size):
    """Place and length of each name in an item, and of each value."""
    head = {REF: 10, EXTREF: 18, XATTR: 30, DIRS[0]: 30, DIRS[1]: 30, ROOT_REFS[0]: 18,
            ROOT_REFS[1]: 18}.get(kind)
    end = start + size
    while head and start + head <= end:
        length = struct.unpack_from("<H", block.bytes, start + head - (3 if head == 30 else 2))[0]
        value = struct.unpack_from("<H", block.bytes, start + 25)[0] if head == 30 else 0
        if start + head + length + value > end:
            return
        yield start + head, length, value
        start += head + length + value


def plant_item(block, kind, key, start, size, marker):
    def fill(first, length):
        block.put(start + first, marker.take(length))

    for place, length, value in names_of(block, kind, start, size):
        prefix = 5 if block.bytes[place:place + 5] == b"user." else 0
        if kind == XATTR and not prefix:
            prefix = length
        if length - prefix > SHORT and key[0] != 6 and key[1] != 6:
            block.put(place + prefix, marker.take(length - prefix))
        block.put(place + length, marker.take(value))
    if kind == INODE and size == 160:
        fill(80, 32)
    elif kind == ROOT and size == 439:
        fill(80, 32)
        fill(375, 64)
    elif kind == EXTENT_DATA and block.bytes[start + 20] == 0:
        fill(21, size - 21)
    elif kind in CSUMS or kind == STRING or kind == VERITY[1]:
        fill(0, size)
    elif kind == VERITY[0] and key[1]:
        fill(16, size - 16)


def plant(block, marker):
    """All bytes of a block that no reader needs."""
    if block.level:
        end = HEADER + POINTER * block.count
        block.put(end, marker.take(len(block.bytes) - end))
        return
    lowest = len(block.bytes)
    for _, kind, key, start, size in list(block.items()):
        lowest = min(lowest, start)
        plant_item(block, kind, key, start, size, marker)
    end = HEADER + ITEM * block.count
    block.put(end, marker.take(max(lowest - end, 0)))


def more_items(block, dice):
    room = (len(block.bytes) - HEADER) // (POINTER if block.level else ITEM)
    struct.pack_into("<I", block.bytes, 96, min(block.count + dice.choice([1, 2, 50, 9999]), room))


def higher(block, dice):
    if not block.level:
        block.bytes[100] = dice.choice([1, 2, 7])


def change_entry(block, dice, offset, form, change):
    items = list(block.items())
    if items:
        at = HEADER + ITEM * dice.choice(items)[0] + offset
        value = struct.unpack_from(form, block.bytes, at)[0]
        struct.pack_into(form, block.bytes, at, change(value))


def other_size(block, dice):
    change_entry(block, dice, 21, "<I", lambda size: size ^ 1 << dice.randrange(14))


def other_place(block, dice):
    change_entry(block, dice, 17, "<I", lambda place: place ^ 1 << dice.randrange(14))


def other_type(block, dice):
    change_entry(block, dice, 8, "<B", lambda kind: dice.choice(
        [kind ^ 1 << dice.randrange(8), 1, 12, 84, 108, 132, 168, 228]))


def other_key(block, dice):
    change_entry(block, dice, 0, "<Q", lambda number: number ^ 1 << dice.randrange(64))


def regular_extents(block, dice):
    for _, kind, _, start, size in block.items():
        if kind == EXTENT_DATA and size >= 21:
            block.bytes[start + 20] = dice.choice([1, 2, 3, 77])


DAMAGE = (None, more_items, higher, other_size, other_place, other_type, other_key, regular_extents)


class Image:
    """An image whose blocks are changed in a copy."""

    def __init__(self, program, images):
        self.program, self.images, self.superblock = program, images, b""
        with open(images[0], "rb") as file:
            self.data = file.read()
        fsid = self.data[SUPER + 32:SUPER + 48]
        self.nodesize = struct.unpack_from("<I", self.data, SUPER + 148)[0]
        self.places = [match.start() - 32 for match in re.finditer(re.escape(fsid), self.data)
                       if (match.start() - 32) % 4096 == 0 and match.start() - 32 != SUPER]
        self.places = [place for place in self.places if self.data[place:place + 4] == checksum(
            self.data[place + 32:place + self.nodesize])
            and place + self.nodesize <= len(self.data)]

    def blocks(self):
        return [Block(self.data, place, self.nodesize) for place in self.places]

    @contextlib.contextmanager
    def changed(self, blocks, marker):
        """The path of a copy with the changed blocks, and with markers in the superblock."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "image")
            subprocess.run(["cp", "--sparse=always", self.images[0], path], check=True)
            with open(path, "r+b") as file:
                superblock = bytearray(self.data[SUPER:SUPER + 4096])
                if marker:
                    used = struct.unpack_from("<I", superblock, 160)[0]
                    superblock[299:555] = marker.take(200) + bytes(56)
                    superblock[620:811] = marker.take(191)
                    superblock[811 + used:2859] = marker.take(2048 - used)
                    superblock[3531:4096] = marker.take(565)
                    file.seek(SUPER)
                    file.write(checksum(superblock[32:]) + superblock[4:])
                    self.superblock = superblock
                for block in blocks:
                    file.seek(block.place)
                    file.write(checksum(block.bytes[32:]) + block.bytes[4:])
            yield path

    def dump(self, changed):
        """The sanitized metadump of a changed copy: bytes by address. None: there is none."""
        dump = changed + ".bti"
        result = subprocess.run(
            [self.program, "metadump", "--sanitize", "-q", "-f", dump, changed, *self.images[1:]],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
        if result.returncode not in (0, 1, 2, 3):
            print(f"status {result.returncode}: {result.stderr[-300:]}")
        if not os.path.exists(dump):
            return None
        found_pieces = dict(pieces(dump))
        os.unlink(dump)
        return found_pieces


def runs(data, length):
    """Where so many letters are in a row."""
    return (match.start() for match in re.finditer(b"(?=[A-Z]{%d})" % length, data))


def found(dump, texts, length):
    """Pieces of texts, of this length, that are anywhere in the metadump."""
    wanted = {data[i:i + length] for data in dump.values() for i in runs(data, length)}
    return [piece for piece in wanted if any(piece in text for text in texts)]


def kept(dump, blocks, text):
    """Pieces of a text of 4 bytes that are where they were in the image. Elsewhere, replaced names
    have the same ones by chance."""
    planted = {}  # all mirrors of a block
    for block in blocks:
        planted.setdefault(struct.unpack_from("<Q", block.bytes, 48)[0], []).append(block)
    for address, data in dump.items():
        for i in runs(data, SHORT):
            start = max((place for place in planted if place <= address + i), default=0)
            at, piece = address + i - start, data[i:i + SHORT]
            for block in planted.get(start, []):
                before, now = (data[at:at + SHORT] for data in (block.original, block.bytes))
                if before != piece == now and piece in text:
                    yield f"{address + i}: {piece}"


def faults_of(image, changed, blocks, marker, damage):
    """What a new metadump of a changed copy reveals; damage may prevent the metadump."""
    dump = image.dump(changed)
    if dump is None and not damage:
        return {"no metadump"}
    dump = dump or {}
    faults = set(kept(dump, blocks, marker.text))
    faults |= {str(piece) for piece in found(dump, [marker.text], 7)}
    faults |= {f"superblock: {piece}" for piece in found(
        {0: dump.get(SUPER, b"")}, [bytes(image.superblock)], SHORT)}
    return faults


def check(program, *images):
    image = Image(program, list(images))
    if not image.places:
        print("no tree blocks")
    for number, damage in enumerate(DAMAGE):
        dice, marker = random.Random(number), Marker(number)
        blocks = image.blocks()
        for block in blocks:
            plant(block, marker)
            if damage and dice.random() < 0.5:
                damage(block, dice)
        # Replaced names are random, and may have 4 bytes of a marker by chance; two metadumps do
        # not have the same ones.
        with image.changed(blocks, marker) as changed:
            faults = set.intersection(
                *(faults_of(image, changed, blocks, marker, damage) for _ in range(2)))
        if faults:
            print(f"{damage.__name__ if damage else 'healthy'}: {sorted(faults)[:5]}")


def sprays(program, count, seed, *images):
    image = Image(program, list(images))
    for number in range(int(seed), int(seed) + int(count)):
        dice, marker, texts = random.Random(number), Marker(number), []
        blocks = image.blocks()
        for block in blocks:
            for _ in range(dice.randrange(3)):
                text = marker.take(dice.randrange(11, 200))
                block.put(dice.randrange(HEADER, len(block.bytes) - 200), text)
                texts.append(text)
        with image.changed(blocks, None) as changed:
            pieces_found = found(image.dump(changed) or {}, texts, 11)
        if pieces_found:
            print(f"seed {number}: {pieces_found[:5]}")


if __name__ == "__main__":
    {"check": check, "sprays": sprays}[sys.argv[1]](*sys.argv[2:])
