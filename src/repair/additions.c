/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items that are missing or wrong, and that others determine in every byte. A name has three items:
 * two entries of its directory, with the same data, and the reference of the inode or subvolume. If
 * two of them agree, the third one is made again; both entries determine its index. A link to a
 * subvolume has two items in the root tree, and its entries in a directory. A device extent follows
 * from the chunk, and a block group from the chunk and its extents.
 *
 * Several names may share an item. It is made with all of them, so each finding that is about one
 * of them has the same change. An item is added to the leaf in which its key belongs. If there is
 * no room, items of this leaf are moved to its neighbours first (room.c). Values that are computed
 * from such items have their turn in the next round.
 */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/space.h"
#include "ondisk/checksum.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum { MOST_FINDINGS = 1000 }; /* an image may be crafted to have millions */

/* An item to be added, and the texts of the change. */
struct addition {
    const struct bw_tree *tree;
    struct bw_key key;
    struct bw_buffer data; /* owned */
    const char *what, *proof;
    bool reveals; /* as bw_repair_change.reveals */
};

static void addition_free(struct addition *addition)
{
    bw_buffer_free(&addition->data);
}

/* Appends the data of an item, if it exists. */
static struct bw_error *read_item(struct bw_repair *repair, const struct bw_tree *tree,
                                  struct bw_key key, struct bw_buffer *data, bool *found)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, key, key);
    const struct bw_item *item = bw_fs_items_next(&items);
    *found = item;
    if (item)
        bw_buffer_append(data, item->data, item->size);
    BW_TRY(bw_fs_items_error(&items));
    return bw_buffer_error(data);
}

/* Whether an item can become the first one of a leaf that is not the root: only this tree has the
 * leaf and the nodes whose keys change, and no other change of this round depends on its key. */
static struct bw_error *can_be_first(struct bw_repair *repair, const struct bw_tree *tree,
                                     const struct bw_key *key, uint64_t leaf, bool *is_possible)
{
    struct bw_repair_path path;
    BW_TRY(bw_repair_find_path(repair, tree, key, &path));
    *is_possible = path.depth && !bw_repair_is_changed(repair, leaf);
    if (*is_possible)
        BW_TRY(bw_repair_is_exclusive(repair, leaf, is_possible));
    for (unsigned i = 1; i < path.depth && *is_possible; i++) /* the root is not shared */
        BW_TRY(bw_repair_is_exclusive(repair, path.nodes[i].bytenr, is_possible));
    return NULL;
}

struct bw_error *bw_repair_plan_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     const struct bw_buffer *data, struct bw_repair_edit edit)
{
    struct bw_item first;
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &repair->fs->reader, tree);
    BW_TRY(bw_find_leaf(&finder, key));
    const bool is_root = finder.bytenr == tree->root.bytenr;
    if (finder.lost || (!is_root && !bw_leaf_item(&finder.leaf, 0, &first)))
        return NULL;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (repair->findings.items[i].flipped_block == finder.bytenr)
            return NULL;
    const bool is_first = !is_root && bw_key_compare(key, &first.key) < 0;
    bool has_room, is_possible = true;
    BW_TRY(bw_repair_has_room(repair, finder.bytenr, key, data, &has_room));
    if (!has_room)
        return bw_repair_make_room(repair, finding, tree, key, (uint32_t)data->length);
    if (is_first)
        BW_TRY(can_be_first(repair, tree, key, finder.bytenr, &is_possible));
    BW_AUTO_FREE char *why =
        bw_repair_text("%s: item (%" PRIu64 " %u %" PRIu64 ") of tree %" PRIu64,
                       finding->code->word, key->objectid, key->type, key->offset, tree->id);
    edit.block = finder.bytenr;
    edit.length = (uint32_t)data->length;
    edit.bytes = data->data;
    edit.key = *key;
    edit.why = why;
    if (is_first && is_possible && !edit.group)
        edit.group = ++repair->groups;
    if (is_possible)
        BW_TRY(bw_repair_add_item(repair, finding, edit));
    if (!is_first || !is_possible)
        return NULL;
    edit.key = (struct bw_key){0};
    edit.what = "key of a leaf with a new first item";
    struct bw_repair_finding same = *finding;
    return bw_repair_move_first_key(repair, &same, tree, &first.key, key, edit);
}

