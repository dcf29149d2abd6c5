/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sides: whether the devices of a file system share one history. If both halves of a RAID1 were
 * mounted alone, each has transactions that the other lacks, under the same numbers and mostly at
 * the same addresses. Blocks of both would be accepted, so such devices are never read together.
 *
 * A commit writes one superblock to all devices; only the entry for the device itself differs. From
 * this follow two tests, with A the newer device, B the other one, and gB the generation of B:
 *
 * 1. Superblocks. If gB = gA, both have the same roots. In any case both have the same four backup
 *    roots, except those that A has overwritten since: each commit fills one entry, or the same one
 *    again, with a root tree of its own generation or the next. So an entry of A that differs from
 *    the one of B, and whose root tree is not newer than gB, comes from another history. That holds
 *    as well for entries that were written while the next transaction had begun.
 * 2. Blocks, if all of that is equal: the blocks from the root of the chunk tree down to the chunk
 *    of the root tree, and the root of the root tree, which each commit writes again with the times
 *    and addresses of the other trees. Valid copies of one generation on two devices must be
 *    identical. For an older B, the root of its root tree is compared as well, as long as A has not
 *    written something else there.
 *
 * The second test is left out while a change of the id or of the type of checksums is incomplete:
 * it writes all blocks again with the generations that they have, one copy after the other.
 *
 * A device whose generation is older than all backup roots may pass and still have another history.
 * A stale device that only missed transactions passes both tests.
 *
 * With bw_fs_options.side, only devices of the same generation that pass both tests are read.
 * Others count as missing, and so do stale ones, because they may have blocks of another history.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "fs/image.h"
#include "fs/opening.h"
#include "graph/wind.h"
#include "ondisk/chunk.h"
#include "ondisk/node.h"
#include "xlators/cluster/layout.h"

static const uint64_t changes_of_blocks = BW_SUPER_FLAG_CHANGING_FSID |
                                          BW_SUPER_FLAG_CHANGING_DATA_CSUM |
                                          BW_SUPER_FLAG_CHANGING_META_CSUM;

/* Superblocks. */

static bool is_same_root(const struct bw_root_pointer *a, const struct bw_root_pointer *b)
{
    return a->bytenr == b->bytenr && a->generation == b->generation && a->level == b->level;
}

static bool is_same_backup(const struct bw_backup_root *a, const struct bw_backup_root *b)
{
    return is_same_root(&a->tree_root, &b->tree_root) &&
           is_same_root(&a->chunk_root, &b->chunk_root) &&
           is_same_root(&a->extent_root, &b->extent_root) &&
           is_same_root(&a->fs_root, &b->fs_root) &&
           is_same_root(&a->device_root, &b->device_root) &&
           is_same_root(&a->csum_root, &b->csum_root);
}

uint64_t bw_superblocks_diverged(const struct bw_superblock *a, const struct bw_superblock *b)
{
    if (a->generation < b->generation)
        return bw_superblocks_diverged(b, a);
    if (a->generation == b->generation &&
        (!is_same_root(&a->root, &b->root) || !is_same_root(&a->chunk_root, &b->chunk_root)))
        return a->generation;
    uint64_t first = 0;
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *ours = &a->backup_roots[i], *theirs = &b->backup_roots[i];
        const uint64_t generation = ours->tree_root.generation;
        if (!generation || generation > b->generation || !theirs->tree_root.generation ||
            is_same_backup(ours, theirs))
            continue;
        if (!first || generation < first)
            first = generation;
    }
    return first;
}

/* Whether a device may share its history with another one that is read. Superblocks that were
 * rebuilt have no backup roots of their own. */
static uint64_t find_difference(const struct bw_image *a, const struct bw_image *b)
{
    if (a->is_rebuilt || b->is_rebuilt)
        return 0;
    return bw_superblocks_diverged(&a->superblock, &b->superblock);
}

/* Blocks. */

/* The relation of an image to the copies that decide. */
enum relation {
    NOT_COMPARED,
    SAME_BLOCK, /* it has the last compared block, too */
    OTHER_BLOCK /* it has another copy of some block */
};

