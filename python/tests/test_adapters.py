# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the adapters: with fsspec itself, and with replacements of the classes of dissect."""
import os
import sys
import types
import unittest
from pathlib import Path

import btrfswalk

IMAGE = Path(os.environ["IMAGES"], "plain/dev1.img")
try:
    import fsspec
except ImportError:
    fsspec = None


@unittest.skipUnless(fsspec, "fsspec is not installed")
class Fsspec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from btrfswalk.fsspec import BtrfsFileSystem
        fsspec.register_implementation("btrfs", BtrfsFileSystem, clobber=True)
        cls.url = f"btrfs://{IMAGE}"
        cls.fs = fsspec.filesystem("btrfs", image=str(IMAGE))
        cls.direct = btrfswalk.FileSystem(IMAGE)

    def test_open(self):
        with fsspec.open(self.url + "/top-file") as file:
            self.assertEqual(file.read(), self.direct.lookup("/top-file").read_bytes())
        with fsspec.open(self.url + "/top-file", "rt") as file:
            self.assertEqual(file.read(), self.direct.lookup("/top-file").read_text())
        with self.assertRaises(OSError):
            self.fs.open("/top-file", "wb")

    def test_find(self):
        found = self.fs.find("/")
        links = [path for path in self.direct.paths(types="symlinks")]
        files = set(self.direct.paths())
        self.assertLessEqual(files, set(found) | set(links))
        self.assertEqual(self.fs.glob("/docs/letters/1*.txt"),
                         sorted(self.direct.paths("/docs/letters", name="1*.txt")))
        self.assertTrue(self.fs.isdir("/docs"))
        self.assertFalse(self.fs.exists("/nothing"))

    def test_info(self):
        for entry in self.direct.iterdir("/docs"):
            info = self.fs.info(self.url + entry.path)
            self.assertEqual((info["name"], info["islink"]), (entry.path, entry.is_symlink()))
            if entry.is_file():
                self.assertEqual((info["size"], info["type"]), (entry.stat().st_size, "file"))
        self.assertEqual(self.fs.cat_file("/top-file", 1, 4),
                         self.direct.lookup("/top-file").read_bytes()[1:4])
        self.assertEqual(self.fs.unstrip_protocol("/docs"), self.url + "/docs")
        self.assertAlmostEqual(self.fs.modified("/top-file").timestamp(),
                               self.direct.stat("/top-file").st_mtime, 5)


class Dissect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Only what dissect.target.filesystem defines and the adapter uses."""
        class Filesystem:
            def __init__(self, *_, **__):
                assert self.__fstype__

        class FilesystemEntry:
            def __init__(self, fs, path, entry):
                self.fs, self.path, self.entry = fs, path, entry
                self.name = path.rsplit("/", 1)[-1]

        modules = {name: types.ModuleType(name) for name in (
            "dissect", "dissect.target", "dissect.target.filesystem", "dissect.target.exceptions")}
        target, exceptions = modules["dissect.target"], modules["dissect.target.exceptions"]
        target.exceptions = exceptions
        for name in ("FileNotFoundError", "IsADirectoryError", "NotADirectoryError",
                     "NotASymlinkError"):
            setattr(exceptions, name, type(name, (Exception,), {}))
        filesystem = modules["dissect.target.filesystem"]
        filesystem.Filesystem, filesystem.FilesystemEntry = Filesystem, FilesystemEntry
        sys.modules.update(modules)
        from btrfswalk.dissect import BtrfsWalkFilesystem
        cls.exceptions, cls.fs = exceptions, BtrfsWalkFilesystem(IMAGE)
        cls.direct = btrfswalk.FileSystem(IMAGE)

    def test_entries(self):
        pending, found = [self.fs.get("/")], set()
        while pending:
            for entry in pending.pop().scandir():
                found.add(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry)
        self.assertEqual(found, set(self.direct.paths(types="all", mindepth=1)))
        self.assertEqual(sorted(self.fs.get("/").iterdir()),
                         sorted(entry.name for entry in self.direct.iterdir("/")))

    def test_contents(self):
        entry = self.fs.get("/").get("top-file")
        self.assertEqual(entry.open().read(), self.direct.lookup("/top-file").read_bytes())
        self.assertEqual(entry.lstat(), self.direct.stat("/top-file"))
        for path in self.direct.paths(types="symlinks"):
            link = self.fs.get(path)
            self.assertTrue(link.is_symlink())
            self.assertEqual(link.readlink(), self.direct.lookup(path, follow=False).readlink())
        self.assertRaises(self.exceptions.FileNotFoundError, self.fs.get, "/nothing")
        self.assertRaises(self.exceptions.IsADirectoryError, self.fs.get("/docs").open)
        self.assertRaises(self.exceptions.NotASymlinkError, entry.readlink)


if __name__ == "__main__":
    unittest.main()
