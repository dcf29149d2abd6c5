#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""differential - mutants with correct checksums, read by a kernel in a guest and by this program

usage: tests/kernel/differential.py [--count N] [--seed S] [--program PROGRAM] [--keep DIR]
                                    [--work DIR] [FIXTURE...]

Each mutant is a fixture with one fact changed: a member of an item, of a key, of the header of a
tree block or of the superblock, in all copies, with the right checksum. A kernel in a guest (see
guest.py, no root is needed) mounts it, with rescue=all if it does not mount it otherwise, and
lists, stats and reads everything in it; this program does the same. Many mutants share a start of
the guest, which writes the changes to its copy of the disk and takes them back. If the kernel
crashes or hangs, the next guest begins with the next mutant.

Differences have kinds. These are wrong, and make the exit status 1:

    missing     the kernel lists a file that the program does not list
    attribute   both describe a file, differently
    contents    both read a file, differently
    unread      the kernel reads a file that the program does not
    hang        the program crashed, or took too long

The others are counted, with the words of the kernel. The program reads more than the kernel, which
refuses whole leaves for a bad item, and does not mount if a tree is bad that nobody needs to read:

    mount       the kernel does not mount
    more        the program lists or reads more, and says what is damaged
    silent      the same, but the program says nothing
    kernel      the kernel crashed, or took too long

    known       one of the first four, for a reason in the file `differences` of this folder
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

import fields
import guest
import kernel

FIXTURES = ["nodesize-4k", "data-shapes", "compressed", "subvolumes", "people", "levels-2",
            "subvolume-kinds", "log-tree", "mixed", "quota-groups", "orphans", "siblings",
            "old-4k", "renamed"]
EACH = 200  # mutants of a start of the guest
SECONDS = 12  # without an answer of the guest
WRONG = ("missing", "attribute", "contents", "unread", "hang")
LARGEST = 4 << 20  # of the files whose contents are read; a changed size may be any
TYPES = "f,d,l,p,s,c,b"


# In the guest.

def attempt(function, *words):
    """The result, or the name of the error."""
    try:
        return function(*words)
    except OSError as error:
        return f"E{error.errno}"


def read_file(path, status):
    """What of a file is not in its inode: a hash of its contents or of its target."""
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(os.readlink(path)).hexdigest()
    if not stat.S_ISREG(status.st_mode):
        return None
    sum_of_all, left = hashlib.sha256(), status.st_size
    file = os.open(path, os.O_RDONLY)
    try:
        # A call more would find the end; each call takes long in such a kernel.
        while left > 0 and (piece := os.read(file, left + 1)):
            sum_of_all.update(piece)
            left -= len(piece)
    finally:
        os.close(file)
    return sum_of_all.hexdigest()


def read_xattrs(path):
    return os.listxattr(path, follow_symlinks=False)


def describe(path, status):
    entry = {"mode": status.st_mode, "uid": status.st_uid, "gid": status.st_gid,
             "nlink": status.st_nlink, "inode": status.st_ino, "size": status.st_size,
             "mtime": status.st_mtime_ns, "ctime": status.st_ctime_ns}
    if status.st_size < LARGEST:
        entry["contents"] = attempt(read_file, path, status)
    if status.st_ino != 2:
        entry["xattrs"] = attempt(read_xattrs, path)
    return entry


def read_all(top):
    """The entries below a folder by path; an error in place of one that cannot be described."""
    found, left, devices = {}, [top], set()
    while left and len(found) < 5000:
        folder = left.pop()
        path = os.fsdecode(folder[len(top):]) or "/"
        status = attempt(os.lstat, folder)
        if isinstance(status, str):
            found[path] = status
            continue
        entry = found[path] = describe(folder, status)
        if (status.st_dev, status.st_ino) in devices or not stat.S_ISDIR(status.st_mode):
            continue
        if status.st_ino != 2:
            devices.add((status.st_dev, status.st_ino))
        names = attempt(os.listdir, folder)
        if isinstance(names, str):
            entry["names"] = names
        else:
            left += [os.path.join(folder, name) for name in names]
    return found


