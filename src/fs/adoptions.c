/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A list a tree. The nodes of a tree are all read before the extent tree is gone through, so that
 * this is done once, however many of them are lost.
 */
#include "fs/adoptions.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "fs/adopt.h"
#include "fs/damage.h"
#include "fs/fs.h"

/* Does not change any more once it is among the adoptions. */
struct adopted_tree {
    struct bw_fs *fs;
    uint64_t id;
    struct bw_lost_range *lost; /* nodes */
    size_t lost_count, lost_capacity;
    struct bw_adopted adopted;
    bool memory_short;
};

struct bw_adoptions {
    struct bw_fs *fs;
    struct bw_adopter adopter;
    pthread_mutex_t lock;
    struct adopted_tree **trees;
    size_t count, capacity;
};

static void free_tree(struct adopted_tree *tree)
{
    if (!tree)
        return;
    free(tree->lost);
    bw_adopted_free(&tree->adopted);
    free(tree);
}

static void lose(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    struct adopted_tree *tree = context;
    bw_fs_report_lost(tree->fs, pointer->bytenr, error);
    if (BW_ARRAY_RESERVE(tree->lost, tree->lost_count, tree->lost_capacity))
        tree->lost[tree->lost_count++] = bw_lost_range_of(pointer, 0);
    else
        tree->memory_short = true;
}

/* A node right above leaves, which the scan does not read. */
static struct bw_error *try_node(void *context, const struct bw_block_pointer *pointer)
{
    const struct adopted_tree *tree = context;
    if (pointer->expectation.level == 0)
        return NULL;
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&tree->fs->reader, 1);
    struct bw_error *error =
        block ? bw_block_read(&tree->fs->reader, pointer, block) : bw_error_no_memory();
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    lose(context, pointer, error);
    return NULL;
}

static struct bw_error *read_tree(struct adopted_tree *tree, const struct bw_tree *of)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .stop_above_leaves = true, .pointer = try_node,
                                 .lost = lose, .context = tree};
    BW_TRY(bw_tree_scan(&tree->fs->reader, of, &scan));
    if (tree->memory_short)
        return bw_error_no_memory();
    return bw_adopt_leaves(tree->fs, of, tree->lost, tree->lost_count, &tree->adopted);
}

static bool is_adopted(const struct bw_fs *fs, const struct bw_tree *tree)
{
    bool checksums = tree->id == BW_CSUM_TREE && fs->checksum_trees.count == 1; /* one of a name */
    return checksums || tree->id == fs->stripe_tree.id ||
           bw_subvolume_find(&fs->subvolumes, tree->id);
}

/* Under the lock. */
static struct bw_error *find_tree(struct bw_adoptions *adoptions, const struct bw_tree *of,
                                  const struct adopted_tree **result)
{
    for (size_t i = 0; i < adoptions->count; i++)
        if (adoptions->trees[i]->id == of->id) {
            *result = adoptions->trees[i];
            return NULL;
        }
    struct adopted_tree *tree = calloc(1, sizeof *tree);
    if (!tree || !BW_ARRAY_RESERVE(adoptions->trees, adoptions->count, adoptions->capacity)) {
        free(tree);
        return bw_error_no_memory();
    }
    tree->fs = adoptions->fs;
    tree->id = of->id;
    struct bw_error *error = read_tree(tree, of);
    if (error) {
        free_tree(tree);
        return error;
    }
    *result = adoptions->trees[adoptions->count++] = tree;
    return NULL;
}

static struct bw_error *find(void *context, const struct bw_tree *of, uint64_t bytenr,
                             const struct bw_adopted **adopted)
{
    struct bw_adoptions *adoptions = context;
    const struct adopted_tree *tree = NULL;
    if (!is_adopted(adoptions->fs, of))
        return NULL;
    pthread_mutex_lock(&adoptions->lock);
    struct bw_error *error = find_tree(adoptions, of, &tree);
    pthread_mutex_unlock(&adoptions->lock);
    for (size_t i = 0; !error && i < tree->lost_count; i++)
        if (tree->lost[i].bytenr == bytenr)
            *adopted = &tree->adopted;
    return error;
}

struct bw_adoptions *bw_adoptions_create(struct bw_fs *fs)
{
    struct bw_adoptions *adoptions = calloc(1, sizeof *adoptions);
    if (!adoptions)
        return NULL;
    adoptions->fs = fs;
    adoptions->adopter = (struct bw_adopter){find, adoptions};
    pthread_mutex_init(&adoptions->lock, NULL);
    return adoptions;
}

void bw_adoptions_destroy(struct bw_adoptions *adoptions)
{
    if (!adoptions)
        return;
    for (size_t i = 0; i < adoptions->count; i++)
        free_tree(adoptions->trees[i]);
    free(adoptions->trees);
    pthread_mutex_destroy(&adoptions->lock);
    free(adoptions);
}

const struct bw_adopter *bw_adoptions_adopter(const struct bw_adoptions *adoptions)
{
    return &adoptions->adopter;
}
