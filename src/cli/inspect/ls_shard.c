/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories of a shard, for ls -R --shard: a walk of the shard finds the entries of
 * directories, and each of these directories is listed completely. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/inspect/ls.h"

/* A walk, and the path where it begins. */
struct search {
    const struct ls_state *state;
    const char *start; /* as the user wrote it, without slashes at its end */
    size_t start_length;
    size_t length; /* of the absolute path of the start; 0 for the top directory */
    struct bw_buffer path;
    ls_directory_visitor *visit;
    void *context;
};

/* Whether a directory, or one above it up to the start, is excluded. */
static bool is_excluded(const struct search *search, const struct bw_entry *entry, char *path)
{
    const struct bw_selection *selection = search->state->selection.selection;
    bool excluded = false;
    for (size_t end = search->length + 1; selection && !excluded && end <= entry->path_length;
         end++) {
        const char after = path[end];
        if (after && after != '/')
            continue;
        struct bw_entry above = *entry;
        path[end] = '\0';
        above.path = path;
        above.path_length = end;
        excluded = end > 1 && bw_selection_excludes_entry(selection, &above);
        path[end] = after;
    }
    return excluded;
}

static struct bw_error *visit_directory(void *context, const struct bw_entry *entry)
{
    struct search *search = context;
    const bool is_start = entry->path_length <= search->length + (search->length == 0);
    const char *rest = is_start ? "" : entry->path + search->length;
    const size_t rest_length = is_start ? 0 : entry->path_length - search->length;
    BW_AUTO_FREE char *path = strndup(entry->path, entry->path_length);
    unsigned depth = 0;
    if (!path)
        return bw_error_no_memory();
    if (!is_start && is_excluded(search, entry, path))
        return NULL;
    for (size_t i = 0; i < rest_length; i++)
        depth += rest[i] == '/';
    search->path.length = 0;
    bw_buffer_append(&search->path, search->start, search->start_length);
    bw_buffer_append(&search->path, rest, rest_length);
    if (!search->path.length)
        bw_buffer_append_byte(&search->path, '/');
    bw_buffer_append_byte(&search->path, '\0');
    return search->path.failed
               ? bw_error_no_memory()
               : search->visit(search->context, search->path.data, &entry->place, depth);
}

struct bw_error *ls_shard_directories(struct bw_fs *fs, const struct ls_state *state,
                                      const char *start, ls_directory_visitor *visit, void *context)
{
    struct search search = {.state = state, .start = start, .visit = visit, .context = context};
    BW_AUTO_FREE char *absolute = NULL, *below = NULL;
    search.start_length = strlen(start);
    while (search.start_length && start[search.start_length - 1] == '/')
        search.start_length--;
    if (asprintf(&below, "%s/", start) < 0)
        return bw_error_no_memory();
    const struct bw_walk_options options = {.struct_size = sizeof options,
                                            .subvolume = state->subvolume,
                                            .start = below,
                                            .types = BW_WALK_DIRECTORIES,
                                            .has_maxdepth = state->selection.has_maxdepth,
                                            .maxdepth = state->selection.maxdepth,
                                            .nested = state->nested,
                                            .shard = state->shard.number,
                                            .shards = state->shard.count,
                                            .threads = 1,
                                            .visit = visit_directory,
                                            .context = &search};
    BW_TRY(bw_walk_start_path(fs, &options, &absolute, &search.length));
    search.length -= search.length == 1;
    struct bw_error *error = bw_walk(fs, &options, NULL);
    bw_buffer_free(&search.path);
    return error;
}
