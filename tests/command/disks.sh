#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images of whole disks, and split images: the tables are fixtures, into which file systems are
# copied.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 subvolumes superblock-lost || exit 1
cd "$WORK" || exit 1
images=$BUILD/fixtures
plain=$images/plain/dev1.img

# disk NAME TABLE [MIB IMAGE]...: makes a disk with a partition table, and with images at these
# offsets.
disk() {
    local name=$1
    zstd -q -d --sparse "$ROOT/fixtures/disks/$2.img.zst" -o "$name"
    shift 2
    while [ $# -gt 0 ]; do
        dd if="$2" of="$name" bs=1M seek="$1" conv=notrunc,sparse status=none
        shift 2
    done
}

# reads DESCRIPTION FIXTURE ARGUMENTS...: the paths must be those of the fixture, without a message.
reads() {
    local what=$1 fixture=$2
    shift 2
    expect "$what" 0 - "$@"
    { cat "$ROOT/fixtures/$fixture/paths0" 2> /dev/null || zstd -qdc "$ROOT/fixtures/$fixture/pa\
ths0.zst"; } |
        tr '\0' '\n' | LC_ALL=C sort > want
    LC_ALL=C sort out > have
    holds "$what: walk lists the paths of the fixture" cmp want have
}

disk gpt.img gpt 2 "$plain"
disk gpt-4k.img gpt-4k 2 "$plain"
disk mbr.img mbr 6 "$plain"
disk mbr-4k.img mbr-4k 1 "$plain"
disk two.img two 1 "$plain" 130 "$images/subvolumes/dev1.img"
disk raid.img two 1 "$images/raid1-2/dev1.img" 130 "$images/raid1-2/dev2.img"
disk none.img foreign

# The one file system on a disk.
for name in gpt gpt-4k mbr mbr-4k; do reads "$name" plain "$name.img"; done
reads "two devices on one disk" raid1-2 raid.img
expect "what is read is said" 0 'note: gpt.img: partition 2 at 2097152 is read' -v gpt.img
expect "both are said" 0 'note: raid.img: partition 2 at 136314880 is read' -v raid.img
expect "a disk with another file system" 1 \
    'gpt.img is not used: none of its partitions belongs to the file system' \
    --partition alpha raid.img gpt.img
expect "any command takes a disk" 0 - cat gpt.img "$("$PROGRAM" gpt.img | head -n 1)"
expect "a disk and a device of another one" 1 'gpt.img is not used: none of its partitions' \
    --device "$images/subvolumes/dev1.img" gpt.img
disk left.img two 1 "$images/raid1-2/dev1.img"
disk right.img two 130 "$images/raid1-2/dev2.img"
reads "devices on two disks" raid1-2 left.img right.img
reads "a device, and a disk with the other one" raid1-2 "$images/raid1-2/dev1.img" right.img
disk both.img two 1 "$plain" 130 "$images/raid1-2/dev2.img"
reads "a device, and a disk with that and more" raid1-2 "$images/raid1-2/dev1.img" both.img
expect "devices name the partitions" 0 - devices --json raid.img
is "devices lists the partition of each device" \
    "$(grep -o '"partition":[0-9]*' out | tr '\n' ' ')" \
    '"partition":1 "partition":2 '
expect "one device of two" 0 'missing' left.img
expect "superblock copies of a partition" 0 - --super 1 gpt.img

# Several file systems.
expect "several are listed" 2 'several partitions contain file systems' two.img
holds "the table of partitions has columns" grep -qE \
    '^    2  130\.00MiB  129\.00MiB  Linux filesystem  beta   btrfs, b02051c2-' err
holds "the message names --partition" grep -q 'with --partition' err
expect "quietly, too" 2 'several partitions contain' -q two.img
reads "by number" plain --partition 1 two.img
reads "by name" subvolumes --partition beta two.img
reads "by UUID" subvolumes --partition AAAAAAAA-bbbb-cccc-dddd-000000000002 two.img
reads "by UUID of the file system" subvolumes --partition b02051c2-b910-be11-5c4b-0b701d129466 \
    two.img
reads "by UUID of an MBR" plain --partition cafe0001-06 mbr.img
expect "partitions of two disks" 0 compared \
    diff --exit-code --partition beta --other two.img --other-partition 2 two.img home home
expect "of which one is not chosen" 2 'several partitions contain' diff --other two.img "$plain"
holds "the message names --other-partition" grep -q 'Choose one with --other-partition' err
expect "a partition of nothing" 2 'needs the disk as --other' diff --other-partition 2 two.img / /
expect "a partition that does not exist" \
    2 'two.img: there is no partition gamma; there are: 1 \(alpha\), 2 \(beta\)' \
    --partition gamma two.img
expect "not a btrfs" 2 'partition 1 contains no btrfs file system: it is ext4, label rooty' \
    --partition data none.img
expect "no table" 2 'dev1.img has no partition table' --partition 1 "$plain"
expect "an empty word" 2 'invalid argument of --partition' --partition '' two.img

# A btrfs on the whole disk, and a partition table that may be newer.
zstd -q -d --sparse "$ROOT/fixtures/disks/gpt.img.zst" -o table.img
cp --sparse=always "$images/subvolumes/dev1.img" whole.img
truncate -s "$(stat -c %s table.img)" whole.img
dd if=table.img of=whole.img bs=512 count=34 conv=notrunc status=none
expect "a btrfs in front of empty partitions" 0 - whole.img
dd if="$plain" of=whole.img bs=4096 skip=16 count=1 seek=$((512 + 16)) conv=notrunc status=none
expect "and one in a partition" 2 'one in partition 2 .*: one of them may be older' whole.img
holds "the table lists the btrfs in the partition" grep -q 'btrfs, ac7938d4-' err
reads "the whole disk" subvolumes --fsid b02051c2-b910-be11-5c4b-0b701d129466 whole.img
if have mkfs.ext4; then
    truncate -s 8M ext4.img
    mkfs.ext4 -q -F ext4.img
    dd if=ext4.img of=whole.img bs=4096 count=1 seek=512 conv=notrunc status=none
    dd if=/dev/zero of=whole.img bs=4096 count=1 seek=$((512 + 16)) conv=notrunc status=none
    expect "an ext4 in a partition" 0 \
        'a disk whose partition 2 is ext4.*; but the btrfs on the whole disk is read' whole.img
else
    skip mkfs.ext4 "an ext4 in a partition"
fi

# Clones: the chosen partition is the one that is read.
disk clones.img two 1 "$plain" 130 "$plain"
expect "clones without a choice" 2 'clones.img partition 1 \(generation [0-9]+\) and clones.img '\
'partition 2 \(generation [0-9]+\) are both device 1 of the file system ac7938d4-.*: choose one' \
    clones.img
holds "the table lists both clones" [ "$(grep -c 'btrfs, ac7938d4-' err)" = 2 ]
for partition in 1 2; do
    reads "the clone in partition $partition" plain --partition "$partition" clones.img
    expect "as device 1" 0 - devices -o partition --partition "$partition" clones.img
    is "devices names partition $partition" "$(cat out)" "$partition"
done
reads "a clone by its name" plain --partition beta clones.img
expect "the other one is named" 0 \
    'note: clones.img: partition 1 is not read: it is another copy of device 1, of generation' \
    -v --partition beta clones.img
reads "a device given besides its clones" plain -q "$plain" clones.img

# Both copies of the partition table are lost.
cp --sparse=always two.img wiped.img
dd if=/dev/zero of=wiped.img bs=512 count=34 conv=notrunc status=none
truncate -s -1M wiped.img
truncate -s +1M wiped.img
expect "no table" 2 'no btrfs magic; try --scan' wiped.img
for command in "walk --scan" rescue; do
    # shellcheck disable=SC2086
    expect "$command" 2 'a btrfs .ac7938d4-.* with --image-offset 1M, a btrfs .*-offset 130M' \
        $command wiped.img
done
reads "the first" plain --image-offset 1M wiped.img
cp --sparse=always "$plain" named
python3 "$ROOT/tests/support/change_item.py" named super 299 4 761277792 > /dev/null # "`-`-"
dd if=named of=wiped.img bs=1M seek=1 conv=notrunc,sparse status=none
expect "a label with backquotes" 2 "a btrfs .'-'-, ac7938d4-.* with --image-offset 1M, " \
    --scan wiped.img

# A file system after a header of one sector.
truncate -s 512 header
cat header named > shifted.img
expect "a header of a sector" 2 '1 volume; open a btrfs .* with --image-offset 512$' \
    --scan shifted.img

# Partitions whose superblocks are lost: a search reads one that was selected, or the only one with
# unknown contents.
disk lost.img two 1 "$plain" 130 "$images/subvolumes/dev1.img"
disk only.img gpt 2 "$plain"
# wipe_superblocks IMAGE MIB: of the file system that begins there.
wipe_superblocks() {
    for place in 64 65536; do
        dd if=/dev/zero of="$1" bs=1K seek=$(($2 * 1024 + place)) count=4 conv=notrunc status=none
    done
}
wipe_superblocks lost.img 1
wipe_superblocks lost.img 130
wipe_superblocks only.img 2
expect "two lost partitions" 2 '; --partition 1 --scan searches partition 1' lost.img
expect "both are lost, and searched" 2 'no partition contains btrfs' --scan lost.img
expect "two in the other file system" 2 '; --other-partition 1 --scan searches partition 1' \
    diff --other lost.img "$plain"
expect "show of encrypted partitions" 2 - show none.img
holds "tells how to open them" out_has 'it is encrypted; give its passphrase with --key-file'
expect "the second one" 1 'from tree blocks, it is device 1' --partition 2 --scan lost.img
holds "the paths of the selected partition are found" cmp -s <(sort out) \
    <("$PROGRAM" "$images/subvolumes/dev1.img" | sort)
expect "the only one" 1 'from tree blocks, it is device 1' --scan only.img
holds "the paths of the only partition are found" cmp -s <(sort out) <("$PROGRAM" "$plain" | sort)
expect "a rescue of the only one" 1 'metadata are damaged' rescue only.img
holds "rescue finds all files of the only partition" out_has 'extract .*--scan only.img'
expect "a search in another file system" 2 'no partition contains btrfs' --scan none.img

# A partition without superblocks is another copy only if it has a block of the file system.
cp --sparse=always two.img copies.img
dd if="$plain" of=copies.img bs=1M seek=130 conv=notrunc status=none
wipe_superblocks copies.img 130
expect "two copies on one disk" 1 'copies.img partition 2: no superblock, so its generation' \
    devices -o alternative_paths --alternatives copies.img
dd if="$images/subvolumes/dev1.img" of=copies.img bs=1M seek=130 conv=notrunc status=none
wipe_superblocks copies.img 130
expect "another file system on the disk" 0 - devices -o alternative_paths --alternatives copies.img

# info lists partitions: of the disk with the file system, or of a disk on which none could be
# chosen.
expect "info of a disk" 0 - info gpt.img
holds "info of a disk prints the file system" \
    out_has '^UUID: +ac7938d4-0cfc-2307-e2bf-325d28e7884e$'
holds "info of a disk prints the type of its partition table" \
    out_has '^gpt.img: GPT partition table, sectors of 512 bytes$'
holds "info of a disk lists its partitions" out_has \
    '^    2  2\.00MiB  129\.00MiB  Linux filesystem  root  btrfs, ac7938d4-'
expect "info of several" 2 'several partitions contain' info two.img
is "how to choose" "$(tail -n 1 err)" 'Choose one with --partition N, NAME, LABEL or UUID.'
holds "info of several file systems lists their partitions" \
    [ "$(grep -c 'MiB  Linux filesystem' out)" = 2 ]
is "info prints the table of partitions once" "$(grep -c 'MiB' err)" 0
expect "info of none" 2 'no partition contains btrfs' info --json none.img
holds "info --json lists the disk and its partitions" out_has \
    '^\{"disks":\[\{"device":"none.img","partition_table":"gpt",.*"partition_name":"data",'\
'"content":"ext4, label rooty"'
holds "info --json of a disk without btrfs is JSON" \
    python3 \
    -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["disks"][0]["partitions"])' out
