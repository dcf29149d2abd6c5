#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The deleted and versions commands, and diff with an older state, on a fixture whose files were all
# hashed before they were deleted. tests/kernel/deleted.py does that with many kinds of random
# changes.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" gone past orphans plain laptop bad-data \
    deletion-pending || exit 1
image=$BUILD/fixtures/gone/dev1.img
recorded=$ROOT/fixtures/gone/gone
out_is() { diff "$WORK/out" -; }
names() { cut -f 3 "$1" | LC_ALL=C sort; }

# Rows.
expect "what was deleted" 0 - deleted -o recoverable,type,path "$image"
LC_ALL=C sort -k 3 "$WORK/out" > "$WORK/rows"
holds "each with what is left of it" diff "$WORK/rows" - << 'END'
verified	file	/#270
verified	directory	/top/folder
verified	directory	/top/folder/below
verified	file	/top/folder/below/file
verified	file	/top/folder/link
verified	file	/top/kept/edited
verified	file	/top/kept/open
verified	file	/top/large
verified	file	/top/packed
verified	file	/top/small
verified	file	/top/sparse
verified	symlink	/top/symlink
unverified	file	/top/unsummed
verified	subvolume	/volume
verified	directory	/volume/folder
verified	file	/volume/folder/deep
verified	file	/volume/inside
END
expect "for people" 0 ': 1 file has no checksums, .* only with --unverified' deleted "$image"
expect "below a path" 0 - deleted -0 "$image" volume/folder/
holds "-0 prints the names below the path" \
    out_is < <(printf '/volume/folder\0/volume/folder/deep\0')
generation=$("$PROGRAM" deleted -o generation,path "$image" | awk '$2 == "/volume" { print $1 }')
expect "since the transaction before the last" 0 - deleted -o path --since "$generation" "$image"
is "what the one before had" "$(wc -l < "$WORK/out")" 9
expect "with filters" 0 - deleted -o path --type f --name 'l*' --size +1k "$image"
holds "filters select deleted files by type, name and size" \
    out_is <<< $'/top/large\n/top/folder/link'
expect "at most one level deep" 0 - deleted -o path --maxdepth 1 "$image"
holds "--maxdepth 1 lists deleted files of the top directory" out_is <<< $'/volume\n/#270'
expect "at least three levels deep" 0 - deleted -o path --mindepth 3 --type d "$image"
holds "--mindepth 3 lists a directory in a deleted directory" out_is <<< /top/folder/below
expect "without data" 0 - deleted --no-data --json --name large "$image"
holds "deleted --json has the mode, the owner and all times" out_has \
    '"mode":33188,"uid":0,"gid":0,"atime":[0-9]+,"ctime":[0-9]+,"otime":[0-9]+'
holds "without data: the row has path and size" out_has '"path":"/top/large","size":108894,'
is "without data: no row says what is recoverable" "$(grep -c recoverable "$WORK/out")" 0
expect "where older states are" 0 - deleted "$BUILD/fixtures/plain/dev1.img"
"$PROGRAM" deleted -v "$BUILD/fixtures/plain/dev1.img" > "$WORK/out" 2> "$WORK/err"
is "what is whole is not said to be lost" "$(grep -c 'is not whole' "$WORK/err")" 0
expect "two paths" 2 'at most one PATH' deleted "$image" /a /b

# Extraction: what is verified has the hash that was recorded.
expect "extraction of deleted files" 0 "1 file has no checksums, .* only with --unverified" \
    deleted --extract "$WORK/new" "$image"
(cd "$WORK/new" && find . -type f -exec sha256sum {} + | sed 's, \./, /,' |
    LC_ALL=C sort -k 2) > "$WORK/sums"
holds "extracted files have the recorded hashes" diff <(grep -vE 'edited|#270' "$WORK/sums") \
    <(grep -vE 'edited|moved|unsummed' "$recorded")
