#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --probe-list, and the scripts that watch probes.
set -uo pipefail
. "$(dirname "$0")/common.bash"

list() { "$PROGRAM" "--probe-list=$1" < /dev/null; }

# Output formats.
"$PROGRAM" --probe-list > "$WORK/names" 2> "$WORK/err"
holds "the list needs no image" [ $? -eq 0 ]
holds "--probe-list prints no message" [ ! -s "$WORK/err" ]
holds "--probe-list prints a name in each line" \
    [ -s "$WORK/names" -a -z "$(grep -vxE '[a-z]+(-[a-z]+)*' "$WORK/names")" ]
holds "no probe is listed twice" [ -z "$(sort "$WORK/names" | uniq -d)" ]
for style in long json bpftrace; do
    list "$style" > "$WORK/$style" 2> "$WORK/err"
    holds "style $style prints a list and no message" \
        [ $? -eq 0 -a -s "$WORK/$style" -a ! -s "$WORK/err" ]
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
holds "what a probe knows and what not" grep -qE \
    ' struct bw_imageinfo \*, arg1 size, arg2 index, arg3 error \(0\), .* \(0\)$' \
    "$WORK/long"
if have python3; then
    holds "style json is JSON" python3 -m json.tool "$WORK/json" "$WORK/pretty"
else
    skip python3 "whether the JSON is JSON"
fi

# Every probe is listed in every format, under both names.
while IFS= read -r name; do
    usdt=${name//-/__}
    holds "style long has $name" grep -qE "^$name: " "$WORK/long"
    holds "long has the USDT name of $name" grep -qxF "    USDT       btrfswalk:$usdt" "$WORK/long"
    holds "style json has $name" grep -qxF "      \"usdt\": \"$usdt\"," "$WORK/json"
done < "$WORK/names"

# The scripts use only existing probes, and are in the manual.
for script in "$ROOT"/scripts/bpftrace/*.bt; do
    name=$(basename "$script")
    used=$(sed -nE 's/^usdt:.*:btrfswalk:([a-z_]+)$/\1/p' "$script" | sed 's/__/-/g')
    holds "$name uses a probe" [ -n "$used" ]
    holds "$name watches what there is: $used" [ -z "$(grep -vxFf "$WORK/names" <<< "$used")" ]
    holds "$name says what it shows" grep -qE '^ \*     (@[a-z_]|[A-Z ]+$)' "$script"
    holds "$name is in the manual" grep -qxF "### $name" "$ROOT/docs/probes/README.md"
done
for script in perf-probes gdb-probes; do
    "$ROOT/scripts/$script" > /dev/null 2> "$WORK/err"
    holds "$script without arguments is wrong usage" [ $? -eq 2 -a -s "$WORK/err" ]
    holds "$script is in the manual" grep -qxF "### $script" "$ROOT/docs/probes/README.md"
done
finish
