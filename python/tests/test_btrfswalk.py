# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the package against the answers of the kernel in the fixtures, and against the program,
whose answers other tests compare with the kernel. tests/command/python.sh sets IMAGES (the folder
of unpacked fixtures), FIXTURES (their sources), CONTAINERS (a folder with two images) and
PROGRAM."""
import builtins
import ctypes
import errno
import gc
import hashlib
import io
import json
import logging
import os
import pickle
import shutil
import stat
import struct
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import btrfswalk
from btrfswalk import records, structures
from btrfswalk._binding import ffi

IMAGES, FIXTURES = Path(os.environ["IMAGES"]), Path(os.environ["FIXTURES"])
logging.getLogger("btrfswalk").addHandler(logging.NullHandler())


def image(name):
    return IMAGES / name / "dev1.img"


def crc32c(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def far_stream(seconds, nanoseconds):
    """A send stream of a subvolume "s" with a file "f" that has these times."""
    def command(number, **attributes):
        numbers = {"uuid": 1, "ctransid": 2, "ino": 3, "ctime": 9, "mtime": 10, "atime": 11,
                   "path": 15}
        data = b"".join(struct.pack("<HH", numbers[name], len(value)) + value
                        for name, value in attributes.items())
        head = struct.pack("<IH", len(data), number)
        return head + struct.pack("<I", crc32c(head + bytes(4) + data)) + data

    time = struct.pack("<qI", seconds, nanoseconds)
    return (b"btrfs-stream\0" + struct.pack("<I", 1)
            + command(1, path=b"s", uuid=bytes(range(16)), ctransid=struct.pack("<Q", 7))
            + command(3, path=b"f", ino=struct.pack("<Q", 257))
            + command(20, path=b"f", atime=time, mtime=time, ctime=time) + command(21))


def expected(name, file):
    """The lines of a file of a fixture, each ended by NUL."""
    path = FIXTURES / name / file
    packed = path.with_name(file + ".zst")
    data = path.read_bytes() if path.exists() else subprocess.run(
        ["zstd", "-q", "-d", "-c", packed], check=True, capture_output=True).stdout
    return [structures.decode(line) for line in data.split(b"\0")[:-1]]


def program(*arguments, status=(0,)):
    """The rows that the program prints as JSON."""
    run = subprocess.run([os.environ["PROGRAM"], *map(str, arguments), "--json"],
                         capture_output=True)
    assert run.returncode in status, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


class Opened(unittest.TestCase):
    """A test that closes the file systems that it opens."""

    def opened(self, name, *more, **options):
        fs = btrfswalk.FileSystem(image(name), *more, **options)
        self.addCleanup(fs.close)
        return fs


class Listing(Opened):
    def test_paths_of_fixtures(self):
        for name in ("plain", "subvolumes", "people", "laptop", "big-directory"):
            with self.subTest(name):
                fs = self.opened(name)
                self.assertEqual(sorted(fs.paths(), key=os.fsencode), expected(name, "paths0"))
                self.assertEqual(sorted((entry.path for entry in fs.walk()), key=os.fsencode),
                                 expected(name, "paths0"))

    def test_columns(self):
        rows = {row.path: row for row in records.read("fileinfo", program(
            "-type", "f,d,l,p,s,b,c", image("people")))}
        fs = self.opened("people")
        walk = fs.walk(types="all", fields="all")
        found = {entry.path: entry.info for entry in walk}
        self.assertEqual(found.keys(), rows.keys())
        for path, row in rows.items():
            for name, value in row.asdict().items():
                self.assertEqual(getattr(found[path], name), value, (path, name))
        self.assertEqual(walk.summary.files, len(found))

    def test_conditions(self):
        fs = self.opened("plain")
        for arguments, options in (
                (["-name", "*.txt"], {"name": "*.txt"}),
                (["--exclude", "*.txt"], {"exclude": "*.txt"}),
                (["-size", "+10k"], {"size": "+10k"}),
                (["-name", "0*", "-name", "1*"], {"name": ["0*", "1*"]}),
                (["-type", "d", "-empty"], {"types": "directories", "empty": True}),
                (["-type", "l,p"], {"types": ("symlinks", "fifos")}),
                (["--maxdepth", "1"], {"maxdepth": 1}),
                (["--sort", "size"], {"order": "by_size"})):
            with self.subTest(options=options):
                rows = program(*arguments, image("plain"))
                paths = [row.path for row in records.read("fileinfo", rows)]
                self.assertEqual(list(fs.paths(**options)), paths)
                self.assertNotEqual(paths, [])
        with self.assertRaisesRegex(btrfswalk.UsageError, "colour"):
            fs.walk(colour="red")
        with self.assertRaisesRegex(ValueError, "by_path"):
            fs.walk(order="by_colour")
        with self.assertRaisesRegex(btrfswalk.NotFoundError, "nothing"):
            next(fs.walk("/nothing"))

    def test_directories(self):
        fs = self.opened("people")
        pending, found = [fs.lookup("/")], []
        while pending:
            for entry in pending.pop().iterdir():
                found.append(entry.path)
                if entry.is_dir():
                    pending.append(entry)
        self.assertEqual(sorted(found), sorted(fs.paths(types="all", mindepth=1)))

    def test_damage(self):
        fs = self.opened("lost-leaf-first")
        self.assertLess(set(fs.paths()), set(expected("lost-leaf-first", "paths0")))
        self.assertEqual(fs.status.damages, 1)
        severity, error = fs.messages[-1]
        self.assertEqual((severity, error.code),
                         (structures.Severity.DAMAGE, structures.ErrorCode.CORRUPT))
        self.assertEqual((error.layer, error.address), ("features/verify", 5292032))


class Files(Opened):
    def test_contents(self):
        for name in ("data-shapes", "compressed", "people"):
            fs = self.opened(name)
            for line in expected(name, "sums0"):
                digest, path = line[:64], line[66:]
                with self.subTest(path):
                    hashed = hashlib.sha256()
                    with fs.open(path) as file:
                        for piece in iter(lambda: file.read(1 << 20), b""):  # noqa: B023
                            hashed.update(piece)
                    self.assertEqual(hashed.hexdigest(), digest)

    def test_raw_io(self):
        fs, path = self.opened("data-shapes"), "/holes"
        whole = fs.lookup(path).read_bytes()
        with fs.open(path) as file:
            self.assertIsInstance(file, io.RawIOBase)
            self.assertEqual(file.seek(-100, os.SEEK_END), len(whole) - 100)
            self.assertEqual(file.read(), whole[-100:])
            self.assertEqual(file.read(), b"")
            self.assertEqual((file.seek(10), file.tell()), (10, 10))
            self.assertEqual(file.pread(50, 1000), whole[1000:1050])
            self.assertEqual(file.tell(), 10)
            buffered = io.BufferedReader(file)
            self.assertEqual(buffered.read(20), whole[10:30])
        with self.assertRaises(ValueError):
            file.read(1)

    def test_stat(self):
        fs = self.opened("people")
        for row in program("ls", "-R", "-o", "path,inode,mode,nlink,uid,gid,size,mtime,atime,ctime"
                           ",allocated",
                           image("people")):
            found = fs.stat(row["path"], follow=False)
            self.assertEqual(
                (found.st_ino, found.st_mode, found.st_nlink, found.st_uid, found.st_gid,
                 found.st_size, found.st_mtime_ns, found.st_atime_ns, found.st_ctime_ns),
                tuple(row[name] for name in ("inode", "mode", "nlink", "uid", "gid", "size",
                                             "mtime", "atime", "ctime")), row["path"])
            self.assertEqual(found.st_blocks, -(-row["allocated"] // 4096) * 8)
            self.assertEqual(stat.S_ISDIR(found.st_mode),
                             fs.lookup(row["path"], follow=False).is_dir())

    def test_stat_of_far_times(self):
        """Nanoseconds since 1970 need more than 64 bits for years after 2262."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(far_stream(253402300800, 5))
            file.flush()
            with btrfswalk.FileSystem(file.name) as fs:
                self.assertEqual(fs.stat("/s/f").st_mtime_ns, 253402300800 * 10**9 + 5)

    def test_attributes(self):
        for name in ("plain", "differences", "data-shapes"):
            fs, rows = self.opened(name), program("xattr", "-R", image(name), "/")
            self.assertNotEqual(rows, [])
            for row in rows:
                found = fs.lookup(row["path"], follow=False).xattrs()
                self.assertEqual(found[row["xattr"]].decode(), row["value"])

    def test_links_and_names(self):
        fs = self.opened("plain")
        link = next(iter(fs.walk(types="symlinks")))
        row = program("stat", image("plain"), link.path)[0]
        self.assertEqual(link.readlink(), row["target"])
        several = next(iter(fs.walk(links="+1")))
        self.assertEqual(len(several.names()), several.stat().st_nlink)
        self.assertEqual(fs.lookup(fs.inode(several.number).path_of()), several)
        odd = [path for path in fs.paths() if "\udc80" <= max(path) <= "\udcff"]
        self.assertNotEqual(odd, [])
        self.assertEqual(os.fspath(fs.lookup(odd[0])), odd[0])

    def test_extents(self):
        fs = self.opened("data-shapes")
        for path in expected("data-shapes", "paths0"):
            rows = [row for content in program("extents", image("data-shapes"), path)
                    for row in content["extents"]]
            found = list(fs.lookup(path).extents())
            self.assertEqual(
                [(one.offset, one.length, one.logical or None, one.generation) for one in found],
                [(row["file_offset"], row["length"], row.get("extent_logical"),
                  row.get("generation", 0)) for row in rows], path)

    def test_damage(self):
        fs = self.opened("bad-data")
        with fs.open("/bad") as file, self.assertRaises(btrfswalk.CorruptError) as raised:
            self.assertEqual(len(file.read(1 << 20)), 49152)
            file.read(1)
        self.assertEqual((raised.exception.errno, raised.exception.layer, raised.exception.address),
                         (5, "features/verify", 13795328))
        self.assertEqual(raised.exception.code, structures.ErrorCode.CORRUPT)
        with self.assertRaises(FileNotFoundError) as raised:
            fs.open("/nothing")
        self.assertIsInstance(raised.exception, btrfswalk.NotFoundError)


