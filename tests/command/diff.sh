#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The diff command: on a fixture with changes of all kinds, with damage on one side, and between
# images. tests/kernel/diff.py compares random changes with what a mount shows.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" differences subvolumes plain gone \
    compressed || exit 1
image=$BUILD/fixtures/differences/dev1.img
others=$BUILD/fixtures/subvolumes/dev1.img
out_is() { diff "$WORK/out" "$1"; }
count() { grep -cE -- "$1" "$WORK/out"; }

# Comparison of the blocks that are not shared.
cat > "$WORK/changes" << 'END'
M	/	/
M	/	/again
M	F	/again/file
M	F	/attributes
-	F	/bytes\377
-	/	/gone
-	/	/gone/below
-	F	/gone/below/file
M	/	/many
-	F	/many/150
-	/	/nested-gone
+	/	/nested-new
+	F	/new
R	/	/docs	/papers
M	/	/papers
M	/	/papers/deep
R	F	/docs/link	/papers/deep/third
M	F	/papers/deep/third
M	F	/papers/large
R	/	/nested	/papers/nested
M	F	/papers/small
M	F	/saved
R	F	/swap-b	/swap-a
R	F	/swap-a	/swap-b
M	@	/symlink
R	F	/tab\tand newline\n	/tab\tonly
T	/	/type
+	F	/type/file
END
expect "two snapshots" 0 'compared: ' diff "$image" first second
holds "diff of two snapshots lists all changes" out_is "$WORK/changes"
expect "by their ids" 0 'compared: ' diff "$image" /first \
    "$("$PROGRAM" subvolumes -o subvolume_path,subvolume "$image" |
    awk '$1 == "/second" { print $2 }')"
holds "ids select the same snapshots as paths" out_is "$WORK/changes"
cp --sparse=always "$image" "$WORK/copy"
holds "top directories without a time of birth" change "$WORK/copy" 256 256 1 0 set 148 8 0 \
    and 256 256 1 0 set 156 4 0
expect "snapshots of one origin, by their UUIDs" 0 'compared: ' diff "$WORK/copy" first second
holds "snapshots of one origin have the same inodes" out_is "$WORK/changes"
expect "a snapshot and itself" 0 'compared: ' diff "$image" first first
holds "a snapshot does not differ from itself" out_is /dev/null
expect "a snapshot and its origin" 0 'compared: ' diff "$image" third live
holds "a snapshot does not differ from its origin" out_is /dev/null

# These differ only in the location of data.
expect "moved data" 0 'compared: ' diff "$image" second third
holds "moved data are no change" out_is /dev/null
expect "all data are read" 0 'compared: ' diff --content always "$image" second third
holds "reading all data finds no change" out_is /dev/null
expect "data are not read" 0 'compared: ' diff --content never "$image" second third
holds "what is not known is said" out_is - <<< $'?\tF\t/papers/large\n?\tF\t/unsummed'
expect "moved data, path by path" 0 'compared: ' diff --by-path "$image" second third
holds "moved data are no change with --by-path" out_is /dev/null

# Output formats.
expect "below a path" 0 'compared: ' diff --below papers/deep/ "$image" first second
is "--below lists the changes below a path" "$(count .)" 3
expect "a path that is only in A" 0 'compared: ' \
    diff --only D --below /gone/below/file "$image" first second
is "--below with a path that only A has lists one change" \
    "$(cat "$WORK/out")" $'-\tF\t/gone/below/file'
expect "a path that is nowhere" 1 'nowhere' diff --below /nowhere "$image" first second
expect "names as they are" 0 'compared: ' diff -0 --only R "$image" first second
is "-0 ends fields with NUL" "$(tr '\0' '!' < "$WORK/out" | tail -c 32)" \
    $'R!F!/tab\tand newline\n!/tab\tonly!'
expect "a list for a backup" 0 'compared: ' \
    diff -0 -o path --only AMT --below /type "$image" first second
is "-0 -o path prints paths alone" "$(tr '\0' ' ' < "$WORK/out")" '/type /type/file '
expect "the bytes of differences" \
    0 '^btrfs-walk: .* 12 modified, 6 renamed, 1 of another type; 4143 bytes; ' \
    diff --stat "$image" first second
holds "--stat prints the bytes of a new file" out_has $'^\\+\tF\t4\t/new$'
expect "differences as JSON" 0 'compared: ' diff --json "$image" first second
holds "JSON has the changed attributes of a file" out_has \
    '"path":"/attributes","changes":\["mode","owner","xattrs"\],"changed_bytes":0'
holds "JSON has the changed bytes of a file" out_has \
    '"path":"/papers/large","changes":\["content","times"\],"changed_bytes":4096'
holds "JSON has both paths of a renamed directory" \
    out_has '"change":"renamed","type":"directory","path":"/papers","old_path":"/docs"'
