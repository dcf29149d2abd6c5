/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares a file that both trees have: attributes, extended attributes, contents.
 *
 * Contents are compared without reading them where possible. Each side is divided into pieces of
 * extents, and two pieces at the same offset are equal if
 *
 *   - both are the same piece of the same extent;
 *   - each is a hole or preallocated space;
 *   - both are uncompressed and their checksums are equal (a hole has the checksums of zeros);
 *   - both are compressed with the same method and all their checksums are equal.
 *
 * Uncompressed data with different checksums differ. All other pieces are read on both sides.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "data/fetch.h"
#include "diff/diff.h"
#include "diff/entries.h"
#include "ondisk/checksum.h"

enum {
    CHUNK = 256 << 10,                  /* bytes that are compared at a time */
    SECTORS = CHUNK / BW_MIN_SECTORSIZE /* at most, in a chunk */
};

/* One side. */
struct half {
    struct bw_extent_cursor cursor;
    struct bw_extent_piece piece; /* the current one, or the rest of it */
    struct bw_data_checksums checksums;
    struct bw_data_reader *reader; /* NULL until data are read */
    struct bw_data_file file;
    uint8_t sums[SECTORS * BW_CSUM_SIZE];
    uint8_t bytes[CHUNK];
};

struct bw_diff_content {
    struct half halves[2];
    bool comparable; /* checksums mean the same on both sides */
    uint32_t sectorsize;
    uint64_t size;                  /* of the shorter file: nothing after it is compared */
    uint8_t zero_sum[BW_CSUM_SIZE]; /* of a sector of zeros */
    struct bw_diff_ranges *ranges;  /* collects what differs; may be NULL */
};

/* How a range compares. */
enum verdict { EQUAL, DIFFERENT, OPEN };

static struct bw_error *create_content(struct bw_diff *diff)
{
    struct bw_diff_content *content = calloc(1, sizeof *content);
    const struct bw_superblock *supers[2] = {&diff->trees[0].fs->superblock,
                                             &diff->trees[1].fs->superblock};
    if (!content)
        return bw_error_no_memory();
    for (unsigned side = 0; side < 2; side++) {
        bw_extents_init(&content->halves[side].cursor, diff->trees[side].fs);
        bw_data_checksums_init(&content->halves[side].checksums, diff->trees[side].fs);
    }
    content->sectorsize = (uint32_t)bw_min(supers[0]->sectorsize, supers[1]->sectorsize);
    content->comparable =
        supers[0]->sectorsize == supers[1]->sectorsize &&
        bw_fs_data_checksum(diff->trees[0].fs) == bw_fs_data_checksum(diff->trees[1].fs);
    uint8_t *zeros = content->halves[0].bytes; /* not used yet */
    bw_checksum_compute(bw_fs_data_checksum(diff->trees[0].fs), zeros, content->sectorsize,
                        content->zero_sum);
    diff->content = content;
    return NULL;
}

void bw_diff_content_free(struct bw_diff_content *content)
{
    for (unsigned side = 0; content && side < 2; side++) {
        bw_extents_free(&content->halves[side].cursor);
        bw_data_checksums_free(&content->halves[side].checksums);
        bw_data_reader_destroy(content->halves[side].reader);
    }
    free(content);
}

/* Notes a range that differs, or may differ. */
static struct bw_error *add_range(struct bw_diff_content *content, uint64_t start, uint64_t end)
{
    struct bw_diff_ranges *ranges = content->ranges;
    if (!ranges)
        return NULL;
    struct bw_diff_range *last = ranges->count ? &ranges->items[ranges->count - 1] : NULL;
    if (last && start <= last->end) {
        last->end = end > last->end ? end : last->end;
        return NULL;
    }
    return bw_diff_ranges_push(ranges, (struct bw_diff_range){start, end});
}

/* Reading. */

