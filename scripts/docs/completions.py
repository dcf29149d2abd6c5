# SPDX-License-Identifier: GPL-2.0-or-later
"""Completions for bash, zsh and fish.

What to offer for an argument follows from the words of its option, or from its name in the help
text: see kind_of(). The types of
layers are not written down. The completions ask the program for them, so that those in shared
objects are offered, too.
"""


def kind_of(argument, words=(), record=None):
    """What to offer: "file", "type" (of a layer), "layer" (a type, then @), "columns of" and a
    record, "probes", "devid" or "subvolume" (of the images among the words), a tuple of words, or
    None."""
    if not argument or words:
        return tuple(words) or None
    if argument.startswith("[="):
        return tuple(argument[2:-1].split("|"))
    for words, kind in ((("FILE", "IMAGE", "DEST"), "file"), (("PARTITION",), "partition"),
                        (("NAME|ID",), "subvolume"), (("LAYER",), "layer"),
                        (("TYPE",), "type"), (("COLUMNS",), f"columns of {record}"),
                        (("PATTERN",), "probes"), (("DEVID",), "devid")):
        if any(word in argument for word in words):
            return kind
    return tuple(argument.split("|")) if "|" in argument and argument.islower() else None


def kind_of_option(option):
    return kind_of(option["argument"], option["words"], option.get("record"))


def optional(option):
    return (option["argument"] or "").startswith("[=")


def shared(tables):
    """The options that commands share: those of commands that read an image, those of all."""
    return tables["image_options"], tables["common_options"]


def forms(options):
    """-o --output ..."""
    return [form for option in options
            for form in ([f"-{option['letter']}"] if option["letter"] else [])
            + [f"--{option['name']}"]]


def lists(tables):
    """The words of the lists with commas between them, by their kind."""
    return {"probes": [probe["name"] for probe in tables["probes"]],
            **{f"columns of {record['name']}": [member["name"] for member in record["members"]]
               for record in tables["records"]}}


def names(tables, separator):
    return separator.join(command["name"] for command in tables["commands"])


# bash

BASH = r"""# Completion of btrfs-walk for bash; made by scripts/make-docs.
_btrfs_walk_offer_file() {
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$2")
}

_btrfs_walk_offer_type() {
    mapfile -t COMPREPLY < <(compgen -W "$("$1" xlators 2> /dev/null | sed 's/ .*//')" -- "$2")
}

_btrfs_walk_offer_layer() {
    compopt -o nospace 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -S @ -W "$("$1" xlators 2> /dev/null | sed 's/ .*//')" -- "$2")
}

# The numbers of the partitions of the first image in the line. Names are not offered: a disk may
# hold anything there. The message that there is no partition of a name says which there are.
_btrfs_walk_offer_partition() {
    local disk
    for disk in "${COMP_WORDS[@]:1}"; do
        [[ -f $disk || -b $disk ]] && break
    done
    mapfile -t COMPREPLY < <(compgen -W "$("$1" graph --partition : -- "$disk" 2>&1 |
        sed -n 's/.*; there are: //p' | grep -oE '(^|, )[0-9]+' | tr -d ', ')" -- "$2")
}

# What a command of the program lists of the images among the words.
_btrfs_walk_inside() {
    local word images=()
    for word in "${COMP_WORDS[@]:1}"; do
        if [[ -f $word || -b $word ]]; then images+=("$word"); fi
    done
    [ ${#images[@]} -eq 0 ] || "$@" "${images[@]}" 2> /dev/null
}

_btrfs_walk_offer_devid() {
    mapfile -t COMPREPLY < <(compgen -W "$(_btrfs_walk_inside "$1" devices -o id)" -- "$2")
}

# Paths, where they are plain: a shell would expand others.
_btrfs_walk_offer_subvolume() {
    mapfile -t COMPREPLY < <(compgen -W "default $(
        _btrfs_walk_inside "$1" subvolumes --json -o path |
        LC_ALL=C sed -nE 's|^.{9}([/A-Za-z0-9@._+-]+).{2}$|\1|p')" -- "$2")
}

# The last word of a list with commas.
_btrfs_walk_offer_list() {
    local last=${1##*,}
    compopt -o nospace 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -P "${1%"$last"}" -W "$2" -- "$last")
}

_btrfs_walk() {
    local word=$2 previous=$3 command=walk equals=no
    COMPREPLY=()
    [[ $word != = && $previous != = ]] || equals=yes
    [[ $word != = ]] || word=
    [[ $previous != = ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
"""


def bash_offer(tables, kind):
    if kind is None:
        return ":"
    if kind in lists(tables):
        return f"_btrfs_walk_offer_list \"$word\" '{' '.join(lists(tables)[kind])}'"
    if isinstance(kind, str):
        return f'_btrfs_walk_offer_{kind} "$1" "$word"'
    return f"mapfile -t COMPREPLY < <(compgen -W '{' '.join(kind)}' -- \"$word\")"


