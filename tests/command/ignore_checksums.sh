#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --ignore-checksums: tree blocks with a wrong checksum that pass everything else, data that do not
# match their checksums, and data whose checksums are lost. Verified copies are preferred.
set -uo pipefail
. "$(dirname "$0")/common.bash"

F=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$F" plain dup compressed || exit 1
block() { "$PROGRAM" dump --tree "$2" "$1" | sed -n 's/^leaf \([0-9]*\) .*/\1/p' | head -n 1; }
places() { "$PROGRAM" map -o offset --raw "$1" "$2"; }
# spoil IMAGE PLACE...: overwrites a byte at each place with another one
spoil() {
    local place
    for place in "${@:2}"; do
        printf '\377\376' | dd of="$1" bs=1 seek="$place" conv=notrunc status=none
    done
}

for name in plain dup; do
    image=$F/$name/dev1.img
    cp --sparse=always "$image" "$WORK/bad"
    leaf=$(block "$image" fs)
    mapfile -t copies < <(places "$image" "$leaf")
    # Of the header, only the checksum is damaged.
    spoil "$WORK/bad" "${copies[@]}"
    expect "$name: a lost leaf" 1 'damage: .*checksum mismatch' sum "$WORK/bad"
    expect "$name: is accepted" 0 "warning: .*tree block $leaf .*accepted although" \
        sum -0 --ignore-checksums metadata "$WORK/bad"
    holds "$name: a leaf with a wrong checksum has all files" sums_match "$name"
    is "$name: one warning is printed for the leaf" "$(wc -l < "$WORK/err")" 1
    expect "$name: not as data" 1 'damage: .*checksum mismatch' \
        sum --ignore-checksums data "$WORK/bad"
done

# Of the second block, the address is damaged, too.
spoil "$WORK/bad" $((copies[0] + 48)) $((copies[1] + 48))
expect "a block that fails another check" 1 'damage: ' sum --ignore-checksums all "$WORK/bad"

# A good mirror is preferred.
cp --sparse=always "$F/dup/dev1.img" "$WORK/bad"
spoil "$WORK/bad" "${copies[0]}"
expect "a good mirror" 0 - sum --ignore-checksums all "$WORK/bad"

# Data: wrong, and with lost checksums.
image=$F/compressed/dev1.img
cp --sparse=always "$image" "$WORK/bad"
mapfile -t copies < <(places "$image" "$(block "$image" csum)")
for place in "${copies[@]}"; do spoil "$WORK/bad" $((place + 48)); done
expect "lost checksums" 1 '; --ignore-checksums data reads them without$' sum "$WORK/bad"
expect "read without" 0 'warning: .*: [0-9]+ bytes of data were not verified' \
    sum -0 --ignore-checksums data "$WORK/bad"
holds "data without checksums have all contents" sums_match compressed
expect "they are not verified" 0 . \
    extract -C "$WORK/saved" --manifest "$WORK/manifest" --ignore-checksums data "$WORK/bad"
holds "a manifest lists unverified files" grep -q '"saved":"unverified"' "$WORK/manifest"
expect "verified files" 0 - extract -C "$WORK/good" --manifest "$WORK/manifest" \
    --ignore-checksums all "$image"
grep -c '"saved":"unverified"' "$WORK/manifest" > "$WORK/count"
expect "without the option" 0 - extract -C "$WORK/plain" --manifest "$WORK/manifest" "$image"
is "verified files are listed as without the option" \
    "$(cat "$WORK/count")" "$(grep -c '"saved":"unverified"' "$WORK/manifest")"
expect "the removed option" 2 'use --ignore-checksums data' cat --no-checksums "$image" /x

finish
