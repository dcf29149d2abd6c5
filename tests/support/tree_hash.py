#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The hash of `sum --tree` for a directory of this machine, from the description in docs/export.md.

tree_hash.py DIR
"""
import hashlib
import os
import stat
import sys

LETTERS = {stat.S_IFREG: b'f', stat.S_IFDIR: b'd', stat.S_IFLNK: b'l', stat.S_IFBLK: b'b',
           stat.S_IFCHR: b'c', stat.S_IFIFO: b'p', stat.S_IFSOCK: b's'}


def content_of(path, letter, status):
    if letter == b'f':
        with open(path, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest().encode()
    if letter == b'l':
        return os.readlink(path)
    if letter in b'bc':
        return b'%d:%d' % (os.major(status.st_rdev), os.minor(status.st_rdev))
    return b''


def record_of(path, name):
    status = os.lstat(path)
    letter = LETTERS[stat.S_IFMT(status.st_mode)]
    members = (name, letter, b'' if letter == b'l' else b'%04o' % (status.st_mode & 0o7777),
               b'%d' % status.st_uid, b'%d' % status.st_gid,
               b'%d.%09d' % divmod(status.st_mtime_ns, 10 ** 9), content_of(path, letter, status))
    record = b''.join(member + b'\0' for member in members)
    for xattr in sorted(map(os.fsencode, os.listxattr(path, follow_symlinks=False))):
        if not xattr.startswith((b'trusted.', b'btrfs.')):
            value = os.getxattr(path, xattr, follow_symlinks=False)
            record += b'%b\0%d\0%b' % (xattr, len(value), value)
    return record


def tree_hash(top):
    sums = [0] * 1024
    for folder, folders, files in os.walk(top):
        for path in (os.path.join(folder, name) for name in folders + files):
            numbers = hashlib.shake_128(record_of(path, os.path.relpath(path, top))).digest(2048)
            for i in range(1024):
                sums[i] += int.from_bytes(numbers[2 * i:2 * i + 2], 'little')
    state = b''.join((number % 65536).to_bytes(2, 'little') for number in sums)
    return hashlib.sha256(state).hexdigest()


print(tree_hash(os.fsencode(sys.argv[1])))
