#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# File systems in which btrfstune was interrupted: all files can be read and verified, and `info`
# and `check` name the unfinished change.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain dup raid1-2 || exit 1

# unfinished NAME CHANGE...: makes $WORK/image of a fixture.
unfinished() {
    cp --sparse=always "$BUILD/fixtures/$1/dev1.img" "$WORK/image"
    holds "the change is interrupted: $*" \
        python3 "$ROOT/tests/support/unfinished_change.py" "$WORK/image" "${@:2}"
}

# same NAME [OPTION...]: all commands read the image like the fixture.
same() {
    local name=$1 before=$BUILD/fixtures/$1/dev1.img
    shift
    expect "$name: sum" 0 - sum "$@" "$WORK/image"
    is "$name: files" "$(md5sum < "$WORK/out")" "$("$PROGRAM" sum "$before" | md5sum)"
    expect "$name: check" 4 - check -q --data "$WORK/image"
    is "$name: nothing but the unfinished change" \
        "$(grep -v '^note' "$WORK/out" | cut -d: -f1)" "error half-done"
    expect "$name: info" 0 - info "$WORK/image"
    holds "$name: the kernel refuses it" out_has '^Mount: .*refuses.*interrupted'
}

# lost NAME: a search rebuilds the superblocks of the image, and reads all files.
lost() {
    for place in 64 65536; do
        dd if=/dev/zero of="$WORK/image" bs=1K seek=$place count=4 conv=notrunc status=none
    done
    expect "$1: no superblock" 1 'from tree blocks, it is device 1' sum --scan "$WORK/image"
    is "$1: files without a superblock" "$(md5sum < "$WORK/out")" \
        "$("$PROGRAM" sum "$BUILD/fixtures/$1/dev1.img" | md5sum)"
}

unfinished plain blocks 2 2
same plain
unfinished dup blocks 3 3
same dup
unfinished plain blocks 2 1
same plain
expect "rescue of an unfinished change" 0 - rescue --json "$WORK/image"
holds "rescue verifies all files despite an unfinished change" \
    out_has '"unverified_files":0,.*"partly_files":0,.*"lost_files":0'
expect "a scan" 0 - walk --scan "$WORK/image"

# The root tree, which names the new type, is lost: the data show which type their checksums have.
unfinished plain data 2 done
holds "tree blocks of both types" \
    python3 "$ROOT/tests/support/unfinished_change.py" "$WORK/image" blocks 2 2
python3 "$ROOT/tests/support/erase_trees.py" 1 "$WORK/image"
expect "no root tree" 1 'the root tree was rebuilt' sum "$WORK/image"
is "files without a root tree" "$(md5sum < "$WORK/out")" \
    "$("$PROGRAM" sum "$BUILD/fixtures/plain/dev1.img" | md5sum)"
lost plain

# The change ended between the mirrors of RAID1: they differ, but the devices have one history.
unfinished_change=$ROOT/tests/support/unfinished_change.py
for device in 1 2; do
    cp --sparse=always "$BUILD/fixtures/raid1-2/dev$device.img" "$WORK/dev$device.img"
done
holds "the first mirrors are changed" python3 "$unfinished_change" "$WORK/dev1.img" blocks 2 3
holds "the second ones are not" python3 "$unfinished_change" "$WORK/dev2.img" flag 40
expect "mirrors of both types: sum" 0 - sum "$WORK/dev1.img" --device "$WORK/dev2.img"
is "mirrors of both types: files" "$(md5sum < "$WORK/out")" "$("$PROGRAM" sum \
    "$BUILD/fixtures/raid1-2/dev1.img" --device "$BUILD/fixtures/raid1-2/dev2.img" | md5sum)"
expect "mirrors of both types: check" 4 - check -q --data "$WORK/dev1.img" \
    --device "$WORK/dev2.img"
is "the devices have not diverged" "$(grep -v '^note' "$WORK/out" | cut -d' ' -f1,2 | sort -u)" \
    $'error block-differs\nerror half-done:'

