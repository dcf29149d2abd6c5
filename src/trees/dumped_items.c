/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes contents and names from the items of leaves, and counts the rest. */
#include "trees/dumped_items.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "ondisk/disk_items.h"
#include "ondisk/structure.h"

/* An item that is being cleaned. */
struct cleaning {
    const struct bw_dump_rules *rules;
    struct bw_dumped_facts *facts;
    const struct bw_item *item; /* a view on the new block */
    uint8_t *bytes;             /* the same bytes, to be changed */
    bool has_files;             /* the block belongs to a tree of files */
};

static void remove_from(const struct cleaning *cleaning, size_t offset)
{
    if (offset < cleaning->item->size)
        memset(cleaning->bytes + offset, 0, cleaning->item->size - offset);
}

/* The bytes of a view on the item, to be changed. */
static uint8_t *writable_bytes(const struct cleaning *cleaning, const uint8_t *view)
{
    return cleaning->bytes + (view - cleaning->item->data);
}

/* Contents and checksums. */

static void clean_file_extent(const struct cleaning *cleaning)
{
    const struct bw_disk_file_extent *extent = (const void *)cleaning->bytes;
    const size_t head = offsetof(struct bw_disk_file_extent, disk_bytenr);
    const bool has_type = cleaning->item->size >= head;
    if (has_type &&
        (extent->type == BW_FILE_EXTENT_REGULAR || extent->type == BW_FILE_EXTENT_PREALLOC)) {
        remove_from(cleaning, sizeof *extent);
        return;
    }
    const bool is_inline = has_type && extent->type == BW_FILE_EXTENT_INLINE;
    remove_from(cleaning, is_inline || (has_type && !cleaning->rules->names) ? head : 0);
    cleaning->facts->counts[BW_DUMPED_INLINE]++;
}

static void clean_checksums(const struct cleaning *cleaning)
{
    cleaning->facts->counts[BW_DUMPED_CHECKSUMS]++;
    if (!cleaning->rules->checksums)
        remove_from(cleaning, 0);
}

/* Hashes of contents: the Merkle tree, and in the descriptor everything after the size. */
static void clean_verity(const struct cleaning *cleaning)
{
    const struct bw_key *key = &cleaning->item->key;
    const bool has_size = key->type == BW_VERITY_DESC_ITEM && !key->offset &&
                          cleaning->item->size == sizeof(struct bw_disk_verity_descriptor);
    cleaning->facts->counts[BW_DUMPED_VERITY]++;
    if (has_size || (cleaning->rules->checksums && !cleaning->rules->names))
        return;
    remove_from(cleaning, key->type == BW_VERITY_DESC_ITEM && key->offset == 1 &&
                                  cleaning->item->size == sizeof(struct bw_disk_fsverity)
                              ? offsetof(struct bw_disk_fsverity, root)
                              : 0);
}

/* Names. */

/* Replaces a name, if that is requested and possible. */
static bool replace_name(const struct cleaning *cleaning, uint32_t seed, const uint8_t *name,
                         size_t length)
{
    return cleaning->rules->names &&
           bw_pseudonym(cleaning->rules->names, seed, writable_bytes(cleaning, name), length);
}

static void clean_dir_entries(const struct cleaning *cleaning)
{
    struct bw_cursor cursor = bw_cursor_of(cleaning->item);
    struct bw_dir_entry entry;
    const uint8_t *end = cursor.next;
    const struct bw_key *key = &cleaning->item->key;
    uint64_t *counts = cleaning->facts->counts;
    /* The only entry of the root tree is "default", which leads to the default subvolume. */
    while (key->objectid != BW_ROOT_TREE_DIR && bw_dir_entry_next(&cursor, &entry)) {
        const bool replaced = replace_name(cleaning, BW_NAME_SEED, entry.name, entry.name_length);
        end = cursor.next;
        counts[BW_DUMPED_NAMES] += key->type == BW_DIR_INDEX;
        counts[BW_DUMPED_NAMES_REPLACED] += replaced && key->type == BW_DIR_INDEX;
        if (cleaning->rules->names)
            memset(writable_bytes(cleaning, entry.name + entry.name_length), 0,
                   (size_t)(end - entry.name) - entry.name_length);
    }
    if (bw_cursor_bad(&cursor) && cleaning->rules->names)
        remove_from(cleaning, (size_t)(end - cleaning->item->data));
}

static void clean_inode_refs(const struct cleaning *cleaning)
{
    struct bw_cursor cursor = bw_cursor_of(cleaning->item);
    struct bw_inode_ref ref;
    const uint8_t *end = cursor.next;
    while (bw_inode_ref_next(&cursor, &cleaning->item->key, &ref)) {
        replace_name(cleaning, BW_NAME_SEED, ref.name, ref.name_length);
        end = cursor.next;
    }
    if (bw_cursor_bad(&cursor) && cleaning->rules->names)
        remove_from(cleaning, (size_t)(end - cleaning->item->data));
}

