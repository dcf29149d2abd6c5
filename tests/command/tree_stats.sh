#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tree-stats command: against what the reference printed, and with the installed one.
set -uo pipefail
. "$(dirname "$0")/common.bash"

recorded=(levels-3 data-shapes)
others=(levels-2 nodesize-4k nodesize-64k old-4k mixed)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${recorded[@]}" "${others[@]}" \
    plain lost-tree-csum lost-leaf-first || exit 1
image() { echo "$BUILD/fixtures/$1/dev1.img"; }
out_is() { diff "$WORK/out" - <<< "$1"; }

# The lines that both print, without times; the steps of the histograms differ.
common() {
    grep -vE 'read time|Seek histogram|^		 *[0-9]+ - |Total items|Leaves filled|^		[A-Z_]+: '
}
for name in "${recorded[@]}"; do
    expect "trees of $name" 0 - tree-stats -b "$(image "$name")"
    common < "$WORK/out" > "$WORK/common"
    holds "$name: the numbers of the reference" diff "$ROOT/fixtures/$name/tree-stats" \
        "$WORK/common"
done
if have btrfs; then
    for name in "${others[@]}"; do
        expect "trees of $name" 0 - tree-stats -b "$(image "$name")"
        btrfs inspect-internal tree-stats -b "$(image "$name")" 2> "$WORK/err" |
            common > "$WORK/reference"
        common < "$WORK/out" > "$WORK/common"
        holds "$name: the numbers are those of btrfs-progs" diff "$WORK/reference" "$WORK/common"
    done
else
    skip btrfs-progs "a comparison with tree-stats"
fi

# Trees by name and id, and their contents.
plain=$(image plain)
expect "tree-stats in columns" 0 - tree-stats -o tree,tree_name,levels,blocks,on_levels \
    --tree FS_TREE --tree 10 --tree dev "$plain"
holds "--tree selects trees by name and id" \
    out_is $'5\tFS_TREE\t2\t19\t18,1\n10\t10\t1\t1\t1\n4\tdev\t1\t1\t1'
for name in root extent chunk device fs csum uuid free-space data-reloc BTRFS_CHUNK_TREE_OBJECTID \
    csum-tree -9; do
    expect "the tree $name" 0 - tree-stats --tree "$name" "$plain"
done
expect "a tree by id" 0 - tree-stats --tree 5 "$plain"
holds "a tree by id is called by its id" out_has '^Calculating size of tree 5$'
holds "sizes have units" out_has '^	Total size: [0-9.]+KiB$'
expect "tree-stats --items" \
    0 - tree-stats --items --tree dev -o key_type_name,key_type,items "$plain"
holds "--items prints rows by type" out_has $'^DEV_EXTENT\t204\t[0-9]+$'
expect "items of a tree as JSON" 0 - tree-stats --items --json --tree fs "$plain"
holds "--items --json prints objects" out_has \
    '^\{"tree":5,"key_type_name":"INODE_ITEM","key_type":1,"items":[0-9]+,"bytes":[0-9]+\}$'
expect "tree-stats with levels" 0 - \
    tree-stats --tree fs -o levels,blocks,leaves,on_levels,lost_blocks,fill_percent \
    "$(image levels-3)"
holds "levels are listed from the leaves up" \
    out_has $'^3\t([0-9]+)\t([0-9]+)\t\\2,[0-9]+,1\t0\t[1-9][0-9]$'
expect "no such name" 2 "unknown tree 'fss': give an id or one of root, extent, chunk" \
    tree-stats --tree fss "$plain"
expect "no such tree" 2 'there is no tree 99; there are ROOT_TREE, CHUNK_TREE, ' \
    tree-stats --tree 99 "$plain"
holds "an unknown tree prints nothing" [ ! -s "$WORK/out" ]
expect "no such tree among many" 2 ' 266, 267, \.\.\.$' tree-stats --tree 99 "$(image subvolumes)"
expect "the log tree, which is read as part of others" 2 'there is no tree -6$' \
    tree-stats --tree log "$(image log-tree)"
expect "a control byte" 2 'unknown tree' tree-stats --tree $'\e' "$plain"

# Damage.
expect "a lost root" 1 'damage' tree-stats -o tree_name,blocks,lost_blocks "$(image lost-tree-csum)"
holds "the blocks of other trees are counted" out_has $'^fs\t[0-9]+\t0$'
holds "the lost root is counted" out_has $'^csum\t0\t1$'
expect "a lost leaf" 1 'damage' tree-stats --tree fs "$(image lost-leaf-first)"
holds "the text counts the lost leaf" out_has '^		Lost: 1$'
finish
