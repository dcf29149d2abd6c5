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
    contains -- "$words[2]" walk graph xlators blackbox; and set command $words[2]
    test $command = $argv[1]
end

complete -c btrfs-walk -n __fish_is_first_arg -a walk -d 'Prints the absolute path of every regular file of an unmounted btrfs file system.'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s 0 -l print0 -d 'end each path or row with a NUL byte instead of a newline'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -s o -l output -x -d 'write these columns instead of paths: path,size,mtime (\'-o help\' lists all)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l json -a 'array' -d 'write all columns, or those of -o, as JSON: an object a line, or one array'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l json-header -d 'first the versions of program and record, as JSON'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l header -d 'first the names of the columns'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l separator -x -d 'between columns (default: a tab)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l iec -d 'sizes as 1.50MiB (default on a terminal, with dates for times)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l si -d 'sizes as 1.57MB'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l raw -d 'sizes and times as plain numbers (default unless on a terminal)'
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
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe -x -d 'print each event of these probes: \'block-*,!block-verify\' (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-list -a 'STYLE' -d 'list the probes; STYLE: long, json, bpftrace, d, c or markdown'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-format -x -d 'of events and statistics: text or json'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-output -r -F -d 'where they go (default: stderr)'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-filter -x -d 'only events for which this holds: \'level > 0 && ns > 1ms\''
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-stats -a 'probe xlator' -d 'count and time the events of each probe, or the calls of each layer'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l probe-max -x -d 'stop printing after N events'
complete -c btrfs-walk -n '__btrfs_walk_is walk' -l blackbox -r -F -d 'keep the last events in FILE, whatever happens (\'btrfs-walk blackbox FILE\')'
complete -c btrfs-walk -n __fish_is_first_arg -a graph -d 'Prints the graph of layers that the images would be read through.'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l format -x -a 'volfile dot' -d 'a volfile (default), or a picture for Graphviz'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -s d -l device -r -F -d 'another device of the same file system (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -s s -l super -x -d 'use superblock copy N: 0, 1 or 2 (default: the best)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l graph -r -F -d 'read through the graph of this volfile; its images, unless IMAGE is given'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l xlator-option -x -d 'NAME.KEY=VALUE: an option of a layer (repeatable; see \'btrfs-walk graph --help\')'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l insert -x -a '(__btrfs_walk_layer)' -d 'TYPE@VOLUME[,KEY=VALUE...]: a layer above a volume (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l statedump -r -F -d 'write the state of all layers there, or to stderr (-), at the end and on SIGUSR1'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe -x -d 'print each event of these probes: \'block-*,!block-verify\' (repeatable)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-list -a 'STYLE' -d 'list the probes; STYLE: long, json, bpftrace, d, c or markdown'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-format -x -d 'of events and statistics: text or json'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-output -r -F -d 'where they go (default: stderr)'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-filter -x -d 'only events for which this holds: \'level > 0 && ns > 1ms\''
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-stats -a 'probe xlator' -d 'count and time the events of each probe, or the calls of each layer'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l probe-max -x -d 'stop printing after N events'
complete -c btrfs-walk -n '__btrfs_walk_is graph' -l blackbox -r -F -d 'keep the last events in FILE, whatever happens (\'btrfs-walk blackbox FILE\')'
complete -c btrfs-walk -n __fish_is_first_arg -a xlators -d 'Lists the types of layers, or shows what a type does and its options.'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -f -a '(__btrfs_walk_type)'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -l format -x -a 'text markdown man' -d 'how to write: text is the default'
complete -c btrfs-walk -n '__btrfs_walk_is xlators' -l built-in -d 'only layers of the program itself, none from shared objects'
complete -c btrfs-walk -n __fish_is_first_arg -a blackbox -d 'Shows the events that option --blackbox of a command has kept in FILE.'
complete -c btrfs-walk -n '__btrfs_walk_is blackbox' -l json -d 'one JSON object a line for each event'
complete -c btrfs-walk -n '__btrfs_walk_is blackbox' -l last -x -d 'only the last N events'
complete -c btrfs-walk -s q -l quiet -d 'no warnings; only what ends the command is said'
complete -c btrfs-walk -s v -l verbose -d 'also say which bad copies were replaced by good ones; -vv: the way of each error'
complete -c btrfs-walk -s h -l help -d 'this text'
complete -c btrfs-walk -s V -l version -d 'version of the program'
