#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The fuzz target for the whole program, without a fuzzer: fixtures with a few mutations through all
# commands, and what fuzzers have found.
set -uo pipefail
. "$(dirname "$0")/common.bash"

tool=$BUILD/tests/fuzz-smoke
[ -x "$tool" ] || make -s -C "$ROOT" BUILD="$BUILD" "$tool" || exit 1
images=$BUILD/fixtures fixtures=(empty quota-groups compressed nodesize-4k)
"$ROOT/scripts/unpack-fixtures" "$images" "${fixtures[@]}" || exit 1

mkdir "$WORK/packed" "$WORK/found"
if grep -q 'no memory for the devices' \
    < <("$tool" pack "$WORK/none" 8 "$images/empty/dev1.img" -- / 2>&1); then
    skip "too few addresses for the devices" # 32 bits
    finish
fi
for name in "${fixtures[@]}"; do
    holds "the fixture $name is packed" \
        "$tool" pack "$WORK/packed/$name" 8 "$images/$name"/dev?.img -- \
        /top-file /
done
holds "an image is what it was, but for its data" "$tool" unpack "$WORK/packed/empty" "$WORK/again"
is "its copies of the superblock" "$("$PROGRAM" super "$WORK/again1.img")" \
    "$("$PROGRAM" super "$images/empty/dev1.img" |
    sed "s|$images/empty/dev1.img|$WORK/again1.img|")"
is "an unpacked image has the trees of the original" \
    "$("$PROGRAM" dump "$WORK/again1.img")" "$("$PROGRAM" dump "$images/empty/dev1.img")"

# A command line each round, so these are all of them twice.
holds "mutated images cause no crash" timeout 100 "$tool" mutate 220 "$WORK"/packed/*

for packed in "$ROOT"/tests/fuzz/found/*.zst; do
    [ -e "$packed" ] || continue
    name=$(basename "$packed" .zst)
    zstd -q -d "$packed" -o "$WORK/found/$name"
    holds "the input $name, which a fuzzer found, causes no crash" \
        timeout 30 "$tool" program "$WORK/found/$name"
done
finish
