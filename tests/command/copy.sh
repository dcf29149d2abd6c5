#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `copy`: all commands give the same results for a copy as for the original, in every format;
# unreadable sectors; outputs that are refused. tests/kernel/copy.py mounts copies.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$ROOT/tests/command/fixtures.bash"
have python3 || { skip python3 "copies"; finish; }

# Names the images of a folder like the originals.
rename_copies() {
    local folder=$1 devid device
    "$PROGRAM" devices -o devid,device "${arguments[@]}" "$image" "${devices[@]}" 2> /dev/null |
        while IFS=$'\t' read -r devid device; do
            [ ! -e "$folder/$devid.img" ] || mv "$folder/$devid.img" "$folder/${device##*/}"
        done
}

# answers FOLDER COMMAND...: what the command prints for the images in a folder.
answers() {
    local folder=$1 file first
    shift
    local images=()
    for file in "${files[@]}"; do images+=(--device "${file##*/}"); done
    first=${images[1]}
    (cd "$folder" && timeout 60 "$PROGRAM" "$@" "${arguments[@]}" "$first" "${images[@]:2}" 2>&1
        echo "status $?")
}

# same NAME FOLDER COMMAND...
same() {
    local name=$1 folder=$2
    shift 2
    answers "$folder" "$@" > "$WORK/of-copy"
    answers "$(dirname "$image")" "$@" > "$WORK/of-original"
    holds "$name: $* prints the same for the copy" cmp "$WORK/of-original" "$WORK/of-copy"
    holds "$name: $* reads the copy" grep -qx 'status [014]' "$WORK/of-copy"
}

