#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""btrfstune_killed - kills btrfstune at each of its writes, and repairs what it leaves

usage: tests/kernel/btrfstune_killed.py [--count N] [--seed S] [--program PROGRAM] [--keep FOLDER]
                                        [--tools FOLDER] [--change WORD]

strace kills btrfstune at one of its writes: at the first one, the second one, and so on. The
changes are those of the id and of metadata_uuid, also of a file system that has one; of the type of
checksums; to and from a block group tree; and to a free space tree. In some cases, btrfstune is
started again with another change. There are one or two devices. `repair` writes overlays; then the
file system is like any other: `check --data` finds nothing, a second plan is empty, the kernel
mounts it for writing, all files are as before, and a scrub and `btrfs check` find nothing.

--count N: so many of the states, chosen at random; 0: all. --tools: a folder with another btrfstune
and btrfs. Changes that btrfstune does not know are left out. --change: only those whose name
contains the word.
"""
import os
import sys
import tempfile
import uuid

import kernel
import repair
from kernel import run

FSID = str(uuid.uuid4()) # scripts run at the same time
TO_GROUPS = ["--convert-to-block-group-tree"]
# What is done before, the change that is killed, and what is tried after it.
CHANGES = {
    "id": ([], ["-f", "-u"], []),
    "metadata_uuid": ([], ["-f", "-m"], []),
    "second metadata_uuid": ([["-f", "-m"]], ["-f", "-m"], []),
    "metadata_uuid back": ([["-f", "-m"]], ["-f", "-M", FSID], []),
    "checksums": ([], ["--csum", "sha256"], []),
    "to groups": ([], TO_GROUPS, []),
    "from groups": ([TO_GROUPS], ["--convert-from-block-group-tree"], []),
    "to free space tree": ([], ["--convert-to-free-space-tree"], []),
    "id, then metadata_uuid": ([], ["-f", "-u"], ["-f", "-m"]),
    "metadata_uuid, then checksums": ([], ["-f", "-m"], ["--csum", "xxhash"]),
    "to groups, then id": ([], TO_GROUPS, ["-f", "-u"]),
    "checksums, then groups": ([], ["--csum", "xxhash"], TO_GROUPS),
}


class Images(kernel.Program):
    """The images of a file system, and their devices."""

    def __init__(self, path, images):
        super().__init__(path, images)
        self.paths = {}
        for image in images:
            with open(image, "rb") as file:
                file.seek(repair.SUPERBLOCKS[0] + 201)
                self.paths[int.from_bytes(file.read(8), "little")] = image


def tune(images, directory, change, before=()):
    """Runs btrfstune, with words before it."""
    with kernel.FileSystem(directory, images) as system:
        system.add_loops()
        run("btrfs", "device", "scan", *system.loops)
        return run(*before, "btrfstune", *change, system.loops[0])


class Made:
    """File systems with each number of devices, and the changes that btrfstune knows."""

    def __init__(self, options, directory):
        known = run("btrfstune", "--help").stdout
        self.options, self.directory, self.healthy, self.images = options, directory, {}, {}
        self.cases = {}
        for name, (before, change, after) in CHANGES.items():
            words = [words[0] for words in (*before, change, after) if words]
            if options.change in name and all(word == "-f" or word in known for word in words):
                for count in 1, 2:
                    self.add(name, count)

    def make(self, folder, count, words):
        images = [kernel.make_image(os.path.join(folder, f"dev{number + 1}.img"), 256 << 20)
                  for number in range(count)]
        with kernel.FileSystem(folder, images) as system:
            system.add_loops()
            run("mkfs.btrfs", "-q", "-f", *words, *system.loops, check=True)
            system.mount_loops()
            for number in range(300):
                with open(system.path(f"file {number}"), "wb") as file:
                    file.write(bytes([number % 251]) * number * 100)
            run("btrfs", "subvolume", "snapshot", system.mount, system.path("snapshot"), check=True)
            with open(system.path("large"), "wb") as file:
                file.write(os.urandom(3 << 20))
        return images

    def add(self, name, count):
        """Makes the file system of a change, and counts the writes of the change."""
        folder = os.path.join(self.directory, f"{name} {count}".replace(" ", "-"))
        os.makedirs(folder)
        words = ["-U", FSID, "-m", "raid1" if count > 1 else "dup"]
        words += ["-R", "^free-space-tree"] if "free space" in name else []
        if "block-group-tree" in run("mkfs.btrfs", "-O", "list-all").stdout: # may be the default
            words += ["-O", "^block-group-tree"]
        images = self.make(folder, count, words)
        for change in CHANGES[name][0]:
            if tune(images, folder, change).returncode:
                return
        with tempfile.TemporaryDirectory(dir=folder) as copy:
            calls = os.path.join(copy, "calls")
            result = tune(kernel.copy_images(images, copy), copy, CHANGES[name][1],
                          ["strace", "-f", "--seccomp-bpf", "-o", calls, "-e", "trace=pwrite64"])
            with open(calls, encoding="utf-8", errors="replace") as file:
                writes = sum("pwrite64" in line for line in file)
        if result.returncode:
            print(f"skipped: btrfstune cannot do it: {name}: {result.stdout[-200:]}")
            return
        self.images[name, count] = images
        for number in range(1, writes + 1):
            self.cases[f"{name}, {count} devices, write {number} of {writes}"] = (
                self, name, count, number)

    def knows(self, name, count):
        """What is known of the file system before the change."""
        if (name, count) not in self.healthy:
            self.healthy[name, count] = repair.Healthy(
                self.options.program, self.images[name, count], self.directory)
        return self.healthy[name, count]


def judge(options, healthy, images, directory):
    system = Images(options.program, images)
    before = [kernel.digest(image) for image in images]
    fixed, result = repair.repair(system, directory)
    if [kernel.digest(image) for image in images] != before:
        yield "an image was changed"
    if result.returncode:
        yield f"not repaired: {result.stderr.decode()[-900:]}"
        return
    fixed = fixed or images # nothing is wrong
    checked = kernel.Program(options.program, fixed).ask("check", "--data")
    if checked.returncode:
        yield f"check: {checked.stdout.decode(errors='replace')[-900:]}"
        return
    again = kernel.Program(options.program, fixed).ask("repair", "--data", "--json")
    if again.stdout or again.returncode:
        yield f"a second plan is not empty: {again.stdout.decode()[-600:]}"
    yield from repair.judge_here(fixed, directory, healthy, True)


def compare(options, case, directory):
    made, name, count, number = case
    print(f"{name}, {count} devices, write {number}", flush=True)
    images = kernel.copy_images(made.images[name, count], directory)
    result = tune(images, directory, CHANGES[name][1],
                  ["strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
                   f"inject=pwrite64:signal=KILL:when={number}"])
    if not result.returncode:
        raise kernel.NotMade("btrfstune was not killed")
    if CHANGES[name][2]:
        tune(images, directory, CHANGES[name][2])
    return judge(options, made.knows(name, count), images, directory)


def main():
    parser = kernel.parser(__doc__)
    parser.add_argument("--tools", help="a folder with btrfstune and btrfs")
    parser.add_argument("--change", default="", help="only changes whose name contains this")
    options = parser.parse_args()
    if options.tools:
        os.environ["PATH"] = f"{os.path.abspath(options.tools)}:{os.environ['PATH']}"
    kernel.need("mkfs.btrfs", "btrfstune", "qemu-img", "strace")
    with tempfile.TemporaryDirectory(prefix="killed.", dir=options.directory) as directory:
        cases = Made(options, directory).cases
        print(f"{len(cases)} states", flush=True)
        return kernel.compare_each(options, kernel.sample(options, cases) if options.count
                                   else cases, compare)


if __name__ == "__main__":
    sys.exit(main())
