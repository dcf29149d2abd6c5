#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""du - file systems made by random work: `du` and `compression` must agree with a mount

usage: sudo tests/kernel/du.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

The histories (history.py) have more clones, snapshots and space that is allocated and not written.
Each is unmounted and mounted again, read-only. Then the whole of it, and some of its files and
directories together, are counted by `btrfs filesystem du --raw` and `compsize -b` on the mount, and
by `du --raw` and `compression --raw` on the images. Their texts must be equal, line by line, and
the shared bytes of each file those of `walk -o shared`. Needs root, mkfs.btrfs, compsize, xfs_io
and a kernel with btrfs.
"""
import difflib
import os
import shutil
import sys

import kernel
from history import History
from kernel import output, run

COMMANDS = ((["btrfs", "filesystem", "du", "--raw"], ["du", "--raw"]),
            (["btrfs", "filesystem", "du", "-s", "--raw"], ["du", "-s", "--raw"]),
            (["compsize", "-b"], ["compression", "--raw"]))


class Work(History):
    """A history in which many extents are shared."""

    def clone_inside(self):
        """Clones a part of a file to another offset of the same file."""
        if path := self.some():
            start, to = 4096 * self.random.randrange(4), 4096 * self.random.randrange(9, 300)
            run("xfs_io", "-c", f"reflink {path} {start} {to} 16384", path)

    def clone_again(self):
        """Clones a range of a file onto itself."""
        if path := self.some():
            offset = 4096 * self.random.randrange(9)
            run("xfs_io", "-c", f"reflink {path} {offset} {offset} 8192", path)

    def fragment(self):
        """Writes a file with so many extents that its items lie in several leaves."""
        with open(self.fresh(), "wb") as file:
            file.write(self.random.randbytes(1 << 20) + b"x" * (1 << 20))
            file.flush()
            os.fsync(file.fileno())
            for i in range(0, 512, self.random.choice([2, 3, 16])):
                file.seek(i * 4096)
                file.write(self.random.randbytes(4096))

    def split(self):
        """Overwrites the middle of extents after a snapshot, which splits their items."""
        self.fragment()
        self.sync()
        self.snapshot()
        self.many()
        self.overwrite()

    def preallocate(self):
        path = self.fresh()
        run("fallocate", "-l", str(4096 * self.random.choice([1, 30, 1000])), path)
        with open(path, "r+b") as file:
            for _ in range(self.random.choice([0, 1, 5])):
                file.seek(4096 * self.random.randrange(30))
                file.write(self.random.randbytes(self.random.choice([100, 4096, 9000])))

    def nest(self):
        directory = self.fresh()
        os.mkdir(directory)
        for i in range(2):
            path = os.path.join(directory, f"sub{i}")
            if run("btrfs", "subvolume", "create", path).returncode == 0:
                self.subvolumes.append(os.path.relpath(path, self.mount))
                shutil.copy(self.some() or "/etc/passwd", path)

    def work(self):
        super().work()
        more = [self.clone_inside, self.clone_again, self.fragment, self.split, self.preallocate,
                self.nest, self.snapshot, self.clone, self.clone_range, self.overwrite, self.drop,
                self.write]
        for _ in range(self.random.choice([5, 20, 60])):
            self.attempt(self.random.choice(more))

    def some_paths(self):
        found = [self.some(self.random.choice("ffd")) for _ in range(6)]
        paths = ["/" + os.path.relpath(path, self.mount) for path in found if path]
        return ["/" if path == "/." else path for path in paths]


def differences(program, history, paths):
    """Yields the differences between what the commands count for these paths."""
    prefix = os.fsencode(history.mount)
    for theirs, ours in COMMANDS:
        expected = output(*theirs, *[history.mount + path for path in paths])
        expected = expected.replace(b" " + prefix + b"\n", b" /\n")
        expected = expected.replace(b" " + prefix + b"/", b" /")
        answer = program.ask(*ours, *paths).stdout
        if expected != answer and (expected or b"TOTAL        0%" not in answer):
            yield f"{' '.join(ours)} {' '.join(paths)[:200]}: {history}"
            lines = [text.decode(errors="replace").splitlines() for text in (expected, answer)]
            yield from list(difflib.unified_diff(*lines, "mount", "images", n=0, lineterm=""))[:12]


def shared_differences(program, history):
    """Yields the files whose shared bytes in `walk` are not those of the mount. The mount counts an
    inode with several names once."""
    prefix = os.fsencode(history.mount)
    expected, found = {}, {}
    for line in output("btrfs", "filesystem", "du", "--raw", history.mount).splitlines()[1:]:
        total, exclusive, _, path = line.split(None, 3)
        if os.path.isfile(path) and not os.path.islink(path):
            expected[path[len(prefix):]] = int(total) - int(exclusive)
    for line in program.ask("walk", "-o", "shared,path").stdout.splitlines():
        shared, path = line.split(b"\t", 1)
        found[path] = int(shared)
    for path, shared in expected.items():
        if found.get(path) != shared:
            yield f"{path}: {shared} shared bytes on the mount, {found.get(path)} in walk {history}"


def compare(options, seed, directory):
    history = Work(seed, directory)
    history.make()
    history.work()
    history.detach()
    history.attach_read_only()
    program = kernel.Program(options.program, history.images)
    for paths in (["/"], history.some_paths()):
        if paths:
            yield from differences(program, history, paths)
    yield from shared_differences(program, history)


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "compsize", "xfs_io")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
