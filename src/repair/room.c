/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Room for a new item in a full leaf: the items of a few neighbours below the same node are
 * distributed among these leaves, and the next round adds the item. No block is allocated. The tree
 * keeps its items in their order, so only the leaves and their node change.
 *
 * Subvolumes share blocks. The leaves must have the same nodes above them, in which they follow
 * each other: then each tree that has one of them has the others, and all of these nodes are
 * changed. If they refer to extents, these are counted by the owner of the leaf, which must be the
 * same for all, and not by the address of the leaf. Leaves of subvolumes get the newest of their
 * generations, so that a search for newer items finds them.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/format.h"
#include "data/references.h"
#include "repair/repair.h"

enum { MOST_LEAVES = 16, NEAR_LEAVES = 2 * MOST_LEAVES - 1 }; /* whose items are divided */

/* An item of one of the leaves; without `data`, the new one. */
struct entry {
    struct bw_key key;
    const uint8_t *data;
    uint32_t size, needed; /* bytes of data, now and later */
};

BW_VECTOR(entries, struct entry);

/* A leaf of which the items may be divided. */
struct near_leaf {
    bool is_read, is_usable;
    uint8_t *block; /* its contents, once it is read; owned */
};

/* Neighbours below a node, and their items. */
struct window {
    struct bw_repair *repair;
    const struct bw_tree *tree;
    const struct bw_block_pointer *parent;
    struct bw_node node; /* the parent */
    uint32_t first;      /* slot of the first leaf in it */
    unsigned count;
    struct bw_numbers parents; /* all nodes above the leaves */
    uint64_t generation;       /* the newest of the leaves */
    struct near_leaf *near;    /* the leaves of all windows */
    uint32_t near_first;       /* slot of the first one */
    struct entries entries;
    size_t added;             /* the number of the new item among them */
    size_t ends[MOST_LEAVES]; /* the items of each leaf end before this one */
};

