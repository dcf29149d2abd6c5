#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Calls that fail: allocations, reads, writes, the starts of processes and threads, and messages
# between them, in every command. `make torture` tries all points; here, a sample of each command.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip "python3" "calls that fail"; finish; fi

fixtures=$BUILD/fixtures program=$PROGRAM options=()
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes compressed lost-leaf-inodes \
    lost-tree-fs lost-tree-root lost-tree-extent lost-tree-chunk \
    superblocks-gone raid1-2 raid5-3 differences log-tree past quota bad-copy-dup ||
    exit 1
if [ -e "$BUILD/tests/failing/btrfs-walk" ]; then
    program=$BUILD/tests/failing/btrfs-walk
elif ! grep -q __asan_init "$program" &&
    "${COMPILER[@]}" -O1 -shared -fPIC -o "$WORK/fail_calls.so" \
        "$ROOT/tests/preload/fail_calls.c" -ldl 2> /dev/null &&
    LD_PRELOAD=$WORK/fail_calls.so "$program" --version > /dev/null 2>&1; then
    options=(--library "$WORK/fail_calls.so")
elif grep -q __asan_init "$program"; then
    skip "a build without sanitizers" "calls that fail"
    finish
else
    skip "a compiler" "calls that fail"
    finish
fi
[ -n "${WORST:-}" ] && options+=(--verbose) || options+=(--most 200)

functions=$BUILD/tests/failing/functions
if [ -e "$functions" ]; then
    options+=(--functions "$functions")
else
    skip "make build-tests" "functions that no command calls"
fi

python3 -B "$ROOT/tests/support/fail_calls.py" "${options[@]}" "$program" "$fixtures" \
    > "$WORK/out" 2>&1
status=$?
[ -z "${WORST:-}" ] || cat "$WORK/out"
[ "$status" -eq 0 ] && pass || fail "calls that fail: $(grep -A 1 -m 3 '^FAULT' "$WORK/out")"
tail -n 1 "$WORK/out"
finish
