# SPDX-License-Identifier: GPL-2.0-or-later
"""
Reads metadumps of btrfs-image.

    metadump_items.py compare A B       differences of two metadumps: which bytes of which blocks
    metadump_items.py find DUMP WORDS   lines of the file WORDS that occur in the decompressed dump

A difference is printed as a line: "ADDRESS only in A", "ADDRESS checksum" if only the checksums of
a block differ, "ADDRESS item TYPE" for each differing item, or "ADDRESS header".
"""
import struct
import sys
import zlib

MAGIC, BLOCK, SUPERBLOCK = 0xBD5C25E27295668B, 1024, 65536


def pieces(path):
    """Yields the address and the bytes of each piece."""
    with open(path, "rb") as file:
        dump = file.read()
    offset = 0
    while offset < len(dump):
        magic, own, count, packed = struct.unpack_from("<QQIB", dump, offset)
        assert (magic, own) == (MAGIC, offset), f"no cluster at {offset}"
        at = offset + BLOCK
        for i in range(count):
            address, stored = struct.unpack_from("<QI", dump, offset + 21 + 12 * i)
            data = dump[at : at + stored]
            yield address, zlib.decompress(data) if packed else data
            at += stored
        offset = (at + BLOCK - 1) // BLOCK * BLOCK


def blocks_of(path):
    """The blocks by address, and the node size."""
    found = {}
    all_pieces = list(pieces(path))
    superblock = dict(all_pieces)[SUPERBLOCK]
    size = struct.unpack_from("<I", superblock, 148)[0]
    for address, data in all_pieces:
        step = 4096 if address == SUPERBLOCK else size
        for at in range(0, len(data), step):
            assert address + at not in found, f"{address + at} is there twice"
            found[address + at] = data[at : at + step]
    return found


def items_of(block):
    """The items of a leaf by slot: type and bytes."""
    count, level = struct.unpack_from("<IB", block, 96)
    if level:
        return None
    result = []
    for slot in range(count):
        kind, start, size = struct.unpack_from("<8xB8xII", block, 101 + 25 * slot)
        result.append((kind, block[101 + start : 101 + start + size]))
    return result


def differences(address, a, b):
    if a[32:] == b[32:]:
        return [f"{address} checksum"]
    if address == SUPERBLOCK:
        return [f"{address} superblock"]
    a_items, b_items = items_of(a), items_of(b)
    if a_items is None or b_items is None or len(a_items) != len(b_items):
        return [f"{address} header"]
    found = [f"{address} item {x[0]}" for x, y in zip(a_items, b_items) if x != y]
    return found or [f"{address} header"]


def compare_lines(first, second):
    a, b = blocks_of(first), blocks_of(second)
    for address in sorted(set(a) | set(b)):
        if address not in b:
            yield f"{address} only in A"
        elif address not in a:
            yield f"{address} only in B"
        elif a[address] != b[address]:
            yield from differences(address, a[address], b[address])


def compare(first, second):
    for line in compare_lines(first, second):
        print(line)


def find(dump, words):
    everything = b"\n".join(data for _, data in pieces(dump))
    with open(words, "rb") as file:
        for word in file.read().split(b"\n"):
            if word and word in everything:
                print(word.decode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    {"compare": compare, "find": find}[sys.argv[1]](*sys.argv[2:])
