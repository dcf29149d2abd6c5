# SPDX-License-Identifier: GPL-2.0-or-later
"""Open file systems and their subvolumes."""
import collections
import json
import logging
import os
import uuid
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, NamedTuple

from . import options, records, structures
from ._binding import ffi, lib
from .errors import Error, check
from .files import Entry, File, Inode, Items, WalkedEntry, owned_text
from .handles import OpenFileSystem, owned
from .streams import Stream, end_all
from .tables import Table

if TYPE_CHECKING:  # made by make_stubs.py, and only for type checkers
    from typing_extensions import Unpack

    from . import arguments

LOGGER = logging.getLogger("btrfswalk")
LEVELS = {"NOTE": logging.INFO, "WARNING": logging.WARNING, "DAMAGE": logging.ERROR}


class Message(NamedTuple):
    """Something that did not end an operation: a structures.Severity, and what happened."""

    severity: "structures.Severity"
    error: Error


def report(context: Any, severity: int, error: Any) -> None:
    """Passes a message on to the file system that it is about, if there still is one."""
    messages = ffi.from_handle(context)()
    message = Message(structures.from_enumeration("enum bw_severity", severity), Error.of(error))
    if messages is not None:
        messages.append(message)
    LOGGER.log(LEVELS[message.severity.name], "%s", message.error)


ffi.def_extern(name="python_report")(report)


