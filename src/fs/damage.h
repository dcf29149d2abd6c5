/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of an open file system: lost blocks, each once, however many trees and passes come to
 * it; and the name of this folder on errors that no layer of the graph has made. */
#ifndef BW_FS_DAMAGE_H
#define BW_FS_DAMAGE_H

#include "btrfs-walk/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bw_fs;

/** Reports the loss of the block at `bytenr` unless that was done before; takes the error. Safe
 * from any thread. */
void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error);

/** Whether this is the first time that somebody asks for this file: a warning is given once a file.
 * Safe from any thread. */
bool bw_fs_first_doubt(struct bw_fs *fs, uint64_t tree, uint64_t inode);

/** Says of an error that it was born here, unless it came from a layer; returns it. */
struct bw_error *bw_fs_sign(struct bw_error *error);

#endif
