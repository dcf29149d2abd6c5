/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which directories ls lists, one after the other. Those that are still to be listed are kept in a
 * stack: the depth of a tree costs no recursion.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/pair_set.h"
#include "cli/inspect/ls.h"

/* A directory that is to be listed. */
struct waiting {
    size_t above; /* how much of the path of the directory before it counts */
    size_t name;  /* what follows then, in the names; the names of those below it end there */
    struct bw_place place, parent;
    unsigned depth; /* below what was named */
};

struct ls {
    struct ls_state *options;
    struct cmd_paths paths;
    struct bw_rows_stream stream;   /* its `rows` is NULL if lines are written */
    struct bw_directory *directory; /* one handle for all */
    struct bw_buffer path;          /* of the directory that is listed, with a NUL */
    struct waiting *waiting; /* the next one is the last; those below it come before others */
    size_t waiting_count, waiting_capacity;
    struct bw_buffer names;    /* of these */
    struct ls_listing listing; /* of the present directory; memory for the next one */
    struct bw_buffer text;     /* likewise */
    struct bw_pair_set listed; /* with -R: directories, by subvolume and inode */
    bool headings, not_first;
};

/* The name of a directory follows a slash, unless it is what the user gave. */
static struct bw_error *wait_for(struct ls *ls, size_t above, const char *slash, const char *name,
                                 size_t length, const struct waiting *directory)
{
    if (!BW_ARRAY_RESERVE(ls->waiting, ls->waiting_count, ls->waiting_capacity))
        return bw_error_no_memory();
    struct waiting *waiting = &ls->waiting[ls->waiting_count++];
    *waiting = *directory;
    waiting->above = above;
    waiting->name = ls->names.length;
    bw_buffer_append(&ls->names, slash, strlen(slash));
    bw_buffer_append(&ls->names, name, length);
    return ls->names.failed ? bw_error_no_memory() : NULL;
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

/* What is pushed last is listed next. */
static struct bw_error *enter_directories(struct ls *ls, const struct ls_listing *listing,
                                          const struct waiting *directory)
{
    const unsigned depth = directory->depth + 1;
    if (!ls->options->recursive || !enters(ls, depth))
        return NULL;
    const bool stays = !bw_nested_enters(ls->options->nested, ls->options->subvolume);
    size_t above = ls->path.length;
    above -= above && ls->path.data[above - 1] == '/';
    for (size_t i = listing->count; i-- > 0;) {
        const struct ls_entry *entry = &listing->entries[i];
        const bool is_other = entry->place.subvolume != directory->place.subvolume;
        if (entry->place.type == BW_FILE_DIRECTORY && !entry->is_dots && !(stays && is_other))
            BW_TRY(wait_for(ls, above, "/", listing->bytes.data + entry->name, entry->name_length,
                            &(struct waiting){.place = entry->place,
                                              .parent = directory->place,
                                              .depth = depth}));
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
    struct bw_buffer *text = &ls->text;
    struct ls_state *state = ls->options;
    text->length = 0;
    if (state->lines || state->classify || state->color || ls->stream.rows)
        BW_TRY(ls_listing_fill(listing, &ls->paths, state->lines));
    if (ls->stream.rows)
        return ls_listing_each(listing, path ? path : "", write_row, ls);
    if ((state->color && ls_colors_follow(&state->colors)) || (state->classify && state->lines))
        BW_TRY(ls_listing_follow(listing, &ls->paths, path ? path : ""));
    if (ls->not_first)
        bw_buffer_append_byte(text, '\n');
    ls->not_first = true;
    if (path && ls->headings) {
        cmd_paths_append_name(&ls->paths, path, strlen(path), text);
        bw_buffer_append(text, ":\n", 2);
    }
    ls_listing_print(listing, &ls->paths, state, path != NULL, text);
    if (text->failed)
        return bw_error_no_memory();
    return text->length ? cmd_write(&ls->paths.output, text->data, text->length) : NULL;
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
        BW_TRY(ls_listing_exclude(listing, ls->options, above));
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
    struct ls_listing *listing = &ls->listing;
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
    ls_listing_clear(listing);
    struct bw_error *error = ls_listing_read(listing, &ls->paths, ls->options, &directory->place,
                                             &directory->parent, &ls->directory);
    if (!error)
        error = select_and_write(ls, listing, directory);
    return error;
}

static struct bw_error *list_waiting(struct ls *ls)
{
    struct bw_error *error = NULL;
    while (!error && ls->waiting_count) {
        const struct waiting next = ls->waiting[--ls->waiting_count];
        ls->path.length = next.above;
        bw_buffer_append(&ls->path, ls->names.data + next.name, ls->names.length - next.name);
        bw_buffer_append_byte(&ls->path, '\0');
        ls->path.length--;
        ls->names.length = next.name;
        error = ls->path.failed ? bw_error_no_memory() : list(ls, &next);
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
    return wait_for(ls, 0, "", path, strlen(path),
                    &(struct waiting){.place = *place, .parent = parent});
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
    free(ls->waiting);
    bw_buffer_free(&ls->names);
    ls_listing_free(&ls->listing);
    bw_buffer_free(&ls->text);
    bw_directory_close(ls->directory);
    bw_buffer_free(&ls->path);
    bw_pair_set_free(&ls->listed);
}

/* What has to be known of the image before the first line. */
static struct bw_error *prepare(struct ls *ls)
{
    struct ls_state *state = ls->options;
    struct bw_fs *fs = ls->paths.session.fs;
    BW_TRY(cmd_selection_prepare(&state->selection, fs, state->subvolume));
    const char *columns = ls->paths.common->answer.columns;
    columns = columns ? columns : "";
    if ((state->names && !state->numeric) || strstr(columns, "user") || strstr(columns, "group"))
        BW_TRY(bw_people_read(fs, state->subvolume ? ls->paths.from : NULL, &state->owners));
    return NULL;
}

static struct bw_error *skip_subvolume(void *context, const struct bw_subvolume_info *info)
{
    (void)context;
    (void)info;
    return NULL;
}

/* A listing of everything does not come to subvolumes that no path leads to: finding their paths
 * reports them. */
static struct bw_error *report_unreachable(const struct ls *ls)
{
    const struct ls_state *state = ls->options;
    const bool lists_all = state->recursive && !state->subvolume && !ls->paths.common->path_count;
    return lists_all ? bw_fs_subvolumes(ls->paths.session.fs, true, skip_subvolume, NULL) : NULL;
}

static struct bw_error *list_prepared(struct ls *ls)
{
    BW_TRY(prepare(ls));
    struct bw_error *error = list_all(ls);
    if (!error)
        error = report_unreachable(ls);
    return ls->stream.rows ? bw_error_first(error, bw_rows_end(&ls->stream)) : error;
}

int ls_list_image(const struct cmd_common *common, struct ls_state *state,
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
