# Completion of btrfs-walk for bash; made by scripts/make-completions.
_btrfs_walk() {
    local word=${COMP_WORDS[COMP_CWORD]}
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-0 --print0 --subvol --no-snapshots -j --threads --summary -d --device -s --super -q --quiet -v --verbose -h --help -V --version' -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        [ "$COMP_CWORD" -ne 1 ] || [[ walk != "$word"* ]] || COMPREPLY+=(walk)
    fi
}
complete -o filenames -F _btrfs_walk btrfs-walk
