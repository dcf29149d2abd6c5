/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zeros on their way to stdout: as holes, if it is a file. */
#ifndef BW_CMD_ZEROS_H
#define BW_CMD_ZEROS_H

#include <stdint.h>

#include "cli/command.h"

/** What is known of stdout. All zeros is nothing yet. */
struct cmd_zeros {
    bool asked;  /**< whether stdout can have holes is known */
    bool sparse; /**< it can */
    bool open;   /**< the last thing it got is a hole: its size does not show that yet */
};

/** Writes zeros after what is in the output. */
struct bw_error *cmd_write_zeros(struct cmd_zeros *zeros, struct cmd_output *output,
                                 uint64_t length);

/** Makes a file end after its last hole. */
struct bw_error *cmd_end_zeros(struct cmd_zeros *zeros, struct cmd_output *output);

#endif
