/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether devices have diverged (see fs/sides.c), by all tree blocks that the check reads. Opening
 * compares only superblocks and the blocks next to them, which do not suffice if one device is much
 * older than the other.
 *
 * Let A be the newest devices, whose trees are checked, and B a device of generation gB. A tree
 * block that the trees refer to and that has a generation g <= gB was in use when B was written
 * last. So the copy on B must be identical. If it is not, the extent tree of B decides, read from
 * the root in the superblock of B:
 *
 * - It has the block with generation g: B belongs to the same history. If its copy is another valid
 *   block, it lost this write. But a valid block of generation g with other contents is from
 * another history.
 * - It has a block of another generation there, or none: at gB, B did not have the tree block that
 * A has had since g. B has diverged from A, not later than the newer one of these generations.
 *
 * If B has the generation of A, it uses the same roots, so only a valid block to which its extent
 * tree refers proves something; the absence of an item would be an error of the extent tree of A.
 * Without any block to compare, the question stays open.
 */
#include "check/device_histories.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "check/blocks.h"
#include "fs/image.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"

/* So that a device full of other blocks does not take hours. */
enum { MOST_LOOKUPS = 10000 };

/* Evidence on one device. */
struct history {
    const struct bw_image *image;
    bool is_stale;
    atomic_uint_fast64_t same;     /* blocks of its time with the same copy */
    uint64_t other, lost, unknown; /* blocks of another history, lost writes, undecided ones */
    uint64_t first;                /* generation of the first block of another history */
    struct bw_tree_block_expectation extent_root; /* of the device's extent tree */
    uint64_t extent_root_bytenr;                  /* 0: not yet searched */
    bool has_no_extent_tree;                      /* its root cannot be read */
};

struct bw_device_histories {
    pthread_mutex_t lock; /* for everything but `same` */
    uint8_t *block;
    bool has_stale;
    unsigned lookups;
    size_t count;
    struct history items[];
};

struct bw_error *bw_device_histories_begin(struct bw_check *check)
{
    const struct bw_fs *fs = check->fs;
    size_t devices = 0;
    for (size_t i = 0; i < fs->image_count; i++)
        devices += fs->images[i].role == BW_IMAGE_DEVICE && !fs->images[i].is_rebuilt;
    if (devices < 2 || fs->alternatives || fs->is_past || check->options->quick)
        return NULL;
    struct bw_device_histories *histories = check->histories =
        calloc(1, sizeof *histories + devices * sizeof *histories->items);
    if (!histories)
        return bw_error_no_memory();
    pthread_mutex_init(&histories->lock, NULL);
    histories->block = malloc(fs->reader.nodesize);
    if (!histories->block)
        return bw_error_no_memory();
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->role != BW_IMAGE_DEVICE || image->is_rebuilt)
            continue;
        struct history *history = &histories->items[histories->count++];
        history->image = image;
        history->is_stale = bw_image_is_stale(fs, image);
        histories->has_stale |= history->is_stale;
    }
    return NULL;
}

void bw_device_histories_free(struct bw_device_histories *histories)
{
    if (!histories)
        return;
    pthread_mutex_destroy(&histories->lock);
    free(histories->block);
    free(histories);
}

/* The device with a mirror of a block; NULL: unknown. */
static struct history *find_history(struct bw_check *check, uint64_t bytenr, unsigned copy)
{
    struct bw_device_histories *histories = check->histories;
    struct bw_mapping mapping = {0};
    BW_AUTO_ERROR struct bw_error *error = bw_fs_map(check->fs, bytenr, 1, copy, &mapping);
    for (size_t i = 0; !error && !mapping.rebuilt && i < histories->count; i++)
        if (histories->items[i].image->superblock.device.devid == mapping.devid)
            return &histories->items[i];
    return NULL;
}

/* The extent tree of a device. */

/* Reads a block as the device has it into histories->block; a block without a copy there, from any
 * other device. False if no such copy is the expected one. */
