/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The root item of a subvolume that the root tree lacks, although a link leads to the subvolume.
 * The extent tree says which blocks its tree refers to. Only the root is alone at its level, and
 * nothing refers to it; its header repeats the tree and the generation. The uuid tree has the
 * uuids. A mount needs no more: if the time of the last snapshot is set to the generation, all
 * blocks count as shared until the extent tree says that they are not.
 *
 * Nothing proves the rest of the item, so the class is `loss`: whether the subvolume is read-only,
 * of which one it is a snapshot, and its times. These are 0, as in rescue/root_tree.c.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "data/references.h"
#include "ondisk/disk.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum { MOST_ROOTS = 1000 }; /* an image may be crafted to have millions */

#define HAS_FLAGS (UINT64_C(1) << 31) /* of the inode in the item: Linux keeps its flags */

/* A subvolume without a root item, and the blocks to which its tree refers. */
struct missing_root {
    struct bw_repair_finding *finding; /* about its link */
    uint64_t id;
    struct bw_root_pointer top; /* the first block of the highest level */
    bool is_alone;              /* at this level */
    unsigned count;             /* of blocks */
};

BW_VECTOR(missing_roots, struct missing_root);

static int compare_ids(const void *first, const void *second)
{
    const struct missing_root *a = first, *b = second;
    return bw_compare(a->id, b->id);
}

/* Lists the subvolumes to which links lead, and which do not exist. */
static struct bw_error *list_roots(struct bw_repair *repair, const struct bw_tree_list *trees,
                                   struct missing_roots *roots)
{
    size_t kept = 0;
    for (size_t i = 0; i < repair->findings.count && roots->count < MOST_ROOTS; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        const struct bw_key *key = &finding->key;
        const struct missing_root root = {
            .finding = finding, .id = key->type == BW_ROOT_REF ? key->offset : key->objectid};
        if (bw_repair_is(finding, "root-link") && !finding->planned &&
            finding->flipped_block == BW_ABSENT && bw_is_subvolume_id(root.id) &&
            !bw_tree_list_find(trees, root.id))
            BW_TRY(missing_roots_push(roots, root));
    }
    missing_roots_sort(roots, compare_ids);
    for (size_t i = 0; i < roots->count; i++)
        if (!i || roots->items[i].id != roots->items[i - 1].id)
            roots->items[kept++] = roots->items[i];
    roots->count = kept;
    return NULL;
}

/* Adds a reference from a tree to a block. */
static void add_reference(struct missing_roots *roots, const struct bw_extent_entry *extent,
                          const struct bw_reference *reference)
{
    const size_t i = BW_FIRST_INDEX(k, roots->count, roots->items[k].id >= reference->source);
    struct missing_root *root = &roots->items[i];
    if (reference->kind != BW_TREE_BLOCK_REF || i == roots->count || root->id != reference->source)
        return;
    if (!root->count++ || extent->level > root->top.level) {
        root->top = (struct bw_root_pointer){extent->bytenr, extent->generation, extent->level};
        root->is_alone = true;
    } else if (extent->level == root->top.level) {
        root->is_alone = false;
    }
}

static struct bw_error *find_blocks(struct bw_repair *repair, struct missing_roots *roots)
{
    struct bw_fs *fs = repair->fs;
    struct bw_extent_entry extent = {0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, &fs->extent_tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_reference reference;
        if (bw_extent_entry_decode(fs, item, &extent))
            while (bw_extent_reference_step(&extent, &reference))
                add_reference(roots, &extent, &reference);
        else if (bw_extent_keyed(&extent, item, &reference))
            add_reference(roots, &extent, &reference);
    }
    return bw_fs_items_error(&items);
}

/* Whether the block is the root of the tree: nothing refers to it, and its header agrees. */
static struct bw_error *is_proven(struct bw_repair *repair, const struct missing_root *root,
                                  bool *result)
{
    const struct bw_root_pointer *top = &root->top;
    const uint8_t *block;
    bool is_unreferenced = false;
    *result = false;
    for (size_t i = 0; i < repair->findings.count && root->is_alone; i++)
        is_unreferenced |= repair->findings.items[i].logical == top->bytenr &&
                           bw_repair_is(&repair->findings.items[i], "extent-unreferenced");
    if (!is_unreferenced)
        return NULL;
    BW_TRY(bw_repair_block_contents(repair, top->bytenr, &block));
    const struct bw_disk_header *header = (const void *)block;
    *result = block && bw_get64(header->bytenr) == top->bytenr &&
              bw_get64(header->owner) == root->id &&
              bw_get64(header->generation) == top->generation && header->level == top->level;
    return NULL;
}

/* Copies the uuids that the uuid tree has for a subvolume. Two of the same kind contradict each
 * other, and none is taken. */
