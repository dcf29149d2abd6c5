#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The report command: a page that is well-formed and self-contained, has the same numbers as the
# commands, and shows hostile names as text. Where there is a browser, it loads the page.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain subvolumes raid5-3 lost-tree-extent \
    lost-leaf-first lost-leaf-inodes dup raid0-5 laptop || exit 1
fixtures=$BUILD/fixtures
plain=$fixtures/plain/dev1.img

# page DESCRIPTION STATUS REGEX ARGUMENTS...: as `expect`; the page is in $WORK/page.html, and its
# text in $WORK/text.
page() {
    expect "$1" "$2" "$3" report -f "$WORK/page.html" "${@:4}"
    holds "$1: the page is well-formed and needs nothing else" \
        python3 "$ROOT/tests/support/check_page.py" "$WORK/page.html"
    cp "$WORK/holds" "$WORK/text"
}

# text_has TEXT: whether the text of the page has this line.
text_has() { grep -qxF -- "$1" "$WORK/text"; }

page "a report" 0 - "$plain"
holds "report -f prints nothing on stdout" [ ! -s "$WORK/out" ]
"$PROGRAM" report "$plain" > "$WORK/again.html"
holds "the same bytes on stdout" cmp "$WORK/again.html" "$WORK/page.html"
holds "without a label, the name of the image" text_has 'dev1.img'
holds "the title of the page has the name of the image" \
    grep -qF '<title>dev1.img - btrfs report</title>' "$WORK/page.html"
holds "the page has the number of files" grep -qF '<b>94</b> <span>files</span>' "$WORK/page.html"
holds "the page has the number of directories" \
    grep -qF '<b>50</b> <span>directories</span>' "$WORK/page.html"
