/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/io-stats: its numbers, and the forms they come in. */
#include <unistd.h>

#include "support/block_bench.h"
#include "support/debug_bench.h"
#include "xlators/classes.h"

static uint8_t room[1 << 20];

struct stats_bench {
    struct memory_output output;
    struct bw_graph *graph;
    struct bw_xlator *top;
};

static struct stats_bench make_bench(const char *format)
{
    struct stats_bench bench = {.output = output_create(), .graph = threads_graph(NULL)};
    const struct option_value options[] = {{"file", bench.output.path}, {"format", format}, {0}};
    bench.top = add_layer(bench.graph, "debug/io-stats", bench.graph->layers.items[0], options);
    return bench;
}

/* Takes the layer down and returns its report, to be freed. */
static char *finish_bench(struct stats_bench *bench)
{
    expect_output(&bench->output, "");
    bw_graph_destroy(bench->graph);
    char *text = output_text(&bench->output);
    output_free(&bench->output);
    return text;
}

static struct bw_request request_of(enum bw_request_kind kind, uint32_t length)
{
    return (struct bw_request){.kind = kind, .length = length, .buffer = room};
}

/* A small JSON checker: returns the text after the value, or NULL. */

static const char *skip_value(const char *text);

static const char *skip_string(const char *text)
{
    if (*text++ != '"')
        return NULL;
    while (*text && *text != '"')
        text += text[0] == '\\' && text[1] ? 2 : 1;
    return *text ? text + 1 : NULL;
}

static const char *skip_members(const char *text, char closing)
{
    if (*text == closing)
        return text + 1;
    for (;;) {
        if (closing == '}') {
            text = skip_string(text);
            if (!text || *text++ != ':')
                return NULL;
        }
        text = skip_value(text);
        if (!text || (*text != ',' && *text != closing))
            return NULL;
        if (*text++ == closing)
            return text;
    }
}

static const char *skip_value(const char *text)
{
    if (*text == '{' || *text == '[')
        return skip_members(text + 1, *text == '{' ? '}' : ']');
    if (*text == '"')
        return skip_string(text);
    size_t digits = strspn(text, "0123456789");
    return digits ? text + digits : NULL;
}

static void expect_json_line(const char *text)
{
    const char *end = skip_value(text);
    assert_non_null(end);
    assert_string_equal(end, "\n");
}

/* The number of the next member with this name; moves `*text` after it. */
static uint64_t next_number(const char **text, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    *text = strstr(*text, quoted);
    assert_non_null(*text);
    *text += strlen(quoted);
    return strtoull(*text, NULL, 10);
}

static void test_nothing(void **state)
{
    struct stats_bench bench = make_bench("text");
    char *dump = dump_text(&bw_debug_io_stats_class, bench.top);
    assert_string_equal(dump, "{\"kinds\":{}}");
    free(dump);
    char *text = finish_bench(&bench);
    assert_string_equal(text, "layer-1\n");
    free(text);
    bench = make_bench("json");
    text = finish_bench(&bench);
    assert_string_equal(text, "{\"volume\":\"layer-1\",\"kinds\":{}}\n");
    free(text);
}

/* Two batches of blocks, of which one fails; one of data in several sizes. */
static void read_some(struct bw_xlator *top)
{
    struct bw_request blocks[] = {request_of(BW_REQUEST_TREE_BLOCK, 4096),
                                  request_of(BW_REQUEST_TREE_BLOCK, 4096),
                                  request_of(BW_REQUEST_TREE_BLOCK, 4096)};
    struct bw_request data[] = {request_of(BW_REQUEST_DATA, 1), request_of(BW_REQUEST_DATA, 2),
                                request_of(BW_REQUEST_DATA, 3), request_of(BW_REQUEST_DATA, 4),
                                request_of(BW_REQUEST_DATA, 1 << 20)};
    blocks[1].mirror = 9;
    bw_wind(NULL, top, blocks, 3);
    expect_error(blocks[1].error, BW_ERROR_CORRUPT, "copy");
    bw_wind(NULL, top, blocks + 2, 1);
    bw_wind(NULL, top, data, COUNT(data));
    for (size_t i = 0; i < COUNT(data); i++)
        expect_success(data[i].error);
    assert_int_equal(room[(1 << 20) - 1], 1);
}

static const char blocks_wanted[] =
    "\"kinds\":{\"tree-block\":{\"calls\":2,\"requests\":4,\"bytes\":16384,\"errors\":1,"
    "\"request_bytes\":{\"minimum\":4096,\"average\":4096,\"maximum\":4096},"
    "\"call_nanoseconds\":{\"minimum\":";
