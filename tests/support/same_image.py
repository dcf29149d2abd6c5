#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""same_image.py IMAGE IMAGE: whether two files have the same bytes

Reads only where one of them has data: cmp(1) reads holes, too, which takes long for large images.
"""
import os
import sys

PIECE = 1 << 20


def data_pieces(file):
    """The numbers of the pieces that may have other bytes than zeros."""
    place, size = 0, os.fstat(file).st_size
    while place < size:
        try:
            place = os.lseek(file, place, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(file, place, os.SEEK_HOLE)
        yield from range(place // PIECE, (end - 1) // PIECE + 1)
        place = end


def main():
    files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
    if len({os.fstat(file).st_size for file in files}) != 1:
        return 'the sizes differ'
    for piece in sorted({piece for file in files for piece in data_pieces(file)}):
        if len({os.pread(file, PIECE, piece * PIECE) for file in files}) != 1:
            return f'the bytes differ between {piece * PIECE} and {(piece + 1) * PIECE}'
    return None


if __name__ == '__main__':
    sys.exit(main())
