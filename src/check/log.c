/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `log`: whether a mount can replay the changes fsynced after the last transaction.
 *
 * The blocks of the log trees are checked as those of other trees, without the rules for committed
 * trees. Each log is loaded, and the stored data that its replay would add to files need checksums,
 * in the log itself or in the checksum tree; with --data, the checksums in the log are compared
 * with the data. Then the replay is rehearsed in memory, which finds what a mount refuses, and the
 * space of the log is compared with the extent tree. The log of a subvolume that no longer exists
 * is skipped, as by a mount.
 */
#include "replay/replay.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"
#include "check/check.h"
#include "check/data.h"
#include "check/log_space.h"
#include "data/fetch.h"
#include "ondisk/checksum.h"
#include "ondisk/items.h"

/* Stored data that some file of the log refers to. */
struct stored {
    uint64_t logical, length;
    uint64_t inode;
};

BW_VECTOR(stored_list, struct stored);

struct log_check {
    struct bw_check *check;
    uint64_t subvolume;
    const struct bw_log *log;
    struct stored_list stored;
    struct bw_data_checksums checksums; /* of the last transaction */
    struct bw_data_check *data;         /* NULL: data are not read */
};

/* No kernel writes longer extents. */
enum { LONGEST = 1 << 30 };

/* Lists the stored data of the files in the log. A replay passes over inodes without links, and
 * data of some inodes have no checksums. */
static struct bw_error *collect_extents(struct log_check *self)
{
    const uint32_t sectorsize = self->check->fs->superblock.sectorsize;
    struct bw_inode inode = {0};
    uint64_t known = 0; /* number of that inode */
    for (size_t i = 0; i < self->log->items.count; i++) {
        const struct bw_item *item = &self->log->items.items[i];
        if (item->key.type == BW_INODE_ITEM)
            known = bw_inode_decode(item, &inode) ? item->key.objectid : 0;
        if (item->key.type != BW_EXTENT_DATA || known != item->key.objectid || !inode.link_count)
            continue;
        struct bw_file_extent extent;
        BW_AUTO_ERROR struct bw_error *bad = bw_file_extent_decode(item, sectorsize, &extent);
        if (bad || extent.type == BW_FILE_EXTENT_INLINE || !extent.disk_bytenr)
            continue;
        bw_log_space_data(self->check->log_space, extent.disk_bytenr, extent.disk_num_bytes,
                          self->subvolume, known);
        if (extent.type != BW_FILE_EXTENT_REGULAR || inode.flags & BW_INODE_NODATASUM)
            continue;
        struct stored stored = {extent.disk_bytenr, extent.disk_num_bytes, known};
        if (extent.compression == BW_COMPRESS_NONE) {
            stored.logical += extent.offset;
            stored.length = extent.num_bytes;
        }
        if (stored.length <= LONGEST && stored.logical <= UINT64_MAX - stored.length &&
            bw_check_chunk(self->check, stored.logical))
            BW_TRY(stored_list_push(&self->stored, stored));
    }
    return NULL;
}

/* The checksums that the log has from an address on; `*length` is set to the bytes they are about,
 * at most what it was. NULL: none. */
static const uint8_t *checksums_in_log(const struct log_check *self, uint64_t logical,
                                       uint64_t *length)
{
    const struct bw_superblock *superblock = &self->check->fs->superblock;
    const size_t size = bw_checksum_size(superblock->checksum_type);
    const struct bw_key behind = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, logical + 1};
    const size_t next = bw_log_first(self->log, &behind);
    const struct bw_item *item = next ? &self->log->items.items[next - 1] : NULL;
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
static struct bw_error *check_part_in_tree(struct log_check *self, const struct stored *stored,
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
            BW_FINDING(BW_TOUCHES_INODE, .tree = self->subvolume, .inode = stored->inode,
                       .logical = logical, .length = *length);
        bw_check_find(self->check, BW_CODE_log_checksum, &location,
                      "neither the log nor the checksum tree has checksums of these data");
    }
    return NULL;
}

