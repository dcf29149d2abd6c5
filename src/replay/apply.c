/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applying the items of a log. Each item replaces the item with its key in the subvolume, after
 * everything that conflicts with it was removed: names that the log lacks or gives to another
 * inode, the extents in its range, attributes that no longer exist. A part of the log that cannot
 * be read never counts as a deletion: items that it may have contained stay (bw_log_is_lost()).
 * Inodes that gain or lose names are collected, and get their link counts at the end.
 */
#include "replay/replay.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "ondisk/checksum.h"

/* Schedules an inode for counting its names at the end (link_to_fixup_dir). */
static struct bw_error *recount(struct bw_replay *replay, uint64_t inode)
{
    struct bw_fs *fs = replay->fs;
    uint32_t known = bw_key_map_get(&replay->awaiting, inode, UINT32_MAX);
    if (known == 1)
        return NULL;
    if (known == UINT32_MAX)
        BW_TRY(bw_log_inodes_push(&fs->logged, (struct bw_log_inode){replay->subvolume, inode}));
    BW_TRY(bw_numbers_reserve(&replay->recount, 1));
    BW_TRY(bw_key_map_put(&replay->awaiting, inode, 1));
    replay->recount.items[replay->recount.count++] = inode;
    return NULL;
}

struct bw_error *bw_replay_report(struct bw_replay *replay, const struct bw_key *key,
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

/* Removes a name from a directory and from the inode (btrfs_unlink_inode). */
static struct bw_error *unlink_name(struct bw_replay *replay, const struct bw_link *link)
{
    const uint64_t inode = link->inode; /* the link may be in an item that changes */
    BW_TRY(bw_edit_unlink(&replay->tree, link));
    return recount(replay, inode);
}

/* Removes the entries of a directory with the name or the index of a link (drop_one_dir_item). */
static struct bw_error *drop_entries(struct bw_replay *replay, const struct bw_link *link,
                                     bool by_name)
{
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_entry(&replay->tree, link, by_name, &entry));
    if (!entry.name || entry.location.type != BW_INODE_ITEM)
        return NULL;
    const struct bw_link other = {link->directory, entry.location.objectid, link->index, entry.name,
                                  entry.name_length};
    return unlink_name(replay, &other);
}

/* Whether the log contains the same entry, or may have contained it. */
static bool is_logged(const struct bw_replay *replay, const struct bw_key *key,
                      const struct bw_dir_entry *entry)
{
    struct bw_dir_entry same;
    struct bw_item bytes;
    const struct bw_item *logged = bw_log_find(&replay->log, key);
    return (logged && bw_find_entry(logged, entry->name, entry->name_length, &same, &bytes)) ||
           bw_log_is_lost(&replay->log, key);
}

/* Removes entries of a directory with indices from `first` to `last`: all, or those that the log
 * lacks (check_item_in_log). An entry whose inode is lost is kept. */
static struct bw_error *delete_range(struct bw_replay *replay, uint64_t directory, uint64_t first,
                                     uint64_t last, bool all)
{
    struct bw_key key = {directory, BW_DIR_INDEX, first};
    for (;; key.offset++) {
        struct bw_item item;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != directory || item.key.type != BW_DIR_INDEX ||
            item.key.offset > last)
            return NULL;
        key = item.key;
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_dir_entry entry;
        if (bw_dir_entry_next(&cursor, &entry) && entry.location.type == BW_INODE_ITEM &&
            (all || !is_logged(replay, &key, &entry))) {
            const struct bw_link link = {directory, entry.location.objectid, key.offset, entry.name,
                                         entry.name_length};
            struct bw_disk_inode_item inode;
            bool exists;
            BW_TRY(bw_edit_inode(&replay->tree, link.inode, &inode, &exists));
            if (exists)
                BW_TRY(unlink_name(replay, &link));
        }
        if (key.offset == UINT64_MAX)
            return NULL;
    }
}

