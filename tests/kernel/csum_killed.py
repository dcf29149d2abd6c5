#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""csum_killed - reads what a killed change of the type of checksums leaves on several devices

usage: tests/kernel/csum_killed.py [--count N] [--seed S] [--program PROGRAM] [--keep FOLDER]
                                   [--tools FOLDER] [--profile NAME]

strace kills `btrfstune --csum` at one of its writes, on file systems of several devices. What it
leaves is read as it is, without each of the devices, and without the superblocks of each device.
walk and sum print what they printed before the change; check --data finds nothing but the change
and the damage; rescue verifies all files. Without any superblocks, walk and sum print the same.

In a row of RAID5 or RAID6 that was being written, the parity may be old. If a device is missing
then, its block of the row is lost; so less may be printed, but nothing else.

--count N: so many of the states of each profile, evenly spread; 0: all. --tools: a folder with
another btrfstune and btrfs. --profile: only this one.
"""
import collections
import os
import sys
import tempfile

import btrfstune_killed
import kernel
import repair
from kernel import run

PROFILES = {"raid1": 2, "raid1c3": 3, "raid10": 4, "raid5": 3, "raid6": 4}
TYPES = ["sha256", "xxhash", "blake2"]
# What check may find: of the killed change, and of each damage.
CHANGED = {"half-done", "device-stale", "super-behind", "block-differs"}
OLD_PARITY = "parity-mismatch"
WITHOUT = {"device-missing", "parity-unchecked"}
WIPED = {"super-bad", "device-differs"}


def codes(system):
    return {row["code"] for row in system.rows("check", "--data", statuses=(0, 4))
            if "code" in row}


class States(btrfstune_killed.Made):
    """A file system of each profile, and the writes of a change of its checksums."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.cases, self.before, self.images = {}, {}, {}
        for number, (profile, count) in enumerate(PROFILES.items()):
            if options.profile in (None, profile):
                kind = TYPES[(options.seed + number) % len(TYPES)]
                self.add_states(profile, count, kind)

    def add_states(self, profile, count, kind):
        folder = os.path.join(self.directory, profile)
        os.makedirs(folder)
        images = self.make(folder, count, ["-d", profile, "-m", profile])
        self.images[profile] = images
        system = kernel.Program(self.options.program, images)
        self.before[profile] = {command: system.require(command).stdout
                                for command in ("walk", "sum")}
        with tempfile.TemporaryDirectory(dir=folder) as copy:
            calls = os.path.join(copy, "calls")
            result = btrfstune_killed.tune(
                kernel.copy_images(images, copy), copy, ["--csum", kind],
                ["strace", "-f", "-o", calls, "-e", "trace=pwrite64"])
            with open(calls, encoding="utf-8", errors="replace") as file:
                writes = sum("pwrite64" in line for line in file)
        if result.returncode:
            raise kernel.NotMade(f"{profile}: {result.stdout[-300:]}")
        wanted = min(self.options.count or writes, writes)
        first = self.options.seed % max(writes // wanted, 1)
        for index in range(wanted):
            number = 1 + first + index * writes // wanted
            if number <= writes:
                self.cases[f"{profile} {kind} write {number} of {writes}"] = (
                    self, profile, kind, number)


def judge_hole(system, before):
    for command, expected in before.items():
        wrong = set(system.ask(command).stdout.splitlines()) - set(expected.splitlines())
        if wrong:
            yield f"{command} prints {sorted(wrong)[:5]}"


def judge(system, before, allowed):
    for command, expected in before.items():
        result = system.ask(command)
        if result.stdout != expected:
            yield f"{command} differs: {result.stderr[-600:]}"
    found = codes(system) - allowed
    if found:
        yield f"check: {found}"
    counts = collections.Counter()
    # If the only other copy is on a stale device, older generations may be missing: status 1.
    for row in system.rows("rescue", statuses=(0, 1)):
        for subvolume in row["by_subvolume"]:
            counts.update({key: value for key, value in subvolume.items()
                           if key.endswith("_files") and value})
    if counts.keys() != {"verified_files"}:
        yield f"rescue: {dict(counts)}"


def wipe(image):
    with open(image, "r+b") as file:
        for place in repair.SUPERBLOCKS:
            file.seek(place)
            file.write(bytes(4096))


def judge_each(program, images, before):
    """Reads the images with each damage to a device; returns lines about what is wrong."""
    system = kernel.Program(program, images)
    allowed = CHANGED | (codes(system) & {OLD_PARITY})
    yield from judge(system, before, allowed)
    for device, image in enumerate(images, 1):
        others = kernel.Program(program, [other for other in images if other != image])
        lines = judge_hole(others, before) if OLD_PARITY in allowed else judge(
            others, before, allowed | WITHOUT)
        yield from (f"without device {device}: {line}" for line in lines)
        copy = image + ".whole"
        os.rename(image, copy)
        run("cp", "--sparse=always", copy, image, check=True)
        wipe(image)
        for line in judge(system, before, allowed | WIPED):
            yield f"superblocks of device {device}: {line}"
        os.rename(copy, image)
    for image in images:
        wipe(image)
    for command, expected in before.items():
        result = system.ask(command, "--scan")
        if result.stdout != expected:
            yield f"no superblocks: {command} differs: {result.stderr[-600:]}"


def compare(options, case, directory):
    states, profile, kind, number = case
    print(f"{profile} {kind} write {number}", flush=True)
    images = kernel.copy_images(states.images[profile], directory)
    result = btrfstune_killed.tune(
        images, directory, ["--csum", kind],
        ["strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
         f"inject=pwrite64:signal=KILL:when={number}"])
    if not result.returncode:
        raise kernel.NotMade("btrfstune was not killed")
    return judge_each(options.program, images, states.before[profile])


def main():
    parser = kernel.parser(__doc__, 5)
    parser.add_argument("--tools", help="a folder with btrfstune and btrfs")
    parser.add_argument("--profile", choices=PROFILES, help="only this profile")
    options = parser.parse_args()
    if options.tools:
        os.environ["PATH"] = f"{os.path.abspath(options.tools)}:{os.environ['PATH']}"
    kernel.need("mkfs.btrfs", "btrfstune", "strace")
    if "--csum" not in run("btrfstune", "--help").stdout:
        print("skipped: without btrfstune --csum\n0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="killed.", dir=options.directory) as directory:
        return kernel.compare_each(options, States(options, directory).cases, compare)


if __name__ == "__main__":
    sys.exit(main())
