#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""unusual - random histories with unusual files, as every command shows them

usage: sudo tests/kernel/unusual.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

The histories (history.py) also make names of any bytes, paths longer than PATH_MAX, thousands of
links, files of exbibytes, times before 1970 and after 2446, attributes of all kinds, devices, flags
and another default subvolume. Some of the file systems are converted from ext4, made from a
directory, grown from a seed, or have another fsid. All files of a read-only mount are compared with
what these show: `walk --json`, `sum`, `xattr`, `mount`, `extract` and `tar`. The texts of `dump`,
`subvolumes`, `qgroups` and `usage` are compared with those of btrfs-progs 6.2. Needs root,
mkfs.btrfs, setfacl, xfs_io, FUSE and a kernel with btrfs.
"""
import collections
import ctypes
import fcntl
import hashlib
import itertools
import os
import re
import socket
import stat
import struct
import subprocess
import sys

import kernel
from history import History
from kernel import output, run

sys.path.append(os.path.join(kernel.TOP, "tests", "support"))
from dump_text import of_dump, of_reference

LIBC = ctypes.CDLL(None, use_errno=True)
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
SECONDS = [-(1 << 63), -(1 << 33), -62135596800, -86400, -1, 0, 1, 1 << 31, (1 << 32) + 5,
           (1 << 34) - 1, 1 << 34, 253402300800, 1 << 55, (1 << 63) - 1]
LARGE = 1 << 28


class Folder:
    """An open folder. `enter` goes to one in it, however long its path is."""

    def __init__(self, path):
        self.number = os.open(path, os.O_RDONLY)

    def enter(self, name):
        inner = os.open(name, os.O_RDONLY, dir_fd=self.number)
        os.close(self.number)
        self.number = inner

    def create(self, name):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=self.number))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.number)


class Unusual(History):
    """A history with unusual files."""

    def odd_name(self):
        r = self.random
        self.serial += 1
        name = r.choice([
            b"-n%d", b"--help%d", b"\n%d", b"a\nb%d", b"\xff\xfe%d", b"\xc3%d", b"\xed\xa0\x80%d",
            b"\x01\x7f%d", b" %d ", b"tab\t%d", b"back\\%d", b"quote\"'%d", b"..%d", b"%d~",
            b"\xe2\x80\xae%d", b"*?[%d", b"\x1b[31m%d", b"$(x)%d", b"%d:\r", b"\\012%d"])
        name %= self.serial
        return name + b"x" * (255 - len(name)) if r.random() < 0.1 else name

    def odd_path(self):
        return os.path.join(os.fsencode(self.some("d")), self.odd_name())

    def odd_names(self):
        for _ in range(self.random.choice([1, 10])):
            path = self.odd_path()
            if self.random.random() < 0.3:
                os.mkdir(path)
            elif self.random.random() < 0.2:
                os.symlink(self.odd_name() * self.random.choice([1, 7]), path)
            else:
                with open(path, "wb") as file:
                    file.write(path[:self.random.choice([0, 3, 99])])

    def deep(self):
        """A path longer than PATH_MAX, with a file in each of some folders."""
        name = b"d" * self.random.choice([1, 100, 250])
        with Folder(self.some("d")) as at:
            for depth in range(self.random.choice([5, 20, 60])):
                os.mkdir(name, dir_fd=at.number)
                at.enter(name)
                if self.random.random() < 0.2:
                    at.create(b"f%d" % depth)
            at.create(b"end")

    def many_links(self):
        path = self.some()
        folder = self.fresh()
        os.mkdir(folder)
        name = self.random.choice(["%d", "%0200d"])
        for number in range(self.random.choice([10, 500, 5000])):
            os.link(path, os.path.join(folder, name % number))

    def sparse(self):
        with open(self.fresh(), "wb") as file:
            size = self.random.choice([1 << 32, 1 << 40, (1 << 63) - 4096, (1 << 63) - 1])
            os.ftruncate(file.fileno(), size)
            for _ in range(self.random.choice([0, 1, 5])):
                os.pwrite(file.fileno(), b"data", self.random.randrange(size - 4))
            os.pwrite(file.fileno(), b"end", size - 3)

    def times(self):
        r = self.random
        for _ in range(3):
            path = self.some(r.choice("fd"))
            pair = [(r.choice(SECONDS) + r.choice([0, r.randrange(100)]), r.randrange(10**9))
                    for _ in range(2)]
            packed = struct.pack("=qqqq", *[min(max(n, -(1 << 63)), (1 << 63) - 1)
                                            for one in pair for n in one])
            LIBC.utimensat(-100, os.fsencode(path), packed, 0x100)

    def attributes(self):
        r = self.random
        path = self.some(r.choice("fd"))
        value = r.randbytes(r.choice([0, 1, 100, 4000, 16000]))
        name = r.choice(["user." + "n" * 250, "user.ä ö", "trusted.x", "user.=\\\n",
                         "trusted.\x01",                         "user.v", "security.label"])
        os.setxattr(path, name, value)
        os.setxattr(path, "security.capability",
                    struct.pack("<IIIII", 0x02000001, r.randrange(1 << 32), 0, 0, 0))
        run("setfacl", "-m", r.choice(["u:7:rwx,g:9:r", "d:u:4294967290:x", "m::r"]), path)

    def many_attributes(self):
        path = self.some()
        for number in range(self.random.choice([20, 400])):
            os.setxattr(path, f"user.{number}", b"v" * (number % 90))

    def owners(self):
        r = self.random
        for _ in range(5):
            path = self.some(r.choice("fd"))
            os.chown(path, *[r.choice([0, 1000, 65536, (1 << 31) + 1, (1 << 32) - 2])
                             for _ in range(2)])
            os.chmod(path, r.choice([0, 0o777, 0o7777, 0o4711, 0o1777, 0o2755]))

    def nodes(self):
        r = self.random
        os.mknod(self.odd_path(), r.choice([stat.S_IFCHR, stat.S_IFBLK]) | 0o640,
                 os.makedev(r.choice([0, 1, 255, 4095]), r.choice([0, 255, 256, (1 << 20) - 1])))
        with socket.socket(socket.AF_UNIX) as sock, Folder(self.some("d")) as folder:
            self.serial += 1
            sock.bind(f"/proc/self/fd/{folder.number}/socket{self.serial}")
        os.mkfifo(self.odd_path())

    def flags(self):
        path = self.some(self.random.choice("fd"))
        self.sticky = getattr(self, "sticky", [])
        self.sticky.append(path)
        run("chattr", self.random.choice(["+i", "+a", "+S", "+d", "+D", "+A", "+m", "+c"]), path)

    def unset(self):
        for path in getattr(self, "sticky", []):
            run("chattr", "-i", "-a", path)
        self.sticky = []

    def set_default(self):
        run("btrfs", "subvolume", "set-default", self.path(self.random.choice(self.subvolumes)))

    def temporary(self):
        number = os.open(self.some("d"), os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(number, b"temporary")
        self.held.append(os.fdopen(number, "rb"))

    def properties(self):
        path = self.some(self.random.choice("fd"))
        run("btrfs", "property", "set", path, "compression",
            self.random.choice(["zlib:1", "zlib:9", "zstd:15", "zstd:1", "lzo", "no", ""]))
        with open(self.fresh(), "wb") as file:
            for _ in range(self.random.choice([1, 40])):
                file.write(self.random.choice([b"a" * 5000, self.random.randbytes(5000)]))

    def nested(self):
        """Subvolumes in subvolumes, and a snapshot in which they are empty directories."""
        path = self.some("d")
        for _ in range(self.random.choice([2, 6])):
            path = os.path.join(path, os.fsdecode(self.odd_name()))
            if run("btrfs", "subvolume", "create", "--", path).returncode:
                return
            self.subvolumes.append(os.path.relpath(path, self.mount))
        self.snapshot()

    def usual_steps(self):
        self.sticky = getattr(self, "sticky", [])
        return super().usual_steps() + 2 * [
            self.odd_names, self.times, self.attributes, self.owners,
            self.nodes, self.properties] + [
                self.temporary, self.nested, self.set_default, self.flags, self.unset,
                self.many_attributes, self.deep, self.many_links]

    def make(self):
        self.sticky, self.held = [], []
        super().make()
        kind = self.random.choice(["", "", "fsid", "metadata uuid", "seed", "convert", "rootdir"])
        if kind and len(self.images) == 1 and "--mixed" not in self.made:
            self.made += " " + kind
            self.remake(kind)

    def attach_plainly(self):
        self.options = ["ro", "noatime", "subvolid=5"]
        self.attach()

    def remake(self, kind):
        """Replaces the empty file system by one that was not made by mkfs.btrfs alone."""
        loop = self.loops[0]
        if kind == "seed":
            self.attempt(self.write)
            self.attempt(self.snapshot)
        elif kind in ("convert", "rootdir"):
            folder = os.path.join(self.directory, "files")
            os.mkdir(folder)
            tree, self.mount = self.mount, folder
            for step in (self.write, self.many, self.odd_names, self.special, self.sparse):
                if step != self.sparse or kind == "convert":
                    self.attempt(step)
            self.mount = tree
        self.unmount()
        run("btrfs", "device", "scan", "--forget", loop)
        if kind == "fsid":
            run("btrfstune", "-f", "-u", loop, check=True)
        elif kind == "metadata uuid":
            run("btrfstune", "-m", loop, check=True)
        elif kind == "seed":
            run("btrfstune", "-S", "1", loop, check=True)
            run("mount", loop, self.mount, check=True)
            run("btrfs", "device", "add", "-f", "-K", self.image(), self.mount, check=True)
            run("umount", self.mount)
        elif kind == "rootdir":
            run("mkfs.btrfs", "-q", "-f", *self.random.choice([[], ["--shrink"]]), "-r", folder,
                loop, check=True)
        else:
            run("wipefs", "-a", loop)
            run("mkfs.ext4", "-q", "-F", "-b", "4096", "-d", folder, loop, check=True)
            run("btrfs-convert", *self.random.choice([[], ["-i"], ["-n"], ["-d"]]), loop,
                check=True)
        self.attach()

    def end(self):
        """Leaves with files that are too large for many of the steps."""
        for _ in range(self.random.choice([0, 1, 3])):
            self.attempt(self.sparse)
        self.unset()
        super().end()

    def attempt(self, step):
        try:
            super().attempt(step)
        except (TypeError, IndexError, UnicodeError):   # some() found nothing
            pass


def differ(what, expected, found):
    for key in sorted(set(expected) | set(found), key=str):
        one, other = expected.get(key), found.get(key)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            names = [n for n in set(one) | set(other) if one.get(n) != other.get(n)]
            yield f"{what}: {str(key)[-120:]}: " + ", ".join(
                f"{n} {str(one.get(n))[:200]} not {str(other.get(n))[:200]}" for n in names)
        else:
            yield f"{what}: {str(key)[-120:]}: {str(one)[:200]} not {str(other)[:200]}"


def seek(number, offset, whence):
    LIBC.lseek.restype = ctypes.c_int64
    return LIBC.lseek(number, ctypes.c_int64(offset), whence)


def contents(number, size):
    """The digest of a file, and where its data are. Of large files, only the data count."""
    sha, at, ranges = hashlib.sha256(), 0, []
    while len(ranges) < 4000:
        start = seek(number, at, os.SEEK_DATA)
        if start < 0:
            break
        at = seek(number, start, os.SEEK_HOLE)
        at = size if at < 0 else at     # Linux 6.18 replies with 1 << 63
        ranges.append((start, at))
    if size < LARGE:
        os.lseek(number, 0, os.SEEK_SET)
        while piece := os.read(number, 1 << 20):
            sha.update(piece)
    else:
        for start, end in ranges:
            if end - start > LARGE:     # its data are unwritten extents
                continue
            while start < end and (piece := os.pread(number, min(end - start, 1 << 20), start)):
                sha.update(b"%d" % start + piece)
                start += len(piece)
    return sha.hexdigest(), ranges


def file_flags(number):
    buffer = bytearray(8)
    try:
        fcntl.ioctl(number, FS_IOC_GETFLAGS, buffer)
    except OSError as error:
        return str(error)
    return struct.unpack("=q", buffer)[0]


def describe_at(folder, name):
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    entry = {"mode": status.st_mode, "uid": status.st_uid, "gid": status.st_gid,
             "size": status.st_size, "nlink": status.st_nlink,
             "inode": status.st_ino & (1 << 40) - 1, "blocks": status.st_blocks,
             "mtime": status.st_mtime_ns, "ctime": status.st_ctime_ns, "atime": status.st_atime_ns}
    kind = stat.S_IFMT(status.st_mode)
    if entry["inode"] == 2:     # a subvolume that the snapshot does not have
        return {"inode": 2}
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        entry["device"] = status.st_rdev
    if kind == stat.S_IFLNK:
        entry["target"] = os.readlink(name, dir_fd=folder)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        try:
            number = os.open(name, os.O_RDONLY | os.O_NOATIME, dir_fd=folder)
        except OSError as error:
            entry["sha256"] = error.strerror
            return entry
        entry["flags"] = file_flags(number)
        if kind == stat.S_IFREG:
            entry["sha256"], entry["ranges"] = contents(number, status.st_size)
        where, links = number, True
    else:
        number, where, links = None, b"/proc/self/fd/%d/" % folder + name, False
    entry["xattrs"] = {key: hashlib.sha256(os.getxattr(where, key, **({} if links else {
        "follow_symlinks": False}))).hexdigest() for key in sorted(os.listxattr(
            where, **({} if links else {"follow_symlinks": False})))}
    if number is not None:
        os.close(number)
    return entry


def read_all(top):
    root = os.open(top, os.O_RDONLY)
    tree = {b"/": describe_at(root, b".")}
    os.close(root)
    for folder, folders, files, number in os.fwalk(os.fsencode(top)):
        path = folder[len(os.fsencode(top)):]
        for name in folders + files:
            tree[path + b"/" + name] = describe_at(number, name)
    return tree


def only(tree, *members):
    return {path: {name: entry[name] for name in members if name in entry
                   and (name != "size" or not stat.S_ISDIR(entry["mode"]) or "inode" in members)}
            for path, entry in tree.items()}


def limited(tree):
    """Columns have times from 1677 to 2262."""
    return {path: {name: min(max(value, -1 << 63), (1 << 63) - 1) if name.endswith("time")
                   else value for name, value in entry.items()} for path, entry in tree.items()}


def walked(program):
    tree = {}
    for row in program.rows("walk", "--raw", "--type", "f,d,l,c,b,p,s"):
        path = os.fsencode(row["path"])
        if path in tree:
            raise kernel.ProgramFailed(f"twice: {path}")
        row["blocks"] = (row.get("allocated", 0) + 4095) // 4096 * 8
        tree[path] = row
    return tree


def through_fuse(program, directory):
    where = os.path.join(directory, "fuse")
    os.makedirs(where, exist_ok=True)
    run(*program.words("mount", "--background", where), check=True)
    try:
        return read_all(where)
    finally:
        run("umount", where)


def extracted(program, directory, words, sort):
    """What is on another btrfs after `extract`, or after a `tar -x` of our archive."""
    image = kernel.make_image(os.path.join(directory, f"{sort}.img"), 20 << 30)
    run("mkfs.btrfs", "-q", "-f", image, check=True)
    folder = os.path.join(directory, sort)
    os.makedirs(folder)
    with kernel.FileSystem(folder, [image]) as target:
        target.attach("compress-force=zstd", "noatime")
        top = target.path("top")
        os.mkdir(top)
        if sort == "extract":
            result = program.ask("extract", "--preserve", *words, "-C", top)
            messages = result.stderr if result.returncode else b""
        else:
            unpack = "tar -xpP --acls --numeric-owner --xattrs --xattrs-include='*' -C \"$0\" 2>&1"
            archive = subprocess.Popen(program.words("tar", *words), stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
            done = subprocess.run(["sh", "-c", unpack, top], stdin=archive.stdout, check=False,
                                  stdout=subprocess.PIPE)
            archive.stdout.close()
            archive.wait()
            messages = done.stdout if done.returncode or archive.returncode else b""
        tree = read_all(top)
        del tree[b"/"]
        run("chattr", "-R", "-i", "-a", top)
    os.unlink(image)
    return tree, messages


def sums(program):
    lines = program.require("sum", "-0", "--size", f"-{LARGE >> 20}M").stdout.split(b"\0")
    return {line[66:]: line[:64].decode() for line in lines if line}


def attribute_sums(program):
    found = collections.defaultdict(dict)
    for row in program.rows("xattr", "-R", "/"):
        value = row.get("value", "")
        found[os.fsencode(row["path"])][row["xattr"]] = \
            hashlib.sha256(os.fsencode(value) if isinstance(value, str) else value).hexdigest()
    return found


def listed(mount):
    """`btrfs subvolume list` of a mount, as rows of `subvolumes`."""
    rows = {}
    text = output("btrfs", "subvolume", "list", "-pcguqR", mount)
    for line in re.split(rb"^ID ", text, flags=re.M)[1:]:
        words = re.match(rb"(\d+) gen (\d+) cgen (\d+) parent (\d+) top level (\d+) "
                         rb"parent_uuid (\S+) +received_uuid (\S+) +uuid (\S+) +path (.*)\n\Z",
                         line, re.S).groups()
        number, generation, origin, parent, _, parent_uuid, received, uuid, path = words
        rows[int(number)] = {
            "generation": int(generation), "otransid": int(origin),
            "parent_subvolume": int(parent), "parent_uuid": parent_uuid.decode(),
            "received_uuid": received.decode(), "uuid": uuid.decode(),
            "subvolume_path": os.fsdecode(b"/" + path)}
    return rows


def our_list(program):
    rows = {}
    for row in program.rows("subvolumes"):
        if row["subvolume"] != 5 and not row["deleted"]:
            rows[row["subvolume"]] = {name: row.get(name, "-") for name in (
                "generation", "otransid", "parent_subvolume", "parent_uuid", "received_uuid",
                "uuid", "subvolume_path")}
    return rows


def spaces(text):
    return [line.split() for line in text.decode(errors="replace").splitlines()]


def usage_of(program, system):
    """The lines of both without the values that only a mount has."""
    theirs = spaces(output("btrfs", "filesystem", "usage", "-b", system.mount))
    ours = spaces(program.ask("usage", "-b").stdout)
    names = dict(zip(system.loops, program.images))
    theirs = [[names.get(word, word) for word in line] for line in theirs]
    drop = ("Global", "Free")
    at = ours.index("Why it is full:".split()) if ["Why", "it", "is", "full:"] in ours else None
    return [sorted(" ".join(line) for line in lines if line and line[0] not in drop)
            for lines in (theirs, ours[:at])]


def nearly(lines):
    """btrfs-progs compute some sums with floating point numbers."""
    return [re.sub(r"^(Used: \d+)\d\d$", r"\1", line) for line in lines]


def progs(program, images):
    """Texts of btrfs-progs about the images that are not mounted."""
    theirs = of_reference(output("btrfs", "inspect-internal", "dump-tree", "--noscan", *images))
    ours = of_dump(program.ask("dump").stdout if theirs else b"")   # for it, not too new
    theirs, ours = (re.sub(rb"(time -?\d{12,}\.\d+) \(.*\)", rb"\1", text)    # no such dates
                    for text in (theirs, ours))
    for one, other in itertools.zip_longest(theirs.split(b"\n"), ours.split(b"\n")):
        if one != other:
            yield f"dump: {one} not {other}"
            break


def groups(mount):
    """`btrfs qgroup show` of a mount: id, referenced, exclusive, and both limits."""
    text = output("btrfs", "qgroup", "show", "-re", "--raw", mount)
    rows = re.findall(r"^(\d+/\d+) +(\d+) +(\d+) +(\S+) +(\S+)", os.fsdecode(text), re.M)
    return {row[0]: list(row[1:]) for row in rows}


def our_groups(program):
    names = ("referenced", "exclusive", "max_referenced", "max_exclusive")
    return {row["qgroup"]: [str(row.get(name, "none")) for name in names]
            for row in program.rows("qgroups")}


class Mounted:
    """What the kernel and btrfs-progs show of a mount."""

    def __init__(self, system, program):
        system.attach_plainly()
        self.tree, self.subvolumes = read_all(system.mount), listed(system.mount)
        self.groups, self.usage = groups(system.mount), usage_of(program, system)
        system.detach()


def compare_columns(program, mounted):
    tree, members = mounted.tree, ("inode", "mode", "uid", "gid", "size", "nlink", "mtime",
                                   "ctime", "atime", "blocks")
    found = {path: entry if entry["inode"] != 2 else {"inode": 2}
             for path, entry in walked(program).items()}
    yield from differ("walk", only(limited(tree), *members), only(found, *members))
    small = {path for path in tree if tree[path].get("size", 0) < LARGE}
    yield from differ("sum", {path: tree[path]["sha256"] for path in small
                              if "sha256" in tree[path]},
                      {path: value for path, value in sums(program).items() if path in small})
    yield from differ("xattr", {path: entry["xattrs"] for path, entry in tree.items()
                                if entry.get("xattrs")}, attribute_sums(program))


def compare_progs(program, mounted, made):
    ours = our_list(program)
    for number, row in mounted.subvolumes.items():  # they print another number if it is 0
        if ours.get(number, {}).get("otransid") == "-":
            row["otransid"] = "-"
    yield from differ("subvolumes", mounted.subvolumes, ours)
    if mounted.groups:
        yield from differ("qgroups", mounted.groups, our_groups(program))
    theirs, ours = mounted.usage
    if "seed" not in made and nearly(theirs) != nearly(ours):    # they leave out the seed
        yield f"usage: {[line for line in theirs if line not in ours]} not " \
              f"{[line for line in ours if line not in theirs]}"


def compare_copies(program, tree, directory, sort):
    """Compares what `extract` or tar has written to another file system."""
    members = ("mode", "uid", "gid", "size", "mtime", "target", "sha256", "xattrs", "device")
    found, messages = extracted(program, directory, [], sort)
    theirs = {path: entry for path, entry in tree.items() if entry["inode"] != 2 and path != b"/"}
    ours = {path: entry for path, entry in found.items() if tree.get(path, {}).get("inode") != 2}
    if sort == "tar":
        theirs = {path: entry for path, entry in theirs.items()
                  if not stat.S_ISSOCK(entry["mode"])}
        for entry in [*theirs.values(), *ours.values()]:    # inherited by folders
            entry["xattrs"].pop("btrfs.compression", None)
        messages = b"\n".join(line for line in messages.splitlines() if not re.search(
            b"time stamp .* (in the future|implausibly old)|Exiting with failure", line))
    yield from differ(sort, only(theirs, *members), only(ours, *members))
    if messages:
        yield messages.decode(errors="replace")[:600]


def compare(options, seed, directory):
    with Unusual(seed, directory) as system:
        system.make()
        system.work()
        system.end()
        program = kernel.Program(options.program, kernel.copy_images(
            system.images, os.path.join(directory, "copies")))
        mounted = Mounted(system, program)
    tree, wrong = mounted.tree, []
    wrong += compare_columns(program, mounted)
    wrong += compare_progs(program, mounted, system.made)
    wrong += differ("mount", tree, through_fuse(program, directory))
    wrong += compare_copies(program, tree, directory, "extract")
    if max(map(len, tree)) < 3900:  # GNU tar does not extract longer paths
        wrong += compare_copies(program, tree, directory, "tar")
    if "frozen" not in system.ending and "seed" not in system.made:
        wrong += progs(program, program.images)
    return [*wrong, str(system)] if wrong else []


def main():
    options = kernel.parser(__doc__).parse_args()
    kernel.need("mkfs.btrfs", "xfs_io", "setfacl", "fusermount3")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
