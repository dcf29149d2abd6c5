/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading XATTR_ITEMs, each of which packs the attributes whose names have the same hash. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/inode.h"

struct bw_error *bw_xattrs_of_item(struct bw_fs *fs, uint64_t tree, const struct bw_item *item,
                                   bw_xattr_taker *take, void *context)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_xattr xattr;
    while (bw_xattr_next(&cursor, &xattr))
        if (xattr.name_length)
            BW_TRY(take(context, &xattr));
    if (bw_cursor_bad(&cursor))
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "tree %" PRIu64 ": inode %" PRIu64
                                     ": an extended attribute is cut off",
                                     tree, item->key.objectid));
    return NULL;
}

struct reading {
    struct bw_fs *fs;
    uint64_t tree;
    bw_xattr_taker *take;
    void *context;
};

static struct bw_error *take_item(void *context, const struct bw_item *item)
{
    const struct reading *reading = context;
    return bw_xattrs_of_item(reading->fs, reading->tree, item, reading->take, reading->context);
}

struct bw_error *bw_xattrs_read(struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                bw_xattr_taker *take, void *context)
{
    struct reading reading = {fs, tree->id, take, context};
    return bw_fs_items(fs, tree, (struct bw_key){inode, BW_XATTR_ITEM, 0},
                       (struct bw_key){inode, BW_XATTR_ITEM, UINT64_MAX}, take_item, &reading);
}
