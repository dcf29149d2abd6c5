#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: contradictions in blocks with a correct checksum that one flipped bit explains. Each test
# flips a bit of a healthy image and gives the block a new checksum; the finding must name the bit.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes old-4k old-16k || exit 1
image=$fixtures/plain/dev1.img

# flip LOGICAL BYTE BIT: flips this bit of a tree block of the image of the test.
flip() {
    mapfile -t offsets < <("$PROGRAM" map -o offset "$image" "$1")
    change "$WORK/image" flip "$2" "$3" "${offsets[@]}"
}

# flipped LOGICAL BYTE BIT: checks the image with this flipped bit.
flipped() {
    cp --sparse=always "$image" "$WORK/image"
    holds "flip $*" flip "$@"
    run_json check --json --all "$WORK/image" > "$WORK/out" 2> /dev/null
}

# names CODE VALUE LOGICAL BYTE BIT: a finding of this code must name the flipped bit, and the value
# that would be in order; none may name another bit.
names() {
    local code=$1 value=$2 place
    shift 2
    flipped "$@"
    place="\"flipped_block\":$1,\"flipped_byte\":$(($2)),\"flipped_bit\":$3"
    holds "a finding $code names bit $3 of byte $2 of block $1" \
        grep -q "\"code\":\"$code\".*bit $3 of byte 0x$(printf '%x' "$2") .*$(
        )is probably flipped: $value would be in order\".*$place" "$WORK/out"
    is "no finding names another bit than bit $3 of byte $2 of block $1" \
        "$(grep flipped_byte "$WORK/out" | grep -cv "$place")" 0
    holds "a note suspects the memory, for bit $3 of byte $2 of block $1" \
        grep -q '"severity":"note","code":"memory-suspected"' "$WORK/out"
}

leaf=30441472 node=31129600
item=$((101 + 5 * 25)) # (256 DIR_ITEM 2634002968), "youngest"
data=$((101 + 15967))

# Order and place of items.
names block-keys 256 $leaf $item 0
names block-keys 2634002968 $leaf $((item + 12)) 7
names block-layout 15967 $leaf $((item + 17)) 3
names block-layout 38 $leaf $((item + 21)) 0
names block-keys 380 $node $((101 + 5 * 33 + 1)) 7

names item-type 1 $leaf $((101 + 36 * 25 + 8)) 3 # of INODE_ITEM 258
names block-layout 16259 31162368 $((101 + 17)) 5 # of the first of two items

# The header, compared with the pointer of the parent.
names block-foreign $leaf $leaf 50 3
names block-stale 7 $leaf 80 3
names block-keys 110 $leaf 96 0
names block-foreign 0 $leaf 100 1
names block-header 72057594037927937 $leaf 58 5

# The pointer of the parent, in a node and in a root item; another block proves which is wrong.
names block-stale 7 $node $((101 + 33 + 25)) 3
names block-keys 274 $node $((101 + 33)) 5
names block-missing 30638080 $node $((101 + 33 + 17 + 5)) 2
names block-owner 5 $leaf 90 3

# Reference counts.
names extent-count 1 31178752 $((0x3e04)) 5

# The place of the only item, or of the last one, differs in several bits: the leaf still has it.
for place in '9 9747775022879163068 251 - block 118 4 1234' '7 -10 128 64225280 block 143 4 1234' \
    '7 -10 128 64225280 block 147 4 1234'; do
    cp --sparse=always "$image" "$WORK/place.img"
    # shellcheck disable=SC2086 # the words of a change
    holds "$place: a place is wrong" change "$WORK/place.img" $place
    run_json check --json --all "$WORK/place.img" > "$WORK/out" 2> /dev/null
    holds "$place: the place is found" grep -q '"code":"block-layout"' "$WORK/out"
    is "$place: but no bit of the number of items is named" \
        "$(grep -c flipped_byte "$WORK/out")" 0
done

