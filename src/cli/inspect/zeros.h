/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes zeros to stdout, as holes if it is a file. */
#ifndef BW_CLI_INSPECT_ZEROS_H
#define BW_CLI_INSPECT_ZEROS_H

#include <stdint.h>

#include "cli/command.h"

/** The state of stdout. All zeros: nothing is known yet. */
struct cmd_zeros {
    bool is_tested; /**< `sparse` is valid */
    bool sparse;    /**< stdout can have holes */
    bool open;      /**< the output ends with a hole, which the file's size does not include yet */
};

/** Writes zeros after the buffered output. */
struct bw_error *cmd_write_zeros(struct cmd_zeros *zeros, struct cmd_output *output,
                                 uint64_t length);

/** Makes a file end after its last hole. */
struct bw_error *cmd_end_zeros(struct cmd_zeros *zeros, struct cmd_output *output);

#endif
