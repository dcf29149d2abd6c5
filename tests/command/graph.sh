#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The graph: printing it, reading it back, changing, tracing and inspecting it, and the messages
# about invalid graphs.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain raid1-2 raid5-3 dup-system-0 || exit 1
images=$BUILD/fixtures
plain=$images/plain/dev1.img
mirror=("$images/raid1-2/dev1.img" "$images/raid1-2/dev2.img")
list() { "$PROGRAM" -0 "$@" 2> /dev/null | LC_ALL=C sort -z | cksum; }
# What the kernel listed, not this program: two lists that are both empty would be equal.
kernel_list() { zstd -qdc "$ROOT/fixtures/$1/paths0.zst" | LC_ALL=C sort -z | cksum; }
want_plain=$(kernel_list plain)
want_mirror=$(kernel_list raid1-2)

# run ARGUMENTS...: runs the program; stores stdout, stderr and the exit status.
run() {
    timeout 60 "$PROGRAM" "$@" > "$WORK/out" 2> "$WORK/err" < /dev/null
    status=$?
}
ends() { holds "$1: exit status $status, not $2" [ "$status" -eq "$2" ]; }
says() { holds "$1: stderr lacks '$2'" grep -qE -- "$2" "$WORK/err"; }
same() { [ "$(LC_ALL=C sort -z "$WORK/out" | cksum)" = "$1" ]; }

# Printing and reading back.
run graph "${mirror[@]}"
ends "graph" 0
cp "$WORK/out" "$WORK/mirror.vol"
holds "one storage volume an image" [ "$(grep -c 'type storage/file' "$WORK/out")" -eq 2 ]
run graph --graph "$WORK/mirror.vol"
holds "a graph that is fed back is the same" cmp "$WORK/mirror.vol" "$WORK/out"
run -0 --graph "$WORK/mirror.vol"
ends "a volfile without images" 0
holds "the printed graph lists the paths of the fixture" same "$want_mirror"
run -0 --graph "$WORK/mirror.vol" "${mirror[1]}" "${mirror[0]}"
holds "a volfile with images lists the paths of the fixture" same "$want_mirror"
status=0
"$PROGRAM" -0 --graph - < "$WORK/mirror.vol" > "$WORK/out" 2> "$WORK/err" || status=$?
holds "a volfile from stdin lists the paths of the fixture" same "$want_mirror"
(printf '\357\273\277'; cat "$WORK/mirror.vol") > "$WORK/marked.vol"
run -0 --graph "$WORK/marked.vol"
holds "a volfile that an editor has marked as UTF-8" same "$want_mirror"
run --graph "$WORK/mirror.vol" "$plain"
ends "too few images for a volfile" 2
says "too few images for a volfile" 'has 2 storage volumes, but 1 image is given'
sed 's/subvolumes device-1 device-2/subvolumes device-2/; 1,5d' "$WORK/mirror.vol" > "$WORK/one.vol"
run -0 --graph "$WORK/one.vol"
ends "a volfile with one of two devices" 0
holds "the graph lists the paths of the fixture" same "$want_mirror"
run graph "${mirror[@]}" "$plain"
ends "a foreign image" 1
holds "is not in the graph" cmp "$WORK/mirror.vol" "$WORK/out"
strange="$WORK/a \"strange\", name=\\x	é"
cp "$plain" "$strange"
run graph "$strange"
cp "$WORK/out" "$WORK/strange.vol"
run -0 --graph "$WORK/strange.vol"
holds "a path with strange characters" same "$want_plain"
run graph --format dot "${mirror[@]}"
ends "a picture" 0
holds "has an edge to each device" [ "$(grep -c -- '->' "$WORK/out")" -eq 5 ]
"$ROOT/scripts/make-picture" "$PROGRAM" "$WORK/docs" 2> /dev/null
for picture in graph.dot picture.svg; do
    holds "the pictures in the documentation are up to date (scripts/make-picture)" \
        cmp "$WORK/docs/$picture" "$ROOT/docs/$picture"
done
if have dot; then
    holds "Graphviz draws the graph" dot -Tsvg -o "$WORK/graph.svg" "$WORK/out"
else
    skip Graphviz "its reading of the picture"
fi
run graph --format png "$plain"
ends "another format" 2
run graph
ends "a graph of nothing" 2

