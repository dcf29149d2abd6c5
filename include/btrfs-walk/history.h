/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Older generations of a file system. Every transaction leaves its root tree on the disk until
 * something else is written there. The superblock names the last four; a scan of the metadata
 * chunks finds the others. Each generation can be opened as a file system.
 *
 * Also deleted files, the versions of a file, and the changes in the log tree. One thread at a
 * time may use a struct bw_history.
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

/** The states of a file system. */
struct bw_history;

/** Whether the metadata chunks are scanned. */
enum bw_history_scanning {
    BW_HISTORY_SCAN_SMALL,  /**< if no more than BW_HISTORY_SMALL bytes have to be read */
    BW_HISTORY_SCAN_ALWAYS, /**< in any case */
    BW_HISTORY_SCAN_NEVER,  /**< only generations that the superblock names; their completeness is
                               not assessed */
};

/** As much as is scanned without being asked for: 64 GiB. */
#define BW_HISTORY_SMALL (UINT64_C(64) << 30)

/** How states are looked for. */
struct bw_history_options {
    size_t struct_size; /**< sizeof(struct bw_history_options) */
    enum bw_history_scanning scanning;
    unsigned threads; /**< 0: one for each processor, at most 8 */
    /** An index from bw_history_write_index(). It replaces the scan if the file system has the same
     * superblocks on images of the same size; otherwise it is ignored. All blocks in it are read
     * again, unless `only_list`. Blocks that are not in it are not found. NULL: none. */
    const void *index;
    size_t index_size; /**< bytes of it */
    /** Told now and then how many bytes of the scan are done; false ends it. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;  /**< of `progress` */
    bool only_list; /**< the generations will be opened: their completeness is not assessed */
};

/** Where a state was found: bits. */
enum bw_generation_source {
    BW_GENERATION_OF_SUPERBLOCK = 1 << 0, /**< it is the present one */
    BW_GENERATION_OF_BACKUP = 1 << 1,     /**< a backup root of the superblock names it */
    BW_GENERATION_OF_SCAN = 1 << 2,       /**< its root block lies in a metadata chunk */
};

/** Whether a transaction was committed with this root tree. A transaction may write several, all of
 * its generation, and only the last one counts. */
enum bw_generation_status {
    BW_GENERATION_COMMITTED,  /**< the superblock names it, or its extent tree has the root block */
    BW_GENERATION_ABANDONED,  /**< its extent tree does not have that block, or it came after the
                            last commit, or its transaction wrote another complete root tree later,
                            as it does to take a snapshot with quotas */
    BW_GENERATION_UNVERIFIED, /**< its extent tree is lost, or of a kind that does not tell */
};

/** "committed", "abandoned" or "unverified". */
const char *bw_generation_status_name(enum bw_generation_status status);

/** A state. */
struct bw_generation_info {
    uint64_t generation;
    uint64_t tree_root;  /**< logical address of the root of its root tree */
    uint64_t chunk_root; /**< and of its chunk tree; 0: it is the present one */
    unsigned sources;    /**< bits of enum bw_generation_source */
    unsigned backup;     /**< backup root that names it, as bw_generation_choice.backup; 0: none */
    enum bw_generation_status status;
    struct timespec date; /**< newest time of a change in the list of subvolumes; 0: not known */
    bool assessed;        /**< the next five members are known */
    bool readable;        /**< the root block of its root tree is readable */
    uint64_t missing;     /**< lost tree blocks, without the blocks below them. 0: the generation is
                             complete */
    uint64_t trimmed;     /**< of these: there are zeros in their place */
    uint64_t trees_damaged; /**< trees of which blocks are missing */
    uint64_t trees;         /**< in its root tree, as far as that can be read, and the chunk tree */
    uint64_t subvolumes;    /**< among them */
    uint64_t subvolumes_readable; /**< if assessed: subvolumes whose root block is readable */
    bool superseded;              /**< bw_history_find() finds another state of its generation */
    uint64_t reserved[7];         /**< zeros: room for more members */
};

/** A tree of a state. */
struct bw_generation_tree {
    uint64_t id;
    uint64_t root; /**< logical address of its root block */
    uint64_t generation;
    uint8_t level;
    bool is_deleted;           /**< a subvolume that was being deleted: it need not be whole */
    bool assessed;             /**< the next three members are known */
    bool readable;             /**< its root block is readable */
    uint64_t missing, trimmed; /**< as in struct bw_generation_info */
    uint64_t reserved[4];      /**< zeros: room for more members */
};

/** Finds the generations of a file system, which must outlive `*history` and is best opened without
 * a choice of generation. On success the caller owns `*history` and closes it. Unreadable parts are
 * reported. BW_ERROR_STOPPED if `progress` returned false. */
struct bw_error *bw_history_open(struct bw_fs *fs, const struct bw_history_options *options,
                                 struct bw_history **history);

/** Frees it; NULL is allowed. States that were opened stay open. */
void bw_history_close(struct bw_history *history);

/** How many states there are. The first is the newest. */
size_t bw_history_count(const struct bw_history *history);

