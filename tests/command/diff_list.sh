#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# diff --other LIST: lists of files, in the formats of mtree(5) and of sha256sum(1) and others.
# tests/unit/diff/test_diff_list.c has the formats in detail, check.sh the findings of check.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain subvolumes bad-data || exit 1
plain=$BUILD/fixtures/plain/dev1.img
names=$BUILD/fixtures/subvolumes/dev1.img
out_is() { diff "$WORK/out" "$1"; }

# Lists of the program, and those of coreutils for the extracted files, with odd names.
holds "the image is extracted" "$PROGRAM" extract -C "$WORK/copy" -q "$names"
made() {
    case $1 in
    mtree) "$PROGRAM" tar --format mtree "$names" ;;
    sum) "$PROGRAM" sum -q "$names" ;;
    sum0) "$PROGRAM" sum -q -0 --algorithm blake2b "$names" ;;
    *) (cd "$WORK/copy" && find . -type f -exec "$@" {} +) ;;
    esac > "$WORK/list" 2> "$WORK/err"
}
for form in mtree sum sum0 sha256sum "sha256sum -z" "sha512sum --tag" "b2sum --tag" b2sum \
    sha384sum sha1sum "md5sum -b"; do
    made $form
    expect "$form" 0 'compared: [0-9]+ entries of A with [1-9]' diff --other "$WORK/list" "$names"
    holds "$form: the list has no differences" out_is /dev/null
done
holds "what such a list does not know" grep -q 'does not know them: size, mode, owner, times' \
    "$WORK/err"
if have bsdtar; then
    bsdtar -c -f "$WORK/list" --format mtree --options mtree:sha256 -C "$WORK/copy" .
    expect "bsdtar" 0 'compared: ' diff --only M --content never --other "$WORK/list" "$names"
else
    skip bsdtar "a list of bsdtar"
fi

# Differences.
"$PROGRAM" sum -q "$plain" > "$WORK/sums"
sed -e '2s/^./x/;2s/^x[^ ]*/'"$(printf '%064d' 7)"'/' -e 3d "$WORK/sums" > "$WORK/list"
printf '%064d  added/file\n' 1 >> "$WORK/list"
second=$(sed -n '2s/^[^ ]*  //p' "$WORK/sums") third=$(sed -n '3s/^[^ ]*  //p' "$WORK/sums")
expect "a list of hashes" 1 'compared: ' diff --exit-code --other "$WORK/list" "$plain"
holds "an added, a deleted and a changed file" diff <(sort "$WORK/out") <(
    printf '%s\n' $'+\tF\t/added/file' $'-\tF\t'"$third" $'M\tF\t'"$second" | sort)
expect "below a path" 0 'compared: ' diff --below /added --other "$WORK/list" "$plain"
is "--below lists one added file" "$(cat "$WORK/out")" $'+\tF\t/added/file'
expect "as JSON" 0 'compared' diff --only M --json --other "$WORK/list" "$plain"
holds "JSON says that the contents have changed" out_has '"changes":\["content"\]'
"$PROGRAM" tar --format mtree "$plain" | sed -e 's|^\(\./top-file .*mode=\)[0-7]*|\10600|' \
    -e 's|^\(\./data/inline .*\) size=[0-9]*|\1 size=1|' > "$WORK/list"
expect "a list of mtree" 0 'does not know them: xattrs$' diff --other "$WORK/list" "$plain"
is "a list of mtree has a changed mode and size" \
    "$(cat "$WORK/out")" $'M\tF\t/data/inline\nM\tF\t/top-file'
"$PROGRAM" sum -q --subvol home "$names" > "$WORK/list"
expect "a subvolume" 0 'compared: ' diff --nested no --other "$WORK/list" "$names" home
holds "the list of a subvolume has no differences" out_is /dev/null
expect "another one differs" 1 'compared' diff --exit-code --other "$WORK/list" "$names" docs
bad=$BUILD/fixtures/bad-data/dev1.img
"$PROGRAM" -q "$bad" 2> "$WORK/err" | sed "s|^|$(printf '%064d' 7)  |" > "$WORK/list"
expect "data that cannot be read" 1 'checksum' diff --other "$WORK/list" "$bad"
holds "files that cannot be read are unknown" out_has $'^\\?\tF\t/'
holds "files that can be read are compared" out_has $'^M\tF\t/'

# Files that are no list.
printf './a type=folder\n' > "$WORK/bad"
expect "a bad list" 2 'bad: line 1: a value that the keyword does not have: type=folder' \
    diff --other "$WORK/bad" "$plain"
expect "a list and a subvolume for B" 2 'a list has no B' diff --other "$WORK/list" "$plain" / home
expect "a text" 2 'is not a btrfs file system' diff --other "$ROOT/LICENSE" "$plain"
finish
