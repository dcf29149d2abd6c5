/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images that are send streams. */
#include "stream/streams.h"

#include "graph/wind.h"

static struct bw_error *read_bytes(void *context, uint64_t offset, void *buffer, uint32_t length)
{
    struct bw_xlator *storage = context;
    return bw_read_raw(NULL, storage, offset, buffer, length);
}

struct bw_stream_source bw_image_stream(const struct bw_image *image)
{
    return (struct bw_stream_source){read_bytes, image->storage, bw_xlator_size(image->storage)};
}

bool bw_images_are_streams(const struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->images[i].is_stream)
            return false;
    return set->count;
}
