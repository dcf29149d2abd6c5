#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Columns and JSON: the options, the output, and that the files and their order are those of the
# plain listing, on healthy and on damaged images.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
empty=$BUILD/fixtures/empty/dev1.img
count=$("$PROGRAM" -0 "$plain" | tr -dc '\0' | wc -c)

rows() { tr -dc '\0' < "$WORK/out" | wc -c; }

# Columns.
expect "walk in columns" 0 - -0 -o path,size,mtime "$plain"
holds "-0 -o prints a row for each file" [ "$(rows)" -eq "$count" ]
holds "-o path,size,mtime prints these columns" grep -qzP '^/top-file\t11\t1\d{18}$' "$WORK/out"
expect "columns in another order" 0 - --output size,path "$plain"
holds "--output size,path prints these columns" grep -qP '^11\t/top-file$' "$WORK/out"
expect "a header" 0 - --header -o path,uid,gid "$plain"
holds "the names of the columns" [ "$(head -n 1 "$WORK/out")" = $'path\tuid\tgid' ]
expect "a header and no file" 0 - --header -o path,uid "$empty"
holds "a header without files is printed" [ "$(cat "$WORK/out")" = $'path\tuid' ]
expect "a separator" 0 - -0 --header --separator ' | ' -o size,path "$plain"
holds "--separator stands between the columns of each row" \
    [ "$(grep -cz '^[0-9]* | /' "$WORK/out")" -eq "$count" ]
holds "--separator stands between the names of the header" grep -qxz 'size | path' "$WORK/out"
expect "a separator with escapes" 0 - --header --separator '\t\\\n' -o inode,uid "$plain"
holds "a tab, a backslash, a newline" [ "$(head -n 2 "$WORK/out")" = $'inode\t\\\nuid' ]
expect "a NUL between columns" 0 - -0 --separator '\0' -o path,uid "$plain"
holds "twice as many as files" [ "$(rows)" -eq $((2 * count)) ]
expect "sizes in IEC units" 0 - --iec -o size,path "$plain"
holds "--iec prints KiB" out_has '^19\.53KiB	/docs/second name'
expect "sizes in SI units" 0 - --si -o size,path "$plain"
holds "--si prints kB" out_has '^20\.00kB	/docs/second name'
expect "raw numbers" 0 - --raw -o size,path "$plain"
holds "--raw prints bytes" out_has '^20000	/docs/second name'

# Help.
expect "the list of columns" 0 - -o help
holds "-o help documents each column" \
    [ "$(grep -cE '^[a-z_]+ +[A-Za-z]' "$WORK/out")" -eq "$(grep -c '' "$WORK/out")" ]
holds "-o help begins with path" [ "$(head -n 1 "$WORK/out" | cut -d ' ' -f 1)" = path ]
all=$(sed 's/ .*//' "$WORK/out" | paste -s -d ,)
expect "all columns" 0 - -0 --header -o "$all" "$plain"
holds "the header has the names of all columns" \
    [ "$(head -z -n 1 "$WORK/out" | tr -d '\0' | tr '\t' ,)" = "$all" ]
for words in 'tree-stats --items -o help' 'tree-stats -o help --items'; do
    expect "$words" 0 - $words
    is "the columns of $words" "$(awk '{ print $1 }' "$WORK/out" | xargs)" \
        "tree key_type_name key_type items bytes"
done
expect "columns of --status" 0 - qgroups -o help --status
holds "-o help --status lists the columns of the status" out_has '^enable_generation '
expect "columns without it" 0 - qgroups -o help
holds "-o help lists the columns of groups" out_has '^max_referenced '
"$PROGRAM" -o help > /dev/full 2> /dev/null
status=$?
holds "the list on a full disk is an error" [ "$status" -ne 0 ]

