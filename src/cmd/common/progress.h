/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How far a long command has come, in one line of a terminal on stderr that is written again and
 * again. */
#ifndef BW_CMD_PROGRESS_H
#define BW_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/** All zeros shows nothing. One thread at a time may use it. */
struct cmd_progress {
    bool shown;                        /**< whether anybody sees it */
    const char *details;               /**< in place of the number of files; NULL: that number */
    uint64_t bytes, files;             /**< done */
    uint64_t total_bytes, total_files; /**< to do, about */
    int64_t started, last; /**< when it began, and was last written: nanoseconds, monotonic */
};

/** Starts counting the time; shows nothing unless stderr is a terminal. */
void cmd_progress_start(struct cmd_progress *progress, bool quiet);
/** Whether the line is to be written: it is shown, and that was not done a moment ago. */
bool cmd_progress_is_due(const struct cmd_progress *progress);
/** Removes the line until it is written the next time. */
void cmd_progress_clear(const struct cmd_progress *progress);
/** Writes the line, if it is due. */
void cmd_progress_show(struct cmd_progress *progress);
/** Shows how far a scan of metadata is; `progress` is a struct cmd_progress. Returns true. */
bool cmd_progress_scan(void *progress, uint64_t done, uint64_t total);
/** Removes the line. */
void cmd_progress_end(struct cmd_progress *progress);

#endif
