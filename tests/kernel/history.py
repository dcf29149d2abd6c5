# SPDX-License-Identifier: GPL-2.0-or-later
"""history - random work on a file system of random features

A history begins with mkfs.btrfs with random features, profiles and checksums on one to five
devices, mounts with random options, and works on the file system: writes of all kinds, links,
renames, snapshots, quotas, fs-verity, balances that are paused, devices that come and go. It ends
with an unmount, or with a copy of the devices while the file system is frozen. The same seed gives
the same history, except for what depends on timing.
"""
import ctypes
import errno
import fcntl
import os
import random
import shutil
import struct
import subprocess

import kernel
from kernel import run

PROFILES = {1: ["single", "dup"], 2: ["single", "dup", "raid0", "raid1"],
            3: ["raid1c3", "raid5", "raid1", "raid0"],
            4: ["raid10", "raid6", "raid5", "raid1c4", "raid1c3"],
            5: ["raid6", "raid10", "raid5", "single"]}
# Without flushoncommit: with it, Linux 6.18 can stop for ever in a clone of inline data, if a
# commit begins at the same time.
OPTIONS = ["compress=zstd", "compress=lzo", "compress=zlib", "compress-force=zstd", "nodatasum",
           "nodatacow", "autodefrag",
           "max_inline=0", "max_inline=4096", "commit=1", "noatime",
           "thread_pool=2", "discard=async"]

REFUSALS = (errno.EPERM, errno.ENOENT, errno.EAGAIN, errno.EACCES, errno.EEXIST, errno.EXDEV,
            errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ETXTBSY, errno.EFBIG, errno.ENOSPC,
            errno.EROFS, errno.EMLINK, errno.ENAMETOOLONG, errno.ENOTEMPTY, errno.ELOOP,
            errno.EOPNOTSUPP, errno.EDQUOT)


