#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every command of the ```sh blocks of README and docs, line by line, on the images they name,
# made from fixtures. Commands of tools that are not installed are skipped. Of lines with `sudo`,
# which change the machine, only the rest is run, and none of `make check`, which runs this. Those
# of docs/fleet are run by fleet.sh.
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
    skip "commands that mount: $why"
fi

while IFS= read -r -d '' line; do
    command=$line
    folder=$WORK
    case $line in
    '' | '#'*) continue ;;
    *'git clone'* | *'make check'* | *'make bench'* | *'make fuzz'*) continue ;;
    sudo*'&& '*) command=${line#*&& } ;;
    sudo*) continue ;;
    *'| jq '*) have jq || continue ;;
    *MNT*) [ -z "$no_mount" ] || continue ;;
    esac
    if why=$(lacks_tool "$command"); then skip "$why"; continue; fi
    case $command in make* | scripts/*) folder=$ROOT ;; esac
    works "$folder" "$command" "$line"
done < <(documented "$ROOT/README.md" "$ROOT"/docs/*.md "$ROOT"/docs/{probes,xlators}/README.md)
[ "$passed" -ge 50 ] || fail "only $passed commands were found and run"
finish
