/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Baselines: the results of a finished check, for later checks that read only changes.
 *
 * A tree block is never changed in place: a changed one gets another address, or the same address
 * with a later generation. So a leaf whose address and generation are in the baseline has the same
 * contents as then, and its part in everything that the check adds up is known: the references that
 * it makes, and the sums of its inodes. A block group is unchanged if its item, and all leaves of
 * the extent, free space and checksum trees that describe it, are the same as then. The baseline
 * has what the scan of such a block group adds up to.
 *
 * Leaves and block groups with findings are never entered, so the next check reads them again. The
 * findings themselves are entered, so they can be compared with later ones.
 */
#ifndef BW_CHECK_BASELINE_H
#define BW_CHECK_BASELINE_H

#include <pthread.h>

#include "base/hash_table.h"
#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/check.h"
#include "check/inode_sums.h"

/** Facts about a leaf that decide whether it can be skipped. */
enum {
    BW_LEAF_HAS_SUMS = 1 << 0,     /**< it has inodes: `sums` is set */
    BW_LEAF_BY_ADDRESS = 1 << 1,   /**< its references are counted by its address */
    BW_LEAF_UNSUMMED = 1 << 2,     /**< it has data that rightly have no checksums */
    BW_LEAF_DEPENDS = 1 << 3,      /**< the inode of its first extents is in an earlier leaf */
    BW_LEAF_FIRST_SUMMED = 1 << 4, /**< that inode has checksums */
};

/** A leaf without findings. */
struct bw_known_leaf {
    uint64_t bytenr, generation;
    uint64_t owner;      /**< in its header */
    uint64_t references; /**< the sum of the references that it makes */
    uint32_t checksum;   /**< the first bytes of its checksum */
    uint16_t synology;   /**< inodes with the flag of Synology's kernels */
    uint8_t facts;       /**< BW_LEAF_... */
    struct bw_inode_sums sums;
};

BW_VECTOR(bw_known_leaves, struct bw_known_leaf);

/** A block group without findings. */
struct bw_known_group {
    uint64_t start, length, used, flags; /**< of its item */
    uint64_t leaves;                     /**< the sum of the leaves that describe it */
    uint64_t references;                 /**< the sum of the references to its extents */
};

BW_VECTOR(bw_known_groups, struct bw_known_group);

/** A finding: the members of its row, and the bytes to which they point. */
struct bw_known_finding {
    struct bw_findinginfo row; /**< its texts are in `bytes` */
    uint64_t identity;         /**< see bw_finding_identity() */
    char *bytes;               /**< the message and a NUL, then the paths, each with a NUL */
    struct bw_bytes *paths;
};

BW_VECTOR(bw_known_findings, struct bw_known_finding);

struct bw_baseline {
    pthread_mutex_t lock;

    /* The file system: all the same later, except a higher generation. */
    uint8_t fsid[BW_UUID_SIZE];
    uint64_t generation;
    uint64_t incompat, compat_ro;
    uint64_t nodesize, sectorsize;
    uint64_t replaced; /**< a hash of the item about the replacement of a device */

    uint64_t seed; /**< of the sums; see struct bw_fact_secrets */
    uint64_t time; /**< seconds since 1970 */
    uint64_t blocks;
    uint64_t finished;        /**< whether the check that made it was: the rest can be used */
    uint64_t has_data;        /**< whether it read all data */
    uint64_t findings_hidden; /**< whether some findings are not in `findings` */

    struct bw_known_leaves leaves;
    struct bw_key_map by_address; /**< address of a leaf to its number */
    struct bw_known_groups groups;
    struct bw_range_set unsummed;    /**< data without checksums */
    struct bw_numbers full_backrefs; /**< ascending; as in struct bw_check */
    struct bw_numbers shared_blocks; /**< ascending; as in struct bw_check */
    struct bw_range_set bad_data;    /**< data with findings */
    struct bw_known_findings findings;
};

/** Adds a leaf. Safe from any thread. */
struct bw_error *bw_baseline_add_leaf(struct bw_baseline *baseline,
                                      const struct bw_known_leaf *leaf);

/** The leaf with an address and a generation; NULL if the baseline does not have it. */
const struct bw_known_leaf *bw_baseline_leaf(const struct bw_baseline *baseline, uint64_t bytenr,
                                             uint64_t generation);

/** The block group that begins at an address; NULL if the baseline does not have it. */
const struct bw_known_group *bw_baseline_group(const struct bw_baseline *baseline, uint64_t start);

/** A hash of the code and the location of a finding, which do not change until it is repaired. */
uint64_t bw_finding_identity(const struct bw_findinginfo *row);

/** Adds a finding. */
struct bw_error *bw_baseline_add_finding(struct bw_baseline *baseline,
                                         const struct bw_findinginfo *row);

#endif
