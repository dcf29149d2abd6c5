# SPDX-License-Identifier: GPL-2.0-or-later
# patch_image.py IMAGE OLD NEW: replaces bytes (in hexadecimal, of one length) in all tree blocks
# that contain them, which get a new CRC-32C. The bytes must not be anywhere else in such a block.
import sys

from crc32c import checksum

NODE = 16384


def patch(path, old, new):
    with open(path, 'r+b') as image:
        data = image.read()
        place = data.find(old)
        while place >= 0:
            start = place - place % NODE
            block = data[start:start + NODE]
            if block[:4] == checksum(block[32:]):
                block = block[32:].replace(old, new)
                image.seek(start)
                image.write(checksum(block) + data[start + 4:start + 32] + block)
            place = data.find(old, start + NODE)


if __name__ == '__main__':
    patch(sys.argv[1], bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3]))
