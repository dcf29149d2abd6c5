#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One name for each kind of value, in all records: tests/data/vocabulary lists them.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "the names of members"; finish; fi

compare() { python3 "$ROOT/tests/data/vocabulary.py" "$1" < "$WORK/tables" > "$WORK/out" 2>&1; }

# refuses WHAT EDIT TEXT: with the tables, or the vocabulary, changed by sed, this is wrong.
refuses() {
    "$PROGRAM" --dump-tables | sed -E "$2" > "$WORK/tables"
    sed -E "$3" "$table" > "$WORK/vocabulary"
    holds "$1: compares" compare "$WORK/vocabulary"
    is "$1" "$(cat "$WORK/out")" "$4"
}

table=$ROOT/tests/data/vocabulary
"$PROGRAM" --dump-tables > "$WORK/tables"
holds "all records and the vocabulary" compare "$table"
is "all records use the vocabulary" "$(cat "$WORK/out")" ""

# What it is there for.
refuses "an unknown name" 's/"name": "stripe_length"/"name": "size_of_stripe"/' '' \
    'spaceinfo.size_of_stripe is not in the vocabulary
stripe_length is the name of no member'
refuses "a name of another type" '/"name": "acl"/,/"type"/s/"bytes"/"u64"/' '' \
    "$(printf '%s.acl is u64/name, but acl is access control list\n' fileinfo statinfo xattrinfo)"
refuses "a second name" '' 's/^(device id: .*) devid$/\1 devid number/' \
    'number is another name for devid: device id
number is the name of no member'
refuses "a second kind" '' 's/^(tree id: .*)$/\1\ndevice: u64\/number: devid/' \
    'devid has two kinds: device, device id'
finish
