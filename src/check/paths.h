/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is found out about the paths of findings: paths.c finds them, path_parts.c parts those of
 * findings that are handed out once for each file.
 */
#ifndef BW_CHECK_PATHS_H
#define BW_CHECK_PATHS_H

#include "check/check.h"
#include "owners/search.h"

enum {
    BW_PATHS_LISTED = 20,          /**< paths of a finding, or of one of its files; and files */
    BW_PATHS_ALL_LISTED = 1 << 20, /**< of all findings of a pass, if all are wanted */
};

/** What is found out for a finding. */
struct bw_naming {
    struct bw_held_finding *held;
    size_t capacity;   /**< of held->paths */
    uint64_t listed;   /**< the last subvolume of which a path is listed */
    uint64_t unlisted; /**< the last one that was counted, since no path of it is listed */

    /* Of a finding with parts. */
    size_t part_capacity;   /**< of held->parts */
    uint32_t *part_numbers; /**< of each path, to which part it belongs */
    size_t number_capacity;
    size_t present;       /**< part of the last owner */
    struct bw_owner last; /**< that owner; its path is not kept */
    uint64_t more;        /**< owners beyond the parts */
};

/** The findings of a pass. */
struct bw_namings {
    struct bw_check *check;
    struct bw_naming *items;
    size_t count;
    struct bw_address_range *ranges; /**< one for each of `asking` */
    struct bw_naming **asking;       /**< findings whose owners are searched, by address */
    size_t asking_count;
    struct bw_inode_paths paths;
    size_t listed; /**< paths of all findings */
};

/** Adds a path to a finding. */
struct bw_error *bw_naming_list(struct bw_namings *namings, struct bw_naming *naming,
                                const char *path, size_t length);

/** Takes an owner of data of a finding that is one for each file: begins a part, goes on with one,
 * or adds a path to one. */
struct bw_error *bw_naming_take_part(struct bw_namings *namings, struct bw_naming *naming,
                                     const struct bw_owner *owner);

/** Puts the paths in the order of the parts. Fails only if memory runs out. */
struct bw_error *bw_naming_order_parts(struct bw_naming *naming);

#endif
