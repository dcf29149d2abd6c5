#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Operands: which of them are images, paths from a file, and suggestions for misspelt ones.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 raid5-3 sprout \
    || exit 1
plain=$BUILD/fixtures/plain/dev1.img
first=$BUILD/fixtures/raid1-2/dev1.img
second=$BUILD/fixtures/raid1-2/dev2.img
three=("$BUILD"/fixtures/raid5-3/dev[123].img)
out_is() { diff "$WORK/out" - <<< "$1"; }

# Images.
expect "devices before a path" 0 - cat "$first" "$second" /top-file
holds "both devices before the path are read" out_is "at the top"
expect "the other one first" 0 - stat "$second" "$first" /docs
expect "three of them" 0 - ls "${three[@]}" /docs
expect "one by --device" 0 - ls "${three[@]:0:2}" /docs --device "${three[2]}"
expect "addresses behind them" 0 - map "$first" "$second" 30408704
expect "only devices" 0 - ls "$first" "$second"
# A seed has another fsid than what sprouted from it.
sprout=("$BUILD"/fixtures/sprout/dev[12].img)
seed=$(run_json info --json "${sprout[0]}" | sed -E 's/.*"fsid":"([^"]*)".*/\1/')
expect "a sprout without its seed" 1 \
    "device 1 \(of the seed with fsid $seed\) is missing: " ls -R "${sprout[1]}"
for order in "0 1" "1 0"; do
    read -r one other <<< "$order"
    expect "a seed and its sprout" 0 - cat "${sprout[one]}" "${sprout[other]}" /added-by-first
    expect "only these" 0 - ls "${sprout[one]}" "${sprout[other]}"
done
# lose FILE: makes a copy without superblocks, $lost.
lose() {
    lost=$WORK/lost.img
    cp --sparse=always "$1" "$lost"
    for place in 16 16384; do
        dd if=/dev/zero of="$lost" bs=4096 count=1 seek=$place conv=notrunc status=none
    done
}
lose "${sprout[1]}"
expect "a seed, and a sprout without superblocks" 1 'sprouted from this seed, --scan finds' \
    ls "${sprout[0]}" --device "$lost"
truncate -s 8M "$WORK/disk.img"
printf '\0\0\0\0\203\0\0\0\10\0\0\0\0\10\0\0' |
    dd of="$WORK/disk.img" bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of="$WORK/disk.img" bs=1 seek=510 conv=notrunc status=none
expect "a seed, and a disk" 1 'partition 1 is all zeros$' \
    ls "${sprout[0]}" --device "$WORK/disk.img"
lose "$first"
expect "the first one without superblocks" 0 'lost.img is device' cat "$lost" "$second" /top-file
holds "a device without superblocks is read" out_is "at the top"
expect "the last one" 1 'lost.img may be an image; did you mean --device .*lost.img\?' \
    cat "$second" "$lost" /top-file
lose "${three[1]}"
expect "one between others" 0 'lost.img is device' ls "${three[0]}" "$lost" "${three[2]}" /docs
expect "another file system" 1 "plain/dev1.img is an image; did you mean --device .*dev1.img\?" \
    cat "$first" "$second" "$plain"
expect "one to compare with" 2 "did you mean --other .*raid1" diff "$plain" "$first" /
expect "one that may be a device" 2 "did you mean --other .*dev2" diff "${sprout[@]}"
cp "$plain" "$WORK/top-file"
(cd "$WORK" && expect "a path that is the name of an image, too" 0 'is missing' cat "$first" \
    top-file)
expect "where the image begins" 0 - cat --image-offset 0 --offset 3 "$plain" /top-file
holds "is not where the file does" out_is "the top"
expect "the same elsewhere" 2 'not a btrfs' ls --image-offset 1M "$plain"

expect "PATH IMAGE" 2 'the image comes first, but there is no image of this name: /docs' \
    ls /docs "$plain"
expect "a folder of this machine" 2 'the image comes first' ls /usr "$plain"
expect "a misspelt path" 1 'nowhere: no such file or directory$' ls "$plain" /nowhere
printf 'text\n' > "$WORK/text"
expect "the path of a file of this machine" 1 "text is a path in the image; the file of this" \
    cat "$plain" "$WORK/text"
