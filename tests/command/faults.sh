#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Injected faults on images that the kernel wrote: with each redundant profile any device, or any
# copy, may fail in any way without changing the list. And the messages when no copy is left.
set -uo pipefail
. "$(dirname "$0")/common.bash"

images=$BUILD/fixtures
profiles=(dup raid1-2 raid1-3 raid1c3-3 raid1c4-4 raid10-2 raid10-4 raid5-2 raid5-3 raid5-5 raid6-3
    raid6-4 raid6-6)
"$ROOT/scripts/unpack-fixtures" "$images" "${profiles[@]}" lost-tree-fs || exit 1
actions=(eio flip zero short stale)
# actions_of NUMBER: one of them, in turn; all of them with WORST=1.
actions_of() {
    if [ -n "${WORST:-}" ]; then echo "${actions[*]}"; else echo "${actions[$1 % 5]}"; fi
}
devices=()

# walk ARGUMENTS...: returns the status; the output is in $WORK, the sorted list in $WORK/have.
walk() {
    timeout 60 "$PROGRAM" -0 "$@" "${devices[@]}" > "$WORK/out" 2> "$WORK/err" < /dev/null
    local status=$?
    LC_ALL=C sort -z "$WORK/out" > "$WORK/have"
    return "$status"
}

# same_with WHAT ARGUMENTS...: everything must be listed, without messages.
same_with() {
    local what=$1 status
    shift
    walk "$@"
    status=$?
    if [ "$status" -ne 0 ]; then
        fail "$what: exit status $status: $(head -n 2 "$WORK/err")"
    elif ! cmp -s "$WORK/want" "$WORK/have"; then
        fail "$what: another list"
    else
        pass
    fi
}

# said WHAT REGEX: stderr must have a line that matches.
said() {
    if grep -qE -- "$2" "$WORK/err"; then
        pass
    else
        fail "$1: stderr lacks '$2': $(head -n 2 "$WORK/err")"
    fi
}

silent() {
    if [ -s "$WORK/err" ]; then
        fail "$1: unexpected on stderr: $(head -n 2 "$WORK/err")"
    else
        pass
    fi
}

# use NAME: the images of a fixture, and its list.
use() {
    mapfile -t devices < <(printf '%s\n' "$images/$1"/dev*.img | sort -V)
    if [ -e "$ROOT/fixtures/$1/paths0" ]; then
        cp "$ROOT/fixtures/$1/paths0" "$WORK/want"
    else
        zstd -q -d -c "$ROOT/fixtures/$1/paths0.zst" > "$WORK/want"
    fi
}

