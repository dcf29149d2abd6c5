#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# dump against btrfs inspect-internal dump-tree of btrfs-progs 6.2, line by line: every fixture that
# both can read, and the options. tests/support/dump_text.py lists the differences that are meant.
set -uo pipefail
. "$(dirname "$0")/common.bash"

case "$(btrfs --version 2> /dev/null)" in
    *v6.[0-3] | *v6.[0-3].*) ;;
    *) skip "btrfs-progs 6.2" "dump.sh compares with what it has printed"; finish ;;
esac
images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" || exit 1
export PROGRAM

# Prints why a fixture is left out; nothing if it is not.
reason() {
    case $1 in
        extent-tree-v2 | remap-* | simple-quota | stripe-tree-* | zoned-stripe-tree)
            echo "6.2 does not know the feature" ;;
        changes | diverged) echo "its images have several histories" ;;
        lost-*) echo "damage: the reference ends a tree at the first bad block" ;;
        sprout* | stale-*)
            echo "the reference takes the superblock of the first image, not the newest" ;;
        superblock* | zoned-*) echo "the reference does not look for another superblock" ;;
    esac
}

# compare NAME OPTIONS -- IMAGES
compare() { (IFS=$'\t'; printf '%s\n' "$*") >> "$WORK/cases"; }

for fixture in "$ROOT"/fixtures/*/dev1.img.zst; do
    name=$(basename "$(dirname "$fixture")")
    [ -z "$(reason "$name")" ] || continue
    compare "$name" -- "$images/$name"/dev*.img
done

plain=$images/plain/dev1.img levels=$images/levels-3/dev1.img
compare "depth first" --dfs -- "$levels"
compare "one tree" --tree fs -- "$plain"
compare "a tree by its number" --tree 7 -- "$plain"
compare "a tree in capitals" --tree FREE_SPACE_TREE -- "$plain"
compare "the root tree" --tree root -- "$plain"
compare "the chunk tree" --tree CHUNK_TREE -- "$plain"
compare "checksums of blocks" --csum-headers -- "$images/checksum-sha256/dev1.img"
for sum in checksum-sha256 checksum-xxhash64 plain; do
    compare "checksums of data: $sum" --csum-items --tree csum -- "$images/$sum/dev1.img"
done
compare "no names" --hide-names --tree fs -- "$plain"
root=$("$PROGRAM" dump --tree fs "$levels" | sed -n '2s/node \([0-9]*\) .*/\1/p')
compare "a block" --block "$root" -- "$levels"
compare "a block and those below" --block "$root" --follow -- "$levels"
compare "the same, depth first" --block "$root" --follow --bfs -- "$levels"
"$ROOT/tests/support/dump_text.py" --compare < "$WORK/cases" > "$WORK/results"
while IFS= read -r result; do
    if [[ $result == same* ]]; then pass; else fail "$result"; fi
done < "$WORK/results"
is "every case has a result" "$(wc -l < "$WORK/results")" "$(wc -l < "$WORK/cases")"
finish
