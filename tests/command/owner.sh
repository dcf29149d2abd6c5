#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# owner: compared with the kernel's answers for the mounted fixtures (tests/kernel/owner.py
# --record), with and without the extent tree, and for lists of bad sectors.
set -uo pipefail
. "$(dirname "$0")/common.bash"

recorded=(data-clones data-shapes compressed deletion-pending relocation subvolumes)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${recorded[@]}" plain lost-tree-extent \
    lost-leaf-inodes raid1-2 raid5-3 log-tree levels-3 || exit 1
image() { echo "$BUILD/fixtures/$1/dev1.img"; }
out_is() { diff "$WORK/out" - <<< "$1"; }

# Data rows in the form of the kernel's answers: address, tree, inode and offset, without the paths.
as_recorded() { awk -F'\t' '$1 == "data" { print $2, $3, $4, $5 }' "$WORK/out" | sort -u; }

for name in "${recorded[@]}"; do
    for options in '-' '-o'; do
        sed -n "s/^$options //p" "$ROOT/fixtures/$name/owners" | sort -u > "$WORK/want"
        mapfile -t addresses < <(cut -d' ' -f1 "$WORK/want" | sort -u)
        for way in '' --all-trees; do
            expect "$name $options $way" 0 - owner ${way:+"$way"} \
                -o kind,logical,tree,inode,file_offset $([ "$options" = '-o' ] && echo --extent) \
                "$(image "$name")" "${addresses[@]}"
            as_recorded > "$WORK/have"
            holds "$name $options $way: as the kernel" diff "$WORK/want" "$WORK/have"
        done
    done
done

# Paths: all hard links, in all subvolumes.
address=$(awk '$1 == "-" { print $2; exit }' "$ROOT/fixtures/subvolumes/owners")
expect "owner with paths" 0 - owner -o path "$(image subvolumes)" "$address"
for path in '/docs/third/source/large.bin' \
    '/docs/third/docs/second name of large.bin' '/home-snapshot/source/large.bin'; do
    holds "owner prints the path $path" grep -qxF -- "$path" "$WORK/out"
done
expect "in one subvolume" 0 - owner --subvol /docs/third -o tree,path "$(image subvolumes)" \
    "$address"
holds "--subvol selects the paths of one subvolume" [ "$(cut -f1 "$WORK/out" | sort -u)" = 263 ]
cut -f2 "$WORK/out" > "$WORK/paths"
while IFS= read -r path; do
    expect "a path in it: $path" 0 - stat --subvol /docs/third "$(image subvolumes)" "$path"
done < "$WORK/paths"

