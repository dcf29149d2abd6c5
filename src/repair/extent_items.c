/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items of the extent tree, from the references that the trees make. Each pointer of a node and
 * each extent of a file is one, so if no other tree has lost any of them, the items of an extent
 * follow: whether it is data or a tree block, its length, the number of its references, and these.
 * A generation is that in the header of a tree block. Of data it is the oldest of their files: no
 * snapshot that shares them is older, and a mount needs it only to decide that.
 *
 * - An extent that lacks its item or references gets them. References are added, never taken away.
 *   If the extent tree has one that no tree makes, nothing is planned: instead of it, a file or a
 *   node may have a wrong address.
 * - A lost leaf gets the items of all extents whose keys belong in it (caches.c).
 * - If a node of the extent tree is lost, the whole tree is made again (extent_tree.c).
 *
 * As in the kernel, the first references of an extent are inside of its item, in a certain order,
 * and others are items of their own.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/range_set.h"
#include "base/search.h"
#include "check/extents.h"
#include "ondisk/checksum.h"
#include "repair/repair.h"

enum { MOST_REFERENCES = 1 << 24, MOST_PLANNED = 1000, IS_DATA = 1 };

/* A reference, as both sides have it. */
struct reference {
    struct bw_reference is; /* its count does not matter */
    uint64_t promised, made;
    uint64_t generation; /* of the oldest file extent that makes it */
    uint64_t place;      /* with `is_keyed`: the offset in the key of its item */
    bool is_keyed;       /* it is a later item */
    bool is_odd;         /* two files give the extent different lengths */
};

BW_VECTOR(references, struct reference);

/* An extent item that exists. */
struct present {
    struct bw_key key;
    struct bw_disk_extent_item header;
    uint8_t info[sizeof(struct bw_disk_tree_block_info)]; /* before the references */
    uint32_t info_size;
};

BW_VECTOR(presents, struct present);

/* A tree block that was read. */
struct known_block {
    uint64_t bytenr, generation, owner;
    struct bw_key first;
    uint8_t level;
    bool is_relocated;
};

BW_VECTOR(known_blocks, struct known_block);
BW_VECTOR(first_keys, struct bw_key);

struct bw_repair_extents {
    struct bw_repair *repair;
    bool is_whole; /* all items are made, and the extent tree is not read */
    struct bw_tree_list trees;
    struct bw_chunk_list chunks;
    struct bw_range_set ranges; /* the addresses of which the extents are read */
    struct references references;
    struct presents present;
    struct known_blocks blocks;
    struct first_keys firsts;     /* of lost leaves */
    struct bw_key_map by_address; /* tree blocks whose references are counted by their address */
    bool is_unknown;              /* something is lost that may refer to extents */
    bool has_extra;               /* the extent tree has a reference that no tree makes */
};

void bw_repair_extents_close(struct bw_repair_extents **extents)
{
    struct bw_repair_extents *self = BW_TAKE(*extents);
    if (!self)
        return;
    bw_tree_list_free(&self->trees);
    bw_chunk_list_free(&self->chunks);
    bw_range_set_free(&self->ranges);
    references_free(&self->references);
    presents_free(&self->present);
    known_blocks_free(&self->blocks);
    first_keys_free(&self->firsts);
    bw_key_map_free(&self->by_address);
    free(self);
}

void bw_repair_drop_extent_items(struct bw_repair_extent_items *items)
{
    for (size_t i = 0; i < items->count; i++)
        bw_buffer_free(&items->items[i].data);
    bw_repair_extent_items_free(items);
}

/* Reading both sides. */

static bool is_selected(const struct bw_repair_extents *self, uint64_t bytenr)
{
    return bw_range_set_overlap(&self->ranges, bytenr, bytenr + 1);
}

static struct bw_error *add_reference(struct bw_repair_extents *self, struct reference reference)
{
    self->is_unknown |= self->references.count >= MOST_REFERENCES;
    if (self->is_unknown || !is_selected(self, reference.is.bytenr))
        return NULL;
    return references_push(&self->references, reference);
}

/* Reads the extent tree. A tree block without an item counts references by its address if the
 * extent tree has one from there. */
