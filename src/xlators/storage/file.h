/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fs/open asks of a storage/file layer beyond reading. */
#ifndef BW_XLATORS_STORAGE_FILE_H
#define BW_XLATORS_STORAGE_FILE_H

#include "btrfs-walk/xlator.h"

/** Size of the file or device in bytes. */
uint64_t bw_storage_file_size(const struct bw_xlator *xlator);

#endif