# Tree blocks, and what is lost with them.
expect "a leaf" 0 - owner "$(image subvolumes)" 31703040+1
holds "owner of a leaf prints the block and the inodes in it" [ "$(tr -s ' ' < "$WORK/out")" = "\
kind address length tree inode offset path
metadata 31703040 16384 267 256 /docs/moved
metadata 31703040 16384 267 257 /docs/moved/file-b
block 31703040 16384 267 level 0 (256 INODE_ITEM 0)" ]
expect "owner as JSON" 0 - owner --json "$(image subvolumes)" 31703040 31834112
holds "JSON has the level and key of a block" out_has \
    '"kind":"block".*"extent_logical":31834112,"tree":1,"level":0,"key":'
holds "only a subvolume has the member" [ "$(grep -o '"tree":[0-9]*\|"subvolume":[0-9]*' \
    "$WORK/out" | sort -u | tr '\n' ' ')" = '"subvolume":267 "tree":1 "tree":267 ' ]
expect "a lost leaf" 1 'tree block 5480448' owner -o inode,path "$(image lost-leaf-inodes)" 5484000
holds "inodes of a lost leaf get their names from directories" \
    out_is $'354\t/dir-2/file-9\n355\t/dir-2/file-10
356\t/dir-2/file-11\n-\t-'
expect "a name in a lost leaf" 1 'tree block 5480448' owner -o inode,path \
    "$(image lost-leaf-inodes)" 5484544
holds "a name in a lost leaf is found" out_has $'356\t/dir-2/file-11'

# The extent tree leads to a lost leaf from its tree, whatever its keys are.
printf '%s\n' '0 +' > "$WORK/map"
for copy in $("$PROGRAM" map -o offset "$(image levels-3)" 31404032); do
    printf '%s\n' "$copy 4096 -" >> "$WORK/map"
done
expect "a lost leaf between others" 1 'tree block 31404032' owner --map "$WORK/map" -o inode,path \
    "$(image levels-3)" 31404032
holds "the inodes in a lost leaf between others are named" \
    out_is $'490\t/dir-2/file-30\n491\t/dir-2/file-31\n-\t-'

# Unused addresses, and offsets on devices.
expect "owner of unused ranges" 0 - owner -o kind,logical,length "$(image plain)" 0+4K 13631488+32M
holds "an address before the first chunk is outside" out_has $'^outside\t0\t4096$'
holds "an unused range is free" out_has $'^free\t'
expect "a device" 0 - owner --devid 1 -o kind,logical,offset,length "$(image plain)" 0+1M
holds "--devid lists the uses of a device range" \
    out_is $'reserved\t-\t0\t65536\nsuperblock\t-\t65536\t4096
reserved\t-\t69632\t978944'
expect "without an extent tree" 1 'block [0-9]+ of the extent tree ' owner -o path \
    "$(image lost-tree-extent)" 13631488
holds "without an extent tree, all trees are read" \
    out_is $'/docs/second name of large.bin\n/source/large.bin'

# Lists of bad sectors.
printf '%s\n' '# Mapfile. Created by GNU ddrescue' '0x0D100000 +  1' '0x00000000 0x00D00000 +' \
    '0x00D00000 0x00001000 -' '0x00D01000 0x00FFF000 +' '0x01D00000 4096 ?' \
    '0x01D01000 0x01000000 +' > "$WORK/map"
at=$("$PROGRAM" map -o offset "$(image plain)" 13631488)
expect "a map of ddrescue" 0 'map ends at 47190016, the image at 134217728' \
    owner --map "$WORK/map" -o kind,logical,file_offset,length,path "$(image plain)"
holds "a map of ddrescue leads to the affected files" out_has $'^data\t13631488\t[0-9]+\t[0-9]+\t/'
cp "$WORK/out" "$WORK/by-map"
printf '%s\n' $((at / 1024)) $((at / 1024 + 3)) $((at / 1024 + 1)) $((at / 1024 + 2)) \
    $((0x1d00000 / 1024)) $((0x1d00000 / 1024 + 1)) $((0x1d00000 / 1024 + 2)) \
    $((0x1d00000 / 1024 + 3)) > "$WORK/blocks"
expect "a list of badblocks" 0 - owner --map "$WORK/blocks" \
    -o kind,logical,file_offset,length,path "$(image plain)"
holds "a list of badblocks leads to the same rows" diff "$WORK/by-map" "$WORK/out"

# Blocks of the log tree, which are not in the extent tree.
mapfile -t blocks < <("$PROGRAM" dump --tree log "$(image log-tree)" 2> "$WORK/messages" |
    awk '$1 == "leaf" && $3 == "items" { print $2 }')
holds "the root of the log, and two logs" [ "${#blocks[@]}" -eq 3 ]
for way in '' --log=replay --all-trees; do
    expect "log blocks $way" 0 - owner ${way:+"$way"} -o kind,logical,tree \
        "$(image log-tree)" "${blocks[@]}"
    holds "are blocks of log trees" diff <(sort "$WORK/out") \
        <(printf 'block\t%s\t18446744073709551610\n' "${blocks[@]}" | sort)
done

# Metadata have two copies: what the other copy still has is not lost.
leaf=$("$PROGRAM" dump --tree fs "$(image plain)" | awk '$1 == "leaf" { print $2; exit }')
mapfile -t copies < <("$PROGRAM" map -o offset "$(image plain)" "$leaf")
printf '%s\n' '0 +' "${copies[0]} 4096 -" > "$WORK/map"
expect "one mirror of a leaf" 0 'map:2: ranges overlap' \
    owner --map "$WORK/map" -o kind,repairable "$(image plain)"
holds "is mended by the other" [ "$(sort -u "$WORK/out")" = $'block\t1\nmetadata\t1' ]
printf '%s\n' "${copies[1]} 4096 -" >> "$WORK/map"
expect "both copies" 1 'both mirrors are bad' owner --map "$WORK/map" -o kind,repairable \
    "$(image plain)"
holds "blocks with two bad mirrors cannot be repaired" \
    [ "$(sort -u "$WORK/out")" = $'block\t0\nmetadata\t0' ]
zstd -q -d --sparse "$ROOT/fixtures/disks/gpt.img.zst" -o "$WORK/disk.img"
truncate -s 600M "$WORK/disk.img"
dd if="$(image plain)" of="$WORK/disk.img" bs=1M seek=2 conv=notrunc,sparse status=none
printf '%s\n' '0 +' "$((at + 2097152)) 4096 -" '1048576 4096 -' > "$WORK/map"
expect "of a disk" 0 'map:2: ranges overlap' \
    owner --map "$WORK/map" -o kind,logical "$WORK/disk.img"
holds "shifted, without what is before" [ "$(sort -u "$WORK/out")" = $'data\t13631488' ]
for line in '0 x' '12 13' '-1' '99999999999999999999' $'0 +\n0 1' $'0 +\n0 1 X'; do
    echo "$line" > "$WORK/bad"
    expect "no list: $line" 2 'bad:[12]: neither' owner --map "$WORK/bad" "$(image plain)"
done

# One map for each image. With both maps, both mirrors are bad.
raid1=("$BUILD/fixtures/raid1-2/dev1.img" "$BUILD/fixtures/raid1-2/dev2.img")
leaf=$("$PROGRAM" dump --tree fs "${raid1[@]}" | awk '$1 == "leaf" { print $2; exit }')
for devid in 1 2; do
    place=$("$PROGRAM" map -o devid,offset "${raid1[@]}" "$leaf" | sed -n "s/^$devid\t//p")
    printf '%s\n' '0 +' "$place 4096 -" '0 4096 -' > "$WORK/map$devid"
done
expect "the second image" 0 'map2:2: ranges overlap' \
    owner --map '' --map "$WORK/map2" -o kind,devid,repairable "${raid1[@]}"
is "one copy, and a reserved range of it" "$(sort -u "$WORK/out")" \
    $'block\t-\t1\nmetadata\t-\t1\nreserved\t2\t-'
expect "both images" 1 'both mirrors are bad' owner --map "$WORK/map1" --map "$WORK/map2" \
    -o kind,devid,repairable "${raid1[@]}"
is "with both maps, blocks cannot be repaired" "$(sort -u "$WORK/out")" \
    $'block\t-\t0\nmetadata\t-\t0\nreserved\t1\t-\nreserved\t2\t-'
expect "a map and addresses" 0 'map1:2: ranges overlap' \
    owner --map "$WORK/map1" -o kind "${raid1[@]}" "$leaf"
is "a map with addresses does not select other addresses" \
    "$(sort -u "$WORK/out")" $'block\nmetadata'
expect "a map and --devid" 2 'devid is for addresses' owner --map "$WORK/map1" --devid 1 \
    "${raid1[@]}"
expect "copies of a device" 2 'one of the images' owner --alternatives --map "$WORK/map1" \
    "$(image plain)"
expect "the option of before" 2 'use --map FILE' owner --bad-map "$WORK/map" "$(image plain)"
expect "no such list" 2 'cannot open' owner --map "$WORK/none" "$(image plain)"
expect "no address" 2 "Try 'btrfs-walk owner --help'" owner "$(image plain)"
expect "a bad address" 2 'invalid address' owner "$(image plain)" 12x
expect "an empty range" 2 'invalid address' owner "$(image plain)" 12+0
expect "no such device" 2 'there is no device 7' owner --devid 7 "$(image plain)" 0
expect "no such subvolume" 2 'no subvolume' owner --subvol /none "$(image plain)" 0
finish
