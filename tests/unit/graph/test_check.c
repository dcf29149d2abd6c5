/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/graph/validate.c: what a plan is refused for, and where. Plans come from
 * volfiles.
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "graph/graph.h"
#include "support/fake_layer.h"

static const char *const modes[] = {"slow", "fast", NULL};

static const struct bw_option device_options[] = {
    {"path", BW_OPTION_PATH, "", 0, 0, "what is read", NULL},
    {"delay", BW_OPTION_TIME, "0", 0, 1000000000, "a time", NULL},
    {"depth", BW_OPTION_INTEGER, "4", 1, 64, "a number", NULL},
    {"mode", BW_OPTION_ENUM, "slow", 0, 0, "a choice", modes},
    {0},
};

static const struct bw_option writer_options[] = {
    {"file", BW_OPTION_OUTPUT, "-", 0, 0, "what is written", NULL},
    {0},
};

static const struct bw_option needy_options[] = {
    {"needed", BW_OPTION_STRING, NULL, 0, 0, "has no default", NULL},
    {0},
};

static const struct bw_xlator_class device_class = {
    .type = "storage/disk", .above = BW_ADDRESS_DEVICE, .options = device_options};
static const struct bw_xlator_class pair_class = {.type = "cluster/pair",
                                                  .above = BW_ADDRESS_LOGICAL,
                                                  .below = BW_ADDRESS_DEVICE,
                                                  .minimum_children = 2,
                                                  .maximum_children = 3};
static const struct bw_xlator_class map_class = {.type = "cluster/map",
                                                 .above = BW_ADDRESS_LOGICAL,
                                                 .below = BW_ADDRESS_DEVICE,
                                                 .minimum_children = 1,
                                                 .maximum_children = UINT32_MAX};
static const struct bw_xlator_class writer_class = {.type = "debug/writer",
                                                    .above = BW_ADDRESS_ANY,
                                                    .below = BW_ADDRESS_ANY,
                                                    .minimum_children = 1,
                                                    .maximum_children = 1,
                                                    .options = writer_options};
static const struct bw_xlator_class needy_class = {
    .type = "storage/needy", .above = BW_ADDRESS_DEVICE, .options = needy_options};
static const struct bw_xlator_class mix_class = {.type = "cluster/mix",
                                                 .above = BW_ADDRESS_LOGICAL,
                                                 .below = BW_ADDRESS_LOGICAL,
                                                 .minimum_children = 1,
                                                 .maximum_children = UINT32_MAX};

static const struct bw_xlator_class *const classes[] = {
    &device_class, &pair_class, &map_class, &writer_class, &needy_class, &mix_class, NULL};

static struct bw_error *check_graph(struct bw_graph *graph)
{
    struct bw_file_set inputs = {0};
    struct bw_error *error = bw_graph_check(graph, &inputs);
    bw_file_set_free(&inputs);
    return error;
}

static struct bw_graph *make_graph(void)
{
    struct bw_graph *graph = NULL;
    struct bw_registry *registry = NULL;
    expect_success(bw_registry_create("", &registry));
    expect_success(bw_registry_add(registry, classes));
    expect_success(bw_graph_create(registry, (struct bw_reporter){0}, &graph));
    return graph;
}

static struct bw_error *check(const char *text, size_t length)
{
    struct bw_graph *graph = make_graph();
    expect_success(bw_volfile_parse(graph, "g.vol", text, length));
    struct bw_error *error = check_graph(graph);
    bw_graph_destroy(graph);
    return error;
}

/* One volume, in one line. */
#define V(name, type, rest) "volume " name " type " type " " rest " end-volume\n"
#define DISK(name)          V(name, "storage/disk", "")

static void test_good(void **state)
{
    static const char *const plans[] = {
        DISK("a"),
        V("a", "storage/disk", "option path x option depth 64 option mode fast option delay 1s"),
        DISK("a") DISK("b") V("p", "cluster/pair", "subvolumes a b"),
        DISK("a") V("w", "debug/writer", "subvolumes a") V("x", "debug/writer", "subvolumes w")
            V("m", "cluster/map", "subvolumes x") V("y", "debug/writer", "subvolumes m")
                V("z", "cluster/mix", "subvolumes y"),
        /* Several parents. */
        DISK("a") V("m", "cluster/map", "subvolumes a") V("n", "cluster/map", "subvolumes a")
            V("z", "cluster/mix", "subvolumes m n"),
    };
    for (size_t i = 0; i < COUNT(plans); i++)
        expect_success(check(plans[i], strlen(plans[i])));
}

