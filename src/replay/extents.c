/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The third pass, for the extents of files: each takes the place of whatever the file had there.
 * The checksums that the log has for its data go to the checksum tree.
 */
#include "base/cleanup.h"
#include "ondisk/checksum.h"
#include "replay/replay.h"

/* Where an extent begins and ends in its file. */
struct span {
    uint64_t start, end;
    bool is_inline;
};

static struct bw_key extent_key(uint64_t inode, uint64_t offset)
{
    return (struct bw_key){inode, BW_EXTENT_DATA, offset};
}

/* False if the item is cut off, or its numbers make no sense. */
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

/* Cuts a range out of one extent. An inline extent cannot be parted, and goes as a whole. */
static struct bw_error *cut(struct bw_replay *replay, const struct bw_item *item, uint64_t start,
                            uint64_t end, uint64_t *dropped)
{
    const struct bw_item before = *item; /* only its key counts after the next change */
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
    uint64_t from = span.start > start ? span.start : start, to = span.end < end ? span.end : end;
    if (span.is_inline)
        *dropped += span.end - span.start;
    else if (bw_get64(extent.disk_bytenr))
        *dropped += to - from;
    if (!span.is_inline && span.start < start)
        BW_TRY(put_part(replay, &before, extent, span.start, start));
    return !span.is_inline && span.end > end ? put_part(replay, &before, extent, end, span.end)
                                             : NULL;
}

static bool is_extent_of(const struct bw_item *item, uint64_t inode)
{
    return item->data && item->key.objectid == inode && item->key.type == BW_EXTENT_DATA;
}

/* btrfs_drop_extents() */
struct bw_error *bw_replay_drop_extents(struct bw_replay *replay, uint64_t inode, uint64_t start,
                                        uint64_t end, uint64_t *dropped)
{
    const struct bw_key first = extent_key(inode, start);
    struct bw_item item;
    *dropped = 0;
    BW_TRY(bw_edit_last(&replay->tree, &first, &item));
    if (is_extent_of(&item, inode) && item.key.offset < start)
        BW_TRY(cut(replay, &item, start, end, dropped));
    for (;;) {
        BW_TRY(bw_edit_first(&replay->tree, &first, &item));
        if (!is_extent_of(&item, inode) || item.key.offset >= end)
            return NULL;
        BW_TRY(cut(replay, &item, start, end, dropped));
    }
}

/* Checksums of a run of sectors. */
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

/* The part of an item that lies in a range; false if there is none. */
static bool sums_in(const struct bw_replay *replay, const struct bw_item *item, uint64_t start,
                    uint64_t end, struct sums *sums)
{
    const uint64_t sectorsize = replay->fs->superblock.sectorsize;
    const uint64_t from = item->key.offset, sectors = item->size / sum_size(replay);
    if (item->key.objectid != BW_EXTENT_CSUM_OBJECT || item->key.type != BW_EXTENT_CSUM)
        return false;
    const uint64_t to = from + sectors * sectorsize; /* before `from` if it does not fit */
    *sums = (struct sums){item->data, from > start ? from : start, to < end ? to : end};
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

/* Cuts a range out of an item of the checksum tree. */
static struct bw_error *cut_sums(struct bw_replay *replay, const struct bw_item *item,
                                 const struct sums *new, bool *overlaps)
{
    struct sums head, tail, within;
    *overlaps = sums_in(replay, item, new->start, new->end, &within);
    if (!*overlaps)
        return NULL;
    replay->scratch.length = 0;
    bw_buffer_append(&replay->scratch, item->data, item->size);
    if (replay->scratch.failed)
        return bw_error_no_memory();
    const struct bw_item copy = {item->key, (const uint8_t *)replay->scratch.data, item->size};
    BW_TRY(bw_edit_remove(replay->checksums, &copy.key));
    if (sums_in(replay, &copy, 0, new->start, &head))
        BW_TRY(put_sums(replay, &head));
    return sums_in(replay, &copy, new->end, UINT64_MAX, &tail) ? put_sums(replay, &tail) : NULL;
}

/* btrfs_del_csums(), then btrfs_csum_file_blocks() */
static struct bw_error *replace_sums(struct bw_replay *replay, const struct sums *new)
{
    const struct bw_key first = sums_key(new->start);
    struct bw_item item;
    bool overlaps = true;
    BW_TRY(bw_edit_last(replay->checksums, &first, &item));
    if (item.data)
        BW_TRY(cut_sums(replay, &item, new, &overlaps));
    for (overlaps = true; overlaps;) {
        BW_TRY(bw_edit_first(replay->checksums, &first, &item));
        overlaps = false;
        if (item.data)
            BW_TRY(cut_sums(replay, &item, new, &overlaps));
    }
    return put_sums(replay, new);
}

/* Takes over the checksums that the log has for the data that an extent shows. */
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
    for (at -= at > 0; at < replay->log.count; at++) {
        const struct bw_item *item = &replay->log.items[at];
        struct sums sums;
        if (item->key.objectid == BW_EXTENT_CSUM_OBJECT && item->key.offset >= end)
            break;
        if (sums_in(replay, item, start, end, &sums))
            BW_TRY(replace_sums(replay, &sums));
    }
    return NULL;
}

