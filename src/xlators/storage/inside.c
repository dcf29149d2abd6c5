/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/inside: reads an image that is a file of another file system, which the same process has
 * opened. src/open.c provides the functions that read the file.
 */
#include "xlators/classes.h"
#include "xlators/pieces.h"

static struct bw_error *init(struct bw_xlator *xlator)
{
    if (bw_xlator_inputs(xlator)->source)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "it is only for images inside another file system");
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct bw_image_source *source = bw_xlator_inputs(xlator)->source;
    (void)frame;
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        request->error = bw_request_check_end("the file ends", source->size, request);
        if (!request->error)
            request->error =
                source->read(source->context, request->address, request->buffer, request->length);
    }
}

static uint64_t size(struct bw_xlator *xlator)
{
    return bw_xlator_inputs(xlator)->source->size;
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    return address < size(xlator) ? address : UINT64_MAX;
}

static const struct bw_option options[] = {
    {"path", BW_OPTION_PATH, NULL, 0, 0, "where the file is, for messages", NULL},
    {0},
};

static const char page[] =
    "Reads an image that is a file of another btrfs, such as the disk of a virtual machine on its "
    "host. It replaces the storage layers of the default graph with --inside, which names the "
    "file. The checksums of the outer file system verify its data.\n\n"
    "    btrfs-walk --inside /vm/disk.raw host.img\n";

const struct bw_xlator_class bw_storage_inside_class = {
    .type = "storage/inside",
    .description = "reads an image that is a file of another btrfs",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .options = options,
    /* The file is read through another graph, which has its own read-ahead. */
    .operations = {.init = init,
                   .read = read_requests,
                   .advise = bw_ignore_advice,
                   .size = size,
                   .next_stored = next_stored},
};
