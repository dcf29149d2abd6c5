#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# File systems whose critical trees are lost: superblocks, chunk tree, root tree.
# All files are still found.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"

# images FIXTURE: copies of its images, in the array `copies`.
images() {
    local file
    copies=()
    "$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "$1" || return
    for file in "$BUILD/fixtures/$1"/dev*.img; do
        copies+=("$WORK/$1-${#copies[@]}")
        cp --sparse=always "$file" "${copies[-1]}"
    done
}

# places MEMBER|ADDRESS: path and offset of all mirrors of the block at an address, or of the root
# block that this member of the superblock points to.
places() {
    local logical=$1 devices=() copy
    for copy in "${copies[@]:1}"; do devices+=(--device "$copy"); done
    [[ $1 != *[!0-9]* ]] ||
        logical=$(run_json super --json "${copies[0]}" | grep -o "\"$1\":[0-9]*" | head -n 1)
    "$PROGRAM" map -o kind,offset,device "${devices[@]}" "${copies[0]}" "${logical##*:}" |
        awk -F '\t' '$1 != "Q" { print $3, $2 }'
}

# erase MEMBER|ADDRESS...: zeroes these blocks, in all copies. `super` are the superblocks.
erase() {
    local member path offset
    for member; do
        if [ "$member" = super ]; then
            for path in "${copies[@]}"; do printf '%s 65536\n%s 67108864\n' "$path" "$path"; done
        else
            places "$member"
        fi
    done > "$WORK/places"
    while read -r path offset; do
        dd if=/dev/zero of="$path" bs=4096 seek=$((offset / 4096)) count=1 conv=notrunc status=none
    done < "$WORK/places"
}

# all DESCRIPTION FIXTURE REGEX OPTIONS...: exactly the paths of the fixture must be listed.
all() {
    local what=$1 fixture=$2 expression=$3
    shift 3
    expect "$what" "${status:-1}" "$expression" walk -0 "$@" "${copies[@]}"
    LC_ALL=C sort -z "$WORK/out" > "$WORK/have"
    list "$fixture/paths0" > "$WORK/want"
    holds "$what: walk lists the paths of the fixture" cmp "$WORK/want" "$WORK/have"
}

for fixture in dup raid1-2 raid10-4 raid5-3; do
    images "$fixture"
    erase root chunk_root
    all "$fixture: no chunk tree, no root tree" "$fixture" 'the chunk tree is lost'
done

for fixture in dup-metadata-0 raid1-metadata-0; do # as on a disk with unreadable sectors
    images "$fixture"
    erase root 2> /dev/null
    all "$fixture: the other mirror of each block is zeros" "$fixture" 'the root tree was rebuilt'
done

# Leaves of the root tree. `check` and `repair` are about what is on the disk.
images root-tree-levels
leaves=$("$PROGRAM" dump --tree root "${copies[@]}" | sed -n 's/^leaf \([0-9]*\) items.*/\1/p')
holds "the root tree has several leaves" test "$(wc -w <<< "$leaves")" -gt 1
for leaf in $(sed -n '1p;2p;9p;$p' <<< "$leaves"); do
    images root-tree-levels
    erase "$leaf"
    all "without the leaf $leaf of the root tree" root-tree-levels \
        'parts of the root tree cannot be read'
    expect "check without the leaf $leaf of the root tree" 4 . check "${copies[@]}"
    holds "check finds the leaf $leaf of the root tree" out_has \
        "^error block-checksum ROOT_TREE .*logical $leaf,"
    holds "check does not call the root of the root tree lost" eval '! out_has root-lost'
done

