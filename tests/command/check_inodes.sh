#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: the paths of damaged files, in images that the kernel wrote.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" data-clones bad-data subvolumes lost-leaf-inodes \
    lost-leaf-directory orphans big-directory plain changes || exit 1

# damage IMAGE COPY OFFSET: copies an image and changes one byte.
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
place=$(places "$clones" "$logical" | head -n 1)
damage "$clones" "$WORK/one.img" "$place"
damage "$WORK/one.img" "$WORK/two.img" "$((place + 4096))"
damage "$WORK/two.img" "$WORK/data.img" "$((place + 8192))"
expect "damaged data" 4 - check -q --data "$WORK/data.img"
is "a finding for each place in each file" "$(sed -n 's/.*FS_TREE \(.*\): checksum.*/\1/p' \
    "$WORK/out")" "/plain offset 81920 length 12288
/plain-clone offset 81920 length 12288
/plain-parts offset 12288 length 12288
/plain-parts offset 389120 length 12288
/plain-parts offset 454656 length 4096
/plain-parts offset 458752 length 4096"
expect "as JSON" 4 - check -q --data --json "$WORK/data.img"
is "as a program reads it" "$(python3 -c 'import json, sys
for o in map(json.loads, sys.stdin):
    if o["code"] == "data-checksum": print(o["inode"], o["file_offset"], o["file_length"],
                                           o["length"], o["offset"], *o["paths"])' < "$WORK/out" |
    tail -n 2)" "259 454656 4096 4096 $place /plain-parts
259 458752 4096 4096 $((place + 8192)) /plain-parts"
expect "bad sectors of a compressed file" 4 - check -q --data "$fixtures/bad-data/dev1.img"
holds "bad sectors of compressed data have the range that becomes unreadable" \
    out_has "/bad-zstd offset 131072 length 131072: "

expect "a lost leaf with inodes" 4 - check -q "$fixtures/lost-leaf-inodes/dev1.img"
holds "a lost leaf with inodes is reported with their files" out_has '/dir-2/file-9.*/dir-2/file-11'
holds "no finding follows from the lost leaf" \
    [ "$(grep -c -e inode-missing -e entry-missing "$WORK/out")" -eq 0 ]
expect "a lost leaf with entries" 4 - check -q "$fixtures/lost-leaf-directory/dev1.img"
holds "a lost leaf with entries is reported with its directory" out_has '/dir-3[: ]'

# One mirror of a leaf of a snapshot.
nested=$fixtures/subvolumes/dev1.img
snapshot=$("$PROGRAM" subvolumes -o subvolume,subvolume_path "$nested" |
        awk -F '\t' '$2 == "/home-snapshot" { print $1 }')
leaf=$("$PROGRAM" dump --tree "$snapshot" "$nested" | awk '$1 == "leaf" { print $2; exit }')
mapfile -t offsets < <(places "$nested" "$leaf")
damage "$nested" "$WORK/one.img" "${offsets[0]}"
expect "a bad mirror of a leaf" 4 - check -q "$WORK/one.img"
holds "its top directory, and files in it" out_has \
    "block-checksum.*/home-snapshot .*/home-snapshot/docs"
holds "the finding counts the files that it does not name" out_has "block-checksum.* and 6 more: "
expect "all of them" 4 - check -q --all "$WORK/one.img"
holds "--all names every file of the bad mirror" out_has 'block-checksum.*/top-file: crc32c'

# Data that snapshots share: their paths in all snapshots.
damage "$nested" "$WORK/data.img" "$(places "$nested" 13631488 | head -n 1)"
expect "data of snapshots" 4 - check -q --data "$WORK/data.img"
holds "named in each of them" out_has "data-checksum.* /home-snapshot/source/large.bin /home-read"
holds "bad data of snapshots name the last snapshot" \
    out_has "/snapshot-inside/source/large.bin offset 0 length 4096: "
holds "bad data of snapshots are one finding" [ "$(grep -c data-checksum "$WORK/out")" -eq 1 ]

# Several inodes of a leaf that a snapshot shares: each has the paths of both subvolumes.
cp "$fixtures/changes/dev1.img" "$WORK/shared.img"
for inode in 266 267 268; do
    python3 "$ROOT/tests/support/change_item.py" "$WORK/shared.img" 256 "$inode" 1 0 \
        set 16 8 18446744073709551615 > "$WORK/log" || fail "inode $inode: $(< "$WORK/log")"
