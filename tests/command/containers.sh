#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images that contain the device in another format: LUKS, LVM, MD, partclone, and stacks of these.
# What is read is the same as from the bare image.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "containers"; finish; fi

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" mixed plain dup subvolumes raid1-2 || exit 1
cd "$WORK" || exit 1
bare=$BUILD/fixtures/mixed/dev1.img
"$PROGRAM" sum "$bare" > want || exit 1
is "the bare image has the files of its fixture" "$(wc -l < want)" \
    "$(recorded mixed paths0 | tr -dc '\0' | wc -c)"
printf secret > key
printf 'secret\n' > line.key
printf wrong > wrong.key

# wrap KIND TARGET... [NAME=VALUE...]: puts $bare into a container. One process makes all of them.
wrap() {
    local IFS=$'\t' kind=$1 answer=
    shift
    [ -n "${WRAPPER_PID:-}" ] || coproc WRAPPER { exec python3 "$ROOT/tests/support/wrap.py"; }
    printf '%s\n' "$kind$IFS$bare$IFS$*" >&"${WRAPPER[1]}" && read -r answer <&"${WRAPPER[0]}"
    [ "$answer" = done ] || exit 1
}

# same DESCRIPTION MESSAGE ARGUMENTS...: the files and their hashes are those of the bare image.
same() {
    local what=$1 message=$2
    shift 2
    expect "$what" 0 "$message" sum "$@"
    holds "$what: the files and hashes are those of the bare image" cmp want out
}

# LUKS: images of cryptsetup, of the fixture "mixed".
for version in 1 2; do
    zstd -q -d "$ROOT/tests/data/containers/l$version.img.zst" -o "luks$version.img"
    same "LUKS$version" - --key-file key "luks$version.img"
    same "LUKS$version: a key with a newline" - --key-file line.key "luks$version.img"
    same "LUKS$version: the second of two keys" - --key-file wrong.key --key-file key \
        "luks$version.img"
    "$PROGRAM" sum --key-file - "luks$version.img" < key > out
    holds "LUKS$version: a key from stdin" cmp want out
    same "LUKS$version: a key from a descriptor" - --key-fd 7 "luks$version.img" 7< key
    expect "LUKS$version: a wrong key" 2 'luks..img: no keyslot accepts the key or passphrase' \
        --key-file wrong.key "luks$version.img"
    expect "LUKS$version: no key" 2 'it is encrypted; give its passphrase with --key-file, or' \
        "luks$version.img"
    expect "LUKS$version: info shows it" 0 - info --key-file key "luks$version.img"
    holds "info shows the layers of LUKS$version" \
        grep -q "luks$version.img > LUKS$version > btrfs" out
    expect "LUKS$version: check" 0 - check -q --data --key-file key "luks$version.img"
done
if have cryptsetup && python3 -c 'import cryptography' 2> /dev/null; then
    wrap luks argon.img pbkdf=argon2id memory=65536
    same "Argon2" - --key-file key argon.img
else
    skip "cryptsetup, python3-cryptography" "memory of Argon2"
fi
# Progress would be shown after a second, in place of the prompt.
python3 "$ROOT/tests/support/on-terminal.py" "answer:$(< key)" "$PROGRAM" info luks2.img > asked
holds "the prompt stays until it is answered" [ "$(head -n 1 asked)" = "Passphrase of luks2.img: " ]
python3 "$ROOT/tests/support/on-terminal.py" interrupt "$PROGRAM" info luks2.img > interrupted
holds "after an interrupted prompt, the terminal shows what is typed" \
    grep -qx "status -2, input is shown" interrupted
(
    ulimit -c 0
    python3 "$ROOT/tests/support/on-terminal.py" quit "$PROGRAM" info luks2.img > interrupted
)
holds "after Ctrl-\\ at a prompt, the terminal shows what is typed" \
    grep -qx "status -3, input is shown" interrupted
python3 "$ROOT/tests/support/on-terminal.py" interrupt "$PROGRAM" check luks2.img > interrupted
holds "an interrupted prompt of check" grep -qx "status 8, input is shown" interrupted
if grep -q FUSE=1 "$BUILD/features"; then
    mkdir mnt
    python3 "$ROOT/tests/support/on-terminal.py" interrupt-all \
        "$PROGRAM" mount --background luks2.img mnt > interrupted
    holds "an interrupted prompt of mount --background" \
        grep -qx "status -2, input is shown" interrupted
    (
        ulimit -c 0
        python3 "$ROOT/tests/support/on-terminal.py" quit-all \
            "$PROGRAM" mount --background luks2.img mnt > interrupted
    )
    holds "Ctrl-\\ at a prompt of mount --background" \
        grep -qx "status -3, input is shown" interrupted
