/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space of files, batch by batch, and how much of it other files or subvolumes share.
 *
 * An extent is shared if the extent tree has several references to it, or if a tree block on the
 * way from the root to its item is shared. As in the kernel's btrfs_is_data_extent_shared(), the
 * number of reference records counts, not the number of references: one EXTENT_DATA_REF with a
 * count of 2 is one extent of one file that was cut into two items. Such an extent is called split.
 *
 * The extents of a batch are read twice. The first scan requests the addresses of the extents and
 * of the tree blocks above them, and the extent tree is read at these addresses. If there are many,
 * the whole extent tree is read instead, once, and later batches need no first scan. Only shared
 * and split addresses are remembered, by a bit for each sector.
 *
 * The second scan adds up each file. On the way down, inherited[level] is the greatest sharing
 * of the block of that level and of those above it; all items of a leaf inherit inherited[0].
 * If a part of a split extent is below a shared block, all its parts are shared. So parts of split
 * extents wait until the end of their file.
 */
#include "data/sharing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/hash_mix.h"
#include "base/human.h"
#include "base/number_set.h"
#include "base/range_set.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/references.h"
#include "fs/fs.h"

/* If so many addresses are requested, all of the extent tree is read. */
enum { MOST_REQUESTS = 1 << 18 };

/* The sharing of an extent or a tree block; of several blocks on a path, the greatest value counts.
 */
enum sharing_kind {
    NOT_SHARED,
    SPLIT,           /* one reference, from several items of the same file */
    UNKNOWN_SHARING, /* it would be in a lost part of the extent tree */
    SHARED,          /* several references */
};

/* A part of a split extent, and the sharing of the blocks above it. */
struct split_part {
    uint64_t extent;
    struct bw_range range;
    enum sharing_kind inherited;
};

BW_VECTOR(split_parts, struct split_part);

struct bw_sharing {
    pthread_mutex_t lock; /* of everything else */
    struct bw_fs *fs;
    struct bw_range_set *ranges; /* receives shared ranges; may be NULL */
    atomic_bool unknown;

    /* The part of the extent tree that was read. */
    struct bw_numbers requested; /* addresses since it was read; ascending while it is */
    size_t requested_before;
    uint64_t file_count;                /* of all batches */
    bool all;                           /* everything was requested */
    struct bw_number_set shared, split; /* addresses in units of the smallest sector */
    struct bw_extent_entry extent;      /* of the last extent item, if it has several references */
    uint64_t records;                   /* of references to it so far */
    struct bw_range_set lost;           /* addresses of extents whose items are lost */
    struct bw_number_set lost_blocks;
    size_t lost_count; /* of blocks */

    /* The batch that is being added up. */
    struct bw_extent_scan scan;
    struct bw_file_space *space;               /* by number of the file */
    enum sharing_kind inherited[BW_MAX_LEVEL]; /* by level, from the present blocks */
    bool has_replayed;                         /* it has met a tree that the log has changed */
    const struct bw_wanted_file *file;         /* that the parts and sums are of */
    struct split_parts parts;
    struct bw_extent_sums sums;
};

/* The first scan. */

static uint64_t address_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

/* Requests the addresses of the extents of files, and of the tree blocks above them, but not of
 * those in memory. If there are too many, all are requested. */
static struct bw_error *request_addresses(struct bw_sharing *sharing,
                                          const struct bw_wanted_file *files, size_t count)
{
    struct bw_numbers *requested = &sharing->requested;
    struct bw_extent_scan scan = {.fs = sharing->fs,
                                  .quiet = true, /* the second scan reports them */
                                  .visits_blocks = true};
    struct bw_error *error = NULL;
    bw_extent_scan_begin(&scan, files, count);
    while (!error && !sharing->all && bw_extent_scan_next(&scan)) {
        uint64_t bytenr = scan.extent.disk_bytenr; /* 0: a hole */
        if (!scan.file)
            bytenr = address_of(&scan.blocks.node);
        const bool is_last = requested->count && requested->items[requested->count - 1] == bytenr;
        if (!bytenr || bytenr >= BW_MEMORY_START || is_last)
            continue;
        error = bw_numbers_push(requested, bytenr);
        sharing->all = sharing->requested_before + requested->count == MOST_REQUESTS;
    }
    error = bw_error_first(error, bw_extent_scan_error(&scan));
    bw_extent_scan_end(&scan);
    return error;
}

/* Reading the extent tree. */

/* Whether any address from `first` to `last`, both included, was requested. */
static bool is_requested(const struct bw_sharing *sharing, uint64_t first, uint64_t last)
{
    const struct bw_numbers *requested = &sharing->requested;
    const size_t at = BW_FIRST_INDEX(i, requested->count, requested->items[i] >= first);
    return sharing->all || (at < requested->count && requested->items[at] <= last);
}

/* The references of an extent come right after its item: the next extent ends them. */
static struct bw_error *end_extent(struct bw_sharing *sharing)
{
    if (sharing->extent.references < 2)
        return NULL;
    bool is_new;
    sharing->extent.references = 0;
    return bw_number_set_insert(sharing->records > 1 ? &sharing->shared : &sharing->split,
                                sharing->extent.bytenr / BW_MIN_SECTORSIZE, &is_new);
}

