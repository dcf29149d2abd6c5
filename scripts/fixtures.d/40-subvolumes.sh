# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about subvolumes and snapshots.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures

subvolume() {
	quiet btrfs subvolume create "$1"
}

snapshot() {
	quiet btrfs subvolume snapshot "$@"
}

make_subvolumes() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	subvolume "$mnt/home"
	small_tree "$mnt/home"
	subvolume "$mnt/home/docs/nested"
	printf 'in nested\n' > "$mnt/home/docs/nested/file"
	subvolume "$mnt/home/docs/nested/deeper"
	printf 'in deeper\n' > "$mnt/home/docs/nested/deeper/file"
	subvolume "$mnt/home/empty-volume"

	# In a snapshot, subvolumes inside of the original are empty folders.
	snapshot "$mnt/home" "$mnt/home-snapshot"
	snapshot -r "$mnt/home" "$mnt/home-read-only"
	snapshot "$mnt/home-snapshot" "$mnt/docs/snapshot-of-snapshot"
	snapshot -r "$mnt/docs/snapshot-of-snapshot" "$mnt/docs/third"
	rmdir "$mnt/home-snapshot/empty-volume"

	# A snapshot with changes on both sides.
	rm "$mnt/home/docs/letters/01.txt"
	printf 'later\n' > "$mnt/home/docs/letters/09.txt"
	mv "$mnt/home-snapshot/docs/letters" "$mnt/home-snapshot/moved"

	# A snapshot of the top level: it has `home` as an empty folder.
	snapshot "$mnt" "$mnt/top-snapshot"

	# A snapshot kept inside its original.
	snapshot "$mnt/home" "$mnt/home/snapshot-inside"

	# Renamed in place, moved to another folder, moved into a subvolume.
	subvolume "$mnt/to-rename"
	: > "$mnt/to-rename/file-a"
	mv "$mnt/to-rename" "$mnt/renamed"
	subvolume "$mnt/to-move"
	: > "$mnt/to-move/file-b"
	mv "$mnt/to-move" "$mnt/docs/moved"
	subvolume "$mnt/to-move"
	: > "$mnt/to-move/file-c"
	mv "$mnt/to-move" "$mnt/home/docs/nested/deeper/moved-in"
	mv "$mnt/renamed" "$mnt/to-move"

	# Names of subvolumes which are not plain.
	subvolume "$mnt/new"$'\n'"line \\ "$'\xff'
	: > "$mnt/new"$'\n'"line \\ "$'\xff'"/file"
	subvolume "$mnt/$(printf '%0255d' 0)"
	: > "$mnt/$(printf '%0255d' 0)/file"
	# Two which share an item of the directory, see collision_tree.
	subvolume "$mnt/hash-c0649d5.dir"
	subvolume "$mnt/hash-2689ea98-name"
	: > "$mnt/hash-c0649d5.dir/file"
	: > "$mnt/hash-2689ea98-name/file"
	detach
}

make_default_subvolume() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	subvolume "$mnt/root"
	wide_tree "$mnt/root" 2 10
	quiet btrfs subvolume set-default "$mnt/root"
	detach
	tree_has root 'location key \(256 ROOT_ITEM'
}

make_deleted_subvolumes() {
	local i
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	for i in 1 2 3 4 5 6; do
		subvolume "$mnt/volume-$i"
		small_tree "$mnt/volume-$i"
		snapshot "$mnt/volume-$i" "$mnt/docs/snapshot-$i"
	done
	quiet btrfs subvolume delete --commit-each "$mnt/volume-2" \
		"$mnt/docs/snapshot-3" "$mnt/volume-4" "$mnt/docs/snapshot-4"
	# An empty subvolume may also be removed like a folder.
	subvolume "$mnt/volume-5/inner"
	rmdir "$mnt/volume-5/inner"
	quiet btrfs subvolume sync "$mnt"
	# The name is used again.
	subvolume "$mnt/volume-2"
	: > "$mnt/volume-2/again"
	detach
}

# A chain of subvolumes inside of each other, and a long path.
make_deep() {
	local i path long top
	devices 1 128M
	format
	attach
	path=$mnt
	for ((i = 0; i < 40; i++)); do
		path+=/v$i
		subvolume "$path"
		: > "$path/file"
	done
	top=$PWD
	printf -v long '%0200d' 7
	cd "$mnt" || die "deep: cannot enter"
	# Longer than PATH_MAX in the end, so one step at a time.
	for ((i = 0; i < 60; i++)); do
		mkdir "$long"
		cd "$long" 2> "$work/log" || die 'deep: cannot enter'
		: > "file-$i"
	done
	cd "$top" || die "deep: cannot return"
	detach
}

