#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images and loop devices over them: mounted ones cause a warning, and output into an image is
# refused under either name.
set -uo pipefail
. "$(dirname "$0")/common.bash"

loops=()
cleanup() {
    mountpoint -q "$WORK/mnt" && umount "$WORK/mnt"
    [ ${#loops[@]} -eq 0 ] || losetup -d "${loops[@]}"
    rm -rf "$WORK"
}
trap cleanup EXIT

[ "$(id -u)" -eq 0 ] || { skip root "loop devices"; finish; }
have losetup mkfs.btrfs mountpoint || { skip "losetup and mkfs.btrfs" "loop devices"; finish; }

mkdir "$WORK/mnt"
for i in 1 2 3; do
    truncate -s 128M "$WORK/$i.img"
    loop=$(losetup -f --show "$WORK/$i.img" 2> /dev/null) ||
        { skip "a loop device" "block devices"; finish; }
    loops+=("$loop")
done
mkfs.btrfs -q -d raid1 -m raid1 "${loops[0]}" "${loops[1]}" 2> /dev/null ||
    { skip "a working mkfs.btrfs" "block devices"; finish; }
mkfs.btrfs -q "${loops[2]}" 2> /dev/null

# The guard: neither name of an image can be written to.
before=$(cksum < "$WORK/3.img")
for pair in "3.img ${loops[2]}" "${loops[2]} 3.img"; do
    cd "$WORK" || exit 1
    read -r image output <<< "$pair"
    "$PROGRAM" "$image" 1<> "$output" 2> "$WORK/err"
    is "stdout into $output is refused" $? 2
    holds "stdout into $output: the message says why" grep -q 'stdout goes to an input' "$WORK/err"
    "$PROGRAM" "$image" 2>> "$output" > /dev/null
    is "stderr into $output is refused" $? 2
    expect "a statedump into $output" 2 'is an input' --statedump "$output" "$image"
    expect "a trace into $output" 2 'is an input' \
        --insert "debug/trace@verify,file=$output" "$image"
    expect "a black box in $output" 2 'is an input' --blackbox "$output" "$image"
done
sync "${loops[2]}"
is "the image is as it was" "$(cksum < "$WORK/3.img")" "$before"
expect "another device is no image" 0 - --statedump "$WORK/dump" "$WORK/3.img"

# Not mounted: no warning. Mounted: one warning per device, also for the file below a loop device.
# The kernel would write to the devices, one after the other, while they are read.
expect "not mounted" 0 - "$WORK/1.img" "$WORK/2.img"
mount -o ro "${loops[0]}" "$WORK/mnt" 2> /dev/null ||
    { skip "a kernel with btrfs" "mounted devices"; finish; }
for image in "${loops[0]}" "$WORK/1.img"; do
    expect "mounted: walk $image" 0 "warning: $image is mounted at $WORK/mnt" "$image" \
        --device "${loops[1]}"
    expect "mounted: ls $image" 0 "warning: $image is mounted at $WORK/mnt" ls \
        --device "${loops[1]}" "$image" /
done
expect "mounted: the second device" 0 "warning: $WORK/2.img is mounted at $WORK/mnt" "$WORK/1.img" \
    "$WORK/2.img"
is "each mounted device gets one warning" "$(grep -c warning "$WORK/err")" 2
expect "mounted: quiet" 0 - -q "$WORK/1.img" "$WORK/2.img"
expect "another one is not mounted" 0 - "$WORK/3.img"
umount "$WORK/mnt"
expect "no longer mounted" 0 - "$WORK/1.img" "$WORK/2.img"
finish
