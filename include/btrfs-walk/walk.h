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

#include "btrfs-walk/error.h"
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
    struct bw_place place;        /**< the file */
    const struct bw_inode *inode; /**< NULL if it was not requested, or is lost (and reported) */
    bool no_compression; /**< for bw_rows_write_entry(): the file has no compression property */
};

/** Receives an entry. An error that it returns ends the walk and becomes the result of bw_walk();
 * to stop early, return BW_ERROR_STOPPED. */
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
    BW_WALK_UNSORTED, /**< in the order of the walk: a directory before its contents */
    BW_WALK_BY_PATH,  /**< by the bytes of the path */
    BW_WALK_BY_SIZE,  /**< smallest first, unknown sizes last; equal ones unsorted */
    BW_WALK_BY_MTIME, /**< oldest first, otherwise like BW_WALK_BY_SIZE */
    BW_WALK_BY_INODE, /**< by number, otherwise like BW_WALK_BY_SIZE */
};

/** Whether a walk enters nested subvolumes. Subvolumes that it does not enter are listed as empty
 * directories. */
enum bw_nested {
    BW_NESTED_DEFAULT, /**< enter them, as find(1) does on a mount, unless `subvolume` is given */
    BW_NESTED_ENTER,
    BW_NESTED_SKIP, /**< stay in the subvolume of the start */
};

/** Whether subvolumes are entered; `subvolume` is bw_walk_options.subvolume. */
static inline bool bw_nested_enters(unsigned nested, const char *subvolume)
{
    return nested == BW_NESTED_ENTER || (nested == BW_NESTED_DEFAULT && !subvolume);
}

/** How to walk, and the function that receives the result. A walk of all regular files needs only
 * `struct_size` and either `consume` or `visit`. */
struct bw_walk_options {
    size_t struct_size; /**< sizeof(struct bw_walk_options) */
    /** The subvolume at which all paths begin, both `start` and the paths of entries, as on a mount
     * of it: "default", an id, or an absolute path ("/256" is a path). Nested subvolumes are not
     * entered; see `nested`. NULL: the top-level subvolume, with all others. */
    const char *subvolume;
    /**
     * The path of a directory or a file, to list the directory with everything below it, or only
     * the file. Symbolic links are followed, except at the end of a path without a trailing '/'.
     * NULL: start at the top.
     */
    const char *start;
    bool no_snapshots; /**< exclude snapshots */
    unsigned types;    /**< types to list: enum bw_walk_types; 0: BW_WALK_FILES */
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< greatest depth below the start; 0 lists only the start */
    /** Conditions that entries must meet (bw_selection_create()), unchanged during the walk; NULL:
     * none. */
    const struct bw_selection *selection;
    enum bw_walk_order order;
    /** How `consume` gets entries: rows of the record fileinfo (bw_rows_create()), for example with
     * the style BW_ROWS_PATHS. NULL: paths, each with a NUL after it. */
    const struct bw_rows *rows;
    unsigned threads; /**< threads that read, at most 32; 0: one per processor, at most 8 */
    /** Receives text: whole paths or rows, in order; never from two threads at once, but not always
     * from the same one. An error that it returns ends the walk and becomes the result of
     * bw_walk(); to stop early, return BW_ERROR_STOPPED. Set exactly one of `consume` and `visit`.
     */
    struct bw_error *(*consume)(void *context, const char *paths, size_t length);
    /** Receives entries instead of text, under the same terms. */
    bw_entry_visitor *visit;
    bool visit_inodes; /**< look up the inodes for `visit`; without them a walk is much faster */
    void *context;     /**< passed to consume, visit and proceed */
    /** Reverse `order`. Unknown values still sort last. */
    bool reverse;
    unsigned mindepth; /**< least depth below the start; 1 omits the start */
    unsigned nested;   /**< enum bw_nested */
    /** List only part `part` of `parts`, counted from 1, as bw_part_contains() divides the entries;
     * 0 parts: list everything. Each part reads the names of all entries, but only the inodes of
     * its entries. */
    unsigned part, parts;
    /** Returns whether to continue; called now and then, by any thread. If not, the walk ends with
     * BW_ERROR_STOPPED. NULL: always. */
    bool (*proceed)(void *context);
};

/** Whether an inode belongs to part `part` of `parts`, counted from 1: each belongs to exactly one,
 * with all its names, also in a damaged file system. Always true if `parts` is 0. */
bool bw_part_contains(unsigned part, unsigned parts, uint64_t subvolume, uint64_t inode);

