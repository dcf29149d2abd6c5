#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The rescue command: what it counts is what extract and sum find, and what it prints can be run as
# it is printed. tests/kernel/rescue.py and rescue_damage.py have many kinds of damage.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" laptop superblocks-gone raid0-2 raid1-3 past \
    empty raid5-3 plain subvolumes streams incomplete lost-tree-csum compressed renamed || exit 1
cd "$WORK" || exit 1
sound=$BUILD/fixtures/laptop/dev1.img
cp --sparse=always "$sound" bad.img

# member EXPRESSION: of the JSON of the last `expect`.
member() {
    python3 -c '
import json, sys
answer = json.load(open(sys.argv[1]))
total = lambda name: sum(row.get(name, 0) for row in answer["by_subvolume"])
print(eval(sys.argv[2]))' "$WORK/out" "$1"
}

# damage PLACE...: overwrites a sector at each of these offsets.
damage() {
    local place
    for place; do
        head -c 4096 /dev/zero | tr '\0' 'x' |
            dd of=bad.img bs=4096 seek=$((place / 4096)) conv=notrunc status=none
    done
}

places_of() { "$PROGRAM" map -o offset --raw "$sound" "$1"; }

# A sound file system.
expect "a sound file system" 0 - rescue "$sound"
holds "a sound file system can be saved as a whole" \
    out_has '^  btrfs-walk extract .*--directory=saved/whole .*/dev1.img$'
holds "a sound file system has no problems" sh -c "! grep -q 'Problems:' '$WORK/out'"
expect "the same as JSON" 0 - rescue --json "$sound"
is "rescue --json calls a sound file system healthy" "$(member 'answer["state"]')" healthy
is "rescue counts all files" "$(member 'total("verified_files") + total("unverified_files")')" \
    "$("$PROGRAM" --type f,l,p,s,c,b "$sound" | wc -l)"
is "rescue plans the steps whole and deleted" \
    "$(member '[row["step"] for row in answer["steps"]]')" "['whole', 'deleted']"
is "rescue counts the deleted files" "$(member 'answer["deleted_files"]')" \
    "$("$PROGRAM" deleted --type f,l,p,s,c,b -o path "$sound" | wc -l)"

# A lost first superblock, which no mount forgives. A search for its log opens the image again.
cp --sparse=always "$sound" dead.img
head -c 4096 /dev/zero | dd of=dead.img bs=4096 seek=16 conv=notrunc status=none
expect "a lost superblock" 0 - rescue dead.img
holds "a lost superblock is a problem" \
    out_has '^  dead.img: superblock copy 0 at 65536 rejected: no btrfs magic$'
holds "rescue names repair for a lost superblock" out_has '^  btrfs-walk repair dead.img$'
expect "a lost superblock as JSON" 0 - rescue --json dead.img
is "rescue --json calls a lost superblock degraded" "$(member 'answer["state"]')" degraded

# Bad data in a file, and a lost leaf that an older generation has.
expect "where the data of a file are" 0 - extents --json "$sound" /@home/anna/Pictures/holiday-3.jpg
# shellcheck disable=SC2046 # several words
damage $(places_of "$(sed 's/.*"logical":\([0-9]*\).*/\1/' "$WORK/out" | head -n 1)")
leaf=$("$PROGRAM" dump --tree "$("$PROGRAM" subvolumes -o subvolume,subvolume_path "$sound" |
    sed -n 's,\t/@home$,,p')" "$sound" | awk '$1 == "leaf" { print $2 }' | tail -n 1)
# shellcheck disable=SC2046
damage $(places_of "$leaf")
"$PROGRAM" sum "$sound" | sort > sums
expect "a damaged file system" 1 "files? cannot be read completely$" rescue bad.img
cp "$WORK/out" screen
holds "the lost tree block is a problem" \
    out_has "^  tree block $leaf of subvolume [0-9]* .*both mirrors are bad"
expect "as JSON" 1 "files? cannot be read completely$" rescue --json bad.img
is "rescue --json calls a lost tree block damaged" "$(member 'answer["state"]')" damaged
holds "rescue --json has a problem" test "$(member 'len(answer["problems"])')" -ge 1
whole=$(member 'total("verified_files")') partly=$(member 'total("partly_files")')
lost=$(member 'total("lost_files")')
holds "a partly readable or lost file" test "$((partly + lost))" -ge 1
holds "an older generation has files" test "$(member 'answer["hidden_files"]')" -ge 1
expect "every file" 1 "files? cannot be read completely$" rescue --list --json bad.img
is "--list has as many whole files as the summary" \
    "$(grep -c '"recoverable":"verified"' "$WORK/out")" "$whole"
