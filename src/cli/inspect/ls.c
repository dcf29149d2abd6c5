/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ls command: the entries of directories, in the formats of ls(1). It lists one directory after
 * the other; its memory holds the entries of one, and a stack of directories still to be listed. A
 * walk visits directories in the order of the disk, so ls does not use it, but applies its filters.
 */
#include "cli/inspect/ls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/pair_set.h"

/* Entries with their paths, for filters and rows. */

/* Appends the path of a directory, with a '/' at its end. */
static struct bw_error *begin_path(const char *directory, struct bw_buffer *path)
{
    BW_TRY(cmd_paths_absolute(directory, path));
    if (path->data[path->length - 1] != '/')
        bw_buffer_append_byte(path, '/');
    return bw_buffer_error(path);
}

/* Makes an entry with its path. `path` has the path of the directory in its first `above` bytes;
 * the name and a NUL follow. */
static struct bw_error *name_entry(const struct ls_listing *listing, const struct ls_entry *entry,
                                   size_t above, struct bw_buffer *path, struct bw_entry *named)
{
    const char *name = listing->bytes.data + entry->name;
    size_t slashes = 0; /* at the beginning of a path on the command line */
    while (slashes < entry->name_length && name[slashes] == '/')
        slashes++;
    path->length = above;
    bw_buffer_append(path, name + slashes, entry->name_length - slashes);
    bw_buffer_append_byte(path, '\0');
    *named = (struct bw_entry){path->data, path->length - 1, entry->place,
                               entry->has_inode ? &entry->inode : NULL, entry->no_compression};
    return bw_buffer_error(path);
}

/*
 * The order of directories. A stack holds the directories that are still to be listed, so deep
 * trees need no recursion.
 */

/* A directory on the stack. */
struct pending {
    size_t above; /* length of the previous directory's path that both share */
    size_t name;  /* offset in `names` of the rest of the path, which ends where the name of the
                   * entry above begins */
    struct bw_place place, parent;
    unsigned depth; /* levels below the PATH on the command line */
};

BW_VECTOR(pending_stack, struct pending);

struct lister {
    struct ls_state *options;
    struct cmd_paths paths;
    struct bw_rows_stream stream;   /* its `rows` is NULL if lines are printed */
    struct bw_directory *directory; /* one handle for all */
    struct bw_buffer path;          /* path of the current directory, with a NUL */
    struct pending_stack pending;   /* the last one is listed next, then its subdirectories */
    struct bw_buffer names;         /* the names of these */
    struct ls_listing listing;      /* entries of the current directory; its memory is reused */
    struct bw_buffer text;          /* its memory is reused */
    struct bw_pair_set listed;      /* with -R: directories, by subvolume and inode */
    bool headings, not_first;
};

/* Pushes a directory. `slash` precedes its name unless it is a PATH of the command line. */
static struct bw_error *push_directory(struct lister *ls, const char *slash, const char *name,
                                       size_t length, struct pending directory)
{
    directory.name = ls->names.length;
    bw_buffer_append(&ls->names, slash, strlen(slash));
    bw_buffer_append(&ls->names, name, length);
    BW_TRY(bw_buffer_error(&ls->names));
    return pending_stack_push(&ls->pending, directory);
}

/* Whether to list the contents of a directory `depth` levels below the start. */
static bool lists_contents(const struct lister *ls, unsigned depth)
{
    const struct cmd_selection *selection = &ls->options->selection;
    return !selection->has_maxdepth || depth < selection->maxdepth;
}

