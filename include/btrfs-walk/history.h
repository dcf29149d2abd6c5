/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Older generations of a file system. Every transaction leaves its root tree on the disk until its
 * space is reused. The superblock contains the addresses of the last four; a scan of the metadata
 * chunks finds the others. Each generation can be opened as a file system.
 *
 * Also deleted files, the versions of a file, and the changes in the log tree. One thread at a time
 * may use a struct bw_history.
 */
#ifndef BTRFS_WALK_HISTORY_H
#define BTRFS_WALK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/diff.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The generations of a file system. */
struct bw_history;

/** Whether the metadata chunks are scanned. */
enum bw_history_scanning {
    BW_HISTORY_SCAN_SMALL,  /**< only if at most BW_HISTORY_SMALL bytes have to be read */
    BW_HISTORY_SCAN_ALWAYS, /**< always */
    BW_HISTORY_SCAN_NEVER, /**< never: only generations in the superblock; their completeness is not
                              assessed */
};

/** The limit of BW_HISTORY_SCAN_SMALL: 64 GiB. */
#define BW_HISTORY_SMALL (UINT64_C(64) << 30)

/** How to find generations. */
struct bw_history_options {
    size_t struct_size; /**< sizeof(struct bw_history_options) */
    enum bw_history_scanning scanning;
    unsigned threads; /**< 0: one for each processor, at most 8 */
    /** An index from bw_history_write_index(). It replaces the scan if the file system has the same
     * superblocks on images of the same size; otherwise it is ignored. All blocks in it are read
     * again, unless `only_list`. Other blocks are not found. NULL: none. */
    const void *index;
    size_t index_size; /**< bytes of it */
    /** Called repeatedly during the scan, with bytes; false ends it. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;  /**< of `progress` */
    bool only_list; /**< only list the generations, for example to open them: their completeness is
                       not assessed */
};

/** Where a root tree was found: bits. */
enum bw_generation_source {
    BW_GENERATION_OF_SUPERBLOCK = 1 << 0, /**< in the superblock: the current one */
    BW_GENERATION_OF_BACKUP = 1 << 1,     /**< in a backup root of the superblock */
    BW_GENERATION_OF_SCAN = 1 << 2,       /**< by the scan */
};

/** Whether a transaction was committed with this root tree. A transaction may write several, all
 * with its generation; only the last one counts. */
enum bw_generation_status {
    BW_GENERATION_COMMITTED,  /**< it is in the superblock, or its extent tree contains its root
                                 block */
    BW_GENERATION_ABANDONED,  /**< its extent tree does not contain that block, or it is newer than
                                 the last commit, or its transaction wrote another root tree later,
                                 as for snapshots with quotas */
    BW_GENERATION_UNVERIFIED, /**< its extent tree is lost, or does not contain tree blocks */
};

/** "committed", "abandoned" or "unverified". */
const char *bw_generation_status_name(enum bw_generation_status status);

/** A generation, or an abandoned root tree. */
struct bw_generation_info {
    uint64_t generation;
    uint64_t tree_root;  /**< logical address of the root of its root tree */
    uint64_t chunk_root; /**< and of its chunk tree; 0: the current chunk tree */
    unsigned sources;    /**< bits of enum bw_generation_source */
    unsigned backup;     /**< its backup root in the superblock, counted from 1; 0: none */
    enum bw_generation_status status;
    struct timespec date; /**< newest time of a change in the list of subvolumes; 0: unknown */
    bool assessed;        /**< the next five members are known */
    bool readable;        /**< the root block of its root tree is readable */
    uint64_t missing;     /**< lost tree blocks, without the blocks below them. 0: the generation is
                             complete */
    uint64_t trimmed;     /**< how many of these now contain zeros */
    uint64_t trees_damaged; /**< trees with missing blocks */
    uint64_t trees;         /**< in its root tree, as far as that can be read, and the chunk tree */
    uint64_t subvolumes;    /**< among them */
    uint64_t subvolumes_readable; /**< if assessed: subvolumes whose root block is readable */
    bool superseded;      /**< bw_history_find() finds another root tree of its generation */
    uint64_t reserved[7]; /**< zeros: room for more members */
};

