#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `repair` and --patch: the repaired file system has no errors, its files are those of the
# undamaged one, and no image changes. tests/kernel/repair.py mounts the results.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain dup bad-copy-dup bad-copy-raid1 bad-copy-raid5 \
    bad-copy-raid6 zoned superblock-copy-lost superblocks-gone || exit 1

# status NAME STATUS COMMAND...
status() {
    local name=$1 expected=$2
    shift 2
    timeout 60 "$@" > "$WORK/out" 2> "$WORK/err"
    is "$name: status" $? "$expected"
}

# repaired NAME WORD...: repairs with these options, and checks the result through its overlays.
repaired() {
    local name=$1 before
    shift
    local images=("$WORK/$name"/*.img)
    before=$(cat "${images[@]}" | cksum)
    rm -rf "$WORK/fixed"
    status "$name: repair" 0 "$PROGRAM" repair "$@" -C "$WORK/fixed" "${images[@]}"
    is "$name: the images" "$(cat "${images[@]}" | cksum)" "$before"
    patches=()
    for overlay in "$WORK/fixed"/*.qcow2; do patches+=(--patch "$overlay"); done
    status "$name: check" 0 "$PROGRAM" check --data "${patches[@]}" "${images[@]}"
}

# Each copy of these has damage; the list of sums is in the fixture.
for name in bad-copy-dup bad-copy-raid1 bad-copy-raid5 bad-copy-raid6; do
    mkdir "$WORK/$name"
    cp --sparse=always "$fixtures/$name"/dev*.img "$WORK/$name"
    status "$name: is damaged" 4 "$PROGRAM" check --data "$WORK/$name"/*.img
    repaired "$name" --data
    is "$name: sums" \
        "$("$PROGRAM" sum "${patches[@]}" "$WORK/$name"/*.img 2> "$WORK/err" | cksum)" \
        "$("$PROGRAM" sum "$WORK/$name"/*.img 2> /dev/null | cksum)"
    is "$name: messages" "$(cat "$WORK/err")" ""
done

# A lost superblock copy: the change, its class and proof; the overlay names its image.
mkdir "$WORK/super"
cp --sparse=always "$fixtures/plain/dev1.img" "$WORK/super"
image=$WORK/super/dev1.img
dd if=/dev/zero of="$image" bs=4096 seek=16 count=1 conv=notrunc 2> /dev/null
is "the plan" "$("$PROGRAM" repair -o class_name,devid,offset,length,what "$image" 2> /dev/null)" \
    $'identical\t1\t65536\t4096\tcopy of the superblock'
repaired super
cmp -s "$image" "$fixtures/plain/dev1.img" && fail "the image was not damaged"
status "through the overlay: walk" 0 "$PROGRAM" --patch "$WORK/fixed/devid-1.qcow2" "$image"
(cd "$WORK" && "$PROGRAM" repair -f one.qcow2 super/dev1.img > /dev/null 2>&1)
holds "a relative backing file" grep -qa 'super/dev1.img' "$WORK/one.qcow2"
if have qemu-img; then
    holds "qemu-img reads the overlay" qemu-img convert -O raw "$WORK/one.qcow2" "$WORK/one.img"
    holds "the repaired image" cmp "$WORK/one.img" "$fixtures/plain/dev1.img"
else
    skip qemu-img "conversion"
fi

# Only one of many changes: the other faults remain.
rm -rf "$WORK/fixed"
damaged=("$WORK"/bad-copy-raid1/*.img)
status "one change" 0 "$PROGRAM" repair --data --id 1 -C "$WORK/fixed" "${damaged[@]}"
holds "says that others remain" grep -q "findings of 'check' remain" "$WORK/err"
status "one change: check" 4 "$PROGRAM" check --data --patch "$WORK/fixed/devid-1.qcow2" \
    --patch "$WORK/fixed/devid-2.qcow2" "${damaged[@]}"
status "an existing overlay" 2 "$PROGRAM" repair --data -C "$WORK/fixed" "${damaged[@]}"
holds "is not replaced" grep -q 'devid-1.qcow2 exists' "$WORK/err"

# A wrong number; nothing to do; an overlay of another image.
status "an unknown number" 2 "$PROGRAM" repair --id 7 -f "$WORK/none.qcow2" "$image"
status "nothing to change" 2 "$PROGRAM" repair -f "$WORK/none.qcow2" "$fixtures/plain/dev1.img"
is "an empty plan" "$(run_json repair --json "$fixtures/plain/dev1.img" 2> /dev/null)" ""
holds "no overlay" test ! -e "$WORK/none.qcow2"
status "another image" 2 "$PROGRAM" --patch "$WORK/one.qcow2" "$fixtures/dup/dev1.img"
head -c 300 "$WORK/one.qcow2" > "$WORK/cut.qcow2"
status "an overlay that is cut off" 2 "$PROGRAM" --patch "$WORK/cut.qcow2" "$image"

# What cannot be repaired.
status "zoned" 3 "$PROGRAM" repair "$fixtures"/zoned/dev1.img
finish
