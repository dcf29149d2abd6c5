/* SPDX-License-Identifier: GPL-2.0-or-later */
/* References from both sides, collected for the buckets that do not balance, and the faults in
 * them. */
#ifndef BW_CHECK_EXTENTS_H
#define BW_CHECK_EXTENTS_H

#include "base/vector.h"
#include "check/reference_counts.h"
#include "owners/ranges.h"

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

    /* While the references that exist are added. */
    const struct bw_listed_tree *tree; /**< in which they are */
    struct bw_block_set seen;          /**< tree blocks that were read */
};

/** Adds an entry, if it belongs to a bucket of the list that does not balance. */
void bw_entries_add(struct bw_entries *list, const struct bw_reference_entry *entry);

/** Joins entries of the same reference, in the order of the extents. Matching entries are dropped.
 */
void bw_entries_merge(struct bw_entries *list);

#endif
