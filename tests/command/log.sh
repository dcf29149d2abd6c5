#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images that were copied right after an fsync, on a mounted file system: with their logs replayed,
# they must show what a mount of the copy showed (tests/kernel/log_replay.py --record).
set -uo pipefail
. "$(dirname "$0")/common.bash"

mkdir "$WORK/cuts"
printf '%s\n' "$ROOT"/fixtures/log-cuts/*.img.zst | sweep "${SWEEP:-1}" | while read -r file; do
    cp "${file%.img.zst}".* "$WORK/cuts"
done
holds "images equal what a mount shows" "$ROOT/tests/kernel/log_replay.py" \
    --check "$WORK/cuts" --program "$PROGRAM"

# The same image without its log must show something else, or the comparison would not test the log.
name=$(ls "$ROOT/fixtures/log-cuts"/*.img.zst | head -n 1)
zstd -q -d --sparse "$name" -o "$WORK/image"
run_json --log=ignore --json --type f,d,l "$WORK/image" > "$WORK/committed"
run_json --json --type f,d,l "$WORK/image" > "$WORK/replayed"
holds "a log changes the files" bash -c "! cmp -s '$WORK/committed' '$WORK/replayed'"

zstd -q -d --sparse "$ROOT/fixtures/log-tree/dev1.img.zst" -o "$WORK/letters"
expect "what the log changes" 0 - log -o change,path,before "$WORK/letters"
for line in 'deleted	/docs/letters/01.txt	-' 'added	/volume/docs/letters/logged-19	-' \
    'renamed	/docs/letters/renamed-after-commit	/docs/letters/02.txt'; do
    holds "log prints the line $line" out_has "^$line\$"
done
expect "log with values" 0 - log -o attribute,before,after "$WORK/letters"
holds "log prints the values before and after" \
    out_has $'^mtime\t1795230496.877496610\t1795230497.029496607$'
expect "subvolumes with a log" 0 - subvolumes --json "$WORK/letters"
holds "a subvolume with a log keeps its generation" out_has '^{"subvolume":256,"generation":7,'
holds "no root block of theirs is on the devices" out_has '"level":1,"root":0,'
expect "--log=ignore does not matter to it" 0 - log --log=ignore -o change,path,before \
    "$WORK/letters"
holds "--log=ignore does not change the output of log" out_has '^deleted	/docs/letters/01.txt	-$'

# ranges_hold FIXTURE PATH: all bytes that the replay of a mount changes must lie in the ranges that
# are listed, none of which may be empty.
ranges_hold() {
    zstd -q -d -f --sparse "$ROOT/fixtures/log-cuts/$1.img.zst" -o "$WORK/image"
    expect "ranges of data" 0 - log -o change,path,file_offset,length "$WORK/image"
    awk -F '\t' -v path="$2" '$1 == "data" && $2 == path { print $3, $4 }' \
        "$WORK/out" > "$WORK/ranges"
    "$PROGRAM" cat --log=ignore "$WORK/image" "$2" > "$WORK/before"
    "$PROGRAM" cat "$WORK/image" "$2" > "$WORK/after"
    holds "the ranges of $1 contain all changed bytes" \
        python3 - "$WORK/before" "$WORK/after" "$WORK/ranges" << 'END'
import sys
before, after = (open(name, "rb").read() for name in sys.argv[1:3])
ranges = [tuple(map(int, line.split())) for line in open(sys.argv[3])]
assert ranges, "no ranges"
assert all(length > 0 and start + length <= len(after) for start, length in ranges), ranges
named = bytearray(len(after))
for start, length in ranges:
    named[start:start + length] = b"1" * length
before = before.ljust(len(after), b"\0")
unnamed = [at for at in range(len(after)) if not named[at] and before[at] != after[at]]
assert not unnamed, "a change that is not named"
END
}
ranges_hold 9001-1 /c105
ranges_hold 9006-2 /a1/g7
ranges_hold 9009-2 /d1/g25/d48

# Only superblock copy 0 names the log. If it is lost, the log is found by its blocks: the newest
# of those that the fsyncs of the transaction have written.
bad_copy() { printf '\377' | dd of="$1" bs=1 seek=66000 conv=notrunc status=none; }
for image in $(printf '%s\n' "$ROOT"/fixtures/log-cuts/*.img.zst |
    sweep $((4 * ${SWEEP:-1}))); do
    zstd -q -d -f --sparse "$image" -o "$WORK/image"
    "$PROGRAM" sum "$WORK/image" > "$WORK/sums"
    bad_copy "$WORK/image"
    expect "without copy 0" 1 'copy 0, which names the log tree, was not read: a search found' \
        sum "$WORK/image"
    holds "the log of $image is found without copy 0" same_bytes "$WORK/out" "$WORK/sums"
done
"$PROGRAM" "$WORK/letters" > "$WORK/paths"
expect "another copy" 1 'a search found a log tree at 32210944, by its contents the newest of 42$' \
    --super 1 "$WORK/letters"
holds "the log is found without copy 0" cmp "$WORK/out" "$WORK/paths"
bad_copy "$WORK/letters"
expect "it is not wanted" 0 'superblock copy 0 at 65536 rejected' --log=ignore "$WORK/letters"
# An item whose bytes are outside its leaf does not make an older log better.
cp --sparse=always "$WORK/letters" "$WORK/outside"
if have python3; then
    for place in 40583168 74137600; do
        python3 "$ROOT/tests/support/change_item.py" "$WORK/outside" \
            at $place -6 301 108 0 block 2268 4 60000
    done
fi
expect "a bad item" 1 'a search found a log tree at 32210944' log "$WORK/outside"
expect "rescue with a log but without copy 0" \
    1 'metadata are damaged; files may be missing' rescue --json "$WORK/letters"
holds "rescue reads the log" out_has '"verified_files":40,.*"verified_files":40,'
expect "check with a log but without copy 0" 4 . check "$WORK/letters"
holds "check verifies the log" out_has '^note log-present'

# A file system without a log. If the search is incomplete, there may have been one.
zstd -q -d --sparse "$ROOT/fixtures/plain/dev1.img.zst" -o "$WORK/plain"
"$PROGRAM" "$WORK/plain" > "$WORK/paths"
bad_copy "$WORK/plain"
expect "there was no log" 0 'superblock copy 0 at 65536 rejected' "$WORK/plain"
holds "without a log, all files are listed" cmp "$WORK/out" "$WORK/paths"
is "the rejected copy is the only message" "$(wc -l < "$WORK/err")" 1
expect "the changes of no log" 0 'copy 0' log "$WORK/plain"
holds "a table without rows has no header" [ ! -s "$WORK/out" ]
expect "a header is requested" 0 'copy 0' log --header "$WORK/plain"
holds "--header prints the header of a table without rows" grep -q '^change' "$WORK/out"
expect "unreadable metadata" 1 \
    'only it names a log tree: changes since generation [0-9]* may be missing; parts of the' \
    --insert debug/error-gen@chunk-map,kind=raw,action=eio "$WORK/plain"
finish