# A bit in the key of a root item is flipped: its root block says which tree it is.
for key in '257 132 0 key 273 132 0' '256 132 0 key 0 132 0' '259 132 0 key 259 133 0' \
    '5 132 0 key 7 132 0' '9 132 0 key 11 132 0' '7 132 0 key 6 132 0' '2 132 0 key 2 133 0'; do
    images subvolumes
    # shellcheck disable=SC2086 # the words of a change
    holds "the key of a root item is changed: $key" change "${copies[0]}" 1 $key
    status=0 all "the key of a root item is wrong: $key" subvolumes \
        'a bit in the key of the root item of tree .* is flipped'
    expect "the key of a root item is wrong: $key: sum" 0 'is flipped' sum -0 "${copies[0]}"
    holds "all data are read: $key" sums_match subvolumes
    expect "the key of a root item is wrong: $key: usage" 0 'is flipped' usage --raw "${copies[0]}"
    holds "the space in use is known: $key" grep -q 'Used:.* 892928$' "$WORK/out"
done
images subvolumes
holds "a root item is deleted" change "${copies[0]}" 1 259 132 0 delete
expect "a subvolume without a root item" 1 'subvolume 259 has no root item' walk "${copies[0]}"

# The loss of a leaf does not hide the log, even if the extent tree does not show which leaves are
# in use, and the blocks of the tree on the disk are still known.
images root-tree-levels
extents=$("$PROGRAM" dump --tree extent "${copies[@]}" | sed -n 's/^leaf \([0-9]*\) items.*/\1/p')
root=$("$PROGRAM" dump --tree root "${copies[@]}" | sed -n 's/^node \([0-9]*\) level.*/\1/p')
kept=$(sed -n 3p <<< "$leaves")
owner() { "$PROGRAM" owner -q "${copies[0]}" "$kept" 2> /dev/null; }
hidden() { "$PROGRAM" free -q -o kind,logical "${copies[0]}" 2> /dev/null | grep '^hidden'; }
owner > "$WORK/owner"
hidden > "$WORK/hidden"
holds "the superblocks name a log" python3 - "$ROOT/tests/support" "${copies[0]}" "$kept" << 'EOF'
import struct
import sys

sys.path.insert(0, sys.argv[1])
from crc32c import checksum

with open(sys.argv[2], 'r+b') as image:
    for offset in 65536, 67108864:
        image.seek(offset + 32)
        block = bytearray(image.read(4064))
        struct.pack_into('<Q', block, 64, int(sys.argv[3]))
        image.seek(offset)
        image.write(checksum(block))
        image.seek(offset + 32)
        image.write(block)
EOF
erase "$(sed -n 9p <<< "$leaves")"
holds "a leaf of a damaged root tree has its owner" cmp "$WORK/owner" <(owner)
is "versions are in the root tree on the disk" "$("$PROGRAM" versions -q -o tree_root \
    "${copies[0]}" /set-0/volume-0/file 2> /dev/null | tail -n 1)" "$root"
is "dump prints the root tree on the disk" \
    "$("$PROGRAM" dump --tree root "${copies[0]}" 2> /dev/null | grep -c "^leaf $kept items")" 1
is "tree-stats is about the root tree on the disk" "$("$PROGRAM" tree-stats --tree root \
    "${copies[0]}" 2> /dev/null | sed -n 's/.*On level 0: *//p')" "$(($(wc -w <<< "$leaves") - 1))"
holds "nothing but lost blocks is hidden" cmp "$WORK/hidden" <(hidden)
"$PROGRAM" metadump -q -f "$WORK/dump" "${copies[0]}" 2> /dev/null
expect "a metadump of a damaged root tree" 1 'parts of the root tree' dump -B "$kept" "$WORK/dump"
holds "it contains the leaves of the root tree" out_has "^leaf $kept items"
erase "$(sed -n 3p <<< "$extents")"
all "a log, and a leaf of the extent tree is lost, too" root-tree-levels 'it is replayed' -v

images root-tree-levels
erase "$(sed -n 9p <<< "$leaves")" \
    "$("$PROGRAM" dump --tree free-space "${copies[@]}" | sed -n 's/^leaf \([0-9]*\) items.*/\1/p')"
