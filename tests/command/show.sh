#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# show: many images at once, in any order: which file systems they are, and their states. One bad
# image never costs the others.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "show"; finish; fi

names='plain mixed raid1-2 raid5-3 sprout stale-raid1-1 log-tree lost-tree-root superblock-lost
    metadata-uuid-2 system-suse system-ubuntu diverged'
# shellcheck disable=SC2086 # several words
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop $names || exit 1
cd "$WORK" || exit 1
for name in $names; do
    for image in "$BUILD/fixtures/$name"/dev*.img; do
        file=${image##*/dev}
        [ "$name" = diverged ] || ln -s "$image" "$name.${file%.img}"
    done
done

# row PYTHON...: the rows of the JSON in `out`, as `rows`; `one(IMAGE)` is the only row with it.
row() {
    holds "$1" python3 -c '
import json, sys
rows = [json.loads(line) for line in open("out")]
def one(image):
    found = [row for row in rows if image in row["image_paths"]]
    assert len(found) == 1, found
    return found[0]
assert '"$1" out
}

# Devices in any order, mixed with what is not a btrfs.
truncate -s 64M nothing
: > none
head -c 1M /dev/urandom > junk
printf 'IHFS' > short
mkdir folder
expect "many images" 1 'stale' show --json raid5-3.2 plain.1 folder raid1-2.2 nothing log-tree.1 \
    raid5-3.1 junk absent lost-tree-root.1 stale-raid1-1.1 sprout.1 none raid1-2.1 \
    superblock-lost.1 stale-raid1-1.2 metadata-uuid-2.2 system-suse.1 sprout.2 raid5-3.3 \
    metadata-uuid-2.1 system-ubuntu.1
row 'len(rows) == 16'
row 'one("raid5-3.1")["image_paths"] == ["raid5-3.2", "raid5-3.1", "raid5-3.3"]'
row '[one(name)["state"] for name in ("raid5-3.1", "plain.1", "raid1-2.1", "log-tree.1", "sprout.1",
     "metadata-uuid-2.1", "system-suse.1")] == ["readable"] * 7'
row 'one("sprout.1") == one("sprout.2")'
row 'one("stale-raid1-1.1")["state"] == "degraded"'
row 'one("stale-raid1-1.1")["stale_devices"] == 1'
row 'one("log-tree.1")["log_tree"] and "a mount replays its log" in one("log-tree.1")["remarks"]'
row 'one("lost-tree-root.1")["state"] == "damaged"'
row 'one("superblock-lost.1")["state"] == "unmountable"'
row '"superblock copy 0" in one("superblock-lost.1")["mount_error"]'
row 'one("system-suse.1")["system"] == "openSUSE Tumbleweed"'
row 'one("system-ubuntu.1")["label"] == "laptop"'
row '(one("absent")["state"], one("folder")["state"]) == ("unreadable", "unreadable")'
row '"No such file" in one("absent")["remarks"][0]'
row '[one(name)["state"] for name in ("nothing", "none", "junk")] == ["empty", "empty", "unknown"]'
row 'rows[0]["image_paths"][0] == "raid5-3.2" and rows[-1]["image_paths"] == ["system-ubuntu.1"]'
row '[d["devid"] for d in one("raid5-3.1")["devices"]] == [1, 2, 3]'

expect "a table" 0 - show plain.1 raid1-2.1 raid1-2.2
is "its lines" "$(wc -l < out)" 3
holds "its columns" out_has '^STATE +LABEL +FSID +SIZE +USED +DEVICES +CONTENTS +IMAGES$'
size='256.00MiB +[0-9.]+KiB'
holds "a line" out_has "^readable +- +[0-9a-f-]{36} +$size +2 of 2 +- +raid1-2.1, raid1-2.2\$"
expect "numbers" 0 - show --raw plain.1
holds "in bytes" out_has ' 134217728 '
expect "columns" 0 - show -o state,size plain.1 mixed.1
is "two of them" "$(cut -f 1 out | sort -u)" readable

