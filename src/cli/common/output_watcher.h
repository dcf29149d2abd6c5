/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Removing a file that was not completed. In the sandbox nothing can be removed, and SIGKILL asks
 * nobody; so a child that is started before does it, when it is told to or the program is gone. It
 * never sees a byte of an image.
 */
#ifndef BW_CMD_OUTPUT_WATCHER_H
#define BW_CMD_OUTPUT_WATCHER_H

#include <stdbool.h>

/** Starts watching a regular file that is open as `descriptor`; `ours`: it was made now. -1: there
 * is no child, and nothing will be removed. */
int cmd_watcher_start(const char *name, int descriptor, bool ours);

/** What was in the file before is gone: from now on it is removed in any case. */
void cmd_watcher_file_is_ours(int watcher);

/** Ends it, and waits until it has ended. `complete`: the file stays. */
void cmd_watcher_end(int watcher, bool complete);

#endif
