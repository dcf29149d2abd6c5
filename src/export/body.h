/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timelines in the format of The Sleuth Kit's body file: a line for each file. */
#ifndef BW_EXPORT_BODY_H
#define BW_EXPORT_BODY_H

#include "btrfs-walk/history.h"
#include "export/archive.h"
#include "export/entry_queue.h"

/** A timeline that is being written. The caller frees `line`, which begins as zeros. */
struct bw_body {
    bw_archive_writer *write;
    void *write_context;
    /** Receives the errors that cost only the target of a symbolic link. Consumes them. */
    void (*missed)(void *context, struct bw_error *error);
    void *context; /**< passed to missed */
    struct bw_buffer line;
};

/** Writes the line of an entry; `remark` follows the name. */
struct bw_error *bw_body_write(struct bw_body *body, struct bw_fs *fs,
                               const struct bw_export_entry *item, const char *remark);

/** Writes lines of deleted files of these `types` (enum bw_walk_types; 0: all). */
struct bw_error *bw_body_write_deleted(struct bw_body *body, struct bw_fs *present,
                                       const struct bw_deleted_options *how, unsigned types);

/** Writes a line for each file of how->states whose times or size differ in the next newer
 * generation; `present` is newer than the first of them. The line has the older times and size.
 * Unreadable files have no lines. The depth of `how` has no effect. */
struct bw_error *bw_body_write_versions(struct bw_body *body, struct bw_fs *present,
                                        const struct bw_deleted_options *how, unsigned threads);

#endif
