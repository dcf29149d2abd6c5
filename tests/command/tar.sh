#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tar command: archives as GNU tar and cpio read them.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
compressed=$BUILD/fixtures/compressed/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img

holds() {
    local what=$1
    shift
    if "$@" > "$WORK/holds" 2>&1; then pass; else fail "$what: $(head -n 2 "$WORK/holds")"; fi
}
is() { if [ "$2" = "$3" ]; then pass; else fail "$1: '$2', not '$3'"; fi; }
# The hashes that the image tells, for names below a folder.
sums() { "$PROGRAM" sum -0 "$1" | sed -zE 's|^([0-9a-f]+  )/|\1|' | LC_ALL=C sort -z; }
hashes() { (cd "$1" && find . -type f -printf '%P\0' | xargs -0r sha256sum -z | LC_ALL=C sort -z); }

for image in "$plain" "$compressed" "$subvolumes"; do
    name=$(basename "$(dirname "$image")")
    holds "$name: an archive" "$PROGRAM" tar -q -f "$WORK/archive" "$image"
    is "$name: stdout is the same" "$("$PROGRAM" tar -q "$image" | md5sum)" "$(md5sum < "$WORK/archive")"
    is "$name: one thread or three" "$("$PROGRAM" tar -q -j 1 "$image" | md5sum)" "$("$PROGRAM" tar -q -j 3 "$image" | md5sum)"
    holds "$name: tar -t" tar -tvf "$WORK/archive"
    is "$name: names" "$(tar --quoting-style=c -tf "$WORK/archive" 2> /dev/null | wc -l)" \
        "$("$PROGRAM" -0 --type f,d,l,c,b,p "$image" | tr -dc '\0' | wc -c)"
    rm -rf "$WORK/out"
    mkdir "$WORK/out"
    # Device nodes are for root; all else must come out.
    tar -C "$WORK/out" -xf "$WORK/archive" 2> "$WORK/err"
    sums "$image" > "$WORK/want"
    hashes "$WORK/out" > "$WORK/have"
    holds "$name: contents as tar extracts them" cmp "$WORK/want" "$WORK/have"
    # And both extractions are alike, in all that ls tells.
    rm -rf "$WORK/other"
    "$PROGRAM" extract -q -C "$WORK/other" "$image" > /dev/null 2>&1
    list() { (cd "$1" && find . -mindepth 1 \( -type f -o -type l -o -type d \) -printf '%P %y %s %T@ %n %l\0' | sed -zE 's/^(.* d) [0-9]+ /\1 /' | LC_ALL=C sort -z); }
    list "$WORK/out" > "$WORK/want"
    list "$WORK/other" > "$WORK/have"
    holds "$name: as extract does it" cmp "$WORK/want" "$WORK/have"
done

if command -v cpio > /dev/null; then
    rm -rf "$WORK/out"
    mkdir "$WORK/out"
    "$PROGRAM" tar -q --format cpio "$compressed" | (cd "$WORK/out" && cpio -idm --quiet)
    sums "$compressed" > "$WORK/want"
    hashes "$WORK/out" > "$WORK/have"
    holds "contents as cpio extracts them" cmp "$WORK/want" "$WORK/have"
else
    skip "no cpio"
fi

"$PROGRAM" tar --format mtree "$compressed" > "$WORK/mtree"
is "a manifest" "$(head -n 1 "$WORK/mtree")" "#mtree"
is "with the hashes of sum" "$(grep -o 'sha256digest=[0-9a-f]*' "$WORK/mtree" | cut -d = -f 2 | sort | md5sum)" \
    "$("$PROGRAM" sum "$compressed" | sed 's/^\\//' | cut -d ' ' -f 1 | sort | md5sum)"

is "a folder" "$("$PROGRAM" tar "$compressed" /zstd | tar -t | grep -vc '^zstd/')" 0
is "a filter" "$("$PROGRAM" tar --type d "$compressed" | tar -t | grep -vc '/$')" 0

