#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` of file systems in which btrfstune was interrupted: no mount accepts them. In the result,
# nothing is wrong, all data match their checksums, and all files are as before.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have python3 || { skip python3 "interrupted changes"; finish; }
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup block-group-tree metadata-uuid \
    raid1-2 raid5-3 raid6-4 || exit 1

# interrupted NAME CHANGE...: makes $WORK/image of a fixture. Each CHANGE is a word.
interrupted() {
    cp --sparse=always "$fixtures/$1/dev1.img" "$WORK/image"
    for change in "${@:2}"; do
        # shellcheck disable=SC2086 # the words of a change
        holds "the change is interrupted: $*" \
            python3 "$ROOT/tests/support/unfinished_change.py" "$WORK/image" $change
    done
    rm -f "$WORK/fixed.qcow2"
}

# Whether what was repaired is examined. With sanitizers, that would only read once more.
is_examined() { [ -z "${SWEEP:-}" ]; }

# ends PROOF NAME CHANGE...: the plan has this proof, and the result is right.
ends() {
    local proof=$1 before
    shift
    interrupted "$@"
    before=$(written "$WORK/image")
    expect "$*: repair" 0 - repair -q -f "$WORK/fixed.qcow2" -o class_name,proof "$WORK/image"
    is "$*: the plan has one change" "$(grep -c "^derived.$proof" "$WORK/out")" 1
    is "$*: repair does not change the image" "$(written "$WORK/image")" "$before"
    is_examined || return 0
    expect "$*: check" 0 . check --data --patch "$WORK/fixed.qcow2" "$WORK/image"
    is "$*: the repaired files have the hashes of the image" \
        "$("$PROGRAM" sum --relative --patch "$WORK/fixed.qcow2" "$WORK/image" | cksum)" \
        "$("$PROGRAM" sum --relative "$fixtures/$1/dev1.img" | cksum)"
}

# The id: no tree block has the new one, some have, or all.
ends 'all tree blocks have the old id' plain 'fsid 1000003'
ends 'some tree blocks have the new id' plain 'fsid 2'
ends 'some tree blocks have the new id' dup 'fsid 3'
ends 'some tree blocks have the new id' dup 'fsid 1'
ends 'some tree blocks have the new id' dup 'fsid -2'