# Invalid volfiles; the unit tests cover the grammar itself.
volfile() { printf '%b' "$1" > "$WORK/bad.vol"; run --graph "$WORK/bad.vol"; }
disk="volume d\n type storage/file\n option path $plain\nend-volume\n"
map="${disk}volume m\n type cluster/chunk-map\n subvolumes d\nend-volume\n"
refuse() { # DESCRIPTION VOLFILE REGEX
    volfile "$2"
    ends "$1" 2
    says "$1" "$3"
    holds "$1: nothing is printed on stdout" [ ! -s "$WORK/out" ]
}
refuse "unknown type" "volume d\n type storage/flie\nend-volume\n" \
    'bad.vol:2:7: .*unknown type storage/flie'
refuse "unknown option" "volume d\n type storage/file\n option pth x\nend-volume\n" \
    'bad.vol:3:9: .*no option pth'
refuse "value out of range" \
    "${map}volume n\n type performance/node-cache\n option size 2E\n subvolumes m\nend-volume\n" \
    'bad.vol:11:14: .*size like 64K \(0 to 1T\)'
refuse "number of children" "${map}volume v\n type features/verify\n subvolumes m d\nend-volume\n" \
    'takes 1 subvolume, not 2'
refuse "address spaces" "${disk}volume v\n type features/verify\n subvolumes d\nend-volume\n" \
    'address spaces do not fit'
refuse "unused volume" "${disk}volume e\n type storage/file\n option path $plain\nend-volume\n" \
    'bad.vol:1:8: no volume uses volume d'
refuse "duplicate name" "$disk$disk" 'bad.vol:5:8: '
refuse "cycle" \
    "volume a\n type features/verify\n subvolumes b\nend-volume\nvolume b\n type \
features/verify\n subvolumes a\nend-volume\n" 'bad.vol:3:13: .*used before it is defined'
refuse "no chunk map" "$disk" 'one volume that maps logical addresses to devices'
refuse "an empty file" "" 'bad.vol'
volfile "${map}volume v\n type features/verify\n subvolumes m\nend-volume\n"
ends "the least graph" 0
run --graph "$WORK/nowhere.vol"
ends "a volfile that is not there" 2
says "a volfile that is not there" 'nowhere.vol'

# Changing it.
run -0 --xlator-option node-cache.size=0 --xlator-option 'device-*.path='"$plain" "$plain"
holds "options of layers do not change the paths" same "$want_plain"
run graph --xlator-option node-cache.size=64K "$plain"
holds "the graph has the changed option" grep -q 'option size 64K' "$WORK/out"
run --xlator-option node-cache.size=lots "$plain"
ends "a bad value" 2
says "a bad value" '^btrfs-walk: option node-cache.size=lots: .*is not a size'
run --insert debug/trace@verify,kind=any,kind=raw "$plain"
ends "an option twice" 2
run -v -0 --insert debug/error-gen@chunk-map,kind=tree-block,nth=4,once=on "$plain"
ends "a read that fails once" 0
says "a read that fails once" \
    'note: .*tree block [0-9]+ of [a-z0-9 ]+ \(level 0\): good only when it was read again '\
'\(.*injected I/O error'
holds "a read that fails once" same "$want_plain"
mkfifo "$WORK/fifo"
head -n 1 "$WORK/fifo" > /dev/null &
run -0 --insert "debug/trace@verify,file=$WORK/fifo" "$plain"
wait
holds "a trace that nobody reads any more" same "$want_plain"
run --insert debug/trace@nothing "$plain"
ends "a layer above nothing" 2
says "a layer above nothing" 'there is no volume nothing; there are: device-1, chunk-map'
everywhere=()
for _ in $(seq 20); do everywhere+=(--insert 'debug/delay-gen@*'); done
run "${everywhere[@]}" "$plain"
ends "layers without end" 2
says "layers without end" 'one too many: a graph has at most 4096'
stacked=(--insert debug/error-gen@chunk-map,action=zero)
for _ in $(seq 60); do stacked+=(--insert features/verify@error-gen@chunk-map); done
run "${stacked[@]}" "$plain"
ends "sixty layers that each try again" 2
run -0 --insert 'debug/trace@*,file='"$WORK/traces" "${mirror[@]}"
holds "a layer above every other" same "$want_mirror"
is "layers that write a trace" "$(grep -o '^ *trace@[^ ]*' "$WORK/traces" | sort -u -b | wc -l)" 6
run --insert debug/trace@verify,kind=tree-block "$plain"
ends "trace" 0
says "trace" 'trace@verify.*tree-block'
run -0 --insert "debug/trace@device-1,file=$plain" "$plain"
ends "an image is no place for a trace" 2
says "an image is no place for a trace" 'is an input'
holds "and is as it was" [ "$(list "$plain")" = "$want_plain" ]

