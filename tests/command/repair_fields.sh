#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair`: fields in tree blocks with right checksums, and leaves of trees that repeat what others
# say. The changed bytes become what they were, so the repaired image is the undamaged one.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes block-group-tree lost-tree-uuid \
    lost-tree-free-space lost-tree-chunk lost-tree-extent log-tree dup relocation resized-down \
    quota-groups simple-quota changes incomplete orphans space-cache-v1 nodesize-4k || exit 1

# damages FIXTURE CHANGE...: changes items of a copy of the image.
damages() {
    cp --sparse=always "$fixtures/$1/dev1.img" "$WORK/image"
    holds "the item is changed: $*" change "$WORK/image" "${@:2}"
    before=$(written "$WORK/image")
}

# Whether what was repaired is examined. With sanitizers, that would only read once more.
is_examined() { [ -z "${SWEEP:-}" ]; }

# repairs WORD FIXTURE CHANGE...: `why` in the plan has the word. The result is the fixture.
repairs() {
    local word=$1 fixture=$2
    shift
    damages "$@"
    rm -rf "$WORK/fixed"
    expect "$*: repair" 0 - repair -q -C "$WORK/fixed" -o class_name,why "$WORK/image"
    is "$*: the plan derives the right value" "$(grep -c "^derived.*$word" "$WORK/out")" 1
    is "$*: repair does not change the image" "$(written "$WORK/image")" "$before"
    is_examined || return 0
    expect "$*: check" 0 . check --patch "$WORK/fixed/devid-1.qcow2" "$WORK/image"
    have qemu-img || return
    qemu-img convert -O raw "$WORK/fixed/devid-1.qcow2" "$WORK/fixed.img"
    holds "$*: the repaired image is the undamaged one" \
        same_image "$WORK/fixed.img" "$fixtures/$fixture/dev1.img"
    repaired_again "$*"
}

# repaired_again NAME: a second plan is empty. $WORK/fixed.img is the repaired image.
repaired_again() {
    expect "$1: a second repair" 0 'nothing to repair' repair -f "$WORK/none.qcow2" \
        "$WORK/fixed.img"
}

# leaves FIXTURE CHANGE...: there is nothing that can be repaired.
leaves() {
    damages "$@"
    is "$*: the plan is empty" "$("$PROGRAM" repair -o why "$WORK/image" 2> /dev/null)" ""
}

# status NAME STATUS IMAGE: repairs; the check then finds no error.
status() {
    rm -f "$WORK/fixed.qcow2"
    expect "$1: repair" "$2" . repair -f "$WORK/fixed.qcow2" "$3"
    expect "$1: check" 0 . check --patch "$WORK/fixed.qcow2" "$3"
}

have qemu-img || skip qemu-img "comparison with the undamaged image"

# What other items determine.
repairs 'link-count: 7 must be 1' plain 5 262 1 0 set 40 4 7
repairs 'link-count: 7 must be 1' plain 5 256 1 0 set 40 4 7
repairs 'link-count: 3 must be 1' plain 5 256 1 0 set 40 4 3
repairs 'link-count: 4 must be 1' plain 5 256 1 0 set 40 4 4
repairs 'directory-size: 999 must be 140' plain 5 256 1 0 set 16 8 999
repairs 'file-bytes: 12345 must be 17' plain 5 262 1 0 set 24 8 12345
repairs 'file-bytes: 7 must be 0' plain 5 257 1 0 set 24 8 7
repairs 'file-size: 12 must be 17' plain 5 262 1 0 set 16 8 12
repairs 'link-size: 3 must be 9' plain 5 279 1 0 set 16 8 3
repairs 'says file, its inode 403 is directory' plain 5 256 84 2355243158 set 29 1 1
repairs 'says unknown, its inode 370 is directory' plain 5 256 84 397168884 set 29 1 77
repairs 'says file, its subvolume 5 is directory' subvolumes 1 6 84 2378154706 set 29 1 1
repairs 'says file, its subvolume 269 is directory' subvolumes 5 256 84 1682190749 set 29 1 1
repairs 'says symlink, its subvolume 269 is directory' subvolumes 5 256 96 15 set 29 1 7
repairs 'subvolume 256: it must be 1' subvolumes 1 256 132 0 set 216 4 9