fi
python3 "$ROOT/tests/support/on-terminal.py" interrupt-all \
    "$PROGRAM" rescue --extract never_saved luks2.img > interrupted
holds "an interrupted prompt of rescue --extract" \
    grep -qx "status -2, input is shown" interrupted
if "${COMPILER[@]}" -shared -fPIC -o early_signal.so "$ROOT/tests/preload/early_signal.c" -ldl &&
    LD_PRELOAD=$PWD/early_signal.so "$PROGRAM" --version > /dev/null 2>&1; then
    timeout 60 python3 "$ROOT/tests/support/on-terminal.py" ends \
        env "LD_PRELOAD=$PWD/early_signal.so" "$PROGRAM" check luks2.img > interrupted
    holds "a signal before the prompt reads" grep -qx "status 8, input is shown" interrupted
else
    skip "LD_PRELOAD" "a signal before the prompt reads"
fi
# asked_once NAME COMMAND...: the passphrase that was typed serves all that the command opens.
asked_once() {
    local name=$1
    shift
    timeout 600 python3 "$ROOT/tests/support/on-terminal.py" "answer:$(< key)" \
        "$PROGRAM" "$@" > asked
    holds "$name ends well" [ $? -eq 0 ]
    holds "$name asks once" [ "$(grep -c "Passphrase of" asked)" = 1 ]
}
asked_once "rescue" rescue luks2.img
asked_once "deleted" deleted luks2.img
asked_once "rescue --extract" rescue --extract asked_saved luks2.img
holds "the first step has written" [ -s asked_saved/whole.json ]
if have strace && strace -o calls true 2> /dev/null; then
    ASAN_OPTIONS=detect_leaks=0 timeout 600 python3 "$ROOT/tests/support/on-terminal.py" \
        "answer:$(< key)" strace -f -qq -o calls -e trace=prctl \
        "$PROGRAM" rescue --extract traced_saved luks2.img > asked
    holds "no process that has the key writes a core file, neither the one that asks nor the step" \
        [ "$(grep PR_SET_DUMPABLE calls | cut -d ' ' -f 1 | sort -u | wc -l)" -ge 2 ]
else
    skip strace "core files of processes that have a key"
fi
timeout 600 python3 "$ROOT/tests/support/on-terminal.py" answer: \
    "$PROGRAM" rescue luks2.img > asked
holds "rescue without a passphrase cannot open it" [ $? -eq 2 ]
is "rescue does not ask again" "$(grep -c "Passphrase of" asked)" 1
for command in info rescue; do
    timeout 600 python3 "$ROOT/tests/support/on-terminal.py" answer:wrong \
        "$PROGRAM" "$command" luks2.img > asked
    is "$command asks three times" "$(grep -c "Passphrase of" asked)" 3
done
holds "rescue says that the passphrase is wrong" \
    grep -q 'luks..img: no keyslot accepts the key or passphrase' asked
expect "an empty key" 2 'the key in /dev/null is empty' --key-file /dev/null luks2.img
expect "no key file" 2 'cannot open nowhere' --key-file nowhere luks2.img
expect "a descriptor that is not open" 2 'cannot read the key' --key-fd 77 luks2.img
expect "no descriptor" 2 'number of an open file descriptor' --key-fd x luks2.img
expect "rescue of an encrypted image" 0 - rescue --key-file key luks2.img
holds "commands name the key file" out_has '^  btrfs-walk extract .* --key-file=key$'
# edited FILE STATEMENTS: makes a LUKS2 image with another header.
edited() {
    cp --sparse=always luks2.img "$1"
    python3 "$ROOT/tests/support/edit_luks.py" "$@" || exit 1
}
edited many.img 'header["digests"] = {i: header["digests"]["0"] for i in range(33)}'
expect "too many digests" 2 'many.img: the LUKS header has no valid list of digests' \
    --key-file key many.img
