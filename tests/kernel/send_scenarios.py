#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""send_scenarios - changes that made `btrfs send` fail or send something wrong in the past

usage: sudo tests/kernel/send_scenarios.py [--program PROGRAM] [--keep DIRECTORY]

Each scenario is a subvolume with files before and after a snapshot, after the tests of xfstests
that its docstring names. Full and incremental streams of protocol 1, 2, and 2 with compressed data
are received by `btrfs receive`. A mount must show the same in both, and `diff --other` must
find no difference. Needs root, btrfs-progs, xfs_io and a kernel with btrfs.
"""
import os
import shutil
import socket
import stat
import sys

import kernel
from diff import exchange
from kernel import run
from send import PROTOCOLS, check_streams, differences, receive


def write(path, data=b"data", offset=None):
    with open(path, "ab" if offset is None else "rb+") as file:
        if offset is not None:
            file.seek(offset)
        file.write(data)


def xfs_io(path, *commands):
    run("xfs_io", "-f", *[word for command in commands for word in ("-c", command)], path,
        check=True)


def clone(path, source, start, offset, length):
    xfs_io(path, f"reflink {source} {start} {offset} {length}")


class Scenarios:
    """Generators: what is before the first yield comes before the first snapshot."""

    def nothing(self, top):
        """An empty subvolume."""
        yield

    def types(self, top):
        """btrfs/019: every type of file, large device numbers."""
        os.mknod(f"{top}/char", stat.S_IFCHR | 0o600, os.makedev(300, 70000))
        os.mkfifo(f"{top}/fifo")
        yield
        os.mknod(f"{top}/block", stat.S_IFBLK | 0o640, os.makedev(8, 1))
        with socket.socket(socket.AF_UNIX) as sock:
            directory = os.open(top, os.O_RDONLY)
            sock.bind(f"/proc/self/fd/{directory}/socket")
            os.close(directory)
        os.unlink(f"{top}/fifo")
        os.mkdir(f"{top}/fifo")
        os.symlink("fifo", f"{top}/link")

    def parent_is_newer(self, top):
        """btrfs/033, 041: files in a directory with a higher number."""
        write(f"{top}/file")
        os.mkdir(f"{top}/new")
        os.rename(f"{top}/file", f"{top}/new/file")
        os.mkdir(f"{top}/newest")
        os.rename(f"{top}/new", f"{top}/newest/new")
        yield
        os.mkdir(f"{top}/later")
        os.rename(f"{top}/newest", f"{top}/later/newest")
        os.rename(f"{top}/later/newest/new/file", f"{top}/file")

    def links(self, top):
        """btrfs/050, 117, 283: more names than fit into an item, and directories renamed around."""
        os.mkdir(f"{top}/d")
        write(f"{top}/file")
        for number in range(300):
            os.link(f"{top}/file", f"{top}/d/{number:0100}")
        yield
        for number in range(0, 300, 3):
            os.unlink(f"{top}/d/{number:0100}")
        for number in range(1, 300, 3):
            os.rename(f"{top}/d/{number:0100}", f"{top}/moved{number}")
        os.rename(f"{top}/d", f"{top}/e")
        os.unlink(f"{top}/file")

    def temporary_names(self, top):
        """Names like those that a stream uses for a while."""
        for number in range(256, 264):
            os.mkdir(f"{top}/o{number}-{number}-0")
            write(f"{top}/o{number}-7-0")
        yield
        for number in range(256, 260):
            os.rename(f"{top}/o{number}-7-0", f"{top}/o{number}-7-1")
            os.rename(f"{top}/o{number}-{number}-0", f"{top}/o{number}-7-0")

    def long_paths(self, top):
        """btrfs/051, 338: long paths, strange names."""
        path = top.encode()
        for letter in b"abcdefgh":
            path += b"/" + bytes([letter]) * 255
            os.mkdir(path)
            write(path + b"/\n\xff\xfe")
        yield
        os.rename(path + b"/\n\xff\xfe", top.encode() + b"/" + b"x" * 255)
        os.rename(top.encode() + b"/" + b"a" * 255, top.encode() + b"/short")

    def exchanges(self, top):
        """btrfs/083, 105, 145, 222: names that are swapped, files with directories."""
        for name in "abcd":
            os.mkdir(f"{top}/{name}")
            write(f"{top}/{name}/file", name.encode())
            write(f"{top}/file-{name}", name.encode())
        yield
        exchange(f"{top}/a", f"{top}/b")
        exchange(f"{top}/c", f"{top}/file-a")
        exchange(f"{top}/d/file", f"{top}/a/file")
        exchange(f"{top}/file-b", f"{top}/file-c")

    def inside_out(self, top):
        """btrfs/030, 039, 040, 043-045, 084, 087, 092, 129: directories that contain each other."""
        os.makedirs(f"{top}/a/b/c/d")
        os.makedirs(f"{top}/x/y/z")
        for path in ("a", "a/b", "a/b/c", "a/b/c/d", "x", "x/y", "x/y/z"):
            write(f"{top}/{path}/file", path.encode())
        yield
        os.rename(f"{top}/a/b/c/d", f"{top}/d2")
        os.rename(f"{top}/a/b/c", f"{top}/d2/c")
        os.rename(f"{top}/a/b", f"{top}/d2/c/b2")
        os.rename(f"{top}/a", f"{top}/x/y/z/a")
        os.rename(f"{top}/x/y/z", f"{top}/d2/c/b2/x")
        os.rename(f"{top}/x", f"{top}/d2/c/b2/x/a/x2")

    def removed_around(self, top):
        """btrfs/054, 077, 127, 133-135: directories are removed whose children have moved out."""
        os.makedirs(f"{top}/old/inner/deep")
        os.makedirs(f"{top}/other")
        for number in range(20):
            write(f"{top}/old/inner/{number}")
        yield
        for number in range(10):
            os.rename(f"{top}/old/inner/{number}", f"{top}/other/{number}")
        os.rename(f"{top}/old/inner/deep", f"{top}/other/old")
        shutil.rmtree(f"{top}/old")
        os.mkdir(f"{top}/old")
        os.rename(f"{top}/other/old", f"{top}/old/inner")

    def reused_numbers(self, top):
        """btrfs/155, 178, 241, 272: numbers that go to other inodes, of another type."""
        os.mkdir(f"{top}/d")
        write(f"{top}/d/kept")
        for number in range(4):
            write(f"{top}/d/gone{number}")
        yield
        for number in range(4):
            os.unlink(f"{top}/d/gone{number}")
        os.rename(f"{top}/d/kept", f"{top}/kept")
        os.rmdir(f"{top}/d")
        yield  # the file system is mounted again
        os.mkdir(f"{top}/d")
        for number in range(4):
            os.mkdir(f"{top}/d/gone{number}")
        os.rename(f"{top}/kept", f"{top}/d/kept")

    def holes(self, top):
        """btrfs/025, 130, 137, 149, 191, 284: holes and prealloc at all places."""
        for name in "abcdef":
            xfs_io(f"{top}/{name}", "pwrite -S 0x61 0 256k")
        xfs_io(f"{top}/prealloc", "falloc -k 0 1m", "pwrite -S 0x62 4k 100k")
        yield
        xfs_io(f"{top}/a", "fpunch 0 64k")
        xfs_io(f"{top}/b", "fpunch 64k 64k", "falloc 64k 32k")
        xfs_io(f"{top}/c", "fpunch 192k 64k")
        xfs_io(f"{top}/d", "truncate 10000", "truncate 300000")
        xfs_io(f"{top}/e", "truncate 0", "falloc 0 128k")
        xfs_io(f"{top}/f", "pwrite -S 0x63 1m 4k", "truncate 2m")
        xfs_io(f"{top}/prealloc", "fzero 8k 16k", "truncate 200k")

    def inline(self, top):
        """btrfs/046, 203: inline data that become extents, and back."""
        write(f"{top}/grows", b"x" * 100)
        write(f"{top}/shrinks", b"y" * 100000)
        write(f"{top}/same", b"z" * 2000)
        yield
        write(f"{top}/grows", b"x" * 100000)
        os.truncate(f"{top}/shrinks", 0)
        write(f"{top}/shrinks", b"y" * 100)
        write(f"{top}/same", b"Z", offset=0)

    def compressed(self, top):
        """btrfs/281, 283, 312: compressed data, partly referenced."""
        for kind in ("zlib", "lzo", "zstd"):
            os.mkdir(f"{top}/{kind}")
            run("btrfs", "property", "set", f"{top}/{kind}", "compression", kind, check=True)
            write(f"{top}/{kind}/small", b"abc" * 700)
            xfs_io(f"{top}/{kind}/large", "pwrite -S 0x64 0 300k", "fsync")
            write(f"{top}/{kind}/random", os.urandom(100000))
        yield
        for kind in ("zlib", "lzo", "zstd"):
            xfs_io(f"{top}/{kind}/large", "pwrite -S 0x65 40k 60k", "fpunch 130k 20k", "fsync")
            clone(f"{top}/{kind}/clone", f"{top}/{kind}/large", 8192, 4096, 196608)
            os.truncate(f"{top}/{kind}/large", 250001)

    def clones(self, top):
        """btrfs/108-111, 097, 189, 200, 277, 319: clones within files, between them, to the end."""
        xfs_io(f"{top}/a", "pwrite -S 0x66 0 128k", "pwrite -S 0x67 128k 70001")
        clone(f"{top}/b", f"{top}/a", 0, 0, 0)
        xfs_io(f"{top}/z", "pwrite -S 0x68 0 1m")
        yield
        clone(f"{top}/a", f"{top}/a", 0, 262144, 65536)
        clone(f"{top}/c", f"{top}/b", 65536, 0, 0)
        clone(f"{top}/d", f"{top}/z", 0, 65536, 131072)
        clone(f"{top}/z", f"{top}/b", 0, 0, 131072)
        xfs_io(f"{top}/b", "pwrite -S 0x69 4k 8k")
        clone(f"{top}/e", f"{top}/b", 0, 0, 0)
        os.unlink(f"{top}/a")

    def attributes(self, top):
        """btrfs/016, 038, 048, 053, 168, 214, 235: capabilities, ACLs, large and empty values."""
        os.mkdir(f"{top}/d")
        for name in ("a", "b", "d/c"):
            write(f"{top}/{name}")
            run("setcap", "cap_net_raw+ep", f"{top}/{name}")
        os.setxattr(f"{top}/a", "user.large", os.urandom(4000))
        os.setxattr(f"{top}/a", "user.empty", b"")
        run("setfacl", "-d", "-m", "u:7:rwx", f"{top}/d")
        os.setxattr(top, "user.top", b"1")
        yield
        os.chown(f"{top}/a", 1, 2)
        run("setcap", "cap_net_raw+ep", f"{top}/a")
        write(f"{top}/b", b"more")
        run("setcap", "cap_chown+p", f"{top}/b")
        os.rename(f"{top}/d/c", f"{top}/c")
        os.removexattr(f"{top}/a", "user.large")
        os.setxattr(f"{top}/a", "security.cap", b"not a capability")
        write(f"{top}/d/inherits")
        write(f"{top}/plain")
        os.rename(f"{top}/plain", f"{top}/d/plain")
        os.chmod(f"{top}/c", 0o4755)
        os.removexattr(top, "user.top")

    def modes(self, top):
        """btrfs/034, 186, 188, 227: modes, owners and times alone."""
        for name in "abc":
            write(f"{top}/{name}")
        os.mkdir(f"{top}/d")
        os.symlink("nowhere", f"{top}/l")
        yield
        os.chmod(f"{top}/a", 0o6711)
        os.chown(f"{top}/b", 1000, 1001)
        os.utime(f"{top}/c", ns=(10 ** 18 + 1, 10 ** 17 + 2))
        os.utime(f"{top}/d", ns=(1, 2))
        os.lchown(f"{top}/l", 3, 4)

    def moved_data(self, top):
        """btrfs/094, 169, 229: data that only move on the disk."""
        for number in range(20):
            xfs_io(f"{top}/file", f"pwrite -S {number + 60} {number * 8}k 4k", "fsync")
        xfs_io(f"{top}/other", "pwrite -S 0x70 0 1m")
        yield
        run("btrfs", "filesystem", "defragment", "-czlib", f"{top}/other")
        run("btrfs", "filesystem", "defragment", f"{top}/file")

    def deleted_while_open(self, top):
        """btrfs/278: a file without names."""
        write(f"{top}/a", b"x" * 50000)
        write(f"{top}/b", b"y" * 50000)
        self.open_files = [open(f"{top}/a", "rb+")]
        yield
        os.unlink(f"{top}/a")
        write(f"{top}/new")
        self.open_files[0].write(b"changed")
        self.open_files[0].flush()


def names():
    return [name for name in vars(Scenarios) if not name.startswith("_")]


def snapshot(system, wanted, number):
    """Takes snapshots of scenarios; returns what a mount shows of them."""
    for name in wanted:
        run("btrfs", "subvolume", "snapshot", "-r", system.path(name),
            system.path(f"{name}-{number}"), check=True)
    system.sync()
    return {f"{name}-{number}": kernel.read_tree(system.path(f"{name}-{number}"))
            for name in wanted}


def make(system):
    """Makes both states of all scenarios; returns what a mount shows of them."""
    scenarios = Scenarios()
    scenarios.open_files = []
    running = {}
    for name in names():
        run("btrfs", "subvolume", "create", system.path(name), check=True)
        running[name] = getattr(scenarios, name)(system.path(name))
        next(running[name])
    trees = snapshot(system, names(), 1)
    late = [name for name in names() if next(running[name], "end") != "end"]
    trees |= snapshot(system, [name for name in names() if name not in late], 2)
    for file in scenarios.open_files:
        file.close()
    system.detach()
    system.attach()
    for name in late:
        next(running[name], None)
    trees |= snapshot(system, late, 2)
    system.detach()
    return trees


def send_both(options, system, target, trees, name, words):
    """Sends both snapshots of a scenario, the second one as a difference."""
    program = kernel.Program(options.program, system.images)
    streams = []
    for number, parent in ((1, []), (2, ["-p", f"{name}-1"])):
        snapshot_name = f"{name}-{number}"
        sent = program.ask("send", *words, *parent, snapshot_name)
        title = f"{snapshot_name} {' '.join(words)}"
        if sent.returncode or sent.stderr:
            yield f"{title}: send: status {sent.returncode}: {sent.stderr[-300:]}"
            return
        streams.append(sent.stdout)
        wrong = list(receive(target, sent.stdout, title))
        if not wrong:
            received = kernel.read_tree(target.path(snapshot_name))
            wrong = list(differences(title, trees[snapshot_name], received))
        yield from wrong
    yield from check_streams(options, name, streams, system.images)
    for number in (1, 2):
        run("btrfs", "subvolume", "delete", target.path(f"{name}-{number}"))


def new_file_system(directory, name):
    system = kernel.FileSystem(os.path.join(directory, name))
    system.images = [kernel.make_image(os.path.join(system.directory, "image"), 4 << 30)]
    run("mkfs.btrfs", "-q", system.images[0], check=True)
    system.attach()
    return system


def compare(options, protocol, directory):
    with new_file_system(directory, "source") as system:
        trees = make(system)
        with new_file_system(directory, "target") as target:
            for name in names():
                yield from send_both(options, system, target, trees, name, PROTOCOLS[protocol])


def main():
    kernel.need("mkfs.btrfs", "btrfs", "xfs_io", "setcap", "setfacl")
    options = kernel.parser(__doc__).parse_args()
    return kernel.compare_each(options, {protocol or "protocol 1": protocol
                                         for protocol in PROTOCOLS}, compare)


if __name__ == "__main__":
    sys.exit(main())
