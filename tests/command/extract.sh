#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The extract command: the extracted files equal those in the image, an extraction can be continued,
# and nothing is replaced. As root, also compared with the kernel's mount of the image.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
compressed=$BUILD/fixtures/compressed/dev1.img

sums() { "$PROGRAM" sum -0 "$@" | sed -zE 's|^([0-9a-f]+  )/|\1|' | LC_ALL=C sort -z; }
hashes() { (cd "$1" && find . -type f -printf '%P\0' | xargs -0r sha256sum -z | LC_ALL=C sort -z); }

out=$WORK/extracted
for image in "$plain" "$compressed"; do
    rm -rf "$out"
    expect "$image is extracted" 0 - extract -q -C "$out" "$image"
    sums "$image" > "$WORK/want"
    hashes "$out" > "$WORK/have"
    holds "extracted files have the hashes of sum" cmp "$WORK/want" "$WORK/have"
    is "no unfinished file is left" "$(find "$out" -name '.btrfs-walk-*')" ""
done

# Continuing: a file that is missing, and one that was changed in the meantime.
list() { (cd "$out" && find . -type f -printf '%p %s %T@\n' | sort); }
holds "--skip-existing succeeds if nothing is missing" \
    "$PROGRAM" extract -q --skip-existing -C "$out" "$compressed"
victim=$(cd "$out" && find . -type f -size +0 -links 1 | sort | head -n 1)
changed=$(cd "$out" && find . -type f -size +0 -links 1 | sort | tail -n 1)
list > "$WORK/before"
rm "$out/$victim"
holds "--skip-existing succeeds if a file is missing" \
    "$PROGRAM" extract -q --skip-existing -C "$out" "$compressed"
is "--skip-existing extracts the missing file only" "$(list | diff "$WORK/before" -)" ""
echo mine > "$out/$changed"
"$PROGRAM" extract -q --skip-existing -C "$out" "$compressed" 2> "$WORK/err"
is "status of a file that is another" $? 1
holds "the changed file is named" grep -qF "${changed#.}" "$WORK/err"
is "the changed file stays as it is" "$(cat "$out/$changed")" mine
"$PROGRAM" extract -q -C "$out" "$compressed" 2> "$WORK/err"
is "status where everything is there" $? 1
is "one line" "$(sed -E 's/[0-9]+/N/' "$WORK/err")" \
    'btrfs-walk: N files exist; --skip-existing continues'
"$PROGRAM" extract -v -C "$out" "$compressed" 2> "$WORK/err"
holds "a line each with -v" [ "$(grep -c 'not written: File exists' "$WORK/err")" -gt 3 ]

# Existing directories keep their metadata.
mkdir -p "$WORK/there/source"
chmod 700 "$WORK/there/source"
expect "a directory that exists is filled" 0 - extract -q -C "$WORK/there" "$plain" /source
is "permissions of a directory that exists" "$(stat -c %a "$WORK/there/source")" 700

# Parts.
rm -rf "$out"
holds "a folder is extracted" "$PROGRAM" extract -q -C "$out" "$compressed" /zstd
sums "$compressed" /zstd > "$WORK/want"
hashes "$out" > "$WORK/have"
holds "the extracted folder has the hashes of sum" cmp "$WORK/want" "$WORK/have"
rm -rf "$out"
name=$(basename "$victim")
holds "extract accepts filters" \
    "$PROGRAM" extract -q -C "$out" --type f --name "$name" "$compressed"
is "extract with filters makes no other file" "$(find "$out" -type f ! -name "$name")" ""

# Symbolic links in the target that lead out of it, to a neighbouring folder.
rm -rf "$out"
mkdir -p "$out" "$WORK/beside"
for folder in $("$PROGRAM" --type d --maxdepth 1 "$compressed" | sed 's|^/||'); do
    ln -s ../beside "$out/$folder"
done
"$PROGRAM" extract -q -C "$out" "$compressed" > /dev/null 2>&1
is "status with links in the way" $? 1
is "nothing is written behind them" "$(find "$WORK/beside" -mindepth 1)" ""
for options in "--strip-components 1" "--relative"; do
    rm -rf "$out"
    mkdir -p "$out"
    ln -s ../beside "$out/docs"
    # shellcheck disable=SC2086 # options are words
    "$PROGRAM" extract -q $options -C "$out" "$compressed" /zlib > /dev/null 2>&1
    is "$options: status with a link in the way" $? 1
    is "$options: nothing is written behind it" "$(find "$WORK/beside" -mindepth 1)" ""
    holds "$options: the rest is there" [ -f "$out/source/library/part-01.c" ]
