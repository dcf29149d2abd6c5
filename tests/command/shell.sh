#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The shell: every command prints what it prints outside; words, paths, subvolumes and generations;
# the terminal.
# shellcheck disable=SC2016 # dollar signs and quotes are those of the shell
set -uo pipefail
. "$(dirname "$0")/common.bash"
"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" plain subvolumes gone log-tree raid5-3 quota \
    lost-leaf-directory lost-tree-chunk differences || exit 1
fixtures=$BUILD/fixtures
plain=$fixtures/plain/dev1.img
subvolumes=$fixtures/subvolumes/dev1.img
gone=$fixtures/gone/dev1.img
damaged=$fixtures/lost-leaf-directory/dev1.img
cd "$WORK" || exit 1

# same FIXTURE COMMAND [OPERAND...]: a command prints the same, and ends alike, in a shell and
# outside of it.
same() {
    local images=("$fixtures/$1"/dev*.img) outside inside words
    timeout 60 "$PROGRAM" "$2" "${images[@]}" "${@:3}" > outside 2> outside.err < /dev/null
    outside=$?
    printf -v words '%q ' "${@:2}"
    timeout 60 "$PROGRAM" shell -c "$words" "${images[@]}" > inside 2> inside.err < /dev/null
    inside=$?
    is "status of $words in a shell on $1" "$inside" "$outside"
    holds "stdout of $words in a shell on $1" cmp outside inside
    # a command that opens the images itself repeats the messages of opening
    holds "stderr of $words in a shell on $1" diff <(sort -u outside.err) <(sort -u inside.err)
}

# The operands of each command, for all fixtures; a command without a line fails below.
declare -A operands=(
    [walk]='' [ls]='-la /' [stat]='/ /missing' [cat]='/top-file' [readlink]='/docs/symbolic-link'
    [xattr]='-R /' [extents]='/top-file' [sum]='' [bodyfile]='' [tar]='' [versions]='/top-file'
    [deleted]='' [roots]='' [log]='' [info]='' [check]='' [owner]='30408704' [devices]=''
    [rescue]='' [usage]='' [du]='' [space]='' [compression]='' [qgroups]='' [picture]='-f -'
    [subvolumes]='' [diff]='5 5' [super]='' [chunks]='' [map]='30408704' [tree-stats]='' [dump]=''
    [graph]='' [free]='' [fragmentation]=''
)
# Commands that write files or mount, need no image, differ from run to run, or are the shell.
declare -A others=([extract]=files [copy]=files [metadump]=files [mount]=files [report]=files
    [send]=random [shell]=itself [xlators]=none [blackbox]=none [help]=own)
names='import json, sys; print(*(c["name"] for c in json.load(sys.stdin)["commands"]))'
for command in $("$PROGRAM" --dump-tables | python3 -c "$names"); do
    [ -n "${others[$command]:-}" ] && continue
    if [ -z "${operands[$command]+set}" ]; then fail "no operands for $command"; continue; fi
    read -ra given <<< "${operands[$command]}"
    for fixture in plain raid5-3 log-tree lost-leaf-directory; do
        same "$fixture" "$command" "${given[@]}"
    done
done
echo '[1.0] BTRFS warning (device sdb): csum failed root 5 ino 260 off 0 csum 1 expected csum 2' \
    > "$WORK/dmesg"
same quota qgroups --json
same differences check --data
same gone ls --generation 2 /
same plain ls --super 1 /
same plain owner --log=replay 30408704
same log-tree ls --log=ignore -R /
same plain stat --statedump - /
same subvolumes ls --subvol home /
same subvolumes dump --json
same plain ls --no-such-option
same plain ls --insert debug/trace@device-1 /
same lost-tree-chunk info
same plain owner --dmesg "$WORK/dmesg"
same plain walk --json

# shell DESCRIPTION STATUS REGEX COMMANDS [ARGUMENT...]
shell() { expect "$1" "$2" "$3" shell -c "$4" "${@:5}"; }
# prints DESCRIPTION TEXT: what the last shell has printed
prints() { is "$1" "$(cat "$WORK/out")" "$2"; }

