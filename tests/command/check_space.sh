#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: extents, references, block groups, free space, checksums, chunks, devices and superblocks
# of images that the kernel made, and what is found if one number in them is another one.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain data-clones relocation converted mixed \
    deletion-begun \
    space-cache-v1 old-4k raid5-3 raid10-4 sprout block-group-tree simple-quota log-tree \
    quota-groups extent-tree-v2 stripe-tree-raid10 truncated subvolumes superblock-lost verity \
    lost-tree-extent lost-tree-csum lost-tree-free-space lost-tree-fs || exit 1

# codes: the codes of the last `expect`, without the notes that healthy images have.
codes() {
    grep -E '^(error|warning|note) ' "$WORK/out" | awk '{ sub(":", "", $2); print $2 }' |
        grep -v -e free-space-extra -e qgroup-unchecked | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# finds NAME CODES CHANGE...: the fixture or file NAME with this change has findings of exactly
# these kinds.
finds() {
    local image=$1 codes=$2 status=4
    [ -f "$image" ] || image=$fixtures/$1/dev1.img
    shift 2
    cp --sparse=always "$image" "$WORK/image"
    holds "change $*" change "$WORK/image" "$@"
    case $codes in checksum-unwanted | space-cache-damaged | space-cache-stale) status=0 ;; esac
    expect "$codes: $*" $status - check -q "$WORK/image"
    is "$codes: $*" "$(codes)" "$codes"
}

for name in plain data-clones converted mixed deletion-begun space-cache-v1 old-4k raid5-3 \
    raid10-4 sprout \
    block-group-tree simple-quota quota-groups extent-tree-v2 stripe-tree-raid10 subvolumes; do
    expect "$name" 0 - check -q "$fixtures/$name"/dev*.img
    is "$name is healthy" "$(codes)" ""
done
expect "a balance that was paused" 0 - check -q "$fixtures/relocation/dev1.img"
is "a paused balance is a note" "$(codes)" "operation-open relocation"
cp --sparse=always "$fixtures/replaced"/dev*.img "$WORK"
for device in 1 2; do
    holds "a replacement is suspended" change "$WORK/dev$device.img" 4 0 250 0 set 32 8 4
done
expect "a replacement that was suspended" 0 - check -q "$WORK"/dev*.img
holds "a suspended replacement is a note, which says what a mount needs" out_has \
    'note operation-open: .* replacement of the device; without its target, it needs -o degraded'
rm "$WORK"/dev*.img
expect "a log tree" 0 - check -q "$fixtures/log-tree/dev1.img"
is "a log tree is a note" "$(codes)" log-present

# If a tree is lost, nothing is reported that may only look wrong because of that.
for name in extent csum free-space fs; do
    expect "a lost tree: $name" 4 - check -q "$fixtures/lost-tree-$name/dev1.img"
    is "a lost tree is the only finding: $name" "$(codes)" block-checksum
done

# References.
finds plain extent-count 2 13651968 168 4096 set 0 8 5
finds plain "reference-extra reference-missing" 2 13651968 168 4096 set 37 8 406
finds plain "extent-missing extent-unreferenced" 5 405 108 299008 add 21 8 4096
finds plain "extent-unreferenced file-bytes file-extent" 5 405 108 299008 set 21 8 0
# Nothing refers to this one, but its number of references is wrong, too: both are told apart.
finds plain "extent-count extent-missing reference-extra" 5 405 108 299008 add 21 8 4096 and \
    2 13651968 168 4096 set 0 8 5
finds plain extent-differs 2 22052864 169 0 set 8 8 3
finds plain extent-differs 2 30441472 169 0 key 30441472 169 1
finds plain "extent-missing free-space-differs group-used" 2 30441472 169 0 delete
finds plain "checksum-orphaned extent-missing free-space-differs group-used" \
    2 13651968 168 4096 delete
finds plain "extent-differs free-space-differs group-used" 2 13651968 168 4096 key 13651968 168 8192

