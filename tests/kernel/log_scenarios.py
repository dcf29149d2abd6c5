#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""log_scenarios - the situations of xfstests in which a log is replayed

usage: sudo tests/kernel/log_scenarios.py [--count N] [--seed S] [--program PROGRAM]
                                          [--keep DIRECTORY] [NAME...]

Each line of the table below is the situation that a test of xfstests creates: changes, a commit,
more changes, an fsync. The image is copied right after it, and what a mount of the copy shows is
compared with what btrfs-walk shows, as log_replay.py does. Each runs with and without the no-holes
feature. Default: all of them; with --count, so many at random. Needs root, mkfs.btrfs and a kernel
with btrfs.
"""
import ctypes
import fcntl
import os
import struct
import sys

import kernel
from kernel import run
from log_replay import (FICLONERANGE, KEEP_SIZE, PUNCH_HOLE, RENAME_EXCHANGE, SYS_renameat2,
                        ZERO_RANGE, check, compare_cut, has_log, libc, shown)

FEATURES = (["-n", "16384", "-O", "no-holes"], ["-n", "4096", "-O", "^no-holes"])

# NAME: COMMAND; COMMAND; ... Files are relative to the mount. "w FILE OFFSET LENGTH" writes,
# "alloc", "keep" (beyond the end), "punch" and "zero" are modes of fallocate, "ln", "mv", "rm",
# "d" (mkdir), "rmdir", "sl" (symlink), "x" and "xr" (set and remove an attribute), "t" (truncate),
# "many FILE DIRECTORY N" (links), "swap" (renameat2), "clone SOURCE OFFSET LENGTH TARGET OFFSET".
TABLE = """
generic/034: d p; commit; w p/a 0 100; fsync p; w p/b 0 100; fsync p/b
generic/039: w a 0 4096; ln a b; commit; rm b; fsync a
generic/040: w a 0 100; d p; many a p 900; commit; ln a p/more; fsync a
generic/041: w a 0 100; d p; many a p 900; commit; rm p/many-7; ln a p/many-7; rm p/many-8; fsync a
generic/056: w a 0 8000; fsync a; ln a b; w c 0 100; fsync c
generic/057: w a 0 100; commit; w a 0 9000; fsync a; ln a b; w c 0 100; fsync c
generic/059: w a 0 135168; commit; punch a 92160 5120; fsync a
generic/059-2: w a 0 135168; commit; punch a 0 4096; punch a 1000 200; fsync a
generic/065: d p; w p/a 0 10; commit; ln p/a p/b; ln p/a p/c; w p/d 0 10; ln p/d p/e; fsync p
generic/066: w a 0 10; x a user.one 1; x a user.two 2; x a user.three 3; commit; xr a user.two;\
    fsync a
generic/066-2: w a 0 10; x a user.one 1; x a user.two 2; commit; xr a user.one; ln a b;\
    w c 0 10; fsync c; fsync a
generic/073: d p; w p/a 0 4096; commit; w p/b 0 4096; mv p/a p/c; fsync p/b; fsync p
generic/090: w a 0 32768; fsync a; ln a b; w a 32768 32768; fsync a
generic/101: w a 0 131072; commit; t a 4096; t a 131072; fsync a
generic/101-2: w a 0 131072; fsync a; t a 65536; fsync a; t a 131072; fsync a
generic/104: d p; w p/a 0 10; w p/b 0 10; commit; ln p/a p/a1; ln p/b p/b1; fsync p/b
generic/106: d p; w a 0 10; ln a p/b; commit; drop; rm p/b; fsync a
generic/107: d p; w p/a 0 10; ln p/a p/b; ln p/a c; commit; rm p/b; fsync p/a
generic/177: w a 0 300000; commit; punch a 4096 4096; punch a 12288 8192; fsync a;\
    punch a 100000 50000; fsync a
