#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command that prints records has the options of records: --json, --json=array,
# -o, --header, --separator, --raw, --times and -0, many also --sort and --top. The program lists
# the commands.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"
if ! have python3; then skip python3 "what the commands print"; finish; fi

# The image for which a command has something to print, and its arguments after the image.
arrange() {
    fixture=data-shapes operands=()
    case $1 in
    stat | extents) operands=(/) ;;
    sum) fixture=plain ;;
    xattr) operands=(-R /) ;;
    versions) fixture=past ;;
    diff) fixture=differences operands=(first second) ;;
    map | owner) operands=(13631488+64M) ;;
    qgroups) fixture=quota-groups ;;
    log) fixture=log-tree ;;
    roots | deleted) fixture=past ;;
    subvolumes | space) fixture=subvolumes ;;
    check) fixture=lost-tree-csum ;;
    repair) fixture=superblock-copy-lost ;;
    esac
}

# One process of Python answers questions: "column" is the first name of a column in $WORK/lines,
# one of plain values if there is any, or "different" if $WORK/array holds other objects; "names"
# are the names of all members in $WORK/out; "sorted NAME" is "yes" if $WORK/out has the rows of
# $WORK/lines with the largest NAME first, and those without it last.
cat > "$WORK/rows.py" << 'END'
import json, sys
for question in sys.stdin:
    if question == "column\n":
        lines = [json.loads(line) for line in open("lines")]
        members = {(isinstance(value, (list, dict)), name) for row in lines
                   for name, value in row.items()}
        print(min(members)[1] if lines == json.load(open("array")) else "different", flush=True)
    elif question.startswith("sorted "):
        name = question.split()[1]
        lines, out = ([json.loads(line) for line in open(file)] for file in ("lines", "out"))
        def order(row):
            value = row[name] if name in row else row.get(name + "_bytes")
            return (value is not None, str(value).encode() if isinstance(value, str) else value)
        is_same = sorted(map(str, lines)) == sorted(map(str, out))
        keys = [order(row) for row in out]
        is_sorted = all(not b[0] or (a[0] and a[1] >= b[1]) for a, b in zip(keys, keys[1:]))
        print("yes" if is_same and is_sorted else "no", flush=True)
    else:
        names = {name for line in open("out") for name in json.loads(line)}
        print(*sorted(names), sep=",", flush=True)
END
coproc ROWS { cd "$WORK" && exec python3 rows.py; }
# ask column|names: reads the answer to $answer.
ask() {
    answer=
    printf '%s\n' "$1" >&"${ROWS[1]}" && read -r answer <&"${ROWS[0]}"
}
cat > "$WORK/records.py" << 'END'
import json, sys
tables = json.load(sys.stdin)
times = {r["name"] for r in tables["records"] for m in r["members"] if m["format"] == "time"}
for command in tables["commands"]:
    if command["record"]:
        print(command["name"], command["record"], command["record"] in times)
END

# print NAME ARGUMENTS...: the output of the command with these options. The exit status must be
# that of a listing, which is 1 if the image is damaged.
print() {
    timeout 60 "$PROGRAM" "$command" "${@:2}" "$image" "${devices[@]}" "${operands[@]}" \
        > "$WORK/$1" 2> "$WORK/err" < /dev/null
    [ $? -lt 2 ] || [ "$command" = check ] || return
    case $2 in --json*) keep_json "$command" "${@:2}" < "$WORK/$1" ;; esac
}

validate() {
    python3 "$ROOT/tests/support/validate_json.py" "$ROOT/docs/schema.json" "$1" < "$2"
}

