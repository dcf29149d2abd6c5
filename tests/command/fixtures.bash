# SPDX-License-Identifier: GPL-2.0-or-later
# Unpacks all fixtures, and reads their `about` files. Sourced after common.bash.
images=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$images" || exit 1
cd "$ROOT/fixtures" || exit 1

# list FILE: prints a list, which may be compressed; the status says whether it exists.
list() { if [ -e "$1" ]; then cat "$1"; else [ -e "$1.zst" ] && zstd -q -d -c "$1.zst"; fi; }

# read_about FIXTURE: `folder` of the images; `files` that are not missing, or the first of them as
# `image` and `devices` as options; `arguments`; what stderr must match: `expressions`, of sum
# `sum_expressions`; all other lines as `about`, by their word.
declare -A about
read_about() {
    local line word value number file
    folder=$1 files=() devices=() arguments=() about=() expressions=() sum_expressions=()
    while IFS= read -r line; do
        word=${line%%: *} value=${line#*: }
        case $word in
        devices-from) folder=$value ;;
        args) read -ra arguments <<< "$value" ;;
        stderr) expressions+=("$value") ;;
        sum-stderr) sum_expressions+=("$value") ;;
        *) about[$word]=$value ;;
        esac
    done < "$1/about"
    for file in "$images/$folder"/dev*.img; do
        number=${file##*/dev}
        [[ " ${about[missing]:-} " == *" ${number%.img} "* ]] || files+=("$file")
    done
    image=${files[0]}
    for file in "${files[@]:1}"; do devices+=(--device "$file"); done
}

# says NAME EXPRESSION...: whether stderr matches all of these expressions.
says() {
    local name=$1 expression
    shift
    for expression; do
        grep -qiE -- "$expression" "$WORK/err" && continue
        fail "$name: stderr lacks '$expression': $(head -n 3 "$WORK/err")"
        return 1
    done
}

# count FILE: how many names it has.
count() { tr -cd '\0' < "$1" | wc -c; }
