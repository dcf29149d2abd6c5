#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` in rounds: damage below a tree block that cannot be read is seen only once the block is
# back. The plan contains both, and a second repair of the result finds nothing to do.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have python3 qemu-img || { skip "python3 and qemu-img" "repairs in rounds"; finish; }
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup block-group-tree changes \
    levels-3 mixed relocation root-tree-levels simple-quota space-cache-v1 || exit 1

# flip BYTE BIT LOGICAL: flips a bit of all copies of a tree block, which get new checksums.
flip() {
    local places
    mapfile -t places < <("$PROGRAM" map -q -o offset "$image" "$3+16384")
    change "$image" flip "$1" "$2" "${places[@]}"
}

# repairs NAME FIXTURE PLAN WORD...: the plan has these classes and faults. The result is the
# fixture, and a second plan is empty.
repairs() {
    local before
    before=$(written "$image")
    rm -f "$WORK/fixed.qcow2"
    is "$1: the plan" \
        "$("$PROGRAM" repair -q -o chosen,why "${@:4}" "$image" 2> /dev/null |
        sed 's/inode [0-9]* of tree 5: //; s/: bit.*//; s/:.*//')" "$3"
    expect "$1: repair" 0 . repair "${@:4}" -f "$WORK/fixed.qcow2" "$image"
    is "$1: repair does not change the image" "$(written "$image")" "$before"
    expect "$1: check" 0 . check --patch "$WORK/fixed.qcow2" "$image"
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    holds "$1: the repaired image is the undamaged one" \
        same_image "$WORK/fixed.img" "$fixtures/$2/dev1.img"
    expect "$1: a second repair" 0 'nothing to repair' repair -f "$WORK/none.qcow2" \
        "$WORK/fixed.img"
}

# damaged FIXTURE CHANGE...: a copy of the image with changed items.
damaged() {
    image=$WORK/image
    cp --sparse=always "$fixtures/$1/dev1.img" "$image"
    holds "the items are changed: $*" change "$image" "${@:2}"
}

# A leaf with a wrong generation hides the wrong link count of a file.
damaged plain 5 262 1 0 set 40 4 7
flip 80 1 30441472
repairs "a leaf" plain $'1\tblock-stale\n1\tlink-count'

# --id: the second change is planned only after the first one.
rm -f "$WORK/fixed.qcow2"
expect "only the block" 1 'do not concern 1 finding' repair --id 1 -f "$WORK/fixed.qcow2" "$image"
rm -f "$WORK/fixed.qcow2"
expect "only what it hides" 2 'the plan has 1 change$' \
    repair --id 2 -f "$WORK/fixed.qcow2" "$image"
expect "a number behind the last one" 2 '^btrfs-walk: --id 1,2,3: the plan has 2 changes$' \
    repair --id 1,2,3 "$image"
is "a number behind the last one: no plan" "$(cat "$WORK/out")" ""
cp "$image" "$WORK/hidden"
flip 80 1 31080448
is "one of two blocks: nothing of the next round is in the plan" \
    "$("$PROGRAM" repair -q -o id,chosen --id 1 "$image" 2> /dev/null)" $'1\t1\n2\t0'
cp "$WORK/hidden" "$image"
repairs "both by their numbers" plain $'1\tblock-stale\n1\tlink-count' --id 1,2

# Three levels: a node with a wrong key, a leaf with a wrong generation, an inode with a wrong size.
damaged dup 5 256 1 0 set 16 8 999
flip 80 1 30441472
flip 134 6 31260672
repairs "a node, a leaf and an inode" dup $'1\tblock-keys\n1\tblock-stale\n1\tdirectory-size'

# As long as the extent tree is in doubt, nothing is computed from it.
damaged block-group-tree 10 13631488 198 - set 0 4 9
extents=$(run_json dump -q --json --tree extent "$image" |
    sed -n 's/.*"logical":\([0-9]*\),"level":0.*/\1/p' | head -n 1)
flip 80 2 "$extents"
repairs "the extent tree, and what is computed from it" block-group-tree \
    $'1\tblock-stale\n1\tit differs from the extent tree'

# lose LOGICAL [BYTES]: overwrites the first bytes of all copies of a tree block.
lose() {
    local place
    for place in $("$PROGRAM" map -q -o offset "$image" "$1+4096"); do
        head -c "${2:-4096}" /dev/zero | tr '\0' x |
            dd of="$image" bs=4096 seek=$((place / 4096)) conv=notrunc status=none
    done
}

# A lost node has nothing that its children and the references to them do not tell; then what is
# below it is found. That a node fails nothing but its checksum proves less.
damaged dup 5 256 1 0 set 40 4 7
lose 31260672
repairs "a lost node" dup $'1\tno copy of it is good, tree 5\n1\tlink-count'
damaged levels-3 5 256 1 0 set 40 4 7
lose 30420992
lose 31293440
lost='no copy of it is good, tree'
repairs "two lost nodes" levels-3 $'1\t'"$lost 5"$'\n1\t'"$lost 5"$'\n1\tlink-count'
cp --sparse=always "$fixtures/levels-3/dev1.img" "$image"
lose 33169408
repairs "a lost root of level 2" levels-3 $'1\t'"$lost 5"
cp --sparse=always "$fixtures/root-tree-levels/dev1.img" "$image"
lose 31612928
repairs "the lost root of the root tree" root-tree-levels $'1\t'"$lost 1"