# All kinds of subvolumes that a list distinguishes: read-only, snapshot, received, default, nested,
# and one whose deletion has begun.
make_subvolume_kinds() {
	local fd
	live_store
	devices 1 128M
	format
	attach
	subvolume "$mnt/one"
	mkdir -p "$mnt/folder/deep" "$mnt/received"
	subvolume "$mnt/folder/deep/two"
	subvolume "$mnt/one/nested"
	mkdir "$mnt/one/nested/folder"
	subvolume "$mnt/one/nested/folder/inner"
	small_tree "$mnt/one"
	snapshot -r "$mnt/one" "$mnt/read-only"
	snapshot "$mnt/one" "$mnt/folder/writable"
	quiet btrfs send -f "$work/stream" "$mnt/read-only"
	quiet btrfs receive -f "$work/stream" "$mnt/received"
	quiet btrfs subvolume set-default "$mnt/folder/deep/two"
	subvolume "$mnt/gone"
	: > "$mnt/gone/file"
	exec {fd}< "$mnt/gone/file"
	quiet btrfs subvolume delete --commit-after "$mnt/gone"
	sync -f "$mnt"
	copy_live
	exec {fd}<&-
	keep_copy
	tree_has root 'ORPHAN ORPHAN_ITEM'
}

# Makes the files of `first`, below $live.
fill_first() {
	local i
	mkdir -p "$live/docs/deep" "$live/gone/below" "$live/many" "$live/again"
	head -c 200000 < <(yes text) > "$live/docs/large"
	printf 'one\n' > "$live/docs/small"
	ln "$live/docs/small" "$live/docs/link"
	printf 'a\n' > "$live/swap-a"
	printf 'b\n' > "$live/swap-b"
	printf 'gone\n' > "$live/gone/below/file"
	printf 'type\n' > "$live/type"
	printf 'again\n' > "$live/again/file"
	printf 'saved\n' > "$live/saved"
	printf 'attributes\n' > "$live/attributes"
	ln -s target "$live/symlink"
	truncate -s 1M "$live/holes"
	touch "$live/unsummed"
	chattr +C "$live/unsummed"
	head -c 100000 < <(yes unsummed) >> "$live/unsummed"
	touch "$live/tab"$'\t'"and newline"$'\n'
	touch "$live/bytes"$'\xff'
	for ((i = 0; i < 300; i++)); do
		: > "$live/many/$i"
	done
	subvolume "$live/nested"
	subvolume "$live/nested-gone"
}

# Makes the changes from `first` to `second`.
change_everything() {
	mv "$live/docs" "$live/papers"
	printf 'two\n' >> "$live/papers/small"
	ln "$live/papers/small" "$live/papers/deep/third"
	rm "$live/papers/link"
	printf 'x' | dd of="$live/papers/large" bs=1 seek=70000 conv=notrunc status=none
	mv "$live/swap-a" "$live/swap-c"
	mv "$live/swap-b" "$live/swap-a"
	mv "$live/swap-c" "$live/swap-b"
	rm -r "$live/gone"
	rm "$live/type"
	mkdir "$live/type"
	printf 'inside\n' > "$live/type/file"
	rm -r "$live/again"
	mkdir "$live/again"
	printf 'other\n' > "$live/again/file"
	printf 'saved again\n' > "$live/saved.new"
	mv "$live/saved.new" "$live/saved"
	chmod 600 "$live/attributes"
	chown 1:2 "$live/attributes"
	setfattr -n user.name -v value "$live/attributes"
	rm "$live/symlink"
	ln -s elsewhere "$live/symlink"
	mv "$live/tab"$'\t'"and newline"$'\n' "$live/tab"$'\t'"only"
	rm "$live/bytes"$'\xff'
	printf 'new\n' > "$live/new"
	rm "$live/many/150"
	mv "$live/nested" "$live/papers/nested"
	quiet btrfs subvolume delete "$live/nested-gone"
	subvolume "$live/nested-new"
}

