/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of features/verify, and lists of bad copies: for verify.c, which checks tree blocks,
 * and verify_data.c, which checks file data. */
#ifndef BW_XLATORS_FEATURES_VERIFY_COPIES_H
#define BW_XLATORS_FEATURES_VERIFY_COPIES_H

#include <pthread.h>

#include "base/buffer.h"
#include "base/map.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"
#include "btrfs-walk/xlator.h"

/** Private state of the layer. */
struct bw_verify {
    enum bw_checksum_type checksum;
    bool dumped; /**< as in bw_checksum_accepts_block() */
    uint8_t (*fsids)[BW_UUID_SIZE];
    size_t fsid_count;
    pthread_mutex_t lock;
    struct bw_map reported; /**< addresses whose repair was reported already; under the lock */
};

/** The bad copies of a range, in the order they were tried. Begins as zeros, except `code`. */
struct bw_bad_copies {
    struct bw_buffer text;
    struct bw_error *reasons; /**< the first; linked by `next` */
    struct bw_error *last;    /**< the last of them */
    enum bw_error_code code;  /**< of the last reason */
    bool good_again;          /**< the range was good when it was read a second time */
};

/** Adds a copy (counted from 1) to the list, with its place; takes the reason. */
void bw_note_bad_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_request *request, unsigned copy, struct bw_error *reason,
                      struct bw_bad_copies *bad);

/** Makes one error from the list or, if copy `used` replaced the bad ones (0: none did), a note.
 * The reasons become its causes, and the list is emptied. */
struct bw_error *bw_explain_copies(struct bw_bad_copies *bad, const struct bw_request *request,
                                   unsigned used);

/** The number of copies at the beginning of a range; 1 if it is unknown. `length`, unless it is
 * NULL, gets the length up to which each copy is in one piece. */
unsigned bw_copy_count(const struct bw_frame *frame, struct bw_xlator *xlator,
                       const struct bw_request *request, uint32_t *length);

/** Reports a repair, once for each address; takes the note. */
void bw_verify_note(struct bw_xlator *xlator, uint64_t address, struct bw_error *note);

/**
 * Checks a data request that was read, against its checksums if it has any. Sectors that are bad or
 * could not be read are replaced from other copies. Sets request->error if some stay bad; its code
 * is BW_ERROR_MISSING_DEVICE only if all copies of the whole request are on missing devices.
 */
void bw_verify_data(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *request);

#endif
