/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shards: dividing subvolumes and trees, the leaves of a part that must be read, and entries that a
 * shard could not list because of damage. */
#include "walk/shard.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"

/* Dividing subvolumes. A tree with less than a quarter of a shard's share of all bytes is not
 * divided. */

enum { TREES_A_SHARE = 4 };

/* A crafted number must not overflow the sum. */
static uint64_t bytes_of(const struct bw_subvolume *subvolume)
{
    const uint64_t most = UINT64_C(1) << 40;
    return subvolume->bytes < most ? subvolume->bytes + 1 : most;
}

static bool is_divided(const struct bw_division *division, const struct bw_subvolume *subvolume)
{
    return subvolume->tree.root.level &&
           bytes_of(subvolume) * TREES_A_SHARE * division->shard.count >= division->total;
}

struct bw_division bw_division_of(const struct bw_subvolume_table *table,
                                  const struct bw_subvolume *only, struct bw_shard shard)
{
    struct bw_division division = {.shard = shard};
    const struct bw_subvolume *first = only ? only : table->items;
    const size_t count = only ? 1 : table->count;
    for (size_t i = 0; i < count; i++)
        division.total += first[i].deleted ? 0 : bytes_of(&first[i]);
    for (size_t i = 0; i < count; i++)
        if (!first[i].deleted && !is_divided(&division, &first[i]))
            division.whole += bytes_of(&first[i]);
    return division;
}

enum bw_share bw_division_next(struct bw_division *division, const struct bw_subvolume *subvolume)
{
    const uint64_t place = division->before;
    if (subvolume->deleted)
        return BW_SHARE_NONE;
    if (is_divided(division, subvolume))
        return BW_SHARE_PART;
    division->before += bytes_of(subvolume);
    return place / (division->whole / division->shard.count + 1) + 1 == division->shard.number
               ? BW_SHARE_WHOLE
               : BW_SHARE_NONE;
}

/* Dividing a tree. */

enum {
    PARTS_A_SHARD = 3,   /* of dense nodes, at least, if these are taken in turn */
    MOST_PARTS = 16,     /* of a node */
    LEAVES_A_SHARD = 16, /* at least */
    MOST_SAMPLES = 16,   /* of nodes, to estimate how many of a tree are dense */
    DENSE_FROM = 4,      /* one node of so many is dense, or more, where a tree is divided */
    MOST_TWIN_NODES = 1 << 16,
    SPARSE_FROM = 16, /* one leaf of so many begins with an entry, or fewer */
};

/* States of a node. */
enum { UNKNOWN, DENSE, SPARSE };

/* The list that a scan fills, and the caller's function for lost nodes. */
struct loading {
    struct bw_shard_nodes *nodes;
    bw_lost_node *lost;
    void *context;
};

static struct bw_error *add_node(void *context, const struct bw_block_pointer *pointer)
{
    struct bw_shard_nodes *nodes = ((const struct loading *)context)->nodes;
    if (!BW_ARRAY_RESERVE(nodes->pointers, nodes->count, nodes->capacity))
        return bw_error_no_memory();
    nodes->pointers[nodes->count++] = *pointer;
    return NULL;
}

static struct bw_error *pass_lost_node(void *context, const struct bw_block_pointer *pointer,
                                       struct bw_error *error)
{
    const struct loading *loading = context;
    return loading->lost(loading->context, pointer, error);
}

struct bw_error *bw_shard_nodes_load(struct bw_shard_nodes *nodes,
                                     const struct bw_tree_reader *reader,
                                     const struct bw_tree *tree, bw_lost_node *lost, void *context)
{
    struct loading loading = {nodes, lost, context};
    const struct bw_scan scan = {BW_SCAN_ALL, .pointer = add_node, .lost = pass_lost_node,
                                 .context = &loading};
    *nodes = (struct bw_shard_nodes){.reader = reader};
    BW_TRY(bw_tree_scan(reader, tree, &scan));
    nodes->density = calloc(nodes->count + 1, sizeof *nodes->density);
    nodes->unresolved = calloc(nodes->count + 1, sizeof *nodes->unresolved);
    return nodes->density && nodes->unresolved ? NULL : bw_error_no_memory();
}

bool bw_shard_is_sparse(const struct bw_node *node)
{
    uint32_t begin = 0;
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        const uint8_t type = bw_node_key(node, slot).type;
        begin += type == BW_DIR_ITEM || type == BW_DIR_INDEX;
    }
    return begin * SPARSE_FROM < node->item_count;
}

