#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""extract_subvolumes - random histories, extracted with all their subvolumes

usage: sudo tests/kernel/extract_subvolumes.py [--count N] [--seed S] [--program PROGRAM]
                                               [--keep DIRECTORY]

Each history (history.py) works in one subvolume, of which snapshots are taken. After an unmount,
`extract --subvolumes` writes all of it onto another btrfs, and onto an ext4, with and without
--link-snapshots. Each snapshot must have the names, types, modes, owners, sizes, contents, hard
links, targets, extended attributes and times that a mount of the image shows; on btrfs, it must be
read-only, and all together must take no more space than the original. Needs root, btrfs-progs,
e2fsprogs and a kernel with btrfs.
"""
import os
import sys

import kernel
from kernel import run
from send import Source, differences


class Ext4(kernel.FileSystem):
    def mount_loops(self, *options):
        run("mount", "-t", "ext4", self.loops[-1], self.mount, check=True)


def make_target(directory, kind, make):
    os.makedirs(directory, exist_ok=True)
    image = kernel.make_image(os.path.join(directory, "target.img"), 6 << 30)
    run(*make, image, check=True)
    target = kind(directory, [image])
    target.attach()
    return target


def simplify(tree, links):
    """What ext4 can have: attributes must fit into a block. Files that are linked to those of other
    snapshots have more links."""
    simple = {path: dict(entry, xattrs={}) for path, entry in tree.items()}
    return simple if links else {path: dict(entry, nlink=1) for path, entry in simple.items()}


def used(mount):
    run("sync", "-f", mount)
    lines = run("btrfs", "filesystem", "df", "-b", mount).stdout.splitlines()
    return sum(int(line.split("used=")[1]) for line in lines if line.startswith("Data"))


def extract(options, source, target, words):
    program = kernel.Program(options.program, source.images)
    result = program.ask("extract", "--subvolumes", *words, "-C", target.path("out"))
    if result.returncode and b"attribute" not in result.stderr:
        yield f"{words}: status {result.returncode}: {result.stderr[-300:]}"


def compare_trees(source, target, names, words, prepare=lambda tree: tree):
    for name in names:
        sent = prepare(source.trees[name])
        received = prepare(kernel.read_tree(target.path("out", name)))
        yield from differences(f"{name} {words}", sent, received)


def compare(options, seed, directory):
    with Source(seed, os.path.join(directory, "source")) as source:
        os.makedirs(source.directory, exist_ok=True)
        source.make()
        source.begin()
        names = [f"snapshot{number}" for number in range(source.random.choice([2, 3, 5]))]
        for name in names:
            source.work(source.random.choice([5, 20, 60]))
            source.take_snapshot(name, streams=False)
        space = used(source.mount)
        source.detach()
        target = make_target(os.path.join(directory, "btrfs"), kernel.FileSystem,
                             ["mkfs.btrfs", "-q"])
        with target:
            yield from extract(options, source, target, [])
            yield from compare_trees(source, target, names, "btrfs")
            for name in names:
                if "ro=true" not in run("btrfs", "property", "get", target.path("out", name),
                                        "ro").stdout:
                    yield f"{name} is not read-only"
            if "compress" not in ",".join(source.options) and used(target.mount) > 1.1 * space + (
                    1 << 20):
                yield f"{used(target.mount)} bytes of data, {space} in the image"
        for words in ([], ["--link-snapshots"]):
            target = make_target(os.path.join(directory, "ext4" + "".join(words)), Ext4,
                                 ["mkfs.ext4", "-q", "-F", "-I", "1024"])
            with target:
                yield from extract(options, source, target, words)
                yield from compare_trees(source, target, names, f"ext4 {words}",
                                         lambda tree, links=not words: simplify(tree, links))
            os.unlink(target.images[0])


def main():
    kernel.need("mkfs.btrfs", "btrfs", "mkfs.ext4", "setcap", "setfacl")
    options = kernel.parser(__doc__).parse_args()
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
