/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session with the kernel: its start, its threads, and the signals that end it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

#include "base/cleanup.h"
#include "base/thread.h"
#include "mount/internal.h"

/* Global, because signals are sent to the process. */
static struct {
    struct fuse_session *session;
    pthread_t thread; /* the thread that waits for the end */
} running;

static const int ending[] = {SIGHUP, SIGINT, SIGTERM};
enum { ENDING = sizeof ending / sizeof *ending };

/* The waiting thread wakes up only if it handles the signal itself. */
static void end(int number)
{
    fuse_session_exit(running.session);
    if (!pthread_equal(pthread_self(), running.thread))
        pthread_kill(running.thread, number);
}

static void catch_signals(struct sigaction before[ENDING])
{
    const struct sigaction ours = {.sa_handler = end};
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &ours, &before[i]);
}

static void leave_signals(const struct sigaction before[ENDING])
{
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
}

void bw_mount_prepare(void)
{
#ifdef __GLIBC__
    /* makes the C library load what pthread_cancel() needs, which libfuse calls to end threads */
    void *caller;
    backtrace(&caller, 1);
#endif
}

/* Threads of the session have the default stack size, which may be too small for a deep graph. */
static void enlarge_stacks(void)
{
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_getattr_default_np(&attributes))
        return;
    pthread_attr_getstacksize(&attributes, &size);
    if (size < 8 * BW_STACK_NEEDED && !pthread_attr_setstacksize(&attributes, 8 * BW_STACK_NEEDED))
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

static int run(struct fuse_session *session, int descriptor)
{
    struct fuse_loop_config config = {.max_idle_threads = 10};
    struct sigaction before[ENDING];
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", descriptor);
    if (fuse_session_mount(session, name))
        return -EINVAL;
    running.session = session;
    running.thread = pthread_self();
    catch_signals(before);
    int problem = fuse_session_loop_mt(session, &config);
    leave_signals(before);
    return problem;
}

struct bw_error *bw_mount_serve(struct bw_mount *mount, int descriptor)
{
    char *words[] = {"btrfs-walk", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
    const struct fuse_lowlevel_ops operations =
        mount->options.used ? bw_mount_device_operations() : bw_mount_operations();
    enlarge_stacks();
    struct fuse_session *session =
        fuse_session_new(&arguments, &operations, sizeof operations, mount);
    fuse_opt_free_args(&arguments);
    if (!session) {
        close(descriptor);
        return bw_error_no_memory();
    }
    int problem = run(session, descriptor);
    fuse_session_destroy(session);
    return problem < 0 ? bw_error_from_errno(-problem, "cannot read requests from the kernel")
                       : NULL;
}
