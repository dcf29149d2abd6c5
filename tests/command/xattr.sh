#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# xattr: names and values as lines that setfattr accepts, and as JSON.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
out_is() { diff "$WORK/out" - <<< "$1"; }

expect "a file with attributes" 0 - xattr "$plain" /data/inline
holds "its path without the first slash" [ "$(head -n 1 "$WORK/out")" = '# file: data/inline' ]
holds "a text is printed in quotes" out_has '^user\.other="o"$'
holds "a long value is printed" out_has '^user\.note="n{1000,}"$'
holds "an empty line at the end" [ "$(tail -n 1 "$WORK/out")" = '' ]
expect "a file without" 0 - xattr "$plain" /top-file
holds "a file without attributes prints nothing" [ ! -s "$WORK/out" ]
expect "what is not there" 1 'btrfs-walk: .*: /none: no such file or directory' xattr "$plain" \
    /none /data/inline
holds "the path that exists is printed" out_has '^user\.other="o"$'
expect "no path" 2 'no path given' xattr "$plain"
expect "xattr as JSON" 0 - xattr --json "$plain" /data/inline
holds "--json prints an object for each attribute" [ "$(grep -c '^{.*}$' "$WORK/out")" -eq 2 ]
holds "JSON has path, inode, name and value" out_has \
    '^\{"path":"/data/inline","subvolume":5,"inode":[0-9]+,"xattr":"user.other","value":"o"\}$'
expect "several, sorted" 0 - xattr -n user.other "$plain" /data/inline
holds "-n prints one attribute" [ "$(grep -c = "$WORK/out")" -eq 1 ]
expect "a pattern" 2 'option -m was removed: use -n NAME' xattr -m '^user.n' "$plain" /data/inline
expect "all below a directory" 0 - xattr -R "$plain" /
"$PROGRAM" -0 --type f,d,l,c,b,p,s "$plain" | "$PROGRAM" xattr --from0 -T - "$plain" > "$WORK/want"
holds "are those of each path" cmp "$WORK/out" "$WORK/want"
expect "xattr -R with a filter" 0 - xattr -R --name inline --absolute-names "$plain" /data
holds "--absolute-names prints the whole path" \
    [ "$(grep '^# file' "$WORK/out")" = '# file: /data/inline' ]
expect "an encoding" 2 'option --encoding was removed: .*value_bytes' xattr --encoding hex \
    "$plain" /
"$PROGRAM" xattr -R "$plain" / > /dev/full 2> "$WORK/err"
is "a full disk is an error" "$? $(grep -c 'cannot write' "$WORK/err")" "1 1"
expect "xattr --help" 0 - xattr --help
holds "--help prints the usage" out_has '^Usage: btrfs-walk xattr \[OPTIONS\] IMAGE PATH\.\.\.$'

# have PROGRAM...: all of them are installed.
have() { for program; do command -v "$program" > /dev/null || return; done; }

# Comparison with the kernel, where possible: text, bytes, empty values, odd names, access control
# lists.
if [ "$(id -u)" -eq 0 ] && have mkfs.btrfs python3 setfattr && truncate -s 120M "$WORK/image" &&
    mkfs.btrfs -q "$WORK/image" > /dev/null 2>&1 && mkdir "$WORK/mount" &&
    mount -o loop "$WORK/image" "$WORK/mount" 2> /dev/null; then
    python3 - "$WORK/mount" << 'END'
import os, sys, struct
os.chdir(sys.argv[1])
open("file", "w").close()
values = {"user.text": b'a "quoted" \\ text\n', "user.bytes": bytes(range(256)), "user.empty": b"",
          "user.nul": b"a\0", "user.with=sign": b"1", "user.\u00fc": "\u00fc".encode(),
          "trusted.t": b"t"}
for name, value in values.items():
    os.setxattr("file", name, value)
entries = [(1, 6, -1), (2, 4, 1000), (4, 4, -1), (8, 7, 50), (16, 7, -1), (32, 0, -1)]
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
os.setxattr("file", "system.posix_acl_access", acl)
END
    umount "$WORK/mount"
    expect "attributes of all kinds" 0 - xattr "$WORK/image" /file
    holds "bytes are printed in hexadecimal" out_has '^user\.bytes=0x000102.*fdfeff$'
    holds "quotes, backslashes, ends of lines" out_has \
        '^user\.text="a \\"quoted\\" \\\\ text\\012"$'
    holds "an empty value is printed" out_has '^user\.empty=""$'
    holds "a special character in a name is escaped" out_has '^user\.with\\075sign="1"$'
    holds "an access control list is printed" out_has '^system\.posix_acl_access=0x02000000'
    cp "$WORK/out" "$WORK/dump"
    if have_terminal; then
        script -qec "$PROGRAM xattr $WORK/image /file" /dev/null < /dev/null | tr -d '\r' \
            > "$WORK/terminal"
        is "in words on a terminal" "$(grep '^# [ugmo].*:' "$WORK/terminal" | tr '\n' ' ')" \
            '# user::rw- # user:1000:r-- # group::r-- # group:50:rwx # mask::rwx # other::--- '
    else
        skip "a terminal" "comments"
    fi
    cp "$WORK/image" "$WORK/copy"
    mount -o loop "$WORK/image" "$WORK/mount"
    python3 -c 'import os, sys
