#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# du and compression: answers as btrfs-progs and compsize gave them on a mount (tests/data/du.sums),
# options, filters, and what is lost.
set -uo pipefail
. "$(dirname "$0")/common.bash"

mapfile -t answers < <(grep -v '^#' "$ROOT/tests/data/du.sums")
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${answers[@]%% *}" lost-tree-extent \
    lost-leaf-inodes raid5-3 log-tree || exit 1
fixtures=$BUILD/fixtures
clones=$fixtures/data-clones/dev1.img

out_is() { diff "$WORK/out" - <<< "$1"; }
sum_of() { sha256sum < "$WORK/out" | cut -c1-64; }

for answer in "${answers[@]}"; do
    read -r name du compression <<< "$answer"
    expect "du of $name" 0 - du --raw "$fixtures/$name/dev1.img"
    is "du of $name, as on a mount" "$(sum_of)" "$du"
    expect "compression of $name" 0 - compression --raw "$fixtures/$name/dev1.img"
    is "compression of $name, as on a mount" "$(sum_of)" "$compression"
done

# du: lines, paths, filters.
heading='     Total   Exclusive  Set shared  Filename'
expect "totals of paths" 0 - du -s "$clones" / /volume /zstd
holds "have units, and what is shared within each" out_is "$heading
   4.62MiB   612.00KiB   592.00KiB  /
 264.00KiB    12.00KiB   116.00KiB  /volume
 392.00KiB   148.00KiB   244.00KiB  /zstd"
expect "powers of 1000" 0 - du -s --si "$clones" zstd
holds "--si prints powers of 1000" out_has '^  401.41kB    151.55kB    249.86kB  /zstd$'
expect "a path that does not exist" 1 '/none: no such file' du -s --raw "$clones" /none /volume
holds "du prints the other path" out_has '^    270336       12288      118784  /volume$'
expect "a subvolume" 0 - du --raw --subvol snapshot "$clones" zstd-parts
holds "paths begin at the given subvolume" \
    out_has '^    278528           0      278528  /zstd-parts$'
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" subvolumes
for words in "--subvol home" "--nested=no /home" "--subvol home --nested=yes" /home; do
    path='' options=$words
    [[ $words != */home ]] || path=/home options=${words%/home}
    # shellcheck disable=SC2086 # words
    expect "nested subvolumes: du $words" 0 - du --json -o path,files $options "$subvolumes" $path
    grep -c '"path":"\(/home\)\?/snapshot-inside/' "$WORK/out" > "$WORK/nested"
    # shellcheck disable=SC2086 # words
    expect "nested subvolumes: compression $words" 0 - compression --json -o files $options \
        "$subvolumes" $path
    is "nested subvolumes are counted as selected: $words" \
        "$(($(cat "$WORK/nested") > 0)) $(head -1 "$WORK/out")" \
        "$([[ $words = *--nested=no* || $words = '--subvol home' ]] && echo '0 {"files":19}' ||
            echo '1 {"files":41}')"
