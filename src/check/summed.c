/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the checksum trees for the data they are about. What is wrong with the trees themselves
 * is found elsewhere. */
#include "check/summed.h"

#include "base/cleanup.h"
#include "btree/scan.h"
#include "ondisk/checksum.h"

struct reading {
    struct bw_check *check;
    uint64_t done; /* ranges before this have been handed out */
    bw_summed_taker *take;
    void *context;
};

/* Hands out a range chunk by chunk. */
static struct bw_error *hand_out(const struct bw_check *check, uint64_t logical, uint64_t end,
                                 const uint8_t *checksums, bw_summed_taker *take, void *context)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const size_t size = bw_checksum_size(superblock->checksum_type);
    for (uint64_t next = logical; next < end;) {
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, next);
        if (!chunk) {
            next += superblock->sectorsize;
            continue;
        }
        const uint64_t left = chunk->length - (next - chunk->logical);
        const struct bw_summed range = {chunk, next, end - next < left ? end - next : left,
                                        checksums +
                                            (next - logical) / superblock->sectorsize * size};
        BW_TRY(take(context, &range));
        next += range.length;
    }
    return NULL;
}

struct bw_error *bw_summed_item(const struct bw_check *check, const struct bw_item *item,
                                uint64_t *done, bw_summed_taker *take, void *context)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const size_t size = bw_checksum_size(superblock->checksum_type);
    const uint64_t length = item->size / size * superblock->sectorsize, from = item->key.offset;
    if (item->key.objectid != BW_EXTENT_CSUM_OBJECT || item->key.type != BW_EXTENT_CSUM ||
        from % superblock->sectorsize || from > UINT64_MAX - length || from + length <= *done)
        return NULL;
    const uint64_t first = from > *done ? from : *done;
    *done = from + length;
    return hand_out(check, first, from + length,
                    item->data + (first - from) / superblock->sectorsize * size, take, context);
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct reading *reading = context;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        BW_TRY(
            bw_summed_item(reading->check, &item, &reading->done, reading->take, reading->context));
    return NULL;
}

struct bw_error *bw_summed_scan(struct bw_check *check, bw_summed_taker *take, void *context)
{
    const struct bw_checksum_trees *trees = &check->fs->checksum_trees;
    for (size_t i = 0; i < trees->count; i++) {
        struct reading reading = {check, 0, take, context};
        const struct bw_scan scan = {BW_SCAN_ALL, .announce = true, .leaf = take_leaf,
                                     .lost = bw_scan_ignore_lost, .context = &reading};
        BW_TRY(bw_tree_scan(&check->fs->reader, &trees->trees[i], &scan));
    }
    return NULL;
}
