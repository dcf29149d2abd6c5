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
    you use what `get()` returns. `fs` is the handle of the file system, which stays open."""

    def __init__(self, fs: Any, handle: Any, close: Any) -> None:
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
                self._fs = None

    def __del__(self) -> None:
        self.close()


OPEN: "weakref.WeakSet[OpenFileSystem]" = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Ends the threads of iterators before the interpreter does."""
    for fs in list(OPEN):
        fs.close()


class OpenFileSystem(abc.ABC):
    """The handle of a file system, and the resources that are closed before it.

    The handle closes itself when nothing refers to it any more. So a call in another thread still
    has an open file system, even if `close()` is called meanwhile."""

    def __init__(self) -> None:
        self._pointer: Any = None
        self._lock = threading.RLock()
        self._closed = False
        self._open: "weakref.WeakSet[Any]" = weakref.WeakSet()
        OPEN.add(self)

    @property
    def _handle(self) -> Any:
        pointer = self._pointer
        if not pointer:
            raise ValueError("the file system has been closed")
        return pointer

    def _add(self, one: Any) -> bool:
        """Adds what `close()` has to close before; False if it has been called."""
        with self._lock:
            if not self._closed:
                self._open.add(one)
            return not self._closed

    def _own(self, fs: Any, handle: Any, close: Any) -> Resource:
        """Takes a handle that was opened with the handle `fs` of this file system."""
        resource = Resource(fs, handle, close)
        if not self._add(resource):
            resource.close()
            raise ValueError("the file system has been closed")
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
        with self._lock:
            self._closed = True
            still_open = list(self._open)
        for one in still_open:
            one.close()
        self._pointer = None

    def __del__(self) -> None:
        self.close()