done
expect "three wrong inodes in a leaf" 4 - check -q "$WORK/shared.img"
for file in 2 3 4; do
    holds "inode $((264 + file)) has its paths in the subvolume and in the snapshot" \
        out_has "inode-item 256 .* /files/dir-1/file-$file /before/dir-1/file-$file: "
done

# One bit of a pointer of the snapshot to a leaf that the subvolume shares: sum loses files.
node=$("$PROGRAM" dump --tree 257 "$fixtures/changes/dev1.img" |
    sed -n 's/^node \([0-9]*\) level.*/\1/p')
mapfile -t places < <("$PROGRAM" map -o offset "$fixtures/changes/dev1.img" "$node")
# The generation, and the object and the type of the first key, once with an offset of 0.
for place in 'block-stale 192 6' 'block-keys 168 4' 'block-keys 208 1'; do
    read -r code byte bit <<< "$place"
    cp "$fixtures/changes/dev1.img" "$WORK/shared.img"
    python3 "$ROOT/tests/support/change_item.py" "$WORK/shared.img" flip "$byte" "$bit" \
        "${places[@]}" > "$WORK/log" || fail "flip $place: $(< "$WORK/log")"
    expect "a wrong pointer to a shared block" 4 - check -q "$WORK/shared.img"
    holds "the finding is $code, once" [ "$(grep -c "^error $code 257 " "$WORK/out")" -eq 1 ]
done

# The name in the ROOT_REF of a subvolume differs from its entry, so Linux shows an empty directory.
cp "$fixtures/changes/dev1.img" "$WORK/name.img"
python3 "$ROOT/tests/support/change_item.py" "$WORK/name.img" 1 5 156 256 set 18 1 120 \
    > "$WORK/log" || fail "ROOT_REF: $(< "$WORK/log")"
expect "a wrong name of a subvolume" 1 'a subvolume looks empty.*--subvol' walk "$WORK/name.img"
expect "--subvol reads it" 0 - walk --subvol 256 "$WORK/name.img"

# A lost node that two trees may share is found in both, and may be shared.
cp "$fixtures/changes/dev1.img" "$WORK/shared.img"
for change in '1 257 132 7 set 176 8 5300224 and 2 5300224 169 1 set 0 8 2' 'flip 80 4 5300224'; do
    # shellcheck disable=SC2086 # the words of a change
    python3 "$ROOT/tests/support/change_item.py" "$WORK/shared.img" $change > "$WORK/log" ||
        fail "$change: $(< "$WORK/log")"
done
expect "a lost node that is shared" 4 - check -q "$WORK/shared.img"
is "only the node is wrong" "$(grep -o '^error block-[a-z]* [0-9]*' "$WORK/out")" \
    'error block-stale 256'

# An extent item of petabytes: what it covers outside of chunks takes no time.
cp "$fixtures/changes/dev1.img" "$WORK/long.img"
python3 "$ROOT/tests/support/change_item.py" "$WORK/long.img" 2 13631488 168 45056 \
    key 13631488 168 $(((1 << 56) + 45056)) > "$WORK/log" || fail "long: $(< "$WORK/log")"
status=0
timeout 5 "$PROGRAM" check -q --data "$WORK/long.img" > "$WORK/out" 2> "$WORK/err" ||
    status=$?
is "check --data ends with an extent item of petabytes" $status 4
holds "it is named" out_has '^error extent-outside'

# Several findings about names of one inode in one directory: their order is that of the entries.
cp "$fixtures/plain/dev1.img" "$WORK/names.img"
python3 "$ROOT/tests/support/mutate_image.py" "$WORK/names.img" 2 6
expect "damaged names" 4 - check -q "$WORK/names.img"
holds "damaged names are several findings" \
    [ "$(grep -c '^error inode-ref-missing' "$WORK/out")" -gt 5 ]
cp "$WORK/out" "$WORK/first"
for _ in 1 2 3 4; do
    expect "damaged names again" 4 - check -q "$WORK/names.img"
    is "findings have the same order" "$(cmp "$WORK/out" "$WORK/first" && echo same)" same
done
finish
