/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recovery in a walk. Every name of a directory is also kept with the inode it belongs to, so names
 * whose directory entries were lost with a block can mostly be found in the rest of the tree
 * (recovery/lost_names.c). They are listed from here; directories among them are walked like any
 * other. The search may come to lost blocks that the walk had not needed; then it is repeated for
 * what those held.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/subvolume_walk.h"

/* A name whose directory was not known when it was found. The bytes are in the recovery's buffer.
 */
struct waiting_name {
    struct bw_lost_name name; /* but for the bytes */
    size_t offset;
};

struct recovery {
    struct bw_subvolume_walk *walk;
    struct bw_lost_names names;
    struct bw_map unreachable; /* directories whose way up is lost */
    struct bw_map listed;      /* hashes of directory and name of what was brought back */
    struct waiting_name *waiting;
    size_t waiting_count, waiting_capacity;
    struct bw_buffer waiting_bytes;
};

static uint32_t wave_of(void *context, uint64_t directory)
{
    const struct bw_directory_table *table = &((struct recovery *)context)->walk->directories;
    uint32_t index = bw_directories_find(table, directory);
    return index == BW_NO_DIRECTORY ? UINT32_MAX : table->items[index].wave;
}

/* One directory on the way up, and its name in the next. */
struct step {
    uint64_t inode;
    struct bw_parent_step up;
};

struct way_up {
    struct step *steps;
    size_t count, capacity;
};

/* Goes up from an unknown directory to one in the table; `*index` is BW_NO_DIRECTORY if there is no
 * way. Directories are marked on the way, and unmarked when it turns out to lead to the top: a
 * circle meets its own mark. */
static struct bw_error *climb(struct recovery *recovery, uint64_t inode, struct way_up *way,
                              uint32_t *index)
{
    const struct bw_subvolume_walk *walk = recovery->walk;
    while ((*index = bw_directories_find(&walk->directories, inode)) == BW_NO_DIRECTORY) {
        if (inode <= BW_SUBVOLUME_ROOT_INODE || bw_map_get(&recovery->unreachable, inode) == 1)
            return NULL;
        if (!bw_map_put(&recovery->unreachable, inode, 1) ||
            !BW_ARRAY_RESERVE(way->steps, way->count, way->capacity))
            return bw_error_no_memory();
        struct step *step = &way->steps[way->count];
        step->inode = inode;
        struct bw_error *error = bw_inode_step_up(walk->fs, walk->scope.tree, inode, &step->up);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_error_free(error);
        if (error)
            return NULL;
        inode = step->up.parent;
        way->count++;
    }
    return NULL;
}

/* What became of a name. */
enum { LISTED = 1, LEFT_OUT = 2 };

/* Lists a name, unless that was done before: a leaf that only a lenient scan can read may hold it
 * once more. `*taken` is false if it is left out, with all that is below it. */
static struct bw_error *list_once(struct recovery *recovery, uint32_t directory,
                                  const struct bw_collected *what, const void *name,
                                  size_t name_length, bool *taken)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    uint64_t hash =
        bw_fs_name_hash(walk->fs, walk->directories.items[directory].inode, name, name_length);
    uint32_t state = bw_map_get(&recovery->listed, hash);
    *taken = state == LISTED;
    if (state != UINT32_MAX)
        return NULL;
    BW_TRY(bw_subvolume_walk_list(walk, directory, what, name, name_length, taken));
    return bw_map_put(&recovery->listed, hash, *taken ? LISTED : LEFT_OUT) ? NULL
                                                                           : bw_error_no_memory();
}

/* Lists a directory and adds it to the table; `*index` is BW_NO_DIRECTORY if it is left out, or too
 * deep. */
static struct bw_error *add_directory(struct recovery *recovery, uint64_t inode, uint32_t parent,
                                      const void *name, size_t name_length, uint32_t *index)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    bool taken;
    *index = BW_NO_DIRECTORY;
    BW_TRY(list_once(recovery, parent, &what, name, name_length, &taken));
    if (!taken || !bw_subvolume_walk_enters(recovery->walk, parent))
        return NULL;
    if (!bw_map_put(&recovery->unreachable, inode, 0))
        return bw_error_no_memory();
    return bw_subvolume_walk_add(recovery->walk, inode, parent, name, name_length, index);
}

/* The table index of a directory, which is added with all the unknown ones above it;
 * BW_NO_DIRECTORY if that cannot be done. */
static struct bw_error *ensure_directory(struct recovery *recovery, uint64_t inode, uint32_t *index)
{
    struct way_up way = {0};
    struct bw_error *error = climb(recovery, inode, &way, index);
    while (!error && *index != BW_NO_DIRECTORY && way.count) {
        const struct step *step = &way.steps[--way.count];
        error = add_directory(recovery, step->inode, *index, step->up.name, step->up.name_length,
                              index);
    }
    free(way.steps);
    return error;
}

/* A directory may become known when others that were brought back are walked: its names wait. */
static struct bw_error *wait_for_directory(struct recovery *recovery,
                                           const struct bw_lost_name *found)
{
    size_t offset = recovery->waiting_bytes.length;
    bw_buffer_append(&recovery->waiting_bytes, found->name, found->name_length);
    if (recovery->waiting_bytes.failed ||
        !BW_ARRAY_RESERVE(recovery->waiting, recovery->waiting_count, recovery->waiting_capacity))
        return bw_error_no_memory();
    recovery->waiting[recovery->waiting_count++] = (struct waiting_name){*found, offset};
    return NULL;
}

