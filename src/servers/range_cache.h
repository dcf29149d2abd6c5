/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ranges of an image that are kept because they were requested ahead, or may be read again:
 * tree blocks. Their number of bytes is limited. The functions do no locking and no I/O:
 * connection.c does.
 */
#ifndef BW_SERVERS_RANGE_CACHE_H
#define BW_SERVERS_RANGE_CACHE_H

#include "base/vector.h"
#include "servers/connection.h"

/** A range that was read with one request, or is on the way. */
struct bw_cached_range {
    struct bw_connection_call call;
    struct bw_connection_read read;
    uint64_t left;  /**< bytes that were requested ahead and not read yet */
    uint64_t age;   /**< bytes that had been requested before */
    unsigned users; /**< threads that wait for it, or copy from it */
    bool hit;       /**< read since the hand has passed it */
    bool stays;     /**< also after it was read */
    uint8_t bytes[];
};

BW_VECTOR(bw_cached_ranges, struct bw_cached_range *);

/** All zeros is empty. */
struct bw_range_cache {
    struct bw_cached_ranges ranges; /**< ascending, without overlap */
    size_t hand;                    /**< where the clock algorithm goes on */
    uint64_t bytes;                 /**< sum of the lengths of all ranges */
    uint64_t requested;             /**< bytes requested so far, also in vain */
};

/** Frees all ranges. None may be on the way. */
void bw_range_cache_free(struct bw_range_cache *cache);

/** Adds the first part of a range that is not in the cache, at most `most` bytes, and moves its
 * beginning behind this part. NULL if the cache has the whole range, no room, or no memory. Ranges
 * that were requested ahead make no room before they were read, unless they are so old that they
 * probably will not be. If the part `stays`, parts before it that are in the cache stay, too. */
struct bw_cached_range *bw_range_cache_add(struct bw_range_cache *cache, uint64_t *begin,
                                           uint64_t end, uint32_t most, bool stays);

/** The range that contains an offset, or NULL. */
struct bw_cached_range *bw_range_cache_find(const struct bw_range_cache *cache, uint64_t offset);

/** Whether a whole range is in the cache, or on the way. */
bool bw_range_cache_has(const struct bw_range_cache *cache, uint64_t offset, uint64_t length);

/** Removes and frees a range without users that is not on the way. */
void bw_range_cache_remove(struct bw_range_cache *cache, struct bw_cached_range *range);

#endif