static const struct {
    const char *text, *message;
} refusals[] = {
    /* Names. */
    {DISK("a") DISK("b") DISK("b") DISK("a") DISK("a"),
     "g.vol:3:8: volume b: a previous volume has the same name (g.vol:2:8)"},
    {DISK("a") DISK("b") DISK("c") DISK("a"),
     "g.vol:4:8: volume a: a previous volume has the same name (g.vol:1:8)"},
    /* Children. */
    {DISK("a") V("m", "cluster/map", "subvolumes a other"),
     "g.vol:2:40: volume m: there is no volume other"},
    {DISK("device-1") V("m", "cluster/map", "subvolumes devise-1"),
     "g.vol:2:38: volume m: there is no volume devise-1; did you mean device-1?"},
    {DISK("a") V("m", "cluster/map", "subvolumes a a"),
     "g.vol:2:40: volume m: subvolume a is listed twice"},
    {V("m", "cluster/map", "subvolumes a") DISK("a"),
     "g.vol:1:38: volume m: subvolume a is used before it is defined (g.vol:2:8): children come "
     "before their "
     "parents"},
    {V("m", "cluster/map", "subvolumes m"),
     "g.vol:1:38: volume m: subvolume m is used before it is defined (g.vol:1:8): children come "
     "before their parents"},
    {V("a", "cluster/mix", "subvolumes b") V("b", "cluster/mix", "subvolumes a"),
     "g.vol:1:38: volume a: subvolume b is used before it is defined (g.vol:2:8): children come "
     "before their parents"},
    {DISK("d") V("a", "cluster/mix", "subvolumes c") V("b", "cluster/mix", "subvolumes d a")
         V("c", "cluster/mix", "subvolumes nothing d b"),
     "g.vol:2:38: volume a: subvolume c is used before it is defined (g.vol:4:8): children come "
     "before their parents"},
    /* Unused. */
    {DISK("a") DISK("b") V("m", "cluster/map", "subvolumes a"),
     "g.vol:2:8: no volume uses volume b; only the last one, m, may be on top"},
    /* Types. */
    {V("a", "storage/dusk", ""),
     "g.vol:1:15: volume a: unknown type storage/dusk; did you mean storage/disk?"},
    {V("a", "disk", ""), "g.vol:1:15: volume a: unknown type disk; did you mean storage/disk?"},
    {V("a", "features/disk", ""),
     "g.vol:1:15: volume a: unknown type features/disk; did you mean storage/disk?"},
    {V("a", "../evil", ""), "g.vol:1:15: volume a: unknown type ../evil"},
    /* Options. */
    {V("a", "storage/disk", "option pth x"),
     "g.vol:1:35: volume a: storage/disk has no option pth; did you mean path?"},
    {V("a", "storage/disk", "option mode fast option colour red"),
     "g.vol:1:52: volume a: storage/disk has no option colour; it has path, delay, depth, mode"},
    {DISK("d") V("a", "cluster/map", "option colour red subvolumes d"),
     "g.vol:2:34: volume a: cluster/map has no option colour"},
    {V("a", "storage/disk", "option depth 65"),
     "g.vol:1:41: volume a: option depth: '65' is not a whole number (1 to 64)"},
    {V("a", "storage/disk", "option delay 2s"),
     "g.vol:1:41: volume a: option delay: '2s' is not a time like 10ms (0 to 1s)"},
    {V("a", "storage/disk", "option mode \"\""),
     "g.vol:1:40: volume a: option mode: '' is not one of: slow, fast"},
    {V("a", "storage/needy", ""), "g.vol:1:15: volume a: option needed must be given"},
    /* Which layers fit on which. */
    {DISK("a") V("p", "cluster/pair", "subvolumes a"),
     "g.vol:2:15: volume p: cluster/pair takes 2 to 3 subvolumes, not 1"},
    {V("w", "debug/writer", ""), "g.vol:1:15: volume w: debug/writer takes 1 subvolume, not 0"},
    {V("w", "cluster/map", ""),
     "g.vol:1:15: volume w: cluster/map takes at least 1 subvolume, not 0"},
    {DISK("a") DISK("b") V("w", "debug/writer", "subvolumes a")
         V("z", "cluster/mix", "subvolumes b w"),
     "g.vol:4:38: volume z: address spaces do not fit: cluster/mix needs logical addresses below "
     "it, "
     "subvolume b takes device addresses"},
    {DISK("a") V("m", "cluster/map", "subvolumes a") V("w", "debug/writer", "subvolumes m")
         V("z", "cluster/map", "subvolumes w"),
     "g.vol:4:38: volume z: address spaces do not fit: cluster/map needs device addresses below "
     "it, "
     "subvolume w takes logical addresses"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct bw_error *error = check(refusals[i].text, strlen(refusals[i].text));
        assert_non_null(error);
        assert_string_equal(error->message, refusals[i].message);
        assert_int_equal(error->code, BW_ERROR_USAGE);
        bw_error_free(error);
    }
}