# Items that others determine: of names, of links to subvolumes, of chunks.
repairs 'missing: item (256 84 397168884)' plain 5 256 84 397168884 delete
repairs 'missing: item (256 96 3)' plain 5 256 96 3 delete
repairs 'missing: item (258 12 257)' plain 5 258 12 257 delete
repairs 'index: 777 must be' plain 5 258 12 257 set 0 8 777
repairs 'missing: item (397 13 410473239)' plain 5 397 13 410473239 delete
repairs 'missing: item (256 84 1682190749)' subvolumes 5 256 84 1682190749 delete
repairs 'missing: item (256 96 15)' subvolumes 5 256 96 15 delete
repairs 'link: item (5 156 260)' subvolumes 1 5 156 260 delete
repairs 'link: item (257 144 256)' subvolumes 1 257 144 256 delete
repairs 'missing: item (1 204 22020096)' plain 4 1 204 22020096 delete
repairs 'missing: item (256 228 13631488)' plain 3 256 228 13631488 delete
repairs 'missing: item (256 228 22020096)' plain 3 256 228 22020096 delete
repairs 'no copy of it is good' plain 3 256 228 30408704 delete # of the root tree
repairs 'missing: item (22020096 192 16777216)' block-group-tree 11 22020096 192 - delete
repairs 'group-missing: item (38797312' block-group-tree 11 38797312 192 - delete and \
    11 22020096 192 - set 0 8 999424
repairs 'missing: item (256 96 16)' subvolumes 5 256 96 16 set 0 8 259
repairs 'differs: item (1 204 22020096)' plain 4 1 204 22020096 set 16 8 13631488
repairs 'extent-item: item (1 204 22020096)' plain 4 1 204 22020096 set 0 8 5
repairs 'they name the lost tree block 16384' plain super 80 8 16384
repairs 'they name the lost tree block 16384' plain super 88 8 16384
repairs 'it contradicts the chunk tree' plain super 267 1 43
leaves plain 3 256 228 13631488 set 56 8 209715200
leaves plain 3 256 228 13631488 delete and 4 1 204 13631488 delete
damages plain 3 256 228 13631488 delete and 3 256 228 22020096 set 16 8 4096
expect "next to a chunk that is wrong: no error" 1 'chunk-missing at 13631488' repair "$WORK/image"
leaves plain 5 256 84 397168884 delete and 5 256 96 7 delete
leaves plain 5 258 12 257 delete and 5 257 96 2 delete

# A leaf without room for the item: its items are spread over its neighbours, in the same order.
items() {
    run_json dump -q --json --tree 5 "$@" | grep -o '"key":.*"size":[0-9]*' | grep -v 3260154230
}
damages plain 5 408 12 403 delete and 5 408 24 3260154230 fill 25 10
is "the plan makes room" "$("$PROGRAM" repair -q -o what "$WORK/image" 2> /dev/null |
    sort -u)" "generation of a leaf with items of its neighbours
leaf with items of its neighbours
pointer to a leaf with items of its neighbours
reference of an inode to its directory"
status "room for an item" 0 "$WORK/image"
is "room for an item: the same items" "$(items --patch "$WORK/fixed.qcow2" "$WORK/image")" \
    "$(items "$fixtures/plain/dev1.img")"
qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img" && repaired_again "room for an item"

# Four full leaves below one node: in one round they all get room, in the next one their items.
full() { # INODE, DIRECTORY, INODE of the file before, its new SIZE
    echo "5 $1 12 $2 delete and 5 $3 108 0 fill 8 10" \
        "and 5 $3 1 0 set 16 8 $4 and 5 $3 1 0 set 24 8 $4"
}
# shellcheck disable=SC2046 # the words of the changes
damages nodesize-4k $(full 306 282 305 1981) and $(full 321 313 320 1982) and \
    $(full 339 313 338 1981) and $(full 351 344 350 1982)
