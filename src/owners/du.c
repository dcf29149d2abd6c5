/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space of files, and which extents of them are shared. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash_mix.h"
#include "base/human.h"
#include "base/compare.h"
#include "base/number_set.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "btrfs-walk/space.h"
#include "data/extent_sums.h"
#include "fs/fs.h"
#include "owners/file_list.h"
#include "base/range_set.h"
#include "owners/references.h"

/*
 * Whether extents and tree blocks are shared, according to the extent tree. Addresses are requested
 * first, then the extent tree is read at these addresses. If there are many, all of it is read,
 * once.
 *
 * As in the kernel's btrfs_is_data_extent_shared(), the number of reference records counts, not the
 * number of references: one EXTENT_DATA_REF with a count of 2 is one extent of one file that was
 * cut into two items. Only addresses with more than one reference are remembered, by a bit for each
 * sector.
 */

/* If so many addresses are requested, all of the extent tree is read. */
enum { MOST_REQUESTS = 1 << 18 };

/* The sharing of an extent or a tree block; of several blocks on a path, the greatest value counts.
 */
enum sharing_kind {
    NOT_SHARED,
    SPLIT,           /**< one reference, from several items of the same file */
    UNKNOWN_SHARING, /**< it would be in a lost part of the extent tree */
    SHARED,          /**< several references */
};

/* Addresses of extents whose items are lost, both included. */
struct lost_range {
    uint64_t first, last;
};

struct sharing_table {
    struct bw_fs *fs;
    uint64_t *requested; /* since the tree was read; ascending while it is */
    size_t requested_count, requested_capacity;
    size_t requested_before;
    struct bw_number_set shared, split; /* addresses in units of the smallest sector */
    struct bw_extent_entry extent; /* that the last extent item was for, with several references */
    uint64_t records;              /* of references to it so far */
    struct lost_range *lost;       /* ascending */
    size_t lost_count, lost_capacity;
    struct bw_number_set lost_blocks;
    bool all;
};

/* Starts, with nothing requested for. */
static struct bw_error *sharing_create(struct bw_fs *fs, struct sharing_table **result)
{
    struct sharing_table *sharing = *result = calloc(1, sizeof *sharing);
    if (!sharing)
        return bw_error_no_memory();
    sharing->fs = fs;
    return NULL;
}

/* Frees it; NULL is allowed. */
static void sharing_destroy(struct sharing_table *sharing)
{
    if (!sharing)
        return;
    free(sharing->requested);
    bw_number_set_free(&sharing->shared);
    bw_number_set_free(&sharing->split);
    bw_number_set_free(&sharing->lost_blocks);
    free(sharing->lost);
    free(sharing);
}

/* Whether that was so much that nothing more needs to be requested for: all will be known. */
static bool sharing_is_full(const struct sharing_table *sharing)
{
    return sharing->all;
}

/* Makes it so. */
static void request_all(struct sharing_table *sharing)
{
    sharing->all = true;
    sharing->requested_count = 0;
}

/* Requests an address, unless it is the address of a tree block in memory. */
static struct bw_error *request_address(struct sharing_table *sharing, uint64_t bytenr)
{
    const size_t count = sharing->requested_count;
    if (sharing->all || bytenr >= BW_MEMORY_START ||
        (count && sharing->requested[count - 1] == bytenr))
        return NULL;
    if (!BW_ARRAY_RESERVE(sharing->requested, count, sharing->requested_capacity))
        return bw_error_no_memory();
    sharing->requested[sharing->requested_count++] = bytenr;
    if (sharing->requested_before + sharing->requested_count == MOST_REQUESTS)
        request_all(sharing);
    return NULL;
}

static bool is_lost(const struct sharing_table *sharing, uint64_t bytenr)
{
    const struct lost_range *lost = sharing->lost;
    const size_t at = BW_FIRST_INDEX(i, sharing->lost_count, lost[i].last >= bytenr);
    return at < sharing->lost_count && lost[at].first <= bytenr;
}

/* The sharing of a requested address. */
static enum sharing_kind sharing_of(const struct sharing_table *sharing, uint64_t bytenr)
{
    const uint64_t sector = bytenr / BW_MIN_SECTORSIZE;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&sharing->shared, sector))
        return SHARED;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&sharing->split, sector))
        return SPLIT;
    return sharing->lost_count && is_lost(sharing, bytenr) ? UNKNOWN_SHARING : NOT_SHARED;
}

/* Reading. */

