/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The third pass, for the names of inodes: an INODE_REF of the log has all names that an inode has
 * in a directory, so that names that it lacks are gone, and others are new. That is how files get
 * renamed whose directories were not logged.
 */
#include "base/cleanup.h"
#include "replay/replay.h"

static struct bw_error *exists_inode(struct bw_replay *replay, uint64_t inode, bool *exists)
{
    struct bw_disk_inode_item item;
    return bw_replay_inode(replay, inode, &item, exists);
}

static bool is_same(const struct bw_dir_entry *entry, const struct bw_link *link)
{
    return entry->name && entry->location.objectid == link->inode &&
           entry->location.type == BW_INODE_ITEM && entry->name_length == link->length &&
           memcmp(entry->name, link->name, link->length) == 0;
}

/* inode_in_dir() */
static struct bw_error *is_linked(struct bw_replay *replay, const struct bw_link *link,
                                  bool *linked)
{
    struct bw_dir_entry entry;
    BW_TRY(bw_replay_entry(replay, link, false, &entry));
    *linked = is_same(&entry, link);
    if (!*linked)
        return NULL;
    BW_TRY(bw_replay_entry(replay, link, true, &entry));
    *linked = is_same(&entry, link);
    return NULL;
}

/* Finds a name that an item of the subvolume has, in `directory` (0: in any), and that the log
 * lacks under the key that it would have there. */
static bool find_victim(const struct bw_replay *replay, const struct bw_item *item,
                        uint64_t directory, struct bw_link *victim)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref, same;
    struct bw_item bytes;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        if (directory && ref.parent != directory)
            continue;
        *victim =
            (struct bw_link){ref.parent, item->key.objectid, ref.index, ref.name, ref.name_length};
        const struct bw_key key =
            item->key.type == BW_INODE_REF ? item->key : bw_extref_key(victim);
        const struct bw_item *logged = bw_log_find(&replay->log, &key);
        if (bw_log_is_lost(&replay->log, &key))
            continue;
        if (!logged || !bw_find_ref(logged, ref.parent, ref.name, ref.name_length, &same, &bytes))
            return true;
    }
    return false;
}

/* Removes the names that an item has and the log lacks, one after the other. */
static struct bw_error *unlink_victims(struct bw_replay *replay, const struct bw_key *key,
                                       uint64_t directory)
{
    for (uint32_t size = UINT32_MAX;;) {
        struct bw_link victim;
        struct bw_item item;
        BW_TRY(bw_edit_find(&replay->tree, key, &item));
        if (!item.data || item.size >= size || !find_victim(replay, &item, directory, &victim))
            return NULL;
        size = item.size; /* it gets less each time */
        BW_TRY(bw_replay_unlink(replay, &victim));
    }
}

/* __add_inode_ref(): makes way for a name. */
static struct bw_error *clear(struct bw_replay *replay, const struct bw_link *link)
{
    const struct bw_key ref = {link->inode, BW_INODE_REF, link->directory},
                        extref = bw_extref_key(link);
    BW_TRY(unlink_victims(replay, &ref, link->directory));
    BW_TRY(unlink_victims(replay, &extref, link->directory));
    BW_TRY(bw_replay_drop(replay, link, false));
    return bw_replay_drop(replay, link, true);
}

static struct bw_error *add_link(struct bw_replay *replay, const struct bw_link *link,
                                 bool *skip_rest)
{
    bool exists, linked;
    BW_TRY(exists_inode(replay, link->directory, &exists));
    *skip_rest = !exists || link->directory == link->inode;
    if (*skip_rest)
        return NULL;
    BW_TRY(is_linked(replay, link, &linked));
    if (linked)
        return NULL;
    BW_TRY(clear(replay, link));
    return bw_replay_link(replay, link, false);
}

/* add_inode_ref() */
struct bw_error *bw_replay_refs(struct bw_replay *replay, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    bool exists, skip_rest;
    BW_TRY(exists_inode(replay, item->key.objectid, &exists));
    if (!exists)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        const struct bw_link link = {ref.parent, item->key.objectid, ref.index, ref.name,
                                     ref.name_length};
        if (item->key.objectid != BW_SUBVOLUME_ROOT_INODE &&
            !bw_name_is_valid(ref.name, ref.name_length))
            return bw_error_create(BW_ERROR_CORRUPT, "invalid name of an inode");
        BW_TRY(add_link(replay, &link, &skip_rest));
        if (skip_rest && item->key.type == BW_INODE_REF)
            return NULL;
    }
    if (bw_cursor_bad(&cursor))
        return bw_error_create(BW_ERROR_CORRUPT, "a name of an inode is cut off");
    BW_TRY(unlink_victims(replay, &item->key, 0)); /* unlink_old_inode_refs() */
    return bw_edit_put(&replay->tree, &item->key, item->data, item->size);
}
