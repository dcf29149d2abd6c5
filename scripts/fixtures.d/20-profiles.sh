# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about block group profiles: the positions of chunks on the devices.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # absent, check and others are read there

# make_profile PROFILE DEVICES [SIZE]: a file system with this profile for data and metadata.
make_profile() {
	devices "$2" "${3-128M}"
	format -m "$1" -d "$1"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 5 50
	detach
	tree_has chunk "type METADATA\\|($1|${1^^})\$"
}

make_mixed() {
	devices 1 "$1"
	format --mixed --nodesize 4096 -m "$2" -d "$2"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	detach
	super_has MIXED_GROUPS
}

# make_degraded NAME INDEX...: the images of another fixture without some devices, all of whose
# contents the others have.
make_degraded() {
	images=$1
	absent=${*:2}
	check=no
	about "devices-from: $1"
	about "missing: $absent"
	about 'stderr: missing'
	lead=1
	while [[ " $absent " == *" $lead "* ]]; do
		lead=$((lead + 1))
	done
	unpack "$1"
	record degraded
	whole "$1" | cmp - "$out/paths0" ||
		die "$name: the kernel does not find everything"
}

# make_insufficient NAME INDEX...: the same with too many missing devices.
make_insufficient() {
	images=$1
	about "devices-from: $1"
	about "missing: ${*:2}"
	about 'stderr: missing'
	# Some of the tree of chunks or of roots is among what is missing.  Half of
	# RAID0 and RAID10 has enough to put trees together; a sprout without its
	# seed lacks only leaves.
	case $1 in
	sprout | raid0-2 | raid10-4) about 'exit: 1' ;;
	*) about 'exit: 2' ;;
	esac
	about 'subset: yes'
	unpack "$1"
	whole "$1" > "$out/paths0"
	recorded=yes
}

# count_unreadable: prints the number of bytes and files that the kernel cannot read, by sectors.
count_unreadable() {
	python3 - "$mnt" <<-'PYTHON'
	import os, stat, sys
	lost = files = 0
	seen = set()
	for folder, _, names in os.walk(sys.argv[1]):
	    for name in names:
	        path = os.path.join(folder, name)
	        inode = os.lstat(path)
	        if not stat.S_ISREG(inode.st_mode) or inode.st_ino in seen:
	            continue
	        seen.add(inode.st_ino)
	        descriptor = os.open(path, os.O_RDONLY)
	        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
	        before = lost
	        for offset in range(0, os.fstat(descriptor).st_size, 4096):
	            try:
	                os.pread(descriptor, 4096, offset)
	            except OSError:
	                lost += 4096
	        files += lost > before
	        os.close(descriptor)
	print(lost, files)
	PYTHON
}

# One device of four, with all metadata and a quarter of the data of RAID5, is missing.
make_incomplete() {
	local i
	devices 4 256M
	format -m raid1c4 -d raid5
	attach max_inline=0
	small_tree "$mnt"
	for i in {1..12}; do
		pattern "$i" $((i * 20000)) > "$mnt/file-$i"
	done
	detach
	absent='2 3 4'
	check=no
	about "missing: $absent"
	about 'stderr: missing'
	about 'sum-exit: 1'
	about 'sum-stderr: missing'
	record degraded
	dev[1]=$(losetup --find --show --read-only "${file[1]}")
	attach ro degraded
	count_unreadable > "$out/unreadable"
	umount "$mnt"
	release
	rm -f "${file[@]:2}"
	unset 'file[2]' 'file[3]' 'file[4]'
}

# whole NAME: uses the paths recorded for another fixture.
whole() {
	if [[ -e $fixtures/$1/paths0 ]]; then
		cat "$fixtures/$1/paths0"
	else
		zstd -q -d -c "$fixtures/$1/paths0.zst"
	fi
}

# Chunks of several profiles, as after an interrupted conversion. This requires more than one block
# group of metadata: fill the first one, then delete most of it again.
make_conversion() {
	local i
	devices "$3" 256M
	format -m "$1" -d "$1"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 44 500 2040
	sync -f "$mnt"
	for ((i = 2; i < 42; i++)); do
		rm -r "$mnt/dir-$i"
	done
	rm "$mnt"/dir-*/file-?? "$mnt"/dir-*/file-[1-4]??
	sync -f "$mnt"
	quiet btrfs balance start --force -dconvert="$2",limit=1 \
		-mconvert="$2",limit=1 "$mnt"
	detach
	tree_has chunk "type METADATA\\|($1|${1^^})\$"
	dump_has "type METADATA\\|${2^^}\$"
}

# The same with contents: of two chunks with data, the one on the first device is converted. A
# preallocated file fills the other one, so that the next files are in a new chunk.
make_data_conversion() {
	local i filler=0 first
	devices 3 256M
	format -m raid1 -d raid1
	attach max_inline=0
	for i in 1 2 3 4; do
		pattern "$i" $((i * 50000)) > "$mnt/file-$i"
	done
	sync -f "$mnt"
	first=$(data_space)
	while [[ $(data_space) == "$first" ]]; do
		filler=$((filler + 1))
		fallocate -l 4M "$mnt/filler-$filler"
		sync -f "$mnt"
	done
	for i in 5 6 7 8; do
		pattern "$i" $((i * 50000)) > "$mnt/file-$i"
	done
	rm "$mnt"/filler-*
	sync -f "$mnt"
	quiet btrfs balance start -dconvert=raid5,devid=1 "$mnt"
	detach
	tree_has chunk 'type DATA\|RAID1$'
	tree_has chunk 'type DATA\|RAID5$'
}

