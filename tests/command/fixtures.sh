#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Walks every fixture and compares the paths, the exit status and the messages with what its `about`
# expects. Runs each with one thread and with three: the output must be the same, byte for byte.
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" || exit 1

# The value of a line of `about`, or nothing.
about() { sed -n "s/^$2: *//p" "$ROOT/fixtures/$1/about"; }

# A sorted list of a fixture, packed or not.
list() {
    if [ -e "$ROOT/fixtures/$1/$2" ]; then
        cat "$ROOT/fixtures/$1/$2"
    else
        zstd -q -d -c "$ROOT/fixtures/$1/$2.zst"
    fi
}

has_list() { [ -e "$ROOT/fixtures/$1/$2" ] || [ -e "$ROOT/fixtures/$1/$2.zst" ]; }

devices() {
    local folder=$1 missing=" $2 " device number
    for device in $(ls "$images/$folder"/dev*.img | sort -V); do
        number=${device##*/dev}
        number=${number%.img}
        [[ $missing == *" $number "* ]] || printf '%s\n' "$device"
    done
}

check_fixture() {
    local name=$1 folder expected status files
    folder=$(about "$name" devices-from)
    mapfile -t files < <(devices "${folder:-$name}" "$(about "$name" missing | tr '\n' ' ')")
    expected=$(about "$name" exit)
    # shellcheck disable=SC2046 # several arguments
    "$PROGRAM" -0 -j 3 $(about "$name" args) "${files[@]}" > "$WORK/out" 2> "$WORK/err"
    status=$?
    # shellcheck disable=SC2046
    "$PROGRAM" -0 -j 1 $(about "$name" args) "${files[@]}" > "$WORK/out1" 2> /dev/null
    cmp -s "$WORK/out" "$WORK/out1" ||
        { fail "$name: output depends on the number of threads"; return; }
    [ "$status" = "${expected:-0}" ] ||
        { fail "$name: exit status $status, not ${expected:-0}: $(head -n 3 "$WORK/err")"; return; }
    while read -r expression; do
        grep -qiE -- "$expression" "$WORK/err" ||
            { fail "$name: stderr lacks '$expression': $(head -n 3 "$WORK/err")"; return; }
    done < <(about "$name" stderr)
    list "$name" paths0 > "$WORK/want"
    LC_ALL=C sort -z "$WORK/out" > "$WORK/have"
    if [ "$(about "$name" subset)" = yes ]; then
        LC_ALL=C comm -z -13 "$WORK/want" "$WORK/have" > "$WORK/extra"
        [ ! -s "$WORK/extra" ] || { fail "$name: paths that do not exist"; return; }
        if has_list "$name" at-least0; then
            list "$name" at-least0 | LC_ALL=C comm -z -23 - "$WORK/have" > "$WORK/lacking"
            [ ! -s "$WORK/lacking" ] || { fail "$name: paths are missing"; return; }
        fi
    else
        cmp -s "$WORK/want" "$WORK/have" ||
            { fail "$name: wrong paths ($(tr -cd '\0' < "$WORK/have" | wc -c) of $(tr -cd ''\
'\0' < "$WORK/want" | wc -c))"; return; }
    fi
    pass "$name"
}

for fixture in "$ROOT"/fixtures/*/about; do
    check_fixture "$(basename "$(dirname "$fixture")")"
done
finish
