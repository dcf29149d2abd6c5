/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * src/graph: what a graph refuses, passing through, counters, the stamp of the layer an error was
 * born in, options.
 */
#include "graph/graph.h"
#include "support/fake_layer.h"

static const char *const modes[] = {"fast", "slow", "slower", NULL};

static const struct bw_option all_options[] = {
    {"switch", BW_OPTION_BOOL, "off", 0, 0, "a boolean", NULL},
    {"number", BW_OPTION_INTEGER, "5", 2, 1000, "an integer", NULL},
    {"size", BW_OPTION_SIZE, "4K", 1024, UINT64_MAX, "a size", NULL},
    {"text", BW_OPTION_STRING, "nothing", 0, 0, "a string", NULL},
    {"rate", BW_OPTION_PERCENT, "100%", 0, BW_PERCENT_100, "a percentage", NULL},
    {"delay", BW_OPTION_TIME, "1ms", 0, 60 * UINT64_C(1000000000), "a time", NULL},
    {"mode", BW_OPTION_ENUM, "slow", 0, 0, "one of several", modes},
    {"input", BW_OPTION_PATH, "in", 0, 0, "a file", NULL},
    {"output", BW_OPTION_OUTPUT, "-", 0, 0, "a file", NULL},
    {0},
};

static const struct bw_option required_options[] = {
    {.name = "needed", .type = BW_OPTION_STRING, .description = "has no default"},
    {0},
};

static int initialised, finished;

static struct bw_error *count_init(struct bw_xlator *xlator)
{
    initialised++;
    return NULL;
}

static struct bw_error *fail_init(struct bw_xlator *xlator)
{
    return bw_error_create(BW_ERROR_USAGE, "init failed");
}

static void count_fini(struct bw_xlator *xlator)
{
    finished++;
}

static const struct bw_xlator_class options_class = {
    .type = "test/options",
    .above = BW_ADDRESS_LOGICAL,
    .options = all_options,
    .operations = {.init = count_init, .fini = count_fini}};
static const struct bw_xlator_class required_class = {
    .type = "test/required", .above = BW_ADDRESS_LOGICAL, .options = required_options};
static const struct bw_xlator_class failing_class = {
    .type = "test/failing",
    .above = BW_ADDRESS_LOGICAL,
    .operations = {.init = fail_init, .fini = count_fini}};
static const struct bw_xlator_class pair_class = {.type = "test/pair",
                                                  .above = BW_ADDRESS_LOGICAL,
                                                  .below = BW_ADDRESS_DEVICE,
                                                  .minimum_children = 2,
                                                  .maximum_children = 3};

static const struct bw_xlator_class *const classes[] = {
    &options_class,     &required_class,     &failing_class,   &pair_class,
    &fake_device_class, &fake_logical_class, &fake_pass_class, NULL};

static struct bw_graph *make_graph(struct report_log *log)
{
    return graph_of(classes, log);
}

/* Invalid graphs. */

static struct bw_error *try_layer(struct bw_graph *graph, const char *type, const char *name,
                                  struct bw_xlator *const *children, size_t count)
{
    struct bw_xlator *made = NULL;
    const struct layer layer = {
        .type = type, .name = name, .children = children, .child_count = count};
    return graph_add(graph, &layer, &made);
}

