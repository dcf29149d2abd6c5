/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cluster/chunk-map: addresses without a chunk, copies that do not exist, chunks that overlap,
 * hints.
 */
#include "graph/graph.h"
#include "support/chunk_bench.h"

#define GROUP_SETUP limit_resources

/* Where there is no chunk, the reply contains the length of the gap. */
static void test_length_of_nowhere(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID0, 2, 0});
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
    struct bw_map_reply reply;
    uint64_t end = 0;
    for (size_t i = 0; i < iw_chunk_count(bench.image); i++) {
        const struct iw_chunk *chunk = iw_chunk(bench.image, i);
        end = end > chunk->logical + chunk->length ? end : chunk->logical + chunk->length;
    }
    expect_error(bw_wind_map(NULL, map, bench.start - 8192, 4096, 1, &reply), BW_ERROR_CORRUPT,
                 "no chunk");
    assert_int_equal(reply.length, 4096);
    expect_error(bw_wind_map(NULL, map, bench.start - 8192, 1 << 20, 1, &reply), BW_ERROR_CORRUPT,
                 NULL);
    assert_int_equal(reply.length, 8192);
    expect_error(bw_wind_map(NULL, map, end, UINT32_MAX, 1, &reply), BW_ERROR_CORRUPT, "no chunk");
    assert_int_equal(reply.length, UINT32_MAX);
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}

static void test_copies_that_are_none(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID1, 2, 1});
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
    uint8_t byte;
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .mirror = 3, .address = bench.start, .length = 1, .buffer = &byte};
    bw_wind(NULL, map, &request, 1);
    expect_error(request.error, BW_ERROR_USAGE, "there is no mirror 3");
    expect_error(read_range(map, 0, &byte, 1), BW_ERROR_CORRUPT,
                 "the chunk tree has no chunk for logical address 0");
    expect_error(read_range(map, UINT64_MAX, &byte, 1), BW_ERROR_CORRUPT,
                 "the chunk tree has no chunk");
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}

/* Chunks that overlap are refused; the same one may come again, also with another length. */
static void test_overlapping_chunks(void **state)
{
    static const struct {
        uint64_t logical, length;
        const char *text;
    } cases[] = {
        {1 << 20, 1 << 20, NULL},
        {3 << 20, 1 << 20, NULL},
        {1 << 20, 1 << 20, NULL},
        {(1 << 20) + 4096, 4096, "lies in chunk 1048576"},
        {(2 << 20) - 4096, 8192, "lies in chunk 1048576"},
        {1 << 19, 1 << 20, "overlaps chunk 1048576"},
        {0, UINT64_C(1) << 62, "overlaps chunk"},
        {1 << 20, 3 << 20, NULL},
        {1 << 20, 2 << 20, NULL},
        {2 << 20, 1 << 20, NULL},
        {(2 << 20) - 4096, 4096, "lies in chunk 1048576"},
        {1 << 20, 4096, NULL},
        {4 << 20, (uint64_t) - (5 << 20), NULL},
    };
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *device = add_layer(graph, "test/device", NULL, NULL);
    struct bw_xlator *map = add_layer(graph, "cluster/chunk-map", device, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct {
            struct bw_disk_chunk chunk;
            struct bw_disk_stripe stripe;
        } item = {.chunk = {.length = bw_put64(cases[i].length),
                            .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                            .stripe_count = bw_put16(1)}};
        struct bw_chunk chunk;
        expect_success(bw_chunk_decode(cases[i].logical, (const void *)&item, sizeof item, &chunk));
        struct bw_error *error = tell_chunk(map, &chunk);
        if (cases[i].text)
            expect_error(error, BW_ERROR_CORRUPT, cases[i].text);
        else
            expect_success(error);
    }
    bw_graph_destroy(graph);
}

/* A chunk map above two devices. */
static struct bw_xlator *add_map(struct bw_graph *graph, struct fake_layer fakes[2],
                                 const struct chunk_bench *bench)
{
    struct bw_xlator *const children[] = {add_fake_device(graph, &fakes[0]),
                                          add_fake_device(graph, &fakes[1])};
    const struct layer layer = {
        .type = "cluster/chunk-map", .name = "map", .children = children, .child_count = 2};
    struct bw_xlator *map = NULL;
    expect_success(graph_add(graph, &layer, &map));
    chunk_bench_describe(map, bench->image, 0, 0);
    return map;
}

static void test_hints_go_to_the_devices(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID0, 2, 0});
    struct fake_layer fakes[2] = {0};
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = add_map(graph, fakes, &bench);
    const struct bw_range ranges[] = {{bench.start + 60000, 80000},
                                      {0, 4096},
                                      {bench.start, UINT64_MAX},
                                      {bench.start + 4096, 0}};
    bw_wind_advise(NULL, map, ranges, 1, 0);
    assert_int_equal(fakes[0].hint_count + fakes[1].hint_count, 3);
    bw_wind_advise(NULL, map, ranges, COUNT(ranges), 0);
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}

