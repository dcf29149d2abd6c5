#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# check --save and --since: what is skipped, that the findings are those of a whole check, and when
# a baseline cannot be used.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" changes plain raid1-2 verity || exit 1
before=$BUILD/fixtures/changes/dev1.img
later=$BUILD/fixtures/changes/dev1-later.img
other=$BUILD/fixtures/changes/dev1-other.img

change() { python3 "$ROOT/tests/support/change_item.py" "$@"; }

# copy NAME [IMAGE]: a copy of an image, by default of the later one; sets `image`.
copy() {
    image=$WORK/$1.img
    cp --sparse=always "${2:-$later}" "$image"
}

# flip IMAGE PATH: changes the first byte of a file.
flip() {
    local offset byte
    offset=$("$PROGRAM" map -o offset "$1" "$("$PROGRAM" extents "$1" "$2" |
        awk '/ data / { print $5 + 0; exit }')")
    byte=$(od -An -tu1 -j "$offset" -N 1 "$1" | tr -d ' ')
    printf "\\x$(printf %x $((byte ^ 255)))" |
        dd of="$1" bs=1 seek="$offset" conv=notrunc status=none
}

# findings OPTION...: the findings of `image`, without the comparison with a baseline.
findings() {
    run_json check --json --all "$@" "$image" |
        python3 -c 'import json, sys
for row in map(json.loads, sys.stdin):
    if row.pop("since", None) != "gone" and row["code"] != "baseline-unused":
        print(json.dumps(row, sort_keys=True))' | sort
}

# skipped: how many tree blocks the last check has not read.
skipped() { sed -n 's/.*not read: \([0-9]*\) unchanged.*/\1/p' "$WORK/err"; }
checked() { sed -n 's/.*checked: \([0-9]*\) tree.*/\1/p' "$WORK/err"; }

# Only changes are read.
base=$WORK/base
expect "a baseline is saved" 0 'checked: .* 0 errors' check --data --save "$base" "$before"
all=$(checked)
expect "nothing has changed" 0 '0 new findings, 0 gone' check --data --since "$base" "$before"
holds "nearly nothing is read" [ "$(checked)" -lt $((all / 4)) ]
is "the rest is said not to be read" $(($(checked) + $(skipped))) "$all"
expect "no data are read" 0 'checked: [0-9]+ tree blocks;' check --data --since "$base" "$before"
expect "after changes" 0 '0 new findings, 0 gone' check --data --since "$base" "$later"
holds "unchanged blocks are skipped" [ "$(skipped)" -gt $((all / 2)) ]
holds "unchanged data are skipped" grep -q 'MiB of unchanged data; later damage' "$WORK/err"
holds "changed blocks are read" [ "$(checked)" -gt 20 ]
expect "a baseline of a check with a baseline" 0 '0 new' check --data --since "$base" \
    --save "$WORK/second" "$later"
expect "it knows everything" 0 '0 new' check --data --since "$WORK/second" "$later"
holds "it has the skipped blocks, too" [ "$(checked)" -lt $((all / 4)) ]
cp "$base" "$WORK/renewed"
expect "both options with the same file" 0 '0 new' check --data --since "$WORK/renewed" \
    --save "$WORK/renewed" "$later"
holds "the file is replaced" sh -c '! cmp -s "$1" "$2"' - "$WORK/renewed" "$base"

# New damage is found, in changed blocks and where changed blocks contradict unchanged ones.
inode=$("$PROGRAM" stat -o inode "$later" /files/new-later | tail -n 1 | tr -dc 0-9)
copy links
change "$image" 256 "$inode" 1 0 add 40 4 1 > "$WORK/log" || exit 1
expect "a wrong link count" 4 '1 new finding, 0 gone' check --since "$base" "$image"
holds "a new finding is marked" out_has '^new error link-count '
is "the findings of a whole check" "$(findings --since "$base")" "$(findings)"
expect "it is entered" 4 '1 error' check --save "$WORK/broken" "$image"
expect "the same finding again" 4 '0 new findings, 0 gone' check --since "$WORK/broken" "$image"
holds "an old finding is marked" out_has '^same error link-count '
expect "the finding is gone" 0 '0 new findings, 1 gone' check --since "$WORK/broken" "$later"
holds "it is printed, but is no error" out_has '^gone error link-count .*/files/new-later'

