/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of subvolumes as binary tries. All have the same height; a node of height 0 is 64 bits, a
 * node above is the numbers of its two halves, the lower one in the lower 32 bits. Nodes that hold
 * the same are one, and so sets can be compared by number. A number means different things at
 * different heights, but one that is reached from a set is reached at one height only.
 *
 * Snapshots in a row make sets of a single range. If there are more than 64 subvolumes, such a set
 * is no trie but one node: RANGE, the end of the range, and its beginning.
 */
#include "owners/root_sets.h"

#include <stdlib.h>

#include "base/compare.h"

enum { WORD = BW_ROOT_SET_WORD, UNIONS = 1 << 14 };

#define RANGE (UINT64_C(1) << 63)

/* A union that was made lately. */
struct bw_root_union {
    uint32_t a, b, result;
};

/* The number of the node that holds a value. */
static uint32_t node_of(struct bw_root_sets *sets, uint64_t value)
{
    uint32_t number = value ? bw_key_map_get(&sets->numbers, value, UINT32_MAX) : 0;
    if (number != UINT32_MAX)
        return number;
    if (sets->nodes.count >= INT32_MAX || bw_numbers_reserve(&sets->nodes, 1) ||
        bw_key_map_put(&sets->numbers, value, (uint32_t)sets->nodes.count))
        return UINT32_MAX;
    sets->nodes.items[sets->nodes.count] = value;
    return (uint32_t)sets->nodes.count++;
}

static uint32_t join_halves(struct bw_root_sets *sets, uint32_t low, uint32_t high)
{
    return low == UINT32_MAX || high == UINT32_MAX ? UINT32_MAX
                                                   : node_of(sets, low | (uint64_t)high << 32);
}

static uint32_t low_half(const struct bw_root_sets *sets, uint32_t node)
{
    return (uint32_t)sets->nodes.items[node];
}

static uint32_t high_half(const struct bw_root_sets *sets, uint32_t node)
{
    return (uint32_t)(sets->nodes.items[node] >> 32);
}

/* How many subvolumes each half of a node has. */
static uint64_t half_of(unsigned height)
{
    return (uint64_t)WORD << (height - 1);
}

bool bw_root_sets_init(struct bw_root_sets *sets, uint32_t roots)
{
    *sets = (struct bw_root_sets){.unions = calloc(UNIONS, sizeof *sets->unions)};
    if (!sets->unions || bw_numbers_reserve(&sets->nodes, 1))
        return false;
    sets->nodes.items[sets->nodes.count++] = 0;
    sets->full[0] = node_of(sets, UINT64_MAX);
    while ((uint64_t)WORD << sets->height < roots) {
        const uint32_t full = sets->full[sets->height];
        sets->full[++sets->height] = join_halves(sets, full, full);
    }
    return sets->full[sets->height] != UINT32_MAX && roots <= INT32_MAX;
}

void bw_root_sets_free(struct bw_root_sets *sets)
{
    bw_numbers_free(&sets->nodes);
    free(sets->unions);
    bw_key_map_free(&sets->numbers);
}

/* The node of a height that has the numbers from `first` up to `end`. */
static uint32_t of_part(struct bw_root_sets *sets, unsigned height, uint64_t first, uint64_t end)
{
    const uint64_t half = height ? half_of(height) : 0;
    if (!first && end == (uint64_t)WORD << height)
        return sets->full[height];
    if (!height)
        return node_of(sets, UINT64_MAX >> (WORD - (end - first)) << first);
    uint32_t low = 0, high = 0;
    if (first < half)
        low = of_part(sets, height - 1, first, end < half ? end : half);
    if (end > half)
        high = of_part(sets, height - 1, first > half ? first - half : 0, end - half);
    return join_halves(sets, low, high);
}

