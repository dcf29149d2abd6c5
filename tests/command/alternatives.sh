#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --alternatives and --map: two half-good images of each device of a file system show what a whole
# image shows.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "images with holes"; finish; fi

fixtures='single dup raid1-2 raid10-4 raid5-3 raid6-4 raid0-2 data-shapes past'
# shellcheck disable=SC2086 # several words
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop $fixtures || exit 1
cd "$WORK" || exit 1

# halves IMAGE A B: two copies with holes, never at the same place, and their maps A.map and B.map.
halves() {
    cp --sparse=always "$1" "$2" && cp --sparse=always "$1" "$3"
    python3 - "$2" "$3" << 'END'
import os, random, sys
random.seed(7)
UNIT = 16384
images = [open(path, "r+b") for path in sys.argv[1:]]
size = os.path.getsize(sys.argv[1])
maps = [["# a map of ddrescue", "0x0 +"], ["# a map of ddrescue", "0x0 +"]]
for at in range(0, size, UNIT):
    hit = random.choice((0, 1, None))
    for i, image in enumerate(images):
        lost = hit == i and at >= 128 << 10
        maps[i].append(f"{at:#x} {UNIT:#x} {'-' if lost else '+'}")
        if lost:
            image.seek(at)
            image.write(bytes(UNIT))
for path, lines in zip(sys.argv[1:], maps):
    open(path + ".map", "w").write("\n".join(lines) + "\n")
END
}

