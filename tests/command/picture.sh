#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The picture command: its pixels are those of btrfs-heatmap on mounted copies, which tests/data has
# the sums of; SVG, text, colours, owners, damage.
set -uo pipefail
. "$(dirname "$0")/common.bash"

sums=$ROOT/tests/data/heatmap.sums
# shellcheck disable=SC2046 # words on purpose
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" $(cut -d ' ' -f 1 "$sums" | uniq) \
    lost-tree-extent subvolumes laptop raid5-3 || exit 1
fixtures=$BUILD/fixtures
plain=$fixtures/plain/dev1.img

# draw FIXTURE SORT CURVE ORDER SIZE: makes the picture with the options that btrfs-heatmap had.
draw() {
    local order=() sort=${2/virtual/logical}
    [ "$4" = auto ] || order=(--order "$4")
    timeout 20 "$PROGRAM" picture --by heatmap --sort "$sort" --curve "$3" "${order[@]}" \
        --size "$5" -f "$WORK/$1-$2-$3-$4-$5.png" "$fixtures/$1"/dev*.img
}

compare_with_heatmap() {
    local fixture sort curve order size sum dimensions files=()
    while read -r fixture sort curve order size sum dimensions; do
        draw "$fixture" "$sort" "$curve" "$order" "$size"
        files+=("$WORK/$fixture-$sort-$curve-$order-$size.png")
    done < "$sums"
    holds "the pixels are those of btrfs-heatmap" diff <(cut -d ' ' -f 6,7 "$sums") \
        <(python3 "$ROOT/tests/support/png_pixels.py" "${files[@]}")
}

if grep -q PNG=1 "$BUILD/features"; then
    compare_with_heatmap
    expect "a PNG of several devices" 0 - picture --size 5 --order 4 -f "$WORK/raid.png" \
        "$fixtures"/raid5-3/dev?.img
    holds "has a square for each, and gaps" grep -q ' 65x65$' <(python3 \
        "$ROOT/tests/support/png_pixels.py" "$WORK/raid.png")
    expect "too many pixels" 2 'more than' picture --size 12 -f "$WORK/large.png" \
        "$fixtures"/raid10-4/dev?.img
else
    skip "a build with libpng" "pictures as PNG"
    expect "a PNG without libpng" 3 'libpng' picture -f "$WORK/none.png" "$plain"
fi

if have_terminal; then
    script -qec "stty cols 32 rows 60; '$PROGRAM' picture '$plain'" /dev/null < /dev/null \
        > "$WORK/out"
    holds "a picture fills the terminal" out_has 'cells of 128.00KiB'
    for size in "rows 7 cols 80" "rows 24 cols 7"; do
        script -qec "stty $size; '$PROGRAM' picture '$plain'" /dev/null < /dev/null > "$WORK/out"
        holds "a picture for a window with $size" out_has 'cells of 8.00MiB'
    done
else
    skip "script(1) on a pseudo-terminal" "pictures on a terminal"
fi

# SVG: reproducible, well-formed, without external references.
expect "a picture as SVG" 0 - picture -f "$WORK/a.svg" "$plain"
holds "picture -f prints nothing on stdout" [ ! -s "$WORK/out" ]
expect "another name" 0 - picture --format svg "$plain"
holds "--format svg prints the same picture" cmp "$WORK/out" "$WORK/a.svg"
holds "the SVG describes what it shows" \
    grep -qF '<desc id="map-desc">104.00MiB of 128.00MiB are allocated. Data,
 476.00KiB of 24.00MiB used. Metadata, 832.00KiB of 64.00MiB used.' <(tr '\n' ' ' < "$WORK/a.svg" |
    sed 's/Data, /Data,\n /')
view='viewBox="-24 -24 768 '
holds "is as wide as all" grep -qF "$view" "$WORK/a.svg"
holds "the SVG contains its style" grep -qF '<style>' "$WORK/a.svg"
holds "the SVG is smaller than 20000 bytes" [ "$(wc -c < "$WORK/a.svg")" -lt 20000 ]
well_formed() { python3 -c 'import sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])' "$1"; }
holds "the SVG is well-formed" well_formed "$WORK/a.svg"
holds "has no scripts and no addresses but its namespace" test -z \
    "$(grep -oE '<script|href|url\(|http[^"]*' "$WORK/a.svg" | grep -v www.w3.org/2000/svg)"
for by in fill age owner heatmap; do
    expect "a picture by $by" 0 - picture --by "$by" -f "$WORK/$by.svg" "$fixtures"/raid5-3/dev?.img
    holds "the SVG by $by is well-formed" well_formed "$WORK/$by.svg"
done
# Viewers scale a picture to their width: equal widths mean equally large letters.
holds "several devices, as wide as one" grep -qF "$view" "$WORK/age.svg"
is "with captions as large" "$(grep -oE 'font-size="[0-9]+"' "$WORK/a.svg" | sort -u)" \
    "$(grep -oE 'font-size="[0-9]+"' "$WORK/age.svg" | sort -u)"
