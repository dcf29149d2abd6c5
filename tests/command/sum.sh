#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The sum and bodyfile commands: lines that sha256sum and the like accept, names with any bytes,
# folders, filters, unreadable files.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain compressed subvolumes \
    lost-leaf-second || exit 1
plain=$BUILD/fixtures/plain/dev1.img
compressed=$BUILD/fixtures/compressed/dev1.img


# The hashes are those of what is extracted, and of what cat writes.
for image in "$plain" "$compressed"; do
    rm -rf "$WORK/out"
    holds "the image is extracted" "$PROGRAM" extract -q -C "$WORK/out" "$image"
    for pair in sha256:sha256sum sha512:sha512sum sha384:sha384sum blake2b:b2sum sha1:sha1sum \
        md5:md5sum xxh64:xxh64sum sha256:sha256sum:--tag blake2b:b2sum:--tag; do
        IFS=: read -r name tool tag <<< "$pair"
        have "$tool" || { skip "$tool" "a comparison with it"; continue; }
        "$PROGRAM" sum --relative --algorithm "$name" $tag "$image" > "$WORK/sums"
        holds "$tool -c $tag accepts the output of sum" \
            sh -c 'cd "$1" && exec "$2" -c --quiet "$3"' - "$WORK/out" "$tool" \
            "$WORK/sums"
    done
    is "sum prints a line for each file" "$("$PROGRAM" sum -0 "$image" | tr -dc '\0' | wc -c)" \
        "$("$PROGRAM" -0 "$image" | tr -dc '\0' | wc -c)"
    is "the names of the walk" \
        "$("$PROGRAM" sum -0 "$image" | sed -z 's/^[0-9a-f]*  //' | sort -z | md5sum)" \
        "$("$PROGRAM" -0 "$image" | sort -z | md5sum)"
    is "one thread and four print the same" "$("$PROGRAM" sum -j 1 "$image" | md5sum)" \
        "$("$PROGRAM" sum -j 4 "$image" | md5sum)"
done

first=$("$PROGRAM" "$compressed" | head -n 1)
is "sum of a path prints the hash of its contents" \
    "$("$PROGRAM" sum "$compressed" "$first" | cut -d ' ' -f 1)" \
    "$("$PROGRAM" cat "$compressed" "$first" | sha256sum | cut -d ' ' -f 1)"
is "sum of a folder prints a line for each file in it" \
    "$("$PROGRAM" sum "$compressed" /zstd | wc -l)" \
    "$("$PROGRAM" "$compressed" | grep -c '^/zstd/')"
is "--relative prints paths from the folder on" \
    "$("$PROGRAM" sum "$compressed" /zstd | sed 's|  /zstd/|  |')" \
    "$("$PROGRAM" sum --relative "$compressed" /zstd)"
