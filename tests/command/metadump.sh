#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Dumps of btrfs-image: they show the same as the images from which they were made, except for file
# contents; and dumps that are truncated, damaged or hostile.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" raid10-4 subvolumes log-tree \
    checksum-xxhash64 checksum-sha256 checksum-blake2 || exit 1
cd "$WORK" || exit 1
columns=path,size,mode,uid,mtime,inode

for name in raid10-4 subvolumes log-tree checksum-xxhash64 checksum-sha256 checksum-blake2; do
    zstd -q -d "$ROOT/fixtures/metadumps/$name.bti.zst" -o "$name.bti"
    "$PROGRAM" -q -o "$columns" "$BUILD/fixtures/$name"/dev*.img > wanted
    expect "$name: the dump is walked" 0 - -o "$columns" "$name.bti"
    holds "$name: the metadump has the files of the image" same_bytes wanted out
    expect "$name: the metadump is checked" 0 'checked: [1-9].* 0 errors, 0 warnings' \
        check "$name.bti"
    holds "$name: a note says that it is a metadump" out_has '^note metadump: '
done

# btrfs-image gives every block a CRC-32C, whatever the type of the file system's checksums.
name=checksum-sha256
zstd -q -d --sparse "$ROOT/fixtures/metadumps/$name-restored.img.zst" -o restored.img
"$PROGRAM" -q -o "$columns" "$BUILD/fixtures/$name/dev1.img" > wanted
expect "an image that btrfs-image restored" 0 - -q -o "$columns" restored.img
holds "an image that btrfs-image restored has the files of the original" same_bytes wanted out
"$PROGRAM" check restored.img > out 2> err
holds "check reads the tree blocks of a restored image" \
    grep -q 'checked: [1-9][0-9]* tree blocks' err
holds "a restored image has no bad blocks" [ "$(grep -c '^error block-' out)" = 0 ]
for image in $name.bti restored.img; do
    "$PROGRAM" roots "$image" > out 2> err
    is "$image: what a dump leaves out is no damage" $? 0
    holds "$image: its blocks are found" grep -q ' scan  *committed  *whole ' out
done
cp --sparse=always restored.img plain.img
python3 - plain.img << 'PYTHON'
import hashlib, sys
with open(sys.argv[1], "r+b") as image:
    for offset in 64 << 10, 64 << 20:
        image.seek(offset)
        block = bytearray(image.read(4096))
        if block[64:72] != b"_BHRfS_M":
            continue
        block[56:64] = bytes([1]) + bytes(7)  # no longer marked as restored
        block[:32] = hashlib.sha256(block[32:]).digest()
        image.seek(offset)
        image.write(block)
PYTHON
expect "elsewhere, that is a bad checksum" 2 'sha256 checksum mismatch' plain.img

expect "a tree of a dump" 0 - dump --tree fs raid10-4.bti
cp out dumped
expect "a tree of the image" 0 - dump --tree fs "$BUILD/fixtures/raid10-4"/dev*.img
holds "dump of a metadump prints the tree of the image" cmp dumped out
expect "contents are not there" 1 'a metadump of btrfs-image has no data' sum raid10-4.bti
holds "one file is an example of those" grep -qE \
    '^btrfs-walk: and [0-9]+ more files: the metadump has no file contents$' "$WORK/err"
is "nothing else is printed" "$(wc -l < "$WORK/err")" 2
holds "but those of empty files" out_has '^e3b0c44298fc1c149afbf4c8996fb924'
holds "no other hashes are printed" [ "$(grep -vc '^e3b0c44' out)" -eq 0 ]
expect "a PATH that does not exist is still reported" 1 '/nope: no such file' \
    sum raid10-4.bti / /nope
expect "extraction of it" 1 '^btrfs-walk: and [0-9]+ more files: the metadump' \
    extract -C extracted raid10-4.bti
is "its messages" "$(grep -c 'cannot be read' "$WORK/err")" 1
link=$("$PROGRAM" ls -R -o path,type "$BUILD/fixtures/subvolumes/dev1.img" 2> err |
    sed -n 's/\tsymlink$//p' | head -n 1)
