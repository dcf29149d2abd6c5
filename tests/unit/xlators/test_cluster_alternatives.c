/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cluster/alternatives: which of several images of a device a request is read from. */
#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { SECTOR = 4096, SECTORS = 4, SIZE = SECTOR * SECTORS, IMAGES = 3 };

struct bench {
    struct fake_layer fakes[IMAGES];
    uint8_t bytes[IMAGES][SIZE]; /* sector s of image i is filled with 10 * (i + 1) + s */
    struct bw_graph *graph;
    struct bw_xlator *children[IMAGES], *top;
};

static uint8_t filling(size_t image, size_t sector)
{
    return (uint8_t)(10 * (image + 1) + sector);
}

/* `as_new`: how many of the images are not older than the first. */
static struct bench *make_bench_with(const char *as_new)
{
    const struct option_value options[] = {{"as-new", as_new}, {0}};
    struct bench *bench = calloc(1, sizeof *bench);
    bench->graph = fake_graph(NULL);
    for (size_t i = 0; i < IMAGES; i++) {
        for (size_t sector = 0; sector < SECTORS; sector++)
            memset(bench->bytes[i] + sector * SECTOR, filling(i, sector), SECTOR);
        bench->fakes[i] = (struct fake_layer){.copies = {bench->bytes[i]}, .size = SIZE};
        bench->children[i] = add_fake_device(bench->graph, &bench->fakes[i]);
    }
    const struct layer layer = {.type = "cluster/alternatives",
                                .name = "alternatives",
                                .options = options,
                                .children = bench->children,
                                .child_count = IMAGES};
    expect_success(graph_add(bench->graph, &layer, &bench->top));
    return bench;
}

static struct bench *make_bench(void)
{
    return make_bench_with("8");
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

/* Reads all sectors; the image of each is in `images`, from 1 on; 0: zeros. */
static struct bw_error *read_all(struct bench *bench, enum bw_request_kind kind, uint8_t copy,
                                 unsigned images[SECTORS])
{
    uint8_t buffer[SIZE];
    struct bw_request request = {.kind = kind, .mirror = copy, .length = SIZE, .buffer = buffer};
    bw_wind(NULL, bench->top, &request, 1);
    for (size_t i = 0; i < SECTORS && !request.error; i++)
        images[i] = buffer[i * SECTOR] / 10;
    return request.error;
}

static void expect_images(const unsigned images[SECTORS], unsigned a, unsigned b, unsigned c,
                          unsigned d)
{
    const unsigned wanted[] = {a, b, c, d};
    assert_memory_equal(images, wanted, sizeof wanted);
}

static void test_first(void **state)
{
    struct bench *bench = make_bench();
    unsigned images[SECTORS];
    expect_success(read_all(bench, BW_REQUEST_RAW, 0, images));
    expect_images(images, 1, 1, 1, 1);
    assert_int_equal(bench->fakes[1].read_count + bench->fakes[2].read_count, 0);
    free_bench(bench);
}

static void test_named(void **state)
{
    struct bench *bench = make_bench();
    unsigned images[SECTORS];
    expect_success(read_all(bench, BW_REQUEST_TREE_BLOCK, 3, images));
    expect_images(images, 3, 3, 3, 3);
    assert_int_equal(bench->fakes[2].reads[0].copy, 0);
    expect_error(read_all(bench, BW_REQUEST_RAW, 4, images), BW_ERROR_USAGE, "no image 4");
    bench->fakes[1].broken[0] = true;
    bw_error_free(read_all(bench, BW_REQUEST_RAW, 2, images)); /* is not read from another one */
    assert_int_equal(bench->fakes[0].read_count, 0);
    free_bench(bench);
}

static void test_broken(void **state)
{
    struct bench *bench = make_bench();
    unsigned images[SECTORS];
    bench->fakes[0].broken[0] = bench->fakes[1].broken[0] = true;
    expect_success(read_all(bench, BW_REQUEST_TREE_BLOCK, 0, images));
    expect_images(images, 3, 3, 3, 3);
    bench->fakes[2].broken[0] = true;
    struct bw_error *error = read_all(bench, BW_REQUEST_RAW, 0, images);
    assert_non_null(error);
    assert_non_null(error->causes); /* of the second and the third image */
    assert_non_null(error->causes->next);
    bw_error_free(error);
    free_bench(bench);
}

/* Zeros are not preferred, unless a checksum can be verified above. */
static void test_zeros(void **state)
{
    struct bench *bench = make_bench();
    unsigned images[SECTORS];
    memset(bench->bytes[0], 0, 512); /* a part of a sector of the file system */
    expect_success(read_all(bench, BW_REQUEST_DATA, 0, images));
    expect_images(images, 2, 1, 1, 1);
    memset(bench->bytes[0], filling(0, 0), 512);
    memset(bench->bytes[0] + SECTOR, 0, 2 * SECTOR);
    memset(bench->bytes[1] + SECTOR, 0, SECTOR);
    expect_success(read_all(bench, BW_REQUEST_RAW, 0, images));
    expect_images(images, 1, 3, 2, 1);
    expect_success(read_all(bench, BW_REQUEST_DATA, 0, images));
    expect_images(images, 1, 3, 2, 1);
    expect_success(read_all(bench, BW_REQUEST_TREE_BLOCK, 0, images));
    expect_images(images, 1, 0, 0, 1);
    bench->fakes[1].broken[0] = true;
    expect_success(read_all(bench, BW_REQUEST_RAW, 0, images));
    expect_images(images, 1, 3, 3, 1);
    memset(bench->bytes[2], 0, SIZE);
    expect_success(read_all(bench, BW_REQUEST_RAW, 0, images));
    expect_images(images, 1, 0, 0, 1);
    free_bench(bench);
}

/* Data that nothing verifies do not come from an older image. */
static void test_older(void **state)
{
    struct bench *bench = make_bench_with("2");
    unsigned images[SECTORS];
    memset(bench->bytes[0], 0, SECTOR);
    memset(bench->bytes[1], 0, SECTOR);
    expect_success(read_all(bench, BW_REQUEST_DATA, 0, images));
    expect_images(images, 0, 1, 1, 1);
    bench->fakes[0].broken[0] = true;
    expect_success(read_all(bench, BW_REQUEST_DATA, 0, images));
    expect_images(images, 0, 2, 2, 2);
    bench->fakes[1].broken[0] = true;
    bw_error_free(read_all(bench, BW_REQUEST_DATA, 0, images));
    assert_int_equal(bench->fakes[2].read_count, 0);
    expect_error(read_all(bench, BW_REQUEST_DATA, 3, images), BW_ERROR_CORRUPT, "older");
    expect_success(read_all(bench, BW_REQUEST_TREE_BLOCK, 0, images));
    expect_images(images, 3, 3, 3, 3);
    free_bench(bench);
}

static void test_sizes(void **state)
{
    struct bench *bench = make_bench();
    assert_int_equal(bw_xlator_size(bench->top), SIZE);
    bench->fakes[0].size = SECTOR;
    assert_int_equal(bw_xlator_size(bench->top), SIZE);
    assert_int_equal(bw_xlator_next_stored(bench->top, SIZE - 1), SIZE - 1);
    free_bench(bench);
}
