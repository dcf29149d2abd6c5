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

/* Items of a bad leaf may lie over each other. */
static void count_items(struct bw_tree_stats *stats, const struct bw_node *leaf)
{
    enum { HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr) };
    const uint64_t capacity = leaf->nodesize - sizeof(struct bw_disk_header);
    uint64_t used = 0;
    struct bw_item item;
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

static void count_children(struct bw_tree_stats *stats, const struct bw_node *node)
{
    uint64_t behind = bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
    uint64_t cluster = node->nodesize;
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
}

struct bw_error *bw_tree_stats_read(struct bw_fs *fs, uint64_t tree_id, struct bw_tree_stats *stats)
{
    struct bw_tree tree;
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
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .announce = true, .nodes = true};
    bw_block_scan_begin(&scan, &fs->reader, &tree);
    while (bw_block_scan_next(&scan)) {
        const struct bw_node *node = &scan.node;
        if (scan.error) {
            stats->lost_blocks++;
            bw_fs_report_lost(fs, scan.pointer.bytenr, BW_TAKE(scan.error));
            continue;
        }
        stats->blocks[node->level]++;
        stats->block_count++;
        stats->bytes += node->nodesize;
        if (node->level)
            count_children(stats, node);
        else
            count_items(stats, node);
    }
    return bw_block_scan_end(&scan);
}

/* The number of bytes that a command for some trees reads, for progress: of all, of subvolumes, or
 * of `trees` unless that is NULL. */
static uint64_t add_up(struct bw_fs *fs, bool subvolumes, const uint64_t *trees, size_t count)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    uint64_t bytes = 0;
    struct bw_item item;
    bw_block_scan_begin(&scan, &fs->reader, &fs->root_tree);
    while (bw_block_scan_next_item(&scan, &item)) {
        const struct bw_disk_root_item *disk = (const void *)item.data;
        struct bw_root_item root;
        if (item.key.type != BW_ROOT_ITEM)
            continue;
        bool is_wanted = !trees && (!subvolumes || bw_is_subvolume_id(item.key.objectid));
        for (size_t i = 0; i < count && !is_wanted; i++)
            is_wanted = trees[i] == item.key.objectid;
        BW_AUTO_ERROR struct bw_error *bad = is_wanted ? bw_root_item_decode(&item, &root) : NULL;
        if (is_wanted && !bad && root.references)
            bytes += bw_get64(disk->bytes_used);
    }
    return bytes < fs->superblock.bytes_used ? bytes : fs->superblock.bytes_used;
}

uint64_t bw_fs_tree_bytes(struct bw_fs *fs, bool subvolumes)
{
    return add_up(fs, subvolumes, NULL, 0);
}

uint64_t bw_fs_tree_bytes_of(struct bw_fs *fs, const uint64_t *trees, size_t count)
{
    return add_up(fs, false, trees, count);
}
