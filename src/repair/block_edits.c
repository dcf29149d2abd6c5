/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of bytes in tree blocks. A block stays at its address and keeps its generation, so what
 * refers to it stays right. All chosen changes of a block are made in one copy of its contents,
 * which gets a new checksum and replaces all copies, good or bad.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/find_leaf.h"
#include "ondisk/bit_flip.h"
#include "repair/repair.h"

/* Whether the check has found that another mirror of a block is better than this one. */
static bool is_bad_copy(const struct bw_repair *repair, uint64_t logical, unsigned copy)
{
    const struct bw_repair_bad_copies *bad = &repair->bad_copies;
    for (size_t i = BW_FIRST_INDEX(k, bad->count, bad->items[k].logical >= logical);
         i < bad->count && bad->items[i].logical == logical; i++)
        if (bad->items[i].mirror == copy)
            return true;
    return false;
}

struct bw_error *bw_repair_list_bad_copies(struct bw_repair *repair)
{
    struct bw_repair_bad_copies *bad = &repair->bad_copies;
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        if (finding->repairable && finding->logical != BW_ABSENT)
            BW_TRY(bw_repair_bad_copies_push(
                bad, (struct bw_repair_bad_copy){finding->logical, finding->mirror}));
    }
    bw_repair_bad_copies_sort(bad, bw_compare_first);
    return NULL;
}

/* Reads the contents of a block; false if no copy has the right checksum, or would have it without
 * a flipped bit that the checksum names. */
static bool read_block(struct bw_repair *repair, uint64_t logical, uint8_t *bytes)
{
    const struct bw_superblock *superblock = &repair->fs->superblock;
    const uint32_t size = superblock->nodesize;
    struct bw_mapping mapping = {.copies = 1};
    const unsigned passes = bw_bit_flip_is_cheap(superblock->checksum_type) ? 2 : 1;
    for (unsigned pass = 0; pass < passes; pass++)
        for (unsigned copy = 1; copy <= mapping.copies; copy++) {
            struct bw_bit_flip flip;
            BW_AUTO_ERROR struct bw_error *error =
                bw_fs_map(repair->fs, logical, size, copy, &mapping);
            if (!error)
                error = bw_repair_read_copy(repair, logical, size, copy, bytes);
            if (error || is_bad_copy(repair, logical, copy))
                continue;
            if (bw_checksum_matches_block(superblock->checksum_type, bytes, size))
                return true;
            if (!pass || !bw_bit_flip_find_in_block(superblock->checksum_type, bytes, size, &flip))
                continue;
            bytes[flip.byte] ^= (uint8_t)(1u << flip.bit);
            return true;
        }
    return false;
}

static size_t block_index(const struct bw_repair *repair, uint64_t logical)
{
    const struct bw_repair_blocks *blocks = &repair->blocks;
    return BW_FIRST_INDEX(k, blocks->count, blocks->items[k].logical >= logical);
}

/* A block in the list; NULL if it is not there. */
static struct bw_repair_block *find_block(struct bw_repair *repair, uint64_t logical)
{
    const size_t i = block_index(repair, logical);
    struct bw_repair_block *found = i < repair->blocks.count ? &repair->blocks.items[i] : NULL;
    return found && found->logical == logical ? found : NULL;
}

/* Adds a block to the list, and takes its bytes. */
static struct bw_error *add_block(struct bw_repair *repair, uint64_t logical, uint8_t **bytes)
{
    const struct bw_repair_block block = {.logical = logical, .bytes = *bytes};
    BW_TRY(bw_repair_blocks_insert(&repair->blocks, block_index(repair, logical), block));
    *bytes = NULL;
    return NULL;
}

struct bw_error *bw_repair_block_contents(struct bw_repair *repair, uint64_t logical,
                                          const uint8_t **contents)
{
    const struct bw_repair_block *known = find_block(repair, logical);
    *contents = known ? known->bytes : NULL;
    if (known)
        return NULL;
    BW_AUTO_FREE uint8_t *bytes = malloc(repair->fs->superblock.nodesize);
    if (!bytes)
        return bw_error_no_memory();
    if (!read_block(repair, logical, bytes))
        return NULL;
    *contents = bytes;
    return add_block(repair, logical, &bytes);
}