# For `diff`: between `first` and `second`, every kind of change of names and files; from `second`
# to `third`, only changed positions on disk.
make_differences() {
	local live=$mnt/live
	devices 1 128M
	format
	attach
	subvolume "$live"
	fill_first
	sync -f "$mnt"
	snapshot -r "$live" "$mnt/first"
	change_everything
	sync -f "$mnt"
	snapshot -r "$live" "$mnt/second"

	# No content changes, only its place and form: zeros in place of a hole, too.
	quiet btrfs filesystem defragment -czstd "$live/papers/large"
	touch -r "$live/holes" "$work/times"
	dd if=/dev/zero of="$live/holes" bs=64k count=2 conv=notrunc status=none
	fallocate -n -o 512k -l 64k "$live/holes"
	touch -r "$work/times" "$live/holes"
	touch -r "$live/unsummed" "$work/times"
	head -c 100000 < <(yes unsummed) | dd of="$live/unsummed" conv=notrunc status=none
	touch -r "$work/times" "$live/unsummed"
	sync -f "$mnt"
	snapshot -r "$live" "$mnt/third"
	quiet btrfs subvolume sync "$mnt"
	detach
}

# Groups of groups, and both kinds of limits.
make_quota_groups() {
	local i
	devices 1 128M
	format
	attach
	quiet btrfs quota enable "$mnt"
	for i in 1 2 3; do
		subvolume "$mnt/volume-$i"
		small_tree "$mnt/volume-$i"
		quiet btrfs qgroup create "1/$i" "$mnt"
		quiet btrfs qgroup assign --no-rescan "0/$((255 + i))" "1/$i" "$mnt"
	done
	quiet btrfs qgroup create 2/100 "$mnt"
	quiet btrfs qgroup assign --no-rescan 1/1 2/100 "$mnt"
	quiet btrfs qgroup assign --no-rescan 1/2 2/100 "$mnt"
	quiet btrfs qgroup assign --no-rescan 0/256 1/3 "$mnt"
	quiet btrfs qgroup limit 10M "$mnt/volume-1"
	quiet btrfs qgroup limit -e 20M "$mnt/volume-2"
	quiet btrfs qgroup limit 30M 2/100 "$mnt"
	quiet btrfs qgroup limit -e 15M 2/100 "$mnt"
	quiet btrfs quota rescan -w "$mnt"
	detach
	tree_has quota 'flags ON$|flags ON '
}

fixture subvolumes 'nested subvolumes, snapshots, renamed and moved ones' \
	make_subvolumes
fixture default-subvolume 'another subvolume is the default one' \
	make_default_subvolume
fixture deleted-subvolumes 'some subvolumes were deleted' \
	make_deleted_subvolumes
fixture deep 'paths longer than 4096 bytes, 40 subvolumes in each other' \
	make_deep
fixture subvolume-kinds 'default, read-only, received and deleted subvolumes' \
	make_subvolume_kinds
fixture differences 'three snapshots, with changes of all kinds, and of places alone' \
	make_differences
fixture quota-groups 'quota groups in each other, with limits' \
	make_quota_groups

# A layout as made by distributions, with an /etc/passwd for its owners, and everything that ls and
# stat show.
people_tree() {
	local n
	mkdir -p "$1"/@/{etc,usr/bin,tmp,dev,srv/shared,srv/sticky} "$1"/@home/{ada,bob}
	printf '%s\n' root:x:0:0:root:/:/bin/sh ada:x:1000:1000::/:/bin/sh \
		bob:x:1001:100::/:/bin/sh long-user-name:x:70000:70000::/:/bin/false \
		> "$1/@/etc/passwd"
	printf '%s\n' root:x:0: users:x:100:bob ada:x:1000: long-group-name:x:70000: \
		> "$1/@/etc/group"
	for n in tool su wall; do printf 'x\n' > "$1/@/usr/bin/$n"; done
	chmod 755 "$1/@/usr/bin/tool"
	chmod 4755 "$1/@/usr/bin/su"
	chmod 2755 "$1/@/usr/bin/wall"
	ln "$1/@/usr/bin/tool" "$1/@/usr/bin/tool.again"
	ln -s tool "$1/@/usr/bin/link"
	ln -s nowhere "$1/@/usr/bin/dangling"
	ln -s ../../etc "$1/@/usr/bin/config"
	chmod 1777 "$1/@/tmp"
	chmod 777 "$1/@/srv/shared"
	chmod 1755 "$1/@/srv/sticky"
	mkfifo "$1/@/tmp/fifo"
	mknod "$1/@/dev/null" c 1 3
	mknod "$1/@/dev/loop7" b 7 7
	for n in 1 20 300 4000 50000; do head -c "$n" /dev/zero > "$1/@home/ada/size-$n.dat"; done
	for n in notes.tar .hidden archive.tar.gz README "it's.txt" ärger.TXT; do
		printf '%s' "$n" > "$1/@home/bob/$n"
	done
	touch -d @0 "$1/@home/bob/README"
	touch -d '2001-02-03 04:05:06.789 UTC' "$1/@home/bob/notes.tar"
	touch -d '2030-01-01 UTC' "$1/@home/bob/archive.tar.gz"
	touch -a -d '2010-01-01 UTC' "$1/@home/bob/.hidden"
	touch -m -d '1969-12-31 23:59:59.5 UTC' "$1/@home/bob/it's.txt"
	chown -R 1000:1000 "$1/@home/ada"
	chown -R 1001:100 "$1/@home/bob"
	chown 70000:70000 "$1/@home/ada/size-1.dat"
	chown 4242:4242 "$1/@home/bob/README"
	chmod 640 "$1/@home/ada/size-20.dat"
}

