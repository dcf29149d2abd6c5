#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The filters of walk: types, conditions, depth, sorting, invalid options. As root, and
# with btrfs in the kernel, also compared with find(1) on a mount.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" || exit 1
plain=$BUILD/fixtures/plain/dev1.img
subvolumes=$BUILD/fixtures/subvolumes/dev1.img
all=f,d,l,c,b,p,s
export LC_ALL=C.UTF-8 TZ=UTC

# lists DESCRIPTION LINES ARGUMENTS...: must print exactly these lines, and nothing on stderr.
lists() {
    local what=$1 want=$2 have
    shift 2
    have=$(timeout 60 "$PROGRAM" "$@" 2> "$WORK/err")
    if [ $? -ne 0 ] || [ -s "$WORK/err" ]; then
        fail "$what: $(head -n 2 "$WORK/err")"
    elif [ "$have" = "$want" ]; then
        pass
    else
        fail "$what: $(head -n 3 <<< "$have")"
    fi
}
# counts DESCRIPTION NUMBER ARGUMENTS...: must print this many paths.
counts() {
    local what=$1 want=$2 have
    shift 2
    have=$(timeout 60 "$PROGRAM" -0 "$@" 2> "$WORK/err" | tr -dc '\0' | wc -c)
    if [ "$have" -eq "$want" ] && [ ! -s "$WORK/err" ]; then
        pass
    else
        fail "$what: $have, not $want $(head -n 1 "$WORK/err")"
    fi
}
# refused TEXT ARGUMENTS...: must exit with 2 before any image is opened, with this text on stderr
# and nothing on stdout.
refused() {
    local text=$1 out status
    shift
    out=$("$PROGRAM" "$@" "$WORK/no-such-image" 2> "$WORK/err")
    status=$?
    if [ "$status" -eq 2 ] && [ -z "$out" ] && grep -qF -- "$text" "$WORK/err" &&
        ! grep -q no-such-image "$WORK/err"; then
        pass
    else
        fail "$*: status $status, $(head -n 1 "$WORK/err")"
    fi
}

# Types.
lists "types select links and devices" \
    $'/kinds/block-device\n/kinds/character-device\n/kinds/symlink\n/kinds/dangling-symlink\n/ki'\
$'nds/long-symlink' \
    --type b,c,l --path '/kinds/*' "$plain"
lists "--type is accepted twice" \
    $'/docs/pipe\n/kinds/fifo\n/kinds/socket' --type p --type s "$plain"
lists "--maxdepth 0 lists the top directory" / --type d --maxdepth 0 "$plain"
lists "--type d lists directories that match" $'/docs/letters\n/source/library' --type d \
    --regex '/(docs|source)/.*' "$plain"
counts "files alone are the default" "$("$PROGRAM" -0 --type f "$plain" | tr -dc '\0' | wc -c)" \
    "$plain"
holds "files with a filter come in the order of all files" same_bytes <("$PROGRAM" -0 "$plain") \
    <("$PROGRAM" -0 --type f --name '*' "$plain")
holds "one thread and four list the same order" same_bytes \
    <("$PROGRAM" -0 -j 1 --type "$all" "$subvolumes") \
    <("$PROGRAM" -0 -j 4 --type "$all" "$subvolumes")

# Conditions.
counts "--name selects eight files" 8 --name '0?.txt' "$plain"
counts "two names are alternatives" 9 --name '0?.txt' --name top-file "$plain"
counts "different filters must all match" 1 --name '0?.txt' --path '*3*' "$plain"
counts "--iname ignores case" 8 --iname '0?.TXT' "$plain"
counts "a '[' without its ']' is an ordinary character" 0 --name '[0' "$plain"
counts "--regex selects three files" 3 --regex '/docs/letters/0[1-3].*' "$plain"
lists "--size with c selects a size in bytes" \
    $'/docs/second name of large.bin\n/source/large.bin' --size 20000c "$plain"
lists "--size selects a range in KiB" /data/only-hole --size +1023k --size -1025k "$plain"
lists "--links selects files with two names" \
    $'/docs/second name of large.bin\n/source/large.bin' --links 2 "$plain"
lists "--empty selects empty directories" \
    $'/empty\n/kinds/directory\n/collisions/links\n/younger/older' --type d \
    --empty --exclude many "$plain"
counts "--newer with a future date selects nothing" 0 --newer 2200-01-01 "$plain"
counts "--newer accepts a time zone" 1 --newer '1999-12-31 23:59:59+01:00' --name top-file "$plain"
lists "--xattr selects files with an attribute" /data/inline --xattr 'user.o*' "$plain"
lists "two attributes are alternatives" \
    /data/inline --xattr security.capability --xattr user.note "$plain"
