/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dump of send streams as text. */
#ifndef BW_CLI_INSPECT_STREAM_TEXT_H
#define BW_CLI_INSPECT_STREAM_TEXT_H

#include "base/buffer.h"

struct bw_commandinfo;

/** Appends the line of a command as 'btrfs receive --dump' prints it, but with all names and values
 * escaped. There is no line for END and for unknown commands. */
void cmd_append_stream_command(struct bw_buffer *text, const struct bw_commandinfo *command);

#endif
