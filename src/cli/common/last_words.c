/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Last words. The signals are blocked in all threads and one thread waits for them, as in
 * statedump.c, so that the callback is not limited to what a signal handler may do.
 */
#include "cli/common/last_words.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

/* Ends the thread; pthread_cancel() would load a library. Nothing happens if others send it. */
enum { STOP = SIGURG };

/* Of the process, as signals are. */
static struct {
    void (*speak)(void *context);
    void *context;
    sigset_t signals; /* those of `ending` that are not ignored, and STOP */
    sigset_t before;  /* mask of the thread that started it */
    pthread_t thread;
    bool started;
    atomic_bool stopping;
    atomic_flag spoken;
} words = {.spoken = ATOMIC_FLAG_INIT};

void cmd_last_words(void)
{
    if (words.speak && !atomic_flag_test_and_set(&words.spoken))
        words.speak(words.context);
}

static void *listen_for_signals(void *context)
{
    int number;
    (void)context;
    do {
        if (sigwait(&words.signals, &number) || (number == STOP && atomic_load(&words.stopping)))
            return NULL;
    } while (number == STOP);
    /* A second signal ends the program at once. */
    pthread_sigmask(SIG_UNBLOCK, &words.signals, NULL);
    cmd_last_words();
    raise(number);
    return NULL;
}

static void choose_signals(void)
{
    sigemptyset(&words.signals);
    sigaddset(&words.signals, STOP);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
            sigaddset(&words.signals, ending[i]);
    }
}

struct bw_error *cmd_last_words_start(void (*speak)(void *context), void *context)
{
    choose_signals();
    pthread_sigmask(SIG_BLOCK, &words.signals, &words.before);
    words.speak = speak;
    words.context = context;
    int failure = bw_thread_start(&words.thread, listen_for_signals, NULL);
    words.started = failure == 0;
    if (!failure)
        return NULL;
    words.speak = NULL;
    pthread_sigmask(SIG_SETMASK, &words.before, NULL);
    return bw_error_from_errno(failure, "cannot wait for signals");
}

void cmd_last_words_stop(void)
{
    if (!words.started)
        return;
    atomic_store(&words.stopping, true);
    pthread_kill(words.thread, STOP);
    pthread_join(words.thread, NULL);
    words.speak = NULL;
}

void cmd_last_words_end(void)
{
    if (words.started)
        pthread_sigmask(SIG_SETMASK, &words.before, NULL);
    words.started = false;
}
