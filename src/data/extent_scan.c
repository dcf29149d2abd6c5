/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scan for extents of files: files and items come in the same order. */
#include "data/extent_scan.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "fs/fs.h"

static const struct bw_tree *tree_of(const struct bw_extent_scan *scan)
{
    return scan->files[scan->at].tree;
}

static struct bw_key first_key(const struct bw_wanted_file *file)
{
    return (struct bw_key){file->inode, BW_EXTENT_DATA, 0};
}

static struct bw_key last_key(const struct bw_wanted_file *file)
{
    return (struct bw_key){file->inode, BW_EXTENT_DATA, UINT64_MAX};
}

static bool reaches_key(const struct bw_wanted_file *file, const struct bw_key *key)
{
    const struct bw_key last = last_key(file);
    return bw_key_compare(&last, key) >= 0;
}

static bool may_have_files(void *context, const struct bw_block_pointer *pointer)
{
    const struct bw_extent_scan *scan = context;
    const struct bw_wanted_file *files = scan->files + scan->at;
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    const size_t count = scan->end - scan->at;
    const size_t next = BW_FIRST_INDEX(i, count, reaches_key(&files[i], &keys->first_key));
    if (next == count)
        return false;
    const struct bw_key first = first_key(&files[next]);
    return bw_key_compare(&first, &keys->end_key) < 0;
}

static struct bw_error *on_node(void *context, const struct bw_node *node)
{
    struct bw_extent_scan *scan = context;
    return scan->block ? scan->block(scan->context, tree_of(scan), node) : NULL;
}

static struct bw_error *decode_extent(struct bw_extent_scan *scan, const struct bw_item *item,
                                      bool inside)
{
    struct bw_file_extent extent;
    struct bw_error *error =
        inside ? bw_file_extent_decode(item, bw_fs_alignment(scan->fs), &extent)
               : bw_error_create(BW_ERROR_CORRUPT,
                                 "extent of inode %" PRIu64 " at %" PRIu64 " lies outside its leaf",
                                 item->key.objectid, item->key.offset);
    if (!error)
        return scan->extent(scan->context, &scan->files[scan->at], item->key.offset, &extent);
    if (scan->quiet)
        bw_error_free(error);
    else
        bw_fs_report(scan->fs, BW_DAMAGE,
                     bw_error_prefix(error, "subvolume %" PRIu64, tree_of(scan)->id));
    return NULL;
}

static struct bw_error *on_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_extent_scan *scan = context;
    struct bw_item item;
    BW_TRY(on_node(scan, leaf));
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_key key = bw_leaf_key(leaf, slot);
        if (key.type != BW_EXTENT_DATA)
            continue;
        while (scan->at + 1 < scan->end && scan->files[scan->at].inode < key.objectid)
            scan->at++;
        if (scan->files[scan->at].inode == key.objectid)
            BW_TRY(decode_extent(scan, &item, bw_leaf_item(leaf, slot, &item)));
    }
    return NULL;
}

static struct bw_error *on_lost_block(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    struct bw_extent_scan *scan = context;
    bool is_new;
    bw_fs_report_lost(scan->fs, pointer->bytenr, error);
    BW_TRY(bw_pair_set_insert(&scan->lost_blocks, tree_of(scan)->id, pointer->bytenr, &is_new));
    scan->lost += is_new;
    return NULL;
}

/* Scans the files of one subvolume. */
static struct bw_error *scan_subvolume(struct bw_extent_scan *scan)
{
    const struct bw_scan plan = {.first = first_key(&scan->files[scan->at]),
                                 .last = last_key(&scan->files[scan->end - 1]),
                                 .adopt = true,
                                 .announce = true,
                                 .buffers = &scan->buffers,
                                 .wants = may_have_files,
                                 .node = on_node,
                                 .leaf = on_leaf,
                                 .lost = on_lost_block,
                                 .context = scan};
    return bw_tree_scan(&scan->fs->reader, tree_of(scan), &plan);
}

struct bw_error *bw_extent_scan_run(struct bw_extent_scan *scan)
{
    for (scan->end = 0; scan->end < scan->count;) {
        scan->at = scan->end;
        while (scan->end < scan->count && scan->files[scan->end].tree == scan->files[scan->at].tree)
            scan->end++;
        BW_TRY(scan_subvolume(scan));
    }
    return NULL;
}

void bw_extent_scan_end(struct bw_extent_scan *scan)
{
    bw_scan_buffers_free(&scan->buffers);
    bw_pair_set_free(&scan->lost_blocks);
    if (scan->lost && !scan->quiet)
        bw_fs_report(scan->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "sizes are lower bounds: %" PRIu64
                                     " tree block%s of subvolumes lost",
                                     scan->lost, bw_plural(scan->lost)));
    scan->lost = 0;
}