static void test_refusals(void **state)
{
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *device = add_layer(graph, "test/device", NULL, NULL);
    struct bw_xlator *logical = add_layer(graph, "test/logical", NULL, NULL);
    struct bw_xlator *devices[4] = {device}, *const mixed[] = {device, logical};
    for (size_t i = 1; i < COUNT(devices); i++)
        devices[i] = add_layer(graph, "test/device", NULL, NULL);
    expect_error(try_layer(graph, "test/none", "x", NULL, 0), BW_ERROR_USAGE,
                 "volume x: unknown type test/none");
    expect_error(try_layer(graph, "test/device", bw_xlator_name(device), NULL, 0), BW_ERROR_USAGE,
                 "a previous volume has the same name");
    expect_error(try_layer(graph, "test/device", "x", devices, 1), BW_ERROR_USAGE,
                 "takes 0 subvolumes, not 1");
    expect_error(try_layer(graph, "test/pass", "x", NULL, 0), BW_ERROR_USAGE,
                 "takes 1 subvolume, not 0");
    expect_error(try_layer(graph, "test/pass", "x", devices, 1), BW_ERROR_USAGE,
                 "address spaces do not fit");
    expect_error(try_layer(graph, "test/pair", "x", devices, 1), BW_ERROR_USAGE,
                 "takes 2 to 3 subvolumes, not 1");
    expect_error(try_layer(graph, "test/pair", "x", devices, 4), BW_ERROR_USAGE,
                 "takes 2 to 3 subvolumes, not 4");
    expect_error(try_layer(graph, "test/pair", "x", mixed, 2), BW_ERROR_USAGE, "do not fit");
    assert_int_equal(graph->layers.count, 5);
    expect_success(try_layer(graph, "test/pair", "x", devices, 3));
    expect_success(try_layer(graph, "test/pair", "y", devices, 2));
    assert_int_equal(graph->layers.count, 7);
    assert_int_equal(bw_xlator_child_count(graph->layers.items[5]), 3);
    assert_ptr_equal(bw_xlator_child(graph->layers.items[5], 1), devices[1]);
    bw_graph_destroy(graph);
    bw_graph_destroy(NULL);
}

/* Each layer of a stack needs some of the thread's own stack. */
static void test_height(void **state)
{
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *top = add_layer(graph, "test/logical", NULL, NULL);
    for (unsigned height = 2; height <= BW_GRAPH_HEIGHT; height++)
        top = add_layer(graph, "test/pass", top, NULL);
    assert_int_equal(top->height, BW_GRAPH_HEIGHT);
    expect_error(try_layer(graph, "test/pass", "x", &top, 1), BW_ERROR_USAGE,
                 "more than 128 layers");
    bw_graph_destroy(graph);
}

static void test_life_of_layers(void **state)
{
    struct bw_graph *graph = make_graph(NULL);
    initialised = finished = 0;
    expect_error(try_layer(graph, "test/failing", "f", NULL, 0), BW_ERROR_USAGE, "init failed");
    assert_int_equal(finished, 1);
    assert_int_equal(graph->layers.count, 0);
    struct bw_xlator *first = add_layer(graph, "test/options", NULL, NULL);
    struct bw_xlator *second = add_layer(graph, "test/options", NULL, NULL);
    assert_int_equal(initialised, 2);
    bw_graph_remove(graph, first);
    assert_int_equal(finished, 2);
    assert_int_equal(graph->layers.count, 1);
    assert_ptr_equal(graph->layers.items[0], second);
    expect_success(try_layer(graph, "test/device", "layer-0", NULL, 0)); /* the name is free again
                                                                          */
    bw_graph_destroy(graph);
    assert_int_equal(finished, 3);
}

/* Options. */

static struct bw_error *try_option(struct bw_graph *graph, const char *name, const char *value,
                                   struct bw_xlator **made)
{
    const struct option_value options[] = {{name, value}, {0}};
    const struct layer layer = {.type = "test/options", .name = "v", .options = options};
    return graph_add(graph, &layer, made);
}

static void test_option_defaults(void **state)
{
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *made = add_layer(graph, "test/options", NULL, NULL);
    assert_int_equal(bw_xlator_option_number(made, "switch"), 0);
    assert_int_equal(bw_xlator_option_number(made, "number"), 5);
    assert_int_equal(bw_xlator_option_number(made, "size"), 4096);
    assert_string_equal(bw_xlator_option_text(made, "text"), "nothing");
    assert_string_equal(bw_xlator_option_text(made, "size"), "4K");
    assert_int_equal(bw_xlator_option_number(made, "rate"), BW_PERCENT_100);
    assert_int_equal(bw_xlator_option_number(made, "delay"), 1000000);
    assert_int_equal(bw_xlator_option_number(made, "mode"), 1);
    expect_error(try_layer(graph, "test/required", "r", NULL, 0), BW_ERROR_USAGE,
                 "option needed must be given");
    bw_graph_destroy(graph);
}

