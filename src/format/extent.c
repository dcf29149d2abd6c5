/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding of tree block extents, of today (METADATA_ITEM) and of before skinny metadata
 * (EXTENT_ITEM). */
#include "format/extent.h"

bool bw_tree_extent_decode(const struct bw_item *item, struct bw_tree_extent *extent)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    if (item->key.type != BW_METADATA_ITEM && item->key.type != BW_EXTENT_ITEM)
        return false;
    const struct bw_disk_extent_item *disk = (const void *)bw_cursor_take(&cursor, sizeof *disk);
    if (!disk || !(bw_get64(disk->flags) & BW_EXTENT_TREE_BLOCK))
        return false;
    extent->bytenr = item->key.objectid;
    extent->generation = bw_get64(disk->generation);
    extent->level = (uint8_t)item->key.offset;
    if (item->key.type == BW_EXTENT_ITEM) {
        const struct bw_disk_tree_block_info *info =
            (const void *)bw_cursor_take(&cursor, sizeof *info);
        if (!info)
            return false;
        extent->level = info->level;
    }
    extent->references = cursor;
    return true;
}

bool bw_extent_reference_of_key(const struct bw_key *key, struct bw_extent_reference *reference)
{
    *reference = (struct bw_extent_reference){key->type == BW_SHARED_BLOCK_REF, key->offset};
    return reference->shared || key->type == BW_TREE_BLOCK_REF;
}

bool bw_extent_reference_next(struct bw_cursor *cursor, struct bw_extent_reference *reference)
{
    if (cursor->next == cursor->end)
        return false;
    const struct bw_disk_inline_reference *disk =
        (const void *)bw_cursor_take(cursor, sizeof *disk);
    if (!disk)
        return false;
    const struct bw_key key = {0, disk->type, bw_get64(disk->offset)};
    return bw_extent_reference_of_key(&key, reference);
}
