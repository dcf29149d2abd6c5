#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""since - what `check --since` finds, after random work, must be what a whole check finds

usage: sudo tests/kernel/since.py [--count N] [--seed S] [--program PROGRAM] [--keep FOLDER]
                                  [--rounds N] [--changes N]

Each case is a random file system on which a kernel works in several rounds. After each, `check
--since` with the baselines of the two rounds before must have the findings of a whole check; with
the generation of the round before, it must have no others. Then members of items, keys and headers
are changed, or bytes overwritten, in a copy of the images:

both   in a block that the round has not written, in the images before and after it. The baseline is
       of the damaged images: its findings must still be there, and those of other places, too.
new    in a block that the round has written: the baseline of the sound images must not hide it.
gone   in the images before the round, in a block that is no longer there: the baseline has findings
       that are no longer true.

The exit status and all findings are compared, with `since` left out; what is gone is not a finding.
"""
import json
import os
import random
import sys

import fields
import kernel
from history import History

STATUSES = (0, 4, 8, 12)


def findings(program, *words):
    """The exit status of a check, and what it finds, in order."""
    result = program.require("check", "--json", "--all", *words, statuses=STATUSES)
    found = [row for row in kernel.json_rows(result)
             if row.pop("since", None) != "gone" and row["code"] != "baseline-unused"]
    return result.returncode, sorted(json.dumps(row, sort_keys=True) for row in found)


def differences(program, options, base, what):
    """Compares a check that knows a baseline, or a generation, with one that does not."""
    whole, part = findings(program, *options), findings(program, *options, "--since", base)
    more = [f"only --since: {row[:600]}" for row in part[1] if row not in whole[1]]
    if more or (whole != part and isinstance(base, str)):
        yield f"{what}: status {whole[0]} and with --since {part[0]}"
        yield from more
        yield from (f"only whole: {row[:600]}" for row in whole[1] if row not in part[1])


class State(fields.Images):
    """Copies of the images after a round, and the baseline of a check of them."""

    def __init__(self, program, images, folder):
        super().__init__(program, kernel.copy_images(images, folder))
        self.base = folder + ".base"
        self.generation = self.rows("super")[0]["generation"]
        self.blocks = {logical: self.block(logical)
                       for logical in {item["logical"] for item in self.items}}

    def names(self):
        return [os.path.basename(image) for image in self.images]

    def block(self, logical):
        places = self.places(logical)
        return bytes(self.read(places)) if places else None

    def damage(self, r, logicals):
        """Changes one of these blocks. Returns what was done, and the old bytes."""
        only = {logical for logical in logicals if self.blocks[logical]}
        everything, self.items = self.items, [i for i in self.items if i["logical"] in only]
        kinds = sorted({i["key"]["type"] for i in self.items} - {"UNTYPED"})
        try:
            if not kinds:
                return None
            if r.random() < 0.2:
                return self.overwrite(r, r.choice(sorted(only)))
            if r.random() < 0.2:
                return fields.change_garbage(r, self)[1:]
            return fields.change_item(r, self, kinds)[1:]
        finally:
            self.items = everything

    def overwrite(self, r, logical):
        """Overwrites a part of some mirrors; their checksums stay."""
        places = self.places(logical)
        saved = fields.old_bytes(places, self.blocks[logical])
        start = r.randrange(self.node // 512) * 512
        for path, offset in r.sample(places, r.randrange(1, len(places) + 1)):
            with open(path, "r+b") as file:
                file.seek(offset + start)
                file.write(r.randbytes(512))
        return f"block {logical} bytes {start} to {start + 512} of some mirrors", saved


def written(saved):
    """What is now at the places of old bytes."""
    for path, offset, data in saved:
        with open(path, "rb") as file:
            file.seek(offset)
            yield path, offset, file.read(len(data))


def inside(folder, changes):
    """The same changes in images of another folder, which have the same names."""
    return [(os.path.join(folder, os.path.basename(path)), *rest) for path, *rest in changes]


def try_change(r, old, new, options):
    """Damages copies of the images before or after a round, or both; nothing is left of it."""
    way = r.choice(["both", "new", "gone"])
    same = {logical for logical, block in new.blocks.items() if old.blocks.get(logical) == block}
    damaged = old if way == "gone" else new
    blocks = {"both": same, "new": set(new.blocks) - same, "gone": set(old.blocks) - same}[way]
    done = damaged.damage(r, blocks)
    if not done:
        return
    words, saved = done
    if way == "both":
        folder = os.path.dirname(old.images[0])
        changes = inside(folder, written(saved))
        saved += inside(folder, saved)
        fields.undo(changes)
    base = old.base
    if way != "new": # a check that cannot be finished saves nothing
        base += ".damaged"
        findings(old, *options, "--save", base)
    if os.path.exists(base):
        yield from differences(new, options, base, f"{way}: {words}")
    if way != "new" and os.path.exists(base):
        os.unlink(base)
    fields.undo(saved)


def compare(options, seed, directory):
    history = History(seed, directory)
    history.make()
    r, states = random.Random(seed), []
    words = r.choice([[], ["--data"]])
    for number in range(options.rounds):
        if states:
            history.attach()
        for _ in range(r.choice([3, 20, 60])):
            history.attempt(r.choice(history.rare_steps() if r.random() < 0.04
                                     else history.usual_steps()))
        history.detach()
        new = State(options.program, history.images, os.path.join(directory, f"round{number}"))
        what = f"round {number} of {history}"
        for old in states[-2:]:
            yield from differences(new, words, old.base, what)
        if states:
            yield from differences(new, [], states[-1].generation, what + ", a generation")
            findings(new, *words, "--since", states[-1].base, "--save", new.base)
        else:
            findings(new, *words, "--save", new.base)
        if states and new.type in fields.CHECKSUMS and new.names() == states[-1].names():
            for _ in range(options.changes):
                yield from try_change(r, states[-1], new, words)
        states.append(new)


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--changes", type=int, default=6, help="of each round but the first")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
