/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `log`: whether a mount can replay the changes fsynced after the last transaction.
 *
 * The blocks of the log trees are checked as those of other trees, without the rules for committed
 * trees. Each log is loaded, and the stored data that its replay would add to files need checksums,
 * in the log itself or in the checksum tree; if data are checked, the checksums in the log are
 * compared with them. Then the replay is rehearsed in memory, which finds what a mount refuses. The
 * log of a subvolume that no longer exists is skipped, as by a mount.
 *
 * At the end, the space of the log is compared. The extent tree does not contain it before the next
 * transaction: a replay adds a reference to data that the extent tree has with the same address and
 * length, and allocates all others. So their space must be free, and so must the space of tree
 * blocks. Source: replay_one_extent() in the kernel's fs/btrfs/tree-log.c.
 */
#include "replay/replay.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "check/check.h"
#include "check/data.h"
#include "data/fetch.h"
#include "data/references.h"
#include "ondisk/checksum.h"
#include "ondisk/items.h"

static struct bw_tree root_of_logs(const struct bw_check *check)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    return (struct bw_tree){
        BW_TREE_LOG,
        {superblock->log_root, superblock->generation + 1, superblock->log_root_level},
        0};
}

/* The space of the log. */

void bw_log_claim_space(struct bw_check *check, uint64_t start, uint64_t length, uint64_t subvolume,
                        uint64_t inode)
{
    pthread_mutex_lock(&check->lock);
    if (bw_log_claims_push(&check->log_claims,
                           (struct bw_log_claim){start, start + length, subvolume, inode}))
        check->no_memory = true;
    pthread_mutex_unlock(&check->lock);
}

static int by_range(const void *first, const void *second)
{
    const struct bw_log_claim *a = first, *b = second;
    const uint64_t left[] = {a->start, a->end, a->inode};
    const uint64_t right[] = {b->start, b->end, b->inode};
    return BW_COMPARE_ALL(left, right);
}

static struct bw_finding location_of(const struct bw_log_claim *claim)
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
        key = bw_key_before(finder->first);
    }
    return NULL;
}

struct bw_error *bw_log_check_space(struct bw_check *check)
{
    struct bw_log_claim *claims = check->log_claims.items;
    size_t count = 0;
    if (check->no_memory)
        return bw_error_no_memory();
    if (!check->log_claims.count)
        return NULL;
    qsort(claims, check->log_claims.count, sizeof *claims, by_range);

