# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about directory trees, and the directory trees that other fixtures use.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures

# small_tree DIR: makes some 20 files of every common shape.
small_tree() {
	local top=$1 i
	mkdir -p "$top/docs/letters" "$top/source/library" "$top/empty"
	for i in 01 02 03 04 05 06 07 08; do
		printf 'letter number %s\n' "$i" > "$top/docs/letters/$i.txt"
		: > "$top/source/library/part-$i.c"
	done
	head -c 20000 /dev/zero | tr '\0' x > "$top/source/large.bin"
	ln "$top/source/large.bin" "$top/docs/second name of large.bin"
	ln -s ../source "$top/docs/symbolic-link"
	mkfifo "$top/docs/pipe"
	printf 'at the top\n' > "$top/top-file"
}

# wide_tree DIR [DIRECTORIES [FILES [BYTES]]]: makes files whose metadata fills many blocks but
# compresses well: the contents are stored inline in the leaves.
wide_tree() {
	local top=$1 i j dirs=${2-8} files=${3-50} bytes=${4-1500} line
	for ((i = 0; i < dirs; i++)); do
		mkdir "$top/dir-$i"
		for ((j = 0; j < files; j++)); do
			printf -v line '%*s' "$bytes" "$i/$j"
			printf '%s' "$line" > "$top/dir-$i/file-$j"
		done
	done
}

