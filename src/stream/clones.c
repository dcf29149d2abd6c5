/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sources of clones. The extent tree says where an extent begins in which inodes. A snapshot has
 * the extent at the same place of the same inode as its origin, so each of these places is looked
 * up in every subvolume that the receiver has: what the trees there say counts, not the reference.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/block.h"
#include "data/references.h"
#include "fs/inode.h"
#include "stream/sender.h"

enum {
    MOST_PLACES = 64,       /* that are looked up for an extent */
    MOST_REFERENCES = 1024, /* of an extent: with more, finding one takes longer than sending it */
};

/* Where an extent is used: its first byte would be at `base` of the inode, modulo 2^64. */
struct place {
    uint64_t inode, base;
};

struct bw_send_clones {
    uint64_t bytenr; /* of the extent whose places these are; 0: none */
    struct place places[MOST_PLACES];
    size_t count;
    uint64_t references;
    uint64_t leaves[MOST_PLACES]; /* addresses of leaves that refer to it */
    size_t leaf_count;
    struct bw_item_range range; /* in the extent tree */
    bool started;
    bool failed;     /* the extent tree cannot be read, which was reported */
    uint8_t *buffer; /* of a leaf */
};

struct bw_error *bw_send_clones_create(struct bw_send_clones **clones)
{
    *clones = calloc(1, sizeof **clones);
    return *clones ? NULL : bw_error_no_memory();
}

void bw_send_clones_destroy(struct bw_send_clones *clones)
{
    if (!clones)
        return;
    if (clones->started)
        bw_error_free(bw_item_range_end(&clones->range, NULL));
    free(clones->buffer);
    free(clones);
}

static void add_place(struct bw_send_clones *clones, uint64_t inode, uint64_t base)
{
    for (size_t i = 0; i < clones->count; i++)
        if (clones->places[i].inode == inode && clones->places[i].base == base)
            return;
    if (clones->count < MOST_PLACES)
        clones->places[clones->count++] = (struct place){inode, base};
}

/* The places in a leaf that refers to the extent by its own address. */
static void add_places_of_leaf(struct bw_send_clones *clones, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        const struct bw_disk_file_extent *disk = (const void *)item.data;
        if (item.key.type == BW_EXTENT_DATA && item.size >= sizeof *disk &&
            disk->type == BW_FILE_EXTENT_REGULAR && bw_get64(disk->disk_bytenr) == clones->bytenr)
            add_place(clones, item.key.objectid, item.key.offset - bw_get64(disk->offset));
    }
}

static void add_places_of_reference(struct bw_send_clones *clones,
                                    const struct bw_reference *reference)
{
    if (reference->kind == BW_EXTENT_DATA_REF)
        add_place(clones, reference->inode, reference->offset);
    else if (reference->kind == BW_SHARED_DATA_REF && clones->leaf_count < MOST_PLACES)
        clones->leaves[clones->leaf_count++] = reference->source;
}

/* Whether looking for clones of an extent is worthwhile. */
static bool is_promising(const struct bw_sender *sender, uint64_t references)
{
    return references <= MOST_REFERENCES && (references > 1 || sender->root_count > 1);
}

static struct bw_error *read_places(struct bw_sender *sender)
{
    struct bw_send_clones *clones = sender->clones;
    struct bw_item_range *range = &clones->range;
    struct bw_extent_entry entry = {0};
    struct bw_reference reference;
    while (bw_item_range_next(range)) {
        if (range->error)
            return BW_TAKE(range->error);
        if (range->item.key.type == BW_EXTENT_ITEM &&
            bw_extent_entry_decode(sender->sent->fs, &range->item, &entry)) {
            clones->references = entry.references;
            if (!is_promising(sender, entry.references))
                return NULL;
            while (bw_extent_reference_step(&entry, &reference))
                add_places_of_reference(clones, &reference);
        } else if (entry.bytenr && bw_extent_keyed(&entry, &range->item, &reference)) {
            add_places_of_reference(clones, &reference);
        }
        if (clones->count == MOST_PLACES)
            break;
    }
    return NULL;
}

