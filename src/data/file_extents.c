/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pieces of a file.
 *
 * For each piece, one leaf is searched for the last extent item at or before the offset. If the
 * item reaches the offset, it describes the piece; otherwise there is a gap up to the next item. A
 * gap is a hole, or a bad piece if a lost block may have contained an item for it.
 *
 * Nothing in an item is trusted: one that cannot be decoded, that overlaps the next one, or that is
 * larger than any extent can be, makes a bad piece. A bad piece ends where the next item begins;
 * after the last item it ends with the file, because nothing is missing after that.
 */
#include "data/file_extents.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "ondisk/compression.h"

/* No extent is larger than the largest possible chunk, even if its item claims more. */
#define LARGEST_EXTENT (UINT64_C(10) << 30)

struct bw_data_file bw_data_file_of(const struct bw_place *place, const struct bw_inode *inode)
{
    /* the kernel's offsets are signed */
    uint64_t size = inode->size < INT64_MAX ? inode->size : INT64_MAX;
    return (struct bw_data_file){.subvolume = place->subvolume,
                                 .inode = place->inode,
                                 .size = size,
                                 .unchecked = inode->flags & BW_INODE_NODATASUM};
}

void bw_extents_init(struct bw_extent_cursor *cursor, struct bw_fs *fs)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    *cursor = (struct bw_extent_cursor){.fs = fs};
    bw_leaf_finder_init(&cursor->finder, &reader, &(struct bw_tree){0});
}

void bw_extents_free(struct bw_extent_cursor *cursor)
{
    bw_leaf_finder_free(&cursor->finder);
}

void bw_extents_seek(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                     uint64_t offset, uint64_t end)
{
    bw_leaf_finder_set_tree(&cursor->finder, &file->subvolume->tree);
    cursor->file = *file;
    cursor->offset = offset;
    cursor->end = end;
}

void bw_extents_seek_whole(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end)
{
    const uint32_t sectorsize = cursor->fs->superblock.sectorsize;
    const uint64_t last = end < file->size ? end : file->size;
    bw_extents_seek(cursor, file, offset - offset % sectorsize,
                    (last + sectorsize - 1) / sectorsize * sectorsize);
}

static bool is_ours(const struct bw_extent_cursor *cursor, const struct bw_key *key)
{
    return key->objectid == cursor->file.inode && key->type == BW_EXTENT_DATA;
}

/* The offset where the next item of the file after a key begins, as far as the leaf shows; at most
 * `limit`. */
static uint64_t next_start(const struct bw_extent_cursor *cursor, const struct bw_key *key,
                           uint64_t limit)
{
    const struct bw_leaf_finder *finder = &cursor->finder;
    int64_t slot = finder->lost ? -1 : bw_leaf_first_behind(finder, key);
    const struct bw_key next = slot < 0 ? finder->end : bw_leaf_key(&finder->leaf, (uint32_t)slot);
    return is_ours(cursor, &next) && next.offset < limit ? next.offset : limit;
}

/* Makes a piece without data from the offset on: a hole, or bad if there is an error. */
static void set_empty(const struct bw_extent_cursor *cursor, uint64_t end, struct bw_error *error,
                      struct bw_extent_piece *piece)
{
    *piece = (struct bw_extent_piece){.extent = {.kind = error ? BW_EXTENT_BAD : BW_EXTENT_HOLE,
                                                 .offset = cursor->offset,
                                                 .length = end - cursor->offset,
                                                 .error = error}};
}

/* The end of a bad piece: `next`, where the next item begins or the range ends. Without a next
 * item, it is the end of the last sector of the file. A piece after the end of the file is empty.
 */
static uint64_t end_of_bad(const struct bw_extent_cursor *cursor, uint64_t next)
{
    const uint32_t sectorsize = cursor->fs->superblock.sectorsize;
    const uint64_t over = cursor->file.size % sectorsize;
    const uint64_t end = cursor->file.size + (over ? sectorsize - over : 0);
    if (next < cursor->end || next <= end)
        return next;
    return cursor->offset < end ? end : cursor->offset;
}

/* Makes a piece of an offset without an item. */
static void set_gap(const struct bw_extent_cursor *cursor, uint64_t next,
                    struct bw_extent_piece *piece)
{
    const struct bw_key key = {cursor->file.inode, BW_EXTENT_DATA, cursor->offset};
    const uint64_t lost = bw_leaf_lost_block(&cursor->finder, &key), end = end_of_bad(cursor, next);
    if (!lost || end == cursor->offset)
        set_empty(cursor, next, NULL, piece);
    else
        set_empty(cursor, end,
                  bw_error_create(BW_ERROR_CORRUPT,
                                  "tree block %" PRIu64 ", which describes it, is lost", lost),
                  piece);
}

