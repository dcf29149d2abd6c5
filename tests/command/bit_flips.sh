#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One flipped bit, where no mirror is good: it is corrected in tree blocks, and check names it. Each
# kind of place in a block counts, with all checksums, and with one copy or two.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have mkfs.btrfs || { skip mkfs.btrfs 'flipped bits'; finish; }

NODE=4096
mkdir -p "$WORK/files/folder"
for ((i = 1; i <= 40; i++)); do
    printf 'the contents of file %s\n' "$i" > "$WORK/files/folder/a file with a name $i"
done
seq 20000 > "$WORK/files/large"

# make IMAGE CHECKSUM PROFILE
make() {
    rm -f "$WORK/$1"
    truncate -s 150M "$WORK/$1"
    mkfs.btrfs -q --csum "$2" -n $NODE -m "$3" -d single --rootdir "$WORK/files" "$WORK/$1" \
        > "$WORK/mkfs" 2>&1 || fail "mkfs.btrfs: $(tail -n 1 "$WORK/mkfs")"
    image=$WORK/$1
    "$PROGRAM" sum "$image" > "$WORK/$1.sums" 2>&1
    sums=$WORK/$1.sums
    is "$1: the hashes are those of the files in it" "$(sed 's|  /|  |' "$sums" | sort)" \
        "$(cd "$WORK/files" && find . -type f -exec sha256sum {} + | sed 's|  \./|  |' | sort)"
}

