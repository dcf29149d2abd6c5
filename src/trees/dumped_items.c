/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes contents from the items of leaves, and counts the rest. */
#include "trees/dumped_items.h"

#include <stdlib.h>
#include <string.h>

#include "ondisk/disk_items.h"
#include "trees/sanitized_blocks.h"

/* An item that is being cleaned. */
struct cleaning {
    const struct bw_dump_rules *rules;
    struct bw_dumped_facts *facts;
    const struct bw_item *item; /* a view on the new block */
    uint8_t *bytes;             /* the same bytes, to be changed */
};

static void remove_from(const struct cleaning *cleaning, size_t offset)
{
    if (offset < cleaning->item->size)
        memset(cleaning->bytes + offset, 0, cleaning->item->size - offset);
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
    remove_from(cleaning, has_type && extent->type == BW_FILE_EXTENT_INLINE ? head : 0);
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
    if (has_size || cleaning->rules->checksums)
        return;
    remove_from(cleaning, key->type == BW_VERITY_DESC_ITEM && key->offset == 1 &&
                                  cleaning->item->size == sizeof(struct bw_disk_fsverity)
                              ? offsetof(struct bw_disk_fsverity, root)
                              : 0);
}

/* Names, which are only counted. */

static void count_entries(const struct cleaning *cleaning)
{
    struct bw_cursor cursor = bw_cursor_of(cleaning->item);
    struct bw_dir_entry entry;
    const struct bw_key *key = &cleaning->item->key;
    while (key->objectid != BW_ROOT_TREE_DIR && bw_dir_entry_next(&cursor, &entry))
        cleaning->facts->counts[BW_DUMPED_NAMES] += key->type == BW_DIR_INDEX;
}

static void count_root_ref(const struct cleaning *cleaning)
{
    struct bw_root_ref ref;
    if (bw_root_ref_decode(cleaning->item, &ref))
        cleaning->facts->counts[BW_DUMPED_SUBVOLUME_NAMES]++;
}

/* Extended attributes. */

bool bw_dumped_facts_add_xattr(struct bw_dumped_facts *facts, const void *name, uint16_t length,
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

static void count_xattrs(const struct cleaning *cleaning)
{
    struct bw_cursor cursor = bw_cursor_of(cleaning->item);
    struct bw_dumped_facts *facts = cleaning->facts;
    struct bw_xattr xattr;
    while (bw_xattr_next(&cursor, &xattr)) {
        facts->counts[BW_DUMPED_XATTR_NAMES]++;
        if (xattr.name_length <= BW_NAME_MAX &&
            !bw_dumped_facts_add_xattr(facts, xattr.name, xattr.name_length, 1))
            facts->no_memory = true;
    }
}

/* Facts. */

static bool add_owner(struct bw_key_map *owners, uint64_t id)
{
    return owners->count >= BW_DUMPED_OWNERS || !bw_key_map_put(owners, id, 1);
}

static void add_time(struct bw_dumped_facts *facts, int64_t seconds)
{
    if (!seconds)
        return;
    facts->oldest = !facts->oldest || seconds < facts->oldest ? seconds : facts->oldest;
    facts->newest = !facts->newest || seconds > facts->newest ? seconds : facts->newest;
}

void bw_dumped_facts_add_inode(struct bw_dumped_facts *facts, const struct bw_item *item)
{
    struct bw_inode inode;
    if (!bw_inode_decode(item, &inode))
        return;
    facts->counts[BW_DUMPED_INODES]++;
    add_time(facts, inode.mtime.tv_sec);
    add_time(facts, inode.otime.tv_sec);
    if (!add_owner(&facts->users, inode.uid) || !add_owner(&facts->groups, inode.gid))
        facts->no_memory = true;
}

static void count_inode(const struct cleaning *cleaning)
{
    bw_dumped_facts_add_inode(cleaning->facts, cleaning->item);
}

static void count_root(const struct cleaning *cleaning)
{
    cleaning->facts->counts[BW_DUMPED_SUBVOLUMES]++;
}

static bool merge_owners(struct bw_key_map *owners, const struct bw_key_map *more)
{
    size_t next = 0;
    uint64_t id;
    uint32_t unused;
    while (bw_key_map_next(more, &next, &id, &unused))
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
        facts->no_memory |=
            !bw_dumped_facts_add_xattr(facts, xattr->name, xattr->length, xattr->count);
    }
    bw_dumped_facts_free(more);
}

void bw_dumped_facts_free(struct bw_dumped_facts *facts)
{
    bw_key_map_free(&facts->users);
    bw_key_map_free(&facts->groups);
    free(facts->xattr_names);
    *facts = (struct bw_dumped_facts){0};
}

/* Blocks. */

/* The functions for types of items. Items of other types are kept. */
static void (*const cleaners[256])(const struct cleaning *cleaning) = {
    [BW_INODE_ITEM] = count_inode,        [BW_XATTR_ITEM] = count_xattrs,
    [BW_VERITY_DESC_ITEM] = clean_verity, [BW_VERITY_MERKLE_ITEM] = clean_verity,
    [BW_DIR_INDEX] = count_entries,       [BW_EXTENT_DATA] = clean_file_extent,
    [BW_CSUM_ITEM] = clean_checksums,     [BW_EXTENT_CSUM] = clean_checksums,
    [BW_ROOT_ITEM] = count_root,          [BW_ROOT_REF] = count_root_ref,
};

/* Copies the items to a block of zeros. An item that lies over another one is not kept: it could
 * show the contents of the other one. */
static void copy_items(const struct bw_dump_rules *rules, const struct bw_node *leaf,
                       uint8_t *target, struct bw_dumped_facts *facts)
{
    const uint8_t *end = leaf->block + leaf->nodesize;
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
        if (cleaners[item.key.type])
            cleaners[item.key.type](&(struct cleaning){rules, facts, &item, bytes});
    }
}

static void copy_block(const struct bw_dump_rules *rules, const struct bw_node *node,
                       uint8_t *target, struct bw_dumped_facts *facts)
{
    const size_t entry =
        node->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    memcpy(target, node->block, sizeof(struct bw_disk_header) + node->item_count * entry);
    memcpy(((struct bw_disk_header *)target)->fsid, rules->fsid, BW_UUID_SIZE);
    if (!node->level)
        copy_items(rules, node, target, facts);
}

void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch, struct bw_dumped_facts *facts)
{
    const struct bw_node node = bw_node_view(block, nodesize);
    memset(scratch, 0, nodesize);
    (rules->names ? bw_sanitized_block_copy : copy_block)(rules, &node, scratch, facts);
    bw_checksum_compute(rules->checksum_type, scratch + BW_CSUM_SIZE, nodesize - BW_CSUM_SIZE,
                        scratch);
    memcpy(block, scratch, nodesize);
}
