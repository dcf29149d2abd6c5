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
import ctypes
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
LIBC = ctypes.CDLL(None, use_errno=True)


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

    def exchange(self):
        """Two files, two directories, or one of each trade their names."""
        one, other = self.some(self.random.choice("fd")), self.some(self.random.choice("fd"))
        if one and other and one != other and self.inside(one) and self.inside(other):
            exchange(one, other)

    def cycle(self):
        """Three directories that do not contain each other trade their names."""
        found = [path for path in self.files("d") if self.inside(path)]
        leaves = [path for path in found
                  if not any(other.startswith(path + "/") for other in found)]
        for one, other in zip(leaves[:3], leaves[1:3]):
            exchange(one, other)

    def child_over_parent(self):
        path = self.some("d")
        parent = os.path.dirname(path)
        if self.inside(path) and self.inside(parent):
            os.rename(path, parent + ".child")
            os.rename(parent, os.path.join(parent + ".child", os.path.basename(path)))
            os.rename(parent + ".child", parent)

    def replace_around(self):
        """Another directory takes the name and the entries of a directory."""
        path = self.some("d")
        if self.inside(path):
            os.mkdir(path + ".new")
            for name in os.listdir(path):
                os.rename(os.path.join(path, name), os.path.join(path + ".new", name))
            os.rmdir(path)
            os.rename(path + ".new", path)

    def move_links(self):
        """Moves the names of a file to another directory, as hard links."""
        path, directory = self.some(), self.some("d")
        if path:
            for _ in range(self.random.choice([1, 2, 5])):
                self.serial += 1
                os.link(path, os.path.join(directory, f"link{self.serial}"))
            if self.random.random() < 0.6:
                os.unlink(path)

    def swap_links(self):
        linked = [path for path in self.files() if os.stat(path).st_nlink > 1]
        if len(linked) > 1:
            exchange(*self.random.sample(linked, 2))

    def link_special(self):
        directory = self.some("d")
        for entry in os.scandir(directory):
            if not entry.is_dir(follow_symlinks=False) and not entry.is_file():
                os.link(entry.path, self.fresh(), follow_symlinks=False)
                return

    def other_target(self):
        for entry in os.scandir(self.some("d")):
            if entry.is_symlink():
                os.unlink(entry.path)
                os.symlink(self.random.choice(["a", "b", "/far/" + "t" * 300]), entry.path)
                return

    def one_attribute(self):
        if path := self.some(self.random.choice("fd")):
            name = self.random.choice(["user.one", "trusted.one", "security.one",
                                       "user." + "n" * 200])
            if name in os.listxattr(path) and self.random.random() < 0.5:
                os.removexattr(path, name)
            else:
                os.setxattr(path, name,
                            self.random.randbytes(self.random.choice([0, 1, 100, 2000])))

    def overlap(self):
        """Clones a range of a file into the same file."""
        if path := self.some():
            blocks = os.path.getsize(path) // 4096
            if blocks >= 2:
                at = self.random.randrange(1, blocks)
                run("xfs_io", "-c",
                    f"reflink {path} 0 {4096 * at} {4096 * min(at, blocks - at)}", path)

    def hole(self):
        if path := self.some():
            at = 4096 * self.random.randrange(30)
            length = 4096 * self.random.randrange(1, 20)
            run("xfs_io", "-c", self.random.choice(
                [f"fpunch {at} {length}", f"fpunch {at + 7} {length + 100}", f"fzero {at} {length}",
                 f"fzero -k {at} {length}", f"falloc -k {at} {length}", f"fcollapse {at} {length}",
                 f"finsert {at} {length}", f"truncate {at + 5}", f"truncate {at}"]), path)
            if self.random.random() < 0.4:
                run("xfs_io", "-c", f"pwrite -q {at} 5000", path)

    def shrink_and_grow(self):
        if path := self.some():
            size = os.path.getsize(path)
            os.truncate(path, size // 2)
            os.truncate(path, size)

    def sparse(self):
        with open(self.fresh(), "wb") as file:
            file.seek(self.random.choice([0, 1 << 20, 1 << 24]))
            file.write(b"end" * 50)
            file.truncate(self.random.choice([file.tell(), (1 << 24) + 4096, 1 << 25]))

    def odd_times(self):
        if path := self.some(self.random.choice("fd")):
            os.utime(path, ns=(1, self.random.choice([-10**18, 0, -1, 5 * 10**18, 10**18 + 1])))

    def odd_owner(self):
        if path := self.some(self.random.choice("fd")):
            os.chown(path, self.random.choice([0, 70000, 1 << 31]),
                     self.random.choice([0, (1 << 32) - 2]))
            os.chmod(path, self.random.randrange(0o10000) | 0o700)

    def usual_steps(self):
        return [self.write] * 4 + [self.overwrite] * 3 + [self.rename] * 3 + [
            self.remove, self.allocate, self.allocate, self.truncate, self.clone,
            self.clone_range, self.link, self.special, self.attribute, self.flag,
            self.remove_tree, self.defragment, self.keep_open, self.swap_names, self.save,
            self.save, self.same_again, self.other_type, self.mode, self.owner,
            self.move_directory, self.move_directory, self.new_directory, self.same_directory,
            self.drop_attribute, self.no_copy, self.deduplicate, self.exchange, self.exchange,
            self.cycle, self.child_over_parent, self.child_over_parent, self.replace_around,
            self.move_links, self.move_links, self.swap_links, self.link_special,
            self.other_target, self.one_attribute, self.overlap, self.hole, self.hole,
            self.shrink_and_grow, self.sparse, self.odd_times, self.odd_owner]

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


def exchange(one, other):
    """renameat2() with RENAME_EXCHANGE."""
    if LIBC.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


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
