/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rebuilds a lost root tree:
 *
 * 1. A scan of all metadata chunks finds the tree blocks of all generations, and in the leaves of
 *    subvolumes the directory entries of other subvolumes.
 * 2. The generation to rebuild is the newest one that was committed.
 * 3. The extent tree names the current root of every other tree, and the leaves of the root tree
 *    that are still in use. Without it, the newest blocks count as current; without a superblock
 *    also if they are complete, and newer than it.
 * 4. Leaves that are in use are copied. For all other trees, root items are made: their other
 *    members come from older leaves of the root tree, and the names of subvolumes from step 1, if
 *    the current trees still contain them.
 * 5. Without the whole extent tree, a root may be older than the data on the disk. So the extents
 *    in all leaves of subvolumes show which data were deleted and overwritten
 *    (fs/reused_extents.h), with 40 bytes for each part of an extent.
 *
 * If only parts of it are lost, all leaves that can be read stay, and the generation is its own.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "base/zeros.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "data/references.h"
#include "history/scan.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "rescue/newest_items.h"
#include "rescue/rescue.h"
#include "rescue/root_tree.h"

/* Maximum number of roots of extent trees to try; few belong to transactions that were not
 * committed. */
enum { MOST_TRIES = 256, MOST_RIVALS = 4 };

void bw_tree_roots_free(struct bw_tree_roots *roots)
{
    bw_tree_root_list_free(&roots->trees);
    bw_key_map_free(&roots->numbers);
    bw_key_map_free(&roots->leaves);
    *roots = (struct bw_tree_roots){0};
}

/* Whether block `a` is rather the root of a tree than block `b`. Balance copies the blocks to move
 * into a reloc tree of the same owner, and exchanges its blocks below the root with the tree's: at
 * the end, the root of the reloc tree leads to the old blocks. The tree's own root is never one of
 * these copies. */
static bool is_higher(const struct bw_tree_root *a, const struct bw_tree_root *b, bool by_level)
{
    if (by_level && a->root.level != b->root.level)
        return a->root.level > b->root.level;
    /* neither is NULL. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (a->root.generation != b->root.generation)
        return a->root.generation > b->root.generation;
    if (a->relocated != b->relocated)
        return b->relocated;
    return a->root.level != b->root.level ? a->root.level > b->root.level
                                          : a->root.bytenr > b->root.bytenr;
}

/* Records a block of a tree, unless a higher or newer one is recorded. The root tree does not
 * contain itself, the chunk tree, the remap tree, and trees of logs and relocation. */
static struct bw_error *record_block(struct bw_tree_roots *roots, struct bw_tree_root block,
                                     bool by_level)
{
    const uint64_t id = block.id;
    const uint32_t number = bw_key_map_get(&roots->numbers, id, UINT32_MAX);
    if (!id || id == BW_ROOT_TREE || id == BW_CHUNK_TREE || id == BW_REMAP_TREE ||
        (id > BW_LAST_SUBVOLUME && id != BW_DATA_RELOC_TREE))
        return NULL;
    if (number == UINT32_MAX) {
        BW_TRY(bw_key_map_put(&roots->numbers, id, (uint32_t)roots->trees.count));
        return bw_tree_root_list_push(&roots->trees, block);
    }
    struct bw_tree_root *root = &roots->trees.items[number];
    *root = is_higher(&block, root, by_level) ? block : *root;
    return NULL;
}

/* Using the extent tree. */

static struct bw_tree_root as_root(const struct bw_found_index *index,
                                   const struct bw_found_block *block)
{
    return (struct bw_tree_root){bw_found_owner(index, block),
                                 {block->bytenr, block->generation, block->level},
                                 block->relocated};
}

/* Whether an extent tree contains an item for a tree block. If it is unreadable, it does not. */
static struct bw_error *has_block(const struct bw_fs *fs, const struct bw_tree *tree,
                                  const struct bw_root_pointer *block, bool *has)
{
    struct bw_item_range range;
    struct bw_tree_extent extent;
    *has = false;
    bw_item_range_begin(&range, &fs->reader, tree, (struct bw_key){block->bytenr, 0, 0},
                        (struct bw_key){block->bytenr, UINT8_MAX, UINT64_MAX});
    while (bw_item_range_next(&range))
        *has |= !range.error && bw_tree_extent_decode(&range.item, &extent) &&
                extent.generation == block->generation && extent.level == block->level;
    return bw_item_range_end(&range, NULL);
}

static int newest_first(const void *left, const void *right)
{
    return is_higher(left, right, false) ? -1 : is_higher(right, left, false);
}

/* Facts about all trees from an extent tree. */
struct survey {
    const struct bw_fs *fs;
    const struct bw_found_index *index;
    struct bw_tree_roots *roots;
    struct bw_tree_extent block; /* the last one with an extent item */
    bool is_missing;             /* it is not in the index */
    bool lost;                   /* a part of the extent tree cannot be read */
    size_t read, own; /* number of blocks of the extent tree that were read, and that it contains
                       * items for */
    size_t known;     /* number of blocks with an item that are in the index */
    uint64_t bytes;   /* total of all extents */
};

static struct bw_error *add_reference(struct survey *survey,
                                      const struct bw_extent_reference *reference)
{
    const struct bw_tree_extent *block = &survey->block;
    if (reference->shared)
        return NULL;
    survey->own += reference->referrer == BW_EXTENT_TREE;
    if (reference->referrer == BW_ROOT_TREE && survey->is_missing) {
        survey->roots->missing--;
        survey->is_missing = false;
    }
    if (reference->referrer == BW_ROOT_TREE && !block->level)
        BW_TRY(bw_key_map_put(&survey->roots->leaves, block->bytenr, 1));
    const struct bw_tree_root root = {
        reference->referrer, {block->bytenr, block->generation, block->level}, false};
    return record_block(survey->roots, root, true);
}

static struct bw_error *add_leaf(struct survey *survey, const struct bw_node *leaf)
{
    struct bw_extent_reference reference;
    struct bw_extent_entry extent;
    struct bw_tree_extent block;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        if (bw_extent_entry_decode(survey->fs, &item, &extent))
            survey->bytes += extent.length;
        if (bw_tree_extent_decode(&item, &block)) {
            survey->block = block;
            survey->is_missing = !bw_found_find(survey->index, block.bytenr, block.generation);
            survey->roots->missing += survey->is_missing;
            survey->known += !survey->is_missing;
            while (bw_extent_reference_next(&block.references, &reference))
                BW_TRY(add_reference(survey, &reference));
        } else if (item.key.objectid == survey->block.bytenr &&
                   bw_extent_reference_of_key(&item.key, &reference)) {
            BW_TRY(add_reference(survey, &reference));
        }
    }
    return NULL;
}