class FileSystem(OpenFileSystem):
    """An unmounted btrfs file system, from image files or block devices, in any order.

    Options are the members of struct bw_fs_options and, to open an older generation, of struct
    bw_generation_choice (fs.h): `log="ignore"`, `generation=77`, `keys=[{"bytes": b"secret"}]` for
    encrypted volumes, `inside=["/vm/disk.raw"]` for an image in the file system. Use it in a `with`
    statement, or close it.

    An image may be the address of an NBD server. With `helpers="on"`, qemu-nbd and nbdkit serve
    containers such as qcow2, compressed images and web addresses; with `helpers="backing"` also
    images that refer to other files (enum bw_helper_mode in image.h). `timeout` is the number of
    seconds after which a silent server counts as lost.

    Damage does not end the methods that return many results. Each loss becomes one of the last
    `messages`, and a message of the logger "btrfswalk"; `status.damages` counts them. Several
    threads may use a file system at once.
    """

    MESSAGES = 1000  # that are kept

    def __init__(self, *images: Any, **given: "Unpack[arguments.FsArguments]") -> None:
        super().__init__()
        self.images = images
        self.messages: "collections.deque[Message]" = collections.deque(maxlen=self.MESSAGES)
        self._given = given
        servers = make_servers(given.get("helpers"), given.get("timeout"))
        state, rest = options.split("struct bw_generation_choice", {
            name: value for name, value in given.items() if name not in ("helpers", "timeout")})
        if state:
            rest["state"] = state
        self._options = options.fill("struct bw_fs_options", {"paths": list(images), **rest})
        # A weak reference: messages may refer to exceptions, whose frames refer to this object.
        reporter = ffi.new_handle(weakref.ref(self.messages))
        self._options.servers = servers
        self._options.reporter = {"report": lib.python_report, "context": reporter}
        opened = ffi.new("struct bw_fs **")
        check(self._open_images(opened))
        self._set_handle(opened[0], servers, self._options, reporter)

    def _open_images(self, opened: Any) -> Any:
        return lib.bw_fs_open(self._options, opened)

    def close(self) -> None:
        """Closes the file system, its files and its iterators. Nothing of it can be used then.
        Calls in other threads are completed. In a child process, it stays open in the parent."""
        super().close()
        end_all(self)

    def __enter__(self) -> "FileSystem":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FileSystem {', '.join(map(str, self.images))}>"

    def at(self, **choice: "Unpack[arguments.FsArguments]") -> "FileSystem":
        """The same file system in another generation: `at(generation=77)` or
        `at(tree_root=version.tree_root)`. Close it, too."""
        given: Any = {**self._given, **choice}
        return FileSystem(*self.images, **given)

    # What it is.

    @property
    def status(self) -> "structures.FsStatus":
        """Damages so far, missing devices, the log tree, the generation."""
        found: "structures.FsStatus" = structures.convert("struct bw_fs_status",
                                                          lib.bw_fs_status(self._handle))
        return found

    @property
    def superblock(self) -> "structures.SuperblockInfo":
        """Label, fsid, sizes, features."""
        found = ffi.new("struct bw_superblock_info *")
        lib.bw_fs_superblock(self._handle, found)
        made: "structures.SuperblockInfo" = structures.convert("struct bw_superblock_info", found)
        return made

    def devices(self) -> "Table[structures.DeviceInfo]":
        """Its devices, missing ones included."""
        return listed("struct bw_device_info", "struct bw_device_list *", lib.bw_fs_devices,
                      lib.bw_device_list_free, self._handle)

    def chunks(self) -> "Table[structures.ChunkInfo]":
        """Its chunks, by ascending address."""
        return listed("struct bw_chunk_info", "struct bw_chunk_list *", lib.bw_fs_chunks,
                      lib.bw_chunk_list_free, self._handle)

    # Subvolumes.

    def _subvolume(self, handle: Any) -> "Subvolume":
        self._handle  # noqa: B018 # raises if it has been closed
        return Subvolume(self, handle)

    def subvolumes(self) -> "Iterator[Subvolume]":
        """All subvolumes and snapshots, by ascending id, those that are being deleted included."""
        handle = lib.bw_subvolume_next(self._handle, ffi.NULL)
        while handle:
            yield Subvolume(self, handle)
            handle = lib.bw_subvolume_next(self._handle, handle)

    def subvolume(self, name: Any = 5) -> "Subvolume":
        """The subvolume with an id, a UUID, or a path; "default" is the default one. Other methods
        accept the same as `subvolume`, and a Subvolume."""
        found = ffi.new("const struct bw_subvolume **")
        if isinstance(name, uuid.UUID):
            check(lib.bw_subvolume_by_uuid(self._handle, name.bytes, found))
        else:
            number = getattr(name, "id", name)
            text = str(number) if isinstance(number, int) else name
            check(lib.bw_subvolume_by_name(self._handle, structures.encode(text), found))
        return Subvolume(self, found[0])

    # Files.

    def lookup(self, path: Any = "/", subvolume: Any = None, follow: bool = True) -> Entry:
        """The file at a path, from the top of a subvolume; by default, of the top-level one.
        `follow`: if it is a symbolic link, the file that the link leads to."""
        start = self.subvolume(subvolume)._pointer if subvolume is not None else ffi.NULL
        place = ffi.new("struct bw_place *")
        check(lib.bw_lookup(self._handle, start, structures.encode(path), follow, place))
        name = structures.decode(structures.encode(path))
        return Entry(self, name if name.startswith("/") else f"/{name}", place)

    def inode(self, number: int, subvolume: Any = 5) -> Inode:
        """The file with an inode number."""
        place = ffi.new("struct bw_place *")
        check(lib.bw_lookup_number(self._handle, self.subvolume(subvolume)._pointer, number,
                                   place))
        return Inode(self, place)

    def open(self, path: Any, subvolume: Any = None, *, unchecked: bool = False) -> File:
        """Opens the contents of a file: an `io.RawIOBase`."""
        return self.lookup(path, subvolume).open(unchecked=unchecked)

    def stat(self, path: Any, subvolume: Any = None, *, follow: bool = True) -> os.stat_result:
        """The same as of `os.stat()` on a mount."""
        return self.lookup(path, subvolume, follow).stat()

    def iterdir(self, path: Any = "/", subvolume: Any = None) -> "Iterator[Entry]":
        """The entries of a directory."""
        return self.lookup(path, subvolume).iterdir()

    def walk(self, start: Any = None, *, fields: "str | Iterable[str]" = (),
             **given: "Unpack[arguments.WalkArguments]") -> "Stream[WalkedEntry]":
        """All regular files, or all files of `types`, below `start`, with all subvolumes.

        Options are the members of struct bw_walk_options (walk.h): `subvolume`, `types`,
        `maxdepth`, `order="by_size"`, `nested="skip"` and so on. All other arguments are conditions
        of bw_selection_add() (walk.h) with the names that find(1) uses: `name="*.c"`, `size="+1M"`,
        `newer="2026-01-31"`, `empty=True`. Of a list of names, one has to match.

        `fields` are columns of records.FileInfo for `Entry.info`, or "all". Without any that needs
        inodes, a walk is several times as fast.
        """
        wanted = ["path", "type", "subvolume", "inode"]
        extra = fields.split(",") if isinstance(fields, str) else list(fields)
        if "all" in extra:
            extra = [one for one, _, _ in records.columns(lib.bw_record_find(b"fileinfo"))]
        wanted += [one for one in extra if one and one not in wanted]

        def expand(text: bytes) -> "list[WalkedEntry]":
            rows = json.loads(b"[" + text[:-1].replace(b"\n", b",") + b"]")
            return [WalkedEntry(self, row) for row in rows]

        rows = make_rows(members=",".join(wanted), style="json_lines", terminator=b"\n")
        return self._walk(start, given, rows, expand)

    def paths(self, start: Any = None,
              **given: "Unpack[arguments.WalkArguments]") -> "Stream[str]":
        """The paths of the files that `walk()` finds: the fastest list."""
        return self._walk(start, given, make_rows(style="paths"),
                          lambda text: structures.decode(text[:-1]).split("\0"))

    def _walk(self, start: Any, given: "Mapping[str, Any]", rows: Any,
              expand: "Callable[[bytes], list[Any]]") -> "Stream[Any]":
        known, conditions = options.split("struct bw_walk_options", given)
        walk = options.fill("struct bw_walk_options", {"start": start, **known})
        selection = self._select(conditions, known.get("subvolume"))
        walk.rows, walk.selection = rows, selection
        options.keep(walk, rows, selection)
        summary = ffi.new("struct bw_walk_summary *")
        found: "Stream[Any]" = Stream(
            self, lambda fs, opened: lib.bw_batches_open_walk(fs, walk, summary, opened),
            lambda batch: expand(text_of(batch)),
            lambda: structures.convert("struct bw_walk_summary", summary), walk, summary)
        return found

    def _select(self, conditions: "dict[str, Any]", subvolume: Any) -> Any:
        """A selection of files; NULL if there are no conditions."""
        if not conditions:
            return ffi.NULL
        made = ffi.new("struct bw_selection **")
        check(lib.bw_selection_create(made))
        selection = owned(made[0], lib.bw_selection_destroy)
        for name, argument in conditions.items():
            for one in options.listed(argument):
                if one is None or one is False:
                    continue
                text = "" if one is True else str(one) if isinstance(one, int) else one
                check(lib.bw_selection_add(
                    selection, structures.encode(name.replace("_", "-")),
                    structures.encode(text)))
        start = self.subvolume(subvolume)._pointer if subvolume is not None else ffi.NULL
        check(lib.bw_selection_prepare(selection, self._handle, start))
        return selection

    # Everything else.

    def items(self, tree: Any, first: Any = None, last: Any = None, *,
              keys: "str | None" = None) -> Items:
        """The items of a tree, in the order of their keys. The tree is an id, a name ("extent"),
        or a subvolume. `first` and `last` are keys (objectid, type, offset), or structures.Key;
        `keys` is a range as text, such as "256,DIR_INDEX" or "256..260"."""
        low, high = make_key(first), make_key(last)
        if keys is not None:
            low, high = ffi.new("struct bw_key *"), ffi.new("struct bw_key *")
            check(lib.bw_key_range_parse(structures.encode(keys), low, high))
        number = ffi.new("uint64_t *")
        if isinstance(tree, str):
            check(lib.bw_tree_id_parse(structures.encode(tree), number))
        else:
            number[0] = getattr(tree, "id", tree)
        return Items(self, number[0], low, high)

    def check(self, **given: "Unpack[arguments.CheckArguments]"
              ) -> "Stream[records.FindingInfo]":
        """Findings of a check. Options are the members of struct
        bw_check_options (check.h): `quick`, `data`, `all`, `threads`. Open the file system with
        `log="ignore"` to check the trees as they are on disk. The `summary` is a
        structures.CheckSummary."""
        made, why = options.fill("struct bw_check_options", given), self._why
        summary = owned(ffi.new("struct bw_check_summary **"),
                        lambda it: lib.bw_check_summary_free(it[0]))
        return Stream(
            self, lambda fs, opened: lib.bw_batches_open_check(fs, why, made, summary, opened),
            lambda batch: [make_finding(batch.findings[i]) for i in range(batch.count)],
            lambda: structures.convert("struct bw_check_summary", summary[0]), made, why, summary)

    _why: Any = ffi.NULL  # the error for which it cannot be opened

    def owners(self, *ranges: "int | tuple[int, int]", **given: "Unpack[arguments.OwnerArguments]"
               ) -> "Stream[structures.Owner]":
        """Who uses logical addresses. A range is an address, or (address,
        length). Options are the members of struct bw_owner_options (space.h)."""
        pairs = [one if isinstance(one, tuple) else (one, 1) for one in ranges]
        start = given.get("subvolume")
        made = options.fill("struct bw_owner_options", {
            **given, "subvolume": None if start is None else self.subvolume(start),
            "ranges": [{"logical": one, "length": length} for one, length in pairs]})
        return self._results(
            "struct bw_owner", "owners",
            lambda fs, opened: lib.bw_batches_open_owners(fs, made, opened), made)

    def versions(self, path: Any, **given: "Unpack[arguments.VersionsArguments]"
                 ) -> "Stream[structures.Version]":
        """The versions of a file in older generations, the newest first. Options are the members
        of struct bw_versions_options (history.h). To read one, open its generation:
        `fs.at(tree_root=version.tree_root)`."""
        made = options.fill("struct bw_versions_options", {"path": path, **given})
        made.images = self._options
        found: "Stream[structures.Version]" = self._results(
            "struct bw_version", "versions",
            lambda fs, opened: lib.bw_batches_open_versions(fs, made, opened), made)
        return found

    def generations(self, **given: "Unpack[arguments.HistoryArguments]"
                    ) -> "Table[structures.GenerationInfo]":
        """The generations that can be opened, the newest first. Options
        are the members of struct bw_history_options (history.h)."""
        made, fs = options.fill("struct bw_history_options", given), self._handle
        history = ffi.new("struct bw_history **")
        check(lib.bw_history_open(fs, made, history))
        try:
            return Table(structures.convert("struct bw_generation_info",
                                            lib.bw_history_entry(history[0], i))
                         for i in range(lib.bw_history_count(history[0])))
        finally:
            lib.bw_history_close(history[0])
            del fs  # which the history has used

    def _results(self, c_name: str, member: str, start: Any, *kept: Any,
                 summary: Any = None) -> "Stream[Any]":
        """The structures in a member of the batches."""
        def expand(batch: Any) -> "list[Any]":
            results = getattr(batch, member)
            return [structures.convert(c_name, results[i]) for i in range(batch.count)]

        return Stream(
            self, start, expand,
            lambda: summary and structures.convert(ffi.typeof(summary).item.cname, summary),
            summary, *kept)


