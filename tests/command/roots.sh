#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The roots command, and states that only a scan finds: on a fixture with snapshots, which make a
# transaction write two root trees and abandon the first.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" gone plain dup-metadata-0 \
    snapshots-with-quotas differences raid10-2 || exit 1
image=$BUILD/fixtures/gone/dev1.img
discarded=$BUILD/fixtures/plain/dev1.img
columns=generation,found,status,recoverable,lost_blocks,trimmed,overwritten,readable_subvolumes
columns+=,subvolume_count,tree_root
rows() { tr '\t\n' ' ;' < "$WORK/out"; }

expect "roots with a scan" 0 - roots -o "$columns" --raw "$image"
is "roots lists the generations that a scan finds" \
    "$(rows)" "9 superblock backup-0 scan committed whole 0 0 0 1 1 5898240;\
9 scan abandoned whole 0 0 0 2 2 5799936;8 backup-3 scan committed whole 0 0 0 2 2 5767168;\
7 backup-2 scan committed whole 0 0 0 2 2 5636096;7 scan abandoned whole 0 0 0 2 2 5357568;\
6 backup-1 scan committed whole 0 0 0 1 1 5242880;"
expect "roots without a scan" 0 - roots --no-scan -o "$columns" --raw "$image"
is "--no-scan lists the generations of the superblock" \
    "$(rows)" "9 superblock backup-0 committed - - - - - 1 5898240;\
8 backup-3 committed - - - - - 2 5767168;7 backup-2 committed - - - - - 2 5636096;\
6 backup-1 committed - - - - - 1 5242880;"
expect "--scan and --no-scan" 2 'exclude each other' roots --scan --no-scan "$image"
expect "a date" 0 - roots -o changed --raw "$image"
is "the newest generation has its date" "$(head -n 1 "$WORK/out")" 1795362467135281114

expect "trimmed blocks" 0 - roots -o generation,recoverable,lost_blocks,trimmed "$discarded"
is "lost blocks are counted as trimmed or overwritten" \
    "$(rows)" '8 whole 0 0;7 lost 1 1;6 lost 2 2;5 lost 2 1;'
expect "a copy of which only zeros are left" 0 'superblock copy 1 .* rejected' \
    roots -o generation,found,recoverable "$BUILD/fixtures/dup-metadata-0/dev1.img"
is "its other copy is scanned" "$(rows)" '7 superblock backup-2 scan whole;6 backup-1 lost;'\
'5 backup-0 lost;4 backup-3 lost;'

# Chunks of metadata contain the places of superblocks. These are no blocks, so it is no loss if
# another mirror cannot be read there. The superblock is copied into the chunk at 30408704.
cp --sparse=always "$BUILD/fixtures/raid10-2/"dev[12].img "$WORK"
dd if="$WORK/dev1.img" of="$WORK/dev1.img" bs=64K skip=1 seek=$((464 + 256)) count=1 \
    conv=notrunc status=none
truncate -s 20M "$WORK/dev2.img"
expect "a superblock in a chunk, and a mirror that is cut off" 0 'dev2.img is cut off' \
    roots --scan "$WORK/dev1.img" "$WORK/dev2.img"
is "the place of a superblock lacks nothing" "$(grep -c 'cannot be read' "$WORK/err")" 0

expect "roots with trees" 0 - roots --trees -o generation,tree_name,recoverable "$discarded"
is "all nine trees of the newest generation are whole" "$(grep -c '^8.*whole' "$WORK/out")" 9

# The index: created, used, refused, recreated.
expect "an index is made" 0 - roots --index "$WORK/index" "$image"
cp "$WORK/out" "$WORK/first"
is "the index has entries" "$(($(stat -c %s "$WORK/index") > 104))" 1
cp "$WORK/index" "$WORK/kept"
expect "an index is used" 0 - roots --index "$WORK/index" "$image"
is "an index leads to the same generations" "$(cmp "$WORK/out" "$WORK/first" && echo same)" same
printf 'x' | dd of="$WORK/index" bs=1 seek=300 conv=notrunc 2> /dev/null
expect "a damaged index is not used" 0 - roots --index "$WORK/index" "$image"
is "a damaged index is written again" \
    "$(tail -c +105 "$WORK/index" | wc -c)" "$(tail -c +105 "$WORK/kept" | wc -c)"
is "a damaged index does not change the generations" \
    "$(cmp "$WORK/out" "$WORK/first" && echo same)" same
