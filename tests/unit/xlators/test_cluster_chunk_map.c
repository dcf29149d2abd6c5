/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/chunk-map: addresses, copies, cut requests, missing devices and rebuilding for every
 * profile, measured against the image writer, which lays out the same chunks by other code.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/chunk_bench.h"

#define GROUP_SETUP limit_resources

static const struct chunk_shape shapes[] = {
    {0, 1, 0},
    {0, 2, 0},
    {BW_GROUP_DUP, 1, 0},
    {BW_GROUP_RAID0, 2, 0},
    {BW_GROUP_RAID0, 5, 0},
    {BW_GROUP_RAID1, 2, 1},
    {BW_GROUP_RAID1C3, 3, 2},
    {BW_GROUP_RAID1C4, 4, 3},
    {BW_GROUP_RAID10, 4, 1},
    {BW_GROUP_RAID10, 6, 1},
    {BW_GROUP_RAID5, 2, 1},
    {BW_GROUP_RAID5, 3, 1},
    {BW_GROUP_RAID5, 4, 1},
    {BW_GROUP_RAID5, 5, 1},
    {BW_GROUP_RAID5, 6, 1},
    {BW_GROUP_RAID6, 3, 2},
    {BW_GROUP_RAID6, 4, 2},
    {BW_GROUP_RAID6, 5, 2},
    {BW_GROUP_RAID6, 6, 2},
    {BW_GROUP_RAID6, 7, 2},
};

/* Ranges inside stripes, over their borders, over many of them, and from one chunk to the next. */
static void check_ranges(struct bw_xlator *map, const struct chunk_bench *bench)
{
    for (uint64_t at = 0; at + 16384 <= bench->length; at += 13 << 12)
        chunk_bench_check_range(map, bench, at, 16384, 0);
    for (uint64_t border = 1 << 16; border < bench->length; border += 1 << 16)
        chunk_bench_check_range(map, bench, border - 100, 333, 0);
    chunk_bench_check_range(map, bench, 0, (uint32_t)bench->length, 0);
    chunk_bench_check_range(map, bench, bench->length / 2 - 70000, 140001, 0);
    chunk_bench_check_range(map, bench, bench->length - 1, 1, 0);
    chunk_bench_check_range(map, bench, 7, 31, 0);
}

static void test_addresses(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        struct bw_graph *graph = fake_graph(NULL);
        struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
        for (uint64_t at = 0; at < bench.length; at += 4096 * 3 + 17) {
            struct bw_map_reply reply;
            unsigned device, copy = 1;
            uint64_t offset;
            for (; iw_locate(bench.image, bench.start + at, copy, &device, &offset); copy++) {
                expect_success(bw_wind_map(NULL, map, bench.start + at, 100, copy, &reply));
                assert_int_equal(reply.location.devid, iw_devid(bench.image, device));
                assert_int_equal(reply.location.offset, offset);
                assert_true(reply.location.present && !reply.location.rebuilt);
                assert_true(reply.length >= 1 && reply.length <= 100);
            }
            unsigned parity = shapes[i].profile == BW_GROUP_RAID5   ? 1
                              : shapes[i].profile == BW_GROUP_RAID6 ? shapes[i].devices - 1
                                                                    : 0;
            assert_int_equal(reply.copies, copy - 1 + parity);
            for (unsigned more = 0; more < parity; more++) {
                expect_success(bw_wind_map(NULL, map, bench.start + at, 100, copy + more, &reply));
                assert_true(
                    iw_locate_parity(bench.image, bench.start + at, more > 0, &device, &offset));
                assert_true(reply.location.present && reply.location.rebuilt);
                assert_int_equal(reply.location.devid, iw_devid(bench.image, device));
                assert_int_equal(reply.location.offset, offset);
            }
        }
        bw_graph_destroy(graph);
        chunk_bench_free(&bench);
    }
}

