# SPDX-License-Identifier: GPL-2.0-or-later
"""Describes the extension `btrfswalk._binding` to cffi.

The environment says how to compile and link: BTRFS_WALK_CFLAGS and BTRFS_WALK_LIBS, which
`make python` sets, otherwise pkg-config says how to use the installed library."""
import os
import shlex
import sys
from pathlib import Path

import cffi

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from headers import Headers, run  # noqa: E402

HERE = Path(__file__).resolve().parent
HELPERS_CDEF = """
struct python_item { struct bw_item item; struct bw_item_location location; };
struct bw_error *python_items_next(struct bw_items *items, struct python_item *batch,
                                   size_t *count, uint8_t *data, size_t size);
extern "Python" void python_report(void *context, enum bw_severity severity,
                                   const struct bw_error *error);
void free(void *memory);
"""


def arguments(variable, option):
    """The arguments of the compiler in a variable, or those for the installed library."""
    given = os.environ.get(variable)
    return shlex.split(given if given is not None else run(["pkg-config", option, "btrfs-walk"]))


def header_folder(flags):
    """Where the headers are."""
    for folder in [flag[2:] for flag in flags if flag.startswith("-I")] + ["/usr/include"]:
        if Path(folder, "btrfs-walk/btrfs-walk.h").exists():
            return folder
    sys.exit("btrfs-walk/btrfs-walk.h was not found; install the library, or use `make python`")


def headers():
    flags = arguments("BTRFS_WALK_CFLAGS", "--cflags")
    return Headers(shlex.split(os.environ.get("CC", "cc")), flags, header_folder(flags))


def documentation(version):
    """The module `btrfswalk._headers`: what the comments of the headers say."""
    found = headers()
    return ("# Made by build_binding.py from the comments of the headers.\n"
            f"VERSION = {version!r}\nCONDITIONS = {found.conditions()!r}\n"
            f"DOCUMENTATION = {found.documentation()!r}\n")


def make():
    """The extension, as cffi wants it."""
    builder = cffi.FFI()
    builder.cdef(headers().cdef() + HELPERS_CDEF)
    builder.set_source("btrfswalk._binding", (HERE / "helpers.c").read_text(),
                       extra_compile_args=arguments("BTRFS_WALK_CFLAGS", "--cflags"),
                       extra_link_args=arguments("BTRFS_WALK_LIBS", "--libs"))
    return builder
