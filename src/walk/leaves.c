/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choosing and reading leaves: one batch of requests for the next wanted leaves that the window
 * does not hold. */
#include "walk/leaves.h"

#include <stdlib.h>

#include "xlators/classes.h"

struct bw_error *bw_leaves_create(struct bw_leaves *leaves, const struct bw_tree_reader *reader,
                                  struct bw_digest_cache *digests, bool numbered)
{
    leaves->reader = reader;
    leaves->digests = digests;
    leaves->numbered = numbered;
    leaves->batch = bw_block_batch(reader);
    leaves->node_block = bw_block_buffer(reader, 1);
    leaves->blocks = bw_block_buffer(reader, leaves->batch);
    leaves->slot_leaf = calloc(leaves->batch, sizeof *leaves->slot_leaf);
    return leaves->node_block && leaves->blocks && leaves->slot_leaf ? NULL : bw_error_no_memory();
}

void bw_leaves_destroy(struct bw_leaves *leaves)
{
    free(leaves->node_block);
    free(leaves->blocks);
    free(leaves->slot_leaf);
}

static void skip_lost(struct bw_leaves *leaves, const struct bw_map *lost)
{
    for (uint32_t leaf = 0; lost->count && leaf < leaves->count; leaf++)
        if (bw_map_get(lost, bw_leaves_pointer(leaves, leaf).bytenr) != UINT32_MAX)
            leaves->slot_of[leaf] = BW_LOST_SLOT;
}

struct bw_error *bw_leaves_open(struct bw_leaves *leaves, const struct bw_tree *tree,
                                const struct bw_block_pointer *pointer, const struct bw_map *lost)
{
    leaves->tree = tree;
    leaves->pointer = *pointer;
    leaves->node = (struct bw_node){.nodesize = leaves->reader->nodesize};
    leaves->count = 1;
    memset(leaves->wanted, 0, sizeof leaves->wanted);
    memset(leaves->slot_of, BW_NO_SLOT, sizeof leaves->slot_of);
    for (unsigned slot = 0; slot < leaves->batch; slot++)
        leaves->slot_leaf[slot] = UINT32_MAX;
    if (pointer->expectation.level == 0)
        return NULL;
    struct bw_error *error = bw_block_read(leaves->reader, pointer, leaves->node_block);
    if (error)
        return error;
    leaves->node = bw_node_view(leaves->node_block, leaves->reader->nodesize);
    leaves->count = leaves->node.item_count;
    skip_lost(leaves, lost);
    return NULL;
}

uint32_t bw_leaves_find(const struct bw_leaves *leaves, const struct bw_key *key)
{
    return leaves->node.item_count ? bw_child_slot(&leaves->node, key) : 0;
}

struct bw_block_pointer bw_leaves_pointer(const struct bw_leaves *leaves, uint32_t leaf)
{
    if (leaves->pointer.expectation.level == 0)
        return leaves->pointer;
    return bw_tree_child_pointer(&leaves->pointer, &leaves->node, leaf);
}

