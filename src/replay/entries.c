/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of directories: those that the log says are gone, and, in the second pass, those that it
 * holds.
 */
#include "base/cleanup.h"
#include "replay/replay.h"

/* Whether the log has the same entry, or may have had it. */
static bool is_logged(const struct bw_replay *replay, const struct bw_key *key,
                      const struct bw_dir_entry *entry)
{
    struct bw_dir_entry same;
    struct bw_item bytes;
    const struct bw_item *logged = bw_log_find(&replay->log, key);
    return (logged && bw_find_entry(logged, entry->name, entry->name_length, &same, &bytes)) ||
           bw_log_is_lost(&replay->log, key);
}

/* check_item_in_log(): an entry whose inode is lost stays. */
static struct bw_error *delete_entry(struct bw_replay *replay, const struct bw_item *item, bool all)
{
    struct bw_disk_inode_item inode;
    struct bw_dir_entry entry;
    struct bw_cursor cursor = bw_cursor_of(item);
    bool exists;
    if (!bw_dir_entry_next(&cursor, &entry) || entry.location.type != BW_INODE_ITEM ||
        (!all && is_logged(replay, &item->key, &entry)))
        return NULL;
    const struct bw_link link = {item->key.objectid, entry.location.objectid, item->key.offset,
                                 entry.name, entry.name_length};
    BW_TRY(bw_replay_inode(replay, link.inode, &inode, &exists));
    return exists ? bw_replay_unlink(replay, &link) : NULL;
}

/* Goes through the entries with indices from `first` to `last`. */
static struct bw_error *delete_range(struct bw_replay *replay, uint64_t directory, uint64_t first,
                                     uint64_t last, bool all)
{
    struct bw_key key = {directory, BW_DIR_INDEX, first};
    for (;;) {
        struct bw_item item;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != directory || item.key.type != BW_DIR_INDEX ||
            item.key.offset > last)
            return NULL;
        key = item.key;
        BW_TRY(delete_entry(replay, &item, all));
        if (key.offset++ == UINT64_MAX)
            return NULL;
    }
}

struct bw_error *bw_replay_dir_deletes(struct bw_replay *replay, uint64_t directory, bool all)
{
    const struct bw_key first = {directory, BW_DIR_LOG_INDEX, 0};
    if (all)
        return delete_range(replay, directory, 0, UINT64_MAX, true);
    for (size_t i = bw_log_first(&replay->log, &first); i < replay->log.count; i++) {
        const struct bw_item *item = &replay->log.items[i];
        const struct bw_disk_dir_log *range = (const void *)item->data;
        if (item->key.objectid != directory || item->key.type != BW_DIR_LOG_INDEX)
            break;
        if (item->size < sizeof *range)
            return bw_error_create(BW_ERROR_CORRUPT, "a range of a directory is cut off");
        BW_TRY(delete_range(replay, directory, item->key.offset, bw_get64(range->end), false));
    }
    return NULL;
}

/* Whether the log has the name at the inode, too: then the third pass adds it. */
static bool has_ref(const struct bw_replay *replay, const struct bw_link *link)
{
    const struct bw_key keys[] = {{link->inode, BW_INODE_REF, link->directory},
                                  bw_extref_key(link)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct bw_item *item = bw_log_find(&replay->log, &keys[i]);
        struct bw_inode_ref ref;
        struct bw_item bytes;
        if (item && bw_find_ref(item, link->directory, link->name, link->length, &ref, &bytes))
            return true;
    }
    return false;
}

/* Looks at what the directory has under the name or the index of an entry; what is in the way of
 * another inode that exists is removed (delete_conflicting_dir_entry). */
static struct bw_error *clear(struct bw_replay *replay, const struct bw_link *link, bool by_name,
                              uint8_t type, bool exists, bool *present)
{
    struct bw_dir_entry entry;
    BW_TRY(bw_replay_entry(replay, link, by_name, &entry));
    *present = entry.name;
    if (!entry.name || !exists)
        return NULL;
    if (entry.location.objectid == link->inode && entry.location.type == BW_INODE_ITEM &&
        entry.type == type && entry.name_length == link->length &&
        memcmp(entry.name, link->name, link->length) == 0)
        return NULL;
    *present = entry.location.type != BW_INODE_ITEM;
    return bw_replay_drop(replay, link, by_name);
}

/* replay_one_name() */
struct bw_error *bw_replay_dir_index(struct bw_replay *replay, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_disk_inode_item inode;
    struct bw_dir_entry entry;
    bool exists, named, indexed;
    if (!bw_dir_entry_next(&cursor, &entry) || !bw_name_is_valid(entry.name, entry.name_length))
        return bw_error_create(BW_ERROR_CORRUPT, "invalid entry of a directory");
    if (entry.location.type != BW_INODE_ITEM)
        return NULL; /* subvolumes are not made by logs */
    const struct bw_link link = {item->key.objectid, entry.location.objectid, item->key.offset,
                                 entry.name, entry.name_length};
    BW_TRY(bw_replay_inode(replay, link.directory, &inode, &exists));
    if (!exists)
        return bw_error_create(BW_ERROR_CORRUPT, "the directory does not exist");
    BW_TRY(bw_replay_inode(replay, link.inode, &inode, &exists));
    BW_TRY(clear(replay, &link, true, entry.type, exists, &named));
    BW_TRY(clear(replay, &link, false, entry.type, exists, &indexed));
    if (named || indexed || !exists || has_ref(replay, &link))
        return NULL;
    BW_TRY(bw_replay_link(replay, &link, true));
    return entry.type == BW_FILE_DIRECTORY ? NULL : bw_replay_recount(replay, link.inode);
}
