/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The root tree is lost: a new one is made. Leaves of it that are still in use are taken as they
 * are. For all other trees the present root is found (tree_roots.h); what a root item says besides
 * comes from older leaves of the root tree, and names of subvolumes from the directories.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "rescue/newest_items.h"
#include "history/scan.h"
#include "rescue/subvolume_names.h"
#include "rescue/rescue.h"

/* The new root tree, and what it is made of. */
struct making {
    struct bw_fs *fs;
    struct bw_found_index index;
    struct bw_tree_roots roots;
    struct bw_newest items; /* of leaves of the root tree */
    struct bw_subvolume_names names;
    struct bw_tree_editor tree;
    uint64_t newest; /* generation of the state */
    bool names_lost; /* some directory cannot be read */
    size_t made;     /* root items that are not from a present leaf */
};

struct bw_error *bw_trunk_give_up(struct bw_error *error, struct bw_error *why)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY) {
        bw_error_free(error ? why : NULL);
        return error;
    }
    bw_error_free(error);
    return why;
}

struct bw_error *bw_trunk_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor)
{
    fs->memory.nodesize = fs->reader.nodesize;
    fs->reader.memory = &fs->memory;
    return bw_editor_create_empty(editor, &fs->reader, &fs->memory, id, fs->superblock.generation);
}

static bool is_subvolume(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

/* Finding. */

static bool see_block(void *context, const struct bw_node *block)
{
    struct making *making = context;
    const uint64_t tree = bw_get64(((const struct bw_disk_header *)block->block)->owner);
    return block->level || !is_subvolume(tree) ||
           bw_subvolume_names_add(&making->names, tree, block);
}

static bool tell(void *context, uint64_t done, uint64_t total)
{
    const struct making *making = context;
    if (making->fs->searched)
        making->fs->searched(making->fs->searched_context, done, total);
    return true;
}

static struct bw_error *scan(struct making *making)
{
    struct bw_fs *fs = making->fs;
    struct bw_scan_ranges ranges = {0};
    struct bw_past_scan scan = {.fs = fs,
                                .ranges = &ranges,
                                .index = &making->index,
                                .doubts_zeros = true,
                                .progress = tell,
                                .visit = see_block,
                                .context = making};
    struct bw_error *error = bw_scan_add_chunks(fs, &ranges);
    const bool too_much = ranges.bytes > BW_TRUNK_LIMIT && !fs->scan;
    if (!error && too_much)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_NOT_FOUND,
                                     "the root tree is lost: with --scan, the present state is put "
                                     "together from %" PRIu64 " GiB of tree blocks",
                                     ranges.bytes >> 30));
    if (!error && !too_much)
        error = bw_past_scan(&scan);
    free(ranges.ranges);
    return error;
}

/* The newest generation that is at most `limit`; `*trees`: how many trees have blocks of it, up to
 * two. */
static uint64_t newest_until(const struct bw_found_index *index, uint64_t limit, unsigned *trees)
{
    uint64_t newest = 0;
    uint32_t first = 0;
    *trees = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct bw_found_block *block = &index->blocks[i];
        if (block->generation > limit || block->generation < newest)
            continue;
        *trees = block->generation > newest || !*trees ? 1 : *trees + (block->owner != first);
        first = *trees == 1 ? block->owner : first;
        newest = block->generation;
    }
    return newest;
}

/* The generation of the newest transaction. Each writes several trees, the root tree and the extent
 * tree among them: blocks of a single one prove nothing. 0: that would take too long. */
static uint64_t newest_transaction(const struct bw_found_index *index)
{
    enum { TRIES = 64 };
    uint64_t limit = UINT64_MAX;
    unsigned trees;
    for (unsigned i = 0; limit && i < TRIES; i++) {
        const uint64_t generation = newest_until(index, limit, &trees);
        if (trees > 1)
            return generation;
        limit = generation ? generation - 1 : 0;
    }
    return 0;
}

/* The generation of the newest block, but for those of a transaction that was not committed. A
 * superblock that is older than the newest transaction by more than that is a stale one. */
static uint64_t newest_generation(const struct making *making)
{
    const struct bw_found_index *index = &making->index;
    const uint64_t known = making->fs->superblock.generation;
    const uint64_t found = newest_transaction(index);
    const uint64_t limit = found > known + 1 ? found : known;
    uint64_t newest = 0;
    for (size_t i = 0; i < index->count; i++)
        if (index->blocks[i].generation <= limit && index->blocks[i].generation > newest)
            newest = index->blocks[i].generation;
    return newest;
}

/* Whether a leaf of the root tree is in use. Without an extent tree, one of the newest generation
 * is. */
static bool is_present(const struct making *making, const struct bw_found_block *block)
{
    const struct bw_map *leaves = &making->roots.leaves;
    return leaves->count ? bw_map_get(leaves, block->bytenr) != UINT32_MAX
                         : block->generation == making->newest;
}

