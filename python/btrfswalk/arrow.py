# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrow: the stream of bytes that `FileSystem.arrow()` returns, which other packages also accept as
a table, without bytes in between (the PyCapsule interface of Arrow).

>>> import btrfswalk
>>> with btrfswalk.FileSystem("image.img") as fs:
...     table = fs.arrow(fields="path,size", name="*.txt")
...     table.__arrow_c_stream__()  # as pyarrow.table(table) does  # doctest: +ELLIPSIS
<capsule object "arrow_array_stream" at 0x...>
"""
import ctypes
import errno
from typing import Any, Callable

from ._binding import ffi, lib
from .streams import Receiver, Stream

NAME = b"arrow_array_stream"
SCHEMA, ARRAY = ffi.typeof("struct ArrowSchema *"), ffi.typeof("struct ArrowArray *")

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class ArrowStream(Stream[bytes]):
    """The pieces of an Arrow IPC stream. `pyarrow.table()`, polars, pandas and DuckDB also accept
    the object itself as a table; each time one of them does, the files are listed again."""

    source: "Callable[[], Source]"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule with a C stream. `requested_schema` is ignored, as the interface allows."""
        source = self.source()
        stream = lib.arrow_stream_create(source.handle)
        if not stream:
            raise MemoryError
        _sources.add(source)
        return _new_capsule(int(ffi.cast("uintptr_t", stream)), NAME, lib.arrow_destructor())


class Source:
    """What a C stream reads: the arrays of a walk with these rows."""

    def __init__(self, rows: Any, arrays: "Stream[Any]") -> None:
        self.rows, self.arrays = rows, arrays
        self.handle = ffi.new_handle(self)

    def schema(self, target: Any) -> None:
        """The schema, which rows pass on even if there are none."""
        made: "list[Any]" = []
        receiver = Receiver(lambda *view: made.append(take_structure(*view)))
        sink = ffi.new("struct bw_rows_stream *", {
            "rows": self.rows, "consume": lib.python_consumer, "context": receiver.context})
        receiver.check(lib.bw_rows_end(sink))
        move(target, made[0])

    def next(self, target: Any) -> None:
        """The next array; at the end, one that is released."""
        for array in self.arrays:
            if ffi.typeof(array) is ARRAY:
                move(target, array)
                return
        if self.arrays.closed:
            raise ValueError("the file system has been closed")
        target.release = ffi.NULL


_sources: "set[Source]" = set()  # of the C streams that have not been released


def move(target: Any, source: Any) -> None:
    """Moves a structure to another place, whose owner releases it from now on."""
    target[0] = source[0]
    source.release = ffi.NULL


def release(structure: Any) -> None:
    if structure.release:
        structure.release(structure)


def take_structure(view: Any, length: int) -> Any:
    """Takes over a schema or an array from the library."""
    kind = SCHEMA if length == ffi.sizeof("struct ArrowSchema") else ARRAY
    made = ffi.new(kind)
    move(made, ffi.cast(kind, view))
    return ffi.gc(made, release)


def _answer(call: "Callable[[Source, Any], None]") -> "Callable[..., int]":
    """A function of a C stream: 0, or an error number and a message."""
    def answer(handle: Any, target: Any, message: Any, size: int) -> int:
        try:
            call(ffi.from_handle(handle), target)
            return 0
        except BaseException as failure:  # the reader of the stream gets it
            text = str(failure).encode(errors="backslashreplace")[:size - 1] + b"\0"
            ffi.memmove(message, text, len(text))
            return errno.EIO
    return answer


def _release(handle: Any) -> None:
    source = ffi.from_handle(handle)
    _sources.discard(source)
    source.arrays.close()


ffi.def_extern(name="arrow_schema")(_answer(Source.schema))
ffi.def_extern(name="arrow_next")(_answer(Source.next))
ffi.def_extern(name="arrow_release")(_release)
