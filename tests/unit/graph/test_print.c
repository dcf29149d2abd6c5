/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/graph/print.c: golden texts, and reading them back. */
#include "graph/graph.h"
#include "support/fake_layer.h"

static const struct bw_option all_options[] = {
    {"path", BW_OPTION_PATH, NULL, 0, 0, "a path", NULL},
    {"size", BW_OPTION_SIZE, "4K", 0, UINT64_MAX, "a size", NULL},
    {"rules", BW_OPTION_STRING, "", 0, 0, "empty by default", NULL},
    {"output", BW_OPTION_OUTPUT, "-", 0, 0, "a path that is not empty by default", NULL},
    {0},
};

static const struct bw_xlator_class disk_class = {
    .type = "storage/disk", .above = BW_ADDRESS_DEVICE, .options = all_options};
static const struct bw_xlator_class map_class = {.type = "cluster/map",
                                                 .above = BW_ADDRESS_LOGICAL,
                                                 .below = BW_ADDRESS_DEVICE,
                                                 .minimum_children = 1,
                                                 .maximum_children = 2};
static const struct bw_xlator_class pass_class = {.type = "toys/pass",
                                                  .above = BW_ADDRESS_ANY,
                                                  .below = BW_ADDRESS_ANY,
                                                  .minimum_children = 1,
                                                  .maximum_children = 1};
static const struct bw_xlator_class *const classes[] = {&disk_class, &map_class, &pass_class, NULL};

static struct bw_graph *make_graph(void)
{
    return graph_of(classes, NULL);
}

static struct bw_xlator *add(struct bw_graph *graph, const struct layer *layer)
{
    struct bw_xlator *made = NULL;
    expect_success(graph_add(graph, layer, &made));
    return made;
}

static struct bw_xlator *add_disk(struct bw_graph *graph, const char *name, const char *path,
                                  const char *output)
{
    const struct option_value options[] = {{"path", path}, {"output", output}, {0}};
    return add(graph, &(struct layer){.type = "storage/disk", .name = name, .options = options});
}

static struct bw_graph *make_example(void)
{
    struct bw_graph *graph = make_graph();
    struct bw_xlator *disks[] = {add_disk(graph, "device-1", "my disk.img", "-"),
                                 add_disk(graph, "device-2", "b.img", "")};
    struct bw_xlator *map = add(
        graph,
        &(struct layer){.type = "cluster/map", .name = "map", .children = disks, .child_count = 2});
    add(graph, &(struct layer){
                   .type = "toys/pass", .name = "pass@map", .children = &map, .child_count = 1});
    return graph;
}

static char *print(const struct bw_graph *graph,
                   void (*printer)(const struct bw_graph *graph, struct bw_buffer *text))
{
    struct bw_buffer text = {0};
    printer(graph, &text);
    bw_buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    return text.data;
}

static void expect_text(struct bw_graph *graph,
                        void (*printer)(const struct bw_graph *graph, struct bw_buffer *text),
                        const char *expected)
{
    char *text = print(graph, printer);
    assert_string_equal(text, expected);
    free(text);
    bw_graph_destroy(graph);
}

static void test_volfile(void **state)
{
    expect_text(make_example(), bw_graph_print,
                "volume device-1\n"
                "    type storage/disk\n"
                "    option path \"my disk.img\"\n"
                "    option size 4K\n"
                "    option output -\n"
                "end-volume\n"
                "\n"
                "volume device-2\n"
                "    type storage/disk\n"
                "    option path b.img\n"
                "    option size 4K\n"
                "    option output \"\"\n"
                "end-volume\n"
                "\n"
                "volume map\n"
                "    type cluster/map\n"
                "    subvolumes device-1 device-2\n"
                "end-volume\n"
                "\n"
                "volume pass@map\n"
                "    type toys/pass\n"
                "    subvolumes map\n"
                "end-volume\n");
    expect_text(make_graph(), bw_graph_print, "");
}

static void expect_round_trip(struct bw_graph *graph, const char *path)
{
    struct bw_graph *again = make_graph();
    char *first = print(graph, bw_graph_print);
    expect_success(bw_volfile_parse(again, "printed", first, strlen(first)));
    assert_int_equal(again->layers.count, graph->layers.count);
    assert_string_equal(bw_layer_option(again->layers.items[0], "path"), path);
    for (size_t i = 0; i < again->layers.count; i++)
        expect_success(bw_graph_check_layer(again->layers.items[i]));
    char *second = print(again, bw_graph_print);
    assert_string_equal(first, second);
    free(first);
    free(second);
    bw_graph_destroy(again);
    bw_graph_destroy(graph);
}