static struct bw_error *read_leaf(struct making *making, const struct bw_found_block *block,
                                  uint8_t *buffer)
{
    const struct bw_tree_reader *reader = &making->fs->reader;
    const struct bw_block_pointer pointer = {
        block->bytenr, {.owner = BW_ROOT_TREE, .generation = block->generation}};
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, buffer);
    if (error)
        return NULL; /* it was found in a copy that is gone meanwhile */
    const struct bw_node leaf = bw_node_view(buffer, reader->nodesize);
    return bw_newest_add(&making->items, &leaf,
                         is_present(making, block) ? BW_PRESENT_RANK : block->generation,
                         block->bytenr, NULL);
}

static struct bw_error *read_leaves(struct making *making)
{
    const struct bw_found_index *index = &making->index;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&making->fs->reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; i < index->count; i++) {
        const struct bw_found_block *block = &index->blocks[i];
        if (!block->level && block->generation <= making->newest &&
            bw_found_owner(index, block) == BW_ROOT_TREE)
            BW_TRY(read_leaf(making, block, buffer));
    }
    return bw_newest_settle(&making->items);
}

/* Names. */

static const struct bw_newest_item *root_item_of(const struct making *making, uint64_t tree)
{
    const struct bw_newest *items = &making->items;
    const struct bw_key key = {tree, BW_ROOT_ITEM, 0};
    const size_t at =
        BW_FIRST_INDEX(i, items->count, bw_key_compare(&items->items[i].key, &key) >= 0);
    const struct bw_newest_item *item = &items->items[at];
    return at < items->count && item->key.objectid == tree && item->key.type == BW_ROOT_ITEM ? item
                                                                                             : NULL;
}

static uint64_t snapshot_time(void *context, uint64_t tree)
{
    const struct making *making = context;
    const struct bw_newest_item *item = root_item_of(making, tree);
    const struct bw_disk_root_item *disk =
        item ? (const void *)bw_newest_view(&making->items, item).data : NULL;
    static const uint8_t none[BW_UUID_SIZE];
    return disk && item->size >= sizeof *disk && memcmp(disk->parent_uuid, none, sizeof none) != 0
               ? bw_get64(disk->origin_transid)
               : 0;
}

/* Whether a tree of files has its top directory. One that has none is a piece of a tree, and other
 * pieces may have the names of subvolumes that lie in it. */
static struct bw_error *has_top(const struct bw_fs *fs, const struct bw_tree_root *root, bool *has)
{
    const struct bw_tree tree = {.id = root->id, .root = root->root};
    const struct bw_key key = {BW_SUBVOLUME_ROOT_INODE, BW_INODE_ITEM, 0};
    struct bw_item_range range;
    *has = false;
    bw_item_range_begin(&range, &fs->reader, &tree, key, key);
    while (bw_item_range_next(&range))
        *has |= !range.error;
    return bw_item_range_end(&range, NULL);
}

static struct bw_error *find_names(struct making *making)
{
    bool has = true;
    BW_TRY(bw_subvolume_names_settle(making->fs, &making->roots, snapshot_time, making,
                                     &making->names, &making->names_lost));
    for (size_t i = 0; !making->roots.proven && i < making->roots.count && has; i++)
        if (is_subvolume(making->roots.trees[i].id))
            BW_TRY(has_top(making->fs, &making->roots.trees[i], &has));
    making->names_lost |= !has;
    return NULL;
}

/* Making. */

static struct bw_error *put(struct making *making, const struct bw_key *key, const void *data,
                            uint32_t size)
{
    return size > bw_edit_room(&making->tree) ? NULL : bw_edit_put(&making->tree, key, data, size);
}

static void begin_root_item(const struct making *making, struct bw_disk_root_item *item,
                            uint64_t tree)
{
    *item = (struct bw_disk_root_item){.inode = {.generation = bw_put64(1),
                                                 .size = bw_put64(3),
                                                 .bytes = bw_put64(making->fs->reader.nodesize),
                                                 .link_count = bw_put32(1),
                                                 .mode = bw_put32(040755)}};
    if (is_subvolume(tree))
        item->root_directory = bw_put64(BW_SUBVOLUME_ROOT_INODE);
}

/* A subvolume that no directory has is deleted, and only its blocks are still there. */
static bool is_deleted(const struct making *making, uint64_t tree)
{
    return tree != BW_TOP_SUBVOLUME && is_subvolume(tree) && !making->names_lost &&
           !bw_subvolume_name_of(&making->names, tree);
}

