#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The flight recorder: what --blackbox keeps of a run that is killed, crashes, or ends; what is
# printed of the last events when a signal ends the program; which files are refused; and damaged
# boxes.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/gate.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" default-subvolume || exit 1
image=$BUILD/fixtures/default-subvolume/dev1.img
export ASAN_OPTIONS=handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0
ulimit -c 0
stall=(--insert "debug/delay-gen@chunk-map,kind=tree-block,delay=1m")
box=$WORK/box

# ends_with STATUS DESCRIPTION COMMAND...: the exit status; output in $WORK/out, messages in
# $WORK/err.
ends_with() {
    local want=$1 what=$2 status
    shift 2
    command timeout $((600 * ${SLOWNESS:-1})) "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null &
    wait $! 2> /dev/null # the shell would report the signal on stderr
    status=$?
    without_emulator "$WORK/err"
    if [ "$status" -eq "$want" ]; then
        pass
    else
        fail "$what: exit status $status, not $want: $(head -n 2 "$WORK/err")"
    fi
}

# without_emulator FILE: removes the line that qemu-user adds when the program dies of a signal.
without_emulator() { sed -i '/^qemu: uncaught target signal/d' "$1"; }

# says WHAT REGEX FILE: the file must have a line that matches.
says() {
    if grep -qE -- "$2" "$3"; then pass; else fail "$1: no line with '$2': $(tail -n 2 "$3")"; fi
}

# lacks WHAT REGEX FILE: the file must have no line that matches.
lacks() {
    if grep -qE -- "$2" "$3"; then fail "$1: '$2' in $(tail -n 2 "$3")"; else pass; fi
}

# await: waits until the last event in the box matches $awaited.
has_come() { grep -q "$awaited" < <("$PROGRAM" blackbox --last 1 "$box" 2> /dev/null); }
await() { soon has_come || fail "the run does not come to '$awaited'"; }

# start ARGUMENTS...: runs the program until it stalls; $process is its process id.
start() {
    rm -f "$box"
    "$PROGRAM" --blackbox "$box" "${stall[@]}" "$@" "$image" > "$WORK/run.out" 2> "$WORK/run.err" \
        < /dev/null &
    process=$!
    await
}

# stop SIGNAL: sends the signal, if the program still runs; returns the exit status of the program.
stop() {
    grep -qx "$process" < <(jobs -rp) && kill "-$1" "$process"
    wait "$process" 2> /dev/null
    set -- $?
    without_emulator "$WORK/run.err"
    return "$1"
}

# A run that stalls, ended by each signal: the last event is the call that stalled.
awaited='fop-wind .*layer=delay-gen@chunk-map .*request_kind=tree-block '
for name in KILL TERM SEGV BUS ABRT ILL FPE; do
    number=$(kill -l "$name")
    start --probe '*'
    stop "$name"
    status=$?
    holds "SIG$name: the program ends with status $status" [ "$status" -eq $((128 + number)) ]
    ends_with 0 "SIG$name: its box" "$PROGRAM" blackbox "$box"
    tail -n 1 "$WORK/out" > "$WORK/last"
    says "SIG$name: the last event" "$awaited" "$WORK/last"
    says "SIG$name: the box has the opening of the image" \
        ' image-open .*device=.*dev1\.img size=[0-9]+ index=0$' "$WORK/out"
    says "SIG$name: the box has the reading of the superblock" ' super-read .*copy=0 ' "$WORK/out"
    says "SIG$name: the box has a chunk" ' chunk-add .*length=' "$WORK/out"
    case $name in
    KILL | TERM)
        says "SIG$name: whose box" "process $process, begun .* still running, or killed\$" \
            "$WORK/err"
        holds "SIG$name: the program prints nothing" [ ! -s "$WORK/run.err" ]
        ;;
    *)
        says "SIG$name: whose box" \
            "process $process, begun .*, died of SIG$name after [0-9.]+ seconds\$" "$WORK/err"
        says "SIG$name: a head line" "^btrfs-walk: died of SIG$name; the last events:\$" \
            "$WORK/run.err"
        holds "SIG$name: the program prints sixteen events" [ "$(wc -l < "$WORK/run.err")" -eq 17 ]
        sed '1d; s/^btrfs-walk: //' "$WORK/run.err" > "$WORK/said"
        holds "SIG$name: the same events on stderr and in the box" cmp \
            "$WORK/said" <(tail -n 16 "$WORK/out")
        ;;
    esac
done

