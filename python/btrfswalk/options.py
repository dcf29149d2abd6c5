# SPDX-License-Identifier: GPL-2.0-or-later
"""Structures with options, filled from keyword arguments that have the names of their members."""
import difflib
import weakref
from typing import Any, Mapping

from . import structures
from ._binding import ffi

# Members that the binding itself sets.
HIDDEN = {"struct_size", "reserved", "context", "visit", "consume", "write", "progress", "rows",
          "selection", "reporter", "probes", "planned", "planned_context", "searched",
          "searched_context", "decompressed", "ask", "ask_context", "servers", "images", "held",
          "work", "finish", "proceed", "search_limit"}

# What the structures point to has to live as long as they do.
KEPT: "weakref.WeakKeyDictionary[Any, list[Any]]" = weakref.WeakKeyDictionary()


def keep(made: Any, *pointed: Any) -> None:
    """Keeps objects as long as a structure."""
    KEPT.setdefault(made, []).extend(pointed)


def fill(c_name: str, given: "Mapping[str, Any]") -> Any:
    """A new structure with these members."""
    made = ffi.new(f"{c_name} *")
    types = structures.fields_of(c_name)
    if not isinstance(given, dict):
        raise TypeError(f"{given!r} is no dictionary with the members of {c_name}")
    if "struct_size" in types:
        made.struct_size = ffi.sizeof(c_name)
    for name, value in given.items():
        if name not in types or name in HIDDEN:
            near = difflib.get_close_matches(name, names(c_name), 1)
            raise TypeError(f"unknown option {name!r}; " + (
                f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names(c_name))}"))
        if value is not None:
            set_member(made, c_name, name, value)
            if f"has_{name}" in types:
                setattr(made, f"has_{name}", True)
    return made


def names(c_name: str) -> "list[str]":
    """The options that a structure has."""
    types = structures.fields_of(c_name)
    lengths = {structures.count_of(name, types) for name in types}
    return [name for name in types if name not in HIDDEN and name not in lengths
            and not name.startswith("has_")]


def split(c_name: str, given: "Mapping[str, Any]") -> "tuple[dict[str, Any], dict[str, Any]]":
    """The options that a structure has, and all others."""
    known = names(c_name)
    return ({name: value for name, value in given.items() if name in known},
            {name: value for name, value in given.items() if name not in known})


def set_member(made: Any, c_name: str, name: str, value: Any) -> None:
    types = structures.fields_of(c_name)
    ctype = types[name]
    named = structures.enumeration_of(c_name, name, ctype)
    if named:
        setattr(made, name, structures.to_enumeration(named, value))
    elif ctype.kind == "primitive":
        setattr(made, name, value)
    elif ctype.kind == "struct":
        filled = fill(ctype.cname, value)
        setattr(made, name, filled[0])
        keep(made, filled)
    elif ctype.kind == "pointer":
        length = structures.count_of(name, types)
        pointed, count = pointer(ctype, value, length is not None)
        setattr(made, name, pointed)
        keep(made, pointed)
        if length:
            setattr(made, length, count)
        elif count != 1:
            raise TypeError(f"{name!r} is one value, not a list of {count}")


def pointer(ctype: Any, value: Any, is_counted: bool) -> "tuple[Any, int]":
    """Memory with a value that a member points to, and the number of its elements. The number of
    bytes of a text only matters if it `is_counted`."""
    if ctype.item.cname in ("char", "void"):
        # Names of subvolumes may be their ids.
        number = getattr(value, "id", value)
        data = structures.encode(str(number) if isinstance(number, int) else value,
                                 with_nul=is_counted)
        return ffi.new("char[]", data), len(data) if is_counted else 1
    if ctype.item.kind == "pointer":
        texts = [ffi.new("char[]", structures.encode(one)) for one in listed(value)]
        made = ffi.new("char *[]", texts)
        keep(made, texts)
        return made, len(texts)
    if ctype.item.cname == "struct bw_subvolume":
        return value._handle, 1
    if ctype.item.kind == "struct" and structures.fields_of(ctype.item.cname):
        filled = [fill(ctype.item.cname, one) for one in listed(value)]
        made = ffi.new(f"{ctype.item.cname}[]", [one[0] for one in filled])
        keep(made, filled)
        return made, len(filled)
    if isinstance(value, ffi.CData):
        return value, 1
    raise TypeError(f"{ctype.cname} cannot be set")


def listed(value: Any) -> "list[Any]":
    """The elements of a list; a single value is a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