static struct bw_error *read_promised(struct bw_repair_extents *self)
{
    const struct bw_fs *fs = self->repair->fs;
    struct bw_item_stream stream;
    struct bw_extent_entry extent = {0};
    BW_SCOPED(bw_block_set) struct bw_block_set listed = {0}, sources = {0};
    bool is_new;
    struct bw_error *error =
        bw_item_stream_begin(&stream, self->repair->fs, &self->trees, BW_EXTENT_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        struct reference reference = {.generation = UINT64_MAX};
        if (bw_extent_keyed(&extent, &stream.item, &reference.is)) {
            reference.promised = reference.is.count;
            reference.is_keyed = true;
            reference.place = stream.item.key.offset;
            error = add_reference(self, reference);
            reference.is_keyed = false;
            if (!error && (reference.is.kind == BW_SHARED_BLOCK_REF ||
                           reference.is.kind == BW_SHARED_DATA_REF))
                error = bw_block_set_insert(&sources, reference.is.source, &is_new);
        }
        if (error || !bw_extent_entry_decode(fs, &stream.item, &extent))
            continue;
        struct present present = {.key = stream.item.key};
        memcpy(&present.header, stream.item.data, sizeof present.header);
        if (extent.is_block && stream.item.key.type == BW_EXTENT_ITEM)
            present.info_size = sizeof(struct bw_disk_tree_block_info);
        else if (extent.inside.next < extent.inside.end &&
                 *extent.inside.next == BW_EXTENT_OWNER_REF)
            present.info_size = sizeof(struct bw_disk_inline_reference);
        if (present.info_size > stream.item.size - sizeof present.header)
            present.info_size = 0; /* it is cut off, and has no references */
        memcpy(present.info, stream.item.data + sizeof present.header, present.info_size);
        if (is_selected(self, extent.bytenr))
            error = presents_push(&self->present, present);
        if (!error && extent.is_block)
            error = bw_block_set_insert(&listed, extent.bytenr, &is_new);
        if (!error && extent.shared_children)
            error = bw_key_map_put(&self->by_address, extent.bytenr, 1);
        while (!error && bw_extent_reference_step(&extent, &reference.is)) {
            reference.promised = reference.is.count;
            if (reference.is.kind)
                error = add_reference(self, reference);
            if (!error && (reference.is.kind == BW_SHARED_BLOCK_REF ||
                           reference.is.kind == BW_SHARED_DATA_REF))
                error = bw_block_set_insert(&sources, reference.is.source, &is_new);
        }
    }
    BW_TRY(bw_item_stream_end(&stream, error));
    uint64_t bytenr;
    for (struct bw_block_set_position at = {0}; bw_block_set_next(&sources, &at, &bytenr);)
        if (!bw_block_set_has(&listed, bytenr))
            BW_TRY(bw_key_map_put(&self->by_address, bytenr, 1));
    return NULL;
}

static struct bw_error *add_made(void *context, const struct bw_listed_tree *tree,
                                 const struct bw_reference *is,
                                 const struct bw_block_references *block)
{
    struct reference reference = {.is = *is, .made = is->count, .generation = UINT64_MAX};
    struct bw_repair_extents *self = context;
    struct bw_item item;
    (void)tree;
    if (!is->kind && is_selected(self, is->bytenr)) {
        const struct bw_disk_header *header = (const void *)block->node->block;
        struct known_block known = {
            is->bytenr, is->source,         bw_get64(header->owner),
            {0, 0, 0},  block->node->level, bw_get64(header->flags) & BW_HEADER_RELOCATED};
        if (block->node->item_count)
            known.first = bw_node_key(block->node, 0);
        return known_blocks_push(&self->blocks, known);
    }
    if (is->length && block && bw_leaf_item(block->node, block->slot - 1, &item)) {
        const struct bw_disk_file_extent *disk = (const void *)item.data;
        reference.generation = bw_get64(disk->generation);
    }
    return is->kind ? add_reference(self, reference) : NULL;
}

static int compare_references(const void *first, const void *second)
{
    const struct bw_reference *a = &((const struct reference *)first)->is,
                              *b = &((const struct reference *)second)->is;
    return BW_COMPARE_ALL(((uint64_t[]){a->bytenr, a->kind, a->source, a->inode, a->offset}),
                          ((uint64_t[]){b->bytenr, b->kind, b->source, b->inode, b->offset}));
}

static bool is_of_block(const struct reference *reference)
{
    return reference->is.kind == BW_TREE_BLOCK_REF || reference->is.kind == BW_SHARED_BLOCK_REF;
}

