/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Index of the tree blocks that a scan has found, of all generations. It has the facts needed to
 * assess their completeness without reading them again. The scans of this folder fill it; states
 * are searched in it. */
#ifndef BW_HISTORY_BLOCK_INDEX_H
#define BW_HISTORY_BLOCK_INDEX_H

#include <pthread.h>

#include "base/map.h"
#include "fs/fs.h"

/** The greatest level of a block, and how many trees can have blocks in an index, whose numbers are
 * all less. More trees cause BW_ERROR_NO_MEMORY. */
#define BW_FOUND_MOST_OWNER ((1u << 20) - 1)
#define BW_FOUND_MOST_LEVEL (BW_MAX_LEVEL - 1u)

/** A tree block that was found: 36 bytes. (bytenr, generation) identifies it. */
struct __attribute__((packed, aligned(4))) bw_found_block {
    uint64_t bytenr; /**< its logical address */
    uint64_t generation;
    uint64_t first_objectid, first_offset; /**< of its first key; zeros if it has no items */
    uint32_t owner : 20;                   /**< number of its tree in bw_found_index.owners */
    uint32_t first_type : 8;               /**< of its first key */
    uint32_t level : 3;
    uint32_t filled : 1; /**< it has items */
};

static_assert(sizeof(struct bw_found_block) == 36, "what a block costs");
static_assert(BW_FOUND_MOST_LEVEL < 1 << 3, "levels have room");

/** The blocks. To be started with bw_found_init(). */
struct bw_found_index {
    struct bw_found_block *blocks; /**< ascending by bytenr, then generation, once sorted */
    size_t count, capacity;
    uint64_t *owners; /**< ids of trees */
    size_t owner_count, owner_capacity;
    struct bw_map owner_numbers; /**< from an id to its place in `owners` */
    uint32_t *starts;            /**< once sorted: the first block of each part of the addresses */
    size_t parts;                /**< all of the same length, which is a power of two */
    unsigned part_shift;
    bool unsorted;
    atomic_bool no_memory; /**< it ran out: blocks are missing here */
    pthread_mutex_t lock;
};

/** Which blocks belong to a file system. */
struct bw_found_identity {
    uint8_t (*fsids)[BW_UUID_SIZE]; /**< which they may carry: of the file system, of its seeds */
    size_t fsid_count;
    enum bw_checksum_type checksum_type;
    uint32_t nodesize;
    bool dumped; /**< as in bw_checksum_accepts_block() */
};

/** Classifies bytes that may be a tree block. */
enum bw_found_kind {
    BW_FOUND_NOTHING, /**< no block of the file system */
    BW_FOUND_DAMAGED, /**< it has the fsid of one, but is damaged, or copied from elsewhere */
    BW_FOUND_ZEROS,   /**< all bytes are zero: never written, or trimmed */
    BW_FOUND_BLOCK,   /**< a good block of the file system */
};

/** Accepts any address in the header of a block. */
#define BW_FOUND_ANYWHERE UINT64_MAX

/** Starts an empty index. */
void bw_found_init(struct bw_found_index *index);

/** Frees its memory. */
void bw_found_free(struct bw_found_index *index);

/** The identity of blocks of an open file system, whose images are matched; `fsids` is freed by the
 * caller. */
struct bw_error *bw_found_identity_of(const struct bw_fs *fs, struct bw_found_identity *identity);

/** Classifies `nodesize` bytes. They are a good block if their fsid, their address (`bytenr`, or
 * BW_FOUND_ANYWHERE) and their checksum are right, and their contents may be a leaf or a node;
 * `*block` is set then. Safe from any thread. */
enum bw_found_kind bw_found_recognise(const struct bw_found_identity *identity,
                                      struct bw_found_index *index, const uint8_t *bytes,
                                      uint64_t bytenr, struct bw_found_block *block);

/** Whether all bytes, at least one, are zero. */
bool bw_found_is_zero(const uint8_t *bytes, size_t size);

/** Adds blocks. Fastest if they ascend and come after most blocks of the index. Safe from any
 * thread. */
void bw_found_add(struct bw_found_index *index, const struct bw_found_block *blocks, size_t count);

/** Sorts the blocks after all were added, and drops duplicates. */
void bw_found_sort(struct bw_found_index *index);

/** The block with an address and a generation; NULL if there is none. The index is sorted. */
const struct bw_found_block *bw_found_find(const struct bw_found_index *index, uint64_t bytenr,
                                           uint64_t generation);

/** The id of the tree that a block was written for. */
static inline uint64_t bw_found_owner(const struct bw_found_index *index,
                                      const struct bw_found_block *block)
{
    return index->owners[block->owner];
}

/** The first key of a block. */
static inline struct bw_key bw_found_first_key(const struct bw_found_block *block)
{
    return (struct bw_key){block->first_objectid, block->first_type, block->first_offset};
}

/** The pointer to a block, without the generation, level and key that a parent would promise. */
static inline struct bw_block_pointer bw_found_pointer(const struct bw_found_index *index,
                                                       const struct bw_found_block *block)
{
    return (struct bw_block_pointer){block->bytenr,
                                     {.owner = bw_found_owner(index, block),
                                      .generation = block->generation,
                                      .end_key = BW_KEY_MAX,
                                      .level = block->level}};
}

#endif
