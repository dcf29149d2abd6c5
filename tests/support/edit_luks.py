# SPDX-License-Identifier: GPL-2.0-or-later
"""edit_luks - changes the header of a LUKS2 image: python3 edit_luks.py IMAGE STATEMENTS

The statements change `header`, the JSON text as a dictionary. Both copies of the header get the
result, with right checksums.
"""
import hashlib
import json
import struct
import sys

NUMBERS = 4096  # bytes of the block before the text

with open(sys.argv[1], "r+b") as file:
    start = file.read(NUMBERS)
    size = struct.unpack_from(">Q", start, 8)[0]
    header = json.loads(file.read(size - NUMBERS).split(b"\0")[0])
    exec(sys.argv[2])
    text = json.dumps(header, separators=(",", ":")).encode()
    assert len(text) < size - NUMBERS, "the text is too long"
    for offset in 0, size:
        file.seek(offset)
        block = bytearray(file.read(NUMBERS) + text.ljust(size - NUMBERS, b"\0"))
        block[448:512] = bytes(64)
        block[448:480] = hashlib.sha256(block).digest()
        file.seek(offset)
        file.write(block)
