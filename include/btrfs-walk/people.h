/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The people of an image: the names that its own /etc/passwd and /etc/group give to owners and
 * groups. The files of the machine that reads the image are never looked at.
 */
#ifndef BTRFS_WALK_PEOPLE_H
#define BTRFS_WALK_PEOPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Names and numbers. They do not change: any number of threads may use them. */
struct bw_people;

/**
 * Reads them. They are those of the first of these subvolumes that has an /etc/passwd: `from`
 * (NULL: none is preferred), the default subvolume, the top-level one, and then all others but
 * snapshots, by their ids. So those of "@" are found for "@home", too. If there is none at all, no
 * name is known, which is no error.
 *
 * At most 8 MiB of each file are read. Lines that make no sense are passed over, and so are names
 * longer than 255 bytes or with spaces, control characters or invalid UTF-8. Of several lines with
 * one name or number, the first counts. The caller owns `*people`. BW_ERROR_NO_MEMORY; what cannot
 * be read is an error, too.
 */
struct bw_error *bw_people_read(struct bw_fs *fs, const struct bw_subvolume *from,
                                struct bw_people **people);

/** Frees them; NULL is allowed. */
void bw_people_destroy(struct bw_people *people);

/** Where /etc/passwd was found: the path of the subvolume, as a prefix of paths ("" for the
 * top-level one). */
const char *bw_people_place(const struct bw_people *people);

/** The name of a user or a group; NULL if it has none, or `people` is NULL. */
const char *bw_people_user(const struct bw_people *people, uint32_t number);
const char *bw_people_group(const struct bw_people *people, uint32_t number);

/** The number of a name; false if there is no such name. */
bool bw_people_find_user(const struct bw_people *people, const char *name, uint32_t *number);
bool bw_people_find_group(const struct bw_people *people, const char *name, uint32_t *number);

#ifdef __cplusplus
}
#endif
#endif
