/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files by device and inode, block devices by their number. Sets are small: nobody sorts them. */
#include "base/file_set.h"

#include <stdlib.h>

#include "base/array.h"

struct bw_file_identity {
    bool is_block_device;
    dev_t device;
    ino_t inode; /* 0 for a block device */
};

static struct bw_file_identity identity_of(const struct stat *status)
{
    bool is_block_device = S_ISBLK(status->st_mode);
    return is_block_device ? (struct bw_file_identity){true, status->st_rdev, 0}
                           : (struct bw_file_identity){false, status->st_dev, status->st_ino};
}

bool bw_file_set_add(struct bw_file_set *set, const char *path)
{
    struct stat status;
    if (stat(path, &status))
        return true;
    if (!BW_ARRAY_RESERVE(set->files, set->count, set->capacity))
        return false;
    set->files[set->count++] = identity_of(&status);
    return true;
}

bool bw_file_set_holds(const struct bw_file_set *set, const struct stat *status)
{
    const struct bw_file_identity wanted = identity_of(status);
    for (size_t i = 0; i < set->count; i++)
        if (set->files[i].is_block_device == wanted.is_block_device &&
            set->files[i].device == wanted.device && set->files[i].inode == wanted.inode)
            return true;
    return false;
}

void bw_file_set_free(struct bw_file_set *set)
{
    free(set->files);
    *set = (struct bw_file_set){0};
}
