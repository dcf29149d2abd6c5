/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests the data of files in several generations together. */
#include "history/history.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/wind.h"

enum {
    RANGES = 4096,    /* to be requested at a time */
    FILE_RANGES = 32, /* of a file */
};

void bw_data_requests_send(struct bw_data_requests *requests)
{
    if (!requests->count)
        return;
    const struct bw_tree_reader *reader = &requests->fs->reader;
    struct bw_frame frame = bw_frame_above(NULL, bw_xlator_probes(reader->top));
    frame.reread = true; /* other files may use the same space; bad data are read repeatedly */
    bw_wind_advise(&frame, reader->top, requests->ranges, requests->count, 0);
    requests->count = 0;
}

struct bw_error *bw_data_requests_add(struct bw_data_requests *requests, struct bw_fs *present,
                                      struct bw_extent_cursor *cursor,
                                      const struct bw_data_file *file, uint64_t most,
                                      uint64_t *bytes)
{
    /* The file system that locates the data of a generation. Most generations have the current
     * chunks, so that their ranges can be requested together. */
    struct bw_fs *fs = cursor->fs;
    struct bw_fs *locator = fs->choice.chunk_root || fs->stripes ? fs : present;
    if (!requests->ranges)
        requests->ranges = calloc(RANGES, sizeof *requests->ranges);
    if (!requests->ranges)
        return bw_error_no_memory();
    if (requests->fs != locator || requests->count + FILE_RANGES > RANGES)
        bw_data_requests_send(requests);
    requests->fs = locator;

    size_t count = 0;
    struct bw_range *ranges = requests->ranges + requests->count;
    bw_extents_seek_whole(cursor, file, 0, most);
    BW_TRY(bw_extents_ranges(cursor, ranges, FILE_RANGES, &count));
    for (size_t i = 0; i < count; i++)
        *bytes += ranges[i].length;
    requests->count += count;
    return NULL;
}

void bw_data_requests_free(struct bw_data_requests *requests)
{
    free(requests->ranges);
    *requests = (struct bw_data_requests){0};
}
