#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The send command: full streams equal those of the kernel, incremental ones name only what differs,
# and unreadable data are handled as requested. tests/kernel/send.py receives streams of random
# histories.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" streams laptop bad-data subvolumes siblings \
    subvolume-kinds differences || exit 1
image=$BUILD/fixtures/streams/dev1.img
bad=$BUILD/fixtures/bad-data/dev1.img
laptop=$BUILD/fixtures/laptop/dev1.img
siblings=$BUILD/fixtures/siblings/dev1.img
dumped() { "$PROGRAM" dump "$WORK/out" > "$WORK/dump" 2>&1; }
dump_has() { dumped && grep -qE -- "$1" "$WORK/dump"; }
dump_lacks() { dumped && ! grep -qE -- "$1" "$WORK/dump"; }
commands() { dumped && cut -d ' ' -f 1 "$WORK/dump" | sort | uniq -c | tr -s ' \n' ' '; }

# Full streams have the hashes that are recorded of `btrfs send`.
for expected in "$ROOT"/fixtures/*/streams; do
    name=$(basename "$(dirname "$expected")")
    "$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" "$name" || exit 1
    while read -r hash option path; do
        got=$("$PROGRAM" send "$option" "$BUILD/fixtures/$name"/dev*.img "$path" 2>&1 | sha256sum)
        is "$option $name $path, as the kernel sends it" "${got%% *}" "$hash"
    done < "$expected"
done

# Incremental streams.
expect "what differs" 0 - send -p first "$image" second
holds "a snapshot of the parent" dump_has '^snapshot +\./second .*parent_uuid='
holds "directories that are turned inside out" dump_has 'rename .*/o261-7-0 +dest=./second/turn/d$'
holds "a number that has gone to a directory" \
    dump_has 'rename .*/o[0-9]+-[0-9]+-0 +dest=./second/types/fifo$'
holds "an attribute that is gone" dump_has 'remove_xattr +\./second/ +name=user.top'
holds "the capability again, after the owner" dump_has 'set_xattr .*capable +name=security.capab'
holds "permissions again after the owner, which clears setuid, even if they are the same" \
    dump_has '^chmod +\./second/types/capable +mode=755$'
holds "only the sectors that differ" dump_has 'write +\./second/types/hole +offset=8192 len=4096'
holds "nothing of files that are the same" dump_lacks 'seventy|random-2'
expect "in protocol 2" 0 - send -p first --proto 2 "$image" second
holds "protocol 2 punches holes" \
    dump_has 'fallocate +\./second/types/random-3 .*offset=4096 len=8192'
expect "back to the parent" 0 - send -p second "$image" first
holds "a fifo is made" dump_has 'mkfifo +\./first/o[0-9]+-[0-9]+-0$'
expect "the nearest of several sources is the parent" 0 - \
    send --clone-source first --clone-source second "$image" third
holds "the nearest source is the parent" \
    dump_has "parent_uuid=$("$PROGRAM" subvolumes -o uuid,subvolume_path \
    "$image" | awk '$2 == "/second" { print $1 }')"
expect "no contents" 0 - send --no-data -p first "$image" second
holds "--no-data sends ranges in place of writes" dump_has 'update_extent +\./second/swap/3 '
holds "--no-data sends no data" dump_lacks '^write'

# A compressed extent that both have, of which the second subvolume uses another part.
cp --sparse=always "$image" "$WORK/part.img"
holds "another part of a compressed extent" change "$WORK/part.img" \
    at 6094848 256 274 108 0 set 37 8 4096 and at 6094848 256 274 108 0 set 45 8 12288
expect "a file with another part of an extent" 0 - send -p first "$WORK/part.img" second
holds "another part of the same compressed extent is sent" \
    dump_has 'write +\./second/swap/2 +offset=0 len=12288$'
rm "$WORK/part.img"

# Files with the number, type and generation of another one, made in the same transaction.
expect "a snapshot next to its parent" 0 - send -p one "$siblings" two
holds "a snapshot next to its parent has its own links" dump_has '^symlink .*dest=to-two$'
holds "a snapshot next to its parent has its own device nodes" \
    dump_has '^mknod .*mode=60644 dev=0x10072c$'