static void seek_items(struct bw_sender *sender, uint64_t bytenr, uint8_t first, uint8_t last)
{
    const struct bw_fs *fs = sender->sent->fs;
    bw_item_range_restart(&sender->clones->range, &fs->reader, &fs->extent_tree,
                          (struct bw_key){bytenr, first, 0},
                          (struct bw_key){bytenr, last, UINT64_MAX});
}

/* Reads the extent item of a leaf for its generation, and then the leaf. A leaf that cannot be read
 * has no places. */
static struct bw_error *read_leaf(struct bw_sender *sender, uint64_t bytenr)
{
    struct bw_send_clones *clones = sender->clones;
    const struct bw_tree_reader *reader = &sender->sent->fs->reader;
    struct bw_extent_entry entry = {0};
    seek_items(sender, bytenr, BW_EXTENT_ITEM, BW_METADATA_ITEM);
    while (bw_item_range_next(&clones->range) && !entry.is_block)
        if (!clones->range.error)
            bw_extent_entry_decode(sender->sent->fs, &clones->range.item, &entry);
    BW_TRY(bw_item_range_stop(&clones->range, NULL));
    if (!entry.is_block)
        return NULL;
    if (!clones->buffer)
        clones->buffer = bw_block_buffer(reader, 1);
    if (!clones->buffer)
        return bw_error_no_memory();
    const struct bw_block_pointer pointer = {
        bytenr,
        {.owner = BW_TOP_SUBVOLUME,
         .generation = entry.generation,
         .end_key = BW_KEY_MAX,
         .lenient = true},
    };
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, clones->buffer);
    if (error)
        return error->code == BW_ERROR_NO_MEMORY ? BW_TAKE(error) : NULL;
    const struct bw_node node = bw_node_view(clones->buffer, reader->nodesize);
    add_places_of_leaf(clones, &node);
    return NULL;
}

static struct bw_error *read_extent(struct bw_sender *sender, uint64_t bytenr)
{
    struct bw_send_clones *clones = sender->clones;
    seek_items(sender, bytenr, BW_EXTENT_ITEM, BW_SHARED_DATA_REF);
    BW_TRY(bw_item_range_stop(&clones->range, read_places(sender)));
    for (size_t i = 0; i < clones->leaf_count && is_promising(sender, clones->references); i++)
        BW_TRY(read_leaf(sender, clones->leaves[i]));
    return NULL;
}

static struct bw_error *begin_range(struct bw_sender *sender)
{
    struct bw_send_clones *clones = sender->clones;
    const struct bw_fs *fs = sender->sent->fs;
    if (clones->started)
        return NULL;
    clones->started = true;
    bw_item_range_begin(&clones->range, &fs->reader, &fs->extent_tree, (struct bw_key){0},
                        (struct bw_key){0});
    return bw_item_range_stop(&clones->range, NULL);
}

/* Finds where an extent is used. If the extent tree is unreadable, nothing is found. */
static struct bw_error *find_places(struct bw_sender *sender, uint64_t bytenr)
{
    struct bw_send_clones *clones = sender->clones;
    struct bw_fs *fs = sender->sent->fs;
    if (clones->bytenr == bytenr)
        return NULL;
    clones->bytenr = bytenr;
    clones->count = clones->leaf_count = 0;
    clones->references = 0;
    if (!fs->extent_tree.id || clones->failed)
        return NULL;
    BW_TRY(begin_range(sender));
    struct bw_error *error = read_extent(sender, bytenr);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    clones->failed = true;
    bw_fs_report(fs, BW_WARNING,
                 bw_error_prefix(error, "nothing is cloned: the extent tree cannot be read"));
    return NULL;
}

/* A piece of a file. */
struct piece {
    uint64_t offset; /* in the file */
    bool found;
    struct bw_file_extent extent;
};

