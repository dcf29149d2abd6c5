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
    --total N        try N points of each kind, in twenty commands
    --every N        try every N-th point
    --point HEX      try only this point, and print what it does
    --action REGEX   only these ways to fail
    --verbose        the numbers of each command
"""
import argparse
import errno
import hashlib
import json
import mmap
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile

SLOTS, FRAMES, HEAD = 1 << 14, 11, 48
SLOT = 8 * (1 + FRAMES)
SIZE = HEAD + SLOTS * SLOT
TIMEOUT = 60 * int(os.environ.get("SLOWNESS", "1"))

KINDS = {"memory": 1, "read": 2, "write": 3, "start": 4, "message": 5}
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
# first word after the colon is looked for by --command.
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
memory read: cat -j1 {compressed}
memory read: xattr {plain} /
memory read: extents {plain} /docs
memory read write: sum -j1 {plain}
memory read: sum -j1 {raid1-2}
memory read: bodyfile -j1 {plain}
memory read write: tar -j1 {plain}
memory read write start message: tar -j1 --fsync -f OUT/tar {compressed}
memory read write start message: extract -q -j1 -C OUT/files {compressed}
memory read write start message: extract -q -j1 --fsync --manifest OUT/list -C OUT/files {plain}
memory write start message: extract -q -j1 -C OUT/files --preserve {lost-leaf-inodes}
memory read write start message: extract -q -j1 --subvolumes -C OUT/files {subvolumes}
memory read write start: send -j1 -f OUT/stream {differences} third
memory write: send -j1 -p first {differences} third
memory read write start: copy -f OUT/copy {plain}
memory read write start: copy -C OUT/copy {raid1-2}
memory read write start: metadump -f OUT/dump {plain}
memory read: metadump --compress 1 -f OUT/dump {log-tree}
memory read: versions {past} /stays
memory read: deleted -j1 {past}
memory write start: deleted -q -j1 --extract OUT/files {past}
memory read: roots -j1 {past}
memory read: log {log-tree}
memory: log --json {log-tree}
memory read: info {plain}
memory: info --json {raid1-2}
memory read: info {lost-tree-root}
memory read: check -j1 {plain}
memory read: check -j1 {raid1-2}
memory: check -j1 {lost-leaf-inodes}
memory read: check --data --json -j1 {compressed}
memory read: check -j1 {quota}
memory read: owner {plain} 13631488
memory read: devices {raid1-2}
memory read: show {plain} {raid1-2}
memory read write start: report -j1 -f OUT/page {plain}
memory read write start: repair -j1 --data -f OUT/patch {bad-copy-dup}
memory write: repair -j1 --data --format raw -f OUT/copy {bad-copy-dup}
memory: repair -j1 {lost-tree-root}
memory read: usage {raid1-2}
memory read: du {subvolumes}
memory read: space -j1 {subvolumes}
memory read: free {past}
memory write start: free --extract OUT/file {past}
memory read: compression {compressed}
memory read: qgroups {quota}
memory read: picture {plain}
memory write start: picture -f OUT/picture.png {plain}
memory read: subvolumes {subvolumes}
memory read: diff --raw {differences} first third
memory: diff --json --sort -path {differences} first live
memory read: diff --since 10 {differences}
memory read: super {raid1-2}
memory read: chunks {raid1-2}
memory read: map {raid1-2} 30408704
memory read: tree-stats {plain}
memory read: dump {plain}
memory read write: dump --json --tree 5 {plain}
memory: graph {raid1-2}
memory: xlators features/verify
memory: --dump-tables
memory read start: functions {plain}
memory: functions {subvolumes}
memory: functions {log-tree}
memory: functions {lost-leaf-inodes}
memory read write start: copy --format qcow2 --compress -f OUT/copy {compressed}
memory write: copy --history -f OUT/copy {past}
memory write start: send -j1 -C OUT/streams {differences} first second
memory write: send -j1 -e -f OUT/stream {differences} first second
memory read write: send -j1 --compressed-data -f OUT/stream {differences} second
memory write: tar -j1 --sort name --strip-components 1 --owner u:7 -f OUT/tar {plain}
memory read write: tar -j1 --format mtree -f OUT/list {raid1-2}
memory read write start: rescue -j1 --list --index OUT/index {lost-tree-fs}
memory read write: report -j1 --check none -f OUT/page {raid1-2}
memory write start: repair -j1 --data -C OUT/patches {bad-copy-dup}
memory read write: repair -j1 --verify -f OUT/patch {bad-copy-dup}
memory read: rescue -j1 {lost-tree-fs}
memory write start message: rescue -q -j1 --extract OUT/files {lost-leaf-inodes}
"""