# What lies in another PATH comes with it, and once.
top=$("$PROGRAM" --type d --maxdepth 1 "$subvolumes" | LC_ALL=C sort | sed -n 2p)
deep=$("$PROGRAM" "$subvolumes" | grep "^$top/" | tail -n 1)
"$PROGRAM" tar -q "$subvolumes" "$top" | md5sum > "$WORK/want"
"$PROGRAM" tar -q "$subvolumes" "$deep" "$top/" "/.$top/../$top//" "$deep" | md5sum > "$WORK/have"
holds "each file comes once" cmp "$WORK/want" "$WORK/have"
for command in "sum" "bodyfile"; do
    is "$command: each file comes once" "$("$PROGRAM" "$command" "$subvolumes" "$top" "$deep" "$top" 2> /dev/null | sort | uniq -d)" ""
done
rm -rf "$WORK/out"
"$PROGRAM" extract -q -C "$WORK/out" "$subvolumes" "$top" "$deep" "$top" > "$WORK/err" 2>&1
is "extract: nothing exists already" "$(grep -c 'exists' "$WORK/err")" 0
"$PROGRAM" tar -q "$subvolumes" "" > /dev/null 2> "$WORK/err"
is "status of an empty PATH" $? 1
holds "which is no file" grep -q 'no such file' "$WORK/err"

# Against the mount: holes that no archive could hold, times that no 64 bits of nanoseconds can, and sockets.
if [ "$(id -u)" -eq 0 ] && command -v mkfs.btrfs > /dev/null && command -v python3 > /dev/null; then
    mkdir "$WORK/mount"
    truncate -s 256M "$WORK/image"
    mkfs.btrfs -q "$WORK/image" > "$WORK/err" 2>&1
fi
if [ -e "$WORK/image" ] && mount -o loop "$WORK/image" "$WORK/mount" 2> /dev/null; then
    (
        cd "$WORK/mount" || exit 1
        python3 -c '
import os, socket
socket.socket(socket.AF_UNIX).bind("socket")
file = os.open("hole", os.O_RDWR | os.O_CREAT)
for place in 0, 1 << 40, 1 << 60:
    os.pwrite(file, b"data", place)
os.ftruncate(file, (1 << 63) - 65536)
os.ftruncate(os.open("nothing", os.O_RDWR | os.O_CREAT), 1 << 62)
'
        touch -d '2500-01-02 03:04:05.123456789' late
        touch -d '1500-01-02 03:04:05' early
        mkdir -m 755 folder
        touch -d '3000-01-02 03:04:05' folder
        mknod device c 5 300
        setfattr -n 'user.a=b%25' -v value late 2> /dev/null
    )
    sync
    umount "$WORK/mount"
    holds "holes of exbibytes" timeout 20 "$PROGRAM" tar -q -f "$WORK/archive" "$WORK/image"
    mount -o loop "$WORK/image" "$WORK/mount"
    mkdir "$WORK/mount/out"
    tar -C "$WORK/mount/out" --xattrs --xattrs-include='*' -xf "$WORK/archive" 2> "$WORK/err"
    is "status of tar" $? 0
    list() { (cd "$1" && find . -mindepth 1 -not -path './out*' -not -name socket -printf '%P %y %m %s %T@ %n\n' | LC_ALL=C sort && getfattr -d late 2> /dev/null); }
    list "$WORK/mount" > "$WORK/want"
    list "$WORK/mount/out" > "$WORK/have"
    holds "sizes and times as on the mount" cmp "$WORK/want" "$WORK/have"
    for place in 0 1099511627776 1152921504606846976; do
        is "data at $place" "$(tail -c +$((place + 1)) "$WORK/mount/out/hole" | head -c 4)" data
    done
    umount "$WORK/mount"
    "$PROGRAM" tar --format mtree "$WORK/image" /hole /socket /device /late > "$WORK/mtree" 2> "$WORK/err"
    is "status of a manifest without a hash" $? 1
    holds "which says so" grep -q '^btrfs-walk: /hole: a hash of' "$WORK/err"
    holds "as it does of sockets" grep -q '/socket: a socket is left out' "$WORK/err"
    if command -v bsdtar > /dev/null; then
        holds "a manifest as bsdtar reads it" bsdtar -tvf "$WORK/mtree"
        is "a device in it" "$(grep -c '5,300 .*/device' "$WORK/holds")" 1
    fi
    "$PROGRAM" tar --format cpio "$WORK/image" /hole > "$WORK/archive" 2> "$WORK/err"
    is "status of what cpio cannot hold" $? 1
    holds "which it says" grep -q '/hole: .*too large' "$WORK/err"
