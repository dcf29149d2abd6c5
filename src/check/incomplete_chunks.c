/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chunks that missing devices leave only a part of. `space` counts the bytes of extents in them
 * that no device has, `trees` the files with such data, and the findings come after both.
 */
#include "check/incomplete_chunks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/human.h"
#include "check/groups.h"
#include "check/inode_sums.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/* Maximum number of files that are distinguished for a chunk, so that memory does not grow with the
 * number of files. */
enum { MOST_FILES = 1 << 20 };

struct bw_incomplete_chunk {
    bool incomplete;
    unsigned missing; /* stripes */
    uint64_t bytes, files;
};

static struct bw_incomplete_chunk *counted_of(const struct bw_check *check,
                                              const struct bw_checked_chunk *chunk)
{
    return &check->incomplete_chunks[chunk - check->chunks.items];
}

struct bw_error *bw_incomplete_chunks_begin(struct bw_check *check)
{
    if (!bw_fs_status(check->fs).missing_devices)
        return NULL;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(check->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        unsigned missing;
        if (bw_chunk_condition(check->fs, &chunks.items[i], &missing) != BW_CHUNK_INCOMPLETE)
            continue;
        if (!check->incomplete_chunks)
            check->incomplete_chunks =
                calloc(check->chunks.count, sizeof *check->incomplete_chunks);
        if (!check->incomplete_chunks)
            return bw_error_no_memory();
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, chunks.items[i].logical);
        if (chunk)
            *counted_of(check, chunk) =
                (struct bw_incomplete_chunk){.incomplete = true, .missing = missing};
    }
    return NULL;
}

/* The chunk, if it is incomplete. */
static const struct bw_checked_chunk *incomplete_chunk(const struct bw_check *check,
                                                       uint64_t logical)
{
    const struct bw_checked_chunk *chunk = bw_check_chunk(check, logical);
    return chunk && counted_of(check, chunk)->incomplete ? chunk : NULL;
}

/* The number of bytes in a range of an incomplete chunk of which no copy is present; with `any`,
 * only whether there are some. Too many stripes of each row are missing for parity to help. */
static uint64_t count_bytes(const struct bw_check *check, uint64_t logical, uint64_t length,
                            bool any)
{
    uint64_t sum = 0;
    while (length && !(any && sum)) {
        struct bw_mapping mapping = {.copies = 1};
        uint64_t piece = length;
        bool readable = false;
        for (unsigned copy = 1; !readable && copy <= mapping.copies; copy++) {
            BW_AUTO_ERROR struct bw_error *error =
                bw_fs_map(check->fs, logical, length, copy, &mapping);
            if (error || mapping.rebuilt)
                break;
            piece = bw_min(mapping.length, piece);
            readable = mapping.present;
        }
        piece = piece ? piece : length;
        sum += readable ? 0 : piece;
        logical += piece;
        length -= piece;
    }
    return sum;
}

/* How much of a range lies in the chunk that it begins in. */
static uint64_t length_inside(const struct bw_checked_chunk *chunk, uint64_t logical,
                              uint64_t length)
{
    const uint64_t room = chunk->length - (logical - chunk->logical);
    return length < room ? length : room;
}

void bw_incomplete_chunks_extent(struct bw_check *check, uint64_t logical, uint64_t length)
{
    const struct bw_checked_chunk *chunk =
        check->incomplete_chunks ? incomplete_chunk(check, logical) : NULL;
    if (chunk)
        counted_of(check, chunk)->bytes +=
            count_bytes(check, logical, length_inside(chunk, logical, length), false);
}

/* Files. */

void bw_incomplete_chunks_leaf(struct bw_check *check, uint64_t tree, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; check->incomplete_chunks && bw_leaf_next(leaf, &slot, &item);) {
        struct bw_file_extent extent;
        if (item.key.type != BW_EXTENT_DATA)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(&item, check->fs->superblock.sectorsize, &extent);
        if (bad || extent.type != BW_FILE_EXTENT_REGULAR || !extent.disk_bytenr)
            continue;

        /* The stored data that the piece of the file needs. */
        uint64_t logical = extent.disk_bytenr, length = extent.disk_num_bytes;
        if (extent.compression == BW_COMPRESS_NONE) {
            logical += extent.offset;
            length = extent.num_bytes;
        }
        const struct bw_checked_chunk *chunk = incomplete_chunk(check, logical);
        if (!chunk || !count_bytes(check, logical, length_inside(chunk, logical, length), true))
            continue;

        /* Each file counts once for each chunk. */
        const uint64_t key = bw_fact_mix(
            bw_fact_mix(chunk->logical ^ tree * UINT64_C(0x9e3779b97f4a7c15)) + item.key.objectid);
        pthread_mutex_lock(&check->lock);
        if (check->incomplete_files.count < MOST_FILES &&
            !bw_key_map_has(&check->incomplete_files, key)) {
            if (bw_key_map_put(&check->incomplete_files, key, 1))
                check->no_memory = true;
            counted_of(check, chunk)->files++;
        }
        pthread_mutex_unlock(&check->lock);
    }
}

/* Findings. */

/* Whether there may be files that were not counted: too many, or in lost leaves. */
static bool may_have_more_files(const struct bw_check *check)
{
    for (size_t i = 0; i < check->trees.entries.count; i++)
        if (check->trees.entries.items[i].is_subvolume && check->trees.entries.items[i].incomplete)
            return true;
    return check->incomplete_files.count >= MOST_FILES;
}

void bw_incomplete_chunks_report(struct bw_check *check)
{
    const bool is_counted = !check->options->quick && check->extents_known;
    for (size_t i = 0; check->incomplete_chunks && i < check->chunks.count; i++) {
        const struct bw_checked_chunk *chunk = &check->chunks.items[i];
        const struct bw_checked_group *group = bw_check_group(check, chunk->logical);
        const struct bw_incomplete_chunk *counted = &check->incomplete_chunks[i];
        if (!counted->incomplete || (is_counted && !counted->bytes))
            continue;
        char loss[200] = "";
        if (!is_counted && !group)
            snprintf(loss, sizeof loss, "the chunk cannot be read, or only in part");
        else if (!is_counted && group->used) /* an upper bound of the loss */
            snprintf(loss, sizeof loss,
                     "some or all of the %" PRIu64 " bytes in use cannot be read", group->used);
        else if (is_counted && !(chunk->type & BW_GROUP_DATA))
            snprintf(loss, sizeof loss, "%" PRIu64 " bytes of tree blocks cannot be read",
                     counted->bytes);
        else if (is_counted && !counted->files && may_have_more_files(check))
            snprintf(loss, sizeof loss,
                     "%" PRIu64 " bytes in use cannot be read; their files are unknown, because "
                     "metadata are lost, too",
                     counted->bytes);
        else if (is_counted)
            snprintf(loss, sizeof loss,
                     "%" PRIu64 " bytes in use cannot be read, of %s%" PRIu64 " file%s",
                     counted->bytes, may_have_more_files(check) ? "at least " : "", counted->files,
                     bw_plural(counted->files));
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_CHUNK_TREE,
                       .key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical},
                       .logical = chunk->logical, .length = chunk->length);
        if (*loss)
            bw_check_find(check, BW_CODE_chunk_unreadable, &location,
                          "%u of %u stripes are on missing devices: %s", counted->missing,
                          chunk->stripes, loss);
    }
}