/* Pushes the subdirectories, in reverse order, because the last one pushed is listed first. */
static struct bw_error *enter_directories(struct lister *ls, const struct ls_listing *listing,
                                          const struct pending *directory)
{
    const unsigned depth = directory->depth + 1;
    if (!ls->options->recursive || !lists_contents(ls, depth))
        return NULL;
    const bool stays =
        !bw_nested_enters(ls->options->selection.nested, ls->options->selection.subvolume);
    size_t above = ls->path.length;
    above -= above && ls->path.data[above - 1] == '/';
    for (size_t i = listing->entries.count; i-- > 0;) {
        const struct ls_entry *entry = &listing->entries.items[i];
        const bool is_other = entry->place.subvolume != directory->place.subvolume;
        if (entry->place.type == BW_FILE_DIRECTORY && !entry->is_dots && !(stays && is_other))
            BW_TRY(push_directory(ls, "/", listing->bytes.data + entry->name, entry->name_length,
                                  (struct pending){.above = above,
                                                   .place = entry->place,
                                                   .parent = directory->place,
                                                   .depth = depth}));
    }
    return NULL;
}

/* `path` is the path of the directory; NULL for the PATHs of the command line that are not
 * directories. */
static struct bw_error *write_listing(struct lister *ls, struct ls_listing *listing,
                                      const char *path)
{
    struct bw_buffer *text = &ls->text;
    struct ls_state *state = ls->options;
    const char *directory = path ? path : "";
    text->length = 0;
    if (state->lines || state->classify || state->color || ls->stream.rows)
        BW_TRY(ls_listing_read_inodes(listing, &ls->paths, state->lines));
    if (ls->stream.rows) {
        BW_AUTO_BUFFER struct bw_buffer whole = {0};
        struct bw_entry named;
        BW_TRY(begin_path(directory, &whole));
        const size_t above = whole.length;
        for (size_t i = 0; i < listing->entries.count; i++) {
            const struct ls_entry *entry = &listing->entries.items[i];
            if (entry->is_dots)
                continue;
            BW_TRY(name_entry(listing, entry, above, &whole, &named));
            BW_TRY(bw_rows_write_entry(&ls->stream, ls->paths.format.session.fs, &named,
                                       state->owners));
        }
        return NULL;
    }
    if ((state->color && ls_colors_follow(&state->colors)) || (state->classify && state->lines))
        BW_TRY(ls_listing_follow_links(listing, &ls->paths, directory));
    if (ls->not_first)
        bw_buffer_append_byte(text, '\n');
    ls->not_first = true;
    if (path && ls->headings) {
        cmd_format_append_name(&ls->paths.format, path, strlen(path), text);
        bw_buffer_append(text, ":\n", 2);
    }
    ls_listing_print(listing, &ls->paths, state, path != NULL, text);
    BW_TRY(bw_buffer_error(text));
    if (!text->length)
        return NULL;
    return cmd_write(&ls->paths.format.output, text->data, text->length);
}

/* The filters of a walk, applied in the same order. */
enum filter { EXCLUSIONS, NAMES, INODES };

/* Keeps the entries that pass a filter. `directory` as for select_and_write(). */
static struct bw_error *filter_entries(const struct lister *ls, struct ls_listing *listing,
                                       const struct pending *directory, enum filter filter)
{
    const struct cmd_selection *selection = &ls->options->selection;
    const struct bw_selection *tests = selection->selection;
    struct bw_fs *fs = ls->paths.format.session.fs;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    size_t kept = 0;
    BW_TRY(begin_path(directory ? ls->path.data : "", &path));
    const size_t above = path.length;
    for (size_t i = 0; i < listing->entries.count; i++) {
        const struct ls_entry *entry = &listing->entries.items[i];
        const struct bw_place *place = &entry->place;
        struct bw_subvolume_info info = {0};
        struct bw_entry named;
        bool keeps = true;
        BW_TRY(name_entry(listing, entry, above, &path, &named));
        if (filter == EXCLUSIONS) {
            keeps = !(entry->is_dots && ls->options->selects) &&
                    !(tests && bw_selection_excludes_entry(tests, &named));
            /* Whether it is a snapshot is known even if the root item cannot be read. */
            if (keeps && directory && selection->no_snapshots && !entry->is_dots &&
                place->subvolume != directory->place.subvolume)
                bw_error_free(bw_subvolume_get(fs, place->subvolume, &info));
            keeps = keeps && !info.is_snapshot;
        } else if (filter == NAMES) {
            const unsigned type = place->type <= BW_FILE_SYMLINK ? place->type : 0;
            keeps = bw_part_contains(selection->part.number, selection->part.count,
                                     bw_subvolume_id(place->subvolume), place->inode) &&
                    (!selection->types || selection->types >> type & 1) &&
                    (!tests || bw_selection_accepts_name(tests, &named));
        } else {
            keeps = !bw_selection_needs_inode(tests) || bw_selection_accepts_inode(tests, &named);
            if (keeps && bw_selection_needs_xattrs(tests))
                BW_TRY(bw_selection_accepts_xattrs(tests, fs, &named, &keeps));
        }
        if (keeps)
            listing->entries.items[kept++] = *entry;
    }
    listing->entries.count = kept;
    return NULL;
}

