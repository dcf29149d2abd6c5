#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Disks that are full: systems such as NFS report it only when a file is closed, or when --fsync
# asks for it. Each command that writes files ends with an error and the name of the file.
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" differences past lost-tree-extent || exit 1
image=$images/differences/dev1.img
past=$images/past/dev1.img
damaged=$images/lost-tree-extent/dev1.img

# run PRELOADED EXPRESSION ARGUMENTS...: in a new folder, with a library; stderr must match.
run() {
    local preloaded=$1 expression=$2 status
    shift 2
    rm -rf "$WORK/folder"
    mkdir "$WORK/folder"
    (cd "$WORK/folder" && LD_PRELOAD=$preloaded timeout 60 "$PROGRAM" "$@") \
        > /dev/null 2> "$WORK/err" < /dev/null
    status=$?
    if [ "$status" -eq 1 ] && grep -qE -- "$expression" "$WORK/err"; then
        pass
    else
        fail "$1 $2: status $status, without '$expression': $(head -n 2 "$WORK/err")"
    fi
}

each_command() { # EXPRESSION of the name, and of what is reported about a folder
    local file="$1: $2" folder=$3
    run "$WORK/fail.so" "(/[a-z]+/.*: cannot write|$folder): $2" \
        extract "${sync[@]}" -C out "$image"
    run "$WORK/fail.so" "$2" extract "${sync[@]}" --manifest list -C out "$image"
    run "$WORK/fail.so" "(cannot write .*|$folder): $2" extract --subvolumes "${sync[@]}" -C out \
        "$image"
    run "$WORK/fail.so" "(/.*: cannot write|$folder): $2" deleted "${sync[@]}" --extract out "$past"
    run "$WORK/fail.so" "$file" tar "${sync[@]}" -f list "$image"
    run "$WORK/fail.so" "$file" report "${sync[@]}" --check none -f list "$image"
    run "$WORK/fail.so" "$file" free "${sync[@]}" --extract list "$image"
    run "$WORK/fail.so" "$file" copy "${sync[@]}" -f list "$image"
    run "$WORK/fail.so" "list/1.img.*: $2" copy "${sync[@]}" -C list "$image"
    run "$WORK/fail.so" "$file" metadump "${sync[@]}" -f list "$image"
    run "$WORK/fail.so" "$file" send "${sync[@]}" -f list "$image" third
    run "$WORK/fail.so" "0001-third.btrfs.*: $2" send "${sync[@]}" -C . "$image" third
    run "$WORK/fail.so" "$file" subvolumes "${sync[@]}" --statedump list "$image"
}

if [ -z "${SANITIZE:-}" ] && "${COMPILER[@]}" -shared -fPIC -w -o "$WORK/fail.so" \
    "$ROOT/tests/preload/fail_close.c" -ldl 2> /dev/null &&
    LD_PRELOAD=$WORK/fail.so "$PROGRAM" --version > /dev/null 2>&1; then
    sync=()
    each_command 'cannot write to list' 'Disk quota exceeded' 'no folder'
    # A file that is not complete does not keep its name.
    run "$WORK/fail.so" 'cannot write' extract -C out "$image"
    is "an incomplete file does not keep its name" "$(find "$WORK/folder/out" -type f | wc -l)" 0
    export FAIL_SYNC=1
    holds "without --fsync nothing is synced" env LD_PRELOAD="$WORK/fail.so" "$PROGRAM" extract -q \
        -C "$WORK/none" "$image"
    sync=(--fsync)
    each_command 'cannot write list to the disk' 'Input/output error' \
        'cannot write (the files|out) to the disk'
    LD_PRELOAD=$WORK/fail.so expect "walk to stdout that cannot be synced" \
        1 'cannot write stdout to the disk' --fsync "$image"
    LD_PRELOAD=$WORK/fail.so expect "check to stdout that cannot be synced" \
        8 'cannot write stdout to the disk' check --fsync \
        "$image"
    LD_PRELOAD=$WORK/fail.so expect "check of a damaged image" 12 \
        'cannot write stdout to the disk' check --fsync "$damaged"
    unset FAIL_SYNC
else
    skip "a compiler" "full disks"
fi

# check has exit statuses of its own: 8 if its output is incomplete, and 4 in addition if there are
# errors.
check_to() { # check_to WHERE IMAGE: prints the exit status
    case $1 in
    closed) "$PROGRAM" check --fsync "$2" >&- 2> "$WORK/err" ;;
    full) "$PROGRAM" check --fsync "$2" > /dev/full 2> "$WORK/err" ;;
    esac
    echo $?
}
for where in closed full; do
    is "check ends with status 8 if stdout is $where" "$(check_to "$where" "$image")" 8
    is "check of a damaged image, stdout is $where" "$(check_to "$where" "$damaged")" 12
done

# In the sandbox, the system calls are allowed; pipes and devices have no disk.
holds "tar --fsync works in the sandbox" "$PROGRAM" tar --fsync -f "$WORK/archive" "$image"
holds "extract --fsync works in the sandbox" "$PROGRAM" extract --fsync -C "$WORK/one" "$image"
holds "extract --subvolumes --fsync works in the sandbox" \
    "$PROGRAM" extract --subvolumes --fsync -C "$WORK/two" "$image"
holds "--fsync ignores a device" "$PROGRAM" send --fsync -f /dev/null "$image" third
"$PROGRAM" --fsync "$image" 2>&1 | cat > "$WORK/paths"
is "--fsync ignores a pipe" "$(grep -c 'cannot write' "$WORK/paths")" 0
finish
