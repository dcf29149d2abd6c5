#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# free: the ranges that no file shows, their sums, and their contents as a stream.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
F=$BUILD/fixtures
plain=$F/plain/dev1.img

# sum_of AWK_CONDITION: bytes of the ranges in $WORK/out for which it holds.
sum_of() { awk -F'\t' "$1 {sum += \$2} END {print sum + 0}" "$WORK/out"; }
# unused IMAGE...: bytes of all chunks without their used bytes, by their block groups.
unused() { "$PROGRAM" chunks -o length,used "$@" | awk '{sum += $1 - $2} END {print sum}'; }

# Every byte of a chunk that is not used is free, and nothing else.
columns=stream_offset,length,kind,logical,devid,offset
for fixture in plain compressed mixed nodesize-64k old-4k raid0-3 raid1-2 raid5-3 raid6-4 \
    snapshots-with-quotas stripe-tree-raid1 space-cache-v1 block-group-tree extent-tree-v2 \
    converted; do
    expect "$fixture" 0 - free -q -o $columns "$F/$fixture"/dev*.img
    is "$fixture: as many as block groups say" \
        "$(sum_of '$3 == "free" || $3 == "unused"')" "$(unused -q "$F/$fixture"/dev*.img)"
    holds "$fixture: the stream has no gaps" awk -F'\t' '$1 != end {exit 1} {end = $1 + $2}' \
        "$WORK/out"
done
expect "unallocated space" 0 - free --kind unallocated -o $columns "$plain"
is "as usage, without the first MiB" "$(($(sum_of 1) + 1048576))" \
    "$(run_json usage --json "$plain" | sed -n 's/.*"unallocated":\([0-9]*\).*/\1/p')"
expect "a log" 0 - free -q -o $columns "$F/log-tree/dev1.img"
holds "blocks of a log are not free" \
    [ "$(sum_of '$3 == "free"')" -lt "$(unused -q "$F/log-tree/dev1.img")" ]

# Used space is never free, even without an extent tree.
expect "a lost extent tree" 1 'damage' free -o $columns "$F/lost-tree-extent/dev1.img"
"$PROGRAM" -q0 "$F/lost-tree-extent/dev1.img" 2> "$WORK/err" |
    xargs -0 "$PROGRAM" extents -q --json "$F/lost-tree-extent/dev1.img" 2> "$WORK/err" |
    grep -o '"extent_logical":[0-9]*' | grep -o '[0-9]*' | sort -un > "$WORK/extents"
holds "files have extents" [ -s "$WORK/extents" ]
holds "no extent of a file is free" awk -F'\t' -v extents="$WORK/extents" '
    BEGIN {while ((getline at < extents) > 0) used[at + 0]}
    $3 == "free" || $3 == "unused" {
        for (at in used) if (at + 0 >= $4 && at + 0 < $4 + $2) exit 1}' "$WORK/out"

# The stream: each range as it is stored.
for fixture in plain raid5-3; do
    expect "$fixture: a stream and its map" 0 - \
        free --extract "$WORK/stream" -o $columns "$F/$fixture"/dev*.img
    is "$fixture: the stream is as long as its ranges" "$(stat -c %s "$WORK/stream")" "$(sum_of 1)"
    while IFS=$'\t' read -r at length kind logical devid offset; do
        case $kind in
        unallocated) tail -c +$((offset + 1)) "$F/$fixture/dev$devid.img" | head -c 65536 ;;
        *) "$PROGRAM" cat --ignore-checksums all "$F/$fixture"/dev*.img \
            --block "$logical+$((length < 65536 ? length : 65536))" ;;
        esac > "$WORK/stored" 2> "$WORK/err"
        size=$(stat -c %s "$WORK/stored")
        holds "$fixture: the image has bytes of $kind at $at" [ "$size" -gt 0 ]
        holds "$fixture: $kind at $at: its bytes" \
            cmp -n "$((length < size ? length : size))" -i "$at:0" "$WORK/stream" "$WORK/stored"
    done < <(awk -F'\t' '!seen[$3]++ || NR % 7 == 0' "$WORK/out")
