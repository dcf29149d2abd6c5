#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The sandbox: a layer that tries things which reading does not need fails inside it, and succeeds
# without it; outputs, signals and block devices work inside it.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain checksum-sha256 || exit 1
image=$WORK/image
cp "$BUILD/fixtures/plain/dev1.img" "$image"
expect "switched off" 0 'note: no sandbox: (--sandbox=off|this program)' -v --sandbox=off "$image"
expect "neither on nor off" 2 'sandbox' --sandbox=maybe "$image"
expect "on" 0 'note: (no )?sandbox: ' -v "$image"
grep -q "no sandbox" "$WORK/err" &&
    { skip "a build with the sandbox" "$(cat "$WORK/err")"; finish; }
grep -q "Landlock: on" "$WORK/err"; landlock=$?
grep -q "seccomp: on" "$WORK/err"; seccomp=$?

export BTRFS_WALK_XLATOR_PATH=$WORK/xlators
mkdir -p "$WORK/xlators/toys" "$WORK/outside" "$WORK/dest"
holds "the layer is built" "${COMPILER[@]}" -shared -fPIC -D_GNU_SOURCE \
    -I"$ROOT/include" -o \
    "$WORK/xlators/toys/breakout.so" "$ROOT/tests/plugin/breakout.c"

victim=$WORK/victim
as=() # the command that changes the user, if any

