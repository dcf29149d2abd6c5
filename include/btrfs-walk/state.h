/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which state of a file system is opened. Blocks are never written in place, so the tree blocks of
 * older transactions lie on the disk until something else is written there; each of these states is
 * a file system of its own, with its own root tree and chunk tree. What is lost of an older state
 * is damage; nothing of another state is shown in its place.
 */
#ifndef BTRFS_WALK_STATE_H
#define BTRFS_WALK_STATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How many older states the superblock names. */
enum { BW_STATE_BACKUPS = 4 };

/** The choice of a state. All zeros: the present one. At most one of `generation`, `tree_root` and
 * `backup` may be set. */
struct bw_state_choice {
    uint64_t generation;           /**< the transaction that committed it */
    uint64_t tree_root;            /**< logical address of the root of its root tree */
    uint64_t tree_root_generation; /**< that root must have it, if this is not 0 */
    uint64_t chunk_root;           /**< logical address of the root of its chunk tree; 0: the one
                                      that belongs to the state as far as the superblock says so,
                                      otherwise the present one */
    /** One of the backup roots of the superblock, from 1 on: it is one more than the number that
     * `btrfs inspect-internal dump-super --full` prints. */
    unsigned backup;
};

#ifdef __cplusplus
}
#endif

#endif
