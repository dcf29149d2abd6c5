#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --mirror of cat and extract: the chosen mirror of the data is read, and no other one replaces it.
# In a copy of each fixture, one byte of one mirror is changed.
set -uo pipefail
. "$(dirname "$0")/common.bash"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" dup raid1-2 raid1c3-3 raid10-4 raid5-3 raid6-4 \
    compressed data-shapes || exit 1
F=$BUILD/fixtures
file='/docs/second name of large.bin'

# flip IMAGE OFFSET: changes a byte.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %x $((byte ^ 16)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# damaged FIXTURE BAD FILE: changes mirror BAD of a file's data; `-` is the row of P. Sets `images`.
damaged() {
    local image place
    rm -rf "$WORK/pool"
    mkdir "$WORK/pool"
    images=("$WORK/pool/dev1.img")
    for image in "$F/$1"/dev*.img; do
        cp --sparse=always "$image" "$WORK/pool"
        [ "${image##*/}" = dev1.img ] || images=(--device "$WORK/pool/${image##*/}" "${images[@]}")
    done
    logical=$(run_json extents --json "${images[@]}" "$3" |
        sed -n 's/.*"extent_logical":\([0-9]*\).*/\1/p' | head -n 1)
    places=$("$PROGRAM" map -b -o mirror,devid,offset "${images[@]}" "$logical")
    place=$(sed -n "s/^$2\t//p" <<< "$places")
    read -r devid offset <<< "$place"
    flip "$WORK/pool/dev$devid.img" "$((offset + 100))"
}

for fixture in dup:2:1 dup:2:2 raid1-2:2:1 raid1-2:2:2 raid1c3-3:3:1 raid1c3-3:3:2 raid1c3-3:3:3 \
    raid10-4:2:1 raid10-4:2:2 raid5-3:2:1 raid5-3:2:2 raid6-4:4:1; do
    IFS=: read -r name mirrors bad <<< "$fixture"
    stored=$bad where="mirror $bad on device [0-9]+ at [0-9]+: "
    if [ "$name-$bad" = raid5-3-2 ]; then
        stored=- where="mirror 2 \(rebuilt from parity\): "
    fi
    damaged "$name" "$stored" "$file"
    expect "$name: any mirror" 0 - cat "${images[@]}" "$file"
    cp "$WORK/out" "$WORK/good"
    is "$name: the file has its size" "$(wc -c < "$WORK/good")" 20000
    for ((mirror = 1; mirror <= mirrors; mirror++)); do
        if [ "$mirror" != "$bad" ]; then
            expect "$name: mirror $mirror" 0 - cat --mirror "$mirror" "${images[@]}" "$file"
            holds "$name: mirror $mirror has the same" cmp "$WORK/good" "$WORK/out"
            continue
        fi
        expect "$name: bad mirror $bad" 1 "${where}crc32c checksum mismatch" \
            cat --mirror "$bad" "${images[@]}" "$file"
        expect "$name: bad mirror $bad, ignored" 0 'were not verified' \
            cat --mirror "$bad" --ignore-checksums data "${images[@]}" "$file"
        is "$name: it differs in one byte" "$(cmp -l "$WORK/good" "$WORK/out" | wc -l)" 1
        expect "$name: extract" 1 "$where" extract -C "$WORK/extracted" --mirror "$bad" \
            "${images[@]}" "$file"
        holds "$name: a bad mirror is not extracted" [ ! -e "$WORK/extracted$file" ]
        expect "$name: extract of another mirror" 0 - extract -C "$WORK/extracted" \
            --mirror "$((bad % 2 + 1))" "${images[@]}" "$file"
        holds "$name: a good mirror is extracted" cmp "$WORK/good" "$WORK/extracted$file"
        rm -r "$WORK/extracted"
    done
done
damaged dup 1 "$file"
expect "no such mirror" 1 'there is no mirror 3' cat --mirror 3 "${images[@]}" "$file"
expect "mirror 0" 2 'counted from 1' cat --mirror 0 "${images[@]}" "$file"
expect "with --subvolumes" 2 'exclude each other' extract -C "$WORK/extracted" --mirror 1 \
    --subvolumes "${images[@]}"

# Data without checksums: both mirrors are read as they are.
for image in one two; do
    cp --sparse=always "$F/data-shapes/dev1.img" "$WORK/$image.img"
done
logical=$("$PROGRAM" extents "$WORK/one.img" /without-checksums |
    awk '$NF ~ /^1:/ { print $(NF - 3) + 0; exit }')
flip "$WORK/two.img" \
    "$(("$("$PROGRAM" map -b -o offset "$WORK/one.img" "$logical" | head -n 1)" + 5000))"
for mirror in 1 2; do
    expect "mirror $mirror without checksums" 0 - cat --mirror "$mirror" --alternatives \
        --device "$WORK/two.img" "$WORK/one.img" /without-checksums
    cp "$WORK/out" "$WORK/mirror.$mirror"
done
is "they differ in one byte" "$(cmp -l "$WORK/mirror.1" "$WORK/mirror.2" | wc -l)" 1

# Compressed data that do not decompress, and have no checksums.
for device in 1 2; do
    zstd -qd --sparse "$ROOT/tests/data/bad-streams-$device.img.zst" -o "$WORK/streams-$device.img"
done
streams=(--device "$WORK/streams-2.img" "$WORK/streams-1.img")
expect "compressed, any mirror" 0 "were not verified" \
    cat --ignore-checksums data "${streams[@]}" /log
expect "compressed, the bad mirror" 1 'mirror 1 on device 1 at [0-9]*: ' cat --mirror 1 \
    --ignore-checksums data "${streams[@]}" /log
expect "compressed, the good mirror" 0 "were not verified" cat --mirror 2 \
    --ignore-checksums data "${streams[@]}" /log
finish
