# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of every type, their contents, and the items of trees."""
import errno
import functools
import io
import json
import os
import posixpath
import stat
from typing import Any, Iterator, NoReturn

from . import options, records, structures
from ._binding import ffi, lib
from .errors import Error, about, check, make
from .handles import Handle, OpenFileSystem, not_copied
from .streams import collect


@functools.cache
def type_numbers() -> "dict[str, int]":
    """The numbers of the types of files, by their names in records ("file", "directory")."""
    return {ffi.string(lib.bw_file_type_name(number)).decode(): int(number)
            for number in structures.enumeration("enum bw_file_type")}


class Inode:
    """A file of any type, identified by its subvolume and its inode number there."""

    __slots__ = ("_fs", "_stored", "__weakref__")

    def __init__(self, fs: OpenFileSystem, place: Any) -> None:
        self._fs, self._stored = fs, place

    @property
    def _place(self) -> Any:
        """The struct bw_place * of C."""
        return self._stored

    @property
    def _known_path(self) -> "str | None":
        """The path, if it was found by one."""
        return getattr(self, "path", None)

    @property
    def number(self) -> int:
        """The inode number, unique in its subvolume."""
        return int(self._place.inode)

    @property
    def subvolume(self) -> Any:
        """The Subvolume that it is in."""
        return self._fs._subvolume(self._place.subvolume)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Inode) and self._fs is other._fs
                and self._place.subvolume == other._place.subvolume and self.number == other.number)

    def __hash__(self) -> int:
        return hash((int(ffi.cast("uintptr_t", self._place.subvolume)), self.number))

    def __repr__(self) -> str:
        try:
            path = f" {self.path_of()!r}"
        except (Error, ValueError):  # its names are lost, or the file system is closed
            path = ""
        return f"<Inode {self.number} of subvolume {self.subvolume.id}{path}>"

    @property
    def type(self) -> "structures.FileType":
        """Its type, as the directory entry says."""
        found: "structures.FileType" = structures.from_enumeration("enum bw_file_type",
                                                                   self._place.type)
        return found

    def is_file(self) -> bool:
        return bool(self._place.type == lib.BW_FILE_REGULAR)

    def is_dir(self) -> bool:
        return bool(self._place.type == lib.BW_FILE_DIRECTORY)

    def is_symlink(self) -> bool:
        return bool(self._place.type == lib.BW_FILE_SYMLINK)

    def inode(self) -> "structures.Inode":
        """Everything that the inode stores."""
        found = ffi.new("struct bw_inode *")
        with about(self._known_path):
            check(lib.bw_inode_get(self._fs._handle, self._place, found))
        made: "structures.Inode" = structures.convert("struct bw_inode", found)
        return made

    def stat(self) -> os.stat_result:
        """The same as of `os.lstat()` on a mount. `st_dev` is the id of the subvolume."""
        fs, found = self._fs._handle, ffi.new("struct bw_inode *")
        with about(self._known_path):
            check(lib.bw_inode_get(fs, self._place, found))
        times = [one.tv_sec * 10**9 + one.tv_nsec
                 for one in (found.atime, found.mtime, found.ctime)]
        whole = [divmod(one, 10**9) for one in times]
        sector = self._fs._sectorsize
        return os.stat_result(
            [found.mode, self.number, lib.bw_subvolume_id(self._place.subvolume), found.link_count,
             found.uid, found.gid, found.size, *(seconds for seconds, _ in whole),
             *(seconds + 1e-9 * rest for seconds, rest in whole), *times],
            {"st_blocks": -(-found.bytes // sector) * sector // 512, "st_blksize": sector,
             "st_rdev": os.makedev(lib.bw_inode_major(found), lib.bw_inode_minor(found))})

    def _fail(self, number: int) -> NoReturn:
        """Raises the error for a file of a wrong type."""
        path = self._known_path
        raise make(f"{path or self!r}: {os.strerror(number)}",
                   structures.enumeration("enum bw_error_code").USAGE, number, filename=path)

    def open(self, *, unchecked: bool = False) -> "File":
        """Opens the contents of a regular file or a symbolic link. Wrap it in
        `io.BufferedReader` to read many small pieces. `unchecked`: do not verify checksums."""
        if self.is_dir():
            self._fail(errno.EISDIR)
        with about(self._known_path):
            return File(self._fs, self._place, unchecked, self._known_path)

    def read_bytes(self) -> bytes:
        """The whole contents."""
        with self.open() as file:
            return file.readall()

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole contents as text."""
        return self.read_bytes().decode(encoding, errors)

    def readlink(self) -> str:
        """The target of a symbolic link."""
        if self._place.type not in (lib.BW_FILE_SYMLINK, lib.BW_FILE_UNKNOWN):
            self._fail(errno.EINVAL)
        with about(self._known_path):
            return owned_text(lib.bw_inode_readlink, self._fs._handle, self._place)

    def path_of(self) -> str:
        """Its absolute path from the top-level subvolume, by the first of its names."""
        return owned_text(lib.bw_inode_path, self._fs._handle, self._place)

    def names(self) -> "list[structures.InodeName]":
        """Its names, one for each hard link."""
        return collect(lib.bw_inode_names, lib.python_inode_name_visitor, "struct bw_inode_name",
                       self._fs._handle, self._place)

    def xattrs(self) -> "dict[str, bytes]":
        """Its extended attributes, in the order of a mount."""
        with about(self._known_path):
            found = collect(lib.bw_inode_xattrs, lib.python_xattr_visitor, "struct bw_xattr",
                            self._fs._handle, self._place)
        return {structures.decode(one.name): one.value for one in found}

    def extents(self) -> "Iterator[structures.Extent]":
        """Its extents, holes included, in the order of their offsets."""
        with self.open() as file:
            extent = ffi.new("const struct bw_extent **")
            while True:
                with file._opened as pointer:
                    check(lib.bw_file_next_extent(pointer, extent))
                    if not extent[0]:
                        return
                    found = structures.convert("struct bw_extent", extent[0])
                    del pointer  # so that it can be closed meanwhile
                yield found

    def iterdir(self, path: str = "") -> "Iterator[Entry]":
        """The entries of a directory, in the order of a mount. Entries that cannot be read are
        reported."""
        if not self.is_dir():
            self._fail(errno.ENOTDIR)
        directory = ffi.new("struct bw_directory **")
        entry = ffi.new("const struct bw_directory_entry **")
        fs = self._fs._handle
        check(lib.bw_directory_open(fs, self._place, lib.BW_DIRECTORY_START, directory))
        opened = Handle(self._fs, fs, directory[0], lib.bw_directory_close)
        del fs  # from here on, it can be closed
        try:
            while True:
                with opened as pointer:
                    check(lib.bw_directory_next(pointer, entry))
                    if not entry[0]:
                        return
                    name = structures.decode(ffi.buffer(entry[0].name, entry[0].name_length)[:])
                    place = ffi.new("struct bw_place *", entry[0].place)
                    del pointer
                yield Entry(self._fs, posixpath.join(path or "/", name), place)
        finally:
            opened.close()


class Entry(Inode):
    """A file with a path in the image. `info` is None, except in the results of a walk."""

    __slots__ = ("path", "info")
    path: str
    info: "records.FileInfo | None"

    def __init__(self, fs: OpenFileSystem, path: str, place: Any) -> None:
        super().__init__(fs, place)
        self.path, self.info = path, None

    @property
    def name(self) -> str:
        """The last name of the path."""
        return posixpath.basename(self.path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<Entry {self.path!r}>"

    def iterdir(self, path: str = "") -> "Iterator[Entry]":
        return super().iterdir(path or self.path)


class WalkedEntry(Entry):
    """A file that a walk found. Most programs use few members of it, so what is not its path is
    only made from the row of the walk when it is needed."""

    __slots__ = ("_row", "_info")

    def __init__(self, fs: OpenFileSystem, row: "dict[str, Any]") -> None:
        self._fs, self._row, self._stored, self._info = fs, row, None, None
        self.path = row["path"] if "path" in row else self.info.path or ""

    @property
    def info(self) -> "records.FileInfo":  # type: ignore[override]
        """The columns that the walk was asked for."""
        found: "records.FileInfo | None" = self._info
        if found is None:
            found = self._info = records.FileInfo.from_json(self._row)
        return found

    @property
    def _place(self) -> Any:
        if self._stored is None:
            number = self._row["subvolume"]
            subvolume = (lib.bw_subvolume_by_id(self._fs._handle, number)
                         or self._fs.subvolume(number)._handle)  # which raises that there is none
            self._stored = ffi.new("struct bw_place *", {
                "subvolume": subvolume, "inode": self._row["inode"],
                "type": type_numbers().get(self._row.get("type", ""), 0)})
        return self._stored


def owned_text(function: Any, *arguments: Any) -> str:
    """A text that a function of C allocates for its caller."""
    text, length = ffi.new("char **"), ffi.new("size_t *")
    check(function(*arguments, text, length))
    try:
        return structures.decode(ffi.buffer(text[0], length[0])[:])
    finally:
        lib.free(text[0])


class File(io.RawIOBase):
    """The contents of a file, verified against their checksums. A read fails where the contents
    cannot be read, with the same error each time; it ends before such a part."""

    _opened: Any = None  # if it could not be opened
    __reduce__ = not_copied

    def __init__(self, fs: OpenFileSystem, place: Any, unchecked: bool = False,
                 path: "str | None" = None) -> None:
        made = options.fill("struct bw_file_options", {"unchecked": unchecked})
        opened, handle = ffi.new("struct bw_file **"), fs._handle
        check(lib.bw_file_open(handle, place, made, opened))
        self._opened = Handle(fs, handle, opened[0], lib.bw_file_close)
        self._offset, self.name = 0, path

    def __repr__(self) -> str:
        return f"<File {self.name!r}{', closed' if self.closed else ''}>"

    @property
    def size(self) -> int:
        """Bytes of the file, as its inode says."""
        with self._opened as pointer:
            return int(lib.bw_file_inode(pointer).size)

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._opened:
                self._opened.close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise ValueError("negative offset")
        self._offset = start + offset
        return self._offset

    def pread(self, length: int, offset: int) -> bytes:
        """Reads up to `length` bytes at an offset, like `os.pread()`."""
        buffer = bytearray(max(0, min(length, self.size - offset)))
        return bytes(buffer[:self._read(buffer, offset)])

    def readinto(self, buffer: Any) -> int:
        got = self._read(buffer, self._offset)
        self._offset += got
        return got

    def _read(self, buffer: Any, offset: int) -> int:
        got = ffi.new("size_t *")
        with (about(self.name), self._opened as pointer,
              ffi.from_buffer("char[]", buffer, require_writable=True) as target):
            check(lib.bw_file_read(pointer, offset, target, len(target), got))
        return int(got[0])


class Item:
    """An item of a tree, as it is on disk."""

    __slots__ = ("_fs", "key", "data", "location")

    def __init__(self, fs: OpenFileSystem, key: Any, data: bytes, location: Any) -> None:
        self._fs, self.key, self.data, self.location = fs, key, data, location

    def __repr__(self) -> str:
        text = ffi.new("char[]", int(lib.BW_KEY_TEXT))
        key = ffi.new("struct bw_key *", list(self.key.asdict().values()))
        return f"<Item {ffi.string(lib.bw_key_text(key, text)).decode()}, {len(self.data)} bytes>"

    def text(self) -> str:
        """The lines that `btrfs inspect-internal dump-tree` prints for it, without its key."""
        return self._format(False)

    def decode(self) -> Any:
        """Its members, as docs/items.md describes them."""
        return json.loads(self._format(True))

    def _format(self, as_json: bool) -> str:
        made = options.fill("struct bw_dump_options", {"json": as_json})
        data = ffi.from_buffer("uint8_t[]", self.data)
        item = ffi.new("struct bw_item *", {"key": list(self.key.asdict().values()), "data": data,
                                            "size": len(self.data)})
        return owned_text(lib.bw_item_format, self._fs._handle, item, made)


class Items:
    """The items of a tree, as an iterator. Unreadable ranges of keys are reported and skipped."""

    BATCH, BYTES = 256, 1 << 20
    __reduce__ = not_copied

    def __init__(self, fs: OpenFileSystem, tree: int, first: Any, last: Any) -> None:
        opened, handle = ffi.new("struct bw_items **"), fs._handle
        check(lib.bw_items_open(handle, tree, first, last, opened))
        self._fs, self._opened = fs, Handle(fs, handle, opened[0], lib.bw_items_close)
        self._batch: "Iterator[Item]" = iter(())

    def __iter__(self) -> "Iterator[Item]":
        return self

    def __next__(self) -> Item:
        self._opened.check()
        for item in self._batch:
            return item
        while True:
            found = self._fetch()
            if found:
                self._batch = iter(found)
                return next(self._batch)
            if found is not None:
                raise StopIteration

    def _fetch(self) -> "list[Item] | None":
        """The next items; None if there is only an error before them, which has been reported."""
        batch, count = ffi.new("struct python_item[]", self.BATCH), ffi.new("size_t *", self.BATCH)
        data = ffi.new("uint8_t[]", self.BYTES)
        fs = self._fs._handle
        with self._opened as pointer:
            error = lib.python_items_next(pointer, batch, count, data, self.BYTES)
        if error:
            lib.bw_fs_report(fs, lib.BW_DAMAGE, error)
        found = [Item(self._fs, structures.convert("struct bw_key", one.item.key),
                      ffi.buffer(one.item.data, one.item.size)[:],
                      structures.convert("struct bw_item_location", one.location))
                 for one in ffi.unpack(batch, count[0])]
        return None if error and not found else found

    def close(self) -> None:
        self._opened.close()