/* Reads a node; one that cannot be read, or is a leaf, counts as dense. */
static bool is_block_sparse(const struct bw_shard_nodes *nodes,
                            const struct bw_block_pointer *pointer)
{
    bool sparse = false;
    uint8_t *block = pointer->expectation.level ? bw_block_buffer(nodes->reader, 1) : NULL;
    struct bw_error *error = block ? bw_block_read(nodes->reader, pointer, block) : NULL;
    if (block && !error) {
        const struct bw_node node = bw_node_view(block, nodes->reader->nodesize);
        sparse = bw_shard_is_sparse(&node);
    }
    bw_error_free(error);
    free(block);
    return sparse;
}

/* The node that contains a key; the first one also for keys before it. */
static size_t node_of(const struct bw_shard_nodes *nodes, const struct bw_key *key)
{
    const struct bw_block_pointer *pointers = nodes->pointers;
    const size_t behind = BW_FIRST_INDEX(
        i, nodes->count, bw_key_compare(&pointers[i].expectation.first_key, key) > 0);
    return behind ? behind - 1 : 0;
}

static bool is_sparse(struct bw_shard_nodes *nodes, size_t node)
{
    unsigned char density = atomic_load_explicit(&nodes->density[node], memory_order_relaxed);
    if (density == UNKNOWN) {
        density = is_block_sparse(nodes, &nodes->pointers[node]) ? SPARSE : DENSE;
        atomic_store_explicit(&nodes->density[node], density, memory_order_relaxed);
    }
    return density == SPARSE;
}

/* How many nodes are dense, judged by some of them. */
static size_t estimate_dense(struct bw_shard_nodes *nodes)
{
    const size_t step = nodes->count / MOST_SAMPLES + 1;
    size_t dense = 0, samples = 0;
    for (size_t node = 0; node < nodes->count; node += step, samples++)
        dense += !is_sparse(nodes, node);
    return samples ? (dense * nodes->count + samples - 1) / samples : 0;
}

/* Adds the first keys of parts of a node; only its own first key if it cannot be read. */
static void add_cuts(struct bw_shard_cuts *cuts, const struct bw_shard_nodes *nodes,
                     const struct bw_block_pointer *pointer, uint32_t parts, uint8_t *block)
{
    struct bw_node node = {0};
    struct bw_error *error =
        pointer->expectation.level ? bw_block_read(nodes->reader, pointer, block) : NULL;
    if (!error && pointer->expectation.level)
        node = bw_node_view(block, nodes->reader->nodesize);
    bw_error_free(error);
    cuts->keys[cuts->count++] = pointer->expectation.first_key;
    for (uint32_t part = 1; part < parts && part < node.item_count; part++)
        cuts->keys[cuts->count++] =
            bw_node_key(&node, (uint32_t)((uint64_t)part * node.item_count / parts));
}

struct bw_error *bw_shard_cuts_make(struct bw_shard_cuts *cuts, struct bw_shard_nodes *nodes,
                                    struct bw_shard shard, bool shared)
{
    const size_t dense = estimate_dense(nodes), ranges = PARTS_A_SHARD * (size_t)shard.count;
    const bool in_turn = dense < nodes->count;
    const size_t wanted = !in_turn ? MOST_PARTS : dense ? (ranges + dense - 1) / dense : 1;
    const uint32_t parts = wanted < MOST_PARTS ? (uint32_t)wanted : MOST_PARTS;
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(nodes->reader, 1);
    *cuts = (struct bw_shard_cuts){.shard = shard, .parts = shared ? 1 : parts, .in_turn = in_turn};
    cuts->keys = calloc(nodes->count * (shared ? parts : 1) + 1, sizeof *cuts->keys);
    if (!cuts->keys || !block)
        return bw_error_no_memory();
    for (size_t i = 0; i < nodes->count; i++)
        if (shared && parts > 1)
            add_cuts(cuts, nodes, &nodes->pointers[i], parts, block);
        else
            cuts->keys[cuts->count++] = nodes->pointers[i].expectation.first_key;
    return NULL;
}

void bw_shard_cuts_free(struct bw_shard_cuts *cuts)
{
    free(cuts->keys);
    *cuts = (struct bw_shard_cuts){0};
}

static bool is_before(const struct bw_shard_cuts *cuts, const struct bw_key *key, size_t cut)
{
    return cut < cuts->count && bw_key_compare(key, &cuts->keys[cut]) < 0;
}

/* The number of the first part of the range that contains a key. Keys often lie in the range of the
 * key before, which begins at `*cut`. */
static uint64_t part_of(const struct bw_shard_cuts *cuts, const struct bw_key *key, size_t *cut)
{
    if (is_before(cuts, key, *cut) || !is_before(cuts, key, *cut + 1)) {
        const size_t behind = BW_FIRST_INDEX(i, cuts->count, is_before(cuts, key, i));
        *cut = behind ? behind - 1 : 0;
    }
    return *cut * (uint64_t)cuts->parts;
}