# Two snapshots contain a node that counts references by its address. A mount looks for these if the
# node is older than the last snapshot of its tree, or has a flag: one tree needs it.
damaged relocation 1 258 132 8 set 200 8 0
lose 30965760
rm -f "$WORK/fixed.qcow2"
expect "a lost node of two snapshots" 0 . repair -f "$WORK/fixed.qcow2" "$image"
qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
place=$("$PROGRAM" map -q -o offset "$image" 30965760+4096 | head -n 1)
is "a lost node of two snapshots: the flags" \
    "$(od -An -tu1 -j $((place + 56)) -N 1 "$WORK/fixed.img" | tr -d ' ')" 3

# A lost node of the extent tree: the whole tree is made again, with the root at its place. Then the
# free space tree and the bytes in use are corrected. Snapshots share blocks in the first image.
for fixture in changes space-cache-v1; do
    cp --sparse=always "$fixtures/$fixture/dev1.img" "$image"
    root=$("$PROGRAM" dump -q -o logical,level --tree extent "$image" |
        sed -n 's/\t[1-9]$//p' | head -n 1)
    lose "$root"
    rm -f "$WORK/fixed.qcow2"
    expect "$fixture: a lost root of the extent tree" 0 damage \
        repair -f "$WORK/fixed.qcow2" "$image"
    is "$fixture: the space in use does not matter" "$(grep 'count as in use' "$WORK/err")" ""
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    expect "$fixture: check" 0 . check "$WORK/fixed.img"
    is "$fixture: the files" "$("$PROGRAM" sum --relative "$WORK/fixed.img" | cksum)" \
        "$("$PROGRAM" sum --relative "$fixtures/$fixture/dev1.img" | cksum)"
    expect "$fixture: a second repair" 0 'nothing to repair' \
        repair -f "$WORK/none.qcow2" "$WORK/fixed.img"

    # The tree is one change of the plan, which is made as a whole.
    is "$fixture: the plan" \
        "$("$PROGRAM" repair -q -o id,part_count,what "$image" 2> /dev/null | head -n 1)" \
        "1"$'\t'"$("$PROGRAM" dump -q -o logical --tree extent "$WORK/fixed.img" | sort -u |
            wc -l)"$'\tblocks of a new extent tree'
    rm -f "$WORK/fixed.qcow2"
    "$PROGRAM" repair -q -f "$WORK/fixed.qcow2" --id 1 "$image" > "$WORK/out" 2> "$WORK/err"
    extents=$("$PROGRAM" dump -q --tree extent "$WORK/fixed.img" | grep -c '_ITEM')
    is "$fixture: only the new tree" "$("$PROGRAM" dump -q --tree extent --patch \
        "$WORK/fixed.qcow2" "$image" | grep -c '_ITEM')" "$extents"
done

# As long as there is a valid free space tree, the places of the lost tree are taken first. What
# only a log tree uses is not free: its blocks, and in mixed groups extents of files.
cp --sparse=always "$fixtures/mixed/dev1.img" "$image"
lose 5611520
rm -f "$WORK/fixed.qcow2"
expect "places of the lost tree: repair" 0 damage repair -f "$WORK/fixed.qcow2" "$image"
places() {
    "$PROGRAM" dump -q -o logical --tree extent --patch "$WORK/fixed.qcow2" "$image" | sort -u
}
is "places of the lost tree" "$(places)" $'5611520\n5615616\n5623808'
cp --sparse=always "$fixtures/mixed/dev1.img" "$image"
holds "the free space tree is not valid" change "$image" super 180 8 1
holds "a log tree is made" \
    python3 "$ROOT/tests/support/make_log.py" "$image" 8388608 5242880 5246976
lose 5611520
rm -f "$WORK/fixed.qcow2"
expect "places that the log does not use: repair" 0 damage \
    repair -f "$WORK/fixed.qcow2" "$image"
is "places that the log does not use" "$(places)" $'5251072\n5255168\n5611520'

# With simple quotas, only its item has the owner of an extent of data. None of the items is made.
cp --sparse=always "$fixtures/simple-quota/dev1.img" "$image"
lose 30932992
rm -f "$WORK/none.qcow2"
expect "simple quotas: a lost leaf of the extent tree" 1 'nothing is written' \
    repair -f "$WORK/none.qcow2" "$image"

# Not if one of the children is unknown. Its checksum is the only thing that is wrong.
damaged dup 5 256 1 0 set 40 4 7
lose 31260672 8
lose 30441472
is "a node with a wrong checksum is not repaired by default" \
    "$("$PROGRAM" repair -q -o class_name,chosen "$image" 2> /dev/null)" $'resealed\t0'
rm -f "$WORK/fixed.qcow2"
is "a node with a wrong checksum: the plan" \
    "$("$PROGRAM" repair -q -o class_name,chosen --allow resealed "$image" 2> /dev/null)" \
    $'resealed\t1'
expect "a node with a wrong checksum: repair" 1 damage \
    repair --allow resealed -f "$WORK/fixed.qcow2" "$image"
is "a node with a wrong checksum: only the leaf is lost" \
    "$("$PROGRAM" check -q -o code,logical --patch "$WORK/fixed.qcow2" "$image" 2> /dev/null |
    grep block- | sort -u)" $'block-checksum\t30441472'
finish
