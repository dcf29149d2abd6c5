#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Send streams as input: opened like images, alone and as chains in any order, and damaged ones. The
# streams are made by send, whose bytes send.sh compares with the kernel's.
set -uo pipefail
. "$(dirname "$0")/common.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" streams || exit 1
image=$BUILD/fixtures/streams/dev1.img
cd "$WORK" || exit 1

"$PROGRAM" send -f full "$image" first
"$PROGRAM" send -f full.z --compressed-data "$image" first
"$PROGRAM" send -f second -p first "$image" second
"$PROGRAM" send -f second.2 --proto 2 -p first "$image" second
"$PROGRAM" send -f third -p second --clone-source first "$image" third
"$PROGRAM" send -e -f joined --clone-source first "$image" second third

# Parts as btrbk names them, and encrypted streams, which are only named.
split -b 100K full joined.split_
expect "parts of btrbk" 0 'joined.split_aa is joined with the parts after it' -v joined.split_aa
"$PROGRAM" full > "$WORK/want" 2> /dev/null
holds "have the same paths" cmp "$WORK/want" "$WORK/out"
printf '\214\015\004\011\003\010rest' > secret.gpg
expect "a stream for gpg" 2 "it is encrypted with OpenPGP: decrypt it first" secret.gpg
printf 'Salted__rest' > secret.enc
expect "a stream for openssl" 2 "it is encrypted with openssl enc" secret.enc
zstd -q -d "$ROOT/tests/data/no-data.stream.zst" -o no-data
expect "a stream without data" 0 'no-data: the stream has no file contents .btrfs send --no-data' \
    check no-data
is "is named once" "$(grep -c 'no file contents' "$WORK/err")" 1
expect "its state" 0 'no file contents' info no-data
holds "a stream needs no superblock" grep -q '^State: *readable' "$WORK/out"
expect "a stream among disks" 0 - show no-data "$image"
holds "show names it" grep -q '^stream .* a send stream, which can be .* no-data$' "$WORK/out"
expect "the contents of a file" 1 'to [0-9]+ cannot be read: the stream has no file contents$' \
    cat no-data "$("$PROGRAM" walk -q --size +0 no-data | head -n 1)"
expect "hashes of it" 1 '^btrfs-walk: and [0-9]+ more files: the stream has no file contents$' \
    sum no-data
is "one file is an example" "$(grep -c 'cannot be read' "$WORK/err")" 1
expect "extraction of it" 1 '^btrfs-walk: and [0-9]+ more files: the stream has no file contents$' \
    extract -C without-contents no-data
is "one file is an example, too" "$(grep -c 'cannot be read' "$WORK/err")" 1

# same DESCRIPTION SUBVOLUME STREAM...: whether the streams yield the snapshot.
same() {
    local what=$1 subvolume=$2
    shift 2
    expect "$what" 0 'compared' diff --by-path --content always --other "$image" "$@" \
        "/$subvolume" "/$subvolume"
    holds "$what: the stream yields the snapshot" [ ! -s "$WORK/out" ]
}
same "a full stream" first full
same "a compressed one" first full.z
same "with an incremental one" second full --device second
same "in the other order" second second --device full
zstd -q full -o full.zst
same "a file of zstd" first full.zst
same "of protocol 2" second second.2 --device full
same "a chain" third third --device second --device full
same "the parent in a chain" first third --device second --device full
same "one stream of two subvolumes" third joined --device full

# Several streams, and folders.
same "a chain as operands" third third full second
mkdir folder none
cp full second third folder
echo "no stream" > folder/notes
gzip < folder/notes > folder/notes.gz
same "a folder" third folder
mkdir older && mv folder/full older
same "two folders" third folder --device older
mv older/full folder
expect "streams before a path" 0 - ls second full /second
expect "a stream that is called like a path" 0 - ls third -d full -d second third
expect "a stream after a path" 1 'second is an image; did you mean --device' ls full /first second
expect "a folder without streams" 2 'is a directory, not an image, and contains no send' ls none
expect "devices of a chain" 0 - devices -o device_state,generation folder
is "no device of a chain is stale" "$(sort -u "$WORK/out")" "$(printf 'present\t3')"
expect "check of a folder" 0 '0 errors' check folder

