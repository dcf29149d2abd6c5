#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tar command: archives as GNU tar reads them.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
compressed=$BUILD/fixtures/compressed/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img

# The hashes of the files in the image, with names relative to a folder.
sums() { "$PROGRAM" sum -0 "$1" | sed -zE 's|^([0-9a-f]+  )/|\1|' | LC_ALL=C sort -z; }
hashes() { (cd "$1" && find . -type f -printf '%P\0' | xargs -0r sha256sum -z | LC_ALL=C sort -z); }

for image in "$plain" "$compressed" "$subvolumes"; do
    name=$(basename "$(dirname "$image")")
    holds "$name: an archive is written" "$PROGRAM" tar -q -f "$WORK/archive" "$image"
    is "$name: stdout is the same" "$("$PROGRAM" tar -q "$image" | md5sum)" \
        "$(md5sum < "$WORK/archive")"
    is "$name: one thread or three" "$("$PROGRAM" tar -q -j 1 "$image" | md5sum)" \
        "$("$PROGRAM" tar -q -j 3 "$image" | md5sum)"
    holds "$name: GNU tar lists the archive" tar -tvf "$WORK/archive"
    # Some directories come twice: first, and with their times when all is in them.
    tar --quoting-style=c -tf "$WORK/archive" 2> /dev/null | sort > "$WORK/names"
    is "$name: only directories come again" "$(uniq -d "$WORK/names" | grep -vc '/"$')" 0
    holds "$name: not all directories come twice" [ "$(uniq -d "$WORK/names" | wc -l)" -lt \
        "$(uniq "$WORK/names" | grep -c '/"$')" ]
    is "$name: the archive has all names" "$(uniq "$WORK/names" | wc -l)" \
        "$("$PROGRAM" -0 --type f,d,l,c,b,p "$image" | tr -dc '\0' | wc -c)"
    rm -rf "$WORK/out"
    mkdir "$WORK/out"
    # Only root can create device nodes; all other files must be extracted.
    tar -C "$WORK/out" -xf "$WORK/archive" 2> "$WORK/err"
    sums "$image" > "$WORK/want"
    hashes "$WORK/out" > "$WORK/have"
    holds "$name: contents as tar extracts them" cmp "$WORK/want" "$WORK/have"
    # Both extractions must be equal, in everything that ls shows.
    rm -rf "$WORK/other"
    "$PROGRAM" extract -q -C "$WORK/other" "$image" > /dev/null 2>&1
    list() {
        (cd "$1" && find . -mindepth 1 \( -type f -o -type l -o -type d \) -printf \
                '%P %y %s %T@ %n %l\0' | sed -zE 's/^(.* d) [0-9]+ /\1 /' | LC_ALL=C sort -z)
    }
    list "$WORK/out" > "$WORK/want"
    list "$WORK/other" > "$WORK/have"
    holds "$name: as extract does it" cmp "$WORK/want" "$WORK/have"
done

rm -rf "$WORK/out"
expect "cpio" 2 'format=cpio was removed: run .cpio' tar --format cpio "$plain"

"$PROGRAM" tar --format mtree "$compressed" > "$WORK/mtree"
is "--format mtree begins with #mtree" "$(head -n 1 "$WORK/mtree")" "#mtree"
is "with the hashes of sum" \
    "$(grep -o 'sha256digest=[0-9a-f]*' "$WORK/mtree" | cut -d = -f 2 | sort | md5sum)" \
    "$("$PROGRAM" sum "$compressed" | sed 's/^\\//' | cut -d ' ' -f 1 | sort | md5sum)"

is "tar of a folder has only files in it" \
    "$("$PROGRAM" tar "$compressed" /zstd | tar -t | grep -vc '^zstd/')" 0
is "--type d archives only directories" \
    "$("$PROGRAM" tar --type d "$compressed" | tar -t | grep -vc '/$')" 0

# A directory comes before what is in it, in every format.
for format in pax mtree; do
    "$PROGRAM" tar -q --format $format "$subvolumes" > "$WORK/archive"
    case $format in
    pax) tar -tf "$WORK/archive" ;;
    mtree) sed 1d "$WORK/archive" | cut -d ' ' -f 1 ;;
    esac | sed -E 's|^\./(.)|\1|; s|/$||' > "$WORK/names"
    is "$format: what comes before its directory" "$(awk '{ parent = $0
        if (!sub("/[^/]*$", "", parent)) parent = "."
        if ($0 != "." && !(parent in seen)) print; seen[$0] }' "$WORK/names")" ""