done
holds "zeros in the stream are holes" [ $(($(stat -c %b "$WORK/stream") * 512)) -lt 10000000 ]
expect "stdout" 0 - free --extract - "$F/raid5-3"/dev*.img
holds "zeros are holes of stdout, too" [ $(($(stat -c %b "$WORK/out") * 512)) -lt 10000000 ]
holds "stdout has the same bytes as the file" same_image "$WORK/out" "$WORK/stream"
holds "a pipe has the same bytes" \
    cmp "$WORK/stream" <("$PROGRAM" free --extract - "$F/raid5-3"/dev*.img)
shapes=$F/data-shapes/dev1.img
expect "hidden parts" 0 - free --kind hidden,preallocated -o $columns "$shapes"
is "--kind lists only hidden and preallocated ranges" \
    "$(cut -f 3 "$WORK/out" | sort -u | tr '\n' ,)" hidden,preallocated,
mapfile -t hidden < <(awk -F'\t' '$3 == "hidden" {print $4 "+" $2}' "$WORK/out")
expect "what owner prints" 0 - owner -o kind "$shapes" "${hidden[@]}"
is "owner calls the hidden ranges hidden" "$(sort -u "$WORK/out")" hidden

# Sizes: the sums of the list. chunks reads other items, which have the types.
for fixture in plain raid5-3 mixed data-shapes; do
    expect "$fixture: the list" 0 - free -o $columns "$F/$fixture"/dev*.img
    awk -F'\t' '{for (size = 1; size * 2 <= $2; size *= 2); ranges[$3 " " size]++
        bytes[$3 " " size] += $2} END {for (i in ranges) print i, ranges[i], bytes[i]}' \
        "$WORK/out" | sort > "$WORK/list"
    expect "$fixture: its sizes" 0 - free --sizes -o kind,length,ranges,bytes,chunk_type \
        "$F/$fixture"/dev*.img
    holds "$fixture: --sizes counts the ranges of the list" diff "$WORK/list" <(awk -F'\t' \
        '{ranges[$1 " " $2] += $3; bytes[$1 " " $2] += $4}
        END {for (i in ranges) print i, ranges[i], bytes[i]}' "$WORK/out" | sort)
    is "$fixture: by type of chunk" \
        "$(awk -F'\t' '$1 == "free" || $1 == "unused" {left[$5] += $4}
            END {for (i in left) print i, left[i]}' "$WORK/out" | sort)" \
        "$("$PROGRAM" chunks -o chunk_type,length,used "$F/$fixture"/dev*.img |
            awk -F'\t' '$2 != $3 {left[$1] += $2 - $3} END {for (i in left) print i, left[i]}' |
            sort)"
done
expect "sizes of a kind" 0 - free --sizes --kind unallocated --json "$plain"
is "sizes of unallocated space have no type of chunk" "$(sed 's/[0-9]\+/N/g' "$WORK/out")" \
    '{"kind":"unallocated","length":N,"ranges":N,"bytes":N}'
expect "a table of sizes" 0 - free --sizes "$plain"
holds "the table of sizes has a heading" out_has '^kind +chunk_type +length +ranges +bytes$'
expect "sizes and a stream" 2 'exclude each other' free --sizes --extract - "$plain"
expect "sizes without an extent tree" 1 'tree block .* of the extent tree' \
    free --sizes "$F/lost-tree-extent/dev1.img"
holds "other trees show what is free" out_has '^free +Data '

# A missing device.
expect "a missing device" 1 'bytes [0-9]* to [0-9]* cannot be read, zeros .*device 3 is missing' \
    free --extract "$WORK/degraded" "$F/raid5-3/dev1.img" "$F/raid5-3/dev2.img"
holds "the rest is the same" cmp -n 131072000 "$WORK/degraded" "$WORK/stream"

expect "an unknown kind" 2 'allowed: free, unused, hidden' free --kind free,lost "$plain"
expect "a list and a stream on stdout" 2 'writes no list' free --extract - --json "$plain"
expect "an image as the target" 2 'images are never written to' \
    free --extract "$F/dup/dev1.img" "$plain"
expect "a target that is not there" 2 'No such file' free --extract "$WORK/none/x" "$plain"
finish
