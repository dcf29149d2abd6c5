#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# rescue and tree blocks whose checksum does not match, but which pass everything else: their files
# are unverified, in a folder of their own, and older verified versions are saved as well.
set -uo pipefail
. "$(dirname "$0")/common.bash"

have mkfs.btrfs || { skip mkfs.btrfs 'tree blocks with wrong checksums'; finish; }
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" past || exit 1
cd "$WORK" || exit 1

member() {
    python3 -c '
import json, sys
answer = json.load(open(sys.argv[1]))
total = lambda name: sum(row.get(name, 0) for row in answer["by_subvolume"])
print(eval(sys.argv[2]))' "$WORK/out" "$1"
}
# spoil IMAGE BYTE LOGICAL...: overwrites three bytes of all mirrors of blocks, or of data.
spoil() {
    local place
    for place in $("$PROGRAM" map -o offset --raw "$1" "${@:3}"); do
        printf '\125\252\021' | dd of="$1" bs=1 seek=$((place + $2)) conv=notrunc status=none
    done
}
leaves() { "$PROGRAM" dump --tree fs "$1" | awk '$1 == "leaf" && $3 == "items" { print $2 }'; }
# sums FOLDER: hashes of the files in it, with their paths.
sums() { (cd "$1" && find . -type f -exec sha256sum {} +) | sort; }
count() { find "$1" ! -type d | wc -l; }
folders() { find "$@" -type d -printf '%P\n' | sort; }

mkdir -p files/a files/b/c
for ((i = 1; i <= 150; i++)); do
    head -c $((i * 60)) /dev/zero | tr '\0' "$((i % 10))" > "files/a/large $i"
    echo "the contents of $i" > "files/b/c/small $i"
done
mkdir files/empty\ {1..99}
ln files/a/large\ 1 files/b/another
ln -s target files/b/link
truncate -s 150M sound
mkfs.btrfs -q -n 4096 -m single -d single --rootdir files sound > mkfs 2>&1 ||
    fail "mkfs.btrfs: $(tail -n 1 mkfs)"
all=$(count files)
sums files > expected

# Every fourth leaf: only the checksum is wrong.
cp --sparse=always sound bad
mapfile -t blocks < <(leaves sound)
spoil bad 2 $(printf '%s\n' "${blocks[@]}" | awk 'NR % 4 == 2')
expect "wrong checksums" 1 'files cannot be verified' rescue --json bad
unverified=$(member 'total("unverified_files")')
is "wrong checksums of leaves lose no file" \
    "$(member 'total("verified_files") + total("unverified_files")')" "$all"
is "wrong checksums of leaves affect no contents" \
    "$(member 'total("partly_files") + total("lost_files")')" 0
holds "more than 20 files are unverified" test "$unverified" -gt 20
is "rescue plans the steps whole and unverified" \
    "$(member '[row["step"] for row in answer["steps"]]')" "['whole', 'unverified']"
expect "the same with --ignore-checksums" 1 . rescue --ignore-checksums all --json bad
is "--ignore-checksums counts the same unverified files" \
    "$(member 'total("unverified_files")')" "$unverified"
expect "without data" 1 . rescue --no-data --json bad
is "--no-data counts the same unverified files" \
    "$(member 'total("unverified_files")')" "$unverified"
expect "each file" 1 . rescue --list --json bad
is "--list has as many unverified files" \
    "$(grep -c '"recoverable":"unverified"' "$WORK/out")" "$unverified"
expect "on a screen" 1 . rescue bad
holds "the text counts the unverified files" \
    out_has "$unverified of the whole files can be read only with --ignore-checksums"

expect "rescue --extract of unverified files" 1 . rescue --extract saved bad
is "verified files are saved as whole" "$(count saved/whole)" "$((all - unverified))"
is "unverified files that are saved" "$(count saved/unverified)" "$unverified"
is "all files are saved with the right contents" \
    "$( (sums saved/whole; sums saved/unverified) | sort)" "$(cat expected)"
is "all folders are saved" "$(folders saved/whole saved/unverified | uniq)" "$(folders files)"
is "an empty folder is saved only once" \
    "$(folders saved/whole saved/unverified | grep empty | uniq -d)" ""
holds "some empty folders are unverified" test -n "$(folders saved/unverified | grep empty)"
is "the manifest calls the files unverified" \
    "$(grep -vc '"saved":"\(unverified\|linked\)"' saved/unverified.json)" 0