try_command() {
    local command=$1 dated=$2 column answer
    holds "$command: --json" print lines --json
    holds "$command: --json=array" print array --json=array
    ask column
    column=$answer
    holds "$command: both are the same" [ "${column:-different}" != different ]
    holds "$command: --json --header --times is accepted" print out --json --header --times=iso
    holds "$command: the first row names the record" \
        grep -q "^{\"record\":\"header\",.*\"of\":\"$3\"" "$WORK/out"
    if [ "$dated" = True ] && ! cmp -s <(tail -n +2 "$WORK/out") "$WORK/lines"; then
        holds "$command: --times=iso prints dates" \
            grep -q '"[0-9]\{4\}-[0-9-]*T[0-9:.]*Z"' "$WORK/out"
    fi
    holds "$command: -o $column" print column -o "$column"
    holds "$command: --header, --raw and --separator are accepted" \
        print out -o "$column" --header --raw --separator :
    is "$command: --header prints the name of the column" "$(head -n 1 "$WORK/out")" "$column"
    holds "$command: rows with a header are those without one" \
        cmp -s <(tail -n +2 "$WORK/out") "$WORK/column"
    holds "$command: -0" print out -o "$column" -0
    holds "$command: a NUL after each row" [ "$(tr -cd '\0' < "$WORK/out" | wc -c)" -ge 1 ]
    holds "$command: --json -o" print out --json -o "$column"
    ask names
    case $answer in "$column,${column}_bytes") answer=$column ;; esac
    is "$command: -o selects the member of JSON" "${answer%_bytes}" "${column%_bytes}"
    if [[ $("$PROGRAM" "$command" --help=all) == *"--sort COLUMN"* ]]; then
        sorted=$((sorted + 1))
        holds "$command: --sort" print out --json --sort "-$column"
        ask "sorted $column"
        is "$command: rows are sorted by $column" "$answer" yes
        holds "$command: --top" print array --json=array --sort "-$column" --top 2
        is "$command: --top 2 prints the first two rows" "$(tr -d '\n' < "$WORK/array")" \
            "[$(head -n 2 "$WORK/out" | paste -sd ,)]"
        expect "$command: no such order" 2 '--sort: there is no column nothing' \
            "$command" --sort nothing "$image" "${operands[@]}"
    fi
    expect "$command: a column that there is not" "$([ "$command" = check ] && echo 16 || echo 2)" \
        "unknown column nothing; '-o help'" "$command" -o nothing "$image" "${operands[@]}"
    expect "$command: its columns" 0 - "$command" -o help
    holds "$command: -o help lists $column" grep -q "^$column " "$WORK/out"
}

commands=0 sorted=0
while read -r command record dated; do
    arrange "$command"
    if [ ! -e "$ROOT/fixtures/$fixture" ]; then fail "$command: no fixture $fixture"; continue; fi
    read_about "$fixture"
    case $command in
    stat | extents | ls | versions)
        mapfile -t operands < <("$PROGRAM" "$image" "${devices[@]}" 2> "$WORK/err" | head -n 5) ;;
    esac
    [ "$command" = xlators ] && image=features/verify devices=()
    [ "$command" = versions ] && operands=("${operands[0]}")
    try_command "$command" "$dated" "$record"
    commands=$((commands + 1))
done < <("$PROGRAM" --dump-tables | python3 "$WORK/records.py")
holds "at least 28 commands print records" [ "$commands" -ge 28 ]
holds "of which many sort rows" [ "$sorted" -ge 11 ]

# Other records of some commands, and the schema itself: it refuses what is not in it.
while read -r fixture words; do
    read_about "$fixture"
    # shellcheck disable=SC2086 # several words
    run_json $words --json "$image" "${devices[@]}" > "$WORK/lines" 2> "$WORK/err"
    is "$words ends with status 0" $? 0
    holds "$words prints rows" [ -s "$WORK/lines" ]
done << 'END'
past roots --trees
quota-groups qgroups --status
plain tree-stats --items
data-clones space --shared
data-clones space --free-if 5
laptop space --free 100K
people du --by user
data-clones du --shared-with
END
for row in '{"path":1}' '{"way":"/x"}' '{"mtime":"yesterday"}' '{"inode":-1}' '{"flags":1}' ''; do
    printf '%s' "$row" > "$WORK/lines"
    holds "the schema refuses the row: $row" eval "! validate fileinfo \"\$WORK/lines\""
done

# Commands that print text by default accept options of columns only together with -o or the like.
plain=$images/compressed/dev1.img
for command in info usage du compression; do
    expect "$command: --times needs columns" 2 'times is for columns and JSON' \
        "$command" --times=iso "$plain"
done

# In columns, nested records are printed as JSON.
expect "records in a column" 0 - usage -o overall "$plain"
holds "the column overall of usage is an object" \
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))["used"]' "$WORK/out"
expect "records in a record" 0 - info -o devices "$plain"
holds "the column devices of info is an array" \
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))[0]["devid"]' "$WORK/out"
expect "dates within" 0 - info -o changed --times=iso "$plain"
holds "the column changed of info is a date" out_has '^20[0-9-]*T[0-9:.]*Z$'
expect "sizes of the text" 0 - info --raw "$plain"
holds "info --raw prints plain numbers" out_has '^Size: *[0-9]+, [0-9]+ used'
# The JSON that tests keep is compared with the schema, whichever record an option selects.
mkdir "$WORK/wrong"
refuses() {
    tr '|' '\n' <<< "$1" > "$WORK/wrong/rows"
    ! python3 "$ROOT/tests/support/validate_json.py" "$ROOT/docs/schema.json" "$WORK/wrong" \
        > "$WORK/err" && grep -q 'is not in the schema\|no integer' "$WORK/err"
}
for kept in 'ls --json|{"pathh":"/a"}' 'space --shared --json=array|[|{"referenced":1}|]' \
    'walk --json -0|{"path":"/a","size":"1"}' 'tree-stats --json --items|{"levels":1}'; do
    holds "the schema refuses wrong JSON of ${kept%%|*}" refuses "$kept"
done
finish
