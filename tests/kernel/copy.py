#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""copy - a copy must give the same answers as the original, also by the kernel

usage: sudo tests/kernel/copy.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]
                                 [--partclone]

The histories (history.py) are copied with `copy`, some of them after tree blocks were destroyed.
Commands must print the same for the copies as for the originals; with `copy --history`, also
`roots` and `deleted`. In the copies, everything outside of the ranges in use must be holes. The
kernel must mount the copies where it mounts the originals, show the same files, and find the same
errors in a scrub. With --partclone, file systems of one device are also copied and restored by
partclone.btrfs, and the bytes in use that it lacks are printed by their kind. Needs root,
mkfs.btrfs, xfs_io and a kernel with btrfs.
"""
import collections
import os
import re
import shutil
import sys

import kernel
from history import History
from kernel import run

PIECE = 1 << 20


def answers(program, commands):
    """What the commands print, with relative names of images."""
    for command in commands:
        result = program.ask(*command)
        yield command, (result.returncode, result.stdout, result.stderr)


def in_folder(options, folder, images):
    """The program, running in a folder, so that messages have the same names of images."""
    program = kernel.Program(os.path.abspath(options.program),
                             [os.path.basename(image) for image in images])
    script, program.path = program.path, f"{folder}/run"
    with open(program.path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncd "{folder}" && exec "{script}" "$@"\n')
    os.chmod(program.path, 0o700)
    return program


def copy(program, folder, original, *words):
    """Copies, and names the copies like the originals."""
    result = program.ask("copy", "-C", folder, *words)
    if result.returncode not in (0, 1):
        raise kernel.ProgramFailed(f"copy: {result.returncode}: {result.stderr[-300:]}")
    for row in program.rows("devices", statuses=(0, 1)):
        if "device" in row:
            os.rename(f"{folder}/{row['devid']}.img", f"{folder}/{row['device']}")
    return [f"{folder}/{os.path.basename(image)}" for image in original]


def compare_ranges(program, originals, copies):
    """What is in use is the same, byte by byte; everything else is a hole."""
    files = {os.path.basename(a): (open(a, "rb"), open(b, "rb"))
             for a, b in zip(originals, copies)}
    for row in program.rows("map", "--used", statuses=(0, 1)):
        original, made = files[row["device"]]
        original.seek(row["start"])
        made.seek(row["start"])
        for at in range(0, row["length"], PIECE):
            length = min(PIECE, row["length"] - at)
            theirs, ours = original.read(length), made.read(length)
            if ours != (theirs if row["data"] else bytes(length)) and row["data"]:
                yield f"{row['device']}: differs at {row['start'] + at} ({row['kind']})"
                break
    for original, made in files.values():
        original.close()
        made.close()


def by_kernel(folder, images):
    """The files on a read-only mount, and the errors that a scrub finds; None: it does not
    mount."""
    system = kernel.FileSystem(folder, images)
    try:
        system.attach_read_only()
    except kernel.NotMade:
        system.detach()
        return None
    listing = kernel.output("sh", "-c", f"cd {system.mount} && find . -xdev -type f -print0 | "
                                        "sort -z | xargs -0r sha256sum")
    run("btrfs", "scrub", "start", "-B", "-r", system.mount)
    status = run("btrfs", "scrub", "status", "-R", system.mount).stdout
    system.detach()
    return listing, dict(re.findall(r"(\w+_errors): (\d+)", status))


def destroy_blocks(history, program):
    """Overwrites some tree blocks, in one mirror or all of them."""
    dump = program.text("dump", "--tree", "extent") + program.text("dump", "--tree", "5")
    blocks = sorted(set(re.findall(r"^(?:leaf|node) (\d+) ", dump, re.M)))
    for block in history.random.sample(blocks, min(len(blocks), 2)):
        places = [row for row in program.rows("map", block, statuses=(0, 1))
                  if row.get("device") and row["kind"] == "copy"]
        for row in places[:history.random.choice([1, 9])]:
            with open(os.path.join(history.directory, row["device"]), "r+b") as image:
                image.seek(row["offset"])
                image.write(os.urandom(4096))


def compare_partclone(history, program, directory):
    """Prints the bytes in use that a restored image of partclone lacks, by their kind."""
    image, packed, restored = history.images[0], f"{directory}/packed", f"{directory}/restored"
    made = run("partclone.btrfs", "-c", "-s", image, "-o", packed, "-L", f"{directory}/log")
    kernel.make_image(restored, os.path.getsize(image))
    if not made.returncode:
        made = run("partclone.restore", "-C", "-s", packed, "-O", restored, "-L",
                   f"{directory}/log")
    if made.returncode:
        print(f"partclone: status {made.returncode}: {made.stdout[-200:]!r}: {history}")
        return
    lacks, total = collections.Counter(), collections.Counter()
    with open(image, "rb") as original, open(restored, "rb") as copied:
        for row in program.rows("map", "--used", statuses=(0, 1)):
            for at in range(row["start"], row["start"] + row["length"], 4096):
                if row["data"]:
                    original.seek(at)
                    copied.seek(at)
                    total[row["kind"]] += 4096
                    lacks[row["kind"]] += 4096 * (original.read(4096) != copied.read(4096))
    words = ", ".join(f"{kind} {lacks[kind]} of {total[kind]}" for kind in sorted(total))
    print(f"partclone lacks: {words}: {history}", flush=True)


def compare(options, seed, directory):
    history = History(seed, directory)
    history.make()
    history.work()
    history.end()
    program = in_folder(options, directory, history.images)
    if history.random.random() < 0.4:
        destroy_blocks(history, program)
        history.ending += ", with destroyed blocks"
    for words in [], ["--history"]:
        folder = f"{directory}/copy"
        shutil.rmtree(folder, ignore_errors=True)
        copies = copy(program, folder, history.images, *words)
        other = in_folder(options, folder, history.images)
        commands = ([("roots",), ("deleted",)] if words else
                    [("check", "--data"), ("sum",), ("owner", "0+64G")])
        commands.append(("dump",))
        for (command, theirs), (_, ours) in zip(answers(program, commands),
                                                answers(other, commands)):
            if theirs != ours:
                yield f"{' '.join(command)} {' '.join(words)}: other answer: {history}"
        if not words:
            yield from compare_ranges(program, history.images, copies)
    if options.partclone and len(history.images) == 1:
        compare_partclone(history, program, directory)
    if by_kernel(directory, history.images) != by_kernel(folder, copies):
        yield f"the kernel sees another file system, or other errors: {history}"


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--partclone", action="store_true", help="also compare with partclone")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "xfs_io", *(["partclone.btrfs"] if options.partclone else []))
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
