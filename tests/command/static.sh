#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A statically linked program prints the same as the other one, alone in an empty folder that is its
# root directory. It is tested if it exists:
#     make STATIC=1 BUILD=build/static
set -uo pipefail
. "$(dirname "$0")/common.bash"

static=${STATIC_PROGRAM:-$ROOT/build/static/btrfs-walk}
alone=$WORK/alone
mkdir "$alone"
if [ ! -x "$static" ]; then
    skip "a static build" "make STATIC=1 BUILD=build/static makes it"
    finish
elif [ "$("$static" --version)" != "$("$PROGRAM" --version)" ]; then
    skip "a static build" "it is older than the program"
    finish
fi
cp "$static" "$alone/btrfs-walk"
if ! unshare -r chroot "$alone" /btrfs-walk --version > /dev/null 2>&1; then
    skip "chroot in a user namespace" "a static program alone"
    finish
fi
holds "it needs no other file" sh -c '! readelf -l "$1" | grep -q INTERP' - "$static"

fixtures=(plain compressed-xxhash gone lost-leaf-first subvolumes)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${fixtures[@]}" || exit 1
for fixture in "${fixtures[@]}"; do
    cp --sparse=always "$BUILD/fixtures/$fixture/dev1.img" "$alone/$fixture.img"
done
"$PROGRAM" --blackbox "$alone/box" "$alone/plain.img" > /dev/null

# Every command: an image is put at the place of @.
lines=$WORK/lines
cat > "$lines" <<'LINES'
walk @
walk --json -o path,size,mtime @
ls -lR @
stat @ /
xattr @ /
cat @ /top-file
extents @
versions @ /top-file
du @
compression @
sum @
sum --algorithm blake2b @
tar @
tar --format mtree @
deleted @
bodyfile @
info @
check @
owner @ 30408704
devices @
usage @
subvolumes @
roots @
space @
qgroups @
log @
super @
chunks @
map @ 30408704
tree-stats @
dump --tree fs @
diff @ 256 260
picture --color=always @
picture --format svg @
report @
blackbox box
graph @
xlators
xlators storage/file
LINES

# answers PROGRAM...: all lines for an image, with status and messages.
answers() {
    local line
    while read -r line; do
        echo "== $line"
        # shellcheck disable=SC2086 # several words
        timeout 60 "$@" ${line//@/$image} 2>&1 < /dev/null
        echo "== $?"
    done < "$lines"
}

for image in "${fixtures[@]/%/.img}"; do
    (cd "$alone" && answers "$PROGRAM") > "$WORK/want"
    answers unshare -r chroot "$alone" /btrfs-walk > "$WORK/have"
    holds "$image: the static program prints the same" diff "$WORK/want" "$WORK/have"
done
mkdir "$alone/to" "$WORK/to"
unshare -r chroot "$alone" /btrfs-walk extract -C /to gone.img > /dev/null 2>&1
"$PROGRAM" extract -C "$WORK/to" "$alone/gone.img" > /dev/null 2>&1
holds "the static program extracts the same files" diff -r "$alone/to" "$WORK/to"

# A program of a user, linked statically with what pkg-config prints for such a library.
folder=$(dirname "$static")
make -s -C "$ROOT" STATIC=1 BUILD="$folder" LIBDIR="$(realpath "$folder")" \
    INCLUDEDIR="$(realpath "$ROOT/include")" "$folder/btrfs-walk.pc" > "$WORK/log" 2>&1
# shellcheck disable=SC2046 # flags are several words
holds "pkg-config --static has all flags for cc -static" cc -static -w \
    "$ROOT/examples/list-sizes.c" -I"$folder/include" -o "$WORK/alone-sizes" \
    $(PKG_CONFIG_PATH=$folder pkg-config --static --cflags --libs btrfs-walk) -Wl,--no-warnings
"$WORK/alone-sizes" "$alone/plain.img" > "$WORK/out"
holds "a program linked with cc -static lists files" grep -qx ' *11 /top-file' "$WORK/out"

PROGRAM=$static
expect "a layer that is not built in" 2 'linked statically|unknown type' \
    --insert toys/rot13@device-1 "$alone/plain.img"
finish