static void clean_root_ref(const struct cleaning *cleaning)
{
    struct bw_root_ref ref;
    const bool counts = cleaning->item->key.type == BW_ROOT_REF;
    if (!bw_root_ref_decode(cleaning->item, &ref)) {
        if (cleaning->rules->names)
            remove_from(cleaning, 0);
        return;
    }
    const bool replaced = replace_name(cleaning, BW_NAME_SEED, ref.name, ref.name_length);
    cleaning->facts->counts[BW_DUMPED_SUBVOLUME_NAMES] += counts;
    cleaning->facts->counts[BW_DUMPED_SUBVOLUME_NAMES_REPLACED] += counts && replaced;
    if (cleaning->rules->names)
        remove_from(cleaning, (size_t)(ref.name - cleaning->item->data) + ref.name_length);
}

/* Extended attributes. */

static bool add_xattr_name(struct bw_dumped_facts *facts, const void *name, uint16_t length,
                           uint64_t count)
{
    if (!facts->xattr_names)
        facts->xattr_names = calloc(BW_DUMPED_XATTRS, sizeof *facts->xattr_names);
    if (!facts->xattr_names)
        return false;
    size_t i = 0;
    while (i < facts->xattr_name_count && (facts->xattr_names[i].length != length ||
                                           memcmp(facts->xattr_names[i].name, name, length) != 0))
        i++;
    if (i == BW_DUMPED_XATTRS)
        return true;
    struct bw_dumped_xattr *known = &facts->xattr_names[i];
    if (i == facts->xattr_name_count) {
        facts->xattr_name_count++;
        known->length = length;
        memcpy(known->name, name, length);
    }
    known->count += count;
    return true;
}

static bool begins_with(const struct bw_xattr *xattr, const char *prefix)
{
    const size_t length = strlen(prefix);
    return xattr->name_length > length && memcmp(xattr->name, prefix, length) == 0;
}

/* Users choose the names of the attributes that begin with "user.". The value of those that begin
 * with "btrfs." are words of the file system. */
static void clean_xattr(const struct cleaning *cleaning, const struct bw_xattr *xattr)
{
    static const char user[] = "user.";
    const size_t prefix = sizeof user - 1;
    struct bw_dumped_facts *facts = cleaning->facts;
    bool replaced = false;
    if (begins_with(xattr, user))
        replaced = replace_name(cleaning, bw_crc32c(BW_NAME_SEED, user, prefix),
                                (const uint8_t *)xattr->name + prefix, xattr->name_length - prefix);
    if (cleaning->rules->names && !begins_with(xattr, "btrfs."))
        memset(writable_bytes(cleaning, xattr->value), 0, xattr->value_length);
    facts->counts[BW_DUMPED_XATTR_NAMES]++;
    facts->counts[BW_DUMPED_XATTR_NAMES_REPLACED] += replaced;
    if (!replaced && xattr->name_length <= BW_NAME_MAX &&
        !add_xattr_name(facts, xattr->name, (uint16_t)xattr->name_length, 1))
        facts->no_memory = true;
}

static void clean_xattrs(const struct cleaning *cleaning)
{
    struct bw_cursor cursor = bw_cursor_of(cleaning->item);
    struct bw_xattr xattr;
    const uint8_t *end = cursor.next;
    while (bw_xattr_next(&cursor, &xattr)) {
        clean_xattr(cleaning, &xattr);
        end = cursor.next;
    }
    if (bw_cursor_bad(&cursor) && cleaning->rules->names)
        remove_from(cleaning, (size_t)(end - cleaning->item->data));
}

/* Facts. */

static bool add_owner(struct bw_map *owners, uint64_t id)
{
    return owners->count >= BW_DUMPED_OWNERS || bw_map_put(owners, id, 1);
}

static void add_time(struct bw_dumped_facts *facts, int64_t seconds)
{
    if (!seconds)
        return;
    facts->oldest = !facts->oldest || seconds < facts->oldest ? seconds : facts->oldest;
    facts->newest = !facts->newest || seconds > facts->newest ? seconds : facts->newest;
}

static void count_inode(const struct cleaning *cleaning)
{
    struct bw_dumped_facts *facts = cleaning->facts;
    struct bw_inode inode;
    if (cleaning->rules->names && cleaning->item->size != sizeof(struct bw_disk_inode_item)) {
        remove_from(cleaning, 0);
        return;
    }
    if (!bw_inode_decode(cleaning->item, &inode))
        return;
    facts->counts[BW_DUMPED_INODES]++;
    add_time(facts, inode.mtime.tv_sec);
    add_time(facts, inode.otime.tv_sec);
    if (!add_owner(&facts->users, inode.uid) || !add_owner(&facts->groups, inode.gid))
        facts->no_memory = true;
}

static bool merge_owners(struct bw_map *owners, const struct bw_map *more)
{
    size_t next = 0;
    uint64_t id;
    uint32_t unused;
    while (bw_map_next(more, &next, &id, &unused))
        if (!add_owner(owners, id))
            return false;
    return true;
}