/* Adds the roots that are not in the extent tree; all roots if there is no extent tree. Each change
 * of a tree changes its root, so the root is the highest of its newest blocks. */
static struct bw_error *add_newest_roots(const struct bw_found_index *index, uint64_t limit,
                                         struct bw_tree_roots *roots)
{
    BW_SCOPED(bw_tree_roots) struct bw_tree_roots found = {0};
    for (size_t i = 0; i < index->blocks.count && !roots->proven; i++) {
        const struct bw_tree_root root = as_root(index, &index->blocks.items[i]);
        if (root.root.generation <= limit)
            BW_TRY(record_block(&found, root, false));
    }
    for (size_t i = 0; i < found.trees.count; i++) {
        const struct bw_tree_root *tree = &found.trees.items[i];
        const uint32_t number = bw_key_map_get(&roots->numbers, tree->id, UINT32_MAX);
        if (number == UINT32_MAX) {
            BW_TRY(record_block(roots, *tree, false));
            continue;
        }

        /* In an extent tree that is known only in part, a higher block that is not older is closer
         * to the root. */
        struct bw_root_pointer *known = &roots->trees.items[number].root;
        if (tree->root.level > known->level && tree->root.generation >= known->generation)
            *known = tree->root;
    }
    bw_key_map_free(&roots->numbers);
    bw_tree_root_list_sort(&roots->trees, bw_compare_first);
    return NULL;
}

/* First adds the roots from the extent tree of the last commit. Only that has items for its own
 * root and for the root of the root tree. Without a valid superblock, a root in a crafted file
 * could contain an item for itself and be newer than all others. Therefore, it must also contain at
 * least half as many blocks as any of some older roots. */
struct bw_error *bw_tree_roots_find(struct bw_fs *fs, const struct bw_found_index *index,
                                    uint64_t newest, struct bw_tree_roots *roots)
{
    const struct bw_superblock *super = &fs->superblock;
    const bool is_super_valid = super->root.bytenr && newest <= super->generation;
    const bool lists_blocks = !(super->incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
    const size_t most_rivals = is_super_valid ? 1 : MOST_RIVALS;

    /* All blocks that may be the root, the most likely first. */
    BW_SCOPED(bw_tree_root_list) struct bw_tree_root_list candidates = {0};
    for (size_t i = 0; i < index->blocks.count && lists_blocks; i++) {
        const struct bw_tree_root root = as_root(index, &index->blocks.items[i]);
        if (root.id == BW_EXTENT_TREE && root.root.generation <= newest)
            BW_TRY(bw_tree_root_list_push(&candidates, root));
    }
    bw_tree_root_list_sort(&candidates, newest_first);

    size_t rivals = 0, most = 0;
    for (size_t i = 0; i < candidates.count && i < MOST_TRIES && rivals < most_rivals; i++) {
        const struct bw_tree tree = {.id = BW_EXTENT_TREE, .root = candidates.items[i].root};
        bool is_committed;
        BW_TRY(has_block(fs, &tree, &tree.root, &is_committed));
        if (is_committed && is_super_valid)
            BW_TRY(has_block(fs, &tree, &super->root, &is_committed));
        if (!is_committed)
            continue;
        BW_SCOPED(bw_tree_roots) struct bw_tree_roots rival = {.generation = tree.root.generation};
        struct survey survey = {.fs = fs, .index = index, .roots = &rival};
        BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .nodes = true};
        bw_block_scan_begin(&scan, &fs->reader, &tree);
        while (bw_block_scan_next(&scan)) {
            survey.lost |= scan.step == BW_SCAN_LOST;
            survey.read += scan.step != BW_SCAN_LOST;
            if (scan.step == BW_SCAN_LEAF)
                BW_TRY(add_leaf(&survey, &scan.node));
        }
        BW_TRY(bw_block_scan_end(&scan));

        /* A part of the extent tree may contain items for its own highest block and for the root
         * of the root tree. Only the whole extent tree has items for all its blocks, and for all
         * bytes in use. */
        rival.proven = !survey.lost && survey.own == survey.read &&
                       (!is_super_valid || survey.bytes == super->bytes_used);
        if (!rivals++ || survey.known / 2 > most) {
            const struct bw_tree_roots worse = *roots;
            *roots = rival;
            rival = worse;
            most = survey.known;
        }
    }
    return add_newest_roots(index, roots->generation ? roots->generation : newest, roots);
}