static void test_reads(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        struct bw_graph *graph = fake_graph(NULL);
        struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
        check_ranges(map, &bench);
        struct bw_map_reply reply;
        expect_success(bw_wind_map(NULL, map, bench.start, 1, 1, &reply));
        for (unsigned copy = 1; copy <= reply.copies; copy++) {
            chunk_bench_check_range(map, &bench, 60000, 10000, copy);
            chunk_bench_check_range(map, &bench, (3 << 16) + 5, 60000, copy);
            chunk_bench_check_range(map, &bench, 4096, 3, copy);
        }
        bw_graph_destroy(graph);
        chunk_bench_free(&bench);
    }
}

/* One batch of more requests than a layer takes at a time, over all devices, some of them bad. */
static void test_batch(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        struct bw_graph *graph = fake_graph(NULL);
        struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
        struct bw_request requests[150];
        uint8_t *buffers = malloc(150 * 3000);
        for (size_t at = 0; at < COUNT(requests); at++)
            requests[at] = (struct bw_request){
                .kind = BW_REQUEST_RAW,
                .address =
                    at % 10 == 7 ? 4096 : bench.start + at * 7919 * 5 % (bench.length - 3000),
                .length = 3000,
                .buffer = buffers + at * 3000};
        bw_wind(NULL, map, requests, COUNT(requests));
        for (size_t at = 0; at < COUNT(requests); at++) {
            if (at % 10 == 7) {
                expect_error(requests[at].error, BW_ERROR_CORRUPT,
                             "the chunk tree has no chunk for logical address 4096");
                continue;
            }
            expect_success(requests[at].error);
            assert_memory_equal(requests[at].buffer,
                                bench.bytes + (requests[at].address - bench.start), 3000);
        }
        free(buffers);
        bw_graph_destroy(graph);
        chunk_bench_free(&bench);
    }
}

/* Every set of devices that the profile can do without. */
static void test_missing_devices(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        for (unsigned missing = 1; missing + 1 < 1u << shapes[i].devices; missing++) {
            if ((unsigned)__builtin_popcount(missing) > shapes[i].expendable)
                continue;
            struct bw_graph *graph = fake_graph(NULL);
            check_ranges(chunk_bench_add_map(graph, &bench, missing), &bench);
            bw_graph_destroy(graph);
        }
        chunk_bench_free(&bench);
    }
}

/* Each set of devices that the profile can lose is stale: their data are not used, unless other
 * devices are missing. */
static void test_stale_devices(void **state)
{
    int zeros = memfd_create("zeros", 0);
    char path[32];
    assert_int_equal(ftruncate(zeros, 1 << 30), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", zeros);
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        unsigned all = (1u << shapes[i].devices) - 1;
        for (unsigned stale = 1; stale < all; stale++) {
            if ((unsigned)__builtin_popcount(stale) > shapes[i].expendable)
                continue;
            struct bw_graph *graph = fake_graph(NULL);
            check_ranges(chunk_bench_add_map_with_stale(graph, &bench, 0, stale, path), &bench);
            bw_graph_destroy(graph);
            graph = fake_graph(NULL);
            check_ranges(chunk_bench_add_map_with_stale(graph, &bench, stale, all & ~stale, NULL),
                         &bench);
            bw_graph_destroy(graph);
        }
        chunk_bench_free(&bench);
    }
    close(zeros);
}

/* One device more than can be missing: some ranges fail, those that can be read are right, none is
 * wrong. */