/* Removes the entries of a directory that its log lists as deleted (replay_dir_deletes). */
static struct bw_error *dir_deletes(struct bw_replay *replay, uint64_t directory)
{
    const struct bw_key first = {directory, BW_DIR_LOG_INDEX, 0};
    for (size_t i = bw_log_first(&replay->log, &first); i < replay->log.items.count; i++) {
        const struct bw_item *item = &replay->log.items.items[i];
        const struct bw_disk_dir_log *range = (const void *)item->data;
        if (item->key.objectid != directory || item->key.type != BW_DIR_LOG_INDEX)
            break;
        if (item->size < sizeof *range)
            return bw_error_create(BW_ERROR_CORRUPT, "a range of a directory is cut off");
        BW_TRY(delete_range(replay, directory, item->key.offset, bw_get64(range->end), false));
    }
    return NULL;
}

/* Whether the log contains the name as an item of the inode; then the third pass adds it. */
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

static bool is_same(const struct bw_dir_entry *entry, const struct bw_link *link)
{
    return entry->name && entry->location.objectid == link->inode &&
           entry->location.type == BW_INODE_ITEM && entry->name_length == link->length &&
           memcmp(entry->name, link->name, link->length) == 0;
}

/* Checks whether the directory has the name or the index of an entry. An entry of a different inode
 * that exists is removed (delete_conflicting_dir_entry). */
static struct bw_error *clear_dir_range(struct bw_replay *replay, const struct bw_link *link,
                                        bool by_name, uint8_t type, bool exists, bool *present)
{
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_entry(&replay->tree, link, by_name, &entry));
    *present = entry.name;
    if (!entry.name || !exists)
        return NULL;
    if (is_same(&entry, link) && entry.type == type)
        return NULL;
    *present = entry.location.type != BW_INODE_ITEM;
    return drop_entries(replay, link, by_name);
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
        return NULL; /* logs do not create subvolumes */
    const struct bw_link link = {item->key.objectid, entry.location.objectid, item->key.offset,
                                 entry.name, entry.name_length};
    BW_TRY(bw_edit_inode(&replay->tree, link.directory, &inode, &exists));
    if (!exists)
        return bw_error_create(BW_ERROR_CORRUPT, "the directory does not exist");
    BW_TRY(bw_edit_inode(&replay->tree, link.inode, &inode, &exists));
    BW_TRY(clear_dir_range(replay, &link, true, entry.type, exists, &named));
    BW_TRY(clear_dir_range(replay, &link, false, entry.type, exists, &indexed));
    if (named || indexed || !exists || has_ref(replay, &link))
        return NULL;
    BW_TRY(bw_edit_link(&replay->tree, &link, true));
    return entry.type == BW_FILE_DIRECTORY ? NULL : recount(replay, link.inode);
}

/* The third pass, for the extents of files: each extent replaces the existing ones in its range.
 * Checksums of its data in the log are copied to the checksum tree. */

/* The range of an extent in its file. */
struct span {
    uint64_t start, end;
    bool is_inline;
};

static struct bw_key extent_key(uint64_t inode, uint64_t offset)
{
    return (struct bw_key){inode, BW_EXTENT_DATA, offset};
}

/* False if the item is truncated or invalid. */
static bool span_of(const struct bw_item *item, struct span *span)
{
    const struct bw_disk_file_extent *extent = (const void *)item->data;
    *span = (struct span){item->key.offset, item->key.offset, false};
    if (item->size < offsetof(struct bw_disk_file_extent, disk_bytenr))
        return false;
    span->is_inline = extent->type == BW_FILE_EXTENT_INLINE;
    if (!span->is_inline && item->size < sizeof *extent)
        return false;
    uint64_t length = bw_get64(span->is_inline ? extent->ram_bytes : extent->num_bytes);
    return !__builtin_add_overflow(span->start, length, &span->end);
}