any_device_may_fail() {
    local name=$1 number action rule notes=0
    for ((number = 1; number <= ${#devices[@]}; number++)); do
        rule=debug/error-gen@device-$number
        for action in $(actions_of "$number"); do
            same_with "$name: $action of device $number" \
                --insert "$rule,kind=tree-block,action=$action"
            silent "$name: $action of device $number"
            same_with "$name: $action of device $number, raw reads as well" -v \
                --insert "$rule,kind=tree-block,action=$action" \
                --insert "$rule,kind=raw,action=$action"
            notes=$((notes + $(grep \
                    -c '^btrfs-walk: note: .*tree block .*used mirror 2 .*\[features/verify\]$' \
                    "$WORK/err")))
        done
        same_with "$name: half of device $number" --insert "$rule,kind=tree-block,rate=50%,seed=7"
    done
    if [ "$notes" -ge 1 ]; then pass; else fail "$name: only $notes notes"; fi
}

any_copy_may_fail() {
    local name=$1 copy action
    for copy in 1 2; do
        for action in $(actions_of "$((copy + ${#devices[@]} + ${#1}))"); do
            same_with "$name: $action of copy $copy" \
                --insert "debug/error-gen@chunk-map,mirror=$copy,action=$action"
        done
    done
}

for profile in "${profiles[@]}"; do
    use "$profile"
    any_copy_may_fail "$profile"
    [ ${#devices[@]} -eq 1 ] || any_device_may_fail "$profile"
done

# RAID6: two devices at once. Not with single flipped bits, which are corrected without parity.
use raid6-4
for pair in "1 2" "1 3" "1 4" "2 3" "2 4" "3 4"; do
    read -r first second <<< "$pair"
    for action in eio zero; do
        same_with "raid6-4: $action of device $first, zeros of device $second" \
            --insert "debug/error-gen@device-$first,kind=tree-block,action=$action" \
            --insert "debug/error-gen@device-$first,kind=raw,action=$action" \
            --insert "debug/error-gen@device-$second,kind=tree-block,action=zero" \
            --insert "debug/error-gen@device-$second,kind=raw,action=zero"
        silent "raid6-4: $action of device $first, zeros of device $second"
    done
done

# Without a superblock, the blocks stored on a device show which one it is.
use raid1-2
walk --insert debug/error-gen@device-1,kind=super
is "a device without superblock: exit status" $? 0
said "a device without superblock" 'warning: .*dev1.img is device 1: .*: injected I/O error'
# If those cannot be read either, the device counts as missing: the list is complete, but the exit
# status is 1, since an image that the user passed is not used.
walk --insert debug/error-gen@device-1,kind=super --insert debug/error-gen@device-1,kind=raw
status=$?
if [ "$status" -eq 1 ] && cmp -s "$WORK/want" "$WORK/have"; then
    pass
else
    fail "a device without superblock: exit status $status"
fi
said "a device without superblock" \
    'warning: .*dev1.img is not used: no superblock: .*injected I/O error'
said "a device without superblock" 'warning: .*device 1 .* is missing: the file system is degraded'

# What -vv prints about an error: the layer where it began, and the cause.
same_with "the way of an error" -vv --insert debug/error-gen@device-1,kind=tree-block
said "-vv names the layer of an error" \
    '^btrfs-walk:     born in error-gen@device-1 at [0-9]+, came through chunk-map'
said "-vv names the cause of an error" \
    '^btrfs-walk:   because: mirror 1 on device 1 at [0-9]+: injected I/O error at [0-9]+: '
use raid5-3
same_with "the way of an error under parity" \
    -vv --insert debug/error-gen@device-2,kind=tree-block,action=short
said "where it was born under parity" \
    '^btrfs-walk:     born in error-gen@device-2 at [0-9]+, came through chunk-map at [0-9]+'

# All copies of the root block of tree 5 fail: part of the list is lost, and the block is named.
use raid1c3-3
walk -v --insert debug/error-gen@chunk-map,kind=tree-block,mirror=1,action=flip
block=$(sed -n 's/^.*note: .*tree block \([0-9]*\) of subvolume 5 (level .*/\1/p' "$WORK/err" |
    head -n 1)
walk -vv --insert "debug/error-gen@chunk-map,start=$block,end=$((block + 1)),action=zero"
status=$?
if [ "$status" -eq 1 ]; then pass; else fail "a lost block: exit status $status"; fi
if [ -z "$(LC_ALL=C comm -z -13 "$WORK/want" "$WORK/have" | tr -d '\0')" ]; then
    pass
else
    fail "a lost block: paths that do not exist"
fi
said "a lost block" \
    "^btrfs-walk: damage: .*tree block $block of subvolume 5 \(level [0-9]\): all 3 mirrors are \
bad: mirror 1 on device [0-9] at [0-9]+: .*checksum mismatch \[features/verify\]$"
said "-vv has the reasons of all copies" \
    "^btrfs-walk:   because: mirror 3 on device [0-9] at [0-9]+: .*checksum mismatch"
said "the way of a lost block" "^btrfs-walk:   born in verify at $block, came through node-cache$"
if [ "$(grep -c '^btrfs-walk: ' "$WORK/err")" -eq "$(grep -cE \
        '^btrfs-walk: (damage|  |note: (no )?sandbox: )' "$WORK/err")" ]; then
    pass
else
    fail "more is said than the lost block"
fi
if [ "$(grep -c '^btrfs-walk:   because: ' "$WORK/err")" -eq 3 ]; then
    pass
else
    fail "not one reason for each copy"
fi

# Without the root block of tree 5, every file that the walk lists can also be read by its path,
# with the right contents.
image=$images/lost-tree-fs/dev1.img
"$PROGRAM" -0 --type f,d,l,p,s,c,b "$image" > "$WORK/all" 2> /dev/null
"$PROGRAM" -0 "$image" > "$WORK/files" 2> /dev/null
for command in "stat --json" ls extents cat; do
    case $command in extents | cat) list=files ;; *) list=all ;; esac
    # shellcheck disable=SC2086 # words
    xargs -0 -a "$WORK/$list" "$PROGRAM" $command "$image" > "$WORK/out" 2> "$WORK/err"
    refused=$(grep -v '^btrfs-walk: damage: .*tree block ' "$WORK/err" |
            grep -vcE 'not a symbolic link')
    if [ -s "$WORK/out" ] && [ "$refused" -eq 0 ]; then
        pass
    else
        fail "$command of what the walk lists: $refused refused: $(head -n 3 "$WORK/err")"
    fi
done
# Another fixture has the same files, and the hashes of their contents as read through a mount.
"$PROGRAM" sum -0 "$image" 2> /dev/null | LC_ALL=C sort -z -k 1.67 > "$WORK/have"
zstd -q -d -c "$ROOT/fixtures/lost-tree-extent/sums0.zst" > "$WORK/want"
if cmp -s "$WORK/want" "$WORK/have"; then pass; else fail "other contents without a root"; fi

finish
