/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wrong fields in tree blocks whose checksum is right, as bad memory and faulty programs leave
 * them. The right value of a field is computed here from items without findings:
 *
 * - the link count of an inode from its names, the size of a directory from the lengths of its
 *   names, the bytes of a file from its extents, the size of a symbolic link from its target, and
 *   the type in a directory entry from the inode;
 * - the reference count of a subvolume from its links;
 * - any other field if exactly one flipped bit explains the finding (check/flipped.c).
 *
 * If anything else is wrong with the same inode, the items that determine the field may themselves
 * be wrong: then only a flipped bit is corrected.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum { MOST_FINDINGS = 1000 }; /* an image may be crafted to have millions */

/* An inode, and what its items add up to. */
struct totals {
    struct bw_inode inode;
    bool has_inode;
    uint64_t names;                   /* of the inode */
    uint64_t item_names, index_names; /* lengths of the names in the directory */
    uint64_t bytes, end;              /* of its extents */
    uint64_t stored;                  /* in the item of an extent, uncompressed */
    bool is_unsure;                   /* extents overlap, leave a gap, or cannot be read */
};

/* Adds up the items of an inode. */
static struct bw_error *add_up(struct bw_repair *repair, const struct bw_tree *tree,
                               uint64_t number, struct totals *totals)
{
    const uint32_t sectorsize = repair->fs->superblock.sectorsize;
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    *totals = (struct totals){0};
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){number, 0, 0},
                      (struct bw_key){number, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_file_extent *extent = (const void *)item->data;
        struct bw_cursor cursor = bw_cursor_of(item);
        uint64_t *const lengths =
            item->key.type == BW_DIR_ITEM ? &totals->item_names : &totals->index_names;
        switch (item->key.type) {
        case BW_INODE_ITEM:
            totals->has_inode = bw_inode_decode(item, &totals->inode);
            if (totals->has_inode)
                totals->inode.size = bw_inode_stored_size(item);
            break;
        case BW_INODE_REF:
        case BW_INODE_EXTREF:
            while (bw_inode_ref_next(&cursor, &item->key, &ref))
                totals->names += ref.parent != item->key.objectid;
            break;
        case BW_DIR_ITEM:
        case BW_DIR_INDEX:
            while (bw_dir_entry_next(&cursor, &entry))
                *lengths += entry.name_length;
            break;
        case BW_EXTENT_DATA:
            if (item->size < offsetof(struct bw_disk_file_extent, disk_bytenr) ||
                (extent->type != BW_FILE_EXTENT_INLINE && item->size < sizeof *extent) ||
                item->key.offset != totals->end) {
                totals->is_unsure = true;
            } else if (extent->type == BW_FILE_EXTENT_INLINE) {
                const uint64_t length = bw_get64(extent->ram_bytes);
                totals->bytes += length;
                totals->stored = extent->compression ? 0 : length;
                totals->end = (length + sectorsize - 1) / sectorsize * sectorsize;
            } else {
                totals->end += bw_get64(extent->num_bytes);
                totals->bytes += bw_get64(extent->disk_bytenr) ? bw_get64(extent->num_bytes) : 0;
            }
            break;
        }
    }
    return bw_fs_items_error(&items);
}

static bool is_about_names(const struct bw_repair_finding *finding)
{
    return bw_repair_is(finding, "link-count") || bw_repair_is(finding, "directory-size");
}

/* Whether the check complains about something else in this inode. Two numbers depend on nothing but
 * names: both may be wrong, and are often impossible, too. */
static bool is_alone(const struct bw_repair *repair, const struct bw_repair_finding *finding)
{
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *other = &repair->findings.items[i];
        if (is_about_names(finding) && (bw_repair_is(other, "inode-item") || is_about_names(other)))
            continue;
        if (other != finding && other->tree == finding->tree &&
            (other->inode == finding->inode || other->key.objectid == finding->inode))
            return false;
    }
    return true;
}