static bool owns_part(const struct bw_shard_cuts *cuts, uint64_t range)
{
    const uint64_t count = cuts->shard.count, ranges = cuts->count * (uint64_t)cuts->parts;
    const uint64_t owner = cuts->in_turn || !ranges ? range % count : range * count / ranges;
    return owner + 1 == cuts->shard.number;
}

bool bw_shard_has(const struct bw_shard_nodes *nodes, const struct bw_key *first, uint32_t number,
                  uint32_t count, size_t *cut)
{
    const struct bw_shard_cuts *cuts = nodes->cuts;
    return owns_part(cuts, part_of(cuts, first, cut) + (uint64_t)number * cuts->parts / count);
}

static bool begins_before(const struct bw_shard_cuts *cuts, const struct bw_node *node, size_t leaf,
                          size_t cut)
{
    const struct bw_key first = bw_node_key(node, (uint32_t)leaf);
    return is_before(cuts, &first, cut);
}

uint32_t bw_shard_range_end(const struct bw_shard_nodes *nodes, const struct bw_node *node,
                            uint32_t leaf, size_t cut)
{
    const struct bw_shard_cuts *cuts = nodes->cuts;
    if (cuts->parts > 1 || leaf >= node->item_count)
        return leaf + 1;
    if (cut + 1 >= cuts->count)
        return node->item_count;
    return (uint32_t)BW_FIRST_INDEX(i, node->item_count,
                                    i > leaf && !begins_before(cuts, node, i, cut + 1));
}

bool bw_shard_has_any(const struct bw_shard_nodes *nodes, const struct bw_key *first,
                      const struct bw_key *end)
{
    const struct bw_shard_cuts *cuts = nodes->cuts;
    size_t cut = 0;
    uint64_t part = part_of(cuts, first, &cut);
    const uint64_t last = part_of(cuts, end, &cut) + cuts->parts - 1;
    while (part < last && !owns_part(cuts, part))
        part++;
    return owns_part(cuts, part);
}

bool bw_shard_has_all(const struct bw_shard_nodes *nodes, const struct bw_key *first,
                      const struct bw_key *end)
{
    const struct bw_shard_cuts *cuts = nodes->cuts;
    size_t cut = 0;
    return !cuts->in_turn && owns_part(cuts, part_of(cuts, first, &cut)) &&
           owns_part(cuts, part_of(cuts, end, &cut) + cuts->parts - 1);
}

const struct bw_subvolume *bw_shard_model(const struct bw_subvolume_table *table)
{
    const struct bw_subvolume *model = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        if (!subvolume->deleted && bw_shard_shares(subvolume) &&
            (!model || subvolume->bytes > model->bytes))
            model = subvolume;
    }
    return model;
}

void bw_shard_nodes_free(struct bw_shard_nodes *nodes)
{
    for (size_t i = 0; nodes->unresolved && i < nodes->count; i++)
        bw_number_set_free(&nodes->unresolved[i]);
    free(nodes->unresolved);
    free(nodes->pointers);
    free(nodes->density);
    *nodes = (struct bw_shard_nodes){0};
}

static bool is_dense(struct bw_shard_nodes *nodes)
{
    return estimate_dense(nodes) * DENSE_FROM >= nodes->count;
}

/* Whether a tree shares at least half of its nodes with others. */
static bool shares_half(const struct bw_shard_nodes *nodes, const struct bw_shard_twins *twins)
{
    size_t shared = 0;
    for (size_t i = 0; i < nodes->count; i++)
        shared += bw_map_get(&twins->nodes, nodes->pointers[i].bytenr) != UINT32_MAX;
    return shared && shared >= nodes->count / 2;
}

struct bw_error *bw_shard_twins_add(struct bw_shard_twins *twins, struct bw_shard_nodes *nodes)
{
    if (!shares_half(nodes, twins)) {
        const bool was_dense = twins->are_dense;
        twins->are_dense = is_dense(nodes);
        if (twins->are_dense != was_dense)
            bw_map_clear(&twins->nodes);
    }
    if (twins->nodes.count > MOST_TWIN_NODES)
        bw_map_clear(&twins->nodes);
    for (size_t i = 0; i < nodes->count; i++)
        if (!bw_map_put(&twins->nodes, nodes->pointers[i].bytenr, 1))
            return bw_error_no_memory();
    return NULL;
}

struct bw_error *bw_shard_divides(struct bw_shard_nodes *nodes, uint64_t bytes,
                                  struct bw_shard shard, struct bw_shard_twins *twins,
                                  bool *divides)
{
    *divides = bytes / nodes->reader->nodesize >= (uint64_t)LEAVES_A_SHARD * shard.count &&
               nodes->count * MOST_PARTS >= shard.count;
    if (*divides && twins)
        BW_TRY(bw_shard_twins_add(twins, nodes));
    *divides = *divides && (twins ? twins->are_dense : is_dense(nodes));
    return NULL;
}

