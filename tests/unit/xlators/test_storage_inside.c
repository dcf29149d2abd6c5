/* SPDX-License-Identifier: GPL-2.0-or-later */
/* storage/inside: an image that functions read. tests/command/containers.sh reads a file of another
 * file system. */
#include "support/fake_layer.h"

static struct bw_error *read_pattern(void *context, uint64_t offset, void *buffer, size_t length)
{
    ++*(unsigned *)context;
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)buffer)[i] = (uint8_t)(offset + i);
    return offset == 13 ? bw_error_create(BW_ERROR_CORRUPT, "it is lost") : NULL;
}

static void test_source(void **state)
{
    unsigned calls = 0;
    uint8_t bytes[10];
    const struct bw_image_source source = {"a file", 100, read_pattern, &calls};
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"path", "a file"}, {0}};
    const struct layer layer = {.type = "storage/inside", .name = "inside", .options = options};
    struct bw_xlator *inside;
    graph->inputs.source = &source;
    expect_success(graph_add(graph, &layer, &inside));
    assert_int_equal(bw_xlator_size(inside), 100);
    expect_success(read_range(inside, 90, bytes, sizeof bytes));
    assert_int_equal(bytes[9], 99);
    expect_error(read_range(inside, 91, bytes, sizeof bytes), BW_ERROR_CORRUPT,
                 "the file ends at 100, before the end of 10 bytes at 91");
    expect_error(read_range(inside, 13, bytes, 1), BW_ERROR_CORRUPT, "it is lost");
    assert_int_equal(calls, 2);
    assert_int_equal(bw_xlator_next_stored(inside, 99), 99);
    assert_int_equal(bw_xlator_next_stored(inside, 100), UINT64_MAX);
    bw_graph_destroy(graph);
}

static void test_no_source(void **state)
{
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"path", "a file"}, {0}};
    const struct layer layer = {.type = "storage/inside", .name = "inside", .options = options};
    struct bw_xlator *inside;
    expect_error(graph_add(graph, &layer, &inside), BW_ERROR_USAGE,
                 "only for images inside another file system");
    bw_graph_destroy(graph);
}
