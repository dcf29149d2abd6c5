# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system for dissect.target: `target.filesystems.add(BtrfsWalkFilesystem("disk.img"))`.

It follows the interface of the classes Filesystem and FilesystemEntry there, and was tested with
replacements of these classes, not with the package itself.
"""
import io
import posixpath
from typing import Any, Iterator

from dissect.target import exceptions  # type: ignore
from dissect.target.filesystem import Filesystem, FilesystemEntry  # type: ignore

from .errors import Error
from .files import Entry
from .filesystem import FileSystem


class BtrfsWalkFilesystem(Filesystem):  # type: ignore
    """The files of images, with options of `FileSystem`."""

    __fstype__ = __type__ = "btrfs"

    def __init__(self, *images: Any, subvolume: Any = None, **options: Any) -> None:
        super().__init__()
        self.walked, self.subvolume = FileSystem(*images, **options), subvolume

    def get(self, path: str) -> "BtrfsWalkEntry":
        return BtrfsWalkEntry(self, path, self.find(path, False))

    def find(self, path: str, follow: bool) -> Entry:
        try:
            return self.walked.lookup(path, self.subvolume, follow)
        except Error as error:
            raise exceptions.FileNotFoundError(path) from error


class BtrfsWalkEntry(FilesystemEntry):  # type: ignore
    """A file. `entry` is a btrfswalk.Entry."""

    def _resolved(self, follow_symlinks: bool = True) -> Entry:
        found: Entry = self.entry
        if follow_symlinks and found.is_symlink():
            found = self.fs.find(self.path, True)
        return found

    def get(self, path: str) -> "BtrfsWalkEntry":
        found: BtrfsWalkEntry = self.fs.get(posixpath.join(self.path, path))
        return found

    def open(self) -> io.BufferedReader:
        found = self._resolved()
        if found.is_dir():
            raise exceptions.IsADirectoryError(self.path)
        return io.BufferedReader(found.open())

    def scandir(self) -> "Iterator[BtrfsWalkEntry]":
        found = self._resolved()
        if not found.is_dir():
            raise exceptions.NotADirectoryError(self.path)
        for one in found.iterdir(self.path):
            yield BtrfsWalkEntry(self.fs, one.path, one)

    def iterdir(self) -> "Iterator[str]":
        for one in self.scandir():
            yield one.name

    def is_dir(self, follow_symlinks: bool = True) -> bool:
        return self._is("is_dir", follow_symlinks)

    def is_file(self, follow_symlinks: bool = True) -> bool:
        return self._is("is_file", follow_symlinks)

    def _is(self, question: str, follow_symlinks: bool) -> bool:
        try:
            return bool(getattr(self._resolved(follow_symlinks), question)())
        except exceptions.FileNotFoundError:
            return False

    def is_symlink(self) -> bool:
        return bool(self.entry.is_symlink())

    def readlink(self) -> str:
        if not self.is_symlink():
            raise exceptions.NotASymlinkError(self.path)
        return str(self.entry.readlink())

    def stat(self, follow_symlinks: bool = True) -> Any:
        return self._resolved(follow_symlinks).stat()

    def lstat(self) -> Any:
        return self.entry.stat()
