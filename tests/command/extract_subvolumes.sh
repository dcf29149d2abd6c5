#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# extract --subvolumes where there are no snapshots: every subvolume is a directory with the right
# files. tests/kernel/extract_subvolumes.py compares everything, also on btrfs.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" streams subvolumes bad-data siblings || exit 1
image=$BUILD/fixtures/streams/dev1.img
bad=$BUILD/fixtures/bad-data/dev1.img

# matches FIXTURE FOLDER: whether the regular files in a folder are those of a fixture.
matches() {
    local expected=$ROOT/fixtures/$1/sums0
    { [ -e "$expected" ] && cat "$expected" || zstd -dqc "$expected.zst"; } > "$WORK/expected"
    (cd "$2" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z) |
        sed -z 's,  ,  /,' > "$WORK/got"
    cmp "$WORK/got" "$WORK/expected"
}

# Owners, device nodes and some attributes can only be restored by root, or not on this file system.
extract() { "$PROGRAM" extract --subvolumes "$@" > "$WORK/out" 2> "$WORK/err"; [ $? -le 1 ]; }

holds "--subvolumes extracts all subvolumes" extract -C "$WORK/all" "$image"
holds "all subvolumes have the hashes of the fixture" matches streams "$WORK/all"
holds "--link-snapshots extracts all subvolumes" extract --link-snapshots -C "$WORK/linked" "$image"
holds "linked snapshots have the hashes of the fixture" matches streams "$WORK/linked"
is "a file that is the same in all is stored once" \
    "$(stat -c %i "$WORK/linked"/{first,second,third}/types/random-1* \
        "$WORK/linked"/{first,second}/seventy/late/random-1 2> "$WORK/holds" | sort -u | wc -l)" 1
is "one that has changed is not" \
    "$(stat -c %i "$WORK/linked"/{first,second}/swap/3 | sort -u | wc -l)" 2
is "hard links within a snapshot" \
    "$(stat -c %i "$WORK/linked/first/swap/1" "$WORK/linked/first/later/link" | sort -u | wc -l)" 1
size=$(find "$WORK/all" -type f -printf '%i %s\n' | sort -u |
    awk '{ bytes += $2 } END { printf "%.2fMiB", bytes / 1048576 }')
holds "a message has the sizes of written and linked files" \
    grep -qE "4 subvolumes with files of $size: .* written, .* links" \
    "$WORK/err"
holds "one subvolume is extracted" extract -C "$WORK/one" "$image" second
is "no other subvolume is extracted" "$(ls "$WORK/one")" second
holds "snapshots with like files are extracted" extract --link-snapshots -C "$WORK/siblings" \
    "$BUILD/fixtures/siblings/dev1.img"
is "snapshots with like files have their own links" \
    "$(readlink "$WORK/siblings"/{one,two}/link | tr '\n' ' ')" \
    'to-one to-two '
holds "nested subvolumes are extracted" \
    extract -C "$WORK/nested" "$BUILD/fixtures/subvolumes/dev1.img"
holds "nested subvolumes have the hashes of the fixture" matches subvolumes "$WORK/nested"
# Here, a snapshot of the top-level subvolume has changed later than the latter, which is received
# into the folder itself.
cp "$BUILD/fixtures/subvolumes/dev1.img" "$WORK/later.img"
holds "a snapshot changes" change "$WORK/later.img" 1 264 132 - set 295 8 13
mkdir "$WORK/later" && touch "$WORK/later/own"
holds "a snapshot of the top-level subvolume is extracted" \
    extract --link-snapshots -C "$WORK/later" "$WORK/later.img"
is "with only its own files" "$(cd "$WORK/later/top-snapshot" && find . | sort)" \
    "$(cd "$WORK/nested/top-snapshot" && find . | sort)"
is "no temporary folder is left" "$(find "$WORK"/{all,nested,later} -name '.btrfs-walk*' | wc -l)" 0

# Access control lists that new files would inherit from the folder, or from their directory.
id='\xff\xff\xff\xff'
acl="\\x02\\x00\\x00\\x00\\x01\\x00\\x07\\x00$id\\x02\\x00\\x07\\x00\\x01\\x00\\x00\\x00"
acl+="\\x04\\x00\\x05\\x00$id\\x10\\x00\\x07\\x00$id\\x20\\x00\\x05\\x00$id"
ids=(UUID=000102030405060708090a0b0c0d0e0f CTRANSID=7)
printf '%s\n' "subvol PATH=one ${ids[*]}" 'mkdir PATH=d' 'mkfile PATH=d/file' \
    'chmod PATH=d/file MODE=384' 'chmod PATH=d MODE=493' 'mkfifo PATH=d/fifo RDEV=0 MODE=4480' \
    "set_xattr PATH=d XATTR_NAME=system.posix_acl_default XATTR_DATA=$acl" end 'header 1' \
    "snapshot PATH=two ${ids[*]/0001/0002} CLONE_${ids[0]} CLONE_${ids[1]}" \
    'write PATH=d/file FILE_OFFSET=0 DATA=changed' 'chmod PATH=d/fifo MODE=448' end |
    python3 "$ROOT/tests/support/make_stream.py" > "$WORK/chain"
