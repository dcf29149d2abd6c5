#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Packaging: the same version everywhere, and a source archive that does not depend on when it is
# made.
# Takes long.
set -uo pipefail
. "$(dirname "$0")/common.bash"

cd "$ROOT" || exit 1
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
is "--version prints the version of the Makefile" "$("$PROGRAM" --version)" "btrfs-walk $version"
is "the Debian package has the version" \
    "$(sed -n '1s/.*(\(.*\)-[0-9.]*).*/\1/p' packaging/debian/changelog)" \
    "$version"
is "the RPM has the version" "$(sed -n 's/^Version: *//p' packaging/rpm/btrfs-walk.spec)" "$version"
is "the APK has the version" "$(sed -n 's/^pkgver=//p' packaging/alpine/APKBUILD)" "$version"
is "the package for Arch has the version" \
    "$(sed -n 's/^pkgver=//p' packaging/arch/PKGBUILD)" "$version"
is "the package for Nix has the version" \
    "$(sed -n 's/^  version = "\(.*\)";$/\1/p' packaging/nix/package.nix)" "$version"
is "the list of changes begins with it, and its date" \
    "$(sed -n 's/^## \(.*\) ([0-9]\{4\}-[0-9][0-9]-[0-9][0-9])$/\1/p' CHANGELOG.md | head -n 1)" \
    "$version"
# The packages for Debian and Fedora list the versions since the first package, with these dates.
sed -n 's/^## \(.*\) (\(.*\))$/\1 \2/p' CHANGELOG.md > "$WORK/versions"
is "each version has a date" "$(wc -l < "$WORK/versions")" "$(grep -c '^## ' CHANGELOG.md)"
awk '/^btrfs-walk/ { version = $2; gsub(/[(]|-[^-]*[)]/, "", version) }
    /^ -- / { sub(/.*>  /, ""); print version, $0 }' packaging/debian/changelog > "$WORK/debian"
sed -nE 's/^\* (.* [0-9]{4}) .* - (.*)-[0-9]+$/\2 \1/p' packaging/rpm/btrfs-walk.spec > "$WORK/rpm"
for packages in debian rpm; do
    while read -r number date; do
        echo "$number $(date -u -d "$date" +%F)"
    done < "$WORK/$packages" > "$WORK/dates"
    is "$packages: the newest versions and their dates" "$(cat "$WORK/dates")" \
        "$(head -n "$(wc -l < "$WORK/dates")" "$WORK/versions")"
    holds "$packages: there are some" [ -s "$WORK/dates" ]
done
is "the manual has the version" \
    "$(grep -ohF "btrfs\\-walk $version" "$BUILD/man/btrfs-walk.1" | head -n 1)" \
    "btrfs\\-walk $version"

# Most of the start-up time is the loading of libraries. A note in the program tells packaging tools
# which libraries may be loaded later.
if grep -q 'NBD=1' "$BUILD/features" && have ldd readelf; then
    is "libraries that are loaded only if they are needed" \
        "$(ldd "$PROGRAM" | grep -E 'lib(nbd|gnutls|xml2|stdc)')" ""
    is "the program has notes about optional libraries" \
        "$(readelf -p .note.dlopen "$PROGRAM" | grep -o '"soname":[^]]*]')" \
        '"soname":["libnbd.so.0"]'
else
    skip "ldd, readelf and a build with libnbd" "libraries at the start"
fi

