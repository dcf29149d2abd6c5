#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Commands that are interrupted while they write a file: no incomplete file may be left under its
# final name.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/gate.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain compressed || exit 1
plain=$BUILD/fixtures/plain/dev1.img
compressed=$BUILD/fixtures/compressed/dev1.img
archive=$WORK/archive
bad=debug/error-gen@device-1,kind=data

# The program that was killed may take a moment to clean up.
gone() { soon [ ! -e "$archive" ]; }

expect "an archive" 0 - tar -qf "$archive" "$plain"
holds "tar reads the archive" tar -tf "$archive"
"$PROGRAM" tar "$plain" 2> /dev/null | cmp - "$archive"
is "and the same as on stdout" $? 0
expect "over another one" 0 - tar -f "$archive" "$plain" /docs
holds "of which nothing is left" [ "$(tar -tf "$archive" | grep -vc '^docs/')" -eq 0 ]
before=$(md5sum < "$archive")
expect "no image" 2 'not a btrfs' tar -f "$archive" "$ROOT/Makefile"
is "what was there is untouched" "$(md5sum < "$archive")" "$before"
expect "no path" 1 'no such file' tar -f "$archive" "$plain" /nowhere
holds "an archive without anything is one" tar -tf "$archive"
rm "$archive"
expect "no image, and no file before" 2 'not a btrfs' tar -f "$archive" "$ROOT/Makefile"
holds "no archive is made without an image" [ ! -e "$archive" ]

expect "an archive of damaged data" \
    1 'archive is incomplete, and was removed' tar --insert $bad -f "$archive" \
    "$compressed"
holds "an archive with damage is removed" [ ! -e "$archive" ]
expect "damage that is left out" 1 'cannot be read' tar --on-error=skip --insert $bad \
    -f "$archive" "$compressed"
holds "an archive without the damaged files stays" tar -tf "$archive"
: > "$WORK/elsewhere"
ln -sf elsewhere "$archive"
expect "behind a link" 1 'incomplete, and was emptied' tar --insert $bad -f "$archive" \
    "$compressed"
is "the link stays, and its target is empty" \
    "$(readlink "$archive") $(stat -c %s "$WORK/elsewhere")" "elsewhere 0"
rm "$archive"
expect "without the sandbox" 1 'incomplete, and was removed' tar --sandbox=off --insert $bad \
    -f "$archive" "$compressed"

for signal in INT TERM HUP KILL; do
    gate device-1,kind=data,after=12
    (trap - INT
        exec "$PROGRAM" tar -q -j 1 "${gate[@]}" -f "$archive" "$compressed" 2> "$WORK/err") &
    program=$!
    at_gate
    holds "a part of the archive" [ -s "$archive" ]
    kill -$signal $program
    wait $program 2> /dev/null
    is "SIG$signal ends the program" $? $((128 + $(kill -l $signal)))
    [ $signal = KILL ] || holds "SIG$signal: the archive is removed before the program ends" \
        [ ! -e "$archive" ]
    holds "SIG$signal: no archive is left" gone
done

# Ctrl-C prints how far it got, and how to continue.
# stops WHAT REGEX COMMAND...
stops() {
    local what=$1 regex=$2
    shift 2
    gate device-1,kind=data,after=3
    (trap - INT
        exec "$PROGRAM" "$@" -j 1 "${gate[@]}" "$compressed" > "$WORK/out" 2> "$WORK/err") &
    program=$!
    at_gate
    kill -INT $program
    wait $program 2> /dev/null
    is "$what: status" $? 130
    holds "$what: $(cat "$WORK/err")" grep -qxE "btrfs-walk: interrupted: $regex" "$WORK/err"
}
stops extract '.*; repeat the command with --skip-existing to continue' extract -C "$WORK/new"
stops "extract again" '.*; repeat the command to continue' extract -C "$WORK/new" --skip-existing
stops sum '.*; the printed lines are valid; PATHs or --part select the rest' sum

# The processes of rescue end with it, also if they ask for that only after it has ended.
holds "a library is built" "${COMPILER[@]}" -shared -fPIC -o "$WORK/late.so" \
    "$ROOT/tests/support/late_prctl.c"
for words in "" --no-data --late; do
    preload=
    [ "$words" != --late ] || preload=$WORK/late.so words=
    LD_PRELOAD=$preload "$PROGRAM" rescue $words --extract "$WORK/saved" \
        --insert debug/delay-gen@device-1,kind=data,delay=1m "$compressed" \
        > "$WORK/out" 2> "$WORK/err" &
    program=$!
    started() { child=$(pgrep -P $program); }
    soon started
    kill -TERM $program
    wait $program 2> /dev/null
    ended() { ! kill -0 "$child"; }
    holds "a process of rescue $words ends with it" soon ended
done
(ulimit -f 8; "$PROGRAM" tar -f "$archive" "$compressed") > /dev/null 2> "$WORK/err"
holds "a file that may not get so large" gone
holds "a message says why" grep -q 'File too large$' "$WORK/err"
(ulimit -f 8; "$PROGRAM" extract -C "$WORK/small" "$compressed") 2> "$WORK/err"
is "files that may not get so large: status" $? 1
holds "they are named" grep -q '/[^ ]*: cannot write: File too large$' "$WORK/err"
holds "others are extracted" [ -n "$(find "$WORK/small" -type f)" ]
(ulimit -f 1; "$PROGRAM" roots --index "$archive" "$plain") > /dev/null 2> "$WORK/err"
holds "an index that may not get so large" gone

# A list fits below a limit that is less than the space which it reserves; tmpfs counts that space.
# In a file that may not have the entries, an error ends the list.
lists=$WORK/lists
[ "$(stat -f -c %T /dev/shm)" != tmpfs ] || lists=$(mktemp -d /dev/shm/lists.XXXXXX)
mkdir -p "$lists"
for kilobytes in 100 1; do
    (ulimit -f $kilobytes && exec "$PROGRAM" extract -q --manifest "$lists/$kilobytes" \
        -C "$WORK/files$kilobytes" "$plain" /docs/letters) 2> "$WORK/err"
    status=$?
    is "a list of at most $kilobytes KiB: status" $status $((kilobytes == 1))
done
holds "a list below its limit is complete" grep -q '"path"' "$lists/100"
holds "a list at its limit" grep -q "cannot write to .*: File too large" "$WORK/err"
rm -r "$lists"
expect "a picture" 0 - picture -f "$WORK/map.svg" "$plain"
holds "the picture is complete" grep -q '</svg>' "$WORK/map.svg"
finish
