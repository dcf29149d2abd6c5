# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about variants of the format: old defaults, optional features, changed UUIDs, seed
# devices.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # check, lead and others are read there

# make_old NODESIZE: a file system like those of 2012 and 2013.
make_old() {
	devices 1 128M
	format --nodesize "$1" -O '^extref,^skinny-metadata,^no-holes' \
		-R '^free-space-tree'
	attach nospace_cache
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	data_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	small_tree "$mnt/volume"
	sync -f "$mnt"
	quiet btrfs subvolume snapshot -r "$mnt/volume" "$mnt/snapshot"
	detach
	super_has '^incompat_flags[[:space:]]+0x[0-9a-f]*[01]$'
}

# The kernel keeps a space cache, a file in the root tree, only for block groups of 100 MiB and
# more, which it makes only on larger devices. It stores fragmented free space as bitmaps.
make_space_cache() {
	local i
	devices 1 1200M
	format --nodesize 4096 -R '^free-space-tree'
	attach space_cache=v1
	small_tree "$mnt"
	# All of the small block group that mkfs.btrfs makes, and some of a larger one.
	for ((i = 0; i < 40; i++)); do
		fallocate -o $((i << 18)) -l 256K "$mnt/first"
	done
	fallocate -l 40M "$mnt/large"
	sync -f "$mnt"
	rm "$mnt/source/large.bin" "$mnt/large"
	printf 'after' > "$mnt/after"
	quiet python3 - "$mnt" << 'PYTHON'
import os, sys
os.chdir(sys.argv[1])
files = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in ("kept", "lost")]
for _ in range(300):
    for file in files:
        os.write(file, bytes(4096))
        os.fdatasync(file)
os.unlink("lost")
PYTHON
	sync -f "$mnt"
	fallocate -l 128K "$mnt/last"
	detach
	tree_has root 'FREE_SPACE'
}

make_quota() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	quiet btrfs quota enable "$mnt"
	quiet btrfs subvolume create "$mnt/limited"
	small_tree "$mnt/limited"
	quiet btrfs qgroup create 1/7 "$mnt"
	quiet btrfs qgroup limit 10M "$mnt/limited"
	quiet btrfs subvolume snapshot -i 1/7 "$mnt/limited" "$mnt/snapshot"
	detach
	tree_has quota 'QGROUP_LIMIT'
}

# btrfs-progs 6.2 cannot make a block group tree, see block-group-tree.py.
make_block_group_tree() {
	devices 1 128M
	format -m single -R quota
	attach
	small_tree "$mnt"
	detach
	release
	quiet python3 "$here/fixtures.d/block-group-tree.py" "${file[1]}"
	quiet btrfs check --readonly "${file[1]}"
	# From here on the kernel writes it.
	dev[1]=$(losetup --find --show "${file[1]}")
	attach
	wide_tree "$mnt" 4 30
	quiet btrfs balance start -m --force "$mnt"
	detach
	super_has BLOCK_GROUP_TREE
	tree_has 11 'BLOCK_GROUP_ITEM'
}

# btrfs-progs 6.2 does not support simple quotas: call the kernel directly.
make_simple_quota() {
	devices 1 128M
	format
	attach
	quiet python3 - "$mnt" << 'PYTHON'
import fcntl, os, struct, sys
QUOTA_CTL = 0xc0109428          # BTRFS_IOC_QUOTA_CTL
ENABLE_SIMPLE = 4               # BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA
top = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(top, QUOTA_CTL, struct.pack("=QQ", ENABLE_SIMPLE, 0))
PYTHON
	small_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	wide_tree "$mnt/volume" 2 30
	detach
	check=no
	# The incompatible feature with bit 16.
	super_has '^incompat_flags[[:space:]]+0x1[0-9a-f]{4}$'
}

make_converted() {
	devices 1 128M
	quiet mkfs.ext4 -q -b 4096 -N 512 -J size=4 -U "$uuid" "${dev[1]}"
	quiet mount -t ext4 "${dev[1]}" "$mnt"
	small_tree "$mnt"
	names_tree "$mnt"
	umount "$mnt"
	# The place of the mount is not worth keeping.
	quiet tune2fs -M / "${dev[1]}"
	quiet btrfs-convert --no-datasum --uuid new "${dev[1]}"
	tree_has root 'name ext2_saved'
}

# make_new_uuid DEVICES OPTION...: btrfstune changes the UUID.
make_new_uuid() {
	devices "$1" 128M
	format
	attach
	small_tree "$mnt"
	detach
	quiet btrfstune -f "${@:2}" "${dev[1]}"
	forget
}

make_metadata_uuid() {
	make_new_uuid "$@"
	# Used once more since.
	attach
	wide_tree "$mnt" 2 20
	detach
	super_has METADATA_UUID
}

# A read-only seed device and a new device with the changes.
make_sprout() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	wide_tree "$mnt/volume" 2 30
	detach
	quiet btrfstune -S 1 "${dev[1]}"
	sprout first
}