generic/311: w a 0 200000; fsync a; w a 70000 50000; fsync a; w a 5000 100; fsync a
generic/321: d p; fsync p; w p/a 0 10; fsync p/a
generic/321-2: d p; w p/a 0 10; d q; commit; mv p/a q/a; fsync q
generic/322: w a 0 4096; fsync a; mv a b; fsync b
generic/322-2: w a 0 4096; commit; mv a b; w b 0 8192; fsync b
generic/325: w a 0 262144; fsync a; w a 16384 4096; w a 98304 4096; fsync a
generic/335: d p; d q; w p/a 0 10; commit; mv p/a q/a; w p/b 0 10; fsync p
generic/336: d p; d q; w p/a 0 10; ln p/a q/b; commit; rm p/a; mv q/b p/b; w p/c 0 10; fsync p/c
generic/341: d p; w p/a 0 100; commit; mv p q; d p; w p/b 0 100; fsync p/b
generic/341-2: d p; d p/x; w p/x/a 0 9; commit; mv p/x p/y; d p/x; fsync p/x
generic/342: w a 0 4096; commit; mv a b; w a 0 8192; fsync a
generic/343: d p; d q; w p/a 0 10; w p/b 0 10; commit; mv p/a q/a; ln p/b p/c; fsync p/b
generic/348: d p; w a 0 10; commit; sl target p/link; fsync p
generic/376: d p; w p/a 0 10; commit; mv p/a p/b; w p/a 0 20; fsync p/b
generic/456: w a 0 1000; commit; zero a 0 4096; keep a 4096 8192; fsync a
generic/479: fifo a; commit; rm a; w a 0 10; fsync a
generic/480: d p; w p/a 0 10; ln p/a p/b; commit; rm p/b; w p/b 0 20; fsync p/b
generic/481: w a 0 10; fsync a; w b 0 10; fsync b
generic/483: w a 0 262144; commit; keep a 262144 3145728; fsync a
generic/483-2: w a 0 131072; keep a 131072 2097152; commit; t a 100000; w a 0 4096; fsync a
generic/489: w a 0 10; x a user.1 1; x a user.2 2; fsync a; commit; w a 0 4096; x a user.3 3;\
    fsync a
generic/498: d p; d q; w q/a 0 10; commit; d p/x; d p/x/y; ln q/a p/x/y/b; fsync q/a
generic/501: w a 0 262144; w b 0 1048576; commit; clone a 0 262144 b 524288; fsync b;\
    w b 600000 9000; fsync b
generic/502: d p; w p/a 0 10; w p/b 0 20; commit; mv p/a p/c; ln p/b p/a; fsync p/b
generic/509: w z 0 10; tmp .; fsync z
generic/510: d p; d q; w p/a 0 10; commit; rm p/a; rmdir p; mv q p; w p/b 0 9; fsync p
generic/512: w a 0 21; commit; alloc a 17 100; fsync a
generic/520: d p; w a 0 10; commit; ln a p/b; ln a c; fsync a
generic/526: w a 0 10; w b 0 20; w c 0 30; commit; mv a d; mv b a; mv c b; w c 0 40; fsync a;\
    fsync c
generic/527: d p; w p/a 0 10; w p/b 0 10; ln p/a p/c; commit; rm p/a; mv p/b p/a; ln p/c p/b;\
    w p/e 0 1; fsync p/a; fsync p/e
generic/534: w a 0 10; commit; mv a b; drop; w b 0 5000; fsync b
generic/535: w a 0 10; commit; chmod a 600; fsync a
generic/535-2: d p; commit; chmod p 700; fsync p
generic/546: w a 0 1048576; w b 0 262144; commit; clone b 0 262144 a 0;\
    clone b 0 131072 a 524288; fsync a
generic/552: w a 0 10; d p; commit; mv a p/b; ln p/b c; drop; w p/b 0 700; fsync p/b
generic/557: d p; w p/a 0 10; commit; w p/a 0 4000; fsync p/a; rm p/a; fsync p
generic/588: w a 0 524288; w b 0 262144; commit; clone a 0 131072 b 0; fsync b;\
    clone a 4096 4096 b 65536; fsync b
