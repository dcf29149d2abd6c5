/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checksum tree after an interrupted change of the type of checksums, with two sets of items.
 * One of them has all checksums of data, and the other one has to go (fs/checksum_change.c).
 *
 * Nothing can be freed where blocks stay in place, and no leaf but the root may be empty. So all
 * leaves are filled again, in order, with even shares of the items that stay. An item may be split
 * anywhere, since it is an array of checksums of consecutive sectors. The keys in the nodes above
 * follow. Addresses, generations and levels stay, so nothing outside the tree changes.
 */

#include "base/cleanup.h"
#include "base/compare.h"
#include "btree/find_leaf.h"
#include "ondisk/disk_items.h"
#include "ondisk/node.h"
#include "repair/repair.h"

/* The items that stay, in their order, and the room for them. */
struct refill {
    struct bw_repair *repair;
    struct bw_fs_items items;
    const struct bw_item *item;      /* the next one; NULL: none */
    uint32_t done;                   /* bytes of it that are in a leaf */
    uint32_t checksum_size;          /* of each sector */
    uint64_t bytes, sectors, leaves; /* that remain */
};

static const struct bw_tree *checksum_tree(const struct bw_repair *repair)
{
    return &repair->fs->checksum_trees.items[0];
}

static void begin_items(struct refill *refill)
{
    bw_repair_all_items(&refill->items, refill->repair->fs, checksum_tree(refill->repair));
}

/* Reads the next item that stays. */
static void next_item(struct refill *refill)
{
    const struct bw_fs *fs = refill->repair->fs;
    refill->done = 0;
    while ((refill->item = bw_fs_items_next(&refill->items)))
        if (bw_fs_is_data_checksum(fs, &refill->item->key) &&
            refill->item->size >= refill->checksum_size)
            break;
}

/* Counts the leaves below a block. */
static struct bw_error *count_leaves(const struct bw_repair *repair,
                                     const struct bw_block_pointer *pointer, uint64_t *count)
{
    const struct bw_tree_reader *reader = &repair->fs->reader;
    if (!pointer->expectation.level) {
        ++*count;
        return NULL;
    }
    BW_AUTO_FREE uint8_t *block = malloc(reader->nodesize);
    if (!block)
        return bw_error_no_memory();
    BW_TRY(bw_block_read(reader, pointer, block));
    const struct bw_node node = bw_node_view(block, reader->nodesize);
    if (node.level == 1) {
        *count += node.item_count;
        return NULL;
    }
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(pointer, &node, slot);
        BW_TRY(count_leaves(repair, &child, count));
    }
    return NULL;
}

/* Adds up the items that stay, and the leaves. BW_ERROR_CORRUPT: that is not possible. */
static struct bw_error *measure(struct refill *refill)
{
    const struct bw_block_pointer root = bw_tree_root_pointer(checksum_tree(refill->repair), false);
    bool is_right = true;
    begin_items(refill);
    for (next_item(refill); refill->item; next_item(refill)) {
        refill->sectors += refill->item->size / refill->checksum_size;
        refill->bytes += sizeof(struct bw_disk_item) + refill->item->size;
        is_right &= refill->item->size % refill->checksum_size == 0;
    }
    struct bw_error *error = bw_fs_items_error(&refill->items);
    bw_fs_items_free(&refill->items);
    if (!error && !is_right)
        error = bw_error_create(BW_ERROR_CORRUPT, "an item has a part of a checksum");
    return error ? error : count_leaves(refill->repair, &root, &refill->leaves);
}