holds "those that are equal stay" dump_lacks 'mknod .*mode=20'
holds "directories are renamed and changed" dump_has '^chmod +\./two/directory +mode=700$'
"$PROGRAM" send "$siblings" one > "$WORK/one"
mv "$WORK/out" "$WORK/two"
is "ls of both streams prints the device node and the link" \
    "$("$PROGRAM" ls -l "$WORK/one" "$WORK/two" /two |
    sed -n 's/.* \([0-9]*, [0-9]*\) .* block$/\1/p; s/.* link -> //p' | tr '\n' ' ')" \
    '7, 300 to-two '
expect "the parent is chosen" 0 - send -R -f "$WORK/both" "$siblings" 5
holds "a stream with a chosen parent has its own links" \
    bash -c "'$PROGRAM' dump '$WORK/both' | grep -q '^symlink .*dest=to-two$'"

# Extents that are shared in parts. The kernel has the same clones, but for those of `short`.
clones() { # FILE: offset, length and source of its clones, and the ranges that are written
    dumped && awk -v "path=/$1" 'substr($2, length($2) - length(path) + 1) == path &&
        ($1 == "write" || $1 == "clone") {
            sub(/.*=/, "", $3); sub(/.*=/, "", $4); sub(/.*[/]/, "", $5); sub(/.*=/, "", $6)
            print $3 "+" $4 ($1 == "clone" ? "=" $5 "@" $6 : "") }' "$WORK/dump" | tr '\n' ' '
}
expect "clones" 0 - send "$siblings" two
is "go on after a part that differs" "$(clones whole)" "0+40960=source@0 40960+4096 \
45056+86016=source@45056 131072+8192 139264+122880=source@139264 "
is "a clone comes from a second file" "$(clones middle)" "0+24576=whole@122880 "
is "come from the file itself" "$(clones twice)" "0+49152 49152+16384 65536+65536=twice@0 \
131072+32768=twice@65536 163840+65536=twice@65536 "
is "clones end at a sector" "$(clones short)" "0+36864=whole@0 36864+3136 "

# Attributes that new inodes would inherit, in a file system made of streams.
ids=(UUID=000102030405060708090a0b0c0d0e0f CTRANSID=7)
acl='system.posix_acl_default XATTR_DATA=\x02\x00\x00\x00'
printf '%s\n' "subvol PATH=one ${ids[*]}" "set_xattr PATH= XATTR_NAME=$acl" \
    'mkfile PATH=old INO=257' 'mkdir PATH=d INO=258' \
    'set_xattr PATH=d XATTR_NAME=btrfs.compression XATTR_DATA=zstd' end 'header 1' \
    "snapshot PATH=two ${ids[*]/0001/0002} CLONE_${ids[0]} CLONE_${ids[1]}" \
    'mkfile PATH=d/new INO=259' end > "$WORK/lines"
python3 "$ROOT/tests/support/make_stream.py" < "$WORK/lines" > "$WORK/chain"
expect "a default ACL of the top directory" 0 - send "$WORK/chain" one
holds "a default ACL of the top directory comes last" \
    bash -c "'$PROGRAM' dump '$WORK/out' | sed '1,/mkfile/d' |
    grep -q 'set_xattr *./one/ *name=system.posix_acl_default'"
sed -i '2s/.*/set_xattr PATH= XATTR_NAME=btrfs.compression XATTR_DATA=zstd/' "$WORK/lines"
python3 "$ROOT/tests/support/make_stream.py" < "$WORK/lines" > "$WORK/compressing"
expect "a compression property of the top directory" 0 - send "$WORK/compressing" one
holds "the property is set after all inodes are made" bash -c "'$PROGRAM' dump '$WORK/out' |
    sed '1,/mkfile/d' | grep -q 'set_xattr *./one/ *name=btrfs.compression'"
expect "of the parent" 0 - send -p one "$WORK/chain" two
is "is removed while inodes are made" \
    "$("$PROGRAM" dump "$WORK/out" | sed 's/ .*//' | tr '\n' ' ')" \
    'snapshot remove_xattr mkfile rename set_xattr chown chmod utimes utimes utimes '

