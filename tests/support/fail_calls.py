#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""fail_calls.py [OPTION]... PROGRAM FIXTURES: lets every kind of call fail in every command

FIXTURES is the folder where scripts/unpack-fixtures has put the images. The program was linked with
tests/preload/fail_calls.c, or --library is that file as a shared object.

After any failure, a command must print and write the same with the same status, or say on stderr
what is missing and end with a status that means it. It must not end by a signal, hang, leak memory,
print a line that the whole output lacks, or leave an incomplete file with its final name. Prints
each point that violates this, with its stack, and the numbers of points; ends with 1 if there is
one.

    --library FILE   preload it
    --functions FILE the program of tests/failing/functions.c
    --kind LIST      only these kinds of failures: memory,read,write,start,message
    --command REGEX  only commands that match
    --most N         try at most N points of each command, each in one way; a tenth of them in
                     commands with "few"
    --point HEX      try only this point, and print what it does
    --action REGEX   only these ways to fail
    --verbose        the numbers of each command
"""
import argparse
import errno
import functools
import json
import mmap
import os
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile

SLOTS, FRAMES, HEAD = 1 << 14, 11, 56
SLOT = 8 * (2 + FRAMES)
SIZE = HEAD + SLOTS * SLOT
PART = 1 << 16
ZEROS = bytes(PART)
TIMEOUT = 60 * int(os.environ.get("SLOWNESS", "1"))

KINDS = {"memory": 1, "read": 2, "write": 3, "start": 4, "message": 5}
KIND_NAMES = {0: None, **{number: name for name, number in KINDS.items()}}
SHORT, OTHER_BYTES, DIE = range(1000, 1003)
# (name, action, whether all later calls fail, too)
ACTIONS = {
    "memory": [("once", errno.ENOMEM, 0), ("from now on", errno.ENOMEM, 1)],
    "read": [("EIO", errno.EIO, 0), ("short", SHORT, 0), ("other bytes", OTHER_BYTES, 0)],
    "write": [("ENOSPC", errno.ENOSPC, 0), ("EIO", errno.EIO, 0), ("EINTR", errno.EINTR, 0),
              ("full", errno.ENOSPC, 1)],
    "start": [("EAGAIN", errno.EAGAIN, 0), ("EAGAIN from now on", errno.EAGAIN, 1)],
    "message": [("dies", DIE, 0)],
}

# Each command with its images. OUT is a new folder; a word in {} is the images of a fixture. The
# first word after the colon is looked for by --command. "few": it takes 10 ms or more of a
# processor, or is like another one.
COMMANDS = """
memory read: -j1 {plain}
memory read: walk -j1 --json --sort size {subvolumes}
memory read: walk -j1 -o path,compression,disk,shared {compressed}
memory read: walk -j1 {lost-leaf-inodes}
memory read: walk -j1 {lost-tree-fs}
memory read: walk -j1 {raid1-2}
memory read: walk -j1 {raid5-3}
memory read: ls -lR {plain} /
memory read: stat {plain} /docs
memory: stat --json=array {plain} /docs /data
memory read: cat -j1 {compressed} /zstd/top-file /lzo/top-file
memory read: xattr {plain} /
memory read: extents {plain} /docs
few memory read write: sum -j1 {plain}
few memory read: sum -j1 {raid1-2}
memory read: bodyfile -j1 {plain}
few memory read write: tar -j1 {plain}
few memory read write start message: tar -j1 --fsync -f OUT/tar {compressed}
few memory read write start message: extract -q -j1 -C OUT/files {compressed}
few memory read write start message: extract -q -j1 --fsync --manifest OUT/list -C OUT/files {plain}
few memory write start message: extract -q -j1 -C OUT/files --preserve {lost-leaf-inodes}
few memory read write start message: extract -q -j1 --subvolumes -C OUT/files {subvolumes}
few memory read write start: send -j1 -f OUT/stream {differences} third
few memory write: send -j1 -p first {differences} third
few memory read write start: copy -f OUT/copy {past}
few memory read write start: copy -C OUT/copy {raid1-2}
memory read write start: metadump -f OUT/dump {plain}
few memory read: metadump --compress 1 -f OUT/dump {log-tree}
few memory read: versions {past} /stays
few memory read: deleted -j1 {past}
few memory write start: deleted -q -j1 --extract OUT/files {past}
few memory read: roots -j1 {past}
memory read: log {log-tree}
memory: log --json {log-tree}
memory read: info {plain}
memory: info --json {raid1-2}
few memory read: info {lost-tree-root}
memory read: check -j1 {plain}
memory read: check -j1 {raid1-2}
memory: check -j1 {lost-leaf-inodes}
memory read: check --data --json -j1 {compressed}
memory read: check -j1 {quota}
memory read: owner {plain} 13631488
memory read: devices {raid1-2}
memory read: show {plain} {raid1-2}
few memory read write start: report -j1 -f OUT/page {plain}
few memory read write start: repair -j1 --data -f OUT/patch {bad-copy-dup}
few memory write: repair -j1 --data --format raw -f OUT/copy {bad-copy-dup}
few memory: repair -j1 {lost-tree-root}
memory read: usage {raid1-2}
memory read: du {subvolumes}
memory read: space -j1 {subvolumes}
memory read: free {past}
few memory write start: free --extract OUT/file {past}
memory read: compression {compressed}
memory read: qgroups {quota}
memory read: picture {plain}
few memory write start: picture -f OUT/picture.png {plain}
memory read: subvolumes {subvolumes}
few memory read: diff --raw {differences} first third
memory: diff --json --sort -path {differences} first live
memory read: diff --since 10 {differences}
memory read: super {raid1-2}
memory read: chunks {raid1-2}
memory read: map {raid1-2} 30408704
memory read: tree-stats {plain}
few memory read: dump {plain}
memory read write: dump --json --tree 5 {plain}
memory: graph {raid1-2}
memory: xlators features/verify
few memory: --dump-tables
few memory read start: functions {plain}
few memory: functions {subvolumes}
few memory: functions {log-tree}
few memory: functions {lost-leaf-inodes}
few memory read write start: copy --format qcow2 --compress -f OUT/copy {compressed}
few memory write: copy --history -f OUT/copy {past}
memory write start: send -j1 -C OUT/streams {differences} first second
memory write: send -j1 -e -f OUT/stream {differences} first second
few memory read write: send -j1 --compressed-data -f OUT/stream {differences} second
few memory write: tar -j1 --sort name --strip-components 1 --owner u:7 -f OUT/tar {plain}
few memory read write: tar -j1 --format mtree -f OUT/list {raid1-2}
few memory read write start: rescue -j1 --list --index OUT/index {lost-tree-fs}
few memory read write: report -j1 --check none -f OUT/page {raid1-2}
few memory write start: repair -j1 --data -C OUT/patches {bad-copy-dup}
few memory read write: repair -j1 --verify -f OUT/patch {bad-copy-dup}
few memory read: rescue -j1 {lost-tree-fs}
few memory write start message: rescue -q -j1 --extract OUT/files {lost-leaf-inodes}
few memory read write: repair -j1 -f OUT/patch {lost-tree-extent}
few memory: repair -j1 -f OUT/patch {lost-tree-fs}
few memory: repair -j1 -f OUT/patch {lost-tree-chunk}
few memory: repair -j1 -f OUT/patch {superblocks-gone}
few memory write: check -j1 --save OUT/base {differences}
few memory read: check -j1 --since base {plain}
few memory: check -j1 --since 10 {differences}
few memory: check -q -j1 --report junit=OUT/page {lost-leaf-inodes}
few memory: check -j1 --manifest list {plain}
few memory read: diff --other {plain} {subvolumes}
few memory: diff --other list {plain}
few memory: diff --other stream {differences} third
few memory read: dump stream
few memory: send -j1 --on-error zero -f OUT/stream {lost-leaf-inodes} 5
few memory: tar -j1 --on-error zero -f OUT/tar {lost-leaf-inodes}
few memory write: metadump --sanitize -f OUT/dump {lost-leaf-inodes}
few memory read: info dump
"""

# Files for these commands, made in their folder before.
PREPARED = """
check -q -j1 --save base {plain}
tar --format mtree -f list {plain}
send -f stream {differences} third
metadump --compress 1 -f dump {plain}
"""


class Run:
    """What a command has printed and written."""

    def __init__(self, status, folder, fired):
        self.status, self.fired = status, fired
        self.text, self.stderr = (content_of(os.path.join(folder, name))
                                  for name in ("stdout", "stderr"))
        self.errors = set(self.stderr.split(b"\n"))
        self.files = dict(list_files(os.path.join(folder, "OUT")))
        self.empty = next((os.path.basename(place) for place, folders, files
                           in os.walk(os.path.join(folder, "OUT"))
                           if TEMPORARY.search(place) and not folders + files), None)

    @functools.cached_property
    def lines(self):
        """The width of columns, and the comma after a row of JSON, depend on the other rows; so
        does the number of a repair."""
        return [re.sub(rb"^\d+ (?=identical )", b"", b" ".join(line.split()).rstrip(b","))
                for line in self.text.split(b"\n")]


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def data_of(path):
    """The size of a file, and what is not zero, however the file system stores zeros."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        parts, at = [], 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA) // PART * PART
            except OSError: # only a hole
                break
            part = os.pread(file.fileno(), PART, start)
            if part != ZEROS[:len(part)]:
                parts.append((start, DURATION.sub(b"", part)))
            at = start + PART
        return size, parts


