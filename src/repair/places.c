/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the bytes of a device are in the files that the user gave. The changes of a plan are
 * offsets on devices. An overlay lies above a file, so these changes are mapped down through
 * partitions, offsets and linear logical volumes. A layer that changes the bytes, such as
 * encryption, or that stores them more than once has no such place: then only a raw copy of the
 * device is possible. Offsets in a qcow2 image are offsets in its contents: its overlay has a
 * backing file of that format.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compare.h"
#include "repair/repair.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/window.h"

/* The only file below a layer; NULL if there are several. */
static const struct bw_xlator *sole_storage(const struct bw_xlator *layer)
{
    while (bw_xlator_child_count(layer) == 1)
        layer = bw_xlator_child(layer, 0);
    return bw_xlator_child_count(layer) ? NULL : layer;
}

static struct bw_error *locate(struct bw_xlator *layer, struct bw_repair_place *place,
                               bool is_container)
{
    while (bw_xlator_child_count(layer)) {
        const char *type = bw_xlator_type(layer);
        if (strcmp(type, "layout/window") == 0 || strcmp(type, "layout/partition") == 0) {
            const struct bw_window *window = bw_xlator_private(layer);
            if (place->offset >= window->length)
                return bw_error_create(BW_ERROR_CORRUPT, "the device ends at %" PRIu64,
                                       window->length);
            place->length = bw_min(place->length, window->length - place->offset);
            place->offset += window->offset;
            layer = bw_xlator_child(layer, 0);
        } else if (strcmp(type, "layout/lvm") == 0) {
            BW_TRY(bw_lvm_locate(layer, &place->offset, &place->length, &layer));
        } else if (strncmp(type, "debug/", 6) == 0 || strcmp(type, "layout/unread") == 0 ||
                   strcmp(type, "layout/patch") == 0) {
            layer = bw_xlator_child(layer, 0);
        } else {
            return bw_error_create(BW_ERROR_UNSUPPORTED, "its bytes are changed by %s", type);
        }
    }
    if (strcmp(bw_xlator_type(layer), "storage/file") != 0 && !is_container)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "a server or a helper program provides it");
    return NULL;
}

struct bw_error *bw_repair_locate(const struct bw_repair *repair, const struct bw_image *image,
                                  struct bw_repair_place *place)
{
    const struct bw_xlator *storage = sole_storage(image->storage);
    const char *const *containers = repair->options.containers;
    struct bw_error *error = NULL;
    place->image = 0;
    while (storage && place->image < repair->how.path_count &&
           strcmp(bw_xlator_image(storage), repair->how.paths[place->image]) != 0)
        place->image++;
    if (!storage)
        error = bw_error_create(BW_ERROR_UNSUPPORTED, "it lies in several files");
    else if (place->image == repair->how.path_count)
        error = bw_error_create(BW_ERROR_UNSUPPORTED, "it does not lie in an image that was given");
    else
        error = locate(image->storage, place, containers && containers[place->image]);
    if (!error && place->offset % BW_PATCH_SECTOR)
        error = bw_error_create(BW_ERROR_UNSUPPORTED, "it does not begin at a sector");
    if (error && error->code == BW_ERROR_UNSUPPORTED)
        return bw_error_advise(
            bw_error_prefix(error, "%s: no overlay of this device is possible", image->name),
            "`format raw` writes an image of it");
    return error;
}

struct bw_xlator *bw_repair_storage(const struct bw_repair *repair, size_t image)
{
    for (size_t i = 0; i < repair->devices.count; i++) {
        const struct bw_xlator *storage = sole_storage(repair->devices.items[i].image->storage);
        if (storage && strcmp(bw_xlator_image(storage), repair->how.paths[image]) == 0)
            return (struct bw_xlator *)(uintptr_t)storage;
    }
    return NULL;
}
