# SPDX-License-Identifier: GPL-2.0-or-later
"""CRC-32C, the default checksum of btrfs, for tools that change images."""
import struct

TABLE = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)


def checksum(data):
    """The checksum as it is on disk: four bytes, little-endian."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    return struct.pack('<I', value ^ 0xFFFFFFFF)
