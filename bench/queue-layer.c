/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench/queue-layer: a device with a queue, and the page cache in front of it. Each request takes
 * the same time, and the device works at up to `depth` of them at once: 128 are a solid-state disk,
 * one is a disk without a queue. Announced ranges are requested at once, without waiting, as Linux
 * does; a read waits until all that it needs has arrived. Nothing is read twice.
 *
 *     BTRFS_WALK_XLATOR_PATH=build btrfs-walk --insert \
 *         bench/queue-layer@device-1,delay=100us,depth=128,file=queue.txt image.img
 *
 * The real image is read after the wait, from the page cache if it is there. In the end a line with
 * figures is appended to the file.
 */
#include <btrfs-walk/graph.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = 4096, MOST_DEPTH = 1024 };

struct queue {
    uint64_t delay, depth, most, units;
    int output;
    pthread_mutex_t lock;
    uint64_t *arrival;         /* of each unit of the device, in nanoseconds; 0: not requested */
    uint64_t done[MOST_DEPTH]; /* when the last `depth` requests were or will be done, in a ring */
    uint64_t requests, bytes;
    uint64_t busy_until, busy; /* nanoseconds in which the device works */
    uint64_t waits, waited;    /* batches of reads that waited, and for how long */
    uint64_t begin;
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct queue *queue = bw_xlator_private(xlator);
    queue->delay = bw_xlator_option_number(xlator, "delay");
    queue->depth = bw_xlator_option_number(xlator, "depth");
    queue->most = bw_xlator_option_number(xlator, "size") / UNIT;
    queue->units = bw_xlator_size(bw_xlator_child(xlator, 0)) / UNIT + 1;
    queue->arrival = calloc(queue->units, sizeof *queue->arrival);
    const char *file = bw_xlator_option_text(xlator, "file");
    queue->output = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    pthread_mutex_init(&queue->lock, NULL);
    queue->begin = now();
    if (!queue->arrival)
        return bw_error_create(BW_ERROR_NO_MEMORY, "out of memory");
    return queue->output < 0 ? bw_error_create(BW_ERROR_SYSTEM, "cannot open %s", file) : NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct queue *queue = bw_xlator_private(xlator);
    const double millisecond = 1e6;
    if (queue->output >= 0) {
        dprintf(queue->output,
                "requests %" PRIu64 " bytes %" PRIu64 " in_flight %.1f busy_ms %.1f waits %" PRIu64
                " waited_ms %.1f elapsed_ms %.1f\n",
                queue->requests, queue->bytes,
                (double)(queue->requests * queue->delay) / (double)(queue->busy + !queue->busy),
                (double)queue->busy / millisecond, queue->waits,
                (double)queue->waited / millisecond, (double)(now() - queue->begin) / millisecond);
        close(queue->output);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue->arrival);
}

/* Requests some units. The device begins with them when it is done with the request that is `depth`
 * before this one. */
static void request(struct queue *queue, uint64_t first, uint64_t count, uint64_t time)
{
    uint64_t *slot = &queue->done[queue->requests++ % queue->depth];
    const uint64_t start = *slot > time ? *slot : time, end = start + queue->delay;
    *slot = end;
    queue->bytes += count * UNIT;
    queue->busy += end - (start > queue->busy_until ? start : queue->busy_until);
    queue->busy_until = end;
    for (uint64_t i = 0; i < count; i++)
        queue->arrival[first + i] = end;
}

/* Requests what was not requested before of a range; returns when all of it has arrived. */
static uint64_t fetch(struct queue *queue, uint64_t address, uint64_t length, uint64_t time)
{
    const uint64_t first = address / UNIT;
    uint64_t end = (address + length + UNIT - 1) / UNIT, missing = 0, last = 0;
    if (end > queue->units)
        end = queue->units;
    for (uint64_t i = first; i < end; i++) {
        if (!queue->arrival[i])
            missing++;
        if (missing && (queue->arrival[i] || missing == queue->most || i + 1 == end)) {
            request(queue, i + !queue->arrival[i] - missing, missing, time);
            missing = 0;
        }
        if (queue->arrival[i] > last)
            last = queue->arrival[i];
    }
    return last;
}

static int by_address(const void *a, const void *b)
{
    const struct bw_range *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

/* Requests ranges, adjacent ones together; returns when all of them have arrived. */
static uint64_t fetch_all(struct queue *queue, struct bw_range *ranges, size_t count, bool waits)
{
    uint64_t last = 0;
    qsort(ranges, count, sizeof *ranges, by_address);
    pthread_mutex_lock(&queue->lock);
    const uint64_t time = now();
    for (size_t i = 0, next; i < count; i = next) {
        uint64_t end = ranges[i].address + ranges[i].length;
        for (next = i + 1; next < count && ranges[next].address <= end; next++)
            if (ranges[next].address + ranges[next].length > end)
                end = ranges[next].address + ranges[next].length;
        const uint64_t arrival = fetch(queue, ranges[i].address, end - ranges[i].address, time);
        if (arrival > last)
            last = arrival;
    }
    if (waits && last > time) {
        queue->waits++;
        queue->waited += last - time;
    }
    pthread_mutex_unlock(&queue->lock);
    return last;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct queue *queue = bw_xlator_private(xlator);
    struct bw_range *ranges = malloc(count * sizeof *ranges);
    for (size_t i = 0; ranges && i < count; i++)
        ranges[i] = (struct bw_range){requests[i].address, requests[i].length};
    const uint64_t arrival = ranges ? fetch_all(queue, ranges, count, true) : 0;
    const struct timespec until = {(time_t)(arrival / 1000000000), (long)(arrival % 1000000000)};
    prctl(PR_SET_TIMERSLACK, 1L); /* of this thread: sleep no longer than necessary */
    while (arrival && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
    free(ranges);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *announced, size_t count, unsigned copy)
{
    struct queue *queue = bw_xlator_private(xlator);
    struct bw_range *ranges = malloc(count * sizeof *ranges);
    (void)frame, (void)copy;
    if (!ranges)
        return;
    memcpy(ranges, announced, count * sizeof *ranges);
    fetch_all(queue, ranges, count, false);
    free(ranges);
}

static const struct bw_option options[] = {
    {"delay", BW_OPTION_TIME, "100us", 0, 1000000000, "time that each request takes", NULL},
    {"depth", BW_OPTION_INTEGER, "128", 1, MOST_DEPTH, "requests at once", NULL},
    {"size", BW_OPTION_SIZE, "128K", UNIT, 1 << 30, "the largest request", NULL},
    {"file", BW_OPTION_OUTPUT, NULL, 0, 0, "where figures are appended", NULL},
    {0},
};

static const struct bw_xlator_class queue_class = {
    .type = "bench/queue-layer",
    .description = "a device with a queue of requests",
    .page = "A device with a queue of requests, which all take the same time.",
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct queue),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .advise = advise},
};

BW_XLATOR_EXPORT(queue_class);
