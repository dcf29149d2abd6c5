/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals, and the progress of long commands. Commands only count. One thread waits for signals and
 * shows the progress on stderr: a line on a terminal, which it overwrites again and again, or one
 * line for each SIGUSR1 (and SIGINFO, where it exists). With --statedump, SIGUSR1 writes a
 * statedump instead. If SIGINT, SIGTERM or SIGHUP ends the program, the thread first writes results
 * that a command has accumulated, such as statistics of probes.
 *
 * Nothing is shown before the command opens a file system. Other lines on the terminal are printed
 * by cmd_progress_print().
 */
#ifndef BW_CLI_COMMON_MONITOR_H
#define BW_CLI_COMMON_MONITOR_H

#include <sys/types.h>

#include "cli/common/settings.h"

/** Blocks the signals that show progress. Must be called before any thread is created. */
void cmd_monitor_prepare(void);

/** Starts the thread. Must be called before other threads are started. Nothing is shown during the
 * first second. Fails only if an exit message is set. */
struct bw_error *cmd_monitor_start(const struct cmd_common *common);

/** Sets the file system, whose reads are counted if the command does not count by itself, and the
 * function that SIGUSR1 calls instead of printing the progress (may be NULL). All arguments must
 * live until cmd_progress_end(). */
void cmd_monitor_watch(const struct bw_fs *fs, void (*dump)(void *context), void *context);

/** Ends the thread and removes the exit message. The signals that end the program stay blocked
 * until cmd_monitor_unblock(), so that output at the normal end is complete. */
void cmd_monitor_stop(void);
void cmd_monitor_unblock(void);

/** Adds a function that the thread calls before a signal ends the program; a second signal ends it
 * immediately. There is room for two. Ignored signals stay ignored. Call it before
 * cmd_monitor_start(). */
void cmd_set_exit_message(void (*write)(void *context), void *context);

/** Sets how to continue the work, a phrase that is printed after the progress when SIGINT ends the
 * program, unless messages are quiet. It must live until cmd_monitor_stop(). Call it before
 * cmd_monitor_start(). */
void cmd_advise_on_interrupt(const struct cmd_common *common, const char *advice);

/** Calls the functions of cmd_set_exit_message(), unless they were called before. For a
 * caller that is about to end the program by another signal. */
void cmd_write_exit_message(void);

/** Installs a handler for the signals that end the program, unless they are ignored or have one. It
 * is called once. */
void cmd_catch_exit_signals(void (*handler)(int number), int flags);

/** Replaces what these signals and SIGQUIT do, unless they are ignored, until
 * cmd_restore_exit_signals(). */
void cmd_replace_exit_signals(void (*handler)(int number));
void cmd_restore_exit_signals(void);

/** Before a child is started that may ask for a passphrase: Ctrl-C and Ctrl-\ do not end this
 * process. The child ends by them after it has restored the terminal. */
void cmd_leave_keyboard(void);
/** The child has started: it also gets these signals if another process sends them to this one. */
void cmd_leave_keyboard_to(pid_t child);
/** Undoes that: in the child with 0, and after it has ended with its status, as of waitpid(2). If
 * one of these signals has ended the child, this process ends in the same way. */
void cmd_take_keyboard(int status);

/** Does what the signal does by itself, in the calling thread. */
void cmd_raise_exit_signal(int number);

/** Adds a function that is called in the handler of a signal that ends the program, so it must be
 * async-signal-safe. There is room for two functions. */
void cmd_clean_up_on_exit(void (*function)(void));

/** For a child process: ignores the signals of the terminal; the child ends after its parent. */
void cmd_ignore_exit_signals(void);

/** For a child process: it ends with this parent, by SIGTERM unless that is ignored. */
void cmd_end_with_parent(pid_t parent);

/** Removes the line of progress; none is shown from now on. May be called again. */
void cmd_progress_end(void);

/** Shows no line while the program waits for an answer of the user, which it would overwrite. */
void cmd_progress_wait(bool waits);

/** Begins a new part of the work, with this number of bytes; 0: unknown. */
void cmd_progress_expect(uint64_t bytes);

/** Like cmd_progress_expect(), but the thread calls `find` for the total when it is about to show a
 * line. `find` may take long, but should return soon when cmd_progress_should_stop(). `context`
 * must live until the next part begins. */
void cmd_progress_expect_later(uint64_t (*find)(void *context), void *context);
bool cmd_progress_should_stop(void);

/** Begins a part that reads all trees, or the trees of all subvolumes. */
void cmd_progress_expect_trees(struct bw_fs *fs, bool subvolumes);

/** Begins step `number`, from 1 on, of `count` steps; `task` names the steps. */
void cmd_progress_step(const char *task, size_t number, size_t count);

/** Begins a historic root; as bw_deleted_options.progress. */
void cmd_progress_state(void *context, size_t number, size_t count);

/** Adds bytes that are done. Callable from any thread, and cheap. */
void cmd_progress_add(uint64_t bytes);

/** Sets the progress: the task (a constant; NULL: none), bytes done, bytes in total, and
 * the number of findings. */
void cmd_progress_set(const char *task, uint64_t done, uint64_t total, uint64_t findings);

/** Sets the progress while a file system is opened; as bw_fs_options.searched. */
void cmd_progress_search(void *context, uint64_t done, uint64_t total);

/** The same while an image is decompressed; as bw_fs_options.decompressed. */
void cmd_progress_decompress(void *context, uint64_t done, uint64_t total);

/** Sets the progress of a scan of metadata; as bw_history_options.progress. Returns true. */
bool cmd_progress_scan(void *context, uint64_t done, uint64_t total);

/** Prints a message in place of the line, with the name of the program. */
void cmd_progress_print(const char *message);

/** Writes results to stdout with `write`. If stdout is the same terminal, hides the line meanwhile,
 * and does not show it again before the results have ended their line. */
struct bw_error *cmd_progress_around(struct bw_error *(*write)(const char *bytes, size_t length),
                                     const char *bytes, size_t length);

#endif
