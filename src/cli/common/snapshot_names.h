/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that backup programs give to snapshots: Snapper, btrbk, Timeshift. */
#ifndef BW_CLI_COMMON_SNAPSHOT_NAMES_H
#define BW_CLI_COMMON_SNAPSHOT_NAMES_H

#include "base/buffer.h"
#include "btrfs-walk/fs.h"

/** Appends a name such as "snapper 3, 2026-11-21 10:00:00: before the update" for the subvolume
 * with this path; nothing if the path is of none of these programs. Control characters are not
 * escaped. */
void cmd_append_snapshot_name(struct bw_buffer *text, struct bw_fs *fs, const char *path);

#endif
