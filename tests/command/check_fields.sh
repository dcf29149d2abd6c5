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
    block-group-tree compressed simple-quota subvolume-kinds past || exit 1

# finds STATUS CODES NAME CHANGE...: `check` of the changed image must end with this status, and its
# findings must be of exactly these kinds: the one that the change is meant for, and those that
# follow from it.
finds() {
    local wanted=$1 codes=$2 name=$3
    shift 3
    cp --sparse=always "$fixtures/$name/dev1.img" "$WORK/image"
    holds "$name is changed: $*" change "$WORK/image" "$@"
    case_name="$name with $*" says "$wanted" "$codes" "$WORK/image"
}

# says STATUS CODES ARGUMENT...: the same with these arguments of `check`. Most images have ranges
# of free space that mkfs did not note; that note counts only where it is asked for.
says() {
    local wanted=$1 codes=$2 kinds ignored=free-space-extra
    shift 2
    timeout 20 "$PROGRAM" check "$@" > "$WORK/out" 2> "$WORK/err"
    status=$?
    case ,$codes, in *,free-space-extra,*) ignored=none ;; esac
    kinds=$(sed -nE 's/^(error|warning|note) ([a-z-]+)[ :].*/\2/p' "$WORK/out" |
        grep -vx $ignored | LC_ALL=C sort -u | paste -sd,)
    is "kinds of findings in ${case_name:-$*}" "$kinds" \
        "$(printf '%s' "$codes" | tr , '\n' | LC_ALL=C sort -u | paste -sd,)"
    is "status of check of ${case_name:-$*}" "$status" "$wanted"
}

finds 4 super-values plain super 128 8 7
finds 4 super-values plain super 152 4 20480
finds 4 super-values plain super 199 1 1
finds 4 super-values plain super 200 1 9
finds 4 super-values plain super 555 8 99
finds 0 super-flags plain super 56 8 5
finds 0 feature-unknown plain super 180 8 1048579
finds 4 tree-missing,checksum-missing,extent-unreferenced plain 1 7 132 0 delete
finds 0 item-type,free-space-stray,memory-suspected plain 10 1048576 198 - key 1048576 196 4194304
finds 4 inode-item,entry-type,inode-items plain 5 262 1 0 set 52 4 0
finds 4 dir-item,entry-type plain 5 256 84 397168884 set 29 1 77
finds 4 name-hash,memory-suspected plain 5 256 84 397168884 key 256 84 397168885
finds 4 file-extent plain 5 262 108 0 set 20 1 7
finds 4 orphan-item,memory-suspected,orphan-missing orphans 5 -5 48 266 key -6 48 266
finds 4 verity-item,memory-suspected verity 5 284 36 0 set 8 8 1
finds 4 block-group-item,extent-kind,group-differs plain 2 13631488 192 8388608 set 16 8 0
finds 4 checksum-item,checksum-missing,checksum-orphaned,memory-suspected plain 7 -10 128 13631488 \
    key -10 128 13631489
finds 4 chunk-item,chunk-missing,extent-outside,memory-suspected plain 3 256 228 13631488 set 44 2 0
finds 12 device-item,device-missing,device-used,stripe-device plain 3 1 216 1 set 0 8 2
finds 4 device-extent-item,device-extent-differs,device-used,memory-suspected plain 4 1 204 \
    13631488 set 24 8 4097
finds 4 root-item,memory-suspected,tree-missing plain 1 2 132 0 set 238 1 9
finds 4 root-item,memory-suspected plain 1 4 132 0 key 4 132 1
finds 4 root-item,memory-suspected plain 1 5 132 0 set 168 8 257
finds 4 root-item plain 1 7 132 0 set 160 8 0
finds 4 root-ref,root-link subvolumes 1 5 156 256 set 16 2 99
finds 4 uuid-item,uuid-extra,uuid-missing plain 9 9747775022879163068 251 7912238250860246186 set \
    0 8 3
