#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""send - random histories, sent and received: what arrives must be what was sent

usage: sudo tests/kernel/send.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

Each history (history.py) works in one subvolume, of which snapshots are taken. After an unmount,
`send` writes a full stream of some snapshots and incremental ones of the others, with random
options, and `btrfs receive` makes subvolumes of them on another file system. A mount must show the
same in both: names, types, modes, owners, sizes, contents, hard links, targets, extended attributes
and times. Full streams must equal those of `btrfs send` byte by byte, unless extents have several
sources of clones. Then `diff --other` reads these streams, and those of the kernel, and
compares them with what was sent and with what was received. Needs root, btrfs-progs and a kernel
with btrfs.
"""
import os
import struct
import subprocess
import sys
import tempfile

import kernel
from diff import Work
from kernel import run

PROTOCOLS = {"": [], "protocol 2": ["--proto", "2"],
             "compressed": ["--proto", "2", "--compressed-data"]}


class Source(Work):
    """A history whose snapshots are sent."""

    def __init__(self, seed, directory):
        super().__init__(seed, directory)
        self.trees, self.streams = {}, {}
        self.chain, self.latest = [], None  # streams of the kernel, each based on the one before

    def reuse_numbers(self):
        """After a mount, numbers of deleted inodes at the end are given to new ones."""
        paths = [self.fresh() for _ in range(3)]
        for path in paths:
            with open(path, "wb") as file:
                file.write(b"old")
        self.remount()
        for path in paths:
            os.unlink(path)
        self.remount()
        for path in paths:
            os.mkdir(self.fresh())

    def inside_out(self):
        """a/b/c/d becomes d/c/b/a."""
        top = self.fresh()
        os.makedirs(os.path.join(top, "a/b/c/d"))
        self.sync()
        names = ["a", "b", "c", "d"]
        for name in names:
            with open(os.path.join(top, *names[:names.index(name) + 1], "file"), "w",
                      encoding="ascii") as file:
                file.write(name)
        self.turned = top

    def turn(self):
        top = getattr(self, "turned", None)
        if top and os.path.isdir(os.path.join(top, "a/b/c/d")):
            names = ["a", "b", "c", "d"]
            for depth in range(3, -1, -1):
                os.rename(os.path.join(top, *names[:depth + 1]), os.path.join(top, f"{depth}"))
            path = top
            for depth in range(3, -1, -1):
                os.rename(os.path.join(top, f"{depth}"), os.path.join(path, names[depth]))
                path = os.path.join(path, names[depth])

    def capability(self):
        if path := self.some():
            run("setcap", self.random.choice(["cap_net_raw+ep", "cap_chown+p"]), path)
            if self.random.random() < 0.3:
                os.chown(path, 5, 5)

    def acl(self):
        if path := self.some(self.random.choice("fd")):
            run("setfacl", "-m", f"u:{self.random.randrange(9)}:r--", path)

    def inherited(self):
        """What new files in a directory inherit; sometimes in the top directory."""
        path = self.path("live") if self.random.random() < 0.1 else self.some("d")
        kind = self.random.randrange(4)
        if path and kind == 0:
            run("setfacl", "-d", "-m", f"u:{self.random.randrange(9)}:r--", path)
        elif path and kind == 1:
            run("setfacl", "-k", path)
        elif path:
            run("btrfs", "property", "set", path, "compression",
                self.random.choice(["zstd", "lzo", ""]))

    def strange_names(self):
        directory = os.path.dirname(self.fresh())
        for name in (b"o257-7-0", b"o300-9-0", b"new\nline", b"\xff\xfe", b"x" * 255):
            path = os.path.join(os.fsencode(directory), name)
            if not os.path.lexists(path):
                os.mkdir(path) if self.random.random() < 0.5 else open(path, "w").close()

    def usual_steps(self):
        return super().usual_steps() + [self.inside_out, self.turn, self.turn, self.capability,
                                        self.acl, self.strange_names, self.inside_top,
                                        self.inherited, self.inherited]

    def inside_top(self):
        """In the top directory, where temporary names are."""
        name = self.random.choice(["o257-7-0", "o258-8-0", "plain"])
        path = self.path("live", name)
        if os.path.isdir(path) and not os.listdir(path):
            os.rmdir(path)
        elif not os.path.lexists(path):
            os.mkdir(path)

    def rare_steps(self):
        return super().rare_steps() + [self.reuse_numbers]

    def take_snapshot(self, name, streams=True):
        self.snapshot_as(name)
        self.sync()
        self.trees[name] = kernel.read_tree(self.path(name))
        for words, options in PROTOCOLS.items() if streams else ():
            self.streams[name, words] = kernel.output("btrfs", "send", "-q", *options,
                                                      self.path(name))
        if streams:
            parent = ["-p", self.path(self.latest)] if self.latest else []
            self.chain.append(kernel.output("btrfs", "send", "-q", *parent,
                                            *self.random.choice(list(PROTOCOLS.values())),
                                            self.path(name)))
        self.latest = name


def shown(tree):
    """What a receiver can restore of a tree."""
    kept = {}
    for path, entry in tree.items():
        if entry["inode"] == 2:
            continue
        kept[path] = {key: value for key, value in entry.items()
                      if key not in ("inode", "blocks", "ctime")}
        if entry["mode"] & 0o170000 == 0o040000:
            del kept[path]["size"]
            del kept[path]["nlink"]
    return kept


def link_groups(tree):
    groups = {}
    for path, entry in tree.items():
        if entry["nlink"] > 1 and entry["mode"] & 0o170000 != 0o040000:
            groups.setdefault(entry["inode"], []).append(path)
    return sorted(sorted(group) for group in groups.values())


def differences(name, sent, received):
    before, after = shown(sent), shown(received)
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one is None or other is None:
            yield f"{name}: {path!r} {'was not sent' if one is None else 'is missing'}"
            continue
        for key in one.keys() | other.keys():
            if one.get(key) != other.get(key):
                yield f"{name}: {path!r}: {key}: {one.get(key)}, received {other.get(key)}"
    if link_groups(sent) != link_groups(received):
        yield f"{name}: hard links differ"


def receive(target, stream, name):
    result = subprocess.run(["btrfs", "receive", "-q", target.mount], input=stream, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode:
        yield f"{name}: receive: {result.stdout[-300:]}"


def choose_options(source, names, at):
    r = source.random
    options = list(r.choice(list(PROTOCOLS.values())))
    words = []
    if at and r.random() < 0.8:
        words += ["-p", r.choice(names[:at])]
    if at and r.random() < 0.4:
        for other in r.sample(names[:at], r.randint(1, at)):
            words += ["--clone-source", other]
    return options + words


def check_streams(options, what, streams, images):
    """Whether streams yield the subvolumes in images."""
    with tempfile.TemporaryDirectory() as folder:
        for number, stream in enumerate(streams):
            with open(os.path.join(folder, f"{number:03}"), "wb") as file:
                file.write(stream)
        devices = [word for image in images[1:] for word in ("--device", image)]
        result = subprocess.run([options.program, "diff", "-q", "--exit-code", "--other", folder,
                                 images[0], *devices],
                                check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode or result.stdout:
            yield f"{what}: diff: status {result.returncode}: {result.stdout[:500]}"


def has_inherited(tree):
    return any(name in tree["/"]["xattrs"]
               for name in ("btrfs.compression", "system.posix_acl_default"))


def send_and_receive(options, source, target, names, streams):
    program = kernel.Program(options.program, source.images)
    for at, name in enumerate(names):
        words = choose_options(source, names, at)
        sent = program.ask("send", *words, name)
        title = f"{name} {' '.join(words)}"
        if sent.returncode or sent.stderr:
            yield f"{title}: send: status {sent.returncode}: {sent.stderr[-300:]}"
            return
        wrong = list(receive(target, sent.stdout, title))
        if wrong and options.bytes:
            with open(f"{options.bytes}/failed-{name}", "wb") as file:
                file.write(sent.stdout)
        streams.append(sent.stdout)
        if not wrong:
            wrong = list(differences(title, source.trees[name],
                                     kernel.read_tree(target.path(name))))
        yield from wrong
        if wrong:
            return


CONTENTS = (15, 16, 25)  # WRITE, CLONE, ENCODED_WRITE


def commands(stream):
    """The commands of a stream: type and bytes."""
    at = 17
    while at < len(stream):
        length, command = struct.unpack_from("<IH", stream, at)
        yield command, stream[at:at + 10 + length]
        at += 10 + length


def is_alike(ours, theirs):
    """Whether streams are equal. Extents with several references may be written in other pieces, or
    be cloned from another source, for the kernel looks for them in another order: then only the
    commands around the contents have to be equal."""
    return ours == theirs or (
        [c for c in commands(ours) if c[0] not in CONTENTS] ==
        [c for c in commands(theirs) if c[0] not in CONTENTS])


def compare_bytes(options, source, names):
    program = kernel.Program(options.program, source.images)
    for name in names:
        if has_inherited(source.trees[name]):
            continue  # the kernel sends these attributes before the files that would inherit them
        for words, protocol in PROTOCOLS.items():
            ours = program.ask("send", *protocol, name).stdout
            theirs = source.streams[name, words]
            if is_alike(ours, theirs):
                continue
            yield f"{name} {words}: the stream differs from the kernel's"
            for kind, stream in (("ours", ours), ("theirs", theirs)):
                if options.bytes:
                    with open(f"{options.bytes}/{name}{words}.{kind}", "wb") as file:
                        file.write(stream)


def compare(options, seed, directory):
    with Source(seed, os.path.join(directory, "source")) as source:
        os.makedirs(source.directory, exist_ok=True)
        source.make()
        source.begin()
        names = [f"snapshot{number}" for number in range(source.random.choice([2, 3, 5]))]
        for name in names:
            source.work(source.random.choice([5, 20, 60]))
            source.take_snapshot(name)
        source.detach()
        target = kernel.FileSystem(os.path.join(directory, "target"))
        with target:
            run("mkfs.btrfs", "-q", kernel.make_image(os.path.join(target.directory, "t.img"),
                                                      4 << 30), check=True)
            target.images = [os.path.join(target.directory, "t.img")]
            target.attach()
            streams = []
            yield from send_and_receive(options, source, target, names, streams)
        if streams:
            yield from check_streams(options, "sent", streams, source.images)
            yield from check_streams(options, "received", streams, target.images)
        yield from check_streams(options, "the kernel's", source.chain, source.images)
        yield from compare_bytes(options, source, names)


def main():
    kernel.need("mkfs.btrfs", "btrfs", "setcap", "setfacl")
    parser = kernel.parser(__doc__)
    parser.add_argument("--bytes", help="keep streams that differ from the kernel's here")
    options = parser.parse_args()
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
