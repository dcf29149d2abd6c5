/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which members of a record are wanted, and in which order: lists of their names as users write
 * them. */
#ifndef BW_RECORD_COLUMNS_H
#define BW_RECORD_COLUMNS_H

#include "btrfs-walk/error.h"
#include "record/record_types.h"

/** Numbers of members in the order they are wanted in; none is there twice. */
struct bw_member_list {
    unsigned char members[BW_RECORD_MEMBERS];
    unsigned count;
};

/** Reads names with commas between; NULL: all that are eager. BW_ERROR_USAGE says which name is
 * wrong. */
struct bw_error *bw_columns_parse(const struct bw_record *record, const char *names,
                                  struct bw_member_list *list);

#endif
