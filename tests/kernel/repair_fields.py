#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""repair_fields - changes fields with right checksums, repairs them, and compares with the original

usage: tests/kernel/repair_fields.py [--count N] [--seed S] [--program PROGRAM] [--type TYPE]
                                     [--numbers] [IMAGE...]

The images are the devices of a healthy file system, by default a fixture; they are copied first.
Each time one bit of a member of an item, of a key or of a header is flipped in all copies of its
block, which gets a right checksum; with --numbers, the member gets another value. What `repair`
then writes must be what was there before, byte by byte. It may also find nothing to do, or refuse.
Overlays of which `check` finds no error, but whose bytes differ from the original, are listed: a
reader must judge them, unless it is a tree that the next mount builds again. What is not repaired
is counted by its member.
"""
import collections
import os
import random
import sys

import fields
import kernel
from kernel import run


def flip(r, block, offset, size):
    """Flips one bit; returns the old and the new value."""
    old = int.from_bytes(block[offset:offset + size], "little")
    new = old ^ 1 << r.randrange(8 * size)
    block[offset:offset + size] = new.to_bytes(size, "little")
    return old, new


def differing(image, fixed, super_blocks=(65536, 1 << 26)):
    """Whether two images differ, except for superblocks."""
    with open(image, "rb") as first, open(fixed, "rb") as second:
        for at in range(0, os.path.getsize(image), 4096):
            if at not in super_blocks and first.read(4096) != second.read(4096):
                return True
            if at in super_blocks:
                first.seek(at + 4096)
                second.seek(at + 4096)
    return False


def repair(system, directory):
    """Repairs; returns the overlay's contents as images, or None."""
    folder = os.path.join(directory, "fixed")
    run("rm", "-rf", folder)
    system.ask("repair", "-C", folder)
    if not os.path.isdir(folder) or not os.listdir(folder):
        return None
    fixed = []
    for devid, path in sorted(system.paths.items()):
        overlay = os.path.join(folder, f"devid-{devid}.qcow2")
        fixed.append(path)
        if os.path.exists(overlay):
            fixed[-1] = overlay.replace(".qcow2", ".img")
            run("qemu-img", "convert", "-O", "raw", overlay, fixed[-1], check=True)
    return fixed


CACHES = (9, 10)  # the trees of uuids and of free space


def judge(options, system, originals, directory, tree):
    """Returns what became of a change of a tree: a word."""
    if not system.ask("check").returncode:
        return "not found"
    fixed = repair(system, directory)
    if not fixed:
        return "left"
    if not any(differing(*pair) for pair in zip(originals, fixed)):
        return "restored"
    result = kernel.Program(options.program, fixed).ask("check")
    if result.returncode:
        return "partly"
    return "invalidated" if tree in CACHES else "WRONG"


def compare(options, images, directory):
    r = random.Random(options.seed)
    counts = collections.Counter()
    left = collections.Counter()
    system = fields.Images(options.program, kernel.copy_images(images, directory))
    kinds = sorted({i["key"]["type"] for i in system.items} - {"UNTYPED"})
    for _ in range(options.count):
        name, item, places, block, offset, width = fields.choose(
            r, system, [options.type] if options.type else kinds)
        saved = fields.old_bytes(places, block)
        old, new = (fields.change if options.numbers else flip)(r, block, offset, width)
        system.write(places, block)
        result = judge(options, system, images, directory, item["tree"])
        counts[result] += 1
        left[name] += result in ("left", "partly")
        if result == "WRONG":
            yield (f"tree {item['tree']} block {item['logical']} slot {item['slot']} "
                   f"{name}: {old} -> {new}")
        fields.undo(saved)
    print(", ".join(f"{count} {word}" for word, count in counts.most_common()))
    print("left:", ", ".join(f"{name} {count}" for name, count in left.most_common(12) if count))


def main():
    parser = kernel.parser(__doc__, 200, 50)
    parser.add_argument("--type", help="change only items of this type")
    parser.add_argument("--numbers", action="store_true", help="other values, not flipped bits")
    parser.add_argument("image", nargs="*")
    options = parser.parse_args()
    kernel.need("qemu-img")
    images = options.image or kernel.fixture("dup")
    return kernel.compare_each(options, {images[0]: images}, compare)


if __name__ == "__main__":
    sys.exit(main())