/* Where the range ends that an item of the log replaces. */
static struct bw_error *check(const struct bw_replay *replay, const struct bw_item *item,
                              struct span *span)
{
    const struct bw_disk_file_extent *extent = (const void *)item->data;
    const uint64_t sectorsize = replay->fs->superblock.sectorsize;
    if (!span_of(item, span) || extent->type >= BW_FILE_EXTENT_TYPES || span->end > INT64_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid extent of a file");
    if (span->is_inline && span->end % sectorsize)
        span->end += sectorsize - span->end % sectorsize;
    return NULL;
}

static struct bw_error *put_extent(struct bw_replay *replay, const struct bw_item *item,
                                   const struct span *span)
{
    const struct bw_disk_file_extent *extent = (const void *)item->data;
    bool hole = !span->is_inline && bw_get64(extent->disk_bytenr) == 0;
    if (hole && (replay->fs->superblock.incompat_flags & BW_INCOMPAT_NO_HOLES))
        return NULL;
    BW_TRY(bw_edit_put(&replay->tree, &item->key, item->data, item->size));
    return hole || span->is_inline ? NULL : replay_sums(replay, extent);
}

/* Bytes that an extent adds to those allocated for its file. */
static uint64_t allocated(const struct bw_disk_file_extent *extent, const struct span *span)
{
    if (span->is_inline)
        return bw_get64(extent->ram_bytes);
    return bw_get64(extent->disk_bytenr) ? bw_get64(extent->num_bytes) : 0;
}

/* replay_one_extent() */
struct bw_error *bw_replay_extent(struct bw_replay *replay, const struct bw_item *item)
{
    struct bw_disk_inode_item inode;
    struct bw_item same;
    struct span span;
    uint64_t dropped;
    bool exists;
    BW_TRY(check(replay, item, &span));
    BW_TRY(bw_replay_inode(replay, item->key.objectid, &inode, &exists));
    if (!exists)
        return bw_error_create(BW_ERROR_CORRUPT, "the inode does not exist");
    BW_TRY(bw_edit_find(&replay->tree, &item->key, &same));
    if (!span.is_inline && same.data && same.size == item->size &&
        memcmp(same.data, item->data, item->size) == 0)
        return NULL;
    BW_TRY(bw_replay_drop_extents(replay, item->key.objectid, span.start, span.end, &dropped));
    BW_TRY(put_extent(replay, item, &span));
    inode.bytes =
        bw_put64(bw_get64(inode.bytes) - dropped + allocated((const void *)item->data, &span));
    return bw_replay_set_inode(replay, item->key.objectid, &inode);
}