static struct bw_error *plan_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  const struct addition *addition)
{
    return bw_repair_plan_item(repair, finding, addition->tree, &addition->key, &addition->data,
                               (struct bw_repair_edit){.what = addition->what,
                                                       .reveals = addition->reveals,
                                                       .proof = addition->proof});
}

/* Names. */

/* Whether the link to a subvolume has the name of an entry. */
static struct bw_error *find_link(struct bw_repair *repair, const struct bw_tree *tree,
                                  uint64_t directory, const struct bw_dir_entry *entry,
                                  uint64_t *index, bool *found)
{
    const struct bw_key key = {tree->id, BW_ROOT_REF, entry->location.objectid};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, bw_fs_root_tree(repair->fs), key, key);
    const struct bw_item *item = bw_fs_items_next(&items);
    struct bw_root_ref link;
    *found = item && bw_root_ref_decode(item, &link) && link.directory == directory &&
             link.name_length == entry->name_length &&
             memcmp(link.name, entry->name, link.name_length) == 0;
    if (*found)
        *index = link.index;
    return bw_fs_items_error(&items);
}

/* Whether an inode, or the link to a subvolume, has the name of an entry. If so, `*index` is the
 * offset of its DIR_INDEX. */
static struct bw_error *find_reference(struct bw_repair *repair, const struct bw_tree *tree,
                                       uint64_t directory, const struct bw_dir_entry *entry,
                                       uint64_t *index, bool *found)
{
    if (entry->location.type == BW_ROOT_ITEM)
        return find_link(repair, tree, directory, entry, index, found);
    const uint64_t inode = entry->location.objectid;
    const struct bw_key keys[] = {
        {inode, BW_INODE_REF, directory},
        {inode, BW_INODE_EXTREF, bw_extref_hash(directory, entry->name, entry->name_length)}};
    *found = false;
    for (unsigned i = 0; i < 2 && !*found; i++) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, repair->fs, tree, keys[i], keys[i]);
        const struct bw_item *item = bw_fs_items_next(&items);
        struct bw_cursor cursor = {0};
        if (item)
            cursor = bw_cursor_of(item);
        struct bw_inode_ref ref;
        while (item && !*found && bw_inode_ref_next(&cursor, &item->key, &ref)) {
            *found = ref.parent == directory && ref.name_length == entry->name_length &&
                     memcmp(ref.name, entry->name, ref.name_length) == 0;
            *index = ref.index;
        }
        BW_TRY(bw_fs_items_error(&items));
    }
    return NULL;
}

/* Whether the items that were read have an entry of the same name; and of the same target, if that
 * matters. */
static bool has_entry(const struct bw_buffer *data, const struct bw_dir_entry *wanted,
                      bool any_target)
{
    struct bw_dir_entry entry;
    const struct bw_item whole = {.data = (const void *)data->data, .size = (uint32_t)data->length};
    if (!data->length)
        return false;
    struct bw_cursor cursor = bw_cursor_of(&whole);
    while (bw_dir_entry_next(&cursor, &entry))
        if (entry.name_length == wanted->name_length &&
            (any_target || bw_key_compare(&entry.location, &wanted->location) == 0) &&
            memcmp(entry.name, wanted->name, entry.name_length) == 0)
            return true;
    return false;
}

/* Whether the target of a DIR_INDEX has the reference for it: then this entry is as good as the
 * DIR_ITEM of the same name that leads elsewhere. */
static struct bw_error *is_referenced(struct bw_repair *repair, const struct bw_tree *tree,
                                      struct bw_key key, const struct bw_buffer *data, bool *found)
{
    struct bw_dir_entry entry;
    const struct bw_item item = {key, (const void *)data->data, (uint32_t)data->length};
    struct bw_cursor cursor = bw_cursor_of(&item);
    uint64_t index = 0;
    *found = false;
    if (bw_dir_entry_next(&cursor, &entry))
        BW_TRY(find_reference(repair, tree, key.objectid, &entry, &index, found));
    *found = *found && index == key.offset;
    return NULL;
}

/* Appends an entry and its name. */
static void append_entry(struct bw_buffer *data, const struct bw_dir_entry *entry)
{
    const size_t header = sizeof(struct bw_disk_dir_item);
    bw_buffer_append(data, entry->name - header, header + entry->name_length);
}