/* Whether any address from `first` to `last`, both included, was requested for. */
static bool has_asked(const struct sharing_table *sharing, uint64_t first, uint64_t last)
{
    const size_t at = BW_FIRST_INDEX(i, sharing->requested_count, sharing->requested[i] >= first);
    return sharing->all || (at < sharing->requested_count && sharing->requested[at] <= last);
}

static bool may_have_addresses(void *context, const struct bw_block_pointer *pointer)
{
    return has_asked(context, pointer->expectation.first_key.objectid,
                     pointer->expectation.end_key.objectid);
}

/* The references of an extent come right after its item: the next extent ends them. */
static struct bw_error *end_extent(struct sharing_table *sharing)
{
    if (sharing->extent.references < 2)
        return NULL;
    bool is_new;
    sharing->extent.references = 0;
    return bw_number_set_add(sharing->records > 1 ? &sharing->shared : &sharing->split,
                             sharing->extent.bytenr / BW_MIN_SECTORSIZE, &is_new)
               ? NULL
               : bw_error_no_memory();
}

static struct bw_error *on_extent_item(struct sharing_table *sharing, const struct bw_item *item)
{
    struct bw_reference reference;
    struct bw_extent_entry extent;
    if (sharing->extent.references && bw_extent_keyed(&sharing->extent, item, &reference)) {
        sharing->records += reference.bytenr == sharing->extent.bytenr;
        return NULL;
    }
    if (!bw_extent_entry_decode(sharing->fs, item, &extent))
        return NULL;
    BW_TRY(end_extent(sharing));
    if (extent.references < 2 || extent.bytenr % BW_MIN_SECTORSIZE ||
        !has_asked(sharing, extent.bytenr, extent.bytenr))
        return NULL;
    sharing->records = 0;
    sharing->extent = extent;
    while (bw_extent_reference_step(&sharing->extent, &reference))
        sharing->records += reference.kind != 0;
    return NULL;
}

static struct bw_error *on_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    uint32_t slot = 0;
    while (bw_leaf_next(leaf, &slot, &item))
        BW_TRY(on_extent_item(context, &item));
    return NULL;
}

static struct bw_error *on_lost_block(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    struct sharing_table *sharing = context;
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    bool is_new;
    bw_fs_report_lost(sharing->fs, pointer->bytenr, error);
    if (!bw_number_set_add(&sharing->lost_blocks, pointer->bytenr, &is_new))
        return bw_error_no_memory();
    if (!is_new)
        return NULL;
    if (!BW_ARRAY_RESERVE(sharing->lost, sharing->lost_count, sharing->lost_capacity))
        return bw_error_no_memory();
    sharing->lost[sharing->lost_count++] =
        (struct lost_range){keys->first_key.objectid, keys->end_key.objectid};
    return NULL;
}

static int by_last(const void *a, const void *b)
{
    const struct lost_range *one = a, *other = b;
    return bw_compare(one->last, other->last);
}

/* Reads the extent tree; lost blocks are reported. Call it again after more requests.
 * BW_ERROR_CORRUPT if there is no extent tree. */
static struct bw_error *sharing_read(struct sharing_table *sharing)
{
    struct bw_fs *fs = sharing->fs;
    struct bw_scan scan = {BW_SCAN_ALL,     .adopt = true,         .wants = may_have_addresses,
                           .leaf = on_leaf, .lost = on_lost_block, .context = sharing};
    if (!sharing->all && !sharing->requested_count)
        return NULL;
    if (!fs->extent_tree.id)
        return bw_error_create(BW_ERROR_CORRUPT, "the extent tree is lost");
    if (sharing->requested_count)
        qsort(sharing->requested, sharing->requested_count, sizeof *sharing->requested,
              bw_compare_first);
    BW_TRY(bw_tree_scan(&fs->reader, &fs->extent_tree, &scan));
    if (sharing->lost_count)
        qsort(sharing->lost, sharing->lost_count, sizeof *sharing->lost, by_last);
    sharing->requested_before += sharing->requested_count;
    sharing->requested_count = 0;
    return end_extent(sharing);
}

/* Reports how many blocks of the extent tree were lost. */
static void sharing_report(const struct sharing_table *sharing)
{
    if (sharing->lost_count)
        bw_fs_report(
            sharing->fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_CORRUPT,
                            "sizes are lower bounds: %zu tree block%s of the extent tree lost",
                            sharing->lost_count, bw_plural(sharing->lost_count)));
}

/*
 * The space of files, batch by batch of the list. The extents of a batch are read twice: first to
 * find the addresses to look up in the extent tree (unless there are so many that all of it is
 * read, once), then to add up the sums of each file. The sums of a directory are kept until it
 * ends.
 */

