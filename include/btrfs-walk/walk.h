/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walking an open file system: the absolute path of every regular file, as `find -type f` shows
 * them on a mount of the top-level subvolume.
 */
#ifndef BTRFS_WALK_WALK_H
#define BTRFS_WALK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_rows;
struct bw_selection;

/** An entry that a walk finds. All pointers are valid during the call only. */
struct bw_entry {
    const char *path; /**< absolute from bw_walk_options.subvolume, or from the top-level subvolume;
                         raw bytes, not terminated; only "/" itself ends with a '/' */
    size_t path_length;
    struct bw_place place;        /**< what it is */
    const struct bw_inode *inode; /**< NULL if it was not asked for, or is lost (and reported) */
    bool no_compression; /**< for bw_rows_write_entry(): the property is known to be absent */
};

/** Receives an entry. An error that it returns ends the walk and becomes the result of bw_walk();
 * BW_ERROR_STOPPED is meant for callers that have seen enough. */
typedef struct bw_error *bw_entry_visitor(void *context, const struct bw_entry *entry);

/** Types of files, as flags. The top directory of a subvolume is a directory. */
enum bw_walk_types {
    BW_WALK_FILES = 1 << 1, /**< regular ones */
    BW_WALK_DIRECTORIES = 1 << 2,
    BW_WALK_CHARACTER_DEVICES = 1 << 3,
    BW_WALK_BLOCK_DEVICES = 1 << 4,
    BW_WALK_FIFOS = 1 << 5,
    BW_WALK_SOCKETS = 1 << 6,
    BW_WALK_SYMLINKS = 1 << 7,
    BW_WALK_ALL = 0xff, /**< all of these, and entries with an unknown type */
};

/** Order of the entries. Sorting keeps all of them in memory until the last one is known. */
enum bw_walk_order {
    BW_WALK_UNSORTED, /**< as the walk finds them: a directory before its contents */
    BW_WALK_BY_PATH,  /**< by the bytes of the path */
    BW_WALK_BY_SIZE,  /**< smallest first, unknown sizes last; equal ones as the walk finds them */
    BW_WALK_BY_MTIME, /**< oldest first, otherwise like BW_WALK_BY_SIZE */
    BW_WALK_BY_NAME,  /**< by the bytes of the last name of the path */
    BW_WALK_BY_ATIME, /**< by other times and numbers, like BW_WALK_BY_SIZE */
    BW_WALK_BY_CTIME,
    BW_WALK_BY_OTIME,
    BW_WALK_BY_GENERATION,
    BW_WALK_BY_TRANSID,
    BW_WALK_BY_INODE,
    BW_WALK_BY_LINKS,
    BW_WALK_BY_BYTES, /**< allocated ones */
    BW_WALK_BY_UID,
    BW_WALK_BY_GID,
};

/** Whether a walk enters the subvolumes below its start. Those it does not enter are listed as
 * directories that are empty. */
enum bw_nested {
    BW_NESTED_DEFAULT, /**< enter them, as find(1) does on a mount, unless `subvolume` is given */
    BW_NESTED_ENTER,
    BW_NESTED_SKIP, /**< stay in the subvolume that the start is in */
};

/** Whether subvolumes are entered; `subvolume` is bw_walk_options.subvolume. */
static inline bool bw_nested_enters(unsigned nested, const char *subvolume)
{
    return nested == BW_NESTED_ENTER || (nested == BW_NESTED_DEFAULT && !subvolume);
}

/** What to walk, and who receives the result. A walk of all regular files needs no more than
 * `struct_size` and either `consume` or `visit`. */
struct bw_walk_options {
    size_t struct_size; /**< sizeof(struct bw_walk_options) */
    /** The subvolume at which all paths begin, given ones and those of entries, as if it was
     * mounted: "default", an id, or an absolute path ("/256" is a path). Subvolumes nested in it
     * are not entered; see `nested`. NULL: the top-level subvolume, with all others. */
    const char *subvolume;
    /**
     * Where to start: the path of a directory or of a single file. Lists that file or everything
     * below the directory. Symbolic links on the way are followed; one at the end is only if a '/'
     * comes after it. NULL: start at the top.
     */
    const char *start;
    bool no_snapshots; /**< leave out the files of snapshots */
    unsigned types;    /**< what to list: enum bw_walk_types; 0: BW_WALK_FILES */
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories to descend; 0 lists the start alone */
    /** Conditions that entries must meet (selection.h), unchanged during the walk; NULL: none. */
    const struct bw_selection *selection;
    enum bw_walk_order order;
    bool escape;     /**< write unprintable bytes, spaces and backslashes as `ls -b` does */
    char terminator; /**< byte after each path, usually '\n' or 0 */
    /** Write each file as a row of the record fileinfo (bw_rows_create()); NULL: write its path,
     * subject to `escape` and `terminator`. */
    const struct bw_rows *rows;
    bool long_lines;  /**< without rows: write lines in the format of `ls -l`, with times in UTC */
    unsigned threads; /**< threads that read, at most 32; 0: one per processor, at most 8 */
    /**
     * Receives text: runs of whole paths or rows, in order, never from two threads at once, but not
     * always from the same one. An error it returns ends the walk and is what bw_walk() returns;
     * BW_ERROR_STOPPED says that there is enough. Exactly one of `consume` and `visit` is set.
     */
    struct bw_error *(*consume)(void *context, const char *paths, size_t length);
    /** Receives entries instead of text, under the same terms. */
    bw_entry_visitor *visit;
    bool visit_inodes; /**< look up the inodes for `visit`; without them a walk is much faster */
    void *context;     /**< passed to consume or visit */
    /** Of `order`: the other way round. What is unknown still comes last. */
    bool reverse;
    bool names; /**< in long lines, names of owners in place of numbers (people.h) */
    /** Of long lines: how times are written, as `ls --time-style` has it: "full-iso", "long-iso",
     * "iso" or "+FORMAT". NULL: like full-iso, but without a zone. */
    const char *time_style;
    unsigned mindepth; /**< how many directories below the start the first entries are; 1 leaves out
                          the start */
    unsigned nested;   /**< enum bw_nested */
};

/** What a walk has found. */
struct bw_walk_summary {
    uint64_t files;       /**< entries listed: regular files, unless other types were asked for */
    uint64_t directories; /**< directories entered, top directories of subvolumes included */
    uint64_t subvolumes;  /**< subvolumes entered */
    uint64_t lost_blocks; /**< tree blocks that could not be read, counted once per subvolume */
};

/**
 * Walks. Damage does not end a walk: everything that can be read is listed, and each lost block is
 * reported once to the reporter of the file system. The order of the entries depends on the image
 * and the options, not on the number of threads. `summary` may be NULL.
 *
 * Errors: BW_ERROR_NOT_FOUND if `subvolume` or `start` does not exist, BW_ERROR_USAGE for wrong
 * options, BW_ERROR_NO_MEMORY, or what `consume` or `visit` returned. Only one walk of a file
 * system may run at a time.
 */
struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *options,
                         struct bw_walk_summary *summary);

/**
 * The absolute path of the place at which a walk with options->start starts, as entries have it.
 * `*path` ends with a NUL that `*length` does not count, and is freed by the caller with free();
 * `length` may be NULL. Errors as of bw_walk().
 */
struct bw_error *bw_walk_start_path(struct bw_fs *fs, const struct bw_walk_options *options,
                                    char **path, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
