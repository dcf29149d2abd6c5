#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The habits of ls, stat and find: the answers of the real ones, which fixtures/people has, and what
# only this program has besides: names from the image, sort keys, forms of times, rows of ls.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" people subvolumes data-shapes || exit 1
image=$BUILD/fixtures/people/dev1.img
export TZ=UTC LC_ALL=C.UTF-8
unset LS_COLORS NO_COLOR

out_is() { diff "$WORK/out" - <<< "$1"; }

# Same output as ls and stat. A line that begins with '$ ' is a command; '--' is replaced by the
# image, and -n by -l, which prints numbers here.
compare() {
    local command=$1
    [ -n "$command" ] || return
    command=${command/ -- / \"\$image\" }
    command=${command/ -n/ -l}
    eval "${command/#stat/run stat}" > "$WORK/have" 2>&1
    holds "btrfs-walk prints what was recorded on a mount: $1" cmp "$WORK/want" "$WORK/have"
}
run() { "$PROGRAM" "$@"; }
ls() { "$PROGRAM" ls "$@"; }
command=
while IFS= read -r line; do
    if [ "${line:0:2}" = '$ ' ]; then
        compare "$command"
        command=${line:2}
        : > "$WORK/want"
    else
        printf '%s\n' "$line" >> "$WORK/want"
    fi
done < "$ROOT/fixtures/people/answers"
compare "$command"
unset -f ls

# Names of users and groups are those of the image.
expect "an owner by name" 0 - --user ada "$image"
holds "--user lists four of the five files" [ "$(grep -c /size- "$WORK/out")" -eq 4 ]
expect "the same by number" 0 - -user 1000 -o path,user,group "$image"
holds "rows have names of users and groups" out_has $'^/@home/ada/size-20.dat\tada\tada$'
expect "a group" 0 - --group users --user ada --user bob -o user,group "$image"
holds "--user and --group select five files" out_is "$(printf 'bob\tusers\n%.0s' {1..5})"
expect "an owner without a name" 0 - -name README -o user,path "$image"
holds "an owner without a name is -" out_is $'-\t/@home/bob/README'
expect "a user who is not there" 2 "user 'eve': /@/etc/passwd has no such name" --user eve \
    "$image"
expect "the summary of no walk" 2 '^0 files, 0 directories, 0 subvolumes, 0 lost' --summary \
    --user eve "$image"
expect "no names at all" 2 "user 'ada': /etc/passwd has no such name" --user ada \
    "$BUILD/fixtures/subvolumes/dev1.img"
expect "a subvolume without its own" 0 - --subvol @home --user bob "$image"
holds "a subvolume without /etc/passwd has the names of another one" \
    [ "$(wc -l < "$WORK/out")" -eq 5 ]
expect "JSON has them if asked" 0 - ls --json -o path,user --subvol @home "$image" /bob/notes.tar
holds "JSON has the name of the user" out_is '{"path":"/bob/notes.tar","user":"bob"}'

cp --sparse=always "$image" "$WORK/image"
holds "a name alone in its line" change "$WORK/image" 256 265 108 0 set 77 1 10
expect "is no user" 2 "user 'bob': /@/etc/passwd has no such name" --user bob "$WORK/image"
expect "the lines before it are read" 0 - --user ada "$WORK/image"

# Order and times.
expect "a falling order" 0 - --sort -size -o size "$image"
holds "--sort -size sorts sizes backwards" sort -c -n -r "$WORK/out"
expect "by inode" 0 - --sort inode -o inode "$image"
holds "--sort inode sorts by inode" sort -c -n "$WORK/out"
expect "a key that is none" 2 'allowed: none, path, size' --sort colour "$image"
expect "ISO times" 0 - --name notes.tar --json -o mtime --times iso "$image"
holds "--times iso prints a string in JSON" out_is '{"mtime":"2001-02-03T04:05:06.789000000Z"}'
expect "times as seconds in JSON" 0 - --name "it's.txt" --json -o mtime --times s "$image"
holds "--times s prints a number in JSON" out_is '{"mtime":-0.500000000}'
expect "in columns" 0 - --name notes.tar -o mtime --times s "$image"
holds "--times s prints seconds in columns" out_is 981173106.789000000
expect "of stat" 0 - stat --json --times iso "$image" @home/bob/notes.tar
holds "--times iso works in JSON of stat" \
    grep -q '"mtime":"2001-02-03T04:05:06.789000000Z","ctime":"' "$WORK/out"
expect "a style that is none" 2 'allowed: full-iso, long-iso' ls -l --time-style=x "$image"
expect "a name that is no text" 0 - stat -c %N "$BUILD/fixtures/subvolumes/dev1.img" \
    $'/new\nline \\ \377'
holds "stat -c %N quotes a name with special characters" out_is "'/new'$'\\n''line \\ '$'\\377'"
is "seconds, and none of their fraction" "$("$PROGRAM" stat -c %.0Y "$image" /)" \
    "$("$PROGRAM" stat -c %Y "$image" /)"
expect "a directive that is none" 2 "unknown directive '%-5q'" stat -c '%-5q' "$image" /

# Of several orders, the last one counts, as in ls(1).
for orders in "-St -t" "-tS -S" "-tU -U" "-S --sort=name" "-U --sort=time"; do
    # shellcheck disable=SC2086 # words
    holds "of the orders $orders, the last one counts" same_bytes \
        <("$PROGRAM" ls $orders "$image" @home/bob) \
        <("$PROGRAM" ls "${orders##* }" "$image" @home/bob)
done

# Rows and colours of ls.
expect "rows of a directory" 0 - ls -o path,type --sort=size "$image" @/srv
holds "rows of ls have whole paths" \
    [ "$(sort "$WORK/out")" = $'/@/srv/shared\tdirectory\n/@/srv/sticky\tdirectory' ]
expect "an array" 0 - ls --json=array -o path "$image" @/srv
holds "ls --json=array prints an array" [ "$(tr -d '\n' < "$WORK/out")" = \
    '[{"path":"/@/srv/shared"},{"path":"/@/srv/sticky"}]' ]
expect "no colours in a pipe" 0 - ls --color=auto "$image" @
holds "--color=auto prints no colours into a pipe" out_is "$("$PROGRAM" ls "$image" @)"
LS_COLORS=nonsense expect "colours that make no sense" 0 'warning: .*no colours: cannot parse' \
    ls --color "$image" @
holds "invalid LS_COLORS leave the names without colours" out_is "$("$PROGRAM" ls "$image" @)"

# A subvolume that contains only nested subvolumes.
note='note: no files in this subvolume itself; .* the 3 subvolumes nested in it'
expect "nothing but subvolumes" 0 "$note" --subvol 5 "$image"
expect "nothing but subvolumes, quietly" 0 - -q --subvol 5 "$image"
expect "with those subvolumes" 0 - --subvol 5 --nested=yes "$image"
expect "to hash, too" 0 "$note" sum --subvol 5 "$image"
expect "to archive, too" 0 "$note" tar --subvol 5 -f "$WORK/archive" "$image"
expect "to extract, too" 0 "$note" extract --subvol 5 -C "$WORK/extracted" "$image"
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
for command in walk sum bodyfile "tar -f $WORK/archive" "extract -C $WORK/extracted-home"; do
    # shellcheck disable=SC2086 # words
    expect "not where there are files: $command" 0 - $command --subvol home "$subvolumes"
done
expect "one is no plural" 0 'the 1 subvolume nested' --subvol 257 --type l "$subvolumes"
expect "nor here" 0 '^1 file, 1 directory, 1 subvolume, 0 lost' --summary --subvol 257 "$subvolumes"

# Named directories are listed after named files, in their order.
expect "three directories and a file" 0 - ls "$image" @home/bob @home/ada @home/bob/README @/srv
is "named directories are sorted" \
    "$(grep / "$WORK/out" | paste -sd,)" '@home/bob/README,@/srv:,@home/ada:,@home/bob:'
expect "turned round" 0 - ls -r "$image" @home/bob @home/ada @/srv
is "-r reverses the order of named directories" \
    "$(grep / "$WORK/out" | paste -sd,)" '@home/bob:,@home/ada:,@/srv:'
holds "properties in rows of ls are those of walk" same_bytes \
    <(run_json ls -R --type f --json "$BUILD/fixtures/data-shapes/dev1.img" | sort) \
    <(run_json --json "$BUILD/fixtures/data-shapes/dev1.img" | sort)
finish
