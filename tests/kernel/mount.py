#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""mount - compares `btrfs-walk mount` with the kernel's mount

usage: sudo tests/kernel/mount.py [--count N] [--seed S] [--program PROGRAM] [FIXTURE...]

The devices of each fixture (default: N of them, at random) are copied and mounted by the kernel,
and by btrfs-walk, and then compared: all that find(1) prints, the contents, extended attributes,
flags, where files have data (SEEK_DATA, SEEK_HOLE), and what rsync and diff say. After another
mount, the handles of all files must still open them. Inode numbers of all but the top-level
subvolume are compared without the subvolume id in their upper bits. A file system that the kernel
does not mount is left out; btrfs-walk may show more of files that the kernel cannot read. Needs
root, rsync, getfattr, getfacl, FUSE and a kernel with btrfs.
"""
import ctypes
import difflib
import errno
import os
import re
import stat
import subprocess
import sys

import kernel
from kernel import run

# Messages that do not count: both mounts report damage, and some paths are too long for rsync.
SAME_COMPLAINTS = (rb"Input/output error|File name too long|overflows max-path|^IO error|"
                   rb"^rsync error")
# What the kernel's mount lacks, according to rsync and diff.
MORE = rb"^\*deleting |^Only in .*/fuse"
LIBC = ctypes.CDLL(None)
SPECIAL = rb" is a (fifo|socket|(block|character) special file) while "


def shell(script, *words):
    """What a script prints, as bytes."""
    return kernel.output("sh", "-c", script, "sh", *words)


class Fixture:
    """A fixture; its file `about` tells which images it has."""

    def __init__(self, name):
        facts = {}
        about = os.path.join(kernel.TOP, "fixtures", name, "about")
        if os.path.exists(about):
            with open(about, encoding="utf-8") as file:
                facts = dict(re.findall(r"^([a-z-]+): (.*)$", file.read(), re.M))
        missing = facts.get("missing", "").split()
        self.images = [image for image in kernel.fixture(facts.get("devices-from", name))
                       if image.endswith(".img")
                       and re.sub(r"\D", "", os.path.basename(image)) not in missing]


class Mounts(kernel.FileSystem):
    """The same images mounted by the kernel and by btrfs-walk."""

    def __init__(self, directory, images):
        super().__init__(directory, images)
        self.fuse = os.path.join(directory, "fuse")
        os.makedirs(self.fuse)

    def attach_fuse(self, program):
        run(*kernel.Program(program, self.images).words("mount", "--background", self.fuse),
            check=True)

    def attach_both(self, program):
        """Mounts with the kernel first: it replays the log, and both show the same after that."""
        self.attach("ro", "degraded", "subvolid=5")
        self.attach_fuse(program)

    def unmount(self):
        if os.path.ismount(self.fuse):
            run("umount", self.fuse)
        super().unmount()


def listing(top):
    """Lists all files, with inode numbers without subvolume ids. Directories that stand for missing
    subvolumes have the inode number 2 and, on the kernel's mount, the time of the lookup."""
    found = shell("cd \"$1\" && find . -printf"
                  " '%i %p %y %m %n %U:%G %s %b %T@ %C@ %A@ %l\\0'", top)
    lines = []
    for line in found.split(b"\0")[:-1]:
        number, rest = line.split(b" ", 1)
        number = int(number) & (1 << 40) - 1
        lines.append(b"%d %s" % (number, rest if number != 2 else rest.split(b" ")[0]))
    return sorted(lines)


def contents(top):
    return shell("cd \"$1\" && find . -type f -size -100M -print0 | sort -z |"
                 " xargs -0r sha256sum -z", top).split(b"\0")


def attributes(top):
    """Attributes and access control lists of each file, then the flags."""
    return shell("cd \"$1\" && getfattr -R -h -P -d -m - -e hex .; getfacl -R -P -n .",
                 top).split(b"\n\n") + \
        shell("cd \"$1\" && lsattr -aR . 2> /dev/null | sort -u", top).splitlines()


def data_ranges(path):
    """The offsets at which data and holes begin."""
    at, ends = 0, []
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        return error.strerror
    try:
        while len(ends) < 1000:
            at = os.lseek(file, at, os.SEEK_DATA)
            ends.append(at)
            at = os.lseek(file, at, os.SEEK_HOLE)
            ends.append(at)
    except OSError as error:
        if error.errno != errno.ENXIO:
            ends.append(error.strerror)
    finally:
        os.close(file)
    return ends


def maps(top):
    found = []
    for folder, _, names in os.walk(os.fsencode(top)):
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError: # listing() shows it
                continue
            if stat.S_ISREG(status.st_mode):
                text = f" {status.st_size} {data_ranges(path)}"
                found.append(path[len(os.fsencode(top)):] + text.encode())
    return sorted(found)


