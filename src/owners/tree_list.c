/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of trees: the roots in the superblock, and the items of the root tree; and streams of
 * the items of all trees with one id. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "owners/tree_list.h"

bool bw_tree_list_decode(const struct bw_item *item, struct bw_listed_tree *tree)
{
    struct bw_root_item root;
    BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(item, &root);
    if (bad)
        return false;
    const struct bw_disk_root_item *disk = (const void *)item->data;
    *tree = (struct bw_listed_tree){
        .tree = {item->key.objectid, root.root, root.last_snapshot},
        .root_key = item->key,
        .references = root.references,
        .flags = root.flags,
        .drop_progress = bw_key_decode(&disk->drop_progress),
        .drop_level = disk->drop_level,
        .is_subvolume = bw_is_subvolume_id(item->key.objectid),
        .has_inodes =
            bw_is_subvolume_id(item->key.objectid) || item->key.objectid == BW_DATA_RELOC_TREE,
    };
    return true;
}

/* Adds the trees that the root items of a tree describe. */
static struct bw_error *add_root_items(struct bw_fs *fs, struct bw_tree_list *list,
                                       const struct bw_tree *from, const char *name)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, from, name);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_listed_tree tree;
        /* The superblock says where the remap tree is. Faults of items are reported when the root
         * tree is checked. */
        if (item->key.type == BW_ROOT_ITEM && item->key.objectid != BW_TREE_REMAP &&
            bw_tree_list_decode(item, &tree))
            BW_TRY(bw_listed_trees_push(&list->entries, tree));
    }
    return bw_fs_items_error(&items);
}

struct bw_error *bw_tree_list_load(struct bw_fs *fs, struct bw_tree_list *list)
{
    const struct bw_tree *on_disk = bw_fs_root_tree(fs);
    if (list->entries.count)
        return NULL;
    if (on_disk->root.bytenr != fs->root_tree.root.bytenr)
        BW_TRY(bw_listed_trees_push(&list->entries,
                                    (struct bw_listed_tree){.tree = *on_disk, .references = 1}));
    BW_TRY(bw_listed_trees_push(&list->entries,
                                (struct bw_listed_tree){.tree = fs->root_tree, .references = 1}));
    BW_TRY(bw_listed_trees_push(&list->entries,
                                (struct bw_listed_tree){.tree = fs->chunk_tree, .references = 1}));
    if (fs->superblock.remap_root.bytenr)
        BW_TRY(bw_listed_trees_push(
            &list->entries,
            (struct bw_listed_tree){.tree = {BW_TREE_REMAP, fs->superblock.remap_root, 0},
                                    .references = 1}));
    return add_root_items(fs, list, &fs->root_tree, "root tree");
}

/* The root of the log belongs to the transaction after the superblock's. Its level is in the
 * superblock, but no kernel has ever set it; the block has the right level. */
struct bw_error *bw_log_tree_find(struct bw_fs *fs, struct bw_tree *tree)
{
    struct bw_tree_block *block;
    *tree = (struct bw_tree){0};
    if (!fs->superblock.log_root)
        return NULL;
    struct bw_error *error = bw_tree_block_read(fs, fs->superblock.log_root, &block);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error) {
        bw_fs_report_lost(fs, fs->superblock.log_root, error);
        return NULL;
    }
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    *tree = (struct bw_tree){BW_TREE_LOG, {header.bytenr, header.generation, header.level}, 0};
    bw_tree_block_free(block);
    return NULL;
}

struct bw_error *bw_tree_list_load_log(struct bw_fs *fs, struct bw_tree_list *list)
{
    struct bw_listed_tree root = {.references = 1, .is_log = true};
    const size_t before = list->entries.count;
    BW_TRY(bw_log_tree_find(fs, &root.tree));
    if (!root.tree.id)
        return NULL;
    BW_TRY(bw_listed_trees_push(&list->entries, root));
    BW_TRY(add_root_items(fs, list, &root.tree, "log root tree"));
    for (size_t i = before; i < list->entries.count; i++)
        list->entries.items[i].is_log = true;
    return NULL;
}

/* In a relocation tree that still has references, the key is the progress of the merge: all of the
 * tree still exists. */
static bool is_being_dropped(const struct bw_listed_tree *tree, uint8_t level)
{
    static const struct bw_key nothing;
    return !tree->references && bw_key_compare(&tree->drop_progress, &nothing) != 0 &&
           level >= tree->drop_level;
}

