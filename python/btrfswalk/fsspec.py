# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system for fsspec, which makes `btrfs://disk.img/path` work in all libraries that use it.

The longest beginning of the path that is a file of this machine is the image. Options of
`FileSystem`, such as `log` or `generation`, are storage options; `devices` are further images.
"""
import datetime
import io
import os
import stat
from typing import Any

import fsspec  # type: ignore

from .files import Entry
from .filesystem import FileSystem

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
PROTOCOL = "btrfs://"


def split(url: str) -> "tuple[str, str]":
    """The image in a URL, and the path in the image; "" if there is no image."""
    whole = url.removeprefix(PROTOCOL)
    names = whole.split("/")
    for count in range(len(names), 0, -1):
        image = "/".join(names[:count])
        if image and os.path.exists(image) and not os.path.isdir(image):
            return image, "/" + "/".join(names[count:])
    return "", whole


class BtrfsFileSystem(fsspec.AbstractFileSystem):  # type: ignore
    """The files of an image, without writing."""

    protocol = "btrfs"
    root_marker = "/"

    def __init__(self, image: str = "", devices: Any = (), subvolume: Any = None,
                 **options: Any) -> None:
        super().__init__(image=image, devices=devices, subvolume=subvolume, **options)
        # What fsspec itself has options for.
        own = {name: value for name, value in options.items()
               if not name.startswith(("use_listings", "listings_", "skip_instance", "max_paths"))
               and name not in ("asynchronous", "loop", "batch_size", "target_options",
                                "target_protocol")}
        self.image, self.subvolume = image, subvolume
        self.walked = FileSystem(image, *devices, **own)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        if path.startswith(PROTOCOL):
            path = split(path)[1]
        return "/" + path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> "dict[str, Any]":
        image = split(path)[0] if path.startswith(PROTOCOL) else ""
        return {"image": image} if image else {}

    def unstrip_protocol(self, name: str) -> str:
        return f"{PROTOCOL}{self.image}{self._strip_protocol(name)}"

    def _lookup(self, path: str, follow: bool = True) -> Entry:
        return self.walked.lookup(self._strip_protocol(path), self.subvolume, follow)

    def _describe(self, entry: Entry) -> "dict[str, Any]":
        """What fsspec calls the info of a file. A link is described as its target."""
        link = entry.readlink() if entry.is_symlink() else None
        try:
            found = self._lookup(entry.path).stat() if link is not None else entry.stat()
        except OSError:  # the link leads nowhere
            found = entry.stat()
        info = {"name": entry.path, "size": found.st_size, "ino": found.st_ino,
                "type": TYPES.get(stat.S_IFMT(found.st_mode), "other"), "mode": found.st_mode,
                "uid": found.st_uid, "gid": found.st_gid, "nlink": found.st_nlink,
                "mtime": found.st_mtime, "islink": link is not None}
        if link is not None:
            info["destination"] = link
        return info

    def info(self, path: str, **_: Any) -> "dict[str, Any]":
        return self._describe(self._lookup(path, follow=False))

    def ls(self, path: str, detail: bool = True, **_: Any) -> "list[Any]":
        entry = self._lookup(path)
        found = list(entry.iterdir()) if entry.is_dir() else [entry]
        return [self._describe(one) for one in found] if detail else [one.path for one in found]

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **_: Any) -> Any:
        if mode != "rb":
            raise OSError(f"{path}: btrfs:// is only read, not opened with mode {mode!r}")
        size = block_size if isinstance(block_size, int) and block_size > 0 else 1 << 16
        return io.BufferedReader(self._lookup(path).open(), size)

    def modified(self, path: str) -> datetime.datetime:
        seconds = self._lookup(path).stat().st_mtime
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