finds 4 free-space-item,memory-suspected plain 10 1048576 198 4194304 set 4 4 2
finds 4 quota-item,qgroup-unchecked quota 8 0 240 0 set 0 8 9
finds 4 quota-item,memory-suspected,qgroup-unchecked quota 8 0 240 0 set 8 8 99999
finds 4 orphan-missing orphans 5 -5 48 266 delete
finds 4 root-references subvolumes 1 256 132 0 set 216 4 9
finds 4 root-references,default-lost plain 1 5 132 0 set 216 4 0
finds 4 root-link subvolumes 1 256 144 5 delete
finds 0 uuid-missing plain 9 9747775022879163068 251 7912238250860246186 delete
finds 4 default-lost plain 1 6 84 2378154706 set 0 8 999
finds 4 block-stale,memory-suspected plain 5 257 1 0 block 80 8 5
finds 4 block-foreign plain 5 257 1 0 block 48 8 4096
finds 4 block-header,memory-suspected plain 5 257 1 0 block 56 1 0
finds 4 block-layout plain 5 257 1 0 block 118 4 5
finds 0 uuid-extra,uuid-missing plain 9 9747775022879163068 251 7912238250860246186 set 0 8 257
finds 4 super-device plain super 283 8 5
{ head -c 40M "$fixtures/plain/dev1.img" && tail -c +41947137 "$fixtures/plain/dev1.img"; } |
    cp --sparse=always /dev/stdin "$WORK/image"
expect "an image without 4 KiB of its middle" 4 . check "$WORK/image"
holds "the image lacks them" out_has '^error super-bad.* it is 4096 bytes before its place: '
expect "a walk of it" 0 'copy 1 .* rejected: .* it is 4096 bytes before its place: ' "$WORK/image"
{ head -c 4096 /dev/zero && cat "$WORK/image"; } | cp --sparse=always /dev/stdin "$WORK/later"
expect "the image, and its copy behind 4 KiB" 0 . sum -0 --alternatives --device "$WORK/later" \
    "$WORK/image"
holds "have all files" sums_match plain
finds 4 device-differs plain super 267 1 43
finds 4 system-chunk plain super 884 8 22085632
finds 4 root-lost plain super 80 8 16384
finds 0 free-space-invalid plain super 180 8 1
finds 4 chunk-missing,device-extent-extra,extent-outside plain 3 256 228 13631488 delete
finds 4 chunk-overlap,device-extent-differs,group-differs,stripe-overlap plain 3 256 228 13631488 \
    add 0 8 65536
finds 4 stripe-outside,device-extent-extra,device-extent-missing plain 3 256 228 13631488 add 56 8 \
    1073741824
finds 4 stripe-zone plain super 188 8 4961
finds 4 extent-overlap,checksum-missing,extent-differs,group-used plain 2 13631488 168 20480 key \
    13631488 168 24576
finds 4 extent-kind,group-differs plain 2 13631488 192 8388608 set 16 8 4
finds 4 block-missing plain 1 2 132 0 set 176 8 16384
finds 4 root-unlinked,block-foreign,reference-missing,root-link,uuid-extra subvolumes 1 256 132 0 \
    key 255 132 0
finds 4 directory-size plain 5 256 1 0 set 16 8 3
finds 4 inode-item,directory-size,memory-suspected plain 5 256 1 0 set 16 8 $(((1 << 63) + 5))
is 'the size in the image' "$(grep -c 'want 140 have 9223372036854775813' "$WORK/out")" 1
finds 4 checksum-overlap,checksum-missing,checksum-orphaned,items-overlap plain 7 -10 128 64225280 \
    key -10 128 13643776

# Features.
finds 4 feature-missing plain super 180 8 0
finds 4 feature-bits,feature-missing plain super 180 8 2
finds 4 feature-missing block-group-tree super 180 8 3
finds 4 super-values,free-space-invalid block-group-tree super 180 8 9
finds 0 verity-feature verity super 180 8 3
finds 0 compressed-unsummed,checksum-unwanted compressed 5 279 1 0 set 64 8 1
finds 0 root-key,relocation-key plain 1 -9 132 0 key -9 132 77
finds 0 relocation-key plain 1 -9 132 0 key -9 132 3