# again NAME IMAGE CODE CHANGE...: a finding that is compared with skipped leaves is found again.
again() {
    copy "$1" "$2"
    change "$image" "${@:4}" > "$WORK/log" || fail "$1: $(< "$WORK/log")"
    expect "$1: a baseline with the finding" 4 "" check --save "$WORK/again" "$image"
    expect "$1: the same again" 4 '0 new findings, 0 gone' check --since "$WORK/again" "$image"
    holds "$1: it is marked as found again" out_has "^same error $3 "
    holds "$1: leaves are skipped" [ "$(skipped)" -gt 0 ]
}
again "a reference" "$BUILD/fixtures/plain/dev1.img" reference-extra \
    2 13651968 168 4096 set 37 8 406
again "a Merkle tree" "$BUILD/fixtures/verity/dev1.img" verity-tree 5 284 37 0 add 8 1 1
is "as JSON" "$(run_json check --json --since "$WORK/broken" "$later" | python3 -c 'import json, sys
for row in map(json.loads, sys.stdin): print(row["code"], row["since"])')" "link-count gone"
holds "gone findings are no failures in a report" sh -c '"$1" check -q --report "junit=$2/xml" \
    --since "$2/broken" "$3" > /dev/null && ! grep -q link-count.*failure "$2/xml"' - \
    "$PROGRAM" "$WORK" "$later"

# number ADDRESS SIZE: of an extent item that only the later image has.
extent=$("$PROGRAM" extents "$later" /files/new-later | awk '/ data / { print $5 + 0; exit }')
copy references
change "$image" 2 "$extent" 168 - add 0 8 1 > "$WORK/log" || exit 1
expect "a wrong reference count" 4 'extent-count' check --since "$base" "$image"
is "its findings are those of a whole check" "$(findings --since "$base")" "$(findings)"
copy sums
sums=$("$PROGRAM" dump --tree csum "$later" |
    sed -n 's/.*EXTENT_CSUM EXTENT_CSUM \([0-9]*\)).*/\1/p')
for start in $sums; do
    change "$image" 7 -10 128 "$start" delete > "$WORK/log" 2>&1 && break
done
is "lost checksums of unchanged files" "$(findings --since "$base")" "$(findings)"
holds "they are findings" grep -q checksum-missing <(findings)

# Damage to the storage of unchanged blocks is not found: that is said.
copy rot
unchanged=$("$PROGRAM" stat -o inode "$later" /files/dir-7/file-9 | tail -n 1 | tr -dc 0-9)
change "$image" 256 "$unchanged" 1 0 add 40 4 1 > "$WORK/log" || exit 1
expect "a changed leaf with the old generation" 0 'damage to their storage is not found' \
    check --since "$base" "$image"
expect "a whole check finds it" 4 'link-count' check "$image"

# Unchanged leaves that other passes read: their items are not missing, but lost.
expect "a baseline of the same image" 0 - check -q --save "$WORK/same" "$later"
for tree in uuid fs; do
    copy "$tree"
    leaf=$("$PROGRAM" dump --tree $tree "$image" | awk '/^leaf/ { print $2; exit }')
    for offset in $("$PROGRAM" map -o offset "$image" "$leaf"); do
        printf damage | dd of="$image" bs=1 seek=$((offset + 2000)) conv=notrunc status=none
    done
    expect "a lost leaf of tree $tree" 4 'block-checksum' check --since "$WORK/same" "$image"
    is "$tree: the findings of a whole check" "$(findings --since "$WORK/same")" "$(findings)"