def bash_arguments(tables, prefix, options):
    """What to offer after options that take an argument: a case for each kind of argument."""
    cases = {}
    for option in options:
        if option["argument"]:
            offer = bash_offer(tables, kind_of_option(option))
            cases.setdefault(offer, []).extend(f"{prefix}:{form}" for form in forms([option]))
    return "".join(f"    {' | '.join(words)}) {offer} ;;\n" for offer, words in cases.items())


def bash_command(tables, command):
    """Options, then operands."""
    more = "$common" if command["needs_no_image"] else "$image $common"
    own = " ".join(forms(command["all_options"]))
    return f"""\
    {command['name']}:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "{own} {more}" -- "$word")
        else
            {bash_offer(tables, kind_of(command["operands"]))}
        fi ;;
"""


def bash(tables):
    image, common = shared(tables)
    commands = tables["commands"]
    # An optional argument follows a '='. Without one, no argument is offered for the option.
    alone = " | ".join([f"{command['name']}:--{option['name']}" for command in commands
                        for option in command["all_options"] if optional(option)]
                       + [f"*:--{option['name']}" for option in image + common if optional(option)])
    return BASH + f"""\
    local image='{" ".join(forms(image))}'
    local common='{" ".join(forms(common))}'
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${{COMP_WORDS[1]}} =~ ^({names(tables, '|')})$ ]]; then
        command=${{COMP_WORDS[1]}}
    fi
    [ $equals = yes ] || case $command:$previous in
    {alone}) previous= ;;
    esac
    case $command:$previous in
    *:@) ;;
{"".join(bash_arguments(tables, command["name"], command["all_options"]) for command in commands)}\
{bash_arguments(tables, "*", image + common)}\
{"".join(bash_command(tables, command) for command in commands)}\
    esac
    if [ "$COMP_CWORD" -eq 1 ] && [[ $word != -* ]]; then
        mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -W '{names(tables, " ")}' -- "$word")
    fi
}}
complete -F _btrfs_walk btrfs-walk
"""


# zsh

ZSH = r"""#compdef btrfs-walk
# Completion of btrfs-walk for zsh; made by scripts/make-docs.
_btrfs_walk_type() {
    local -a types
    types=(${${(f)"$($program xlators 2> /dev/null)"}%% *})
    compadd "$@" -a types
}

_btrfs_walk_layer() { _btrfs_walk_type "$@" -S @; }

# The numbers of the partitions of the first image in the line.
_btrfs_walk_partition() {
    local disk
    local -a numbers
    for disk in $words[2,-1]; do
        [[ -f $disk || -b $disk ]] && break
    done
    numbers=($($program graph --partition : -- $disk 2>&1 |
        sed -n 's/.*; there are: //p' | grep -oE '(^|, )[0-9]+' | tr -d ', '))
    compadd "$@" -a numbers
}

# What a command of the program lists of the images among the words.
_btrfs_walk_inside() {
    local word
    local -a images
    for word in ${(Q)words[2,-1]}; do
        [[ -f $word || -b $word ]] && images+=($word)
    done
    (( $#images )) && $program "$@" $images 2> /dev/null
}

_btrfs_walk_devid() { compadd "$@" -- $(_btrfs_walk_inside devices -o id); }

# Paths, where they are plain.
_btrfs_walk_subvolume() {
    compadd "$@" -- default $(_btrfs_walk_inside subvolumes --json -o path |
        LC_ALL=C sed -nE 's|^.{9}([/A-Za-z0-9@._+-]+).{2}$|\1|p')
}

local program=$words[1] command=walk
local -a subcommands image common own
"""


def zsh_quoted(text):
    return text.replace("'", "'\\''")


def zsh_offer(tables, kind):
    """What _arguments does for an argument or an operand."""
    if kind in lists(tables):
        return f" _values -s , {kind.split()[0]} {' '.join(lists(tables)[kind])}"
    if isinstance(kind, str):
        return "_files" if kind == "file" else f"_btrfs_walk_{kind}"
    return f"({' '.join(kind)})" if kind else ""


def zsh_option(tables, option):
    description = zsh_quoted(option["description"])
    for byte in "[]:":
        description = description.replace(byte, "\\" + byte)
    star = "*" if description.endswith("(repeatable)") else ""
    value, joined = "", ""
    if option["argument"]:
        offer = zsh_offer(tables, kind_of_option(option))
        title = " ".join(kind_of_option(option)) if optional(option) else option["argument"]
        value = f":{title}:{offer}"
    if optional(option):
        value, joined = ":" + value, "=-"
    text = ""
    if option["letter"]:
        text = f"    '{star}-{option['letter']}[{description}]{value}'\n"
    return text + f"    '{star}--{option['name']}{joined}[{description}]{value}'\n"