# data_space: prints the size of all chunks with data.
data_space() {
	btrfs filesystem df -b "$mnt" | sed -n 's/^Data.*total=\([0-9]*\),.*/\1/p'
}

make_device_gaps() {
	devices 4 256M
	format -m raid1 -d raid1
	attach
	small_tree "$mnt"
	devices 2 128M
	quiet btrfs device add -f "${dev[5]}" "$mnt"
	quiet btrfs device remove "${dev[1]}" "$mnt"
	quiet btrfs device add -f "${dev[6]}" "$mnt"
	quiet btrfs device remove "${dev[3]}" "$mnt"
	quiet btrfs device remove "${dev[5]}" "$mnt"
	quiet btrfs balance start --full-balance "$mnt"
	wide_tree "$mnt" 2 50
	detach
	release
	file=([1]="${file[2]}" "${file[4]}" "${file[6]}")
	tree_has chunk 'DEV_ITEMS DEV_ITEM 6\)'
	dump_has 'DEV_ITEMS DEV_ITEM 4\)'
}

# A device replaced by another takes over its id.
make_replaced() {
	devices 2 256M
	format -m raid1 -d raid1
	attach
	small_tree "$mnt"
	devices 1 256M
	quiet btrfs replace start -f -B 1 "${dev[3]}" "$mnt"
	wide_tree "$mnt" 2 50
	detach
	release
	file=([1]="${file[3]}" "${file[2]}")
}

fixture single 'metadata and data single, one device' make_profile single 1
fixture single-3 'metadata and data single on three devices' \
	make_profile single 3
fixture dup 'metadata and data DUP' make_profile dup 1 256M
for n in 1 2 3 5; do
	fixture "raid0-$n" "RAID0 on $n devices" make_profile raid0 "$n"
done
for n in 2 3; do
	fixture "raid1-$n" "RAID1 on $n devices" make_profile raid1 "$n"
done
fixture raid1c3-3 'RAID1C3 on 3 devices' make_profile raid1c3 3
fixture raid1c4-4 'RAID1C4 on 4 devices' make_profile raid1c4 4
for n in 2 4 6; do
	fixture "raid10-$n" "RAID10 on $n devices" make_profile raid10 "$n"
done
for n in 2 3 5; do
	fixture "raid5-$n" "RAID5 on $n devices" make_profile raid5 "$n"
done
for n in 3 4 6; do
	fixture "raid6-$n" "RAID6 on $n devices" make_profile raid6 "$n"
done

# degraded NAME INDEX...
degraded() {
	local missing=${*:2}
	fixture "$1-minus-${missing// /-}" "$1 without image $missing" \
		make_degraded "$@"
}

# insufficient NAME INDEX...
insufficient() {
	local missing=${*:2}
	fixture "$1-minus-${missing// /-}" \
		"$1 without image $missing: not everything can be read" \
		make_insufficient "$@"
}

degraded raid1-2 1
degraded raid1-2 2
degraded single-3 2
degraded single-3 2 3
for n in 1 2 3; do
	degraded raid1-3 "$n"
done
degraded raid1c3-3 1 2
degraded raid1c3-3 2 3
degraded raid1c4-4 1 2 3
degraded raid1c4-4 1 3 4
for n in 1 2; do
	degraded raid10-2 "$n"
done
for n in 1 2 3 4 '1 3' '2 4'; do
	# shellcheck disable=SC2086 # one of each mirrored pair
	degraded raid10-4 $n
done
for n in 1 2; do
	degraded raid5-2 "$n"
done
for n in 1 2 3; do
	degraded raid5-3 "$n"
done
for n in 1 2 3 4 5; do
	degraded raid5-5 "$n"
done
for n in '1 2' '1 3' '2 3'; do
	# shellcheck disable=SC2086 # two numbers
	degraded raid6-3 $n
done
for n in '1' '1 2' '1 3' '1 4' '2 3' '2 4' '3 4'; do
	# shellcheck disable=SC2086 # two numbers
	degraded raid6-4 $n
done
for n in '1 2' '1 4' '2 5' '3 4' '3 6' '5 6'; do
	# shellcheck disable=SC2086 # two numbers
	degraded raid6-6 $n
done
insufficient single-3 1
insufficient raid0-2 2
insufficient raid10-4 1 2
insufficient raid5-3 1 2
insufficient raid6-4 1 2 3

fixture mixed 'data and metadata in the same block groups' \
	make_mixed 64M single
fixture mixed-dup 'data and metadata in the same block groups, DUP' \
	make_mixed 256M dup
fixture conversion-single-raid1 'half converted from single to RAID1' \
	make_conversion single raid1 2
fixture conversion-raid1-raid5 'half converted from RAID1 to RAID5' \
	make_conversion raid1 raid5 3
fixture conversion-data 'half of the data converted from RAID1 to RAID5' \
	make_data_conversion
fixture device-gaps 'RAID1 on the device ids 2, 4 and 6' make_device_gaps
fixture replaced 'RAID1 with one device replaced by another' make_replaced
fixture incomplete 'one of four devices: all metadata, and a quarter of the data of RAID5' \
	make_incomplete
