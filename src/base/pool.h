/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Worker threads for series of numbered tasks. The calling thread is worker 0; the others are
 * started when a series first has more than one task, so that a small image costs no thread.
 */
#ifndef BW_BASE_POOL_H
#define BW_BASE_POOL_H

#include <stddef.h>

struct bw_pool;

/** The number of workers for a user's choice: at most 32; for 0 one for each processor, at most 8.
 */
unsigned bw_pool_workers(unsigned wanted);

/** Makes a pool of `threads` workers (at least 1); NULL if memory runs out. */
struct bw_pool *bw_pool_create(unsigned threads);

/** Stops the threads and frees the pool; NULL is allowed. */
void bw_pool_destroy(struct bw_pool *pool);

/** Runs tasks 0 to count - 1, started in this order, and returns when all are done. */
void bw_pool_run(struct bw_pool *pool, size_t count,
                 void (*run)(void *context, unsigned worker, size_t task), void *context);

#endif