def list_files(folder):
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = place + "/" + name
            name = path[len(folder) + 1:]
            if not NOT_FINAL.match(name):
                kind = stat.S_IFMT(os.lstat(path).st_mode)
                yield name, (kind, data_of(path) if kind == stat.S_IFREG else None)


class Command:
    def __init__(self, options, line, shared):
        kinds, words = line.split(": ", 1)
        self.kinds = [kind for kind in kinds.split() if kind in options.kind.split(",")]
        self.most = options.most and -(-options.most // (10 if "few" in kinds.split() else 1))
        if options.point:
            self.most = None
        self.words, self.options, self.shared = words.split(), options, shared
        self.name, self.process = words, None

    def is_known(self):
        return self.options.functions or self.words[0] != "functions"

    def arguments(self):
        """The program and its arguments."""
        is_program = self.words[0] == "functions"
        yield self.options.functions if is_program else self.options.program
        for word in self.words[is_program:]:
            if word[0] == "{":
                place = os.path.join(self.options.fixtures, word[1:-1])
                yield from sorted(os.path.join(place, name) for name in os.listdir(place)
                                  if name.endswith(".img"))
            else:
                yield word

    def start(self):
        """Starts the program, which stops before main()."""
        environment = dict(os.environ, FAIL_FILE=self.shared.name, LD_BIND_NOW="1",
                           ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1",
                           LSAN_OPTIONS="exitcode=99")
        if self.options.library:
            environment["LD_PRELOAD"] = self.options.library
        self.process = subprocess.Popen(list(self.arguments()), env=environment, bufsize=0,
                                        cwd=self.options.scratch, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)

    def end(self):
        if not self.process: # it was ended because it hung
            return
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.process = None

    def run(self, kinds, point=0, depth=0, action=0, later=0):
        """Runs main() in a child of the program."""
        folder = os.path.join(self.options.scratch, "OUT")
        os.mkdir(folder)
        kind = KINDS[kinds[0]] if len(kinds) == 1 else 0 # all
        struct.pack_into("<7Q", self.shared.map, 0, kind, point, depth, action, later, 0, 0)
        if not self.process:
            self.start()
        self.process.stdin.write(b"x")
        if select.select([self.process.stdout], [], [], TIMEOUT)[0]:
            status = os.waitstatus_to_exitcode(
                struct.unpack("i", self.process.stdout.read(4))[0])
        else:
            self.end()
            status = "hang"
        run = Run(status, self.options.scratch, struct.unpack_from("<Q", self.shared.map, 40)[0])
        shutil.rmtree(folder)
        return run

    def points(self):
        """A run without a failure; and the points of each kind, with the depths and frames of their
        stacks."""
        self.shared.map[HEAD:] = bytes(SIZE - HEAD)
        whole = self.run(self.kinds)
        found = {kind: [] for kind in self.kinds}
        with memoryview(self.shared.map)[HEAD:] as slots, slots.cast("Q") as numbers:
            for at, point in enumerate(numbers[::2 + FRAMES].tolist()):
                kind = KIND_NAMES[point >> 56]
                if kind in found:
                    _, depth, *frames = numbers[at * (2 + FRAMES):(at + 1) * (2 + FRAMES)]
                    found[kind].append((point, depth, [frame for frame in frames if frame]))
        return whole, found


def stack(program, frames):
    lines = subprocess.run(
        ["addr2line", "-f", "-s", "-e", program] + [hex(one - 1) for one in frames],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    return " < ".join("%s %s" % pair for pair in zip(lines[::2], lines[1::2])
                      if not re.match(r"fail_calls\.c|\?", pair[1]))


# libgcrypt prints this, and aborts, if memory runs out while it is initialized.
ABORTED = b"Fatal error: Cannot allocate memory"


# What may be printed in addition: something was not checked, or a mirror was not read. The numbers
# of a summary count what was read.
MORE = re.compile(rb'error unfinished|.*"code":"unfinished"|.*out of memory'
                  rb'|.*Cannot allocate memory|.*Input/output error'
                  rb'|.*no good mirror|.*could not be saved|.*checksum mismatch|.*short read'
                  rb'|.*could not be finished')


DURATION = re.compile(rb' time="[0-9.]+"') # in a report of JUnit


TEMPORARY = re.compile(r"/\.btrfs-walk-[0-9]+$")


# Names that say that a file is not complete; and manifests, which list what failed.
NOT_FINAL = re.compile(r"(.*/)?(\.btrfs-walk-[0-9]+(/|$)|o[0-9]+-[0-9]+-[0-9]+$|list$|unsaved$)"
                       r"|.*\.(part|json|missed)$")


# These print what they could not read, or save.
DESCRIBES = {"memory": None, "read": r"(info|show|report|rescue|check|devices|super|chunks|usage"
             r"|repair) ", "write": "rescue ", "start": "rescue ", "message": "rescue "}


# Without checksums: data in copies, some files; a search does not know what it has not found; and a
# superblock is encoded again.
UNVERIFIED = {"copy", "diff", "deleted", "versions", "roots", "metadump", "send"}


# A cluster that cannot be compressed is written as it is. A page or a report says that its check is
# incomplete, and `repair` which changes are not in the patch.
ACCEPTED = re.compile(r"memory: copy --format qcow2 --compress .*: status 0, writes another copy"
                      r"|memory: (report|repair|check) .*: status (1|8|12), leaves an"
                      r" incomplete (page|patch|copy)$")


def status_means_it(command, whole, got):
    """Whether the status says that something is missing: 8 is a bit of that of a check."""
    if "check" in command.words[:1]:
        return got.status & 8 or got.status == 12
    return got.status in (1, 2, 3)


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def complaint(command, kind, point, action, whole, got):
    """What is wrong with a run, or None."""
    if got.status == "hang":
        return "hangs"
    if b"runtime error" in got.stderr or b"Sanitizer" in got.stderr:
        report = re.search(rb"runtime error.*|SUMMARY.*|ERROR: .*", got.stderr).group()
        return "a sanitizer: " + report.decode(errors="replace")
    ended_itself = kind == "message" and point >> 32 & 0xffffff == 1
    if got.status == -signal.SIGABRT and ABORTED in got.stderr:
        return None
    if not ended_itself and (got.status < 0 or got.status > 127):
        return "ends by signal %d" % -got.status
    if b"btrfs-walk: " in got.errors - whole.errors:
        return "status %d, with an empty message" % got.status
    if DESCRIBES[kind] and re.match(DESCRIBES[kind], command.name):
        return None
    if action == OTHER_BYTES and command.words[0] in UNVERIFIED:
        return None
    new, known = got.errors - whole.errors, set(whole.lines)
    if command.words[0] in ("rescue", "check"): # they print messages on stdout
        new |= {line for line in got.lines if MORE.match(line)} - known
    broken = [name for name, file in got.files.items()
              if file[1] is not None and whole.files.get(name) != file]
    if broken and (got.status == 0 or not new or ended_itself):
        return "status %s, writes another %s" % (got.status, broken[0])
    if ended_itself:
        return None
    if "--json=array" in command.words and got.text[-2:] == b"]\n" and not is_json(got.text):
        return "status %d, prints no JSON" % got.status
    # What could not be repaired at once is tried again after the rest.
    is_repair = command.words[0] == "repair"
    same = got.files == whole.files and (
        sorted(got.lines) == sorted(whole.lines) if is_repair else got.text == whole.text)
    if same and got.status == whole.status:
        return None
    invented = [line for line in got.lines[:-1] if line not in known and not MORE.match(line)]
    if invented and b"\0" not in got.text:
        return "status %d, invents %s" % (got.status,
                                          invented[0][:200].decode(errors="replace"))
    if not status_means_it(command, whole, got):
        return "status %d, but the output is another" % got.status
    # A block that is lost in the image may have been found elsewhere.
    if not new and not (kind == "read" and whole.status == got.status == 1):
        return "status %d, without a message" % got.status
    if got.empty and kind != "message": # a killed receiver cannot remove its folder
        return "status %d, leaves an empty %s" % (got.status, got.empty)
    if broken and command.words[0] != "rescue":
        return "status %d, leaves an incomplete %s" % (got.status, broken[0])
    return None


class Shared:
    def __init__(self, folder):
        self.name = os.path.join(folder, "shared")
        with open(self.name, "wb+") as file:
            file.truncate(SIZE)
            self.map = mmap.mmap(file.fileno(), SIZE)


def mixed(point):
    """A hash. The smallest ones are a sample, which is the same if a thread makes a new point."""
    return point * 0x9e3779b97f4a7c15 % 2 ** 64


def sample(points, most):
    """Of each kind, an equal share of the points; kinds that have fewer leave the rest to others.
    """
    found = {}
    for kind in sorted(points, key=lambda one: len(points[one])):
        share = most and most // (len(points) - len(found))
        found[kind] = sorted(points[kind], key=lambda one: mixed(one[0]))[:share]
        most = most and most - len(found[kind])
    return found


def chosen(points, command, options, tried):
    """Of allocations that another command has tried, only three are tried again: the failing
    function is the same."""
    if options.point:
        return [one for one in points if one[0] == int(options.point, 16)]
    # Other calls are counted, so the same number is another call in another command.
    repeated = [one for one in points if one[0] in tried and one[0] >> 56 == KINDS["memory"]]
    tried.update(one[0] for one in points)
    needless = repeated[3:] if command.most else []
    return [one for one in points if one not in needless]


def try_point(command, point, depth, frames, options, counts, whole):
    """Lets a call fail in each way, or in one of them. Returns the numbers of failures and faults.
    """
    kind = KIND_NAMES[point >> 56]
    actions = [one for one in ACTIONS[kind] if re.search(options.action, one[0])]
    if command.most and actions:
        actions = [actions[(mixed(point) + counts["commands"]) % len(actions)]]
    tried = faults = 0
    for name, action, later in actions:
        got = command.run([kind], point, depth, action, later)
        tried += got.fired > 0
        wrong = complaint(command, kind, point, action, whole, got)
        if wrong and ACCEPTED.match("%s: %s: %s" % (kind, command.name, wrong)):
            wrong = None
        if options.point:
            sys.stdout.flush()
            sys.stdout.buffer.write(got.stderr)
        if wrong:
            faults += 1
            print("FAULT: %s %s at %x: %s: %s\n    %s" % (
                kind, name, point, command.name, wrong,
                stack(next(command.arguments()), frames)))
    return tried, faults


def try_command(command, options, counts):
    whole, points = command.points()
    for kind in command.kinds:
        # A build with sanitizers has no sandbox, so an extraction has no other process to send to.
        needless = kind == "message" and not options.library
        if (not points[kind] and not needless) or b"Sanitizer" in whole.stderr:
            print("FAULT: %s: %s: without a failure: %d points, status %s: %s" % (
                kind, command.name, len(points[kind]), whole.status,
                whole.stderr.decode(errors="replace")))
            counts["faults"] += 1
    for kind, some in sample(points, command.most).items():
        tried = faults = 0
        for point in chosen(some, command, options, counts["known"]):
            if not command.process: # it hung, and stacks of another process have other depths
                break
            numbers = try_point(command, *point, options, counts, whole)
            tried, faults = tried + numbers[0], faults + numbers[1]
        counts["tried"] += tried
        counts["faults"] += faults
        counts["chosen"] += len(some)
        counts[kind] += len(points[kind])
        if options.verbose:
            print("%s: %s: %d points, %d failures, %d faults" % (
                command.name, kind, len(points[kind]), tried, faults))
    command.end()
    counts["commands"] += 1
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library")
    parser.add_argument("--functions")
    parser.add_argument("--kind", default=",".join(KINDS))
    parser.add_argument("--command", default="")
    parser.add_argument("--most", type=int)
    parser.add_argument("--point")
    parser.add_argument("--action", default="")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("program")
    parser.add_argument("fixtures")
    options = parser.parse_args()
    options.fixtures = os.path.abspath(options.fixtures)
    counts = {"commands": 0, "chosen": 0, "tried": 0, "faults": 0, "known": set(),
              **{kind: 0 for kind in KINDS}}
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = scratch
        for words in PREPARED.strip().split("\n"):
            subprocess.run(list(Command(options, ": " + words, None).arguments()), cwd=scratch,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shared = Shared(scratch)
        for line in COMMANDS.strip().split("\n"):
            command = Command(options, line, shared)
            if command.kinds and command.is_known() and re.search(options.command, command.name):
                try_command(command, options, counts)
    print("%d distinct points (%s), %d chosen, %d failures tried, %d faults" % (
        sum(counts[kind] for kind in KINDS),
        ", ".join("%d of %s" % (counts[kind], kind) for kind in KINDS if counts[kind]),
        counts["chosen"], counts["tried"], counts["faults"]))
    return counts["faults"] > 0 or not counts["tried"]


if __name__ == "__main__":
    sys.exit(main())
