/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options for filters to a selection. */
#include "cli/common/selection.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"

static struct bw_error *ensure_selection(struct cmd_selection *selection)
{
    return selection->selection ? NULL : bw_selection_create(&selection->selection);
}

/* Several --name, or several --type, mean any of them. Several -name with one dash, as in find(1),
 * mean all; therefore each of these is put in parentheses. */
static struct bw_error *close_word(struct bw_selection *selection, struct bw_error *error)
{
    return error ? error : bw_selection_close(selection);
}

static struct bw_error *store_condition(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    struct cmd_selection *selection = target;
    const bool of_find = *option->name == '-';
    BW_TRY(ensure_selection(selection));
    if (!of_find)
        return bw_selection_add(selection->selection, option->name, argument);
    BW_TRY(bw_selection_open(selection->selection));
    return close_word(selection->selection,
                      bw_selection_add(selection->selection, option->name + 1, argument));
}

/* Moves the types into the selection, as conditions like any others. */
static struct bw_error *count_types(struct cmd_selection *selection)
{
    const unsigned types = selection->types;
    BW_TRY(ensure_selection(selection));
    selection->types = 0;
    selection->has_operators = true;
    return types ? bw_selection_add_types(selection->selection, types) : NULL;
}

static struct bw_error *store_operator(void *target, const struct cmd_option *option,
                                       const char *argument)
{
    static const struct {
        const char *name;
        struct bw_error *(*add)(struct bw_selection *selection);
    } operators[] = {
        {"not", bw_selection_not},   {"and", bw_selection_and},     {"or", bw_selection_or},
        {"open", bw_selection_open}, {"close", bw_selection_close},
    };
    struct cmd_selection *selection = target;
    size_t i = 0;
    (void)argument;
    BW_TRY(count_types(selection));
    while (strcmp(operators[i].name, option->name) != 0)
        i++;
    return operators[i].add(selection->selection);
}

static struct bw_error *add_types(struct cmd_selection *selection, unsigned types, bool of_find)
{
    if (of_find && selection->types)
        BW_TRY(count_types(selection));
    if (!selection->has_operators)
        selection->types |= types;
    if (!of_find || !selection->has_operators)
        return selection->has_operators ? bw_selection_add_types(selection->selection, types)
                                        : NULL;
    BW_TRY(bw_selection_open(selection->selection));
    return close_word(selection->selection, bw_selection_add_types(selection->selection, types));
}

static struct bw_error *store_types(void *target, const struct cmd_option *option, const char *list)
{
    static const char letters[] = "fdcbpsl"; /* in the order of enum bw_walk_types */
    unsigned types = 0;
    for (const char *next = list;; next += 2) {
        const char *letter = *next ? strchr(letters, *next) : NULL;
        if (!letter || (next[1] && next[1] != ','))
            return bw_error_create(BW_ERROR_USAGE,
                                   "invalid argument of --type: %s (allowed: f, d, l, c, b, p and "
                                   "s, separated by commas)",
                                   list);
        types |= 1u << (letter - letters + 1);
        if (!next[1])
            break;
    }
    return add_types(target, types, *option->name == '-');
}

static struct bw_error *store_depth(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct cmd_selection *selection = target;
    const bool is_least = strcmp(option->name, "mindepth") == 0;
    uint64_t number;
    if (!cmd_parse_number(argument, 0, UINT_MAX, &number))
        return cmd_bad_argument(option, argument, "a number");
    selection->has_maxdepth |= !is_least;
    *(is_least ? &selection->mindepth : &selection->maxdepth) = (unsigned)number;
    return NULL;
}

const char *const cmd_nested_words[] = {
    [BW_NESTED_DEFAULT] = "auto", [BW_NESTED_ENTER] = "yes", [BW_NESTED_SKIP] = "no", NULL};

#define CONDITION .store = store_condition
#define OPERATOR  .store = store_operator

const struct cmd_option cmd_selection_options[] = {
    {0, "type", "LIST", "only these types: f,d,l,c,b,p,s (files, directories, links, ...)",
     .store = store_types, .also = "-type", .heading = "Filters"},
    {0, "name", "GLOB", "only names that match (repeatable: any of them)", CONDITION,
     .also = "-name"},
    {0, "iname", "GLOB", "the same, ignoring case", CONDITION, .also = "-iname"},
    {0, "path", "GLOB", "only paths that match as a whole; '*' also matches '/'", CONDITION},
    {0, "wholename", "GLOB", "the same as --path", CONDITION},
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
    {0, "newermt", "DATE", "the same as --newer", CONDITION},
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
    {0, "links", "N", "only this number of hard links; +N: more, -N: fewer", CONDITION},
    {0, "inum", "N", "only this inode number; +N: greater, -N: less", CONDITION},
    {0, "not", NULL, "negate the next filter; also '!'", OPERATOR},
    {0, "and", NULL, "require both filters, between two --name or --type", OPERATOR},
    {0, "or", NULL, "also accept what meets all filters up to the next --or", OPERATOR},
    {0, "open", NULL, "group the filters from here to --close into one; also '('", OPERATOR},
    {0, "close", NULL, "end the group that --open began; also ')'", OPERATOR},
    {0, "mindepth", "N", "at least N directories below the start; 1: not the start itself",
     .store = store_depth},
    {0, "maxdepth", "N", "at most N directories below the start; 0: only the start itself",
     .store = store_depth},
    {0},
};

struct bw_error *cmd_selection_prepare(const struct cmd_selection *selection, struct bw_fs *fs,
                                       const char *subvolume)
{
    const struct bw_subvolume *from = NULL;
    if (subvolume)
        BW_TRY(bw_subvolume_by_name(fs, subvolume, &from));
    return selection->selection ? bw_selection_prepare(selection->selection, fs, from) : NULL;
}

void cmd_selection_apply(const struct cmd_selection *selection, unsigned types,
                         struct bw_walk_options *options)
{
    options->selection = selection->selection;
    options->has_maxdepth = selection->has_maxdepth;
    options->maxdepth = selection->maxdepth;
    options->mindepth = selection->mindepth;
    options->part = selection->part.number;
    options->parts = selection->part.count;
    if (selection->has_operators)
        options->types = bw_selection_default_types(selection->selection, types);
    else if (selection->types)
        options->types = selection->types;
}

void cmd_selection_free(void *settings)
{
    struct cmd_selection *selection = settings;
    bw_selection_destroy(selection->selection);
}

void cmd_report_nested(const struct cmd_common *common, struct bw_fs *fs, const char *subvolume)
{
    const struct bw_subvolume *named, *next = NULL;
    struct bw_subvolume_info info;
    uint64_t count = 0;
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