/* A DIR_ITEM, from the DIR_INDEX of its names. */
static struct bw_error *plan_dir_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      const struct bw_tree *tree)
{
    const struct bw_key key = finding->key;
    __attribute__((cleanup(addition_free))) struct addition addition = {
        .tree = tree,
        .key = key,
        .what = "entry of a directory",
        .proof = "the DIR_INDEX of the same name, and the reference to the directory"};
    bool found, is_new = false;
    BW_TRY(read_item(repair, tree, key, &addition.data, &found));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){key.objectid, BW_DIR_INDEX, 0},
                      (struct bw_key){key.objectid, BW_DIR_INDEX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_dir_entry entry;
        struct bw_cursor cursor = bw_cursor_of(item);
        uint64_t index = 0;
        if (!bw_dir_entry_next(&cursor, &entry) ||
            bw_name_hash(entry.name, entry.name_length) != key.offset ||
            has_entry(&addition.data, &entry, false))
            continue;
        BW_TRY(find_reference(repair, tree, key.objectid, &entry, &index, &found));
        if (!found || index != item->key.offset || has_entry(&addition.data, &entry, true))
            return NULL;
        append_entry(&addition.data, &entry);
        is_new = true;
    }
    BW_TRY(bw_fs_items_error(&items));
    BW_TRY(bw_buffer_error(&addition.data));
    return is_new ? plan_item(repair, finding, &addition) : NULL;
}

/* The DIR_INDEX of an inode or subvolume, from the DIR_ITEM of its name. */
static struct bw_error *plan_dir_index(struct bw_repair *repair, struct bw_repair_finding *finding,
                                       const struct bw_tree *tree)
{
    const uint64_t directory = finding->key.objectid;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){directory, BW_DIR_ITEM, 0},
                      (struct bw_key){directory, BW_DIR_ITEM, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items)) && !finding->planned;) {
        struct bw_dir_entry entry;
        struct bw_cursor cursor = bw_cursor_of(item);
        while (!finding->planned && bw_dir_entry_next(&cursor, &entry)) {
            __attribute__((cleanup(addition_free))) struct addition addition = {
                .tree = tree,
                .key = {directory, BW_DIR_INDEX, 0},
                .what = "entry of a directory",
                .proof = "the DIR_ITEM of the same name, and the reference to the directory"};
            bool found = false;
            if (entry.location.objectid == finding->inode)
                BW_TRY(
                    find_reference(repair, tree, directory, &entry, &addition.key.offset, &found));
            if (!found || (finding->key.offset && finding->key.offset != addition.key.offset))
                continue;
            BW_AUTO_BUFFER struct bw_buffer present = {0};
            BW_TRY(read_item(repair, tree, addition.key, &present, &found));
            if (found && !has_entry(&present, &entry, true))
                continue;
            if (found)
                BW_TRY(is_referenced(repair, tree, addition.key, &present, &found));
            if (found)
                continue;
            append_entry(&addition.data, &entry);
            BW_TRY(bw_buffer_error(&addition.data));
            BW_TRY(plan_item(repair, finding, &addition));
        }
    }
    return bw_fs_items_error(&items);
}

/* Whether each name in an INODE_REF has its DIR_INDEX. Otherwise one of them may be the rest of the
 * name that lacks a reference. */
static struct bw_error *has_all_entries(struct bw_repair *repair, const struct bw_tree *tree,
                                        struct bw_key key, const struct bw_buffer *data, bool *all)
{
    struct bw_inode_ref ref;
    const struct bw_item item = {key, (const void *)data->data, (uint32_t)data->length};
    struct bw_cursor cursor = bw_cursor_of(&item);
    *all = repair->fs->superblock.incompat_flags & BW_INCOMPAT_EXTENDED_IREF;
    while (*all && bw_inode_ref_next(&cursor, &key, &ref)) {
        BW_AUTO_BUFFER struct bw_buffer present = {0};
        const struct bw_dir_entry entry = {.location = {key.objectid, BW_INODE_ITEM, 0},
                                           .name = ref.name,
                                           .name_length = ref.name_length};
        BW_TRY(read_item(repair, tree, (struct bw_key){key.offset, BW_DIR_INDEX, ref.index},
                         &present, all));
        *all = *all && has_entry(&present, &entry, false);
    }
    return NULL;
}

