#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""agree - all ways to compare two snapshots, and to copy one, must agree with a mount

usage: sudo tests/kernel/agree.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

Each history (send.py) works in one subvolume, of which three snapshots are taken. What a mount
shows of two of them decides which differences there are. `diff` must list these, and no others:
by inodes, by paths, with a copy of the images, with the mounted folder, with a manifest of `tar`,
with the hashes of `sum`, and with the streams of `send` and of `btrfs send`, on either side. A
snapshot that was extracted, archived, or mounted with FUSE must equal the original, also for
rsync. Needs root, btrfs-progs, rsync, tar, xfs_io and a kernel with btrfs.
"""
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import time

import diff
import kernel
import send
from kernel import run

PAIRS = (("first", "second"), ("second", "first"), ("second", "third"))


def is_nested(path, *trees):
    return any(path in tree and tree[path]["inode"] == 2 for tree in trees)


def expected(before, after, unknown=(), is_compared=lambda name: True):
    """The differences by path: the change, and for modified files, the words for what differs."""
    found = {}
    for path in before.keys() | after.keys():
        if path not in before or path not in after:
            found[path] = ("deleted" if path in before else "added", None)
        elif diff.type_of(before[path]) != diff.type_of(after[path]):
            found[path] = ("type", None)
        else:
            pair = [dict(tree[path], xattrs={name: value for name, value
                                             in tree[path].get("xattrs", {}).items()
                                             if is_compared(name)}) for tree in (before, after)]
            words = frozenset(diff.changes_of(*pair)) - frozenset(unknown)
            if words:
                found[path] = ("modified", words)
    return found


def linked(tree):
    """The names of each file with several, by name."""
    groups = {}
    for path, entry in tree.items():
        if entry["nlink"] > 1 and not stat.S_ISDIR(entry["mode"]):
            groups.setdefault(entry["inode"], set()).add(path)
    return {path: group for group in groups.values() for path in group}


def compare_rows(title, rows, wanted, before, after):
    """Yields what is wrong with rows of a comparison by path. That names are links to other files
    than before is a difference, too, even if there are as many."""
    listed = {}
    for row in rows:
        words = frozenset(row["changes"]) if row["change"] == "modified" else None
        if row["path"] in listed or row.get("unknown"):
            yield f"{title}: not wanted: {row}"
        listed[row["path"]] = (row["change"], words)
    groups = linked(before), linked(after)
    for path in sorted(listed.keys() | wanted.keys()):
        one, other = listed.get(path), wanted.get(path)
        if one and one[1] and groups[0].get(path) != groups[1].get(path):
            one = (one[0], one[1] - {"links"})
            other = other and other[1] and (other[0], other[1] - {"links"})
            one, other = (pair if pair and pair[1] else None for pair in (one, other))
        if one != other:
            yield f"{title}: {path!r}: differs in {wanted.get(path)}, listed is {listed.get(path)}"


def without(wanted, is_omitted):
    return {path: change for path, change in wanted.items() if not is_omitted(path)}


def compare_images(program, mount, images, pair, trees):
    """Images and folders."""
    before, after = (trees[name] for name in pair)
    wanted = expected(before, after)
    others = [word for image in images for word in ("--other", image)]
    for words in ([], ["--content", "always"], ["--nested", "no", *others]):
        rows = program.rows("diff", "-q", *words, *pair, silent=True)
        for wrong in diff.differences(before, after, rows):
            yield f"{pair} {words}: {wrong}"
    for words in ([], others, [*others, "--content", "always"]):
        rows = program.rows("diff", "-q", "--by-path", "--nested", "no", *words, *pair, silent=True)
        yield from compare_rows(f"{pair} by path {words}", rows, wanted, before, after)
    rows = program.rows("diff", "-q", "--nested", "no", "--other", mount, *pair, silent=True)
    wanted = expected(before, after, ["links"],
                      lambda name: not name.startswith(("trusted.", "btrfs.")))
    yield from compare_rows(f"{pair} with a folder", rows, wanted, before, after)


def compare_lists(program, directory, pair, trees):
    """Manifests, which have no sockets, and lists of hashes."""
    before, after = (trees[name] for name in pair)
    for command, words in (("tar", ["--format", "mtree"]), ("sum", [])):
        path = os.path.join(directory, command)
        with open(path, "wb") as file:
            file.write(program.require(command, *words, "--subvol", pair[1]).stdout)
        if not os.path.getsize(path):
            continue
        rows = program.rows("diff", "-q", "--nested", "no", "--other", path, pair[0])
        if command == "tar":
            def is_omitted(path):
                return is_nested(path, before, after) or any(
                    path in tree and stat.S_ISSOCK(tree[path]["mode"]) for tree in (before, after))
            wanted = expected(before, after, ["xattrs"])
            yield from compare_rows(f"{pair} with a manifest",
                                    [row for row in rows if not is_omitted(row["path"])],
                                    without(wanted, is_omitted), before, after)
            continue
        hashes = [{path: entry["sha256"] for path, entry in tree.items() if "sha256" in entry}
                  for tree in (before, after)]
        differing = {path for path in hashes[0].keys() | hashes[1].keys()
                     if hashes[0].get(path) != hashes[1].get(path)}
        listed = {row["path"] for row in rows}
        if differing != listed:
            yield f"{pair} with hashes: {sorted(differing ^ listed)[:5]}"


def compare_streams(program, streams, pair, trees):
    """Streams as a file system, and compared with the image. They lack nested subvolumes."""
    before, after = ({path: entry for path, entry in trees[name].items() if entry["inode"] != 2}
                     for name in pair)
    has_nested = any(len(trees[name]) != len(tree) for name, tree in zip(pair, (before, after)))
    same = program.ask("diff", "-q", "--nested", "no", "--other", streams, pair[1])
    if same.returncode or same.stderr or same.stdout:
        yield f"{pair[1]} and {streams}: {same.stdout[:300]} {same.stderr[-300:]}"
    if has_nested:
        return
    wanted = expected(before, after)
    source = kernel.Program(program.path, [streams])
    for title, rows in (
            ("stream", source.rows("diff", "-q", "--by-path", *pair, silent=True)),
            ("image and stream", program.rows("diff", "-q", "--nested", "no", "--other", streams,
                                              *pair, silent=True))):
        yield from compare_rows(f"{pair} {title} {streams}", rows, wanted, before, after)
    for wrong in diff.differences(before, after, source.rows("diff", "-q", *pair, silent=True)):
        yield f"{pair} stream {streams}: {wrong}"


def compare_copies(program, mount, directory, name, tree):
    """An extracted folder, and an archive, which has no sockets. The top stays as it was made."""
    folder = os.path.join(directory, "copy-of-" + name)
    archive = program.require("tar", "--subvol", name).stdout
    for how in ("extract", "tar"):
        os.mkdir(folder)
        if how == "extract":
            program.require("extract", "--preserve", "-C", folder, "--subvol", name)
        else:
            subprocess.run(["tar", "--xattrs", "--xattrs-include=*", "--numeric-owner", "-xpf", "-",
                            "-C", folder], input=archive, check=False,
                           stderr=subprocess.DEVNULL)  # about btrfs.compression
        found = program.ask("diff", "-q", "--nested", "no", "--other", folder, name)
        lines = [line for line in found.stdout.splitlines()
                 if line != b"M\t/\t/" and not (how == "tar" and line.startswith(b"-\t="))]
        if lines or found.returncode:
            yield f"{name} and what {how} made: {lines[:3]} {found.stderr[-300:]}"
        if how == "extract":
            told = run("rsync", "-naHAXi", "--delete", "--checksum", "--filter=-x btrfs.*",
                       "--filter=-x trusted.*", os.path.join(mount, name) + "/", folder + "/")
            lines = [re.sub(r"\\#([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line)
                     for line in told.stdout.splitlines() if line and not line.endswith(" ./")]
            lines = [line for line in lines
                     if not is_nested("/" + line.split(" ", 1)[1].rstrip("/"), tree)]
            if lines:
                yield f"{name} and what extract made, for rsync: {lines[:3]}"
        shutil.rmtree(folder)


def compare_mount(program, directory, name, tree):
    folder = os.path.join(directory, "fuse")
    os.mkdir(folder)
    with subprocess.Popen(program.words("mount", folder), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not os.path.ismount(folder):
            time.sleep(0.1)
        shown = kernel.read_tree(os.path.join(folder, name))
        run("umount", folder)
    for path in sorted(tree.keys() | shown.keys()):
        one, other = tree.get(path), shown.get(path)
        if one is None or other is None:
            yield f"mount: {path!r} {'is not there' if one else 'is listed'}"
        elif one["inode"] != 2:
            yield from (f"mount: {path!r}: {key}: {one[key]}, mounted {other.get(key)}"
                        for key in one if key not in ("inode", "blocks")
                        and one[key] != other.get(key))


def write_streams(program, source, directory):
    """Folders with our streams and the kernel's, each based on the one before."""
    streams = []
    for number, words in enumerate((["first"], ["-p", "first", "second"],
                                    ["-p", "second", "--clone-source", "first", "third"])):
        protocol = source.random.choice(list(send.PROTOCOLS.values()))
        streams.append(program.require("send", *protocol, *words, silent=True).stdout)
    for kind, made in (("ours", streams), ("kernel", source.chain)):
        folder = os.path.join(directory, kind)
        os.mkdir(folder)
        for number, stream in enumerate(made):
            with open(os.path.join(folder, str(number)), "wb") as file:
                file.write(stream)
        yield folder


