/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first pass: inodes of the log take the place of those in the subvolume, attributes and
 * entries of directories that are gone are removed, and files are cut off at their new size.
 */
#include <sys/stat.h>

#include "base/cleanup.h"
#include "replay/replay.h"

/* Removes those attributes from an item that the log lacks; it has all that there still are. */
static struct bw_error *delete_from_item(struct bw_replay *replay, const struct bw_item *item)
{
    const struct bw_item *logged = bw_log_find(&replay->log, &item->key);
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry, same;
    struct bw_item bytes;
    if (bw_log_is_lost(&replay->log, &item->key))
        return NULL;
    for (const uint8_t *start = cursor.next; bw_dir_entry_next(&cursor, &entry);
         start = cursor.next)
        if (!logged || !bw_find_entry(logged, entry.name, entry.name_length, &same, &bytes))
            return bw_replay_cut(replay, item, start, cursor.next);
    return NULL;
}

/* replay_xattr_deletes() */
static struct bw_error *delete_xattrs(struct bw_replay *replay, uint64_t inode)
{
    struct bw_key key = {inode, BW_XATTR_ITEM, 0};
    for (;;) {
        struct bw_item item, again;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != inode || item.key.type != BW_XATTR_ITEM)
            return NULL;
        const uint32_t size = item.size;
        key = item.key;
        BW_TRY(delete_from_item(replay, &item));
        BW_TRY(bw_edit_find(&replay->tree, &key, &again));
        if (again.data && again.size < size)
            continue; /* another one may have to go from the same item */
        if (key.offset++ == UINT64_MAX)
            return NULL;
    }
}

static bool is_type(const struct bw_disk_inode_item *inode, uint32_t type)
{
    return (bw_get32(inode->mode) & S_IFMT) == type;
}

/* What is only known to exist keeps what the subvolume says of it; but a size counts that was
 * logged. */
static void keep_old(struct bw_disk_inode_item *old, const struct bw_disk_inode_item *new)
{
    if (is_type(old, S_IFREG) && is_type(new, S_IFREG) && bw_get64(new->size))
        old->size = new->size;
}

/* overwrite_item(), for inodes */
static struct bw_error *overwrite(struct bw_replay *replay, uint64_t number,
                                  struct bw_disk_inode_item *new)
{
    struct bw_disk_inode_item old;
    bool exists, directory = is_type(new, S_IFDIR);
    BW_TRY(bw_replay_inode(replay, number, &old, &exists));
    if (exists && bw_get64(new->generation) == 0) {
        keep_old(&old, new);
        return bw_replay_set_inode(replay, number, &old);
    }
    new->bytes = exists ? old.bytes : bw_put64(0);
    if (directory)
        new->size = exists &&is_type(&old, S_IFDIR) ? old.size : bw_put64(0);
    if (bw_get64(new->generation) == 0)
        new->generation = bw_put64(replay->tree.generation);
    return bw_replay_set_inode(replay, number, new);
}

/* Extents after the end of a file are logged again if they are still there. */
static struct bw_error *truncate_file(struct bw_replay *replay, uint64_t number)
{
    const uint64_t sectorsize = replay->fs->superblock.sectorsize;
    struct bw_disk_inode_item item;
    uint64_t dropped;
    bool exists;
    BW_TRY(bw_replay_inode(replay, number, &item, &exists));
    uint64_t size = bw_get64(item.size), over = size % sectorsize;
    if (size > INT64_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid size of a file");
    if (over)
        size += sectorsize - over;
    BW_TRY(bw_replay_drop_extents(replay, number, size, UINT64_MAX, &dropped));
    item.bytes = bw_put64(bw_get64(item.bytes) - dropped);
    return bw_replay_set_inode(replay, number, &item);
}

struct bw_error *bw_replay_inode_item(struct bw_replay *replay, const struct bw_item *item)
{
    struct bw_disk_inode_item new;
    const uint64_t number = item->key.objectid;
    if (item->size < sizeof new)
        return bw_error_create(BW_ERROR_CORRUPT, "an inode is cut off");
    memcpy(&new, item->data, sizeof new);
    BW_TRY(delete_xattrs(replay, number));
    if (is_type(&new, S_IFDIR))
        BW_TRY(bw_replay_dir_deletes(replay, number, false));
    BW_TRY(overwrite(replay, number, &new));
    if (is_type(&new, S_IFREG))
        BW_TRY(truncate_file(replay, number));
    return bw_replay_recount(replay, number);
}