# Compressed streams.
for tool in zstd lz4 xz gzip; do
    have $tool && grep -q "$tool=0" <(tr A-Z a-z < "$BUILD/features") && continue
    if ! have $tool; then skip $tool "streams that it compresses"; continue; fi
    mkdir packed-$tool
    for stream in full second third; do
        $tool -c < $stream > packed-$tool/$stream
    done
    same "a folder with $tool" third packed-$tool
    same "operands with $tool" second packed-$tool/full packed-$tool/second
    expect "a chain of $tool" 0 'in 2 comp' diff --exit-code --other packed-$tool/full \
        --other second "$image"
    expect "the commands in $tool" 0 - dump packed-$tool/full
    holds "dump prints the commands of a stream that $tool compressed" \
        cmp "$WORK/out" <("$PROGRAM" dump full)
done

expect "walk of a stream" 0 - walk full
holds "paths begin with the subvolume" out_has '^/first/swap/3$'
expect "subvolumes of a stream" 0 - subvolumes -o subvolume_path,ro,snapshot full --device second
holds "an incremental stream is a read-only snapshot" out_has '/second.*(1|yes|true).*(1|yes|true)'
expect "cat of a stream" 0 - cat full /first/swap/3
is "a file of a stream has the contents of the image" \
    "$(sha256sum < "$WORK/out")" "$("$PROGRAM" cat "$image" /first/swap/3 | sha256sum)"
for command in ls stat xattr; do
    expect "$command" 0 - "$command" full /first/swap/2
done
expect "info of a stream" 0 - info full

# A stream has no space on a disk; this is not damage.
expect "du of a stream" 0 'warning: .*: a send stream has no extent tree$' du full
expect "chunks of a stream" 0 - chunks full
expect "usage of a stream" 2 'a send stream has no block groups$' usage full
expect "free space of a stream" 2 'a send stream has no free space$' free full
expect "a picture of a stream" 2 'a send stream has no extents on a disk$' picture full
expect "a report about a stream" 0 - report -f report.html full
holds "the report has no map and says why" \
    grep -q '>A send stream has no block groups and no extents on a disk\.<' report.html
holds "the report has the directories" grep -q '<title>swap, ' report.html
expect "the commands" 0 - dump full
holds "dump prints a line for each command" out_has '^mkfile +\./first/o[0-9]+-[0-9]+-0$'
expect "as JSON" 0 - dump --json full
holds "dump --json prints a record for each command" out_has '"command":"rename"'
rm -rf extracted
"$PROGRAM" extract -C extracted full 2> /dev/null
holds "extract makes the files of a stream" \
    cmp extracted/first/swap/4 <("$PROGRAM" cat "$image" /first/swap/4)

# Damage.
expect "no parent" 2 'needs the subvolume with UUID' walk second
head -c 100000 full > cut
expect "a stream that is cut off" 1 'cut off' walk cut
holds "commands before the end of a cut stream count" out_has '^/first/turn/a/file$'
cp full flipped
printf 'x' | dd of=flipped bs=1 seek=90000 conv=notrunc status=none
expect "a changed byte" 1 'checksum mismatch' walk flipped
holds "a changed byte costs one command" out_has '^/first/swap/3$'
head -c 17 full > empty
expect "nothing but a header" 2 'cut off|no subvolume' walk empty

expect "check of a stream" 0 '0 errors' check full
expect "check of one that is cut off" 4 '1 error' check cut
holds "check reports where the stream is cut off" out_has '^error stream-command: .*cut off'
expect "check of a changed byte" 4 'stream-command' check flipped
expect "check without the parent" 16 'needs the subvolume' check second

