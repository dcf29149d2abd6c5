/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filters of a listing: of what ls_listing_read() has gathered this leaves what was selected,
 * and says which directories are entered all the same. What only names tell is tried before any
 * inode is looked up.
 */
#include "base/cleanup.h"
#include "cmd/inspect/ls.h"

struct bw_error *ls_selection_start(struct ls_state *state)
{
    struct bw_walk_options options = {.types = BW_WALK_ALL};
    bool is_plain;
    cmd_selection_apply(&state->selection, &options);
    state->choice = bw_choice_of(&options, &is_plain);
    state->selects =
        options.types != BW_WALK_ALL || options.has_maxdepth || state->choice.selection;
    if (state->selects && !state->recursive)
        return bw_error_create(BW_ERROR_USAGE, "filters need -R");
    return NULL;
}

/* Keeps the entries for which `keeps` is true, in their order. */
typedef bool keeper(void *context, struct ls_entry *entry);

static void keep(struct ls_listing *listing, keeper *keeps, void *context)
{
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++)
        if (keeps(context, &listing->entries[i]))
            listing->entries[count++] = listing->entries[i];
    listing->count = count;
}

/* A listing that is filtered. */
struct choosing {
    const struct bw_choice *choice;
    const struct ls_listing *listing;
    struct bw_buffer path; /* absolute: of the directory, then of one entry in it */
    size_t above;          /* bytes of the path that are the directory's */
    bool failed;
};

static struct bw_named name_entry(struct choosing *choosing, const struct ls_entry *entry)
{
    struct bw_buffer *path = &choosing->path;
    const char *name = choosing->listing->bytes.data + entry->name;
    const char *end = name + entry->name_length;
    while (name < end && *name == '/') /* a path that was given */
        name++;
    path->length = choosing->above;
    bw_buffer_append(path, name, (size_t)(end - name));
    bw_buffer_append_byte(path, '\0');
    choosing->failed |= path->failed;
    const char *slash = memrchr(name, '/', (size_t)(end - name));
    return (struct bw_named){.path = path->data,
                             .path_length = path->length - !path->failed,
                             .name_length = (size_t)(end - (slash ? slash + 1 : name)),
                             .number = entry->place.inode,
                             .type = bw_known_type(entry->place.type)};
}

static bool is_not_excluded(void *context, struct ls_entry *entry)
{
    struct choosing *choosing = context;
    const struct bw_named named = name_entry(choosing, entry);
    return !entry->is_dots && !choosing->failed && !bw_choice_excludes(choosing->choice, &named);
}

static bool has_name(void *context, struct ls_entry *entry)
{
    struct choosing *choosing = context;
    const struct bw_named named = name_entry(choosing, entry);
    return !choosing->failed && bw_choice_lists(choosing->choice, &named);
}

static bool has_inode(void *context, struct ls_entry *entry)
{
    const struct choosing *choosing = context;
    const struct bw_walked_file file = {.number = entry->place.inode,
                                        .type = bw_known_type(entry->place.type),
                                        .inode = entry->has_inode ? &entry->inode : NULL};
    return bw_selection_takes_inode(choosing->choice->selection, &file);
}

/* The path that conditions see begins at the top-level subvolume, and ends with a '/'. */
static struct bw_error *set_directory(struct choosing *choosing, const struct cmd_paths *paths,
                                      const char *path)
{
    BW_TRY(cmd_paths_absolute(paths, path, &choosing->path));
    if (!choosing->path.failed && choosing->path.data[choosing->path.length - 1] != '/')
        bw_buffer_append_byte(&choosing->path, '/');
    choosing->above = choosing->path.length;
    return choosing->path.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *ls_listing_exclude(struct ls_listing *listing, const struct cmd_paths *paths,
                                    const struct ls_state *state, const char *path)
{
    struct choosing choosing = {.choice = &state->choice, .listing = listing};
    struct bw_error *error = set_directory(&choosing, paths, path);
    if (!error)
        keep(listing, is_not_excluded, &choosing);
    bw_buffer_free(&choosing.path);
    return error ? error : choosing.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *ls_listing_select(struct ls_listing *listing, struct cmd_paths *paths,
                                   const struct ls_state *state, const char *path)
{
    struct choosing choosing = {.choice = &state->choice, .listing = listing};
    const struct bw_selection *selection = state->choice.selection;
    struct bw_error *error = set_directory(&choosing, paths, path);
    if (!error)
        keep(listing, has_name, &choosing);
    if (!error && !choosing.failed && selection && bw_selection_needs(selection)) {
        error = ls_listing_fill(listing, paths, false);
        keep(listing, has_inode, &choosing);
    }
    bw_buffer_free(&choosing.path);
    return error ? error : choosing.failed ? bw_error_no_memory() : NULL;
}
