/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the block groups. Those in the extent tree are searched for, as a mount does: between
 * them lie the items of all extents. */
#include "check/groups.h"
#include "base/compare.h"

#include "base/cleanup.h"
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

static struct bw_error *read_tree(struct bw_check *check)
{
    struct bw_item_stream stream;
    struct bw_error *error =
        bw_item_stream_begin(&stream, check->fs, &check->trees, BW_BLOCK_GROUP_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream))
        error = add_group(check, &stream.item);
    check->groups.incomplete = stream.lost;
    return bw_item_stream_end(&stream, error);
}

/* Adds the block group of a chunk, if it is in the tree of the finder. */
static struct bw_error *find_group(struct bw_check *check, struct bw_leaf_finder *finder,
                                   uint64_t logical)
{
    const struct bw_key key = {logical, BW_BLOCK_GROUP_ITEM, UINT64_MAX};
    struct bw_item item;
    BW_TRY(bw_find_leaf(finder, &key));
    if (finder->lost) {
        check->groups.incomplete = true;
        return NULL;
    }
    int64_t slot = bw_leaf_last_until(finder, &key);
    return slot >= 0 && bw_leaf_item(&finder->leaf, (uint32_t)slot, &item) &&
                   item.key.objectid == logical
               ? add_group(check, &item)
               : NULL;
}

static struct bw_error *search_tree(struct bw_check *check, const struct bw_tree *tree)
{
    struct bw_leaf_finder finder;
    struct bw_tree_reader reader = check->fs->reader;
    struct bw_error *error = NULL;
    reader.adopter = NULL;
    bw_leaf_finder_init(&finder, &reader, tree);
    finder.advised = BW_KEY_MAX; /* the next leaves have extents */
    for (size_t i = 0; !error && i < check->chunks.count; i++)
        error = find_group(check, &finder, check->chunks.items[i].logical);
    bw_leaf_finder_free(&finder);
    return error;
}

/* A conversion that was interrupted leaves some in either tree. */
static struct bw_error *read_all(struct bw_check *check)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const bool own_tree = (superblock->compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE) ||
                          (superblock->incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
    if (!bw_tree_list_find(&check->trees, own_tree ? BW_BLOCK_GROUP_TREE : BW_EXTENT_TREE))
        check->groups.incomplete = true;
    if (bw_tree_list_find(&check->trees, BW_BLOCK_GROUP_TREE))
        BW_TRY(read_tree(check));
    for (size_t i = 0; !own_tree && i < check->trees.entries.count; i++)
        if (check->trees.entries.items[i].tree.id == BW_EXTENT_TREE)
            BW_TRY(search_tree(check, &check->trees.entries.items[i].tree));
    return NULL;
}

/* Estimates the bytes to be read: all copies of the used space of the chunks, in addition to the
 * superblocks and backup roots, which were read already. */
static void estimate_bytes(struct bw_check *check)
{
    const struct bw_check_options *options = check->options;
    for (size_t i = 0; i < check->groups.groups.count && !options->quick; i++) {
        const struct bw_checked_group *group = &check->groups.groups.items[i];
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, group->start);
        uint64_t used = group->used < group->length ? group->used : group->length;
        if (chunk && (options->data || group->flags & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
            check->expected += used * chunk->copies;
    }
    if (check->expected)
        check->expected += bw_fs_bytes_read(check->fs);
}

struct bw_error *bw_check_load_groups(struct bw_check *check)
{
    struct bw_group_list *list = &check->groups;
    if (list->loaded)
        return NULL;
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    BW_TRY(read_all(check));
    if (list->groups.count)
        qsort(list->groups.items, list->groups.count, sizeof *list->groups.items, bw_compare_first);
    list->loaded = true;
    estimate_bytes(check);
    return NULL;
}

struct bw_checked_group *bw_check_group(const struct bw_check *check, uint64_t start)
{
    struct bw_checked_group *groups = check->groups.groups.items;
    size_t i = BW_FIRST_INDEX(k, check->groups.groups.count, groups[k].start >= start);
    return i < check->groups.groups.count && groups[i].start == start ? &groups[i] : NULL;
}
