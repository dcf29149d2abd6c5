#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` of file systems in which btrfstune was interrupted: no mount accepts them. In the result,
# nothing is wrong, all data match their checksums, and all files are as before.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have python3 || { skip python3 "interrupted changes"; finish; }
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup block-group-tree || exit 1

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

# The checksums of tree blocks, and those of data before them. With old and new items, one set has
# to be deleted, which is not planned.
ends 'all checksums of data have the old type' plain 'blocks 2 2'
ends 'all checksums of data have the old type' dup 'blocks 3 3'
ends 'all checksums of data have the old type' plain 'flag 39'
ends 'all checksums of data have the new type' plain 'data 2 alone'
ends 'all checksums of data have the new type' plain 'data 2 done'
ends 'all checksums of data have the new type' plain 'data 2 done' 'blocks 2 3'
is "the repaired file system has the new type of checksums" \
    "$("$PROGRAM" info -o checksum --patch "$WORK/fixed.qcow2" "$WORK/image")" sha256
for stage in adding added deleting renamed; do keeps plain "data 2 $stage"; done

# The block group tree.
ends 'all block groups are in the extent tree' plain 'flag 38'
ends 'all block groups are in the block group tree' block-group-tree 'flag 38'

# Two changes at once cannot be.
keeps plain 'flag 38' 'flag 39'
finish
