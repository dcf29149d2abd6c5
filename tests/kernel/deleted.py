#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""deleted - fifty commits, all recorded: what `deleted` prints of them must be true, and complete

usage: sudo tests/kernel/deleted.py [--count N] [--commits N] [--seed S] [--only NAME]
                                    [--program PROGRAM] [--keep DIRECTORY] [--restore]
                                    [--table FILE]

Makes file systems of each of the kinds below in turn and changes them at random: files are written,
overwritten, renamed and deleted, subvolumes and snapshots made and deleted. After each commit the
inode, generation, size and SHA-256 of every file are recorded through the mount. Then

  - every file that `deleted` calls verified must have the hash that was recorded for it;
  - every file that is in a recorded generation which is still whole, but not in the last one, must
    be listed;
  - `deleted --extract` must write the same contents;
  - and after nine tenths of the free space have been overwritten, no wrong contents may be called
    verified, and no file that is not whole may be extracted under its own name.

--restore also runs `btrfs-find-root -a`, and `btrfs restore` with each root that it names. For both
it counts how many of the deleted contents they bring back ("right"), and how many contents that no
file ever had ("false"); for `deleted --extract` also with --unverified. --table appends a row for
each case to a file. Needs root, mkfs.btrfs and a kernel with btrfs.
"""
import collections
import fcntl
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import time

import kernel
from kernel import run

INO_LOOKUP = 0xD0009412
GETVERSION = 0x80087601
SIZE = 1 << 29
KINDS = {
    "single": (1, ["-m", "single"], ""),
    "dup": (1, ["-m", "dup"], ""),
    "compressed": (1, [], "compress-force=zstd"),
    "nodatacow": (1, [], "nodatacow"),
    "raid1": (2, ["-m", "raid1", "-d", "raid1"], ""),
    "4k-nodes": (1, ["-n", "4096", "-s", "4096"], ""),
}
# A file as it was recorded: its identity is (subvolume, inode, generation of the inode).
File = collections.namedtuple("File", "identity path kind size digest")


def subvolume_of(path):
    """The id of the subvolume that a directory is in."""
    folder = os.open(path, os.O_RDONLY)
    answer = bytearray(struct.pack("=QQ4080x", 0, 256))
    try:
        fcntl.ioctl(folder, INO_LOOKUP, answer)
    finally:
        os.close(folder)
    return struct.unpack_from("=Q", answer)[0]


def generation_of(path):
    """The generation of the inode of a file or directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return struct.unpack("=I4x", fcntl.ioctl(descriptor, GETVERSION, bytes(8)))[0]
    finally:
        os.close(descriptor)


def walk(top):
    """As os.walk(), without the empty directories that snapshots have in place of subvolumes."""
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if os.lstat(os.path.join(folder, f)).st_ino != 2]
        yield folder, names


