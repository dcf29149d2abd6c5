/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adopted leaves of all trees of files, of checksums and of places of data. All nodes of a tree
 * are read before the extent tree, so that this happens once, however many nodes are lost.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "recovery/recovery.h"

/* Does not change any more once it is among the adoptions. */
struct adopted_tree {
    uint64_t id;
    struct bw_lost_ranges lost; /* nodes */
    struct bw_adopted adopted;
};

struct bw_adoptions {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct adopted_tree **trees;
    size_t count, capacity;
};

static void free_tree(struct adopted_tree *tree)
{
    if (!tree)
        return;
    free(tree->lost.items);
    bw_adopted_free(&tree->adopted);
    free(tree);
}

/* Looking for lost nodes. */
struct node_search {
    struct bw_fs *fs;
    uint32_t wave;
    struct bw_lost_ranges *lost;
    uint8_t *block;
};

static struct bw_error *lose(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    const struct node_search *search = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, search->wave);
    bw_fs_report_lost(search->fs, pointer->bytenr, error);
    return bw_lost_ranges_add(search->lost, &range);
}

/* A node right above leaves, which the scan does not read. */
static struct bw_error *try_node(void *context, const struct bw_block_pointer *pointer)
{
    const struct node_search *search = context;
    if (pointer->expectation.level == 0)
        return NULL;
    struct bw_error *error = bw_block_read(&search->fs->reader, pointer, search->block);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    return lose(context, pointer, error);
}

struct bw_error *bw_find_lost_nodes(struct bw_fs *fs, const struct bw_tree *tree, uint32_t wave,
                                    struct bw_lost_ranges *lost)
{
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    struct node_search search = {fs, wave, lost, block};
    const struct bw_scan scan = {BW_SCAN_ALL, .pointer = try_node, .lost = lose,
                                 .context = &search};
    return block ? bw_tree_scan(&fs->reader, tree, &scan) : bw_error_no_memory();
}

static bool is_adopted(const struct bw_fs *fs, const struct bw_tree *tree)
{
    bool checksums = tree->id == BW_CSUM_TREE && fs->checksum_trees.count == 1; /* others share it
                                                                                 */
    return checksums || tree->id == fs->stripe_tree.id || bw_subvolume_by_id(fs, tree->id);
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
    tree->id = of->id;
    struct bw_error *error = bw_find_lost_nodes(adoptions->fs, of, 0, &tree->lost);
    if (!error)
        error = bw_adopt_leaves(adoptions->fs, of, &tree->lost, &tree->adopted);
    if (error)
        free_tree(tree);
    else
        *result = adoptions->trees[adoptions->count++] = tree;
    return error;
}

struct bw_error *bw_adoptions_find(void *context, const struct bw_tree *of, uint64_t bytenr,
                                   const struct bw_adopted **adopted)
{
    struct bw_adoptions *adoptions = context;
    const struct adopted_tree *tree = NULL;
    if (!is_adopted(adoptions->fs, of))
        return NULL;
    pthread_mutex_lock(&adoptions->lock);
    struct bw_error *error = find_tree(adoptions, of, &tree);
    pthread_mutex_unlock(&adoptions->lock);
    for (size_t i = 0; !error && i < tree->lost.count; i++)
        if (tree->lost.items[i].bytenr == bytenr)
            *adopted = &tree->adopted;
    return error;
}

struct bw_error *bw_adoptions_create(struct bw_fs *fs, struct bw_adoptions **result)
{
    struct bw_adoptions *adoptions = calloc(1, sizeof *adoptions);
    if (!adoptions)
        return bw_error_no_memory();
    adoptions->fs = fs;
    pthread_mutex_init(&adoptions->lock, NULL);
    *result = adoptions;
    return NULL;
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
