/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/graph/{graph,edit}.c: changing the layers of a graph by arguments, starting it in two steps,
 * taking unused layers out. */
#include "support/fake_layer.h"

#include "graph/graph.h"

static struct bw_graph *graph;

static int make_graph(void **state)
{
    static const char text[] =
        "volume device-1 type storage/file option path a.img end-volume "
        "volume device-2 type storage/file option path b.img end-volume "
        "volume chunk-map type cluster/chunk-map subvolumes device-1 device-2 end-volume "
        "volume verify type features/verify subvolumes chunk-map end-volume "
        "volume read-ahead type performance/read-ahead subvolumes verify end-volume "
        "volume node-cache type performance/node-cache subvolumes read-ahead end-volume";
    graph = fake_graph(NULL);
    expect_success(bw_volfile_parse(graph, "g.vol", text, strlen(text)));
    return 0;
}

static int make_empty(void **state)
{
    graph = fake_graph(NULL);
    return 0;
}

static int free_graph(void **state)
{
    bw_graph_destroy(graph);
    return 0;
}

/* The graph in one line: "name(child child) ...", in its order. */
static void expect_graph(const char *expected)
{
    struct bw_buffer text = {0};
    for (size_t i = 0; i < graph->layers.count; i++) {
        const struct bw_xlator *layer = graph->layers.items[i];
        bw_buffer_format(&text, "%s%s", i ? " " : "", layer->name.text);
        for (size_t child = 0; child < layer->children.count; child++)
            bw_buffer_format(&text, "%s%s", child ? " " : "(",
                             layer->children.items[child].name.text);
        if (layer->children.count)
            bw_buffer_append_byte(&text, ')');
    }
    assert_string_equal(bw_buffer_text(&text), expected);
    bw_buffer_free(&text);
}

static const struct bw_xlator *volume(const char *name)
{
    const struct bw_xlator *layer = bw_graph_find(graph, name);
    assert_non_null(layer);
    return layer;
}

static void test_options(void **state)
{
    expect_success(bw_graph_edit_option(graph, "node-cache.size=1M"));
    assert_string_equal(bw_layer_option(volume("node-cache"), "size"), "1M");
    expect_success(bw_graph_edit_option(graph, "node-cache.size="));
    assert_string_equal(bw_layer_option(volume("node-cache"), "size"), "");
    expect_success(bw_graph_edit_option(graph, "device-1.path=with.dots=and,more"));
    assert_string_equal(bw_layer_option(volume("device-1"), "path"), "with.dots=and,more");
    expect_success(bw_graph_edit_option(graph, "storage/file.shape=round"));
    expect_success(bw_graph_edit_option(graph, "device-*.colour=red"));
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(bw_layer_option(graph->layers.items[i], "shape"), "round");
        assert_string_equal(bw_layer_option(graph->layers.items[i], "colour"), "red");
    }
    assert_null(bw_layer_option(volume("chunk-map"), "colour"));
}

static void test_bad_options(void **state)
{
    static const char *const none[] = {"", "x", "x=1", ".a=1", "verify.=1", "verify", "verify.a"};
    for (size_t i = 0; i < COUNT(none); i++)
        expect_error(bw_graph_edit_option(graph, none[i]), BW_ERROR_USAGE,
                     "the form NAME.KEY=VALUE");
    expect_error(bw_graph_edit_option(graph, "device-3.shape=round"), BW_ERROR_USAGE,
                 "option device-3.shape=round: there is no volume device-3; there are: "
                 "device-1, device-2, "
                 "chunk-map");
}

static void test_insert(void **state)
{
    expect_success(bw_graph_edit_insert(graph, "debug/trace@device-2,kind=raw,file=a\\,b\\\\c"));
    expect_graph("device-1 device-2 trace@device-2(device-2) chunk-map(device-1 trace@device-2) "
                 "verify(chunk-map) "
                 "read-ahead(verify) node-cache(read-ahead)");
    assert_string_equal(volume("trace@device-2")->type_name.text, "debug/trace");
    assert_string_equal(bw_layer_option(volume("trace@device-2"), "kind"), "raw");
    assert_string_equal(bw_layer_option(volume("trace@device-2"), "file"), "a,b\\c");
    expect_success(bw_graph_edit_insert(graph, "debug/trace@device-2"));
    expect_success(bw_graph_edit_insert(graph, "debug/probe@node-cache"));
    expect_graph("device-1 device-2 trace@device-2-2(device-2) trace@device-2(trace@device-2-2) "
                 "chunk-map(device-1 trace@device-2) verify(chunk-map) read-ahead(verify) "
                 "node-cache(read-ahead) "
                 "probe@node-cache(node-cache)");
    assert_int_equal(volume("trace@device-2-2")->settings.count, 0);
}

static void test_insert_everywhere(void **state)
{
    expect_success(bw_graph_edit_insert(graph, "x/s@device-*"));
    expect_graph("device-1 s@device-1(device-1) device-2 s@device-2(device-2) chunk-map(s@device-1 "
                 "s@device-2) "
                 "verify(chunk-map) read-ahead(verify) node-cache(read-ahead)");
    expect_success(bw_graph_edit_insert(graph, "x/u@storage/file"));
    assert_string_equal(volume("s@device-2")->children.items[0].name.text, "u@device-2");
    expect_success(bw_graph_edit_insert(graph, "x/t@*"));
    assert_int_equal(graph->layers.count, 20);
    assert_string_equal(graph->layers.items[19]->name.text, "t@node-cache");
    assert_string_equal(volume("chunk-map")->children.items[1].name.text, "t@s@device-2");
}

