/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file without a name, in $TMPDIR or /var/tmp, for a decompressed image. Zeros are not stored. If
 * no file can be made, as in the sandbox, it falls back to memory. The set of servers makes spools
 * before the program confines itself.
 */
#ifndef BW_SERVERS_SPOOL_H
#define BW_SERVERS_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

struct bw_spool;

/** Makes an empty spool. It may use nine tenths of the free space, or a quarter of the memory.
 * BW_ERROR_SYSTEM, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_spool_create(struct bw_spool **spool);

/** NULL is allowed. */
void bw_spool_destroy(struct bw_spool *spool);

/** Discards all contents. BW_ERROR_SYSTEM. */
struct bw_error *bw_spool_begin(struct bw_spool *spool);

/** Appends bytes. BW_ERROR_SYSTEM if it may not grow more, or cannot. */
struct bw_error *bw_spool_append(struct bw_spool *spool, const uint8_t *bytes, size_t length);

/** Ends writing. `damage` is the reason why it is not complete, or NULL; it becomes the spool's. */
void bw_spool_finish(struct bw_spool *spool, struct bw_error *damage);

const struct bw_error *bw_spool_damage(const struct bw_spool *spool);

/** Whether it was finished: a spool of the set serves each opening of its image. */
bool bw_spool_is_finished(const struct bw_spool *spool);

/** Bytes appended so far. */
uint64_t bw_spool_size(const struct bw_spool *spool);

/** Reads a range within the size. Any number of threads may read. BW_ERROR_SYSTEM. */
struct bw_error *bw_spool_read(const struct bw_spool *spool, uint64_t offset, void *buffer,
                               size_t length);

/** The first address from `offset` on that may not be zeros; UINT64_MAX: none. */
uint64_t bw_spool_next_stored(const struct bw_spool *spool, uint64_t offset);

#endif