def without(lines, pattern):
    return [line for line in lines if not re.search(pattern, line)]


def differences(mounts):
    """Compares contents. Very large files are left out; special files are equal if both exist."""
    large = shell("find \"$1\" -type f -size +100M -printf '--exclude=%f\\0'", mounts.mount)
    words = [os.fsdecode(word) for word in large.split(b"\0")[:-1]]
    result = subprocess.run(["timeout", "60", "diff", "-r", "--no-dereference", *words,
                             mounts.mount, mounts.fuse], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return without(result.stdout.splitlines(), SAME_COMPLAINTS + b"|" + SPECIAL)


def transfers(mounts):
    """What rsync would transfer. Times of directories are ignored: listing() has them."""
    result = subprocess.run(["rsync", "-aHAXni", "--delete", mounts.mount + "/",
                             mounts.fuse + "/"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    return without(result.stdout.splitlines(), SAME_COMPLAINTS + rb"|^\.d\.\.t\.* ")


class Handle(ctypes.Structure):
    """A file handle, which NFS servers use instead of a path."""
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int), ("bytes", ctypes.c_char * 128)]

    @staticmethod
    def of(path):
        handle = Handle(size=128)
        found = LIBC.name_to_handle_at(-1, path, ctypes.byref(handle), ctypes.byref(ctypes.c_int()),
                                       0)
        return handle if found == 0 else None

    def identity(self, mount):
        """The inode number and type of the file; None if the handle is stale."""
        file = LIBC.open_by_handle_at(mount, ctypes.byref(self), os.O_PATH)
        if file < 0:
            return None
        try:
            return identity(os.fstat(file))
        finally:
            os.close(file)


def identity(status):
    return status.st_ino, stat.S_IFMT(status.st_mode)


def stale_handles(mounts, program):
    """Files that their handles do not open after another mount, when the kernel knows none."""
    known = []
    for path in shell("find \"$1\" -print0 2> /dev/null", mounts.fuse).split(b"\0")[:5000]:
        handle = path and Handle.of(path)
        if handle:
            known.append((path, handle, identity(os.lstat(path))))
    run("umount", mounts.fuse, check=True)
    mounts.attach_fuse(program)
    top = os.open(mounts.fuse, os.O_RDONLY)
    stale = [path for path, handle, expected in known if handle.identity(top) != expected]
    os.close(top)
    return stale


def is_damaged(mounts):
    """Whether the kernel cannot read all files. Then btrfs-walk may show more."""
    read = "find \"$1\" -type f -exec cat {} + > /dev/null 2>&1"
    return subprocess.run(["sh", "-c", read, "sh", mounts.mount], check=False).returncode != 0


def without_more(expected, found):
    """Both lists, without that which only btrfs-walk can read."""
    expected = without(expected, rb"Input/output error")
    readable = set(expected)
    return expected, [line for line in found if line in readable]


def text_of(lines):
    return [line.decode(errors="replace")[:200] for line in lines]


def compare(options, name, directory):
    if name == "verity" and not os.path.exists("/sys/fs/btrfs/features/verity"):
        raise kernel.NotMade("a kernel without fs-verity opens none of the files")
    mounts = Mounts(directory, kernel.copy_images(Fixture(name).images, directory))
    mounts.attach_both(options.program)
    damaged = is_damaged(mounts)
    for question in (listing, contents, attributes, maps):
        expected, found = question(mounts.mount), question(mounts.fuse)
        if damaged:
            expected, found = without_more(expected, found)
        if expected != found:
            yield f"{question.__name__} differ:"
            yield from list(difflib.unified_diff(text_of(expected), text_of(found), "kernel",
                                                 "btrfs-walk", n=0, lineterm=""))[:8]
    for question in (transfers, differences):
        found = question(mounts)
        if damaged:
            found = without(found, MORE)
        if found:
            yield f"{question.__name__}:"
            yield from text_of(found[:8])
    stale = [] if damaged else stale_handles(mounts, options.program)
    if stale:
        yield "stale handles:"
        yield from text_of(stale[:8])


def main():
    parser = kernel.parser(__doc__, 20, 5)
    parser.add_argument("fixture", nargs="*")
    options = parser.parse_args()
    kernel.need("rsync", "getfattr", "getfacl", "fusermount3")
    folder = os.path.join(kernel.TOP, "fixtures")
    names = [name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/about")]
    cases = {name: name for name in options.fixture} or \
        kernel.sample(options, {name: name for name in names})
    return kernel.compare_each(options, cases, compare)


if __name__ == "__main__":
    sys.exit(main())