is "room below one node: in one round" \
    "$("$PROGRAM" repair -q -o what "$WORK/image" 2> /dev/null | cut -d ' ' -f 1 | uniq -c |
        grep -A 9 reference | tr -s ' ')" " 4 reference"
status "room below one node" 0 "$WORK/image"
qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img" &&
    repaired_again "room below one node"

# Two inodes have the same name, each with one entry and a reference. A reference with another name.
item='5 264 12 258 set'
# shellcheck disable=SC2086 # the words of a change
leaves plain $item 0 8 2 and $item 11 1 49 and 5 258 84 1602475628 delete and 5 258 96 3 delete \
    and 5 258 96 2 set 0 8 264 and 5 258 1 0 add 16 8 -12
leaves plain 5 264 12 258 set 11 1 122
# One name has two DIR_INDEX, and the index of another one is wrong.
leaves plain 5 396 96 4 set 221 1 49 and 5 397 12 396 set 1010 8 777
leaves plain 5 256 84 397168884 set 0 8 403

# A link to a subvolume without an entry is no proof; nor an old root if the generation is wrong.
damages subvolumes 1 5 156 260 key 5 156 259
is "a link without an entry" "$("$PROGRAM" repair -q -o why "$WORK/image" 2> /dev/null)" \
    "root-link: item (5 156 260) of tree 1"
damages changes super 72 8 7
is "the generation is wrong" \
    "$("$PROGRAM" repair -q -o class_name "$WORK/image" 2> /dev/null | sort -u)" "rolled-back"

# Root items of subvolumes: the block that is their root is proven, but not all of the item.
damages subvolumes 1 256 132 0 delete and 1 260 132 - delete
root=$'loss\t0\troot item of a subvolume'
is "two root items are missing" \
    "$("$PROGRAM" repair -q -o class_name,chosen,what "$WORK/image" 2> /dev/null)" \
    "$root"$'\n'"$root"
rm -f "$WORK/fixed.qcow2"
expect "two root items: repair" 0 . repair --allow loss -f "$WORK/fixed.qcow2" "$WORK/image"
expect "two root items: check" 0 . check --patch "$WORK/fixed.qcow2" "$WORK/image"
is "two root items: the same files" "$("$PROGRAM" sum -q --patch "$WORK/fixed.qcow2" "$WORK/image" |
    cksum)" "$("$PROGRAM" sum -q "$fixtures/subvolumes/dev1.img" | cksum)"
damages subvolumes 1 260 132 - delete and 1 260 144 5 delete
rm -f "$WORK/fixed.qcow2"
expect "a root item and a link: repair" 0 . repair --allow loss -f "$WORK/fixed.qcow2" "$WORK/image"
expect "a root item and a link: check" 0 . check --patch "$WORK/fixed.qcow2" "$WORK/image"
leaves subvolumes 1 257 132 0 delete and 257 256 1 0 block 80 8 5
leaves subvolumes 1 257 132 0 delete and 257 256 1 0 block 88 8 260

# A flipped bit that the checksum includes: of an item, a key, and the header of a block.
repairs 'inode-item: bit 6' plain 5 262 1 0 set 0 8 1073741831
repairs 'name-hash: bit 0' plain 5 256 84 397168884 key 256 84 397168885
repairs 'block-stale: bit 1 of byte 80' plain 5 257 1 0 block 80 8 5
repairs 'block-foreign: bit 1 of byte 88' plain 5 257 1 0 block 88 8 7

# Two items in a leaf exchanged their keys, or keys and places: a bit would explain it, too.
leaves plain 5 395 96 63 key 1 1 1 and 5 395 96 64 key 395 96 63 and 5 1 1 1 key 395 96 64
item='5 333 84 3261943164 block'
# shellcheck disable=SC2086 # the words of a change
leaves dup $item 1435 8 3497450005 and $item 1443 4 7910 and $item 1460 8 3274058209 and \
    $item 1468 4 7946
