/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The references that tree blocks make.
 *
 * Who is counted as the source of a reference follows __btrfs_mod_ref() in the kernel's
 * fs/btrfs/extent-tree.c: the tree that the block was written for, unless the extent item of the
 * block has FULL_BACKREF; then the block itself.
 */
#include "owners/references.h"

bool bw_tree_has_references(uint64_t tree)
{
    return tree != BW_TREE_LOG && tree != BW_TREE_REMAP;
}

bool bw_reference_to_root(const struct bw_tree *tree, struct bw_reference *reference)
{
    /* The root of a relocation tree has no parent: it stands for its own one. */
    const bool relocation = tree->id == BW_TREE_RELOC;
    *reference = (struct bw_reference){
        .bytenr = tree->root.bytenr,
        .kind = relocation ? BW_SHARED_BLOCK_REF : BW_TREE_BLOCK_REF,
        .source = relocation ? tree->root.bytenr : tree->id,
        .count = 1,
    };
    return bw_tree_has_references(tree->id);
}

/* What all references of a block have in common. */
struct source {
    const struct bw_node *node;
    uint64_t bytenr, owner;
    bool shared;
    bw_reference_taker *take;
    void *context;
};

static void take_file_extent(const struct source *source, uint32_t slot)
{
    struct bw_item item;
    const struct bw_disk_file_extent *disk;
    if (!bw_leaf_item(source->node, slot, &item) || item.size < sizeof *disk)
        return;
    disk = (const void *)item.data;
    if (disk->type == BW_FILE_EXTENT_INLINE || !bw_get64(disk->disk_bytenr))
        return;
    struct bw_reference reference = {
        .bytenr = bw_get64(disk->disk_bytenr),
        .length = bw_get64(disk->disk_num_bytes),
        .kind = source->shared ? BW_SHARED_DATA_REF : BW_EXTENT_DATA_REF,
        .source = source->shared ? source->bytenr : source->owner,
        .count = 1,
    };
    if (!source->shared) {
        reference.inode = item.key.objectid;
        reference.offset = item.key.offset - bw_get64(disk->offset);
    }
    source->take(source->context, &reference);
}

static void take_file_extents(const struct source *source)
{
    for (uint32_t slot = 0; slot < source->node->item_count; slot++)
        if (bw_node_disk_item(source->node, slot)->key.type == BW_EXTENT_DATA)
            take_file_extent(source, slot);
}

static void take_pointers(const struct source *source, uint32_t first_slot)
{
    for (uint32_t slot = first_slot; slot < source->node->item_count; slot++)
        source->take(source->context,
                     &(struct bw_reference){
                         .bytenr = bw_node_pointer_at(source->node, slot).bytenr,
                         .kind = source->shared ? BW_SHARED_BLOCK_REF : BW_TREE_BLOCK_REF,
                         .source = source->shared ? source->bytenr : source->owner,
                         .count = 1,
                     });
}

void bw_references_of_block(const struct bw_node *node, uint32_t first_slot, bool by_address,
                            bw_reference_taker *take, void *context)
{
    const struct bw_disk_header *header = (const void *)node->block;
    const struct source source = {
        node, bw_get64(header->bytenr), bw_get64(header->owner), by_address, take, context};
    take(context, &(struct bw_reference){.bytenr = source.bytenr,
                                         .source = bw_get64(header->generation),
                                         .inode = node->level,
                                         .count = 1});
    if (node->level)
        take_pointers(&source, first_slot);
    else
        take_file_extents(&source);
}
