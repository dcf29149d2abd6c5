/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/patch: changed ranges above an image, which is not written to. They come from memory,
 * while a repair is tried, or from an overlay, the qcow2 file that a repair has written. A request
 * that lies in changed ranges completely is not passed on, so that it also hides sectors that
 * cannot be read.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/decimal.h"
#include "base/patch.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/storage/overlay.h"

/* One of the two. */
struct patch {
    struct bw_overlay *overlay;
    const struct bw_patch *memory;
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct patch *patch = bw_xlator_private(xlator);
    const char *path = bw_xlator_option_text(xlator, "overlay");
    const uint64_t size = bw_xlator_size(bw_xlator_child(xlator, 0));
    if (!*path) {
        const struct bw_graph_inputs *inputs = bw_xlator_inputs(xlator);
        const uint64_t image = bw_xlator_option_number(xlator, "memory");
        if (image < inputs->patch_count)
            patch->memory = inputs->patches[image];
        if (patch->memory)
            return NULL;
        return bw_error_create(BW_ERROR_USAGE, "it needs an overlay");
    }
    BW_TRY(bw_overlay_open(path, &patch->overlay));
    if (bw_overlay_size(patch->overlay) == size)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE,
                           "the disk of %s has %" PRIu64 " bytes, but %s has %" PRIu64, path,
                           bw_overlay_size(patch->overlay), bw_xlator_image(xlator), size);
}

static void fini(struct bw_xlator *xlator)
{
    struct patch *patch = bw_xlator_private(xlator);
    bw_overlay_close(patch->overlay);
}

static bool pass_if_needed(const struct bw_frame *frame, struct bw_xlator *xlator,
                           struct bw_request *request, struct bw_request *copy)
{
    const struct patch *patch = bw_xlator_private(xlator);
    (void)frame, (void)copy;
    if (patch->overlay)
        return !bw_overlay_covers(patch->overlay, request->address, request->length);
    return !bw_patch_covers(patch->memory, request->address, request->length);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct patch *patch = bw_xlator_private(xlator);
    for (size_t i = 0; i < count; i++)
        requests[i].error = NULL;
    bw_wind_copies(frame, xlator, requests, count, pass_if_needed);
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        if (!request->error && patch->overlay)
            request->error = bw_overlay_apply(patch->overlay, request->address, request->buffer,
                                              request->length);
        else if (!request->error)
            bw_patch_apply(patch->memory, request->address, request->buffer, request->length);
    }
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct patch *patch = bw_xlator_private(xlator);
    const uint64_t below = bw_xlator_next_stored(bw_xlator_child(xlator, 0), address);
    if (patch->overlay)
        return bw_min(below, bw_overlay_next(patch->overlay, address));
    return bw_min(below, bw_patch_next(patch->memory, address));
}

static const struct bw_option options[] = {
    {"overlay", BW_OPTION_PATH, "", 0, 0, "qcow2 file with the changes", NULL},
    {"memory", BW_OPTION_INTEGER, "0", 0, UINT32_MAX,
     "without an overlay: number of the device whose repair is tried", NULL},
    {0},
};

const struct bw_xlator_class bw_layout_patch_class = {
    .type = "layout/patch",
    .description = "puts changed ranges over an image, which is not written",
    .page =
        "A repair never writes to an image. Its result is an overlay: a qcow2 file with the "
        "changed clusters, above the image. This layer reads the changed clusters from the overlay "
        "and everything else from below, without QEMU and without a helper. Before an overlay is "
        "written, the repair itself uses the layer with its changes in memory: it opens the "
        "repaired file system and checks it.\n\n"
        "The option --patch inserts the layer above the image to which the overlay belongs:\n\n"
        "    btrfs-walk repair -f fixed.qcow2 disk.img\n"
        "    btrfs-walk check --patch fixed.qcow2 disk.img",
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct patch),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .next_stored = next_stored},
};
