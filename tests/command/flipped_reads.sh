#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One bit was flipped in memory before the checksum was computed. The kernel refuses the tree block;
# `sum` reads all files, and says what is wrong.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" block-group-tree levels-2 levels-3 subvolumes || exit 1

# changed FIXTURE CHANGE...: a copy of the image.
changed() {
    cp --sparse=always "$fixtures/$1/dev1.img" "$WORK/image"
    holds "the image is changed: $*" change "$WORK/image" "${@:2}"
}

# reads STATUS MESSAGE FIXTURE CHANGE...: all files have the sums of the fixture.
reads() {
    changed "${@:3}"
    expect "${*:3}: sum" "$1" "$2" sum -0 "$WORK/image"
    holds "${*:3}: all files are read" sums_match "$3"
}

# The uuid of the device, in the chunk of all metadata. With two wrong bits, it is another device.
stripe='block-group-tree 3 256 228 22020096 set 64 1'
first=$("$PROGRAM" dump --tree chunk "$fixtures/block-group-tree/dev1.img" |
    sed -n '/CHUNK_ITEM 22020096/,/dev_uuid/s/.*dev_uuid \(..\).*/\1/p')
# shellcheck disable=SC2086 # the words of a change
{
    reads 0 'a bit of the uuid of device 1 is flipped' $stripe $((0x$first ^ 4))
    changed $stripe $((0x$first ^ 6))
}
expect "two wrong bits in the uuid" 2 'device 1 is missing' "$WORK/image"

# The key of a root item: of the device tree, and of a subvolume, which gets that of another one. If
# more bits are wrong, nothing proves the right one.
flipped="a bit in the key of the root item of tree"
reads 0 "$flipped 4 is flipped; 'repair' corrects it" subvolumes 1 4 132 0 key 1099511627780 132 0
reads 0 "$flipped 257 is flipped" subvolumes 1 257 132 0 key 261 132 0
changed subvolumes 1 257 132 0 key 262 132 0
expect "a root item gets another key" 1 'subvolume 257' sum -0 "$WORK/image"
recorded subvolumes sums0 | LC_ALL=C sort -z | tr '\0' '\n' > "$WORK/want"
LC_ALL=C sort -z "$WORK/out" | tr '\0' '\n' > "$WORK/have"
is "it costs its own three files, and adds none" \
    "$(diff "$WORK/want" "$WORK/have" | sed -n 's/^\([<>]\).*/\1/p' | xargs -d '\n')" '< < <'

# The generation in a pointer to a leaf, and to a node.
accepted='accepted although .*: generation mismatch, want 39 have 7'
reads 0 "$accepted" levels-2 flip 291 5 39215104 72769536
reads 0 "$accepted" levels-3 flip 159 5 41558016 75112448
finish