is "the file that was open" "$(sha256sum < "$WORK/new/#270")" \
    "$(sha256sum < "$WORK/new/top/kept/open")"
is "permissions of deleted directories are restored" "$(stat -c %a "$WORK/new/top/folder")" 750
is "times of deleted files are restored" \
    "$(stat -c %Y "$WORK/new/top/folder" "$WORK/new/top/large")" $'981173106\n981173106'
is "hard links of deleted files are restored" "$(stat -c %h "$WORK/new/top/folder/link")" 2
is "deleted symbolic links are restored" "$(readlink "$WORK/new/top/symlink")" nowhere
expect "what is not verified" 0 - deleted --extract "$WORK/all" --unverified --name unsummed \
    "$image"
holds "--unverified extracts a file without checksums" cmp "$WORK/all/top/unsummed" <(seq 4000)
expect "over what is there" 1 'not extracted' deleted --extract "$WORK/all" --unverified "$image" \
    /top

# Data that have been overwritten are never proven, and never extracted.
offset=$("$PROGRAM" extents --generation "$((generation - 1))" "$image" /top/large |
    sed -nE 's/.* data 1:([0-9]+)$/\1/p')
cp --sparse=always "$image" "$WORK/over.img"
head -c 5000 /dev/zero | dd of="$WORK/over.img" bs=4096 seek=$((offset / 4096 + 2)) \
    conv=notrunc status=none
expect "deleted files that were overwritten" 0 - deleted --json --name large "$WORK/over.img"
holds "deleted lists the overwritten ranges of a file" \
    out_has '"recoverable":"partly".*"bad_bytes":8192,"bad":\["8192\+8192"\]'
expect "and not extracted" 1 'top/large' deleted --extract "$WORK/none" --name large \
    "$WORK/over.img"
is "an overwritten file is not extracted" "$(find "$WORK/none" -type f)" ""

# A subvolume that is being deleted has lost a node: the leaves below it are found.
pending=$BUILD/fixtures/deletion-pending/dev1.img
"$PROGRAM" deleted --no-scan -o path "$pending" > "$WORK/whole"
is "a subvolume that is being deleted" "$(wc -l < "$WORK/whole")" 43
cp --sparse=always "$pending" "$WORK/node.img"
for offset in $("$PROGRAM" map -o offset "$pending" 30638080); do
    printf X | dd of="$WORK/node.img" bs=1 seek=$((offset + 300)) conv=notrunc status=none
done
expect "its node is lost" 1 'block 30638080 of subvolume 256 \(level 1\)' \
    deleted --no-scan -o path "$WORK/node.img"
holds "its node is lost: all files are listed" out_is < "$WORK/whole"
expect "unless zeros are wanted" 1 'top/large' deleted --extract "$WORK/zeros" --on-error zero \
    --name large "$WORK/over.img"
is "in its place, and not under its name" \
    "$(cmp -l "$WORK/zeros/top/large.~$((generation - 1))~" <(seq 20000) | wc -l)" 8192
is "only the file with zeros is extracted" "$(find "$WORK/zeros" -type f | wc -l)" 1

# Files without a name that wait for their removal are deleted, and not lost.
orphans=$BUILD/fixtures/orphans/dev1.img
expect "files that wait for their removal" 0 - deleted -o path "$orphans"
is "all of them are deleted" "$(wc -l < "$WORK/out")" 5
expect "lost files" 0 - deleted --lost -o path "$orphans"
is "none of them is lost" "$(wc -l < "$WORK/out")" 0

# Two files had the same path, one after the other.
expect "two files at one path" 0 - deleted --extract "$WORK/two" "$BUILD/fixtures/past/dev1.img"
holds "the last one has its name" cmp "$WORK/two/twice" <(seq 2000)
holds "the older of two files at a path has its generation in the name" \
    cmp "$WORK/two/twice.~7~" <(seq 1000)

# Versions.
expect "versions of an edited file" \
    0 - versions -o recoverable,size,changes "$image" /top/kept/edited
