/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What features/verify knows, and its list of the copies of a range that were no good; used by
 * verify.c for tree blocks and by verify_data.c for file data. */
#ifndef BW_XLATORS_FEATURES_VERIFY_COPIES_H
#define BW_XLATORS_FEATURES_VERIFY_COPIES_H

#include <pthread.h>

#include "base/buffer.h"
#include "base/map.h"
#include "format/checksum.h"
#include "format/disk.h"
#include "btrfs-walk/xlator.h"

/** Private state of the layer. */
struct bw_verify {
    enum bw_checksum_type checksum;
    uint8_t (*fsids)[BW_UUID_SIZE];
    size_t fsid_count;
    pthread_mutex_t lock;
    struct bw_map reported; /**< addresses whose repair was reported already; under the lock */
};

/** The copies of a range that were no good, in the order they were tried. All zeros but `code` is
 * none. */
struct bw_bad_copies {
    struct bw_buffer text;
    struct bw_error *reasons; /**< the first; linked by `next` */
    struct bw_error *last;    /**< the last of them */
    enum bw_error_code code;  /**< of the last reason */
    bool good_again;          /**< it was good when it was read a second time */
};

/** Adds a copy (counted from 1) to the list, with where it lies; takes the reason. */
void bw_note_bad_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_request *request, unsigned copy, struct bw_error *reason,
                      struct bw_bad_copies *bad);

/** Makes of the list the error that says it all or, with the copy `used` in their stead, the note.
 * The bad copies become its causes; the list is empty then. */
struct bw_error *bw_explain_copies(struct bw_bad_copies *bad, const struct bw_request *request,
                                   unsigned used);

/** How many copies a range has, where it begins; 1 if that cannot be told. `length`, if not NULL,
 * gets how far they lie in one piece. */
unsigned bw_copy_count(const struct bw_frame *frame, struct bw_xlator *xlator,
                       const struct bw_request *request, uint32_t *length);

/** Reports a repair, unless that of the same address was; takes the note. */
void bw_verify_note(struct bw_xlator *xlator, uint64_t address, struct bw_error *note);

/**
 * Checks a data request that was read, against its checksums if it has any. Sectors that are bad or
 * could not be read are replaced from other copies. Sets request->error if some stay bad; its code
 * is BW_ERROR_MISSING_DEVICE only if all copies of the whole request are on missing devices.
 */
void bw_verify_data(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *request);

#endif
