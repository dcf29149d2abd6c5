/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the last extent, for the size of a file that nothing else tells. */
#include "fs/salvage.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "btree/item_range.h"
#include "format/file_extent.h"
#include "fs/damage.h"
#include "fs/fs.h"

struct salvage {
    struct bw_fs *fs;
    uint64_t end; /* of the last extent; 0: there is none */
};

static struct bw_error *take(void *context, const struct bw_item *item)
{
    struct salvage *salvage = context;
    struct bw_file_extent extent;
    BW_AUTO_ERROR struct bw_error *error =
        bw_file_extent_decode(item, salvage->fs->superblock.sectorsize, &extent);
    if (error || extent.type == BW_FILE_EXTENT_PREALLOC) /* which may lie behind the end of the file
                                                          */
        return NULL;
    uint64_t end = item->key.offset + extent.num_bytes;
    if (end > salvage->end && end <= INT64_MAX)
        salvage->end = end;
    return NULL;
}

static void lost(void *context, uint64_t bytenr, struct bw_error *error)
{
    const struct salvage *salvage = context;
    if (bytenr == BW_LOST_ITEM)
        bw_error_free(error); /* whoever reads the file will say so */
    else
        bw_fs_report_lost(salvage->fs, bytenr, error);
}

struct bw_error *bw_salvage_inode(struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                                  struct bw_inode *inode)
{
    struct salvage salvage = {.fs = fs};
    const struct bw_item_range range = {.first = {number, BW_EXTENT_DATA, 0},
                                        .last = {number, BW_EXTENT_DATA, UINT64_MAX},
                                        .item = take,
                                        .lost = lost,
                                        .context = &salvage};
    BW_TRY(bw_item_range_read(&fs->reader, tree, &range));
    if (!salvage.end)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "inode %" PRIu64 " is lost, and all of its extents", number);
    *inode = (struct bw_inode){.size = salvage.end, .link_count = 1, .mode = S_IFREG | 0600};
    return NULL;
}

struct bw_error *bw_inode_salvaged(const char *path)
{
    return bw_error_create(
        BW_ERROR_CORRUPT,
        "%s: its inode is lost: it ends where its last extent does, and all else that an "
        "inode tells is made up",
        path);
}