/* A comparison of the blocks of devices whose superblocks agree. */
struct comparison {
    const struct bw_fs *fs;
    const struct bw_image_set *set;
    const struct bw_image *side; /* the device whose copies decide; NULL: none was chosen */
    struct bw_layout layout;     /* its children are the images of the set */
    uint8_t *block, *other;
    const struct bw_image *first;     /* the image of `block` */
    const struct bw_image *different; /* an image whose copy differs from it; may be NULL */
    uint64_t generation;              /* of that block */
    enum relation *relations;         /* of each image */
};

static void close_comparison(struct comparison *comparison)
{
    bw_layout_free(&comparison->layout);
    free(comparison->block);
    free(comparison->other);
    free(comparison->relations);
}

/* Reads a copy. Returns its image; NULL if there is no valid copy, or not on one device. */
static const struct bw_image *
read_copy(const struct comparison *comparison, const struct bw_piece *piece, unsigned copy,
          uint64_t bytenr, const struct bw_tree_block_expectation *expectation, uint8_t *buffer)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    const struct bw_superblock *super = &comparison->fs->superblock;
    const struct bw_layout_stripe *stripe = bw_piece_stripe(piece, copy);
    if (stripe->child == BW_NO_CHILD || piece->length < super->nodesize)
        return NULL;
    const struct bw_image *image = &comparison->set->images[stripe->child];
    const struct bw_frame frame = bw_frame_above_blocks(NULL, comparison->fs->graph->probes);
    BW_AUTO_ERROR struct bw_error *error = bw_read_raw(
        &frame, image->storage, stripe->offset + piece->stripe_offset, buffer, super->nodesize);
    if (!error && bw_checksum_accepts_block(super->checksum_type, (super->flags & restored) != 0,
                                            buffer, super->nodesize))
        error = bw_node_check(buffer, super->nodesize, bytenr, expectation);
    else
        return NULL;
    const struct bw_disk_header *header = (const void *)buffer;
    return !error && bw_superblock_has_block_id(super, header->fsid) ? image : NULL;
}

/* Compares all mirrors of a block, and leaves one of them in `block`: the copy of the chosen side
 * if it has one. False if there is no valid copy. */
static bool compare_block(struct comparison *comparison, uint64_t bytenr,
                          const struct bw_tree_block_expectation *expectation)
{
    const uint32_t nodesize = comparison->fs->superblock.nodesize;
    struct bw_piece piece;
    BW_AUTO_ERROR struct bw_error *none =
        bw_layout_find(&comparison->layout, bytenr, nodesize, &piece);
    unsigned reference = 0;
    comparison->first = NULL;
    for (unsigned copy = 1; !none && copy <= piece.direct_copies; copy++) {
        const struct bw_image *image =
            read_copy(comparison, &piece, copy, bytenr, expectation, comparison->other);
        if (!image || (comparison->first && image != comparison->side))
            continue;
        uint8_t *const other = comparison->block;
        comparison->block = comparison->other;
        comparison->other = other;
        comparison->first = image;
        reference = copy;
        if (!comparison->side || image == comparison->side)
            break;
    }
    for (size_t i = 0; i < comparison->set->count; i++)
        if (comparison->relations[i] == SAME_BLOCK)
            comparison->relations[i] = NOT_COMPARED;
    for (unsigned copy = 1; reference && copy <= piece.direct_copies; copy++) {
        const struct bw_image *image = comparison->first;
        if (copy != reference)
            image = read_copy(comparison, &piece, copy, bytenr, expectation, comparison->other);
        if (!image)
            continue;
        enum relation *relation = &comparison->relations[image - comparison->set->images];
        if (copy == reference || memcmp(comparison->block, comparison->other, nodesize) == 0) {
            if (*relation == NOT_COMPARED)
                *relation = SAME_BLOCK;
        } else if (image != comparison->first) { /* two copies on one device have other faults */
            *relation = OTHER_BLOCK;
            comparison->different = image;
            comparison->generation = expectation->generation;
        }
    }
    return comparison->first;
}

/* Whether more blocks need not be compared: unless the copies of a side decide, a difference is
 * enough. */
static bool is_decided(const struct comparison *comparison)
{
    return comparison->different && comparison->first != comparison->side;
}

/* Adds the chunk that contains a root of the root tree, which the chunk tree leads to; compares its
 * blocks on the way. False if it is not found, or a difference is. */