static bool read_own(struct bw_check *check, const struct history *history, uint64_t bytenr,
                     const struct bw_tree_block_expectation *expectation)
{
    const struct bw_fs *fs = check->fs;
    const struct bw_checked_chunk *chunk = bw_check_chunk(check, bytenr);
    const struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(fs->reader.top));
    unsigned own = 0;
    if (!chunk)
        return false;
    for (unsigned copy = 1; !own && copy <= chunk->copies; copy++)
        own = find_history(check, bytenr, copy) == history ? copy : 0;
    for (unsigned copy = own ? own : 1; copy <= (own ? own : chunk->all_copies); copy++) {
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .mirror = (uint8_t)copy,
                                     .length = fs->reader.nodesize,
                                     .address = bytenr,
                                     .buffer = check->histories->block};
        bw_wind(&frame, fs->reader.top, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        if (error ||
            !bw_checksum_accepts_block(fs->superblock.checksum_type, bw_fs_other_checksums(fs),
                                       request.buffer, request.length))
            continue;
        error = bw_node_check(request.buffer, request.length, bytenr, expectation);
        if (!error)
            return true;
    }
    return false;
}

/* Searches an item in a tree of a device. False if blocks on the way cannot be read; otherwise
 * item->data is NULL if the tree lacks the item. */
static bool find_own(struct bw_check *check, const struct history *history, uint64_t bytenr,
                     struct bw_tree_block_expectation expectation, const struct bw_key *key,
                     struct bw_item *item)
{
    item->data = NULL;
    for (;; expectation.level--) {
        if (!read_own(check, history, bytenr, &expectation))
            return false;
        const struct bw_node node =
            bw_node_view(check->histories->block, check->fs->reader.nodesize);
        const uint32_t count = bw_node_count_until(&node, key);
        if (!count)
            return true;
        if (!node.level) {
            const struct bw_key found = bw_leaf_key(&node, count - 1);
            if (bw_key_compare(&found, key) != 0)
                return true;
            return bw_leaf_item(&node, count - 1, item);
        }
        const struct bw_node_pointer pointer = bw_node_pointer_at(&node, count - 1);
        bytenr = pointer.bytenr;
        expectation.generation = pointer.generation;
    }
}

/* The generation of a block according to the extent tree of a device; 0 if it has none. False if
 * that cannot be read. */
static bool own_generation(struct bw_check *check, struct history *history, uint64_t bytenr,
                           uint8_t level, uint64_t *generation)
{
    const struct bw_key keys[] = {{bytenr, BW_METADATA_ITEM, level},
                                  {bytenr, BW_EXTENT_ITEM, check->fs->reader.nodesize}};
    struct bw_item item;
    *generation = 0;

    /* The root of its extent tree is the same for all blocks. */
    if (!history->extent_root_bytenr && !history->has_no_extent_tree) {
        const struct bw_root_pointer *root = &history->image->superblock.root;
        const struct bw_tree_block_expectation expectation = {
            .owner = BW_ROOT_TREE, .generation = root->generation, .level = root->level};
        const struct bw_key key = {BW_EXTENT_TREE, BW_ROOT_ITEM, 0};
        history->has_no_extent_tree =
            !find_own(check, history, root->bytenr, expectation, &key, &item) || !item.data ||
            item.size < offsetof(struct bw_disk_root_item, generation_v2);
        if (history->has_no_extent_tree)
            return false;
        const struct bw_disk_root_item *disk = (const void *)item.data;
        history->extent_root_bytenr = bw_get64(disk->bytenr);
        history->extent_root =
            (struct bw_tree_block_expectation){.owner = BW_EXTENT_TREE,
                                               .generation = bw_get64(disk->generation),
                                               .level = disk->level};
    }
    if (history->has_no_extent_tree)
        return false;

    for (unsigned i = 0; i < 2; i++) {
        if (!find_own(check, history, history->extent_root_bytenr, history->extent_root, &keys[i],
                      &item))
            return false;
        const struct bw_disk_extent_item *disk = (const void *)item.data;
        if (disk && item.size >= sizeof *disk) {
            *generation = bw_get64(disk->generation);
            return true;
        }
    }
    return true;
}

/* Comparing. */