def compare(options, seed, directory):
    chance = random.Random(seed)
    with send.Source(seed, os.path.join(directory, "source")) as source:
        source.make()
        source.begin()
        for name in ("first", "second", "third"):
            source.work(chance.choice([3, 20, 60]))
            source.take_snapshot(name)
            if chance.random() < 0.5:
                source.remount()
        source.unmount()
        copies = kernel.copy_images(source.images, os.path.join(directory, "copy"))
        source.mount_loops("ro", "noatime")
        program = kernel.Program(options.program, copies)
        folders = list(write_streams(program, source, directory))
        for pair in PAIRS:
            yield from compare_images(program, source.mount, source.images, pair, source.trees)
            yield from compare_lists(program, directory, pair, source.trees)
            for folder in folders:
                yield from compare_streams(program, folder, pair, source.trees)
        name = chance.choice(["first", "second", "third"])
        target = kernel.FileSystem(os.path.join(directory, "target"))
        with target:
            run("mkfs.btrfs", "-q", target.add_image(4 << 30), check=True)
            target.attach()
            yield from compare_copies(program, source.mount, target.mount, name,
                                      source.trees[name])
        yield from compare_mount(program, directory, name, source.trees[name])


def main():
    kernel.need("mkfs.btrfs", "btrfs", "rsync", "tar", "xfs_io", "setcap", "setfacl")
    options = kernel.parser(__doc__).parse_args()
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
