# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Fixtures of installed systems, as the installers of distributions lay them out, with the snapshots
# and containers of usual tools.  Only the files are there by which systems are recognized.

# install_system DIR ID VERSION NAME: the files of a system.
install_system() {
	mkdir -p "$1/etc" "$1/usr/lib" "$1/boot"
	printf 'NAME="%s"\nID=%s\nVERSION_ID="%s"\nPRETTY_NAME="%s"\n' \
		"${4%% *}" "$2" "$3" "$4" > "$1/usr/lib/os-release"
	ln -s ../usr/lib/os-release "$1/etc/os-release"
	echo "$2" > "$1/etc/hostname"
}

# make_subvolumes_at PATH...: makes subvolumes below the mount, and the directories above them.
make_subvolumes_at() {
	local path
	for path; do
		mkdir -p "$(dirname "$mnt/$path")"
		subvolume "$mnt/$path"
	done
}

# keep FROM TO [-r]: makes a snapshot, and the directories above it.
keep() {
	mkdir -p "$(dirname "$mnt/$2")"
	quiet btrfs subvolume snapshot "${@:3}" "$mnt/$1" "$mnt/$2"
}

# snapper_info NUMBER DESCRIPTION: what Snapper writes next to a snapshot.
snapper_info() {
	printf '<?xml version="1.0"?>\n<snapshot>\n  <type>single</type>\n  <num>%s</num>\n%s\n%s\n' \
		"$1" "  <date>2026-01-0$1 10:00:00</date>" \
		"  <description>$2</description>" > "$mnt/@/.snapshots/$1/info.xml"
	echo '</snapshot>' >> "$mnt/@/.snapshots/$1/info.xml"
}

# openSUSE: the system is itself a snapshot, and the default subvolume.
make_system_suse() {
	local path root=@/.snapshots/1/snapshot
	devices 1 128M
	format
	attach
	make_subvolumes_at @ @/.snapshots @/home @/var
	mkdir -p "$mnt/@/.snapshots/1"
	keep @ $root
	install_system "$mnt/$root" opensuse-tumbleweed 20251105 'openSUSE Tumbleweed'
	for path in / /.snapshots /home /var; do
		printf 'UUID=%s  %s  btrfs  %s  0  0\n' "$uuid" "$path" \
			"$([ $path = / ] && echo defaults || echo "subvol=/@$path")"
	done > "$mnt/$root/etc/fstab"
	snapper_info 1 'first root filesystem'
	keep $root @/.snapshots/2/snapshot -r
	snapper_info 2 'before &lt;zypp&gt; &amp; after'
	sed -i 's/20251105/20260102/' "$mnt/$root/usr/lib/os-release"
	keep $root @/.snapshots/3/snapshot -r
	snapper_info 3 'timeline'
	quiet btrfs subvolume set-default "$mnt/$root"
	detach
}

# Ubuntu, which Timeshift has restored: the old system stays, and so do its snapshots.
make_system_ubuntu() {
	local date
	devices 1 128M
	format -L laptop
	attach
	make_subvolumes_at @ @home
	install_system "$mnt/@" ubuntu 24.04 'Ubuntu 24.04.1 LTS'
	{
		printf '# <file system> <mount point> <type> <options> <dump> <pass>\n'
		printf 'UUID=%s / btrfs defaults,subvol=@ 0 1\n' "$uuid"
		printf 'UUID=%s /home btrfs defaults,subvol=@home 0 2\n' "$uuid"
		printf 'LABEL=laptop /mnt/old\\040data btrfs subvol=@data 0 2\n'
		printf 'LABEL=other /srv btrfs subvol=@srv 0 2\n'
		printf 'UUID=1234-ABCD /boot/efi vfat umask=0077 0 1\n'
	} > "$mnt/@/etc/fstab"
	for date in 2026-01-01_10-00-01 2026-01-02_10-00-01; do
		keep @ timeshift-btrfs/snapshots/$date/@
		keep @home timeshift-btrfs/snapshots/$date/@home
		printf '{\n  "created" : "1767261601",\n  "comments" : "%s",\n  "live" : "false"\n}\n' \
			"Before the upgrade of ${date%%_*}" \
			> "$mnt/timeshift-btrfs/snapshots/$date/info.json"
	done
	mv "$mnt/@" "$mnt/@before"
	keep timeshift-btrfs/snapshots/2026-01-01_10-00-01/@ @
	detach
}

# Fedora with snapshots of btrbk, and the containers of Docker, Podman and machined.
make_system_fedora() {
	local docker=root/var/lib/docker storage=root/var/lib/containers/storage layer
	devices 1 128M
	format -L fedora
	attach
	make_subvolumes_at root home
	install_system "$mnt/root" fedora 41 'Fedora Linux 41 (Workstation Edition)'
	keep root btrbk_snapshots/root.20260101T1000 -r
	keep root btrbk_snapshots/root.20260102T1000_1 -r

	mkdir -p "$mnt/$docker/btrfs/subvolumes" "$mnt/root/var/lib/machines" \
		"$mnt/$docker/image/btrfs/layerdb/mounts/c0ffee" "$mnt/$docker/containers/c0ffee"
	for layer in aaaa bbbb-init bbbb; do
		make_subvolumes_at $docker/btrfs/subvolumes/$layer
		install_system "$mnt/$docker/btrfs/subvolumes/$layer" alpine 3.20 'Alpine Linux v3.20'
	done
	printf bbbb > "$mnt/$docker/image/btrfs/layerdb/mounts/c0ffee/mount-id"
	printf '{"State":{"Name":"no"},"ID":"c0ffee","Name":"/web","Args":["a\\"b",1,true]}' \
		> "$mnt/$docker/containers/c0ffee/config.v2.json"

	mkdir -p "$mnt/$storage/btrfs/subvolumes" "$mnt/$storage/btrfs-containers" \
		"$mnt/$storage/btrfs-images"
	for layer in cccc dddd; do
		make_subvolumes_at $storage/btrfs/subvolumes/$layer
		install_system "$mnt/$storage/btrfs/subvolumes/$layer" debian 12 \
			'Debian GNU/Linux 12 (bookworm)'
	done
	printf '[{"id":"1","names":["db"],"layer":"dddd","metadata":"{\\"name\\":\\"db\\"}"}]' \
		> "$mnt/$storage/btrfs-containers/containers.json"
	printf '[{"id":"2","names":["docker.io/library/debian:12"],"layer":"cccc"}]' \
		> "$mnt/$storage/btrfs-images/images.json"

	make_subvolumes_at root/var/lib/machines/arch
	install_system "$mnt/root/var/lib/machines/arch" arch '' 'Arch Linux'
	detach
}

fixture system-suse 'openSUSE with snapshots of Snapper, one of which is the system' \
	make_system_suse
fixture system-ubuntu 'Ubuntu, restored from a snapshot of Timeshift' make_system_ubuntu
fixture system-fedora 'Fedora with snapshots of btrbk, and containers' make_system_fedora