item='5 397 1 0 block' # and two that are no neighbours
# shellcheck disable=SC2086 # the words of a change
leaves plain $item 1535 1 123 and $item 1543 8 206158433441 and $item 1585 1 121 and \
    $item 1593 8 962072677633

damages changes flip 101 1 5300224 # keys of a node
change "$WORK/image" flip 200 1 5300224
is "two exchanged keys of a node" "$("$PROGRAM" repair -q -o why "$WORK/image" 2> /dev/null)" \
    "no copy of it is good, tree 256"

# Of a block group: nothing is computed from a wrong address or length.
group='block-group-tree 11 38797312 192 -'
# shellcheck disable=SC2086 # the words of a change
{
    repairs 'group-missing: bit 1' $group key 144115188114653184 192 16777216
    repairs 'group-differs: bit 6' $group key 38797312 192 18014398526259200
}
repairs 'group-differs: bit 6' plain 2 63963136 192 - key 63963136 192 1090519040

# Of a device, which the superblocks have right; and of a subvolume in the uuid tree.
repairs 'device-differs: bit 0' plain 3 1 216 1 set 82 1 173
repairs 'device-differs: bit 1' resized-down 3 1 216 1 set 8 8 268435456
repairs 'device-differs: bit 2' resized-down 3 1 216 1 set 8 8 369098752
repairs 'stripe-device: bit 0' plain 3 1 216 1 set 66 1 43
repairs 'stripe-device: bit 3' plain 3 1 216 1 set 0 8 9
repairs 'item-type: bit 0' plain 3 1 216 1 key 1 217 1
leaves plain 3 256 228 22020096 set 64 1 43
repairs 'uuid-.*: bit 4' plain 9 9747775022879163068 251 - set 7 1 16

# Of the free space tree, also if a rebuilt one keeps the item; and of an item that looks like one.
repairs 'free-space-item: bit 3' plain 10 5242880 198 - set 4 4 524288
repairs 'free-space-item: bit 2' dup 4 1 204 22020096 key 1 200 22020096

# Bytes in use, which the superblocks repeat: of block groups, and of devices.
for change in '2 22020096 192 - set 0 8 999424' '3 1 216 1 set 16 8 1048576' \
    '2 22020096 192 - set 0 8 999424 and super 120 8 1912832' \
    '3 1 216 1 set 16 8 1048576 and super 217 8 1048576'; do
    # shellcheck disable=SC2086 # the words of a change
    repairs 'bytes must be' plain $change
done
repairs 'bytes must be' block-group-tree 11 22020096 192 - set 0 8 999424
repairs 'extent-count: item (13651968 168 4096)' plain 2 13651968 168 4096 set 0 8 7
leaves plain 2 13651968 168 4096 set 0 8 9 and 2 13651968 168 4096 set 49 4 7

# Numbers of quota groups are marked as inconsistent; those of simple quotas stay.
damages quota-groups 8 0 242 256 add 8 8 16384 and 8 0 242 257 add 8 8 16384
is "the plan marks the numbers of two groups once" \
    "$("$PROGRAM" repair -q -o class_name,what "$WORK/image" 2> /dev/null)" \
    $'derived\tthe numbers of quota groups are marked as inconsistent'
status "numbers of quota groups" 0 "$WORK/image"
leaves simple-quota 8 0 242 256 add 8 8 16384
# With a wrong extent the numbers are not, since they may be right.
leaves quota-groups 2 13651968 168 - set 0 8 9 and 2 13651968 168 - set 49 4 7

# An inode without links lacks its orphan item.
damages orphans 5 -5 48 266 delete
status "an orphan item" 0 "$WORK/image"
is "an orphan item: the items" \
    "$("$PROGRAM" dump -q -o key --tree 5 --patch "$WORK/fixed.qcow2" "$WORK/image" | cksum)" \
    "$("$PROGRAM" dump -q -o key --tree 5 "$fixtures/orphans/dev1.img" | cksum)"

