#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The structure of the source: a folder includes only headers of folders above it in the list of
# src/README.md, and the other rules that can be checked in the source.
set -uo pipefail
. "$(dirname "$0")/common.bash"
cd "$ROOT" || exit 1

order="base ondisk record probe servers graph xlators btree fs replay recovery data walk owners"
order+=" diff trees check history rescue repair stream batches export draw mount cli"
declare -A ranks=()
for folder in $order; do ranks[$folder]=$((${#ranks[@]} + 1)); done

for folder in src/*/; do
    folder=$(basename "$folder")
    own=${ranks[$folder]:-0}
    if [ "$own" -eq 0 ]; then fail "src/$folder is not in the list of folders"; continue; fi
    bad=$(grep -rnoE '#include "[a-z_]+/' "src/$folder" | while IFS= read -r line; do
        target=${line##*\"}
        target=${target%/}
        [ "$target" = btrfs-walk ] && continue
        rank=${ranks[$target]:-0}
        [ "$rank" -ge 1 ] && [ "$rank" -le "$own" ] || echo "$line"
    done)
    if [ -z "$bad" ]; then pass; else fail "src/$folder includes what stands below it: $bad"; fi
    grep -q "$folder/" src/README.md && pass || fail "src/README.md does not mention $folder"
done

# at_most CEILING DESCRIPTION QUESTION: that many lines of an answer of scripts/structure. A ceiling
# only falls.
at_most() {
    local lines
    lines=$(scripts/structure "$3" "$BUILD") || { fail "scripts/structure $3 fails"; return; }
    [ "$(grep -c . <<< "$lines")" -le "$1" ] && pass || fail "$2, more than $1: $lines"
}
at_most 0 "calls upward" upward
at_most 0 "public functions that are not where src/README.md says" headers

at_most 0 "mentions of source files that do not exist" mentions

# rule DESCRIPTION LINES: the lines must be empty.
rule() { if [ -z "$2" ]; then pass; else fail "$1: $(head -n 5 <<< "$2")"; fi; }

rule "public headers include only public headers" \
    "$(grep -n '#include "' include/btrfs-walk/*.h | grep -v '"btrfs-walk/')"
rule "front ends include only public headers and base/" \
    "$(grep -rnE "#include \"($(sed 's/base //; s/ export.*//; s/ /|/g' <<< "$order"))/" \
    src/cli src/export src/draw src/mount)"
# A spool is a temporary file, not an image.
rule "reads only in storage" \
    "$(grep -rnE '\b(pread|preadv|preadv2|pread64|bw_read_at)\(' src --include=*.c |
    grep -v '^src/xlators/storage/\|^src/servers/spool.c\|^src/base/whole_io.c')"
rule "no printing and no exit below the commands" \
    "$(grep -rnE '(^|[^a-z_])(printf|fprintf|puts|perror|exit|abort)\(' src --include=*.c \
    --include=*.h | grep -v '^src/cli/')"
rule "no conflict of a merge in a text" \
    "$(grep -rnE '^(<<<<<<<|>>>>>>>) ' README.md CHANGELOG.md docs include src scripts tests \
    --include=*.md --include=*.h --include=*.c --include=*.sh --include=*.py)"
licence='SPDX-License-Identifier''[:] GPL-2.0-or-later'
rule "a licence line in every source file" \
    "$(grep -rL "$licence" src include tests scripts bench .ci \
    python --include=*.c --include=*.h --include=*.sh --include=*.bash 2> /dev/null
    grep -rL "$licence" python --include=*.py)"
# edited [PATH...]: the text files that people edit. What is generated, and what others have
# printed, is as long as it is, and a table is as long as what it describes.
edited() {
    git ls-files -co --exclude-standard -- "${@:-.}" ':!fixtures' ':!tests/data' \
        ':!tests/fuzz/codec' ':!tests/fuzz/containers' ':!tests/fuzz/overlays' \
        ':!tests/fuzz/found' ':!docs/probes' \
        ':!docs/xlators' ':!docs/schema.json' \
        ':!src/record/records.def' | while IFS= read -r file; do
        [ -f "$file" ] && printf '%s\n' "$file"
    done
}
rule "no file of more than 1200 lines" "$(edited | grep -v _records.h | xargs -d '\n' wc -l |
    awk '$2 != "total" && $1 > 1200')"
# One file called extents.c says what it is about, three do not.
rule "no name of three files in src" \
    "$(find src -name '*.[ch]' -printf '%f\n' | sort | uniq -c | awk '$1 > 2 { print $2 }')"
