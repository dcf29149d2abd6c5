/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ls command: the entries of directories, in the forms of ls(1). Directories that are still to
 * be listed are kept in a stack: the depth of a tree costs no recursion.
 */
#include "cmd/inspect/ls.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/pair_set.h"

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
    CMD_GROUP(cmd_rows_options, struct ls_state, rows),
    CMD_SELECTION(struct ls_state, selection),
    CMD_SUBVOLUME_OPTION(struct ls_state),
    {0},
};

/* A directory that is to be listed. */
struct waiting {
    size_t above; /* how much of the path of the directory before it counts */
    char *name;   /* what follows then, up to a NUL */
    struct bw_place place, parent;
    unsigned depth; /* below what was named */
};

struct ls {
    struct ls_state *options;
    struct cmd_paths paths;
    struct bw_rows_stream stream; /* its `rows` is NULL if lines are written */
    struct bw_buffer path;        /* of the directory that is listed, with a NUL */
    struct waiting *waiting;      /* the next one is the last; those below it come before others */
    size_t waiting_count, waiting_capacity;
    struct bw_pair_set listed; /* with -R: directories, by subvolume and inode */
    bool headings, not_first;
};

/* Takes the name. */
static struct bw_error *wait_for(struct ls *ls, size_t above, char *name,
                                 const struct bw_place *place, const struct bw_place *parent,
                                 unsigned depth)
{
    if (!name || !BW_ARRAY_RESERVE(ls->waiting, ls->waiting_count, ls->waiting_capacity)) {
        free(name);
        return bw_error_no_memory();
    }
    ls->waiting[ls->waiting_count++] = (struct waiting){above, name, *place, *parent, depth};
    return NULL;
}

/* A directory has one entry; an image in which it has two could keep a listing busy for ever. */
static struct bw_error *enter_once(struct ls *ls, const struct bw_place *place, bool *again)
{
    bool first = true;
    if (ls->options->recursive && place->inode != BW_EMPTY_DIRECTORY &&
        !bw_pair_set_add(&ls->listed, bw_subvolume_id(place->subvolume), place->inode, &first))
        return bw_error_no_memory();
    *again = !first;
    return NULL;
}

/* Whether the contents of a directory that is so many levels below the start are wanted. */
static bool enters(const struct ls *ls, unsigned depth)
{
    const struct cmd_selection *selection = &ls->options->selection;
    return !selection->has_maxdepth || depth < selection->maxdepth;
}

static char *name_below(const char *name, size_t length)
{
    char *below;
    return asprintf(&below, "/%.*s", (int)length, name) < 0 ? NULL : below;
}

/* What is pushed last is listed next. */
static struct bw_error *enter_directories(struct ls *ls, const struct ls_listing *listing,
                                          const struct waiting *directory)
{
    const unsigned depth = directory->depth + 1;
    if (!ls->options->recursive || !enters(ls, depth))
        return NULL;
    size_t above = ls->path.length;
    above -= above && ls->path.data[above - 1] == '/';
    for (size_t i = listing->count; i-- > 0;) {
        const struct ls_entry *entry = &listing->entries[i];
        if (entry->place.type == BW_FILE_DIRECTORY && !entry->is_dots)
            BW_TRY(wait_for(ls, above,
                            name_below(listing->bytes.data + entry->name, entry->name_length),
                            &entry->place, &directory->place, depth));
    }
    return NULL;
}

static struct bw_error *write_row(void *context, struct ls_entry *entry,
                                  const struct bw_entry *named)
{
    struct ls *ls = context;
    return entry->is_dots
               ? NULL
               : bw_rows_write_entry(&ls->stream, ls->paths.session.fs, named, ls->options->owners);
}

