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

/* The next extent of the leaf; false at its end. */
static bool next_in_leaf(struct bw_extent_scan *scan)
{
    const struct bw_node *leaf = &scan->blocks.node;
    while (scan->slot < leaf->item_count) {
        const uint32_t slot = scan->slot++;
        struct bw_item item;
        struct bw_error *error;
        const struct bw_key key = bw_leaf_key(leaf, slot);
        if (key.type != BW_EXTENT_DATA)
            continue;
        while (scan->at + 1 < scan->end && scan->files[scan->at].inode < key.objectid)
            scan->at++;
        scan->file = &scan->files[scan->at];
        scan->offset = key.offset;
        if (scan->file->inode != key.objectid)
            continue;

        if (bw_leaf_item(leaf, slot, &item))
            error = bw_file_extent_decode(&item, bw_fs_alignment(scan->fs), &scan->extent);
        else
            error =
                bw_error_create(BW_ERROR_CORRUPT,
                                "extent of inode %" PRIu64 " at %" PRIu64 " lies outside its leaf",
                                key.objectid, key.offset);
        if (!error)
            return true;
        if (scan->quiet)
            bw_error_free(error);
        else
            bw_fs_report_once(scan->fs, BW_DAMAGE,
                              bw_error_prefix(error, "subvolume %" PRIu64, scan->file->tree->id));
    }
    return false;
}

void bw_extent_scan_begin(struct bw_extent_scan *scan, const struct bw_wanted_file *files,
                          size_t count)
{
    bw_error_free(bw_block_scan_end(&scan->blocks));
    scan->files = files;
    scan->count = count;
    scan->end = 0;
    scan->in_tree = scan->in_leaf = false;
}

bool bw_extent_scan_next(struct bw_extent_scan *scan)
{
    struct bw_block_scan *blocks = &scan->blocks;
    while (!scan->failure) {
        bool is_new = false;
        if (scan->in_leaf && next_in_leaf(scan))
            return true;
        scan->in_leaf = false;
        if (!scan->in_tree) {
            /* The files of the next tree. */
            if (scan->end == scan->count)
                return false;
            const struct bw_tree *tree = scan->files[scan->end].tree;
            scan->at = scan->end;
            while (scan->end < scan->count && scan->files[scan->end].tree == tree)
                scan->end++;
            blocks->first = first_key(&scan->files[scan->at]);
            blocks->last = last_key(&scan->files[scan->end - 1]);
            blocks->adopt = blocks->cut = blocks->announce = blocks->pointers = true;
            blocks->nodes = scan->visits_blocks;
            bw_block_scan_begin(blocks, &scan->fs->reader, tree);
        }
        scan->in_tree = bw_block_scan_next(blocks);
        if (!scan->in_tree) {
            scan->failure = bw_block_scan_end(blocks);
        } else if (blocks->step == BW_SCAN_POINTER) {
            blocks->selected = has_files(scan, &blocks->pointer);
        } else if (blocks->step == BW_SCAN_LOST) {
            const uint64_t bytenr = blocks->pointer.bytenr;
            bw_fs_report_lost(scan->fs, bytenr, BW_TAKE(blocks->error));
            scan->failure =
                bw_pair_set_insert(&scan->lost_counted, blocks->tree.id, bytenr, &is_new);
            scan->lost += is_new;
        } else {
            scan->in_leaf = blocks->step == BW_SCAN_LEAF;
            scan->slot = 0;
            scan->file = NULL;
            if (scan->visits_blocks)
                return true;
        }
    }
    return false;
}

struct bw_error *bw_extent_scan_error(struct bw_extent_scan *scan)
{
    return BW_TAKE(scan->failure);
}

void bw_extent_scan_end(struct bw_extent_scan *scan)
{
    bw_block_scan_free(&scan->blocks);
    bw_pair_set_free(&scan->lost_counted);
    if (scan->lost && !scan->quiet)
        bw_fs_report_text(scan->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "sizes are lower bounds: %" PRIu64 " tree block%s of subvolumes lost",
                          scan->lost, bw_plural(scan->lost));
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

struct bw_error *bw_extent_counts_find(struct bw_fs *fs, const struct bw_key_map *lost_blocks,
                                       const struct bw_wanted_file *files, size_t count,
                                       struct bw_extent_counts *counts)
{
    struct bw_extent_scan scan = {.fs = fs, .lost_blocks = lost_blocks};
    struct bw_extent_sums sums = {.disk = 0};
    const struct bw_wanted_file *file = NULL; /* whose extents are being added up */
    struct bw_error *error = NULL;
    memset(counts, 0, count * sizeof *counts);
    bw_extent_scan_begin(&scan, files, count);
    for (bool more = true; more;) {
        more = !error && bw_extent_scan_next(&scan);
        if (file && (!more || scan.file != file)) {
            bw_extent_sums_end(&sums);
            counts[file - files] = (struct bw_extent_counts){sums.extent_count, sums.disk};
            bw_extent_sums_begin(&sums);
        }
        file = scan.file;
        if (more)
            error = bw_extent_sums_add(&sums, scan.offset, &scan.extent);
    }
    error = bw_error_first(error, bw_extent_scan_error(&scan));
    bw_extent_sums_free(&sums);
    scan.quiet = true; /* its blocks have been reported; the caller has other words for the rest */
    bw_extent_scan_end(&scan);
    return error;
}
