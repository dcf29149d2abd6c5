#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Probes: what the options --probe... select, print, count and refuse; numbers that must agree; and
# that the results are the same, whoever watches.
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" plain levels-3 raid1-2 dup-metadata-0 lost-leaf-first \
    superblock-copy-lost bad-copy-dup bad-data || exit 1
plain=$images/plain/dev1.img
deep=$images/levels-3/dev1.img
mirror=("$images"/raid1-2/dev1.img "$images"/raid1-2/dev2.img)

# run EXPECTED-STATUS WHAT ARGUMENTS...: runs the program; output in $WORK/out and $WORK/err.
run() {
    local expected=$1 what=$2 status
    shift 2
    timeout 120 "$PROGRAM" "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null
    status=$?
    if [ "$status" -eq "$expected" ]; then
        pass
    else
        fail "$what: exit status $status, not $expected: $(head -n 2 "$WORK/err")"
    fi
}

# said WHAT REGEX [FILE]: stderr, or the file, must have a line that matches.
said() {
    if grep -qE -- "$2" "${3:-$WORK/err}"; then
        pass
    else
        fail "$1: '$2' is missing: $(head -n 2 "${3:-$WORK/err}")"
    fi
}

equal() { if [ "$2" = "$3" ]; then pass; else fail "$1: $2, not $3"; fi; }

# events PROBE [FILE]: the number of lines of this probe.
events() { grep -c "^ *[0-9.]* [0-9]* $1 " "${2:-$WORK/err}"; }

# Selecting.
run 0 "the list needs no image" --probe-list
cp "$WORK/out" "$WORK/all"
run 0 "one probe" --probe super-read "$plain"
equal "one probe: all lines are of it" "$(events super-read)" "$(wc -l < "$WORK/err")"
run 0 "a bad superblock" --probe super-read "$images/superblock-copy-lost/dev1.img"
equal "the bad superblock is the only failed reading" \
    "$(grep -c ' super-read .* error=-' "$WORK/err")" 1
run 0 "several, one not" --probe 'block-*,!block-verify' --probe 'cache-hit' "$deep"
equal "an excluded probe has no events" "$(events block-verify)" 0
[ "$(events block-read-done)" -gt 0 ] && [ "$(events cache-hit)" -gt 0 ] && pass ||
    fail "patterns add up"
run 0 "everything but" --probe '!*' --probe 'image-open' "$plain"
equal "everything taken away, one added" "$(wc -l < "$WORK/err")" 1
run 2 "a pattern without a match" --probe 'block-read-gone' "$plain"
said "a pattern without a match" "no probe matches 'block-read-gone'"
BTRFS_WALK_PROBE=image-open run 0 "the environment" "$plain"
equal "BTRFS_WALK_PROBE selects probes" "$(events image-open)" 1
while read -r probe; do
    run 0 "probe $probe" --probe "$probe" "$deep"
    case $probe in
    # In this image nothing is compressed, too large for the cache, or damaged.
    decompress-* | cache-evict | block-retry | error) ;;
    *) [ "$(events "$probe")" -gt 0 ] && pass || fail "$probe never fires" ;;
    esac
done < "$WORK/all"

# Entries of leaves that snapshots share are remembered; their inodes are told all the same.
"$ROOT/scripts/unpack-fixtures" "$images" subvolumes || exit 1
run 0 "inodes" --probe path-emit "$images/subvolumes/dev1.img"
if grep -q ' inode=0 ' "$WORK/err"; then fail "a path without an inode"; else pass; fi

# Results do not depend on who watches.
run 0 "nobody watches" "$deep"
cp "$WORK/out" "$WORK/want"
for options in "--probe *" "--probe * --probe-format json" "--probe-stats" "--probe-stats=xlator" \
    "--blackbox $WORK/box" \
    "--probe * --blackbox $WORK/box"; do
    read -ra words <<< "$options"
    set -f
    run 0 "$options" "${words[@]}" "$deep"
    set +f
    if cmp -s "$WORK/want" "$WORK/out"; then pass; else fail "$options: stdout is another"; fi
done

# Numbers that must agree.
run 0 "all events" -j 1 --probe '*' "$deep"
cp "$WORK/err" "$WORK/events"
equal "each call of a layer has its return" \
    "$(events fop-wind "$WORK/events")" "$(events fop-unwind "$WORK/events")"
equal "each read of a device has its end" "$(events dev-read-start "$WORK/events")" \
    "$(events dev-read-done "$WORK/events")"
equal "blocks asked for and come" "$(events block-read-start "$WORK/events")" \
    "$(events block-read-done "$WORK/events")"
equal "each key search has its end" "$(events key-search-start "$WORK/events")" \
    "$(events key-search-done "$WORK/events")"