/* Joins the entries of the same reference. */
static void join_references(struct bw_repair_extents *self)
{
    struct references *list = &self->references;
    size_t kept = 0;
    references_sort(list, compare_references);
    for (size_t i = 0; i < list->count; kept++) {
        struct reference joined = list->items[i++];
        for (; i < list->count && compare_references(&joined, &list->items[i]) == 0; i++) {
            const struct reference *next = &list->items[i];
            joined.is_odd |= joined.made && next->made && joined.is.length != next->is.length;
            joined.is.length = next->made ? next->is.length : joined.is.length;
            joined.promised += next->promised;
            joined.made += next->made;
            joined.generation = bw_min(joined.generation, next->generation);
            joined.place = next->is_keyed ? next->place : joined.place;
            joined.is_keyed |= next->is_keyed;
        }
        self->has_extra |= joined.promised > joined.made;
        list->items[kept] = joined;
    }
    list->count = kept;
}

/* Whether a tree has references only in its nodes. */
static bool has_bare_leaves(uint64_t tree)
{
    static const uint64_t trees[] = {BW_EXTENT_TREE,     BW_DEVICE_TREE, BW_CSUM_TREE,
                                     BW_FREE_SPACE_TREE, BW_UUID_TREE,   BW_BLOCK_GROUP_TREE,
                                     BW_QUOTA_TREE};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (trees[i] == tree)
            return true;
    return false;
}

/* Finds the pointer to a lost leaf without references. */
static struct bw_error *find_lost(const struct bw_repair_extents *self,
                                  const struct bw_repair_finding *finding,
                                  struct bw_block_pointer *pointer, bool *found)
{
    const struct bw_listed_tree *tree = bw_tree_list_find(&self->trees, finding->tree);
    *found = false;
    if (!tree || !has_bare_leaves(finding->tree))
        return NULL;
    BW_TRY(bw_repair_find_pointer(&self->repair->fs->reader, &tree->tree, finding->logical,
                                  &finding->key, pointer, found));
    *found = *found && !pointer->expectation.level;
    return NULL;
}

/* Selects the extents of lost leaves of the extent tree. `is_unknown` if references may be lost. */
static struct bw_error *create(struct bw_repair *repair, bool is_whole,
                               struct bw_repair_extents **result)
{
    static const char *const doubts[] = {"root-lost",   "tree-missing", "unfinished",
                                         "file-extent", "root-item",    NULL},
                             *const consequences[] = {"block-crossed", "block-owner", NULL};
    struct bw_repair_extents *self = *result = calloc(1, sizeof *self);
    if (!self)
        return bw_error_no_memory();
    self->repair = repair;
    self->is_whole = is_whole;
    BW_TRY(bw_tree_list_load(repair->fs, &self->trees));
    BW_TRY(bw_fs_chunks(repair->fs, &self->chunks));
    self->is_unknown = repair->is_made || !repair->fs->extent_tree.id;
    for (size_t i = 0; i < repair->findings.count && !self->is_unknown; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        struct bw_block_pointer pointer;
        bool found;
        if (is_whole && finding->tree == BW_EXTENT_TREE)
            continue;
        self->is_unknown = bw_repair_is_any(finding, doubts);
        if (self->is_unknown || !bw_repair_is_about_lost(finding) ||
            bw_repair_is_any(finding, consequences))
            continue;
        BW_TRY(find_lost(self, finding, &pointer, &found));
        self->is_unknown = !found;
        if (!found || finding->tree != BW_EXTENT_TREE)
            continue;

        /* The block groups whose items belong in it are selected as a whole. */
        const struct bw_key first = pointer.expectation.first_key,
                            last = bw_key_before(pointer.expectation.end_key);
        BW_TRY(first_keys_push(&self->firsts, first));
        BW_TRY(bw_range_set_insert(&self->ranges, first.objectid,
                                   last.objectid + (last.objectid < UINT64_MAX)));
        for (size_t k = 0; k < self->chunks.count; k++) {
            const uint64_t start = self->chunks.items[k].logical;
            if (start >= first.objectid && start <= last.objectid)
                BW_TRY(bw_range_set_insert(&self->ranges, start,
                                           start + self->chunks.items[k].length));
        }
    }
    return NULL;
}

static const struct present *find_present(const struct bw_repair_extents *self, uint64_t bytenr)
{
    const struct presents *list = &self->present;
    const size_t i = BW_FIRST_INDEX(k, list->count, list->items[k].key.objectid >= bytenr);
    return i < list->count && list->items[i].key.objectid == bytenr ? &list->items[i] : NULL;
}

/* The number of references to the same extent as the first one. */
static size_t count_same(const struct reference *references, size_t count)
{
    size_t same = 1;
    while (same < count && references[same].is.bytenr == references[0].is.bytenr)
        same++;
    return same;
}

