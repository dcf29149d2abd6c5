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
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${COMP_WORDS[1]} =~ ^(walk|ls|stat|readlink|xattr|cat|extents|sum|tar|extract|bodyfile|graph|xlators|blackbox)$ ]]; then
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
    cat:--probe-list) previous= ;;
    cat:--probe-stats) previous= ;;
    extents:--probe-list) previous= ;;
    extents:--probe-stats) previous= ;;
    sum:--probe-list) previous= ;;
    sum:--probe-stats) previous= ;;
    tar:--probe-list) previous= ;;
    tar:--probe-stats) previous= ;;
    extract:--probe-list) previous= ;;
    extract:--probe-stats) previous= ;;
    bodyfile:--probe-list) previous= ;;
    bodyfile:--probe-stats) previous= ;;
    graph:--probe-list) previous= ;;
    graph:--probe-stats) previous= ;;
    esac
    case $command:$previous in
    *:@) ;;
    walk:-o | walk:--output) ;;
    walk:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    walk:--separator) ;;
    walk:--sort) ;;
    walk:--type) ;;
    walk:--name) ;;
    walk:--iname) ;;
    walk:--path) ;;
    walk:--regex) ;;
    walk:--exclude) ;;
    walk:--size) ;;
    walk:--newer) ;;
    walk:--mtime) ;;
    walk:--uid) ;;
    walk:--gid) ;;
    walk:--perm) ;;
    walk:--links) ;;
    walk:--inum) ;;
    walk:--maxdepth) ;;
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
            mapfile -t COMPREPLY < <(compgen -W '-0 --print0 -o --output --json --json-header --header --separator --iec --si --raw --long --sort --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth --subvol --no-snapshots -j --threads --summary -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    ls:--type) ;;
    ls:--name) ;;
    ls:--iname) ;;
    ls:--path) ;;
    ls:--regex) ;;
    ls:--exclude) ;;
    ls:--size) ;;
    ls:--newer) ;;
    ls:--mtime) ;;
    ls:--uid) ;;
    ls:--gid) ;;
    ls:--perm) ;;
    ls:--links) ;;
    ls:--inum) ;;
    ls:--maxdepth) ;;
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
            mapfile -t COMPREPLY < <(compgen -W '-l --long -a --all -R --recursive -i --inode -h --human-readable --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose --help -V --version' -- "$word")
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
    cat:--offset) ;;
    cat:--length) ;;
    cat:--on-error) ;;
    cat:-j | cat:--threads) ;;
    cat:--subvol) ;;
    cat:-d | cat:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:-s | cat:--super) ;;
    cat:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:--xlator-option) ;;
    cat:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    cat:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:--probe) ;;
    cat:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    cat:--probe-format) ;;
    cat:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:--probe-filter) ;;
    cat:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    cat:--probe-max) ;;
    cat:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--offset --length --on-error --no-checksums -j --threads --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    extents:--subvol) ;;
    extents:-d | extents:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:-s | extents:--super) ;;
    extents:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:--xlator-option) ;;
    extents:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    extents:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:--probe) ;;
    extents:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    extents:--probe-format) ;;
    extents:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:--probe-filter) ;;
    extents:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    extents:--probe-max) ;;
    extents:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--json --subvol -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    sum:--algorithm) ;;
    sum:--subvol) ;;
    sum:-j | sum:--threads) ;;
    sum:--type) ;;
    sum:--name) ;;
    sum:--iname) ;;
    sum:--path) ;;
    sum:--regex) ;;
    sum:--exclude) ;;
    sum:--size) ;;
    sum:--newer) ;;
    sum:--mtime) ;;
    sum:--uid) ;;
    sum:--gid) ;;
    sum:--perm) ;;
    sum:--links) ;;
    sum:--inum) ;;
    sum:--maxdepth) ;;
    sum:-d | sum:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:-s | sum:--super) ;;
    sum:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:--xlator-option) ;;
    sum:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    sum:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:--probe) ;;
    sum:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    sum:--probe-format) ;;
    sum:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:--probe-filter) ;;
    sum:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    sum:--probe-max) ;;
    sum:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--algorithm -0 --zero --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    tar:-f | tar:--file) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:--format) ;;
    tar:--on-error) ;;
    tar:--subvol) ;;
    tar:-j | tar:--threads) ;;
    tar:--type) ;;
    tar:--name) ;;
    tar:--iname) ;;
    tar:--path) ;;
    tar:--regex) ;;
    tar:--exclude) ;;
    tar:--size) ;;
    tar:--newer) ;;
    tar:--mtime) ;;
    tar:--uid) ;;
    tar:--gid) ;;
    tar:--perm) ;;
    tar:--links) ;;
    tar:--inum) ;;
    tar:--maxdepth) ;;
    tar:-d | tar:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:-s | tar:--super) ;;
    tar:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:--xlator-option) ;;
    tar:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    tar:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:--probe) ;;
    tar:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    tar:--probe-format) ;;
    tar:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:--probe-filter) ;;
    tar:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    tar:--probe-max) ;;
    tar:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '-f --file --format --on-error --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    extract:-C | extract:--directory) ;;
    extract:--on-error) ;;
    extract:--subvol) ;;
    extract:-j | extract:--threads) ;;
    extract:--type) ;;
    extract:--name) ;;
    extract:--iname) ;;
    extract:--path) ;;
    extract:--regex) ;;
    extract:--exclude) ;;
    extract:--size) ;;
    extract:--newer) ;;
    extract:--mtime) ;;
    extract:--uid) ;;
    extract:--gid) ;;
    extract:--perm) ;;
    extract:--links) ;;
    extract:--inum) ;;
    extract:--maxdepth) ;;
    extract:-d | extract:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:-s | extract:--super) ;;
    extract:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:--xlator-option) ;;
    extract:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    extract:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:--probe) ;;
    extract:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    extract:--probe-format) ;;
    extract:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:--probe-filter) ;;
    extract:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    extract:--probe-max) ;;
    extract:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '-C --directory --skip-existing --preserve --on-error --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    bodyfile:--subvol) ;;
    bodyfile:-j | bodyfile:--threads) ;;
    bodyfile:--type) ;;
    bodyfile:--name) ;;
    bodyfile:--iname) ;;
    bodyfile:--path) ;;
    bodyfile:--regex) ;;
    bodyfile:--exclude) ;;
    bodyfile:--size) ;;
    bodyfile:--newer) ;;
    bodyfile:--mtime) ;;
    bodyfile:--uid) ;;
    bodyfile:--gid) ;;
    bodyfile:--perm) ;;
    bodyfile:--links) ;;
    bodyfile:--inum) ;;
    bodyfile:--maxdepth) ;;
    bodyfile:-d | bodyfile:--device) _btrfs_walk_offer_file "$1" "$word" ;;
    bodyfile:-s | bodyfile:--super) ;;
    bodyfile:--graph) _btrfs_walk_offer_file "$1" "$word" ;;
    bodyfile:--xlator-option) ;;
    bodyfile:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    bodyfile:--statedump) _btrfs_walk_offer_file "$1" "$word" ;;
    bodyfile:--probe) ;;
    bodyfile:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'STYLE' -- "$word") ;;
    bodyfile:--probe-format) ;;
    bodyfile:--probe-output) _btrfs_walk_offer_file "$1" "$word" ;;
    bodyfile:--probe-filter) ;;
    bodyfile:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    bodyfile:--probe-max) ;;
    bodyfile:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    bodyfile:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--subvol --no-snapshots -j --threads --type --name --iname --path --regex --exclude --size --empty --newer --mtime --uid --gid --perm --links --inum --maxdepth -d --device -s --super --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox -q --quiet -v --verbose -h --help -V --version' -- "$word")
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
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'walk ls stat readlink xattr cat extents sum tar extract bodyfile graph xlators blackbox' -- "$word")
    fi
}
complete -F _btrfs_walk btrfs-walk