struct bw_error *bw_repair_is_exclusive(struct bw_repair *repair, uint64_t logical,
                                        bool *is_exclusive)
{
    struct bw_extent_entry extent;
    *is_exclusive = false;
    if (!repair->fs->extent_tree.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, &repair->fs->extent_tree, (struct bw_key){logical, 0, 0},
                      (struct bw_key){logical, BW_METADATA_ITEM, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        if (bw_extent_entry_decode(repair->fs, item, &extent))
            *is_exclusive = extent.is_block && extent.references == 1 && !extent.shared_children;
    return bw_fs_items_error(&items);
}

/* Adds the node above a leaf that a reference in the extent tree is about. */
static struct bw_error *add_parent(struct bw_repair *repair, const struct bw_reference *reference,
                                   const struct bw_key *key, struct bw_numbers *parents)
{
    struct bw_tree tree;
    struct bw_repair_path path;
    if (reference->kind == BW_SHARED_BLOCK_REF)
        return bw_numbers_push(parents, reference->source);
    if (reference->kind != BW_TREE_BLOCK_REF)
        return NULL;
    BW_TRY(bw_repair_find_tree(repair->fs, reference->source, &tree));
    if (!tree.id)
        return NULL;
    BW_TRY(bw_repair_find_path(repair, &tree, key, &path));
    return path.depth ? bw_numbers_push(parents, path.nodes[path.depth - 1].bytenr) : NULL;
}

/* Lists the nodes above a leaf that begins with a key. `*is_movable`: these are all, and the items
 * may be in another leaf. */
static struct bw_error *find_parents(struct bw_repair *repair, const struct bw_node *leaf,
                                     uint64_t logical, struct bw_numbers *parents, bool *is_movable)
{
    const struct bw_key key = bw_first_key(leaf);
    struct bw_extent_entry extent = {.references = 0};
    struct bw_reference reference;
    struct bw_block_references made = bw_block_references_open(leaf, 0, false);
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    parents->count = 0;
    bw_fs_items_begin(&items, repair->fs, &repair->fs->extent_tree, (struct bw_key){logical, 0, 0},
                      (struct bw_key){logical, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const bool is_extent = bw_extent_entry_decode(repair->fs, item, &extent);
        while (is_extent && bw_extent_reference_step(&extent, &reference))
            BW_TRY(add_parent(repair, &reference, &key, parents));
        if (!is_extent && extent.references && bw_extent_keyed(&extent, item, &reference))
            BW_TRY(add_parent(repair, &reference, &key, parents));
    }
    bw_numbers_sort(parents, bw_compare_first);
    *is_movable = extent.references && parents->count == extent.references &&
                  !(extent.shared_children && bw_block_references_next(&made, &reference));
    return bw_fs_items_error(&items);
}

/* The slot of a leaf in a node; the number of its children if it is not there. */
static uint32_t slot_of(const struct bw_node *node, uint64_t logical)
{
    uint32_t slot = 0;
    while (slot < node->item_count && bw_node_pointer_at(node, slot).bytenr != logical)
        slot++;
    return slot;
}

/* Whether the leaves of the window follow each other in another node, where no other change of this
 * round is about their pointers. */
static struct bw_error *has_leaves(struct window *window, uint64_t logical, bool *has_all)
{
    struct bw_repair *repair = window->repair;
    const uint8_t *contents;
    BW_TRY(bw_repair_block_contents(repair, logical, &contents));
    *has_all = contents && ((const struct bw_disk_header *)contents)->level == 1;
    if (!*has_all)
        return NULL;
    const struct bw_node node = bw_node_view(contents, repair->fs->superblock.nodesize);
    const uint32_t first = slot_of(&node, bw_node_pointer_at(&window->node, window->first).bytenr);
    *has_all = first + window->count <= node.item_count;
    for (unsigned i = 0; i < window->count && *has_all; i++)
        *has_all = bw_node_pointer_at(&node, first + i).bytenr ==
                   bw_node_pointer_at(&window->node, window->first + i).bytenr;
    const uint32_t header = sizeof(struct bw_disk_header),
                   pointer = sizeof(struct bw_disk_key_pointer);
    *has_all =
        *has_all && bw_repair_is_unchanged(repair, logical, 0, header) &&
        bw_repair_is_unchanged(repair, logical, header + first * pointer, window->count * pointer);
    return NULL;
}

/* The contents of a leaf of the window. */
static const uint8_t *block_of(const struct window *window, unsigned number)
{
    return window->near[window->first + number - window->near_first].block;
}

/* Divides the items among the leaves, evenly. False if they do not fit. No leaf begins with the new
 * item, because a search for its key leads to the leaf before. */
static bool divide(struct window *window)
{
    const struct entries *entries = &window->entries;
    const size_t room = window->repair->fs->superblock.nodesize - sizeof(struct bw_disk_header),
                 header = sizeof(struct bw_disk_item);
    uint64_t left = 0;
    size_t at = 0;
    for (size_t i = 0; i < entries->count; i++)
        left += header + entries->items[i].needed;
    for (unsigned i = 0; i < window->count; i++) {
        const uint64_t share = left / (window->count - i);
        uint64_t used = 0;
        while (at < entries->count) {
            const size_t next = at + 1;
            const bool is_pair =
                next < entries->count && (next == window->added || (!at && !window->added));
            uint64_t size = header + entries->items[at].needed;
            if (is_pair)
                size += header + entries->items[next].needed;
            if (used + size > room || (used && used + size / 2 > share))
                break;
            used += size;
            at += is_pair ? 2 : 1;
        }
        if (!used)
            return false;
        left -= used;
        window->ends[i] = at;
    }
    return at == entries->count;
}

/* Reads a leaf, once for all windows. NULL: its items cannot be divided. */
static struct bw_error *read_leaf(struct window *window, uint32_t slot, const uint8_t **block)
{
    struct bw_repair *repair = window->repair;
    struct near_leaf *near = &window->near[slot - window->near_first];
    *block = near->is_usable ? near->block : NULL;
    if (near->is_read)
        return NULL;
    const struct bw_block_pointer child =
        bw_tree_child_pointer(window->parent, &window->node, slot);
    near->is_read = true;
    if (bw_repair_is_changed(repair, child.bytenr))
        return NULL;
    near->block = malloc(repair->fs->superblock.nodesize);
    if (!near->block)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&repair->fs->reader, &child, near->block);
    const struct bw_node leaf = bw_node_view(near->block, repair->fs->superblock.nodesize);
    near->is_usable = !error && bw_leaf_is_packed(&leaf) && leaf.item_count;
    *block = near->is_usable ? near->block : NULL;
    return NULL;
}

/* Reads the leaves of the window, in which `key` belongs, and divides their items. `*is_possible`:
 * all fit, and can be moved. The nodes above, which take longest, are searched last. */
static struct bw_error *read_leaves(struct window *window, const struct bw_key *key, uint32_t size,
                                    bool *is_possible)
{
    struct bw_repair *repair = window->repair;
    const uint32_t nodesize = repair->fs->superblock.nodesize;
    const struct entry added = {.key = *key, .needed = size};
    BW_SCOPED(bw_numbers) struct bw_numbers parents = {0};
    uint64_t owner = 0;
    bool is_added = false, is_owned = false;
    window->entries.count = 0;
    window->generation = 0;
    *is_possible = true;
    for (unsigned i = 0; i < window->count && *is_possible; i++) {
        const uint8_t *block;
        BW_TRY(read_leaf(window, window->first + i, &block));
        *is_possible = block;
        if (!block)
            return NULL;
        const struct bw_disk_header *header = (const void *)block;
        const struct bw_node leaf = bw_node_view(block, nodesize);
        struct bw_reference reference;
        struct bw_block_references references = bw_block_references_open(&leaf, 0, false);
        if (bw_block_references_next(&references, &reference)) {
            *is_possible = *is_possible && (!is_owned || owner == bw_get64(header->owner));
            owner = bw_get64(header->owner);
            is_owned = true;
        }
        window->generation = bw_max(
            window->generation, bw_node_pointer_at(&window->node, window->first + i).generation);

        struct bw_item item;
        for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);) {
            const int order = bw_key_compare(&item.key, key);
            if (!is_added && order >= 0) {
                window->added = window->entries.count;
                BW_TRY(entries_push(&window->entries, added));
                is_added = true;
            }
            if (order)
                BW_TRY(entries_push(&window->entries,
                                    (struct entry){item.key, item.data, item.size, item.size}));
            else /* the item gets another size */
                window->entries.items[window->added] =
                    (struct entry){*key, item.data, item.size, size};
        }
    }
    if (!is_added && *is_possible) {
        window->added = window->entries.count;
        BW_TRY(entries_push(&window->entries, added));
    }
    *is_possible = *is_possible && divide(window);
    for (unsigned i = 0; i < window->count && *is_possible; i++) {
        const struct bw_node leaf = bw_node_view(block_of(window, i), nodesize);
        const uint64_t logical = bw_node_pointer_at(&window->node, window->first + i).bytenr;
        struct bw_numbers *above = i ? &parents : &window->parents;
        BW_TRY(find_parents(repair, &leaf, logical, above, is_possible));
        *is_possible =
            *is_possible && above->count == window->parents.count &&
            memcmp(above->items, window->parents.items, above->count * sizeof *above->items) == 0;
    }
    for (size_t i = 0; i < window->parents.count && *is_possible; i++)
        BW_TRY(has_leaves(window, window->parents.items[i], is_possible));
    return NULL;
}

