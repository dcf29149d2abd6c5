/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The references that the extent tree promises: items of extents, and of references. */
#include "owners/references.h"

bool bw_extent_entry_decode(const struct bw_fs *fs, const struct bw_item *item,
                            struct bw_extent_entry *extent)
{
    struct bw_tree_extent block;
    struct bw_cursor cursor = bw_cursor_of(item);
    if (item->key.type != BW_EXTENT_ITEM && item->key.type != BW_METADATA_ITEM)
        return false;
    const struct bw_disk_extent_item *disk = (const void *)bw_cursor_take(&cursor, sizeof *disk);
    if (!disk)
        return false;
    *extent = (struct bw_extent_entry){
        .bytenr = item->key.objectid,
        .length = item->key.type == BW_EXTENT_ITEM ? item->key.offset : fs->superblock.nodesize,
        .references = bw_get64(disk->references),
        .generation = bw_get64(disk->generation),
        .flags = bw_get64(disk->flags),
        .inside = cursor,
    };
    extent->is_block = extent->flags & BW_EXTENT_TREE_BLOCK;
    extent->shared_children = extent->is_block && (extent->flags & BW_EXTENT_FULL_BACKREF);
    if (!extent->is_block)
        return true;
    if (!bw_tree_extent_decode(item, &block))
        return false;
    extent->level = block.level;
    extent->inside = block.references;
    return true;
}

static struct bw_reference reference_of(const struct bw_extent_entry *extent, uint8_t kind)
{
    return (struct bw_reference){.bytenr = extent->bytenr,
                                 .length = extent->is_block ? 0 : extent->length,
                                 .kind = kind,
                                 .count = 1};
}

static bool read_data_ref(struct bw_cursor *cursor, struct bw_reference *reference)
{
    const struct bw_disk_extent_data_ref *disk = (const void *)bw_cursor_take(cursor, sizeof *disk);
    if (!disk)
        return false;
    reference->source = bw_get64(disk->root);
    reference->inode = bw_get64(disk->objectid);
    reference->offset = bw_get64(disk->offset);
    reference->count = bw_get32(disk->count);
    return true;
}

/* The number that follows the type of all other references. */
static bool read_source(struct bw_cursor *cursor, struct bw_reference *reference)
{
    const bw_le64 *source = (const void *)bw_cursor_take(cursor, sizeof *source);
    if (source)
        reference->source = bw_get64(*source);
    return source;
}

static bool read_count(struct bw_cursor *cursor, struct bw_reference *reference)
{
    const bw_le32 *count = (const void *)bw_cursor_take(cursor, sizeof *count);
    if (count)
        reference->count = bw_get32(*count);
    return count;
}

bool bw_extent_reference_step(struct bw_extent_entry *extent, struct bw_reference *reference)
{
    struct bw_cursor *cursor = &extent->inside;
    const uint8_t *type = cursor->next == cursor->end ? NULL : bw_cursor_take(cursor, 1);
    if (!type)
        return false;
    *reference = reference_of(extent, *type);
    switch (*type) {
    case BW_TREE_BLOCK_REF:
    case BW_SHARED_BLOCK_REF:
        return read_source(cursor, reference);
    case BW_EXTENT_DATA_REF:
        return read_data_ref(cursor, reference);
    case BW_SHARED_DATA_REF:
        return read_source(cursor, reference) && read_count(cursor, reference);
    case BW_EXTENT_OWNER_REF:
        reference->kind = 0;
        reference->count = 0;
        return read_source(cursor, reference);
    default:
        cursor->bad = true;
        return false;
    }
}

bool bw_extent_keyed(const struct bw_extent_entry *extent, const struct bw_item *item,
                     struct bw_reference *reference)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    *reference = reference_of(extent, item->key.type);
    reference->bytenr = item->key.objectid;
    reference->source = item->key.offset;
    switch (item->key.type) {
    case BW_TREE_BLOCK_REF:
    case BW_SHARED_BLOCK_REF:
        return true;
    case BW_EXTENT_DATA_REF:
        return read_data_ref(&cursor, reference);
    case BW_SHARED_DATA_REF:
        return read_count(&cursor, reference);
    default:
        return false;
    }
}

struct bw_reference bw_extent_itself(const struct bw_extent_entry *extent)
{
    return (struct bw_reference){
        .bytenr = extent->bytenr, .source = extent->generation, .inode = extent->level, .count = 1};
}
