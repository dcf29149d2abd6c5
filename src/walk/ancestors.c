/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows references of inodes upwards until a directory with a known number is met, then adds the
 * directories below it. */
#include "walk/ancestors.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* Longer paths are not entered, and every name has at least one byte. */
enum { MOST_STEPS = BW_LONGEST_PATH / 2 };

/* A directory, and its name in the next one. */
struct bw_ancestor {
    uint64_t inode;
    struct bw_parent_step up;
};

void bw_ancestors_clear(struct bw_ancestors *ancestors, const struct bw_task_scope *scope)
{
    bw_map_clear(&ancestors->numbers);
    ancestors->first = ancestors->end = 0;
    ancestors->files = NULL;
    ancestors->path_directory = BW_NO_DIRECTORY;
    const struct bw_tree_reader reader = bw_fs_name_reader(scope->fs);
    if (ancestors->has_finder)
        bw_leaf_finder_set_tree(&ancestors->finder, scope->tree);
    else
        bw_leaf_finder_init(&ancestors->finder, &reader, scope->tree);
    ancestors->has_finder = true;
}

void bw_ancestors_free(struct bw_ancestors *ancestors)
{
    bw_map_free(&ancestors->numbers);
    bw_buffer_free(&ancestors->path);
    bw_error_free(bw_item_range_end(&ancestors->references, NULL));
    if (ancestors->has_finder)
        bw_leaf_finder_free(&ancestors->finder);
    free(ancestors->steps);
}

struct bw_error *bw_ancestors_put(struct bw_ancestors *ancestors, uint64_t inode, uint32_t number)
{
    return bw_map_put(&ancestors->numbers, inode, number) ? NULL : bw_error_no_memory();
}

/* The reference of an inode is often in the same leaf as its entries. */
static bool step_in_leaf(const struct bw_node *leaf, uint64_t inode, struct bw_parent_step *step)
{
    const struct bw_key last = {inode, BW_INODE_REF, UINT64_MAX};
    const uint32_t behind = leaf ? bw_node_count_until(leaf, &last) : 0;
    struct bw_item item;
    struct bw_inode_ref ref;
    if (!behind || !bw_leaf_item(leaf, behind - 1, &item) || item.key.objectid != inode ||
        item.key.type != BW_INODE_REF)
        return false;
    struct bw_cursor cursor = bw_cursor_of(&item);
    if (!bw_inode_ref_next(&cursor, &item.key, &ref) ||
        !bw_name_is_valid(ref.name, ref.name_length))
        return false;
    step->parent = ref.parent;
    step->index = ref.index;
    step->name_length = ref.name_length;
    memcpy(step->name, ref.name, ref.name_length);
    return true;
}

/* Finds the parent of a directory; false if it cannot be found. */
static struct bw_error *step_up(struct bw_ancestors *ancestors, const struct bw_task_scope *scope,
                                uint64_t inode, const struct bw_node *leaf,
                                struct bw_parent_step *step, bool *found)
{
    *found = step_in_leaf(leaf, inode, step);
    if (*found)
        return NULL;
    struct bw_error *error =
        bw_inode_step_up_next(scope->fs, scope->tree, &ancestors->references, inode, step);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    *found = !error;
    bw_error_free(error);
    return NULL;
}

/* The number of a directory that is known, or has no parent below the start. */
static bool is_known(const struct bw_ancestors *ancestors, const struct bw_task_scope *scope,
                     uint64_t inode, uint32_t *number)
{
    *number = bw_map_get(&ancestors->numbers, inode);
    if (*number != UINT32_MAX)
        return true;
    if (inode == bw_directories_get(scope->directories, 0).inode)
        *number = 0;
    else if (inode <= BW_SUBVOLUME_ROOT_INODE)
        *number = BW_NOT_ENTERED;
    return *number != UINT32_MAX;
}

/* Follows references up to a directory whose number is known. The directories on the way count as
 * unresolved until they have numbers, which ends a circle. */