/* Checks the checksums of all data in the list. Ranges that several files share are checked once.
 */
static struct bw_error *check_stored(struct log_check *self)
{
    uint64_t done = 0;
    if (self->stored.count)
        qsort(self->stored.items, self->stored.count, sizeof *self->stored.items, bw_compare_first);
    for (size_t i = 0; i < self->stored.count && bw_check_should_continue(self->check, 0); i++) {
        const struct stored *stored = &self->stored.items[i];
        const uint64_t end = stored->logical + stored->length;
        uint64_t next = stored->logical > done ? stored->logical : done;
        for (uint64_t length; next < end; next += length) {
            length = end - next;
            const uint8_t *checksums = checksums_in_log(self, next, &length);
            const struct bw_checked_chunk *chunk = bw_check_chunk(self->check, next);
            if (!checksums)
                BW_TRY(check_part_in_tree(self, stored, next, &length));
            else if (self->data && chunk && length <= chunk->length - (next - chunk->logical))
                BW_TRY(bw_data_check_add(self->data,
                                         &(struct bw_summed){chunk, next, length, checksums}));
        }
        done = end > done ? end : done;
    }
    return NULL;
}

static struct bw_error *check_log(struct bw_check *check, const struct bw_listed_tree *tree)
{
    struct bw_log log = {0};
    struct log_check self = {.check = check, .subvolume = tree->root_key.offset, .log = &log};
    struct bw_error *error = bw_log_load(check->fs, &tree->tree.root, "log tree", &log);
    if (check->options->data)
        self.data = bw_data_check_begin(check);
    bw_data_checksums_init(&self.checksums, check->fs);
    if (!error && check->options->data && !self.data)
        error = bw_error_no_memory();
    if (!error)
        error = collect_extents(&self);
    if (!error && !log.losses.count)
        error = check_stored(&self);
    error = bw_data_check_end(self.data, error);
    bw_data_checksums_free(&self.checksums);
    stored_list_free(&self.stored);
    bw_log_free(&log);
    return error;
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

/* Lists the log trees of existing subvolumes. */
static struct bw_error *find_logs(const struct bw_check *check, const struct bw_tree *root,
                                  struct bw_listed_trees *logs)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, root, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_listed_tree tree;
        if (item->key.type != BW_ROOT_ITEM || !bw_tree_list_decode(item, &tree))
            continue;
        const struct bw_listed_tree *subvolume = bw_tree_list_find(&check->trees, item->key.offset);
        if (subvolume && subvolume->references)
            BW_TRY(bw_listed_trees_push(logs, tree));
    }
    return bw_fs_items_error(&items);
}

struct bw_error *bw_pass_log(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    const struct bw_superblock *superblock = &fs->superblock;
    if (!superblock->log_root || fs->is_past)
        return NULL;

    /* The blocks: first of the root tree of the logs, then of the logs. */
    struct bw_listed_tree root = {
        .tree = {BW_TREE_LOG,
                 {superblock->log_root, superblock->generation + 1, superblock->log_root_level},
                 0}};
    struct bw_listed_trees logs = {0};
    const uint64_t damages = fs->damages;
    check->log_space = bw_log_space_create();
    struct bw_error *error =
        check->log_space ? bw_walk_trees(check, &root, 1, true) : bw_error_no_memory();
    if (!error)
        error = find_logs(check, &root.tree, &logs);
    if (!error)
        error = bw_walk_trees(check, logs.items, logs.count, true);

    /* Their data, then the replay, unless blocks are lost: these are findings already. */
    for (size_t i = 0; !error && i < logs.count; i++)
        error = check_log(check, &logs.items[i]);
    if (!error && fs->ignores_log && fs->damages == damages)
        error = bw_replay_rehearse(fs, &(struct bw_rehearsal){report_refused, check});
    if (!error && check->extents_known)
        error = bw_log_space_check(check->log_space, check);
    bw_listed_trees_free(&logs);
    return error;
}