holds "versions lists all three versions of a file" out_is << 'END'
verified	81	content size times
verified	23888	content size times
verified	23893	-
END
expect "each state" 0 - versions --all -o size "$image" /top/kept/edited
is "--all lists a version for each generation" "$(wc -l < "$WORK/out")" 3
expect "one of them" 0 - cat --generation "$generation" "$image" /top/kept/edited
holds "cat --generation reads the older version" cmp "$WORK/out" <(seq 4999)
expect "of a file that was moved" 0 - versions -o changes,path "$image" /top/kept/moved-on
holds "versions lists both names of a moved file" \
    out_is <<< $'renamed\t/top/kept/moved-on\n-\t/top/kept/moved'
expect "the same from a subvolume on" 0 - versions -o changes,path --subvol 5 "$image" \
    top/kept/moved-on
holds "versions with --subvol lists both names of a moved file" \
    out_is <<< $'renamed\t/top/kept/moved-on\n-\t/top/kept/moved'
expect "of a file that is gone" 0 - versions --no-data -o generation,recoverable,size "$image" \
    /top/large
holds "versions lists the last version of a deleted file" \
    out_is <<< "$((generation - 1))"$'\t-\t108894'
# Versions in snapshots, which have the names of Snapper.
laptop=$BUILD/fixtures/laptop/dev1.img
expect "in snapshots" 0 - versions -o path,snapshot_name "$laptop" /@home/anna/Documents/letter.txt
is "versions lists a snapshot between generations" \
    "$(cut -f 2 "$WORK/out")" $'-\n-\n/@snapshots/home-2026-11-21\n-'
expect "of Snapper" 0 - versions --raw -o snapshot_name "$laptop" /@/usr/bin/program-2
holds "versions lists names and descriptions of Snapper" \
    out_has '^snapper.* 2,.*2026-11-21.*: .*zypp'
expect "a file that only snapshots and older generations have" 0 - versions --good \
    -o path,recoverable "$laptop" /@home/anna/Documents/thesis.odt
is "versions --good prefers a snapshot to an older generation" \
    "$(cat "$WORK/out")" $'/@snapshots/home-2026-11-21/anna/Documents/thesis.odt\tverified'
expect "extraction of it" 0 'thesis.odt: extracted from the snapshot /@snapshots/home-2026-11-21$' \
    versions --good --extract "$WORK/thesis" "$laptop" /@home/anna/Documents/thesis.odt
holds "versions --good --extract writes it under its own name" cmp \
    "$WORK/thesis/@home/anna/Documents/thesis.odt" \
    <("$PROGRAM" cat "$laptop" /@snapshots/home-2026-11-21/anna/Documents/thesis.odt)
expect "extraction of all" 0 - versions -q --extract "$WORK/versions" "$image" /top/kept/edited
for version in 9:edited 8:edited.~8~ 7:edited.~7~; do
    holds "versions --extract writes ${version#*:}" cmp "$WORK/versions/top/kept/${version#*:}" \
        <("$PROGRAM" cat --generation "${version%%:*}" "$image" /top/kept/edited)
done
expect "extraction of a directory" 2 "kept is a directory: use 'extract --generation 9'" \
    versions --extract "$WORK/versions" "$image" /top/kept
expect "extraction of nothing" 1 'not found in any recoverable generation' \
    versions --extract "$WORK/nothing" "$image" /nothing

# A timeline with the past.
expect "bodyfile without the past" 0 - bodyfile "$image"
cp "$WORK/out" "$WORK/present"
expect "bodyfile --deleted" 0 - bodyfile --deleted "$image"
is "bodyfile --deleted has the lines of deleted" \
    "$(sed -n 's/^0|\(.*\) (deleted)|.*/\1/p' "$WORK/out" | sed 's/ -> .*//' | LC_ALL=C sort)" \
    "$("$PROGRAM" deleted --no-data -o path --raw "$image" | LC_ALL=C sort)"