const struct bw_tree_root *bw_tree_root_of(const struct bw_tree_roots *roots, uint64_t id)
{
    const size_t at = BW_FIRST_INDEX(i, roots->trees.count, roots->trees.items[i].id >= id);
    return at < roots->trees.count && roots->trees.items[at].id == id ? &roots->trees.items[at]
                                                                      : NULL;
}

/* Rebuilding. */

/* A directory entry of a subvolume. */
struct subvolume_name {
    uint64_t subvolume;  /* the subvolume it leads to */
    uint64_t parent;     /* tree of the leaf that contains it */
    uint64_t directory;  /* inode of the directory */
    uint64_t index;      /* offset of its DIR_INDEX key */
    uint64_t generation; /* transaction that created the entry */
    size_t at;           /* offset of its name in `bytes` */
    uint16_t length;     /* of its name */
};

BW_VECTOR(subvolume_names, struct subvolume_name);

/* The new root tree and its sources. */
struct making {
    struct bw_fs *fs;
    struct bw_found_index index;
    struct bw_tree_roots roots;
    struct bw_newest items;       /* from leaves of the root tree */
    struct bw_key_map intact;     /* the leaves of fs->damaged_root_tree that can be read */
    struct subvolume_names names; /* while the scan runs, `lock` protects both */
    struct bw_buffer bytes;       /* of the names */
    pthread_mutex_t lock;
    struct bw_tree_editor tree;
    uint64_t newest; /* the generation to rebuild */
    uint64_t found;  /* the newest one that was committed, or may have been */
    bool names_lost; /* a directory cannot be read */
};

struct bw_error *bw_rescue_end(struct bw_error *error, struct bw_error *why)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY) {
        bw_error_free(error ? why : NULL);
        return error;
    }
    bw_error_free(error);
    return why;
}

struct bw_error *bw_rescue_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor)
{
    fs->memory.nodesize = fs->reader.nodesize;
    fs->reader.memory = &fs->memory;
    return bw_editor_create_empty(editor, &fs->reader, &fs->memory, id, fs->superblock.generation);
}

/* Decodes an entry of a subvolume; false if the item is something else. */
static bool decode_entry(const struct bw_item *item, struct bw_dir_entry *entry,
                         uint64_t *generation)
{
    const struct bw_disk_dir_item *disk = (const void *)item->data;
    struct bw_cursor cursor = bw_cursor_of(item);
    if (item->key.type != BW_DIR_INDEX || !bw_dir_entry_next(&cursor, entry) ||
        entry->location.type != BW_ROOT_ITEM || !bw_name_is_valid(entry->name, entry->name_length))
        return false;
    *generation = bw_get64(disk->transid);
    return true;
}

/* Adds the entries in a leaf of a subvolume. Threads of the scan call it. False if memory ran
 * out. */
static bool add_names_of_block(void *context, const struct bw_node *block)
{
    struct making *making = context;
    const uint64_t tree = bw_get64(((const struct bw_disk_header *)block->block)->owner);
    struct bw_item item;
    struct bw_dir_entry entry;
    uint64_t generation;
    bool added = true;
    if (block->level || !bw_is_subvolume_id(tree))
        return true;
    for (uint32_t slot = 0; added && bw_leaf_next(block, &slot, &item);) {
        if (!decode_entry(&item, &entry, &generation))
            continue;
        pthread_mutex_lock(&making->lock);
        const struct subvolume_name name = {
            entry.location.objectid, tree,       item.key.objectid,
            item.key.offset,         generation, making->bytes.length,
            entry.name_length};
        added = !subvolume_names_push(&making->names, name);
        bw_buffer_append(&making->bytes, entry.name, entry.name_length);
        added &= !making->bytes.failed;
        pthread_mutex_unlock(&making->lock);
    }
    return added;
}

/* Sorts the entries of a subvolume together, the newest first, and equal entries of the same tree
 * next to each other. */
static int by_subvolume(const void *left, const void *right)
{
    const struct subvolume_name *a = left, *b = right;
    return BW_COMPARE_ALL(
        ((uint64_t[]){a->subvolume, b->generation, a->parent, a->directory, a->index, a->length}),
        ((uint64_t[]){b->subvolume, a->generation, b->parent, b->directory, b->index, b->length}));
}

