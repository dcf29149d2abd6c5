# Completion of btrfs-walk for bash; made by scripts/make-completions.
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

_btrfs_walk() {
    local word=$2 previous=$3 command=walk equals=no
    COMPREPLY=()
    [[ $word != = && $previous != = ]] || equals=yes
    [[ $word != = ]] || word=
    [[ $previous != = ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${COMP_WORDS[1]} =~ ^(walk|graph|xlators|blackbox)$ ]]; then
        command=${COMP_WORDS[1]}
    fi
    [ $equals = yes ] || case $command:$previous in
    walk:--json) previous= ;;
    walk:--probe-list) previous= ;;
    walk:--probe-stats) previous= ;;
    graph:--probe-list) previous= ;;
    graph:--probe-stats) previous= ;;
    esac
    case $command:$previous in
    *:@) ;;
    walk:-o | walk:--output) ;;
    walk:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    walk:--separator) ;;
    walk:--subvol) ;;
    walk:-j | walk:--threads) ;;
    walk:-d | walk:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    walk:-s | walk:--super) ;;
    walk:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    walk:--xlator-option) ;;
    walk:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    walk:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    walk:--probe) ;;
    walk:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    walk:--probe-format) ;;
    walk:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    walk:--probe-filter) ;;
    walk:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    walk:--probe-max) ;;
    walk:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    walk:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '-0 --print0 -o --output --json --json-header --header --separator --iec --si --raw --subvol --no-snapshots -j --threads --summary -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    graph:--format) mapfile -t COMPREPLY < <(compgen -W 'volfile dot' -- "$word") ;;
    graph:-d | graph:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    graph:-s | graph:--super) ;;
    graph:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    graph:--xlator-option) ;;
    graph:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    graph:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    graph:--probe) ;;
    graph:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    graph:--probe-format) ;;
    graph:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    graph:--probe-filter) ;;
    graph:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    graph:--probe-max) ;;
    graph:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    graph:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--format -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    xlators:--format) mapfile -t COMPREPLY < <(compgen -W 'text markdown man' -- "$word") ;;
    xlators:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--format --built-in -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_type "$1" "$word"
        fi ;;
    blackbox:--last) ;;
    blackbox:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--json --last -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ] && [[ $word != -* ]]; then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'walk graph xlators blackbox' -- "$word")
    fi
}
complete -F _btrfs_walk btrfs-walk