/** A tree of a generation. */
struct bw_generation_tree {
    uint64_t id;
    uint64_t root; /**< logical address of its root block */
    uint64_t generation;
    uint8_t level;
    bool is_deleted;           /**< a subvolume that was being deleted: it may be incomplete */
    bool assessed;             /**< the next three members are known */
    bool readable;             /**< its root block is readable */
    uint64_t missing, trimmed; /**< as in struct bw_generation_info */
    uint64_t reserved[4];      /**< zeros: room for more members */
};

/** Finds the generations of a file system, which must outlive `*history`. Open the file system
 * without a choice of generation. On success the caller owns `*history` and closes it. Unreadable
 * parts are reported. BW_ERROR_STOPPED if `progress` returned false. */
struct bw_error *bw_history_open(struct bw_fs *fs, const struct bw_history_options *options,
                                 struct bw_history **history);

/** Frees it; NULL is allowed. Opened generations stay open. */
void bw_history_close(struct bw_history *history);

/** The number of generations. The first is the newest. */
size_t bw_history_count(const struct bw_history *history);

/** A generation, by its position in the list; valid as long as `history`. */
const struct bw_generation_info *bw_history_entry(const struct bw_history *history, size_t state);

/** The committed root tree of a generation, or the only one. If several are complete and only their
 * times decide, a warning is reported. BW_ERROR_NOT_FOUND if the generation does not exist, or its
 * times are equal, too; the error lists the candidates. */
struct bw_error *bw_history_find(const struct bw_history *history, uint64_t generation,
                                 size_t *state);

/** Receives a tree; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_generation_tree_visitor(void *context,
                                                    const struct bw_generation_tree *tree);

/** Calls `visit` for the root tree of a generation, its chunk tree, and the trees in its root tree,
 * as far as it can be read. */
struct bw_error *bw_history_trees(struct bw_history *history, size_t state,
                                  bw_generation_tree_visitor *visit, void *context);

/** Receives a range of logical addresses. An error ends the iteration and is returned. */
typedef struct bw_error *bw_history_range_visitor(void *context, uint64_t logical, uint64_t length);

/** Passes on the space that older generations need: all tree blocks that the scan has found, and
 * the blocks and data that these refer to. In no order; ranges may overlap, and may be in
 * use by the current generation, too. */
struct bw_error *bw_history_ranges(const struct bw_history *history,
                                   bw_history_range_visitor *visit, void *context);

/** Opens a generation as a file system. `options` are the options with which the file system was
 * opened; their `state` is ignored. The caller owns `*fs`. */
struct bw_error *bw_history_open_state(const struct bw_history *history, size_t state,
                                       const struct bw_fs_options *options, struct bw_fs **fs);

