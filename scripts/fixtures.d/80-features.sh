# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about features that few kernels have. They require a kernel with
# CONFIG_BTRFS_EXPERIMENTAL, CONFIG_BLK_DEV_ZONED and null_blk, or CONFIG_FS_VERITY. The raid stripe
# tree and the remap tree also require btrfs-progs that were configured with --enable-experimental.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # recorded and others are read there

# make_stripe_tree PROFILE DEVICES METADATA: data whose locations are in the stripe tree.
make_stripe_tree() {
	local i
	devices "$2" 256M
	format -O raid-stripe-tree -d "$1" -m "$3"
	attach
	small_tree "$mnt"
	data_tree "$mnt"
	mkdir "$mnt/parts"
	for ((i = 0; i < 12; i++)); do
		pattern "file $i" $((i * 30000)) > "$mnt/parts/$i"
	done
	sync -f "$mnt"
	overwrite "$mnt/parts/9" 3 1
	overwrite "$mnt/parts/9" 20 30
	overwrite "$mnt/parts/11" 0 2
	packed "$mnt/packed" zstd
	pattern packed 300000 >> "$mnt/packed"
	rm "$mnt/parts/7" "$mnt/parts/8"
	quiet btrfs subvolume snapshot "$mnt" "$mnt/snapshot"
	pattern later 150000 > "$mnt/parts/later"
	detach
	tree_has 12 'RAID_STRIPE'
}

# zoned_devices COUNT SIZE ZONE: adds devices with zones of ZONE MiB. Unwritten sectors read as
# ones.
zoned_devices() {
	local i folder n=${#dev[@]}
	for ((i = n + 1; i <= n + $1; i++)); do
		folder=/sys/kernel/config/nullb/$name-$i
		mkdir "$folder"
		echo 1 > "$folder/zoned"
		echo 1 > "$folder/memory_backed"
		echo "$2" > "$folder/size"
		echo "$3" > "$folder/zone_size"
		echo 4096 > "$folder/blocksize"
		echo 1 > "$folder/power"
		dev[i]=/dev/nullb$(cat "$folder/index")
		[[ -b ${dev[i]} ]] || dev[i]=/dev/$name-$i
	done
}

# record_mount: takes the expected results from the existing mount, since this kernel cannot mount
# the finished images.
record_mount() {
	list "$mnt" > "$out/paths0"
	(cd "$mnt" && find . -type f -printf '%P\0' | LC_ALL=C sort -z |
		xargs -0 sha256sum -z | sed -z 's|  |  /|') > "$out/sums0"
	squeeze "$out/sums0"
	about 'expected: kept'
	umount "$mnt"
}

# keep_zoned: ends with copies of the zoned devices, which loop devices cannot mount.
keep_zoned() {
	local i
	record_mount
	for i in "${!dev[@]}"; do
		file[i]=$store/dev$i.img
		python3 -c '
import sys
ones, zeros = b"\xff" * 65536, bytes(65536)
with open(sys.argv[1], "rb") as device, open(sys.argv[2], "wb") as image:
    while block := device.read(65536):
        if block in (ones, zeros):
            image.seek(len(block), 1)
        else:
            image.write(block)
    image.truncate()
' "${dev[i]}" "${file[i]}"
		echo 0 > "/sys/kernel/config/nullb/$name-$i/power"
		rmdir "/sys/kernel/config/nullb/$name-$i"
	done
	dev=()
	forget
	recorded=yes
}

# magic_at OFFSET: whether the first device has a superblock at the offset.
magic_at() {
	[[ $(dd if="${file[1]}" bs=1 skip=$(($1 + 64)) count=8 status=none) == _BHRfS_M ]]
}

# make_zoned_devices COMMITS DEVICES OPTION...: a file system with COMMITS superblocks in the log.
# From the 17th on, an old one is at the offset of the superblock of devices without zones.
make_zoned_devices() {
	local i
	zoned_devices "$2" 256 4
	format "${@:3}"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	pattern contents 200000 > "$mnt/contents"
	for ((i = 0; i < $1; i++)); do
		pattern "commit $i" 5000 > "$mnt/counter"
		sync -f "$mnt"
	done
	umount "$mnt"
	if [[ $* == *stripe-tree* ]]; then
		quiet btrfs inspect-internal dump-tree -t 12 "${dev[@]}"
		grep -q RAID_STRIPE "$work/log" || die "$name: no stripe tree"
	fi
	attach
	keep_zoned
	magic_at 0 || die "$name: no log of superblocks"
	[[ $1 -lt 17 ]] || magic_at 65536 || die "$name: no old superblock"
}

# make_global_roots COUNT: a file system with COUNT extent trees, checksum trees and free space
# trees.
make_global_roots() {
	local i
	devices 1 256M
	format -O extent-tree-v2 --num-global-roots "$1"
	attach
	small_tree "$mnt"
	data_tree "$mnt"
	for ((i = 0; i < 12; i++)); do
		pattern "file $i" $((i * 300000)) > "$mnt/$i"
	done
	detach
	tree_has root "CSUM_TREE ROOT_ITEM $(($1 - 1))"
}

# The root tree has an item for the root of the remap tree, whose root is in the superblock, too.
make_remap_tree() {
	devices 1 256M
	format -O block-group-tree -m dup
	attach
	small_tree "$mnt"
	data_tree "$mnt"
	wide_tree "$mnt" 4 30
	fstrim "$mnt" 2> "$work/log" || true
	record_mount
	forget
	quiet btrfstune --convert-to-remap-tree "${dev[1]}"
	tree_has root 'REMAP_TREE ROOT_ITEM'
	release
	recorded=yes
}

make_verity() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	data_tree "$mnt"
	packed "$mnt/packed" zstd
	pattern packed 300000 >> "$mnt/packed"
	: > "$mnt/nothing"
	sync -f "$mnt"
	python3 - "$mnt/packed" "$mnt/nothing" "$mnt"/data/{plain,inline,hole-then-data} << 'PYTHON'
import fcntl, os, struct, sys
FS_IOC_ENABLE_VERITY, SHA256 = 0x40806685, 1
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    fcntl.ioctl(file, FS_IOC_ENABLE_VERITY,
                struct.pack("=IIIIQIIQ88x", 1, SHA256, 4096, 0, 0, 0, 0, 0))
    os.close(file)
PYTHON
	detach
	tree_has 5 'VERITY_MERKLE_ITEM'
}