# The output of ls and stat with the names in the image: its /etc/passwd and /etc/group are mounted
# over those of the machine, visible only to this process.
people_answers() {
	local line
	export TZ=UTC LC_ALL=C.UTF-8 TIME_STYLE=full-iso
	mount --bind "$1/@/etc/passwd" /etc/passwd
	mount --bind "$1/@/etc/group" /etc/group
	cd "$1" || return
	while IFS= read -r line; do
		printf '$ %s\n' "$line"
		eval "${line/ --names/}"
	done
}

make_people() {
	devices 1 128M
	format
	attach
	subvolume "$mnt/@"
	subvolume "$mnt/@home"
	people_tree "$mnt"
	snapshot "$mnt/@" "$mnt/@snapshot"
	detach
	quiet mount -o loop,ro "${file[1]}" "$mnt"
	export -f people_answers
	unshare -m bash -c "people_answers '$mnt'" < "$here/../tests/data/habits" > "$out/answers"
	umount "$mnt"
}

fixture people 'a layout of distributions: @ and @home, users and groups, files of all kinds' \
	make_people

# Three snapshots with all that a stream can contain, and all kinds of differences between them.
sent_first() {
	local i
	mkdir -p "$1"/{turn/a/b/c/d,gone/below,swap,later,types,o257-7-0}
	for i in turn/a turn/a/b turn/a/b/c turn/a/b/c/d gone gone/below; do
		printf '%s' "$i" > "$1/$i/file"
	done
	for i in 1 2 3 4; do
		seq $((i * 3000)) > "$1/swap/$i"
		head -c $((i * 5001)) /dev/urandom > "$1/types/random-$i"
	done
	cp --reflink=always "$1/types/random-4" "$1/types/clone"
	ln "$1/swap/1" "$1/later/link"
	ln "$1/swap/1" "$1/gone/link"
	ln -s ../nowhere "$1/types/symbolic"
	mkfifo "$1/types/fifo"
	mknod "$1/types/character" c 300 70000
	mknod "$1/types/block" b 7 3
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
		"$1/types/socket"
	truncate -s 300000 "$1/types/hole"
	printf middle | dd of="$1/types/hole" bs=1 seek=150000 conv=notrunc status=none
	fallocate -l 65536 "$1/types/allocated"
	: > "$1/types/empty"
	setfattr -n user.note -v first "$1/swap/2"
	setfattr -n user.top -v first "$1"
	setfacl -m u:5:r "$1/swap/3"
	cp /bin/true "$1/types/capable"
	truncate -s 5000 "$1/types/capable"
	chown 1000:100 "$1/types/capable"
	setcap cap_net_raw+ep "$1/types/capable"
	chmod 4711 "$1/swap/4"
	mkdir "$1/late"
	mv "$1/types/random-1" "$1/late/"
	for i in $(seq 70); do
		mkdir "$1/late/$i"
		printf '%s' "$i" > "$1/late/$i/file"
	done
	mv "$1/late/70" "$1/seventy"
	mv "$1/late" "$1/seventy/"
}

