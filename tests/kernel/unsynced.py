#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""unsynced - power cuts that lose any of the writes that were not synced

usage: tests/kernel/unsynced.py [--count N] [--seed S] [--cuts N] [--program PROGRAM] [--keep DIR]
                                [--work DIR] [--verbose]

A kernel in a guest (guest.py, no root is needed) changes a file system (log_replay.py), while the
target log-writes of the device mapper records every write and flush. A cut is at any of them: what
was written before the last flush is there, of the later writes a random part, sometimes torn into
pieces of 4 KiB. Then a guest mounts each image without its log tree, and with the log replayed;
names, attributes and contents must be those that this program reads in both ways. If the kernel
mounts an image, `check` must find no error. Images that it does not mount are counted.

power_cut.py copies devices at one moment, with all writes that the kernel has issued.
"""
import collections
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time

import differential
import guest
import kernel
from log_replay import Work

MIB = 1 << 20
SIZE, LOG_SIZE = 256 * MIB, 1024 * MIB
STEPS = 120
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
LAYOUTS = [(1, "single", "dup"), (1, "single", "single"), (1, "single", "dup"),
           (2, "raid1", "raid1"), (2, "raid0", "raid1")]
MODULES = ["dm-mod", "dm-log-writes", "loop"]
# The directory of the guest is w; modules come from its own folder.
PREPARE = """
mkdir w root root/lib && mount -t hostfs hostfs w -o {folder} && mount -t tmpfs run /run
ln -s /usr/lib/uml/modules root/lib/modules
for module in {modules}; do /sbin/modprobe -d /mnt/root $module; done
python3 -B {script} --in-guest {words}
"""


class Settings:
    record = False


# In the guest.

def make(folder, seed, disk, log):
    """Changes a file system on `disk`, and records its writes in `log`."""
    r = random.Random(seed)
    count, data, metadata = r.choice(LAYOUTS)
    sectors, part = SIZE // 512, SIZE // 512 // count
    os.environ["DM_DISABLE_UDEV"] = "1"
    dm = ["dmsetup"]
    kernel.run(*dm, "create", "log", "--table", f"0 {sectors} log-writes {disk} {log}", check=True)
    parts = []
    for number in range(count):
        kernel.run(*dm, "create", f"part{number}", "--table",
                   f"0 {part} linear /dev/mapper/log {number * part}", check=True)
        parts.append(f"/dev/mapper/part{number}")
    kernel.run(*dm, "mknodes")
    words = ["-n", r.choice(["4096", "16384", "16384"]), "-d", data, "-m", metadata,
             "--csum", r.choice(["crc32c", "xxhash"])]
    words += ["-O", "^no-holes"] if r.random() < 0.3 else []
    words += ["-R", "^free-space-tree"] if r.random() < 0.3 else []
    kernel.run("mkfs.btrfs", "-q", "-f", "-K", *words, *parts, check=True)
    kernel.run(*dm, "message", "log", "0", "mark", "made", check=True)
    top = os.path.join("/mnt", "top")
    os.mkdir(top)
    how = r.choice(["noatime", "compress-force=zstd", "commit=1", "nodatacow", "flushoncommit"])
    kernel.run("btrfs", "device", "scan")
    kernel.run("mount", "-t", "btrfs", "-o", ",".join([how] + [f"device={p}" for p in parts]),
               parts[0], top, check=True)
    work = Work(top, seed, Settings)
    for step in range(STEPS):
        try:
            work.step()
        except (OSError, ValueError):
            pass
        if step % 30 == 17:
            kernel.run(*r.choice([
                ["sync", "-f", top], ["sync", "-f", top],
                ["btrfs", "subvolume", "snapshot", top, os.path.join(top, f"snapshot{step}")],
                ["btrfs", "balance", "start", "-f", "--full-balance", top]]))
    kernel.run("umount", top)
    for name in [f"part{number}" for number in range(count)] + ["log"]:
        kernel.run(*dm, "remove", name)
    with open(os.path.join(folder, "made"), "w", encoding="ascii") as file:
        file.write(json.dumps({"words": " ".join(words + [how]), "count": count}))


def read_cuts(folder):
    """What the kernel shows of the images in `folder`, which it may change."""
    top = b"/mnt/top"
    os.mkdir(top)
    with open(os.path.join(folder, "cuts"), encoding="ascii") as file:
        cuts = json.load(file)
    with open(os.path.join(folder, "answers"), "a", encoding="ascii") as answers:
        for name, images in cuts:
            loops = [kernel.run("losetup", "-f", "--show", os.path.join(folder, image),
                                check=True).stdout.strip() for image in images]
            answer = {"name": name, "since": time.time_ns() - 10**9}
            for how in "rescue=nologreplay", "noatime":
                words = ",".join(["ro", how] + [f"device={loop}" for loop in loops])
                kernel.run("btrfs", "device", "scan")
                mounted = kernel.run("mount", "-t", "btrfs", "-o", words, loops[0], top.decode())
                if mounted.returncode:
                    answer[how] = mounted.stdout[-200:]
                else:
                    answer[how] = differential.read_all(top)
                    kernel.run("umount", top.decode())
                kernel.run("btrfs", "device", "scan", "--forget")
            for loop in loops:
                kernel.run("losetup", "-d", loop)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


# Outside.

def in_guest(folder, images, *words):
    script = PREPARE.format(folder=folder, modules=" ".join(MODULES),
                            script=os.path.abspath(__file__), words=" ".join(map(str, words)))
    status, output = guest.run_guest(script, images, 900, write=True)
    if status:
        print(f"guest: status {status}: {output[-1500:].decode(errors='replace')}", flush=True)
    return status == 0


def read_log(path):
    """The recorded requests: (flags, first byte, length, where the data are in the log)."""
    with open(path, "rb") as file:
        magic, _, count, unit = struct.unpack("<QQQI", file.read(28))
        if magic != 0x6A736677736872:
            raise ValueError("no log")
        place, entries = unit, []
        for _ in range(count):
            file.seek(place)
            sector, length, flags, _ = struct.unpack("<QQQQ", file.read(32))
            place += unit
            entries.append((flags, sector * unit, length * unit, place))
            if not flags & DISCARD:
                place += length * unit
    return entries


def choose_writes(r, entries, end):
    """What of the requests before `end` is on the device."""
    begin = max([n for n in range(end) if entries[n][0] & FLUSH], default=0)
    share, torn = r.choice([0, 0.1, 0.5, 0.5, 0.9, 1]), r.random() < 0.5
    chosen = []
    for number, (flags, first, length, place) in enumerate(entries[:end]):
        if not length or flags & (DISCARD | MARK):
            continue
        if number < begin or flags & FUA or r.random() < share:
            chosen.append((first, length, place))
        elif torn:
            chosen += [(first + at, min(4096, length - at), place + at)
                       for at in range(0, length, 4096) if r.random() < share]
    return chosen


def write_image(paths, size, log, chosen):
    """Makes images of devices, each of `size` bytes."""
    with open(log, "rb") as source:
        files = [open(path, "w+b") for path in paths]
        for file in files:
            file.truncate(size)
        for first, length, place in chosen:
            source.seek(place)
            data = source.read(length)
            while data:
                file, at = files[first // size], first % size
                file.seek(at)
                file.write(data[:size - at])
                first, data = first + size - at, data[size - at:]
        for file in files:
            file.close()


def compare_cut(options, name, images, answer):
    """Kinds and words of the differences."""
    for how, how_words in (("rescue=nologreplay", ["--log=ignore"]), ("noatime", [])):
        theirs = answer[how]
        if isinstance(theirs, str):
            yield "not mounted", f"{name} {how}: {theirs}"
            continue
        try:
            devices = [word for image in images[1:] for word in ("--device", image)]
            ours, said = differential.ask_program(options, images[0], words=[*how_words, *devices])
        except ChildProcessError as error:
            yield "hang", f"{name} {how}: {error}"
            continue
        differential.forget_mount(theirs, ours, answer["since"])
        for kind, text in differential.compare(theirs, ours, said):
            yield kind, f"{name} {how}: {text} {sorted(said)[:2]}"
    if not isinstance(answer["noatime"], str):
        program = kernel.Program(options.program, images)
        checked = program.ask("check", "--data", "-q")
        if checked.returncode:
            yield "check", f"{name}: {checked.returncode}: {checked.stdout[:800].decode()}"


def try_seed(options, seed, classes):
    with tempfile.TemporaryDirectory(prefix="unsynced.", dir=options.work) as folder:
        os.chmod(folder, 0o755)
        disk = kernel.make_image(os.path.join(folder, "disk"), SIZE)
        log = kernel.make_image(os.path.join(folder, "log"), LOG_SIZE)
        if not in_guest(folder, [disk, log], "make", "/mnt/w", seed, "$1", "$2"):
            classes["not made"] += 1
            return
        with open(os.path.join(folder, "made"), encoding="ascii") as file:
            made = json.load(file)
        entries = read_log(log)
        first = next(n for n, entry in enumerate(entries) if entry[0] & MARK)
        r, cuts = random.Random(seed), []
        for number in range(options.cuts):
            end = r.randrange(first + 1, len(entries) + 1)
            images = [f"cut{number}-{part}.img" for part in range(made["count"])]
            chosen = choose_writes(r, entries, end)
            write_image([os.path.join(folder, image) for image in images], SIZE // made["count"],
                        log, chosen)
            cuts.append((f"seed {seed} cut {number}", images))
        print(f"{seed} {made['words']}: {len(entries)} requests", flush=True)
        theirs = os.path.join(folder, "kernel")
        os.mkdir(theirs)
        os.chmod(theirs, 0o755)
        with open(os.path.join(theirs, "cuts"), "w", encoding="ascii") as file:
            json.dump(cuts, file)
        for image in [image for _, images in cuts for image in images]:
            kernel.run("cp", "--sparse=always", os.path.join(folder, image), theirs, check=True)
        in_guest(theirs, [], "read", "/mnt/w")
        answers = []
        if os.path.exists(os.path.join(theirs, "answers")):
            with open(os.path.join(theirs, "answers"), encoding="ascii") as file:
                answers = [json.loads(line) for line in file if line.endswith("\n")]
        classes["cuts"] += len(answers)
        classes["not answered"] += len(cuts) - len(answers)
        for (name, images), answer in zip(cuts, answers):
            paths = [os.path.join(folder, image) for image in images]
            for kind, words in compare_cut(options, name, paths, answer):
                classes[kind] += 1
                if kind not in ("not mounted", "more") or options.verbose:
                    print(f"{kind}: {words}", flush=True)
                    if options.keep:
                        os.makedirs(options.keep, exist_ok=True)
                        for path in paths:
                            shutil.copy(path, os.path.join(options.keep,
                                                           f"{seed}-{os.path.basename(path)}"))


def main():
    if sys.argv[1:2] == ["--in-guest"]:
        what, folder, *words = sys.argv[2:]
        if what == "make":
            return make(folder, int(words[0]), *words[1:])
        return read_cuts(folder)
    parser = kernel.parser(__doc__, 2)
    parser.add_argument("--work", default="/var/tmp", help="for temporary files; the guest hides "
                                                           "/mnt")
    parser.add_argument("--cuts", type=int, default=25, help="images of each file system")
    parser.add_argument("--verbose", action="store_true", help="print images not mounted, too")
    options = parser.parse_args()
    if not guest.is_there():
        print(f"skipped: without {guest.KERNEL}: unsynced.py")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    classes = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        try_seed(options, seed, classes)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(classes.items())))
    failed = sum(classes[kind] for kind in (*differential.WRONG, "silent", "check"))
    print(f"{max(classes['cuts'] - failed, 0)} passed, {failed} failed, "
          f"{classes['not made'] + classes['not answered']} skipped")
    return failed > 0 or not classes["cuts"]


if __name__ == "__main__":
    sys.exit(main())
