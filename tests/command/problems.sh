#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# README and the pages in docs/problems: every command in them prints what they show. UPDATE=1
# writes what it prints into the pages instead.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have_openpty; then skip "pseudo-terminals" "the output in README and docs/problems"; finish; fi

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop raid5-3 raid1-2 quota diverged || exit 1
mkdir "$WORK/bin" "$WORK/images" && ln -s "$PROGRAM" "$WORK/bin/btrfs-walk"
export PATH=$WORK/bin:$PATH
cd "$WORK/images" || exit 1
# Copies, not links: a link would be named in messages.
for image in laptop/dev1:disk raid5-3/dev1:a raid5-3/dev2:b raid5-3/dev3:c quota/dev1:quota \
    diverged/dev1-near:left diverged/dev2-right:right; do
    cp --sparse=always "$BUILD/fixtures/${image%:*}.img" "${image#*:}.img"
done

# damage IMAGE PLACE...: overwrites a sector at each offset of its device.
damage() {
    local place
    for place in "${@:2}"; do
        head -c 4096 /dev/zero | tr '\0' 'x' |
            dd of="$1" bs=4096 seek=$((place / 4096)) conv=notrunc status=none
    done
}

# places_of ADDRESS: where the copies of a logical address are.
places_of() { btrfs-walk map -o offset --raw disk.img "$1"; }

# data_of PATH: the logical address of the first extent of a file.
data_of() {
    btrfs-walk extents --json disk.img "$1" | sed 's/.*"logical":\([0-9]*\).*/\1/' | head -n 1
}

# A bad sector in a picture, and one in a program.
cp --sparse=always disk.img bad.img
for file in /@home/anna/Pictures/holiday-3.jpg /@/usr/bin/program-5; do
    # shellcheck disable=SC2046 # several words
    damage bad.img $(places_of "$(data_of "$file")")
done

# The first superblock, and the root of the chunk tree.
cp --sparse=always disk.img dead.img
damage dead.img 65536
cp --sparse=always disk.img lost.img
# shellcheck disable=SC2046
damage lost.img $(places_of "$(btrfs-walk dump --tree chunk disk.img |
    sed -n 's/^leaf \([0-9]*\) items .*/\1/p')")

# Another file system was written over the disk, as by mkfs.
cp --sparse=always disk.img formatted.img
dd if=quota.img of=formatted.img bs=4096 conv=notrunc,sparse status=none

# A partition that was to move from 64 MiB to 48 MiB; 31 MiB were copied.
dd if=disk.img of=moved.img bs=1M seek=64 conv=notrunc,sparse status=none
dd if=disk.img of=moved.img bs=1M seek=48 count=31 conv=notrunc status=none
disk() { printf '%s\n' "volume $1" '    type storage/file' '    option path moved.img' end-volume; }
window() {
    printf '%s\n' "volume $1" '    type layout/window' "    option offset $3" \
        ${4:+"    option length $4"} "    subvolumes $2" end-volume
}
{
    disk disk-1 && disk disk-2
    window new-place disk-1 48M 31M && window old-place disk-2 95M
    printf '%s\n' 'volume device-1' '    type layout/concat' \
        '    subvolumes new-place old-place' end-volume \
        'volume chunk-map' '    type cluster/chunk-map' '    subvolumes device-1' end-volume \
        'volume verify' '    type features/verify' '    subvolumes chunk-map' end-volume
} > joined.vol
{
    disk disk-1 && disk disk-2
    window new-place disk-1 48M && window old-place disk-2 64M
    printf '%s\n' 'volume chunk-map' '    type cluster/chunk-map' \
        '    subvolumes new-place old-place' end-volume \
        'volume verify' '    type features/verify' '    subvolumes chunk-map' end-volume
} > copies.vol

mode=check
[ -z "${UPDATE:-}" ] || mode=update
pages=("$ROOT/README.md" "$ROOT"/docs/problems/*.md)
is "output that differs from the pages" \
    "$(python3 "$ROOT/tests/support/console_blocks.py" "$mode" . "${pages[@]}")" ""
count=$(python3 "$ROOT/tests/support/console_blocks.py" count . "${pages[@]}")
holds "README and docs/problems have at least 30 commands" [ "$count" -ge 30 ]
finish
