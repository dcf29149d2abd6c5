#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# rescue --dmesg: every kind of message, and the files that messages are about.
# tests/kernel/dmesg.py does this with the messages of the running kernel.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop raid1-2 || exit 1
cd "$WORK" || exit 1
image=$BUILD/fixtures/laptop/dev1.img
cp --sparse=always "$image" bad.img
lines=$ROOT/tests/data/kernel-messages

# Every message of the table has a line, and every line is recognized as its message.
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$WORK/out"; }
while IFS=$'\t' read -r word line; do
    case $word in '#'*) continue ;; esac
    printf '%s\n' "$line" > log
    expect "$line" 0 . rescue --json --dmesg log "$image"
    is "a message of the kernel is recognized: $line" "$(member kernel_message)" "${word#-}"
done < "$lines"
holds "a line for every message" diff <(grep -v '^[#-]' "$lines" | cut -f 1 | sort -u) \
    <(sed -n 's/^MESSAGE("\([^"]*\)".*/\1/p' "$ROOT/src/cli/rescue/kernel_messages.def" | sort)

# Files: by inode, by address, by sector.
data=$(run_json extents --json "$image" /@home/anna/Pictures/holiday-3.jpg |
    grep -o '"logical":[0-9]*' | head -n 1 | cut -d : -f 2)
place=$("$PROGRAM" map -o offset --raw "$image" "$data")
printf 'xxxx' | dd of=bad.img bs=1 seek="$place" conv=notrunc status=none
inode=$("$PROGRAM" stat -o inode "$image" /@home/anna/Pictures/holiday-3.jpg)
home=$("$PROGRAM" subvolumes -o subvolume,subvolume_path "$image" | sed -n 's,\t/@home$,,p')
cat > log << END
[1.0] BTRFS warning (device sda1): csum failed root $home ino $inode off 0 csum 0x1 mirror 1
[2.0] BTRFS warning (device sda1): csum failed root $home ino $inode off 0 csum 0x1 mirror 1
[3.0] BTRFS error (device sda1): unable to fixup (regular) error at logical $data on dev sda1
[4.0] I/O error, dev sda1, sector $((place / 512)) op 0x0:(READ)
[5.0] BTRFS error (device sda1): something new
END
expect "three messages" 0 '1 of 5 lines were passed over, 1 of them errors' \
    rescue --dmesg log bad.img
is "each of three messages has the affected file" \
    "$(grep -c "^  affected: /@home/anna/Pictures/holiday-3.jpg" "$WORK/out")" 3
is "no message has a good mirror in the damaged image" \
    "$(grep -c '^  No good mirror' "$WORK/out")" 3
holds "two lines are one message" out_has '\(2 times\)$'
expect "with the sound image" 0 . rescue --dmesg - "$image" < log
expect "from a file" 0 . rescue --dmesg log "$image"
is "every message has a good mirror in the sound image" \
    "$(grep -c '^  A good mirror exists\.$' "$WORK/out")" 3
expect "as columns" 0 . rescue --dmesg log -o kernel_message,occurrences,line,readable bad.img
is "columns have a row for each of three messages" "$(cat "$WORK/out")" $'csum-failed\t2\t1\t0
scrub-unfixable\t1\t3\t0\ndisk-read-error\t1\t4\t0'

# Sectors of a disk: the image is the whole disk, or its partition.
zstd -q -d --sparse "$ROOT/fixtures/disks/gpt.img.zst" -o disk.img
truncate -s 600M disk.img
dd if="$BUILD/fixtures/raid1-2/dev1.img" of=disk.img bs=1M seek=2 conv=notrunc,sparse status=none
other=$BUILD/fixtures/raid1-2/dev2.img
block=$("$PROGRAM" dump --tree fs disk.img --device "$other" |
    sed -n 's/^leaf \([0-9]*\) items.*/\1/p' | head -n 1)
sector=$(($("$PROGRAM" map -o devid,offset disk.img --device "$other" "$block" |
    sed -n 's/^1\t//p') / 512))
printf 'I/O error, dev disk.img, sector %s op 0x0:(READ)\n' $((sector + 4096)) > log
expect "a sector of a disk" 0 . rescue --json --dmesg log disk.img --device "$other"
is "is that of its partition" "$(member logical)" "$block"
printf 'I/O error, dev disk.img, sector 100 op 0x0:(READ)\n' > log
expect "a sector before the partition" 0 . rescue --json --dmesg log disk.img --device "$other"
is "a sector before the partition has no address" "$(member logical)" ""
printf 'I/O error, dev sda, sector 9000 op 0x0:(READ)\n' > log
ln -s "$image" sda
expect "a sector of the disk around an image" 0 'if the image is only a partition of it' \
    rescue --dmesg log "$image"
expect "with --quiet" 0 - rescue --quiet --dmesg log "$image"
expect "a disk that is the image" 0 . rescue --dmesg log sda
is "no warning doubts a sector of the image itself" "$(grep -c 'only a partition' "$WORK/err")" 0
printf 'I/O error, dev nvme0n1p2, sector 9000 op 0x0:(READ)\n' > log
expect "a sector of a partition" 0 . rescue --dmesg log "$image"
is "has no such doubt either" "$(grep -c 'only a partition' "$WORK/err")" 0
expect "the other command" 2 'option --dmesg was removed: use .rescue' owner --dmesg log disk.img

# A tree block, of which one mirror is good or none.
leaf=$("$PROGRAM" dump --tree "$home" "$image" | awk '$1 == "leaf" { print $2 }' | tail -n 1)
printf 'BTRFS: checksum verify failed on logical %s mirror 1 wanted 0x1 found 0x2 level 0\n' \
    "$leaf" > log
mapfile -t places < <("$PROGRAM" map -o offset --raw "$image" "$leaf")
damage() { printf 'xxxx' | dd of=bad.img bs=1 seek="$1" conv=notrunc status=none; }
damage "${places[0]}"
expect "a bad mirror of a tree block" 0 . rescue --json --dmesg log bad.img
is "the other mirror is good" "$(member readable)" true
holds "a bad mirror of a tree block has the files in it" out_has '"/@home/anna/'
damage "${places[1]}"
expect "two bad mirrors" 1 . rescue --json --dmesg log bad.img
is "with two bad mirrors, the block is not readable" "$(member readable)" false

# A device by its name.
printf 'I/O error, dev dev2.img, sector %s op\n' 2048 > log
expect "the second device" 0 . rescue --dmesg log -o devid,offset \
    "$BUILD/fixtures/raid1-2/dev1.img" "$BUILD/fixtures/raid1-2/dev2.img"
is "a device by its name has the devid 2" "$(cat "$WORK/out")" $'2\t1048576'
printf 'I/O error, dev sdx, sector %s op\n' 2048 > log
expect "an unknown device" 0 . rescue --dmesg log -o devid "$BUILD/fixtures/raid1-2/dev1.img" \
    "$BUILD/fixtures/raid1-2/dev2.img"
is "an unknown device has no devid" "$(cat "$WORK/out")" -

# Hostile logs.
head -c 3000000 /dev/zero > log
expect "a log of zeros" 0 '1 of 1 lines' rescue --dmesg log "$image"
head -c 1000000 /dev/urandom > log
expect "a log of random bytes" 0 'lines were passed over' rescue --dmesg log "$image"
python3 -c 'print("csum failed root " * 5000)' > log
expect "beginnings of messages" 0 '1 of 1 lines' rescue --dmesg log "$image"
expect "no log" 2 'cannot open missing' rescue --dmesg missing "$image"
finish
