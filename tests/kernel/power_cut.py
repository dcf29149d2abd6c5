#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""power_cut - file systems whose power is cut at any moment, while much is going on

usage: sudo tests/kernel/power_cut.py [--count N] [--seed S] [--cuts N] [--program PROGRAM]
                                      [--keep DIRECTORY]

The devices of each file system are parts of one file on another btrfs, so that a clone of that file
is a copy of all of them at one moment. Several processes change the file system (log_replay.py), as
a balance, a replacement of a device, the deletion of a snapshot or the like goes on. At some
moments all devices are copied. What `mount` shows of a copy must be what a mount of it by the
kernel shows, with the log replayed and without, and `check` must find no error. Needs root,
mkfs.btrfs, FUSE and a kernel with btrfs.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import kernel
from kernel import run
from log_replay import Work
from unusual import differ, read_all

MIB = 1 << 20
SIZE = 768 * MIB
LAYOUTS = [(1, "single", "dup"), (1, "single", "single"), (2, "raid0", "raid1"),
           (2, "raid1", "raid1"), (3, "raid5", "raid1c3"), (3, "raid1", "raid5"),
           (4, "raid10", "raid10"), (4, "raid6", "raid1c4"), (3, "single", "raid0")]
REPLAYED = ("mtime", "ctime", "atime")


class Settings:
    record = False


class Cuttable(kernel.FileSystem):
    """A file system whose devices are parts of one file, with a few parts to spare."""

    def __init__(self, directory, host, seed):
        super().__init__(directory)
        self.random, self.host = random.Random(seed), host
        self.file = kernel.make_image(host.path("devices"), 7 * SIZE)
        self.parts, self.workers, self.tasks, self.serial = [], [], [], 0

    def add_part(self):
        number = len(self.parts)
        self.loops.append(run("losetup", "-f", "--show", "-o", number * SIZE, "--sizelimit", SIZE,
                              self.file, check=True).stdout.strip())
        self.parts.append(self.loops[-1])
        if self not in kernel.FileSystem.attached:
            kernel.FileSystem.attached.append(self)
        return self.loops[-1]

    def make(self):
        r = self.random
        count, data, metadata = r.choice(LAYOUTS)
        words = ["-n", r.choice(["4096", "16384", "16384", "65536"]), "-d", data, "-m", metadata,
                 "--csum", r.choice(["crc32c", "xxhash", "blake2"])]
        if r.random() < 0.3:
            words += ["-O", "^no-holes"]
        if r.random() < 0.3:
            words += ["-R", "^free-space-tree"]
        if r.random() < 0.2:
            words += ["-R", "quota"]
        self.made = " ".join(words)
        run("mkfs.btrfs", "-q", "-f", *words, *[self.add_part() for _ in range(count)], check=True)
        self.mount_loops("noatime", *r.choice([
            # Not flushoncommit: with it, Linux 6.18 stops for ever, in a clone of an inline extent.
            [], ["compress=zstd"], ["commit=1"], ["compress-force=lzo"],
            ["nodatacow"], ["discard=async"]]))

    def work(self, number, seed):
        """A process that changes the files of one folder until it is killed."""
        folder = self.path(f"work{number}")
        os.mkdir(folder)
        process = os.fork()
        if process:
            self.workers.append(process)
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work = Work(folder, seed, Settings)
        while True:
            try:
                work.step()
            except (OSError, ValueError):
                pass

    def start(self, *words):
        self.tasks.append(subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    # What else goes on.

    def balance(self):
        self.start("btrfs", "balance", "start", "-f", *self.random.choice(
            [["-d"], ["-m"], ["--full-balance"], ["-dconvert=single"], ["-mconvert=single"],
             ["-mconvert=dup"]]), self.mount)

    def add(self):
        if len(self.parts) < 6:
            self.start("btrfs", "device", "add", "-f", "-K", self.add_part(), self.mount)

    def delete(self):
        self.start("btrfs", "device", "delete", self.random.randrange(1, 5), self.mount)

    def replace(self):
        if len(self.parts) < 6:
            self.start("btrfs", "replace", "start", "-B", "-f", self.random.randrange(1, 4),
                       self.add_part(), self.mount)

    def resize(self):
        self.start("btrfs", "filesystem", "resize",
                   f"{self.random.randrange(1, 4)}:{self.random.choice(['-200m', 'max'])}",
                   self.mount)

    def subvolume(self):
        self.serial += 1
        self.start("btrfs", "subvolume", "create", self.path(f"subvolume{self.serial}"))

    def snapshot(self):
        self.serial += 1
        self.start("btrfs", "subvolume", "snapshot", *self.random.choice([[], ["-r"]]), self.mount,
                   self.path(f"snapshot{self.serial}"))

    def drop(self):
        found = [name for name in os.listdir(self.mount) if name.startswith("s")]
        if found:
            self.start("btrfs", "subvolume", "delete", self.path(self.random.choice(found)))

    def fill(self):
        self.start("dd", "if=/dev/urandom", f"of={self.path('work0', 'filling')}", "bs=1M",
                   "count=100")

    def defragment(self):
        self.start("btrfs", "filesystem", "defragment", "-r", "-czlib", self.mount)

    def quota(self):
        self.start("btrfs", "quota", self.random.choice(["enable", "disable", "rescan"]),
                   self.mount)

    def scrub(self):
        self.start("btrfs", "scrub", "start", "-B", self.mount)

    def commit(self):
        self.start("sync", "-f", self.mount)

    def begin(self):
        self.random.choice([
            self.balance, self.balance, self.add, self.delete, self.replace, self.resize,
            self.subvolume, self.snapshot, self.snapshot, self.drop, self.drop, self.fill,
            self.defragment, self.quota, self.scrub, self.commit, self.commit])()

    def cut(self, name):
        """Copies all devices at one moment. Returns the copies, as images of their own."""
        clone = self.host.path(name)
        run("cp", "--reflink=always", self.file, clone, check=True)
        images = []
        for number in range(len(self.parts)):
            path = os.path.join(self.directory, f"{name}-{number + 1}.img")
            run("dd", f"if={clone}", f"of={path}", "bs=1M", f"skip={number * SIZE // MIB}",
                f"count={SIZE // MIB}", "conv=sparse", check=True)
            os.truncate(path, SIZE)
            images.append(path)
        os.unlink(clone)
        return images

    def stop(self):
        for process in self.workers:
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)
        for words in ["balance", "cancel"], ["replace", "cancel"], ["scrub", "cancel"]:
            run("btrfs", *words, self.mount)
        for task in self.tasks:
            task.terminate()
            task.wait()
        self.workers, self.tasks = [], []

    def detach(self):
        self.stop()
        super().detach()