/* Adds it, if the block can be read, or is made. */
static struct bw_error *add_edit(struct bw_repair *repair, struct bw_repair_finding *finding,
                                 struct bw_repair_edit *edit)
{
    const uint8_t *contents;
    BW_TRY(bw_repair_block_contents(repair, edit->block, &contents));
    if (!contents && !edit->is_made)
        return NULL;
    if (!contents) {
        BW_AUTO_FREE uint8_t *lost = calloc(1, repair->fs->superblock.nodesize);
        if (!lost)
            return bw_error_no_memory();
        BW_TRY(add_block(repair, edit->block, &lost));
    }
    uint8_t *bytes = malloc((size_t)edit->length + 1);
    if (!bytes)
        return bw_error_no_memory();
    if (edit->length)
        memcpy(bytes, edit->bytes, edit->length);
    const size_t number = repair->changes.count;
    enum bw_repair_class class_number = BW_REPAIR_DERIVED;
    if (edit->is_unproved)
        class_number = BW_REPAIR_RESEALED;
    else if (edit->is_to_be_chosen)
        class_number = BW_REPAIR_LOSS;
    BW_TRY(bw_repair_add(
        repair, (struct bw_repair_change){.class_number = class_number,
                                          .logical = edit->block,
                                          .devid = BW_ABSENT,
                                          .offset = BW_ABSENT,
                                          .length = edit->length,
                                          .what = edit->what,
                                          .plural = edit->plural,
                                          .why = edit->why ? strdup(edit->why) : NULL,
                                          .proof = edit->proof ? strdup(edit->proof) : NULL,
                                          .loss = edit->loss ? strdup(edit->loss) : NULL,
                                          .bytes = bytes,
                                          .group = edit->group,
                                          .edit = edit->edit,
                                          .is_deletion = edit->is_deletion,
                                          .is_addition = edit->is_addition,
                                          .key = edit->key,
                                          .is_in_block = true,
                                          .reveals = edit->reveals,
                                          .byte = edit->byte}));
    if (number == repair->changes.count)
        return NULL;
    finding->block_edit = number + 1;
    finding->planned = true;
    return bw_sizes_push(&find_block(repair, edit->block)->changes, number);
}

struct bw_error *bw_repair_edit_block(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      struct bw_repair_edit edit)
{
    const struct bw_repair_block *block = find_block(repair, edit.block);
    for (size_t i = 0; block && i < block->changes.count; i++) {
        const size_t number = block->changes.items[i];
        const struct bw_repair_change *change = &repair->changes.items[number];
        if (change->is_addition || change->byte >= edit.byte + edit.length ||
            edit.byte >= change->byte + change->length)
            continue;

        /* The same bytes: it is planned already, or another value is. */
        if (change->byte == edit.byte && change->length == edit.length &&
            memcmp(change->bytes, edit.bytes, edit.length) == 0) {
            finding->block_edit = number + 1;
            finding->planned = true;
        }
        return NULL;
    }
    return add_edit(repair, finding, &edit);
}

struct bw_error *bw_repair_edit_contents(struct bw_repair *repair,
                                         struct bw_repair_finding *finding, uint64_t logical,
                                         const uint8_t *bytes, struct bw_repair_edit edit)
{
    edit.block = logical;
    edit.byte = BW_CSUM_SIZE;
    edit.length = repair->fs->superblock.nodesize - BW_CSUM_SIZE;
    edit.bytes = bytes + BW_CSUM_SIZE;
    return bw_repair_edit_block(repair, finding, edit);
}

struct bw_error *bw_repair_edit_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     uint32_t offset, unsigned width, uint64_t value,
                                     struct bw_repair_edit edit)
{
    const bw_le64 number = bw_put64(value);
    struct bw_item item;
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &repair->fs->reader, tree);
    BW_TRY(bw_find_leaf(&finder, key));
    const int64_t slot = finder.lost ? -1 : bw_leaf_last_until(&finder, key);
    if (slot < 0 || !bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) ||
        bw_key_compare(&item.key, key) != 0 || offset + width > item.size)
        return NULL;
    edit.block = finder.bytenr;
    edit.byte = (uint32_t)(item.data - finder.leaf.block) + offset;
    edit.length = width;
    edit.bytes = &number;
    return bw_repair_edit_block(repair, finding, edit);
}