edited many.img 'header["keyslots"] = {"0" * i: header["keyslots"]["0"] for i in range(1, 34)}'
expect "too many keyslots" 2 'many.img: the LUKS header has no valid list of keyslots' \
    --key-file key many.img
edited slow.img 'header["keyslots"]["0"]["kdf"].update(time=(1 << 20) + 1, memory=1024)'
expect "too many passes" 3 \
    'keyslot 0 needs 1048577 passes over 1.00MiB of memory, more work than the 1.00TiB that' \
    --key-file key slow.img
# 31 keyslots, of which each is within the limit, and the right one.
slots='slot = header["keyslots"]["0"]; kdf = dict(slot["kdf"], time=40)
for i in range(31): header["keyslots"][str(i)] = dict(slot, kdf=kdf)
header["keyslots"]["31"] = slot; header["digests"]["0"]["keyslots"] = [str(i) for i in range(32)]'
edited many.img "$slots"
same "the cheapest of many keyslots" - --key-work 8M --key-file key many.img
expect "all keyslots share the budget" 3 \
    'keyslot [0-9]* needs 40 passes over 1.00MiB of memory, more work than the 200.00MiB that are '\
'allowed for all keyslots; --key-work raises it' --key-work 200M --key-file wrong.key many.img
expect "all of them are tried" 2 'no keyslot accepts the key' --key-work 2G --key-file wrong.key \
    many.img
edited large.img 'header["keyslots"]["0"]["kdf"].update(time=1, memory=4 << 20)'
expect "4 GiB of memory" 3 \
    'keyslot 0 needs 4.00GiB of memory, and (libgcrypt can use only less than 4 GiB|at most )' \
    --key-file key large.img
edited unbound.img 'header["digests"]["0"]["segments"] = []'
expect "an unbound key" 2 'no keyslot accepts the key or passphrase' --key-file key unbound.img
"$PROGRAM" rescue --extract saved --key-file - luks2.img < key > out 2>&1
is "a key from stdin, for all steps" $? 0
is "rescue saves all files of an encrypted image" \
    "$(find saved/whole -type f | wc -l)" "$(wc -l < want)"
cp luks2.img damaged.img
dd if=/dev/zero of=damaged.img bs=4096 count=4 conv=notrunc status=none
same "the second header of LUKS2" 'warning: .*the first LUKS2 header is damaged' --key-file key \
    damaged.img
dd if=/dev/zero of=damaged.img bs=4096 seek=4 count=4 conv=notrunc status=none
expect "no header" 2 'damaged.img is not a btrfs file system' --key-file key damaged.img
head -c 20M luks2.img > cut.img
expect "a volume that is cut off" 2 'cut.img .LUKS2. is cut off' sum --key-file key cut.img
head -c 16M luks2.img > header.img
tail -c +16777217 luks2.img > data.img
python3 - << 'END'
import hashlib, struct
# the data begin at 0, as cryptsetup --header makes it
with open("header.img", "r+b") as file:
    for offset in 0, 16384:
        file.seek(offset)
        block = bytearray(file.read(16384))
        block[4096:] = block[4096:].replace(b'"offset":"16777216"', b'"offset":"0"').ljust(
            12288, b"\0")
        block[448:512] = bytes(64)
        block[448:480] = hashlib.sha256(block).digest()
        file.seek(offset)
        file.write(block)
END
same "a detached header" - --key-file key --luks-header header.img data.img
expect "without it" 2 'data.img is not a btrfs file system' --key-file key data.img
expect "the key is in no statedump" 0 - --statedump state --key-file key luks2.img
holds "the statedump does not contain the key" [ "$(grep -c secret state)" -eq 0 ]
holds "the statedump has the layer of LUKS" grep -q '"layout/luks"' state

# MD: levels and layouts, with every device and with as many as possible missing.
# arrays LEVEL COUNT MISSING OPTIONS...: MISSING are numbers of devices.
arrays() {
    local level=$1 count=$2 missing=$3 images=() number
    shift 3
    for ((number = 0; number < count; number++)); do images+=("md$number.img"); done
    wrap md "${images[@]}" "level=$level" "$@"
    same "MD $level $*" - "${images[@]}"
    [ -n "$missing" ] || return 0
    for number in $missing; do unset "images[number]"; done
    same "MD $level $* without $missing" 'warning: .*is degraded' "${images[@]}"
}
for version in 0.90 1.0 1.1 1.2; do
    arrays 1 2 0 version=$version
    arrays 0 3 '' version=$version layout=2
    arrays linear 3 '' version=$version
    arrays 5 3 1 version=$version