for name in os.listxattr(sys.argv[1]): os.removexattr(sys.argv[1], name)' "$WORK/mount/file"
    (cd "$WORK/mount" && setfattr --restore "$WORK/dump")
    status=$?
    umount "$WORK/mount"
    holds "setfattr accepts the output" [ "$status" -eq 0 ]
    run_json xattr --json "$WORK/copy" /file | sort > "$WORK/before"
    run_json xattr --json "$WORK/image" /file | sort > "$WORK/after"
    holds "and all is as before" cmp "$WORK/before" "$WORK/after"
    expect "ls -l of a file with attributes" 0 - ls -l "$WORK/image"
    holds "ls -l marks the file with an access control list" out_has '^-rw-rwx---\+ 1 '

    # Capabilities and access control lists, in the words of getcap and getfacl; and files that
    # were changed after a generation.
    if have getcap setcap getfacl setfacl; then
        mount -o loop "$WORK/image" "$WORK/mount"
        (
            cd "$WORK/mount" && rm file && mkdir deep && touch none one two three four five list &&
                cp one deep/six && setcap cap_net_raw=ep one &&
                setcap cap_net_raw,cap_net_admin+ei two &&
                setcap 'cap_chown=p cap_net_raw+i' three && setcap all=ep four &&
                setcap -n 1000 cap_sys_admin=ep five &&
                setcap 'cap_setuid=eip cap_kill+ep' deep/six && setfacl -m u:1000:r,g:50:rx list &&
                getcap -n -r . | sed 's|^\.||; s| |\t|' | sort > "$WORK/caps" &&
                getfacl -cn list > "$WORK/list" && sync && echo changed > none && sync
        )
        umount "$WORK/mount"
        expect "capabilities" 0 - xattr -R -n security.capability -o path,capabilities \
            "$WORK/image" /
        is "xattr prints the capabilities that getcap prints" \
            "$(sort "$WORK/out")" "$(cat "$WORK/caps")"
        expect "files with capabilities" 0 - walk --xattr security.capability "$WORK/image"
        is "--xattr selects the files that getcap lists" \
            "$(sort "$WORK/out")" "$(cut -f 1 "$WORK/caps")"
        expect "a list" 0 - xattr --json -o acl "$WORK/image" /list
        is "xattr --json prints the list that getfacl prints" "$(python3 -c 'import json, sys
print(json.load(sys.stdin)["acl"])' < "$WORK/out")" "$(sed '/^$/d' "$WORK/list")"
        expect "capabilities as a column" 0 - walk --xattr security.capability \
            -o path,capabilities "$WORK/image"
        is "the column of walk has what getcap prints" \
            "$(sort "$WORK/out")" "$(cat "$WORK/caps")"
        expect "a list as a column" 0 - walk --name list --json -o acl "$WORK/image"
        line=$(sed '/^$/d' "$WORK/list" | paste -sd,)
        is "the column has the list in one line" "$(cat "$WORK/out")" "{\"acl\":\"$line\"}"
        expect "columns of ls" 0 - ls --json -o path,acl,capabilities "$WORK/image" /list /one
        is "those of ls are the same" "$(paste -sd' ' "$WORK/out")" \
            "{\"path\":\"/list\",\"acl\":\"$line\"} \
{\"path\":\"/one\",\"capabilities\":\"cap_net_raw=ep\"}"
        expect "stat of both" 0 - stat "$WORK/image" /list /one
        holds "stat prints the list" grep -qxF "Access list: $line" "$WORK/out"
        holds "stat prints capabilities" grep -qxF 'Capabilities: cap_net_raw=ep' "$WORK/out"
        expect "files with lists" 0 - walk --xattr 'system.posix_acl_*' "$WORK/image"
        holds "--xattr selects the file with a list" out_is /list
        before=$("$PROGRAM" -o transid --name one "$WORK/image")
        expect "changed files" 0 - walk --newer-generation "$before" "$WORK/image"
        holds "--newer-generation selects the file that was changed" out_is /none
    else
        skip "getcap and getfacl" "a comparison with them"
    fi
else
    skip "root, mkfs.btrfs and setfattr" "a comparison with the kernel"
fi
finish