needs raid_stripe_tree mkfs:raid-stripe-tree
fixture stripe-tree-raid0 'the raid stripe tree says where data are: RAID0' \
	make_stripe_tree raid0 3 raid1
fixture stripe-tree-raid1 'the raid stripe tree says where data are: RAID1' \
	make_stripe_tree raid1 2 raid1
fixture stripe-tree-raid10 'the raid stripe tree says where data are: RAID10' \
	make_stripe_tree raid10 4 raid1
fixture stripe-tree-dup 'the raid stripe tree says where data are: DUP' \
	make_stripe_tree dup 1 dup

needs zoned null_blk
fixture zoned-device 'a zoned device, with a few superblocks in the log' \
	make_zoned_devices 3 1 -O zoned -m single -d single
fixture zoned-log 'a zoned device, with an old superblock at 64 KiB' \
	make_zoned_devices 40 1 -O zoned -m single -d single

needs zoned null_blk raid_stripe_tree mkfs:raid-stripe-tree
fixture zoned-stripe-tree 'zoned devices, where all data lie as they came' \
	make_zoned_devices 3 2 -O zoned,raid-stripe-tree -m raid1 -d raid1

needs extent_tree_v2 mkfs:extent-tree-v2
fixture extent-tree-v2 'several trees of checksums' make_global_roots 4

needs mkfs:remap-tree
fixture remap-converted 'btrfstune has added a remap tree' make_remap_tree

needs verity
fixture verity 'files with fs-verity' make_verity