/** A state, by its place in the list; it stays as long as `past`. */
const struct bw_generation_info *bw_history_entry(const struct bw_history *history, size_t state);

/** The committed root tree of a generation, or the only one. If several are complete and only their
 * times decide, a warning is reported. BW_ERROR_NOT_FOUND if the generation does not exist, or
 * nothing decides; the error lists the candidates. */
struct bw_error *bw_history_find(const struct bw_history *history, uint64_t generation,
                                 size_t *state);

/** Receives a tree; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_generation_tree_taker(void *context,
                                                  const struct bw_generation_tree *tree);

/** Hands out the root tree of a state, its chunk tree, and those that its root tree lists, as far
 * as that can be read. */
struct bw_error *bw_history_trees(struct bw_history *history, size_t state,
                                  bw_generation_tree_taker *take, void *context);

/** Opens a generation as a file system. `options` are the options that the file system was opened
 * with; their `state` is ignored. The caller owns `*fs`. */
struct bw_error *bw_history_open_state(const struct bw_history *history, size_t state,
                                       const struct bw_fs_options *options, struct bw_fs **fs);

/** Facts about the scan. */
struct bw_history_facts {
    bool scanned;         /**< there was a scan, or the index of one was used */
    bool index_used;      /**< bw_history_options.index was */
    uint64_t blocks;      /**< tree blocks found, of all generations */
    uint64_t zeros;       /**< places of blocks with zeros: trimmed, or never written */
    uint64_t bytes;       /**< of metadata chunks that are stored */
    uint64_t unread;      /**< bytes of these that could not be read: states may be missing */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Returns the facts about the scan. */
void bw_history_facts(const struct bw_history *history, struct bw_history_facts *facts);

/** Whether bytes are an index, of any file system. */
bool bw_history_is_index(const void *bytes, size_t size);

/** Writes the index of the scan; see bw_history_options.index. Its format may change from one
 * version to the next, which then does not use it. */
struct bw_error *bw_history_write_index(const struct bw_history *history, bw_consumer *consume,
                                        void *context);

/*
 * Deleted files: files, directories and subvolumes that older generations contain, and the current
 * one lacks. Successive generations are compared without the blocks that they share, so only
 * changes are read.
 *
 * A file is identified by its subvolume, its inode number and the generation of its inode. So a
 * renamed file is not deleted, and a file that another one has replaced is.
 */

/** The generations to compare, and the entries to report. */
struct bw_deleted_options {
    size_t struct_size; /**< sizeof(struct bw_deleted_options) */
    /** How the present file system was opened. Its functions, probes and state are not used; what
     * it points to must outlive the search. */
    const struct bw_fs_options *images;
    /** The older states, the newest first; NULL: those that bw_history_open() finds by itself. */
    const struct bw_generation_choice *states;
    size_t state_count;
    uint64_t since;   /**< no states before this generation; 0: all */
    const char *path; /**< only what had this path, or one below; NULL: everything */
    /** Conditions that entries must meet; NULL: none. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories below `path`, or the top, entries may be */
    unsigned mindepth; /**< and must be */
    /** Told of each state that is about to be opened: its number, from 1 on, and of how many. May
     * be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    void *context; /**< of `progress` */
};

/** A state that held something. */
struct bw_deleted_state {
    struct bw_fs *fs;     /**< open until the next call */
    uint64_t generation;  /**< the transaction that committed it */
    uint64_t tree_root;   /**< logical address of the root of its root tree */
    struct timespec time; /**< of the last change in a subvolume of it */
    uint64_t lost;   /**< messages of damage so far: the lost parts may have contained more deleted
                        files */
    bool is_present; /**< it is the present one: what its entries lead to is deleted, but
                          not yet gone */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A search. One thread at a time may use it. */
struct bw_deleted;

/** Starts a search below a file system that is open, which must outlive it. The states are opened
 * one after the other, the newest first. BW_ERROR_USAGE if the options are wrong. */
struct bw_error *bw_deleted_open(struct bw_fs *present, const struct bw_deleted_options *options,
                                 struct bw_deleted **deleted);

/** Continues with the next generation. Generations that cannot be opened, or that equal the
 * previous one, are skipped. The last one is the current generation: for files that were open when
 * they were deleted, and for subvolumes whose deletion is not complete, unless an older generation
 * contained them. `*state` is NULL at the end; it is
 * valid until the next call. Fails only if memory runs out. */
struct bw_error *bw_deleted_next(struct bw_deleted *deleted, const struct bw_deleted_state **state);

/**
 * Passes on the entries whose last occurrence is in the current generation of the search, one for
 * each name, by subvolume and inode number. The top directory of a subvolume represents the whole
 * subvolume. Only `types` (enum bw_walk_types; 0: all). A NUL follows the path of each entry. A
 * file without a name is called "#INODE", at the top of its subvolume; a subvolume without a name
 * is called "#ID", at the top level.
 *
 * Losses are not reported. Returns the error of `visit`, or one of memory. May be called again.
 */
struct bw_error *bw_deleted_visit(struct bw_deleted *deleted, unsigned types,
                                  bw_entry_visitor *visit, void *context);

/** Ends a search and closes its states; NULL is allowed. */
void bw_deleted_close(struct bw_deleted *deleted);

/** How much of the contents of a file is recoverable. */
enum bw_recoverable_kind {
    BW_RECOVERABLE_VERIFIED, /**< everything: the contents match the checksums of that generation */
    BW_RECOVERABLE_UNVERIFIED, /**< unverified: there are no checksums, so the data may be anything
                                */
    BW_RECOVERABLE_PARTLY,     /**< ranges of it are lost */
    BW_RECOVERABLE_LOST,       /**< nothing except holes */
};

/** "verified", "unverified", "partly" or "lost". */
const char *bw_recoverable_name(enum bw_recoverable_kind kind);

/** How many ranges are kept. */
enum { BW_RECOVERABLE_RANGES = 16 };

/** The result of reading a file. All zeros: nothing yet. */
struct bw_recoverable {
    uint64_t good, bad; /**< bytes that could, and could not, be read and verified */
    uint64_t zeros;     /**< bytes of holes */
    uint64_t in_tree; /**< of the good ones: those that lie in tree blocks, which have checksums */
    size_t count;     /**< of the ranges that are lost, of which the first are kept: */
    struct {
        uint64_t offset, length;
    } ranges[BW_RECOVERABLE_RANGES];
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Takes a part of a file, in order. */
void bw_recoverable_add(struct bw_recoverable *left, const struct bw_data_part *part);

/** The result as a kind. `unchecked`: data outside of the tree have no checksums
 * (BW_INODE_NODATASUM). */
enum bw_recoverable_kind bw_recoverable_kind(const struct bw_recoverable *left, bool unchecked);

/*
 * The versions of a file: what older states of a file system have at its path, or under another
 * name, if it was renamed.
 */

/** A version: a file as one or more states that follow one another have it. */
struct bw_version {
    struct bw_fs *fs;      /**< the newest of these states, open until the call ends */
    uint64_t generation;   /**< of that state */
    uint64_t first;        /**< generation of the oldest of these states */
    uint64_t tree_root;    /**< logical address of the root of the root tree of the newest */
    struct timespec time;  /**< of the last change in that state */
    struct bw_place place; /**< of the file in it */
    struct bw_inode inode; /**< what its inode holds there */
    const char *path;      /**< there, from bw_versions_options.subvolume; raw bytes, not
                              terminated */
    size_t path_length;
    unsigned changes;     /**< what differs from the version before: enum bw_difference_changes */
    unsigned unknown;     /**< what could not be compared with it */
    bool replaced;        /**< the version before was another file */
    bool is_oldest;       /**< there is no version before that is known */
    bool renamed;         /**< the version before is the same file under another name */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Receives a version. An error ends the search and is returned. */
typedef struct bw_error *bw_version_taker(void *context, const struct bw_version *version);

/** The file, and the function that receives its versions. */
struct bw_versions_options {
    size_t struct_size; /**< sizeof(struct bw_versions_options) */
    /** How the present file system was opened. Its functions, probes and state are not used. */
    const struct bw_fs_options *images;
    /** The older states, the newest first; NULL: those that bw_history_open() finds by itself. */
    const struct bw_generation_choice *states;
    size_t state_count;
    const char *path; /**< from `subvolume`; a link at its end is not followed */
    bool all;         /**< report each generation as a version, even if nothing differs */
    bw_version_taker *take;
    void *context;
    /** Told of each state that is about to be opened: its number, from 1 on, and of how many. May
     * be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    /** The subvolume at which paths begin, as in struct bw_walk_options (walk.h), of the present;
     * older states are searched for it by its id. NULL: the top-level one. */
    const char *subvolume;
};

/**
 * Passes on the versions of a file, the newest first. If a generation has nothing at the path, the
 * file is searched by its subvolume, its inode number and the generation of its inode. Contents are
 * compared by extents and checksums, and read only if these cannot decide.
 *
 * Losses in older generations are not reported. BW_ERROR_NOT_FOUND if no generation contains the
 * file; BW_ERROR_USAGE if the options are wrong; the error of `take`; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_versions(struct bw_fs *present, const struct bw_versions_options *options);

/*
 * The log tree of a file system that was not unmounted: the inodes that it changes. To find out
 * how, compare them with a second handle opened with BW_LOG_IGNORE.
 */

/** An inode that the log changes, makes or removes, or whose names it changes. */
struct bw_log_inode {
    uint64_t subvolume; /**< id */
    uint64_t inode;     /**< number */
};

/** Receives an inode; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_log_inode_taker(void *context, const struct bw_log_inode *inode);

/** Hands out those inodes, by ascending subvolume and number, each once. There are none unless the
 * log was replayed (struct bw_fs_status). */
struct bw_error *bw_log_inodes(const struct bw_fs *fs, bw_log_inode_taker *take, void *context);

#ifdef __cplusplus
}
#endif
#endif
