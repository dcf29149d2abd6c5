#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make_stream.py [VERSION] < LINES > STREAM: writes a send stream. A line is a command, then its
attributes: 'write PATH=a FILE_OFFSET=0 DATA=hello'. Names are those of src/stream/commands.def;
values are Python escapes ('\\x00'), numbers, UUIDs as 32 digits, and times as seconds. Lines that
are not commands: 'raw BYTES' as they are, 'header VERSION', 'bad LINE', a command with a wrong
checksum, and 'length N LINE', a command that claims to have N bytes."""
import pathlib
import re
import struct
import sys

TABLE = (pathlib.Path(__file__).parent / "../../src/stream/commands.def").read_text()
ATTRIBUTES = {name: (int(number), int(size)) for number, name, size in
              re.findall(r"^ATTRIBUTE\((\d+), (\w+), (\d+)\)", TABLE, re.M)}
COMMANDS = {name: int(number) for number, name in
            re.findall(r"^COMMAND\((\d+), \w+, \"(\w+)\"", TABLE, re.M)}
CRC = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ 0x82F63B78 if byte & 1 else byte >> 1
    CRC.append(byte)


def checksum(data):
    crc = 0
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def encode(version, name, text):
    number, size = ATTRIBUTES[name]
    if name.endswith("UUID"):
        data = bytes.fromhex(text)
    elif name in ("ATIME", "MTIME", "CTIME", "OTIME"):
        data = struct.pack("<QI", int(text), 0)
    elif size:
        data = int(text, 0).to_bytes(size, "little")
    else:
        data = unescape(text)
    if version >= 2 and name == "DATA":
        return struct.pack("<H", number) + data
    return struct.pack("<HH", number, len(data)) + data


def command(version, words, bad=False, length=None):
    kind = COMMANDS[words[0]] if words[0] in COMMANDS else int(words[0])
    body = b"".join(encode(version, *word.split("=", 1)) for word in words[1:])
    head = struct.pack("<IHI", len(body) if length is None else length, kind, 0)
    crc = checksum(head + body) ^ bad
    return head[:6] + struct.pack("<I", crc) + body


def header(version):
    return b"btrfs-stream\0" + struct.pack("<I", version)


def main():
    version = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    out = header(version)
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == "raw":
            out += unescape(words[1])
        elif words[0] == "header":
            version = int(words[1])
            out += header(version)
        elif words[0] == "bad":
            out += command(version, words[1:], bad=True)
        elif words[0] == "length":
            out += command(version, words[2:], length=int(words[1]))
        else:
            out += command(version, words)
    sys.stdout.buffer.write(out)


main()
