#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""metadump - metadumps of random file systems, compared with those of btrfs-image

usage: sudo tests/kernel/metadump.py [--count N] [--seed S] [--keep DIRECTORY]

For each history (history.py), and without names as well as with them:

- our metadump has the same blocks as that of `btrfs-image -w`, byte by byte, except for the device
  of the superblock, checksums other than CRC-32C, and hashes of fs-verity;
- it lists the same files as the images, and `check` finds the same in both;
- no name, target of a link, value of an attribute, or contents occur in the one without names, and
  two of them differ only in names;
- if `btrfs-image -r` can restore its own metadump, it can restore ours; and if `btrfs check` or a
  mount accept the result for the former, they accept the latter, and the mount shows all files.

Needs root, mkfs.btrfs, btrfs-image and a kernel with btrfs.
"""
import os
import sys

import kernel
from history import History
from kernel import run

sys.path.insert(0, os.path.join(kernel.TOP, "tests", "support"))
import metadump_items  # noqa: E402

COLUMNS = "size,mode,uid,gid,mtime,inode,nlink"
CRC32C = 0
VERITY = (36, 37)
NAMES = (12, 13, 24, 84, 96, 144, 156)
# `check` reports these only about metadumps, or only about images.
OF_METADUMPS = {"metadump", "data-absent", "super-copy", "parity-unchecked", "parity-mismatch"}
# Metadumps without names do not have the space cache.
OF_CACHES = {"space-cache-stale", "space-cache-damaged", "space-cache-differs"}


class Case:
    """A history that has ended, and the metadumps of it."""

    def __init__(self, options, seed, directory):
        self.directory = directory
        self.history = History(seed, directory)
        self.history.make()
        self.history.work()
        self.history.end()
        self.images = kernel.Program(options.program, self.history.images)
        with open(self.history.images[0], "rb") as file:
            file.seek(65536 + 196)
            self.checksum_type = int.from_bytes(file.read(2), "little")

    def path(self, name):
        return os.path.join(self.directory, name)

    def dump(self, name, *options):
        """Writes a metadump; returns the program for it."""
        self.images.require("metadump", "-f", self.path(name), *options)
        return kernel.Program(self.images.path, [self.path(name)])


def explained(case, line):
    """Whether a difference from btrfs-image is intended."""
    words = line.split()
    return (words[1] == "superblock" or (words[1] == "checksum" and case.checksum_type != CRC32C) or
            (words[1] == "item" and int(words[2]) in VERITY))


def compare_blocks(case):
    case.dump("checksums.bti", "--checksums")
    case.history.add_loops("-r")
    run("btrfs", "device", "scan", *case.history.loops)
    theirs = run("btrfs-image", "-c0", "-w", case.history.loops[0], case.path("theirs.bti"))
    case.history.detach()
    if theirs.returncode:
        run("rm", "-f", case.path("theirs.bti"))
        print(f"skipped: without btrfs-image: {theirs.stdout[-200:]}", flush=True)
        return
    lines = metadump_items.compare_lines(case.path("checksums.bti"), case.path("theirs.bti"))
    for line in lines:
        if not explained(case, line):
            yield f"btrfs-image: {line}"


def listing(program, columns):
    result = program.require("ls", "-R", "-a", "-o", columns, statuses=(0, 1))
    return sorted(result.stdout.split(b"\n"))


def findings(program):
    rows = kernel.json_rows(program.ask("check", "--json"))
    return {row["code"] for row in rows if "code" in row} - OF_METADUMPS


def compare_listing(case, dump, name, columns, ignored=frozenset()):
    if listing(dump, columns) != listing(case.images, columns):
        yield f"{name}: other files"
    ours, theirs = (findings(program) - ignored for program in (dump, case.images))
    if ours != theirs:
        yield f"{name}: check finds {sorted(ours)}, but in the images {sorted(theirs)}"


def secrets(case):
    """Names of more than 4 bytes, targets, values of attributes, and beginnings of contents."""
    case.history.attach_read_only("rescue=nologreplay")
    found = {b"default"}
    for path, entry in kernel.read_tree(case.history.mount).items():
        found |= {os.fsencode(part) for part in path.split("/")}
        found.add(os.fsencode(entry.get("target", "")))
        full = case.history.mount + path
        for attribute in entry.get("xattrs", ()):
            if not attribute.startswith("btrfs."):
                found.add(os.getxattr(full, attribute, follow_symlinks=False))
        if "sha256" in entry:
            with open(full, "rb") as file:
                found.add(file.read(32))
    case.history.detach()
    # beginnings that are zeros but for a few bytes occur by chance
    return {secret for secret in found if len(secret.strip(b"\0")) > 4} - {b"default"}


def compare_secrets(case, dump):
    case.dump("again.bti", "--sanitize", "--compress", "1")
    for line in metadump_items.compare_lines(case.path("again.bti"), dump.images[0]):
        words = line.split()
        if words[1] != "item" or int(words[2]) not in NAMES:
            yield f"two metadumps without names differ: {line}"
    everything = b"\n".join(data for _, data in metadump_items.pieces(dump.images[0]))
    for secret in sorted(secrets(case)):
        if secret in everything:
            yield f"without names: {secret!r} occurs"


def lengths(path):
    """The lengths of a link's target, and of the values of attributes, which the kernel decodes."""
    target = [len(os.readlink(path))] if os.path.islink(path) else []
    return target + sorted(len(os.getxattr(path, name, follow_symlinks=False))
                           for name in os.listxattr(path, follow_symlinks=False))


