/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tree blocks of metadumps. A block begins as zeros, and gets its header, its keys, and of each
 * item the bytes that are not contents of a file. So bytes outside of items, where deleted items
 * may remain, are never copied.
 */
#include "trees/metadump.h"

#include <string.h>

#include "ondisk/disk_items.h"

/* How many bytes at the beginning of an item a metadump with names keeps. */
static size_t kept_size(const struct bw_dump_rules *rules, const struct bw_item *item)
{
    enum { HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr) };
    const struct bw_disk_file_extent *extent = (const void *)item->data;
    switch (item->key.type) {
    case BW_EXTENT_DATA:
        if (item->size < HEAD)
            return 0;
        if (extent->type == BW_FILE_EXTENT_INLINE)
            return HEAD;
        if (extent->type != BW_FILE_EXTENT_REGULAR && extent->type != BW_FILE_EXTENT_PREALLOC)
            return 0;
        return item->size < sizeof *extent ? item->size : sizeof *extent;
    case BW_CSUM_ITEM:
    case BW_EXTENT_CSUM:
        return rules->checksums ? item->size : 0;
    case BW_VERITY_DESC_ITEM:
        if (rules->checksums)
            return item->size;
        /* the size of the descriptor; then the descriptor, up to the hash */
        if (!item->key.offset && item->size == sizeof(struct bw_disk_verity_descriptor))
            return item->size;
        if (item->key.offset == 1 && item->size == sizeof(struct bw_disk_fsverity))
            return offsetof(struct bw_disk_fsverity, root);
        return 0;
    case BW_VERITY_MERKLE_ITEM:
        return rules->checksums ? item->size : 0;
    default:
        return item->size;
    }
}

void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch)
{
    const struct bw_node node = bw_node_view(block, nodesize);
    const size_t entry =
        node.level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    memset(scratch, 0, nodesize);
    if (rules->names) {
        bw_sanitized_block_copy(rules, &node, scratch);
    } else {
        memcpy(scratch, block, sizeof(struct bw_disk_header) + node.item_count * entry);
        memcpy(((struct bw_disk_header *)scratch)->fsid, rules->fsid, BW_UUID_SIZE);
        /* An item that lies over another one is not kept: it could show the contents of the
         * other. */
        const uint8_t *end = block + nodesize;
        for (uint32_t slot = 0; slot < node.item_count && !node.level; slot++) {
            struct bw_item item;
            if (!bw_leaf_item(&node, slot, &item) || item.data + item.size > end)
                continue;
            end = item.data;
            memcpy(scratch + (item.data - block), item.data, kept_size(rules, &item));
        }
    }
    bw_checksum_compute(rules->checksum_type, scratch + BW_CSUM_SIZE, nodesize - BW_CSUM_SIZE,
                        scratch);
    memcpy(block, scratch, nodesize);
}
