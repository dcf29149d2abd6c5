/* SPDX-License-Identifier: GPL-2.0-or-later */
/* toys/bad-range: a layer in which all reads of a range of addresses fail, as on a failing disk.
 *
 *     BTRFS_WALK_XLATOR_PATH=. btrfs-walk --insert toys/bad-range@device-1,from=1M,to=2M disk.img
 */
#include <btrfs-walk/graph.h>

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const uint64_t from = bw_xlator_option_number(xlator, "from");
    const uint64_t to = bw_xlator_option_number(xlator, "to");
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (struct bw_request *request = requests; request < requests + count; request++)
        if (!request->error && request->address < to && request->address + request->length > from)
            request->error = bw_error_create(BW_ERROR_SYSTEM, "a bad range was read");
}

static const struct bw_option options[] = {
    {"from", BW_OPTION_SIZE, "0", 0, UINT64_MAX, "first address that is bad", NULL},
    {"to", BW_OPTION_SIZE, NULL, 0, UINT64_MAX, "first address after the range", NULL},
    {0},
};

static const struct bw_xlator_class bad_range = {
    .type = "toys/bad-range",
    .description = "makes reads of a range of addresses fail",
    .page = "All reads that touch the range fail. Addresses are those above the layer.",
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .options = options,
    .operations = {.read = read_requests},
};

BW_XLATOR_EXPORT(bad_range);
