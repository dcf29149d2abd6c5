/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies the commands of streams to trees in memory. */
#ifndef BW_STREAM_APPLY_H
#define BW_STREAM_APPLY_H

#include "base/vector.h"
#include "fs/fs.h"
#include "stream/stream_reader.h"
#include "stream/stream_tree.h"

/** A subvolume that was read from a stream. */
struct bw_received {
    struct bw_tree tree;
    uint8_t uuid[BW_UUID_SIZE];
    uint8_t parent_uuid[BW_UUID_SIZE]; /**< zeros: it was sent without a parent */
    uint64_t transid;
    char *name; /**< valid in a directory, but other subvolumes may have the same */
    size_t image;
    bool is_incomplete; /**< the stream ended early, or a command could not be applied */
};

BW_VECTOR(bw_received_list, struct bw_received);

/** All subvolumes. */
struct bw_received_set {
    struct bw_fs *fs;
    struct bw_received_list received;
    struct bw_key_map by_uuid; /**< hash of the UUID to the index */
    uint64_t budget;           /**< as in struct bw_stream_tree, for all of them */
    uint32_t lzo_sectorsize;   /**< of compressed data; 0 until the first such data */
};

/** The subvolume with a UUID; NULL if it was not read yet. */
const struct bw_received *bw_received_find(const struct bw_received_set *set,
                                           const uint8_t uuid[BW_UUID_SIZE]);

/** The result of applying a stream. */
struct bw_apply_result {
    /** The stream needs a subvolume that was not read yet, with the UUID `missing`. The set is
     * unchanged. */
    bool is_waiting;
    uint8_t missing[BW_UUID_SIZE];
};

/** Applies all streams in an image, whose data have the logical address `base`. If a command is
 * wrong, the rest of its subvolume is not read; that is reported as damage. Fails if memory runs
 * out, or if there is no subvolume. */
struct bw_error *bw_apply_stream(struct bw_received_set *set, size_t image, uint64_t base,
                                 struct bw_apply_result *result);

void bw_received_free(struct bw_received_set *set);

#endif