/* The next wanted leaf from `from` on; at least leaves->count if there is none. */
static uint32_t next_wanted(const struct bw_leaves *leaves, uint32_t from)
{
    for (uint32_t word = from / 64; word * 64 < leaves->count; word++) {
        uint64_t bits = leaves->wanted[word];
        if (word == from / 64)
            bits &= ~UINT64_C(0) << from % 64;
        if (bits)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return leaves->count;
}

static void unwant(struct bw_leaves *leaves, uint32_t leaf)
{
    leaves->wanted[leaf / 64] &= ~(UINT64_C(1) << leaf % 64);
}

/* Whether other trees may come to the same leaf. */
static bool is_shared(const struct bw_leaves *leaves, const struct bw_block_pointer *pointer)
{
    return leaves->digests && pointer->expectation.generation <= leaves->tree->shared_until;
}

static bool has_digest(const struct bw_leaves *leaves, const struct bw_block_pointer *pointer)
{
    return is_shared(leaves, pointer) && bw_digest_cache_has(leaves->digests, pointer);
}

void bw_leaves_advise(struct bw_leaves *leaves)
{
    size_t count = 0;
    for (uint32_t leaf = next_wanted(leaves, 0); leaf < leaves->count;
         leaf = next_wanted(leaves, leaf + 1)) {
        struct bw_block_pointer pointer = bw_leaves_pointer(leaves, leaf);
        if (!has_digest(leaves, &pointer))
            leaves->ranges[count++] = (struct bw_range){pointer.bytenr, leaves->reader->nodesize};
    }
    if (count > 1)
        bw_blocks_advise(leaves->reader, leaves->ranges, count);
}

/*
 * The wanted leaves from `first` on that the window lacks and that must be read; slots that hold
 * other wanted ones are marked as kept. The first is always among the former.
 */
static unsigned find_missing(const struct bw_leaves *leaves, uint32_t first,
                             struct bw_block_pointer *pointers, uint32_t *missing, bool *kept)
{
    unsigned count = 0, slots = 0;
    for (uint32_t leaf = first; leaf < leaves->count && slots < leaves->batch;
         leaf = next_wanted(leaves, leaf + 1)) {
        if (leaves->slot_of[leaf] != BW_NO_SLOT) {
            kept[leaves->slot_of[leaf]] = true;
            slots++;
            continue;
        }
        pointers[count] = bw_leaves_pointer(leaves, leaf);
        if (leaf != first && has_digest(leaves, &pointers[count]))
            continue;
        missing[count++] = leaf;
        slots++;
    }
    return count;
}

static void assign_slot(struct bw_leaves *leaves, uint32_t leaf, unsigned slot)
{
    if (leaves->slot_leaf[slot] != UINT32_MAX)
        leaves->slot_of[leaves->slot_leaf[slot]] = BW_NO_SLOT;
    leaves->slot_leaf[slot] = leaf;
    leaves->slot_of[leaf] = (uint8_t)slot;
}

static void read_missing(struct bw_leaves *leaves, uint32_t first, bw_leaf_lost *lost,
                         void *context)
{
    uint32_t missing[BW_BATCH];
    bool kept[BW_BATCH] = {false};
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    unsigned count = find_missing(leaves, first, pointers, missing, kept), slot = 0;
    for (unsigned i = 0; i < count; i++, slot++) {
        while (kept[slot])
            slot++;
        assign_slot(leaves, missing[i], slot);
        requests[i] = bw_block_request(leaves->reader, &pointers[i],
                                       leaves->blocks + (size_t)slot * leaves->reader->nodesize);
    }
    bw_blocks_read(leaves->reader, requests, count);
    for (unsigned i = 0; i < count; i++) {
        if (!requests[i].error)
            continue;
        unsigned bad = leaves->slot_of[missing[i]];
        leaves->slot_of[missing[i]] = BW_LOST_SLOT;
        leaves->slot_leaf[bad] = UINT32_MAX;
        unwant(leaves, missing[i]);
        lost(context, &pointers[i], requests[i].error);
    }
}

static bool take_digest(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf)
{
    struct bw_block_pointer pointer = bw_leaves_pointer(leaves, leaf->number);
    return is_shared(leaves, &pointer) &&
           bw_digest_cache_get(leaves->digests, &pointer, &leaf->digest);
}

/* Makes the digest of a shared leaf that was read, for this walk and for later ones. */
static bool make_digest(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf)
{
    struct bw_block_pointer pointer = bw_leaves_pointer(leaves, leaf->number);
    leaf->digest.length = 0;
    if (!is_shared(leaves, &pointer) ||
        !bw_digest_make(&leaf->view, leaves->numbered, &leaf->digest))
        return false;
    bw_digest_cache_put(leaves->digests, &pointer, &leaf->digest);
    return true;
}

bool bw_leaves_next(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf, bw_leaf_lost *lost,
                    void *context)
{
    for (;;) {
        leaf->number = next_wanted(leaves, 0);
        if (leaf->number >= leaves->count)
            return false;
        leaf->has_digest = take_digest(leaves, leaf);
        if (leaf->has_digest || leaves->slot_of[leaf->number] != BW_NO_SLOT)
            break;
        read_missing(leaves, leaf->number, lost, context);
    }
    unwant(leaves, leaf->number);
    if (leaf->has_digest)
        return true;
    size_t offset = (size_t)leaves->slot_of[leaf->number] * leaves->reader->nodesize;
    leaf->view = bw_node_view(leaves->blocks + offset, leaves->reader->nodesize);
    leaf->has_digest = make_digest(leaves, leaf);
    return true;
}
