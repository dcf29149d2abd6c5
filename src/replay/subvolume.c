/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subvolume that a log is applied to: removing names, and which inodes are to be counted. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "replay/replay.h"

struct bw_error *bw_replay_recount(struct bw_replay *replay, uint64_t inode)
{
    struct bw_fs *fs = replay->fs;
    uint32_t known = bw_key_map_get(&replay->awaiting, inode, UINT32_MAX);
    if (known == 1)
        return NULL;
    if (known == UINT32_MAX) {
        BW_TRY(bw_log_inodes_push(&fs->logged, (struct bw_log_inode){replay->subvolume, inode}));
    }
    BW_TRY(bw_numbers_reserve(&replay->recount, 1));
    BW_TRY(bw_key_map_put(&replay->awaiting, inode, 1));
    replay->recount.items[replay->recount.count++] = inode;
    return NULL;
}

struct bw_error *bw_replay_try(struct bw_replay *replay, const struct bw_key *key,
                               struct bw_error *error)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (replay->reported == key->objectid || replay->rehearsal) {
        bw_error_free(error);
        return NULL;
    }
    replay->reported = key->objectid;
    bw_fs_report(replay->fs, BW_DAMAGE,
                 bw_error_prefix(error,
                                 "log tree of subvolume %" PRIu64 ": item (%" PRIu64 " %u %" PRIu64
                                 ") is not replayed",
                                 replay->subvolume, key->objectid, key->type, key->offset));
    return NULL;
}

struct bw_error *bw_replay_unlink(struct bw_replay *replay, const struct bw_link *link)
{
    const uint64_t inode = link->inode; /* the link may be in an item that changes */
    BW_TRY(bw_edit_unlink(&replay->tree, link));
    return bw_replay_recount(replay, inode);
}

struct bw_error *bw_replay_drop(struct bw_replay *replay, const struct bw_link *link, bool by_name)
{
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_entry(&replay->tree, link, by_name, &entry));
    if (!entry.name || entry.location.type != BW_INODE_ITEM)
        return NULL;
    const struct bw_link other = {link->directory, entry.location.objectid, link->index, entry.name,
                                  entry.name_length};
    return bw_replay_unlink(replay, &other);
}