struct bw_repair_leaf bw_repair_leaf_begin(uint8_t *bytes, uint32_t nodesize, const void *header)
{
    struct bw_disk_header own;
    memcpy(&own, header, sizeof own);
    own.item_count = bw_put32(0);
    memset(bytes, 0, nodesize);
    memcpy(bytes, &own, sizeof own);
    return (struct bw_repair_leaf){.bytes = bytes, .data = nodesize};
}

bool bw_repair_leaf_add(struct bw_repair_leaf *leaf, const struct bw_key *key, const void *data,
                        uint32_t size)
{
    struct bw_disk_header *header = (void *)leaf->bytes;
    if (sizeof *header + (leaf->count + 1) * sizeof(struct bw_disk_item) + size > leaf->data)
        return false;
    struct bw_disk_item *item =
        (void *)(leaf->bytes + sizeof *header + leaf->count * sizeof(struct bw_disk_item));
    leaf->data -= size;
    if (size)
        memcpy(leaf->bytes + leaf->data, data, size);
    item->key = bw_key_encode(key);
    item->offset = bw_put32(leaf->data - (uint32_t)sizeof *header);
    item->size = bw_put32(size);
    header->item_count = bw_put32(++leaf->count);
    return true;
}

struct bw_error *bw_repair_find_pointer(const struct bw_tree_reader *reader,
                                        const struct bw_tree *tree, uint64_t logical,
                                        const struct bw_key *key, struct bw_block_pointer *pointer,
                                        bool *found)
{
    BW_AUTO_FREE uint8_t *block = malloc(reader->nodesize);
    *found = false;
    if (!block)
        return bw_error_no_memory();
    *pointer = bw_tree_root_pointer(tree, false);
    while (pointer->bytenr != logical && pointer->expectation.level) {
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, pointer, block);
        if (error)
            return NULL;
        const struct bw_node node = bw_node_view(block, reader->nodesize);
        const struct bw_block_pointer parent = *pointer;
        *pointer = bw_tree_child_pointer(&parent, &node, bw_child_slot(&node, key));
    }
    *found = pointer->bytenr == logical;
    return NULL;
}

struct bw_error *bw_repair_find_path(struct bw_repair *repair, const struct bw_tree *tree,
                                     const struct bw_key *key, struct bw_repair_path *path)
{
    const struct bw_tree_reader *reader = &repair->fs->reader;
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *block = malloc(reader->nodesize);
    if (!block)
        return bw_error_no_memory();
    path->depth = 0;
    for (; pointer.expectation.level && path->depth < BW_MAX_LEVEL; path->depth++) {
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, block);
        if (error) {
            path->depth = 0;
            return error->code == BW_ERROR_NO_MEMORY ? BW_TAKE(error) : NULL;
        }
        const struct bw_node node = bw_node_view(block, reader->nodesize);
        const uint32_t slot = bw_child_slot(&node, key);
        path->nodes[path->depth] = pointer;
        path->slots[path->depth] = slot;
        pointer = bw_tree_child_pointer(&path->nodes[path->depth], &node, slot);
    }
    return NULL;
}

struct bw_error *bw_repair_move_first_key(struct bw_repair *repair,
                                          struct bw_repair_finding *finding,
                                          const struct bw_tree *tree, const struct bw_key *old,
                                          const struct bw_key *new, struct bw_repair_edit edit)
{
    const struct bw_disk_key key = bw_key_encode(new);
    struct bw_repair_path path;
    BW_TRY(bw_repair_find_path(repair, tree, old, &path));

    /* A node above begins with this key only if the first child does. */
    unsigned depth = path.depth;
    for (bool is_first = true; is_first && depth--; is_first = !path.slots[depth]) {
        edit.block = path.nodes[depth].bytenr;
        edit.byte = (uint32_t)(sizeof(struct bw_disk_header) +
                               path.slots[depth] * sizeof(struct bw_disk_key_pointer));
        edit.length = sizeof key;
        edit.bytes = &key;
        BW_TRY(bw_repair_edit_block(repair, finding, edit));
    }
    return NULL;
}