expect "info of no disk" 0 - info --json "$plain"
holds "info --json of an image without a table has no disks" \
    out_has '"disks":\[\],"systems":\[\]\}$'

# Partitions that are not btrfs are named.
expect "foreign partitions" 2 \
    'none.img is not a btrfs file system: it is a disk with a GPT partition table' none.img
for what in '1 is ext4, label rooty' '2 is encrypted with LUKS' '3 is a physical volume of LVM' \
    '5 is swap space'; do
    holds "the message says that partition $what" grep -q "partition $what" err
done
holds "and how to read the encrypted one" grep -q '; give the passphrase .* with --key-file' err
expect "an encrypted partition" 2 'with LUKS; give the passphrase .* --key-file' \
    --partition 2 none.img

# Damaged tables, and a disk that was cut off.
cp --sparse=always gpt.img hurt.img
dd if=/dev/zero of=hurt.img bs=512 seek=1 count=33 conv=notrunc status=none
reads "the second table" plain hurt.img
dd if=/dev/zero of=hurt.img bs=512 count=1 conv=notrunc status=none
reads "no MBR, either" plain hurt.img
cp --sparse=always gpt.img cut.img
truncate -s 100M cut.img
expect "a disk that was cut off" 0 \
    'partition 2 is cut off: the image has 102760448 of its 135266304 bytes' cut.img
