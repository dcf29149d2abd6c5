/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of a tree, from one scan: internal nodes contain the places of their children, leaves
 * their items. Also the number of bytes of tree blocks, for progress.
 */
#include "base/cleanup.h"
#include "btree/scan.h"
#include "btrfs-walk/tree.h"
#include "fs/fs.h"
#include "fs/tree_items.h"
#include "ondisk/items.h"
#include "trees/dump.h"

static_assert((int)BW_TREE_LEVELS == (int)BW_MAX_LEVEL, "levels of a tree");

struct counting {
    struct bw_fs *fs;
    struct bw_tree_stats *stats;
};

static void count_block(struct counting *counting, const struct bw_node *node)
{
    counting->stats->blocks[node->level]++;
    counting->stats->block_count++;
    counting->stats->bytes += node->nodesize;
}

/* Items of a bad leaf may lie over each other. */
static struct bw_error *count_leaf(void *context, const struct bw_node *leaf)
{
    struct counting *counting = context;
    struct bw_tree_stats *stats = counting->stats;
    enum { HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr) };
    const uint64_t capacity = leaf->nodesize - sizeof(struct bw_disk_header);
    uint64_t used = 0;
    struct bw_item item;
    count_block(counting, leaf);
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        used += item.size + sizeof(struct bw_disk_item);
        stats->items++;
        stats->types[item.key.type].count++;
        stats->types[item.key.type].bytes += item.size;
        const struct bw_disk_file_extent *extent = (const void *)item.data;
        if (item.key.type == BW_EXTENT_DATA && item.size > HEAD &&
            extent->type == BW_FILE_EXTENT_INLINE)
            stats->inline_bytes += item.size - HEAD;
    }
    stats->used_bytes += used < capacity ? used : capacity;
    stats->capacity_bytes += capacity;
    return NULL;
}

static void count_seek(struct bw_tree_stats *stats, uint64_t from, uint64_t to)
{
    uint64_t length = from < to ? to - from : from - to;
    stats->seeks++;
    stats->forward_seeks += from < to;
    stats->backward_seeks += from > to;
    if (__builtin_add_overflow(stats->seek_bytes, length, &stats->seek_bytes))
        stats->seek_bytes = UINT64_MAX;
    if (length > stats->longest_seek)
        stats->longest_seek = length;
    stats->seek_lengths[64 - __builtin_clzll(length)]++;
}

static struct bw_error *count_node(void *context, const struct bw_node *node)
{
    struct counting *counting = context;
    struct bw_tree_stats *stats = counting->stats;
    uint64_t behind = bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
    uint64_t cluster = node->nodesize;
    count_block(counting, node);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        uint64_t child = bw_node_pointer_at(node, slot).bytenr;
        behind += node->nodesize;
        if (behind == child) {
            cluster += node->nodesize;
        } else {
            count_seek(stats, behind, child);
            if (cluster > node->nodesize) {
                const bool is_first = !stats->clusters++;
                stats->cluster_bytes += cluster;
                if (cluster < stats->smallest_cluster || is_first)
                    stats->smallest_cluster = cluster;
                if (cluster > stats->largest_cluster)
                    stats->largest_cluster = cluster;
            }
            cluster = node->nodesize;
        }
        behind = child;
        stats->lowest = child < stats->lowest ? child : stats->lowest;
        stats->highest = child > stats->highest ? child : stats->highest;
    }
    return NULL;
}

static struct bw_error *count_lost(void *context, const struct bw_block_pointer *pointer,
                                   struct bw_error *error)
{
    struct counting *counting = context;
    counting->stats->lost_blocks++;
    bw_fs_report_lost(counting->fs, pointer->bytenr, error);
    return NULL;
}

struct bw_error *bw_tree_stats_read(struct bw_fs *fs, uint64_t tree_id, struct bw_tree_stats *stats)
{
    struct bw_tree tree;
    struct counting counting = {fs, stats};
    const struct bw_scan scan = {BW_SCAN_ALL,         .adopt = true,      .announce = true,
                                 .node = count_node,  .leaf = count_leaf, .lost = count_lost,
                                 .context = &counting};
    struct bw_error *error = bw_tree_find(fs, tree_id, &tree);
    if (tree_id == BW_TREE_ROOT)
        tree = *bw_fs_root_tree(fs);
    if (error && error->code == BW_ERROR_NOT_FOUND) {
        BW_AUTO_ERROR struct bw_error *none = error;
        error = bw_dump_tree_check(fs, tree_id); /* names the trees that there are */
        return error ? error : BW_TAKE(none);
    }
    BW_TRY(error);
    *stats = (struct bw_tree_stats){.id = tree_id,
                                    .levels = tree.root.level + 1u,
                                    .lowest = tree.root.bytenr,
                                    .highest = tree.root.bytenr};
    return bw_tree_scan(&fs->reader, &tree, &scan);
}

/* The number of bytes that a command for all trees reads, for progress. */

/* Sums. */
struct sum {
    bool subvolumes;       /* of these alone */
    const uint64_t *trees; /* or of these; NULL: of all */
    size_t count;
    uint64_t bytes;
};

static struct bw_error *add_roots_of(void *context, const struct bw_node *leaf)
{
    struct sum *sum = context;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        const struct bw_disk_root_item *disk = (const void *)item.data;
        struct bw_root_item root;
        if (item.key.type != BW_ROOT_ITEM)
            continue;
        bool is_wanted = !sum->trees && (!sum->subvolumes || bw_is_subvolume_id(item.key.objectid));
        for (size_t i = 0; i < sum->count && !is_wanted; i++)
            is_wanted = sum->trees[i] == item.key.objectid;
        BW_AUTO_ERROR struct bw_error *bad = is_wanted ? bw_root_item_decode(&item, &root) : NULL;
        if (is_wanted && !bad && root.references)
            sum->bytes += bw_get64(disk->bytes_used);
    }
    return NULL;
}

static uint64_t add_up(struct bw_fs *fs, struct sum sum)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = add_roots_of, .lost = bw_scan_ignore_lost,
                                 .context = &sum};
    bw_error_free(bw_tree_scan(&fs->reader, &fs->root_tree, &scan));
    return sum.bytes < fs->superblock.bytes_used ? sum.bytes : fs->superblock.bytes_used;
}

uint64_t bw_fs_tree_bytes(struct bw_fs *fs, bool subvolumes)
{
    return add_up(fs, (struct sum){.subvolumes = subvolumes});
}

uint64_t bw_fs_tree_bytes_of(struct bw_fs *fs, const uint64_t *trees, size_t count)
{
    return add_up(fs, (struct sum){.trees = trees, .count = count});
}
