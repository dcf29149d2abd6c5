#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""diff - random changes between two snapshots: `diff` must list all of them, and no others

usage: sudo tests/kernel/diff.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

Each history (history.py) works in one subvolume. A snapshot is taken in the middle and one at the
end. Then both are read through a mount (names, stat, extended attributes, SHA-256), and the
differences that `diff --json` lists, applied to the first one, must give the second one exactly; so
must those in the other direction, and those that are found path by path. Finally the subvolume
is defragmented, deduplicated and balanced: against a third snapshot no content may differ. Needs
root, mkfs.btrfs and a kernel with btrfs.
"""
import fcntl
import os
import random
import shutil
import stat
import struct
import sys

import kernel
from history import History
from kernel import run

FIDEDUPERANGE = 0xC0189436


class Work(History):
    """A history in the subvolume `live`."""

    def begin(self):
        run("btrfs", "subvolume", "create", self.path("live"), check=True)
        self.subvolumes = ["live"]

    def inside(self, path):
        return path and path != self.path("live")

    def forget(self):
        pass

    def remove_tree(self):
        path = self.some("d")
        if self.inside(path):
            shutil.rmtree(path, ignore_errors=True)

    def swap_names(self):
        a, b = self.some(), self.some()
        if a and b and a != b:
            middle = self.path("live", "swapping")
            os.rename(a, middle)
            os.rename(b, a)
            os.rename(middle, b)

    def save(self):
        """As editors save a file; sometimes with nothing changed."""
        if path := self.some():
            shutil.copy2(path, path + "~")
            if self.random.random() < 0.5:
                with open(path + "~", "ab") as file:
                    file.write(b"more")
            os.rename(path + "~", path)

    def same_again(self):
        """Rewrites a file with the same bytes."""
        if path := self.some():
            with open(path, "rb+") as file:
                content = file.read(1 << 20)
                file.seek(0)
                file.write(content)

    def other_type(self):
        if path := self.some():
            os.unlink(path)
            kind = self.random.randrange(3)
            if kind == 0:
                os.mkdir(path)
                with open(os.path.join(path, "inside"), "w", encoding="ascii") as file:
                    file.write("inside")
            elif kind == 1:
                os.symlink("elsewhere", path)
            else:
                os.mkfifo(path)

    def mode(self):
        if path := self.some(self.random.choice("fd")):
            os.chmod(path, self.random.choice([0o600, 0o644, 0o755, 0o4711]))

    def owner(self):
        if path := self.some(self.random.choice("fd")):
            os.chown(path, self.random.randrange(3), self.random.randrange(3))

    def move_directory(self):
        path, target = self.some("d"), self.some("d")
        if self.inside(path) and not (target + "/").startswith(path + "/"):
            os.rename(path, os.path.join(target, f"moved{self.random.randrange(5)}"))

    def new_directory(self):
        path = self.fresh()
        os.mkdir(path)
        for i in range(self.random.choice([1, 5])):
            with open(os.path.join(path, f"file{i}"), "wb") as file:
                file.write(self.random.randbytes(self.random.choice([10, 5000])))

    def same_directory(self):
        """Deletes a directory and creates another one with its name."""
        path = self.some("d")
        if self.inside(path):
            copy = path + ".copy"
            shutil.copytree(path, copy, symlinks=True, copy_function=copy_regular)
            shutil.rmtree(path)
            os.rename(copy, path)

    def drop_attribute(self):
        if path := self.some():
            for name in os.listxattr(path):
                if name.startswith("user."):
                    os.removexattr(path, name)

    def no_copy(self):
        path = self.fresh()
        with open(path, "wb"):
            pass
        run("chattr", "+C", path)
        with open(path, "wb") as file:
            file.write(self.random.randbytes(self.random.choice([5000, 200000])))

    def deduplicate(self):
        """Deduplicates two files with the same content."""
        path = self.some()
        if not path or os.path.getsize(path) < 4096:
            return
        copy = self.fresh()
        shutil.copyfile(path, copy)
        deduplicate(path, copy)

    def nested(self):
        run("btrfs", "subvolume", "create", self.fresh())

    def usual_steps(self):
        return [self.write] * 4 + [self.overwrite] * 3 + [self.rename] * 3 + [
            self.remove, self.allocate, self.allocate, self.truncate, self.clone,
            self.clone_range, self.link, self.special, self.attribute, self.flag,
            self.remove_tree, self.defragment, self.keep_open, self.swap_names, self.save,
            self.save, self.same_again, self.other_type, self.mode, self.owner,
            self.move_directory, self.move_directory, self.new_directory, self.same_directory,
            self.drop_attribute, self.no_copy, self.deduplicate]

    def rare_steps(self):
        return [self.nested, self.nested, self.balance, self.sync, self.remount]

    def work(self, steps):
        usual, rare = self.usual_steps(), self.rare_steps()
        for _ in range(steps):
            self.attempt(self.random.choice(rare if self.random.random() < 0.05 else usual))

    def snapshot_as(self, name):
        self.close()
        run("btrfs", "subvolume", "snapshot", "-r", self.path("live"), self.path(name), check=True)

    def reshape(self):
        """Moves data without changing any."""
        files = [path for path in self.files() if os.path.getsize(path) >= 4096]
        for path in files:
            kind = self.random.choice([["-f"], ["-czstd"], ["-clzo"], []])
            run("btrfs", "filesystem", "defragment", *kind, path)
        by_content = {}
        for path in files:
            key = kernel.digest(path)
            if key in by_content:
                deduplicate(by_content[key], path)
            by_content[key] = path
        self.sync()
        run("btrfs", "balance", "start", "-d", self.mount)


def copy_regular(source, target):
    """Skips device nodes, since reading one might never end."""
    if os.path.isfile(source):
        shutil.copy2(source, target)


def deduplicate(source, target):
    size = os.path.getsize(source)
    with open(source, "rb") as first, open(target, "rb+") as second:
        request = bytearray(struct.pack("=QQHHI qQQiI", 0, size, 1, 0, 0,
                                        second.fileno(), 0, 0, 0, 0))
        try:
            fcntl.ioctl(first.fileno(), FIDEDUPERANGE, request)
        except OSError:
            pass


# The fields that each word of `diff` stands for.
ASPECTS = {"content": ("sha256", "target", "device"), "size": ("size",), "mode": ("mode",),
           "owner": ("uid", "gid"), "times": ("mtime",), "links": ("nlink",),
           "xattrs": ("xattrs",)}
NOT_OF_DIRECTORIES = ("content", "size", "links")


def type_of(entry):
    return stat.S_IFMT(entry["mode"])


def changes_of(before, after):
    """The words for what differs between two entries of the same type. Nested subvolumes are not
    part of a snapshot, so only their location is compared."""
    if before["inode"] == 2 or after["inode"] == 2:
        return []
    words = [word for word, keys in ASPECTS.items()
             if any(before.get(key) != after.get(key) for key in keys)]
    if stat.S_ISDIR(before["mode"]):
        words = [word for word in words if word not in NOT_OF_DIRECTORIES]
    return words


def move_all(before, rows):
    """Maps each path of the first snapshot to its path in the second one; None: deleted."""
    renamed = {}
    for row in rows:
        if row["change"] == "renamed":
            renamed.setdefault(row["old_path"], []).append(row["path"])
    deleted = {row["path"] for row in rows if row["change"] == "deleted"}
    moved = {"/": "/"}
    for path in sorted(before):
        if path == "/":
            continue
        parent, name = os.path.split(path)
        if path in renamed:
            moved[path] = renamed[path][0]
        elif path in deleted or moved[parent] is None:
            moved[path] = None
        else:
            moved[path] = os.path.join(moved[parent], name)
    return moved


def differences(before, after, rows):
    """Yields what is wrong with the rows."""
    moved = move_all(before, rows)
    origin = {new: old for old, new in moved.items() if new}
    listed = {change: {} for change in ("added", "deleted", "modified", "renamed", "type")}
    for row in rows:
        if row["change"] not in listed:
            yield f"not compared: {row}"
            continue
        listed[row["change"]][row["path"]] = row
    result = set(origin) | set(listed["added"])
    for path in sorted(result ^ set(after)):
        yield f"{path}: {'is not there' if path in result else 'is not listed'}"
    for path in sorted(set(origin) & set(listed["added"])):
        yield f"{path}: listed as added, and is there from before"
    for path, row in listed["renamed"].items():
        if path in after and before[row["old_path"]]["inode"] != after[path]["inode"]:
            yield f"{path}: renamed, but another file"
    for new, old in origin.items():
        if new not in after:
            continue
        if (type_of(before[old]) != type_of(after[new])) != (new in listed["type"]):
            yield f"{new}: its type is wrong"
        elif new not in listed["type"]:
            words = sorted(changes_of(before[old], after[new]))
            found = sorted(listed["modified"].get(new, {}).get("changes", []))
            if words != found:
                yield f"{new}: differs in {words}, listed are {found}"


def since_wrong(program, name):
    """`diff --since` must list for the live subvolume what `diff` does since its snapshot; once the
    state of that transaction is gone, everything of it that is still there, and no deletions. Only
    the moves of nested subvolumes, in which nothing changes, are unknown then."""
    subvolumes = {row["subvolume_path"]: row for row in program.rows("subvolumes")}
    live = subvolumes["/live"]["subvolume"]
    rows = list(program.rows("diff", "-q", name, "live", silent=True))
    exact = {(row["change"], row["path"], row.get("old_path")) for row in rows}
    result = program.ask("diff", "--json", "--since", str(subvolumes["/" + name]["otransid"]),
                         "live")
    found = {(row["change"], row["path"], row.get("old_path"))
             for row in kernel.json_rows(result)
             if live in (row.get("subvolume"), row.get("old_subvolume"))}
    if result.returncode == 0 and found != exact:
        yield f"since {name}: {sorted(found ^ exact, key=str)[:3]}"
    if result.returncode == 1:
        paths = {path for _, path, _ in found}
        unknown = {row["path"] for row in rows if row["change"] == "renamed" and row["inode"] == 2}
        lacking = [row for row in exact if row[0] != "deleted" and row[1] not in paths | unknown]
        if lacking:
            yield f"since {name}, from inodes: lacks {sorted(lacking, key=str)[:3]}"
    if result.returncode > 1:
        yield f"since {name}: exit status {result.returncode}"


def compare(options, seed, directory):
    chance = random.Random(seed)
    history = Work(seed, directory)
    history.make()
    history.begin()
    history.work(chance.choice([20, 60, 120]))
    history.snapshot_as("first")
    if chance.random() < 0.5:
        history.remount()
    history.work(chance.choice([3, 20, 60]))
    history.snapshot_as("second")
    history.reshape()
    history.snapshot_as("third")
    history.remount()
    trees = {name: kernel.read_tree(history.path(name)) for name in ("first", "second", "third")}
    history.detach()
    program = kernel.Program(options.program, history.images)
    for old, new in (("first", "second"), ("second", "first"), ("first", "third")):
        for how in ([], ["--by-path"], ["--content", "always"]):
            rows = program.rows("diff", "-q", *how, old, new, silent=True)
            for wrong in differences(trees[old], trees[new], rows):
                yield f"{old} to {new} {how}: {wrong}"
    for name in ("first", "second"):
        yield from since_wrong(program, name)
    for row in program.rows("diff", "-q", "second", "third", silent=True):
        words = row.get("changes", []) + row.get("unknown", [])
        if "content" in words or row["change"] != "modified":
            yield f"only data have moved, and listed is {row}"


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
