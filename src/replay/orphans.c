/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a replay: inodes that were linked or unlinked get the number of their names. Those
 * without any are orphans; of directories among them, the entries are removed as well.
 */
#include <sys/stat.h>

#include "base/cleanup.h"
#include "replay/replay.h"

/* Counts the names in the items of a type. */
static struct bw_error *count_names(struct bw_replay *replay, uint64_t inode, uint8_t type,
                                    uint32_t *count)
{
    struct bw_key key = {inode, type, 0};
    for (;;) {
        struct bw_item item;
        struct bw_inode_ref ref;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != inode || item.key.type != type)
            return NULL;
        struct bw_cursor cursor = bw_cursor_of(&item);
        while (bw_inode_ref_next(&cursor, &item.key, &ref))
            (*count)++;
        key = item.key;
        if (key.offset++ == UINT64_MAX)
            return NULL;
    }
}

/* fixup_inode_link_count() */
static struct bw_error *set_count(struct bw_replay *replay, uint64_t inode)
{
    const struct bw_key orphan = {BW_ORPHAN, BW_ORPHAN_ITEM, inode};
    struct bw_disk_inode_item item;
    uint32_t count = 0;
    bool exists;
    BW_TRY(bw_replay_inode(replay, inode, &item, &exists));
    if (!exists)
        return NULL;
    BW_TRY(count_names(replay, inode, BW_INODE_REF, &count));
    BW_TRY(count_names(replay, inode, BW_INODE_EXTREF, &count));
    item.link_count = bw_put32(count);
    BW_TRY(bw_replay_set_inode(replay, inode, &item));
    if (count)
        return NULL;
    if ((bw_get32(item.mode) & S_IFMT) == S_IFDIR)
        BW_TRY(bw_replay_dir_deletes(replay, inode, true));
    return bw_edit_put(&replay->tree, &orphan, &item, 0);
}

struct bw_error *bw_replay_link_counts(struct bw_replay *replay)
{
    while (replay->recount_count) {
        uint64_t inode = replay->recount[--replay->recount_count];
        if (!bw_map_put(&replay->awaiting, inode, 0))
            return bw_error_no_memory();
        const struct bw_key key = {inode, BW_INODE_ITEM, 0};
        BW_TRY(bw_replay_try(replay, &key, set_count(replay, inode)));
    }
    return NULL;
}
