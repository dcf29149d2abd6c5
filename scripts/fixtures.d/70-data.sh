# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fixtures about the contents of files: shapes of extents, and sectors with one or all copies bad.

# shellcheck disable=SC2154 # mnt, dev and file belong to make-fixtures
# shellcheck disable=SC2034 # check, lead and others are read there

# pattern WORD BYTES: prints contents that compress well although all sectors differ.
pattern() {
	python3 -c '
import sys
word, size = sys.argv[1], int(sys.argv[2])
for i in range((size + 4095) // 4096):
    line = b"%s %06d\n" % (word.encode(), i)
    sector = (line * (4096 // len(line) + 1))[:4096]
    sys.stdout.buffer.write(sector[:min(4096, size - 4096 * i)])
' "$1" "$2"
}

# overwrite FILE BLOCK COUNT: overwrites blocks of 4 KiB, and syncs.
overwrite() {
	pattern "over-$2" $(($3 * 4096)) | dd of="$1" bs=4096 seek="$2" \
		conv=notrunc,fsync iflag=fullblock status=none
}

# packed FILE KIND: makes a compressed file.
packed() {
	: > "$1"
	quiet btrfs property set "$1" compression "$2"
}

# Clones of parts of extents, also of compressed ones, and extents of which only the beginning, the
# middle or the end is still in use.
make_clones() {
	local kind
	devices 1 128M
	format
	attach
	for kind in plain zlib lzo zstd; do
		if [[ $kind != plain ]]; then
			packed "$mnt/$kind" "$kind"
		fi
		pattern "$kind" 400000 >> "$mnt/$kind"
		sync -f "$mnt"
		cp --reflink=always "$mnt/$kind" "$mnt/$kind-clone"
		# Parts at other offsets, some of them twice.
		: > "$mnt/$kind-parts"
		python3 - "$mnt/$kind" "$mnt/$kind-parts" << 'PYTHON'
import fcntl, struct, sys
FICLONERANGE = 0x4020940d
source, target = open(sys.argv[1], "rb"), open(sys.argv[2], "r+b")
for block, count, to in (20, 9, 3), (1, 3, 40), (31, 4, 12), (30, 40, 50), \
                        (20, 9, 95), (0, 1, 110), (20, 1, 111), (22, 1, 112):
    fcntl.ioctl(target, FICLONERANGE, struct.pack(
        "=qQQQ", source.fileno(), block * 4096, count * 4096, to * 4096))
PYTHON
		overwrite "$mnt/$kind" 0 3
		overwrite "$mnt/$kind" 33 2
		overwrite "$mnt/$kind" 60 30
		truncate -s 390001 "$mnt/$kind-clone"
		overwrite "$mnt/$kind-clone" 10 1
	done
	quiet btrfs subvolume create "$mnt/volume"
	cp --reflink=always "$mnt/zstd-parts" "$mnt/volume/zstd-parts"
	quiet btrfs subvolume snapshot -r "$mnt/volume" "$mnt/snapshot"
	overwrite "$mnt/volume/zstd-parts" 51 5
	fallocate -p -o $((53 * 4096)) -l 8192 "$mnt/volume/zstd-parts"
	detach
	tree_has 5 'extent data offset [1-9]'
}

# make_shapes OPTION...: holes, preallocated space, contents in the tree, files that end inside a
# sector, sizes of more than a TiB, and files without checksums.
make_shapes() {
	local i
	devices 1 128M
	format "$@"
	attach
	mkdir "$mnt/inline" "$mnt/ends"
	for i in 0 1 100 2047 2048 2049 4095; do
		pattern inline "$i" > "$mnt/inline/$i"
		packed "$mnt/inline/zstd-$i" zstd
		pattern inline "$i" >> "$mnt/inline/zstd-$i"
	done
	for i in 4096 4097 8191 131071 131072 131073; do
		pattern end "$i" > "$mnt/ends/$i"
		packed "$mnt/ends/zlib-$i" zlib
		pattern end "$i" >> "$mnt/ends/zlib-$i"
	done
	# The end moved within a sector, and over one.
	for i in 100 5000 130000; do
		pattern cut 140000 > "$mnt/ends/cut-to-$i"
		sync -f "$mnt"
		truncate -s "$i" "$mnt/ends/cut-to-$i"
		cp --reflink=always "$mnt/ends/cut-to-$i" \
			"$mnt/ends/cut-to-$i-and-longer"
		truncate -s 200000 "$mnt/ends/cut-to-$i-and-longer"
	done
	truncate -s 100000 "$mnt/only-hole"
	: > "$mnt/holes"
	overwrite "$mnt/holes" 5 2
	overwrite "$mnt/holes" 9 1
	overwrite "$mnt/holes" 40 8
	truncate -s 300001 "$mnt/holes"
	pattern punched 200000 > "$mnt/punched"
	sync -f "$mnt"
	fallocate -p -o 5000 -l 20000 "$mnt/punched"
	fallocate -p -o 65536 -l 65536 "$mnt/punched"
	fallocate -z -o 150000 -l 30000 "$mnt/punched"
	fallocate -l 256K "$mnt/preallocated"
	fallocate -l 256K "$mnt/partly-written"
	overwrite "$mnt/partly-written" 0 1
	overwrite "$mnt/partly-written" 30 7
	pattern kept 10000 > "$mnt/set-aside-behind-the-end"
	fallocate -n -o 8192 -l 128K "$mnt/set-aside-behind-the-end"
	: > "$mnt/without-checksums"
	chattr +C "$mnt/without-checksums"
	pattern unchecked 100000 >> "$mnt/without-checksums"
	sync -f "$mnt"
	overwrite "$mnt/without-checksums" 3 2
	: > "$mnt/1.5TiB"
	overwrite "$mnt/1.5TiB" 0 1
	printf 'in the middle of nowhere' | dd of="$mnt/1.5TiB" bs=1 \
		seek=1234567890123 conv=notrunc status=none
	truncate -s 1536G "$mnt/1.5TiB"
	detach
	tree_has 5 'type 2 \(prealloc\)'
}

# make_compressed_checksum CHECKSUM: the fixture `compressed` with another checksum.
make_compressed_checksum() {
	local kind
	devices 1 128M
	format --csum "$1"
	attach
	for kind in zlib lzo zstd; do
		packed "$mnt/$kind" "$kind"
		pattern "$kind" 300000 >> "$mnt/$kind"
		packed "$mnt/$kind-inline" "$kind"
		pattern "$kind" 1500 >> "$mnt/$kind-inline"
	done
	pattern plain 300000 > "$mnt/plain"
	detach
	tree_has 5 'compression 3'
}

# logical FILE BLOCK: prints the logical address of a block of an uncompressed file, or of a stored
# block of a compressed one.
logical() {
	filefrag -b4096 -v "$1" | tr -d '.:' | awk -v block="$2" '
		$1 ~ /^[0-9]+$/ && block >= $2 && block <= $3 {
			print ($4 + (/encoded/ ? 0 : block - $2)) * 4096 }'
}

# spoil_later LOGICAL WHERE PROFILE: records the positions of a sector: on a mirror ("mirror-N"), or
# on the devices with these indexes ("N,N").
spoil_later() {
	local i mirror offset device
	btrfs-map-logical -l "$1" -b 4096 "${dev[1]}" 2> "$work/log" |
		awk '$1 == "mirror" { print $2, $6, $8 }' > "$work/mirrors"
	while read -r mirror offset device; do
		for i in "${!dev[@]}"; do
			[[ ${dev[i]} == "$device" ]] || continue
			# Further mirrors of RAID5 and RAID6 are computed.
			if [[ $2 == "mirror-$mirror" ||
				(",$2," == *",$i,"* &&
				($mirror == 1 || $3 != raid[56])) ]]; then
				printf '%s %s\n' "$i" "$offset" >> "$work/spoil"
			fi
		done
	done < "$work/mirrors"
}

# spoil: overwrites the recorded positions in the finished images.
spoil() {
	local i offset
	[[ -s $work/spoil ]] || die "$name: nothing to spoil"
	while read -r i offset; do
		pattern spoiled 4096 | dd of="${file[i]}" bs=4096 \
			seek="$offset" oflag=seek_bytes conv=notrunc \
			iflag=fullblock status=none
	done < "$work/spoil"
	rm "$work/spoil"
}

# make_bad_copy PROFILE DEVICES WHERE: every fourth sector of the data is bad there (see
# spoil_later), but has another good copy or parity.
make_bad_copy() {
	local block first
	devices "$2" 256M
	format -m "$1" -d "$1"
	attach
	pattern large 600000 > "$mnt/large"
	packed "$mnt/zstd" zstd
	pattern zstd 300000 >> "$mnt/zstd"
	printf 'in the tree' > "$mnt/inline"
	sync -f "$mnt"
	for block in {0..146..4}; do
		logical "$mnt/large" "$block"
	done > "$work/wanted"
	logical "$mnt/zstd" 0 >> "$work/wanted"
	detach
	btrfs device scan "${dev[@]}" > "$work/log" 2>&1
	: > "$work/spoil"
	while read -r first; do
		spoil_later "$first" "$3" "$1"
	done < "$work/wanted"
	record ""
	if [[ $3 != none ]]; then
		spoil
		# The data of this one happen to be read from the other device.
		[[ $1 == raid10 ]] || about 'sum-stderr: (bad|good|copy|mismatch)'
	fi
	rm -f "$work/spoil"
}

# Bad sectors without another copy.
make_bad_data() {
	local kind
	devices 1 128M
	format -m dup -d single
	attach
	for kind in good bad; do
		pattern "$kind" 100000 > "$mnt/$kind"
		packed "$mnt/$kind-zstd" zstd
		pattern "$kind" 300000 >> "$mnt/$kind-zstd"
	done
	printf 'inline' > "$mnt/inline"
	sync -f "$mnt"
	cp --reflink=always "$mnt/bad" "$mnt/clone-of-bad"
	overwrite "$mnt/clone-of-bad" 12 1
	logical "$mnt/bad" 12 > "$work/wanted"
	logical "$mnt/bad-zstd" 40 >> "$work/wanted"
	detach
	btrfs device scan "${dev[@]}" > "$work/log" 2>&1
	: > "$work/spoil"
	while read -r kind; do
		spoil_later "$kind" mirror-1 single
	done < "$work/wanted"
	record ""
	spoil
	about 'sum-exit: 1'
	about 'sum-stderr: /bad: bytes .* cannot be read'
	about 'sum-stderr: /bad-zstd: bytes .* cannot be read'
}

fixture data-clones 'cloned and partly overwritten extents' make_clones
fixture data-shapes 'holes, space set aside, inline, large, no checksums' \
	make_shapes
fixture data-shapes-holes 'the same, and holes have items of their own' \
	make_shapes -O '^no-holes'
for kind in xxhash sha256 blake2; do
	fixture "compressed-$kind" "compressed, with checksums by $kind" \
		make_compressed_checksum "$kind"
done
fixture data-raid0-3 'data over several stripes of RAID0' \
	make_bad_copy raid0 3 none
fixture bad-copy-dup 'DUP, sectors of the first copy of data bad' \
	make_bad_copy dup 1 mirror-1
fixture bad-copy-raid1 'RAID1, sectors of data bad on device 1' \
	make_bad_copy raid1 2 1
fixture bad-copy-raid1c3 'RAID1C3, sectors of data bad on devices 1 and 2' \
	make_bad_copy raid1c3 3 1,2
fixture bad-copy-raid10 'RAID10, sectors of data bad on device 1' \
	make_bad_copy raid10 4 1
fixture bad-copy-raid5 'RAID5, sectors of data bad on device 1' \
	make_bad_copy raid5 3 1
fixture bad-copy-raid6 'RAID6, sectors of data bad on devices 1 and 2' \
	make_bad_copy raid6 4 1,2
degraded bad-copy-raid1 1
degraded bad-copy-raid1c3 1 2
degraded bad-copy-raid10 1
degraded bad-copy-raid5 1
degraded bad-copy-raid6 1 2
fixture bad-data 'sectors of data bad in their only copy' make_bad_data
