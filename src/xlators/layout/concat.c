/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/concat: joins several devices into one: the bytes of each follow the bytes of the previous
 * device. Its children are the storage layers of an image that was split into parts.
 */
#include <stdlib.h>

#include "base/search.h"
#include "xlators/classes.h"
#include "xlators/pieces.h"

struct concat {
    const struct bw_piece_map *pieces; /* the first member, for bw_pieces_*() */
    size_t count;
    uint64_t *ends; /* end of each part; ascending */
};

static struct bw_error *locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint64_t wanted, struct bw_below *below)
{
    const struct concat *concat = bw_xlator_private(xlator);
    const size_t part = BW_FIRST_INDEX(i, concat->count - 1, concat->ends[i] > address);
    const uint64_t begin = part ? concat->ends[part - 1] : 0;
    (void)frame, (void)wanted;
    *below = (struct bw_below){.layer = bw_xlator_child(xlator, part),
                               .offset = address - begin,
                               .length = concat->ends[part] - address};
    return NULL;
}

static const struct bw_piece_map pieces = {"the parts end", locate, NULL};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct concat *concat = bw_xlator_private(xlator);
    uint64_t end = 0;
    concat->pieces = &pieces;
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
    bw_xlator_set_size(xlator, end);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct concat *concat = bw_xlator_private(xlator);
    free(concat->ends);
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
                   .read = bw_pieces_read,
                   .advise = bw_pieces_advise,
                   .size = bw_xlator_own_size,
                   .next_stored = bw_pieces_next_stored,
                   .dump = dump},
};
