/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are written to besides the results: traces, reports, statedumps. */
#ifndef BW_GRAPH_OUTPUT_FILE_H
#define BW_GRAPH_OUTPUT_FILE_H

#include <stdbool.h>

#include "btrfs-walk/error.h"

/**
 * Opens a file for writing, at its end or at its beginning, making it if it is not there. Refused
 * (BW_ERROR_USAGE) are a block device and a file that holds a btrfs superblock: whoever names an
 * image here, one that was forgotten among those to read perhaps, does not want it overwritten.
 * `*descriptor` is the caller's to close.
 */
struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor);

#endif
