# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors of the library as exceptions. There is a class for each code of error.h."""
import errno
from typing import Any, NamedTuple

from . import structures
from ._binding import ffi, lib


class Hop(NamedTuple):
    """A layer that an error passed on its way up."""

    layer: str  #: its type ("features/verify"), or "fs"
    volume: str  #: its name in the graph ("verify")
    address: "int | None"  #: of the request, in the address space above the layer


class Error(OSError):
    """An error of the library, and the base of all other ones.

    `code` is a structures.ErrorCode, `message` says what is wrong. `way` has the layers that the
    error passed, first the one that detected it, whose `layer`, `volume` and `address` the
    exception has as well; None if it was not detected by a layer. `causes` are errors that led to
    this one, for example one for each copy that was tried.
    """

    default_code: Any = None

    def __init__(self, message: str, code: Any = None, system: int = 0,
                 way: "tuple[Hop, ...]" = (), causes: "tuple[Error, ...]" = ()) -> None:
        self.code = self.default_code if code is None else code
        super().__init__(system or NUMBERS.get(getattr(self.code, "name", ""), errno.EIO), message)
        self.message, self.way, self.causes = message, way, causes
        self.layer = way[0].layer if way else None
        self.volume = way[0].volume if way else None
        self.address = way[0].address if way else None

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return (type(self), (self.message, self.code, self.errno, self.way, self.causes),
                self.__dict__)

    @staticmethod
    def of(error: Any) -> "Error":
        """A copy of an error of C."""
        code = structures.from_enumeration("enum bw_error_code", error.code)
        causes = tuple(Error.of(one) for one in linked(error.causes))
        way = tuple(Hop(structures.decode(ffi.string(hop.layer)),
                        structures.decode(ffi.string(hop.volume)) if hop.volume else "",
                        hop.address if hop.has_address else None) for hop in linked(error.way))
        message = structures.decode(ffi.string(error.message))
        made: Error = CLASSES.get(code, Error)(message, code, error.system, way, causes)
        return made


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
    _name = _code.name.title().replace("_", "") + "Error"
    CLASSES[_code] = globals()[_name] = type(
        _name, (Error, BASES[_code.name]) if _code.name in BASES else (Error,),
        {"__doc__": structures.DOCUMENTATION["enum bw_error_code"][1][f"BW_ERROR_{_code.name}"][0],
         "__module__": __name__, "default_code": _code})
structures.CONVERTED["struct bw_error"] = Error.of, "Error"
Error.default_code = structures.enumeration("enum bw_error_code").SYSTEM
__all__ = ["Error", "Hop", *(made.__name__ for made in CLASSES.values())]


def check(error: Any) -> None:
    """Raises an error that a function returned, and frees it. NULL is success."""
    if error:
        raised = Error.of(error)
        lib.bw_error_free(error)
        raise raised
