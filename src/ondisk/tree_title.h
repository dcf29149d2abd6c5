/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Titles of trees in messages. */
#ifndef BW_ONDISK_TREE_TITLE_H
#define BW_ONDISK_TREE_TITLE_H

#include <stdint.h>

struct bw_tree_title {
    char text[48];
};

/** "the chunk tree", "subvolume 257", or "tree 12" if the number is not known. */
struct bw_tree_title bw_tree_title(uint64_t id);

#endif
