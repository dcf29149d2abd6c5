#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check --data: every mirror of data, parity, and the log, in images that the kernel wrote.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
profiles='raid1c4-4 raid10-4 raid5-3 raid6-4 compressed-blake2 compressed-sha256 compressed-xxhash'
"$ROOT/scripts/unpack-fixtures" "$fixtures" $profiles log-tree bad-copy-raid1 subvolumes \
    differences compressed data-clones data-shapes remap-converted || exit 1

# others IMAGE...: the options that name the devices after the first.
others() { shift; printf -- '--device\n%s\n' "$@"; }

# flip IMAGE OFFSET: inverts a byte; a second call restores it.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\x$(printf %x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# places LOGICAL IMAGE...: KIND DEVID OFFSET of all copies and parities.
places() {
    local logical=$1
    shift
    "$PROGRAM" map -b -o kind,devid,offset $([ $# -gt 1 ] && others "$@") "$1" "$logical"
}

# all_found WHAT OPTIONS LOGICAL CODE IMAGE...: in each of its copies in turn a byte is changed,
# which must be reported at that location, and nothing else.
all_found() {
    local what=$1 options=$2 logical=$3 code=$4 kind devid offset expected found=0
    shift 4
    while read -r kind devid offset; do
        expected=$code
        [ "$kind" = copy ] || expected=parity-mismatch
        flip "${!devid}" "$((offset + 107))"
        expect "$what, $kind on device $devid" 4 'btrfs-walk: checked: ' check $options "$@"
        flip "${!devid}" "$((offset + 107))"
        holds "$what, $kind on device $devid is found" out_has "^error $expected[: ].* $offset[],]"
        holds "$what, $kind on device $devid is the only error" \
            [ "$(grep -c '^error' "$WORK/out")" -eq 1 ]
        found=$((found + 1))
    done < <(places "$logical" "$@")
    holds "$what: map lists its copies" [ "$found" -ge 1 ]
}

# two_mended LOGICAL IMAGE...: of two bad sectors of a copy, with a good one between them, both are.
two_mended() {
    local logical=$1 kind devid offset at
    shift
    read -r kind devid offset < <(places "$logical" "$@")
    for at in 0 8192; do flip "${!devid}" $((offset + at)); done
    expect "two bad sectors" 4 'btrfs-walk: checked: ' check --data "$@"
    is "both bad sectors can be repaired" \
        "$(grep -c '^error data-checksum.*repairable' "$WORK/out")" 2
    for at in 0 8192; do flip "${!devid}" $((offset + at)); done
}

# parity_of_no_data IMAGE...: the parity of a row without allocated data, like the last one of a
# data chunk, does not matter. Wrong parity of other rows is reported, with the advice to scrub.
parity_of_no_data() {
    local chunk length kind devid offset changed=0
    read -r chunk length < <("$PROGRAM" chunks -b -o logical,length,chunk_type "$1" $(others "$@") |
        awk '$3 == "Data" { print $1, $2; exit }')
    while read -r kind devid offset; do
        [ "$kind" != copy ] || continue
        flip "${!devid}" $((offset + 107))
        changed=$((changed + 1))
    done < <(places $((chunk + length - 65536)) "$@")
    holds "there is parity at the end of the chunk" [ "$changed" -ge 1 ]
    expect "parity of no data" 0 'btrfs-walk: checked: ' check --data "$@"
    read -r kind devid offset < <(places "$data" "$@" | grep -v ^copy)
    flip "${!devid}" $((offset + 107))
    expect "parity of data" 4 'write hole.*scrub rewrites' check --data "$@"
    holds "parity is what is wrong" \
        out_has '^error parity-mismatch.* do not match the data .*repairable'
    flip "${!devid}" $((offset + 107))
}

for profile in $profiles; do
    images=()
    for image in "$fixtures/$profile"/dev*.img; do
        cp --sparse=always "$image" "$WORK/${image##*/}"
        images+=("$WORK/${image##*/}")
    done
    expect "$profile is healthy" 0 'btrfs-walk: checked: ' check --data "${images[@]}"
    holds "$profile has no errors" [ "$(grep -c ^error "$WORK/out")" -eq 0 ]
    data=$("$PROGRAM" dump --tree csum "${images[@]:0:1}" \
        $([ ${#images[@]} -gt 1 ] && others "${images[@]}") |
        awk '/range start/ { print $3; exit }')
    block=$("$PROGRAM" dump --tree fs "${images[@]:0:1}" \
        $([ ${#images[@]} -gt 1 ] && others "${images[@]}") | awk '/^leaf/ { print $2; exit }')
    all_found "data of $profile" --data "$data" data-checksum "${images[@]}"
    all_found "a block of $profile" '' "$block" block-checksum "${images[@]}"
    [ "$profile" != raid1c4-4 ] || two_mended "$data" "${images[@]}"
    [ "$profile" != raid5-3 ] ||
        all_found "a block of the first chunk" --data 22036480 block-checksum "${images[@]}"
    [[ $profile != raid[56]* ]] || parity_of_no_data "${images[@]}"
    rm "${images[@]}"
done

# The device of a block is missing, and the parity of its row is damaged.
cp --sparse=always "$fixtures"/raid5-3/dev?.img "$WORK"
logical=$("$PROGRAM" dump --tree fs "$fixtures"/raid5-3/dev?.img |
    sed -n "/^leaf/{s/^leaf //;s/ .*//p;q}")
read -r devid offset _ <<< "$("$PROGRAM" map -o devid,offset,kind --raw "$WORK/dev1.img" \
    --device "$WORK/dev2.img" --device "$WORK/dev3.img" "$logical" | grep P)"
missing=$("$PROGRAM" map -o devid --raw "$WORK/dev1.img" --device "$WORK/dev2.img" \
    --device "$WORK/dev3.img" "$logical" | head -n 1)
flip "$WORK/dev$devid.img" $((offset + 200))
flip "$WORK/dev$devid.img" $((offset + 300))
rm "$WORK/dev$missing.img"
expect "a block that parity does not give" 4 . check "$WORK"/dev?.img
holds "check says that the block from parity is bad" out_has \
    "^error block-missing .*all mirrors are on missing devices, and the block from parity is bad"
rm "$WORK"/dev?.img

# Data that follow data without checksums are checked as well.
cp --sparse=always "$fixtures/differences/dev1.img" "$WORK/gap.img"
expect "gaps in checksums" 0 'btrfs-walk: checked: ' check --data "$WORK/gap.img"
all_found "data after a gap" --data 64143360 data-checksum "$WORK/gap.img"

# The remap tree is also in the root tree, and its blocks are not in the extent tree.
expect "a converted remap tree" 0 'checked: .*; 0 errors, 0 warnings, 0 notes' check --data \
    "$fixtures/remap-converted/dev1.img"

# The reads of the next tasks are announced, for the copy that they will read.
set -- "$fixtures"/raid1c4-4/dev*.img
expect "a check with hints" 0 'btrfs-walk: checked: ' check --data -j1 \
    --insert "debug/trace@verify,operations=all,file=$WORK/trace" $(others "$@") "$1"
is "the next reads are announced for copies 3 and 4" "mirror 3 mirror 4 " \
    "$(sed -n 's/.*> advise .* \(mirror .\)$/\1/p' "$WORK/trace" | tr '\n' ' ')"

# Several adjacent bad sectors are one finding. The other device can repair them, unless it is
# missing.
mirror=$fixtures/bad-copy-raid1
expect 'bad sectors of a copy' 4 'btrfs-walk: checked: ' check --data --all "$mirror"/dev[12].img
holds "bad sectors with another copy can be repaired" out_has 'data-checksum .*repairable'
expect 'without the good mirror' 4 'btrfs-walk: checked: ' check --data "$mirror/dev1.img"
holds "bad sectors without another copy cannot be repaired" \
    [ "$(grep data-checksum "$WORK/out" | grep -c repairable)" -eq 0 ]
expect 'with the good mirror alone' 0 'btrfs-walk: checked: ' check --data "$mirror/dev2.img"

# But those of files with the same inode number in two subvolumes are two, and what no file shows of
# an extent is one of its own.
# adjacent NAME FIXTURE OFFSET COUNT FINDINGS: sectors at an offset.
adjacent() {
    cp --sparse=always "$fixtures/$2/dev1.img" "$WORK/adjacent.img"
    tr '\0' A < /dev/zero | dd of="$WORK/adjacent.img" bs=4096 seek=$(($3 / 4096)) count="$4" \
        iflag=fullblock conv=notrunc status=none
    is "$1" "$("$PROGRAM" check --data -o tree,inode,logical,length "$WORK/adjacent.img" \
        2> /dev/null | tail -n +2)" "$5"
}
adjacent "bad data of files with the same number" subvolumes 13631488 10 \
    $'5\t278\t13651968\t20480\n256\t278\t13631488\t20480'
adjacent "bad data that no file shows" data-clones 106156032 3 \
    $'256\t257\t64212992\t4096\n-\t-\t64217088\t8192'

# Parity of degraded rows cannot be checked, which is not an error.
expect 'RAID6 without two devices' 0 'btrfs-walk: checked: ' check \
    --data "$fixtures"/raid6-4/dev[12].img
holds "a note counts the rows that were not checked" out_has '^note parity-unchecked.* rows '

expect 'a log' 0 'btrfs-walk: checked: ' check --data "$fixtures/log-tree/dev1.img"
holds "a note reports the log" out_has '^note log-present'

# Compressed data that cannot be decompressed, although all checksums match.
compressed=$fixtures/compressed/dev1.img clones=$fixtures/data-clones/dev1.img
# cannot_decompress WHERE FINDING NAME CHANGE...: the changed image has this finding, but only with
# --data.
cannot_decompress() {
    local where=$1 finding=$2
    cp --sparse=always "$3" "$WORK/stream.img"
    shift 3
    holds "$where: the item is changed: $*" change "$WORK/stream.img" "$@"
    expect "$where, without data" 0 'btrfs-walk: checked: ' check "$WORK/stream.img"
    expect "$where" 4 'btrfs-walk: checked: ' check --data "$WORK/stream.img"
    holds "$where: the stream is the only error" [ "$(grep -c ^error "$WORK/out")" -eq 1 ]
    holds "$where: the stream is reported" out_has "^error data-compressed $finding"
}
cannot_decompress 'an inline extent' '.*(283 EXTENT_DATA 0).* offset 0 length 1000: zlib: ' \
    "$compressed" 5 283 108 0 set 21 4 7
cannot_decompress 'another compression' \
    '.*(284 EXTENT_DATA 131072).* offset 131072 length 131072: lzo: .*logical 13639680' \
    "$compressed" 5 284 108 131072 set 16 1 2
cannot_decompress 'data that are not compressed' '.*(257 EXTENT_DATA 0).* length 12288: zstd: ' \
    "$clones" 5 257 108 0 set 16 1 3
cannot_decompress 'a leaf that snapshots share' '.*(263 EXTENT_DATA 131072).*: zlib: ' \
    "$fixtures/differences/dev1.img" 256 263 108 131072 set 16 1 1
head -c 4096 /dev/zero | tr '\0' A > "$WORK/sector"
cp --sparse=always "$compressed" "$WORK/garbage.img"
dd if="$WORK/sector" of="$WORK/garbage.img" bs=4096 conv=notrunc status=none \
    seek="$(($("$PROGRAM" map -o offset "$compressed" 13639680) / 4096))"
expect 'a stream that is damaged' 4 'btrfs-walk: checked: ' check --data "$WORK/garbage.img"
holds 'is not said to be one that is wrong' [ "$(grep -c data-compressed "$WORK/out")" -eq 0 ]
cannot_decompress 'garbage with its checksum' '.*(284 EXTENT_DATA 131072).*: zlib: ' \
    "$WORK/garbage.img" 7 -10 128 13631488 set 8 4 91378153

# A stream that another mirror has: on device 1 of these, compressed data were overwritten, and
# their checksums are lost.
for device in 1 2; do
    zstd -qd --sparse "$ROOT/tests/data/bad-streams-$device.img.zst" -o "$WORK/streams-$device.img"
done
log_sum=4ad1dd4c3e23d12cf5aae7c8449c2a5c300feed7df7efb8ff5610025fc9b9030
pair=("$WORK"/streams-[12].img)
expect 'bad streams on a mirror' 4 'btrfs-walk: checked: ' check --data "${pair[@]}"
is "streams with another mirror can be repaired" \
    "$(grep -c '^error data-compressed .*repairable' "$WORK/out")" 10
expect 'they are read' 0 'note: .*: used mirror 2 instead of a bad one: mirror 1 on device 1' \
    cat -v --ignore-checksums data "$WORK/streams-1.img" --device "$WORK/streams-2.img" /log
holds "the stream is read from the other mirror" [ "$(sha256sum < "$WORK/out")" = "$log_sum  -" ]

# Data without checksums: the copies are compared, here the images of one device. Bytes of
# preallocated space, which no file shows, may differ.
for image in one two; do
    cp --sparse=always "$fixtures/data-shapes/dev1.img" "$WORK/$image.img"
done
one=$WORK/one.img two=$WORK/two.img
expect 'equal copies' 0 'btrfs-walk: checked: .* 0 errors, 0 warn' check --data --alternatives \
    "$one" "$two"
logical=$("$PROGRAM" extents "$one" /without-checksums |
    awk '$NF ~ /^1:/ { print $(NF - 3) + 0; exit }')
flip "$two" "$(("$("$PROGRAM" map -b -o offset "$one" "$logical" | head -n 1)" + 5000))"
expect 'different copies' 0 'btrfs-walk: checked: .* 0 errors, 1 warn' check --data \
    --alternatives "$one" "$two"
holds "different copies are reported with the name of the file" out_has \
    "^warning data-mirrors-differ FS_TREE /without-checksums offset 4096 length 4096: .*differ"
expect 'one copy' 0 'btrfs-walk: checked: .* 0 errors, 0 warn' check --data "$two"
finish
