/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting EXTENT_DATA items. */
#include "fs/extent_count.h"

#include "btree/item_range.h"
#include "fs/damage.h"
#include "fs/fs.h"

struct counting {
    struct bw_fs *fs;
    struct bw_extent_count *count;
};

static struct bw_error *take(void *context, const struct bw_item *item)
{
    const struct counting *counting = context;
    struct bw_extent_count *count = counting->count;
    struct bw_file_extent extent;
    struct bw_error *error =
        bw_file_extent_decode(item, counting->fs->superblock.sectorsize, &extent);
    if (error) {
        bw_fs_report(counting->fs, BW_DAMAGE, error);
        return NULL;
    }
    count->total++;
    if (extent.type == BW_FILE_EXTENT_REGULAR && extent.disk_bytenr == 0) {
        count->holes++;
        return NULL;
    }
    count->inlined += extent.type == BW_FILE_EXTENT_INLINE;
    count->regular += extent.type == BW_FILE_EXTENT_REGULAR;
    count->unwritten += extent.type == BW_FILE_EXTENT_PREALLOC;
    count->compressions[extent.compression]++;
    return NULL;
}

static void lost(void *context, uint64_t bytenr, struct bw_error *error)
{
    const struct counting *counting = context;
    if (bytenr == BW_LOST_ITEM)
        bw_fs_report(counting->fs, BW_DAMAGE, error);
    else
        bw_fs_report_lost(counting->fs, bytenr, error);
}

struct bw_error *bw_extents_count(struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                  struct bw_extent_count *count)
{
    struct counting counting = {fs, count};
    *count = (struct bw_extent_count){0};
    const struct bw_item_range range = {.first = {inode, BW_EXTENT_DATA, 0},
                                        .last = {inode, BW_EXTENT_DATA, UINT64_MAX},
                                        .item = take,
                                        .lost = lost,
                                        .context = &counting};
    return bw_item_range_read(&fs->reader, tree, &range);
}
