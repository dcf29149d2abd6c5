/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space occupied by tree blocks and data of the log. A replay adds a reference to data that the
 * extent tree has with the same address and length, and allocates all others: their space must be
 * free, and so must the space of tree blocks. Source: replay_one_extent() in the kernel's
 * fs/btrfs/tree-log.c.
 */
#include "check/log_space.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "data/references.h"

/* The space of one block or piece of a file. */
struct claim {
    uint64_t start, end;
    uint64_t subvolume, inode; /* of data; 0: it is a tree block */
};

BW_VECTOR(claims, struct claim);

struct bw_log_space {
    pthread_mutex_t lock;
    struct claims claims;
    bool no_memory;
};

struct bw_log_space *bw_log_space_create(void)
{
    struct bw_log_space *space = calloc(1, sizeof *space);
    if (space)
        pthread_mutex_init(&space->lock, NULL);
    return space;
}

void bw_log_space_free(struct bw_log_space *space)
{
    if (!space)
        return;
    pthread_mutex_destroy(&space->lock);
    claims_free(&space->claims);
    free(space);
}

static void add_claim(struct bw_log_space *space, const struct claim *claim)
{
    pthread_mutex_lock(&space->lock);
    if (claims_push(&space->claims, *claim))
        space->no_memory = true;
    pthread_mutex_unlock(&space->lock);
}

void bw_log_space_block(struct bw_log_space *space, uint64_t bytenr, uint32_t length)
{
    add_claim(space, &(struct claim){bytenr, bytenr + length, 0, 0});
}

void bw_log_space_data(struct bw_log_space *space, uint64_t bytenr, uint64_t length,
                       uint64_t subvolume, uint64_t inode)
{
    if (length && bytenr <= UINT64_MAX - length)
        add_claim(space, &(struct claim){bytenr, bytenr + length, subvolume, inode});
}

static int by_range(const void *first, const void *second)
{
    const struct claim *a = first, *b = second;
    const uint64_t left[] = {a->start, a->end, a->inode};
    const uint64_t right[] = {b->start, b->end, b->inode};
    return BW_COMPARE_ALL(left, right);
}

static struct bw_finding location_of(const struct claim *claim)
{
    struct bw_finding location =
        BW_FINDING(BW_TOUCHES_NOTHING, .tree = claim->inode ? claim->subvolume : BW_TREE_LOG,
                   .logical = claim->start, .length = claim->end - claim->start);
    if (claim->inode) {
        location.row.inode = claim->inode;
        location.touches = BW_TOUCHES_INODE;
    }
    return location;
}

/* The data of all log trees, without the results of the pass `log`. */

struct log_data {
    struct bw_check *check;
    struct bw_range_set *ranges;
    bool lost;
};

static struct bw_error *on_lost(void *context, const struct bw_block_pointer *pointer,
                                struct bw_error *error)
{
    struct log_data *data = context;
    (void)pointer;
    const bool no_memory = error->code == BW_ERROR_NO_MEMORY;
    data->lost = true;
    if (!no_memory)
        bw_error_free(error);
    return no_memory ? error : NULL;
}

static struct bw_error *add_data_ranges(void *context, const struct bw_node *leaf)
{
    const struct log_data *data = context;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        const struct bw_disk_file_extent *disk = (const void *)item.data;
        if (item.key.type != BW_EXTENT_DATA || item.size < sizeof *disk ||
            disk->type == BW_FILE_EXTENT_INLINE)
            continue;
        const uint64_t start = bw_get64(disk->disk_bytenr), length = bw_get64(disk->disk_num_bytes);
        if (start && length <= UINT64_MAX - start)
            BW_TRY(bw_range_set_insert(data->ranges, start, start + length));
    }
    return NULL;
}

static struct bw_error *scan_log_trees(void *context, const struct bw_node *leaf)
{
    struct log_data *data = context;
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = add_data_ranges, .lost = on_lost,
                                 .context = data};
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_listed_tree tree;
        if (item.key.type == BW_ROOT_ITEM && bw_tree_list_decode(&item, &tree))
            BW_TRY(bw_tree_scan(&data->check->fs->reader, &tree.tree, &scan));
    }
    return NULL;
}

struct bw_error *bw_log_data_ranges(struct bw_check *check, struct bw_range_set *ranges,
                                    bool *complete)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    struct log_data data = {.check = check, .ranges = ranges};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = scan_log_trees, .lost = on_lost,
                                 .context = &data};
    const struct bw_tree root = {
        BW_TREE_LOG,
        {superblock->log_root, superblock->generation + 1, superblock->log_root_level},
        0};
    if (superblock->log_root && !check->fs->is_past)
        BW_TRY(bw_tree_scan(&check->fs->reader, &root, &scan));
    bw_range_set_join(ranges);
    *complete = !data.lost;
    return NULL;
}