sent_second() {
	local a=$1/turn/a
	mv "$a/b/c/d" "$1/turn/d"
	mv "$a/b/c" "$1/turn/d/c"
	mv "$a/b" "$1/turn/d/c/b"
	mv "$a" "$1/turn/d/c/b/a"
	rm -r "$1/gone"
	mkdir "$1/gone"
	printf again > "$1/gone/again"
	mv "$1/swap/1" "$1/swap/0"
	mv "$1/swap/2" "$1/swap/1"
	mv "$1/swap/0" "$1/swap/2"
	rm "$1/types/fifo"
	mkdir "$1/types/fifo"
	printf more >> "$1/swap/3"
	truncate -s 4000 "$1/types/random-4"
	printf changed | dd of="$1/types/hole" bs=1 seek=8192 conv=notrunc status=none
	fallocate -p -o 4096 -l 8192 "$1/types/random-3"
	setfattr -n user.note -v second "$1/swap/1"
	setfattr -x user.top "$1"
	chown 0:0 "$1/types/capable"
	setcap cap_chown+ep "$1/types/capable"
	ln "$1/types/empty" "$1/swap/empty"
	rm "$1/later/link"
	chmod 600 "$1/swap/4"
	rmdir "$1/o257-7-0"
	: > "$1/o258-7-0"
}

make_streams() {
	devices 1 128M
	format -m single
	attach compress=zstd
	quiet btrfs subvolume create "$mnt/live"
	sent_first "$mnt/live"
	sync -f "$mnt"
	quiet btrfs subvolume snapshot -r "$mnt/live" "$mnt/first"
	sent_second "$mnt/live"
	sync -f "$mnt"
	quiet btrfs subvolume snapshot -r "$mnt/live" "$mnt/second"
	seq 3 > "$mnt/live/types/random-2"
	rm -r "$mnt/live/seventy"
	sync -f "$mnt"
	quiet btrfs subvolume snapshot -r "$mnt/live" "$mnt/third"
	quiet btrfs subvolume delete -c "$mnt/live"
	detach
}

fixture streams 'snapshots with all that a send stream can contain' make_streams

# Two snapshots of one subvolume in which files with the same number, type and generation differ in
# what no command of a stream can change. And extents that are shared in parts: a source that was
# overwritten in the middle, whose old bytes another file has; several copies within one file; a
# copy that ends before its source.
make_siblings() {
	local top w
	devices 1 128M
	format -m single
	attach commit=300
	quiet btrfs subvolume create "$mnt/live"
	top=$mnt/live
	seq 60000 > "$top/source"
	truncate -s 262144 "$top/source"
	seq 70000 90000 | head -c 65536 > "$top/twice"
	sync -f "$mnt"
	cp --reflink=always "$top/source" "$top/whole"
	xfs_io -f -c "reflink $top/source 122880 0 24576" "$top/middle" > "$work/log"
	xfs_io -c "reflink $top/twice 0 65536 65536" -c "reflink $top/twice 0 131072 32768" \
		-c "reflink $top/twice 0 163840 65536" "$top/twice" > "$work/log"
	xfs_io -f -c "reflink $top/source 0 0 40960" -c 'truncate 40000' "$top/short" > "$work/log"
	seq 5000 | head -c 8192 | dd of="$top/source" bs=4096 seek=32 conv=notrunc status=none
	sync -f "$mnt"
	for w in one two; do
		quiet btrfs subvolume snapshot "$mnt/live" "$mnt/$w"
	done
	for w in one two; do
		ln -s "to-$w" "$mnt/$w/link"
		mknod "$mnt/$w/char" c 1 "${#w}"
		mknod "$mnt/$w/block" b 7 "$([ $w = one ] && echo 1 || echo 300)"
		echo "$w" > "$mnt/$w/file"
		mkdir "$mnt/$w/directory"
		touch "$mnt/$w/directory/$w"
		chmod "$([ $w = one ] && echo 755 || echo 700)" "$mnt/$w/directory"
	done
	dd if=/dev/zero of="$mnt/two/whole" bs=4096 seek=10 count=1 conv=notrunc status=none
	for w in one two; do
		quiet btrfs property set "$mnt/$w" ro true
	done
	quiet btrfs subvolume delete -c "$mnt/live"
	detach
}

fixture siblings 'snapshots with like files that differ, and extents shared in parts' make_siblings
