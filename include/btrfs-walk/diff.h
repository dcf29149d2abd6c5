/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between two trees of files. Each side is a subvolume or a directory of an open file
 * system, which may have been opened from send streams, or a directory of this machine.
 *
 * Subvolumes with a common origin are compared without reading the tree blocks that they share. A
 * file is the same in both if its inode number and the generation of its inode are equal, so a
 * renamed file is recognized. All other sides are compared path by path.
 *
 * Contents are compared, not places on disk: an extent that was moved, or written again with the
 * same bytes, is no difference, and holes equal zeros. The cheapest proof that both sides have
 * decides: shared extents, checksums on disk, hashes, or bytes. Facts that one of the sides does
 * not know are not compared; the summary names them.
 */
#ifndef BTRFS_WALK_DIFF_H
#define BTRFS_WALK_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <time.h>

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
    BW_DIFFERENCE_TYPE = 'T',     /**< a file of another type has replaced it */
    BW_DIFFERENCE_UNKNOWN = '?',  /**< no difference was found, but the parts in `unknown` could not
                                     be compared; if `unknown` is 0, it is not known whether the
                                     file exists */
};

/** Parts of a file that can differ. */
enum bw_difference_changes {
    BW_CHANGE_CONTENT = 1 << 0, /**< bytes of a file, target of a symbolic link, device number */
    BW_CHANGE_SIZE = 1 << 1,    /**< not of directories */
    BW_CHANGE_MODE = 1 << 2,    /**< permissions */
    BW_CHANGE_OWNER = 1 << 3,   /**< user or group */
    BW_CHANGE_TIMES = 1 << 4,   /**< time of modification; the other times are not compared */
    BW_CHANGE_XATTRS = 1 << 5,  /**< extended attributes, access control lists among them */
    BW_CHANGE_LINKS = 1 << 6, /**< number of hard links. A name that was added to, or removed from,
                                 a file on both sides has only this change */
};

/** How many kinds of changes there are. */
enum { BW_DIFFERENCE_CHANGES = 7 };

/** Name of a bit of enum bw_difference_changes ("content"), by its number; NULL if the number is
 * invalid. */
const char *bw_difference_change_name(unsigned bit);

/** Facts about a file: bits of bw_diff_entry.known. */
enum bw_diff_facts {
    BW_KNOWS_TYPE = 1 << 0,
    BW_KNOWS_MODE = 1 << 1,
    BW_KNOWS_UID = 1 << 2,
    BW_KNOWS_GID = 1 << 3,
    BW_KNOWS_TIME = 1 << 4,
    BW_KNOWS_SIZE = 1 << 5,   /**< not of directories */
    BW_KNOWS_LINKS = 1 << 6,  /**< not of directories */
    BW_KNOWS_TARGET = 1 << 7, /**< of a symbolic link */
    BW_KNOWS_DEVICE = 1 << 8, /**< of a device node */
    BW_KNOWS_XATTRS = 1 << 9,
    BW_KNOWS_BYTES = 1 << 10, /**< of a regular file: they can be read */
    BW_KNOWS_HASH = 1 << 11,  /**< of the bytes */
};

/** A file as one side has it. Members whose fact is not known are zero. */
struct bw_diff_entry {
    unsigned known; /**< bits of enum bw_diff_facts */
    uint8_t type;   /**< enum bw_file_type */
    uint32_t mode;  /**< permissions, up to 07777 */
    uint64_t uid, gid, links, size;
    struct timespec mtime;
    uint64_t major, minor;
    const char *target; /**< NULL unless it is known and was compared */
    size_t target_length;
    const char *hash; /**< hexadecimal digits; NULL unless it is known, or was computed to compare
                         it with the hash of the other side */
    const char *hash_name;     /**< its algorithm: "sha256", ... */
    unsigned line;             /**< number of its line in the list; 0: the side is not a list */
    uint64_t subvolume, inode; /**< in an image; 0: the side is not an image */
    uint64_t reserved[2];      /**< zeros: room for more members */
};

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
    /** Ids of the compared subvolumes; 0: the side does not have it, or is not an image. */
    uint64_t old_subvolume, subvolume;
    /** The facts that were compared path by path; NULL: the side lacks the file, or the subvolumes
     * have a common origin. */
    const struct bw_diff_entry *old_entry, *entry;
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Receives a difference, a view that ends with the call. An error ends the comparison and is
 * returned. */
typedef struct bw_error *bw_difference_visitor(void *context,
                                               const struct bw_difference *difference);

