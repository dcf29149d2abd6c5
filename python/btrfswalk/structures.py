# SPDX-License-Identifier: GPL-2.0-or-later
"""The structures and enumerations of the library as classes of Python.

They are made from the public headers: a member has the name that it has there, and its comment
there says what it means; `pass_` stands for `pass`, which is a keyword. Paths and names are `str`
with surrogate escapes, as of `os.fsdecode()`, times are nanoseconds since 1970, UUIDs are
`uuid.UUID` or None, and a subvolume is its id.

>>> from btrfswalk import structures
>>> structures.ExtentKind.HOLE
<ExtentKind.HOLE: 0>
>>> structures.Key(256, structures.KeyType.INODE_ITEM, 0)
Key(objectid=256, type=<KeyType.INODE_ITEM: 1>, offset=0)
"""
import dataclasses
import enum
import functools
import keyword
import os
from typing import Any, Callable, NamedTuple
from uuid import UUID

from . import _headers
from ._binding import ffi, lib

# Of each structure and enumeration: its comment, those of its members, whether it has bits.
DOCUMENTATION: "dict[str, Any]" = _headers.DOCUMENTATION

# Structures that another module converts: the function for it, and the name of the class.
CONVERTED: "dict[str, tuple[Callable[[Any], Any], str]]" = {}


def decode(name: bytes) -> str:
    """Bytes of an image as text; `encode()` gives the same bytes back."""
    return name.decode("utf-8", "surrogateescape")


