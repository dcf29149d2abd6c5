/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting EXTENT_DATA items. */
#include "fs/fs.h"
#include "fs/inode.h"

static struct bw_error *count_item(struct bw_extent_count *count, const struct bw_item *item,
                                   uint32_t sectorsize)
{
    struct bw_file_extent extent;
    struct bw_error *error = bw_file_extent_decode(item, sectorsize, &extent);
    if (error)
        return error;
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

struct bw_error *bw_extents_count(struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                  struct bw_extent_count *count)
{
    struct bw_item_range range;
    *count = (struct bw_extent_count){0};
    bw_item_range_begin(&range, &fs->reader, tree, (struct bw_key){inode, BW_EXTENT_DATA, 0},
                        (struct bw_key){inode, BW_EXTENT_DATA, UINT64_MAX});
    while (bw_item_range_next(&range)) {
        if (range.error) {
            bw_fs_report_range(fs, &range);
            continue;
        }
        struct bw_error *error = count_item(count, &range.item, fs->superblock.sectorsize);
        if (error)
            bw_fs_report(fs, BW_DAMAGE, error);
    }
    return bw_item_range_end(&range, NULL);
}
