#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong members of items that the kernel does not look at: a mount shows all files, and so do the
# commands. tests/kernel/differential.py has found these differences.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain compressed subvolumes nodesize-4k || exit 1

# same NAME CHANGE...: the changed image has the same files, which can be listed with the status
# `listed`, and read with the status `status` and a message.
same() {
    local name=$1 image=$fixtures/$1/dev1.img
    shift
    cp --sparse=always "$image" "$WORK/image"
    holds "$name is changed: $*" change "$WORK/image" "$@"
    "$PROGRAM" -q --type f,d,l -o type,path,inode,mode "$image" > "$WORK/listed"
    expect "$name with $*: listed" "${listed:-0}" "${listing_message:--}" --type f,d,l \
        -o type,path,inode,mode "$WORK/image"
    is "$name with $*: the same files" "$(diff <(sort "$WORK/listed") <(sort "$WORK/out"))" ""
    "$PROGRAM" sum -q "$image" > "$WORK/sums"
    expect "$name with $*: read" "${status:-0}" "${message:--}" sum "$WORK/image"
    is "$name with $*: the same contents" "$(diff <(sort "$WORK/sums") <(sort "$WORK/out"))" ""
}

# The generation of the root of a subvolume: 0 accepts every block. The item has it twice.
same subvolumes 1 5 132 0 set 160 8 0
same subvolumes 1 257 132 0 set 160 8 0