def zsh_array(tables, name, options):
    return f"{name}=(\n" + "".join(zsh_option(tables, option) for option in options) + ")\n"


def zsh(tables):
    image, common = shared(tables)
    text = ZSH + "subcommands=(\n"
    for command in tables["commands"]:
        text += f"    '{command['name']}:{zsh_quoted(command['summary'])}'\n"
    text += f""")
{zsh_array(tables, "image", image)}{zsh_array(tables, "common", common)}\
if (( CURRENT == 2 )); then
    [[ $words[2] == -* ]] || _describe command subcommands
elif [[ $words[2] == ({names(tables, '|')}) ]]; then
    command=$words[2]
    shift words
    (( CURRENT-- ))
fi
case $command in
"""
    for command in tables["commands"]:
        text += f"{command['name']})\n" + zsh_array(tables, "own", command["all_options"])
        more = "$common" if command["needs_no_image"] else "$image $common"
        text += f"_arguments -s -S $own {more}"
        text += f" '*:operand:{zsh_offer(tables, kind_of(command['operands']))}' ;;\n"
    return text + "esac\n"


# fish

FISH = r"""# Completion of btrfs-walk for fish; made by scripts/make-docs.
function __btrfs_walk_type
    set -l words (commandline -opc)
    $words[1] xlators 2> /dev/null | string replace -r ' +' \t
end

function __btrfs_walk_layer
    __btrfs_walk_type | string replace \t @\t
end

# The numbers of the partitions of the first image in the line.
function __btrfs_walk_partition
    set -l words (commandline -opc)
    for disk in $words[2..]
        if test -f $disk -o -b $disk
            $words[1] graph --partition : -- $disk 2>&1 | string replace -rf '.*; there are: ' '' |
                string match -ra '(?:^|, )[0-9]+' | string replace -r '^, ' ''
            return
        end
    end
end

# What a command of the program lists of the images among the words.
function __btrfs_walk_inside
    set -l words (commandline -opc)
    set -l images
    for word in $words[2..]
        test -f $word -o -b $word; and set -a images $word
    end
    set -q images[1]; and $words[1] $argv $images 2> /dev/null
end

function __btrfs_walk_devid
    __btrfs_walk_inside devices -o id
end

# Paths, where they are plain.
function __btrfs_walk_subvolume
    echo default
    __btrfs_walk_inside subvolumes --json -o path |
        string replace -rf '^.{9}([/A-Za-z0-9@._+-]+).{2}$' '$1'
end

# The last word of a list with commas.
function __btrfs_walk_list
    set -l before (commandline -ct | string replace -r '^-[^=]*=' '' | string match -r '^.*,')
    printf '%s\n' "$before"$argv
end

"""


def fish_quoted(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish_offer(tables, kind):
    if kind is None:
        return " -x"
    if kind in lists(tables):
        return f" -x -a '(__btrfs_walk_list {' '.join(lists(tables)[kind])})'"
    if isinstance(kind, str):
        return " -r -F" if kind == "file" else f" -x -a '(__btrfs_walk_{kind})'"
    return f" -x -a '{' '.join(kind)}'"


def fish_options(tables, options, condition):
    text = ""
    for option in options:
        kind = kind_of_option(option)
        text += f"complete -c btrfs-walk{condition}"
        text += f" -s {option['letter']}" if option["letter"] else ""
        text += f" -l {option['name']}"
        if optional(option):
            text += f" -a '{' '.join(kind)}'"
        elif option["argument"]:
            text += fish_offer(tables, kind)
        text += f" -d '{fish_quoted(option['description'])}'\n"
    return text


def fish(tables):
    without = " ".join(c["name"] for c in tables["commands"] if c["needs_no_image"])
    text = FISH + f"""\
function __btrfs_walk_is
    set -l words (commandline -opc)
    set -l command walk
    contains -- "$words[2]" {names(tables, ' ')}; and set command $words[2]
    contains -- $command $argv
end

"""
    for command in tables["commands"]:
        condition = f" -n '__btrfs_walk_is {command['name']}'"
        text += f"complete -c btrfs-walk -n __fish_is_first_arg -a {command['name']}"
        text += f" -d '{fish_quoted(command['summary'])}'\n"
        kind = kind_of(command["operands"])
        if kind != "file":
            offer = f" -f -a '(__btrfs_walk_{kind})'" if kind else " -f"
            text += f"complete -c btrfs-walk{condition}{offer}\n"
        text += fish_options(tables, command["all_options"], condition)
    image, common = shared(tables)
    text += fish_options(tables, image, f" -n 'not __btrfs_walk_is {without}'")
    return text + fish_options(tables, common, "")


def make(tables):
    """The text of each completion, by the name of its file."""
    return {"btrfs-walk.bash": bash(tables), "_btrfs-walk": zsh(tables),
            "btrfs-walk.fish": fish(tables)}