class Work(kernel.FileSystem):
    """A file system that is changed, and what it held after each commit."""

    def __init__(self, kind, seed, directory):
        super().__init__(directory)
        self.count, self.format, self.options = KINDS[kind]
        self.random = random.Random(seed)
        self.generations = {}  # by generation: by identity, a File
        self.digests = {}  # by identity and times
        self.number = 0

    def make(self):
        loops = [self.add_image(SIZE) for _ in range(self.count)]
        run("mkfs.btrfs", "-q", "-f", *self.format, *loops, check=True)

    def attach(self):
        super().attach("noatime", "nodiscard", *[self.options] * bool(self.options))

    # Changes.

    def all(self, kind):
        """Paths of files (f), directories (d) or subvolumes (s)."""
        found = []
        for top, files in walk(self.mount):
            if kind == "f":
                found += [os.path.join(top, name) for name in files]
            elif kind == "d" or (top != self.mount and os.stat(top).st_ino == 256):
                found.append(top)
        return sorted(found)

    def some(self, kind):
        found = self.all(kind)
        return self.random.choice(found) if found else None

    def fresh(self):
        self.number += 1
        return os.path.join(self.some("d"), f"name-{self.number}")

    def content(self):
        size = self.random.choice([0, 30, 2000, 5000, 40000, 300000])
        if self.random.random() < 0.5:
            return self.random.randbytes(size)
        line = f"line {self.random.random()}\n".encode()
        return (line * (size // len(line) + 1))[:size]

    def write(self):
        with open(self.fresh(), "wb") as file:
            file.write(self.content())

    def overwrite(self):
        if path := self.some("f"):
            with open(path, "rb+") as file:
                file.seek(self.random.randrange(max(1, os.path.getsize(path))))
                file.write(self.content())

    def delete(self):
        if path := self.some("f"):
            os.unlink(path)

    def rename(self):
        if path := self.some("f"):
            target = self.fresh()
            if os.stat(path).st_dev == os.stat(os.path.dirname(target)).st_dev:
                os.rename(path, target)

    def save(self):
        """Replaces a file as editors do."""
        if path := self.some("f"):
            with open(path + "~", "wb") as file:
                file.write(self.content())
            os.rename(path + "~", path)

    def link(self):
        if path := self.some("f"):
            self.number += 1
            os.link(path, os.path.join(os.path.dirname(path), f"link-{self.number}"))

    def folder(self):
        path = self.fresh()
        os.mkdir(path)
        for i in range(self.random.choice([2, 12])):
            with open(os.path.join(path, f"file-{i}"), "wb") as file:
                file.write(self.content())

    def remove_folder(self):
        path = self.some("d")
        if path != self.mount and os.stat(path).st_ino != 256 and \
                not any(os.stat(folder).st_ino in (2, 256) for folder, _, _ in os.walk(path)):
            shutil.rmtree(path)

    def subvolume(self):
        run("btrfs", "subvolume", "create", self.fresh(), check=True)

    def snapshot(self):
        if path := self.some("s"):
            run("btrfs", "subvolume", "snapshot", path, f"{self.mount}/snap-{self.number}")
            self.number += 1

    def delete_subvolume(self):
        path = self.some("s")
        if path and not any(s.startswith(path + "/") for s in self.all("s")):
            run("btrfs", "subvolume", "delete", path, check=True)

    def change(self):
        often = [self.write, self.write, self.overwrite, self.delete, self.rename, self.save]
        seldom = [self.link, self.folder, self.folder, self.remove_folder]
        commits = [self.subvolume, self.snapshot, self.delete_subvolume]
        if self.random.random() < 0.3:
            self.random.choice(commits)()
        for _ in range(self.random.choice([1, 3, 8])):
            self.random.choice(often if self.random.random() < 0.75 else seldom)()

    # Recording.

    def digest(self, identity, path, status):
        key = (identity, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        if key not in self.digests:
            self.digests[key] = kernel.digest(path)
        return self.digests[key]

    def read(self):
        files, ids = {}, {}
        for top, names in walk(self.mount):
            for path in [top] + [os.path.join(top, name) for name in names]:
                status = os.lstat(path)
                if status.st_dev not in ids:
                    ids[status.st_dev] = subvolume_of(top)
                identity = (ids[status.st_dev], status.st_ino, generation_of(path))
                plain = stat.S_ISREG(status.st_mode)
                files[identity] = File(identity, path[len(self.mount):] or "/",
                                       "f" if plain else "d", status.st_size,
                                       self.digest(identity, path, status) if plain else None)
        return files

    def commit(self):
        self.sync()
        run("sync", "-f", self.mount, check=True)
        with open(self.images[0], "rb") as image:
            image.seek(0x10048)
            generation = struct.unpack("<Q", image.read(8))[0]
        self.generations[generation] = self.read()

    def fill(self):
        """Overwrites nine tenths of the free space."""
        free = shutil.disk_usage(self.mount).free
        with open(self.mount + "/filler", "wb") as file:
            for _ in range(free * 9 // 10 >> 20):
                file.write(self.random.randbytes(1 << 20))
        self.commit()


class Comparison:
    """Compares the output of the program with what was recorded."""

    def __init__(self, history, program):
        self.history, self.program = history, kernel.Program(program, history.images)
        self.wrong = []
        self.seen = {}  # by subvolume and inode: all recorded hashes
        for files in history.generations.values():
            for file in files.values():
                self.seen.setdefault(file.identity[:2], set()).add(file.digest)

    def ask(self, command, *words):
        result = self.program.ask(command, *words)
        if result.returncode > 1:
            self.wrong.append(f"{command}: {result.stderr[:200]}")
        return result

    def sums_of(self, root):
        """Hashes of all files of a generation that can be read, by path."""
        text = self.ask("sum", "-q", "--tree-root", root).stdout.decode(errors="replace")
        lines = text.splitlines()
        return {line[66:]: line[:64] for line in lines}

    def whole(self):
        """Recorded generations whose metadata are complete."""
        rows = kernel.json_rows(self.ask("roots", "--json"))
        return {row["generation"] for row in rows
                if row.get("lost_blocks") == 0 and row["status"] != "abandoned"}

    def check_proofs(self, rows):
        roots, proven = {}, 0
        for row in rows:
            if row["type"] != "file" or row["recoverable"] != "verified":
                continue
            root = f"{row['tree_root']}@{row['generation']}"
            if root not in roots:
                roots[root] = self.sums_of(root)
            known = self.seen.get((row["subvolume"], row["inode"]), set())
            recorded = self.history.generations.get(row["generation"], {}).values()
            exact = {f.digest for f in recorded
                     if f.identity[:2] == (row["subvolume"], row["inode"])}
            digest = roots[root].get(row["path"])
            proven += 1
            if digest and digest not in (exact or known) and (exact or known):
                self.wrong.append(f"a false proof: {row}")
        return proven

    def check_all_listed(self, rows):
        """Compares by identity, since each inode number is used only once in a subvolume."""
        last = self.history.generations[max(self.history.generations)]
        listed = {(row["subvolume"], row["inode"]) for row in rows}
        whole, missing = self.whole() & set(self.history.generations), 0
        gone = {identity: file for generation in whole
                for identity, file in self.history.generations[generation].items()
                if identity not in last}
        for identity, file in gone.items():
            if identity[:2] not in listed:
                missing += 1
                self.wrong.append(f"not listed: {file}")
        for row in rows:
            if any(i[:2] == (row["subvolume"], row["inode"]) for i in last):
                self.wrong.append(f"not deleted: {row}")
        return gone

    def known(self):
        return {digest for digests in self.seen.values() for digest in digests}

    def extraction(self, work, *words):
        """Extracts the deleted files; returns the directory and the hashes by path."""
        target = work + "/extracted"
        shutil.rmtree(target, ignore_errors=True)
        self.ask("deleted", "-q", *words, "--extract", target)
        return target, hashes_below(target)

    def check_extraction(self, rows, work):
        target, contents = self.extraction(work)
        for row in rows:
            if row["type"] == "file" and row["recoverable"] == "verified" and \
                    not os.path.lexists(target + row["path"]) and \
                    not os.path.lexists(f"{target}{row['path']}.~{row['generation']}~"):
                self.wrong.append(f"not extracted: {row}")
        known = self.known()
        for path in [p for p, digest in contents.items() if digest not in known]:
            self.wrong.append(f"extracted with other contents: {path}")
        return set(contents.values())

    def check_names(self, work):
        """The name of a file that has lost some of its data must end with its generation."""
        known = self.known()
        for path, digest in self.extraction(work, "--on-error", "zero")[1].items():
            if digest not in known and not re.search(r"\.~\d+~$", path):
                self.wrong.append(f"not whole, under its own name: {path}")

    def rows(self):
        start = time.monotonic()
        result = self.ask("deleted", "--json")
        return kernel.json_rows(result), time.monotonic() - start


def hashes_below(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found[path] = kernel.digest(path)
    return found


def restore_all(history, work):
    """What `btrfs restore` brings back with each root that `btrfs-find-root -a` names."""
    start, found, roots = time.monotonic(), set(), 0
    for line in run("btrfs-find-root", "-a", history.images[0]).stdout.splitlines():
        if not line.startswith("Well block "):
            continue
        target = work + "/restored"
        os.makedirs(target, exist_ok=True)
        run("btrfs", "restore", "-s", "-i", "-t", line[11:].split("(")[0], history.images[0],
            target, stdin=subprocess.DEVNULL)
        found |= set(hashes_below(target).values())
        shutil.rmtree(target)
        roots += 1
    return found, roots, time.monotonic() - start


class Result:
    """A row of the table in bench/results.md."""

    def __init__(self, kind):
        self.kind = kind
        self.deleted = self.proven = self.proven_after = self.false_proofs = self.contents = 0
        self.roots = "-"
        self.found = {}  # by who found them: right contents, false ones, time

    def count(self, comparison, contents, who, found, seconds):
        false = len(found - comparison.known())
        self.found[who] = [len(contents & found), false, f"{seconds:.2f} s"]

    def row(self):
        ours, restore = self.found["ours"], self.found.get("restore", ["-"] * 3)
        words = [self.kind, self.deleted, self.proven, self.proven_after, self.false_proofs,
                 self.contents, *ours[:2], *self.found["unproven"][:2], ours[2], self.roots,
                 *restore]
        return "| " + " | ".join(str(word) for word in words) + " |"


def compare(options, case, directory):
    kind, seed = case
    history = Work(kind, seed, directory)
    history.make()
    history.attach()
    for _ in range(options.commits):
        history.change()
        history.commit()
    history.detach()
    comparison = Comparison(history, options.program)
    result = Result(kind)
    rows, seconds = comparison.rows()
    result.proven = comparison.check_proofs(rows)
    gone = comparison.check_all_listed(rows)
    contents = {f.digest for f in gone.values() if f.digest and f.size}
    result.deleted, result.contents = len(gone), len(contents)
    result.count(comparison, contents, "ours", comparison.check_extraction(rows, directory),
                 seconds)
    result.count(comparison, contents, "unproven",
                 set(comparison.extraction(directory, "--unverified")[1].values()), 0)
    if options.restore:
        restored, result.roots, seconds = restore_all(history, directory)
        result.count(comparison, contents, "restore", restored, seconds)
    history.attach()
    history.fill()
    history.detach()
    result.proven_after = comparison.check_proofs(comparison.rows()[0])
    result.false_proofs = sum(line.startswith("a false proof") for line in comparison.wrong)
    comparison.check_names(directory)
    print(result.row(), flush=True)
    if options.table:
        with open(options.table, "a", encoding="ascii") as table:
            print(result.row(), file=table)
    return comparison.wrong


def main():
    parser = kernel.parser(__doc__, len(KINDS))
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--restore", action="store_true")
    parser.add_argument("--table")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "btrfs-find-root")
    cases = {name: (options.only or list(KINDS)[seed % len(KINDS)], seed)
             for name, seed in kernel.seeds(options).items()}
    return kernel.compare_each(options, cases, compare)


if __name__ == "__main__":
    sys.exit(main())