/* The root item of a tree whose root is known; `old` is the last one that was found, or NULL. */
static struct bw_error *put_root_item(struct making *making, const struct bw_tree_root *tree,
                                      const struct bw_newest_item *old)
{
    struct bw_disk_root_item item;
    const uint64_t generation = tree->root.generation;
    begin_root_item(making, &item, tree->id);
    if (old)
        memcpy(&item, bw_newest_view(&making->items, old).data,
               old->size < sizeof item ? old->size : sizeof item);
    item.bytenr = bw_put64(tree->root.bytenr);
    item.level = tree->root.level;
    item.generation = item.generation_v2 = bw_put64(generation);
    item.last_snapshot = bw_put64(generation);
    item.reference_count = bw_put32(!is_deleted(making, tree->id));
    making->made++;
    return put(making, old ? &old->key : &(struct bw_key){tree->id, BW_ROOT_ITEM, 0}, &item,
               sizeof item);
}

/* Whether an older item of the root tree holds without a proof. */
static bool is_lasting(const struct bw_key *key)
{
    return key->objectid == BW_ROOT_TREE_DIR &&
           (key->type == BW_DIR_ITEM || key->type == BW_INODE_ITEM || key->type == BW_INODE_REF);
}

/* An item of a leaf of the root tree. */
static struct bw_error *take_item(struct making *making, const struct bw_newest_item *item)
{
    const struct bw_item view = bw_newest_view(&making->items, item);
    if (item->rank == BW_PRESENT_RANK || is_lasting(&item->key))
        return put(making, &item->key, view.data, view.size);
    if (item->key.type != BW_ROOT_ITEM)
        return NULL;
    const struct bw_tree_root *tree = bw_tree_root_of(&making->roots, item->key.objectid);
    if (tree)
        return put_root_item(making, tree, item);
    return making->roots.proven ? NULL : put(making, &item->key, view.data, view.size);
}

static struct bw_error *put_name(struct making *making, const struct bw_subvolume_name *name)
{
    struct {
        struct bw_disk_root_ref ref;
        uint8_t name[BW_NAME_MAX];
    } item = {{bw_put64(name->directory), bw_put64(name->index), bw_put16(name->length)}, {0}};
    const struct bw_key up = {name->subvolume, BW_ROOT_BACKREF, name->parent};
    const struct bw_key down = {name->parent, BW_ROOT_REF, name->subvolume};
    const uint32_t size = (uint32_t)sizeof item.ref + name->length;
    memcpy(item.name, making->names.bytes.data + name->at, name->length);
    if (bw_newest_is_present(&making->items, &up))
        return NULL;
    BW_TRY(put(making, &up, &item, size));
    return put(making, &down, &item, size);
}

static struct bw_error *make_tree(struct making *making)
{
    BW_TRY(bw_trunk_begin_tree(making->fs, BW_ROOT_TREE, &making->tree));
    for (size_t i = 0; i < making->items.count; i++)
        BW_TRY(take_item(making, &making->items.items[i]));
    for (size_t i = 0; i < making->roots.count; i++) {
        const struct bw_tree_root *tree = &making->roots.trees[i];
        const struct bw_key key = {tree->id, BW_ROOT_ITEM, 0};
        if (!root_item_of(making, tree->id) && !bw_newest_is_present(&making->items, &key))
            BW_TRY(put_root_item(making, tree, NULL));
    }
    for (size_t i = 0; i < making->names.count; i++)
        BW_TRY(put_name(making, &making->names.items[i]));
    return NULL;
}

static struct bw_error *make(struct making *making)
{
    BW_TRY(scan(making));
    making->newest = newest_generation(making);
    BW_TRY(bw_tree_roots_find(making->fs, &making->index, making->newest, &making->roots));
    if (making->roots.generation)
        making->newest = making->roots.generation;
    if (!bw_tree_root_of(&making->roots, BW_TOP_SUBVOLUME))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no tree of files was found");
    BW_TRY(read_leaves(making));
    BW_TRY(find_names(making));
    return make_tree(making);
}

static void report(const struct making *making, struct bw_error *why)
{
    bw_fs_report(making->fs, BW_DAMAGE,
                 bw_error_prefix(why,
                                 "the root tree is lost: the state of generation %" PRIu64
                                 " is put together from tree blocks that were found: %zu trees%s",
                                 making->newest, making->roots.count,
                                 making->roots.proven ? ""
                                                      : ", of which some may be older than that, "
                                                        "or deleted"));
}

struct bw_error *bw_trunk_find_roots(struct bw_fs *fs, struct bw_error *why)
{
    struct making making = {.fs = fs};
    bw_found_init(&making.index);
    bw_subvolume_names_init(&making.names);
    struct bw_error *error = make(&making);
    if (!error) {
        fs->root_tree = making.tree.tree;
        fs->is_remade = making.roots.proven && making.newest == fs->superblock.generation;
        report(&making, why);
    }
    bw_editor_destroy(&making.tree);
    bw_subvolume_names_free(&making.names);
    bw_newest_free(&making.items);
    bw_tree_roots_free(&making.roots);
    bw_found_free(&making.index);
    return bw_trunk_give_up(error, why);
}