# Flags of Synology: one finding for all subvolumes, and one for all inodes.
finds 0 synology-roots subvolumes 1 256 132 0 set 208 8 17179869184 \
    and 1 257 132 0 set 208 8 4294967297
is "a warning" "$status" 0
holds "flags of Synology are counted for both subvolumes" \
    out_has 'flags of Synology.*: 2; other kernels refuse to mount'
finds 0 synology-inodes plain 5 257 1 0 add 64 8 1073741824 and 5 262 1 0 add 64 8 1073741824
is "a note" "$status" 0
holds "a note counts both inodes of Synology" out_has '^note synology-inodes: 2 inodes '
finds 4 inode-item,memory-suspected plain 5 257 1 0 add 64 8 536870912
finds 4 tree-missing,reference-extra,reference-missing plain 10 13631488 198 - key 13631488 165 \
    8388608 and \
    10 1048576 198 - block 88 8 205 and 1 10 132 0 key 205 132 0
is "items that only Synology's kernels know" "$(grep -c item-type "$WORK/out")" 0

# Backup roots: that of the present transaction is the last, and number 2 has the present chunk
# tree. What a later transaction may have overwritten contradicts nothing.
finds 0 backup-root plain super 3371 8 7
finds 0 backup-root plain super 3371 8 99
finds 0 backup-root plain super 3515 1 1
finds 0 backup-root plain super 3516 1 1
finds 0 backup-root plain super 3403 8 7
finds 0 backup-root plain super 3219 8 8
finds 0 backup-root plain super 3348 1 2
finds 0 free-space-extra plain super 2867 8 4 and super 3011 1 3
is "an older backup root has no finding" "$(grep -c backup-root "$WORK/out")" 0
# Of older transactions, whose blocks still exist: generations that are too low.
for place in 2867 2899; do
    finds 0 backup-root past super "$place" 8 16
    is "no other finding at $place" "$(grep -c backup-root "$WORK/out")" 1
done

# Superblocks.
finds 0 super-size plain super 112 8 134217729
finds 4 super-size,device-differs,device-truncated plain super 112 8 134217729 and 3 1 216 1 set 8 \
    8 134217729
finds 4 super-stale plain copy 1 72 8 6
finds 0 super-behind plain copy 1 72 8 7
is "one generation behind is no error" "$status" 0
finds 4 super-differs plain copy 1 299 1 65
finds 4 super-differs plain copy 1 96 8 30408704
finds 4 super-devices plain super 112 8 134291456
finds 0 metadump plain super 56 8 17179869185
says 0 data-absent,metadump --data "$WORK/image"
finds 8 unfinished plain super 188 8 9223372036854775808
says 12 not-opened "$fixtures/raid5-3/dev3.img"
says 8 image-unused "$fixtures"/{plain,empty}/dev1.img
says 4 device-stale,block-checksum "$fixtures"/stale-raid1-1/dev?.img
finds 4 device-differs plain 3 1 216 1 set 82 1 7

# Tree blocks.
finds 4 block-empty empty 5 256 1 0 block 96 4 0
finds 4 block-crossed,block-foreign,reference-missing plain 1 10 132 0 set 176 8 31195136 and 1 7 \
    132 0 set 176 8 31195136
finds 4 block-foreign,block-crossed,reference-missing plain 1 7 132 0 set 176 8 31195136
finds 4 block-keys,inode-item plain 5 257 1 0 key 255 1 0
logical=$("$PROGRAM" dump --tree fs "$fixtures/dup/dev1.img" | awk '/^leaf/ { print $2; exit }')
place=$("$PROGRAM" map -o offset "$fixtures/dup/dev1.img" "$logical" | tail -n 1)
finds 4 block-differs dup at "$place" 5 256 1 0 set 112 8 0
says 4 block-missing,data-unreadable,chunk-unreadable,device-missing --data \
    "$fixtures"/data-raid0-3/dev[12].img
says 4 block-unreadable --insert debug/error-gen@device-1,start=30M,end=60M "$fixtures/dup/dev1.img"

