/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that a command writes its whole answer to: it is opened before the sandbox is entered,
 * and written when the answer is complete. */
#ifndef BW_CMD_OUTPUT_FILE_H
#define BW_CMD_OUTPUT_FILE_H

#include "cmd/command.h"

struct cmd_output_file {
    const struct cmd_common *common;
    const char *name; /**< NULL or "-": stdout */
    int descriptor;   /**< -1: not open */
};

/** Opens it; for common->open_outputs, with a struct cmd_output_file. */
struct bw_error *cmd_output_file_open(void *file, const struct bw_fs *planned);

/** Writes a text in place of what was in the file. */
struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text);

/** Closes it; whatever happened before. */
struct bw_error *cmd_output_file_close(struct cmd_output_file *file);

#endif
