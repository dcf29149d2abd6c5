/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ranges of files: the bytes as stored through the graph, checked against the checksum
 * tree, decompressed, and put in file order, with holes as holes and with what cannot be read as
 * bad ranges.
 *
 * One reader a worker thread. bw_data_read() hands out a range bit by bit. bw_data_fill() is for
 * those who want to hold what was read for a while: it fills a block of memory of theirs.
 */
#ifndef BW_DATA_READER_H
#define BW_DATA_READER_H

#include "data/block.h"
#include "data/extents.h"

struct bw_fs;

/** Makes a reader. The file system must outlive it. */
struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **result);
/** Frees it; NULL is allowed. */
void bw_data_reader_destroy(struct bw_data_reader *reader);

/**
 * Adds to a block what can be read of a range until the block is full: parts in file order, without
 * a gap, cut at the file's size. `end` gets how far it came; that is the end of the range if no
 * more than BW_DATA_BLOCK bytes of it are neither hole nor bad, and the block was empty. Fails only
 * for want of memory.
 */
struct bw_error *bw_data_fill(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, struct bw_data_block *block,
                              uint64_t *end);

#endif