# A space cache that would let the kernel overwrite files is no longer used.
damages space-cache-v1 cache 435998720 16 add 72 8 4096
status "a wrong space cache" 0 "$WORK/image"

# Items of extents, and references in them, from all trees; the sums follow. Nothing is planned if
# another reference is too much. same_extents NAME FIXTURE: the items are those of the fixture.
same_extents() {
    is "$1: the extent tree" \
        "$("$PROGRAM" dump -q --tree extent --patch "$WORK/fixed.qcow2" "$WORK/image" | cksum)" \
        "$("$PROGRAM" dump -q --tree extent "$fixtures/$2/dev1.img" | cksum)"
}
repairs 'extent-missing: item (30441472 169 0)' plain 2 30441472 169 0 delete
damages plain 2 13651968 168 4096 delete and 2 22020096 192 - set 0 8 999424
status "an extent without an item, and a wrong sum" 0 "$WORK/image"
same_extents "an extent without an item, and a wrong sum" plain
damages relocation 2 30502912 169 - delete and 2 30433280 182 - delete
status "an item and a reference are missing" 0 "$WORK/image"
same_extents "an item and a reference are missing" relocation
leaves plain 2 13651968 168 4096 delete and 5 278 108 0 delete
cp --sparse=always "$fixtures/relocation/dev1.img" "$WORK/image"
for leaf in $(run_json dump -q --tree extent --json "$WORK/image" |
    sed -n 's/.*"logical":\([0-9]*\),"level":0.*/\1/p' | uniq | head -n 3); do
    for place in $("$PROGRAM" map -q -o offset "$fixtures/relocation/dev1.img" "$leaf+4096"); do
        dd if=/dev/zero of="$WORK/image" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc \
            2> /dev/null
    done
done
status "three leaves, one of which begins with a reference" 0 "$WORK/image"
# Leaves that a balance has copied count references by their address.
leaf=$("$PROGRAM" dump -q -o logical --tree extent "$fixtures/block-group-tree/dev1.img" | uniq)
cp --sparse=always "$fixtures/block-group-tree/dev1.img" "$WORK/image"
for place in $("$PROGRAM" map -q -o offset "$WORK/image" "$leaf+16384"); do
    dd if=/dev/zero of="$WORK/image" bs=4096 seek=$((place / 4096)) count=4 conv=notrunc \
        2> /dev/null
done
status "the only leaf of the extent tree, after a balance" 0 "$WORK/image"
same_extents "the only leaf of the extent tree, after a balance" block-group-tree
# Without its block groups a leaf is of no use: they are not known if devices are missing.
cp --sparse=always "$fixtures/incomplete/dev1.img" "$WORK/image"
place=$("$PROGRAM" map -q -o devid,offset "$WORK/image" 30638080+4096 2> /dev/null |
    sed -n 's/^1\t//p')
dd if=/dev/zero of="$WORK/image" bs=4096 seek=$((place / 4096)) count=4 conv=notrunc 2> /dev/null
is "a leaf of the extent tree, devices are missing" \
    "$("$PROGRAM" repair -o why "$WORK/image" 2> /dev/null)" ""
cp --sparse=always "$fixtures/lost-tree-extent/dev1.img" "$WORK/image"
status "a lost extent tree" 0 "$WORK/image"

# Two in one block.
repairs 'link-count: 7 must be 1' plain 5 256 1 0 set 40 4 7 and 5 256 1 0 set 16 8 999
damages plain 5 262 1 0 set 40 4 7 and 5 256 1 0 set 16 8 999
rm -f "$WORK/fixed.qcow2"
expect "two fields" 0 . repair -f "$WORK/fixed.qcow2" "$WORK/image"
expect "two fields: check" 0 . check --patch "$WORK/fixed.qcow2" "$WORK/image"
rm -f "$WORK/fixed.qcow2"
expect "one of two" 1 "do not concern 1 finding" repair --id 2 -f "$WORK/fixed.qcow2" "$WORK/image"
expect "one of two: check" 4 . check --patch "$WORK/fixed.qcow2" "$WORK/image"