# Holes, and ranges that end in the midst of an extent.
bytes() { printf '%*s' "$2" '' | tr ' ' "$1"; }
printf '%s\n' "subvol PATH=one ${ids[*]}" \
    'mkfile PATH=grown INO=257' "write PATH=grown FILE_OFFSET=0 DATA=$(bytes a 5000)" \
    'mkfile PATH=within INO=258' "write PATH=within FILE_OFFSET=0 DATA=$(bytes b 32768)" \
    'mkfile PATH=shorter INO=259' "write PATH=shorter FILE_OFFSET=0 DATA=$(bytes c 20000)" \
    'mkfile PATH=punched INO=260' "write PATH=punched FILE_OFFSET=0 DATA=$(bytes d 32768)" \
    'mkfile PATH=both INO=262' "write PATH=both FILE_OFFSET=0 DATA=$(bytes g 5000)" \
    end 'header 1' "snapshot PATH=two ${ids[*]/0001/0002} CLONE_${ids[0]} CLONE_${ids[1]}" \
    'write PATH=both FILE_OFFSET=4500 DATA=z' \
    "write PATH=both FILE_OFFSET=20480 DATA=$(bytes h 4096)" \
    'mkfile PATH=new INO=261' "write PATH=new FILE_OFFSET=65536 DATA=$(bytes e 4096)" \
    'truncate PATH=new SIZE=131072' "write PATH=grown FILE_OFFSET=20480 DATA=$(bytes f 4096)" \
    'write PATH=within FILE_OFFSET=5000 DATA=x' 'write PATH=shorter FILE_OFFSET=8192 DATA=y' \
    'truncate PATH=shorter SIZE=9000' \
    'fallocate PATH=punched FALLOCATE_MODE=3 FILE_OFFSET=8192 SIZE=8192' end > "$WORK/lines"
python3 "$ROOT/tests/support/make_stream.py" < "$WORK/lines" > "$WORK/sparse"
ranges() { dumped && sed -nE 's/^(write|fallocate|truncate) +\.\/two\/([a-z]+) /\1 \2 /p' \
    "$WORK/dump" | sed -E 's/ mode=3//; s/(offset|size|len)=//g' | tr -s ' \n' ' '; }
same="write grown 4096 904 write grown 20480 4096 write within 5000 1 write within 5001 3191 \
write shorter 8192 1 write shorter 8193 807 truncate shorter 9000"
new="write new 65536 4096 truncate new 131072 "
both="write both 4500 1 write both 4501 499"
expect "holes" 0 - send --proto 1 -p one "$WORK/sparse" two
is "a hole is sent as zeros only where the parent has data" "$(ranges)" \
    "$same write punched 8192 8192 $new$both write both 5000 3192 write both 20480 4096 "
expect "holes, in protocol 2" 0 - send --proto 2 -p one "$WORK/sparse" two
is "a hole is punched only where the parent has data" "$(ranges)" \
    "$same fallocate punched 8192 8192 $new$both fallocate both 5000 3192 write both 20480 4096 "

# Several subvolumes.
expect "one after the other" 0 - send "$image" first second
is "two full streams follow each other" "$(dumped && grep -c '^subvol ' "$WORK/dump")" 2
"$PROGRAM" send -e --clone-source first --clone-source second "$image" second third > "$WORK/out"
is "-e sends two snapshots in one stream" "$(dumped && grep -c '^snapshot ' "$WORK/dump")" 2
expect "a subvolume with its snapshots" 0 - send -R -C "$WORK/folder" "$laptop" @
holds "-R -C makes a file for each subvolume" \
    test -s "$WORK/folder/0001-@snapshots-1-snapshot.btrfs"
