#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What scripts/make-docs makes from the tables of the program: whether the committed files are up to
# date, the headers, the members of records, which must not change, and the manual.
# shellcheck disable=SC2016 # backquotes are Markdown's
set -uo pipefail
. "$(dirname "$0")/common.bash"
export BTRFS_WALK_XLATOR_PATH=
if [ "$(od -An -t u1 -j 4 -N 1 "$PROGRAM" | tr -d ' ')" -ne 2 ]; then # the class of an ELF file
    skip "a 64-bit machine" "pages and headers, which have its offsets"
    finish
fi

holds "the committed files are up to date" "$ROOT/scripts/make-docs" --check "$PROGRAM" "$ROOT"
holds "the figures of the tests are not old" "$ROOT/scripts/testing-figures"
expect "the tables" 0 - --dump-tables
cp "$WORK/out" "$WORK/tables"

# query EXPRESSION: evaluates a Python expression on the tables t, and prints its results, one per
# line.
query() {
    python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))
for line in eval(sys.argv[2]): print(line)' "$WORK/tables" "$1"
}
commands=$(query '[c["name"] for c in t["commands"]]')

# A copy of the tree, so that files can be changed.
made=$WORK/made
mkdir -p "$made"
cp -r "$ROOT/README.md" "$ROOT/docs" "$ROOT/scripts" "$ROOT/examples" "$made"
golden=$ROOT/docs/probes/README.md
make_docs() { "$ROOT/scripts/make-docs" "${1:-$PROGRAM}" "$made"; }
holds "make-docs makes the files" make_docs

# The headers are C without dependencies, and have the offsets of the program's own structures.
query '[f"""{r["name"]} _Static_assert(__builtin_offsetof(struct bw_{r["name"]}, {m["name"]}"""
    f"""{"_" * (m["name"] == "inline")}) == {m["offset"]}, \"\");"""
    for r in t["records"] if not r["on_disk"] for m in r["members"]]' > "$WORK/offsets"
if have "${COMPILER[0]}"; then
    for path in "$BUILD/include/btrfs-walk/records.h" "$ROOT/scripts/bpftrace/btrfs-walk.bt.h"; do
        header=$(basename "$path")
        sed -n 's/^struct bw_\([a-z]*info\) {$/\1/p' "$path" > "$WORK/structures"
        awk 'NR == FNR { known[$1]; next } $1 in known { sub($1 " ", ""); print }' \
            "$WORK/structures" "$WORK/offsets" > "$WORK/asserts"
        cat "$path" "$WORK/asserts" > "$WORK/header.c"
        holds "$header has structures with known offsets" [ -s "$WORK/asserts" ]
        holds "$header compiles, with the offsets of the program" \
            "${COMPILER[@]}" -std=c11 -Wall -Wextra -Werror -I"$ROOT/include" -fsyntax-only \
            "$WORK/header.c"
    done
    holds "bpftrace gets no macros and no includes" [ "$(grep -c '^#' "$WORK/header.c")" -eq 0 ]
else
    skip "a compiler" "whether the headers compile"
fi

# Records may only grow: a changed or missing member is refused, a new one is added.
page=$made/docs/probes/README.md
sed -i '/^### blockinfo$/,/^### /{/^| `items` /d}' "$page"
holds "a new member is added" make_docs
holds "the new member is added where it belongs" cmp "$golden" "$page"
for edit in '/^### blockinfo$/,/^### /s/^| `logical` | u64 |/| `logical` | i64 |/' \
    's/^### blockinfo$/### goneinfo/' \
    '/^### blockinfo$/,/^### /s/^| `mirror` .*/&\n| `gone` | u64 | number |/'; do
    sed "$edit" "$golden" > "$page"
    cp "$page" "$WORK/before"
    make_docs 2> "$WORK/err"
    holds "a change is refused: $edit" [ $? -ne 0 -a -s "$WORK/err" ]
    holds "make-docs does not write the refused file: $edit" cmp "$WORK/before" "$page"
done
cp "$golden" "$page"