class Images(FileSystem):
    """Images of a file system that cannot be opened: only a check can use them."""

    def __init__(self, why: Error, *images: Any, **given: Any) -> None:
        self._why = owned(lib.bw_error_create(int(why.code), b"%s", ffi.new(
            "char[]", structures.encode(why.message))), lib.bw_error_free)
        super().__init__(*images, **given)

    def _open_images(self, opened: Any) -> Any:
        return lib.bw_fs_open_images(self._options, opened)


class Subvolume:
    """A subvolume or snapshot. Paths of its methods begin at its top directory, and nested
    subvolumes are empty directories there."""

    def __init__(self, fs: FileSystem, handle: Any) -> None:
        self.fs, self._pointer = fs, handle
        held = fs._handle
        self.id = int(lib.bw_subvolume_id(handle))
        del held

    @property
    def _handle(self) -> Any:
        self.fs._handle  # noqa: B018 # raises if it has been closed
        return self._pointer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subvolume) and (self.fs, self.id) == (other.fs, other.id)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        try:
            return f"<Subvolume {self.id} {self.path!r}>"
        except (Error, ValueError):  # it has no path any more, or the file system is closed
            return f"<Subvolume {self.id}>"

    @property
    def info(self) -> "structures.SubvolumeInfo":
        """Its UUIDs, times, generations, flags."""
        fs, found = self.fs._handle, ffi.new("struct bw_subvolume_info *")
        check(lib.bw_subvolume_get(fs, self._pointer, found))
        made: "structures.SubvolumeInfo" = structures.convert("struct bw_subvolume_info", found)
        return made

    @property
    def path(self) -> str:
        """The absolute path of its top directory, from the top-level subvolume."""
        return owned_text(lib.bw_subvolume_path, self.fs._handle, self._handle)

    def lookup(self, path: Any = "/", follow: bool = True) -> Entry:
        return self.fs.lookup(path, self.id, follow)

    def open(self, path: Any, *, unchecked: bool = False) -> File:
        return self.fs.open(path, self.id, unchecked=unchecked)

    def walk(self, start: Any = None, *, fields: "str | Iterable[str]" = (),
             **given: "Unpack[arguments.WalkArguments]") -> "Stream[WalkedEntry]":
        options: Any = {**given, "subvolume": self}
        return self.fs.walk(start, fields=fields, **options)

    def paths(self, start: Any = None,
              **given: "Unpack[arguments.WalkArguments]") -> "Stream[str]":
        options: Any = {**given, "subvolume": self}
        return self.fs.paths(start, **options)

    def items(self, first: Any = None, last: Any = None, *, keys: "str | None" = None) -> Items:
        return self.fs.items(self.id, first, last, keys=keys)

    def diff(self, after: "Subvolume", **given: "Unpack[arguments.DiffArguments]"
             ) -> "Stream[structures.Difference]":
        """The differences from this subvolume to another one, of any file system. Options are the
        members of struct bw_diff_options (diff.h); the `summary` is a structures.DiffSummary."""
        made = options.fill("struct bw_diff_options", given)
        sides = [make_side("struct bw_diff_side *", one) for one in (self, after)]
        summary = ffi.new("struct bw_diff_summary *")
        return self.fs._results(
            "struct bw_difference", "differences",
            lambda _, opened: lib.bw_batches_open_diff(*sides, made, summary, opened), made, *sides,
            summary=summary)

    def send(self, parent: "Subvolume | None" = None, sources: "Iterable[Subvolume]" = (),
             **given: "Unpack[arguments.SendArguments]") -> "Stream[bytes]":
        """A send stream, in pieces; incremental with a `parent`. Options are the members of struct
        bw_send_options (stream.h); the `summary` is a structures.SendSummary."""
        def side(one: Subvolume) -> "dict[str, Any]":
            return {"fs": one.fs._handle, "subvolume": one}

        made = options.fill("struct bw_send_options", {
            **given, "parent": side(parent) if parent else None,
            "sources": [side(one) for one in sources]})
        summary = ffi.new("struct bw_send_summary *")
        sent = make_side("struct bw_send_side *", self)
        return Stream(
            self.fs, lambda _, opened: lib.bw_batches_open_send(sent, made, summary, opened),
            lambda batch: (text_of(batch),),
            lambda: structures.convert("struct bw_send_summary", summary), made, sent, summary)