/* Compares the bytes of at most a chunk, in sectors. Unreadable ones become zeros. */
static struct bw_error *read_both(struct bw_diff_content *content, uint64_t start, uint64_t length,
                                  struct bw_diff_result *result)
{
    const struct half *a = &content->halves[0], *b = &content->halves[1];
    bool bad = false;
    length = bw_min(length, content->size - start);
    for (unsigned side = 0; side < 2; side++) {
        struct half *half = &content->halves[side];
        struct bw_fs *fs = half->cursor.fs;
        const struct bw_data_part *part;
        if (!half->reader)
            BW_TRY(bw_data_reader_create(fs, &half->reader));
        bw_data_begin(half->reader, &half->file, start, length);
        for (;;) {
            BW_TRY(bw_data_next(half->reader, &part));
            if (!part)
                break;
            uint8_t *to = half->bytes + (part->offset - start);
            if (part->kind == BW_DATA_BYTES)
                memcpy(to, part->bytes, (size_t)part->length);
            else
                memset(to, 0, (size_t)part->length);
            if (part->kind != BW_DATA_BAD)
                continue;
            bad = true;
            bw_fs_report(fs, BW_DAMAGE,
                         bw_error_prefix(bw_error_copy(part->error),
                                         "inode %" PRIu64 " of subvolume %" PRIu64 " at %" PRIu64,
                                         half->file.inode, half->file.subvolume->tree.id,
                                         part->offset));
        }
    }
    if (bad) {
        result->unknown |= BW_CHANGE_CONTENT;
        return add_range(content, start, start + length);
    }
    for (uint64_t at = 0; at < length; at += content->sectorsize) {
        const uint64_t step = bw_min(length - at, content->sectorsize);
        if (memcmp(a->bytes + at, b->bytes + at, (size_t)step) == 0)
            continue;
        result->bytes += step;
        result->changes |= BW_CHANGE_CONTENT;
        BW_TRY(add_range(content, start + at, start + at + step));
    }
    return NULL;
}

/* Pieces. */

static bool is_zero(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_HOLE || extent->kind == BW_EXTENT_UNWRITTEN;
}

static bool is_plain(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_REGULAR && extent->compression == BW_COMPRESS_NONE;
}

/* Whether both are the same part of extents that are compressed alike. */
static bool are_alike(const struct bw_extent *a, const struct bw_extent *b)
{
    return a->kind == BW_EXTENT_REGULAR && b->kind == BW_EXTENT_REGULAR &&
           a->compression == b->compression && a->compression != BW_COMPRESS_NONE &&
           a->stored == b->stored && a->ram_bytes == b->ram_bytes &&
           a->extent_offset == b->extent_offset;
}

/* Goes on by some bytes, at most to the end of the piece. */
static void advance_half(struct half *half, uint64_t length)
{
    struct bw_extent *extent = &half->piece.extent;
    extent->offset += length;
    extent->length -= length;
    extent->extent_offset += length;
    if (is_plain(extent))
        extent->used_logical += length;
}

/* Checksums of a range of one side, or of zeros; the length is cut to those that are known. 0: the
 * first one is not. */
static struct bw_error *get_sums(struct bw_diff_content *content, struct half *half,
                                 uint64_t logical, uint64_t *length)
{
    struct bw_checksum_run run;
    const uint32_t size = half->checksums.size;
    if (is_zero(&half->piece.extent)) {
        for (uint64_t i = 0; i < *length / content->sectorsize; i++)
            memcpy(half->sums + i * size, content->zero_sum, size);
        return NULL;
    }
    if (half->file.unchecked) {
        *length = 0;
        return NULL;
    }
    BW_TRY(bw_data_checksums_get(&half->checksums, logical, *length, half->sums, &run));
    *length = run.known ? run.length : 0;
    return NULL;
}

/* Compares two stored ranges, which begin at `offset` of the files, by their checksums. `*length`
 * is cut to the range that they decide: the last sector of a file may differ beyond the end of the
 * file. */
