#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""owner - what `owner` prints for addresses, compared with the kernel

usage: sudo tests/kernel/owner.py [--count N] [--seed S] [--addresses N] [--program PROGRAM]
                                  [--keep DIRECTORY] [--image IMAGE]... [--record FILE]

The histories (history.py) have more clones: within a file, to lower offsets, and of parts. Each is
mounted read-only, and for addresses of all kinds of extents the answers of `owner` and
`owner --extent` must be those of `btrfs inspect-internal logical-resolve -P` and `-o`, and the
paths those that a walk of the mount finds. Then `owner --all-trees` must print the same, and so
must `owner` when the extent tree has been destroyed. With --image, that image is read instead of
histories; --record writes what the kernel answers to a file, for fixtures. Needs root,
mkfs.btrfs, xfs_io and a kernel with btrfs.
"""
import json
import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import kernel
from history import History
from kernel import run


class Work(History):
    def clone_within(self):
        """Clones to a lower offset, such that the whole extent would begin before the file."""
        if path := self.some():
            blocks = os.path.getsize(path) // 4096
            if blocks > 1:
                source = self.random.randrange(1, blocks)
                target = self.random.randrange(0, source)
                run("xfs_io", "-c", f"reflink {path} {4096 * source} {4096 * target} 4096", path)

    def work(self):
        super().work()
        for _ in range(self.random.choice([0, 20, 60])):
            step = self.random.choice([self.clone_within, self.clone_range, self.clone,
                                       self.snapshot, self.overwrite, self.balance])
            self.attempt(step)


def resolve(mount, address, *options):
    result = run("btrfs", "inspect-internal", "logical-resolve", "-P", "-s", "16777216", *options,
                 str(address), mount)
    found = re.findall(r"inode (\d+) offset (\d+) root (\d+)", result.stdout)
    return {(int(root), int(inode), int(offset)) for inode, offset, root in found}


def choose_addresses(program, count, chance):
    """Addresses in extents and tree blocks, and some in neither."""
    dump = program.text("dump", "--tree", "extent")
    data = [(int(a), int(b)) for a, b in re.findall(r"key \((\d+) EXTENT_ITEM (\d+)\)", dump)]
    blocks = [int(a) for a in re.findall(r"key \((\d+) METADATA_ITEM", dump)]
    addresses = {chance.choice(blocks) for _ in range(min(count // 20, len(blocks)))}
    addresses |= {chance.randrange(1 << 31) for _ in range(count // 50)}
    for _ in range(count):
        if data:
            start, length = chance.choice(data)
            addresses.add(start + chance.choice([0, length - 1, chance.randrange(length)]))
    return sorted(addresses)


def walk_paths(mount):
    """The paths of each inode of each subvolume."""
    paths, trees = {}, {}
    for top, directories, files in os.walk(os.fsencode(mount)):
        info = os.lstat(top)
        if info.st_ino == 256:
            result = run("btrfs", "inspect-internal", "rootid", os.fsdecode(top))
            trees[info.st_dev] = int(result.stdout) if result.returncode == 0 else 0
        for name in files + directories:
            path = os.path.join(top, name)
            info = os.lstat(path)
            shown = os.fsdecode(path[len(os.fsencode(mount)):])
            paths.setdefault((info.st_dev, info.st_ino), set()).add(shown)
    return {(trees.get(device), inode): found for (device, inode), found in paths.items()}


def by_address(rows):
    answers = {}
    for row in rows:
        if row["kind"] == "data":
            key = (row["tree"], row["inode"], row["file_offset"])
            answers.setdefault(row["logical"], set()).add(key)
    return answers


def destroy_extent_tree(program, directory):
    """The program with copies of the images in which the root of the extent tree is zeroed."""
    lost = kernel.Program(program.path, kernel.copy_images(program.images, directory))
    dump = program.text("dump", "--tree", "root")
    part = dump[re.search(r"key \(EXTENT_TREE ROOT_ITEM 0\)", dump).start():]
    root = re.search(r"bytenr (\d+)", part).group(1)
    for place in kernel.json_rows(program.ask("map", "--json", root)):
        if place["kind"] == "copy" and "device" in place:
            copy = lost.images[program.images.index(place["device"])]
            with open(copy, "r+b") as file:
                file.seek(place["offset"])
                file.write(b"\0" * 4096)
    return lost


def lines_of(rows, kinds=None):
    """Rows as a set of strings, since their order does not matter."""
    return {json.dumps(row, sort_keys=True) for row in rows if not kinds or row["kind"] in kinds}


class Comparison:
    """Compares the answers about one mounted file system."""

    def __init__(self, program, system, addresses):
        self.program, self.system, self.addresses = program, system, addresses
        self.plain = self.owners()
        self.recorded = []

    def owners(self, *options):
        return self.program.rows("owner", *options, *self.addresses)

    def compare_addresses(self):
        data = sorted({r["logical"] for r in self.plain if r["kind"] in ("data", "hidden")})
        for options, rows in ((), self.plain), (("-o",), self.owners("--extent")):
            answers = by_address(rows)
            with ThreadPoolExecutor(2) as pool:
                wanted = pool.map(lambda a: resolve(self.system.mount, a, *options), data)
            for address, expected in zip(data, wanted):
                self.recorded += [f"{options[0] if options else '-'} {address} {root} {inode} "
                                  f"{offset}" for root, inode, offset in sorted(expected)]
                if answers.get(address, set()) != expected:
                    yield (f"{address} {options}: {sorted(answers.get(address, set()))[:4]}, the "
                           f"kernel has {sorted(expected)[:4]}")

    def compare_paths(self):
        paths, named = walk_paths(self.system.mount), {}
        for row in self.plain:
            if row["kind"] == "data" and row.get("path") is not None:
                named.setdefault((row["tree"], row["inode"]), set()).add(row["path"])
        for key, found in named.items():
            if paths.get(key) != found:
                yield f"paths of {key}: {found}, the mount has {paths.get(key)}"

    def compare_methods(self, directory):
        if differ := lines_of(self.owners("--all-trees")) ^ lines_of(self.plain):
            yield f"--all-trees differs: {sorted(differ)[:4]}"
        lost = destroy_extent_tree(self.program, directory)
        rows = lost.rows("owner", *self.addresses, statuses=(0, 1))
        kinds = ("data", "metadata", "hidden")
        if differ := lines_of(rows, kinds) ^ lines_of(self.plain, kinds):
            yield f"without the extent tree: {sorted(differ)[:4]}"
        for image in lost.images:
            os.unlink(image)


def compare_images(options, images, seed, directory):
    with kernel.FileSystem(directory, images) as system:
        system.attach_read_only("rescue=nologreplay")
        program = kernel.Program(options.program, images)
        addresses = choose_addresses(program, options.addresses, random.Random(seed))
        comparison = Comparison(program, system, addresses)
        yield from comparison.compare_addresses()
        yield from comparison.compare_paths()
        yield from comparison.compare_methods(os.path.join(directory, "lost"))
        print(f"  {len({row['logical'] for row in comparison.plain})} addresses, "
              f"{len(comparison.plain)} rows", flush=True)
    if options.record:
        with open(options.record, "w", encoding="ascii") as file:
            file.write("\n".join(comparison.recorded + [""]))


def compare_history(options, seed, directory):
    history = Work(seed, directory)
    history.make()
    history.work()
    history.end()
    for wrong in compare_images(options, history.images, seed, directory):
        yield f"{wrong}: {history}"


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--addresses", type=int, default=500)
    parser.add_argument("--image", action="append")
    parser.add_argument("--record")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "xfs_io")
    if options.image:
        return kernel.compare_each(options, {options.image[0]: options.image},
                                   lambda options, images, directory: compare_images(
                                       options, images, options.seed, directory))
    return kernel.compare_each(options, kernel.seeds(options), compare_history)


if __name__ == "__main__":
    sys.exit(main())
