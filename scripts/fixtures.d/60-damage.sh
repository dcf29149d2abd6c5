# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures of images that are damaged on purpose.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # check, lead and others are read there

superblocks=(65536 67108864 274877906944)

# wipe INDEX OFFSET LENGTH: writes zeros into an image.
wipe() {
	fallocate --punch-hole --offset "$2" --length "$3" "${file[$1]}"
}

# stripes TYPE STRIPE: prints the device id, offset and length of one stripe of all chunks of a
# type, from the chunk tree.
stripes() {
	dump_tree -t chunk
	awk -v type="$1" -v stripe="$2" '
		$1 == "length" { length_ = $2; found = index($0, "type " type) }
		$1 == "stripe" && $2 == stripe && found { print $4, $6, length_ }
	' "$work/dump"
}

# wipe_stripes TYPE STRIPE: destroys these (in single, DUP and RAID1 chunks, where a stripe is as
# long as its chunk).
wipe_stripes() {
	local id offset length count=0
	stripes "$1" "$2" > "$work/stripes"
	while read -r id offset length; do
		wipe "$id" "$offset" "$length"
		count=$((count + 1))
	done < "$work/stripes"
	((count > 0)) || die "$name: no stripes to destroy"
}

# settled: unmounts, and records the expected results before the images are damaged.
settled() {
	record ""
}

# make_superblock COPY: destroys one copy of the superblock.
make_superblock() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	detach
	settled
	wipe 1 "${superblocks[$1]}" 4096
	[[ $1 != 0 ]] || about 'stderr: superblock'
}

# Only the checksum of the superblock is wrong.
make_superblock_bits() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	detach
	settled
	# Both addresses of tree roots, in the middle of them.
	printf '\001\002\003' | dd of="${file[1]}" bs=1 seek=$((65536 + 82)) \
		conv=notrunc status=none
	about 'stderr: superblock'
}

# All superblocks are lost.
make_superblocks_gone() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	detach
	settled
	wipe 1 "${superblocks[0]}" 4096
	wipe 1 "${superblocks[1]}" 4096
	about 'exit: 2'
	about 'stderr: .'
	about 'subset: yes'
	: > "$out/at-least0"
}

# make_copy_lost PROFILE DEVICES TYPE STRIPE: one copy of the metadata or of the system chunk is
# lost, the other copy is complete.
make_copy_lost() {
	devices "$2" 128M
	format -m "$1" -d single
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	detach
	settled
	wipe_stripes "$3" "$4"
}

# Each copy has lost another half of the metadata, so the reader has to choose the copy for each
# block.
make_copies_alternate() {
	local id offset length i
	devices 1 128M
	format -m dup
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	detach
	settled
	for i in 0 1; do
		stripes METADATA "$i" > "$work/stripes"
		read -r id offset length < "$work/stripes"
		while ((length > 0)); do
			wipe "$id" $((offset + i * 16384)) 16384
			offset=$((offset + 32768))
			length=$((length - 32768))
		done
	done
}

# make_lost_writes STRIPE: one copy of the metadata is from an older commit: its blocks are
# outdated, but their checksums are correct.
make_lost_writes() {
	local id offset length i
	devices 1 128M
	format -m dup
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	sync -f "$mnt"
	umount "$mnt"
	cp --sparse=always "${file[1]}" "$work/older.img"
	attach
	mkdir "$mnt/new"
	mv "$mnt/docs" "$mnt/new/moved"
	small_tree "$mnt/new"
	for i in 1 2 3 4 5 6 7 8; do
		printf '%s' "$i" > "$mnt/dir-0/new-$i"
		sync -f "$mnt"
		rm "$mnt/dir-1/file-$i"
		sync -f "$mnt"
	done
	umount "$mnt"
	settled
	stripes METADATA "$1" > "$work/stripes"
	read -r id offset length < "$work/stripes"
	dd if="$work/older.img" of="${file[1]}" bs=64K \
		skip="$offset" seek="$offset" count="$length" \
		iflag=skip_bytes,count_bytes oflag=seek_bytes \
		conv=notrunc,sparse status=none
	rm "$work/older.img"
}

# root_of TREE: prints the logical address of its root block.
root_of() {
	dump_tree -t "$1"
	awk '$1 == "leaf" || $1 == "node" { print $2; exit }' "$work/dump"
}

# leaf_of TREE NUMBER TYPE: prints the logical address of a leaf with items of this type, counted
# from 0.
leaf_of() {
	dump_tree -t "$1"
	awk -v n="$2" -v type="$3" '
		$1 == "leaf" && $3 == "items" { leaf = $2; seen = 0 }
		$1 == "item" && $5 == type && !seen++ && n-- == 0 {
			print leaf; exit }' "$work/dump"
}

# wipe_block LOGICAL: destroys a block whose only copy is on the first device.
wipe_block() {
	local physical
	physical=$(btrfs-map-logical -l "$1" "${file[1]}" 2> "$work/log" |
		awk '$1 == "mirror" && $2 == 1 { print $6; exit }')
	[[ -n $physical ]] || die "$name: cannot map $1"
	wipe 1 "$physical" "$nodesize"
	if btrfs inspect-internal dump-tree -b "$1" "${file[1]}" \
		> "$work/dump" 2> "$work/log" && grep -q 'items' "$work/dump"; then
		die "$name: block $1 is still there"
	fi
}

