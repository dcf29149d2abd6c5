/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options of the filters to a selection. */
#include "cmd/common/selection.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"

static struct bw_error *take_condition(void *target, const struct cmd_option *option,
                                       const char *argument)
{
    struct cmd_selection *selection = target;
    if (!selection->selection)
        BW_TRY(bw_selection_create(&selection->selection));
    return bw_selection_add(selection->selection, option->name, argument);
}

static struct bw_error *take_types(void *target, const struct cmd_option *option, const char *list)
{
    static const char letters[] = "fdcbpsl"; /* in the order of enum bw_walk_types */
    struct cmd_selection *selection = target;
    (void)option;
    for (const char *next = list;; next += 2) {
        const char *letter = *next ? strchr(letters, *next) : NULL;
        if (!letter || (next[1] && next[1] != ','))
            return bw_error_create(
                BW_ERROR_USAGE,
                "--type '%s': types are f, d, l, c, b, p and s, with commas between", list);
        selection->types |= 1u << (letter - letters + 1);
        if (!next[1])
            return NULL;
    }
}

static struct bw_error *take_maxdepth(void *target, const struct cmd_option *option,
                                      const char *argument)
{
    struct cmd_selection *selection = target;
    unsigned long number;
    if (!cmd_parse_number(argument, 0, UINT_MAX, &number))
        return cmd_bad_argument(option, argument, "a number");
    selection->has_maxdepth = true;
    selection->maxdepth = (unsigned)number;
    return NULL;
}

const struct cmd_option cmd_selection_options[] = {
    {0, "type", "LIST", "only these types: f,d,l,c,b,p,s (files, directories, links, ...)",
     .take = take_types, .heading = "Filters"},
    {0, "name", "GLOB", "only names that match (repeatable: any of them)", .take = take_condition},
    {0, "iname", "GLOB", "the same, ignoring case", .take = take_condition},
    {0, "path", "GLOB", "only paths that match as a whole; '*' also matches '/'",
     .take = take_condition},
    {0, "regex", "RE", "only paths that match this extended regular expression as a whole",
     .take = take_condition},
    {0, "exclude", "GLOB",
     "leave out names or paths that match, and all that is in such directories (repeatable)",
     .take = take_condition},
    {0, "size", "N",
     "only this size, rounded up to units of 512 bytes or c w k M G T; +N: larger, -N: smaller",
     .take = take_condition},
    {0, "empty", NULL, "only files of size 0 and directories without entries",
     .take = take_condition},
    {0, "newer", "DATE", "only if modified after YYYY-MM-DD[ HH:MM[:SS]][+HH:MM] (UTC) or @SECONDS",
     .take = take_condition},
    {0, "mtime", "N", "only if modified N whole days ago; +N: earlier, -N: later",
     .take = take_condition},
    {0, "uid", "N", "only this numeric owner; +N: greater, -N: less", .take = take_condition},
    {0, "gid", "N", "only this numeric group; likewise", .take = take_condition},
    {0, "perm", "MODE", "only these permissions, octal; -MODE: at least these, /MODE: any of these",
     .take = take_condition},
    {0, "links", "N", "only this number of hard links; +N: more, -N: fewer",
     .take = take_condition},
    {0, "inum", "N", "only this inode number; +N: greater, -N: less", .take = take_condition},
    {0, "maxdepth", "N", "at most N directories below the start; 0: only the start itself",
     .take = take_maxdepth},
    {0},
};

void cmd_selection_apply(const struct cmd_selection *selection, struct bw_walk_options *options)
{
    options->selection = selection->selection;
    options->has_maxdepth = selection->has_maxdepth;
    options->maxdepth = selection->maxdepth;
    if (selection->types)
        options->types = selection->types;
}

void cmd_selection_free(void *settings)
{
    struct cmd_selection *selection = settings;
    bw_selection_destroy(selection->selection);
}
