/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection to an NBD server, with many reads in flight, for any number of threads. It is made
 * by bw_servers_open(), before the program confines itself, and used by storage/nbd. If the server
 * goes, the connection is made again, as often as its limits allow; after that all reads fail.
 */
#ifndef BW_SERVERS_CONNECTION_H
#define BW_SERVERS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "btrfs-walk/error.h"

struct bw_connection;
struct bw_helper;

/** The server to connect to. Texts are copied. */
struct bw_connection_target {
    const char *name;         /**< the image, as messages call it */
    const char *uri;          /**< address of a server; NULL: `helper` serves the image */
    struct bw_helper *helper; /**< outlives the connection; NULL: none */
    unsigned timeout;         /**< as of bw_connection_limit(), and not 0 */
};

/** The description that the server sent. */
struct bw_connection_facts {
    uint64_t size;    /**< size of the image, in bytes */
    uint32_t minimum; /**< offsets and lengths of reads must be multiples of it */
    uint32_t maximum; /**< bytes of a read; at least 512, and a multiple of `minimum` */
};

/** For the connection's own use: reads that are waited for together. */
struct bw_connection_call {
    struct bw_connection *connection;
    size_t left; /**< reads without a reply */
};

/** A read: the caller sets the first three members. */
struct bw_connection_read {
    uint64_t offset; /**< see bw_connection_facts; offset + length is at most the size */
    uint32_t length;
    void *buffer;
    int problem; /**< reply: 0 or a number of errno; ENOTCONN: bw_connection_lost() returns the
                    reason */
    bool done;   /**< used by the connection only, like the next member */
    struct bw_connection_call *call;
};

/** Connects. BW_ERROR_SYSTEM: the server does not exist, does not have the image, or sends invalid
 * replies; BW_ERROR_USAGE: the program was built without libnbd, or the URI is wrong. */
struct bw_error *bw_connection_open(const struct bw_connection_target *target,
                                    struct bw_connection **connection);

/** Whether the program was built with libnbd. */
extern const bool bw_connection_is_built;

/** Ends it, after the last read; NULL is allowed. */
void bw_connection_close(struct bw_connection *connection);

struct bw_connection_facts bw_connection_facts(const struct bw_connection *connection);

/** Sets how long the server may be silent before it counts as gone, in milliseconds (0: unchanged),
 * and how often to reconnect to a server that disappeared. A server that has never replied on a
 * connection is not reconnected after a timeout. */
void bw_connection_limit(struct bw_connection *connection, unsigned timeout, unsigned attempts);

/** Answers reads, all of which are sent before the first answer is waited for. Returns how often
 * the connection was made again by this call. Safe from any thread. */
unsigned bw_connection_read(struct bw_connection *connection, struct bw_connection_read *reads,
                            size_t count);

/** Why reads have failed with ENOTCONN; the caller's. */
struct bw_error *bw_connection_lost(struct bw_connection *connection);

/*
 * Ranges of the image that are kept, at most 128 MiB of them.
 */

/** Requests a range that will be read soon, without waiting for it. It is kept until it was taken,
 * or, if it `stays`, as bw_connection_cache() does. Ignored if too much is on the way already. */
void bw_connection_advise(struct bw_connection *connection, uint64_t offset, uint64_t length,
                          bool stays);

/** Keeps the bytes of a range, which may be read again, as long as there is room. */
void bw_connection_cache(struct bw_connection *connection, uint64_t offset, uint32_t length,
                         const uint8_t *bytes);

/** Whether a whole range is kept, or on the way. */
bool bw_connection_has(struct bw_connection *connection, uint64_t offset, uint32_t length);

/** Reads such a range; waits until it has arrived. False if it is not kept any more, or could not
 * be read; then it must be read. */
bool bw_connection_read_cached(struct bw_connection *connection, uint64_t offset, uint32_t length,
                               uint8_t *buffer);

/*
 * The table of these ranges, for connection.c and the tests: range_cache.c. Its functions do no
 * locking and no I/O.
 */

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
    size_t hand;                    /**< where the clock algorithm continues */
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