expect "bodyfile --versions" 0 - bodyfile --versions "$image" /top/kept/edited
is "bodyfile --versions has the times and sizes of versions" \
    "$(cut -d '|' -f 2,7,9 "$WORK/out")" '/top/kept/edited|81|1795362467
/top/kept/edited (generation 7)|23893|1795362466'
expect "with filters" 0 - bodyfile --versions --name edited "$image"
is "the same with a filter" "$(wc -l < "$WORK/out")" 2
expect "bodyfile with both" 0 - bodyfile --versions --deleted "$image"
holds "the present comes first" cmp <(head -n "$(wc -l < "$WORK/present")" "$WORK/out") \
    "$WORK/present"
expect "two paths" 2 'at most one PATH' bodyfile --deleted "$image" /top /volume
expect "without older generations" 0 - versions --no-scan --all -o path "$laptop" \
    /@home/anna/Documents/thesis.odt
holds "versions --no-scan lists the version of a snapshot" \
    out_has '^/@snapshots/home-2026-11-21/anna/Documents/thesis.odt$'
expect "which snapshot has a deleted file" 0 - deleted -o path,snapshot_path "$laptop"
holds "deleted names the snapshot that has a deleted file" \
    out_has $'^/@home/anna/Pictures/holiday-2.jpg\t/@snapshots/home-2026-11-21/'
holds "a deleted file that no snapshot has gets no snapshot" \
    out_has $'^/@home/anna/Documents/draft.odt\t-$'
expect "of nothing" 1 'not found in any recoverable generation' versions "$image" /nothing
expect "no good version" 1 '/bad: no version is verified' versions --good \
    "$BUILD/fixtures/bad-data/dev1.img" /bad

# The index of roots: made by one command, used by others.
rm -f "$WORK/index"
for command in "deleted -o recoverable,path" "versions --all" "deleted --no-data" "roots"; do
    path= && [ "${command%% *}" = versions ] && path=/top/kept/edited
    expect "$command" 0 - $command --raw "$image" $path
    cp "$WORK/out" "$WORK/first"
    expect "$command with an index" 0 - $command --raw --index "$WORK/index" "$image" $path
    holds "$command prints the same with an index" cmp "$WORK/out" "$WORK/first"
done
expect "extraction with an index" 0 - deleted --index "$WORK/index" --extract "$WORK/indexed" \
    -q "$image"
holds "deleted --extract makes the same files with an index" \
    diff -r --no-dereference "$WORK/new" "$WORK/indexed"
# An index without any blocks (its hash is that of no data): only blocks that are in an index are
# found.
{ head -c 56 "$WORK/index"; head -c 40 /dev/zero; printf '\x99\xe9\xd8\x51\x37\xdb\x46\xef'; } \
    > "$WORK/empty"
expect "an index of nothing" 0 - roots --index "$WORK/empty" -o generation,recoverable "$image"
is "roots uses an index without blocks" "$(grep -c 7 "$WORK/out")" 1
expect "--scan and --no-scan" 2 'exclude each other' deleted --scan --no-scan "$image"

# Differences.
expect "since a generation" 0 'compared' diff "$image" "/@$generation"
holds "diff lists the changes since a generation" out_is << 'END'
M	/	/
M	/	/top
M	/	/top/kept
M	F	/top/kept/edited
-	F	/top/kept/open
-	F	/top/sparse
-	F	/top/unsummed
-	/	/volume
END
expect "between two states" 0 'compared' \
    diff --only R "$image" "5@$((generation - 1))" "5@$generation"
holds "diff of two generations lists a rename" \
    out_is <<< $'R\tF\t/top/kept/moved\t/top/kept/moved-on'
expect "with what is gone" 2 'no subvolume' diff "$image" "volume@$generation"
expect "with nothing" 2 'give two subvolumes' diff "$image" /
finish
