/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data without checksums, in the pass `data`: their copies are compared with each other, also those
 * that parity gives. They differ after a power cut during a write, or if a program changed its
 * memory while it was written; then nothing shows which copy is right.
 *
 * The bytes of an extent that no file shows may differ: preallocated ones were never written. So
 * the differing sectors are collected first, and only if there are any, the extents of the files
 * are searched for those that show them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "btrfs-walk/graph.h"
#include "check/data.h"
#include "ondisk/disk_items.h"

enum {
    TASK = 4 << 20,          /* bytes of a task */
    PIECE = BW_STRIPE_LENGTH /* and of a request */
};

struct mirrors {
    struct bw_check *check;
    struct bw_data_ranges tasks;   /* without checksums, of chunks with several copies */
    uint8_t *buffers;              /* two pieces for each worker */
    struct bw_range_set differing; /* under check->lock */
    struct bw_range_set shown;     /* those bytes of `differing` that a file shows */
};

/* Compares all copies of each piece of a task with the first one that can be read. */
static void run_task(void *context, unsigned worker, size_t number)
{
    struct mirrors *mirrors = context;
    const struct bw_data_range *task = &mirrors->tasks.items[number];
    struct bw_check *check = mirrors->check;
    const uint32_t sector = check->fs->superblock.sectorsize;
    struct bw_xlator *top = check->fs->reader.top;
    uint8_t *first = mirrors->buffers + (size_t)worker * 2 * PIECE, *other = first + PIECE;
    uint32_t length;
    for (uint64_t done = 0; done < task->length && bw_check_should_continue(check, worker);
         done += length) {
        const uint64_t logical = task->logical + done, rest = task->length - done;
        const uint64_t room = PIECE - (logical - task->chunk->logical) % PIECE;
        bool has_first = false;
        length = (uint32_t)(rest < room ? rest : room);
        for (unsigned copy = 1; copy <= task->chunk->all_copies; copy++) {
            struct bw_request request = {.kind = BW_REQUEST_RAW,
                                         .mirror = (uint8_t)copy,
                                         .length = length,
                                         .address = logical,
                                         .buffer = has_first ? other : first};
            bw_wind(NULL, top, &request, 1);
            if (request.error) {
                bw_error_free(request.error);
                continue;
            }
            check->data_bytes += length;
            const bool differs = has_first && memcmp(first, other, length) != 0;
            has_first = true;
            for (uint32_t at = 0, size; differs && at < length; at += size) {
                size = length - at < sector ? length - at : sector;
                if (memcmp(first + at, other + at, size) == 0)
                    continue;
                pthread_mutex_lock(&check->lock);
                if (bw_range_set_insert(&mirrors->differing, logical + at, logical + at + size))
                    check->no_memory = true;
                pthread_mutex_unlock(&check->lock);
            }
        }
    }
}

static void mirrors_free(struct mirrors *mirrors)
{
    free(mirrors->buffers);
    bw_data_ranges_free(&mirrors->tasks);
    bw_range_set_free(&mirrors->differing);
    bw_range_set_free(&mirrors->shown);
}

struct bw_error *bw_check_mirrors(struct bw_check *check)
{
    if (check->options->parts && check->options->part != 1)
        return NULL;
    BW_SCOPED(mirrors) struct mirrors mirrors = {.check = check};

    /* The ranges without checksums, in chunks with several copies. */
    for (size_t i = 0; i < check->unsummed.ranges.count; i++) {
        const struct bw_span *span = &check->unsummed.ranges.items[i];
        for (uint64_t next = span->start, length; next < span->end; next += length) {
            const struct bw_checked_chunk *chunk = bw_check_chunk(check, next);
            if (!chunk) { /* a wrong length can reach over petabytes */
                const size_t later =
                    BW_FIRST_INDEX(k, check->chunks.count, check->chunks.items[k].logical > next);
                length = later < check->chunks.count ? check->chunks.items[later].logical - next
                                                     : span->end - next;
                continue;
            }
            const uint64_t left = chunk->logical + chunk->length - next;
            length = span->end - next < left ? span->end - next : left;
            length = length < TASK ? length : (uint64_t)TASK;
            if (chunk->all_copies > 1)
                BW_TRY(bw_data_ranges_push(&mirrors.tasks,
                                           (struct bw_data_range){chunk, next, length, NULL}));
        }
    }
    if (!mirrors.tasks.count)
        return NULL;
    mirrors.buffers = malloc((size_t)check->workers * 2 * PIECE);
    if (!mirrors.buffers)
        return bw_error_no_memory();
    bw_pool_run(check->pool, mirrors.tasks.count, run_task, &mirrors);
    if (check->no_memory)
        return bw_error_no_memory();
    bw_range_set_join(&mirrors.differing);
    if (!mirrors.differing.ranges.count || check->stopped)
        return NULL;

    /* The files that show them. */
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .announce = true};
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i];
        struct bw_item item;
        if (!tree->is_subvolume || !tree->references)
            continue;
        bw_block_scan_begin(&scan, &check->fs->reader, &tree->tree);
        while (bw_block_scan_next_item(&scan, &item)) {
            const struct bw_disk_file_extent *disk = (const void *)item.data;
            if (item.key.type != BW_EXTENT_DATA || item.size < sizeof *disk ||
                disk->type == BW_FILE_EXTENT_INLINE || disk->type == BW_FILE_EXTENT_PREALLOC)
                continue;
            const uint64_t extent = bw_get64(disk->disk_bytenr);
            uint64_t start = extent, length = bw_get64(disk->disk_num_bytes), end;
            if (!disk->compression) {
                start += bw_get64(disk->offset);
                length = bw_get64(disk->num_bytes);
            }
            if (!extent || __builtin_add_overflow(start, length, &end))
                continue;
            for (uint64_t until; start < end; start = until) {
                until = end;
                if (bw_range_set_has(&mirrors.differing, start, &until))
                    BW_TRY(bw_range_set_insert(&mirrors.shown, start, until));
            }
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    bw_range_set_join(&mirrors.shown);
    for (size_t i = 0; i < mirrors.shown.ranges.count; i++) {
        const struct bw_span *span = &mirrors.shown.ranges.items[i];
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_EACH, .repairable = false, .logical = span->start,
                       .length = span->end - span->start);
        bw_check_find(check, BW_CODE_data_mirrors_differ, &location,
                      "the mirrors differ, and no checksum shows which one is right");
    }
    return NULL;
}