class Structures(Opened):
    def test_subvolumes(self):
        fs = self.opened("subvolumes")
        rows = program("subvolumes", image("subvolumes"))
        self.assertEqual([one.id for one in fs.subvolumes()],
                         sorted(row["subvolume"] for row in rows))
        for row in records.read("subvolinfo", rows):
            one = fs.subvolume(row.subvolume)
            info = one.info
            self.assertEqual((str(info.uuid), info.otime, info.flags & 1, info.parent),
                             (row.uuid, row.otime, row.ro, row.parent_subvolume or 0))
            self.assertEqual(one.path, row.subvolume_path)
            self.assertEqual(fs.subvolume(info.uuid), one)
            self.assertEqual(list(fs.paths(subvolume=row.subvolume)), list(one.paths()))
            self.assertEqual(
                [entry.path for entry in one.walk()],
                [found.path for found in records.read("fileinfo", program(
                    "--subvol", one.id, image("subvolumes")))])
        self.assertEqual(fs.subvolume("default").id, 5)

    def test_items(self):
        fs = self.opened("plain")
        for tree, keys in (("fs", ".."), ("extent", ".."), ("root", "5,ROOT_ITEM"),
                           ("chunk", "256,CHUNK_ITEM..")):
            rows = program("dump", "--tree", tree, "--key", keys, image("plain"))
            found = list(fs.items(tree, keys=keys))
            self.assertEqual(
                [(one.key.objectid, one.key.type.name, one.key.offset) for one in found],
                [tuple(row["key"][part] for part in ("objectid", "type", "offset"))
                 for row in rows])
            self.assertEqual([one.decode() for one in found], [row["item"] for row in rows])
        first = (256, structures.KeyType.INODE_ITEM, 0)
        self.assertEqual([len(one.data) for one in fs.subvolume().items(first, first)], [160])
        with self.assertRaises(btrfswalk.NotFoundError):
            fs.items(4711)

    def test_check(self):
        for name in ("plain", "bad-data", "lost-leaf-first"):
            rows = [row for row in program("check", "--data", image(name), status=(0, 4))
                    if "code" in row]
            findings = self.opened(name, log="ignore").check(data=True)
            self.assertEqual(
                [(one.code, one.message, one.tree, one.logical, one.paths)
                 for one in findings],
                [(row["code"], row["message"], row.get("tree"), row.get("logical"),
                  row.get("paths", [])) for row in rows], name)
            self.assertTrue(findings.summary.finished)

    def test_check_of_other_files(self):
        findings = list(btrfswalk.check_images(__file__))
        self.assertEqual([one.code for one in findings], ["not-opened"])

    def test_owners(self):
        fs = self.opened("data-shapes")
        extent = next(one for one in fs.lookup("/without-checksums").extents() if one.logical)
        rows = program("owner", image("data-shapes"), extent.logical)
        self.assertEqual([(one.kind.name.lower(), one.tree, one.inode, one.offset, one.path)
                          for one in fs.owners(extent.logical)],
                         [(row["kind"], row["tree"], row["inode"], row["file_offset"], row["path"])
                          for row in rows])

    def test_volume(self):
        fs = self.opened("plain")
        row = program("info", image("plain"))[0]
        self.assertEqual((str(fs.superblock.fsid), fs.superblock.nodesize, fs.status.generation),
                         (row["fsid"], row["nodesize"], row["generation"]))
        self.assertEqual([one.devid for one in fs.devices()], [1])
        self.assertEqual(sum(one.length for one in fs.chunks()),
                         sum(one["size"] for one in row["profiles"]))