def numbers(top):
    """Inode numbers and sizes of everything below a folder, or of a mount."""
    return sorted((os.lstat(path).st_ino, os.lstat(path).st_size, lengths(path))
                  for folder, folders, files in os.walk(os.fsencode(top))
                  for path in (os.path.join(folder, name) for name in folders + files))


def restore(case, dump):
    """Restores a metadump: the statuses of this and of `btrfs check`, what a mount shows (None: it
    cannot be mounted), and the messages."""
    restored = kernel.make_image(case.path("restored.img"), 16 << 30)
    results = [run("btrfs-image", "-r", dump, restored)]
    shown = None
    if not results[0].returncode:
        results.append(run("btrfs", "check", "--readonly", restored))
        try:
            with kernel.FileSystem(case.path("restored"), [restored]) as system:
                system.attach_read_only("rescue=idatacsums", "rescue=nologreplay")
                shown = numbers(system.mount)
        except kernel.NotMade:
            pass
    os.unlink(restored)
    return [result.returncode for result in results], shown, results[-1].stdout[-800:]


def compare_restored(case, dumps):
    case.history.attach_read_only("rescue=nologreplay")
    wanted = numbers(case.history.mount)
    case.history.detach()
    control, control_shown, _ = restore(case, case.path("theirs.bti"))
    for name, dump in dumps.items():
        statuses, shown, text = restore(case, dump.images[0])
        if not control[0] and statuses != control:
            yield f"{name}: restored with {statuses}, but btrfs-image's with {control}: {text}"
        if control_shown is not None and shown != wanted:
            yield f"{name}: a mount of the restored image shows other files"


def compare(options, seed, directory):
    case = Case(options, seed, directory)
    yield from compare_blocks(case)
    named = case.dump("named.bti", "--compress", "1")
    nameless = case.dump("nameless.bti", "--sanitize", "--compress", "1")
    yield from compare_listing(case, named, "with names", "path," + COLUMNS)
    yield from compare_listing(case, nameless, "without names", COLUMNS, OF_CACHES)
    yield from compare_secrets(case, nameless)
    if os.path.exists(case.path("theirs.bti")):
        yield from compare_restored(case, {"with names": named, "without names": nameless})


def main():
    options = kernel.parser(__doc__, count=10).parse_args()
    kernel.need("mkfs.btrfs", "btrfs-image", "losetup")
    sys.exit(kernel.compare_each(options, kernel.seeds(options), compare))


if __name__ == "__main__":
    main()
