/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space of the log. The extent tree does not contain it before the next transaction: there it
 * is free, except for data that the log only references again. */
#ifndef BW_CHECK_LOG_SPACE_H
#define BW_CHECK_LOG_SPACE_H

#include "base/range_set.h"
#include "check/check.h"

struct bw_log_space;

/** Begins; NULL if memory runs out. */
struct bw_log_space *bw_log_space_create(void);
/** Frees it; NULL is allowed. */
void bw_log_space_free(struct bw_log_space *space);

/** A tree block of the log. Safe from any thread. */
void bw_log_space_block(struct bw_log_space *space, uint64_t bytenr, uint32_t length);

/** Adds a whole stored extent that an inode of a subvolume has in the log. */
void bw_log_space_data(struct bw_log_space *space, uint64_t bytenr, uint64_t length,
                       uint64_t subvolume, uint64_t inode);

/** Adds the data that the log refers to, before the pass `log`: the checksum tree may already have
 * their checksums. False in `*complete`: part of the log is lost. */
struct bw_error *bw_log_data_ranges(struct bw_check *check, struct bw_range_set *ranges,
                                    bool *complete);

/** At the end: compares them with each other, with the chunks and with the extent tree. Fails only
 * if memory runs out, or has run out. */
struct bw_error *bw_log_space_check(struct bw_log_space *space, struct bw_check *check);

#endif
