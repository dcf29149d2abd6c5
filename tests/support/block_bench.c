/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks in memory. */
#include "support/block_bench.h"

#include <sys/stat.h>

#include "ondisk/disk_items.h"

void block_bench_seal(uint8_t *block, enum bw_checksum_type type)
{
    bw_checksum_compute(type, block + BW_CSUM_SIZE, BENCH_NODESIZE - BW_CSUM_SIZE, block);
}

static void fill_block(const struct block_bench *bench, uint8_t *block, size_t number,
                       enum bw_checksum_type type)
{
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_item *item = (void *)(header + 1);
    struct bw_disk_inode_item *inode = (void *)(block + BENCH_NODESIZE - sizeof *inode);
    *header = (struct bw_disk_header){.bytenr = bw_put64(number * BENCH_NODESIZE),
                                      .generation = bw_put64(BENCH_GENERATION),
                                      .owner = bw_put64(BW_TOP_SUBVOLUME),
                                      .item_count = bw_put32(1)};
    memcpy(header->fsid, bench->fsid, BW_UUID_SIZE);
    item->key = (struct bw_disk_key){bw_put64(number + 1), BW_INODE_ITEM, bw_put64(0)};
    item->size = bw_put32(sizeof *inode);
    item->offset = bw_put32(BENCH_NODESIZE - sizeof *header - sizeof *inode);
    inode->mode = bw_put32(S_IFREG | 0644);
    block_bench_seal(block, type);
}

struct block_bench *block_bench_create(unsigned copies, enum bw_checksum_type type)
{
    struct block_bench *bench = calloc(1, sizeof *bench);
    memcpy(bench->fsid, "file system id 1", BW_UUID_SIZE);
    bench->fake.copy_count = copies;
    bench->fake.size = (uint64_t)BENCH_BLOCKS * BENCH_NODESIZE;
    for (unsigned copy = 0; copy < copies; copy++) {
        bench->copies[copy] = calloc(BENCH_BLOCKS, BENCH_NODESIZE);
        bench->fake.copies[copy] = bench->copies[copy];
        for (size_t number = 0; number < BENCH_BLOCKS; number++)
            fill_block(bench, block_bench_bytes(bench, copy + 1, number), number, type);
    }
    return bench;
}

void block_bench_free(struct block_bench *bench)
{
    for (unsigned copy = 0; copy < FAKE_COPIES; copy++)
        free(bench->copies[copy]);
    free(bench);
}

uint8_t *block_bench_bytes(struct block_bench *bench, unsigned copy, size_t block)
{
    return bench->copies[copy - 1] + block * BENCH_NODESIZE;
}

struct bw_tree_block_expectation block_bench_expectation(size_t block)
{
    return (struct bw_tree_block_expectation){.owner = BW_TOP_SUBVOLUME,
                                              .generation = BENCH_GENERATION,
                                              .first_key = {block + 1, 1, 0},
                                              .has_first_key = true};
}

struct bw_error *block_bench_read(struct bw_xlator *top, size_t block,
                                  const struct bw_tree_block_expectation *expectation, bool keep,
                                  void *buffer)
{
    struct bw_request request = {.kind = BW_REQUEST_TREE_BLOCK,
                                 .keep = keep,
                                 .length = BENCH_NODESIZE,
                                 .address = block * BENCH_NODESIZE,
                                 .buffer = buffer,
                                 .expectation = expectation};
    bw_wind(NULL, top, &request, 1);
    return request.error;
}