static struct bw_error *climb_to_known(struct bw_ancestors *ancestors,
                                       const struct bw_task_scope *scope, uint64_t inode,
                                       const struct bw_node *leaf, size_t *count, uint32_t *number)
{
    bool found = true;
    for (*count = 0; !is_known(ancestors, scope, inode, number); ++*count) {
        *number = *count < MOST_STEPS ? BW_UNRESOLVED : BW_NOT_ENTERED;
        if (!BW_ARRAY_RESERVE(ancestors->steps, *count, ancestors->capacity))
            return bw_error_no_memory();
        struct bw_ancestor *step = &ancestors->steps[*count];
        step->inode = inode;
        BW_TRY(bw_ancestors_put(ancestors, inode, *number));
        if (*count < MOST_STEPS)
            BW_TRY(step_up(ancestors, scope, inode, *count ? NULL : leaf, &step->up, &found));
        if (*count == MOST_STEPS || !found)
            return NULL;
        inode = step->up.parent;
    }
    return NULL;
}

/* Moves the path to a directory below the one whose path is set; false if it is elsewhere. */
static bool extend_path(struct bw_ancestors *ancestors, const struct bw_packed *found,
                        uint32_t directory)
{
    if (!(directory & BW_FOUND_LOCAL))
        return false;
    const struct bw_found_directory below =
        bw_found_directory_get(found, directory & ~BW_FOUND_LOCAL);
    if (below.parent != ancestors->path_directory)
        return false;
    bw_buffer_append(&ancestors->path, below.name, below.name_length);
    bw_buffer_append_byte(&ancestors->path, '/');
    ancestors->depth++;
    return true;
}

/* Sets the path to the path of a directory, below which others are added. For a subdirectory, it is
 * only extended: if thousands of directories are nested, making it again for each takes long. */
static struct bw_error *set_path(struct bw_ancestors *ancestors, const struct bw_task_scope *scope,
                                 const struct bw_packed *found, uint32_t directory)
{
    struct bw_buffer *path = &ancestors->path;
    if (directory != ancestors->path_directory && !extend_path(ancestors, found, directory)) {
        path->length = 0;
        bw_buffer_append(path, scope->prefix, scope->prefix_length);
        bw_found_directory_path(scope->directories, found, directory, path);
        ancestors->depth = bw_choice_depth(scope->choice, path->data, path->length);
    }
    ancestors->path_directory = directory;
    return path->failed ? bw_error_no_memory() : NULL;
}

/* Whether a walk enters a directory below the path. */
static struct bw_error *is_entered(struct bw_ancestors *ancestors,
                                   const struct bw_task_scope *scope,
                                   const struct bw_ancestor *step, bool *enters)
{
    struct bw_buffer *path = &ancestors->path;
    const size_t length = path->length;
    *enters = bw_choice_enters(scope->choice, ancestors->depth + 1) &&
              length + step->up.name_length < BW_LONGEST_PATH;
    if (!*enters || !scope->choice->selection)
        return NULL;
    bw_buffer_append(path, step->up.name, step->up.name_length);
    bw_buffer_append_byte(path, '\0');
    path->length = length;
    if (path->failed)
        return bw_error_no_memory();
    const struct bw_named named = {path->data, length + step->up.name_length, step->up.name_length,
                                   step->inode, BW_FILE_DIRECTORY};
    *enters = !bw_selection_excludes(scope->choice->selection, &named);
    return NULL;
}

/* Adds a directory below another one, whose path is set. */
static struct bw_error *add_below(struct bw_ancestors *ancestors, const struct bw_task_scope *scope,
                                  struct bw_packed *found, const struct bw_ancestor *step,
                                  uint32_t parent)
{
    const struct bw_found_directory directory = {.inode = step->inode,
                                                 .parent = parent,
                                                 .walked = true,
                                                 .name = step->up.name,
                                                 .name_length = (uint8_t)step->up.name_length};
    uint32_t number = BW_NOT_ENTERED;
    bool enters;
    BW_TRY(is_entered(ancestors, scope, step, &enters));
    if (enters)
        number = bw_found_directory_add(found, &directory);
    return number == BW_NO_DIRECTORY ? bw_error_no_memory()
                                     : bw_ancestors_put(ancestors, step->inode, number);
}

