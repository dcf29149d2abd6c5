#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The scripts for bpftrace, run from the source tree, through a link, and from where they are
# installed. A stand-in shows how they call bpftrace; where bpftrace is permitted, they really run,
# and one is compared with the program's own count.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" levels-3 || exit 1
image=$BUILD/fixtures/levels-3/dev1.img
scripts=$ROOT/scripts/bpftrace

# A stand-in for bpftrace that only prints its arguments.
mkdir "$WORK/bin" && printf '#!/bin/sh\nprintf "[%%s]" "$@"\n' > "$WORK/bin/bpftrace"
chmod +x "$WORK/bin/bpftrace"
# called SCRIPT ARGUMENT...
called() { PATH=$WORK/bin:$PATH "$@" 2> "$WORK/err"; }
(cd "$ROOT" && make -s install -o all BUILD="$BUILD" DESTDIR="$WORK/stage" PREFIX=/usr) \
    > "$WORK/log" 2>&1 || fail "make install: $(cat "$WORK/log")"
installed=$WORK/stage/usr/share/btrfs-walk/bpftrace
ln -s "$installed/retries.bt" "$WORK/link"

is "the program of the installation" "$(called "$installed/retries.bt" ls a.img)" \
    "[-I][$installed][-c][$WORK/stage/usr/bin/btrfs-walk ls a.img][$installed/retries.bt]"\
"[$WORK/stage/usr/bin/btrfs-walk]"
is "the same through a link" "$(called "$WORK/link" a.img)" \
    "$(called "$installed/retries.bt" a.img)"
is "a program that is running" "$(BTRFS_WALK=$PROGRAM called "$WORK/link" -p 7)" \
    "[-I][$installed][-p][7][$installed/retries.bt][$PROGRAM]"
rm "$WORK/stage/usr/bin/btrfs-walk"
ln -s "$PROGRAM" "$WORK/bin/btrfs-walk"
is "a script finds the program in PATH" \
    "$(called "$WORK/link" a.img | grep -oF "[$PROGRAM]")" "[$PROGRAM]"
for script in "$scripts"/*.bt; do
    name=${script##*/}
    is "$name is installed" "$(called "$installed/$name" a.img | grep -c '\.bt\]')" 1
done
is "a name that bpftrace would split" "$(called "$WORK/link" 'a b')" ''
holds "the script reports the name that bpftrace would split" \
    grep -qx "retries.bt: bpftrace cannot pass on 'a b': .*" "$WORK/err"
is "a script without arguments does not call bpftrace" "$(called "$WORK/link")" ''
holds "a script without arguments asks for those of btrfs-walk" \
    grep -q 'Give the arguments of btrfs-walk' "$WORK/err"

if [ "$(id -u)" -ne 0 ]; then
    skip root "scripts for bpftrace"
elif ! have bpftrace; then
    skip bpftrace "its scripts"
elif ! grep -q USDT=1 "$BUILD/features"; then
    skip "a build with USDT" "scripts for bpftrace"
elif ! bpftrace -e "uprobe:$PROGRAM:main { @ = count(); }" -c "$PROGRAM --version" 2> /dev/null |
    grep -q '^@: 1$'; then
    skip "a kernel that bpftrace can use" "scripts for bpftrace"
else
    export BTRFS_WALK=$PROGRAM
    # bpftrace accepts them, and the header matches the records that they get.
    for script in "$scripts"/*.bt; do
        "$script" "$image" > "$WORK/out" 2> "$WORK/err"
        holds "$(basename "$script"): $(head -n 2 "$WORK/err")" grep -q '^Attaching' "$WORK/out"
    done
    "$PROGRAM" --probe block-read-done "$image" 2> "$WORK/events" > /dev/null
    own=$(grep -c ' block-read-done ' "$WORK/events")
    seen=$("$installed/block-latency.bt" "$image" 2> /dev/null |
        sed -n 's/^@blocks\[[0-9]*\]: //p' | paste -s -d + | sed 's/^$/0/')
    holds "bpftrace counts $seen blocks, the program $own" \
        [ "$own" -gt 0 -a "$((seen))" -eq "$own" ]
fi
finish