static const char data_wanted[] =
    "\"data\":{\"calls\":1,\"requests\":5,\"bytes\":1048586,\"errors\":0,\"request_bytes\":{"
    "\"minimum\":1,\"average\":209717,\"maximum\":1048576},\"call_nanoseconds\":{\"minimum\":";

static void test_json(void **state)
{
    struct stats_bench bench = make_bench("json");
    read_some(bench.top);
    char *dump = dump_text(&bw_debug_io_stats_class, bench.top);
    char *text = finish_bench(&bench);
    expect_json_line(text);
    assert_memory_equal(text, "{\"volume\":\"layer-1\",", 20);
    assert_non_null(strstr(text, blocks_wanted));
    assert_non_null(strstr(text, data_wanted));
    /* A statedump of that moment has the same. */
    assert_string_equal(strstr(text, "\"kinds\""), strcat(strstr(dump, "\"kinds\""), "\n"));
    free(dump);
    free(text);
}

/* Every call is timed, and the times are in order. */
static void test_times(void **state)
{
    struct stats_bench bench = make_bench("json");
    for (unsigned i = 0; i < 20; i++)
        read_some(bench.top);
    char *text = finish_bench(&bench);
    const char *at = text;
    assert_int_equal(next_number(&at, "calls"), 40);
    at = strstr(at, "call_nanoseconds");
    const uint64_t shortest = next_number(&at, "minimum"), average = next_number(&at, "average"),
                   longest = next_number(&at, "maximum");
    assert_true(shortest <= average && average <= longest);
    free(text);
}

/* Slow requests are counted as slow. */
static void test_delayed_calls(void **state)
{
    struct memory_output output = output_create();
    struct bw_graph *graph = threads_graph(NULL);
    const struct option_value delay[] = {{"delay", "3ms"}, {0}},
                              format[] = {{"file", output.path}, {0}};
    struct bw_xlator *below = add_layer(graph, "debug/delay-gen", graph->layers.items[0], delay);
    struct bw_xlator *top = add_layer(graph, "debug/io-stats", below, format);
    expect_success(read_range(top, 0, room, 100));
    char *text = dump_text(&bw_debug_io_stats_class, top);
    const char *at = strstr(text, "call_nanoseconds");
    assert_non_null(at);
    assert_true(next_number(&at, "minimum") >= 3000000);
    assert_true(next_number(&at, "average") >= 3000000);
    assert_true(next_number(&at, "maximum") >= 3000000);
    free(text);
    bw_graph_destroy(graph);
    output_free(&output);
}

static void test_text(void **state)
{
    static const char wanted[] =
        "  data: calls 1, requests 5, bytes 1048586, errors 0\n"
        "    bytes of a request: minimum 1, average 209717, maximum 1048576\n"
        "    nanoseconds of a call: minimum ";
    struct stats_bench bench = make_bench("text");
    read_some(bench.top);
    char *text = finish_bench(&bench);
    assert_memory_equal(text, "layer-1\n  tree-block: calls 2, requests 4, bytes 16384, errors 1\n",
                        64);
    assert_non_null(strstr(text, "\n    nanoseconds of a call: minimum "));
    assert_non_null(strstr(text, wanted));
    assert_null(strstr(text, "super"));
    assert_null(strstr(text, "raw"));
    free(text);
}

/* A batch of several kinds: requests are counted by kind, the call for the first one. */
static void test_mixed_kinds(void **state)
{
    struct stats_bench bench = make_bench("json");
    struct bw_request requests[] = {
        request_of(BW_REQUEST_RAW, 10),   request_of(BW_REQUEST_TREE_BLOCK, 9),
        request_of(BW_REQUEST_RAW, 20),   request_of(BW_REQUEST_RAW, 30),
        request_of(BW_REQUEST_SUPER, 64), request_of(BW_REQUEST_SUPER, UINT32_C(1) << 16)};
    bw_wind(NULL, bench.top, requests, COUNT(requests));
    char *text = finish_bench(&bench);
    expect_json_line(text);
    assert_non_null(strstr(text,
                           "\"super\":{\"calls\":0,\"requests\":2,\"bytes\":65600,\"errors\":0,"
                           "\"request_bytes\":{\"minimum\":64,\"average\":32800,"
                           "\"maximum\":65536}},"));
    assert_non_null(strstr(text, "\"tree-block\":{\"calls\":0,\"requests\":1,"));
    assert_non_null(strstr(text, "\"raw\":{\"calls\":1,\"requests\":3,\"bytes\":60,\"errors\":0,"
                                 "\"request_bytes\":{\"minimum\":10,\"average\":20,"
                                 "\"maximum\":30},\"call_nanoseconds\":"));
    free(text);
}

