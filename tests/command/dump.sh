#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# dump: the text, compared with what btrfs-progs have printed (tests/data/dump.sums); JSON; trees,
# blocks and keys that are asked for; damage.
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" || exit 1
export PROGRAM TZ=UTC
plain=$images/plain/dev1.img levels=$images/levels-3/dev1.img

out_is() { diff "$WORK/out" - <<< "$1"; }
out_lacks() { ! out_has "$1"; }

# The text.
while IFS= read -r result; do
    if [[ $result == same* ]]; then pass; else fail "$result"; fi
done < <("$ROOT/tests/support/dump_text.py" --sums "$images" < "$ROOT/tests/data/dump.sums")
is "every recorded answer is compared" "$passed" "$(wc -l < "$ROOT/tests/data/dump.sums")"

# Items that the reference does not support.
expect "simple quotas" 0 - dump --tree quota "$images/simple-quota/dev1.img"
holds "dump prints the state of simple quotas" \
    out_has '^		version 1 generation 8 flags ON\|SIMPLE_MODE scan 0 enable_gen 8$'
expect "their owners" 0 - dump --tree extent "$images/simple-quota/dev1.img"
holds "dump prints the owners of extents" out_has '^		extent owner root [0-9]+$'
expect "dump of the raid stripe tree" \
    0 - dump --tree raid-stripe "$images"/stripe-tree-raid1/dev*.img
holds "dump prints stripes of data" out_has '^			stripe 1 devid 2 physical [0-9]+$'
expect "a replaced device" 0 - dump --tree dev "$images"/replaced/dev*.img
holds "the state of the replacement" out_has '^		state FINISHED write errors 0 '
expect "several trees of extents" 0 - dump --tree extent "$images/extent-tree-v2/dev1.img"
holds "dump prints several extent trees" [ "$(grep -c '^extent tree key' "$WORK/out")" -gt 1 ]
expect "the log" 0 - dump --tree log "$images/log-tree/dev1.img"
holds "dump prints the root of the log" out_has '^log root tree$'
holds "dump prints the log trees of subvolumes" out_has '^log tree key \(TREE_LOG ROOT_ITEM 256\) $'
holds "dump prints logged directories" out_has '^		dir log end '
expect "trees as they are on disk" 0 - dump --tree 256 "$images/log-tree/dev1.img"
holds "the removed entry is there" out_has 'name: 01.txt$'
holds "no block is in memory" out_lacks '^(node|leaf) 9223372036[0-9]+ '
mv "$WORK/out" "$WORK/committed"
expect "trees without the log" 0 - dump --tree 256 --log=ignore "$images/log-tree/dev1.img"
holds "dump without an option prints the trees on disk" cmp "$WORK/out" "$WORK/committed"
expect "trees with the log replayed" 0 - dump --tree 256 --log=replay "$images/log-tree/dev1.img"
holds "the removed entry is gone" out_lacks 'name: 01.txt$'
holds "the new one is there" out_has 'name: logged-19$'
holds "changed blocks are in memory" out_has '^leaf 9223372036[0-9]+ '

# Selected trees, blocks and keys.
expect "a tree" 0 - dump --tree fs "$plain"
mv "$WORK/out" "$WORK/fs"
for name in 5 FS_TREE fs-tree BTRFS_FS_TREE_OBJECTID Fs; do
    expect "the same as $name" 0 - dump --tree "$name" "$plain"
    holds "--tree $name prints the file system tree" cmp "$WORK/out" "$WORK/fs"
done
expect "a negative id" 0 - dump --tree -9 "$plain"
holds "a negative id selects a special tree" out_has '^data reloc tree key'
expect "two trees" 0 - dump --tree dev --tree uuid "$plain"
holds "trees are printed in their order" [ "$(grep -o '^[a-z]* tree' "$WORK/out" |
        tr '\n' ,)" = 'device tree,uuid tree,' ]
expect "a key" 0 - dump --tree fs --key 257,INODE_ITEM,0 "$plain"
holds "--key with three parts prints one item" [ "$(grep -c '^	item' "$WORK/out")" = 1 ]
expect "an inode" 0 - dump --tree fs --key 257 "$plain"
holds "--key with an inode prints all its items" \
    [ "$(grep -c '^	item' "$WORK/out")" = "$(grep -c '^	item .* key (257 ' \
        "$WORK/fs")" ]
expect "a type in small letters, and a range" 0 - dump --tree 5 --key 257,dir_item..258,1,0 "$plain"
holds "a range ends with its last key" [ "$(grep '^	item' "$WORK/out" | tail -n 1 |
        grep -c '(258 INODE_ITEM 0)')" = 1 ]