# The type in the entry of a file, and of a directory.
for kind in FILE DIR; do
    place=$("$PROGRAM" dump --tree fs "$fixtures/plain/dev1.img" | sed -nE '
        s/.* key \(([0-9]+) DIR_INDEX ([0-9]+)\) itemoff.*/\1 \2/; t keep
        /location key .* type '$kind'$/ { x; /./ { p; q; }; }
        s/.* key \(.*//; t keep
        b
        : keep
        h')
    same plain 5 "${place% *}" 96 "${place#* }" set 29 1 0
done

# The entry of a directory with the type of a file: the kernel asks the inode. So does the walk when
# it meets entries of that inode.
place=$("$PROGRAM" dump --tree fs "$fixtures/nodesize-4k/dev1.img" | sed -nE '
    s/.* key \(([0-9]+) DIR_INDEX ([0-9]+)\) itemoff.*/\1 \2/; t keep
    /location key .* type DIR$/ { x; /./ { p; q; }; }
    s/.* key \(.*//; t keep
    b
    : keep
    h')
cp --sparse=always "$fixtures/nodesize-4k/dev1.img" "$WORK/image"
holds 'a directory becomes a file' change "$WORK/image" 5 "${place% *}" 96 "${place#* }" set 29 1 1
"$PROGRAM" "$fixtures/nodesize-4k/dev1.img" | sort > "$WORK/all"
expect 'a directory that its entry calls a file' 1 'no entry says that it is a directory' \
    "$WORK/image"
is 'one directory is reported' "$(grep -c 'no entry says' "$WORK/err")" 1
is 'the files in it are listed' "$(sort "$WORK/out" | comm -13 - "$WORK/all")" ""
expect 'a row of it' 1 'its entry has the type of another kind of file' \
    --type f,d -o mode,path "$WORK/image"
"$PROGRAM" -q --type f,d -o mode,path "$fixtures/nodesize-4k/dev1.img" | sort > "$WORK/all"
is 'it has the type of its inode' "$(sort -u "$WORK/out" | diff - "$WORK/all")" ""

# The entry of a file by index, with another inode: the kernel opens it by hash. A wrong type there
# does not matter to it either.
for changed in '0 8 283' '29 1 2'; do
    cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/image"
    # shellcheck disable=SC2086 # several words
    holds "the entry is changed: $changed" change "$WORK/image" 5 256 96 5 set $changed
    for command in 'stat -o inode' cat sum; do
        # shellcheck disable=SC2086 # several words
        expect "$command with $changed" 0 - $command "$WORK/image" /top-file
        # shellcheck disable=SC2086 # several words
        is "its answer: $command with $changed" "$(cat "$WORK/out")" \
            "$("$PROGRAM" $command "$fixtures/plain/dev1.img" /top-file)"
    done
    expect "check with $changed" 4 '^  *[0-9]+ error  *entry-' check "$WORK/image"
done

# Compressed extents: how many bytes they decompress to, and an encoding that does not exist.
same compressed 5 312 108 262144 set 8 8 4398046642176
same compressed 5 335 108 0 set 8 8 0
same compressed 5 283 108 0 set 18 2 8

# Compressed data in an item: how many bytes they decompress to.
same compressed 5 283 108 0 set 8 8 1099511627776
same compressed 5 311 108 0 set 8 8 5000
same compressed 5 339 108 0 set 8 8 0

# A compressed extent that is called preallocated: it has been written.
same compressed 5 312 108 0 set 20 1 2

# A compressed extent that is shown from its second sector on: zeros follow its end.
image=$fixtures/compressed/dev1.img
cp --sparse=always "$image" "$WORK/image"
expect 'a file with three extents' 0 - cat "$image" /lzo/large
{
    head -c 262144 "$WORK/out"
    tail -c +$((262144 + 4096 + 1)) "$WORK/out" | head -c $((131072 - 4096))
    head -c 4096 /dev/zero
    tail -c +$((262144 + 131072 + 1)) "$WORK/out"
} > "$WORK/wanted"
holds 'the last one is changed' change "$WORK/image" 5 312 108 262144 set 37 8 4096
expect 'an offset into compressed data' 0 - cat "$WORK/image" /lzo/large
is 'the contents of the kernel' "$(cmp "$WORK/out" "$WORK/wanted" 2>&1)" ""

# The length of the stored data of an extent without compression: the extent tree has the right one.
for length in 4096 0 $((1 << 40)) $(((1 << 63) - 4096)); do
    message='the extent tree corrects its lengths' \
        same plain 5 278 108 0 set 29 8 "$length"
done
message='the extent tree corrects its lengths' same plain 5 278 108 0 set 45 8 24576
holds 'the file shows more than its extent' \
    change "$WORK/image" 5 278 1 0 set 16 8 24096
expect 'it cannot be read' 1 'inode 278 at 0: offset 0 and num_bytes 24576 pass the end' \
    sum "$WORK/image"

# The size of a directory: all else in its inode is right.
directory=$("$PROGRAM" -q --type d -o inode "$fixtures/plain/dev1.img" | sed -n 2p)
same plain 5 "$directory" 1 0 set 16 8 $(((1 << 63) + 1))

# The last key of a leaf is beyond those that the parent allows: of an INODE_REF, of an entry, which
# gets into another directory or has another number, and of an item that gets another type.
message='accepted although .*: key outside of the range in the parent'
for change in '273 12 260 key 4369 12 260' '282 96 26 key 99999282 96 26' \
    '395 96 64 key 395 96 6400' '350 12 282 key 350 200 282'; do
    # shellcheck disable=SC2086 # several words
    listed=1 listing_message=$message status=1 same plain 5 $change
done
unset message

# The same with the extent of a file: its contents are lost, and no other items take their place. A
# directory finds the names that it has lost by their hashes.
cp --sparse=always "$fixtures/nodesize-4k/dev1.img" "$WORK/image"
holds 'an extent belongs to another file' change "$WORK/image" 5 299 108 0 key 5299 108 0
expect 'the file has no contents' 1 '/dir-0/file-16: bytes 0 to 1499 cannot be read' \
    sum "$WORK/image"
is 'no sum of it' "$(grep -c /dir-0/file-16 "$WORK/out")" 0
"$PROGRAM" ls "$fixtures/plain/dev1.img" /names > "$WORK/listed"
for index in '99999282 96 26' '282 96 2600'; do
    cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/image"
    # shellcheck disable=SC2086 # three numbers
    holds 'an entry is beyond its leaf' change "$WORK/image" 5 282 96 26 key $index
    expect "a directory with ($index)" 1 'last items of tree block [0-9]* are lost' \
        ls "$WORK/image" /names
    is "its names with ($index)" "$(diff <(sort "$WORK/listed") <(sort "$WORK/out"))" ""
done

# A subvolume without a ROOT_BACKREF, or with a wrong one: the ROOT_REF of its parent leads to it.
read -r child parent < <("$PROGRAM" dump --tree root "$fixtures/subvolumes/dev1.img" |
    sed -nE 's/.* key \(([0-9]+) ROOT_BACKREF ([0-9]+)\) itemoff.*/\1 \2/p' | tail -n 1)
same subvolumes 1 "$child" 144 "$parent" key "$child" 146 "$parent"
same subvolumes 1 "$child" 144 "$parent" key "$child" 144 $((parent + 100000))
same subvolumes 1 "$child" 144 "$parent" set 0 8 999

# Without both of them no path leads to the subvolume, which looks like an empty directory.
cp --sparse=always "$fixtures/subvolumes/dev1.img" "$WORK/image"
holds 'its two references are changed' change "$WORK/image" 1 5 156 256 key 5 156 260 and \
    1 256 144 5 key 256 144 7
expect 'a subvolume without references' 1 'no path leads to subvolume 256, .*--subvol reads it' \
    ls "$WORK/image" /home
holds 'it is an empty directory' [ ! -s "$WORK/out" ]
expect 'the subvolume itself' 1 'no path leads to subvolume 256, ' \
    walk --subvol 256 "$WORK/image"
holds 'its files' out_has '/top-file$'

for change in '156 265 key 257 156 265:of subvolume 265 name different parents' \
    '132 0 set 216 4 0:subvolume 256 looks empty. its root item marks it'; do
    cp --sparse=always "$fixtures/subvolumes/dev1.img" "$WORK/image"
    # shellcheck disable=SC2086 # several words
    holds "changed: $change" change "$WORK/image" 1 256 ${change%:*}
    expect "subvolume 256 with $change" 1 "${change#*:}" ls "$WORK/image" /home
done

# A system chunk that is longer in the chunk tree than in the superblock, up into the next chunk.
same compressed 3 256 228 22020096 set 0 8 8392704
finish
