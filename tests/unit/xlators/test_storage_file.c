/* SPDX-License-Identifier: GPL-2.0-or-later */
/* storage/file: each request gets its own bytes, whatever the order and shape of a batch; and files
 * that cannot be opened. */
#include "base/json.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { SIZE = 1 << 20 };

struct memory_file {
    int descriptor;
    char path[32];
    uint8_t *bytes; /* its content */
};

static struct memory_file make_file(void)
{
    struct memory_file file = {.descriptor = memfd_create("file", MFD_CLOEXEC),
                               .bytes = malloc(SIZE)};
    for (size_t i = 0; i < SIZE; i++)
        file.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_int_equal(write(file.descriptor, file.bytes, SIZE), SIZE);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

static void free_file(struct memory_file *file)
{
    close(file->descriptor);
    free(file->bytes);
}

static struct bw_error *try_open(struct bw_graph *graph, const char *path, struct bw_xlator **made)
{
    const struct option_value options[] = {{"path", path}, {0}};
    const struct layer layer = {.type = "storage/file", .name = "file", .options = options};
    return graph_add(graph, &layer, made);
}

/* Reads ranges in one batch and compares each with the content. A NULL buffer is no range. */
static void check_batch(struct bw_xlator *layer, const struct memory_file *file,
                        const uint64_t (*ranges)[2], size_t count)
{
    struct bw_request *requests = calloc(count, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_RAW,
                                          .address = ranges[i][0],
                                          .length = (uint32_t)ranges[i][1],
                                          .buffer = malloc((size_t)ranges[i][1])};
    bw_wind(NULL, layer, requests, count);
    for (size_t i = 0; i < count; i++) {
        bool inside = ranges[i][0] <= SIZE && ranges[i][1] <= SIZE - ranges[i][0];
        if (inside) {
            expect_success(requests[i].error);
            assert_memory_equal(requests[i].buffer, file->bytes + ranges[i][0],
                                (size_t)ranges[i][1]);
        } else {
            expect_error(requests[i].error, BW_ERROR_CORRUPT, "ends at 1048576, before offset");
        }
        free(requests[i].buffer);
    }
    free(requests);
}

static void test_batches(void **state)
{
    static const uint64_t ranges[][2] = {
        {40960, 4096}, {0, 4096},     {4096, 4096}, {8192, 100},   {8292, 1},      {8293, 70000},
        {40960, 4096}, {40960, 8192}, {40961, 1},   {SIZE - 1, 1}, {SIZE - 10, 9}, {300000, 5},
        {0, 4096},     {299995, 5},   {0, 1},       {1, 1},        {2, 1},
    };
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    expect_success(try_open(graph, file.path, &layer));
    assert_int_equal(bw_xlator_size(layer), SIZE);
    for (size_t count = 1; count <= COUNT(ranges); count++)
        check_batch(layer, &file, ranges, count);
    bw_graph_destroy(graph);
    free_file(&file);
}

static void test_random_batches(void **state)
{
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    uint64_t ranges[200][2], random = 42;
    expect_success(try_open(graph, file.path, &layer));
    for (unsigned round = 0; round < 40; round++) {
        for (size_t i = 0; i < COUNT(ranges); i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            ranges[i][1] = 1 + (random >> 33) % 9000;
            ranges[i][0] = i && random >> 60 < 8 ? ranges[i - 1][0] + ranges[i - 1][1]
                                                 : (random >> 20) % (SIZE - 9000);
            if (ranges[i][0] > SIZE - 9000)
                ranges[i][0] = 17;
        }
        check_batch(layer, &file, ranges, COUNT(ranges));
    }
    bw_graph_destroy(graph);
    free_file(&file);
}

/* Reads behind the end fail, and only they. */
static void test_past_the_end(void **state)
{
    static const uint64_t ranges[][2] = {
        {SIZE - 4096, 4096},
        {SIZE, 4096},
        {SIZE - 1, 2},
        {SIZE + 4096, 1},
        {0, 10},
        {UINT64_MAX - 4095, 4096},
        {UINT64_MAX, 1},
        {UINT64_C(1) << 63, 1},
        {SIZE - 8192, 4096},
        {SIZE - 4096, 4097},
    };
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    expect_success(try_open(graph, file.path, &layer));
    check_batch(layer, &file, ranges, COUNT(ranges));
    check_batch(layer, &file, ranges, 3);
    assert_int_equal(bw_xlator_counters(layer, BW_REQUEST_RAW).errors, 7 + 2);
    bw_graph_destroy(graph);
    free_file(&file);
}

static void test_file_that_shrinks(void **state)
{
    uint8_t bytes[4096];
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    expect_success(try_open(graph, file.path, &layer));
    assert_int_equal(ftruncate(file.descriptor, 100000), 0);
    expect_success(read_range(layer, 0, bytes, sizeof bytes));
    expect_error(read_range(layer, 99000, bytes, sizeof bytes), BW_ERROR_CORRUPT, "shrank");
    expect_error(read_range(layer, 200000, bytes, sizeof bytes), BW_ERROR_CORRUPT, "shrank");
    /* In the page of the new end. */
    expect_success(read_range(layer, 99999, bytes, 1));
    expect_error(read_range(layer, 99999, bytes, 2), BW_ERROR_CORRUPT, "shrank");
    expect_error(read_range(layer, 100000, bytes, 1), BW_ERROR_CORRUPT, "shrank");
    bw_graph_destroy(graph);
    free_file(&file);
}

static void test_hints(void **state)
{
    static const struct bw_range ranges[] = {
        {0, 4096}, {SIZE, 4096}, {0, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {0, 0}};
    uint8_t byte;
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    expect_success(try_open(graph, file.path, &layer));
    bw_wind_advise(NULL, layer, ranges, COUNT(ranges), 0);
    bw_error_free(read_range(layer, SIZE, &byte, 1));
    bw_wind_advise(NULL, layer, ranges, COUNT(ranges), 0);
    expect_success(read_range(layer, 5, &byte, 1));
    assert_int_equal(byte, file.bytes[5]);
    bw_graph_destroy(graph);
    free_file(&file);
}

static void test_what_cannot_be_opened(void **state)
{
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    char folder[] = "/tmp/btrfs-walk-test-XXXXXX", fifo[64];
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_error(try_open(graph, "/nonexistent/x.img", &layer), BW_ERROR_SYSTEM,
                 "cannot open /nonexistent/x.img: No such");
    expect_error(try_open(graph, "", &layer), BW_ERROR_SYSTEM, "No such file");
    expect_error(try_open(graph, folder, &layer), BW_ERROR_USAGE,
                 "is a directory, not an image file");
    expect_error(try_open(graph, fifo, &layer), BW_ERROR_USAGE, "is a special file");
    expect_error(try_open(graph, "/dev/null", &layer), BW_ERROR_USAGE, "is a special file");
    const struct layer layer_without_path = {.type = "storage/file", .name = "file"};
    expect_error(graph_add(graph, &layer_without_path, &layer), BW_ERROR_USAGE,
                 "option path must be given");
    assert_int_equal(graph->layers.count, 0);
    unlink(fifo);
    rmdir(folder);
    bw_graph_destroy(graph);
}

static void test_empty_file(void **state)
{
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    struct memory_file file = make_file();
    uint8_t byte;
    assert_int_equal(ftruncate(file.descriptor, 0), 0);
    expect_success(try_open(graph, file.path, &layer));
    assert_int_equal(bw_xlator_size(layer), 0);
    expect_error(read_range(layer, 0, &byte, 1), BW_ERROR_CORRUPT, "ends at 0");
    bw_graph_destroy(graph);
    free_file(&file);
}

static void test_dump(void **state)
{
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    expect_success(try_open(graph, file.path, &layer));
    bw_json_begin_object(&json, NULL);
    bw_storage_file_class.operations.dump(layer, &json);
    bw_json_end(&json);
    const char *wanted = "{\"size\":1048576,\"block_device\":false,\"cold\":false}";
    assert_int_equal(text.length, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.length);
    bw_buffer_free(&text);
    bw_graph_destroy(graph);
    free_file(&file);
}

/* Whether the layer announces ranges to the kernel. */
static bool is_cold(struct bw_xlator *layer)
{
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    bw_json_begin_object(&json, NULL);
    bw_storage_file_class.operations.dump(layer, &json);
    bw_json_end(&json);
    const bool cold = memmem(text.data, text.length, "\"cold\":true", 11);
    bw_buffer_free(&text);
    return cold;
}

/* Removes a file from the page cache; false if its file system keeps files in memory. Pages that
 * are being read are removed later. */
static bool evict(int descriptor)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char states[SIZE / 4096];
    void *bytes = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_true(bytes != MAP_FAILED);
    assert_int_equal(fsync(descriptor), 0);
    bool is_gone = false;
    for (unsigned attempt = 0; attempt < 1000 && !is_gone; attempt++) {
        is_gone = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
                  mincore(bytes, SIZE, states) == 0;
        for (size_t i = 0; i < SIZE / page && is_gone; i++)
            is_gone = !(states[i] & 1);
        usleep(is_gone ? 0 : 100);
    }
    munmap(bytes, SIZE);
    return is_gone;
}

/* A layer whose first reads have missed the page cache. Most may still hit it, because the kernel
 * begins to read, and a fast disk is done before the kernel looks again. */
static struct bw_xlator *open_cold(struct bw_graph *graph, const struct memory_file *file)
{
    uint8_t byte;
    struct bw_xlator *layer = NULL;
    expect_success(try_open(graph, file->path, &layer));
    assert_false(is_cold(layer));
    for (unsigned i = 0; i < 10000 && !is_cold(layer); i++) {
        assert_true(evict(file->descriptor));
        expect_success(read_range(layer, i % 4 * (SIZE / 4), &byte, 1));
    }
    assert_true(is_cold(layer));
    return layer;
}

/* Whether a layer still announces ranges after most of the first ones have missed the page cache.
 * With a fast disk, most may hit it. */
static bool stays_cold(const struct memory_file *file, const struct bw_range *ranges, size_t count)
{
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = open_cold(graph, file);
    for (size_t i = 0; i < 20; i++) {
        assert_true(evict(file->descriptor));
        bw_wind_advise(NULL, layer, &ranges[i], 1, 0);
    }
    assert_int_equal(pread(file->descriptor, file->bytes, SIZE, 0), SIZE);
    bw_wind_advise(NULL, layer, ranges, count, 0);
    bw_wind_advise(NULL, layer, ranges, count, 0);
    const bool cold = is_cold(layer);
    bw_graph_destroy(graph);
    return cold;
}

/* If only the first reads of a file miss the page cache, its ranges are soon no longer announced;
 * if the others miss it as well, they always are. */
static void test_first_reads_that_miss(void **state)
{
    struct memory_file file = make_file();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_range ranges[64];
    for (size_t i = 0; i < COUNT(ranges); i++)
        ranges[i] = (struct bw_range){i * (SIZE / COUNT(ranges)), 4096};
    char name[] = "storage-file-XXXXXX";
    close(file.descriptor);
    file.descriptor = mkstemp(name);
    unlink(name);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    assert_int_equal(write(file.descriptor, file.bytes, SIZE), SIZE);
    const bool can_evict = evict(file.descriptor);
    if (can_evict) {
        struct bw_xlator *layer = open_cold(graph, &file);
        assert_int_equal(pread(file.descriptor, file.bytes, SIZE, 0), SIZE);
        bw_wind_advise(NULL, layer, ranges, 40, 0);
        assert_true(is_cold(layer));
        bw_wind_advise(NULL, layer, ranges, 40, 0);
        assert_false(is_cold(layer));

        bool cold = false;
        for (unsigned i = 0; i < 100 && !cold; i++)
            cold = stays_cold(&file, ranges, COUNT(ranges));
        assert_true(cold);
    }
    bw_graph_destroy(graph);
    free_file(&file);
    if (!can_evict)
        skip();
}
