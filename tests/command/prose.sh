#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The share of comments, documentation and strings that read like a translation. A ceiling only
# falls; scripts/prose --list shows the pieces that are counted.
set -uo pipefail
. "$(dirname "$0")/common.bash"
cd "$ROOT" || exit 1

# at_most TENTHS DESCRIPTION ARGUMENT...: tenths of a percent.
at_most() {
    local ceiling=$1 text
    text=$(scripts/prose "${@:3}") || { fail "scripts/prose ${*:3}"; return; }
    [[ $text =~ \(([0-9]+)\.([0-9])\ %\)$ ]] || { fail "$2: not a share: $text"; return; }
    if [ $((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]})) -le "$ceiling" ]; then
        pass
    else
        fail "$2: $text, more than $ceiling tenths of a percent"
    fi
}
at_most 12 "comments" . src include
at_most 39 "comments of tests" . tests
at_most 8 "documentation" --docs . docs README.md CONTRIBUTING.md src/README.md tests/README.md
at_most 3 "strings" --strings . src include
printf '%s\n' '/* What is told of it anew. */' '/* Reads the next superblock. */' > "$WORK/a.c"
is "scripts/prose counts the marked comment" "$(scripts/prose "$WORK" .)" '1 of 2 (50.0 %)'
holds "scripts/prose --list prints the marked comment" \
    grep -q '^a.c:1: .* What is told of it anew' <(scripts/prose --list "$WORK" .)
finish
