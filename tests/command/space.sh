#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The commands about devices, chunks and addresses, and the common options of all commands that list
# records.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid5-3 raid6-4 stale-raid1-1 \
    block-group-tree extent-tree-v2 lost-tree-extent stripe-tree-raid1 sprout \
    conversion-raid1-raid5 quota || exit 1
plain=$BUILD/fixtures/plain/dev1.img
fixtures=$BUILD/fixtures
raid5=$BUILD/fixtures/raid5-3/dev stale=$BUILD/fixtures/stale-raid1-1/dev

out_is() { diff "$WORK/out" - <<< "$1"; }

# Listings: a table, columns, JSON.
uuid=$(blkid -p -o value -s UUID_SUB "$plain" 2> /dev/null || true)
expect "a table of devices" 0 - devices --iec "$plain"
holds "the table of devices has a heading" out_has \
    '^devid  device_state       size  allocated  generation  uuid +device$'
holds "numbers on the right, with units" out_has \
    "^    1  present       128.00MiB  104.00MiB           8  [-0-9a-f]{36}  $plain\$"
holds "the table of devices has the uuid" out_has "${uuid:-present}"
expect "exact numbers" 0 - devices --raw "$plain"
holds "--raw keeps the table" out_has '^    1  present       134217728  109051904           8 '
expect "a table with a separator" 0 - devices --separator : --raw --header "$plain"
holds "--separator prints columns without alignment" out_has '^1:present:134217728:109051904:8:'
expect "devices in columns" 0 - devices -o device_state,devid "$plain"
holds "-o prints columns with tabs" out_is $'present\t1'
expect "devices as JSON" 0 - devices --json "$plain"
holds "--json prints an object in each line" out_has \
    '^\{"devid":1,"device_state":"present","size":134217728,"allocated":109051904,"generation":8,'\
'"uuid":"['\
'-0-9a-f]{36}","device":".*"\}$'
expect "an array" 0 - devices --json=array -o devid "$plain"
holds "--json=array prints an array" out_is $'[\n{"devid":1}\n]'
expect "the names of the columns" 0 - devices -o help
holds "-o help lists columns of devices" out_has '^allocated  +bytes allocated'
expect "a column that does not exist" 2 \
    "unknown column size2 \(did you mean size\?\); '-o help' lists all" \
    devices -o size2 "$plain"
expect "no image" 2 'no image given' devices
expect "no file system" 2 '' devices "$ROOT/README.md"
holds "a text file prints nothing" [ ! -s "$WORK/out" ]
"$PROGRAM" devices "$plain" > /dev/full 2> "$WORK/err"
is "status with a full disk" "$?" 1

# Devices.
expect "a missing device" 0 'device 3 .* is missing' devices --raw "${raid5}2.img" \
    --device "${raid5}1.img"
holds "is listed without image and generation" out_has \
    '^    3  missing       134217728  109051904           -  [-0-9a-f]{36}  -$'
expect "the same in JSON" 0 '' devices --json "${raid5}2.img" --device "${raid5}1.img"
holds "JSON of a missing device has no image and no generation" out_has \
    '^\{"devid":3,"device_state":"missing","size":134217728,"allocated":109051904,'\
'"uuid":"[-0-9a-f]{36}",'\
'"incomplete_chunks":0\}$'
expect "a stale device" 0 'is stale' devices -o devid,device_state,generation "${stale}1.img" \
    "${stale}2.img"
holds "the device is stale" out_is $'1\tstale\t7\n2\tpresent\t9'
cp --sparse=always "$plain" "$WORK/$(printf 'a\033b\tc.img')"
expect "an image with control bytes in its name" 0 - devices "$WORK/$(printf 'a\033b\tc.img')"
holds "control bytes in the name are escaped" out_has 'a\\033b\\tc.img$'

# Chunks: same data as in `btrfs inspect-internal dump-tree -t chunk` and `-t extent`.
expect "chunks in a pipe" 0 - chunks "$plain"
holds "chunks in a pipe have exact numbers" \
    out_has '^30408704 +33554432  Metadata +DUP +425984  1:38797312,1:72351744$'
expect "chunks with units" 0 - chunks --iec "$plain"
holds "chunks prints a table" out_is ' logical    length  chunk_type  profile       used  stripes
13631488   8.00MiB  Data        single    24.00KiB  1:13631488
22020096   8.00MiB  System      DUP       16.00KiB  1:22020096,1:30408704
30408704  32.00MiB  Metadata    DUP      416.00KiB  1:38797312,1:72351744
63963136  16.00MiB  Data        single   452.00KiB  1:105906176'
expect "chunks in JSON" 0 - chunks --json "$plain"
holds "JSON has an array of stripes" out_has \
    '^{"logical":22020096,"length":8388608,"chunk_type":"System","profile":"DUP","used":16384,'\
