#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: the paths of what is damaged, in images that the kernel made.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" data-clones subvolumes lost-leaf-inodes \
    lost-leaf-directory orphans big-directory || exit 1

# damage IMAGE COPY OFFSET: a byte of a copy of an image is another one.
damage() {
    cp --sparse=always "$1" "$2"
    local byte
    byte=$(od -An -tu1 -j "$3" -N 1 "$2" | tr -d ' ')
    printf "\\x$(printf %x $((byte ^ 255)))" | dd of="$2" bs=1 seek="$3" conv=notrunc status=none
}

# places IMAGE LOGICAL: the offsets of all copies on the only device.
places() {
    "$PROGRAM" map -o offset "$1" "$2"
}

for name in orphans big-directory subvolumes data-clones; do
    expect "$name is healthy" 0 - check -q --data "$fixtures/$name/dev1.img"
done

clones=$fixtures/data-clones/dev1.img
logical=$("$PROGRAM" extents "$clones" /plain-parts | awk '/ data / { print $5 + 0; exit }')
damage "$clones" "$WORK/data.img" "$(places "$clones" "$logical" | head -n 1)"
expect "damaged data" 4 - check -q --data "$WORK/data.img"
for path in /plain /plain-clone /plain-parts; do
    holds "$path has them" out_has "$path( |\$)"
done
holds "no other file has" [ "$(grep -o -w -e /zlib -e /lzo -e /zstd "$WORK/out" | wc -l)" -eq 0 ]

expect "a lost leaf with inodes" 4 - check -q "$fixtures/lost-leaf-inodes/dev1.img"
holds "its files" out_has '/dir-2/file-9.*/dir-2/file-11'
holds "nothing follows from it" [ "$(grep -c -e inode-missing -e entry-missing "$WORK/out")" -eq 0 ]
expect "a lost leaf with entries" 4 - check -q "$fixtures/lost-leaf-directory/dev1.img"
holds "its directory" out_has '/dir-3[: ]'

# One copy of a leaf of a snapshot.
nested=$fixtures/subvolumes/dev1.img
snapshot=$("$PROGRAM" subvolumes -o id,path "$nested" |
        awk -F '\t' '$2 == "/home-snapshot" { print $1 }')
leaf=$("$PROGRAM" dump -t "$snapshot" "$nested" | awk '$1 == "leaf" { print $2; exit }')
mapfile -t offsets < <(places "$nested" "$leaf")
damage "$nested" "$WORK/one.img" "${offsets[0]}"
expect "a bad copy of a leaf" 4 - check -q "$WORK/one.img"
holds "its top directory, and files in it" out_has \
    "block-checksum.*/home-snapshot .*/home-snapshot/docs"
finish