truncate -s 2M cut.img
expect "before its partition" 2 'is not a btrfs file system' cut.img
expect "its wanted partition" 2 'contains no btrfs' --partition root cut.img

# A file system on the whole disk takes precedence over a partition table; its superblock at 64 KiB
# decides.
cp --sparse=always "$plain" whole.img
zstd -q -d "$ROOT/fixtures/disks/two.img.zst" -c | dd of=whole.img bs=512 count=34 iflag=fullblock \
    conv=notrunc status=none
reads "a table left over" plain whole.img
expect "a file system without its first superblock" 0 'superblock copy 0' \
    "$images/superblock-lost/dev1.img"
expect "which alone is asked for" 2 'is not a btrfs file system' \
    --super 0 "$images/superblock-lost/dev1.img"
expect "or the next one alone" 0 - --super 1 "$images/superblock-lost/dev1.img"
"$PROGRAM" --statedump - "$plain" 2>&1 > /dev/null | tr -d ' \n' > plain.json
is "superblocks read of a plain image" "$(grep -o '"super":{[^}]*' plain.json)" \
    '"super":{"calls":4,"requests":4,"bytes":16384,"errors":0'
is "and its first bytes, which show whether it is a send stream" \
    "$(grep -o '"raw":{[^}]*' plain.json)" '"raw":{"calls":1,"requests":1,"bytes":512,"errors":0'