static struct bw_error *put_part(struct bw_replay *replay, const struct bw_item *item,
                                 struct bw_disk_file_extent extent, uint64_t start, uint64_t end)
{
    const struct bw_key key = extent_key(item->key.objectid, start);
    extent.offset = bw_put64(bw_get64(extent.offset) + (start - item->key.offset));
    extent.num_bytes = bw_put64(end - start);
    return bw_edit_put(&replay->tree, &key, &extent, sizeof extent);
}

/* Removes a range from an extent. An inline extent cannot be split and is removed as a whole. */
static struct bw_error *cut_extent(struct bw_replay *replay, const struct bw_item *item,
                                   uint64_t start, uint64_t end, uint64_t *dropped)
{
    const struct bw_item before = *item; /* after the next change, only its key is valid */
    struct bw_disk_file_extent extent = {.type = BW_FILE_EXTENT_INLINE};
    struct span span;
    bool sane = span_of(item, &span);
    if (span.start < start && (!sane || span.end <= start))
        return NULL;
    if (sane && !span.is_inline)
        memcpy(&extent, item->data, sizeof extent);
    BW_TRY(bw_edit_remove(&replay->tree, &before.key));
    if (!sane)
        return NULL;
    if (span.is_inline)
        *dropped += span.end - span.start;
    else if (bw_get64(extent.disk_bytenr))
        *dropped += bw_min(span.end, end) - bw_max(span.start, start);
    if (!span.is_inline && span.start < start)
        BW_TRY(put_part(replay, &before, extent, span.start, start));
    if (!span.is_inline && span.end > end)
        BW_TRY(put_part(replay, &before, extent, end, span.end));
    return NULL;
}

static bool is_extent_of(const struct bw_item *item, uint64_t inode)
{
    return item->data && item->key.objectid == inode && item->key.type == BW_EXTENT_DATA;
}

/* btrfs_drop_extents() */
static struct bw_error *drop_extents(struct bw_replay *replay, uint64_t inode, uint64_t start,
                                     uint64_t end, uint64_t *dropped)
{
    const struct bw_key first = extent_key(inode, start);
    struct bw_item item;
    *dropped = 0;
    BW_TRY(bw_edit_last(&replay->tree, &first, &item));
    if (is_extent_of(&item, inode) && item.key.offset < start)
        BW_TRY(cut_extent(replay, &item, start, end, dropped));
    for (;;) {
        BW_TRY(bw_edit_first(&replay->tree, &first, &item));
        if (!is_extent_of(&item, inode) || item.key.offset >= end)
            return NULL;
        BW_TRY(cut_extent(replay, &item, start, end, dropped));
    }
}

/* Checksums of a range of sectors. */
struct sums {
    const uint8_t *bytes;
    uint64_t start, end; /* of the data, as logical addresses */
};

static struct bw_key sums_key(uint64_t logical)
{
    return (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, logical};
}

static uint32_t sum_size(const struct bw_replay *replay)
{
    return (uint32_t)bw_checksum_size(replay->fs->superblock.checksum_type);
}

/* The checksums of an item in a range; false if none exist. */
static bool sums_in(const struct bw_replay *replay, const struct bw_item *item, uint64_t start,
                    uint64_t end, struct sums *sums)
{
    const uint64_t sectorsize = replay->fs->superblock.sectorsize;
    const uint64_t from = item->key.offset, sectors = item->size / sum_size(replay);
    if (item->key.objectid != BW_EXTENT_CSUM_OBJECT || item->key.type != BW_EXTENT_CSUM)
        return false;
    const uint64_t to = from + sectors * sectorsize; /* less than `from` on overflow */
    *sums = (struct sums){item->data, bw_max(from, start), bw_min(to, end)};
    if (sums->start >= sums->end || (sums->start - from) % sectorsize)
        return false;
    sums->bytes += (sums->start - from) / sectorsize * sum_size(replay);
    return true;
}