done
# Version 0.90, with the superblock near the end: a device that is much larger than the array, and
# disks that end with their partition.
wrap md larger.img fitting.img level=1 version=0.90
size=$(stat -c %s larger.img)
truncate -s +2M larger.img
dd if=larger.img of=larger.img bs=64K count=1 skip=$((size / 65536 - 1)) \
    seek=$((size / 65536 + 31)) conv=notrunc status=none
same "a larger device" - larger.img fitting.img
wrap md in0.img in1.img in2.img level=5 version=0.90
for number in 0 1 2; do disk last$number.img in$number.img; done
same "the last partitions" - last0.img last1.img last2.img
wrap md first.img second.img level=1 version=1.0
for number in 0 1; do rm "last$number.img"; done
disk last0.img first.img
disk last1.img second.img
same "partitions that begin like the array" - last0.img last1.img
same "one of them" 'warning: .* is degraded' last1.img
arrays 0 3 '' layout=1 uneven=3 chunk=16384
arrays 0 3 '' layout=2 uneven=3 chunk=16384
arrays 4 3 0
for layout in la ra ls rs p0 pn; do arrays 5 4 2 layout=$layout chunk=16384; done
for layout in la ra ls rs p0 pn zr nr nc la6 ra6 ls6 rs6 p06; do
    arrays 6 5 '1 3' layout=$layout
done
for layout in 0x102 0x201 0x10201 0x20201 0x202; do arrays 10 5 1 layout=$layout; done
wrap md a.img b.img c.img level=5
expect "too few devices" 2 \
    'host:0 is incomplete: of its 3 devices, numbers 0, 1 are missing; it needs 2' c.img
wrap md late.img on-time.img level=1 events=3
wrap md other.img on-time.img level=1 events=9
same "a late device" 'warning: .*late.img is not used in the MD array: it missed changes' \
    late.img on-time.img
wrap md given-up.img gone.img level=1 version=1.0
dd if="$BUILD/fixtures/plain/dev1.img" of=given-up.img bs=64K skip=1 seek=1 count=1 conv=notrunc \
    status=none
"$PROGRAM" devices --raw -o devid,container given-up.img > out 2> /dev/null
holds "an array that was given up" [ "$(grep -c MD out)" -eq 0 ]
wrap md one.img two.img level=1
expect "info shows the array" 0 - info one.img two.img
holds "the stack of the array" grep -q 'one.img > MD RAID1, 2 devices > btrfs' out

# LVM.
for kind in linear striped raid0 raid1 mirror; do
    wrap lvm pv1.img pv2.img pv3.img kind=$kind
    same "LVM $kind" - pv3.img pv1.img pv2.img
    same "LVM $kind, by name" - --volume vg0/root pv2.img pv1.img pv3.img
done
same "LVM mirror without two devices" - pv2.img
expect "no such volume" 2 'there is no logical volume home; there are: vg0/swap, vg0/root' \
    --volume home pv1.img pv2.img pv3.img
expect "a volume without btrfs" 2 'pv1.img .LVM vg0/swap. is not a btrfs file system' \
    --volume swap pv1.img pv2.img pv3.img
expect "no group" 2 'no logical volume root, because no image is a physical volume of LVM' \
    --volume root "$bare"
expect "no such volume, and a device that is none" 2 'pv1.img: there is no logical volume home' \
    --volume home pv1.img pv2.img pv3.img "$BUILD/fixtures/plain/dev1.img"
if have thin_restore; then
    wrap lvm_thin thin1.img thin2.img
    same "a thin volume" - --volume vg0/root thin2.img thin1.img
    expect "a snapshot of it" 2 \
        'several volumes contain file systems: LVM vg0/half (.*), LVM vg0/root (.*)' thin1.img \
        thin2.img
    holds "the message names the option --volume" grep -q 'choose one with --volume GROUP/NAME$' err
    python3 - << 'END' # a disk with two partitions
