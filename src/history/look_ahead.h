/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests the tree blocks in which generations differ before these are opened and compared one
 * after the other: level by level for all of them, so that servers see few round trips. For images
 * that are not on servers, the functions do nothing. */
#ifndef BW_HISTORY_LOOK_AHEAD_H
#define BW_HISTORY_LOOK_AHEAD_H

#include "btrfs-walk/history.h"
#include "fs/fs.h"

/** The number of generations to look at together. */
enum { BW_LOOK_AHEAD = 64 };

/** Whether an image is on a server, which keeps ranges that were requested. Any other storage would
 * read them twice. */
bool bw_history_is_served(const struct bw_fs *fs);

/** Requests the blocks of all subvolumes and of the checksums in which these generations and the
 * present one differ; or those of a tree and a range of its keys. Blocks that cannot be read are
 * left to those who need them. Fails only if memory runs out. */
struct bw_error *bw_look_ahead(struct bw_fs *present, const struct bw_generation_choice *states,
                               size_t count);
struct bw_error *bw_look_ahead_in(struct bw_fs *present, const struct bw_generation_choice *states,
                                  size_t count, uint64_t tree, const struct bw_key *first,
                                  const struct bw_key *last);

#endif