def read_in_guest(folder, disk):
    """Reads the mutants of `folder`/jobs, and appends what the kernel shows to `folder`/answers."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.mkdir("/mnt/top")
    device = os.open(disk, os.O_RDWR)

    def messages():
        lines = []
        while True:
            try:
                line = os.read(log, 8192).decode(errors="replace")
            except BlockingIOError:
                return lines
            except OSError:
                continue
            if "BTRFS" in line or "WARNING" in line:
                lines.append(line.split(";", 1)[-1].split("\n")[0])

    def change(patches):
        for offset, data in patches:
            os.pwrite(device, bytes.fromhex(data), offset)
        os.fsync(device)

    pieces = range(0, os.lseek(device, 0, os.SEEK_END), 1 << 20)
    as_it_was = {at: hash(os.pread(device, 1 << 20, at)) for at in pieces}
    zeros = hash(bytes(1 << 20))
    kept = {at: os.pread(device, 1 << 20, at) for at in pieces if as_it_was[at] != zeros}

    def restore():
        """Takes back what a mount has written: it replays a log, even if it fails afterwards."""
        for at in pieces:
            if hash(os.pread(device, 1 << 20, at)) != as_it_was[at]:
                os.pwrite(device, kept.get(at, bytes(1 << 20)), at)

    with open(f"{folder}/jobs", encoding="ascii") as jobs, \
         open(f"{folder}/answers", "a", encoding="ascii") as answers:
        for line in jobs:
            job = json.loads(line)
            changed = [(offset, new) for offset, _, new in job["patches"]]
            change(changed)
            superblock = os.pread(device, 4096, 1 << 16)
            answer = {"number": job["number"], "since": time.time_ns() - 10**9}
            for name, options in (("plain", b"subvolid=5"), ("rescue", b"rescue=all,subvolid=5")):
                if name == "rescue" and not isinstance(answer["plain"], str):
                    continue
                messages()
                if libc.mount(disk.encode(), b"/mnt/top", b"btrfs", 1, options):
                    answer[name] = f"E{ctypes.get_errno()}"
                else:
                    answer[name] = read_all(b"/mnt/top")
                    libc.umount2(b"/mnt/top", 0)
                answer[name + "_log"] = messages()[-20:]
                if os.pread(device, 4096, 1 << 16) != superblock:
                    restore()
                    change(changed)
            change([(offset, old) for offset, old, _ in job["patches"]])
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
            os.fsync(answers.fileno())


# Outside.

def differing(before, after, offset):
    """(offset, old, new) of the ranges in which two blocks differ."""
    patches, start = [], None
    for at in range(len(before) + 1):
        if at < len(before) and before[at] != after[at]:
            start = at if start is None else start
        elif start is not None:
            patches.append((offset + start, before[start:at].hex(), after[start:at].hex()))
            start = None
    return patches


def make_mutants(options, image, count, seed):
    """Mutants: what was changed, and the changed ranges."""
    system = fields.Images(options.program, [image])
    system_blocks = {}
    places_of, read = system.places, system.read
    def places(logical):
        if logical not in system_blocks:
            system_blocks[logical] = places_of(logical)
        return system_blocks[logical]
    system.places = places
    picker = random.Random(seed)
    kinds = sorted({i["key"]["type"] for i in system.items} - {"UNTYPED"})
    for _ in range(count):
        if picker.random() < 0.04:
            name, words, saved = fields.change_super(picker, system)
        else:
            name, words, saved = fields.change_item(picker, system, kinds)
        # The kernel refuses all leaves whose items do not lie as they should: a few are enough.
        while name.endswith(("item.offset", "item.size")) and picker.random() < 0.8:
            fields.undo(saved)
            name, words, saved = fields.change_item(picker, system, kinds)
        patches = []
        for path, offset, old in saved:
            with open(path, "rb") as file:
                file.seek(offset)
                patches += differing(old, file.read(len(old)), offset)
        fields.undo(saved)
        yield {"name": name, "words": words, "patches": patches}


def write_all(image, patches):
    with open(image, "r+b") as file:
        for offset, data in patches:
            file.seek(offset)
            file.write(bytes.fromhex(data))


def ask_guest(image, jobs, work):
    """What the kernel shows of each mutant: by its number, or None if it crashed or hung."""
    found, left = {}, list(jobs)
    while left:
        with tempfile.TemporaryDirectory(prefix="differential.", dir=work) as folder:
            os.chmod(folder, 0o755)
            answers = os.path.join(folder, "answers")
            with open(os.path.join(folder, "jobs"), "w", encoding="ascii") as file:
                file.writelines(json.dumps(job) + "\n" for job in left)
            with open(answers, "w", encoding="ascii"):
                pass
            script = (f"mkdir w && mount -t hostfs hostfs w -o {folder} && "
                      f"python3 -B {os.path.abspath(__file__)} --in-guest /mnt/w $1")
            console = open(os.path.join(folder, "console"), "wb")
            process = subprocess.Popen(
                [sys.executable, "-B", os.path.join(os.path.dirname(__file__), "guest.py"),
                 "--seconds", "100000", "/dev/stdin", image], stdin=subprocess.PIPE,
                stdout=console, stderr=console, start_new_session=True)
            process.stdin.write(script.encode())
            process.stdin.close()
            size, since = 0, time.monotonic()
            while process.poll() is None:
                time.sleep(0.2)
                if os.path.getsize(answers) != size:
                    size, since = os.path.getsize(answers), time.monotonic()
                if time.monotonic() - since > SECONDS:
                    break
            stop(process)
            with open(answers, encoding="ascii") as file:
                rows = [json.loads(line) for line in file if line.endswith("\n")]
            console.close()
            if not found and not rows:
                with open(console.name, "rb") as file:
                    print(file.read().decode(errors="replace"))
        for row in rows:
            found[row["number"]] = row
        left = left[len(rows):]
        if left:
            found[left[0]["number"]] = None
            left = left[1:]
    return found


def stop(process):
    """Ends the guest: the kernel is in a session of its own below guest.py."""
    if process.poll() is None:
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                                  capture_output=True, check=False, text=True).stdout.split()
        for child in map(int, children):
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait()


def ask_program(options, image, *ignore, words=()):
    """What the program shows: entries by path, and the messages about damage. `words`: options of
    all commands, `ignore`: of reading contents."""
    said = set()
    def ask(command, *own):
        result = subprocess.run(
            ["timeout", "-k", "1", "300", "prlimit", "--cpu=20", options.program, command, "-v",
             *words, *own, image], capture_output=True, check=False, stdin=subprocess.DEVNULL)
        said.update(line for line in result.stderr.decode(errors="replace").splitlines()
                    if ": note: " not in line)
        if result.returncode not in (0, 1, 2, 3):
            raise ChildProcessError(f"{command}: status {result.returncode}: "
                                    f"{result.stderr[-500:]}")
        if result.returncode and not result.stderr:
            said.add("status 1")
        return kernel.json_rows(result)
    rows = ask("walk", "--json", "--type", TYPES, "-o",
               "path,subvolume,inode,mode,uid,gid,size,nlink,mtime,ctime")
    found = {row["path"]: row for row in rows}
    with tempfile.NamedTemporaryFile() as paths:
        paths.write(b"".join(os.fsencode(path) + b"\0" for path in found))
        paths.flush()
        for row in ask("stat", "--json", "--from0", "-T", paths.name) if found else ():
            if row["path"] in found:
                entry = found[row["path"]]
                entry["xattrs"] = row.get("xattrs")
                if "target" in row:
                    entry["contents"] = hashlib.sha256(os.fsencode(row["target"])).hexdigest()
        for row in ask("sum", "--json", "--size", f"-{LARGEST}c", *ignore) if found else ():
            if row["path"] in found:
                found[row["path"]]["contents"] = row["hash"]
    return found, said


MEMBERS = ("mode", "uid", "gid", "nlink", "inode", "size", "mtime", "ctime")


def compare_entry(path, theirs, ours):
    """Kinds and words of the differences of one entry."""
    for member in MEMBERS:
        if ours.get(member) != theirs[member] and not (theirs["inode"] == 2):
            yield "attribute", f"{path}: {member} {ours.get(member)}, not {theirs[member]}"
    data = theirs.get("contents")
    if data and ours.get("contents") != data:
        if data[0] == "E":
            if "contents" in ours:
                yield "more", f"{path}: read, kernel: {data}"
        elif "contents" in ours:
            yield "contents", f"{path}: other contents"
        else:
            yield "unread", f"{path}: not read"
    names = theirs.get("xattrs")
    if isinstance(names, dict):
        mine = sorted(x if isinstance(x, str) else x["name"] for x in ours.get("xattrs") or ())
        if mine != sorted(names):
            yield "attribute", f"{path}: xattrs {mine}, not {sorted(names)}"


def compare(theirs, ours, said):
    """Kinds and words of all differences of a mutant."""
    if isinstance(theirs, str):
        if ours:
            yield "mount", theirs
        return
    for path, entry in theirs.items():
        if isinstance(entry, str):
            if path in ours:
                yield "more" if said else "silent", f"{path}: listed, kernel: {entry}"
        elif path not in ours:
            yield "missing", path
        else:
            for kind, words in compare_entry(path, entry, ours[path]):
                yield "silent" if kind == "more" and not said else kind, words
    for path in ours:
        if path not in theirs:
            yield "more" if said else "silent", f"{path}: only here"


def forget_mount(theirs, ours, since):
    """Leaves out times that the mount has set when it replayed a log."""
    for path, entry in theirs.items() if isinstance(theirs, dict) else ():
        for member in "mtime", "ctime":
            if isinstance(entry, dict) and entry.get(member, 0) >= since:
                entry[member] = ours.get(path, {}).get(member)


def plain(words):
    """A text without its numbers and paths, to count it."""
    return re.sub(r"[0-9a-f]{8}-[-0-9a-f]*|0x[0-9a-f]+|\b\d+\b", "N", re.sub(r"^/.*?: ", "", words))


def read_known():
    """Kinds, pattern of the changed member, and reason of the known differences."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "differences")
    with open(path, encoding="ascii") as file:
        text = "".join(line for line in file if line[:1] not in "#\n").replace("\n ", " ")
    rows = [line.split(": ", 2) for line in text.splitlines()]
    return [(kinds.split(), re.compile(pattern), reason) for kinds, pattern, reason in rows]