    /* Several pieces of files may have an extent in common; nothing else may overlap. */
    for (size_t i = 0; i < check->log_claims.count; i++) {
        const struct bw_log_claim *claim = &claims[i], *before = count ? &claims[count - 1] : NULL;
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
    check->log_claims.count = count;

    /* The chunks. A tree block outside of chunks was found when it was to be read. */
    for (size_t i = 0; i < count; i++) {
        const struct bw_log_claim *claim = &claims[i];
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

    /* The last extent of each extent tree that begins before the end of the claim. */
    struct bw_tree_reader reader = check->fs->reader;
    reader.adopter = NULL; /* lost leaves are not replaced */
    for (size_t k = 0; k < check->trees.entries.count; k++) {
        const struct bw_tree *tree = &check->trees.entries.items[k].tree;
        BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
        bw_leaf_finder_init(&finder, &reader, tree);
        for (size_t i = 0; tree->id == BW_EXTENT_TREE && i < count; i++) {
            const struct bw_log_claim *claim = &claims[i];
            const struct bw_finding location = location_of(claim);
            struct bw_extent_entry extent;
            if (!bw_check_should_continue(check, 0))
                break;
            BW_TRY(find_before(check, &finder, claim->end, &extent));
            const bool is_same = claim->inode && !extent.is_block &&
                                 extent.bytenr == claim->start &&
                                 extent.length == claim->end - claim->start;
            bool overlaps = extent.length > 0;
            if (extent.bytenr <= claim->start)
                overlaps = extent.length > claim->start - extent.bytenr;
            if (!is_same && overlaps)
                bw_check_find(check, BW_CODE_log_overlap, &location,
                              "the log uses it, but the extent tree has %" PRIu64
                              " bytes at %" PRIu64,
                              extent.length, extent.bytenr);
        }
    }
    return NULL;
}

/* Adds the data that a log tree refers to or, if it is the root of all, the trees that it names. */
static struct bw_error *add_data_ranges(const struct bw_check *check, const struct bw_tree *tree,
                                        bool is_root_of_all, struct bw_range_set *ranges,
                                        bool *complete)
{
    struct bw_tree_reader reader = check->fs->reader;
    struct bw_item_range items;
    struct bw_error *error = NULL;
    reader.adopter = NULL; /* lost leaves are not replaced */
    bw_item_range_begin(&items, &reader, tree, (struct bw_key){0}, BW_KEY_MAX);
    while (!error && bw_item_range_next(&items)) {
        const struct bw_item *item = &items.item;
        const struct bw_disk_file_extent *disk = (const void *)item->data;
        struct bw_listed_tree named;
        *complete &= !items.error;
        if (items.error)
            continue;
        if (is_root_of_all && item->key.type == BW_ROOT_ITEM && bw_tree_list_decode(item, &named))
            error = add_data_ranges(check, &named.tree, false, ranges, complete);
        if (is_root_of_all || item->key.type != BW_EXTENT_DATA || item->size < sizeof *disk ||
            disk->type == BW_FILE_EXTENT_INLINE)
            continue;
        const uint64_t start = bw_get64(disk->disk_bytenr), length = bw_get64(disk->disk_num_bytes);
        if (start && length <= UINT64_MAX - start)
            error = bw_range_set_insert(ranges, start, start + length);
    }
    return bw_item_range_end(&items, error);
}

struct bw_error *bw_log_data_ranges(struct bw_check *check, struct bw_range_set *ranges,
                                    bool *complete)
{
    const struct bw_tree root = root_of_logs(check);
    *complete = true;
    if (root.root.bytenr && !check->fs->is_past)
        BW_TRY(add_data_ranges(check, &root, true, ranges, complete));
    bw_range_set_join(ranges);
    return NULL;
}

/* The contents of the logs. */

struct log_check {
    struct bw_check *check;
    uint64_t subvolume;
    struct bw_log log;
    struct bw_log_claims stored;        /* data of files that need checksums */
    struct bw_data_checksums checksums; /* of the last transaction */
};

static void log_check_free(struct log_check *self)
{
    bw_data_checksums_free(&self->checksums);
    bw_log_claims_free(&self->stored);
    bw_log_free(&self->log);
}

/* No kernel writes longer extents. */
enum { LONGEST = 1 << 30 };

/* The checksums that the log has from an address on; `*length` is set to the bytes they are about,
 * at most what it was. NULL: none. */
static const uint8_t *checksums_in_log(const struct log_check *self, uint64_t logical,
                                       uint64_t *length)
{
    const struct bw_superblock *superblock = &self->check->fs->superblock;
    const size_t size = bw_checksum_size(superblock->checksum_type);
    const struct bw_key behind = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, logical + 1};
    const size_t next = bw_log_first(&self->log, &behind);
    const struct bw_item *item = next ? &self->log.items.items[next - 1] : NULL;
    if (!item || item->key.objectid != BW_EXTENT_CSUM_OBJECT || item->key.type != BW_EXTENT_CSUM)
        return NULL;
    const uint64_t skipped = (logical - item->key.offset) / superblock->sectorsize;
    if (skipped >= item->size / size)
        return NULL;
    const uint64_t rest = (item->size / size - skipped) * superblock->sectorsize;
    *length = rest < *length ? rest : *length;
    return item->data + skipped * size;
}

/* A part of a range without checksums in the log: `*length` is set to where the answer changes. */
static struct bw_error *check_part_in_tree(struct log_check *self, const struct bw_log_claim *claim,
                                           uint64_t logical, uint64_t *length)
{
    enum { PART = 1 << 20 };
    const uint64_t part = *length < PART ? *length : PART;
    uint8_t ignored[PART / BW_MIN_SECTORSIZE * 32];
    struct bw_checksum_run run;
    BW_TRY(bw_data_checksums_get(&self->checksums, logical, part, ignored, &run));
    *length = run.length;
    /* Checksums in the log may begin inside the range that the tree lacks. */
    for (uint64_t at = self->check->fs->superblock.sectorsize; !run.known && at < *length;
         at += self->check->fs->superblock.sectorsize) {
        uint64_t some = 1;
        if (checksums_in_log(self, logical + at, &some))
            *length = at;
    }
    if (!run.known && !run.lost) {
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_INODE, .tree = self->subvolume, .inode = claim->inode,
                       .logical = logical, .length = *length);
        bw_check_find(self->check, BW_CODE_log_checksum, &location,
                      "neither the log nor the checksum tree has checksums of these data");
    }
    return NULL;
}

/* Checks the stored data of the files in a log: claims their space, and looks for checksums. A
 * replay passes over inodes without links, and data of some inodes have no checksums. */
