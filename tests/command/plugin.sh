#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Layers in shared objects: the example is built against the installed headers only, found in both
# places, used, and described; objects that do not fit are refused with a reason.
# Runs alone: another PREFIX is compiled into the program.
set -uo pipefail
. "$(dirname "$0")/common.bash"

if grep -q STATIC=1 "$BUILD/features"; then
    skip "a program that is linked dynamically" "shared objects"
    finish
fi
prefix=$WORK/usr
(cd "$ROOT" && make install BUILD="$BUILD" PREFIX="$prefix") > "$WORK/log" 2>&1 ||
    { cat "$WORK/log"; fail "make install"; finish; }
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain || exit 1
image=$BUILD/fixtures/plain/dev1.img
want=$(recorded plain paths0 | LC_ALL=C sort -z | cksum)
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
unset PKG_CONFIG_SYSROOT_DIR # the plugin is not in the sysroot of another machine
installed=$(pkg-config --variable=xlatordir btrfs-walk)

# build SOURCE FILE: builds a shared object with only the installed headers.
build() {
    mkdir -p "$(dirname "$2")"
    # shellcheck disable=SC2046 # flags are several words
    "${COMPILER[@]}" -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags btrfs-walk) -o "$2" \
        "$1" > "$WORK/log" 2>&1 ||
        fail "cannot build $2: $(head -n 3 "$WORK/log")"
}


# refused DESCRIPTION REGEX TYPE: the type cannot be inserted, and stderr says why.
refused() {
    BTRFS_WALK_XLATOR_PATH=$WORK/xlators "$PROGRAM" --insert "$3@verify" \
        "$image" > /dev/null 2> "$WORK/err"
    local status=$?
    if [ $status -ne 2 ]; then fail "$1: exit status $status"; fi
    holds "$1: $(cat "$WORK/err")" grep -qE -- "$2" "$WORK/err"
}

# lists PROGRAM INSERTS...: must list the paths of the fixture.
lists() {
    local program=$1
    shift
    [ "$("$program" -0 "$@" "$image" 2> "$WORK/err" | LC_ALL=C sort -z | cksum)" = "$want" ]
}

twice=(--insert toys/rot13@device-1,kind=any --insert toys/rot13@device-1,kind=any)
build "$ROOT/tests/plugin/rot13.c" "$WORK/xlators/toys/rot13.so"
export BTRFS_WALK_XLATOR_PATH=$WORK/nowhere:$WORK/xlators
holds "the walk reads no data" lists "$PROGRAM" --insert toys/rot13@verify
holds "two layers of rot13 cancel each other" lists "$PROGRAM" "${twice[@]}"
"$PROGRAM" --insert toys/rot13@device-1,kind=any "$image" > "$WORK/out" 2> "$WORK/err"
status=$?
holds "one layer of rot13 makes the image unreadable" [ "$status" -eq 2 ]
holds "an unreadable image lists nothing" [ ! -s "$WORK/out" ]
holds "options of the layer are checked" \
    [ "$("$PROGRAM" --insert toys/rot13@verify,kind=odd "$image" 2>&1 |
        grep -c "'odd' is not one of: any, super, tree-block, data, raw")" -eq 1 ]
holds "xlators prints the page of the layer" \
    grep -q 'thirteen places' <("$PROGRAM" xlators toys/rot13)
holds "xlators lists the layer" grep -q '^toys/rot13 ' <("$PROGRAM" xlators)
"$PROGRAM" --statedump "$WORK/dump" "${twice[@]}" "$image" > /dev/null
holds "the statedump has the state of both layers" \
    [ "$(grep -c '"letters": [1-9]' "$WORK/dump")" -eq 2 ]

# A plugin that replaces the built-in chunk map: it gets the devices and the chunks.
build "$ROOT/tests/plugin/single.c" "$WORK/xlators/toys/single.so"
"$PROGRAM" graph "$image" | sed 's|type cluster/chunk-map|type toys/single|' > "$WORK/single.vol"
holds "another chunk map is in the graph" grep -q 'type toys/single' "$WORK/single.vol"
holds "another chunk map lists the paths of the fixture" lists "$PROGRAM" --graph "$WORK/single.vol"
"$PROGRAM" --statedump "$WORK/dump" --graph "$WORK/single.vol" "$image" > /dev/null
holds "it was told the chunks" [ "$(grep -c '"chunks": [1-9]' "$WORK/dump")" -eq 1 ]
"$PROGRAM" cat --graph "$WORK/single.vol" "$image" /top-file > "$WORK/top-file" 2> "$WORK/err"
holds "another chunk map reads data" cmp "$WORK/top-file" <("$PROGRAM" cat "$image" /top-file)