done

# The folder itself, when a subvolume is restored as a root: 751, on 2001-02-03.
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" subvolumes
cp --sparse=always "$subvolumes" "$WORK/root.img"
holds "attributes of a top directory" change "$WORK/root.img" \
    256 256 1 0 set 52 4 $((040751)) and 256 256 1 0 set 44 4 "$(id -u)" and \
    256 256 1 0 set 48 4 "$(id -g)" and \
    256 256 1 0 set 136 8 981173106 and 256 256 1 0 set 144 4 123456789
rm -rf "$out"
folder=$WORK/folder
# root WHAT WANTED OPTION...: the final mode and time of the folder.
root() {
    local what=$1 wanted=$2
    expect "$what" 0 - extract -q -C "$folder" "${@:3}"
    is "$what: mode and time of the folder" "$(stat -c '%a %.9Y' "$folder" |
        sed 's/ 981173106.123456789$/ restored/; s/ .*[.].*//')" "$wanted"
}
for where in "--relative $WORK/root.img /home" "--relative --subvol home $WORK/root.img" \
    "--subvol home $WORK/root.img"; do
    read -ra words <<< "$where"
    rm -rf "$folder"
    root "a new folder: $where" '751 restored' "${words[@]}"
    rm -rf "$folder"
    mkdir -m 700 "$folder"
    root "the user's folder: $where" 700 "${words[@]}"
    root "--preserve: $where" '751 restored' --preserve --skip-existing "${words[@]}"
done
rm -rf "$folder"
mkdir -m 700 "$folder"
root "two of them in one folder" 700 --preserve --relative --maxdepth 0 "$WORK/root.img" /home /docs
rm -rf "$folder"
root "part of it" "$(printf '%o' $((0777 & ~$(umask))))" --preserve "$WORK/root.img" \
    home/docs/letters

# Nested subvolumes: included without --subvol, but not with it.
for words in "--nested=no --relative $subvolumes /home" "--subvol home $subvolumes" \
    "--subvol home $subvolumes /"; do
    rm -rf "$folder"
    # shellcheck disable=SC2086 # words
    expect "without nested ones: $words" 0 - extract -q -C "$folder" $words
    is "nested subvolumes are not extracted: $words" "$(find "$folder" -type f | wc -l)" \
        "$("$PROGRAM" -q --subvol home "$subvolumes" | wc -l)"
done
for words in "--relative $subvolumes /home" "--nested=yes --subvol home $subvolumes" \
    "--nested=yes --subvol home $subvolumes /"; do
    rm -rf "$folder"
    # shellcheck disable=SC2086 # words
    expect "with nested ones: $words" 0 - extract -q -C "$folder" $words
    is "nested subvolumes are extracted: $words" "$(find "$folder" -type f | wc -l)" \
        "$("$PROGRAM" -q "$subvolumes" | grep -c '^/home/')"
done
expect "no such rule" 2 "--nested" extract -C "$folder" --nested=maybe "$subvolumes"

# Wrong usage.
"$PROGRAM" extract "$plain" > /dev/null 2>&1
is "extract without -C ends with status 2" $? 2
"$PROGRAM" extract -C "$WORK/no/folder" "$plain" > /dev/null 2>&1
is "status of a folder that cannot be made" $? 2

# Unreadable data.
fault=debug/error-gen@device-1,kind=data
expect "data that cannot be read" 1 'cannot be read' sum --insert $fault "$compressed"
readable=$(wc -l < "$WORK/out")
holds "inline files can be read without data" [ "$readable" -gt 0 ]
rm -rf "$out"
expect "extract where data cannot be read" 1 'cannot be read' \
    extract -q --insert $fault -C "$out" "$compressed"
is "extract makes the files that sum can read" "$(find "$out" -type f | wc -l)" "$readable"
rm -rf "$out"
expect "extract with zeros where all data are lost" 1 'large: nothing of it can be read' \
    extract -q --on-error=zero --insert $fault -C "$out" "$compressed"
is "extract with zeros makes no file of which nothing can be read" \
    "$(find "$out" -type f | wc -l)" "$readable"
rm -rf "$out"
place=$(run_json extents --json "$plain" /data/plain |
    sed 's/.*"extent_logical":\([0-9]*\).*/\1/' | xargs "$PROGRAM" map -o offset --raw "$plain")