is "--list has as many partly readable files as the summary" \
    "$(grep -c '"recoverable":"partly"' "$WORK/out")" "$partly"
is "--list has as many lost files as the summary" \
    "$(grep -c '"recoverable":"lost"' "$WORK/out")" "$lost"
expect "their paths" 1 "files? cannot be read completely$" rescue --list -0 bad.img
is "--list -0 ends each path with NUL" \
    "$(tr -cd '\0' < "$WORK/out" | wc -c)" "$((whole + partly + lost))"

# The printed commands, run as they are printed; then all at once.
mkdir bin && ln -s "$PROGRAM" bin/btrfs-walk
mkdir saved && sed -n '/^This runs/,/^Or / s/^  btrfs-walk/bin\/btrfs-walk/p' screen > commands
holds "rescue prints at least three commands" test "$(wc -l < commands)" -ge 3
sh commands > printed 2>&1
expect "all of them at once" 1 . rescue --extract=all bad.img
holds "the last line counts the files that could not be saved" \
    grep -q 'could not be saved' "$WORK/out"
holds "and says that others have zeros" \
    grep -q 'could not be saved.*; others have zeros in place of lost data$' "$WORK/out"
holds "both have saved the same" diff -r --no-dereference -x unsaved -x '*.json' saved all
is "the first command saves the whole files" "$(find saved/whole ! -type d | wc -l)" "$whole"
(cd saved/whole && find . -type f -exec sha256sum {} + | sed 's, \./, /,' | sort) > saved.sums
is "saved files have the hashes of the sound image" "$(comm -23 saved.sums sums)" ""
python3 - > check.sums << 'END'
import json
for line in open("saved/whole.json"):
    row = json.loads(line)
    if "hash" in row:
        print(row["hash"] + "  saved/whole/" + row["name"])
END
holds "and the hashes in the manifest" sha256sum --quiet -c check.sums
holds "files of lost tree blocks" test "$(find saved/lost -type f | wc -l)" -ge 1
is "whole.missed lists the files that are not whole" \
    "$(tr -cd '\0' < saved/whole.missed | wc -c)" "$((partly + lost))"
