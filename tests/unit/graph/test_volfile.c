/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/graph/volfile.c and graph/lexer.c: valid volfiles, and the exact position and message of each
 * error. */
#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"
#include "support/fake_layer.h"

static struct bw_graph *graph;

static int make_graph(void **state)
{
    graph = fake_graph(NULL);
    return 0;
}

static int free_graph(void **state)
{
    bw_graph_destroy(graph);
    return 0;
}

static void empty_graph(void)
{
    free_graph(NULL);
    make_graph(NULL);
}

static struct bw_error *parse(const char *text)
{
    return bw_volfile_parse(graph, "g.vol", text, strlen(text));
}

static void expect_word(const struct bw_word *word, const char *text, unsigned line,
                        unsigned column)
{
    assert_string_equal(word->text, text);
    assert_string_equal(word->at.source, "g.vol");
    assert_int_equal(word->at.line, line);
    assert_int_equal(word->at.column, column);
}

static const char two_volumes[] = "# a graph\n"
                                  "volume device-1\n"
                                  "    type storage/file   # a comment\n"
                                  "\toption path \"my disk.img\"\n"
                                  "    option speed fast#er\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume error-gen@a.b\n"
                                  "    subvolumes device-1 x\n"
                                  "       y type cluster/chunk-map\n"
                                  "end-volume # no newline";

static void test_layers(void **state)
{
    expect_success(parse(two_volumes));
    assert_int_equal(graph->layers.count, 2);
    const struct bw_xlator *volume = graph->layers.items[0];
    expect_word(&volume->name, "device-1", 2, 8);
    expect_word(&volume->type_name, "storage/file", 3, 10);
    assert_int_equal(volume->settings.count, 2);
    expect_word(&volume->settings.items[0].name, "path", 4, 9);
    expect_word(&volume->settings.items[0].value, "my disk.img", 4, 14);
    expect_word(&volume->settings.items[1].value, "fast#er", 5, 18);
    assert_int_equal(volume->children.count, 0);
    volume = graph->layers.items[1];
    expect_word(&volume->name, "error-gen@a.b", 8, 8);
    expect_word(&volume->type_name, "cluster/chunk-map", 10, 15);
    assert_int_equal(volume->children.count, 3);
    expect_word(&volume->children.items[0].name, "device-1", 9, 16);
    expect_word(&volume->children.items[2].name, "y", 10, 8);
    empty_graph();
}

static void test_white_space(void **state)
{
    expect_success(parse("volume a\r\n\ttype t/u\r\noption\r\nk\fv\v# c\r\nend-volume\r\n"));
    expect_word(&graph->layers.items[0]->type_name, "t/u", 2, 7);
    expect_word(&graph->layers.items[0]->settings.items[0].value, "v", 4, 3);
    empty_graph();
    expect_success(parse("volume a type t/u end-volume volume b type t/u end-volume"));
    assert_int_equal(graph->layers.count, 2);
    empty_graph();
}

static void test_quotes(void **state)
{
    static const struct {
        const char *written, *text;
    } cases[] = {
        {"plain", "plain"},
        {"back\\slash\\n", "back\\slash\\n"},
        {"a#b", "a#b"},
        {"gr\xc3\xb6\xc3\x9f"
         "e\xff",
         "gr\xc3\xb6\xc3\x9f"
         "e\xff"},
        {"\"\"", ""},
        {"\"type\"", "type"},
        {"\"end-volume\"", "end-volume"},
        {"\"a b\tc\"", "a b\tc"},
        {"\"# no comment\"", "# no comment"},
        {"\"\\\"\\\\\\n\\t\"", "\"\\\n\t"},
        {"\"\\x41\\xfF\\x01\"", "A\xff\x01"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "volume a\ntype t/u\noption k %s\nend-volume\n",
                 cases[i].written);
        expect_success(parse(text));
        assert_string_equal(bw_layer_option(graph->layers.items[0], "k"), cases[i].text);
        empty_graph();
    }
}

/* The message must be this, from the first byte to the last. */
static void expect_refusal(const char *text, size_t length, const char *message)
{
    struct bw_error *error = bw_volfile_parse(graph, "g.vol", text, length);
    assert_non_null(error);
    assert_string_equal(error->message, message);
    assert_int_equal(error->code, BW_ERROR_USAGE);
    bw_error_free(error);
    empty_graph();
}

