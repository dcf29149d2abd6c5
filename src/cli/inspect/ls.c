/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ls command: the entries of directories, in the forms of ls(1). Here are its options, and what
 * they mean together. */
#include "cli/inspect/ls.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const orders[] = {"", "name", "none", "size", "time", "extension", NULL};
static const char *const times[] = {"",      "mtime",  "modification", "atime", "access",   "use",
                                    "ctime", "status", "otime",        "birth", "creation", NULL};
static const char *const whens[] = {"never", "auto", "always", NULL};

enum { NEVER, AUTO, ALWAYS };

static struct bw_error *take_color(void *target, const struct cmd_option *option, const char *when)
{
    unsigned *color = target;
    *color = ALWAYS;
    return when ? cmd_take_word(color, option, when) : NULL;
}

static const struct cmd_option options[] = {
    {'l', "long", NULL, "mode, links, user, group, size, time and target of links",
     CMD_FLAG(struct ls_state, lines)},
    {'n', "numeric-uid-gid", NULL, "the same, whatever --names says",
     CMD_FLAG(struct ls_state, numeric)},
    {0, "names", NULL, "names of users and groups in place of numbers: those in the image",
     CMD_FLAG(struct ls_state, names)},
    {'a', "all", NULL, "also names that begin with a dot", CMD_FLAG(struct ls_state, all)},
    {'A', "almost-all", NULL, "the same without . and ..", CMD_FLAG(struct ls_state, almost_all)},
    {'d', "directory", NULL, "a directory given as PATH itself, not what is in it",
     CMD_FLAG(struct ls_state, itself)},
    {'R', "recursive", NULL, "also the contents of directories, at any depth",
     CMD_FLAG(struct ls_state, recursive)},
    {'i', "inode", NULL, "the inode number before each name", CMD_FLAG(struct ls_state, inodes)},
    {'h', "human-readable", NULL, "sizes as 1.5K", CMD_FLAG(struct ls_state, people)},
    {'F', "classify", NULL, "one of */=@| after each name, by its type",
     CMD_FLAG(struct ls_state, classify)},
    {'t', "by-time", NULL, "sort by time, the newest first", CMD_FLAG(struct ls_state, by_time)},
    {'S', "by-size", NULL, "sort by size, the largest first", CMD_FLAG(struct ls_state, by_size)},
    {'X', "by-extension", NULL, "sort by what follows the last dot",
     CMD_FLAG(struct ls_state, by_extension)},
    {'U', "unsorted", NULL, "do not sort: the order of a mount",
     CMD_FLAG(struct ls_state, unsorted)},
    {'f', "plain", NULL, "do not sort, and list all: -aU, without -l and colours",
     CMD_FLAG(struct ls_state, plain)},
    {'r', "reverse", NULL, "turn the order round", CMD_FLAG(struct ls_state, reverse)},
    {0, "sort", "WORD", "sort by name, size, time or extension, or not (none)",
     CMD_WORD(struct ls_state, order_word, orders)},
    {'c', "changed", NULL, "show and sort by the time of the last change of the inode",
     CMD_FLAG(struct ls_state, changed)},
    {'u', "accessed", NULL, "show and sort by the time of the last access",
     CMD_FLAG(struct ls_state, accessed)},
    {0, "time", "WORD", "which time to show and sort by: mtime, atime, ctime or otime",
     CMD_WORD(struct ls_state, time_word, times)},
    {0, "time-style", "STYLE",
     "times as full-iso (the default), long-iso, iso, or +FORMAT as of date(1)",
     CMD_TEXT(struct ls_state, time_style)},
    {0, "full-time", NULL, "-l with --time-style=full-iso", CMD_FLAG(struct ls_state, full_times)},
    {0, "color", "[=WHEN]",
     "colours, by LS_COLORS: always, never (the default), or auto: on a terminal, unless NO_COLOR "
     "is set",
     .take = take_color, .offset = CMD_AT(struct ls_state, color, unsigned), .words = whens},
    {'1', "one", NULL, "one name a line, which is so anyway", CMD_FLAG(struct ls_state, one)},
    CMD_SELECTION(struct ls_state, selection),
    CMD_SUBVOLUME_OPTION(struct ls_state, subvolume),
    CMD_NESTED_OPTION(struct ls_state, nested),
    {0},
};

