# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads unmounted btrfs file systems: images and block devices, without root and without a mount.

>>> import btrfswalk
>>> with btrfswalk.FileSystem("image.img") as fs:
...     for entry in fs.walk("/docs", name="01.txt", fields="size"):
...         print(entry.path, entry.info.size)
/docs/letters/01.txt 17

`FileSystem` is where to begin. `structures` has the structures of the library, `records` its
records, and each `Error` has a class of its own. docs/python.md has recipes.
"""
from . import records, structures
from ._headers import VERSION as __version__
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .files import Entry, File, Inode, Item, Items, WalkedEntry
from .filesystem import FileSystem, Message, Subvolume, check_images
from .streams import Stream
from .tables import Table

__all__ = ["Entry", "File", "FileSystem", "Inode", "Item", "Items", "Message", "Stream",
           "Subvolume", "Table", "WalkedEntry", "__version__", "check_images", "records",
           "structures", *_errors]
