#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Completions: the answers of the program, and what bash, zsh and fish do with them.
# shellcheck disable=SC2016 # dollar signs are those of names
set -uo pipefail
. "$(dirname "$0")/common.bash"
export BTRFS_WALK_XLATOR_PATH=

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid5-3 subvolume-kinds subvolumes || exit 1
plain=$BUILD/fixtures/plain/dev1.img
kinds=$BUILD/fixtures/subvolume-kinds/dev1.img
raid5=$BUILD/fixtures/raid5-3/dev
zstd -q -d --sparse "$ROOT/fixtures/disks/mbr.img.zst" -o "$WORK/disk.img"

# answers WORD...: the answers for the last word, without descriptions; file names are replaced by
# FILES.
answers() {
    local answer text=
    while IFS= read -r -d '' answer && read -r -d '' _; do
        [[ $answer != f* ]] || answer="w${answer#f}FILES"
        text+=${answer:1}$'\n'
    done < <("$PROGRAM" --complete "$@" 2>&1)
    printf '%s' "$text"
}
# offers ANSWERS WORD...: the answers must be exactly these, one per line.
offers() {
    local wanted=$1
    shift
    is "completion of '$*'" "$(answers "$@")" "$wanted"
}
# offers_also ANSWER WORD...: the answers must include this one.
offers_also() {
    local wanted=$1
    shift
    holds "completion of '$*' has $wanted" grep -qxF -e "$wanted" <(answers "$@")
}
names='import json, sys; print(*(c["name"] for c in json.load(sys.stdin)["commands"]))'
for command in $("$PROGRAM" --dump-tables | python3 -c "$names"); do
    offers_also "$command" "${command:0:2}"
    offers_also --verbose "$command" --v
done
offers_also FILES w
offers_also --null --
offers_also --insert -
offers FILES ima
offers FILES --device ima
offers --device=FILES --device=ima
offers "" -j ""
offers --built-in xlators --bu
offers $'volfile\ndot' graph --format ""
offers --format=volfile graph --format=v
offers --json=array --json=a
offers $'--color=never\n--color=auto\n--color=always' ls --color=
offers $'name\nnone\nsize\ntime' ls --sort ""
offers $'full-iso\nlong-iso\niso\n+' ls --time-style ""
offers $'path\npath_bytes' -o pa
offers size,mtime walk --output size,mt
offers -osize,mtime walk -osize,mt
offers block-read-done ls --probe block-read-d
offers 'cache-hit,!cache-evict' cat --probe 'cache-hit,!cache-e'
offers "$("$PROGRAM" xlators | sed 's, .*,,')" xlators ""
offers storage/file xlators storage/f
offers features/verify@ image.img --insert features/v
offers debug/trace@features/verify image.img --insert debug/trace@features/v
offers debug/error-gen.seed= --xlator-option debug/error-gen.se
offers debug/error-gen@verify,seed= --insert debug/error-gen@verify,se
offers $'1\n2\n5\n6' "$WORK/disk.img" --partition ""
offers --partition=5 ls "$WORK/disk.img" --partition=5
offers "" --partition 1
offers $'1\n2\n3' map "${raid5}1.img" --device "${raid5}2.img" --devid ""
offers "" map --devid ""
all=$'/\n/one\n/folder/deep/two\n/one/nested\n/one/nested/folder/inner\n/read-only'
offers "$all"$'\n/folder/writable\n/received/read-only\ndefault' ls "$kinds" --subvol ""
offers $'--subvol=/one/nested\n--subvol=/one/nested/folder/inner' "$kinds" --subvol=/one/n
offers read-only ls "$kinds" --subvol read
offers read-only send "$kinds" read
dd if="$kinds" of="$WORK/shifted.img" bs=1M seek=1 conv=sparse status=none
offers read-only send --image-offset 1M "$WORK/shifted.img" read
offers filters help filt
commands=$("$PROGRAM" --dump-tables | python3 -c "$names" | tr ' ' '\n')
offers "$commands"$'\noptions\nfilters\nimages' help "" # no words that only lead to these
offers $'sum\nsubvolumes\nsuper' help su
offers fsck help fsc
offers $'/one\n/one/nested\n/one/nested/folder/inner' diff "$kinds" /one
offers /folder/ ls --subvol /one/nested "$kinds" "" # not those of the top-level subvolume
offers "" ls "$plain" /docs/letters/none
offers $'/docs/letters/\n/docs/second name of large.bin\n/docs/symbolic-link\n/docs/pipe' \
    ls "$plain" /docs/
