#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""check - file systems made by random work: `check` must find nothing wrong with them

usage: sudo tests/kernel/check.py [--count N] [--seed S] [--reference] [--keep DIRECTORY]

For each history (history.py), `check --data` must end with 0, or report nothing but stale parity
that a scrub of the kernel rewrites: Linux 6.18 leaves such parity when it replaces a device. With
--reference, `btrfs check` runs as well, and has to agree. Needs root, mkfs.btrfs and a kernel with
btrfs; some steps need xfs_io.
"""
import struct
import sys

import kernel
from history import History
from kernel import run


def stale_parity(program):
    """Where `check` finds stale parity, as (devid, offset); None if it also finds other errors."""
    found = set()
    for finding in kernel.json_rows(program.ask("check", "--data", "--all", "--json")):
        if finding.get("code") == "parity-mismatch":
            found.add((finding["devid"], finding["offset"]))
        elif finding.get("severity") == "error":
            return None
    return found


def parity_at(images, places):
    """Reads one sector of parity at each place."""
    parts = {}
    for image in images:
        with open(image, "rb") as file:
            file.seek(65536 + 201)  # dev_item.devid
            devid, = struct.unpack("<Q", file.read(8))
            for place in places:
                if place[0] == devid:
                    file.seek(place[1])
                    parts[place] = file.read(4096)
    return parts


def scrub_rewrites(program, history):
    """Whether stale parity is all that is wrong, and a scrub of the kernel writes other parity
    there. The mount may free some of the data that this parity protects."""
    found = stale_parity(program)
    if not found:
        return False
    before = parity_at(history.images, found)
    history.attach()
    run("btrfs", "scrub", "start", "-B", history.mount)
    history.detach()
    after = parity_at(history.images, found)
    rewritten = sum(before[place] != after[place] for place in found)
    left = stale_parity(program)
    print(f"stale parity at {len(found)} places, {rewritten} of them rewritten by a scrub;"
          f" {'other errors' if left is None else len(left)} then: {history.made}", flush=True)
    return rewritten > 0 and left == set()


def compare(options, seed, directory):
    history = History(seed, directory)
    history.make()
    history.work()
    history.end()
    program = kernel.Program(options.program, history.images)
    result = program.ask("check", "--data")
    bad = result.returncode != 0 and not scrub_rewrites(program, history)
    if bad:
        yield f"status {result.returncode}: {history}"
        yield result.stdout[:3000].decode(errors="replace")
    if options.reference:
        theirs = run("timeout", "300", "btrfs", "check", "--readonly", history.images[0])
        if (theirs.returncode != 0) != bad:
            yield f"btrfs check differs, status {theirs.returncode}: {history}"
            yield theirs.stdout[-1500:]


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--reference", action="store_true", help="run `btrfs check` as well")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
