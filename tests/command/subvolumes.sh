#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The commands about subvolumes and quotas: compared with the output of btrfs-progs for a mount, and
# on damaged images.
set -uo pipefail
. "$(dirname "$0")/common.bash"

listed=(subvolumes default-subvolume deleted-subvolumes deletion-begun subvolume-kinds old-4k)
grouped=(quota quota-groups simple-quota)
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "${listed[@]}" "${grouped[@]}" plain || exit 1
image() { echo "$BUILD/fixtures/$1/dev1.img"; }
out_is() { diff "$WORK/out" - <<< "$1"; }

# Prints the objects on stdin in the format of btrfs-progs.
as_list() {
    python3 -c 'import base64, json, sys
for line in sys.stdin:
    one = json.loads(line)
    path = one.get("subvolume_path", "").encode()
    if "subvolume_path_bytes" in one:
        path = base64.b64decode(one["subvolume_path_bytes"])
    one = {"parent_uuid": "-", "received_uuid": "-", "uuid": "-", "otransid": 0, **one}
    if one["deleted"]:
        text = "ID %(subvolume)d gen %(generation)d top level 0 path DELETED" % one
    elif one["subvolume"] == 5:
        continue
    else:
        text = ("ID %(subvolume)d gen %(generation)d cgen %(otransid)d parent %(parent_subvolume)d "
                "top level %(parent_subvolume)d parent_uuid %(parent_uuid)-36s "
                "received_uuid %(received_uuid)-36s uuid %(uuid)-36s path ") % one
    sys.stdout.buffer.write(text.encode() + path[1:] + b"\n")'
}
for name in "${listed[@]}"; do
    expect "subvolumes of $name" 0 - subvolumes --json "$(image "$name")"
    cp "$WORK/out" "$WORK/all"
    expect "deleted subvolumes of $name" 0 - subvolumes --json --deleted "$(image "$name")"
    cat "$WORK/all" "$WORK/out" | as_list > "$WORK/list"
    holds "$name: as on a mount" diff "$ROOT/fixtures/$name/subvolume-list" "$WORK/list"
done

# Text and filters.
kinds=$(image subvolume-kinds)
expect "a table" 0 - subvolumes --times iso "$kinds"
holds "the top-level subvolume comes first" out_has '^ +5 +[0-9]+ +- +[-0-9T:.]+Z  - +/$'
holds "a read-only snapshot is listed as ro,snapshot" out_has '^ +260 .* ro,snapshot +/read-only$'
holds "the default subvolume is listed as default" out_has '^ +257 .* default +/folder/deep/two$'
expect "snapshots" 0 - subvolumes --snapshots -o subvolume "$kinds"
holds "--snapshots lists two snapshots" out_is $'260\n261'
expect "read-only ones" 0 - subvolumes --read-only -o subvolume,subvolume_path "$kinds"
holds "--read-only lists two subvolumes with their paths" \
    out_is $'260\t/read-only\n262\t/received/read-only'
expect "a tree" 0 - subvolumes --tree "$kinds"
holds "--tree prints subvolumes below their parents" out_is "/  (5)
  folder/deep/two  (257 default)
  folder/writable  (261 snapshot)
  one  (256)
    nested  (258)
      folder/inner  (259)
  read-only  (260 ro,snapshot)
  received/read-only  (262 ro,received)"
expect "a deleted one in a tree" 0 - subvolumes --tree --deleted "$kinds"
holds "--tree prints a deleted subvolume without a path" out_is '-  (263 deleted)'
expect "odd names in a tree" 0 - subvolumes --tree "$(image subvolumes)"
holds "--tree escapes names" out_has '^  new\\nline\\ \\\\\\ \\377  \(269\)$'
expect "a tree of columns" 2 '--tree excludes -o' subvolumes --tree -o subvolume "$kinds"

# Paths are looked up only if they are printed.
expect "columns without a path" 0 'key-search' subvolumes -o subvolume,ro --probe \
    key-search-start "$kinds"
cp "$WORK/err" "$WORK/without"
expect "columns with a path" 0 'key-search' subvolumes -o subvolume,subvolume_path --probe \
    key-search-start "$kinds"
holds "the column of paths costs more searches" \
    [ "$(wc -l < "$WORK/err")" -gt "$(wc -l < "$WORK/without")" ]

# Quotas.
as_groups() {
    sed -e 's, *$,,' -e '1,2d' "$1" | sed 's/none/-/g' |
        awk -v OFS='\t' '{ print $1, $2, $3, $4, $5, $6, $7 }'
}
for name in "${grouped[@]}"; do
    warning=-
    [ "$name" != quota ] || warning='warning: .* inconsistent: they need a rescan'
    expect "groups of $name" 0 "$warning" \
        qgroups -o "qgroup,referenced,exclusive,max_referenced,max_exclusive,parent_qgroups,"`
            `"child_qgroups" \
        "$(image "$name")"
    as_groups "$ROOT/fixtures/$name/qgroup-show" > "$WORK/groups"
    holds "$name: as on a mount" diff "$WORK/groups" "$WORK/out"
done
expect "a table of groups" 0 - qgroups --iec "$(image quota-groups)"
holds "qgroups prints the path of a subvolume" \
    out_has '^0/257 +36.00KiB +36.00KiB +- +20.00MiB  1/2 +- +/volume-2$'
holds "qgroups prints the members of a group" \
    out_has '^2/100 +72.00KiB +72.00KiB +30.00MiB +15.00MiB  - +1/1,1/2 +-$'
for state in quota:full:inconsistent quota-groups:full:consistent simple-quota:simple:consistent \
    plain:none:-; do
    IFS=: read -r name mode consistent <<< "$state"
    expect "the state of $name" 0 - qgroups --status -o quota_mode,quota_state "$(image "$name")"
    holds "$name: the mode of quotas is $mode, and the state $consistent" \
        out_is "$mode"$'\t'"$consistent"
done
expect "flags in JSON" 0 - subvolumes --json -o subvolume,ro,snapshot,is_default,deleted \
    "$(image plain)"
is "flags are booleans in JSON" "$(head -n 1 "$WORK/out")" \
    '{"subvolume":5,"ro":false,"snapshot":false,"is_default":true,"deleted":false}'
expect "the state as JSON" 0 - qgroups --status --json "$(image simple-quota)"
holds "JSON has the generation that enabled quotas" out_is \
    '{"quota_mode":"simple","quota_state":"consistent","generation":8,"enable_generation":8,'\
'"flags":["ON","SIMPLE_MODE"],"format_version":1}'
expect "no quotas" 0 'warning: .*the file system has no quotas' qgroups --json "$(image plain)"
holds "without quotas, no groups are printed" [ ! -s "$WORK/out" ]
finish