for name in $(printf '%s\n' plain raid0-3 raid1c3-3-minus-1-2 raid5-3 raid6-4-minus-2-4 raid10-4 \
    dup bad-copy-raid6 mixed stripe-tree-raid10 sprout log-tree lost-tree-extent lost-tree-chunk \
    zoned-device | sweep "${SWEEP:-1}"); do
    read_about "$name"
    "$PROGRAM" copy -q -C "$WORK/$name" "${arguments[@]}" "$image" "${devices[@]}" 2> "$WORK/err"
    is "$name: copy ends with the right status" $? "$([[ $name == lost* ]] && echo 1 || echo 0)"
    rename_copies "$WORK/$name"
    for file in "${files[@]}"; do
        is "$name: the copy has the size of the device" \
            "$(stat -c %s "$WORK/$name/${file##*/}")" "$(stat -c %s "$file")"
    done
    for command in 'check --data' dump super; do same "$name" "$WORK/$name" $command; done
    rm -r "${WORK:?}/$name"
done

# With --history, older generations are found, even in chunks that do not exist any more.
for name in gone past; do
    read_about "$name"
    expect "$name: a copy without history" 0 'warning: .*--history' copy -C "$WORK/less" "$image"
    expect "$name: a copy with history" 0 - copy --history -C "$WORK/more" "$image"
    rename_copies "$WORK/more"
    for command in roots deleted; do same "$name" "$WORK/more" $command; done
    rm -r "$WORK/less" "$WORK/more"
done

# Formats. Byte by byte, what is in use is the same, and everything else is a hole.
read_about plain
expect "a raw copy" 0 - copy -q -f "$WORK/raw" "$image"
run_json map --used --json=array "$image" > "$WORK/map"
cat > "$WORK/compare.py" <<'PYTHON'
import json, sys
original, copy, map_ = sys.argv[1:]
a, b = open(original, "rb").read(), open(copy, "rb").read()
ranges = json.load(open(map_))
for row in ranges:
    start, end = row["start"], row["start"] + row["length"]
    assert b[start:end] == (a[start:end] if row["data"] else bytes(end - start)), row
PYTHON
holds "a raw copy has the used ranges of the device, and zeros elsewhere" \
    python3 "$WORK/compare.py" "$image" "$WORK/raw" "$WORK/map"
holds "a raw copy has holes" [ "$(stat -c %b "$WORK/raw")" -lt $((40 << 11)) ]
for options in '' --compress; do
    expect "qcow2 $options" 0 - copy -q --format qcow2 $options -f "$WORK/$options.qcow2" "$image"
    have qemu-img || { skip qemu-img "qcow2"; continue; }
    holds "qcow2 $options: qemu-img finds no error" qemu-img check "$WORK/$options.qcow2"
    holds "qcow2 $options: the contents are those of the raw copy" \
        qemu-img compare "$WORK/raw" "$WORK/$options.qcow2"
done

# An interrupted copy is continued, and complete at the end.
mkdir "$WORK/c"
cp --sparse=always "$WORK/raw" "$WORK/c/1.img.part"
truncate -s 100M "$WORK/c/1.img.part"
expect "a copy over an incomplete one" 2 '--continue completes it' copy -q -C "$WORK/c" "$image"
expect "an incomplete copy with --continue" 0 - copy -q --continue -C "$WORK/c" "$image"
holds "a continued copy has the bytes of a raw copy" same_image "$WORK/c/1.img" "$WORK/raw"
# On file systems without holes, nothing shows how much was written.
mkdir "$WORK/d"
truncate -s $(($(stat -c %s "$WORK/raw") - 1)) "$WORK/d/1.img.part"
printf '\0' >> "$WORK/d/1.img.part"
expect "continued without holes" 0 - copy -q --continue -C "$WORK/d" "$image"
holds "continued without holes: the same" same_image "$WORK/d/1.img" "$WORK/raw"

# Sectors that cannot be read are zeros, and listed with their files.
start=$(run_json extents --json "$image" /data/preallocated | grep -o '"logical":[0-9]*' |
    tail -n 1)
offset=$("$PROGRAM" map -o offset "$image" "${start#*:}")
expect "a copy with unreadable sectors" \
    1 'device 1: 8192 bytes in use cannot be read' copy -f "$WORK/bad" \
    --insert "debug/error-gen@device-1,kind=raw,start=$offset,end=$((offset + 8192))" "$image"
holds "the file with the unreadable sectors is listed" out_has '^data .* /data/preallocated$'
cp "$WORK/raw" "$WORK/expected"
dd if=/dev/zero of="$WORK/expected" bs=4096 seek=$((offset / 4096)) count=2 conv=notrunc status=none
holds "unreadable sectors are zeros in the copy" cmp "$WORK/bad" "$WORK/expected"

# The devices as files: the same as a copy, with the same holes.
mnt=$WORK/mnt
mkdir "$mnt"
cat > "$WORK/holes.py" <<'PYTHON'
import json, os, sys
file, at, found = open(sys.argv[1], "rb"), 0, []
size = os.fstat(file.fileno()).st_size
while at < size:
    try:
        start = os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError:
        break
    at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
    found.append([start, at])
expected = []
for row in json.load(open(sys.argv[2])):
    start, end = row["start"], row["start"] + row["length"]
    if row["data"] and expected and expected[-1][1] == start:
        expected[-1][1] = end
    elif row["data"]:
        expected.append([start, end])
assert found == expected, (found, expected)
PYTHON
read_about raid1-2
"$PROGRAM" copy -q -C "$WORK/two" "${files[@]}"
if ! why=$(have_mount "${files[0]}" "$mnt"); then
    skip FUSE "the devices as files: $why"
else
    expect "devices as files: of a subvolume" 2 'shows no subvolume' mount --devices --subvol 5 \
        "${files[0]}" "$mnt"
    holds "mount --devices mounts" \
        timeout 20 "$PROGRAM" mount --background --devices "${files[0]}" \
        --device "${files[1]}" "$mnt"
    is "mount --devices shows a file for each device" "$(cd "$mnt" && echo *)" "1 2"
    for devid in 1 2; do
        holds "device $devid as a file" cmp "$mnt/$devid" "$WORK/two/$devid.img"
        run_json map --used --devid $devid --json=array "${files[@]}" > "$WORK/map"
        holds "device $devid as a file: holes" python3 "$WORK/holes.py" "$mnt/$devid" "$WORK/map"
    done
    fusermount3 -u "$mnt"
fi
# Wrong uses.
read_about plain
expect "no output" 2 'either -C DIR or -f FILE' copy "$image"
expect "two outputs" 2 'either -C DIR or -f FILE' copy -C "$WORK/x" -f "$WORK/y" "$image"
expect "a copy to stdout" 2 'cannot be written to stdout' copy -f - "$image"
expect "compressed raw" 2 '--compress is for' copy --compress -f "$WORK/x" "$image"
expect "a block map" 2 'option --bmap was removed: run .bmaptool create' copy --bmap -f "$WORK/x" \
    "$image"
expect "a copy with the format nbd" 2 'raw, qcow2' copy --format nbd -f "$WORK/x" "$image"
expect "continued qcow2" 2 '--continue is for' copy --format qcow2 --continue -C "$WORK/x" "$image"
expect "an image" 2 'never overwritten' copy -f "$image" "$image"
expect "another image" 2 'never written to' copy -f "$WORK/raw" "$image"
expect "an existing copy" 2 'is not replaced' copy -C "$WORK/c" "$image"
expect "no device" 2 'not a regular file' copy -q -f /dev/null "$image"
read_about raid1-2
expect "several devices" 2 'has 2 devices here; -C DIR' copy -f "$WORK/x" "${files[@]}"
holds "a refused copy leaves no file" [ ! -e "$WORK/x" ]
finish
