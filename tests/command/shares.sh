#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The space command: compared with what the kernel counted with quotas on mounted copies of the
# fixtures (tests/kernel/space.py does the same with random file systems), and on damaged images.
set -uo pipefail
. "$(dirname "$0")/common.bash"

counted=$ROOT/tests/data/shares
mapfile -t fixtures < <(grep -v '^#' "$counted" | cut -d ' ' -f 1 | uniq)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${fixtures[@]}" differences || exit 1
image() { echo "$BUILD/fixtures/$1/dev1.img"; }
out_is() { diff "$WORK/out" - <<< "$1"; }

for name in "${fixtures[@]}"; do
    expect "space of $name" 0 - space -o subvolume,referenced,exclusive,deleted "$(image "$name")"
    awk -v name="$name" -F '\t' '$4 == 0 { print name, $1, $2, $3 }' "$WORK/out" > "$WORK/ours"
    grep "^$name " "$counted" > "$WORK/theirs"
    holds "$name: the sizes are those of the kernel's quotas" diff "$WORK/theirs" "$WORK/ours"
done

# The three views.
clones=$(image data-clones)
expect "a table" 0 - space --iec "$clones"
holds "--iec prints units" out_has '^ +256 +48.00KiB +36.00KiB  /volume$'
expect "exact numbers" 0 - space --raw "$clones"
holds "--raw prints bytes" out_has '^ +256 +49152 +36864  /volume$'
expect "what two would free" 0 - space --free-if 256,/snapshot --raw "$clones"
holds "--free-if counts the bytes that only both have" \
    out_has '^ *53248 +65536  256,257 +/volume /snapshot$'
expect "what all would free" 0 - space --free-if 5 --free-if /volume,257 --json "$clones"
holds "deleting all subvolumes frees everything" \
    out_is '{"subvolumes":[5,256,257],"referenced":716800,"freed":716800,'`
    `'"lost_blocks":0,"paths":["/","/volume","/snapshot"]}'
expect "space --shared" 0 - space --shared -o shared,subvolume_count,subvolumes "$clones"
holds "--shared lists the largest set first" \
    out_is $'651264\t1\t5\n36864\t1\t256\n16384\t1\t257\n12288\t3\t5-257'
expect "one thread" 0 - space --threads 1 -o subvolume,exclusive "$clones"
holds "one thread counts the same numbers" out_is $'5\t651264\n256\t36864\n257\t16384'
expect "one that is being deleted" 0 - space -o subvolume,exclusive,deleted \
    "$(image deletion-begun)"
holds "keeps what it still has" out_is $'5\t36864\t0\n258\t1413120\t1'
expect "sets with one that is being deleted" 0 - space --shared -o shared,subvolumes,deleted \
    "$(image deletion-begun)"
holds "--shared marks only the sets whose subvolumes are all being deleted" \
    out_is $'1413120\t258\t1\n36864\t5\t0'

# Which snapshots to delete: no more than needed, and with the numbers of --free-if.
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop quota-groups || exit 1
laptop=$(image laptop)
for steps in '1: 260' '16385: 260 261' '276480: 260 261 262' '290K: 260 261 263' \
    '400K: 260 261 263' '485000: 260 261 262 263'; do
    expect "free ${steps%:*}" 0 - space --free "${steps%:*}" -o subvolume,freed,freed_total \
        "$laptop"
    is "free ${steps%:*}: the snapshots" "$(cut -f1 "$WORK/out" | paste -sd ' ')" "${steps#*: }"
    before=0 ids=''
    while IFS=$'\t' read -r id freed total; do
        ids+=${ids:+,}$id
        is "free ${steps%:*}: as with --free-if $ids" "$total $((before + freed))" \
            "$("$PROGRAM" space --free-if "$ids" -o freed "$laptop") $total"
        before=$total
    done < <(cp "$WORK/out" "$WORK/steps"; cat "$WORK/steps")
done
expect "more than there is" 1 'the 4 snapshots that can be deleted frees only 488.00KiB of' \
    space --free 5G --json -o subvolume,otime,freed,freed_total,subvolume_path "$laptop"
holds "lists all" out_has '^\{"subvolume":263,"otime":1795473048783404805,"freed":217088,'`
    `'"freed_total":499712,"subvolume_path":"/@snapshots/home-2026-11-21"\}$'
expect "no snapshots" 1 'deleting the 0 snapshots' space --free 1 -o freed "$(image quota-groups)"
expect "nothing to free" 2 'at least one byte' space --free 0 "$clones"
expect "free and sets" 2 'exclude each other' space --free 1 --shared "$clones"

expect "an empty list" 2 'free-if' space --free-if 256, "$clones"
expect "no such subvolume" 2 'there is no subvolume' space --free-if /nothing "$clones"
expect "two views" 2 'exclude each other' space --free-if 5 --shared "$clones"

# destroy LOGICAL: overwrites all mirrors of a tree block.
destroy() {
    cp "$clones" "$WORK/image"
    "$PROGRAM" map -o offset "$WORK/image" "$1" | while IFS= read -r offset; do
        dd if=/dev/zero of="$WORK/image" bs=4096 seek=$((offset / 4096)) count=4 conv=notrunc \
            status=none
    done
}
root_of() { "$PROGRAM" dump --tree "$1" "$clones" | awk '$1 == "leaf" { print $2; exit }'; }

# Without the extent tree the answer is the same.
run_json space --shared --json "$clones" > "$WORK/whole"
destroy "$(root_of extent)"
expect "without the extent tree" 1 'the extent tree ' space --shared --json "$WORK/image"
holds "without the extent tree, the sets are the same" diff "$WORK/whole" "$WORK/out"

# The extent tree says that a block has one reference, but two subvolumes reach it.
run_json space --shared --json "$(image differences)" > "$WORK/whole"
cp --sparse=always "$(image differences)" "$WORK/image"
holds "a reference less" change "$WORK/image" 2 30621696 169 0 set 0 8 1
expect "a wrong extent tree" 0 - space --shared --json "$WORK/image"
holds "with a wrong extent tree, nothing is counted twice" diff "$WORK/whole" "$WORK/out"

# With a lost block, only the contents of that block are missing.
destroy "$(root_of 257)"
expect "a lost block" 1 '1 tree block of subvolume 257 lost: sizes are lower bounds' \
    space -o subvolume,referenced,lost_blocks "$WORK/image"
holds "a lost block does not affect other subvolumes" \
    out_is $'5\t663552\t0\n256\t49152\t0\n257\t0\t1'
finish
