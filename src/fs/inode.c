/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading one INODE_ITEM. */
#include "fs/inode.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "fs/fs.h"

static struct bw_error *decode(const struct bw_item *item, uint64_t tree, struct bw_inode *inode)
{
    if (bw_inode_decode(item, inode))
        return NULL;
    bool is_short = item->size < sizeof(struct bw_disk_inode_item);
    return bw_error_create(
        BW_ERROR_CORRUPT, "tree %" PRIu64 ": inode %" PRIu64 ": invalid %s %" PRIu64, tree,
        item->key.objectid, is_short ? "item size" : "size", is_short ? item->size : inode->size);
}

struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, tree, key, key);
    if (!bw_item_range_next(&range))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "tree %" PRIu64 ": there is no inode %" PRIu64,
                                tree->id, number);
    else if (range.error)
        error = BW_TAKE(range.error);
    else
        error = decode(&range.item, tree->id, inode);
    return bw_item_range_end(&range, error);
}
