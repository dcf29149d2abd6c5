# shellcheck shell=bash disable=SC2154 # the variables are those of scripts/bench
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The commands that scripts/bench compares. Each accepts the name of an image.

image() {
	printf '%s/%s.img' "$images" "$1"
}

walk() {
	"$walk" "$(image "$1")"
}

walk_one_thread() {
	"$walk" -j 1 "$(image "$1")"
}

list_subvolumes() {
	"$walk" subvolumes --json "$(image "$1")"
}

# A layer that changes nothing, at every edge of the graph.
walk_with_probes() {
	"$walk" --insert 'debug/probe@*' "$(image "$1")"
}

walk_with_statistics() {
	"$walk" --probe-stats=xlator --probe-output /dev/null "$(image "$1")"
}

floor() {
	"$build/bench/floor" "$work/$1.all" "$(image "$1")"
}

floor_of_names() {
	"$build/bench/floor" "$work/$1.names" "$(image "$1")"
}

# These blocks are scattered: on a cold image, the kernel needs read-ahead requests.
cold_floor_of_names() {
	"$build/bench/floor" -a $((16 << 20)) "$work/$1.names" "$(image "$1")"
}

columns() {
	"$walk" -o path,size,mtime "$(image "$1")"
}

# All members, which is the default.
json() {
	"$walk" --json "$(image "$1")"
}

columns_one_thread() {
	"$walk" -j 1 -o path,size,mtime "$(image "$1")"
}

json_one_thread() {
	"$walk" -j 1 --json "$(image "$1")"
}

chunks() {
	"$walk" chunks --json "$(image "$1")"
}

# The time includes the mount, because a list of files requires it.
mount_and_find() {
	local status=0
	mount -t btrfs -o loop,ro "$(image "$1")" "$work/mnt"
	timeout "$find_limit" find "$work/mnt" -type f || status=$?
	umount "$work/mnt"
	[[ $status -eq 0 || $status -eq 124 ]]
}

restore() {
	btrfs restore -D -vv -s "$(image "$1")" "$work/mnt"
}

dump_text() {
	"$walk" dump --tree fs "$(image "$1")"
}

dump_json() {
	"$walk" dump --json --tree fs "$(image "$1")"
}

dump_tree() {
	btrfs inspect-internal dump-tree -t 5 "$(image "$1")"
}

check() {
	"$walk" check -q "$(image "$1")"
}

btrfs_check() {
	btrfs check "$(image "$1")"
}

check_data() {
	"$walk" check -q --data "$(image "$1")"
}

# All bytes of the image; holes in its file cost little.
read_image() {
	dd if="$(image "$1")" of=/dev/null bs=1M
}

# In these and the following commands, both sides find the files themselves.
cat_all() {
	"$walk" -0 "$(image "$1")" | xargs -0 "$walk" cat "$(image "$1")"
}

tar_all() {
	"$walk" tar "$(image "$1")"
}

sum_all() {
	"$walk" sum "$(image "$1")"
}

extract_all() {
	"$walk" extract -C "$target/new" "$(image "$1")"
}

# on_mount NAME COMMAND...: in a new mount; the time includes mounting.
on_mount() {
	local status=0
	mount -t btrfs -o loop,ro "$(image "$1")" "$work/mnt"
	(cd "$work/mnt" && "${@:2}") || status=$?
	umount "$work/mnt"
	return $status
}

each_file() {
	find . -type f -print0 | xargs -0 "$@"
}

mount_and_cat() {
	on_mount "$1" each_file cat
}

# on_our_mount NAME COMMAND...: the same on a mount by btrfs-walk.
on_our_mount() {
	local status=0
	"$walk" mount -q --background "$(image "$1")" "$work/mnt"
	(cd "$work/mnt" && "${@:2}") || status=$?
	umount "$work/mnt"
	return $status
}

our_mount_and_find() {
	on_our_mount "$1" find . -type f
}

our_mount_and_cat() {
	on_our_mount "$1" each_file cat
}

# GNU tar does not read files if it writes to /dev/null directly.
mount_and_tar() {
	on_mount "$1" tar -c -f /dev/zero .
}

mount_and_sum() {
	on_mount "$1" each_file sha256sum
}

space() {
	"$walk" space --json "$(image "$1")"
}

du_all() {
	"$walk" du --raw "$(image "$1")"
}

mount_and_du() {
	on_mount "$1" btrfs filesystem du --raw .
}

list_recursively() {
	"$walk" ls -R "$(image "$1")"
}

list_with_inodes() {
	"$walk" ls -lR "$(image "$1")"
}

walk_directories() {
	"$walk" --type d "$(image "$1")"
}

compression() {
	"$walk" compression --raw "$(image "$1")"
}

mount_and_compsize() {
	on_mount "$1" compsize -b .
}

# Only the data; extract also restores attributes.
restore_all() {
	mkdir "$target/new"
	btrfs restore "$(image "$1")" "$target/new"
}

diff_snapshots() {
	"$walk" diff "$(image "$1")" before after
}

send_on_mount() {
	on_mount "$1" send_snapshots
}

# The reader ends at the end of the stream, which send reports as an error.
send_snapshots() {
	(set +o pipefail; btrfs send -q --no-data -p before after | btrfs receive --dump)
}