# An extent and the reference to it: a file or a tree block shows what is right.
extents=31178752
names reference-extra 405 $extents 16287 4 # the inode in the extent tree
names reference-missing 1 $extents 15342 0 # the tree in the extent tree
names extent-unreferenced 13631488 30638080 15355 7 # the address in a file
names extent-differs 200704 31145984 5141 3         # the length in one of two file extents
holds "both lengths of the extent are told" \
    grep -q 'extent of 724992 bytes, the extent item has 200704;' "$WORK/out"

# A file extent with the number of another inode is not blamed on the extent tree.
cp --sparse=always "$image" "$WORK/moved.img"
holds "a file extent of another inode" change "$WORK/moved.img" 5 278 108 0 key 279 108 0
run_json check --json --all "$WORK/moved.img" > "$WORK/out" 2> /dev/null
holds "its reference is missing" grep -q '"code":"reference-missing"' "$WORK/out"
is "but no bit of a reference is named" \
    "$(grep '"code":"reference' "$WORK/out" | grep -c flipped_byte)" 0

# A preallocated extent may lie behind the end of the file: both places of it are possible.
flipped $extents $((101 + 15161 + 43)) 2
holds "the places of a preallocated extent differ" grep -q '"code":"reference-extra"' "$WORK/out"
is "but no finding names a bit of them" "$(grep -c flipped_byte "$WORK/out")" 0

# A name and its hash.
names name-hash 121 $leaf $((data + 30)) 1

# Numbers that other items add up to: links, bytes, the size of a directory.
inode=$((101 + 12524)) # (262 INODE_ITEM 0)
names link-count 1 $leaf $((inode + 40)) 3
names file-bytes 17 $leaf $((inode + 24)) 5
names file-size 17 $leaf $((inode + 16)) 4
names directory-size 140 $leaf $((101 + 16123 + 16)) 6

# The inode and the name in one of the three items of a name.
index=$((101 + 15285)) # (256 DIR_INDEX 13), "youngest"
names inode-missing 402 $leaf $data 6
names inode-missing 402 $leaf $((index + 1)) 2
names entry-missing 110 $leaf $((index + 30 + 3)) 2
names inode-ref-missing 49 $leaf $((101 + 12508 + 10 + 1)) 3
names inode-ref-missing 258 $leaf $((101 + 81 * 25 + 9 + 1)) 6 # the key of an INODE_REF
names entry-index 2 $leaf $((101 + 12508 + 1)) 5

names block-keys 5 31244288 $((101 + 3 * 25 + 2)) 7 # the key of a root item, not the owners

# A root item that is under the number of another tree: the block is not at fault.
flipped 31244288 $((101 + 10 * 25 + 4)) 5
holds "the block of a lost tree is foreign" grep -q '"code":"block-foreign"' "$WORK/out"
is "no finding names a bit of that block" "$(grep -c flipped_byte "$WORK/out")" 0

# The superblock decides between the item of a device and the device extents, the superblock and the
# sum of all block groups, and a device extent and a block group confirm a chunk.
names device-differs 134217728 22052864 0x3fa6 2
names device-used 109051904 22052864 0x3fae 2
names device-differs 172 22052864 0x3ff0 2 # the fsid
names group-used 24576 $extents 0x3fb3 2
names group-missing 13631488 $extents 0x7f 6
names group-differs 8388608 $extents 0x89 5
names device-extent-differs 13631488 30900224 0x3fb8 2
names device-extent-differs 8388608 30900224 0x3fc0 2
names device-extent-extra 105906176 30900224 $((101 + 6 * 25 + 9 + 4)) 2
names device-differs 1 22052864 $((101 + 9)) 2         # the devid in its key
names stripe-device 1 22052864 $((101 + 16185)) 2      # and in the item
names stripe-device 42 22052864 $((101 + 16185 + 66)) 2 # the uuid of the device
names stripe-device 42 22052864 $((101 + 16105 + 64)) 2 # and in a stripe

