/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are written to besides the results: traces, reports, statedumps. */
#ifndef BW_BASE_OUTPUT_FILE_H
#define BW_BASE_OUTPUT_FILE_H

#include <stdbool.h>

#include "btrfs-walk/error.h"

/** Opens a file for writing, at its end or at its beginning, making it if it is not there. A block device is
 * refused (BW_ERROR_USAGE): it might be an image, or hold one. `*descriptor` is the caller's to close. */
struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor);

#endif
