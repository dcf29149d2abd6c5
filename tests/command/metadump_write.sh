#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The metadump command: compared with the metadumps of btrfs-image block by block, read again, and
# without names.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "the contents of metadumps"; finish; fi

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" raid10-4 subvolumes log-tree people plain verity \
    checksum-xxhash64 checksum-sha256 checksum-blake2 space-cache-v1 nodesize-64k sprout zoned-log \
    lost-leaf-directory lost-leaf-inodes lost-tree-fs lost-tree-root superblocks-gone \
    stale-raid1-1 || exit 1
cd "$WORK" || exit 1
fixtures=$BUILD/fixtures
items() { python3 "$ROOT/tests/support/metadump_items.py" "$@"; }

# Block by block as btrfs-image, with the checksums of data, which it keeps. Its tree blocks have
# CRC-32C checksums of any file system, and its superblock is that of another device.
for name in raid10-4 subvolumes log-tree checksum-xxhash64 checksum-sha256 checksum-blake2; do
    zstd -q -d "$ROOT/fixtures/metadumps/$name.bti.zst" -o "$name.btrfs-image"
    expect "$name: written" 0 - metadump --checksums -f "$name.bti" "$fixtures/$name"/dev*.img
    case $name in
    raid10-4) explained='^65536 superblock$' ;;
    checksum-*) explained='^[0-9]* checksum$' ;;
    *) explained='^$' ;;
    esac
    is "$name: the blocks are those of btrfs-image" \
        "$(items compare "$name.bti" "$name.btrfs-image" 2>&1 | grep -v "$explained")" ""
    expect "$name: checked" 0 'checked: [1-9].* 0 errors, 0 warnings' check "$name.bti"
done

# Without the checksums of data, only these items differ.
expect "without checksums" 0 - metadump -f plain.bti "$fixtures/subvolumes/dev1.img"
holds "metadump prints nothing" [ ! -s out ]
is "checksums of data are removed" \
    "$(items compare plain.bti subvolumes.bti | sed 's/^[0-9]* //' | sort -u)" 'item 128'

# The same blocks, whatever the compression and the order of the devices.
raid=("$fixtures"/raid10-4/dev{3,1,4,2}.img)
for level in 0 1 9; do
    expect "level $level" 0 - \
        metadump --checksums --compress "$level" -f "level$level.bti" "${raid[@]}"
    is "level $level has the same blocks" "$(items compare "level$level.bti" raid10-4.bti)" ""
done
holds "a metadump without compression has the same bytes again" cmp level0.bti raid10-4.bti
holds "--compress 9 makes the metadump smaller" \
    [ "$(stat -c %s level9.bti)" -lt "$(($(stat -c %s level0.bti) / 3))" ]

# What was lost in the metadump is the same as in metadumps of btrfs-image.
columns=path,size,mode,uid,gid,mtime,inode
for name in subvolumes log-tree people space-cache-v1 nodesize-64k raid10-4; do
    "$PROGRAM" -q -o "$columns" "$fixtures/$name"/dev*.img > wanted
    expect "$name: with names" 0 - metadump --compress 1 -f again.bti "$fixtures/$name"/dev*.img
    expect "$name: is read" 0 - -q -o "$columns" again.bti
    holds "$name: the metadump has the files of the image" same_bytes wanted out
    expect "$name: a metadump of a metadump" 0 - metadump --compress 1 -f second.bti again.bti
    is "$name: a metadump of a metadump has the same blocks" \
        "$(items compare again.bti second.bti)" ""
done
expect "with the space cache" 0 - metadump -f cache.bti "$fixtures/space-cache-v1/dev1.img"

# Without names. `secrets` has everything that nobody may find: names of more than 4 bytes, targets
# of links, values of attributes, the label, and contents.
cp --sparse=always "$fixtures/plain/dev1.img" plain.img
holds "the image gets a label" change plain.img super 299 8 "$((0x6c6562616c796d))" # "mylabel"
"$PROGRAM" ls -R -a -o path plain.img | tr / '\n' | grep -E '^[[:print:]]{5,}$' | grep -v '\\' |
    sort -u > secrets
{
    "$PROGRAM" xattr -R -o value plain.img / | grep -E '^.{5,}$'
    "$PROGRAM" stat -o target plain.img /docs/symbolic-link
    "$PROGRAM" cat plain.img /data/inline | head -c 100
    printf '\nmylabel\n'
} >> secrets
holds "the image has more than 50 secrets" [ "$(wc -l < secrets)" -gt 50 ]
expect "with names" 0 - metadump -f plain.bti plain.img
holds "a metadump with names has the secrets" \
    [ "$(items find plain.bti secrets | grep -c .)" -gt 50 ]
"$PROGRAM" stat -o target plain.img /docs/symbolic-link > contents
is "a metadump has no file contents" "$(items find plain.bti contents)" ""
# Files whose inodes are lost are named, not counted as files without contents.
"$PROGRAM" metadump -f lost.bti "$fixtures/lost-leaf-inodes/dev1.img" 2> err
lost=$("$PROGRAM" sum "$fixtures/lost-leaf-inodes/dev1.img" 2>&1 | grep -c 'its inode is lost')
for command in sum 'extract -C lost' bodyfile 'tar --on-error=skip -f lost.tar' \
    'tar --format mtree -f lost.mtree'; do
    # shellcheck disable=SC2086 # several words
    expect "lost inodes in a metadump: $command" 1 'file-10: its inode is lost' $command lost.bti
    is "all lost inodes are named: $command" "$(grep -c 'its inode is lost' err)" "$lost"
