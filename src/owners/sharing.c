/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the extent tree for references. As for the kernel's btrfs_is_data_extent_shared(), it is
 * not the number of references that counts but that of their records: one EXTENT_DATA_REF with a
 * count of 2 is one extent of one file that was cut into two items. Only what has more than one
 * reference is remembered.
 */
#include "owners/sharing.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "owners/references.h"

/* Addresses are multiples of the smallest sector: this bit is free for BW_SPLIT. */
#define SPLIT_BIT UINT64_C(1)

/* Addresses of extents whose items are lost, both included. */
struct lost_range {
    uint64_t first, last;
};

struct bw_sharing {
    struct bw_fs *fs;
    uint64_t *asked; /* ascending while the tree is read */
    size_t asked_count, asked_capacity;
    uint64_t *found; /* ascending */
    size_t found_count, found_capacity;
    struct bw_extent_entry extent; /* that the last extent item was for, with several references */
    uint64_t records;              /* of references to it so far */
    struct lost_range *lost;       /* ascending */
    size_t lost_count, lost_capacity;
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
    free(sharing->found);
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
    if (sharing->asked_count == BW_SHARING_MOST)
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
    const uint64_t *found = sharing->found;
    const size_t at =
        BW_FIRST_INDEX(i, sharing->found_count, (found[i] | SPLIT_BIT) >= (bytenr | SPLIT_BIT));
    if (at == sharing->found_count || (found[at] & ~SPLIT_BIT) != bytenr)
        return is_lost(sharing, bytenr) ? BW_UNKNOWN_SHARING : BW_NOT_SHARED;
    return found[at] & SPLIT_BIT ? BW_SPLIT : BW_SHARED;
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
    if (!BW_ARRAY_RESERVE(sharing->found, sharing->found_count, sharing->found_capacity))
        return bw_error_no_memory();
    sharing->found[sharing->found_count++] =
        sharing->extent.bytenr | (sharing->records > 1 ? 0 : SPLIT_BIT);
    sharing->extent.references = 0;
    return NULL;
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
    bw_fs_report_lost(sharing->fs, pointer->bytenr, error);
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

struct bw_error *bw_sharing_read(struct bw_sharing *sharing)
{
    struct bw_fs *fs = sharing->fs;
    struct bw_scan scan = {BW_SCAN_ALL,       .adopt = true, .wants = wants,
                           .leaf = take_leaf, .lost = lose,  .context = sharing};
    sharing->found_count = 0;
    if (!sharing->all && !sharing->asked_count)
        return NULL;
    if (!fs->extent_tree.id)
        return bw_error_create(BW_ERROR_CORRUPT, "the extent tree is lost");
    if (sharing->asked_count)
        qsort(sharing->asked, sharing->asked_count, sizeof *sharing->asked, by_number);
    BW_TRY(bw_tree_scan(&fs->reader, &fs->extent_tree, &scan));
    if (sharing->lost_count)
        bw_fs_report(
            fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_CORRUPT,
                            "figures are lower bounds: lost blocks of the extent tree: %zu",
                            sharing->lost_count));
    return end_extent(sharing);
}