#define STATEMENTS "type, option, subvolumes or end-volume expected"
#define ESCAPES    "expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes"
#define IN_QUOTES  "(in quotes it would be a word like any other)"

static const struct {
    const char *text, *message;
} refusals[] = {
    /* The file as a whole. */
    {"", "g.vol:1:1: the file contains no volume"},
    {"\n# nothing\n ", "g.vol:3:2: the file contains no volume"},
    {"hello", "g.vol:1:1: the keyword volume expected, not 'hello'"},
    {"\"volume\" a", "g.vol:1:1: the keyword volume expected, not 'volume'"},
    {"volume a\ntype t/u\nend-volume\nend-volume",
     "g.vol:4:1: the keyword volume expected, not 'end-volume'"},
    /* Ends too early. */
    {"volume", "g.vol:1:7: the file ends where the name of a volume is expected"},
    {"volume a\ntype t/u\n",
     "g.vol:3:1: the file ends inside volume a of line 1: end-volume is missing"},
    {"volume a type", "g.vol:1:14: the file ends where a type is expected"},
    {"volume a option", "g.vol:1:16: the file ends where the name of an option is expected"},
    {"volume a option k # v", "g.vol:1:22: the file ends where the value of an option is expected"},
    {"volume a subvolumes", "g.vol:1:20: the file ends where the name of a subvolume is expected"},
    {"volume a subvolumes b",
     "g.vol:1:22: the file ends inside volume a of line 1: end-volume is missing"},
    {"\nvolume a\ntype t/u\nsubvolumes b\nvolume c",
     "g.vol:5:1: volume a of line 2 is still open: end-volume is missing"},
    /* Keywords where there should be words. */
    {"volume type t/u",
     "g.vol:1:8: the name of a volume expected, not the keyword type " IN_QUOTES},
    {"volume a\noption path\noption k v\nend-volume",
     "g.vol:3:1: the value of an option expected, not the keyword option " IN_QUOTES},
    {"volume a subvolumes end-volume",
     "g.vol:1:21: the name of a subvolume expected, not the keyword end-volume " IN_QUOTES},
    /* Words where there should be keywords. */
    {"volume a\n  optoin k v\n", "g.vol:2:3: unknown keyword 'optoin': " STATEMENTS},
    {"volume a\n\"type\" t/u", "g.vol:2:1: " STATEMENTS ", without quotes"},
    {"volume a\noption path my disk.img\n", "g.vol:2:16: 'disk.img' follows the value of option "
                                            "path: a value with white space needs quotes, "
                                            "like \"my disk.img\""},
    {"volume a b", "g.vol:1:10: unexpected 'b' after the name of volume a"},
    {"volume a\ntype t/u \"b\"", "g.vol:2:10: unexpected 'b' after the type of volume a"},
    /* Twice, or not at all. */
    {"volume a\ntype t/u\n  type t/u",
     "g.vol:3:3: volume a has a second type; the first is in line 2"},
    {"volume a\noption k 1\noption l 1\noption \"k\" 2",
     "g.vol:4:8: volume a has option k twice; the first is in line 2"},
    {"volume a\nsubvolumes b\noption k v\nsubvolumes c",
     "g.vol:4:1: volume a has a second list of subvolumes; the first is in line 2"},
    {"volume x\ntype t/u\nend-volume\nvolume a\noption k v\nend-volume",
     "g.vol:4:8: volume a has no type"},
    /* Names. */
    {"volume \"\"", "g.vol:1:8: the name of a volume cannot be empty"},
    {"volume a=b", "g.vol:1:8: the name of a volume cannot contain '=': 'a=b'"},
    {"volume a\nsubvolumes b,c", "g.vol:2:12: the name of a volume cannot contain ',': 'b,c'"},
    {"volume \"a b\"",
     "g.vol:1:8: the name of a volume cannot contain white space or control bytes: 'a b'"},
    {"volume a\x7f",
     "g.vol:1:8: the name of a volume cannot contain white space or control bytes: 'a\x7f'"},
    /* Quotes. */
    {"volume a\noption k \"v\nend-volume", "g.vol:2:10: the quote that begins here does not end in "
                                           "its line (a newline in quotes is written \\n)"},
    {"volume a\noption k \"v", "g.vol:2:10: the quote that begins here does not end in its line (a "
                               "newline in quotes is written \\n)"},
    {"volume a option k \"v\"w", "g.vol:1:22: white space must follow the closing quote"},
    {"volume a option k v\"w\"",
     "g.vol:1:20: a quote inside a word: quotes go around the whole word, and a "
     "quote in them is written \\\""},
    {"volume a option k \"\\a\"", "g.vol:1:20: " ESCAPES},
    {"volume a option k \"a\\", "g.vol:1:21: " ESCAPES},
    {"volume a option k \"\\x4\"", "g.vol:1:20: " ESCAPES},
    {"volume a option k \"\\x", "g.vol:1:20: " ESCAPES},
    {"volume a option k \"\\x00\"", "g.vol:1:19: a word cannot contain a NUL byte"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++)
        expect_refusal(refusals[i].text, strlen(refusals[i].text), refusals[i].message);
    expect_refusal("volume a\n ty\0pe", 15, "g.vol:2:2: a word cannot contain a NUL byte");
}

