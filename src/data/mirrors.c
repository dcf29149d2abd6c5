/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed data that do not decompress are a bad mirror, like data that do not match their
 * checksums. features/verify replaces the latter, but cannot recognize the former: it gets the
 * requests of an extent one by one, and only the code here can find the beginning and the end of a
 * stream.
 *
 * An extent has up to three requests, which may lie in different stripes, and then have different
 * mirrors. First all requests read the same mirror, then all combinations are tried, up to a limit.
 * A request for a certain mirror is still verified if its checksums are known, but not repaired.
 * If the caller has chosen a mirror, no other one replaces it.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "data/fetch.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "ondisk/compression.h"
#include "xlators/classes.h"

enum {
    REQUESTS = BW_MAX_COMPRESSED_EXTENT / BW_DATA_REQUEST + 1,
    MOST_ATTEMPTS = 80, /* more than three requests need with four mirrors */
};

/* The mirror of a request in an attempt, counted from 1; 0 after the last attempt. `copies`: the
 * number of mirrors of each request; `most`: the greatest of them. */
static unsigned mirror_of(const unsigned *copies, unsigned count, unsigned most, unsigned request,
                          unsigned attempt)
{
    unsigned combinations = 1;
    for (unsigned i = 0; i < count; i++)
        if (combinations < MOST_ATTEMPTS)
            combinations *= copies[i];
    if (attempt < most)
        return attempt < copies[request] ? attempt + 1 : copies[request];
    attempt -= most;
    if (count == 1 || attempt >= combinations || attempt >= MOST_ATTEMPTS)
        return 0;
    for (unsigned i = 0; i < request; i++)
        attempt /= copies[i];
    return attempt % copies[request] + 1;
}

/* Reports that mirrors were replaced in an attempt; consumes the error of the first mirror. */
static void report_replaced(struct bw_fs *fs, uint64_t logical, unsigned first_copy, unsigned used,
                            bool is_combined, struct bw_error *first)
{
    if (is_combined)
        first =
            bw_error_prefix(first, "extent at %" PRIu64 ": used parts of several mirrors", logical);
    else if (used == first_copy)
        first = bw_error_prefix(first, "extent at %" PRIu64 ": good only when it was read again",
                                logical);
    else
        first = bw_error_prefix(first, "extent at %" PRIu64 ": used mirror %u instead of a bad one",
                                logical, used);
    bw_fs_report_once(fs, BW_NOTE, first);
}

struct bw_error *bw_data_try_mirrors(struct bw_fs *fs, struct bw_decompressor *decompressor,
                                     const struct bw_stored_extent *extent, uint8_t *output,
                                     size_t length, struct bw_error *first)
{
    struct bw_request requests[REQUESTS];
    unsigned copies[REQUESTS];
    const unsigned count = extent->request_count;
    unsigned most = 1;
    if (first->code == BW_ERROR_NO_MEMORY)
        return first;
    for (unsigned i = 0; i < count; i++) {
        struct bw_map_reply reply;
        requests[i] = extent->requests[i];
        BW_AUTO_ERROR struct bw_error *unknown =
            bw_wind_map(NULL, fs->reader.top, requests[i].address, requests[i].length, 1, &reply);
        copies[i] = unknown ? 1 : reply.copies;
        if (copies[i] > most)
            most = copies[i];
        if (fs->ignored_checksums & BW_CHECKSUMS_DATA)
            requests[i].data = NULL;
    }

    const unsigned chosen = extent->requests[0].mirror;
    unsigned first_copy = chosen ? chosen : extent->requests[0].mirror_read;
    if (!first_copy)
        first_copy = 1;
    first = bw_verify_name_mirror(NULL, fs->reader.top, extent->requests, first_copy, first);
    if (most == 1 || chosen)
        return bw_error_prefix(first, "extent at %" PRIu64, extent->logical);

    struct bw_error *failure = NULL;
    bool good = false;
    for (unsigned attempt = 0; !good && !failure && mirror_of(copies, count, most, 0, attempt);
         attempt++) {
        /* Read the mirrors of this attempt that the attempt before did not read. Any of them may
         * be unreadable, or not match its checksums. */
        struct bw_error *error = NULL;
        for (unsigned i = 0; i < count; i++) {
            const unsigned copy = mirror_of(copies, count, most, i, attempt);
            if (attempt == 0 || copy != requests[i].mirror) {
                bw_error_free(BW_TAKE(requests[i].error));
                requests[i].mirror = (uint8_t)copy;
                requests[i].rebuilt = requests[i].corrected = false;
                bw_wind(NULL, fs->reader.top, &requests[i], 1);
            }
            if (requests[i].error && !error)
                error = bw_error_copy(requests[i].error);
        }
        if (!error)
            error = bw_decompress(decompressor, extent->compression, false, extent->bytes,
                                  extent->length, output, length);
        good = !error;
        if (good)
            report_replaced(fs, requests[0].address, first_copy, attempt + 1, attempt >= most,
                            BW_TAKE(first));
        else if (error->code == BW_ERROR_NO_MEMORY)
            failure = error;
        else if (attempt < most)
            bw_error_add_cause(first, bw_verify_name_mirror(NULL, fs->reader.top, extent->requests,
                                                            attempt + 1, error));
        else
            bw_error_free(error);
    }

    for (unsigned i = 0; i < count; i++) {
        struct bw_request *given = &extent->requests[i];
        given->rebuilt = requests[i].rebuilt;
        given->unverified |= good && given->data && !requests[i].data;
        given->corrected = requests[i].corrected;
        bw_error_free(requests[i].error);
    }
    if (!good && !failure)
        return bw_error_prefix(first,
                               "extent at %" PRIu64 ": none of its %u mirrors can be decompressed",
                               extent->logical, most);
    bw_error_free(first);
    return failure;
}