/** When contents are read to be compared, which is not needed where extents are shared. */
enum bw_diff_reading {
    BW_DIFF_READ_NEEDED, /**< where checksums cannot decide: their types differ, some are missing,
                            or the data are compressed in different ways */
    BW_DIFF_READ_NEVER,  /**< never: such contents count as unknown */
    BW_DIFF_READ_ALWAYS, /**< even if the checksums are equal */
};

/** One side of a comparison: either `fs`, `folder` or `list` is set. */
struct bw_diff_side {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
    uint64_t directory;         /**< inode of the compared directory; 0: the top of the subvolume */
    const char *folder;         /**< path of a directory of this machine */
    const struct bw_list *list; /**< a list of files */
    uint64_t reserved[4];       /**< zeros: room for more members */
};

/** A list of files: lines of mtree(5), or of a hash and a path as from sha256sum(1) and similar
 * programs. It does not change: any number of comparisons may use it. */
struct bw_list;

/** Parses a list. BW_ERROR_USAGE, with the number of the line, if it is none. The caller closes
 * `*list`. */
struct bw_error *bw_list_open(const void *text, size_t length, struct bw_list **list);

/** Closes it; NULL is allowed. */
void bw_list_close(struct bw_list *list);

/** Keywords in a list that are not compared, separated by commas; "" without any. */
const char *bw_list_ignored(const struct bw_list *list);

/** Whether the beginning of a file looks like a list; no image does. 4096 bytes are enough. */
bool bw_list_detect(const void *start, size_t length);

/** How to compare. All zeros but the size and `visit`: everything, in the best way. */
struct bw_diff_options {
    size_t struct_size; /**< sizeof(struct bw_diff_options) */
    const char *path;   /**< only files at or below this path, before or after; NULL: everything */
    bool nested;        /**< also compare nested subvolumes; otherwise they count as empty
                             directories, as in a snapshot */
    bool no_snapshots;  /**< with `nested`: except snapshots */
    bool by_path;       /**< compare path by path, even if the subvolumes have a common origin */
    bool states; /**< both file systems are generations on the same images: blocks that they share
                    are not read */
    unsigned threads; /**< that read files; 0: one for each processor, at most 8 */
    enum bw_diff_reading reading;
    bw_difference_visitor *visit;
    void *context;
    /** The generation of `before`: lists the changes since that transaction in `after` and in all
     * subvolumes nested in it; see below. 0: an ordinary comparison. */
    uint64_t since;
    /** With `since`, where only generations prove changes: omit inodes that last changed before
     * this time. */
    struct timespec since_time;
    /** Returns whether to continue; called now and then, by any thread, while files are read path
     * by path. If not, the comparison ends with BW_ERROR_STOPPED. NULL: always. */
    bool (*proceed)(void *context);
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
    unsigned not_compared;  /**< bits of enum bw_difference_changes that a side does not know */
    uint64_t unchanged;     /**< with `since`: subvolumes that did not change, and were not read */
    uint64_t by_generation; /**< with `since`: subvolumes that existed then, but whose older tree is
                               not available: deletions in them are unknown */
    uint64_t reserved[4];   /**< zeros: room for more members */
};

/**
 * Compares `before` with `after`, and passes the differences on in the order of their paths, name
 * by name: a directory, then everything in it. Nested subvolumes of subvolumes with a common origin
 * follow one by one: those at the same path or with the same UUID are compared with each other.
 *
 * With options->since, `before` is the state of the file system that this transaction committed.
 * Subvolumes that did not change since then are not read. A new snapshot is one difference; of its
 * files, only those that changed after it was made are listed. If the state is not available,
 * before->fs is NULL, and generations decide: an inode that was created or changed by a later
 * transaction is added or modified, under its present name, and deletions are unknown. The same
 * holds for files in lost parts of the state.
 *
 * Between subvolumes with a common origin, all differences are collected first, in about 200 bytes
 * each. All other comparisons keep the names in the directories of the current path. The outcome
 * is added to `summary`, which begins as zeros and may be NULL. Other threads may use both file
 * systems at the same time.
 *
 * With a directory of this machine, these are not compared: numbers of hard links, the attributes
 * "trusted.*", which only privileged processes may see, properties of btrfs ("btrfs.*"), and
 * attributes of the empty directories in place of subvolumes within snapshots. At least one side
 * must have a file system.
 *
 * Damage is not an error of this function: it goes to the reporter of the file system, as do files
 * of this machine that cannot be read. Files of unknown state are never reported as added or
 * deleted. Errors: the error of options->visit; BW_ERROR_SYSTEM if a folder cannot be opened;
 * BW_ERROR_USAGE if the options are wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_diff(const struct bw_diff_side *before, const struct bw_diff_side *after,
                         const struct bw_diff_options *options, struct bw_diff_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
