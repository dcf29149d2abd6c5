#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --resume: the outputs of interrupted runs, one after the other, are the output of one run.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/gate.bash"
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" deep plain bad-data bad-copy-dup || exit 1
deep=$fixtures/deep/dev1.img
plain=$fixtures/plain/dev1.img
token=
mkfifo "$WORK/pipe" || exit 1

# The token is empty if the run was complete before the signal arrived.
read_token() {
    token=$(grep -o -- '--resume 1\.[0-9a-f.]*' "$WORK/err" | cut -d' ' -f2)
}

# Ends the reader after a number of bytes. More than a pipe holds must follow.
by_pipe() {
    local bytes=$1
    shift
    "$PROGRAM" "$@" 2> "$WORK/err" < /dev/null | dd bs=1 "count=$bytes" 2> "$WORK/unused"
    read_token
}

# Sends a signal while the program waits for its reader, which reads the rest after the program has
# ended.
by_signal() {
    local bytes=$1 pid
    shift
    "$PROGRAM" "$@" > "$WORK/pipe" 2> "$WORK/err" < /dev/null &
    pid=$!
    {
        dd bs=1 "count=$bytes" 2> "$WORK/unused"
        kill -s "$signal" $pid 2> "$WORK/unused"
        wait "$pid" 2> "$WORK/unused"
        cat
    } < "$WORK/pipe"
    read_token
}

# continues NAME COMMAND ARGUMENTS...
continues() {
    local name=$1 command=$2 bytes
    shift 2
    "$PROGRAM" "$command" "$@" > "$WORK/whole" 2> "$WORK/unused"
    token=new
    for bytes in 1 997 3001; do
        by_pipe "$bytes" "$command" --resume "$token" "$@"
    done > "$WORK/out"
    holds "$name: a token" [ -n "$token" ]
    for signal in HUP TERM; do # bash starts jobs that ignore SIGINT
        [ -z "$token" ] || by_signal 500 "$command" --resume "$token" "$@"
    done >> "$WORK/out"
    status=0
    if [ -n "$token" ]; then
        "$PROGRAM" "$command" --resume "$token" "$@" >> "$WORK/out" 2> "$WORK/err"
        status=$?
    fi
    is "$name: status" "$status" 0
    holds "$name: complete, and nothing twice" cmp "$WORK/out" "$WORK/whole"
}

continues walk walk --json --type f,d,l "$deep"
continues "walk in order" walk --sort -inode -o inode,path --header -j1 "$deep"
continues "ls -R" ls -laR "$deep"
continues "sum" sum "$deep"
continues "sum --header" sum --json --json-header "$deep"

# Without --resume, a signal ends the program with a token, and a broken pipe without a word.
signal=TERM
token=
by_signal 10 walk --type d,f "$deep" > "$WORK/out"
holds "a token after a signal" [ -n "$token" ]
"$PROGRAM" walk --type d,f --resume "$token" "$deep" >> "$WORK/out"
holds "continues" cmp "$WORK/out" <("$PROGRAM" walk --type d,f "$deep")
expect "other options" 2 'other options' walk --type d --resume "$token" "$deep"
expect "another command" 2 'other options' sum --resume "$token" "$deep"
expect "another image" 2 'another file system' walk --type d,f --resume "$token" "$plain"
token=
by_pipe 10 walk --type d,f "$deep" > "$WORK/out"
is "no token" "$token" ''

# A signal may arrive before the output has reached the place of the token. Before the image is
# known, there is no token.
for reads in 0 30; do
    gate "chunk-map,after=$reads" # the token is only for a run with the same options
    open_gate
    by_pipe 1 walk -j1 "${gate[@]}" "$deep" --resume new > "$WORK/out"
    before=${token%.*}.100000000
    gate "chunk-map,after=$reads"
    "$PROGRAM" walk -j1 "${gate[@]}" "$deep" --resume "$before" > "$WORK/out" 2> "$WORK/err" &
    at_gate
    kill -s TERM $!
    wait $! 2> "$WORK/unused"
    read_token
    if [ $reads -eq 0 ]; then before=; fi
    is "after $reads reads: the same place" "$token" "$before"
done

# Whole files are left out, not hashed again: only the rest of the output is made.
by_pipe 40000 sum --resume new "$deep" > "$WORK/out"
holds "units" [ "$(cut -d. -f5 <<< "$token")" -gt 3 ]

# A check continues after the last step, and prints further findings only; a bad range that crosses
# the place becomes two. Each run stops after some reads, and is ended there.
stepped=(check --data --all --json --step 4K -j 1)
cat > "$WORK/sectors.py" << 'END'
import json, sys
for line in sys.stdin:
    one = json.loads(line)
    for sector in range(one.get("length", 4096) // 4096):
        print(one["code"], one.get("copy"), one.get("logical", 0) + 4096 * sector)
END
check_continues() {
    local image=$1 reads=10 run token='' tokens=0
    "$PROGRAM" "${stepped[@]}" "$image" 2> "$WORK/unused" | python3 "$WORK/sectors.py" |
        sort > "$WORK/whole"
    for ((run = 0; run < 100; run++)); do
        gate "chunk-map,kind=raw,after=$reads"
        "$PROGRAM" "${stepped[@]}" "$image" "${gate[@]}" ${token:+--resume "$token"} \
            > "$WORK/part" 2> "$WORK/err" &
        if comes_to_gate; then kill -s TERM $!; fi
        open_gate
        wait $! 2> "$WORK/unused"
        read_token
        # Before the first step there is no token: the next check begins again, and goes further.
        if [ -n "$token" ]; then tokens=$((tokens + 1)); else reads=$((reads + 10)); fi
        if [ -n "$token" ] || ! grep -q 'not finished' "$WORK/err"; then cat "$WORK/part"; fi
        grep -q 'not finished' "$WORK/err" || break
    done > "$WORK/parts"
    python3 "$WORK/sectors.py" < "$WORK/parts" | sort > "$WORK/out"
    holds "check: $tokens tokens in $run runs" [ "$tokens" -gt 0 ]
    holds "check: complete, and nothing twice" cmp "$WORK/out" "$WORK/whole"
}
if have python3; then
    check_continues "$fixtures/bad-data/dev1.img"
    check_continues "$fixtures/bad-copy-dup/dev1.img"
else
    skip python3 "checks that are continued"
fi
expect "--step without --data" 16 'needs --data' check --step 4K "$plain"

for word in x 1. 1.00 '1.0123456789abcdef0123456789abcdef.1.1.1' \
    '1.0123456789abcdef0123456789abcdef.1.1.1.1x'; do
    expect "not a token: $word" 2 'token' walk --resume "$word" "$plain"
done
for word in x 1. "$token"; do
    expect "check: $word" 16 'token|option' check --data --resume "$word" "$plain"
done
expect "check without --data" 16 'needs --data' check --resume new "$plain"
expect "check: new" 0 '' check --data --resume new "$plain"
expect "with --arrow" 2 'excludes' walk --arrow --resume new "$plain"
expect "sum --tree" 2 'excludes' sum --tree --resume new "$plain"
finish