# breaks_out FOLDER ARGUMENTS...: the attempts, which make things in this folder and change the
# victim outside of it.
breaks_out() {
    local folder=$1
    shift
    mkdir -p "$folder"
    touch "$folder/old" "$victim"
    chmod 600 "$victim"
    [ ${#as[@]} -eq 0 ] || chown -R 1000:1000 "$folder" "$victim"
    timeout 60 "${as[@]}" "$PROGRAM" "$@" --insert \
        "toys/breakout@device-1,folder=$folder,image=$image,victim=$victim" > /dev/null \
        2> "$WORK/err" < /dev/null
    rm -rf "$folder"
}

# all WORD [BUT]: whether all attempts of the last run ended like this, except that those that match
# BUT ended in the other way. Those about the image are left to others.
all() {
    local other=allowed but=${2:-^$}
    [ "$1" = forbidden ] || other=forbidden
    grep '^breakout: ' "$WORK/err" | grep -v '^breakout: image: ' > "$WORK/attempts"
    [ "$(wc -l < "$WORK/attempts")" -ge 40 ] || { tail -n 3 "$WORK/err"; return 1; }
    { grep -vE "$but" "$WORK/attempts" | grep -v ": $1\$"
        grep -E "$but" "$WORK/attempts" | grep -v ": $other\$"; } > "$WORK/others"
    cat "$WORK/others"
    [ ! -s "$WORK/others" ]
}

# Readers, and commands that write files.
commands_stay() {
    local command
    for command in walk info ls tar sum dump super graph; do
        breaks_out "$WORK/outside" $command "$image"
        holds "nothing breaks out of $command $*" all forbidden
    done
    for command in extract 'extract --preserve' 'extract --skip-existing'; do
        breaks_out "$WORK/dest" $command -q -C "$WORK/dest" "$image"
        holds "$command may change its folder only $*" all forbidden 'breakout: folder: '
        [ "$command" = 'extract --preserve' ] ||
            holds "$command gives the image no privileges $*" \
                grep -q '^breakout: image: .*forbidden' "$WORK/err"
        mkdir "$WORK/dest"
        [ ${#as[@]} -eq 0 ] || chown 1000:1000 "$WORK/dest"
        breaks_out "$WORK/outside" $command -q -C "$WORK/dest" "$image"
        holds "outside of it, $command changes nothing $*" all forbidden
        rm -rf "$WORK/dest"
    done
}

# The process that reads the image needs no rights in the folder. Another one makes everything
# there; it reads no image, and has no other rights.
subvolumes_stay() {
    breaks_out "$WORK/dest" extract --subvolumes -q -C "$WORK/dest" "$image"
    holds "the reader of extract --subvolumes changes nothing $*" all forbidden
    "${COMPILER[@]}" -shared -fPIC -w -o "$WORK/intruder.so" "$ROOT/tests/preload/intruder.c" \
        2> /dev/null || return
    LD_PRELOAD=$WORK/intruder.so "$PROGRAM" --version > /dev/null || return
    mkdir -p "$WORK/outside" "$WORK/dest"
    touch "$WORK/outside/file"
    [ ${#as[@]} -eq 0 ] || chown -R 1000:1000 "$WORK/outside" "$WORK/dest"
    "${as[@]}" env LD_PRELOAD="$WORK/intruder.so" OUTSIDE="$WORK/outside" "$PROGRAM" extract \
        --subvolumes -q -C "$WORK/dest" "$image" > /dev/null 2> "$WORK/err" &
    soon grep -q '^receiver waits: ' "$WORK/err"
    local receiver
    receiver=$(sed -n 's/^receiver waits: //p' "$WORK/err")
    # CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SYS_ADMIN (for attributes), MKNOD, SETFCAP
    if [ ${#as[@]} -eq 0 ] && [ "$(id -u)" -eq 0 ]; then
        is "the receiver has no capabilities beyond those it needs" \
            "$((0x$(sed -n 's/^CapEff:\s*//p' \
            "/proc/$receiver/status") & ~0x8820001b))" 0
    fi
    kill -CONT "$receiver"
    wait $!
    is "what the receiver may do $*" \
        "$(grep '^receiver: ' "$WORK/err" | grep -v ': forbidden$')" ''
    is "the receiver makes 17 attempts $*" "$(grep -c '^receiver: ' "$WORK/err")" 17
    rm -rf "$WORK/dest" "$WORK/outside"
}

# A FUSE server. The image is read before it is mounted.
mounts_stay() {
    mkdir -p "$WORK/mnt"
    : > "$WORK/err"
    breaks_out "$WORK/outside" mount "$image" "$WORK/mnt" &
    local mounting=$!
    holds "nothing breaks out of mount" all_soon
    fusermount3 -u "$WORK/mnt" 2> /dev/null || umount "$WORK/mnt" 2> /dev/null
    wait $mounting
}
all_soon() { soon grep -q 'root: a namespace' "$WORK/err" && all forbidden; }

# Images on servers, and behind helpers.
servers_stay() {
    local port uri
    if have qemu-nbd qemu-img; then
        qemu-img convert -O qcow2 "$image" "$WORK/image.qcow2"
        breaks_out "$WORK/outside" walk "$WORK/image.qcow2"
        holds "nothing breaks out beside a helper" all forbidden
        breaks_out "$WORK/dest" extract -q -C "$WORK/dest" "$WORK/image.qcow2"
        holds "nor out of an extraction" all forbidden 'breakout: folder: '
    fi
    have nbdkit || return
    nbdkit -U "$WORK/server" -P "$WORK/server.pid" -r file "$image"
    breaks_out "$WORK/outside" walk "nbd+unix:///?socket=$WORK/server"
    holds "beside a server: sockets only" all forbidden ': a socket'
    kill "$(cat "$WORK/server.pid")"
    port=$((20000 + RANDOM % 10000))
    nbdkit -i 127.0.0.1 -p $port -P "$WORK/server2.pid" -r file "$image" || return
    for uri in "nbd://127.0.0.1:$port" "nbd://localhost:$port"; do
        if [[ $uri == *localhost* ]] && ! getent hosts localhost > /dev/null; then
            skip "the name localhost" "beside a server with a name"
            continue
        fi
        breaks_out "$WORK/outside" walk "$uri"
        holds "beside $uri: sockets to machines only" all forbidden ': a socket:'
    done
    kill "$(cat "$WORK/server2.pid")"
}

if [ $landlock -ne 0 ] || [ $seccomp -ne 0 ]; then
    skip "Landlock and seccomp" "what commands stay in"
else
    commands_stay
    subvolumes_stay
    if grep -q FUSE=1 "$BUILD/features"; then mounts_stay; fi
    if grep -q NBD=1 "$BUILD/features"; then servers_stay; fi
fi
breaks_out "$WORK/outside" --sandbox=off "$image"
if [ "$(id -u)" -ne 0 ] || ! mknod "$WORK/disk" b 240 255 2> /dev/null; then
    sed -i '/^breakout: root: /d' "$WORK/err" # the kernel answers these, not the sandbox
fi
holds "without a sandbox everything succeeds: $(grep forbidden "$WORK/err")" all allowed \
    'without rights'

# Output files are opened before the sandbox is entered.
mkdir "$WORK/kept"
expect "a statedump" 0 - --statedump "$WORK/kept/dump" "$image"
holds "the statedump is written" grep -q '"graph"' "$WORK/kept/dump"
expect "a trace" 0 - --insert "debug/trace@device-1,file=$WORK/kept/trace" "$image"
holds "the trace is written" [ -s "$WORK/kept/trace" ]
expect "a trace into a folder that is not there" 2 'nowhere' --insert \
    "debug/trace@device-1,file=$WORK/nowhere/trace" "$image"
expect "probes" 0 - --probe '*' --probe-output "$WORK/kept/probes" --blackbox "$WORK/kept/box" \
    "$image"
holds "the black box is written" [ -s "$WORK/kept/box" ]
expect "an archive" 0 'skipped: sockets cannot be archived' tar -f "$WORK/kept/tar" "$image"
holds "the archive is written" tar -tf "$WORK/kept/tar"
expect "no archive of what is not there" 2 'cannot open .*nothing' tar -f "$WORK/kept/tar" \
    "$WORK/nothing"
holds "the one before is left" tar -tf "$WORK/kept/tar"
expect "extract" 0 '2 device nodes were left out' extract -C "$WORK/kept/folder" "$image"
holds "the files are extracted" [ -f "$WORK/kept/folder/top-file" ]
expect "no folder for what is not there" 2 'cannot open .*nothing' extract -C "$WORK/kept/other" \
    "$WORK/nothing"
holds "no folder is made without an image" [ ! -e "$WORK/kept/other" ]
expect "a directory as an image" 2 'a directory, not an image' "$WORK"
expect "hashes of libgcrypt" 0 - sum "$BUILD/fixtures/checksum-sha256/dev1.img"
expect "many threads" 0 - -j 8 -o size,path "$image"

# A program that waits for the reader of its pipe, inspected from outside.
exec {reader}< <(exec "$PROGRAM" tar "$image")
waiting=$!
is_confined() {
    grep -q '^NoNewPrivs:.*1' "/proc/$waiting/status" &&
        [ "$(find "/proc/$waiting/task" -maxdepth 1 2> /dev/null | wc -l)" -gt 2 ]
}
soon is_confined
holds "no privileges can be gained" grep -q '^NoNewPrivs:.*1' "/proc/$waiting/status"
if [ $seccomp -eq 0 ]; then
    holds "all threads are confined" [ \
        "$(sort -u <(sed -n 's/^Seccomp:\s*//p' /proc/"$waiting"/task/*/status))" = 2 ]
fi
if have gdb; then
    holds "a debugger can attach" grep -q "Thread\|LWP" \
        <(gdb -p "$waiting" -batch -ex 'info threads' 2>&1)
fi
kill -USR1 "$waiting"
kill -TERM "$waiting"
wait "$waiting"
is "a signal ends the confined program" $? 143
exec {reader}<&-

# A container whose filter knows neither: the program goes on without.
cat > "$WORK/without.c" << 'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 1, 0), /* landlock_create_ruleset */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 77;
    return execv(words[1], words + (count > 1));
}
END
holds "the filter is built" "${COMPILER[@]}" -o "$WORK/without" "$WORK/without.c"
if "$WORK/without" /bin/true; then
    holds "a kernel with neither: it is said" grep -q 'Landlock: [^o].*; seccomp: [^o]' \
        <("$WORK/without" "$PROGRAM" -v "$image" 2>&1 > /dev/null)
    holds "a kernel without both is reported only with -v" \
        [ -z "$("$WORK/without" "$PROGRAM" "$image" 2>&1 > /dev/null)" ]
fi
if have valgrind && ! valgrind -q "$PROGRAM" --version > /dev/null 2>&1; then
    skip "valgrind does not run this program" # it is built for another machine
elif have valgrind; then
    holds "valgrind runs the confined program" valgrind -q "$PROGRAM" "$image"
fi

# As another user, and on a block device.
if [ "$(id -u)" -ne 0 ]; then
    skip root "another user and a block device"
    finish
fi
chmod 755 "$WORK"
cp "$PROGRAM" "$WORK/program"
if have setpriv && setpriv --reuid=1000 --regid=1000 --clear-groups "$WORK/program" --version > \
    /dev/null 2>&1; then
    if [ $landlock -eq 0 ] && [ $seccomp -eq 0 ]; then
        as=(setpriv --reuid=1000 --regid=1000 --clear-groups)
        PROGRAM=$WORK/program commands_stay as a user
        PROGRAM=$WORK/program subvolumes_stay as a user
        as=()
    fi
    setpriv --reuid=1000 --regid=1000 --clear-groups "$WORK/program" -v "$image" > \
        "$WORK/kept/list" 2> "$WORK/err"
    holds "the same for a user" cmp <("$PROGRAM" "$image") "$WORK/kept/list"
    holds "a user is confined as root is" \
        diff <("$PROGRAM" -v "$image" 2>&1 > /dev/null | grep sandbox) \
        <(grep sandbox "$WORK/err")
    if mknod -m 600 "$WORK/device" b 1 0 2> /dev/null; then
        setpriv --reuid=1000 --regid=1000 --clear-groups "$WORK/program" "$WORK/device" \
            2> "$WORK/err"
        holds "a device without permission" grep -q 'denied; try as root, or as' "$WORK/err"
    fi
fi
if have losetup && loop=$(losetup -r -f --show "$image" 2> /dev/null); then
    trap 'losetup -d "$loop"; rm -rf "$WORK"' EXIT
    holds "a block device lists the same as the image" \
        cmp <("$PROGRAM" "$image") <("$PROGRAM" "$loop")
    expect "facts about a block device" 0 - info "$loop"
    expect "an extraction from a block device" 0 'device nodes' \
        extract -C "$WORK/kept/device" "$loop"
fi
finish
