/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space of files, and which extents of them are shared. */
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
#include "data/extent_sums.h"
#include "data/references.h"
#include "fs/fs.h"

/*
 * Whether extents and tree blocks are shared, according to the extent tree. Addresses are requested
 * first, then the extent tree is read at these addresses. If there are many, the whole tree is
 * read, once.
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

struct sharing_table {
    struct bw_fs *fs;
    struct bw_numbers requested; /* since the tree was read; ascending while it is */
    size_t requested_before;
    struct bw_number_set shared, split; /* addresses in units of the smallest sector */
    struct bw_extent_entry extent; /* that the last extent item was for, with several references */
    uint64_t records;              /* of references to it so far */
    struct bw_range_set lost;      /* addresses of extents whose items are lost */
    struct bw_number_set lost_blocks;
    size_t lost_count; /* of blocks */
    bool all;
};

static void free_table(struct sharing_table *table)
{
    bw_numbers_free(&table->requested);
    bw_number_set_free(&table->shared);
    bw_number_set_free(&table->split);
    bw_number_set_free(&table->lost_blocks);
    bw_range_set_free(&table->lost);
}

/* Whether that was so much that nothing more needs to be requested for: all will be known. */
static bool is_full(const struct sharing_table *table)
{
    return table->all;
}

/* Makes it so. */
static void request_all(struct sharing_table *table)
{
    table->all = true;
    table->requested.count = 0;
}

/* Requests an address, unless it is the address of a tree block in memory. */
static struct bw_error *request_address(struct sharing_table *table, uint64_t bytenr)
{
    const size_t count = table->requested.count;
    if (table->all || bytenr >= BW_MEMORY_START ||
        (count && table->requested.items[count - 1] == bytenr))
        return NULL;
    BW_TRY(bw_numbers_push(&table->requested, bytenr));
    if (table->requested_before + table->requested.count == MOST_REQUESTS)
        request_all(table);
    return NULL;
}

static bool is_lost(const struct sharing_table *table, uint64_t bytenr)
{
    uint64_t end = UINT64_MAX;
    return bw_range_set_has(&table->lost, bytenr, &end);
}

/* The sharing of a requested address. */
static enum sharing_kind sharing_of(const struct sharing_table *table, uint64_t bytenr)
{
    const uint64_t sector = bytenr / BW_MIN_SECTORSIZE;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&table->shared, sector))
        return SHARED;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&table->split, sector))
        return SPLIT;
    return is_lost(table, bytenr) ? UNKNOWN_SHARING : NOT_SHARED;
}

/* Reading. */

/* Whether any address from `first` to `last`, both included, was requested for. */
static bool has_asked(const struct sharing_table *table, uint64_t first, uint64_t last)
{
    const size_t at = BW_FIRST_INDEX(i, table->requested.count, table->requested.items[i] >= first);
    return table->all || (at < table->requested.count && table->requested.items[at] <= last);
}

static bool may_have_addresses(void *context, const struct bw_block_pointer *pointer)
{
    return has_asked(context, pointer->expectation.first_key.objectid,
                     pointer->expectation.end_key.objectid);
}

/* The references of an extent come right after its item: the next extent ends them. */
static struct bw_error *end_extent(struct sharing_table *table)
{
    if (table->extent.references < 2)
        return NULL;
    bool is_new;
    table->extent.references = 0;
    return bw_number_set_insert(table->records > 1 ? &table->shared : &table->split,
                                table->extent.bytenr / BW_MIN_SECTORSIZE, &is_new);
}

