#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line: options, exit status, streams, and invalid inputs.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 subvolumes default-subvolume \
    old-4k dup-system-0 log-tree || exit 1
plain=$BUILD/fixtures/plain/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
first=$BUILD/fixtures/raid1-2/dev1.img
second=$BUILD/fixtures/raid1-2/dev2.img
list() {
    zstd -q -d -c "$ROOT/fixtures/$1/paths0.zst" 2> /dev/null || cat "$ROOT/fixtures/$1/paths0"
}

same_list() { LC_ALL=C sort -z "$WORK/out" | cmp - <(list "$1"); }
out_empty() { [ ! -s "$WORK/out" ]; }

expect "a healthy image" 0 - "$plain"
expect "paths that end with NUL" 0 - -0 "$plain"
holds "walk -0 lists the paths of the fixture" same_list plain
expect "the command by name" 0 - walk --print0 "$plain"
holds "walk --print0 lists the paths of the fixture" same_list plain
expect "options behind operands" 0 - "$plain" -0
holds "options after operands list the paths of the fixture" same_list plain
expect "end of options" 0 - -0 -- "$plain"
expect "two devices" 0 - -0 "$first" "$second"
holds "two devices list the paths of the fixture" same_list raid1-2
expect "devices in the other order" 0 - -0 "$second" "$first"
holds "paths in the other order" same_list raid1-2
expect "a device by -d" 0 - -0 "$first" --device "$second"
holds "--device lists the paths of the fixture" same_list raid1-2
expect "degraded, without an option" 0 'warning: .*device 2 .*missing' -0 "$first"
holds "a degraded file system lists the paths of the fixture" same_list raid1-2
expect "a quiet walk of a degraded file system" 0 - -q -0 "$first"
expect "a duplicate device" 0 'dev1.img is not used: duplicate' "$first" "$second" "$first"
expect "a foreign device" 1 'dev1.img is not used: it belongs to another file system' -0 "$first" \
    "$second" "$plain"
holds "paths beside a foreign device" same_list raid1-2
expect "a text file as a second device" 1 'not used: no superblock' -0 "$plain" \
    --device "$ROOT/Makefile"
holds "paths beside a text file" same_list plain
expect "a log tree" 0 - "$BUILD/fixtures/log-tree/dev1.img"
expect "a log tree, with -v" 0 'note: .*the log tree has .* generation 7: it is replayed' \
    -v "$BUILD/fixtures/log-tree/dev1.img"
holds "what only the log has" out_has '^/volume/docs/letters/logged-19$'
expect "without the log" 0 'note: .*the log tree has .* it is ignored' -v --log=ignore \
    "$BUILD/fixtures/log-tree/dev1.img"
holds "what the log has removed" out_has '^/volume/docs/letters/01.txt$'
expect "no such way with a log" 2 'invalid argument of --log' --log=maybe "$plain"
expect "repairs are silent" 0 - "$BUILD/fixtures/dup-system-0/dev1.img"
expect "repairs with -v" 0 'note: .*tree block [0-9]+ .*used mirror' \
    -v "$BUILD/fixtures/dup-system-0/dev1.img"
holds "each use of another copy has one message" [ -z "$(sort "$WORK/err" | uniq -d)" ]

expect "superblock copy 0" 0 - --super 0 "$plain"
expect "superblock copy 1" 0 - --super 1 "$plain"
expect "superblock copy that is not there" 2 'not a btrfs|superblock' --super 2 "$plain"
expect "superblock copy 3" 2 'invalid argument' --super 3 "$plain"
expect "control characters in an argument" 2 '^btrfs-walk: --newer .a.033b' --newer $'a\033b' \
    "$plain"
expect "five threads" 0 - -j 5 "$plain"
expect "no threads" 2 'invalid argument' -j 0 "$plain"
expect "threads that are no number" 2 'invalid argument' -j many "$plain"
expect "a walk with --summary" \
    0 'files, .* directories, .* subvolumes?, .* bytes of metadata read, .* seconds' \
    --summary "$plain"
expect "an argument too many" 2 '--quiet takes no argument, and is: .*: --quiet=now$' dump \
    --quiet=now "$plain"