# Extents, subvolumes, quotas.
follow=extent-missing,free-space-differs,group-used
finds 4 reference-alone,operation-open,relocation,$follow relocation 2 30433280 169 - delete
finds 4 reference-count plain 2 13651968 168 4096 set 0 8 2 and 2 13651968 168 4096 set 49 4 2
finds 4 root-entry,entry-missing subvolumes 5 256 96 6 delete
finds 4 root-dropping subvolumes 1 256 132 0 set 220 8 257 and 1 256 132 0 set 237 1 1
finds 4 root-leaked deletion-begun 1 -5 48 - delete
holds "a leaked root is an error" out_has '^error root-leaked '
finds 4 root-orphan,root-leaked deletion-begun 1 -5 48 - key -5 48 999
finds 4 root-item subvolumes 1 260 132 7 key 260 132 8
finds 4 inode-cache,block-keys,orphan-item orphans 5 -5 48 282 key -12 48 282
holds "an inode cache is a warning" out_has '^warning inode-cache '

# A received subvolume whose data were written later is not changed; one with a younger time is.
expect "received, and written later" 0 '0 errors' check "$fixtures/subvolume-kinds/dev1.img"
holds "a subvolume that did not change has no finding" \
    bash -c "! grep -q received-changed '$WORK/out'"
finds 0 received-changed subvolume-kinds 1 262 132 - add 363 8 -9
holds "which is a warning, too" out_has '^warning received-changed '
finds 4 qgroup-count quota-groups 8 0 242 256 add 8 8 16384
finds 0 qgroup-missing quota-groups 8 0 242 281474976710658 delete
finds 4 qgroup-missing,qgroup-relation quota-groups 8 562949953421412 246 281474976710658 \
    key 562949953421412 246 281474976710665
finds 0 qgroup-unchecked quota super 56 8 1
finds 0 qgroup-unchecked quota-groups 8 0 240 0 set 16 8 5
finds 0 qgroup-unchecked quota-groups 8 0 240 0 set 16 8 3
finds 0 qgroup-stale quota-groups 8 0 240 0 add 8 8 -1
finds 4 qgroup-relation quota-groups 8 257 246 281474976710658 delete
finds 4 qgroup-relation quota-groups 8 281474976710658 246 257 delete
is "and no numbers, which are not certain then" "$(grep -c qgroup-count "$WORK/out")" 0
finds 4 qgroup-owner,qgroup-count simple-quota 2 13631488 168 20480 set 25 8 257
item='8 0 242 5 add'
# shellcheck disable=SC2086 # the words of a change
finds 4 extent-item,qgroup-first-block simple-quota super 188 8 66145 and $item 8 8 -16384 \
    and $item 24 8 -16384
finds 4 qgroup-count simple-quota 8 0 240 0 add 8 8 -1 and 8 0 242 256 add 8 8 4096
finds 4 extent-ref simple-quota super 188 8 865
finds 4 block-owner differences 256 256 1 0 block 88 8 5
finds 4 block-owner differences 256 256 1 0 block 88 8 257
is "the changed field has no other finding" "$(grep -c ^error "$WORK/out")" 1
finds 4 verity-item,verity-tree verity 5 284 37 0 key 284 37 5

# Data.
mkdir "$WORK/log"
zstd -dq --sparse "$ROOT/fixtures/log-cuts/9010-1.img.zst" -o "$WORK/log/dev1.img"
fixtures=$WORK finds 4 log-checksum,log-present log -6 -10 128 - delete
# Checksums that the checksum tree has of data of the log, 8 KiB, and of 4 KiB after them.
fixtures=$WORK finds 4 checksum-orphaned,checksum-missing,log-present log 7 -10 128 13778944 key \
    -10 128 13807616
is "checksums of data in the log belong to it" \
    "$(sed -n 's/.*checksum-orphaned.*\[logical \(.*\)\]/\1/p' "$WORK/out")" 13815808
says 4 parity-unreadable,block-unreadable --data --insert \
    debug/error-gen@device-2,start=1M,end=60M \
    "$fixtures"/raid5-3/dev?.img
finish