finds plain "checksum-orphaned extent-differs extent-outside free-space-differs group-used" \
    2 13651968 168 4096 key 13651968 168 -4096

# Space.
finds plain "group-used memory-suspected super-used" 2 30408704 192 33554432 add 0 8 16384
finds plain group-missing 2 30408704 192 33554432 delete
finds plain free-space-count 10 13631488 198 8388608 add 0 4 1
finds plain free-space-missing 10 63963136 198 - delete
finds plain free-space-differs 10 13656064 199 - key 13656064 199 4096
finds plain super-used super 120 8 123
# What mkfs.btrfs before 6.16.1 leaves behind is one short note, which the summary does not repeat.
expect "the leftovers of mkfs.btrfs" 0 '^btrfs-walk: checked: .*; 0 errors, 0 warnings, 1 note$' \
    check "$fixtures/plain/dev1.img"
is "leftovers of mkfs.btrfs are one line" "$(cat "$WORK/out")" \
    "note free-space-extra FREE_SPACE_TREE: 2 block groups left behind by mkfs.btrfs before 6.16.1"
is "the summary does not repeat the leftovers of mkfs.btrfs" "$(wc -l < "$WORK/err")" 1
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/image"
change "$WORK/image" 10 1048576 198 4194304 delete
expect "a record of no block group" 0 - check -q "$WORK/image"
holds "a record outside of block groups is a warning" \
    grep -q '^warning free-space-stray .*(1048576 FREE_SPACE_EXTENT 4194304): '\
'from here on, records outside of block groups that mkfs.btrfs does not leave: 1 ' "$WORK/out"
for change in "198 4194304 set 0 4 2" "199 4194304 key 1048576 199 8192" "199 4194304 delete"; do
    cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/image"
    # shellcheck disable=SC2086 # words
    change "$WORK/image" 10 1048576 $change
    expect "leftovers that mkfs.btrfs does not leave: $change" 0 - check -q "$WORK/image"
    holds "records that mkfs.btrfs does not leave are a warning: $change" \
        grep -q '^warning free-space-stray .*(1048576 FREE' "$WORK/out"
done

# A block group behind all others, which blocks the place of the next one to be created.
finds plain "free-space-ahead free-space-missing" \
    10 63963136 198 - key 80740352 198 16314368 and 10 64425984 199 - key 80740352 199 16314368

# A space cache: 16 pages, of which the first has extents and the second a bitmap. What the kernel
# would not use is no error.
cache="cache 435998720 16"
for change in "$cache add 72 8 4096" "$cache add 4096 1 -1"; do
    # shellcheck disable=SC2086 # words
    finds space-cache-v1 space-cache-differs $change
done
for change in "$cache set 80 8 0" "$cache set 64 8 3" "$cache set 72 8 -1" \
    "1 -11 0 361758720 add 25 8 100000" \
    "1 -11 0 361758720 set 0 8 999" "1 -11 0 361758720 add 33 8 1" "1 258 1 0 set 16 8 69632"; do
    # shellcheck disable=SC2086
    finds space-cache-v1 space-cache-damaged $change
done
finds space-cache-v1 space-cache-stale cache 435998720 16 add 80 8 4096
finds space-cache-v1 space-cache-stale 1 -11 0 361758720 add 17 8 -1
finds space-cache-v1 space-cache-stale super 555 8 5
cp --sparse=always "$fixtures/space-cache-v1/dev1.img" "$WORK/image"
printf x | dd of="$WORK/image" bs=1 seek=$((435998720 + 5000)) conv=notrunc status=none
expect "a page with another checksum" 0 - check -q "$WORK/image"
is "a page with another checksum" "$(codes)" space-cache-damaged

# The log: a tree block that the extent tree has as well; data that belong to another file of the
# last transaction, or of the log; that are in no chunk, or in one of metadata.
finds log-tree "extent-missing extent-unreferenced free-space-differs log-overlap log-present" \
    2 30736384 169 0 key 31457280 169 0
