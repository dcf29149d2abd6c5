# SPDX-License-Identifier: GPL-2.0-or-later
# Common code of the command tests: paths and counting. Sourced.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=$(cd "$ROOT" && realpath -m "${BUILD:-build}")
PROGRAM=$BUILD/btrfs-walk
WORK=$(mktemp -d)
# A background job that a signal ends before it has started its program runs the trap, too.
trap '[ "$BASHPID" != $$ ] || rm -rf "$WORK"' EXIT
read -ra COMPILER <<< "${CC:-cc}" # may be several words, like "ccache gcc"
# The same letters, order and messages on every machine: a bare container has no locale.
export LC_ALL=C.UTF-8
unset LANGUAGE
export TZ=${TZ:-UTC0}
passed=0 failed=0 skipped=0
# The search for leaks is a quarter of the time that a program with sanitizers takes to start and
# end. Where a sweep tries a share of the inputs, `expect` has that share of the programs search.
starts=0
[ -z "${SWEEP:-}" ] || export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

pass() { passed=$((passed + 1)); }

# fail DESCRIPTION: prints it with the lines of the test that led here, outermost first, with the
# description before it, which it may continue, and with the command line of the last `expect`.
fail() {
    local frame lines=()
    for ((frame = ${#BASH_SOURCE[@]} - 1; frame > 0; frame--)); do
        [[ ${BASH_SOURCE[frame]} = *.bash ]] || lines+=("${BASH_LINENO[frame - 1]}")
    done
    failed=$((failed + 1))
    printf 'FAILED: line %s: %s\n' "$(printf '%s\n' "${lines[@]}" | paste -sd' ')" "$1"
    [ -z "${described:-}" ] || printf '    the test before it: %s\n' "$described"
    [ -z "${command_line:-}" ] || printf '    the last expect ran: %s\n' "$command_line"
}

# skip NEEDED WHAT: WHAT cannot be tested without NEEDED: a tool, "root", "a build with ...".
# scripts/run-tests adds these up, so the same requirement must be worded the same way everywhere.
skip() { skipped=$((skipped + 1)); printf 'skipped: without %s: %s\n' "$1" "${2:-}"; }

# timeout SECONDS COMMAND...: ends what hangs. SECONDS is more than enough on an idle machine; a
# busy one gets ten times as much, and an emulated one SLOWNESS times that.
timeout() { command timeout "$(($1 * 10 * ${SLOWNESS:-1}))" "${@:2}"; }

# soon COMMAND...: waits until the command succeeds, which it does at once on an idle machine; fails
# after ten minutes.
soon() {
    local tries
    for ((tries = 0; tries < 30000 * ${SLOWNESS:-1}; tries++)); do
        "$@" && return
        sleep 0.02
    done
    return 1
}

# main_lines FILE: the lines of an output that explain a failure: the first ones, or the last one of
# an exception in Python.
main_lines() {
    if grep -q '^Traceback ' "$1"; then tail -n 1 "$1" | cut -c -300; else head -n 3 "$1"; fi
}

# holds DESCRIPTION COMMAND...: the command must succeed.
holds() {
    local what=$1
    shift
    if "$@" > "$WORK/holds" 2>&1; then pass; else fail "$what: $(main_lines "$WORK/holds")"; fi
    described=$what
}

# is DESCRIPTION VALUE EXPECTED
is() {
    if [ "$2" = "$3" ]; then pass; else fail "$1: '$2', not '$3'"; fi
    described=$1
}

# written FILE...: when the files were written last. Even a write of the same bytes changes that.
# Unlike a hash, it costs nothing for large sparse images.
written() { stat -c '%y %z' -- "$@"; }

# same_image IMAGE IMAGE: whether two images are the same; holes are not read.
same_image() { python3 "$ROOT/tests/support/same_image.py" "$@"; }

# sweep STEP: passes on every STEPth line, from the first; all of them with WORST=1, which
# `make check-long` sets.
sweep() { awk -v step="$([ -n "${WORST:-}" ] && echo 1 || echo "$1")" 'NR % step == 1 % step'; }

# keep_json ARGUMENTS... < OUTPUT: keeps the JSON of the program with these arguments, so that
# `finish` can compare it with docs/schema.json. The first rows are enough.
keep_json() {
    [ -d "$WORK/.json" ] || mkdir -p "$WORK/.json"
    { printf '%s \n' "${*//$'\n'/ }" && head -n 300; } > "$WORK/.json/$BASHPID.$EPOCHREALTIME"
}

# run_json ARGUMENTS...: runs the program, and keeps its JSON. Tests call it, or `expect`, instead
# of the program if an argument is --json.
run_json() {
    local file status
    file=$(mktemp -p "$WORK")
    timeout 60 "$PROGRAM" "$@" > "$file" < /dev/null
    status=$?
    keep_json "$@" < "$file"
    cat "$file"
    rm "$file"
    return "$status"
}

# has_line REGEX FILE: whether a line of the file matches. grep takes a third of the time of the
# program that is tested, so it is only started for long or special text, or expressions of its own.
has_line() {
    local text='' line lines status=2
    IFS= read -r -N 2000 text < "$2"
    [ -n "$text" ] || return
    if [ ${#text} -lt 2000 ] && [[ $text != *[^$' \n\t'!-~]* ]]; then
        mapfile -t lines <<< "${text%$'\n'}"
        for line in "${lines[@]}"; do
            [[ $line =~ $1 ]]
            status=$?
            [ "$status" -eq 1 ] || break
        done
    fi
    if [ "$status" -eq 2 ]; then grep -qE -- "$1" "$2"; else return "$status"; fi
}

# expect DESCRIPTION STATUS REGEX ARGUMENTS...: runs the program. It must end with this status, and
# stderr must match the expression; '-' means that stderr must be empty. Its output is in
# $WORK/out and $WORK/err. Ten minutes of processor time end it.
expect() {
    local what=$1 want=$2 expression=$3 status
    shift 3
    printf -v command_line '%q ' btrfs-walk "$@"
    starts=$((starts + 1))
    (
        ulimit -S -t $((600 * ${SLOWNESS:-1})) 2> /dev/null # fails if the limit is lower already
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=$((starts % ${SWEEP:-1} == 0)) \
            exec "$PROGRAM" "$@"
    ) > "$WORK/out" 2> "$WORK/err" < /dev/null
    status=$?
    if [ "$status" -ne "$want" ]; then
        fail "$what: exit status $status, not $want: $(head -n 2 "$WORK/err")"
    elif [ "$expression" = - ] && [ -s "$WORK/err" ]; then
        fail "$what: unexpected on stderr: $(head -n 2 "$WORK/err")"
    elif [ "$expression" != - ] && ! has_line "$expression" "$WORK/err"; then
        fail "$what: stderr lacks '$expression': $(head -n 2 "$WORK/err")"
    else
        pass
    fi
    described=$what
    case " $* " in *' --json '* | *' --json='*) keep_json "$@" < "$WORK/out" ;; esac
}

# out_has REGEX: whether stdout of the last `expect` has such a line. If not, prints how it begins,
# for the message of `holds`.
out_has() {
    has_line "$1" "$WORK/out" && return
    echo "no line matches '$1'; the output begins: $(head -n 2 "$WORK/out" | head -c 300)"
    return 1
}

# open_unread: opens $unread, a pipe that nobody reads from the beginning.
open_unread() { exec {unread}> >(exec true) && wait $!; }

# recorded FIXTURE LIST: prints a list of the fixture, such as paths0, which the kernel's mount
# showed.
recorded() {
    local file=$ROOT/fixtures/$1/$2
    if [ -e "$file" ]; then cat "$file"; else zstd -qdc "$file.zst"; fi
}

# sums_match FIXTURE [FILE]: whether $WORK/out, or the file, is the output of `sum -0` with the
# hashes that the fixture has of all its files.
sums_match() {
    [ -s "${2:-$WORK/out}" ] &&
        cmp <(recorded "$1" sums0 | LC_ALL=C sort -z) <(LC_ALL=C sort -z "${2:-$WORK/out}")
}

# same_bytes FILE FILE: whether both, which may be pipes, have the same bytes, and at least one. For
# two outputs of the program, which would also be the same if it printed nothing.
same_bytes() {
    cat "$1" > "$WORK/same-bytes"
    [ -s "$WORK/same-bytes" ] || { echo 'the first one is empty'; return 1; }
    cmp "$WORK/same-bytes" "$2"
}

# change IMAGE CHANGE...: changes items of an image, and says why if it cannot. One process of
# tests/support/change_item.py, which describes the changes, makes all those of a test.
change() {
    local answer='no answer'
    [ -n "${CHANGER_PID:-}" ] ||
        coproc CHANGER { exec python3 "$ROOT/tests/support/change_item.py"; }
    printf '%s\n' "$*" >&"${CHANGER[1]}" && read -r answer <&"${CHANGER[0]}"
    [ "$answer" = done ] || { printf '%s\n' "$answer"; return 1; }
}

# disk TARGET IMAGE...: makes a disk with a partition for each image.
disk() {
    python3 - "$@" << 'END'
import os, struct, sys
target, *images = sys.argv[1:]
table, start = bytearray(512), 1 << 20
with open(target, "wb") as disk:
    for number, name in enumerate(images):
        length = os.path.getsize(name)
        table[450 + 16 * number] = 0x83
        struct.pack_into("<II", table, 454 + 16 * number, start // 512, length // 512)
        disk.truncate(start + length)
        os.system(f"dd if={name} of={target} bs=64K seek={start >> 16} conv=notrunc,sparse "
                  "status=none")
        start += -(-length // (1 << 20)) << 20
    table[510:] = b"\x55\xaa"
    disk.seek(0)
    disk.write(table)
END
}

# have TOOL...: whether all of these programs are installed.
have() { local tool; for tool; do command -v "$tool" > /dev/null || return 1; done; }

# have_mount IMAGE DIR: whether `mount` can be used here; says why not.
have_mount() {
    grep -q FUSE=1 "$BUILD/features" || { echo 'built without libfuse 3'; return 1; }
    [ -w /dev/fuse ] && have fusermount3 || { echo 'no /dev/fuse, or no fusermount3'; return 1; }
    # FUSE messages have the byte order of the machine, so an emulated program needs the native one.
    [ "$(od -An -tu1 -j5 -N1 "$PROGRAM")" -eq "$(od -An -tu1 -j5 -N1 "$BASH")" ] ||
        { echo 'the program is for a machine of another byte order'; return 1; }
    # Whoever may mount a tmpfs may also use /dev/fuse; if `mount` fails then, it is a bug.
    { unshare -m mount -t tmpfs none "$2" && : <> /dev/fuse; } 2> /dev/null && return
    timeout 20 "$PROGRAM" mount --background "$1" "$2" 2>&1 < /dev/null && fusermount3 -u "$2"
}

# have_openpty: whether Python can make pseudo-terminals.
have_openpty() { python3 -c 'import os; os.openpty()' 2> /dev/null; }

# have_terminal: whether script(1) can give a program a terminal.
have_terminal() { have script && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; }

# finish: prints the summary line, and exits with the status.
finish() {
    if [ -d "$WORK/.json" ] && have python3; then
        holds "JSON as in docs/schema.json" python3 "$ROOT/tests/support/validate_json.py" \
            "$ROOT/docs/schema.json" "$WORK/.json"
    fi
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}