/* Makes a bad piece of a damaged item. After the end of the file, only its first sector is
 * reported. */
static void set_bad_item(const struct bw_extent_cursor *cursor, uint64_t start, uint64_t next,
                         struct bw_error *error, struct bw_extent_piece *piece)
{
    uint64_t end = end_of_bad(cursor, next), sectorsize = cursor->fs->superblock.sectorsize;
    if (end == cursor->offset && start == cursor->offset)
        end = next - start < sectorsize ? next : start + sectorsize;
    if (end > cursor->offset) {
        set_empty(cursor, end, error, piece);
        return;
    }
    bw_error_free(error);
    set_empty(cursor, next, NULL, piece);
}

/* Copies an extent item, to assume another value of a member; false if it has no stored data. */
static bool copy_stored_item(const struct bw_item *item, struct bw_disk_file_extent *disk)
{
    if (item->size != sizeof *disk)
        return false;
    memcpy(disk, item->data, sizeof *disk);
    return bw_get64(disk->disk_bytenr) != 0;
}

/* Decodes an extent item, but lets it end where the next extent at `next`, or the file ends; false
 * if more than its lengths is wrong. Without compression, the kernel does not look at
 * disk_num_bytes. */
static bool clip_extent(const struct bw_extent_cursor *cursor, const struct bw_item *item,
                        uint64_t next, struct bw_file_extent *extent)
{
    struct bw_disk_file_extent disk;
    if (!copy_stored_item(item, &disk))
        return false;
    const uint32_t alignment = bw_fs_alignment(cursor->fs);
    const uint64_t offset = bw_get64(disk.offset), room = next - item->key.offset;
    const uint64_t rest = end_of_bad(cursor, next) - item->key.offset;
    uint64_t length = bw_get64(disk.num_bytes);
    if (disk.compression || !length || length % alignment) {
        const uint64_t decoded =
            disk.compression ? bw_get64(disk.ram_bytes) : bw_get64(disk.disk_num_bytes);
        if (offset >= decoded)
            return false;
        length = decoded - offset;
    }
    length = bw_min(length, room);
    if (!disk.compression) {
        length = bw_min(length, rest);
        disk.disk_num_bytes = bw_put64(offset + length);
    }
    disk.num_bytes = bw_put64(length);
    const struct bw_item clipped = {item->key, (const uint8_t *)&disk, item->size};
    BW_AUTO_ERROR struct bw_error *error = bw_file_extent_decode(&clipped, alignment, extent);
    return !error && extent->disk_num_bytes <= LARGEST_EXTENT;
}

/* Decodes an extent item with lengths that the extent tree proves, instead of its own; false if
 * more is wrong. The kernel does not look at disk_num_bytes without compression, nor at the end of
 * a piece that the file does not show. */
static bool correct_lengths(const struct bw_extent_cursor *cursor, const struct bw_item *item,
                            uint64_t next, struct bw_file_extent *extent)
{
    const uint64_t shown = end_of_bad(cursor, next) - item->key.offset;
    struct bw_disk_file_extent disk;
    if (!copy_stored_item(item, &disk) || !cursor->fs->extent_tree.id)
        return false;
    const uint64_t address = bw_get64(disk.disk_bytenr);
    struct bw_item_range range;
    struct bw_file_extent corrected;
    bool is_valid = false;
    disk.num_bytes = bw_put64(bw_min(bw_get64(disk.num_bytes), shown));
    bw_item_range_begin(&range, &cursor->fs->reader, &cursor->fs->extent_tree,
                        (struct bw_key){address, BW_EXTENT_ITEM, 0},
                        (struct bw_key){address, BW_EXTENT_ITEM, LARGEST_EXTENT});
    while (bw_item_range_next(&range) && !is_valid) {
        if (range.error)
            continue;
        disk.disk_num_bytes = bw_put64(range.item.key.offset);
        const struct bw_item assumed = {item->key, (const uint8_t *)&disk, item->size};
        BW_AUTO_ERROR struct bw_error *error =
            bw_file_extent_decode(&assumed, bw_fs_alignment(cursor->fs), &corrected);
        is_valid = !error;
    }
    bw_error_free(bw_item_range_end(&range, NULL)); /* no memory */
    if (is_valid)
        *extent = corrected;
    return is_valid;
}