void bw_dumped_facts_merge(struct bw_dumped_facts *facts, struct bw_dumped_facts *more)
{
    for (unsigned i = 0; i < BW_DUMPED_COUNTS; i++)
        facts->counts[i] += more->counts[i];
    facts->no_memory |= more->no_memory || !merge_owners(&facts->users, &more->users) ||
                        !merge_owners(&facts->groups, &more->groups);
    add_time(facts, more->oldest);
    add_time(facts, more->newest);
    for (size_t i = 0; i < more->xattr_name_count; i++) {
        const struct bw_dumped_xattr *xattr = &more->xattr_names[i];
        facts->no_memory |= !add_xattr_name(facts, xattr->name, xattr->length, xattr->count);
    }
    bw_dumped_facts_free(more);
}

void bw_dumped_facts_free(struct bw_dumped_facts *facts)
{
    bw_map_free(&facts->users);
    bw_map_free(&facts->groups);
    free(facts->xattr_names);
    *facts = (struct bw_dumped_facts){0};
}

/* Blocks. */

/* The functions for types of items. Items of other types are kept, if their type is known. */
static void (*const cleaners[256])(const struct cleaning *cleaning) = {
    [BW_INODE_ITEM] = count_inode,        [BW_INODE_REF] = clean_inode_refs,
    [BW_INODE_EXTREF] = clean_inode_refs, [BW_XATTR_ITEM] = clean_xattrs,
    [BW_VERITY_DESC_ITEM] = clean_verity, [BW_VERITY_MERKLE_ITEM] = clean_verity,
    [BW_DIR_ITEM] = clean_dir_entries,    [BW_DIR_INDEX] = clean_dir_entries,
    [BW_EXTENT_DATA] = clean_file_extent, [BW_CSUM_ITEM] = clean_checksums,
    [BW_EXTENT_CSUM] = clean_checksums,   [BW_ROOT_REF] = clean_root_ref,
    [BW_ROOT_BACKREF] = clean_root_ref,
};

static bool is_log_range(const struct bw_item *item)
{
    const bool has_type = item->key.type == BW_DIR_LOG_ITEM || item->key.type == BW_DIR_LOG_INDEX;
    return has_type && item->size == sizeof(struct bw_disk_dir_log);
}

/* Whether the contents are unknown, or any text. In a tree of files, an item of another tree's type
 * is damaged, so it may be an item with names. */
static bool may_hide_names(const struct cleaning *cleaning)
{
    const struct bw_key *key = &cleaning->item->key;
    return key->type == BW_STRING_ITEM || !bw_structure_numbered(bw_structure_number(key)) ||
           (cleaning->has_files && !is_log_range(cleaning->item));
}

static void clean_item(const struct cleaning *cleaning)
{
    const struct bw_key *key = &cleaning->item->key;
    cleaning->facts->counts[BW_DUMPED_SUBVOLUMES] += key->type == BW_ROOT_ITEM;
    if (cleaners[key->type]) {
        cleaners[key->type](cleaning);
    } else if (cleaning->rules->names && cleaning->item->size && may_hide_names(cleaning)) {
        cleaning->facts->counts[BW_DUMPED_REMOVED]++;
        remove_from(cleaning, 0);
    }
}

static bool has_files(const struct bw_node *leaf)
{
    const struct bw_disk_header *header = (const void *)leaf->block;
    const uint64_t owner = bw_get64(header->owner);
    return owner == BW_TOP_SUBVOLUME || owner == BW_TREE_LOG || owner == BW_TREE_RELOC ||
           owner == BW_DATA_RELOC_TREE ||
           (owner >= BW_FIRST_SUBVOLUME && owner <= BW_LAST_SUBVOLUME);
}

/* Copies the items to a block of zeros. An item that lies over another one is not kept: it could
 * show the contents of the other one. */
static void copy_items(const struct bw_dump_rules *rules, const struct bw_node *leaf,
                       uint8_t *target, struct bw_dumped_facts *facts)
{
    const uint8_t *end = leaf->block + leaf->nodesize;
    const bool files = has_files(leaf);
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        if (!bw_leaf_item(leaf, slot, &item) || item.data + item.size > end) {
            facts->counts[BW_DUMPED_REMOVED]++;
            continue;
        }
        end = item.data;
        uint8_t *bytes = target + (item.data - leaf->block);
        memcpy(bytes, item.data, item.size);
        item.data = bytes;
        clean_item(&(struct cleaning){rules, facts, &item, bytes, files});
    }
}

void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch, struct bw_dumped_facts *facts)
{
    const struct bw_node node = bw_node_view(block, nodesize);
    const size_t entry =
        node.level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    const size_t head = sizeof(struct bw_disk_header) + node.item_count * entry;
    memcpy(scratch, block, head);
    memset(scratch + head, 0, nodesize - head);
    memcpy(((struct bw_disk_header *)scratch)->fsid, rules->fsid, BW_UUID_SIZE);
    if (!node.level)
        copy_items(rules, &node, scratch, facts);
    bw_checksum_compute(rules->checksum_type, scratch + BW_CSUM_SIZE, nodesize - BW_CSUM_SIZE,
                        scratch);
    memcpy(block, scratch, nodesize);
}
