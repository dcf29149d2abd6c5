/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is to be said before a signal from outside ends the program: statistics and events that were
 * gathered so far. Whoever watches a long run stops it with Ctrl-C when enough was seen.
 */
#ifndef BW_CMD_LAST_WORDS_H
#define BW_CMD_LAST_WORDS_H

#include "btrfs-walk/error.h"

/**
 * From now on `speak` is called before SIGINT, SIGTERM or SIGHUP ends the program, in a thread of
 * its own; a second signal ends it at once. Signals that are ignored stay so. To be called before
 * other threads are made; once at a time.
 */
struct bw_error *cmd_last_words_start(void (*speak)(void *context), void *context);

/** Ends that; the signals wait until cmd_last_words_end(), so that what is said at the normal end
 * is whole.
 */
void cmd_last_words_stop(void);

/** Lets the signals through again. */
void cmd_last_words_end(void);

/** Says them now, if there are any: for whoever is about to raise another signal. */
void cmd_last_words(void);

#endif