holds "ages have generations" grep -qE '>generation [0-9]+ \(oldest\) to [0-9]+ \(newest\)<' \
    "$WORK/age.svg"
is "and a gradient" "$(grep -cE '<rect x="[0-9]+" y' "$WORK/age.svg")" 1
is "of ten colours" "$(grep -oE '<rect x="[0-9]+" y' "$WORK/age.svg" | wc -l)" 10
expect "ages" 0 - picture --by age --order 2 "$plain"
holds "end with the last transaction" out_has '^0123456789 generation 5 \(oldest\) to 8 \(newest\)$'
expect "a missing device" 0 'device 3 .* is missing' picture -f "$WORK/missing.svg" \
    "$fixtures/raid5-3/dev1.img" "$fixtures/raid5-3/dev2.img"
holds "a missing device has a caption" grep -qE '>device 3, [^<]*, missing<' "$WORK/missing.svg"
holds "and is in the legend" grep -qF '>crossed out: a missing device<' "$WORK/missing.svg"
holds "the legend explains unused space" \
    grep -qE '>faint: allocated, not used, [0-9.]+MiB<' "$WORK/missing.svg"
holds "and so is free space" grep -qE '>unallocated, [0-9.]+MiB<' "$WORK/missing.svg"
expect "the owners of subvolumes" 0 - picture --by owner "$fixtures/subvolumes/dev1.img"
holds "subvolumes in the legend have names" out_has '^[0-9a] /.* \(id [0-9]+\), '
holds "and so are the trees of the file system" out_has '^9 trees of the file system, '
holds "all space has an owner" test -z "$(grep 'unknown owner' "$WORK/out")"
# Contents of the snapshots of an original count for the original, which the references name or, by
# the addresses of tree blocks, lead to.
expect "the owners of snapshots" 0 - picture --by owner "$fixtures/laptop/dev1.img"
holds "are the subvolumes that were snapshotted" out_has '^. /@ \(id 256\), 480.00KiB'
holds "and snapshots, for the contents that only they have" \
    out_has '^. /@snapshots/1/snapshot \(id 260\), 260.00KiB'
holds "nobody is unknown" test -z "$(grep 'unknown owner' "$WORK/out")"

# Text.
expect "a picture as text" 0 - picture --order 3 --curve linear "$plain"
holds "a picture as text has letters" diff "$WORK/out" - << 'END'
device 1, 128.00MiB, cells of 2.00MiB
......dd
dddsssss
ssmmmmmm
mmmmmmmm
mmmmmmmm
mmmmmmmm
mmdddddd
ddd.....
D Data, 476.00KiB of 24.00MiB used
M Metadata, 832.00KiB of 64.00MiB used
S System, 32.00KiB of 16.00MiB used
. unallocated, 24.00MiB
END
COLORTERM=truecolor expect "24-bit colours" 0 - picture --color=always --order 1 "$plain"
holds "24-bit colours show two cells in a character" \
    out_has $'^(\033\\[[34]8;2;[0-9]+;[0-9]+;[0-9]+m)+▀'
COLORTERM='' expect "256 colours" 0 - picture --color=always --order 1 "$plain"
holds "256 colours show two cells in a character" out_has $'^(\033\\[[34]8;5;[0-9]+m)+▀'
holds "the nearest of the cube" out_has $'\033\\[38;5;214m.* Metadata'
NO_COLOR=1 expect "no colours" 0 - picture "$plain"
holds "NO_COLOR prints no colours" test -z "$(grep $'\033' "$WORK/out")"
expect "the first of three devices" 0 - picture --devid 1 --order 2 "$fixtures"/raid5-3/dev?.img
holds "--devid shows only that device" [ "$(grep -c '^device' "$WORK/out")" -eq 1 ]

# Damage and invalid usage.
expect "a damaged extent tree" 1 'damage: ' picture --order 3 "$fixtures/lost-tree-extent/dev1.img"
holds "without an extent tree, the chunks are shown" out_has '^D Data, 0B of 8.00MiB used'
expect "an unknown suffix" 2 'unknown type of picture' picture -f "$WORK/a.jpg" "$plain"
expect "an unknown device" 2 'no device 9' picture --devid 9 "$plain"
expect "a device in logical order" 2 'excludes' picture --devid 1 --sort logical "$plain"
expect "an order that is too high" 2 'from 0 to 11' picture --order 12 "$plain"
cp --sparse=always "$plain" "$WORK/own.svg"
expect "the image as output" 2 'is an input' picture -f "$WORK/own.svg" "$WORK/own.svg"
holds "an image that is given as output stays as it is" cmp "$plain" "$WORK/own.svg"
finish