static void test_option_values(void **state)
{
    static const struct {
        const char *name, *value;
        bool good;
        uint64_t number;
    } cases[] = {
        {"switch", "on", true, 1},
        {"switch", "off", true, 0},
        {"switch", "yes", true, 1},
        {"switch", "no", true, 0},
        {"switch", "true", true, 1},
        {"switch", "false", true, 0},
        {"switch", "1", true, 1},
        {"switch", "0", true, 0},
        {"switch", "2", false, 0},
        {"switch", "", false, 0},
        {"switch", "On", false, 0},
        {"number", "2", true, 2},
        {"number", "1000", true, 1000},
        {"number", "1", false, 0},
        {"number", "1001", false, 0},
        {"number", "-5", false, 0},
        {"number", "+5", false, 0},
        {"number", " -5", false, 0},
        {"number", "", false, 0},
        {"number", "5x", false, 0},
        {"number", "5K", false, 0},
        {"number", "0x10", false, 0},
        {"number", "five", false, 0},
        {"size", "1K", true, 1024},
        {"size", "3M", true, 3 << 20},
        {"size", "1G", true, 1 << 30},
        {"size", "2T", true, UINT64_C(2) << 40},
        {"size", "2048", true, 2048},
        {"size", "1023", false, 0},
        {"size", "1KB", false, 0},
        {"size", "1x", false, 0},
        {"size", "K", false, 0},
        {"size", "16777216T", false, 0},
        {"size", "18446744073709551615", true, UINT64_MAX},
        {"size", "18446744073709551616", false, 0},
        {"size", "16777215T", true, UINT64_C(16777215) << 40},
        {"size", "15E", true, UINT64_C(15) << 60},
        {"size", "3P", true, UINT64_C(3) << 50},
        {"size", "16E", false, 0},
        {"rate", "0", true, 0},
        {"rate", "100", true, BW_PERCENT_100},
        {"rate", "2.5%", true, 25000},
        {"rate", "0.0001", true, 1},
        {"rate", "7.", false, 0},
        {"rate", "7.0%", true, 70000},
        {"rate", "0.00001", false, 0},
        {"rate", "100.1", false, 0},
        {"rate", "101", false, 0},
        {"rate", "-1", false, 0},
        {"rate", "%", false, 0},
        {"rate", "5%%", false, 0},
        {"delay", "0", true, 0},
        {"delay", "7ns", true, 7},
        {"delay", "7us", true, 7000},
        {"delay", "7ms", true, 7000000},
        {"delay", "7s", true, UINT64_C(7000000000)},
        {"delay", "1m", true, UINT64_C(60000000000)},
        {"delay", "1h", false, 0},
        {"delay", "7", false, 0},
        {"delay", "s", false, 0},
        {"delay", "1.5s", false, 0},
        {"delay", "18446744073709551615h", false, 0},
        {"mode", "fast", true, 0},
        {"mode", "slower", true, 2},
        {"mode", "slo", false, 0},
        {"mode", "", false, 0},
        {"input", "", true, 0},
        {"output", "any text", true, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_graph *graph = make_graph(NULL);
        struct bw_xlator *made = NULL;
        struct bw_error *error = try_option(graph, cases[i].name, cases[i].value, &made);
        if (!error != cases[i].good)
            fail_msg("option %s=%s", cases[i].name, cases[i].value);
        if (cases[i].good)
            assert_true(bw_xlator_option_number(made, cases[i].name) == cases[i].number);
        else
            expect_error(error, BW_ERROR_USAGE, cases[i].name);
        bw_graph_destroy(graph);
    }
}

static void test_what_is_allowed(void **state)
{
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"switch", "2", "option switch: '2' is not one of: on, off"},
        {"number", "1", "option number: '1' is not a whole number (2 to 1000)"},
        {"size", "1", "option size: '1' is not a size like 64K (1K or more)"},
        {"rate", "101", "option rate: '101' is not a percentage like 0.5% (0% to 100%)"},
        {"delay", "5", "option delay: '5' is not a time like 10ms (0 to 1m)"},
        {"mode", "x", "option mode: 'x' is not one of: fast, slow, slower"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_graph *graph = make_graph(NULL);
        struct bw_xlator *made = NULL;
        expect_error(try_option(graph, cases[i].name, cases[i].value, &made), BW_ERROR_USAGE,
                     cases[i].message);
        bw_graph_destroy(graph);
    }
}

static void test_unknown_option(void **state)
{
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *made = NULL;
    expect_error(try_option(graph, "colour", "red", &made), BW_ERROR_USAGE,
                 "volume v: test/options has no option colour");
    expect_success(try_option(graph, "text", "", &made));
    assert_string_equal(bw_xlator_option_text(made, "text"), "");
    bw_graph_destroy(graph);
}

