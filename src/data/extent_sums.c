/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of the extents of files, for single files and for many inodes at once. */
#include "data/extent_sums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/scan.h"

/* Extents of a file that are kept. */
enum { MOST_EXTENTS = 1 << 20 };

/* An extent of which the file uses several parts is stored once; in a file with more extents than
 * are kept, perhaps more often. */
void bw_extent_sums_end(struct bw_extent_sums *sums)
{
    if (sums->extents.count > 1)
        qsort(sums->extents.items, sums->extents.count, sizeof *sums->extents.items,
              bw_compare_first);
    for (size_t i = 0; i < sums->extents.count; i++)
        if (!i || sums->extents.items[i].address != sums->extents.items[i - 1].address)
            sums->disk += sums->extents.items[i].stored;
    sums->extents.count = 0;
}

void bw_extent_sums_begin(struct bw_extent_sums *sums)
{
    sums->extent_count = sums->disk = sums->next_address = 0;
    sums->extents.count = 0;
}

void bw_extent_sums_free(struct bw_extent_sums *sums)
{
    bw_used_extents_free(&sums->extents);
}

/* Parts that follow each other in the file and on the disk are one piece, as in filefrag(8): holes
 * between them may be missing on the disk, too. The end of compressed data on the disk is the end
 * of the whole extent. */
bool bw_extent_sums_add(struct bw_extent_sums *sums, uint64_t offset,
                        const struct bw_file_extent *extent)
{
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    const uint64_t begin = extent->disk_bytenr + (plain ? extent->offset : 0);
    if (sums->extents.count == MOST_EXTENTS)
        bw_extent_sums_end(sums);
    if (bw_used_extents_reserve(&sums->extents, 1))
        return false;
    sums->extents.items[sums->extents.count++] =
        (struct bw_used_extent){extent->disk_bytenr, extent->disk_num_bytes};
    sums->extent_count +=
        !sums->next_address ||
        (begin != sums->next_address && begin != sums->next_address + (offset - sums->next_offset));
    sums->next_offset = offset + extent->num_bytes;
    sums->next_address = begin + (plain ? extent->num_bytes : extent->disk_num_bytes);
    return true;
}

/* Many inodes. */

struct search {
    struct bw_fs *fs;
    const struct bw_tree *tree;
    const struct bw_key_map *lost_blocks;
    const uint64_t *numbers;
    size_t count, at; /* `at`: the inode whose extents are being added up */
    struct bw_extent_counts *counts;
    struct bw_extent_sums sums;
};

static bool is_wanted(void *context, const struct bw_block_pointer *pointer)
{
    const struct search *search = context;
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    const size_t next = BW_FIRST_INDEX(
        i, search->count,
        bw_key_compare(&(struct bw_key){search->numbers[i], BW_EXTENT_DATA, UINT64_MAX},
                       &keys->first_key) >= 0);
    if (next == search->count)
        return false;
    const struct bw_key first = {search->numbers[next], BW_EXTENT_DATA, 0};
    return bw_key_compare(&first, &keys->end_key) < 0 &&
           (keys->level || !search->lost_blocks ||
            !bw_key_map_has(search->lost_blocks, pointer->bytenr));
}

static void end_inode(struct search *search)
{
    bw_extent_sums_end(&search->sums);
    search->counts[search->at] =
        (struct bw_extent_counts){search->sums.extent_count, search->sums.disk};
    bw_extent_sums_begin(&search->sums);
}

static struct bw_error *add_item(struct search *search, const struct bw_item *item)
{
    struct bw_file_extent extent;
    while (search->at + 1 < search->count && search->numbers[search->at] < item->key.objectid) {
        end_inode(search);
        search->at++;
    }
    if (search->numbers[search->at] != item->key.objectid)
        return NULL;
    struct bw_error *error = bw_file_extent_decode(item, bw_fs_alignment(search->fs), &extent);
    if (error)
        bw_fs_report_once(search->fs,
                          bw_error_prefix(error, "subvolume %" PRIu64, search->tree->id));
    else if (extent.disk_bytenr && !bw_extent_sums_add(&search->sums, item->key.offset, &extent))
        return bw_error_no_memory();
    return NULL;
}

static struct bw_error *on_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        if (item.key.type == BW_EXTENT_DATA)
            BW_TRY(add_item(context, &item));
    return NULL;
}

static struct bw_error *on_lost(void *context, const struct bw_block_pointer *pointer,
                                struct bw_error *error)
{
    const struct search *search = context;
    bw_fs_report_lost(search->fs, pointer->bytenr, error);
    return NULL;
}

struct bw_error *bw_extent_counts_find(struct bw_fs *fs, const struct bw_tree *tree,
                                       const struct bw_key_map *lost_blocks,
                                       const uint64_t *numbers, size_t count,
                                       struct bw_extent_counts *counts)
{
    struct search search = {.fs = fs,
                            .tree = tree,
                            .lost_blocks = lost_blocks,
                            .numbers = numbers,
                            .count = count,
                            .counts = counts};
    const struct bw_scan scan = {.first = {numbers[0], BW_EXTENT_DATA, 0},
                                 .last = {numbers[count - 1], BW_EXTENT_DATA, UINT64_MAX},
                                 .adopt = true,
                                 .announce = true,
                                 .wants = is_wanted,
                                 .leaf = on_leaf,
                                 .lost = on_lost,
                                 .context = &search};
    memset(counts, 0, count * sizeof *counts);
    struct bw_error *error = bw_tree_scan(&fs->reader, tree, &scan);
    end_inode(&search);
    bw_extent_sums_free(&search.sums);
    return error;
}
