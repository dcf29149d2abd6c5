/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Salvages lost inodes from the items that refer to them, and attaching recovery to an open file
 * system. */
#include "recovery/recovery.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* Making up a lost inode: the file ends where its last extent does. */

struct bw_error *bw_inode_salvage(struct bw_fs *fs, const struct bw_place *place,
                                  struct bw_inode *inode)
{
    const uint64_t number = place->inode;
    struct bw_item_range range;
    uint64_t size = 0;
    bw_item_range_begin(&range, &fs->reader, &place->subvolume->tree,
                        (struct bw_key){number, BW_EXTENT_DATA, 0},
                        (struct bw_key){number, BW_EXTENT_DATA, UINT64_MAX});
    while (bw_item_range_next(&range)) {
        if (range.error) {
            if (range.lost != BW_LOST_ITEM) /* readers of the file report lost items */
                bw_fs_report_range(fs, &range);
            continue;
        }
        struct bw_file_extent extent;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(&range.item, fs->superblock.sectorsize, &extent);
        if (bad || extent.type == BW_FILE_EXTENT_PREALLOC) /* may lie after the end of the file */
            continue;
        const uint64_t end = range.item.key.offset + extent.num_bytes;
        if (end <= INT64_MAX && end > size)
            size = end;
    }
    BW_TRY(bw_item_range_end(&range, NULL));
    if (!size)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "inode %" PRIu64 " is lost, and all of its extents", number);
    *inode = (struct bw_inode){.size = size, .link_count = 1, .mode = S_IFREG | 0600};
    return NULL;
}

/* Attaching it to a file system that is being opened. */

static void destroy(struct bw_recovery *recovery)
{
    bw_adoptions_destroy(recovery->adopter.context);
    bw_name_index_destroy(recovery->context);
}

struct bw_error *bw_recovery_attach(struct bw_fs *fs)
{
    struct bw_adoptions *adoptions = NULL;
    struct bw_name_index *names = NULL;
    BW_TRY(bw_adoptions_create(fs, &adoptions));
    struct bw_error *error = bw_name_index_create(fs, &names);
    fs->recovery =
        (struct bw_recovery){{bw_adoptions_find, adoptions}, bw_name_index_read, destroy, names};
    return error;
}