unset BTRFS_WALK_XLATOR_PATH
mkdir -p "$installed" && mv "$WORK/xlators/toys" "$installed"
holds "an installed layer is found" lists "$prefix/bin/btrfs-walk" "${twice[@]}"

object() { # NAME API-INITIALISER
    printf \
        '#include <btrfs-walk/graph.h>\nstatic const struct bw_xlator_class it = {.type '\
'= "bad/%s", .description = "-", .page = "-", .above = BW_ADDRESS_LOGICAL, .below = '\
'BW_ADDRESS_LOGICAL, .minimum_children = 1, .maximum_children = 1};\n%s\n' "$1" "$2" > "$WORK/$1.c"
    build "$WORK/$1.c" "$WORK/xlators/bad/$1.so"
}
object good 'BW_XLATOR_EXPORT(it);'
holds "a layer that only passes" env BTRFS_WALK_XLATOR_PATH="$WORK/xlators" "$PROGRAM" \
    --insert bad/good@verify "$image"
object abi \
    'const struct bw_xlator_api bw_xlator_api = {BW_XLATOR_ABI + 1, sizeof bw_xlator_api, &it};'
refused "another ABI" \
    'bad/abi.so: it was built for version 9 of the layer interface, this is version 8: '\
'rebuild it' bad/abi
object silently \
    'static struct bw_xlator_class that = {.takes = BW_TAKES(BW_CONTROL_CHUNK)}; '\
'__attribute__((constructor)) static void fill(void) { unsigned takes = that.takes; that = it; '\
'that.takes = takes; } const struct bw_xlator_api bw_xlator_api = {BW_XLATOR_ABI, sizeof '\
'bw_xlator_api, &that};'
sed -i 's|bad/silently|bad/taker|' "$WORK/silently.c" &&
    build "$WORK/silently.c" "$WORK/xlators/bad/taker.so"
refused "messages without an operation" 'it takes messages, but lacks the operation control' \
    bad/taker
object size \
    'const struct bw_xlator_api bw_xlator_api = {BW_XLATOR_ABI, sizeof bw_xlator_api + 8, &it};'
refused "another size" 'rebuild it' bad/size
object silent 'const void *unused = &it;'
refused "no api" 'silent.so: it exports no bw_xlator_api' bad/silent
sed -i 's|bad/good|bad/other|' "$WORK/good.c" && build "$WORK/good.c" "$WORK/xlators/bad/name.so"
refused "another name" 'name.so: it holds the layer bad/other' bad/name
object spaces \
    'static const struct bw_xlator_class that = {.type = "bad/spaces", .description = "-", '\
'.page = "-", .above = BW_ADDRESS_ANY, .below = BW_ADDRESS_LOGICAL, .minimum_children = 1, '\
'.maximum_children = 1}; const struct bw_xlator_api bw_xlator_api = {BW_XLATOR_ABI, sizeof '\
'bw_xlator_api, &that}; const void *unused = &it;'
refused "spaces that contradict each other" 'address spaces' bad/spaces
object default \
    'static const char *const words[] = {"a", NULL}; static const struct bw_option options[] = '\
'{{.name = "o", .type = BW_OPTION_ENUM, .default_value = "zzz", .description = "-", .choices = '\
'words}, {0}}; static const struct bw_xlator_class that = {.type = "bad/default", .description '\
'= "-", .page = "-", .above = BW_ADDRESS_LOGICAL, .below = BW_ADDRESS_LOGICAL, '\
'.minimum_children = 1, .maximum_children = 1, .options = options}; const struct bw_xlator_api '\
'bw_xlator_api = {BW_XLATOR_ABI, sizeof bw_xlator_api, &that}; const void *unused = &it;'
refused "a default that is not allowed" "its option 'o': its default is not allowed" bad/default
echo "no object" > "$WORK/xlators/bad/text.so"
refused "a text file" 'cannot load a layer' bad/text
refused "a type that is nowhere" 'unknown type bad/nothing' bad/nothing
refused "a type that leads elsewhere" 'unknown type' ../xlators/bad/good
BTRFS_WALK_XLATOR_PATH=$WORK/xlators "$PROGRAM" xlators > "$WORK/out" 2> "$WORK/err"
status=$?
holds "a list with bad ones ends with 1" [ "$status" -eq 1 ]
holds "the good ones are listed" grep -q '^bad/good ' "$WORK/out"
holds "the bad ones are named" grep -q 'bad/abi.so' "$WORK/err"
finish
