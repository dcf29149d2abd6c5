/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subvolume table, sorted by id. It is loaded by one scan of the root tree, in which the root
 * item of a subvolume comes before its ROOT_BACKREF with its name. The kernel looks only at the
 * ROOT_REFs of the parents, which should have the same contents. A sum of hashes shows whether they
 * do; otherwise, or if the scan met damage, a second one takes the names from the ROOT_REFs.
 */
#include "fs/subvolume.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/search.h"
#include "fs/fs.h"
#include "ondisk/items.h"
#include "ondisk/superblock.h"

/* The kernel creates one per processor. */
enum { MAX_CHECKSUM_TREES = 1024 };

/* How many root items may be before one that belongs in front of them; a leaf has fewer. */
enum { MOST_MISPLACED = 256 };

void bw_subvolumes_free(struct bw_subvolume_table *table)
{
    free(table->items);
    bw_buffer_free(&table->names);
    bw_error_free(table->doubt);
    *table = (struct bw_subvolume_table){0};
}

static struct bw_subvolume *find_subvolume(const struct bw_subvolume_table *table, uint64_t id)
{
    size_t at = BW_FIRST_INDEX(i, table->count, table->items[i].tree.id >= id);
    return at < table->count && table->items[at].tree.id == id ? &table->items[at] : NULL;
}

uint64_t bw_subvolume_id(const struct bw_subvolume *subvolume)
{
    return subvolume->tree.id;
}

const struct bw_subvolume *bw_subvolume_by_id(const struct bw_fs *fs, uint64_t id)
{
    return find_subvolume(&fs->subvolumes, id);
}

const char *bw_subvolume_name(const struct bw_subvolume_table *table,
                              const struct bw_subvolume *subvolume)
{
    return table->names.data ? table->names.data + subvolume->name_offset : "";
}

const struct bw_subvolume *bw_subvolume_of_entry(const struct bw_subvolume_table *table,
                                                 uint64_t parent, uint64_t directory,
                                                 const struct bw_dir_entry *entry)
{
    const struct bw_subvolume *child = find_subvolume(table, entry->location.objectid);
    if (!child || child->deleted || child->parent != parent || child->directory != directory ||
        child->name_length != entry->name_length)
        return NULL;
    const bool is_its_name =
        memcmp(bw_subvolume_name(table, child), entry->name, entry->name_length) == 0;
    return is_its_name || table->may_be_renamed ? child : NULL;
}

bool bw_subvolumes_have_snapshots(const struct bw_subvolume_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].is_snapshot && !table->items[i].deleted)
            return true;
    return false;
}

/* Keeps the first doubt. */
static void doubt(struct bw_subvolume_table *table, struct bw_error *why)
{
    bw_error_free(table->doubt ? why : NULL);
    if (!table->doubt)
        table->doubt = bw_error_advise(why, "'repair' finds flipped bits in keys");
}

/* Sets the name of a subvolume: from the ROOT_BACKREF of the child, or from the ROOT_REF of a
 * parent that exists, which wins. */
static struct bw_error *set_name(struct bw_fs *fs, const struct bw_item *item, uint64_t child,
                                 uint64_t parent)
{
    struct bw_subvolume_table *table = &fs->subvolumes;
    struct bw_subvolume *subvolume = find_subvolume(table, child);
    struct bw_root_ref ref;
    const bool is_forward = item->key.type == BW_ROOT_REF;
    if (!subvolume || (subvolume->parent && !is_forward) ||
        (is_forward && !find_subvolume(table, parent)))
        return NULL;
    if (!bw_root_ref_decode(item, &ref) || !bw_name_is_valid(ref.name, ref.name_length))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "root tree: invalid root ref of tree %" PRIu64 " in %" PRIu64, child,
                               parent);
    if (table->names.length > UINT32_MAX - BW_NAME_MAX)
        return bw_error_no_memory();
    if (subvolume->parent != parent && find_subvolume(table, subvolume->parent))
        doubt(table, bw_error_create(BW_ERROR_CORRUPT,
                                     "root tree: references of subvolume %" PRIu64
                                     " name different parents, so it may look empty; --subvol "
                                     "reads it",
                                     child));
    uint32_t offset = (uint32_t)table->names.length;
    bw_buffer_append(&table->names, ref.name, ref.name_length);
    BW_TRY(bw_buffer_error(&table->names));
    subvolume->parent = parent;
    subvolume->directory = ref.directory;
    subvolume->index = ref.index;
    subvolume->name_offset = offset;
    subvolume->name_length = ref.name_length;
    return NULL;
}

