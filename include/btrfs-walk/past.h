/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The older states of a file system. Every transaction leaves its root tree on the disk until
 * something else is written there; the superblock names the last four, and a scan of the metadata
 * chunks finds the others. Each state is opened as a file system of its own.
 *
 * One thread at a time may use a struct bw_past.
 */
#ifndef BTRFS_WALK_PAST_H
#define BTRFS_WALK_PAST_H

#include <time.h>

#include "btrfs-walk/fs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The states of a file system. */
struct bw_past;

/** Whether the metadata chunks are scanned. */
enum bw_past_scanning {
    BW_PAST_SCAN_SMALL,  /**< if no more than BW_PAST_SMALL bytes have to be read */
    BW_PAST_SCAN_ALWAYS, /**< whatever it costs */
    BW_PAST_SCAN_NEVER,  /**< only states that the superblock names; what of them is left is not
                            known */
};

/** As much as is scanned without being asked for: 64 GiB. */
#define BW_PAST_SMALL (UINT64_C(64) << 30)

/** How states are looked for. */
struct bw_past_options {
    size_t struct_size; /**< sizeof(struct bw_past_options) */
    enum bw_past_scanning scanning;
    unsigned threads; /**< 0: one for each processor, at most 8 */
    /** What bw_past_write_index() has written, which makes a scan needless as long as the file
     * system has the same superblocks, on images of the same size; anything else is not used. All
     * blocks that it names are read again, unless `only_list`. What it does not name is not found.
     * NULL: none. */
    const void *index;
    size_t index_size; /**< bytes of it */
    /** Told now and then how many bytes of the scan are done; false ends it. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;  /**< of `progress` */
    bool only_list; /**< the states are going to be opened: what is left of each is not judged */
};

/** Where a state was found: bits. */
enum bw_state_source {
    BW_STATE_OF_SUPERBLOCK = 1 << 0, /**< it is the present one */
    BW_STATE_OF_BACKUP = 1 << 1,     /**< a backup root of the superblock names it */
    BW_STATE_OF_SCAN = 1 << 2,       /**< its root block lies in a metadata chunk */
};

/** Whether a transaction was committed with this root tree. A transaction may write several, all of
 * its generation, and only the last one counts. */
enum bw_state_standing {
    BW_STATE_COMMITTED, /**< the superblock names it, or its extent tree has the root block */
    BW_STATE_ABANDONED, /**< its extent tree does not have that block, or it came after the last
                           commit, or its transaction wrote another complete root tree later, as it
                           does to take a snapshot with quotas */
    BW_STATE_UNPROVEN,  /**< its extent tree is lost, or of a kind that does not tell */
};

/** "committed", "abandoned" or "unproven". */
const char *bw_state_standing_name(enum bw_state_standing standing);

/** A state. */
struct bw_state_info {
    uint64_t generation;
    uint64_t tree_root;  /**< logical address of the root of its root tree */
    uint64_t chunk_root; /**< and of its chunk tree; 0: it is the present one */
    unsigned sources;    /**< bits of enum bw_state_source */
    unsigned backup;     /**< backup root that names it, as bw_state_choice.backup; 0: none */
    enum bw_state_standing standing;
    struct timespec date; /**< newest time of a change in the list of subvolumes; 0: not known */
    bool judged;          /**< the next five members are known */
    bool readable;        /**< the root block of its root tree is left */
    uint64_t missing;     /**< tree blocks that are lost; what was below them is not counted. 0: the
                             state is whole */
    uint64_t trimmed;     /**< of these: there are zeros in their place */
    uint64_t trees_damaged; /**< trees of which blocks are missing */
    uint64_t trees;         /**< in its root tree, as far as that can be read, and the chunk tree */
    uint64_t subvolumes;    /**< among them */
    uint64_t subvolumes_readable; /**< if judged: those whose root block is left */
    bool superseded;              /**< bw_past_find() finds another state of its generation */
    uint64_t reserved[7];         /**< zeros: room for more members */
};

/** A tree of a state. */
struct bw_state_tree {
    uint64_t id;
    uint64_t root; /**< logical address of its root block */
    uint64_t generation;
    uint8_t level;
    bool is_deleted;           /**< a subvolume that was being deleted: it need not be whole */
    bool judged;               /**< the next three members are known */
    bool readable;             /**< its root block is left */
    uint64_t missing, trimmed; /**< as those of the state */
    uint64_t reserved[4];      /**< zeros: room for more members */
};

/**
 * Finds the states of a file system, which must outlive `*past` and is best opened without a choice
 * of state. On success the caller owns `*past` and closes it. What could not be read is reported.
 * BW_ERROR_STOPPED if `progress` said so.
 */
struct bw_error *bw_past_open(struct bw_fs *fs, const struct bw_past_options *options,
                              struct bw_past **past);

/** Frees it; NULL is allowed. States that were opened stay open. */
void bw_past_close(struct bw_past *past);

/** How many states there are. The first is the newest. */
size_t bw_past_count(const struct bw_past *past);

/** A state, by its place in the list; it stays as long as `past`. */
const struct bw_state_info *bw_past_state(const struct bw_past *past, size_t state);

/** The committed state of a generation, or the only one. A warning is reported if another one was
 * complete, too, and only its time decides. BW_ERROR_NOT_FOUND if there is none, or if nothing
 * decides; the error lists those that there are. */
struct bw_error *bw_past_find(const struct bw_past *past, uint64_t generation, size_t *state);

/** Receives a tree; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_state_tree_taker(void *context, const struct bw_state_tree *tree);

/** Hands out the root tree of a state, its chunk tree, and those that its root tree lists, as far
 * as that can be read. */
struct bw_error *bw_past_trees(struct bw_past *past, size_t state, bw_state_tree_taker *take,
                               void *context);

/** Opens a state as a file system of its own. `options` are those the file system was opened with;
 * their `state` is not used. The caller owns `*fs`. */
struct bw_error *bw_past_open_state(const struct bw_past *past, size_t state,
                                    const struct bw_fs_options *options, struct bw_fs **fs);

/** What the scan has met. */
struct bw_past_facts {
    bool scanned;         /**< there was a scan, or the index of one was used */
    bool index_used;      /**< bw_past_options.index was */
    uint64_t blocks;      /**< tree blocks found, of all generations */
    uint64_t zeros;       /**< places of blocks with zeros: trimmed, or never written */
    uint64_t bytes;       /**< of metadata chunks that are stored */
    uint64_t unread;      /**< bytes of these that could not be read: states may be missing */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** What the scan has met. */
void bw_past_facts(const struct bw_past *past, struct bw_past_facts *facts);

/** Whether bytes are an index, of whatever file system. */
bool bw_past_is_index(const void *bytes, size_t size);

/** Writes the index of the scan; see bw_past_options.index. Its format may change from one version
 * to the next, which then does not use it. */
struct bw_error *bw_past_write_index(const struct bw_past *past, bw_consumer *consume,
                                     void *context);

#ifdef __cplusplus
}
#endif

#endif
