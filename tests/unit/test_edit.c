/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/graph/{plan,edit,build}: changing a plan by arguments, making it in two steps, taking unused
 * parts out.
 */
#include "support/fake_layer.h"

#include "fs/default_plan.h"
#include "graph/build.h"
#include "graph/edit.h"

static struct bw_plan plan;

static int make_plan(void **state)
{
    (void)state;
    static const char *const paths[] = {"a.img", "b.img"};
    expect_success(bw_default_plan(&plan, paths, 2));
    return 0;
}

static int free_plan(void **state)
{
    (void)state;
    bw_plan_free(&plan);
    return 0;
}

/* The plan in one line: "name(child child) ...", in its order. */
static void expect_plan(const char *expected)
{
    struct bw_buffer text = {0};
    for (size_t i = 0; i < plan.count; i++) {
        bw_buffer_format(&text, "%s%s", i ? " " : "", plan.volumes[i].name.text);
        for (size_t child = 0; child < plan.volumes[i].child_count; child++)
            bw_buffer_format(&text, "%s%s", child ? " " : "(",
                             plan.volumes[i].children[child].text);
        if (plan.volumes[i].child_count)
            bw_buffer_append_byte(&text, ')');
    }
    bw_buffer_append_byte(&text, '\0');
    assert_string_equal(text.data, expected);
    bw_buffer_free(&text);
}

static const struct bw_volume *volume(const char *name)
{
    size_t index = bw_plan_find(&plan, name);
    assert_true(index < plan.count);
    return &plan.volumes[index];
}

static void test_default(void **state)
{
    (void)state;
    expect_plan(
        "device-1 device-2 chunk-map(device-1 device-2) verify(chunk-map) read-ahead(verify) "
        "node-cache(read-ahead)");
    assert_string_equal(bw_volume_option(volume("device-2"), "path"), "b.img");
    assert_null(bw_volume_option(volume("device-2"), "shape"));
}

static void test_options(void **state)
{
    (void)state;
    expect_success(bw_plan_edit_option(&plan, "node-cache.size=1M"));
    assert_string_equal(bw_volume_option(volume("node-cache"), "size"), "1M");
    expect_success(bw_plan_edit_option(&plan, "node-cache.size="));
    assert_string_equal(bw_volume_option(volume("node-cache"), "size"), "");
    expect_success(bw_plan_edit_option(&plan, "device-1.path=with.dots=and,more"));
    assert_string_equal(bw_volume_option(volume("device-1"), "path"), "with.dots=and,more");
    expect_success(bw_plan_edit_option(&plan, "storage/file.shape=round"));
    expect_success(bw_plan_edit_option(&plan, "device-*.colour=red"));
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(bw_volume_option(&plan.volumes[i], "shape"), "round");
        assert_string_equal(bw_volume_option(&plan.volumes[i], "colour"), "red");
    }
    assert_null(bw_volume_option(volume("chunk-map"), "colour"));
}

static void test_bad_options(void **state)
{
    (void)state;
    static const char *const none[] = {"", "x", "x=1", ".a=1", "verify.=1", "verify", "verify.a"};
    for (size_t i = 0; i < COUNT(none); i++)
        expect_error(bw_plan_edit_option(&plan, none[i]), BW_ERROR_USAGE,
                     "the form NAME.KEY=VALUE");
    expect_error(bw_plan_edit_option(&plan, "device-3.shape=round"), BW_ERROR_USAGE,
                 "--xlator-option device-3.shape=round: there is no volume device-3; there are: "
                 "device-1, device-2, "
                 "chunk-map");
}

static void test_insert(void **state)
{
    (void)state;
    expect_success(bw_plan_edit_insert(&plan, "debug/trace@device-2,kind=raw,file=a\\,b\\\\c"));
    expect_plan("device-1 device-2 trace@device-2(device-2) chunk-map(device-1 trace@device-2) "
                "verify(chunk-map) "
                "read-ahead(verify) node-cache(read-ahead)");
    assert_string_equal(volume("trace@device-2")->type.text, "debug/trace");
    assert_string_equal(bw_volume_option(volume("trace@device-2"), "kind"), "raw");
    assert_string_equal(bw_volume_option(volume("trace@device-2"), "file"), "a,b\\c");
    expect_success(bw_plan_edit_insert(&plan, "debug/trace@device-2"));
    expect_success(bw_plan_edit_insert(&plan, "debug/io-stats@node-cache"));
    expect_plan("device-1 device-2 trace@device-2-2(device-2) trace@device-2(trace@device-2-2) "
                "chunk-map(device-1 trace@device-2) verify(chunk-map) read-ahead(verify) "
                "node-cache(read-ahead) "
                "io-stats@node-cache(node-cache)");
    assert_int_equal(volume("trace@device-2-2")->option_count, 0);
}

static void test_insert_everywhere(void **state)
{
    (void)state;
    expect_success(bw_plan_edit_insert(&plan, "x/s@device-*"));
    expect_plan("device-1 s@device-1(device-1) device-2 s@device-2(device-2) chunk-map(s@device-1 "
                "s@device-2) "
                "verify(chunk-map) read-ahead(verify) node-cache(read-ahead)");
    expect_success(bw_plan_edit_insert(&plan, "x/u@storage/file"));
    assert_string_equal(volume("s@device-2")->children[0].text, "u@device-2");
    expect_success(bw_plan_edit_insert(&plan, "x/t@*"));
    assert_int_equal(plan.count, 20);
    assert_string_equal(plan.volumes[19].name.text, "t@node-cache");
    assert_string_equal(volume("chunk-map")->children[1].text, "t@s@device-2");
}

