/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places each subvolume below its parent, which is placed first. */
#include "walk/placement.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"

struct bw_error *bw_placement_create(struct bw_placement *placement, struct bw_subvolume_walk *walk,
                                     const struct bw_walk_top *start)
{
    *placement = (struct bw_placement){.fs = walk->fs, .walk = walk, .start = *start};
    placement->items = calloc(walk->fs->subvolumes.count + 1, sizeof *placement->items);
    return placement->items ? NULL : bw_error_no_memory();
}

void bw_placement_free(struct bw_placement *placement)
{
    free(placement->items);
    bw_buffer_free(&placement->paths);
    bw_directories_free(&placement->table);
    bw_packed_free(&placement->found);
    bw_ancestors_free(&placement->ancestors);
}

static struct bw_placed *placed_of(struct bw_placement *placement,
                                   const struct bw_subvolume *subvolume)
{
    return &placement->items[subvolume - placement->fs->subvolumes.items];
}

/* The top directory of a subvolume: of the start, the directory where the walk begins. */
static void get_top(struct bw_placement *placement, const struct bw_subvolume *subvolume,
                    struct bw_walk_top *top)
{
    const struct bw_placed *place = placed_of(placement, subvolume);
    *top = placement->start;
    if (subvolume == placement->start.subvolume)
        return;
    top->subvolume = subvolume;
    top->inode = BW_SUBVOLUME_ROOT_INODE;
    top->prefix = placement->paths.data + place->prefix;
    top->prefix_length = place->length;
}

/* Finds the directory in the parent that contains the entry. */
static struct bw_error *find_directory(struct bw_placement *placement,
                                       const struct bw_task_scope *scope, uint64_t top,
                                       uint64_t inode, uint32_t *number)
{
    const unsigned depth = bw_choice_depth(scope->choice, scope->prefix, scope->prefix_length);
    const struct bw_subvolume *parent = bw_subvolume_by_id(placement->fs, scope->tree->id);
    *number = BW_NOT_ENTERED;
    if (!bw_choice_enters(scope->choice, depth))
        return NULL;
    if (parent != placement->parent) {
        placement->parent = parent;
        bw_ancestors_clear(&placement->ancestors, scope);
        bw_packed_clear(&placement->found);
        BW_TRY(bw_directories_reset(&placement->table, top));
    }
    return bw_ancestors_find(&placement->ancestors, scope, &placement->found, inode, NULL, number);
}

/* Appends the path of a subvolume to the paths; `*length` is 0 if a walk would not list it. */
static struct bw_error *put_path(struct bw_placement *placement, const struct bw_task_scope *scope,
                                 uint32_t directory, const struct bw_subvolume *subvolume,
                                 size_t *length)
{
    const char *name = bw_subvolume_name(&placement->fs->subvolumes, subvolume);
    struct bw_buffer *paths = &placement->paths;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, scope->prefix, scope->prefix_length);
    bw_found_directory_path(scope->directories, &placement->found, directory, &path);
    bw_buffer_append(&path, name, subvolume->name_length);
    bw_buffer_append_byte(&path, '\0');
    if (path.failed)
        return bw_error_no_memory();
    const struct bw_named named = {path.data, path.length - 1, subvolume->name_length,
                                   subvolume->tree.id, BW_FILE_DIRECTORY};
    *length = 0;
    if (path.length > BW_LONGEST_PATH || bw_selection_excludes(scope->choice->selection, &named))
        return NULL;
    *length = path.length;
    path.data[path.length - 1] = '/';
    bw_buffer_append(paths, path.data, path.length);
    return paths->failed ? bw_error_no_memory() : NULL;
}

static void report_unresolved(const struct bw_placement *placement,
                              const struct bw_subvolume *subvolume)
{
    bw_fs_report_once(placement->fs,
                      bw_error_create(BW_ERROR_CORRUPT,
                                      "subvolume %" PRIu64
                                      " is omitted: the directory that contains it has no path",
                                      subvolume->tree.id));
}

/* Places the subvolumes that a walk has found. */
static struct bw_error *place_found(struct bw_placement *placement)
{
    const struct bw_subvolume_entries *entries = &placement->walk->found;
    for (size_t i = 0; i < entries->count; i++) {
        const struct bw_subvolume_entry *entry = &entries->items[i];
        struct bw_placed *place =
            placed_of(placement, bw_subvolume_by_id(placement->fs, entry->id));
        if (place->state == BW_PLACE_FOUND)
            continue;
        place->state = BW_PLACE_FOUND;
        place->prefix = placement->paths.length;
        place->length = entry->path_length;
        bw_buffer_append(&placement->paths, entries->paths.data + entry->path_offset,
                         entry->path_length);
    }
    return placement->paths.failed ? bw_error_no_memory() : NULL;
}