# The plan repairs one of three findings, and names the others.
damages plain 5 262 1 0 set 40 4 7 and 5 370 1 0 set 0 8 999 and 5 403 1 0 set 0 8 999
rest='inode-item in inode 370 of tree 5 and 1 more'
expect "one of three" 1 "does not repair 2 findings of 'check': $rest$" repair "$WORK/image"
rm -f "$WORK/fixed.qcow2"
expect "one of three: the overlay" 1 "do not concern 2 findings of 'check': $rest$" \
    repair -f "$WORK/fixed.qcow2" "$WORK/image"
damages plain 2 30441472 169 - set 25 8 7
expect "a place without an inode" 1 "'check': reference-missing at 30441472, .*$" \
    repair "$WORK/image"

# The free space tree, also of a file system with a block group tree.
repairs 'it differs from the extent tree' plain 10 30408704 198 - set 0 4 2147483649
repairs 'it differs from the extent tree' plain 10 13631488 198 - set 0 4 3
for change in '13631488 198 - set 0 4 9' '22020096 198 - set 4 4 1' '22102016 199 - delete' \
    '38830080 199 - key 38830080 199 8388608' '22020096 198 - delete' \
    '38830080 199 - key 1112571904 199 16744448'; do
    # shellcheck disable=SC2086 # the words of a change
    repairs 'it differs from the extent tree' block-group-tree 10 $change
done
# Records that mkfs.btrfs left behind are left out if they are wrong.
damages plain 10 5242880 198 - set 4 4 7
status "an item of no block group" 0 "$WORK/image"

cp --sparse=always "$fixtures/block-group-tree/dev1.img" "$WORK/lost.img"
place=$("$PROGRAM" map -o offset "$WORK/lost.img" 23166976+16384 | head -n 1)
dd if=/dev/zero of="$WORK/lost.img" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc 2> /dev/null
status "a lost leaf" 0 "$WORK/lost.img"
! have qemu-img || {
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    holds "a lost leaf: the repaired image is the undamaged one" \
        same_image "$WORK/fixed.img" "$fixtures/block-group-tree/dev1.img"
}

# The only leaf of a tree that follows from the chunks.
lose_leaf() {
    cp --sparse=always "$fixtures/block-group-tree/dev1.img" "$WORK/lost.img"
    place=$(run_json dump -q --tree "$1" --json "$WORK/lost.img" |
        sed -n 's/.*"logical":\([0-9]*\),"level":0.*/\1/p' | head -n 1)
    place=$("$PROGRAM" map -q -o offset "$WORK/lost.img" "$place+16384" | head -n 1)
    dd if=/dev/zero of="$WORK/lost.img" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc \
        2> /dev/null
}
lose_leaf block-group
holds "a count in the free space tree is wrong, too" \
    change "$WORK/lost.img" 10 13631488 198 - set 0 4 9
status "a lost block group tree" 0 "$WORK/lost.img"
! have qemu-img || {
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    holds "a lost block group tree: the repaired image is the undamaged one" \
        same_image "$WORK/fixed.img" "$fixtures/block-group-tree/dev1.img"
}
lose_leaf free-space
holds "a block group is lost, too, and a reference count is wrong" \
    change "$WORK/lost.img" 11 22020096 192 - delete and 2 13631488 168 20480 set 0 8 7
status "a lost free space tree, and others that it needs" 0 "$WORK/lost.img"
! have qemu-img || {
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    holds "a lost free space tree, and others: the repaired image is the undamaged one" \
        same_image "$WORK/fixed.img" "$fixtures/block-group-tree/dev1.img"
}
lose_leaf dev
is "a lost device tree: the plan says what is lost" \
    "$("$PROGRAM" repair -q -o loss "$WORK/lost.img" 2> /dev/null)" \
    "counters of errors of the devices, and the state of an unfinished replacement"
