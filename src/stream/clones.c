/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sources of clones. The extent tree lists the inodes and offsets at which an extent begins. A
 * snapshot has the extent at the same place of the same inode as its origin, so each of these
 * places is looked up in every subvolume that the receiver has. The items there count, not the
 * reference.
 *
 * The bytes of an extent can come from several sources, because parts of a source may have been
 * overwritten. So a source is searched for one position in the extent; the caller clones as far as
 * that source goes, and then searches for the next position. The order of preference is the
 * kernel's: the source of the position before, otherwise the one with the largest part of the
 * extent, and of equal ones the last by the subvolume that the reference names, the inode and the
 * offset. So most streams contain all clones of the kernel's streams.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btree/block.h"
#include "data/references.h"
#include "fs/inode.h"
#include "stream/sender.h"

enum {
    MOST_REFERENCES = 1024, /* of an extent: with more, finding one takes longer than sending it */
    MOST_LEAVES = 64,       /* that are read for an extent */
    MOST_LOOKUPS = 1 << 16, /* for an item of a file, however many pieces of its extent differ */
    MOST_ITEMS = 256,       /* of a source that are examined for its next part of the extent */
    /* The largest sector size. Receivers may have another one than the sent file system. */
    LARGEST_SECTOR = 64 << 10,
};

struct bw_send_clones {
    uint64_t bytenr;                             /* of the extent whose places these are; 0: none */
    struct bw_reference places[MOST_REFERENCES]; /* source 0: only a leaf is known */
    size_t count;
    uint64_t references;
    uint64_t leaves[MOST_LEAVES]; /* addresses of leaves that refer to it */
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

static void add_place(struct bw_send_clones *clones, const struct bw_reference *place)
{
    if (clones->count < MOST_REFERENCES)
        clones->places[clones->count++] = *place;
}

static int by_place(const void *a, const void *b)
{
    const struct bw_reference *left = a, *right = b;
    return BW_COMPARE_ALL(((uint64_t[]){left->inode, left->offset, left->source}),
                          ((uint64_t[]){right->inode, right->offset, right->source}));
}

/* The order in which the kernel tries the references: the highest numbers first. */
static int by_preference(const void *a, const void *b)
{
    const struct bw_reference *left = a, *right = b;
    const int order = bw_compare(right->source, left->source);
    return order ? order : by_place(b, a);
}

static void add_places_of_reference(struct bw_send_clones *clones,
                                    const struct bw_reference *reference)
{
    if (reference->kind == BW_EXTENT_DATA_REF)
        add_place(clones, reference);
    else if (reference->kind == BW_SHARED_DATA_REF && clones->leaf_count < MOST_LEAVES)
        clones->leaves[clones->leaf_count++] = reference->source;
}

/* Whether looking for clones of an extent is worthwhile. */
static bool is_promising(const struct bw_sender *sender, uint64_t references)
{
    return references <= MOST_REFERENCES && (references > 1 || sender->root_count > 1);
}

static void seek_items(struct bw_sender *sender, uint64_t bytenr, uint8_t first, uint8_t last)
{
    const struct bw_fs *fs = sender->sent->fs;
    bw_item_range_restart(&sender->clones->range, &fs->reader, &fs->extent_tree,
                          (struct bw_key){bytenr, first, 0},
                          (struct bw_key){bytenr, last, UINT64_MAX});
}

/* Reads the extent item of a leaf for its generation, and then the leaf, which refers to the extent
 * by its own address. A leaf that cannot be read has no places. */
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
        return bw_error_tolerate(BW_TAKE(error));
    const struct bw_node node = bw_node_view(clones->buffer, reader->nodesize);
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(&node, &slot, &item);) {
        const struct bw_disk_file_extent *disk = (const void *)item.data;
        if (item.key.type == BW_EXTENT_DATA && item.size >= sizeof *disk &&
            disk->type == BW_FILE_EXTENT_REGULAR && bw_get64(disk->disk_bytenr) == clones->bytenr)
            add_place(clones,
                      &(struct bw_reference){.inode = item.key.objectid,
                                             .offset = item.key.offset - bw_get64(disk->offset)});
    }
    return NULL;
}

/* Reads the references of an extent: first its item in the extent tree and the items that follow,
 * then the leaves that refer to it by their own addresses. If several references name one place,
 * only the preferred one stays. */