# make_lost_leaf NODESIZE NUMBER TYPE: a leaf of the top-level subvolume is lost, see leaf_of.
make_lost_leaf() {
	local leaf
	nodesize=$1
	devices 1 128M
	format -m single -d single --nodesize "$1"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 6 30
	sync -f "$mnt"
	# Which file has which inode, for the part that must be found.
	detach
	attach ro
	find "$mnt" -printf '%i %y /%P\0' > "$work/inodes"
	umount "$mnt"
	settled
	leaf=$(leaf_of 5 "$2" "$3")
	[[ -n $leaf ]] || die "$name: no such leaf"
	btrfs inspect-internal dump-tree -b "$leaf" "${file[1]}" \
		> "$work/dump" 2> "$work/log"
	{
		printf 'destroyed: leaf %s of the file tree (tree 5)\n' "$leaf"
		printf 'its first and last items:\n'
		sed -n 's/^\titem [0-9]* key (\(.*\)) itemoff.*/\1/p' \
			"$work/dump" | sed -n '1p;$p'
	} > "$out/lost-leaf"
	python3 - "$work/dump" "$work/inodes" > "$out/at-least0" << 'PYTHON'
import re, sys
text = open(sys.argv[1], errors="replace").read()
hit = {int(number) for number in re.findall(r"\n\titem \d+ key \((\d+) ", text)}
entries = {}
for record in open(sys.argv[2], "rb").read().split(b"\0")[:-1]:
    inode, kind, path = record.split(b" ", 2)
    entries[path] = (int(inode), kind)
safe = []
for path, (inode, kind) in entries.items():
    if kind != b"f":
        continue
    # Neither the file nor any directory above it is in the leaf.
    above = [b"/"]
    parts = path.split(b"/")[1:]
    above += [b"/" + b"/".join(parts[:i]) for i in range(1, len(parts) + 1)]
    if not any(entries[step][0] in hit for step in above):
        safe.append(path)
for path in sorted(safe):
    sys.stdout.buffer.write(path + b"\0")
PYTHON
	wipe_block "$leaf"
	# Names and types of files are kept with the directory: a leaf that holds
	# nothing but their inodes is not needed, nor read.
	# Their contents are lost.
	if [[ $3 == EXTENT_DATA ]]; then
		about 'sum-exit: 1'
		return
	fi
	about 'exit: 1'
	about 'subset: yes'
	about 'stderr: .'
}

# make_lost_root TREE: the root block of a tree is lost, with single metadata. Some of these trees
# are not needed to list paths.
make_lost_root() {
	local tree=$1
	[[ $tree != free-space ]] || tree=10
	nodesize=16384
	devices 1 128M
	format -m single -d single
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 6 30
	quiet btrfs subvolume create "$mnt/volume"
	small_tree "$mnt/volume"
	detach
	settled
	wipe_block "$(root_of "$tree")"
	case $1 in
	csum)
		about 'sum-exit: 1' # nothing vouches for contents
		return
		;;
	extent | free-space | uuid) return ;;
	esac
	printf 'destroyed: the root block of the tree: %s\n' "$1" \
		> "$out/lost-leaf"
	about 'exit: 1'
	# A chunk tree or root tree is rebuilt, and nothing is missing.
	if [[ $1 == fs ]]; then
		about 'subset: yes'
		about 'stderr: .'
	else
		about "stderr: the $1 tree .*was rebuilt"
	fi
}

# The image is shorter than the file system.
make_truncated() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	detach
	settled
	truncate -s 100M "${file[1]}"
}

fixture superblock-lost 'first superblock zeroed, the copy at 64 MiB serves' \
	make_superblock 0
fixture superblock-copy-lost 'the superblock copy at 64 MiB zeroed' \
	make_superblock 1
fixture superblock-bits 'first superblock with a wrong checksum' \
	make_superblock_bits
fixture superblocks-gone 'all superblocks zeroed' make_superblocks_gone
fixture dup-metadata-0 'DUP, first copy of the metadata zeroed' \
	make_copy_lost dup 1 METADATA 0
fixture dup-metadata-1 'DUP, second copy of the metadata zeroed' \
	make_copy_lost dup 1 METADATA 1
fixture dup-system-0 'DUP, first copy of the system chunk zeroed' \
	make_copy_lost dup 1 SYSTEM 0
fixture raid1-metadata-0 'RAID1, metadata of one device zeroed' \
	make_copy_lost raid1 2 METADATA 0
fixture raid1-metadata-1 'RAID1, metadata of the other device zeroed' \
	make_copy_lost raid1 2 METADATA 1
fixture raid1c3-system-0 'RAID1C3, system chunk of one device zeroed' \
	make_copy_lost raid1c3 3 SYSTEM 0
fixture dup-alternate 'DUP, every other block zeroed in each copy' \
	make_copies_alternate
fixture lost-writes-0 'DUP, first copy of the metadata out of date' \
	make_lost_writes 0
fixture lost-writes-1 'DUP, second copy of the metadata out of date' \
	make_lost_writes 1
fixture lost-leaf-first 'the first leaf of the file tree is lost' \
	make_lost_leaf 16384 0 INODE_ITEM
fixture lost-leaf-second 'the second leaf of the file tree is lost' \
	make_lost_leaf 16384 1 INODE_ITEM
fixture lost-leaf-inodes 'a leaf with inodes of files is lost' \
	make_lost_leaf 4096 40 EXTENT_DATA
fixture lost-leaf-directory 'a leaf with entries of a directory is lost' \
	make_lost_leaf 4096 6 DIR_INDEX
for tree in root chunk fs; do
	fixture "lost-tree-$tree" "the root block of the $tree tree is lost" \
		make_lost_root "$tree"
done
for tree in extent csum free-space uuid; do
	fixture "lost-tree-$tree" \
		"the root block of the $tree tree is lost, which is not needed" \
		make_lost_root "$tree"
done
fixture truncated 'the image ends early, in a part without metadata' \
	make_truncated
