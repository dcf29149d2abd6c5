/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options for filters to a selection. */
#include "cli/common/selection.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/paths.h"

static struct bw_error *store_condition(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    struct cmd_selection *selection = target;
    if (!selection->selection)
        BW_TRY(bw_selection_create(&selection->selection));
    BW_AUTO_ERROR struct bw_error *error =
        bw_selection_add(selection->selection, option->name, argument);
    if (!error || error->code != BW_ERROR_USAGE)
        return BW_TAKE(error);
    return bw_error_create(BW_ERROR_USAGE, "--%s", error->message); /* it begins with the name */
}

static struct bw_error *store_types(void *target, const struct cmd_option *option, const char *list)
{
    static const char letters[] = "fdcbpsl"; /* in the order of enum bw_walk_types */
    struct cmd_selection *selection = target;
    (void)option;
    for (const char *next = list;; next += 2) {
        const char *letter = *next ? strchr(letters, *next) : NULL;
        if (!letter || (next[1] && next[1] != ','))
            return bw_error_create(BW_ERROR_USAGE,
                                   "invalid argument of --type: %s (allowed: f, d, l, c, b, p and "
                                   "s, separated by commas)",
                                   list);
        selection->types |= 1u << (letter - letters + 1);
        if (!next[1])
            return NULL;
    }
}

const char *const cmd_nested_words[] = {
    [BW_NESTED_DEFAULT] = "auto", [BW_NESTED_ENTER] = "yes", [BW_NESTED_SKIP] = "no", NULL};

#define CONDITION .store = store_condition

const struct cmd_option cmd_selection_options[] = {
    {0, "type", "LIST", "only these types: f,d,l,c,b,p,s (files, directories, links, ...)",
     .store = store_types, .heading = "Filters"},
    {0, "name", "GLOB", "only names that match (repeatable: any of them)", CONDITION},
    {0, "iname", "GLOB", "the same, ignoring case", CONDITION},
    {0, "path", "GLOB", "only paths that match as a whole; '*' also matches '/'", CONDITION},
    {0, "ipath", "GLOB", "the same, ignoring case", CONDITION},
    {0, "regex", "RE", "only paths that match this extended regular expression as a whole",
     CONDITION},
    {0, "iregex", "RE", "the same, ignoring case", CONDITION},
    {0, "exclude", "GLOB",
     "exclude names or paths that match, and the contents of such directories (repeatable)",
     CONDITION},
    {0, "size", "N",
     "only this size, rounded up to units of 512 bytes or c w k M G T, MiB, MB; +N: larger, "
     "-N: smaller",
     CONDITION},
    {0, "empty", NULL, "only files of size 0 and directories without entries", CONDITION},
    {0, "newer", "DATE", "only if modified after YYYY-MM-DD[ HH:MM[:SS]][+HH:MM] (UTC) or @SECONDS",
     CONDITION},
    {0, "newerat", "DATE", "the same for the time of the last access", CONDITION},
    {0, "newerct", "DATE", "the same for the time of the last change of the inode", CONDITION},
    {0, "newerBt", "DATE", "the same for the time of creation", CONDITION},
    {0, "mtime", "N", "only if modified N whole days ago; +N: earlier, -N: later", CONDITION},
    {0, "atime", "N", "the same for the time of the last access", CONDITION},
    {0, "ctime", "N", "the same for the time of the last change of the inode", CONDITION},
    {0, "mmin", "N", "only if modified N minutes ago; +N: earlier, -N: later", CONDITION},
    {0, "amin", "N", "the same for the time of the last access", CONDITION},
    {0, "cmin", "N", "the same for the time of the last change of the inode", CONDITION},
    {0, "uid", "N", "only this numeric owner; +N: greater, -N: less", CONDITION},
    {0, "gid", "N", "only this numeric group; likewise", CONDITION},
    {0, "user", "NAME", "only this owner: a number, or a name in the image's own /etc/passwd",
     CONDITION},
    {0, "group", "NAME", "only this group: a number, or a name in the image's own /etc/group",
     CONDITION},
    {0, "perm", "MODE",
     "only these permissions, octal or like u=rw,g=r; -MODE: at least these, /MODE: any of these",
     CONDITION},
    {0, "newer-generation", "N", "only if the inode was changed after this generation (transid)",
     CONDITION},
    {0, "xattr", "GLOB",
     "only files with an extended attribute whose name matches (repeatable: any of them)",
     CONDITION},
    {0, "links", "N", "only this number of hard links; +N: more, -N: fewer", CONDITION},
    {0, "mindepth", "N", "at least N directories below the start; 1: not the start itself",
     CMD_NUMBER(struct cmd_selection, mindepth, 0, UINT_MAX, "a number")},
    {0, "maxdepth", "N", "at most N directories below the start; 0: only the start itself",
     CMD_NUMBER(struct cmd_selection, maxdepth, 0, UINT_MAX, "a number"),
     CMD_GIVEN(struct cmd_selection, has_maxdepth)},
    {0},
};

const struct cmd_option cmd_tree_options[] = {
    CMD_SUBVOLUME_OPTION(struct cmd_selection, subvolume),
    CMD_NESTED_OPTION(struct cmd_selection, nested),
    {0, "no-snapshots", NULL, "exclude snapshots", CMD_FLAG(struct cmd_selection, no_snapshots)},
    {.group = cmd_selection_options},
    {0},
};

struct bw_error *cmd_selection_prepare(const struct cmd_selection *selection, struct bw_fs *fs)
{
    const struct bw_subvolume *from = NULL;
    if (selection->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, selection->subvolume, &from));
    return selection->selection ? bw_selection_prepare(selection->selection, fs, from) : NULL;
}

void cmd_selection_apply(const struct cmd_selection *selection, struct bw_walk_options *options)
{
    options->subvolume = selection->subvolume;
    options->nested = selection->nested;
    options->no_snapshots = selection->no_snapshots;
    options->selection = selection->selection;
    options->has_maxdepth = selection->has_maxdepth;
    options->maxdepth = selection->maxdepth;
    options->mindepth = selection->mindepth;
    options->part = selection->part.number;
    options->parts = selection->part.count;
    if (selection->types)
        options->types = selection->types;
}

void cmd_selection_free(void *settings)
{
    struct cmd_selection *selection = settings;
    bw_selection_destroy(selection->selection);
}

void cmd_report_nested(const struct cmd_common *common, struct bw_fs *fs,
                       const struct cmd_selection *selection)
{
    const char *subvolume = selection->subvolume;
    const struct bw_subvolume *named, *next = NULL;
    struct bw_subvolume_info info;
    uint64_t count = 0;
    if (!subvolume || bw_nested_enters(selection->nested, subvolume) || selection->selection)
        return;
    BW_AUTO_ERROR struct bw_error *error = bw_subvolume_by_name(fs, subvolume, &named);
    while (!error && (next = bw_subvolume_next(fs, next))) {
        error = bw_subvolume_get(fs, next, &info);
        count += !error && info.parent == bw_subvolume_id(named);
    }
    if (count && !error && !common->messages.quiet)
        fprintf(stderr,
                "btrfs-walk: note: no files in this subvolume itself; --nested=yes includes the "
                "%" PRIu64 " subvolume%s nested in it\n",
                count, bw_plural(count));
}
