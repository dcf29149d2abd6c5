/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of stat(1). */
#ifndef BW_CLI_INSPECT_STAT_FORMAT_H
#define BW_CLI_INSPECT_STAT_FORMAT_H

#include "base/buffer.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/subvolume.h"

/** Facts that a format may print. */
struct stat_facts {
    const char *path; /**< as on the command line */
    const struct bw_inode *inode;
    uint64_t number, subvolume;
    const char *target; /**< of a symbolic link, NUL-terminated; NULL: not a link */
    uint32_t sectorsize;
    const struct bw_user_names *user_names;
};

/** Finds the first directive that stat(1) does not have for inodes; returns its length, or 0 if
 * all are valid. */
size_t stat_format_problem(const char *format, const char **problem);

/** Whether the format prints names of users or groups. */
bool stat_format_names_people(const char *format);

/** Appends the facts in a format. `escapes`: interpret escapes such as \n. */
void stat_format_append(const char *format, bool escapes, const struct stat_facts *facts,
                        struct bw_buffer *text);

#endif