/* Whether a set is stored as a single range, the reverse of bw_root_set_of_range(). */
static bool is_range(const struct bw_root_sets *sets, uint32_t set, struct bw_root_range *range)
{
    const uint64_t value = sets->nodes.items[set];
    *range = (struct bw_root_range){(uint32_t)value, (uint32_t)((value & ~RANGE) >> 32)};
    return sets->height && value & RANGE;
}

uint32_t bw_root_set_of_range(struct bw_root_sets *sets, struct bw_root_range range)
{
    return sets->height ? node_of(sets, RANGE | (uint64_t)range.end << 32 | range.first)
                        : of_part(sets, 0, range.first, range.end);
}

/* A set as a trie. */
static uint32_t trie_of(struct bw_root_sets *sets, uint32_t set)
{
    struct bw_root_range range;
    return is_range(sets, set, &range) ? of_part(sets, sets->height, range.first, range.end) : set;
}

uint32_t bw_root_set_of(struct bw_root_sets *sets, uint32_t root)
{
    return bw_root_set_of_range(sets, (struct bw_root_range){root, root + 1});
}

static uint32_t unite_nodes(struct bw_root_sets *sets, uint32_t a, uint32_t b, unsigned height)
{
    const uint32_t full = sets->full[height];
    if (a == b || !b || a == full)
        return a;
    if (!a || b == full)
        return b;
    if (!height)
        return node_of(sets, sets->nodes.items[a] | sets->nodes.items[b]);
    const uint32_t low = unite_nodes(sets, low_half(sets, a), low_half(sets, b), height - 1);
    const uint32_t high = unite_nodes(sets, high_half(sets, a), high_half(sets, b), height - 1);
    return join_halves(sets, low, high);
}

static uint32_t cut_node(struct bw_root_sets *sets, uint32_t node, unsigned height, uint64_t end)
{
    if (!node || !end)
        return 0;
    if (end >= (uint64_t)WORD << height)
        return node;
    if (!height)
        return node_of(sets, sets->nodes.items[node] & ((UINT64_C(1) << end) - 1));
    const uint64_t half = half_of(height);
    const uint32_t low = cut_node(sets, low_half(sets, node), height - 1, end);
    const uint32_t high =
        end > half ? cut_node(sets, high_half(sets, node), height - 1, end - half) : 0;
    return join_halves(sets, low, high);
}

/* The first position of a node from `from` on that is in the set, or that is not; the node's size
 * if no position qualifies. */
static uint64_t find_position(const struct bw_root_sets *sets, uint32_t node, unsigned height,
                              uint64_t from, bool inside)
{
    const uint64_t size = (uint64_t)WORD << height;
    const bool full = node == sets->full[height];
    if (from >= size || !node || full)
        return from >= size || inside != full ? size : from;
    if (!height) {
        const uint64_t bits = inside ? sets->nodes.items[node] : ~sets->nodes.items[node];
        const uint64_t left = bits >> from;
        return left ? from + (unsigned)__builtin_ctzll(left) : size;
    }
    const uint64_t half = size / 2;
    const uint64_t low =
        from < half ? find_position(sets, low_half(sets, node), height - 1, from, inside) : half;
    if (low < half)
        return low;
    return half + find_position(sets, high_half(sets, node), height - 1,
                                from > half ? from - half : 0, inside);
}

bool bw_root_set_next(const struct bw_root_sets *sets, uint32_t set, struct bw_root_range *range)
{
    const uint64_t size = (uint64_t)WORD << sets->height;
    struct bw_root_range only;
    if (is_range(sets, set, &only)) {
        if (range->end >= only.end)
            return false;
        *range =
            (struct bw_root_range){range->end > only.first ? range->end : only.first, only.end};
        return true;
    }
    const uint64_t first = find_position(sets, set, sets->height, range->end, true);
    if (first >= size)
        return false;
    *range = (struct bw_root_range){(uint32_t)first,
                                    (uint32_t)find_position(sets, set, sets->height, first, false)};
    return true;
}

