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

enum {
    REQUESTS = BW_MAX_COMPRESSED_EXTENT / BW_DATA_REQUEST + 1,
    MOST_ATTEMPTS = 80, /* more than three requests need with four mirrors */
};

/* The mirrors of the requests of an extent. */
struct mirrors {
    struct bw_fs *fs;
    struct bw_request requests[REQUESTS];
    unsigned copies[REQUESTS]; /* number of mirrors of each request */
    unsigned count;            /* of the requests */
    unsigned most;             /* the largest number of mirrors */
};

static void count_mirrors(struct mirrors *mirrors, struct bw_fs *fs,
                          const struct bw_stored_extent *extent)
{
    *mirrors = (struct mirrors){.fs = fs, .count = extent->request_count, .most = 1};
    for (unsigned i = 0; i < mirrors->count; i++) {
        const struct bw_request *request = &extent->requests[i];
        struct bw_map_reply reply;
        BW_AUTO_ERROR struct bw_error *unknown =
            bw_wind_map(NULL, fs->reader.top, request->address, request->length, 1, &reply);
        mirrors->requests[i] = *request;
        if (fs->ignored_checksums & BW_CHECKSUMS_DATA)
            mirrors->requests[i].data = NULL;
        mirrors->copies[i] = unknown ? 1 : reply.copies;
        if (mirrors->copies[i] > mirrors->most)
            mirrors->most = mirrors->copies[i];
    }
}

/* The mirror of a request in an attempt, counted from 0; 0 after the last attempt. */
static unsigned mirror_of(const struct mirrors *mirrors, unsigned request, unsigned attempt)
{
    unsigned combinations = 1;
    for (unsigned i = 0; i < mirrors->count; i++)
        if (combinations < MOST_ATTEMPTS)
            combinations *= mirrors->copies[i];
    if (attempt < mirrors->most)
        return attempt < mirrors->copies[request] ? attempt + 1 : mirrors->copies[request];
    attempt -= mirrors->most;
    if (mirrors->count == 1 || attempt >= combinations || attempt >= MOST_ATTEMPTS)
        return 0;
    for (unsigned i = 0; i < request; i++)
        attempt /= mirrors->copies[i];
    return attempt % mirrors->copies[request] + 1;
}

/* Reads the mirrors of an attempt that the attempt before did not read. Returns the error of a
 * mirror that cannot be read, or does not match its checksums. */
static struct bw_error *read_mirrors(struct mirrors *mirrors, unsigned attempt)
{
    struct bw_error *error = NULL;
    for (unsigned i = 0; i < mirrors->count; i++) {
        struct bw_request *request = &mirrors->requests[i];
        const unsigned copy = mirror_of(mirrors, i, attempt);
        if (attempt == 0 || copy != request->copy) {
            bw_error_free(BW_TAKE(request->error));
            request->copy = (uint8_t)copy;
            request->rebuilt = request->corrected = false;
            bw_wind(NULL, mirrors->fs->reader.top, request, 1);
        }
        if (request->error && !error)
            error = bw_error_copy(request->error);
    }
    return error;
}

/* Adds to an error the location of the mirror that it is about. */
static struct bw_error *name_mirror(const struct mirrors *mirrors, unsigned copy,
                                    struct bw_error *error)
{
    const struct bw_request *request = &mirrors->requests[0];
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_wind_map(NULL, mirrors->fs->reader.top, request->address, request->length, copy, &reply);
    if (unknown)
        return error;
    if (reply.location.rebuilt)
        return bw_error_prefix(error, "copy %u (rebuilt from parity)", copy);
    return bw_error_prefix(error, "copy %u on device %" PRIu64 " at %" PRIu64, copy,
                           reply.location.devid, reply.location.offset);
}

/* Reports that mirrors were replaced; consumes their error. */
static void report_replaced(const struct mirrors *mirrors, unsigned first_copy, unsigned attempt,
                            struct bw_error *first)
{
    const uint64_t logical = mirrors->requests[0].address;
    const unsigned used = attempt + 1;
    if (attempt >= mirrors->most)
        first =
            bw_error_prefix(first, "extent at %" PRIu64 ": used parts of several copies", logical);
    else if (used == first_copy)
        first = bw_error_prefix(first, "extent at %" PRIu64 ": good only when it was read again",
                                logical);
    else
        first = bw_error_prefix(first, "extent at %" PRIu64 ": used copy %u instead of a bad one",
                                logical, used);
    bw_fs_note_once(mirrors->fs, first);
}

struct bw_error *bw_data_try_mirrors(struct bw_fs *fs, struct bw_decompressor *decompressor,
                                     const struct bw_stored_extent *extent, uint8_t *output,
                                     size_t length, struct bw_error *first)
{
    struct mirrors mirrors;
    if (first->code == BW_ERROR_NO_MEMORY)
        return first;
    count_mirrors(&mirrors, fs, extent);
    const unsigned chosen = extent->requests[0].copy;
    unsigned first_copy = chosen ? chosen : extent->requests[0].copy_read;
    if (!first_copy)
        first_copy = 1;
    first = name_mirror(&mirrors, first_copy, first);
    if (mirrors.most == 1 || chosen)
        return bw_error_prefix(first, "extent at %" PRIu64, extent->logical);

    struct bw_error *failure = NULL;
    bool good = false;
    for (unsigned attempt = 0; !good && !failure && mirror_of(&mirrors, 0, attempt); attempt++) {
        struct bw_error *error = read_mirrors(&mirrors, attempt);
        if (!error)
            error = bw_decompress(decompressor, extent->compression, extent->bytes, extent->length,
                                  output, length);
        good = !error;
        if (good)
            report_replaced(&mirrors, first_copy, attempt, BW_TAKE(first));
        else if (error->code == BW_ERROR_NO_MEMORY)
            failure = error;
        else if (attempt < mirrors.most)
            bw_error_add_cause(first, name_mirror(&mirrors, attempt + 1, error));
        else
            bw_error_free(error);
    }
    for (unsigned i = 0; i < mirrors.count; i++) {
        extent->requests[i].rebuilt = mirrors.requests[i].rebuilt;
        extent->requests[i].unverified |=
            good && extent->requests[i].data && !mirrors.requests[i].data;
        extent->requests[i].corrected = mirrors.requests[i].corrected;
        bw_error_free(mirrors.requests[i].error);
    }
    if (!good && !failure)
        return bw_error_prefix(first,
                               "extent at %" PRIu64 ": none of its %u copies can be decompressed",
                               extent->logical, mirrors.most);
    bw_error_free(first);
    return failure;
}
