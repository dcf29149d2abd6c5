#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""generations - every generation that `roots` calls whole must be what was recorded of it

usage: sudo tests/kernel/generations.py [--count N] [--commits N] [--seed S] [--program PROGRAM]
                                        [--keep DIRECTORY]

Each history (history.py) has one of some profiles and options, and commits 50 transactions with
writes, overwrites, renames, deletions, snapshots and deletions of subvolumes. After each commit
everything is read through the mount: names, stat, SHA-256. In the end `roots` lists the generations
that are still on the disk. For each that it calls whole and committed, the listing with
--generation must equal the record, and so must all hashes that `sum` prints; data may have been
overwritten since, but then it must say so. `check --generation` must find nothing wrong with the
metadata of some of them, but for what was being deleted. Needs root, mkfs.btrfs and a kernel with
btrfs.
"""
import os
import stat
import sys

import kernel
from history import History
from kernel import run

PROFILES = [["-m", "single"], ["-m", "dup"], ["-m", "raid1", "-d", "raid0"],
            ["-m", "raid1", "-d", "raid1"], ["-m", "raid0", "-d", "raid0"],
            ["-m", "raid5", "-d", "raid5"], ["--mixed", "-n", "4096"]]
TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink",
         stat.S_IFIFO: "fifo", stat.S_IFCHR: "character-device", stat.S_IFBLK: "block-device",
         stat.S_IFSOCK: "socket"}


class Generations(History):
    """A history whose tree is recorded at each commit."""

    def make(self):
        profile = self.random.choice(PROFILES)
        devices = [self.image() for _ in range(2 if "raid" in "".join(profile) else 1)]
        if "raid5" in profile:
            devices.append(self.image())
        command = ["mkfs.btrfs", "-q", "-f", *profile]
        if self.random.random() < 0.3:
            command += ["-R", "quota"]
        self.made = " ".join(command)
        run(*command, *devices, check=True)
        self.options = ["noatime", "commit=300"]
        self.options += self.random.choice([[], ["compress=zstd"], ["max_inline=0"]])
        self.attach()
        self.records = {}

    def many(self):
        directory = self.fresh()
        os.mkdir(directory)
        for i in range(60):
            with open(os.path.join(directory, f"file{i}"), "w", encoding="ascii") as file:
                file.write("x" * (i % 3000))

    def work(self, commits):
        steps = [self.write] * 4 + [self.overwrite] * 3 + [self.rename] * 2 + [
            self.many, self.truncate, self.clone, self.link, self.remove, self.remove,
            self.special, self.attribute, self.subvolume, self.snapshot, self.snapshot, self.drop,
            self.remove_tree]
        for _ in range(commits):
            for _ in range(self.random.choice([1, 4, 12])):
                self.attempt(self.random.choice(steps))
            self.sync()
            self.records[self.generation()] = record_tree(self.mount)

    def generation(self):
        text = run("btrfs", "inspect-internal", "dump-super", self.loops[0]).stdout
        return next(int(line.split()[1]) for line in text.splitlines()
                    if line.startswith("generation"))


def record_tree(top):
    """Rows, as `walk` prints them, and hashes by path. An entry of a subvolume that a snapshot does
    not have is an empty directory with inode 2, which `walk` does not show like that."""
    rows, hashes = {}, {}
    for path, entry in kernel.read_tree(top).items():
        if path == "/" or entry["inode"] == 2:
            continue
        row = {key: entry[key] for key in ("mode", "uid", "gid", "mtime", "inode")}
        row["type"] = TYPES[stat.S_IFMT(entry["mode"])]
        if row["type"] != "directory":
            row.update(size=entry["size"], nlink=entry["nlink"])
        rows[path] = row
        if row["type"] == "file":
            hashes[path] = entry["sha256"]
    return rows, hashes


def listed(program, words):
    """What `walk` prints of a generation."""
    result = program.ask("walk", "--json", "--type", "f,d,l,c,b,p,s", *words,
                         "-o", "type,mode,uid,gid,mtime,inode,size,nlink,path")
    rows = {}
    for row in kernel.json_rows(result):
        path = row.pop("path")
        row.pop("path_bytes", None)
        if row["type"] == "directory":
            row.pop("size", None)
            row.pop("nlink", None)
        if path != "/" and row["inode"] != 2:
            rows[path] = row
    return result, rows


def hashes_of(program, words):
    result = program.ask("sum", "-0", *words)
    lines = result.stdout.decode().split("\0")[:-1]
    return result, {line[66:]: line[:64] for line in lines}


def compare_generation(program, words, record):
    """Returns a list of what is wrong."""
    rows, hashes = record
    result, found = listed(program, words)
    bad = []
    if result.returncode or found != rows:
        wrong = [path for path in set(rows) | set(found) if rows.get(path) != found.get(path)]
        bad.append(f"walk {result.returncode}: {len(wrong)} of {len(rows)} rows differ: "
                   f"{[(p, rows.get(p), found.get(p)) for p in wrong[:3]]} {result.stderr[:300]}")
    result, found = hashes_of(program, words)
    lost = set(hashes) - set(found)
    wrong = [path for path in found if hashes.get(path) != found[path]]
    if wrong or (result.returncode == 0) == bool(lost):
        bad.append(f"sum {result.returncode}: {len(wrong)} wrong, {len(lost)} lost {wrong[:3]}")
    return bad


def names_of(generation, states):
    """The options that select the whole states of a generation. With quotas, two states of one
    generation can look committed; since either may be the recorded one, both have to be whole."""
    committed = [state for state in states if state["generation"] == generation and
                 state["status"] == "committed"]
    if len(committed) == 1:
        return [["--generation", str(generation)]]
    if any(state["recoverable"] != "whole" for state in committed):
        return []
    return [["--tree-root", f"{state['tree_root']}@{generation}"] for state in committed]


def check(program, words):
    """What `check` finds in a whole generation. A subvolume that was being deleted need not be
    whole."""
    result = program.ask("check", "--json", "--all", *words)
    findings = kernel.json_rows(result)
    subvolumes = kernel.json_rows(program.ask("subvolumes", "--json", "--deleted", *words))
    deleted = {subvolume["subvolume"] for subvolume in subvolumes if subvolume["deleted"]}
    wrong = [finding for finding in findings
             if finding.get("severity") == "error" and finding.get("tree") not in deleted]
    if result.returncode and (wrong or not findings):
        return [f"check {words}: {result.returncode} {wrong[:3]}"]
    return []


def differences(program, history):
    states = program.rows("roots")
    whole = {state["generation"] for state in states if state.get("recoverable") == "whole" and
             state["status"] == "committed" and state["generation"] in history.records}
    names = []
    for generation in sorted(whole):
        results = [(compare_generation(program, words, history.records[generation]), words)
                   for words in names_of(generation, states)]
        if results:
            wrong, words = min(results, key=lambda result: len(result[0]))
            yield from (f"generation {generation}: {what}" for what in wrong)
            names.append(words)
    for words in names[:1] + names[len(names) // 2:][:1] + names[-1:]:
        yield from check(program, words)
    print(f"  {len(history.records)} commits, {len(states)} in the list, {len(names)} compared",
          flush=True)


def compare(options, seed, directory):
    history = Generations(seed, directory)
    history.make()
    history.work(options.commits)
    history.detach()
    program = kernel.Program(options.program, history.images)
    for wrong in differences(program, history):
        yield f"{wrong}: {history}"


def main():
    parser = kernel.parser(__doc__, 5)
    parser.add_argument("--commits", type=int, default=50)
    options = parser.parse_args()
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