bool bw_root_set_is_range(const struct bw_root_sets *sets, uint32_t set,
                          struct bw_root_range *range)
{
    *range = (struct bw_root_range){0};
    if (!bw_root_set_next(sets, set, range))
        return false;
    struct bw_root_range other = *range;
    return !bw_root_set_next(sets, set, &other);
}

/* The set that a trie is. */
static uint32_t set_of(struct bw_root_sets *sets, uint32_t trie)
{
    struct bw_root_range range;
    return trie != UINT32_MAX && sets->height && bw_root_set_is_range(sets, trie, &range)
               ? bw_root_set_of_range(sets, range)
               : trie;
}

uint32_t bw_root_set_union(struct bw_root_sets *sets, uint32_t a, uint32_t b)
{
    if (a == b || !b)
        return a;
    if (!a)
        return b;
    struct bw_root_union *known =
        &sets->unions[(a * UINT32_C(0x9e3779b1) ^ b * UINT32_C(0x85ebca77)) >> 18];
    if (known->a == a && known->b == b)
        return known->result;

    /* Runs that touch need no tries. */
    struct bw_root_range first, second;
    uint32_t result = UINT32_MAX;
    if (is_range(sets, a, &first) && is_range(sets, b, &second) && first.first <= second.end &&
        second.first <= first.end) {
        const struct bw_root_range both = {(uint32_t)bw_min(first.first, second.first),
                                           (uint32_t)bw_max(first.end, second.end)};
        result = bw_root_set_of_range(sets, both);
    } else {
        const uint32_t one = trie_of(sets, a), other = trie_of(sets, b);
        if (one != UINT32_MAX && other != UINT32_MAX)
            result = set_of(sets, unite_nodes(sets, one, other, sets->height));
    }
    if (result != UINT32_MAX)
        *known = (struct bw_root_union){a, b, result};
    return result;
}

uint32_t bw_root_set_below(struct bw_root_sets *sets, uint32_t set, uint32_t end)
{
    const uint32_t trie = trie_of(sets, set);
    return trie == UINT32_MAX ? trie : set_of(sets, cut_node(sets, trie, sets->height, end));
}

/* Sums. */

void bw_root_sum_add(struct bw_root_sets *sets, struct bw_root_sum *sum, uint32_t set)
{
    sum->set = sum->set == UINT32_MAX || set == UINT32_MAX ? UINT32_MAX
                                                           : bw_root_set_union(sets, sum->set, set);
}

static void add_word(struct bw_root_sets *sets, struct bw_root_sum *sum)
{
    if (!sum->bits)
        return;
    uint32_t node = node_of(sets, sum->bits);
    for (unsigned height = 1; height <= sets->height; height++)
        if (sum->place & half_of(height))
            node = join_halves(sets, 0, node);
        else
            node = join_halves(sets, node, 0);
    bw_root_sum_add(sets, sum, node);
    sum->bits = 0;
}

/* Joins the last ranges to the word or, if they do not lie in one, to the set. */
static void add_last(struct bw_root_sets *sets, struct bw_root_sum *sum)
{
    const struct bw_root_range range = sum->range;
    const uint32_t place = range.first / WORD * WORD;
    sum->range = (struct bw_root_range){0};
    if (range.end > place + WORD) {
        bw_root_sum_add(sets, sum, bw_root_set_of_range(sets, range));
    } else if (range.end) {
        if (place != sum->place)
            add_word(sets, sum);
        sum->place = place;
        sum->bits |= UINT64_MAX >> (WORD - (range.end - range.first)) << (range.first - place);
    }
}

void bw_root_sum_add_range(struct bw_root_sets *sets, struct bw_root_sum *sum,
                           struct bw_root_range range)
{
    if (range.first != sum->range.end)
        add_last(sets, sum);
    if (!sum->range.end)
        sum->range.first = range.first;
    sum->range.end = range.end;
}

uint32_t bw_root_sum_end(struct bw_root_sets *sets, struct bw_root_sum *sum)
{
    add_last(sets, sum);
    add_word(sets, sum);
    return sum->set;
}
