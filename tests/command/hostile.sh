#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Attacks: names that lead out of the target, a user who replaces directories by symbolic links
# while root extracts, images that shrink, servers with wrong sizes, and mounts of images that were
# changed by someone who recomputes the checksums.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/gate.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain || exit 1
plain=$BUILD/fixtures/plain/dev1.img
have python3 || { skip python3 "hostile inputs"; finish; }

patch() { # OLD NEW: of the same length
    python3 "$ROOT/tests/support/patch_image.py" "$WORK/names" \
        "$(printf %s "$1" | od -An -tx1 | tr -d ' \n')" \
        "$(printf %s "$2" | od -An -tx1 | tr -d ' \n')"
}

# ends STATUS: the program must have ended by itself: not by a signal, and not by a timeout.
ends() { [ "$1" -lt 100 ] || { echo "status $1"; tail -n 3 "$WORK/err"; return 1; }; }

names() {
    cp --sparse=always "$plain" "$WORK/names"
    patch top-file ../../up
    patch youngest ../../et
    patch younger /tmp/pw
    mkdir -p "$WORK/a/b"
    "$PROGRAM" extract -C "$WORK/a/b/dest" "$WORK/names" > /dev/null 2> "$WORK/err"
    is "names that lead elsewhere: status" $? 1
    holds "names that lead elsewhere are reported" \
        grep -q 'an entry has an invalid name' "$WORK/err"
    is "each invalid name is reported once" "$(sort "$WORK/err" | uniq -d)" ""
    is "nothing is written outside of the target" \
        "$(find "$WORK/a" -mindepth 1 -maxdepth 2 | LC_ALL=C sort)" \
        "$WORK/a/b
$WORK/a/b/dest"
    holds "files with good names are extracted" [ -d "$WORK/a/b/dest/docs" ]
    "$PROGRAM" tar "$WORK/names" 2> /dev/null > "$WORK/tar"
    tar -tPf "$WORK/tar" > "$WORK/members"
    holds "an archive has the files with good names" grep -q '^docs/letters/01.txt$' "$WORK/members"
    is "no member of an archive leads elsewhere" \
        "$(grep -cE '(^|/)\.\.(/|$)|^/' "$WORK/members")" 0
}

# A local user who owns the folder replaces each directory by a symbolic link to another place, and
# back again.
swaps() {
    local as=() swapping=() folder
    cat > "$WORK/swap.c" << 'END'
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
    int folder = count > 1 ? open(words[1], O_RDONLY | O_DIRECTORY) : -1;
    for (;;)
        for (int i = 2; i < count; i++)
            syscall(SYS_renameat2, folder, words[i], folder, "link", RENAME_EXCHANGE);
}
END
    holds "the swapper is built" "${COMPILER[@]}" -D_GNU_SOURCE -o "$WORK/swap" "$WORK/swap.c"
    mkdir "$WORK/elsewhere" "$WORK/swapped"
    (cd "$WORK/elsewhere" && for folder in docs kinds names many; do
        mkdir -m 700 $folder
    done && mkdir letters && echo secret > file)
    chmod 755 "$WORK"
    if [ "$(id -u)" -eq 0 ] && have setpriv; then
        as=(setpriv --reuid=1000 --regid=1000 --clear-groups)
    fi
    list() { find "$WORK/elsewhere" -printf '%p %m %U:%G %C@ %l\n' | LC_ALL=C sort; }
    local before round
    before=$(list)
    for round in on off; do
        rm -rf "$WORK/swapped"
        mkdir "$WORK/swapped"
        ln -s "$WORK/elsewhere" "$WORK/swapped/link"
        [ ${#as[@]} -eq 0 ] || chown -h 1000:1000 "$WORK/swapped" "$WORK/swapped/link"
        "${as[@]}" "$WORK/swap" "$WORK/swapped" docs kinds names many collisions &
        swapping=$!
        timeout 60 "$PROGRAM" extract --preserve --sandbox=$round \
            -C "$WORK/swapped" "$plain" > /dev/null \
            2> "$WORK/err"
        ends $? > "$WORK/why" || fail "an extraction beside a swapper: $(cat "$WORK/why")"
        { kill $swapping && wait $swapping; } 2> /dev/null
    done
    holds "links that come and go lead nowhere" diff <(echo "$before") <(list)
}

shrinking() {
    local command running status
    for command in sum "tar -f $WORK/shrunk.tar" check "extract -C $WORK/shrunk"; do
        cp --sparse=always "$plain" "$WORK/image"
        gate device-1,after=5
        timeout 60 "$PROGRAM" $command "${gate[@]}" "$WORK/image" > /dev/null 2> "$WORK/err" &
        running=$!
        at_gate
        truncate -s 20M "$WORK/image"
        open_gate
        wait $running
        status=$?
        holds "$command of an image that shrinks" ends $status
        holds "$command of an image that shrinks fails" [ $status -ne 0 ]
    done
}

# Invalid sizes; test_storage_nbd has servers that send nonsense or do not answer.
servers() {
    local size
    for size in 0 65536 69631 9223372036854775807; do
        # with names of its own, which it may remove after the next one has started
        nbdkit -U "$WORK/server$size" -P "$WORK/$size.pid" -r --filter=truncate file "$plain" \
            truncate=$size > /dev/null 2>&1 ||
            { fail "nbdkit does not serve $size bytes"; continue; }
        timeout 30 "$PROGRAM" --timeout 2s "nbd+unix:///?socket=$WORK/server$size" > /dev/null \
            2> "$WORK/err"
        holds "a server that has $size bytes" ends $?
        kill "$(cat "$WORK/$size.pid")"
    done
}

# All file operations on a mount.
use_mount() {
    timeout 20 find "$1" -ls
    timeout 20 find "$1" -type f -exec cat {} +
    timeout 20 find "$1" -type l -exec readlink {} +
    ! have getfattr || timeout 20 getfattr -Rhd -m - "$1"
    stat -f "$1"
}

mounts() {
    local seed why
    mnt=$WORK/mnt
    mkdir "$mnt"
    is_unmounted() { ! grep -q " $mnt " /proc/mounts; }
    if ! why=$(have_mount "$plain" "$mnt") || ! soon is_unmounted; then
        skip FUSE "the mount: $why"
        return
    fi
    trap 'fusermount3 -uqz "$mnt"; rm -rf "$WORK"' EXIT
    for seed in $(seq 6 | sweep 3); do
        cp --sparse=always "$plain" "$WORK/image"
        python3 "$ROOT/tests/support/mutate_image.py" "$WORK/image" $seed 6
        timeout 100 "$PROGRAM" mount "$WORK/image" "$mnt" > /dev/null 2> "$WORK/err" &
        local mounting=$!
        soon grep -q " $mnt " /proc/mounts
        use_mount "$mnt" > /dev/null 2>&1
        fusermount3 -uq "$mnt"
        wait $mounting
        holds "a mount of a damaged image, seed $seed" ends $?
    done
}

names
swaps
shrinking
if grep -q NBD=1 "$BUILD/features" && have nbdkit; then servers; else skip nbdkit "servers"; fi
mounts
finish