else
    skip "no mount"
fi

# Where an archive does not go.
before=$(md5sum < "$plain")
"$PROGRAM" tar -f "$plain" "$compressed" > /dev/null 2>&1
is "status of an image as output" $? 2
"$PROGRAM" tar -f "$plain" "$plain" > /dev/null 2>&1
is "status of its own image as output" $? 2
is "which it leaves alone" "$(md5sum < "$plain")" "$before"
if command -v script > /dev/null; then
    script -qec "$PROGRAM tar '$plain'" /dev/null < /dev/null > "$WORK/terminal"
    holds "no archive for a terminal" grep -q 'terminal' "$WORK/terminal"
fi
"$PROGRAM" tar "$plain" > /dev/full 2> "$WORK/err"
is "status of a full disk" $? 1
"$PROGRAM" tar --format zip "$plain" > /dev/null 2>&1
is "status of an unknown format" $? 2

# libarchive is loaded by who needs it.
mkdir "$WORK/lib"
: > "$WORK/lib/libarchive.so.13"
LD_LIBRARY_PATH=$WORK/lib "$PROGRAM" tar "$plain" > "$WORK/archive" 2> "$WORK/err"
is "status without libarchive" $? 1
holds "says that it is missing" grep -q 'cannot load libarchive' "$WORK/err"
is "nothing is written" "$(stat -c %s "$WORK/archive")" 0
LD_LIBRARY_PATH=$WORK/lib holds "the walk does without" "$PROGRAM" "$plain"
LD_LIBRARY_PATH=$WORK/lib holds "and so does a manifest" "$PROGRAM" tar --format mtree "$plain"

# What cannot be read.
fault=debug/error-gen@device-1,kind=data
"$PROGRAM" sum --insert $fault "$compressed" > /dev/null 2> "$WORK/err"
if grep -q 'cannot be read' "$WORK/err"; then
    "$PROGRAM" tar --insert $fault "$compressed" > "$WORK/archive" 2> "$WORK/err"
    is "status with --on-error=fail" $? 1
    holds "says where" grep -q 'cannot be read' "$WORK/err"
    if tar -tf "$WORK/archive" > /dev/null 2>&1 && [ -s "$WORK/archive" ]; then fail "an archive that was broken off looks whole"; else pass; fi
    "$PROGRAM" tar --type f --on-error=zero --insert $fault "$compressed" > "$WORK/archive" 2> /dev/null
    is "status with --on-error=zero" $? 1
    is "all names with --on-error=zero" "$(tar -tf "$WORK/archive" 2> /dev/null | grep -vc '/$')" "$("$PROGRAM" "$compressed" | wc -l)"
    "$PROGRAM" tar --type f --on-error=skip --insert $fault "$compressed" > "$WORK/archive" 2> "$WORK/err"
    is "status with --on-error=skip" $? 1
    is "good files alone with --on-error=skip" "$(tar -tf "$WORK/archive" 2> /dev/null | grep -vc '/$')" \
        "$("$PROGRAM" sum --insert $fault "$compressed" 2> /dev/null | wc -l)"
else
    skip "no faults for data"
fi
finish
