/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reporting blocks that cannot be read: each once, however many trees and passes come to it. */
#ifndef BW_FS_DAMAGE_H
#define BW_FS_DAMAGE_H

#include "btrfs-walk/error.h"

#include <stdint.h>

struct bw_fs;

/** Reports the loss of the block at `bytenr` unless that was done before; takes the error. Safe from any
 * thread. */
void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error);

#endif