static struct bw_error *compare_sums(struct bw_diff_content *content, const uint64_t logical[2],
                                     uint64_t offset, uint64_t *length, uint64_t *different)
{
    struct half *a = &content->halves[0], *b = &content->halves[1];
    const uint32_t size = a->checksums.size;
    BW_TRY(get_sums(content, a, logical[0], length));
    if (*length)
        BW_TRY(get_sums(content, b, logical[1], length));
    *different = 0;
    for (uint64_t i = 0, end; i < *length / content->sectorsize; i++) {
        end = (i + 1) * content->sectorsize;
        if (memcmp(a->sums + i * size, b->sums + i * size, size) == 0)
            continue;
        if (offset + end > content->size)
            *length = end - content->sectorsize;
        else
            *different += content->sectorsize;
    }
    return NULL;
}

/* Compressed extents are compared as a whole: a checksum is of stored bytes. */
static struct bw_error *compare_stored(struct bw_diff_content *content, enum verdict *verdict)
{
    const struct bw_extent *a = &content->halves[0].piece.extent,
                           *b = &content->halves[1].piece.extent;
    for (uint64_t done = 0, length; done < a->stored; done += length) {
        uint64_t different;
        length = bw_min(a->stored - done, CHUNK);
        BW_TRY(compare_sums(content, (uint64_t[]){a->logical + done, b->logical + done}, 0, &length,
                            &different));
        if (!length || different)
            return NULL; /* equal bytes can be compressed in different ways */
    }
    *verdict = EQUAL;
    return NULL;
}

/* Compares the beginnings of both pieces without reading data; `*length` is cut to the range that
 * this decides, or should be read in its place. */
static struct bw_error *compare_unread(const struct bw_diff *diff, uint64_t *length,
                                       uint64_t *different, enum verdict *verdict)
{
    struct bw_diff_content *content = diff->content;
    const uint32_t sectorsize = content->sectorsize;
    const struct half *halves = content->halves;
    const struct bw_extent *a = &halves[0].piece.extent, *b = &halves[1].piece.extent;
    const bool may_compare_sums = (is_plain(a) || is_zero(a)) && (is_plain(b) || is_zero(b));

    /* The same bytes on disk. Another generation may have had other bytes there. */
    const bool are_same =
        diff->shared && a->used_logical == b->used_logical &&
        (are_alike(a, b) || (is_plain(a) && is_plain(b))) &&
        (a->generation == b->generation || diff->trees[0].fs == diff->trees[1].fs);
    if ((is_zero(a) && is_zero(b)) || are_same) {
        *verdict = EQUAL;
        return NULL;
    }
    if (!content->comparable || diff->options.reading == BW_DIFF_READ_ALWAYS)
        return NULL;
    if (are_alike(a, b))
        return compare_stored(content, verdict);
    if (!may_compare_sums)
        return NULL;

    /* Plain data and holes have checksums of whole sectors; next to an inline extent, the rest of a
     * sector is read. */
    const uint64_t over = a->offset % sectorsize;
    uint64_t decided = bw_min(*length, CHUNK);
    decided -= decided % sectorsize;
    if (over || !decided) {
        *length = bw_min(*length, sectorsize - over);
        return NULL;
    }
    BW_TRY(compare_sums(content, (uint64_t[]){a->used_logical, b->used_logical}, a->offset,
                        &decided, different));
    if (decided)
        *verdict = *different ? DIFFERENT : EQUAL;
    *length = decided ? decided : sectorsize;
    const uint32_t size = halves[0].checksums.size;
    for (uint64_t i = 0; *different && content->ranges && i < decided / sectorsize; i++)
        if (memcmp(halves[0].sums + i * size, halves[1].sums + i * size, size) != 0)
            BW_TRY(
                add_range(content, a->offset + i * sectorsize, a->offset + (i + 1) * sectorsize));
    return NULL;
}

/* Whether comparing the bytes takes no reading of data. */
static bool is_in_tree(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_INLINE || is_zero(extent);
}