static struct bw_error *on_extent_item(struct sharing_table *table, const struct bw_item *item)
{
    struct bw_reference reference;
    struct bw_extent_entry extent;
    if (table->extent.references && bw_extent_keyed(&table->extent, item, &reference)) {
        table->records += reference.bytenr == table->extent.bytenr;
        return NULL;
    }
    if (!bw_extent_entry_decode(table->fs, item, &extent))
        return NULL;
    BW_TRY(end_extent(table));
    if (extent.references < 2 || extent.bytenr % BW_MIN_SECTORSIZE ||
        !has_asked(table, extent.bytenr, extent.bytenr))
        return NULL;
    table->records = 0;
    table->extent = extent;
    while (bw_extent_reference_step(&table->extent, &reference))
        table->records += reference.kind != 0;
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
    struct sharing_table *table = context;
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    bool is_new;
    bw_fs_report_lost(table->fs, pointer->bytenr, error);
    BW_TRY(bw_number_set_insert(&table->lost_blocks, pointer->bytenr, &is_new));
    if (!is_new)
        return NULL;
    table->lost_count++;
    const uint64_t last = keys->end_key.objectid; /* it may have items of this extent, too */
    return bw_range_set_insert(&table->lost, keys->first_key.objectid, last + (last != UINT64_MAX));
}

/* Reads the extent tree; lost blocks are reported. Call it again after more requests.
 * BW_ERROR_CORRUPT if there is no extent tree. */
static struct bw_error *read_table(struct sharing_table *table)
{
    struct bw_fs *fs = table->fs;
    struct bw_scan scan = {BW_SCAN_ALL,     .adopt = true,         .wants = may_have_addresses,
                           .leaf = on_leaf, .lost = on_lost_block, .context = table};
    if (!table->all && !table->requested.count)
        return NULL;
    if (!fs->extent_tree.id)
        return bw_error_create(BW_ERROR_CORRUPT, "the extent tree is lost");
    if (table->requested.count)
        qsort(table->requested.items, table->requested.count, sizeof *table->requested.items,
              bw_compare_first);
    BW_TRY(bw_tree_scan(&fs->reader, &fs->extent_tree, &scan));
    bw_range_set_join(&table->lost);
    table->requested_before += table->requested.count;
    table->requested.count = 0;
    return end_extent(table);
}

/* Reports how many blocks of the extent tree were lost. */
static void report_lost_blocks(const struct sharing_table *table)
{
    if (table->lost_count)
        bw_fs_report(
            table->fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_CORRUPT,
                            "sizes are lower bounds: %zu tree block%s of the extent tree lost",
                            table->lost_count, bw_plural(table->lost_count)));
}

/*
 * The space of files, batch by batch. The extents of a batch are read twice: first to find the
 * addresses to look up in the extent tree (unless there are so many that the whole tree is read,
 * once), then to add up the sums of each file.
 */

/* A part of an extent of which all references are from this file: if one of them is on a shared
 * way, all are shared. */
struct split_part {
    uint64_t extent;
    struct bw_range range;
    enum sharing_kind way;
};

BW_VECTOR(split_parts, struct split_part);

struct bw_sharing {
    pthread_mutex_t lock; /* of everything else */
    struct bw_fs *fs;
    struct sharing_table table;
    uint64_t file_count; /* until all of the extent tree is read */
    atomic_bool unknown;
    bool has_replayed;                   /* it has met a tree that the log has changed */
    enum sharing_kind way[BW_MAX_LEVEL]; /* by level: of the present block and those above it */
    struct bw_extent_scan scan;
    struct bw_file_space *space; /* for each file of the batch */
    struct bw_range_set *ranges;
    const struct bw_wanted_file *file; /* that the parts and extents are of */
    struct split_parts parts;
    struct bw_extent_sums extents;
};

/* The addresses to look up. */

static uint64_t address_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

