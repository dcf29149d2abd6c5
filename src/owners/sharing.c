/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the extent tree for references. As for the kernel's btrfs_is_data_extent_shared(), it is
 * not the number of references that counts but that of their records: one EXTENT_DATA_REF with a
 * count of 2 is one extent of one file that was cut into two items. Only what has more than one
 * reference is remembered, by a bit for each sector.
 */
#include "owners/sharing.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/number_set.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "owners/references.h"

/* Addresses of extents whose items are lost, both included. */
struct lost_range {
    uint64_t first, last;
};

struct bw_sharing {
    struct bw_fs *fs;
    uint64_t *asked; /* since the tree was read; ascending while it is */
    size_t asked_count, asked_capacity;
    size_t asked_before;
    struct bw_number_set shared, split; /* addresses in units of the smallest sector */
    struct bw_extent_entry extent; /* that the last extent item was for, with several references */
    uint64_t records;              /* of references to it so far */
    struct lost_range *lost;       /* ascending */
    size_t lost_count, lost_capacity;
    struct bw_number_set lost_blocks;
    bool all;
};

struct bw_error *bw_sharing_create(struct bw_fs *fs, struct bw_sharing **result)
{
    struct bw_sharing *sharing = *result = calloc(1, sizeof *sharing);
    if (!sharing)
        return bw_error_no_memory();
    sharing->fs = fs;
    return NULL;
}

void bw_sharing_destroy(struct bw_sharing *sharing)
{
    if (!sharing)
        return;
    free(sharing->asked);
    bw_number_set_free(&sharing->shared);
    bw_number_set_free(&sharing->split);
    bw_number_set_free(&sharing->lost_blocks);
    free(sharing->lost);
    free(sharing);
}

bool bw_sharing_is_full(const struct bw_sharing *sharing)
{
    return sharing->all;
}

void bw_sharing_ask_all(struct bw_sharing *sharing)
{
    sharing->all = true;
    sharing->asked_count = 0;
}

struct bw_error *bw_sharing_ask(struct bw_sharing *sharing, uint64_t bytenr)
{
    const size_t count = sharing->asked_count;
    if (sharing->all || bytenr >= BW_MEMORY_START || (count && sharing->asked[count - 1] == bytenr))
        return NULL;
    if (!BW_ARRAY_RESERVE(sharing->asked, count, sharing->asked_capacity))
        return bw_error_no_memory();
    sharing->asked[sharing->asked_count++] = bytenr;
    if (sharing->asked_before + sharing->asked_count == BW_SHARING_MOST)
        bw_sharing_ask_all(sharing);
    return NULL;
}

static bool is_lost(const struct bw_sharing *sharing, uint64_t bytenr)
{
    const struct lost_range *lost = sharing->lost;
    const size_t at = BW_FIRST_INDEX(i, sharing->lost_count, lost[i].last >= bytenr);
    return at < sharing->lost_count && lost[at].first <= bytenr;
}

enum bw_sharing_kind bw_sharing_of(const struct bw_sharing *sharing, uint64_t bytenr)
{
    const uint64_t sector = bytenr / BW_MIN_SECTORSIZE;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&sharing->shared, sector))
        return BW_SHARED;
    if (bytenr % BW_MIN_SECTORSIZE == 0 && bw_number_set_has(&sharing->split, sector))
        return BW_SPLIT;
    return sharing->lost_count && is_lost(sharing, bytenr) ? BW_UNKNOWN_SHARING : BW_NOT_SHARED;
}

/* Reading. */

/* Whether any address from `first` to `last`, both included, was asked for. */
static bool has_asked(const struct bw_sharing *sharing, uint64_t first, uint64_t last)
{
    const size_t at = BW_FIRST_INDEX(i, sharing->asked_count, sharing->asked[i] >= first);
    return sharing->all || (at < sharing->asked_count && sharing->asked[at] <= last);
}

static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    return has_asked(context, pointer->expectation.first_key.objectid,
                     pointer->expectation.end_key.objectid);
}

/* The references of an extent come right after its item: the next extent ends them. */
static struct bw_error *end_extent(struct bw_sharing *sharing)
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

static struct bw_error *take_item(struct bw_sharing *sharing, const struct bw_item *item)
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

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    uint32_t slot = 0;
    while (bw_leaf_next(leaf, &slot, &item))
        BW_TRY(take_item(context, &item));
    return NULL;
}

static struct bw_error *lose(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    struct bw_sharing *sharing = context;
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

static int by_number(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

static int by_last(const void *a, const void *b)
{
    const struct lost_range *one = a, *other = b;
    return one->last < other->last ? -1 : one->last > other->last;
}

struct bw_error *bw_sharing_read(struct bw_sharing *sharing)
{
    struct bw_fs *fs = sharing->fs;
    struct bw_scan scan = {BW_SCAN_ALL,       .adopt = true, .wants = wants,
                           .leaf = take_leaf, .lost = lose,  .context = sharing};
    if (!sharing->all && !sharing->asked_count)
        return NULL;
    if (!fs->extent_tree.id)
        return bw_error_create(BW_ERROR_CORRUPT, "the extent tree is lost");
    if (sharing->asked_count)
        qsort(sharing->asked, sharing->asked_count, sizeof *sharing->asked, by_number);
    BW_TRY(bw_tree_scan(&fs->reader, &fs->extent_tree, &scan));
    if (sharing->lost_count)
        qsort(sharing->lost, sharing->lost_count, sizeof *sharing->lost, by_last);
    sharing->asked_before += sharing->asked_count;
    sharing->asked_count = 0;
    return end_extent(sharing);
}

void bw_sharing_report(const struct bw_sharing *sharing)
{
    if (sharing->lost_count)
        bw_fs_report(
            sharing->fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_CORRUPT,
                            "figures are lower bounds: lost blocks of the extent tree: %zu",
                            sharing->lost_count));
}
