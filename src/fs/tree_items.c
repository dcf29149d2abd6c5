/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads tree blocks by address, finds trees by id, and iterates over the items of any tree.
 *
 * A block that is read by its address has no parent, so its expected values are unknown. Its own
 * header is read first, unverified, from one mirror. Then the block is requested with the values of
 * that header, so the layers verify its checksum and contents as usual. If any mirror will do, each
 * is tried with its own header, because a header may be damaged.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/block.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/tree.h"
#include "fs/fs.h"
#include "fs/tree_items.h"
#include "ondisk/items.h"

struct bw_tree_block {
    struct bw_node node;
    uint8_t bytes[];
};

/* Reads the header of a mirror, unverified, so that the block can be requested with the header's
 * values. */
static struct bw_error *read_header(struct bw_fs *fs, uint64_t bytenr, unsigned copy,
                                    struct bw_block_pointer *pointer)
{
    struct bw_disk_header header;
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .mirror = (uint8_t)copy,
                                 .length = sizeof header,
                                 .address = bytenr,
                                 .buffer = &header};
    bw_wind(NULL, fs->reader.top, &request, 1);
    if (request.error)
        return request.error;
    *pointer = (struct bw_block_pointer){bytenr,
                                         {.owner = bw_get64(header.owner),
                                          .generation = bw_get64(header.generation),
                                          .end_key = BW_KEY_MAX,
                                          .level = header.level,
                                          .lenient = true}};
    if (bw_get64(header.bytenr) == bytenr && header.level < BW_MAX_LEVEL)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "there is no tree block at %" PRIu64, bytenr);
}

struct bw_error *bw_block_copy_read(struct bw_fs *fs, uint64_t bytenr, unsigned copy,
                                    uint8_t *bytes)
{
    struct bw_block_pointer pointer;
    if (copy) {
        BW_TRY(read_header(fs, bytenr, copy, &pointer));
        struct bw_request request = {.kind = BW_REQUEST_TREE_BLOCK,
                                     .mirror = (uint8_t)copy,
                                     .length = fs->reader.nodesize,
                                     .address = bytenr,
                                     .buffer = bytes,
                                     .expectation = &pointer.expectation};
        bw_wind(NULL, fs->reader.top, &request, 1);
        return request.error;
    }

    /* Any good one: the first mirror whose header leads to one. */
    struct bw_mapping mapping;
    BW_TRY(bw_fs_map(fs, bytenr, fs->reader.nodesize, 1, &mapping));
    struct bw_error *error = NULL;
    for (copy = 1; copy <= mapping.copies; copy++) {
        struct bw_error *failure = read_header(fs, bytenr, copy, &pointer);
        if (!failure)
            failure = bw_block_read(&fs->reader, &pointer, bytes);
        if (!failure) {
            bw_error_free(error);
            return NULL;
        }
        if (error)
            bw_error_add_cause(error, failure);
        else
            error = failure;
    }
    return error;
}

struct bw_error *bw_tree_block_read(struct bw_fs *fs, uint64_t bytenr, struct bw_tree_block **block)
{
    if (bytenr % fs->superblock.sectorsize)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "%" PRIu64 " is not a multiple of the sector size, as addresses of "
                               "tree blocks are",
                               bytenr);
    BW_AUTO_FREE struct bw_tree_block *result = malloc(sizeof *result + fs->reader.nodesize);
    if (!result)
        return bw_error_no_memory();
    BW_TRY(bw_block_copy_read(fs, bytenr, 0, result->bytes));
    result->node = bw_node_view(result->bytes, fs->reader.nodesize);
    *block = BW_TAKE(result);
    return NULL;
}

void bw_tree_block_free(struct bw_tree_block *block)
{
    free(block);
}

struct bw_tree_block_header bw_tree_block_header(const struct bw_tree_block *block)
{
    const struct bw_disk_header *disk = (const void *)block->bytes;
    return (struct bw_tree_block_header){.bytenr = bw_get64(disk->bytenr),
                                         .flags = bw_get64(disk->flags),
                                         .generation = bw_get64(disk->generation),
                                         .owner = bw_get64(disk->owner),
                                         .item_count = block->node.item_count,
                                         .level = block->node.level};
}

bool bw_tree_block_item(const struct bw_tree_block *block, uint32_t slot, struct bw_item *item)
{
    return block->node.level == 0 && slot < block->node.item_count &&
           bw_leaf_item(&block->node, slot, item);
}

bool bw_tree_block_pointer(const struct bw_tree_block *block, uint32_t slot,
                           struct bw_block_key_pointer *pointer)
{
    if (block->node.level == 0 || slot >= block->node.item_count)
        return false;
    const struct bw_node_pointer entry = bw_node_pointer_at(&block->node, slot);
    *pointer = (struct bw_block_key_pointer){entry.key, entry.bytenr, entry.generation};
    return true;
}

/* Iterating over the items of any tree, and finding trees by id. */

struct bw_items {
    struct bw_item_range range;
};

struct bw_error *bw_tree_find(struct bw_fs *fs, uint64_t id, struct bw_tree *tree)
{
    *tree = (struct bw_tree){0};
    if (id == BW_TREE_ROOT) {
        *tree = fs->root_tree;
    } else if (id == BW_TREE_CHUNK) {
        *tree = fs->chunk_tree;
    } else if (id == BW_TREE_REMAP && fs->superblock.remap_root.bytenr) {
        *tree = (struct bw_tree){id, fs->superblock.remap_root, 0};
    } else {
        struct bw_item_range range;
        struct bw_root_item root;
        struct bw_error *error = NULL;
        bw_item_range_begin(&range, &fs->reader, &fs->root_tree,
                            (struct bw_key){id, BW_ROOT_ITEM, 0},
                            (struct bw_key){id, BW_ROOT_ITEM, UINT64_MAX});
        while (!error && bw_item_range_next(&range)) {
            error = range.error ? BW_TAKE(range.error) : bw_root_item_decode(&range.item, &root);
            if (!error)
                *tree = (struct bw_tree){id, root.root, root.last_snapshot};
        }
        BW_TRY(bw_item_range_end(&range, error));
    }
    if (tree->id)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no tree %" PRId64, (int64_t)id);
}

struct bw_error *bw_items_open(struct bw_fs *fs, uint64_t tree_id, const struct bw_key *first,
                               const struct bw_key *last, struct bw_items **items)
{
    struct bw_tree tree;
    BW_TRY(bw_tree_find(fs, tree_id, &tree));
    *items = malloc(sizeof **items);
    if (!*items)
        return bw_error_no_memory();
    bw_item_range_begin(&(*items)->range, &fs->reader, &tree, first ? *first : (struct bw_key){0},
                        last ? *last : BW_KEY_MAX);
    return NULL;
}

void bw_items_close(struct bw_items *items)
{
    if (items)
        bw_error_free(bw_item_range_end(&items->range, NULL));
    free(items);
}

struct bw_error *bw_items_next(struct bw_items *items, const struct bw_item **item,
                               struct bw_item_location *location)
{
    struct bw_item_range *range = &items->range;
    *item = NULL;
    if (!bw_item_range_next(range))
        return BW_TAKE(range->failure);
    if (range->error)
        return BW_TAKE(range->error);
    const struct bw_disk_header *header = (const void *)range->finder.leaf.block;
    if (location)
        *location = (struct bw_item_location){.bytenr = range->finder.bytenr,
                                              .generation = bw_get64(header->generation),
                                              .owner = bw_get64(header->owner),
                                              .slot = range->slot - 1};
    *item = &range->item;
    return NULL;
}
