#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check: what is found if one number in an item, a key or a superblock of a healthy image is changed
# and the checksum is recomputed; and how damage of other kinds is classified.
# tests/kernel/fields.py does the same with random numbers.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes verity quota quota-groups orphans \
    dup empty relocation deletion-begun log-tree data-raid0-3 raid5-3 stale-raid1-1 differences \
    block-group-tree compressed simple-quota subvolume-kinds || exit 1

# finds CODES NAME CHANGE...: the changed image must have findings of exactly these kinds, which are
# separated by commas.
finds() {
    local codes=$1 name=$2
    shift 2
    cp --sparse=always "$fixtures/$name/dev1.img" "$WORK/image"
    holds "$codes: $*" change "$WORK/image" "$@"
    says "$codes" "$WORK/image"
}

# says CODES ARGUMENT...: check with these arguments must report exactly these kinds of findings.
says() {
    local codes=$1
    shift
    timeout 20 "$PROGRAM" check "$@" > "$WORK/out" 2> "$WORK/err"
    status=$?
    case $status in
    0 | 4 | 8 | 12)
        for code in ${codes//,/ }; do
            holds "$code: $*" out_has "^(error|warning|note) $code[ :]"
        done
        ;;
    *) fail "$codes: $*: exit status $status" ;;
    esac
}

finds super-values plain super 128 8 7
finds super-values plain super 152 4 20480
finds super-values plain super 199 1 1
finds super-values plain super 200 1 9
finds super-values plain super 555 8 99
finds super-flags plain super 56 8 5
finds feature-unknown plain super 180 8 1048579
finds tree-missing plain 1 7 132 0 delete
finds item-type plain 10 1048576 198 - key 1048576 196 4194304
finds inode-item plain 5 262 1 0 set 52 4 0
finds dir-item plain 5 256 84 397168884 set 29 1 77
finds name-hash plain 5 256 84 397168884 key 256 84 397168885
finds file-extent plain 5 262 108 0 set 20 1 7
finds orphan-item orphans 5 -5 48 266 key -6 48 266
finds verity-item verity 5 284 36 0 set 8 8 1
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
finds orphan-missing orphans 5 -5 48 266 delete
finds root-references subvolumes 1 256 132 0 set 216 4 9
finds root-references plain 1 5 132 0 set 216 4 0
finds root-link subvolumes 1 256 144 5 delete
finds uuid-missing plain 9 9747775022879163068 251 7912238250860246186 delete
finds default-lost plain 1 6 84 2378154706 set 0 8 999
finds block-stale plain 5 257 1 0 block 80 8 5
finds block-foreign plain 5 257 1 0 block 48 8 4096
finds block-header plain 5 257 1 0 block 56 1 0
finds block-layout plain 5 257 1 0 block 118 4 5
finds uuid-extra plain 9 9747775022879163068 251 7912238250860246186 set 0 8 257
finds super-device plain super 283 8 5
finds system-chunk plain super 884 8 22085632
finds root-lost plain super 80 8 16384
finds free-space-invalid plain super 180 8 1
finds chunk-missing,device-extent-extra plain 3 256 228 13631488 delete
finds chunk-overlap,device-extent-differs,group-differs,stripe-overlap plain 3 256 228 13631488 \
    add 0 8 65536
finds stripe-outside plain 3 256 228 13631488 add 56 8 1073741824
finds stripe-zone plain super 188 8 4961
finds extent-overlap plain 2 13631488 168 20480 key 13631488 168 24576
finds extent-kind plain 2 13631488 192 8388608 set 16 8 4
finds block-missing plain 1 2 132 0 set 176 8 16384
finds root-unlinked subvolumes 1 256 132 0 key 255 132 0
finds directory-size plain 5 256 1 0 set 16 8 3
finds checksum-overlap plain 7 -10 128 64225280 key -10 128 13643776

# Features.
finds feature-missing plain super 180 8 0
finds feature-bits,feature-missing plain super 180 8 2
finds feature-missing block-group-tree super 180 8 3
finds super-values block-group-tree super 180 8 9
finds verity-feature verity super 180 8 3
finds compressed-unsummed compressed 5 279 1 0 set 64 8 1
finds root-key plain 1 -9 132 0 key -9 132 77
finds relocation-key plain 1 -9 132 0 key -9 132 3

# Flags of Synology: one finding for all subvolumes, and one for all inodes.
finds synology-roots subvolumes 1 256 132 0 set 208 8 17179869184 \
    and 1 257 132 0 set 208 8 4294967297
is "a warning" "$status" 0
holds "both subvolumes" out_has 'flags of Synology.*: 2; other kernels refuse to mount'
finds synology-inodes plain 5 257 1 0 add 64 8 1073741824 and 5 262 1 0 add 64 8 1073741824
is "a note" "$status" 0
holds "both inodes" out_has '^note synology-inodes: 2 inodes '
finds inode-item plain 5 257 1 0 add 64 8 536870912
finds tree-missing plain 10 13631488 198 - key 13631488 165 8388608 and \
    10 1048576 198 - block 88 8 205 and 1 10 132 0 key 205 132 0
is "items that only Synology's kernels know" "$(grep -c item-type "$WORK/out")" 0

