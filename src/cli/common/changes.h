/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of differences between two files, for rows. */
#ifndef BW_CLI_COMMON_CHANGES_H
#define BW_CLI_COMMON_CHANGES_H

#include <string.h>

#include "btrfs-walk/diff.h"
#include "btrfs-walk/record.h"

/** The names of the set bits of enum bw_difference_changes; `names` is the memory for them. */
static inline struct bw_names cmd_change_names(unsigned changes,
                                               struct bw_bytes names[BW_DIFFERENCE_CHANGES])
{
    struct bw_names result = {names, 0};
    for (unsigned bit = 0; bit < BW_DIFFERENCE_CHANGES; bit++) {
        const char *name = bw_difference_change_name(bit);
        if (changes >> bit & 1)
            names[result.length++] = (struct bw_bytes){name, strlen(name)};
    }
    result.data = result.length ? names : NULL;
    return result;
}

#endif