is "no file is listed as unsaved" "$(cat saved/unsaved)" ""
sums saved > before
expect "rescue --extract again" 1 . rescue --extract saved bad
is "a second run changes nothing" "$(sums saved | diff - before)" ""
mkdir bin && ln -s "$PROGRAM" bin/btrfs-walk
mkdir by-hand && "$PROGRAM" rescue bad 2> errors |
    sed -n '/^This runs/,/^Or / s/^  btrfs-walk\(.*\)saved\//&/p' |
    sed 's/saved\//by-hand\//g; s/^  btrfs-walk/bin\/btrfs-walk/' > commands
sh commands > printed 2>&1
is "the printed commands save the same unverified files" \
    "$(sums by-hand/unverified)" "$(sums saved/unverified)"

# A block that fails another check is lost, and so is a leaf of which an item is damaged.
cp --sparse=always sound bad
spoil bad 52 "${blocks[5]}"
expect "another address" 1 . rescue --json bad
is "a block with a wrong address is not accepted" \
    "$(member '[row["step"] for row in answer["steps"]]' | grep -c unverified)" 0
cp --sparse=always sound bad
for byte in 150 100; do spoil bad $((4096 - byte)) "${blocks[5]}"; done
expect "damaged items" 1 . rescue --extract items bad
(sums items/whole; sums items/unverified 2> errors) | sort > saved-sums
is "damaged files never pass as verified" "$(sums items/whole | comm -23 - expected)" ""

# Data that do not match: the rest of the file, and the file as it is.
cp --sparse=always sound bad
expect "where its data are" 0 - extents --json "$PWD/sound" "/a/large 150"
spoil bad 100 "$(sed 's/.*"extent_logical":\([0-9]*\).*/\1/' "$WORK/out" | head -n 1)"
expect "wrong data" 1 '1 file cannot be read completely' rescue --json bad
is "one file with wrong data is not whole" \
    "$(member 'total("partly_files") + total("lost_files")')" 1
is "and counted as one that can be read as it is" "$(member 'answer["mismatched_files"]')" 1
expect "saved with wrong data" 1 . rescue --extract data bad
holds "the file with wrong data is saved as it is" test -f "data/unverified/a/large 150"
is "the saved file differs in three bytes" \
    "$(cmp -l "data/unverified/a/large 150" "files/a/large 150" | wc -l)" 3
is "no other file is saved as unverified" "$(count data/unverified)" 1

# A file in an unverified leaf, of which one sector was not read from the disk.
cp --sparse=always sound bad
spoil bad 2 "${blocks[@]}"
expect "where the data of a file are" 0 - extents --json "$PWD/sound" "/a/large 150"
cp "$WORK/out" "$WORK/where"
start=$("$PROGRAM" map -o offset --raw sound \
    "$(sed 's/.*"extent_logical":\([0-9]*\).*/\1/' "$WORK/out" | head -n 1)")
printf '0 + 1\n0 %#x +\n%#x 4096 -\n%#x %#x +\n' "$start" "$start" $((start + 4096)) \
    $((150 * 1048576 - start - 4096)) > unread.map
expect "a range that was not read" 1 'files cannot be read completely' \
    rescue --json --map unread.map bad
is "a file with a lost range is partly readable" "$(member 'total("partly_files")')" 1
is "its data cannot be read as they are" "$(member 'answer["mismatched_files"]')" 0
expect "a range that was not read" 1 . rescue --extract remains --map unread.map bad
is "the rest of the file is saved" \
    "$(cmp -l "remains/unverified-partly/a/large 150" "files/a/large 150" | wc -l)" 4096
is "only this file has lost a range" "$(count remains/unverified-partly)" 1
is "the others are unverified" "$(count remains/unverified)" $((all - 1))
is "no file is called unsaved" "$(cat remains/unsaved)" ""

# Such a file whose data do not match their checksums, either.
spoil bad 100 "$(sed 's/.*"extent_logical":\([0-9]*\).*/\1/' "$WORK/where" | head -n 1)"
expect "wrong data in an unverified leaf" 1 'files cannot be read completely' rescue --json bad
is "all files are counted" "$(member '[total(kind + "_files") for kind in
    ("verified", "unverified", "partly", "lost")] + [answer["mismatched_files"]]')" \
    "[0, $((all - 1)), 1, 0, 1]"
expect "it is saved" 1 . rescue --extract mismatched bad
is "all files are saved as they are" "$(count mismatched/unverified)" "$all"

