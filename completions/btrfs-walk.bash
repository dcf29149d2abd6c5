# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of btrfs-walk for bash, from 4.4 on. The program knows the answers: it prints letters
# that say what to do (f: names of files as well, n: no blank behind, q: bash has to quote them),
# and then the answers, each ended by a NUL.
_btrfs_walk() {
    local -a answers files
    mapfile -d '' -t answers < <("${1/#\~/$HOME}" --complete-bash "$COMP_WORDBREAKS" \
        "${COMP_LINE:0:COMP_POINT}" 2> /dev/null)
    COMPREPLY=("${answers[@]:1}")
    if [[ ${answers[0]} != *f* ]]; then
        compopt +o default +o bashdefault
    elif [ ${#COMPREPLY[@]} -gt 0 ]; then # else readline completes names of files
        compopt -o filenames
        mapfile -t files < <(compgen -f -- "$2")
        COMPREPLY+=("${files[@]}")
    fi
    [[ ${answers[0]} != *q* ]] || compopt -o filenames
    [[ ${answers[0]} != *n* ]] || compopt -o nospace
}
complete -o bashdefault -o default -F _btrfs_walk btrfs-walk