/* The ORPHAN_ITEM of an inode without links, with which the next mount deletes it. */
static struct bw_error *plan_orphan(struct bw_repair *repair, struct bw_repair_finding *finding,
                                    const struct bw_tree *tree)
{
    const struct bw_key key = {BW_ORPHAN, BW_ORPHAN_ITEM, finding->inode};
    const struct bw_buffer none = {0};
    if (finding->inode == BW_ABSENT || bw_repair_lacks_blocks(repair))
        return NULL;
    return bw_repair_plan_item(
        repair, finding, tree, &key, &none,
        (struct bw_repair_edit){.what = "mark of an inode that a mount deletes",
                                .proof = "its link count is 0, and it has no name"});
}

/* The INODE_REF of an inode in a directory, from the two entries of each of its names. If this item
 * is there, and all of its names are right, a name that lacks a reference had an INODE_EXTREF. */
static struct bw_error *plan_inode_ref(struct bw_repair *repair, struct bw_repair_finding *finding,
                                       const struct bw_tree *tree)
{
    const uint64_t directory = finding->key.offset;
    __attribute__((cleanup(addition_free))) struct addition addition = {
        .tree = tree,
        .key = finding->key,
        .what = "reference of an inode to its directory",
        .proof = "both entries of the name in the directory"};
    bool found, is_new = false, has_item;
    BW_TRY(read_item(repair, tree, addition.key, &addition.data, &has_item));
    if (addition.data.length)
        BW_TRY(has_all_entries(repair, tree, finding->key, &addition.data, &found));
    if (has_item && !(addition.data.length && found))
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){directory, BW_DIR_INDEX, 0},
                      (struct bw_key){directory, BW_DIR_INDEX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        BW_AUTO_BUFFER struct bw_buffer same_hash = {0};
        struct bw_dir_entry entry;
        struct bw_cursor cursor = bw_cursor_of(item);
        uint64_t index;
        if (!bw_dir_entry_next(&cursor, &entry) || entry.location.type != BW_INODE_ITEM ||
            entry.location.objectid != finding->key.objectid)
            continue;
        BW_TRY(find_reference(repair, tree, directory, &entry, &index, &found));
        if (found)
            continue;
        const struct bw_key other = {directory, BW_DIR_ITEM,
                                     bw_name_hash(entry.name, entry.name_length)};
        BW_TRY(read_item(repair, tree, other, &same_hash, &found));
        if (!has_entry(&same_hash, &entry, false))
            return NULL;
        if (has_item) {
            const struct bw_disk_inode_extref extref = {
                bw_put64(directory), bw_put64(item->key.offset), bw_put16(entry.name_length)};
            addition.key =
                (struct bw_key){finding->key.objectid, BW_INODE_EXTREF,
                                bw_extref_hash(directory, entry.name, entry.name_length)};
            addition.data.length = 0;
            BW_TRY(read_item(repair, tree, addition.key, &addition.data, &found));
            bw_buffer_append(&addition.data, &extref, sizeof extref);
            bw_buffer_append(&addition.data, entry.name, entry.name_length);
            BW_TRY(bw_buffer_error(&addition.data));
            BW_TRY(plan_item(repair, finding, &addition));
            continue;
        }
        const struct bw_disk_inode_ref ref = {bw_put64(item->key.offset),
                                              bw_put16(entry.name_length)};
        bw_buffer_append(&addition.data, &ref, sizeof ref);
        bw_buffer_append(&addition.data, entry.name, entry.name_length);
        is_new = true;
    }
    BW_TRY(bw_fs_items_error(&items));
    BW_TRY(bw_buffer_error(&addition.data));
    return is_new ? plan_item(repair, finding, &addition) : NULL;
}

/* The indexes in the INODE_REF of an inode in a directory, from the DIR_INDEX of the same name. If
 * they differ, a name that is deleted stays in the listing. With two DIR_INDEX, any of them can be
 * right. */