static bool report_progress(void *context, uint64_t done, uint64_t total)
{
    const struct making *making = context;
    if (making->fs->searched)
        making->fs->searched(making->fs->searched_context, done, total);
    return true;
}

/* The newest generation that is at most `limit`. `*trees` is the number of trees that have blocks
 * of it, at most 2. */
static uint64_t newest_until(const struct bw_found_index *index, uint64_t limit, unsigned *trees)
{
    uint64_t newest = 0;
    uint32_t first = 0;
    *trees = 0;
    for (size_t i = 0; i < index->blocks.count; i++) {
        const struct bw_found_block *block = &index->blocks.items[i];
        if (block->generation > limit || block->generation < newest)
            continue;
        if (block->generation > newest || !*trees) {
            *trees = 1;
            first = block->owner;
        } else if (block->owner != first) {
            *trees = 2;
        }
        newest = block->generation;
    }
    return newest;
}

/* The newest generation, without a transaction that was not committed. Every transaction writes
 * several trees, including the root tree and the extent tree, so blocks of a single tree prove
 * nothing. If the newest transaction is newer than the superblock by more than one generation, the
 * superblock is stale. */
static uint64_t newest_generation(struct making *making)
{
    enum { TRIES = 64 };
    const uint64_t known = making->fs->superblock.generation;
    uint64_t limit = UINT64_MAX, found = 0;
    unsigned trees = 0;
    for (unsigned i = 0; limit && i < TRIES && trees < 2; i++) {
        found = newest_until(&making->index, limit, &trees);
        limit = found ? found - 1 : 0;
    }
    if (trees == 2 && !making->fs->superblock.root.bytenr)
        making->found = found;
    if (trees < 2 || found <= known + 1)
        found = known;
    return newest_until(&making->index, found, &trees);
}

/* Reads the leaves of the root tree. Without an extent tree, leaves of the newest generation count
 * as in use. */
static struct bw_error *read_leaves(struct making *making)
{
    const struct bw_found_index *index = &making->index;
    const struct bw_key_map *present = &making->roots.leaves;
    const struct bw_tree_reader *reader = &making->fs->reader;
    const struct bw_tree *damaged = &making->fs->damaged_root_tree;

    /* The leaves of a damaged root tree stay unchanged. */
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    if (damaged->root.bytenr)
        bw_block_scan_begin(&scan, reader, damaged);
    while (damaged->root.bytenr && bw_block_scan_next(&scan)) {
        if (scan.error)
            continue;
        BW_TRY(bw_key_map_put(&making->intact, scan.pointer.bytenr, 1));
        BW_TRY(bw_newest_add(&making->items, &scan.node, BW_PRESENT_RANK, 0));
    }
    BW_TRY(bw_block_scan_end(&scan));

    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; i < index->blocks.count; i++) {
        const struct bw_found_block *block = &index->blocks.items[i];
        if (block->level || block->generation > making->newest ||
            bw_found_owner(index, block) != BW_ROOT_TREE ||
            bw_key_map_has(&making->intact, block->bytenr))
            continue;
        const struct bw_block_pointer pointer = bw_found_pointer(index, block);
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, buffer);
        if (error)
            continue; /* the mirror it was found in has become unreadable since */
        bool is_present = block->generation == making->newest;
        if (present->count)
            is_present = bw_key_map_has(present, block->bytenr);
        const struct bw_node leaf = bw_node_view(buffer, reader->nodesize);
        BW_TRY(bw_newest_add(&making->items, &leaf,
                             is_present ? BW_PRESENT_RANK : block->generation, 0));
    }
    return bw_newest_settle(&making->items);
}

/* The newest root item of a tree, or NULL. */
static const struct bw_newest_item *root_item_of(const struct making *making, uint64_t tree)
{
    const struct bw_newest_items *items = &making->items.items;
    const struct bw_key key = {tree, BW_ROOT_ITEM, 0};
    const size_t at = bw_newest_first(&making->items, &key);
    return at < items->count && items->items[at].key.objectid == tree &&
                   items->items[at].key.type == BW_ROOT_ITEM
               ? &items->items[at]
               : NULL;
}

/* The generation when a snapshot was created; 0 if the tree is not a snapshot, or that is
 * unknown. */
static uint64_t snapshot_time(const struct making *making, uint64_t tree)
{
    const struct bw_newest_item *item = root_item_of(making, tree);
    const struct bw_disk_root_item *disk = NULL;
    if (!item || item->size < sizeof *disk)
        return 0;
    disk = (const void *)bw_newest_view(&making->items, item).data;
    return bw_is_zeros(disk->parent_uuid, BW_UUID_SIZE) ? 0 : bw_get64(disk->origin_transid);
}

