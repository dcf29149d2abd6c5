# Completion of btrfs-walk for fish; made by scripts/make-completions.
function __btrfs_walk_type
    set -l words (commandline -opc)
    $words[1] xlators 2> /dev/null | string replace -r ' +' \t
end

function __btrfs_walk_layer
    __btrfs_walk_type | string replace \t @\t
end

function __btrfs_walk_is
    set -l words (commandline -opc)
    set -l command walk
    contains -- "$words[2]" walk graph xlators; and set command $words[2]
    test $command = $argv[1]
end

complete -c btrfs-walk -n __fish_is_first_arg -a walk -d 'Prints the absolute path of every regular file of an unmounted btrfs file system.'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s 0 -l print0 -d 'end each path with a NUL byte instead of a newline'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l subvol -x -d 'list one subvolume only: its path, its id, or \'default\''
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l no-snapshots -d 'leave out the files of snapshots'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s j -l threads -x -d 'read with N threads (default: one per processor, at most 8; more pays on slow storage)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l summary -d 'counts, bytes of metadata read and seconds, on stderr'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s d -l device -r -F -d 'another device of the same file system (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s s -l super -x -d 'use superblock copy N: 0, 1 or 2 (default: the best)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l graph -r -F -d 'read through the graph of this volfile; its images, unless IMAGE is given'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l xlator-option -x -d 'NAME.KEY=VALUE: an option of a layer (repeatable; see \'btrfs-walk graph --help\')'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l insert -x -a '(__btrfs_walk_layer)' -d 'TYPE@VOLUME[,KEY=VALUE...]: a layer above a volume (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l statedump -r -F -d 'write the state of all layers there, or to stderr (-), at the end and on SIGUSR1'
complete -c btrfs-walk -n __fish_is_first_arg -a graph -d 'Prints the graph of layers that the images would be read through.'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l format -x -a 'volfile dot' -d 'a volfile (default), or a picture for Graphviz'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -s d -l device -r -F -d 'another device of the same file system (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -s s -l super -x -d 'use superblock copy N: 0, 1 or 2 (default: the best)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l graph -r -F -d 'read through the graph of this volfile; its images, unless IMAGE is given'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l xlator-option -x -d 'NAME.KEY=VALUE: an option of a layer (repeatable; see \'btrfs-walk graph --help\')'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l insert -x -a '(__btrfs_walk_layer)' -d 'TYPE@VOLUME[,KEY=VALUE...]: a layer above a volume (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l statedump -r -F -d 'write the state of all layers there, or to stderr (-), at the end and on SIGUSR1'
complete -c btrfs-walk -n __fish_is_first_arg -a xlators -d 'Lists the types of layers, or shows what a type does and its options.'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -f -a '(__btrfs_walk_type)'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -l format -x -a 'text markdown man' -d 'how to write: text is the default'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -l built-in -d 'only layers of the program itself, none from shared objects'
complete -c btrfs-walk -s q -l quiet -d 'no warnings; only what ends the command is said'
complete -c btrfs-walk -s v -l verbose -d 'also say which bad copies were replaced by good ones; -vv: the way of each error'
complete -c btrfs-walk -s h -l help -d 'this text'
complete -c btrfs-walk -s V -l version -d 'version of the program'
