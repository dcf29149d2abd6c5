/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker threads. If threads cannot be started, there are fewer workers: worker 0 is enough. */
#include "base/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"

struct worker {
    struct bw_pool *pool;
    pthread_t thread;
    unsigned number;
};

struct bw_pool {
    unsigned threads;
    unsigned started; /* threads running in addition to the caller's */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool quit;
    void (*run)(void *context, unsigned worker, size_t task);
    void *context;
    size_t next, count; /* tasks started, and all of the series */
    size_t running;     /* tasks under way */
    struct worker workers[];
};

unsigned bw_pool_workers(unsigned wanted)
{
    enum { MOST = 32, MOST_BY_DEFAULT = 8 };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted)
        return wanted < MOST ? wanted : MOST;
    if (processors < 1)
        return 1;
    return processors < MOST_BY_DEFAULT ? (unsigned)processors : MOST_BY_DEFAULT;
}

struct bw_pool *bw_pool_create(unsigned threads)
{
    struct bw_pool *pool = calloc(1, sizeof *pool + threads * sizeof *pool->workers);
    if (!pool)
        return NULL;
    pool->threads = threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    return pool;
}

/* Runs tasks until all have been started. The caller holds the lock, also after the return. */
static void run_tasks(struct bw_pool *pool, unsigned worker)
{
    while (pool->next < pool->count) {
        size_t task = pool->next++;
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        pool->run(pool->context, worker, task);
        pthread_mutex_lock(&pool->lock);
        pool->running--;
    }
    if (!pool->running)
        pthread_cond_signal(&pool->done);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct bw_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->quit) {
        if (pool->next < pool->count)
            run_tasks(pool, worker->number);
        else
            pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void bw_pool_run(struct bw_pool *pool, size_t count,
                 void (*run)(void *context, unsigned worker, size_t task), void *context)
{
    if (count == 1 || pool->threads == 1) {
        for (size_t task = 0; task < count; task++)
            run(context, 0, task);
        return;
    }
    while (pool->started + 1 < pool->threads) {
        struct worker *worker = &pool->workers[pool->started];
        *worker = (struct worker){.pool = pool, .number = pool->started + 1};
        if (bw_thread_start(&worker->thread, run_worker, worker))
            break; /* fewer workers are enough */
        pool->started++;
    }
    pthread_mutex_lock(&pool->lock);
    pool->run = run;
    pool->context = context;
    pool->count = count;
    pool->next = 0;
    pthread_cond_broadcast(&pool->work);
    run_tasks(pool, 0);
    while (pool->running)
        pthread_cond_wait(&pool->done, &pool->lock);
    pool->count = 0;
    pthread_mutex_unlock(&pool->lock);
}

void bw_pool_destroy(struct bw_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