static struct bw_error *on_extent_item(struct bw_sharing *sharing, const struct bw_item *item)
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
        !is_requested(sharing, extent.bytenr, extent.bytenr))
        return NULL;
    sharing->records = 0;
    sharing->extent = extent;
    while (bw_extent_reference_step(&sharing->extent, &reference))
        sharing->records += reference.kind != 0;
    return NULL;
}

static struct bw_error *read_extent_tree(struct bw_sharing *sharing)
{
    struct bw_fs *fs = sharing->fs;
    struct bw_numbers *requested = &sharing->requested;
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .pointers = true};
    if (!fs->extent_tree.id)
        return bw_error_create(BW_ERROR_CORRUPT, fs->is_stream ? "a send stream has no extent tree"
                                                               : "the extent tree is lost");
    bw_numbers_sort(requested, bw_compare_first);
    bw_block_scan_begin(&scan, &fs->reader, &fs->extent_tree);
    while (bw_block_scan_next(&scan)) {
        const uint64_t first = scan.pointer.expectation.first_key.objectid,
                       last = scan.pointer.expectation.end_key.objectid;
        struct bw_item item;
        bool is_new = false;
        if (scan.step == BW_SCAN_POINTER) {
            scan.selected = is_requested(sharing, first, last);
        } else if (scan.step == BW_SCAN_LEAF) {
            for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);)
                BW_TRY(on_extent_item(sharing, &item));
        } else {
            bw_fs_report_lost(fs, scan.pointer.bytenr, BW_TAKE(scan.error));
            BW_TRY(bw_number_set_insert(&sharing->lost_blocks, scan.pointer.bytenr, &is_new));
            sharing->lost_count += is_new;
        }
        if (is_new) /* the block may have items of the last extent, too */
            BW_TRY(bw_range_set_insert(&sharing->lost, first, last + (last != UINT64_MAX)));
    }
    BW_TRY(bw_block_scan_end(&scan));
    bw_range_set_join(&sharing->lost);
    sharing->requested_before += requested->count;
    requested->count = 0;
    return end_extent(sharing);
}

/* Finds which addresses of a batch are shared. */
static struct bw_error *find_shared(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                                    size_t count)
{
    if (sharing->unknown || sharing->all)
        return NULL;
    sharing->file_count += count;
    sharing->all = sharing->file_count >= MOST_REQUESTS;
    if (!sharing->all)
        BW_TRY(request_addresses(sharing, files, count));
    if (sharing->all)
        sharing->requested.count = 0;
    else if (!sharing->requested.count)
        return NULL;

    struct bw_error *error = read_extent_tree(sharing);
    if (error && error->code != BW_ERROR_CORRUPT)
        return error;
    sharing->unknown = error;
    if (error)
        bw_fs_report(sharing->fs, sharing->fs->is_stream ? BW_WARNING : BW_DAMAGE,
                     bw_error_prefix(error, "shared space is unknown"));
    return NULL;
}

/* The second scan. */

/* The sharing of a requested address; blocks above it do not count. */
static enum sharing_kind sharing_of(const struct bw_sharing *sharing, uint64_t bytenr)
{
    const uint64_t sector = bytenr / BW_MIN_SECTORSIZE;
    const bool is_aligned = bytenr % BW_MIN_SECTORSIZE == 0;
    uint64_t end = UINT64_MAX;
    if (is_aligned && bw_number_set_has(&sharing->shared, sector))
        return SHARED;
    if (is_aligned && bw_number_set_has(&sharing->split, sector))
        return SPLIT;
    return bw_range_set_has(&sharing->lost, bytenr, &end) ? UNKNOWN_SHARING : NOT_SHARED;
}

static enum sharing_kind greater(enum sharing_kind one, enum sharing_kind other)
{
    return one > other ? one : other;
}

static void enter_block(struct bw_sharing *sharing)
{
    const struct bw_node *node = &sharing->scan.blocks.node;
    const uint64_t address = address_of(node);
    enum sharing_kind own = sharing_of(sharing, address);
    if (own == SPLIT)
        own = SHARED;
    if (node->level < sharing->scan.blocks.tree.root.level)
        own = greater(own, sharing->inherited[node->level + 1]);
    sharing->inherited[node->level] = own;
    sharing->has_replayed |= address >= BW_MEMORY_START;
}

static struct bw_error *add_range(struct bw_sharing *sharing, const struct bw_range *range,
                                  enum sharing_kind kind)
{
    struct bw_file_space *space = &sharing->space[sharing->file->number];
    if (kind == NOT_SHARED)
        space->exclusive += range->length;
    if (kind != SHARED)
        return NULL;
    space->shared += range->length;
    space->shared_id += bw_hash_address(range->length, range->address);
    if (!sharing->ranges)
        return NULL;
    const uint64_t length = bw_min(range->length, UINT64_MAX - range->address);
    return bw_range_set_insert(sharing->ranges, range->address, range->address + length);
}

