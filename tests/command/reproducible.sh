#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds in different folders, at different times, in other time zones and languages and with other
# permissions make the same files. A part of the files is built here, and with WORST=1 (`make
# check-long`) everything.
set -uo pipefail
. "$(dirname "$0")/common.bash"

files=(include/btrfs-walk/records.h src/open.o src/draw/markup.o src/cli/main.o
    src/graph/layer_types.o symbols.map btrfs-walk.pc)
[ -z "${WORST:-}" ] || files+=(libexport.a libbtrfs-walk.a libbtrfs-walk.so.2 btrfs-walk \
    man/btrfs-walk.1 man/btrfs-walk-xlators.7)
mkdir "$WORK/sources" # once, because a developer may change them meanwhile
(cd "$ROOT" && cp -r Makefile completions include packaging scripts src "$WORK/sources")
# build FOLDER COMMAND...: builds the files in FOLDER/build; COMMAND changes the environment.
build() {
    local folder=$1
    shift
    mkdir -p "$folder"
    cp -r "$WORK"/sources/* "$folder"
    find "$folder" -exec touch -d "$touched" {} +
    (cd "$folder" && CCACHE_DISABLE=1 "$@" make -s -j2 BUILD=build CFLAGS="-O1 -g" LDFLAGS= \
        SANITIZE= "${files[@]/#/build/}") > "$WORK/log" 2>&1 || cat "$WORK/log"
}
touched='2001-02-03 04:05:06' build "$WORK/one" env
umask 077
touched='2020-03-04 05:06:07' build "$WORK/another/folder" env TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
    LANG=C.UTF-8 HOME=/nonexistent
for file in "${files[@]}"; do
    holds "$file is the same" cmp "$WORK/one/build/$file" "$WORK/another/folder/build/$file"
done
is "no path of the folder" "$(grep -rlaF "$WORK" "$WORK/one/build" | grep -v '\.d$')" ""
finish
