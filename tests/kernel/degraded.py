#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""degraded - random file systems whose devices are missing, or were missing for a while

usage: sudo tests/kernel/degraded.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

The histories (history.py) have several devices and redundant profiles. As many devices as the
profiles tolerate are left out: what `mount` of btrfs-walk shows of the others must be what a mount
of all devices shows. Then the kernel mounts the others with the option degraded, and works on; some
devices are replaced, and the replacement may be interrupted. Afterwards the stale devices are there
again: the answers must be those that the degraded mount has shown. `check --data` must find nothing
that another copy cannot repair. Needs root, mkfs.btrfs, xfs_io, FUSE and a kernel with btrfs.
"""
import errno
import os
import subprocess
import sys
import time

import kernel
from history import History
from kernel import run
from power_cut import by_kernel, by_program, compare_trees
from unusual import read_all

# devices, profiles of data and of metadata, and how many devices can be missing
LAYOUTS = [(2, "raid1", "raid1", 1), (3, "raid1", "raid1", 1), (3, "raid5", "raid1", 1),
           (3, "raid5", "raid5", 1), (4, "raid6", "raid1c3", 2), (4, "raid6", "raid6", 2),
           (4, "raid10", "raid10", 1), (4, "raid10", "raid1", 1), (3, "raid1c3", "raid1c3", 2),
           (5, "raid1c4", "raid1c4", 3), (5, "raid5", "raid1c3", 1), (5, "raid6", "raid1c4", 2),
           (3, "raid6", "raid1c3", 2), (2, "raid5", "raid1", 1), (3, "raid10", "raid10", 1)]


class Degraded(History):
    """A history on redundant profiles, without steps that change these."""
    lost = ()

    def make(self):
        r = self.random
        count, data, metadata, self.tolerated = r.choice(LAYOUTS)
        devices = [self.image() for _ in range(count)]
        command = ["mkfs.btrfs", "-q", "-f", "-d", data, "-m", metadata,
                   "-n", r.choice(["4096", "16384", "16384", "65536"]), "--csum",
                   r.choice(["crc32c", "xxhash", "sha256", "blake2"])]
        self.made = " ".join(command)
        run(*command, *devices, check=True)
        self.options = r.choice([[], ["compress=zstd"], ["compress-force=lzo"], ["autodefrag"],
                                 ["max_inline=0"]])
        self.attach()

    def flag(self):
        """Without +C: a stale mirror of data without checksums cannot be recognized."""

    def swap(self):
        """The same."""

    def rare_steps(self):
        return [self.balance, self.quota, self.send, self.remount]

    def lose(self):
        """Chooses the devices that will be missing; returns the others' images."""
        self.detach()
        numbers = list(range(len(self.images)))
        self.random.shuffle(numbers)
        lost = numbers[:self.random.randint(1, self.tolerated)]
        self.lost = lost
        self.stale = [self.images[number] for number in lost]
        self.images = [image for image in self.images if image not in self.stale]

    def attempt(self, step):
        """Without a device, the kernel fails some writes to RAID5."""
        try:
            super().attempt(step)
        except OSError as error:
            if error.errno != errno.EIO or not self.lost:
                raise
            self.forget()

    def work_degraded(self):
        self.options = [*self.options, "degraded"]
        super().attach()
        for _ in range(self.random.choice([3, 20, 60])):
            self.attempt(self.random.choice(self.usual_steps()))
        self.forget()

    def replace_missing(self):
        """Replaces a missing device, or a part of it."""
        missing = str(self.random.choice(self.lost) + 1)
        process = subprocess.Popen(["btrfs", "replace", "start", "-B", "-f", missing,
                                    self.add_image(1600 << 20), self.mount],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.ending = f"replacing {missing}"
        if self.random.random() < 0.6:
            time.sleep(self.random.choice([0.05, 0.2, 0.5, 1]))
            self.attempt(self.write)
        else:
            process.wait()
        return process

    def leave(self):
        """Copies the devices while nothing is written, and mounts the copies."""
        process = self.replace_missing() if self.random.random() < 0.4 else None
        self.sync()
        self.close()
        run("fsfreeze", "-f", self.mount, check=True)
        copies = kernel.copy_images(self.images, os.path.join(self.directory, "left"))
        run("fsfreeze", "-u", self.mount)
        if process:
            process.wait()
        self.detach()
        self.tree = by_kernel(copies, self.directory, "degraded")
        return copies


def without_times(tree):
    for entry in tree.values():
        entry.pop("atime", None)
    return tree


def compare_images(options, what, images, theirs, directory):
    program = kernel.Program(options.program, images)
    ours = without_times(by_program(program, directory))
    yield from compare_trees(what, without_times(theirs), ours)
    checked = program.ask("check", "--data", "-q", "--tolerate", "repairable")
    if checked.returncode:
        yield f"{what}: check: status {checked.returncode}: {checked.stdout[-900:].decode()}"


def compare(options, seed, directory):
    with Degraded(seed, directory) as system:
        system.make()
        system.work()
        system.sync()
        system.close()
        whole = read_all(system.mount)
        system.lose()
        wrong = list(compare_images(options, "missing", system.images, whole, directory))
        system.work_degraded()
        copies = system.leave()
        wrong += compare_images(options, "degraded", copies, system.tree, directory)
        mixed = copies + system.stale
        system.random.shuffle(mixed)
        wrong += compare_images(options, "with stale devices", mixed, system.tree, directory)
    return [*wrong, f"{system}, {len(system.stale)} missing"] if wrong else []


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "xfs_io", "fusermount3")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