expect "unknown option" 2 'unknown option' --no-such-option "$plain"
expect "no image" 2 'no image given'
expect "only the command" 2 'no image given' walk
expect "an empty name" 2 'the name of an image is empty' info ""
expect "the program with --help" 0 - --help
holds "--help prints the usage on stdout" grep -q 'Usage: btrfs-walk' "$WORK/out"
holds "and how to see more" out_has '^btrfs-walk help COMMAND '
expect "help of all options" 0 - walk --help=all
holds "--help=all has options that --help lacks" \
    out_has '^      --tree-root LOGICAL\[@GENERATION\]$'
expect "the program with --version" 0 - --version
holds "--version prints the version on stdout" grep -qE '^btrfs-walk [0-9]+\.[0-9]+' "$WORK/out"

expect "a file that does not exist" 2 'cannot open .*nowhere' "$WORK/nowhere"
for word in sta 'st at' sum-; do
    expect "a misspelt command: $word" 2 \
        ' is neither a command nor a file; did you mean .*(stat|sum)' "$word" "$plain"
done
expect "letters that are swapped" 2 "did you mean 'stat'" satt "$plain"
expect "the word of another program" 2 "did you mean 'walk'\?$" find "$plain"
expect "an option before the command" 2 \
    'the command comes first: btrfs-walk ls -q \.\.\.$' -q ls "$plain"
expect "one of its options is no option of walk" 2 \
    'comes first: btrfs-walk du -q \.\.\.$' -q du -s \
    "$plain"
expect "the command for which there need be no word" 2 'comes first: btrfs-walk walk -q' \
    -q walk "$plain"
expect "an image before the command" 2 'comes first: btrfs-walk cat .*dev1.img \.\.\.$' \
    "$plain" cat /file
expect "several commands" 2 "did you mean .*'xattr'.* or 'xlators'.*\?$" x "$plain"
# Names from other programs, and words that users look for: each hint names an existing command with
# an option that it really has.
hints=0
for word in undelete recover restore list files grep df history search snapshots verify; do
    expect "$word is no command" 2 "^btrfs-walk: $word is neither .*; did you mean '" "$word" \
        "$plain"
    while read -r hint option; do
        hints=$((hints + 1))
        expect "$word: $hint" 0 - help --all "$hint"
        [ -z "$option" ] || holds "$word: $hint $option" out_has "^ +(-., )?$option|^ +$option, "
    done < <(head -n 1 "$WORK/err" | grep -oE "'[^']+'" | tr -d "'")
done
holds "each of them has one" [ "$hints" -ge 12 ]
expect "help of a command" 0 - help check
holds "help check prints check --help" cmp <("$PROGRAM" check --help) "$WORK/out"
expect "help of all options" 0 - help --all check
holds "help --all check prints check --help=all" cmp <("$PROGRAM" check --help=all) "$WORK/out"
expect "help alone" 0 - help
"$PROGRAM" --dump-tables | python3 -c 'import json, sys
print(*(command["name"] for command in json.load(sys.stdin)["commands"]), sep="\n")' > "$WORK/names"
holds "help lists every command" cmp <(sort "$WORK/names") \
    <(sed -nE 's/^  ([a-z-]+) +[A-Z].*/\1/p' "$WORK/out" | sort)
for subject in acl:xattr luks:--key-file json:--json qcow2:qcow2 raid:devices grep:mount \
    snapshot:subvolumes; do
    expect "help of the subject ${subject%:*}" 0 - help "${subject%:*}"
    holds "help of a subject has ${subject#*:}" grep -qe "${subject#*:}" "$WORK/out"