holds "also the second of that name" test -s "$WORK/folder/0002-@snapshots-2-snapshot.btrfs"
holds "in the order of their changes" test -s "$WORK/folder/0003-@.btrfs"
cat "$WORK/folder"/* > "$WORK/out"
holds "as a difference from a snapshot" dump_has '^snapshot +\./@ '
expect "files in the folder stay" 2 'exists, and is not replaced' \
    send -R -C "$WORK/folder" "$laptop" @
rm "$WORK/folder"/*
touch "$WORK/folder/0001-@.btrfs.part"
expect "an incomplete file stays" 2 '0001-@.btrfs.part is incomplete, and is not replaced' \
    send -C "$WORK/folder" "$laptop" @
is "and no other is made" "$(ls "$WORK/folder")" 0001-@.btrfs.part
expect "a subvolume with the longest name" 0 - \
    send -R -C "$WORK/long" "$BUILD/fixtures/subvolumes/dev1.img" 5
holds "is after the top-level subvolume" bash -c "test -s '$WORK/long'/*-toplevel.btrfs"
is "is sent to a file with the longest name that .part can follow" \
    "$(cd "$WORK/long" && printf '%s\n' * | awk '{ print length($0) }' | sort -n | tail -n 1)" 250
expect "all into one file" 0 - send -R -f "$WORK/all" "$laptop" @
cp "$WORK/all" "$WORK/out"
holds "-R -f sends snapshots in the same order" dump_has '^snapshot +\./@ '

# Identities.
expect "a writable subvolume" 0 'sent under a new UUID: it is writable' send -v "$laptop" @
expect "a read-only one" 0 - send "$image" first
holds "a read-only subvolume keeps its UUID" \
    dump_has "^subvol .*uuid=$("$PROGRAM" subvolumes -o uuid,subvolume_path \
    "$image" | awk '$2 == "/first" { print $1 }')"
expect "an older generation" 0 'sent under a new UUID' send -v "$laptop" @home@14

# Parents that the receiver may have with other contents.
cp --sparse=always "$BUILD/fixtures/subvolume-kinds/dev1.img" "$WORK/changed.img"
expect "a parent that was received" 0 - \
    send -p received/read-only "$WORK/changed.img" read-only
change "$WORK/changed.img" 1 262 132 - add 363 8 -9
expect "and changed" 2 'UUID of read-only: it was changed after it was received; --force' \
    send -p received/read-only "$WORK/changed.img" read-only
expect "or a clone source" 2 'changed after it was received' \
    send --clone-source received/read-only "$WORK/changed.img" read-only
expect "the user knows better" 0 - \
    send --force -p received/read-only "$WORK/changed.img" read-only
expect "sent itself" 0 'read-only is sent under a new UUID: it was changed' \
    send -v "$WORK/changed.img" received/read-only
expect "a writable parent" 2 'UUID of two: it is writable' \
    send -p folder/deep/two "$WORK/changed.img" read-only

# Damage.
expect "unreadable data" 1 'no good mirror' send "$bad" 5
holds "leave the stream without its end" bash -c "! '$PROGRAM' check '$WORK/out'"
expect "zeros in their place" 1 'no good mirror' send --on-error=zero "$bad" 5
zeros=$(commands)
expect "files left out" 1 'no good mirror' send --on-error=skip "$bad" 5
holds "--on-error=skip removes unreadable files" dump_has '^unlink'
expect "the same, compressed" 1 'no good mirror' send --on-error=skip --compressed-data "$bad" 5
holds "--on-error=skip removes unreadable compressed files" dump_has '^unlink'
[ -n "$zeros" ] && pass || fail "no commands with zeros"

# A damaged name in the parent concerns only its own file.
cp --sparse=always "$image" "$WORK/name.img"
leaf=$("$PROGRAM" dump --tree 257 "$image" |
    awk '/^leaf/ { leaf = $2 } /\(432 INODE_REF 431\)/ { print leaf; exit }')
for place in $("$PROGRAM" map -o offset --raw "$image" "$leaf"); do
    change "$WORK/name.img" at "$place" 256 432 12 431 set 8 2 60000
done
expect "a name of the parent that is cut off" 1 'inode 432: a name is cut off' \
    send -p first --on-error=skip "$WORK/name.img" second
holds "new files are sent after it" dump_has '^mkfile +\./second/o434-10-0$'

# A directory that was made early for its file, and whose own directory is lost.
cp --sparse=always "$image" "$WORK/above.img"
change "$WORK/above.img" 256 431 1 0 delete
expect "a directory above it is lost" 1 'inode 292 .* has no path: it is sent as o292-8-0' \
    send --on-error=skip "$WORK/above.img" first
holds "its file is sent" dump_has 'rename .*dest=./first/o292-8-0/random-1$'
holds "a directory with a file is not removed" dump_lacks '^rmdir +\./first/o292-8-0$'

# Whichever leaf is lost, receivers can apply what is sent without it: a command fails if a name is
# not free, or a directory is missing or not empty.
leaves() {
    "$PROGRAM" dump --tree "$("$PROGRAM" subvolumes -o subvolume_path,subvolume "$1" |
        awk -v p="/$2" '$1 == p { print $2 }')" "$1" | sed -nE 's/^leaf ([0-9]+) items.*/\1/p'
}
mkdir "$WORK/received"
lost=0
for damaged in "$image" "$BUILD/fixtures/differences/dev1.img"; do
    "$PROGRAM" send -q "$damaged" first > "$WORK/received/1"
    for leaf in $({ leaves "$damaged" first; leaves "$damaged" second; } | sort -u |
        sweep "${SWEEP:-1}"); do
        for parent in "" "-p first"; do
            gap=debug/error-gen@chunk-map,kind=tree-block,start=$leaf,end=$((leaf + 1)),action=zero
            "$PROGRAM" send $parent --on-error=skip --insert "$gap" "$damaged" second \
                > "$WORK/received/2" 2> "$WORK/err"
            status=$?
            [ "$status" -le 1 ] || fail "leaf $leaf is lost: status $status"
            lost=$((lost + status))
            expect "leaf $leaf is lost: send ${parent:-all} can be received" 0 - \
                ls -R "$WORK/received"
        done
    done
