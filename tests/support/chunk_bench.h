/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A chunk map above the devices of an image writer's image, which lays out the same chunks by other
 * code. */
#ifndef TEST_CHUNK_BENCH_H
#define TEST_CHUNK_BENCH_H

#include "support/fake_layer.h"
#include "support/image_writer_internal.h"

struct chunk_shape {
    uint64_t profile;
    unsigned devices;
    unsigned expendable; /* devices that may be missing, whichever they are */
};

/* Two data chunks of one shape side by side, full of bytes. */
struct chunk_bench {
    struct iw_image *image;
    uint64_t start, length;
    uint8_t *bytes;
};

struct chunk_bench chunk_bench_make(const struct chunk_shape *shape);
void chunk_bench_free(struct chunk_bench *bench);

/* Tells a chunk map the devices and the chunks of an image. Devices are bits of the masks. */
void chunk_bench_describe(struct bw_xlator *map, const struct iw_image *image, unsigned missing,
                          unsigned stale);

/* The chunk map of a bench. Some devices are missing, some stale; the file `spoiled`, if not NULL,
 * takes the place of the stale ones. */
struct bw_xlator *chunk_bench_add_map_with_stale(struct bw_graph *graph,
                                                 const struct chunk_bench *bench, unsigned missing,
                                                 unsigned stale, const char *spoiled);
struct bw_xlator *chunk_bench_add_map(struct bw_graph *graph, const struct chunk_bench *bench,
                                      unsigned missing);

/* Reads a range of one copy and compares. */
void chunk_bench_check_range(struct bw_xlator *map, const struct chunk_bench *bench,
                             uint64_t offset, uint32_t length, unsigned copy);

#endif
