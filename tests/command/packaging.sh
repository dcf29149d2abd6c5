#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Packaging: the same version everywhere, and a source archive that does not depend on when it is
# made.
set -uo pipefail
. "$(dirname "$0")/common.bash"

cd "$ROOT" || exit 1
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
is "the program" "$("$PROGRAM" --version)" "btrfs-walk $version"
is "the Debian package" "$(sed -n '1s/.*(\(.*\)-[0-9.]*).*/\1/p' packaging/debian/changelog)" \
    "$version"
is "the RPM" "$(sed -n 's/^Version: *//p' packaging/rpm/btrfs-walk.spec)" "$version"
is "the APK" "$(sed -n 's/^pkgver=//p' packaging/alpine/APKBUILD)" "$version"
is "the list of changes begins with it, and its date" \
    "$(sed -n 's/^## \(.*\) ([0-9]\{4\}-[0-9][0-9]-[0-9][0-9])$/\1/p' CHANGELOG.md | head -n 1)" \
    "$version"
is "the manual" "$(grep -ohF "btrfs\\-walk $version" "$BUILD/man/btrfs-walk.1" | head -n 1)" \
    "btrfs\\-walk $version"

# Most of the start-up time is the loading of libraries. A note in the program tells packaging tools
# which libraries may be loaded later.
if grep -q 'NBD=1' "$BUILD/features" && have ldd readelf; then
    is "libraries that are loaded only if they are needed" \
        "$(ldd "$PROGRAM" | grep -E 'lib(nbd|gnutls|xml2|stdc)')" ""
    is "notes for packagers" "$(readelf -p .note.dlopen "$PROGRAM" | grep -o '"soname":[^]]*]')" \
        '"soname":["libnbd.so.0"]'
else
    skip "ldd, readelf and a build with libnbd" "libraries at the start"
fi

if have git && git rev-parse HEAD > /dev/null 2>&1; then
    for folder in one two; do
        make -s dist BUILD="$WORK/$folder" > /dev/null 2>&1
    done
    name=btrfs-walk-$version.tar.gz
    holds "an archive" tar -tzf "$WORK/one/$name" "btrfs-walk-$version/Makefile"
    holds "the same twice" cmp "$WORK/one/$name" "$WORK/two/$name"
else
    skip "a git repository" "make dist"
fi

# Every directory of the installation can be chosen.
make -s install BUILD="$BUILD" DESTDIR="$WORK/stage" PREFIX=/usr LIBDIR=/usr/lib/machine \
    BINDIR=/opt/bin INCLUDEDIR=/opt/include DATADIR=/opt/share MANDIR=/opt/man -o all \
    > "$WORK/log" 2>&1 || cat "$WORK/log"
holds "ldconfig is thought of" grep -q ldconfig "$WORK/log"
for file in /opt/bin/btrfs-walk /usr/lib/machine/libbtrfs-walk.so /opt/include/btrfs-walk/fs.h \
    /opt/man/man1/btrfs-walk.1 /opt/man/man1/btrfs-walk-ls.1 /opt/man/man7/btrfs-walk-probes.7 \
    /opt/share/zsh/site-functions/_btrfs-walk; do
    holds "$file" [ -e "$WORK/stage$file" ]
done
holds "pkg-config" grep -qx 'libdir=${prefix}/lib/machine' \
    "$WORK/stage/usr/lib/machine/pkgconfig/btrfs-walk.pc"
holds "its version" grep -qx "Version: $version" \
    "$WORK/stage/usr/lib/machine/pkgconfig/btrfs-walk.pc"
is "pages of the manual elsewhere" \
    "$(find "$WORK/stage" -name '*.1' ! -name '*.so.1' ! -path '*/opt/man/man1/*')" ""
finish
