#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""log_replay - compares the replay of log trees with the kernel's

usage: sudo tests/kernel/log_replay.py [--count N] [--seed S] [--per-image N] [--ops N]
                                       [--program PROGRAM] [--keep DIRECTORY] [--record DIRECTORY]
       tests/kernel/log_replay.py --check DIRECTORY

Does random work on a loop mount, and copies the backing files right after an fsync: that is what a
power cut would leave behind. Then a copy is mounted, which replays the log tree, and whatever that
mount shows (names, types, owners, sizes, link counts, times, extended attributes, targets of
links, contents) is compared with what btrfs-walk reads from the copy that was not mounted. Each
seed is one file system, with its own features and mount options, and gives several cuts. Needs
root, mkfs.btrfs and a kernel with btrfs.

--record makes small images and keeps them, with what the mounts showed; --check compares those with
the answers of btrfs-walk, and needs neither root nor a mount.
"""
import ctypes
import fcntl
import hashlib
import json
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import time

import kernel
from kernel import run

libc = ctypes.CDLL(None, use_errno=True)
FICLONE, FICLONERANGE, SUBVOL_CREATE = 0x40049409, 0x4020940D, 0x5000940E
FS_IOC_SETFLAGS, FS_NOCOW_FL, RENAME_EXCHANGE, SYS_renameat2 = 0x40086602, 0x00800000, 2, 316
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "call failed")


class Work:
    """Random changes to a mounted file system. Those that the kernel refuses are skipped."""

    def __init__(self, top, seed, options):
        self.top, self.random, self.options = top, random.Random(seed), options
        self.counter, self.names = 0, []
        self.trace = []

    def entries(self):
        """All paths, directories with a slash at the end; read anew, since that is simplest."""
        found = [self.top + "/"]
        for folder, folders, files in os.walk(self.top):
            found += [folder + "/" + name + "/" for name in folders
                      if not os.path.islink(folder + "/" + name)]
            found += [folder + "/" + name for name in files]
        self.all = sorted(found)

    def pick(self, want=lambda path: True):
        fitting = [path for path in self.all if want(path)]
        return self.random.choice(fitting)

    def folder(self):
        return self.pick(lambda path: path.endswith("/"))

    def any(self):
        return self.pick(lambda path: path != self.top + "/").rstrip("/")

    def file(self):
        return self.pick(lambda path: stat.S_ISREG(os.lstat(path).st_mode))

    def fresh(self):
        self.counter += 1
        name = "%s%d" % (self.random.choice("abcdefgh"), self.counter)
        if self.random.random() < 0.1:
            name += "-" + "long" * self.random.randrange(1, 50)
        elif self.random.random() < 0.3 and self.names:
            return self.random.choice(self.names)     # may be the name of a deleted file
        self.names.append(name)
        return name

    def new(self):
        return self.folder() + self.fresh()

    def bytes(self, most):
        length = self.random.choice([1, 10, 100, 2000, 4096, 5000, 20000, most])
        length = self.random.randrange(1, length + 1)
        if self.options.record:
            length = min(length, 9000)
        elif self.random.random() < 0.5:
            return self.random.randbytes(length)
        return (b"%d-" % self.counter * length)[:length]

    def offset(self, size):
        return self.random.choice([0, self.random.randrange(size + 20000),
                                   self.random.randrange(size // 4096 + 8) * 4096])

    def open(self, path, flags=os.O_RDWR):
        return Descriptor(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644))

    # The possible changes, each with its weight.

    def create_9(self):
        with self.open(self.new(), os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
            if self.random.random() < 0.15:
                fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", FS_NOCOW_FL))
            if self.random.random() < 0.8:
                os.write(fd, self.bytes(300000))
            self.maybe_sync(fd)

    def write_12(self):
        with self.open(self.file()) as fd:
            os.pwrite(fd, self.bytes(200000), self.offset(os.fstat(fd).st_size))
            self.maybe_sync(fd)

    def append_6(self):
        with self.open(self.file(), os.O_RDWR | os.O_APPEND) as fd:
            os.write(fd, self.bytes(50000))
            self.maybe_sync(fd)

    def write_sync_2(self):
        with self.open(self.file(), os.O_RDWR | self.random.choice([os.O_SYNC, os.O_DSYNC])) as fd:
            os.pwrite(fd, self.bytes(20000), self.offset(os.fstat(fd).st_size))

    def truncate_6(self):
        with self.open(self.file()) as fd:
            size = os.fstat(fd).st_size
            os.ftruncate(fd, self.random.choice([0, self.random.randrange(size + 1),
                                                 size + self.random.randrange(100000)]))
            self.maybe_sync(fd)

    def fallocate_10(self):
        mode = self.random.choice([PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE, 0,
                                   KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE])
        with self.open(self.file()) as fd:
            start = self.offset(os.fstat(fd).st_size)
            length = self.random.choice([1, 4096, 8192, 100000])
            check(libc.fallocate64(int(fd), mode, ctypes.c_int64(start), ctypes.c_int64(length)))
            self.maybe_sync(fd)

    def rename_8(self):
        os.rename(self.any(), self.new())

    def rename_over_4(self):
        os.rename(self.any(), self.any())

    def exchange_3(self):
        check(libc.syscall(SYS_renameat2, -100, self.any().encode(), -100, self.any().encode(),
                           RENAME_EXCHANGE))

    def link_7(self):
        os.link(self.pick(lambda path: not path.endswith("/")), self.new(), follow_symlinks=False)

    def many_links_1(self):
        file, folder = self.pick(lambda path: not path.endswith("/")), self.folder()
        for _ in range(self.random.choice([5, 40] if self.options.record else [5, 40, 120])):
            os.link(file, folder + self.fresh(), follow_symlinks=False)

    def unlink_8(self):
        os.unlink(self.pick(lambda path: not path.endswith("/")))

    def unlink_and_again_3(self):
        path = self.pick(lambda path: not path.endswith("/"))
        os.unlink(path)
        with self.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
            os.write(fd, self.bytes(9000))
            self.maybe_sync(fd)

    def unlink_open_1(self):
        with self.open(self.file()) as fd:
            os.unlink(os.readlink("/proc/self/fd/%d" % int(fd)))
            self.maybe_sync(fd)

    def mkdir_5(self):
        os.mkdir(self.new())

    def rmdir_4(self):
        folder = self.folder()
        if self.random.random() < 0.3 and folder != self.top + "/":
            shutil.rmtree(folder)
        else:
            os.rmdir(folder)

    def symlink_2(self):
        os.symlink("x" * self.random.choice([1, 20, 300]), self.new())

    def node_2(self):
        kind = self.random.choice([stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
        os.mknod(self.new(), 0o640 | kind, os.makedev(7, self.random.randrange(300)))

    def tmpfile_2(self):
        fd = os.open(self.folder(), os.O_TMPFILE | os.O_RDWR, 0o600)
        with Descriptor(fd):
            os.write(fd, self.bytes(20000))
            if self.random.random() < 0.6:
                os.link("/proc/self/fd/%d" % fd, self.new(), follow_symlinks=True)
            self.maybe_sync(fd)

    def xattr_6(self):
        name = self.random.choice(["user.a", "user.b", "trusted.c", "user." + "n" * 100])
        os.setxattr(self.any(), name if self.random.random() < 0.8 else "trusted." + self.fresh(),
                    self.bytes(2000).hex().encode()[:self.random.choice([5, 200, 3000])],
                    follow_symlinks=False)

    def remove_xattr_5(self):
        path = self.any()
        names = os.listxattr(path, follow_symlinks=False)
        if names:
            os.removexattr(path, self.random.choice(names), follow_symlinks=False)

    def attributes_5(self):
        path = self.any()
        what = self.random.randrange(3)
        if what == 0 and not os.path.islink(path):
            os.chmod(path, self.random.choice([0o600, 0o755, 0o4711, 0o1777]))
        elif what == 1:
            os.chown(path, self.random.randrange(5000), self.random.randrange(5000),
                     follow_symlinks=False)
        else:
            os.utime(path, ns=(self.random.randrange(10**18), self.random.randrange(10**18)),
                     follow_symlinks=False)

    def reflink_5(self):
        with self.open(self.file()) as source, self.open(self.file()) as target:
            size = os.fstat(source).st_size
            if self.random.random() < 0.3:
                fcntl.ioctl(target, FICLONE, int(source))
            else:
                start = self.random.randrange(size // 4096 + 1) * 4096
                length = self.random.choice([4096, 16384, size // 4096 * 4096 - start])
                fcntl.ioctl(target, FICLONERANGE, struct.pack(
                    "qQQQ", int(source), start, length, self.random.randrange(30) * 4096))
            self.maybe_sync(target)

    def subvolume_0(self):
        fd = os.open(self.folder(), os.O_RDONLY)
        with Descriptor(fd):
            fcntl.ioctl(fd, SUBVOL_CREATE,
                        bytearray(struct.pack("q4088s", 0, self.fresh().encode())))

    def evict_1(self):
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2\n")

    def fsync_16(self):
        path = self.random.choice([self.folder, self.folder, self.file])()
        with Descriptor(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as fd:
            self.sync(fd)

    def maybe_sync(self, fd):
        if self.random.random() < 0.25:
            self.sync(fd)

    def sync(self, fd):
        os.fsync(fd) if self.random.random() < 0.8 else os.fdatasync(fd)
        self.synced = True

    def step(self, name=None):
        """One change, a random one unless it is named; true if it ended in an fsync."""
        weights = [(name, int(name.rsplit("_", 1)[1])) for name in dir(self)
                   if name[-1].isdigit()]
        name = name or self.random.choices([n for n, _ in weights],
                                           [w for _, w in weights])[0]
        self.synced = False
        self.entries()
        try:
            getattr(self, name)()
            self.trace.append(name)
        except (OSError, IndexError, shutil.Error) as error:
            self.trace.append("%s: %s" % (name, error))
        return self.synced


class Descriptor(int):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self)


def features(chance, small):
    """The options of mkfs.btrfs, those of the mount, and the number of devices."""
    make = ["-n", chance.choice(["4096", "16384", "16384", "65536"]),
            "--csum", chance.choice(["crc32c", "crc32c", "xxhash", "sha256", "blake2"])]
    if chance.random() < 0.35:
        make += ["-O", "^no-holes"]
    devices = 2 if chance.random() < 0.15 and not small else 1
    make += ["-m", "raid1", "-d", "raid1"] if devices == 2 else ["-m", "single"]
    mount = ["commit=300", "noatime"]
    mount += chance.choice([[], [], ["compress=zstd"], ["compress-force=lzo"], ["compress=zlib"],
                            ["nodatacow"], ["max_inline=0"], ["flushoncommit"]])
    return make, mount, devices


def shown(images, directory):
    """What a mount of copies shows, without the times that were set by the replay itself."""
    copies = kernel.copy_images(images, os.path.join(directory, "mounted"))
    since = time.time_ns() - 10**9
    with kernel.FileSystem(directory, copies) as system:
        system.attach("ro", "noatime")
        result = kernel.read_tree(system.mount)
    for copy in copies:
        os.unlink(copy)
    for entry in result.values():
        for what in ("mtime", "ctime"):
            if entry[what] >= since:
                del entry[what]
        # Archives cannot hold sockets, and btrfs-walk does not write system attributes.
        if stat.S_ISSOCK(entry["mode"]):
            del entry["xattrs"]
        else:
            entry["xattrs"] = {name: value for name, value in entry["xattrs"].items()
                               if name.startswith(("user.", "trusted."))}
    return result


def answer(program, directory):
    """The same from btrfs-walk: rows for what stat tells, an archive for the rest."""
    result = {}
    for row in program.rows("walk", "--raw", "--type", "f,d,l,c,b,p,s", "-o",
                            "path,inode,mode,uid,gid,size,nlink,allocated,mtime,ctime"):
        row["blocks"] = (row.pop("allocated") + 4095) // 4096 * 8
        if row["path"] in result:
            raise kernel.ProgramFailed("twice: " + row["path"])
        result[row.pop("path")] = row
    archive = os.path.join(directory, "tar")
    program.require("tar", "-f", archive)
    with tarfile.open(archive) as members:
        for member in members:
            add_member(result, members, member)
    os.unlink(archive)
    names = [line for line in program.require("ls", "-aR").stdout.splitlines()
             if line and not line.endswith(b":") and line not in (b".", b"..")]
    if len(names) != len(result) - 1:
        raise kernel.ProgramFailed(f"ls -R: {len(names)} names, walk: {len(result) - 1}")
    return result


def add_member(result, members, member):
    path = "/" + member.name.removeprefix("./").strip("/").removeprefix(".")
    entry = result[path]
    source = result["/" + member.linkname.removeprefix("./")] if member.islnk() else entry
    if member.ischr() or member.isblk():
        entry["device"] = [member.devmajor, member.devminor]
    if member.issym():
        entry["target"] = member.linkname
    if member.isreg():
        entry["sha256"] = hashlib.sha256(members.extractfile(member).read()).hexdigest()
    if member.islnk():
        for what in ("sha256", "device", "target", "xattrs"):
            if what in source:
                entry[what] = source[what]
        return
    prefix = "SCHILY.xattr."
    entry["xattrs"] = {
        name[len(prefix):]: hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
        for name, value in sorted(member.pax_headers.items())
        if name.startswith((prefix + "user.", prefix + "trusted."))}


def sums_of(program, *arguments):
    lines = program.ask("sum", "-0", *arguments).stdout.split(b"\0")
    return {line[66:].decode(): line[:64] for line in lines if line}


def differing_names(listed, before, after):
    """Names that were removed or added but are not in the list, and the reverse."""
    renamed = [row for row in listed if row["change"] == "renamed"]
    gone = {row["path"] for row in listed if row["change"] in ("deleted", "unlinked")}
    come = {row["path"] for row in listed if row["change"] in ("added", "linked")}
    gone |= {row["before"] for row in renamed}
    come |= {row["path"] for row in renamed}
    moved = [(row["before"] + "/", row["path"] + "/") for row in renamed]
    found = ["log: %s is gone" % path for path in set(before) - set(after) - gone
             if not any(path.startswith(old) for old, _ in moved)]
    found += ["log: %s is new" % path for path in set(after) - set(before) - come
              if not any(path.startswith(new) for _, new in moved)]
    found += ["log: %s is not gone" % path for path in gone if path not in before]
    return found + ["log: %s is not new" % path for path in come if path not in after]


ATTRIBUTES = ("mode", "uid", "gid", "mtime", "ctime", "size")


def differing_attributes(program, listed, before, after):
    """Attributes and contents that differ but are not in the list, and the reverse."""
    sums = sums_of(program, "--log=ignore"), sums_of(program)
    in_list = {(row["subvolume"], row["inode"], row["attribute"]) for row in listed
               if row["change"] == "attribute"}
    data = {(row["subvolume"], row["inode"]) for row in listed if row["change"] == "data"}
    found, real = [], set()
    numbers = {(row["subvolume"], row["inode"]): row for row in before.values()}
    for path, new in after.items():
        number = (new["subvolume"], new["inode"])
        old = numbers.get(number)
        if not old:
            continue
        for what in ATTRIBUTES:
            if new[what] != old[what] and not (what == "size" and new["type"] == "directory"):
                real.add(number + (what,))
        if (new["type"] == "file" and sums[0].get(old["path"]) != sums[1].get(path)
                and number not in data and number + ("size",) not in in_list):
            found.append("log: the contents of %s differ" % path)
    in_list = {entry for entry in in_list if entry[2] in ATTRIBUTES}
    return found + ["log: %s: %s" % ("too much" if entry in in_list else "lacks", entry)
                    for entry in sorted(real ^ in_list)]


def check_changes(program):
    """The log command must list each difference between before and after, and no other."""
    walk = ("walk", "--raw", "--type", "f,d,l,c,b,p,s")
    before = {row["path"]: row for row in program.rows(*walk, "--log=ignore")}
    after = {row["path"]: row for row in program.rows(*walk)}
    listed = program.rows("log")
    return differing_names(listed, before, after) + \
        differing_attributes(program, listed, before, after)


def differences(want, have):
    found = []
    for path in sorted(set(want) | set(have)):
        if path not in have or path not in want:
            found.append("%s: %s" % (path, "is missing" if path in want else "is too much"))
            continue
        for what, value in sorted(want[path].items()):
            if value != have[path].get(what):
                found.append("%s: %s: mount %s, btrfs-walk %s" % (path, what, value,
                                                                  have[path].get(what)))
    return found


def make_cuts(seed, options, directory):
    """Works on a new file system; returns the copies that were made, and what was done."""
    chance = random.Random(seed)
    make, mount, devices = features(chance, options.record)
    cuts, since = [], 0
    with kernel.FileSystem(directory) as system:
        for _ in range(devices):
            system.add_image(114 << 20 if options.record else 256 << 20)
        run("mkfs.btrfs", "-q", *make, *system.images, check=True)
        system.attach(*mount)
        job = Work(system.mount, seed, options)
        for _ in range(chance.randrange(3)):
            job.step("subvolume_0")
        while len(cuts) < options.per_image:
            since += 1
            if since % options.ops == 0 and chance.random() < 0.4:
                system.sync()
                job.trace.append("COMMIT")
            if not job.step() or chance.random() > 1.5 / options.ops:
                continue
            cuts.append(kernel.copy_images(system.images, f"{directory}/cut{len(cuts)}"))
            job.trace.append("CUT %d" % (len(cuts) - 1))
    for image in system.images:
        os.unlink(image)
    return cuts, job.trace, make + mount


def has_log(image):
    with open(image, "rb") as file:
        file.seek(65536 + 96)
        return file.read(8) != bytes(8)


def compare_cut(program_path, expected, images, directory):
    program = kernel.Program(program_path, images)
    try:
        return differences(expected, answer(program, directory)) + check_changes(program)
    except (kernel.ProgramFailed, KeyError, tarfile.TarError) as error:
        return [repr(error)]


def record(options, name, image, expected):
    os.makedirs(options.record, exist_ok=True)
    path = os.path.join(options.record, name)
    run("zstd", "-q", "-f", "-19", "--long=27", image, "-o", path + ".img.zst", check=True)
    run("zstd", "-q", "-f", "-19", "-o", path + ".json.zst", input=json.dumps(expected),
        check=True)


def compare_recorded(options, name, directory):
    path, image = os.path.join(options.check, name), os.path.join(directory, "image")
    run("zstd", "-q", "-d", "--long=27", "--sparse", path, "-o", image, check=True)
    expected = json.loads(kernel.output("zstd", "-q", "-d", "-c", path.replace(".img.", ".json.")))
    return compare_cut(options.program, expected, [image], directory)


def compare(options, seed, directory):
    cuts, trace, made = make_cuts(seed, options, directory)
    logs = 0
    for number, images in enumerate(cuts):
        logs += has_log(images[0])
        expected = shown(images, directory)
        found = compare_cut(options.program, expected, images, directory)
        if found:
            yield f"cut {number} ({' '.join(made)}): {len(found)} differences"
            yield from found[:6]
        if options.record and has_log(images[0]):
            record(options, f"{seed}-{number}", images[0], expected)
    with open(f"{directory}/trace.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(trace) + "\n")
    print(f"  {len(cuts)} cuts, {logs} with a log", flush=True)


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--per-image", type=int, default=6, help="cuts of each file system")
    parser.add_argument("--ops", type=int, default=20, help="changes between two cuts, about")
    parser.add_argument("--record", default=None)
    parser.add_argument("--check", default=None)
    options = parser.parse_args()
    if options.check:
        names = sorted(n for n in os.listdir(options.check) if n.endswith(".img.zst"))
        return kernel.compare_each(options, {name: name for name in names}, compare_recorded)
    kernel.need("mkfs.btrfs")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
