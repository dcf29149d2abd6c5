#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Images on servers, in container formats and compressed: same output as for the plain image,
# whatever their names are; and no helper process where none is allowed.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" mixed raid1-2 || exit 1
plain=$BUILD/fixtures/mixed/dev1.img # the smallest one
cd "$WORK" || exit 1

# Without helper programs or without libnbd there is a message that says so.
printf 'QFI\373\0\0\0\3' > container
truncate -s 1M container
# Starts the program with an empty PATH.
printf '#!/bin/sh\nPATH=/nowhere exec "%s" "$@"\n' "$PROGRAM" > alone
chmod +x alone
expect "a container without its helper" 2 'it is a qcow2 image: .*convert' --helpers=off container
PROGRAM=$WORK/alone expect "a helper that is not installed" 2 \
    'it is a qcow2 image: .*convert' container
if ! grep -q NBD=1 "$BUILD/features"; then
    expect "an address" 2 'nbd://localhost/ cannot be read: .* built without libnbd' \
        nbd://localhost/
    skip "a build with libnbd" "images on servers"
    finish
fi
mkdir unloadable
echo "no library" > unloadable/libnbd.so.0
if grep -q RPATH < <(readelf -d "$PROGRAM" 2> /dev/null); then
    skip "a program without a path to libraries" "libnbd that cannot be loaded"
else
    LD_LIBRARY_PATH=$WORK/unloadable expect "libnbd that cannot be loaded" 2 \
        'libnbd is required: .*libnbd\.so\.0: ' 'nbd+unix:///?socket=/nowhere'
    LD_LIBRARY_PATH=$WORK/unloadable expect "nor has to be, for a file" 0 - "$plain"
fi
expect "no server" 2 'cannot connect to nbd\+unix:///\?socket=/nowhere: ' \
    'nbd+unix:///?socket=/nowhere'
# A server that does not answer: one timeout for everything that a command tries, for each command.
cat > silent.py <<'END'
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(9)
clients = []
while True:
    clients.append(server.accept()[0])
    print("a connection", flush=True)
END
python3 silent.py silent > connections &
silent=$!
soon [ -S silent ]
count=0
counted() { [ "$(wc -l < connections)" -eq "$count" ]; }
for words in walk info check devices super report\ -f\ page.html 'cat /file' 'deleted --no-scan'; do
    read -ra words <<< "$words"
    status=2
    [ "${words[0]}" != check ] || status=8
    expect "${words[0]} of a silent server" "$status" \
        'cannot connect to .*: the server has not answered for 100 ms; --timeout allows more' \
        "${words[0]}" --timeout 100ms "nbd+unix:///?socket=$WORK/silent" "${words[@]:1}"
    count=$((count + 1))
    holds "${words[0]}: connections up to now: $count" soon counted
done
{ kill "$silent" && wait "$silent"; } 2> /dev/null
for word in 0 x 25h 1us; do
    expect "a timeout of $word" 2 'allowed: 1ms to 24h, for example' --timeout "$word" "$plain"
done
expect "an address that needs a helper" 2 'https://x/ needs nbdkit, but helpers are switched off' \
    --helpers=off https://x/
PROGRAM=$WORK/alone expect "and it is not installed" 2 \
    'https://x/ needs nbdkit, which is not installed' https://x/

"$PROGRAM" "$plain" > paths
is "the plain image has the paths of its fixture" "$(wc -l < paths)" \
    "$(recorded mixed paths0 | tr -dc '\0' | wc -c)"
export TMPDIR=$WORK # for the sockets

# same NAME ARGUMENTS...: must list the same paths as the plain image.
same() {
    expect "$1" 0 - "${@:2}"
    holds "$1: walk lists the paths of the plain image" cmp paths "$WORK/out"
}

# gone WHAT: soon there must be no socket and no helper process any more.
gone() {
    nothing_left() { ! compgen -G "$WORK/btrfs-walk-*" > /dev/null; }
    soon nothing_left && pass || fail "$1: left: $(echo "$WORK"/btrfs-walk-*)"
}

containers() {
    local format
    for format in qcow2 vmdk vdi vhdx; do
        qemu-img convert -O $format "$plain" disk
        same "$format" disk
    done
    same "without a sandbox" --sandbox=off disk
    expect "facts, of what cannot be opened otherwise" 0 - info disk
    gone "helpers"
    mkdir shared && chmod 777 shared && touch -d @1 shared
    TMPDIR=$WORK/shared same "a TMPDIR that others may change" disk
    is "a TMPDIR that others may change is not used" "$(stat -c %Y shared)" 1
    for name in -d json:x 'nbd:x' 'a,b=c "\d'; do
        cp -- disk "$name"
        same "a file called $name" -- "$name"
    done
    cp disk $'\377'
    expect "a name that QEMU cannot be told" 2 'whose name is not UTF-8' $'\377'
    cp container broken
    expect "nonsense in a container" 2 'qemu-nbd cannot serve broken: ' broken
    gone "a helper that has failed"
    disks
    backing
    killed
}