/* `path` is that of the directory, NULL for what was given as PATH. */
static struct bw_error *write_listing(struct ls *ls, struct ls_listing *listing, const char *path)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct ls_state *state = ls->options;
    if (state->lines || state->classify || state->color || ls->stream.rows)
        BW_TRY(ls_listing_fill(listing, &ls->paths, state->lines));
    if (ls->stream.rows)
        return ls_listing_each(listing, &ls->paths, path ? path : "", write_row, ls);
    if ((state->color && ls_colors_follow(&state->colors)) || (state->classify && state->lines))
        BW_TRY(ls_listing_follow(listing, &ls->paths, path ? path : ""));
    if (ls->not_first)
        bw_buffer_append_byte(&text, '\n');
    ls->not_first = true;
    if (path && ls->headings) {
        cmd_paths_append_name(&ls->paths, path, strlen(path), &text);
        bw_buffer_append(&text, ":\n", 2);
    }
    ls_listing_print(listing, &ls->paths, state, path != NULL, &text);
    if (text.failed)
        return bw_error_no_memory();
    return text.length ? cmd_write(&ls->paths.output, text.data, text.length) : NULL;
}

/* With filters, directories are entered that are not printed, and a directory in which nothing is
 * selected has no heading. */
static struct bw_error *select_and_write(struct ls *ls, struct ls_listing *listing,
                                         const struct waiting *directory)
{
    const char *above = directory ? ls->path.data : "";
    const unsigned depth = directory ? directory->depth + 1 : 0;
    BW_TRY(ls_listing_sort(listing, &ls->paths, ls->options));
    if (ls->options->selects) {
        ls_listing_remove_dots(listing);
        BW_TRY(ls_listing_exclude(listing, &ls->paths, ls->options, above));
    }
    if (directory)
        BW_TRY(enter_directories(ls, listing, directory));
    if (ls->options->selects)
        BW_TRY(ls_listing_select(listing, &ls->paths, ls->options, above));
    if ((!listing->count && (ls->options->selects || !directory)) ||
        depth < ls->options->selection.mindepth)
        return NULL;
    return write_listing(ls, listing, directory ? ls->path.data : NULL);
}

static struct bw_error *list(struct ls *ls, const struct waiting *directory)
{
    struct ls_listing listing = {0};
    bool again;
    BW_TRY(enter_once(ls, &directory->place, &again));
    if (again) {
        cmd_paths_miss(&ls->paths, bw_error_create(BW_ERROR_CORRUPT,
                                                   "%s: not listed again: directory inode %" PRIu64
                                                   " of tree %" PRIu64 " has a second entry",
                                                   ls->path.data, directory->place.inode,
                                                   bw_subvolume_id(directory->place.subvolume)));
        return NULL;
    }
    struct bw_error *error =
        ls_listing_read(&listing, &ls->paths, ls->options, &directory->place, &directory->parent);
    if (!error)
        error = select_and_write(ls, &listing, directory);
    ls_listing_free(&listing);
    return error;
}

static struct bw_error *list_waiting(struct ls *ls)
{
    struct bw_error *error = NULL;
    while (!error && ls->waiting_count) {
        const struct waiting next = ls->waiting[--ls->waiting_count];
        ls->path.length = next.above;
        bw_buffer_append(&ls->path, next.name, strlen(next.name));
        bw_buffer_append_byte(&ls->path, '\0');
        ls->path.length--;
        error = ls->path.failed ? bw_error_no_memory() : list(ls, &next);
        free(next.name);
    }
    return error;
}

/* As ls does: a link given as PATH is followed to its directory, unless long lines or -d are about
 * the link itself. */
static struct bw_error *find(const struct ls *ls, const char *path, struct bw_place *place)
{
    const struct cmd_paths *paths = &ls->paths;
    struct bw_place target;
    BW_TRY(bw_lookup(paths->session.fs, paths->from, path, false, place));
    if (place->type != BW_FILE_SYMLINK || ls->options->lines || ls->options->itself)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup(paths->session.fs, paths->from, path, true, &target);
    if (!error && target.type == BW_FILE_DIRECTORY)
        *place = target;
    return NULL;
}

/* A directory given as PATH: what its ".." is needs a lookup. Below it, the listing knows. */
static struct bw_error *wait_for_named(struct ls *ls, const char *path,
                                       const struct bw_place *place)
{
    struct bw_place parent = *place;
    BW_AUTO_FREE char *above = NULL;
    if (asprintf(&above, "%s/..", path) < 0)
        return bw_error_no_memory();
    bw_error_free(bw_lookup(ls->paths.session.fs, ls->paths.from, above, true, &parent));
    return wait_for(ls, 0, strdup(path), place, &parent, 0);
}