static struct bw_error *request_extent(struct bw_sharing *sharing, uint64_t bytenr)
{
    BW_TRY(request_address(&sharing->table, bytenr));
    return is_full(&sharing->table) ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static struct bw_error *request_block(void *context, const struct bw_tree *tree,
                                      const struct bw_node *node)
{
    (void)tree;
    return request_extent(context, address_of(node));
}

static struct bw_error *request_file_extent(void *context, const struct bw_wanted_file *file,
                                            uint64_t offset, const struct bw_file_extent *extent)
{
    (void)file;
    (void)offset;
    return extent->disk_bytenr ? request_extent(context, extent->disk_bytenr) : NULL;
}

static struct bw_error *request_addresses(struct bw_sharing *sharing,
                                          const struct bw_wanted_file *files, size_t count)
{
    struct bw_extent_scan scan = {.fs = sharing->fs,
                                  .files = files,
                                  .count = count,
                                  .quiet = true,
                                  .block = request_block,
                                  .extent = request_file_extent,
                                  .context = sharing};
    struct bw_error *error = bw_extent_scan_run(&scan);
    bw_extent_scan_end(&scan);
    if (error && error->code != BW_ERROR_STOPPED)
        return error;
    bw_error_free(error);
    return NULL;
}

static struct bw_error *read_sharing(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                                     size_t count)
{
    if (sharing->unknown || is_full(&sharing->table))
        return NULL;
    sharing->file_count += count;
    if (sharing->file_count >= MOST_REQUESTS)
        request_all(&sharing->table);
    else
        BW_TRY(request_addresses(sharing, files, count));
    struct bw_error *error = read_table(&sharing->table);
    if (error && error->code != BW_ERROR_CORRUPT)
        return error;
    sharing->unknown = error;
    if (error)
        bw_fs_report(sharing->fs, BW_DAMAGE, bw_error_prefix(error, "shared space is unknown"));
    return NULL;
}

/* Adding up. */

static struct bw_error *add_range(struct bw_sharing *sharing, const struct bw_wanted_file *file,
                                  const struct bw_range *range, enum sharing_kind kind)
{
    struct bw_file_space *space = &sharing->space[file->number];
    if (kind == NOT_SHARED)
        space->exclusive += range->length;
    if (kind != SHARED)
        return NULL;
    space->shared += range->length;
    space->shared_id += bw_hash_address(range->length, range->address);
    if (!sharing->ranges)
        return NULL;
    const uint64_t room = UINT64_MAX - range->address;
    const uint64_t length = range->length < room ? range->length : room;
    return bw_range_set_insert(sharing->ranges, range->address, range->address + length);
}

/* Shared extents come first. */
static int by_extent(const void *a, const void *b)
{
    const struct split_part *one = a, *other = b;
    if (one->extent != other->extent)
        return one->extent < other->extent ? -1 : 1;
    return (int)other->way - (int)one->way;
}

static struct bw_error *add_split_parts(struct bw_sharing *sharing)
{
    enum sharing_kind kind = NOT_SHARED;
    if (sharing->parts.count)
        qsort(sharing->parts.items, sharing->parts.count, sizeof *sharing->parts.items, by_extent);
    for (size_t i = 0; i < sharing->parts.count; i++) {
        const struct split_part *part = &sharing->parts.items[i];
        if (!i || part->extent != sharing->parts.items[i - 1].extent)
            kind = part->way;
        BW_TRY(add_range(sharing, sharing->file, &part->range, kind));
    }
    sharing->parts.count = 0;
    return NULL;
}

/* The file that the parts and extents are of is at its end. */
static struct bw_error *end_file(struct bw_sharing *sharing)
{
    struct bw_file_space *space = sharing->file ? &sharing->space[sharing->file->number] : NULL;
    if (!space)
        return NULL; /* there are no parts, either */
    bw_extent_sums_end(&sharing->extents);
    space->extent_count = sharing->extents.extent_count;
    space->disk = sharing->extents.disk;
    return add_split_parts(sharing);
}

static struct bw_error *add_part(struct bw_sharing *sharing, uint64_t extent,
                                 const struct bw_range *range)
{
    return split_parts_push(&sharing->parts, (struct split_part){extent, *range, sharing->way[0]});
}

static enum sharing_kind greater(enum sharing_kind one, enum sharing_kind other)
{
    return one > other ? one : other;
}

static struct bw_error *on_block(void *context, const struct bw_tree *tree,
                                 const struct bw_node *node)
{
    struct bw_sharing *sharing = context;
    const uint64_t address = address_of(node);
    const enum sharing_kind own = sharing_of(&sharing->table, address);
    const enum sharing_kind above =
        node->level < tree->root.level ? sharing->way[node->level + 1] : NOT_SHARED;
    sharing->way[node->level] = greater(above, own == SPLIT ? SHARED : own);
    sharing->has_replayed |= address >= BW_MEMORY_START;
    return NULL;
}

static struct bw_error *on_extent(void *context, const struct bw_wanted_file *file, uint64_t offset,
                                  const struct bw_file_extent *extent)
{
    struct bw_sharing *sharing = context;
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    /* As in FIEMAP: the end of a compressed extent is unknown. */
    const struct bw_range range = {extent->disk_bytenr + (plain ? extent->offset : 0),
                                   extent->num_bytes};
    if (!extent->disk_bytenr)
        return NULL;
    if (sharing->file != file) {
        BW_TRY(end_file(sharing));
        sharing->file = file;
        bw_extent_sums_begin(&sharing->extents);
    }
    if (!bw_extent_sums_add(&sharing->extents, offset, extent))
        return bw_error_no_memory();
    sharing->space[file->number].total += extent->num_bytes;
    if (sharing->unknown)
        return NULL;
    const enum sharing_kind kind = sharing_of(&sharing->table, extent->disk_bytenr);
    return kind == SPLIT ? add_part(sharing, extent->disk_bytenr, &range)
                         : add_range(sharing, file, &range, greater(kind, sharing->way[0]));
}

static struct bw_error *add_up(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                               size_t count)
{
    sharing->scan.files = files;
    sharing->scan.count = count;
    sharing->file = NULL;
    BW_TRY(bw_extent_scan_run(&sharing->scan));
    return end_file(sharing);
}

/* Replaying changes references, too, but not in the extent tree that is read here. */
static void report_replayed(const struct bw_sharing *sharing)
{
    if (sharing->has_replayed && !sharing->unknown)
        bw_fs_report(sharing->fs, BW_WARNING,
                     bw_error_create(
                         BW_ERROR_CORRUPT,
                         "the log was replayed: data that it shares may be counted as exclusive"));
}

struct bw_error *bw_sharing_create(struct bw_fs *fs, bool sizes_only, struct bw_range_set *ranges,
                                   struct bw_sharing **result)
{
    struct bw_sharing *sharing = *result = calloc(1, sizeof *sharing);
    if (!sharing)
        return bw_error_no_memory();
    pthread_mutex_init(&sharing->lock, NULL);
    sharing->fs = sharing->table.fs = fs;
    sharing->unknown = sizes_only;
    sharing->ranges = ranges;
    sharing->scan = (struct bw_extent_scan){
        .fs = fs, .block = on_block, .extent = on_extent, .context = sharing};
    return NULL;
}

void bw_sharing_destroy(struct bw_sharing *sharing)
{
    if (!sharing)
        return;
    sharing->scan.quiet = true;
    bw_extent_scan_end(&sharing->scan);
    pthread_mutex_destroy(&sharing->lock);
    free_table(&sharing->table);
    split_parts_free(&sharing->parts);
    bw_extent_sums_free(&sharing->extents);
    free(sharing);
}

struct bw_error *bw_sharing_compute(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                                    size_t count, struct bw_file_space *space, size_t room)
{
    memset(space, 0, room * sizeof *space);
    pthread_mutex_lock(&sharing->lock);
    sharing->space = space;
    struct bw_error *error = read_sharing(sharing, files, count);
    if (!error)
        error = add_up(sharing, files, count);
    pthread_mutex_unlock(&sharing->lock);
    return error;
}

bool bw_sharing_is_known(const struct bw_sharing *sharing)
{
    return !sharing->unknown;
}

void bw_sharing_report(struct bw_sharing *sharing)
{
    report_lost_blocks(&sharing->table);
    bw_extent_scan_end(&sharing->scan);
    report_replayed(sharing);
}
