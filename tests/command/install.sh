#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs into a folder, builds the examples with what was installed (headers, .pc file, shared and
# static library), runs them, and uninstalls again: nothing may be left.
set -uo pipefail
. "$(dirname "$0")/common.bash"

stage=$WORK/stage
prefix=$stage/usr/local
(cd "$ROOT" && make install BUILD="$BUILD" DESTDIR="$stage") > "$WORK/log" 2>&1 ||
    { cat "$WORK/log"; fail "make install"; finish; }
pass
# The files that are installed here are not in the sysroot of another machine.
foreign=${PKG_CONFIG_SYSROOT_DIR:-}
unset PKG_CONFIG_SYSROOT_DIR
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 gone || exit 1
image=$BUILD/fixtures/plain/dev1.img
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
flags() { pkg-config --define-variable=prefix="$prefix" "$@" btrfs-walk; }
sanitizers=
[ "$(nm "$BUILD/libbtrfs-walk.a" 2> /dev/null | grep -c __asan_init)" -eq 0 ] ||
    sanitizers="-fsanitize=address,undefined"

# build FILE SOURCE FLAGS...
build() {
    local file=$1 source=$2
    shift 2
    [[ $source == /* ]] || source=$ROOT/examples/$source
    # shellcheck disable=SC2046,SC2086 # flags are several words
    holds "$file is built" "${COMPILER[@]}" -std=c11 -Wall -Wextra -Werror $sanitizers \
        $(flags --cflags) ${LDFLAGS:-} \
        -o "$WORK/$file" "$source" "$@"
}
# shellcheck disable=SC2046
for example in list-files list-sizes copy-out tree-items backup; do
    build "$example" "$example.c" $(flags --libs)
done
# shellcheck disable=SC2046
build static list-sizes.c "$prefix/lib/libbtrfs-walk.a" \
    $(flags --static --libs-only-l | sed 's/-lbtrfs-walk//') -pthread
# A program that does not set which older states it wants.
cat > "$WORK/older.c" << 'C'
#include <stdio.h>
#include "btrfs-walk/history.h"

static struct bw_error *print_version(void *context, const struct bw_version *version)
{
    printf("%s %llu\n", (const char *)context, (unsigned long long)version->generation);
    return NULL;
}

static struct bw_error *print_deleted(void *context, const struct bw_entry *entry)
{
    printf("%s %.*s\n", (const char *)context, (int)entry->path_length, entry->path);
    return NULL;
}

int main(int count, char **arguments)
{
    const char *path = arguments[count - 2];
    const struct bw_fs_options images = {
        .struct_size = sizeof images, .paths = &path, .path_count = 1};
    const struct bw_versions_options versions = {.struct_size = sizeof versions,
                                                 .images = &images,
                                                 .path = arguments[count - 1],
                                                 .visit = print_version,
                                                 .context = "version"};
    const struct bw_deleted_options options = {.struct_size = sizeof options, .images = &images};
    struct bw_deleted *deleted;
    const struct bw_deleted_state *state;
    struct bw_fs *fs;
    if (bw_fs_open(&images, &fs) || bw_versions(fs, &versions) ||
        bw_deleted_open(fs, &options, &deleted))
        return 1;
    while (!bw_deleted_next(deleted, &state) && state)
        if (bw_deleted_visit(deleted, 0, print_deleted, "deleted"))
            return 1;
    bw_deleted_close(deleted);
    bw_fs_close(fs);
    return 0;
}
C
# shellcheck disable=SC2046
build older "$WORK/older.c" $(flags --libs)
mkdir "$WORK/toys"
build toys/bad-range.so bad-range.c -shared -fPIC
long=$(wc -l "$ROOT"/examples/*.c | awk '$2 != "total" && $1 > 40')
is "an example is at most 40 lines long" "$long" ""

# Output of the examples.
export LD_LIBRARY_PATH=$prefix/lib
plain_names=$BUILD/fixtures/raid1-2/dev1.img
"$PROGRAM" -q --raw -o size,path "$plain_names" |
    awk -F '\t' '{ printf "%12s %s\n", $1, $2 }' > "$WORK/want"
for program in list-sizes static; do
    "$WORK/$program" "$plain_names" > "$WORK/have" 2> "$WORK/err"
    is "$program ends with status 0" $? 0
    holds "$program lists all files" same_bytes "$WORK/have" "$WORK/want"
done
"$WORK/list-files" "$plain_names" > "$WORK/have" 2> "$WORK/err"
holds "list-files lists the paths" same_bytes "$WORK/have" <("$PROGRAM" -q --raw "$plain_names")
"$WORK/list-files" "$WORK/nothing" > "$WORK/have" 2> "$WORK/err"
is "status of list-files without an image" $? 1
holds "list-files says why it cannot open an image" \
    grep -q 'cannot open .*/nothing: No such file' "$WORK/err"
# The files changed since transaction 8: their contents, and the attributes of one.
gone=$BUILD/fixtures/gone/dev1.img
"$WORK/backup" "$gone" 8 > "$WORK/have" 2> "$WORK/err"
is "backup ends with status 0" $? 0
is "backup prints the files that changed" "$(grep -acE '^[0-9]+ /' "$WORK/have")" \
    "$("$PROGRAM" -o transid --raw --type f "$gone" | awk '$1 > 8' | wc -l)"
"$WORK/backup" "$gone" 0 > "$WORK/have" 2> "$WORK/err"
while IFS=$'\t' read -r size path; do
    holds "backup prints the contents of $path" \
        cmp <("$PROGRAM" cat "$gone" "$path") \
        <(grep -aFA 999999 "$size $path" "$WORK/have" | sed 1d | head -c "$size")
done < <("$PROGRAM" -o size,path --raw "$gone")

"$WORK/list-sizes" "$WORK/log" > /dev/null 2> "$WORK/err"
is "list-sizes of a text file ends with status 1" $? 1
holds "list-sizes says that there is no superblock" grep -q 'superblock' "$WORK/err"
gone=$BUILD/fixtures/gone/dev1.img
{
    "$PROGRAM" versions -o generation "$gone" /top/kept/edited | sed 's/^/version /'
    "$PROGRAM" deleted -o path "$gone" | sed 's/^/deleted /'
} > "$WORK/want"
"$WORK/older" "$gone" /top/kept/edited > "$WORK/have" 2> "$WORK/err"
is "status of the search for older states" $? 0
LC_ALL=C sort -o "$WORK/want" "$WORK/want"
LC_ALL=C sort -o "$WORK/have" "$WORK/have"
holds "all of them are found" cmp "$WORK/want" "$WORK/have"
holds "more than one version is found" [ "$(grep -c version "$WORK/have")" -gt 1 ]
"$PROGRAM" cat "$image" /top-file > "$WORK/want"
"$WORK/copy-out" "$image" /top-file > "$WORK/have"
holds "copy-out writes the contents" cmp "$WORK/want" "$WORK/have"
"$WORK/copy-out" "$image" /nowhere > /dev/null 2> "$WORK/err"
is "copy-out of a file that does not exist" $? 1
"$WORK/tree-items" "$image" 5 > "$WORK/items"
is "tree-items ends with status 0" $? 0
holds "an item for each name" [ "$(grep -c ' DIR_INDEX ' "$WORK/items")" -gt 50 ]
holds "tree-items prints the inode of the top directory" \
    grep -qxE '256 INODE_ITEM 0: 160 bytes' "$WORK/items"
export BTRFS_WALK_XLATOR_PATH=$WORK
expect "the layer is described" 0 - xlators toys/bad-range
if [ -z "$sanitizers" ]; then
    expect "the layer makes reads fail" 2 'a bad range was read' \
        --insert toys/bad-range@device-1,to=1E "$image"
    expect "only those of its range" 0 - --insert toys/bad-range@device-1,from=1E,to=2E "$image"
fi
if [ -n "$sanitizers$foreign" ]; then
    skip "a build for this machine without sanitizers" "the library in Python"
elif have python3; then
    python3 "$ROOT/examples/copy-out.py" "$image" /top-file > "$WORK/have" 2> "$WORK/err"
    is "the example in Python ends with status 0" $? 0
    holds "Python writes the contents" cmp "$WORK/want" "$WORK/have"
    holds "Python says what is wrong" \
        sh -c '! python3 "$1" "$2" /nowhere 2> "$3" && grep -q nowhere "$3"' - \
        "$ROOT/examples/copy-out.py" "$image" "$WORK/err"
else
    skip python3 "the library in Python"
fi

(cd "$ROOT" && make uninstall BUILD="$BUILD" DESTDIR="$stage") > /dev/null 2>&1
is "uninstall leaves nothing" "$(find "$stage" -type f -o -type l)" ""
finish