before=$(cat all/*.json | wc -l)
expect "once more" 1 . rescue --extract=all bad.img
is "a second run extracts nothing again" "$(cat all/*.json | wc -l)" "$before"

# A list of missing files has what does not exist, and what comes after the error that ends all.
printf '%s\0' /nowhere /@/etc/fstab > paths
expect "a path that does not exist" 1 'nowhere: no such' \
    extract -C some --missed=missed --from0 -T paths bad.img
is "--missed lists a path that does not exist" "$(tr '\0' ' ' < missed)" "/nowhere "
expect "an error that ends the extraction" 1 'cannot be read' \
    extract -C ended --on-error=fail --missed=missed --manifest=manifest bad.img
(sed -n 's/.*"path":"\([^"]*\)".*/\1/p' manifest && tr '\0' '\n' < missed) | sort > every
is "the manifest and --missed list all files together" \
    "$(comm -23 every <("$PROGRAM" --type d bad.img 2> err | sort))" \
    "$("$PROGRAM" --type f,l,p,s,c,b bad.img 2> err | sort)"
holds "many of them as missing" test "$(tr -cd '\0' < missed | wc -c)" -gt 4

# Links that another user has put into the folder.
mkdir victim && echo precious > victim/file
for place in $(printf '%s\n' whole partly lost whole.json whole.missed partly.missed unsaved |
    sweep "${SWEEP:-1}"); do
    rm -rf linked && mkdir linked && ln -s ../victim "linked/$place"
    expect "a link as $place" 2 "linked/$place is a symbolic link, which is not followed" \
        rescue --extract=linked bad.img
    rm "linked/$place" && ln -s ../victim/file "linked/$place"
    expect "to a file" 2 "linked/$place is a symbolic link" rescue --extract=linked bad.img
    is "nothing is made behind the link $place" "$(ls victim) $(cat victim/file)" "file precious"
done
rm -rf linked && mkdir linked && ln victim/file linked/partly.json
expect "a hard link" 2 'linked/partly.json is not a regular file, or has several' \
    rescue --extract=linked bad.img
is "it is not written to" "$(cat victim/file)" precious

# Files that may not get so large: they are missing, and a run without the limit saves them.
(ulimit -f 1100 && exec "$PROGRAM" rescue --extract=cut bad.img > out 2> err)
is "files that may not get so large make the status 1" "$?" 1
holds "a message names each" grep -q ': cannot write: File too large$' err
holds "they are missing" test "$(find cut/whole ! -type d | wc -l)" -lt "$whole"
holds "whole.missed lists them" \
    test "$(tr -cd '\0' < cut/whole.missed | wc -c)" -gt $((partly + lost))
expect "a second run without the limit" 1 . rescue --extract=cut bad.img
holds "the same as at once" diff -r --no-dereference cut/whole all/whole
names() { sed 's/.*"name":\("[^"]*"\).*/\1/' "$1" | sort; }
is "all are in the manifest" "$(names cut/whole.json)" "$(names all/whole.json)"
sed -i 2,3d cut/whole.json
expect "files that the manifest lacks" 1 . rescue --extract=cut bad.img
is "files that the manifest lacked are listed later" \
    "$(names cut/whole.json)" "$(names all/whole.json)"
is "files that are listed later have hashes" "$(grep -o '"hash":.*' cut/whole.json | sort)" \
    "$(grep -o '"hash":.*' all/whole.json | sort)"

# A target that fills up.
if unshare -rm mount -t tmpfs none /mnt 2> /dev/null; then
    mkdir small && unshare -rm sh -c '
        mount -t tmpfs -o size=4M none small && "$1" rescue --extract=small/x bad.img
        status=$?
        cp -r small/x small.copy
        exit $status' sh "$PROGRAM" > out 2> err
    is "a full target makes the status 1" "$?" 1
    holds "a full target is reported" grep -q 'No space left on device' err
    (cd small.copy/whole && find . ! -type d -printf '/%P\n') > made
    tr '\0' '\n' < small.copy/whole.missed >> made
    "$PROGRAM" --type f,l,p,s,c,b bad.img 2> err | sort > every
    is "each file was saved or is listed" "$(sort -u made)" "$(cat every)"
    is "no file is saved and listed as missing" "$(sort made | uniq -d)" ""
    is "and in the list of unsaved files" "$(tr -cd '\0' < small.copy/unsaved | wc -c)" \
        "$(sed -n 's/^\([0-9]*\) files could not be saved.*/\1/p' out)"
else
    skip "user namespaces" "a target that fills up"
fi

# Names that the shell would split.
mkdir "a folder" && mv bad.img "a folder/it's.img"
expect "an image with a quote" 1 "files? cannot be read completely$" rescue "a folder/it's.img"
sed -n '/^This runs/,/^Or / s/^  btrfs-walk/bin\/btrfs-walk/p' "$WORK/out" | head -n 1 > commands
rm -r saved && mkdir saved
sh commands > printed 2>&1
is "the quoted command saves the whole files" "$(find saved/whole ! -type d | wc -l)" "$whole"

# Files whose tree blocks are lost, by themselves.
expect "files that damage has hidden" 1 . deleted --lost -o path "a folder/it's.img"
holds "a file that damage has hidden is listed" out_has '^/@home/'

# What is needed to open.
expect "without superblocks" 1 "metadata are damaged; files may be missing$" \
    rescue --json "$BUILD/fixtures/superblocks-gone/dev1.img"
is "--scan is needed to open the image" "$(member 'answer["open_options"]')" "['--scan']"
is "the commands have the option --scan" \
    "$(member '"--scan" in answer["steps"][0]["shell_command"]')" True

# Missing devices.
expect "a missing copy" 0 - rescue "$BUILD/fixtures/raid1-3/dev1.img" \
    "$BUILD/fixtures/raid1-3/dev2.img"
holds "a missing device is a problem" out_has '^  device 3 of 3 is missing$'
is "a missing device is reported once" "$(grep -c 'is missing' out)" 1
expect "without subvolumes" 0 - rescue "$BUILD/fixtures/plain/dev1.img"
is "without subvolumes, no command keeps them" "$(grep -c -- --subvolumes out)" 0
expect "with snapshots" 0 - rescue "$BUILD/fixtures/subvolumes/dev1.img"
holds "a command keeps subvolumes and snapshots" \
    out_has '^  btrfs-walk extract --subvolumes --directory=saved-subv'
expect "a missing stripe" 1 "files? cannot be read completely$" \
    rescue "$BUILD/fixtures/raid0-2/dev1.img"
holds "a missing stripe costs chunks of data" \
    out_has ' chunks? with .* of data.* cannot be read completely without it$'
expect "rescue that reads data" 1 "files? cannot be read completely$" \
    rescue --json "$BUILD/fixtures/incomplete/dev1.img"
counts='[total(name) for name in ("verified_files", "partly_files", "lost_files")]'
read_counts=$(member "$counts")
expect "not read" 1 "files? cannot be read completely$" \
    rescue --json --no-data "$BUILD/fixtures/incomplete/dev1.img"
is "--no-data counts the same files" "$(member "$counts")" "$read_counts"

# Exit statuses, and what is said of one device of a RAID5.
expect "no files" 0 - rescue "$BUILD/fixtures/empty/dev1.img"
holds "an empty file system has no files" out_has '^There are no files\.$'
cp --sparse=always "$BUILD/fixtures/empty/dev1.img" nothing.img
for block in $("$PROGRAM" dump --tree 5 nothing.img | awk '$1 == "leaf" { print $2 }'); do
    for place in $("$PROGRAM" map -o offset --raw nothing.img "$block"); do
        head -c 4096 /dev/zero | dd of=nothing.img bs=4096 seek=$((place / 4096)) conv=notrunc \
            status=none
    done
done
expect "rescue without a top directory" \
    1 'top directory .* is lost|cannot be read, only' rescue --no-scan nothing.img
holds "nothing can be saved without the top directory" out_has '^Nothing can be saved\.$'
expect "rescue --extract without a top directory" \
    1 'nothing.img: .* lost|cannot be read' rescue --no-scan --extract=none nothing.img
alone=$BUILD/fixtures/raid5-3/dev1.img
expect "one device of three" 1 'files cannot be read completely$' rescue "$alone"
"$PROGRAM" check "$alone" > out 2> err
holds "check reports the lost root tree" \
    grep -q 'root-lost.* the root cannot be read; a tree made of the readable' out
holds "check does not use another generation" \
    sh -c '! grep -q "generation [0-9]* was checked instead" out'
holds "no number of unknown files" sh -c '! grep -q "at least 0" out'

# All files that share a block, with the message of a file as with an address.
file=/@/usr/bin/program-1
logical=$(run_json extents --json "$sound" "$file" |
    sed 's/.*"logical":\([0-9]*\).*/\1/' | head -n 1)
inode=$("$PROGRAM" stat --format %i "$sound" "$file")
subvolume=$(run_json stat --json "$sound" "$file" | sed 's/.*"subvolume":\([0-9]*\).*/\1/')
echo "BTRFS warning (device sda2): csum failed root $subvolume ino $inode off 0 csum 0x8941f998" \
    "expected csum 0x93413794 mirror 1" > log
expect "a message of a shared block" 0 . rescue --dmesg log "$sound"
is "all files that have it" "$(sed -n 's/^  affected: //p' out | sort)" \
    "$("$PROGRAM" owner -o path "$sound" "$logical" | sort)"
holds "several files share the block" test "$(grep -c affected: out)" -gt 1

# Lost checksums.
expect "without checksums" 1 . rescue --extract unverified "$BUILD/fixtures/lost-tree-csum/dev1.img"
is "files that can be read only so" "$(find unverified/unverified -type f | wc -l)" 4
is "no file is listed as unsaved" "$(wc -c < unverified/unsaved)" 0

# Data without checksums that do not decompress are not whole.
image=$BUILD/fixtures/compressed/dev1.img
cp --sparse=always "$image" bad.img
csums=$("$PROGRAM" dump --tree csum "$image" | sed -n 's/^leaf \([0-9]*\) items.*/\1/p')
mapfile -t places < <("$PROGRAM" map -o offset "$image" "$csums")
damage "${places[@]}"
expect "without checksums" 1 "files cannot be verified" rescue --list bad.img
holds "a stream can be read" grep -q '^unverified  *[0-9]* *0 */zlib/large$' out
damage "$("$PROGRAM" map -o offset "$image" 13639680)"
expect "a stream that is damaged, too" 1 "files cannot be verified" rescue --list bad.img
holds "it is read in part" grep -q '^partly  *[0-9]* *131072  */zlib/large$' out
expect "by all commands" 1 "extent at 13639680: mirror 1 on device 1" \
    sum --ignore-checksums data bad.img

# Files that were renamed after the last generation in which they are good: by themselves, with
# their directory, onto another file, and away from a path that a new file has now.
image=$BUILD/fixtures/renamed/dev1.img
cp --sparse=always "$image" bad.img
for file in new-name new-folder/file target elsewhere place; do
    logical=$(run_json extents --json "$image" "/$file" |
        sed 's/.*"logical":\([0-9]*\).*/\1/' | head -n 1)
    # shellcheck disable=SC2046 # several words
    damage $("$PROGRAM" map -o offset --raw "$image" "$logical")
done
# first_lines FOLDER: the files of the fixture there, each with the first line of its contents.
first_lines() { (cd "$1" && find . -type f -exec head -qn 1 {} \; -print | paste - - | sort); }
renamed='folder/file	./new-folder/file
name	./new-name
place	./elsewhere
source	./target'
expect "renamed files" 1 "5 files cannot be read completely$" rescue --json bad.img
older=$(member 'answer["generations"][0]["generation"]')
is "four files have versions in an older generation" \
    "$(member '[row["files"] for row in answer["generations"]]')" '[4]'
expect "rescue --extract of renamed files" \
    1 '/place: this generation has another file there' rescue --extract renamed bad.img
is "older versions are saved under their new names" \
    "$(first_lines "renamed/generation-$older")" "$renamed"
is "all others have only remains" "$(tr '\0' ' ' < "renamed/generation-$older.missed")" "/place "
is "the file that was replaced" "$(first_lines renamed/deleted)" "target	./target"
holds "directories cause no messages" sh -c "! grep -q 'new-folder: ' '$WORK/err'"
expect "the command by hand" 0 - extract --generation "$older" --follow-renames -C by-hand bad.img \
    /new-folder /new-folder/file /elsewhere target new-name
is "extract --follow-renames saves the same files" "$(first_lines by-hand)" "$renamed"
expect "relative names" 0 - extract --generation "$older" --follow-renames --relative \
    --subvol 5 -C relative bad.img /new-folder
is "--relative saves the file without its directory" "$(first_lines relative)" "folder/file	./file"
expect "paths of that generation" 1 '/new-name: no such file' \
    extract --generation "$older" -C without bad.img /new-name /place
is "its file at the path" "$(first_lines without)" "place	./place"
expect "a path of no generation" 1 '/nowhere: no such file' \
    extract --generation "$older" --follow-renames -C none bad.img /nowhere
expect "no older generation" 2 'follow-renames needs --generation' \
    extract --follow-renames -C none bad.img /place
# Files with other paths cannot be found if an older generation was selected by hand.
holds "not after --generation" sh -c \
    "! '$PROGRAM' rescue --generation '$older' '$image' | grep -q follow-renames"

# What is no file system.
echo text > text
expect "a text" 2 'not a btrfs file system' rescue text
"$PROGRAM" send -q -f stream "$BUILD/fixtures/streams/dev1.img" \
    "$("$PROGRAM" subvolumes -o subvolume "$BUILD/fixtures/streams/dev1.img" | tail -n 1)"
expect "a stream" 2 'a send stream' rescue stream
expect "two kinds of answers" 2 'exclude each other' rescue --list --extract all "$sound"
# A signal to the first process interrupts the child that reads, which says what it has done before
# both end: here it waits for room in a full pipe.
. "$ROOT/tests/command/gate.bash"
mkfifo "$WORK/messages"
exec {messages}<> "$WORK/messages"
set -m # so that background jobs do not ignore SIGINT
gate device-1,after=3
"$PROGRAM" rescue "${gate[@]}" --extract "$WORK/interrupted" "$BUILD/fixtures/plain/dev1.img" \
    > "$WORK/out" 2> "$WORK/messages" &
at_gate
parent=$!
read -r child _ < "/proc/$parent/task/$parent/children"
python3 -c '
import os, sys
os.set_blocking(2, False)
try:
    while os.write(2, b"\n"): pass
except BlockingIOError:
    os.set_blocking(2, True)' 2>&"$messages"
got_signal() { ! grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$child/status"; }
ended() { ! grep -q '^State:.[^ZX]' "/proc/$child/status" 2> /dev/null; }
kill -INT "$parent"
holds "the child receives the signal" soon got_signal
cat <&"$messages" > "$WORK/said" &
reader=$!
holds "the child ends when there is room" soon ended
{ wait "$parent"; } 2> /dev/null
is "its parent is ended by the same signal" $? 130
set +m
echo end >&"$messages"
holds "the messages have an end" soon grep -q '^end$' "$WORK/said"
kill "$reader"
holds "the child says that it was interrupted" grep -q ': interrupted: ' "$WORK/said"
finish