# Missing devices, and the statuses.
expect "a missing device" 0 'device 1 .* is missing' show --json raid1-2.2
row '(rows[0]["state"], rows[0]["device_count"], rows[0]["missing_devices"]) == ("degraded", 2, 1)'
row 'rows[0]["remarks"] == ["1 of 2 devices missing"]'
expect "two of three missing" 1 'missing|chunk' show --json raid5-3.1
row 'rows[0]["state"] in ("incomplete", "damaged") and rows[0]["missing_devices"] == 2'
expect "nothing to show" 2 'no image given' show
expect "no btrfs" 2 - show junk
expect "nothing that exists" 2 - show absent
holds "a line for it" out_has '^unreadable .* absent: cannot open it: No such file or directory'
for left_out in folder absent; do
    expect "one image, and what is none" 1 - show plain.1 $left_out
    holds "the image is shown" out_has '^readable .* plain.1$'
done
expect "no choice" 2 'all partitions and volumes are shown' show --partition 1 plain.1

# Copies of devices: the newest first, older ones in their own lines.
cp --sparse=always plain.1 copy
expect "two copies" 0 - show --json plain.1 copy
row 'len(rows) == 2 and "original_device" not in rows[0]'
row 'rows[1]["original_device"] == "plain.1"'
row 'rows[1]["state"] == "readable"'
holds "an older copy" change copy copy 0 72 8 5
holds "both superblocks of it" change copy copy 1 72 8 5
expect "the older first" 1 . show --json copy plain.1
row 'rows[0]["image_paths"] == ["plain.1"] and rows[1]["original_device"] == "plain.1"'
row 'any(r.startswith("generation 5 of the same device") for r in rows[1]["remarks"])'
expect "both devices of a RAID1 twice" 0 - show --json raid1-2.1 raid1-2.2 \
    "$BUILD/fixtures/raid1-2/dev1.img" "$BUILD/fixtures/raid1-2/dev2.img"
row '[len(row["image_paths"]) for row in rows] == [2, 2]'
row 'rows[1]["original_device"] == "raid1-2.1"'

# A disk: all its partitions. A btrfs of two devices on two disks.
zstd -q -d "$ROOT/tests/data/containers/l2.img.zst" -o luks
printf secret > key
disk one plain.1 raid1-2.1 luks nothing
disk two raid1-2.2 system-suse.1
expect "two disks" 1 - show --json one two
row 'len(rows) == 5'
row 'one("one (MBR partition 2)")["image_paths"][1] == "two (MBR partition 1)"'
row 'one("one (MBR partition 1)")["fsid"] != one("two (MBR partition 2)")["fsid"]'
row 'one("one (MBR partition 3)")["state"] == "unreadable"'
row '"encrypted" in one("one (MBR partition 3)")["remarks"][0]'
row 'one("one (MBR partition 4)")["state"] == "empty"'
expect "with the key" 0 - show --json --key-file key two one
row 'one("one (MBR partition 3 > LUKS2)")["state"] == "readable"'
expect "the same device on a disk and beside it" 0 'device 2 .* is missing' \
    show --json --key-file key one plain.1
row '[row.get("original_device") for row in rows].count("one (MBR partition 1)") == 1'

# A send stream is read like a btrfs.
"$PROGRAM" send "$BUILD/fixtures/laptop/dev1.img" @home > home.stream
expect "a send stream" 0 - show --json home.stream
row 'one("home.stream")["state"] == "stream"'

# Containers of several images.
bare=$BUILD/fixtures/mixed/dev1.img
wrap() { # wrap KIND TARGET... [NAME=VALUE...]: puts $bare into a container.
    local IFS=$'\t'
    printf '%s\n' "$1$IFS$bare$IFS${*:2}" | python3 "$ROOT/tests/support/wrap.py" > answer
    is "a container: $*" "$(cat answer)" done
}
wrap md md1 md2 md3 level=5
wrap lvm pv1 pv2 pv3 kind=linear
expect "MD and LVM" 0 - show --json md2 pv3 plain.1 pv1 md1 md3 pv2
row '[row["state"] for row in rows].count("readable") == 3'
row '[row.get("fsid") for row in rows].count(rows[0]["fsid"]) == 2'
expect "parts are missing" 1 - show --json pv3 plain.1 md1
row 'one("plain.1")["state"] == "readable"'
row '[row["state"] for row in rows].count("unreadable") >= 1'
if have xz; then
    xz -0 -k -c plain.1 > plain.xz
    expect "compressed" 0 - show --json plain.xz raid1-2.1 raid1-2.2
    row 'one("plain.xz (xz)")["state"] == "readable"'
fi

# Nothing large is read.
expect "a large device" 0 - show --json system-suse.1
python3 - << 'END'
with open("large", "wb") as large:
    large.truncate(1 << 40)
END
expect "a terabyte without data" 2 - show large

finish