/** The result of a walk. */
struct bw_walk_summary {
    uint64_t files;       /**< entries listed: regular files, unless other types were requested */
    uint64_t directories; /**< directories entered, top directories of subvolumes included */
    uint64_t subvolumes;  /**< subvolumes entered */
    uint64_t lost_blocks; /**< tree blocks that could not be read, counted once per subvolume */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/**
 * Walks. Damage does not end a walk: everything that can be read is listed, and each lost block is
 * reported once to the reporter of the file system. The order of the entries depends on the image
 * and the options, not on the number of threads. `summary` may be NULL.
 *
 * Errors: BW_ERROR_NOT_FOUND if `subvolume` or `start` does not exist, BW_ERROR_USAGE for wrong
 * options, BW_ERROR_NO_MEMORY, or the error of `consume` or `visit`. Several walks of a file system
 * may run at once.
 */
struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *options,
                         struct bw_walk_summary *summary);

/**
 * The absolute path at which a walk with options->start starts, as in its entries. `*path` ends
 * with a NUL that `*length` does not count, and is freed by the caller with free(); `length` may be
 * NULL. Errors as of bw_walk().
 */
struct bw_error *bw_walk_start_path(struct bw_fs *fs, const struct bw_walk_options *options,
                                    char **path, size_t *length);

/*
 * Selections: conditions that files must meet to be listed, with the names that find(1) uses. The
 * conditions on names are tested first; an inode is looked up only for files that meet those, and
 * only if another condition needs it. Extended attributes are read last.
 *
 * A file must meet all conditions. Several threads may use a selection at once while none of them
 * changes it.
 */

/** Creates an empty selection, which every file meets. Conditions on ages are relative to
 * the time of this call. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_create(struct bw_selection **selection);

/** Frees a selection, after the last walk that uses it; NULL is allowed. */
void bw_selection_destroy(struct bw_selection *selection);

/**
 * Adds a condition. `argument` is copied. Several patterns or owners of one condition, such as two
 * calls with "name", are alternatives.
 *
 * - "name", "iname": a pattern for the last component of the path; "iname" ignores case
 * - "path", "ipath": a pattern for the whole path, in which '*' also matches '/'; "ipath" ignores
 *   case
 * - "regex", "iregex": an extended regular expression for the whole path, matched byte by byte;
 *   "iregex" ignores the case of ASCII
 * - "exclude": omit files whose name or path matches this pattern, and for directories also
 *   everything in them, regardless of other conditions
 * - "size": [+-]N in blocks of 512 bytes, or with a suffix c w b k M G T, or MiB or MB and the
 *   like; rounded up as find does
 * - "newer": modified after YYYY-MM-DD[ HH:MM[:SS[.N]]][Z|+HH:MM] (UTC by default), or
 *   @SECONDS; "newerat", "newerct", "newerBt": the same for the times of the last access, the last
 *   change of the inode, and the creation
 * - "mtime", "atime", "ctime": [+-]N whole days ago
 * - "mmin", "amin", "cmin": [+-]N minutes ago; N alone is the minute that ended N - 1 minutes ago
 * - "uid", "gid", "links": [+-]N
 * - "user", "group": a number, or a name that bw_selection_prepare() looks up in the image
 * - "perm": MODE, octal or symbolic as of chmod(1): exactly these permissions; -MODE: all of them;
 *   /MODE: any of them
 * - "newer-generation": N: the inode was changed by a later transaction than N
 * - "xattr": a pattern for the name of an extended attribute, of which the file has one
 * - "empty": a file of size 0 or a directory without entries; takes no argument
 *
 * A file whose inode is lost does not meet conditions that need the inode.
 * BW_ERROR_USAGE if there is no such condition or its argument is wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_selection_add(struct bw_selection *selection, const char *condition,
                                  const char *argument);

/** Looks up the names of "user" and "group" in an image (bw_user_names_open()), if there are such
 * conditions. Call it once, after the last condition; without it, such names select nothing.
 * BW_ERROR_NOT_FOUND if a name is unknown; errors as bw_user_names_open(). */
struct bw_error *bw_selection_prepare(struct bw_selection *selection, struct bw_fs *fs,
                                      const struct bw_subvolume *from);

/*
 * For programs that list directories themselves. An entry is selected if it is not excluded, and if
 * its name, its inode and its extended attributes are accepted. In these functions, a NUL must
 * follow the entry's path. They may be called by several threads at once.
 */

/** Whether an "exclude" condition matches: the entry is excluded, with everything below it. */
bool bw_selection_excludes_entry(const struct bw_selection *selection,
                                 const struct bw_entry *entry);

/** Whether an entry meets all conditions that need no inode, except "exclude". */
bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry);

/** Whether there are conditions that need an inode. */
bool bw_selection_needs_inode(const struct bw_selection *selection);

/** Whether an entry meets the conditions that need an inode; false if there are any and
 * entry->inode is NULL. */
bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry);

/** Whether there are conditions on extended attributes. */
bool bw_selection_needs_xattrs(const struct bw_selection *selection);

/** Whether an entry meets the conditions on extended attributes, which are read from the file
 * system: call it last. Losses are reported. Fails only if memory runs out. */
struct bw_error *bw_selection_accepts_xattrs(const struct bw_selection *selection, struct bw_fs *fs,
                                             const struct bw_entry *entry, bool *accepts);

#ifdef __cplusplus
}
#endif
#endif
