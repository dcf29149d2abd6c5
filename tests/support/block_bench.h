/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks in memory behind a fake layer, for the tests of features/verify and
 * performance/node-cache. */
#ifndef BW_TESTS_BLOCK_BENCH_H
#define BW_TESTS_BLOCK_BENCH_H

#include "ondisk/node.h"
#include "support/fake_layer.h"

enum { BENCH_NODESIZE = 4096, BENCH_BLOCKS = 1024, BENCH_GENERATION = 7 };

/** Up to FAKE_COPIES copies of BENCH_BLOCKS blocks of tree 5: block n is at address n *
 * BENCH_NODESIZE, has one item with key (n + 1, 1, 0), and BENCH_GENERATION. */
struct block_bench {
    struct fake_layer fake;
    uint8_t *copies[FAKE_COPIES];
    uint8_t fsid[BW_UUID_SIZE];
};

struct block_bench *block_bench_create(unsigned copies, enum bw_checksum_type type);
void block_bench_free(struct block_bench *bench);
/** One copy (counted from 1) of a block, to be changed. */
uint8_t *block_bench_bytes(struct block_bench *bench, unsigned copy, size_t block);
/** Puts the checksum in front of a changed block. */
void block_bench_seal(uint8_t *block, enum bw_checksum_type type);
/** The expectation of the parent of a block. */
struct bw_tree_block_expectation block_bench_expectation(size_t block);
/** Asks for one block; the answer is the error. `buffer` takes BENCH_NODESIZE bytes. */
struct bw_error *block_bench_read(struct bw_xlator *top, size_t block,
                                  const struct bw_tree_block_expectation *expectation, bool keep,
                                  void *buffer);

#endif
