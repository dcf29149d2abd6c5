/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is written before a signal from outside ends the program: the statistics and events gathered
 * so far. Users stop a long run with Ctrl-C when they have seen enough.
 */
#ifndef BW_CMD_LAST_WORDS_H
#define BW_CMD_LAST_WORDS_H

#include "btrfs-walk/error.h"

/**
 * From now on `speak` is called, in a thread of its own, before SIGINT, SIGTERM or SIGHUP ends the
 * program; a second signal ends it at once. Signals that are ignored stay ignored. Call it before
 * other threads are started, and once at a time.
 */
struct bw_error *cmd_last_words_start(void (*speak)(void *context), void *context);

/** Ends that. The signals stay blocked until cmd_last_words_end(), so that what is written at the
 * normal end is complete. */
void cmd_last_words_stop(void);

/** Unblocks the signals. */
void cmd_last_words_end(void);

/** Calls `speak` now, if it is set, before the caller raises another signal. */
void cmd_last_words(void);

#endif
