#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the SHA-256 of the pixels of PNG files with 8 bits of red, green and blue.

Usage: png_pixels.py FILE...
"""
import hashlib
import struct
import sys
import zlib


def chunks(data):
    """The chunks of a PNG, as pairs of type and contents."""
    at = 8
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at:at + 8])
        end = at + 8 + length
        assert data[end:end + 4] == struct.pack('>I', zlib.crc32(data[at + 4:end])), kind
        yield kind, data[at + 8:end]
        at = end + 4


def paeth(left, above, corner):
    """The neighbour that a linear guess comes closest to."""
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def unfilter(kind, row, before):
    """Undoes the filter of a row; see section 9 of the PNG specification."""
    for i, value in enumerate(row):
        left, above = (row[i - 3] if i > 2 else 0), before[i]
        corner = before[i - 3] if i > 2 else 0
        guess = (0, left, above, (left + above) // 2, paeth(left, above, corner))[kind]
        row[i] = (value + guess) & 255
    return row


def pixels(name):
    """Width, height, and all rows of a file."""
    with open(name, 'rb') as file:
        parts = list(chunks(file.read()))
    width, height, depth, color = struct.unpack('>IIBB', parts[0][1][:10])
    assert (depth, color) == (8, 2), f'{name}: not RGB of 8 bits'
    packed = zlib.decompress(b''.join(data for kind, data in parts if kind == b'IDAT'))
    size = 3 * width
    rows = [bytearray(size)]
    for at in range(0, height * (size + 1), size + 1):
        row = bytearray(packed[at + 1:at + 1 + size])
        rows.append(unfilter(packed[at], row, rows[-1]) if packed[at] else row)
    return width, height, b''.join(rows[1:])


for png in sys.argv[1:]:
    w, h, rgb = pixels(png)
    print(hashlib.sha256(rgb).hexdigest(), f'{w}x{h}')
