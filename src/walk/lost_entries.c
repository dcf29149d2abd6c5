/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing what lost blocks held, as far as the rest of the tree has it.
 *
 * Leaves below lost nodes come first: they hold whole directories, in order, and are walked like
 * others. Then names: each name of a directory is also stored with its inode, so most names whose
 * directory entries were lost with a block are in the rest of the tree (recovery/lost_names.c). A
 * directory among them is added to the table, with those above it, and walked; a file is listed. A
 * name waits while the path of its directory is not known. The root tree has the names of
 * subvolumes.
 *
 * The search may find more lost blocks. It is repeated for their contents until nothing new is
 * lost.
 *
 * If nothing is lost, inodes can still have entries although no entry calls them a directory: the
 * type in the entry is wrong. The walk meets them among the entries of other directories.
 */
#include "walk/walk.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* A name whose directory was not known when it was found. The bytes are in the recovery's buffer.
 */
struct waiting_name {
    struct bw_lost_name name; /* but for the bytes */
    size_t offset;
};

BW_VECTOR(waiting_names, struct waiting_name);

struct recovery {
    struct bw_subvolume_walk *walk;
    struct bw_lost_names names;
    struct bw_key_map unreachable; /* directories without a known path to the top */
    struct bw_key_map listed;      /* hashes of directory and name of recovered entries */
    struct waiting_names waiting;
    struct bw_buffer waiting_bytes;
    uint64_t index; /* of the name that is being restored; 0: unknown */
};

static uint32_t wave_of(void *context, uint64_t directory)
{
    const struct bw_directory_table *table = &((struct recovery *)context)->walk->directories;
    uint32_t index = bw_directories_find(table, directory);
    if (index != BW_NO_DIRECTORY)
        return bw_directories_get(table, index).wave;
    return bw_directories_is_closed(table, directory) ? 0 : UINT32_MAX;
}

/* The outcome for a name. */
enum { LISTED = 1, LEFT_OUT = 2 };

/* Lists a name, unless that was done before: a leaf that only a lenient scan can read may contain
 * it again. `*included` is false if it is excluded, with everything below it. */
static struct bw_error *list_once(struct recovery *recovery, uint32_t directory,
                                  const struct bw_collected *what, const void *name,
                                  size_t name_length, bool *included)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    uint64_t hash = bw_fs_name_hash(
        walk->fs, bw_directories_get(&walk->directories, directory).inode, name, name_length);
    uint32_t state = bw_key_map_get(&recovery->listed, hash, UINT32_MAX);
    *included = state == LISTED;
    if (state != UINT32_MAX)
        return NULL;
    BW_TRY(bw_subvolume_walk_list(walk, directory, what, name, name_length, included));
    BW_TRY(bw_key_map_put(&recovery->listed, hash, *included ? LISTED : LEFT_OUT));
    return NULL;
}

/* Lists a directory, unless that was done before, and adds it to the table; `*index` is
 * BW_NO_DIRECTORY if it is excluded, or too deep. */
static struct bw_error *restore_directory(struct recovery *recovery, uint64_t inode,
                                          uint32_t parent, const void *name, size_t name_length,
                                          uint32_t *index)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    bool included;
    if (bw_directories_is_closed(&recovery->walk->directories, inode))
        return bw_directories_reopen(&recovery->walk->directories, inode, parent, name, name_length,
                                     index);
    *index = BW_NO_DIRECTORY;
    BW_TRY(list_once(recovery, parent, &what, name, name_length, &included));
    if (!included || !bw_subvolume_walk_enters(recovery->walk, parent))
        return NULL;
    BW_TRY(bw_key_map_put(&recovery->unreachable, inode, 0));
    return bw_waves_add_directory(recovery->walk, inode, parent, name, name_length, index);
}

/* A directory above, and its name in the next one. */
struct ancestor {
    uint64_t inode;
    struct bw_parent_step up;
};

BW_VECTOR(ancestors, struct ancestor);

/* The table index of a directory, which is added with all the unknown ones above it;
 * BW_NO_DIRECTORY if that cannot be done. Directories are marked as unreachable on the way up, and
 * unmarked when they are restored: a circle ends at its own mark. */