/* Plans a field of an INODE_ITEM. */
static struct bw_error *plan_inode(struct bw_repair *repair, struct bw_repair_finding *finding,
                                   const struct bw_tree *tree)
{
    struct totals totals;
    BW_TRY(add_up(repair, tree, finding->inode, &totals));
    const struct bw_inode *inode = &totals.inode;
    const uint8_t type = bw_file_type_of_mode(inode->mode);
    const bool is_link = type == BW_FILE_SYMLINK, is_file = is_link || type == BW_FILE_REGULAR;
    const uint64_t sectorsize = repair->fs->superblock.sectorsize;
    uint64_t value = 0, have = 0;
    uint32_t offset = 0;
    const char *proof = NULL;
    if (!totals.has_inode || !is_alone(repair, finding))
        return NULL;
    if (bw_repair_is(finding, "link-count")) {
        value = totals.names + (finding->inode == BW_SUBVOLUME_ROOT_INODE);
        have = inode->link_count;
        offset = offsetof(struct bw_disk_inode_item, link_count);
        proof = value ? "the names of the inode, counted" : NULL;
    } else if (bw_repair_is(finding, "directory-size") && totals.item_names == totals.index_names) {
        value = totals.item_names + totals.index_names;
        have = inode->size;
        offset = offsetof(struct bw_disk_inode_item, size);
        proof = "the lengths of the names in the directory, in both of its lists";
    } else if (bw_repair_is(finding, "file-bytes") && !is_file && !totals.end &&
               !totals.is_unsure) {
        have = inode->bytes;
        offset = offsetof(struct bw_disk_inode_item, bytes);
        proof = "only files have extents";
    } else if (bw_repair_is(finding, "file-bytes") && !totals.is_unsure &&
               totals.end == (inode->size + sectorsize - 1) / sectorsize * sectorsize) {
        value = totals.bytes;
        have = inode->bytes;
        offset = offsetof(struct bw_disk_inode_item, bytes);
        proof = "the extents of the file, which cover its size exactly";
    } else if (bw_repair_is(finding, "link-size") || bw_repair_is(finding, "file-size")) {
        value = totals.stored;
        have = inode->size;
        offset = offsetof(struct bw_disk_inode_item, size);
        proof = (totals.stored && totals.stored == inode->bytes) ? "the contents that the inode "
                                                                   "stores, and its byte count"
                                                                 : NULL;
    }
    if (!proof)
        return NULL;
    const struct bw_key key = {finding->inode, BW_INODE_ITEM, 0};
    BW_AUTO_FREE char *why =
        bw_repair_text("inode %" PRIu64 " of tree %" PRIu64 ": %s: %" PRIu64 " must be %" PRIu64,
                       finding->inode, finding->tree, finding->code->word, have, value);
    return bw_repair_edit_item(
        repair, finding, tree, &key, offset,
        offset == offsetof(struct bw_disk_inode_item, link_count) ? 4 : 8, value,
        (struct bw_repair_edit){.what = is_link ? "field of a symbolic link" : "field of an inode",
                                .why = why,
                                .proof = proof});
}

/* Plans the flipped bit that explains a finding. */
static struct bw_error *plan_flip(struct bw_repair *repair, struct bw_repair_finding *finding)
{
    const uint8_t *contents;
    if (finding->flipped_byte >= repair->fs->superblock.nodesize || finding->flipped_bit > 7)
        return NULL;
    BW_TRY(bw_repair_block_contents(repair, finding->flipped_block, &contents));
    if (!contents)
        return NULL;
    const uint8_t byte =
        (uint8_t)(contents[finding->flipped_byte] ^ 1u << (unsigned)finding->flipped_bit);
    BW_AUTO_FREE char *why = bw_repair_text(
        "%s: bit %" PRIu64 " of byte %" PRIu64 " is flipped, and the checksum was computed with it",
        finding->code->word, finding->flipped_bit, finding->flipped_byte);
    return bw_repair_edit_block(
        repair, finding,
        (struct bw_repair_edit){.block = finding->flipped_block,
                                .byte = (uint32_t)finding->flipped_byte,
                                .length = 1,
                                .bytes = &byte,
                                .reveals = bw_repair_is_about_lost(finding),
                                .what = "flipped bit",
                                .why = why,
                                .proof = "no other bit makes the items fit each other"});
}