/* Every beginning of a good file is refused or is a good file itself. */
static void test_beginnings(void **state)
{
    for (size_t length = 0; length < sizeof two_volumes; length++) {
        char *copy = malloc(length + 1); /* ends where the text does, for the sanitizer */
        memcpy(copy, two_volumes, length);
        struct bw_error *error = bw_volfile_parse(graph, "g.vol", copy, length);
        assert_true(error || graph->layers.count > 0);
        bw_error_free(error);
        empty_graph();
        free(copy);
    }
}

static struct bw_error *parse_many(size_t volumes, size_t options)
{
    struct bw_buffer text = {0};
    for (size_t i = 0; i < volumes; i++)
        bw_buffer_format(&text, "volume v%zu type t/u\n", i);
    for (size_t i = 0; i < options; i++)
        bw_buffer_format(&text, "option k%zu v\n", i);
    struct bw_error *error = bw_volfile_parse(graph, "g.vol", text.data, text.length);
    empty_graph();
    bw_buffer_free(&text);
    return error;
}

static void test_limits(void **state)
{
    struct bw_buffer text = {0};
    for (size_t i = 0; i < BW_GRAPH_LAYERS; i++)
        bw_buffer_format(&text, "volume v%zu type t/u end-volume\n", i);
    expect_success(bw_volfile_parse(graph, "g.vol", text.data, text.length));
    assert_int_equal(graph->layers.count, BW_GRAPH_LAYERS);
    empty_graph();
    bw_buffer_format(&text, "volume last type t/u end-volume");
    expect_refusal(text.data, text.length,
                   "g.vol:4097:8: volume last is one too many: a graph has at most 4096");
    bw_buffer_free(&text);
    expect_error(parse_many(1, 1024), BW_ERROR_USAGE, "end-volume is missing");
    expect_error(parse_many(1, 1025), BW_ERROR_USAGE,
                 "g.vol:1026:8: volume v0 has more than 1024 options");
    char *large = malloc(BW_VOLFILE_SIZE + 1);
    memset(large, ' ', BW_VOLFILE_SIZE + 1);
    expect_refusal(large, BW_VOLFILE_SIZE, "g.vol:1:1048577: the file contains no volume");
    expect_refusal(large, BW_VOLFILE_SIZE + 1, "g.vol: more than 1048576 bytes: not a volfile");
    free(large);
}

static void test_files(void **state)
{
    char path[] = "/tmp/btrfs-walk-volfile-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    expect_error(bw_volfile_read(graph, path), BW_ERROR_USAGE, ":1:1: the file contains no volume");
    empty_graph();
    assert_int_equal(write(descriptor, two_volumes, sizeof two_volumes - 1),
                     sizeof two_volumes - 1);
    expect_success(bw_volfile_read(graph, path));
    assert_int_equal(graph->layers.count, 2);
    assert_string_equal(graph->layers.items[1]->name.at.source, path);
    empty_graph();
    assert_int_equal(ftruncate(descriptor, 1 << 30), 0);
    expect_error(bw_volfile_read(graph, path), BW_ERROR_USAGE, "more than 1048576 bytes");
    close(descriptor);
    unlink(path);
    expect_error(bw_volfile_read(graph, path), BW_ERROR_SYSTEM, path);
    expect_error(bw_volfile_read(graph, "/"), BW_ERROR_SYSTEM, "/: cannot read: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_layers, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_white_space, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_quotes, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_refusals, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_beginnings, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_limits, make_graph, free_graph),
        cmocka_unit_test_setup_teardown(test_files, make_graph, free_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