/* Plans the new contents of the leaves, and their keys in the nodes. */
static struct bw_error *plan_leaves(struct window *window, const struct bw_repair_finding *finding)
{
    struct bw_repair *repair = window->repair;
    const uint32_t nodesize = repair->fs->superblock.nodesize;
    const struct bw_key *key = &window->entries.items[window->added].key;
    struct bw_repair_finding none = *finding; /* it remains, until the item is added */
    BW_AUTO_FREE uint8_t *block = malloc(nodesize);
    BW_AUTO_FREE char *why =
        bw_repair_text("%s: the leaf of item (%" PRIu64 " %u %" PRIu64 ") has no room",
                       finding->code->word, key->objectid, key->type, key->offset);
    if (!block || !why)
        return bw_error_no_memory();
    struct bw_repair_edit edit = {
        .group = ++repair->groups, .why = why, .proof = "the same items in the same order"};
    for (unsigned i = 0; i < window->count; i++) {
        const struct bw_node_pointer old = bw_node_pointer_at(&window->node, window->first + i);
        struct bw_repair_leaf leaf = bw_repair_leaf_begin(block, nodesize, block_of(window, i));
        struct bw_disk_header *header = (void *)block;
        uint64_t generation = old.generation;
        if (bw_is_subvolume_id(window->tree->id))
            generation = window->generation;
        header->generation = bw_put64(generation);
        for (size_t k = i ? window->ends[i - 1] : 0; k < window->ends[i]; k++) {
            const struct entry *entry = &window->entries.items[k];
            if (entry->data)
                bw_repair_leaf_add(&leaf, &entry->key, entry->data, entry->size);
        }
        const struct bw_node made = bw_node_view(block, nodesize);
        const struct bw_key first = bw_first_key(&made);
        const struct bw_disk_key_pointer pointer = {bw_key_encode(&first), bw_put64(old.bytenr),
                                                    bw_put64(generation)};
        edit.what = "leaf with items of its neighbours";
        BW_TRY(bw_repair_edit_contents(repair, &none, old.bytenr, block, edit));
        if (generation != old.generation) {
            const struct bw_key items[] = {{old.bytenr, BW_METADATA_ITEM, 0},
                                           {old.bytenr, BW_EXTENT_ITEM, nodesize}};
            edit.what = "generation of a leaf with items of its neighbours";
            for (unsigned k = 0; k < 2; k++)
                BW_TRY(bw_repair_edit_item(repair, &none, &repair->fs->extent_tree, &items[k],
                                           offsetof(struct bw_disk_extent_item, generation), 8,
                                           generation, edit));
        }
        if (bw_key_compare(&first, &old.key) == 0 && generation == old.generation)
            continue;
        edit.what = "pointer to a leaf with items of its neighbours";
        edit.length = sizeof pointer;
        edit.bytes = &pointer;
        for (size_t k = 0; k < window->parents.count; k++) {
            const uint8_t *contents;
            edit.block = window->parents.items[k];
            BW_TRY(bw_repair_block_contents(repair, edit.block, &contents));
            const struct bw_node node = bw_node_view(contents, nodesize);
            edit.byte = (uint32_t)(sizeof(struct bw_disk_header) +
                                   slot_of(&node, old.bytenr) * sizeof pointer);
            BW_TRY(bw_repair_edit_block(repair, &none, edit));
        }
    }
    return NULL;
}

