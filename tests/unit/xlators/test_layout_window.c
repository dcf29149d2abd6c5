/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/window: requests to the device below, and invalid options. */
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/graph.h"
#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { SIZE = 100000 };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE];
    struct bw_graph *graph;
    struct bw_xlator *below;
};

static struct bench *make_bench(uint64_t size)
{
    struct bench *bench = calloc(1, sizeof *bench);
    for (size_t i = 0; i < SIZE; i++)
        bench->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = size};
    bench->graph = fake_graph(NULL);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

static struct bw_error *try_window(struct bench *bench, const char *offset, const char *length,
                                   struct bw_xlator **window)
{
    const struct option_value options[] = {{"offset", offset}, {"length", length}, {0}};
    return graph_add_above(bench->graph, bench->below, "layout/window", "window", options, window);
}

/* A window that can be made: its length. */
static void check_length(uint64_t size, const char *offset, const char *length, uint64_t wanted)
{
    struct bench *bench = make_bench(size);
    struct bw_xlator *window = NULL;
    expect_success(try_window(bench, offset, length, &window));
    assert_int_equal(bw_xlator_size(window), wanted);
    free_bench(bench);
}

static void check_refused(uint64_t size, const char *offset, const char *length,
                          const char *message)
{
    struct bench *bench = make_bench(size);
    struct bw_xlator *window = NULL;
    expect_error(try_window(bench, offset, length, &window), BW_ERROR_USAGE, message);
    free_bench(bench);
}

static void test_length(void **state)
{
    check_length(SIZE, "0", "0", SIZE);
    check_length(SIZE, "1K", "0", SIZE - 1024);
    check_length(SIZE, "1K", "1", 1);
    check_length(SIZE, "0", "100000", SIZE);
    check_length(SIZE, "99999", "1", 1);
    check_length(SIZE, "100000", "0", 0);
    check_length(0, "0", "0", 0);
    check_length(UINT64_MAX, "18446744073709551615", "0", 0);
    check_length(UINT64_MAX, "1", "18446744073709551614", UINT64_MAX - 1);
}

static void test_refused(void **state)
{
    check_refused(SIZE, "100001", "0", "begins at 100001, after the end of layer-0 at 100000");
    check_refused(SIZE, "18446744073709551615", "0",
                  "begins at 18446744073709551615, after the end");
    check_refused(SIZE, "0", "100001",
                  "of 100001 bytes at 0 ends after the end of layer-0 at 100000");
    check_refused(SIZE, "99999", "2", "of 2 bytes at 99999 ends after the end");
    check_refused(SIZE, "1", "18446744073709551615",
                  "of 18446744073709551615 bytes at 1 ends after");
    check_refused(SIZE, "99999", "18446744073709551615", "ends after");
    check_refused(UINT64_MAX, "2", "18446744073709551615", "ends after");
    check_refused(SIZE, "-1", "0", "option offset");
}

/* More than a slice of requests, of which every third leaves the window. */
static void test_batch(void **state)
{
    enum { COUNT = 200, LENGTH = 100, OFFSET = 5000, WINDOW = 60000 };
    struct bench *bench = make_bench(SIZE);
    struct bw_xlator *window = NULL;
    uint8_t buffers[COUNT][LENGTH];
    struct bw_request requests[COUNT];
    expect_success(try_window(bench, "5000", "60000", &window));
    for (size_t i = 0; i < COUNT; i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_RAW,
                                          .mirror = 1,
                                          .length = LENGTH,
                                          .address = i % 3 ? i * 250 : WINDOW - LENGTH + 1 + i,
                                          .buffer = buffers[i]};
    bw_wind(NULL, window, requests, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0) {
            expect_error(requests[i].error, BW_ERROR_CORRUPT,
                         "the window ends at 60000, before the end of 100 bytes at ");
            continue;
        }
        expect_success(requests[i].error);
        assert_int_equal(requests[i].address, i * 250);
        assert_memory_equal(buffers[i], bench->bytes + OFFSET + i * 250, LENGTH);
    }
    assert_int_equal(bench->fake.read_count, COUNT - (COUNT + 2) / 3);
    assert_int_equal(bench->fake.reads[0].copy, 1);
    free_bench(bench);
}

