/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What numbers of the format are called: types of keys and of files. The words are those of the
 * kernel header btrfs_tree.h and of find(1). */
#ifndef BW_FORMAT_NAMES_H
#define BW_FORMAT_NAMES_H

#include "format/items.h"

/** The same of a directory's entry, which may be a subvolume. */
const char *bw_entry_type_name(const struct bw_dir_entry *entry);

#endif