# An older verified version, and the current unverified one.
cp --sparse=always "$BUILD/fixtures/past/dev1.img" bad
spoil bad 2 "$(leaves bad | tail -n 1)"
expect "older generations" 1 . rescue --extract both bad
holds "the current version is saved as unverified" test "$(count both/unverified)" -ge 1
holds "older versions are saved" \
    test "$(find both/generation-* both/lost -type f 2> errors | wc -l)" -ge 1
"$PROGRAM" extract -C right "$BUILD/fixtures/past/dev1.img" > /dev/null
is "the current version is right" "$(sums both/unverified | comm -23 - <(sums right))" ""

# A manifest of another extraction.
expect "all but some" 0 - extract -C some --name 'large 1*' --manifest some.json sound
expect "the others" 0 - extract -C others --except some.json sound
is "--except saves all other files" "$( (sums some; sums others) | sort)" "$(cat expected)"
sed -n 's|\("name":"a/large 1\)0".*|\1|p' some.json | head -c -1 > cut.json
expect "all files" 0 - extract -C whole --except cut.json sound
is "a row that was cut off names no file" "$(sums whole | sort)" "$(cat expected)"
# Joined manifests: the second one follows a mark, or a row that was cut off.
"$PROGRAM" extract -C none --name 'large 2*' --manifest second.json sound
{ cat some.json && echo '{"saved":"incomplete"}' && cat second.json; } > marked.json
{ cat cut.json second.json; } > glued.json
for joined in marked glued; do
    expect "joined manifests: $joined" 0 - extract -C "$joined" --except "$joined.json" sound
done
"$PROGRAM" extract -C rest --except some.json --except second.json sound
is "the files of both are skipped" "$(sums marked | sort)" "$(sums rest | sort)"
"$PROGRAM" extract -C without --except second.json sound
is "the cut row names no file" "$(sums glued | sort)" "$(sums without | sort)"
expect "no manifest" 2 'cannot read missing' extract -C x --except missing sound

# Leaves with a wrong checksum, and one item each that is wrong: an extent ends after its data, an
# entry has the number of another inode. All files are read nevertheless, as by a mount.
# first_item TYPE SIZE: the leaf of the first such item, and the place of its bytes in the leaf.
first_item() {
    "$PROGRAM" dump --tree fs sound | sed -nE 's/^leaf ([0-9]+) items.*/leaf \1/p
        s/.*key \([0-9]+ '"$1"' [0-9]+\) itemoff ([0-9]+) itemsize '"$2"'$/item \1/p' |
        awk '$1 == "leaf" { leaf = $2 } $1 == "item" { print leaf, 101 + $2; exit }'
}
for item in 'EXTENT_DATA 53 49 0' 'EXTENT_DATA 53 31 0' 'DIR_INDEX 37 2 1'; do
    read -r type size at status <<< "$item"
    cp --sparse=always sound bad
    read -r leaf place < <(first_item "$type" "$size")
    spoil bad $((place + at)) "$leaf"
    expect "$type: a wrong checksum" 1 'checksum mismatch' extract -C bad-item bad
    expect "$type: ignored" "$status" 'accepted although' extract --ignore-checksums all -C item bad
    is "$type: all files" "$(sums item)" "$(cat expected)"
    rm -r bad-item item
done

# Two entries with the same name, of which one is wrong: a mount opens the right file.
read -r leaf place < <("$PROGRAM" dump --tree fs sound | sed -nE 's/^leaf ([0-9]+) items.*/leaf \1/p
    s/.*key \([0-9]+ DIR_INDEX [0-9]+\) itemoff ([0-9]+) .*/item \1/p; s/.*name: (.*)/name \1/p' |
    awk '$1 == "leaf" { leaf = $2 } $1 == "item" { at = $2 } /^item|^name small 12$/ { last = $1 }
        /^name small 12$/ && at { print leaf, 101 + at + 30; exit } $1 == "name" { at = 0 }')
place=$(($("$PROGRAM" map -o offset --raw sound "$leaf" | head -n 1) + place))
is "the place of the name" "$(tail -c +$((place + 1)) sound | head -c 8)" 'small 12'
cp --sparse=always sound bad
printf 'small 35' | dd of=bad bs=1 seek="$place" conv=notrunc status=none
expect "a name twice" 0 . extract --ignore-checksums all --skip-existing -C names bad
is "no file has the contents of another one" \
    "$(diff <(sums names) <(grep -v 'small 12$' expected))" ""
finish