/* Sets a tree that a walk does not need, so an invalid item is not reported as damage. If it is out
 * of order, its key may be wrong: it replaces no other. */
static void set_tree(const struct bw_item *item, bool in_order, struct bw_tree *tree)
{
    struct bw_root_item root;
    BW_AUTO_ERROR struct bw_error *error = bw_root_item_decode(item, &root);
    if (!error && (in_order || !tree->id))
        *tree = (struct bw_tree){item->key.objectid, root.root, 0};
}

static uint64_t hash_of_reference(const struct bw_item *item, uint64_t child, uint64_t parent)
{
    const uint64_t ids[] = {child, parent};
    return bw_hash_path((const char *)ids, sizeof ids) ^
           bw_hash_path((const char *)item->data, item->size);
}

void bw_subvolumes_report_doubt(struct bw_fs *fs)
{
    if (fs->subvolumes.doubt)
        bw_fs_report_once(fs, BW_DAMAGE, BW_TAKE(fs->subvolumes.doubt));
}

/* Adds a subvolume. Of root items that are out of order, one has a wrong key, which must not cost
 * the others. If two have the same key, the right one is where it belongs. */
static struct bw_error *add_subvolume(struct bw_subvolume_table *table,
                                      const struct bw_subvolume *subvolume, uint64_t before)
{
    const uint64_t id = subvolume->tree.id;
    const size_t at = BW_FIRST_INDEX(i, table->count, table->items[i].tree.id >= id);
    const bool is_second = at < table->count && table->items[at].tree.id == id;
    if (is_second && before < id)
        table->items[at] = *subvolume;
    else if (!is_second && table->count - at <= MOST_MISPLACED)
        BW_TRY(bw_subvolume_table_insert(table, at, *subvolume));
    if (before >= id || is_second)
        doubt(table, bw_error_create(BW_ERROR_CORRUPT,
                                     "root tree: the root item of tree %" PRIu64
                                     " is a second one, or comes after that of tree %" PRIu64,
                                     id, before));
    return NULL;
}

