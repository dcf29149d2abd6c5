#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The mount command: what programs see, damage, and how it ends. Needs /dev/fuse and, without root,
# fusermount3; tests/kernel/mount.py compares much more with the kernel's mount.
set -uo pipefail
. "$(dirname "$0")/common.bash"

mnt=$WORK/mnt
mkdir "$mnt"
"$ROOT/scripts/unpack-fixtures" "$WORK/fx" plain default-subvolume bad-data lost-leaf-first \
    > /dev/null
image=$WORK/fx/plain/dev1.img

expect "mount without a directory" 2 'no mount point' mount "$image"
if ! grep -q FUSE=1 "$BUILD/features"; then
    expect "mount without libfuse" 2 'built without libfuse 3' mount "$image" "$mnt"
    finish
fi
expect "a directory that is not there" 2 'cannot mount on' mount "$image" "$mnt/none"
expect "a file as directory" 2 'is not a directory' mount "$image" "$0"
expect "two directories" 2 'one DIR' mount "$image" "$mnt" "$mnt"
expect "a wrong user" 2 "invalid argument of --uid: me" mount --uid me "$image" "$mnt"

# mount OPTION... IMAGE: mounts in the background.
mount() {
    timeout 20 "$PROGRAM" mount --background "$@" "$mnt" 2> "$WORK/messages" < /dev/null
}
unmount() { fusermount3 -u "$@" "$mnt"; }
is_mounted() { grep -q " $mnt " /proc/mounts; }
is_unmounted() { ! is_mounted; }
gone() { soon is_unmounted; }

if ! why=$(have_mount "$image" "$mnt") || ! gone; then
    skip FUSE "the mount: $why"
    finish
fi
trap 'fusermount3 -uqz "$mnt"; rm -rf "$WORK"' EXIT
holds "mount succeeds" mount "$image"
# Each process in the background has a session of its own.
is "none has stayed in this session" "$(ps -eo pid=,sid=,args= | awk -v mnt="$mnt" \
    '/mount --background/ && index($0, mnt) && !/awk/ { print $1 == $2 }' | sort -u)" 1
expect "a second mount" 2 "something is mounted on $mnt already" mount "$image" "$mnt"

list() { zstd -qdc "$ROOT/fixtures/plain/$1.zst" | LC_ALL=C sort -z; }
holds "the mount lists the paths of the fixture" cmp <(list paths0) \
    <(cd "$mnt" && find . -type f -printf '/%P\0' | LC_ALL=C sort -z)
holds "files on the mount have the hashes of the fixture" cmp <(list sums0) \
    <(cd "$mnt" && find . -type f -printf '%P\0' | xargs -0 sha256sum -z |
        sed -z 's|  |  /|' | LC_ALL=C sort -z)
is "a file has its inode number" "$(stat -c %i "$mnt/docs/letters/01.txt")" 262
is "a symbolic link has its target" "$(readlink "$mnt/docs/symbolic-link")" ../source
is "a name that is not there" "$(stat "$mnt/nothing" 2>&1 | grep -c 'No such file')" 1
is "the mount is read-only" "$(touch "$mnt/new" 2>&1 | grep -c 'Read-only')" 1
holds "statfs reports blocks" test "$(stat -f -c %b "$mnt")" -gt 0
exec 3< "$mnt/top-file"
is "a busy mount is not unmounted" "$(unmount 2>&1 | grep -c busy)" 1
is "a busy mount can still be read" "$(cat <&3 | wc -c)" 11
exec 3<&-
holds "fusermount3 unmounts" unmount
holds "the mount ends" gone

# Subvolumes have inode numbers that no other file has.
holds "subvolumes are mounted" mount "$WORK/fx/default-subvolume/dev1.img"
is "files with the same number" "$(find "$mnt" -links 1 ! -type d -printf '%i\n' | sort |
    uniq -d | wc -l)" 0
unmount && gone
holds "one subvolume is mounted" \
    mount --subvol default --uid 12 --gid 34 "$WORK/fx/default-subvolume/dev1.img"
is "--uid and --gid set the owner" "$(stat -c %u:%g "$mnt")" 12:34
is "the top of a subvolume has inode 256" "$(stat -c %i "$mnt")" 256
unmount && gone

# The inode of the top directory is lost, and some of the names in it. Other files are readable.
holds "mount without the inode of the top directory" mount "$WORK/fx/lost-leaf-first/dev1.img"
is "a lost top directory has replaced attributes" "$(stat -c '%A %u' "$mnt")" 'drwx------ 0'
is "files below a lost top directory are listed" \
    "$(find "$mnt" -type f 2> "$WORK/errors" | wc -l)" 181
is "lost names are an error" "$(grep -c "$mnt.*: Input/output error" "$WORK/errors")" 1
unmount && gone

# In the foreground: damage, and a signal while it is in use.
"$PROGRAM" mount "$WORK"/fx/bad-data/dev1.img "$mnt" 2> "$WORK/err" < /dev/null &
program=$!
soon is_mounted
find "$mnt" -type f -exec cat {} + > "$WORK/all" 2> "$WORK/errors"
is "lost data are I/O errors" "$(grep -vc 'Input/output error' "$WORK/errors")" 0
holds "some data are lost" test -s "$WORK/errors"
have lsattr && is "lsattr prints flags of a file" \
    "$(lsattr "$mnt/good-zstd" | grep -c '^--------c')" 1
holds "bad data are reported" grep -qi 'checksum' "$WORK/err"
exec 3< "$mnt"
kill -TERM $program
wait $program
is "mount ends with status 1 after damage" $? 1
holds "a signal unmounts a busy mount" gone
exec 3<&-
finish