zstd -dqf --sparse "$ROOT/fixtures/log-cuts/9009-2.img.zst" -o "$WORK/cut"
for change in "log-overlap log-present 13647872" "log-overlap log-present 13783040" \
    "extent-outside log-present 99999744" "extent-kind log-present 9437184"; do
    finds "$WORK/cut" "${change% *}" -6 268 108 8192 set 21 8 "${change##* }"
done

# fs-verity: a changed hash, so that data and Merkle tree contradict each other, and a file that is
# read.
finds verity verity-tree 5 286 37 0 set 5 1 9
finds verity verity-descriptor 5 286 36 1 set 8 8 55
expect "fs-verity with data" 4 - check -q --data "$WORK/image"
cp --sparse=always "$fixtures/verity/dev1.img" "$WORK/image"
holds "a hash of fs-verity is changed" change "$WORK/image" 5 286 37 0 set 69 1 9
expect "another hash of data" 4 - check -q --data "$WORK/image"
holds "a block whose hash differs is reported" out_has \
    'verity-data FS_TREE /data/plain offset 8192 length 4096: the data do not have their hash'

# Inodes of a balance that was interrupted.
finds relocation "operation-open orphan-missing relocation" -9 -5 48 257 delete

# Quotas: what a group has, who pays for data, and for a tree block.
finds simple-quota qgroup-count 8 0 242 256 add 8 8 4096
finds simple-quota qgroup-count 2 13631488 168 - set 25 8 256

# Checksums.
finds plain checksum-missing 7 -10 128 - delete
finds plain "checksum-missing checksum-orphaned" 7 -10 128 13631488 key -10 128 13635584
finds plain checksum-unwanted 5 405 1 0 set 64 8 1

# Chunks and devices.
finds plain "device-extent-extra device-extent-missing" 3 256 228 63963136 add 56 8 65536
expect "where it is" 4 - check -q --json "$WORK/image"
holds "the tree, the key and the device" out_has \
    '"device-extent-extra",.*"tree":4,.*"offset":105906176},"logical":63963136,"devid":1,'
finds plain "memory-suspected stripe-device" 3 256 228 63963136 add 64 1 1
finds plain "device-extent-missing device-used" 4 1 204 38797312 delete
finds plain "device-differs device-used memory-suspected" 3 1 216 1 add 16 8 4096
finds plain super-devices super 136 8 2
finds plain half-done super 56 8 34359738369
expect "a short image" 4 - check -q "$fixtures/truncated/dev1.img"
is "a short image is a finding device-truncated" "$(codes)" device-truncated

# Superblocks.
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/image"
printf x | dd of="$WORK/image" bs=1 seek=$((65536 + 300)) conv=notrunc status=none
expect "a bad superblock" 4 - check -q "$WORK/image"
is "a bad superblock is a finding super-bad" "$(codes)" super-bad
holds "the finding has the copy and offset of the bad superblock" out_has \
    'superblock copy 0: crc32c checksum mismatch \[device 1 offset 65536, repairable'
tr '\0' '\377' < /dev/zero | dd of="$WORK/image" bs=4096 seek=16 count=1 iflag=fullblock \
    conv=notrunc status=none
expect "a superblock of 0xff bytes, which have all flags" 4 - check -q "$WORK/image"
is "the other copy is not that of a metadump" "$(codes)" super-bad
"$PROGRAM" check "$fixtures/superblock-lost/dev1.img" > "$WORK/out" 2> "$WORK/err"
holds "a superblock without its magic is a finding super-bad" \
    out_has '^error super-bad: superblock copy 0: no btrfs magic'
is "check does not repeat the bad superblock on stderr" "$(grep -c 'superblock copy' "$WORK/err")" 0
expect "a missing device" 0 - check -q "$fixtures/raid5-3/dev1.img" "$fixtures/raid5-3/dev2.img"
is "a missing device is a finding device-missing" "$(codes)" "device-missing parity-unchecked"
finish