struct bw_error *bw_repair_make_room(struct bw_repair *repair,
                                     const struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     uint32_t size)
{
    const uint32_t nodesize = repair->fs->superblock.nodesize;
    struct bw_repair_path path;
    BW_TRY(bw_repair_find_path(repair, tree, key, &path));
    if (!path.depth || !repair->fs->extent_tree.id)
        return NULL;
    const struct bw_block_pointer *parent = &path.nodes[path.depth - 1];
    const uint32_t slot = path.slots[path.depth - 1];
    BW_AUTO_FREE uint8_t *node = malloc(nodesize);
    if (!node)
        return bw_error_no_memory();
    BW_TRY(bw_block_read(&repair->fs->reader, parent, node));
    struct near_leaf near[NEAR_LEAVES] = {{0}};
    struct window window = {.repair = repair,
                            .tree = tree,
                            .parent = parent,
                            .node = bw_node_view(node, nodesize),
                            .near = near,
                            .near_first = slot - (uint32_t)bw_min(slot, MOST_LEAVES - 1)};
    const uint8_t *leaf;
    struct bw_error *error = read_leaf(&window, slot, &leaf);
    bool is_planned = error || !leaf;
    for (window.count = 2; window.count <= MOST_LEAVES && !is_planned && !error; window.count++) {
        window.first = slot - (uint32_t)bw_min(slot, window.count - 1);
        for (; window.first <= slot && window.first + window.count <= window.node.item_count &&
               !is_planned && !error;
             window.first++) {
            error = read_leaves(&window, key, size, &is_planned);
            is_planned = is_planned && !error;
            if (is_planned)
                error = plan_leaves(&window, finding);
        }
    }
    for (unsigned i = 0; i < NEAR_LEAVES; i++)
        free(near[i].block);
    entries_free(&window.entries);
    bw_numbers_free(&window.parents);
    return error;
}
