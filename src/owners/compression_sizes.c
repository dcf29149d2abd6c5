/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sums of space.h. If some files have written into an extent and others have not, the first
 * reference in the order of readdir(3) decides how it is counted, as in compsize. Files arrive in
 * that order, batch by batch, and the files of a batch in the order of inodes. So the order of
 * first references is remembered within a batch; a reference in a later batch is not the first.
 */
#include "btrfs-walk/space.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/struct_size.h"
#include "owners/file_list.h"

struct bw_compression_count {
    struct bw_file_list_options list;
    struct bw_number_set counted; /* addresses of extents, in units of the smallest sector */
    struct bw_key_map extents;    /* the same of this batch: order of the first reference, and
                                 FIRST_PREALLOC */
    bool is_alone;                /* a single file is counted: its first references come first */
    struct bw_extent_scan scan;
    struct bw_compression_info info;
};

/* Whether the first reference is to space that was not written; the order is shifted by this bit.
 */
enum { FIRST_PREALLOC = 1, ORDER_SHIFT = 1 };

/* Of a batch. If files have more, they are counted in smaller batches. */
enum { MOST_EXTENTS = 1 << 19 };

const char *bw_compression_kind_name(unsigned type)
{
    return type == BW_COMPRESSION_PREALLOC ? "prealloc" : bw_compression_name(type);
}

static void add_whole(struct bw_compression_sizes *sizes, const struct bw_file_extent *extent,
                      uint64_t sign)
{
    sizes->disk += sign * extent->disk_num_bytes;
    sizes->uncompressed += sign * extent->ram_bytes;
}

/* Counts a reference; and its extent if it was not, or again if this reference comes before the
 * first one so far. */
static struct bw_error *count_extent(struct bw_compression_count *count)
{
    const struct bw_wanted_file *file = count->scan.file;
    const struct bw_file_extent *extent = &count->scan.extent;
    struct bw_compression_info *info = &count->info;
    const bool is_prealloc = extent->type == BW_FILE_EXTENT_PREALLOC;
    const unsigned type = is_prealloc ? BW_COMPRESSION_PREALLOC : extent->compression;
    struct bw_compression_sizes *sizes = &info->types[type];
    const uint64_t sector = extent->disk_bytenr / BW_MIN_SECTORSIZE;
    const uint32_t order = file->number;
    bool is_new = true;
    if (extent->type == BW_FILE_EXTENT_INLINE) {
        info->inlined += file->names;
        sizes->disk += file->names * extent->inline_length;
        sizes->uncompressed += file->names * extent->ram_bytes;
        sizes->referenced += file->names * extent->ram_bytes;
        return NULL;
    }
    if (!extent->disk_bytenr)
        return NULL;
    info->references += file->names;
    sizes->referenced += file->names * extent->num_bytes;
    if (bw_number_set_has(&count->counted, sector))
        return NULL;
    if (count->is_alone) {
        info->extents++;
        add_whole(sizes, extent, 1);
        return bw_number_set_insert(&count->counted, sector, &is_new);
    }
    const uint32_t first = bw_key_map_get(&count->extents, sector, UINT32_MAX);
    const uint32_t ours = order << ORDER_SHIFT | (is_prealloc ? FIRST_PREALLOC : 0);
    if (first != UINT32_MAX && first >> ORDER_SHIFT <= order)
        return NULL;
    if (count->extents.count == MOST_EXTENTS)
        return bw_error_create(BW_ERROR_STOPPED, "too many extents");
    if (first == UINT32_MAX)
        info->extents++;
    else
        add_whole(
            &info->types[first & FIRST_PREALLOC ? BW_COMPRESSION_PREALLOC : extent->compression],
            extent, UINT64_MAX);
    add_whole(sizes, extent, 1);
    return bw_key_map_put(&count->extents, sector, ours);
}

/* Counts the files whose first names are in some steps of a batch; in two halves if they have too
 * many extents. */
static struct bw_error *count_steps(struct bw_compression_count *count,
                                    const struct bw_file_batch *batch, size_t first, size_t end)
{
    const struct bw_compression_info before = count->info;
    BW_AUTO_FREE struct bw_wanted_file *files = malloc((end - first) * sizeof *files);
    size_t found = 0;
    if (!files)
        return bw_error_no_memory();
    for (size_t i = 0; i < batch->wanted_count; i++)
        if (batch->wanted[i].number >= first && batch->wanted[i].number < end) {
            count->info.files += batch->wanted[i].names;
            files[found++] = batch->wanted[i];
        }
    count->is_alone = found == 1;
    bw_extent_scan_begin(&count->scan, files, found);
    struct bw_error *error = NULL;
    while (!error && bw_extent_scan_next(&count->scan))
        error = count_extent(count);
    error = bw_error_first(error, bw_extent_scan_error(&count->scan));
    if (!error) {
        /* The extents of the batch are remembered without their order. */
        size_t position = 0;
        uint64_t sector;
        uint32_t order;
        bool is_new;
        while (bw_key_map_next(&count->extents, &position, &sector, &order))
            BW_TRY(bw_number_set_insert(&count->counted, sector, &is_new));
        bw_key_map_clear(&count->extents);
        return NULL;
    }
    if (error->code != BW_ERROR_STOPPED)
        return error;
    bw_error_free(error);
    bw_key_map_clear(&count->extents);
    count->info = before;
    const size_t middle = first + (end - first) / 2;
    BW_TRY(count_steps(count, batch, first, middle));
    return count_steps(count, batch, middle, end);
}

struct bw_error *bw_compression_open(struct bw_fs *fs, const struct bw_compression_options *given,
                                     struct bw_compression_count **result)
{
    struct bw_compression_options options = {.struct_size = sizeof options};
    if (given)
        BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_compression_count *count = *result = calloc(1, sizeof *count);
    if (!count)
        return bw_error_no_memory();
    count->scan.fs = fs;
    count->list.selection = options.selection;
    count->list.has_maxdepth = options.has_maxdepth;
    count->list.maxdepth = options.maxdepth;
    count->list.mindepth = options.mindepth;
    count->list.nested = options.nested;
    count->list.no_snapshots = options.no_snapshots;
    return NULL;
}

void bw_compression_close(struct bw_compression_count *count)
{
    if (!count)
        return;
    bw_extent_scan_end(&count->scan);
    bw_number_set_free(&count->counted);
    bw_key_map_free(&count->extents);
    free(count);
}

struct bw_error *bw_compression_add(struct bw_compression_count *count, const char *subvolume,
                                    const char *start)
{
    struct bw_file_list_options list = count->list;
    list.subvolume = subvolume;
    list.start = start;
    struct bw_file_list *files;
    struct bw_error *error = bw_file_list_open(count->scan.fs, &list, &files);
    for (const struct bw_file_batch *batch; !error;) {
        error = bw_file_list_next(files, &batch);
        if (error || !batch)
            break;
        if (batch->wanted_count)
            error = count_steps(count, batch, 0, batch->count);
    }
    bw_file_list_close(files);
    return error;
}

struct bw_error *bw_compression_sum(struct bw_compression_count *count,
                                    struct bw_compression_info *info)
{
    struct bw_compression_sizes *total = &count->info.total;
    bw_extent_scan_end(&count->scan);
    for (unsigned type = 0; type < BW_COMPRESSION_KINDS; type++) {
        total->disk += count->info.types[type].disk;
        total->uncompressed += count->info.types[type].uncompressed;
        total->referenced += count->info.types[type].referenced;
    }
    *info = count->info;
    return NULL;
}
