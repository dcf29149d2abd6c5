#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `btrfs-walk xlators`: the list of the layers, and the page of each.
set -uo pipefail
. "$(dirname "$0")/common.bash"
# Only what is built in: the machine may have other layers.
export BTRFS_WALK_XLATOR_PATH=


# shows DESCRIPTION STATUS STDERR-REGEX ARGUMENTS...: `expect` for the xlators command.
shows() { expect "$1" "$2" "$3" xlators "${@:4}"; }

# The list.
shows "the list" 0 - --built-in
cp "$WORK/out" "$WORK/list"
types=$(sed 's/ .*//' "$WORK/list")
holds "the list is sorted" env LC_ALL=C sort -c "$WORK/list"
holds "each line is a type and a description" \
    [ -z "$(grep -vE '^[a-z]+/[a-z0-9-]+ +[^ ]' "$WORK/list")" ]
columns=$(sed -E 's/^([^ ]+ +).*/\1/' "$WORK/list" | awk '{ print length($0) }' | sort -u | wc -l)
holds "the descriptions are aligned" [ "$columns" -eq 1 ]

# The pages.
for type in $types; do
    shows "page of $type" 0 - "$type"
    head -n 1 "$WORK/out" > "$WORK/first"
    holds "$type: the first line is the description" grep -qE "^$type: [a-z]" "$WORK/first"
    prose=$(sed -e '1,2d' -e '/^Above it: /,$d' "$WORK/out" | wc -w)
    holds "$type: the page says what it does" [ "$prose" -ge 20 ]
    holds "$type: the page has the place of the layer" \
        out_has '^Above it: (device|logical|any) addresses\. Below it: '
    if out_has '^Options:$' > /dev/null; then
        # At least two lines per option: its description, and its values.
        bad=$(sed '1,/^Options:$/d' "$WORK/out" | awk '
            /^  [^ ]/ {
                if (name != "" && !facts) print name
                name = $1
                facts = 0
                if (NF < 2) print name
            }
            /(; default |; must be given)/ { facts = 1 }
            END { if (name == "" || !facts) print name }')
        holds "$type: options with a description and their default: $bad" [ -z "$bad" ]
    else
        holds "$type: no options, and said so" out_has '^It has no options\.$'
    fi
    long=$(grep -v '^    ' "$WORK/out" | tail -n +2 | awk 'length($0) > 80' | head -n 1)
    holds "$type: lines of at most 80 columns: $long" [ -z "$long" ]
    # One page and one test per layer, named after it.
    file=${type/\//-}
    holds "the page docs/xlators/$file.md exists" [ -f "$ROOT/docs/xlators/$file.md" ]
    test=test_${file//-/_}.c
    holds "the test tests/unit/xlators/$test exists" [ -f "$ROOT/tests/unit/xlators/$test" ]
done
shows "two pages" 0 - storage/file features/verify
holds "the first and the second" \
    [ "$(grep -cE '^(storage/file|features/verify): ' "$WORK/out")" -eq 2 ]
shows "an option and its range" 0 - performance/node-cache
holds "the page has type, range and default of an option" out_has '^ +size: 0 to 1T; default 6M$'
shows "an option without a default" 0 - storage/file
holds "the page marks an option that must be given" out_has 'path; must be given'

# Errors.
shows "an unknown type" 2 "unknown type no/such" no/such
holds "an unknown type prints nothing on stdout" [ ! -s "$WORK/out" ]
holds "the message names the list of layers" \
    grep -q "'btrfs-walk xlators' lists all types" "$WORK/err"
shows "a type without its category" 2 "unknown type verify" storage/file verify
holds "the type is suggested" grep -qx "Did you mean 'features/verify'?" "$WORK/err"
shows "a misspelt type" 2 "unknown type layout/luk" layout/luk
holds "the right one is suggested" grep -qx "Did you mean 'layout/luks'?" "$WORK/err"
shows "an unknown type behind a good one" 2 "unknown type no/such" storage/file no/such
holds "a good and an unknown type print nothing on stdout" [ ! -s "$WORK/out" ]
"$PROGRAM" xlators > /dev/full 2> "$WORK/err"
status=$?
holds "a full disk is an error" [ "$status" -eq 1 ]
holds "a full disk is reported" grep -q 'cannot write to stdout' "$WORK/err"
open_unread
(trap '' PIPE; exec "$PROGRAM" xlators) >&"$unread" 2> "$WORK/err"
is "a closed pipe ends the list, without a message" "$?$(cat "$WORK/err")" 141
mkdir -p "$WORK/layers/toys"
echo "no shared object" > "$WORK/layers/toys/broken.so"
export BTRFS_WALK_XLATOR_PATH=$WORK/layers
shows "a shared object that cannot be used" 1 'toys/broken: cannot load a layer'
holds "the other layers are listed" out_has '^storage/file '
shows "and its page" 2 'cannot load a layer' toys/broken
shows "only what is built in" 0 - --built-in
holds "--built-in ignores shared objects" cmp "$WORK/out" "$WORK/list"
export BTRFS_WALK_XLATOR_PATH=

# Special characters, in a layer that consists mostly of them.
if have "${COMPILER[0]}"; then
    cat > "$WORK/odd.c" << 'LAYER'
#include <btrfs-walk/graph.h>
static const struct bw_option options[] = {
    {.name = "mode", .type = BW_OPTION_STRING, .default_value = "a|b",
     .description = "one of a|b, <c> or *d*"},
    {.name = "empty", .type = BW_OPTION_STRING, .default_value = "", .description = "nothing"},
    {0}};
static const struct bw_xlator_class odd = {
    .type = "toys/odd",
    .description = "is odd",
    .page = ".TH is no request, 'nor is this, \\n no newline.\n# no heading\n"
            "- no list\n1. nor this\n    $ one | two  three\n.behind",
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options};
BW_XLATOR_EXPORT(odd);
LAYER
    rm "$WORK/layers/toys/broken.so"
    holds "a layer of special characters" "${COMPILER[@]}" -shared -fPIC -I"$ROOT/include" \
        -o "$WORK/layers/toys/odd.so" "$WORK/odd.c"
    export BTRFS_WALK_XLATOR_PATH=$WORK/layers
    shows "it is listed" 0 -
    holds "the list has the description of the layer" out_has '^toys/odd +is odd$'
    shows "its page" 0 - toys/odd
    holds "the page has the prose as it is" out_has \
        "^\.TH is no request, 'nor is this, .n no newline\. # no heading - no list 1\. nor\$"
    holds "the example as it is" out_has '^    \$ one \| two  three$'
    holds "the page names an empty default" out_has 'string; default empty'
    export BTRFS_WALK_XLATOR_PATH=
else
    skip "a compiler" "special characters"
fi
finish