/* Applies the filters and writes the listing of a directory; or, if that is NULL, of the PATHs of
 * the command line that are not directories. */
static struct bw_error *select_and_write(struct lister *ls, struct ls_listing *listing,
                                         const struct pending *directory)
{
    const struct cmd_selection *selection = &ls->options->selection;
    const struct bw_selection *tests = selection->selection;
    const bool selects = ls->options->selects;
    const unsigned depth = directory ? directory->depth + 1 : 0;
    BW_TRY(ls_listing_sort(listing, &ls->paths));

    /* Directories that --exclude matches are not entered, nor are "." and "..". Other filters do
     * not keep directories from being entered. */
    if (selects || selection->no_snapshots)
        BW_TRY(filter_entries(ls, listing, directory, EXCLUSIONS));
    if (directory)
        BW_TRY(enter_directories(ls, listing, directory));

    /* Tests of names come first, because they need no inodes. */
    if (selects)
        BW_TRY(filter_entries(ls, listing, directory, NAMES));
    if (tests && bw_selection_needs_inode(tests))
        BW_TRY(ls_listing_read_inodes(listing, &ls->paths, false));
    if (tests && (bw_selection_needs_inode(tests) || bw_selection_needs_xattrs(tests)))
        BW_TRY(filter_entries(ls, listing, directory, INODES));

    /* A directory without selected entries gets no heading. */
    if (!listing->entries.count && (selects || !directory))
        return NULL;
    if (depth < selection->mindepth)
        return NULL;
    return write_listing(ls, listing, directory ? ls->path.data : NULL);
}

/* Sorts the PATHs into files, which are listed first and together, and directories. With -d,
 * everything counts as a file. */
static struct bw_error *find_operands(struct lister *ls, const char *const *names, size_t count,
                                      struct ls_listing *files, struct ls_listing *directories)
{
    const struct cmd_paths *paths = &ls->paths;
    for (size_t i = 0; i < count; i++) {
        struct bw_place place, target;
        struct bw_error *error =
            bw_lookup(paths->format.session.fs, paths->from, names[i], false, &place);
        /* As in ls, a symbolic link is followed if it leads to a directory, except with -d, -F or
         * long lines, which describe the link itself. */
        if (!error && place.type == BW_FILE_SYMLINK && !ls->options->lines &&
            !ls->options->itself && !ls->options->classify) {
            BW_AUTO_ERROR struct bw_error *broken =
                bw_lookup(paths->format.session.fs, paths->from, names[i], true, &target);
            if (!broken && target.type == BW_FILE_DIRECTORY)
                place = target;
        }
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            cmd_format_miss(&ls->paths.format, error);
        else if (place.type != BW_FILE_DIRECTORY || ls->options->itself)
            BW_TRY(ls_listing_add(files, names[i], strlen(names[i]), &place));
        else if (lists_contents(ls, 0))
            BW_TRY(ls_listing_add(directories, names[i], strlen(names[i]), &place));
    }

