/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the pass `superblocks`. */
#ifndef BW_CHECK_SUPERBLOCKS_H
#define BW_CHECK_SUPERBLOCKS_H

#include "check/check.h"
#include "fs/image.h"

/** What the superblock in use says of the state of the file system (state.c). */
struct bw_error *bw_check_state(struct bw_check *check);

/** The backup roots of the superblock; check->trees is loaded (backup_roots.c). Fails only if
 * memory runs out. */
struct bw_error *bw_check_backup_roots(struct bw_check *check);

#endif
