#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Counts the round trips of commands: the batches of reads that reach an image. On a server they
# take most of the time, so a lost batch is a lost speed-up; no clock is needed to notice it.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" gone laptop big-directory \
    root-tree-levels bad-data || exit 1

# trips FIXTURE ARGUMENT...: round trips of a command in one thread.
trips() {
    local image=$BUILD/fixtures/$1/dev1.img
    rm -f "$WORK/state"
    "$PROGRAM" "${@:2}" --statedump "$WORK/state" "$image" > "$WORK/out" 2> "$WORK/err"
    # The first layer is the image; the counters of other layers follow the next name.
    awk '/"calls"/ { sum += $2 } /"chunk-map"/ { exit } END { print sum + 0 }' "$WORK/state"
}

# at_most LIMIT FIXTURE ARGUMENT...
at_most() {
    local count
    count=$(trips "${@:2}")
    holds "${*:2}: at most $1 round trips, not $count" [ "$count" -gt 0 -a "$count" -le "$1" ]
}

# The blocks of single lookups stay in the cache, and roots are read once.
at_most 10 gone walk -j 1
at_most 20 root-tree-levels walk -j 1 # 222 subvolumes
at_most 20 root-tree-levels walk -j 1 --part 1/2
at_most 12 gone space -j 1
at_most 12 gone sum -j 1
at_most 55 laptop sum -j 1

# All copies of all backup roots are one batch.
at_most 20 gone check --quick
at_most 20 laptop check --quick
at_most 20 big-directory check --quick

# Every block of older generations is looked up once.
at_most 74 gone deleted -j 1
at_most 178 laptop deleted -j 1

# requests FIXTURE ARGUMENT...: requests that a server of the image gets. The program keeps tree
# blocks, so no block is requested twice. The server may write its statistics after it has returned.
requests() {
    rm -f "$WORK/stats"
    nbdkit -r -U - --filter=stats file "$BUILD/fixtures/$1/dev1.img" statsfile="$WORK/stats" \
        --run "\"\$PROGRAM\" $(printf '%q ' "${@:2}") \"\$uri\"" > "$WORK/out" 2> "$WORK/err"
    soon test -s "$WORK/stats"
    sed -n 's/^read: \([0-9]*\) ops.*/\1/p' "$WORK/stats"
}

# at_most_requests LIMIT FIXTURE ARGUMENT...
at_most_requests() {
    local count
    count=$(requests "${@:2}")
    holds "${*:2}: at most $1 requests, not $count" [ "${count:-0}" -gt 0 -a "$count" -le "$1" ]
}

if grep -q NBD=1 "$BUILD/features" && have nbdkit &&
    nbdkit --filter=stats --version > "$WORK/out"; then
    export PROGRAM
    at_most_requests 6 gone walk -j 1
    at_most_requests 8 gone space -j 1
    at_most_requests 16 laptop space -j 1
    at_most_requests 18 gone check --quick
    at_most_requests 30 laptop check --quick
    at_most_requests 20 gone roots
    at_most_requests 24 gone deleted -j 1
    holds "the rows of deleted are those of the file" cmp "$WORK/out" \
        <("$PROGRAM" deleted "$BUILD/fixtures/gone/dev1.img" 2> "$WORK/err")
    at_most_requests 56 laptop deleted -j 1 # 40 of them are for 40 MiB with old tree blocks
    at_most_requests 18 bad-data sum -j 1   # bad sectors are requested again once
else
    skip nbdkit "requests of servers"
fi

# Tests of attributes read the inodes of candidates only: one leaf instead of all.
bytes() {
    "$PROGRAM" -j 1 --summary "$@" "$BUILD/fixtures/big-directory/dev1.img" 2>&1 > "$WORK/out" |
        sed -n 's/.* \([0-9]*\) bytes of metadata read.*/\1/p'
}
all=$(bytes)
holds "a test of one candidate reads one leaf" \
    [ "$(bytes --name entry-1049 --size -1000000)" -le $((all + 4096)) ]
is "the candidate is listed" "$(cat "$WORK/out")" /big/entry-1049
holds "a test of all candidates reads more metadata" \
    [ "$(bytes --size -1000000)" -gt $((all + 4096)) ]

# The summary of a walk has the same number.
run_summary() {
    "$PROGRAM" -j 1 --summary "$@" 2>&1 > "$WORK/out" |
        sed -n 's/.* read, \([0-9]*\) round trips, .*/\1/p'
}
count=$(trips gone walk -j 1)
# The superblock is read once more after the summary.
is "round trips in the summary" "$(run_summary "$BUILD/fixtures/gone/dev1.img")" $((count - 1))

finish
