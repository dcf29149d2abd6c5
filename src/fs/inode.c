/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading INODE_ITEMs: one, or those of a whole directory in one scan that leaves out what is
 * between them.
 */
#include "fs/inode.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "btree/item_range.h"
#include "btree/scan.h"
#include "format/acl.h"
#include "format/checksum.h"
#include "fs/damage.h"
#include "fs/fs.h"

struct search {
    struct bw_inode *inode;
    uint64_t tree;
    bool found;
};

static struct bw_error *take(void *context, const struct bw_item *item)
{
    struct search *search = context;
    search->found = bw_inode_decode(item, search->inode);
    if (search->found)
        return NULL;
    bool is_short = item->size < sizeof(struct bw_disk_inode_item);
    return bw_error_create(BW_ERROR_CORRUPT,
                           "tree %" PRIu64 ": inode %" PRIu64 ": invalid %s %" PRIu64, search->tree,
                           item->key.objectid, is_short ? "item size" : "size",
                           is_short ? item->size : search->inode->size);
}

struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct search search = {inode, tree->id, false};
    const struct bw_item_range range = {
        .first = key, .last = key, .item = take, .context = &search};
    BW_TRY(bw_item_range_read(&fs->reader, tree, &range));
    if (search.found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "tree %" PRIu64 ": there is no inode %" PRIu64,
                           tree->id, number);
}

/* The items that are asked for of each of many inodes. */
enum { KEYS = 3 };

/* A reading of many. */
struct reading {
    struct bw_fs *fs;
    struct bw_wanted_inode *wanted;
    size_t count;
    struct bw_key keys[KEYS]; /* ascending; objectid is to be filled in */
    unsigned key_count;
};

/* The first one wanted with a number of at least this. */
static size_t first_at(const struct reading *reading, uint64_t number)
{
    size_t low = 0, high = reading->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reading->wanted[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a key of this inode lies at or behind the first key of a block; whether it lies in it,
 * the first such key tells. */
static bool reaches(const struct reading *reading, uint64_t number,
                    const struct bw_block_pointer *pointer, bool *inside)
{
    for (unsigned i = 0; i < reading->key_count; i++) {
        struct bw_key key = reading->keys[i];
        key.objectid = number;
        if (bw_key_compare(&key, &pointer->expectation.first_key) < 0)
            continue;
        *inside = bw_key_compare(&key, &pointer->expectation.end_key) < 0;
        return true;
    }
    return false;
}

static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    const struct reading *reading = context;
    bool inside = false;
    size_t next = first_at(reading, pointer->expectation.first_key.objectid);
    /* At most two steps: only of the block's first inode all keys can lie before it. */
    while (next < reading->count &&
           !reaches(reading, reading->wanted[next].number, pointer, &inside))
        next++;
    return inside;
}

static bool holds_acl(const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_xattr xattr;
    bool is_default, found = false;
    while (!found && bw_xattr_next(&cursor, &xattr))
        found = bw_acl_is_one(&xattr, &is_default);
    return found;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    const struct reading *reading = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        bool inside = bw_leaf_item(leaf, slot, &item);
        if (!inside || (item.key.type != BW_INODE_ITEM && item.key.type != BW_XATTR_ITEM))
            continue;
        size_t next = first_at(reading, item.key.objectid);
        if (next == reading->count || reading->wanted[next].number != item.key.objectid)
            continue;
        struct bw_wanted_inode *wanted = &reading->wanted[next];
        if (item.key.type == BW_INODE_ITEM)
            wanted->found |= bw_inode_decode(&item, &wanted->inode);
        else
            wanted->has_acl |= reading->key_count > 1 && holds_acl(&item);
    }
    return NULL;
}

static void lost(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    const struct reading *reading = context;
    bw_fs_report_lost(reading->fs, pointer->bytenr, error);
}

static void set_keys(struct reading *reading, bool acls)
{
    reading->keys[reading->key_count++] = (struct bw_key){0, BW_INODE_ITEM, 0};
    if (!acls)
        return;
    uint32_t first = bw_name_hash(BW_ACL_ACCESS, strlen(BW_ACL_ACCESS));
    uint32_t second = bw_name_hash(BW_ACL_DEFAULT, strlen(BW_ACL_DEFAULT));
    reading->keys[reading->key_count++] =
        (struct bw_key){0, BW_XATTR_ITEM, first < second ? first : second};
    reading->keys[reading->key_count++] =
        (struct bw_key){0, BW_XATTR_ITEM, first < second ? second : first};
}

struct bw_error *bw_inodes_read(struct bw_fs *fs, const struct bw_tree *tree,
                                struct bw_wanted_inode *wanted, size_t count, bool acls)
{
    struct reading reading = {.fs = fs, .wanted = wanted, .count = count};
    if (!count)
        return NULL;
    set_keys(&reading, acls);
    struct bw_scan scan = {.first = reading.keys[0],
                           .last = reading.keys[reading.key_count - 1],
                           .adopt = true,
                           .wants = wants,
                           .leaf = take_leaf,
                           .lost = lost,
                           .context = &reading};
    scan.first.objectid = wanted[0].number;
    scan.last.objectid = wanted[count - 1].number;
    return bw_tree_scan(&fs->reader, tree, &scan);
}
