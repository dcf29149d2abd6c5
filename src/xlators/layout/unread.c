/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/unread: reads of ranges that ddrescue could not copy fail, instead of returning zeros.
 * Used directly above the storage layer of a rescued image.
 */
#include <inttypes.h>

#include "base/bad_map.h"
#include "base/cleanup.h"
#include "base/range_set.h"
#include "xlators/classes.h"

static struct bw_error *add_range(void *context, uint64_t start, uint64_t length)
{
    return bw_range_set_insert(context, start, start + length);
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_range_set *unread = bw_xlator_private(xlator);
    struct bw_bad_map_extent extent;
    const char *map = bw_xlator_option_text(xlator, "map");
    const uint64_t size = bw_xlator_size(bw_xlator_child(xlator, 0));
    BW_TRY(bw_bad_map_read(map, add_range, unread, &extent));
    bw_range_set_join(unread);
    if (extent.line)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_USAGE,
                                         "%s:%u: ranges overlap, have gaps or are out of order; "
                                         "a gap counts as read",
                                         map, extent.line));
    if (extent.end < size)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_USAGE,
                                         "%s ends at %" PRIu64 ", the image at %" PRIu64
                                         ": the rest counts as read",
                                         map, extent.end, size));
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    bw_range_set_free(bw_xlator_private(xlator));
}

static bool pass_if_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                         struct bw_request *request, struct bw_request *copy)
{
    const struct bw_range_set *unread = bw_xlator_private(xlator);
    const uint64_t bad =
        bw_range_set_overlap(unread, request->address, request->address + request->length);
    (void)frame, (void)copy;
    if (!bad)
        return true;
    request->error = bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " of %" PRIu32 " bytes at %" PRIu64
                                     " were not read from the disk, according to %s",
                                     bad, request->length, request->address,
                                     bw_xlator_option_text(xlator, "map"));
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind_copies(frame, xlator, requests, count, pass_if_read);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct bw_range_set *unread = bw_xlator_private(xlator);
    bw_json_number(json, "unread_ranges", unread->ranges.count);
}

static const struct bw_option options[] = {
    {"map", BW_OPTION_PATH, NULL, 0, 0, "map file of ddrescue, or list of badblocks", NULL},
    {0},
};

const struct bw_xlator_class bw_layout_unread_class = {
    .type = "layout/unread",
    .description = "fails reads of ranges that ddrescue could not copy",
    .page =
        "A rescued image contains zeros where the disk could not be read. Zeros look like the "
        "contents of a file without checksums, or like a hole. This layer reads the map file of "
        "ddrescue, and fails all reads of ranges that are not marked as rescued. Then another "
        "mirror "
        "is read, or the range is reported as lost.\n\n"
        "The option --map inserts the layer above the storage layer of an image:\n\n"
        "    btrfs-walk extract -C DEST --map rescue.map disk.img\n"
        "    btrfs-walk --insert layout/unread@device-1,map=rescue.map disk.img",
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct bw_range_set),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