struct bw_error *bw_repair_delete_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                       const struct bw_tree *tree, const struct bw_key *key,
                                       struct bw_repair_edit edit)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &repair->fs->reader, tree);
    BW_TRY(bw_find_leaf(&finder, key));
    edit.block = finder.bytenr;
    edit.is_deletion = true;
    edit.key = *key;
    return finder.lost ? NULL : add_edit(repair, finding, &edit);
}

struct bw_error *bw_repair_add_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                    struct bw_repair_edit edit)
{
    const struct bw_repair_block *block = find_block(repair, edit.block);
    for (size_t i = 0; block && i < block->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[block->changes.items[i]];
        if (!change->is_addition || bw_key_compare(&change->key, &edit.key) != 0)
            continue;
        finding->block_edit = block->changes.items[i] + 1;
        finding->planned = true;
        return NULL;
    }
    edit.is_addition = true;
    return add_edit(repair, finding, &edit);
}

bool bw_repair_put_item(uint8_t *block, uint32_t size, const struct bw_key *key, const void *data,
                        uint32_t length)
{
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_item *items = (void *)(block + sizeof *header);
    const uint32_t room = size - (uint32_t)sizeof *header;
    uint32_t count = bw_get32(header->item_count), slot = 0;
    uint64_t old = 0;
    if (header->level || count >= room / sizeof *items)
        return false;
    for (; slot < count; slot++) {
        const struct bw_key other = bw_key_decode(&items[slot].key);
        const int order = bw_key_compare(&other, key);
        if (order == 0)
            old = bw_get32(items[slot].size) + (uint64_t)sizeof *items;
        if (order >= 0)
            break;
    }
    const uint64_t free_from = (count + 1) * sizeof *items + length;
    if (old > room || free_from > (count ? bw_get32(items[count - 1].offset) : room) + old)
        return false;
    bw_repair_cut_item(block, size, key);
    count = bw_get32(header->item_count);
    const uint32_t end = count ? bw_get32(items[count - 1].offset) : room;
    const uint32_t start = slot ? bw_get32(items[slot - 1].offset) : room;
    if (start > room || end > start || (count + 1) * sizeof *items + length > end)
        return false;
    memmove(block + sizeof *header + end - length, block + sizeof *header + end, start - end);
    if (length)
        memcpy(block + sizeof *header + start - length, data, length);
    for (uint32_t i = slot; i < count; i++)
        items[i].offset = bw_put32(bw_get32(items[i].offset) - length);
    memmove(&items[slot + 1], &items[slot], (count - slot) * sizeof *items);
    items[slot] = (struct bw_disk_item){
        .key = bw_key_encode(key), .offset = bw_put32(start - length), .size = bw_put32(length)};
    header->item_count = bw_put32(count + 1);
    return true;
}

void bw_repair_cut_item(uint8_t *block, uint32_t size, const struct bw_key *key)
{
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_item *items = (void *)(block + sizeof *header);
    const uint32_t count = bw_get32(header->item_count);
    if (header->level || count > (size - sizeof *header) / sizeof *items)
        return;
    const struct bw_disk_key wanted = bw_key_encode(key);
    uint32_t slot = 0;
    while (slot < count && memcmp(&items[slot].key, &wanted, sizeof wanted) != 0)
        slot++;
    if (slot == count)
        return;
    const uint64_t room = size - sizeof *header;
    const uint32_t gap = bw_get32(items[slot].size), start = bw_get32(items[slot].offset),
                   end = bw_get32(items[count - 1].offset);
    if ((uint64_t)start + gap > room || end > start)
        return;
    memmove(block + sizeof *header + end + gap, block + sizeof *header + end, start - end);
    for (uint32_t i = slot + 1; i < count; i++)
        items[i].offset = bw_put32(bw_get32(items[i].offset) + gap);
    memmove(&items[slot], &items[slot + 1], (count - slot - 1) * sizeof *items);
    header->item_count = bw_put32(count - 1);
}

