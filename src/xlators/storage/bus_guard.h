/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copying out of a mapped file that may shrink or fail meanwhile: the SIGBUS of such a page becomes
 * an answer. Used by storage/file with io=mmap, and by nothing else.
 */
#ifndef BW_XLATORS_STORAGE_BUS_GUARD_H
#define BW_XLATORS_STORAGE_BUS_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/** Installs the handler for the first user. */
void bw_bus_guard_acquire(void);
/** Puts back the handler that was there before, after the last user. */
void bw_bus_guard_release(void);

/** Lets SIGBUS through in this thread (a blocked one kills); `mask` takes what bw_bus_guard_leave()
 * needs. */
void bw_bus_guard_enter(sigset_t *mask);
/** Gives the thread its own signal mask again. */
void bw_bus_guard_leave(const sigset_t *mask);

/** memcpy(); false if part of the source cannot be read, and then the target is undefined. Between
 * enter and leave. */
bool bw_bus_guard_copy(void *to, const void *from, size_t length);

#endif