'"stripes":\[{"devid":1,"offset":22020096},{"devid":1,"offset":30408704}\],"stripe'\
'_length":8388608,"flags":\["SYSTEM","DUP"\]}$'
expect "chunks by device" 0 - chunks --by device --raw "$plain"
holds "--by device lists the holes between chunks" out_is \
    'devid     offset  stripe_length  chunk_type   profile   logical    length    used
    1          0        1048576  reserved     -               -         -       -
    1    1048576       12582912  unallocated  -               -         -       -
    1   13631488        8388608  Data         single   13631488   8388608   24576
    1   22020096        8388608  System       DUP      22020096   8388608   16384
    1   30408704        8388608  System       DUP      22020096   8388608   16384
    1   38797312       33554432  Metadata     DUP      30408704  33554432  425984
    1   72351744       33554432  Metadata     DUP      30408704  33554432  425984
    1  105906176       16777216  Data         single   63963136  16777216  462848
    1  122683392       11534336  unallocated  -               -         -       -'
expect "a degraded RAID5" 0 'is missing' chunks -o length,profile,stripe_length,used \
    "${raid5}1.img" --device "${raid5}2.img"
holds "all chunks of a degraded RAID5 are listed" out_is \
    $'16777216\tRAID5\t8388608\t16384\n67108864\tRAID5\t33554432\t720896\n134217728\tRAID5\t6710'\
$'8864\t20480'
expect "a block group tree" 0 - chunks -o used "$fixtures/block-group-tree/dev1.img"
holds "the used bytes come from the block group tree" out_is $'20480\n409600\n16384'
expect "extent tree v2" 0 - chunks -o used "$fixtures/extent-tree-v2/dev1.img"
holds "the used bytes come from several extent trees" \
    out_is $'6774784\n16384\n360448\n24576\n13508608'
expect "a lost extent tree" 1 'block group 1048576 is lost|no good mirror' chunks -o logical,used \
    "$fixtures/lost-tree-extent/dev1.img"
holds "without the extent tree, the used bytes are unknown" \
    out_is $'1048576\t-\n5242880\t-\n13631488\t-'
holds "the lost extent tree is reported once" [ "$(wc -l < "$WORK/err")" -eq 1 ]
expect "an unknown order" 2 'invalid argument of --by: size .allowed: chunk, device.' chunks \
    --by size "$plain"

# Usage: same numbers as `btrfs filesystem usage -b` on a mount, except for the global reserve,
# statfs, and the paths.
expect "usage in bytes" 0 - usage -b "$plain"
holds "the numbers of the reference" out_is "Overall:
    Device size:		         134217728
    Device allocated:		         109051904
    Device unallocated:		          25165824
    Device missing:		                 0
    Device slack:		                 0
    Used:			           1372160
    Free (estimated):		          49844224	(min: 37261312)
    Data ratio:			              1.00
    Metadata ratio:		              2.00
    Multiple profiles:		                no

Data,single: Size:25165824, Used:487424 (1.94%)
   $plain	  25165824

Metadata,DUP: Size:33554432, Used:425984 (1.27%)
   $plain	  67108864

System,DUP: Size:8388608, Used:16384 (0.20%)
   $plain	  16777216

Unallocated:
   $plain	  25165824"
expect "usage with units" 0 - usage "$plain"
holds "usage prints units" out_has '^    Device size:		 128.00MiB$'
expect "usage with other units" 0 - usage --si "$plain"
holds "usage --si prints powers of 1000" out_has '^    Device size:		  134.22MB$'
expect "a degraded RAID5" 0 'is missing' usage -b "${raid5}1.img" "${raid5}2.img"
holds "usage counts the missing device" out_has '^    Device missing:		         134217728$'
holds "the free space is estimated with the ratio of RAID5" out_has \
    '^    Free \(estimated\):		         184528896	\(min: 184528896\)$'
holds "usage names the missing device" out_has '^   missing \(device 3\)	  67108864$'
if have python3; then
    for number in 1 2 3; do
        cp --sparse=always "$raid5$number.img" "$WORK/uneven$number.img"
        # the chunk tree is not on all devices
        change "$WORK/uneven$number.img" 3 1 216 3 add 8 8 $((8 << 30)) > /dev/null || :
    done
    expect "an uneven RAID5" 0 - usage -b "$WORK"/uneven?.img
    holds "usage counts the unallocated space of the larger device" \
        out_has '^    Device unallocated:		        8665432064$'
    holds "estimates what chunks can take" out_has \
        '^    Free \(estimated\):		         184528896	\(min: 184528896\)$'
    rm -f "$WORK"/uneven?.img
fi
expect "usage in JSON" 0 - usage --json "$plain"
holds "usage --json prints one object" out_has \
    '^\{"overall":\{"device_size":134217728,"device_allocated":109051904,"device_unallocated":25'\
'165824,"device_missing":0,"device_slack":0,"used":1372160,"free_estimated":49844224,"free_min":'\
'37261312,"data_ratio_percent":100,"metadata_ratio_percent":200,"multiple_profiles":false,"chunk'\
's":4,"incomplete_chunks":0,"complete":true\},"groups":\[\{"chunk_type":"Data",'\
'"profile":"single","size":25165824,"used":487424,"raw_si'\
'ze":25165824,"raw_used":487424,"chunks":2,'\
'"incomplete_chunks":0,"complete":true,"devices":\[\{"devid":1,"size":251658'\
'24\}\]\},'
holds "names devices as the devices command does" out_has \
    '"devices":\[\{"devid":1,"device_state":"present","device":"[^"]*dev1.img","seed":false,'\
