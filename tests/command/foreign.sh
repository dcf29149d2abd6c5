#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files that are not btrfs are identified, with a hint at what can be done; and a damaged superblock
# is distinguished from a missing one.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain || exit 1
plain=$BUILD/fixtures/plain/dev1.img
image=$WORK/image

# put OFFSET BYTES: makes a file with these bytes at an offset. BYTES as for printf.
put() {
    truncate -s 0 "$image"
    truncate -s 8M "$image"
    # shellcheck disable=SC2059 # the bytes are a format on purpose
    printf "$2" | dd of="$image" bs=1 seek="$1" conv=notrunc status=none
}

# is_a NAME OFFSET BYTES REGEX: a file with these bytes at an offset must be reported as this. BYTES
# as for printf.
is_a() {
    put "$2" "$3"
    expect "$1" 2 "^btrfs-walk: [^ ]*/image is not a btrfs file system: it is $4" ls --helpers=off \
        "$image" /
    holds "$1: the message is one line" [ "$(wc -l < "$WORK/err")" -eq 1 ]
}

# fails NAME OFFSET BYTES REGEX: the container with these bytes cannot be opened, for this reason.
fails() {
    put "$2" "$3"
    expect "$1" 2 "^btrfs-walk: [^ ]*/image: $4" ls --helpers=off "$image" /
    holds "$1: the message is one line" [ "$(wc -l < "$WORK/err")" -eq 1 ]
}

is_a qcow2 0 'QFI\373\0\0\0\3' \
    "a qcow2 image: (install qemu-nbd to read it directly, or )?convert it with 'qemu-img "
is_a vmdk 0 'KDMV\1' 'a vmdk image: .*convert'
is_a vdi 64 '\177\020\332\276' 'a vdi image: .*convert'
is_a vhdx 0 'vhdxfile' 'a vhdx image: .*convert'
is_a vhd 0 'conectix' 'a vhd image: .*convert'
fails gzip 0 '\037\213\010' 'the gzip-compressed data are damaged'
fails zstd 0 '\050\265\057\375' 'the compressed file is cut off'
is_a bzip2 0 'BZh91AY&SY' 'bzip2-compressed'
is_a "a dump with data" 0 '_DUmP_v1' \
    "a metadump of btrfs-image with data: restore it with 'btrfs-image -r'"
is_a tar 257 'ustar\0' 'a tar archive'
is_a zip 0 'PK\3\4' 'a zip archive'
fails LUKS 0 'LUKS\272\276\0\1' 'its header has no keyslot'
# Headers as the tools write them: libblkid verifies their checksums.
zeros() { printf '\\000%.0s' $(seq "$1"); }
is_a swap 1024 "\\1\\0\\0\\0\\377$(zeros 3057)SWAPSPACE2" 'swap space'
fails LVM 512 \
    "LABELONE\\001$(zeros 7)GA\\276\\242\\040\\000\\000\\000LVM2\\040001XTS0PgP41NapoELxXO42usoLi\
i8P43O1\\000\\000\\000\\002$(zeros 6)\\020$(zeros 30)\\020$(zeros 7)\\360\\017$(zeros 21)\
\\002" \
    'the LVM metadata area at 4096 is damaged'
fails MD 4096 "\\374N\\053\\251\\001$(zeros 11)0123456789abcdefhost\\0720$(zeros 34)\\001$(zeros \
        7)\\200\
\\076$(zeros 10)\\002$(zeros 36)\\010$(zeros 6)\\2606$(zeros 6)\\010$(zeros 71)\\333o\\316P" \
    'the MD array host:0 is incomplete: of its 2 devices, numbers 0, 1 are missing; it needs 1'
is_a zeros 0 '\0' 'perhaps empty: it begins and ends with zeros'
truncate -s 4096 "$image"
expect "zeros alone" 2 'it is all zeros' "$image"
truncate -s 0 "$image"
expect "an empty file" 2 'it is an empty file' "$image"
head -c 300000 /dev/urandom > "$image"
expect "anything else" 2 'not a btrfs file system: superblock copy 0 at 65536: no btrfs magic' \
    "$image"
: > "$image" && truncate -s 15T "$image"
expect "a very large image" 2 'it is perhaps empty: it begins and ends with zeros' "$image"
rm "$image"

if have mkfs.ext4; then
    truncate -s 8M "$image"
    mkfs.ext4 -q -L $'ro\eot' "$image" > /dev/null 2>&1
    expect "ext4, its label without control characters" 2 \
        'it is ext4, label ro.033ot( \[fs\])?$' "$image"
    expect "beside a good device" 1 'image is not used: no superblock: it is ext4' \
        --device "$image" "$plain"
else
    skip mkfs.ext4 "its file system"
fi

# A superblock that exists but is damaged.
damaged=$WORK/damaged
# damage OFFSET BYTES: writes into both superblocks.
damage() {
    local copy
    cp --sparse=always "$plain" "$damaged"
    for copy in 65536 67108864; do
        # shellcheck disable=SC2059
        printf "$2" | dd of="$damaged" bs=1 seek=$((copy + $1)) conv=notrunc status=none
    done
}
damage 64 'XXXXXXXX'
expect "a broken magic" 2 \
    'damaged: no good superblock: superblock copy 0 at 65536: a superblock whose magic is '\
'damaged; superblock copy 1 ' "$damaged"
damage 64 '\0\0\0\0\0\0\0\0'
expect "an erased magic" 2 'a superblock whose magic has been erased' "$damaged"
damage 64 '!BHRfS_M'
expect "the magic of an unfinished mkfs" 2 'a superblock whose magic shows that mkfs.btrfs' \
    "$damaged"
damage 3000 'XX'
expect "a bad checksum" 2 \
    'damaged: no good superblock: superblock copy 0 at 65536: crc32c checksum mismatch' "$damaged"
# A container in which a superblock happens to lie where it would be in a raw image.
head -c 1M "$plain" > "$damaged"
printf 'KDMV' | dd of="$damaged" conv=notrunc status=none
expect "an image in disguise" 2 'cut off: .*; perhaps it is a vmdk image: .*convert' \
    --helpers=off "$damaged"

# Another file system that was made over a btrfs without reaching its superblock: the searches name
# it; other commands do not look at the beginning of the device.
cp --sparse=always "$plain" "$image"
expect "nothing over it" 0 - info --scan "$image"
expect "rescue: nothing over it" 0 - rescue "$image"
printf 'NTFS    ' | dd of="$image" bs=1 seek=3 conv=notrunc status=none
over='it is ntfs; but an older btrfs is read, whose superblock copy 0 still exists'
expect "NTFS over it" 0 "warning: [^ ]*: $over" info --scan "$image"
expect "rescue: NTFS over it" 0 - rescue "$image"
holds "its problem" out_has "^  [^ ]*: $over"
expect "NTFS over it: ls" 0 - ls "$image"
finish
