/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file as the walk sees it: the private side of the record `fileinfo`. The walk fills it,
 * record/rows.h writes it.
 */
#ifndef BW_RECORD_FILE_H
#define BW_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "ondisk/items.h"

/** Flags: facts about a file that a row needs, other than its name. */
enum {
    BW_FILE_NEEDS_INODE = 1,       /**< its INODE_ITEM */
    BW_FILE_NEEDS_COMPRESSION = 2, /**< its BW_COMPRESSION_PROPERTY; implies the inode */
    BW_FILE_NEEDS_USER_NAMES = 4,  /**< the names of its owner and group; implies the inode */
    BW_FILE_NEEDS_EXTENTS = 8,     /**< the sums of its extents; implies the inode */
    BW_FILE_NEEDS_SHARED = 16,     /**< its shared bytes; implies the extents */
    BW_FILE_NEEDS_XATTRS = 32,     /**< its access control lists and capabilities */
};

/** A file. All pointers are views that end with the call they are passed to. */
struct bw_walked_file {
    const char *path; /**< absolute, raw bytes, not terminated */
    size_t path_length;
    uint64_t subvolume;           /**< id of the tree it is in */
    uint64_t number;              /**< of its inode in that tree */
    uint8_t type;                 /**< BW_FILE_*, from its directory entry */
    const struct bw_inode *inode; /**< NULL: not needed, or lost */
    const char *compression; /**< value of the property, not terminated; NULL: none, or not needed
                              */
    size_t compression_length;
    const char *user, *group;    /**< names of its owner and group; NULL: none, or not needed */
    uint64_t extent_count, disk; /**< sums of its extents; 0: none, or not needed */
    uint64_t shared;             /**< bytes that others share; 0: none, or not known */
    bool shared_known;
    const char *acl, *capabilities; /**< as text; NULL: none, or not needed */
};

#endif