/* The extent tree. */

/* Finds the last extent that begins before an address; `extent->length` is 0 if no extent does, or
 * if it may be lost. Its references, and block groups, come after its item, a few leaves at most.
 */
static struct bw_error *find_before(const struct bw_check *check, struct bw_leaf_finder *finder,
                                    uint64_t address, struct bw_extent_entry *extent)
{
    enum { MOST_LEAVES = 64 };
    static const struct bw_key least;
    struct bw_key key = {address - 1, UINT8_MAX, UINT64_MAX};
    struct bw_item item;
    *extent = (struct bw_extent_entry){0};
    for (unsigned i = 0; i < MOST_LEAVES; i++) {
        BW_TRY(bw_find_leaf(finder, &key));
        if (finder->lost)
            return NULL;
        for (int64_t slot = bw_leaf_last_until(finder, &key); slot >= 0; slot--)
            if (bw_leaf_item(&finder->leaf, (uint32_t)slot, &item) &&
                bw_extent_entry_decode(check->fs, &item, extent))
                return NULL;
        if (bw_key_compare(&finder->first, &least) == 0)
            return NULL;
        key = finder->first;
        if (!key.offset--) { /* each borrows from the part before it, if it was 0 */
            if (!key.type--)
                key.objectid--;
        }
    }
    return NULL;
}

/* Compares each claim with the last extent that begins before its end. */
static struct bw_error *compare_extents(struct bw_log_space *space, struct bw_check *check,
                                        const struct bw_tree *tree)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_tree_reader reader = check->fs->reader;
    reader.adopter = NULL; /* lost leaves are not replaced */
    bw_leaf_finder_init(&finder, &reader, tree);
    for (size_t i = 0; i < space->claims.count && bw_check_should_continue(check, 0); i++) {
        const struct claim *claim = &space->claims.items[i];
        const struct bw_finding location = location_of(claim);
        struct bw_extent_entry extent;
        BW_TRY(find_before(check, &finder, claim->end, &extent));
        const bool is_same = claim->inode && !extent.is_block && extent.bytenr == claim->start &&
                             extent.length == claim->end - claim->start;
        bool overlaps = extent.length > 0;
        if (extent.bytenr <= claim->start)
            overlaps = extent.length > claim->start - extent.bytenr;
        if (!is_same && overlaps)
            bw_check_find(check, BW_CODE_log_overlap, &location,
                          "the log uses it, but the extent tree has %" PRIu64 " bytes at %" PRIu64,
                          extent.length, extent.bytenr);
    }
    return NULL;
}

struct bw_error *bw_log_space_check(struct bw_log_space *space, struct bw_check *check)
{
    struct claim *claims = space->claims.items;
    size_t count = 0;
    if (space->no_memory)
        return bw_error_no_memory();
    if (!space->claims.count)
        return NULL;
    qsort(claims, space->claims.count, sizeof *claims, by_range);

    /* Several pieces of files may have an extent in common; nothing else may overlap. */
    for (size_t i = 0; i < space->claims.count; i++) {
        const struct claim *claim = &claims[i], *before = count ? &claims[count - 1] : NULL;
        const bool overlaps = before && claim->start < before->end;
        if (overlaps && before->inode && claim->inode && claim->start == before->start &&
            claim->end == before->end)
            continue;
        const struct bw_finding location = location_of(claim);
        if (overlaps)
            bw_check_find(check, BW_CODE_log_overlap, &location,
                          "the log also uses %" PRIu64 " bytes at %" PRIu64,
                          before->end - before->start, before->start);
        claims[count++] = *claim;
    }
    space->claims.count = count;

    /* The chunks. A tree block outside of chunks was found when it was to be read. */
    for (size_t i = 0; i < count; i++) {
        const struct claim *claim = &claims[i];
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, claim->start);
        const struct bw_finding location = location_of(claim);
        const uint64_t kinds = claim->inode ? BW_GROUP_DATA : BW_GROUP_METADATA | BW_GROUP_SYSTEM;
        if (!chunk && !claim->inode)
            continue;
        if (!chunk || claim->end - chunk->logical > chunk->length)
            bw_check_find(check, BW_CODE_extent_outside, &location,
                          "the log has an extent that is not inside a chunk");
        else if (!(chunk->type & kinds))
            bw_check_find(check, BW_CODE_extent_kind, &location,
                          "the log has %s in a chunk of another type",
                          claim->inode ? "data" : "a tree block");
    }

    for (size_t i = 0; i < check->trees.entries.count; i++)
        if (check->trees.entries.items[i].tree.id == BW_EXTENT_TREE)
            BW_TRY(compare_extents(space, check, &check->trees.entries.items[i].tree));
    return NULL;
}
