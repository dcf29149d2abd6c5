# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors of the library as exceptions. There is a class for each code of error.h."""
import contextlib
import errno
import functools
from typing import Any, Iterator, NamedTuple

from . import structures
from ._binding import ffi, lib


class Hop(NamedTuple):
    """A layer that an error passed on its way up."""

    layer: str  #: its type ("features/verify"), or "fs"
    volume: str  #: its name in the graph ("verify")
    address: "int | None"  #: of the request, in the address space above the layer


class Error(OSError):
    """An error of the library, and the base of all other ones.

    `code` is a structures.ErrorCode, `message` says what is wrong, and `filename` is the image, or
    the path in it, if it is about one. `advice` says what may help, with options of FileSystem() in
    backquotes; since Python 3.11, a traceback shows it. `way` has the layers that the error passed,
    first the one that detected it, whose `layer`, `volume` and `address` the exception has as well;
    None if it was not detected by a layer. `causes` are errors that led to this one, for
    example one for each mirror that was tried.

    An error with a number for which Python has an exception is also that: a missing image is a
    FileNotFoundError.
    """

    default_code: Any = None
    _known: Any = None  # the class of its code, which has a name in this module
    _builtin: Any = OSError  # the exception of Python that it is as well, because of its number

    def __init__(self, message: str, code: Any = None, system: int = 0,
                 way: "tuple[Hop, ...]" = (), causes: "tuple[Error, ...]" = (),
                 filename: Any = None, advice: "str | None" = None) -> None:
        self.code = self.default_code if code is None else code
        number = system or NUMBERS.get(getattr(self.code, "name", ""), errno.EIO)
        if filename is None:
            super().__init__(number, message)
        else:
            super().__init__(number, message, filename)
        self.message, self.way, self.causes, self.advice = message, way, causes, advice
        if advice and hasattr(self, "add_note"):
            self.add_note(advice)
        self.layer = way[0].layer if way else None
        self.volume = way[0].volume if way else None
        self.address = way[0].address if way else None

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return (again, (type(self)._known, type(self)._builtin, self.message, self.code, self.errno,
                        self.way, self.causes, self.filename, self.advice), self.__dict__)

    @staticmethod
    def of(error: Any) -> "Error":
        """A copy of an error of C."""
        code = structures.from_enumeration("enum bw_error_code", error.code)
        causes = tuple(Error.of(one) for one in linked(error.causes))
        way = tuple(Hop(structures.decode(ffi.string(hop.layer)),
                        structures.decode(ffi.string(hop.volume)) if hop.volume else "",
                        hop.address if hop.has_address else None) for hop in linked(error.way))
        message, file, advice = (structures.decode(ffi.string(text)) if text else None
                                 for text in (error.message, error.file, error.advice))
        return make(message or "", code, error.system, way, causes, filename=file, advice=advice)


def linked(first: Any) -> Any:
    """The elements of a linked list."""
    while first:
        yield first
        first = first.next


# What POSIX calls these errors, and which exceptions of Python they are as well.
NUMBERS = {"NO_MEMORY": errno.ENOMEM, "USAGE": errno.EINVAL, "NOT_BTRFS": errno.EINVAL,
           "UNSUPPORTED": errno.EOPNOTSUPP, "NOT_FOUND": errno.ENOENT, "STOPPED": errno.ECANCELED,
           "AMBIGUOUS": errno.EINVAL, "DIVERGED": errno.EINVAL}
BASES = {"USAGE": ValueError, "NOT_FOUND": FileNotFoundError}
CLASSES: Any = {}
for _code in structures.enumeration("enum bw_error_code"):
    # Python itself has a SystemError, which means something else.
    _name = "SystemCall" if _code.name == "SYSTEM" else _code.name.title().replace("_", "")
    _name += "Error"
    CLASSES[_code] = globals()[_name] = type(
        _name, (Error, BASES[_code.name]) if _code.name in BASES else (Error,),
        {"__doc__": structures.DOCUMENTATION["enum bw_error_code"][1][f"BW_ERROR_{_code.name}"][0],
         "__module__": __name__, "default_code": _code})
for _class in (Error, *CLASSES.values()):
    _class._known = _class
structures.CONVERTED["struct bw_error"] = Error.of, "Error"
Error.default_code = structures.enumeration("enum bw_error_code").SYSTEM
__all__ = ["Error", "Hop", *(made.__name__ for made in CLASSES.values())]


@functools.cache
def combined(known: Any, builtin: Any) -> Any:
    """The class of errors of a code that are also an exception of Python."""
    if issubclass(known, builtin):
        return known
    return type(known.__name__, (known, builtin), {
        "__doc__": known.__doc__, "__module__": __name__, "_builtin": builtin})


def again(known: Any, builtin: Any, *arguments: Any) -> Error:
    """A copy of an error, for pickle."""
    made: Error = combined(known, builtin)(*arguments)
    return made


def make(message: str, code: Any, system: int = 0, *others: Any, **named: Any) -> Error:
    """An error of the class that fits its code and number."""
    builtin: Any = type(OSError(system, ""))
    made: Error = combined(CLASSES.get(code, Error), builtin)(
        message, code, system, *others, **named)
    return made


@contextlib.contextmanager
def about(filename: Any) -> "Iterator[None]":
    """Errors that have no file's name get this one."""
    try:
        yield
    except Error as error:
        if error.filename is None:
            error.filename = filename
        raise


def check(error: Any) -> None:
    """Raises an error that a function returned, and frees it. NULL is success."""
    if error:
        raised = Error.of(error)
        lib.bw_error_free(error)
        raise raised