class History(kernel.FileSystem):
    """A file system, and random work on it. `made` and `options` tell how it was made and mounted,
    `ending` how it was left."""

    def __init__(self, seed, directory):
        super().__init__(directory)
        self.random = random.Random(seed)
        self.subvolumes = [""]
        self.held = []
        self.serial = 0
        self.made = self.ending = ""
        self.options = []

    def __str__(self):
        words = f"{self.made} -o {','.join(self.options)}"
        return f"{words}; {self.ending}" if self.ending else words

    def image(self):
        return self.add_image(self.random.choice([1 << 30, 768 << 20, 1536 << 20]))

    def make(self):
        r = self.random
        devices = [self.image() for _ in range(r.choice([1, 1, 1, 2, 3, 4, 5]))]
        data = r.choice(PROFILES[len(devices)])
        meta = r.choice(PROFILES[len(devices)])
        node = r.choice(["4096", "16384", "16384", "16384", "65536"])
        command = ["mkfs.btrfs", "-q", "-f", "-n", node, "--csum",
                   r.choice(["crc32c", "crc32c", "xxhash", "sha256", "blake2"])]
        mixed = len(devices) == 1 and r.random() < 0.1
        if mixed:
            command[4] = "4096"
            command += ["--mixed", "-d", data, "-m", data]
        else:
            command += ["-d", data, "-m", meta]
        features = [f for f in ("^no-holes", "^extref", "^skinny-metadata") if r.random() < 0.15]
        if features:
            command += ["-O", ",".join(features)]
        runtime = [f for f in ("^free-space-tree", "quota") if r.random() < 0.25]
        if runtime:
            command += ["-R", ",".join(runtime)]
        self.made = " ".join(command)
        run(*command, *devices, check=True)
        self.options = r.sample(OPTIONS, r.choice([0, 1, 1, 2, 3]))
        if "^free-space-tree" in runtime:
            self.options.append(r.choice(["space_cache=v1", "space_cache=v1", "nospace_cache"]))
        elif mixed:
            self.options = [o for o in self.options if not o.startswith("discard")]
        self.attach()
        if "quota" not in runtime and r.random() < 0.3:
            self.simple_quota()

    def attach(self):
        """Mounts with the options of this history, or without those that do not fit together."""
        try:
            super().attach(*self.options)
        except kernel.NotMade:
            super().attach()

    def files(self, kind="f"):
        where = self.path(self.random.choice(self.subvolumes))
        found = []
        for top, directories, names in os.walk(where):
            found += [os.path.join(top, n) for n in (names if kind == "f" else directories)]
            if len(found) > 300:
                break
        found = [f for f in found if os.path.isfile(f)
                 and not os.path.islink(f)] if kind == "f" else found + [where]
        return found

    def some(self, kind="f"):
        found = self.files(kind)
        return self.random.choice(found) if found else None

    def fresh(self):
        self.serial += 1
        length = self.random.choice([4, 4, 20, 200])
        return os.path.join(self.some("d"),
                            f"{self.serial}" + self.random.choice("aé x'") * (length // 4))

    # The steps, one function each.
    def write(self):
        size = self.random.choice([0, 10, 1000, 4096, 5000, 70000, 300000, 3 << 20])
        with open(self.fresh(), "wb") as file:
            file.write(self.random.randbytes(min(size, 65536)) * (size // 65536 + 1)
                       if self.random.random() < 0.5 else b"text " * (size // 5))
            if self.random.random() < 0.1:
                os.fsync(file.fileno())

    def many(self):
        directory = self.fresh()
        os.mkdir(directory)
        for i in range(self.random.choice([20, 300, 1000])):
            with open(os.path.join(directory, f"file{i}"), "w") as file:
                file.write("x" * (i % 3000))

    def overwrite(self):
        if path := self.some():
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                for _ in range(self.random.choice([1, 5, 40])):
                    file.seek(self.random.randrange(size + 10000))
                    file.write(self.random.randbytes(self.random.choice([1, 4096, 20000])))
                    if self.random.random() < 0.3:
                        file.flush()
                        os.fsync(file.fileno())

    def allocate(self):
        if path := self.some():
            mode = self.random.choice([[], ["-n"], ["-p"], ["-z"], ["-c"], ["-i"]])
            offset = 4096 * self.random.randrange(50)
            run("fallocate", *mode, "-o", str(offset), "-l",
                str(4096 * self.random.choice([1, 3, 40])), path)

    def truncate(self):
        if path := self.some():
            os.truncate(path, self.random.choice([0, 100, 4096, 50000, 1 << 22]))

    def clone(self):
        if path := self.some():
            run("cp", "--reflink=always", path, self.fresh())

    def clone_range(self):
        source, target = self.some(), self.some()
        if source and target:
            run("xfs_io", "-c",
                f"reflink {source} {4096 * self.random.randrange(4)} "
                f"{4096 * self.random.randrange(9)} 8192", target)

    def link(self):
        if path := self.some():
            for _ in range(self.random.choice([1, 3, 400])):
                try:
                    os.link(path, self.fresh())
                except OSError:
                    return

    def rename(self):
        path = self.some(self.random.choice("fd"))
        if path and path != self.path():
            try:
                os.rename(path, self.fresh())
            except OSError:
                pass

    def remove(self):
        for _ in range(self.random.choice([1, 10])):
            if path := self.some():
                os.unlink(path)

    def remove_tree(self):
        path = self.some("d")
        if path and path != self.path() and self.random.random() < 0.5:
            shutil.rmtree(path, ignore_errors=True)
            self.forget()

    def keep_open(self):
        if path := self.some():
            self.held.append(open(path, "rb"))
            os.unlink(path)

    def special(self):
        path = self.fresh()
        kind = self.random.randrange(4)
        os.mkdir(path) if kind == 0 else os.symlink("t" * self.random.choice([3, 200, 3000]),
                                                    path) if kind == 1 else \
            os.mkfifo(path) if kind == 2 else os.mknod(path, 0o20644, os.makedev(5, 1))

    def attribute(self):
        if path := self.some():
            for i in range(self.random.choice([1, 4, 30])):
                try:
                    os.setxattr(path, f"user.name{i}",
                                self.random.randbytes(self.random.choice([0, 10, 500, 3000])))
                except OSError:
                    return

    def flag(self):
        if path := self.some("d"):
            run("chattr", self.random.choice(["+C", "-C", "+c", "+A"]), path)
        if path := self.some():
            run("btrfs", "property", "set", path, "compression",
                self.random.choice(["zstd", "lzo", "zlib", "none"]))

    def subvolume(self):
        path = self.fresh()
        if run("btrfs", "subvolume", "create", path).returncode == 0:
            self.subvolumes.append(os.path.relpath(path, self.mount))

    def snapshot(self):
        path = self.fresh()
        source = self.path(self.random.choice(self.subvolumes))
        if run("btrfs", "subvolume", "snapshot", *self.random.choice([[], ["-r"]]), source,
               path).returncode == 0:
            self.subvolumes.append(os.path.relpath(path, self.mount))

    def forget(self):
        self.subvolumes = [s for s in self.subvolumes if os.path.isdir(self.path(s))
                           and os.stat(self.path(s)).st_ino == 256]

    def drop(self):
        if len(self.subvolumes) > 1:
            run("btrfs", "subvolume", "delete", self.path(self.random.choice(self.subvolumes[1:])))
            self.forget()

    def balance(self):
        kind = self.random.choice(["-d", "-m", "-ddevid=1", "-musage=60"])
        process = subprocess.Popen(["btrfs", "balance", "start", "-f", kind, self.mount],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(self.random.choice([0.05, 0.3, 20]))
        except subprocess.TimeoutExpired:
            run("btrfs", "balance", self.random.choice(["pause", "cancel"]), self.mount)
            process.wait()

    def convert(self):
        profiles = PROFILES[min(len(self.loops), 5)]
        kind = self.random.choice("dm")
        run("btrfs", "balance", "start", "-f",
            f"-{kind}convert={self.random.choice(profiles)},soft", self.mount)

    def device(self):
        if len(self.loops) < 5:
            added = run("btrfs", "device", "add", "-f", "-K", self.image(), self.mount)
            if added.returncode != 0:  # e.g. while a balance is paused
                self.drop_image(-1)

    def replace(self):
        number = self.random.randrange(len(self.loops))
        new = self.image()
        done = run("btrfs", "replace", "start", "-B", "-f", str(number + 1), new, self.mount)
        self.drop_image(number if done.returncode == 0 else -1)

    def shrink(self):
        run("btrfs", "filesystem", "resize", f"1:{self.random.choice(['-64m', '-200m', 'max'])}",
            self.mount)

    def quota(self):
        run("btrfs", "quota", self.random.choice(["enable", "enable", "disable", "rescan"]),
            self.mount)
        if self.random.random() < 0.5:
            run("btrfs", "qgroup", "create", f"1/{self.random.randrange(5)}", self.mount)
            run("btrfs", "qgroup", "assign", f"0/{self.random.choice([5, 256, 257])}",
                f"1/{self.random.randrange(5)}", self.mount)

    def simple_quota(self):
        """BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, which btrfs-progs 6.2 do not support."""
        self.call(self.mount, 0xc0109428, struct.pack("=QQ", 4, 0))

    def verity(self):
        """FS_IOC_ENABLE_VERITY with SHA-256 or SHA-512, blocks of 1 or 4 KiB, and a salt."""
        if path := self.some():
            salt = self.random.randbytes(self.random.choice([0, 4, 32]))
            buffer = bytearray(salt + b" ")
            address = (ctypes.c_char * len(buffer)).from_buffer(buffer)
            self.call(path, 0x40806685,
                      struct.pack("=IIIIQIIQ88x", 1, self.random.choice([1, 2]),
                                  self.random.choice([4096, 4096, 1024]), len(salt),
                                  ctypes.addressof(address), 0, 0, 0))

    @staticmethod
    def call(path, request, argument):
        file = os.open(path, os.O_RDONLY)
        try:
            fcntl.ioctl(file, request, argument)
        except OSError:
            pass
        finally:
            os.close(file)

    def defragment(self):
        if path := self.some():
            run("btrfs", "filesystem", "defragment", self.random.choice(["-czstd", "-f", "-clzo"]),
                path)

    def swap(self):
        path = self.fresh()
        open(path, "w").close()
        run("chattr", "+C", path)
        run("fallocate", "-l", "2m", path)
        run("mkswap", path)

    def send(self):
        sources = [s for s in self.subvolumes[1:]
                   if run("btrfs", "property", "get", self.path(s),
                          "ro").stdout.strip() == "ro=true"]
        if sources:
            directory = self.fresh()
            os.mkdir(directory)
            subprocess.run(["sh", "-c",
                            'btrfs send -q "$1" 2> /dev/null |'
                            ' btrfs receive -q "$2" > /dev/null 2>&1', "sh",
                            self.path(self.random.choice(sources)), directory])
            self.subvolumes += [os.path.relpath(os.path.join(directory, n), self.mount)
                                for n in os.listdir(directory)]
            self.forget()

    def remount(self):
        self.unmount()
        self.attach()

    def close(self):
        for file in self.held:
            file.close()
        self.held = []

    def unmount(self):
        self.close()
        super().unmount()

    def usual_steps(self):
        return [self.write] * 6 + [self.overwrite] * 5 + [
            self.many, self.allocate, self.allocate, self.truncate, self.clone, self.clone,
            self.clone_range, self.link, self.rename, self.rename, self.remove, self.remove,
            self.special, self.attribute, self.flag, self.subvolume, self.snapshot, self.snapshot,
            self.drop, self.sync, self.remove_tree, self.defragment, self.keep_open, self.verity]

    def rare_steps(self):
        return [self.balance, self.balance, self.convert, self.device, self.replace, self.shrink,
                self.quota, self.simple_quota, self.send, self.remount, self.swap]

    def attempt(self, step):
        """A step that the kernel may refuse, because a file system is full or read-only, or a name
        is too long."""
        try:
            step()
        except shutil.Error:
            pass
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            self.forget()

    def work(self):
        usual, rare = self.usual_steps(), self.rare_steps()
        for _ in range(self.random.choice([5, 30, 100, 250])):
            self.attempt(self.random.choice(rare if self.random.random() < 0.06 else usual))

    def end(self):
        """Leaves the images in the state in which they are read: after an unmount, or copied while
        the file system was mounted."""
        if self.random.random() < 0.3:
            self.ending = "frozen"
            run("fsfreeze", "-f", self.mount)
            copies = kernel.copy_images(self.images, os.path.join(self.directory, "frozen"))
            run("fsfreeze", "-u", self.mount)
            self.detach()
            for path, copy in zip(self.images, copies):
                os.replace(copy, path)
        else:
            self.ending = "unmounted"
            if self.random.random() < 0.3:
                self.drop()
                self.ending = "unmounted while subvolumes are deleted"
            self.detach()
