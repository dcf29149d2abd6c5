#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""send_damaged - streams without a lost leaf must be received, with nothing wrong in them

usage: sudo tests/kernel/send_damaged.py [--count N] [--seed S] [--program PROGRAM]

Each history (send.py) works in one subvolume, of which two snapshots are taken. Leaves of them are
lost, one at a time, and `send --on-error` writes full and incremental streams of what is left.
`btrfs receive` must take them. With --on-error=skip, contents and targets of a full stream must be
those of a file of the snapshot. Needs root, btrfs-progs and a kernel with btrfs.
"""
import os
import random
import re
import sys

import kernel
import send
from kernel import run

KINDS = ([], ["-p", "first"], ["--proto", "2", "-p", "first"],
         ["--proto", "2", "--compressed-data"])


def leaves(program, names):
    numbers = {row["subvolume_path"][1:]: str(row["subvolume"])
               for row in program.rows("subvolumes")}
    found = set()
    for name in names:
        found.update(re.findall(r"^leaf (\d+) items", program.text("dump", "--tree", numbers[name]),
                                re.M))
    return sorted(found)


def invented(received, sent):
    """Contents and targets that no file of the snapshot has."""
    for path, entry in received.items():
        for key in ("sha256", "target"):
            if key in entry and all(other.get(key) != entry[key] for other in sent.values()):
                yield f"{path!r}: {key}"


def compare(options, seed, directory):
    chance = random.Random(seed)
    with send.Source(seed, os.path.join(directory, "source")) as source:
        os.makedirs(source.directory, exist_ok=True)
        run("mkfs.btrfs", "-q", "-f", "-n", "4096", source.image(), check=True)
        source.options = []
        source.attach()
        source.begin()
        for name in ("first", "second"):
            source.work(chance.choice([20, 60, 120]))
            source.take_snapshot(name, streams=False)
        source.detach()
        program = kernel.Program(options.program, source.images)
        with kernel.FileSystem(os.path.join(directory, "target")) as target:
            run("mkfs.btrfs", "-q", target.add_image(3 << 30), check=True)
            target.attach()
            yield from send.receive(target, program.require("send", "first").stdout, "first")
            found = leaves(program, ("first", "second"))
            for leaf in chance.sample(found, min(12, len(found))):
                gap = (f"debug/error-gen@chunk-map,kind=tree-block,start={leaf},"
                       f"end={int(leaf) + 1},action=zero")
                words = chance.choice(KINDS)
                policy = chance.choice(["skip", "zero"])
                title = f"leaf {leaf} is lost: {' '.join(words)} --on-error={policy}"
                sent = program.ask("send", "-q", f"--on-error={policy}", "--insert", gap, *words,
                                   "second")
                if sent.returncode not in (0, 1):
                    yield f"{title}: status {sent.returncode}: {sent.stderr[-300:]}"
                if sent.returncode not in (0, 1) or not sent.stdout:
                    continue
                wrong = list(send.receive(target, sent.stdout, title))
                if not wrong and policy == "skip" and "-p" not in words:
                    wrong = [f"{title}: {line}" for line in invented(
                        kernel.read_tree(target.path("second")), source.trees["second"])]
                yield from wrong
                run("btrfs", "property", "set", "-f", target.path("second"), "ro", "false")
                run("btrfs", "subvolume", "delete", target.path("second"))


def main():
    kernel.need("mkfs.btrfs", "btrfs", "setcap", "setfacl")
    options = kernel.parser(__doc__).parse_args()
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