equal "hits and misses are the look-ups of nodes" \
    "$(grep -cE ' cache-(hit|miss) .* level=[1-9] ' "$WORK/events")" \
    "$(grep -c ' block-read-done .* level=[1-9] ' "$WORK/events")"
equal "what is not in the cache is verified" "$(events block-verify "$WORK/events")" \
    "$(($(events block-read-done "$WORK/events") - $(events cache-hit "$WORK/events")))"
equal "as many paths as lines" "$(events path-emit "$WORK/events")" "$(wc -l < "$WORK/out")"
files=$(grep -c ' dirent .*type=file ' "$WORK/events")
equal "as many files as paths" "$files" "$(wc -l < "$WORK/out")"
# The superblock is read once more after the summary.
bytes=$(sed -nE 's/.* dev-read-done .* bytes=([0-9]+) .*/\1/p' "$WORK/events" | paste -sd+ |
        bc 2> /dev/null)
run 0 "summary" -j 1 --summary "$deep"
[ -z "$bytes" ] && skip bc "bytes read from the device" || said "bytes read from the device" \
    " $((bytes - 4096)) bytes of metadata read"

# A device read tells which request caused it: each is the call of a layer whose parents lead to the
# top, except for the first bytes of an image, which show whether it is a send stream.
orphans=$(awk '
    { call = parent = "" }
    match($0, / call=[0-9]+/) { call = substr($0, RSTART + 6, RLENGTH - 6) }
    match($0, / parent_call=[0-9]+/) { parent = substr($0, RSTART + 13, RLENGTH - 13) }
    $3 == "fop-wind" { up[call] = parent }
    $3 == "block-read-start" || $3 == "super-read" { top[call] = 1 }
    $3 == "dev-read-start" { reads[++count] = call }
    END {
        for (i = 1; i <= count; i++) {
            at = reads[i]
            while (!(at in top) && (at in up) && up[at]) at = up[at]
            if (!(at in top)) orphans++
        }
        print orphans + 0
    }' "$WORK/events")
equal "device reads without a request" "$orphans" 2

# Statistics have the same counts.
run 0 "statistics" -j 1 --probe-stats --probe 'block-read-done' --probe-format json "$deep"
said "the statistics have the count of the events" \
    "\"probe\":\"block-read-done\".*\"count\":$(events block-read-done \
        "$WORK/events"),"
run 0 "statistics of layers" -j 1 --probe-stats=xlator "$deep"
said "statistics of layers name features/verify" "verify \(features/verify\)"
shares=$(sed -n '/^------/,/^------/p' "$WORK/err" |
        awk '$1 ~ /^[0-9.]+$/ { sum += $1 } END { print (sum > 99.5 && sum < 100.5) }')
equal "the layers' shares add up" "$shares" 1
run 2 "statistics of nothing" --probe-stats=moons "$plain"

# A bad mirror is detected, and another one is read.
run 0 "a bad mirror" -j 1 --probe 'block-verify,block-retry' \
    "$images/dup-metadata-0/dev1.img"
[ "$(events block-retry)" -gt 0 ] && [ "$(events block-verify)" -gt 0 ] && pass ||
    fail "a bad mirror gives no retry"
block=$(sed -nE 's/.* block-retry .* logical=([0-9]+) mirror=2 .*/\1/p' "$WORK/err" | head -n 1)
run 0 "and then success" -j 1 --probe 'block-verify,block-read-done' \
    "$images/dup-metadata-0/dev1.img"
said "the second copy is good" " block-verify call=[0-9]+ error=0 ns=- logical=$block mirror=2 "
said "and so is the block" " block-read-done call=[0-9]+ error=0 ns=[0-9]+ logical=$block "
run 1 "a block without a good mirror" --probe 'error,block-read-done' \
    "$images/lost-leaf-first/dev1.img"
said "a lost block has an event of damage" " error .*severity=damage layer_type=features/verify"
said "a lost block has an event with its error" " block-read-done call=[0-9]+ error=-117 "

# A bad sector of data is read once of each copy: with its range, and not again to repair or explain
# it.
run 0 "a bad mirror of data" sum -v -j 1 --probe dev-read-done --probe-output "$WORK/reads" \
    "$images/bad-copy-dup/dev1.img"
used='used mirror 2 instead of a bad one \(mirror 1 on device 1 at ([0-9]+):'
offsets=$(sed -nE "s/.*$used.*/\1/p" "$WORK/err")
[ -n "$offsets" ] && pass || fail "no bad mirror of data"
# reads_of OFFSET: the number of reads of the device that contain this offset.
reads_of() {
    sed -nE 's/.* dev-read-done .* offset=([0-9]+) bytes=([0-9]+) .*/\1 \2/p' "$WORK/reads" |
        awk -v at="$1" '$1 <= at && at < $1 + $2' | wc -l
}
for offset in $offsets; do equal "offset $offset is read once" "$(reads_of "$offset")" 1; done
run 1 "data without a good mirror" sum -j 1 --probe dev-read-done --probe-output "$WORK/reads" \
    "$images/bad-data/dev1.img"
offset=$(sed -nE 's/.* \/bad-zstd: .*no good mirror: mirror 1 on device 1 at ([0-9]+):.*/\1/p' \
    "$WORK/err")
equal "reads of a sector without a good mirror" "$(reads_of "$offset")" 1
run 2 "what ends the work" --probe error "$WORK/nowhere"
said "the error that ends the work has an event" " error .*severity=fatal"

# Extents are decompressed only when their contents are needed.
"$ROOT/scripts/unpack-fixtures" "$images" compressed || exit 1
run 0 "decompression" cat --probe 'decompress-*' "$images/compressed/dev1.img" \
    /zlib/large /lzo/large /zstd/large
equal "each decompression has its end" "$(events decompress-start)" "$(events decompress-done)"
for algorithm in zlib lzo zstd; do
    said "$algorithm is decompressed" " decompress-done .* error=0 .* compression=$algorithm "
done

# Options without an effect are refused.
run 2 "a maximum of statistics" --probe-stats --probe-max 3 "$plain"
run 2 "probes of layers" --probe-stats=xlator --probe dirent "$plain"
run 2 "nothing selected" --probe 'error,!error' "$plain"
run 2 "a filter" --probe-filter 'level > 0' "$plain"
said "a removed option names its replacement" 'option --probe-filter was removed: .*jq'

# Output.
run 0 "a maximum" --probe '*' --probe-max 7 "$deep"
equal "--probe-max 7 prints seven events" "$(wc -l < "$WORK/err")" 7
run 0 "none at all" --probe '*' --probe-max 0 "$deep"
equal "--probe-max 0 prints no event" "$(wc -l < "$WORK/err")" 0
head -c 500000 /dev/zero | tr '\0' x > "$WORK/file"
run 0 "into a file" -j 1 --probe '*' --probe-output "$WORK/file" "$deep"
equal "into a file: nothing on stderr" "$(wc -l < "$WORK/err")" 0
equal "the file has as many events as stderr had" \
    "$(wc -l < "$WORK/file")" "$(wc -l < "$WORK/events")"
cp "$plain" "$WORK/image"
run 2 "into an image" --probe '*' --probe-output "$WORK/image" "$WORK/image"
cmp -s "$plain" "$WORK/image" && pass || fail "an image was written to"
run 2 "into another image" --probe '*' --probe-output "$WORK/image" "$plain"
cmp -s "$plain" "$WORK/image" && pass || fail "an image was written to"
run 2 "into the black box" --probe '*' --blackbox "$WORK/twice" --probe-output "$WORK/twice" \
    "$plain"
run 2 "a statedump into the black box" --blackbox "$WORK/twice" --statedump "$WORK/twice" "$plain"
run 1 "a full disk" --probe '*' --probe-output /dev/full "$deep"
run 2 "no format" --probe '*' --probe-format xml "$plain"
run 0 "JSON" --probe '*' --probe-format json --probe-output "$WORK/json" "$deep"
if have python3; then
    python3 - "$WORK/json" << 'PYTHON' && pass || fail "not every line is JSON"
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    assert event["probe"] and event["time"] > 0 and event["thread"] > 0
PYTHON
else
    skip python3 "records as JSON"
fi

# When a signal ends the program, the statistics are printed first.
stall=(--insert "debug/delay-gen@node-cache,kind=tree-block,delay=1m") # nothing is read for long
for signal in INT TERM HUP; do
    for output in --probe-stats "--probe-output=$WORK/events"; do
        rm -f "$WORK/events" "$WORK/box"
        env --default-signal "$PROGRAM" --blackbox "$WORK/box" --probe '*' "$output" "${stall[@]}" \
            "$plain" \
            > "$WORK/out" 2> "$WORK/err" &
        pid=$!
        soon eval 'grep -q layer=delay-gen < <("$PROGRAM" blackbox "$WORK/box" 2> /dev/null)'
        kill -"$signal" "$pid"
        wait "$pid" 2> /dev/null
        equal "SIG$signal ends the program with $output" "$?" $((128 + $(kill -l "$signal")))
        case $output in
        --probe-stats) said "SIG$signal: the statistics are printed" ' fop-wind$' ;;
        *) said "SIG$signal: the gathered events are printed" ' super-read ' "$WORK/events" ;;
        esac
    done
done
mkfifo "$WORK/unread"
(exec < "$WORK/unread") &
exec 3> "$WORK/unread"
wait $!
"$PROGRAM" --probe-stats "$plain" >&3 2> "$WORK/err"
equal "a closed stdout ends the program" "$?" $((128 + $(kill -l PIPE)))
said "nobody reads the list: statistics" ' path-emit$'
exec 3>&-
finish