static struct bw_error *put_sums(struct bw_replay *replay, const struct sums *sums)
{
    const struct bw_key key = sums_key(sums->start);
    const uint64_t sectors = (sums->end - sums->start) / replay->fs->superblock.sectorsize;
    return bw_edit_put(replay->checksums, &key, sums->bytes,
                       (uint32_t)(sectors * sum_size(replay)));
}

/* Removes a range from an item of the checksum tree. */
static struct bw_error *cut_sums(struct bw_replay *replay, const struct bw_item *item,
                                 const struct sums *new, bool *overlaps)
{
    struct sums head, tail, within;
    *overlaps = sums_in(replay, item, new->start, new->end, &within);
    if (!*overlaps)
        return NULL;
    BW_TRY(bw_buffer_set(&replay->scratch, item->data, item->size));
    const struct bw_item copy = {item->key, (const uint8_t *)replay->scratch.data, item->size};
    BW_TRY(bw_edit_remove(replay->checksums, &copy.key));
    if (sums_in(replay, &copy, 0, new->start, &head))
        BW_TRY(put_sums(replay, &head));
    if (sums_in(replay, &copy, new->end, UINT64_MAX, &tail))
        BW_TRY(put_sums(replay, &tail));
    return NULL;
}

/* Copies the checksums in the log for the data that an extent uses. */
static struct bw_error *replay_sums(struct bw_replay *replay,
                                    const struct bw_disk_file_extent *extent)
{
    uint64_t start = bw_get64(extent->disk_bytenr), length = bw_get64(extent->disk_num_bytes), end;
    if (!extent->compression) {
        start += bw_get64(extent->offset);
        length = bw_get64(extent->num_bytes);
    }
    if (!replay->checksums || __builtin_add_overflow(start, length, &end))
        return NULL;
    const struct bw_key key = sums_key(start);
    size_t at = bw_log_first(&replay->log, &key);
    for (at -= at > 0; at < replay->log.items.count; at++) {
        const struct bw_item *item = &replay->log.items.items[at];
        struct sums sums;
        if (item->key.objectid == BW_EXTENT_CSUM_OBJECT && item->key.offset >= end)
            break;
        if (!sums_in(replay, item, start, end, &sums))
            continue;
        /* btrfs_del_csums(), then btrfs_csum_file_blocks() */
        const struct bw_key first = sums_key(sums.start);
        struct bw_item old;
        bool overlaps = true;
        BW_TRY(bw_edit_last(replay->checksums, &first, &old));
        if (old.data)
            BW_TRY(cut_sums(replay, &old, &sums, &overlaps));
        for (overlaps = true; overlaps;) {
            BW_TRY(bw_edit_first(replay->checksums, &first, &old));
            overlaps = false;
            if (old.data)
                BW_TRY(cut_sums(replay, &old, &sums, &overlaps));
        }
        BW_TRY(put_sums(replay, &sums));
    }
    return NULL;
}

