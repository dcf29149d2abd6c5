#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# cat and extents: contents, ranges, bad data, and where data lie.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
F=$BUILD/fixtures

# status WANT ARGUMENTS...: runs the program, which must exit with this status; its output is in out
# and err.
status() {
    local want=$1 got
    shift
    timeout 60 "$PROGRAM" "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null
    got=$?
    if [ "$got" -eq "$want" ]; then
        pass
    else
        fail "$*: exit status $got, not $want: $(head -n 2 "$WORK/err")"
    fi
}
err_has() { has_line "$1" "$WORK/err"; }
# devices FIXTURE: arguments for all devices but the first.
devices() {
    local image
    for image in "$F/$1"/dev*.img; do
        [ "$image" = "$F/$1/dev1.img" ] || printf -- '--device\n%s\n' "$image"
    done
}
# all FIXTURE [OPTIONS]: the contents of all its files, in the order of the list.
all() {
    local fixture=$1
    shift
    mapfile -t more < <(devices "$fixture")
    mapfile -d '' paths < <("$PROGRAM" -0q "$F/$fixture/dev1.img" "${more[@]}" | sort -z)
    timeout 120 "$PROGRAM" cat "$@" "${more[@]}" "$F/$fixture/dev1.img" "${paths[@]}"
}

# Everything can be read and passes its checksums, with any number of threads.
for fixture in plain compressed checksum-xxhash64 checksum-sha256 checksum-blake2 mixed \
    nodesize-4k nodesize-64k dup old-4k old-16k converted metadata-uuid block-group-tree \
    simple-quota sectorsize-16k sectorsize-64k subvolumes raid0-3 raid1-2 raid1c3-3 \
    raid1c4-4 raid10-4 raid5-3 raid6-4 single-3 device-gaps replaced sprout; do
    all "$fixture" -j 1 > "$WORK/one" 2> "$WORK/err"
    got=$?
    is "$fixture: status; $(head -n 1 "$WORK/err")" "$got" 0
    all "$fixture" -j 4 > "$WORK/four" 2> /dev/null
    holds "$fixture: one thread and four write the same contents" \
        same_bytes "$WORK/one" "$WORK/four"
done

# Ranges.
plain=$F/plain/dev1.img
status 0 cat "$plain" /top-file
holds "cat writes the eleven bytes of the file" [ "$(wc -c < "$WORK/out")" -eq 11 ]
cp "$WORK/out" "$WORK/whole"
status 0 cat --offset 3 --length 4 "$plain" /top-file
holds "--offset and --length select a range" \
    [ "$(cat "$WORK/out")" = "$(tail -c +4 "$WORK/whole" | head -c 4)" ]
status 0 cat --offset 1M "$plain" /top-file
holds "nothing is written after the end of the file" [ ! -s "$WORK/out" ]
status 0 cat "$plain" /top-file top-file
holds "a file that is named twice is written twice" [ "$(wc -c < "$WORK/out")" -eq 22 ]
status 2 cat --offset -1 "$plain" /top-file
status 2 cat --offset 99999999999999999999 "$plain" /top-file
status 2 cat --on-error never "$plain" /top-file
status 1 cat "$plain" /nowhere /top-file
holds "the other file is written" cmp "$WORK/out" "$WORK/whole"
status 1 cat "$plain" /
holds "cat of a directory reports the reason" err_has 'not a regular file'

# Without a checksum nobody can tell whether data that were rebuilt from parity are right: one
# warning per file, and the exit status does not change.
degraded=("$F/raid5-3/dev2.img" --device "$F/raid5-3/dev3.img")
rebuilt=/source/large.bin
warnings() { grep -c 'warning: .* computed from parity' "$WORK/err"; }
leaf=$("$PROGRAM" dump --tree csum "$F"/raid5-3/dev*.img | sed -n 's/^leaf \([0-9]*\) items.*/\1/p')
without=(--ignore-checksums data --insert
    "debug/error-gen@chunk-map,kind=tree-block,start=$leaf,end=$((leaf + 1)),action=zero")
