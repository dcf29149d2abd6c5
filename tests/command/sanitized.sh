#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# metadump --sanitize: markers in all names, values, contents, labels, reserved and free bytes of
# images, healthy and damaged, are not in the metadump; and `check` finds in it what it finds in the
# image.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"
if ! have python3; then skip python3 "markers in sanitized metadumps"; finish; fi

names=(log-tree verity)
more=(lost-leaf-directory subvolumes quota relocation rootdir-shrink raid10-4)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain "${names[@]}" "${more[@]}" || exit 1
cd "$WORK" || exit 1
fixtures=$BUILD/fixtures
plant() { python3 -B "$ROOT/tests/support/plant_markers.py" "$@"; }

for name in "${names[@]}"; do
    is "$name: the metadump has no marker" \
        "$(plant check "$PROGRAM" "$fixtures/$name"/dev*.img 2>&1)" ""
done
is "no marker at a random place" \
    "$(plant sprays "$PROGRAM" 6 1 "$fixtures/log-tree/dev1.img" 2>&1)" ""

# codes IMAGE...: the codes of the findings, and how many there are of each.
codes() { run_json check --json "$@" 2> /dev/null | grep -o '"code":"[^"]*"' | sort | uniq -c; }
for name in "${names[@]}" "${more[@]}"; do
    "$PROGRAM" metadump --checksums -f "$name.plain" "$fixtures/$name"/dev*.img > /dev/null 2>&1
    "$PROGRAM" metadump --checksums --sanitize -f "$name.bti" "$fixtures/$name"/dev*.img \
        > /dev/null 2>&1
    holds "$name: check finds something in the metadump" grep -q metadump <(codes "$name.bti")
    is "$name: check finds the same" "$(codes "$name.bti")" "$(codes "$name.plain")"
done

# Damage that `check` finds in the image is found in the metadump, too.
while read -r code command; do
    cp --sparse=always "$fixtures/plain/dev1.img" bad.img
    # shellcheck disable=SC2086
    holds "$code: the item is changed" change bad.img $command
    "$PROGRAM" metadump --sanitize -f bad.bti bad.img > /dev/null 2>&1
    holds "$code: check finds the damage in the image" grep -q "\"$code\"" <(codes bad.img)
    holds "$code: check finds the damage in the metadump" grep -q "\"$code\"" <(codes bad.bti)
done << 'END'
inode-item 5 257 1 0 set 0 8 1311768467294899695
inode-item 5 257 1 0 set 52 4 4294901760
link-count 5 262 1 0 set 40 4 77
END
finish
