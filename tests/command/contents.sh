#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is in the files of every fixture, and where it lies, against what a mount has said (scripts/make-expected).
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" || exit 1
cd "$ROOT/fixtures" || exit 1

# list FILE: a list, packed or not; the status says whether it is there.
list() { if [ -e "$1" ]; then cat "$1"; else [ -e "$1.zst" ] && zstd -q -d -c "$1.zst"; fi; }

# read_about FIXTURE: the lines of `about` that matter here.
read_about() {
    local word value
    folder=$1 missing=' ' arguments=() want=0 expressions=()
    while IFS= read -r line; do
        word=${line%%: *} value=${line#*: }
        case $word in
        devices-from) folder=$value ;;
        missing) missing=" $value " ;;
        args) read -ra arguments <<< "$value" ;;
        exit) [ "$want" -ne 0 ] || want=$value ;;
        sum-exit) want=$value ;;
        sum-stderr) expressions+=("$value") ;;
        esac
    done < "$1/about"
    devices=()
    for device in "$images/$folder"/dev*.img; do
        number=${device##*/dev}
        [[ $missing == *" ${number%.img} "* ]] || devices+=(-d "$device")
    done
    image=${devices[1]}
    devices=("${devices[@]:2}")
}

# Lists are sorted by path; a line is a hash of 64 digits, two spaces and the path.
by_path() { LC_ALL=C sort -z -k 1.67; }

check_sums() {
    local name=$1 status
    list "$name/sums0" > "$WORK/want" || list "$folder/sums0" > "$WORK/want" || { unlisted+=("$name"); return; }
    timeout 60 "$PROGRAM" sum -0 -v -j 2 --size -2G "${arguments[@]}" "${devices[@]}" "$image" > "$WORK/out" 2> "$WORK/err"
    status=$?
    [ "$status" -eq "$want" ] || { fail "$name: exit status $status, not $want: $(head -n 3 "$WORK/err")"; return; }
    for expression in "${expressions[@]}"; do
        grep -qiE -- "$expression" "$WORK/err" || { fail "$name: stderr lacks '$expression': $(head -n 3 "$WORK/err")"; return; }
    done
    by_path < "$WORK/out" > "$WORK/have"
    if [ "$want" -eq 0 ] || [ ${#expressions[@]} -ne 0 ]; then
        cmp -s "$WORK/want" "$WORK/have" && { pass; return; }
    fi
    # Of the files that both have all are right: what one has alone, the other has not with another hash.
    LC_ALL=C comm -z -3 <(LC_ALL=C sort -z "$WORK/want") <(LC_ALL=C sort -z "$WORK/have") |
        LC_ALL=C sed -z 's/^\t//' | cut -z -c 67- | LC_ALL=C sort -z | uniq -zd > "$WORK/wrong"
    if [ -s "$WORK/wrong" ]; then
        fail "$name: wrong contents: $(tr '\0' '\n' < "$WORK/wrong" | head -n 3)"
    elif [ "$want" -eq 0 ]; then
        fail "$name: $(tr -dc '\0' < "$WORK/have" | wc -c) sums of $(tr -dc '\0' < "$WORK/want" | wc -c)"
    else
        pass
    fi
}

# The table of `extents` as the expectations are: lines of one extent joined, and of its places the first.
as_expected() {
    awk '
        function flush() { if (line != "") print line, stored, rest; line = "" }
        / bytes(, no checksums)?$/ { flush(); sub(/ bytes(, no checksums)?$/, ""); print; next }
        /^ *ext: / || /^[0-9]+ extents$/ { flush(); next }
        { sub(/^ */, ""); count = split($0, part, /: +/) }
        count == 6 {
            flush()
            split(part[2], range, /\.\. */)
            line = range[1] " " part[3] " " part[4]
            stored = part[5]
            rest = part[6]
            if (!index(rest, " "))
                rest = rest " -"
            next
        }
        { stored += part[2] }
        END { flush() }'
}

check_extents() {
    local name=$1
    list "$name/extents" > "$WORK/want" || return
    mapfile -t paths < <(sed -n 's/^\(\/.*\): [0-9]*$/\1/p' "$WORK/want")
    timeout 60 "$PROGRAM" extents "${arguments[@]}" "${devices[@]}" "$image" "${paths[@]}" > "$WORK/out" 2> "$WORK/err" ||
        { fail "$name: extents: $(head -n 3 "$WORK/err")"; return; }
    as_expected < "$WORK/out" > "$WORK/have"
    if diff "$WORK/want" "$WORK/have" > "$WORK/diff"; then pass; else fail "$name: extents: $(head -n 4 "$WORK/diff")"; fi
}

unlisted=()
for name in *; do
    [ -e "$name/about" ] || continue
    read_about "$name"
    check_sums "$name"
    check_extents "$name"
done
printf 'no list: %s\n' "${unlisted[*]}"

# Sparse files of more than a TiB take no time where there is nothing.
for name in data-shapes data-shapes-holes; do
    read_about "$name"
    text=$("$PROGRAM" cat --offset 1234567890000 --length 1000 "$image" /1.5TiB | tr -d '\0')
    if [ "$text" = 'in the middle of nowhere' ]; then pass; else fail "$name: 1.5TiB: '$text'"; fi
    text=$("$PROGRAM" cat --offset 1649267440000 --length 1M "$image" /1.5TiB | wc -c)
    if [ "$text" -eq 1664 ]; then pass; else fail "$name: the end of 1.5TiB: $text bytes"; fi
done
finish