generic/640: d p; d q; w p/a 0 10; commit; w q/b 0 10; mv p/a q/a; fsync q/b; fsync p
generic/677: w a 0 4096; keep a 4096 1048576; commit; w a 4096 4096; fsync a
generic/690: d p; sl here p/l; commit; mv p/l p/m; fsync p
generic/690-2: d p; sl here p/l; w p/a 0 9; commit; rm p/l; sl there p/l; fsync p
generic/695: w a 0 65536; commit; punch a 4096 4096; fsync a; punch a 8192 4096; fsync a
generic/703: w a 0 1000; commit; sync a 0 4096; sync a 8192 4096; t a 20000; sync a 16384 100
generic/745: w a 0 10; x a user.long 1234567890; fsync a; commit; x a user.b 1; fsync a; commit;\
    w a 0 20; fsync a
generic/757: w a 0 1000000; commit; sync a 4096 4096; sync a 40960 8192; sync a 0 100
generic/764: d p; w p/a 0 10; ln p/a p/b; commit; rm p/a; rm p/b; w p/c 0 1; fsync p/c; fsync p
generic/771: w a 0 9; w b 0 9; commit; open b; rm b; fsynced; fsync a
generic/779: d p; sl here p/l; commit; mv p/l p/m; w p/b 0 10; fsync p/b; fsync p
generic/782: d p; d p/q; w a 0 10; commit; d p/q/r; ln a p/q/r/b; fsync a
generic/784: d p; d q; w p/a 0 9; commit; mv p q/p; d p; w p/b 0 9; fsync p; fsync q
generic/785: d p; w p/a 0 10; fsync p; d p/q; ln p/a p/q/a; fsync p/a
btrfs/056: w a 0 40960; w b 0 40960; commit; clone a 8192 8192 b 0; fsync b
btrfs/098: w a 0 102400; commit; w a 20480 4096; clone a 20480 4096 a 12288; fsync a
btrfs/159: w a 0 1048576; commit; punch a 0 65536; fsync a; punch a 65536 983040; fsync a
btrfs/172: w a 0 4096; t a 1048576; commit; w a 524288 4096; fsync a
btrfs/201: w a 0 2097152; commit; punch a 0 4096; fsync a; punch a 1000000 500000; fsync a
btrfs/206: w a 0 8192; w a 65536 4096; commit; w a 200000 100; fsync a
btrfs/209: w a 0 100; commit; w a 300000 4096; t a 400000; fsync a
btrfs/211: w a 0 4096; alloc a 4096 1048576; commit; keep a 2000000 500000; w a 8192 100; fsync a
btrfs/231: w a 0 65536; t b 1048576; commit; t a 10000; clone b 0 65536 a 0; fsync a
btrfs/236: d p; w p/a 0 10; commit; w p/a 0 20; mv p/a p/b; fsync p/b
btrfs/239: d p; d p/q; w p/q/a 0 1; commit; fsync p; mv p/q r; d p/q; fsync p
btrfs/240: w a 0 4096; alloc a 4096 262144; commit; w a 8192 4096; fsync a; w a 12288 4096;\
    w a 40960 4096; fsync a
