/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/window: shows a part of the device below as a separate device. Used directly above a
 * storage layer, for a file system that does not begin where the file does: in a partition of a
 * disk image, or after a header of another format.
 */
#include "xlators/layout/window.h"

#include <inttypes.h>

#include "xlators/classes.h"

struct bw_error *bw_window_locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  uint64_t address, uint64_t wanted, struct bw_below *below)
{
    const struct bw_window *window = bw_xlator_private(xlator);
    (void)frame, (void)wanted;
    *below = (struct bw_below){.layer = bw_xlator_child(xlator, 0),
                               .offset = window->offset + address,
                               .length = window->length - address};
    return NULL;
}

static const struct bw_piece_map pieces = {"the window ends", bw_window_locate, NULL};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_window *window = bw_xlator_private(xlator);
    struct bw_xlator *child = bw_xlator_child(xlator, 0);
    const uint64_t end = bw_xlator_size(child);
    window->pieces = &pieces;
    window->offset = bw_xlator_option_number(xlator, "offset");
    window->length = bw_xlator_option_number(xlator, "length");
    if (window->offset > end)
        return bw_error_create(BW_ERROR_USAGE,
                               "the window begins at %" PRIu64 ", after the end of %s at %" PRIu64,
                               window->offset, bw_xlator_name(child), end);
    const uint64_t room = end - window->offset;
    if (window->length > room)
        return bw_error_create(BW_ERROR_USAGE,
                               "the window of %" PRIu64 " bytes at %" PRIu64
                               " ends after the end of %s at %" PRIu64,
                               window->length, window->offset, bw_xlator_name(child), end);
    if (window->length == 0)
        window->length = room;
    return NULL;
}

uint64_t bw_window_size(struct bw_xlator *xlator)
{
    const struct bw_window *window = bw_xlator_private(xlator);
    return window->length;
}

static bool shift_request(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *request, struct bw_request *copy)
{
    const struct bw_window *window = bw_xlator_private(xlator);
    (void)frame;
    copy->address += window->offset;
    request->error = bw_request_check_end(window->pieces->subject, window->length, request);
    return !request->error;
}

/* A request is always one piece. */
void bw_window_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count)
{
    bw_wind_copies(frame, xlator, requests, count, shift_request);
}

void bw_window_dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct bw_window *window = bw_xlator_private(xlator);
    bw_json_number(json, "begin", window->offset);
    bw_json_number(json, "end", window->offset + window->length);
}

static const struct bw_option options[] = {
    {"offset", BW_OPTION_SIZE, "0", 0, UINT64_MAX, "offset of the window on the device below",
     NULL},
    {"length", BW_OPTION_SIZE, "0", 0, UINT64_MAX,
     "bytes in the window; 0: up to the end of the device below", NULL},
    {0},
};

static const char page[] =
    "Shows a part of the device below as a whole device: a read at address A becomes a read "
    "at offset + A. Nothing outside of that part can be read.\n\n"
    "Use it for a file system that begins neither at the start of the image nor at the "
    "start of a partition: after a header of another format, or if the partition table is "
    "lost. Insert it above the storage layer of the image; the option --image-offset does "
    "that for all images.\n\n"
    "    btrfs-walk --insert layout/window@device-1,offset=1M disk.img\n"
    "    btrfs-walk --image-offset 1M disk.img\n\n"
    "Give the length as well if the bytes after the window must not be mistaken for a part "
    "of the file system. A window that extends beyond the end of the device is refused; "
    "omit the length for an image that was cut off.\n";

const struct bw_xlator_class bw_layout_window_class = {
    .type = "layout/window",
    .description = "shows a part of a device, such as a partition",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct bw_window),
    .options = options,
    .operations = {.init = init, BW_WINDOW_OPERATIONS},
};
