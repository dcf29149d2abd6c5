/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding out which files findings touch: what paths.c collects for each of them, and the search
 * through whole trees (path_search.c) for what cannot be looked up.
 */
#ifndef BW_CHECK_PATHS_H
#define BW_CHECK_PATHS_H

#include "base/buffer.h"
#include "check/check.h"

/** Paths that are listed with a finding. */
enum { BW_PATHS_LISTED = 20 };

/** A file that a finding touches. With a name, that is where it is; otherwise all its names are to
 * be looked up. */
struct bw_touched {
    const struct bw_subvolume *subvolume;
    uint64_t inode, directory;
    size_t name; /**< in bw_naming.names */
    uint16_t name_length;
    uint64_t offset, length;  /**< of data: where in the file, in bytes */
    uint64_t logical, stored; /**< and where they are stored */
    uint64_t more_subvolumes; /**< in which the file has the same */
    uint64_t in_subvolume;    /**< the last of those */
};

/** What is found out for a finding. */
struct bw_naming {
    struct bw_held_finding *held;
    struct bw_touched *touched; /**< the first BW_PATHS_LISTED; owned */
    size_t count;
    uint64_t more;       /**< files beyond those */
    uint64_t last_inode; /**< of the last file, to tell whether the next one is another */
    /** The names of these inodes of the tree of the finding are to be searched for; none if the
     * last is less than the first. */
    uint64_t first_wanted, last_wanted;
};

/** Adds a file, unless it is the one added last. */
struct bw_error *bw_naming_add(struct bw_naming *naming, const struct bw_touched *file);

/** Adds a part of a file, or joins it to the part that was added last. */
struct bw_error *bw_naming_add_part(struct bw_naming *naming, const struct bw_touched *part);

/** The findings of a pass. */
struct bw_namings {
    struct bw_check *check;
    struct bw_naming *items;
    size_t count;
    struct bw_buffer names;
};

/**
 * Reads trees for the findings that need it: of those that touch data, all subvolumes, each block
 * once; of those with wanted inodes, the tree they are in. What cannot be read is passed over.
 */
struct bw_error *bw_path_search(struct bw_namings *namings);

#endif
