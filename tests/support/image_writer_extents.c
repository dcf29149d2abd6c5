/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extent tree's account of tree blocks: one METADATA_ITEM for each, with a reference for every
 * tree that points at it. It describes its own blocks too, so the layout goes on until the account
 * it was made with is the account of what came out.
 */
#include <stdlib.h>
#include <string.h>

#include "image_writer_internal.h"

enum {
    METADATA_ITEM = 169,
    TREE_BLOCK_REF = 176,
    TREE_BLOCK_FLAG = 2,
};

struct disk_extent_item {
    bw_le64 references;
    bw_le64 generation;
    bw_le64 flags;
};

struct disk_inline_ref {
    uint8_t type;
    bw_le64 root;
};

/* Trees that point at one block. */
struct owners {
    uint64_t *roots;
    size_t count;
};

static void add_owner(struct owners *owners, uint64_t root)
{
    owners->roots = iw_grow(owners->roots, owners->count, sizeof(uint64_t));
    owners->roots[owners->count++] = root;
}

/* A block belongs to the trees of the nodes that point at it; a root to the tree it is the root of.
 */
static struct owners *find_owners(const struct iw_image *image)
{
    struct owners *owners = iw_zalloc(image->block_count * sizeof *owners);
    for (size_t i = 0; i < image->tree_count; i++)
        add_owner(&owners[image->trees[i]->root], image->trees[i]->id);
    for (size_t i = 0; i < image->block_count; i++)
        for (size_t child = 0;
             image->blocks[i].children && child < image->blocks[i].block.item_count; child++)
            add_owner(&owners[image->blocks[i].children[child]], image->blocks[i].block.tree);
    return owners;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left < right) - (left > right);
}

static struct iw_item make_item(const struct iw_block *block, const struct owners *owners)
{
    struct iw_item result = {.key = {block->logical, METADATA_ITEM, block->level}};
    result.size = sizeof(struct disk_extent_item) + owners->count * sizeof(struct disk_inline_ref);
    result.bytes = iw_zalloc(result.size);
    struct disk_extent_item *item = (void *)result.bytes;
    struct disk_inline_ref *refs = (void *)(item + 1);
    item->references = bw_put64(owners->count);
    item->generation = bw_put64(block->generation);
    item->flags = bw_put64(TREE_BLOCK_FLAG);
    qsort(owners->roots, owners->count, sizeof(uint64_t), compare_descending);
    for (size_t i = 0; i < owners->count; i++)
        refs[i] = (struct disk_inline_ref){TREE_BLOCK_REF, bw_put64(owners->roots[i])};
    return result;
}

static bool is_same(const struct iw_account *a, const struct iw_account *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (bw_key_compare(&a->items[i].key, &b->items[i].key) != 0 ||
            a->items[i].size != b->items[i].size ||
            memcmp(a->items[i].bytes, b->items[i].bytes, a->items[i].size) != 0)
            return false;
    return true;
}

void iw_free_account(struct iw_account *account)
{
    for (size_t i = 0; i < account->count; i++)
        free(account->items[i].bytes);
    free(account->items);
    *account = (struct iw_account){0};
}

bool iw_take_account(struct iw_image *image)
{
    struct owners *owners = find_owners(image);
    struct iw_account account = {iw_zalloc(image->block_count * sizeof *account.items),
                                 image->block_count};
    for (size_t i = 0; i < image->block_count; i++) {
        account.items[i] = make_item(&image->blocks[i].block, &owners[i]);
        free(owners[i].roots);
    }
    free(owners);
    bool stayed = is_same(&image->account, &account);
    iw_free_account(&image->account);
    image->account = account;
    return stayed;
}

void iw_put_account(struct iw_image *image)
{
    struct iw_tree *tree = iw_find_tree(image, BW_EXTENT_TREE);
    for (size_t i = 0; i < image->account.count; i++)
        iw_generate(tree, image->account.items[i].key, image->account.items[i].bytes,
                    image->account.items[i].size);
}