/* Decodes an extent item of compressed data that shows more than ram_bytes; false if more is wrong.
 * Like the kernel, readers decompress as much as the item shows; zeros follow the longest extent.
 */
static bool assume_ram_bytes(const struct bw_extent_cursor *cursor, const struct bw_item *item,
                             uint64_t next, struct bw_file_extent *extent)
{
    struct bw_disk_file_extent disk;
    if (!copy_stored_item(item, &disk) || !disk.compression)
        return false;
    const uint32_t alignment = bw_fs_alignment(cursor->fs);
    const uint64_t offset = bw_get64(disk.offset), length = bw_get64(disk.num_bytes);
    if (offset >= BW_MAX_COMPRESSED_EXTENT || length % alignment ||
        length > next - item->key.offset)
        return false;
    const uint64_t shown = bw_min(length, BW_MAX_COMPRESSED_EXTENT - offset);
    disk.num_bytes = bw_put64(shown);
    disk.ram_bytes = bw_put64(offset + shown);
    const struct bw_item assumed = {item->key, (const uint8_t *)&disk, item->size};
    BW_AUTO_ERROR struct bw_error *error = bw_file_extent_decode(&assumed, alignment, extent);
    return !error;
}

/* Corrects the length of compressed data in an item, which could not be decoded for it; false if
 * more is wrong. Like the kernel, readers decompress at most a sector. */
static bool assume_inline_length(const struct bw_extent_cursor *cursor, const struct bw_key *key,
                                 struct bw_file_extent *extent)
{
    const uint32_t most = bw_fs_alignment(cursor->fs);
    if (extent->type != BW_FILE_EXTENT_INLINE || extent->compression == BW_COMPRESS_NONE ||
        key->offset || !extent->inline_length || extent->inline_length > most)
        return false;
    extent->ram_bytes = extent->num_bytes = most;
    return true;
}

/* Decodes an extent item. One that is valid by itself may contradict its neighbours or exceed the
 * limits of any file system. If checksums of tree blocks are ignored, only its length may be wrong:
 * like the kernel, this reads what is there. */
static struct bw_error *decode_item(const struct bw_extent_cursor *cursor, uint32_t slot,
                                    const struct bw_key *key, struct bw_file_extent *extent)
{
    struct bw_item item;
    if (!bw_leaf_item(&cursor->finder.leaf, slot, &item))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "extent of inode %" PRIu64 " at %" PRIu64 " lies outside its leaf",
                               key->objectid, key->offset);
    const uint64_t next = next_start(cursor, key, UINT64_MAX);
    *extent = (struct bw_file_extent){.inline_length = 0};
    struct bw_error *error = bw_file_extent_decode(&item, bw_fs_alignment(cursor->fs), extent);
    if (error && (assume_inline_length(cursor, key, extent) ||
                  assume_ram_bytes(cursor, &item, next, extent)))
        bw_error_free(BW_TAKE(error));
    if ((error || extent->num_bytes > next - key->offset ||
         extent->disk_num_bytes > LARGEST_EXTENT) &&
        correct_lengths(cursor, &item, next, extent)) {
        if (!error)
            error = bw_error_create(BW_ERROR_CORRUPT, "num_bytes or disk_num_bytes is too large");
        bw_fs_report_once(cursor->fs, BW_WARNING,
                          bw_error_prefix(BW_TAKE(error),
                                          "subvolume %" PRIu64 ": extent of inode %" PRIu64
                                          " at %" PRIu64 ": the extent tree corrects its lengths",
                                          cursor->file.subvolume->tree.id, key->objectid,
                                          key->offset));
    }
    if ((error || extent->num_bytes > next - key->offset ||
         extent->disk_num_bytes > LARGEST_EXTENT) &&
        cursor->fs->ignored_checksums & BW_CHECKSUMS_METADATA &&
        clip_extent(cursor, &item, next, extent)) {
        bw_error_free(error);
        return NULL;
    }
    if (error)
        return error;
    if (extent->num_bytes > next - key->offset)
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "num_bytes %" PRIu64
                                " reaches into the next extent, which begins at %" PRIu64,
                                extent->num_bytes, next);
    else if (extent->disk_num_bytes > LARGEST_EXTENT)
        error = bw_error_create(BW_ERROR_CORRUPT, "invalid disk_num_bytes %" PRIu64,
                                extent->disk_num_bytes);
    if (!error)
        return NULL;
    return bw_error_prefix(error, "extent of inode %" PRIu64 " at %" PRIu64, key->objectid,
                           key->offset);
}

