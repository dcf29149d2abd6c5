# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the types of `structures` and `records` for type checkers, and those of the keyword
arguments that are members of structures, into the built package: make_stubs.py FOLDER"""
import inspect
import re
import sys
from pathlib import Path

sys.path[0] = sys.argv[1]  # instead of the folder of this script, whose package is not built
from btrfswalk import _headers, options, records, structures  # noqa: E402

HEAD = '''\
# Made by make_stubs.py from the headers and the tables of records.
import builtins
import enum
from typing import Any, Callable, Iterable, Iterator, NamedTuple
from uuid import UUID

'''


def definitions(module):
    """The functions and classes that a module itself defines."""
    for name, one in vars(module).items():
        if getattr(one, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        if inspect.isfunction(one) or hasattr(one, "__wrapped__"):
            yield f"def {name}{inspect.signature(one)}: ...\n".replace("'", "")


def body(lines):
    return "".join(f"    {line}\n" for line in lines) or "    ...\n"


def enumeration(name, made):
    return f"class {name}(enum.{kind(made)}):\n" + body(
        f"{one} = {int(value)}" for one, value in made.__members__.items())


def kind(made):
    return made.__mro__[1].__name__


def dataclass(name, base, members, defaults):
    """A class with its members, and a constructor that accepts them. A member may have the name of
    a type."""
    members = [(one, re.sub(r"\bbytes\b", "builtins.bytes", annotation))
               for one, annotation in members]
    given = [f"{one}: {annotation}{' = ...' if defaults else ''}" for one, annotation in members]
    return f"class {name}({base}):\n" + body(
        [f"{one}: {annotation}" for one, annotation in members]
        + [f"def __init__({', '.join(['self', *given])}) -> None: ..."])


def structures_stub():
    yield HEAD + "from .errors import Error\n\n"
    yield "DOCUMENTATION: dict[str, Any]\nNAMES: dict[str, str]\n"
    yield "CONVERTED: dict[str, tuple[Callable[[Any], Any], str]]\n"
    yield from definitions(structures)
    yield "Unnamed = Any\nStructureMember = Any\n"
    yield "class Structure:\n    def asdict(self) -> dict[str, Any]: ...\n"
    for name, c_name in sorted(structures.NAMES.items()):
        made = getattr(structures, name)
        if c_name.startswith("enum"):
            yield enumeration(name, made)
        else:
            yield dataclass(name, "Structure", [(one.name, one.annotation)
                                                for one in structures.members(c_name)], False)


def records_stub():
    yield HEAD
    yield from definitions(records)
    yield ("class Record:\n    @classmethod\n"
           "    def from_json(cls, row: dict[str, Any]) -> Any: ...\n"
           "    def asdict(self) -> dict[str, Any]: ...\n")
    for name, table in sorted(records.tables().items()):
        members = [(one, f"{annotation} | None") for one, annotation, _ in records.columns(table)]
        yield dataclass(records.class_name(name), "Record", members, True)


# The keyword arguments of methods: the structures whose members they are, and others.
PATHS = "str | builtins.bytes | os.PathLike[str] | os.PathLike[builtins.bytes]"
ARGUMENTS = {
    "Fs": (["fs_options", "generation_choice"],
           {"helpers": "structures.HelperMode | str", "timeout": "float"}),
    "Walk": (["walk_options"], dict.fromkeys(
        _headers.CONDITIONS, "str | builtins.bytes | int | bool | Sequence[str | builtins.bytes]")),
    "Check": (["check_options"], {}), "Owner": (["owner_options"], {}),
    "Versions": (["versions_options"], {}), "History": (["history_options"], {}),
    "Diff": (["diff_options"], {}), "Send": (["send_options"], {}),
    "CheckImages": (["fs_options", "generation_choice", "check_options"], {}),
}


def argument(c_name, name, types):
    """The types that an option accepts; see options.set_member()."""
    ctype, named = types[name], structures.enumeration_of(c_name, name, types[name])
    if named:
        return f"structures.{structures.class_name(named)} | int | str | Sequence[str]"
    if ctype.kind == "primitive":
        return "bool" if ctype.cname == "_Bool" else "int"
    if ctype.kind == "struct":
        return "dict[str, Any]"
    if ctype.kind != "pointer":
        return "Any"
    if name == "subvolume" or ctype.item.cname == "struct bw_subvolume":
        return f"Subvolume | int | {PATHS}"
    if ctype.item.cname in ("char", "void"):
        return f"int | {PATHS}"
    if ctype.item.kind == "pointer":
        return f"{PATHS} | Sequence[{PATHS}]"
    if ctype.item.kind == "struct" and structures.fields_of(ctype.item.cname):
        return "dict[str, Any] | Sequence[dict[str, Any]]"
    return "Any"


def arguments_stub():
    yield HEAD.replace("import enum\n", "import os\n")
    yield "from typing import Sequence, TypedDict\n\nfrom . import structures\n"
    yield "from .filesystem import Subvolume\n\n"
    for name, (c_names, others) in ARGUMENTS.items():
        members = {}
        for c_name in [f"struct bw_{one}" for one in c_names]:
            types = structures.fields_of(c_name)
            members.update((one, argument(c_name, one, types)) for one in options.names(c_name)
                           if one not in ("paths", "start", "path", "ranges", "parent", "sources"))
        members.update(others)
        yield f"class {name}Arguments(TypedDict, total=False):\n" + body(
            f"{one}: {annotation} | None" for one, annotation in members.items())


folder = Path(sys.argv[1], "btrfswalk")
(folder / "arguments.pyi").write_text("".join(arguments_stub()), encoding="utf-8")
(folder / "structures.pyi").write_text("".join(structures_stub()), encoding="utf-8")
(folder / "records.pyi").write_text("".join(records_stub()), encoding="utf-8")
