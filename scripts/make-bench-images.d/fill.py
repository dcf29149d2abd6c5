# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the files of the images of scripts/make-bench-images: fill.py KIND MOUNTPOINT [NUMBER]."""
import fcntl, hashlib, os, random, struct, sys

SUBVOL_CREATE = 0x5000940e      # BTRFS_IOC_SUBVOL_CREATE
SNAP_CREATE = 0x50009417        # BTRFS_IOC_SNAP_CREATE_V2
SYNC = 0x9408                   # BTRFS_IOC_SYNC: of this file system only

def content(number):
    """Some 20 to 200 bytes, short enough to be stored inline."""
    line = b"file number %d\n" % number
    return (line * 16)[:20 + number * 37 % 181]

def put(name, number, dir_fd):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644,
                 dir_fd=dir_fd)
    os.write(fd, content(number))
    os.close(fd)

def opendir(path):
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)

def skeleton(top, outer, inner):
    """The same directories as in tree(), made before any file."""
    for i in range(outer):
        for j in range(inner):
            os.makedirs("%s/section-%03d/group-%03d" % (top, i, j))

def tree(top, outer, inner, files):
    """Makes outer * inner directories with `files` files in each."""
    number = 0
    for i in range(outer):
        for j in range(inner):
            path = "%s/section-%03d/group-%03d" % (top, i, j)
            os.makedirs(path, exist_ok=True)
            fd = opendir(path)
            for _ in range(files):
                put("item-%07d.txt" % number, number, fd)
                number += 1
            os.close(fd)

def longnames(top):
    """Makes files with four names, each in another directory."""
    dirs = []
    for i in range(200):
        path = "%s/directory-with-long-names-%03d" % (top, i)
        os.mkdir(path)
        dirs.append(opendir(path))
    for number in range(50000):
        first = None
        for link in range(4):
            stem = "%d-%d-a-rather-long-file-name-" % (number, link)
            name = (stem * 9)[:100 + (number * 4 + link) * 29 % 101]
            here = dirs[(number + link * 50) % 200]
            if first is None:
                put(name, number, here)
                first = (name, here)
            else:
                os.link(first[0], name, src_dir_fd=first[1], dst_dir_fd=here)