# The id: the superblock has the new one, and tree blocks have either.
unfinished plain fsid 2
same plain
unfinished dup fsid 3
same dup
unfinished plain fsid 1
same plain
expect "a new id: rescue" 0 - rescue --json "$WORK/image"
holds "rescue verifies all files despite an unfinished change of the id" \
    out_has '"unverified_files":0,.*"partly_files":0,.*"lost_files":0'
expect "a new id: a scan" 0 - walk --scan "$WORK/image"

# The block group tree, and the checksums of data before the first new one.
for flag in 38 39; do
    unfinished plain flag $flag
    same plain
done

# New checksums of data: in each step of the change, of both sizes of checksums.
stages=$(printf '%s\n' adding added deleting alone renamed done | sweep "${SWEEP:-1}")
for stage in $stages; do
    unfinished plain data 2 "$stage"
    same plain
    lost plain
    unfinished plain data 2 "$stage"
    python3 "$ROOT/tests/support/erase_trees.py" 1 "$WORK/image"
    expect "$stage, no root tree" 1 'the root tree was rebuilt' sum "$WORK/image"
    is "$stage, no root tree: files" "$(md5sum < "$WORK/out")" \
        "$("$PROGRAM" sum "$BUILD/fixtures/plain/dev1.img" | md5sum)"
done
for stage in added renamed; do
    unfinished dup data 3 "$stage"
    same dup
done

# changed_plain CHANGE...: makes an image with the changes, one after the other.
changed_plain() {
    local change
    cp --sparse=always "$BUILD/fixtures/plain/dev1.img" "$WORK/image"
    for change; do
        # shellcheck disable=SC2086 # several words
        holds "an image: $change" \
            python3 "$ROOT/tests/support/unfinished_change.py" "$WORK/image" $change
    done
}

# The last step, as it comes after these: tree blocks of both types, and data of the new one.
changed_plain 'data 2 done' 'blocks 2 3'
same plain
expect "the last step: rescue" 0 - rescue --json "$WORK/image"
holds "the last step: all is verified" \
    out_has '"unverified_files":0,.*"partly_files":0,.*"lost_files":0'
lost plain

# A change that has ended: older blocks are left, with the old type and with the item of the change.
changed_plain 'data 2 done' 'complete 2'
expect "a change that has ended: check" 0 - check -q --data "$WORK/image"
lost plain
expect "a change that has ended: info" 1 'the chunk tree is lost' info --scan "$WORK/image"
holds "a change that has ended: the new type" out_has '^Blocks: .* sha256$'
is "a change that has ended: no change is named" "$(grep -c interrupted "$WORK/out")" 0

# Only an older leaf of the root tree is left, with the old type: blocks of both types are read.
changed_plain 'data 2 done' 'complete 2 lost'
lost plain

# A wrong byte in the first sector of a file, and of an item with checksums, is found in all steps,
# and nothing else is.
wrong='/data/hole-then-data
/data/plain
/data/reflink'
for stage in $stages; do
    unfinished plain data 3 "$stage"
    for place in 13651968 106168320; do
        printf '\252' | dd of="$WORK/image" bs=1 seek=$((place + 99)) conv=notrunc status=none
    done
    expect "$stage: check of wrong bytes" 4 - check -q --data --json "$WORK/image"
    is "$stage: wrong files" \
        "$(grep '"data-checksum"' "$WORK/out" | grep -o '"/[^"]*"' | tr -d '"' | sort)" "$wrong"
    is "$stage: wrong sectors" \
        "$(grep '"data-checksum"' "$WORK/out" | grep -o '"logical":[0-9]*' | sort -u | wc -l)" 2
    expect "$stage: reading" 1 'blake2b checksum mismatch|crc32c checksum mismatch' \
        sum "$WORK/image"
    is "$stage: all other files can be read" "$(md5sum < "$WORK/out")" \
        "$("$PROGRAM" sum "$BUILD/fixtures/plain/dev1.img" |
            grep -a -v -e hole-then-data -e data/plain -e data/reflink | md5sum)"
done
finish
