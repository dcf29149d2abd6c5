/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with the kernel: its start, its threads, and the signals that end it.
 *
 * One thread at a time has the turn: it receives a request, handles it, and receives the next one.
 * A program mostly waits for a reply before it causes the next request, and a thread that still
 * runs replies sooner than one that has to be woken. Another thread gets the turn before data are
 * read, and when a request takes longer than a moment, for example because the disk is slow.
 *
 * The number of the request that the thread with the turn handles is in `busy`. That thread and the
 * watching one both try to replace it with 0; whoever succeeds has the turn. The watching thread
 * wakes up every moment, but rests after some moments without a request.
 */
#include "base/clock.h"
#include "mount/internal.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"

/* Global, because signals are sent to the process. */
static struct {
    struct fuse_session *session;
    sem_t ended;
} running;

static void end_session(void)
{
    fuse_session_exit(running.session);
    sem_post(&running.ended);
}

/* Threads. */

enum {
    MOST_THREADS = 11,
    MOMENT = 1000000, /* nanoseconds */
    QUIET = 20,       /* moments without a request, after which the watching thread rests */
};

struct crew;

struct worker {
    pthread_t thread;
    struct crew *crew;
    struct fuse_buf request;
    atomic_bool receiving;
};

struct crew {
    struct fuse_session *session;
    atomic_int problem; /* why requests cannot be received, as a negative errno */
    atomic_uint_fast64_t requests;
    atomic_uint_fast64_t busy; /* 0: the thread with the turn receives */
    atomic_bool resting;       /* the watching thread waits for the next request */
    pthread_mutex_t lock;      /* protects the following members */
    bool free;                 /* no thread has the turn */
    bool watched;              /* a thread watches how long requests take */
    unsigned waiting;          /* threads that wait for the turn, without the watching one */
    pthread_cond_t turn, watch;
    unsigned count;
    struct worker workers[MOST_THREADS];
};

static void *run_worker(void *context);

/* Starts another thread; if that is not possible, the present ones must do. */
static void add_worker(struct crew *crew)
{
    struct worker *worker = &crew->workers[crew->count];
    if (fuse_session_exited(crew->session) || crew->count == MOST_THREADS)
        return;
    worker->crew = crew;
    if (!bw_thread_start(&worker->thread, run_worker, worker))
        crew->count++;
}

/* Gives the turn to a waiting thread. The lock must be held. */
static void free_turn(struct crew *crew)
{
    crew->free = true;
    if (crew->waiting)
        pthread_cond_signal(&crew->turn);
    else if (crew->watched)
        pthread_cond_signal(&crew->watch);
    if (!crew->waiting)
        add_worker(crew);
}

/* Waits for the turn, and gets it from a thread whose request takes too long. The lock must be
 * held. */
static void watch_turn(struct crew *crew)
{
    unsigned quiet = 0;
    crew->watched = true;
    while (!crew->free && !fuse_session_exited(crew->session)) {
        uint_fast64_t request = atomic_load(&crew->busy);
        quiet = request ? 0 : quiet + 1;
        if (quiet > QUIET) {
            /* Sleep until the next request. The thread with the turn sets `busy` before it reads
             * `resting`. */
            atomic_store(&crew->resting, true);
            if (!atomic_load(&crew->busy) && !crew->free && !fuse_session_exited(crew->session))
                pthread_cond_wait(&crew->watch, &crew->lock);
            atomic_store(&crew->resting, false);
            quiet = 0;
            continue;
        }
        const struct timespec end = bw_clock_after(MOMENT);
        if (pthread_cond_timedwait(&crew->watch, &crew->lock, &end) && request &&
            atomic_compare_exchange_strong(&crew->busy, &request, 0))
            free_turn(crew);
    }
    crew->watched = false;
    pthread_cond_signal(&crew->turn); /* another thread must watch */
}