# Then the JSON is compared with docs/schema.json.
rule "tests call run_json if they want JSON" \
    "$(grep -n '"$PROGRAM" .*--json' tests/command/*.sh |
    grep -v 'xargs\|answers\|blackbox\|structure.sh')"
rule "no line of more than 100 columns in code" \
    "$(edited Makefile .ci src include tests scripts examples bench python ':!*.md' |
    LC_ALL=C.UTF-8 xargs -d '\n' awk 'length > 100 { print FILENAME ":" FNR }')"
# What is made of tables is not prose, and neither are tables, examples and references.
rule "no line of more than 100 columns in prose" \
    "$(git ls-files '*.md' | grep -v '^docs/xlators/\|^bench/' |
    xargs awk '/^```/ { code = !code } /^<!-- made by/ { code = 1 } /^<!-- end of/ { code = 0 }
        !code && !/^\|/ && !/^    / && length > 100 { print FILENAME ":" FNR }')"
# long_functions START: in the files named in the input, functions of more than 150 lines whose body
# begins with a line that matches. Most functions take 10 to 60 lines; this is the last resort.
long_functions() {
    xargs -d '\n' awk -v start="$1" '
        FNR == 1 { line = 0 }
        $0 ~ start { line = FNR }
        /^\}/ && line { if (FNR - line > 150) print FILENAME ":" line; line = 0 }'
}
rule "no function of more than 150 lines" \
    "$(edited 'src/*.c' 'bench/*.c' 'examples/*.c' | long_functions '^[{]')"
rule "no function of more than 150 lines in tests" \
    "$(edited 'tests/*.c' | long_functions '^[{]')"
rule "no function of more than 150 lines in shell" "$(edited .ci scripts tests bench completions \
    ':!*.[ch]' ':!*.py' | long_functions '^[a-z_]+[(][)] [{]$')"
rule "no function of more than 150 lines in Python" "$(edited scripts tests bench python \
    ':!*.[ch]' | xargs -d '\n' grep -lE '^#!.*python|^"""' | xargs -d '\n' python3 -c '
import ast, sys
for path in sys.argv[1:]:
    for node in ast.walk(ast.parse(open(path, encoding="utf-8").read())):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno > 150:
            print(path, node.lineno, sep=":")' 2>&1)"
known="CHANGELOG.md CONTRIBUTING.md LICENSE LICENSES Makefile README.md SECURITY.md bench"
known+=" completions docs examples fixtures include packaging python scripts src tests"
rule "only these in the top folder: $known" \
    "$(git ls-files -co --exclude-standard | grep -v '^\.' | cut -d/ -f1 | sort -u |
        comm -23 - <(tr ' ' '\n' <<< "$known"))"
rule "no function is left before its cursor has begun, which frees it" \
    "$(git ls-files 'src/*.c' | xargs -d '\n' awk '
        /BW_SCOPED\([a-z_]+\) struct [a-z_]+ [a-z_]+;$/ { name = $NF; sub(";", "", name); next }
        name && ($0 ~ "&" name "[,)]" || $0 ~ name " =") { name = "" }
        name && /return|BW_TRY/ { print FILENAME ":" FNR; name = "" }
        /^}/ { name = "" }')"
rule "no path of one machine" \
    "$(git grep -nE '(^|[^A-Za-z0-9_.])/(home|work)/[a-z]' -- . ':!fixtures' ':!*.md' \
    ':!tests/command/structure.sh' 2> /dev/null)"
rule "completions only ask the program" "$(grep -L -e --complete completions/*btrfs-walk*
    wc -l completions/* | awk '$2 != "total" && $1 > 50')"
# Words of the tests of the check, without the names of structures, some of which are also codes.
tested=$(sed -E 's/SET(_AT)?\([^"]*\)//g; s/bw_disk_[a-z_]+//g' tests/unit/check/*.c \
    tests/unit/ondisk/test_item_rules*.c tests/unit/test_check*.c tests/unit/replay/*.c \
    tests/command/{bit_flips,check*,sides,streams}.sh 2> /dev/null |
    tr _ - |
    grep -oE '[a-z]+(-[a-z]+)+|metadump|unfinished|relocation')
rule "a test of every kind of finding" \
    "$(sed -nE 's/^CODE\([a-z_]+, "([a-z-]+)".*/\1/p' src/check/codes.def | sort |
        comm -23 - <(sort -u <<< "$tested"))"
finish
