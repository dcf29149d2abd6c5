/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that a command writes its answer to: it is opened before the sandbox is entered, and
 * removed if the answer is broken off, even by a signal. */
#ifndef BW_CMD_OUTPUT_FILE_H
#define BW_CMD_OUTPUT_FILE_H

#include "cli/command.h"

/** Begins with all but the first two zero. */
struct cmd_output_file {
    const struct cmd_common *common;
    const char *name;          /**< NULL or "-": stdout */
    int descriptor;            /**< -1: it is stdout; valid if it is open */
    bool is_open;              /**< it is neither stdout nor closed */
    bool has_begun;            /**< what was in it before is gone */
    int watcher;               /**< see output_watcher.h; likewise */
    struct cmd_output output;  /**< if it is stdout */
    struct bw_buffer gathered; /**< if it is not: small pieces */
};

/** Opens it; for common->open_outputs, with a struct cmd_output_file. */
struct bw_error *cmd_output_file_open(void *file, const struct bw_fs *planned);

/** Where the bytes go. */
int cmd_output_file_descriptor(const struct cmd_output_file *file);

/** Empties it: what was in it before is gone. */
struct bw_error *cmd_output_file_start(struct cmd_output_file *file);

/** Writes bytes; `file` is a struct cmd_output_file. */
struct bw_error *cmd_output_file_add(void *file, const char *bytes, size_t length);

/** Writes a text in place of what was in the file. */
struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text);

/** Writes what is left and closes it. If there was an error, or is one now, it is removed. Takes
 * the error, or NULL, and returns the first. May be called for one that was never opened. */
struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error);

#endif