class Time(Opened):
    def test_diff_with_a_forgotten_file_system(self):
        other = btrfswalk.FileSystem(image("people"))
        found = self.opened("plain").subvolume().diff(other.subvolume(), by_path=True)
        del other
        gc.collect()
        self.assertNotEqual(list(found), [])

    def test_diff(self):
        fs = self.opened("differences")
        before, after = fs.subvolume("first"), fs.subvolume("second")
        rows = program("diff", image("differences"), "first", "second", status=(0, 1))
        diff = before.diff(after)
        self.assertEqual([(one.status.name.lower(), one.path, one.old_path) for one in diff],
                         [(row.change, row.path, row.old_path)
                          for row in records.read("diffinfo", rows)])
        self.assertFalse(diff.summary.by_path)

    def test_send(self):
        fs = self.opened("differences")
        for line in (FIXTURES / "differences/streams").read_text().splitlines():
            digest, options, path = line.split(" ", 2)
            stream = fs.subvolume(path).send(version=1 if options == "--proto=1" else 2,
                                             compressed=options == "--compressed-data")
            self.assertEqual(hashlib.sha256(b"".join(stream)).hexdigest(), digest, line)
            self.assertGreater(stream.summary.bytes, 0)

    def test_versions(self):
        rows = program("versions", image("gone"), "/top/kept/edited")
        fs = self.opened("gone")
        found = list(fs.versions("/top/kept/edited"))
        self.assertEqual([(one.generation, one.first, one.inode.size, one.path) for one in found],
                         [(row["generation"], row["first_generation"], row["size"], row["path"])
                          for row in rows])
        with fs.at(tree_root=found[-1].tree_root) as past:
            self.assertEqual(past.status.generation, found[-1].generation)
            self.assertEqual(past.stat("/top/kept/edited").st_size, found[-1].inode.size)
        self.assertIn(found[-1].generation, [one.generation for one in fs.generations()])

    def test_log(self):
        with self.opened("log-tree") as replayed, self.opened("log-tree", log="ignore") as before:
            self.assertTrue(replayed.status.log_replayed)
            self.assertFalse(before.status.log_replayed)
            self.assertEqual(sorted(before.paths(), key=os.fsencode),
                             expected("log-tree", "paths0"))


