#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Several file systems in one place: a disk that was formatted again.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" subvolumes raid0-3 raid1-2 diverged || exit 1
if ! have mkfs.btrfs; then skip btrfs-progs "disks that were formatted again"; finish; fi

old=$WORK/old.img new=$WORK/new.img
cp --sparse=always "$BUILD/fixtures/subvolumes/dev1.img" "$old"
cp --sparse=always "$old" "$new"
fsid=$(run_json info --json "$old" | sed -E 's/.*"fsid":"([^"]*)".*/\1/')
"$PROGRAM" sum "$old" > "$WORK/files"
mkfs.btrfs -q -f -K -L new "$new" > "$WORK/mkfs" 2>&1
other=$(run_json info --json "$new" | sed -E 's/.*"fsid":"([^"]*)".*/\1/')

# files DESCRIPTION STATUS OPTIONS...: exactly the files of the old file system must be read.
files() {
    expect "$1" "$2" '' sum "${@:3}"
    holds "$1: all files of the old file system are read" cmp "$WORK/files" "$WORK/out"
}

expect "the new file system" 0 - ls "$new"
is "the new file system is empty" "$(cat "$WORK/out")" ''
files "the old one, by its fsid" 1 --fsid "$fsid" "$new"
expect "says where it comes from" 1 'no superblock: from tree blocks, it is device 1' \
    info --fsid "$fsid" "$new"
holds "info --fsid prints that fsid" out_has "^UUID: *$fsid"
expect "the fsid of the superblock" 0 - sum --fsid "$fsid" "$old"
holds "the fsid of the superblock needs no search" cmp "$WORK/files" "$WORK/out"
expect "the new one, by its fsid" 0 - ls --fsid "$other" "$new"
expect "an fsid that is nowhere" 2 "no chunk of the file system $other was found" \
    ls --fsid "$other" "$old"
expect "info does not print another superblock" 2 'no superblock and no chunk' \
    info --fsid "$other" "$old"
is "info prints nothing for an unknown fsid" "$(cat "$WORK/out")" ''
expect "no fsid at all" 2 'invalid argument of --fsid: 12' ls --fsid 12 "$old"
named="blocks of another file system were found: fsid $fsid, generation [0-9]+, [0-9]+ tree blocks"
expect "a search" 0 "$named, .*; --fsid $fsid opens it" info --scan "$new"
is "info --scan names one other file system" "$(grep -c 'another file system' "$WORK/err")" 1
holds "the table has the option" out_has \
    "^ +[0-9]+  20[-0-9: ]{17} +[0-9]+ +[0-9]+ +1 of [0-9]+  -  +--fsid $fsid$"
holds "the table has the opened file system" out_has "$other, by its superblock$"
run_json info --scan --json "$new" > "$WORK/json"
holds "JSON has both file systems" \
    grep -qE '"opens_itself":true,.*"opens_itself":false,"open_option":"--fsid '`
    `"$fsid" "$WORK/json"
expect "a search without others" 0 - info --scan "$old"
expect "a search for one" 1 'no superblock names the root of the chunk tree' \
    info --scan --fsid "$fsid" "$new"
is "--fsid names no other file system" "$(grep -c 'another file system' "$WORK/err")" 0
expect "rescue with a search" 0 '' rescue -v --scan "$new"
holds "names it among the problems" out_has "; --fsid $fsid opens it"
expect "rescue of a file system over another one" 0 - rescue "$new"
holds "counts the files of the old one" out_has '^ +177 [0-9.]+KiB .* generation [0-9]+, 20'
holds "rescue prints a command with --fsid" out_has "^  btrfs-walk rescue --fsid=$fsid .*new.img$"
expect "rescue of one that covers nothing" 0 - rescue "$old"
is "rescue of a single file system lists no others" "$(grep -c 'Other file systems' "$WORK/out")" 0
expect "a quick rescue" 0 - rescue --no-data "$new"
is "rescue --no-data searches no other file systems" "$(grep -c 'Other file systems' "$WORK/out")" 0
expect "rescue with --fsid" 1 '' rescue --fsid "$fsid" "$new"
holds "the commands repeat --fsid" out_has "extract .*--fsid=$fsid"

# A member of a pool that was formatted again.
for image in raid0-3/dev{1,2,3} raid1-2/dev1; do
    cp --sparse=always "$BUILD/fixtures/$image.img" "$WORK/${image/\//-}.img"
done
devices=(--device "$WORK/raid0-3-dev2.img" --device "$WORK/raid0-3-dev3.img")
"$PROGRAM" sum "$WORK/raid0-3-dev1.img" "${devices[@]}" > "$WORK/files"
mkfs.btrfs -q -f -K "$WORK/raid0-3-dev2.img" > "$WORK/mkfs" 2>&1
expect "a member that was formatted again" 0 \
    'is device 2: blocks of it were found in [0-9]+ places. It was formatted again: it belongs' \
    sum "$WORK/raid0-3-dev1.img" "${devices[@]}"
