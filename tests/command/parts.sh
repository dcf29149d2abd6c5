#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --part: the parts of a listing, of hashes and of a check are complete and disjoint, for any
# number of parts.
set -uo pipefail
. "$(dirname "$0")/common.bash"
fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain levels-3 bad-copy-raid5 lost-leaf-directory \
    nodesize-4k snapshots-with-quotas big-directory || exit 1
plain=$fixtures/plain/dev1.img

# parts N ARGUMENTS...: the output of all N parts, and the sum of their exit statuses.
parts() {
    local count=$1 i
    shift
    : > "$WORK/out"
    for ((i = 1; i <= count; i++)); do
        timeout 60 "$PROGRAM" "$@" --part "$i/$count" >> "$WORK/out" 2>> "$WORK/err" < /dev/null
        status=$((status + $?))
    done
}

# same N ARGUMENTS...: the parts together have the lines of the whole, each once.
same() {
    status=0
    parts "$@"
    "$PROGRAM" "${@:2}" 2> /dev/null | sort > "$WORK/whole"
    holds "$*: the parts are complete and disjoint" diff <(sort "$WORK/out") "$WORK/whole"
}

for count in 1 2 3 7 64; do
    same "$count" walk --json "$plain"
    is "$count parts end with status 0" "$status" 0
done
same 5 walk --type f,d,l -o path,inode,size "$fixtures/levels-3/dev1.img"
holds "one part has less than half of the files" \
    [ "$("$PROGRAM" walk --part 1/5 "$fixtures/levels-3/dev1.img" |
    wc -l)" -lt "$(("$(wc -l < "$WORK/whole")" / 2))" ]
for count in 2 3; do
    same "$count" walk --type f,d,l --json "$fixtures/nodesize-4k/dev1.img"
done
same 4 walk --type f,d --json "$fixtures/snapshots-with-quotas/dev1.img"
same 3 walk --mindepth 1 --maxdepth 2 --type f,d --exclude 'd*' --sort size "$plain"
same 3 walk --nested no --type d --subvol 5 "$fixtures/snapshots-with-quotas/dev1.img"
same 3 sum "$plain"
same 3 walk "$fixtures/lost-leaf-directory/dev1.img"
holds "a part reports the damage" [ "$status" -ge 1 ]
# Many leaves and nodes are lost, so many names come from other items than those that were lost.
while read -r fixture rate seed; do
    same 2 walk --insert "debug/error-gen@verify,kind=tree-block,rate=$rate,seed=$seed" \
        "$fixtures/$fixture/dev1.img"
    holds "$fixture: damaged, but not empty" [ "$(wc -l < "$WORK/whole")" -gt 100 ]
done << 'END'
big-directory 15% 5
levels-3 15% 15
levels-3 30% 16
END
# The leaf with the inode of /source and its entry is lost, but not the entries below it.
expect "a directory without inode and entry" 1 'injected' walk --insert \
    "debug/error-gen@verify,kind=tree-block,rate=5%,seed=11" "$fixtures/nodesize-4k/dev1.img"
holds "files of a directory without inode and entry are listed" out_has '^/source/large.bin$'
same 3 ls -R -o path,inode,size "$plain"
same 3 ls -R --exclude 'd*' -o path "$plain" /

# A part of ls has the headings of its own entries.
parts 3 ls -aliR "$plain"
holds "ls: all lines of entries" diff <(grep -a '^ *[0-9]' "$WORK/out" | tr -s ' ' | sort) \
    <("$PROGRAM" ls -aliR "$plain" | grep -a '^ *[0-9]' | grep -av ' \.\{1,2\}$' | tr -s ' ' | sort)

# All names of an inode are in the same part.
for name in $("$PROGRAM" walk --links +1 -o inode "$plain" | sort -u); do
    found=0
    for i in 1 2 3 4 5; do
        "$PROGRAM" walk -o inode --part "$i/5" "$plain" | grep -qx "$name" && found=$((found + 1))
    done
    is "the names of inode $name" "$found" 1
done

# A bad mirror is found by one part, and the first one checks the metadata.
raid5=("$fixtures"/bad-copy-raid5/dev*.img)
for count in 2 64; do
    status=0
    parts "$count" check --data -o severity,code,logical "${raid5[@]}"
    holds "check: $count parts find the same" diff <(sort "$WORK/out") \
        <("$PROGRAM" check --data -o severity,code,logical "${raid5[@]}" 2> /dev/null | sort)
done

for words in 0/3 4/3 1/0 x/3 1 1/65537 1/3x -1/3; do
    expect "walk --part $words" 2 'allowed: 1/N to N/N' walk "--part=$words" "$plain"
    expect "check --part $words" 16 'allowed: 1/N to N/N' check --data "--part=$words" "$plain"
done
expect "ls without -R" 2 'need -R' ls --part 1/2 "$plain"
expect "check without --data" 16 'needs --data' check --part 1/2 "$plain"
expect "the option of before" 2 "was removed: use --part I/N" walk --shard 1/2 "$plain"
finish
