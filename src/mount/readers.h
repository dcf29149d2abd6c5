/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readers of files, which the threads of a mount share: each takes one for a request. There are as
 * many as were ever in use at the same time. */
#ifndef BW_MOUNT_READERS_H
#define BW_MOUNT_READERS_H

#include <pthread.h>

#include "base/buffer.h"
#include "btrfs-walk/stream.h"

/** What one thread reads with. */
struct bw_reader {
    struct bw_reader *next; /* that nobody uses */
    struct bw_data_reader *data;
    struct bw_extent_reader *extents;
    struct bw_buffer bytes; /**< room for an answer */
};

struct bw_readers {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct bw_reader *first;
};

/** Takes a reader, to be given back. */
struct bw_error *bw_readers_take(struct bw_readers *readers, struct bw_reader **reader);
void bw_readers_give(struct bw_readers *readers, struct bw_reader *reader);

/** Reads a range of a file, which ends at its size at most, as a whole: a part that cannot be read
 * is an error. */
struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes);

#endif
