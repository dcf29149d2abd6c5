#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The commands about devices, chunks and addresses, and what all commands that list records share.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid5-3 stale-raid1-1 || exit 1
plain=$BUILD/fixtures/plain/dev1.img
raid5=$BUILD/fixtures/raid5-3/dev stale=$BUILD/fixtures/stale-raid1-1/dev

out_is() { diff "$WORK/out" - <<< "$1"; }

# Listings: a table, columns, JSON.
uuid=$(blkid -p -o value -s UUID_SUB "$plain" 2> /dev/null || true)
expect "a table of devices" 0 - devices "$plain"
holds "names above aligned columns" out_has '^id  state         size  allocated  generation  uuid +path$'
holds "numbers on the right, with units" out_has "^ 1  present  128.00MiB  104.00MiB           8  [-0-9a-f]{36}  $plain\$"
holds "the uuid" out_has "${uuid:-present}"
expect "exact numbers" 0 - devices --raw "$plain"
holds "in the same table" out_has '^ 1  present  134217728  109051904           8 '
expect "a table with a separator" 0 - devices --separator : --raw --header "$plain"
holds "is not aligned" out_has '^1:present:134217728:109051904:8:'
expect "columns" 0 - devices -o state,id "$plain"
holds "as of a walk" out_is $'present\t1'
expect "JSON" 0 - devices --json "$plain"
holds "an object a line" out_has '^\{"id":1,"state":"present","size":134217728,"allocated":109051904,"generation":8,"uuid":"[-0-9a-f]{36}","path":".*"\}$'
expect "an array" 0 - devices --json=array -o id "$plain"
holds "of them" out_is $'[\n{"id":1}\n]'
expect "the names of the columns" 0 - devices -o help
holds "are those of devices" out_has '^allocated  +bytes allocated'
expect "a column that does not exist" 2 "unknown column size2; '-o help' lists all" devices -o size2 "$plain"
expect "no image" 2 'no image given' devices
expect "no file system" 2 '' devices "$ROOT/README.md"
holds "prints nothing" [ ! -s "$WORK/out" ]
"$PROGRAM" devices "$plain" > /dev/full 2> "$WORK/err"
is "status with a full disk" "$?" 1

# Devices.
expect "a missing device" 0 'device 3 .* is missing' devices --raw "${raid5}2.img" -d "${raid5}1.img"
holds "is listed without image and generation" out_has '^ 3  missing  134217728  109051904           -  [-0-9a-f]{36}  -$'
expect "the same in JSON" 0 '' devices --json "${raid5}2.img" -d "${raid5}1.img"
holds "leaves them out" out_has '^\{"id":3,"state":"missing","size":134217728,"allocated":109051904,"uuid":"[-0-9a-f]{36}"\}$'
expect "a stale device" 0 'is stale' devices -o id,state,generation "${stale}1.img" "${stale}2.img"
holds "is marked" out_is $'1\tstale\t7\n2\tpresent\t9'
cp --sparse=always "$plain" "$WORK/$(printf 'a\033b\tc.img')"
expect "an image with control bytes in its name" 0 - devices "$WORK/$(printf 'a\033b\tc.img')"
holds "is escaped" out_has 'a\\033b\\tc.img$'
finish