/* Compares what both pieces begin with. `length` is set to how much that was. */
static struct bw_error *compare_step(struct bw_diff *diff, uint64_t *length,
                                     struct bw_diff_result *result)
{
    struct bw_diff_content *content = diff->content;
    struct bw_extent *a = &content->halves[0].piece.extent, *b = &content->halves[1].piece.extent;
    uint64_t different = 0;
    enum verdict verdict = OPEN;
    if (a->kind == BW_EXTENT_BAD || b->kind == BW_EXTENT_BAD) {
        result->unknown |= BW_CHANGE_CONTENT;
        return add_range(content, a->offset, a->offset + *length);
    }
    BW_TRY(compare_unread(diff, length, &different, &verdict));
    result->bytes += different;
    result->changes |= verdict == DIFFERENT ? BW_CHANGE_CONTENT : 0;
    if (verdict != OPEN)
        return NULL;
    if (diff->options.reading == BW_DIFF_READ_NEVER && !(is_in_tree(a) && is_in_tree(b))) {
        result->unknown |= BW_CHANGE_CONTENT;
        return add_range(content, a->offset, a->offset + *length);
    }
    *length = bw_min(*length, CHUNK);
    return read_both(content, a->offset, *length, result);
}

/* Compares the contents of two files in these ranges, up to the end of the shorter one. Pieces
 * extend to the end of a sector, which may be beyond the end of the file. */
static struct bw_error *compare_ranges(struct bw_diff *diff, const struct bw_diff_file files[2],
                                       const struct bw_diff_range *ranges, size_t count,
                                       struct bw_diff_result *result)
{
    if (!diff->content)
        BW_TRY(create_content(diff));
    struct bw_diff_content *content = diff->content;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_place place = {.subvolume = files[side].tree->subvolume,
                                       .inode = files[side].number};
        content->halves[side].file = bw_data_file_of(&place, &files[side].inode);
    }
    content->size = bw_min(files[0].inode.size, files[1].inode.size);
    content->ranges = diff->ranges;

    const uint64_t sectorsize = content->sectorsize, size = content->size;
    const uint64_t last = size + (sectorsize - size % sectorsize) % sectorsize;
    for (size_t i = 0; i < count && ranges[i].start < size; i++) {
        uint64_t at = ranges[i].start - ranges[i].start % sectorsize, length;
        for (unsigned side = 0; side < 2; side++) {
            struct half *half = &content->halves[side];
            half->piece.extent.length = 0;
            bw_extents_seek(&half->cursor, &half->file, at, bw_min(ranges[i].end, last));
        }
        for (; at < size; at += length) {
            /* Both sides need a piece here. */
            bool got = true;
            for (unsigned side = 0; side < 2 && got; side++) {
                struct half *half = &content->halves[side];
                struct bw_extent *extent = &half->piece.extent;
                if (extent->length)
                    continue;
                BW_TRY(bw_extents_next(&half->cursor, &half->piece, &got));
                if (got && extent->error)
                    bw_fs_report(half->cursor.fs, BW_DAMAGE,
                                 bw_error_prefix(BW_TAKE(extent->error),
                                                 "inode %" PRIu64 " of subvolume %" PRIu64,
                                                 files[side].number,
                                                 files[side].tree->subvolume->tree.id));
            }
            if (!got)
                break;
            length = bw_min(content->halves[0].piece.extent.length,
                            content->halves[1].piece.extent.length);
            BW_TRY(compare_step(diff, &length, result));
            advance_half(&content->halves[0], length);
            advance_half(&content->halves[1], length);
        }
    }
    return NULL;
}

/* Attributes. */

const char *bw_difference_change_name(unsigned bit)
{
    static const char *const names[BW_DIFFERENCE_CHANGES] = {"content", "size",   "mode", "owner",
                                                             "times",   "xattrs", "links"};
    return bit < BW_DIFFERENCE_CHANGES ? names[bit] : NULL;
}