    /* Directories are sorted like files. */
    BW_TRY(ls_listing_sort(directories, &ls->paths));
    for (size_t i = directories->entries.count; i-- > 0;) {
        const struct ls_entry *entry = &directories->entries.items[i];
        BW_AUTO_FREE char *path =
            strndup(directories->bytes.data + entry->name, entry->name_length);
        if (!path)
            return bw_error_no_memory();

        /* If the ".." of a PATH is listed, it is looked up; further down, the listing contains the
         * parent. */
        struct pending directory = {.place = entry->place, .parent = entry->place};
        BW_AUTO_FREE char *above = NULL;
        if (ls->options->all && asprintf(&above, "%s/..", path) < 0)
            return bw_error_no_memory();
        if (above)
            bw_error_free(bw_lookup(ls->paths.format.session.fs, ls->paths.from, above, true,
                                    &directory.parent));
        BW_TRY(push_directory(ls, "", path, strlen(path), directory));
    }
    return NULL;
}

/* Lists the PATHs that are not directories, then the directories on the stack. */
static struct bw_error *list_paths(struct lister *ls, struct ls_listing *files,
                                   struct ls_listing *directories)
{
    struct ls_state *state = ls->options;
    struct bw_fs *fs = ls->paths.format.session.fs;
    const struct cmd_common *common = ls->paths.format.common;
    static const char *const top[] = {"/"};
    const char *const *names = top;
    size_t count = 1;
    if (common->path_count) {
        names = common->paths;
        count = common->path_count;
    }
    const char *columns = common->format.columns ? common->format.columns : "";
    BW_TRY(cmd_selection_prepare(&state->selection, fs));
    if (state->names || strstr(columns, "user") || strstr(columns, "group"))
        BW_TRY(bw_user_names_open(fs, state->selection.subvolume ? ls->paths.from : NULL,
                                  &state->owners));

    ls->headings = state->recursive || count > 1;
    BW_TRY(find_operands(ls, names, count, files, directories));
    BW_TRY(select_and_write(ls, files, NULL));
    while (ls->pending.count) {
        const struct pending next = pending_stack_pop(&ls->pending);
        ls->path.length = next.above;
        bw_buffer_append(&ls->path, ls->names.data + next.name, ls->names.length - next.name);
        ls->names.length = next.name;
        BW_TRY(bw_buffer_end_text(&ls->path));

        /* A directory has only one entry. Two in a crafted image could make a listing endless. */
        const struct bw_place *place = &next.place;
        const uint64_t subvolume = bw_subvolume_id(place->subvolume);
        bool first = true;
        if (state->recursive && place->inode != BW_EMPTY_DIRECTORY)
            BW_TRY(bw_pair_set_insert(&ls->listed, subvolume, place->inode, &first));
        if (!first) {
            cmd_format_miss(&ls->paths.format,
                            bw_error_create(BW_ERROR_CORRUPT,
                                            "%s: not listed again: directory inode %" PRIu64
                                            " of subvolume %" PRIu64 " has a second entry",
                                            ls->path.data, place->inode, subvolume));
            continue;
        }
        ls_listing_clear(&ls->listing);
        BW_TRY(ls_listing_read(&ls->listing, &ls->paths, place, &next.parent, &ls->directory));
        BW_TRY(select_and_write(ls, &ls->listing, &next));
    }

    /* A listing of everything does not reach subvolumes without a path. Looking up their paths
     * reports them. */
    struct bw_subvolume_infos *infos = NULL;
    if (state->recursive && !state->selection.subvolume && !common->path_count)
        BW_TRY(bw_subvolume_infos_open(fs, true, &infos));
    while (infos && bw_subvolume_infos_next(infos))
        ;
    return bw_subvolume_infos_close(infos);
}

/* Options and their combinations. */