expect "a plan without a leaf of the root tree" 1 "parts of the root tree" repair "${copies[0]}"
holds "the header of a new leaf comes from the root tree on the disk" \
    out_has 'leaf of the free space tree'

images log-tree
erase root
expect "a log without a root tree" 1 'after generation 7: it is replayed' sum -0 -v "${copies[0]}"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" log-tree
holds "the log is replayed on the rebuilt trees" \
    same_bytes <("$PROGRAM" sum -0 "$BUILD/fixtures/log-tree/dev1.img") "$WORK/out"
expect "root items" 1 'the root tree was rebuilt' dump --tree root "${copies[0]}"
is "say that all blocks may be shared with snapshots" "$(awk '$3 == "root_dirid" { latest = $2 }
    $1 == "last_snapshot" { print $2 == latest }' "$WORK/out" | sort | uniq -c | xargs)" '8 1'
images levels-3 # the remaining part of the extent tree is used, but is not complete
erase root "$("$PROGRAM" dump --tree extent "${copies[0]}" |
    sed -nE 's/^node ([0-9]+) level.*/\1/p')"
all "neither a root tree nor the root of the extent tree" levels-3 \
    'some may be older or deleted'
images subvolumes # the top-level subvolume is lost
python3 "$ROOT/tests/support/erase_trees.py" 5 "${copies[@]}"
expect "a subvolume that nothing leads to" 0 - walk --subvol 263 "${copies[0]}"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" subvolumes
cp "$WORK/out" "$WORK/third"
holds "a subvolume that nothing leads to has all its files" diff "$WORK/out" \
    <("$PROGRAM" walk --subvol 263 "$BUILD/fixtures/subvolumes/dev1.img")
expect "extraction of it" 0 - extract --subvol 263 -C "$WORK/extracted" "${copies[0]}"
is "extraction of a lost subvolume makes all its files" \
    "$(find "$WORK/extracted" -type f | wc -l)" "$(wc -l < "$WORK/third")"
images subvolumes
erase root chunk_root super
expect "no superblock" 2 'is not a btrfs.*; try --scan' "${copies[0]}"
all "no superblock, no tree" subvolumes 'no superblock: from tree blocks, it is device 1' --scan
# Copies of tree blocks in the wrong place, as in a file that is itself an image.
cp --sparse=always "${copies[0]}" "$WORK/own"
images plain
cat "$WORK/own" "${copies[0]}" "$WORK/own" > "$WORK/planted"
copies=("$WORK/planted")
all "a copy of itself, and another file system" subvolumes 'the root tree was rebuilt' --scan
images past # one of its files is an image of another btrfs
erase root chunk_root super
all "another btrfs in a file" past 'no superblock: from tree blocks, it is device 1' --scan
expect "which is one still" 1 'no superblock' cat --scan "${copies[0]}" /inner
"$PROGRAM" cat --scan -q "${copies[0]}" /inner > "$WORK/inner"
is "the inner btrfs has its own files" "$("$PROGRAM" "$WORK/inner")" /planted
images sectorsize-16k
erase root chunk_root super
all "the size of sectors is found" sectorsize-16k 'the root tree was rebuilt' --scan
expect "and makes the right checksums" 1 "the root tree was rebuilt" sum --scan "${copies[@]}"
is "all files of sectors of 16 KiB have checksums" \
    "$(wc -l < "$WORK/out")" "$(tr -dc '\0' < "$WORK/want" | wc -c)"
# One of several images has no superblock: the blocks stored on it show which device it is.
images raid0-2
copies=("${copies[1]}" "${copies[0]}")
whole=("${copies[@]}")
copies=("${whole[0]}")
erase super
copies=("${whole[@]}")
status=0 all "a device without a superblock, with half of the trees" raid0-2 \
    'is device 2: blocks of it'
is "a device without a superblock is not missing" \
    "$("$PROGRAM" devices -q -o device_state "${copies[@]}" | uniq)" present
