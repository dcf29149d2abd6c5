/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of the files of a stream, whose `user` is the struct bw_export_entry that gets the hash.
 */
#ifndef BW_EXPORT_ENTRY_HASHES_H
#define BW_EXPORT_ENTRY_HASHES_H

#include <stdatomic.h>

#include "export/entry_queue.h"

/** Holes are hashed as zeros up to this number of bytes per file, which takes hours. Files with
 * larger holes get no hash. */
#define BW_HASH_MOST_ZEROS (UINT64_C(16) << 40)

/** How files are hashed. Call bw_hash_prepare() before. */
struct bw_entry_hashes {
    enum bw_hash_algorithm algorithm;
    void (*progress)(uint64_t bytes); /**< called for hashed bytes, by any thread */
    struct bw_hash *large;           /**< of the file whose parts are being delivered; NULL: none */
    _Atomic(struct bw_hash *) spare; /**< of a worker between two files; NULL: none */
};

/** After the stream. */
void bw_entry_hashes_free(struct bw_entry_hashes *hashes);

/** For the stream's `work`, `visit` and `finish`. If a part is unreadable, it is recorded with
 * bw_export_entry_note_bad(), and there is no hash. */
struct bw_error *bw_entry_hashes_work(struct bw_entry_hashes *hashes, struct bw_data_reader *reader,
                                      const struct bw_stream_file *file);
struct bw_error *bw_entry_hashes_visit(struct bw_entry_hashes *hashes,
                                       const struct bw_stream_file *file,
                                       const struct bw_data_part *part);
void bw_entry_hashes_finish(struct bw_entry_hashes *hashes, const struct bw_stream_file *file,
                            bool complete);

#endif