# repair_several PLAN: the plan of $WORK/several has this; the result has the hashes of a fixture.
repair_several() {
    local before patches=() words="$name: $change" images=("$WORK/several"/*.img) others
    others=("${images[@]:1}")
    before=$(written "${images[@]}")
    rm -rf "$WORK/fixed"
    "$PROGRAM" repair -q -o proof -C "$WORK/fixed" "${images[@]}" > "$WORK/out" 2> "$WORK/err"
    is "$words: repair: $(cat "$WORK/err")" $? 0
    holds "$words: the plan" grep -qE "$1" "$WORK/out"
    is "$words: repair does not change the images" "$(written "${images[@]}")" "$before"
    is_examined || return 0
    for overlay in "$WORK/fixed"/*.qcow2; do patches+=(--patch "$overlay"); done
    expect "$words: check" 0 . check --data "${patches[@]}" "${images[@]}"
    is "$words: the repaired files have the hashes of the images" \
        "$("$PROGRAM" sum --relative "${patches[@]}" "${others[@]/#/--device=}" \
            "${images[0]}" | cksum)" \
        "$("$PROGRAM" sum --relative "$fixtures/$name"/dev*.img | cksum)"
}

# interrupted_device NUMBER CHANGE...
interrupted_device() {
    # shellcheck disable=SC2086 # the words of a change
    for change in "${@:2}"; do
        holds "the change is interrupted: $name: $change" python3 \
            "$ROOT/tests/support/unfinished_change.py" "$WORK/several/dev$1.img" $change
    done
}

# several NAME: copies the images of a fixture.
several() {
    name=$1
    rm -rf "$WORK/several"
    mkdir "$WORK/several"
    cp --sparse=always "$fixtures/$name"/dev*.img "$WORK/several"
}

# Several devices, with parity. NAME CHANGE...
for words in 'raid5-3 fsid 2' 'raid6-4 fsid 3' 'raid6-4 blocks 2 2'; do
    several "${words%% *}"
    for device in "$WORK/several"/*.img; do
        interrupted_device "$(basename "${device##*/dev}" .img)" "${words#* }"
    done
    repair_several 'the other ones get it, too|the old type'
done

# A change of the id that has not reached all superblocks, or all mirrors of tree blocks; one of
# metadata_uuid that has not reached all devices: its first step sets a flag, the second one clears
# it and changes the id. A device that lacks another transaction keeps its superblock.
several raid1-2
interrupted_device 2 'fsid 1000003'
repair_several 'all tree blocks have the old id'
several raid1-2
interrupted_device 1 'fsid 2'
interrupted_device 2 'fsid 1000003'
repair_several 'the other ones get it, too'
several raid1-2
interrupted_device 1 'flag 36'
interrupted_device 2 late
repair_several 'only steps of an incomplete change'
several raid1-2
interrupted_device 1 late 'flag 36'
interrupted_device 2 uuid
repair_several 'only steps of an incomplete change'
several raid1-2
interrupted_device 1 late
interrupted_device 2 'flag 38'
repair_several 'only steps of an incomplete change'
interrupted_device 1 late
expect "a device that lacks more: the plan" 0 '.*' repair -o proof "$WORK/several"/*.img
is "a device that lacks more: it keeps its superblock" "$(grep incomplete "$WORK/out")" ""

# With a metadata_uuid, tree blocks keep their id.
ends 'all tree blocks have the id that the superblocks name' metadata-uuid 'flag 36'
ends 'all tree blocks get the metadata_uuid' metadata-uuid 'flag 35'
ends 'all tree blocks get the metadata_uuid' metadata-uuid 'mixed 2'
ends 'the checksums of all data have the old type' metadata-uuid 'blocks 2 2'
ends 'the checksums of all data have the new type' metadata-uuid 'data 2 alone'

# The checksums of tree blocks, and those of data before them. With old and new items, the set that
# is incomplete, or the old one, is taken out.
ends 'the checksums of all data have the old type' plain 'blocks 2 2'
ends 'the checksums of all data have the old type' dup 'blocks 3 3'
ends 'the checksums of all data have the old type' plain 'flag 39'
ends 'the checksums of all data have the new type' plain 'data 2 alone'
ends 'the checksums of all data have the new type' plain 'data 2 done'
ends 'the checksums of all data have the new type' plain 'data 2 done' 'blocks 2 3'
is "the repaired file system has the new type of checksums" \
    "$("$PROGRAM" info -o checksum --patch "$WORK/fixed.qcow2" "$WORK/image")" sha256
ends 'the checksums of all data have the old type' plain 'data 2 adding'
for stage in added deleting renamed; do
    ends 'the checksums of all data have the new type' plain "data 2 $stage"
done

# The block group tree.
ends 'all block groups are in the extent tree' plain 'flag 38'
ends 'all block groups are in the block group tree' block-group-tree 'flag 38'

# Block groups in two trees, or in the extent tree next to an empty block group tree, or all in the
# block group tree and the superblock does not say so: they get to that tree.
for words in 'groups 2 from' 'groups 0 to' 'groups 1 to' 'groups 3 to'; do
    interrupted block-group-tree "$words"
    expect "$words: repair" 0 . repair -f "$WORK/fixed.qcow2" "$WORK/image"
    expect "$words: check" 0 . check --data --patch "$WORK/fixed.qcow2" "$WORK/image"
    is "$words: a block group tree" \
        "$("$PROGRAM" dump --patch "$WORK/fixed.qcow2" --tree block-group "$WORK/image" | cksum)" \
        "$("$PROGRAM" dump --tree block-group "$fixtures/block-group-tree/dev1.img" | cksum)"
done

# Several changes: a tool was started again with another one.
ends 'all block groups are in the extent tree, .*the old type' plain 'flag 38' 'flag 39'
ends 'all tree blocks have the old id.*; all tree blocks have the id' plain 'fsid 1000003' 'flag 36'
ends 'some tree blocks have the new id.*the old type' dup 'fsid 3' 'blocks 2 2'
ends 'all tree blocks have the id .*; all block groups .*the new type' block-group-tree \
    'data 2 done' 'flag 36' 'flag 38'
interrupted block-group-tree 'groups 1 to' 'flag 36'
expect "groups and metadata_uuid: repair" 0 . repair -f "$WORK/fixed.qcow2" "$WORK/image"
expect "groups and metadata_uuid: check" 0 . check --data --patch "$WORK/fixed.qcow2" "$WORK/image"
interrupted plain 'flag 38'
holds "the feature of a block group tree" change "$WORK/image" super 180 8 11
expect "no block group tree: repair" 1 'they are not in the tree that the superblock names' \
    repair -f "$WORK/fixed.qcow2" "$WORK/image"
holds "no block group tree: no overlay" test ! -e "$WORK/fixed.qcow2"
finish