/* An entry of a directory. */
struct entry {
    struct bw_key key;      /* of its item, which contains no other entry */
    struct bw_key location; /* its target; objectid 0: none */
    uint8_t type;
    char name[UINT8_MAX + 1];
    size_t length;
};

/* The only entry of an item; without a target if there are several. */
static struct entry sole_entry(const struct bw_item *item)
{
    struct entry found = {.key = item->key};
    struct bw_dir_entry entry;
    struct bw_cursor cursor = bw_cursor_of(item);
    if (!bw_dir_entry_next(&cursor, &entry) || entry.name_length >= sizeof found.name)
        return found;
    found.type = entry.type;
    found.length = entry.name_length;
    memcpy(found.name, entry.name, entry.name_length);
    if (!bw_dir_entry_next(&cursor, &entry))
        found.location = entry.location;
    return found;
}

/* The entry of the same name and target in the other list of the directory. */
static struct bw_error *find_other(struct bw_repair *repair, const struct bw_tree *tree,
                                   const struct entry *wrong, struct entry *other)
{
    const uint64_t directory = wrong->key.objectid;
    const uint8_t kind = wrong->key.type == BW_DIR_ITEM ? BW_DIR_INDEX : BW_DIR_ITEM;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, (struct bw_key){directory, kind, 0},
                      (struct bw_key){directory, kind, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct entry entry = sole_entry(item);
        if (entry.location.objectid && entry.length == wrong->length &&
            bw_key_compare(&entry.location, &wrong->location) == 0 &&
            memcmp(entry.name, wrong->name, wrong->length) == 0)
            *other = entry;
    }
    return bw_fs_items_error(&items);
}

static struct bw_error *plan_type(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  const struct bw_tree *tree, const struct entry *entry,
                                  uint8_t type, const char *proof)
{
    const char *target = entry->location.type == BW_INODE_ITEM ? "inode" : "subvolume";
    BW_AUTO_FREE char *why = bw_repair_text(
        "an entry of directory %" PRIu64 " of tree %" PRIu64 " says %s, its %s %" PRIu64 " is %s",
        entry->key.objectid, finding->tree, bw_file_type_name(entry->type), target,
        entry->location.objectid, bw_file_type_name(type));
    return bw_repair_edit_item(
        repair, finding, tree, &entry->key, offsetof(struct bw_disk_dir_item, type), 1, type,
        (struct bw_repair_edit){.what = "type in a directory entry", .why = why, .proof = proof});
}

/* Entries of subvolumes have the type of a directory. The finding may be about the right one of the
 * two, or about the entry `default` in the root tree, the only one of its kind. */
static struct bw_error *plan_subvolume_entry(struct bw_repair *repair,
                                             struct bw_repair_finding *finding,
                                             const struct bw_tree *tree, const struct entry *entry)
{
    struct entry other = {.type = BW_FILE_UNKNOWN};
    const bool is_default = tree->id == BW_ROOT_TREE;
    if (!bw_subvolume_by_id(repair->fs, entry->location.objectid))
        return NULL;
    if (!is_default)
        BW_TRY(find_other(repair, tree, entry, &other));
    if (entry->type == BW_FILE_DIRECTORY && other.location.objectid)
        return plan_type(repair, finding, tree, &other, BW_FILE_DIRECTORY,
                         "its subvolume, and the other entry of the same name");
    if (!is_default && other.type != BW_FILE_DIRECTORY)
        return NULL;
    return plan_type(repair, finding, tree, entry, BW_FILE_DIRECTORY,
                     is_default ? "the subvolume that it names"
                                : "its subvolume, and the other entry of the same name");
}

