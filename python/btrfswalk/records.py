# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of the library as classes of Python: FileInfo is the record `fileinfo`.

They are made from the tables of the library, which docs/probes/README.md prints, so they have the
columns of `btrfs-walk -o` and the members of `--json`. Members that are absent are None; `pass_`
stands for `pass`, which is a keyword. Rows of `btrfs-walk --json` become records, too:

>>> from btrfswalk import records
>>> records.FileInfo.from_json({"path": "/a", "size": 3})
FileInfo(path='/a', size=3)
"""
import base64
import dataclasses
import functools
from typing import Any, Iterable, Iterator

from . import structures
from ._binding import ffi, lib

# Types of members in Python, by their type, or by their format where that decides.
TYPES = {"U64": "int", "I64": "int", "TEXT": "str", "BYTES": "str",
         "STRIPES": "list[dict[str, int]]", "NAMES": "list[str]", "KEY": "dict[str, Any]",
         "JSON": "Any"}
FORMATS = {"BOOL": "bool", "WORD": "str", "FLAGS": "list[str]", "LIST": "list[str | int]"}


class Record:
    """What all records have. Only members with values are stored."""

    __slots__: "tuple[str, ...]" = ()
    _members: "frozenset[str]" = frozenset()
    _base64: "frozenset[str]" = frozenset()
    _keywords: "frozenset[str]" = frozenset()
    _elements: "dict[str, str]" = {}
    _converted: "frozenset[str]" = frozenset()  # the names of the three above

    def __getattr__(self, name: str) -> Any:
        """The value of a member that is absent."""
        if name in type(self)._members:
            return None
        raise AttributeError(f"{type(self).__name__} has no member {name!r}")

    @classmethod
    def from_json(cls, row: "dict[str, Any]") -> "Any":
        """A record from an object of JSON. Members that this version does not know are ignored."""
        if not cls._converted.isdisjoint(row):
            row = cls._convert(dict(row))
        made, members = cls.__new__(cls), cls._members
        for name in row:
            if name in members:
                setattr(made, name, row[name])
        return made

    @classmethod
    def _convert(cls, row: "dict[str, Any]") -> "dict[str, Any]":
        """Decodes base64, makes records of elements, and renames members that are keywords."""
        for name in cls._base64.intersection(row):
            encoded = row.pop(name)
            row[name.removesuffix("_bytes")] = structures.decode(base64.b64decode(encoded))
        for name, element in cls._elements.items():
            if name in row:
                value, made = row[name], record(element)
                row[name] = ([made.from_json(one) for one in value] if isinstance(value, list)
                             else made.from_json(value))
        return {structures.own_name(name): value for name, value in row.items()}

    def asdict(self) -> "dict[str, Any]":
        """The members that are not absent, by their names."""
        return {name: value for name, value in dataclasses.asdict(self).items()  # type: ignore
                if value is not None}

    def __repr__(self) -> str:
        known = [f"{name}={getattr(self, name)!r}" for name in self.__slots__
                 if getattr(self, name) is not None]
        return f"{type(self).__name__}({', '.join(known)})"


def class_name(name: str) -> str:
    """The name of the class of a record: "fileinfo" is FileInfo."""
    return (name.removesuffix("info").title().replace("_", "")
            + ("Info" if name.endswith("info") else ""))


@functools.cache
def tables() -> "dict[str, Any]":
    """The tables of all records, by their names."""
    found, listed, i = {}, lib.bw_records(), 0
    while listed[i]:
        found[ffi.string(listed[i].name).decode()] = listed[i]
        i += 1
    return found


def element_of(table: Any, number: int) -> "str | None":
    """The record that a member contains. Structures on disk are none: they remain objects of
    JSON."""
    element = lib.bw_record_element(table, number)
    name = ffi.string(element.name).decode() if element else None
    return name if name in tables() else None


def annotation(table: Any, number: int) -> str:
    """The type in Python of a member."""
    member = table.members[number]
    kind = structures.enumeration("enum bw_member_type")(member.type).name
    shape = structures.enumeration("enum bw_member_format")(member.format).name
    if kind in ("RECORD", "RECORDS"):
        name = element_of(table, number)
        element = class_name(name) if name else "dict[str, Any]"
        return element if kind == "RECORD" else f"list[{element}]"
    return FORMATS.get(shape, TYPES[kind])


def columns(table: Any) -> "Iterator[tuple[str, str, str]]":
    """Name, type and documentation of the members of a record, without those in base64."""
    for number in range(table.member_count):
        member = table.members[number]
        if member.format != lib.BW_FORMAT_BASE64:
            yield (structures.own_name(ffi.string(member.name).decode()), annotation(table, number),
                   ffi.string(member.documentation).decode())


@functools.cache
def record(name: str) -> Any:
    """The class of a record, by the record's name ("fileinfo")."""
    if name not in tables():
        raise AttributeError(f"there is no record {name!r}")
    table = tables()[name]
    members = [structures.own_name(ffi.string(table.members[i].name).decode())
               for i in range(table.member_count)]
    found = list(columns(table))
    fields: "list[Any]" = [(one, f"{kind} | None", None) for one, kind, _ in found]
    made: Any = dataclasses.make_dataclass(
        class_name(name), fields,
        bases=(Record,), repr=False, slots=True)
    made.__module__ = __name__
    made._elements = {one: element_of(table, number) for number, one in enumerate(members)
                      if element_of(table, number)}
    made._base64 = frozenset(one for one in members
                             if one not in made.__slots__)
    made._members = frozenset(made.__slots__)
    made._keywords = frozenset(one.removesuffix("_") for one in members if one.endswith("_"))
    made._converted = made._base64 | made._keywords | made._elements.keys()
    made.__doc__ = structures.documented(ffi.string(table.documentation).decode(),
                                         ((one, text) for one, _, text in found))
    return made


