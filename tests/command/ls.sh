#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ls: operands, formats, links, subvolumes, missing files, damaged images.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img

out_is() { diff - <(echo "$1") <<< "$(cat "$WORK/out")"; }

# Operands.
expect "the top directory" 0 - ls "$plain"
top=$'collisions\ndata\ndocs\nempty\nkinds\nmany\nmore\nnames\nsource\ntop-file\nyounger\nyoungest'
holds "its names in their order" out_is "$top"
expect "the same by its path" 0 - ls "$plain" /
holds "ls / lists the names of the top directory" out_is "$top"
expect "an empty directory" 0 - ls "$plain" /empty
holds "an empty directory prints nothing" out_is ''
expect "a file" 0 - ls "$plain" /top-file
holds "its path as it was given" out_is /top-file
expect "two directories and a file" 0 - ls "$plain" youngest /empty docs/../top-file
holds "the file first, then both with headings, in the order of ls" out_is \
    $'docs/../top-file\n\n/empty:\n\nyoungest:\n'"$("$PROGRAM" ls "$plain" youngest)"
expect "a path that is not there, and one that is" 1 \
    'btrfs-walk: .*: /none: no such file or directory' ls "$plain" /none /top-file
holds "the path that exists is listed" out_is /top-file
expect "a file taken for a directory" 1 '/top-file/x: not a directory' ls "$plain" /top-file/x
expect "no image" 2 'no image given' ls
expect "an image that is none" 2 '' ls "$ROOT/README.md" /
expect "a subvolume that is not there" 2 'there is no subvolume none$' ls --subvol none "$plain"
expect "an order without a name" 2 'allowed: name, none' ls --sort= "$plain"
expect "others that are there" 2 \
    'no subvolume none; there are home, home/docs/nested, .*, home-snapshot and [0-9]* more$' \
    ls --subvol none "$subvolumes"

# Output formats.
expect "long lines" 0 - ls -l "$plain" /kinds
holds "ls -l begins with a total" out_has '^total [0-9]+$'
holds "ls -l prints a character device" out_has \
    '^crw------- 1 0 0 1,   3 20[0-9-]* [0-9:]*\.[0-9]{9} \+0000 character-device$'
holds "ls -l prints a block device" out_has '^brw------- 1 0 0 7, 200 '
holds "ls -l prints a fifo" out_has '^prw-.* fifo$'
holds "ls -l prints a socket" out_has '^srw-.* socket$'
expect "a link" 0 - ls -l "$plain" /docs
holds "ls -l prints the target of a link" \
    out_has '^lrwxrwxrwx 1 .* 9 20.* symbolic-link -> \.\./source$'
expect "all names" 0 - ls -a "$plain" /docs
holds "the directory and the one above it" [ "$(head -n 2 "$WORK/out")" = $'.\n..' ]
expect "numbers of inodes" 0 - ls -ai "$plain" /docs
holds "ls -ai prints the inodes of . and .." [ "$(head -n 2 "$WORK/out")" = $'257 .\n256 ..' ]
expect "sizes for people" 0 - ls -lh "$plain" /docs
holds "ls -h rounds sizes up" out_has ' +20K 20.* large.bin$'
expect "letters as words of their own" 0 - ls -l -h -d "$plain" /docs
holds "are not words of find" out_has ' /docs$'
expect "ls -R" 0 - ls -R "$subvolumes"
holds "ls -R prints a heading for each directory" out_has '^/home/.*:$'
holds "the first one is the top" [ "$(head -n 1 "$WORK/out")" = /: ]
expect "ls --help" 0 - ls --help
holds "help has -h for sizes" grep -q -- '^  -h, --iec ' <("$PROGRAM" ls --help=options)
holds "--help of ls has no letter" out_has '^      --help\b'
"$PROGRAM" ls -lR "$plain" > /dev/full 2> "$WORK/err"
status=$?
holds "a full disk is an error" [ "$status" -eq 1 ]
open_unread
(trap '' PIPE; exec "$PROGRAM" ls -lR "$plain") >&"$unread" 2> "$WORK/err"
is "a closed pipe ends ls, without a message" "$?$(cat "$WORK/err")" 141
if have_terminal; then
    script -qec "$PROGRAM ls -laR $plain" /dev/null < /dev/null | tr -d '\r' > "$WORK/out"
    holds "no control bytes on a terminal" \
        [ "$(tr -d '\n' < "$WORK/out" | tr -cd '\000-\037\177' | wc -c)" -eq 0 ]
else
    skip "script(1) on a pseudo-terminal" terminals
fi