'"size":134217728,"allocated":109051904,"unallocated":25165824,"slack":0\}\],"reasons":\[\]\}$'
# Why a file system is full.
expect "a quota" 0 - usage --json "$fixtures/quota/dev1.img"
holds "a quota that is not reached is no reason" out_has '"reasons":\[\]'
expect "a seed" 0 - usage -b "$fixtures/sprout/dev1.img" "$fixtures/sprout/dev2.img"
holds "their groups count, their size does not, as in the reference" out_has \
    '^    Device unallocated:		          -8388608$'
expect "several profiles" 0 - usage "$fixtures/conversion-raid1-raid5/dev1.img" \
    "$fixtures/conversion-raid1-raid5/"dev[2-9].img
holds "usage names several profiles" out_has '^    Multiple profiles:		       yes	\(metadata\)$'
expect "usage without the extent tree" 1 \
    'no good mirror' usage --json "$fixtures/lost-tree-extent/dev1.img"
holds "usage without the extent tree is not complete" out_has '"used":0,.*"complete":false'

# Addresses.
expect "an address with two copies" 0 - map -o kind,mirror,devid,offset,length "$plain" 0x1d00000
holds "map lists both copies" \
    out_is $'copy\t1\t1\t38797312\t33554432\ncopy\t2\t1\t72351744\t33554432'
raid6=$fixtures/raid6-4/dev
six=("${raid6}1.img" --device "${raid6}3.img" --device "${raid6}4.img")
expect "a range of a degraded RAID6" 0 'is missing' map -o logical,length,kind,mirror,devid,offset \
    "${six[@]}" 105971712+68K
holds "is cut at the stripes, with the parity of each row" out_is \
    $'105971712\t65536\tcopy\t1\t2\t42991616
105971712\t65536\tP\t-\t3\t42991616\n105971712\t65536\tQ\t-\t4\t42991616
106037248\t4096\tcopy\t1\t2\t43057152
106037248\t4096\tP\t-\t4\t43057152\n106037248\t4096\tQ\t-\t1\t64028672'
expect "the other way" 0 'is missing' map --devid 4 -o kind,logical,length,mirror "${six[@]}" \
    42991616+128K
holds "map --devid lists the rows that parity protects" \
    out_is $'Q\t105906176\t65536\t-\nP\t106037248\t65536\t-'
expect "a device from its beginning" 0 - map --devid 1 -o offset,length,kind,logical "$plain" 0+72M
holds "map --devid lists all uses of a device range" out_is \
    $'0\t65536\treserved\t-\n65536\t4096\tsuperblock\t-\n69632\t978944\treserved\t-
1048576\t12582912\tunallocated\t-\n13631488\t8388608\tcopy\t13631488
22020096\t8388608\tcopy\t22020096
30408704\t8388608\tcopy\t22020096\n38797312\t28311552\tcopy\t30408704\n67108864\t4096\tsuperblock\t-
67112960\t5238784\tcopy\t58724352\n72351744\t3145728\tcopy\t30408704'
expect "a range that ends after the last chunk" 0 - map -o logical,length,kind,devid "$plain" \
    80740351+2
holds "the range after the last chunk is outside" \
    out_is $'80740351\t1\tcopy\t1\n80740352\t1\toutside\t-'
one=$fixtures/stripe-tree-raid1/dev
pair=("${one}1.img" --device "${one}2.img")
logical=$("$PROGRAM" chunks -o chunk_type,logical "${one}1.img" "${one}2.img" |
        sed -n 's/^Data\t//p' | tail -n 1)
expect "a raid stripe tree" 0 - map -o devid,offset,length,mirror "${pair[@]}" "$logical"
while read -r devid offset length copy; do
    is "map --devid $devid leads back to the address" \
        "$("$PROGRAM" map --devid "$devid" -o logical,length,mirror "${pair[@]}" \
            "$offset+$length")" \
        "$logical"$'\t'"$length"$'\t'"$copy"
done < "$WORK/out"
expect "an address in no chunk" 2 \
    'no chunk holds logical address 1048576; the next chunk is 13631488\+8388608' map "$plain" 1M
expect "one after all" 2 'the previous chunk is 63963136\+16777216$' map "$plain" 1t
holds "an address after all chunks prints nothing" [ ! -s "$WORK/out" ]
expect "a device that does not exist" 2 'no device 7; the file system has 1$' map --devid 7 \
    "$plain" 0
expect "after the end of a device" 2 'after the end of device 1' map --devid 1 "$plain" 128M
for bad in '' x 1x +5 5+ 5+0 5+x 0x 0xg 16777216E 18446744073709551616 1+18446744073709551615 \
    0x10000000000000000; do
    expect "the address '$bad'" 2 'invalid address' map "$plain" "$bad"
done
expect "no address" 2 'no address given' map "$plain"
holds "the message names --help" grep -qx "Try 'btrfs-walk map --help'\." "$WORK/err"
finish