expect "a symbolic link in a metadump" 1 'no targets of symbolic links' stat subvolumes.bti "$link"
expect "the layer is in the graph" 0 - graph raid10-4.bti
holds "the graph has the layer of the metadump" out_has 'type layout/metadump'
cp out dump.vol
expect "and can be given back" 0 - --graph dump.vol
expect "all data of a dump" 0 '0 errors' check --data raid10-4.bti
holds "a note says that data are absent" out_has '^note data-absent'

# A file system that was restored by btrfs-image: it has the METADUMP flag, and only copy 0 of the
# superblock. Copy 1 is zero or a superblock of what was on the device before, which may be newer.
image=$BUILD/fixtures/subvolumes/dev1.img
cp --sparse=always "$image" restored.img
holds "the flag of a restored image" change restored.img copy 0 60 1 4
cp --sparse=always restored.img later.img
holds "a later file system before" change later.img copy 1 72 8 999999
dd if=/dev/zero of=restored.img bs=4096 seek=16384 count=1 conv=notrunc status=none
"$PROGRAM" -q "$image" > wanted
for name in restored later; do
    expect "$name: listed without a warning" 0 - "$name.img"
    holds "$name: the restored image has the files of the original" same_bytes wanted out
    expect "$name: checked" 0 ' 0 errors, 0 warnings, ' check "$name.img"
    holds "$name: copy 1 is a note" out_has \
        '^note metadump: superblock copy 1: btrfs-image does not restore it .*offset 67108864'
done
# With -s, btrfs-image changes the names of entries, but not those of subvolumes in the root tree.
cp --sparse=always restored.img renamed.img
holds "a subvolume has another name in the root tree" change renamed.img \
    1 5 156 256 set 18 1 88 and 1 256 144 5 set 18 1 88
expect "its entry still leads to it" 0 - renamed.img
holds "all files of the original are listed" same_bytes wanted out
cp --sparse=always "$image" written.img
holds "one that a mount has written to" change written.img super 60 1 4
printf x | dd of=written.img bs=1 seek=$((67108864 + 300)) conv=notrunc status=none
expect "a damaged copy 1 is an error" 4 'super-bad' check written.img

# hostile NAME STATUS REGEX OFFSET BYTES: changes some bytes of a dump. BYTES as for printf.
hostile() {
    cp raid10-4.bti hostile.bti
    # shellcheck disable=SC2059 # the bytes are a format on purpose
    printf "$5" | dd of=hostile.bti bs=1 seek="$4" conv=notrunc status=none
    expect "$1" "$2" "$3" hostile.bti
}
hostile "too many pieces" 2 'has 255 pieces' 16 '\377\0\0\0'
hostile "an unknown compression" 3 'has compression 9' 20 '\11'
hostile "a piece after the end" 2 'is cut off: it ends at ' 29 '\377\377\377\377'
hostile "no stream" 2 'cannot be decompressed' 1024 'nothing of zlib here'
head -c 400000 subvolumes.bti > cut.bti
expect "a dump that was cut off" 1 'warning: .*the dump is cut off: it ends at 400000' cut.bti
head -c 1023 raid10-4.bti > cut.bti
expect "almost nothing of it" 2 'cut.bti is not a btrfs file system' cut.bti

# A cluster of the size of a superblock that decompresses to gigabytes.
python3 - raid10-4.bti bomb.bti << 'PYTHON'
import struct, sys, zlib
packer = zlib.compressobj(9)
bomb = b"".join(packer.compress(bytes(1 << 20)) for i in range(64)) + packer.flush()
header = struct.pack("<QQIB", 0xbd5c25e27295668b, 0, 1, 1) + struct.pack("<QI", 65536, len(bomb))
open(sys.argv[2], "wb").write(header.ljust(1024, b"\0") + bomb)
PYTHON
expect "a piece without end" 2 'cannot be decompressed' bomb.bti

# With random damage, the program must still end with one of its own exit statuses.
for seed in 1 2 3 4 5 6 7 8; do
    python3 - "$seed" subvolumes.bti damaged.bti << 'PYTHON'
import random, sys
random.seed(int(sys.argv[1]))
dump = bytearray(open(sys.argv[2], "rb").read())
for i in range(40):
    dump[random.randrange(len(dump))] = random.randrange(256)
open(sys.argv[3], "wb").write(dump)
PYTHON
    timeout 20 "$PROGRAM" damaged.bti > out 2> err
    holds "random damage $seed ends with a status of the program" [ $? -le 2 ]
done
finish
