/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Repairs: a plan of changes, each with its proof; a trial of the chosen ones; and the changed
 * ranges of the images, from which an overlay can be written. No function writes to an image.
 *
 * A plan is made from the findings of a check. Blocks are changed where they are: the address and
 * the generation stay, so nothing else has to change with them. Only a new extent tree gets other
 * places.
 */
#ifndef BTRFS_WALK_REPAIR_H
#define BTRFS_WALK_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/check.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/fs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The proof of a change. */
enum bw_repair_class {
    BW_REPAIR_IDENTICAL,   /**< the bytes of another copy or of parity, verified */
    BW_REPAIR_CHECKSUM,    /**< the stored checksum proves them: one bit was flipped */
    BW_REPAIR_DERIVED,     /**< computed from verified structures, or marked as invalid because a
                                mount rebuilds it */
    BW_REPAIR_ROLLED_BACK, /**< an older generation; only chosen by bw_repair_choose() */
    BW_REPAIR_LOSS,        /**< something is discarded; only chosen by bw_repair_choose() */
    BW_REPAIR_RESEALED,    /**< a tree block that fails nothing but its checksum gets a new one:
                                nothing proves its bytes; only chosen by bw_repair_choose() */
    BW_REPAIR_CLASSES,
};

/** "identical", "checksum", "derived", "rolled-back", "loss" or "resealed". */
const char *bw_repair_class_name(enum bw_repair_class class_number);

/** How to plan. All zeros but the size: everything but data. */
struct bw_repair_options {
    size_t struct_size; /**< sizeof(struct bw_repair_options) */
    bool data;          /**< also read all mirrors of data, as bw_check_options.data */
    unsigned threads;   /**< as bw_check_options.threads */
    /** As bw_check_options.progress; may be NULL. */
    bool (*progress)(void *context, const struct bw_check_progress *progress);
    void *context;
    bool verify; /**< as `data`; and the trial reads all files, before and after the changes */
    /** For each image, NULL or the format of a container file that a helper program reads, "qcow2":
     * an overlay of its contents is possible, whose backing file has this format. May be NULL. */
    const char *const *containers;
    uint64_t most_findings; /**< more are refused; 0: 1 Mi */
    uint64_t most_bytes;    /**< new bytes of all changes; others are left out; 0: 1 GiB */
};

/** A plan. One thread at a time may use it. */
struct bw_repair;

struct bw_repairinfo;

/**
 * Checks a file system, which was opened with the options `how` and without replaying its log tree
 * (BW_LOG_IGNORE), and plans. The caller closes `*repair`, before the file system and the things
 * that `how` points to.
 *
 * Errors: those of bw_check(); BW_ERROR_USAGE if the options do not name the images themselves, or
 * replay the log tree; BW_ERROR_UNSUPPORTED for file systems and images that cannot be repaired in
 * place: zoned devices, the raid stripe tree, the remap tree, seed devices, metadumps and send
 * streams.
 */
struct bw_error *bw_repair_open(struct bw_fs *fs, const struct bw_fs_options *how,
                                const struct bw_repair_options *options, struct bw_repair **repair);

/** Closes it; NULL is allowed. */
void bw_repair_close(struct bw_repair *repair);

/** The number of changes in the plan. */
size_t bw_repair_count(const struct bw_repair *repair);

/** Change number `index`, a record of btrfs-walk/records.h that is valid as long as the plan. */
void bw_repair_change(const struct bw_repair *repair, size_t index, struct bw_repairinfo *row);

/** Chooses a change that is not settled, or leaves it out, and forgets how it failed; with it, all
 * changes that are right only together with it. At first, all are chosen except those of
 * BW_REPAIR_ROLLED_BACK, BW_REPAIR_LOSS and BW_REPAIR_RESEALED. A change cannot be chosen if it
 * needs others that the plan left out for lack of memory. */
void bw_repair_choose(struct bw_repair *repair, size_t index, bool chosen);

/** Findings (not notes) of the check that no change of the plan is about. */
uint64_t bw_repair_left(const struct bw_repair *repair);

/** Names these findings: each kind with its first place and the number of the others, the first
 * kinds only, as a phrase for a message. `all`: also those for which there is a change. To be
 * freed; NULL if memory runs out. */
char *bw_repair_name_left(const struct bw_repair *repair, bool all);

/** The number of faults that the settled changes leave: errors of the check, and warnings for which
 * there is a change that was not made. 0: `check` of the result finds no error. */
uint64_t bw_repair_remaining(const struct bw_repair *repair);

/** Prepares overlays: bw_repair_try() will also map the changes down to the images, for
 * bw_repair_next(). BW_ERROR_UNSUPPORTED if the bytes of a device are not stored unchanged and once
 * in images: it is encrypted or compressed, on a server, or mirrored. */
struct bw_error *bw_repair_use_overlays(struct bw_repair *repair);

/**
 * Tries the chosen changes: opens the file system with them in memory and checks it. If that finds
 * something new, or something that should be gone, or if a file with items in a changed block is
 * less readable than before, the changes must not be used: the error
 * (BW_ERROR_CORRUPT) names the changes that fail, and the reason. These have the reason in
 * bw_repairinfo.failure, and are no longer chosen. `left` is set to the number of findings, notes
 * not counted, that remain.
 */
struct bw_error *bw_repair_try(struct bw_repair *repair, uint64_t *left);

/** The same, but changes that fail are no error: the rest is tried without them, until it is good.
 * Several trials may be necessary to find one change. */
struct bw_error *bw_repair_try_each(struct bw_repair *repair, uint64_t *left);

/**
 * Plans again, on the repaired state, after bw_repair_try() or bw_repair_try_each() without an
 * error: damage below a tree block is seen only once that can be read. The changes so far are
 * settled. `is_new` is set if there are new ones, with the next numbers: choose and try them in the
 * same way. The trial of a plan that brings back tree blocks with others below them accepts new
 * findings in these.
 */
struct bw_error *bw_repair_plan_again(struct bw_repair *repair, bool *is_new);

/** The changed ranges of the devices after bw_repair_try() or
 * bw_repair_try_each() without an error, for bw_fs_options.patches; they belong to the plan. The
 * options must be those of bw_repair_open(), without a search (`scan`). */
const struct bw_patch *const *bw_repair_patches(const struct bw_repair *repair, size_t *count);

/** A range of an image with changed bytes.
 */
struct bw_repair_range {
    uint64_t offset;      /**< in the file, a multiple of `unit` */
    size_t length;        /**< at most `unit`: less only at the end of the file */
    const uint8_t *bytes; /**< contents with the changes; valid until the next call */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** The next part of an image, in units of so many bytes (a power of two, 4 KiB to 1 MiB), with a
 * changed byte from `offset` on; `range->length` is 0 after the last one. Bytes that are not
 * changed are read from the image; those that cannot be read are zeros. */
struct bw_error *bw_repair_next(struct bw_repair *repair, size_t image, uint64_t offset,
                                size_t unit, struct bw_repair_range *range);

/** Bytes of the units of an image with a changed byte: about the size of its overlay. */
uint64_t bw_repair_changed(const struct bw_repair *repair, size_t image, size_t unit);

/** Size of the file of an image, in bytes. */
uint64_t bw_repair_image_size(const struct bw_repair *repair, size_t image);

/** The device in an image; 0: none that belongs to the file system. */
uint64_t bw_repair_image_devid(const struct bw_repair *repair, size_t image);

#ifdef __cplusplus
}
#endif
#endif