# Without a file, and without --probe: coarse events, in memory.
: > "$WORK/run.err" # otherwise messages of the last run would be found here
"$PROGRAM" --probe fop-wind "${stall[@]}" "$image" > /dev/null 2> "$WORK/run.err" < /dev/null &
process=$!
soon grep -q 'layer=delay-gen' "$WORK/run.err"
stop SEGV
status=$?
holds "in memory: the program ends with status $status" [ "$status" -eq 139 ]
says "in memory: the image" '^btrfs-walk: +0\.[0-9]{9} [0-9]+ image-open .*dev1\.img size=' \
    "$WORK/run.err"
lacks "in memory: nothing fine" '^btrfs-walk: .* fop-' "$WORK/run.err"
awaited=chunk-add
start
stop KILL
ends_with 0 "coarse alone" "$PROGRAM" blackbox "$box"
says "coarse alone: the last event" 'chunk-add' <(tail -n 1 "$WORK/out")
lacks "coarse alone: nothing fine" fop- "$WORK/out"

# Crashes of the program itself, in the first thread and in others.
if "${COMPILER[@]}" -shared -fPIC -I"$ROOT/include" -o "$WORK/xlators/toys/crash.so" \
    "$ROOT/tests/plugin/crash.c" 2> "$WORK/log"; then
    pass
else
    fail "crash.c: $(head -n 3 "$WORK/log")"
fi
for entry in fault:SEGV:139 abort:ABRT:134 stack:SEGV:139; do
    IFS=: read -r way name want <<< "$entry"
    for call in 1 6; do
        [ "$way:$call" = stack:6 ] && continue # only the first thread has a signal stack
        rm -f "$box"
        ends_with "$want" "$way" env BTRFS_WALK_XLATOR_PATH="$WORK/xlators" "$PROGRAM" \
            --blackbox "$box" \
            --probe '*' --insert "toys/crash@verify,way=$way,call=$call" -j 4 "$image"
        says "$way: a head line" "^btrfs-walk: died of SIG$name; the last events:\$" "$WORK/err"
        says "$way: the last event" 'fop-wind .*layer=crash@verify ' <(tail -n 1 "$WORK/err")
        ends_with 0 "$way: its box" "$PROGRAM" blackbox --last 1 "$box"
        says "$way: the last event of the box" 'fop-wind .*layer=crash@verify ' "$WORK/out"
        says "$way: its end" ", died of SIG$name after" "$WORK/err"
    done
done

# A run that ends: the results are the same, and the box says so.
"$PROGRAM" -0 "$image" | sort -z > "$WORK/want"
rm -f "$box"
ends_with 0 "a good run" "$PROGRAM" -0 --blackbox "$box" --probe '*' "$image"
holds "a good run: the same list" cmp "$WORK/want" <(sort -z "$WORK/out")
holds "a good run prints no message" [ ! -s "$WORK/err" ]
ends_with 0 "its box" "$PROGRAM" blackbox "$box"
says "its box: the end" \
    'box: btrfs-walk [0-9.]+, process [0-9]+, begun [0-9]{4}-[0-9-]+ [0-9:]+ UTC, ended '\
'normally after [0-9]+\.[0-9]{9} seconds$' "$WORK/err"
holds "blackbox prints one line about the box" [ "$(wc -l < "$WORK/err")" -eq 1 ]
events=$(wc -l < "$WORK/out")
holds "the events of the box are in order" sort -c -k1,1n "$WORK/out"
ends_with 0 "quiet" "$PROGRAM" blackbox -q --last 3 "$box"
holds "blackbox -q prints no message" [ ! -s "$WORK/err" ]
holds "--last 3 prints three events" [ "$(wc -l < "$WORK/out")" -eq 3 ]
ends_with 0 "none" "$PROGRAM" blackbox --last 0 "$box"
holds "--last 0 prints no event" [ ! -s "$WORK/out" ]
ends_with 0 "more than there are" "$PROGRAM" blackbox --last 4000000000 "$box"
holds "a large --last prints all events" [ "$(wc -l < "$WORK/out")" -eq "$events" ]
ends_with 0 "JSON" "$PROGRAM" blackbox --json "$box"
holds "blackbox --json prints all events" \
    [ "$(grep -c '^{"number":[0-9]*,"probe":"[a-z-]*","time":[0-9]*,"thread":[0-9]*[,}].*}$' \
        "$WORK/out")" -eq "$events" ]
if have python3; then
    holds "each line of blackbox --json is JSON" python3 -c 'import json, sys
for number, line in enumerate(open(sys.argv[1]), 1): assert json.loads(line)["number"] == number' \
    "$WORK/out"