static const struct known_block *find_block(const struct bw_repair_extents *self, uint64_t bytenr)
{
    const struct known_blocks *list = &self->blocks;
    const size_t i = BW_FIRST_INDEX(k, list->count, list->items[k].bytenr >= bytenr);
    return i < list->count && list->items[i].bytenr == bytenr ? &list->items[i] : NULL;
}

/* Whether a tree block belongs to a tree that contains it. A balance makes copies that belong to
 * none: other blocks may have only such a copy as their parent. */
static struct bw_error *is_of_owner(const struct bw_repair_extents *self,
                                    const struct known_block *block,
                                    const struct reference *references, size_t count, bool *result)
{
    const struct bw_listed_tree *owner = bw_tree_list_find(&self->trees, block->owner);
    bool is_below_copy = false;
    *result = false;
    if (block->is_relocated && bw_is_subvolume_id(block->owner))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct bw_reference *is = &references[i].is;
        const uint8_t *parent = NULL;
        *result |= is->kind == BW_TREE_BLOCK_REF && is->source == block->owner;
        if (is->kind == BW_SHARED_BLOCK_REF && !*result)
            BW_TRY(bw_repair_block_contents(self->repair, is->source, &parent));
        const struct bw_disk_header *header = (const void *)parent;
        is_below_copy |= header && bw_get64(header->flags) & BW_HEADER_RELOCATED &&
                         bw_get64(header->owner) == block->owner;
    }
    struct bw_block_pointer pointer;
    return owner && is_below_copy && !*result
               ? bw_repair_find_pointer(&self->repair->fs->reader, &owner->tree, block->bytenr,
                                        &block->first, &pointer, result)
               : NULL;
}

/* A tree block counts references by its address once its owner no longer contains it: finds such
 * blocks without items. Then the references of the others are not right yet. */
static struct bw_error *find_left_by_owner(struct bw_repair_extents *self, bool *is_new)
{
    *is_new = false;
    for (size_t i = 0, count; i < self->references.count; i += count) {
        const struct reference *references = &self->references.items[i];
        const uint64_t bytenr = references->is.bytenr;
        const struct known_block *block = find_block(self, bytenr);
        count = count_same(references, self->references.count - i);
        bool is_owned =
            !block || find_present(self, bytenr) || bw_key_map_has(&self->by_address, bytenr);
        if (!is_owned)
            BW_TRY(is_of_owner(self, block, references, count, &is_owned));
        if (is_owned)
            continue;
        BW_TRY(bw_key_map_put(&self->by_address, bytenr, 1));
        *is_new = true;
    }
    return NULL;
}

/* Takes the extent tree out of the list. Of subvolumes that are being relocated or deleted, it
 * contains what no other tree does. */
static void leave_out_extent_tree(struct bw_repair_extents *self)
{
    struct bw_listed_trees *trees = &self->trees.entries;
    size_t kept = 0;
    for (size_t i = 0; i < trees->count; i++) {
        const struct bw_listed_tree *tree = &trees->items[i];
        self->is_unknown |= tree->tree.id == BW_TREE_RELOC || tree->drop_progress.objectid;
        if (tree->tree.id != BW_EXTENT_TREE)
            trees->items[kept++] = *tree;
    }
    trees->count = kept;
}

static struct bw_error *read_all(struct bw_repair_extents *self)
{
    bool is_new = true;
    if (self->is_whole)
        leave_out_extent_tree(self);
    bw_range_set_join(&self->ranges);
    if (self->is_unknown || !self->ranges.ranges.count)
        return NULL;
    if (!self->is_whole)
        BW_TRY(read_promised(self));
    BW_SCOPED(references) struct references promised = self->references;
    self->references = (struct references){0};
    for (unsigned level = 0; is_new && level <= BW_MAX_LEVEL; level++) {
        self->references.count = self->blocks.count = 0;
        self->has_extra = false;
        BW_TRY(references_append(&self->references, promised.items, promised.count));
        BW_TRY(bw_visit_made_references(self->repair->fs, &self->trees, &self->by_address, add_made,
                                        self));
        join_references(self);
        known_blocks_sort(&self->blocks, bw_compare_first);
        BW_TRY(find_left_by_owner(self, &is_new));
    }
    return NULL;
}

/* The items of an extent. */

static uint32_t inline_size(const struct reference *reference)
{
    switch (reference->is.kind) {
    case BW_EXTENT_DATA_REF:
        return sizeof(struct bw_disk_inline_data_ref);
    case BW_SHARED_DATA_REF:
        return sizeof(struct bw_disk_inline_shared_data_ref);
    default:
        return sizeof(struct bw_disk_inline_reference);
    }
}