status 0 cat "${without[@]}" "${degraded[@]}" "$rebuilt" "$rebuilt"
holds "data without checksums that are rebuilt from parity get one warning" [ "$(warnings)" -eq 1 ]
status 0 cat "${degraded[@]}" "$rebuilt"
holds "data with checksums get no warning" [ "$(warnings)" -eq 0 ]
status 0 cat --ignore-checksums data "${degraded[@]}" "$rebuilt"
holds "none if they are there, though ignored" [ "$(warnings)" -eq 0 ]
status 0 cat "${without[@]}" "${degraded[@]}" --device "$F/raid5-3/dev1.img" "$rebuilt"
holds "data that are not rebuilt get no warning" [ "$(warnings)" -eq 0 ]
for command in sum tar; do
    status 0 "$command" "${without[@]}" "${degraded[@]}" "$rebuilt"
    holds "$command prints one warning about data rebuilt from parity" [ "$(warnings)" -eq 1 ]
done
status 0 extract -C "$WORK/rebuilt" "${without[@]}" "${degraded[@]}" "$rebuilt"
holds "extract prints one warning about data rebuilt from parity" [ "$(warnings)" -eq 1 ]

# Damage: a sector of a large file, in its only copy.
victim=$F/subvolumes/dev1.img
largest=$("$PROGRAM" -q "$victim" | grep 'source/large.bin$' | head -n 1)
cp --sparse=always "$victim" "$WORK/bad.img"
status 0 extents --json "$victim" "$largest"
offset=$(grep -oE \
        '"places":\[\{"logical":[0-9]+,"length":[0-9]+,"copies":\[\{"devid":1,"offset":[0-9]+' \
        "$WORK/out" |
    head -n 1 | grep -oE '[0-9]+$')
if [ -n "$offset" ]; then
    "$PROGRAM" cat "$victim" "$largest" > "$WORK/whole"
    printf nonsense | dd of="$WORK/bad.img" bs=1 seek="$offset" conv=notrunc 2> /dev/null
    status 1 cat "$WORK/bad.img" "$largest"
    holds "names the file and the device" err_has \
        'cannot be read: data at [0-9]+: no good mirror: '\
'mirror 1 on device 1 at [0-9]+: crc32c checksum mismatch'
    status 1 cat --on-error=zero "$WORK/bad.img" "$largest"
    holds "as long as it was" [ "$(wc -c < "$WORK/out")" -eq "$(wc -c < "$WORK/whole")" ]
    holds "a map of what is bad" err_has \
        'damage: .*: bytes [0-9]+ to [0-9]+ cannot be read, zeros in their place'
    status 1 cat --on-error=skip "$WORK/bad.img" "$largest"
    holds "--on-error=skip leaves out the bad sector" \
        [ "$(wc -c < "$WORK/out")" -lt "$(wc -c < "$WORK/whole")" ]
    status 0 cat --ignore-checksums data "$WORK/bad.img" "$largest"
    holds "--ignore-checksums writes the bad sector as it is" grep -aq nonsense "$WORK/out"
    holds "a warning counts the bytes that were not verified" \
        err_has 'warning: .*: 4096 bytes of data were not verified'
    status 1 cat --ignore-checksums metadata "$WORK/bad.img" "$largest"
else
    fail "extents tells of no place of $largest"
fi

# Degraded: the same bytes from the remaining devices. Two adjacent devices are missing, so some
# rows lack both of their data.
mapfile -t more < <(devices raid6-4)
mapfile -d '' paths < <("$PROGRAM" -0q "$F/raid6-4/dev1.img" "${more[@]}" | sort -z)
"$PROGRAM" cat "${more[@]}" "$F/raid6-4/dev1.img" "${paths[@]}" > "$WORK/whole" 2> "$WORK/err"
expect "cat from two of four devices of a RAID6" 0 - \
    cat -q --device "$F/raid6-4/dev4.img" "$F/raid6-4/dev1.img" "${paths[@]}"
holds "two of four devices of a RAID6 have all contents" same_bytes "$WORK/whole" "$WORK/out"

# An image that is changed while it is read: meanwhile, the program waits for the reader of its
# pipe.
cp --sparse=always "$F/compressed/dev1.img" "$WORK/changed.img"
mapfile -t paths < <("$PROGRAM" -q "$F/compressed/dev1.img" | grep '/large$')
for place in 72 96; do # generation and log root
    {
        "$PROGRAM" cat "$WORK/changed.img" "${paths[@]}" 2> "$WORK/err"
        echo $? > "$WORK/status"
    } | {
        head -c 1 > "$WORK/out"
        change "$WORK/changed.img" copy 0 "$place" 8 12345 > "$WORK/answer"
        cat >> "$WORK/out"
    }
    is "a change of an image while it is read is an error" "$(cat "$WORK/status")" 1
    holds "the message names the changed image" err_has \
        'changed.img was changed while it was read: it(s log has changed; | had generation 9, )'
