/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space that `copy` copies. */
#ifndef BW_CLI_EXPORT_COPY_USED_H
#define BW_CLI_EXPORT_COPY_USED_H

#include "btrfs-walk/space.h"
#include "cli/command.h"

/** Finds the space in use; with `history`, also of older generations. The caller owns `*used`, also
 * after an error. */
struct bw_error *copy_find_used(const struct cmd_common *common, struct bw_fs *fs, bool history,
                                struct bw_used_map **used);

#endif
