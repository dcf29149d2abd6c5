#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --probe-list, and what is made from it: the header of the records, the offsets that must not change, docs/probes, the
# header and scripts for bpftrace, the manual page.
set -uo pipefail
. "$(dirname "$0")/common.bash"

# holds DESCRIPTION COMMAND...: the command must succeed.
holds() {
    local what=$1
    shift
    if "$@" > "$WORK/holds" 2>&1; then pass; else fail "$what: $(head -n 3 "$WORK/holds")"; fi
}
list() { "$PROGRAM" "--probe-list=$1" < /dev/null; }

# The styles.
"$PROGRAM" --probe-list > "$WORK/names" 2> "$WORK/err"
holds "the list needs no image" [ $? -eq 0 ]
holds "nothing on stderr" [ ! -s "$WORK/err" ]
holds "a name a line" [ -s "$WORK/names" -a -z "$(grep -vxE '[a-z]+(-[a-z]+)*' "$WORK/names")" ]
holds "no name twice" [ -z "$(sort "$WORK/names" | uniq -d)" ]
for style in long json bpftrace c d markdown man offsets; do
    list "$style" > "$WORK/$style" 2> "$WORK/err"
    holds "style $style" [ $? -eq 0 -a -s "$WORK/$style" -a ! -s "$WORK/err" ]
    list "$style" | cmp -s - "$WORK/$style"
    holds "style $style is the same each time" [ $? -eq 0 ]
done
list nothing > "$WORK/out" 2> "$WORK/err"
holds "an unknown style is wrong usage" [ $? -eq 2 -a ! -s "$WORK/out" ]
holds "it says which there are" grep -q 'json' "$WORK/err"
if [ -c /dev/full ]; then
    list long > /dev/full 2> "$WORK/err"
    holds "a full disk is noticed" [ $? -eq 1 -a -s "$WORK/err" ]
fi
if command -v python3 > /dev/null; then
    holds "the JSON is JSON" python3 -m json.tool "$WORK/json" "$WORK/pretty"
else
    skip "whether the JSON is JSON: no python3"
fi

