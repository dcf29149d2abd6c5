/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results in batches, for programs that want a loop instead of a callback. A thread runs bw_walk(),
 * bw_check() or another function with many results, and collects them until the caller gets them
 * with bw_batches_next():
 *
 *     struct bw_batches *batches;
 *     struct bw_batch *batch;
 *     struct bw_walk_options options = {.struct_size = sizeof options, .visit_inodes = true};
 *     struct bw_error *error = bw_batches_open_walk(fs, &options, NULL, &batches);
 *     if (error)
 *         return error;
 *     while (!(error = bw_batches_next(batches, &batch)) && batch) {
 *         for (size_t i = 0; i < batch->count; i++)
 *             print(&batch->entries[i]);
 *         bw_batch_close(batch);
 *     }
 *     bw_error_free(bw_batches_close(batches));
 *
 * The results come in the order in which the function would pass them to a callback. A batch
 * contains the results since the previous batch: at most 1024 of them, or about 256 KiB. The
 * function waits while a batch is full, so memory does not depend on the number of results. A break
 * leaves the loop: bw_batches_close() ends the function early.
 *
 * Several threads may get batches of one function; each batch goes to one of them.
 */
#ifndef BTRFS_WALK_BATCHES_H
#define BTRFS_WALK_BATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/check.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

/** A function that runs, and its results on their way. */
struct bw_batches;

/**
 * Results. The batch owns everything that they point to, except for subvolumes, which belong to the
 * file system. It stays valid until bw_batch_close(), also after the end of the function. Only the
 * member for the kind of results is set.
 */
struct bw_batch {
    size_t count;                          /**< number of results; 0 for `text` */
    const struct bw_entry *entries;        /**< of a walk without rows; a NUL follows each path */
    const struct bw_findinginfo *findings; /**< of a check: records */
    const struct bw_owner *owners;
    const struct bw_difference *differences;
    /** `fs` is NULL, and place.subvolume is the current subvolume with the same id, or NULL. */
    const struct bw_version *versions;
    const char *text; /**< whole rows of a walk with rows, or the next bytes of a send stream */
    size_t text_length;
    size_t reserved[4]; /**< zeros: room for more members */
};

/*
 * Starting. Each function takes the arguments of the function that it runs in a thread; leave the
 * callbacks for results (`visit`, `consume`, `write`) NULL. Options and sides are copied;
 * everything that they point to, `summary` and the file systems must stay valid until
 * bw_batches_close(). `summary` is complete when bw_batches_next() has returned the end, or an
 * error. Other callbacks (`progress`, `proceed`) are called in other threads.
 *
 * Errors: BW_ERROR_USAGE if a callback for results is set, or struct_size is wrong; BW_ERROR_SYSTEM
 * if no thread can be started; BW_ERROR_NO_MEMORY. Errors of the function come from
 * bw_batches_next().
 */

/** Starts bw_walk(): entries, or text if options->rows is set. */
struct bw_error *bw_batches_open_walk(struct bw_fs *fs, const struct bw_walk_options *options,
                                      struct bw_walk_summary *summary, struct bw_batches **batches);

/** Starts bw_check(), or bw_check_images() if `why` is not NULL. `*summary` is set to NULL now, and
 * to the summary at the end; the caller frees it after bw_batches_close(). */
struct bw_error *bw_batches_open_check(struct bw_fs *fs, const struct bw_error *why,
                                       const struct bw_check_options *options,
                                       struct bw_check_summary **summary,
                                       struct bw_batches **batches);

/** Starts bw_owners_find(). */
struct bw_error *bw_batches_open_owners(struct bw_fs *fs, const struct bw_owner_options *options,
                                        struct bw_batches **batches);

/** Starts bw_diff(). */
struct bw_error *bw_batches_open_diff(const struct bw_diff_side *before,
                                      const struct bw_diff_side *after,
                                      const struct bw_diff_options *options,
                                      struct bw_diff_summary *summary, struct bw_batches **batches);

/** Starts bw_versions(). */
struct bw_error *bw_batches_open_versions(struct bw_fs *present,
                                          const struct bw_versions_options *options,
                                          struct bw_batches **batches);

/** Starts bw_send(). */
struct bw_error *bw_batches_open_send(const struct bw_send_side *side,
                                      const struct bw_send_options *options,
                                      struct bw_send_summary *summary, struct bw_batches **batches);

/**
 * Waits for results, and gets them: the caller closes `*batch`. At the end, and after
 * bw_batches_stop(), `*batch` is NULL. An error that has ended the function is returned once, after
 * all results, and `*batch` is NULL.
 */
struct bw_error *bw_batches_next(struct bw_batches *batches, struct bw_batch **batch);

/** Waits for results, or for the end of the function, but only for this time. Returns whether there
 * are any, or it has ended: then bw_batches_next() does not wait. */
bool bw_batches_wait(struct bw_batches *batches, unsigned milliseconds);

/**
 * Asks the function to end early, and discards the results that no caller has received. Does not
 * wait; any thread may call it. A walk or a check ends soon, other functions at their next result.
 */
void bw_batches_stop(struct bw_batches *batches);

/** Ends the function early if it still runs, and frees everything except batches. No other thread
 * may use `batches` any more; NULL is allowed. Returns the error that has ended the function,
 * unless bw_batches_next() has returned it. Stopping it is not an error. */
struct bw_error *bw_batches_close(struct bw_batches *batches);

/** Frees the results; NULL is allowed. */
void bw_batch_close(struct bw_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
