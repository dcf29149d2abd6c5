#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `devices --without`: the files that it lists are those that cannot be read without the devices.
set -uo pipefail
. "$(dirname "$0")/common.bash"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1

# compare FIXTURE DEVID...: device N is in devN.img. `listed` is the number of files.
compare() {
    local fixture=$1 devid without=() all=() rest=() file
    shift
    for devid; do without+=(--without "$devid"); done
    for file in "$BUILD/fixtures/$fixture"/dev*.img; do
        devid=${file##*/dev}
        all+=("$file")
        [[ " $* " == *" ${devid%.img} "* ]] || rest+=("$file")
    done
    expect "$fixture without $*: files" 0 - devices "${without[@]}" --list "${all[@]}"
    sort "$WORK/out" > "$WORK/listed"
    listed=$(wc -l < "$WORK/listed")
    "$PROGRAM" sum "${all[@]}" / 2> "$WORK/err" | sort > "$WORK/all"
    "$PROGRAM" sum "${rest[@]}" / 2> "$WORK/err" | sort > "$WORK/rest"
    comm -23 "$WORK/all" "$WORK/rest" | cut -d ' ' -f 3- | sort > "$WORK/unreadable"
    holds "$fixture without $*: the files" cmp "$WORK/listed" "$WORK/unreadable"
    expect "$fixture without $*: numbers" 0 - devices "${without[@]}" --json "${all[@]}"
}

# number MEMBER: of the last numbers.
number() { jq -r ".$1" "$WORK/out"; }

have jq || { skip jq "the loss of devices"; finish; }

# Mirrors and parity; what is lost of RAID0 and RAID10 depends on the place of the piece.
compare raid1-2 1
is "RAID1 without a device: all is readable, no chunk has redundancy" \
    "$(number '|.recoverable, .exposed_chunks == .chunks')" \
    $'all\ntrue'
for fixture in conversion-raid1-raid5 conversion-data; do
    for devid in 1 2 3; do
        compare "$fixture" "$devid"
        is "an interrupted conversion without device $devid: all is readable" \
            "$(number recoverable)" all
    done
done
compare raid1c3-3 1
is "RAID1C3 without a device: all is readable, with redundancy" \
    "$(number '|.recoverable, .exposed_chunks')" $'all\n0'
compare raid1c3-3 1 3
is "RAID1C3 without two devices: all is readable, no chunk has redundancy" \
    "$(number '|.recoverable, .exposed_chunks == .chunks')" $'all\ntrue'
compare raid6-6 2
is "RAID6 without a device: all is readable, with redundancy" \
    "$(number '|.recoverable, .exposed_chunks')" $'all\n0'
compare raid6-6 2 5
is "RAID6 without two devices: all is readable, no chunk has redundancy" \
    "$(number '|.recoverable, .exposed_chunks == .chunks')" $'all\ntrue'
compare raid5-3 3
is "RAID5 without a device: all is readable, and no file is affected" \
    "$(number '|.recoverable, .lost_bytes, .affected_files, .files')" \
    $'all\n0\n0\nnull'
compare stripe-tree-raid0 1
is "RAID0 without a device: 29 files are listed" "$listed" 29
is "RAID0 without a device: the numbers of affected and lost files" \
    "$(number '|.recoverable, .files, .affected_files, .lost_files')" \
    $'partly\n73\n27\n6'
is "RAID0 without a device: readable and lost bytes add up" \
    "$(number 'groups[0]|.readable_bytes + .lost_bytes == .used, .lost_bytes > 0')" $'true\ntrue'
compare stripe-tree-raid0 3
is "RAID0 without device 3: files are affected, none is lost" \
    "$(number '|.affected_files, .lost_files')" $'19\n0'
compare stripe-tree-raid10 1 2
is "RAID10 without both devices of a pair is partly recoverable" "$(number recoverable)" partly
compare stripe-tree-raid10 1 3
is "RAID10: one of each pair" "$(number recoverable)" all
compare metadata-uuid-2 1
is "single data with RAID1 metadata: one file is lost" \
    "$(number '|.lost_chunks, .lost_files, .metadata_lost')" \
    $'1\n1\nfalse'

# Lost metadata: in part, and those that everything needs.
compare raid0-5 2
is "RAID0 without a device loses metadata" \
    "$(number '|.recoverable, .metadata_lost, .lost_files')" $'partly\ntrue\n50'
single=("$BUILD"/fixtures/single-3/dev*.img)
expect "no root tree" 0 - devices --without 1 --json "${single[@]}"
is "without a root tree nothing is recoverable" \
    "$(number '|.recoverable, .lost_files == .files, .metadata_lost')" \
    $'nothing\ntrue\ntrue'
expect "no root tree: as text" 0 - devices --without 1 "${single[@]}"
holds "no root tree: says so" out_has 'so a mount fails: 268 files'
expect "no root tree: files" 0 'so a mount would fail' devices --without 1 --list "${single[@]}"

# A missing device counts, too.
raid6=("$BUILD"/fixtures/raid6-6/dev[1-5].img)
expect "after a missing device" 0 'is missing' devices --without 1 --without 2 "${raid6[@]}"
holds "after a missing device: lost" out_has 'cannot be read|mount fails'
expect "as text" 0 - devices --without 1 "$BUILD"/fixtures/raid5-3/dev*.img
holds "the text says that no redundancy is left" out_has '^3 of 3 chunks: no redundancy is left'
holds "the text says that all files can be read" out_has '^All files can be read'
expect "rows of files" 0 - devices --without 3 --list -o recoverable,bad_bytes,path --sort path \
    "$BUILD"/fixtures/stripe-tree-raid0/dev*.img
is "--list with columns has 19 partly recoverable files" "$(grep -c ^partly "$WORK/out")" 19

expect "no such device" 2 'no device 9' devices --without 9 "${single[@]}"
expect "not a number" 2 'without' devices --without sda "${single[@]}"
expect "--list alone" 2 '--list needs --without' devices --list "${single[@]}"
expect "no image" 2 'no image given' devices --without 1 --list
finish