/* Fills a leaf with its share: as many bytes as remain for each of the leaves that remain. */
static struct bw_error *fill_leaf(struct refill *refill, uint8_t *block, struct bw_key *first)
{
    const uint32_t sectorsize = refill->repair->fs->superblock.sectorsize,
                   nodesize = refill->repair->fs->superblock.nodesize;
    struct bw_repair_leaf leaf = bw_repair_leaf_begin(block, nodesize, block);
    const uint32_t item_size = sizeof(struct bw_disk_item);
    const uint64_t share = (refill->bytes + refill->leaves - 1) / refill->leaves;
    uint32_t used = 0;
    refill->leaves--;
    while (refill->item && (!leaf.count || used + item_size + refill->checksum_size <= share) &&
           refill->sectors > refill->leaves) {
        /* The rest of the item, or as much as the share allows; each later leaf needs a sector. */
        const uint64_t rest = (refill->item->size - refill->done) / refill->checksum_size,
                       others = refill->sectors - refill->leaves,
                       end = bw_max(share, used + item_size + refill->checksum_size),
                       allowed = (end - used - item_size) / refill->checksum_size,
                       sectors = bw_min(allowed, bw_min(rest, others));
        const uint32_t size = (uint32_t)sectors * refill->checksum_size;
        const struct bw_key key = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM,
                                   refill->item->key.offset +
                                       refill->done / refill->checksum_size * (uint64_t)sectorsize};
        if (!leaf.count)
            *first = key;
        if (!bw_repair_leaf_add(&leaf, &key, refill->item->data + refill->done, size))
            return bw_error_create(BW_ERROR_CORRUPT, "the checksums do not fit in their leaves");
        used += item_size + size;
        refill->sectors -= sectors;
        refill->done += size;
        refill->bytes -= size;
        if (refill->done < refill->item->size)
            continue;
        refill->bytes -= item_size;
        next_item(refill);
    }
    return NULL;
}

/* Fills the leaves below a block, whose keys follow. */
static struct bw_error *refill_block(struct refill *refill, const struct bw_block_pointer *pointer,
                                     struct bw_key *first)
{
    struct bw_repair *repair = refill->repair;
    const struct bw_superblock *superblock = &repair->fs->superblock;
    BW_AUTO_FREE uint8_t *block = malloc(superblock->nodesize);
    if (!block)
        return bw_error_no_memory();
    BW_TRY(bw_block_read(&repair->fs->reader, pointer, block));
    const struct bw_node node = bw_node_view(block, superblock->nodesize);
    struct bw_disk_key_pointer *pointers = (void *)(block + sizeof(struct bw_disk_header));
    if (!node.level)
        BW_TRY(fill_leaf(refill, block, first));
    for (uint32_t slot = 0; node.level && slot < node.item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(pointer, &node, slot);
        struct bw_key key = {0, 0, 0};
        BW_TRY(refill_block(refill, &child, &key));
        pointers[slot].key = bw_key_encode(&key);
        if (!slot)
            *first = key;
    }
    bw_checksum_compute(superblock->checksum_type, block + BW_CSUM_SIZE,
                        superblock->nodesize - BW_CSUM_SIZE, block);
    return bw_repair_write_converted(repair, pointer->bytenr, block);
}

struct bw_error *bw_repair_can_refill(struct bw_repair *repair, bool *is_possible)
{
    struct refill refill = {.repair = repair,
                            .checksum_size =
                                (uint32_t)bw_checksum_size(bw_fs_data_checksum(repair->fs))};
    BW_AUTO_ERROR struct bw_error *error = measure(&refill);
    if (error)
        return bw_error_tolerate(BW_TAKE(error));

    /* A leaf may begin and end with a part of an item. */
    const uint64_t room = repair->fs->superblock.nodesize - sizeof(struct bw_disk_header),
                   split = 2 * sizeof(struct bw_disk_item) + refill.checksum_size;
    *is_possible = refill.leaves && refill.sectors >= refill.leaves &&
                   refill.bytes / refill.leaves + split < room;
    return NULL;
}

struct bw_error *bw_repair_refill_checksums(struct bw_repair *repair)
{
    struct refill refill = {.repair = repair,
                            .checksum_size =
                                (uint32_t)bw_checksum_size(bw_fs_data_checksum(repair->fs))};
    const struct bw_block_pointer root = bw_tree_root_pointer(checksum_tree(repair), false);
    struct bw_key first = {0, 0, 0};
    BW_TRY(measure(&refill));
    begin_items(&refill);
    next_item(&refill);
    struct bw_error *error = refill_block(&refill, &root, &first);
    if (!error && refill.item)
        error = bw_error_create(BW_ERROR_CORRUPT, "the checksums do not fit in their leaves");
    error = bw_error_first(error, bw_fs_items_error(&refill.items));
    bw_fs_items_free(&refill.items);
    return error;
}
