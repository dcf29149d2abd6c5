#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The probes as tracers find them: the notes of the program and the library, what their arguments
# are, and that nobody pays for probes that nobody watches. Where bpftrace is permitted, its count
# is held against the program's own.
set -uo pipefail
. "$(dirname "$0")/common.bash"

if ! have readelf; then skip readelf "notes of probes"; finish; fi
if ! grep -q USDT=1 "$BUILD/features"; then skip "a build with USDT" "notes of probes"; finish; fi
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" levels-3 || exit 1
image=$BUILD/fixtures/levels-3/dev1.img

"$PROGRAM" --probe-list | sed 's/-/__/g' | sort > "$WORK/wanted"

# notes FILE: prints one line per note of the provider: name, semaphore, then the arguments.
notes() {
    readelf -n "$1" 2> /dev/null | awk '
        $1 == "Provider:" { ours = $2 == "btrfswalk" }
        !ours { next }
        $1 == "Name:" { name = $2 }
        $1 == "Location:" { semaphore = $NF }
        $1 == "Arguments:" { $1 = ""; print name, semaphore $0 }' | sort -u
}

# check_notes WHAT FILE: the notes are those of the list, with semaphore and six arguments none of
# which is a constant.
check_notes() {
    notes "$2" > "$WORK/notes"
    cut -d ' ' -f 1 "$WORK/notes" > "$WORK/found"
    holds "$1: the notes are the probes of the list" diff "$WORK/wanted" "$WORK/found"
    holds "$1: each has a semaphore" [ -z "$(awk '$2 ~ /^0x0*$/' "$WORK/notes")" ]
    holds "$1: each has six arguments" [ -z "$(awk 'NF != 8' "$WORK/notes")" ]
    # Tracers drop arguments that are constants: in the notes of x86 those begin with $, on ARM with
    # a digit.
    holds "$1: none is a constant" [ -z "$(grep -E '@(\$|-?[0-9]+( |$))' "$WORK/notes")" ]
}
check_notes "the program" "$PROGRAM"
check_notes "the shared library" "$BUILD/libbtrfs-walk.so.2"
if have strip && strip -o "$WORK/stripped" "$PROGRAM"; then
    check_notes "the stripped program" "$WORK/stripped"
    strip -o "$WORK/stripped.so" "$BUILD/libbtrfs-walk.so.2"
    check_notes "the stripped library" "$WORK/stripped.so"
fi

# calls OBJECT: a line a call of a firing function: section, function, called, and whether a jump
# leads around it: a jump forward beyond it, or a way that does not come back, stands before it.
calls() {
    objdump -dr --no-show-raw-insn "$1" | awk '
        # Of one length, hexadecimal numbers are in order as text.
        function padded(text) { return substr("0000000000000000", length(text) + 1) text }
        /^Disassembly of section/ { section = $4; sub(/:$/, "", section) }
        /^[0-9a-f]+ </ { name = $2; gsub(/[<>:]/, "", name); furthest = ""; ended = 0 }
        /^ *[0-9a-f]+:\t/ {
            address = $1; sub(/:$/, "", address); address = padded(address)
            if ($2 ~ /^j/ && $3 ~ /^[0-9a-f]+$/ && padded($3) > furthest) furthest = padded($3)
            if ($2 ~ /^(jmp|ret)/) ended = 1
        }
        /R_[A-Z0-9_]+.*[ \t]bw_fire_/ {
            print section, name, $NF, (furthest > address || ended ? "around" : "straight")
        }'
}
# Where the compiler is gcc and has put cold code elsewhere, the calls are there too.
if ! have objdump || ! grep -q X86-64 < <(readelf -h "$PROGRAM"); then
    skip "objdump for x86-64" "call sites"
elif grep -q clang < <(readelf -p .comment "$BUILD/src/btree/block.o" 2> /dev/null); then
    skip "a build with gcc" "call sites"
elif ! grep -q '\.text\.unlikely' < <(readelf -SW "$BUILD/src/btree/block.o") ||
    grep -q __asan < <(nm "$BUILD/src/btree/block.o"); then
    skip "a build that is optimized, without sanitizers" "call sites"