holds "JSON has the changed bytes of a hard link" out_has \
    '"/papers/small","changes":\["content","size","times"\],"changed_bytes":4'
holds "JSON has both types of a path" \
    out_has '"change":"type","type":"directory","path":"/type".*"old_type":"file"'
holds "bytes that are no UTF-8" out_has \
    '"change":"deleted","type":"file","path_bytes":"L2J5dGVz/w=="'
expect "path by path" 0 'compared: ' diff --by-path "$image" first second
is "--by-path finds no renames" "$(count '^R')" 0
is "--by-path lists both names of a renamed file" "$(count '/(docs|papers)/large$')" 2
expect "two subvolumes" 0 'compared: ' diff "$others" home docs/third
holds "subvolumes with a common origin have a deleted file" out_has $'^-\tF\t/docs/letters/09.txt$'
expect "too few" 2 'give two subvolumes' diff "$image" first
expect "a subvolume that does not exist" 2 'no subvolume nowhere' diff "$image" first nowhere
expect "a third path" 2 'use --below /gone' diff "$image" first second /gone
expect "differences as a status" 1 'compared: ' diff --exit-code "$image" first second
expect "--exit-code without differences" 0 'compared: ' diff --exit-code "$image" first first
expect "none of the listed ones" 0 'compared: ' diff --exit-code --only T --below /gone "$image" \
    first second
expect "a letter that --only does not know" \
    2 'invalid argument of --only' diff --only X "$image" first second

expect "the largest changes" 0 'compared: ' diff --top 2 --stat "$image" first second
is "are listed, by their bytes" "$(cut -f3 "$WORK/out" | tr '\n' ' ')" '4096 12 '
expect "the last paths" 0 'compared: ' diff --sort -path --top 2 "$image" first second
is "are listed in falling order" "$(cut -f3 "$WORK/out" | tr '\n' ' ')" '/type/file /type '

# Between images. A copy has the same inodes; in another file system only paths count.
expect "an image and itself" 0 'compared: ' diff --other "$image" "$image" first second
holds "--other with the same image lists the same changes" out_is "$WORK/changes"
expect "another file system" 0 'compared: ' diff --other "$others" "$image" first home
is "another file system is compared by paths" "$(count '^R')" 0
holds "another file system has other files" out_has $'^\\+\tF\t/docs/letters/09.txt$'
cp --sparse=always "$BUILD/fixtures/plain/dev1.img" "$WORK/copy"
holds "the second of two attributes" change "$WORK/copy" 5 408 24 3260154230 set 40 1 112
expect "is compared" 0 'compared: ' \
    diff --json --other "$WORK/copy" "$BUILD/fixtures/plain/dev1.img" / /
holds "a second changed attribute is found like the first one" \
    out_has '"path":"/data/inline","changes":\["xattrs"\]'
cp --sparse=always "$BUILD/fixtures/plain/dev1.img" "$WORK/copy"
dd if=/dev/zero of="$WORK/copy" bs=4096 seek=$((13651968 / 4096)) count=1 conv=notrunc status=none
change "$WORK/copy" 7 -10 128 13631488 set 20 4 2566472073
expect "other data at the same address" 0 'compared: 4 files of A with 4 of B, in 1 comparison' \
    diff --other "$WORK/copy" "$BUILD/fixtures/plain/dev1.img" / /
is "other data at the same address differ" "$(cat "$WORK/out")" $'M\tF\t/data/hole-then-data'
expect "a subvolume that only A has" 2 "$image: there is no subvolume home" \
    diff --other "$image" "$others" home
expect "or only B" 2 "$others: there is no subvolume first" diff --other "$image" "$others" first
expect "B at a generation" 0 'compared: ' \
    diff --other "$BUILD/fixtures/gone/dev1.img" "$BUILD/fixtures/plain/dev1.img" / /@9
holds "is that of the other image" out_has $'^-\tF\t/data/hole-then-data$'
expect "a subvolume that a generation lacks" 2 'gone/dev1.img: generation 9: there is no .* none$' \
    diff "$BUILD/fixtures/gone/dev1.img" none@9
expect "a file that is no image" 2 'no btrfs' diff --other "$PROGRAM" "$image" first home
"$PROGRAM" diff --other "$others" "$image" first home 2> "$WORK/err" 1<> "$others"
is "nothing is written to the other image" $? 2

# Whole file systems: all subvolumes, also created, deleted and renamed ones. Files with different
# items are compared, and those with extents.
cp --sparse=always "$image" "$WORK/copy"
expect "a copy of all subvolumes" 0 'compared: 10 files of A with 10 of B, in 7 comp' \
    diff --other "$WORK/copy" "$image"
