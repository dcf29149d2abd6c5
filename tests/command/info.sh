#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# info: its contents, that it reads no more than it needs, and its answers for file systems that are
# degraded, damaged, or cannot be opened.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
fixture() { echo "$BUILD/fixtures/$1/dev${2:-1}.img"; }

# tells LINE...: the last output must have these lines, which are regular expressions.
tells() { local line; for line; do holds "info has the line '$line'" out_has "^$line\$"; done; }

expect "one screen" 0 - info "$(fixture subvolumes)"
tells 'Label: *' 'UUID:          b02051c2-b910-be11-5c4b-0b701d129466' \
    'Size:          128.00MiB, 456.00KiB used \(0%\)' \
    'Blocks:        nodes of 16384 bytes, sectors of 4096, crc32c' \
    'Features:      mixed-backref, .*, free-space-tree-valid' \
    'Data:          single, 8.00MiB in 1 chunk' 'Metadata:      DUP, 32.00MiB in 1 chunk' \
    'Subvolumes:    12, and 6 snapshots, 0 deleted' \
    'Transaction:   13, last change 2026-11-21 03:07:43 UTC' \
    'Log tree:      none' 'Device 1:      present, 128.00MiB, 88.00MiB allocated, .*/dev1.img' \
    "State:         readable: superblocks and critical trees are good; 'check' verifies the rest"
holds "info prints at most 20 lines" [ "$(wc -l < "$WORK/out")" -le 20 ]
expect "a label" 0 - info "$(fixture metadata-uuid)"
tells 'Metadata UUID: .*' 'Features:      .*, metadata-uuid.*'
expect "a missing device" 0 'device 2 .* is missing' info "$(fixture raid1-2)"
tells 'Device 2:      missing, .* allocated' \
    'State:         degraded, 1 of 2 devices missing; 1 message on stderr'
expect "a log tree" 0 - info "$(fixture log-tree)"
tells 'Log tree:      yes, replayed: .*'
expect "a log tree that is ignored" 0 - info --log=ignore "$(fixture log-tree)"
tells 'Log tree:      yes, not replayed: .*'
expect "the same as JSON" 0 - info --log=ignore --json "$(fixture log-tree)"
holds "it is there, not replayed" grep -q '"log_tree":true,.*"log_replayed":false' "$WORK/out"
expect "a replayed log as JSON" 0 - info --json "$(fixture log-tree)"
holds "info --json says that the log is replayed" grep -q '"log_replayed":true' "$WORK/out"
expect "mixed block groups" 0 - info "$(fixture mixed)"
tells 'Data\+Metadata: single, .*'
expect "subvolumes being deleted" 0 - info "$(fixture deletion-pending)"
tells 'Subvolumes: .* [1-9][0-9]* deleted'
# A device that missed a transaction: an older superblock, as the reference would write it.
first=$(fixture raid1-2)
cp --sparse=always "$(fixture raid1-2 2)" "$WORK/stale"
if have python3; then
    python3 - "$WORK/stale" <<'END'
import sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff
with open(sys.argv[1], "r+b") as image:
    for offset in 65536, 67108864:
        image.seek(offset)
        block = bytearray(image.read(4096))
        block[72] -= 1
        block[:4] = crc32c(block[32:]).to_bytes(4, "little")
        image.seek(offset)
        image.write(block)
END
    expect "a stale device" 0 'is stale: device 2' info "$first" "$WORK/stale"
    tells 'Device 2:      stale, .*' 'State:         degraded, 1 stale; 1 message on stderr'
else
    skip python3 "a stale device"
fi

# File systems that cannot be opened still have a superblock.
expect "no root tree" 1 'tree block .* of the root tree' info "$(fixture lost-tree-root)"
tells 'UUID: .*' 'Transaction:   7' 'State:         damaged; 2 messages on stderr'
expect "no chunk tree" 1 'tree block .* of the chunk tree' info "$(fixture lost-tree-chunk)"
expect "no tree at all" 1 'the chunk tree has no chunk' \
    info --json --tree-root 4096 "$(fixture plain)"
