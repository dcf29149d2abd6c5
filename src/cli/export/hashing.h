/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of the files of a stream, for all commands that compute them (sum, tar, check). */
#ifndef BW_CLI_EXPORT_HASHING_H
#define BW_CLI_EXPORT_HASHING_H

#include <pthread.h>

#include "cli/export/export.h"

/** Files up to this size are hashed in one piece: the `work_limit` of the stream. */
enum { CMD_HASHING_LIMIT = 32 << 20 };

/** Holes are hashed as zeros up to this number of bytes per file, which takes hours. Files with
 * larger holes get no hash. */
#define CMD_HASHING_MOST_ZEROS (UINT64_C(16) << 40)

/** The hash objects of a command. */
struct cmd_hashing {
    enum bw_hash_algorithm algorithm;
    pthread_mutex_t lock;
    struct bw_hash *spare[33]; /**< one per thread, and one for a large file; protected by `lock` */
    size_t spare_count;
    struct bw_hash *large; /**< the hash of the file whose parts are being delivered, or NULL */
};

/** Initializes; there are no hash objects yet. */
void cmd_hashing_init(struct cmd_hashing *hashing, enum bw_hash_algorithm algorithm);
/** Frees all hash objects. */
void cmd_hashing_free(struct cmd_hashing *hashing);

/** For the stream's `work`, `visit` and `finish`; `user` of the file is a struct bw_export_entry,
 * which receives the hash. If a part is unreadable, it is recorded with cmd_export_note_bad(), and
 * there is no hash. */
struct bw_error *cmd_hashing_work(struct cmd_hashing *hashing, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file);
struct bw_error *cmd_hashing_visit(struct cmd_hashing *hashing, const struct bw_stream_file *file,
                                   const struct bw_data_part *part);
void cmd_hashing_finish(struct cmd_hashing *hashing, const struct bw_stream_file *file);

#endif
