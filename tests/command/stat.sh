#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# stat: its output for all kinds of files, as lines and as JSON, and that it agrees with the walk.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img


expect "a file" 0 - stat "$plain" /top-file
for line in 'Path: /top-file' 'Subvolume: 5 /' 'Inode: 281' 'Type: file' 'Mode: 0644 -rw-r--r--' \
    'User: 0' 'Group: 0' \
    'Links: 1' 'Size: 11' 'Modified: 20[0-9-]*T[0-9:]*\.[0-9]{9}Z' 'Created: .*Z' \
    'Generation: [0-9]+' 'Transid: [0-9]+' \
    'Sequence: [0-9]+' 'Flags: 0x0' 'Extents: 1 \(1 inline\)'; do
    holds "stat has the line '$line'" out_has "^$line\$"
done
expect "stat of device nodes" 0 - stat "$plain" /kinds/block-device /kinds/character-device
holds "stat prints the numbers of a block device" out_has '^Device: 7, 200$'
holds "stat prints the numbers of a character device" out_has '^Device: 1, 3$'
holds "an empty line separates two files" [ "$(grep -c '^$' "$WORK/out")" -eq 1 ]
expect "a link" 0 - stat "$plain" /docs/symbolic-link
holds "stat prints the target of a link" out_has '^Target: \.\./source$'
expect "a link that is followed" 0 - stat -L "$plain" /docs/symbolic-link
holds "stat -L prints the directory" out_has '^Type: directory$'
expect "stat of a file with attributes" 0 - stat "$plain" /data/inline
holds "stat prints the names of attributes" out_has '^Attributes: user\.note, user\.other$'
expect "how it is compressed" 0 - stat "$BUILD/fixtures/data-shapes/dev1.img" /inline/zstd-100
holds "stat prints the compression property" out_has '^Compression: zstd$'
expect "the same as JSON" 0 - stat --json "$BUILD/fixtures/data-shapes/dev1.img" /inline/zstd-100
holds "the member of the record" out_has '"compression":"zstd",'
expect "a subvolume" 0 - stat "$subvolumes" /home
holds "stat prints id and path of a subvolume" out_has '^Subvolume: [0-9]+ /home$'
holds "the top of a subvolume has inode 256" out_has '^Inode: 256$'
expect "what is not there" 1 'btrfs-walk: .*: /none: no such file or directory' stat "$plain" \
    /none /top-file
holds "the path that exists is printed" out_has '^Path: /top-file$'
expect "no path" 2 'no path given' stat "$plain"
expect "no image" 2 'no image given' stat
expect "no such option" 2 'unknown option' stat -x "$plain" /
expect "stat as JSON" 0 - stat --json "$plain" /top-file /kinds/block-device
holds "stat --json prints a line for each file" [ "$(grep -c '^{.*}$' "$WORK/out")" -eq 2 ]
holds "JSON of stat has the members of walk" out_has \
    '^\{"path":"/top-file","subvolume":5,"inode":281,"type":"file","mode":33188,'
holds "JSON of stat has further members" out_has \
    '"rdev_major":7,"rdev_minor":200,"xattrs":\[\],"extent_counts":\{"extent_count":0,'
expect "JSON within a subvolume" 0 - stat --json --subvol home "$subvolumes" /
holds "the path from there on" out_has '^\{"path":"/","subvolume":256,'
"$PROGRAM" stat "$plain" / > /dev/full 2> "$WORK/err"
status=$?
holds "a full disk is an error" [ "$status" -eq 1 ]

# For every path that the walk lists, stat prints the same values.
compared=(plain subvolumes compressed deep data-shapes nodesize-4k nodesize-64k old-4k mixed raid5-3
    raid6-4)
if have python3; then
    for name in "${compared[@]}"; do
        folder=$BUILD/fixtures/$name/
        devices=()
        for device in "$folder"dev*.img; do devices+=(--device "$device"); done
        image=${devices[1]}
        run_json --json "${devices[@]:2}" "$image" 2> /dev/null > "$WORK/walked"
        [ $? -eq 0 ] && [ -s "$WORK/walked" ] || continue
        timeout 60 "$PROGRAM" -0 "${devices[@]:2}" "$image" 2> /dev/null |
            xargs -0 "$PROGRAM" stat --json "${devices[@]:2}" "$image" > "$WORK/out" 2> "$WORK/err"
        keep_json stat --json < "$WORK/out"
        holds "$name: the members of the walk" python3 -c '
import json, sys
read = lambda path: [json.loads(line) for line in open(path, encoding="utf-8", newline="\n")]
walked, told = read(sys.argv[1]), read(sys.argv[2])
assert len(walked) == len(told), (len(walked), len(told))
for old, new in zip(walked, told):
    assert old.items() <= {key: new.get(key) for key in old}.items(), (old, new)' "$WORK/walked" \
        "$WORK/out"
    done
else
    skip python3 "a comparison with the walk"
fi

# Flags without a name are printed as numbers.
if have python3; then
    cp --sparse=always "$plain" "$WORK/flags"
    inode=$("$PROGRAM" -o inode --name top-file "$plain")
    holds "a file gets the highest flag" change "$WORK/flags" 5 "$inode" 1 0 set 71 1 128
    expect "a file with it" 0 - stat "$WORK/flags" /top-file
    holds "an unknown flag is printed as a number" \
        out_has '^Flags: 0x8000000000000000 \(0x8000000000000000\)$'
    rm "$WORK/flags"
else
    skip python3 "flags without a name"
fi

# Control characters in names and values are escaped in JSON, so that a terminal does not interpret
# them.
if command -v mkfs.btrfs > /dev/null && mkdir "$WORK/names" &&
    touch "$WORK/names/"$'c1-\xc2\x9b31m' &&
    truncate -s 120M "$WORK/image" && mkfs.btrfs -q --rootdir "$WORK/names" \
    "$WORK/image" > /dev/null 2>&1; then
    for command in stat extents; do
        expect "$command --json of such a name" 0 - "$command" --json "$WORK/image" \
            $'c1-\xc2\x9b31m'
        holds "$command --json escapes the control character" out_has '"path":"/?c1-\\u009b31m"'
    done
else
    skip mkfs.btrfs "names with control characters"
fi
finish
