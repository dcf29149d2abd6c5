#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# More devices are missing than the redundancy can compensate: check counts the unreadable parts as
# the kernel does, and info, devices and usage call the file system incomplete.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" incomplete raid1-2 || exit 1
image=$BUILD/fixtures/incomplete/dev1.img
read -r bytes files < "$ROOT/fixtures/incomplete/unreadable"

expect "check of an incomplete file system" 4 'error +chunk-unreadable ' check "$image"
is "bytes and files, as the kernel counts them" "$(awk '/^error chunk-unreadable / {
    for (i = 1; i < NF; i++) {
        if ($(i + 1) == "bytes") bytes += $i
        if ($(i + 1) ~ /^files?$/) files += $i
    }
} END { print bytes, files }' "$WORK/out")" "$bytes $files"
is "nothing else is an error" "$(grep -c '^error' "$WORK/out")" \
    "$(grep -c '^error chunk-unreadable' "$WORK/out")"
expect "a quick check" 4 'chunk-unreadable' check --quick "$image"
holds "knows the bytes in use" out_has '3 of 4 stripes .*: some or all of the [0-9]+ bytes in use '
expect "info of an incomplete file system" 0 missing info "$image"
holds "info calls the file system incomplete" out_has \
    '^State: +incomplete, 3 of 4 devices missing, 2 of [0-9]+ chunks cannot be read as a whole'
expect "usage of an incomplete file system" 0 missing usage "$image"
holds "usage counts the incomplete chunks of data" \
    out_has '^Data,RAID5: .*, incomplete: [0-9]+ of [0-9]+ chunks?$'
holds "usage calls the metadata complete" out_has '^Metadata,RAID1C4: [^,]*, [^,]*%\)$'
expect "devices of an incomplete file system" \
    0 'the file system is incomplete: 2 of [0-9]+ chunks cannot' devices --json \
    "$image"
is "devices counts the chunks that lack each device" \
    "$(grep -c '"device_state":"missing",.*"incomplete_chunks":2' "$WORK/out")" 3

# A file system that is only degraded.
image=$BUILD/fixtures/raid1-2/dev1.img
expect "degraded: check" 0 ' 0 errors, 1 warning' check "$image"
expect "degraded: info" 0 missing info "$image"
holds "info calls the file system degraded" out_has '^State: +degraded, 1 of 2 devices missing'
expect "degraded: devices" 0 missing devices "$image"
is "devices does not call a degraded file system incomplete" "$(grep -c incomplete "$WORK/err")" 0
finish