expect "an index of another" 0 - roots --index "$WORK/index" "$discarded"
is "an index of another file system is replaced" \
    "$(cmp -s "$WORK/index" "$WORK/kept" || echo differs)" differs
echo text > "$WORK/text"
expect "another file" 2 'is not an index' roots --index "$WORK/text" "$image"
is "a file that is no index stays as it is" "$(cat "$WORK/text")" text
expect "an image" 2 'never written to|is an input' roots --index "$image" "$image"

# Blocks of an index are read again: a leaf that was overwritten since is missing.
cp --sparse=always "$image" "$WORK/hurt"
expect "an index is made" 0 - roots --index "$WORK/index" "$WORK/hurt"
leaf=$("$PROGRAM" dump --tree 5 "$image" | sed -nE 's/^leaf ([0-9]+) items.*/\1/p' | head -n 1)
offset=$("$PROGRAM" map -o offset "$image" "$leaf" | head -n 1)
cp "$WORK/index" "$WORK/kept"
head -c 16384 /dev/zero |
    dd of="$WORK/hurt" bs=4096 seek=$((offset / 4096)) conv=notrunc status=none
expect "without the index" 0 - roots -o "$columns" "$WORK/hurt"
cp "$WORK/out" "$WORK/first"
holds "the lost leaf is trimmed" grep -q 'partly 1 1' <(rows)
expect "with it" 0 - roots --index "$WORK/index" -o "$columns" "$WORK/hurt"
holds "an index leads to the same rows" cmp "$WORK/out" "$WORK/first"
holds "and the index was used" cmp "$WORK/index" "$WORK/kept"
truncate -s +1M "$WORK/hurt"
expect "another size of the image" 0 - roots --index "$WORK/index" "$WORK/hurt"
is "the index of an image of another size is replaced" \
    "$(cmp -s "$WORK/index" "$WORK/kept" || echo differs)" differs

# A node whose first mirror is zeros is not in the index. Its other mirror leads to a leaf that is
# lost, and two snapshots lead to the leaf as well.
differences=$BUILD/fixtures/differences/dev1.img
cp --sparse=always "$differences" "$WORK/node"
for offset in $("$PROGRAM" map -o offset "$differences" 31440896); do
    head -c 16384 "$WORK/kept" |
        dd of="$WORK/node" bs=4096 seek=$((offset / 4096)) conv=notrunc status=none
done
expect "a leaf of three trees is lost" 0 - roots -o lost_blocks "$WORK/node"
is "it counts for each tree" "$(head -n 1 "$WORK/out")" 3
offset=$("$PROGRAM" map -o offset "$differences" 31801344 | head -n 1)
head -c 16384 /dev/zero |
    dd of="$WORK/node" bs=4096 seek=$((offset / 4096)) conv=notrunc status=none
expect "the node above it is not in the index" 0 - roots -o lost_blocks "$WORK/node"
is "the leaf below a node that the index lacks counts" "$(head -n 1 "$WORK/out")" 3

# States that the superblock does not name: its backup roots are erased.
cp --sparse=always "$image" "$WORK/image"
python3 "$ROOT/tests/support/change_item.py" "$WORK/image" super 2859 8 0 and super 3027 8 0 and \
    super 3195 8 0 and super 3363 8 0 > /dev/null
expect "found by the scan" 0 - roots -o generation,found,status,recoverable "$WORK/image"
is "a scan finds all generations without backup roots" \
    "$(rows)" '9 superblock scan committed whole;9 scan abandoned whole;'\
'8 scan committed whole;7 scan committed whole;7 scan abandoned whole;6 scan committed whole;'
for generation in 6 7 8; do
    expect "sum of generation $generation" 0 - sum --generation "$generation" "$image"
    cp "$WORK/out" "$WORK/sums"
    expect "the same by a scan" 0 - sum --generation "$generation" "$WORK/image"
    is "generation $generation has the same hashes by a scan" \
        "$(cmp "$WORK/out" "$WORK/sums" && echo same)" same
    expect "check of $generation" 0 '0 errors, 0 warnings' check --data --generation \
        "$generation" "$WORK/image"
done
# A root tree with a generation that is far too high: nothing else shows that it was committed.
cp --sparse=always "$image" "$WORK/planted"
dd if="$image" of="$WORK/planted" bs=16K skip=360 seek=831 count=1 conv=notrunc status=none
python3 "$ROOT/tests/support/change_item.py" "$WORK/planted" \
    at 13615104 1 5 132 0 block 48 8 13615104 and \
    at 13615104 1 5 132 0 block 80 8 1152921504606846976
