# SPDX-License-Identifier: GPL-2.0-or-later
"""Results that functions of the library pass to a callback, as iterators.

Such a function runs in a thread of its own, without the lock of the interpreter. It waits if its
results are not taken, so memory does not depend on their number, and it ends early if the iterator
is closed or forgotten."""
import atexit
import collections
import os
import threading
from typing import Any, Callable, Generic, Iterable, Iterator, TypeVar

from . import structures
from ._binding import ffi, lib
from .errors import check
from .handles import OpenFileSystem, not_copied

T = TypeVar("T")
STOPPED = b"stopped"


class Stop(Exception):
    """A callback raises it to end the function that called it."""


class Receiver:
    """A function of Python that C calls with its results."""

    def __init__(self, receive: "Callable[..., None]") -> None:
        self.receive = receive
        self.should_continue: "Callable[[], bool]" = lambda: True
        self.failure: "BaseException | None" = None
        self.context = ffi.new_handle(self)

    def check(self, error: Any) -> None:
        """Raises what the function raised, or the error of the function that called it."""
        failure, self.failure = self.failure, None
        if failure and error:
            lib.bw_error_free(error)
            error = ffi.NULL
        if failure and not isinstance(failure, Stop):
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
    if _name.startswith("python_") and _name not in ("python_items_next", "python_report",
                                                     "python_progress"):
        ffi.def_extern(name=_name)(answer)


def progress(context: Any, _progress: Any) -> bool:
    """Whether a check continues."""
    return bool(ffi.from_handle(context).should_continue())


ffi.def_extern(name="python_progress", error=False)(progress)


def collect(function: Any, visitor: Any, c_name: str, *arguments: Any) -> "list[Any]":
    """The results of a function that has few of them, as structures of Python."""
    found: "list[Any]" = []
    receiver = Receiver(lambda view: found.append(structures.convert(c_name, view)))
    receiver.check(function(*arguments, visitor, receiver.context))
    return found


class Channel:
    """Results on their way from the thread that finds them to the one that reads them."""

    def __init__(self, limit: int) -> None:
        self.summary: Any = None
        self.stopped = False
        self.thread: "threading.Thread | None" = None
        self._limit, self._finished = limit, False
        self._failure: "BaseException | None" = None
        self._waiting: "collections.deque[Any]" = collections.deque()
        self._condition = threading.Condition()

    def put(self, result: Any) -> None:
        """Adds a result; waits as long as too many have not been taken."""
        with self._condition:
            while len(self._waiting) >= self._limit and not self.stopped:
                self._condition.wait()
            if self.stopped:
                raise Stop
            self._waiting.append(result)
            self._condition.notify_all()

    def take(self) -> "collections.deque[Any]":
        """All results that wait, at least one. Without any, raises why there are none."""
        with self._condition:
            while not (self._waiting or self._finished or self.stopped):
                self._condition.wait()
            taken, self._waiting = self._waiting, collections.deque()
            failure = self._failure
            if not taken:
                self._failure = None
            self._condition.notify_all()
        if not taken:
            raise failure or StopIteration
        return taken

    def start(self, fs: OpenFileSystem, run: "Callable[..., Any]",
              convert: "Callable[..., Any]") -> None:
        """Starts the thread, unless it has been: it calls the function that passes on results."""
        with self._condition:
            if self.thread or self.stopped:
                return
            thread = threading.Thread(target=self._work, args=(fs, run, convert), daemon=True)
            RUNNING[self] = fs
            try:
                thread.start()
            except BaseException:
                RUNNING.pop(self, None)
                raise
            self.thread = thread

    def _work(self, fs: OpenFileSystem, run: "Callable[..., Any]",
              convert: "Callable[..., Any]") -> None:
        failure = None
        try:
            receiver = Receiver(lambda *views: self.put(convert(*views)))
            receiver.should_continue = lambda: not self.stopped
            self.summary = run(receiver, fs._handle)
        except BaseException as raised:  # the reader gets it
            failure = raised
        with self._condition:
            self._failure, self._finished = failure, True
            self._condition.notify_all()
        RUNNING.pop(self, None)

    def stop(self) -> None:
        """Ends the function at its next result."""
        with self._condition:
            self.stopped = True
            self._waiting.clear()
            self._condition.notify_all()

    def end(self) -> None:
        """The same, and waits for it."""
        self.stop()
        if self.thread and self.thread is not threading.current_thread():
            self.thread.join()


# The channels with a thread, also those that no iterator reads any more. A child process has none.
RUNNING: "dict[Channel, OpenFileSystem]" = {}
os.register_at_fork(after_in_child=RUNNING.clear)


@atexit.register
def end_all(fs: "OpenFileSystem | None" = None) -> None:
    """Ends the threads that read a file system, or all of them before the interpreter ends."""
    for channel, read in RUNNING.copy().items():
        if fs is None or read is fs:
            channel.end()


class Stream(Generic[T]):
    """An iterator over results. After the last one, `summary` is the summary of the function, if
    it has one. Close it, or use it in a `with` statement, if you do not read to the end."""

    LIMIT = 1024  # results that wait to be taken
    _channel: Any = None
    __reduce__ = not_copied

    def __init__(self, fs: OpenFileSystem, run: "Callable[[Receiver, Any], Any]",
                 convert: "Callable[..., Any]",
                 expand: "Callable[[Any], Iterable[T]]" = lambda result: (result,),
                 limit: int = LIMIT) -> None:
        if self._channel:
            raise ValueError("an iterator begins only once")
        self._fs, self._channel = fs, Channel(limit)
        self._work, self._expand = (run, convert), expand
        self._taken: "collections.deque[Any]" = collections.deque()
        self._batch: "Iterator[T]" = iter(())

    @property
    def summary(self) -> Any:
        return self._channel.summary

    @property
    def closed(self) -> bool:
        """Whether it was closed; if it was before the end, results are missing."""
        return bool(self._channel.stopped)

    def __iter__(self) -> "Iterator[T]":
        return self

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        """Does not wait, because the garbage collector may call it while its caller has locks."""
        if self._channel and not self._fs._is_foreign:
            self._channel.stop()

    def __next__(self) -> T:
        while True:
            if self._fs._pointers:  # the quick test, for each result
                for result in self._batch:
                    return result
            self._fs._get()  # raises if it has been closed
            if self.closed:
                raise StopIteration
            self._channel.start(self._fs, *self._work)
            if not self._taken:
                self._taken = self._channel.take()
            self._batch = iter(self._expand(self._taken.popleft()))

    def close(self) -> None:
        """Ends the function that finds the results, and waits for its end."""
        if not self._fs._is_foreign:
            self._channel.end()
        self._taken.clear()
        self._batch = iter(())
