# SPDX-License-Identifier: GPL-2.0-or-later
"""CRC-32C, the default checksum of btrfs, for tools that change images."""
import struct

TABLE = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)
# A tool that makes many checksums calls libisal, if there is one, which takes 5 ms to load.
MANY_BYTES = 1 << 15


def in_python(data, value):
    global summed
    summed += len(data)
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    return value


def find_faster():
    """A function of libisal like in_python(), or that one itself."""
    import ctypes
    try:
        function = ctypes.CDLL('libisal.so.2').crc32_iscsi
    except (AttributeError, OSError):
        return in_python
    function.restype = ctypes.c_uint32
    return lambda data, value: function(bytes(data), len(data), ctypes.c_uint32(value))


summed = 0
chosen = None


def checksum(data):
    """The checksum as it is on disk: four bytes, little-endian."""
    global chosen
    if not chosen and summed + len(data) > MANY_BYTES:
        chosen = find_faster()
    return struct.pack('<I', (chosen or in_python)(data, 0xFFFFFFFF) ^ 0xFFFFFFFF)