# The page of a layer that no longer exists is removed; a page that was written by hand is kept.
: > "$made/docs/xlators/notes.md"
cp "$made/docs/xlators/storage-file.md" "$made/docs/xlators/storage-gone.md"
holds "the files are made again" make_docs
holds "the page of a layer that is gone" [ ! -e "$made/docs/xlators/storage-gone.md" ]
holds "a page that was written by hand" [ -e "$made/docs/xlators/notes.md" ]

# Characters with a special meaning in Markdown or in roff, in a layer that consists mostly of them.
python3 - "$WORK/tables" > "$WORK/odd" << 'END'
import json, sys
tables = json.load(open(sys.argv[1]))
def option(name, default, description):
    return dict(name=name, type="string", default=default, range="", description=description)
tables["layers"].append(dict(
    type="toys/odd", description="is odd", place="nowhere", page=
    ".TH is no request, 'nor is this, \\n no newline.\n# no heading\n- no list\n1. nor this\n"
    "    $ one | two  three\n.behind",
    options=[option("mode", "a|b", "one of a|b, <c> or *d*"), option("empty", "", "nothing")]))
json.dump(tables, sys.stdout)
END
printf '#!/bin/sh\n[ "$1" != --dump-tables ] || exec cat "%s"\n' "$WORK/odd" > "$WORK/program"
chmod +x "$WORK/program"
holds "a layer of special characters" make_docs "$WORK/program"
page=$made/docs/xlators/toys-odd.md
holds "the page escapes characters in table cells" \
    grep -qxF '| `mode` | string | a\|b | any | one of a\|b, \<c\> or \*d\* |' \
    "$page"
holds "the page escapes headings and lists" grep -qF ' \# no heading \- no list 1\. nor' "$page"
holds "the example as it is" grep -qxF '    $ one | two  three' "$page"
holds "the page names an empty default" grep -qF '| `empty` | string | empty |' "$page"
holds "make-docs makes the manual of the layer" \
    "$ROOT/scripts/make-docs" --man "$WORK/program" "$WORK/odd-man"
page=$WORK/odd-man/btrfs-walk-xlators.7
holds "the manual escapes a request of roff" \
    grep -q '^\\&\.TH is no request, \\(aqnor is this, \\en no newline' "$page"
holds "a line that begins with a full stop" grep -qxF '\&.behind' "$page"

# The manual: every command and option, every layer, every probe.
holds "make-docs makes the manual" "$ROOT/scripts/make-docs" --man "$PROGRAM" "$WORK/man"
is "pages that are not built, or out of date" "$(diff -rq "$BUILD/man" "$WORK/man")" ""
# warnings TOOL ARGUMENT...: what a program that reads manual pages warns about.
warnings() {
    have "$1" || { skip "$1" "its warnings"; return; }
    "$@" 2>&1 | grep -E "^(mandoc|troff|grotty|man|<standard)" |
        grep -v "can't break line" > "$WORK/warnings"
    is "$1 prints no warnings about the manual" "$(head -n 3 "$WORK/warnings")" ""
}
warnings mandoc -T lint "$WORK"/man/*
warnings groff -man -Tutf8 -ww "$WORK"/man/*
MANPAGER=cat warnings man --warnings -l "$WORK"/man/btrfs-walk{,-diff}.1
# lacks PAGE: prints the lines of stdin that are missing in the page.
lacks() {
    grep -vxFf <(sed -e 's/\\-/-/g' -e 's/\\f[BIR]//g' "$WORK/man/$1") > "$WORK/lacks"
    [ ! -s "$WORK/lacks" ]
}
sed 's/.*/.BR btrfs-walk-& (1)/' <<< "$commands" | lacks btrfs-walk.1
is "commands that the manual lacks" "$(cat "$WORK/lacks")" ""
query \
    '[".SS " + l["type"] for l in t["layers"]] + [".B " + o["name"] for l in t["layers"] for o '\
'in l["options"]]' |
    lacks btrfs-walk-xlators.7
holds "the manual has all layers: $(head -n 3 "$WORK/lacks")" [ ! -s "$WORK/lacks" ]
query '[".B " + p["name"] for p in t["probes"]] + [".SS " + r["name"] for r in t["records"]]' |
    lacks btrfs-walk-probes.7
