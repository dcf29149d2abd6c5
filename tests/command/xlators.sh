#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What there is to read about the layers and the commands: `btrfs-walk xlators`, the pages under docs/, the manual and the
# completions. All of it is made from the program's own tables; here it is compared with what they say now.
# shellcheck disable=SC2016 # backquotes are Markdown's
set -uo pipefail
. "$(dirname "$0")/common.bash"
# shellcheck disable=SC2153 # common.bash sets it
program=$PROGRAM
. "$ROOT/scripts/read-help.bash"
# Only what is built in: the machine may have other layers.
export BTRFS_WALK_XLATOR_PATH=

# holds DESCRIPTION COMMAND...: the command must succeed.
holds() {
    local what=$1
    shift
    if "$@" > "$WORK/holds" 2>&1; then pass; else fail "$what: $(head -n 2 "$WORK/holds")"; fi
}
# expect DESCRIPTION STATUS STDERR-REGEX ARGUMENTS...: runs `xlators`; '-' as expression: stderr must be empty.
expect() {
    local what=$1 want=$2 expression=$3 status
    shift 3
    timeout 60 "$PROGRAM" xlators "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null
    status=$?
    if [ "$status" -ne "$want" ]; then
        fail "$what: exit status $status, not $want: $(head -n 2 "$WORK/err")"
    elif [ "$expression" = - ] && [ -s "$WORK/err" ]; then
        fail "$what: unexpected on stderr: $(head -n 2 "$WORK/err")"
    elif [ "$expression" != - ] && ! grep -qE -- "$expression" "$WORK/err"; then
        fail "$what: stderr lacks '$expression': $(head -n 2 "$WORK/err")"
    else
        pass
    fi
}
out_has() { grep -qE -- "$1" "$WORK/out"; }

# The list.
expect "the list" 0 - --built-in
cp "$WORK/out" "$WORK/list"
types=$(sed 's/ .*//' "$WORK/list")
holds "the list is sorted" env LC_ALL=C sort -c "$WORK/list"
holds "each line is a type and a description" [ -z "$(grep -vE '^[a-z]+/[a-z0-9-]+ +[^ ]' "$WORK/list")" ]
columns=$(sed -E 's/^([^ ]+ +).*/\1/' "$WORK/list" | awk '{ print length($0) }' | sort -u | wc -l)
holds "the descriptions are aligned" [ "$columns" -eq 1 ]
expect "the list in Markdown" 0 - --built-in --format markdown
holds "it has links" out_has '^- \[storage/file\]\(storage-file\.md\): '

