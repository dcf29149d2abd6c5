/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/unread: ranges that a map marks as unread, and maps that are none. */
#include <unistd.h>

#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { SIZE = 65536 };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE];
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
    char map[32];
};

static struct bw_error *try_map(struct bench *bench, const char *text)
{
    strcpy(bench->map, "/tmp/unread-XXXXXX");
    const int file = mkstemp(bench->map);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    memset(bench->bytes, 7, SIZE);
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = SIZE};
    bench->graph = fake_graph(NULL);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    const struct option_value options[] = {{"map", bench->map}, {0}};
    return graph_add_above(bench->graph, bench->below, "layout/unread", "unread", options,
                           &bench->top);
}

static void free_bench(struct bench *bench)
{
    unlink(bench->map);
    bw_graph_destroy(bench->graph);
    free(bench);
}

static void test_ranges(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uint8_t buffer[SIZE];
    expect_success(try_map(bench, "# comment\n0x0 ?\n0x0 0x1000 +\n0x1000 0x200 -\n"
                                  "0x1200 0xE00 *\n0x2000 0x8000 +\n0xA000 0x1000 /\n"));
    expect_success(read_range(bench->top, 0, buffer, 0x1000));
    assert_int_equal(buffer[0], 7);
    expect_error(read_range(bench->top, 0, buffer, 0x1001), BW_ERROR_CORRUPT,
                 "1 of 4097 bytes at 0 were not read from the disk");
    expect_error(read_range(bench->top, 0x1FFF, buffer, 1), BW_ERROR_CORRUPT, "1 of 1 bytes");
    expect_success(read_range(bench->top, 0x2000, buffer, 0x8000));
    expect_error(read_range(bench->top, 0x9000, buffer, 0x4000), BW_ERROR_CORRUPT,
                 "4096 of 16384 bytes at 36864");
    expect_success(read_range(bench->top, 0xB000, buffer, 0x1000));
    assert_int_equal(bw_xlator_size(bench->top), SIZE);
    free_bench(bench);
}

static void check_refused(const char *text)
{
    struct bench *bench = calloc(1, sizeof *bench);
    expect_error(try_map(bench, text), BW_ERROR_USAGE, "neither a line of a ddrescue map");
    free_bench(bench);
}

static void test_refused(void **state)
{
    check_refused("text\n");
    check_refused("0x0 ?\n0x0 -1 +\n");
    check_refused("0x0 ?\n0x0 0x1000 x\n");
    check_refused("0x0 ?\n0xFFFFFFFFFFFFFFFF 0x2 -\n");
}
