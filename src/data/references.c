/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * References to extents: as the extent tree has them, and as tree blocks make them.
 *
 * The extent tree stores the first references of an extent inside of its item, and the others as
 * items after it, whose keys then have a part of the reference. bw_extent_entry_decode() opens an
 * extent item, bw_extent_reference_step() reads the references inside, and bw_extent_keyed() those
 * that follow. bw_block_references_next() reads the other side, the pointers of nodes and the file
 * extents of leaves. All return the same structure, so that a caller can compare both sides.
 */
#include "data/references.h"

/* The references in the extent tree: in items of extents, and items of their own. */

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

struct bw_reference bw_extent_as_reference(const struct bw_extent_entry *extent)
{
    return (struct bw_reference){
        .bytenr = extent->bytenr, .source = extent->generation, .inode = extent->level, .count = 1};
}

/*
 * The references that tree blocks make.
 *
 * Who is counted as the source of a reference follows __btrfs_mod_ref() in the kernel's
 * fs/btrfs/extent-tree.c: the tree that the block was written for, unless the extent item of the
 * block has FULL_BACKREF; then the block itself.
 */

bool bw_tree_has_references(uint64_t tree)
{
    return tree != BW_TREE_LOG && tree != BW_TREE_REMAP;
}

bool bw_reference_to_root(const struct bw_tree *tree, struct bw_reference *reference)
{
    *reference = (struct bw_reference){
        .bytenr = tree->root.bytenr, .kind = BW_TREE_BLOCK_REF, .source = tree->id, .count = 1};
    /* The root of a relocation tree has no parent: it refers to itself. */
    if (tree->id == BW_TREE_RELOC) {
        reference->kind = BW_SHARED_BLOCK_REF;
        reference->source = tree->root.bytenr;
    }
    return bw_tree_has_references(tree->id);
}

struct bw_reference bw_block_as_reference(const struct bw_node *node)
{
    const struct bw_disk_header *header = (const void *)node->block;
    return (struct bw_reference){.bytenr = bw_get64(header->bytenr),
                                 .source = bw_get64(header->generation),
                                 .inode = node->level,
                                 .count = 1};
}

struct bw_block_references bw_block_references_open(const struct bw_node *node, uint32_t first_slot,
                                                    bool by_address)
{
    const struct bw_disk_header *header = (const void *)node->block;
    struct bw_block_references references = {.node = node, .by_address = by_address};
    references.slot = node->level ? first_slot : 0;
    references.source = bw_get64(by_address ? header->bytenr : header->owner);
    return references;
}

bool bw_block_references_next(struct bw_block_references *references,
                              struct bw_reference *reference)
{
    const struct bw_node *node = references->node;
    while (references->slot < node->item_count) {
        const uint32_t slot = references->slot++;
        if (node->level) {
            *reference = (struct bw_reference){.bytenr = bw_node_pointer_at(node, slot).bytenr,
                                               .kind = references->by_address ? BW_SHARED_BLOCK_REF
                                                                              : BW_TREE_BLOCK_REF,
                                               .source = references->source,
                                               .count = 1};
            return true;
        }

        /* In a leaf, the file extents that are neither inline nor holes. */
        struct bw_item item;
        const struct bw_disk_file_extent *disk;
        if (bw_node_disk_item(node, slot)->key.type != BW_EXTENT_DATA ||
            !bw_leaf_item(node, slot, &item) || item.size < sizeof *disk)
            continue;
        disk = (const void *)item.data;
        if (disk->type == BW_FILE_EXTENT_INLINE || !bw_get64(disk->disk_bytenr))
            continue;
        *reference = (struct bw_reference){.bytenr = bw_get64(disk->disk_bytenr),
                                           .length = bw_get64(disk->disk_num_bytes),
                                           .kind = references->by_address ? BW_SHARED_DATA_REF
                                                                          : BW_EXTENT_DATA_REF,
                                           .source = references->source,
                                           .count = 1};
        if (!references->by_address) {
            reference->inode = item.key.objectid;
            reference->offset = item.key.offset - bw_get64(disk->offset);
        }
        return true;
    }
    return false;
}
