#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds all fuzz targets for OSS-Fuzz, which sets CC, CFLAGS, LIB_FUZZING_ENGINE, SRC, WORK and
# OUT. The programs run where no library is installed, so these are linked statically.
set -eu
cd "$SRC/btrfs-walk"
. scripts/fuzz.d/targets.bash
build=$WORK/btrfs-walk
options=(BUILD="$build" CC="$CC" LDFLAGS="$CFLAGS" NBD=0 ISAL=0 FUSE=0 PNG=0 SANDBOX=0 USDT=0
    CFLAGS="$CFLAGS -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION")
make -s -j"$(nproc)" "${options[@]}" "$build/btrfs-walk"
read -r -a compile <<< "$(make -s "${options[@]}" flags) -Itests"
read -r -a libraries <<< "$(make -s "${options[@]}" STATIC=1 NBD=0 libraries)"
libraries=("${libraries[@]/-ldl/}")

for target in "${fuzz_targets[@]}"; do
    [ "$target" != fuzz_log ] || continue # reads fixtures from the folder of the sources
    fuzz_parts "$target" "$build"
    # shellcheck disable=SC2086 # the engine may be several words
    $CC "${compile[@]}" -DFUZZ_TARGET="$target" tests/fuzz/entry.c "${parts[@]}" \
        "$build/libbtrfs-walk.a" $LIB_FUZZING_ENGINE -pthread -Wl,-Bstatic "${libraries[@]}" \
        -Wl,-Bdynamic -ldl -lm -o "$OUT/$target"
    printf '[libfuzzer]\nmax_len = %d\n' "$longest" > "$OUT/$target.options"
    [ -z "$dictionary" ] || cp "$dictionary" "$OUT/$target.dict"
    [ -z "$inputs" ] || zip -q -j -r "$OUT/${target}_seed_corpus.zip" "$inputs"
done