done
is "a manifest has its top" "$(sed -n '2s/ type=dir .*//p' "$WORK/archive")" .
holds "check --manifest accepts the manifest" \
    "$PROGRAM" check -q --manifest "$WORK/archive" "$subvolumes"

# Names. What tar removes from them, and extract, too.
names() { (cd "$1" && find . -printf '%P %y %s %n %l\0' | sort -z | md5sum); }
fill() { # FOLDER TAR-OPTIONS ARCHIVE-OPTIONS...
    local folder=$1 how=$2
    shift 2
    rm -rf "$folder" && mkdir "$folder" && "$PROGRAM" tar -q "$@" | tar -C "$folder" -x $how \
        2> "$WORK/err"
}
fill "$WORK/tar" --strip-components=1 --type f,d,l "$plain" /docs /source
fill "$WORK/ours" "" --type f,d,l --strip-components 1 "$plain" /docs /source
is "tar --strip-components removes what GNU tar removes" \
    "$(names "$WORK/ours")" "$(names "$WORK/tar")"
rm -rf "$WORK/ours"
"$PROGRAM" extract -q --type f,d,l --strip-components 1 -C "$WORK/ours" "$plain" \
    /docs /source
is "extract --strip-components removes what GNU tar removes" \
    "$(names "$WORK/ours")" "$(names "$WORK/tar")"
fill "$WORK/tar" --strip-components=2 --type f,d,l "$subvolumes" home/docs
for options in "--relative" "--strip-components 2" "--relative --strip-components 0"; do
    fill "$WORK/ours" "" --type f,d,l $options "$subvolumes" home/docs
    is "tar $options removes what GNU tar removes" "$(names "$WORK/ours")" "$(names "$WORK/tar")"
    rm -rf "$WORK/ours"
    "$PROGRAM" extract -q --type f,d,l $options -C "$WORK/ours" "$subvolumes" home/docs
    is "extract $options removes what GNU tar removes" \
        "$(names "$WORK/ours")" "$(names "$WORK/tar")"
done
is "--relative --subvol archives the name alone" \
    "$("$PROGRAM" tar --relative --subvol home "$subvolumes" top-file |
    tar -t)" "top-file"
is "--subvol archives paths from the subvolume on" \
    "$("$PROGRAM" tar --subvol home "$subvolumes" /docs/letters/02.txt |
    tar -t)" "docs/letters/02.txt"

# Other readers: the same contents under the same names.
"$PROGRAM" sum --subvol home "$subvolumes" | sed 's,  /,  ./,' | LC_ALL=C sort > "$WORK/home.sums"
"$PROGRAM" tar --subvol home "$subvolumes" > "$WORK/home.tar"
# holds_home READER FOLDER: whether the reader has extracted all files there.
holds_home() {
    is "an archive as $1 reads it" "$(cd "$2" && find . -type f -exec sha256sum {} + |
        LC_ALL=C sort)" "$(cat "$WORK/home.sums")"
}
if have sqfstar unsquashfs; then
    holds "sqfstar reads the archive" \
        eval 'sqfstar -no-progress "$WORK/home.sqfs" < "$WORK/home.tar"'
    unsquashfs -n -q -d "$WORK/sqfstar" "$WORK/home.sqfs" > /dev/null 2>&1
    holds_home sqfstar "$WORK/sqfstar"
else
    skip sqfstar "archives for squashfs"
