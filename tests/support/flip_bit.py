# SPDX-License-Identifier: GPL-2.0-or-later
# flip_bit.py IMAGE BYTE BIT OFFSET...: flips a bit of a tree block, whose copies are at these
# offsets of the image, and gives it a new CRC-32C.
import struct
import sys

from crc32c import checksum


def flip(path, offset, byte, bit):
    with open(path, 'r+b') as image:
        image.seek(65536 + 148)
        nodesize = struct.unpack('<I', image.read(4))[0]
        image.seek(offset)
        block = bytearray(image.read(nodesize))
        block[byte] ^= 1 << bit
        image.seek(offset)
        image.write(checksum(block[32:]) + bytes(28) + block[32:])


for argument in sys.argv[4:]:
    flip(sys.argv[1], int(argument), int(sys.argv[2], 0), int(sys.argv[3]))
