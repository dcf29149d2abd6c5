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

# Installed systems: which of several subvolumes it is, its snapshots, and containers.
expect "openSUSE" 0 - info "$(fixture system-suse)"
tells 'Installed:     openSUSE Tumbleweed, in /@/.snapshots/1/snapshot \(the default subvolume\)' \
    ' +/ is the default subvolume' ' +/home is /@/home' \
    'Versions:      2 snapshots of systems, 2 by snapper'
expect "Ubuntu" 0 - info "$(fixture system-ubuntu)"
tells 'Installed:     Ubuntu 24.04.1 LTS, in /@ \(its fstab mounts it\)' ' +/home is /@home' \
    ' +/mnt/old data is /@data, which does not exist' \
    'Versions:      3 snapshots of systems, 2 by timeshift'
holds "not the line of another file system" eval '! out_has @srv'
expect "Fedora" 0 - info "$(fixture system-fedora)"
tells 'Installed:     Fedora Linux 41 .*, in /root \(the only one that is no snapshot\)' \
    'Versions:      2 snapshots of systems, 2 by btrbk' \
    'Containers:    web \(docker\): Alpine Linux v3.20, in .*/docker/btrfs/subvolumes/bbbb' \
    ' +db \(podman\): Debian GNU/Linux 12 \(bookworm\), in .*/dddd' \
    ' +arch \(machined\): Arch Linux, in /root/var/lib/machines/arch'
expect "no system" 0 - info "$(fixture plain)"
holds "no line about systems" eval '! out_has "^(Installed|Versions|Containers):"'
if have python3; then
    # systems FIXTURE PYTHON: its JSON, as `info` and `systems`, which are named by their paths.
    systems() {
        expect "$1 as JSON" 0 - info --json "$(fixture "$1")"
        holds "$1: $2" python3 -c '
import json, sys
info = json.load(open(sys.argv[1]))
systems = {system["subvolume_path"]: system for system in info["systems"]}
current = [system for system in info["systems"] if system["is_current"]]
assert len(current) == 1 and current[0]["system"] == info["system"]
'"assert $2" "$WORK/out"
    }
    systems system-suse '(current[0]["current_by"], len(systems)) == ("default", 3)
assert {s["system_subvolume"] for s in systems.values()} == {current[0]["subvolume"]}
old = systems["/@/.snapshots/2/snapshot"]
assert (old["system_kind"], old["made_by"], old["ro"]) == ("snapshot", "snapper", True)
assert old["title"] == "before <zypp> & after" and old["os_version"] == "20251105"
assert [m["mount_point"] for m in current[0]["mounts"]] == ["/", "/.snapshots", "/home", "/var"]'
    systems system-ubuntu 'current[0]["subvolume_path"] == "/@"
assert current[0]["current_by"] == "fstab"
assert {s["system_subvolume"] for s in systems.values()} == {current[0]["subvolume"]}
assert systems["/@before"]["system_kind"] == "snapshot" and not systems["/@before"]["snapshot"]
assert "subvolume" not in current[0]["mounts"][2]
dated = systems["/timeshift-btrfs/snapshots/2026-01-02_10-00-01/@"]
assert (dated["made_by"], dated["title"]) == ("timeshift", "Before the upgrade of 2026-01-02")'
    systems system-fedora 'current[0]["current_by"] == "only" and len(systems) == 7
assert [s.get("made_by") for s in systems.values()].count("btrbk") == 2
assert {s.get("title") for s in systems.values() if s["system_kind"] == "container"} \
    == {"web", "db", "arch"}
image = [s for s in systems.values() if s["system_kind"] == "image"]
assert [s["title"] for s in image] == ["docker.io/library/debian:12"]
assert all("system_subvolume" not in s for s in image)'
fi

# A subvolume whose only leaf is lost costs nothing but its own system.
cp --sparse=always "$(fixture system-ubuntu)" "$WORK/lost"
leaf=$("$PROGRAM" subvolumes -o root,subvolume_path "$WORK/lost" | grep -P '\t/@$' | cut -f 1)
for offset in $("$PROGRAM" map -o offset "$WORK/lost" "$leaf"); do
    dd if=/dev/zero of="$WORK/lost" bs=1 seek="$offset" count=4096 conv=notrunc status=none
done
expect "a lost system" 0 'systems in 262: ' info "$WORK/lost"
tells 'Installed:     Ubuntu 24.04.1 LTS, in /@before .*' 'State:         readable; .*'

# Only small trees are read: of other trees, only the blocks in which the top directories of
# subvolumes have or lack a system, however large the file system is.
for name in big-directory levels-3 subvolumes raid5-3; do
    devices=("$BUILD/fixtures/$name/"dev*.img)
    expect "the trees of $name" 0 'tree=1 ' info --probe block-read-start "${devices[@]}"
    is "trees other than these in $name" "$(grep -cvE ' tree=(1|3|5|2[567][0-9]) ' "$WORK/err")" 0
    expect "the blocks of $name" 0 - info --probe block-read-start --probe-output "$WORK/reads" \
        "${devices[@]}"
    subvolumes=$("$PROGRAM" subvolumes "${devices[@]}" | wc -l)
    most=$((12 + 3 * subvolumes))
    holds "info reads few blocks of $name" [ "$(wc -l < "$WORK/reads")" -le "$most" ]
done

finish