# The image that streams were made from.
rm folder/notes*
for streams in full 'full second' 'third full second' folder; do
    # shellcheck disable=SC2086 # several streams
    expect "$streams yield the snapshots" 0 'compared: [0-9]* entries of A with [0-9]* of B' \
        diff --exit-code $(printf -- '--other %s ' $streams) "$image"
    is "in as many comparisons: $streams" "$(grep -oE 'in [0-9]' "$WORK/err")" \
        "in $(case $streams in *third* | folder) echo 3 ;; *) wc -w <<< "$streams" ;; esac)"
done
"$PROGRAM" send -q -f writable "$image" 5
expect "a stream with a UUID of its own" 1 'no subvolume of .* has its UUID' \
    diff --other writable "$image"
expect "and a subvolume" 0 compared diff --exit-code --other writable "$image" /
expect "another one" 0 compared diff --other full "$image" second /first
holds "a file that only A has is deleted" out_has $'^-\tF\t/swap/empty$'
holds "a file that only B has is added" out_has $'^\\+\tF\t/gone/file$'
run_json diff --json --other full "$image" second /first > "$WORK/out" 2> /dev/null
holds "JSON has the changes of a file" out_has \
    '"/swap/1".*"changes":\["content","size","times","xattrs","links"\]'
holds "JSON has the changed type" out_has '"change":"type","type":"fifo","path":"/types/fifo"'
links() {
    printf '%s\n' "subvol PATH=v UUID=00112233445566778899aabbccddeeff CTRANSID=7" \
        'mkfile PATH=a' 'mkfile PATH=b' "link PATH=c PATH_LINK=$1" "link PATH=d PATH_LINK=$2" \
        "utimes PATH=a ATIME=1 MTIME=0 CTIME=0" "utimes PATH=b ATIME=1 MTIME=0 CTIME=0" \
        "utimes PATH= ATIME=1 MTIME=1 CTIME=1" end |
        python3 "$ROOT/tests/support/make_stream.py"
}
links a b > one
links b a > other
expect "other hard links" 0 compared diff -o path,changes --other other one
is "a changed number of links is reported for both names" \
    "$(tr '\t\n' '  ' < "$WORK/out")" '/v/c links /v/d links '
expect "the same ones" 0 compared diff --exit-code --other one one

expect "what comes after an error" 1 'cut off' diff --other cut "$image"
holds "paths after the error are unknown" [ "$(grep -c $'^?\t' "$WORK/out")" -gt 0 ]
is "paths after the error are not deleted" "$(grep -c '^-' "$WORK/out")" 0

# The kernel pads encoded data when it receives them, and extends what is shorter than its length.
python3 - > encoded.lines << 'END'
import zlib
data = zlib.compress(b"hello\n" * 1000)
print("subvol PATH=v UUID=00112233445566778899aabbccddeeff CTRANSID=7", "mkfile PATH=a",
      "encoded_write PATH=a FILE_OFFSET=0 UNENCODED_FILE_LEN=8192 UNENCODED_LEN=8192 "
      "UNENCODED_OFFSET=0 COMPRESSION=1 DATA=" + "".join(f"\\x{byte:02x}" for byte in data),
      "end", sep="\n")
END
python3 "$ROOT/tests/support/make_stream.py" 2 < encoded.lines > encoded
expect "encoded data that end early" 0 - cat encoded /v/a
is "are extended with zeros" "$(sha256sum < "$WORK/out")" \
    "$( (yes hello | head -c 6000; head -c 2192 /dev/zero) | sha256sum)"