/* Sums of a file, or of all files in a directory. */
struct sums {
    uint64_t total, exclusive, shared, files;
    uint64_t pieces, disk;
    uint64_t shared_id; /* of a file: does not depend on the order of its ranges */
};

/* A part of an extent of which all references are from this file: if one of them is on a shared
 * way, all are shared. */
struct split_part {
    uint64_t extent;
    struct bw_range range;
    enum sharing_kind way;
};

struct du {
    struct bw_fs *fs;
    const struct bw_du_options *options;
    struct sharing_table *sharing;
    uint64_t file_count;                 /* until all of the extent tree is read */
    bool sharing_unknown, has_replayed;  /* has_replayed: a tree that the log has changed */
    enum sharing_kind way[BW_MAX_LEVEL]; /* by level: of the present block and those above it */
    struct bw_extent_scan scan;
    struct sums *sums; /* for each file of the batch */
    size_t sums_room;
    struct sums *around; /* of the directories that contain the current file; the start is first */
    size_t depth, depth_capacity;
    struct bw_file_place place;
    struct bw_range_set ranges;
    const struct bw_wanted_file *file; /* that the parts and extents are of */
    struct split_part *parts;
    size_t part_count, part_capacity;
    struct bw_extent_sums extents;
};

/* The addresses to look up. */

static uint64_t address_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

