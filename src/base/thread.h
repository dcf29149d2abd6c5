/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads whose stack is large enough under any limits of the process. */
#ifndef BW_BASE_THREAD_H
#define BW_BASE_THREAD_H

#include <pthread.h>

/** Minimum stack size, in bytes, of a thread that reads through a graph: each of up to 128 layers
 * puts a batch of requests on the stack. */
#define BW_STACK_NEEDED ((size_t)1 << 20)

/** Starts a thread, to be joined; the answer is 0 or a number of errno. */
static inline int bw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    size_t usual = 0;
    if (pthread_getattr_default_np(&attributes))
        pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &usual);
    if (usual < 8 * BW_STACK_NEEDED)
        pthread_attr_setstacksize(&attributes, 8 * BW_STACK_NEEDED);
    int problem = pthread_create(thread, &attributes, run, context);
    pthread_attr_destroy(&attributes);
    return problem;
}

#endif