done

# Data: new ones, those that were bad, and all if they have not been read before.
copy data
flip "$image" /files/new-later
expect "damaged new data" 4 '1 new finding' check --data --since "$base" "$image"
copy old-data
flip "$image" /files/data-1
expect "damaged old data are not read" 0 'of unchanged data' check --data --since "$base" "$image"
expect "a baseline with damaged data" 4 'data-checksum' check --data --save "$WORK/bad" "$image"
expect "bad data are read again" 4 '0 new findings, 0 gone' check --data --since "$WORK/bad" \
    "$image"
holds "bad data are still the same finding" out_has '^same error data-checksum .*/files/data-1 '
expect "they are good again" 0 '0 new findings, [1-9] gone' check --data --since "$WORK/bad" \
    "$later"
expect "without --data nothing is known about them" 0 '0 new findings, 0 gone' \
    check --since "$WORK/bad" "$image"
expect "a baseline without data" 0 - check -q --save "$WORK/no-data" "$before"
expect "then all data are read" 4 'data-checksum' check --data --since "$WORK/no-data" "$image"

# Only what is newer than a generation.
expect "newer than a generation" 0 'of generation 8 and before; not compared' \
    check --since 8 "$later"
holds "it reads less" [ "$(checked)" -lt "$all" ]
image=$WORK/links.img
expect "a wrong link count needs all blocks" 0 'inodes' check --since 8 "$image"
image=$WORK/data.img
expect "new data" 4 'data-checksum' check --data --since 8 "$image"
expect "old data" 0 'and data of generation 8' check --data --since 8 "$WORK/old-data.img"
expect "everything is older" 0 '0 errors' check --data --since 1000 "$later"

# Baselines that cannot be used, and files that are none.
expect "another history" 0 '1 note' check --since "$WORK/second" "$other"
holds "another history is a note" \
    out_has 'baseline-unused: it is of another history of the file system: everything is checked'
expect "another file system" 0 '0 errors' check --since "$base" "$BUILD/fixtures/plain/dev1.img"
holds "another file system is a note" out_has 'baseline-unused: it is of another file system'
expect "a later baseline" 0 '0 errors' check --since "$WORK/second" "$before"
holds "a later baseline is a note" out_has 'baseline-unused: it is of a later generation'
expect "a baseline without all devices" 0 'checked' check --tolerate repairable \
    --save "$WORK/missing" "$BUILD/fixtures/raid1-2/dev1.img"
holds "it cannot be used, which is a note" \
    out_has 'baseline-unused: devices are missing: a check with the new baseline reads everything'
head -c 3000 "$base" > "$WORK/cut"
expect "a cut baseline" 16 'cut: its checksum does not match: it is damaged' check --since \
    "$WORK/cut" "$later"
{ printf 'bw baseline 001\n' && tail -c +17 "$base"; } > "$WORK/other"
expect "the baseline of another version" 16 'other: another version of btrfs-walk wrote' \
    check --since "$WORK/other" "$later"
expect "no baseline" 16 "is not the baseline of a check" check --since "$ROOT/README.md" "$later"
expect "no such file" 8 'nowhere' check --since "$WORK/nowhere" "$later"
expect "generation 0" 16 'no generation 0' check --since 0 "$later"
expect "a part" 16 'exclude' check --data --part 1/2 --save "$WORK/part" "$later"
expect "a quick check" 16 'exclude' check --quick --since "$base" "$later"
expect "a baseline of a part" 16 'needs a whole check' check --since 8 --save "$WORK/part" "$later"
cp "$base" "$WORK/kept"
head -c 128M /dev/zero > "$WORK/zeros"
expect "an unfinished check" 12 'not btrfs|not a btrfs' check --save "$WORK/kept" "$WORK/zeros"
holds "it keeps the file" cmp "$WORK/kept" "$base"
expect "a full disk" 8 'No space' check --save /dev/full "$later"

finish
