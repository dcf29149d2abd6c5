/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/patch: changed ranges from memory and from an overlay, above a device that can fail. */
#include <unistd.h>

#include "base/patch.h"
#include "export/qcow2.h"
#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { SIZE = 4 * BW_QCOW2_CLUSTER };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE];
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
};

static struct bench *make_bench(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    memset(bench->bytes, 7, SIZE);
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = SIZE};
    bench->graph = fake_graph(NULL);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return bench;
}

static struct bw_error *add_patch(struct bench *bench, const char *option, const char *value)
{
    const struct option_value options[] = {{option, value}, {0}};
    return graph_add_above(bench->graph, bench->below, "layout/patch", "patch", options,
                           &bench->top);
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

/* Changes of 512 bytes, the later one over the earlier one; a read that is covered completely
 * does not reach the device. */
static void test_memory(void **state)
{
    struct bench *bench = make_bench();
    struct bw_patch patch = {0};
    const struct bw_patch *const list[] = {&patch};
    uint8_t new[2048], buffer[SIZE];
    memset(new, 1, sizeof new);
    expect_success(bw_patch_write(&patch, 8192, new, sizeof new));
    expect_success(bw_patch_write(&patch, 512, new, 512));
    memset(new, 2, sizeof new);
    expect_success(bw_patch_write(&patch, 8704, new, 512));
    bench->graph->inputs.patches = list;
    bench->graph->inputs.patch_count = 1;
    expect_success(add_patch(bench, "memory", "0"));

    expect_success(read_range(bench->top, 0, buffer, 16384));
    for (unsigned i = 0; i < 16384; i++) {
        const bool is_first = (i >= 512 && i < 1024) || (i >= 8192 && i < 10240);
        const bool is_second = i >= 8704 && i < 9216;
        const uint8_t expected = is_second ? 2 : 7;
        assert_int_equal(buffer[i], is_first && !is_second ? 1 : expected);
    }
    expect_success(read_range(bench->top, 8703, buffer, 2));
    assert_int_equal(buffer[0], 1);
    assert_int_equal(buffer[1], 2);
    assert_int_equal(bw_patch_next(&patch, 0), 512);
    assert_int_equal(bw_patch_next(&patch, 1024), 8192);
    assert_true(bw_patch_next(&patch, 10240) == UINT64_MAX);

    bench->fake.broken[0] = true;
    expect_success(read_range(bench->top, 8192, buffer, 2048));
    struct bw_error *error = read_range(bench->top, 8192, buffer, 2049);
    assert_non_null(error);
    bw_error_free(error);
    free_bench(bench);
    bw_patch_free(&patch);
}

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    assert_int_equal(pwrite(*(int *)context, bytes, length, (off_t)offset), length);
    return NULL;
}

static void write_overlay(char *name, uint64_t size)
{
    uint8_t cluster[BW_QCOW2_CLUSTER];
    struct bw_qcow2 *image;
    strcpy(name, "/tmp/patch-XXXXXX");
    int file = mkstemp(name);
    assert_true(file >= 0);
    memset(cluster, 3, sizeof cluster);
    expect_success(bw_qcow2_create(size, false, write_at, &file, &image));
    expect_success(bw_qcow2_set_backing(image, "disk.img", "raw"));
    expect_success(bw_qcow2_add(image, 2 * sizeof cluster, cluster, sizeof cluster));
    expect_success(bw_qcow2_end(image));
    bw_qcow2_destroy(image);
    close(file);
}

static void test_overlay(void **state)
{
    struct bench *bench = make_bench();
    uint8_t buffer[8];
    char name[32];
    write_overlay(name, SIZE);
    expect_success(add_patch(bench, "overlay", name));
    expect_success(read_range(bench->top, 2 * BW_QCOW2_CLUSTER - 4, buffer, 8));
    assert_memory_equal(buffer, "\7\7\7\7\3\3\3\3", 8);
    expect_success(read_range(bench->top, 3 * BW_QCOW2_CLUSTER - 4, buffer, 8));
    assert_memory_equal(buffer, "\3\3\3\3\7\7\7\7", 8);
    unlink(name);
    free_bench(bench);

    bench = make_bench();
    write_overlay(name, SIZE / 2);
    expect_error(add_patch(bench, "overlay", name), BW_ERROR_USAGE, "bytes, but");
    unlink(name);
    free_bench(bench);
}

/* A small file with many tables, which are all the same one: reading them would take hours. */
static void test_shared_tables(void **state)
{
    enum { BITS = 16, CLUSTER = 1 << BITS, TABLES = 100 };
    struct bench *bench = make_bench();
    char name[] = "/tmp/patch-XXXXXX";
    const uint8_t header[72] = {
        'Q', 'F', 'I', 0xfb, [7] = 2, [23] = BITS, [25] = 1, [39] = TABLES, [45] = 1};
    const int file = mkstemp(name);
    assert_true(file >= 0);
    expect_success(write_at((void *)&file, 0, header, sizeof header));
    for (unsigned i = 0; i < TABLES; i++)
        expect_success(write_at((void *)&file, CLUSTER + i * 8, "\0\0\0\0\0\2\0\0", 8));
    assert_int_equal(ftruncate(file, 3 * CLUSTER), 0);
    close(file);
    expect_error(add_patch(bench, "overlay", name), BW_ERROR_CORRUPT, "tables that overlap");
    unlink(name);
    free_bench(bench);
}