/* Turns a hole into a piece of an extent, whose item begins at `start`. */
static void describe_extent(const struct bw_file_extent *extent, uint64_t start,
                            struct bw_extent_piece *piece)
{
    static const enum bw_extent_kind kinds[] = {
        [BW_FILE_EXTENT_INLINE] = BW_EXTENT_INLINE,
        [BW_FILE_EXTENT_REGULAR] = BW_EXTENT_REGULAR,
        [BW_FILE_EXTENT_PREALLOC] = BW_EXTENT_UNWRITTEN,
    };
    struct bw_extent *to = &piece->extent;
    to->kind = kinds[extent->type];
    /* What is compressed was written, whatever its type: the kernel reads it as well. */
    if (to->kind == BW_EXTENT_UNWRITTEN && extent->compression != BW_COMPRESS_NONE)
        to->kind = BW_EXTENT_REGULAR;
    to->compression = extent->compression;
    to->generation = extent->generation;
    to->ram_bytes = extent->ram_bytes;
    to->extent_offset = extent->offset + (to->offset - start);
    to->logical = to->used_logical = extent->disk_bytenr;
    to->stored = to->used_stored = extent->disk_num_bytes;
    /* Inline and compressed data are needed as a whole. */
    if (extent->type != BW_FILE_EXTENT_INLINE && extent->compression == BW_COMPRESS_NONE) {
        to->used_logical += to->extent_offset;
        to->used_stored = to->length;
    }
    piece->inline_data = extent->inline_data;
    piece->inline_length = extent->inline_length;
}

struct bw_error *bw_extents_next(struct bw_extent_cursor *cursor, struct bw_extent_piece *piece,
                                 bool *got)
{
    struct bw_leaf_finder *finder = &cursor->finder;
    const struct bw_key key = {cursor->file.inode, BW_EXTENT_DATA, cursor->offset};
    *got = cursor->offset < cursor->end;
    if (!*got)
        return NULL;

    /* The leaf of the offset; a new one may be out of order. */
    const bool before = finder->found;
    const uint64_t bytenr = finder->bytenr;
    BW_TRY(bw_fs_find_leaf(cursor->fs, finder, &key));
    const bool is_new = !finder->lost && (!before || bytenr != finder->bytenr);
    if (is_new && !finder->ordered)
        bw_fs_report_lost(cursor->fs, finder->bytenr,
                          bw_error_create(BW_ERROR_CORRUPT,
                                          "tree block %" PRIu64 " of subvolume %" PRIu64
                                          ": its keys are out of order",
                                          finder->bytenr, cursor->file.subvolume->tree.id));

    /* The last item at or before the offset, and the piece that it describes. */
    const uint64_t next = next_start(cursor, &key, cursor->end);
    const int64_t slot = finder->lost ? -1 : bw_leaf_last_until(finder, &key);
    struct bw_key last = {0};
    if (slot >= 0)
        last = bw_leaf_key(&finder->leaf, (uint32_t)slot);
    if (is_ours(cursor, &last)) {
        struct bw_file_extent extent;
        struct bw_error *error = decode_item(cursor, (uint32_t)slot, &last, &extent);
        if (error) {
            set_bad_item(cursor, last.offset, next, error, piece);
        } else if (last.offset + extent.num_bytes <= cursor->offset) {
            set_gap(cursor, next, piece);
        } else {
            const uint64_t end = last.offset + extent.num_bytes;
            set_empty(cursor, end < cursor->end ? end : cursor->end, NULL, piece);
            if (extent.type != BW_FILE_EXTENT_REGULAR || extent.disk_bytenr)
                describe_extent(&extent, last.offset, piece);
            if (bw_extent_is_reused(&cursor->fs->reused, &piece->extent))
                set_empty(cursor, piece->extent.offset + piece->extent.length,
                          bw_error_create(BW_ERROR_CORRUPT,
                                          "the data at %" PRIu64 ", of generation %" PRIu64
                                          ", were deleted and overwritten",
                                          extent.disk_bytenr, extent.generation),
                          piece);
        }
    } else {
        set_gap(cursor, next, piece);
    }
    cursor->offset = piece->extent.offset + piece->extent.length;
    return NULL;
}

/* The number of bytes at the beginning of a range without a chunk, in whole sectors; in send
 * streams, whose data begin anywhere, in bytes. Sets `error` to the first error. */