holds "info --json calls the file system unreadable" \
    grep -q '"state":"unreadable".*"message":"the chunk tree has no chunk ' \
    "$WORK/out"
cp --sparse=always "$(fixture plain)" "$WORK/image"
printf '\1' | dd of="$WORK/image" bs=1 seek=$((65536 + 195)) conv=notrunc status=none
expect "one bad superblock" 0 'superblock copy 0 at 65536 rejected' info "$WORK/image"
tells 'State:         unmountable; 1 message on stderr' \
    "Mount:         the kernel refuses: superblock copy 0 of $WORK/image is bad; .* from copy 1"
expect "as JSON" 0 'superblock copy 0' info --json "$WORK/image"
holds "info --json calls the file system unmountable, and says why" \
    grep -q '"state":"unmountable",.*"mount_error":"superblock copy 0 of ' "$WORK/out"
cp --sparse=always "$(fixture plain)" "$WORK/behind"
holds "a copy of an older generation" change "$WORK/behind" copy 1 72 8 7
expect "copy 1 is behind" 0 'superblock copy 1 .* rejected' info "$WORK/behind"
tells "State:         readable; 1 message on stderr; 'check' verifies the rest"
cp --sparse=always "$(fixture raid1-2)" "$WORK/first"
dd if=/dev/zero of="$WORK/first" bs=4096 seek=16 count=1 conv=notrunc status=none
expect "one of two devices" 0 'superblock copy 0' info "$WORK/first" "$(fixture raid1-2 2)"
tells 'State:         unmountable; .*' "Mount: .* superblock copy 0 of $WORK/first is bad; .*"
cp --sparse=always "$(fixture subvolumes)" "$WORK/synology"
holds "a subvolume gets a flag of Synology" \
    change "$WORK/synology" 1 256 132 0 set 208 8 17179869184
expect "which kernels refuse" 0 - info "$WORK/synology"
tells 'State:         unmountable' 'Mount:         the kernel refuses: 1 subvolume has flags .*'
for copy in 65536 67108864; do # more than the one bit that would be corrected
    printf spoilt | dd of="$WORK/image" bs=1 seek=$((copy + 195)) conv=notrunc status=none
done
expect "all of them bad" 2 'no good superblock' info "$WORK/image"
holds "without a good superblock, info prints nothing" [ ! -s "$WORK/out" ]
expect "no image" 2 'no image given' info
expect "not btrfs" 2 'not a btrfs file system' info "$ROOT/Makefile"

expect "info as JSON" 0 - info --json "$(fixture raid1-2)" "$(fixture raid1-2 2)"
holds "one object in a line" [ "$(grep -c '^{"label":"","fsid":.*}$' "$WORK/out")" -eq 1 ]
if have python3; then
    holds "the output of info --json is JSON" python3 -c '
import json, sys
info = json.load(open(sys.argv[1]))
assert info["state"] == "readable" and info["problems"] == [] and "mount_error" not in info
assert [d["devid"] for d in info["devices"]] == [1, 2]
assert {p["chunk_type"] for p in info["profiles"]} == {"Data", "Metadata", "System"}
assert info["checksum"] == "crc32c" and info["size"] == 268435456
assert "no-holes" in info["features"]' "$WORK/out"
else
    skip python3 "the JSON"
fi

expect "no file" 2 'cannot open' info "$WORK/nothing"
is "a file that does not exist has one message" "$(wc -l < "$WORK/err")" 1

# Only small trees are read: no block of any other tree, however large the file system is.
for name in big-directory levels-3 subvolumes raid5-3; do
    devices=("$BUILD/fixtures/$name/"dev*.img)
    expect "the trees of $name" 0 'tree=1 ' info --probe block-read-start "${devices[@]}"
    is "trees other than 1 and 3 in $name" "$(grep -cvE ' tree=(1|3) ' "$WORK/err")" 0
    expect "the blocks of $name" 0 - info --probe block-read-start --probe-output "$WORK/reads" \
        "${devices[@]}"
    holds "info reads at most 12 blocks of $name" [ "$(wc -l < "$WORK/reads")" -le 12 ]
done

finish