fi
ends_with 0 "from a pipe" sh -c 'cat "$1" | "$2" blackbox /dev/stdin' - "$box" "$PROGRAM"
holds "a box from a pipe has all events" [ "$(wc -l < "$WORK/out")" -eq "$events" ]
ends_with 1 "no room for the output" sh -c '"$1" blackbox "$2" > /dev/full' - "$PROGRAM" "$box"
ends_with 2 "an error" "$PROGRAM" -v --blackbox "$box" \
    --insert debug/error-gen@chunk-map "$image"
says "an error: what was before" 'block-retry' "$WORK/err"
ends_with 0 "an error: its box" "$PROGRAM" blackbox "$box"
says "an error: its message" ' error call=[0-9-]+ error=-[0-9]+ .*message="' "$WORK/out"

# Image names that are not valid text.
odd=$WORK/$'odd \xff\n\e[31m.img'
ln -s "$image" "$odd"
ends_with 0 "an odd name" "$PROGRAM" --blackbox "$box" "$odd"
ends_with 0 "an odd name in text" "$PROGRAM" blackbox "$box"
says "an odd name in text" 'image-open .* device="/.*odd \\377\\n\\033\[31m\.img" size=' "$WORK/out"
ends_with 0 "an odd name in JSON" "$PROGRAM" blackbox --json "$box"
says "an odd name in JSON" '"probe":"image-open",.*"device_bytes":"[A-Za-z0-9+/=]+"' "$WORK/out"

# The box is truncated to zero bytes while the program runs.
gate chunk-map,kind=tree-block
awaited='fop-wind .*layer=gate@chunk-map .*request_kind=tree-block ' stall=("${gate[@]}")
start --probe '*'
: > "$box"
open_gate
wait "$process" 2> /dev/null
status=$?
holds "emptied: the program ends with status $status" [ "$status" -eq $((128 + $(kill -l BUS))) ]
says "emptied: why" 'died of SIGBUS; the file of the black box was cut short$' "$WORK/run.err"
ends_with 2 "emptied: its box" "$PROGRAM" blackbox "$box"

# An image that shrinks while it is read: a read error, no signal.
cp --sparse=always "$image" "$WORK/shrinking.img"
rm -f "$box"
gate chunk-map,kind=tree-block
"$PROGRAM" --blackbox "$box" --probe '*' "${gate[@]}" "$WORK/shrinking.img" \
    > /dev/null 2> "$WORK/run.err" &
process=$!
at_gate
truncate -s 1M "$WORK/shrinking.img"
open_gate
wait "$process" 2> /dev/null
status=$?
holds "a shrinking image: status $status" [ $((status == 1 || status == 2)) -eq 1 ]
lacks "a shrinking image: no signal" SIGBUS "$WORK/run.err"
ends_with 0 "a shrinking image: its box" "$PROGRAM" blackbox "$box"
says "a shrinking image: the error" ' dev-read-done .*error=-[0-9]+' "$WORK/out"
says "a shrinking image: the end" 'ended normally' "$WORK/err"
rm "$WORK/shrinking.img"

# Files that are refused.
refused() { # DESCRIPTION REGEX FILE
    ends_with 2 "$1" "$PROGRAM" --blackbox "$3" "$image"
    says "$1" "$2" "$WORK/err"
    holds "$1: the program lists nothing" [ ! -s "$WORK/out" ]
}
before=$(cksum < "$image")
awaited=chunk-add stall=(--insert "debug/delay-gen@chunk-map,kind=tree-block,delay=1m")
start
refused "one box for two" 'is the black box of a running process' "$box"
stop KILL
ends_with 0 "and now it is free" "$PROGRAM" --blackbox "$box" "$image"
refused "the image" 'is an input' "$image"
ln -s "$image" "$WORK/link"
refused "a link to the image" 'is an input' "$WORK/link"
cp --sparse=always "$image" "$WORK/other.img"
refused "another image" 'contains a btrfs superblock' "$WORK/other.img"
holds "another image is as it was" cmp "$image" "$WORK/other.img"
rm "$WORK/other.img"
echo "my diary" > "$WORK/diary"
refused "some file" 'is neither empty nor a black box' "$WORK/diary"
holds "some file is as it was" grep -qx 'my diary' "$WORK/diary"
refused "a dash" 'needs a regular file, not -' -
refused "no name" 'invalid argument of --blackbox' ''
refused "a device" 'not a regular file' /dev/null
refused "a directory" 'not a regular file' "$WORK"
refused "a folder that is not there" 'cannot open .* for writing' "$WORK/nowhere/box"
mkfifo "$WORK/pipe"
refused "a pipe" 'not a regular file' "$WORK/pipe"
ends_with 2 "stdout" sh -c '"$1" --blackbox "$2" "$3" > "$2"' - "$PROGRAM" "$WORK/both" "$image"
says "stdout" 'stdout goes to .*both, which is the black box' "$WORK/err"
rm -f "$WORK/small"
ends_with 2 "no room" bash -c 'ulimit -f 100; "$1" --blackbox "$2" "$3"' - \
    "$PROGRAM" "$WORK/small" "$image"