static struct bw_error *find_uuids(struct bw_repair *repair, uint64_t id,
                                   struct bw_disk_root_item *root)
{
    struct bw_tree tree;
    unsigned count = 0, received = 0;
    BW_TRY(bw_repair_find_tree(repair->fs, BW_UUID_TREE, &tree));
    if (!tree.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, &tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const bw_le64 uuid[2] = {bw_put64(item->key.objectid), bw_put64(item->key.offset)};
        bool is_entered = false;
        for (uint32_t at = 0; item->size - at >= sizeof(bw_le64); at += sizeof(bw_le64)) {
            bw_le64 entry;
            memcpy(&entry, item->data + at, sizeof entry);
            is_entered |= bw_get64(entry) == id;
        }
        if (is_entered && item->key.type == BW_UUID_SUBVOLUME && !count++)
            memcpy(root->uuid, uuid, BW_UUID_SIZE);
        if (is_entered && item->key.type == BW_UUID_RECEIVED && !received++)
            memcpy(root->received_uuid, uuid, BW_UUID_SIZE);
    }
    if (count > 1)
        memset(root->uuid, 0, BW_UUID_SIZE);
    if (received > 1)
        memset(root->received_uuid, 0, BW_UUID_SIZE);
    return bw_fs_items_error(&items);
}

/* The other item of the link, if it is missing, too: its key is reversed. */
static struct bw_error *plan_other_link(struct bw_repair *repair, const struct missing_root *root,
                                        struct bw_repair_edit edit)
{
    const struct bw_tree *tree = bw_fs_root_tree(repair->fs);
    const struct bw_key key = root->finding->key;
    const struct bw_key other = {
        key.offset, key.type == BW_ROOT_REF ? BW_ROOT_BACKREF : BW_ROOT_REF, key.objectid};
    struct bw_repair_finding same = *root->finding;
    BW_AUTO_BUFFER struct bw_buffer data = {0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items present, items;
    bw_fs_items_begin(&present, repair->fs, tree, other, other);
    bw_fs_items_begin(&items, repair->fs, tree, key, key);
    const bool has_other = bw_fs_items_next(&present);
    const struct bw_item *item = bw_fs_items_next(&items);
    if (!has_other && item)
        bw_buffer_append(&data, item->data, item->size);
    BW_TRY(bw_fs_items_error(&present));
    BW_TRY(bw_fs_items_error(&items));
    BW_TRY(bw_buffer_error(&data));
    edit.what = "link to a subvolume";
    edit.proof = "the other item of the same link";
    return data.length ? bw_repair_plan_item(repair, &same, tree, &other, &data, edit) : NULL;
}

static struct bw_error *plan_root(struct bw_repair *repair, const struct missing_root *root)
{
    const struct bw_key key = {root->id, BW_ROOT_ITEM, 0};
    const uint32_t nodesize = repair->fs->superblock.nodesize;
    const bw_le64 generation = bw_put64(root->top.generation);
    struct bw_disk_root_item item = {.inode = {.generation = bw_put64(1),
                                               .size = bw_put64(3),
                                               .bytes = bw_put64(nodesize),
                                               .link_count = bw_put32(1),
                                               .mode = bw_put32(040755),
                                               .flags = bw_put64(HAS_FLAGS)},
                                     .generation = generation,
                                     .root_directory = bw_put64(BW_SUBVOLUME_ROOT_INODE),
                                     .bytenr = bw_put64(root->top.bytenr),
                                     .bytes_used = bw_put64((uint64_t)nodesize * root->count),
                                     .last_snapshot = generation,
                                     .reference_count = bw_put32(1),
                                     .level = root->top.level,
                                     .generation_v2 = generation,
                                     .change_transid = generation};
    BW_TRY(find_uuids(repair, root->id, &item));
    const struct bw_buffer data = {.data = (char *)&item, .length = sizeof item};
    const struct bw_repair_edit edit = {
        .what = "root item of a subvolume",
        .proof = "its link, and the only block that the extent tree has as its root",
        .loss = "whether it was read-only, its times, and of which one it is a snapshot",
        .group = ++repair->groups,
        .is_to_be_chosen = true,
        .reveals = true};
    BW_TRY(plan_other_link(repair, root, edit));
    return bw_repair_plan_item(repair, root->finding, bw_fs_root_tree(repair->fs), &key, &data,
                               edit);
}

/* Whether a tree block is lost that may contain references. Blocks whose owner is missing are not.
 */
static bool lacks_blocks(const struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->findings.count; i++)
        if (bw_repair_is_about_lost(&repair->findings.items[i]) &&
            !bw_repair_is(&repair->findings.items[i], "block-owner"))
            return true;
    return false;
}

struct bw_error *bw_repair_plan_root_items(struct bw_repair *repair,
                                           const struct bw_tree_list *trees)
{
    BW_SCOPED(missing_roots) struct missing_roots roots = {0};
    BW_TRY(list_roots(repair, trees, &roots));
    if (!roots.count || !repair->fs->extent_tree.id || lacks_blocks(repair))
        return NULL;
    BW_TRY(find_blocks(repair, &roots));
    for (size_t i = 0; i < roots.count; i++) {
        bool proven;
        BW_TRY(is_proven(repair, &roots.items[i], &proven));
        if (proven)
            BW_TRY(plan_root(repair, &roots.items[i]));
    }
    return NULL;
}