static bool find_root_chunk(struct comparison *comparison, uint64_t root)
{
    const struct bw_superblock *super = &comparison->fs->superblock;
    const struct bw_key key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, root};
    struct bw_piece known;
    BW_AUTO_ERROR struct bw_error *missing =
        bw_layout_find(&comparison->layout, root, super->nodesize, &known);
    if (!missing)
        return true;
    struct bw_tree_block_expectation expectation = {.owner = BW_CHUNK_TREE,
                                                    .generation = super->chunk_root.generation,
                                                    .level = super->chunk_root.level};
    uint64_t bytenr = super->chunk_root.bytenr;
    struct bw_node node;
    uint32_t count;
    for (;; expectation.level--) {
        if (!compare_block(comparison, bytenr, &expectation) || is_decided(comparison))
            return false;
        node = bw_node_view(comparison->block, super->nodesize);
        count = bw_node_count_until(&node, &key);
        if (!count)
            return false;
        if (!node.level)
            break;
        const struct bw_node_pointer pointer = bw_node_pointer_at(&node, count - 1);
        bytenr = pointer.bytenr;
        expectation.generation = pointer.generation;
    }
    struct bw_item item;
    struct bw_chunk chunk;
    if (!bw_leaf_item(&node, count - 1, &item) || item.key.type != BW_CHUNK_ITEM ||
        bw_chunk_is_remapped_away(item.data, item.size))
        return false;
    BW_AUTO_ERROR struct bw_error *bad =
        bw_chunk_decode(item.key.offset, item.data, item.size, &chunk);
    if (bad)
        return false;
    struct bw_chunk_info info;
    BW_AUTO_ERROR struct bw_error *failed = bw_chunk_describe(&chunk, &info);
    if (failed)
        return false;
    failed = bw_layout_add_chunk(&comparison->layout, &info);
    free((void *)(uintptr_t)info.stripes);
    return !failed;
}

static void compare_root(struct comparison *comparison, const struct bw_root_pointer *root)
{
    const struct bw_tree_block_expectation expectation = {
        .owner = BW_ROOT_TREE, .generation = root->generation, .level = root->level};
    if (find_root_chunk(comparison, root->bytenr))
        compare_block(comparison, root->bytenr, &expectation);
}

/* Compares the blocks of all devices that are read, without unreadable ones.
 * Fails only if memory runs out. */
static struct bw_error *compare_blocks(struct comparison *comparison)
{
    const struct bw_superblock *super = &comparison->fs->superblock;
    const struct bw_image_set *set = comparison->set;
    size_t devices = 0, position = 0;
    comparison->block = malloc(super->nodesize);
    comparison->other = malloc(super->nodesize);
    comparison->relations = calloc(set->count + 1, sizeof *comparison->relations);
    if (!comparison->block || !comparison->other || !comparison->relations)
        return bw_error_no_memory();
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        struct bw_control_device device = {.child = i, .devid = image->superblock.device.devid};
        if (image->role != BW_IMAGE_DEVICE || image->is_dump)
            continue;
        memcpy(device.uuid, image->superblock.device.uuid, BW_UUID_SIZE);
        BW_TRY(bw_layout_add_device(&comparison->layout, &device));
        devices++;
    }
    if (devices < 2)
        return NULL;
    for (;;) {
        struct bw_chunk chunk;
        struct bw_chunk_info info;
        bool found;
        BW_AUTO_ERROR struct bw_error *bad = bw_system_chunk_next(super, &position, &chunk, &found);
        if (bad || !found)
            break;
        BW_TRY(bw_chunk_describe(&chunk, &info));
        bw_error_free(bw_layout_add_chunk(&comparison->layout, &info));
        free((void *)(uintptr_t)info.stripes);
    }
    compare_root(comparison, &super->root);
    for (size_t i = 0; i < set->count && !is_decided(comparison); i++)
        if (set->images[i].role == BW_IMAGE_DEVICE &&
            !is_same_root(&set->images[i].superblock.root, &super->root))
            compare_root(comparison, &set->images[i].superblock.root);
    return NULL;
}

/* Choosing a side. */