/** Facts about the scan. */
struct bw_history_facts {
    bool scanned;         /**< there was a scan, or an index was used */
    bool index_used;      /**< bw_history_options.index was used */
    uint64_t blocks;      /**< tree blocks found, of all generations */
    uint64_t zeros;       /**< positions of blocks with zeros: trimmed, or never written */
    uint64_t bytes;       /**< stored bytes of the metadata chunks */
    uint64_t unread;      /**< unreadable bytes among these: generations may be missing */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Returns the facts about the scan. */
void bw_history_facts(const struct bw_history *history, struct bw_history_facts *facts);

/** Whether bytes are an index, of any file system. */
bool bw_history_is_index(const void *bytes, size_t size);

/** Writes the index of the scan; see bw_history_options.index. A version with another format
 * ignores it. */
struct bw_error *bw_history_write_index(const struct bw_history *history, bw_consumer *consume,
                                        void *context);

/*
 * Deleted files: files, directories and subvolumes that older generations contain, and the current
 * one lacks. Successive generations are compared without the blocks that they share, so only
 * changes are read.
 *
 * A file is identified by its subvolume, its inode number and the generation of its inode. So a
 * renamed file does not count as deleted, but a file that was replaced by another one does.
 */

/** The generations to compare, and the entries to report. */
struct bw_deleted_options {
    size_t struct_size; /**< sizeof(struct bw_deleted_options) */
    /** How the current file system was opened. Its functions, probes and choice of a generation are
     * not used. It must outlive the search. */
    const struct bw_fs_options *images;
    /** The older generations, the newest first; NULL: all generations that bw_history_open() finds.
     */
    const struct bw_generation_choice *states;
    size_t state_count;
    uint64_t since;   /**< the oldest generation to search; 0: all */
    const char *path; /**< only files with this path, or below it; NULL: all */
    /** Conditions that entries must meet; NULL: none. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< greatest depth of entries below `path`, or below the top */
    unsigned mindepth; /**< least depth */
    /** Called before each generation is opened, with its number, counted from 1. May be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    void *context; /**< of `progress` */
    /** Report files that the current generation has lost, instead of those that were deleted: their
     * inodes are in tree blocks that cannot be read. Whether they had been deleted is unknown. */
    bool lost;
    /** The contents of the files will be read. If the images are on servers, several generations
     * are examined, and at most 32 MiB of their data requested, before one is returned. */
    bool reads_data;
};

/** A generation that contains deleted files. */
struct bw_deleted_state {
    struct bw_fs *fs;     /**< open until the next call */
    uint64_t generation;  /**< the transaction that committed it */
    uint64_t tree_root;   /**< logical address of the root of its root tree */
    struct timespec time; /**< of the last change in a subvolume of it */
    uint64_t lost;        /**< messages of damage so far: more deleted files may be lost */
    bool is_present; /**< it is the current one: its entries are deleted, but not yet removed */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A search. One thread at a time may use it. */
struct bw_deleted;

/** Starts a search in an open file system, which must outlive it. The generations are opened one
 * after the other, the newest first. BW_ERROR_USAGE if the options are wrong. */
struct bw_error *bw_deleted_open(struct bw_fs *present, const struct bw_deleted_options *options,
                                 struct bw_deleted **deleted);

/** Continues with the next generation. Generations that cannot be opened, or that equal the
 * previous one, are skipped. The last one is the current generation: for files that were open when
 * they were deleted, and for subvolumes whose deletion is not complete, unless an older generation
 * contained them. `*state` is NULL at the end; it is
 * valid until the next call. Fails only if memory runs out. */
struct bw_error *bw_deleted_next(struct bw_deleted *deleted, const struct bw_deleted_state **state);

/**
 * Calls `visit` for the entries whose last occurrence is in the current generation of the search,
 * one for each name, by subvolume and inode number. The top directory of a subvolume represents the
 * whole subvolume. Only `types` (enum bw_walk_types; 0: all). A NUL follows the path of each entry.
 * A file without a name is called "#INODE", at the top of its subvolume; a subvolume without a name
 * is called "#ID", at the top level.
 *
 * Losses are not reported. Returns the error of `visit`, or BW_ERROR_NO_MEMORY. May be called
 * again.
 */
struct bw_error *bw_deleted_visit(struct bw_deleted *deleted, unsigned types,
                                  bw_entry_visitor *visit, void *context);

/** Ends a search and closes its generations; NULL is allowed. */
void bw_deleted_close(struct bw_deleted *deleted);

/** How much of the contents of a file is recoverable. */
enum bw_recoverable_kind {
    BW_RECOVERABLE_VERIFIED, /**< everything: the contents match the checksums of that generation */
    BW_RECOVERABLE_UNVERIFIED, /**< without checksums: the data may be anything */
    BW_RECOVERABLE_PARTLY,     /**< ranges of it are lost */
    BW_RECOVERABLE_LOST,       /**< nothing except holes */
    BW_RECOVERABLE_CORRECTED,  /**< everything: the contents match after flipped bits were corrected
                                  (bw_fs_options.correct_bits) */
};

/** "verified", "corrected", "unverified", "partly" or "lost". */
const char *bw_recoverable_name(enum bw_recoverable_kind kind);

/** The number of ranges that are recorded. */
enum { BW_RECOVERABLE_RANGES = 16 };

/** The result of reading a file. All zeros: nothing yet. */
struct bw_recoverable {
    uint64_t good, bad; /**< bytes that could, and could not, be read and verified */
    uint64_t zeros;     /**< bytes of holes */
    uint64_t in_tree;   /**< good bytes in tree blocks, which have checksums */
    uint64_t unchecked; /**< bad bytes that could be read, but whose checksums are missing */
    size_t count;       /**< of lost ranges; the first ones are recorded: */
    struct {
        uint64_t offset, length;
    } ranges[BW_RECOVERABLE_RANGES];
    uint64_t unverified;  /**< good bytes of parts that were accepted although they do not match
                           * their checksums, or these are missing */
    uint64_t corrected;   /**< good bytes of parts in which a flipped bit was corrected */
    uint64_t reserved[1]; /**< zeros: room for more members */
};

/** Adds a part of a file; call it in the order of the parts. */
void bw_recoverable_add(struct bw_recoverable *left, const struct bw_data_part *part);

/** The result as a kind. `unchecked`: data outside of the tree have no checksums
 * (BW_INODE_NODATASUM). */
enum bw_recoverable_kind bw_recoverable_kind(const struct bw_recoverable *left, bool unchecked);

/*
 * The versions of a file: its contents in older generations, at its path or, if it was renamed,
 * under another name.
 */

/** A version: the same contents of a file in one or more successive generations. */
struct bw_version {
    struct bw_fs *fs;      /**< the newest of these generations, open until the call ends */
    uint64_t generation;   /**< of the newest generation */
    uint64_t first;        /**< the oldest of these generations */
    uint64_t tree_root;    /**< logical address of the root of the newest root tree */
    struct timespec time;  /**< of the last change in the newest generation */
    struct bw_place place; /**< of the file in the newest generation */
    struct bw_inode inode; /**< its inode there */
    const char *path;      /**< there, from bw_versions_options.subvolume; raw bytes, not
                              terminated */
    size_t path_length;
    unsigned changes;     /**< differences from the previous version: enum bw_difference_changes */
    unsigned unknown;     /**< enum bw_difference_changes that could not be compared */
    bool replaced;        /**< the previous version was another file */
    bool is_oldest;       /**< no previous version is known */
    bool renamed;         /**< the previous version is the same file under another name */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Receives a version. An error ends the search and is returned. */
typedef struct bw_error *bw_version_visitor(void *context, const struct bw_version *version);

/** The file, and the function that receives its versions. */
struct bw_versions_options {
    size_t struct_size; /**< sizeof(struct bw_versions_options) */
    /** How the current file system was opened. Its functions, probes and choice of a generation are
     * not used. */
    const struct bw_fs_options *images;
    /** The older generations, the newest first; NULL: all generations that bw_history_open() finds.
     */
    const struct bw_generation_choice *states;
    size_t state_count;
    const char *path; /**< from `subvolume`; a link at its end is not followed */
    bool all;         /**< report each generation as a version, even if nothing differs */
    bw_version_visitor *visit;
    void *context;
    /** Called before each generation is opened, with its number, counted from 1. May be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    /** The current subvolume at which paths begin, as in struct bw_walk_options (walk.h); older
     * generations are searched for its id. NULL: the top-level one. */
    const char *subvolume;
};

/**
 * Finds a file in an older generation under any name: by its subvolume, its inode number and the
 * generation of its inode. `place` and `inode` describe the file in a newer generation. `*path`
 * is the absolute path of its first name in the older one, NULL if it has none; the caller frees it
 * with free(). `path` may be NULL.
 *
 * BW_ERROR_NOT_FOUND if the older generation lacks the file; other errors if it cannot be read. It
 * also works in the other direction: whether a newer generation still has a file.
 */
struct bw_error *bw_lookup_older(struct bw_fs *older, const struct bw_place *place,
                                 const struct bw_inode *inode, struct bw_place *found,
                                 struct bw_inode *found_inode, char **path);

/**
 * Calls `visit` for the versions of a file, the newest first. If a generation has no file at the
 * path, the file is searched by its subvolume, its inode number and the generation of its inode.
 * Contents are compared by extents and checksums, and read only if these are not enough.
 *
 * Losses in older generations are not reported. BW_ERROR_NOT_FOUND if no generation contains the
 * file; BW_ERROR_USAGE if the options are wrong; the error of `visit`; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_versions(struct bw_fs *present, const struct bw_versions_options *options);

/*
 * Snapshots: where deleted files and older versions are found most easily.
 */

/** A snapshot of a subvolume, its source, or another subvolume of the same origin. */
struct bw_snapshot {
    const struct bw_subvolume *subvolume;
    uint64_t id;
    uint64_t generation;  /**< transaction that created it */
    struct timespec time; /**< when it was created */
    bool read_only;
    const char *path;     /**< as from bw_subvolume_path(); "" if it has none */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** The snapshots of a subvolume. They do not change: several threads may use them. */
struct bw_snapshots;

/** Finds all subvolumes with the same origin as the subvolume with this id, which need not exist
 * any more if snapshots of it do; itself excluded. They are related by the UUIDs of sources and
 * sent subvolumes. `fs` must outlive `*snapshots`, which the caller closes. */
struct bw_error *bw_snapshots_open(struct bw_fs *fs, uint64_t subvolume,
                                   struct bw_snapshots **snapshots);

/** Closes them; NULL is allowed. */
void bw_snapshots_close(struct bw_snapshots *snapshots);

/** The number of snapshots. The first is the newest. */
size_t bw_snapshots_count(const struct bw_snapshots *snapshots);

/** A snapshot, by its position in the list; valid as long as `snapshots`. */
const struct bw_snapshot *bw_snapshots_entry(const struct bw_snapshots *snapshots, size_t number);

/** A file to be found in snapshots. */
struct bw_snapshot_file {
    uint64_t inode;       /**< its number in the subvolume; 0: unknown */
    uint64_t generation;  /**< of its inode */
    const char *path;     /**< from the top of the subvolume; NULL: only by its number */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Finds a file in a snapshot: by its inode, otherwise by its path. False if it is not there, or
 * cannot be read. */
bool bw_snapshots_find(const struct bw_snapshots *snapshots, size_t number,
                       const struct bw_snapshot_file *file, struct bw_place *place,
                       struct bw_inode *inode);

/*
 * The log tree of a file system that was not unmounted: the inodes that it changes. To find out
 * how, compare them with a second handle opened with BW_LOG_IGNORE.
 */

/** An inode that the log changes, makes or removes, or whose names it changes. */
struct bw_log_inode {
    uint64_t subvolume; /**< id */
    uint64_t inode;     /**< number */
};

/** The inode after `before` (NULL: the first), by ascending subvolume and number; NULL after the
 * last one. Each is listed once. There are none unless the log was replayed (struct bw_fs_status).
 * Valid until the file system is closed. */
const struct bw_log_inode *bw_log_inode_next(const struct bw_fs *fs,
                                             const struct bw_log_inode *before);

/** Receives an inode; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_log_inode_visitor(void *context, const struct bw_log_inode *inode);

/** Calls `visit` for each inode that bw_log_inode_next() returns. */
struct bw_error *bw_log_inodes(const struct bw_fs *fs, bw_log_inode_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif
#endif