def reason_of(kind, job, said, known):
    """Why a difference is known; None if it is not. A lost leaf must have been reported."""
    for kinds, pattern, reason in known:
        is_leaf = "whole leaf" in reason
        outside = any("outside of the range in the parent" in line for line in said)
        if kind in kinds and pattern.fullmatch(job["name"]) and (outside or not is_leaf):
            return reason
    return None


class Batch:
    """Mutants of a fixture that a guest and this program read, each in an image of its own."""

    def __init__(self, options, name, count, seed):
        self.options, self.name, self.count, self.seed = options, name, count, seed

    def ask_guest(self):
        """Makes the mutants, and what the kernel shows of them."""
        image = kernel.fixture(self.name)[0]
        with tempfile.TemporaryDirectory(prefix="differential.", dir=self.options.work) as folder:
            own = os.path.join(folder, "image")
            kernel.run("cp", "--sparse=always", image, own, check=True)
            jobs = list(make_mutants(self.options, own, self.count, self.seed))
            for number, job in enumerate(jobs):
                job["number"] = number
            if self.options.number is not None:
                jobs = jobs[self.options.number:self.options.number + 1]
            answers = ask_guest(own, jobs, folder)
        return [(job, answers[job["number"]]) for job in jobs]

    def compare(self, pairs, classes):
        """Compares what the kernel shows with what this program shows."""
        with tempfile.TemporaryDirectory(prefix="differential.", dir=self.options.work) as folder:
            own = os.path.join(folder, "image")
            kernel.run("cp", "--sparse=always", kernel.fixture(self.name)[0], own, check=True)
            for job, answer in pairs:
                self.compare_mutant(own, job, answer, classes)

    def compare_mutant(self, image, job, answer, classes):
        differences = []
        if not answer:
            differences.append(("kernel", "crashed or hung"))
            answer = {"plain": "E0", "rescue": "E0", "plain_log": []}
        log = [re.sub(r"\(device \S+\): ", "", line) for line in answer["plain_log"]
               if "critical" in line or "error" in line or "WARNING" in line]
        write_all(image, [(offset, new) for offset, _, new in job["patches"]])
        try:
            ours, said = ask_program(self.options, image)
            by_rescue = ours
            if isinstance(answer["plain"], str) and not isinstance(answer["rescue"], str):
                # With rescue=all, the kernel does not replay the log.
                by_rescue, said = ask_program(self.options, image, "--ignore-checksums", "data",
                                              words=["--log=ignore"])
        except ChildProcessError as error:
            ours, by_rescue, said = {}, {}, set()
            differences.append(("hang", str(error)))
        write_all(image, [(offset, old) for offset, old, _ in job["patches"]])
        forget_mount(answer["plain"], ours, answer.get("since", 0))
        differences += compare(answer["plain"], ours, said)
        if isinstance(answer["plain"], str):
            differences += [d for d in compare(answer["rescue"], by_rescue, said)
                            if d[0] != "mount"]
        for kind in sorted({kind for kind, _ in differences}):
            words = [w for k, w in differences if k == kind]
            reason = plain(log[0]) if log else ""
            why = reason_of(kind, job, said, self.options.known)
            if why:
                kind, reason = "known", why
            classes[kind, job["name"] if kind in WRONG else "", plain(words[0]), reason] += 1
            if kind in WRONG or self.options.verbose:
                print(f"{'FAILED' if kind in WRONG else kind}: {kind}: {self.name} seed "
                      f"{self.seed} number {job['number']}: {job['words']}: {words[:3]}"
                      f"{' and more' if len(words) > 3 else ''} "
                      f"[kernel: {'; '.join(log[:2])}] [ours: {sorted(said)[:2]}]", flush=True)


