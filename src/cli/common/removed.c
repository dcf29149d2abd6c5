/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands and options that version 0.4.0 has removed. For one version, the program names their
 * replacements in one line, so that old scripts and habits end with an answer.
 */
#include <stddef.h>
#include <string.h>

#include "cli/common/options.h"

struct removed {
    const char *command; /* the command that had the option; NULL: any command */
    const char *word;    /* a command, an option or its letter, or OPTION=WORD */
    const char *instead; /* completes: "WORD was removed: ..." */
};

#define XATTR_ENCODING "values in base64 are 'value_bytes' of --json"
#define XATTR_MATCH    "use -n NAME, or 'jq' on the lines of --json"
#define METADUMP_LIST  "docs/metadump.md lists what a metadump contains"
#define FILTER         "use --exclude, or 'jq' on the lines of --json; --files-from reads paths"
#define SORT           "run sort(1) on columns, for example -o COLUMN,path"

static const struct removed options[] = {
    {"dump", "t", "use --tree TREE"},
    {"metadump", "c", "use --compress LEVEL"},
    {"metadump", "json", METADUMP_LIST},
    {"metadump", "name-key", "every sanitized metadump has different names; inode numbers stay"},
    {"metadump", "o", METADUMP_LIST},
    {"metadump", "s", "use --sanitize"},
    {"send", "c", "use --clone-source SUBVOLUME"},
    {"sum", "a", "use --algorithm WORD"},
    {"sum", "compare", "use 'diff --other DIR'"},
    {"sum", "ignore", "'tar --format mtree' has --mtime, --owner and --group"},
    {"sum", "tree", "hash the list of 'tar --format mtree --sort=name'"},
    {"sum", "zero", "use -0"},
    {"super", "F", "use --force"},
    {"super", "copy", "use --super N"},
    {"super", "i", "use --super N"},
    {"tree-stats", "t", "use --tree TREE"},
    {NULL, "json-header", "use --header with --json"},
    {NULL, "key-memory", "no limit below the machine's memory is useful"},
    {NULL, "offset", "use --image-offset BYTES"},
    {NULL, "times=utc", "use --times=iso"},
    {"check", "stream-of", "use 'diff --exit-code --other STREAM IMAGE'"},
    {"check", "step", "run a long check as parts: --part 1/100 to --part 100/100"},
    {"copy", "bmap", "run 'bmaptool create' on the sparse copy"},
    {"copy", "output", "-f FILE is the file that copy writes"},
    {"ls", "X", "sort the lines of -o path,..., for example with 'sort -t.'"},
    {"ls", "c", "--time=ctime"},
    {"ls", "f", "-aU lists everything, unsorted"},
    {"ls", "n", "-l prints numbers; --names prints names"},
    {"ls", "numeric-uid-gid", "-l prints numbers; --names prints names"},
    {"ls", "full-time", "-l prints full times"},
    {"ls", "u", "--time=atime"},
    {NULL, "format=cpio", "run 'cpio -o -H newc' in a folder of 'mount' or 'extract'"},
    {"owner", "bad-map", "use --map FILE, a map of ddrescue, without an address"},
    {"owner", "block-size", "--map reads maps of ddrescue, and lists of 'badblocks -b 1024'"},
    {"owner", "dmesg", "use 'rescue --dmesg FILE'"},
    {"owner", "map-offset", "the partition table of the disk's image has the offset"},
    {"walk", "long", "use 'ls -lR'"},
    {"walk", "names", "use 'ls -lR --names', or -o user,group,path"},
    {"walk", "reverse", "--sort -size has the largest first"},
    {"walk", "time-style", "use 'ls -lR --time-style STYLE', or --times with columns"},
    {"xattr", "d", "a file or a pipe gets what setfattr --restore reads"},
    {"xattr", "dump", "a file or a pipe gets what setfattr --restore reads"},
    {"xattr", "e", XATTR_ENCODING},
    {"xattr", "encoding", XATTR_ENCODING},
    {"xattr", "m", XATTR_MATCH},
    {"xattr", "match", XATTR_MATCH},
    {NULL, "d", "name further devices after IMAGE, or with --device FILE"},
    {NULL, "h", "use --help"},
    {NULL, "s", "use --super N"},
    {NULL, "probe-filter",
     "filter with 'jq': --probe PATTERN --probe-format json --probe-output FILE"},
    {NULL, "!", FILTER},
    {NULL, "(", FILTER},
    {NULL, ")", FILTER},
    {NULL, "and", "all filters have to match; several patterns of one filter are alternatives"},
    {NULL, "arrow", "pandas, polars and DuckDB read the lines of --json"},
    {NULL, "backup", "'roots' lists the generations of the backup roots, for --generation N"},
    {NULL, "close", FILTER},
    {NULL, "inum", FILTER},
    {NULL, "iwholename", "use --ipath"},
    {NULL, "no-checksums", "use --ignore-checksums data"},
    {NULL, "newermt", "use --newer"},
    {NULL, "not", FILTER},
    {NULL, "open", FILTER},
    {NULL, "or", "several patterns of one filter are alternatives; or use jq"},
    {NULL, "resume", "run a long command as parts: --part 1/100 to --part 100/100"},
    {NULL, "shard", "use --part I/N"},
    {NULL, "sort=allocated", SORT},
    {NULL, "sort=atime", SORT},
    {NULL, "sort=ctime", SORT},
    {NULL, "sort=disk", "use 'du --type f --sort disk'"},
    {NULL, "sort=extent_count", "use 'du --type f --sort extent_count'"},
    {NULL, "sort=generation", SORT},
    {NULL, "sort=gid", SORT},
    {NULL, "sort=name", SORT},
    {NULL, "sort=nlink", SORT},
    {NULL, "sort=otime", SORT},
    {NULL, "sort=shared", "use 'du --type f --sort shared'"},
    {NULL, "sort=transid", SORT},
    {NULL, "sort=uid", SORT},
    {NULL, "verity-root-hash", "run 'veritysetup verify' before btrfs-walk"},
    {NULL, "wholename", "use --path"},
};

static const struct removed commands[] = {
    {NULL, "fragmentation", "use 'du --top 20 --sort -extent_count --type f' and 'free --sizes'"},
    {NULL, "readlink", "use 'stat -o target IMAGE PATH...'"},
    {NULL, "shell", "use 'mount' and your own shell; --index keeps a scan for the next command"},
};

static const char *find_instead(const struct removed *table, size_t count, const char *command,
                                const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].word, word) == 0 &&
            (!table[i].command || strcmp(table[i].command, command) == 0))
            return table[i].instead;
    return NULL;
}

const char *cmd_instead_of_option(const char *command, const char *option)
{
    return find_instead(options, sizeof options / sizeof *options, command, option);
}

const char *cmd_instead_of_command(const char *word)
{
    return find_instead(commands, sizeof commands / sizeof *commands, "", word);
}