/* Waits for the turn; false if the session has ended. */
static bool await_turn(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (!crew->free && !fuse_session_exited(crew->session)) {
        if (!crew->watched) {
            watch_turn(crew);
            continue;
        }
        crew->waiting++;
        pthread_cond_wait(&crew->turn, &crew->lock);
        crew->waiting--;
    }
    crew->free = false;
    pthread_mutex_unlock(&crew->lock);
    return !fuse_session_exited(crew->session);
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    struct crew *crew = worker->crew;
    while (await_turn(crew))
        for (bool has_turn = true; has_turn;) {
            int got = -EINTR;
            atomic_store(&worker->receiving, true);
            while (got == -EINTR && !fuse_session_exited(crew->session))
                got = fuse_session_receive_buf(crew->session, &worker->request);
            atomic_store(&worker->receiving, false);
            if (got <= 0) {
                atomic_store(&crew->problem, got == -EINTR ? 0 : got);
                end_session();
                break;
            }
            const struct fuse_in_header *header = worker->request.mem;
            uint_fast64_t request = atomic_fetch_add(&crew->requests, 1) + 1;
            atomic_store(&crew->busy, request);
            if (header->opcode == FUSE_READ) {
                /* Another thread can receive requests while this one reads. */
                uint_fast64_t own = request;
                pthread_mutex_lock(&crew->lock);
                if (atomic_compare_exchange_strong(&crew->busy, &own, 0))
                    free_turn(crew);
                pthread_mutex_unlock(&crew->lock);
            } else if (atomic_load(&crew->resting)) {
                pthread_mutex_lock(&crew->lock);
                pthread_cond_signal(&crew->watch);
                pthread_mutex_unlock(&crew->lock);
            }
            fuse_session_process_buf(crew->session, &worker->request);
            has_turn = atomic_compare_exchange_strong(&crew->busy, &request, 0);
        }
    return NULL;
}

/* Serves requests until the session ends; returns 0 or a negative errno. */
static int serve_requests(struct fuse_session *session)
{
    struct crew crew = {.session = session, .free = true};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.turn, NULL);
    pthread_cond_init(&crew.watch, &monotonic);
    pthread_condattr_destroy(&monotonic);

    pthread_mutex_lock(&crew.lock);
    add_worker(&crew);
    add_worker(&crew); /* one receives, one watches */
    int problem = crew.count ? 0 : -EAGAIN;
    pthread_mutex_unlock(&crew.lock);
    while (!problem && !fuse_session_exited(session))
        sem_wait(&running.ended);

    /* Wait for the ends of the threads. Signals interrupt one that receives, until it has noticed
     * the end. */
    pthread_mutex_lock(&crew.lock);
    pthread_cond_broadcast(&crew.turn);
    pthread_cond_broadcast(&crew.watch);
    pthread_mutex_unlock(&crew.lock);
    while (crew.count) {
        struct worker *worker = &crew.workers[--crew.count];
        while (pthread_tryjoin_np(worker->thread, NULL)) {
            if (atomic_load(&worker->receiving))
                pthread_kill(worker->thread, SIGTERM);
            nanosleep(&(struct timespec){0, MOMENT}, NULL);
        }
        free(worker->request.mem);
    }
    pthread_cond_destroy(&crew.turn);
    pthread_cond_destroy(&crew.watch);
    pthread_mutex_destroy(&crew.lock);
    return problem ? problem : atomic_load(&crew.problem);
}

/* The session. */

static void end_on_signal(int number)
{
    (void)number;
    end_session();
}

struct bw_error *bw_mount_serve(struct bw_mount *mount, int descriptor)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGTERM};
    enum { ENDING = sizeof ending / sizeof *ending };
    const struct sigaction ours = {.sa_handler = end_on_signal};
    struct sigaction before[ENDING];
    char *words[] = {"btrfs-walk", NULL}, name[32];
    struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
    const struct fuse_lowlevel_ops operations =
        mount->options.used ? bw_mount_device_operations() : bw_mount_operations();
    struct fuse_session *session =
        fuse_session_new(&arguments, &operations, sizeof operations, mount);
    fuse_opt_free_args(&arguments);
    if (!session) {
        close(descriptor);
        return bw_error_no_memory();
    }
    int problem = -EINVAL;
    snprintf(name, sizeof name, "/dev/fd/%d", descriptor);
    if (!fuse_session_mount(session, name)) {
        running.session = session;
        sem_init(&running.ended, 0, 0);
        for (size_t i = 0; i < ENDING; i++)
            sigaction(ending[i], &ours, &before[i]);
        problem = serve_requests(session);
        for (size_t i = 0; i < ENDING; i++)
            sigaction(ending[i], &before[i], NULL);
        sem_destroy(&running.ended);
    }
    fuse_session_destroy(session);
    if (problem < 0)
        return bw_error_from_errno(-problem, "cannot read requests from the kernel");
    return NULL;
}
