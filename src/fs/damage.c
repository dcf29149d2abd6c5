/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of an open file system: every one passes through here on its way to the user. */
#include "fs/damage.h"

#include "fs/fs.h"

struct bw_error *bw_fs_sign(struct bw_error *error)
{
    if (!error->way)
        bw_error_add_hop(error, "fs", "fs", NULL);
    return error;
}

void bw_fs_report(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error)
{
    bw_graph_report(fs->graph, severity, bw_fs_sign(error));
}

static bool add_once(struct bw_fs *fs, struct bw_map *map, uint64_t key)
{
    pthread_mutex_lock(&fs->lost_lock);
    bool first = bw_map_get(map, key) == UINT32_MAX;
    if (first)
        bw_map_put(map, key, 1);
    pthread_mutex_unlock(&fs->lost_lock);
    return first;
}

bool bw_fs_first_doubt(struct bw_fs *fs, uint64_t tree, uint64_t inode)
{
    /* Numbers that no real file system has may fall together: that costs a warning. */
    return add_once(fs, &fs->doubtful, inode ^ tree << 40);
}

void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error)
{
    if (add_once(fs, &fs->lost, bytenr))
        bw_fs_report(fs, BW_DAMAGE, error);
    else
        bw_error_free(error);
}