static struct bw_error *ensure_directory(struct recovery *recovery, uint64_t inode, uint32_t *index)
{
    const struct bw_subvolume_walk *walk = recovery->walk;
    BW_SCOPED(ancestors) struct ancestors above = {0};
    while ((*index = bw_directories_find(&walk->directories, inode)) == BW_NO_DIRECTORY) {
        if (inode <= BW_SUBVOLUME_ROOT_INODE ||
            bw_key_map_get(&recovery->unreachable, inode, UINT32_MAX) == 1)
            return NULL;
        BW_TRY(bw_key_map_put(&recovery->unreachable, inode, 1));
        BW_TRY(ancestors_push(&above, (struct ancestor){.inode = inode}));
        struct bw_parent_step *up = &above.items[above.count - 1].up;
        struct bw_error *error = bw_inode_step_up(walk->fs, walk->scope.tree, inode, up);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_error_free(error);
        if (error)
            return NULL;
        inode = up->parent;
    }
    while (*index != BW_NO_DIRECTORY && above.count) {
        const struct ancestor *ancestor = &above.items[--above.count];
        recovery->index = ancestor->up.index;
        BW_TRY(restore_directory(recovery, ancestor->inode, *index, ancestor->up.name,
                                 ancestor->up.name_length, index));
    }
    return NULL;
}

/* Brings back a name: a directory is walked like any other, a file is listed. */
static struct bw_error *restore_name(void *context, const struct bw_lost_name *found)
{
    struct recovery *recovery = context;
    struct bw_subvolume_walk *walk = recovery->walk;
    uint32_t directory, index;
    bool included;
    if (!bw_name_is_valid(found->name, found->name_length) ||
        found->inode <= BW_SUBVOLUME_ROOT_INODE ||
        (found->type != BW_FILE_DIRECTORY && !bw_subvolume_walk_lists(walk, found->type)))
        return NULL;
    recovery->index = 0;
    BW_TRY(ensure_directory(recovery, found->directory, &directory));
    if (directory == BW_NO_DIRECTORY) {
        /* It may become known when others that were brought back are walked, now or later. */
        const size_t offset = recovery->waiting_bytes.length;
        bw_buffer_append(&recovery->waiting_bytes, found->name, found->name_length);
        BW_TRY(bw_buffer_error(&recovery->waiting_bytes));
        return waiting_names_push(&recovery->waiting, (struct waiting_name){*found, offset});
    }
    recovery->index = found->index;
    if (bw_directories_knows(&walk->directories, found->inode) &&
        (found->type == BW_FILE_DIRECTORY || found->type == BW_FILE_UNKNOWN))
        return NULL;
    if (found->type == BW_FILE_DIRECTORY)
        return restore_directory(recovery, found->inode, directory, found->name, found->name_length,
                                 &index);
    const struct bw_collected what = {.number = found->inode, .type = found->type};
    return list_once(recovery, directory, &what, found->name, found->name_length, &included);
}

static struct bw_error *on_lost_range(void *context, const struct bw_lost_range *range)
{
    return bw_waves_report_lost(((struct recovery *)context)->walk, range);
}

/* Adds the subvolumes whose entries were lost and whose directories are known. */
static struct bw_error *recover_subvolumes(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_subvolume_table *table = &walk->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        if (subvolume->deleted || subvolume->parent != walk->scope.tree->id ||
            !bw_lost_names_has(&recovery->names, subvolume->directory, subvolume->index))
            continue;
        const char *name = bw_subvolume_name(table, subvolume);
        const uint64_t hash =
            bw_fs_name_hash(walk->fs, subvolume->directory, name, subvolume->name_length);
        uint32_t directory;
        if (bw_key_map_has(&recovery->listed, hash))
            continue;
        BW_TRY(ensure_directory(recovery, subvolume->directory, &directory));
        if (directory == BW_NO_DIRECTORY)
            continue;
        BW_TRY(bw_key_map_put(&recovery->listed, hash, LISTED));
        BW_TRY(bw_waves_add_subvolume(walk, subvolume->tree.id, directory, name,
                                      subvolume->name_length));
    }
    return NULL;
}

/* A round may find that more is lost. Each block is lost only once, so that ends; hostile keys get
 * no more rounds than this. */
enum { MAX_ROUNDS = 8 };