def batches_of(options):
    """One after the other, all fixtures with one seed, then with the next one."""
    left, seed = options.count, options.seed
    while left > 0:
        for name in options.fixture or FIXTURES:
            if left > 0:
                yield Batch(options, name, min(EACH, left), seed)
            left -= EACH
        seed += 1


def main():
    if sys.argv[1:2] == ["--in-guest"]:
        return read_in_guest(*sys.argv[2:4])
    parser = kernel.parser(__doc__, EACH, EACH)
    parser.add_argument("--work", default="/var/tmp", help="for temporary files; the guest hides "
                                                           "/mnt")
    parser.add_argument("--verbose", action="store_true", help="print all differences")
    parser.add_argument("--number", type=int, help="only this mutant of the seed")
    parser.add_argument("fixture", nargs="*")
    options = parser.parse_args()
    if not guest.is_there():
        print(f"skipped: without {guest.KERNEL}: differential.py")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    options.known = read_known()
    classes, done, batches = collections.Counter(), 0, batches_of(options)
    # The guest mostly waits, so it reads one batch while this program reads the one before.
    with concurrent.futures.ThreadPoolExecutor(1) as guests:
        def ask_next():
            batch = next(batches, None)
            return batch, batch and guests.submit(batch.ask_guest)
        batch, answers = ask_next()
        while batch:
            pairs = answers.result()
            following = ask_next()
            batch.compare(pairs, classes)
            done += len(pairs)
            print(f"{done} mutants", flush=True)
            batch, answers = following
    for (kind, name, words, reason), count in sorted(classes.items()):
        print(f"{count:6} {kind:10} {name} {words[:100]} [{reason[:160]}]")
    failed = sum(count for (kind, *_), count in classes.items() if kind in WRONG)
    print(f"{max(done - failed, 0)} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