# The pages.
for type in $types; do
    expect "page of $type" 0 - "$type"
    head -n 1 "$WORK/out" > "$WORK/first"
    holds "$type: the first line is the description" grep -qE "^$type: [a-z]" "$WORK/first"
    prose=$(sed -e '1,2d' -e '/^Above it: /,$d' "$WORK/out" | wc -w)
    holds "$type: the page says what it does" [ "$prose" -ge 20 ]
    holds "$type: its place" out_has '^Above it: (device|logical|any) addresses\. Below it: '
    if out_has '^Options:$'; then
        # Two lines an option at least: what it does, then what it may be.
        bad=$(sed '1,/^Options:$/d' "$WORK/out" | awk '
            /^  [^ ]/ { if (name != "" && !facts) print name; name = $1; facts = 0; if (NF < 2) print name }
            /(; default |; must be given)/ { facts = 1 }
            END { if (name == "" || !facts) print name }')
        holds "$type: options with a description and their default: $bad" [ -z "$bad" ]
    else
        holds "$type: no options, and said so" out_has '^It has no options\.$'
    fi
    long=$(grep -v '^    ' "$WORK/out" | tail -n +2 | awk 'length($0) > 80' | head -n 1)
    holds "$type: lines of at most 80 columns: $long" [ -z "$long" ]
    # One page and one test a layer, called after it.
    file=${type/\//-}
    holds "docs/xlators/$file.md" [ -f "$ROOT/docs/xlators/$file.md" ]
    test=test_${file//-/_}.c
    holds "tests/unit/$test" [ -f "$ROOT/tests/unit/$test" ]
done
expect "two pages" 0 - storage/file features/verify
holds "the first and the second" [ "$(grep -cE '^(storage/file|features/verify): ' "$WORK/out")" -eq 2 ]
expect "an option and its range" 0 - performance/node-cache
holds "type, range and default" out_has '^ +size: 0 to 1T; default 6M$'
expect "an option without a default" 0 - storage/file
holds "must be given" out_has 'path; must be given'
expect "a page in Markdown" 0 - --format markdown performance/node-cache
holds "its table" out_has '^\| `size` \| size \| 6M \| 0 to 1T \| '
expect "the pages as a manual" 0 - --built-in --format man
holds "its title" out_has '^\.TH BTRFS'

# What goes wrong.
expect "an unknown type" 2 "unknown type no/such" no/such
holds "nothing on stdout" [ ! -s "$WORK/out" ]
holds "and a hint" grep -q "'btrfs-walk xlators' lists all types" "$WORK/err"
expect "an unknown type behind a good one" 2 "unknown type no/such" storage/file no/such
holds "nothing on stdout either" [ ! -s "$WORK/out" ]
expect "an unknown format" 2 'invalid argument of --format: html' --format html
"$PROGRAM" xlators > /dev/full 2> "$WORK/err"
status=$?
holds "a full disk is an error" [ "$status" -eq 1 ]
holds "and said so" grep -q 'cannot write to stdout' "$WORK/err"
(trap '' PIPE; "$PROGRAM" xlators; "$PROGRAM" xlators) 2> "$WORK/err" | true
holds "a closed pipe is quiet" [ ! -s "$WORK/err" ]
mkdir -p "$WORK/layers/toys"
echo "no shared object" > "$WORK/layers/toys/broken.so"
export BTRFS_WALK_XLATOR_PATH=$WORK/layers
expect "a shared object that cannot be used" 1 'toys/broken: cannot load a layer'
holds "the others are listed" out_has '^storage/file '
expect "and its page" 2 'cannot load a layer' toys/broken
expect "only what is built in" 0 - --built-in
holds "as before" cmp "$WORK/out" "$WORK/list"
export BTRFS_WALK_XLATOR_PATH=

# Special characters of each format, in a layer that consists of little else.
if command -v "${CC:-cc}" > /dev/null; then
    cat > "$WORK/odd.c" << 'LAYER'
#include <btrfs-walk/xlator.h>
static const struct bw_option options[] = {
    {.name = "mode", .type = BW_OPTION_STRING, .default_value = "a|b", .description = "one of a|b, <c> or *d*"},
    {.name = "empty", .type = BW_OPTION_STRING, .default_value = "", .description = "nothing"},
    {0}};
static const struct bw_xlator_class odd = {
    .type = "toys/odd",
    .description = "is odd",
    .page = ".TH is no request, 'nor is this, \\n no newline.\n# no heading\n- no list\n1. nor this\n    $ one | two  three\n.behind",
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options};
BW_XLATOR_EXPORT(odd);
LAYER
    rm "$WORK/layers/toys/broken.so"
    holds "a layer of special characters" "${CC:-cc}" -shared -fPIC -I"$ROOT/include" -o "$WORK/layers/toys/odd.so" "$WORK/odd.c"
    export BTRFS_WALK_XLATOR_PATH=$WORK/layers
    expect "it is listed" 0 -
    holds "with its description" out_has '^toys/odd +is odd$'
    expect "its page" 0 - toys/odd
    holds "prose as it is" out_has "^\.TH is no request, 'nor is this, .n no newline\. # no heading - no list 1\. nor\$"
    holds "the example as it is" out_has '^    \$ one \| two  three$'
    holds "an empty default" out_has 'string; default empty'
    expect "its page in Markdown" 0 - --format markdown toys/odd
    holds "table cells" out_has '^\| `mode` \| string \| a\\\|b \| any \| one of a\\\|b, \\<c\\> or \\\*d\\\* \|$'
    holds "no heading, no list" out_has ' \\# no heading \\- no list 1\\\. nor'
    expect "its page as a manual" 0 - --format man toys/odd
    holds "no request" out_has '^\\&\.TH is no request, \\\(aqnor is this, \\en no newline'
    holds "a line that begins with a full stop" out_has '^\\&\.behind$'
    export BTRFS_WALK_XLATOR_PATH=
else
    skip "special characters: no compiler"
fi

# What is committed is what the program makes now.
"$ROOT/scripts/make-manual" "$PROGRAM" "$WORK/docs"
if diff -r "$ROOT/docs/xlators" "$WORK/docs" > "$WORK/diff" 2>&1; then pass; else fail "docs/xlators is out of date, run 'make docs': $(head -n 5 "$WORK/diff")"; fi
: > "$WORK/docs/notes.md"
cp "$WORK/docs/storage-file.md" "$WORK/docs/storage-gone.md"
"$ROOT/scripts/make-manual" "$PROGRAM" "$WORK/docs"
holds "the page of a layer that is gone goes" [ ! -e "$WORK/docs/storage-gone.md" ]
holds "a page that was written by hand stays" [ -e "$WORK/docs/notes.md" ]

# The manual: every command, every option, every layer.
"$ROOT/scripts/make-manual" --man "$PROGRAM" "$WORK/man"
for page in btrfs-walk.1 btrfs-walk-xlators.7; do
    holds "$page is built" cmp "$BUILD/man/$page" "$WORK/man/$page"
done
plain() { sed -e 's/\\-/-/g' -e 's/\\f[BIR]//g' "$WORK/man/$1"; }
plain btrfs-walk.1 > "$WORK/page"
for command in $(command_names); do
    holds "the manual has $command" grep -qxF ".SS $command" "$WORK/page"
    while IFS=$'\t' read -r short name argument _; do
        line="--$name"
        [ "$short" = - ] || line="$short, $line"
        case $argument in -) ;; '['*) line=$line$argument ;; *) line="$line $argument" ;; esac
        holds "the manual has $command $line" grep -qxF -e "$line" "$WORK/page"
    done < <(options "$command")
    count=$("$PROGRAM" "$command" --help | sed -n '/^Options:/,/^$/p' | grep -cE '^ +-')
    holds "all options of $command were read from its help" [ "$(options "$command" | wc -l)" -eq "$count" ]
