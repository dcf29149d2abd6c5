#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fragmentation, and the column extent_count of du: numbers as filefrag gave them on a mount, and
# free space as the block groups record it.
set -uo pipefail
. "$(dirname "$0")/common.bash"
fixtures=$BUILD/fixtures
names=(data-clones data-shapes raid5-3 mixed block-group-tree lost-tree-extent big-directory)
"$ROOT/scripts/unpack-fixtures" "$fixtures" "${names[@]}" || exit 1

# The sums of free ranges are the sizes of the chunks without what is used, and stripes of 64 KiB
# with superblocks. `usage` reads other items.
for name in data-clones data-shapes raid5-3 mixed block-group-tree big-directory; do
    expect "fragmentation of $name" 0 - fragmentation --json "$fixtures/$name"/dev*.img
    cp "$WORK/out" "$WORK/rows"
    run_json usage --json -o groups "$fixtures/$name"/dev*.img > "$WORK/groups"
    have python3 && holds "free space of $name" python3 - "$WORK/rows" "$WORK/groups" << 'END'
import json, sys
free = {}
for row in map(json.loads, open(sys.argv[1])):
    if row['kind'] == 'free':
        assert row['length'] * row['holes'] <= row['bytes'] < 2 * row['length'] * row['holes'], row
        free[row['chunk_type']] = free.get(row['chunk_type'], 0) + row['bytes']
for group in json.load(open(sys.argv[2]))['groups']:
    free[group['chunk_type']] = free.get(group['chunk_type'], 0) - group['size'] + group['used']
assert all(0 <= -left <= 3 * 2 * 65536 and left % 65536 == 0 for left in free.values()), free
END
done
clones=$fixtures/data-clones/dev1.img
expect "a table" 0 - fragmentation "$fixtures/data-shapes/dev1.img"
holds "with files" out_has '^files +- +1 +- +[0-9]+ +- +[0-9]+$'
expect "a picture" 0 - fragmentation --svg "$WORK/a.svg" -o kind "$fixtures/data-shapes/dev1.img"
holds "is well-formed" python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' \
    "$WORK/a.svg"
is "has a bar for each row" "$(grep -c '<rect' "$WORK/a.svg")" "$(wc -l < "$WORK/out")"
expect "an image as the picture" 2 'images are never written to' \
    fragmentation --svg "$clones" "$fixtures/data-shapes/dev1.img"
expect "without an extent tree" 1 'tree block .* of the extent tree' fragmentation \
    "$fixtures/lost-tree-extent/dev1.img"
holds "other trees show what is free" out_has '^free +Data '

# As on a mount: filefrag counts the same extents of files that are not compressed, and compsize the
# same stored bytes of all.
expect "extents of files" 0 - du --name 'plain*' --type f -o extent_count,disk,path "$clones"
holds "are pieces on the disk" [ "$(cat "$WORK/out")" = \
    $'6\t544768\t/plain\n3\t405504\t/plain-clone\n8\t401408\t/plain-parts' ]
expect "compressed extents" 0 - du -o disk,path "$clones" /zstd /lzo-clone /volume/zstd-parts
holds "have stored bytes" [ "$(cat "$WORK/out")" = \
    $'28672\t/zstd\n16384\t/lzo-clone\n32768\t/volume/zstd-parts' ]
expect "extents of directories" 0 - du -s -o extent_count,disk,files \
    "$fixtures/data-shapes/dev1.img"
holds "are sums" [ "$(cat "$WORK/out")" = $'35\t2240512\t40' ]
expect "the most fragmented file" 0 - du --top 1 --sort -extent_count --type f -o path "$clones"
holds "comes first" [ "$(cat "$WORK/out")" = /volume/zstd-parts ]

# walk and ls have the same columns as du, and those about shared data with any number of threads.
for name in data-shapes data-clones; do
    expect "du of $name" 0 - du --type f -o extent_count,disk,path,shared "$fixtures/$name/dev1.img"
    sort "$WORK/out" > "$WORK/du"
    expect "walk of $name" 0 - walk -j 3 -o extent_count,disk,path,shared \
        "$fixtures/$name/dev1.img"
    is "the same as du" "$(sort "$WORK/out" | cksum)" "$(cksum < "$WORK/du")"
    expect "sorted" 0 - walk --sort -shared -o shared "$fixtures/$name/dev1.img"
    is "by shared bytes" "$(cat "$WORK/out")" "$(cut -f 4 "$WORK/du" | sort -rn)"
    cut -f 1-3 "$WORK/du" | sort > "$WORK/du3" && mv "$WORK/du3" "$WORK/du"
    expect "walk of $name" 0 - walk -o extent_count,disk,path "$fixtures/$name/dev1.img"
    is "the same as du" "$(sort "$WORK/out" | cksum)" "$(cksum < "$WORK/du")"
    expect "sorted" 0 - walk --sort -extent_count -o extent_count "$fixtures/$name/dev1.img"
    is "by number of extents" "$(cat "$WORK/out")" "$(cut -f 1 "$WORK/du" | sort -rn)"
    expect "sorted" 0 - walk --sort disk -o path "$fixtures/$name/dev1.img"
    is "by stored bytes" "$(head -n 1 "$WORK/out")" \
        "$(sort -k 2,2n -t $'\t' -s "$WORK/du" | grep -Fm 1 "$(head -n 1 "$WORK/out")" | cut -f 3)"
done
expect "ls" 0 - ls -o extent_count,disk,path "$clones" /plain-clone
is "ls: the same as du" "$(cat "$WORK/out")" $'3\t405504\t/plain-clone'
expect "du" 0 - du -o shared,path "$clones" /plain-clone
cp "$WORK/out" "$WORK/du"
expect "ls -o shared" 0 - ls -o shared,path "$clones" /plain-clone
holds "ls: the same as du" cmp "$WORK/out" "$WORK/du"

expect "a lost block of the extent tree" 1 'sizes are lower bounds' \
    walk -o shared "$fixtures/lost-tree-extent/dev1.img"
finish
