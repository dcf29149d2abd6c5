# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of functions of the library, which pass them to a callback, or hand them out in batches.

A thread of the library collects the batches (batches.h), without the lock of the interpreter. It
waits if they are not read, so memory does not depend on the number of results, and it ends early if
the iterator is closed or forgotten."""
import atexit
import os
import threading
from typing import Any, Callable, Generic, Iterable, Iterator, TypeVar

from . import structures
from ._binding import ffi, lib
from .errors import check
from .handles import OpenFileSystem, not_copied, owned
from .tables import Table

T = TypeVar("T")
STOPPED = b"stopped"


class Receiver:
    """A function of Python that C calls with its results."""

    def __init__(self, receive: "Callable[..., None]") -> None:
        self.receive = receive
        self.failure: "BaseException | None" = None
        self.context = ffi.new_handle(self)

    def check(self, error: Any) -> None:
        """Raises what the function raised, or the error of the function that called it."""
        failure, self.failure = self.failure, None
        if failure:
            lib.bw_error_free(error)
            raise failure
        check(error)


def answer(context: Any, *views: Any) -> Any:
    """Passes results on to the receiver. An exception ends the function that called this."""
    receiver = ffi.from_handle(context)
    try:
        receiver.receive(*views)
        return ffi.NULL
    except BaseException as failure:  # it is raised again where the function was called
        receiver.failure = failure
        return lib.bw_error_create(lib.BW_ERROR_STOPPED, STOPPED)


for _name in dir(lib):
    if _name.startswith("python_") and _name not in ("python_items_next", "python_report"):
        ffi.def_extern(name=_name)(answer)


def collect(function: Any, visitor: Any, c_name: str, *arguments: Any) -> "list[Any]":
    """The results of a function that has few of them, as structures of Python."""
    found: "list[Any]" = []
    receiver = Receiver(lambda view: found.append(structures.convert(c_name, view)))
    receiver.check(function(*arguments, visitor, receiver.context))
    return found


class Batches:
    """A function that runs in a thread of the library."""

    PATIENCE = 100  # milliseconds, after which a signal is handled at the latest

    is_forgotten = has_succeeded = _is_stopped = False

    def __init__(self, fs: OpenFileSystem, start: "Callable[[Any, Any], Any]",
                 *kept: Any) -> None:
        handle, opened = fs._handle, ffi.new("struct bw_batches **")
        check(start(handle, opened))
        self._pointer: Any = owned(
            opened[0], lambda it: lib.bw_error_free(lib.bw_batches_close(it)), handle, *kept)
        RUNNING[self] = fs
        if not fs._pointers:  # closed meanwhile, without this function
            self.end()

    def next(self) -> Any:
        """A batch; None at the end. Raises the error that has ended the function."""
        pointer, batch = self._pointer, ffi.new("struct bw_batch **")
        if not pointer:
            return None
        self._wait(pointer)
        error = lib.bw_batches_next(pointer, batch)
        if batch[0]:
            return owned(batch[0], lib.bw_batch_close)
        self.has_succeeded = not error and not self._is_stopped
        self._remove()
        check(error)
        return None

    def stop(self) -> None:
        """Ends the function early, without waiting for it."""
        pointer, self._is_stopped = self._pointer, True
        if pointer:
            lib.bw_batches_stop(pointer)

    def end(self) -> None:
        """The same, and waits for it."""
        pointer = self._pointer
        if pointer:
            self.stop()
            self._wait(pointer)
        self._remove()

    def has_ended(self) -> bool:
        pointer = self._pointer
        return not pointer or bool(lib.bw_batches_wait(pointer, 0))

    def _wait(self, pointer: Any) -> None:
        """Waits for results, or for the end of the function."""
        while not lib.bw_batches_wait(pointer, self.PATIENCE):
            pass

    def _remove(self) -> None:
        """Closes it, as soon as other threads no longer use it."""
        self._pointer = None
        RUNNING.pop(self, None)


# Functions that have not ended, also those whose iterators have been forgotten. A child process has
# none.
RUNNING: "dict[Batches, OpenFileSystem]" = {}
os.register_at_fork(after_in_child=RUNNING.clear)


@atexit.register
def end_all(fs: "OpenFileSystem | None" = None) -> None:
    """Ends the functions that read a file system, or all of them before the interpreter ends."""
    for batches, read in RUNNING.copy().items():
        if fs is None or read is fs or batches.is_forgotten:
            batches.end()


def remove_forgotten() -> None:
    """Closes the functions that have ended after their iterators were forgotten."""
    for batches in list(RUNNING):
        if batches.is_forgotten and batches.has_ended():
            batches._remove()


class Stream(Generic[T]):
    """An iterator over results. After the last one, `summary` is the summary of the function, if
    it has one. Close it, or use it in a `with` statement, if you do not read to the end."""

    closed = False  # whether it was closed; if it was before the end, results are missing
    _batches: "Batches | None" = None
    _fs: Any = None
    __reduce__ = not_copied

    def __init__(self, fs: OpenFileSystem, start: "Callable[[Any, Any], Any]",
                 expand: "Callable[[Any], Iterable[T]]",
                 summarize: "Callable[[], Any]" = lambda: None, *kept: Any) -> None:
        """`start` opens batches, `expand` makes results of a batch. The function uses `kept`."""
        if self._fs:
            raise ValueError("an iterator begins only once")
        self._fs, self._start, self._expand = fs, start, expand
        self._summarize, self._kept, self._lock = summarize, kept, threading.Lock()
        self._results: "Iterator[T]" = iter(())

    @property
    def summary(self) -> Any:
        return self._summarize() if self._batches and self._batches.has_succeeded else None

    def __iter__(self) -> "Iterator[T]":
        return self

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        """Does not wait, because the garbage collector may call it while its caller has locks."""
        if self._batches and not self._fs._is_foreign:
            self._batches.is_forgotten = True
            self._batches.stop()

    def __next__(self) -> T:
        while True:
            if self._fs._pointers:  # the quick test, for each result
                for result in self._results:
                    return result
            held = self._fs._get()  # raises if it has been closed
            if self.closed:
                raise StopIteration
            with self._lock:
                if not self._batches:
                    remove_forgotten()
                    self._batches = Batches(self._fs, self._start, *self._kept)
            batch = self._batches.next()
            if not batch:
                raise StopIteration
            self._results = iter(self._expand(batch))
            del held

    def table(self) -> "Table[T]":
        """All results that are left, as a list that notebooks show as a table."""
        return Table(self)

    def close(self) -> None:
        """Ends the function that finds the results, and waits for its end."""
        self.closed = True
        if self._batches and not self._fs._is_foreign:
            self._batches.end()
        self._results = iter(())
