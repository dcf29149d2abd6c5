#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs into a folder, builds a program against what is there (headers, .pc file, static and shared library), and
# uninstalls again: nothing may be left.
set -uo pipefail
. "$(dirname "$0")/common.bash"

prefix=$WORK/usr
(cd "$ROOT" && make install BUILD="$BUILD" PREFIX="$prefix") > "$WORK/log" 2>&1 || { cat "$WORK/log"; fail "make install"; finish; }
pass
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain || exit 1

cat > "$WORK/list.c" <<'PROGRAM'
#include <btrfs-walk/fs.h>
#include <btrfs-walk/walk.h>
#include <stdio.h>

static struct bw_error *print(void *context, const char *paths, size_t length)
{
    (void)context;
    fwrite(paths, 1, length, stdout);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct bw_fs_options options = {.struct_size = sizeof(struct bw_fs_options), .paths = (const char *const *)argv + 1,
                                          .path_count = (size_t)argc - 1,
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY};
    const struct bw_walk_options walk = {.struct_size = sizeof walk, .terminator = '\n', .consume = print};
    struct bw_fs *fs;
    struct bw_error *error = bw_fs_open(&options, &fs);
    if (!error) {
        error = bw_walk(fs, &walk, NULL);
        bw_fs_close(fs);
    }
    if (error)
        fprintf(stderr, "%s\n", error->message);
    bw_error_free(error);
    return error != NULL;
}
PROGRAM
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
want=$("$PROGRAM" "$BUILD/fixtures/plain/dev1.img" | cksum)
sanitizers=
[ "$(nm "$BUILD/libbtrfs-walk.a" 2> /dev/null | grep -c __asan_init)" -eq 0 ] || sanitizers="-fsanitize=address,undefined"

# shellcheck disable=SC2046,SC2086 # flags are several words
if "${COMPILER[@]}" $sanitizers -o "$WORK/shared" "$WORK/list.c" $(pkg-config --cflags --libs btrfs-walk) 2> "$WORK/log" &&
    [ "$(LD_LIBRARY_PATH=$prefix/lib "$WORK/shared" "$BUILD/fixtures/plain/dev1.img" | cksum)" = "$want" ]; then
    pass
else
    fail "a program with the shared library: $(head -n 3 "$WORK/log")"
fi
# shellcheck disable=SC2046,SC2086
if "${COMPILER[@]}" $sanitizers -o "$WORK/static" "$WORK/list.c" $(pkg-config --cflags btrfs-walk) "$prefix/lib/libbtrfs-walk.a" \
    $(pkg-config --static --libs-only-l btrfs-walk | sed 's/-lbtrfs-walk//') -pthread 2> "$WORK/log" &&
    [ "$("$WORK/static" "$BUILD/fixtures/plain/dev1.img" | cksum)" = "$want" ]; then
    pass
else
    fail "a program with the static library: $(head -n 3 "$WORK/log")"
fi
(cd "$ROOT" && make uninstall BUILD="$BUILD" PREFIX="$prefix") > /dev/null 2>&1
left=$(find "$prefix" -type f -o -type l)
if [ -z "$left" ]; then pass; else fail "uninstall leaves $left"; fi
finish