static struct bw_error *read_extent(struct bw_sender *sender, uint64_t bytenr)
{
    struct bw_send_clones *clones = sender->clones;
    struct bw_item_range *range = &clones->range;
    struct bw_extent_entry entry = {0};
    struct bw_reference reference;
    struct bw_error *error = NULL;
    seek_items(sender, bytenr, BW_EXTENT_ITEM, BW_SHARED_DATA_REF);
    while (bw_item_range_next(range)) {
        error = BW_TAKE(range->error);
        if (error)
            break;
        if (range->item.key.type == BW_EXTENT_ITEM &&
            bw_extent_entry_decode(sender->sent->fs, &range->item, &entry)) {
            clones->references = entry.references;
            if (!is_promising(sender, entry.references))
                break;
            while (bw_extent_reference_step(&entry, &reference))
                add_places_of_reference(clones, &reference);
        } else if (entry.bytenr && bw_extent_keyed(&entry, &range->item, &reference)) {
            add_places_of_reference(clones, &reference);
        }
    }
    BW_TRY(bw_item_range_stop(range, error));
    for (size_t i = 0; i < clones->leaf_count && is_promising(sender, clones->references); i++)
        BW_TRY(read_leaf(sender, clones->leaves[i]));

    struct bw_reference *places = clones->places;
    size_t kept = 0;
    qsort(places, clones->count, sizeof *places, by_place);
    for (size_t i = 0; i < clones->count; i++)
        if (!kept || places[kept - 1].inode != places[i].inode ||
            places[kept - 1].offset != places[i].offset)
            places[kept++] = places[i];
        else
            places[kept - 1].source = places[i].source;
    clones->count = kept;
    qsort(places, kept, sizeof *places, by_preference);
    return NULL;
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
    if (!clones->started) {
        clones->started = true;
        bw_item_range_begin(&clones->range, &fs->reader, &fs->extent_tree, (struct bw_key){0},
                            (struct bw_key){0});
        BW_TRY(bw_item_range_stop(&clones->range, NULL));
    }
    struct bw_error *error = read_extent(sender, bytenr);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    clones->failed = true;
    bw_fs_report(fs, BW_WARNING,
                 bw_error_prefix(error, "nothing is cloned: the extent tree cannot be read"));
    return NULL;
}

/* A search for sources of the bytes at a position in an extent. */
struct search {
    struct bw_sender *sender;
    const struct bw_file_extent *extent;
    uint64_t position; /* in the extent */
    uint64_t offset;   /* in the current file */
    uint64_t length;
    uint64_t next; /* the next position that has a source; at most the end of the range */
    uint64_t best; /* how many bytes of the extent the item of the best source has */
    struct bw_send_clone *clone;
};

/* Finds the part of the extent that a source has at the position, or the next one before
 * search->next. Unreadable items are ignored. */
static struct bw_error *find_part(struct search *search, const struct bw_send_clone *source,
                                  struct bw_file_extent *part, bool *found)
{
    struct bw_item_range *range = &source->root->extents_range;
    const int64_t start = (int64_t)(source->base + search->position);
    const int64_t end = (int64_t)(source->base + search->next);
    struct bw_key first = {source->inode, BW_EXTENT_DATA, start < 0 ? 0 : (uint64_t)start};
    *found = false;
    if (end <= start || end <= 0) /* before the beginning of the file, or beyond any file */
        return NULL;

    /* The item that contains the position begins before it. */
    BW_TRY(bw_find_leaf(&range->finder, &first));
    const int64_t slot = range->finder.lost ? -1 : bw_leaf_last_until(&range->finder, &first);
    if (slot >= 0) {
        const struct bw_key key = bw_leaf_key(&range->finder.leaf, (uint32_t)slot);
        if (key.objectid == first.objectid && key.type == first.type)
            first = key;
    }
    bw_item_range_restart(range, &source->root->fs->reader, &source->root->subvolume->tree, first,
                          (struct bw_key){first.objectid, first.type, (uint64_t)end - 1});
    while (!*found && bw_item_range_next(range)) {
        const struct bw_item *item = &range->item;
        search->clone->lookups++;
        if (range->error)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(item, bw_fs_alignment(source->root->fs), part);
        *found = !bad && part->type == BW_FILE_EXTENT_REGULAR && !part->inline_data &&
                 part->disk_bytenr == search->extent->disk_bytenr &&
                 item->key.offset - part->offset == source->base &&
                 part->offset + part->num_bytes > search->position;
    }
    return bw_item_range_stop(range, NULL);
}

/*
 * How many bytes of a source can be cloned. Receivers refuse a range that does not end at a sector,
 * unless it is the end of both files. An extent of one sector at the beginning of a file may be
 * inline there, if the receiver compresses; the kernel risks that.
 */
