# SPDX-License-Identifier: GPL-2.0-or-later
# mutate_image.py IMAGE SEED COUNT: changes single bytes of the items in COUNT tree blocks, chosen
# at random, and gives the blocks new CRC-32Cs, in each of their copies. The superblocks stay.
import random
import sys

from patch_image import NODE, checksum

HEADER, SUPERBLOCK = 101, 65536
choose = random.Random(int(sys.argv[2]))
with open(sys.argv[1], 'r+b') as image:
    data = image.read()
    fsid = data[SUPERBLOCK + 32:SUPERBLOCK + 48]
    blocks = {}  # the places of each, by its address
    for start in range(0, len(data), NODE):
        block = data[start:start + NODE]
        if block[32:48] == fsid and block[:4] == checksum(block[32:]):
            blocks.setdefault(block[48:56], []).append(start)
    for address in choose.sample(sorted(blocks), min(int(sys.argv[3]), len(blocks))):
        block = bytearray(data[blocks[address][0]:][:NODE])
        used = [place for place in range(HEADER, NODE) if block[place]]
        for place in choose.sample(used, min(3, len(used))):
            block[place] = choose.choice([0, 1, 255, block[place] ^ 1 << choose.randrange(8)])
        for start in blocks[address]:
            image.seek(start)
            image.write(checksum(block[32:]) + block[4:])