static const char *const orders[] = {
    [LS_ORDER_DEFAULT] = "", [LS_BY_NAME] = "name", [LS_UNSORTED] = "none",
    [LS_BY_SIZE] = "size",   [LS_BY_TIME] = "time", NULL};
static const char *const times[] = {"",      "mtime",  "modification", "atime", "access",   "use",
                                    "ctime", "status", "otime",        "birth", "creation", NULL};
static const char *const whens[] = {"never", "auto", "always", NULL};

enum { NEVER, AUTO, ALWAYS };

/* -t, -S and -U. */
static struct bw_error *set_order(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    unsigned *order = target;
    (void)argument;
    *order = LS_UNSORTED;
    if (option->letter != 'U')
        *order = option->letter == 't' ? LS_BY_TIME : LS_BY_SIZE;
    return NULL;
}

static struct bw_error *set_color(void *target, const struct cmd_option *option, const char *when)
{
    unsigned *color = target;
    *color = ALWAYS;
    if (!when)
        return NULL;
    return cmd_store_word(color, option, when);
}

#define ORDER .store = set_order, .offset = CMD_AT(struct ls_state, order, unsigned)

static const struct cmd_option options[] = {
    {'l', "long", NULL, "print mode, links, user, group, size, time and target of links",
     CMD_FLAG(struct ls_state, lines)},
    {0, "names", NULL, "print names of users and groups, from the image, instead of numbers",
     CMD_FLAG(struct ls_state, names)},
    {'a', "all", NULL, "also list names that begin with a dot", CMD_FLAG(struct ls_state, all)},
    {'A', "almost-all", NULL, "the same without . and ..", CMD_FLAG(struct ls_state, almost_all)},
    {'d', "directory", NULL, "list a directory given as PATH itself, not its contents",
     CMD_FLAG(struct ls_state, itself)},
    {'R', "recursive", NULL, "also list the contents of directories, at any depth",
     CMD_FLAG(struct ls_state, recursive)},
    {'i', "inode", NULL, "the inode number before each name", CMD_FLAG(struct ls_state, inodes)},
    {'F', "classify", NULL, "one of */=@| after each name, by its type",
     CMD_FLAG(struct ls_state, classify)},
    {'t', "by-time", NULL, "sort by time, the newest first", ORDER},
    {'S', "by-size", NULL, "sort by size, the largest first", ORDER},
    {'U', "unsorted", NULL, "do not sort: the order of a mount", ORDER},
    {'r', "reverse", NULL, "reverse the order", CMD_FLAG(struct ls_state, reverse)},
    {0, "sort", "WORD", "sort by name, size or time, or not (none)",
     CMD_WORD(struct ls_state, order, orders)},
    {0, "time", "WORD", "which time to show and sort by: mtime, atime, ctime or otime",
     CMD_WORD(struct ls_state, time_word, times)},
    {0, "time-style", "STYLE",
     "times as full-iso (the default), long-iso, iso, or +FORMAT as of date(1)",
     CMD_TEXT(struct ls_state, time_style)},
    {0, "color", "[=WHEN]",
     "colours, by LS_COLORS: always, never (the default), or auto: on a terminal, unless NO_COLOR "
     "is set",
     .store = set_color, .offset = CMD_AT(struct ls_state, color, unsigned), .words = whens},
    {'1', "one", NULL, "print one name per line (always the case)", CMD_FLAG(struct ls_state, one)},
    CMD_TREE(struct ls_state, selection),
    CMD_PART_OPTION(struct ls_state, selection),
    {0},
};

