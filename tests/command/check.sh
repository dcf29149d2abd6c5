#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The check command: findings as lines, columns and JSON, every exit status, reports for CI, the
# comparison with lists, signals, and outputs that cannot be written. What is found by which pass is
# tested elsewhere.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/gate.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain dup raid1-2 subvolumes log-tree \
    lost-tree-fs superblocks-gone || exit 1
plain=$BUILD/fixtures/plain/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
lost=$BUILD/fixtures/lost-tree-fs/dev1.img

# An image with one bad mirror of one tree block: the root of the filesystem tree.
half=$WORK/half.img
cp --sparse=always "$BUILD/fixtures/dup/dev1.img" "$half"
block=$("$PROGRAM" dump --tree fs "$half" | sed -n '2s/^[a-z]* \([0-9]*\) .*/\1/p')
offset=$(run_json map --json -o offset,mirror "$half" "$block" | python3 -c 'import json, sys
print(next(o["offset"] for o in map(json.loads, sys.stdin) if o["mirror"] == 2))')
printf 'XXXX' | dd of="$half" bs=1 seek=$((offset + 200)) conv=notrunc status=none

# Exit statuses, and which stream the output goes to.
expect "a healthy image" 0 \
    '^btrfs-walk: checked: [0-9]+ tree blocks; 0 errors, [0-9]+ warnings?, [0-9]+ notes?$' check \
    "$plain"
holds "a healthy image has no errors" [ "$(grep -c ^error "$WORK/out")" -eq 0 ]
expect "a quiet check" 0 - check -q "$plain"
expect "all devices" 0 '0 errors' check "$BUILD/fixtures/raid1-2/dev1.img" \
    "$BUILD/fixtures/raid1-2/dev2.img"
expect "a bad mirror" 4 '1 error +block-checksum .*\(repairable\)$' check "$half"
holds "a bad mirror has a line with its location" out_has \
    "^error block-checksum FS_TREE.*: .* \[logical $block, device 1 offset $offset, mirror 2, \
repairable\]$"
expect "a bad mirror is tolerated" 0 '1 error \(1 repairable\)' check --tolerate repairable "$half"
holds "a tolerated error is still printed" out_has '^error block-checksum '
expect "a lost tree" 4 '^ +[0-9]+ error' check --tolerate repairable "$lost"
expect "no such image" 8 'cannot open .*nowhere' check "$WORK/nowhere"
expect "no file system" 12 'not a btrfs file system' check \
    "$BUILD/fixtures/superblocks-gone/dev1.img"
expect "a foreign device" 8 'dev1.img is not used' check "$plain" "$subvolumes"
for usage in '' --no-such-option '--tolerate all x' '--report html=x x' '--report junit= x' \
    '--quick --data x' \
    '--subvol 5 x' '--log=replay x' '--json --separator : x' '-o nothing x' '-j many x' \
        "--insert nothing@x $plain"; do
    expect "usage: $usage" 16 '^btrfs-walk: ' check $usage
done
"$PROGRAM" check "$half" > /dev/full 2> "$WORK/err"
is "findings on a full disk" $? 12
"$PROGRAM" check --insert debug/delay-gen@device-1,delay=5ms "$half" > /dev/full 2> "$WORK/err"
is "and found before the last pass" $? 12
holds "a full disk is reported" grep -q 'cannot write to stdout' "$WORK/err"
"$PROGRAM" check --help > /dev/full 2> "$WORK/err"
is "help on a full disk" $? 8

# Warnings, when they set the exit status: a device is missing.
expect "warnings" 0 ' 0 errors, [1-9][0-9]* warning' check "$BUILD/fixtures/raid1-2/dev1.img"
expect "warnings that count" 4 ' 0 errors, [1-9][0-9]* warning' check --strict \
    "$BUILD/fixtures/raid1-2/dev1.img"

# Columns and JSON.
expect "findings in columns" 4 'error' check -o code,tree_name,logical,mirror,repairable "$half"
is "the columns of a bad mirror have its location" \
    "$(grep ^block "$WORK/out")" "block-checksum	FS_TREE	$block	2	1"
expect "findings as JSON" 4 'error' check --json "$half"
is "as a program reads it" "$(python3 -c 'import json, sys
for o in map(json.loads, sys.stdin):
    if o["severity"] == "error":
        print(*map(o.get, ("severity", "code", "pass", "tree", "logical", "length", "devid",
                           "offset", "mirror", "repairable")))' < "$WORK/out")" \
    "error block-checksum trees 5 $block 16384 1 $offset 2 True"
expect "an array without elements" 0 '0 errors' check --json=array --quick "$plain"
is "an array without findings is [ and ]" "$(cat "$WORK/out")" $'[\n]'

# Reports.
reports=(--report "junit=$WORK/junit")
# reported WHAT CODES: the codes that are failures in the report.
reported() {
    is "$1: the failures in the JUnit report are '$2'" \
        "$(python3 "$ROOT/tests/data/check-report.py" "$WORK/junit" 2>&1)" "$2"
    if have xmllint; then
        holds "$1: the schema of JUnit" xmllint --noout --schema "$ROOT/tests/data/junit.xsd" \
            "$WORK/junit"
    else
        skip xmllint "$1"
    fi
}
expect "reports of a bad copy" 4 'error' check "${reports[@]}" "$half"
reported "a failure" 'block-checksum:1'
expect "reports of what is tolerated" 0 'error' check --tolerate repairable "${reports[@]}" "$half"
reported "what is tolerated" ''
holds "what is tolerated is in JUnit" grep -q 'error block-checksum FS_TREE' "$WORK/junit"
expect "reports that are shorter than the ones before" 0 '0 errors' check --quick "${reports[@]}" \
    "$plain"
reported "nothing" ''
expect "reports of no file system" 12 'not a btrfs' check "${reports[@]}" \
    "$BUILD/fixtures/superblocks-gone/dev1.img"
holds "no file system: the passes that ran" grep -q 'testsuite name="superblocks"' "$WORK/junit"
expect "a report into the image" 16 'is an input' check --report "junit=$plain" "$plain"
"$PROGRAM" check --report junit=/dev/full "$plain" 2> "$WORK/err"
is "a report on a full disk" $? 8

# Lists: those that the program writes match the image.
list() { "$PROGRAM" "$@" > "$WORK/list" 2> "$WORK/err"; }
for image in "$plain" "$subvolumes" "$BUILD/fixtures/log-tree/dev1.img"; do
    for form in 'tar --format mtree' sum 'sum -0' 'sum --algorithm md5' 'sum --algorithm xxh64' \
        'sum --algorithm blake2b' 'sum --algorithm sha512'; do
        list $form "$image"
        expect "$form of $image" 0 ' 0 errors' check --manifest "$WORK/list" "$image"
    done
done
list sum --algorithm sha512 --name '0*.txt' "$plain"
sed -i '2,$s/^./0/' "$WORK/list"
expect "all but one have changed" 4 manifest-changed check --manifest "$WORK/list" "$plain"
holds "a wrong hash is reported with SHA-512" out_has 'sha512 is [0-9a-f]*, not 0'
sed 's/^./0/' "$WORK/list" > "$WORK/B2SUMS"
expect "all have" 4 manifest-changed check --manifest "$WORK/B2SUMS" "$plain"
list tar --format mtree --subvol 257 "$subvolumes"
expect "a subvolume" 0 ' 0 errors' check --manifest "$WORK/list" --subvol 257 "$subvolumes"
list sum --subvol home "$subvolumes"
expect "sums of a subvolume" 0 ' 0 errors' check --manifest "$WORK/list" --subvol home "$subvolumes"
sed -i 1d "$WORK/list"
expect "findings have whole paths" 4 'manifest-extra' check --manifest "$WORK/list" --subvol home \
    "$subvolumes"
holds "a file that is not in the list has its whole path" out_has 'manifest-extra.* /home/[a-z]'
list sum --subvol home --nested=yes "$subvolumes"
expect "with nested subvolumes" 0 ' 0 errors' check --manifest "$WORK/list" --subvol home \
    --nested=yes "$subvolumes"
expect "or not" 4 'manifest-missing' check --manifest "$WORK/list" --subvol home "$subvolumes"
holds "a missing file has its whole path" out_has 'manifest-missing.* /home/.*-inside/docs'
list tar --format mtree --subvol 257 "$subvolumes"
expect "but of nothing else" 4 'manifest-extra' check --manifest "$WORK/list" "$subvolumes"

# Differences from a list.
found() { expect "$1" "$2" "error" check -o code,paths,message --manifest "$WORK/list" "$plain"; }
list tar --format mtree "$plain"
cp "$WORK/list" "$WORK/good"
sed -i -e '/^\.\/top-file /d' -e 's|^\./empty type=dir mode=0755|./empty type=dir mode=0700|' \
    "$WORK/list"
printf './gone\\040file type=file\n./maybe type=file optional\n' >> "$WORK/list"
printf './also\\040gone type=file\n' >> "$WORK/list"
found "missing, extra, changed" 4
holds "counted: all entries but the optional one" grep -qF "btrfs-walk: compared: \
$(($(grep -c '^\.' "$WORK/list") - 1)) entries of $WORK/list; 3 differ (2 missing), \
1 file not in the list" "$WORK/err"
is "a line each reports the missing, extra and changed entries" \
    "$(grep ^manifest "$WORK/out" | LC_ALL=C sort)" \
    "manifest-changed	/empty	mode is 0755, not 0700
manifest-extra	/top-file	it is not in the list
manifest-missing	/also\\ gone	line $(grep -n '^./also' "$WORK/list" |
    cut -d: -f1) of the list has it
manifest-missing	/gone\\ file	line $(grep -n '^./gone' "$WORK/list" |
    cut -d: -f1) of the list has it"
for edit in 's/ uid=0 / uid=7 /' 's/ nlink=2 / nlink=3 /' 's/ time=/ time=1/' \
    's/ size=1/ size=21/' 's/ link=/ link=x/' \
    's/ type=file / type=fifo /' 's/ device=native,/ device=native,1/' \
        's/ sha256digest=[0-9a-f]/ sha256digest=g/;s/=g/=0/;s/=00/=01/' ; do
    sed "$edit" "$WORK/good" > "$WORK/list"
    ! cmp -s "$WORK/good" "$WORK/list" || fail "the list has nothing that $edit changes"
    found "changed: $edit" 4
    holds "$edit: entries are reported as changed" out_has '^manifest-changed'
    holds "$edit: no entry is missing or extra" \
        [ "$(grep -cE '^manifest-(missing|extra)' "$WORK/out")" -eq 0 ]
done
holds "the summary counts the hidden findings" \
    grep -qE '\([0-9]+ of them not shown; --all shows them\)' \
    "$WORK/err"
expect "all of them" 4 'manifest-changed' check --all -o code --manifest "$WORK/list" "$plain"
is "--all prints as many findings as the summary counts" \
    "$(grep -oE '[0-9]+ error +manifest-changed' "$WORK/err" | cut -d' ' -f1)" \
    "$(grep -c ^manifest-changed "$WORK/out")"
expect "reports of a list" 4 'manifest' check --all "${reports[@]}" --manifest "$WORK/list" "$plain"
reported "a list" manifest-changed:1

# Lists of other programs: indented, with /set, continued lines and other escapes.
cat > "$WORK/list" << 'END'
#mtree v2.0
# a comment
/set type=file uid=0 gid=0 mode=0644
. type=dir mode=0755
    docs type=dir mode=0755
        letters type=dir mode=0755 \
            nlink=9
            01.txt size=17 flags=none
        ..
    ..
    top-file uname=root
..
END
found "an indented list" 4
holds "what it has is as it says" [ -z \
    "$(grep -E '/top-file|01.txt|manifest-missing|manifest-changed' "$WORK/out")" ]
holds "a line names the keywords that were not compared" \
    grep -q 'not compared: flags,uname$' "$WORK/err"
for text in 'top-file colour=red' 'top-file mode=rwx' 'top-file type=folder' \
    'top-file sha256=abc' "$(printf '%064d' 0) x"; do
    printf '%s\n' "$text" > "$WORK/list"
    expect "no list: $text" 16 'list: line 1: ' check --manifest "$WORK/list" "$plain"
done
# With sanitizers, reading it takes five seconds, in the same buffer as a shorter list.
[ -n "${SWEEP:-}" ] ||
    expect "a device without an end" 16 'a list has at most 1 GiB' \
        check --manifest /dev/zero "$plain"
expect "a list that is not there" 8 'cannot open' check --manifest "$WORK/nowhere" "$plain"
expect "a subvolume that is not there" 16 'no subvolume' check --manifest "$WORK/good" --subvol \
    999 "$plain"

# Signals: the summary so far, complete reports, exit status 8.
for signal in INT TERM; do
    rm -f "$WORK/junit"
    gate device-1,kind=tree-block,after=3
    (trap - INT; exec "$PROGRAM" check "${reports[@]}" "${gate[@]}" "$plain") \
        > "$WORK/out" 2> "$WORK/err" &
    child=$!
    at_gate
    kill -$signal $child
    open_gate
    wait $child
    is "SIG$signal ends the check with status 8" $? 8
    holds "SIG$signal: a line says that the check is not finished" \
        grep -q '^btrfs-walk: not finished: ' "$WORK/err"
    reported "SIG$signal" ''
done

# On a terminal, progress is shown, and leaves nothing behind in the lines of findings.
if have_terminal; then
    script -qec "$PROGRAM check --insert debug/delay-gen@device-1,delay=8ms $half" /dev/null > \
        "$WORK/terminal" < /dev/null
    escape=$(printf '\033\\[')
    holds "on a terminal, findings begin their line, with a color" grep -qE \
        "^(.*$(printf '\r')${escape}K)?${escape}[0-9;]*merror${escape}0m block-checksum" \
        "$WORK/terminal"
else
    skip "script(1) on a pseudo-terminal" progress
fi
finish
