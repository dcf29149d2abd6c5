#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices that have diverged: they are not read together, and --side chooses one history. The
# fixture has both devices of a RAID1 after they were mounted without each other: dev1-left and
# dev2-right have made the same changes to files of other names, so only blocks differ; dev2-wide
# has made more changes, so that the roots differ, too.
set -uo pipefail
. "$(dirname "$0")/common.bash"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" diverged raid1-2 || exit 1
cd "$BUILD/fixtures/diverged" || exit 1

# diverged NAME A B PATTERN: both orders fail with the same message.
diverged() {
    expect "$1" 2 "$4" walk --device "$3" "$2"
    is "$1: walk prints no paths" "$(wc -c < "$WORK/out")" 0
    mv "$WORK/err" "$WORK/first"
    expect "$1, in the other order" 2 "$4" walk --device "$2" "$3"
    holds "$1: both orders print the same message" diff "$WORK/first" "$WORK/err"
}

# shows NAME SIDE LEFT RIGHT A B: the number of files of each kind.
shows() {
    expect "$1: side $2" 0 'is missing: the file system is degraded' walk --side "$2" \
        --device "$5" "$6"
    is "$1: side $2: files of the first device" "$(grep -c /dev1- "$WORK/out")" "$3"
    is "$1: side $2: files of the second device" "$(grep -c /dev2- "$WORK/out")" "$4"
    is "$1: side $2: common files" "$(grep -c /common- "$WORK/out")" 8
}

diverged "the same roots with other contents" dev1-left.img dev2-right.img \
    '^btrfs-walk: dev1-left\.img \(device 1, generation 10\) and dev2-right\.img \(device 2, '`
        `'generation 10\) have diverged: .*; --side 1 or --side 2 reads '
diverged "other roots of the same generation" dev1-left.img dev2-wide.img 'generation 10 differs'
diverged "another backup root" dev1-near.img dev2-wide.img \
    'device 1, generation 12.*device 2, generation 10.* their generation [89] differs'
diverged "an older root with other contents" dev1-near.img dev2-right.img 'generation 10 differs'
expect "info of diverged devices" 1 'have diverged' info dev1-near.img dev2-wide.img
holds "info names the side of the first device" \
    out_has '^Device 1: *diverged, --side 1, generation 12, .* dev1-near\.img$'
holds "info names the side of the second device" \
    out_has '^Device 2: *diverged, --side 2, generation 10, .* dev2-wide\.img$'
holds "info calls the state diverged" out_has '^State: *diverged'
expect "check of diverged devices" 12 'have diverged' check --device dev2-right.img dev1-left.img
holds "the finding has the advice" \
    out_has '^error devices-diverged: .* have diverged: .*; --side 1 or --side 2 reads '
shows "same" 1 3 0 dev1-left.img dev2-right.img
shows "same" 2 0 3 dev1-left.img dev2-right.img
shows "older" 1 5 0 dev1-near.img dev2-wide.img
shows "older" 2 0 450 dev2-wide.img dev1-near.img
expect "the contents of a side" 0 '' cat --side 2 --device dev2-right.img dev1-left.img \
    /dir/dev2-right-3-1
is "--side 2 has the contents of the second device" "$(cat "$WORK/out")" "dev2-right 3"
expect "a side does not have the files of the other one" 1 'dev1-left-1-1' cat --side 2 \
    --device dev2-right.img dev1-left.img /dir/dev1-left-1-1
expect "the other side is named with -v" 0 \
    'dev2-right\.img is not read: device 2 \(generation 10\) has diverged from device 1' \
    walk -v --side 1 --device dev2-right.img dev1-left.img
expect "no such device" 2 'no image is device 3, the side' walk --side 3 --device dev2.img dev1.img
expect "no device at all" 2 "the id of a device, from 1 on" walk --side 0 dev1.img
expect "check of diverged devices" 12 '; --side 1 or --side 2 reads' check dev1-left.img \
    --device dev2-right.img
holds "the finding names the sides" out_has '^error devices-diverged: .*; --side 1 or --side 2 '
expect "with --alternatives" 2 'one image of each; give --side without --alternatives' \
    walk --side 1 --alternatives --device dev2.img dev1.img

expect "rescue of diverged devices" 2 'have diverged' rescue --device dev2-wide.img dev1-near.img
holds "rescue counts the files of the first side" \
    out_has '^ +13 .* side of device 1, generation 12$'
holds "rescue counts the files of the second side" \
    out_has '^ +458 .* side of device 2, generation 10$'
holds "rescue prints a command with --side" out_has \
    '^  btrfs-walk rescue --side=2 dev1-near.img --device=dev2-wide.img$'
is "rescue --json has both sides" "$(run_json rescue --json --device dev2-wide.img dev1-near.img |
    grep -oE '"open_option":"[^"]*"|"verified_files":[0-9]*' | tr '\n' ' ')" \
    '"open_option":"--side 1" "verified_files":13 "open_option":"--side 2" "verified_files":458 '
expect "rescue of a side" 0 - rescue --side 2 --device dev2-wide.img dev1-near.img

expect "check of diverged devices" 12 'devices-diverged' check dev1-near.img dev2-right.img
holds "check reports diverged devices" \
    out_has '^error devices-diverged: dev1-near\.img .* have diverged'
expect "check --side" 0 '0 errors' check --side 2 dev1-near.img dev2-right.img
is "check --side: images of the other side" "$(grep -c image-unused "$WORK/out")" 0

# Nothing near the superblocks of these shows that they have diverged.
expect "check of an old device" 4 'devices-diverged .*; --side DEVID reads those that agree with' \
    check dev1-long.img dev2-wide.img
