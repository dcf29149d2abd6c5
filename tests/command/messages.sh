#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Messages about damaged images: of all fixtures that cause any. A message has at most 160 columns
# without its path; damage to many blocks is reported as a few examples and a count.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"

# short WHAT: whether all messages in $WORK/err fit, without the image and the path of a file.
short() {
    local long
    long=$(sed -E -e "s,$images/[^ :]*(: )?,,g" -e "s,$WORK/image: ,," \
        -e 's,^btrfs-walk: /[^:]*: ,btrfs-walk: ,' \
        "$WORK/err" | grep -E '.{161}')
    if [ -z "$long" ]; then pass; else fail "$1: more than 160 columns: $long"; fi
}

all_commands() {
    local name=$1 command status
    read_about "$name"
    [ "${about[exit]:-0}${about[sum-exit]:-0}${expressions[*]:-}" != 00 ] || return
    for command in walk 'ls -R' check sum 'tar -f /dev/null' du info; do
        # shellcheck disable=SC2086 # a command and its options
        timeout 60 "$PROGRAM" $command "${arguments[@]}" "${devices[@]}" "$image" \
            > /dev/null 2> "$WORK/err"
        status=$?
        # Statuses that the manual lists; 124 is a time-out, and above 128 lie signals.
        holds "$name: $command ends by itself, with status $status" [ "$status" -le 15 ]
        short "$name: $command"
    done
}
for fixture in $(printf '%s\n' */about | sweep 3); do
    all_commands "${fixture%/about}"
done

# Colours: on a terminal, and where they are requested.
damaged=$images/lost-leaf-first/dev1.img
escape=$'\033'
"$ROOT/scripts/unpack-fixtures" "$images" lost-leaf-first || exit 1
colors() { [ "$(env -u NO_COLOR "$@" 2>&1 < /dev/null | grep -cE "$escape\[[0-9;]*m")" -gt 0 ]; }
plain() { ! colors "$@"; }
for command in check rescue walk; do
    holds "$command --color" colors "$PROGRAM" "$command" --color "$damaged"
    holds "$command: none in a pipe" plain "$PROGRAM" "$command" "$damaged"
    if have_terminal; then
        holds "$command: on a terminal" \
            colors script -qec "'$PROGRAM' $command '$damaged'" /dev/null
        holds "$command: not with never" \
            plain script -qec "'$PROGRAM' $command --color=never '$damaged'" /dev/null
        holds "$command: not with NO_COLOR" \
            plain script -qec "NO_COLOR=1 '$PROGRAM' $command '$damaged'" /dev/null
    fi
done
printf 'BTRFS: open_ctree failed\n' > "$WORK/log"
holds "rescue --dmesg" colors "$PROGRAM" rescue --color --dmesg "$WORK/log" "$damaged"

# Every leaf of a large directory is lost, and cannot be found by its inodes any more.
have python3 || { skip python3 "many lost blocks"; finish; }
cp --sparse=always "$images/levels-3/dev1.img" "$WORK/image"
"$PROGRAM" check --all "$WORK/image" > /dev/null 2>&1
"$PROGRAM" dump --tree fs "$WORK/image" 2> /dev/null | sed -n 's/^leaf \([0-9]*\) .*/\1/p' |
    sed -n '1~3p' > "$WORK/leaves"
xargs "$PROGRAM" map -o offset "$WORK/image" < "$WORK/leaves" 2> /dev/null | python3 -c 'import sys
with open(sys.argv[1], "r+b") as image:
    for line in sys.stdin:
        image.seek(int(line))
        image.write(b"nonsense")' "$WORK/image"
lost=$(wc -l < "$WORK/leaves")
holds "more than 20 leaves are lost" [ "$lost" -gt 20 ]
"$PROGRAM" "$WORK/image" > /dev/null 2> "$WORK/err"
is "the status of a walk that misses leaves" $? 1
is "one message is an example of lost leaves" \
    "$(grep -c '^btrfs-walk: damage: .*tree block .*checksum mismatch' "$WORK/err")" 1
holds "a message counts the lost leaves" grep -qE \
    "^btrfs-walk: $((lost - 1)) more like 'tree block N of subvolume N .*' \(-v prints all\)$" \
    "$WORK/err"
short "many lost blocks"
"$PROGRAM" -v "$WORK/image" > /dev/null 2> "$WORK/err"
is "all of them with -v" \
    "$(grep -c '^btrfs-walk: damage: .*tree block .*checksum mismatch' "$WORK/err")" "$lost"
"$PROGRAM" -q "$WORK/image" > /dev/null 2> "$WORK/err"
is "the same status with -q" $? 1
is "-q prints no messages" "$(cat "$WORK/err")" ''
finish
