/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What differs between two subvolumes: two snapshots of one file system, or subvolumes of two file
 * systems.
 *
 * Subvolumes that have a common origin are compared by what they do not share: tree blocks that
 * both have are not read. A file is the same one in both if its inode number and the generation of
 * its inode are equal, so that it is recognized under another name. Any other two subvolumes are
 * compared path by path.
 *
 * Contents are compared, not places on disk: an extent that has moved, or was written again with
 * the same bytes, is no difference, and holes are zeros.
 */
#ifndef BTRFS_WALK_DIFF_H
#define BTRFS_WALK_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/inode.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What has become of a name. The values are the letters that stand for it. */
enum bw_difference_status {
    BW_DIFFERENCE_ADDED = 'A',
    BW_DIFFERENCE_DELETED = 'D',
    BW_DIFFERENCE_MODIFIED = 'M', /**< the file of that name, or another one that has taken its
                                     place, differs in what `changes` says */
    BW_DIFFERENCE_RENAMED = 'R',  /**< the same file has another name, or is in another directory */
    BW_DIFFERENCE_TYPE = 'T',     /**< a file of another type has taken the place */
    BW_DIFFERENCE_UNKNOWN = '?',  /**< nothing is known to differ, but `unknown` could not be
                                     compared; without `unknown`: not even whether it is there */
};

/** What of a file differs. */
enum bw_difference_changes {
    BW_CHANGE_CONTENT = 1 << 0, /**< bytes of a file, target of a symbolic link, device number */
    BW_CHANGE_SIZE = 1 << 1,    /**< not of directories */
    BW_CHANGE_MODE = 1 << 2,    /**< permissions */
    BW_CHANGE_OWNER = 1 << 3,   /**< user or group */
    BW_CHANGE_TIMES = 1 << 4,   /**< time of modification; the others change by being looked at */
    BW_CHANGE_XATTRS = 1 << 5,  /**< extended attributes, access control lists among them */
    BW_CHANGE_LINKS = 1 << 6,   /**< number of hard links; of a name that was added to, or taken
                                   from, a file that is in both: this alone */
};

/** How many kinds of changes there are. */
enum { BW_DIFFERENCE_CHANGES = 7 };

/** Name of a bit of enum bw_difference_changes ("content"), by its number; NULL: there is none. */
const char *bw_difference_change_name(unsigned bit);

/** A difference. One file may have several: each of its names is told by itself, and what has
 * changed in a file that was renamed is told by a second one. */
struct bw_difference {
    enum bw_difference_status status;
    unsigned changes; /**< bits of enum bw_difference_changes */
    unsigned unknown; /**< bits of what could not be compared */
    const char *path; /**< from the top of its subvolume, with a '/' before it; raw bytes, not
                         terminated. The new one, or the only one */
    size_t path_length;
    const char *old_path; /**< the same before, if renamed; otherwise NULL */
    size_t old_path_length;
    uint8_t type, old_type;    /**< enum bw_file_type after and before; 0: it was not there */
    uint64_t old_inode, inode; /**< numbers before and after; 0: it was not there; of a nested
                                  subvolume BW_EMPTY_DIRECTORY */
    uint64_t old_size, size;   /**< bytes of the file before and after; 0 for directories */
    uint64_t bytes;            /**< of content that differ: all that was added or deleted; of a
                                  modified file whole sectors, and what one side has beyond the
                                  end of the other; 0 for all but regular files */
    uint64_t reserved[4];      /**< zeros: room for more members */
};

/** Receives a difference, a view that ends with the call. An error ends the comparison and is
 * returned. */
typedef struct bw_error *bw_difference_taker(void *context, const struct bw_difference *difference);

/** When contents are read to be compared, which is not needed where extents are shared. */
enum bw_diff_reading {
    BW_DIFF_READ_NEEDED, /**< where checksums cannot tell: they are of different kinds, or there are
                            none, or the data are compressed in different ways */
    BW_DIFF_READ_NEVER,  /**< such contents are unknown */
    BW_DIFF_READ_ALWAYS, /**< equal checksums are not believed */
};

/** A subvolume to be compared. */
struct bw_diff_side {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
};

/** How to compare. All zeros but the size and `take`: everything, in the best way. */
struct bw_diff_options {
    size_t struct_size; /**< sizeof(struct bw_diff_options) */
    const char *path;   /**< only what has, or had, this path, or one below; NULL: everything */
    bool by_path;       /**< compare path by path, even if the subvolumes have a common origin */
    bool states; /**< both file systems were opened from the same images, as states of one: what
                    they share is not read */
    enum bw_diff_reading reading;
    bw_difference_taker *take;
    void *context;
};

/** The outcome of a comparison. */
struct bw_diff_summary {
    uint64_t added, deleted, modified, renamed, types, unknown; /**< differences by status */
    uint64_t bytes;                                             /**< sum of their `bytes` */
    bool by_path;    /**< whether it was made path by path */
    uint64_t blocks; /**< tree blocks that the subvolumes do not share, both sides counted; 0 if
                        it was made path by path */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/**
 * Compares the subvolume `before` with `after`, and hands out the differences in the order of their
 * paths. Nested subvolumes are not entered: they count as empty directories, as in a snapshot.
 *
 * What the comparison finds is kept until all of it is known, in about 200 bytes a difference.
 * `summary` may be NULL. Both file systems may be used by other threads meanwhile.
 *
 * Damage is no error of this function: it is reported to the reporter of the file system, and what
 * therefore is not known is never told as added or deleted. Errors: that of options->take;
 * BW_ERROR_USAGE if the options are wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_diff(const struct bw_diff_side *before, const struct bw_diff_side *after,
                         const struct bw_diff_options *options, struct bw_diff_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
