/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds everything that a metadump contains, by reading the internal nodes of all trees: their
 * children are in them, so no leaf is read. If a node is lost, the extent trees name the blocks
 * below it. The space cache of version 1 comes from files in the root tree. In the end, the list is
 * sorted, and what a dump cannot contain is removed.
 */
#include "trees/metadump.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btree/scan.h"
#include "ondisk/metadump.h"
#include "owners/level_reader.h"
#include "owners/ranges.h"

/* A running search. */
struct search {
    struct bw_level_reader reader; /* its lock protects the list and the set */
    struct bw_dumped_blocks *list;
    struct bw_block_set found;
};

/* Adds a tree block. `*added` is false if it is known, or exists only in memory. */
static struct bw_error *add_block(struct search *search, const struct bw_block_pointer *pointer,
                                  uint32_t tree, bool *added)
{
    const struct bw_dumped_block block = {.bytenr = pointer->bytenr,
                                          .generation = pointer->expectation.generation,
                                          .length = search->reader.fs->reader.nodesize,
                                          .tree = tree,
                                          .level = pointer->expectation.level};
    BW_TRY(bw_block_set_insert(&search->found, pointer->bytenr, added));
    const bool in_memory = bw_memory_block(search->reader.fs->reader.memory, pointer->bytenr);
    if (!*added || in_memory)
        return NULL;
    return bw_dumped_block_list_push(&search->list->blocks, block);
}

/* Adds the children of a node, and requests them unless they are leaves. */
static void on_node(void *context, unsigned worker, const struct bw_queued_block *parent,
                    const struct bw_node *node, bool *wanted)
{
    struct search *search = context;
    uint32_t slot = parent->dropped ? bw_tree_first_slot(parent->dropped, node) : 0;
    (void)worker;
    pthread_mutex_lock(&search->reader.lock);
    for (; slot < node->item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(&parent->pointer, node, slot);
        if (add_block(search, &child, parent->value, &wanted[slot]))
            search->reader.no_memory = true;
        wanted[slot] &= node->level > 1;
    }
    pthread_mutex_unlock(&search->reader.lock);
}

/* The error is reported when the block itself is read. */
static void on_lost(void *context, const struct bw_queued_block *block, struct bw_error *error)
{
    (void)context, (void)block;
    bw_error_free(error);
}

/* The kernel writes 64 KiB for each 256 MiB of a block group. Longer extents are of no cache. */
enum { LONGEST_CACHE = 16 << 20 };

static void search_free(struct search *search)
{
    bw_level_reader_end(&search->reader);
    bw_key_map_free(&search->found.words);
}

struct bw_error *bw_dumped_blocks_find(struct bw_dumped_blocks *list, struct bw_fs *fs)
{
    BW_SCOPED(search)
    struct search search = {
        .reader = {.fs = fs, .node = on_node, .lost = on_lost, .context = &search}, .list = list};
    BW_TRY(bw_level_reader_begin(&search.reader));
    BW_TRY(bw_tree_list_load(fs, &list->trees));
    BW_TRY(bw_tree_list_load_log(fs, &list->trees));

    /* The tree blocks to which trees refer and, if a node is lost, those in the extent trees. */
    const struct bw_listed_trees *trees = &list->trees.entries;
    for (size_t i = 0; i < trees->count; i++) {
        const struct bw_listed_tree *tree = &trees->items[i];
        const struct bw_queued_block root = {bw_tree_root_pointer(&tree->tree, false), (uint32_t)i,
                                             tree->references ? NULL : tree};
        bool added;
        BW_TRY(add_block(&search, &root.pointer, (uint32_t)i, &added));
        if (added)
            BW_TRY(bw_level_reader_add(&search.reader, &root));
    }
    BW_TRY(bw_level_reader_run(&search.reader));
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    struct bw_item item;
    for (size_t i = 0; search.reader.has_losses && i < trees->count; i++) {
        if (trees->items[i].tree.id != BW_EXTENT_TREE)
            continue;
        bw_block_scan_begin(&scan, &fs->reader, &trees->items[i].tree);
        while (bw_block_scan_next_item(&scan, &item)) {
            struct bw_tree_extent extent;
            bool added;
            if (!bw_tree_extent_decode(&item, &extent))
                continue;
            const struct bw_block_pointer pointer = {
                extent.bytenr, {.generation = extent.generation, .level = extent.level}};
            BW_TRY(add_block(&search, &pointer, BW_DUMPED_UNKNOWN_TREE, &added));
        }
        BW_TRY(bw_block_scan_end(&scan));
    }

    /* The space cache of version 1: files in the root tree, in pieces. */
    bw_block_scan_begin(&scan, &fs->reader, &fs->root_tree);
    while (bw_block_scan_next_item(&scan, &item)) {
        struct bw_file_extent extent;
        if (item.key.type != BW_EXTENT_DATA)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(&item, fs->superblock.sectorsize, &extent);
        if (bad || extent.type == BW_FILE_EXTENT_INLINE || !extent.disk_bytenr ||
            extent.disk_num_bytes > LONGEST_CACHE)
            continue;
        for (uint64_t done = 0; done < extent.disk_num_bytes; done += BW_METADUMP_PIECE) {
            const uint64_t left = extent.disk_num_bytes - done;
            const struct bw_dumped_block block = {
                .bytenr = extent.disk_bytenr + done,
                .length = left < BW_METADUMP_PIECE ? (uint32_t)left : BW_METADUMP_PIECE,
                .is_data = true};
            BW_TRY(bw_dumped_block_list_push(&list->blocks, block));
        }
    }
    BW_TRY(bw_block_scan_end(&scan));

    /* Sort, and remove what a dump cannot contain. Several items may refer to the same extent of
     * the space cache. The superblock is in the dump at its offset on the devices. */
    struct bw_dumped_block *blocks = list->blocks.items;
    const uint64_t super_start = bw_superblock_offset(0),
                   super_end = super_start + BW_SUPERBLOCK_SIZE;
    size_t kept = 0;
    uint64_t end = 0;
    if (list->blocks.count)
        qsort(blocks, list->blocks.count, sizeof *blocks, bw_compare_first);
    for (size_t i = 0; i < list->blocks.count; i++) {
        const struct bw_dumped_block block = blocks[i];
        if (kept && block.is_data && blocks[kept - 1].is_data &&
            block.bytenr == blocks[kept - 1].bytenr)
            continue;
        if (block.bytenr < end || block.bytenr > UINT64_MAX - block.length ||
            (block.bytenr < super_end && block.bytenr + block.length > super_start)) {
            bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "%s at %" PRIu64 " overlaps another one, and is omitted",
                              block.is_data ? "space cache" : "tree block", block.bytenr);
            continue;
        }
        end = block.bytenr + block.length;
        list->bytes += block.length;
        blocks[kept++] = block;
    }
    list->blocks.count = kept;
    return NULL;
}

void bw_dumped_blocks_free(struct bw_dumped_blocks *list)
{
    bw_listed_trees_free(&list->trees.entries);
    bw_dumped_block_list_free(&list->blocks);
    *list = (struct bw_dumped_blocks){0};
}
