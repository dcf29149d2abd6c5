#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every command of the ```sh blocks of README and docs, line by line, on the images they name,
# made from fixtures. Commands of tools that are not installed are skipped. Of lines that install
# packages or begin with `sudo`, only the rest is run, and none of `make check`, which runs this.
# Those of docs/fleet are run by fleet.sh.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/documented.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 raid5-3 subvolumes gone || exit 1
cd "$WORK" || exit 1
ln -s "$BUILD/fixtures/plain/dev1.img" image.img
ln -s "$BUILD/fixtures/subvolumes/dev1.img" disk.img
ln -s "$BUILD/fixtures/gone/dev1.img" lived.img
ln -s "$BUILD/fixtures/raid5-3/dev1.img" a.img
ln -s "$BUILD/fixtures/raid5-3/dev2.img" b.img
ln -s "$BUILD/fixtures/raid5-3/dev3.img" c.img
cp --sparse=always disk.img copy.img
cp --sparse=always image.img copy1.img
cp --sparse=always copy1.img copy2.img
printf '0x0 +\n0x0 0x40000000 +\n' | tee copy1.map > copy2.map
zstd -q -d "$ROOT/tests/data/containers/l2.img.zst" -o luks.img
printf secret > secret.key
zstd -q -d --sparse "$ROOT/tests/data/containers/host.img.zst" -o host.img
python3 "$ROOT/tests/support/wrap.py" lvm image.img pv1.img pv2.img
python3 "$ROOT/tests/support/wrap.py" md image.img md1.img md2.img md3.img level=5
python3 "$ROOT/tests/support/wrap.py" partclone image.img backup.img
echo 'BTRFS error (device sda1): open_ctree failed' > kernel.log
for table in gpt:whole-disk:2 two:two:1 two:two:130; do
    IFS=: read -r table disk offset <<< "$table"
    [ -e "$disk.img" ] || zstd -q -d "$ROOT/fixtures/disks/$table.img.zst" -o "$disk.img"
    dd if="$(realpath "$([ "$offset" = 1 ] && echo disk.img || echo image.img)")" of="$disk.img" \
        bs=1M seek="$offset" \
        conv=notrunc,sparse status=none
done
split -b 100M -d -a 3 --numeric-suffixes=1 whole-disk.img whole-disk.img.
zstd -q -d "$ROOT/fixtures/metadumps/raid10-4.bti.zst" -o dump.bti
mkdir MNT COPY bin && ln -s "$PROGRAM" bin/btrfs-walk
export PATH=$WORK/bin:$PATH
duckdb_of_node "$WORK/bin"

no_mount=
if ! why=$(have_mount disk.img MNT); then
    no_mount=1
    skip FUSE "commands that mount: $why"
fi

while IFS= read -r -d '' line; do
    command=$line
    folder=$WORK
    case $line in
    '' | '#'*) continue ;;
    *'git clone'* | *'make check'* | *'make bench'* | *'make fuzz'*) continue ;;
    sudo*'&& '* | scripts/install-deps*'&& '*) command=${line#*&& } ;;
    sudo*) continue ;;
    'ncdu '*) continue ;; # it needs a terminal
    *MNT*) [ -z "$no_mount" ] || continue ;;
    esac
    if tool=$(lacks_tool "$command"); then skip "$tool" "${command%%$'\n'*}"; continue; fi
    case $command in make* | scripts/*) folder=$ROOT ;; esac
    works "$folder" "$command" "$line"
done < <(documented "$ROOT/README.md" "$ROOT"/docs/*.md "$ROOT"/docs/{probes,xlators}/README.md \
    "$ROOT"/docs/problems/{formats,search,tools}.md)

# The images that docs/problems/formats.md makes have the files of the subvolume.
"$PROGRAM" sum --relative --subvol home disk.img > home.sums
same_as_subvolume() { (cd "$1" && sha256sum --quiet -c ../home.sums); }
if have unsquashfs && [ -e system.squashfs ]; then
    unsquashfs -q -n -d squashfs system.squashfs > "$WORK/out" 2>&1
    holds "the squashfs image has the files of the subvolume" same_as_subvolume squashfs
fi
if have fsck.erofs && [ -e system.erofs ]; then
    fsck.erofs --extract=erofs system.erofs > "$WORK/out" 2>&1
    holds "the EROFS image has the files of the subvolume" same_as_subvolume erofs
fi
holds "the container image is consistent" python3 - << 'END'
import hashlib, json, tarfile
def blob(entry):
    data = open("image/blobs/sha256/" + entry["digest"].removeprefix("sha256:"), "rb").read()
    assert len(data) == entry["size"]
    assert "sha256:" + hashlib.sha256(data).hexdigest() == entry["digest"]
    return data
assert json.load(open("image/oci-layout"))["imageLayoutVersion"] == "1.0.0"
manifest = json.loads(blob(json.load(open("image/index.json"))["manifests"][0]))
config = json.loads(blob(manifest["config"]))
assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
blob(manifest["layers"][0])
assert tarfile.open("layer.tar").getnames()
END
holds "its layer has the same bytes every time" cmp layer.tar \
    <("$PROGRAM" tar --sort=name --mtime=@0 --subvol home -j 1 disk.img)

# Runs the commands that `make demo` suggests.
(cd "$ROOT" && make demo) > "$WORK/demo" 2>&1
holds "make demo names what was built" grep -q '^Built .*/btrfs-walk: btrfs-walk [0-9]' "$WORK/demo"
holds "no line of a compiler" [ "$(grep -cE '^ +(CC|LD|AR) |gcc' "$WORK/demo")" -eq 0 ]
holds "the paths of an image" grep -qx '/@home/bob/README' "$WORK/demo"
next=0
while read -r line; do
    next=$((next + 1))
    works "$ROOT" "$line"
done < <(sed -n '/^Three commands/,$s/^  \(.*\)/\1/p' "$WORK/demo")
is "make demo names three commands and help" "$next" 4

# The command of README with and without root, and with and without sudo: tools that only note.
mkdir tools
printf '#!/bin/sh\necho "$PACKAGES_FOR"\n' > tools/id
printf '#!/bin/sh\necho "apt-get as $PACKAGES_FOR" >&3\n' > tools/apt-get
printf '#!/bin/sh\necho "sudo $*" >&3\nPACKAGES_FOR=0 exec "$@"\n' > sudo
chmod +x tools/* sudo
for tool in env bash dirname sleep; do ln -s "$(command -v $tool)" tools/; done
# install_deps UID: prints the commands that were called; the messages are in $WORK/err.
install_deps() {
    (cd "$ROOT" && PACKAGES_FOR=$1 PATH=$WORK/tools scripts/install-deps \
        3>&1 > /dev/null 2> "$WORK/err")
}
is "install-deps as root calls apt-get" "$(install_deps 0)" 'apt-get as 0'
is "install-deps as a user without sudo calls nothing" "$(install_deps 1000)" ''
holds "is told what to do" grep -q 'takes root, .* as root: apt-get install gcc ' "$WORK/err"
mv sudo tools
is "install-deps as root does not call sudo" "$(install_deps 0)" 'apt-get as 0'
is "install-deps as a user calls sudo" \
    "$(install_deps 1000)" $'sudo scripts/install-deps\napt-get as 0'
[ "$passed" -ge 50 ] || fail "only $passed commands were found and run"
finish