bool bw_shard_is_sparse_at(struct bw_shard_nodes *nodes, const struct bw_key *key)
{
    const size_t node = node_of(nodes, key);
    return nodes->count && bw_key_compare(key, &nodes->pointers[node].expectation.end_key) < 0 &&
           is_sparse(nodes, node);
}

bool bw_shard_scans_directory(struct bw_shard_nodes *nodes, uint64_t inode)
{
    const struct bw_key first = {inode, BW_DIR_INDEX, 0}, last = {inode, BW_DIR_INDEX, UINT64_MAX};
    size_t node = node_of(nodes, &first);
    for (; node < nodes->count; node++) {
        if (bw_key_compare(&nodes->pointers[node].expectation.first_key, &last) > 0)
            break;
        if (bw_key_compare(&nodes->pointers[node].expectation.end_key, &first) > 0 &&
            is_sparse(nodes, node))
            return false;
    }
    return true;
}

/* Damage. */

bool bw_shard_nodes_add_unresolved(struct bw_shard_nodes *nodes, const struct bw_key *first,
                                   uint64_t directory)
{
    bool is_new;
    return bw_number_set_add(&nodes->unresolved[node_of(nodes, first)], directory, &is_new);
}

bool bw_shard_nodes_have_unresolved(const struct bw_shard_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->unresolved[i].count)
            return true;
    return false;
}

static bool is_followed(struct bw_missing *missing, uint64_t directory)
{
    pthread_mutex_lock(&missing->lock);
    const bool has = bw_number_set_has(&missing->followed, directory);
    pthread_mutex_unlock(&missing->lock);
    return has;
}

bool bw_missing_follow(struct bw_missing *missing, uint64_t directory)
{
    bool is_new;
    pthread_mutex_lock(&missing->lock);
    const bool added = bw_number_set_add(&missing->followed, directory, &is_new);
    pthread_mutex_unlock(&missing->lock);
    return added;
}

bool bw_missing_has(struct bw_missing *missing, uint64_t directory,
                    const struct bw_block_pointer *pointer, const struct bw_key *first,
                    uint32_t number, uint32_t count)
{
    struct bw_shard_nodes *nodes = missing->nodes;
    size_t cut = 0;
    const struct bw_key *node_key = &pointer->expectation.first_key;
    const size_t node = node_of(nodes, node_key);
    if (!nodes->count || nodes->pointers[node].bytenr != pointer->bytenr)
        return bw_lost_list_find(&missing->lost, node_key);
    return is_sparse(nodes, node) ? is_followed(missing, directory)
                                  : bw_shard_has(nodes, first, number, count, &cut) &&
                                        bw_number_set_has(&nodes->unresolved[node], directory);
}

/* Whether the leaf that contains a key belongs to the shard, and its node has the directory of the
 * key among those that are unresolved; false if the node cannot be read. */
static bool has_unresolved(const struct bw_shard_nodes *nodes, const struct bw_key *key)
{
    const size_t number = node_of(nodes, key);
    if (!nodes->count || !bw_number_set_has(&nodes->unresolved[number], key->objectid))
        return false;
    const struct bw_block_pointer *pointer = &nodes->pointers[number];
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(nodes->reader, 1);
    struct bw_error *error = block ? bw_block_read(nodes->reader, pointer, block) : NULL;
    const struct bw_node node =
        block && !error ? bw_node_view(block, nodes->reader->nodesize) : (struct bw_node){0};
    bw_error_free(error);
    if (!node.item_count)
        return false;
    size_t cut = 0;
    const uint32_t leaf = pointer->expectation.level ? bw_child_slot(&node, key) : 0;
    const struct bw_key first = bw_node_key(&node, leaf);
    return bw_shard_has(nodes, &first, leaf, node.item_count, &cut);
}

bool bw_missing_has_name(struct bw_missing *missing, const struct bw_lost_list *lost,
                         const struct bw_lost_name *name)
{
    struct bw_key key = {name->directory, BW_DIR_INDEX, name->index};
    const struct bw_key last = {name->directory, BW_DIR_INDEX, UINT64_MAX};
    const struct bw_lost_range *range = name->index ? NULL : bw_lost_list_first(lost, &key, &last);
    if (range && bw_key_compare(&range->low, &key) > 0)
        key = range->low;
    if (bw_shard_is_sparse_at(missing->nodes, &key))
        return bw_number_set_has(&missing->queued, name->directory) ||
               is_followed(missing, name->directory);
    return bw_lost_list_find(&missing->lost, &key) ||
           (!bw_lost_list_find(lost, &key) && has_unresolved(missing->nodes, &key));
}
