#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: what is found if one number in an item, a key or a superblock of a healthy image is another one, with the
# checksum mended. scripts/check-fields does the same with random numbers.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes verity quota orphans log-tree || exit 1

# finds CODE NAME CHANGE...: a finding of this kind.
finds() {
    local code=$1 name=$2
    shift 2
    cp --sparse=always "$fixtures/$name/dev1.img" "$WORK/image"
    if ! python3 "$ROOT/tests/support/change_item.py" "$WORK/image" "$@" 2> "$WORK/err"; then
        fail "$code: $*: $(head -n 1 "$WORK/err")"
        return
    fi
    timeout 20 "$PROGRAM" check "$WORK/image" > "$WORK/out" 2> "$WORK/err"
    local status=$?
    case $status in
    0 | 4 | 8 | 12) holds "$code: $*" out_has "^(error|warning|note) $code" ;;
    *) fail "$code: $*: exit status $status" ;;
    esac
}

finds super-values plain super 128 8 7
finds super-values plain super 152 4 20480
finds super-values plain super 199 1 1
finds super-values plain super 200 1 9
finds super-values plain super 555 8 99
finds super-flags plain super 56 8 5
finds feature-unknown plain super 180 8 1048579
finds log-present log-tree super 555 8 0
finds item-type plain 10 1048576 198 - key 1048576 196 4194304
finds block-keys plain 5 257 1 0 key 259 1 0
finds inode-item plain 5 262 1 0 set 52 4 0
finds inode-item plain 5 262 1 0 set 8 8 99999
finds inode-ref plain 5 257 12 256 set 8 2 60
finds dir-item plain 5 256 84 397168884 set 29 1 77
finds dir-item plain 5 256 96 2 set 8 1 9
finds xattr-item plain 5 408 24 1225309730 set 29 1 1
finds name-hash plain 5 256 84 397168884 key 256 84 397168885
finds file-extent plain 5 262 108 0 set 20 1 7
finds file-extent plain 5 405 108 299008 set 0 8 99999
finds orphan-item orphans 5 -5 48 266 key -6 48 266
finds verity-item verity 5 284 36 0 set 8 8 1
finds extent-item plain 2 13631488 168 20480 set 16 8 64
finds extent-ref plain 2 13631488 168 20480 set 24 1 9
finds block-group-item plain 2 13631488 192 8388608 set 16 8 0
finds checksum-item plain 7 -10 128 13631488 key -10 128 13631489
finds chunk-item plain 3 256 228 13631488 set 44 2 0
finds device-item plain 3 1 216 1 set 0 8 2
finds device-extent-item plain 4 1 204 13631488 set 24 8 4097
finds root-item plain 1 2 132 0 set 238 1 9
finds root-item plain 1 4 132 0 key 4 132 1
finds root-item plain 1 5 132 0 set 168 8 257
finds root-ref subvolumes 1 5 156 256 set 16 2 99
finds uuid-item plain 9 9747775022879163068 251 7912238250860246186 set 0 8 3
finds free-space-item plain 10 1048576 198 4194304 set 4 4 2
finds quota-item quota 8 0 240 0 set 0 8 9
finds quota-item quota 8 0 240 0 set 8 8 99999
finds inode-missing plain 5 262 1 0 delete
finds inode-items plain 5 262 1 0 set 52 4 4516
finds entry-missing plain 5 256 84 397168884 delete
finds entry-type plain 5 256 96 2 set 29 1 7
finds link-count plain 5 262 1 0 set 40 4 9
finds file-bytes plain 5 405 1 0 add 24 8 4096
finds orphan-missing orphans 5 -5 48 266 delete
finds root-references subvolumes 1 256 132 0 set 216 4 9
finds root-link subvolumes 1 256 144 5 delete
finds root-link subvolumes 1 5 156 256 delete
finds uuid-missing plain 9 9747775022879163068 251 7912238250860246186 delete
finds default-lost plain 1 6 84 2378154706 set 0 8 999
finish
