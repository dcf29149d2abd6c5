/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space of files. The extents of all files are looked at twice: to know which addresses are to
 * be looked up in the extent tree (unless they are so many that all of it is read), and to add up
 * what belongs to each file.
 */
#include "btrfs-walk/du.h"

#include <stdlib.h>

#include "owners/extent_scan.h"
#include "owners/shared_ranges.h"
#include "owners/sharing.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/struct_size.h"
#include "fs/fs.h"

/* Of a file, or of all files in a directory. */
struct sums {
    uint64_t total, exclusive, shared, files;
};

/* A part of an extent of which all references are from this file: if one of them is on a shared
 * way, all are shared. */
struct split_part {
    uint64_t extent;
    struct bw_range range;
    enum bw_sharing_kind way;
};

struct du {
    const struct bw_du_options *options;
    struct bw_file_list list;
    struct bw_sharing *sharing;
    bool sharing_known, has_replayed;       /* has_replayed: a tree that the log has changed */
    enum bw_sharing_kind way[BW_MAX_LEVEL]; /* by level: of the present block and those above it */
    struct sums *sums;                      /* for each file of the list */
    struct bw_shared_ranges ranges;
    const struct bw_wanted_file *file; /* that the parts are of */
    struct split_part *parts;
    size_t part_count, part_capacity;
    struct bw_buffer path;
};

/* What is to be looked up. */

static uint64_t address_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

static struct bw_error *ask(struct du *du, uint64_t bytenr)
{
    BW_TRY(bw_sharing_ask(du->sharing, bytenr));
    return bw_sharing_is_full(du->sharing) ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static struct bw_error *ask_block(void *context, const struct bw_tree *tree,
                                  const struct bw_node *node)
{
    (void)tree;
    return ask(context, address_of(node));
}

static struct bw_error *ask_extent(void *context, const struct bw_wanted_file *file,
                                   uint64_t offset, const struct bw_file_extent *extent)
{
    (void)file;
    (void)offset;
    return extent->disk_bytenr ? ask(context, extent->disk_bytenr) : NULL;
}

static struct bw_error *read_sharing(struct du *du)
{
    struct bw_extent_scan scan = {.fs = du->list.fs,
                                  .files = du->list.wanted,
                                  .count = du->list.wanted_count,
                                  .quiet = true,
                                  .block = ask_block,
                                  .extent = ask_extent,
                                  .context = du};
    if (du->list.wanted_count >= BW_SHARING_MOST)
        bw_sharing_ask_all(du->sharing);
    struct bw_error *error = bw_sharing_is_full(du->sharing) ? NULL : bw_extent_scan_run(&scan);
    if (error && error->code != BW_ERROR_STOPPED)
        return error;
    bw_error_free(error);
    error = bw_sharing_read(du->sharing);
    du->sharing_known = !error;
    if (error && error->code != BW_ERROR_CORRUPT)
        return error;
    if (error)
        bw_fs_report(du->list.fs, BW_DAMAGE,
                     bw_error_prefix(error, "it is not known what is shared"));
    return NULL;
}

/* Adding up. */

static struct bw_error *add_range(struct du *du, const struct bw_wanted_file *file,
                                  const struct bw_range *range, enum bw_sharing_kind kind)
{
    struct sums *sums = &du->sums[file->number];
    if (kind == BW_NOT_SHARED)
        sums->exclusive += range->length;
    if (kind != BW_SHARED)
        return NULL;
    sums->shared += range->length;
    return bw_shared_ranges_add(&du->ranges, range);
}

/* Those that are shared come first. */
static int by_extent(const void *a, const void *b)
{
    const struct split_part *one = a, *other = b;
    if (one->extent != other->extent)
        return one->extent < other->extent ? -1 : 1;
    return (int)other->way - (int)one->way;
}

/* The file that the parts are of is at its end. */
static struct bw_error *settle_parts(struct du *du)
{
    enum bw_sharing_kind kind = BW_NOT_SHARED;
    if (du->part_count)
        qsort(du->parts, du->part_count, sizeof *du->parts, by_extent);
    for (size_t i = 0; i < du->part_count; i++) {
        const struct split_part *part = &du->parts[i];
        if (!i || part->extent != du->parts[i - 1].extent)
            kind = part->way;
        BW_TRY(add_range(du, du->file, &part->range, kind));
    }
    du->part_count = 0;
    return NULL;
}

static struct bw_error *add_part(struct du *du, const struct bw_wanted_file *file, uint64_t extent,
                                 const struct bw_range *range)
{
    if (du->file != file)
        BW_TRY(settle_parts(du));
    du->file = file;
    if (!BW_ARRAY_RESERVE(du->parts, du->part_count, du->part_capacity))
        return bw_error_no_memory();
    du->parts[du->part_count++] = (struct split_part){extent, *range, du->way[0]};
    return NULL;
}

static enum bw_sharing_kind greater(enum bw_sharing_kind one, enum bw_sharing_kind other)
{
    return one > other ? one : other;
}

static struct bw_error *take_block(void *context, const struct bw_tree *tree,
                                   const struct bw_node *node)
{
    struct du *du = context;
    const uint64_t address = address_of(node);
    const enum bw_sharing_kind own = bw_sharing_of(du->sharing, address);
    const enum bw_sharing_kind above =
        node->level < tree->root.level ? du->way[node->level + 1] : BW_NOT_SHARED;
    du->way[node->level] = greater(above, own == BW_SPLIT ? BW_SHARED : own);
    du->has_replayed |= address >= BW_MEMORY_START;
    return NULL;
}

static struct bw_error *take_extent(void *context, const struct bw_wanted_file *file,
                                    uint64_t offset, const struct bw_file_extent *extent)
{
    struct du *du = context;
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    /* As FIEMAP has it: the end of what is compressed is not known. */
    const struct bw_range range = {extent->disk_bytenr + (plain ? extent->offset : 0),
                                   extent->num_bytes};
    (void)offset;
    if (!extent->disk_bytenr)
        return NULL;
    du->sums[file->number].total += extent->num_bytes;
    const enum bw_sharing_kind kind = bw_sharing_of(du->sharing, extent->disk_bytenr);
    return kind == BW_SPLIT ? add_part(du, file, extent->disk_bytenr, &range)
                            : add_range(du, file, &range, greater(kind, du->way[0]));
}

static struct bw_error *add_up(struct du *du)
{
    struct bw_extent_scan scan = {.fs = du->list.fs,
                                  .files = du->list.wanted,
                                  .count = du->list.wanted_count,
                                  .block = take_block,
                                  .extent = take_extent,
                                  .context = du};
    BW_TRY(bw_extent_scan_run(&scan));
    /* Replaying changes references, too, but not in the extent tree that is read here. */
    if (du->has_replayed && du->sharing_known)
        bw_fs_report(du->list.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "the log was replayed: what is shared is only known as it was "
                                     "before, and may be counted as exclusive"));
    return settle_parts(du);
}

