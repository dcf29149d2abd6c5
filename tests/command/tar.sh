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
