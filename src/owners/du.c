/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space of files, window by window of the list. The extents of a window are looked at twice: to
 * know which addresses are to be looked up in the extent tree (unless they are so many that all of
 * it is read, once), and to add up what belongs to each file. The sums of a directory are kept
 * until it ends.
 */
#include "btrfs-walk/du.h"

#include <stdlib.h>
#include <string.h>

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
    struct bw_fs *fs;
    const struct bw_du_options *options;
    struct bw_sharing *sharing;
    uint64_t file_count;                    /* until all of the extent tree is read */
    bool sharing_unknown, has_replayed;     /* has_replayed: a tree that the log has changed */
    enum bw_sharing_kind way[BW_MAX_LEVEL]; /* by level: of the present block and those above it */
    struct bw_extent_scan scan;
    struct sums *sums; /* for each file of the window */
    size_t sums_room;
    struct sums *around; /* of the directories on the way to the present file; the start is first */
    size_t depth, depth_capacity;
    struct bw_file_place place;
    struct bw_shared_ranges ranges;
    const struct bw_wanted_file *file; /* that the parts are of */
    struct split_part *parts;
    size_t part_count, part_capacity;
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

static struct bw_error *ask_for_window(struct du *du, const struct bw_file_window *window)
{
    struct bw_extent_scan scan = {.fs = du->fs,
                                  .files = window->wanted,
                                  .count = window->wanted_count,
                                  .quiet = true,
                                  .block = ask_block,
                                  .extent = ask_extent,
                                  .context = du};
    struct bw_error *error = bw_extent_scan_run(&scan);
    bw_extent_scan_end(&scan);
    if (error && error->code != BW_ERROR_STOPPED)
        return error;
    bw_error_free(error);
    return NULL;
}

static struct bw_error *read_sharing(struct du *du, const struct bw_file_window *window)
{
    if (du->sharing_unknown || bw_sharing_is_full(du->sharing))
        return NULL;
    du->file_count += window->wanted_count;
    if (du->file_count >= BW_SHARING_MOST)
        bw_sharing_ask_all(du->sharing);
    else
        BW_TRY(ask_for_window(du, window));
    struct bw_error *error = bw_sharing_read(du->sharing);
    if (error && error->code != BW_ERROR_CORRUPT)
        return error;
    du->sharing_unknown = error;
    if (error)
        bw_fs_report(du->fs, BW_DAMAGE, bw_error_prefix(error, "it is not known what is shared"));
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

static struct bw_error *add_up(struct du *du, const struct bw_file_window *window)
{
    if (window->count > du->sums_room) {
        free(du->sums);
        du->sums = malloc(window->count * sizeof *du->sums);
        du->sums_room = du->sums ? window->count : 0;
    }
    if (!du->sums)
        return bw_error_no_memory();
    memset(du->sums, 0, window->count * sizeof *du->sums);
    du->scan.files = window->wanted;
    du->scan.count = window->wanted_count;
    du->file = NULL;
    BW_TRY(bw_extent_scan_run(&du->scan));
    return settle_parts(du);
}

/* Replaying changes references, too, but not in the extent tree that is read here. */
static void report_replayed(const struct du *du)
{
    if (du->has_replayed && !du->sharing_unknown)
        bw_fs_report(du->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "the log was replayed: what is shared is only known as it was "
                                     "before, and may be counted as exclusive"));
}

/* Handing out. */

static struct bw_error *hand_out(struct du *du, const struct bw_listed_file *file,
                                 const struct sums *sums)
{
    const struct bw_du_options *options = du->options;
    const bool is_directory = file->kind != BW_LISTED_FILE;
    const struct bw_du_entry entry = {
        .path = du->place.path.data,
        .path_length = du->place.path.length,
        .place = {.subvolume = file->subvolume,
                  .inode = file->inode,
                  .type = is_directory ? BW_FILE_DIRECTORY : BW_FILE_REGULAR},
        .depth = du->place.depth,
        .files = sums->files,
        .total = sums->total,
        .exclusive = sums->exclusive,
        .shared = sums->shared,
        .set_shared = du->place.depth ? 0
                      : is_directory  ? bw_shared_ranges_total(&du->ranges)
                                      : sums->shared,
        .sharing_known = !du->sharing_unknown,
    };
    if (entry.depth < options->mindepth ||
        (options->has_maxdepth && entry.depth > options->maxdepth))
        return NULL;
    if (options->selection && !sums->files && entry.depth)
        return NULL;
    return options->take(options->context, &entry);
}

static struct bw_error *finish(struct du *du, const struct bw_listed_file *file,
                               const struct sums *sums)
{
    BW_TRY(hand_out(du, file, sums));
    if (!du->depth)
        return NULL;
    struct sums *above = &du->around[du->depth - 1];
    above->total += sums->total;
    above->exclusive += sums->exclusive;
    above->shared += sums->shared;
    above->files += sums->files;
    return NULL;
}

static struct bw_error *take_step(struct du *du, const struct bw_file_window *window, size_t number)
{
    const struct bw_listed_file *file = &window->files[number];
    BW_TRY(bw_file_place_step(&du->place, window, file));
    switch (file->kind) {
    case BW_LISTED_ENTER:
        if (!BW_ARRAY_RESERVE(du->around, du->depth, du->depth_capacity))
            return bw_error_no_memory();
        du->around[du->depth++] = (struct sums){0};
        return NULL;
    case BW_LISTED_LEAVE: {
        const struct sums sums = du->around[--du->depth];
        return finish(du, file, &sums);
    }
    default:
        if (!file->wanted)
            return NULL;
        du->sums[number].files = 1;
        return finish(du, file, &du->sums[number]);
    }
}

static struct bw_error *take_window(void *context, const struct bw_file_window *window)
{
    struct du *du = context;
    BW_TRY(read_sharing(du, window));
    BW_TRY(add_up(du, window));
    for (size_t i = 0; i < window->count; i++)
        BW_TRY(take_step(du, window, i));
    return NULL;
}

static struct bw_error *count(struct du *du)
{
    const struct bw_file_list_options list = {.subvolume = du->options->subvolume,
                                              .start = du->options->start,
                                              .selection = du->options->selection,
                                              .nested = du->options->nested,
                                              .once = true};
    du->scan = (struct bw_extent_scan){
        .fs = du->fs, .block = take_block, .extent = take_extent, .context = du};
    BW_TRY(bw_sharing_create(du->fs, &du->sharing));
    struct bw_error *error = bw_file_list(du->fs, &list, take_window, du);
    bw_sharing_report(du->sharing);
    bw_extent_scan_end(&du->scan);
    if (!error)
        report_replayed(du);
    return error;
}

struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *given)
{
    struct bw_du_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.take)
        return bw_error_create(BW_ERROR_USAGE, "nobody takes the entries");
    struct du du = {.fs = fs, .options = &options};
    struct bw_error *error = count(&du);
    bw_file_place_free(&du.place);
    bw_sharing_destroy(du.sharing);
    bw_shared_ranges_free(&du.ranges);
    free(du.parts);
    free(du.around);
    free(du.sums);
    return error;
}