lists "--xattr and --type must both match" '' --xattr 'user.*' --type d "$plain"
counts "--newer-generation leaves out older files" 249 --newer-generation 7 "$plain"
counts "--newer-generation 0 selects all files" 336 --newer-generation 0 "$plain"
for command in 'ls -R -o path' 'sum' 'du -o path --type f' 'bodyfile'; do
    # shellcheck disable=SC2086 # words
    is "$command has --xattr" "$("$PROGRAM" $command --xattr user.other "$plain" |
        grep -o '/data/inline')" /data/inline
done
is "tar has --xattr" "$("$PROGRAM" tar --xattr user.other "$plain" | tar -t)" data/inline
is "--xattr works with several threads and --sort" \
    "$("$PROGRAM" -j 4 --sort path --xattr '*' "$plain")" /data/inline
counts "--perm selects permissions" 0 --perm /7022 --type f "$plain"
lists "--exclude leaves out paths" \
    $'/\n/top-file' --type f,d --maxdepth 1 --exclude '/[a-su-z]*' "$plain"
holds "rows of what is chosen" \
    [ "$("$PROGRAM" -o size,type,path --name 'l*.bin' --type f,l \
        "$plain")" = $'20000\tfile\t/source/large.bin' ]
holds "filters select rows of JSON" grep -q '"path":"/kinds/fifo".*"type":"fifo"' \
    <(run_json --json --type p "$plain")
holds "filters by name read no more metadata" \
    [ "$("$PROGRAM" --name zz --summary "$plain" 2>&1 | sed 's/.*blocks, //;s/ bytes.*//')" -le \
    "$("$PROGRAM" --summary "$plain" 2>&1 > /dev/null | sed 's/.*blocks, //;s/ bytes.*//')" ]
holds "the summary counts what is listed" \
    grep -q '^8 files' <("$PROGRAM" --name '0?.txt' --summary "$plain" 2>&1 > /dev/null)

# Sorting.
holds "--sort path sorts all paths" same_bytes <("$PROGRAM" -0 --sort path --type "$all" "$plain") \
    <("$PROGRAM" -0 --type "$all" "$plain" | LC_ALL=C sort -z)
holds "--sort -path sorts all paths backwards" \
    same_bytes <("$PROGRAM" -0 --sort -path --type "$all" "$plain") \
    <("$PROGRAM" -0 --type "$all" "$plain" | LC_ALL=C sort -rz)
expect "rows sorted by size" 0 - --sort size -o size "$plain"
holds "--sort size sorts rows by size" sort -c -n "$WORK/out"
expect "rows sorted by time" 0 - --sort mtime -o mtime --type "$all" "$plain"
holds "--sort mtime sorts rows by time" sort -c -n "$WORK/out"
is "--sort mtime begins with a time before 1970" \
    "$("$PROGRAM" --sort mtime -o mtime --type "$all" "$BUILD/fixtures/people/dev1.img" |
        head -n 1 | cut -c 1)" -
expect "paths sorted by time" 0 - -0 --sort mtime "$plain"
holds "--sort mtime lists every file" cmp <(LC_ALL=C sort -z "$WORK/out") \
    <(recorded plain paths0 | LC_ALL=C sort -z)
holds "--sort with --json=array prints an array" \
    [ "$(run_json --sort size --json=array --name '0?.txt' "$plain" | tr -d '\n' |
        grep -c '^\[{.*}\]$')" -eq 1 ]
holds "--sort with --json=array and no file prints []" \
    [ "$(run_json --sort size --json=array --name none "$plain" | tr -d '\n')" = '[]' ]

# Refusals.
refused "invalid argument of --sort" --sort colour
for list in '' x f, ,f fd f,,d 'f d'; do
    refused "invalid argument of --type: $list" --type "$list"
done
for size in '' M 1x 1.5M ++1 1k1; do refused "--size '$size'" --size "$size"; done
refused "--regex '('" --regex '('
refused "--newer 'yesterday'" --newer yesterday
refused "--newer '2026-02-30'" --newer 2026-02-30
refused "--newer '2300-01-01': a time from 1678 to 2262 is" --newer 2300-01-01
refused "--mtime '1.5'" --mtime 1.5
refused "--newer-generation '+7'" --newer-generation +7
refused "--uid 'root'" --uid root
refused "--user ''" --user ''
for mode in u=y +222 - / u,g+x 1755,; do refused "--perm '$mode'" --perm "$mode"; done
for word in --not -not '!' '(' ')' --open --close --or -or --inum --and -and; do
    refused "the option $word was removed: " -name x "$word"
done
refused "--sort=name was removed: run sort(1)" --sort -name
refused "--sort=disk was removed: use 'du" --sort disk
refused "the option --long was removed: use 'ls -lR'" --long
refused 'the option --reverse was removed: --sort -size' --sort size --reverse
refused 'the option -o was removed: several patterns' -name x -o -name y
refused 'the option -wholename was removed: use --path' -wholename x
refused 'the option --newermt was removed: use --newer' --newermt=2026-01-01
refused "-exec: pipe -0 into" -exec
refused "--perm '8'" --perm 8
refused "--maxdepth: -1" --maxdepth -1