static uint64_t sequence_of(const struct reference *reference)
{
    const struct bw_reference *is = &reference->is;
    return is->kind == BW_EXTENT_DATA_REF ? bw_data_ref_hash(is->source, is->inode, is->offset)
                                          : is->source;
}

/* Inside of an item, types ascend, and their sequence descends. */
static int compare_inline(const void *first, const void *second)
{
    const struct reference *a = first, *b = second;
    const int order = bw_compare(a->is.kind, b->is.kind);
    return order ? order : bw_compare(sequence_of(b), sequence_of(a));
}

/* Appends a reference in the format of the extent item, or of a later item. */
static void append_reference(struct bw_buffer *data, const struct reference *reference,
                             bool is_keyed)
{
    const struct bw_reference *is = &reference->is;
    const bw_le64 source = bw_put64(is->source);
    const bw_le32 count = bw_put32((uint32_t)reference->made);
    const struct bw_disk_extent_data_ref of_file = {source, bw_put64(is->inode),
                                                    bw_put64(is->offset), count};
    if (!is_keyed)
        bw_buffer_append(data, &is->kind, 1);
    if (is->kind == BW_EXTENT_DATA_REF)
        bw_buffer_append(data, &of_file, sizeof of_file);
    else if (!is_keyed)
        bw_buffer_append(data, &source, sizeof source);
    if (is->kind == BW_SHARED_DATA_REF)
        bw_buffer_append(data, &count, sizeof count);
}

/* Whether a range lies in a chunk of one of some kinds. */
static bool is_in_chunk(const struct bw_repair_extents *self, uint64_t start, uint64_t length,
                        uint64_t kinds)
{
    const uint32_t sectorsize = self->repair->fs->superblock.sectorsize;
    for (size_t i = 0; i < self->chunks.count; i++) {
        const struct bw_chunk_info *chunk = &self->chunks.items[i];
        if (start >= chunk->logical && start - chunk->logical < chunk->length)
            return length && length <= chunk->length - (start - chunk->logical) &&
                   chunk->type & kinds && !(start % sectorsize) && !(length % sectorsize);
    }
    return false;
}

/* The item of a tree block, without references. */
static struct present item_of_block(const struct bw_fs *fs, const struct known_block *block)
{
    const struct bw_disk_tree_block_info info = {bw_key_encode(&block->first), block->level};
    struct present item = {.key = {block->bytenr, BW_METADATA_ITEM, block->level}};
    item.header.generation = bw_put64(block->generation);
    item.header.flags = bw_put64(BW_EXTENT_TREE_BLOCK);
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_SKINNY_METADATA)) {
        item.key = (struct bw_key){block->bytenr, BW_EXTENT_ITEM, fs->superblock.nodesize};
        item.info_size = sizeof info;
        memcpy(item.info, &info, sizeof info);
    }
    return item;
}

/* Describes a tree block without an item; not known if it has no header. */
static struct bw_error *describe_block(const struct bw_repair_extents *self, uint64_t bytenr,
                                       struct present *made, bool *is_known)
{
    const struct bw_repair *repair = self->repair;
    const struct known_block *known = find_block(self, bytenr);
    struct known_block block = {.level = 0};
    *is_known = known;
    if (known)
        block = *known;
    for (size_t i = 0; i < repair->findings.count && !*is_known; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        struct bw_block_pointer pointer;
        if (finding->logical != bytenr || !bw_repair_is_about_lost(finding))
            continue;
        BW_TRY(find_lost(self, finding, &pointer, is_known));
        if (*is_known)
            block = (struct known_block){.generation = pointer.expectation.generation,
                                         .first = pointer.expectation.first_key};
    }
    block.bytenr = bytenr;
    *made = item_of_block(repair->fs, &block);
    if (bw_key_map_has(&self->by_address, bytenr))
        made->header.flags = bw_put64(BW_EXTENT_TREE_BLOCK | BW_EXTENT_FULL_BACKREF);
    return NULL;
}

/* Adds up the references of an extent. False if they contradict each other or the extent tree. */
static bool add_up(const struct bw_repair_extents *self, const struct reference *references,
                   size_t count, struct reference *sum)
{
    *sum = references[0];
    sum->made = sum->promised = 0;
    for (size_t i = 0; i < count; i++) {
        const struct reference *reference = &references[i];
        if (reference->is_odd || reference->promised > reference->made ||
            is_of_block(reference) != is_of_block(sum) || reference->is.length != sum->is.length ||
            reference->made > UINT32_MAX)
            return false;
        sum->made += reference->made;
        sum->promised += reference->promised;
        sum->generation = bw_min(sum->generation, reference->generation);
        sum->is_keyed |= reference->is_keyed;
    }
    return sum->made && !self->has_extra;
}

