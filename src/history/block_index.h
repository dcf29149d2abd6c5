/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The index of the tree blocks of all generations that a scan has found. It contains the facts
 * needed to assess completeness without reading the blocks again. The scans of this folder fill it;
 * historic roots are searched in it. */
#ifndef BW_HISTORY_BLOCK_INDEX_H
#define BW_HISTORY_BLOCK_INDEX_H

#include <pthread.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "fs/fs.h"

/** The highest level, and the limit for indices of owners: with more trees, adding fails with
 * BW_ERROR_NO_MEMORY. */
#define BW_FOUND_MOST_OWNER ((1u << 19) - 1)
#define BW_FOUND_MOST_LEVEL (BW_MAX_LEVEL - 1u)

/** A tree block that was found, in 36 bytes. (bytenr, generation) identifies it. */
struct __attribute__((packed, aligned(4))) bw_found_block {
    uint64_t bytenr; /**< its logical address */
    uint64_t generation;
    uint64_t first_objectid, first_offset; /**< of its first key; zeros if it is empty */
    uint32_t owner : 19;                   /**< index of its tree in bw_found_index.owners */
    uint32_t first_type : 8;               /**< of its first key */
    uint32_t level : 3;
    uint32_t filled : 1;    /**< it has items */
    uint32_t relocated : 1; /**< a balance has moved it; unknown in an index from a file */
};

static_assert(sizeof(struct bw_found_block) == 36, "what a block costs");
static_assert(BW_FOUND_MOST_LEVEL < 1 << 3, "levels have room");

BW_VECTOR(bw_found_blocks, struct bw_found_block);

/** The blocks that were found. Initialize with bw_found_init(). */
struct bw_found_index {
    struct bw_found_blocks blocks;   /**< once sorted: ascending by bytenr, then generation */
    struct bw_numbers owners;        /**< ids of trees */
    struct bw_key_map owner_numbers; /**< from ids to indices in `owners` */
    uint32_t *starts; /**< once sorted: the index of the first block in each part of the
                       * addresses */
    size_t parts;     /**< number of parts, whose length is a power of two */
    unsigned part_shift;
    bool unsorted;
    atomic_bool no_memory; /**< memory ran out, so blocks are missing */
    pthread_mutex_t lock;
};

/** The two ids in the header of a block. `mkfs.btrfs -U` makes file systems with the same fsid, but
 * each has a chunk_tree_uuid of its own. */
struct bw_block_ids {
    uint8_t fsid[BW_UUID_SIZE];
    uint8_t chunk_tree_uuid[BW_UUID_SIZE]; /**< zeros: unknown, so any is accepted */
};

/** Properties of the blocks of a file system. */
struct bw_found_identity {
    struct bw_block_ids *ids; /**< accepted ids: of the file system and of its seeds */
    size_t id_count;
    enum bw_checksum_type checksum_type;
    uint32_t nodesize;
    unsigned other_checksums; /**< as in bw_checksum_accepts_block() */
};

/** Classifies bytes that may be a tree block. */
enum bw_found_kind {
    BW_FOUND_NOTHING, /**< no block of the file system */
    BW_FOUND_DAMAGED, /**< has an accepted fsid, but is damaged, or a copy from another address */
    BW_FOUND_ZEROS,   /**< all bytes are zero: never written, or trimmed */
    BW_FOUND_BLOCK,   /**< a good block of the file system */
};

/** Accepts any address in the header of a block. */
#define BW_FOUND_ANYWHERE UINT64_MAX

/** Initializes an empty index. */
void bw_found_init(struct bw_found_index *index);

void bw_found_free(struct bw_found_index *index);

/** The properties of blocks of an open file system, whose images have been matched; the caller
 * frees `ids`. Reads a root block of the superblock's generation, whose chunk_tree_uuid the other
 * blocks must have. */
struct bw_error *bw_found_identity_of(const struct bw_fs *fs, struct bw_found_identity *identity);

/** Whether the ids in the header of a block are accepted. */
bool bw_found_has_ids(const struct bw_found_identity *identity, const uint8_t *bytes);

/** Classifies `nodesize` bytes. They are a good block if their fsid, address (`bytenr`, or
 * BW_FOUND_ANYWHERE) and checksum are correct, and their contents are a valid leaf or node; then
 * `*block` is set. Callable from any thread. */
enum bw_found_kind bw_found_recognise(const struct bw_found_identity *identity,
                                      struct bw_found_index *index, const uint8_t *bytes,
                                      uint64_t bytenr, struct bw_found_block *block);

/** Adds blocks. Fastest if they ascend and follow most blocks of the index. Callable from any
 * thread. */
void bw_found_add(struct bw_found_index *index, const struct bw_found_block *blocks, size_t count);

/** Sorts the blocks after all were added, and drops duplicates. */
void bw_found_sort(struct bw_found_index *index);

/** The block with an address and a generation, or NULL. The index must be sorted. */
const struct bw_found_block *bw_found_find(const struct bw_found_index *index, uint64_t bytenr,
                                           uint64_t generation);

/** The id of the tree in the header of a block. */
static inline uint64_t bw_found_owner(const struct bw_found_index *index,
                                      const struct bw_found_block *block)
{
    return index->owners.items[block->owner];
}

/** The first key of a block. */
static inline struct bw_key bw_found_first_key(const struct bw_found_block *block)
{
    return (struct bw_key){block->first_objectid, block->first_type, block->first_offset};
}

/** A pointer to a block, without the generation, level and key that a parent would promise. */
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