fault=debug/error-gen@device-1,kind=data,start=$place,end=$((place + 4096))
expect "extract with zeros in place of a sector" 1 'plain: bytes 0 to 4095 cannot be read' \
    extract --on-error=zero --insert "$fault" -C "$out" "$plain" /data/plain
is "extract with zeros makes a file that has lost a sector" \
    "$(stat -c %s "$out/data/plain")" 200000

# Interrupted runs, on a file system without O_TMPFILE.
cat > "$WORK/named.c" << 'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
int openat64(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return errno = EOPNOTSUPP, -1;
    return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64"))(
        directory, path, flags, mode);
}
int openat(int, const char *, int, ...) __attribute__((alias("openat64")));
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset)
{
    sleep(getenv("SLOW") ? 300 : 0);
    return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(
        file, bytes, length, offset);
}
ssize_t pwrite(int, const void *, size_t, off64_t) __attribute__((alias("pwrite64")));
END
if "${COMPILER[@]}" -shared -fPIC -w -o "$WORK/named.so" "$WORK/named.c" -ldl 2> /dev/null &&
    [ -z "${SANITIZE:-}" ]; then
    rm -rf "$out"
    unfinished() { find "$out" -name '.btrfs-walk-*' 2> /dev/null | wc -l; }
    broken_off() { # SIGNAL: ends an extraction while it writes a file
        set -m # so that background jobs do not ignore SIGINT
        SLOW=1 LD_PRELOAD=$WORK/named.so "$PROGRAM" extract -q --skip-existing -C "$out" \
            "$compressed" /zstd &
        soon eval '[ "$(unfinished)" = 1 ]'
        is "an interrupted extraction has one unfinished file" "$(unfinished)" 1
        kill "-$1" $!
        wait $!
        is "signal $1 ends the extraction" $(($? - 128)) "$(kill -l "$1")"
        set +m
    } 2> /dev/null
    for signal in INT TERM HUP; do
        broken_off "$signal"
        is "$signal leaves no unfinished file" "$(unfinished)" 0
    done
    broken_off KILL
    is "KILL leaves an unfinished file" "$(unfinished)" 1
    LD_PRELOAD=$WORK/named.so holds "--skip-existing continues after KILL" \
        "$PROGRAM" extract -q --skip-existing -C "$out" \
        "$compressed" /zstd
    is "the continued extraction removes the unfinished file" "$(unfinished)" 0
    sums "$compressed" /zstd > "$WORK/want"
    hashes "$out" > "$WORK/have"
    holds "the continued extraction has the hashes of sum" cmp "$WORK/want" "$WORK/have"
else
    skip "a compiler" "extractions that are broken off"
fi

# Comparison with the mount; and names that differ only in case, on a case-insensitive file system.
mount_point=$WORK/mount
mkdir "$mount_point"
if [ "$(id -u)" -eq 0 ] && have mkfs.btrfs rsync setfattr setfacl; then
    truncate -s 300M "$WORK/image"
    mkfs.btrfs -q "$WORK/image" > /dev/null 2>&1
else
    rm -f "$WORK/image"