/* A batch is passed on unchanged, whatever its size, and so are mappings and hints. */
static void test_passes(void **state)
{
    struct block_bench *blocks = block_bench_create(3, BW_CHECKSUM_CRC32C);
    struct memory_output output = output_create();
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"file", output.path}, {0}};
    struct bw_xlator *top =
        add_layer(graph, "debug/io-stats", add_fake(graph, &blocks->fake), options);
    struct bw_request requests[200];
    for (size_t i = 0; i < COUNT(requests); i++)
        requests[i] = request_of(BW_REQUEST_TREE_BLOCK, BENCH_NODESIZE);
    bw_wind(NULL, top, requests, COUNT(requests));
    assert_int_equal(blocks->fake.calls, 1);
    assert_memory_equal(room, block_bench_bytes(blocks, 1, 0), BENCH_NODESIZE);
    assert_int_equal(dump_number(&bw_debug_io_stats_class, top, "calls"), 1);
    assert_int_equal(dump_number(&bw_debug_io_stats_class, top, "requests"), 200);
    expect_passes(top, &blocks->fake);
    bw_graph_destroy(graph);
    output_free(&output);
    block_bench_free(blocks);
}

static void test_devices(void **state)
{
    static const uint8_t bytes[16] = "bytes";
    uint8_t buffer[16];
    struct fake_layer fake = {.copies = {bytes}, .size = sizeof bytes};
    struct memory_output output = output_create();
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"file", output.path}, {0}};
    struct bw_xlator *top =
        add_layer(graph, "debug/io-stats", add_fake_device(graph, &fake), options);
    expect_success(read_range(top, 1, buffer, 5));
    assert_memory_equal(buffer, bytes + 1, 5);
    assert_int_equal(dump_number(&bw_debug_io_stats_class, top, "bytes"), 5);
    bw_graph_destroy(graph);
    output_free(&output);
}

enum { ROUNDS = 2000 };

static void read_in_thread(struct bw_xlator *top, unsigned thread)
{
    uint8_t buffer[64];
    struct bw_request requests[3];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < COUNT(requests); i++)
            requests[i] =
                (struct bw_request){.kind = thread % 2 ? BW_REQUEST_DATA : BW_REQUEST_TREE_BLOCK,
                                    .length = 1 + round % 64,
                                    .address = round,
                                    .buffer = buffer};
        bw_wind(NULL, top, requests, COUNT(requests));
    }
}

/* Nothing gets lost between threads. */
static void test_threads(void **state)
{
    struct stats_bench bench = make_bench("json");
    uint64_t bytes = 0;
    run_threads(read_in_thread, bench.top);
    for (unsigned round = 0; round < ROUNDS; round++)
        bytes += 3 * (1 + round % 64);
    char *text = finish_bench(&bench);
    const char *at = text;
    expect_json_line(text);
    for (unsigned kind = 0; kind < 2; kind++) {
        assert_int_equal(next_number(&at, "calls"), ROUNDS * THREADS / 2);
        assert_int_equal(next_number(&at, "requests"), 3 * ROUNDS * THREADS / 2);
        assert_int_equal(next_number(&at, "bytes"), bytes * THREADS / 2);
        assert_int_equal(next_number(&at, "minimum"), 1);
        assert_int_equal(next_number(&at, "average"), bytes / (3 * ROUNDS));
        assert_int_equal(next_number(&at, "maximum"), 64);
    }
    free(text);
}

/* A layer whose creation failed has no output. */
static void test_refused_file(void **state)
{
    struct report_log log = {0};
    struct bw_graph *graph = threads_graph(&log);
    expect_error(
        try_option(graph, "debug/io-stats", graph->layers.items[0], "file", "/nowhere/stats"),
        BW_ERROR_SYSTEM, "cannot open /nowhere/stats");
    expect_error(try_option(graph, "debug/io-stats", graph->layers.items[0], "format", "xml"),
                 BW_ERROR_USAGE, "'xml' is not one of: text, json");
    bw_graph_destroy(graph);
    assert_null(log.text.data);
    report_log_free(&log);
}

static void test_report_that_cannot_be_written(void **state)
{
    struct report_log log = {0};
    struct bw_graph *graph = threads_graph(&log);
    const struct option_value options[] = {{"file", "/dev/full"}, {0}};
    add_layer(graph, "debug/io-stats", graph->layers.items[0], options);
    bw_graph_destroy(graph);
    assert_int_equal(log.counts[BW_WARNING], 1);
    report_log_free(&log);
}
