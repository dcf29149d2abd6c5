/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * performance/io-threads: cuts a batch into slices that the layer below serves in parallel, on
 * threads of this layer and on the caller's thread. It helps where the layer below is slow for each
 * request.
 *
 * The caller puts its batch into the queue and then serves slices of it like any other thread,
 * until none remains. Then it waits for the slices that other threads have taken. So a batch is
 * completed even if all threads are busy, or none could be started, and the call returns when the
 * whole batch is done.
 */
#include <pthread.h>

#include "base/thread.h"
#include "xlators/classes.h"

enum { MOST_THREADS = 64 };

/* A batch that is being processed, on the stack of its caller. */
struct batch {
    struct batch *next; /* in the queue, while slices are left */
    const struct bw_frame *frame;
    struct bw_xlator *child;
    struct bw_request *requests;
    size_t count, taken; /* number of requests, and of those in slices that were taken */
    size_t slice;        /* requests per slice; the last one may be smaller */
    size_t running;      /* number of slices being served */
};

struct io_threads {
    size_t limit; /* maximum number of slices of a batch, and of slices served at a time by threads
                   * and one caller */
    size_t count; /* number of running threads */
    bool started, quit;   /* started: as many threads as possible were started */
    pthread_mutex_t lock; /* protects all mutable state, here and in the batches */
    pthread_cond_t work;  /* the queue is not empty, or `quit` was set */
    pthread_cond_t done;  /* a batch is complete */
    struct batch *first;  /* the queue */
    uint64_t batches, slices, slices_by_threads;
    pthread_t threads[MOST_THREADS];
};

static void add_to_queue(struct io_threads *pool, struct batch *batch)
{
    struct batch **link = &pool->first;
    while (*link)
        link = &(*link)->next;
    *link = batch;
}

static void remove_from_queue(struct io_threads *pool, const struct batch *batch)
{
    struct batch **link = &pool->first;
    while (*link != batch)
        link = &(*link)->next;
    *link = batch->next;
}

/* Reads the next slice of a batch in the queue; called and left with the lock held. The batch may
 * be gone afterwards, unless it is the caller's own. */
static void read_next_slice(struct io_threads *pool, struct batch *batch)
{
    struct bw_request *requests = batch->requests + batch->taken;
    size_t left = batch->count - batch->taken, count = left < batch->slice ? left : batch->slice;
    batch->taken += count;
    batch->running++;
    pool->slices++;
    if (batch->taken == batch->count)
        remove_from_queue(pool, batch);
    pthread_mutex_unlock(&pool->lock);
    bw_wind(batch->frame, batch->child, requests, count);
    pthread_mutex_lock(&pool->lock);
    if (--batch->running == 0 && batch->taken == batch->count)
        pthread_cond_broadcast(&pool->done);
}

static void *read_slices(void *argument)
{
    struct io_threads *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->quit) {
        if (pool->first) {
            pool->slices_by_threads++;
            read_next_slice(pool, pool->first);
        } else {
            pthread_cond_wait(&pool->work, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Starts as many threads as possible. The lock must be held. */
static void start_threads(struct io_threads *pool)
{
    pool->started = true;
    while (pool->count + 1 < pool->limit &&
           !bw_thread_start(&pool->threads[pool->count], read_slices, pool))
        pool->count++;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct io_threads *pool = bw_xlator_private(xlator);
    struct batch batch = {.frame = frame,
                          .child = bw_xlator_child(xlator, 0),
                          .requests = requests,
                          .count = count,
                          .slice = (count + pool->limit - 1) / pool->limit};
    if (batch.slice == count) {
        bw_wind(frame, batch.child, requests, count);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    if (!pool->started)
        start_threads(pool);
    if (!pool->count) /* without threads, a single slice is best */
        batch.slice = count;
    pool->batches++;
    add_to_queue(pool, &batch);
    pthread_cond_broadcast(&pool->work);
    while (batch.taken < count)
        read_next_slice(pool, &batch);
    while (batch.running)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct io_threads *pool = bw_xlator_private(xlator);
    pool->limit = (size_t)bw_xlator_option_number(xlator, "threads");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct io_threads *pool = bw_xlator_private(xlator);
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct io_threads *pool = bw_xlator_private(xlator);
    pthread_mutex_lock(&pool->lock);
    bw_json_number(json, "started", pool->count);
    bw_json_number(json, "batches", pool->batches);
    bw_json_number(json, "slices", pool->slices);
    bw_json_number(json, "slices_by_threads", pool->slices_by_threads);
    pthread_mutex_unlock(&pool->lock);
}

static const struct bw_option options[] = {
    {"threads", BW_OPTION_INTEGER, "4", 1, MOST_THREADS,
     "number of parts of a batch that are served in parallel", NULL},
    {0},
};

static const char page[] =
    "Splits a batch of reads into as many parts as there are threads, and passes them to "
    "the layer below in parallel. The batch is complete when all its parts are. A batch of "
    "one request is passed on directly, and so is every batch if no thread can be started.\n\n"
    "It helps above a layer that is slow, serves one request at a time, and does not "
    "support read-ahead, such as a plug-in that contacts a server. Above a debug/delay-gen, "
    "a walk with one thread becomes three to four times as fast with 4 threads, and eight "
    "times as fast with 16.\n\n"
    "    btrfs-walk --insert performance/io-threads@device-1,threads=16 disk.img\n\n"
    "It does not help above storage/file, where the kernel performs the read-ahead. Above "
    "features/verify, the threads share the computation of checksums, but -j saves more "
    "time. So try -j first.\n";

const struct bw_xlator_class bw_performance_io_threads_class = {
    .type = "performance/io-threads",
    .description = "serves parts of a batch in parallel",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct io_threads),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
