# SPDX-License-Identifier: GPL-2.0-or-later
# erase_trees.py TREES IMAGE...: overwrites all blocks of trees (ids, separated by commas) of the
# file system with zeros, of whatever generation and wherever they are. The first image has a
# superblock.
import os
import struct
import sys


def erase(path, trees, fsid, nodesize):
    with open(path, 'r+b', buffering=0) as image:
        end = os.fstat(image.fileno()).st_size
        place = 0
        while place < end:
            try:
                place = os.lseek(image.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            place -= place % 4096
            header = os.pread(image.fileno(), 101, place)
            if len(header) == 101 and header[32:48] == fsid and header[64:72] != b'_BHRfS_M' and \
                    struct.unpack_from('<Q', header, 88)[0] in trees:
                os.pwrite(image.fileno(), bytes(nodesize), place)
            place += 4096


with open(sys.argv[2], 'rb') as first:
    superblock = os.pread(first.fileno(), 4096, 1 << 16)
wanted = [int(word) for word in sys.argv[1].split(',')]
for name in sys.argv[2:]:
    erase(name, wanted, superblock[32:48], struct.unpack_from('<I', superblock, 148)[0])