fi
for reader in tar bsdtar; do
    have $reader || { skip "$reader" "how it reads archives"; continue; }
    mkdir "$WORK/$reader-home"
    holds "$reader extracts the archive" $reader -xf "$WORK/home.tar" -C "$WORK/$reader-home"
    holds_home $reader "$WORK/$reader-home"
done
# --sort=name: each directory once, with its own mode, and everything in it after it. Programs for
# squashfs accept no directory twice.
"$PROGRAM" tar --sort=name "$subvolumes" > "$WORK/sorted.tar"
tar -tf "$WORK/sorted.tar" > "$WORK/sorted"
is "--sort=name archives each name once" "$(sort "$WORK/sorted" | uniq -d)" ""
is "--sort=name archives all names" \
    "$(sort "$WORK/sorted")" "$("$PROGRAM" tar "$subvolumes" | tar -t | sort -u)"
holds "in the order of names" cmp "$WORK/sorted" <(tr '/' '\1' < "$WORK/sorted" |
    sed "s/^[.]$(printf '\1')/$(printf '\1')/" | LC_ALL=C sort | tr '\1' '/' | sed 's,^/,./,')
holds "--sort=name archives the same files" diff \
    <(tar -tvf "$WORK/sorted.tar" | sort) <("$PROGRAM" tar "$subvolumes" | tar -tv | sort -u)
if have tar2sqfs unsquashfs; then
    "$PROGRAM" tar --sort=name --subvol home "$subvolumes" > "$WORK/home.tar"
    holds "tar2sqfs reads the archive" \
        eval 'tar2sqfs -q -f "$WORK/ng.sqfs" < "$WORK/home.tar" 2> "$WORK/err"'
    unsquashfs -n -q -d "$WORK/tar2sqfs" "$WORK/ng.sqfs" > /dev/null 2>&1
    holds_home tar2sqfs "$WORK/tar2sqfs"
else
    skip tar2sqfs "sorted archives for squashfs"
fi

differ() { ! cmp -s "$1" "$2"; }
# Archives of the same files are the same: threads and reading on a mount make no difference.
for options in "" "--sort=name" "--format=mtree"; do
    # shellcheck disable=SC2086 # none or one word
    for threads in 1 3 8; do
        "$PROGRAM" tar -j $threads $options "$subvolumes" | sha256sum
    done > "$WORK/sums"
    is "with any number of threads, ${options:-unsorted}" "$(uniq "$WORK/sums" | wc -l)" 1
done
cp --sparse=always "$plain" "$WORK/read.img"
if have python3; then
    holds "a file that was read" change "$WORK/read.img" 5 256 1 0 add 112 8 1000
    holds "the directory has another access time" \
        differ <("$PROGRAM" ls -ld --time=atime "$plain" /) \
        <("$PROGRAM" ls -ld --time=atime "$WORK/read.img" /)
    holds "another access time does not change the archive" \
        cmp <("$PROGRAM" tar "$plain") <("$PROGRAM" tar "$WORK/read.img")
    holds "--atime archives the access time" \
        differ <("$PROGRAM" tar --atime "$plain") <("$PROGRAM" tar --atime "$WORK/read.img")
fi

# Owners and times as in GNU tar.
listed() { "$PROGRAM" tar "$@" "$plain" | tar -tv --full-time --utc | head -n 1 | tr -s ' '; }
is "an owner, a group, a time" "$(listed --owner=joe:1234 --group=+5 --mtime=@86400)" \
    "drwxr-xr-x joe/5 0 1970-01-02 00:00:00 ./"
is "--owner and --group set the numbers" "$("$PROGRAM" tar --owner=joe:1234 --group=:5 "$plain" |
    tar -tv --numeric-owner | tr -s ' ' | cut -d ' ' -f 2 | sort -u)" "1234/5"
is "--mtime accepts a date with a time zone" \
    "$(listed --owner=root --group=root --mtime='2026-11-21 07:30+01:00')" \
    "drwxr-xr-x root/root 0 2026-11-21 06:30:00 ./"