/* Searches the parent of a subvolume, where a reference is lost: maybe only the reference. A parent
 * is searched once, for all subvolumes in it. */
static struct bw_error *place_by_search(struct bw_placement *placement,
                                        const struct bw_walk_top *parent,
                                        const struct bw_subvolume *subvolume)
{
    struct bw_subvolume_walk *walk = placement->walk;
    struct bw_walk_summary *const summary = walk->summary;
    struct bw_walk_summary unused = {0};
    struct bw_walk_top top = *parent;
    struct bw_error *error = NULL;
    top.silent = true;
    if (!placed_of(placement, parent->subvolume)->searched) {
        placed_of(placement, parent->subvolume)->searched = true;
        walk->summary = &unused;
        error = bw_subvolume_walk_run(walk, &top);
        walk->summary = summary;
    }
    if (!error)
        error = place_found(placement);
    walk->found.count = walk->found.paths.length = 0;
    if (!error && placed_of(placement, subvolume)->state != BW_PLACE_FOUND)
        report_unresolved(placement, subvolume);
    return error;
}

/* Places a subvolume below its parent, which has a place. */
static struct bw_error *place_below(struct bw_placement *placement,
                                    const struct bw_subvolume *subvolume,
                                    const struct bw_subvolume *parent)
{
    struct bw_placed *place = placed_of(placement, subvolume);
    const size_t offset = placement->paths.length;
    struct bw_walk_top top;
    uint32_t number;
    size_t length = 0;
    get_top(placement, parent, &top);
    const struct bw_task_scope scope = {.fs = placement->fs,
                                        .tree = &parent->tree,
                                        .directories = &placement->table,
                                        .prefix = top.prefix,
                                        .prefix_length = top.prefix_length,
                                        .choice = &placement->walk->choice};
    BW_TRY(find_directory(placement, &scope, top.inode, subvolume->directory, &number));
    if (number == BW_UNRESOLVED)
        return place_by_search(placement, &top, subvolume);
    if (number < BW_UNRESOLVED)
        BW_TRY(put_path(placement, &scope, number, subvolume, &length));
    place->state = length ? BW_PLACE_FOUND : BW_PLACE_NONE;
    place->prefix = offset;
    place->length = length;
    return NULL;
}

/* The subvolumes from one without a known place up to one with such a place. */
struct chain {
    const struct bw_subvolume **items;
    size_t count, capacity;
};

static struct bw_error *follow_parents(struct bw_placement *placement,
                                       const struct bw_subvolume *subvolume, struct chain *chain)
{
    while (subvolume && subvolume != placement->start.subvolume &&
           placed_of(placement, subvolume)->state == BW_PLACE_UNKNOWN) {
        placed_of(placement, subvolume)->state = BW_PLACE_NONE; /* ends a circle */
        if (!BW_ARRAY_RESERVE(chain->items, chain->count, chain->capacity))
            return bw_error_no_memory();
        chain->items[chain->count++] = subvolume;
        subvolume = subvolume->deleted || !subvolume->parent
                        ? NULL
                        : bw_subvolume_by_id(placement->fs, subvolume->parent);
    }
    return NULL;
}

static bool has_place(struct bw_placement *placement, const struct bw_subvolume *subvolume)
{
    return subvolume && (subvolume == placement->start.subvolume ||
                         placed_of(placement, subvolume)->state == BW_PLACE_FOUND);
}

struct bw_error *bw_placement_find(struct bw_placement *placement,
                                   const struct bw_subvolume *subvolume, struct bw_walk_top *top,
                                   bool *found)
{
    struct chain chain = {0};
    struct bw_error *error = follow_parents(placement, subvolume, &chain);
    while (chain.count && !error) {
        const struct bw_subvolume *below = chain.items[--chain.count];
        const struct bw_subvolume *parent =
            below->deleted ? NULL : bw_subvolume_by_id(placement->fs, below->parent);
        if (has_place(placement, parent))
            error = place_below(placement, below, parent);
    }
    free(chain.items);
    *found = !error && has_place(placement, subvolume);
    if (*found)
        get_top(placement, subvolume, top);
    return error;
}