static struct bw_error *ask(struct du *du, uint64_t bytenr)
{
    BW_TRY(request_address(du->sharing, bytenr));
    return sharing_is_full(du->sharing) ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
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

static struct bw_error *request_addresses(struct du *du, const struct bw_file_batch *batch)
{
    struct bw_extent_scan scan = {.fs = du->fs,
                                  .files = batch->wanted,
                                  .count = batch->wanted_count,
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

static struct bw_error *read_sharing(struct du *du, const struct bw_file_batch *batch)
{
    if (du->sharing_unknown || sharing_is_full(du->sharing))
        return NULL;
    du->file_count += batch->wanted_count;
    if (du->file_count >= MOST_REQUESTS)
        request_all(du->sharing);
    else
        BW_TRY(request_addresses(du, batch));
    struct bw_error *error = sharing_read(du->sharing);
    if (error && error->code != BW_ERROR_CORRUPT)
        return error;
    du->sharing_unknown = error;
    if (error)
        bw_fs_report(du->fs, BW_DAMAGE, bw_error_prefix(error, "shared space is unknown"));
    return NULL;
}

/* Adding up. */

static struct bw_error *add_range(struct du *du, const struct bw_wanted_file *file,
                                  const struct bw_range *range, enum sharing_kind kind)
{
    struct sums *sums = &du->sums[file->number];
    if (kind == NOT_SHARED)
        sums->exclusive += range->length;
    if (kind != SHARED)
        return NULL;
    sums->shared += range->length;
    sums->shared_id += bw_hash_address(range->length, range->address);
    const uint64_t room = UINT64_MAX - range->address;
    const uint64_t length = range->length < room ? range->length : room;
    return bw_range_set_add(&du->ranges, range->address, range->address + length)
               ? NULL
               : bw_error_no_memory();
}

/* Shared extents come first. */
static int by_extent(const void *a, const void *b)
{
    const struct split_part *one = a, *other = b;
    if (one->extent != other->extent)
        return one->extent < other->extent ? -1 : 1;
    return (int)other->way - (int)one->way;
}

static struct bw_error *settle_parts(struct du *du)
{
    enum sharing_kind kind = NOT_SHARED;
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

/* The file that the parts and extents are of is at its end. */
static struct bw_error *settle(struct du *du)
{
    struct sums *sums = du->file ? &du->sums[du->file->number] : NULL;
    if (!sums)
        return NULL; /* there are no parts, either */
    bw_extent_sums_end(&du->extents);
    sums->pieces = du->extents.extent_count;
    sums->disk = du->extents.disk;
    return settle_parts(du);
}

static struct bw_error *add_part(struct du *du, uint64_t extent, const struct bw_range *range)
{
    if (!BW_ARRAY_RESERVE(du->parts, du->part_count, du->part_capacity))
        return bw_error_no_memory();
    du->parts[du->part_count++] = (struct split_part){extent, *range, du->way[0]};
    return NULL;
}

static enum sharing_kind greater(enum sharing_kind one, enum sharing_kind other)
{
    return one > other ? one : other;
}

static struct bw_error *on_block(void *context, const struct bw_tree *tree,
                                 const struct bw_node *node)
{
    struct du *du = context;
    const uint64_t address = address_of(node);
    const enum sharing_kind own = sharing_of(du->sharing, address);
    const enum sharing_kind above =
        node->level < tree->root.level ? du->way[node->level + 1] : NOT_SHARED;
    du->way[node->level] = greater(above, own == SPLIT ? SHARED : own);
    du->has_replayed |= address >= BW_MEMORY_START;
    return NULL;
}

static struct bw_error *on_extent(void *context, const struct bw_wanted_file *file, uint64_t offset,
                                  const struct bw_file_extent *extent)
{
    struct du *du = context;
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    /* As in FIEMAP: the end of a compressed extent is unknown. */
    const struct bw_range range = {extent->disk_bytenr + (plain ? extent->offset : 0),
                                   extent->num_bytes};
    if (!extent->disk_bytenr)
        return NULL;
    if (du->file != file) {
        BW_TRY(settle(du));
        du->file = file;
        bw_extent_sums_begin(&du->extents);
    }
    if (!bw_extent_sums_add(&du->extents, offset, extent))
        return bw_error_no_memory();
    du->sums[file->number].total += extent->num_bytes;
    if (du->sharing_unknown)
        return NULL;
    const enum sharing_kind kind = sharing_of(du->sharing, extent->disk_bytenr);
    return kind == SPLIT ? add_part(du, extent->disk_bytenr, &range)
                         : add_range(du, file, &range, greater(kind, du->way[0]));
}

static struct bw_error *add_up(struct du *du, const struct bw_file_batch *batch)
{
    if (batch->count > du->sums_room) {
        free(du->sums);
        du->sums = malloc(batch->count * sizeof *du->sums);
        du->sums_room = du->sums ? batch->count : 0;
    }
    if (!du->sums)
        return bw_error_no_memory();
    memset(du->sums, 0, batch->count * sizeof *du->sums);
    du->scan.files = batch->wanted;
    du->scan.count = batch->wanted_count;
    du->file = NULL;
    BW_TRY(bw_extent_scan_run(&du->scan));
    return settle(du);
}

/* Replaying changes references, too, but not in the extent tree that is read here. */
static void report_replayed(const struct du *du)
{
    if (du->has_replayed && !du->sharing_unknown)
        bw_fs_report(du->fs, BW_WARNING,
                     bw_error_create(
                         BW_ERROR_CORRUPT,
                         "the log was replayed: data that it shares may be counted as exclusive"));
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
                      : is_directory  ? bw_range_set_total(&du->ranges)
                                      : sums->shared,
        .sharing_known = !du->sharing_unknown,
        .shared_id = is_directory ? 0 : sums->shared_id,
        .extent_count = sums->pieces,
        .disk = sums->disk,
    };
    if (entry.depth < options->mindepth ||
        (options->has_maxdepth && entry.depth > options->maxdepth))
        return NULL;
    if (options->selection && !sums->files && entry.depth)
        return NULL;
    return options->visit(options->context, &entry);
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
    above->pieces += sums->pieces;
    above->disk += sums->disk;
    return NULL;
}

static struct bw_error *handle_step(struct du *du, const struct bw_file_batch *batch, size_t number)
{
    const struct bw_listed_file *file = &batch->files[number];
    BW_TRY(bw_file_place_step(&du->place, batch, file));
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

static struct bw_error *on_batch(void *context, const struct bw_file_batch *batch)
{
    struct du *du = context;
    BW_TRY(read_sharing(du, batch));
    BW_TRY(add_up(du, batch));
    for (size_t i = 0; i < batch->count; i++)
        BW_TRY(handle_step(du, batch, i));
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
        .fs = du->fs, .block = on_block, .extent = on_extent, .context = du};
    BW_TRY(sharing_create(du->fs, &du->sharing));
    struct bw_error *error = bw_file_list(du->fs, &list, on_batch, du);
    sharing_report(du->sharing);
    bw_extent_scan_end(&du->scan);
    if (!error)
        report_replayed(du);
    return error;
}

struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *given)
{
    struct bw_du_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.visit)
        return bw_error_create(BW_ERROR_USAGE, "no callback was given");
    struct du du = {.fs = fs, .options = &options, .sharing_unknown = options.sizes_only};
    struct bw_error *error = count(&du);
    bw_file_place_free(&du.place);
    sharing_destroy(du.sharing);
    bw_range_set_free(&du.ranges);
    free(du.parts);
    bw_extent_sums_free(&du.extents);
    free(du.around);
    free(du.sums);
    return error;
}