# Streams that are made of streams.
for options in '' '--proto 2' '--proto 2 --compressed-data'; do
    # shellcheck disable=SC2086 # several words
    for words in 'full first' 'full.z first' '-p first folder second' \
        '--clone-source first folder third'; do
        "$PROGRAM" send -q $options -f again.${words// /} ${words} || fail "send $options $words"
    done
    mkdir -p again
    mv again.fullfirst again.-pfirstfoldersecond again.--clone-sourcefirstfolderthird again
    expect "sent again $options" 0 compared diff --exit-code --other again "$image"
    expect "and compressed" 0 compared diff --exit-code --other again.full.zfirst "$image"
done
"$PROGRAM" extract --subvolumes -C subvolumes folder 2> /dev/null
holds "extract --subvolumes makes the files of streams" cmp subvolumes/first/swap/3 \
    <("$PROGRAM" cat "$image" /first/swap/3)

# Hostile streams.
uuid=0102030405060708090a0b0c0d0e0f10
begin="subvol PATH=a UUID=$uuid CTRANSID=7"
hostile() {
    local what=$1 message=$2
    shift 2
    printf '%s\n' "$@" end | python3 "$ROOT/tests/support/make_stream.py" > hostile || return
    timeout 20 "$PROGRAM" walk hostile > "$WORK/out" 2> "$WORK/err"
    is "$what: the program ends by itself" "$([ $? -le 2 ] && echo fine)" fine
    holds "$what: the message is $message" grep -qE "$message" "$WORK/err"
}
hostile "a path that leaves the tree" 'path' "$begin" 'mkfile PATH=../x'
hostile "an absolute path" 'path' "$begin" 'mkfile PATH=/x'
hostile "a directory in itself" 'd' "$begin" 'mkdir PATH=d' 'rename PATH=d PATH_TO=d/e'
hostile "a name that exists" 'not free' "$begin" 'mkfile PATH=x' 'mkfile PATH=x'
hostile "a file that does not" 'no such' "$begin" 'chmod PATH=x MODE=420'
hostile "a write far out" '.' "$begin" 'mkfile PATH=x' \
    'write PATH=x FILE_OFFSET=9223372036854775807 DATA=y'
hostile "a command before a subvolume" '.' 'mkfile PATH=x'
hostile "a clone of what is not there" '.' "$begin" 'mkfile PATH=x' "clone FILE_OFFSET=0 \
CLONE_LEN=4096 PATH=x CLONE_UUID=$uuid CLONE_CTRANSID=7 CLONE_PATH=x CLONE_OFFSET=4096"
hostile "a clone onto itself" 'a range cannot be cloned to itself' "$begin" 'mkfile PATH=x' \
    'truncate PATH=x SIZE=8192' "clone FILE_OFFSET=4096 CLONE_LEN=4096 PATH=x CLONE_UUID=$uuid \
CLONE_CTRANSID=7 CLONE_PATH=x CLONE_OFFSET=0" "clone FILE_OFFSET=0 CLONE_LEN=8192 PATH=x \
CLONE_UUID=$uuid CLONE_CTRANSID=7 CLONE_PATH=x CLONE_OFFSET=0"
doubled=()
for ((length = 4096; length < 1 << 50; length *= 2)); do
    doubled+=("clone FILE_OFFSET=$length CLONE_LEN=$length PATH=x CLONE_UUID=$uuid \
CLONE_CTRANSID=7 CLONE_PATH=x CLONE_OFFSET=0")
done
hostile "extents that double" 'too many extents for their size' "$begin" 'mkfile PATH=x' \
    'write PATH=x FILE_OFFSET=0 DATA=y' 'truncate PATH=x SIZE=4096' "${doubled[@]}"
shortened=()
for ((i = 16; i < 216; i++)); do
    shortened+=(end 'header 1' "snapshot PATH=a UUID=$(printf %032x "$i") CTRANSID=8 \
CLONE_UUID=$uuid CLONE_CTRANSID=7" 'truncate PATH=x SIZE=0')
done
mapfile -t written < <(seq -f 'write PATH=x FILE_OFFSET=%g00 DATA=y' 4000)
hostile "snapshots that remove many extents" 'too many extents for their size' "$begin" \
    'mkfile PATH=x' "${written[@]}" "${shortened[@]}"
finish