/* Directories given as PATH are listed in the order of files. */
static struct bw_error *wait_for_directories(struct ls *ls, struct ls_listing *directories)
{
    BW_TRY(ls_listing_sort(directories, &ls->paths, ls->options));
    for (size_t i = directories->count; i-- > 0;) {
        const struct ls_entry *entry = &directories->entries[i];
        BW_AUTO_FREE char *path =
            strndup(directories->bytes.data + entry->name, entry->name_length);
        if (!path)
            return bw_error_no_memory();
        BW_TRY(wait_for_named(ls, path, &entry->place));
    }
    return NULL;
}

/* Files given as PATH, and with -d all that is, come first, together; then the directories. */
static struct bw_error *sort_out(struct ls *ls, const char *const *names, size_t count,
                                 struct ls_listing *files, struct ls_listing *directories)
{
    for (size_t i = 0; i < count; i++) {
        struct bw_place place;
        struct bw_error *error = find(ls, names[i], &place);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            cmd_paths_miss(&ls->paths, error);
        else if (place.type != BW_FILE_DIRECTORY || ls->options->itself)
            BW_TRY(ls_listing_add(files, names[i], strlen(names[i]), &place));
        else if (enters(ls, 0))
            BW_TRY(ls_listing_add(directories, names[i], strlen(names[i]), &place));
    }
    return wait_for_directories(ls, directories);
}

static struct bw_error *list_all(struct ls *ls)
{
    static const char *const top[] = {"/"};
    const struct cmd_common *common = ls->paths.common;
    const size_t count = common->path_count;
    struct ls_listing files = {0}, directories = {0};
    ls->headings = ls->options->recursive || count > 1;
    struct bw_error *error =
        sort_out(ls, count ? common->paths : top, count ? count : 1, &files, &directories);
    if (!error)
        error = select_and_write(ls, &files, NULL);
    ls_listing_free(&files);
    ls_listing_free(&directories);
    return error ? error : list_waiting(ls);
}

static void free_ls(struct ls *ls)
{
    for (size_t i = 0; i < ls->waiting_count; i++)
        free(ls->waiting[i].name);
    free(ls->waiting);
    bw_buffer_free(&ls->path);
    bw_pair_set_free(&ls->listed);
}

/* What has to be known of the image before the first line. */
static struct bw_error *prepare(struct ls *ls)
{
    struct ls_state *state = ls->options;
    struct bw_fs *fs = ls->paths.session.fs;
    BW_TRY(cmd_selection_prepare(&state->selection, fs, state->subvolume));
    const char *columns = state->rows.columns ? state->rows.columns : "";
    if ((state->names && !state->numeric) || strstr(columns, "user") || strstr(columns, "group"))
        BW_TRY(bw_people_read(fs, state->subvolume ? ls->paths.from : NULL, &state->owners));
    return NULL;
}

static struct bw_error *list_prepared(struct ls *ls)
{
    BW_TRY(prepare(ls));
    struct bw_error *error = list_all(ls);
    return ls->stream.rows ? bw_error_first(error, bw_rows_end(&ls->stream)) : error;
}

static int list_image(const struct cmd_common *common, struct ls_state *state,
                      const struct bw_rows *rows)
{
    struct ls ls = {.options = state};
    int status = cmd_paths_open(common, state->subvolume, &ls.paths);
    if (status)
        return status;
    ls.stream =
        (struct bw_rows_stream){.rows = rows, .consume = cmd_write, .context = &ls.paths.output};
    struct bw_error *error = list_prepared(&ls);
    free_ls(&ls);
    return cmd_paths_close(&ls.paths, error);
}

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
    return cmd_rows_create(&ls->rows, cmd_ls.record, '\n', terminal, rows);
}

static int run(const struct cmd_common *common, void *state)
{
    struct ls_state *ls = state;
    struct bw_rows *rows = NULL;
    struct bw_error *error = make_ready(common, ls, &rows);
    int status = error ? cmd_fail(common, error) : list_image(common, ls, rows);
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