static struct bw_error *make_ready(const struct cmd_common *common, struct ls_state *ls,
                                   struct bw_rows **rows)
{
    const bool terminal = isatty(STDOUT_FILENO);
    static const enum ls_time by_word[] = {LS_MTIME, LS_MTIME, LS_MTIME, LS_ATIME,
                                           LS_ATIME, LS_ATIME, LS_CTIME, LS_CTIME,
                                           LS_OTIME, LS_OTIME, LS_OTIME};
    ls->time = by_word[ls->time_word];
    /* A selected time that is not printed is the key to sort by. */
    if (ls->time != LS_MTIME && !ls->lines && ls->order == LS_ORDER_DEFAULT)
        ls->order = LS_BY_TIME;
    if (ls->color == AUTO && !cmd_has_color(common, STDOUT_FILENO))
        ls->color = NEVER;
    ls->selects = cmd_selection_is_set(&ls->selection);
    if (ls->selects && !ls->recursive)
        return bw_error_create(BW_ERROR_USAGE, "filters and --part need -R");
    if (ls->time_style && !bw_time_style_parse(ls->time_style, &ls->times))
        return bw_error_create(BW_ERROR_USAGE, "invalid argument of --time-style: %s (allowed: %s)",
                               ls->time_style, BW_TIME_STYLES);
    if (ls->color && !ls_colors_read(common, &ls->colors))
        ls->color = NEVER;
    struct cmd_format_settings format = common->format;
    if (cmd_format_is_for_people(common)) {
        ls->human_readable = format.iec; /* sizes of -l */
        format.iec = false;
    }
    return cmd_format_rows(&format, cmd_ls.record, false, terminal, rows);
}

static int run(const struct cmd_common *common, void *state)
{
    struct lister ls = {.options = state, .listing.options = state};
    struct ls_listing files = {.options = state}, directories = {.options = state};
    struct bw_rows *rows = NULL;
    struct bw_error *error = make_ready(common, ls.options, &rows);
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_paths_open(common, NULL, ls.options->selection.subvolume, &ls.paths);
    if (status == STATUS_OK) {
        ls.stream = (struct bw_rows_stream){
            .rows = rows, .consume = cmd_write, .context = &ls.paths.format.output};
        error = list_paths(&ls, &files, &directories);
        if (rows)
            error = bw_error_first(error, bw_rows_end(&ls.stream));
        bw_directory_close(ls.directory);
        status = cmd_paths_close(&ls.paths, error);
    }
    ls_listing_free(&files);
    ls_listing_free(&directories);
    ls_listing_free(&ls.listing);
    pending_stack_free(&ls.pending);
    bw_buffer_free(&ls.names);
    bw_buffer_free(&ls.text);
    bw_buffer_free(&ls.path);
    bw_pair_set_free(&ls.listed);
    bw_rows_destroy(rows);
    bw_user_names_close(ls.options->owners);
    ls_colors_free(&ls.options->colors);
    return status;
}

const struct command cmd_ls = {
    .name = "ls",
    .topic = cmd_topic_files,
    .operands = "IMAGE [PATH]...",
    .summary = "Lists files and directories.",
    .details = CMD_PATHS_DETAILS
    "Without a PATH, the top directory is listed, one name per line, sorted by bytes.\n"
    "Times are in UTC. Users and groups are numbers; --names prints the names from the\n"
    "image's own /etc/passwd and /etc/group.\n\n"
    "With -R, the filters of find(1) select entries: those that meet all filters (of\n"
    "several --name options, at least one). Directories without selected entries are\n"
    "omitted.\n",
    .examples = "  btrfs-walk ls disk.img                   the top directory\n"
                "  btrfs-walk ls -la disk.img /users/me     one directory, all columns\n"
                "  btrfs-walk ls -lt --names disk.img /etc  the newest first\n"
                "  btrfs-walk ls --json disk.img /etc       all details of each entry\n"
                "  btrfs-walk ls -R --subvol @ disk.img     all of one subvolume\n"
                "  btrfs-walk ls -lR --size +1M disk.img    files larger than a mebibyte\n",
    .options = options,
    .record = "fileinfo",
    .run = run,
    .state_size = sizeof(struct ls_state),
    .takes_paths = true,
    .takes_list = true,
};