def subvolumes(top, count):
    """Subvolumes, a thousand to a directory."""
    for i in range(0, count, 1000):
        path = "%s/set-%04d" % (top, i // 1000)
        os.mkdir(path)
        fd = opendir(path)
        for number in range(i, min(i + 1000, count)):
            name = b"subvolume-%06d" % number
            arguments = bytearray(struct.pack("=q4088s", 0, name))
            fcntl.ioctl(fd, SUBVOL_CREATE, arguments)
            put(name + b"/file", number, fd)
        os.close(fd)

def history(top, snapshots):
    """Makes a subvolume with small changes, and a snapshot after each change."""
    fcntl.ioctl(opendir(top), SUBVOL_CREATE, bytearray(struct.pack("=q4088s", 0, b"origin")))
    tree(top + "/origin", 20, 30, 100)
    fcntl.ioctl(opendir(top), SYNC)
    origin, place = opendir(top + "/origin"), opendir(top)
    for number in range(snapshots):
        item = number * 15485863 % 60000
        os.chmod("%s/origin/section-%03d/group-%03d/item-%07d.txt" %
                 (top, item // 3000, item // 100 % 30, item), 0o600 | number % 64)
        fcntl.ioctl(place, SNAP_CREATE, bytearray(
            struct.pack("=qQQ32x4040s", origin, 0, 0, b"snapshot-%05d" % number)))

def noise(key, length):
    """Returns bytes that cannot be compressed."""
    return hashlib.shake_128(key).digest(length)

WORDS = [noise(b"word %d" % i, 1 + i % 7).hex().encode() for i in range(256)]

def piece(number, at, length, compressible):
    """Returns contents: noise, or words between noise, which compress to half of their size."""
    key = b"%d at %d" % (number, at)
    if not compressible:
        return noise(key, length)
    random = noise(key, length // 2 + 4)
    text = b"".join([b"%b%b " % (random[i:i + 4], WORDS[random[i]])
                     for i in range(0, len(random), 4)])
    return text[:length]

def contents(top):
    """The same files twice, the second time compressed; of several sizes, one amid the other."""
    number = 0
    for half in ("plain", "packed"):
        os.mkdir("%s/%s" % (top, half))
        if half == "packed":
            os.setxattr("%s/%s" % (top, half), "btrfs.compression", b"zstd")
        for i in range(96):
            path = "%s/%s/folder-%02d" % (top, half, i)
            os.mkdir(path)
            sizes = [j * 16411 % 32768 + 1 for j in range(i * 128, i * 128 + 128)]
            if i % 3 == 0:
                sizes.append(2 << 20)
            if i % 8 == 4:
                sizes.append(24 + i * 17 // 92 << 20)
            if i % 48 == 30:
                sizes.append(192 << 20)
            for size in sizes:
                with open("%s/file-%05d" % (path, number), "wb") as file:
                    for at in range(0, size, 1 << 20):
                        file.write(piece(number, at, min(1 << 20, size - at), half == "packed"))
                number += 1

def tenth(top):
    """The directories of the million, with a tenth of its files."""
    number = 0
    for i in range(100):
        for j in range(200):
            path = "%s/section-%03d/group-%03d" % (top, i, j)
            os.makedirs(path)
            for _ in range(5):
                with open("%s/item-%07d.txt" % (path, number), "w") as file:
                    file.write("file number %d\n" % number)
                number += 1

def changes(top):
    """Makes five kinds of changes in turn: longer, shorter, deleted, renamed, new."""
    for i, number in enumerate(random.Random(5).sample(range(1000000), 1000)):
        group = number // 50
        path = "%s/section-%03d/group-%03d/item-%07d.txt" % (
            top, group // 200, group % 200, number)
        if i % 5 == 0:
            open(path, "a").write("changed")
        elif i % 5 == 1:
            os.truncate(path, 3)
        elif i % 5 == 2:
            os.unlink(path)
        elif i % 5 == 3:
            os.rename(path, path + ".renamed")
        else:
            open(path + ".new", "w").write("new")

def directories(top):
    """A million directories, a hundred in each."""
    for i in range(100):
        for j in range(100):
            path = "%s/section-%03d/group-%03d" % (top, i, j)
            os.makedirs(path)
            fd = opendir(path)
            for k in range(99):
                os.mkdir("directory-%03d" % k, dir_fd=fd)
            os.close(fd)

def names(top):
    """120,000 files with data outside of the tree, and 61 snapshots of them with a change each."""
    fcntl.ioctl(opendir(top), SUBVOL_CREATE, bytearray(struct.pack("=q4088s", 0, b"origin")))
    origin, place = None, opendir(top)
    for number in range(120000):
        path = "%s/origin/group-%04d" % (top, number // 100)
        os.makedirs(path, exist_ok=True)
        with open("%s/item-%06d" % (path, number), "wb") as file:
            file.write(b"x" * 4096)
    fcntl.ioctl(opendir(top), SYNC)
    origin = opendir(top + "/origin")
    for i in range(61):
        fcntl.ioctl(place, SNAP_CREATE, bytearray(
            struct.pack("=qQQ32x4040s", origin, 0, 0, b"snapshot-%05d" % i)))
        for number in range(i, 120000, 4000):
            path = "%s/origin/group-%04d" % (top, number // 100)
            with open("%s/item-%06d" % (path, number), "wb") as file:
                file.write(b"changed")

def mixed(top):
    """80,000 small files, 160 MiB of data, half of it compressed, and 4 snapshots."""
    fcntl.ioctl(opendir(top), SUBVOL_CREATE, bytearray(struct.pack("=q4088s", 0, b"origin")))
    tree(top + "/origin", 20, 100, 40)
    for half in ("plain", "packed"):
        path = "%s/origin/%s" % (top, half)
        os.mkdir(path)
        if half == "packed":
            os.setxattr(path, "btrfs.compression", b"zstd")
        for number in range(40):
            with open("%s/file-%02d" % (path, number), "wb") as file:
                for at in range(2):
                    file.write(piece(number, at, 1 << 20, half == "packed"))
    fcntl.ioctl(opendir(top), SYNC)
    origin, place = opendir(top + "/origin"), opendir(top)
    for i in range(4):
        fcntl.ioctl(place, SNAP_CREATE, bytearray(
            struct.pack("=qQQ32x4040s", origin, 0, 0, b"snapshot-%d" % i)))
        for group in range(100):
            path = "%s/origin/section-%03d/group-%03d" % (top, i, group)
            os.unlink("%s/item-%07d.txt" % (path, i * 4000 + group * 40))
            with open(path + "/new", "wb") as file:
                file.write(b"changed" * 1000)
        fcntl.ioctl(opendir(top), SYNC)

kind, top = sys.argv[1], sys.argv[2]
if kind == "million":
    skeleton(top, 100, 200)
    tree(top, 100, 200, 50)
elif kind == "nested":
    tree(top, 100, 200, 50)
elif kind == "snapshots":
    tree(top, 40, 50, 50)
elif kind == "history":
    history(top, int(sys.argv[3]))
elif kind == "longnames":
    longnames(top)
elif kind == "subvolumes":
    subvolumes(top, int(sys.argv[3]))
elif kind == "contents":
    contents(top)
else:
    {"tenth": tenth, "changes": changes, "directories": directories, "names": names,
     "mixed": mixed}[kind](top)