/* By extent; the part with the greatest sharing comes first. */
static int compare_parts(const void *a, const void *b)
{
    const struct split_part *one = a, *other = b;
    return BW_COMPARE_ALL(((uint64_t[]){one->extent, other->inherited}),
                          ((uint64_t[]){other->extent, one->inherited}));
}

/* Ends the file whose parts and sums are stored, if any. */
static struct bw_error *end_file(struct bw_sharing *sharing)
{
    const struct split_part *part = sharing->parts.items;
    const size_t count = sharing->parts.count;
    enum sharing_kind kind = NOT_SHARED;
    if (!sharing->file)
        return NULL;
    struct bw_file_space *space = &sharing->space[sharing->file->number];
    bw_extent_sums_end(&sharing->sums);
    space->extent_count = sharing->sums.extent_count;
    space->disk = sharing->sums.disk;

    if (count)
        qsort(sharing->parts.items, count, sizeof *part, compare_parts);
    for (size_t i = 0; i < count; i++, part++) {
        if (!i || part->extent != part[-1].extent)
            kind = part->inherited;
        BW_TRY(add_range(sharing, &part->range, kind));
    }
    sharing->parts.count = 0;
    return NULL;
}

static struct bw_error *add_extent(struct bw_sharing *sharing)
{
    const struct bw_wanted_file *file = sharing->scan.file;
    const struct bw_file_extent *extent = &sharing->scan.extent;
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    /* As in FIEMAP: the end of a compressed extent is unknown. */
    const struct bw_range range = {extent->disk_bytenr + (plain ? extent->offset : 0),
                                   extent->num_bytes};
    if (!extent->disk_bytenr)
        return NULL;
    if (sharing->file != file) {
        BW_TRY(end_file(sharing));
        sharing->file = file;
        bw_extent_sums_begin(&sharing->sums);
    }
    BW_TRY(bw_extent_sums_add(&sharing->sums, sharing->scan.offset, extent));
    sharing->space[file->number].total += extent->num_bytes;
    if (sharing->unknown)
        return NULL;
    const enum sharing_kind kind = sharing_of(sharing, extent->disk_bytenr);
    if (kind != SPLIT)
        return add_range(sharing, &range, greater(kind, sharing->inherited[0]));
    return split_parts_push(&sharing->parts,
                            (struct split_part){extent->disk_bytenr, range, sharing->inherited[0]});
}

struct bw_error *bw_sharing_create(struct bw_fs *fs, bool sizes_only, struct bw_range_set *ranges,
                                   struct bw_sharing **result)
{
    struct bw_sharing *sharing = *result = calloc(1, sizeof *sharing);
    if (!sharing)
        return bw_error_no_memory();
    pthread_mutex_init(&sharing->lock, NULL);
    sharing->fs = fs;
    sharing->unknown = sizes_only;
    sharing->ranges = ranges;
    sharing->scan = (struct bw_extent_scan){.fs = fs, .visits_blocks = true};
    return NULL;
}

void bw_sharing_destroy(struct bw_sharing *sharing)
{
    if (!sharing)
        return;
    sharing->scan.quiet = true;
    bw_extent_scan_end(&sharing->scan);
    pthread_mutex_destroy(&sharing->lock);
    bw_numbers_free(&sharing->requested);
    bw_number_set_free(&sharing->shared);
    bw_number_set_free(&sharing->split);
    bw_number_set_free(&sharing->lost_blocks);
    bw_range_set_free(&sharing->lost);
    split_parts_free(&sharing->parts);
    bw_extent_sums_free(&sharing->sums);
    free(sharing);
}

struct bw_error *bw_sharing_compute(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                                    size_t count, struct bw_file_space *space, size_t room)
{
    memset(space, 0, room * sizeof *space);
    pthread_mutex_lock(&sharing->lock);
    struct bw_error *error = find_shared(sharing, files, count);
    sharing->space = space;
    sharing->file = NULL;
    bw_extent_scan_begin(&sharing->scan, files, count);
    while (!error && bw_extent_scan_next(&sharing->scan)) {
        if (sharing->scan.file)
            error = add_extent(sharing);
        else
            enter_block(sharing);
    }
    error = bw_error_first(error, bw_extent_scan_error(&sharing->scan));
    if (!error)
        error = end_file(sharing);
    pthread_mutex_unlock(&sharing->lock);
    return error;
}

bool bw_sharing_is_known(const struct bw_sharing *sharing)
{
    return !sharing->unknown;
}

void bw_sharing_report(struct bw_sharing *sharing)
{
    if (sharing->lost_count)
        bw_fs_report_text(sharing->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "sizes are lower bounds: %zu tree block%s of the extent tree lost",
                          sharing->lost_count, bw_plural(sharing->lost_count));
    bw_extent_scan_end(&sharing->scan);
    /* Replaying changes references, too, but not in the extent tree that is read here. */
    if (sharing->has_replayed && !sharing->unknown)
        bw_fs_report_text(sharing->fs, BW_WARNING, BW_ERROR_CORRUPT,
                          "the log was replayed: data that it shares may be counted as exclusive");
}
