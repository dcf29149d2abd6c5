/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a search for owners: trees, marked blocks and results, and passing these on. */
#include "owners/owner_search.h"

#include "base/cleanup.h"
#include "ondisk/disk_items.h"

bool bw_owner_has_files(const struct bw_listed_tree *tree)
{
    return tree->is_subvolume || tree->tree.id == BW_ROOT_TREE ||
           tree->tree.id == BW_DATA_RELOC_TREE;
}

const struct bw_listed_tree *bw_owner_tree(const struct bw_owner_search *search, uint64_t id)
{
    const uint32_t number = bw_key_map_get(&search->tree_numbers, id, UINT32_MAX);
    const struct bw_listed_tree *tree =
        number == UINT32_MAX ? NULL : &search->trees.entries.items[number];
    return tree && bw_owner_has_files(tree) ? tree : NULL;
}

bool bw_owner_mark(struct bw_owner_search *search, uint64_t bytenr, bool *new)
{
    *new = !bw_key_map_has(&search->marks, bytenr);
    return !*new || !bw_key_map_put(&search->marks, bytenr, 1);
}

struct bw_error *bw_owner_allocate(struct bw_owner_search *search, uint64_t start, uint64_t length)
{
    return bw_range_set_insert(&search->allocated, start, start + length);
}

struct bw_error *bw_owner_add_block(struct bw_owner_search *search,
                                    const struct bw_owned_block *block, size_t *index)
{
    const uint32_t number = bw_key_map_get(&search->block_numbers, block->bytenr, UINT32_MAX);
    size_t next = 0;
    *index = number;
    if (number == UINT32_MAX) {
        *index = search->blocks.count;
        if (bw_owned_blocks_reserve(&search->blocks, 1) || *index >= UINT32_MAX ||
            bw_key_map_put(&search->block_numbers, block->bytenr, (uint32_t)*index))
            return bw_error_no_memory();
        search->blocks.items[search->blocks.count++] = *block;
    }
    struct bw_owned_block *known = &search->blocks.items[*index];
    const struct bw_query_range *range =
        bw_query_ranges_next(&search->ranges, &next, block->bytenr, search->fs->reader.nodesize);
    known->range = range ? range->number : 0;
    if (!known->has_key && block->has_key) {
        known->has_key = true;
        known->key = block->key;
    }
    known->tree = known->tree ? known->tree : block->tree;
    return NULL;
}

struct bw_error *bw_owner_postpone(struct bw_owner_search *search, const struct bw_owner *owner,
                                   uint64_t first, uint64_t last)
{
    const struct bw_lost_inodes lost = {owner->subvolume, first, last, search->nameless.count};
    if (first > last)
        return NULL;
    BW_TRY(bw_lost_inode_lists_push(&search->lost, lost));
    return bw_owner_list_push(&search->nameless, *owner);
}

struct bw_error *bw_owner_visit(struct bw_owner_search *search, struct bw_owner *owner)
{
    const struct bw_owner_options *options = search->options;
    bool has_path = false;
    const bool wanted = owner->subvolume && !options->no_paths &&
                        (!search->hooks || search->hooks->accepts(options->context, owner));
    owner->path = (struct bw_bytes){0};
    if (wanted)
        bw_inode_paths_begin(&search->paths, owner->subvolume, owner->inode);
    for (; wanted && bw_inode_paths_next(&search->paths, &owner->path); has_path = true)
        BW_TRY(options->visit(options->context, owner));
    BW_TRY(bw_inode_paths_error(&search->paths));
    if (has_path)
        return NULL;
    /* Names may be lost only if something is. */
    if (wanted && search->fs->lost.count && !owner->subvolume->deleted)
        return bw_owner_postpone(search, owner, owner->inode, owner->inode);
    return options->visit(options->context, owner);
}
