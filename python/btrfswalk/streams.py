# SPDX-License-Identifier: GPL-2.0-or-later
"""Results that functions of the library pass to a callback, as iterators.

Such a function runs in a thread of its own, without the lock of the interpreter. It waits if its
results are not taken, so memory does not depend on their number, and it ends early if the iterator
is closed or forgotten."""
import collections
import threading
from typing import Any, Callable, Generic, Iterable, Iterator, TypeVar

from . import structures
from ._binding import ffi, lib
from .errors import check

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
            while not self._waiting and not self._finished:
                self._condition.wait()
            taken, self._waiting = self._waiting, collections.deque()
            failure = self._failure
            if not taken:
                self._failure = None
            self._condition.notify_all()
        if not taken:
            raise failure or StopIteration
        return taken

    def finish(self, failure: "BaseException | None" = None) -> None:
        with self._condition:
            self._failure, self._finished = failure, True
            self._condition.notify_all()

    def stop(self) -> None:
        with self._condition:
            self.stopped = True
            self._waiting.clear()
            self._condition.notify_all()

    def work(self, run: "Callable[[Receiver], Any]", convert: "Callable[..., Any]") -> None:
        """What the thread does: calls the function, which passes on its results."""
        try:
            receiver = Receiver(lambda *views: self.put(convert(*views)))
            receiver.should_continue = lambda: not self.stopped
            self.summary = run(receiver)
            self.finish()
        except BaseException as failure:  # the reader gets it
            self.finish(failure)


class Stream(Generic[T]):
    """An iterator over results. After the last one, `summary` is the summary of the function, if
    it has one. Close it, or use it in a `with` statement, if you do not read to the end."""

    LIMIT = 1024  # results that wait to be taken

    def __init__(self, owner: Any, run: "Callable[[Receiver], Any]", convert: "Callable[..., Any]",
                 expand: "Callable[[Any], Iterable[T]]" = lambda result: (result,),
                 limit: int = LIMIT) -> None:
        self._channel = Channel(limit)
        self._thread: "threading.Thread | None" = None
        self._lock = threading.RLock()  # of `_thread`
        self._work, self._expand = (run, convert), expand
        self._taken: "collections.deque[Any]" = collections.deque()
        self._batch: "Iterator[T]" = iter(())
        owner._add(self)

    @property
    def summary(self) -> Any:
        return self._channel.summary

    @property
    def closed(self) -> bool:
        """Whether it was closed; if it was before the end, results are missing."""
        return self._channel.stopped

    def __iter__(self) -> "Iterator[T]":
        return self

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __next__(self) -> T:
        while True:
            for result in self._batch:
                return result
            self._begin()
            if not self._taken:
                self._taken = self._channel.take()
            self._batch = iter(self._expand(self._taken.popleft()))

    def _begin(self) -> None:
        with self._lock:
            if not self._thread and not self.closed:
                thread = threading.Thread(target=self._channel.work, args=self._work, daemon=True)
                thread.start()
                self._thread = thread

    def close(self) -> None:
        """Ends the function that finds the results, and waits for its end."""
        self._channel.stop()
        with self._lock:
            thread = self._thread
        if not thread:
            self._channel.finish()
        elif thread is not threading.current_thread():  # whose garbage collection may call this
            thread.join()
        self._taken.clear()
        self._batch = iter(())
