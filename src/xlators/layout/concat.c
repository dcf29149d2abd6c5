/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/concat: joins several devices into one: the bytes of each follow the bytes of the previous
 * device. Its children are the storage layers of an image that was split into parts.
 */
#include <stdlib.h>

#include "base/search.h"
#include "xlators/classes.h"
#include "xlators/layout/pieces.h"

struct concat {
    size_t count;
    uint64_t *ends; /* end of each part; ascending */
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct concat *concat = bw_xlator_private(xlator);
    uint64_t end = 0;
    concat->ends = calloc(bw_xlator_child_count(xlator), sizeof *concat->ends);
    if (!concat->ends)
        return bw_error_no_memory();
    concat->count = bw_xlator_child_count(xlator);
    for (size_t i = 0; i < concat->count; i++) {
        uint64_t length = bw_xlator_size(bw_xlator_child(xlator, i));
        if (length > INT64_MAX - end)
            return bw_error_create(BW_ERROR_USAGE, "the parts have more than 2^63 bytes together");
        concat->ends[i] = end += length;
    }
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct concat *concat = bw_xlator_private(xlator);
    free(concat->ends);
}

static uint64_t size(struct bw_xlator *xlator)
{
    const struct concat *concat = bw_xlator_private(xlator);
    return concat->ends[concat->count - 1];
}

/* The part that contains an address, which must be less than the size. */
static size_t find_part(const struct concat *concat, uint64_t address)
{
    return BW_FIRST_INDEX(i, concat->count - 1, concat->ends[i] > address);
}

static uint64_t begin_of(const struct concat *concat, size_t part)
{
    return part ? concat->ends[part - 1] : 0;
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct concat *concat = bw_xlator_private(xlator);
    uint64_t next = UINT64_MAX;
    while (address < size(xlator) && next == UINT64_MAX) {
        const size_t part = find_part(concat, address);
        const uint64_t begin = begin_of(concat, part);
        next = bw_xlator_next_stored(bw_xlator_child(xlator, part), address - begin);
        next = next < concat->ends[part] - begin ? begin + next : UINT64_MAX;
        address = concat->ends[part];
    }
    return next;
}

/* Reads a range in several parts. Its pieces are not whole blocks, so they are read as raw
 * bytes. */
static void read_pieces(const struct bw_frame *frame, struct bw_xlator *xlator,
                        struct bw_request *request)
{
    const struct concat *concat = bw_xlator_private(xlator);
    uint64_t address = request->address, end = address + request->length;
    while (address < end && !request->error) {
        size_t part = find_part(concat, address);
        uint64_t until = concat->ends[part] < end ? concat->ends[part] : end;
        struct bw_request piece = {.kind = BW_REQUEST_RAW,
                                   .mirror = request->mirror,
                                   .length = (uint32_t)(until - address),
                                   .address = address - begin_of(concat, part),
                                   .buffer =
                                       (char *)request->buffer + (address - request->address)};
        bw_wind(frame, bw_xlator_child(xlator, part), &piece, 1);
        bw_request_answer(request, &piece);
        address = until;
    }
}

/* Passes on successive requests in the same part together. */
static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct concat *concat = bw_xlator_private(xlator);
    const uint64_t whole = size(xlator);
    for (size_t i = 0; i < count;) {
        struct bw_request inner[BW_BATCH], *wholes[BW_BATCH];
        size_t found = 0, part = 0;
        for (; i < count && found < BW_BATCH; i++) {
            struct bw_request *request = &requests[i];
            request->error = bw_request_check_end("the parts end", whole, request);
            if (request->error)
                continue;
            const size_t its_part = find_part(concat, request->address);
            if (request->length > concat->ends[its_part] - request->address) {
                read_pieces(frame, xlator, request);
                continue;
            }
            if (found && its_part != part)
                break;
            part = its_part;
            inner[found] = *request;
            inner[found].address -= begin_of(concat, part);
            wholes[found++] = request;
        }
        bw_wind(frame, bw_xlator_child(xlator, part), inner, found);
        for (size_t k = 0; k < found; k++)
            bw_request_answer(wholes[k], &inner[k]);
    }
}

/* Read-ahead is passed to every part that it touches. */
static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    const struct concat *concat = bw_xlator_private(xlator);
    uint64_t whole = size(xlator);
    for (size_t i = 0; i < count; i++) {
        uint64_t address = ranges[i].address;
        uint64_t end = whole;
        if (address < whole && ranges[i].length < whole - address)
            end = address + ranges[i].length;
        while (address < end) {
            size_t part = find_part(concat, address);
            uint64_t until = concat->ends[part] < end ? concat->ends[part] : end;
            const struct bw_range inner = {address - begin_of(concat, part), until - address};
            bw_wind_advise(frame, bw_xlator_child(xlator, part), &inner, 1, copy);
            address = until;
        }
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct concat *concat = bw_xlator_private(xlator);
    bw_json_begin_array(json, "ends");
    for (size_t i = 0; i < concat->count; i++)
        bw_json_number(json, NULL, concat->ends[i]);
    bw_json_end(json);
}

static const char page[] =
    "Joins several devices into one: the bytes of each device follow the bytes of the "
    "previous one.\n\n"
    "The default graph contains it for the parts of a split image, if the image has the "
    "name of a first part (disk.img.001, disk.img.aa) and is shorter than the file system "
    "or disk in it. For parts with other names, write a volfile:\n\n"
    "    volume device-1\n"
    "        type layout/concat\n"
    "        subvolumes part-1 part-2 part-3\n"
    "    end-volume\n";

const struct bw_xlator_class bw_layout_concat_class = {
    .type = "layout/concat",
    .description = "joins the parts of an image that was split",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = UINT32_MAX,
    .private_size = sizeof(struct concat),
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump},
};
