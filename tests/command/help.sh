#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --help: its form, its topics, and that every example in it is a valid command line.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/fixtures.bash"

"$PROGRAM" --dump-tables > "$WORK/tables" || fail "the tables"
commands=$(python3 -c 'import json, sys
print(*(one["name"] for one in json.load(open(sys.argv[1]))["commands"]))' "$WORK/tables")

# The overview fits on two screens, with a line for each command.
expect "the overview" 0 - --help
cp "$WORK/out" "$WORK/overview"
expect "is what help prints" 0 - help
holds "help prints the same as --help" cmp "$WORK/overview" "$WORK/out"
holds "the overview has at most 82 lines" [ "$(wc -l < "$WORK/out")" -le 82 ]
is "lines of it that are too long" "$(grep -E '^.{82}' "$WORK/out")" ""
for command in $commands; do
    is "the overview has a line for $command" \
        "$(grep -cE "^  $command +[A-Z][a-z]+s " "$WORK/overview")" 1
    expect "$command --help" 0 - "$command" --help
    is "$command: what it begins with" \
        "$(sed -n '1s/ .*//p; 2s/^[A-Z].*\.$/A sentence./p; 4p' "$WORK/out" | paste -sd' ')" \
        'Usage: A sentence. Examples:'
    holds "$command: at most 90 lines" [ "$(wc -l < "$WORK/out")" -le 90 ]
done

# A letter has one meaning in all commands: it is the short form of one long option.
cat > "$WORK/letters.py" << 'END'
import json, sys
tables = json.load(open(sys.argv[1]))
names = {}
for table in [*(one["options"] for one in tables["commands"] if one["name"] != "xattr"),
              tables["image_options"], tables["common_options"], tables["filter_options"]]:
    for option in table:
        if option.get("letter"):
            names.setdefault(option["letter"], set()).add(option["name"])
print(*(f"-{letter}: {sorted(found)}" for letter, found in sorted(names.items())
        if len(found) > 1), sep="\n")
print(len(names))
END
python3 "$WORK/letters.py" "$WORK/tables" > "$WORK/letters"
is "no letter has several meanings" "$(grep -e - "$WORK/letters")" ""
holds "commands have more than 20 letters" [ "$(tail -n 1 "$WORK/letters")" -gt 20 ]
for removed in "-d disk.img" "-s 1"; do
    # shellcheck disable=SC2086 # words
    expect "a letter of before" 2 "^btrfs-walk: the option -. was removed: .* --" info $removed
done
expect "the letter of one command" 2 '-t was removed: use --tree' dump -t fs disk.img
expect "the letter for help" 2 '-h was removed: use --help' tar -h

# Topics: of a command with such options, and on their own.
for topic in options filters; do
    expect "help $topic" 0 - help "$topic"
    holds "help $topic prints options" grep -qE '^  (-., |    )--[a-z]' "$WORK/out"
    expect "ls --help=$topic" 0 - ls "--help=$topic"
    expect "help of ls" 0 - ls --help
    holds "help of ls names the topic $topic" out_has "^      --help=$topic "
done
expect "what images can be" 0 - help images
holds "help images names servers" out_has '^  nbd://'
expect "the common options" 0 - help options
holds "they are on one page" [ "$(wc -l < "$WORK/out")" -le 70 ]
is "lines of it that are too long" "$(grep -E '^.{80}' "$WORK/out")" ""
is "the page has all common options" "$(python3 -c 'import json, sys
tables = json.load(open(sys.argv[1]))
page = open(sys.argv[2]).read()
print(*(one["name"] for table in ("image_options", "answer_options", "common_options")
        for one in tables[table] if "  --" + one["name"] not in page.replace(", --", "  --")))' \
    "$WORK/tables" "$WORK/out")" ""
expect "a command without filters" 2 'no options of that topic: filters' info --help=filters
expect "no such topic" 2 'invalid argument of --help \(allowed: .*\): some' ls --help=some
expect "nor for help" 2 'some is neither a command nor a topic of help' help some
expect "misspelt words of help" 2 "colums is neither .*; did you mean 'columns'[?]$" help colums
expect "ls --help=all" 0 - ls --help=all
is "has the options of all topics" "$(grep -E '^[A-Z][A-Za-z ]*:$' "$WORK/out" | paste -sd' ')" \
    'Examples: Options: Images: Generations: Columns and JSON: Layers: Probes: General: Filters: '\
'Exit status:'

# Two blanks precede the description of an example.
is "examples that run into their descriptions" "$(for command in $commands; do
    "$PROGRAM" "$command" --help | sed -n '/^Examples:/,/^$/p' | grep -E '\.img [a-z]+ [a-z]+$'
done)" ""

# The examples. A usage error ends with where to find help; other errors are about the image.
mkdir "$WORK/examples"
cat > "$WORK/examples.py" << 'END'
import json, os, re, shlex, subprocess, sys
program, tables, disk, *devices = sys.argv[1:]
names = {'disk.img': disk, 'image.img': disk, '/dev/sdb1': disk, 'copy.img': disk,
         '/mnt/new': 'new', '/mnt/old': 'old'}
names.update(zip(('a.img', 'b.img', 'c.img'), devices))
open('rescue.map', 'w').write('0x0 ? 1\n0x0 0x100000 +\n')
tried = 0
for command in json.load(open(tables))['commands']:
    for line in command['examples'].splitlines():
        if not line.startswith('  btrfs-walk') or command['name'] == 'mount':
            continue
        line = re.split(r' \| | && |  +', line.strip())[0]
        line, _, output = line.partition(' > ')
        words = [names.get(word, word) for word in shlex.split(line)[1:]]
        with open(output.strip() or os.devnull, 'w') as out:
            run = subprocess.run([program, *words], stdout=out, stderr=subprocess.PIPE, timeout=60,
                                 stdin=subprocess.DEVNULL, text=True, errors='replace')
        tried += 1
        if run.returncode >= 128 or run.returncode < 0 or "Try 'btrfs-walk" in run.stderr:
            print(line, run.returncode, run.stderr.splitlines()[:1])
print(tried > 120)
END
is "every example is a valid command line" \
    "$(cd "$WORK/examples" && python3 "$WORK/examples.py" "$PROGRAM" "$WORK/tables" \
        "$images/quota-snapshots/dev1.img" "$images"/raid5-3/dev*.img)" True
# Subjects lead to pages that mention them.
while read -r word mention; do
    expect "help $word" 0 - help "$word"
    holds "$word is mentioned" out_has "$mention"
done << 'END'
NAS NAS
lvm LVM
e01 E01
luks key-file
junit junit
ntfs NTFS
timeline times
search grep
timeshift snapshots
END

finish