static void test_round_trip(void **state)
{
    expect_round_trip(make_example(), "my disk.img");
    static const struct {
        const char *path, *written;
    } cases[] = {
        {"plain/a-b_c.img", "option path plain/a-b_c.img\n"},
        {"", "option path \"\"\n"},
        {"type", "option path \"type\"\n"},
        {"end-volume", "option path \"end-volume\"\n"},
        {"#1", "option path \"#1\"\n"},
        {"n#1", "option path n#1\n"},
        {"a\"b", "option path \"a\\\"b\"\n"},
        {"a\\b", "option path \"a\\\\b\"\n"},
        {"\n\t\r\x1b\x7f", "option path \"\\n\\t\\x0d\\x1b\\x7f\"\n"},
        {"gr\xc3\xb6\xc3\x9f", "option path gr\xc3\xb6\xc3\x9f\n"},
        {"\xc3\xb6 \xff\xc2\x9b", "option path \"\xc3\xb6 \\xff\\xc2\\x9b\"\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_graph *graph = make_graph();
        add_disk(graph, "d", cases[i].path, "-");
        char *text = print(graph, bw_graph_print);
        if (!strstr(text, cases[i].written))
            fail_msg("%s in:\n%s", cases[i].written, text);
        free(text);
        expect_round_trip(graph, cases[i].path);
    }
}

/* Every byte a path can hold. */
static void test_all_bytes(void **state)
{
    for (int byte = 1; byte < 256; byte++) {
        const char path[] = {'a', (char)byte, 'b', 0}, alone[] = {(char)byte, 0};
        struct bw_graph *graph = make_graph();
        add_disk(graph, "d", path, alone);
        expect_round_trip(graph, path);
    }
}

static const char dot_head[] =
    "digraph \"btrfs-walk\" {\n"
    "    graph [rankdir=TB ordering=out nodesep=0.3 ranksep=0.4 fontname=\"Helvetica\"];\n"
    "    node [shape=box style=\"rounded,filled\" color=\"#5a6472\" penwidth=0.8\n"
    "          fontname=\"Helvetica\" fontsize=11 margin=\"0.16,0.08\"];\n"
    "    edge [color=\"#5a6472\" penwidth=0.8 arrowsize=0.6];\n";

static void expect_dot(struct bw_graph *graph, const char *body)
{
    char *expected = NULL;
    assert_true(asprintf(&expected, "%s%s}\n", dot_head, body) > 0);
    expect_text(graph, bw_graph_print_dot, expected);
    free(expected);
}

static void test_dot(void **state)
{
    expect_dot(make_example(),
               "    n3 [fillcolor=\"#ececec\" label=<<b>pass@map</b><br/>toys/pass>];\n"
               "    n2 [fillcolor=\"#dcefd3\" label=<<b>map</b><br/>cluster/map>];\n"
               "    n1 [fillcolor=\"#d8e6f5\" label=<<b>device-2</b><br/>storage/disk"
               "<br/><font point-size=\"9\">path = b.img</font>"
               "<br/><font point-size=\"9\">output = </font>>];\n"
               "    n0 [fillcolor=\"#d8e6f5\" label=<<b>device-1</b><br/>storage/disk"
               "<br/><font point-size=\"9\">path = my disk.img</font>>];\n"
               "    n3 -> n2;\n"
               "    n2 -> n0;\n"
               "    n2 -> n1;\n");
    expect_dot(make_graph(), "");
}

static void test_dot_hostile(void **state)
{
    struct bw_graph *graph = make_graph();
    add_disk(graph, "<b>", "</b>>];&amp;\"\\N\n\xff\xef\xbf\xbe\xc3\xb6\xef\xbf\xbf", "-");
    expect_dot(
        graph,
        "    n0 [fillcolor=\"#d8e6f5\" label=<<b>&#60;b&#62;</b><br/>storage/disk"
        "<br/><font point-size=\"9\">path = &#60;/b&#62;&#62;];&#38;amp;&#34;\\\\N\\\\n\\\\377"
        "\\\\357\\\\277\\\\276\xc3\xb6\\\\357\\\\277\\\\277</font>>];\n");
}
