/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file system of any number of files, of which each block can be computed from its address. So an
 * image is written at the speed of the disk (large-image.c), and the leaves of one that no disk has
 * room for are computed while they are read (large-layer.c).
 *
 * A section is a directory with 100 groups, and a group a directory with 100 small files; so 10,000
 * files have 301 leaves: one for the section, and for each group one with its entries and two with
 * its files. Inodes are numbered in the same order. The subvolume "files" contains all sections;
 * leaves of the top directory come first. "changed", which is optional, is a snapshot of it in
 * which one file of each section has another size, so it shares all but one of 301 leaves.
 *
 * All blocks lie one after the other in one chunk, whose logical and physical addresses are equal:
 * the roots, the nodes, the extent tree, and then the leaves.
 */
#ifndef BENCH_LARGE_H
#define BENCH_LARGE_H

#include "ondisk/disk.h"

enum {
    NODESIZE = 16384,
    GROUPS = 100, /* in a section */
    FILES = 100,  /* in a group */
    SECTION_LEAVES = 1 + 3 * GROUPS,
    SECTION_INODES = 1 + GROUPS * (1 + FILES),
    CHANGED_LEAF = 3, /* of each section: the second half of its first group */
    MAX_SECTIONS = 10000,
    GENERATION = 10, /* of "files"; everything else was written after the snapshot was made */
    POINTERS = (NODESIZE - sizeof(struct bw_disk_header)) / sizeof(struct bw_disk_key_pointer),
};

#define FILES_TREE   BW_FIRST_SUBVOLUME
#define CHANGED_TREE (BW_FIRST_SUBVOLUME + 1)

#define FIRST_BLOCK (UINT64_C(128) << 20) /* behind the second superblock */
#define LARGE_FSID  "large file tree"     /* 16 bytes with the NUL */

/** The leaves of the subvolumes. */
struct large {
    uint64_t sections;
    uint64_t top_leaves;     /* of the top directory */
    uint64_t leaves;         /* of each subvolume */
    uint64_t first;          /* address of the first leaf of "files" */
    uint64_t first_changed;  /* address of the first leaf of "changed" that is its own */
    uint8_t *top;            /* the contents of the leaves of the top directory */
    struct bw_key *top_keys; /* the first key of each of them */
};

/** A leaf or node that is being filled. */
struct large_block {
    uint8_t *bytes;
    uint32_t count, end; /* items, and where the data of the last one begin */
};

/** Prepares `large` for a number of files, a multiple of 10,000; false if memory ran out. */
bool large_init(struct large *large, uint64_t files);

/** The generation of the blocks of a tree. */
uint64_t large_generation(uint64_t owner);

/** Begins a block at its address. */
struct large_block large_begin(uint8_t *bytes, uint64_t address, uint64_t owner, uint8_t level);

/** Appends an item, and returns its data; the keys must ascend. NULL: there is no room for it. */
void *large_item(struct large_block *block, struct bw_key key, size_t size);

/** Writes the checksum at the beginning of a block or superblock. */
void large_sum(void *block, size_t size);

/** Writes the number of items and the checksum. */
void large_finish(struct large_block *block);

/** The item, and the reference to itself, of the top directory of a tree with `names` bytes of
 * names in it. */
void large_top_inode(struct large_block *block, uint64_t names);

/** An entry of a directory: by hash, or with `index` by index. False: there is no room for it. */
bool large_entry(struct large_block *block, uint64_t directory, struct bw_key to, uint8_t type,
                 const char *name, uint64_t index);

/** Sets the members of an inode. */
void large_inode(struct bw_disk_inode_item *inode, uint32_t mode, uint64_t size, uint64_t bytes,
                 uint64_t number);

/** The first key, the address and the contents of a leaf. */
struct bw_key large_first_key(const struct large *large, uint64_t leaf);
uint64_t large_address(const struct large *large, uint64_t tree, uint64_t leaf);
bool large_is_shared(const struct large *large, uint64_t leaf);
void large_leaf(const struct large *large, uint64_t tree, uint64_t leaf, uint8_t *bytes);

struct bw_disk_key large_key(struct bw_key key);

#endif
