#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The exit status of every command, on healthy, damaged and unsupported images and on none, after
# wrong usage and with a full stdout; and that each documented status occurs, and no other.
set -uo pipefail
. "$(dirname "$0")/common.bash"

fixtures=$BUILD/fixtures
"$ROOT/scripts/unpack-fixtures" "$fixtures" plain subvolumes quota lost-tree-root bad-data \
    superblock-copy-lost empty raid5-3 || exit 1
healthy=$fixtures/subvolumes/dev1.img
damaged=$fixtures/lost-tree-root/dev1.img
cp --sparse=always "$healthy" "$WORK/unsupported"
holds "a feature that nobody knows" change "$WORK/unsupported" super 188 8 9223372036854775808
"$PROGRAM" --blackbox "$WORK/box" "$healthy" > "$WORK/out" 2> "$WORK/err"

# The documented statuses of each command. rescue.sh and mount.sh try those of theirs.
"$PROGRAM" --dump-tables > "$WORK/tables"
python3 -c '
import json, sys
tables = json.load(open(sys.argv[1]))
for command in tables["commands"]:
    if command["name"] not in ("mount", "rescue"):
        rows = command["exit_statuses"] or tables["exit_statuses"]
        print(command["name"], *(row["status"] for row in rows))
' "$WORK/tables" > "$WORK/documented"

# seen COMMAND STATUS: notes that the command has ended with this status.
declare -A seen
seen() { seen[$1]+=" $2"; }

# status STATUS COMMAND ARGUMENTS...: the command must end with this status. With FULL set, its
# stdout is full.
status() {
    local want=$1 got to=$WORK/out
    shift
    [ -z "${FULL:-}" ] || to=/dev/full
    rm -rf "$WORK/target"
    mkdir "$WORK/target"
    timeout 60 "$PROGRAM" "$@" > "$to" 2> "$WORK/err" < /dev/null
    got=$?
    seen "$1" "$got"
    is "${FULL:+a full stdout: }$*" "$got" "$want"
}

# The columns: healthy, full stdout, wrong usage, no such file, not btrfs, an unsupported feature, a
# lost root tree, in which a subvolume may be missing. IMAGE in the arguments is replaced; '-' skips
# the situation.
situations() {
    local command healthy_ full usage absent foreign unsupported damaged_ arguments
    while read -r command healthy_ full usage absent foreign unsupported damaged_ arguments; do
        grep -q "^$command " "$WORK/documented" || {
            skip "the command $command" "its exit statuses"
            continue
        }
        try() { # try STATUS IMAGE
            local words=${arguments//IMAGE/$2}
            # shellcheck disable=SC2086
            [ "$1" = - ] || status "$1" "$command" $words
        }
        try "$healthy_" "$healthy"
        FULL=1 try "$full" "$healthy"
        [ "$usage" = - ] || status "$usage" "$command" --no-such-option "$healthy"
        try "$absent" "$WORK/absent"
        try "$foreign" "$ROOT/Makefile"
        try "$unsupported" "$WORK/unsupported"
        try "$damaged_" "$damaged"
    done
}

# command      ok full usage absent foreign unsupported damaged arguments
situations << END
walk           0 1 2 2 2 3 1 IMAGE
ls             0 1 2 2 2 3 1 IMAGE /
stat           0 1 2 2 2 3 1 IMAGE /
cat            0 1 2 2 2 3 1 IMAGE /top-file
xattr          0 - 2 2 2 3 1 IMAGE /
extents        0 1 2 2 2 3 1 IMAGE /top-file
tar            0 1 2 2 2 3 1 IMAGE
extract        0 - 2 2 2 3 1 -C $WORK/target IMAGE
sum            0 1 2 2 2 3 1 IMAGE
bodyfile       0 1 2 2 2 3 1 IMAGE
send           0 1 2 2 2 3 2 IMAGE home-read-only
copy           0 - 2 2 2 3 1 -f $WORK/target/copy IMAGE
versions       0 1 2 2 2 3 1 IMAGE /top-file
deleted        0 1 2 2 2 3 1 --header IMAGE
roots          0 1 2 2 2 3 1 IMAGE
log            0 - 2 2 2 3 1 IMAGE
info           0 1 2 2 2 3 1 IMAGE
check          0 8 16 8 12 8 4 IMAGE
owner          0 1 2 2 2 3 1 IMAGE 13631488
devices        0 1 2 2 2 3 1 IMAGE
show           0 1 2 2 2 2 1 IMAGE
report         0 1 2 2 2 3 1 IMAGE
repair         0 1 2 2 2 3 1 --header IMAGE
metadump       0 - 2 2 2 3 1 -f $WORK/target/dump IMAGE
usage          0 1 2 2 2 3 1 IMAGE
du             0 1 2 2 2 3 1 IMAGE
space          0 1 2 2 2 3 1 IMAGE
free           0 1 2 2 2 3 1 IMAGE
compression    0 1 2 2 2 3 1 IMAGE
qgroups        0 - 2 2 2 3 1 IMAGE
picture        0 1 2 2 2 3 1 IMAGE
subvolumes     0 1 2 2 2 3 1 IMAGE
diff           0 1 2 2 2 3 - IMAGE home home-read-only
super          0 1 2 2 2 0 0 IMAGE
chunks         0 1 2 2 2 3 1 IMAGE
map            0 1 2 2 2 3 1 IMAGE 13631488
tree-stats     0 1 2 2 2 3 1 IMAGE
dump           0 1 2 2 2 3 1 IMAGE
graph          0 1 2 2 2 3 0 IMAGE
xlators        0 1 2 - - - -
blackbox       0 1 2 - - - - $WORK/box
help           0 1 2 - - - -
END

# What commands do not find, or do not read.
status 1 ls "$healthy" /absent
status 2 walk
status 2 walk --generation 99 "$healthy"
status 1 walk "$healthy" "$fixtures/empty/dev1.img"
status 2 send "$healthy" no-subvolume
status 2 xlators no/such-type
status 2 blackbox "$healthy"
status 2 help no-such-command
status 0 walk "$fixtures/raid5-3"/dev[12].img
status 1 cat "$fixtures/bad-data/dev1.img" /bad-zstd
status 1 extract -C "$WORK/target" "$fixtures/bad-data/dev1.img"
status 1 super "$fixtures/superblock-copy-lost/dev1.img"

# check has the bits of fsck(8).
status 16 check
status 16 check --quick --data "$healthy"
status 16 check --generation 99 "$healthy"
status 8 check "$healthy" "$fixtures/empty/dev1.img"
status 12 check "$fixtures/raid5-3/dev3.img"
status 4 check --data "$fixtures/bad-data/dev1.img"
status 0 check "$fixtures/bad-data/dev1.img"
status 1 report --check data "$fixtures/bad-data/dev1.img"

# What help and manual document is what occurs.
while read -r command documented; do
    occurred=$(printf '%s\n' ${seen[$command]:-} | sort -nu | xargs)
    is "$command ends with exactly its documented statuses" "$occurred" "$documented"
done < "$WORK/documented"

finish