/* Brings back a name: a directory is walked like any other, a file is listed. */
static struct bw_error *bring_back(void *context, const struct bw_lost_name *found)
{
    struct recovery *recovery = context;
    struct bw_subvolume_walk *walk = recovery->walk;
    uint32_t directory, index;
    bool taken;
    if (!bw_name_is_valid(found->name, found->name_length) ||
        found->inode <= BW_SUBVOLUME_ROOT_INODE ||
        (found->type != BW_FILE_DIRECTORY && !bw_subvolume_walk_lists(walk, found->type)))
        return NULL;
    BW_TRY(ensure_directory(recovery, found->directory, &directory));
    if (directory == BW_NO_DIRECTORY)
        return wait_for_directory(recovery, found);
    const bool known = bw_directories_find(&walk->directories, found->inode) != BW_NO_DIRECTORY;
    if (known && (found->type == BW_FILE_DIRECTORY || found->type == BW_FILE_UNKNOWN))
        return NULL;
    if (found->type == BW_FILE_DIRECTORY)
        return add_directory(recovery, found->inode, directory, found->name, found->name_length,
                             &index);
    const struct bw_collected what = {.number = found->inode, .type = found->type};
    return list_once(recovery, directory, &what, found->name, found->name_length, &taken);
}

static struct bw_error *lose(void *context, const struct bw_lost_range *range)
{
    return bw_subvolume_walk_lose(((struct recovery *)context)->walk, range);
}

/* Subvolumes whose entry was lost: the root tree has their names. */
static struct bw_error *recover_subvolumes(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_subvolume_table *table = &walk->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        uint32_t directory;
        if (subvolume->deleted || subvolume->parent != walk->scope.tree->id ||
            !bw_lost_names_has(&recovery->names, subvolume->directory, subvolume->index))
            continue;
        BW_TRY(ensure_directory(recovery, subvolume->directory, &directory));
        if (directory != BW_NO_DIRECTORY)
            BW_TRY(bw_subvolume_walk_add_entry(walk, subvolume->tree.id, directory,
                                               bw_subvolume_name(table, subvolume),
                                               subvolume->name_length));
    }
    return NULL;
}

/* Tries again with names that wait; `*any`: whether one of their directories is known now. */
static struct bw_error *retry_waiting(struct recovery *recovery, bool *any)
{
    size_t kept = 0, count = recovery->waiting_count;
    for (size_t i = 0; i < count; i++) {
        struct waiting_name waiting = recovery->waiting[i];
        if (bw_directories_find(&recovery->walk->directories, waiting.name.directory) ==
            BW_NO_DIRECTORY) {
            recovery->waiting[kept++] = waiting;
            continue;
        }
        waiting.name.name = (const uint8_t *)recovery->waiting_bytes.data + waiting.offset;
        BW_TRY(bring_back(recovery, &waiting.name));
    }
    recovery->waiting_count = kept;
    *any = kept < count;
    return NULL;
}

static struct bw_error *run_round(struct recovery *recovery)
{
    bool again = true;
    recovery->waiting_count = recovery->waiting_bytes.length = 0;
    BW_TRY(bw_lost_names_find(&recovery->names));
    BW_TRY(recover_subvolumes(recovery));
    while (again) {
        BW_TRY(bw_subvolume_walk_waves(recovery->walk));
        BW_TRY(retry_waiting(recovery, &again));
    }
    return NULL;
}

/* A round may find that more is lost. Each block is lost only once, so that ends; hostile keys get
 * no more rounds than this. */
enum { MAX_ROUNDS = 8 };

static struct bw_error *run_rounds(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    struct bw_lost_names *names = &recovery->names;
    for (unsigned round = 0; round < MAX_ROUNDS && !bw_output_stopped(&walk->output); round++) {
        bw_lost_list_free(&names->handled);
        names->handled = names->lost;
        names->lost = (struct bw_lost_list){0};
        BW_TRY(bw_lost_list_make(&walk->lost, 0, &names->lost));
        if (bw_lost_lists_equal(&names->lost, &names->handled))
            break;
        BW_TRY(run_round(recovery));
    }
    return NULL;
}

/* Leaves below lost nodes first: they hold whole directories, in order. The walk has read only the
 * nodes it needed. */
static struct bw_error *adopt(struct bw_subvolume_walk *walk)
{
    struct bw_lost_ranges nodes = {0};
    struct bw_error *error = bw_find_lost_nodes(walk->fs, walk->scope.tree, walk->wave, &nodes);
    for (size_t i = 0; i < nodes.count && !error; i++)
        error = bw_subvolume_walk_lose(walk, &nodes.items[i]);
    free(nodes.items);
    BW_TRY(error);
    BW_TRY(bw_adopt_leaves(walk->fs, walk->scope.tree, &walk->lost, &walk->adopted));
    if (!walk->adopted.count)
        return NULL;
    BW_TRY(bw_subvolume_walk_adopted(walk));
    return bw_subvolume_walk_waves(walk);
}

struct bw_error *bw_recover(struct bw_subvolume_walk *walk)
{
    if (!walk->lost.count)
        return NULL;
    struct recovery recovery = {.walk = walk};
    recovery.names = (struct bw_lost_names){.fs = walk->fs,
                                            .tree = walk->scope.tree,
                                            .adopted = &walk->adopted,
                                            .wave = &walk->wave,
                                            .wave_of = wave_of,
                                            .take = bring_back,
                                            .lose = lose,
                                            .context = &recovery};
    struct bw_error *error = adopt(walk);
    if (!error)
        error = run_rounds(&recovery);
    walk->summary->lost_blocks += walk->lost_blocks.count;
    bw_lost_list_free(&recovery.names.lost);
    bw_lost_list_free(&recovery.names.handled);
    bw_lost_names_free(&recovery.names);
    bw_map_free(&recovery.unreachable);
    bw_map_free(&recovery.listed);
    free(recovery.waiting);
    bw_buffer_free(&recovery.waiting_bytes);
    return error;
}