/* replay_one_extent() */
struct bw_error *bw_replay_extent(struct bw_replay *replay, const struct bw_item *item)
{
    const struct bw_disk_file_extent *extent = (const void *)item->data;
    const struct bw_superblock *superblock = &replay->fs->superblock;
    struct bw_disk_inode_item inode;
    struct bw_item same;
    struct span span;
    uint64_t dropped;
    bool exists;
    if (!span_of(item, &span) || extent->type >= BW_FILE_EXTENT_TYPES || span.end > INT64_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid extent of a file");
    if (span.is_inline && span.end % superblock->sectorsize)
        span.end += superblock->sectorsize - span.end % superblock->sectorsize;
    BW_TRY(bw_edit_inode(&replay->tree, item->key.objectid, &inode, &exists));
    if (!exists)
        return bw_error_create(BW_ERROR_CORRUPT, "the inode does not exist");
    BW_TRY(bw_edit_find(&replay->tree, &item->key, &same));
    if (!span.is_inline && same.data && same.size == item->size &&
        memcmp(same.data, item->data, item->size) == 0)
        return NULL;

    BW_TRY(drop_extents(replay, item->key.objectid, span.start, span.end, &dropped));
    const bool is_hole = !span.is_inline && bw_get64(extent->disk_bytenr) == 0;
    if (!is_hole || !(superblock->incompat_flags & BW_INCOMPAT_NO_HOLES))
        BW_TRY(bw_edit_put(&replay->tree, &item->key, item->data, item->size));
    if (!is_hole && !span.is_inline)
        BW_TRY(replay_sums(replay, extent));

    uint64_t allocated = 0;
    if (span.is_inline)
        allocated = bw_get64(extent->ram_bytes);
    else if (!is_hole)
        allocated = bw_get64(extent->num_bytes);
    inode.bytes = bw_put64(bw_get64(inode.bytes) - dropped + allocated);
    return bw_edit_set_inode(&replay->tree, item->key.objectid, &inode);
}

/*
 * The first pass: inodes in the log replace those in the subvolume; attributes and directory
 * entries that no longer exist are removed; and files are truncated to their new size.
 */

/* Removes the attributes of an inode that the log lacks, because the log contains all existing ones
 * (replay_xattr_deletes). Items shrink or disappear, one attribute at a time. */
static struct bw_error *delete_xattrs(struct bw_replay *replay, uint64_t inode)
{
    struct bw_key key = {inode, BW_XATTR_ITEM, 0};
    for (;;) {
        struct bw_item item, again, bytes;
        struct bw_dir_entry entry, same;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != inode || item.key.type != BW_XATTR_ITEM)
            return NULL;
        const uint32_t size = item.size;
        key = item.key;
        const struct bw_item *logged = bw_log_find(&replay->log, &key);
        struct bw_cursor cursor = bw_cursor_of(&item);
        const uint8_t *start = cursor.next;
        while (!bw_log_is_lost(&replay->log, &key) && bw_dir_entry_next(&cursor, &entry)) {
            if (!logged || !bw_find_entry(logged, entry.name, entry.name_length, &same, &bytes)) {
                BW_TRY(bw_edit_cut(&replay->tree, &item, start, cursor.next));
                break;
            }
            start = cursor.next;
        }
        BW_TRY(bw_edit_find(&replay->tree, &key, &again));
        if (again.data && again.size < size)
            continue; /* another one may have to be removed from the same item */
        if (key.offset++ == UINT64_MAX)
            return NULL;
    }
}

static bool is_type(const struct bw_disk_inode_item *inode, uint32_t type)
{
    return (bw_get32(inode->mode) & S_IFMT) == type;
}

/* overwrite_item(), for inodes */
static struct bw_error *overwrite_inode(struct bw_replay *replay, uint64_t number,
                                        struct bw_disk_inode_item *new)
{
    struct bw_disk_inode_item old;
    bool exists;
    BW_TRY(bw_edit_inode(&replay->tree, number, &old, &exists));
    if (exists && bw_get64(new->generation) == 0) {
        /* An inode that was only logged as existing keeps the attributes in the subvolume, except
         * for a size in the log. */
        if (is_type(&old, S_IFREG) && is_type(new, S_IFREG) && bw_get64(new->size))
            old.size = new->size;
        return bw_edit_set_inode(&replay->tree, number, &old);
    }
    new->bytes = exists ? old.bytes : bw_put64(0);
    if (is_type(new, S_IFDIR))
        new->size = exists &&is_type(&old, S_IFDIR) ? old.size : bw_put64(0);
    if (bw_get64(new->generation) == 0)
        new->generation = bw_put64(replay->tree.generation);
    return bw_edit_set_inode(&replay->tree, number, new);
}

struct bw_error *bw_replay_inode_item(struct bw_replay *replay, const struct bw_item *item)
{
    const uint64_t number = item->key.objectid, sectorsize = replay->fs->superblock.sectorsize;
    struct bw_disk_inode_item new;
    if (item->size < sizeof new)
        return bw_error_create(BW_ERROR_CORRUPT, "an inode is cut off");
    memcpy(&new, item->data, sizeof new);
    BW_TRY(delete_xattrs(replay, number));
    if (is_type(&new, S_IFDIR))
        BW_TRY(dir_deletes(replay, number));
    BW_TRY(overwrite_inode(replay, number, &new));