void bw_device_histories_same(struct bw_check *check, const struct bw_block_pointer *pointer,
                              unsigned copy)
{
    if (!check->histories || !check->histories->has_stale)
        return;
    struct history *history = find_history(check, pointer->bytenr, copy);
    if (history && pointer->expectation.generation <= history->image->superblock.generation)
        history->same++;
}

void bw_device_histories_other(struct bw_check *check, const struct bw_block_pointer *pointer,
                               unsigned copy, unsigned good_copy, const uint8_t *bytes)
{
    if (!check->histories)
        return;
    struct history *history = find_history(check, pointer->bytenr, copy);
    struct history *good = good_copy ? find_history(check, pointer->bytenr, good_copy) : NULL;
    if (!history || history == good)
        return;
    if (good && good->image->superblock.generation < history->image->superblock.generation)
        history = good;
    const uint64_t expected = pointer->expectation.generation;
    if (expected > history->image->superblock.generation || (!history->is_stale && !bytes))
        return;

    const struct bw_disk_header *header = (const void *)bytes;
    const uint64_t found = header ? bw_get64(header->generation) : 0;
    const uint8_t level = pointer->expectation.level;
    pthread_mutex_lock(&check->histories->lock);
    if (check->histories->lookups++ < MOST_LOOKUPS) {
        uint64_t own;
        bool known = own_generation(check, history, pointer->bytenr, level, &own);
        if (known && !own && header && header->level != level) /* which has another key */
            known = own_generation(check, history, pointer->bytenr, header->level, &own);
        const bool is_other = found && found == own;
        if (!known) {
            history->unknown++;
        } else if (own == expected && !is_other) {
            history->lost += header != NULL; /* otherwise, it is only damaged */
        } else if (is_other || history->is_stale) {
            const uint64_t newer = own > expected ? own : expected;
            history->other++;
            if (!history->first || newer < history->first)
                history->first = newer;
        }
    }
    pthread_mutex_unlock(&check->histories->lock);
}

/* Reporting. */

void bw_device_histories_report(struct bw_check *check)
{
    const struct bw_device_histories *histories = check->histories;
    for (size_t i = 0; histories && i < histories->count; i++) {
        const struct history *history = &histories->items[i];
        const struct bw_superblock *super = &history->image->superblock;
        const struct bw_superblock *newest = super;

        /* The device that the trees are read from: the first of the newest other ones. */
        for (size_t k = histories->count; k-- > 0;)
            if (k != i && !histories->items[k].is_stale)
                newest = &histories->items[k].image->superblock;
        const uint64_t devid = super->device.devid;
        struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .devid = devid);
        const char *advice = history->is_stale ? "read only the devices that agree with one of them"
                                               : "give only the images of one of them";
        if (history->other)
            bw_check_find(check, BW_CODE_devices_diverged, &location,
                          "device %" PRIu64 " (generation %" PRIu64 ") and device %" PRIu64
                          " (generation %" PRIu64 ") have diverged in generation %" PRIu64
                          " or before: %" PRIu64 " tree block%s that one uses %s not in the trees "
                          "of the other; %s",
                          newest->device.devid, newest->generation, devid, super->generation,
                          history->first, history->other, bw_plural(history->other),
                          history->other == 1 ? "is" : "are", advice);
        location.row.repairable = true;
        if (history->is_stale && history->lost)
            bw_check_find(check, BW_CODE_device_lost_writes, &location,
                          "%" PRIu64 " tree block%s of the trees of its generation, %" PRIu64
                          ", %s not on it",
                          history->lost, bw_plural(history->lost), super->generation,
                          history->lost == 1 ? "is" : "are");
        location.row.repairable = false;
        if (!history->is_stale || history->other)
            continue;
        if (history->unknown)
            bw_check_find(check, BW_CODE_device_undecided, &location,
                          "%" PRIu64 " tree block%s on it %s, and its own trees cannot be read",
                          history->unknown, bw_plural(history->unknown),
                          history->unknown == 1 ? "differs" : "differ");
        else if (!history->same && !history->lost)
            bw_check_find(check, BW_CODE_device_undecided, &location,
                          "no tree block of generation %" PRIu64
                          " or before has a copy on it that could be compared",
                          super->generation);
    }
}