/* Whether the current tree contains an entry. */
static struct bw_error *is_present_name(struct making *making, const struct subvolume_name *name,
                                        bool *present)
{
    const struct bw_tree_root *root = bw_tree_root_of(&making->roots, name->parent);
    const struct bw_key key = {name->directory, BW_DIR_INDEX, name->index};
    struct bw_dir_entry entry;
    struct bw_item_range range;
    uint64_t generation;
    *present = false;
    if (!root)
        return NULL;
    const struct bw_tree tree = {root->id, root->root, 0};
    const struct bw_tree_reader reader = bw_fs_name_reader(making->fs);
    bw_item_range_begin(&range, &reader, &tree, key, key);
    while (bw_item_range_next(&range)) {
        making->names_lost |= range.error != NULL;
        *present |= !range.error && decode_entry(&range.item, &entry, &generation) &&
                    entry.location.objectid == name->subvolume &&
                    entry.name_length == name->length && generation == name->generation &&
                    memcmp(entry.name, making->bytes.data + name->at, name->length) == 0;
    }
    return bw_item_range_end(&range, NULL);
}

/* Whether a block is known to be the root of its tree: a root item says so, or the superblock. */
static bool is_certain(const struct making *making, const struct bw_tree_root *tree)
{
    const struct bw_root_pointer *root = &tree->root;
    const struct bw_newest_item *item = root_item_of(making, tree->id);
    struct bw_tree_root named[1 + 4 * BW_BACKUP_ROOTS] = {{0}};
    size_t count = 0;
    if (item && item->size >= offsetof(struct bw_disk_root_item, generation_v2)) {
        const struct bw_disk_root_item *disk =
            (const void *)bw_newest_view(&making->items, item).data;
        named[count++] = (struct bw_tree_root){
            tree->id, {bw_get64(disk->bytenr), bw_get64(disk->generation), disk->level}, false};
    }
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &making->fs->superblock.backup_roots[i];
        named[count++] = (struct bw_tree_root){BW_EXTENT_TREE, backup->extent_root, false};
        named[count++] = (struct bw_tree_root){BW_TOP_SUBVOLUME, backup->fs_root, false};
        named[count++] = (struct bw_tree_root){BW_DEVICE_TREE, backup->device_root, false};
        named[count++] = (struct bw_tree_root){BW_CSUM_TREE, backup->csum_root, false};
    }
    for (size_t i = 0; i < count; i++)
        if (named[i].id == tree->id && named[i].root.bytenr == root->bytenr &&
            named[i].root.generation == root->generation && named[i].root.level == root->level)
            return true;
    return false;
}

/* If the last item of a leaf is an extent of a file, or checksums of data, no other item begins
 * before the end of it. */
static void skip_last_range(const struct bw_fs *fs, const struct bw_node *leaf, struct bw_key *last)
{
    struct bw_file_extent extent;
    struct bw_item item;
    if (!bw_leaf_item(leaf, leaf->item_count - 1, &item))
        return;
    const uint64_t summed =
        item.size / bw_fs_checksum_size(fs) * (uint64_t)fs->superblock.sectorsize;
    if (last->type == BW_EXTENT_CSUM && summed && summed < UINT64_MAX - last->offset)
        last->offset += summed - 1;
    if (last->type != BW_EXTENT_DATA)
        return;
    BW_AUTO_ERROR struct bw_error *error =
        bw_file_extent_decode(&item, bw_fs_alignment(fs), &extent);
    if (!error && extent.num_bytes < UINT64_MAX - last->offset)
        last->offset += extent.num_bytes - 1;
}

/* If the root of a tree may be lost, its highest known block is only a part of it: other keys than
 * those below the block are lost. */
static struct bw_error *surround_root(struct making *making, struct bw_tree_root *root)
{
    const struct bw_key lowest = {BW_SUBVOLUME_ROOT_INODE, BW_INODE_ITEM, 0};
    const struct bw_tree_reader *reader = &making->fs->reader;
    struct bw_tree tree = {.id = root->id, .root = root->root};
    struct bw_block_pointer pointer = bw_tree_root_pointer(&tree, false);
    struct bw_key first = {0}, last = {0};
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(reader, 1);
    if (!block)
        return bw_error_no_memory();
    for (uint8_t level = root->root.level + 1; level--;) {
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, block);
        const struct bw_node node = bw_node_view(block, reader->nodesize);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        if (level == root->root.level && (error || !node.item_count))
            return NULL; /* all of it is lost, or it is empty: no node is above an empty block */
        if (error || !node.item_count)
            break; /* the keys behind this block are lost with it */
        if (level == root->root.level)
            first = bw_first_key(&node);
        last = level ? bw_node_key(&node, node.item_count - 1)
                     : bw_leaf_key(&node, node.item_count - 1);
        if (level)
            pointer = bw_tree_child_pointer(&pointer, &node, node.item_count - 1);
        else
            skip_last_range(making->fs, &node, &last);
    }
    if (bw_key_compare(&first, &last) > 0 || root->root.level + 1 >= BW_MAX_LEVEL)
        return NULL; /* keys in disorder, or a tree that cannot get higher */
    last = bw_key_after(last);
    const bool has_first = bw_is_subvolume_id(root->id) && bw_key_compare(&first, &lowest) <= 0;
    BW_TRY(bw_edit_surround(&making->fs->memory, &tree, &first, &last, has_first));
    root->root = tree.root;
    return NULL;
}

