#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Few file descriptors, a small stack, small files: every command works, or ends with a message;
# none dies of a signal.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain checksum-sha256 checksum-blake2 || exit 1
have prlimit || { skip prlimit limits; finish; }
grep -q __asan_init "$PROGRAM" &&
    { skip "a build without sanitizers" limits; finish; }

# ends WHAT LIMIT ARGUMENTS...: the program must end with one of its own exit statuses and, if it
# fails, with a message.
ends() {
    local what=$1 limit=$2 status
    shift 2
    timeout 60 prlimit "$limit" "$PROGRAM" "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null
    status=$?
    if [ "$status" -gt 2 ] && ! grep -q 'shared libraries' "$WORK/err"; then
        fail "$what: status $status: $(head -n 1 "$WORK/err")"
    elif [ "$status" -ne 0 ] && [ ! -s "$WORK/err" ]; then
        fail "$what: status $status, without a word"
    else
        pass
    fi
}

# An emulator needs descriptors of its own.
fewest=3
[ -z "${SLOWNESS:-}" ] || { skip "a program that is not emulated" "3 descriptors"; fewest=4; }
for count in $(seq $fewest 6) 8; do
    for name in plain checksum-sha256 checksum-blake2; do
        image=$BUILD/fixtures/$name/dev1.img
        what="$count descriptors, $name"
        ends "$what, walk" --nofile=$count "$image"
        ends "$what, cat" --nofile=$count cat "$image" /top-file
        ends "$what, sum" --nofile=$count sum "$image"
        ends "$what, tar" --nofile=$count tar "$image"
        ends "$what, extract" --nofile=$count extract -C "$WORK/extracted-$count-$name" "$image"
        ends "$what, black box" --nofile=$count --blackbox "$WORK/box" "$image"
    done
done

image=$BUILD/fixtures/plain/dev1.img
for size in 32 64 512; do
    for command in "" ls sum tar; do
        # shellcheck disable=SC2086 # no command is no argument
        ends "a stack of $size KiB, $command" --stack=$((size << 10)) $command "$image"
    done
done

# libblkid gets a file in memory as long as the disk: above the limit of file sizes, it would end
# the program.
disk=$WORK/disk
truncate -s 4M "$disk"
printf '\x55\xaa' | dd of="$disk" bs=1 seek=510 conv=notrunc status=none
expect "a disk without partitions" 2 'not a btrfs file system' "$disk"
ends "a disk above the limit of file sizes" --fsize=65536 "$disk"
grep -q 'in memory: File too large' "$WORK/err" || fail "no reason: $(head -n 2 "$WORK/err")"
if have zstd; then
    zstd -q "$image" -o "$WORK/packed.zst"
    ends "a compressed image above it" --fsize=65536 "$WORK/packed.zst"
    grep -q 'temporary file: File too large' "$WORK/err" ||
        fail "no reason: $(head -n 2 "$WORK/err")"
    # Zeros at its end are not written.
    cp --sparse=always "$image" "$WORK/longer"
    truncate -s +1M "$WORK/longer"
    zstd -q "$WORK/longer"
    holds "only its zeros are above it" \
        prlimit --fsize="$(stat -c %s "$image")" "$PROGRAM" "$WORK/longer.zst"
fi
finish