/* Makes the chosen changes of a block in its contents. */
static void apply_changes(const struct bw_repair *repair, struct bw_repair_block *block,
                          uint8_t *bytes)
{
    const struct bw_repair_change *changes = repair->changes.items;
    const uint32_t size = repair->fs->superblock.nodesize;
    const size_t *numbers = block->changes.items;
    block->is_changed = false;
    memcpy(bytes, block->bytes, size);
    for (size_t k = 0; k < block->changes.count; k++) {
        const struct bw_repair_change *change = &changes[numbers[k]];
        if (!change->chosen)
            continue;
        if (!change->is_addition)
            memcpy(bytes + change->byte, change->bytes, change->length);
        block->is_changed = true;
    }

    /* Deletions and additions move items, so they come last. */
    for (size_t k = 0; k < block->changes.count; k++)
        if (changes[numbers[k]].chosen && changes[numbers[k]].is_deletion)
            bw_repair_cut_item(bytes, size, &changes[numbers[k]].key);
    for (size_t k = 0; k < block->changes.count; k++) {
        const struct bw_repair_change *change = &changes[numbers[k]];
        if (change->chosen && change->is_addition)
            bw_repair_put_item(bytes, size, &change->key, change->bytes, (uint32_t)change->length);
    }
}

bool bw_repair_is_changed(struct bw_repair *repair, uint64_t logical)
{
    const struct bw_repair_block *block = find_block(repair, logical);
    return block && block->changes.count;
}

bool bw_repair_is_unchanged(struct bw_repair *repair, uint64_t logical, uint32_t byte,
                            uint32_t length)
{
    const struct bw_repair_block *block = find_block(repair, logical);
    for (size_t i = 0; block && i < block->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[block->changes.items[i]];
        if (change->is_addition || change->is_deletion ||
            (change->byte < byte + length && byte < change->byte + change->length))
            return false;
    }
    return true;
}

struct bw_error *bw_repair_has_room(struct bw_repair *repair, uint64_t logical,
                                    const struct bw_key *key, const struct bw_buffer *data,
                                    bool *has_room)
{
    const uint32_t size = repair->fs->superblock.nodesize;
    const uint8_t *contents;
    BW_AUTO_FREE uint8_t *bytes = malloc(size);
    if (!bytes)
        return bw_error_no_memory();
    BW_TRY(bw_repair_block_contents(repair, logical, &contents));
    if (contents)
        apply_changes(repair, find_block(repair, logical), bytes);
    *has_room = contents && data->length <= size &&
                bw_repair_put_item(bytes, size, key, data->data, (uint32_t)data->length);

    /* If its items are moved in this round, the key may belong in another leaf in the next one. */
    const struct bw_repair_block *block = find_block(repair, logical);
    for (size_t i = 0; block && i < block->changes.count; i++)
        *has_room &= repair->changes.items[block->changes.items[i]].length < size - BW_CSUM_SIZE;
    return NULL;
}

struct bw_error *bw_repair_write_blocks(struct bw_repair *repair)
{
    const struct bw_superblock *superblock = &repair->fs->superblock;
    const uint32_t size = superblock->nodesize;
    BW_AUTO_FREE uint8_t *bytes = malloc(size);
    if (!bytes)
        return bw_error_no_memory();
    for (size_t i = 0; i < repair->blocks.count; i++) {
        struct bw_repair_block *block = &repair->blocks.items[i];
        struct bw_mapping mapping = {.copies = 1};
        apply_changes(repair, block, bytes);
        if (!block->is_changed)
            continue;
        bw_checksum_compute(superblock->checksum_type, bytes + BW_CSUM_SIZE, size - BW_CSUM_SIZE,
                            bytes);
        for (unsigned copy = 1; copy <= mapping.copies; copy++) {
            BW_TRY(bw_fs_map(repair->fs, block->logical, size, copy, &mapping));
            if (mapping.present && !mapping.rebuilt)
                BW_TRY(bw_repair_write(repair, mapping.devid, mapping.offset, bytes, size));
        }
    }
    return NULL;
}
