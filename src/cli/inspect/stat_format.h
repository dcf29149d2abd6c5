/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of stat(1). */
#ifndef BW_CMD_STAT_FORMAT_H
#define BW_CMD_STAT_FORMAT_H

#include "base/buffer.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/people.h"

/** What a format may show. */
struct stat_facts {
    const char *path; /**< as it was given */
    const struct bw_inode *inode;
    uint64_t number, subvolume;
    const char *target; /**< of a link, with a NUL after it; NULL: it is none */
    uint32_t sectorsize;
    const struct bw_people *people;
};

/** A part of a format that is no directive for numbers or texts that stat(1) has; its length, or 0
 * if all is good. */
size_t stat_format_problem(const char *format, const char **problem);

/** Whether names of users or groups are shown. */
bool stat_format_names_people(const char *format);

/** Appends what a format makes of a file. `escapes`: it may have \n and the like. */
void stat_format_append(const char *format, bool escapes, const struct stat_facts *facts,
                        struct bw_buffer *text);

#endif
