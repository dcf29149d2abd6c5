# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures of file systems that were not unmounted: images copied while mounted, as after a power
# failure, and devices that missed writes.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # check, lead and others are read there

# Files created, renamed and deleted after the last commit, followed by fsync: these changes are
# only in the log trees.
make_log_tree() {
	live_store
	devices 1 128M
	format
	attach commit=300
	small_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	small_tree "$mnt/volume"
	sync -f "$mnt"
	python3 - "$mnt" << 'PYTHON'
import os, sys
for top in (sys.argv[1], sys.argv[1] + "/volume"):
    letters = top + "/docs/letters"
    for i in range(20):
        fd = os.open("%s/logged-%d" % (letters, i), os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"only in the log\n")
        os.fsync(fd)
        os.close(fd)
    os.unlink(letters + "/01.txt")
    os.rename(letters + "/02.txt", letters + "/renamed-after-commit")
    fd = os.open(letters, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
PYTHON
	copy_live
	keep_copy
	super_has '^log_root[[:space:]]+[1-9]'
	about 'args: -v --log=ignore'
	about 'stderr: the log tree has data fsynced .* is ignored'
}

# Files that are deleted but still open, and one that never had a name.
make_orphans() {
	local fd
	live_store
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	exec {fd}< "$mnt/docs/letters/03.txt"
	python3 - "$mnt" "$work" << 'PYTHON' &
import os, sys, time
top, work = sys.argv[1:]
fds = [os.open("%s/docs/letters/0%d.txt" % (top, i), os.O_RDONLY)
       for i in (4, 5, 6)]
fds.append(os.open(top, os.O_TMPFILE | os.O_RDWR))
os.write(fds[-1], b"no name at all")
for i in (4, 5, 6):
    os.unlink("%s/docs/letters/0%d.txt" % (top, i))
open(work + "/ready", "w").close()
while os.path.exists(work + "/ready"):
    time.sleep(0.05)
PYTHON
	rm "$mnt/docs/letters/03.txt"
	until [[ -e $work/ready ]]; do
		sleep 0.05
	done
	sync -f "$mnt"
	copy_live
	rm "$work/ready"
	exec {fd}<&-
	wait
	keep_copy
	tree_has 5 'ORPHAN ORPHAN_ITEM'
}

# snapper NUMBER TYPE DATE DESCRIPTION: makes a snapshot of @ like Snapper.
snapper() {
	mkdir "$mnt/@snapshots/$1"
	quiet btrfs subvolume snapshot -r "$mnt/@" "$mnt/@snapshots/$1/snapshot"
	printf '%s\n' '<?xml version="1.0"?>' '<snapshot>' "  <type>$2</type>" "  <num>$1</num>" \
		"  <date>$3</date>" "  <description>$4</description>" '</snapshot>' \
		> "$mnt/@snapshots/$1/info.xml"
	sync -f "$mnt"
}

# A laptop with snapshots, which docs/problems shows.
make_laptop() {
	local i top=$mnt/@ home=$mnt/@home/anna
	live_store
	devices 1 512M
	format -L laptop
	attach compress=zstd
	for i in @ @home @snapshots @var_log; do
		quiet btrfs subvolume create "$mnt/$i"
	done
	mkdir -p "$top"/{etc,usr/bin,boot,home,.snapshots} "$home"/{Documents,Pictures}
	printf 'ID=opensuse-tumbleweed\n' > "$top/etc/os-release"
	printf '%s\n' root:x:0:0:root:/:/bin/sh anna:x:1000:1000::/:/bin/sh \
		> "$top/etc/passwd"
	printf '%s\n' root:x:0: anna:x:1000: > "$top/etc/group"
	printf 'LABEL=laptop / btrfs subvol=@ 0 0\n' > "$top/etc/fstab"
	for i in 1 2 3 4 5 6; do
		seq $((i * 40000)) > "$top/usr/bin/program-$i"
	done
	for i in 1 2 3; do
		seq -s ' pixel ' $((i * 90000)) > "$home/Pictures/holiday-$i.jpg"
	done
	printf 'Dear Bob,\n' > "$home/Documents/letter.txt"
	seq -s ' therefore ' 50000 > "$home/Documents/thesis.odt"
	chown -R 1000:1000 "$home"
	sync -f "$mnt"
	snapper 1 single '2026-11-20 08:00:01' 'first root filesystem'
	printf 'Dear Bob, thank you\n' > "$home/Documents/letter.txt"
	printf 'LABEL=laptop / btrfs subvol=@,noatime 0 0\n' > "$top/etc/fstab"
	snapper 2 pre '2026-11-21 09:12:44' 'zypp(zypper)'
	seq 70000 > "$top/usr/bin/program-2"
	rm "$top/usr/bin/program-6"
	snapper 3 post '2026-11-21 09:13:20' ''
	quiet btrfs subvolume snapshot -r "$mnt/@home" "$mnt/@snapshots/home-2026-11-21"
	sync -f "$mnt"
	rm "$home/Pictures/holiday-2.jpg"
	printf 'Dear Bob, thank you very much\n' > "$home/Documents/letter.txt"
	seq -s ' hence ' 60000 > "$home/Documents/draft.odt"
	chown 1000:1000 "$home/Documents/draft.odt"
	sync -f "$mnt"
	rm "$home/Documents/thesis.odt" "$home/Documents/draft.odt"
	sync -f "$mnt"
	copy_live
	keep_copy
}

# Files deleted in three transactions, all of whose generations still exist. `gone` has the hashes
# of all files in the first one. One file is open at the end.
make_gone() {
	local fd top=$mnt/top
	live_store
	devices 1 128M
	format -m single
	attach
	mkdir -p "$top/folder/below" "$top/kept"
	quiet btrfs subvolume create "$mnt/volume"
	seq 20000 > "$top/large"
	seq 20 > "$top/small"
	seq 3000 > "$top/folder/below/file"
	ln "$top/folder/below/file" "$top/folder/link"
	ln -s nowhere "$top/symlink"
	setfattr -n user.name -v value "$top/folder"
	chmod 750 "$top/folder"
	touch "$top/unsummed" "$top/packed"
	chattr +C "$top/unsummed"
	seq 4000 > "$top/unsummed"
	btrfs property set "$top/packed" compression zstd
	seq 50000 > "$top/packed"
	truncate -s 200000 "$top/sparse"
	seq 1000 | dd of="$top/sparse" bs=4k seek=10 conv=notrunc status=none
	seq 5000 > "$top/kept/edited"
	seq 10 > "$top/kept/moved"
	seq 6000 > "$top/kept/open"
	seq 7000 > "$mnt/volume/inside"
	mkdir "$mnt/volume/folder"
	seq 7 > "$mnt/volume/folder/deep"
	touch -d 2001-02-03T04:05:06Z "$top/large" "$top/folder"
	sync -f "$mnt"
	(cd "$mnt" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) |
		sed 's, \./, /,' > "$out/gone"

	rm -r "$top/large" "$top/small" "$top/folder" "$top/symlink" "$top/packed"
	mv "$top/kept/moved" "$top/kept/moved-on"
	seq 4999 > "$top/kept/edited"
	sync -f "$mnt"
	quiet btrfs subvolume delete "$mnt/volume"
	rm "$top/unsummed" "$top/sparse"
	seq 30 > "$top/kept/new"
	mv "$top/kept/new" "$top/kept/edited"
	exec {fd}< "$top/kept/open"
	rm "$top/kept/open"
	sync -f "$mnt"
	copy_live
	exec {fd}<&-
	keep_copy
	tree_has 5 'ORPHAN ORPHAN_ITEM'
}

# Prints the generation and the address of the root tree in the superblock.
committed_root() {
	dd if="${dev[lead]}" bs=4096 skip=16 count=1 iflag=direct status=none |
		od -A n -t u8 -w16 -j 72 -N 16 | awk '{print $1, $2}'
}

# With quotas, a transaction that makes a snapshot writes all trees, then the directory entry of the
# snapshot, then the changed blocks once more: two complete root trees have its generation.
# `committed` has the roots in the superblock after each commit.
make_snapshots_with_quotas() {
	local i
	live_store
	devices 1 128M
	format -m single
	attach
	quiet btrfs quota enable "$mnt"
	quiet btrfs subvolume create "$mnt/@home"
	for i in 1 2 3 4 5 6; do
		echo "text $i" > "$mnt/@home/doc"
		: > "$mnt/@home/file-$i"
		quiet btrfs subvolume snapshot -r "$mnt/@home" "$mnt/snapshot-$i"
		committed_root >> "$out/committed"
		rm "$mnt/@home/file-$i"
		sync -f "$mnt"
		committed_root >> "$out/committed"
	done
	copy_live
	keep_copy
}

# Generations before a balance, with chunks that were removed since; two files that had the same
# path one after the other, both deleted; and a file that is another btrfs image.
make_past() {
	live_store
	devices 1 192M
	format -m single
	truncate -s 32M "$work/inner"
	mkdir "$work/inside"
	seq 100 > "$work/inside/planted"
	quiet mkfs.btrfs -q --mixed --rootdir "$work/inside" "$work/inner"
	attach
	seq 3000 > "$mnt/stays"
	seq 1000 > "$mnt/twice"
	sync -f "$mnt"
	rm "$mnt/twice"
	seq 2000 > "$mnt/twice"
	sync -f "$mnt"
	rm "$mnt/twice"
	cp --sparse=always "$work/inner" "$mnt/inner"
	sync -f "$mnt"
	quiet btrfs balance start -d "$mnt"
	sync -f "$mnt"
	copy_live
	keep_copy
	rm -r "$work/inner" "$work/inside"
}

# Files that were renamed and rewritten in the same transaction: one by itself, one below a renamed
# directory, one onto another file, and one whose old path a new file has got.
make_renamed() {
	local path
	live_store
	devices 1 128M
	format -m single
	attach max_inline=0
	mkdir "$mnt/folder"
	for path in name folder/file source target place; do
		printf "$path%.0s\n" {1..900} > "$mnt/$path"
	done
	sync -f "$mnt"
	mv "$mnt/name" "$mnt/new-name"
	mv "$mnt/folder" "$mnt/new-folder"
	mv "$mnt/source" "$mnt/target"
	mv "$mnt/place" "$mnt/elsewhere"
	for path in new-name new-folder/file target elsewhere place; do
		printf "new $path%.0s\n" {1..900} > "$mnt/$path"
	done
	sync -f "$mnt"
	copy_live
	keep_copy
}

# A deleted subvolume that the cleaner has not started to drop, because a file in it is open.
make_deletion_pending() {
	local fd
	live_store
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	wide_tree "$mnt/volume" 2 20
	exec {fd}< "$mnt/volume/dir-1/file-1"
	quiet btrfs subvolume delete --commit-after "$mnt/volume"
	sync -f "$mnt"
	copy_live
	exec {fd}<&-
	keep_copy
	tree_has root 'key \(256 ROOT_ITEM'
	dump_has 'refs 0( |$)'
	dump_has 'ORPHAN ORPHAN_ITEM 256'
}

# A deleted subvolume whose tree the cleaner has dropped in part. This requires the right moment:
# make many copies, and keep the first one in this state.
make_deletion_begun() {
	local try
	live_store
	devices 1 256M
	format --nodesize 4096
	attach
	small_tree "$mnt"
	for try in 1 2 3 4 5 6 7 8; do
		fstrim "$mnt"
		quiet btrfs subvolume create "$mnt/volume-$try"
		wide_tree "$mnt/volume-$try" 8 120 1900
		sync -f "$mnt"
		btrfs subvolume delete --commit-after "$mnt/volume-$try" \
			> "$work/deletion" 2>&1 &
		many_copies 20
		wait
		if first_copy 'drop_progress key \([1-9]'; then
			break
		fi
	done
	keep_copy
	tree_has root 'drop_progress key \([1-9]'
	dump_has 'refs 0( |$)'
}

# many_copies COUNT: copies the first image as fast as possible.
many_copies() {
	local i
	rm -f "$store"/many-*.img
	for ((i = 0; i < $1; i++)); do
		cp --reflink=always "$store/dev1.img" "$store/many-$i.img"
		quiet btrfs filesystem sync "$mnt"
	done
}

# first_copy REGEX: chooses the first of these copies with a matching root tree; fails if none
# matches.
first_copy() {
	local i
	for ((i = 0; ; i++)); do
		[[ -e $store/many-$i.img ]] || return 1
		btrfs inspect-internal dump-tree -t root \
			"$store/many-$i.img" > "$work/dump" 2> "$work/log" ||
			continue
		if grep -Eq -- "$1" "$work/dump"; then
			mv "$store/many-$i.img" "$store/copy.img"
			return 0
		fi
	done
}

# The trees of a running balance, with many snapshots to keep it busy.
make_relocation() {
	local i
	live_store
	devices 1 256M
	format --nodesize 4096
	attach
	small_tree "$mnt"
	quiet btrfs subvolume create "$mnt/volume"
	wide_tree "$mnt/volume" 4 50 1900
	for ((i = 0; i < 12; i++)); do
		quiet btrfs subvolume snapshot "$mnt/volume" "$mnt/snapshot-$i"
		printf 'changed\n' > "$mnt/snapshot-$i/dir-1/file-$i"
		printf 'changed\n' > "$mnt/volume/dir-2/file-$i"
	done
	sync -f "$mnt"
	fstrim "$mnt"
	for ((i = 0; i < 5; i++)); do
		btrfs balance start -m --force "$mnt" > "$work/balance" 2>&1 &
		many_copies 40
		wait
		if first_copy 'TREE_RELOC ROOT_ITEM'; then
			break
		fi
	done
	keep_copy
	tree_has root 'TREE_RELOC ROOT_ITEM'
}

# changes DIR: changes a small_tree thoroughly.
changes() {
	rm "$1/docs/letters/01.txt" "$1/source/library/part-02.c"
	mv "$1/docs/letters" "$1/source/letters-moved"
	printf 'new\n' > "$1/source/letters-moved/new.txt"
	wide_tree "$1" 2 40
}

# make_stale INDEX [PROFILE DEVICES]: the device INDEX missed some commits, and is then present
# again.
make_stale() {
	local i options=degraded,subvolid=5 profile=${2-raid1} count=${3-2}
	devices "$count" 256M
	format -m "$profile" -d "$profile"
	attach
	small_tree "$mnt"
	detach
	lead=1
	[[ $1 != 1 ]] || lead=2
	for i in "${!dev[@]}"; do
		[[ $i == "$1" ]] || options+=,device=${dev[i]}
	done
	quiet mount -t btrfs -o "$options" "${dev[lead]}" "$mnt"
	changes "$mnt"
	sync -f "$mnt"
	printf 'later\n' > "$mnt/later"
	umount "$mnt"
	forget
	check=no
	about "stderr: dev$1"
}

fixture log-tree 'changes made safe by fsync since the last commit' \
	make_log_tree
fixture gone 'files and a subvolume that older states have' make_gone
fixture laptop 'snapshots as Snapper makes them, and deleted files' make_laptop
fixture snapshots-with-quotas 'generations with two complete root trees' \
	make_snapshots_with_quotas
fixture past 'states before a balance, and a file that is another btrfs' make_past
fixture renamed 'files that were renamed and rewritten' make_renamed
fixture orphans 'deleted files which were still open' make_orphans
fixture deletion-pending 'deleted subvolume, cleaning up not begun' \
	make_deletion_pending
fixture deletion-begun 'deleted subvolume, cleaning up half done' \
	make_deletion_begun
fixture relocation 'copied during a balance, with relocation trees' \
	make_relocation
fixture stale-raid1-1 'RAID1, device 1 missed writes' make_stale 1
fixture stale-raid1-2 'RAID1, device 2 missed writes' make_stale 2
fixture stale-raid1c3-3 'RAID1C3, device 3 missed writes' \
	make_stale 3 raid1c3 3
fixture stale-raid10-2 'RAID10, device 2 missed writes' make_stale 2 raid10 4
fixture stale-raid5-2 'RAID5, device 2 missed writes' make_stale 2 raid5 3
fixture stale-raid6-1 'RAID6, device 1 missed writes' make_stale 1 raid6 4
