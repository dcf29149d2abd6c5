#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Progress of a long command: on a terminal, and on SIGUSR1. A layer makes the command slow; the
# tests wait for the output that they expect, and never for a fixed time.
set -uo pipefail
. "$(dirname "$0")/common.bash"
export NO_COLOR=1
have_openpty || { skip "a pseudo-terminal for Python" progress; finish; }

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain lost-leaf-directory gone \
    subvolumes || exit 1
image=$BUILD/fixtures/plain/dev1.img
lived=$BUILD/fixtures/gone/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
damaged=$BUILD/fixtures/lost-leaf-directory/dev1.img
on_terminal=$ROOT/tests/support/on-terminal.py

# No superblock: the whole device is searched while the file system is opened.
cp --sparse=always "$image" "$WORK/bare.img"
for place in 16 16384; do
    dd if=/dev/zero of="$WORK/bare.img" bs=4096 count=1 seek=$place conv=notrunc 2> /dev/null
done

# shows FILE REGEX DELAY COMMAND...: the command must print a line of progress that matches; its
# output is in FILE.
size='[0-9.]+[KMGT]?' left='(, [0-9:]+ left)?' share='\([0-9]+ %\)'
whole="$size $share"
shows() {
    local file=$1 regex=$2 delay=$3
    shift 3
    "$on_terminal" "$regex" "$PROGRAM" "$@" --insert "debug/delay-gen@device-1,delay=$delay" \
        > "$WORK/$file" 2>&1 &
    shown+=("$file" "$regex")
}
shown=()
mkdir "$WORK/new"
shows opening 'opening' 5s walk "$image"
shows walk "$size of $whole, $size/s$left" 100ms walk "$image"
shows space "$size of $whole, $size/s$left" 100ms space "$image"
shows sum "$size of $whole, $size/s$left" 50ms sum "$image"
shows tar "$size of $whole, $size/s$left" 50ms tar "$image"
shows extract "$size of $whole, $size/s$left" 50ms extract -C "$WORK/new" "$image"
shows check "$size of $whole, [a-z]+, $size/s$left" 25ms check "$image"
shows roots "$size of $whole, scan(, $size/s)?$left" 100ms roots "$image"
shows tree-stats "$size of $whole, $size/s$left" 50ms tree-stats "$image"
shows cat "$size of $whole, $size/s$left" 250ms cat "$image" \
    source/large.bin docs/pipe top-file
shows report "$size of $whole, [a-z]+, $size/s$left" 10ms report -f "$WORK/report" "$image"
shows diff "$size of $whole, $size/s$left" 100ms diff "$subvolumes" home-read-only home
shows deleted "($size, )?state [0-9]+ of [0-9]+ $share(, $size/s)?$left" \
    20ms deleted "$lived"
shows versions "($size, )?state [0-9]+ of [0-9]+ $share(, $size/s)?$left" \
    20ms versions "$lived" /top/kept/edited
shows search "$size of $whole, search, $size/s$left" 200ms --scan "$WORK/bare.img"
head -c 12M /dev/urandom | gzip -1 > "$WORK/random.gz"
shows decompress "$size of $whole, decompress, $size/s$left" 300ms --helpers=off "$WORK/random.gz"
"$on_terminal" signal "$PROGRAM" -q --insert debug/delay-gen@device-1,delay=5s "$image" \
    > "$WORK/signal" 2>&1 &
"$on_terminal" whole "$PROGRAM" --insert debug/delay-gen@device-1,delay=10ms "$damaged" \
    > "$WORK/whole" &
"$on_terminal" both "$PROGRAM" ls --insert debug/delay-gen@device-1,delay=150ms "$image" \
    > "$WORK/both" &
"$on_terminal" whole "$PROGRAM" -q --insert debug/delay-gen@device-1,delay=100ms "$image" \
    > "$WORK/quiet" &
"$PROGRAM" "$damaged" > /dev/null 2> "$WORK/messages"
"$on_terminal" "signal:btrfs-walk: $size of $whole, $size/s$left" "$PROGRAM" tar \
    --insert debug/delay-gen@device-1,delay=50ms "$image" > "$WORK/asked" 2>&1 &
wait
for ((i = 0; i < ${#shown[@]}; i += 2)); do
    holds "${shown[i]}: $(cat "$WORK/${shown[i]}")" \
        grep -qxE "${shown[i + 1]}" "$WORK/${shown[i]}"
done
holds "a signal: $(cat "$WORK/signal")" grep -qxE 'btrfs-walk: opening' "$WORK/signal"
holds "a signal, with a total: $(cat "$WORK/asked")" grep -q ' of ' "$WORK/asked"
holds "progress leaves only the messages on a terminal" same_bytes "$WORK/messages" "$WORK/whole"
holds "progress leaves only the results on a terminal" same_bytes \
    <("$PROGRAM" ls "$image") "$WORK/both"
is "no progress is printed with -q" "$(cat "$WORK/quiet")" ""
finish
