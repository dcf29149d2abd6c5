/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/trace: what its lines say, which there are, and where they go. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/block_bench.h"
#include "support/debug_bench.h"

struct trace_bench {
    struct block_bench *blocks;
    struct memory_output output;
    struct bw_graph *graph;
    struct bw_xlator *top;
    uint8_t buffer[BENCH_NODESIZE];
};

/* A trace with one more option, above logical addresses. */
static struct trace_bench *make_bench(const char *key, const char *value)
{
    struct trace_bench *bench = calloc(1, sizeof *bench);
    bench->blocks = block_bench_create(2, BW_CHECKSUM_CRC32C);
    bench->output = output_create();
    bench->graph = fake_graph(NULL);
    const struct option_value options[] = {{"file", bench->output.path}, {key, value}, {0}};
    bench->top = add_layer(bench->graph, "debug/trace",
                           add_fake(bench->graph, &bench->blocks->fake), options);
    return bench;
}

static void free_bench(struct trace_bench *bench)
{
    bw_graph_destroy(bench->graph);
    output_free(&bench->output);
    block_bench_free(bench->blocks);
    free(bench);
}

static struct bw_request request_of(struct trace_bench *bench, enum bw_request_kind kind,
                                    uint64_t address, uint8_t copy)
{
    return (struct bw_request){
        .kind = kind, .mirror = copy, .length = 512, .address = address, .buffer = bench->buffer};
}

static void test_lines(void **state)
{
    struct trace_bench *bench = make_bench(NULL, NULL);
    const struct bw_tree_block_expectation wanted = {.owner = 257, .level = 3, .generation = 99};
    struct bw_request requests[] = {request_of(bench, BW_REQUEST_TREE_BLOCK, 4096, 0),
                                    request_of(bench, BW_REQUEST_SUPER, 65536, 1),
                                    request_of(bench, BW_REQUEST_DATA, 1 << 20, 2),
                                    request_of(bench, BW_REQUEST_RAW, UINT64_MAX, 0)};
    requests[0].expectation = &wanted;
    requests[0].length = 1024;
    bench->blocks->fake.broken[1] = true;
    bw_wind(NULL, bench->top, requests, COUNT(requests));
    assert_int_equal(bench->blocks->fake.calls, 1);
    assert_memory_equal(bench->buffer, block_bench_bytes(bench->blocks, 1, 16), 512);
    expect_success(requests[0].error);
    expect_error(requests[2].error, BW_ERROR_SYSTEM, "fake copy 2 is broken");
    expect_error(requests[3].error, BW_ERROR_CORRUPT, "behind the fake's end");
    expect_output(
        &bench->output,
        "layer-1 > tree-block address 4096 length 1024 mirror any owner 257 level 3 generation 99\n"
        "layer-1 > super address 65536 length 512 mirror 1\n"
        "layer-1 > data address 1048576 length 512 mirror 2\n"
        "layer-1 > raw address 18446744073709551615 length 512 mirror any\n"
        "layer-1 < tree-block address 4096 length 1024 mirror any ok\n"
        "layer-1 < super address 65536 length 512 mirror 1 ok\n"
        "layer-1 < data address 1048576 length 512 mirror 2 error: fake copy 2 is broken\n"
        "layer-1 < raw address 18446744073709551615 length 512 mirror any error: behind the fake's "
        "end\n");
    free_bench(bench);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *choice, *wanted;
    } cases[] = {
        {"super", "layer-1 > super address 1 length 512 mirror any\n"
                  "layer-1 < super address 1 length 512 mirror any ok\n"},
        {"tree-block", "layer-1 > tree-block address 2 length 512 mirror any\n"
                       "layer-1 < tree-block address 2 length 512 mirror any ok\n"},
        {"data", "layer-1 > data address 3 length 512 mirror any\n"
                 "layer-1 < data address 3 length 512 mirror any ok\n"},
        {"raw", "layer-1 > raw address 4 length 512 mirror any\n"
                "layer-1 < raw address 4 length 512 mirror any ok\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trace_bench *bench = make_bench("kind", cases[i].choice);
        struct bw_request requests[] = {request_of(bench, BW_REQUEST_SUPER, 1, 0),
                                        request_of(bench, BW_REQUEST_TREE_BLOCK, 2, 0),
                                        request_of(bench, BW_REQUEST_DATA, 3, 0),
                                        request_of(bench, BW_REQUEST_RAW, 4, 0)};
        bw_wind(NULL, bench->top, requests, COUNT(requests));
        assert_int_equal(bench->blocks->fake.read_count, COUNT(requests));
        expect_output(&bench->output, cases[i].wanted);
        free_bench(bench);
    }
}