else
    while IFS= read -r object; do
        calls "$object"
    done < <(find "$BUILD/src" -name '*.o' ! -path "$BUILD/src/cli/*" ! -path \
            "$BUILD/src/probe/*") > "$WORK/calls"
    # Functions that are called for every block and every layer call.
    for call in fop__wind fop__unwind block__read__start block__read__done key__search__start \
        key__search__done cache__hit \
        cache__miss; do
        bad=$(awk -v call="^bw_fire_$call-" '$3 ~ call && $1 !~ /unlikely/ { print $1, $2 }' \
                "$WORK/calls")
        holds "$call is called somewhere" grep -q "bw_fire_$call-" "$WORK/calls"
        if [ -z "$bad" ]; then pass; else fail "$call is fired in hot code: $bad"; fi
    done
    bad=$(awk '$1 !~ /unlikely/ && $4 != "around" { print $2, $3 }' "$WORK/calls")
    if [ -z "$bad" ]; then
        pass
    else
        fail "the way of those who do not watch goes through: $bad"
    fi
    # The firing functions themselves.
    hot=$(objdump -t "$BUILD/src/probe/fire.o" |
            awk '/ F / && $NF ~ /^bw_fire_/ && $0 !~ /unlikely/ { print $NF }')
    if [ -z "$hot" ]; then pass; else fail "not among the cold functions: $hot"; fi
fi

# Without USDT: no notes, and all else is the same. Of its own kind, whatever this build is; objects
# of a plain build that know no semaphore are those of this one.
without=$BUILD/without-usdt
make_without() {
    env -C "$ROOT" -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u SANITIZE make -j2 CFLAGS=-O0 \
        BUILD="$without" SANITIZE= USDT=0 "$@"
}
take_objects() {
    cd "$BUILD" || return
    find src -name '*.o' | sort > "$WORK/objects"
    xargs nm -A < "$WORK/objects" | sed -n 's/:.*btrfswalk_.*//p' | sort -u |
        comm -23 "$WORK/objects" - | xargs cp --parents -t "$without"
}
if make_without "$without/features" "$without/xlator-directory" > "$WORK/log" 2>&1 &&
    { ! grep -q SANDBOX=1 "$BUILD/features" || (take_objects); } &&
    make_without "$without/btrfs-walk" >> "$WORK/log" 2>&1; then
    holds "make USDT=0 leaves no notes" [ -z "$(notes "$without/btrfs-walk")" ]
    holds "a build without USDT has no semaphores" [ "$(nm "$without/btrfs-walk" |
            grep -c 'btrfswalk_.*_semaphore')" -eq 0 ]
    holds "a build without USDT lists the same" \
        [ "$("$without/btrfs-walk" "$image" | cksum)" = "$("$PROGRAM" "$image" | cksum)" ]
    holds "it has the same probes" cmp <("$without/btrfs-walk" --probe-list=json) \
        <("$PROGRAM" --probe-list=json)
    "$without/btrfs-walk" --probe block-read-done "$image" 2> "$WORK/events" > /dev/null
    holds "a build without USDT prints probes" grep -q block-read-done "$WORK/events"
else
    fail "make USDT=0: $(tail -n 3 "$WORK/log")"
fi

# bpftrace and the program must have the same counts.
"$PROGRAM" --probe block-read-done "$image" 2> "$WORK/events" > /dev/null
own=$(grep -c ' block-read-done ' "$WORK/events")
holds "there is something to count" [ "$own" -gt 0 ]
"$PROGRAM" --probe-stats "$image" 2>&1 > /dev/null |
    awk '$NF == "block-read-done" { print $3 }' > "$WORK/counted"
holds "the statistics count $(cat "$WORK/counted"), events are $own" \
    [ "$(cat "$WORK/counted")" = "$own" ]
trace=(bpftrace -e "usdt:$PROGRAM:btrfswalk:block__read__done { @ = count(); }" -c
    "$PROGRAM $image")
if [ "$(id -u)" -ne 0 ]; then
    skip root "probes with bpftrace"
elif ! have bpftrace; then
    skip bpftrace "probes with bpftrace"
elif ! bpftrace -e "uprobe:$PROGRAM:main { @ = count(); }" -c "$PROGRAM --version" 2> /dev/null |
    grep -q '^@: 1$'; then
    skip "a kernel that bpftrace can use" "probes with bpftrace"
else
    seen=$("${trace[@]}" 2> /dev/null | sed -n 's/^@: //p')
    holds "bpftrace counts $seen, the program $own" [ "$seen" = "$own" ]
fi
finish