# Backup roots: that of the present transaction is the last, and number 2 has the present chunk
# tree. What a later transaction may have overwritten contradicts nothing.
finds backup-root plain super 3371 8 7
finds backup-root plain super 3371 8 99
finds backup-root plain super 3515 1 1
finds backup-root plain super 3516 1 1
finds backup-root plain super 3403 8 7
finds backup-root plain super 3219 8 8
finds backup-root plain super 3348 1 2
finds free-space-extra plain super 2867 8 4 and super 3011 1 3
is "an older backup root" "$(grep -c backup-root "$WORK/out")" 0
# Of older transactions, whose blocks still exist: generations that are too low.
for place in 2867 2899; do
    finds backup-root past super "$place" 8 16
    is "no other finding at $place" "$(grep -c backup-root "$WORK/out")" 1
done

# Superblocks.
finds super-size plain super 112 8 134217729
finds super-size plain super 112 8 134217729 and 3 1 216 1 set 8 8 134217729
finds super-stale plain copy 1 72 8 6
finds super-behind plain copy 1 72 8 7
is "one generation behind is no error" "$status" 0
finds super-differs plain copy 1 299 1 65
finds super-differs plain copy 1 96 8 30408704
finds super-devices plain super 112 8 134291456
finds metadump plain super 56 8 17179869185
says data-absent --data "$WORK/image"
finds unfinished plain super 188 8 9223372036854775808
says not-opened "$fixtures/raid5-3/dev3.img"
says image-unused "$fixtures"/{plain,empty}/dev1.img
says device-stale "$fixtures"/stale-raid1-1/dev?.img
finds device-differs plain 3 1 216 1 set 82 1 7

# Tree blocks.
finds block-empty empty 5 256 1 0 block 96 4 0
finds block-crossed plain 1 10 132 0 set 176 8 31195136 and 1 7 132 0 set 176 8 31195136
finds block-foreign plain 1 7 132 0 set 176 8 31195136
finds block-keys plain 5 257 1 0 key 255 1 0
logical=$("$PROGRAM" dump --tree fs "$fixtures/dup/dev1.img" | awk '/^leaf/ { print $2; exit }')
place=$("$PROGRAM" map -o offset "$fixtures/dup/dev1.img" "$logical" | tail -n 1)
finds block-differs dup at "$place" 5 256 1 0 set 112 8 0
says block-missing,data-unreadable --data "$fixtures"/data-raid0-3/dev[12].img
says block-unreadable --insert debug/error-gen@device-1,start=30M,end=60M "$fixtures/dup/dev1.img"

# Extents, subvolumes, quotas.
finds reference-alone relocation 2 30433280 169 - delete
finds reference-count plain 2 13651968 168 4096 set 0 8 2 and 2 13651968 168 4096 set 49 4 2
finds root-entry subvolumes 5 256 96 6 delete
finds root-dropping subvolumes 1 256 132 0 set 220 8 257 and 1 256 132 0 set 237 1 1
finds root-leaked deletion-begun 1 -5 48 - delete
holds "which is an error" out_has '^error root-leaked '
finds root-orphan deletion-begun 1 -5 48 - key -5 48 999
finds root-item subvolumes 1 260 132 7 key 260 132 8
finds inode-cache orphans 5 -5 48 282 key -12 48 282
holds "which is a warning" out_has '^warning inode-cache '

# A received subvolume whose data were written later is not changed; one with a younger time is.
expect "received, and written later" 0 '0 errors' check "$fixtures/subvolume-kinds/dev1.img"
holds "is as it was" bash -c "! grep -q received-changed '$WORK/out'"
finds received-changed subvolume-kinds 1 262 132 - add 363 8 -9
holds "which is a warning, too" out_has '^warning received-changed '
finds qgroup-count quota-groups 8 0 242 256 add 8 8 16384
finds qgroup-missing quota-groups 8 0 242 281474976710658 delete
finds qgroup-missing quota-groups 8 562949953421412 246 281474976710658 \
    key 562949953421412 246 281474976710665
finds qgroup-unchecked quota super 56 8 1
finds qgroup-unchecked quota-groups 8 0 240 0 set 16 8 5
finds qgroup-unchecked quota-groups 8 0 240 0 set 16 8 3
finds qgroup-stale quota-groups 8 0 240 0 add 8 8 -1
finds qgroup-relation quota-groups 8 257 246 281474976710658 delete
finds qgroup-relation quota-groups 8 281474976710658 246 257 delete
is "and no numbers, which are not certain then" "$(grep -c qgroup-count "$WORK/out")" 0
finds qgroup-owner,qgroup-count simple-quota 2 13631488 168 20480 set 25 8 257
finds qgroup-count simple-quota 8 0 240 0 add 8 8 -1 and 8 0 242 256 add 8 8 4096
finds extent-ref simple-quota super 188 8 865
finds block-owner differences 256 256 1 0 block 88 8 5
finds block-owner differences 256 256 1 0 block 88 8 257
is "and nothing else" "$(grep -c ^error "$WORK/out")" 1
finds verity-item verity 5 284 37 0 key 284 37 5

# Data.
mkdir "$WORK/log"
zstd -dq --sparse "$ROOT/fixtures/log-cuts/9010-1.img.zst" -o "$WORK/log/dev1.img"
fixtures=$WORK finds log-checksum log -6 -10 128 - delete
# Checksums that the checksum tree has of data of the log, 8 KiB, and of 4 KiB after them.
fixtures=$WORK finds checksum-orphaned log 7 -10 128 13778944 key -10 128 13807616
is "checksums of data in the log belong to it" \
    "$(sed -n 's/.*checksum-orphaned.*\[logical \(.*\)\]/\1/p' "$WORK/out")" 13815808
says parity-unreadable --data --insert debug/error-gen@device-2,start=1M,end=60M \
    "$fixtures"/raid5-3/dev?.img
finish