done

# Extents.
status 0 extents "$F/compressed/dev1.img" "$("$PROGRAM" -q "$F/compressed/dev1.img" | head -n 1)"
holds "extents prints a table" grep -qE '^ +0: ' "$WORK/out"
status 1 extents "$plain" /nowhere

# Blocks: what is stored at logical addresses.
# stored IMAGE LOGICAL LENGTH [MIRROR]: the bytes of a mirror, read from the image.
stored() {
    tail -c +"$(($("$PROGRAM" map -o mirror,offset "$1" "$2" |
        sed -n "s/^${4:-1}\t//p") + 1))" "$1" | head -c "$3"
}
leaf=$("$PROGRAM" dump --tree fs "$plain" | sed -n 's/^leaf \([0-9]*\) items.*/\1/p' | head -n 1)
status 0 cat --block "$leaf" "$plain"
holds "cat --block writes the bytes of a tree block" \
    cmp "$WORK/out" <(stored "$plain" "$leaf" 16384)
cp --sparse=always "$plain" "$WORK/block.img"
offset=$("$PROGRAM" map -o mirror,offset "$plain" "$leaf" | sed -n 's/^2\t//p')
printf x | dd of="$WORK/block.img" bs=1 seek=$((offset + 5000)) conv=notrunc status=none
status 0 cat --block "$leaf" --mirror 1 "$WORK/block.img"
holds "--mirror 1 writes the good mirror of the block" \
    cmp "$WORK/out" <(stored "$plain" "$leaf" 16384)
status 1 cat --block "$leaf" --mirror 2 "$WORK/block.img"
holds "the second one is bad" err_has "bytes $leaf to .*checksum"
status 0 cat --block "$leaf" --mirror 2 --ignore-checksums all "$WORK/block.img"
holds "--ignore-checksums writes the bad mirror of the block" \
    cmp "$WORK/out" <(stored "$WORK/block.img" "$leaf" 16384 2)
status 1 cat --block "$((leaf + 4096))" "$plain"
holds "not the beginning of a block" err_has 'there is no tree block at'
large=$(run_json extents --json "$F/compressed/dev1.img" \
    "$("$PROGRAM" -q "$F/compressed/dev1.img" | grep '/large$' | head -n 1)" |
    sed -n 's/.*"extent_logical":\([0-9]*\),"extent_stored":\([0-9]*\).*/\1+\2/p' | head -n 1)
status 0 cat --block "$large" "$F/compressed/dev1.img"
holds "cat --block writes compressed data as stored" cmp "$WORK/out" \
    <(stored "$F/compressed/dev1.img" "${large%+*}" "${large#*+}")
bad="debug/error-gen@chunk-map,kind=data,start=${large%+*},end=$((${large%+*} + 1)),action=flip"
status 1 cat --block "$large" --insert "$bad" "$F/compressed/dev1.img"
holds "a bad sector of a block of data is reported" err_has "bytes ${large%+*} to"
status 1 cat --block "$large" --on-error=skip --insert "$bad" "$F/compressed/dev1.img"
is "--on-error=skip leaves out the bad sector of a block" \
    "$(wc -c < "$WORK/out")" "$((${large#*+} - 4096))"
mapfile -t more < <(devices raid6-4)
data=$("$PROGRAM" chunks -o logical,chunk_type "${more[@]}" "$F/raid6-4/dev1.img" |
    sed -n 's/\tData.*//p' | head -n 1)
for mirror in 1 2 3; do
    status 0 cat --block "$data+64K" --mirror "$mirror" "${more[@]}" "$F/raid6-4/dev1.img"
    cp "$WORK/out" "$WORK/mirror.$mirror"
done
holds "data rebuilt from P equal the data" cmp "$WORK/mirror.1" "$WORK/mirror.2"
holds "data rebuilt from Q equal the data" cmp "$WORK/mirror.1" "$WORK/mirror.3"
status 2 cat --block 1 "$plain"
status 2 cat --block 0 "$plain"
holds "an address outside of all chunks is reported" err_has 'no chunk holds logical address 0'
status 2 cat --block "$leaf" --mirror 3 "$plain"
holds "a mirror that does not exist is reported" err_has "there is no mirror 3 of $leaf, only 2"
status 2 cat --block "$leaf" "$plain" /top-file
status 2 cat "$plain"
finish
