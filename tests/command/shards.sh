#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --shard: the parts of a listing, of hashes and of a check are complete and disjoint, for any
# number of parts.
set -uo pipefail
. "$(dirname "$0")/common.bash"
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain levels-3 bad-copy-raid5 lost-leaf-directory ||
    exit 1
plain=$fixtures/plain/dev1.img

# parts N ARGUMENTS...: the output of all N parts, and the sum of their exit statuses.
parts() {
    local count=$1 i
    shift
    : > "$WORK/out"
    for ((i = 1; i <= count; i++)); do
        timeout 60 "$PROGRAM" "$@" --shard "$i/$count" >> "$WORK/out" 2>> "$WORK/err" < /dev/null
        status=$((status + $?))
    done
}

# same N ARGUMENTS...: the parts together have the lines of the whole, each once.
same() {
    status=0
    parts "$@"
    "$PROGRAM" "${@:2}" 2> /dev/null | sort > "$WORK/whole"
    holds "$*: complete and disjoint" diff <(sort "$WORK/out") "$WORK/whole"
}

for count in 1 2 3 7 64; do
    same "$count" walk --json "$plain"
    is "status of $count parts" "$status" 0
done
same 5 walk --type f,d,l -o path,inode,size "$fixtures/levels-3/dev1.img"
holds "several parts have files" [ "$("$PROGRAM" walk --shard 1/5 "$fixtures/levels-3/dev1.img" |
    wc -l)" -lt "$(("$(wc -l < "$WORK/whole")" / 2))" ]
same 3 sum "$plain"
same 3 walk "$fixtures/lost-leaf-directory/dev1.img"
is "each part reports damage" "$status" 3
parts 3 ls -i1R "$plain"
grep -o '^ *[0-9]* ' "$WORK/out" | sort -u > "$WORK/listed"
holds "ls: all inodes" diff "$WORK/listed" \
    <("$PROGRAM" ls -i1R "$plain" | grep -o '^ *[0-9]* ' | sort -u)

# A bad copy is found by one part, and the first one checks the metadata.
raid5=("$fixtures"/bad-copy-raid5/dev*.img)
for count in 2 64; do
    status=0
    parts "$count" check --data -o severity,code,logical "${raid5[@]}"
    holds "check: $count parts find the same" diff <(sort "$WORK/out") \
        <("$PROGRAM" check --data -o severity,code,logical "${raid5[@]}" 2> /dev/null | sort)
done

for words in 0/3 4/3 1/0 x/3 1 1/65537 1/3x -1/3; do
    expect "walk --shard $words" 2 'a shard is I/N, from 1/N to N/N' walk "--shard=$words" "$plain"
    expect "check --shard $words" 16 'allowed: 1/N to N/N' check --data "--shard=$words" "$plain"
done
expect "check without --data" 16 'needs --data' check --shard 1/2 "$plain"
finish
