#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every path that one command prints is accepted by all others with the same options, for the
# top-level subvolume and within one subvolume.
set -u
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"
image=$images/subvolumes/dev1.img
list subvolumes/sums0 > "$WORK/sums0"

# pairs OPTION...: of all producers and consumers with these options.
pairs() {
    local verdict what pairs_before=$passed
    while read -r verdict what; do
        if [ "$verdict" = pass ]; then pass; else fail "with '$options': $what"; fi
    done < <(python3 "$ROOT/tests/support/path_pairs.py" "$PROGRAM" "$image" "$WORK/sums0" "$@" \
        2>&1)
    is "all pairs were tried with '$*'" "$((passed - pairs_before > 150))" 1
}

for options in '' '--subvol 257' '--subvol home --nested=yes' '--subvol home --generation 13'; do
    # shellcheck disable=SC2086 # words
    pairs $options
done
# What other commands print, for the subvolume or the generation that they print it of.
each() {
    local what=$1 command=$2 path
    while IFS= read -r path; do
        # shellcheck disable=SC2086 # words
        expect "$what: $path" 0 - $command "$image" "$path"
    done < "$WORK/out.list"
    [ -s "$WORK/out.list" ] || fail "$what: nothing"
}
expect "subvolumes" 0 - subvolumes -o subvolume_path "$image"
grep -av new "$WORK/out" | cut -c1-200 | head -8 > "$WORK/out.list"
each "subvolumes | ls" ls
while IFS= read -r path; do
    expect "subvolumes | walk --subvol: $path" 0 - -q --subvol "$path" "$image"
done < "$WORK/out.list"
expect "diff" 0 'compared' diff -o path --only AM "$image" home-snapshot home
cp "$WORK/out" "$WORK/out.list"
each "diff | stat --subvol" "stat --subvol home"
while IFS= read -r path; do
    expect "diff | diff --below: $path" 0 'compared' \
        diff --below "$path" "$image" home-snapshot home
done < "$WORK/out.list"
image=$images/bad-data/dev1.img
run_json check -q --data --json "$image" 2> /dev/null |
    sed -n 's/.*"paths":\["\([^"]*\)".*/\1/p' | sort -u > "$WORK/out.list"
each "check --json | stat" stat
image=$images/log-tree/dev1.img
run_json log --json "$image" | sed -n 's/.*"path":"\([^"]*\)".*/\1/p' | sort -u > "$WORK/out.list"
holds "log prints paths" [ -s "$WORK/out.list" ]
while IFS= read -r path; do
    holds "log | stat, before or after: $path" eval "\"$PROGRAM\" stat -q --log=replay \"$image\" \
        \"$path\" || \"$PROGRAM\" stat -q --log=ignore \"$image\" \"$path\""
done < "$WORK/out.list"
image=$images/past/dev1.img
expect "deleted" 0 - deleted -o generation,tree_root,path --type f "$image"
cp "$WORK/out" "$WORK/rows"
holds "deleted prints rows" [ -s "$WORK/rows" ]
while read -r generation root path; do
    expect "deleted | stat --tree-root: $path" 0 - stat --tree-root "$root" "$image" "$path"
    expect "deleted | deleted PATH: $path" 0 - deleted -o path "$image" "$path"
    expect "deleted | versions: $path" 0 - versions --no-data -o path "$image" "$path"
    [ "$generation" -gt 0 ] || fail "no generation"
done < <(head -4 "$WORK/rows")
finish
