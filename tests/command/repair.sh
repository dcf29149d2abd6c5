#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` and --patch: the repaired file system has no errors, its files are those of the
# undamaged one, and no image changes. tests/kernel/repair.py mounts the results.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup bad-copy-dup bad-copy-raid1 bad-copy-raid5 \
    bad-copy-raid6 raid6-4 zoned superblock-copy-lost superblocks-gone past || exit 1

# status NAME STATUS COMMAND...
status() {
    local name=$1 expected=$2
    shift 2
    timeout 60 "$@" > "$WORK/out" 2> "$WORK/err"
    is "$name: status $expected" $? "$expected"
}

# repaired NAME WORD...: repairs with these options, and checks the result through its overlays.
repaired() {
    local name=$1 before
    shift
    local images=("$WORK/$name"/*.img)
    before=$(written "${images[@]}")
    rm -rf "$WORK/fixed"
    status "$name: repair" 0 "$PROGRAM" repair "$@" -C "$WORK/fixed" "${images[@]}"
    is "$name: repair does not change the images" "$(written "${images[@]}")" "$before"
    patches=()
    for overlay in "$WORK/fixed"/*.qcow2; do patches+=(--patch "$overlay"); done
    status "$name: check" 0 "$PROGRAM" check --data "${patches[@]}" "${images[@]}"
}

# Each copy of these has damage; the list of sums is in the fixture.
for name in bad-copy-dup bad-copy-raid1 bad-copy-raid5 bad-copy-raid6; do
    mkdir "$WORK/$name"
    cp --sparse=always "$fixtures/$name"/dev*.img "$WORK/$name"
    status "$name: is damaged" 4 "$PROGRAM" check --data "$WORK/$name"/*.img
    repaired "$name" --data
    is "$name: the repaired files have the hashes of the image" \
        "$("$PROGRAM" sum "${patches[@]}" "$WORK/$name"/*.img 2> "$WORK/err" | cksum)" \
        "$("$PROGRAM" sum "$WORK/$name"/*.img 2> /dev/null | cksum)"
    is "$name: the repaired image causes no messages" "$(cat "$WORK/err")" ""
done

# P and Q are older than a block of their row, and its neighbour is lost. CRC-32C is linear, so the
# neighbour that P gives has a right checksum, and a wrong generation.
if have python3; then
    mkdir "$WORK/old-parity"
    cp --sparse=always "$fixtures"/raid6-4/dev*.img "$WORK/old-parity"
    python3 -B - "$ROOT" "$PROGRAM" "$WORK"/old-parity/*.img << 'EOF'
import json, subprocess, sys
sys.path.append(f'{sys.argv[1]}/tests/support')
from crc32c import checksum

images = sys.argv[3:]
def block(address):
    output = subprocess.check_output([sys.argv[2], 'map', '--json', *images, address])
    place = json.loads(output.splitlines()[0])
    file = open(place['device'], 'r+b')
    file.seek(place['offset'])
    return file

file = block('39059456')
old = bytearray(file.read(16384))
old[80] ^= 1
file.seek(-16384, 1)
file.write(checksum(old[32:]) + old[4:])
block('39124992').write(bytes(16384))
EOF
    repaired old-parity
    is "old parity: the neighbour is as before" \
        "$("$PROGRAM" dump "${patches[@]}" --block 39124992 "$WORK"/old-parity/*.img)" \
        "$("$PROGRAM" dump --block 39124992 "$fixtures"/raid6-4/*.img)"

    # The items of the block that P gives are wrong; its checksum and its header are right.
    mkdir "$WORK/old-p"
    cp --sparse=always "$fixtures"/raid6-4/dev*.img "$WORK/old-p"
    python3 -B - "$ROOT" "$PROGRAM" "$WORK"/old-p/*.img << 'EOF'
import json, subprocess, sys
sys.path.append(f'{sys.argv[1]}/tests/support')
from crc32c import checksum

images = sys.argv[3:]
command = [sys.argv[2], 'map', '--json', *images, '39124992']
places = [json.loads(line) for line in subprocess.check_output(command).splitlines()]
copy, parity, _ = places
with open(copy['device'], 'r+b') as file:
    file.seek(copy['offset'])
    right = file.read(16384)
    file.seek(copy['offset'])
    file.write(bytes(16384))
wrong = bytearray(right)
wrong[118] ^= 0x43  # the place of the first item
wrong[:4] = checksum(wrong[32:])
with open(parity['device'], 'r+b') as file:
    file.seek(parity['offset'])
    old = file.read(16384)
    file.seek(parity['offset'])
    file.write(bytes(a ^ b ^ c for a, b, c in zip(old, right, wrong)))
EOF
    repaired old-p
    is "wrong items in the block that P gives: Q is right" \
        "$("$PROGRAM" dump "${patches[@]}" --block 39124992 "$WORK"/old-p/*.img)" \
        "$("$PROGRAM" dump --block 39124992 "$fixtures"/raid6-4/*.img)"
else
    skip python3 "old parity"
fi

# If only one of two adjacent bad sectors is repaired, the other one is no new damage, and parity
# still gives it.
mkdir "$WORK/row"
cp --sparse=always "$fixtures"/raid6-4/dev*.img "$WORK/row"
{
    "$PROGRAM" map -o device,offset "$WORK"/row/*.img 154271744 | head -n 1
    "$PROGRAM" map -o device,offset "$WORK"/row/*.img 154275840 | head -n 2 # and P
} > "$WORK/places"
while IFS=$'\t' read -r path offset; do
    dd if="$PROGRAM" of="$path" bs=4K skip=1 seek=$((offset / 4096)) count=1 conv=notrunc \
        2> /dev/null
done < "$WORK/places"
rm -rf "$WORK/fixed"
status "one of two bad sectors" 1 "$PROGRAM" repair --data --id 1 -C "$WORK/fixed" "$WORK"/row/*.img
patches=()
for overlay in "$WORK/fixed"/*.qcow2; do patches+=(--patch "$overlay"); done
is "one of two bad sectors: all files can be read" \
    "$("$PROGRAM" sum "${patches[@]}" "$WORK"/row/*.img 2>&1 | grep -v note: | cksum)" \
    "$("$PROGRAM" sum "$fixtures"/raid6-4/*.img | cksum)"

# A bad range of a disk is one change of tree blocks, and one of data.
mkdir "$WORK/range"
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/range"
dd if=/dev/zero of="$WORK/range/dev1.img" bs=4K seek=9524 count=104 conv=notrunc 2> /dev/null
dd if=/dev/zero of="$WORK/range/dev1.img" bs=4K seek=25856 count=5 conv=notrunc 2> /dev/null
is "a bad range: neighbours are one change" \
    "$("$PROGRAM" repair --data -o offset,length,what "$WORK/range/dev1.img" 2> /dev/null)" \
    $'39010304\t425984\ttree blocks\n105906176\t20480\tsectors of data'
repaired range --data

# Both mirrors of all tree blocks are bad, but have lost different pages. With the map file of a
# copy by ddrescue, these pages cannot be read.
mkdir "$WORK/pages"
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/pages"
lost=$(for ((page = 0; page < 104; page++)); do
    echo "$((38830080 + 4096 * (page + page % 2 * 8192)))"
done)
for place in $lost; do
    dd if=/dev/zero of="$WORK/pages/dev1.img" bs=4K seek=$((place / 4096)) count=1 conv=notrunc \
        2> /dev/null
done
expect "the pages of both mirrors are joined" 0 'subvolume 5 .*: joined from its bad mirrors' \
    sum "$WORK/pages/dev1.img"
is "joined mirrors show all files" "$(cksum < "$WORK/out")" \
    "$("$PROGRAM" sum "$fixtures/dup/dev1.img" | cksum)"
{
    echo '0 + 1'
    end=0
    for place in $(sort -n <<< "$lost"); do
        echo "$end $((place - end)) +"$'\n'"$place 4096 -"
        end=$((place + 4096))
    done
    echo "$end $((268435456 - end)) +"
} > "$WORK/pages.map"
awk 'BEGIN {
    print "0 + 1"
    for (page = 0; page < 208; page++) {
        place = page < 104 ? 38830080 + 4096 * page : 72385024 + 4096 * (page - 104)
        printf "%d %d +\n%d 512 -\n", end, place - end, place
        end = place + 512
    }
    printf "%d %d +\n", end, 268435456 - end
}' > "$WORK/sectors.map"
expect "pages that cannot be read are replaced by those of the other mirror" 0 'joined' \
    sum --map "$WORK/pages.map" "$WORK/pages/dev1.img"
is "with a map file, joined mirrors show all files" "$(cksum < "$WORK/out")" \
    "$("$PROGRAM" sum "$fixtures/dup/dev1.img" | cksum)"
expect "sectors that cannot be read are replaced by those of the other mirror" 0 'joined' \
    sum --map "$WORK/sectors.map" "$fixtures/dup/dev1.img"
is "with a map of sectors, joined mirrors show all files" "$(cksum < "$WORK/out")" \
    "$("$PROGRAM" sum "$fixtures/dup/dev1.img" | cksum)"
expect "check: joined mirrors are repairable" 4 ' errors \([0-9]+ repairable' \
    check "$WORK/pages/dev1.img"
is "check: every error of joined blocks is repairable" \
    "$(grep '^error' "$WORK/out" | grep -vc repairable)" 0
repaired pages

# All files are read before and after the repair.
repaired bad-copy-raid1 --verify

# A lost superblock copy: the change, its class and proof; the overlay names its image.
mkdir "$WORK/super"
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/super"
image=$WORK/super/dev1.img
dd if=/dev/zero of="$image" bs=4096 seek=16 count=1 conv=notrunc 2> /dev/null
is "the plan copies the first superblock" \
    "$("$PROGRAM" repair -o class_name,devid,offset,length,what "$image" 2> /dev/null)" \
    $'identical\t1\t65536\t4096\tcopy of the superblock'
status "a plan that repairs everything" 0 "$PROGRAM" repair "$image"
"$PROGRAM" repair -f "$WORK/full.qcow2" "$image" > /dev/full 2> "$WORK/err"
is "a full stdout" $? 1
repaired super
same_image "$image" "$fixtures/plain/dev1.img" 2> /dev/null && fail "the image was not damaged"
status "through the overlay: walk" 0 "$PROGRAM" --patch "$WORK/fixed/devid-1.qcow2" "$image"
(cd "$WORK" && "$PROGRAM" repair -f one.qcow2 super/dev1.img > /dev/null 2>&1)
holds "the overlay has a relative backing file" grep -qa 'super/dev1.img' "$WORK/one.qcow2"
if have qemu-img; then
    holds "qemu-img converts the overlay" qemu-img convert -O raw "$WORK/one.qcow2" "$WORK/one.img"
    holds "the converted overlay is the undamaged image" \
        same_image "$WORK/one.img" "$fixtures/plain/dev1.img"
else
    skip qemu-img "conversion"
fi

# Only one of many changes: the other faults remain.
rm -rf "$WORK/fixed"
damaged=("$WORK"/bad-copy-raid1/*.img)
status "one change" 1 "$PROGRAM" repair --data --id 1 -C "$WORK/fixed" "${damaged[@]}"
holds "a message counts the findings that remain" \
    grep -q "do not concern [0-9]* findings* of 'check'" "$WORK/err"
status "one change: check" 4 "$PROGRAM" check --data --patch "$WORK/fixed/devid-1.qcow2" \
    --patch "$WORK/fixed/devid-2.qcow2" "${damaged[@]}"
status "an existing overlay" 2 "$PROGRAM" repair --data -C "$WORK/fixed" "${damaged[@]}"
holds "an existing overlay is not replaced" grep -q 'devid-1.qcow2 exists' "$WORK/err"

# The names of results are looked up before the file system is checked, let alone copied.
mkdir "$WORK/taken"
touch "$WORK/taken/devid-2.img" "$WORK/taken/devid-1.qcow2.part"
for format in raw:devid-2.img qcow2:devid-1.qcow2.part; do
    "$PROGRAM" repair --data --format "${format%:*}" -C "$WORK/taken" "${damaged[@]}" \
        > "$WORK/out" 2> "$WORK/err"
    is "a name is taken: no plan for ${format%:*}" "$(cat "$WORK/out")" ""
    holds "a name is taken: it is ${format#*:}" grep -q "${format#*:}.* not replaced" "$WORK/err"
done

# Errors of the outputs: the status says so, although the result is right; and no overlay is left
# that lacks changes.
status "the plan goes to a full disk" 1 \
    bash -c '"$@" > /dev/full' - "$PROGRAM" repair -f "$WORK/plan.qcow2" "$image"
holds "a message names stdout" grep -q 'cannot write to stdout: No space left' "$WORK/err"
holds "the overlay is complete" "$PROGRAM" check --patch "$WORK/plan.qcow2" "$image"
status "an overlay is cut off" 1 bash -c 'ulimit -f 100; "$@"' - \
    "$PROGRAM" repair --data -C "$WORK/short" "${damaged[@]}"
holds "a message names the overlay" grep -q 'cannot write to .*/devid-1.qcow2' "$WORK/err"
is "no incomplete overlay is left" "$(ls "$WORK/short")" ""

# A sparse copy: of the only device, and of several.
status "a copy" 0 "$PROGRAM" repair --format raw -f "$WORK/one-raw.img" "$image"
holds "a copy: its size is printed" grep -q 'copy of device 1 will take' "$WORK/err"
holds "the repaired copy is the undamaged image" \
    same_image "$WORK/one-raw.img" "$fixtures/plain/dev1.img"
rm -rf "$WORK/fixed"
status "copies" 0 "$PROGRAM" repair --data --format raw -C "$WORK/fixed" \
    "$WORK"/bad-copy-raid1/*.img
status "copies: check" 0 "$PROGRAM" check --data "$WORK/fixed"/devid-1.img "$WORK/fixed"/devid-2.img
status "--format raw without a file" 2 "$PROGRAM" repair --format raw "$image"

damaged=$WORK/damaged.img
# Containers: changes are mapped down to the file, or a copy contains the device.
if have python3; then
    cp --sparse=always "$fixtures/plain/dev1.img" "$damaged"
    dd if=/dev/zero of="$damaged" bs=4096 seek=16384 count=1 conv=notrunc status=none
    mkdir "$WORK/lvm" "$WORK/partition"
    printf 'lvm\t%s\t%s\tkind=linear\n' "$damaged" "$WORK/lvm/pv.img" |
        python3 "$ROOT/tests/support/wrap.py" > /dev/null
    repaired lvm
    truncate -s 160M "$WORK/partition/disk.img"
    printf '\0\0\0\0\x83\0\0\0\0\x08\0\0\0\0\x04\0' |
        dd of="$WORK/partition/disk.img" bs=1 seek=446 conv=notrunc status=none
    printf '\x55\xaa' | dd of="$WORK/partition/disk.img" bs=1 seek=510 conv=notrunc status=none
    dd if="$damaged" of="$WORK/partition/disk.img" bs=1M seek=1 conv=notrunc,sparse status=none
    repaired partition
    status "--image-offset" 0 "$PROGRAM" repair --image-offset 1M -f "$WORK/offset.qcow2" \
        "$WORK/partition/disk.img"
    status "--image-offset: check" 0 "$PROGRAM" check --image-offset 1M \
        --patch "$WORK/offset.qcow2" "$WORK/partition/disk.img"
    printf 'lvm\t%s\t%s\t%s\tkind=raid1\n' "$damaged" "$WORK/m1.img" "$WORK/m2.img" |
        python3 "$ROOT/tests/support/wrap.py" > /dev/null
    status "a mirror" 3 "$PROGRAM" repair -f "$WORK/m.qcow2" "$WORK/m1.img" "$WORK/m2.img"
    holds "a mirror: the way out" grep -q -e "; --format raw writes an image" "$WORK/err"
    status "a mirror: a copy" 0 "$PROGRAM" repair --format raw -f "$WORK/m.img" "$WORK/m1.img" \
        "$WORK/m2.img"
    holds "a copy of a mirror is the undamaged image" \
        same_image "$WORK/m.img" "$fixtures/plain/dev1.img"
else
    skip python3 containers
fi
# A qcow2 image: the overlay is one of its contents. A split image has no overlay.
if have qemu-img && [ -e "$damaged" ]; then
    qemu-img convert -O qcow2 "$damaged" "$WORK/q.qcow2"
    before=$(written "$WORK/q.qcow2")
    status "a qcow2 image" 0 "$PROGRAM" repair -f "$WORK/above.qcow2" "$WORK/q.qcow2"
    is "a qcow2 image: unchanged" "$(written "$WORK/q.qcow2")" "$before"
    status "a qcow2 image: check" 0 "$PROGRAM" check --patch "$WORK/above.qcow2" "$WORK/q.qcow2"
    holds "a qcow2 image: converted" qemu-img convert -O raw "$WORK/above.qcow2" "$WORK/one.img"
    holds "a qcow2 image: its contents" same_image "$WORK/one.img" "$fixtures/plain/dev1.img"
    qemu-img convert -O vmdk "$damaged" "$WORK/q.vmdk"
    status "another format" 3 "$PROGRAM" repair -f "$WORK/c.qcow2" "$WORK/q.vmdk"
    holds "another format: the way out" grep -q -e "; --format raw writes an image" "$WORK/err"
else
    skip qemu-img "a qcow2 image"
fi
if [ -e "$damaged" ]; then
    split -b 30M -d -a 3 --numeric-suffixes=1 "$damaged" "$WORK/split.img."
    status "a split image" 3 "$PROGRAM" repair -f "$WORK/c.qcow2" "$WORK/split.img.001"
    holds "a split image: the reason and the way out" \
        grep -q "it lies in several files; --format raw writes an image of it" "$WORK/err"
    status "a split image: a copy" 0 "$PROGRAM" repair --format raw -f "$WORK/joined.img" \
        "$WORK/split.img.001"
    holds "a split image: its contents" same_image "$WORK/joined.img" "$fixtures/plain/dev1.img"
    rm -f "$WORK"/split.img.*
fi
if have zstd && [ -e "$damaged" ]; then
    zstd -q "$damaged" -o "$WORK/damaged.img.zst"
    status "a compressed image" 3 "$PROGRAM" repair -f "$WORK/c.qcow2" "$WORK/damaged.img.zst"
    status "a compressed image: a copy" 0 "$PROGRAM" repair --format raw -f "$WORK/c.img" \
        "$WORK/damaged.img.zst"
    holds "a compressed image: its contents" same_image "$WORK/c.img" "$fixtures/plain/dev1.img"
fi

# All superblocks are lost: those of the newest generation whose trees are complete.
mkdir "$WORK/gone"
cp --sparse=always "$fixtures/superblocks-gone/dev1.img" "$WORK/gone"
repaired gone

# No superblock, and no complete generation to make one from: other changes do not help.
lost=$WORK/lost.img
cp --sparse=always "$fixtures/dup/dev1.img" "$lost"
mapfile -t leaves < <("$PROGRAM" dump --tree fs "$lost" | awk '/^leaf .* items/ { print $2 }')
bytes=$("$PROGRAM" map -o offset "$lost" "${leaves[1]}+16384"
    "$PROGRAM" map -o offset "$lost" "${leaves[2]}+16384" | head -n 1)
for byte in 65536 67108864 $bytes; do
    dd if=/dev/zero of="$lost" bs=4096 seek=$((byte / 4096)) count=1 conv=notrunc status=none
done
status "no superblock, no complete generation: the plan" 1 \
    "$PROGRAM" repair -q -o class_name,chosen "$lost"
is "the only change fails" "$(cat "$WORK/out")" $'identical\t0'
status "and nothing is written" 1 "$PROGRAM" repair -f "$WORK/none.qcow2" "$lost"
holds "the message of that" grep -q 'all chosen changes failed' "$WORK/err"

# The current root tree is lost: an older generation, only if the user allows it.
mkdir "$WORK/rolled"
image=$WORK/rolled/dev1.img
cp --sparse=always "$fixtures/past/dev1.img" "$image"
root=$("$PROGRAM" roots -q -o generation,tree_root "$image" | sed -n 's/^20\t//p')
dd if=/dev/zero of="$image" bs=4096 seek=$((root / 4096)) count=1 conv=notrunc status=none
is "the plan offers three older generations, and none is chosen without --allow" \
    "$("$PROGRAM" repair -q -o class_name,chosen "$image" 2> /dev/null)" \
    $'rolled-back\t0\nrolled-back\t0\nrolled-back\t0'
"$PROGRAM" repair -q -o loss "$image" 2> /dev/null > "$WORK/out"
holds "the plan describes what an older generation loses" \
    grep -q '^1 transaction after 2026-.*; no readable file has changed since then' "$WORK/out"
status "no generation was chosen" 1 "$PROGRAM" repair -q -f "$WORK/none.qcow2" "$image"
holds "no generation was chosen: -q does not hide that" \
    grep -q '^btrfs-walk: [^ ]*: no change was chosen, so nothing is written' "$WORK/err"
repaired rolled --allow rolled-back
is "the repaired file system has the older generation" \
    "$("$PROGRAM" info "${patches[@]}" -o generation "$image" 2> /dev/null)" 19
is "every sector of it" "$("$PROGRAM" repair -q --verify -o proof "$image" 2> /dev/null |
    sort -u)" 'the check has read all its blocks and data, without an error'
status "two generations" 2 "$PROGRAM" repair --id 1,2 -f "$WORK/none.qcow2" "$image"
repaired rolled --id 2

# What is lost for good: the status of the plan, and of an overlay with another change.
image=$WORK/rest.img
cp --sparse=always "$fixtures/dup/dev1.img" "$image"
for byte in $(head -n 2 <<< "$bytes"); do
    dd if=/dev/zero of="$image" bs=4096 seek=$((byte / 4096)) count=1 conv=notrunc status=none
done
status "a plan that leaves something" 1 "$PROGRAM" repair "$image"
status "nothing that can be repaired" 1 "$PROGRAM" repair -q -f "$WORK/none.qcow2" "$image"
holds "-q does not hide that nothing is written" \
    grep -q "does not repair [0-9]* findings* of 'check', and nothing is written" "$WORK/err"
holds "nothing that can be repaired: nothing is written" test ! -e "$WORK/none.qcow2"
dd if=/dev/zero of="$image" bs=4096 seek=16 count=1 conv=notrunc status=none
status "a repair that leaves something" 1 "$PROGRAM" repair -f "$WORK/rest.qcow2" "$image"
status "its result" 4 "$PROGRAM" check --patch "$WORK/rest.qcow2" "$image"

# A device that is larger than its image, and fields of superblocks that contradict the trees.
mkdir "$WORK/cut"
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/cut"
truncate -s $(((250 << 20) + 100)) "$WORK/cut/dev1.img" # not a multiple of the sector size
repaired cut
is "the repaired device has the size of the whole sectors in its image" \
    "$("$PROGRAM" devices "${patches[@]}" -o size "$WORK/cut/dev1.img" 2> /dev/null)" 262144000
rm -rf "$WORK/cut/dev1.img"
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/cut"
truncate -s 40M "$WORK/cut/dev1.img"
is "a cut through a chunk" \
    "$("$PROGRAM" repair -o what "$WORK/cut/dev1.img" 2> "$WORK/err" | grep -c 'tree block')" 0
holds "a cut through a chunk: why it stays" grep -q 'and are not taken out' "$WORK/err"

# The end of the image is in a chunk without contents, which is taken out.
if have mkfs.btrfs; then
    mkdir "$WORK/empty"
    truncate -s 256M "$WORK/empty/dev1.img"
    mkfs.btrfs -q -d dup -m dup "$WORK/empty/dev1.img" > "$WORK/out" 2>&1
    is "an empty chunk: before" \
        "$("$PROGRAM" chunks -q "$WORK/empty/dev1.img" | grep -c 'Data *DUP *0')" 1
    truncate -s 200M "$WORK/empty/dev1.img"
    repaired empty
    is "an empty chunk: after" "$("$PROGRAM" chunks -q "${patches[@]}" "$WORK/empty/dev1.img" |
        grep -c Data)" 0
else
    skip mkfs.btrfs "a cut through an empty chunk"
fi

# edit_super NAME OFFSET LENGTH VALUE: changes a number in all superblocks of plain.
edit_super() {
    mkdir "$WORK/$1"
    cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/$1"
    (cd "$ROOT/tests/support" && python3 -B - "$WORK/$1/dev1.img" "${@:2}" << 'END'
import sys
from crc32c import checksum
offset, length, value = (int(word, 0) for word in sys.argv[2:])
with open(sys.argv[1], "r+b") as image:
    for place in 65536, 64 << 20:
        image.seek(place)
        block = bytearray(image.read(4096))
        block[offset:offset + length] = value.to_bytes(length, "little")
        block[:4] = checksum(bytes(block[32:]))
        image.seek(place)
        image.write(block)
END
    ) || exit 1
}
if have python3; then
    edit_super error-flag 56 8 5
    repaired error-flag
    edit_super uuid-flag 56 8 0x1000000001
    repaired uuid-flag
    edit_super device-size 209 8 99991552
    repaired device-size
    edit_super system-chunk 868 1 77
    repaired system-chunk
    edit_super unknown-flag 56 8 0x4000000001 # a conversion
    change "$WORK/unknown-flag/dev1.img" super 180 8 11
    status "a change that cannot be ended" 1 "$PROGRAM" repair -f "$WORK/none.qcow2" \
        "$WORK/unknown-flag/dev1.img"
else
    skip python3 "fields of superblocks"
fi

# A wrong number or class; nothing to do; an overlay of another image.
image=$WORK/super/dev1.img
status "an unknown number" 2 "$PROGRAM" repair --id 7 -f "$WORK/none.qcow2" "$image"
status "no number" 2 "$PROGRAM" repair --id 1,x "$image"
holds "no number: an example" grep -q -e '--id needs numbers' "$WORK/err"
status "an unknown class" 2 "$PROGRAM" repair --allow lost -f "$WORK/none.qcow2" "$image"
status "nothing to change" 0 "$PROGRAM" repair -f "$WORK/none.qcow2" "$fixtures/plain/dev1.img"
holds "says that nothing is to repair" grep -q 'nothing to repair' "$WORK/err"
is "a healthy image has an empty plan" \
    "$(run_json repair --json "$fixtures/plain/dev1.img" 2> /dev/null)" ""
holds "an image without changes gets no overlay" test ! -e "$WORK/none.qcow2"
status "another image" 2 "$PROGRAM" --patch "$WORK/one.qcow2" "$fixtures/dup/dev1.img"
head -c 300 "$WORK/one.qcow2" > "$WORK/cut.qcow2"
status "an overlay that is cut off" 2 "$PROGRAM" --patch "$WORK/cut.qcow2" "$image"

# What cannot be repaired.
status "zoned" 3 "$PROGRAM" repair "$fixtures"/zoned/dev1.img
finish