expect "a range without an end" 0 - dump --tree csum --key EXTENT_CSUM.. "$plain"
holds "a type is a name of an object id" out_has 'key \(EXTENT_CSUM EXTENT_CSUM '
# reads ARGUMENT...: how many tree blocks a dump reads.
reads() {
    "$PROGRAM" dump --probe block-read-done --probe-output "$WORK/reads" "$@" > "$WORK/out"
    grep -c block-read-done "$WORK/reads"
}
expect "a key of a large tree" 0 - dump --tree fs --key 300,INODE_ITEM,0 "$levels"
holds "the key in a large tree is found" out_has 'key \(300 INODE_ITEM 0\)'
opening=$(reads --key 1 --tree fs "$levels") \
    found=$(reads --tree fs --key 300,INODE_ITEM,0 "$levels") \
    all=$(reads --tree fs "$levels")
holds "costs a search: $opening to open it, $found to find the key, $all in all" \
    [ "$opening" -gt 0 -a "$found" -le $((opening + 4)) -a "$all" -gt $((found + 50)) ]
expect "no such name" 2 "unknown tree 'nope': give an id or one of root, extent" \
    dump --tree nope "$plain"
expect "no such tree" 2 'no tree 999; there are ROOT_TREE, CHUNK_TREE, ' dump --tree 999 "$plain"
holds "an unknown tree prints nothing" [ ! -s "$WORK/out" ]
expect "no such type" 2 'the type is unknown' dump --tree fs --key 256,FOO "$plain"
expect "too many parts" 2 'more than three parts' dump --tree fs --key 1,2,3,4 "$plain"
expect "no number" 2 'the object id is not a number' dump --tree fs --key x "$plain"
expect "an empty part" 2 'nothing follows the comma' dump --tree fs --key 1, "$plain"
expect "a range backwards" 2 'ends before it begins' dump --tree fs --key 7..6 "$plain"
expect "no address" 2 'invalid argument of --block: x' dump -B x "$plain"
expect "an address outside of chunks" 2 'the chunk tree has no chunk' dump -B 4096 "$plain"
expect "an unaligned address" 2 'multiple of the sector size' dump -B 12345 "$plain"

# JSON.
"$PROGRAM" dump "$plain" > /dev/full 2> "$WORK/err"
is "the status of an answer that a full disk cut off" "$?" 1
expect "dump of all trees" 0 - dump "$plain"
text=$(grep -c '^	\(item\|key\)' "$WORK/out")
expect "everything as JSON" 0 - dump --json "$plain"
is "an object for each item and pointer" "$(wc -l < "$WORK/out")" "$text"
expect "checksums as JSON" 0 - dump --json --csum-items --tree csum "$plain"
holds "JSON has a checksum for each sector" \
    out_has '"length":24576,"checksums":\[("1fb26aa4",){4}"df06ec11","f437cf12"\]'
expect "everything as JSON, again" 0 - dump --json "$plain"
if have jq; then
    holds "each line is JSON" jq -e . "$WORK/out"
    is "JSON has the name of a file once" \
        "$(jq -r 'select(.key.type == "INODE_REF") | .item.names[]?.name // empty' \
            "$WORK/out" | grep -c '^top-file$')" 1
    is "names that are not UTF-8" \
        "$(jq -r 'select(.tree == 5) | .item.names[]?.name_bytes // empty' "$WORK/out" | sort -u |
        grep -c '^//4=$')" 1
    is "JSON has the size of a directory" \
        "$(jq \
        -s 'map(select(.tree == 5 and .key.type == "INODE_ITEM" and .key.objectid == 256 and '\
'.item) | .item.size)[0]' "$WORK/out")" 140
    expect "hidden names" 0 - dump --json --hide-names --tree fs "$plain"
    is "JSON with hidden names has none" "$(jq -r '.. | .name? // .name_bytes? // .data? // empty' \
        "$WORK/out" | wc -l)" 0
else
    skip jq "the contents of JSON"
fi
expect "dump in columns" 0 - \
    dump --tree fs --key 257,INODE_ITEM,0 -o key,key_type_name,size --header "$plain"
row=$(printf '(257 INODE_ITEM 0)\tINODE_ITEM\t160')
holds "--header prints names of columns above their values" \
    out_is "$(printf 'key\tkey_type_name\tsize\n%s' "$row")"
