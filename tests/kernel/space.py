#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""space - what `space` prints must be what the kernel counts with quotas

usage: sudo tests/kernel/space.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

The histories (history.py) have more snapshots and clones, and no quotas. `space` reads the images;
then they are mounted, quotas are enabled and a rescan is waited for. `space` must print the same
numbers for all subvolumes as `btrfs qgroup show --raw`, and `space --free-if` those of a group that
holds some of them. Needs root, mkfs.btrfs, xfs_io and a kernel with btrfs.
"""
import sys

import kernel
from history import History
from kernel import run


class Work(History):
    def quota(self):
        """A history without quotas."""

    def dedupe(self):
        source, target = self.some(), self.some()
        if source and target:
            run("xfs_io", "-c", f"dedupe {source} 0 {4096 * self.random.randrange(9)} 8192", target)

    def web(self):
        for _ in range(self.random.choice([20, 60])):
            self.random.choice([self.clone, self.clone_range, self.clone_range, self.dedupe,
                                self.overwrite, self.snapshot, self.remove])()

    def end(self):
        try:
            self.web()
        except OSError:
            pass  # the file system is full, or files were deleted
        run("btrfs", "quota", "disable", self.mount)
        run("btrfs", "balance", "cancel", self.mount)
        self.close()
        self.sync()
        run("btrfs", "subvolume", "sync", self.mount)
        self.detach()


def kernel_groups(history, members):
    """Mounts the images, which changes them, and returns the numbers of each quota group."""
    history.options = []
    history.attach()
    run("btrfs", "quota", "enable", history.mount, check=True)
    run("btrfs", "qgroup", "create", "1/1", history.mount, check=True)
    for member in members:
        run("btrfs", "qgroup", "assign", "--no-rescan", f"0/{member}", "1/1", history.mount)
    run("btrfs", "quota", "rescan", "-w", history.mount)
    run("btrfs", "quota", "rescan", "-w", history.mount, check=True)
    shown = run("btrfs", "qgroup", "show", "--raw", history.mount, check=True).stdout
    words = [line.split() for line in shown.splitlines()]
    return {w[0]: (int(w[1]), int(w[2])) for w in words if len(w) > 2 and "/" in w[0]}


def compare(options, seed, directory):
    history = Work(seed, directory)
    history.make()
    history.work()
    history.end()
    program = kernel.Program(options.program, history.images)
    rows = program.rows("space")
    ids = [row["subvolume"] for row in rows]
    members = history.random.sample(ids, min(len(ids), history.random.choice([1, 2, 3, 8])))
    freed = program.rows("space", "--free-if", ",".join(map(str, members)))[0]
    theirs = kernel_groups(history, members)
    ours = {f"0/{row['subvolume']}": (row["referenced"], row["exclusive"]) for row in rows}
    ours["1/1"] = (freed["referenced"], freed["freed"])
    for group in sorted(set(ours) | set(theirs)):
        if ours.get(group) != theirs.get(group):
            yield f"{group}: we {ours.get(group)}, the kernel {theirs.get(group)}: {history}"


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "xfs_io")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