/* Describes an extent without an item. With simple quotas, only the item has the owner of data. */
static struct bw_error *describe(const struct bw_repair_extents *self, const struct reference *sum,
                                 struct present *made, bool *is_known)
{
    const uint64_t bytenr = sum->is.bytenr;
    if (!is_of_block(sum)) {
        *is_known = is_in_chunk(self, bytenr, sum->is.length, BW_GROUP_DATA) &&
                    !(self->repair->fs->superblock.incompat_flags & BW_INCOMPAT_SIMPLE_QUOTA);
        made->key = (struct bw_key){bytenr, BW_EXTENT_ITEM, sum->is.length};
        made->header.generation = bw_put64(sum->generation);
        made->header.flags = bw_put64(IS_DATA);
        return NULL;
    }
    BW_TRY(describe_block(self, bytenr, made, is_known));
    *is_known = *is_known && is_in_chunk(self, bytenr, self->repair->fs->superblock.nodesize,
                                         BW_GROUP_METADATA | BW_GROUP_SYSTEM);
    return NULL;
}

static struct bw_error *push_item(struct bw_repair_extent_items *items, struct bw_key key,
                                  struct bw_buffer *data)
{
    BW_TRY(bw_buffer_error(data));
    BW_TRY(bw_repair_extent_items_push(items, (struct bw_repair_extent_item){key, *data}));
    *data = (struct bw_buffer){0};
    return NULL;
}

/* Whether a lost leaf begins with the item of this reference, or of one with a smaller key. */
static bool begins_leaf(const struct bw_repair_extents *self, const struct reference *reference)
{
    const struct bw_key key = {reference->is.bytenr, reference->is.kind, reference->place};
    for (size_t i = 0; i < self->firsts.count; i++) {
        const struct bw_key *first = &self->firsts.items[i];
        if (first->objectid == key.objectid && first->type >= BW_TREE_BLOCK_REF &&
            first->type <= BW_SHARED_DATA_REF && bw_key_compare(&key, first) >= 0)
            return true;
    }
    return false;
}

/* Makes the items of an extent that are missing or wrong; none if they are right. Not known: the
 * references contradict each other, or something in an item does not follow from them. Changes the
 * order of the references. */
static struct bw_error *make_items(const struct bw_repair_extents *self,
                                   struct reference *references, size_t count,
                                   struct bw_repair_extent_items *items, bool *is_known)
{
    const size_t room = self->repair->fs->superblock.nodesize - sizeof(struct bw_disk_header),
                 most = room / 16 - sizeof(struct bw_disk_item); /* of an item with references */
    const struct present *present = find_present(self, references[0].is.bytenr);
    struct present made = {.info_size = 0};
    struct reference sum;
    *is_known = add_up(self, references, count, &sum);
    if (present)
        made = *present;
    else if (*is_known)
        BW_TRY(describe(self, &sum, &made, is_known));
    const bool is_block = bw_get64(made.header.flags) & BW_EXTENT_TREE_BLOCK;
    bool is_wrong = !present || bw_get64(made.header.references) != sum.made;
    *is_known = *is_known && is_block == is_of_block(&sum) &&
                (is_block || made.key.offset == sum.is.length);
    if (!*is_known || (!is_wrong && sum.made == sum.promised))
        return NULL;

    /* Which of them are inside of the item. */
    uint32_t size = (uint32_t)sizeof made.header + made.info_size;
    for (size_t i = 0; i < count; i++)
        size += references[i].promised && !references[i].is_keyed ? inline_size(&references[i]) : 0;
    qsort(references, count, sizeof *references, compare_inline);
    for (size_t i = 0; i < count; i++) {
        struct reference *reference = &references[i];
        if (!reference->promised) {
            reference->place = sequence_of(reference);
            reference->is_keyed = (present && sum.is_keyed) || begins_leaf(self, reference) ||
                                  size + inline_size(reference) >= most;
            size += reference->is_keyed ? 0 : inline_size(reference);
        }
        is_wrong |= !reference->is_keyed && reference->made != reference->promised;
    }
    BW_AUTO_BUFFER struct bw_buffer data = {0};
    made.header.references = bw_put64(sum.made);
    bw_buffer_append(&data, &made.header, sizeof made.header);
    bw_buffer_append(&data, made.info, made.info_size);
    for (size_t i = 0; i < count; i++)
        if (!references[i].is_keyed)
            append_reference(&data, &references[i], false);
    if (is_wrong)
        BW_TRY(push_item(items, made.key, &data));
    for (size_t i = 0; i < count; i++) {
        const struct reference *reference = &references[i];
        const struct bw_key key = {sum.is.bytenr, reference->is.kind, reference->place};
        BW_AUTO_BUFFER struct bw_buffer own = {0};
        if (!reference->is_keyed || reference->made == reference->promised)
            continue;
        append_reference(&own, reference, true);
        BW_TRY(push_item(items, key, &own));
    }
    return NULL;
}