/* A volume's own name is no pattern, whatever it looks like. */
static void test_exact_names(void **state)
{
    (void)state;
    struct bw_volume *made;
    expect_success(bw_plan_add(&plan, 0, "device-?", (struct bw_text_place){0}, &made));
    expect_success(bw_plan_edit_insert(&plan, "x/s@device-?"));
    assert_int_equal(plan.count, 8);
    assert_string_equal(volume("s@device-?")->children[0].text, "device-?");
    expect_success(bw_plan_edit_option(&plan, "device-?.shape=round"));
    assert_null(bw_volume_option(volume("device-1"), "shape"));
}

static void test_bad_inserts(void **state)
{
    (void)state;
    static const char *const none[] = {"", "debug/trace", "@verify", "debug/trace@"};
    for (size_t i = 0; i < COUNT(none); i++)
        expect_error(bw_plan_edit_insert(&plan, none[i]), BW_ERROR_USAGE,
                     "the form TYPE@VOLUME[,KEY=VALUE...]");
    expect_error(bw_plan_edit_insert(&plan, "debug/trace@nothing"), BW_ERROR_USAGE,
                 "--insert debug/trace@nothing: there is no volume nothing");
    expect_error(bw_plan_edit_insert(&plan, "debug/trace@verify,kind"), BW_ERROR_USAGE,
                 "'kind' is not KEY=VALUE");
}

/* Building. */

static void add_volume(const char *name, const char *type, const char *first, const char *second)
{
    const struct bw_text_place nowhere = {0};
    struct bw_volume *made;
    expect_success(bw_plan_add(&plan, plan.count, name, nowhere, &made));
    expect_success(bw_volume_set_type(made, type, nowhere));
    if (first)
        expect_success(bw_volume_add_child(made, first, nowhere));
    if (second)
        expect_success(bw_volume_add_child(made, second, nowhere));
}

static void test_two_steps(void **state)
{
    (void)state;
    struct bw_graph *graph = fake_graph(NULL);
    bw_plan_free(&plan);
    add_volume("one", "test/device", NULL, NULL);
    add_volume("two", "test/device", NULL, NULL);
    add_volume("map", "cluster/chunk-map", "one", "two");
    add_volume("top", "test/pass", "map", NULL);
    expect_success(bw_graph_build_below(graph, &plan, 2));
    assert_int_equal(bw_graph_size(graph), 2);
    bw_volume_remove_child(&plan.volumes[2], 0);
    bw_graph_prune(graph, &plan, 2);
    expect_plan("two map(two) top(map)");
    assert_int_equal(bw_graph_size(graph), 1);
    assert_null(bw_graph_find(graph, "one"));
    struct bw_xlator *two = bw_graph_find(graph, "two");
    expect_success(bw_graph_build(graph, &plan));
    assert_int_equal(bw_graph_size(graph), 3);
    assert_ptr_equal(bw_graph_find(graph, "two"), two);
    assert_ptr_equal(bw_xlator_child(bw_graph_find(graph, "map"), 0), two);
    assert_string_equal(bw_xlator_name(bw_graph_layer(graph, 2)), "top");
    bw_graph_destroy(graph);
}

/* A whole stack goes when its top is not used; what somebody else uses stays. */
static void test_prune_stacks(void **state)
{
    (void)state;
    struct bw_graph *graph = fake_graph(NULL);
    bw_plan_free(&plan);
    add_volume("shared", "test/device", NULL, NULL);
    add_volume("left", "debug/delay-gen", "shared", NULL);
    add_volume("right", "debug/delay-gen", "shared", NULL);
    add_volume("map", "cluster/chunk-map", "left", "right");
    expect_success(bw_graph_build(graph, &plan));
    bw_graph_remove(graph, bw_graph_find(graph, "map"));
    bw_volume_remove_child(&plan.volumes[3], 0);
    bw_graph_prune(graph, &plan, 3);
    expect_plan("shared right(shared) map(right)");
    bw_volume_remove_child(&plan.volumes[2], 0);
    bw_graph_prune(graph, &plan, 2);
    expect_plan("map");
    assert_int_equal(bw_graph_size(graph), 0);
    bw_graph_destroy(graph);
}

static void test_failed_build(void **state)
{
    (void)state;
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_volume *made;
    bw_plan_free(&plan);
    expect_success(bw_plan_add(
        &plan, 0, "disk", (struct bw_text_place){bw_plan_source(&plan, "g.vol"), 7, 3}, &made));
    expect_success(bw_volume_set_type(made, "storage/file", (struct bw_text_place){0}));
    expect_success(bw_volume_set_option(made, "path", (struct bw_text_place){0}, "/no/such",
                                        (struct bw_text_place){0}));
    struct bw_error *error = bw_graph_build(graph, &plan);
    assert_non_null(error->way);
    assert_string_equal(error->way->volume, "disk");
    expect_error(error, BW_ERROR_SYSTEM, "g.vol:7:3: cannot open /no/such");
    bw_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_default, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_options, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_bad_options, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_insert, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_insert_everywhere, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_exact_names, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_bad_inserts, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_two_steps, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_prune_stacks, make_plan, free_plan),
        cmocka_unit_test_setup_teardown(test_failed_build, make_plan, free_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
