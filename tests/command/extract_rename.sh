#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# extract --rename: names that Windows refuses. As root also on NTFS, exFAT and FAT, where ntfs-3g,
# exfat-fuse and fusefat are installed.
set -uo pipefail
. "$(dirname "$0")/common.bash"
cd "$WORK" || exit 1

# Each file contains its own path, in the escapes of the stream.
names=(README readme Readme.txt README.txt con 'NUL.txt' 'aux\x20.c' end. 'end\x20' x... 'tab\tx'
    'M\xfcller' 'm\xc3\x9c' 'M\xc3\xbc' 'a|b\x22<>*?' 'back\x5cslash' com1 COM10 'lpt\xc2\xb9.x'
    normal readme_2)
{
    echo 'subvol PATH=v UUID=00112233445566778899aabbccddeeff CTRANSID=7'
    echo 'chmod PATH= MODE=0o755'
    for folder in . a:b a:b/sub? A:B a_b; do
        [ "$folder" = . ] || printf '%s\n' "mkdir PATH=$folder" "chmod PATH=$folder MODE=0o750"
        for name in "${names[@]}"; do
            path=${folder#.}/$name
            path=${path#/}
            printf '%s\n' "mkfile PATH=$path" "write PATH=$path FILE_OFFSET=0 DATA=$path"
        done
    done
    printf '%s\n' 'chown PATH=a:b/normal UID=1 GID=1' 'mkfifo PATH=fifo MODE=0 RDEV=0'
    printf '%s\n' 'link PATH=first:link PATH_LINK=a:b/con' \
        'link PATH=FIRST:link PATH_LINK=a:b/con' 'symlink PATH=sym:link PATH_LINK=a:b/con' end
} | python3 "$ROOT/tests/support/make_stream.py" > image || exit 1

expect "names are changed" 0 '/v/a:b: written as v/a_b$' extract --rename -C got image
holds "each is listed once" [ "$(grep -c '/v/a:b: written' err)" = 1 ]
holds "the list says how many" grep -qE '^btrfs-walk: [0-9]+ names were changed:$' err
find got/v -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort > have
LC_ALL=C sort > want << 'END'
A_B_2
COM10
FIRST_link_2
M_ller
Mü_2
NUL_.txt
README
README_2.txt
Readme.txt
a_b
a_b_3
a_b_____
aux_ .c
back_slash
com1_
con_
end_
end__2
fifo
first_link
lpt¹_.x
mÜ
normal
readme_2
readme_2_2
sym_link
tab_x
x.._
END
is "names that Windows accepts" "$(diff want have)" ""
is "hard links" "$(stat -c '%h %i' got/v/first_link)" "$(stat -c '%h %i' got/v/a_b/con_)"
is "the target of a symbolic link" "$(readlink got/v/sym_link)" a:b/con
is "attributes of renamed directories" "$(stat -c %a got/v/A_B_2 got/v/a_b/sub_ | uniq)" 750
find got -mindepth 1 -printf '%P\n' > paths
is "no name is refused" "$(grep -P '[\x01-\x1f":<>?*|\\]|[. ](/|$)' paths)" ""
is "no name occurs twice" "$(tr '[:upper:]' '[:lower:]' < paths | sort | uniq -d)" ""

# The list as JSON, from which each file can be found again.
expect "a list" 0 - extract --renamed list --manifest manifest -C listed image
holds "the same files" diff -r -x fifo --no-dereference got listed
python3 - list listed << 'END' > found
import base64, json, os, sys
names = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    path = base64.b64decode(row["path_bytes"]) if "path_bytes" in row else row["path"].encode()
    assert set(row) <= {"path", "path_bytes", "name"}, row
    names[row["name"]] = path
root = sys.argv[2]
for folder, _, files in os.walk(root):
    for file in files:
        name = os.path.relpath(os.path.join(folder, file), root)
        if not os.path.isfile(os.path.join(folder, file)) or "_link" in name.lower():
            continue
        whole = b"/" + name.encode() if name not in names else names[name]
        above = os.path.dirname(name)
        if above in names:
            whole = names[above] + b"/" + os.path.basename(whole)
        content = open(os.path.join(folder, file), "rb").read()
        if whole != b"/v/" + content:
            print(whole, content)
END
is "each file has its contents and its path in the list" "$(cat found)" ""
holds "the manifest has both names" \
    grep -q '"path":"/v/a:b/NUL.txt","name":"v/a_b/NUL_.txt"' manifest

# An extraction that is continued gives the same names.
rm got/v/a_b/readme_2 got/v/A_B_2/README_2.txt
expect "continued" 0 'names were changed' extract --rename --skip-existing -C got image
holds "with the same names" diff -r -x fifo --no-dereference got listed

# Only some files, so that the directories around them are made for them.
expect "parts" 0 'A:B: written as v/A_B$' extract --rename -C some --name NUL.txt image /v/A:B
is "directories around parts" "$(find some | sort | paste -sd' ')" \
    "some some/v some/v/A_B some/v/A_B/NUL_.txt"
is "their attributes" "$(stat -c %a some/v/A_B)" 750
expect "without the option" 0 - extract -C plain image
is "names stay" "$(find plain -name 'a:b' | wc -l)" 1
expect "a message in quiet runs" 0 - extract -q --rename -C quiet image

# Many names that become the same.
{
    echo 'subvol PATH=v UUID=00112233445566778899aabbccddeeff CTRANSID=7'
    for i in {128..254}; do printf 'mkfile PATH=\\x%02x\n' "$i"; done
    echo end
} | python3 "$ROOT/tests/support/make_stream.py" > many
expect "names with hashes" 0 'and 27 more; --renamed FILE lists all' \
    extract --rename -C many.out many
is "all files" "$(find many.out -type f | wc -l)" 127

# Real file systems.
mkdir MNT
mounted() { # DESCRIPTION IMAGE: the folder MNT is mounted
    "$PROGRAM" extract -q --renamed "$2.list" -C MNT/x image 2> err
    is "$1: only the symbolic link and the pipe may be missing" \
        "$(grep -v -e sym_link -e 'fifo: cannot make the special file: Operation not' err)" ""
    is "$1: all files" "$(cd MNT/x && find . -type f -o -type d | sort)" \
        "$(cd got && find . -type f -o -type d | sort)"
    holds "$1: the same list" cmp list "$2.list"
    umount MNT
}
if [ "$(id -u)" = 0 ] && have mkntfs ntfs-3g && truncate -s 32M ntfs && mkntfs -qFf ntfs 2> err &&
    ntfs-3g -o windows_names ntfs MNT 2> err; then
    mounted "NTFS" ntfs
else
    skip "root, ntfs-3g" "extraction to NTFS"
fi
if [ "$(id -u)" = 0 ] && have mkfs.exfat mount.exfat-fuse losetup && truncate -s 64M exfat &&
    mkfs.exfat exfat > err && device=$(losetup -f --show exfat); then
    if mount.exfat-fuse "$device" MNT > err 2>&1; then
        # It stores holes, and no attributes: other files do not suffer.
        printf '%s\n' 'subvol PATH=h UUID=00112233445566778899aabbccddeeff CTRANSID=7' \
            'mkfile PATH=a' 'truncate PATH=a SIZE=1099511627776' \
            'mkfile PATH=b' 'write PATH=b FILE_OFFSET=1099511627776 DATA=b' \
            'mkfile PATH=c' 'set_xattr PATH=c XATTR_NAME=user.x XATTR_DATA=x' \
            'set_xattr PATH=c XATTR_NAME=user.y XATTR_DATA=x' end |
            python3 "$ROOT/tests/support/make_stream.py" > holes
        expect "exFAT: holes" 1 'some attributes: 1 file lost them$' extract -C MNT holes
        is "exFAT: only they do not fit" "$(grep 'large\|cannot' err | sed 's/^btrfs-walk: //')" \
            "the target cannot store some attributes: 1 file lost them
/h/a: cannot set its size: File too large
/h/b: cannot write: File too large"
        is "exFAT: the file that fits" "$(ls MNT/h)" c
        mounted "exFAT" exfat
    else
        skip "root, exfat-fuse" "extraction to exFAT"
    fi
    losetup -d "$device"
else
    skip "root, exfat-fuse" "extraction to exFAT"
fi
# fusefat has neither owners nor permissions, no time before 1980, and only names of ASCII.
if have mkfs.vfat fusefat && truncate -s 64M fat && mkfs.vfat -F 32 fat > err &&
    fusefat -o rw+ fat MNT > err 2>&1; then
    expect "FAT" 1 '^btrfs-walk: note: the target stores no owners and permissions: 113 files' \
        extract --renamed fat.list -C MNT/x image
    is "FAT: other errors" \
        "$(grep -vE 'written as|cannot restore its times|sym_link|and [0-9]+ more|note:|:$' err |
        grep -v fifo: | grep -v '[^ -~]')" ""
    is "FAT: all files" "$(cd MNT/x && find . -type f | sort)" \
        "$(cd got && find . -type f | LC_ALL=C grep -v '[^ -~]' | sort)"
    holds "FAT: the same list" cmp list fat.list
    expect "FAT: --preserve wants them" 1 'cannot restore its permissions' \
        extract -q --preserve --rename -C MNT/y --name normal image /v
    umount MNT
else
    skip "fusefat" "extraction to FAT"
fi

finish