static void test_other_operations(void **state)
{
    struct trace_bench *bench = make_bench("operations", "read");
    expect_passes(bench->top, &bench->blocks->fake);
    expect_output(&bench->output, "");
    free_bench(bench);
    bench = make_bench("operations", "all");
    expect_passes(bench->top, &bench->blocks->fake);
    expect_output(&bench->output,
                  "layer-1 > map address 8192 length 512 mirror 3\n"
                  "layer-1 < map address 8192 length 512 mirror 3 ok: mirrors 2 device 3 offset "
                  "8192 length 512\n"
                  "layer-1 > advise address 4096 length 100\n");
    free_bench(bench);
}

static void test_mappings(void **state)
{
    struct memory_output output = output_create();
    struct bw_graph *graph = threads_graph(NULL);
    const struct option_value options[] = {{"file", output.path}, {"operations", "all"}, {0}};
    struct bw_xlator *top = add_layer(graph, "debug/trace", graph->layers.items[0], options);
    struct bw_map_reply reply;
    expect_success(bw_wind_map(NULL, top, 5, 2, 7, &reply));
    expect_success(bw_wind_map(NULL, top, 5, 2, 8, &reply));
    expect_output(
        &output,
        "layer-1 > map address 5 length 2 mirror 7\n"
        "layer-1 < map address 5 length 2 mirror 7 ok: mirrors 9 device 7 offset 5 length 2 "
        "missing\n"
        "layer-1 > map address 5 length 2 mirror 8\n"
        "layer-1 < map address 5 length 2 mirror 8 ok: mirrors 9 device 8 offset 5 length 2 "
        "rebuilt\n");
    bw_graph_destroy(graph);
    output_free(&output);
}

/* Above devices nothing answers a question for a mapping. */
static void test_devices(void **state)
{
    static const uint8_t bytes[16] = "bytes";
    uint8_t buffer[16];
    struct fake_layer fake = {.copies = {bytes}, .size = sizeof bytes};
    struct memory_output output = output_create();
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"file", output.path}, {"operations", "all"}, {0}};
    struct bw_xlator *top = add_layer(graph, "debug/trace", add_fake_device(graph, &fake), options);
    struct bw_map_reply reply;
    expect_success(read_range(top, 3, buffer, 5));
    assert_memory_equal(buffer, bytes + 3, 5);
    expect_error(bw_wind_map(NULL, top, 1, 2, 300, &reply), BW_ERROR_USAGE, "no layer below");
    expect_output(&output,
                  "layer-1 > raw address 3 length 5 mirror any\n"
                  "layer-1 < raw address 3 length 5 mirror any ok\n"
                  "layer-1 > map address 1 length 2 mirror 300\n"
                  "layer-1 < map address 1 length 2 mirror 300 error: no layer below layer-0 maps "
                  "addresses\n");
    bw_graph_destroy(graph);
    output_free(&output);
}

/* Lower layers are indented more; their calls and returns are between those of the layer above. */
static void test_depth(void **state)
{
    struct trace_bench *bench = make_bench(NULL, NULL);
    const struct option_value options[] = {{"file", bench->output.path}, {0}};
    struct bw_xlator *upper = add_layer(bench->graph, "debug/trace", bench->top, options);
    struct bw_request request = request_of(bench, BW_REQUEST_RAW, 0, 0);
    bw_wind(NULL, upper, &request, 1);
    expect_output(&bench->output, "layer-2 > raw address 0 length 512 mirror any\n"
                                  "  layer-1 > raw address 0 length 512 mirror any\n"
                                  "  layer-1 < raw address 0 length 512 mirror any ok\n"
                                  "layer-2 < raw address 0 length 512 mirror any ok\n");
    free_bench(bench);
}

/* Names and messages can neither begin a new line nor control a terminal. */
static void test_escapes(void **state)
{
    uint8_t buffer[8];
    struct memory_output output = output_create();
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *child = graph->layers.items[0], *top = NULL;
    const struct option_value options[] = {{"file", output.path}, {0}};
    expect_success(graph_add_above(graph, child, "debug/trace", "a\nb \x1b", options, &top));
    struct bw_request request = {
        .kind = BW_REQUEST_DATA, .mirror = 9, .length = 8, .buffer = buffer};
    bw_wind(NULL, top, &request, 1);
    expect_error(request.error, BW_ERROR_CORRUPT, "red\n");
    expect_output(
        &output, "a\\nb \\033 > data address 0 length 8 mirror 9\n"
                 "a\\nb \\033 < data address 0 length 8 mirror 9 error: no \\033[31mred\\n copy\n");
    bw_graph_destroy(graph);
    output_free(&output);
}