/* Handles an entry in the leaf that contains the entry of the directory `sought`. Another directory
 * that counts as unresolved remains so: some of its entries may have been passed over. */
static struct bw_error *add_entry(struct bw_ancestors *ancestors, const struct bw_task_scope *scope,
                                  struct bw_packed *found, const struct bw_dir_entry *entry,
                                  uint64_t sought, uint32_t parent)
{
    struct bw_ancestor step = {.inode = entry->location.objectid,
                               .up = {.name_length = entry->name_length}};
    if (entry->type != BW_FILE_DIRECTORY && ancestors->files)
        bw_known_files_add(ancestors->files, step.inode);
    const uint32_t known = bw_map_get(&ancestors->numbers, step.inode);
    if (entry->type != BW_FILE_DIRECTORY || known < BW_UNRESOLVED ||
        (known != UINT32_MAX && step.inode != sought))
        return NULL;
    memcpy(step.up.name, entry->name, entry->name_length);
    return add_below(ancestors, scope, found, &step, parent);
}

/* Adds the directories of the parent, whose entries are in a leaf and whose inodes are needed. Old
 * entries in an adopted leaf must not decide where other directories are. */
static struct bw_error *add_entries(struct bw_ancestors *ancestors,
                                    const struct bw_task_scope *scope, struct bw_packed *found,
                                    const struct bw_ancestor *step, uint32_t parent)
{
    const struct bw_node *leaf = &ancestors->finder.leaf;
    const struct bw_key first = {step->up.parent, BW_DIR_INDEX, 0};
    const bool is_adopted = bw_leaf_is_adopted(&ancestors->finder);
    struct bw_dir_entry entry;
    struct bw_item item;
    uint32_t slot = bw_node_count_until(leaf, &first);
    while (bw_leaf_next(leaf, &slot, &item) && item.key.objectid == step->up.parent &&
           item.key.type == BW_DIR_INDEX) {
        struct bw_cursor cursor = bw_cursor_of(&item);
        if (!bw_dir_entry_next(&cursor, &entry) || entry.location.type != BW_INODE_ITEM)
            continue;
        const uint64_t inode = entry.location.objectid;
        const bool is_needed = inode >= ancestors->first && inode < ancestors->end && !is_adopted;
        if ((inode == step->inode || (is_needed && inode > BW_SUBVOLUME_ROOT_INODE)) &&
            bw_name_is_valid(entry.name, entry.name_length))
            BW_TRY(add_entry(ancestors, scope, found, &entry, step->inode, parent));
    }
    return NULL;
}

/* Gives a directory its number, below a parent that has one. */
static struct bw_error *set_number(struct bw_ancestors *ancestors,
                                   const struct bw_task_scope *scope, struct bw_packed *found,
                                   const struct bw_ancestor *step, uint32_t *number)
{
    const struct bw_key key = {step->up.parent, BW_DIR_INDEX, step->up.index};
    BW_TRY(set_path(ancestors, scope, found, *number));
    BW_TRY(bw_find_leaf(&ancestors->finder, &key));
    BW_TRY(ancestors->finder.lost ? add_below(ancestors, scope, found, step, *number)
                                  : add_entries(ancestors, scope, found, step, *number));
    *number = bw_map_get(&ancestors->numbers, step->inode);
    return NULL;
}

struct bw_error *bw_ancestors_find(struct bw_ancestors *ancestors,
                                   const struct bw_task_scope *scope, struct bw_packed *found,
                                   uint64_t inode, const struct bw_node *leaf, uint32_t *number)
{
    size_t count;
    BW_TRY(climb_to_known(ancestors, scope, inode, leaf, &count, number));
    while (count) {
        const struct bw_ancestor *step = &ancestors->steps[--count];
        if (*number < BW_UNRESOLVED)
            BW_TRY(set_number(ancestors, scope, found, step, number));
        else
            BW_TRY(bw_ancestors_put(ancestors, step->inode, *number));
    }
    return NULL;
}