def value_of(member: Any, value: Any) -> Any:
    """The value of a member, as from_json() has it; None if it is absent. Records within records
    have none."""
    kind = structures.enumeration("enum bw_member_type")(member.type).name
    if kind in ("U64", "I64"):
        if value & (1 << 64) - 1 == lib.BW_ABSENT:
            return None
        return bool(value) if member.format == lib.BW_FORMAT_BOOL else value
    if kind == "TEXT":
        return structures.decode(ffi.string(value)) if value else None
    if kind == "KEY":
        if value.objectid == lib.BW_ABSENT:
            return None
        name = ffi.string(lib.bw_key_type_name(value.type)).decode()
        if name == "UNKNOWN":
            name = f"UNKNOWN.{value.type}"
        return {"objectid": value.objectid, "type": name, "offset": value.offset}
    if kind == "BYTES":
        return structures.decode(ffi.buffer(value.data, value.length)[:]) if value.data else None
    if kind == "NAMES":
        return [structures.decode(ffi.buffer(value.data[i].data, value.data[i].length)[:])
                for i in range(value.length)]
    return None


def from_structure(name: str, view: Any) -> Any:
    """A copy of a record that is a structure of C."""
    table, made = tables()[name], record(name)
    values = {}
    for i in range(table.member_count):
        one = ffi.string(table.members[i].name).decode()
        if structures.own_name(one) in made.__slots__:
            values[structures.own_name(one)] = value_of(table.members[i], getattr(view, one))
    return made(**values)


def read(name: str, rows: "Iterable[dict[str, Any]]") -> "Iterator[Any]":
    """Objects of JSON as records of that name."""
    made = record(name)
    return (made.from_json(row) for row in rows)


def __getattr__(name: str) -> Any:
    for one in tables() if not name.startswith("_") else ():
        if class_name(one) == name:
            globals()[name] = record(one)  # found at once from here on
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return sorted([*globals(), *map(class_name, tables())])