status "a lost device tree" 0 "$WORK/lost.img"
# Linux mounts no target of a replacement without the item of this tree.
cp --sparse=always "$WORK/lost.img" "$WORK/target.img"
holds "the target of a replacement" change "$WORK/target.img" super 201 8 0
images=("$WORK/lost.img" "$WORK/target.img")
is "a lost device tree and a target: nothing is chosen" \
    "$("$PROGRAM" repair -q -o class_name,chosen "${images[@]}" 2> /dev/null)" $'loss\t0'

# A leaf of a larger chunk tree.
if have mkfs.btrfs; then
    for number in {10..45}; do truncate -s 110M "$WORK/pool$number.img"; done
    mkfs.btrfs -q -n 4096 -d single -m dup "$WORK"/pool*.img > "$WORK/out" 2>&1
    leaf=$("$PROGRAM" dump -q --tree chunk "$WORK"/pool*.img | awk '/^leaf/ { print $2; exit }')
    mapfile -t places < <("$PROGRAM" map -q -o offset "$WORK"/pool*.img "$leaf+4096")
    "$PROGRAM" dump -q --tree chunk "$WORK"/pool*.img > "$WORK/whole"
    for place in "${places[@]}"; do
        printf 'xxxx' | dd of="$WORK/pool45.img" bs=1 seek=$((place + 200)) conv=notrunc status=none
    done
    rm -rf "$WORK/fixed"
    expect "a leaf of the chunk tree: repair" 0 - repair -q -C "$WORK/fixed" -o what \
        "$WORK"/pool*.img
    is "a leaf of the chunk tree: the plan" "$(cat "$WORK/out")" "leaf of the chunk tree"
    is "the repaired leaf of the chunk tree is the undamaged one" "$("$PROGRAM" dump -q \
        --tree chunk --patch "$WORK/fixed/devid-36.qcow2" "$WORK"/pool*.img)" "$(cat "$WORK/whole")"
    rm "$WORK"/pool*.img
else
    skip mkfs.btrfs "a leaf of a larger chunk tree"
fi

# The lost root of the chunk tree, unless a chunk or a device extent may be missing.
cp --sparse=always "$fixtures/lost-tree-chunk/dev1.img" "$WORK/lost.img"
status "a lost chunk tree" 0 "$WORK/lost.img"
is "check reports the rebuilt chunk tree, and nothing else" \
    "$("$PROGRAM" check "$WORK/lost.img" 2> /dev/null | sed 's/^error \(root-lost\) .*; /\1: /')" \
    'root-lost: a rebuilt tree was checked instead [logical 1064960]'
! have qemu-img || {
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    repaired_again "a lost chunk tree"
}
leaves lost-tree-chunk 4 1 204 5242880 delete

# An older leaf of the chunk tree proves nothing if the device tree is lost, too.
lose_leaf dev
dd if="$WORK/lost.img" of="$WORK/lost.img" bs=4096 skip=9476 seek=9480 count=4 conv=notrunc \
    2> /dev/null
holds "a copy of the leaf" change "$WORK/lost.img" at 38830080 3 256 228 - block 48 8 38830080
dd if=/dev/zero of="$WORK/lost.img" bs=4096 seek=9476 count=4 conv=notrunc 2> /dev/null
is "a lost chunk tree and device tree" \
    "$("$PROGRAM" repair -q -o what "$WORK/lost.img" 2> /dev/null)" ""

# The last copy of the superblock has a flipped bit.
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/super.img"
dd if=/dev/zero of="$WORK/super.img" bs=4096 seek=16384 count=1 conv=notrunc 2> /dev/null
printf '\1' | dd of="$WORK/super.img" bs=1 seek=$((65536 + 2599)) conv=notrunc 2> /dev/null
is "a superblock with a flipped bit" \
    "$("$PROGRAM" repair -o class_name,offset "$WORK/super.img" 2> /dev/null)" \
    $'checksum\t65536\nchecksum\t67108864'
status "a superblock with a flipped bit" 0 "$WORK/super.img"