static struct bw_error *refuse(const struct bw_image *a, const struct bw_image *b,
                               uint64_t generation)
{
    if (a->superblock.device.devid > b->superblock.device.devid)
        return refuse(b, a, generation);
    const uint64_t first = a->superblock.device.devid, second = b->superblock.device.devid;
    struct bw_error *error = bw_error_create(
        BW_ERROR_DIVERGED,
        "%s (device %" PRIu64 ", generation %" PRIu64 ") and %s (device %" PRIu64
        ", generation %" PRIu64
        ") have diverged: each was written to without the other, and their generation %" PRIu64
        " differs",
        a->name, first, a->superblock.generation, b->name, second, b->superblock.generation,
        generation);
    return bw_error_advise(bw_error_about(error, a->path),
                           "`side %" PRIu64 "` or `side %" PRIu64
                           "` reads the devices that agree with it",
                           first, second);
}

/* An image that no longer counts as a device. */
static void leave_out(struct bw_fs *fs, struct bw_image *image, const struct bw_image *side,
                      bool has_diverged)
{
    image->role = BW_IMAGE_UNUSED;
    image->is_other_side = true;
    bw_fs_report_text(fs, BW_NOTE, BW_ERROR_USAGE,
                      "%s is not read: device %" PRIu64 " (generation %" PRIu64
                      ") %s device %" PRIu64 " (generation %" PRIu64 ")",
                      image->name, image->superblock.device.devid, image->superblock.generation,
                      has_diverged ? "has diverged from" : "is not of the commit of",
                      side->superblock.device.devid, side->superblock.generation);
}

/* Leaves out all devices that differ from the side. With mirrors of blocks on other devices alone,
 * the side is unknown. */
static struct bw_error *leave_out_others(struct bw_fs *fs, struct comparison *comparison)
{
    const struct bw_image_set *set = comparison->set;
    const struct bw_image *side = comparison->side;
    if (!comparison->different)
        return NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        if (image->role != BW_IMAGE_DEVICE || image == side)
            continue;
        if (comparison->first == side && comparison->relations[i] == OTHER_BLOCK)
            leave_out(fs, image, side, true);
        else if (comparison->first != side || comparison->relations[i] == NOT_COMPARED)
            return bw_error_create(BW_ERROR_DIVERGED,
                                   "%s (device %" PRIu64 ") and %s (device %" PRIu64
                                   ") have no block of generation %" PRIu64
                                   " in common, so whether they agree is unknown: give only the "
                                   "images of one side",
                                   image->name, image->superblock.device.devid, side->name,
                                   side->superblock.device.devid, comparison->generation);
    }
    return NULL;
}

struct bw_error *bw_sides_choose(struct bw_fs *fs, struct bw_image_set *set)
{
    __attribute__((cleanup(close_comparison))) struct comparison comparison = {.fs = fs,
                                                                               .set = set};
    if (!fs->side) {
        /* No devices may have diverged, by their superblocks or by their blocks. */
        for (size_t i = 0; i < set->count; i++)
            for (size_t j = i + 1; j < set->count; j++) {
                const struct bw_image *a = &set->images[i], *b = &set->images[j];
                if (a->role != BW_IMAGE_DEVICE || b->role != BW_IMAGE_DEVICE)
                    continue;
                const uint64_t generation = find_difference(a, b);
                if (generation)
                    return refuse(a, b, generation);
            }
        if (!(fs->superblock.flags & changes_of_blocks))
            BW_TRY(compare_blocks(&comparison));
        if (comparison.different)
            return refuse(comparison.first, comparison.different, comparison.generation);
        return NULL;
    }

    /* The newest image of the chosen device decides which others are read. */
    const struct bw_image *side = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        if (image->role == BW_IMAGE_DEVICE && image->superblock.device.devid == fs->side &&
            (!side || image->superblock.generation > side->superblock.generation))
            side = image;
    }
    if (!side)
        return bw_error_create(BW_ERROR_USAGE, "no image is device %" PRIu64 ", the side to read",
                               fs->side);
    if (fs->alternatives)
        return bw_error_advise(
            bw_error_create(BW_ERROR_USAGE,
                            "a side of devices that have diverged needs one image of each"),
            "give `side` without `alternatives`");
    comparison.side = side;
    fs->superblock = side->superblock;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        if (image->role != BW_IMAGE_DEVICE)
            continue;
        const uint64_t difference = find_difference(image, side);
        if (difference || image->superblock.generation != side->superblock.generation)
            leave_out(fs, image, side, difference);
    }
    BW_TRY(compare_blocks(&comparison));
    return leave_out_others(fs, &comparison);
}