# The window layer: a file system that does not start at the beginning of the file.
truncate -s 1M "$WORK/shifted"
cat "$plain" >> "$WORK/shifted"
run "$WORK/shifted"
ends "a shifted image" 2
run -0 --insert layout/window@device-1,offset=1M "$WORK/shifted"
ends "through a window" 0
holds "a window lists the paths of the fixture" same "$want_plain"

# Errors name the layer where they began, and with -vv the layers that they passed through.
run -0 -vv --insert debug/error-gen@device-1,kind=tree-block "${mirror[@]}"
ends "a mirror with a failing device" 0
holds "a mirror with a failing device" same "$want_mirror"
says "the layer of a note" 'used mirror 2 .*\[features/verify\]$'
says "the way of its cause" \
    'born in error-gen@device-1 at [0-9]+, came through chunk-map at [0-9]+|born in '\
'error-gen@device-1 at [0-9]+, came through chunk-map'
says "an address that is not repeated" 'at ([0-9]+), came through chunk-map$'
is "for it is the same" "$(grep -cE 'at ([0-9]+), came through chunk-map at \1$' "$WORK/err")" 0
run -v /no/such/image
says "the layer of an error" 'cannot open /no/such/image: .*\[storage/file device-1\]$'

# Statedumps.
run --statedump "$WORK/dump" "${mirror[@]}"
ends "a statedump" 0
for word in '"generation":' '"name": "node-cache"' '"size": "6M"' '"chunks": [1-9]' \
    '"volume": "device-2"' '"requests": [1-9]'; do
    holds "the statedump has $word" grep -q "$word" "$WORK/dump"
done
if have python3; then holds "the statedump is JSON" python3 -m json.tool "$WORK/dump"; fi
is "the last byte is a newline" "$(tail -c 1 "$WORK/dump" | od -An -c | tr -d ' ')" '\n'
for command in super rescue; do
    run "$command" --statedump "$WORK/dump" "$plain"
    ends "$command, which opens no trees, makes a statedump" 0
    holds "of all layers" grep -q '"name": "chunk-map"' "$WORK/dump"
done
cp "$plain" "$WORK/image"
run --statedump "$WORK/image" "$WORK/image"
ends "an image is no place for a statedump" 2
holds "and is as it was" cmp "$plain" "$WORK/image"
cp "$plain" "$WORK/foreign"
run --statedump "$WORK/foreign" "${mirror[@]}" "$WORK/foreign"
ends "nor is an image that is not used" 2
holds "and it is as it was" cmp "$plain" "$WORK/foreign"
run --statedump "$WORK/foreign" "${mirror[@]}"
ends "nor is one that was not given at all" 2
run --insert "debug/trace@verify,file=$WORK/foreign" "${mirror[@]}"
ends "nor may a trace go there" 2
holds "and it is still as it was" cmp "$plain" "$WORK/foreign"
run --graph "$WORK/mirror.vol" --statedump "$WORK/mirror.vol"
ends "nor is the volfile" 2
cp "$plain" "$WORK/both"
"$PROGRAM" "$WORK/both" >> "$WORK/both" 2> "$WORK/err"
status=$?
ends "results do not go into an image" 2
holds "which is as it was" cmp "$plain" "$WORK/both"
"$PROGRAM" --insert debug/trace@device-1 "$WORK/both" 2<> "$WORK/both" > "$WORK/out"
status=$?
ends "nor do messages" 2
holds "and it is still as it was" cmp "$plain" "$WORK/both"
run --statedump /dev/full "$plain"
ends "a statedump on a full disk" 1
run --statedump /no/such/dump "$plain"
ends "a statedump that cannot be made" 2

# SIGUSR1, while the program waits for the reader of its pipe: the signal has no effect until the
# file system is open.
exec {reader}< <(exec "$PROGRAM" tar --statedump "$WORK/live" --insert debug/trace@verify "$plain" \
    2> "$WORK/err")
writer=$!
read -r -N 1 -u "$reader"
kill -USR1 "$writer"
holds "SIGUSR1 dumps into the file while the program runs" \
    soon grep -q '"name": "trace@verify"' "$WORK/live"
holds "and does not end it" kill -0 "$writer"
kill "$writer"
exec {reader}<&-
finish