/* Items that belong in a lost leaf. */

struct bw_error *bw_repair_extents_open(struct bw_repair *repair, bool is_whole,
                                        struct bw_repair_extents **result)
{
    BW_TRY(create(repair, is_whole, result));
    if (is_whole)
        BW_TRY(bw_range_set_insert(&(*result)->ranges, 0, UINT64_MAX));
    return read_all(*result);
}

static int compare_items(const void *first, const void *second)
{
    const struct bw_repair_extent_item *a = first, *b = second;
    return bw_key_compare(&a->key, &b->key);
}

struct bw_error *bw_repair_push_block_item(struct bw_repair *repair, uint64_t bytenr,
                                           uint64_t generation, uint8_t level,
                                           const struct bw_key *first,
                                           struct bw_repair_extent_items *items)
{
    const struct known_block block = {
        .bytenr = bytenr, .generation = generation, .first = *first, .level = level};
    const struct reference owner = {.is = {.kind = BW_TREE_BLOCK_REF, .source = BW_EXTENT_TREE}};
    struct present item = item_of_block(repair->fs, &block);
    BW_AUTO_BUFFER struct bw_buffer data = {0};
    item.header.references = bw_put64(1);
    bw_buffer_append(&data, &item.header, sizeof item.header);
    bw_buffer_append(&data, item.info, item.info_size);
    append_reference(&data, &owner, false);
    return push_item(items, item.key, &data);
}

/* The bytes of a block group in extents, with those that are made. */
static uint64_t bytes_used(const struct bw_repair_extents *self, uint64_t start, uint64_t length)
{
    const uint32_t nodesize = self->repair->fs->superblock.nodesize;
    const struct presents *present = &self->present;
    const struct references *references = &self->references;
    uint64_t used = 0;
    for (size_t i = BW_FIRST_INDEX(k, present->count, present->items[k].key.objectid >= start);
         i < present->count && present->items[i].key.objectid - start < length; i++) {
        const struct bw_key *key = &present->items[i].key;
        used += key->type == BW_METADATA_ITEM ? nodesize : key->offset;
    }
    for (size_t i = BW_FIRST_INDEX(k, references->count, references->items[k].is.bytenr >= start);
         i < references->count && references->items[i].is.bytenr - start < length;
         i += count_same(&references->items[i], references->count - i)) {
        const struct reference *reference = &references->items[i];
        if (!find_present(self, reference->is.bytenr))
            used += is_of_block(reference) ? nodesize : reference->is.length;
    }
    return used;
}

/* The number of chunks whose block groups have keys in a range. */
static size_t count_chunks(const struct bw_repair_extents *self, const struct bw_key *first,
                           const struct bw_key *last)
{
    size_t count = 0;
    for (size_t i = 0; i < self->chunks.count; i++) {
        const struct bw_chunk_info *chunk = &self->chunks.items[i];
        const struct bw_key key = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
        count += bw_key_compare(&key, first) >= 0 && bw_key_compare(&key, last) <= 0;
    }
    return count;
}