/* Reads the output of one write; 0: none. */
static size_t receive(int socket, char *text, size_t size)
{
    ssize_t length = recv(socket, text, size - 1, MSG_DONTWAIT);
    text[length > 0 ? length : 0] = 0;
    return length > 0 ? (size_t)length : 0;
}

/* A batch of any size causes one write to stderr on the way down and one on the way up. */
static void test_one_write_to_stderr(void **state)
{
    enum { BATCH = 150 };
    static uint8_t buffers[BATCH][16];
    static char down[65536], up[65536], more[65536];
    struct bw_request requests[BATCH];
    int sockets[2], real = dup(STDERR_FILENO);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *top = add_layer(graph, "debug/trace", graph->layers.items[0], NULL);
    for (size_t i = 0; i < BATCH; i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .length = 16, .address = i, .buffer = buffers[i]};
    dup2(sockets[0], STDERR_FILENO);
    bw_wind(NULL, top, requests, BATCH);
    bw_graph_destroy(graph);
    dup2(real, STDERR_FILENO);
    assert_true(receive(sockets[1], down, sizeof down));
    assert_true(receive(sockets[1], up, sizeof up));
    assert_false(receive(sockets[1], more, sizeof more));
    assert_non_null(strstr(down, "layer-1 > raw address 0 length 16 mirror any\n"));
    assert_non_null(strstr(down, "\nlayer-1 > raw address 149 length 16 mirror any\n"));
    assert_null(strchr(down, '<'));
    assert_non_null(strstr(up, "layer-1 < raw address 0 length 16 mirror any ok\n"));
    assert_non_null(strstr(up, "\nlayer-1 < raw address 149 length 16 mirror any ok\n"));
    assert_null(strchr(up, '>'));
    close(sockets[0]);
    close(sockets[1]);
    close(real);
}

/* A file is made, then appended to. */
static void test_file_is_appended_to(void **state)
{
    char folder[] = "/tmp/btrfs-walk-test-XXXXXX", path[64], buffer[8];
    char line[256] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/trace", folder);
    for (unsigned round = 1; round <= 2; round++) {
        const struct option_value options[] = {{"file", path}, {0}};
        struct bw_graph *graph = threads_graph(NULL);
        struct bw_xlator *top = add_layer(graph, "debug/trace", graph->layers.items[0], options);
        expect_success(read_range(top, round, buffer, 8));
        bw_graph_destroy(graph);
    }
    FILE *file = fopen(path, "r");
    for (unsigned number = 0; number < 4; number++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(line[8], number % 2 ? '<' : '>');
        assert_int_equal(line[22], number < 2 ? '1' : '2');
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    rmdir(folder);
}

static const char *find_block_device(void)
{
    static const char *const paths[] = {"/dev/loop0", "/dev/sda", "/dev/vda", "/dev/nvme0n1",
                                        "/dev/ram0"};
    struct stat status;
    for (size_t i = 0; i < COUNT(paths); i++)
        if (stat(paths[i], &status) == 0 && S_ISBLK(status.st_mode))
            return paths[i];
    return NULL;
}

static void test_refused_files(void **state)
{
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *child = graph->layers.items[0];
    const char *device = find_block_device();
    expect_error(try_option(graph, "debug/trace", child, "file", "/dev"), BW_ERROR_SYSTEM,
                 "cannot open /dev for writing: Is a directory");
    expect_error(try_option(graph, "debug/trace", child, "file", "/nowhere/trace"), BW_ERROR_SYSTEM,
                 "cannot open /nowhere/trace");
    if (device)
        expect_error(try_option(graph, "debug/trace", child, "file", device), BW_ERROR_USAGE,
                     "is a block device, not a file to write to");
    assert_int_equal(graph->layers.count, 1);
    bw_graph_destroy(graph);
}

/* A full disk costs the trace, not the reads, and is reported once. */
static void test_full_disk(void **state)
{
    uint8_t buffer[8];
    struct report_log log = {0};
    struct bw_graph *graph = threads_graph(&log);
    const struct option_value options[] = {{"file", "/dev/full"}, {0}};
    struct bw_xlator *top = add_layer(graph, "debug/trace", graph->layers.items[0], options);
    for (unsigned i = 0; i < 3; i++)
        expect_success(read_range(top, 0, buffer, 8));
    bw_graph_destroy(graph);
    assert_int_equal(log.counts[BW_WARNING], 1);
    assert_int_equal(
        report_log_count(&log, "output of layer-1 to /dev/full is incomplete: cannot write: No "
                               "space left"),
        1);
    report_log_free(&log);
}
