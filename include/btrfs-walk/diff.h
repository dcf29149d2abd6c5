/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between two subvolumes: two snapshots of one file system, or subvolumes of two file
 * systems.
 *
 * Subvolumes with a common origin are compared without reading the tree blocks that they share. A
 * file is the same in both if its inode number and the generation of its inode are equal, so a
 * renamed file is recognized. All other subvolumes are compared path by path.
 *
 * Contents are compared, not places on disk: an extent that was moved, or written again with the
 * same bytes, is no difference, and holes equal zeros.
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

/** The kind of a difference. The values are the letters that commands print. */
enum bw_difference_status {
    BW_DIFFERENCE_ADDED = 'A',
    BW_DIFFERENCE_DELETED = 'D',
    BW_DIFFERENCE_MODIFIED = 'M', /**< the file of that name, or its replacement, differs as
                                     `changes` says */
    BW_DIFFERENCE_RENAMED = 'R',  /**< the same file has another name, or is in another directory */
    BW_DIFFERENCE_TYPE = 'T',     /**< a file of another type has taken the place */
    BW_DIFFERENCE_UNKNOWN = '?',  /**< no difference was found, but `unknown` could not be compared;
                                     if that is 0, it is not even known whether the file exists */
};

/** Parts of a file that can differ. */
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

/** Name of a bit of enum bw_difference_changes ("content"), by its number; NULL if the number is
 * invalid. */
const char *bw_difference_change_name(unsigned bit);

/** A difference. A file may have several: one for each of its names, and a renamed file with other
 * changes has a second one for these. */
struct bw_difference {
    enum bw_difference_status status;
    unsigned changes; /**< bits of enum bw_difference_changes */
    unsigned unknown; /**< bits of enum bw_difference_changes that could not be compared */
    const char *path; /**< from the top of its subvolume, with a '/' before it; raw bytes, not
                         terminated. The new one, or the only one */
    size_t path_length;
    const char *old_path; /**< the same before, if renamed; otherwise NULL */
    size_t old_path_length;
    uint8_t type, old_type;    /**< enum bw_file_type after and before; 0: it was not there */
    uint64_t old_inode, inode; /**< numbers before and after; 0: it was not there; of a nested
                                  subvolume BW_EMPTY_DIRECTORY */
    uint64_t old_size, size;   /**< bytes of the file before and after; 0 for directories */
    uint64_t bytes; /**< bytes of content that differ: everything if the file was added or deleted;
                       of a modified file whole sectors, and the bytes beyond the end of the shorter
                       one; 0 for all but regular files */
    uint64_t old_subvolume, subvolume; /**< ids of the compared subvolumes; 0: only one side has it
                                        */
    uint64_t reserved[2];              /**< zeros: room for more members */
};

/** Receives a difference, a view that ends with the call. An error ends the comparison and is
 * returned. */
typedef struct bw_error *bw_difference_visitor(void *context,
                                               const struct bw_difference *difference);

/** When contents are read to be compared, which is not needed where extents are shared. */
enum bw_diff_reading {
    BW_DIFF_READ_NEEDED, /**< where checksums cannot decide: their types differ, some are missing,
                            or the data are compressed in different ways */
    BW_DIFF_READ_NEVER,  /**< such contents are unknown */
    BW_DIFF_READ_ALWAYS, /**< equal checksums are not believed */
};

/** A subvolume to be compared. */
struct bw_diff_side {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
};

/** How to compare. All zeros but the size and `visit`: everything, in the best way. */
struct bw_diff_options {
    size_t struct_size; /**< sizeof(struct bw_diff_options) */
    const char *path;   /**< only files at or below this path, before or after; NULL: everything */
    bool nested;  /**< also compare the subvolumes nested in both: those at the same path, or with
                     the  same UUID; all files of one that only one side has are added or deleted */
    bool by_path; /**< compare path by path, even if the subvolumes have a common origin */
    bool states;  /**< both file systems were opened from the same images, as states of one: what
                     they share is not read */
    enum bw_diff_reading reading;
    bw_difference_visitor *visit;
    void *context;
    /** The generation of the state `before`: lists what changed since that transaction in `after`
     * and in all subvolumes nested in it; see below. 0: an ordinary comparison. */
    uint64_t since;
    /** With `since`, where only generations prove changes: omit inodes that last changed before
     * this time. */
    struct timespec since_time;
};

/** The outcome of a comparison. */
struct bw_diff_summary {
    uint64_t added, deleted, modified, renamed, types, unknown; /**< differences by status */
    uint64_t bytes;                                             /**< sum of their `bytes` */
    bool by_path;    /**< whether it was made path by path */
    uint64_t blocks; /**< tree blocks that the subvolumes do not share, both sides counted; 0 if
                        it was made path by path */
    /** Entries before and after that were compared; of subvolumes with a common origin, only files
     * with items that differ, and between images also those with extents. */
    uint64_t entries[2];
    uint64_t subvolumes;    /**< comparisons of subvolumes, at least 1 */
    uint64_t left_out[2];   /**< nested subvolumes before and after that were not compared */
    uint64_t unchanged;     /**< with `since`: subvolumes that did not change, and were not read */
    uint64_t by_generation; /**< with `since`: subvolumes that existed then, but whose older tree is
                               not available: what was deleted from them is unknown */
    uint64_t reserved[4];   /**< zeros: room for more members */
};

/**
 * Compares the subvolume `before` with `after`, and passes the differences on in the order of their
 * paths, subvolume by subvolume. Unless options->nested is set, nested subvolumes count as empty
 * directories, as in a snapshot.
 *
 * With options->since, `before` is the state of the file system that this transaction committed.
 * Subvolumes that did not change since then are not read. A new snapshot is one difference; of its
 * files, only those that changed after it was made are listed. If the state is not available,
 * before->fs is NULL, and generations decide: an inode that was created or changed by a later
 * transaction is added or modified, under its present name, and deletions are unknown. The same
 * holds for files in lost parts of the state.
 *
 * All differences are collected first, in about 200 bytes each. `summary` may be NULL. Other
 * threads may use both file systems at the same time.
 *
 * Damage is not an error of this function: it goes to the reporter of the file system, and files
 * of unknown state are never reported as added or deleted. Errors: the error of options->visit;
 * BW_ERROR_USAGE if the options are wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_diff(const struct bw_diff_side *before, const struct bw_diff_side *after,
                         const struct bw_diff_options *options, struct bw_diff_summary *summary);

/**
 * Compares a directory of an image with the directory `folder` of this machine, and everything
 * below both, path by path, nested subvolumes among it. The image is the
 * state before, the folder the state after; paths begin at both directories with a '/'. Contents
 * are compared byte by byte, or with BW_DIFF_READ_NEVER by their sizes. Not compared: numbers of
 * hard links, properties of btrfs ("btrfs.*"), and attributes of the empty directories in place of
 * subvolumes within snapshots. options->by_path and states are ignored.
 *
 * Files that cannot be read are unknown; the reason goes to the reporter of the file system, as
 * damage does. BW_ERROR_SYSTEM if the folder cannot be opened; else as bw_diff().
 */
struct bw_error *bw_diff_folder(struct bw_fs *fs, const struct bw_place *directory,
                                const char *folder, const struct bw_diff_options *options,
                                struct bw_diff_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
