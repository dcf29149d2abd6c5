#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Walks every fixture and compares the paths, the exit status and the messages with what its `about`
# expects. Runs each with one thread and with three: the output must be the same, byte for byte.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"

check_fixture() {
    local name=$1 status
    read_about "$name"
    "$PROGRAM" -0 -j 3 "${arguments[@]}" "${files[@]}" > "$WORK/out" 2> "$WORK/err"
    status=$?
    "$PROGRAM" -0 -j 1 "${arguments[@]}" "${files[@]}" > "$WORK/out1" 2> /dev/null
    cmp -s "$WORK/out" "$WORK/out1" ||
        { fail "$name: output depends on the number of threads"; return; }
    if [ "$status" -ne "${about[exit]:-0}" ]; then
        fail "$name: exit status $status, not ${about[exit]:-0}: $(head -n 3 "$WORK/err")"
        return
    fi
    says "$name" "${expressions[@]}" || return
    list "$name/paths0" > "$WORK/want"
    LC_ALL=C sort -z "$WORK/out" > "$WORK/have"
    if [ "${about[subset]:-}" = yes ]; then
        LC_ALL=C comm -z -13 "$WORK/want" "$WORK/have" > "$WORK/extra"
        [ ! -s "$WORK/extra" ] || { fail "$name: paths that do not exist"; return; }
        if list "$name/at-least0" > "$WORK/least"; then
            LC_ALL=C comm -z -23 "$WORK/least" "$WORK/have" > "$WORK/lacking"
            [ ! -s "$WORK/lacking" ] || { fail "$name: paths are missing"; return; }
        fi
    elif ! cmp -s "$WORK/want" "$WORK/have"; then
        fail "$name: wrong paths ($(count "$WORK/have") of $(count "$WORK/want"))"
        return
    fi
    pass
}

for fixture in $(printf '%s\n' */about | sweep "${SWEEP:-1}"); do
    check_fixture "${fixture%/about}"
done
finish
