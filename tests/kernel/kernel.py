# SPDX-License-Identifier: GPL-2.0-or-later
"""kernel - what the comparisons with the kernel share

File systems on loop devices, which are unmounted however the program ends; btrfs-walk and its
answers; what a mount shows of files; options, cases and the summary.
"""
import argparse
import atexit
import base64
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))


class NotMade(Exception):
    """A file system could not be made or mounted: there is nothing to compare."""


class ProgramFailed(Exception):
    """btrfs-walk did not answer."""


def run(*command, check=False, **options):
    """Runs a command. Its output and its messages are one text; with `check` it has to succeed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                            text=True, errors="replace", **options)
    if check and result.returncode:
        raise NotMade(f"{' '.join(words)}: status {result.returncode}: {result.stdout[-500:]}")
    return result


def output(*command):
    """The bytes that a command prints."""
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def make_image(path, size):
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def copy_images(images, directory):
    """Makes sparse copies with the same names."""
    os.makedirs(directory, exist_ok=True)
    copies = [os.path.join(directory, os.path.basename(image)) for image in images]
    for image, copy in zip(images, copies):
        run("cp", "--sparse=always", image, copy, check=True)
        os.chmod(copy, 0o600)
    return copies


def fixture(name):
    """The images of a fixture."""
    unpacked = os.path.join(BUILD, "fixtures")
    run(os.path.join(TOP, "scripts", "unpack-fixtures"), unpacked, name, check=True)
    folder = os.path.join(unpacked, name)
    return [os.path.join(folder, image) for image in sorted(os.listdir(folder))]


class FileSystem:
    """Images on loop devices, and where the kernel mounts them."""
    attached = []

    def __init__(self, directory, images=()):
        self.directory, self.images, self.loops = directory, list(images), []
        self.made_images = len(self.images)
        self.mount = os.path.join(directory, "mnt")
        os.makedirs(self.mount, exist_ok=True)

    def add_loops(self, *options):
        """Loop devices for the images that have none yet."""
        if self not in FileSystem.attached:
            FileSystem.attached.append(self)
        for image in self.images[len(self.loops):]:
            loop = run("losetup", "-f", "--show", *options, image, check=True).stdout.strip()
            self.loops.append(loop)

    def add_image(self, size):
        """Creates one more image; returns its loop device."""
        self.made_images += 1
        path = os.path.join(self.directory, f"dev{self.made_images}.img")
        self.images.append(make_image(path, size))
        self.add_loops()
        return self.loops[-1]

    def drop_image(self, number):
        """Removes an image; the last one moves to its index."""
        run("losetup", "-d", self.loops[number])
        os.unlink(self.images[number])
        for kept in self.loops, self.images:
            kept[number] = kept[-1]
            kept.pop()

    def attach(self, *options):
        """Mounts the images."""
        self.add_loops()
        self.mount_loops(*options)

    def attach_read_only(self, *options):
        self.add_loops("-r")
        self.mount_loops("ro", *options)

    def mount_loops(self, *options):
        words = ",".join(options + tuple(f"device={loop}" for loop in self.loops))
        run("mount", "-t", "btrfs", "-o", words, self.loops[-1], self.mount, check=True)

    def unmount(self):
        if os.path.ismount(self.mount) and run("umount", self.mount).returncode:
            run("umount", "-l", self.mount)

    def detach(self):
        self.unmount()
        for loop in self.loops:
            run("btrfs", "device", "scan", "--forget", loop)
            run("losetup", "-d", loop)
        self.loops = []
        if self in FileSystem.attached:
            FileSystem.attached.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()

    def path(self, *parts):
        return os.path.join(self.mount, *parts)

    def sync(self):
        run("btrfs", "filesystem", "sync", self.mount)


def detach_all():
    for system in list(FileSystem.attached):
        system.detach()


atexit.register(detach_all)


class Program:
    """btrfs-walk, and the images that it is asked about."""

    def __init__(self, path, images):
        self.path, self.images = path, images

    def words(self, command, *words):
        devices = [word for image in self.images[1:] for word in ("--device", image)]
        return [self.path, command, *devices, self.images[0], *map(str, words)]

    def ask(self, command, *words):
        """Runs a command; output and messages are bytes."""
        return subprocess.run(["timeout", "-s", "KILL", "300", *self.words(command, *words)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def require(self, command, *words, statuses=(0,), silent=False):
        """As ask(), but the exit status has to be one of these and, if `silent`, there must be no
        messages."""
        result = self.ask(command, *words)
        if result.returncode not in statuses or (silent and result.stderr):
            raise ProgramFailed(f"{command} {' '.join(map(str, words))}: exit status "
                                f"{result.returncode}: {result.stderr[-500:]}")
        return result

    def rows(self, command, *words, **requirements):
        """The records that a command prints as JSON."""
        return json_rows(self.require(command, "--json", *words, **requirements))

    def text(self, command, *words):
        return self.ask(command, *words).stdout.decode(errors="replace")


def json_rows(result):
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith(b"{")]
    for row in rows:
        for key in [key for key in row if key.endswith("_bytes") and isinstance(row[key], str)]:
            row[key[:-6]] = os.fsdecode(base64.b64decode(row[key]))
    return rows


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(path):
    """What a mount shows of a file. A directory with the inode 2 stands for a subvolume that the
    snapshot does not have."""
    status = os.lstat(path)
    entry = {"mode": status.st_mode, "uid": status.st_uid, "gid": status.st_gid,
             "size": status.st_size, "nlink": status.st_nlink, "inode": status.st_ino,
             "blocks": status.st_blocks, "mtime": status.st_mtime_ns, "ctime": status.st_ctime_ns}
    kind = stat.S_IFMT(status.st_mode)
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        entry["device"] = [os.major(status.st_rdev), os.minor(status.st_rdev)]
    if kind == stat.S_IFLNK:
        entry["target"] = os.readlink(path)
    if kind == stat.S_IFREG:
        entry["sha256"] = digest(path)
    if status.st_ino != 2:
        entry["xattrs"] = {
            name: hashlib.sha256(os.getxattr(path, name, follow_symlinks=False)).hexdigest()
            for name in sorted(os.listxattr(path, follow_symlinks=False))}
    return entry


def read_tree(top):
    """What a mount shows of all files below a folder, by path; the folder itself is "/"."""
    tree = {"/": describe(top)}
    for directory, directories, files in os.walk(os.fsencode(top)):
        for name in directories + files:
            path = os.path.join(directory, name)
            tree[os.fsdecode(path[len(os.fsencode(top)):])] = describe(os.fsdecode(path))
    return tree


def parser(documentation, count=20, each=1):
    """The options of all comparisons. With $COUNT there are `each` times as many cases."""
    made = argparse.ArgumentParser(description=documentation,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    if "COUNT" in os.environ:
        count = each * int(os.environ["COUNT"])
    made.add_argument("--count", type=int, default=count,
                      help="how many cases, or changes (default: %(default)s)")
    made.add_argument("--seed", type=int,
                      default=int(os.environ.get("SEED", random.randrange(1 << 30))),
                      help="of the first case, which is repeated by it; default: $SEED, or any")
    made.add_argument("--program", default=os.path.join(BUILD, "btrfs-walk"))
    made.add_argument("--keep", help="keep the images of cases that differ here")
    made.add_argument("--directory", help="where to work, in place of /tmp")
    return made


def seeds(options):
    """The cases of a comparison that does random work."""
    return {f"seed {seed}": seed for seed in range(options.seed, options.seed + options.count)}


def sample(options, cases):
    """Chooses as many of the named cases at random as the options ask for."""
    names = random.Random(options.seed).sample(sorted(cases), min(options.count, len(cases)))
    return {name: cases[name] for name in cases if name in names}


def need(*tools):
    """Ends the program if it is not root, or a tool is not there."""
    lacking = ["root"] if os.geteuid() else [tool for tool in tools if not shutil.which(tool)]
    if lacking:
        print(f"skipped: without {lacking[0]}: {os.path.basename(sys.argv[0])}")
        print("0 passed, 0 failed, 1 skipped")
        sys.exit(0)


def keep_images(options, name, directory):
    if options.keep:
        shutil.copytree(directory, os.path.join(options.keep, name.replace(" ", "-")),
                        ignore=shutil.ignore_patterns("mnt"), dirs_exist_ok=True)


def compare_case(options, name, case, compare):
    """Returns "passed", "failed" or "skipped"."""
    with tempfile.TemporaryDirectory(prefix="kernel.", dir=options.directory) as directory:
        try:
            wrong = list(compare(options, case, directory))
        except NotMade as error:
            print(f"skipped: without a file system: {name}: {str(error)[:300]}", flush=True)
            return "skipped"
        except ProgramFailed as error:
            wrong = [str(error)]
        except Exception: # a fault of the script must not end the cases after it
            wrong = ["the comparison failed", *traceback.format_exc().splitlines()[-6:]]
        finally:
            detach_all()
        if not wrong:
            return "passed"
        print(f"WRONG {name}:", *wrong[:20], sep="\n    ", flush=True)
        keep_images(options, name, directory)
        return "failed"


def compare_each(options, cases, compare):
    """Calls compare(options, case, directory) for each of the named cases. It returns lines about
    what is wrong. Prints them and a summary; returns the exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    print(f"seed {options.seed}, {len(cases)} cases", flush=True)
    counts = collections.Counter(compare_case(options, name, case, compare)
                                 for name, case in cases.items())
    print(", ".join(f"{counts[result]} {result}" for result in ("passed", "failed", "skipped")))
    return 1 if counts["failed"] or not counts["passed"] else 0
