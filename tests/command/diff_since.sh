#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# diff --since: with a generation that is on the disk, with a part of it, and with what inodes show.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" gone differences log-tree || exit 1
image=$BUILD/fixtures/gone/dev1.img
others=$BUILD/fixtures/differences/dev1.img
out_is() { diff "$WORK/out" "$1"; }

# A generation on the disk.
cat > "$WORK/changes" << 'END'
M	/	/
M	/	/top
M	/	/top/kept
M	F	/top/kept/edited
-	F	/top/kept/open
-	F	/top/sparse
-	F	/top/unsummed
-	/	/volume
-	/	/volume/folder
-	F	/volume/folder/deep
-	F	/volume/inside
END
expect "since a generation" 0 'compared with generation 8 of 2026-11-22T15:47:47.066789742Z' \
    diff --since 8 "$image"
holds "changes, and a deleted subvolume" out_is "$WORK/changes"
holds "the summary counts the compared subvolumes" \
    grep -qE 'since generation 8: 2 subvolumes compared, 0 unchanged$' "$WORK/err"
expect "the superblock lists it" 0 'dev-read-done' diff --probe-stats --since 8 "$image"
holds "so that metadata are not scanned" \
    [ "$(awk '$NF == "dev-read-done" { print $5 }' "$WORK/err")" -lt 1000000 ]
for date in 2026-11-22T15:47:47.1Z '2026-11-22 16:47:47.066789742+01' @1795362467.07; do
    expect "since $date" 0 'compared with generation 8 of' diff --since "$date" "$image"
    holds "--since $date lists the changes since generation 8" out_is "$WORK/changes"
done
expect "since an older one" 0 'compared with generation 7 of' diff --since 7 "$image"
holds "--since 7 lists a rename" out_has $'^R\tF\t/top/kept/moved\t/top/kept/moved-on$'
expect "only some changes" 0 'since generation 8' diff -o path --only D --since 8 "$image"
is "--only D lists deletions" "$(head -n 2 "$WORK/out" | tr '\n' ' ')" '/top/kept/open /top/sparse '
expect "the bytes of changes since a generation" \
    0 ': 0 added, 7 deleted, 4 modified, 0 renamed' diff --stat --since 8 "$image"
expect "since now" 0 '0 subvolumes compared, 1 unchanged' diff --since 9 "$image"
holds "nothing has changed since the present generation" out_is /dev/null
expect "since a later one" 2 'the newest generation is 9' diff --since 10 "$image"
expect "no date" 2 'invalid argument of --since: yesterday' diff --since yesterday "$image"
expect "since 0" 2 'invalid argument of --since: 0' diff --since 0 "$image"
expect "A and B" 2 'excludes --other' diff --since 8 --other "$image" "$image"
expect "below a path" 1 'generation 8' diff --since 8 --below /top/kept --exit-code "$image"
is "--below lists the changes below a path" \
    "$(cut -f3 "$WORK/out" | tr '\n' ' ')" '/top/kept /top/kept/edited /top/kept/open '
expect "changes since a generation, sorted" \
    0 'generation 8' diff --since 8 --sort -path --top 1 "$image"
is "--sort -path --top 1 lists the last path" "$(cut -f3 "$WORK/out")" /volume/inside
expect "an index for nothing" 2 'are for --since' diff --no-scan "$image" / /@8

# Changes in the log tree came after the generation of the superblock.
log=$BUILD/fixtures/log-tree/dev1.img
expect "since the last transaction" 0 '1 subvolume compared, 1 unchanged' diff --since 7 "$log"
holds "a file in the log has been added" out_has $'^\\+\tF\t/docs/letters/logged-0$'
expect "without the log" 0 '0 subvolumes compared, 2 unchanged' diff --since 7 --log ignore "$log"

expect "a stream" 0 - send -f "$WORK/stream" "$others" first
expect "has no generations" 2 'a send stream has no generations' diff --since 1 "$WORK/stream"

# An index replaces the scan.
expect "with an index" 0 'generation 8' diff --index "$WORK/index" --since 8 "$image"
expect "which is used" 0 'generation 8' diff --index "$WORK/index" --since 8 "$image"
holds "an index leads to the same changes" out_is "$WORK/changes"

# A generation that is no longer there: new snapshots, and new extents.
cat > "$WORK/newer" << 'END'
M	/	0	/
+	/	0	/third
M	F	196608	/live/holes
M	F	200000	/live/papers/large
M	F	100000	/live/unsummed
END
expect "no such generation" 1 'the state of generation 10 is no longer on the disk' \
    diff --stat --since 10 "$others"
holds "newer inodes and extents are listed" out_is "$WORK/newer"
holds "that it is not all" \
    grep -qE '2 subvolumes compared, 4 unchanged; deletions are unknown$' "$WORK/err"
expect "in one subvolume" 1 'since generation 10: 1 subvolume compared, 2 unchanged' \
    diff --since 10 "$others" live
holds "paths begin at the given subvolume" out_has $'^M\tF\t/holes$'
expect "as JSON" 1 'no longer' diff --json --since 10 "$others"
holds "JSON says which changes are proven and which unknown" out_has \
    '"/live/holes","changes":\["content"\],"unknown":\["size","mode",.*"changed_bytes":196608'
holds "JSON lists a new subvolume" out_has '"change":"added","type":"directory","path":"/third"'
expect "a date without a state" 1 'the state of 2026-11-22T12:35:21.87Z is no longer on the disk' \
    diff --since 2026-11-22T12:35:21.87Z "$others"
is "only inodes that changed after the date are listed" \
    "$(cat "$WORK/out")" $'M\t/\t/\n+\t/\t/third'
expect "before the file system" 1 'no longer on the disk' diff --since 2020-01-01 "$others"
holds "everything is newer than the file system" out_has $'^\\+\tF\t/live/papers/small$'

# Parts of a generation are lost: the tree block of the top-level subvolume.
cp --sparse=always "$image" "$WORK/copy"
dd if=/dev/zero of="$WORK/copy" bs=4096 seek=$((5619712 / 4096)) count=4 conv=notrunc status=none
expect "a damaged generation" 1 'tree block 5619712 of subvolume 5' diff --since 7 "$WORK/copy"
holds "a deleted subvolume is still known" out_has $'^-\tF\t/volume/inside$'
holds "an inode of a newer generation is added" out_has $'^\\+\tF\t/top/kept/edited$'
holds "a changed one, by its present name" out_has $'^M\tF\t/top/kept/moved-on$'
lacks_unknown() { ! grep -q '^?' "$WORK/out"; }
holds "no change is unknown" lacks_unknown
finish
