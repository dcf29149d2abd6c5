/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the replay of the log has touched. */
#include "btrfs-walk/log.h"

#include "base/cleanup.h"
#include "fs/fs.h"

struct bw_error *bw_log_inodes(const struct bw_fs *fs, bw_log_inode_taker *take, void *context)
{
    for (size_t i = 0; i < fs->logged_count; i++)
        BW_TRY(take(context, &fs->logged[i]));
    return NULL;
}