offers "" ls "$WORK" /
offers "" ls /dev/null /
offers "" ls "$WORK/none" /
head -c 70000 /dev/urandom > "$WORK/nonsense"
offers "" ls "$WORK/nonsense" /

# bash may ask before anything is typed.
expect 'an empty line of bash' 0 - --complete-bash ' =' ''

# In the shells. typed LINE ARGUMENT...: types a line; the program must then be called with these
# arguments.
mkdir "$WORK/shell"
cat > "$WORK/shell/btrfs-walk" << END
#!/bin/sh
case \$1 in --complete*) exec "$(realpath "$PROGRAM")" "\$@" ;; esac
printf '%s\\0' "\$@" '' >> "$WORK/shell/seen"
echo do''ne
END
chmod +x "$WORK/shell/btrfs-walk"
ln -s "$(realpath "$plain")" "$WORK/shell/p.img"
typed() {
    printf '%s\n' "$1" >> "$WORK/shell/lines"
    shift
    printf '%s\0' "$@" '' >> "$WORK/shell/wanted"
}
typed $'btrfs-walk subv\tp.img' subvolumes p.img
typed $'btrfs-walk cat p.i\t/do\tsec\t' cat p.img '/docs/second name of large.bin'
typed $'btrfs-walk cat ~/p.img /top\t' cat "$WORK/shell/p.img" /top-file
typed $'btrfs-walk cat p.img /names/new\t' cat p.img $'/names/new\nline'
typed $'btrfs-walk cat p.img /names/trail\t' cat p.img '/names/trailing blank '
typed $'btrfs-walk cat p.img /names/\\ l\t' cat p.img '/names/ leading blank'
typed $'btrfs-walk cat p.img /names/quote\\"\t' cat p.img '/names/quote"double'
typed $'btrfs-walk cat p.img /names/quote\\\'\t' cat p.img "/names/quote'single"
typed $'btrfs-walk cat p.img "/names/quote\'\t' cat p.img "/names/quote'single"
typed $'btrfs-walk cat p.img \'/names/quote"\t' cat p.img '/names/quote"double'
typed $'btrfs-walk cat p.img \'/names/$\t' cat p.img '/names/$(a)'
typed $'btrfs-walk cat p.img /names/\\$\t' cat p.img '/names/$(a)'
typed $'btrfs-walk cat p.img /names/back\t' cat p.img '/names/back\slash'
typed $'btrfs-walk cat p.img /names/\\*\t' cat p.img '/names/*'
typed $'btrfs-walk -o size,mti\t p.img' -o size,mtime p.img
typed $'btrfs-walk cat --on-error=z\tp.img' cat --on-error=zero p.img
typed $'btrfs-walk ls --insert features/v\tchunk p.img' ls --insert features/verify@chunk p.img
for shell in bash zsh fish; do
    have "$shell" || { skip "$shell" "completions of $shell"; continue; }
    have_openpty || { skip "a pseudo-terminal for Python" "completions of $shell"; continue; }
    rm -f "$WORK/shell/seen"
    holds "$shell completes" "$ROOT/tests/support/complete-in-shell.py" "$shell" "$WORK/shell" \
        "$WORK/shell/lines"
    is "what $shell has made of it" "$(tr '\0' '|' < "$WORK/shell/seen")" \
        "$(tr '\0' '|' < "$WORK/shell/wanted")"
done
finish