holds "all files are read without the formatted member" cmp "$WORK/files" "$WORK/out"
expect "a stranger beside a complete pool" 1 'is not used: it belongs to another file system' \
    ls "$WORK/raid0-3-dev1.img" "${devices[@]}" --device "$WORK/raid1-2-dev1.img"
"$PROGRAM" sum "$old" > "$WORK/files"

# The same fsid twice: chunk_tree_uuids tell the blocks apart.
twice=$WORK/twice.img
cp --sparse=always "$old" "$twice"
mkdir "$WORK/content"
for i in 1 2 3 4 5; do head -c 100000 "$old" | sha512sum | cat - "$0" > "$WORK/content/$i"; done
for sector in 16 16384; do
    dd if=/dev/zero of="$twice" bs=4096 seek="$sector" count=1 conv=notrunc status=none
done
mkfs.btrfs -q -f -K -U "$fsid" -L again --rootdir "$WORK/content" "$twice" > "$WORK/mkfs" 2>&1
expect "the same fsid twice" 0 - info "$twice"
holds "no generation of the other one is recommended" [ ! -s "$WORK/err" ]
expect "the files of the present one" 0 - sum "$twice"
cp "$WORK/out" "$WORK/present"
is "the present file system has five files" "$(wc -l < "$WORK/present")" 5
expect "a search names the other one" 0 "fsid $fsid, .*--fsid" info --scan "$twice"
earlier=$(sed -n 's/.*--fsid \(.*\) opens it/\1/p' "$WORK/err")
holds "the other one has an option with its chunk_tree_uuid" [ "$earlier" != "$fsid" ]
expect "which opens it" 1 '' sum --fsid "$earlier" "$twice"
is "all files of the earlier file system have their hashes" \
    "$(grep -vxFf "$WORK/files" "$WORK/out" | wc -l)" 0