expect "a planted root" 0 - roots -o "$columns" --raw "$WORK/planted"
holds "a planted root is abandoned" \
    grep -q '^1152921504606846976 scan abandoned' <(rows | tr ';' '\n')
tail -n +2 "$WORK/out" > "$WORK/others"
expect "without it" 0 - roots -o "$columns" --raw "$image"
holds "the others are the same" cmp "$WORK/others" "$WORK/out"
dd if=/dev/zero of="$WORK/planted" bs=16K seek=360 count=1 conv=notrunc status=none
expect "it is no present state" 1 \
    'was rebuilt from tree blocks, with [0-9]+ trees of generation 9' sum "$WORK/planted"
holds "the present root tree is found" cmp "$WORK/out" <("$PROGRAM" sum "$image")
# A superblock that is older than what was committed.
cp --sparse=always "$image" "$WORK/stale"
python3 "$ROOT/tests/support/change_item.py" "$WORK/stale" super 72 8 7 and super 80 8 5636096 \
    > /dev/null
expect "a stale superblock" 0 'but a newer commit is complete; --generation 9' \
    roots -o generation,found,status "$WORK/stale"
is "the newest state is found" "$(rows | cut -d ';' -f 1)" '9 backup-0 scan committed'
expect "its backup roots tell that as well" 0 'but a backup root is newer; --generation 9' \
    sum "$WORK/stale"
holds "and are not used by themselves" cmp "$WORK/out" <("$PROGRAM" sum --generation 7 "$image")
cp --sparse=always "$WORK/stale" "$WORK/newer"
dd if="$image" of="$WORK/newer" bs=4096 count=1 skip=16384 seek=16384 conv=notrunc status=none
expect "a newer copy of it" 0 'copy 0 .* has generation 7, another copy has 9' sum "$WORK/newer"
holds "the newer copy of the superblock is used" cmp "$WORK/out" <("$PROGRAM" sum "$image")
cp --sparse=always "$WORK/stale" "$WORK/older"
python3 "$ROOT/tests/support/change_item.py" "$WORK/older" super 2859 8 0 and super 3027 8 0 and \
    super 3195 8 0 and super 3363 8 0 > /dev/null
expect "if nothing in it tells" 0 - ls "$WORK/older"
expect "a scan does" 0 'but a newer commit is complete; --generation 9' ls --scan "$WORK/older"
expect "where there is nothing newer" 0 - ls --scan "$image"
expect "and named" 0 - sum --generation 9 "$WORK/stale"
holds "the newer generation has all files" cmp "$WORK/out" <("$PROGRAM" sum "$image")
expect "a state that is gone" 2 'generation 5 is not recoverable' ls --generation 5 "$WORK/image"
# With quotas, a transaction that creates a snapshot writes two complete root trees. The superblock
# of the kernel pointed to the later one.
twice=$BUILD/fixtures/snapshots-with-quotas/dev1.img
expect "two complete roots" 0 - roots -o generation,status,tree_root "$twice"
awk '$2 == "committed" && $1 >= 9 {print $1, $3}' "$WORK/out" | sort > "$WORK/have"
sort "$ROOT/fixtures/snapshots-with-quotas/committed" > "$WORK/want"
holds "those are committed that the superblock named" cmp "$WORK/want" "$WORK/have"
is "six root trees are abandoned" "$(grep -c abandoned "$WORK/out")" 6
expect "versions with two complete roots" \
    0 - versions -o snapshot_name,generation,first_generation "$twice" /@home/doc
generations=$(grep '^-' "$WORK/out" | cut -f 2,3 | tr '\t' '\n' | sort -nu)
is "versions lists twelve generations" "$(wc -l <<< "$generations")" 12
for generation in $generations; do
    expect "cat of generation $generation, which was printed" 0 - \
        cat -q --generation "$generation" "$twice" /@home/doc
    is "the file of generation $generation has its text" \
        "$(cat "$WORK/out")" "text $(((generation - 7) / 2))"
    expect "diff of generation $generation" 0 - diff -q "$twice" "@home@$generation" @home
done
expect "deleted with two complete roots" 0 - deleted -o generation,path "$twice"
while read -r generation path; do
    expect "$path of generation $generation" 0 - cat -q --generation "$generation" "$twice" "$path"
