#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair`: a kernel that is a process (tests/kernel/guest.py) mounts repaired file systems for
# writing, and reads the files of the undamaged ones. tests/kernel/repair.py does it at random.
set -uo pipefail
export TMPDIR=/tmp # the guest has a /dev of its own, so that it would not find files in /dev/shm
. "$(dirname "$0")/common.bash"

if ! have linux.uml qemu-img mkfs.btrfs python3; then
    skip "linux.uml, qemu-img and mkfs.btrfs" "mounts of repaired file systems"
    finish
fi
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup bad-copy-raid1 lost-tree-free-space || exit 1

# The disks of the guest are all damaged and repaired images: no two of one file system are mounted.
disks=()
# repaired IMAGE...: adds the repaired images to the disks.
repaired() {
    rm -rf "$WORK/fixed"
    expect "repair: $1" 0 . repair --data -C "$WORK/fixed" "$@"
    for overlay in "$WORK/fixed"/*.qcow2; do
        disks+=("$WORK/disk${#disks[@]}.img")
        holds "qemu-img converts the repaired image of $1" \
            qemu-img convert -O raw "$overlay" "${disks[-1]}"
    done
}

# The first copy of the superblock, without which no mount succeeds.
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/plain.img"
dd if=/dev/zero of="$WORK/plain.img" bs=4096 seek=16 count=1 conv=notrunc 2> /dev/null
disks+=("$WORK/plain.img")
repaired "$WORK/plain.img"
repaired "$fixtures"/bad-copy-raid1/dev*.img
repaired "$fixtures/lost-tree-free-space/dev1.img"
"$PROGRAM" sum --relative "$fixtures/lost-tree-free-space/dev1.img" > "$WORK/tree.sums"
"$PROGRAM" sum --relative "$fixtures/plain/dev1.img" > "$WORK/plain.sums"
"$PROGRAM" sum --relative "$fixtures"/bad-copy-raid1/dev*.img > "$WORK/raid1.sums" 2> /dev/null

# An overlay above a qcow2 image.
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/dup.img"
dd if=/dev/zero of="$WORK/dup.img" bs=4096 seek=16 count=1 conv=notrunc 2> /dev/null
qemu-img convert -O qcow2 "$WORK/dup.img" "$WORK/dup.qcow2"
repaired "$WORK/dup.qcow2"
"$PROGRAM" sum --relative "$fixtures/dup/dev1.img" > "$WORK/dup.sums"

# A change of the type of checksums was interrupted: the leaves of the checksum tree are filled
# again, without the new ones.
mkdir "$WORK/tree"
head -c 6000000 "$fixtures/plain/dev1.img" | tail -c 1000000 > "$WORK/tree/some"
head -c 6000000 /dev/urandom > "$WORK/tree/random"
truncate -s 128M "$WORK/sums.img"
mkfs.btrfs -q -n 4096 --rootdir "$WORK/tree" "$WORK/sums.img" > "$WORK/out" 2>&1
"$PROGRAM" sum --relative "$WORK/sums.img" > "$WORK/sums.sums"
is "the sums of both files are known" "$(wc -l < "$WORK/sums.sums")" 2
holds "a change of the type of checksums is interrupted" \
    python3 "$ROOT/tests/support/unfinished_change.py" "$WORK/sums.img" data 2 begun
repaired "$WORK/sums.img"
holds "'btrfs check' accepts the checksum tree that was filled again" \
    btrfs check --check-data-csum "${disks[-1]}"

cat > "$WORK/script" << END
# mounts SUMS DEVICE: the files are right, before and after something is written.
mounts() {
    mount -t btrfs "\$2" mount && (cd mount && sha256sum --quiet -c "\$1") &&
        head -c 100000 "\$0" > mount/new && mkdir mount/folder && umount mount &&
        mount -t btrfs "\$2" mount && cmp "\$0" mount/new && rm -r mount/new mount/folder &&
        umount mount && ! dmesg | grep -E 'BTRFS (error|critical|warning.*(csum|checksum))'
}
mkdir mount
mount -t btrfs "\$1" mount 2> /dev/null && echo 'the damaged image can be mounted'
dmesg -C
mounts "$WORK/plain.sums" "\$2" || echo 'plain: not repaired'
btrfs device scan > scan 2>&1
mounts "$WORK/raid1.sums" "\$3" || echo 'raid1: not repaired'
mounts "$WORK/tree.sums" "\$5" || echo 'free space tree: not repaired'
mounts "$WORK/dup.sums" "\$6" || echo 'qcow2: not repaired'
mounts "$WORK/sums.sums" "\$7" || echo 'checksums: not repaired'
echo ended
END
is "the kernel mounts all repaired file systems, and their files are right" \
    "$(python3 -B "$ROOT/tests/kernel/guest.py" --seconds 300 "$WORK/script" \
    "${disks[@]}" 2>&1)" ended
finish