touch -d @1000000000 "$WORK/then"
is "the time of a file" "$(listed --owner=0 --group=0 --mtime="$WORK/then")" \
    "drwxr-xr-x 0/0 0 2001-09-09 01:46:40 ./"
long=$(printf 'n%.0s' {1..40})
is "--owner accepts a long name" "$(listed --owner="$long:1" --group=0 --mtime=@0)" \
    "drwxr-xr-x $long/0 0 1970-01-01 00:00:00 ./"
is "--mtime leaves out the other times" \
    "$("$PROGRAM" tar --mtime=@0 "$plain" | grep -ac '[0-9] [acm]time=')" 0
rm -rf "$WORK/out"
for option in --owner=no:body --owner=nobody-of-this-name --group=: --mtime=yesterday \
    --mtime=/none --sort=size; do
    expect "$option" 2 "${option%%=*}" tar "$option" "$plain"
done
rm -rf "$WORK/ours"
"$PROGRAM" extract -q --relative --name 02.txt --no-snapshots -C "$WORK/ours" "$subvolumes" home
is "extract makes the directories on the way to a file" \
    "$(cd "$WORK/ours" && find . -type f)" "./docs/letters/02.txt"
"$PROGRAM" tar --strip-components -1 "$plain" > "$WORK/out.txt" 2> "$WORK/err"
is "status of a number that is none" $? 2

# What lies in another PATH comes with it, and once.
top=$("$PROGRAM" --type d --maxdepth 1 "$subvolumes" | LC_ALL=C sort | sed -n 2p)
deep=$("$PROGRAM" "$subvolumes" | grep "^$top/" | tail -n 1)
"$PROGRAM" tar -q "$subvolumes" "$top" | md5sum > "$WORK/want"
"$PROGRAM" tar -q "$subvolumes" "$deep" "$top/" "/.$top/../$top//" "$deep" | md5sum > "$WORK/have"
holds "overlapping paths archive each file once" cmp "$WORK/want" "$WORK/have"
for command in "sum" "bodyfile"; do
    is "$command: each file comes once" \
        "$("$PROGRAM" "$command" "$subvolumes" "$top" "$deep" "$top" 2> /dev/null | sort |
        uniq -d)" ""
done
rm -rf "$WORK/out"
"$PROGRAM" extract -q -C "$WORK/out" "$subvolumes" "$top" "$deep" "$top" > "$WORK/err" 2>&1
is "overlapping paths extract each file once" "$(grep -c 'exists' "$WORK/err")" 0
"$PROGRAM" tar -q "$subvolumes" "" > /dev/null 2> "$WORK/err"
is "status of an empty PATH" $? 1
holds "an empty path is reported" grep -q 'no such file' "$WORK/err"

# Against the mount: holes that no archive could hold, times that no 64 bits of nanoseconds can, and
# sockets.
if [ "$(id -u)" -eq 0 ] && have mkfs.btrfs python3; then
    mkdir "$WORK/mount"
    truncate -s 256M "$WORK/image"
    mkfs.btrfs -q "$WORK/image" > "$WORK/err" 2>&1
