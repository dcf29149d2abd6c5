/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of files that turn out to be bad: why, and how little of them it is. */
#ifndef BW_DATA_BAD_PART_H
#define BW_DATA_BAD_PART_H

#include "btrfs-walk/xlator.h"
#include "data/block.h"
#include "data/extents.h"

struct bw_fs;

/** Says of which file and which offset in it an error is; takes and returns it. */
struct bw_error *bw_data_name_error(struct bw_error *error, const struct bw_data_file *file,
                                    uint64_t offset) __attribute__((returns_nonnull));

/** Turns the part at `at` of a block, which is of `file`, into a bad one; takes the error. */
void bw_data_spoil_part(struct bw_data_block *block, size_t at, const struct bw_data_file *file,
                        struct bw_error *error);

/**
 * Does with the part at `at` of a block, which is of `file`, what is to be done after the request
 * for its bytes has failed: asks again sector by sector, if that makes sense, and puts parts for
 * the sectors in its place. Takes the request's error. Fails only for want of memory.
 */
struct bw_error *bw_data_divide_part(struct bw_fs *fs, struct bw_request *failed,
                                     struct bw_data_block *block, size_t at,
                                     const struct bw_data_file *file);

/**
 * To be called for every request for data of `file` that was answered: warns, once a file, of bytes
 * that were computed from parity and that no checksum confirms. They are wrong if the parity is, as
 * it may be after a crash, or after a device was replaced.
 */
void bw_data_check_rebuilt(struct bw_fs *fs, const struct bw_data_file *file,
                           const struct bw_request *request);

#endif
