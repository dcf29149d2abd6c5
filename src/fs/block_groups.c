/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block groups: how much of each chunk is used. In the block group tree they lie side by side; in
 * the extent tree, those of a file system that has no such tree, extents lie between them, so each
 * one is searched for. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "fs/fs.h"

struct bw_block_groups {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    bool reported; /* that there is no tree */
};

struct bw_error *bw_block_groups_open(struct bw_fs *fs, struct bw_block_groups **result)
{
    bool own_tree = fs->block_group_tree.id != 0;
    struct bw_block_groups *groups = *result = calloc(1, sizeof *groups);
    if (!groups)
        return bw_error_no_memory();
    groups->fs = fs;
    bw_leaf_finder_init(&groups->finder, &fs->reader,
                        own_tree ? &fs->block_group_tree : &fs->extent_tree);
    if (!own_tree) /* the next leaves have extents: they need not be announced */
        groups->finder.advised = BW_KEY_MAX;
    return NULL;
}

void bw_block_groups_close(struct bw_block_groups *groups)
{
    if (groups)
        bw_leaf_finder_free(&groups->finder);
    free(groups);
}

/* False if the item is cut off. */
static bool decode(const struct bw_item *item, struct bw_block_group_info *group)
{
    const struct bw_disk_block_group *disk = (const void *)item->data;
    if (item->size < sizeof *disk)
        return false;
    *group = (struct bw_block_group_info){.logical = item->key.objectid,
                                          .length = item->key.offset,
                                          .used = bw_get64(disk->used),
                                          .flags = bw_get64(disk->flags)};
    return true;
}

static struct bw_error *lost(const struct bw_key *key)
{
    return bw_error_create(BW_ERROR_CORRUPT, "block group %" PRIu64 " is lost", key->objectid);
}

static struct bw_error *lose_tree(struct bw_block_groups *groups, const struct bw_key *key)
{
    if (!groups->reported)
        bw_fs_report(groups->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "the tree with the block groups is lost"));
    groups->reported = true;
    return lost(key);
}

/* There is no item: is it lost? */
static struct bw_error *not_found(struct bw_block_groups *groups, const struct bw_key *key)
{
    struct bw_leaf_finder *finder = &groups->finder;
    uint64_t block = bw_leaf_lost_block(finder, key);
    if (!block)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no block group %" PRIu64,
                               key->objectid);
    bw_fs_report_lost(groups->fs, block, finder->error ? BW_TAKE(finder->error) : lost(key));
    return lost(key);
}

struct bw_error *bw_block_groups_find(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group)
{
    const struct bw_key key = {logical, BW_BLOCK_GROUP_ITEM, UINT64_MAX};
    struct bw_leaf_finder *finder = &groups->finder;
    struct bw_item item;
    if (!finder->tree.id)
        return lose_tree(groups, &key);
    BW_TRY(bw_find_leaf(finder, &key));
    int64_t slot = finder->lost ? -1 : bw_leaf_last_until(finder, &key);
    bool found = slot >= 0 && bw_leaf_item(&finder->leaf, (uint32_t)slot, &item) &&
                 item.key.objectid == logical && item.key.type == BW_BLOCK_GROUP_ITEM;
    if (!found)
        return not_found(groups, &key);
    if (decode(&item, group))
        return NULL;
    bw_fs_report(groups->fs, BW_DAMAGE, lost(&key));
    return lost(&key);
}