fi
if [ -e "$WORK/image" ] && mount -o loop "$WORK/image" "$WORK/mount" 2> /dev/null; then
    (
        cd "$WORK/mount" || exit 1
        python3 -c '
import os, socket
socket.socket(socket.AF_UNIX).bind("socket")
file = os.open("hole", os.O_RDWR | os.O_CREAT)
for place in 0, 1 << 40, 1 << 60:
    os.pwrite(file, b"data", place)
os.ftruncate(file, (1 << 63) - 65536)
os.ftruncate(os.open("nothing", os.O_RDWR | os.O_CREAT), 1 << 62)
'
        touch -d '2500-01-02 03:04:05.123456789' late
        touch -d '1500-01-02 03:04:05' early
        mkdir -m 755 folder
        touch -d '3000-01-02 03:04:05' folder
        mknod device c 5 300
        setfattr -n 'user.a=b%25' -v value late 2> /dev/null
    )
    umount "$WORK/mount"
    holds "an archive with holes of exbibytes is written" \
        timeout 20 "$PROGRAM" tar -q -f "$WORK/archive" "$WORK/image"
    mount -o loop "$WORK/image" "$WORK/mount"
    mkdir "$WORK/mount/out"
    tar -C "$WORK/mount/out" --xattrs --xattrs-include='*' -xf "$WORK/archive" 2> "$WORK/err"
    is "GNU tar extracts holes of exbibytes" $? 0
    list() {
        (cd "$1" && find . -mindepth 1 -not -path './out*' -not -name socket -printf \
                '%P %y %m %s %T@ %n\n' | LC_ALL=C sort && getfattr -d late 2> /dev/null)
    }
    list "$WORK/mount" > "$WORK/want"
    list "$WORK/mount/out" > "$WORK/have"
    holds "sizes and times as on the mount" cmp "$WORK/want" "$WORK/have"
    for place in 0 1099511627776 1152921504606846976; do
        is "the hole has data at $place" \
            "$(tail -c +$((place + 1)) "$WORK/mount/out/hole" | head -c 4)" data
    done
    umount "$WORK/mount"
    "$PROGRAM" tar --format mtree "$WORK/image" /hole /socket /device /late > "$WORK/mtree" \
        2> "$WORK/err"
    is "status of a manifest without a hash" $? 1
    holds "the file without a hash is named" grep -q '^btrfs-walk: /hole: not hashed: ' "$WORK/err"
    holds "as it does of sockets" grep -q '/socket: skipped: sockets cannot be archived' "$WORK/err"
    if have bsdtar; then
        holds "a manifest as bsdtar reads it" bsdtar -tvf "$WORK/mtree"
        is "bsdtar reads the numbers of a device" "$(grep -c '5,300 .*/device' "$WORK/holds")" 1
    fi
else
    skip "root and a kernel with btrfs" "a comparison with a mount"
fi

# Against the mount, as root: every kind of name, attribute, time, number and hole, restored by GNU
# tar and by bsdtar.
if mount -o loop "$WORK/image" "$WORK/mount" 2> /dev/null; then
    cat > "$WORK/make.py" << 'END'
import os
umlaut, deep = 'ü'.encode(), b'/'.join([b'd' * 90] * 4)
deep_bytes = b'/'.join([b'e' * 90 + b'\xff'] * 4)
def put(name):
    os.write(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644), b'x')
def sparse(name, size, *places):
    file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
    for place in places:
        os.pwrite(file, b'data' * 300, place)
    os.ftruncate(file, size)
os.mkdir('odd'); os.chdir('odd'); os.makedirs(deep); os.makedirs(deep_bytes)
for name in (b'attributes', b'percent', b'short\xff\xfe', umlaut, b'l' * 100, b'l' * 101,
             umlaut * 60, b'l' * 150 + b'\xff', b'new\nline', b'back\\slash', deep + b'/file',
             deep_bytes + b'/file', b'owner', b'setuid'):
    put(name)
for name, value in ((b'with space', b'v'), (b'p%q', b'v'), (b'\xc3\xa4', b'v'), (b'\xff\n', b'v'),
                    (b'e', b''), (b'x' * 200, b'y' * 3000), (b'bytes', bytes(range(256)))):
    os.setxattr('attributes', b'user.' + name, value)
for name in b'a=b', b'p%3Dq', b'p%25q':
    os.setxattr('percent', b'user.' + name, b'v')
sparse(b'sparse', 1 << 30, 0, 1 << 20, 1 << 29)
sparse(b'end', (1 << 20) + 1200, 1 << 20)
sparse(b'no data', 12345678)
sparse(b'9G', 9 << 30, 0, (9 << 30) - 5000)
for name in (b's' * 140, b's' * 140 + b'\xff', b's\xff', umlaut * 100, deep + b'/sparse',
             deep_bytes + b'/sparse'):
    sparse(name, 1 << 20, 4096)