# flip OFFSET BYTE:BIT...: flips bits of $image at this offset. A second time, it undoes that.
flip() {
    local place at value
    for place in "${@:2}"; do
        at=$(($1 + ${place%:*}))
        value=$(od -An -tu1 -j $at -N 1 "$image")
        printf -v value '\\x%02x' $((value ^ 1 << ${place#*:}))
        printf '%b' "$value" | dd of="$image" bs=1 seek=$at conv=notrunc status=none
    done
}

# offsets LOGICAL: where the copies of an address are.
offsets() { "$PROGRAM" map -o offset "$image" "$1"; }

# same_files: whether all files can be read as before, without an error.
same_files() { timeout 60 "$PROGRAM" sum "$@" "$image" 2> /dev/null | cmp -s - "$sums"; }

# findings: codes of the errors of the last check.
findings() { awk '$1 == "error" { print $2 }' "$WORK/out" | sort | uniq -c | xargs; }

# A leaf of the tree of files, and an internal node.
blocks_of() { # KIND
    "$PROGRAM" dump --tree fs "$image" | awk -v kind="$1" '$1 == kind && $3 != "flags" { print $2 }'
}

# The places: "BYTE:BIT what", for a leaf with some items.
places='0:3 the checksum
33:7 the fsid
50:0 the address
80:5 the generation
88:1 the owner
96:0 the number of items
100:0 the level
101:4 the first key
118:2 an offset of an item
122:6 a size of an item
4000:5 contents of an item
4095:7 the last byte'

make single crc32c single
leaf=$(blocks_of leaf | sed -n 2p)
node=$(blocks_of node | head -n 1)
read -r offset < <(offsets "$leaf")
expect "a healthy image" 0 '0 errors' check "$image"
while read -r place what; do
    flip "$offset" "$place"
    expect "$what: check" 4 '1 error \(1 repairable\)' check "$image"
    is "$what: check finds one flipped bit" "$(findings)" "1 block-bit-flip"
    holds "$what: check names the flipped bit" \
        out_has "bit ${place#*:} of byte ${place%:*} is flipped"
    holds "$what: all files are read as before" same_files
    flip "$offset" "$place"
done < <(sweep "${SWEEP:-1}" <<< "$places")

# Unused space, between the entries and the contents of the items.
unused=$("$PROGRAM" dump -B "$leaf" "$image" |
    awk '/^leaf/ && $3 == "items" { print 101 + 25 * $4 + int($7 / 2); exit }')
flip "$offset" "$unused:1"
expect "unused space" 4 '1 error \(1 repairable\)' check "$image"
holds "check names the flipped bit in unused space" \
    out_has "block-bit-flip .*bit 1 of byte $unused is flipped"
expect "a flipped bit that is tolerated" 0 'repairable' check --tolerate repairable "$image"
expect "a warning of other commands" 0 "corrected bit 1 of byte $unused" sum "$image"
flip "$offset" "$unused:1"

read -r offset < <(offsets "$node")
flip "$offset" 125:2
expect "an internal node" 4 '1 error \(1 repairable\)' check "$image"
is "an internal node: the finding" "$(findings)" "1 block-bit-flip"
holds "an internal node: the same files" same_files
flip "$offset" 125:2

# More than one bit is wrong.
read -r offset < <(offsets "$leaf")
flip "$offset" 3000:1 3001:1
expect "two bits" 4 'block-checksum' check "$image"
is "two bits are not corrected" "$(grep -c block-bit-flip "$WORK/out")" 0
flip "$offset" 3000:1 3001:1

# The roots of the critical trees.
for tree in chunk root; do
    root=$("$PROGRAM" dump --tree $tree "$image" | awk '/^(leaf|node)/ { print $2; exit }')
    read -r offset < <(offsets "$root")
    flip "$offset" 4001:3
    expect "the $tree tree: check" 4 '1 error \(1 repairable\)' check "$image"
    is "the $tree tree: the finding" "$(findings)" "1 block-bit-flip"
    holds "the $tree tree: the same files" same_files
    flip "$offset" 4001:3
done

# Two copies: one is bad, or both.
make dup crc32c dup
leaf=$(blocks_of leaf | sed -n 2p)
mapfile -t copies < <(offsets "$leaf")
is "metadata have two copies" ${#copies[@]} 2
flip "${copies[1]}" 2000:6
expect "one copy" 4 '1 error \(1 repairable\)' check "$image"
is "one bad mirror is a finding block-checksum" "$(findings)" "1 block-checksum"
holds "one bad mirror: check names the flipped bit" out_has 'bit 6 of byte 2000 is flipped'
flip "${copies[0]}" 70:1
expect "both copies" 4 '2 errors \(2 repairable\)' check "$image"
is "two bad mirrors are two findings block-bit-flip" "$(findings)" "2 block-bit-flip"
holds "check names the flipped bit of mirror 1" out_has 'bit 1 of byte 70 is flipped.*mirror 1'
holds "check names the flipped bit of mirror 2" out_has 'bit 6 of byte 2000 is flipped.*mirror 2'
holds "both copies: the same files" same_files
flip "${copies[0]}" 71:1
expect "one copy cannot be corrected" 4 '2 errors \(2 repairable\)' check "$image"
is "a copy with two flipped bits is a finding block-checksum" \
    "$(findings)" "1 block-bit-flip 1 block-checksum"
expect "a quick check of flipped bits" 0 '0 errors' check --quick "$image"

# Superblocks: both copies of a device. All but crc32c are searched bit by bit, which takes half a
# second, so that only every third place is tried with them.
super_places=$(printf '%s\n' 3:1 40:2 66:0 73:4 82:3 130:7 196:1 330:5 900:0 4095:6)
both() { local at; for at in 65536 67108864; do flip $at "$@"; done; }
for checksum in crc32c xxhash sha256 blake2; do
    make "super-$checksum" $checksum single
    [ "$checksum" = crc32c ] && step=${SWEEP:-1} || step=$((3 * ${SWEEP:-1}))
    for place in $(sweep "$step" <<< "$super_places"); do
        both $place
        bit="bit ${place#*:} of byte ${place%:*}"
        expect "superblocks, $checksum, $bit" 0 \
            "warning: .*superblock copy 0 at 65536: corrected $bit " sum "$image"
        holds "superblocks, $checksum, $bit: all files are read as before" \
            cmp -s "$WORK/out" "$sums"
        expect "its check" 4 '2 errors \(2 repairable\)' check "$image"
        is "superblocks, $checksum, $bit: check finds two flipped bits" \
            "$(findings | tr -d :)" "2 block-bit-flip"
        holds "superblocks, $checksum, $bit: check names the bit in copy 1" \
            out_has "superblock copy 1: .*$bit is flipped"
        both $place
    done
    flip 65536 73:4
    expect "superblocks, $checksum: a good copy is better" 0 'superblock copy 0 at 65536 rejected' \
        sum "$image"
    flip 67108864 73:4 74:4
    expect "superblocks, $checksum: one can be corrected" 0 'copy 0 .*corrected bit 4' \
        sum "$image"
    flip 65536 74:4
    expect "superblocks, $checksum: two bits" 2 'checksum mismatch' sum "$image"
done

# The other checksums need a search, which only check and repair do.
for checksum in xxhash sha256 blake2; do
    make $checksum $checksum single
    leaf=$(blocks_of leaf | sed -n 2p)
    read -r offset < <(offsets "$leaf")
    flip "$offset" 300:4
    expect "$checksum: check" 4 '1 error \(1 repairable\)' check "$image"
    is "$checksum: check finds one flipped bit" "$(findings)" "1 block-bit-flip"
    holds "$checksum: check names the flipped bit" out_has 'bit 4 of byte 300 is flipped'
    is "$checksum: repair corrects it" "$("$PROGRAM" repair -q -o class_name "$image")" checksum
    expect "$checksum: without time" 4 '1 bad tree block was not searched for a flipped bit' \
        check --xlator-option verify.search-time=0 "$image"
    is "$checksum: without time, the bad block is a finding block-checksum" \
        "$(findings | grep -c block-checksum)" 1
    expect "$checksum: other commands" 1 'checksum mismatch' sum "$image"
    holds "$checksum: they name the option that corrects it" \
        grep -q '1 bad block was not searched for a flipped bit: --correct-bits' "$WORK/err"
    holds "$checksum: with it, they read all files as before" same_files --correct-bits
    flip "$offset" 300:4
    flip "$offset" 50:1 51:1
    expect "$checksum: another address" 4 'checksum' check --xlator-option verify.search-time=0 \
        "$image"
    is "$checksum: it needs no search" "$(grep -c 'not searched' "$WORK/err")" 0
done

# File data are corrected only on request.
make data crc32c single
offset=$("$PROGRAM" extents "$image" large | sed -n 's/.* 1:\([0-9]*\)$/\1/p')
flip "$offset" 5000:7 20000:0
expect "cat of data with a flipped bit" 1 'checksum mismatch' cat "$image" large
expect "data: --correct-bits" 0 - cat --correct-bits "$image" large
holds "--correct-bits of cat writes the right bytes" cmp -s "$WORK/out" "$WORK/files/large"
expect "data: a note" 0 'corrected bit 7 of byte 904 ' cat -v --correct-bits "$image" large
holds "--correct-bits of sum reads all files as before" same_files --correct-bits
flip "$offset" 5001:7
expect "data: two bits" 1 'checksum mismatch' cat --correct-bits "$image" large
make data-search xxhash single
flip "$offset" 5000:7
expect "data: xxhash" 1 'checksum mismatch' cat "$image" large
expect "data: xxhash, --correct-bits" 0 - cat --correct-bits "$image" large

# A command that searches says how many blocks it has not searched when the time has run out, here
# after the first.
flip "$offset" 9000:1 13000:1
expect "data: no time for two of three" 1 'warning: .*: 2 bad blocks were not searched' \
    cat --correct-bits --xlator-option verify.search-time=1us "$image" large
expect "data: no time" 1 'warning: .*: 3 bad blocks were not searched for a flipped bit' \
    cat --correct-bits --xlator-option verify.search-time=0 "$image" large
expect "data: enough time" 0 - cat --correct-bits "$image" large
holds "data: all three are corrected" cmp -s "$WORK/out" "$WORK/files/large"
expect "data: not requested" 1 'cannot be read' cat "$image" large
is "data: no search is reported" "$(grep -c 'not searched' "$WORK/err")" 0
flip "$offset" 9000:1 13000:1

# rescue corrects both, and saves files with corrected data separately.
read -r leaf < <(offsets "$(blocks_of leaf | sed -n 2p)")
flip "$leaf" 300:4
expect "rescue of flipped bits" 1 '1 file can be read only with --correct-bits' rescue "$image"
holds "rescue counts a file that needs --correct-bits" \
    out_has '1 of the whole files can be read only with --correct-bits'
holds "rescue counts a tree block with a flipped bit" \
    out_has '1 tree block had a flipped bit, which was corrected'
expect "rescue: list" 1 - rescue -q --list -o recoverable,path "$image"
is "rescue --list gives the file the class corrected" \
    "$(grep -v ^verified "$WORK/out" | xargs)" "corrected /large"
expect "rescue: JSON" 1 - rescue -q --json "$image"
holds "rescue --json has the numbers of corrected files and blocks" \
    grep -q '"corrected_files":1,.*"corrected_blocks":1,"not_searched":0' \
    "$WORK/out"
expect "rescue: extract" 1 'extracted' rescue --extract "$WORK/saved" "$image"
holds "rescue saves the corrected file with the right contents" \
    cmp "$WORK/saved/corrected/large" "$WORK/files/large"
holds "rescue saves the other files as whole" \
    diff -r "$WORK/saved/whole/folder" "$WORK/files/folder"
is "the corrected file is not among the whole files" "$(ls "$WORK/saved/whole")" folder
holds "corrected.json lists the corrected file" \
    grep -q '"saved":"corrected","path":"/large"' "$WORK/saved/corrected.json"
is "no file is listed as unsaved" "$(stat -c %s "$WORK/saved/unsaved")" 0
flip "$offset" 9000:1 9001:1
expect "rescue: also bad bytes" 1 - rescue -q --list -o recoverable,bad_bytes,path "$image"
is "a file with two flipped bits in a sector is partly recoverable" \
    "$(grep -v ^verified "$WORK/out" | xargs)" "partly 4096 /large"
rm -r "$WORK/saved"
expect "rescue: extract it" 1 'zeros' rescue --extract "$WORK/saved" "$image"
is "the saved part of the file differs in one sector" \
    "$(cmp -l "$WORK/saved/partly/large" "$WORK/files/large" | wc -l)" 4096
finish