done
plain btrfs-walk-xlators.7 > "$WORK/page"
for type in $types; do
    holds "the manual has $type" grep -qxF ".SS $type" "$WORK/page"
    for option in $("$PROGRAM" xlators "$type" | sed -e '1,/^Options:$/d' | sed -nE 's/^  ([a-z][a-z0-9-]*) .*/\1/p'); do
        holds "the manual has option $option of $type" grep -qxF ".B $option" "$WORK/page"
    done
done
if command -v groff > /dev/null; then
    for page in btrfs-walk.1 btrfs-walk-xlators.7; do
        groff -man -Tutf8 -ww "$WORK/man/$page" 2>&1 > /dev/null | grep -v "can't break line" > "$WORK/warnings"
        holds "groff has no warnings for $page: $(head -n 1 "$WORK/warnings")" [ ! -s "$WORK/warnings" ]
    done
else
    skip "warnings of groff: it is not installed"
fi

# The completions, as bash calls them. completes LINE WORD...: each word is offered for the last one of the line.
"$ROOT/scripts/make-completions" "$PROGRAM" "$WORK/completions"
# shellcheck source=/dev/null
. "$WORK/completions/btrfs-walk.bash"
offered() {
    read -ra COMP_WORDS <<< "$1"
    [[ $1 != *' ' ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _btrfs_walk "$PROGRAM" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
}
completes() {
    local line=$1 word
    shift
    offered "$line"
    for word; do
        if printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$word"; then pass; else fail "completion of '$line' lacks $word: ${COMPREPLY[*]}"; fi
    done
}
offers_only() {
    local line=$1
    shift
    offered "$line"
    holds "completion of '$line': ${COMPREPLY[*]}" [ "${COMPREPLY[*]}" = "$*" ]
}
cd "$WORK" || exit 1
: > image.img
for command in $(command_names); do
    completes "btrfs-walk ${command:0:2}" "$command"
    completes "btrfs-walk $command --" --help --verbose
done
completes "btrfs-walk " walk xlators image.img
completes "btrfs-walk --" --print0 --summary
offers_only "btrfs-walk ima" image.img
offers_only "btrfs-walk --device ima" image.img
offers_only "btrfs-walk -j "
offers_only "btrfs-walk xlators --bu" --built-in
offers_only "btrfs-walk xlators --format " text markdown man
offers_only "btrfs-walk xlators --format = m" markdown man
offers_only "btrfs-walk --json = a" array
offers_only "btrfs-walk --json =" array
offers_only "btrfs-walk --json ima" image.img
# shellcheck disable=SC2086 # types are words
offers_only "btrfs-walk xlators " $types
offers_only "btrfs-walk xlators stor" storage/file
offers_only "btrfs-walk --insert features/v" features/verify@
offers_only "btrfs-walk image.img --insert features/v" features/verify@
for shell in zsh fish; do
    file=$WORK/completions/_btrfs-walk
    [ "$shell" = zsh ] || file=$WORK/completions/btrfs-walk.fish
    if command -v "$shell" > /dev/null; then
        holds "the completion for $shell is good syntax" "$shell" -n "$file"
    else
        skip "the completion for $shell: it is not installed"
    fi
done
finish