done < "$WORK/out"
expect "the choice is reported" 0 \
    'generation 11 has 2 complete root trees: the latest is read; it is --tree-root 6012928' \
    cat --generation 11 "$twice" /@home/doc
expect "not where the superblock has made it" 0 - cat --generation 19 "$twice" /@home/doc

# Without times, this cannot be decided.
cp --sparse=always "$twice" "$WORK/timeless"
python3 - "$ROOT/tests/support" "$WORK/timeless" << 'PYTHON'
import struct, sys
sys.path.insert(0, sys.argv[1])
table = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    table.append(i)
def crc32c(data, crc=0xffffffff):
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xffffffff
with open(sys.argv[2], "r+b") as image:
    image.seek(65536)
    fsid = image.read(4096)[32:48]
    image.seek(0)
    data = image.read(64 << 20)
    for at in range(0, len(data), 16384):
        block = bytearray(data[at:at + 16384])
        generation, owner, items, level = struct.unpack_from("<QQIB", block, 80)
        if block[32:48] != fsid or (generation, owner, level) != (11, 1, 0):
            continue
        for i in range(items):
            kind, offset = struct.unpack_from("<B8xI", block, 101 + 25 * i + 8)
            if kind == 132:
                times = 101 + offset + 327
                block[times:times + 48] = bytes(48)
        block[:4] = struct.pack("<I", crc32c(block[32:]))
        image.seek(at)
        image.write(block)
PYTHON
roots='--tree-root [0-9]+@11 \(committed\), --tree-root [0-9]+@11 \(committed\)'
expect "without times" 2 "generation 11 is ambiguous; choose one: $roots" \
    cat --generation 11 "$WORK/timeless" /@home/doc
root=$(sed -nE 's/.*--tree-root ([0-9]+@11) .*/\1/p' "$WORK/err")
expect "as it says" 0 - cat --tree-root "$root" "$WORK/timeless" /@home/doc
is "the selected root tree has its text" "$(cat "$WORK/out")" "text 2"
expect "versions name the roots" 0 'warning: .*generation 11 is ambiguous; choose one: ' \
    versions "$WORK/timeless" /@home/doc
is "an ambiguous generation is reported once" "$(grep -c 'is ambiguous' "$WORK/err")" 1
# Mirrors that differ: the second device of a RAID1 has zeros, or a block of a newer generation,
# where the first one, which is stale, has the root tree of generation 7. No superblock names that,
# since the backup roots are erased.
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" stale-raid1-1 || exit 1
for instead in 0 9; do
    cp --sparse=always "$BUILD"/fixtures/stale-raid1-1/dev?.img "$WORK"
    for device in 1 2; do
        python3 "$ROOT/tests/support/change_item.py" "$WORK/dev$device.img" super 2859 8 0 and \
            super 3027 8 0 and super 3195 8 0 and super 3363 8 0 > /dev/null
    done
    place=$("$PROGRAM" map --raw -o devid,offset "$WORK"/dev[12].img 30638080 2> /dev/null |
        awk '$1 == 2 { print $2 }')
    python3 - "$ROOT/tests/support" "$WORK/dev2.img" "$place" "$instead" << 'END'
import struct
import sys
sys.path.insert(0, sys.argv[1])
from crc32c import checksum
with open(sys.argv[2], 'r+b') as file:
    file.seek(int(sys.argv[3]))
    block = bytearray(file.read(16384))
    struct.pack_into('<Q', block, 80, int(sys.argv[4]))
    block[:4] = checksum(bytes(block[32:]))
    file.seek(int(sys.argv[3]))
    file.write(block if int(sys.argv[4]) else bytes(16384))
END
    expect "mirrors that differ, $instead" 0 'dev1.img is stale' \
        roots -o generation,status,recoverable,tree_root --raw "$WORK/dev1.img" "$WORK/dev2.img"
    holds "the root in one of them, $instead" out_has '^7.committed.whole.30638080$'
    expect "its files, $instead" 0 stale sum --generation 7 "$WORK/dev1.img" "$WORK/dev2.img"
    is "are those of the stale device, $instead" "$(md5sum < "$WORK/out")" \
        "$("$PROGRAM" sum "$BUILD/fixtures/stale-raid1-1/dev1.img" 2> /dev/null | md5sum)"
done
finish