holds "at least 20 files of the earlier file system are found" [ "$(wc -l < "$WORK/out")" -ge 20 ]
expect "the fsid selects the present one" 0 - sum --fsid "$fsid" "$twice"
holds "--fsid reads the files of the present file system" cmp "$WORK/present" "$WORK/out"
# Without the chunk root, whose address both have used.
root=$(run_json super --json "$twice" | grep -oE '"chunk_root":[0-9]+' | head -n 1)
for offset in $(run_json map --json "$twice" "${root#*:}" | grep -oE '"offset":[0-9]+'); do
    dd if=/dev/zero of="$twice" bs=4096 seek=$((${offset#*:} / 4096)) count=4 conv=notrunc \
        status=none
done
expect "the present one without its chunk root" 1 'the chunk tree is lost' sum "$twice"
holds "without a chunk root, the present files are read" cmp "$WORK/present" "$WORK/out"
expect "rescue of it" 1 '' rescue "$twice"
holds "rescue counts the present files" out_has '^ *5 '
is "and recommends no other generation" "$(grep -c -e --generation "$WORK/out")" 0

# Without any superblock, the choice between them is an error.
for sector in 16 16384; do
    dd if=/dev/zero of="$twice" bs=4096 seek="$sector" count=1 conv=notrunc status=none
done
expect "no superblock at all" 2 "several file systems; choose one with --fsid .*$earlier" \
    ls --scan "$twice"
is "no other advice is printed" "$(grep -c 'Choose one' "$WORK/err")" 0
expect "info --scan of two file systems without superblocks" \
    1 'several file systems; choose one' info --scan "$twice"
is "info lists both file systems" "$(grep -c -- '--fsid' "$WORK/out")" 2
expect "rescue of two file systems without superblocks" \
    2 'several file systems; choose one' rescue "$twice"
holds "counts the files of one" out_has '^ +5 [0-9.]+KiB .* generation'
is "and prints a command for each" "$(grep -c 'btrfs-walk rescue --fsid=' "$WORK/out")" 2
expect "one of them by its chunk_tree_uuid" 1 '' sum --fsid "$earlier" "$twice"
is "has files that are wrong" "$(grep -vxFf "$WORK/files" "$WORK/out" | wc -l)" 0

# An older image of the same device was written over a part of it: its superblocks and their trees
# are whole, and blocks of newer generations lie around. Then its root tree was lost.
before=$BUILD/fixtures/diverged/dev1.img over=$WORK/over.img
cp --sparse=always "$BUILD/fixtures/diverged/dev1-long.img" "$over"
lost=$("$PROGRAM" dump -q --tree 5 "$over" | sed -nE 's/^(leaf|node) ([0-9]*) .*/\2/p' | head -n 1)
root=$(run_json super --json "$before" | grep -oE '"root":[0-9]+' | head -n 1)
root=${root#*:}
dd if="$before" of="$over" bs=16384 count=$((root / 16384 + 1)) conv=notrunc status=none
dd if="$before" of="$over" bs=4096 skip=16384 seek=16384 count=1 conv=notrunc status=none
"$PROGRAM" sum -q "$before" > "$WORK/before"
expect "an older image over a part" 0 - sum -q "$over"
holds "the older image is read" cmp "$WORK/before" "$WORK/out"
for block in "$lost" "$root"; do # in this RAID1, logical addresses are those of device 1
    dd if=/dev/zero of="$over" bs=4096 seek=$((block / 4096)) count=4 conv=notrunc status=none
done
expect "its root tree" 1 'rebuilt from tree blocks, with 7 trees of generation 7$' sum "$over"
holds "without its root tree, the older files are found" cmp "$WORK/before" "$WORK/out"
expect "a search" 1 'has generation 7, but tree blocks up to generation 16 were found' \
    info --scan "$over"
is "info recommends no newer generation" "$(grep -c 'commit is complete' "$WORK/err")" 0

# The newest root tree and extent tree are lost with all superblocks, and those before them are not.
newest=$BUILD/fixtures/diverged/dev1-long.img
cp --sparse=always "$newest" "$over"
for block in $("$PROGRAM" dump -q --tree 1 --tree 2 "$over" |
    sed -nE 's/^(leaf|node) ([0-9]*) .*/\2/p') 65536 67108864; do
    dd if=/dev/zero of="$over" bs=4096 seek=$((block / 4096)) count=1 conv=notrunc status=none
done
"$PROGRAM" sum -q "$newest" > "$WORK/newest"
expect "without the newest root tree and extent tree" 1 'with 7 trees of generation 16;' \
    sum --scan "$over"
holds "the newest files are read, because all their blocks are there" \
    cmp "$WORK/newest" "$WORK/out"

# word NUMBER: 32 bits, in the format of printf.
word() { printf '\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24)); }

# table IMAGE START SECTORS: an MBR with a partition of Linux.
table() {
    printf "%b" "\\x00\\xfe\\xff\\xff\\x83\\xfe\\xff\\xff$(word "$2")$(word "$3")" |
        dd of="$1" bs=1 seek=446 conv=notrunc status=none
    printf '\x55\xaa' | dd of="$1" bs=1 seek=510 conv=notrunc status=none
}

# A disk: --partition selects where to search.
disk=$WORK/disk.img
truncate -s 132M "$disk"
table "$disk" 2048 262144
dd if="$new" of="$disk" bs=1M seek=1 conv=sparse,notrunc status=none
files "in a partition" 1 --fsid "$fsid" --partition 1 "$disk"
expect "the new one in it" 0 - ls --fsid "$other" "$disk"

# The table was written over a btrfs on the whole disk.
cp --sparse=always "$new" "$disk"
table "$disk" 2048 200000
dd if=/dev/zero of="$disk" bs=4096 seek=16 count=1 conv=notrunc status=none
files "below a partition table" 1 --fsid "$fsid" "$disk"

if have mkfs.ext4; then
    cp --sparse=always "$old" "$WORK/ext4.img"
    mkfs.ext4 -q -F -E nodiscard "$WORK/ext4.img" > "$WORK/mkfs" 2>&1
    dd if=/dev/zero of="$WORK/ext4.img" bs=4096 seek=16384 count=1 conv=notrunc status=none
    expect "an ext4 where a btrfs was" 2 'it is ext4' ls "$WORK/ext4.img"
    expect "the btrfs below it" 1 '' sum --fsid "$fsid" "$WORK/ext4.img"
    is "all files below an ext4 have their hashes" \
        "$(grep -vxFf "$WORK/files" "$WORK/out" | wc -l)" 0
    holds "at least 100 files below an ext4 are found" [ "$(wc -l < "$WORK/out")" -ge 100 ]
else
    skip mkfs.ext4 "an ext4 where a btrfs was"
fi

# Most items of blocks, and data, that look like headers of blocks need no computed checksums, of
# which a search makes 20 for each kind of block that it does not know yet.
lookalikes=$WORK/lookalikes.img
cp "$BUILD/fixtures/subvolumes/dev1.img" "$lookalikes"
cat > "$WORK/lookalikes.py" << 'END'
import struct, sys
from crc32c import checksum

def page(fsid, flags):
    return (bytes(32) + fsid * 16 + struct.pack('<QQ', 1 << 20, flags) + b'u' * 16 +
            struct.pack('<QQIB', 7, 5, 3, 0)).ljust(4096, b'\0')

block = page(b'b', 1) + page(b'i', 1) * 3
with open(sys.argv[1], 'ab') as image:
    image.write((checksum(block[32:]) + block[4:]) * 2700)
    image.write(page(b'd', 1 << 20) * 8200)
END
PYTHONPATH=$ROOT/tests/support holds "an image with lookalikes" \
    python3 "$WORK/lookalikes.py" "$lookalikes"
takes_a_second() { (
    ulimit -t "${SLOWNESS:-1}"
    exec "$PROGRAM" "$@" > "$WORK/out" 2>&1
); }
holds "a search skips what is no tree block" takes_a_second info --scan "$lookalikes"

# An image may claim any size: a search for lost partitions passes over holes.
huge=$WORK/huge.img
truncate -s 15T "$huge"
dd if="$BUILD/fixtures/subvolumes/dev1.img" of="$huge" bs=1M seek=3T oflag=seek_bytes \
    conv=notrunc,sparse status=none
takes_a_second walk --scan "$huge"
is "a partition is found behind a large hole" "$(grep -o 'offset .*' "$WORK/out")" "offset 3145728M"
rm "$huge"
finish