says "no room" 'cannot make room' "$WORK/err"
holds "the image is as it was" [ "$before" = "$(cksum < "$image")" ]

# Files that are not valid boxes.
bad() { # DESCRIPTION REGEX FILE
    ends_with 2 "$1" "$PROGRAM" blackbox "$3"
    says "$1" "$2" "$WORK/err"
    holds "$1: blackbox shows nothing" [ ! -s "$WORK/out" ]
}
ends_with 2 "no file" "$PROGRAM" blackbox
ends_with 2 "two files" "$PROGRAM" blackbox "$box" "$box"
ends_with 2 "no number" "$PROGRAM" blackbox --last x "$box"
bad "nothing there" 'cannot open' "$WORK/nothing"
bad "a folder" 'cannot read' "$WORK"
bad "an endless one" 'not a black box' /dev/zero
bad "an image" 'not a black box' "$image"
bad "an empty one" 'not a black box' /dev/null
bad "a text" 'not a black box' "$WORK/diary"
ends_with 0 "a box" "$PROGRAM" --blackbox "$box" --probe '*' "$image"
size=$(stat -c %s "$box")
for length in 7 8 127 128 4095 4096 8191 8192 $((size - 1)); do
    head -c "$length" "$box" > "$WORK/short"
    bad "$length bytes" 'not a black box|ends within its header|is cut short: it has' "$WORK/short"
done
{ cat "$box"; echo; } > "$WORK/long"
bad "one more byte" 'the black box is damaged: it has' "$WORK/long"

# patch OFFSET BYTES: overwrites bytes in a copy of the box.
patch() {
    cp "$box" "$WORK/patched" && printf '%b' "$2" | dd of="$WORK/patched" bs=1 seek="$1" \
        conv=notrunc status=none
}
patch 8 '\x01'
bad "another version" 'has version 1, but only 2 is supported' "$WORK/patched"
patch 20 '\xff\xff\xff\xff'
bad "more slots" 'sizes in its header make no sense' "$WORK/patched"
patch 50 X
bad "another name" 'checksum' "$WORK/patched"
slots=$(od -An -t u4 -j 20 -N 4 "$box" | tr -d ' ')
first=$((size - 2048 * slots))
patch "$first" '\x01\x00\x00\x00\x00\x00\x00\x80'
ends_with 0 "a torn slot" "$PROGRAM" blackbox "$WORK/patched"
says "a torn slot" 'events not shown: 1 not complete$' "$WORK/err"
patch $((first + 2048)) '\x09\x00\x00\x00\x00\x00\x00\x00'
ends_with 0 "a damaged slot" "$PROGRAM" blackbox "$WORK/patched"
says "a damaged slot" 'events not shown: 1 damaged$' "$WORK/err"
patch "$first" '\x00\x00\x00\x00\x00\x00\x00\x00'
ends_with 0 "a lost event" "$PROGRAM" blackbox "$WORK/patched"
says "a lost event" 'events not shown: 1 lost to a slot' "$WORK/err"
printf -v later '\\x%02x' 1 $((slots >> 8 & 255)) $((slots >> 16)) 0 0 0 0 0
patch "$first" "$later"
ends_with 0 "an event of the next round" "$PROGRAM" blackbox --last 1 "$WORK/patched"
says "an event of the next round" 'events not shown: ' "$WORK/err"
says "an event of the next round" ' fop-wind ' "$WORK/out"
cp "$box" "$WORK/patched"
python3 - "$PROGRAM" "$WORK/patched" "$first" > "$WORK/rounds" << 'END'
import random, subprocess, sys
program, box, first = *sys.argv[1:3], int(sys.argv[3])
random.seed(1)
with open(box, "r+b", buffering=0) as file:
    good = file.read()
    for number in range(100):
        places = [first + random.randrange(32768) * 8 for _ in range(20)]
        for at in places:
            file.seek(at)
            file.write(bytes([random.randrange(256)]))
        done = subprocess.run([program, "blackbox", "--json", box], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=20)
        if done.returncode:
            print(number, done.returncode, done.stderr[:300])
        for at in places:
            file.seek(at)
            file.write(good[at:at + 1])
END
is "blackbox survives random bytes in slots" "$? $(cat "$WORK/rounds")" "0 "
finish
