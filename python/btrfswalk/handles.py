# SPDX-License-Identifier: GPL-2.0-or-later
"""The handle of an open file system, and the handles of what was opened in it."""
import abc
import atexit
import threading
import weakref
from typing import Any

from ._binding import ffi, lib


class Resource:
    """A handle of C, which is closed at the latest together with its file system. Hold `lock` while
    you use what `get()` returns."""

    def __init__(self, fs: "OpenFileSystem", handle: Any, close: Any) -> None:
        self._fs, self._handle, self._close = fs, handle, close
        self.lock = threading.RLock()

    def get(self) -> Any:
        if self._handle is None:
            raise ValueError("it has been closed")
        return self._handle

    def close(self) -> None:
        with self.lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._close(handle)

    def __del__(self) -> None:
        self.close()


OPEN: "weakref.WeakSet[OpenFileSystem]" = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Ends the threads of iterators before the interpreter does."""
    for fs in list(OPEN):
        fs.close()


class OpenFileSystem(abc.ABC):
    """The handle of a file system, and the resources that are closed before it."""

    def __init__(self) -> None:
        self._pointer: Any = None
        self._open: "weakref.WeakSet[Any]" = weakref.WeakSet()
        OPEN.add(self)

    @property
    def _handle(self) -> Any:
        if not self._pointer:
            raise ValueError("the file system has been closed")
        return self._pointer

    def _own(self, handle: Any, close: Any) -> Resource:
        resource = Resource(self, handle, close)
        self._open.add(resource)
        return resource

    @abc.abstractmethod
    def _subvolume(self, handle: Any) -> Any:
        """The Subvolume with a handle."""

    @property
    def _sectorsize(self) -> int:
        found = ffi.new("struct bw_superblock_info *")
        lib.bw_fs_superblock(self._handle, found)
        return int(found.sectorsize)

    def close(self) -> None:
        """Closes the file system, its files and its iterators. Nothing of it can be used then."""
        if self._pointer:
            for one in list(self._open):
                one.close()
            pointer, self._pointer = self._pointer, None
            lib.bw_fs_close(pointer)

    def __del__(self) -> None:
        self.close()