struct bw_error *bw_diff_xattrs_read(const struct bw_diff_file *file, struct bw_xattr_list *list,
                                     bool *lost)
{
    struct bw_diff_items items;
    struct bw_error *error = NULL;
    bw_diff_items_begin(&items, file->tree, &file->tree->finder,
                        (struct bw_key){file->number, BW_XATTR_ITEM, 0},
                        (struct bw_key){file->number, BW_XATTR_ITEM, UINT64_MAX});
    for (const struct bw_item *item; !error && (item = bw_diff_items_next(&items));) {
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_xattr xattr;
        while (!error && bw_xattr_next(&cursor, &xattr))
            error = bw_xattr_list_add(list, xattr.name, xattr.name_length, xattr.value,
                                      xattr.value_length);
    }
    return bw_error_first(error, bw_diff_items_end(&items, lost));
}

struct bw_error *bw_diff_compare_contents(struct bw_diff *diff, const struct bw_diff_file files[2],
                                          const struct bw_touched *touched,
                                          struct bw_diff_result *result)
{
    const struct bw_touched_list *list = &diff->touched;
    const struct bw_diff_range all = {0, UINT64_MAX};
    const uint64_t before = files[0].inode.size, after = files[1].inode.size;
    if (!S_ISREG(files[0].inode.mode) && !S_ISLNK(files[0].inode.mode))
        return NULL;
    result->bytes = before > after ? before - after : after - before;
    if (!touched)
        return compare_ranges(diff, files, &all, 1, result);
    bool is_last = touched == &list->inodes.items[list->inodes.count - 1];
    const size_t count = (is_last ? list->ranges.count : touched[1].range) - touched->range;
    return compare_ranges(diff, files, count ? &list->ranges.items[touched->range] : NULL, count,
                          result);
}

struct bw_error *bw_diff_compare(struct bw_diff *diff, const struct bw_diff_file files[2],
                                 const struct bw_touched *touched, struct bw_diff_result *result)
{
    const struct bw_inode *a = &files[0].inode, *b = &files[1].inode;
    const uint32_t type = b->mode & S_IFMT;
    unsigned changes = 0;
    if ((a->mode ^ b->mode) & ~(uint32_t)S_IFMT)
        changes |= BW_CHANGE_MODE;
    if (a->uid != b->uid || a->gid != b->gid)
        changes |= BW_CHANGE_OWNER;
    if (!bw_same_time(&a->mtime, &b->mtime))
        changes |= BW_CHANGE_TIMES;
    if (type != S_IFDIR && a->link_count != b->link_count)
        changes |= BW_CHANGE_LINKS;
    if ((type == S_IFCHR || type == S_IFBLK) && a->device != b->device)
        changes |= BW_CHANGE_CONTENT;
    if ((type == S_IFREG || type == S_IFLNK) && a->size != b->size)
        changes |= BW_CHANGE_SIZE | BW_CHANGE_CONTENT;
    *result = (struct bw_diff_result){.changes = changes};

    /* Items also contain the transaction that wrote them, so only the values are compared. */
    if (!touched || touched->flags & BW_TOUCHED_XATTRS) {
        BW_SCOPED(bw_xattr_list) struct bw_xattr_list before = {0}, after = {0};
        bool lost = false;
        BW_TRY(bw_diff_xattrs_read(&files[0], &before, &lost));
        BW_TRY(bw_diff_xattrs_read(&files[1], &after, &lost));
        if (lost)
            result->unknown |= BW_CHANGE_XATTRS;
        else if (!bw_xattr_list_equals(&before, &after, false))
            result->changes |= BW_CHANGE_XATTRS;
    }
    BW_TRY(bw_diff_compare_contents(diff, files, touched, result));
    if (result->changes & BW_CHANGE_CONTENT)
        result->unknown &= ~(unsigned)BW_CHANGE_CONTENT;
    if (type == S_IFLNK)
        result->bytes = 0;
    return NULL;
}