import struct
parts = [open(name, "rb").read() for name in ("thin1.img", "thin2.img")]
table, disk = bytearray(512), bytearray(1 << 20)
for i, part in enumerate(parts):
    struct.pack_into("<BxxxBxxxII", table, 446 + 16 * i, 0, 0x8e, len(disk) // 512,
                     len(part) // 512)
    disk += part
table[510:] = b"\x55\xaa"
disk[:512] = table
open("lvm-disk.img", "wb").write(disk)
END
    for command in walk info; do
        expect "$command: the same on a disk" 2 'choose one with --volume GROUP/NAME$' \
            "$command" lvm-disk.img
        is "$command: no partition solves that" "$(grep -c -e --partition err)" 0
    done
    expect "a volume without half of its blocks" 2 'no good mirror' sum --volume half thin1.img \
        thin2.img
    expect "the pool" 3 'the logical volume pool has the type thin-pool, which is not read' \
        --volume pool thin1.img thin2.img
    cp --sparse=always thin2.img bad2.img
    python3 - << 'END'
data = open("bad2.img", "rb").read()
at = data.find((27022010).to_bytes(8, "little")) - 32
with open("bad2.img", "r+b") as file:
    file.seek(at + 100)
    file.write(b"x")
END
    expect "damaged metadata" 2 \
        'the thin volume root: block 0 of the thin metadata: the checksum is wrong' --volume root \
        thin1.img bad2.img
else
    skip thin_restore "thin volumes"
fi
wrap lvm pv1.img pv2.img kind=cache
expect "a type that is not read" 3 'the logical volume root has the type cache, which is not read' \
    pv1.img pv2.img
wrap lvm pv1.img pv2.img pv3.img swap=no
expect "the first device is missing" 2 'pv0, last seen as /dev/sda of the volume group vg0 is mis' \
    pv2.img pv3.img
expect "graph shows the layer" 0 - graph pv1.img pv2.img pv3.img
holds "the graph has the name of the logical volume" grep -q 'vg0/root' out

# bcache.
wrap bcache backing.img
same "bcache" - backing.img
expect "info shows it" 0 - info backing.img
holds "info shows the layers of bcache" grep -q 'backing.img > bcache > btrfs' out
wrap bcache dirty.img state=2
expect "data in the cache only" 2 \
    'dirty.img: the newest data are in the bcache cache set 73737373-.*--image-offset 32768 reads' \
    dirty.img
same "without these data" - --image-offset 32768 dirty.img
wrap bcache cache.img version=3
expect "a cache" 2 'cache.img: it is a caching device of bcache: give its backing device' cache.img
expect "a cache next to its backing device" 1 'cache.img is not used: it is a caching device' \
    sum backing.img --device cache.img
holds "the files are read without the cache" cmp want out

# The changes of a snapshot of the device mapper: its header, and no chunk yet.
{ printf 'SnAp\1\0\0\0\1\0\0\0\20\0\0\0' && head -c 65520 /dev/zero; } > changes.img
expect "the changes of a snapshot alone" 2 \
    'changes.img is not .* the changes of a dm-snapshot: read its origin alone, or join' changes.img
expect "the changes of a snapshot next to their origin" 1 \
    'changes.img is not used: no superblock: it is the changes of a dm-snapshot: read its origin' \
    sum backing.img --device changes.img
holds "the files are read without the changes" cmp want out

# A chunk of them is a copy of the superblock, at the offset where a btrfs has its own.
dd if="$bare" of=changes.img bs=4K skip=16 seek=16 count=1 conv=notrunc status=none
truncate -s "$(stat -c %s "$bare")" changes.img
expect "the changes with a copy of the superblock" 2 \
    'changes.img is not .* the changes of a dm-snapshot: read its origin alone, or join' changes.img
expect "the same before their origin" 1 \
    'changes.img is not used: no superblock: it is the changes of a dm-snapshot: read its origin' \
    sum changes.img --device backing.img
holds "the files are read from the origin" cmp want out

# dm-verity: its hashes are not verified, and the data are read without them.
cp --sparse=always "$bare" data.img
printf 'verity\0\0\1\0\0\0\1\0\0\0' > hash.img
truncate -s 64K hash.img
expect "a hash device" 2 'it is a hash device of dm-verity: give the data device' hash.img
expect "an option that was removed" 2 "was removed: run .veritysetup verify" \
    --verity-root-hash 00 data.img

# partclone.
wrap partclone backup.img
same "partclone" - backup.img
expect "a complete backup" 0 - check -q --data backup.img

# Compressed images: of a layer, and split as by Clonezilla.
for tool in zstd gzip lz4 xz; do
    have $tool && grep -q "$tool=0" <(tr A-Z a-z < "$BUILD/features") && continue
    if ! have $tool; then skip $tool "files of $tool"; continue; fi
    $tool -c < backup.img > "backup.$tool"
    same "partclone, compressed with $tool" - --helpers=off "backup.$tool"
    $tool -c < "$bare" | split -b 5000 - "split.$tool."
    same "split after $tool" - "split.$tool.aa"
done
expect "info shows the compression" 0 - info split.zstd.aa
holds "info shows the compression around btrfs" grep -q 'split.zstd.aa > zstd > btrfs' out
mkdir temporary
TMPDIR=$PWD/temporary "$PROGRAM" sum backup.zstd > out
holds "an image that is decompressed into TMPDIR has all files" cmp want out
holds "TMPDIR is empty afterwards" rmdir temporary
cat split.zstd.* | head -c 9000 > cut.zstd
expect "a file that is cut off" 1 'after .* decompressed bytes: the compressed file is cut off' \
    cut.zstd
if have qemu-img; then
    qemu-img convert -O qcow2 "$bare" disk.qcow2 && zstd -q disk.qcow2 -o packed.zstd
    expect "an image in a format of its own" 2 'it is a qcow2 image' packed.zstd
else
    skip qemu-img "qcow2 in a compressed file"
fi
file=$("$PROGRAM" sum "$bare" | sed 's/^[^ ]*  //' | head -n 1)
bare=$BUILD/fixtures/plain/dev1.img
"$PROGRAM" sum "$bare" > want
lost=/data/hole-then-data
run_json extents --json "$bare" "$lost" > extents
wrap partclone part.img "drop=$(grep -o '"offset":[0-9]*' extents | tail -n 1 | cut -d : -f 2)"
expect "an incomplete backup" 1 "$lost: .*is not in the backup" cat part.img "$lost"
expect "the other files" 1 'is not in the backup' sum part.img
grep -av "$lost\$" want > rest
holds "all files outside of the hole in the backup are read" cmp rest out

# Flags of Synology: in the superblock, and of a subvolume.
cp --sparse=always "$bare" synology.img
python3 - "$ROOT" << 'END'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/support")
from crc32c import checksum
with open("synology.img", "r+b") as file:
    for offset in 65536, 67108864:
        file.seek(offset)
        block = bytearray(file.read(4096))
        block[172 + 7] |= 0xe0  # compat_flags
        block[180 + 7] |= 0x08  # compat_ro_flags
        block[:4] = checksum(bytes(block[32:]))
        file.seek(offset)
        file.write(block)
END
same "flags of Synology" - synology.img
expect "a note" 0 'note: .*a kernel of Synology' -v synology.img
expect "info names them" 0 - info synology.img
holds "info names the flag synology-locker" grep -q synology-locker out
expect "super names them" 0 - super synology.img
holds "super names the flag of the block group cache" grep -q SYNOLOGY_BLOCK_GROUP_CACHE out
expect "they are no errors" 0 - check -q synology.img

# Stacks: MD below LVM below btrfs, as on a NAS; LVM in a partition; two devices of one file system.
wrap lvm inner.img swap=no
bare=inner.img
wrap md n1.img n2.img n3.img level=5
same "LVM on MD" - n1.img n2.img n3.img
expect "info shows the stack" 0 - info n1.img n2.img n3.img
holds "info shows btrfs on LVM on MD" \
    grep -q 'n1.img > MD RAID5, 3 devices > LVM vg0/root > btrfs' out
same "LVM on degraded MD" 'is degraded' n1.img n3.img
zstd -q -d --sparse "$ROOT/fixtures/disks/gpt.img.zst" -o disk.img
dd if=inner.img of=disk.img bs=1M seek=2 conv=notrunc,sparse status=none
same "LVM in a partition" - disk.img
expect "devices shows the stack" 0 - devices --raw -o container disk.img
is "devices shows LVM in a partition" "$(cat out)" 'GPT partition 2 > LVM vg0/root'
same "the partition is selected" - --partition 2 disk.img
disk both.img "$BUILD/fixtures/plain/dev1.img" inner.img
same "the volume, and not the partition with a btrfs" - --volume root both.img
expect "no such volume on it" 2 'both.img.*: there is no logical volume x' --volume x both.img
truncate -s 1M none.img
disk bare.img none.img "$BUILD/fixtures/plain/dev1.img"
bare=bare.img
wrap lvm parts.img
same "a partition of a volume that is named" - --volume root parts.img
# A file of another file system.
zstd -q -d --sparse "$ROOT/tests/data/containers/host.img.zst" -o host.img
"$PROGRAM" sum "$BUILD/fixtures/mixed/dev1.img" > want
same "an image inside" - --inside /vm/disk.raw host.img
expect "check of it" 0 - check -q --inside /vm/disk.raw host.img
expect "info names both" 0 - info --inside /vm/disk.raw host.img
holds "info shows the path of the image inside" grep -q 'host.img > /vm/disk.raw' out
expect "no such file" 2 'host.img: inside: /vm/no: no such file' --inside /vm/no host.img
expect "a folder" 2 'is not a regular file' --inside /vm host.img
expect "a file that is none" 2 'no such file' --inside /vm/disk.raw --inside /nothing host.img
# A disk with partitions, and a container that needs a helper, in a file system.
if have mkfs.btrfs; then
    mkdir root
    disk root/disk.raw "$BUILD/fixtures/mixed/dev1.img" "$BUILD/fixtures/plain/dev1.img"
    { printf 'QFI\373\0\0\0\3' && head -c 65536 /dev/zero; } > root/disk.qcow2
    truncate -s 800M outer.img && mkfs.btrfs -q --shrink -r root outer.img 2> mkfs
    expect "several partitions inside" 2 'several partitions' --inside /disk.raw outer.img
    holds "how to choose" grep -qxF \
        "Choose one with --partition N, NAME, LABEL or UUID, after this disk's --inside if any." err
    same "a partition inside" - --inside /disk.raw --partition 1 outer.img
    # A disk in a file system on a partition of a disk, which is a file on a partition of a disk.
    disk outer.raw "$BUILD/fixtures/plain/dev1.img" outer.img
    same "a partition of each" - --partition 2 --inside /disk.raw --partition 1 outer.raw
    mkdir vm && mv outer.raw vm
    truncate -s 2G vm.img && mkfs.btrfs -q --shrink -r vm vm.img 2> mkfs
    disk host.raw vm.img "$BUILD/fixtures/plain/dev1.img"
    levels=(--partition 1 --inside /outer.raw --partition 2 --inside /disk.raw)
    same "a partition of each of three disks" - "${levels[@]}" --partition 1 host.raw
    "$PROGRAM" sum "$BUILD/fixtures/plain/dev1.img" > want
    same "another one" - "${levels[@]}" --partition 2 host.raw
    expect "no such one" 2 'disk.raw.*partition' "${levels[@]}" --partition 7 host.raw
    for case in "disk.raw ${levels[*]} host.raw" \
        "outer.raw --partition 1 --inside /outer.raw --inside /disk.raw --partition 1 host.raw" \
        "host.raw --inside /outer.raw --inside /disk.raw --partition 1 host.raw"; do
        # shellcheck disable=SC2086
        expect "partitions of ${case%% *}" 2 "^([^:]* > /)?${case%% *}: MBR partition table" \
            ${case#* }
        is "that is the only table" "$(grep -c 'MBR partition table' err)" 1
    done
    expect "info of a disk between" 2 'several partitions' info --partition 1 --inside /outer.raw \
        --inside /disk.raw --partition 1 host.raw
    holds "info lists that disk" grep -q '/outer.raw: MBR partition table' out
    expect "of the outer image" 2 'outer.img.*partition' --partition 1 --inside /disk.raw outer.img
    expect "qcow2 inside" 2 'cannot be read inside another file system: mount that with' \
        --inside /disk.qcow2 outer.img
else
    skip mkfs.btrfs "a disk inside a file system"
fi

bare=$BUILD/fixtures/raid1-2/dev1.img
"$PROGRAM" sum "$bare" "$BUILD/fixtures/raid1-2/dev2.img" > want
wrap partclone first.img
bare=$BUILD/fixtures/raid1-2/dev2.img
wrap md m1.img m2.img level=1
same "each device in another format" - first.img m1.img m2.img
finish