# A partition of a disk in a container, and the list of them if there are several.
disks() {
    zstd -q -d "$ROOT/fixtures/disks/two.img.zst" -o two.img
    dd if="$plain" of=two.img bs=1M seek=1 conv=notrunc,sparse status=none
    dd if="$BUILD/fixtures/raid1-2/dev1.img" of=two.img bs=1M seek=130 conv=notrunc,sparse \
        status=none
    qemu-img convert -O qcow2 two.img two.qcow2
    same "a partition" --partition 1 two.qcow2
    expect "one has to be chosen" 2 'Choose one with --partition' two.qcow2
    holds "a table lists both partitions" [ "$(grep -cE '^ *[12] .* btrfs' "$WORK/err")" -eq 2 ]
    expect "another image, beside a plain one" 0 'compared' diff "$plain" / / --other disk
}

# Backing files are read only if the user asked for that.
backing() {
    local raw=$WORK/raw
    cp --sparse=always "$plain" "$raw"
    qemu-img create -q -f qcow2 -F raw -b "$raw" overlay
    expect "a backing file" 2 "it is based on $raw; --helpers=backing" overlay
    same "a backing file, allowed" --helpers=backing overlay
    qemu-img convert -O vmdk -o subformat=monolithicFlat "$plain" flat.vmdk
    expect "several files" 2 'its data are in other files; --helpers=backing' flat.vmdk
    same "several files, allowed" --helpers=backing flat.vmdk
    qemu-img create -q -f vmdk -b flat.vmdk -F vmdk overlay.vmdk
    expect "a backing file of vmdk" 2 'it is based on another file' overlay.vmdk
    qemu-img create -q -f qcow2 -o data_file="$WORK/data" external 1M
    expect "data elsewhere" 2 'its data are in another file' external
    # The name is not the first 32 KiB: it is still one.
    printf '\0\0\0\0\0\1\0\0' | dd of=overlay bs=1 seek=8 conv=notrunc status=none
    expect "a name far away" 2 'it is based on another file' overlay
}

# When the program is killed, its helper ends, too.
killed() {
    local helper= process
    exec {reader}< <(exec "$PROGRAM" tar disk)
    local waiting=$!
    read -r -N 1 -u "$reader"
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' 2> /dev/null < "$process/cmdline") in
        qemu-nbd*"$WORK/disk"*) helper=$process ;;
        esac
    done 2> /dev/null
    holds "the program has a helper" [ "$helper" ]
    kill -KILL $waiting
    gone "a program that was killed"
    holds "and its helper is gone" soon [ ! -e "$helper" ]
    exec {reader}<&-
}

compressed() {
    gzip -1 -c "$plain" > disk.gz
    same "gzip" disk.gz
    (head -c 1M "$plain" | gzip -1; tail -c +$((1 << 20 | 1)) "$plain" | gzip -1) > disk.gz
    same "gzip with two members" disk.gz
    xz -0 -c "$plain" > disk.xz
    same "xz" disk.xz
    is "which needs no helper" "$("$PROGRAM" graph disk.xz | grep -c 'layout/compressed')" 1
    cp disk.xz 'a=b,c'
    same "a file whose name looks like a parameter" 'a=b,c'
    have qemu-img && qemu-img convert -O qcow2 "$plain" disk && xz -0 -c disk > both.xz &&
        have qemu-nbd && same "xz around qcow2" both.xz
    gone "helpers"
}

servers() {
    local uri="nbd+unix:///?socket=$WORK/server"
    nbdkit -U "$WORK/server" -P "$WORK/server.pid" -r file "$plain"
    same "a server" "$uri"
    "$PROGRAM" graph "$uri" > graph.vol
    same "in a volfile" --graph graph.vol
    same "in the place of one" --graph graph.vol "$plain"
    expect "in the sandbox" 0 'sandbox: ' -v "$uri"
    kill "$(cat "$WORK/server.pid")"
    # It goes when the last leaf is asked for.
    leaf=$("$PROGRAM" --probe dev-read-start "$plain" 2>&1 > /dev/null |
        sed -n 's/.*offset=\([0-9]*\).*/\1/p' | tail -n 2 | head -n 1)
    nbdkit -U "$WORK/server2" -P "$WORK/server2.pid" -r eval "get_size=stat -Lc %s '$plain'" \
        "pread=[ \$4 -ne $leaf ] || kill -9 \$PPID
            dd if='$plain' iflag=skip_bytes,count_bytes count=\$3 skip=\$4 status=none"
    expect "a server that goes" 1 'lost the connection to nbd.unix.*server2.*reconnect' \
        --xlator-option storage/nbd.attempts=1 "nbd+unix:///?socket=$WORK/server2"
}

if have qemu-nbd qemu-img; then
    containers
else
    skip "qemu-nbd and qemu-img" "images of virtual machines"
fi
if have nbdkit xz; then
    compressed
    servers
else
    skip "nbdkit and xz" "compressed images and servers"
fi
finish