static struct bw_error *plan_indexes(struct bw_repair *repair, struct bw_repair_finding *finding,
                                     const struct bw_tree *tree)
{
    const struct bw_key key = finding->key;
    BW_AUTO_BUFFER struct bw_buffer refs = {0};
    bool found;
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *other = &repair->findings.items[i];
        if (bw_repair_is(other, "entry-duplicate") && other->tree == finding->tree &&
            other->inode == finding->inode)
            return NULL;
    }
    BW_TRY(read_item(repair, tree, key, &refs, &found));
    const struct bw_item whole = {key, (const void *)refs.data, (uint32_t)refs.length};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){key.offset, BW_DIR_INDEX, 0},
                      (struct bw_key){key.offset, BW_DIR_INDEX, UINT64_MAX});
    for (const struct bw_item *item; refs.length && (item = bw_fs_items_next(&items));) {
        struct bw_dir_entry entry;
        struct bw_inode_ref ref;
        struct bw_cursor entries = bw_cursor_of(item), cursor = bw_cursor_of(&whole);
        if (!bw_dir_entry_next(&entries, &entry) || entry.location.type != BW_INODE_ITEM ||
            entry.location.objectid != key.objectid)
            continue;
        found = false;
        while (!found && bw_inode_ref_next(&cursor, &key, &ref))
            found = ref.name_length == entry.name_length &&
                    memcmp(ref.name, entry.name, ref.name_length) == 0;
        if (!found || ref.index == item->key.offset)
            continue;
        BW_AUTO_BUFFER struct bw_buffer same_hash = {0};
        const struct bw_key hash = {key.offset, BW_DIR_ITEM,
                                    bw_name_hash(ref.name, ref.name_length)};
        BW_TRY(read_item(repair, tree, hash, &same_hash, &found));
        if (!has_entry(&same_hash, &entry, false))
            continue;
        const uint32_t start = (uint32_t)(ref.name - sizeof(struct bw_disk_inode_ref) - whole.data);
        BW_AUTO_FREE char *why = bw_repair_text(
            "inode %" PRIu64 " of tree %" PRIu64 ": %s: %" PRIu64 " must be %" PRIu64, key.objectid,
            tree->id, finding->code->word, ref.index, item->key.offset);
        BW_TRY(bw_repair_edit_item(
            repair, finding, tree, &key,
            start + (uint32_t)offsetof(struct bw_disk_inode_ref, index), 8, item->key.offset,
            (struct bw_repair_edit){.what = "index of a name",
                                    .why = why,
                                    .proof = "both entries of the name in the directory"}));
    }
    return bw_fs_items_error(&items);
}

/* Subvolumes, devices and block groups. */

/* The other item of the link to a subvolume: its key is reversed, its data are the same. */
static struct bw_error *plan_link(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  const struct bw_tree_list *trees)
{
    const bool has_ref = finding->key.type == BW_ROOT_REF;
    __attribute__((cleanup(addition_free))) struct addition addition = {
        .tree = bw_fs_root_tree(repair->fs),
        .key = {finding->key.offset, has_ref ? BW_ROOT_BACKREF : BW_ROOT_REF,
                finding->key.objectid},
        .what = "link to a subvolume",
        .proof = "the other item of the same link, and the DIR_INDEX of the subvolume"};
    BW_AUTO_BUFFER struct bw_buffer present = {0};
    bool found;
    if (!has_ref && finding->key.type != BW_ROOT_BACKREF)
        return NULL;
    BW_TRY(read_item(repair, addition.tree, addition.key, &present, &found));
    if (found)
        return NULL;
    BW_TRY(read_item(repair, addition.tree, finding->key, &addition.data, &found));
    const struct bw_item item = {finding->key, (const void *)addition.data.data,
                                 (uint32_t)addition.data.length};
    const struct bw_listed_tree *parent =
        bw_tree_list_find(trees, has_ref ? finding->key.objectid : finding->key.offset);
    struct bw_root_ref link;
    if (!addition.data.length || !parent || !bw_root_ref_decode(&item, &link))
        return NULL;
    const uint64_t child = has_ref ? finding->key.offset : finding->key.objectid;
    struct bw_dir_entry entry = {.location = {child, BW_ROOT_ITEM, UINT64_MAX},
                                 .name = link.name,
                                 .name_length = link.name_length};
    BW_TRY(read_item(repair, &parent->tree,
                     (struct bw_key){link.directory, BW_DIR_INDEX, link.index}, &present, &found));
    found = has_entry(&present, &entry, false);
    entry.location.offset = 0; /* of a subvolume that is no snapshot */
    if (!found && !has_entry(&present, &entry, false))
        return NULL;
    return plan_item(repair, finding, &addition);
}

