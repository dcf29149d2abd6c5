#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `map --used`: the ranges cover each device, and what is in use agrees with the block groups, for
# all profiles whose raw size is exact.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/fixtures.bash"
have python3 || { skip python3 "the space in use"; finish; }

# Compares `map --used --json` with `usage --json`. Arguments: the files with both, then images.
cat > "$WORK/compare.py" <<'PYTHON'
import json, os, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
usage = json.loads(open(sys.argv[2]).read())
ends, used = {}, 0
for row in rows:
    assert row["start"] == row["offset"] == ends.get(row["device"], 0), row
    assert row["data"] == row["present"] != row["zero"] and row["depth"] == 0, row
    assert row["data"] == (row["kind"] not in ("free", "unallocated")), row
    ends[row["device"]] = row["start"] + row["length"]
    used += row["length"] if row["kind"] in ("data", "metadata") else 0
assert ends == {image: os.path.getsize(image) for image in sys.argv[3:]}, ends
groups = [group for group in usage["groups"] if "System" not in group["chunk_type"]]
assert used == sum(group["raw_used"] for group in groups), (used, groups)
PYTHON

# In streams and relocation, bitmaps list a part of the free space.
for name in plain dup raid0-3 raid1-3 raid10-4 raid1c3-3 raid1c4-4 mixed-dup \
    device-gaps conversion-single-raid1 zoned streams relocation; do
    read_about "$name"
    run_json map --used --json "${files[@]}" > "$WORK/used"
    is "$name: status of map --used" $? 0
    run_json usage --json "${files[@]}" > "$WORK/usage"
    holds "$name: the used ranges add up to the used bytes of the block groups" \
        python3 "$WORK/compare.py" "$WORK/used" "$WORK/usage" "${files[@]}"
done

# Rows with parity are in use as a whole, on all devices.
for name in raid5-3 raid6-4; do
    read_about "$name"
    for file in "${files[@]}"; do
        "$PROGRAM" map --used -o device,start,length,data,kind "${files[@]}" |
            awk -F '\t' -v file="$file" '$1 == file && $4 && $5 != "superblock" && $2 >= 2^20 {
                if ($2 != end) printf "\n%d", $2
                end = $2 + $3; printf " %s", $5 } END { print "" }' > "$WORK/${file##*/}"
        holds "$name: parity is in use on ${file##*/}" grep -q parity "$WORK/${file##*/}"
    done
    run_json map --used --json=array "${files[@]}" > "$WORK/array"
    holds "$name: --json=array prints an array" \
        python3 -c 'import json, sys; json.load(sys.stdin)' < "$WORK/array"
done

# Only one device; a device that does not exist; wrong uses.
read_about raid1-2
expect "a device" 0 - map --used --devid 2 -o devid "${files[@]}"
is "a device: only that one" "$(sort -u "$WORK/out")" 2
expect "no such device" 2 'there is no device 7' map --used --devid 7 "${files[@]}"
expect "no addresses" 2 'cannot open 1M' map --used "$image" 1M
expect "no address" 2 'no address given' map "$image"

# Without an extent tree, the free space tree decides; without both, chunks are in use as a whole.
read_about lost-tree-extent
expect "no extent tree" 1 'the extent tree is incomplete' map --used -o data,kind "${files[@]}"
holds "no extent tree: free space is known" out_has 'free'
holds "no extent tree: space in use" out_has 'data'

# Without the chunk tree, the device tree and the superblock show whether all chunks were found.
read_about lost-tree-chunk
unallocated() { awk '$2 == "unallocated" {print $1}' "$WORK/out" | sort -u; }
expect "no chunk tree" 1 'rebuilt with 3 chunks' map --used -o data,kind "${files[@]}"
is "no chunk tree: all chunks are known" "$(unallocated)" 0
cp --sparse=always "${files[0]}" "$WORK/image"
python3 "$ROOT/tests/support/erase_trees.py" 4 "$WORK/image"
expect "no device tree, either" 1 'rebuilt with' map --used -o data,kind "$WORK/image"
is "no device tree, either: chunks may be unknown" "$(unallocated)" 1
cp --sparse=always "${files[0]}" "$WORK/image"
PYTHONPATH=$ROOT/tests/support python3 - "$WORK/image" << 'PYTHON'
import sys
from crc32c import checksum
with open(sys.argv[1], "r+b") as image:
    image.seek(65536)
    block = bytearray(image.read(4096))
    block[217 + 3] += 1  # allocated bytes in the device item
    image.seek(65536)
    image.write(checksum(block[32:]) + block[4:])
PYTHON
expect "another size of chunks" 1 'rebuilt with 3 chunks' map --used -o data,kind "$WORK/image"
is "another size of chunks: chunks may be unknown" "$(unallocated)" 1
finish