/* The type in a directory entry, if the other entry of the same name agrees with the inode. */
static struct bw_error *plan_entry(struct bw_repair *repair, struct bw_repair_finding *finding,
                                   const struct bw_tree *tree)
{
    struct entry entry = {.length = 0}, other = {.type = BW_FILE_UNKNOWN};
    struct totals totals;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, tree, finding->key, finding->key);
    const struct bw_item *item = bw_fs_items_next(&items);
    if (item && (finding->key.type == BW_DIR_ITEM || finding->key.type == BW_DIR_INDEX))
        entry = sole_entry(item);
    BW_TRY(bw_fs_items_error(&items));
    if (entry.location.objectid && entry.location.type == BW_ROOT_ITEM)
        return plan_subvolume_entry(repair, finding, tree, &entry);
    if (!entry.location.objectid || entry.location.type != BW_INODE_ITEM)
        return NULL;
    BW_TRY(add_up(repair, tree, entry.location.objectid, &totals));
    const uint8_t type = bw_file_type_of_mode(totals.inode.mode);
    if (totals.has_inode)
        BW_TRY(find_other(repair, tree, &entry, &other));
    if (!totals.has_inode || other.type != type)
        return NULL;
    return plan_type(repair, finding, tree, &entry, type,
                     "the inode, and the other entry of the same name");
}

/* The reference count of a subvolume that has a link: 1, since no subvolume has two. */
static struct bw_error *plan_root(struct bw_repair *repair, struct bw_repair_finding *finding)
{
    const uint64_t id = finding->key.objectid;
    struct bw_fs *fs = repair->fs;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (&repair->findings.items[i] != finding && repair->findings.items[i].tree == BW_ROOT_TREE)
            return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, bw_fs_root_tree(fs), (struct bw_key){id, BW_ROOT_BACKREF, 0},
                      (struct bw_key){id, BW_ROOT_BACKREF, UINT64_MAX});
    const bool is_linked = bw_fs_items_next(&items);
    BW_TRY(bw_fs_items_error(&items));
    if (!is_linked)
        return NULL;
    BW_AUTO_FREE char *why = bw_repair_text("root item of subvolume %" PRIu64 ": it must be 1", id);
    return bw_repair_edit_item(repair, finding, bw_fs_root_tree(fs), &finding->key,
                               offsetof(struct bw_disk_root_item, reference_count), 4, 1,
                               (struct bw_repair_edit){.what = "reference count of a subvolume",
                                                       .why = why,
                                                       .proof = "the link to the subvolume"});
}

struct bw_error *bw_repair_plan_hiding_bits(struct bw_repair *repair)
{
    struct bw_repair_findings *findings = &repair->findings;
    for (size_t i = 0; i < findings->count && i < MOST_FINDINGS; i++)
        if (bw_repair_is_about_lost(&findings->items[i]) && !findings->items[i].planned &&
            findings->items[i].flipped_block != BW_ABSENT)
            BW_TRY(plan_flip(repair, &findings->items[i]));
    return NULL;
}

/* A value that was computed counts more than a bit that would make the field possible again, so
 * flipped bits are planned last, where nothing else is planned. */
struct bw_error *bw_repair_plan_inodes(struct bw_repair *repair)
{
    static const char *const of_inodes[] = {"link-count", "directory-size", "file-bytes",
                                            "link-size",  "file-size",      NULL};
    struct bw_repair_findings *findings = &repair->findings;
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    BW_TRY(bw_tree_list_load(repair->fs, &trees));
    for (size_t i = 0; i < findings->count && i < MOST_FINDINGS; i++) {
        struct bw_repair_finding *finding = &findings->items[i];
        const struct bw_listed_tree *tree = bw_tree_list_find(&trees, finding->tree);
        const bool is_entry = bw_repair_is(finding, "dir-item");
        const bool is_of_inode =
            bw_repair_is_any(finding, of_inodes) && finding->inode != BW_ABSENT;
        if (finding->planned)
            continue;
        if (is_entry && finding->tree == BW_ROOT_TREE)
            BW_TRY(plan_entry(repair, finding, bw_fs_root_tree(repair->fs)));
        else if (bw_repair_is(finding, "root-references"))
            BW_TRY(plan_root(repair, finding));
        else if (tree && is_of_inode)
            BW_TRY(plan_inode(repair, finding, &tree->tree));
        else if (tree && (is_entry || bw_repair_is(finding, "entry-type")))
            BW_TRY(plan_entry(repair, finding, &tree->tree));
    }
    for (size_t i = 0; i < findings->count && i < MOST_FINDINGS; i++)
        if (!findings->items[i].planned && findings->items[i].flipped_block != BW_ABSENT)
            BW_TRY(plan_flip(repair, &findings->items[i]));
    return NULL;
}
