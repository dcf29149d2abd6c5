# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of everything that could make the package crash: objects that are freed in any order, used
after the end, by several threads, in child processes, or while the interpreter ends; arguments that
C would misunderstand. tests/command/python.sh runs them with AddressSanitizer, too."""
import concurrent.futures
import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import btrfswalk
from btrfswalk import errors, options, structures
from btrfswalk._binding import ffi
from btrfswalk.files import WalkedEntry
from btrfswalk.filesystem import Images

IMAGE = Path(os.environ["IMAGES"], "plain/dev1.img")
FILE = "/top-file"
# Of the orders in which objects can be freed, every fifth is enough for each run.
ORDERS = slice(None, None, 1 if os.environ.get("WORST") else 5)


def orders(*names):
    return list(itertools.permutations(names))[ORDERS]


def open_directory(fs):
    listing = fs.iterdir("/")
    next(listing)
    return listing


def open_items(fs):
    items = fs.items("fs")
    next(items)
    return items


def open_stream(fs):
    stream = fs.walk(name="*", fields="size")
    next(stream)
    return stream


def open_extents(fs):
    extents = fs.lookup(FILE).extents()
    next(extents)
    return extents


def open_difference(fs):
    with btrfswalk.FileSystem(IMAGE) as other:
        stream = fs.subvolume().diff(other.subvolume(), by_path=True, unchanged=False)
    return stream


# What can be open in a file system, and a use of it that must work or raise ValueError.
OPEN = {
    "file": (lambda fs: fs.open(FILE), lambda file: file.pread(10, 0)),
    "directory": (open_directory, lambda listing: next(listing, None)),
    "items": (open_items, lambda items: next(items, None)),
    "extents": (open_extents, lambda extents: next(extents, None)),
    "stream": (open_stream, lambda stream: next(stream, None)),
    "unread": (lambda fs: fs.paths(), lambda stream: next(stream, None)),
    "subvolume": (lambda fs: fs.subvolume(), lambda subvolume: (subvolume.info, subvolume.path)),
    "entry": (lambda fs: fs.lookup(FILE), lambda entry: (entry.stat(), entry.subvolume.path)),
    "row": (lambda fs: next(fs.walk()), lambda entry: entry.stat()),
    "file system": (lambda fs: fs, lambda fs: (fs.status, fs.subvolume(), fs.stat(FILE)))}


class Holder:
    """An object in cycles, whose `__del__` uses or saves what it holds."""

    def __init__(self, use, *held):
        self.use, self.held, self.itself = use, held, self

    def __del__(self):
        self.use(*self.held)


def quietly(use, *arguments):
    """Uses something that may have been closed."""
    try:
        use(*arguments)
    except ValueError:
        pass


class Collection(unittest.TestCase):
    """Objects that the garbage collector frees, or counts of references, in every order."""

    def setUp(self):
        gc.disable()
        self.addCleanup(gc.enable)

    def tearDown(self):
        gc.collect()
        for batches in list(btrfswalk.streams.RUNNING):
            batches.end()
        self.assertEqual(btrfswalk.streams.RUNNING, {})

    def test_cycles(self):
        for (name, (make, _)), is_first in itertools.product(OPEN.items(), (False, True)):
            with self.subTest(name):
                fs = btrfswalk.FileSystem(IMAGE)
                cycle = [make(fs), fs] if is_first else [fs, make(fs)]
                cycle.append(cycle)
                del fs, cycle
                gc.collect()

    def test_larger_cycles(self):
        for order in orders("file", "directory", "items", "stream"):
            fs = btrfswalk.FileSystem(IMAGE)
            cycle = [OPEN[name][0](fs) for name in order] + [fs]
            cycle.append(cycle)
            del fs, cycle
            gc.collect()

    def test_counts(self):
        for order in orders("file", "items", "stream", "file system", "row"):
            fs = btrfswalk.FileSystem(IMAGE)
            held = {name: OPEN[name][0](fs) for name in order}
            del fs
            for name in order:
                OPEN[name][1](held[name])
                del held[name]

    def test_finalizers_that_use_it(self):
        """All objects work in a `__del__` of the same garbage, whichever runs first."""
        used = []
        for (name, (make, use)), count in itertools.product(OPEN.items(), (1, 3)):
            fs = btrfswalk.FileSystem(IMAGE)
            for _ in range(count):
                Holder(lambda fs, held, use=use: (quietly(use, held), used.append(fs.status)),
                       fs, make(fs))
            del fs
            gc.collect()
        self.assertEqual(len(used), 4 * len(OPEN))

    def test_finalizers_that_begin_something(self):
        left = []
        for make, use in OPEN.values():
            def begin(fs, make=make):
                left.append(make(fs))
            Holder(begin, btrfswalk.FileSystem(IMAGE))
            gc.collect()
            use(left[-1])
        left.clear()

    def test_resurrection(self):
        saved = []
        for make, use in OPEN.values():
            fs = btrfswalk.FileSystem(IMAGE)
            Holder(lambda *held: saved.append(held), fs, make(fs))
            del fs
            gc.collect()
            fs, held = saved.pop()
            quietly(use, held)  # the collector may have closed the object, as in any cycle
            self.assertEqual(fs.status.damages, 0)
            cycle = [fs, held]
            cycle.append(cycle)
            del fs, held, cycle
            gc.collect()

    def test_stored_exceptions(self):
        def work(make):
            fs = btrfswalk.FileSystem(IMAGE)
            held = make(fs)
            raise RuntimeError(held)

        def store(make):
            try:
                work(make)
            except RuntimeError as error:
                kept = error
            return kept is None

        for make, _ in OPEN.values():
            store(make)
            gc.collect()

    def test_messages_that_are_raised(self):
        """A message refers to the frames that raised it, and these refer to the file system."""
        def work():
            fs = btrfswalk.FileSystem(Path(os.environ["IMAGES"], "lost-leaf-first/dev1.img"))
            list(fs.paths())
            try:
                raise fs.messages[-1].error
            except btrfswalk.CorruptError:
                return [fs._handle]

        files = len(os.listdir("/proc/self/fd"))
        work()
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_forgotten(self):
        files = len(os.listdir("/proc/self/fd"))
        for make, _ in OPEN.values():
            make(btrfswalk.FileSystem(IMAGE))
        for batches in list(btrfswalk.streams.RUNNING):
            batches.end()
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_failed_openings(self):
        for _ in range(3):
            with self.assertRaises(btrfswalk.Error):
                btrfswalk.FileSystem(__file__, helpers="on")
            with self.assertRaises(btrfswalk.Error):
                btrfswalk.FileSystem()
            gc.collect()


class Closing(unittest.TestCase):
    def test_use_after_close(self):
        for name, (make, use) in OPEN.items():
            with self.subTest(name):
                fs = btrfswalk.FileSystem(IMAGE)
                held = make(fs)
                fs.close()
                if name == "table":
                    use(held)
                else:
                    with self.assertRaisesRegex(ValueError, "closed"):
                        use(held)
        self.assertEqual(len(btrfswalk.streams.RUNNING), 0)

    def test_files_are_closed(self):
        """Also if something that was open is still referred to."""
        files = len(os.listdir("/proc/self/fd"))
        held = []
        for make, _ in OPEN.values():
            with btrfswalk.FileSystem(IMAGE) as fs:
                held.append((fs, make(fs)))
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_sides_of_a_difference(self):
        for is_first in (False, True):
            before, after = btrfswalk.FileSystem(IMAGE), btrfswalk.FileSystem(IMAGE)
            stream = before.subvolume().diff(after.subvolume(), by_path=True)
            (before if is_first else after).close()
            quietly(list, stream)
            with self.assertRaisesRegex(ValueError, "closed"):
                before.subvolume().diff(after.subvolume())

    def test_threads(self):
        """Each thread has used its object before the file system is closed."""
        def work(fs, make, use, begun, failures):
            try:
                while True:
                    held = make(fs)
                    for _ in range(20):
                        use(held)
                    begun.set()
            except (ValueError, StopIteration) as failure:
                failures.append(failure)

        for name in ("file", "directory", "items", "extents", "stream", "subvolume", "entry"):
            for _ in range(5):
                fs, failures, events = btrfswalk.FileSystem(IMAGE), [], []
                threads = []
                for _ in range(3):
                    events.append(threading.Event())
                    threads.append(threading.Thread(
                        target=work, args=(fs, *OPEN[name], events[-1], failures)))
                    threads[-1].start()
                for event in events:
                    event.wait()
                fs.close()
                for thread in threads:
                    thread.join()
                self.assertEqual(len(failures), 3)
                for one in failures:
                    if isinstance(one, ValueError):
                        self.assertRegex(str(one), "closed")

    def test_one_object_in_threads(self):
        """Of an object that all threads use, one of them closes it."""
        def work(held, use, begun, failures):
            try:
                while True:
                    use(held)
                    begun.set()
            except ValueError as failure:
                failures.append(failure)

        for _ in range(10):
            with btrfswalk.FileSystem(IMAGE) as fs:
                file, failures = fs.open(FILE), []
                events = [threading.Event() for _ in range(3)]
                threads = [threading.Thread(target=work, args=(
                    file, lambda file: (file.size, file.pread(1 << 16, 0)), one, failures))
                    for one in events]
                for thread in threads:
                    thread.start()
                for event in events:
                    event.wait()
                file.close()
                for thread in threads:
                    thread.join()
                self.assertEqual(len(failures), 3)

    def test_opened_once(self):
        fs = btrfswalk.FileSystem(IMAGE)
        subvolume = fs.subvolume()
        with self.assertRaisesRegex(ValueError, "once"):
            fs.__init__(IMAGE)
        self.assertEqual(subvolume.path, "/")
        fs.close()
        with self.assertRaisesRegex(ValueError, "once"):
            fs.__init__(IMAGE)
        with self.assertRaisesRegex(ValueError, "closed"):
            subvolume.path  # noqa: B018
        with btrfswalk.FileSystem(IMAGE) as fs:
            stream, file, items = fs.walk(), fs.open(FILE), fs.items("fs")
            with self.assertRaisesRegex(ValueError, "once"):
                stream.__init__(fs, None, None)
            file.__init__(fs, fs.lookup(FILE)._place)
            items.__init__(fs, 1, ffi.NULL, ffi.NULL)
            next(stream), next(items)

    def test_never_opened(self):
        fs = btrfswalk.FileSystem.__new__(btrfswalk.FileSystem)
        with self.assertRaisesRegex(ValueError, "closed"):
            fs.status  # noqa: B018
        fs.close()
        for kind in (btrfswalk.File, btrfswalk.Items, btrfswalk.Stream):
            made = kind.__new__(kind)
            del made
        gc.collect()


class Processes(unittest.TestCase):
    """Objects of the parent in its child process, and when the interpreter ends."""

    def in_child(self, work):
        """Calls a function in a child process, which must return True."""
        child = os.fork()
        if not child:
            status = 1
            try:
                status = 0 if work() else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def refused(self, use, held):
        try:
            use(held)
        except ValueError as error:
            return "process" in str(error)
        return False

    def test_child_uses_it(self):
        fs = btrfswalk.FileSystem(IMAGE)
        for name, (make, use) in OPEN.items():
            held = make(fs)
            if name != "table":
                with self.subTest(name):
                    # An iterator may still have results that it need not ask for.
                    use = list if name == "stream" else use
                    self.in_child(lambda: self.refused(use, held))  # noqa: B023
            quietly(use, held)
        self.in_child(lambda: btrfswalk.FileSystem(IMAGE).stat(FILE).st_size > 0)
        fs.close()

    def test_child_frees_it(self):
        """The child closes or forgets what the parent goes on to use."""
        def free(is_closed):
            held = objects.pop()
            for one in reversed(held):
                if is_closed and hasattr(one, "close") and not hasattr(one, "send"):
                    one.close()
            del held, one
            gc.collect()
            return not btrfswalk.streams.RUNNING

        for is_closed in (False, True):
            fs = btrfswalk.FileSystem(IMAGE, helpers="on")
            objects = [[fs, *(make(fs) for make, _ in OPEN.values())]]
            del fs
            self.in_child(lambda: free(is_closed))  # noqa: B023
            for one, (_, use) in zip(objects[0][1:], OPEN.values()):
                use(one)
            objects[0][0].close()

    def test_child_of_a_busy_parent(self):
        """Locks that threads of the parent have when it forks are never released in the child."""
        fs, taken, done = btrfswalk.FileSystem(IMAGE), threading.Event(), threading.Event()
        file, stream = fs.open(FILE), open_stream(fs)

        def work():
            with file._opened, stream._lock:
                taken.set()
                done.wait()

        thread = threading.Thread(target=work)
        thread.start()
        taken.wait()

        def use():
            self.assertTrue(self.refused(lambda file: file.pread(1, 0), file))
            self.assertTrue(self.refused(list, stream))
            stream.close()
            file.close()
            fs.close()
            return True

        self.in_child(use)
        done.set()
        thread.join()
        fs.close()

    def test_ends(self):
        """The interpreter ends while everything is open."""
        head = ("import gc, os, sys, threading\n"
                "sys.path[:0] = [sys.argv[2]]\n"
                "from test_lifetime import OPEN, IMAGE, btrfswalk\n"
                "fs = btrfswalk.FileSystem(IMAGE)\n"
                "held = [make(fs) for make, _ in OPEN.values()]\n")
        for tail in (
                "", "held.append(held)", "del fs", "del held; gc.collect()", "fs.held = held",
                "threading.fs = fs, held", "sys.modules['gc'].held = held", "1 // 0",
                "streams = [fs.walk() for _ in range(8)]\n[next(one) for one in streams]",
                "sys.exit(3)",
                "thread = threading.Thread(target=lambda: next(held[-1].walk())); thread.start()",
                "child = os.fork()\nif child: assert os.waitpid(child, 0)[1] == 0",
                "import atexit; atexit.register(lambda: fs.stat('/'))",
                "class Late:\n    def __del__(self): fs.stat('/')\nlate = Late()"):
            # A child may inherit a locked allocator from the address sanitizer.
            if "fork" in tail and "asan" in os.environ.get("LD_PRELOAD", ""):
                continue
            with self.subTest(tail):
                run = subprocess.run([sys.executable, "-c", head + tail, "",
                                      os.path.dirname(__file__)], capture_output=True, text=True)
                self.assertIn(run.returncode, (0, 1, 3), run.stderr)
                if "1 // 0" not in tail:
                    self.assertEqual(run.stderr, "")

    def test_copies(self):
        with btrfswalk.FileSystem(IMAGE) as fs:
            for one in (fs, fs.subvolume(), fs.lookup(FILE), fs.open(FILE), fs.items("fs"),
                        fs.walk()):
                with self.assertRaises(TypeError):
                    pickle.dumps(one)
                with self.assertRaises(TypeError):
                    copy.deepcopy(one)
            for one in (fs, fs.walk(), fs.open(FILE), fs.items("fs")):
                with self.assertRaises(TypeError):
                    copy.copy(one)


def fail_in_a_pool(path):
    with btrfswalk.FileSystem(IMAGE) as fs:
        return fs.lookup(path).read_bytes()


class Errors(unittest.TestCase):
    def test_all_classes(self):
        hops = (btrfswalk.Hop("features/verify", "verify", 1 << 40),
                btrfswalk.Hop("fs", "", None))
        for kind in (btrfswalk.Error, *errors.CLASSES.values()):
            cause = kind("a cause", way=hops[1:])
            for made in (kind("message \udcff", system=5, way=hops, causes=(cause, cause)),
                         kind("message", 4711), cause):
                made.extra = "of a caller"
                for again in (*(pickle.loads(pickle.dumps(made, protocol))
                                for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
                              copy.copy(made), copy.deepcopy(made)):
                    self.assertIs(type(again), kind)
                    for name in ("message", "code", "errno", "strerror", "way", "layer", "volume",
                                 "address", "extra", "args"):
                        self.assertEqual(getattr(again, name), getattr(made, name), name)
                    self.assertEqual([(type(one), str(one), one.way) for one in again.causes],
                                     [(type(one), str(one), one.way) for one in made.causes])

    def test_real_ones(self):
        images = Path(os.environ["IMAGES"])
        with btrfswalk.FileSystem(images / "bad-data/dev1.img") as fs:
            with self.assertRaises(btrfswalk.CorruptError) as raised:
                fs.lookup("/bad").read_bytes()
            again = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual((str(again), again.layer, again.address, again.code),
                             (str(raised.exception), "features/verify", 13795328,
                              structures.ErrorCode.CORRUPT))
        with btrfswalk.FileSystem(images / "lost-leaf-first/dev1.img") as fs:
            list(fs.paths())
            message = pickle.loads(pickle.dumps(fs.messages[-1]))
            self.assertEqual(message.severity, structures.Severity.DAMAGE)
            self.assertEqual(str(message.error), str(fs.messages[-1].error))

    def test_process_pool(self):
        for method in ("fork", "spawn"):
            with concurrent.futures.ProcessPoolExecutor(
                    1, multiprocessing.get_context(method)) as pool:
                with self.assertRaisesRegex(btrfswalk.NotFoundError, "/nothing"):
                    pool.submit(fail_in_a_pool, "/nothing").result()
                self.assertTrue(pool.submit(fail_in_a_pool, FILE).result())

    def test_unknown_code(self):
        self.assertEqual(errors.Error("text", 4711).errno, 5)


class Arguments(unittest.TestCase):
    def setUp(self):
        self.fs = btrfswalk.FileSystem(IMAGE)
        self.addCleanup(self.fs.close)

    def test_rows_of_other_images(self):
        row = {"path": "/x", "type": "file", "subvolume": 77, "inode": 257}
        entry = WalkedEntry(self.fs, row)
        for use in (entry.stat, entry.open, entry.names, lambda: entry.subvolume, entry.is_file,
                    lambda: hash(entry), lambda: entry == self.fs.lookup("/"), entry.readlink,
                    lambda: next(entry.iterdir()), lambda: next(entry.extents())):
            with self.assertRaisesRegex(btrfswalk.NotFoundError, "77"):
                use()
        row.update(subvolume=5, inode=1 << 60)
        with self.assertRaises(btrfswalk.NotFoundError):
            WalkedEntry(self.fs, row).stat()

    def test_subvolumes_of_others(self):
        with btrfswalk.FileSystem(Path(os.environ["IMAGES"], "subvolumes/dev1.img")) as other:
            inner = max(other.subvolumes(), key=lambda one: one.id)
        for use in (lambda: self.fs.lookup("/", inner), lambda: self.fs.owners(1, subvolume=inner),
                    lambda: list(self.fs.walk(subvolume=inner)), lambda: self.fs.inode(256, inner)):
            with self.assertRaisesRegex(btrfswalk.NotFoundError, str(inner.id)):
                use()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.fs.subvolume().diff(inner)

    def test_nul(self):
        """C would see the end of the text there."""
        fs, nul = self.fs, FILE + "\0x"
        types = structures.fields_of("struct bw_fs_options")
        texts = [name for name in options.names("struct bw_fs_options") if name != "paths"
                 and types[name].cname in ("char *", "char * *")]
        self.assertIn("inside", texts)
        for use in (
                lambda: btrfswalk.FileSystem(str(IMAGE) + "\0x"),
                lambda: btrfswalk.FileSystem(os.fsencode(IMAGE) + b"\0x"),
                lambda: btrfswalk.FileSystem(IMAGE, nul),
                *(lambda name=name: btrfswalk.FileSystem(IMAGE, **{name: nul}) for name in texts),
                lambda: btrfswalk.FileSystem(IMAGE, inside=["/a", nul]),
                lambda: btrfswalk.FileSystem(IMAGE, graph={"file": nul}),
                lambda: btrfswalk.FileSystem(IMAGE, graph={"xlator_path": nul}),
                lambda: btrfswalk.FileSystem(IMAGE, graph={"edits": [{"text": nul}]}),
                lambda: btrfswalk.check_images(nul),
                lambda: Images(btrfswalk.Error("why"), nul),
                lambda: fs.lookup(nul), lambda: fs.lookup(nul.encode()),
                lambda: fs.lookup("/", nul), lambda: fs.subvolume(nul), lambda: fs.open(nul),
                lambda: fs.stat(nul), lambda: fs.iterdir(nul), lambda: fs.inode(256, nul),
                lambda: fs.walk(nul), lambda: fs.paths(nul),
                lambda: fs.walk(subvolume=nul), lambda: fs.walk(fields="size\0"),
                lambda: fs.walk(fields=["size\0"]),
                lambda: fs.walk(name=nul), lambda: fs.walk(name=["a", nul]),
                lambda: fs.walk(exclude=nul), lambda: fs.walk(**{"name\0x": "a"}),
                lambda: fs.items("fs\0x"), lambda: fs.items("fs", keys="256\0"),
                lambda: fs.versions(nul), lambda: fs.versions("/", subvolume=nul),
                lambda: fs.owners(1, subvolume=nul),
                lambda: fs.subvolume().lookup(nul), lambda: fs.subvolume().walk(nul),
                lambda: fs.subvolume().diff(fs.subvolume(), path=nul),
                lambda: fs.subvolume().send(name=nul)):
            with self.assertRaisesRegex(ValueError, "NUL"):
                use()
        with self.assertRaises(btrfswalk.Error):  # a passphrase may contain it: it has a length
            btrfswalk.FileSystem(Path(os.environ["CONTAINERS"], "luks.img"),
                                 keys=[{"bytes": b"secret\0"}])

    def test_lists(self):
        """An empty list is no structure, and a structure is no list."""
        for c_name in ("struct bw_fs_options", "struct bw_walk_options", "struct bw_graph_options",
                       "struct bw_graph_edit", "struct bw_check_options", "struct bw_diff_options",
                       "struct bw_send_options", "struct bw_versions_options", "struct bw_passkey",
                       "struct bw_owner_options", "struct bw_history_options",
                       "struct bw_rows_options", "struct bw_dump_options"):
            types = structures.fields_of(c_name)
            for name in options.names(c_name):
                for value in ([], [{}, {}]) if types[name].kind == "pointer" else ():
                    length = structures.count_of(name, types)
                    try:
                        made = options.fill(c_name, {name: value})
                    except (TypeError, AttributeError):
                        self.assertTrue(value or not length or types[name].item.cname in (
                            "char", "void"), (c_name, name))
                    else:
                        self.assertIsNotNone(length, (c_name, name))
                        self.assertEqual(getattr(made, length), len(value), (c_name, name))
        for given in ({"graph": []}, {"graph": [{}, {}]}, {"state": []}):
            with self.assertRaises(TypeError):
                btrfswalk.FileSystem(IMAGE, **given)
        for given in ({"graph": {}}, {"graph": [{}]}, {"graph": {"edits": []}}, {"keys": []},
                      {"keys": [{}]}, {"keys": [{"bytes": b""}]}, {"inside": []}, {"maps": []}):
            btrfswalk.FileSystem(IMAGE, **given).close()
        with self.assertRaises(btrfswalk.Error):
            btrfswalk.FileSystem()
        fs, subvolume = self.fs, self.fs.subvolume()
        for given in ({"edits": [{}]}, {"edits": {}}):
            with self.assertRaisesRegex(btrfswalk.UsageError, "no text"):
                btrfswalk.FileSystem(IMAGE, graph=given)
        quietly(lambda: list(fs.owners()))
        quietly(lambda: list(fs.owners((1 << 20, 0), (0, (1 << 64) - 1))))
        list(fs.versions(FILE, states=[]))
        self.assertEqual(list(fs.walk(types=(), name=[])), list(fs.walk(types=())))
        fs.generations(index=b"")
        for given in ({"sources": []}, {"sources": ()}, {"parent": None}):
            b"".join(subvolume.send(**given))


if __name__ == "__main__":
    unittest.main()