gzip -k "$WORK/text"
expect "a compressed file, too" 1 "text.gz is a path in the image" cat "$plain" "$WORK/text.gz"
gzip -1c "$second" > "$WORK/second.gz"
expect "a compressed image is a device" 0 - cat "$first" "$WORK/second.gz" /top-file
holds "the image begins at --image-offset 0" out_is "at the top"
expect "one that is meant as a path" 2 'second.gz was opened as an image' cat "$first" \
    "$WORK/second.gz"
truncate -s 64M "$WORK/empty.img"
expect "an empty disk as a device" 1 'empty.img is not used' cat --device "$WORK/empty.img" \
    "$first" /top-file
is "no other reading of an argument of --device is suggested" \
    "$(grep -c 'opened as an image' "$WORK/err")" 0
expect "a device that is not there" 2 'cannot open .*nowhere' --device "$WORK/nowhere" "$first"
is "no other reading of it is suggested" "$(wc -l < "$WORK/err")" 1
expect "an address" 2 'cannot connect to nbd' cat "$first" nbd+unix:///x?socket=nowhere /top-file

# Paths of walk, which most walks do not have.
expect "a walk of one directory" 0 - "$first" "$second" /docs
is "both devices are read for the path" \
    "$(cat "$WORK/out")" "$("$PROGRAM" "$first" "$second" | grep '^/docs/')"
expect "of a file, and of nothing" 1 'nowhere: no such file' walk "$plain" /top-file /nowhere
holds "the file is listed" out_is /top-file
expect "devices without superblocks" 0 'lost.img is device' walk "${three[0]}" "${three[2]}" "$lost"

# Suggestions.
expect "a misspelt option" 2 "unknown option: --exlude=x; did you mean '--exclude'\?" \
    sum --exlude=x "$plain"
expect "several" 2 "did you mean '--newer' or '--newerat' or" ls --newe "$plain"
expect "an option of others" 2 'unknown option: --top; it is an option of .*, .* more$' \
    walk --top 3 "$plain"
expect "of one other" 2 'unknown option: --skip-existing; it is an option of ' ls \
    --skip-existing "$plain"
expect "none like it" 2 "unknown option: --qwertz$" ls --qwertz "$plain"
expect "a short one" 2 "unknown option: -%$" ls -% "$plain"

# Paths from a file.
printf '/top-file\n\n/docs/symbolic-link\n' > "$WORK/list"
"$PROGRAM" xattr "$plain" /top-file /docs/symbolic-link > "$WORK/want"
for list in "--files-from=$WORK/list" "-T$WORK/list"; do
    expect "$list" 0 - xattr "$list" "$plain"
    holds "a list of paths selects the same as operands" cmp "$WORK/out" "$WORK/want"
done
expect "one path and a list" 0 - sum -T "$WORK/list" "$plain" /docs
holds "a list of paths adds to the operand" [ "$(wc -l < "$WORK/out")" -gt 2 ]
tr '\n' '\0' < "$WORK/list" | "$PROGRAM" stat --from0 --files-from - "$plain" > "$WORK/out"
is "--from0 reads a list with NULs from stdin" "$? $(grep -c ^Path "$WORK/out")" "0 2"
: > "$WORK/none"
expect "an empty list is not everything" 0 'the list of paths is empty' tar -T "$WORK/none" "$plain"
holds "an empty list writes nothing" [ ! -s "$WORK/out" ]
expect "a list that is not there" 2 'cannot open .*nowhere' sum -T "$WORK/nowhere" "$plain"
expect "a path that is not there" 1 'gone: no such' cat -T <(printf '/gone\n/top-file') "$plain"
holds "the other paths of the list are read" out_is "at the top"
printf '/top-file\0# incomplete\0' > "$WORK/list"
expect "a list that is not complete" 1 'list is incomplete: the extraction .* did not end' \
    sum --from0 -T "$WORK/list" "$plain"
is "an incomplete list yields its paths" "$(wc -l < "$WORK/out")" 1
printf '# incomplete\0' > "$WORK/list"
expect "nothing in it" 1 'the list of paths is empty' sum --from0 -T "$WORK/list" "$plain"
expect "no command for lists" 2 'unknown option' info --files-from "$WORK/list" "$plain"
finish