os.link(b'sparse', b'sparse 2'); os.link(deep_bytes + b'/file', b'link to deep')
os.link(umlaut * 60, b'link to umlaut')
os.link(b'short\xff\xfe', deep + b'/second')
for target in b'x', umlaut * 70, b't' * 250 + b'\xff/' + b'u' * 200, b'\xff':
    os.symlink(target, b'symlink' + target[:20].replace(b'/', b''))
os.mkfifo('fifo'); os.mknod('char', 0o20600, os.makedev(4095, 1048575))
os.mknod('block', 0o60644, os.makedev(7, 3))
os.chown('owner', 4294967290, 3000000); os.chmod('setuid', 0o6755)
second = 10 ** 9
for name, time in (('1960', -315619200 * second), ('2500', 16725225600 * second + 123456789),
                   ('before', -second - 250000000), ('before 2', -1),
                   ('before 3', -11676096000 * second + 1)):
    put(name); os.utime(name, ns=(time, time))
os.mkdir('dir'); os.chmod('dir', 0o1777); os.utime('dir', ns=(5, 5))
END
    cat > "$WORK/list.py" << 'END'
import hashlib, os, stat, sys
top, first = os.fsencode(sys.argv[1]), {}
for folder, folders, files in os.walk(top):
    folders.sort()
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        s = os.lstat(path)
        kind = stat.S_IFMT(s.st_mode)
        attributes = [(os.fsencode(a), os.getxattr(path, a, follow_symlinks=False))
                      for a in sorted(os.listxattr(path, follow_symlinks=False))]
        content, size = None, None if kind == stat.S_IFDIR else s.st_size
        if kind == stat.S_IFREG:
            with open(path, 'rb') as file:
                content = file.read(2 << 20)
                file.seek(-min(size, 2 << 20), 2)
                content = hashlib.md5(content + file.read()).hexdigest()
        if kind == stat.S_IFLNK:
            content = os.readlink(path)
        same = None if kind == stat.S_IFDIR else first.setdefault(s.st_ino, path[len(top):])
        print(path[len(top):], oct(s.st_mode), s.st_uid, s.st_gid, size, s.st_rdev,
              s.st_mtime_ns, content, same, attributes)
END
    (
        cd "$WORK/mount" || exit 1
        rm -rf -- *
        python3 "$WORK/make.py" && cd odd || exit 1
        mkdir default
        for file in attributes default; do
            setfacl -m u:1000:rwx,u:2000000000:r,g:33:rw,m::rx "$file"
        done
        setfacl -d -m u:1001:rwx default
        setfattr -n trusted.t -v x attributes
    ) > /dev/null 2>&1
    umount "$WORK/mount"
    holds "an archive of odd files" "$PROGRAM" tar -q -f "$WORK/archive" --subvol 5 "$WORK/image" \
        /odd
    mount -o loop "$WORK/image" "$WORK/mount"
    python3 "$WORK/list.py" "$WORK/mount/odd" > "$WORK/want"
    is "all of them are there" "$(wc -l < "$WORK/want")" 50
    # It warns of each time before 1970, and would take a minute to compare the hole of 9 GiB.
    tar -C "$WORK/mount" --exclude=odd/9G --xattrs --xattrs-include='*' \
        --acls --numeric-owner --compare -f "$WORK/archive" > "$WORK/err" 2>&1
    is "tar --compare finds no difference" \
        "$? $(grep -v 'implausibly old\|in the future' "$WORK/err")" "0 "
    advice=$("$PROGRAM" help tar | sed -n "s/.*| tar -xC [^ ]* \(.*\)  everything/\1/p")
    for how in "--xattrs --xattrs-include=*" "$(tr -d "'" <<< "$advice")" \
        "--xattrs --xattrs-include=user.* --xattrs-include=trusted.* --acls"; do
        rm -rf "$WORK/mount/tar"
        mkdir "$WORK/mount/tar"
        # shellcheck disable=SC2086 # options are words
        tar -C "$WORK/mount/tar" $how --numeric-owner -xpf "$WORK/archive" > "$WORK/err" 2>&1
        is "status of tar $how, warnings" \
            "$? $(grep -v 'implausibly old\|in the future' "$WORK/err")" "0 "
        python3 "$WORK/list.py" "$WORK/mount/tar/odd" | diff "$WORK/want" - > "$WORK/difference"
        is "what tar $how restores otherwise" "$(cut -c 1-200 "$WORK/difference" | head -n 5)" ""
    done
    if command -v bsdtar > /dev/null; then
        mkdir "$WORK/mount/bsdtar"
        holds "bsdtar extracts the archive" \
            env LC_ALL=C.UTF-8 bsdtar -C "$WORK/mount/bsdtar" --numeric-owner -xpf \
            "$WORK/archive"
        is "bsdtar prints no warnings" "$(cat "$WORK/holds")" ""
        # It reads fractions before 1970 as if they were after the whole second, and knows no code
        # for '=' in a name.
        known() { grep -vE "^b'/(before|percent)" "$1"; }
        python3 "$WORK/list.py" "$WORK/mount/bsdtar/odd" > "$WORK/have"
        is "bsdtar restores all files" \
            "$(diff <(known "$WORK/want") <(known "$WORK/have") | cut -c 1-200 | head -n 5)" ""
    else
        skip bsdtar "how it reads archives"
    fi
    umount "$WORK/mount"