# Links: a symbolic link that is an operand is followed, except in the long format.
expect "a link to a directory" 0 - ls "$plain" /docs/symbolic-link
holds "a link to a directory lists the directory" out_is "$("$PROGRAM" ls "$plain" /source)"
expect "the link itself" 0 - ls -l "$plain" /docs/symbolic-link
holds "ls -l of a link prints the link" out_has '^lrwx.* /docs/symbolic-link -> \.\./source$'
expect "with its type" 0 - ls -F "$plain" /docs/symbolic-link
is "ls -F of a link prints the link" "$(cat "$WORK/out")" /docs/symbolic-link@
expect "through the link" 0 - ls -l "$plain" /docs/symbolic-link/
holds "ls -l of a link with a slash lists the directory" out_has '^total '
expect "a link to nowhere" 0 - ls "$plain" /collisions/hash-30807ce4-name
expect "targets of links" 0 - stat -o target "$plain" /docs/symbolic-link \
    /collisions/hash-30807ce4-name
holds "stat prints the targets of two links" out_is $'../source\nnowhere'

# Subvolumes.
expect "a subvolume in its place" 0 - ls "$subvolumes" /home
cp "$WORK/out" "$WORK/home"
expect "the same as the top" 0 - ls --subvol home "$subvolumes"
holds "--subvol lists the names of the subvolume" cmp "$WORK/home" "$WORK/out"
expect "without nested subvolumes" 0 - ls -R --subvol home "$subvolumes"
holds "ls -R --subvol does not enter nested subvolumes" \
    eval 'out_has "^empty-volume$" && ! out_has "^/snapshot-inside:$"'
expect "with them" 0 - ls -R --subvol home --nested=yes "$subvolumes"
holds "and what is in them" out_has '^/snapshot-inside:$'
expect "without snapshots" 0 - ls -R --type f -0 -o path --no-snapshots "$subvolumes"
is "the files that walk lists" "$(tr '\n\0' '?\n' < "$WORK/out" | LC_ALL=C sort | md5sum)" \
    "$("$PROGRAM" -0 --no-snapshots "$subvolumes" | tr '\n\0' '?\n' | LC_ALL=C sort | md5sum)"
expect "of a path" 0 - ls -R --nested=no "$subvolumes" home
holds "--nested=no does not enter nested subvolumes" \
    eval 'out_has "^home/docs:$" && ! out_has "^home/snapshot-inside:$"'
expect "nothing is above it" 0 - ls --subvol /home "$subvolumes" /../..
holds ".. of the top directory is the top directory" cmp "$WORK/home" "$WORK/out"
expect "a stale entry in a snapshot" 0 - ls -lia "$subvolumes" \
    /docs/snapshot-of-snapshot/empty-volume
holds "an empty directory, number 2" out_has '^  2 drwxr-xr-x 1 .* 0 .* \.$'
holds "the empty directory has no other entry" [ "$(grep -c '' "$WORK/out")" -eq 3 ]
# number BYTES: the bytes as a little-endian number.
number() { printf %u "0x$(printf %s "$1" | od -v -An -tx1 -w1 | tac | tr -d ' \n')"; }
if have python3; then
    cp --sparse=always "$subvolumes" "$WORK/acl"
    # Turns an inode item into an extended attribute of the directory before it, which is empty
    # then.
    holds "an access control list of the top of a subvolume" change "$WORK/acl" \
        266 256 84 - delete and 266 256 96 - delete and 266 257 1 0 key 256 24 2038346239 and \
        266 256 24 - set 25 4 $((23 << 16 | 160 - 30 - 23)) and 266 256 24 - set 29 1 8 and \
        266 256 24 - set 30 8 "$(number system.p)" and \
        266 256 24 - set 38 8 "$(number osix_acl)" and 266 256 24 - set 46 7 "$(number _access)"
    expect "long lines" 0 - ls -l "$WORK/acl" /
    holds "ls -l marks the directory with an access control list" \
        out_has '^drwxr-xr-x\+ .* to-move$'
    holds "ls -l does not mark other directories" out_has '^drwxr-xr-x  .* docs$'
    rm "$WORK/acl"
else
    skip python3 "an access control list of a subvolume"
fi

# Devices: one image is an operand, others are given with --device. With a volfile, no image operand
# is needed.
expect "-d is a directory itself" 0 - ls -ld "$plain" /docs /docs/symbolic-link /top-file
holds "one line each, the link not followed" \
    [ "$(sed 's/.* \//\//' "$WORK/out" | tr '\n' ' ')" = \
    '/docs /docs/symbolic-link -> ../source /top-file ' ]
expect "several devices" 0 - ls --device "$BUILD/fixtures/raid5-3/dev2.img" \
    --device "$BUILD/fixtures/raid5-3/dev3.img" \
    "$BUILD/fixtures/raid5-3/dev1.img" /
holds "ls reads several devices" [ -s "$WORK/out" ]
"$PROGRAM" graph "$plain" > "$WORK/volfile"
expect "the image of a volfile" 0 - ls --graph "$WORK/volfile" /empty /top-file
holds "operands after a volfile are paths" out_is $'/top-file\n\n/empty:'