class Life(Opened):
    """Iterators and handles that are closed, forgotten, or used by several threads."""

    def test_stopped(self):
        threads = threading.active_count()
        fs = self.opened("big-directory")
        with fs.walk() as walk:
            next(walk)
        self.assertEqual(list(walk), [])
        forgotten = fs.walk()
        next(forgotten)
        del forgotten
        gc.collect()
        left = fs.walk()
        next(left)
        fs.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(left)
        self.assertEqual(threading.active_count(), threads)

    def test_closed(self):
        fs = self.opened("plain")
        entry, file = fs.lookup("/top-file"), fs.open("/top-file")
        listing = entry.subvolume.lookup("/").iterdir()
        next(listing)
        fs.close()
        fs.close()
        for use in (entry.stat, entry.xattrs, lambda: entry.subvolume, file.read,
                    lambda: next(listing), lambda: fs.lookup("/"), lambda: fs.status,
                    lambda: next(fs.walk())):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

    def test_callbacks_that_fail(self):
        fs = self.opened("plain")
        stream = fs.owners(1 << 20)
        stream._expand = lambda batch: 1 // 0
        with self.assertRaises(ZeroDivisionError):
            next(stream)

    def test_threads(self):
        fs, sums = self.opened("compressed"), dict(
            (line[66:], line[:64]) for line in expected("compressed", "sums0"))
        wrong = []

        def read():
            for path, digest in sums.items():
                if hashlib.sha256(fs.lookup(path).read_bytes()).hexdigest() != digest:
                    wrong.append(path)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_errors(self):
        with self.assertRaisesRegex(btrfswalk.NotBtrfsError, "superblock") as raised:
            btrfswalk.FileSystem(__file__)
        self.assertIsInstance(raised.exception, btrfswalk.Error)
        with self.assertRaises(btrfswalk.SystemCallError) as raised:
            btrfswalk.FileSystem("/nothing")
        self.assertEqual(raised.exception.errno, 2)
        with self.assertRaisesRegex(TypeError, "colour"):
            btrfswalk.FileSystem(image("plain"), colour="red")

    def test_errors_of_python(self):
        with self.assertRaises(FileNotFoundError) as raised:
            btrfswalk.FileSystem(image("plain"), "/nothing")
        self.assertEqual(raised.exception.filename, "/nothing")
        self.assertIsInstance(raised.exception, btrfswalk.SystemCallError)
        copy = pickle.loads(pickle.dumps(raised.exception))
        self.assertIsInstance(copy, FileNotFoundError)
        self.assertEqual((copy.filename, copy.errno), ("/nothing", 2))
        with btrfswalk.FileSystem(image("plain")) as fs:
            with self.assertRaises(IsADirectoryError) as raised:
                fs.lookup("/docs").read_bytes()
            self.assertEqual(raised.exception.filename, "/docs")
            with self.assertRaises(NotADirectoryError):
                list(fs.iterdir("/top-file"))
            with self.assertRaises(FileNotFoundError) as raised:
                fs.lookup("/nothing")
            self.assertEqual(raised.exception.filename, "/nothing")
            for find in (fs.paths, fs.walk, fs.versions):
                with self.assertRaises(FileNotFoundError) as raised:
                    list(find("/nothing"))
                self.assertEqual(raised.exception.filename, "/nothing")
            for find, start in ((fs.paths, "/"), (fs.walk, "o"), (fs.versions, "/")):
                with self.assertRaises(FileNotFoundError) as raised:
                    list(find(start, subvolume="/nothing"))
                self.assertIsNone(raised.exception.filename)
            for path in ("/top-file", "/docs", "/docs/pipe"):
                with self.assertRaises(OSError) as raised:
                    fs.lookup(path).readlink()
                self.assertEqual((raised.exception.errno, raised.exception.filename),
                                 (errno.EINVAL, path))
            with self.assertRaisesRegex(ValueError, "did you mean size"):
                list(fs.walk(fields="siez"))
            with self.assertRaisesRegex(ValueError, "did you mean name"):
                list(fs.walk(nmae="*.c"))
        with btrfswalk.FileSystem(image("bad-data")) as fs, self.assertRaises(OSError) as raised:
            fs.lookup("/bad").read_bytes()
        self.assertEqual(raised.exception.filename, "/bad")
        with tempfile.TemporaryDirectory() as folder:
            for kind, given, options in (
                    (btrfswalk.UsageError, folder, {}),
                    (btrfswalk.NotFoundError, image("plain"), {"partition": "1"})):
                with self.assertRaises(kind) as raised:
                    btrfswalk.FileSystem(given, **options)
                self.assertEqual(raised.exception.filename, str(given))
        # An image whose name is part of the message, and of the other image's name.
        with tempfile.TemporaryDirectory() as folder:
            names = [f"{folder}/{name}" for name in ("c", "ca", "a file system")]
            for name in names[1:]:
                Path(name).write_bytes(bytes(100))
            for given, named in ((names, names[0]), (names[:0:-1], names[2])):
                with self.assertRaises(OSError) as raised:
                    btrfswalk.FileSystem(*given)
                self.assertEqual(raised.exception.filename, named)
        # Advice is not part of the message: it names options as Python does.
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(1 << 20)
            file.write(b"text")
            file.flush()
            with self.assertRaises(btrfswalk.NotBtrfsError) as raised:
                btrfswalk.FileSystem(file.name)
        self.assertNotIn("scan", str(raised.exception))
        self.assertEqual(raised.exception.advice, "try `scan`, which searches for file systems")
        copy = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual(copy.advice, raised.exception.advice)
        self.assertEqual(getattr(copy, "__notes__", None),
                         getattr(raised.exception, "__notes__", None))
        with self.assertRaisesRegex(TypeError, "did you mean 'partition'"):
            btrfswalk.FileSystem(image("plain"), partitoin="1")
        self.assertEqual([name for name in btrfswalk.__all__ if hasattr(builtins, name)], [])

    def test_tables_and_names(self):
        with btrfswalk.FileSystem(image("subvolumes")) as fs:
            table = fs.devices()._repr_html_()
            self.assertIn("<th>devid</th>", table)
            self.assertIn("<td>1</td>", table)
            self.assertIn("<td>present</td>", table)
            self.assertEqual(fs.check().table(), list(fs.check()))
            self.assertEqual(repr(fs.subvolume("/home")), "<Subvolume 256 '/home'>")
            entry = next(fs.walk("/docs", types="files"))
            self.assertIn(repr(entry.path), repr(fs.inode(entry.number, entry.subvolume)))
            file = entry.open()
            self.assertEqual(repr(file), f"<File {entry.path!r}>")
            file.close()
            self.assertEqual(repr(file), f"<File {entry.path!r}, closed>")
        self.assertRegex(btrfswalk.__version__, r"^[0-9.]+$")

    def test_options(self):
        host, luks = (Path(os.environ["CONTAINERS"], name) for name in ("host.img", "luks.img"))
        with btrfswalk.FileSystem(host, inside=["/vm/disk.raw"]) as fs:
            inside = list(fs.paths())
        with btrfswalk.FileSystem(luks, keys=[{"bytes": b"secret"}]) as fs:
            self.assertEqual(fs.devices()[0].container, "LUKS2")
            self.assertEqual(list(fs.paths()), inside)
        with self.assertRaisesRegex(btrfswalk.Error, "partition"):
            btrfswalk.FileSystem(host, inside=["/vm/disk.raw"], inside_choices=[{"partition": "7"}])
        with self.assertRaises(btrfswalk.Error):
            btrfswalk.FileSystem(luks, keys=[{"bytes": b"other"}])
        with self.assertRaisesRegex(btrfswalk.UsageError, "no volume nothing"):
            btrfswalk.FileSystem(image("plain"), graph={
                "edits": [{"kind": "option", "text": "nothing.mode=off"}]})

    def test_helpers(self):
        expected = list(self.opened("plain").paths())
        with btrfswalk.FileSystem(image("plain"), helpers="on", timeout=5) as fs:
            self.assertEqual(list(fs.paths()), expected)
            with fs.at(generation=fs.status.generation) as older:
                self.assertEqual(older.status.damages, 0)
        with self.assertRaisesRegex(ValueError, "never is none of: backing, "):
            btrfswalk.FileSystem(image("plain"), helpers="never")
        with self.assertRaises(btrfswalk.Error):
            btrfswalk.FileSystem("nbd+unix:///?socket=/nowhere", timeout=0.5)
        if shutil.which("qemu-img") and shutil.which("qemu-nbd"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "image.qcow2")
                subprocess.run(["qemu-img", "convert", "-O", "qcow2", image("plain"), path],
                               check=True)
                with btrfswalk.FileSystem(path, helpers="on") as fs:
                    self.assertEqual(list(fs.paths()), expected)

    def test_parts(self):
        fs = self.opened("plain")
        parts = [path for i in range(3) for path in fs.paths(part=i + 1, parts=3)]
        self.assertEqual(sorted(parts), sorted(fs.paths()))

    def test_closed_while_read(self):
        fs = self.opened("compressed")
        path = max(fs.walk(fields="size"), key=lambda entry: entry.info.size).path
        file, failures = fs.open(path), []

        def read():
            try:
                while True:
                    file.pread(1 << 16, 0)
            except ValueError as failure:
                failures.append(str(failure))

        thread = threading.Thread(target=read)
        thread.start()
        file.close()
        thread.join()
        self.assertEqual(failures, ["it has been closed"])

    def test_closed_by_another_thread(self):
        def use(fs, failures, begun):
            try:
                while True:
                    fs.lookup("/").stat()
                    fs.open("/top-file").read()
                    list(fs.paths())
                    begun.set()
            except ValueError as failure:
                failures.append(str(failure))

        for _ in range(20):
            fs, failures = btrfswalk.FileSystem(image("plain")), []
            begun = [threading.Event() for _ in range(4)]
            threads = [threading.Thread(target=use, args=(fs, failures, one)) for one in begun]
            for thread in threads:
                thread.start()
            for one in begun:
                one.wait()
            fs.close()
            for thread in threads:
                thread.join()
            self.assertEqual(len(failures), len(threads))
            self.assertRegex(failures[0], "closed")

    def test_types(self):
        for name in records.tables():
            self.assertTrue(getattr(records, records.class_name(name)).__doc__)
        for name in structures.NAMES:
            getattr(structures, name)


if __name__ == "__main__":
    unittest.main()