is "--name selects the file" \
    "$("$PROGRAM" sum --name "${first##*/}" "$compressed" | grep -c "$first\$")" 1
is "nothing is left of --type d" "$("$PROGRAM" sum --type d "$compressed")" ""

# The references of a directory are lost with its inode, so its path cannot be looked up.
lost=$BUILD/fixtures/lost-leaf-second/dev1.img
"$PROGRAM" sum "$lost" 2> "$WORK/err" | grep '  /dir-0/' > "$WORK/sums"
is "a folder without an inode" "$("$PROGRAM" sum "$lost" /./empty/..//dir-0/ 2> "$WORK/err")" \
    "$(cat "$WORK/sums")"
is "a file in a folder without an inode has its hash" \
    "$("$PROGRAM" sum "$lost" /dir-0/file-13 2> "$WORK/err")" \
    "$(grep '/file-13$' "$WORK/sums")"

"$PROGRAM" sum "$plain" /does/not/exist > "$WORK/lines" 2> "$WORK/err"
is "status of a path that is not there" $? 1
holds "the path that does not exist is named" grep -q does "$WORK/err"
is "the path that does not exist has no line" "$(wc -c < "$WORK/lines")" 0
for path in /docs/symbolic-link /docs/pipe; do
    "$PROGRAM" sum "$plain" "$path" /top-file > "$WORK/lines" 2> "$WORK/err"
    is "status if a path is not a regular file" $? 1
    is "the message" "$(cat "$WORK/err")" "btrfs-walk: $plain: $path: not a regular file"
    is "the other path has its line" "$(cut -d ' ' -f 3 "$WORK/lines")" /top-file
done
printf '/docs/pipe\n/top-file\n' | "$PROGRAM" sum --files-from - "$plain" > "$WORK/lines"
is "status if a list has other files" "$? $(cut -d ' ' -f 3 "$WORK/lines")" "0 /top-file"
"$PROGRAM" sum --subvol default "$plain" docs/symbolic-link 2> "$WORK/err"
is "status of a link below a subvolume" $? 1
"$PROGRAM" sum --algorithm crc32 "$plain" > /dev/null 2>&1
is "status of an unknown algorithm" $? 2
"$PROGRAM" sum --subvol nowhere "$plain" > /dev/null 2>&1
is "status of an unknown subvolume" $? 2
for name in sha1 sha384 sha512; do
    "$PROGRAM" sum --tag --algorithm $name "$plain" > "$WORK/sums"
    holds "check --manifest accepts hashes of $name" \
        "$PROGRAM" check -q --manifest "$WORK/sums" "$plain"
done
sed -i '1s/[0-8]$/9/; 1t; 1s/.$/0/' "$WORK/sums"
"$PROGRAM" check -q --manifest "$WORK/sums" "$plain" > "$WORK/lines" 2>&1
holds "one that is not true" grep -q "sha512 is .*, not" "$WORK/lines"
"$PROGRAM" sum "$plain" > /dev/full 2> "$WORK/err"
is "status of a full disk" $? 1

# Every read of data fails: no line, every file that has data outside its inode named.
"$PROGRAM" sum --insert debug/error-gen@device-1,kind=data "$compressed" > "$WORK/lines" \
    2> "$WORK/err"
status=$?
if grep -q 'error-gen' "$WORK/err" && [ "$status" -ne 1 ]; then
    skip "layers that make faults" "$(head -n 1 "$WORK/err")"
else
    is "status of files that cannot be read" "$status" 1
    is "each has a line or a message" \
        "$(($(wc -l < "$WORK/lines") + $(grep -c 'cannot be read' "$WORK/err")))" \
        "$("$PROGRAM" "$compressed" | wc -l)"
fi

# Body files.
"$PROGRAM" bodyfile "$plain" > "$WORK/body"
is "fields of a body file" "$(awk -F '|' 'NF != 11' "$WORK/body")" ""
is "bodyfile prints a line for each file" "$(awk -F '|' '$4 ~ /^r\/r/' "$WORK/body" | wc -l)" \
    "$("$PROGRAM" -0 "$plain" | tr -dc '\0' | wc -c)"
is "bodyfile begins with the top directory" \
    "$(head -n 1 "$WORK/body" | cut -d '|' -f 1-4)" "0|/|5-256|d/drwxr-xr-x"

# Sizes that take ages: of 8 TiB, of 4 EiB, and one that no file can have. The leaf gets the size
# and a checksum.
if command -v mkfs.btrfs > /dev/null && command -v python3 > /dev/null; then
    mkdir "$WORK/root"
    echo small > "$WORK/root/a"
    truncate -s 123456789 "$WORK/root/b"
    echo small > "$WORK/root/c"
    touch "$WORK/root/$(printf 'c1 \302\233 \233 \303\274 \377')"
    truncate -s 128M "$WORK/image"
    # Its files may be given space, which is not to be all of the 123 MB.
    mkfs.btrfs -q -n 16384 -m single -d single --rootdir "$WORK/root" \
        "$WORK/image" > "$WORK/err" 2>&1 || rm "$WORK/image"
fi
odd=123456789 # this number occurs nowhere else in the image
number() { python3 -c "print(($1).to_bytes(8, 'little').hex())"; }
resize() {
    python3 "$ROOT/tests/support/patch_image.py" "$WORK/image" "$(number "$1")" "$(number "$2")"
}
if [ -e "$WORK/image" ]; then
    is "control characters in a body file" \
        "$("$PROGRAM" bodyfile "$WORK/image" | grep -a c1 | cut -d '|' -f 2)" \
        "$(printf '/c1 \\302\\233 \\233 \303\274 \377')"
    resize 123456789 $((odd + (8 << 40)))
    : > "$WORK/lines"
    "$PROGRAM" sum "$WORK/image" /a /b > "$WORK/lines" 2> "$WORK/err" &
    soon [ -s "$WORK/lines" ]
    is "hashes do not wait for a slow file" "$(cut -d ' ' -f 3 "$WORK/lines")" /a
    kill $!
    wait $! 2> /dev/null
    resize $((odd + (8 << 40))) $((odd + (1 << 62)))
    for command in "sum" "tar --format mtree"; do
        # shellcheck disable=SC2086 # options are words
        timeout 20 "$PROGRAM" $command "$WORK/image" > "$WORK/lines" 2> "$WORK/err"
        is "$command: status of holes of exbibytes" $? 1
        holds "$command: the file with holes of exbibytes is named" \
            grep -q '/b: not hashed: more than 16 TiB' "$WORK/err"
        is "$command: the other files are hashed" \
            "$(grep -cE '/[ac]( type.*sha256|$)' "$WORK/lines")" 2
    done
    timeout 20 "$PROGRAM" extract -C "$WORK/out" --manifest "$WORK/lines" "$WORK/image" 2> /dev/null
    holds "extract --manifest: holes of exbibytes" [ $? -ne 124 ]
    is "extract --manifest: the other files are hashed" \
        "$(grep -c '"/[ac]".*"hash"' "$WORK/lines")" 2
    resize $((odd + (1 << 62))) $(((1 << 63) - odd)) # nearly the largest that there is
    "$PROGRAM" tar "$WORK/image" 2> /dev/null | tar -t > "$WORK/lines"
    is "tar: a size near the largest" "$(grep -c b "$WORK/lines")" 1
    resize $(((1 << 63) - odd)) 9223372036854775808
    for command in sum "tar --format mtree" tar "cat" "extract -C $WORK/largest" stat; do
        # shellcheck disable=SC2086 # options are words
        timeout 20 "$PROGRAM" $command "$WORK/image" /b > "$WORK/lines" 2> "$WORK/err"
        is "$command: status of an impossible size" $? 1
        holds "$command: the message says that the size is invalid" \
            grep -q 'invalid size' "$WORK/err"
        is "$command: nothing comes of it" "$(grep -ac b "$WORK/lines")" 0
    done
else
    skip "mkfs.btrfs --rootdir and python3" "impossible sizes"
fi

rm -rf "$WORK/out"
# One hash of everything, instead of sum --tree: an image and its copy have the same list.
expect "the option that was removed" 2 "hash the list of 'tar --format mtree" sum --tree "$plain"
expect "and its parts" 2 'has --mtime, --owner' sum --ignore=times "$plain"
list_hash() { "$PROGRAM" tar --format mtree --sort=name "$@" | sha256sum; }
expect "a copy" 0 - send -f "$WORK/stream" "$plain" /
is "a copy has the list of the original" \
    "$(list_hash -q --subvol toplevel "$WORK/stream")" "$(list_hash -q "$plain")"
hash=$(list_hash "$compressed")
is "one thread prints the same list" "$(list_hash -j 1 "$compressed")" "$hash"
inode=$("$PROGRAM" ls -i "$compressed" /zlib/inline | awk '{ print $1 }')
for part in mode:52:4:33152: owner:44:4:77:--owner=root:0 time:136:8:1:--mtime=@0; do
    cp --sparse=always "$compressed" "$WORK/copy"
    IFS=: read -r name at size value option <<< "$part"
    holds "$name of a file is changed" change "$WORK/copy" 5 "$inode" 1 0 set "$at" "$size" "$value"
    holds "another $name changes the hash of the list" [ "$(list_hash "$WORK/copy")" != "$hash" ]
    [ ! "$option" ] || is "$option hides another $name" "$(list_hash "$option" "$WORK/copy")" \
        "$(list_hash "$option" "$compressed")"
done
bad="debug/error-gen@chunk-map,kind=data,action=flip"
expect "unreadable data" 1 'large: bytes 0 to 499999 cannot be read' \
    tar --format mtree --sort=name -f "$WORK/list" --insert "$bad" "$compressed"
finish