btrfs/243: w a 0 100; commit; t a 1048576; mv a b; fsync b
swap names: w a 0 10; w b 0 20; commit; swap a b; fsync a
swap directories: d p; d q; w p/a 0 10; w q/b 0 20; commit; swap p q; fsync p/b
"""


class Scene:
    def __init__(self, system):
        self.system, self.top, self.opened = system, system.mount, {}

    def path(self, name):
        return os.path.join(self.top, name)

    def write(self, file, offset, length, flags=0):
        fd = os.open(self.path(file), os.O_RDWR | os.O_CREAT | flags, 0o644)
        os.pwrite(fd, bytes([65 + int(offset) // 4096 % 50]) * int(length), int(offset))
        os.close(fd)

    def mode(self, file, offset, length, mode):
        fd = os.open(self.path(file), os.O_RDWR)
        check(libc.fallocate64(fd, mode, ctypes.c_int64(int(offset)),
                                         ctypes.c_int64(int(length))))
        os.close(fd)

    def clone(self, source, offset, length, target, at):
        fds = [os.open(self.path(name), os.O_RDWR) for name in (source, target)]
        fcntl.ioctl(fds[1], FICLONERANGE, struct.pack(
            "qQQQ", fds[0], int(offset), int(length), int(at)))
        for fd in fds:
            os.close(fd)

    def fsync(self, name):
        fd = os.open(self.path(name), os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def keep_open(self, name):
        self.opened[name] = os.open(self.path(name), os.O_RDWR)

    def tmp(self, folder):
        self.opened["tmp"] = fd = os.open(self.path(folder), os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, b"never linked")
        os.fsync(fd)

    def drop(self):
        self.system.sync()
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2\n")

    def many(self, source, folder, count):
        for i in range(int(count)):
            os.link(self.path(source), self.path("%s/many-%d" % (folder, i)))

    def swap(self, a, b):
        check(libc.syscall(SYS_renameat2, -100, self.path(a).encode(), -100,
                                     self.path(b).encode(), RENAME_EXCHANGE))

    def do(self, word, *names):
        path = self.path
        actions = {
            "w": self.write, "sync": lambda *a: self.write(*a, os.O_DSYNC),
            "t": lambda file, size: (self.write(file, 0, 0), os.truncate(path(file), int(size))),
            "alloc": lambda *a: self.mode(*a, 0), "keep": lambda *a: self.mode(*a, KEEP_SIZE),
            "punch": lambda *a: self.mode(*a, PUNCH_HOLE | KEEP_SIZE),
            "zero": lambda *a: self.mode(*a, ZERO_RANGE), "clone": self.clone,
            "ln": lambda a, b: os.link(path(a), path(b)), "swap": self.swap, "drop": self.drop,
            "mv": lambda a, b: os.rename(path(a), path(b)), "rm": lambda a: os.unlink(path(a)),
            "d": lambda a: os.mkdir(path(a)), "rmdir": lambda a: os.rmdir(path(a)),
            "sl": lambda target, a: os.symlink(target, path(a)), "many": self.many,
            "fifo": lambda a: os.mkfifo(path(a)), "fsync": self.fsync, "tmp": self.tmp,
            "x": lambda a, name, value: os.setxattr(path(a), name, value.encode()),
            "xr": lambda a, name: os.removexattr(path(a), name), "open": self.keep_open,
            "chmod": lambda a, mode: os.chmod(path(a), int(mode, 8)), "commit": self.system.sync,
            "fsynced": lambda: [os.fsync(fd) for fd in self.opened.values()],
        }
        actions[word](*names)


def compare(options, case, directory):
    commands, features = case
    with kernel.FileSystem(directory) as system:
        system.add_image(256 << 20)
        run("mkfs.btrfs", "-q", *features, *system.images, check=True)
        system.attach("commit=300", "noatime")
        scene = Scene(system)
        for command in commands.split(";"):
            scene.do(*command.split())
        cut = kernel.copy_images(system.images, os.path.join(directory, "cut"))
        for fd in scene.opened.values():
            os.close(fd)
    if not has_log(cut[0]):
        print(f"  no log: {commands}")
    return compare_cut(options.program, shown(cut, directory), cut, directory)


def main():
    scenes = dict(line.split(": ", 1) for line in TABLE.strip().splitlines())
    parser = kernel.parser(__doc__, len(scenes), 5)
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    kernel.need("mkfs.btrfs")
    if unknown := set(options.name) - set(scenes):
        parser.error(f"no situation is named {sorted(unknown)[0]}")
    chosen = {name: scenes[name] for name in options.name} or kernel.sample(options, scenes)
    cases = {f"{name}, {features[-1]}": (commands, features)
             for name, commands in chosen.items() for features in FEATURES}
    return kernel.compare_each(options, cases, compare)


if __name__ == "__main__":
    sys.exit(main())
