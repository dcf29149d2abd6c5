/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A metadump: the list of its blocks, and copies of them without names and contents. */
#ifndef BW_TREES_METADUMP_H
#define BW_TREES_METADUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "ondisk/items.h"
#include "ondisk/structure.h"
#include "owners/tree_list.h"

/* The list of everything that a metadump contains: tree blocks, and the space cache. */

/** The owner of blocks that only the extent tree contains. */
enum { BW_DUMPED_UNKNOWN_TREE = UINT32_MAX };

/** A tree block, or a piece of the space cache. */
struct bw_dumped_block {
    uint64_t bytenr;
    uint64_t generation; /**< of a tree block, according to its parent */
    uint32_t length;     /**< bytes */
    uint32_t tree;       /**< number of a tree in the list from which it was reached */
    uint8_t level;       /**< of a tree block */
    bool is_data;        /**< part of the space cache */
};

BW_VECTOR(bw_dumped_block_list, struct bw_dumped_block);

/** All zeros is an empty list. */
struct bw_dumped_blocks {
    struct bw_tree_list trees;
    struct bw_dumped_block_list blocks; /**< by ascending address; they do not overlap */
    uint64_t bytes;
};

/**
 * Fills an empty list, to be freed even after an error: the blocks of all trees, log trees
 * included, each once, and the space cache. Reads internal nodes. If one is lost, the extent tree
 * shows which blocks are below it. Blocks that overlap others are reported and left out.
 */
struct bw_error *bw_dumped_blocks_find(struct bw_dumped_blocks *list, struct bw_fs *fs);

void bw_dumped_blocks_free(struct bw_dumped_blocks *list);

/*
 * Copies only the known bytes of structures: numbers that a table of ondisk/tables.h declares, and
 * texts that the caller replaces. All other bytes of a copy are zeros.
 *
 * Bytes are a number only if its value is possible. Contents of files in place of a number are
 * mostly impossible, because numbers on disk are longer than their values. A single impossible
 * number is damage, and is replaced by the greatest one, which is impossible, too. If a structure
 * has two of them, its item does not have the type that it claims, and is not copied.
 */

/** The ranges of numbers, and the texts. */
struct bw_known_bytes {
    uint64_t generation;                  /**< the latest one on disk */
    uint32_t sectorsize, checksum_size;   /**< of the file system */
    const uint8_t (*uuids)[BW_UUID_SIZE]; /**< of it and its devices. Others are copied if their
                                               bits show that they are random, or made from a time
                                           */
    size_t uuid_count;
    /** Copies or replaces a name, a value, a bitmap or checksums: `target` are zeros. False: it is
     * none, so that the item is not copied. */
    bool (*copy_text)(void *context, const struct bw_member *member, const uint8_t *source,
                      uint8_t *target, size_t length);
    void *context;
    unsigned impossible; /**< set: impossible numbers of the structure */
};

/** Copies an item to `target`, which are as many zeros; false if it does not have the structure
 * exactly, and nothing is copied. NULL is the structure of unknown items, which are not copied. */
bool bw_known_bytes_of_item(struct bw_known_bytes *known, const struct bw_item *item,
                            const struct bw_structure *structure, uint8_t *target);

/** Copies the members of a structure that is no item; `target` are zeros. */
void bw_known_bytes_of_structure(struct bw_known_bytes *known, const void *source,
                                 const struct bw_structure *structure, void *target);

/** Whether the numbers of a key are possible. */
bool bw_known_key(const struct bw_key *key);

/** Whether bytes are a UUID of the file system, or look like one. */
bool bw_known_uuid(const struct bw_known_bytes *known, const uint8_t *uuid);

/** The known bits, and the lowest unknown one. */
uint64_t bw_known_flags(uint64_t flags, uint64_t known);

/*
 * Pseudonyms: other names of the same length and with the same hash, so that the keys of directory
 * entries, which contain hashes of names, stay valid.
 *
 * A key selects a permutation of all names with the same length and hash. Different names get
 * different pseudonyms, and the same name always gets the same one. Without the key, names cannot
 * be computed from their pseudonyms, but guessed names can be confirmed by their hash.
 */

/** The seed of the hash of names. Source: btrfs_name_hash() in the kernel's fs/btrfs/ctree.h. */
#define BW_NAME_SEED (~UINT32_C(1))

enum {
    BW_PSEUDONYM_KEY = 32,
    /** Names up to this length have no pseudonyms: no other name has the same hash. */
    BW_PSEUDONYM_NONE = 4,
};

struct bw_pseudonyms {
    uint8_t key[BW_PSEUDONYM_KEY];
};

/**
 * Replaces a name of up to 255 bytes by its pseudonym; false if it has none and is unchanged.
 * `seed`: of the hash, which is a CRC-32C; for the end of a name, the CRC-32C of the bytes before
 * it. Printable ASCII stays printable ASCII, except that some names of 5 bytes get other bytes. The
 * checksum SHA-256 must have been prepared.
 */
bool bw_pseudonym(const struct bw_pseudonyms *names, uint32_t seed, uint8_t *name, size_t length);

/* Prepares tree blocks for a metadump: removes contents of files, and names if requested. */

/** The information to keep. */
struct bw_dump_rules {
    enum bw_checksum_type checksum_type;
    const uint8_t *fsid; /**< of all blocks: those of seed devices get it, too, because a metadump
                              has a single superblock */
    bool checksums;      /**< keep the checksums of data, and fs-verity's */
    const struct bw_pseudonyms *names; /**< replaces names, and only known bytes are kept; NULL: all
                                            bytes of items but contents are kept */
    /* If there are names: */
    uint64_t generation; /**< the latest one that is possible */
    uint32_t sectorsize, checksum_size;
    const uint8_t (*uuids)[BW_UUID_SIZE]; /**< of the file system and its devices */
    size_t uuid_count;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
};

/** Removes from a block, which the verifying layers have accepted, everything that the rules do not
 * keep, and all bytes outside of items; sets its checksum. `scratch` has room for a block. */
void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch);

/* Tree blocks of sanitized metadumps, without contents and names. */

/** Copies the known bytes of a block, without the checksum, to `target`, which are zeros. */
void bw_sanitized_block_copy(const struct bw_dump_rules *rules, const struct bw_node *node,
                             uint8_t *target);

/** Copies the known bytes of a superblock; not the checksum. */
void bw_sanitized_superblock_copy(const struct bw_dump_rules *rules,
                                  const struct bw_disk_superblock *source,
                                  struct bw_disk_superblock *target);

#endif