/* Keeps one entry for each subvolume, in ascending order: the entry in the current trees that was
 * not inherited by a snapshot. Sets `names_lost` if a part of these cannot be read, or the
 * beginning of a tree is lost: then other parts of it may contain names. */
static struct bw_error *settle_names(struct making *making)
{
    struct subvolume_names *names = &making->names;
    size_t kept = 0;
    subvolume_names_sort(names, by_subvolume);
    for (size_t i = 0; i < names->count; i++) {
        const struct subvolume_name name = names->items[i], *before = &names->items[i ? i - 1 : 0];
        const char *bytes = making->bytes.data;
        bool present;
        if ((kept && names->items[kept - 1].subvolume == name.subvolume) ||
            (i && by_subvolume(before, &name) == 0 &&
             memcmp(bytes + before->at, bytes + name.at, name.length) == 0) ||
            !bw_tree_root_of(&making->roots, name.subvolume) ||
            snapshot_time(making, name.parent) > name.generation)
            continue;
        BW_TRY(is_present_name(making, &name, &present));
        if (present)
            names->items[kept++] = name;
    }
    names->count = kept;

    const struct bw_tree_root_list *trees = &making->roots.trees;
    const struct bw_key top = {BW_SUBVOLUME_ROOT_INODE, BW_INODE_ITEM, 0};
    bool has_top = true;
    for (size_t i = 0; !making->roots.proven && i < trees->count && has_top; i++) {
        const struct bw_tree tree = {.id = trees->items[i].id, .root = trees->items[i].root};
        struct bw_item_range range;
        if (!bw_is_subvolume_id(tree.id))
            continue;
        has_top = false;
        bw_item_range_begin(&range, &making->fs->reader, &tree, top, top);
        while (bw_item_range_next(&range))
            has_top |= !range.error;
        BW_TRY(bw_item_range_end(&range, NULL));
    }
    making->names_lost |= !has_top;
    return NULL;
}

static struct bw_error *put_item(struct making *making, const struct bw_key *key, const void *data,
                                 uint32_t size)
{
    return size > bw_edit_room(&making->tree) ? NULL : bw_edit_put(&making->tree, key, data, size);
}

/* Adds the root item of a tree whose root is known; `old` is the newest one found, or NULL. A
 * subvolume without a directory entry is deleted, although its blocks still exist. */
static struct bw_error *put_root_item(struct making *making, const struct bw_tree_root *tree,
                                      const struct bw_newest_item *old)
{
    const struct subvolume_names *names = &making->names;
    const uint64_t generation = tree->root.generation;
    const bool is_subvolume = bw_is_subvolume_id(tree->id);
    const size_t at = BW_FIRST_INDEX(i, names->count, names->items[i].subvolume >= tree->id);
    const bool has_name = at < names->count && names->items[at].subvolume == tree->id;
    const bool is_deleted =
        tree->id != BW_TOP_SUBVOLUME && is_subvolume && !making->names_lost && !has_name;
    struct bw_disk_root_item item = {.inode = {.generation = bw_put64(1),
                                               .size = bw_put64(3),
                                               .bytes = bw_put64(making->fs->reader.nodesize),
                                               .link_count = bw_put32(1),
                                               .mode = bw_put32(040755)}};
    if (is_subvolume)
        item.root_directory = bw_put64(BW_SUBVOLUME_ROOT_INODE);
    if (old)
        memcpy(&item, bw_newest_view(&making->items, old).data,
               old->size < sizeof item ? old->size : sizeof item);
    item.bytenr = bw_put64(tree->root.bytenr);
    item.level = tree->root.level;
    item.generation = item.generation_v2 = bw_put64(generation);
    item.last_snapshot = bw_put64(generation);
    item.reference_count = bw_put32(!is_deleted);
    return put_item(making, old ? &old->key : &(struct bw_key){tree->id, BW_ROOT_ITEM, 0}, &item,
                    sizeof item);
}

/* Makes the new tree of the items in the leaves, the roots, and the names of subvolumes. */
static struct bw_error *make_tree(struct making *making)
{
    const struct bw_newest *items = &making->items;
    const struct bw_tree_root_list *trees = &making->roots.trees;

    /* Items of leaves that are in use, and those that never change, are valid without a proof. */
    struct bw_item view;
    for (size_t i = 0; bw_newest_next(items, &i, &view);) {
        const struct bw_newest_item *item = &items->items.items[i - 1];
        const struct bw_key *key = &item->key;
        const bool is_lasting =
            key->objectid == BW_ROOT_TREE_DIR &&
            (key->type == BW_DIR_ITEM || key->type == BW_INODE_ITEM || key->type == BW_INODE_REF);
        const struct bw_tree_root *tree = bw_tree_root_of(&making->roots, key->objectid);
        if (item->rank == BW_PRESENT_RANK || is_lasting) {
            BW_TRY(put_item(making, key, view.data, view.size));
        } else if (key->type == BW_ROOT_ITEM && tree) {
            BW_TRY(put_root_item(making, tree, item));
        } else if (key->type == BW_ROOT_ITEM && !making->roots.proven) {
            BW_TRY(put_item(making, key, view.data, view.size));
        }
    }
    for (size_t i = 0; i < trees->count; i++) {
        const struct bw_key key = {trees->items[i].id, BW_ROOT_ITEM, 0};
        if (!root_item_of(making, key.objectid) && !bw_newest_is_present(items, &key))
            BW_TRY(put_root_item(making, &trees->items[i], NULL));
    }

