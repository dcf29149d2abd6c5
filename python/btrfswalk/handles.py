# SPDX-License-Identifier: GPL-2.0-or-later
"""Who closes what C has opened.

`owned()` makes a pointer that closes itself when nothing refers to it any more, neither an object
nor a call that is running. A pointer keeps the one that it was opened in, so a file system is
closed after its files. An object does not have a pointer itself: its file system has all of them,
so that `close()` takes them away from all objects at once, while calls in other threads still have
theirs."""
import abc
import ctypes
import os
import threading
from typing import Any

from ._binding import ffi, lib

_hide = ctypes.pythonapi.PyObject_GC_UnTrack
_hide.argtypes, _hide.restype = [ctypes.py_object], None


def owned(pointer: Any, close: Any, *kept: Any) -> Any:
    """A pointer that is closed when nothing refers to it any more. `kept` lives longer: pointers
    and memory that it needs. Nothing in it may lead back to the pointer.

    The garbage collector finalizes the objects of a cycle in any order, a file system before its
    files, and before a `__del__` that uses it. So the pointer is hidden from it, and only counts of
    references decide. A child process closes nothing that its parent has opened, because it has
    neither the threads nor the locks."""
    process, getpid = os.getpid(), os.getpid

    def finish(pointer: Any, _kept: Any = kept) -> None:
        if getpid() == process:
            close(pointer)

    made = ffi.gc(pointer, finish)
    _hide(made)
    return made


def not_copied(self: Any) -> Any:
    """`__reduce__` of objects that have something of C."""
    raise TypeError(f"an open {type(self).__name__} can be neither copied nor pickled")


class OpenFileSystem(abc.ABC):
    """A file system with its pointer, and those of everything that is open in it."""

    _pointers: "dict[Any, Any] | None" = None
    _process = 0
    __reduce__ = not_copied

    def __init__(self) -> None:
        if self._pointers is not None:
            raise ValueError("a FileSystem is opened only once")
        self._pointers, self._process = {}, os.getpid()

    @property
    def _is_foreign(self) -> bool:
        """Whether it was opened before a fork(), in the parent process."""
        return os.getpid() != self._process

    def _get(self, key: Any = None) -> Any:
        """The pointer of the file system, or of something open in it, unless it has been closed."""
        pointers = self._pointers or {}
        if None not in pointers:
            raise ValueError("the file system has been closed")
        if self._is_foreign:
            raise ValueError("the file system was opened in another process; open it in this one")
        pointer = pointers.get(key)
        if pointer is None:
            raise ValueError("it has been closed")
        return pointer

    @property
    def _handle(self) -> Any:
        return self._get()

    def _set_handle(self, pointer: Any, *kept: Any) -> None:
        self._pointers = {None: owned(pointer, lib.bw_fs_close, *kept)}

    @abc.abstractmethod
    def subvolume(self, name: Any = 5) -> Any:
        """The Subvolume with a name."""

    @abc.abstractmethod
    def _subvolume(self, handle: Any) -> Any:
        """The Subvolume with a handle."""

    @property
    def _sectorsize(self) -> int:
        found = ffi.new("struct bw_superblock_info *")
        lib.bw_fs_superblock(self._handle, found)
        return int(found.sectorsize)

    def close(self) -> None:
        if self._pointers:
            self._pointers.clear()


class Handle:
    """Something that is open in a file system, until it or the file system is closed: `with handle
    as pointer:` is for one thread at a time."""

    def __init__(self, fs: OpenFileSystem, within: Any, pointer: Any, close: Any) -> None:
        """`within`: the pointer of the file system, which was used to open it."""
        self._fs, self._key, self._lock = fs, object(), threading.RLock()
        fs._pointers[self._key] = owned(pointer, close, within)  # type: ignore[index]
        self.check()

    def check(self) -> Any:
        """The pointer, which is only safe to use in a `with` statement."""
        return self._fs._get(self._key)

    def __enter__(self) -> Any:
        self.check()  # in a child process, a thread that only the parent has may hold the lock
        self._lock.acquire()
        try:
            return self.check()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def close(self) -> None:
        """A call that uses the pointer in another thread is completed."""
        self._fs._pointers.pop(self._key, None)  # type: ignore[union-attr]

    __del__ = close