struct bw_error *bw_repair_items_of_extents(struct bw_repair_extents *self,
                                            const struct bw_key *first, const struct bw_key *last,
                                            struct bw_repair_extent_items *items)
{
    const struct bw_repair *repair = self->repair;
    BW_AUTO_EXTENT_ITEMS struct bw_repair_extent_items made = {0};
    if (self->is_unknown)
        return NULL;
    for (size_t i = 0, count; i < self->references.count; i += count) {
        struct reference *references = &self->references.items[i];
        bool is_known;
        count = count_same(references, self->references.count - i);
        BW_TRY(make_items(self, references, count, &made, &is_known));
        const uint64_t bytenr = references->is.bytenr;
        if (!is_known && bytenr >= first->objectid && bytenr <= last->objectid)
            return NULL;
    }
    if (!repair->fs->block_group_tree.id) {
        BW_SCOPED(bw_repair_items) struct bw_repair_items groups = {0};
        BW_TRY(bw_repair_items_of_chunks(self->repair, BW_EXTENT_TREE, first, last, &groups));
        if (groups.count != count_chunks(self, first, last))
            return NULL; /* not all chunks can be trusted, and a mount needs them all */
        for (size_t i = 0; i < groups.count; i++) {
            struct bw_repair_item *group = &groups.items[i];
            BW_AUTO_BUFFER struct bw_buffer data = {0};
            group->data.group.used =
                bw_put64(bytes_used(self, group->key.objectid, group->key.offset));
            bw_buffer_append(&data, &group->data.group, group->size);
            BW_TRY(push_item(&made, group->key, &data));
        }
    }
    bw_repair_extent_items_sort(&made, compare_items);
    uint64_t end = 0;
    for (size_t i = 0; i < made.count; i++) {
        struct bw_repair_extent_item *item = &made.items[i];
        const struct bw_key *key = &item->key;
        if (key->type == BW_EXTENT_ITEM || key->type == BW_METADATA_ITEM) {
            if (key->objectid < end) { /* two extents overlap */
                bw_repair_drop_extent_items(items);
                return NULL;
            }
            end = key->objectid + (key->type == BW_EXTENT_ITEM ? key->offset : 1);
        }
        if (bw_key_compare(key, first) >= 0 && bw_key_compare(key, last) <= 0)
            BW_TRY(push_item(items, *key, &item->data));
    }
    return NULL;
}

/* Items that are missing. */

static bool is_about_extent(const struct bw_repair_finding *finding)
{
    static const char *const words[] = {"extent-missing",  "reference-missing", "reference-count",
                                        "reference-alone", "extent-count",      NULL};
    return bw_repair_is_any(finding, words) && finding->logical != BW_ABSENT &&
           finding->flipped_block == BW_ABSENT;
}

/* Plans the items of an extent: all findings about it are planned with the first one. */
static struct bw_error *plan_items(struct bw_repair *repair, uint64_t bytenr,
                                   const struct bw_repair_extent_items *items)
{
    struct bw_repair_finding *first = NULL;
    const unsigned group = ++repair->groups;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (repair->findings.items[i].logical == bytenr &&
            repair->findings.items[i].flipped_block != BW_ABSENT)
            return NULL;
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        if (finding->logical != bytenr || !is_about_extent(finding))
            continue;
        if (!first) {
            first = finding;
            for (size_t k = 0; k < items->count; k++) {
                const struct bw_repair_extent_item *item = &items->items[k];
                BW_TRY(bw_repair_plan_item(
                    repair, finding, &repair->fs->extent_tree, &item->key, &item->data,
                    (struct bw_repair_edit){.what = "item of the extent tree",
                                            .proof = "the references to the extent in all trees",
                                            .group = group,
                                            .reveals = item->key.type == BW_METADATA_ITEM}));
            }
        }
        finding->planned = first->planned;
        finding->block_edit = first->block_edit;
    }
    return NULL;
}

struct bw_error *bw_repair_plan_extents(struct bw_repair *repair)
{
    BW_AUTO_EXTENTS struct bw_repair_extents *self = NULL;
    unsigned planned = 0;
    for (size_t i = 0; i < repair->findings.count && !planned; i++)
        planned += is_about_extent(&repair->findings.items[i]);
    if (!planned)
        return NULL;
    BW_TRY(create(repair, false, &self));
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_about =
            is_about_extent(finding) || strcmp(finding->code->pass, "extents") == 0;
        if (is_about && finding->logical != BW_ABSENT)
            BW_TRY(bw_range_set_insert(&self->ranges, finding->logical, finding->logical + 1));
    }
    BW_TRY(read_all(self));
    planned = 0;
    for (size_t i = 0, same; i < self->references.count && planned < MOST_PLANNED; i += same) {
        struct reference *references = &self->references.items[i];
        BW_AUTO_EXTENT_ITEMS struct bw_repair_extent_items items = {0};
        bool is_known;
        same = count_same(references, self->references.count - i);
        BW_TRY(make_items(self, references, same, &items, &is_known));
        if (items.count && items.count <= MOST_PLANNED)
            BW_TRY(plan_items(repair, references->is.bytenr, &items));
        planned += (unsigned)items.count;
    }
    return NULL;
}