static uint64_t cloneable_length(const struct search *search, const struct bw_file_extent *part,
                                 const struct bw_send_clone *clone)
{
    const struct bw_sender *sender = search->sender;
    const uint32_t sectorsize = sender->sent->fs->superblock.sectorsize;
    const bool ends_source = clone->offset + clone->length == clone->size;
    const bool ends_file = search->offset + clone->length == sender->current.inode.size;
    uint64_t length = clone->length;
    if ((search->offset | clone->offset) % sectorsize) /* itself read from a stream */
        return 0;
    if (ends_source && !ends_file && clone->size % LARGEST_SECTOR)
        length -= length % LARGEST_SECTOR;
    else if (!ends_source || !ends_file)
        length -= length % sectorsize;
    const bool may_be_inline =
        clone->offset == 0 && length == sectorsize && part->num_bytes <= sectorsize;
    return may_be_inline ? 0 : length;
}

/* Looks for the position in a source, of which the root, the inode and the base are set, and keeps
 * it if it is better than those before. */
static struct bw_error *try_source(struct search *search, struct bw_send_clone clone)
{
    const struct bw_sender *sender = search->sender;
    const struct bw_send_inode *current = &sender->current;
    struct bw_file_extent part;
    bool found;
    BW_TRY(find_part(search, &clone, &part, &found));
    if (!found)
        return NULL;

    /* The search before has often read the same inode. An unreadable one has no links. */
    struct bw_send_root *root = clone.root;
    struct bw_inode *inode = &root->source_inode;
    if (root->source != clone.inode) {
        root->source = 0;
        struct bw_error *error =
            bw_inode_read(root->fs, &root->subvolume->tree, clone.inode, inode);
        if (error)
            inode->link_count = 0;
        BW_TRY(bw_error_tolerate(error));
        root->source = clone.inode;
    }
    if (!inode->link_count || (inode->flags ^ current->inode.flags) & BW_INODE_NODATASUM)
        return NULL;

    /* The receiver has only the sent part of the current file. */
    uint64_t limit = inode->size;
    if (clone.root == sender->sent && clone.inode == current->number && current->written < limit)
        limit = current->written;
    clone.offset = clone.base + search->position;
    clone.size = inode->size;
    clone.lookups = search->clone->lookups;
    const uint64_t part_end = part.offset + part.num_bytes;
    if (part.offset > search->position) {
        if (clone.base + part.offset < limit)
            search->next = part.offset;
        return NULL;
    }
    if (clone.offset >= limit)
        return NULL;
    clone.length = part_end - search->position;
    if (clone.length > search->length)
        clone.length = search->length;
    if (clone.length > limit - clone.offset)
        clone.length = limit - clone.offset;
    clone.length = cloneable_length(search, &part, &clone);
    if (clone.length && part.num_bytes > search->best) {
        search->best = part.num_bytes;
        *search->clone = clone;
    } else if (!clone.length && part_end < search->next) {
        search->next = part_end;
    }
    return NULL;
}

struct bw_error *bw_send_find_clone(struct bw_sender *sender, const struct bw_file_extent *extent,
                                    uint64_t skip, uint64_t offset, uint64_t length,
                                    struct bw_send_clone *clone)
{
    const struct bw_send_clone before = *clone;
    struct search search = {.sender = sender,
                            .extent = extent,
                            .position = skip,
                            .offset = offset,
                            .length = length,
                            .next = skip + length,
                            .clone = clone};
    *clone = (struct bw_send_clone){.lookups = clone->lookups};
    const struct bw_send_clones *clones = sender->clones;
    bool is_sought = !extent->inline_data && extent->disk_bytenr;
    if (is_sought)
        BW_TRY(find_places(sender, extent->disk_bytenr));
    is_sought &= is_promising(sender, clones->references);
    if (is_sought && before.root)
        BW_TRY(try_source(&search, before));
    is_sought &= !clone->root;
    for (size_t r = 0; is_sought && r < sender->root_count && search.best < length; r++)
        for (size_t i = 0; i < clones->count && search.best < length; i++) {
            const struct bw_reference *place = &clones->places[i];
            const struct bw_send_clone source = {
                .root = &sender->roots[r], .inode = place->inode, .base = place->offset};
            /* The receiver may not have a file of the sent subvolume yet. */
            const bool is_own =
                place->inode == sender->current.number && place->offset == offset - skip;
            const bool is_usable =
                place->inode <= sender->current.number && sender->options.damage != BW_SEND_SKIP;
            if (source.root == sender->sent && (is_own || !is_usable))
                continue;
            is_sought = search.clone->lookups < MOST_LOOKUPS;
            if (!is_sought)
                break;
            search.clone->lookups++;
            BW_TRY(try_source(&search, source));
        }
    if (!clone->root)
        clone->length = search.next - skip;
    return NULL;
}
