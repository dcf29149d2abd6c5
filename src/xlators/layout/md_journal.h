/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The journal of an array of RAID4, 5 or 6. */
#ifndef BW_XLATORS_LAYOUT_MD_JOURNAL_H
#define BW_XLATORS_LAYOUT_MD_JOURNAL_H

#include "xlators/layout/md_superblock.h"

/** Counts the blocks of data in a journal that the kernel would write to the other devices before
 * it uses the array. `journal`: the superblock of the device. */
struct bw_error *bw_md_journal_count(const struct bw_md_device *device,
                                     const struct bw_md_superblock *journal, uint64_t *count);

#endif