static struct bw_error *check_log(struct bw_check *check, const struct bw_listed_tree *tree)
{
    const uint32_t sectorsize = check->fs->superblock.sectorsize;
    BW_SCOPED(log_check)
    struct log_check self = {.check = check, .subvolume = tree->root_key.offset};
    bw_data_checksums_init(&self.checksums, check->fs);
    BW_TRY(bw_log_load(check->fs, &tree->tree.root, "log tree", &self.log));
    struct bw_inode inode = {0};
    uint64_t known = 0; /* number of that inode */
    for (size_t i = 0; i < self.log.items.count; i++) {
        const struct bw_item *item = &self.log.items.items[i];
        if (item->key.type == BW_INODE_ITEM)
            known = bw_inode_decode(item, &inode) ? item->key.objectid : 0;
        if (item->key.type != BW_EXTENT_DATA || known != item->key.objectid || !inode.link_count)
            continue;
        struct bw_file_extent extent;
        BW_AUTO_ERROR struct bw_error *bad = bw_file_extent_decode(item, sectorsize, &extent);
        if (bad || extent.type == BW_FILE_EXTENT_INLINE || !extent.disk_bytenr)
            continue;
        if (extent.disk_num_bytes && extent.disk_bytenr <= UINT64_MAX - extent.disk_num_bytes)
            bw_log_claim_space(check, extent.disk_bytenr, extent.disk_num_bytes, self.subvolume,
                               known);
        if (extent.type != BW_FILE_EXTENT_REGULAR || inode.flags & BW_INODE_NODATASUM)
            continue;
        uint64_t start = extent.disk_bytenr, length = extent.disk_num_bytes;
        if (extent.compression == BW_COMPRESS_NONE) {
            start += extent.offset;
            length = extent.num_bytes;
        }
        if (length <= LONGEST && start <= UINT64_MAX - length && bw_check_chunk(check, start))
            BW_TRY(bw_log_claims_push(
                &self.stored, (struct bw_log_claim){start, start + length, self.subvolume, known}));
    }
    if (self.log.losses.count)
        return NULL;

    /* The checksums. Ranges that several files share are checked once. */
    struct bw_data_check *data = check->options->data ? bw_data_check_begin(check) : NULL;
    if (check->options->data && !data)
        return bw_error_no_memory();
    struct bw_error *error = NULL;
    uint64_t done = 0;
    bw_log_claims_sort(&self.stored, by_range);
    for (size_t i = 0; !error && i < self.stored.count && bw_check_should_continue(check, 0); i++) {
        const struct bw_log_claim *claim = &self.stored.items[i];
        uint64_t next = bw_max(claim->start, done);
        for (uint64_t length; next < claim->end && !error; next += length) {
            length = claim->end - next;
            const uint8_t *checksums = checksums_in_log(&self, next, &length);
            const struct bw_checked_chunk *chunk = bw_check_chunk(check, next);
            if (!checksums)
                error = check_part_in_tree(&self, claim, next, &length);
            else if (data && chunk && length <= chunk->length - (next - chunk->logical))
                error = bw_data_check_add(data,
                                          &(struct bw_data_range){chunk, next, length, checksums});
        }
        done = bw_max(claim->end, done);
    }
    return bw_data_check_end(data, error);
}

static struct bw_error *report_refused(void *context, uint64_t subvolume, uint64_t inode,
                                       const char *names)
{
    const struct bw_finding location =
        BW_FINDING(BW_TOUCHES_INODE, .tree = subvolume, .inode = inode);
    bw_check_find(context, BW_CODE_log_refused, &location,
                  "the log gives the directory several names: %s", names);
    return NULL;
}

struct bw_error *bw_pass_log(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    if (!fs->superblock.log_root || fs->is_past)
        return NULL;

    /* The blocks: first of the root tree of the logs, then of the logs of existing subvolumes. */
    struct bw_listed_tree root = {.tree = root_of_logs(check)};
    BW_SCOPED(bw_listed_trees) struct bw_listed_trees logs = {0};
    const uint64_t damages = fs->damages;
    BW_TRY(bw_walk_trees(check, &root, 1, true));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &root.tree, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_listed_tree tree;
        if (item->key.type != BW_ROOT_ITEM || !bw_tree_list_decode(item, &tree))
            continue;
        const struct bw_listed_tree *subvolume = bw_tree_list_find(&check->trees, item->key.offset);
        if (subvolume && subvolume->references)
            BW_TRY(bw_listed_trees_push(&logs, tree));
    }
    BW_TRY(bw_fs_items_error(&items));
    BW_TRY(bw_walk_trees(check, logs.items, logs.count, true));

    /* Their data, then the replay, unless blocks are lost: these are findings already. */
    for (size_t i = 0; i < logs.count; i++)
        BW_TRY(check_log(check, &logs.items[i]));
    if (fs->ignores_log && fs->damages == damages)
        BW_TRY(bw_replay_rehearse(fs, &(struct bw_rehearsal){report_refused, check}));
    return check->extents_known ? bw_log_check_space(check) : NULL;
}
