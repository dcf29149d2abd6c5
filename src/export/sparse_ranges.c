/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the extents of a file to ranges of data. */
#include "export/archive.h"

#include "base/cleanup.h"

enum {
    UNIT = 512, /* alignment in archives: GNU tar pads each range to it, other programs write the
                 * range as in the map */
    LEAST_HOLE = 4096,
    MOST_LOST = 1 << 30,   /* larger than any extent, so nothing real is lost by treating it as a
                            * hole */
    MOST_RANGES = 1 << 16, /* each takes memory here, in libarchive and in the archive */
};

/* Whether the hole between a range and an offset is too small, or there is no hole. */
static bool is_near(const struct bw_ranges *ranges, const struct bw_archive_range *before,
                    uint64_t offset)
{
    uint64_t end = before->offset + before->length;
    return offset <= end || offset - end < ranges->least_hole;
}

struct bw_error *bw_ranges_init(struct bw_ranges *ranges, struct bw_fs *fs)
{
    *ranges = (struct bw_ranges){0};
    return bw_extent_reader_create(fs, &ranges->reader);
}

void bw_ranges_free(struct bw_ranges *ranges)
{
    bw_extent_reader_destroy(ranges->reader);
    bw_archive_ranges_free(&ranges->ranges);
    bw_error_free(ranges->lost);
}

static struct bw_error *add_range(struct bw_ranges *ranges, uint64_t offset, uint64_t length)
{
    struct bw_archive_range *last =
        ranges->ranges.count ? &ranges->ranges.items[ranges->ranges.count - 1] : NULL;
    if (last && is_near(ranges, last, offset)) {
        last->length = offset + length - last->offset;
        return NULL;
    }
    if (ranges->ranges.count == MOST_RANGES) {
        /* Too many: holes up to twice the size become data, repeatedly, until at most half of the
         * ranges remain. Large holes remain. */
        while (ranges->ranges.count > MOST_RANGES / 2) {
            size_t kept = 0;
            ranges->least_hole *= 2;
            for (size_t i = 1; i < ranges->ranges.count; i++) {
                struct bw_archive_range *before = &ranges->ranges.items[kept],
                                        *range = &ranges->ranges.items[i];
                if (is_near(ranges, before, range->offset))
                    before->length = range->offset + range->length - before->offset;
                else
                    ranges->ranges.items[++kept] = *range;
            }
            ranges->ranges.count = kept + 1;
        }

        return add_range(ranges, offset, length);
    }
    return bw_archive_ranges_push(&ranges->ranges, (struct bw_archive_range){offset, length});
}

struct bw_error *bw_ranges_read(struct bw_ranges *ranges, const struct bw_data_file *file)
{
    const struct bw_extent *extent;
    uint64_t data = 0;
    ranges->ranges.count = 0;
    ranges->is_sparse = false;
    ranges->least_hole = LEAST_HOLE;
    bw_error_free(BW_TAKE(ranges->lost));
    if (file->size <= LEAST_HOLE)
        return NULL;
    bw_extent_reader_seek(ranges->reader, file, 0, file->size);
    for (;;) {
        BW_TRY(bw_extent_reader_next(ranges->reader, &extent));
        if (!extent)
            break;
        /* An unreadable extent that is long counts as a hole; the first error is kept. */
        const bool is_lost = extent->kind == BW_EXTENT_BAD && extent->length > MOST_LOST;
        if (is_lost && !ranges->lost)
            ranges->lost = bw_error_brief(extent->error);
        if (is_lost || extent->kind == BW_EXTENT_HOLE || extent->kind == BW_EXTENT_UNWRITTEN)
            continue;
        /* Ranges consist of whole units, except at the end of the file. */
        const uint64_t start = extent->offset - extent->offset % UNIT;
        uint64_t end = extent->offset + extent->length;
        const uint64_t rest = (UNIT - end % UNIT) % UNIT;
        end = end >= file->size || file->size - end < rest ? file->size : end + rest;
        BW_TRY(add_range(ranges, start, end - start));
    }
    for (size_t i = 0; i < ranges->ranges.count; i++)
        data += ranges->ranges.items[i].length;
    ranges->is_sparse = file->size - data >= LEAST_HOLE;
    return NULL;
}