uint32_t bw_tree_first_slot(const struct bw_listed_tree *tree, const struct bw_node *node)
{
    if (!node->level || !is_being_dropped(tree, node->level))
        return 0;
    const uint32_t until = bw_node_count_until(node, &tree->drop_progress);
    return until ? until - 1 : 0;
}

bool bw_tree_has_dropped(const struct bw_listed_tree *tree, const struct bw_block_pointer *pointer)
{
    const struct bw_tree_block_expectation *block = &pointer->expectation;
    return block->level < tree->tree.root.level && is_being_dropped(tree, block->level + 1) &&
           bw_key_compare(&block->end_key, &tree->drop_progress) <= 0;
}

struct bw_listed_tree *bw_tree_list_find(const struct bw_tree_list *list, uint64_t id)
{
    for (size_t i = 0; i < list->entries.count; i++)
        if (list->entries.items[i].tree.id == id)
            return &list->entries.items[i];
    return NULL;
}

/* Streams of items: of the trees, the one whose next key is the least goes first. There is more
 * than one only with the extent-tree-v2 feature, and then one for each processor. */

struct bw_stream_part {
    struct bw_tree tree;
    struct bw_item_range range;
    bool ended, after_loss;
};

/* Moves a tree on to its next item. */
static void advance_part(struct bw_item_stream *stream, struct bw_stream_part *part)
{
    part->after_loss = false;
    while ((part->ended = !bw_item_range_next(&part->range)) == false && part->range.error) {
        part->after_loss = stream->lost = true;
        if (stream->reporting)
            bw_fs_report_range(stream->reporting, &part->range);
    }
    /* The rest is unknown: bw_item_stream_end() returns the error. */
    if (part->range.failure)
        part->after_loss = stream->lost = true;
}

static void choose_item(struct bw_item_stream *stream)
{
    stream->ended = true;
    stream->after_loss = false;
    for (size_t i = 0; i < stream->count; i++) {
        const struct bw_stream_part *part = &stream->parts[i];
        if (stream->ended)
            stream->after_loss |= part->after_loss;
        if (part->ended ||
            (!stream->ended && bw_key_compare(&part->range.item.key, &stream->item.key) >= 0))
            continue;
        stream->ended = false;
        stream->present = i;
        stream->item = part->range.item;
        stream->after_loss = part->after_loss;
    }
}

struct bw_error *bw_item_stream_begin(struct bw_item_stream *stream, struct bw_fs *fs,
                                      const struct bw_tree_list *list, uint64_t id)
{
    const struct bw_key last = BW_KEY_MAX;
    size_t count = 0;
    for (size_t i = 0; i < list->entries.count; i++)
        count += list->entries.items[i].tree.id == id;
    *stream = (struct bw_item_stream){
        .tree = id, .ended = true, .reporting = list->report ? fs : NULL, .reader = fs->reader};
    stream->reader.adopter = NULL; /* lost leaves are not replaced */
    stream->parts = calloc(count + 1, sizeof *stream->parts);
    if (!stream->parts)
        return bw_error_no_memory();
    for (size_t i = 0; i < list->entries.count; i++)
        if (list->entries.items[i].tree.id == id) {
            struct bw_stream_part *part = &stream->parts[stream->count++];
            part->tree = list->entries.items[i].tree;
            bw_item_range_begin(&part->range, &stream->reader, &part->tree, (struct bw_key){0},
                                last);
        }
    for (size_t i = 0; i < count; i++)
        advance_part(stream, &stream->parts[i]);
    choose_item(stream);
    return NULL;
}

void bw_item_stream_next(struct bw_item_stream *stream)
{
    if (stream->ended)
        return;
    advance_part(stream, &stream->parts[stream->present]);
    choose_item(stream);
}

void bw_item_stream_seek(struct bw_item_stream *stream, const struct bw_key *key)
{
    for (size_t i = 0; i < stream->count; i++) {
        struct bw_stream_part *part = &stream->parts[i];
        if (part->ended || bw_key_compare(&part->range.item.key, key) >= 0)
            continue;
        struct bw_error *failure = bw_item_range_stop(&part->range, NULL);
        bw_item_range_restart(&part->range, &stream->reader, &part->tree, *key, BW_KEY_MAX);
        part->range.failure = failure;
        advance_part(stream, part);
    }
    choose_item(stream);
}

struct bw_error *bw_item_stream_end(struct bw_item_stream *stream, struct bw_error *error)
{
    for (size_t i = 0; i < stream->count; i++)
        error = bw_item_range_end(&stream->parts[i].range, error);
    free(stream->parts);
    return error;
}