# names_tree DIR: makes names that are hard to print.
names_tree() {
	python3 - "$1" << 'PYTHON'
import os, socket, stat, sys

os.chdir(os.fsencode(sys.argv[1]))

def put(name, data=b""):
    with open(name, "xb") as stream:
        stream.write(data)

names = [
    b"new\nline", b"\n", b"tab\there", b"back\\slash", b"quote\"double",
    b"quote'single", b" leading blank", b"trailing blank ", b" ", b"*", b"?",
    b"-n", b"--", b"...", b"..a", b".hidden", b"\x01\x02\x7f", b"\x1b[31mred",
    "sm\u00f8rrebr\u00f8d".encode(), "\u65e5\u672c\u8a9e".encode(),
    b"latin1-\xe9t\xe9", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
    b"x" * 255, b"\xff" * 255, "\u00e9".encode() * 127, b"%s%n", b"$(a)",
]
os.mkdir(b"names")
for name in names:
    put(b"names/" + name, name)
for name in names:
    os.mkdir(b"names/D" + name[:250])
    put(b"names/D" + name[:250] + b"/" + name)

# Every kind of inode.
os.mkdir(b"kinds")
put(b"kinds/regular")
os.mkfifo(b"kinds/fifo")
os.mknod(b"kinds/block-device", 0o600 | stat.S_IFBLK, os.makedev(7, 200))
os.mknod(b"kinds/character-device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
os.mknod(b"kinds/socket", 0o600 | stat.S_IFSOCK)
os.symlink(b"regular", b"kinds/symlink")
os.symlink(b"nowhere", b"kinds/dangling-symlink")
os.symlink(b"x" * 3000, b"kinds/long-symlink")
os.mkdir(b"kinds/directory")
PYTHON
}

# Pairs of names with the same hash in the key of their DIR_ITEM, so that both share one item. The
# pair of equal length also collides in the key of an INODE_EXTREF, in any directory.
collision_tree() {
	mkdir "$1/collisions" "$1/collisions/hash-1271c1a4-name" \
		"$1/collisions/links"
	: > "$1/collisions/hash-c0649d5.dir"
	: > "$1/collisions/hash-2689ea98-name"
	: > "$1/collisions/hash-127ca1aa-name"
	ln -s nowhere "$1/collisions/hash-30807ce4-name"
	: > "$1/collisions/hash-1271c1a4-name/inside"
	: > "$1/collisions/hash-308b5cea-name"
	mkdir "$1/collisions/hash-49270fd3-name" \
		"$1/collisions/hash-54977b78.dir"
	: > "$1/collisions/hash-49270fd3-name/inside"
	: > "$1/collisions/hash-54977b78.dir/inside"
	# Three entries were in the item, the middle one is gone again.
	: > "$1/collisions/hash-126c51a1-name"
	: > "$1/collisions/hash-3090cced-name"
	rm "$1/collisions/hash-126c51a1-name"
}

# links_tree DIR: makes an inode with too many names in two directories for INODE_REF items, and
# directories older than their parents.
links_tree() {
	local top=$1 i long
	printf -v long '%0190d' 0
	mkdir "$top/many" "$top/more"
	printf 'many names\n' > "$top/many/original"
	for ((i = 0; i < 120; i++)); do
		ln "$top/many/original" "$top/many/$long-$i"
		ln "$top/many/original" "$top/more/$long-$i"
	done
	# These two have equal hashes as extended references.
	ln "$top/many/original" "$top/more/hash-127ca1aa-name"
	ln "$top/many/original" "$top/more/hash-30807ce4-name"
	# The first name may go: what remains is only extended references.
	rm "$top/many/original"

	mkdir -p "$top/older/inner"
	printf 'moved\n' > "$top/older/inner/file"
	mkdir "$top/younger"
	mv "$top/older" "$top/younger/older"
	mkdir "$top/youngest"
	mv "$top/younger/older/inner" "$top/youngest/renamed"
	mv "$top/youngest/renamed/file" "$top/youngest/renamed/other-name"
}

# data_tree DIR: makes file contents of every kind.
data_tree() {
	mkdir "$1/data"
	truncate -s 1M "$1/data/only-hole"
	printf 'end' | dd of="$1/data/hole-then-data" bs=1 seek=300000 \
		conv=notrunc status=none
	fallocate -l 256K "$1/data/preallocated"
	head -c 200000 /dev/zero | tr '\0' y > "$1/data/plain"
	printf 'inline' > "$1/data/inline"
	printf 'cloned' > "$1/data/source"
	cp --reflink=always "$1/data/plain" "$1/data/reflink"
	fallocate -p -o 8192 -l 8192 "$1/data/plain"
	python3 -c '
import os, sys
os.setxattr(sys.argv[1], "user.note", b"n" * 1000)
os.setxattr(sys.argv[1], "user.other", b"o")
' "$1/data/inline"
}

make_plain() {
	devices 1 128M
	format
	attach
	small_tree "$mnt"
	names_tree "$mnt"
	collision_tree "$mnt"
	links_tree "$mnt"
	data_tree "$mnt"
	detach
	tree_has 5 'INODE_EXTREF'
	tree_has 5 'namelen 0|name_len 255'
	dump_tree -t 5
	python3 - "$work/dump" << 'PYTHON' || die "plain: no hash collisions"
import re, sys
text = open(sys.argv[1], errors="replace").read()
shared = [item for item in re.split(r"\n\titem ", text)
          if re.match(r"\d+ key \(\d+ DIR_ITEM ", item)
          and item.count("location key") > 1]
sys.exit(len(shared) < 4)
PYTHON
}

make_empty() {
	devices 1 128M
	format
}

# make_format OPTION...: the small and the wide tree, with these options of mkfs.btrfs.
make_format() {
	devices 1 128M
	format "$@"
	attach
	small_tree "$mnt"
	wide_tree "$mnt" 4 30
	detach
}

make_nodesize() {
	make_format --nodesize "$1"
	super_has "^nodesize[[:space:]]+$1\$"
}

make_checksum() {
	make_format --csum "$1"
	super_has "^csum_type[[:space:]]+[0-9]+ \\(${1}.*\\)\$"
}

make_compressed() {
	local kind
	devices 1 128M
	format
	for kind in zlib lzo zstd; do
		attach "compress-force=$kind"
		mkdir "$mnt/$kind"
		small_tree "$mnt/$kind"
		yes 'so many lines' | head -c 1000 > "$mnt/$kind/inline" || true
		yes 'so many lines' | head -c 500000 > "$mnt/$kind/large" || true
		sync -f "$mnt"
		umount "$mnt"
	done
	attach
	detach
	super_has COMPRESS_ZSTD
	tree_has 5 'compression 2'
}

# make_levels DIRECTORIES FILES LEVEL
make_levels() {
	devices 1 128M
	format --nodesize 4096
	attach
	wide_tree "$mnt" "$1" "$2" 1900
	detach
	dump_tree -t 5
	dump_has "^node [0-9]+ level $3 .* owner FS_TREE"
}

make_big_directory() {
	local i
	devices 1 128M
	format --nodesize 4096
	attach
	mkdir "$mnt/big"
	: > "$mnt/big/entry-0"
	# Hard links to a handful of files, for the sake of a small image.
	for ((i = 1; i < 2000; i++)); do
		if ((i % 200 == 0)); then
			: > "$mnt/big/entry-$i"
		else
			ln "$mnt/big/entry-$((i / 200 * 200))" "$mnt/big/entry-$i"
		fi
	done
	for ((i = 0; i < 2000; i += 3)); do
		rm "$mnt/big/entry-$i"
	done
	detach
}

make_root_tree_levels() {
	local i
	devices 1 128M
	format --nodesize 4096
	attach
	for ((i = 0; i < 220; i++)); do
		if ((i % 20 == 0)); then
			mkdir "$mnt/set-$i"
		fi
		quiet btrfs subvolume create "$mnt/set-$((i / 20 * 20))/volume-$i"
		: > "$mnt/set-$((i / 20 * 20))/volume-$i/file"
	done
	detach
	super_has '^root_level[[:space:]]+[1-9]'
}

fixture plain \
	'one device, defaults of mkfs.btrfs 6.2, odd names, links, holes' \
	make_plain
fixture empty 'just made, no file at all' make_empty
fixture nodesize-4k 'nodes of 4 KiB' make_nodesize 4096
fixture nodesize-8k 'nodes of 8 KiB' make_nodesize 8192
fixture nodesize-32k 'nodes of 32 KiB' make_nodesize 32768
fixture nodesize-64k 'nodes of 64 KiB' make_nodesize 65536
fixture checksum-xxhash64 'checksums by xxhash64' make_checksum xxhash
fixture checksum-sha256 'checksums by sha256' make_checksum sha256
fixture checksum-blake2 'checksums by blake2b' make_checksum blake2
fixture compressed 'files compressed by zlib, lzo and zstd' make_compressed
fixture levels-2 'file tree of two levels, nodes of 4 KiB' make_levels 4 20 1
fixture levels-3 'file tree of three levels, nodes of 4 KiB' make_levels 6 100 2
fixture big-directory 'one directory with many entries, a third deleted' \
	make_big_directory
fixture root-tree-levels '220 subvolumes, so that the tree of roots has levels' \
	make_root_tree_levels