static uint64_t measure_unmapped(const struct bw_fs *fs, struct bw_range range,
                                 struct bw_error **error)
{
    uint64_t done = 0;
    while (done < range.length) {
        uint64_t left = range.length - done;
        struct bw_map_reply reply = {.length = 0};
        struct bw_error *failure =
            bw_wind_map(NULL, fs->reader.top, range.address + done,
                        left < UINT32_MAX ? (uint32_t)left : UINT32_MAX, 1, &reply);
        if (!failure)
            break;
        *error = bw_error_first(*error, failure);
        if (!reply.length)
            break;
        done += reply.length;
    }
    return done - done % bw_fs_alignment(fs);
}

struct bw_error *bw_extents_next_readable(struct bw_extent_cursor *cursor,
                                          struct bw_extent_piece *piece, bool *got)
{
    struct bw_extent *extent = &piece->extent;
    BW_TRY(bw_extents_next(cursor, piece, got));
    if (!*got || extent->kind != BW_EXTENT_REGULAR)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error = NULL;
    const struct bw_range used = {extent->used_logical, extent->used_stored};
    const uint64_t unmapped = measure_unmapped(cursor->fs, used, &error);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (!unmapped)
        return NULL;
    extent->kind = BW_EXTENT_BAD;
    if (extent->compression == BW_COMPRESS_NONE && unmapped < extent->length)
        extent->length = unmapped;
    if (cursor->fs->is_stream)
        extent->error = bw_error_create(error ? error->code : BW_ERROR_NOT_FOUND,
                                        "the stream has no file contents");
    else
        extent->error = bw_error_prefix(BW_TAKE(error), "data at %" PRIu64, used.address);
    cursor->offset = extent->offset + extent->length;
    return NULL;
}

/* Read-ahead, with as few calls as possible. */

enum {
    RANGES = 32,
    PIECES = 4096, /* per call, to limit the time for a single file */
};

struct bw_error *bw_extents_ranges(struct bw_extent_cursor *cursor, struct bw_range *ranges,
                                   size_t most, size_t *count)
{
    for (unsigned i = 0; *count < most && i < PIECES; i++) {
        struct bw_extent_piece piece;
        const struct bw_extent *extent = &piece.extent;
        bool got;
        BW_TRY(bw_extents_next(cursor, &piece, &got));
        if (!got)
            break;
        bw_error_free(extent->error);
        if (extent->kind != BW_EXTENT_REGULAR)
            continue;
        struct bw_range *last = *count ? &ranges[*count - 1] : NULL;
        if (last && last->address + last->length == extent->used_logical)
            last->length += extent->used_stored;
        else
            ranges[(*count)++] = (struct bw_range){extent->used_logical, extent->used_stored};
    }
    return NULL;
}

struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end)
{
    struct bw_extent_cursor *cursor = &advisor->cursor;
    struct bw_range ranges[RANGES];
    size_t count = 0;
    if (offset >= end) /* nothing to read; the file may not even be valid */
        return NULL;
    bool same = cursor->file.inode == file->inode &&
                cursor->file.subvolume->tree.id == file->subvolume->tree.id;
    if (same && advisor->done > offset && advisor->done - offset <= UINT64_C(64) << 20)
        offset = advisor->done;
    bw_extents_seek_whole(cursor, file, offset, end);
    BW_TRY(bw_extents_ranges(cursor, ranges, RANGES, &count));
    advisor->done = cursor->offset;
    if (count)
        bw_wind_advise(NULL, cursor->fs->reader.top, ranges, count, (unsigned)file->mirror);
    return NULL;
}

/* Counts of extents by kind. */

struct bw_error *bw_file_count_extents(struct bw_fs *fs, const struct bw_place *place,
                                       struct bw_extent_count *count)
{
    *count = (struct bw_extent_count){0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &place->subvolume->tree,
                      (struct bw_key){place->inode, BW_EXTENT_DATA, 0},
                      (struct bw_key){place->inode, BW_EXTENT_DATA, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_file_extent extent;
        struct bw_error *error = bw_file_extent_decode(item, bw_fs_alignment(fs), &extent);
        if (error) {
            bw_fs_report(fs, BW_DAMAGE, error);
            continue;
        }
        count->total++;
        if (extent.type == BW_FILE_EXTENT_REGULAR && extent.disk_bytenr == 0) {
            count->holes++;
            continue;
        }
        count->inlined += extent.type == BW_FILE_EXTENT_INLINE;
        count->regular += extent.type == BW_FILE_EXTENT_REGULAR;
        count->unwritten += extent.type == BW_FILE_EXTENT_PREALLOC;
        count->compressions[extent.compression]++;
    }
    return bw_fs_items_error(&items);
}