/* A hint for a copy goes to its device, and one for a copy that is not stored to none. */
static void test_hints_for_copies(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID1, 2, 1});
    struct fake_layer fakes[2] = {0};
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = add_map(graph, fakes, &bench);
    const struct bw_range range = {bench.start, 4096};
    for (unsigned copy = 1; copy <= 3; copy++) {
        const size_t before[] = {fakes[0].hint_count, fakes[1].hint_count};
        struct bw_map_reply reply = {0};
        expect_success(bw_wind_map(NULL, map, bench.start, 4096, copy < 3 ? copy : 1, &reply));
        bw_wind_advise(NULL, map, &range, 1, copy);
        for (unsigned i = 0; i < 2; i++) {
            bool own = fakes[i].hint_count > before[i];
            assert_int_equal(own, copy < 3 && reply.location.devid == iw_devid(bench.image, i));
            if (own)
                assert_int_equal(fakes[i].hints[before[i]].address, reply.location.offset);
        }
    }
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}

#define MIRRORED (UINT64_C(1) << 32)

/* A large chunk of two mirrors, on the devices of the bench. */
static void add_mirrors(struct bw_xlator *map, const struct chunk_bench *bench, uint64_t logical)
{
    struct {
        struct bw_disk_chunk chunk;
        struct bw_disk_stripe stripes[2];
    } item = {.chunk = {.length = bw_put64(1 << 25),
                        .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                        .type = bw_put64(BW_GROUP_DATA | BW_GROUP_RAID1),
                        .stripe_count = bw_put16(2)}};
    struct bw_chunk chunk;
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t devid = iw_devid(bench->image, i);
        item.stripes[i].devid = bw_put64(devid);
        iw_uuid(bench->image, IW_UUID_DEVICE, devid, item.stripes[i].device_uuid);
    }
    expect_success(bw_chunk_decode(logical, (const void *)&item, sizeof item, &chunk));
    expect_success(tell_chunk(map, &chunk));
}

enum { PART = 2 << 20 };

/* Announces four parts while data of the first device are awaited. */
static void announce_four(void *context)
{
    for (unsigned i = 0; i < 4; i++)
        bw_wind_advise(NULL, context, &(struct bw_range){MIRRORED + (8 + i) * PART, 4096}, 1, 0);
}

/* Ranges of one announcement go to one device; after 2 MiB, the next device follows. */
static void check_batches(struct bw_xlator *map, struct fake_layer fakes[2])
{
    const uint64_t border = MIRRORED + 5 * PART;
    const struct bw_range two[] = {{border - 4096, 4096}, {border, 4096}},
                          large = {MIRRORED + 6 * PART, 2 * PART};
    fakes[0].hint_count = fakes[1].hint_count = 0;
    bw_wind_advise(NULL, map, two, 2, 0);
    assert_int_equal(fakes[0].hint_count, 2);
    assert_int_equal(fakes[1].hint_count, 0);
    bw_wind_advise(NULL, map, &large, 1, 0);
    assert_int_equal(fakes[0].hint_count, 3);
    assert_int_equal(fakes[1].hint_count, 1);
}

/* The device that is not busy gets more. */
static void check_busy(struct bw_xlator *map, struct fake_layer fakes[2])
{
    uint8_t bytes[4096];
    struct bw_request request = {
        .kind = BW_REQUEST_DATA, .address = MIRRORED, .length = sizeof bytes, .buffer = bytes};
    fakes[0].hint_count = fakes[1].hint_count = 0;
    fakes[0].during_read = announce_four;
    fakes[0].context = map;
    bw_wind(NULL, map, &request, 1);
    bw_error_free(request.error); /* the fake has no contents */
    assert_int_equal(fakes[0].read_count, 1);
    assert_int_equal(fakes[0].hint_count, 0);
    assert_int_equal(fakes[1].hint_count, 4);
}

/* Data of mirrors come from both devices in turn, 2 MiB from each; metadata from the first one. */
static void test_mirrors_take_turns(void **state)
{
    enum { PARTS = 4 };
    const uint64_t logical = MIRRORED;
    const struct bw_frame metadata = {.metadata = true};
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID1, 2, 1});
    struct fake_layer fakes[2] = {0};
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = add_map(graph, fakes, &bench);
    struct bw_range ranges[PARTS];
    add_mirrors(map, &bench, logical);
    for (unsigned i = 0; i < PARTS; i++) {
        ranges[i] = (struct bw_range){logical + (uint64_t)i * PART, 4096};
        bw_wind_advise(NULL, map, &ranges[i], 1, 0);
        assert_int_equal(fakes[i % 2].hint_count, i / 2 + 1);
    }
    bw_wind_advise(&metadata, map, ranges, PARTS, 0);
    assert_int_equal(fakes[0].hint_count, PARTS / 2 + PARTS);
    check_batches(map, fakes);
    check_busy(map, fakes);
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}
