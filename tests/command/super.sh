#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# super: the text of btrfs-progs, bad copies, and JSON.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img

expect "all copies" 0 - super "$plain"
is "super prints two copies" "$(grep -c '^superblock: bytenr=' "$WORK/out")" 2
for line in 'csum_type		0 \(crc32c\)' 'csum			0x[0-9a-f]{8} \[match\]' \
    'magic			_BHRfS_M \[match\]' \
    'flags			0x1' '			\( WRITTEN \)' 'sys_array_size		129' 'dev_item\.fsid		.* \[match\]' \
    '	item 0 key \(FIRST_CHUNK_TREE CHUNK_ITEM 22020096\)' '			stripe 0 devid 1 offset 22020096' \
    '			  SKINNY_METADATA \|' '	backup 3:' '		backup_tree_root:	[0-9]+	gen: [0-9]+	level: 0'; do
    holds "super has the line '$line'" out_has "^$line\$"
done
expect "one copy" 0 - super --super 1 "$plain"
is "--super 1 prints that copy only" "$(grep -c '^superblock: bytenr=67108864' "$WORK/out")" 1
expect "a copy that is not there" 2 'too small' super --super 2 "$plain"
expect "no such copy" 2 'invalid argument of --super: 3 .allowed: 0, 1 or 2.' \
    super --super 3 "$plain"
expect "super as JSON" 0 - super --json "$plain"
holds "JSON has flags by name" out_has \
    '"flags":\["WRITTEN"\].*"compat_flags":\[\],"compat_ro_flags":\["FREE_SPACE_TREE",'
is "an object for each copy" \
    "$(grep -c '^{"device":.*"copy":[01],.*"backup_roots":\[{' "$WORK/out")" 2
if have python3; then
    holds "each line of super --json is JSON" python3 \
        -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$WORK/out"
fi

expect "super in columns" 0 - super -o copy,csum_name,flags,magic,nodesize "$plain"
is "columns have a row for each copy" \
    "$(cat "$WORK/out")" "$(printf '%s\tcrc32c\tWRITTEN\t_BHRfS_M\t16384\n' 0 1)"
expect "super with units" 0 - super --super 0 -o total_bytes --iec "$plain"
is "--iec prints the size with a unit" "$(cat "$WORK/out")" 128.00MiB

cp --sparse=always "$plain" "$WORK/image"
printf 'x' | dd of="$WORK/image" bs=1 seek=$((65536 + 3000)) conv=notrunc status=none
expect "a bad checksum" 1 'image: superblock copy 0: crc32c checksum mismatch' super "$WORK/image"
holds "a wrong checksum is marked" out_has "^csum			0x[0-9a-f]{8} \[DON'T MATCH\]\$"
printf 'XXXXXXXX' | dd of="$WORK/image" bs=1 seek=$((65536 + 64)) conv=notrunc status=none
expect "a bad magic" 1 'magic is damaged \(--force prints it\)' super "$WORK/image"
is "the good copy is printed" "$(grep -c '^magic' "$WORK/out")" 1
expect "with force" 1 'magic is damaged' super --force "$WORK/image"
holds "--force prints the damaged magic" out_has "^magic			XXXXXXXX \[DON'T MATCH\]\$"
expect "two file systems" 0 'belongs to another file system' super "$plain" \
    "$BUILD/fixtures/subvolumes/dev1.img"
if have python3; then
    generation=$(run_json super --json --super 0 "$plain" | grep -oP '"generation":\K[0-9]+')
    cp --sparse=always "$BUILD/fixtures/subvolumes/dev1.img" "$WORK/second"
    holds "two file systems of one generation" change "$WORK/second" super 72 8 "$generation"
    expect "are two" 0 'second: superblock copy 0 belongs to another' super "$plain" "$WORK/second"
    is "both copies are compared with the first file system" \
        "$(grep -c 'second: superblock copy [01] belongs to another file system' "$WORK/err")" 2
else
    skip python3 "two file systems of one generation"
fi

# Line by line as the reference, but for the names of features that are younger than it, and zoned
# devices, on which it does not look for the log of superblocks.
in_common() {
    sed \
        -E 's/(, device=).*/\1/; /unknown flag|VERITY|EXTENT_TREE_V2|RAID_STRIPE_TREE|SIMPLE_QUO'\
'TA|REMAP_TREE/d
        s/ [|)]$//; s/backup_block_group_root:/backup_extent_root:/' "$1"
}
# tests/data/super.sums: SHA-256 of what `btrfs inspect-internal dump-super -fa` (btrfs-progs 6.2)
# has printed for these fixtures, after in_common.
while read -r name sum; do
    "$PROGRAM" super "$BUILD/fixtures/$name/dev1.img" > "$WORK/out" 2> /dev/null
    is "$name: super prints what was recorded of btrfs-progs" \
        "$(in_common "$WORK/out" | sha256sum)" "$sum  -"
done < "$ROOT/tests/data/super.sums"
if have btrfs; then
    for image in "$BUILD"/fixtures/*/dev*.img; do
        case $image in */zoned-*) continue ;; esac
        # It gives up at the first copy without a magic.
        btrfs inspect-internal dump-super -fa "$image" > "$WORK/reference" 2> "$WORK/err"
        grep -q 'bad magic' "$WORK/err" && continue
        timeout 20 "$PROGRAM" super "$image" > "$WORK/out" 2> /dev/null
        holds "super prints what dump-super prints: $image" diff <(in_common "$WORK/reference") \
            <(in_common "$WORK/out")
    done
else
    skip btrfs-progs "a comparison with dump-super"
fi

expect "super --hex" 0 - super --super 1 --hex "$plain"
holds "the magic at its offset" out_has '^00000040  5f 42 48 52 66 53 5f 4d  .*[|]_BHRfS_M'
is "--hex prints up to the last byte" "$(sed -n '/^00000ff0/p' "$WORK/out" | cut -c 11-12)" 00
expect "bytes as JSON" 2 'not for -o and --json' super --hex --json "$plain"

# While btrfstune changes the id of all tree blocks, some still have the old one, and so has the
# device.
cp "$plain" "$WORK/changing"
python3 "$ROOT/tests/support/change_item.py" "$WORK/changing" 1 5 132 0 block 32 8 7 and \
    super 32 8 7 and super 56 8 $((1 << 35 | 1))
expect "an unfinished change of the id" 0 - walk "$WORK/changing"
is "walk lists the files despite an unfinished change" \
    "$(md5sum < "$WORK/out")" "$("$PROGRAM" "$plain" | md5sum)"
expect "which is an error" 4 - check -q "$WORK/changing"
holds "an unfinished change is an error half-done" out_has '^error half-done'
is "unlike the ids of the blocks" "$(grep -c block-foreign "$WORK/out")" 0

finish