/* Whether the check finds nothing of the pass `chunks` but what the chunks put right. Otherwise a
 * chunk may be wrong itself: then a device extent or block group has no chunk. */
static bool trusts_chunks(const struct bw_repair *repair)
{
    static const char *const harmless[] = {"device-extent-missing", "device-extent-differs",
                                           "device-used",           "device-differs",
                                           "super-devices",         "super-size",
                                           "group-missing",         NULL};
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        if (strcmp(finding->code->pass, "chunks") == 0 && !bw_repair_is_any(finding, harmless))
            return false;
    }
    return true;
}

static int compare_keys(const void *first, const void *second)
{
    const struct bw_repair_item *a = first, *b = second;
    return bw_key_compare(&a->key, &b->key);
}

struct bw_error *bw_repair_items_of_chunks(struct bw_repair *repair, uint64_t tree,
                                           const struct bw_key *first, const struct bw_key *last,
                                           struct bw_repair_items *made)
{
    struct bw_fs *fs = repair->fs;
    const uint8_t *root;
    BW_TRY(bw_repair_block_contents(repair, fs->chunk_tree.root.bytenr, &root));
    if (!root || !trusts_chunks(repair))
        return NULL;
    const struct bw_disk_header *header = (const void *)root;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, &fs->chunk_tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_chunk chunk;
        if (item->key.type != BW_CHUNK_ITEM)
            continue;
        BW_TRY(bw_chunk_decode(item->key.offset, item->data, item->size, &chunk));
        const struct bw_chunk_info info = {
            .length = chunk.length, .type = chunk.type, .stripe_count = chunk.stripe_count};
        for (unsigned i = 0; tree == BW_DEVICE_TREE && i < chunk.stripe_count; i++) {
            struct bw_repair_item extent = {
                .key = {bw_get64(chunk.stripes[i].devid), BW_DEVICE_EXTENT,
                        bw_get64(chunk.stripes[i].offset)},
                .size = sizeof extent.data.extent,
                .data.extent = {.chunk_tree = bw_put64(BW_CHUNK_TREE),
                                .chunk_objectid = bw_put64(item->key.objectid),
                                .chunk_offset = bw_put64(chunk.logical),
                                .length = bw_put64(bw_chunk_stripe_length(&info))}};
            memcpy(extent.data.extent.chunk_tree_uuid, header->chunk_tree_uuid, BW_UUID_SIZE);
            if (bw_key_compare(&extent.key, first) >= 0 && bw_key_compare(&extent.key, last) <= 0)
                BW_TRY(bw_repair_items_push(made, extent));
        }
        struct bw_repair_item group = {
            .key = {chunk.logical, BW_BLOCK_GROUP_ITEM, chunk.length},
            .size = sizeof group.data.group,
            .data.group = {.chunk_objectid = bw_put64(item->key.objectid),
                           .flags = bw_put64(chunk.type)}};
        if (tree == BW_DEVICE_TREE || !fs->extent_tree.id ||
            bw_key_compare(&group.key, first) < 0 || bw_key_compare(&group.key, last) > 0)
            continue;
        uint64_t used;
        BW_TRY(bw_repair_add_extents(fs, &group.key, &used));
        group.data.group.used = bw_put64(used);
        BW_TRY(bw_repair_items_push(made, group));
    }
    bw_repair_items_sort(made, compare_keys);
    return bw_fs_items_error(&items);
}

