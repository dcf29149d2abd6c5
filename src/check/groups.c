/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the block groups. Those in the extent tree are searched for, as a mount does: between
 * them lie the items of all extents. */
#include "check/groups.h"
#include "base/compare.h"

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/search.h"
#include "base/vector.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"

static struct bw_error *add_group(struct bw_check *check, const struct bw_item *item)
{
    struct bw_group_list *list = &check->groups;
    const struct bw_disk_block_group *disk = (const void *)item->data;
    if (item->key.type != BW_BLOCK_GROUP_ITEM || item->size < sizeof *disk)
        return NULL;
    return bw_checked_groups_push(&list->groups, (struct bw_checked_group){
                                                     .start = item->key.objectid,
                                                     .length = item->key.offset,
                                                     .used = bw_get64(disk->used),
                                                     .flags = bw_get64(disk->flags),
                                                 });
}

/* A conversion that was interrupted leaves some block groups in either tree. */
struct bw_error *bw_check_load_groups(struct bw_check *check)
{
    const struct bw_check_options *options = check->options;
    const struct bw_superblock *superblock = &check->fs->superblock;
    const bool own_tree = (superblock->compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE) ||
                          (superblock->incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
    struct bw_group_list *list = &check->groups;
    if (list->loaded)
        return NULL;
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    if (!bw_tree_list_find(&check->trees, own_tree ? BW_BLOCK_GROUP_TREE : BW_EXTENT_TREE))
        list->incomplete = true;
    if (bw_tree_list_find(&check->trees, BW_BLOCK_GROUP_TREE)) {
        struct bw_item_stream stream;
        struct bw_error *error =
            bw_item_stream_begin(&stream, check->fs, &check->trees, BW_BLOCK_GROUP_TREE);
        for (; !error && !stream.ended; bw_item_stream_next(&stream))
            error = add_group(check, &stream.item);
        list->incomplete = stream.lost;
        BW_TRY(bw_item_stream_end(&stream, error));
    }

    /* In extent trees, the block group of each chunk is searched. */
    struct bw_tree_reader reader = check->fs->reader;
    reader.adopter = NULL;
    for (size_t k = 0; !own_tree && k < check->trees.entries.count; k++) {
        const struct bw_tree *tree = &check->trees.entries.items[k].tree;
        BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
        bw_leaf_finder_init(&finder, &reader, tree);
        finder.advised = BW_KEY_MAX; /* the next leaves have extents */
        for (size_t i = 0; tree->id == BW_EXTENT_TREE && i < check->chunks.count; i++) {
            const struct bw_key key = {check->chunks.items[i].logical, BW_BLOCK_GROUP_ITEM,
                                       UINT64_MAX};
            struct bw_item item;
            BW_TRY(bw_find_leaf(&finder, &key));
            list->incomplete |= finder.lost;
            const int64_t slot = finder.lost ? -1 : bw_leaf_last_until(&finder, &key);
            if (slot >= 0 && bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) &&
                item.key.objectid == key.objectid)
                BW_TRY(add_group(check, &item));
        }
    }
    bw_checked_groups_sort(&list->groups, bw_compare_first);
    list->loaded = true;

    /* Estimates the bytes to be read: all copies of the used space of the chunks, in addition to
     * the superblocks and backup roots, which were read already. */
    for (size_t i = 0; i < list->groups.count && !options->quick; i++) {
        const struct bw_checked_group *group = &list->groups.items[i];
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, group->start);
        const uint64_t used = group->used < group->length ? group->used : group->length;
        if (chunk && (options->data || group->flags & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
            check->expected += used * chunk->copies;
    }
    if (check->expected)
        check->expected += bw_fs_bytes_read(check->fs);
    return NULL;
}

struct bw_checked_group *bw_check_group(const struct bw_check *check, uint64_t start)
{
    struct bw_checked_group *groups = check->groups.groups.items;
    size_t i = BW_FIRST_INDEX(k, check->groups.groups.count, groups[k].start >= start);
    return i < check->groups.groups.count && groups[i].start == start ? &groups[i] : NULL;
}
