#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` of file systems in which btrfstune was interrupted: no mount accepts them. In the result,
# nothing is wrong, all data match their checksums, and all files are as before.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have python3 || { skip python3 "interrupted changes"; finish; }
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup block-group-tree metadata-uuid \
    raid5-3 raid6-4 || exit 1

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

# ends PROOF NAME CHANGE...: the plan has this proof, and the result is right.
ends() {
    local proof=$1 before
    shift
    interrupted "$@"
    before=$(written "$WORK/image")
    is "$*: the plan has one change" \
        "$("$PROGRAM" repair -q -o class_name,proof "$WORK/image" 2> /dev/null |
        grep -c "^derived.$proof")" 1
    expect "$*: repair" 0 . repair -q -f "$WORK/fixed.qcow2" "$WORK/image"
    is "$*: repair does not change the image" "$(written "$WORK/image")" "$before"
    expect "$*: check" 0 . check --data --patch "$WORK/fixed.qcow2" "$WORK/image"
    is "$*: the repaired files have the hashes of the image" \
        "$("$PROGRAM" sum --relative --patch "$WORK/fixed.qcow2" "$WORK/image" | cksum)" \
        "$("$PROGRAM" sum --relative "$fixtures/$1/dev1.img" | cksum)"
}

# keeps NAME CHANGE...: nothing is planned.
keeps() {
    interrupted "$@"
    expect "$*: repair" 2 'nothing that this command repairs' \
        repair -f "$WORK/fixed.qcow2" "$WORK/image"
}

# The id: no tree block has the new one, some have, or all.
ends 'all tree blocks have the old id' plain 'fsid 1000003'
ends 'some tree blocks have the new id' plain 'fsid 2'
ends 'some tree blocks have the new id' dup 'fsid 3'
ends 'some tree blocks have the new id' dup 'fsid 1'

# Several devices, with parity. NAME CHANGE...
for words in 'raid5-3 fsid 2' 'raid6-4 fsid 3' 'raid6-4 blocks 2 2'; do
    read -r name change <<< "$words"
    rm -rf "$WORK/several" "$WORK/fixed"
    mkdir "$WORK/several"
    cp --sparse=always "$fixtures/$name"/dev*.img "$WORK/several"
    for device in "$WORK/several"/*.img; do
        # shellcheck disable=SC2086 # the words of a change
        holds "the change is interrupted: $words" \
            python3 "$ROOT/tests/support/unfinished_change.py" "$device" $change
    done
    before=$(written "$WORK/several"/*.img)
    expect "$words: repair" 0 . repair -C "$WORK/fixed" "$WORK/several"/*.img
    is "$words: repair does not change the images" "$(written "$WORK/several"/*.img)" "$before"
    patches=()
    for overlay in "$WORK/fixed"/*.qcow2; do patches+=(--patch "$overlay"); done
    expect "$words: check" 0 . check --data "${patches[@]}" "$WORK/several"/*.img
    is "$words: the repaired files have the hashes of the images" \
        "$("$PROGRAM" sum --relative "${patches[@]}" "$WORK/several"/*.img | cksum)" \
        "$("$PROGRAM" sum --relative "$fixtures/$name"/dev*.img | cksum)"
done

# With a metadata_uuid, tree blocks keep their id.
ends 'all tree blocks have the id that the superblocks name' metadata-uuid 'flag 36'
ends 'the checksums of all data have the old type' metadata-uuid 'blocks 2 2'
ends 'the checksums of all data have the new type' metadata-uuid 'data 2 alone'
keeps metadata-uuid 'flag 35'

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

# Two changes at once cannot be.
keeps plain 'flag 38' 'flag 39'
finish
