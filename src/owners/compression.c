/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sums of compression.h. What an extent is counted as, if some files have written into it and
 * others have not, is decided by the first reference in the order of readdir(3), as compsize does.
 */
#include "btrfs-walk/compression.h"

#include <stdlib.h>

#include "owners/extent_scan.h"
#include "base/cleanup.h"
#include "base/struct_size.h"

struct bw_compression_count {
    struct bw_file_list list;
    struct bw_map extents; /* by address: order of the first reference, and FIRST_PREALLOC */
    struct bw_compression_info info;
};

/* Whether the first reference is to space that was not written; the order is shifted by this bit.
 */
enum { FIRST_PREALLOC = 1, ORDER_SHIFT = 1, MOST_FILES = UINT32_MAX >> ORDER_SHIFT };

const char *bw_compression_kind_name(unsigned type)
{
    return type == BW_COMPRESSION_PREALLOC ? "prealloc" : bw_compression_name(type);
}

struct bw_error *bw_compression_begin(struct bw_fs *fs, const struct bw_compression_options *given,
                                      struct bw_compression_count **result)
{
    struct bw_compression_options options = {.struct_size = sizeof options};
    if (given)
        BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_compression_count *count = *result = calloc(1, sizeof *count);
    if (!count)
        return bw_error_no_memory();
    count->list.fs = fs;
    count->list.selection = options.selection;
    count->list.has_maxdepth = options.has_maxdepth;
    count->list.maxdepth = options.maxdepth;
    count->list.mindepth = options.mindepth;
    return NULL;
}

void bw_compression_end(struct bw_compression_count *count)
{
    if (!count)
        return;
    bw_file_list_free(&count->list);
    bw_map_free(&count->extents);
    free(count);
}

struct bw_error *bw_compression_add(struct bw_compression_count *count, const char *subvolume,
                                    const char *start)
{
    return bw_file_list_add(&count->list, subvolume, start);
}

static unsigned type_of(const struct bw_file_extent *extent)
{
    return extent->type == BW_FILE_EXTENT_PREALLOC ? BW_COMPRESSION_PREALLOC : extent->compression;
}

static void add_inline(struct bw_compression_info *info, uint64_t names,
                       const struct bw_file_extent *extent)
{
    struct bw_compression_sizes *sizes = &info->types[type_of(extent)];
    info->inlined += names;
    sizes->disk += names * extent->inline_length;
    sizes->uncompressed += names * extent->ram_bytes;
    sizes->referenced += names * extent->ram_bytes;
}

static void add_whole(struct bw_compression_sizes *sizes, const struct bw_file_extent *extent,
                      uint64_t sign)
{
    sizes->disk += sign * extent->disk_num_bytes;
    sizes->uncompressed += sign * extent->ram_bytes;
}

/* Counts an extent if it was not, or anew if this reference comes before the first one so far. */
static struct bw_error *add_extent(struct bw_compression_count *count, uint32_t order,
                                   const struct bw_file_extent *extent)
{
    struct bw_compression_info *info = &count->info;
    const unsigned type = type_of(extent);
    const uint32_t first = bw_map_get(&count->extents, extent->disk_bytenr);
    const uint32_t ours =
        order << ORDER_SHIFT | (type == BW_COMPRESSION_PREALLOC ? FIRST_PREALLOC : 0);
    if (first != UINT32_MAX && first >> ORDER_SHIFT <= order)
        return NULL;
    if (first == UINT32_MAX)
        info->extents++;
    else
        add_whole(
            &info->types[first & FIRST_PREALLOC ? BW_COMPRESSION_PREALLOC : extent->compression],
            extent, UINT64_MAX);
    add_whole(&info->types[type], extent, 1);
    return bw_map_put(&count->extents, extent->disk_bytenr, ours) ? NULL : bw_error_no_memory();
}

static struct bw_error *take_extent(void *context, const struct bw_wanted_file *file,
                                    uint64_t offset, const struct bw_file_extent *extent)
{
    struct bw_compression_count *count = context;
    struct bw_compression_info *info = &count->info;
    (void)offset;
    if (extent->type == BW_FILE_EXTENT_INLINE) {
        add_inline(info, file->names, extent);
        return NULL;
    }
    if (!extent->disk_bytenr)
        return NULL;
    info->references += file->names;
    info->types[type_of(extent)].referenced += file->names * extent->num_bytes;
    return add_extent(count, file->order, extent);
}

struct bw_error *bw_compression_sum(struct bw_compression_count *count,
                                    struct bw_compression_info *info)
{
    struct bw_compression_sizes *total = &count->info.total;
    if (count->list.count > MOST_FILES)
        return bw_error_no_memory();
    BW_TRY(bw_file_list_sort(&count->list));
    struct bw_extent_scan scan = {.fs = count->list.fs,
                                  .files = count->list.wanted,
                                  .count = count->list.wanted_count,
                                  .extent = take_extent,
                                  .context = count};
    BW_TRY(bw_extent_scan_run(&scan));
    for (size_t i = 0; i < count->list.wanted_count; i++)
        count->info.files += count->list.wanted[i].names;
    for (unsigned type = 0; type < BW_COMPRESSION_KINDS; type++) {
        total->disk += count->info.types[type].disk;
        total->uncompressed += count->info.types[type].uncompressed;
        total->referenced += count->info.types[type].referenced;
    }
    *info = count->info;
    return NULL;
}