/* Finds the piece of a file at an offset. Unreadable items are ignored. */
static struct bw_error *find_piece(struct bw_send_root *root, uint64_t inode, uint64_t offset,
                                   struct piece *piece)
{
    struct bw_item_range *range = &root->extents_range;
    const uint64_t furthest = 128u << 20; /* no extent is longer */
    *piece = (struct piece){0};
    bw_item_range_restart(
        range, &root->fs->reader, &root->subvolume->tree,
        (struct bw_key){inode, BW_EXTENT_DATA, offset > furthest ? offset - furthest : 0},
        (struct bw_key){inode, BW_EXTENT_DATA, offset});
    while (bw_item_range_next(range)) {
        if (range->error)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(&range->item, bw_fs_alignment(root->fs), &piece->extent);
        piece->found = !bad;
        piece->offset = range->item.key.offset;
    }
    return bw_item_range_stop(range, NULL);
}

/* Measures the range that a place of a subvolume has of an extent. */
static struct bw_error *measure_clone(struct bw_sender *sender, struct bw_send_root *root,
                                      const struct place *place,
                                      const struct bw_file_extent *wanted, uint64_t skip,
                                      struct bw_send_clone *clone)
{
    struct piece piece;
    const struct bw_file_extent *extent = &piece.extent;
    *clone = (struct bw_send_clone){.inode = place->inode, .offset = place->base + skip};
    BW_TRY(find_piece(root, place->inode, clone->offset, &piece));
    const uint64_t end = piece.offset + extent->num_bytes;
    if (!piece.found || extent->type != BW_FILE_EXTENT_REGULAR ||
        extent->disk_bytenr != wanted->disk_bytenr || clone->offset >= end ||
        piece.offset - extent->offset != place->base)
        return NULL;
    struct bw_inode inode;
    BW_AUTO_ERROR struct bw_error *lost =
        bw_inode_read(root->fs, &root->subvolume->tree, place->inode, &inode);
    if (lost || clone->offset >= inode.size)
        return lost && lost->code == BW_ERROR_NO_MEMORY ? BW_TAKE(lost) : NULL;
    clone->length = (end < inode.size ? end : inode.size) - clone->offset;
    clone->size = inode.size;
    const uint64_t differing = inode.flags ^ sender->current.inode.flags;
    if (inode.link_count && !(differing & BW_INODE_NODATASUM))
        clone->root = root;
    return NULL;
}

/* Whether the receiver has the bytes of a place in the sent subvolume at this point: of the current
 * file, those before `offset`. */
static bool is_sent(const struct bw_sender *sender, const struct place *place, uint64_t skip,
                    uint64_t offset, uint64_t length)
{
    const struct bw_send_inode *current = &sender->current;
    const uint64_t end = place->base + skip + length;
    if (sender->options.damage == BW_SEND_SKIP)
        return false;
    return place->inode < current->number ||
           (place->inode == current->number && end <= current->written && end <= offset);
}

struct bw_error *bw_send_find_clone(struct bw_sender *sender, const struct bw_file_extent *extent,
                                    uint64_t skip, uint64_t offset, uint64_t length,
                                    struct bw_send_clone *clone)
{
    struct bw_send_clones *clones = sender->clones;
    *clone = (struct bw_send_clone){.length = length};
    if (extent->inline_data || !extent->disk_bytenr)
        return NULL;
    BW_TRY(find_places(sender, extent->disk_bytenr));
    if (!is_promising(sender, clones->references))
        return NULL;
    uint64_t best = 0;
    for (size_t r = 0; r < sender->root_count && best < length; r++)
        for (size_t i = 0; i < clones->count && best < length; i++) {
            struct bw_send_root *root = &sender->roots[r];
            struct bw_send_clone found;
            if (root == sender->sent && !is_sent(sender, &clones->places[i], skip, offset, length))
                continue;
            BW_TRY(measure_clone(sender, root, &clones->places[i], extent, skip, &found));
            if (!found.root || found.length <= best)
                continue;
            best = found.length;
            *clone = found;
        }
    if (clone->length > length)
        clone->length = length;
    return NULL;
}