# A wrong stripe of the chunk tree hides a mirror of it, which would stay as it is.
flipped 22052864 $((101 + 15993 + 64)) 2
holds "a stripe of the chunk tree differs" grep -q '"code":"stripe-device"' "$WORK/out"
is "but no bit of it is named" "$(grep -c flipped_byte "$WORK/out")" 0

# Free space, which has to be where no extents are.
names free-space-count 1 31195136 0x3fe8 2
names free-space-missing 8388608 31195136 0xd4 5
names free-space-differs 13656064 31195136 0xe4 5
names free-space-differs 8364032 31195136 0xed 5

# The only record of an empty block group is no FREE_SPACE_INFO.
cp --sparse=always "$image" "$WORK/empty.img"
holds "an empty block group without FREE_SPACE_INFO" change "$WORK/empty.img" \
    10 63963136 198 - delete and 10 64425984 199 - key 63963136 199 16777216
run_json check --json --all "$WORK/empty.img" > "$WORK/out" 2> /dev/null
holds "the information is missing" grep -q '"code":"free-space-missing"' "$WORK/out"
is "but no bit of the record is named" "$(grep -c flipped_byte "$WORK/out")" 0

# The type of a file: two of both entries and the mode agree.
names entry-type 2 $leaf 0x3da1 2
names entry-type 16877 $leaf 0x3b8d 6

# The two items of a link between subvolumes, the entry decides; and the number next to a uuid.
image=$fixtures/subvolumes/dev1.img
names root-link 256 31834112 0x3ab4 2
names root-link 6 31834112 0x3abc 2
names root-link 272 31834112 0x1e7 5
names root-link 104 31834112 0x30c4 2
names uuid-missing 265 31457280 0x3ff8 2

# The two entries of a subvolume: the other one leads to it.
names entry-missing 256 31670272 $((101 + 15992 + 1)) 6
names entry-missing 256 31670272 $((101 + 15170 + 2)) 2
image=$fixtures/plain/dev1.img

# misleads LOGICAL BYTE BIT: it is found, but another bit explains it as well: none may be named.
misleads() {
    flipped "$@"
    holds "bit $3 of byte $2 of block $1 is found" grep -q '"severity":"error"' "$WORK/out"
    is "no finding names a bit for bit $3 of byte $2 of block $1" "$(grep -c flipped_byte \
        "$WORK/out")" 0
}

# A leaf that ends too early also ends a file; a block of a snapshot is like the one it replaces.
image=$fixtures/old-4k/dev1.img
misleads 30932992 96 3
misleads 31244288 96 1
image=$fixtures/old-16k/dev1.img
misleads 31375360 89 0
image=$fixtures/plain/dev1.img

# Nothing in a leaf of UUIDs shows its transaction. So it may be an earlier version, after a lost
# write. A generation is wrong if the block has newer children, or if it is 0.
misleads 30539776 80 2
names block-stale 8 31129600 80 3
names block-stale 8 31162368 80 3

# The parent expects an earlier transaction than the block and its extent item have.
names block-stale 7 $node $((101 + 25)) 0

# A superblock that is older than the trees: no bit of their items is flipped.
cp --sparse=always "$image" "$WORK/image"
holds "a disk has lost the last superblocks" change "$WORK/image" super 72 8 6
run_json check --json --all "$WORK/image" > "$WORK/out" 2> /dev/null
holds "items are newer than the superblock" grep -q '"code":"inode-item"' "$WORK/out"
is "but no bit of an item is named" "$(grep -c flipped_byte "$WORK/out")" 0

# Two flipped bits are not one, and a healthy image has none.
flipped $leaf 80 3
holds "a second bit" flip $leaf 80 5
expect "two flipped bits" 4 . check "$WORK/image"
holds "a generation with two flipped bits is an error" out_has '^error block-stale'
is "no finding explains two flipped bits by one" "$(grep -c 'flipped\|memory' "$WORK/out")" 0
expect "no flipped bit" 0 . check "$image"
is "a healthy image has no flipped bit" \
    "$(cat "$WORK/out" "$WORK/err" | grep -c 'flipped\|memory')" 0
finish
