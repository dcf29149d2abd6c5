/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The type of a file in the mode of an inode, from the type in a directory entry. */
#ifndef BW_BASE_FILE_TYPE_H
#define BW_BASE_FILE_TYPE_H

#include <sys/stat.h>

#include "btrfs-walk/format.h"

/** The bits of S_IFMT for a type BW_FILE_*; 0 if it is unknown. */
static inline mode_t bw_mode_of_file_type(uint8_t type)
{
    static const mode_t modes[] = {
        [BW_FILE_REGULAR] = S_IFREG,
        [BW_FILE_DIRECTORY] = S_IFDIR,
        [BW_FILE_CHARACTER_DEVICE] = S_IFCHR,
        [BW_FILE_BLOCK_DEVICE] = S_IFBLK,
        [BW_FILE_FIFO] = S_IFIFO,
        [BW_FILE_SOCKET] = S_IFSOCK,
        [BW_FILE_SYMLINK] = S_IFLNK,
    };
    return type < sizeof modes / sizeof *modes ? modes[type] : 0;
}

#endif