/* Graphs that no volfile can make. */
static void test_without_places(void **state)
{
    struct bw_graph *graph = make_graph();
    struct bw_xlator *layer;
    const struct bw_text_place nowhere = {0}, argument = {"--insert", 0, 0};
    expect_error(check_graph(graph), BW_ERROR_USAGE, "without any volume");
    expect_success(bw_graph_add(graph, 0, "a", nowhere, &layer));
    expect_error(check_graph(graph), BW_ERROR_USAGE, "volume a has no type");
    expect_success(bw_layer_set_type(layer, "storage/disk", nowhere));
    expect_success(check_graph(graph));
    expect_success(bw_graph_add(graph, 1, "a", argument, &layer));
    expect_error(check_graph(graph), BW_ERROR_USAGE,
                 "--insert: volume a: a previous volume has the same name");
    bw_graph_destroy(graph);
}

/* As large as a volfile can be. */
static void test_large(void **state)
{
    enum { DISKS = 4000 };
    struct bw_buffer text = {0};
    for (int i = 0; i < DISKS; i++)
        bw_buffer_format(&text, "volume d%d type storage/disk end-volume\n", i);
    for (int i = 0; i < 24; i++) {
        bw_buffer_format(&text, "volume m%d type cluster/map subvolumes", i);
        for (int disk = 0; disk < DISKS; disk++)
            bw_buffer_format(&text, " d%d", disk);
        bw_buffer_format(&text, " end-volume\n");
    }
    bw_buffer_format(&text, "volume top type cluster/mix subvolumes");
    for (int i = 0; i < 24; i++)
        bw_buffer_format(&text, " m%d", i);
    bw_buffer_format(&text, " end-volume");
    expect_success(check(text.data, text.length));
    bw_buffer_free(&text);
}

/* Outputs. */

static struct bw_error *check_output(const char *image, const char *output)
{
    struct bw_buffer text = {0};
    bw_buffer_format(&text,
                     "volume a type storage/disk option path \"%s\" end-volume\n"
                     "volume w type debug/writer subvolumes a\noption file \"%s\" end-volume",
                     image, output);
    struct bw_error *error = check(text.data, text.length);
    bw_buffer_free(&text);
    return error;
}

static void make_file(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* Two nodes of one block device, which need not exist; making nodes needs root. */
static void expect_block_devices_are_compared(void)
{
    if (mknod("disk", S_IFBLK | 0600, makedev(7, 1000)) ||
        mknod("node", S_IFBLK | 0600, makedev(7, 1000)))
        return;
    expect_error(check_output("disk", "node"), BW_ERROR_USAGE, "is an input");
    expect_success(check_output("image", "node"));
}

static void test_outputs(void **state)
{
    char directory[] = "/tmp/btrfs-walk-check-XXXXXX";
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    make_file("image");
    make_file("other");
    assert_int_equal(symlink("image", "symlink"), 0);
    assert_int_equal(link("image", "hardlink"), 0);
    expect_success(check_output("image", "-"));
    expect_success(check_output("image", ""));
    expect_success(check_output("image", "other"));
    expect_success(check_output("image", "new"));
    expect_success(check_output("missing", "missing"));
    expect_success(check_output("", "image"));
    expect_error(
        check_output("image", "image"), BW_ERROR_USAGE,
        "g.vol:3:13: volume w: option file: image is an input, which is never overwritten");
    expect_error(check_output("image", "symlink"), BW_ERROR_USAGE, "symlink is an input");
    expect_error(check_output("symlink", "hardlink"), BW_ERROR_USAGE, "is an input");
    expect_error(check_output("image", "/proc/self/cwd/image"), BW_ERROR_USAGE, "is an input");
    expect_block_devices_are_compared();
    static const char *const names[] = {"image", "other", "symlink", "hardlink", "disk", "node"};
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(names[i]);
    assert_int_equal(chdir("/"), 0);
    rmdir(directory);
}