    /* Each name is in two items. */
    for (size_t i = 0; i < making->names.count; i++) {
        const struct subvolume_name *name = &making->names.items[i];
        const struct bw_key up = {name->subvolume, BW_ROOT_BACKREF, name->parent};
        const struct bw_key down = {name->parent, BW_ROOT_REF, name->subvolume};
        struct {
            struct bw_disk_root_ref ref;
            uint8_t name[BW_NAME_MAX];
        } item = {{bw_put64(name->directory), bw_put64(name->index), bw_put16(name->length)}, {0}};
        const uint32_t size = (uint32_t)sizeof item.ref + name->length;
        memcpy(item.name, making->bytes.data + name->at, name->length);
        if (bw_newest_is_present(items, &up))
            continue;
        BW_TRY(put_item(making, &up, &item, size));
        BW_TRY(put_item(making, &down, &item, size));
    }
    return NULL;
}

/* Finds data whose space was used again. Roots that are not proven may lead to such data: those of
 * deleted subvolumes, or older ones. All leaves of subvolumes are read, for their generations: even
 * one that is no longer in use proves that older data were freed. */
static struct bw_error *find_reused_data(struct making *making)
{
    struct bw_fs *fs = making->fs;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&fs->reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    bw_seen_extents_free(&fs->reused);
    for (size_t i = 0; i < making->index.blocks.count; i++) {
        const struct bw_found_block *block = &making->index.blocks.items[i];
        const struct bw_block_pointer pointer = bw_found_pointer(&making->index, block);
        if (block->level || block->generation > making->newest ||
            !bw_is_subvolume_id(pointer.expectation.owner))
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(&fs->reader, &pointer, buffer);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        const struct bw_node leaf = bw_node_view(buffer, fs->reader.nodesize);
        if (!error)
            BW_TRY(bw_seen_extents_add_leaf(&fs->reused, &leaf, block->generation,
                                            bw_fs_alignment(fs)));
    }
    return bw_seen_extents_settle(&fs->reused);
}

/* Snapshots share blocks. In a crafted image, tens of thousands of trees can share all of them, and
 * reading each tree would take hours: no more than this many times the found blocks are read. */
#define SHARING 16

static bool has_files(uint64_t tree)
{
    return bw_is_subvolume_id(tree) || tree == BW_CSUM_TREE;
}

/* Without a superblock, the newest extent tree that was found may be older than the last commit.
 * Its roots are replaced by newer ones, if no block of subvolumes and checksums that is newer than
 * it is lost. If a root is lower than the older one, or has a block beside it, the root above them
 * is lost. New data without a newer checksum tree have no checksums: their transaction was perhaps
 * never completed. The extent tree still tells which trees without newer blocks were deleted, and
 * which blocks are the roots of the others. */
static struct bw_error *prefer_newer_roots(struct making *making)
{
    const struct bw_found_index *index = &making->index;
    const uint64_t older = making->roots.generation;
    BW_SCOPED(bw_tree_roots) struct bw_tree_roots roots = {0}, merged = {0};
    bool is_complete = true, has_data = false;
    size_t read = 0;
    BW_TRY(add_newest_roots(index, making->found, &roots));
    for (size_t i = 0; i < index->blocks.count && is_complete; i++) {
        const struct bw_tree_root block = as_root(index, &index->blocks.items[i]);
        const struct bw_tree_root *tree = bw_tree_root_of(&roots, block.id);
        is_complete = !tree || !has_files(block.id) || block.root.generation <= older ||
                      block.root.generation != tree->root.generation ||
                      block.root.level != tree->root.level || block.relocated ||
                      block.root.bytenr == tree->root.bytenr;
    }
    for (size_t i = 0; i < roots.trees.count && is_complete; i++) {
        const struct bw_tree tree = {.id = roots.trees.items[i].id,
                                     .root = roots.trees.items[i].root};
        BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .newer_than = older};
        const struct bw_tree_root *before = bw_tree_root_of(&making->roots, tree.id);
        if (tree.root.generation <= older || !has_files(tree.id))
            continue;
        is_complete = !before || before->root.level <= tree.root.level;
        bw_block_scan_begin(&scan, &making->fs->reader, &tree);
        while (is_complete && bw_block_scan_next(&scan)) {
            struct bw_item item;
            read++;
            is_complete = scan.step != BW_SCAN_LOST && read / SHARING <= index->blocks.count;
            for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);) {
                const struct bw_disk_file_extent *extent = (const void *)item.data;
                has_data |= item.key.type == BW_EXTENT_DATA && item.size >= sizeof *extent &&
                            extent->type == BW_FILE_EXTENT_REGULAR &&
                            bw_get64(extent->generation) > older;
            }
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    const struct bw_tree_root *sums = bw_tree_root_of(&roots, BW_CSUM_TREE);
    if (!is_complete || (has_data && (!sums || sums->root.generation <= older)))
        return NULL;
    for (size_t i = 0; i < making->roots.trees.count; i++) {
        const struct bw_tree_root *before = &making->roots.trees.items[i];
        const struct bw_tree_root *tree = bw_tree_root_of(&roots, before->id);
        if (!tree || tree->root.generation <= older)
            BW_TRY(bw_tree_root_list_push(&merged.trees, *before));
    }
    for (size_t i = 0; i < roots.trees.count; i++)
        if (roots.trees.items[i].root.generation > older)
            BW_TRY(bw_tree_root_list_push(&merged.trees, roots.trees.items[i]));
    bw_tree_root_list_sort(&merged.trees, bw_compare_first);
    const struct bw_tree_roots worse = making->roots;
    making->roots = merged;
    making->newest = making->found;
    merged = worse;
    return NULL;
}