holds "a copy of all subvolumes has no changes" out_is /dev/null
live=$("$PROGRAM" subvolumes -o subvolume_path,subvolume "$image" |
    awk '$1 == "/live" { print $2 }')
inode=$("$PROGRAM" ls -i --subvol live "$image" /saved | awk '{ print $1 }')
holds "the mode of a file is changed in the copy" \
    change "$WORK/copy" "$live" "$inode" 1 0 set 52 4 33152
printf 'M\tF\t/%s/saved\n' live second third > "$WORK/want" # they share its leaf
expect "an image and its copy" 0 'compared: 13 files of A with 13 of B' \
    diff --other "$WORK/copy" "$image"
holds "the file in each subvolume" out_is "$WORK/want"
expect "as JSON" 0 'compared' diff --json --other "$WORK/copy" "$image"
holds "JSON has the subvolume of the changed file" out_has \
    "\"path\":\"/live/saved\",\"changes\":\[\"mode\"\].*\"old_subvolume\":$live,"
expect "the same path by path" 0 'compared: ([0-9]+) entries of A with \1 of B, in' \
    diff --by-path --other "$WORK/copy" "$image"
holds "--by-path lists the same changes of subvolumes" out_is "$WORK/want"
expect "without nested ones" 0 'not compared: [3-9] subvolumes nested in A' \
    diff --nested no --other "$WORK/copy" "$image"
holds "--nested no does not list changes of nested subvolumes" out_is /dev/null
expect "below a path in one" 0 'compared' \
    diff --below /third/saved --other "$WORK/copy" "$image" / /
is "--below selects a file in a nested subvolume" "$(cat "$WORK/out")" $'M\tF\t/third/saved'
expect "A in both images" 0 'compared: 4 files of A with 4 of B' \
    diff --other "$WORK/copy" "$image" live
is "paths begin at the subvolume that is compared" "$(cat "$WORK/out")" $'M\tF\t/saved'
expect "other file systems" 0 '[0-9]+ entries of A with [0-9]+ of B, in 1 comparison$' \
    diff --other "$others" "$image"
is "files of a subvolume that only A has" "$(count $'^-\tF\t/first/saved$')" 1
is "files of a subvolume that only B has" "$(count $'^\\+\tF\t/home/top-file$')" 1
expect "snapshots of one image" 0 'not compared: [0-9]+ subvolumes? nested in B' \
    diff "$others" home /
"$PROGRAM" diff -q "$image" first second > "$WORK/out" 2> "$WORK/err"
is "diff -q prints no summary" "$(cat "$WORK/err")" ""
expect "nothing to compare with" 2 'no subvolumes given' diff "$image"

# A lost block: no difference is reported that does not exist.
sort "$WORK/changes" > "$WORK/true"
leaves() {
    "$PROGRAM" dump --tree "$("$PROGRAM" subvolumes -o subvolume_path,subvolume "$image" |
        awk -v p="/$1" '$1 == p { print $2 }')" "$image" | sed -nE 's/^leaf ([0-9]+) items.*/\1/p'
}
lost=0
for leaf in $({ leaves first; leaves second; } | sort | uniq -u); do
    lost=$((lost + 1))
    "$PROGRAM" diff --insert \
        "debug/error-gen@chunk-map,kind=tree-block,start=$leaf,end=$((leaf + 1)),action=zero" \
        "$image" first second > "$WORK/out" 2> "$WORK/err"
    is "leaf $leaf: diff ends with status 1" $? 1
    grep -v '^?' "$WORK/out" | sort | comm -23 - "$WORK/true" > "$WORK/wrong"
    is "leaf $leaf: what is told is true" "$(cat "$WORK/wrong")" ""
done
[ "$lost" -ge 4 ] || fail "only $lost leaves were lost"

# An entry that calls a directory a file: what is in it is not known.
plain=$BUILD/fixtures/plain/dev1.img
index=$("$PROGRAM" dump --tree 5 "$plain" | grep -B 3 'name: data$' |
    sed -nE 's/.*\(256 DIR_INDEX ([0-9]+)\).*/\1/p')
cp --sparse=always "$plain" "$WORK/copy"
holds "a directory as a file" change "$WORK/copy" 5 256 96 "$index" set 29 1 1
expect "is compared" 0 'compared: ' diff --by-path --other "$plain" "$WORK/copy"
is "nothing in it is added" "$(grep -c $'^[-+]\t.\t/data' "$WORK/out")" 0
holds "a file in a directory that cannot be read is unknown" out_has $'^\\?\tF\t/data/inline$'

