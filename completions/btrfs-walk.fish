# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of btrfs-walk for fish. The program knows the answers: a letter (w: a word, g: it goes
# on, f: names of files, behind what follows) and a word, then a description, each ended by a NUL.
function __btrfs_walk
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    # What is typed so far may lack its closing quote.
    for end in '' "'" '"'
        set -l plain (string unescape -- $last$end | string collect)
        and set last $plain
        and break
    end
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l answers ($program --complete $words[2..] "$last" 2> /dev/null | string split0)
    set -l found
    for i in (seq 1 2 (count $answers))
        set -l word (string sub -s 2 -- $answers[$i] | string collect)
        if string match -q 'f*' -- $answers[$i]
            set -l begin (math 1 + (string length -- "$word"))
            for file in (__fish_complete_path (string sub -s $begin -- $last))
                set -a found "$word$file"
            end
        else
            set -a found "$word"\t$answers[(math $i + 1)]
        end
    end
    string join0 -- $found | string split0
end
complete -c btrfs-walk -f -a '(__btrfs_walk)'