shell "several commands" 0 - 'cd /docs; pwd; cd letters/..; pwd
    cd; pwd # a comment; pwd' "$plain"
prints "directories" $'/docs\n/docs\n/'
shell "a relative path" 0 - 'cd docs; stat -c %n letters /docs; cd letters; stat -c %n ..' "$plain"
prints "resolved paths" $'/docs/letters\n/docs\n/docs'
shell "the current directory is the default" 0 - 'cd docs/letters; ls' "$plain"
cp out inside
expect "as outside" 0 - ls "$plain" /docs/letters
holds "lists the same" cmp inside out
shell "find" 0 - 'cd docs; find -name 01.txt -o -name 02.txt' "$plain"
prints "files below" $'/docs/letters/01.txt\n/docs/letters/02.txt'
shell "tree" 0 - 'cd docs/letters; tree' "$plain"
holds "is ls -R" out_has '^/docs/letters:$'
shell "a missing directory" 1 'bogus' 'cd /bogus; pwd' "$plain"
prints "stays" /
shell "a file is no directory" 1 'is not a directory' 'cd top-file' "$plain"
cat > script << 'END'
stat -c '<%n "\>' '/docs/second name of large.bin' # '
stat -c "<%n \"\\'>" /docs/second\ na\
me" of"$' large\056bin'; stat -c $'<%n\'\n>' "/docs"/../docs # docs
END
expect "quotes" 0 - shell -f script "$plain"
prints "words" '</docs/second name of large.bin "\>
</docs/second name of large.bin "\'\''>
</docs/../docs'\''
>'
shell "the worst status" 2 'is not a command' 'stat /missing; bogus; pwd' "$plain"
prints "goes on" /
shell "the first failure ends" 1 missing 'stat /missing; pwd' -e "$plain"
prints "at once" ''
for words in 'ls > x' 'ls | cat' 'ls < x' 'ls &' 'ls `x`' 'ls "x'; do
    shell "$words" 2 'cannot|no pipes|no background|no command|not closed' "$words" "$plain"
done
shell "operands of images" 2 'takes no operands' "info $plain" "$plain"
shell "a shell in a shell" 2 'a shell already' "shell $plain" "$plain"
shell "end" 0 - 'quit; bogus' "$plain"
prints "nothing after it" ''
shell "not btrfs" 2 'btrfs' 'pwd' /bin/sh
prints "no command runs" ''
shell "help" 0 - 'help; help cd; help stat' "$plain"
holds "its own commands" out_has '^  generation'
holds "and the others" out_has '^  tree-stats'
shell "two sources" 2 'exclude each other' 'pwd' -f /dev/null "$plain"
printf 'pwd\ncat -T - \n' > script
expect "a script" 0 "list of paths is empty" shell -f script "$plain"
prints "from a file" /
is "a script from stdin" "$("$PROGRAM" shell "$plain" < script)" /

# Subvolumes and generations.
shell "a subvolume" 0 - 'subvolume home; subvolume; ls' "$subvolumes"
{ echo /home; "$PROGRAM" ls --subvol home "$subvolumes"; } > outside
holds "is where paths begin" cmp outside out
shell "back" 0 - 'subvolume home; subvolume /; subvolume; ls' "$subvolumes"
{ echo /; "$PROGRAM" ls "$subvolumes"; } > outside
holds "to the top" cmp outside out
shell "no subvolume" 1 'bogus' 'subvolume bogus; subvolume' "$subvolumes"
prints "stays at the top" /
number=$("$PROGRAM" roots --no-scan -o generation "$gone" 2> /dev/null | sort -n | tail -n 2 |
    head -n 1)
shell "an older generation" 0 - "generation; generation $number; generation; find
    generation current; generation" "$gone"
current=$("$PROGRAM" super -o generation "$gone" | head -n 1)
{ echo "$current"; echo "$number"; "$PROGRAM" --generation "$number" "$gone"; echo "$current"; } \
    > outside 2> /dev/null
holds "lists its files" cmp outside out
shell "no generation" 2 '9999' 'generation 9999; pwd; generation' "$gone"
prints "stays" $'/\n'"$current"
shell "no number" 2 'accepts a number' 'generation x' "$gone"