static void test_edges(void **state)
{
    static const struct {
        uint64_t address;
        uint32_t length;
        bool inside;
    } reads[] = {{0, 1, true},
                 {0, 1000, true},
                 {999, 1, true},
                 {0, 1001, false},
                 {999, 2, false},
                 {1000, 1, false},
                 {UINT64_MAX, 1, false},
                 {UINT64_MAX, UINT32_MAX, false},
                 {0, UINT32_MAX, false},
                 {500, 500, true},
                 {UINT64_MAX - 50000, 1, false},
                 {1, 1000, false}};
    struct bench *bench = make_bench(SIZE);
    struct bw_xlator *window = NULL;
    uint8_t buffer[1000];
    expect_success(try_window(bench, "50000", "1000", &window));
    for (size_t i = 0; i < COUNT(reads); i++) {
        size_t before = bench->fake.read_count;
        struct bw_error *error = read_range(window, reads[i].address, buffer, reads[i].length);
        assert_int_equal(bench->fake.read_count - before, reads[i].inside);
        if (reads[i].inside) {
            expect_success(error);
            assert_memory_equal(buffer, bench->bytes + 50000 + reads[i].address, reads[i].length);
        } else {
            expect_error(error, BW_ERROR_CORRUPT, "the window ends at 1000, ");
        }
    }
    free_bench(bench);
}

/* Errors from below are passed on unchanged. */
static void test_error_from_below(void **state)
{
    struct bench *bench = make_bench(SIZE);
    struct bw_xlator *window = NULL;
    uint8_t buffer[10];
    expect_success(try_window(bench, "10", "0", &window));
    bench->fake.broken[0] = true;
    expect_error(read_range(window, 0, buffer, sizeof buffer), BW_ERROR_SYSTEM,
                 "fake copy 1 is broken");
    free_bench(bench);
}

static void test_hints(void **state)
{
    static const struct bw_range given[] = {{0, 10},           {990, 100}, {1000, 1},
                                            {999, UINT64_MAX}, {2000, 0},  {UINT64_MAX, 1000},
                                            {0, UINT64_MAX}};
    static const struct bw_range wanted[] = {{500, 10}, {1490, 10}, {1499, 1}, {500, 1000}};
    struct bench *bench = make_bench(SIZE);
    struct bw_xlator *window = NULL;
    expect_success(try_window(bench, "500", "1000", &window));
    bw_wind_advise(NULL, window, given, COUNT(given), 0);
    assert_int_equal(bench->fake.hint_count, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_int_equal(bench->fake.hints[i].address, wanted[i].address);
        assert_int_equal(bench->fake.hints[i].length, wanted[i].length);
    }
    bw_wind_advise(NULL, window, given + 4, 2, 0);
    assert_int_equal(bench->fake.hint_calls, COUNT(wanted));
    for (unsigned i = 0; i < 20; i++) /* 140 of them */
        bw_wind_advise(NULL, window, given, COUNT(given), 0);
    assert_int_equal(bench->fake.hint_count, 21 * COUNT(wanted));
    free_bench(bench);
}

/* Copies the one device of an image behind a header; the answer is the new file. */
static int write_behind_header(const struct iw_image *image, uint64_t header)
{
    static uint8_t bytes[65536];
    int descriptor = memfd_create("disk", MFD_CLOEXEC);
    uint64_t size = iw_device_size(image, 0);
    for (uint64_t done = 0; done < size; done += sizeof bytes) {
        size_t length = size - done < sizeof bytes ? (size_t)(size - done) : sizeof bytes;
        iw_device_read(image, 0, done, bytes, length);
        assert_int_equal(pwrite(descriptor, bytes, length, (off_t)(header + done)), length);
    }
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(pwrite(descriptor, bytes, sizeof bytes, (off_t)(header + size)), sizeof bytes);
    return descriptor;
}

/* A file system that does not begin where its file does is found through the window, and only
 * there. */
static void test_walk(void **state)
{
    enum { HEADER = 12345 };
    struct iw_image *image = sample_image(&(struct iw_options){0});
    int descriptor = write_behind_header(image, HEADER);
    struct graph_changes changes = {0};
    struct bw_fs *fs = NULL;
    char path[32];
    const char *const paths[] = {path};
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    expect_error(open_changed(paths, 1, NULL, NULL, &fs), BW_ERROR_NOT_BTRFS, NULL);
    insert_layer(&changes, "layout/window@device-1,offset=%d,length=%" PRIu64, HEADER,
                 iw_device_size(image, 0));
    expect_success(open_changed(paths, 1, &changes, NULL, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    expect_success(result.error);
    expect_paths(image, &result);
    walk_result_free(&result);
    bw_fs_close(fs);
    close(descriptor);
    iw_destroy(image);
}
