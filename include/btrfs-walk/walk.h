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

/** An entry that a walk comes to. All pointers are views that end with the call. */
struct bw_entry {
    const char *path; /**< absolute from the top-level subvolume, without a '/' at its end but for
                         "/" itself; raw bytes, not terminated */
    size_t path_length;
    struct bw_place place;        /**< what it is */
    const struct bw_inode *inode; /**< NULL: lost, which has been reported, or not asked for */
};

/** Receives an entry. An error ends the walk; BW_ERROR_STOPPED says that there is enough. */
typedef struct bw_error *bw_entry_visitor(void *context, const struct bw_entry *entry);

/** Types of files; flags. A subvolume's top directory is a directory. */
enum bw_walk_types {
    BW_WALK_FILES = 1 << 1, /**< regular ones */
    BW_WALK_DIRECTORIES = 1 << 2,
    BW_WALK_CHARACTER_DEVICES = 1 << 3,
    BW_WALK_BLOCK_DEVICES = 1 << 4,
    BW_WALK_FIFOS = 1 << 5,
    BW_WALK_SOCKETS = 1 << 6,
    BW_WALK_SYMLINKS = 1 << 7,
    BW_WALK_ALL = 0xff, /**< also what has a type that is unknown */
};

/** Order of the entries. To sort, all of them are held in memory until the last is known. */
enum bw_walk_order {
    BW_WALK_UNSORTED, /**< as the walk meets them: a directory before what is in it */
    BW_WALK_BY_PATH,  /**< by the bytes of the path */
    BW_WALK_BY_SIZE,  /**< smallest first, then as the walk meets them; what is not known comes last
                       */
    BW_WALK_BY_MTIME, /**< oldest first, likewise */
};

/** What to walk, and who receives it. All zeros but `struct_size` and `consume` or `visit` is a
 * walk of everything. */
struct bw_walk_options {
    size_t struct_size; /**< sizeof(struct bw_walk_options) */
    /** Only this subvolume, without those nested in it: "default", an id, or an absolute path
     * ("/256" is a path); NULL: all. */
    const char *subvolume;
    /**
     * Where to start: the path of a directory or of a single file, within `subvolume` or else from
     * the top-level one. Only what is below it is listed, and itself, and with it the subvolumes
     * nested there, even if `subvolume` is given. A link in it is followed, at its end only if a
     * '/' is behind it. NULL: at the top.
     */
    const char *start;
    bool no_snapshots; /**< leave out the files of snapshots */
    unsigned types;    /**< what to list: enum bw_walk_types; 0: BW_WALK_FILES */
    bool has_maxdepth; /**< whether maxdepth means anything */
    unsigned maxdepth; /**< how many directories deep; 0 is the start alone */
    /** Which of those (selection.h); NULL: all. It must not be changed during the walk. */
    const struct bw_selection *selection;
    enum bw_walk_order order;
    bool escape;     /**< write unprintable bytes, spaces and backslashes as `ls -b` does */
    char terminator; /**< byte behind each path, usually '\n' or 0 */
    /** What to write of each file: rows of the record fileinfo (bw_rows_create()); NULL: its path,
     * as `escape` and `terminator` say. */
    const struct bw_rows *rows;
    bool long_lines;  /**< without rows: lines as `ls -l` writes them, with times in UTC */
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
};

/** What a walk came past. */
struct bw_walk_summary {
    uint64_t files;       /**< what was listed: regular files, unless other types were asked for */
    uint64_t directories; /**< directories entered, top directories of subvolumes included */
    uint64_t subvolumes;  /**< subvolumes entered */
    uint64_t lost_blocks; /**< tree blocks that could not be read, counted once a subvolume */
};

/**
 * Walks. Damage does not end it: it is reported through the file system's reporter (each lost block
 * once a file system), and what can be read is listed. Returns an error only if nothing more can be
 * done: BW_ERROR_NOT_FOUND if `subvolume` or `start` names nothing, BW_ERROR_NO_MEMORY, or what
 * consume returned. `summary` may be NULL. The order of the paths depends on the image and the
 * options, not on the number of threads. One walk of a file system at a time.
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
