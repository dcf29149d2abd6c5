/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extents of many files. The wanted files are sorted like the items of a tree: by subvolume,
 * then by inode. Therefore one scan of each tree suffices, which reads only leaves whose key ranges
 * contain a wanted file, and a position in the list that only moves forward pairs items with files.
 *
 * The sums of a file need all of its extents: the file may refer to several parts of an extent,
 * which is stored once. Extents are collected, and sorted by address at the end of the file.
 */
#include "data/extent_scan.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "fs/fs.h"

static struct bw_key first_key(const struct bw_wanted_file *file)
{
    return (struct bw_key){file->inode, BW_EXTENT_DATA, 0};
}

static struct bw_key last_key(const struct bw_wanted_file *file)
{
    return (struct bw_key){file->inode, BW_EXTENT_DATA, UINT64_MAX};
}

static bool ends_before(const struct bw_wanted_file *file, const struct bw_key *key)
{
    const struct bw_key last = last_key(file);
    return bw_key_compare(&last, key) < 0;
}

static bool has_files(const struct bw_extent_scan *scan, const struct bw_block_pointer *pointer)
{
    const struct bw_wanted_file *files = scan->files + scan->at;
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    const size_t count = scan->end - scan->at;
    const size_t next = BW_FIRST_INDEX(i, count, !ends_before(&files[i], &keys->first_key));
    if (next == count)
        return false;
    const struct bw_key first = first_key(&files[next]);
    const bool is_skipped =
        !keys->level && scan->lost_blocks && bw_key_map_has(scan->lost_blocks, pointer->bytenr);
    return bw_key_compare(&first, &keys->end_key) < 0 && !is_skipped;
}

static struct bw_error *on_leaf(struct bw_extent_scan *scan, const struct bw_node *leaf)
{
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        struct bw_file_extent extent;
        struct bw_error *error;
        const struct bw_key key = bw_leaf_key(leaf, slot);
        if (key.type != BW_EXTENT_DATA)
            continue;
        while (scan->at + 1 < scan->end && scan->files[scan->at].inode < key.objectid)
            scan->at++;
        const struct bw_wanted_file *file = &scan->files[scan->at];
        if (file->inode != key.objectid)
            continue;

        if (bw_leaf_item(leaf, slot, &item))
            error = bw_file_extent_decode(&item, bw_fs_alignment(scan->fs), &extent);
        else
            error =
                bw_error_create(BW_ERROR_CORRUPT,
                                "extent of inode %" PRIu64 " at %" PRIu64 " lies outside its leaf",
                                key.objectid, key.offset);
        if (!error)
            BW_TRY(scan->extent(scan->context, file, key.offset, &extent));
        else if (scan->quiet)
            bw_error_free(error);
        else
            bw_fs_report_once(scan->fs,
                              bw_error_prefix(error, "subvolume %" PRIu64, file->tree->id));
    }
    return NULL;
}

struct bw_error *bw_extent_scan_run(struct bw_extent_scan *scan)
{
    for (scan->end = 0; scan->end < scan->count;) {
        const struct bw_tree *tree = scan->files[scan->end].tree;
        scan->at = scan->end;
        while (scan->end < scan->count && scan->files[scan->end].tree == tree)
            scan->end++;
        struct bw_block_scan *blocks = &scan->blocks;
        const struct bw_block_pointer *pointer = &blocks->pointer;
        blocks->first = first_key(&scan->files[scan->at]);
        blocks->last = last_key(&scan->files[scan->end - 1]);
        blocks->adopt = blocks->cut = blocks->announce = blocks->pointers = true;
        blocks->nodes = scan->block;
        bw_block_scan_begin(blocks, &scan->fs->reader, tree);
        struct bw_error *error = NULL;
        while (!error && bw_block_scan_next(blocks)) {
            bool is_new = false;
            if (blocks->step == BW_SCAN_POINTER) {
                blocks->selected = has_files(scan, pointer);
                continue;
            }
            if (blocks->step == BW_SCAN_LOST) {
                bw_fs_report_lost(scan->fs, pointer->bytenr, BW_TAKE(blocks->error));
                error = bw_pair_set_insert(&scan->lost_counted, tree->id, pointer->bytenr, &is_new);
                scan->lost += is_new;
                continue;
            }
            if (scan->block)
                error = scan->block(scan->context, tree, &blocks->node);
            if (!error && blocks->step == BW_SCAN_LEAF)
                error = on_leaf(scan, &blocks->node);
        }
        BW_TRY(bw_error_first(error, bw_block_scan_end(blocks)));
    }
    return NULL;
}

