/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening directories below a descriptor without ever leaving it. For target.c. */
#ifndef BW_EXPORT_TARGET_PATH_H
#define BW_EXPORT_TARGET_PATH_H

#include <stdbool.h>
#include <stddef.h>

/** Whether each name of a relative path could be an entry of a directory. */
bool bw_target_path_is_valid(const char *path, size_t length);

/**
 * Opens a directory below `folder` for reading; `path` is valid and ends with NUL. No link is
 * followed. `step_by_step` does without openat2(2). -1 with errno; ELOOP or ENOTDIR if a link is in
 * the way.
 */
int bw_target_open_below(int folder, const char *path, bool step_by_step);

#endif