def used(images):
    """Without the parts that have no superblock of the file system."""
    found = []
    for image in images:
        with open(image, "rb") as file:
            file.seek(65536 + 64)
            if file.read(8) == b"_BHRfS_M":
                found.append(image)
    return found


def by_kernel(images, directory, *options):
    """All files of copies of the images. With the time after which the mount has set times."""
    copies = kernel.copy_images(images, os.path.join(directory, "mounted"))
    since = time.time_ns() - 10**9
    with kernel.FileSystem(directory, copies) as system:
        system.attach("ro", "noatime", *options)
        tree = read_all(system.mount)
    for copy in copies:
        os.unlink(copy)
    for entry in tree.values():
        for name in REPLAYED:
            if entry.get(name, 0) >= since:
                del entry[name]
    return tree


def by_program(program, directory, *options):
    where = os.path.join(directory, "fuse")
    os.makedirs(where, exist_ok=True)
    run(*program.words("mount", "--background", *options, where), check=True)
    try:
        return read_all(where)
    finally:
        run("umount", where)


def compare_trees(name, theirs, ours):
    for path, entry in theirs.items():
        if path in ours and entry["inode"] != 2:
            ours[path] = {member: value for member, value in ours[path].items()
                          if member in entry or member not in REPLAYED}
    return list(differ(name, theirs, ours))[:10]


def compare_cut(options, name, images, directory):
    program = kernel.Program(options.program, used(images))
    for words, how in (((), ()), (("rescue=nologreplay",), ("--log=ignore",))):
        try:
            theirs = by_kernel(program.images, directory, *words)
        except kernel.NotMade as error:
            info = program.ask("info")
            yield f"{name}: the kernel does not mount it: {error}: {info.stdout} {info.stderr}"
            return
        yield from compare_trees(f"{name} {how}", theirs, by_program(program, directory, *how))
    checked = program.ask("check", "--data", "-q")
    if checked.returncode:
        yield f"{name}: check: status {checked.returncode}"
        yield checked.stdout[:1500].decode(errors="replace")


def compare(options, seed, directory):
    host = kernel.FileSystem(os.path.join(directory, "host"))
    with host:
        run("mkfs.btrfs", "-q", "-f", host.add_image(40 << 30), check=True)
        host.attach("nodatasum")
        with Cuttable(os.path.join(directory, "system"), host, seed) as system:
            system.make()
            for number in range(3):
                system.work(number, seed + number)
            cuts = []
            for number in range(options.cuts):
                for _ in range(system.random.choice([1, 2, 4])):
                    system.begin()
                    time.sleep(system.random.choice([0.05, 0.3, 1]))
                cuts.append((f"cut{number}", system.cut(f"cut{number}")))
            system.detach()
        print(seed, system.made, flush=True)
        for name, images in cuts:
            wrong = list(compare_cut(options, name, images, directory))
            if wrong and options.keep:
                shutil.copytree(system.directory, os.path.join(options.keep, f"{seed}"),
                                dirs_exist_ok=True)
            yield from wrong
            for image in images:
                os.unlink(image)


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--cuts", type=int, default=5)
    options = parser.parse_args()
    kernel.need("mkfs.btrfs", "fusermount3")
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
