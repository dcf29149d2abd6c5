/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chunk map of an image writer's image, with devices that are missing or stale. */
#include "support/chunk_bench.h"

struct chunk_bench chunk_bench_make(const struct chunk_shape *shape)
{
    struct chunk_bench bench = {
        .image = iw_create(&(struct iw_options){.data_chunks = 2,
                                                .data_profile = shape->profile,
                                                .device_count = shape->devices,
                                                .device_extent_length = 5 << 16})};
    iw_write_memory(bench.image);
    const struct iw_chunk *chunk = iw_chunk(bench.image, 0);
    bench.start = chunk->logical;
    bench.length = 2 * chunk->length;
    bench.bytes = malloc((size_t)bench.length);
    uint32_t random = 1;
    for (uint64_t i = 0; i < bench.length; i++)
        bench.bytes[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
    iw_store(bench.image, bench.start, NULL, bench.bytes, (size_t)bench.length);
    return bench;
}

void chunk_bench_free(struct chunk_bench *bench)
{
    iw_destroy(bench->image);
    free(bench->bytes);
}

void chunk_bench_describe(struct bw_xlator *map, const struct iw_image *image, unsigned missing,
                          unsigned stale)
{
    size_t child = 0;
    for (unsigned i = 0; i < iw_device_count(image); i++) {
        struct bw_control_device device = {
            .devid = iw_devid(image, i), .child = child, .stale = stale >> i & 1};
        iw_uuid(image, IW_UUID_DEVICE, iw_devid(image, i), device.uuid);
        if (missing >> i & 1)
            continue;
        expect_success(tell_device(map, &device));
        child++;
    }
    for (size_t i = 0; i < iw_chunk_count(image); i++) {
        uint8_t item[2048];
        struct bw_chunk chunk;
        size_t size = iw_chunk_item(image, iw_chunk(image, i), item);
        expect_success(bw_chunk_decode(iw_chunk(image, i)->logical, item, size, &chunk));
        expect_success(tell_chunk(map, &chunk));
    }
}

/* The chunk map of a bench without the devices in one bit mask; those in another one are stale.
 * `spoiled`: stale devices also have wrong data. */
struct bw_xlator *chunk_bench_add_map_with_stale(struct bw_graph *graph,
                                                 const struct chunk_bench *bench, unsigned missing,
                                                 unsigned stale, const char *spoiled)
{
    struct bw_xlator *children[IW_MAX_DEVICES], *map = NULL;
    struct layer layer = {.type = "cluster/chunk-map", .name = "map", .children = children};
    for (unsigned i = 0; i < iw_device_count(bench->image); i++) {
        const char *path = spoiled && stale >> i & 1 ? spoiled : iw_path(bench->image, i);
        const struct option_value options[] = {{"path", path}, {0}};
        if (!(missing >> i & 1))
            children[layer.child_count++] = add_layer(graph, "storage/file", NULL, options);
    }
    expect_success(graph_add(graph, &layer, &map));
    chunk_bench_describe(map, bench->image, missing, stale);
    return map;
}

struct bw_xlator *chunk_bench_add_map(struct bw_graph *graph, const struct chunk_bench *bench,
                                      unsigned missing)
{
    return chunk_bench_add_map_with_stale(graph, bench, missing, 0, NULL);
}

/* Reads a range of one copy and compares. */
void chunk_bench_check_range(struct bw_xlator *map, const struct chunk_bench *bench,
                             uint64_t offset, uint32_t length, unsigned copy)
{
    uint8_t *buffer = malloc(length);
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .mirror = (uint8_t)copy,
                                 .address = bench->start + offset,
                                 .length = length,
                                 .buffer = buffer};
    bw_wind(NULL, map, &request, 1);
    expect_success(request.error);
    assert_memory_equal(buffer, bench->bytes + offset, length);
    free(buffer);
}