static void test_too_many_missing(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
        struct chunk_bench bench = chunk_bench_make(&shapes[i]);
        unsigned lost = shapes[i].expendable + 1, failed = 0;
        if (lost >= shapes[i].devices || shapes[i].profile == BW_GROUP_RAID10) {
            chunk_bench_free(&bench);
            continue;
        }
        struct bw_graph *graph = fake_graph(NULL);
        struct bw_xlator *map = chunk_bench_add_map(graph, &bench, (1u << lost) - 1);
        for (uint64_t at = 0; at < bench.length; at += 4096) {
            uint8_t buffer[4096];
            struct bw_error *error = read_range(map, bench.start + at, buffer, sizeof buffer);
            failed += error != NULL;
            if (error)
                expect_error(error, BW_ERROR_MISSING_DEVICE, NULL);
            else
                assert_memory_equal(buffer, bench.bytes + at, sizeof buffer);
        }
        assert_true(failed > 0);
        bw_graph_destroy(graph);
        chunk_bench_free(&bench);
    }
}

/* Rows of which a stripe cannot be read: that is not a missing device, even if one is missing
 * besides. */
static void test_too_many_unreadable(void **state)
{
    for (unsigned missing = 0; missing < 2; missing++)
        for (size_t i = 0; i < COUNT(shapes); i += variant_step()) {
            if (!(shapes[i].profile & (BW_GROUP_RAID5 | BW_GROUP_RAID6)) || shapes[i].devices < 3)
                continue;
            struct chunk_bench bench = chunk_bench_make(&shapes[i]);
            unsigned lost = shapes[i].expendable + 1, failed = 0;
            for (unsigned device = missing; device < lost; device++)
                iw_truncate_device(bench.image, device, 1 << 20);
            struct bw_graph *graph = fake_graph(NULL);
            struct bw_xlator *map = chunk_bench_add_map(graph, &bench, missing);
            for (uint64_t at = 0; at < bench.length; at += 4096) {
                uint8_t buffer[4096];
                struct bw_request request = {.kind = BW_REQUEST_RAW,
                                             .mirror = missing ? 0 : 2,
                                             .address = bench.start + at,
                                             .length = sizeof buffer,
                                             .buffer = buffer};
                bw_wind(NULL, map, &request, 1);
                failed += request.error != NULL;
                assert_true(!request.error || request.error->code != BW_ERROR_MISSING_DEVICE);
                bw_error_free(request.error);
            }
            assert_true(failed > 0);
            bw_graph_destroy(graph);
            chunk_bench_free(&bench);
        }
}

/* The second half of a mirror of stripes: one of each pair may be missing. */
static void test_raid10_half(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID10, 6, 1});
    struct bw_graph *graph = fake_graph(NULL);
    check_ranges(chunk_bench_add_map(graph, &bench, 0), &bench);
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}

/* With RAID6, each stripe of a row is avoided by one of the copies, so any single wrong stripe can
 * be corrected. */
static void test_raid6_copies_leave_each_stripe_out(void **state)
{
    struct chunk_bench bench = chunk_bench_make(&(struct chunk_shape){BW_GROUP_RAID6, 5, 2});
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *map = chunk_bench_add_map(graph, &bench, 0);
    for (unsigned device = 0; device < 5; device++) {
        uint8_t before[65536], noise[65536], buffer[4096];
        unsigned own, good = 0;
        uint64_t offset;
        iw_locate(bench.image, bench.start, 1, &own, &offset);
        uint64_t place = iw_chunk(bench.image, 0)->stripes[device].offset;
        iw_device_read(bench.image, device, place, before, sizeof before);
        memset(noise, 0xc3, sizeof noise);
        iw_device_write(bench.image, device, place, noise, sizeof noise);
        for (unsigned copy = 2; copy <= 5; copy++) {
            struct bw_request request = {.kind = BW_REQUEST_RAW,
                                         .mirror = (uint8_t)copy,
                                         .address = bench.start,
                                         .length = sizeof buffer,
                                         .buffer = buffer};
            bw_wind(NULL, map, &request, 1);
            expect_success(request.error);
            good += memcmp(buffer, bench.bytes, sizeof buffer) == 0;
        }
        assert_true(device == own ? good == 4 : good >= 1);
        iw_device_write(bench.image, device, place, before, sizeof before);
    }
    bw_graph_destroy(graph);
    chunk_bench_free(&bench);
}
