/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recovery: replacements for lost blocks. The extent tree leads to the leaves below a lost node,
 * inodes have the names of a lost directory, and extents give the size of a file whose inode is
 * lost (recovery.c). fs/ uses the first two through struct bw_recovery, which is set when a file
 * system is opened (recovery.c); walk/waves.c uses the parts themselves. */
#ifndef BW_RECOVERY_RECOVERY_H
#define BW_RECOVERY_RECOVERY_H

#include "fs/fs.h"
#include "ondisk/items.h"

/* Ranges of lost keys (lost_ranges.c). */

/** In a lost range: not a whole block, but an item of one. */
#define BW_NO_BLOCK UINT64_MAX

/** Keys of a block, or an item, that cannot be read. */
struct bw_lost_range {
    uint64_t bytenr;         /**< address of the block, or BW_NO_BLOCK */
    struct bw_key low, high; /**< low inclusive, high exclusive */
    uint8_t level;           /**< of the block */
    uint64_t generation;     /**< of the block: blocks below it are not newer */
    uint32_t wave; /**< the wave of a walk in which it was lost: directories that were walked in
                      earlier waves had read it. Elsewhere 0 */
};

/** Lost ranges in the order of their discovery. All zeros is none. */
BW_VECTOR(bw_lost_ranges, struct bw_lost_range);

/** The range of a block. */
struct bw_lost_range bw_lost_range_of(const struct bw_block_pointer *pointer, uint32_t wave);

/** Lost ranges, ascending and not overlapping. All zeros is an empty list. */
struct bw_lost_list {
    struct bw_lost_range *items;
    size_t count;
};

/** Makes a list of those ranges whose blocks have at least this level: sorted, cut where they
 * overlap, each piece with the earliest wave, and joined where they touch and have the same wave.
 */
struct bw_error *bw_lost_list_make(const struct bw_lost_ranges *ranges, uint8_t level,
                                   struct bw_lost_list *list);
/** Frees the memory and leaves an empty list. */
void bw_lost_list_free(struct bw_lost_list *list);
/** Whether two lists have the same pieces. */
bool bw_lost_lists_equal(const struct bw_lost_list *a, const struct bw_lost_list *b);
/** The range that holds a key; NULL if none does. */
const struct bw_lost_range *bw_lost_list_find(const struct bw_lost_list *list,
                                              const struct bw_key *key);
/** Whether any key from `first` to `last`, both included, was lost in that wave or earlier. */
bool bw_lost_list_overlaps(const struct bw_lost_list *list, const struct bw_key *first,
                           const struct bw_key *last, uint32_t wave);

/** Sets fs->recovery of a file system whose subvolumes are known, and replays its log. */
struct bw_error *bw_recovery_attach(struct bw_fs *fs);

/* Leaves below lost nodes (adopted_leaves.c). */

/**
 * Reads all internal nodes of a tree, and adds those that cannot be read to `lost`, as lost in this
 * wave. They are reported.
 */
struct bw_error *bw_find_lost_nodes(struct bw_fs *fs, const struct bw_tree *tree, uint32_t wave,
                                    struct bw_lost_ranges *lost);

/**
 * Replaces `result` by the blocks of a tree that lie below its lost nodes, at this level: 0 for
 * leaves. Ranges of `lost` without a node above that level do not matter. Without a readable extent
 * tree it finds none, or fewer. Fails only if memory runs out.
 */
struct bw_error *bw_adopt_blocks(const struct bw_fs *fs, const struct bw_tree *tree,
                                 const struct bw_lost_ranges *lost, uint8_t level,
                                 struct bw_adopted *result);

/** The adopted leaves of all trees, found when a reader first meets a lost node. */
struct bw_adoptions;
/** Creates an empty one, for the readers of `fs`. */
struct bw_error *bw_adoptions_create(struct bw_fs *fs, struct bw_adoptions **adoptions);
/** Frees it; NULL is allowed. */
void bw_adoptions_destroy(struct bw_adoptions *adoptions);
/** As bw_adopter.find; the context is the struct bw_adoptions. */
struct bw_error *bw_adoptions_find(void *adoptions, const struct bw_tree *tree, uint64_t bytenr,
                                   const struct bw_adopted **adopted);

/* Names of directories (lost_names.c). */

/** The names of directories, taken from the inodes. The whole tree is read at the first request, to
 * find which inodes refer to which directories. That takes 24 bytes a name; it is kept for the last
 * few trees. */
struct bw_name_index;
/** Creates an empty one. */
struct bw_error *bw_name_index_create(struct bw_fs *fs, struct bw_name_index **index);
/** Frees it; NULL is allowed. */
void bw_name_index_destroy(struct bw_name_index *index);
/** As bw_recovery.names; the context is the struct bw_name_index. */
struct bw_error *bw_name_index_read(void *index, const struct bw_subvolume *subvolume,
                                    uint64_t directory, bw_name_visitor *visit,
                                    void *visit_context);

/* Names whose directory entries are lost (lost_names.c). */

/** A name that was found. */
struct bw_lost_name {
    uint64_t directory, inode;
    const uint8_t *name; /**< a view that ends with the call */
    uint16_t name_length;
    uint8_t type;   /**< BW_FILE_* */
    uint64_t index; /**< offset of the lost DIR_INDEX key; 0: unknown */
};

/** A search through a tree for names whose directory entries are in lost ranges. */
struct bw_lost_names {
    struct bw_fs *fs;
    const struct bw_tree *tree;
    const struct bw_adopted *adopted; /**< leaves of the tree, whose items are not lost */
    const uint32_t *wave;             /**< the present wave of the walk */
    struct bw_lost_list lost;         /**< all lost ranges; owned by the caller */
    struct bw_lost_list handled;      /**< lost ranges of earlier searches; owned by the caller */
    /** The wave in which a directory was walked: blocks lost later had been read before. */
    uint32_t (*wave_of)(void *context, uint64_t directory);
    /** Receives a name. It may come more than once. An error ends the search. */
    struct bw_error *(*visit)(void *context, const struct bw_lost_name *name);
    /** Receives a range that turns out to be lost during the search, and has been reported. */
    struct bw_error *(*on_loss)(void *context, const struct bw_lost_range *range);
    void *context;

    /* Private. */
    struct bw_key_map indexed; /* directories whose readable DIR_INDEX items are in index_names */
    struct bw_key_map index_names; /* hashes of directory and name */
    uint64_t inode;                /* number of the last INODE_ITEM */
    uint32_t mode;                 /* mode of that inode */
};

/** Searches. */
struct bw_error *bw_lost_names_find(struct bw_lost_names *names);

/** Whether the entry with this DIR_INDEX key is lost. */
bool bw_lost_names_has(const struct bw_lost_names *names, uint64_t directory, uint64_t index);

/** Frees the private memory. */
void bw_lost_names_free(struct bw_lost_names *names);

#endif