    /* Removes extents beyond the end of a file; those that still exist are in the log. */
    if (is_type(&new, S_IFREG)) {
        uint64_t dropped;
        bool exists;
        BW_TRY(bw_edit_inode(&replay->tree, number, &new, &exists));
        uint64_t size = bw_get64(new.size);
        if (size > INT64_MAX)
            return bw_error_create(BW_ERROR_CORRUPT, "invalid size of a file");
        if (size % sectorsize)
            size += sectorsize - size % sectorsize;
        BW_TRY(drop_extents(replay, number, size, UINT64_MAX, &dropped));
        new.bytes = bw_put64(bw_get64(new.bytes) - dropped);
        BW_TRY(bw_edit_set_inode(&replay->tree, number, &new));
    }
    return recount(replay, number);
}

/*
 * The third pass, for the names of inodes. An INODE_REF in the log contains all names of an inode
 * in a directory: names that it lacks were removed, and others may be new. This is how files are
 * renamed whose directories were not logged.
 */

static struct bw_error *exists_inode(struct bw_replay *replay, uint64_t inode, bool *exists)
{
    struct bw_disk_inode_item item;
    return bw_edit_inode(&replay->tree, inode, &item, exists);
}

/* Finds a name in an item of the subvolume, in `directory` (0: any), that the log lacks in the
 * corresponding item. */
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

/* Removes the names in an item that the log lacks, one by one. */
static struct bw_error *unlink_victims(struct bw_replay *replay, const struct bw_key *key,
                                       uint64_t directory)
{
    for (uint32_t size = UINT32_MAX;;) {
        struct bw_link victim;
        struct bw_item item;
        BW_TRY(bw_edit_find(&replay->tree, key, &item));
        if (!item.data || item.size >= size || !find_victim(replay, &item, directory, &victim))
            return NULL;
        size = item.size; /* decreases every time */
        BW_TRY(unlink_name(replay, &victim));
    }
}

/* add_inode_ref() */
struct bw_error *bw_replay_refs(struct bw_replay *replay, const struct bw_item *item)
{
    const uint64_t inode = item->key.objectid;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    bool exists;
    BW_TRY(exists_inode(replay, inode, &exists));
    if (!exists)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        const struct bw_link link = {ref.parent, inode, ref.index, ref.name, ref.name_length};
        if (inode != BW_SUBVOLUME_ROOT_INODE && !bw_name_is_valid(ref.name, ref.name_length))
            return bw_error_create(BW_ERROR_CORRUPT, "invalid name of an inode");
        BW_TRY(exists_inode(replay, link.directory, &exists));
        if (!exists || link.directory == inode) {
            if (item->key.type == BW_INODE_REF) /* all its names are in the one directory */
                return NULL;
            continue;
        }

        /* The subvolume has the name already if both entries of the directory say so
         * (inode_in_dir). */
        struct bw_dir_entry entry;
        BW_TRY(bw_edit_entry(&replay->tree, &link, false, &entry));
        bool linked = is_same(&entry, &link);
        if (linked) {
            BW_TRY(bw_edit_entry(&replay->tree, &link, true, &entry));
            linked = is_same(&entry, &link);
        }
        if (linked)
            continue;

        /* Everything that conflicts with the name is removed, then it is added
         * (__add_inode_ref). */
        const struct bw_key own = {inode, BW_INODE_REF, link.directory};
        const struct bw_key extended = bw_extref_key(&link);
        BW_TRY(unlink_victims(replay, &own, link.directory));
        BW_TRY(unlink_victims(replay, &extended, link.directory));
        BW_TRY(drop_entries(replay, &link, false));
        BW_TRY(drop_entries(replay, &link, true));
        BW_TRY(bw_edit_link(&replay->tree, &link, false));
    }
    if (bw_cursor_bad(&cursor))
        return bw_error_create(BW_ERROR_CORRUPT, "a name of an inode is cut off");
    BW_TRY(unlink_victims(replay, &item->key, 0)); /* unlink_old_inode_refs() */
    return bw_edit_put(&replay->tree, &item->key, item->data, item->size);
}

