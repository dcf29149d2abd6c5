/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of names. */
#include "format/inode_flags.h"

const char *bw_inode_flag_name(unsigned bit)
{
    static const char *const names[64] = {
        [0] = "NODATASUM",       [1] = "NODATACOW", [2] = "READONLY",  [3] = "NOCOMPRESS",
        [4] = "PREALLOC",        [5] = "SYNC",      [6] = "IMMUTABLE", [7] = "APPEND",
        [8] = "NODUMP",          [9] = "NOATIME",   [10] = "DIRSYNC",  [11] = "COMPRESS",
        [31] = "ROOT_ITEM_INIT", [32] = "VERITY",
    };
    return bit < 64 ? names[bit] : 0;
}