/* As ls understands its options together. */
static void settle(struct ls_state *ls)
{
    static const enum ls_time by_word[] = {LS_MTIME, LS_MTIME, LS_MTIME, LS_ATIME,
                                           LS_ATIME, LS_ATIME, LS_CTIME, LS_CTIME,
                                           LS_OTIME, LS_OTIME, LS_OTIME};
    static const enum ls_order by_order[] = {LS_BY_NAME, LS_BY_NAME, LS_UNSORTED,
                                             LS_BY_SIZE, LS_BY_TIME, LS_BY_EXTENSION};
    ls->lines |= ls->numeric || ls->full_times;
    ls->time = ls->changed ? LS_CTIME : ls->accessed ? LS_ATIME : by_word[ls->time_word];
    ls->order = ls->by_time        ? LS_BY_TIME
                : ls->by_size      ? LS_BY_SIZE
                : ls->by_extension ? LS_BY_EXTENSION
                : ls->unsorted     ? LS_UNSORTED
                                   : by_order[ls->order_word];
    /* A time that is not shown is what is sorted by. */
    if (ls->time != LS_MTIME && !ls->lines && ls->order == LS_BY_NAME && !ls->order_word)
        ls->order = LS_BY_TIME;
    if (ls->plain) {
        ls->all = true;
        ls->order = LS_UNSORTED;
        ls->lines = false;
        ls->color = NEVER;
    }
}

static struct bw_error *make_ready(const struct cmd_common *common, struct ls_state *ls,
                                   struct bw_rows **rows)
{
    const struct cmd_selection *selection = &ls->selection;
    const char *no_color = getenv("NO_COLOR");
    const bool terminal = isatty(STDOUT_FILENO);
    settle(ls);
    if (ls->color == AUTO && (!terminal || (no_color && *no_color)))
        ls->color = NEVER;
    ls->selects = cmd_selection_is_set(selection);
    if (ls->selects && !ls->recursive)
        return bw_error_create(BW_ERROR_USAGE, "filters need -R");
    if (selection->has_operators)
        bw_selection_default_types(selection->selection, BW_WALK_ALL);
    if (ls->time_style && !bw_time_style_parse(ls->time_style, &ls->times))
        return bw_error_create(BW_ERROR_USAGE, "invalid argument of --time-style: %s (allowed: %s)",
                               ls->time_style, BW_TIME_STYLES);
    if (ls->full_times)
        ls->times = (struct bw_time_style){0};
    ls->color = ls->color && ls_colors_read(common, &ls->colors) ? ls->color : NEVER;
    return cmd_answer_rows(&common->answer, cmd_ls.record, '\n', terminal, rows);
}

static int run(const struct cmd_common *common, void *state)
{
    struct ls_state *ls = state;
    struct bw_rows *rows = NULL;
    struct bw_error *error = make_ready(common, ls, &rows);
    int status = error ? cmd_fail(common, error) : ls_list_image(common, ls, rows);
    bw_rows_destroy(rows);
    bw_people_destroy(ls->owners);
    ls_colors_free(&ls->colors);
    return status;
}

const struct command cmd_ls = {
    .name = "ls",
    .topic = cmd_topic_files,
    .operands = "IMAGE [PATH]...",
    .summary = "Lists directories of an unmounted btrfs file system.",
    .details = CMD_PATHS_DETAILS
    "Without a PATH, the top directory is listed. Names are sorted by their bytes, one a line;\n"
    "times are in UTC. Users and groups are numbers, or with --names what the image's own\n"
    "/etc/passwd and /etc/group call them.\n"
    "\nWith -R, the filters of find(1) select entries: those that meet all of them (of several\n"
    "--name one). Directories in which nothing is selected are left out.\n",
    .examples =
        "  btrfs-walk ls disk.img                  the top directory\n"
        "  btrfs-walk ls -la disk.img /users/me     one directory, all columns\n"
        "  btrfs-walk ls -lt --names disk.img /etc  the newest first\n"
        "  btrfs-walk ls --json disk.img /etc      all that is known of each entry\n"
        "  btrfs-walk ls -R --subvol @ disk.img    one subvolume, with everything below it\n"
        "  btrfs-walk ls -lR --size +1M disk.img   files larger than a mebibyte\n",
    .options = options,
    .record = "fileinfo",
    .run = run,
    .state_size = sizeof(struct ls_state),
    .takes_paths = true,
    .takes_list = true,
};