expect "an item as a column" 0 - dump --tree fs --key 257,INODE_ITEM,0 -o item "$plain"
holds "is JSON, with flags by name" out_has '^{"generation":.*"flags":\[.*"atime":[0-9]*,'
expect "dates in items" 0 - dump --tree fs --key 257,INODE_ITEM,0 --json --times=iso "$plain"
holds "--times=iso prints ISO dates in items" out_has '"mtime":"20[0-9-]*T[0-9:.]*Z"'
expect "hidden names" 0 - dump --hide-names "$plain"
holds "--hide-names prints no names" out_lacks 'top-file'
expect "names that would move the cursor" 0 - dump --tree fs "$plain"
holds "control bytes in names are escaped" \
    [ "$(tr -d '\n\t' < "$WORK/out" | tr -cd '\000-\037\177' | wc -c)" -eq 0 ]

# Damage.
for name in leaf-first tree-csum; do
    expect "a lost block ($name)" 1 'damage: .*tree block' dump "$images/lost-$name/dev1.img"
    holds "trees after the lost block are printed" \
        [ "$(tail -n 1 "$WORK/out" | cut -c 1-5)" = 'uuid ' ]
done
leaf=$(sed -n 's/^leaf \([0-9]*\) items.*/\1/p' "$WORK/fs" | sed -n 2p)
bad="debug/error-gen@chunk-map,kind=tree-block,start=$leaf,end=$((leaf + 1)),action=zero"
expect "a damaged leaf" 1 "damage: .*$leaf" dump --tree fs --insert "$bad" "$plain"
holds "is printed as it is" cmp "$WORK/out" "$WORK/fs"
expect "a damaged leaf as JSON" 1 "damage: .*$leaf" dump --tree fs --json --insert "$bad" "$plain"
holds "JSON says that the leaf is damaged" \
    out_has "^.\"tree\":5,\"logical\":$leaf,\"level\":0,\"slot\":0,\"damaged\":true,"
expect "a damaged block" 1 "damage: .*$leaf" dump -B "$leaf" --insert "$bad" "$plain"
holds "is printed as it is" grep -q "^leaf $leaf items [1-9]" "$WORK/out"
garbage="debug/error-gen@chunk-map,start=$leaf,end=$((leaf + 1)),action=zero"
expect "zeros in place of a leaf" 1 "damage: .*$leaf" dump --tree fs --insert "$garbage" "$plain"
holds "zeros in place of a leaf are printed as a header" out_has '^leaf 0 items 0 '

# Bytes.
expect "bytes of a leaf" 0 - dump -B "$leaf" --hex "$plain"
holds "header, entries, unused space and data, in the order of the bytes" python3 - "$WORK/out" \
    "$plain" "$("$PROGRAM" map -o offset "$plain" "$leaf" | head -n 1)" <<'END'
import re, sys
block, titles, last = {}, [], None
for line in open(sys.argv[1]):
    digits = re.match(r'\t\t([0-9a-f]{8}) ((?: {1,2}[0-9a-f]{2}){1,16}) +\|', line)
    if line == '\t\t*\n':
        skipping = True
    elif digits:
        at, part = int(digits[1], 16), bytes.fromhex(digits[2])
        if last and skipping:
            for fill in range(last[0] + 16, at, 16):
                block.update(zip(range(fill, fill + 16), last[1]))
        block.update(zip(range(at, at + len(part)), part))
        last, skipping = (at, part), False
    elif line.startswith('\t'):
        titles.append(line.split()[0])
        last = None
image = open(sys.argv[2], 'rb')
image.seek(int(sys.argv[3]))
assert bytes(block[i] for i in range(len(block))) == image.read(16384)
assert titles[0] == 'header' and 'unused' in titles and titles[-1] == 'data'
END
expect "bytes of an item" 0 - dump --tree fs --key 257,INODE_ITEM --hex "$plain"
digits=$(sed -n 's/^\t\t[0-9a-f]* *\([^|]*\)|.*/\1/p' "$WORK/out" | head -n 3 | tr -d ' \n')
expect "as a column" 0 - dump --tree fs --key 257,INODE_ITEM -o hex "$plain"
is "the column hex has the bytes of --hex" "$(head -c 96 "$WORK/out")" "$digits"
is "the column hex has all bytes of the item" "$(tr -d '\n' < "$WORK/out" | wc -c)" 320
expect "none with hidden names" 0 - dump --tree fs --key 257,INODE_ITEM -o hex --hide-names "$plain"
is "--hide-names prints no bytes" "$(cat "$WORK/out")" -
expect "zeros in place of a leaf" 1 "damage: .*$leaf" \
    dump -B "$leaf" --hex --insert "$garbage" "$plain"
holds "zeros in place of a leaf are unused space" out_has '^	unused space 16283 bytes$'
expect "bytes as JSON" 2 'there is the column hex' dump --hex --json "$plain"
expect "bytes without names" 2 '^btrfs-walk: --hex excludes --hide-names' \
    dump --hex --hide-names "$plain"
finish