cp --sparse=always two.img old.img
dd if="$plain" of=old.img bs=4096 skip=16384 seek=16384 count=1 conv=notrunc status=none
reads "an old copy between partitions is nothing" subvolumes --partition 2 old.img

# The graph.
expect "the graph" 0 - graph raid.img
cp out raid.vol
holds "has a layer for each partition" [ "$(grep -c 'type layout/partition' raid.vol)" = 2 ]
reads "can be given back" raid1-2 --graph raid.vol
reads "layout/partition by hand" plain --insert layout/partition@device-1,partition=root gpt.img
expect "no table below it" 2 'no partition table \[layout/partition' -v \
    --insert layout/partition@device-1,partition=1 "$plain"

# --image-offset.
reads "an offset" plain --image-offset 2M gpt.img
reads "in hexadecimal" plain --image-offset 0x200000 gpt.img
{ dd if=/dev/zero bs=1M count=1 status=none; cat two.img; } |
    dd of=late.img bs=1M conv=sparse status=none
reads "a disk at an offset" subvolumes --image-offset 1M --partition 2 late.img
expect "no number" 2 'invalid argument of --image-offset: 1x' --image-offset 1x gpt.img
expect "too large a number" 2 '99E .allowed: bytes below 16E' --image-offset 99E gpt.img
expect "after the end" 2 'the window begins at .* after the end' --image-offset 1T gpt.img
expect "cat has an offset in files" 0 - cat --offset 1 "$plain" \
    "$("$PROGRAM" "$plain" | head -n 1)"

# Split images.
split -b 50M -d -a 3 --numeric-suffixes=1 gpt.img gpt.part.
split -b 50M "$plain" plain.part.
reads "a disk in parts" plain gpt.part.001
reads "all parts, in any order" plain gpt.part.002 gpt.part.003 gpt.part.001
reads "parts with letters" plain plain.part.aa
expect "joining is said" 0 'note: gpt.part.001 is joined with the parts after it: 3 files' \
    -v gpt.part.001
expect "its graph" 0 - graph gpt.part.001
cp out split.vol
reads "can be given back, too" plain --graph split.vol
reads "parts at an offset" plain --image-offset 2M gpt.part.001
mv gpt.part.002 aside
expect "a part is missing" 2 'gpt.part.002 is missing: the image continues in gpt.part.003' \
    gpt.part.001
mv aside gpt.part.002
split -b 50M -d -a 3 --numeric-suffixes=1 "$plain" plain.link.
ln -sf plain.link.001 plain.link.002
expect "a part that is a link to the first one" 0 'joined with the parts after it: 3 files' \
    devices -v plain.link.001
split -b 2M -d -a 2 gpt.img gpt.many.
expect "as many parts as can have names" 0 'joined with the parts after it: 66 files' -v gpt.many.00
: > gpt.many.99
expect "and none after the last" 2 'gpt.many.66 is missing: the image continues in gpt.many.99' \
    gpt.many.00
for number in {66..98}; do : > "gpt.many.$number"; done
reads "up to the last name" plain gpt.many.00
expect "not from the second on" 2 'not a btrfs file system' gpt.part.002
expect "parts are not written to" 2 'is an input' \
    --statedump gpt.part.003 gpt.part.001
cp --sparse=always "$images/raid1-2/dev1.img" dev.001
cp --sparse=always "$images/raid1-2/dev2.img" dev.002
reads "devices with such names" raid1-2 dev.001 dev.002
cp --sparse=always gpt.img old.000
cp --sparse=always gpt.img old.002
reads "disks with such names" plain old.000

finish
