/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What numbers of the format are called: types of keys and of files. The words are those of the
 * kernel header btrfs_tree.h and of find(1). */
#ifndef BW_FORMAT_NAMES_H
#define BW_FORMAT_NAMES_H

#include "format/items.h"

/** "INODE_ITEM"; "UNKNOWN" for a number that is none. */
const char *bw_key_type_name(uint8_t type);

/** "file", "directory", "symlink", ... of BW_FILE_*; "unknown" for a number that is none. */
const char *bw_file_type_name(uint8_t type);

/** The same of a directory's entry, which may be a subvolume. */
const char *bw_entry_type_name(const struct bw_dir_entry *entry);

/** The type (BW_FILE_*) of a file whose inode has this mode; BW_FILE_UNKNOWN if there is none such.
 */
uint8_t bw_file_type_of_mode(uint32_t mode);

#endif