holds "what was read is said" text_has 'metadata are good; data were not checked'
is "no part of it is green" "$(grep -c 'class="[^"]*good"' "$WORK/page.html")" 0
if have_terminal; then
    script -qec "'$PROGRAM' report --check none '$plain'" /dev/null < /dev/null > "$WORK/out"
    holds "on a terminal, a summary" out_has '^94 files'
    holds "a terminal gets no markup" test -z "$(grep '[<>]' "$WORK/out")"
    holds "the message names -f" out_has '^report -f FILE.html writes'
else
    skip "script(1) on a pseudo-terminal" "reports on a terminal"
fi
page "all data" 0 - --check data "$plain"
holds "only then all is good" grep -q 'class="badge good">no errors found<' "$WORK/page.html"
holds "the section calls the file system sound" text_has 'Sound.'
page "a quick check" 0 - --check quick "$plain"
holds "a quick check says that it reads little" \
    text_has 'critical trees are good; the rest was not checked'
"$PROGRAM" metadump -f "$WORK/dump.img" "$plain" > "$WORK/out" 2> "$WORK/err"
page "an image without data" 0 - --check data "$WORK/dump.img"
holds "has no data to check" text_has 'metadata are good; data were not checked'
page "a report" 0 - "$plain"
for folder in 'data, 644.00KiB, 7 files' 'docs, 20.00KiB, 9 files'; do
    holds "folders in the picture have names" grep -qF "<title>$folder</title>" "$WORK/page.html"
done
for file in plain reflink preallocated; do
    size=$("$PROGRAM" du --iec -o total "$plain" "/data/$file")
    holds "the large file $file has a box" grep -qE \
        "<title>$file, $size</title>.*>$file</text><text [^>]*>$size</text></g>" "$WORK/page.html"
done
holds "the page is smaller than 100000 bytes" [ "$(wc -c < "$WORK/page.html")" -lt 100000 ]

# Same numbers as the commands.
"$PROGRAM" usage "$plain" > "$WORK/usage"
holds "the page has the lines of usage" diff <(sed 's/^ *//; /^$/d' "$WORK/usage") \
    <(sed 's/^ *//; /^$/d' "$WORK/text" | grep -xFf <(sed 's/^ *//; /^$/d' "$WORK/usage"))
"$PROGRAM" info "$plain" | sed -E 's/^[^:]*: *//; /^$/d; s/^ *//' > "$WORK/info"
while IFS= read -r line; do
    holds "the page has the line of info: $line" text_has "$line"
done < "$WORK/info"
"$ROOT/scripts/unpack-fixtures" "$fixtures" empty || exit 1
page "an empty file system" 0 - --check none "$fixtures/empty/dev1.img"
holds "says that it has no files" text_has 'Without files, there are no boxes to draw.'
page "subvolumes" 0 - --check none "$fixtures/subvolumes/dev1.img"
holds "--check none says that nothing was checked" text_has 'not checked'
while IFS=$'\t' read -r path size; do
    holds "the page lists the subvolume $path" text_has "$path"
    holds "the page has the size of a subvolume" text_has "$size"
done < <("$PROGRAM" space --header --iec -o subvolume_path,exclusive \
    "$fixtures/subvolumes/dev1.img" |
    sed -n '2,6p')

holds "dates have no nanoseconds" \
    grep -qE '^2[0-9]{3}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC$' "$WORK/text"

# Hostile names are shown as text.
hex() { printf %s "$1" | od -An -tx1 | tr -d ' \n'; }
cp --sparse=always "$fixtures/subvolumes/dev1.img" "$WORK/hostile.img"
rename() { python3 "$ROOT/tests/support/patch_image.py" "$WORK/hostile.img" "$(hex "$1")" \
    "$(hex "$2")"; }
rename empty-volume "<script>'\"&x"
rename to-move $'a\u202eb<c'
rename hash-c0649d5.dir $'<b>\x1b[31m--><x>yz'
rename 'second name of large.bin' "$(printf '\u202e%.0s' {1..8})"
label=$(printf '</title><script>alert(1)</script>' | od -An -tu1 -w1 | tac |
    python3 -c 'import sys; print(int(bytes(map(int, sys.stdin.read().split())).hex(), 16))')
holds "the image gets a hostile label" change "$WORK/hostile.img" super 299 34 "$label"
page "hostile names" 1 'the check found [0-9]+ errors' "$WORK/hostile.img"
holds "a hostile label is shown as text" text_has '</title><script>alert(1)</script>'
holds "a hostile name is shown as text" grep -qF "<script>'\"&x" "$WORK/text"
holds "marks of direction are shown as escapes" grep -qF 'a\u{202e}b<c' "$WORK/text"
holds "also in a label that is cut off" grep -qE '>(\\u\{202e\}){2}\\u\{202.*…<' "$WORK/page.html"
holds "control bytes are shown as escapes" grep -qF '<b>\033[31m--><x>yz' "$WORK/text"
holds "the check has found them" text_has 'damaged'
cp "$WORK/page.html" "$WORK/hostile.html"

# Damage, missing devices, wrong usage.
page "a lost leaf" 1 'damage: ' --check quick "$fixtures/lost-leaf-first/dev1.img"
holds "is said at the top" text_has 'Missing or unreliable parts'
holds "without a full check, the files are unknown" grep -qF 'a complete check names them' \
    "$WORK/text"
page "lost inodes" 1 'damage: ' "$fixtures/lost-leaf-inodes/dev1.img"
holds "the affected files are the first section" [ "$(grep -n -m 1 '<section' "$WORK/page.html" |
    grep -c 'id="affected"')" = 1 ]
holds "the page counts the affected files" text_has '3 files or directories'
for file in 9 10 11; do
    holds "the page lists an affected file" grep -qF \
        "<code>/dir-2/file-$file</code>: its attributes, contents or names" "$WORK/page.html"
done
holds "the page names the next command" text_has \
    "btrfs-walk check --data $fixtures/lost-leaf-inodes/dev1.img"
cp --sparse=always "$plain" "$WORK/it's lost.img"
offset=$("$PROGRAM" owner -o logical,kind,path "$plain" 13631488+8M |
    awk -F '\t' '$2 == "data" { print $1; exit }')
victim=$("$PROGRAM" owner -o path "$plain" "$offset")
# Data have the same offset on the only device as in logical addresses.
holds "data of a file are damaged" \
    dd if=/dev/urandom of="$WORK/it's lost.img" bs=4096 count=1 conv=notrunc \
    seek="$((offset / 4096))" status=none
page "without reading data" 0 - "$WORK/it's lost.img"
is "bad data are not green" "$(grep -c 'class="[^"]*good"' "$WORK/page.html")" 0
page "with reading data" 1 'found 1 error' --check data "$WORK/it's lost.img"
holds "the page lists the damaged file" \
    grep -qF "<code>$victim</code>: 4.00KiB of the contents cannot be read" \
    "$WORK/page.html"
holds "the command on the page is quoted for a shell" text_has \
    "btrfs-walk extract -C FOLDER '$WORK/it'\"'\"'s lost.img'"
cp --sparse=always "$fixtures/dup/dev1.img" "$WORK/half.img"
block=$("$PROGRAM" super -o root "$WORK/half.img" | head -n 1)
offset=$("$PROGRAM" map -o offset "$WORK/half.img" "$block" | head -n 1)
holds "one mirror of a block is damaged" \
    dd if=/dev/urandom of="$WORK/half.img" bs=512 count=1 conv=notrunc \
    seek="$((offset / 512 + 1))" status=none
page "damage that can be repaired" 1 'found 1 error' "$WORK/half.img"
holds "the page says that no contents are lost" \
    grep -qF 'Nothing that was checked is lost: 1 error can be repaired' \
    "$WORK/page.html"
page "a lost extent tree" 1 'damage: ' "$fixtures/lost-tree-extent/dev1.img"
holds "without an extent tree, the page has the other sections" text_has 'Subvolumes and snapshots'
page "a missing device" 0 'is missing' --check none "$fixtures"/raid5-3/dev[12].img
holds "the page says that devices are missing" text_has 'devices are missing'
# The check opens the images again, which takes additional file descriptors.
touch "$WORK/few" && chmod +x "$WORK/few"
for files in {40..4}; do
    printf '#!/bin/sh\nulimit -n %s\nexec "%s" "$@"\n' "$files" "$PROGRAM" > "$WORK/few"
    "$WORK/few" report -f "$WORK/page.html" "$fixtures"/raid0-5/dev*.img 2> "$WORK/err" || break
done
PROGRAM=$WORK/few page "a section that fails as a whole" 1 \
    'damage: cannot open .*dev.\.img: Too many open files' "$fixtures"/raid0-5/dev*.img
holds "a section that fails does not affect the others" text_has 'Subvolumes and snapshots'
expect "no file system" 2 '' report -f "$WORK/none.html" "$ROOT/README.md"
holds "an image without a file system makes no page" [ ! -s "$WORK/none.html" ]
expect "an unknown check" 2 'full, quick, none' report --check half "$plain"

expect "snapshots" 0 - report -f "$WORK/deep.html" "$BUILD/fixtures/laptop/dev1.img"
holds "files deep in them have boxes" [ "$(grep -c '<title>program-6, ' "$WORK/deep.html")" = 2 ]

# A browser, and its error messages.
browser() {
    timeout 60 "$chromium" --headless=new --no-sandbox --disable-gpu --enable-logging=stderr \
        --user-data-dir="$WORK/profile" --dump-dom "file://$1" > "$WORK/dom" 2> "$WORK/log"
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$chromium" ] || ! browser "$WORK/hostile.html"; then
    skip "a browser that runs" "the page in a browser"
else
    holds "the browser sees no script" test -z "$(grep -oi '<script[^>]*>' "$WORK/dom")"
    holds "the browser refuses nothing" test -z "$(grep -i 'content security policy' "$WORK/log")"
    holds "the browser shows the page to its end" grep -q '</footer>' "$WORK/dom"
    sed 's/--ink/--iNk/' "$WORK/hostile.html" > "$WORK/changed.html"
    browser "$WORK/changed.html"
    holds "the browser refuses a changed style" grep -qi 'content security policy' "$WORK/log"
fi
finish