void bw_extent_scan_end(struct bw_extent_scan *scan)
{
    bw_block_scan_free(&scan->blocks);
    bw_pair_set_free(&scan->lost_counted);
    if (scan->lost && !scan->quiet)
        bw_fs_report(scan->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "sizes are lower bounds: %" PRIu64
                                     " tree block%s of subvolumes lost",
                                     scan->lost, bw_plural(scan->lost)));
    scan->lost = 0;
}

/* Sums. A file with more extents than are kept may count one of them more than once. */

enum { MOST_EXTENTS = 1 << 20 };

void bw_extent_sums_begin(struct bw_extent_sums *sums)
{
    sums->extent_count = sums->disk = sums->next_address = 0;
    sums->extents.count = 0;
}

void bw_extent_sums_end(struct bw_extent_sums *sums)
{
    bw_used_extents_sort(&sums->extents, bw_compare_first);
    for (size_t i = 0; i < sums->extents.count; i++)
        if (!i || sums->extents.items[i].address != sums->extents.items[i - 1].address)
            sums->disk += sums->extents.items[i].stored;
    sums->extents.count = 0;
}

/* Parts that follow each other in the file and on the disk are one piece, as in filefrag(8): holes
 * between them may be missing on the disk, too. The end of compressed data on the disk is the end
 * of the whole extent. */
struct bw_error *bw_extent_sums_add(struct bw_extent_sums *sums, uint64_t offset,
                                    const struct bw_file_extent *extent)
{
    const bool plain = extent->compression == BW_COMPRESS_NONE;
    const uint64_t begin = extent->disk_bytenr + (plain ? extent->offset : 0);
    if (!extent->disk_bytenr)
        return NULL;
    if (sums->extents.count == MOST_EXTENTS)
        bw_extent_sums_end(sums);
    BW_TRY(bw_used_extents_push(
        &sums->extents, (struct bw_used_extent){extent->disk_bytenr, extent->disk_num_bytes}));
    const bool continues =
        sums->next_address &&
        (begin == sums->next_address || begin == sums->next_address + (offset - sums->next_offset));
    sums->extent_count += !continues;
    sums->next_offset = offset + extent->num_bytes;
    sums->next_address = begin + (plain ? extent->num_bytes : extent->disk_num_bytes);
    return NULL;
}

void bw_extent_sums_free(struct bw_extent_sums *sums)
{
    bw_used_extents_free(&sums->extents);
}

/* The sums of the files of a scan; `file` is the one whose extents are being added up. */
struct counting {
    const struct bw_wanted_file *files, *file;
    struct bw_extent_counts *counts;
    struct bw_extent_sums sums;
};

static void end_file(struct counting *counting)
{
    bw_extent_sums_end(&counting->sums);
    counting->counts[counting->file - counting->files] =
        (struct bw_extent_counts){counting->sums.extent_count, counting->sums.disk};
    bw_extent_sums_begin(&counting->sums);
}

static struct bw_error *count_extent(void *context, const struct bw_wanted_file *file,
                                     uint64_t offset, const struct bw_file_extent *extent)
{
    struct counting *counting = context;
    if (file != counting->file)
        end_file(counting);
    counting->file = file;
    return bw_extent_sums_add(&counting->sums, offset, extent);
}

struct bw_error *bw_extent_counts_find(struct bw_fs *fs, const struct bw_key_map *lost_blocks,
                                       const struct bw_wanted_file *files, size_t count,
                                       struct bw_extent_counts *counts)
{
    struct counting counting = {.files = files, .file = files, .counts = counts};
    struct bw_extent_scan scan = {.fs = fs,
                                  .files = files,
                                  .count = count,
                                  .lost_blocks = lost_blocks,
                                  .extent = count_extent,
                                  .context = &counting};
    memset(counts, 0, count * sizeof *counts);
    struct bw_error *error = bw_extent_scan_run(&scan);
    end_file(&counting);
    bw_extent_sums_free(&counting.sums);
    scan.quiet = true; /* its blocks have been reported; the caller has other words for the rest */
    bw_extent_scan_end(&scan);
    return error;
}
