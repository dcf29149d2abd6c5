/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which ranges of a file differ between two states. Where both show the same bytes of the same
 * extent, or both zeros, nothing is read; only data in the trees are compared byte by byte.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/inspect/log.h"

/* The extents of one state. */
struct extents {
    struct bw_file *file;
    struct bw_extent now; /* the one at hand; of length 0 after the last */
};

static struct bw_error *next(struct extents *extents)
{
    bool got;
    BW_TRY(bw_file_next_extent(extents->file, &extents->now, &got));
    if (!got)
        extents->now = (struct bw_extent){.kind = BW_EXTENT_HOLE};
    return NULL;
}

/* Where the extent at hand ends; what follows the last one is a hole without an end. */
static uint64_t end_of(const struct extents *extents)
{
    return extents->now.length ? extents->now.offset + extents->now.length : UINT64_MAX;
}

static bool is_zero(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_HOLE || extent->kind == BW_EXTENT_UNWRITTEN;
}

/* Inline data are at most a sector long. */
static bool same_bytes(struct extents *before, struct extents *after, uint64_t offset,
                       uint64_t length)
{
    char buffers[2][4096];
    for (size_t got[2]; length; offset += got[0], length -= got[0]) {
        size_t wanted = length < sizeof *buffers ? (size_t)length : sizeof *buffers;
        BW_AUTO_ERROR struct bw_error *first =
            bw_file_read(before->file, offset, buffers[0], wanted, &got[0]);
        BW_AUTO_ERROR struct bw_error *second =
            bw_file_read(after->file, offset, buffers[1], wanted, &got[1]);
        if (first || second || got[0] != got[1] || memcmp(buffers[0], buffers[1], got[0]) != 0)
            return false;
        if (!got[0])
            break; /* the end of the file */
    }
    return true;
}

static bool is_same(struct extents *before, struct extents *after, uint64_t offset, uint64_t end)
{
    const struct bw_extent *a = &before->now, *b = &after->now;
    if (is_zero(a) || is_zero(b))
        return is_zero(a) && is_zero(b);
    if (a->kind == BW_EXTENT_REGULAR && b->kind == BW_EXTENT_REGULAR)
        return a->logical == b->logical && a->compression == b->compression &&
               a->extent_offset - a->offset == b->extent_offset - b->offset;
    return a->kind == BW_EXTENT_INLINE && b->kind == BW_EXTENT_INLINE &&
           same_bytes(before, after, offset, end - offset);
}

/* Goes through both; ranges that touch are one. */
static struct bw_error *compare(struct changes *changes, struct extents *before,
                                struct extents *after)
{
    const uint64_t size = changes->after.inode.size;
    uint64_t start = 0, offset = 0;
    BW_TRY(next(before));
    BW_TRY(next(after));
    while (offset < size) {
        uint64_t end = end_of(before) < end_of(after) ? end_of(before) : end_of(after);
        end = end < size ? end : size;
        if (is_same(before, after, offset, end)) {
            if (start < offset)
                BW_TRY(log_write_range(changes, start, offset - start));
            start = end;
        }
        offset = end;
        if (before->now.length && end_of(before) <= offset)
            BW_TRY(next(before));
        if (after->now.length && end_of(after) <= offset)
            BW_TRY(next(after));
    }
    return start < size ? log_write_range(changes, start, size - start) : NULL;
}

struct bw_error *log_compare_data(struct changes *changes)
{
    struct extents before = {.file = NULL}, after = {.file = NULL};
    struct bw_error *error =
        bw_file_open(changes->before.fs, &changes->before.place, NULL, &before.file);
    if (!error)
        error = bw_file_open(changes->after.fs, &changes->after.place, NULL, &after.file);
    if (!error)
        error = compare(changes, &before, &after);
    bw_file_close(before.file);
    bw_file_close(after.file);
    return error;
}