# Options of find in the spelling of find, unless they are arguments of other options.
holds "options in the spelling of find select the same" \
    same_bytes <("$PROGRAM" "$plain" -name '0?.txt' -size +1c -print0) \
    <("$PROGRAM" -0 --name '0?.txt' --size +1c "$plain")
holds "an argument of --name is no option" [ -z "$("$PROGRAM" --name -type "$plain")" ]
refused "invalid argument of --threads: !" -j '!'
lists "patterns of one filter: either" $'/docs/second name of large.bin\n/source/large.bin' \
    -name 's*' --path '*large.bin' --name 'l*' "$plain"
lists "different filters must both match" '' -name 'l*' -path '*txt' "$plain"
lists "two numbers are a range" $'/docs/second name of large.bin\n/source/large.bin' \
    --size +15k --size -30k "$plain"
lists "types are alternatives" $'/docs/pipe\n/kinds/fifo\n/kinds/socket' -type s -type p "$plain"
lists "--mindepth and --maxdepth select a level" \
    $'/docs/letters\n/source/library' --type d --mindepth 2 --maxdepth 2 \
    --path '/[ds]*' "$plain"
expect "not the start" 0 - ls -R --mindepth 2 --maxdepth 2 -type d "$plain" source
# Against find(1), on a mount.
mounted=
unmount() { [ -z "$mounted" ] || umount "$mounted"; mounted=; }
trap 'unmount; rm -rf "$WORK"' EXIT
# same FIND-ARGUMENTS -- ARGUMENTS...: both must print the same paths, except for the top directory,
# whose name differs.
same() {
    local -a find=()
    while [ "$1" != -- ]; do find+=("$1"); shift; done
    shift
    (cd "$mounted" && find . -mindepth 1 "${find[@]}" -print0) | sed -z 's/^\.//' |
        LC_ALL=C sort -z > "$WORK/want"
    [[ " $* " == *" --type "* ]] || set -- "$@" --type "$all"
    "$PROGRAM" -q -0 "$@" "$image" | LC_ALL=C grep -zavx / |
        LC_ALL=C sort -z > "$WORK/have"
    if cmp -s "$WORK/want" "$WORK/have"; then
        pass
    else
        fail "$* is not what find ${find[*]} says"
    fi
}
compare() {
    local n
    same --
    for n in 0 1 -1 +0 1k +1k -2k 1M +1M 20000c +20000c -11c 2b 40b; do
        same -size "$n" -- --size "$n"
    done
    for n in 0 +0 1 +1000; do same -mtime "$n" -type f -- --mtime "$n" --type f; done
    for n in 644 -444 /111 0 /7000 -0; do same -perm "$n" -- --perm "$n"; done
    for n in 1 +1 -2; do same -links "$n" -- --links "$n"; done
    for n in '*' '*.txt' '[0-9]*' '?' '*[!a-z]' '.*'; do same -name "$n" -- --name "$n"; done
    same -iname '*S*' -- --iname '*S*'
    same -path './*/*a*/*' -- --path '/*/*a*/*'
    LC_ALL=C same -regextype posix-extended -regex '\./[a-z]+/[^/]*' -- --regex '/[a-z]+/[^/]*'
    same -empty -- --empty
    for n in u+s -u=rw,g+r /a+x /a=X u=rwX,go=rX -u+w,o=; do same -perm "$n" -- --perm "$n"; done
    same '(' -name '*.c' -o -name 'm*' ')' -size +1 -- --name '*.c' --size +1 --name 'm*'
    same -mmin -100000000 -newerct 2026-01-01 -- --mmin -100000000 --newerct 2026-01-01
    same -maxdepth 2 -- --maxdepth 2
    same -mindepth 2 -maxdepth 3 -name 'm*' -- -mindepth 2 -maxdepth 3 -name 'm*'
    same -uid 0 -gid 0 -- --uid 0 --gid 0
    same -newermt 2026-01-01 -type f -- --newer 2026-01-01 --type f
    same '(' -name 'm*' -o -path ./docs ')' -prune -o -size -1k -- --exclude 'm*' --exclude /docs \
        --size -1k
}
if [ "$(id -u)" -ne 0 ] || ! grep -qw btrfs /proc/filesystems ||
    ! find --version > /dev/null 2>&1; then
    skip "root and a kernel with btrfs" "a comparison with find on a mount"
else
    mkdir -p "$WORK/mount"
    for original in "$plain" "$subvolumes"; do
        # Mounts a copy, since other tests that read the image would get a warning that it is
        # mounted.
        image=$WORK/copy.img
        cp --sparse=always "$original" "$image"
        if mount -t btrfs -o loop,ro,subvolid=5 "$image" "$WORK/mount" 2> /dev/null; then
            mounted=$WORK/mount
            compare
            unmount
        else
            skip "a kernel with btrfs" "a comparison with find on $original"
        fi
    done
fi
finish