/* Handles an item of the root tree. */
static struct bw_error *add_item(struct bw_fs *fs, const struct bw_item *item)
{
    struct bw_subvolume_table *table = &fs->subvolumes;
    struct bw_checksum_trees *sums = &fs->checksum_trees;
    const bool several = fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2;
    const size_t most = several ? MAX_CHECKSUM_TREES : 1;
    struct bw_tree tree = {0};
    const uint64_t id = item->key.objectid;
    const uint64_t before = table->last_id;
    const bool is_subvolume = bw_is_subvolume_id(id), in_order = id >= before;
    /* The root tree contains a directory, inode 6, whose entry "default" refers to the default
     * subvolume. */
    if (item->key.type == BW_DIR_ITEM && id == BW_ROOT_TREE_DIR) {
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_dir_entry entry;
        while (bw_dir_entry_next(&cursor, &entry))
            if (entry.name_length == 7 && memcmp(entry.name, "default", 7) == 0 &&
                entry.location.type == BW_ROOT_ITEM)
                fs->subvolumes.default_id = entry.location.objectid;
    }
    if (item->key.type == BW_ROOT_REF)
        table->references += hash_of_reference(item, item->key.offset, id);
    if (item->key.type == BW_ROOT_BACKREF)
        table->references -= hash_of_reference(item, id, item->key.offset);
    if (item->key.type == BW_ROOT_BACKREF && is_subvolume && !find_subvolume(table, id))
        doubt(table, bw_error_create(BW_ERROR_CORRUPT,
                                     "root tree: subvolume %" PRIu64 " has no root item", id));
    if (item->key.type == BW_ROOT_BACKREF && is_subvolume)
        return set_name(fs, item, id, item->key.offset);
    if (item->key.type != BW_ROOT_ITEM)
        return NULL;
    table->last_id = id;
    if (is_subvolume) {
        /* Leaves are read in the order of keys, so any other order is damage. */
        struct bw_root_item root;
        BW_TRY(bw_root_item_decode(item, &root));
        const struct bw_subvolume subvolume = {
            .tree = {id, root.root, root.last_snapshot},
            .bytes = root.bytes,
            .deleted = root.references == 0 || (root.flags & BW_ROOT_DEAD),
            .is_snapshot = root.is_snapshot,
        };
        return add_subvolume(table, &subvolume, before);
    }
    if (!in_order)
        doubt(table, bw_error_create(BW_ERROR_CORRUPT,
                                     "root tree: the root item of tree %" PRIu64
                                     " comes after that of tree %" PRIu64,
                                     id, before));
    switch (id) {
    case BW_EXTENT_TREE:
        set_tree(item, in_order, &fs->extent_tree);
        break;
    case BW_BLOCK_GROUP_TREE:
        set_tree(item, in_order, &fs->block_group_tree);
        break;
    case BW_RAID_STRIPE_TREE:
        set_tree(item, in_order, &fs->stripe_tree);
        break;
    case BW_CSUM_TREE:
        set_tree(item, in_order, &tree);
        if (tree.id && sums->count < most)
            return bw_checksum_trees_push(sums, tree);
        break;
    }
    return NULL;
}

/* A subvolume without a parent, or whose root item says that it is deleted, looks like an empty
 * directory there. A deletion removes both references first. */
static void doubt_unlinked(struct bw_subvolume_table *table)
{
    for (size_t i = 0; i < table->count && !table->doubt; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        const uint64_t id = subvolume->tree.id;
        const bool is_linked = find_subvolume(table, subvolume->parent);
        if (id == BW_TOP_SUBVOLUME || is_linked == !subvolume->deleted)
            continue;
        doubt(table, is_linked ? bw_error_create(BW_ERROR_CORRUPT,
                                                 "root tree: subvolume %" PRIu64
                                                 " looks empty: its root item marks it as deleted",
                                                 id)
                               : bw_error_create(BW_ERROR_CORRUPT,
                                                 "root tree: no path leads to subvolume %" PRIu64
                                                 ", since its ROOT_REF is lost; --subvol reads it",
                                                 id));
    }
}

struct bw_error *bw_subvolumes_load(struct bw_fs *fs)
{
    uint64_t damages = fs->damages;
    fs->extent_tree = fs->block_group_tree = fs->stripe_tree = (struct bw_tree){0};
    fs->checksum_trees.count = 0;
    fs->subvolumes.default_id = BW_TOP_SUBVOLUME;
    fs->subvolumes.may_be_renamed = fs->no_data;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, &fs->root_tree, "root");
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        BW_TRY(bw_fs_report_damage(fs, add_item(fs, item)));
    BW_TRY(bw_fs_items_error(&items));
    if (!find_subvolume(&fs->subvolumes, BW_TOP_SUBVOLUME))
        doubt(&fs->subvolumes,
              bw_error_create(BW_ERROR_CORRUPT, "root tree: the top-level subvolume is missing"));

    /* After damage, the names come from the parents, too. */
    if (fs->subvolumes.doubt || damages != fs->damages || fs->subvolumes.references) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items again;
        bw_fs_items_scan(&again, fs, &fs->root_tree, "root");
        for (const struct bw_item *item; (item = bw_fs_items_next(&again));)
            if (item->key.type == BW_ROOT_REF)
                BW_TRY(bw_fs_report_damage(
                    fs, set_name(fs, item, item->key.offset, item->key.objectid)));
        BW_TRY(bw_fs_items_error(&again));
    }
    doubt_unlinked(&fs->subvolumes);
    return NULL;
}
