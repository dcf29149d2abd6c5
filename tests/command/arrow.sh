#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --arrow: the streams of all commands, read by an own reader, and by Apache Arrow for JavaScript
# where it is installed, and compared with --json, value by value. ALL=1: all commands for all
# fixtures.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"
fixtures=$BUILD/fixtures
plain=$fixtures/plain/dev1.img
if ! have python3; then skip python3 "the streams of --arrow"; finish; fi

# same STATUS ARGUMENTS...: the rows of --arrow are those of --json. $counts: of rows and batches.
same() {
    local status=$1
    shift
    run_json "$@" --json > "$WORK/json" 2> "$WORK/err"
    timeout 60 "$PROGRAM" "$@" --arrow > "$WORK/arrow" 2> "$WORK/err2" < /dev/null
    is "status of $*" $? "$status"
    counts=$(python3 "$ROOT/tests/support/read_arrow.py" "$WORK/arrow" "$WORK/json" \
        2> "$WORK/why") && pass || fail "$*: $(tail -n 1 "$WORK/why")"
    holds "messages of $*" cmp "$WORK/err" "$WORK/err2"
}

# Files: names that are not UTF-8, all columns, some columns, sorted, none, damaged.
same 0 walk "$plain"
same 0 walk --type f,d,l --sort -size "$plain" -o size,path,user,flags,mtime
same 0 walk -o path_bytes "$fixtures/empty/dev1.img"
is "no files are no batch" "$counts" "0 0"
same 0 ls -laR "$plain"
same 1 walk "$fixtures/lost-leaf-inodes/dev1.img"
same 0 stat "$plain" / /top-file
same 0 sum "$plain"
same 0 dump "$fixtures/levels-3/dev1.img"
holds "several batches" [ "${counts% *}" -gt 2000 -a "${counts#* }" -gt 1 ]

# Other commands: records within records, UUIDs, truth values, keys, stripes.
for command in info devices chunks super usage space du fragmentation compression qgroups \
    subvolumes roots tree-stats log graph; do
    same 0 "$command" "$fixtures/snapshots-with-quotas/dev1.img"
done
for command in info devices chunks usage "owner 1M+64M"; do
    read -r command words <<< "$command"
    # shellcheck disable=SC2086 # words
    same 0 "$command" "$fixtures"/raid5-3/dev{1,2,3}.img $words
done
same 0 deleted "$fixtures/gone/dev1.img"
same 0 extents "$plain" /top-file
same 0 xlators

# Wrong uses.
for words in --header '--separator ,' '--times iso' --iec --json-header; do
    # shellcheck disable=SC2086 # words
    expect "--arrow $words" 2 'its own header and types' walk --arrow $words "$plain"
done
expect "--arrow and lines with NUL" 2 'its own header and types' walk -0 --arrow "$plain"
expect "--arrow and --json" 2 'exclude each other' info --arrow --json "$plain"
expect "--json and --arrow" 2 'exclude each other' info --json --arrow "$plain"
expect "--arrow and an unknown column" 2 'unknown column' walk --arrow -o none "$plain"
if have_terminal; then
    script -qec "$PROGRAM --arrow $plain" /dev/null > "$WORK/out" < /dev/null
    holds "not to a terminal" grep -q 'not written to a terminal' "$WORK/out"
fi

# Cell by cell, of all fixtures: each has its share of the commands, or ALL=1 all of them. If it is
# installed, the library of Apache Arrow for JavaScript reads the streams, too.
commands=(
    'walk --type f,d,l,c,b,p,s' 'walk -o path,user,group,extent_count,disk' 'ls -laR' 'stat /'
    'xattr -R /' 'sum --algorithm crc32c' deleted roots 'roots --trees' log info 'check --data'
    devices usage du space 'space --shared' free compression fragmentation qgroups
    'qgroups --status' subvolumes super chunks 'map 13631488+64M' 'owner 13631488+64M' tree-stats
    'tree-stats --items' 'dump -t root' 'dump -t extent' graph rescue
)
print_commands() {
    local fixture words number=0 step=61
    [ -z "${ALL:-}" ] || step=1
    for fixture in */about; do
        read_about "${fixture%/about}"
        for words in "${commands[@]}"; do
            number=$((number + 1))
            [ $((number % step)) -eq 0 ] || continue
            read -ra words <<< "$words"
            printf '%s\t' "${words[0]}" "${arguments[@]}"
            [ "${words[0]}" = super ] || printf '%s\t' "$image" "${devices[@]}" "${words[@]:1}"
            [ "${words[0]}" != super ] || printf '%s\t' "${files[@]}"
            echo
        done
    done | sed 's/\t$//'
}
reader=()
if have node && node -e 'require("apache-arrow")' 2> /dev/null; then
    reader=(node "$ROOT/tests/support/read_arrow.js")
else
    skip "apache-arrow for Node.js" "a comparison with Apache Arrow"
fi
print_commands > "$WORK/commands"
python3 "$ROOT/tests/support/compare_arrow.py" "$PROGRAM" "${reader[@]}" < "$WORK/commands" \
    > "$WORK/out" 2>&1
is "all cells are those of JSON" "$(head -n -1 "$WORK/out")" ""
holds "there are rows" [ "$(sed -n 's/.*, \([0-9]*\) rows$/\1/p' "$WORK/out")" -gt 1000 ]
finish