# A directory of this machine: a copy, and what was changed in it. Only root can restore owners.
compressed=$BUILD/fixtures/compressed/dev1.img
mkdir "$WORK/folder"
"$PROGRAM" extract -q -C "$WORK/folder" "$compressed"
changes_of() { grep -v $'^/\t' "$WORK/out" | sed 's/owner,\|,owner//; /\towner$/d'; }
expect "a copy in a directory" 0 'compared: ' \
    diff -o path,change,changes --other "$WORK/folder" "$compressed" /
is "an extracted directory has no changes" "$(changes_of)" ""
at=$WORK/folder/zlib
printf x >> "$at/inline"; chmod 4700 "$at/top-file"; touch -d @1 "$at/empty"
for place in 5000 499999; do
    printf X | dd of="$at/large" bs=1 seek=$place conv=notrunc status=none
done
touch -r "$WORK/folder/lzo/large" "$at/large"
mkdir "$at/new" && : > "$at/new/file"; rm -r "$WORK/folder/zstd"; rm "$WORK/folder/lzo/inline"
ln -s x "$WORK/folder/lzo/inline"
expect "changes in a directory" 0 'compared: ' diff --other "$WORK/folder" "$compressed" /
for line in 'M	F	/zlib/inline' 'M	F	/zlib/top-file' 'M	/	/zlib/empty' 'M	F	/zlib/large' \
    '\+	/	/zlib/new' '\+	F	/zlib/new/file' '-	/	/zstd' '-	F	/zstd/large' 'T	@	/lzo/inline'; do
    holds "a changed directory has the line $line" out_has "^$line\$"
done
holds "a file that did not change is not listed" [ "$(grep -c '/lzo/large' "$WORK/out")" -eq 0 ]
expect "its columns" 0 'compared: ' \
    diff --json --below /zlib/large --other "$WORK/folder" "$compressed"
holds "a changed sector and the shorter last one are counted" \
    out_has '"changes":\["content".*"changed_bytes":4384'
expect "totals of entries, without tree blocks" 0 ' of another type; 4384 bytes$' \
    diff --stat --below /zlib/large --other "$WORK/folder" "$compressed"
expect "a part of both" 0 'compared: ' diff --other "$WORK/folder/zlib" "$compressed" /zlib
holds "by paths from there on" out_has '^M	F	/inline$'
cp "$WORK/out" "$WORK/part"
expect "a part of a directory" 0 'compared: ' diff --other "$WORK/folder" "$compressed" /zlib zlib
holds "a part of a directory has the changes of that part" cmp "$WORK/out" "$WORK/part"
expect "contents that are not read" 0 'compared: ' \
    diff --content never --json --below /zlib/large --other "$WORK/folder" "$compressed"
holds "contents that were not read are unknown" out_has '"unknown":\["content"\]'
bad="debug/error-gen@chunk-map,kind=data,action=flip"
expect "unreadable data" 1 'damage: .*/lzo/large' diff --insert "$bad" --other "$WORK/folder" \
    --below /lzo/large "$compressed"
holds "unreadable data are unknown" out_has '^\?	F	/lzo/large'
# Long targets are kept with the paths of the entries, which move while they are compared.
target=$(printf %02000d 0)
mkdir "$WORK/links"
{
    echo 'subvol PATH=links UUID=11111111111111111111111111111111 CTRANSID=1'
    for name in 1 2 3; do
        echo "symlink PATH=$name INO=$((256 + name)) PATH_LINK=$target"
        ln -s "$target" "$WORK/links/$name"
    done
    echo end
} | python3 "$ROOT/tests/support/make_stream.py" > "$WORK/long-links"
expect "long targets of symbolic links" 0 'compared: 4 entries of A with 4 of B' \
    diff -o path,unknown --other "$WORK/links" "$WORK/long-links" links
is "none of them is unknown" "$(count $'/[123]\t-')" 3

# Nested subvolumes are directories of a copy.
mkdir "$WORK/copied"
"$PROGRAM" extract -q -C "$WORK/copied" "$others"
rm -r "$WORK/copied/home/docs/nested"; : > "$WORK/copied/home/docs-new"
: > "$WORK/copied/home-snapshot/new"
listed() { grep -E $'^(\\+|-)\t' "$WORK/out" | cut -f 3; }
expect "a copy with nested subvolumes" 0 'not compared, because .* not know them: links' \
    diff --other "$WORK/copied" "$others"
is "all in the order of names" "$(listed | sed 's|^/home|H|' | sed '2,6d' | xargs)" \
    "H/docs/nested H/docs-new H-snapshot/new"
expect "without them" 0 'not compared: 12 subvolumes nested in A' \
    diff --nested no --other "$WORK/copied" "$others"
is "--nested no lists nothing below nested subvolumes" "$(listed)" ""
expect "no directory" 2 'nowhere: No such file' diff --other "$WORK/nowhere" "$compressed" /
expect "a file as A" 2 'not a directory' diff --other "$WORK/folder" "$compressed" /zlib/inline
finish
