# Completion of btrfs-walk for bash; made by scripts/make-docs.
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
    local image='-d --device -s --super --partition --image-offset --log --generation --tree-root --chunk-root --backup --helpers --scan --graph --xlator-option --insert --statedump --probe --probe-list --probe-format --probe-output --probe-filter --probe-stats --probe-max --blackbox'
    local common='--sandbox -q --quiet -v --verbose -h --help -V --version'
    if [ "$COMP_CWORD" -gt 1 ] && [[ ${COMP_WORDS[1]} =~ ^(walk|ls|stat|readlink|xattr|cat|extents|versions|du|compression|sum|tar|extract|deleted|bodyfile|mount|info|check|owner|devices|usage|picture|report|subvolumes|diff|roots|space|qgroups|log|super|chunks|map|tree-stats|dump|graph|xlators|blackbox)$ ]]; then
        command=${COMP_WORDS[1]}
    fi
    [ $equals = yes ] || case $command:$previous in
    walk:--json | versions:--json | du:--json | compression:--json | deleted:--json | check:--json | owner:--json | devices:--json | subvolumes:--json | diff:--json | roots:--json | space:--json | qgroups:--json | log:--json | chunks:--json | map:--json | tree-stats:--json | *:--probe-list | *:--probe-stats | *:--help) previous= ;;
    esac
    case $command:$previous in
    *:@) ;;
    walk:-o | walk:--output) _btrfs_walk_offer_list "$word" 'path path_bytes subvolume inode type mode uid gid size bytes nlink atime mtime ctime otime generation transid sequence flags compression' ;;
    walk:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    walk:--separator | walk:--type | walk:--name | walk:--iname | walk:--path | walk:--wholename | walk:--ipath | walk:--regex | walk:--iregex | walk:--exclude | walk:--size | walk:--newer | walk:--newermt | walk:--newerat | walk:--newerct | walk:--newerBt | walk:--mtime | walk:--atime | walk:--ctime | walk:--mmin | walk:--amin | walk:--cmin | walk:--uid | walk:--gid | walk:--user | walk:--group | walk:--perm | walk:--links | walk:--inum | walk:--maxdepth | walk:-j | walk:--threads) : ;;
    walk:--sort) mapfile -t COMPREPLY < <(compgen -W 'none path size mtime' -- "$word") ;;
    walk:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    ls:--type | ls:--name | ls:--iname | ls:--path | ls:--wholename | ls:--ipath | ls:--regex | ls:--iregex | ls:--exclude | ls:--size | ls:--newer | ls:--newermt | ls:--newerat | ls:--newerct | ls:--newerBt | ls:--mtime | ls:--atime | ls:--ctime | ls:--mmin | ls:--amin | ls:--cmin | ls:--uid | ls:--gid | ls:--user | ls:--group | ls:--perm | ls:--links | ls:--inum | ls:--maxdepth) : ;;
    ls:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    ls:-T | ls:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    stat:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    stat:-T | stat:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    readlink:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    readlink:-T | readlink:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    xattr:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    xattr:-T | xattr:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    cat:--offset | cat:--length | cat:-j | cat:--threads) : ;;
    cat:--on-error) mapfile -t COMPREPLY < <(compgen -W 'fail zero skip' -- "$word") ;;
    cat:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    cat:-T | cat:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    extents:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    extents:-T | extents:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    versions:--index) _btrfs_walk_offer_file "$1" "$word" ;;
    versions:-o | versions:--output) _btrfs_walk_offer_list "$word" 'generation first tree_root date left type size mtime changes unknown replaced path path_bytes subvolume inode' ;;
    versions:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    versions:--separator) : ;;
    du:-o | du:--output) _btrfs_walk_offer_list "$word" 'path path_bytes type subvolume inode depth files total exclusive shared set_shared' ;;
    du:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    du:--separator | du:--type | du:--name | du:--iname | du:--path | du:--wholename | du:--ipath | du:--regex | du:--iregex | du:--exclude | du:--size | du:--newer | du:--newermt | du:--newerat | du:--newerct | du:--newerBt | du:--mtime | du:--atime | du:--ctime | du:--mmin | du:--amin | du:--cmin | du:--uid | du:--gid | du:--user | du:--group | du:--perm | du:--links | du:--inum | du:--maxdepth) : ;;
    du:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    du:-T | du:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    compression:-o | compression:--output) _btrfs_walk_offer_list "$word" 'type percent disk uncompressed referenced files extents references inlined' ;;
    compression:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    compression:--separator | compression:--type | compression:--name | compression:--iname | compression:--path | compression:--wholename | compression:--ipath | compression:--regex | compression:--iregex | compression:--exclude | compression:--size | compression:--newer | compression:--newermt | compression:--newerat | compression:--newerct | compression:--newerBt | compression:--mtime | compression:--atime | compression:--ctime | compression:--mmin | compression:--amin | compression:--cmin | compression:--uid | compression:--gid | compression:--user | compression:--group | compression:--perm | compression:--links | compression:--inum | compression:--maxdepth) : ;;
    compression:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    compression:-T | compression:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    sum:-a | sum:--algorithm) mapfile -t COMPREPLY < <(compgen -W 'sha256 sha512 sha384 blake2b sha1 md5 xxh64' -- "$word") ;;
    sum:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    sum:-j | sum:--threads | sum:--type | sum:--name | sum:--iname | sum:--path | sum:--wholename | sum:--ipath | sum:--regex | sum:--iregex | sum:--exclude | sum:--size | sum:--newer | sum:--newermt | sum:--newerat | sum:--newerct | sum:--newerBt | sum:--mtime | sum:--atime | sum:--ctime | sum:--mmin | sum:--amin | sum:--cmin | sum:--uid | sum:--gid | sum:--user | sum:--group | sum:--perm | sum:--links | sum:--inum | sum:--maxdepth) : ;;
    sum:-T | sum:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:-f | tar:--file | tar:-T | tar:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    tar:--format) mapfile -t COMPREPLY < <(compgen -W 'pax cpio mtree' -- "$word") ;;
    tar:--on-error) mapfile -t COMPREPLY < <(compgen -W 'fail zero skip' -- "$word") ;;
    tar:--strip-components | tar:-j | tar:--threads | tar:--type | tar:--name | tar:--iname | tar:--path | tar:--wholename | tar:--ipath | tar:--regex | tar:--iregex | tar:--exclude | tar:--size | tar:--newer | tar:--newermt | tar:--newerat | tar:--newerct | tar:--newerBt | tar:--mtime | tar:--atime | tar:--ctime | tar:--mmin | tar:--amin | tar:--cmin | tar:--uid | tar:--gid | tar:--user | tar:--group | tar:--perm | tar:--links | tar:--inum | tar:--maxdepth) : ;;
    tar:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    extract:-C | extract:--directory | extract:-T | extract:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    extract:--on-error) mapfile -t COMPREPLY < <(compgen -W 'fail zero skip' -- "$word") ;;
    extract:--strip-components | extract:-j | extract:--threads | extract:--type | extract:--name | extract:--iname | extract:--path | extract:--wholename | extract:--ipath | extract:--regex | extract:--iregex | extract:--exclude | extract:--size | extract:--newer | extract:--newermt | extract:--newerat | extract:--newerct | extract:--newerBt | extract:--mtime | extract:--atime | extract:--ctime | extract:--mmin | extract:--amin | extract:--cmin | extract:--uid | extract:--gid | extract:--user | extract:--group | extract:--perm | extract:--links | extract:--inum | extract:--maxdepth) : ;;
    extract:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    deleted:--since | deleted:-j | deleted:--threads | deleted:--type | deleted:--name | deleted:--iname | deleted:--path | deleted:--wholename | deleted:--ipath | deleted:--regex | deleted:--iregex | deleted:--exclude | deleted:--size | deleted:--newer | deleted:--newermt | deleted:--newerat | deleted:--newerct | deleted:--newerBt | deleted:--mtime | deleted:--atime | deleted:--ctime | deleted:--mmin | deleted:--amin | deleted:--cmin | deleted:--uid | deleted:--gid | deleted:--user | deleted:--group | deleted:--perm | deleted:--links | deleted:--inum | deleted:--maxdepth | deleted:--separator) : ;;
    deleted:--extract | deleted:--index) _btrfs_walk_offer_file "$1" "$word" ;;
    deleted:--on-error) mapfile -t COMPREPLY < <(compgen -W 'fail zero skip' -- "$word") ;;
    deleted:-o | deleted:--output) _btrfs_walk_offer_list "$word" 'left generation tree_root date type path path_bytes size mtime subvolume inode bad_bytes bad' ;;
    deleted:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    bodyfile:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    bodyfile:-j | bodyfile:--threads | bodyfile:--type | bodyfile:--name | bodyfile:--iname | bodyfile:--path | bodyfile:--wholename | bodyfile:--ipath | bodyfile:--regex | bodyfile:--iregex | bodyfile:--exclude | bodyfile:--size | bodyfile:--newer | bodyfile:--newermt | bodyfile:--newerat | bodyfile:--newerct | bodyfile:--newerBt | bodyfile:--mtime | bodyfile:--atime | bodyfile:--ctime | bodyfile:--mmin | bodyfile:--amin | bodyfile:--cmin | bodyfile:--uid | bodyfile:--gid | bodyfile:--user | bodyfile:--group | bodyfile:--perm | bodyfile:--links | bodyfile:--inum | bodyfile:--maxdepth) : ;;
    bodyfile:-T | bodyfile:--files-from) _btrfs_walk_offer_file "$1" "$word" ;;
    mount:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    mount:--uid | mount:--gid) : ;;
    check:--tolerate) mapfile -t COMPREPLY < <(compgen -W 'nothing mendable' -- "$word") ;;
    check:--manifest | check:--report) _btrfs_walk_offer_file "$1" "$word" ;;
    check:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    check:-j | check:--threads | check:--separator) : ;;
    check:-o | check:--output) _btrfs_walk_offer_list "$word" 'severity code pass tree tree_name key key_objectid key_type key_offset logical length devid offset copy inode file_offset mendable paths more_paths more_subvolumes message file_length' ;;
    check:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    owner:--devid) _btrfs_walk_offer_devid "$1" "$word" ;;
    owner:--bad-map) _btrfs_walk_offer_file "$1" "$word" ;;
    owner:--block-size | owner:--map-offset | owner:--separator) : ;;
    owner:--subvol) _btrfs_walk_offer_subvolume "$1" "$word" ;;
    owner:-o | owner:--output) _btrfs_walk_offer_list "$word" 'kind logical length extent tree inode offset file_length path path_bytes level key key_objectid key_type key_offset devid device_offset mendable' ;;
    owner:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    devices:-o | devices:--output) _btrfs_walk_offer_list "$word" 'id state size allocated generation uuid path path_bytes partition' ;;
    devices:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    devices:--separator) : ;;
    picture:-o | picture:--output) _btrfs_walk_offer_file "$1" "$word" ;;
    picture:--format) mapfile -t COMPREPLY < <(compgen -W 'auto svg png text' -- "$word") ;;
    picture:--by) mapfile -t COMPREPLY < <(compgen -W 'type fill age owner heatmap' -- "$word") ;;
    picture:--sort) mapfile -t COMPREPLY < <(compgen -W 'physical logical' -- "$word") ;;
    picture:--curve) mapfile -t COMPREPLY < <(compgen -W 'hilbert linear snake' -- "$word") ;;
    picture:--order | picture:--size) : ;;
    picture:--devid) _btrfs_walk_offer_devid "$1" "$word" ;;
    picture:--color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$word") ;;
    report:-o | report:--output) _btrfs_walk_offer_file "$1" "$word" ;;
    report:--check) mapfile -t COMPREPLY < <(compgen -W 'full quick none' -- "$word") ;;
    report:-j | report:--threads) : ;;
    subvolumes:-o | subvolumes:--output) _btrfs_walk_offer_list "$word" 'id generation parent top_level path path_bytes attributes ro snapshot is_default deleted uuid parent_uuid received_uuid otime ctime stime rtime otransid ctransid stransid rtransid flags bytes_used level root last_snapshot directory' ;;
    subvolumes:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    subvolumes:--separator) : ;;
    diff:--other) _btrfs_walk_offer_file "$1" "$word" ;;
    diff:--content) mapfile -t COMPREPLY < <(compgen -W 'needed never always' -- "$word") ;;
    diff:--only | diff:--separator) : ;;
    diff:-o | diff:--output) _btrfs_walk_offer_list "$word" 'status type path path_bytes old_path old_path_bytes changes unknown bytes old_size size old_type old_inode inode' ;;
    diff:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    roots:--index) _btrfs_walk_offer_file "$1" "$word" ;;
    roots:-j | roots:--threads | roots:--separator) : ;;
    roots:-o | roots:--output) _btrfs_walk_offer_list "$word" 'generation date found standing left missing trimmed overwritten trees trees_damaged subvolumes readable tree_root chunk_root' ;;
    roots:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    space:--free-if | space:-j | space:--threads | space:--separator) : ;;
    space:-o | space:--output) _btrfs_walk_offer_list "$word" 'id referenced exclusive shared path path_bytes deleted lost_blocks' ;;
    space:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    qgroups:-o | qgroups:--output) _btrfs_walk_offer_list "$word" 'id referenced exclusive max_referenced max_exclusive parents children path path_bytes level number generation referenced_compressed exclusive_compressed limit_flags' ;;
    qgroups:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    qgroups:--separator) : ;;
    log:-o | log:--output) _btrfs_walk_offer_list "$word" 'change type path path_bytes offset length attribute before before_bytes after after_bytes subvolume inode' ;;
    log:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    log:--separator) : ;;
    super:-i | super:--copy) : ;;
    chunks:--by) mapfile -t COMPREPLY < <(compgen -W 'chunk device' -- "$word") ;;
    chunks:-o | chunks:--output) _btrfs_walk_offer_list "$word" 'logical length type profile used stripes stripe_length flags devid offset stripe' ;;
    chunks:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    chunks:--separator) : ;;
    map:--devid) _btrfs_walk_offer_devid "$1" "$word" ;;
    map:-o | map:--output) _btrfs_walk_offer_list "$word" 'logical length kind copy devid offset path path_bytes' ;;
    map:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    map:--separator) : ;;
    tree-stats:-t | tree-stats:--tree) mapfile -t COMPREPLY < <(compgen -W 'root extent chunk dev fs csum quota uuid free-space block-group raid-stripe remap log reloc data-reloc' -- "$word") ;;
    tree-stats:-o | tree-stats:--output) _btrfs_walk_offer_list "$word" 'tree name levels blocks leaves on_levels lost bytes inline_bytes items used_bytes fill seeks forward_seeks backward_seeks average_seek longest_seek clusters average_cluster smallest_cluster largest_cluster spread read_ns' ;;
    tree-stats:--json) mapfile -t COMPREPLY < <(compgen -W 'array' -- "$word") ;;
    tree-stats:--separator) : ;;
    dump:-t | dump:--tree) mapfile -t COMPREPLY < <(compgen -W 'root extent chunk dev fs csum quota uuid free-space block-group raid-stripe remap log reloc data-reloc' -- "$word") ;;
    dump:-b | dump:--block | dump:--key) : ;;
    graph:--format) mapfile -t COMPREPLY < <(compgen -W 'volfile dot' -- "$word") ;;
    blackbox:--last) : ;;
    *:-d | *:--device | *:--graph | *:--statedump | *:--probe-output | *:--blackbox) _btrfs_walk_offer_file "$1" "$word" ;;
    *:-s | *:--super | *:--image-offset | *:--generation | *:--tree-root | *:--chunk-root | *:--backup | *:--xlator-option | *:--probe-filter | *:--probe-max) : ;;
    *:--partition) _btrfs_walk_offer_partition "$1" "$word" ;;
    *:--log) mapfile -t COMPREPLY < <(compgen -W 'replay ignore' -- "$word") ;;
    *:--helpers) mapfile -t COMPREPLY < <(compgen -W 'off on backing' -- "$word") ;;
    *:--insert) _btrfs_walk_offer_layer "$1" "$word" ;;
    *:--probe) _btrfs_walk_offer_list "$word" 'image-open super-read chunk-add chunk-map dev-read-start dev-read-done fop-wind fop-unwind block-read-start block-read-done block-verify block-retry cache-hit cache-miss cache-evict key-search-start key-search-done dirent path-emit decompress-start decompress-done error' ;;
    *:--probe-list) mapfile -t COMPREPLY < <(compgen -W 'long json bpftrace' -- "$word") ;;
    *:--probe-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$word") ;;
    *:--probe-stats) mapfile -t COMPREPLY < <(compgen -W 'probe xlator' -- "$word") ;;
    *:--sandbox) mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$word") ;;
    *:-h | *:--help) mapfile -t COMPREPLY < <(compgen -W 'all' -- "$word") ;;
    walk:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-0 --print0 -o --output --json --json-header --header --separator --iec --si -b --raw --long --sort --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth --subvol --no-snapshots -j --threads --summary $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    ls:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-l --long -a --all -d --directory -R --recursive -i --inode -h --human-readable --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    stat:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json -L --dereference --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    readlink:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-0 --print0 --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    xattr:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json -L --dereference --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    cat:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--offset --length --on-error --no-checksums -j --threads --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    extents:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    versions:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--all --no-data --no-scan --index -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    du:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-s --summarize -o --output --json --json-header --header --separator --iec --si -b --raw --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    compression:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --output --json --json-header --header --separator --iec --si -b --raw --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth --subvol -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    sum:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-a --algorithm --tag -0 --zero --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    tar:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-f --file --format --on-error --relative --strip-components --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    extract:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-C --directory --skip-existing --preserve --on-error --relative --strip-components --no-checksums --subvol --no-snapshots -j --threads --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    deleted:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--since --no-data --extract --unproven --no-scan --index --skip-existing --preserve --on-error -j --threads -0 --null --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    bodyfile:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--subvol --no-snapshots -j --threads --type --name --iname --path --wholename --ipath --regex --iregex --exclude --size --empty --newer --newermt --newerat --newerct --newerBt --mtime --atime --ctime --mmin --amin --cmin --uid --gid --user --group --perm --links --inum --not --or --maxdepth -T --files-from -0 --null $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    mount:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--subvol --background --allow-other --uid --gid $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    info:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    check:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--quick --data --all --tolerate --strict --manifest --subvol --no-snapshots --report -j --threads -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    owner:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--devid --bad-map --block-size --map-offset --extent --subvol --all-trees -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    devices:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    usage:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-b --raw --si --json $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    picture:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --output --format --by --sort --curve --order --size --devid --color $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    report:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --output --check -j --threads $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    subvolumes:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--deleted --snapshots --read-only --tree -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    diff:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--other --content --by-path --only --stat -0 --null -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    roots:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--no-scan --index --trees -j --threads -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    space:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--free-if --shared -j --threads -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    qgroups:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--status -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    log:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    super:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-i --copy -F --force --json $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    chunks:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--by -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    map:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--devid -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    tree-stats:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-t --tree --items -o --output --json --json-header --header --separator --iec --si -b --raw $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    dump:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "-t --tree -b --block --follow --bfs --dfs --key --csum-headers --csum-items --hide-names --json $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    graph:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--format $image $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    xlators:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--built-in $common" -- "$word")
        else
            _btrfs_walk_offer_type "$1" "$word"
        fi ;;
    blackbox:*)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --last $common" -- "$word")
        else
            _btrfs_walk_offer_file "$1" "$word"
        fi ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ] && [[ $word != -* ]]; then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'walk ls stat readlink xattr cat extents versions du compression sum tar extract deleted bodyfile mount info check owner devices usage picture report subvolumes diff roots space qgroups log super chunks map tree-stats dump graph xlators blackbox' -- "$word")
    fi
}
complete -F _btrfs_walk btrfs-walk