done
[ "$lost" -ge $((20 / ${SWEEP:-1})) ] || fail "only $lost streams lacked something"

# The same if a name is cut off or gone in the parent. The inode stays under that name, so a new one
# leads nowhere, and the old one is not free. A file may still have other names.
names() { # SUBVOLUME INODE...: with the directories of its names, and their leaves and owners
    "$PROGRAM" dump --tree "$("$PROGRAM" subvolumes -o subvolume_path,subvolume "$damaged" |
        awk -v p="/$1" '$1 == p { print $2 }')" "$damaged" | sed -nE \
        -e '/^leaf [0-9]+ items/ { s/^leaf ([0-9]+) .* owner ([0-9]+)$/\1 \2/; h }' \
        -e '/INODE_REF/ { s/.*\(([0-9]+) INODE_REF ([0-9]+)\).*/\1 \2/; G; s/\n/ /; p }' |
        grep -E "^(${*:2}) "
}
lose_names() { # PARENT SUBVOLUME INODES
    names "$1" "$3" > "$WORK/names"
    holds "$damaged has the names of inodes $3" [ "$(wc -l < "$WORK/names")" -ge 2 ]
    "$PROGRAM" send -q "$damaged" "$1" > "$WORK/received/1"
    while read -r inode directory leaf owner; do
        for damage in "set 8 2 60000" delete; do
            cp --sparse=always "$damaged" "$WORK/name.img"
            for place in $("$PROGRAM" map -o offset --raw "$damaged" "$leaf"); do
                change "$WORK/name.img" at "$place" "$owner" "$inode" 12 "$directory" $damage
            done
            "$PROGRAM" send -p "$1" --on-error=skip "$WORK/name.img" "$2" > "$WORK/received/2" \
                2> /dev/null
            holds "name of inode $inode, $damage: the others are sent" [ -s "$WORK/received/2" ]
            expect "name of inode $inode, $damage: send can be received" 0 - \
                ls -R "$WORK/received"
        done
    done < <(sweep "${SWEEP:-1}" < "$WORK/names")
}
lose_names first second '25[7-9]|26[0-9]|27[0-4]'
lose_names second first 264
damaged=$image
lose_names first second 274
lose_names second first 290

# A file with bad data is removed under the names that it has got: one of its three was not free.
"$PROGRAM" send -q "$image" second > "$WORK/received/1"
cp --sparse=always "$image" "$WORK/name.img"
spoil() { # SUBVOLUME INODE TYPE OFFSET ACTION...: in the leaf of the subvolume that has its names
    local leaf owner place
    read -r _ _ leaf owner < <(names "$1" "$2")
    for place in $("$PROGRAM" map -o offset --raw "$damaged" "$leaf"); do
        change "$WORK/name.img" at "$place" "$owner" "${@:2}"
    done
}
holds "the name in the way is lost" spoil second 276 12 264 set 8 2 60000
holds "so are the data of the file" spoil first 274 108 0 set 20 1 9
expect "a file with bad data and a name that is not free" 1 'inode 276: a name is cut off' \
    send -p second --on-error=skip "$WORK/name.img" first
mv "$WORK/out" "$WORK/received/2"
expect "it is sent so that it can be received" 0 - walk "$WORK/received" /first
holds "without the file" bash -c "! grep -E '^/first/(gone|later)/link' '$WORK/out'"
holds "the other one has kept its name" out_has '^/first/swap/1'