if have git && git rev-parse HEAD > /dev/null 2>&1; then
    for folder in one two; do
        make -s dist BUILD="$WORK/$folder" MANUAL_PAGES="$BUILD/man" > "$WORK/log" 2>&1
    done
    name=btrfs-walk-$version.tar.gz
    holds "make dist packs the Makefile" tar -tzf "$WORK/one/$name" "btrfs-walk-$version/Makefile"
    holds "make dist makes the same archive twice" cmp "$WORK/one/$name" "$WORK/two/$name"
    # A cross build cannot run the program, so the manual is in the archive.
    tar -xzf "$WORK/one/$name" -C "$WORK/one"
    make -s -C "$WORK/one/btrfs-walk-$version" BUILD="$WORK/cross" \
        "$WORK/cross/man/btrfs-walk-ls.1" > "$WORK/log" 2>&1
    holds "the archive has the manual, which needs no program" \
        cmp "$WORK/cross/man/btrfs-walk-ls.1" "$BUILD/man/btrfs-walk-ls.1"
    is "copying the manual compiles nothing" "$(find "$WORK/cross" -name '*.o')" ""
    holds "make dist MANUAL= packs no pages" test -z "$(make -s dist BUILD="$WORK/three" MANUAL= |
        xargs tar -tzf | grep /man/)"
else
    skip "a git repository" "make dist"
fi

# Every directory of the installation can be chosen.
make -s install BUILD="$BUILD" DESTDIR="$WORK/stage" PREFIX=/usr LIBDIR=/usr/lib/machine \
    BINDIR=/opt/bin INCLUDEDIR=/opt/include DATADIR=/opt/share MANDIR=/opt/man -o all \
    > "$WORK/log" 2>&1 || cat "$WORK/log"
holds "make install mentions ldconfig" grep -q ldconfig "$WORK/log"
for file in /opt/bin/btrfs-walk /usr/lib/machine/libbtrfs-walk.so /opt/include/btrfs-walk/fs.h \
    /opt/man/man1/btrfs-walk.1 /opt/man/man1/btrfs-walk-ls.1 /opt/man/man7/btrfs-walk-probes.7 \
    /opt/share/zsh/site-functions/_btrfs-walk; do
    holds "make install installs $file" [ -e "$WORK/stage$file" ]
done
holds "the pkg-config file has the library folder" grep -qx 'libdir=${prefix}/lib/machine' \
    "$WORK/stage/usr/lib/machine/pkgconfig/btrfs-walk.pc"
holds "the pkg-config file has the version" grep -qx "Version: $version" \
    "$WORK/stage/usr/lib/machine/pkgconfig/btrfs-walk.pc"

# Even `pkg-config --cflags` needs the .pc files of all libraries that the static one needs.
# rpmbuild and abuild read their names from our .pc file, dpkg does not.
dependencies() { # PACKAGE FIELD: the names in a field of a paragraph of the control file
    awk -v package="$1" -v field="$2:" '
        /^(Source|Package):/ { inside = $2 == package }
        /^[^ ]/ { found = inside && $1 == field; sub(/^[^:]*: */, "") }
        found' packaging/debian/control | tr -d ' \n' | tr ',|' '\n\n' | sed 's/[(<$].*//' | sort
}
if [ -z "${PKG_CONFIG_SYSROOT_DIR:-}" ] && have dpkg-query pkg-config &&
    dpkg-query -S "$(command -v pkg-config)" > /dev/null 2>&1; then
    modules=$(sed -n 's/^Requires.private: //p' \
        "$WORK/stage/usr/lib/machine/pkgconfig/btrfs-walk.pc")
    for module in $modules; do
        dpkg-query -S "$(pkg-config --variable=pcfiledir "$module")/$module.pc" 2> "$WORK/err" |
            sed 's/:.*//' | grep . || echo "the package of $module: $(cat "$WORK/err")"
    done | sort -u > "$WORK/packages"
    is "the packages contain more than seven libraries" \
        "$([ "$(wc -l < "$WORK/packages")" -gt 7 ] && echo yes)" yes
    is "libraries that the Debian package for developers depends on" \
        "$(comm -23 "$WORK/packages" <(dependencies libbtrfs-walk-dev Depends))" ""
    is "libraries that building it needs" \
        "$(comm -23 "$WORK/packages" <(dependencies btrfs-walk Build-Depends))" ""
else
    skip "dpkg-query and pkg-config" "dependencies of the Debian packages"
fi
is "pages of the manual elsewhere" \
    "$(find "$WORK/stage" -name '*.1' ! -name '*.so.1' ! -path '*/opt/man/man1/*')" ""
finish
