/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hashing the files of a stream. Files up to a limit are read and hashed as a whole by one of the
 * threads; of larger ones the parts are, in order, while other threads read on.
 */
#ifndef BW_CMD_HASHING_H
#define BW_CMD_HASHING_H

#include <pthread.h>

#include "export/feed.h"

/** Files up to this size are hashed as a whole: the `work_limit` of the stream. */
enum { CMD_HASHING_LIMIT = 32 << 20 };

/** Holes are hashed as zeros, up to so many bytes of one file: what takes hours. Files with more
 * have no hash. */
#define CMD_HASHING_MOST_ZEROS (UINT64_C(16) << 40)

/** Hashes under way. */
struct cmd_hashing {
    enum bw_hash_algorithm algorithm;
    pthread_mutex_t lock;
    struct bw_hash *spare[33]; /**< one a thread, and one for the large file; under the lock */
    size_t spare_count;
    struct bw_hash *large; /**< of the file whose parts are coming; NULL: none */
};

/** Starts. */
void cmd_hashing_init(struct cmd_hashing *hashing, enum bw_hash_algorithm algorithm);
/** Frees what it holds. */
void cmd_hashing_free(struct cmd_hashing *hashing);

/** For the stream's `work`, `take` and `finish`; `user` of the file is a struct bw_feed_item, which
 * has its hash in the end. What cannot be read is noted there (cmd_export_note_bad()), and there is
 * no hash. */
struct bw_error *cmd_hashing_work(struct cmd_hashing *hashing, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file);
struct bw_error *cmd_hashing_take(struct cmd_hashing *hashing, const struct bw_stream_file *file,
                                  const struct bw_data_part *part);
void cmd_hashing_finish(struct cmd_hashing *hashing, const struct bw_stream_file *file);

#endif