# A link count that is too high, in the parent, in the sent subvolume or in both, changes nothing,
# also without --on-error.
damaged=$image
"$PROGRAM" send -q "$image" first > "$WORK/received/1"
"$PROGRAM" send -q -p first "$image" second > "$WORK/received/2"
"$PROGRAM" walk -o path,size,mode,mtime "$WORK/received" > "$WORK/want"
"$PROGRAM" sum "$WORK/received" >> "$WORK/want"
for inode in 264 274 276 290; do
    for subvolumes in first second "first second"; do
        cp --sparse=always "$image" "$WORK/name.img"
        found=0
        for subvolume in $subvolumes; do
            spoil "$subvolume" "$inode" 1 0 set 40 4 70000 && found=1
        done
        [ "$found" = 1 ] || continue
        expect "links of inode $inode in $subvolumes: all is sent" 1 \
            "inode $inode of subvolume [0-9]* has fewer names than links: it is sent with these" \
            send -p first "$WORK/name.img" second
        mv "$WORK/out" "$WORK/received/2"
        "$PROGRAM" walk -o path,size,mode,mtime "$WORK/received" > "$WORK/have"
        "$PROGRAM" sum "$WORK/received" >> "$WORK/have"
        holds "links of inode $inode in $subvolumes: what is received is the same" \
            cmp "$WORK/want" "$WORK/have"
        [ "$subvolumes" = second ] || continue
        expect "links of inode $inode: all is sent without a parent" 1 \
            "inode $inode of subvolume [0-9]* has fewer names than links: it is sent with these" \
            send "$WORK/name.img" second
        "$PROGRAM" send -q "$image" second | cmp - "$WORK/out" || fail "links of inode $inode"
    done
done

# A name that neither inode knows any more, while both directories have it, stays.
damaged=$BUILD/fixtures/differences/dev1.img
"$PROGRAM" send -q "$damaged" second > "$WORK/received/1"
for lost in '' 'second third'; do
    cp --sparse=always "$damaged" "$WORK/name.img"
    holds "the mode of the file differs" spoil third 264 1 0 set 52 4 33152
    for subvolume in $lost; do
        holds "the file of $subvolume loses a name" spoil "$subvolume" 264 12 258 delete
    done
    "$PROGRAM" send -p second "$WORK/name.img" third > "$WORK/received/2" 2> "$WORK/err"
    is "status if a name is lost in '$lost'" $? "$((${#lost} > 0))"
    "$PROGRAM" walk -o path,size,mode,mtime "$WORK/received" /third > "$WORK/have${lost:+.lost}"
done
holds "the mode is sent" grep -q '/small.*100600' "$WORK/have"
holds "the name that both have lost stays, and the mode is sent" \
    cmp "$WORK/have" "$WORK/have.lost"

# A directory whose number has gone to another one, with an entry of the same name, which stays in
# the old one because its name is lost.
damaged=$BUILD/fixtures/differences/dev1.img
"$PROGRAM" send -q "$damaged" first > "$WORK/received/1"
cp --sparse=always "$damaged" "$WORK/name.img"
holds "the number is used again" spoil second 257 1 0 set 0 8 9
holds "the name of an entry is lost" spoil first 258 12 257 set 8 2 60000
expect "a directory whose number has gone to another one" 1 'inode 258: a name is cut off' \
    send -p first --on-error=skip "$WORK/name.img" second
holds "the new one is made" dump_has '^mkdir +\./second/o257-9-0$'
mv "$WORK/out" "$WORK/received/2"
expect "nothing is linked where the entry is not" 0 - ls -R "$WORK/received"

# Usage.
expect "no subvolume given" 2 'no subvolume given' send "$image"
expect "a subvolume that does not exist" 2 'no subvolume' send "$image" missing
expect "a parent that does not exist" 2 'no subvolume' send -p missing "$image" first
expect "its own parent" 2 'its own parent' send -p first "$image" first
expect "a protocol that does not exist" 2 'proto' send --proto 9 "$image" first
expect "compressed data in protocol 1" 2 "protocol 2" \
    send --proto 1 --compressed-data "$image" first
expect "a folder and a file" 2 'excludes' send -C "$WORK/x" -f "$WORK/y" "$image" first
expect "a parent for many" 2 'omit -p' send -R -p first "$image" second
expect "based on what may be left out" 2 'use zero' send -R --on-error=skip "$image" second
if have_terminal; then
    script -qec "'$PROGRAM' send '$image' first" /dev/null > "$WORK/out" 2>&1 < /dev/null
    holds "no stream on a terminal" out_has \
        'refusing to write a stream to a terminal; redirect stdout, or use -f FILE'
else
    skip script "a terminal"
fi
finish