fi
if [ -e "$WORK/image" ] && mount -o loop,compress=zstd "$WORK/image" \
    "$mount_point" 2> /dev/null; then
    (
        cd "$mount_point" || exit 1
        mkdir -p a/b/c d
        head -c 300000 /dev/urandom > a/random
        yes compressed | head -c 3000000 > a/zstd
        ln a/random d/second
        ln a/random a/b/third
        ln -s ../a/zstd d/link
        mkfifo d/fifo
        mknod d/null c 1 3
        truncate -s 100M d/hole
        echo end | dd of=d/sparse bs=1 seek=50000000 status=none
        fallocate -l 3M d/allocated
        setfattr -n user.comment -v "some words" a/zstd
        setfattr -n trusted.x -v y a/b
        setfacl -m u:1000:rw,g:33:r a/random
        setfacl -d -m u:1001:rwx a/b
        chown 1000:1001 a/b/c
        chmod 0500 a/b/c
        chmod 1777 d
        echo setuid > a/setuid
        chmod 4711 a/setuid
        touch -h -d '2001-02-03 04:05:06.789012345' d/link a/b
        touch -d '1960-01-01 00:00:00.5' old
        touch "$(printf 'new\nline')" 'back\slash' "$(printf 'bad\377')" \
            "$(printf 'n%.0s' {1..255})"
        btrfs -q subvolume create sub || btrfs subvolume create sub
        echo in > sub/file
        btrfs -q subvolume snapshot . snap || btrfs subvolume snapshot . snap
        echo one > Case
        echo two > case
    ) > /dev/null 2>&1
    umount "$mount_point"
    mount -o loop,ro "$WORK/image" "$mount_point"
    rm -rf "$out"
    holds "extract --preserve succeeds as root" \
        "$PROGRAM" extract -q --preserve -C "$out" "$WORK/image"
    # The folder itself was made by this test; the directory that stands for a subvolume in a
    # snapshot has the time of the mount.
    differences() {
        { rsync -aHAXn --checksum -i --numeric-ids --delete "$mount_point/" "$1/" ||
            echo "rsync failed"; } | grep -vE '^\.d\.\.t\.+ (\./|snap/sub/)$'
    }
    is "rsync finds no difference from the mount" "$(differences "$out")" ""
    is "extract makes holes" "$(du -k "$out/d/hole" | cut -f 1)" 0
    rm -rf "$WORK/tarred"
    mkdir "$WORK/tarred"
    "$PROGRAM" tar -q "$WORK/image" | tar -xp -C "$WORK/tarred" --xattrs --xattrs-include='*' \
        --acls --numeric-owner 2> /dev/null
    # GNU tar rejects times as early as 1960.
    is "rsync's differences to what tar extracts" \
        "$(differences "$WORK/tarred" | grep -vE '[ /]old$')" ""
    (cd "$mount_point" && find . -type f -printf '%P\0' | xargs -0 sha256sum -z) |
        LC_ALL=C sort -z > "$WORK/want"
    sums "$WORK/image" > "$WORK/have"
    holds "sum prints the hashes of the mount" cmp "$WORK/want" "$WORK/have"
    rm -rf "$out"
    expect "everything is extracted without --preserve" 0 . extract -C "$out" "$WORK/image"
    is "no setuid is restored without --preserve" \
        "$(find "$out" \( -perm /6000 -o ! -type d -perm /1000 \))" ""
    is "directories keep the sticky bit without --preserve" "$(stat -c %a "$out/d")" 1777
    is "no device for others without --preserve" "$(find "$out" -type c -perm /0077)" ""
    umount "$mount_point"

    # Rare cases: existing names, read-only directories, groups, flags, extreme times.
    truncate -s 200M "$WORK/odd"
    mkfs.btrfs -q "$WORK/odd" > /dev/null 2>&1
    mount -o loop "$WORK/odd" "$mount_point"
    (
        cd "$mount_point" || exit 1
        mkdir -p links closed/in readonly acl/in flags/directory
        head -c 100000 /dev/urandom > links/a
        ln links/a links/b
        ln links/a links/c
        mkfifo links/fifo
        ln links/fifo links/fifo2
        echo 1 > closed/in/file
        echo 2 > readonly/file
        echo 3 > readonly/second
        chmod 0 closed
        chmod 0555 readonly
        echo 4 > acl/in/file
        echo 5 > group
        chown 1000:2000 group
        chmod 2750 group
        echo 6 > foreign
        chown 1001:2001 foreign
        chmod 6755 foreign
        mkdir foreign-directory
        chown 1001:2001 foreign-directory
        chmod 6755 foreign-directory
        touch -d '2300-01-01 00:00:00.123456789' future
        touch -d '1600-01-01 00:00:00.5' past
        for flag in i a d A; do echo "$flag" > "flags/$flag"; done
        ln flags/i flags/i2
        for flag in i a d A; do chattr "+$flag" "flags/$flag"; done
        chattr +i flags/directory
    ) > /dev/null 2>&1
    umount "$mount_point"
    mount -o loop,ro "$WORK/odd" "$mount_point"
    clean() { chattr -Rf -ia "$@"; rm -rf "$@"; }

    # On a file system with all features: everything is restored exactly, also into an existing
    # folder.
    truncate -s 300M "$WORK/target"
    mkfs.btrfs -q "$WORK/target" > /dev/null 2>&1
    mkdir "$WORK/on"
    mount -o loop "$WORK/target" "$WORK/on"
    flags() { (cd "$1/flags" && lsattr -Rd . i i2 a d A directory | sort); }
    for more in '' --skip-existing; do
        holds "rare cases are extracted $more" "$PROGRAM" extract -q --preserve $more \
            -C "$WORK/on/all" "$WORK/odd"
        is "rsync's differences of seldom things" "$(differences "$WORK/on/all")" ""
        holds "extract $more restores the flags of files" \
            same_bytes <(flags "$mount_point") <(flags "$WORK/on/all")
    done
    "$PROGRAM" extract -C "$WORK/on/careful" "$WORK/odd" 2> "$WORK/err"
    is "no protecting flags are restored without --preserve" \
        "$(lsattr -R "$WORK/on/careful/flags" | grep -cE '^-{4,5}[ia]')" 0
    holds "a message says that privileges are not restored" \
        grep -q 'privileges or protection' "$WORK/err"

    # The compression flag without the attribute that btrfs adds when the flag is set; made by
    # renaming the attribute.
    if have python3; then
        truncate -s 128M "$WORK/flag"
        mkfs.btrfs -q -n 16384 "$WORK/flag" > /dev/null 2>&1
        mkdir "$WORK/flagged"
        mount -o loop "$WORK/flag" "$WORK/flagged"
        (cd "$WORK/flagged" && echo 1 > file && mkdir directory && chattr +c file directory &&
                echo 2 > both && btrfs property set both compression lzo) > /dev/null
        umount "$WORK/flagged"
        holds "an image with a property" "$PROGRAM" extract -q -C "$WORK/on/property" "$WORK/flag"
        is "the property of a file" \
            "$(getfattr --absolute-names --only-values -n btrfs.compression \
            "$WORK/on/property/both")" lzo
        python3 "$ROOT/tests/support/patch_image.py" "$WORK/flag" \
            "$(printf btrfs.compression | od -An -tx1 | tr -d ' \n')" \
            "$(printf user.compressions | od -An -tx1 | tr -d ' \n')"
        holds "an image with a flag" "$PROGRAM" extract -q -C "$WORK/on/flag" "$WORK/flag"
        is "no property without one in the image" \
            "$(cd "$WORK/on/flag" && getfattr -d -m 'btrfs' file directory both)" ""
        is "other attributes are restored" \
            "$(getfattr --absolute-names --only-values -n user.compressions "$WORK/on/flag/both")" \
            lzo
    fi

    # Existing names: if the first of several hard links is taken, the next one gets the content.
    mkdir -p "$WORK/on/taken/links"
    for name in a fifo; do echo mine > "$WORK/on/taken/links/$name"; done
    "$PROGRAM" extract -q -C "$WORK/on/taken" "$WORK/odd" /links 2> "$WORK/err"
    is "status with names that are taken" $? 1
    is "no other file is missing" "$(grep -cvE '/links/(a|fifo): not written' "$WORK/err")" 0
    is "an existing file stays as it is" "$(cat "$WORK/on/taken/links/a")" mine
    holds "contents of the other names" cmp "$mount_point/links/c" "$WORK/on/taken/links/b"
    is "the other names are one file" "$(stat -c %h "$WORK/on/taken/links/c")" 2
    is "a fifo gets its other name" "$(stat -c %F "$WORK/on/taken/links/fifo2")" fifo

    # Default access lists of an existing directory below the folder do not apply to what is
    # extracted into it.
    mkdir -p "$WORK/on/listed/acl"
    setfacl -d -m u:1234:rwx "$WORK/on/listed/acl"
    holds "extract below an access list" "$PROGRAM" extract -q -C "$WORK/on/listed" "$WORK/odd" /acl
    is "files do not inherit access lists of the folder" \
        "$(cd "$WORK/on/listed" && getfacl -Rs acl/in)" ""

    # Without root.
    if have setpriv && chmod 755 "$WORK" && mkdir "$WORK/on/user" &&
        chown 1000:1000 "$WORK/on/user" &&
        setpriv --reuid=1000 --regid=1000 --groups=2000 "$PROGRAM" --version > /dev/null 2>&1; then
        user() {
            setpriv --reuid=1000 --regid=1000 --groups=2000 "$PROGRAM" extract "$@" \
                -C "$WORK/on/user/out" "$WORK/odd"
        }
        out=$WORK/on/user/out
        list() { (cd "$out" && find . -printf '%p %y %m %s %T@\n' | sort); }
        holds "extract succeeds without root" user -q
        is "a group that the user is in" "$(stat -c '%u:%g %a' "$out/group")" "1000:2000 750"
        is "files of other users belong to the user" \
            "$(stat -c '%u:%g %a' "$out/foreign")" "1000:1000 755"
        list > "$WORK/before"
        holds "nothing to do without root" user -q --skip-existing
        is "--skip-existing changes nothing without root" "$(list | diff "$WORK/before" -)" ""
        rm -rf "$out/closed/in" "$out/readonly/second"
        holds "go on in closed directories" user -q --skip-existing
        is "closed directories are closed again" "$(list | diff "$WORK/before" -)" ""
        rm "$out/closed/in/file"
        holds "go on below a closed directory" user -q --skip-existing --type f
        is "the closed directory is closed again" "$(stat -c %a "$out/closed")" 0
        holds "the file in the closed directory is extracted" \
            cmp "$mount_point/closed/in/file" "$out/closed/in/file"
        rm -rf "$out"
        holds "extract without root, with privileges" user -q --preserve --exclude /flags
        is "no setuid for another than it was for" "$(stat -c '%a' "$out/foreign")" 755
        is "setgid for a group that the user is in" "$(stat -c '%a' "$out/group")" 2750
        is "directories keep setgid: it gives no privileges" \
            "$(stat -c '%u:%g %a' "$out/foreign-directory")" "1000:1000 6755"
    else
        skip setpriv "extraction without root"
    fi
    clean "$WORK"/on/*
    umount "$WORK/on"
    umount "$mount_point"

    # More hard links than the target file system allows for one file: ext4 ends at 65000.
    if [ -n "${SWEEP:-}" ]; then
        skip "a build without sanitizers" "more hard links than ext4 allows"
    elif have python3 mkfs.ext4 && mkfs.ext4 -qF "$WORK/target" > /dev/null 2>&1 &&
        mount -o loop "$WORK/target" "$WORK/on" 2> /dev/null; then
        truncate -s 2G "$WORK/odd"
        mkfs.btrfs -qf "$WORK/odd" > /dev/null 2>&1
        mount -o loop "$WORK/odd" "$mount_point"
        (
            cd "$mount_point" && mkdir {0..254} && head -c 5000 /dev/urandom > 0/0 || exit 1
            python3 -c 'import os
for i in range(1, 255 * 256): os.link("0/0", f"{i // 256}/{i % 256}")'
        )
        umount "$mount_point"
        holds "65280 names of a file are extracted" \
            "$PROGRAM" extract -q -C "$WORK/on/out" "$WORK/odd"
        is "how many they are for a file" \
            "$(find "$WORK/on/out" -type f -printf '%i %n\n' | sort -u | cut -d ' ' -f 2 | sort -n |
            paste -sd ' ')" "280 65000"
        is "all names have the contents of the file" \
            "$(find "$WORK/on/out" -type f ! -size 5000c)" ""
        holds "with nothing left to do" "$PROGRAM" extract -q --skip-existing -C "$WORK/on/out" \
            "$WORK/odd"
        cp "$BUILD/fixtures/plain/dev1.img" "$WORK/late"
        holds "a file has a time that ext4 cannot store" \
            change "$WORK/late" 5 262 1 0 set 136 8 20000000000
        expect "it is reported" 1 'cannot restore its times' \
            extract --type f -C "$WORK/on/late" "$WORK/late"
        expect "but the file is complete" 0 - \
            extract -q --type f --skip-existing -C "$WORK/on/late" "$WORK/late"
        umount "$WORK/on"
    else
        skip "a kernel with ext4" "extraction to ext4"
    fi

    truncate -s 40M "$WORK/fat"
    if mkfs.vfat "$WORK/fat" > /dev/null 2>&1 && mount -o loop "$WORK/fat" \
        "$mount_point" 2> /dev/null; then
        "$PROGRAM" extract -q -C "$mount_point/out" --name '[Cc]ase' --maxdepth 1 \
            "$WORK/image" > /dev/null 2> "$WORK/err"
        is "status of names that differ in case" $? 1
        holds "names that differ in case are reported" grep -qi 'differs only in' "$WORK/err"
        is "one of them is there" "$(find "$mount_point/out" -iname case | wc -l)" 1
        umount "$mount_point"
    else
        skip "a kernel with vfat" "extraction to vfat"
    fi
else
    skip "root, a kernel with btrfs, and rsync" "a comparison with a mount"
fi

# Each directory takes only the necessary system calls: its owner is set only if it has to change.
if [ "$EUID" -eq 0 ] && have strace && strace -o "$WORK/calls" true 2> /dev/null; then
    strace -f -qq -o "$WORK/calls" -e trace=mkdirat,fchown,fchownat "$PROGRAM" extract -q \
        -C "$WORK/traced" --user 0 --group 0 "$plain" 2> "$WORK/err"
    holds "strace sees that directories are made" grep -q mkdirat "$WORK/calls"
    is "owners that were right and are set again" "$(grep -c fchown "$WORK/calls")" 0
else
    skip "root and strace" "the number of system calls"
fi
finish