holds "check of an old device: the finding" out_has '^error devices-diverged: device 1 '`
    `'\(generation 16\) and device 2 \(generation 10\) have diverged in generation 8 or before: 1 '`
    `'.*; read only the devices that agree with one of them'
holds "check of an old device: its message has no option" test -z "$(grep -e --side "$WORK/out")"
expect "a report about an old device" 1 'damage: .*: the check found' \
    report -f "$WORK/page.html" dev1-long.img dev2-wide.img
holds "a report about an old device: the option" grep -q ': --side DEVID reads ' "$WORK/page.html"
expect "check --side of an old device" 0 ' 0 errors' check --side 2 dev1-long.img dev2-wide.img
expect "check of a stale device" 4 'checked: ' check dev1-left.img dev2.img
is "check of a stale device: no other finding" \
    "$(grep -cE 'devices-diverged|device-undecided|device-lost' "$WORK/out")" 0

# A lost write: on the stale device, a block of its own time has an older generation.
cp --sparse=always dev2.img "$WORK/lost.img"
leaf=$("$PROGRAM" dump --tree csum dev2.img --device dev1.img |
    sed -n 's/^leaf \([0-9]*\) items.*/\1/p' | head -n 1)
offset=$("$PROGRAM" map -b -o devid,offset --device dev1.img dev2.img "$leaf" | sed -n 's/^2\t//p')
PYTHONPATH=$ROOT/tests/support python3 - "$WORK/lost.img" "$offset" << 'END'
import sys
from crc32c import checksum
with open(sys.argv[1], "r+b") as image:
    image.seek(int(sys.argv[2]))
    block = bytearray(image.read(16384))
    block[80] -= 1
    block[:4] = checksum(block[32:])
    image.seek(int(sys.argv[2]))
    image.write(block)
END
expect "check of a lost write" 4 'checked: ' check dev1-left.img "$WORK/lost.img"
holds "check of a lost write: the finding" out_has \
    '^error device-lost-writes: 1 tree block of the trees of its generation, 7, is not on it'
is "check of a lost write: not diverged" "$(grep -c 'devices-diverged' "$WORK/out")" 0

# damage BYTENR...: destroys the mirrors of tree blocks on the stale device.
damage() {
    local bytenr offset
    for bytenr; do
        offset=$("$PROGRAM" map -b -o devid,offset --device dev1.img dev2.img "$bytenr" |
            sed -n 's/^2\t//p')
        dd if=/dev/zero of="$WORK/undecided.img" bs=4096 seek=$((offset / 4096)) count=1 \
            conv=notrunc status=none
    done
}

# Undecided: all copies that could be compared are damaged. First, the trees of the stale device
# can still be read, and have these blocks; then, they cannot be read either.
cp --sparse=always dev2.img "$WORK/undecided.img"
mapfile -t shared < <("$PROGRAM" dump dev1-left.img --device dev2.img 2> /dev/null |
    sed -nE 's/^(leaf|node) ([0-9]+) .* generation [1-7] .*/\2/p')
holds "there are blocks to compare" test "${#shared[@]}" -gt 1
damage "${shared[@]}"
expect "check without a block to compare" 4 'checked: ' check dev1-left.img "$WORK/undecided.img"
holds "check without a block to compare: the finding" out_has \
    '^warning device-undecided: no tree block of generation 7 or before has a copy on it that could'
damage "$("$PROGRAM" super dev2.img | sed -n 's/^root\t*//p' | head -n 1)"
expect "check without trees to decide" 4 'checked: ' check dev1-left.img "$WORK/undecided.img"
holds "check without trees to decide: the finding" out_has '^warning device-undecided: '`
    `"${#shared[@]} tree blocks on it differ, and its own trees cannot be read"
is "check of undecided devices: not diverged" "$(grep -c 'devices-diverged' "$WORK/out")" 0

# A seed device has an older generation, and nothing to compare.
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" sprout || exit 1
expect "check of a seed device" 0 ' 0 errors' check ../sprout/dev*.img
is "check of a seed device: no finding" \
    "$(grep -cE 'devices-diverged|device-(undecided|lost|stale)' "$WORK/out")" 0

# Both sides, compared with each other.
expect "diff of the sides" 0 . diff --side 1 --device dev2-right.img --other dev1-left.img \
    --other dev2-right.img --other-side 2 dev1-left.img
is "diff: files of the sides have the same inodes" \
    "$(grep -c '^R.*/dev1-left-.*/dev2-right-' "$WORK/out")" 3
is "no common file differs between the sides" "$(grep -c /common- "$WORK/out")" 0
expect "diff: a mixture" 2 '; --other-side 1 or --other-side 2 reads' \
    diff --other dev1-left.img --other dev2-right.img \
    dev1-left.img
expect "diff: --other-side without --other" 2 '\-\-other-side needs the images as --other' \
    diff --other-side 2 dev1.img / /

# Devices that have not diverged.
expect "a stale device" 0 'dev2\.img is stale: device 2 has generation 7, the newest is 10' \
    walk --device dev2.img dev1-left.img
is "a stale device: the newer files" "$(grep -c /dev1- "$WORK/out")" 3
expect "--side of a stale device" 0 'device 1 .*is missing' walk --side 2 --device dev2.img \
    dev1-left.img
is "--side of a stale device: the older files" "$(grep -c /dev1- "$WORK/out")" 0
for images in "dev1.img dev2.img" "../raid1-2/dev1.img ../raid1-2/dev2.img"; do
    read -r a b <<< "$images"
    expect "devices that agree: $a" 0 - walk --device "$b" "$a"
    cp "$WORK/out" "$WORK/first"
    expect "devices that agree, with --side: $a" 0 - walk --side 2 --device "$b" "$a"
    holds "--side does not change devices that agree: $a" diff "$WORK/first" "$WORK/out"
done
finish