class Run:
    """What a command has printed and written."""

    def __init__(self, done, folder, fired):
        self.status = done.returncode
        self.text = without_paths(done.stdout, folder)
        self.errors = set(without_paths(done.stderr, folder).split(b"\n"))
        self.stderr = done.stderr
        self.fired = fired
        self.files = dict(list_files(folder))
        # The width of columns, and the comma after a row of JSON, depend on the other rows.
        self.lines = [b" ".join(line.split()).rstrip(b",") for line in self.text.split(b"\n")]


def without_paths(text, folder):
    return text.replace(folder.encode(), b"OUT")


def list_files(folder):
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(place, name)
            kind = os.lstat(path)
            content = None
            if stat.S_ISREG(kind.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            name = os.path.relpath(path, folder)
            if not NOT_FINAL.match(name):
                yield name, (stat.S_IFMT(kind.st_mode), content)


class Command:
    def __init__(self, options, line, shared):
        kinds, words = line.split(": ", 1)
        self.kinds = [kind for kind in kinds.split() if kind in options.kind.split(",")]
        self.words, self.options, self.shared = words.split(), options, shared
        self.name = words

    def is_known(self):
        return self.options.functions or self.words[0] != "functions"

    def arguments(self, folder):
        """The program and its arguments."""
        is_program = self.words[0] == "functions"
        yield self.options.functions if is_program else self.options.program
        for word in self.words[is_program:]:
            if word[0] == "{":
                place = os.path.join(self.options.fixtures, word[1:-1])
                yield from sorted(os.path.join(place, name) for name in os.listdir(place)
                                  if name.endswith(".img"))
            else:
                yield word.replace("OUT", folder)

    def run(self, kind, point=0, action=0, later=0):
        folder = tempfile.mkdtemp(dir=self.options.scratch)
        struct.pack_into("<6Q", self.shared.map, 0, KINDS[kind], point, action, later, 0, 0)
        environment = dict(os.environ, FAIL_FILE=self.shared.name,
                           ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1",
                           LSAN_OPTIONS="exitcode=99")
        if self.options.library:
            environment["LD_PRELOAD"] = self.options.library
        process = subprocess.Popen(list(self.arguments(folder)), env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            process.stdout_text, process.stderr_text = process.communicate(timeout=TIMEOUT)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            status, process.stdout_text, process.stderr_text = "hang", b"", b""
        done = subprocess.CompletedProcess([], status, process.stdout_text, process.stderr_text)
        run = Run(done, folder, struct.unpack_from("<Q", self.shared.map, 32)[0])
        shutil.rmtree(folder)
        return run

    def points(self, kind):
        """The points of the last run, with their frames."""
        self.shared.map[HEAD:] = bytes(SIZE - HEAD)
        whole = self.run(kind)
        found = []
        with memoryview(self.shared.map)[HEAD:] as slots, slots.cast("Q") as numbers:
            for slot, point in enumerate(numbers[::1 + FRAMES]):
                if point:
                    frames = numbers[slot * (1 + FRAMES) + 1:(slot + 1) * (1 + FRAMES)]
                    found.append((point, [frame for frame in frames if frame]))
        # Neighbours have similar stacks, so a part of the points is a part of all places.
        return whole, sorted(found, key=lambda one: one[1] if kind == "memory" else one[0])


def stack(program, frames):
    lines = subprocess.run(
        ["addr2line", "-f", "-s", "-e", program] + [hex(one - 1) for one in frames],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    return " < ".join("%s %s" % pair for pair in zip(lines[::2], lines[1::2])
                      if not re.match(r"fail_calls\.c|\?", pair[1]))


# Callers of libraries that abort when memory runs out: libgcrypt does while it is initialized.
ABORTING = ("bw_gcrypt_prepare",)


# What may be printed in addition: something was not checked, or a mirror was not read. The numbers
# of a summary count what was read.
MORE = re.compile(rb'error unfinished|.*"code":"unfinished"|.*out of memory'
                  rb'|.*Cannot allocate memory|.*Input/output error'
                  rb'|.*no good mirror|.*could not be saved|.*checksum mismatch|.*short read')


# Names that say that a file is not complete; and manifests, which list what failed.
NOT_FINAL = re.compile(r"(.*/)?(\.btrfs-walk-[0-9]+(/|$)|o[0-9]+-[0-9]+-[0-9]+$|list$|unsaved$)"
                       r"|.*\.(part|json|missed)$")


# These print what they could not read, or save.
DESCRIBES = {"memory": None, "read": r"(info|show|report|rescue|check|devices|super|chunks|usage"
             r"|repair) ", "write": "rescue ", "start": "rescue ", "message": "rescue "}


# Without checksums: data in copies, some files; a search does not know what it has not found; and a
# superblock is encoded again.
UNVERIFIED = {"copy", "diff", "deleted", "versions", "roots", "metadump"}


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
    if DESCRIBES[kind] and re.match(DESCRIBES[kind], command.name):
        return None
    if action == OTHER_BYTES and command.words[0] in UNVERIFIED:
        return None
    ended_itself = kind == "message" and point >> 32 == 1
    broken = [name for name, file in got.files.items()
              if file[1] is not None and whole.files.get(name) != file]
    if broken and (got.status == 0 or not got.errors - whole.errors or ended_itself):
        return "status %s, writes another %s" % (got.status, broken[0])
    if ended_itself:
        return None
    if got.status < 0 or got.status > 127:
        return "ends by signal %d" % -got.status
    if "--json=array" in command.words and got.text[-2:] == b"]\n" and not is_json(got.text):
        return "status %d, prints no JSON" % got.status
    same = got.text == whole.text and got.files == whole.files
    if same and got.status == whole.status:
        return None
    new = got.errors - whole.errors
    invented = [line for line in got.lines[:-1] if line not in set(whole.lines)
                and not MORE.match(line)]
    if invented and b"\0" not in got.text:
        return "status %d, invents %s" % (got.status,
                                          invented[0][:200].decode(errors="replace"))
    if not status_means_it(command, whole, got):
        return "status %d, but the output is another" % got.status
    # A block that is lost in the image may have been found elsewhere.
    if not new and not (kind == "read" and whole.status == got.status == 1):
        return "status %d, without a message" % got.status
    if broken and command.words[0] != "rescue":
        return "status %d, leaves an incomplete %s" % (got.status, broken[0])
    return None


class Shared:
    def __init__(self, folder):
        self.name = os.path.join(folder, "shared")
        with open(self.name, "wb+") as file:
            file.truncate(SIZE)
            self.map = mmap.mmap(file.fileno(), SIZE)


def try_kind(command, kind, most, options, counts):
    whole, points = command.points(kind)
    total = len(points)
    # A build with sanitizers has no sandbox, so an extraction has no other process to send to.
    needless = kind == "message" and not options.library
    if (not total and not needless) or b"Sanitizer" in whole.stderr:
        print("FAULT: %s: %s: without a failure: %d points, status %s: %s" % (
            kind, command.name, total, whole.status, whole.stderr.decode(errors="replace")))
        counts["faults"] += 1
    if options.point:
        points = [one for one in points if one[0] == int(options.point, 16)]
    elif most and len(points) > most:
        points = [points[i * len(points) // most] for i in range(most)]
    points = points[counts["commands"] % options.every::options.every]
    tried = faults = 0
    for number, (point, frames) in enumerate(points):
        actions = [one for one in ACTIONS[kind] if re.search(options.action, one[0])]
        if most: # one of them, in turn
            actions = [actions[(number + counts["commands"]) % len(actions)]]
        for name, action, later in actions:
            got = command.run(kind, point, action, later)
            tried += got.fired > 0
            wrong = complaint(command, kind, point, action, whole, got)
            place = stack(next(command.arguments("")), frames) if wrong else ""
            if got.status == -signal.SIGABRT and any(name in place for name in ABORTING):
                wrong = None
            if options.point:
                sys.stdout.flush()
                sys.stdout.buffer.write(got.stderr)
            if wrong:
                faults += 1
                print("FAULT: %s %s at %x: %s: %s\n    %s" % (
                    kind, name, point, command.name, wrong, place))
    counts["commands"] += 1
    counts["points"] += total
    counts["tried"] += tried
    counts["faults"] += faults
    counts[kind] = counts.get(kind, 0) + total
    if options.verbose:
        print("%s: %s: %d points, %d failures, %d faults" % (command.name, kind, total, tried,
                                                              faults))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library")
    parser.add_argument("--functions")
    parser.add_argument("--kind", default=",".join(KINDS))
    parser.add_argument("--command", default="")
    parser.add_argument("--total", type=int)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--point")
    parser.add_argument("--action", default="")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("program")
    parser.add_argument("fixtures")
    options = parser.parse_args()
    options.fixtures = os.path.abspath(options.fixtures)
    counts = {"commands": 0, "points": 0, "tried": 0, "faults": 0}
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = scratch
        shared = Shared(scratch)
        commands = [Command(options, line, shared) for line in COMMANDS.strip().split("\n")]
        commands = [one for one in commands
                    if one.is_known() and re.search(options.command, one.name)]
        for kind in options.kind.split(","):
            those = [one for one in commands if kind in one.kinds]
            step = 1 + len(those) // 20 if options.total else 1
            for command in those[::step]:
                most = options.total and 1 + options.total // len(those[::step])
                try_kind(command, kind, most, options, counts)
    print("%d distinct points (%s), %d failures tried, %d faults" % (
        counts["points"], ", ".join("%d of %s" % (counts[kind], kind) for kind in KINDS
                                    if kind in counts), counts["tried"], counts["faults"]))
    return counts["faults"] > 0 or not counts["tried"]


if __name__ == "__main__":
    sys.exit(main())