done
expect "an archive ends at a file without contents" 1 'bytes 0 to .* cannot be read' \
    tar -f ended.tar plain.bti
expect "a file of two ranges in an archive" 1 '/data/plain: bytes 0 to .* cannot be read' \
    tar --on-error=zero -f zeros.tar plain.bti /data/plain
is "counts as one file" "$(grep -c 'file contents' "$WORK/err")" 0
"$PROGRAM" -q --links +1 --size +0c -o inode,path plain.img > linked
inode=$(head -n 1 linked | cut -f 1)
mapfile -t names < <(sed -n "s/^$inode\t//p" linked)
expect "${#names[@]} names of a file" 1 "${names[0]}: bytes 0 to .* cannot be read" \
    extract -C extracted plain.bti "${names[@]}"
is "count as one file, too" "$(grep -c 'file contents' "$WORK/err")" 0
expect "without names" 0 - metadump --sanitize -f first.bti plain.img
is "no secret is in it" "$(items find first.bti secrets)" ""
expect "another sanitized metadump" 0 - metadump --sanitize --compress 3 -f other.bti plain.img
is "no secret is in it, either" "$(items find other.bti secrets)" ""
# Only items with names differ: INODE_REF, INODE_EXTREF, XATTR_ITEM, DIR_ITEM, DIR_INDEX. All other
# bytes are equal, also the keys, which contain hashes of names.
items compare first.bti other.bti > differences
is "sanitized metadumps differ only in items with names" \
    "$(grep -vE ' item (12|13|24|84|96)$' differences)" ""
holds "sanitized metadumps differ in names" grep -q ' item 96$' differences
expect "the names agree with their hashes" 0 ' 0 errors, 0 warnings' check first.bti
for dump in first.bti other.bti; do
    "$PROGRAM" ls -R -a -o size,mode,uid,mtime,inode plain.img | sort > wanted
    "$PROGRAM" ls -R -a -o size,mode,uid,mtime,inode "$dump" | sort > found
    holds "$dump: the files have the sizes, owners and times of the image" cmp wanted found
done
# If the root tree is damaged, the space cache may have the extent of a user's file.
cp --sparse=always "$fixtures/space-cache-v1/dev1.img" crossed.img
holds "the space cache leads to a file" change crossed.img 1 256 108 0 set 21 8 361955328
"$PROGRAM" cat crossed.img '/docs/second name of large.bin' | head -c 64 > contents
expect "without names, of this image" 0 - metadump --sanitize -f crossed.bti crossed.img
is "no contents are taken for a space cache" "$(items find crossed.bti contents)" ""
expect "without names and space cache" 0 - \
    metadump --sanitize -f cacheless.bti "$fixtures/space-cache-v1/dev1.img"
expect "it is not missed" 0 'checked: [1-9].* 0 errors, 0 warnings' check cacheless.bti
inode=$("$PROGRAM" stat -o inode plain.img /data/inline)
path=$("$PROGRAM" -q -o inode,path first.bti | sed -n "s/^$inode\t//p")
expect "files are found by their new names" 0 - stat first.bti "$path"

# Damaged, unusual.
expect "a lost leaf" 1 'tree block 5672960 of subvolume 5' \
    metadump -f leaf.bti "$fixtures/lost-leaf-directory/dev1.img"
for name in lost-leaf-directory lost-tree-fs lost-tree-root superblocks-gone stale-raid1-1 sprout \
    zoned-log verity; do
    scan=()
    [ "$name" = superblocks-gone ] && scan=(--scan)
    "$PROGRAM" metadump "${scan[@]}" -f "$name.bti" "$fixtures/$name"/dev*.img > out 2> err
    holds "$name: a metadump is written" [ $? -le 1 ]
    "$PROGRAM" -q "${scan[@]}" -o "$columns" "$fixtures/$name"/dev*.img > wanted
    "$PROGRAM" -q "${scan[@]}" -o "$columns" "$name.bti" > found
    holds "$name: the metadump has the files of the damaged image" same_bytes wanted found
done
for name in sprout zoned-log verity; do
    expect "$name: checked" 0 ' 0 errors, 0 warnings' check "$name.bti"
done
holds "hashes of fs-verity are removed" out_has '^note metadump'

# Usage.
expect "without a file" 2 'no output file given: use -f FILE' metadump "${raid[0]}"
expect "to stdout" 2 'no output file given: use -f FILE' metadump -f - "${raid[0]}"
expect "a removed option" 2 "name-key.* was removed: every sanitized metadump has different names" \
    metadump --sanitize --name-key plain.bti -f x.bti "${raid[@]}"
expect "the removed list" 2 'json.* was removed: docs/metadump.md lists what a metadump contains' \
    metadump --json -f x.bti "${raid[@]}"
expect "a bad level" 2 "must be a number from 0 to 9|a number from 0 to 9" \
    metadump --compress 10 -f x.bti "${raid[@]}"
holds "a refused metadump makes no file" [ ! -e x.bti ]
expect "not over an image" 2 'image' metadump -f "$fixtures/people/dev1.img" "${raid[@]}"
finish