/* Winding. */

static void test_pass_through_and_counters(void **state)
{
    static const uint8_t bytes[64] = "content";
    struct fake_layer fake = {.copies = {bytes}, .size = sizeof bytes};
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *bottom = add_fake(graph, &fake);
    struct bw_xlator *middle = add_layer(graph, "test/pass", bottom, NULL);
    struct bw_xlator *top = add_layer(graph, "test/pass", middle, NULL);
    uint8_t buffers[4][8];
    struct bw_request requests[4];
    for (size_t i = 0; i < 4; i++)
        requests[i] = (struct bw_request){.kind = i < 3 ? BW_REQUEST_RAW : BW_REQUEST_DATA,
                                          .address = i == 1 ? 1000 : i,
                                          .length = 8,
                                          .buffer = buffers[i]};
    bw_wind(NULL, top, requests, 4);
    bw_wind(NULL, top, requests, 0);
    assert_int_equal(fake.calls, 1);
    assert_memory_equal(buffers[2], "ntent", 5);
    assert_null(requests[0].error);
    assert_string_equal(requests[1].error->way->layer, "test/logical");
    assert_true(requests[1].error->way->has_address);
    assert_int_equal(requests[1].error->way->address, 1000);
    assert_null(requests[1].error->way->next); /* layers without the operation are not on the way */
    bw_error_free(requests[1].error);
    struct bw_counters raw = bw_xlator_counters(bottom, BW_REQUEST_RAW);
    struct bw_counters data = bw_xlator_counters(bottom, BW_REQUEST_DATA);
    assert_int_equal(raw.calls, 1);
    assert_int_equal(raw.requests, 3);
    assert_int_equal(raw.bytes, 24);
    assert_int_equal(raw.errors, 1);
    assert_int_equal(data.requests, 1);
    assert_int_equal(data.errors, 0);
    assert_int_equal(bw_xlator_counters(bottom, BW_REQUEST_TREE_BLOCK).calls, 0);
    bw_graph_destroy(graph);
}

static void test_map_and_hints_pass_through(void **state)
{
    static const uint8_t bytes[64];
    struct fake_layer fake = {
        .copies = {bytes, bytes, bytes}, .copy_count = 3, .size = sizeof bytes};
    struct bw_graph *graph = make_graph(NULL);
    struct bw_xlator *top = add_layer(graph, "test/pass", add_fake(graph, &fake), NULL);
    struct bw_map_reply reply;
    expect_success(bw_wind_map(NULL, top, 16, 8, 2, &reply));
    assert_int_equal(reply.copies, 3);
    assert_int_equal(reply.location.devid, 2);
    const struct bw_range range = {4096, 8192};
    bw_wind_advise(NULL, top, &range, 1, 0);
    assert_int_equal(fake.hint_count, 1);
    assert_int_equal(fake.hints[0].address, 4096);
    struct bw_xlator *device = add_layer(graph, "test/device", NULL, NULL);
    expect_error(bw_wind_map(NULL, device, 0, 1, 1, &reply), BW_ERROR_USAGE, "maps addresses");
    bw_wind_advise(NULL, add_layer(graph, "test/options", NULL, NULL), &range, 1, 0);
    bw_graph_destroy(graph);
}

static void test_reports(void **state)
{
    struct report_log log = {0};
    struct bw_graph *graph = make_graph(&log);
    struct bw_xlator *layer = add_layer(graph, "test/device", NULL, NULL);
    bw_xlator_report(layer, BW_NOTE, bw_error_create(BW_ERROR_CORRUPT, "from a layer"));
    bw_xlator_report(layer, BW_DAMAGE, bw_error_no_memory());
    bw_graph_report(graph, BW_WARNING, bw_error_create(BW_ERROR_CORRUPT, "from above"));
    assert_string_equal(
        log.text.data,
        "note test/device from a layer\ndamage - out of memory\nwarning - from above\n");
    bw_graph_destroy(graph);
    report_log_free(&log);
    graph = make_graph(NULL);
    bw_graph_report(graph, BW_DAMAGE, bw_error_create(BW_ERROR_CORRUPT, "to nobody"));
    bw_graph_destroy(graph);
}