/* The device extent of a stripe, or the block group of a chunk. */
static struct bw_error *plan_for_chunk(struct bw_repair *repair, struct bw_repair_finding *finding,
                                       const struct bw_tree *tree, struct bw_key first,
                                       struct bw_key last)
{
    const bool is_group = first.type == BW_BLOCK_GROUP_ITEM;
    BW_SCOPED(bw_repair_items) struct bw_repair_items items = {0};
    if (is_group && bw_repair_lacks_blocks(repair))
        return NULL;
    BW_TRY(bw_repair_items_of_chunks(repair, tree->id, &first, &last, &items));
    if (items.count != 1)
        return NULL;
    const struct addition addition = {
        .tree = tree,
        .key = items.items->key,
        .data = {.data = (char *)&items.items->data, .length = items.items->size},
        .what = is_group ? "block group" : "device extent",
        .proof = is_group ? "the chunk, and the sum of the extents in it"
                          : "the chunk with a stripe at this place",
        .reveals = is_group}; /* numbers are compared only if all block groups are known */
    return plan_item(repair, finding, &addition);
}

/* The chunk of a block group. Its contents could not be read. */
static struct bw_error *plan_chunk(struct bw_repair *repair, struct bw_repair_finding *finding,
                                   struct bw_newest *known)
{
    __attribute__((cleanup(addition_free))) struct addition addition = {
        .tree = &repair->fs->chunk_tree,
        .key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, finding->key.objectid},
        .what = "chunk",
        .proof = "its block group, its device extents, and a copy of it or its contents",
        .reveals = true};
    BW_TRY(bw_repair_make_chunk(repair, &finding->key, known, &addition.data));
    return addition.data.length ? plan_item(repair, finding, &addition) : NULL;
}

struct bw_error *bw_repair_plan_additions(struct bw_repair *repair)
{
    static const char *const of_devices[] = {"device-extent-missing", "device-extent-differs",
                                             NULL};
    struct bw_repair_findings *findings = &repair->findings;
    const struct bw_tree *groups = bw_repair_group_tree(repair->fs);
    struct bw_tree devices;
    BW_TRY(bw_repair_find_tree(repair->fs, BW_DEVICE_TREE, &devices));
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    BW_SCOPED(bw_newest) struct bw_newest chunks = {0};
    BW_TRY(bw_tree_list_load(repair->fs, &trees));
    BW_TRY(bw_repair_plan_root_items(repair, &trees));
    for (size_t i = 0; i < findings->count && i < MOST_FINDINGS; i++) {
        struct bw_repair_finding *finding = &findings->items[i];
        const struct bw_listed_tree *tree = bw_tree_list_find(&trees, finding->tree);
        if (finding->planned || finding->flipped_block != BW_ABSENT)
            continue;
        const struct bw_key extent = {finding->devid, BW_DEVICE_EXTENT, finding->offset};
        const uint64_t start = finding->key.offset; /* of a chunk */
        if (devices.id && bw_repair_is_any(finding, of_devices))
            BW_TRY(plan_for_chunk(repair, finding, &devices, extent, extent));
        else if (devices.id && bw_repair_is(finding, "device-extent-item"))
            BW_TRY(plan_for_chunk(repair, finding, &devices, finding->key, finding->key));
        else if (groups->id && bw_repair_is(finding, "group-missing"))
            BW_TRY(plan_for_chunk(repair, finding, groups,
                                  (struct bw_key){start, BW_BLOCK_GROUP_ITEM, 0},
                                  (struct bw_key){start, BW_BLOCK_GROUP_ITEM, UINT64_MAX}));
        else if (bw_repair_is(finding, "chunk-missing") && finding->key.type == BW_BLOCK_GROUP_ITEM)
            BW_TRY(plan_chunk(repair, finding, &chunks));
        else if (bw_repair_is(finding, "root-link"))
            BW_TRY(plan_link(repair, finding, &trees));
        else if (tree && bw_repair_is(finding, "inode-ref-missing") &&
                 finding->key.type == BW_INODE_REF)
            BW_TRY(plan_inode_ref(repair, finding, &tree->tree));
        else if (tree && bw_repair_is(finding, "orphan-missing"))
            BW_TRY(plan_orphan(repair, finding, &tree->tree));
        else if (tree && bw_repair_is(finding, "entry-index"))
            BW_TRY(plan_indexes(repair, finding, &tree->tree));
        else if (tree && bw_repair_is(finding, "entry-missing") && finding->key.type == BW_DIR_ITEM)
            BW_TRY(plan_dir_item(repair, finding, &tree->tree));
        else if (tree && bw_repair_is(finding, "entry-missing"))
            BW_TRY(plan_dir_index(repair, finding, &tree->tree));
    }
    return NULL;
}