def check_images(*images: Any, **given: "Unpack[arguments.CheckImagesArguments]"
                 ) -> "Stream[records.FindingInfo]":
    """Findings of a check of images, even if they cannot be opened as a file system. The file
    system is closed when the iterator is."""
    checking, opening = options.split("struct bw_check_options", given)
    opening.setdefault("log", "ignore")
    try:
        fs = FileSystem(*images, **opening)
    except Error as why:
        fs = Images(why, *images, **opening)
    return fs.check(**checking)


def listed(c_name: str, list_name: str, function: Any, free: Any, fs: Any) -> "Table[Any]":
    """The items of a list of C, as structures of Python."""
    found = ffi.new(list_name)
    check(function(fs, found))
    try:
        return Table(structures.convert(c_name, found.items[i]) for i in range(found.count))
    finally:
        free(found)


def text_of(batch: Any) -> bytes:
    """The text of a batch."""
    return bytes(ffi.buffer(batch.text, batch.text_length))


def make_servers(helpers: Any, timeout: "float | None") -> Any:
    """Connections and helpers for images that are not plain files; NULL if there are none."""
    if helpers is None and timeout is None:
        return ffi.NULL
    made = ffi.new("struct bw_servers **")
    mode = structures.to_enumeration("enum bw_helper_mode", "off" if helpers is None else helpers)
    check(lib.bw_servers_create(mode, made))
    if timeout is not None:
        lib.bw_servers_set_timeout(made[0], int(timeout * 1000))
    return owned(made[0], lib.bw_servers_destroy)


def make_rows(**given: Any) -> Any:
    """Rows of files. Options are the members of struct bw_rows_options."""
    rows = ffi.new("struct bw_rows **")
    check(lib.bw_rows_create(b"fileinfo", options.fill("struct bw_rows_options", given), rows))
    return owned(rows[0], lib.bw_rows_destroy)


def make_key(key: Any) -> Any:
    """A key of C; NULL for None."""
    if key is None:
        return ffi.NULL
    values = key.asdict() if isinstance(key, structures.Structure) else dict(
        zip(("objectid", "type", "offset"), key))
    made = options.fill("struct bw_key", values)
    return made


def make_side(c_name: str, one: Subvolume) -> Any:
    """A subvolume and its file system, which stays open as long as this structure exists."""
    fs = one.fs._handle
    made = ffi.new(c_name, [fs, one._handle])
    options.keep(made, fs)
    return made


def make_finding(view: Any) -> Any:
    """A finding, with None for members that are absent."""
    return records.from_structure("findinginfo", view)