# Damage is reported by each command, although the blocks were read before.
shell "damage again" 1 damage 'walk; walk' "$damaged"
is "reports of each command" "$(grep -c damage: err)" \
    "$((2 * $("$PROGRAM" "$damaged" 2>&1 > /dev/null | grep -c damage:)))"

shell "a stream" 0 - 'send 5' "$plain"
cp out inside
expect "a stream outside" 0 - send "$plain" 5
is "the length of the stream" "$(stat -c %s inside)" "$(stat -c %s out)"

# Files of the host.
shell "get" 0 - 'cd docs; get letters; cd letters; get /top-file 01.txt' -C "$WORK/got" "$plain"
holds "a directory" [ -s "$WORK/got/letters/01.txt" ]
holds "an absolute path" [ -e "$WORK/got/top-file" ]
shell "get ." 0 - 'cd docs/letters; get --on-error zero .' -C "$WORK/got/here" "$plain"
holds "the contents of the directory" [ -s "$WORK/got/here/02.txt" ]
shell "a path above" 0 - 'cd docs/letters; get "../second name of large.bin"' \
    -C "$WORK/got/other" "$plain"
holds "is created as a whole" [ -s "$WORK/got/other/docs/second name of large.bin" ]
shell "tar" 0 - "tar -f $WORK/x.tar /docs" "$plain"
expect "tar outside" 0 - tar "$plain" /docs
holds "the same archive" cmp out x.tar
printf '/docs\n' > list
shell "a list of paths" 0 - "stat -c %n -T $WORK/list" "$plain"
prints "from a file" /docs
shell "another image" 0 - "diff --other $subvolumes 5 5" "$subvolumes"
shell "a report" 0 - "report -f $WORK/report.html" "$plain"
holds "is written" grep -q '<html' report.html

# A thousand commands on one file system.
for ((i = 0; i < 500; i++)); do echo 'stat /docs'; echo 'ls /docs/letters'; done > script
expect "a thousand commands" 0 - shell -f script "$plain"
is "answers" "$(grep -c '^Path: /docs$' out)" 500

# Signals.
slow=debug/delay-gen@device-1,delay=300ms
set -m
# The output of a former run would end the wait before the program has started.
start_slow() {
    rm -f out
    "$PROGRAM" shell -c 'ls; sum; pwd' --insert "$slow" "$plain" > out 2> err &
    soon grep -qs top-file out
}
start_slow
read -r worker < "/proc/$!/task/$!/children"
kill -KILL "$worker"
wait $!
is "a fatal signal ends the command only" "$? $(tail -n 1 out)" "$((128 + 9)) /"
holds "and is reported" grep -q 'signal 9 .* has ended the command' err
start_slow
read -r worker < "/proc/$!/task/$!/children"
kill -TERM $!
wait $! 2> /dev/null
gone() { ! kill -0 "$worker" 2> /dev/null; }
holds "the worker ends with the shell" soon gone
start_slow
kill -INT -$!
wait $! 2> /dev/null
is "Ctrl-C ends a script" "$? $(tail -n 1 out)" '130 youngest'
set +m
"$PROGRAM" shell -c 'walk; walk; walk' "$plain" 2> err | head -n 1 > out
is "nobody reads" "${PIPESTATUS[0]} $(wc -l < out)" "141 1"
cp "$plain" image
"$PROGRAM" shell -c 'pwd; ls' image >> image 2> err
is "output into the image" "$? $(grep -c 'never overwritten' err)" '2 1'
holds "is refused" cmp "$plain" image