mkdir "$WORK/acl"
if setfacl -d -m u:2:rwx "$WORK/acl" 2> "$WORK/holds"; then
    holds "into a folder with a default ACL" extract --link-snapshots -C "$WORK/acl" "$WORK/chain"
    is "only the ACLs of the image are there" "$(cd "$WORK/acl" && getfacl -nps ./*/d |
        grep -E '^# file|user:[0-9]' | tr '\n' ' ')" \
        '# file: ./one/d default:user:1:rwx # file: ./two/d default:user:1:rwx '
    is "changed permissions are restored in the snapshot" \
        "$(stat -c %a "$WORK/acl"/{one,two}/d/{file,fifo} | tr '\n' ' ')" \
        '600 600 600 700 '
    is "a changed file has its contents in the snapshot" "$(cat "$WORK/acl/two/d/file")" changed
else
    skip setfacl "default ACLs"
fi

# A file larger than the file system allows is named, and the others are extracted. The calls of
# bash count in blocks of 1024 bytes.
printf '%s\n' "subvol PATH=one ${ids[*]}" 'mkfile PATH=large' \
    'write PATH=large FILE_OFFSET=0 DATA=begin' 'write PATH=large FILE_OFFSET=9000000 DATA=a' \
    'write PATH=large FILE_OFFSET=9900000 DATA=b' 'truncate PATH=large SIZE=9999999' \
    'mkfile PATH=small' 'write PATH=small FILE_OFFSET=0 DATA=all' end 'header 1' \
    "subvol PATH=two ${ids[*]/0001/0002}" 'mkfile PATH=large' 'truncate PATH=large SIZE=9999999' \
    end | python3 "$ROOT/tests/support/make_stream.py" > "$WORK/large"
(ulimit -f 4096; extract -C "$WORK/limited" "$WORK/large")
is "a file that is too large is named once in each subvolume" "$(grep -c large "$WORK/err")" 2
holds "with the reason" grep -q 'cannot write large: File too large$' "$WORK/err"
is "what is written of it" "$(cat "$WORK/limited/one/large")" begin
is "the file behind it" "$(cat "$WORK/limited/one/small")" all

# Only root makes device nodes; they have temporary names until they are renamed.
if [ "$(id -u)" != 0 ]; then
    printf '%s\n' "subvol PATH=one ${ids[*]}" 'mknod PATH=o257-7-0 MODE=8576 RDEV=259' \
        'rename PATH=o257-7-0 PATH_TO=null' 'chmod PATH=null MODE=384' end 'header 1' \
        "snapshot PATH=two ${ids[*]/0001/0002} CLONE_${ids[0]} CLONE_${ids[1]}" \
        'rename PATH=null PATH_TO=moved' end |
        python3 "$ROOT/tests/support/make_stream.py" > "$WORK/nodes"
    holds "a device node is left out" \
        extract --link-snapshots -C "$WORK/nodes.d" "$WORK/nodes"
    is "and named once" "$(grep nodes "$WORK/err")" \
        'btrfs-walk: null: only root can make device nodes'
fi

expect "unreadable data" 1 'no good mirror' extract --subvolumes -C "$WORK/bad" "$bad"
holds "unreadable data are zeros" test -s "$WORK/bad/bad"
expect "or the end" 1 'no good mirror' extract --subvolumes --on-error=fail -C "$WORK/bad2" "$bad"
expect "files that exist stay" 1 'File exists' extract --subvolumes -C "$WORK/all" "$image"
holds "and where the new ones are" grep -q "$WORK/all/\.btrfs-walk-[0-9]* contains" "$WORK/err"
# Another user who may write to the folder replaces the temporary one. Landlock is not needed to
# notice it.
if [ -z "${SANITIZE:-}" ] && "${COMPILER[@]}" -shared -fPIC -w -o "$WORK/intruder.so" \
    "$ROOT/tests/preload/intruder.c" 2> /dev/null &&
    LD_PRELOAD=$WORK/intruder.so "$PROGRAM" --version > /dev/null 2>&1; then
    mkdir "$WORK/theirs" "$WORK/shared"
    export SWAP=$WORK/theirs
    LD_PRELOAD=$WORK/intruder.so expect "a link in its place" 2 'symbolic links|Not a directory' \
        extract --sandbox=off --subvolumes -C "$WORK/shared" "$image"
    export SWAP_MOVES=1
    LD_PRELOAD=$WORK/intruder.so expect "another directory" 2 'has been replaced' \
        extract --sandbox=off --subvolumes -C "$WORK/shared" "$image"
    unset SWAP SWAP_MOVES
    is "nothing is made in them" \
        "$(find "$WORK/theirs" "$WORK/shared" -type f 2> /dev/null | wc -l)" 0
else
    skip "a compiler" "folders that others replace"
fi
expect "no folder" 2 'no target directory' extract --subvolumes "$image"
expect "links need subvolumes" 2 'needs --subvolumes' extract --link-snapshots -C "$WORK/x" "$image"
expect "a subvolume that does not exist" 2 'no subvolume' \
    extract --subvolumes -C "$WORK/x" "$image" missing
finish
