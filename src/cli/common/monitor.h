/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals, and how far a long command has come. Commands only count. One thread of the program
 * waits for signals and writes the progress: a line of a terminal on stderr that is written again
 * and again, or one line whenever SIGUSR1 comes (SIGINFO, where there is one); with --statedump,
 * SIGUSR1 is for that. It also writes what a command holds back, such as statistics of probes, if
 * SIGINT, SIGTERM or SIGHUP ends the program.
 *
 * Before the command opens a file system, nothing is shown; other lines on the terminal are printed
 * between cmd_progress_hide() and cmd_progress_release().
 */
#ifndef BW_CLI_COMMON_MONITOR_H
#define BW_CLI_COMMON_MONITOR_H

#include "cli/common/settings.h"

/** Blocks the signals that are not for the end. To be called before any thread is created. */
void cmd_monitor_prepare(void);

/** Starts the thread, before any other. It shows nothing before a second has passed. Fails only if
 * an exit message is set. */
struct bw_error *cmd_monitor_start(const struct cmd_common *common);

/** Sets the file system, whose reads are counted if the command does not count by itself, and what
 * SIGUSR1 calls in place of printing the progress (may be NULL). All must live until
 * cmd_progress_end(). */
void cmd_monitor_watch(const struct bw_fs *fs, void (*dump)(void *context), void *context);

/** Ends the thread, and the exit message with it. The signals that end the program stay blocked
 * until cmd_monitor_unblock(), so that what is written at the normal end is complete. */
void cmd_monitor_stop(void);
void cmd_monitor_unblock(void);

/** Has the thread call `write` before a signal ends the program; a second signal ends it at once.
 * Signals that are ignored stay ignored. Call it before cmd_monitor_start(). */
void cmd_set_exit_message(void (*write)(void *context), void *context);

/** Calls that function now, if it is set and was not called before: the caller is about to raise
 * another signal. */
void cmd_write_exit_message(void);

/** Has a function called in the handler of a signal that ends the program. It may do only what is
 * allowed there. There is room for two functions. */
void cmd_clean_up_on_exit(void (*function)(void));

/** In a child: signals of the terminal are for its parent, with which it ends. */
void cmd_ignore_exit_signals(void);

/** Removes the line; no progress is shown from now on. May be called again. */
void cmd_progress_end(void);

/** Begins a new part of the work with this total number of bytes; 0: unknown. */
void cmd_progress_expect(uint64_t bytes);

/** The same, but how many bytes is found out when a line is to be shown, by its thread: `find` may
 * take its time, unless cmd_progress_hurries(). `context` must live until the next part begins. */
void cmd_progress_expect_later(uint64_t (*find)(void *context), void *context);
bool cmd_progress_hurries(void);

/** Begins a command that reads all trees, or the trees of all subvolumes. */
void cmd_progress_expect_trees(struct bw_fs *fs, bool subvolumes);

/** Several pieces of work come one after the other, and this is the next one: its number, from 1
 * on, and what they are called. */
void cmd_progress_step(const char *what, size_t number, size_t count);

/** The same for older states, as bw_deleted_options.progress. */
void cmd_progress_state(void *context, size_t number, size_t count);

/** So many bytes more are done. Safe from any thread, and cheap. */
void cmd_progress_add(uint64_t bytes);

/** Sets all at once: what is being done (a constant; NULL: that is clear), bytes done, bytes to be
 * done, and what was found so far. */
void cmd_progress_set(const char *what, uint64_t done, uint64_t total, uint64_t findings);

/** The same while a file system is opened, as bw_fs_options.searched. */
void cmd_progress_search(void *context, uint64_t done, uint64_t total);

/** The same for a scan of metadata, as bw_past_options.progress. Returns true. */
bool cmd_progress_scan(void *context, uint64_t done, uint64_t total);

/** Takes stderr, and stdout if it is the terminal too, for other lines, and removes the line. */
void cmd_progress_hide(void);
/** Gives both back. */
void cmd_progress_release(void);

/** Writes results to stdout with `write`, between both if it is a terminal. What does not end with
 * a newline is not written over. */
struct bw_error *cmd_progress_around(struct bw_error *(*write)(const char *bytes, size_t length),
                                     const char *bytes, size_t length);

#endif