/* The name of a volume is never a pattern. */
static void test_exact_names(void **state)
{
    struct bw_xlator *made;
    expect_success(bw_graph_add(graph, 0, "device-?", (struct bw_text_place){0}, &made));
    expect_success(bw_graph_edit_insert(graph, "x/s@device-?"));
    assert_int_equal(graph->layers.count, 8);
    assert_string_equal(volume("s@device-?")->children.items[0].name.text, "device-?");
    expect_success(bw_graph_edit_option(graph, "device-?.shape=round"));
    assert_null(bw_layer_option(volume("device-1"), "shape"));
}

static void test_bad_inserts(void **state)
{
    static const char *const none[] = {"", "debug/trace", "@verify", "debug/trace@"};
    for (size_t i = 0; i < COUNT(none); i++)
        expect_error(bw_graph_edit_insert(graph, none[i]), BW_ERROR_USAGE,
                     "the form TYPE@VOLUME[,KEY=VALUE...]");
    expect_error(bw_graph_edit_insert(graph, "debug/trace@nothing"), BW_ERROR_USAGE,
                 "layer debug/trace@nothing: there is no volume nothing");
    expect_error(bw_graph_edit_insert(graph, "debug/trace@verify,kind"), BW_ERROR_USAGE,
                 "'kind' is not KEY=VALUE");
}

/* Starting. */

static const struct bw_text_place nowhere;

static struct bw_xlator *add_volume(const char *name, const char *type, const char *first,
                                    const char *second)
{
    struct bw_xlator *made;
    expect_success(bw_graph_add(graph, graph->layers.count, name, nowhere, &made));
    expect_success(bw_layer_set_type(made, type, nowhere));
    if (first)
        expect_success(bw_layer_add_child(made, first, nowhere));
    if (second)
        expect_success(bw_layer_add_child(made, second, nowhere));
    return made;
}

static void check(void)
{
    struct bw_file_set inputs = {0};
    expect_success(bw_graph_check(graph, &inputs));
    bw_file_set_free(&inputs);
}

/* Which layers were started. */
static void expect_started(const char *expected)
{
    char started[8] = "";
    for (size_t i = 0; i < graph->layers.count; i++)
        strcat(started, graph->layers.items[i]->started ? "+" : "-");
    assert_string_equal(started, expected);
}

static void test_two_steps(void **state)
{
    struct bw_xlator *one = add_volume("one", "test/device", NULL, NULL);
    struct bw_xlator *two = add_volume("two", "test/device", NULL, NULL);
    struct bw_xlator *map = add_volume("map", "cluster/chunk-map", "one", "two");
    add_volume("top", "test/pass", "map", NULL);
    check();
    expect_success(bw_graph_start(graph, map));
    expect_started("++--");
    assert_ptr_equal(bw_xlator_child(map, 0), one);
    bw_layer_remove_child(map, 0);
    bw_graph_prune(graph);
    expect_graph("two map(two) top(map)");
    expect_success(bw_graph_start(graph, NULL));
    expect_started("+++");
    assert_ptr_equal(bw_xlator_child(map, 0), two);
}

/* A whole stack goes when its top is not used; what another layer uses stays. */
static void test_prune_stacks(void **state)
{
    add_volume("shared", "test/device", NULL, NULL);
    add_volume("left", "debug/delay-gen", "shared", NULL);
    add_volume("right", "debug/delay-gen", "shared", NULL);
    struct bw_xlator *map = add_volume("map", "cluster/chunk-map", "left", "right");
    check();
    expect_success(bw_graph_start(graph, NULL));
    bw_layer_remove_child(map, 0);
    bw_graph_prune(graph);
    expect_graph("shared right(shared) map(right)");
    bw_layer_remove_child(map, 0);
    bw_graph_prune(graph);
    expect_graph("map");
}

/* A layer that is inserted into a checked graph takes its place there at once. */
static void test_insert_checked(void **state)
{
    add_volume("disk", "test/device", NULL, NULL);
    struct bw_xlator *map = add_volume("map", "cluster/chunk-map", "disk", NULL);
    struct bw_xlator *top = add_volume("top", "test/pass", "map", NULL), *remap;
    check();
    expect_success(bw_graph_insert_above(graph, 1, "cluster/remap", nowhere, &remap));
    expect_success(bw_graph_check_layer(remap));
    expect_graph("disk map(disk) remap@map(map) top(remap@map)");
    assert_ptr_equal(bw_xlator_child(top, 0), remap);
    assert_ptr_equal(bw_xlator_child(remap, 0), map);
    expect_success(bw_graph_start(graph, NULL));
    expect_started("++++");
}

static void test_failed_start(void **state)
{
    struct bw_xlator *made;
    const struct bw_text_place place = {bw_graph_source(graph, "g.vol"), 7, 3};
    expect_success(bw_graph_add(graph, 0, "disk", place, &made));
    expect_success(bw_layer_set_type(made, "storage/file", nowhere));
    expect_success(bw_layer_set_option(made, "path", nowhere, "/no/such", nowhere));
    check();
    struct bw_error *error = bw_graph_start(graph, NULL);
    assert_non_null(error->way);
    assert_string_equal(error->way->volume, "disk");
    expect_error(error, BW_ERROR_SYSTEM, "g.vol:7:3: cannot open /no/such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_options, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_bad_options, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_insert, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_insert_everywhere, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_exact_names, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_bad_inserts, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_two_steps, make_empty, free_graph),
        cmocka_unit_test_setup_teardown(test_prune_stacks, make_empty, free_graph),
        cmocka_unit_test_setup_teardown(test_insert_checked, make_empty, free_graph),
        cmocka_unit_test_setup_teardown(test_failed_start, make_empty, free_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