done
expect "help of no command" 2 "chek is neither .*; did you mean 'check'\?" help chek
expect "a word like none" 2 ' is neither a command nor a file$' nonsense "$plain"
expect "a word of control characters" 2 '^btrfs-walk: .033 is neither' $'\033'
expect "a directory" 2 'a directory' "$WORK"
expect "a device that is no disk" 2 'special file' /dev/null
expect "a text file" 2 'not a btrfs file system' "$ROOT/Makefile"
: > "$WORK/empty"
expect "an empty file" 2 'not a btrfs file system' "$WORK/empty"
# The magic of ext4, where it belongs: enough for `file` to say so.
truncate -s 8M "$WORK/ext4"
printf '\123\357' | dd of="$WORK/ext4" bs=1 seek=1080 conv=notrunc status=none
expect "an ext4 image" 2 'not a btrfs file system' "$WORK/ext4"
holds "a foreign image lists nothing" out_empty
head -c 100000 "$plain" > "$WORK/short"
expect "a very short image" 2 'cut off' "$WORK/short"

# Subvolumes: every way to name one gives the part of the list below its path.
expect "all subvolumes" 0 - -0 "$subvolumes"
cp "$WORK/out" "$WORK/all"
holds "all subvolumes list the paths of the fixture" same_list subvolumes
expect "the top-level subvolume" 0 - -0 --subvol 5 "$subvolumes"
holds "it is part of all" \
    [ -z "$(LC_ALL=C sort -z "$WORK/out" | LC_ALL=C comm -z -23 - <(LC_ALL=C sort -z "$WORK/all") |
        tr -d '\0')" ]
holds "one subvolume lists less than all" \
    [ "$(tr -cd '\0' < "$WORK/out" | wc -c)" -lt "$(tr -cd '\0' < "$WORK/all" | wc -c)" ]
expect "a subvolume that is not there" 2 'no subvolume' --subvol /no/such "$subvolumes"
expect "an id that is not there" 2 'no subvolume' --subvol 99999 "$subvolumes"
expect "the default subvolume" 0 - -0 --subvol default "$BUILD/fixtures/default-subvolume/dev1.img"
holds "the default is not empty" [ -s "$WORK/out" ]
expect "without snapshots" 0 - -0 --no-snapshots "$subvolumes"
holds "--no-snapshots lists less than all subvolumes" \
    [ "$(tr -cd '\0' < "$WORK/out" | wc -c)" -lt "$(tr -cd '\0' < "$WORK/all" | wc -c)" ]

# Streams.
"$PROGRAM" "$plain" > /dev/full 2> "$WORK/err"
status=$?
holds "a full disk is an error" [ "$status" -eq 1 ]
holds "a full disk is reported" grep -q 'cannot write to stdout' "$WORK/err"
"$PROGRAM" "$plain" >&- 2> "$WORK/err"
status=$?
holds "a closed stdout is an error" [ "$status" -eq 1 ]
"$PROGRAM" --help > /dev/full 2> /dev/null
status=$?
holds "help on a full disk is an error" [ "$status" -ne 0 ]
open_unread
(trap - PIPE; exec "$PROGRAM" "$plain") >&"$unread" 2> "$WORK/err"
is "a closed pipe ends a walk, without a message" "$?$(cat "$WORK/err")" 141
(trap '' PIPE; exec "$PROGRAM" "$plain") >&"$unread" 2> "$WORK/err"
is "a closed pipe ends a walk that ignores SIGPIPE" "$?$(cat "$WORK/err")" 141
for words in 'dump --help' 'map -o help'; do
    (trap '' PIPE; exec "$PROGRAM" $words) >&"$unread" 2> "$WORK/err"
    is "$words ends as a listing does if nobody reads it" "$?$(cat "$WORK/err")" 141
done
exec {unread}>&-
holds "head gets one line" [ "$("$PROGRAM" "$plain" | head -n 1 | wc -l)" -eq 1 ]
if have_terminal; then
    script -qec "$PROGRAM $plain" /dev/null > "$WORK/terminal" < /dev/null
    holds "no raw control bytes on a terminal" \
        [ "$(tr -d '\r\n' < "$WORK/terminal" | tr -cd '\000-\037\177' | wc -c)" -eq 0 ]
else
    skip "script(1) on a pseudo-terminal" "terminal escapes"
fi

# Images are never written: one without write permission can be read.
before=$(cksum < "$plain")
chmod a-w "$plain"
expect "a read-only image" 0 - "$plain"
chmod u+w "$plain"
holds "the image is unchanged" [ "$before" = "$(cksum < "$plain")" ]
finish