fi

# Refused outputs.
before=$(md5sum < "$plain")
"$PROGRAM" tar -f "$plain" "$compressed" > /dev/null 2>&1
is "status of an image as output" $? 2
"$PROGRAM" tar -f "$plain" "$plain" > /dev/null 2>&1
is "status of its own image as output" $? 2
is "an image that is given as output stays as it is" "$(md5sum < "$plain")" "$before"
if have_terminal; then
    script -qec "$PROGRAM tar '$plain'" /dev/null < /dev/null > "$WORK/terminal"
    holds "no archive for a terminal" grep -q 'terminal' "$WORK/terminal"
else
    skip "script(1) on a pseudo-terminal" terminals
fi
"$PROGRAM" tar "$plain" > /dev/full 2> "$WORK/err"
is "status of a full disk" $? 1
"$PROGRAM" tar --format zip "$plain" > /dev/null 2>&1
is "status of an unknown format" $? 2

# Unreadable data.
fault=debug/error-gen@device-1,kind=data
"$PROGRAM" sum --insert $fault "$compressed" > /dev/null 2> "$WORK/err"
if grep -q 'cannot be read' "$WORK/err"; then
    "$PROGRAM" tar --insert $fault "$compressed" > "$WORK/archive" 2> "$WORK/err"
    is "--on-error=fail ends with status 1" $? 1
    holds "--on-error=fail says where data cannot be read" grep -q 'cannot be read' "$WORK/err"
    if tar -tf "$WORK/archive" > /dev/null 2>&1 && [ -s "$WORK/archive" ]; then
        fail "an archive that was broken off looks whole"
    else
        pass
    fi
    "$PROGRAM" tar --type f --on-error=zero --insert $fault "$compressed" > "$WORK/archive" \
        2> /dev/null
    is "--on-error=zero ends with status 1" $? 1
    is "--on-error=zero archives all names" \
        "$(tar -tf "$WORK/archive" 2> /dev/null | grep -vc '/$')" \
        "$("$PROGRAM" "$compressed" | wc -l)"
    "$PROGRAM" tar --type f --on-error=skip --insert $fault "$compressed" > "$WORK/archive" \
        2> "$WORK/err"
    is "--on-error=skip ends with status 1" $? 1
    is "good files alone with --on-error=skip" \
        "$(tar -tf "$WORK/archive" 2> /dev/null | grep -vc '/$')" \
        "$("$PROGRAM" sum --insert $fault "$compressed" 2> /dev/null | wc -l)"
else
    skip "layers that make faults" "unreadable data"
fi
finish
