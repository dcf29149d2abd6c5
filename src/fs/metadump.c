/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images that are dumps of btrfs-image: recognizing them, and the layer that shows them. */
#include <string.h>

#include "base/cleanup.h"
#include "fs/opening.h"
#include "xlators/layout/metadump_index.h"

#define METADUMP_TYPE "layout/metadump"

bool bw_image_is_dump(const struct bw_xlator *storage)
{
    while (strcmp(bw_xlator_type(storage), METADUMP_TYPE) != 0 && bw_xlator_child_count(storage))
        storage = bw_xlator_child(storage, 0);
    return bw_xlator_child_count(storage);
}

struct bw_error *bw_image_show_dump(const struct bw_fs *fs, struct bw_xlator *map,
                                    struct bw_image *image)
{
    const struct bw_text_place nowhere = {NULL, 0, 0};
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    struct bw_xlator *layer;
    if (!image->bad || image->is_dump || !bw_is_metadump(&frame, image->storage))
        return NULL;
    bw_error_free(BW_TAKE(image->bad));
    BW_TRY(bw_graph_insert_above(fs->graph, bw_graph_index(image->storage), METADUMP_TYPE, nowhere,
                                 &layer));
    BW_TRY(bw_graph_check_layer(layer));
    return bw_graph_start(fs->graph, map);
}