# Only the checksum of a leaf does not match: it gets a new one, if that is asked for.
# seals NAME PLAN COPIES BYTE BYTES: changes bytes of this many mirrors of a leaf, whose last 160
# bytes are the item of an inode.
seals() {
    cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/image"
    for place in $(head -n "$3" <<< "$leaf_places"); do
        printf '%b' "$5" |
            dd of="$WORK/image" bs=1 seek=$((place + $4)) conv=notrunc status=none
    done
    is "$1: the class of the change" \
        "$("$PROGRAM" repair -q -o class_name,chosen "$WORK/image" 2> /dev/null)" "$2"
}
leaf=$(run_json dump -q --tree fs --json "$fixtures/dup/dev1.img" |
    sed -n 's/.*"logical":\([0-9]*\),"level":0.*/\1/p' | head -n 1)
leaf_places=$("$PROGRAM" map -q -o offset "$fixtures/dup/dev1.img" "$leaf+16384")
end=$((16384 - 160))
seals "a wrong time" $'resealed\t0' 2 $((end + 140)) '\x11\x22'
rm -f "$WORK/fixed.qcow2"
expect "a wrong time: not by default" 1 . repair -f "$WORK/fixed.qcow2" "$WORK/image"
expect "a wrong time: repair" 0 damage repair --allow resealed -f "$WORK/fixed.qcow2" "$WORK/image"
expect "a wrong time: check" 0 . check --patch "$WORK/fixed.qcow2" "$WORK/image"
! have qemu-img || {
    qemu-img convert -O raw "$WORK/fixed.qcow2" "$WORK/fixed.img"
    repaired_again "a wrong time"
}
seals "an impossible mode" "" 2 $((end + 52)) '\xff\xff'
seals "another generation" "" 2 80 '\x55\x55'
seals "a good mirror" $'identical\t1' 1 $((end + 140)) '\x11\x22'
seals "two bad mirrors" $'resealed\t0' 2 $((end + 140)) '\x11\x22'
printf '\7\7' | dd of="$WORK/image" bs=1 seek=$(($(tail -n 1 <<< "$leaf_places") + 9000)) \
    conv=notrunc status=none
is "two copies that differ have an empty plan" \
    "$("$PROGRAM" repair -q -o class_name "$WORK/image" 2> /dev/null)" ""

# A lost root of a log tree: no mount succeeds, and the log is given up if that is asked for.
cp --sparse=always "$fixtures/log-tree/dev1.img" "$WORK/log.img"
for place in 40599552 74153984; do
    dd if=/dev/zero of="$WORK/log.img" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc \
        2> /dev/null
done
is "the plan removes a lost log only if that is requested" \
    "$("$PROGRAM" repair -o id,class_name,chosen "$WORK/log.img" 2> /dev/null)" \
    $'1\tloss\t0'
rm -f "$WORK/fixed.qcow2"
expect "a lost log: repair" 0 damage repair --id 1 -f "$WORK/fixed.qcow2" "$WORK/log.img"
expect "a lost log: check" 0 . check --patch "$WORK/fixed.qcow2" "$WORK/log.img"

# A part of a log: the plan lists files that lose their last changes.
cp --sparse=always "$fixtures/log-tree/dev1.img" "$WORK/part.img"
for place in 40583168 74137600; do
    dd if=/dev/zero of="$WORK/part.img" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc \
        2> /dev/null
done
is "a part of a log" "$("$PROGRAM" repair -o loss "$WORK/part.img" 2> /dev/null |
    grep -c 'to 23 inodes after the last commit: /docs/letters, .*/logged-0.*, \.\.\.$')" 1

# Lost roots of the free space tree and of the uuid tree.
status "free space tree" 0 "$fixtures/lost-tree-free-space/dev1.img"
status "uuid tree" 0 "$fixtures/lost-tree-uuid/dev1.img"

# Nothing says what the mode of a file was, or a number of bytes if the extents are in doubt, too.
leaves plain 5 262 1 0 set 52 4 0
leaves plain 5 262 1 0 set 24 8 12345 and 5 262 108 0 set 8 8 3
finish
