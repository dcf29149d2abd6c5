#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Contents and extents of the files of every fixture, compared with what a mount showed
# (scripts/make-expected).
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"

# Lists are sorted by path; a line is a hash of 64 digits, two spaces and the path.
by_path() { LC_ALL=C sort -z -k 1.67; }

check_sums() {
    local name=$1 status want=${about[sum-exit]:-${about[exit]:-0}}
    list "$name/sums0" > "$WORK/want" || list "$folder/sums0" > "$WORK/want" ||
        { unlisted+=("$name"); return; }
    timeout 60 "$PROGRAM" sum -0 -v -j 2 --size -2G "${arguments[@]}" "${devices[@]}" \
        "$image" > "$WORK/out" 2> "$WORK/err"
    status=$?
    [ "$status" -eq "$want" ] ||
        { fail "$name: exit status $status, not $want: $(head -n 3 "$WORK/err")"; return; }
    says "$name" "${sum_expressions[@]}" || return
    by_path < "$WORK/out" > "$WORK/have"
    if [ "$want" -eq 0 ] || [ ${#sum_expressions[@]} -ne 0 ]; then
        cmp -s "$WORK/want" "$WORK/have" && { pass; return; }
    fi
    # All files that are in both lists must have the same hash.
    LC_ALL=C comm -z -3 <(LC_ALL=C sort -z "$WORK/want") <(LC_ALL=C sort -z "$WORK/have") |
        LC_ALL=C sed -z 's/^\t//' | cut -z -c 67- | LC_ALL=C sort -z | uniq -zd > "$WORK/wrong"
    if [ -s "$WORK/wrong" ]; then
        fail "$name: wrong contents: $(tr '\0' '\n' < "$WORK/wrong" | head -n 3)"
    elif [ "$want" -eq 0 ]; then
        fail "$name: $(count "$WORK/have") sums of $(count "$WORK/want")"
    else
        pass
    fi
}

# as_expected COPIES: the table of `extents` in the form of the expectations, which have only the
# location of the first byte.
as_expected() {
    awk -v copies="$1" '
        function first_places(list, place, count, i, all) {
            gsub(/[^,]* \(parity\),?/, "", list)
            sub(/,$/, "", list)
            count = split(list, place, ",")
            if (index(list, "+") && count > copies)
                count = copies
            for (i = 1; i <= count; i++) {
                sub(/\+.*/, "", place[i])
                all = all (i > 1 ? "," : "") place[i]
            }
            return all
        }
        / bytes?(, no checksums)?$/ { sub(/ bytes?(, no checksums)?$/, ""); print; next }
        /^ *ext: / || /^[0-9]+ extents?$/ { next }
        {
            sub(/^ */, "")
            split($0, part, /: +/)
            split(part[2], range, /\.\. */)
            space = index(part[6], " ")
            places = space ? first_places(substr(part[6], space + 1)) : "-"
            print range[1], part[3], part[4], part[5],
                space ? substr(part[6], 1, space - 1) : part[6], places
        }'
}

check_extents() {
    local name=$1 copies
    list "$name/extents" > "$WORK/want" || return
    mapfile -t paths < <(sed -n 's/^\(\/.*\): [0-9]*$/\1/p' "$WORK/want")
    timeout 60 "$PROGRAM" extents "${arguments[@]}" "${devices[@]}" "$image" \
        "${paths[@]}" > "$WORK/out" 2> "$WORK/err" ||
        { fail "$name: extents: $(head -n 3 "$WORK/err")"; return; }
    case $name in *raid10*) copies=2 ;; *) copies=1 ;; esac
    as_expected "$copies" < "$WORK/out" > "$WORK/have"
    if diff "$WORK/want" "$WORK/have" > "$WORK/diff"; then
        pass
    else
        fail "$name: extents: $(head -n 4 "$WORK/diff")"
    fi
}

unlisted=()
for name in $(printf '%s\n' */about | sweep "${SWEEP:-1}"); do
    name=${name%/about}
    read_about "$name"
    check_sums "$name"
    check_extents "$name"
done
printf 'no list: %s\n' "${unlisted[*]}"

# An extent on several stripes has one line, with the part on each device; in JSON each stripe is
# listed.
spans() { "$PROGRAM" extents "${devices[@]}" "$image" "$1" | sed -n 's/^ *0: .* data //p'; }
bytes_of() { tr , '\n' | awk -F + '{ total += $2 } END { print NR, total }'; }
read_about data-raid0-3
if [ "$(spans /large | bytes_of)" = '3 602112' ]; then
    pass
else
    fail "spans of raid0: $(spans /large)"
fi
run_json extents --json "${devices[@]}" "$image" /large > "$WORK/out"
if [ "$(grep -o '"logical":' "$WORK/out" | wc -l)" -eq 10 ] &&
    ! grep -q '"parity"' "$WORK/out"; then
    pass
else
    fail "stripes of raid0: $(head -c 300 "$WORK/out")"
fi
read_about bad-copy-raid5
if [ "$(spans /large | bytes_of)" = '3 929792' ]; then
    pass
else
    fail "spans of raid5: $(spans /large)"
fi
read_about raid6-4
if grep -qE '^[0-9]:[0-9]+,[0-9]:[0-9]+ \(parity\),[0-9]:[0-9]+ \(parity\)$' \
    < <(spans '/source/large.bin'); then
    pass
else
    fail "parity of raid6: $(spans '/source/large.bin')"
fi
run_json extents --json "${devices[@]}" "$image" /source/large.bin > "$WORK/out"
if grep -qE '"copies":\[\{[^]]*\}\],"parity":\[\{[^{}]*\},\{[^{}]*\}\]' "$WORK/out"; then
    pass
else
    fail "parity of raid6 as JSON: $(cat "$WORK/out")"
fi

# Sparse files of more than a TiB: holes take no time.
for name in data-shapes data-shapes-holes; do
    read_about "$name"
    text=$("$PROGRAM" cat --offset 1234567890000 --length 1000 "$image" /1.5TiB | tr -d '\0')
    if [ "$text" = 'in the middle of nowhere' ]; then pass; else fail "$name: 1.5TiB: '$text'"; fi
    text=$("$PROGRAM" cat --offset 1649267440000 --length 1M "$image" /1.5TiB | wc -c)
    if [ "$text" -eq 1664 ]; then pass; else fail "$name: the end of 1.5TiB: $text bytes"; fi
done
finish
