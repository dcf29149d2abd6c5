/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench/large-layer: the leaves of the file system that large.h describes, computed when they are
 * read. All other requests go to the image, which large-image.c made with -n and the same options:
 *
 *     BTRFS_WALK_XLATOR_PATH=build btrfs-walk --insert \
 *         bench/large-layer@device-1,files=100000000,first=2147483648,copy=true image.img
 */
#include <btrfs-walk/graph.h>
#include <stdlib.h>

#include "large.h"

struct layer {
    struct large large;
    bool has_copy;
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct layer *layer = bw_xlator_private(xlator);
    struct large *large = &layer->large;
    if (!large_init(large, bw_xlator_option_number(xlator, "files")))
        return bw_error_create(BW_ERROR_USAGE, "files is no multiple of 10000 up to 10^8");
    layer->has_copy = bw_xlator_option_number(xlator, "copy");
    large->first = bw_xlator_option_number(xlator, "first");
    large->first_changed = large->first + large->leaves * NODESIZE;
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct layer *layer = bw_xlator_private(xlator);
    free(layer->large.top);
    free(layer->large.top_keys);
}

/* Computes the block of an address; false if it is in the image. */
static bool compute(const struct layer *layer, uint64_t address, uint8_t *bytes)
{
    const struct large *large = &layer->large;
    if (address < large->first)
        return false;
    uint64_t leaf = (address - large->first) / NODESIZE;
    if (leaf < large->leaves) {
        large_leaf(large, FILES_TREE, leaf, bytes);
        return true;
    }
    const uint64_t section = leaf - large->leaves;
    if (!layer->has_copy || section >= large->sections)
        return false;
    leaf = large->top_leaves + section * SECTION_LEAVES + CHANGED_LEAF;
    large_leaf(large, CHANGED_TREE, leaf, bytes);
    return true;
}

/* Reads all from the image, where the leaves are a hole, and replaces those. */
static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct layer *layer = bw_xlator_private(xlator);
    uint8_t block[NODESIZE];
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (struct bw_request *request = requests; request < requests + count; request++) {
        const uint64_t end = request->address + request->length;
        uint64_t at = request->address / NODESIZE * NODESIZE;
        for (; !request->error && at < end; at += NODESIZE) {
            if (!compute(layer, at, block))
                continue;
            const uint64_t from = at > request->address ? at : request->address;
            const uint64_t to = at + NODESIZE < end ? at + NODESIZE : end;
            memcpy((uint8_t *)request->buffer + (from - request->address), block + (from - at),
                   to - from);
        }
    }
}

static const struct bw_option options[] = {
    {"files", BW_OPTION_INTEGER, "1000000", 0, UINT64_MAX, "number of files", NULL},
    {"first", BW_OPTION_INTEGER, "0", 0, UINT64_MAX, "address of the first leaf", NULL},
    {"copy", BW_OPTION_BOOL, "false", 0, 0, "with the snapshot", NULL},
    {0},
};

static const struct bw_xlator_class large_class = {
    .type = "bench/large-layer",
    .description = "computes the leaves of a very large file system",
    .page = "Computes the leaves of an image of large-image -n.",
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct layer),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests},
};

BW_XLATOR_EXPORT(large_class);
