#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make_stream.py COMMAND[:ARGUMENT,...]... - writes a send stream with these commands to stdout

The checksums are right, whatever the commands say.
"""
import struct
import sys

import crc32c

UUID = bytes(range(1, 17))


def attribute(number, data):
    return struct.pack("<HH", number, len(data)) + data


def text(number, value):
    return attribute(number, value.encode())


def number(kind, value):
    return attribute(kind, struct.pack("<Q", int(value)))


COMMANDS = {
    "subvol": (1, lambda path: text(15, path) + attribute(1, UUID) + number(2, 7)),
    "mkfile": (3, lambda path: text(15, path) + number(3, 300)),
    "mkdir": (4, lambda path: text(15, path) + number(3, 300)),
    "symlink": (8, lambda path, to: text(15, path) + number(3, 300) + text(17, to)),
    "rename": (9, lambda path, to: text(15, path) + text(16, to)),
    "link": (10, lambda path, to: text(15, path) + text(17, to)),
    "unlink": (11, lambda path: text(15, path)),
    "write": (15, lambda path, at, data: text(15, path) + number(18, at) + text(19, data)),
    "clone": (16, lambda path, at, length, source, offset: number(18, at) + number(24, length) +
              text(15, path) + attribute(20, UUID) + number(21, 7) + text(22, source) +
              number(23, offset)),
    "truncate": (17, lambda path, size: text(15, path) + number(4, size)),
    "chmod": (18, lambda path, mode: text(15, path) + number(5, int(mode, 8))),
    "end": (21, lambda: b""),
}


def main():
    out = sys.stdout.buffer
    out.write(b"btrfs-stream\0" + struct.pack("<I", 1))
    for word in sys.argv[1:]:
        name, _, arguments = word.partition(":")
        kind, make = COMMANDS[name]
        payload = make(*(arguments.split(",") if arguments else []))
        head = struct.pack("<IHI", len(payload), kind, 0)
        # Neither inverted at the beginning nor at the end.
        crc = crc32c.update(0, head + payload)
        out.write(struct.pack("<IHI", len(payload), kind, crc) + payload)


if __name__ == "__main__":
    main()