# sprout NAME: adds a device to the existing seed devices, and makes changes.
sprout() {
	attach
	devices 1 128M
	lead=${#dev[@]}
	quiet btrfs device add -f "${dev[lead]}" "$mnt"
	quiet mount -o remount,rw "$mnt"
	printf 'added\n' > "$mnt/added-by-$1"
	mkdir "$mnt/new-by-$1"
	wide_tree "$mnt/new-by-$1" 1 20
	mv "$mnt/docs/letters/0${#dev[@]}.txt" "$mnt/renamed-by-$1"
	rm "$mnt/source/library/part-0${#dev[@]}.c"
	umount "$mnt"
	forget
	super_has '^num_devices'
}

make_sprout_twice() {
	make_sprout
	quiet btrfstune -S 1 "${dev[2]}"
	forget
	sprout second
}

# make_seed_alone NAME INDEX...: only the seed devices of another fixture: an older, complete file
# system.
make_seed_alone() {
	images=$1
	about "devices-from: $1"
	about "missing: ${*:2}"
	absent=${*:2}
	lead=$(($2 - 1))
	check=no
	unpack "$1"
	record ""
}

# Emulated zones on a device without zones.
make_zoned() {
	devices 1 1280M
	format -O zoned -m single -d single
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	detach
	super_has ZONED
}

# make_sectorsize SIZE: the kernel may not be able to mount it, but mkfs.btrfs
# fills it from a folder.
make_sectorsize() {
	mkdir "$work/root"
	small_tree "$work/root"
	rm "$work/root/docs/pipe"
	names_tree "$work/root"
	rm -r "$work/root/kinds"
	devices 1 256M
	format --sectorsize "$1" --nodesize 65536 --rootdir "$work/root"
	list "$work/root" > "$out/paths0"
	rm -r "$work/root"
	recorded=yes
	super_has "^sectorsize[[:space:]]+$1\$"
}

make_shrunk_rootdir() {
	mkdir "$work/root"
	small_tree "$work/root"
	links_tree "$work/root"
	devices 1 256M
	format --rootdir "$work/root" --shrink
	rm -r "$work/root"
}

# Shrinks the file system below the size of the device, so chunks have to move.
make_resized_down() {
	devices 1 512M
	format
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 2 30
	head -c 150000000 /dev/zero > "$mnt/filler"
	sync -f "$mnt"
	rm "$mnt/filler"
	printf 'late' > "$mnt/late"
	quiet btrfs filesystem resize 288M "$mnt"
	detach
	super_has '^total_bytes[[:space:]]+301989888$'
}

make_resized_up() {
	devices 1 256M
	format --byte-count 128M
	attach
	small_tree "$mnt"
	quiet btrfs filesystem resize max "$mnt"
	wide_tree "$mnt" 2 30
	quiet btrfs balance start -m --force "$mnt"
	detach
	super_has '^total_bytes[[:space:]]+268435456$'
}

fixture old-4k \
	'no extref, skinny-metadata, no-holes, free-space-tree; nodes of 4 KiB' \
	make_old 4096
fixture old-16k \
	'no extref, skinny-metadata, no-holes, free-space-tree; nodes of 16 KiB' \
	make_old 16384
fixture space-cache-v1 'space cache v1' make_space_cache
fixture quota 'quotas with groups' make_quota
fixture simple-quota 'simple quotas' make_simple_quota
fixture block-group-tree 'block groups in a tree of their own' \
	make_block_group_tree
fixture converted 'made from ext4 by btrfs-convert' make_converted
fixture metadata-uuid 'file system id changed by btrfstune -m' \
	make_metadata_uuid 1 -M 00000000-1111-2222-3333-444444444444
fixture metadata-uuid-2 'the same on two devices' \
	make_metadata_uuid 2 -M 00000000-1111-2222-3333-555555555555
fixture new-fsid 'file system id rewritten everywhere by btrfstune -U' \
	make_new_uuid 1 -U 00000000-1111-2222-3333-666666666666
fixture sprout 'a seed device (1) and what sprouted from it (2)' make_sprout
fixture sprout-minus-2 'a seed device alone' make_seed_alone sprout 2
fixture sprout-minus-1 'a sprout without its seed device' \
	make_insufficient sprout 1
fixture sprout-twice 'a seed (1), its sprout made a seed (2), its sprout (3)' \
	make_sprout_twice
fixture sprout-twice-minus-3 'a seed device with a seed device' \
	make_seed_alone sprout-twice 3
fixture zoned 'zoned mode, emulated on a plain device' make_zoned
fixture sectorsize-16k 'sectors of 16 KiB, nodes of 64 KiB' \
	make_sectorsize 16384
fixture sectorsize-64k 'sectors and nodes of 64 KiB' make_sectorsize 65536
fixture rootdir-shrink 'made by mkfs.btrfs --rootdir --shrink' \
	make_shrunk_rootdir
fixture resized-down 'made smaller, chunks moved' make_resized_down
fixture resized-up 'made larger, chunks moved' make_resized_up
