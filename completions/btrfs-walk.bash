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
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${COMP_WORDS[1]} =~ ^(walk|ls|stat|readlink|xattr|graph|xlators|blackbox)$ ]]; then
        command=${COMP_WORDS[1]}
    fi
    [ $equals = yes ] || case $command:$previous in
    walk:--json) previous= ;;
    walk:--probe-list) previous= ;;
    walk:--probe-stats) previous= ;;
    ls:--probe-list) previous= ;;
    ls:--probe-stats) previous= ;;
    stat:--probe-list) previous= ;;
    stat:--probe-stats) previous= ;;
    readlink:--probe-list) previous= ;;
    readlink:--probe-stats) previous= ;;
    xattr:--probe-list) previous= ;;
    xattr:--probe-stats) previous= ;;
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
    ls:--subvol) ;;
    ls:-d | ls:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    ls:-s | ls:--super) ;;
    ls:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    ls:--xlator-option) ;;
    ls:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    ls:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    ls:--probe) ;;
    ls:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    ls:--probe-format) ;;
    ls:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    ls:--probe-filter) ;;
    ls:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    ls:--probe-max) ;;
    ls:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    ls:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '-l --long -a --all -R --recursive -i --inode -h --human-readable --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    stat:--subvol) ;;
    stat:-d | stat:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:-s | stat:--super) ;;
    stat:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:--xlator-option) ;;
    stat:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    stat:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:--probe) ;;
    stat:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    stat:--probe-format) ;;
    stat:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:--probe-filter) ;;
    stat:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    stat:--probe-max) ;;
    stat:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--json -L --dereference --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    readlink:--subvol) ;;
    readlink:-d | readlink:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:-s | readlink:--super) ;;
    readlink:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:--xlator-option) ;;
    readlink:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    readlink:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:--probe) ;;
    readlink:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    readlink:--probe-format) ;;
    readlink:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:--probe-filter) ;;
    readlink:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    readlink:--probe-max) ;;
    readlink:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '-0 --print0 --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    xattr:--subvol) ;;
    xattr:-d | xattr:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:-s | xattr:--super) ;;
    xattr:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:--xlator-option) ;;
    xattr:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    xattr:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:--probe) ;;
    xattr:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    xattr:--probe-format) ;;
    xattr:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:--probe-filter) ;;
    xattr:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    xattr:--probe-max) ;;
    xattr:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--json -L --dereference --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
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
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'walk ls stat readlink xattr graph xlators blackbox' -- "$word")
    fi
}
complete -F _btrfs_walk btrfs-walk