/*
 * The end of a replay: inodes whose names have changed get their new link counts. Inodes without
 * names become orphans; if they are directories, their entries are removed, too.
 */

/* Counts the names of an inode, and lists the first ones. */
static struct bw_error *count_names(struct bw_replay *replay, uint64_t inode, uint32_t *count,
                                    struct bw_buffer *names)
{
    struct bw_key key = {inode, BW_INODE_REF, 0};
    for (*count = 0;;) {
        struct bw_item item;
        struct bw_inode_ref ref;
        BW_TRY(bw_edit_first(&replay->tree, &key, &item));
        if (!item.data || item.key.objectid != inode || item.key.type > BW_INODE_EXTREF)
            return bw_buffer_error(names);
        struct bw_cursor cursor = bw_cursor_of(&item);
        for (; bw_inode_ref_next(&cursor, &item.key, &ref); ++*count) {
            if (names->length >= 1000)
                continue;
            bw_buffer_format(names, "%s'", names->length ? ", " : "");
            bw_buffer_append(names, ref.name, ref.name_length);
            bw_buffer_format(names, "' in directory %" PRIu64, ref.parent);
        }
        key = item.key;
        if (key.offset++ == UINT64_MAX)
            key.type++;
    }
}

/*
 * fixup_inode_link_count(). Warns about a directory with several names. The kernel's replay makes
 * it without complaint, but its tree checker refuses the leaf when the replay is committed, which
 * aborts the mount.
 */
static struct bw_error *set_count(struct bw_replay *replay, uint64_t inode)
{
    const struct bw_key orphan = {BW_ORPHAN, BW_ORPHAN_ITEM, inode};
    const struct bw_rehearsal *rehearsal = replay->rehearsal;
    BW_AUTO_BUFFER struct bw_buffer names = {0};
    struct bw_disk_inode_item item;
    uint32_t count;
    bool exists;
    BW_TRY(bw_edit_inode(&replay->tree, inode, &item, &exists));
    if (!exists)
        return NULL;
    BW_TRY(count_names(replay, inode, &count, &names));
    const bool is_refused = count > 1 && is_type(&item, S_IFDIR);
    if (is_refused && rehearsal)
        BW_TRY(
            rehearsal->visit(rehearsal->context, replay->subvolume, inode, bw_buffer_text(&names)));
    else if (is_refused)
        bw_fs_report_text(
            replay->fs, BW_WARNING, BW_ERROR_CORRUPT,
            "the kernel cannot replay the log, so the next mount fails: directory %" PRIu64
            " of subvolume %" PRIu64 " gets %u names: %.*s",
            inode, replay->subvolume, count, (int)names.length, names.data);
    item.link_count = bw_put32(count);
    BW_TRY(bw_edit_set_inode(&replay->tree, inode, &item));
    if (count)
        return NULL;
    if (is_type(&item, S_IFDIR))
        BW_TRY(delete_range(replay, inode, 0, UINT64_MAX, true));
    return bw_edit_put(&replay->tree, &orphan, &item, 0);
}

struct bw_error *bw_replay_link_counts(struct bw_replay *replay)
{
    while (replay->recount.count) {
        uint64_t inode = replay->recount.items[--replay->recount.count];
        BW_TRY(bw_key_map_put(&replay->awaiting, inode, 0));
        const struct bw_key key = {inode, BW_INODE_ITEM, 0};
        BW_TRY(bw_replay_report(replay, &key, set_count(replay, inode)));
    }
    return NULL;
}