holds "the manual has all probes: $(head -n 3 "$WORK/lacks")" [ ! -s "$WORK/lacks" ]

# Every column that an example in --help names, after -o or for jq. Commands without columns may
# have another option -o.
cat > "$WORK/examples.py" << 'END'
import json, re, subprocess, sys
tables, program = json.load(open(sys.argv[1])), sys.argv[2]
columns = {}
for command in tables["commands"]:
    text = subprocess.run([program, command["name"], "-o", "help"], capture_output=True, text=True)
    columns[command["name"]] = re.findall(r"^(\w+) ", text.stdout, re.M)
for command in tables["commands"]:
    for line in command["examples"].split("\n"):
        called = line.split()[1:2] + [command["name"]]
        known = columns[called[0] if called[0] in columns else called[-1]]
        named = re.findall(r" -o ([a-z_,]+)| jq (?:-r )?[.]([a-z_]+)", line)
        for column in ",".join(one or other for one, other in named).split(","):
            if column and known and column not in known:
                print(column, "in:", line.strip())
END
is "columns in examples that do not exist" \
    "$(python3 "$WORK/examples.py" "$WORK/tables" "$PROGRAM")" ""

# Members of records that the pages name, such as fopinfo.call.
cat > "$WORK/members.py" << 'END'
import json, pathlib, re, sys
tables, docs = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
known = {record["name"]: [member["name"] for member in record["members"]]
         for record in tables["records"]}
for page in sorted(docs.rglob("*.md")):
    for record, member in re.findall(r"`([a-z]+info)[.](\w+)`", page.read_text()):
        if member not in known.get(record, []):
            print(f"{page.name}: {record}.{member}")
END
is "members in pages that do not exist" \
    "$(python3 "$WORK/members.py" "$WORK/tables" "$ROOT/docs")" ""

# Every option, in the page of its command or in that of the program, and in --help=all.
cat > "$WORK/options.py" << 'END'
import json, re, sys
tables, folder = json.load(open(sys.argv[1])), sys.argv[2]
shared = tables["image_options"] + tables["answer_options"] + tables["common_options"]

def lacks(name, options):
    page = re.sub(r"\\f[BIR]", "", open(f"{folder}/man/{name}.1").read()).replace("\\-", "-")
    for one in options:
        argument = one["argument"] or ""
        line = (f"-{one['letter']}, " if one["letter"] else "") + f"--{one['name']}"
        line += argument if argument[:1] in ("", "[") else " " + argument
        if line not in page.split("\n"):
            print(name, line)

lacks("btrfs-walk", shared)
for command in tables["commands"]:
    own = [one for entry in command["options"]
           for one in (tables[entry["group"]] if "group" in entry else [entry])]
    lacks(f"btrfs-walk-{command['name']}", own)
    text = open(f"{folder}/help/{command['name']}").read()
    shown = re.findall(r"^ +(?:-., )?--([a-z0-9-]+)", re.split(r"^\w.*:$", text, 1, re.M)[1], re.M)
    known = {one["name"] for one in own + shared}
    print(*(f"{command['name']}: --{one}" for one in shown if one not in known), sep="\n", end="")
END
mkdir "$WORK/help"
for command in $commands; do "$PROGRAM" "$command" --help=all > "$WORK/help/$command"; done
is "manual and --help=all have all options" \
    "$(python3 "$WORK/options.py" "$WORK/tables" "$WORK")" ""
for heading in NAME SYNOPSIS DESCRIPTION OPTIONS COLUMNS 'EXIT STATUS' ENVIRONMENT FILES \
    DIAGNOSTICS EXAMPLES 'SEE ALSO'; do
    holds "the manual of diff has $heading" grep -qxF ".SH $heading" "$WORK/man/btrfs-walk-diff.1"
done
holds "the manual of check has the codes" grep -qxF '.B super\-bad' \
    "$WORK/man/btrfs-walk-check.1"

# --help is for a terminal of 80 columns.
expect "ls --help=all" 0 - ls --help=all
is "lines of options that are too long" \
    "$(sed -n '/^Options:/,/^Exit status/p' "$WORK/out" | grep -E '.{80}')" ""

finish