for fixture in $fixtures; do
    sound=("$BUILD/fixtures/$fixture"/dev*.img) images=() maps=()
    for number in "${!sound[@]}"; do
        halves "${sound[number]}" "a$number.img" "b$number.img"
        images+=("a$number.img" "b$number.img")
        maps+=(--map "a$number.img.map" --map "b$number.img.map")
    done
    expect "$fixture: two damaged images of each device" 0 . \
        sum -0 -v -j 2 --size -2G --alternatives "${images[@]}"
    holds "$fixture: two damaged images have all contents" sums_match "$fixture"
    expect "$fixture: two images with maps of their holes" 0 . \
        sum -0 -v -j 2 --size -2G --alternatives "${maps[@]}" "${images[@]}"
    holds "$fixture: two images with maps have all contents" sums_match "$fixture"
    expect "$fixture: check of two images" 4 'repairable' check --data --all --alternatives \
        "${images[@]}"
    holds "$fixture: check finds the holes" out_has '^error .*repairable\]$'
    is "$fixture: all errors can be repaired" \
        "$(grep '^error' "$WORK/out" | grep -vc 'repairable\]$\|^error super')" 0
    rm -f ./*.img ./*.map
done

# What is said of two images.
image=$BUILD/fixtures/single/dev1.img
halves "$image" a.img b.img
expect "two images of one device" 1 'duplicate of device 1, .*; --alternatives reads both$' \
    sum a.img b.img
expect "both in the graph" 0 - graph --alternatives --map a.img.map a.img b.img
holds "the graph has a layer with both images of the device" \
    grep -q 'subvolumes unread@device-1 device-2' "$WORK/out"
expect "both in the list of devices" 0 - devices --json --alternatives a.img b.img
holds "the second one below the first" out_has '"device":"a.img","alternative_paths":\["b.img"\]'
expect "as a table" 0 - devices --alternatives a.img b.img
holds "the table of devices has a column for the other image" out_has ' a\.img +b\.img$'
expect "both in the overview" 0 - info --alternatives a.img b.img
holds "info shows the other image of the device" out_has '^ +another image, b.img$'
expect "their blocks" 4 . check --data --all --json --alternatives a.img b.img
holds "check reports blocks of the first image" out_has '"device":"a.img"'
holds "check reports blocks of the second image" out_has '"device":"b.img"'

expect "their places" 0 - map -o mirror,device --alternatives a.img b.img 13631488
is "map lists the place in both images" "$(cat "$WORK/out")" "1	a.img
2	b.img"

# Images in other forms: a partition of a disk, parts of a split image, qcow2.
zstd -q -d --sparse "$ROOT/fixtures/disks/gpt.img.zst" -o disk.img
dd if=b.img of=disk.img bs=1M seek=2 conv=notrunc,sparse status=none
split -b 50M -d -a 3 --numeric-suffixes=1 b.img part.
forms=(disk.img part.001)
if have qemu-img qemu-nbd; then
    qemu-img convert -O qcow2 b.img b.qcow2 && forms+=(b.qcow2)
else
    skip qemu-img "an image in qcow2 as an alternative"
fi
for form in "${forms[@]}"; do
    expect "with $form" 0 . sum -0 -v --alternatives --device "$form" a.img
    holds "$form as the other image completes the contents" sums_match single
    expect "$form in the list" 0 - \
        devices -q -o alternative_paths,device --alternatives --device "$form" a.img
    is "devices lists a.img and $form as two images" \
        "$(tr '\t' '\n' < "$WORK/out" | sort | tr '\n' ' ')" "a.img $form "
done

# With parity, all images are checked, too: each stripe of the second set has an error.
for number in 1 2 3; do
    cp --sparse=always "$BUILD/fixtures/raid5-3/dev$number.img" "p$number.img"
    cp --sparse=always "p$number.img" "q$number.img"
done
data=$("$PROGRAM" dump --tree csum -o key p?.img |
    sed -n 's/.*EXTENT_CSUM \([0-9]*\))/\1/p' | head -n 1)
expect "the places of data and parity" 0 - map -o kind,device --alternatives p?.img q?.img "$data"
is "map lists two copies and one parity in the two sets of images" \
    "$(cut -f 1 "$WORK/out" | tr '\n' ' ')" 'copy copy P '
first=$(sed -n 's/^copy\tq//p' "$WORK/out")
offset=$("$PROGRAM" map -o offset p?.img "$data" | head -n 1)
printf 'damage' | dd of="q$first" bs=1 seek="$offset" conv=notrunc status=none
expect "data in the second image" 4 . check --data --all --json --alternatives p?.img q?.img
holds "check finds damaged data in the second set of images" \
    out_has "\"offset\":$offset,\"mirror\":2,.*\"device\":\"q$first\""

# A map alone: zeros that were not read are lost, not the contents of a file.
printf '0x0 +\n0x0 0x40000000 -\n' > all.map
expect "nothing was read" 2 'according to all.map' sum --map all.map a.img
printf '0x0 +\n0x0 0x40000000 +\n' > none.map
expect "everything was read" 0 - sum --map none.map "$image"
printf '0x0 +\n0x0 0x2000 +\n0x1000 0x1000 +\n' > odd.map
expect "a map out of order" 0 'odd.map:3: ranges overlap' walk --map odd.map "$image"
holds "a map that is too short" grep -q 'odd.map ends at 8192, the image at ' "$WORK/err"
expect "too many maps" 2 '2 maps are given, but only 1 image' \
    sum --map none.map --map none.map "$image"
expect "no map" 2 'missing' sum --map missing "$image"
echo nonsense > bad.map
expect "another file" 2 'bad.map:1: neither' sum --map bad.map "$image"

# A hole in both is lost, and only that.
image=$BUILD/fixtures/laptop/dev1.img
recorded laptop sums0 | LC_ALL=C sort -z > sums
cp --sparse=always "$image" a.img && cp --sparse=always "$image" b.img
file=$("$PROGRAM" --size +16k "$image" | head -n 1)
logical=$(run_json extents --json "$image" "$file" | grep -o '"logical":[0-9]*' | head -n 1)
place=$("$PROGRAM" map -o offset --raw "$image" "${logical#*:}")
for copy in a.img b.img; do
    head -c 4096 /dev/zero | tr '\0' x |
        dd of="$copy" bs=4096 seek=$((place / 4096)) conv=notrunc status=none
done
expect "a sector lost in both" 1 "$file: .*both mirrors are bad" sum -0 --alternatives a.img b.img
# The number of lost files: those of several snapshots have the same hash.
lost() {
    LC_ALL=C comm -z -23 sums <(LC_ALL=C sort -z "$WORK/out") | cut -z -c -64 | sort -zu |
        tr -dc '\0' | wc -c
}
is "a sector lost in both images costs one file" "$(lost)" 1
truncate -s 1M b.img
expect "an image that is cut off" 1 . sum -0 --alternatives a.img b.img
is "an image that is cut off costs no other file" "$(lost)" 1

# What only the newer image has is never replaced in silence. Without a superblock, nobody knows
# whether an image is newer.
image=$BUILD/fixtures/data-shapes/dev1.img
cp --sparse=always "$image" new.img && cp --sparse=always "$image" old.img
for at in 65536 67108864; do
    dd if=/dev/zero of=new.img bs=4096 count=1 \
        seek=$((at / 4096)) conv=notrunc status=none
done
expect "no superblock" 1 \
    'new.img: no superblock, so its generation is unknown: generation [0-9]+ of old.img is' \
    ls --alternatives --device new.img old.img
expect "no superblock, given last" 1 'new.img: no superblock' \
    ls --alternatives --device old.img new.img

# An older image has other data where the newer one has zeros, or a file without checksums that
# cannot be read.
cp --sparse=always "$image" new.img
file=/without-checksums
generation=$(run_json super --json --super 0 "$image" | grep -oP '"generation":\K[0-9]+')
holds "old.img gets an older generation" change old.img super 72 8 $((generation - 1))
sector() { dd of="$1" bs=4096 seek=$((place / 4096)) count=1 conv=notrunc status=none; }
logical=$(run_json extents --json "$image" $file | grep -oP -m 1 '"logical":\K[0-9]+')
place=$("$PROGRAM" map -o offset --raw "$image" "$logical")
sector new.img < /dev/zero
head -c 4096 /dev/zero | tr '\0' x | sector old.img
"$PROGRAM" cat new.img $file > wanted
for order in 'new.img old.img' 'old.img new.img'; do
    # shellcheck disable=SC2086 # two words
    expect "zeros of the newer one" 0 \
        'old.img is older than new.img .*data without checksums are not read from it' \
        cat --alternatives --device $order $file
    holds "zeros of the newer image stay zeros" cmp -s "$WORK/out" wanted
done
printf '0x0 +\n0 %d +\n%d 4096 -\n%d 0x40000000 +\n' "$place" "$place" $((place + 4096)) > new.map
expect "a sector that was not read" 1 'without-checksums' \
    cat -vv --on-error=zero --alternatives --map new.map --device old.img new.img $file
holds "a sector that the newer image lacks is not read from the older one" cmp -s "$WORK/out" wanted
holds "an image of the same generation" change old.img super 72 8 "$generation"
expect "replaces it" 0 - cat --alternatives --map new.map --device old.img new.img $file
is "a sector is read from another image of the same generation" \
    "$(tr -dc x < "$WORK/out" | wc -c)" 4096
finish