static struct bw_error *rebuild_tree(struct making *making)
{
    struct bw_fs *fs = making->fs;
    const struct bw_superblock *super = &fs->superblock;
    struct bw_scan_ranges ranges = {0};
    struct bw_history_scan scan = {.fs = fs,
                                   .ranges = &ranges,
                                   .index = &making->index,
                                   .doubts_zeros = true,
                                   .progress = report_progress,
                                   .visit = add_names_of_block,
                                   .context = making};
    struct bw_error *error = bw_scan_add_chunks(fs, &ranges);
    if (!error && ranges.bytes > BW_RESCUE_LIMIT && !fs->scan)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_advise(bw_error_create(BW_ERROR_NOT_FOUND,
                                                     "the root tree cannot be read completely"),
                                     "`scan` rebuilds it from %" PRIu64 " GiB of tree blocks",
                                     ranges.bytes >> 30));
    else if (!error)
        error = bw_history_scan(&scan);
    bw_scan_range_list_free(&ranges.ranges);
    BW_TRY(error);

    /* A damaged root tree is completed with the trees of the same generation. */
    const bool is_damaged = fs->damaged_root_tree.root.bytenr;
    making->newest = is_damaged ? super->generation : newest_generation(making);
    BW_TRY(bw_tree_roots_find(making->fs, &making->index, making->newest, &making->roots));

    /* Blocks that are newer than the superblock mean that it is stale, or that an older image was
     * written over a part of the device. In that case, parts of the newer generation are lost;
     * unless even more of the superblock's generation is, that one is rebuilt instead. */
    if (super->root.bytenr && making->newest > super->generation && making->roots.missing) {
        BW_SCOPED(bw_tree_roots) struct bw_tree_roots own = {.missing = 0};
        BW_TRY(bw_tree_roots_find(making->fs, &making->index, super->generation, &own));
        if (own.generation && own.missing <= making->roots.missing) {
            const struct bw_tree_roots newer = making->roots;
            making->roots = own;
            own = newer;
        }
    }
    if (making->roots.generation && !is_damaged)
        making->newest = making->roots.generation;
    if (making->found > making->newest)
        BW_TRY(prefer_newer_roots(making));
    if (!bw_tree_root_of(&making->roots, BW_TOP_SUBVOLUME))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no subvolume was found");
    BW_TRY(read_leaves(making));
    BW_TRY(bw_rescue_begin_tree(fs, BW_ROOT_TREE, &making->tree));
    for (size_t i = 0; i < making->roots.trees.count && !making->roots.proven; i++)
        if (!is_certain(making, &making->roots.trees.items[i]))
            BW_TRY(surround_root(making, &making->roots.trees.items[i]));
    BW_TRY(settle_names(making));
    if (!making->roots.proven)
        BW_TRY(find_reused_data(making));
    return make_tree(making);
}

struct bw_error *bw_rescue_root_tree(struct bw_fs *fs, struct bw_error *why)
{
    struct making making = {.fs = fs, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct bw_tree_roots *roots = &making.roots;
    bw_found_init(&making.index);
    struct bw_error *error = rebuild_tree(&making);
    if (!error) {
        fs->root_tree = making.tree.tree;
        fs->is_remade = making.newest == fs->superblock.generation &&
                        (roots->proven || fs->damaged_root_tree.root.bytenr);
        bw_fs_report(fs, BW_DAMAGE, why);
        bw_fs_report_text(
            fs, BW_WARNING, BW_ERROR_CORRUPT,
            "the root tree was rebuilt from tree blocks, with %zu tree%s of generation %" PRIu64
            "%s",
            roots->trees.count, bw_plural(roots->trees.count), making.newest,
            roots->proven ? "" : "; some may be older or deleted");
        if (making.found > making.newest)
            bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                              "files are shown as of generation %" PRIu64 "; generation %" PRIu64
                              " is not complete",
                              making.newest, making.found);
    }
    bw_editor_destroy(&making.tree);
    subvolume_names_free(&making.names);
    bw_buffer_free(&making.bytes);
    bw_newest_free(&making.items);
    bw_key_map_free(&making.intact);
    bw_tree_roots_free(&making.roots);
    bw_found_free(&making.index);
    return bw_rescue_end(error, why);
}