done
expect "du without snapshots" 0 - du --json -o path,files --no-snapshots "$subvolumes"
holds "--no-snapshots lists no snapshot" [ "$(grep -c '"path":"[^"]*snapshot' "$WORK/out")" -eq 0 ]
holds "--no-snapshots lists other subvolumes" out_has '"path":"/docs/moved"'
expect "compression without snapshots" 0 - compression --json -o files --no-snapshots "$subvolumes"
is "counts the files that walk lists" "$(head -1 "$WORK/out")" \
    "{\"files\":$("$PROGRAM" -0 --no-snapshots "$subvolumes" | tr -cd '\0' | wc -c)}"
expect "no such subvolume" 2 'no subvolume none' du --subvol none "$clones"
expect "filters by name" 0 - du --raw --name '*parts' --exclude volume --type d "$clones"
holds "filters by name leave out other files" out_is "$heading
    278528           0           -  /snapshot
   1392640           0      417792  /"
expect "filters by inode" 0 - du --raw --size +450k --maxdepth 1 --type d "$clones"
holds "count below lines that are not printed" \
    out_has '^    270336       12288           -  /volume$'
expect "du in columns" 0 - du -o depth,files,exclusive,shared,set_shared,path "$clones" /volume
holds "-o selects columns" out_is $'1\t1\t12288\t258048\t-\t/volume/zstd-parts
0\t1\t12288\t258048\t118784\t/volume'
expect "du as JSON" 0 - du -s --json "$clones" volume
holds "is an object a line" out_is \
    '{"path":"/volume","type":"directory","subvolume":256,"inode":256,"depth":0,"files":1,'\
'"total":270336,"exclusive":12288,"shared":258048,"set_shared":118784,"extent_count":10,'\
'"disk":32768}'

# Sorted, and only the first lines.
expect "lines sorted by size" 0 - du --sort -shared --type f -o shared,path "$clones" /zstd \
    /lzo-clone
holds "--sort -shared sorts by shared bytes" out_is $'389120\t/lzo-clone\n249856\t/zstd'
"$PROGRAM" du -o total,path "$clones" | sort -k1,1nr -k2 > "$WORK/sorted"
expect "the largest lines" 0 - du --top 7 -o total,path "$clones"
holds "are the first of all" diff "$WORK/out" <(head -n 7 "$WORK/sorted")
expect "all lines, sorted" 0 - du --sort -total -o total,path "$clones"
holds "--sort prints all lines" diff "$WORK/out" "$WORK/sorted"
expect "the last path first" 0 - du --sort -path -o path "$clones"
holds "--sort -path sorts paths backwards" diff "$WORK/out" <(cut -f2 "$WORK/sorted" | sort -r)
expect "sorted lines with a heading" 0 - du --raw --sort exclusive --top 1 --type f "$clones"
holds "--top 1 prints the heading and the largest file" out_is "$heading
    278528           0           -  /lzo-parts"
expect "sorted by unknown values" 1 'lower bounds' du --sort -exclusive --top 3 -o path \
    "$fixtures/lost-tree-extent/dev1.img"
holds "unknown values are sorted by path" out_is "$("$PROGRAM" du -q -o path \
    "$fixtures/lost-tree-extent/dev1.img" | sort | head -n 3)"
expect "a wrong column" 2 'no column size that can be sorted' du --sort size "$clones"
expect "no lines" 2 'allowed: 1 to 1048576' du --top 0 "$clones"

# Sums.
people=$fixtures/people/dev1.img
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" people || exit 1
expect "sums of owners" 0 - du --by user --raw "$people"
holds "have names and numbers" out_is \
    'files   size  total  exclusive   disk    uid  user
    4  54320  57344      57344  57344   1000  ada
   10    382      0          0      0      0  root
    5     48      0          0      0   1001  bob
    1      6      0          0      0   4242  -
    1      1      0          0      0  70000  long-user-name'
expect "sums of groups" 0 - du --by group -o group,gid,files "$people"
holds "as well" out_is $'ada\t1000\t4\nroot\t0\t10\nusers\t100\t5\n-\t4242\t1
long-group-name\t70000\t1'
expect "sums of types" 0 - du --by type -o suffix,files,size "$people"
holds "are sorted by size" out_is $'dat\t5\t54321\n-\t12\t395\ngz\t1\t14\ntar\t1\t9
txt\t2\t18'
expect "sums of ages" 0 - du --by age --json -o age,files,size "$people"
holds "are relative to the image" out_is '{"age":"future","files":1,"size":14}
{"age":"<1d","files":17,"size":54720}
{"age":">=5y","files":3,"size":23}'
expect "the owner with the most files" 0 - du --by user --sort -files --top 1 -o user "$people"
holds "comes first" out_is root
for words in "" "--no-snapshots" "--nested=no /home" "--subvol home"; do
    path='' options=$words
    [[ $words != */home ]] || path=/home options=${words%/home}
    # shellcheck disable=SC2086 # words
    "$PROGRAM" du -o type,files,total,exclusive,disk $options "$subvolumes" $path |
        awk '$1 == "file" { f += $2; t += $3; e += $4; d += $5 } END { print f, t, e, d }' \
        > "$WORK/whole"
    for by in user group type age; do
        # shellcheck disable=SC2086 # words
        expect "sums by $by $words" 0 - du --by $by -o files,total,exclusive,disk $options \
            "$subvolumes" $path
        is "have all files: $by $words" \
            "$(awk '{ f += $1; t += $2; e += $3; d += $4 } END { print f, t, e, d }' "$WORK/out")" \
            "$(cat "$WORK/whole")"
    done
done
expect "sums of some files" 1 "no such file" du --by type --name '*.dat' -o suffix,files \
    "$people" / /none
holds "of an existing path" out_is $'dat\t5'
expect "sums of lines" 2 'it excludes -s' du --by user -s "$people"
expect "sums of nothing known" 2 'allowed: user, group, type, age' du --by none "$people"
expect "sums of no word" 2 'allowed: user, group, type, age' du --by= "$people"

# Files that share data: the same groups as those of the extents.
cat > "$WORK/groups.py" << 'END'
# Reads rows of extents, prints the groups of files that use the same extents.
import json, sys
users, groups = {}, {}
for row in map(json.loads, sys.stdin):
    for extent in row["extents"]:
        if extent.get("extent_logical"):
            file = "%d/%d" % (row["subvolume"], row["inode"])
            users.setdefault(extent["extent_logical"], set()).add(file)
for files in users.values():
    joined = set(files).union(*(groups.get(file, ()) for file in files))
    for file in joined:
        groups[file] = joined
for group in sorted({tuple(sorted(group)) for group in groups.values() if len(group) > 1}):
    print(*group)
END
shared_groups() { awk '{ print $1, $2 "/" $3 }' "$WORK/out" | LC_ALL=C sort | awk '
    $1 != last { if (last) print line; line = $2; last = $1; next } { line = line " " $2 }
    END { if (last) print line }' | LC_ALL=C sort; }
if have python3; then
    for words in "$clones" "--no-snapshots $clones" "$subvolumes" \
        "$fixtures/data-shapes/dev1.img"; do
        # shellcheck disable=SC2086 # words
        expect "shared files of $words" 0 - du --shared-with -o group_number,subvolume,inode $words
        # shellcheck disable=SC2086 # words
        "$PROGRAM" -0 $words > "$WORK/paths"
        run_json extents --json --from0 -T "$WORK/paths" "${words##* }" |
            python3 "$WORK/groups.py" > "$WORK/want"
        is "are those with the same extents" "$(shared_groups)" "$(LC_ALL=C sort "$WORK/want")"
    done
fi
expect "shared files below two paths" 0 - du --shared-with --json "$clones" /plain \
    /plain-clone /plain
holds "are listed once" [ "$(wc -l < "$WORK/out")" -eq 2 ]
holds "with their bytes" out_has \
    '^\{"group_number":1,"files":2,"shared":[1-9][0-9]*,"path":"/p'
expect "nothing to share with" 0 - du --shared-with -o path "$clones" /plain
holds "lists no file" [ ! -s "$WORK/out" ]
expect "shared files and sums" 2 'it excludes -s' du --shared-with --by type "$clones"

# The format of ncdu: the sums are the total and set shared of du where files share all or nothing.
ncdu_has() {
    expect "an export of $1" 0 - du --ncdu "${@:3}"
    python3 "$ROOT/tests/support/read_ncdu.py" < "$WORK/out" > "$WORK/read"
    is "has the entries and sums of $1" "$(tr '\n' ' ' < "$WORK/read")" "$2"
}
if have python3; then
    plain=$fixtures/plain/dev1.img
    "$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" deep plain || exit 1
    ncdu_has "a snapshot" "0 $clones:/snapshot 1 zstd-parts 0 278528 " "$clones" /snapshot
    ncdu_has "a file" "0 $clones:/zstd 1 zstd 1 zstd (shared) 151552 249856 " "$clones" /zstd
    expect "an export of all files" 0 - du --ncdu "$plain"
    python3 "$ROOT/tests/support/read_ncdu.py" < "$WORK/out" > "$WORK/read"
    is "has all files and directories" "$(sed '$d; s/ (shared)$//' "$WORK/read" | uniq | wc -l)" \
        "$(run_json du --json "$plain" | wc -l)"
    expect "deep directories" 0 - du --ncdu "$fixtures/deep/dev1.img"
    is "the export has 61 levels" "$(python3 "$ROOT/tests/support/read_ncdu.py" < "$WORK/out" |
        sort -n | tail -n 1 | cut -c1-10)" "61 file-59"
fi
if have ncdu; then
    expect "an export of clones" 0 - du --ncdu "$clones"
    holds "ncdu imports the export" eval 'ncdu -f "$WORK/out" -o - > "$WORK/again"'
    is "ncdu reads all entries" \
        "$(grep -c '"name"' "$WORK/again")" "$(grep -c '"name"' "$WORK/out")"
else
    skip ncdu "an import of sizes"
fi
expect "an export of two paths" 2 ': --ncdu shows one PATH$' du --ncdu "$clones" / /zstd
expect "an export in columns" 2 'its own format' du --ncdu -o path "$clones"
expect "an export of totals" 2 'needs all files' du --ncdu -s "$clones"

# compression.
expect "compression of a path twice" 0 - compression "$clones" /zstd /zstd
holds "compression counts the extents of a path once" \
    out_has '^Processed 2 files, 7 regular extents \(16 refs\), 0 inline\.$'
expect "compression by name" 0 - compression --raw --name '*-parts' --maxdepth 1 "$clones"
holds "compression counts the selected files" out_has '^Processed 4 files, '
expect "compression in columns" 0 - compression \
    -o compression,percent,disk,files,extent_count,references,inline "$clones"
holds "compression prints a row for each type" out_is $'total\t30\t667648\t14\t30\t113\t0
none\t100\t581632\t-\t-\t-\t-\nzlib\t5\t28672\t-\t-\t-\t-
lzo\t5\t28672\t-\t-\t-\t-\nzstd\t5\t28672\t-\t-\t-\t-'
expect "compression of nothing" 1 'no such file' compression --json "$clones" /none
holds "a missing path has no percentage" \
    out_is '{"compression":"total","disk":0,"uncompressed":0,"referenced":0,'\
'"files":0,"extent_count":0,"references":0,"inline":0}'
expect "several devices" 0 'is missing' compression "$fixtures/raid5-3/dev1.img" \
    --device "$fixtures/raid5-3/dev2.img"

# Damage.
lost='sizes are lower bounds: 1 tree block of'
expect "du without the extent tree" 1 "$lost the extent tree lost" \
    du -s --raw "$fixtures/lost-tree-extent/dev1.img"
holds "without the extent tree, no bytes are shared" \
    out_has '^     40960           0           0  /$'
expect "du of a lost leaf" 1 "$lost subvolumes lost" du -s "$fixtures/lost-leaf-inodes/dev1.img"
expect "compression of a lost leaf" 1 "$lost subvolumes lost" \
    compression "$fixtures/lost-leaf-inodes/dev1.img"
expect "du of a replayed log" 0 'data that it shares may be counted as exclusive' \
    du -s "$fixtures/log-tree/dev1.img"
expect "du without replaying" 0 - du -q -s --log ignore "$fixtures/log-tree/dev1.img"

# As on a mount: filefrag counts the same extents of files that are not compressed, and compsize the
# same stored bytes of all.
expect "extents of files" 0 - du --name 'plain*' --type f -o extent_count,disk,path "$clones"
holds "are pieces on the disk" [ "$(cat "$WORK/out")" = \
    $'6\t544768\t/plain\n3\t405504\t/plain-clone\n8\t401408\t/plain-parts' ]
expect "compressed extents" 0 - du -o disk,path "$clones" /zstd /lzo-clone /volume/zstd-parts
holds "the column disk has the stored bytes" [ "$(cat "$WORK/out")" = \
    $'28672\t/zstd\n16384\t/lzo-clone\n32768\t/volume/zstd-parts' ]
expect "extents of directories" 0 - du -s -o extent_count,disk,files \
    "$fixtures/data-shapes/dev1.img"
holds "a directory has the sums of its files" [ "$(cat "$WORK/out")" = $'35\t2240512\t40' ]
expect "the most fragmented file" 0 - du --top 1 --sort -extent_count --type f -o path "$clones"
holds "the file with the most extents comes first" [ "$(cat "$WORK/out")" = /volume/zstd-parts ]

# walk and ls have the same columns as du, and those about shared data with any number of threads.
for name in data-shapes data-clones; do
    expect "du of $name" 0 - du --type f -o extent_count,disk,path,shared "$fixtures/$name/dev1.img"
    sort "$WORK/out" > "$WORK/du"
    expect "walk of $name" 0 - walk -j 3 -o extent_count,disk,path,shared \
        "$fixtures/$name/dev1.img"
    is "walk -o shared prints the numbers of du for $name" \
        "$(sort "$WORK/out" | cksum)" "$(cksum < "$WORK/du")"
    cut -f 1-3 "$WORK/du" | sort > "$WORK/du3" && mv "$WORK/du3" "$WORK/du"
    expect "walk of $name" 0 - walk -o extent_count,disk,path "$fixtures/$name/dev1.img"
    is "walk prints the numbers of du for $name" \
        "$(sort "$WORK/out" | cksum)" "$(cksum < "$WORK/du")"
done
expect "ls with columns of du" 0 - ls -o extent_count,disk,path "$clones" /plain-clone
is "ls: the same as du" "$(cat "$WORK/out")" $'3\t405504\t/plain-clone'
expect "du with the column shared" 0 - du -o shared,path "$clones" /plain-clone
cp "$WORK/out" "$WORK/du"
expect "ls -o shared" 0 - ls -o shared,path "$clones" /plain-clone
holds "ls: the same as du" cmp "$WORK/out" "$WORK/du"

expect "a lost block of the extent tree" 1 'sizes are lower bounds' \
    walk -o shared "$fixtures/lost-tree-extent/dev1.img"

# Comparison with a mount of the same image, where mounting is possible.
if [ "$(id -u)" = 0 ] && have losetup btrfs compsize && mkdir "$WORK/mnt" &&
    mount -o loop,ro "$clones" "$WORK/mnt" 2> /dev/null; then
    (cd "$WORK/mnt" && btrfs filesystem du --raw zstd volume) > "$WORK/theirs"
    compsize -b "$WORK/mnt/zstd" > "$WORK/table"
    umount "$WORK/mnt"
    expect "du beside a mount" 0 - du --raw "$clones" zstd volume
    holds "du prints what btrfs filesystem du prints on a mount" \
        diff <(sed 's|  /|  |' "$WORK/out") "$WORK/theirs"
    expect "compression beside a mount" 0 - compression --raw "$clones" zstd
    holds "compression prints what compsize prints on a mount" diff "$WORK/out" "$WORK/table"
else
    skip "root and a kernel with btrfs" "a comparison with a mount"
fi
finish