# Every probe is in every style, under both names.
while IFS= read -r name; do
    usdt=${name//-/__}
    holds "long has $name" grep -qE "^$name: " "$WORK/long"
    holds "long has the USDT name of $name" grep -qxF "    USDT       btrfswalk:$usdt" "$WORK/long"
    holds "json has $name" grep -qxF "      \"usdt\": \"$usdt\"," "$WORK/json"
    holds "d has $name" grep -qE "^    probe $usdt\([a-z]+info_t \*record(, [a-z0-9_]+ \*?[a-z_]+){5}\);$" "$WORK/d"
    holds "markdown has $name" grep -qF "| \`$name\` | \`$usdt\` | " "$WORK/markdown"
    holds "man has $name" grep -qxF ".B ${name//-/\\-}" "$WORK/man"
done < "$WORK/names"
holds "d has no other" [ "$(grep -c '^    probe ' "$WORK/d")" -eq "$(wc -l < "$WORK/names")" ]
holds "d has five attributes" [ "$(grep -cE '^#pragma D attributes [A-Z][a-z]+/[A-Z][a-z]+/[A-Z][a-z]+ provider btrfswalk (provider|module|function|name|args)$' "$WORK/d")" -eq 5 ]

# The headers are C that needs nothing else, and have the offsets of the golden file.
golden=$ROOT/tests/data/records.offsets
if command -v "${CC:-cc}" > /dev/null; then
    for style in c bpftrace; do
        sed -n 's/^struct bw_\([a-z]*info\) {$/\1/p' "$WORK/$style" > "$WORK/structures"
        awk 'NR == FNR { known[$1]; next }
            $1 in known { printf "_Static_assert(__builtin_offsetof(struct bw_%s, %s) == %s, \"%s.%s\");\n", $1, $2, $3, $1, $2 }' \
            "$WORK/structures" "$golden" > "$WORK/asserts"
        cat "$WORK/$style" "$WORK/asserts" > "$WORK/$style.c"
        holds "style $style has structures" [ -s "$WORK/asserts" ]
        holds "style $style compiles, with the offsets of the golden file" \
            "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$ROOT/include" -fsyntax-only "$WORK/$style.c"
    done
    holds "bpftrace has no macros and no includes" [ "$(grep -c '^#' "$WORK/bpftrace")" -eq 0 ]
else
    skip "whether the headers compile: no compiler"
fi

# Records only grow: a line of the golden file that changes or vanishes is a break, one that is new must be added to it.
if diff "$golden" "$WORK/offsets" > "$WORK/diff" 2>&1; then
    pass
else
    fail "records are not those of tests/data/records.offsets; if they have only grown, run 'make docs': $(head -n 5 "$WORK/diff")"
fi

# What is committed is what the program makes now.
made=$WORK/made
holds "the files are made" "$ROOT/scripts/make-probe-files" "$PROGRAM" "$made"
for file in include/btrfs-walk/records.h docs/probes/README.md docs/probes/btrfs-walk.d scripts/bpftrace/btrfs-walk.bt.h \
    tests/data/records.offsets; do
    holds "$file is out of date, run 'make docs'" diff "$ROOT/$file" "$made/$file"
done
sed -i '/^blockinfo items /d' "$made/tests/data/records.offsets"
holds "a new member is added" "$ROOT/scripts/make-probe-files" "$PROGRAM" "$made"
holds "where it belongs" cmp "$golden" "$made/tests/data/records.offsets"
for edit in 's/^blockinfo logical 24 u64$/blockinfo logical 24 i64/' 's/^blockinfo copy .*$/&\nblockinfo gone 40 u64/' \
    '$s/.*/&\ngoneinfo call 0 u64/'; do
    sed "$edit" "$golden" > "$made/tests/data/records.offsets"
    cp "$made/tests/data/records.offsets" "$WORK/before"
    "$ROOT/scripts/make-probe-files" "$PROGRAM" "$made" 2> "$WORK/err"
    holds "a change is refused: $edit" [ $? -ne 0 -a -s "$WORK/err" ]
    holds "and nothing is written" cmp "$WORK/before" "$made/tests/data/records.offsets"
done

# The scripts watch probes that there are, and are in the manual.
for script in "$ROOT"/scripts/bpftrace/*.bt; do
    name=$(basename "$script")
    used=$(sed -nE 's/^usdt:.*:btrfswalk:([a-z_]+)$/\1/p' "$script" | sed 's/__/-/g')
    holds "$name watches something" [ -n "$used" ]
    holds "$name watches what there is: $used" [ -z "$(grep -vxFf "$WORK/names" <<< "$used")" ]
    holds "$name says what it shows" grep -qE '^ \*     (@[a-z_]|[A-Z ]+$)' "$script"
    holds "$name is in the manual" grep -qxF "### $name" "$ROOT/docs/probes/README.md"
done
for script in perf-probes gdb-probes; do
    "$ROOT/scripts/$script" > /dev/null 2> "$WORK/err"
    holds "$script without arguments is wrong usage" [ $? -eq 2 -a -s "$WORK/err" ]
    holds "$script is in the manual" grep -qxF "### $script" "$ROOT/docs/probes/README.md"
done

# The manual page.
page=btrfs-walk-probes.7
holds "the manual is made" "$ROOT/scripts/make-manual" --man "$PROGRAM" "$WORK/manual"
holds "$page is built" cmp "$BUILD/man/$page" "$WORK/manual/$page"
if command -v groff > /dev/null; then
    groff -man -Tutf8 -ww "$WORK/manual/$page" 2>&1 > /dev/null | grep -v "can't break line" > "$WORK/warnings"
    holds "groff has no warnings for $page: $(head -n 1 "$WORK/warnings")" [ ! -s "$WORK/warnings" ]
else
    skip "warnings of groff: it is not installed"
fi
finish
