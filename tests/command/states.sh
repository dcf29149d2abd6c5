#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Older states of a file system, chosen by their roots: --generation, --tree-root and
# --chunk-root of every command.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
image=$BUILD/fixtures/deletion-begun/dev1.img
now='docs empty source top-file '
before='docs empty source top-file volume-3 '
entries() { tr '\n' ' ' < "$WORK/out"; }

expect "the present" 0 - ls "$image"
is "the present generation has its entries" "$(entries)" "$now"
for state in --generation=13 --tree-root=46239744 --tree-root=0x2c19000@13; do
    expect "$state" 0 - ls $state "$image"
    is "$state has the older entries" "$(entries)" "$before"
done
expect "an older chunk tree" 0 - ls --generation=13 --chunk-root=22024192 "$image"
is "an older chunk tree leads to the older entries" "$(entries)" "$before"
expect "the present by its number" 0 - ls --generation=15 "$image"
is "--generation=15 has the present entries" "$(entries)" "$now"
# The data were in a chunk that a balance has removed since.
past=$BUILD/fixtures/past/dev1.img
expect "chunks of the present" 0 - chunks -o logical,chunk_type "$past"
is "the present has one chunk of data" "$(grep Data "$WORK/out")" $'22020096\tData'
expect "chunks of a state" 0 - chunks -o logical,chunk_type --tree-root=5455872 "$past"
is "the older generation has another chunk of data" "$(grep Data "$WORK/out")" $'13631488\tData'
expect "data in that chunk" 0 - cat --tree-root=5455872 "$past" /stays
is "data of the older generation are right" "$(cksum < "$WORK/out")" "$(seq 3000 | cksum)"
expect "without that chunk tree" 1 'no chunk for logical address 13' \
    cat --tree-root=5455872 --chunk-root=1097728 "$past" /stays
expect "check of an older generation" 0 '0 errors, 0 warnings' check --generation=13 "$image"
log=$BUILD/fixtures/log-tree/dev1.img
older=$("$PROGRAM" roots --no-scan -o generation "$log" | sed -n 2p)
expect "no log of the present" 0 - ls --generation="$older" "$log"

expect "another generation" 2 'has generation 13' ls --tree-root=46239744@12 "$image"
expect "a block of another tree" 2 'belongs to the chunk tree, not to the root tree' \
    ls --tree-root=22024192 "$image"
expect "no block" 2 'there is no tree block at 65536|has no chunk' ls --tree-root=65536 "$image"
expect "no chunk tree" 2 'no chunk for logical address 46239744' ls --chunk-root=46239744 "$image"
expect "two states" 2 'more than one generation' ls --tree-root=46239744 --generation=13 "$image"
expect "a backup root by its number" 2 'backup was removed: .roots. lists' ls --backup=0 "$image"
for bad in --generation=0 --tree-root=x --tree-root=1@ --chunk-root=1x; do
    expect "$bad" 2 "invalid argument of ${bad%=*}" ls "$bad" "$image"
done
finish