/* Recovers names in rounds, each for the blocks that were lost before it. */
static struct bw_error *recover_names(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    struct bw_lost_names *names = &recovery->names;
    struct waiting_names *waiting = &recovery->waiting;
    for (unsigned round = 0; round < MAX_ROUNDS && !bw_output_stopped(&walk->output); round++) {
        bw_lost_list_free(&names->handled);
        names->handled = names->lost;
        names->lost = (struct bw_lost_list){0};
        BW_TRY(bw_lost_list_make(&walk->lost, 0, &names->lost));
        if (bw_lost_lists_equal(&names->lost, &names->handled))
            break;
        BW_TRY(bw_lost_names_find(names));

        /* Each directory that becomes known may be that of others, and of names that wait. */
        for (bool again = true; again;) {
            const size_t known = walk->directories.count;
            BW_TRY(recover_subvolumes(recovery));
            BW_TRY(bw_waves_run(walk));
            const size_t count = waiting->count;
            size_t kept = 0;
            for (size_t i = 0; i < count; i++) {
                struct waiting_name name = waiting->items[i];
                const uint64_t directory = name.name.directory;
                if (bw_directories_find(&walk->directories, directory) == BW_NO_DIRECTORY) {
                    waiting->items[kept++] = name;
                    continue;
                }
                name.name.name = (const uint8_t *)recovery->waiting_bytes.data + name.offset;
                BW_TRY(restore_name(recovery, &name.name));
            }
            waiting->count = kept;
            again = kept < count || walk->directories.count > known;
        }
    }
    return NULL;
}

/* Walks the directories that no entry calls one. Most of those below them have good entries, and
 * wait until these are walked. */
static struct bw_error *enter_unclaimed(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_key_set *unclaimed = &walk->unclaimed;
    BW_SCOPED(bw_numbers) struct bw_numbers inodes = {0};
    for (unsigned round = 0; round < MAX_ROUNDS && !bw_output_stopped(&walk->output); round++) {
        uint64_t inode;
        inodes.count = 0;
        for (size_t position = 0; bw_key_set_next(unclaimed, &position, &inode);)
            if (!bw_directories_knows(&walk->directories, inode))
                BW_TRY(bw_numbers_push(&inodes, inode));
        if (!inodes.count)
            break;
        bw_numbers_sort(&inodes, bw_compare_first);
        for (size_t i = 0; i < inodes.count; i++) {
            struct bw_parent_step up = {0};
            uint32_t index;
            inode = inodes.items[i];
            if (!round)
                bw_error_free(bw_inode_step_up(walk->fs, walk->scope.tree, inode, &up));
            if (bw_key_set_has(unclaimed, up.parent))
                continue;
            bw_scope_report(&walk->scope, "directory inode", inode,
                            "no entry says that it is a directory");
            BW_TRY(ensure_directory(recovery, inode, &index));
        }
        BW_TRY(bw_waves_run(walk));
    }
    return NULL;
}

/* Walks the leaves below lost nodes. The walk has read only the nodes it needed, so the others are
 * looked at now. */
static struct bw_error *adopt_leaves(struct bw_subvolume_walk *walk)
{
    struct bw_lost_ranges nodes = {0};
    struct bw_error *error = bw_find_lost_nodes(walk->fs, walk->scope.tree, walk->wave, &nodes);
    for (size_t i = 0; i < nodes.count && !error; i++)
        error = bw_waves_report_lost(walk, &nodes.items[i]);
    free(nodes.items);
    BW_TRY(error);
    BW_TRY(bw_adopt_blocks(walk->fs, walk->scope.tree, &walk->lost, 0, &walk->adopted));
    if (!walk->adopted.leaves.count)
        return NULL;
    BW_TRY(bw_waves_walk_adopted(walk));
    return bw_waves_run(walk);
}

struct bw_error *bw_lost_entries_list(struct bw_subvolume_walk *walk)
{
    const bool is_lost = walk->lost.count;
    if (!is_lost &&
        (!walk->unclaimed.count || walk->has_omitted || bw_output_stopped(&walk->output)))
        return NULL;
    struct recovery recovery = {.walk = walk};
    recovery.names = (struct bw_lost_names){.fs = walk->fs,
                                            .tree = walk->scope.tree,
                                            .adopted = &walk->adopted,
                                            .wave = &walk->wave,
                                            .wave_of = wave_of,
                                            .visit = restore_name,
                                            .on_loss = on_lost_range,
                                            .context = &recovery};
    struct bw_error *error = is_lost ? adopt_leaves(walk) : enter_unclaimed(&recovery);
    if (!error)
        error = recover_names(&recovery);
    walk->summary->lost_blocks += walk->lost_blocks.count;
    bw_lost_list_free(&recovery.names.lost);
    bw_lost_list_free(&recovery.names.handled);
    bw_lost_names_free(&recovery.names);
    bw_key_map_free(&recovery.unreachable);
    bw_key_map_free(&recovery.listed);
    waiting_names_free(&recovery.waiting);
    bw_buffer_free(&recovery.waiting_bytes);
    return error;
}
