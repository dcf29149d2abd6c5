/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A layer out of a shared object, on a bottom in memory: what it does to data, and that it stays as
 * long as its graph. */
#include <unistd.h>

#include "support/fake_layer.h"

static const struct bw_xlator_class *const classes[] = {&fake_logical_class, NULL};

/* The plug-ins that the build has made next to this program. */
static char *plugin_path(void)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    char *path = NULL;
    assert_true(asprintf(&path, "/nowhere:%s/plugin", program) > 0);
    return path;
}

static struct bw_registry *make_registry(void)
{
    struct bw_registry *registry = NULL;
    char *path = plugin_path();
    expect_success(bw_registry_create(path, &registry));
    expect_success(bw_registry_add(registry, classes));
    free(path);
    return registry;
}

static void expect_read(struct bw_xlator *top, enum bw_request_kind kind, const char *expected)
{
    char bytes[16] = "";
    struct bw_request request = {
        .kind = kind, .length = (uint32_t)strlen(expected), .buffer = bytes, .address = 2};
    bw_wind(NULL, top, &request, 1);
    expect_success(request.error);
    assert_string_equal(bytes, expected);
}

static void test_data(void **state)
{
    static const uint8_t content[] = "..Hello, z!";
    struct fake_layer fake = {.copies = {content}, .size = sizeof content};
    struct bw_graph *graph = NULL;
    expect_success(bw_graph_create(make_registry(), (struct bw_reporter){0}, &graph));
    struct bw_xlator *bottom = add_fake(graph, &fake);
    struct bw_xlator *once = add_layer(graph, "toys/rot13", bottom, NULL);
    struct bw_xlator *twice = add_layer(graph, "toys/rot13", once, NULL);
    expect_read(bottom, BW_REQUEST_DATA, "Hello, z!");
    expect_read(once, BW_REQUEST_DATA, "Uryyb, m!");
    expect_read(once, BW_REQUEST_TREE_BLOCK, "Hello, z!");
    expect_read(twice, BW_REQUEST_DATA, "Hello, z!");
    struct bw_request outside = {
        .kind = BW_REQUEST_DATA, .length = 1, .address = 99, .buffer = &(char){0}};
    bw_wind(NULL, twice, &outside, 1);
    assert_string_equal(outside.error->way->layer, "test/logical");
    assert_string_equal(outside.error->way->next->layer, "toys/rot13");
    bw_graph_destroy(graph); /* and with it the code of the layer: the error must outlive that */
    assert_string_equal(outside.error->way->next->next->layer, "toys/rot13");
    bw_error_free(outside.error);
}

static struct bw_error *note_name(void *context, const char *type)
{
    strcat(strcat(context, type), " ");
    return NULL;
}

static struct bw_error *refuse_name(void *context, const char *type)
{
    return bw_error_create(BW_ERROR_USAGE, "not %s", type);
}

static void test_names(void **state)
{
    struct bw_registry *registry = make_registry();
    char names[64] = "";
    const struct bw_xlator_class *type = NULL;
    expect_success(bw_registry_each(registry, note_name, names));
    assert_string_equal(names, "test/logical toys/rot13 ");
    expect_error(bw_registry_each(registry, refuse_name, NULL), BW_ERROR_USAGE, "test/logical");
    expect_success(bw_registry_find(registry, "toys/rot13", &type));
    assert_string_equal(type->type, "toys/rot13");
    const struct bw_xlator_class *again = NULL;
    expect_success(bw_registry_find(registry, "toys/rot13", &again));
    assert_ptr_equal(again, type);
    *names = '\0';
    expect_success(bw_registry_each(registry, note_name, names));
    assert_string_equal(names, "test/logical toys/rot13 ");
    expect_error(bw_registry_find(registry, "toys/rot14", &type), BW_ERROR_USAGE,
                 "unknown type toys/rot14");
    expect_error(bw_registry_find(registry, "plugin/toys/rot13", &type), BW_ERROR_USAGE,
                 "unknown type");
    bw_registry_close(registry);
}