# JSON.
expect "walk as JSON" 0 - --json "$plain"
holds "--json prints a line for each file" [ "$(grep -c '^{"path.*}$' "$WORK/out")" -eq "$count" ]
cp "$WORK/out" "$WORK/lines"
expect "JSON lines by name" 0 - --json=lines "$plain"
holds "--json=lines prints the same as --json" cmp "$WORK/out" "$WORK/lines"
expect "JSON of columns" 0 - --json -o size,path "$plain"
holds "--json -o prints the selected members" out_has '^\{"size":11,"path":"/top-file"\}$'
expect "JSON behind NUL" 0 - --json -0 "$plain"
holds "--json -0 prints the same rows" cmp "$WORK/lines" <(tr '\0' '\n' < "$WORK/out")
expect "a header record" 0 - --json --header "$plain"
holds "it is the first line" [ "$(head -n 1 "$WORK/out" | sed 's/"version":"[^"]*"/V/')" = \
    '{"record":"header","tool":"btrfs-walk",V,"schema":2,"of":"fileinfo","of_version":2}' ]
holds "the rows follow the header record" cmp "$WORK/lines" <(tail -n +2 "$WORK/out")
expect "an array" 0 - --json=array "$plain"
holds "--json=array has the elements of --json" \
    cmp "$WORK/lines" <(sed -e '1d;$d' -e 's/,$//' "$WORK/out")
expect "an array of nothing" 0 - --json=array "$empty"
holds "an array without files is [ and ]" [ "$(cat "$WORK/out")" = $'[\n]' ]
if have python3; then
    python() { python3 -c "import json, sys; $1" "${@:2}"; }
    valid() {
        run_json "$@" > "$WORK/document" 2> "$WORK/err"
        [ $? -le 1 ] && python3 -m json.tool "$WORK/document"
    }
    holds "an array is one document" valid --json=array "$plain"
    holds "an array with a header is one document" valid --json=array --header "$plain"
    holds "an array without files is one document" valid --json=array "$empty"
    holds "without files, with a header" valid --json=array --header "$empty"
    holds "an array of a damaged image is one document" \
        valid --json=array "$BUILD/fixtures/lost-leaf-first/dev1.img"
    holds "each line is a document" python '[json.loads(line) for line in open(sys.argv[1])]' \
        "$WORK/lines"
else
    skip python3 "validity of JSON"
fi

# Invalid options.
expect "an unknown column" 2 "unknown column sise \(did you mean size\?\); '-o help' lists" \
    -o path,sise "$plain"
holds "an unknown column prints nothing on stdout" [ ! -s "$WORK/out" ]
expect "a column twice" 2 'column path is named twice' -o path,path "$plain"
expect "an empty column" 2 'name of a column is empty' -o path, "$plain"
expect "no columns" 2 'invalid argument of --output' -o '' "$plain"
expect "columns without an image" 2 'no image given' -o path
expect "an unknown form of JSON" 2 'invalid argument of --json: tree' --json=tree "$plain"
expect "a bad separator" 2 'invalid argument of --separator' -o path,size --separator '\x' "$plain"
expect "a separator that ends with a backslash" 2 'invalid argument of --separator' -o path,size \
    --separator '\' "$plain"
expect "a separator with JSON" 2 'not for --json' --json --separator , "$plain"
expect "units with JSON" 2 'decimal' --json --iec "$plain"
expect "the header of before" 2 'removed: use --header with --json' --json --json-header "$plain"
expect "two units" 2 'exclude each other' -o size --iec --si "$plain"
expect "units and none" 2 'raw excludes' -o size --raw --si "$plain"
expect "units without columns" 2 'which -o chooses' --iec "$plain"
expect "a header without columns" 2 'which -o chooses' --header "$plain"
expect "NUL in an array" 2 'not for --json=array' -0 --json=array "$plain"
expect "a subvolume that is not there" 2 'no subvolume' --header -o path,size --subvol 9999 "$plain"
holds "an unknown subvolume prints nothing on stdout" [ ! -s "$WORK/out" ]

# Streams.
open_unread
for form in "-o path,size" --json --json=array; do
    # shellcheck disable=SC2086 # two words
    "$PROGRAM" $form "$plain" > /dev/full 2> "$WORK/err"
    status=$?
    holds "$form on a full disk is an error" [ "$status" -eq 1 ]
    holds "$form: a full disk is reported" grep -q 'cannot write to stdout' "$WORK/err"
    # shellcheck disable=SC2086
    (trap '' PIPE; exec "$PROGRAM" $form "$plain") >&"$unread" 2> "$WORK/err"
    is "$form: a closed pipe ends it, without a message" "$?$(cat "$WORK/err")" 141
done
if have_terminal; then
    script -qec "$PROGRAM --header -o size,mtime,path $plain" /dev/null < /dev/null |
        tr -d '\r' > "$WORK/out"
    holds "units and dates on a terminal" grep -qP \
        '^19\.53KiB\t20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z\t/docs/second\\ name' "$WORK/out"
    holds "a terminal gets no control bytes" \
        [ "$(tr -d '\n\t' < "$WORK/out" | tr -cd '\000-\037\177' |
            wc -c)" -eq 0 ]
    script -qec "$PROGRAM --raw -o size,mtime $plain" /dev/null < /dev/null |
        tr -d '\r' > "$WORK/out"
    holds "raw numbers on a terminal" [ -z "$(grep -vP '^\d+\t\d+$' "$WORK/out")" ]
else
    skip "script(1) on a pseudo-terminal" terminals
fi

# The same files in the same order, whatever columns are printed, and with any number of threads.
mkdir "$WORK/json"
while read -r folder; do
    name=$(basename "$folder")
    "$PROGRAM" -0 "$folder"dev*.img > "$WORK/paths" 2> /dev/null
    status=$?
    [ "$status" -le 1 ] || continue
    "$PROGRAM" -0 -o path "$folder"dev*.img > "$WORK/out" 2> /dev/null
    holds "$name: exit status of paths as a column" [ "$?" -eq "$status" ]
    holds "$name: paths as a column" cmp "$WORK/paths" "$WORK/out"
    "$PROGRAM" -0 -o size,mtime,compression,path "$folder"dev*.img > "$WORK/rows" 2> /dev/null
    cut -z -f 4- "$WORK/rows" > "$WORK/out"
    holds "$name: paths beside other columns" cmp "$WORK/paths" "$WORK/out"
    "$PROGRAM" -0 -j 5 -o size,mtime,compression,path "$folder"dev*.img > "$WORK/out" 2> /dev/null
    holds "$name: any number of threads" cmp "$WORK/rows" "$WORK/out"
    cp "$WORK/paths" "$WORK/json/$name.paths"
    run_json --json "$folder"dev*.img > "$WORK/json/$name.json" 2> /dev/null
done < <(printf '%s\n' "$BUILD"/fixtures/*/ | sweep 3)
if have python3; then
    python 'import base64, os
for name in os.listdir(sys.argv[1]):
    if not name.endswith(".json"):
        continue
    paths = b""
    for line in open(sys.argv[1] + "/" + name, encoding="utf-8", newline="\n"):
        row = json.loads(line)
        if "path" in row:
            paths += row["path"].encode() + b"\0"
        else:
            paths += base64.b64decode(row["path_bytes"], validate=True) + b"\0"
    if paths != open(sys.argv[1] + "/" + name[:-5] + ".paths", "rb").read():
        print(name)' "$WORK/json" > "$WORK/out" 2>&1
    holds "paths in JSON: $(xargs < "$WORK/out")" [ ! -s "$WORK/out" ]
else
    skip python3 "paths in JSON"
fi
[ "$passed" -ge 250 ] || fail "only $passed checks were made"
finish
