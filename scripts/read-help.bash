# SPDX-License-Identifier: GPL-2.0-or-later
# The help texts of the program as tables: what the manual and the completions are made from. The help itself is made
# from the tables of commands and options, so a new command or option is found here without a change. Sourced; $program
# is the program to ask.
# shellcheck shell=bash disable=SC2154

# commands: one line a command, its name and its summary. The first is the default one.
commands() {
    "$program" --help | awk '
        /^[^ ]/ { inside = /^Commands:/ }
        inside && /^  [^ ]/ { name = $1; sub(/^ *[^ ]+ +/, ""); print name "\t" $0 }'
}

command_names() { commands | cut -f 1; }

# usage COMMAND: the line that says how it is called.
usage() { "$program" "$1" --help | sed -n 's/^Usage: //p'; }

# details COMMAND: what its help says between the summary and the options.
details() { "$program" "$1" --help | sed -e '1,2d' -e '/^Options:/,$d'; }

# examples COMMAND: the lines of its examples, without indentation.
examples() { "$program" "$1" --help | sed -n -e '/^Examples:/,/^$/s/^  //p'; }

# options COMMAND: one line an option: short form or -, long form, argument or -, description. A word behind the long
# form is its argument if only one space is between them, and if it does not look like the beginning of a phrase. One
# that need not be there has brackets and no space: --json[=array].
options() {
    "$program" "$1" --help | awk '
        /^[^ ]/ { inside = /^Options:/ }
        !inside || !/^ +-/ { next }
        {
            sub(/^ +/, "")
            short = "-"
            if (/^-[^-], /) { short = substr($0, 1, 2); $0 = substr($0, 5) }
            match($0, /^--[a-z0-9-]+/)
            name = substr($0, 3, RLENGTH - 2)
            $0 = substr($0, RLENGTH + 1)
            argument = "-"
            if (/^\[=/) { argument = $1; sub(/^[^ ]+/, "") }
            else if (/^ [^ ]/ && ($1 ~ /^[^a-z]/ || $1 ~ /\|/)) { argument = $1; sub(/^ [^ ]+/, "") }
            sub(/^ +/, "")
            print short "\t" name "\t" argument "\t" $0
        }'
}

# common_options: those that every command has.
common_options() {
    local count
    count=$(commands | wc -l)
    for command in $(command_names); do options "$command"; done |
        awk -v count="$count" '++seen[$0] == count'
}

# own_options COMMAND: those that not every command has.
own_options() { options "$1" | awk 'NR == FNR { common[$0]; next } !($0 in common)' <(common_options) -; }