# Filters: with -R they select the same as in a walk, and directories without any selected entry are
# not listed. No name in old-4k has a newline.
old=$BUILD/fixtures/old-4k/dev1.img
# paths: prints the entries that were listed as full paths.
paths() {
    awk '/^\/.*:$/ { sub(/:$/, ""); sub(/\/$/, ""); at = $0; next } $0 != "" { print at "/" $0 }' \
        "$WORK/out" | sort
}
while IFS= read -r filter; do
    read -ra filters <<< "$filter"
    types=(--type 'f,d,l,c,b,p,s') # the walk lists only files by default
    [ "${filters[0]}" != --type ] || types=()
    expect "-R $filter" 0 - ls -aR "${filters[@]}" "$old"
    holds "-R $filter: as the walk" \
        [ "$(paths)" = "$("$PROGRAM" "${types[@]}" "${filters[@]}" "$old" | sed '/^\/$/d' | sort)" ]
    holds "ls -R $filter lists something" [ -s "$WORK/out" ]
done << 'FILTERS'
--name *.txt
--iname *.TXT --name 0*
--path /volume/*
--regex /.*/part-0[1-3]\.c
--size +20
--empty
--type d
--type f,l
--perm 644 --links 2
--uid 0 --maxdepth 2
--exclude docs --exclude *.c
--newer 2000-01-01 --mtime -99999
FILTERS
expect "a filter, and long lines" 0 - ls -lhR --type l "$plain" /docs
holds "a filter with -l lists the link and its target" out_is "/docs:
total 4.0K
$(grep ' -> ' "$WORK/out")"
expect "a filter with inodes, not long" 0 - ls -R --type l --uid 0 "$plain" /docs
holds "a filter without -l lists the link only" out_is $'/docs:\nsymbolic-link'
expect "filters for what is named, too" 0 - ls -R --name 'top*' "$plain" /top-file /docs
holds "a filter applies to named files" out_is /top-file
expect "nothing selected" 0 - ls -R --name none "$plain"
holds "a filter that selects nothing prints nothing" out_is ''
expect "filters see paths from the subvolume on" 0 - ls -R --path '/docs/*.txt' --subvol home \
    "$subvolumes"
holds "--path matches paths from the subvolume on" out_has '\.txt$'
expect "nothing below what is named" 0 - ls -R --maxdepth 0 "$plain" /docs
holds "--maxdepth 0 lists nothing below a named directory" out_is ''
expect "filters without -R" 2 'need -R' ls --name x "$plain"
expect "a filter that makes no sense" 2 'size' ls -R --size many "$plain"
expect "-h is not a filter" 0 - ls -hR --size -1M "$plain"

# Depth: the parent of a directory is remembered, and not looked up from the top again.
if command -v mkfs.btrfs > /dev/null && mkdir -p "$WORK/deep/$(printf 'd/%.0s' {1..200})" &&
    truncate -s 120M "$WORK/image" &&
    mkfs.btrfs -q --rootdir "$WORK/deep" "$WORK/image" > /dev/null 2>&1; then
    searches() { "$PROGRAM" ls "$1" --probe 'cache-*' "$WORK/image" 2>&1 > /dev/null | wc -l; }
    holds "-a searches no more than without" [ "$(searches -aR)" -le $(("$(searches -R)" + 10)) ]
else
    skip mkfs.btrfs "a deep tree"
fi

# Fixtures, damaged or not: as many regular files as the walk lists; if the result is partial, no
# more than that.
while read -r folder; do
    name=$(basename "$folder")
    devices=()
    for device in "$folder"dev*.img; do devices+=(--device "$device"); done
    image=${devices[1]}
    timeout 60 "$PROGRAM" ls -laR "${devices[@]:2}" "$image" > "$WORK/out" 2> "$WORK/err"
    status=$?
    timeout 60 "$PROGRAM" "${devices[@]:2}" "$image" -0 > "$WORK/paths" 2> /dev/null
    walked=$?
    case $status in
    0)
        holds "$name: ls lists as many regular files as walk" \
            [ "$(grep -cE '^-[-rwxsStT]{9}' "$WORK/out")" -eq "$(tr -dc '\0' < "$WORK/paths" |
                wc -c)" ]
        ;;
    1) holds "$name: a partial answer says why" grep -qE 'damage: |no inode' "$WORK/err" ;;
    *) holds "$name: ls ends with $status as walk does with $walked, and like an error" \
        [ "$status" -eq "$walked" -a "$status" -le 3 -a -s "$WORK/err" ] ;;
    esac
done < <(printf '%s\n' "$BUILD"/fixtures/*/ | sweep $((3 * ${SWEEP:-1})))

# A subvolume that contains itself: no path leads to it, which is reported.
cp --sparse=always "$subvolumes" "$WORK/cycle.img"
holds "a subvolume is made its own parent" \
    change "$WORK/cycle.img" 1 256 144 5 key 256 144 256 and 1 5 156 256 delete
expect "what no path leads to is reported" 1 'subvolume 256 has no path: it contains itself' \
    ls -aR "$WORK/cycle.img"
expect "a part without it" 0 - ls -aR "$WORK/cycle.img" /
finish