# The terminal.
have_openpty || { skip "a pseudo-terminal for Python" "the shell on a terminal"; finish; }
# converses DESCRIPTION STATUS ARGUMENT... < DIALOGUE
converses() {
    local status
    "$ROOT/tests/support/converse.py" "$((30 * ${SLOWNESS:-1}))" "$PROGRAM" shell "${@:3}" \
        > conversation 2>&1
    status=$?
    is "$1: $(tail -n 3 conversation)" "$status" "$2"
}
converses "a conversation" 0 "$subvolumes" << 'END'
< 5:/ [0-9]+> 
> subvolume home\r
< /home:/ [0-9]+> 
> generation bogus\r
< accepts a number
< /home:/ [0-9]+> 
> quit\r
END
converses "the end of input" 0 "$plain" << 'END'
< 5:/ [0-9]+> 
> cd docs\r
< 5:/docs [0-9]+> 
> \x04
END
converses "Ctrl-C ends the command" 0 --insert "$slow" "$plain" << 'END'
< 5:/ [0-9]+> 
> sum\r
< sum
! \x03
< 5:/ [0-9]+> 
> pwd\r
< \n/\r
< 5:/ [0-9]+> 
> \x04
END
if ! grep -q EDIT=1 "$BUILD/features"; then skip libedit "editing lines"; finish; fi
if grep -q RPATH < <(readelf -d "$PROGRAM" 2> /dev/null); then
    skip "a program without a path to libraries" "libedit that cannot be loaded"
else
    mkdir unloadable
    echo "no library" | tee unloadable/libedit.so.{0,2} > /dev/null
    LD_LIBRARY_PATH=$WORK/unloadable converses "without libedit" 0 "$plain" << 'END'
< 5:/ [0-9]+> 
! pwd\n
< \n/\r
< 5:/ [0-9]+> 
! \x04
END
fi
# A stopped worker has not begun with the command yet.
converses "Ctrl-C comes early" 0 --insert "$slow" "$plain" << 'END'
< 5:/ [0-9]+> 
$ kill -STOP $(cat /proc/$CHILD/task/$CHILD/children)
> sum\r
) \x03
$ sleep 0.1; kill -CONT $(cat /proc/$CHILD/task/$CHILD/children)
< \^C\s+5:/ [0-9]+> 
> pwd\r
< \n/\r
< 5:/ [0-9]+> 
> \x04
END
converses "Ctrl-C discards a line" 0 "$plain" << 'END'
< 5:/ [0-9]+> 
> bogus\x03
< \^C
< 5:/ [0-9]+> 
> pwd\r
< \n/\r
< 5:/ [0-9]+> 
> \x04
END
converses "completion" 0 "$plain" << 'END'
< 5:/ [0-9]+> 
> cd doc\t
< docs/
> lett\t
< letters/
> \r
< 5:/docs/letters [0-9]+> 
> stat -c 'is %n' 0\t
> \t
< 01\.txt +02\.txt
> 3\t
> \r
< is /docs/letters/03\.txt
> tree-st\t
< tree-stats 
> --js\t
< --json
> \x03
< \^C
< 5:/docs/letters [0-9]+> 
> cd ..\r
< 5:/docs [0-9]+> 
> stat -c 'is %n' sec\t
< second name of large\.bin' 
> \r
< is /docs/second name of large\.bin
> \x04
END
holds "completed words are quoted" grep -q "'second name of large.bin'" conversation
converses "completion of subvolumes" 0 "$subvolumes" << 'END'
< 5:/ [0-9]+> 
> subvolume hom\t
< e
> \x03
< \^C
< 5:/ [0-9]+> 
> \x04
END
# Names of any bytes, as in /names, are shown and completed, but never reach the terminal raw.
converses "hostile names" 0 "$plain" << 'END'
< 5:/ [0-9]+> 
> cd names\r
< 5:/names [0-9]+> 
> stat \t\t
< 5:/names [0-9]+> 
> \x03
< \^C
< 5:/names [0-9]+> 
> ls\r
< 5:/names [0-9]+> 
> stat \$'\t
> \x03
< \^C
< 5:/names [0-9]+> 
> \x04
END
"$PROGRAM" ls "$plain" /names > raw
holds "there are such names" env LC_ALL=C grep -qaP '[\x01-\x08\x0b-\x1f\x7f]' raw
is "lines with raw bytes of names on the terminal" "$(LC_ALL=C tr -d '\r\a\b' < conversation |
    grep -vxc '[[:print:]]*')" 0
holds "escaped names" grep -qF '\033[31mred' conversation
finish