images data-raid0-3 # on the third device, all but data are lost
dd if=/dev/zero of="${copies[2]}" bs=64K count=613 conv=notrunc status=none
dd if=/dev/zero of="${copies[2]}" bs=4K seek=16384 count=1 conv=notrunc status=none
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" data-raid0-3
expect "a device with nothing but data" 0 'data-raid0-3-2 is device 3: blocks of it' \
    sum -0 "${copies[0]}" --device "${copies[1]}" --device "${copies[2]}"
is "a device with nothing but data is not missing" "$(grep -c 'is missing' "$WORK/err")" 0
holds "a device with nothing but data completes the contents" sums_match data-raid0-3
dd if=/dev/zero of="${copies[2]}" bs=1M count=96 conv=notrunc status=none
expect "one has no superblock" 1 'data-raid0-3-2 is not used: no superblock' "${copies[@]}"
is "an image without tree blocks does not replace its device" \
    "$(grep -c 'device 3 (uuid .*-.*) is missing' "$WORK/err")" 1
images raid1-2 # nothing contains the uuid
python3 "$ROOT/tests/support/erase_trees.py" 3 "${copies[@]}"
expect "a device that nothing describes" 1 'device 2 \(uuid not known\) is missing' \
    devices --json "${copies[0]}"
is "a device that nothing describes is only a number" "$(tail -n 1 "$WORK/out")" \
    '{"devid":2,"device_state":"missing","incomplete_chunks":0}'
is "info prints a device of unknown size" "$("$PROGRAM" info -q "${copies[0]}" | grep 'Device 2')" \
    'Device 2:      missing, size not known'
# The device tree has the location of all chunks, even of those without used space.
images plain
"$PROGRAM" chunks -o logical,length,chunk_type,profile,stripes "${copies[0]}" > "$WORK/chunks"
python3 "$ROOT/tests/support/erase_trees.py" 3 "${copies[@]}"
expect "no chunk tree" 1 'the chunk tree is lost' \
    chunks -o logical,length,chunk_type,profile,stripes \
    "${copies[0]}"
holds "the device tree has the location of all chunks" cmp "$WORK/out" "$WORK/chunks"
images raid10-4 # too few sums are known of its data
python3 "$ROOT/tests/support/erase_trees.py" 3 "${copies[@]}"
all "all device extents of a RAID10 are found, but not the order of its stripes" raid10-4 \
    'chunk 105906176 \(RAID10, 134217728 bytes of data\) is lost: the order of its stripes'
images data-raid0-3 # the checksums of its data are in metadata, which must be known before
python3 "$ROOT/tests/support/erase_trees.py" 3 "${copies[@]}"
expect "a RAID0 of data without a chunk tree" 1 'the chunk tree is lost' \
    chunks -o logical,stripes "${copies[@]}"
holds "checksums prove the order of the stripes of a RAID0" \
    out_has $'^139395072\t1:61145088,2:40173568,3:40173568$'
# Neither tree with the locations of chunks exists: they are derived from the tree blocks in them,
# which is not possible for a striped data chunk.
images raid0-2
python3 "$ROOT/tests/support/erase_trees.py" 3,4 "${copies[@]}"
all "neither a chunk tree nor a device tree" raid0-2 \
    'chunk 105906176 \(RAID0, 134217728 bytes of data\) is lost: its device extents'
is "the locations of chunks are derived from their tree blocks" \
    "$("$PROGRAM" chunks -q -o logical,stripes "${copies[@]}" | tail -n 1)" \
    $'38797312\t1:30408704,2:9437184'
erase super
all "no superblocks either: any number is right for a device" raid0-2 \
    '-1: no superblock: from tree blocks, it is device 2 of' --scan