def encode(name: Any, *, with_nul: bool = False) -> bytes:
    """The bytes of a path or a name. C sees the end of a text at the first NUL in it, so there may
    be none, except in bytes whose number C gets as well."""
    name = os.fspath(name)
    data = bytes(name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape"))
    if not with_nul and b"\0" in data:
        raise ValueError(f"{name!r} contains a NUL")
    return data


class Structure:
    """What all structures have."""

    __slots__ = ()

    def asdict(self) -> "dict[str, Any]":
        """The members by their names, with those of structures in it."""
        return dataclasses.asdict(self)  # type: ignore


class StructureMember(NamedTuple):
    """A member of a structure."""

    name: str
    read: Callable[[Any], Any]
    annotation: str
    documentation: str


def class_name(c_name: str) -> str:
    """The name of the class: "struct bw_check_summary" is CheckSummary."""
    if "$" in c_name:
        return "Unnamed"
    return c_name.split()[-1].removeprefix("bw_").title().replace("_", "")


def own_name(name: str) -> str:
    """The name of a member in Python."""
    return f"{name}_" if keyword.iskeyword(name) else name


@functools.cache
def enumeration(c_name: str) -> Any:
    """The class of an enumeration ("enum bw_severity")."""
    documentation, members, are_bits = DOCUMENTATION[c_name]
    values = ffi.typeof(c_name).relements
    prefix = os.path.commonprefix(list(values)).rpartition("_")[0] + "_"
    kind: Any = enum.IntFlag if are_bits else enum.IntEnum
    made = kind(class_name(c_name), {name.removeprefix(prefix): value
                                     for name, value in values.items()}, module=__name__)
    made.__doc__ = documented(documentation, ((name.removeprefix(prefix), text)
                                              for name, (text, _) in members.items()))
    return made


def documented(documentation: str, members: Any) -> str:
    return "\n".join([documentation, ""] + [f"{name}: {text}" for name, text in members if text])


def to_enumeration(c_name: str, value: Any) -> int:
    """A value that an option gets: a member, a number, a name, or several names of bits."""
    made = enumeration(c_name)
    if isinstance(value, int):
        return int(value)
    names = [value] if isinstance(value, str) else value
    try:
        numbers = [made[name.upper().replace("-", "_")] for name in names]
    except KeyError as error:
        choice = ", ".join(name.lower() for name in made.__members__)
        raise ValueError(f"{error.args[0].lower()} is none of: {choice}") from None
    return functools.reduce(lambda a, b: a | b, map(int, numbers), 0)


def from_enumeration(c_name: str, value: int) -> Any:
    """The member with a value, or the value itself: an image may contain any."""
    try:
        return enumeration(c_name)(value)
    except ValueError:
        return value


def fields_of(c_name: str) -> "dict[str, Any]":
    """The types of the members of a structure, by their names. Of an opaque structure: none."""
    ctype = ffi.typeof(c_name)
    try:
        ffi.sizeof(ctype)
    except (ffi.error, TypeError, ValueError):
        return {}
    return {name: field.type for name, field in ctype.fields}


def enumeration_of(c_name: str, member: str, ctype: Any) -> "str | None":
    """The enumeration whose values a member has: its type, or what its comment says."""
    if ctype.kind == "enum":
        return str(ctype.cname)
    named = DOCUMENTATION.get(c_name, ("", {}))[1].get(member, ("", None))[1]
    return f"enum {named}" if named and ctype.kind == "primitive" else None


def count_of(name: str, types: "dict[str, Any]") -> "str | None":
    """The member that says how many elements another one points to; None if that is one."""
    if types[name].kind != "pointer":
        return None
    candidates = [f"{name}_length", f"{name}_count", f"{name[:-1]}_count", f"{name}_size"]
    candidates += ["count"] if name.endswith("s") else []
    candidates += ["length", "size"] if name in ("data", "bytes") else []
    return next((one for one in candidates if one in types), None)


@functools.cache
def members(c_name: str) -> "tuple[StructureMember, ...]":
    """The members of a structure that mean something to Python."""
    types, found = fields_of(c_name), []
    texts = DOCUMENTATION.get(c_name, ("", {}))[1]
    lengths = {count_of(name, types) for name in types}
    for name, ctype in types.items():
        if name in ("reserved", "struct_size", "next") or name in lengths:
            continue
        reader = read_member(c_name, name, ctype, types)
        if reader:
            found.append(StructureMember(own_name(name), *reader, texts.get(name, ("", None))[0]))
    return tuple(found)


def read_member(c_name: str, name: str, ctype: Any, types: Any) -> Any:
    """How a member is read, and its type in Python; None for what means nothing to Python."""
    named = enumeration_of(c_name, name, ctype)
    if named:
        return (lambda it: from_enumeration(named, getattr(it, name))), class_name(named)
    if ctype.kind == "primitive":
        return (lambda it: getattr(it, name)), "bool" if ctype.cname == "_Bool" else "int"
    if ctype.kind == "struct":
        read, annotation = read_structure(ctype)
        return (lambda it: read(getattr(it, name))), annotation
    if ctype.kind == "array":
        return read_array(name, ctype)
    if ctype.kind == "pointer":
        return read_pointer(name, ctype.item, count_of(name, types))
    return None


def read_structure(ctype: Any) -> Any:
    if ctype.cname in CONVERTED:
        return CONVERTED[ctype.cname]
    if ctype.cname == "struct timespec":
        return (lambda it: lib.bw_time_nanoseconds(ffi.addressof(it))), "int"
    if ctype.cname == "struct bw_bytes":
        return (lambda it: decode(ffi.buffer(it.data, it.length)[:]) if it.data else None), \
            "str | None"
    return (lambda it: convert(ctype.cname, it)), class_name(ctype.cname)


def read_array(name: str, ctype: Any) -> Any:
    if ctype.item.cname == "char":
        return (lambda it: decode(ffi.string(getattr(it, name)))), "str"
    if ctype.item.cname == "uint8_t" and ctype.length == lib.BW_UUID_SIZE:
        return (lambda it: to_uuid(bytes(getattr(it, name)))), "UUID | None"
    if ctype.item.kind == "struct":
        return (lambda it: tuple(convert(ctype.item.cname, one) for one in getattr(it, name))), \
            f"tuple[{class_name(ctype.item.cname)}, ...]"
    return (lambda it: tuple(getattr(it, name))), "tuple[int, ...]"


def to_uuid(value: bytes) -> "UUID | None":
    return UUID(bytes=value) if any(value) else None


def read_pointer(name: str, item: Any, count: "str | None") -> Any:
    if item.cname == "char":
        if count:
            return (lambda it: decode(ffi.buffer(getattr(it, name), getattr(it, count))[:])
                    if getattr(it, name) else None), "str | None"
        return (lambda it: decode(ffi.string(getattr(it, name))) if getattr(it, name) else None), \
            "str | None"
    if item.cname == "uint8_t" and count:
        return (lambda it: ffi.buffer(getattr(it, name), getattr(it, count))[:]), "bytes"
    if item.cname == "struct bw_subvolume":
        return (lambda it: lib.bw_subvolume_id(getattr(it, name)) if getattr(it, name) else None), \
            "int | None"
    if item.kind == "primitive" and count:
        return (lambda it: tuple(ffi.unpack(getattr(it, name), getattr(it, count)))
                if getattr(it, count) else ()), "tuple[int, ...]"
    if item.kind != "struct" or not fields_of(item.cname):
        return None
    read, annotation = read_structure(item)
    if count:
        return (lambda it: tuple(read(getattr(it, name)[i]) for i in range(getattr(it, count)))), \
            f"tuple[{annotation.removesuffix(' | None')}, ...]"
    return (lambda it: read(getattr(it, name)[0]) if getattr(it, name) else None), \
        f"{annotation} | None"


@functools.cache
def structure(c_name: str) -> type:
    """The class of a structure ("struct bw_extent")."""
    fields: "list[Any]" = [(one.name, one.annotation) for one in members(c_name)]
    made = dataclasses.make_dataclass(
        class_name(c_name), fields,
        bases=(Structure,), slots=True, namespace={"__module__": __name__})
    made.__module__ = __name__
    made.__doc__ = documented(DOCUMENTATION.get(c_name, ("",))[0],
                              ((one.name, one.documentation) for one in members(c_name)))
    return made


def convert(c_name: str, value: Any) -> Any:
    """A structure of C as one of Python, with everything that it points to."""
    return structure(c_name)(*[one.read(value) for one in members(c_name)])


# Without the records, which are in `records`, errors, which are exceptions, and batches, which are
# iterators.
NAMES = {class_name(c_name): c_name for c_name in DOCUMENTATION
         if c_name not in ("struct bw_error", "struct bw_batch")
         and not lib.bw_record_find(c_name.removeprefix("struct bw_").encode())}


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    make = enumeration if NAMES[name].startswith("enum") else structure
    made = globals()[name] = make(NAMES[name])  # found at once from here on
    return made


def __dir__() -> "list[str]":
    return sorted([*globals(), *NAMES])
