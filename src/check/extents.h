/* SPDX-License-Identifier: GPL-2.0-or-later */
/* References from both sides, collected for the buckets that do not balance, and the faults in
 * them. */
#ifndef BW_CHECK_EXTENTS_H
#define BW_CHECK_EXTENTS_H

#include "base/vector.h"
#include "check/reference_counts.h"
#include "owners/ranges.h"
#include "owners/tree_list.h"

/** A reference, as both sides have it. Of kind BW_EXTENT_ITEM: the extent item itself, with
 * `promised` references. */
struct bw_reference_entry {
    struct bw_reference reference; /**< its count does not matter */
    uint64_t promised, made;
    uint64_t tree; /**< through which it was made */
};

BW_VECTOR(bw_reference_entries, struct bw_reference_entry);

/** A list of them, of the extents in a range of buckets. */
struct bw_entries {
    struct bw_check *check;
    struct bw_reference_entries entries;
    uint32_t first, end; /**< buckets; the end moves down if there are too many entries */
    bool no_memory;
    bool counts; /**< entries are not kept, but counted in the buckets */
};

/** Adds an entry, if it belongs to a bucket of the list that does not balance. */
void bw_entries_add(struct bw_entries *list, const struct bw_reference_entry *entry);

/** Joins entries of the same reference, in the order of the extents. Matching entries are dropped.
 */
void bw_entries_merge(struct bw_entries *list);

/** Receives a reference from a tree; `block` contains it, at the slot before the present one. Of
 * kind 0: it is about the block itself. NULL: it is the reference to the root of the tree. */
typedef struct bw_error *bw_made_visitor(void *context, const struct bw_listed_tree *tree,
                                         const struct bw_reference *reference,
                                         const struct bw_block_references *block);

/** Passes each tree block that can be read (kind 0), after it the references that it makes, and the
 * references to roots. Blocks in `by_address` are counted by their address. */
struct bw_error *bw_visit_made_references(struct bw_fs *fs, const struct bw_tree_list *trees,
                                          const struct bw_key_map *by_address,
                                          bw_made_visitor *visit, void *context);

#endif