images data-clones
python3 "$ROOT/tests/support/erase_trees.py" 3,4 "${copies[@]}"
expect "data are found by their checksums" 1 'the chunk tree is lost' sum -0 "${copies[0]}"
holds "all data are found by their checksums" sums_match data-clones
images data-clones # an interrupted change of the type of all checksums
for change in 'data 2 renamed' 'blocks 2 2'; do
    # shellcheck disable=SC2086 # several words
    holds "an image: $change" \
        python3 "$ROOT/tests/support/unfinished_change.py" "${copies[0]}" $change
done
python3 "$ROOT/tests/support/erase_trees.py" 3,4 "${copies[@]}"
expect "checksums of two types" 1 'the chunk tree is lost' sum -0 "${copies[0]}"
holds "all data are found by checksums of two types" sums_match data-clones
images data-raid0-3
python3 "$ROOT/tests/support/erase_trees.py" 3,4 "${copies[@]}"
expect "too few tree blocks" 2 'chunk 38731776 \(RAID0, .* of tree blocks\) is lost: its' \
    "${copies[@]}"
# Without the root tree and the extent tree, subvolume B is shown from an older root. Since then, 12
# of its files were deleted, and files of A are where their data were.
zstd -qd --sparse "$ROOT/tests/data/reused.img.zst" -o "$WORK/reused"
expect "an older root" 1 'generation 7, were deleted and overwritten' sum "$WORK/reused"
is "deleted files have no sums" "$(grep -c '/B/file' "$WORK/out")" 0
is "all other files have their sums: snapshots, a reflink, written preallocated space" \
    "$(LC_ALL=C sort "$WORK/out" | sha256sum | cut -c 1-16)" 2c20b0d0f73cd3ad
expect "rescue counts an older root" 1 . rescue --json "$WORK/reused"
is "overwritten files are lost" "$(python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["by_subvolume"]
print(*(sum(row[kind + "_files"] for row in rows) for kind in sys.argv[2:]))' \
    "$WORK/out" verified unverified partly lost)" "441 0 0 12"
# Without superblocks, and with the extent tree of the commit before the last one, subvolumes are
# shown as of the last one: one file was deleted, and three were made.
zstd -qd --sparse "$ROOT/tests/data/older-extent-tree.img.zst" -o "$WORK/newer"
# In the commit before, the root of /B was written twice; the extent tree names one of the blocks.
python3 - "$WORK/newer" "$ROOT/tests/support" << 'EOF'
import struct, sys
sys.path.append(sys.argv[2])
from crc32c import checksum
with open(sys.argv[1], "r+b") as image:
    image.seek(326 * 16384)
    block = bytearray(image.read(16384).replace(b"older", b"never"))
    struct.pack_into("<Q", block, 48, 340 * 16384)
    image.seek(340 * 16384)
    image.write(checksum(bytes(block[32:])) + block[4:])
EOF
expect "an older extent tree" 1 'with 8 trees of generation 8; some may be older' \
    sum --scan "$WORK/newer"
is "newer files are shown, and none that was deleted" \
    "$(sed 's/.* //' "$WORK/out" | LC_ALL=C sort | tr '\n' ' ')" \
    "/B/older /newer-0 /newer-1 /newer-2 /older-1 /older-2 "
# Without the newest checksum tree, too, the newer files would have no checksums.
dd if=/dev/zero of="$WORK/newer" bs=16K seek=337 count=1 conv=notrunc status=none
expect "an older extent tree and older checksums" 1 'generation 7; generation 8 is not complete' \
    sum --scan "$WORK/newer"
holds "older files are whole" grep -q '/older-0$' "$WORK/out"
# Neither a superblock nor any leaf of the chunk tree: the striped devices can only be told apart
# with the extent tree.
images raid10-4
erase super
for copy in "${copies[@]}"; do
    offset=1 && [ "$copy" = "${copies[0]}" ] && offset=21
    dd if=/dev/zero of="$copy" bs=1M seek="$offset" count=8 conv=notrunc status=none
done
all "no superblock, no system chunk" raid10-4 'the chunk tree is lost' --scan
finish