/* Handing out. */

/* Whether a file or directory is counted as one of those in the directory above it. */
static bool is_counted(const struct bw_listed_file *file)
{
    return file->is_directory || (file->wanted && !file->again);
}

static struct bw_error *hand_out(struct du *du, uint32_t number)
{
    const struct bw_du_options *options = du->options;
    const struct bw_listed_file *file = &du->list.files[number];
    const struct sums *sums = &du->sums[number];
    struct bw_du_entry entry = {
        .place = {.subvolume = file->subvolume,
                  .inode = file->inode,
                  .type = file->is_directory ? BW_FILE_DIRECTORY : BW_FILE_REGULAR},
        .depth = bw_file_list_depth(&du->list, number),
        .files = sums->files,
        .total = sums->total,
        .exclusive = sums->exclusive,
        .shared = sums->shared,
        .sharing_known = du->sharing_known,
    };
    if (entry.depth < options->mindepth ||
        (options->has_maxdepth && entry.depth > options->maxdepth))
        return NULL;
    if (options->selection && !sums->files && entry.depth)
        return NULL;
    BW_TRY(bw_file_list_path(&du->list, number, &du->path));
    entry.path = du->path.data;
    entry.path_length = du->path.length;
    if (!entry.depth)
        entry.set_shared = file->is_directory ? bw_shared_ranges_total(&du->ranges) : sums->shared;
    return options->take(options->context, &entry);
}

static struct bw_error *hand_out_all(struct du *du)
{
    uint32_t number = bw_file_list_begin(&du->list, 0);
    for (; number != BW_NO_FILE; number = bw_file_list_next(&du->list, number)) {
        const struct bw_listed_file *file = &du->list.files[number];
        struct sums *sums = &du->sums[number];
        if (!is_counted(file))
            continue;
        sums->files += !file->is_directory;
        BW_TRY(hand_out(du, number));
        if (file->parent == BW_NO_FILE)
            continue;
        struct sums *above = &du->sums[file->parent];
        above->total += sums->total;
        above->exclusive += sums->exclusive;
        above->shared += sums->shared;
        above->files += sums->files;
    }
    return NULL;
}

static struct bw_error *count(struct du *du)
{
    BW_TRY(bw_file_list_add(&du->list, du->options->subvolume, du->options->start));
    if (!du->list.count)
        return NULL;
    BW_TRY(bw_file_list_sort(&du->list));
    du->sums = calloc(du->list.count, sizeof *du->sums);
    if (!du->sums)
        return bw_error_no_memory();
    BW_TRY(bw_sharing_create(du->list.fs, &du->sharing));
    BW_TRY(read_sharing(du));
    BW_TRY(add_up(du));
    return hand_out_all(du);
}

struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *given)
{
    struct bw_du_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.take)
        return bw_error_create(BW_ERROR_USAGE, "nobody takes the entries");
    struct du du = {.options = &options, .list = {.fs = fs, .selection = options.selection}};
    struct bw_error *error = count(&du);
    bw_file_list_free(&du.list);
    bw_sharing_destroy(du.sharing);
    bw_shared_ranges_free(&du.ranges);
    bw_buffer_free(&du.path);
    free(du.parts);
    free(du.sums);
    return error;
}
