/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/alternatives: several images of the same device as one device. Its children are the
 * images, the preferred one first. A request names the image to read, or leaves the choice to this
 * layer, which reads the first image that has the range: one that can be read and, if nothing above
 * verifies the bytes, one whose sectors are not zeros.
 *
 * Checksums are verified above: features/verify requests one image after the other, as it does with
 * mirrors. Data without checksums cannot be verified. A range of zeros may be a place that was not
 * copied, so the bytes of another image are preferred to zeros, unless a map marks the zeros as
 * read from the disk. An image that is older than the first may have the bytes of another file
 * there, so unverified data are never read from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/zeros.h"
#include "xlators/classes.h"

enum { SECTOR = 512 /* compared with zeros as a whole: the least that ddrescue leaves out */ };

enum { MAXIMUM_IMAGES = 8 };

/* Whether nothing above verifies the bytes. Pieces of verified data, and blocks that are searched,
 * are read as BW_REQUEST_RAW. */
static bool is_unverified(const struct bw_request *request)
{
    return request->kind == BW_REQUEST_DATA && !request->data;
}

/* How many of the first images may be read for a request. */
static size_t image_count(struct bw_xlator *xlator, bool is_verified)
{
    const size_t count = bw_xlator_child_count(xlator);
    if (is_verified)
        return count;
    return (size_t)bw_min(bw_xlator_option_number(xlator, "as-new"), count);
}

static uint64_t size(struct bw_xlator *xlator)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < bw_xlator_child_count(xlator); i++)
        largest = bw_max(largest, bw_xlator_size(bw_xlator_child(xlator, i)));
    return largest;
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < bw_xlator_child_count(xlator); i++) {
        struct bw_xlator *child = bw_xlator_child(xlator, i);
        if (address < bw_xlator_size(child))
            first = bw_min(first, bw_xlator_next_stored(child, address));
    }
    return first;
}

/* Reads the same range from another image. */
static struct bw_request read_other(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    const struct bw_request *request, size_t image, void *buffer)
{
    struct bw_request other = *request;
    other.mirror = 0;
    other.buffer = buffer;
    other.error = NULL;
    other.rebuilt = false;
    bw_wind(frame, bw_xlator_child(xlator, image), &other, 1);
    return other;
}

/* Zeros. */

/* Replaces sectors of zeros by sectors of the other images, until all are replaced. */
static void replace_zeros(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *request)
{
    BW_AUTO_FREE uint8_t *bytes = malloc(request->length);
    const size_t images = image_count(xlator, false);
    for (size_t i = 1; i < images; i++) {
        struct bw_request other = {.error = NULL};
        bool is_read = false;
        for (uint32_t at = 0; at < request->length && !other.error; at += SECTOR) {
            const uint32_t length = request->length - at < SECTOR ? request->length - at : SECTOR;
            uint8_t *sector = (uint8_t *)request->buffer + at;
            if (!bw_is_zeros(sector, length))
                continue;
            if (!bytes) {
                request->error = bw_error_no_memory();
                return;
            }
            if (!is_read)
                other = read_other(frame, xlator, request, i, bytes);
            is_read = true;
            if (!other.error)
                memcpy(sector, bytes + at, length);
        }
        bw_error_free(other.error);
        if (!is_read)
            return; /* all zeros are replaced */
    }
}

/* Reading. */

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    /* A map below the first image marks the zeros that were read. */
    const bool trusts_zeros =
        strcmp(bw_xlator_type(bw_xlator_child(xlator, 0)), "layout/unread") == 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        /* Requests without a choice of the image, together. */
        for (end = begin; end < count && !requests[end].mirror; end++)
            ;
        bw_wind(frame, bw_xlator_child(xlator, 0), requests + begin, end - begin);
        for (size_t i = begin; i < end; i++) {
            struct bw_request *request = &requests[i];
            /* If the first image could not be read, reads the others until one succeeds. If all
             * fail, the error of the first remains; the other errors become its causes. */
            const size_t images = image_count(xlator, !is_unverified(request));
            for (size_t k = 1; request->error && k < images; k++) {
                struct bw_request other = read_other(frame, xlator, request, k, request->buffer);
                if (other.error)
                    bw_error_add_cause(request->error, other.error);
                else
                    bw_error_free(BW_TAKE(request->error));
            }
            if (!request->error && !trusts_zeros &&
                (is_unverified(request) || request->kind == BW_REQUEST_RAW))
                replace_zeros(frame, xlator, request);
        }
        if (end > begin)
            continue;

        /* One for a certain image. */
        struct bw_request *request = &requests[end++];
        if (request->mirror > bw_xlator_child_count(xlator)) {
            request->error = bw_error_create(BW_ERROR_USAGE, "there is no image %u of %s",
                                             request->mirror, bw_xlator_name(xlator));
        } else if (request->mirror > image_count(xlator, !is_unverified(request))) {
            request->error = bw_error_create(BW_ERROR_CORRUPT,
                                             "not read from image %u, which is older: there is no "
                                             "checksum",
                                             request->mirror);
        } else {
            const struct bw_request part =
                read_other(frame, xlator, request, request->mirror - 1U, request->buffer);
            bw_request_answer(request, &part);
        }
    }
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    const size_t image = copy && copy <= bw_xlator_child_count(xlator) ? copy - 1 : 0;
    bw_wind_advise(frame, bw_xlator_child(xlator, image), ranges, count, 0);
}

static const struct bw_option options[] = {
    {"as-new", BW_OPTION_INTEGER, "8", 1, MAXIMUM_IMAGES,
     "the first images that are not older than the first one", NULL},
    {0},
};

const struct bw_xlator_class bw_cluster_alternatives_class = {
    .type = "cluster/alternatives",
    .description = "several images of one device, of which each has bytes that others lack",
    .page =
        "Two copies of a dying disk, or an old backup and the disk itself, rarely have holes in "
        "the same places. This layer joins such images of one device. Each block is read from the "
        "image in which its checksum and generation are right. Data without checksums come from "
        "the first image that has them; a map file of ddrescue, in layout/unread, lists the ranges "
        "without data. Without a map, bytes of another image replace zeros. From older images, "
        "data without checksums are never read, because other data may have been there.\n\n"
        "The option --alternatives inserts the layer above images of the same device. The image "
        "with the newest superblock is the first, and as-new counts the images with the same "
        "generation:\n\n"
        "    btrfs-walk extract -C DEST --alternatives copy1.img copy2.img\n"
        "    btrfs-walk check --data --alternatives copy1.img copy2.img",
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 2,
    .maximum_children = MAXIMUM_IMAGES,
    .options = options,
    .operations = {.read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored},
};
