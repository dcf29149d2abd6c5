/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of a baseline: everything in it comes back, and no byte of it is trusted. */
#include "support/walk_helpers.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "check/baseline.h"
#include "ondisk/disk_items.h"

static struct bw_error *append(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* The bytes of a baseline that has a member of each list. */
static void make(struct bw_buffer *file)
{
    struct bw_baseline *baseline;
    expect_success(bw_baseline_create(&baseline));
    memset(baseline->fsid, 7, sizeof baseline->fsid);
    baseline->generation = 12;
    baseline->finished = true;
    const struct bw_known_leaf leaves[] = {
        {.bytenr = 4096,
         .generation = 9,
         .owner = 5,
         .references = 77,
         .checksum = 0x12345678,
         .facts = BW_LEAF_HAS_SUMS,
         .sums = {.total = 3}},
        {.bytenr = 8192, .generation = 10, .owner = 2, .synology = 3},
    };
    for (size_t i = 0; i < COUNT(leaves); i++)
        expect_success(bw_baseline_add_leaf(baseline, &leaves[i]));
    expect_success(bw_known_groups_push(&baseline->groups,
                                        (struct bw_known_group){1 << 20, 1 << 20, 5, 1, 6, 7}));
    expect_success(bw_range_set_insert(&baseline->unsummed, 10, 20));
    expect_success(bw_range_set_insert(&baseline->bad_data, 30, 40));
    expect_success(bw_numbers_push(&baseline->full_backrefs, 4096));
    expect_success(bw_numbers_push(&baseline->shared_blocks, 8192));
    struct bw_findinginfo row;
    bw_record_clear(bw_record_find("findinginfo"), &row);
    struct bw_bytes paths[] = {{"/a", 2}, {"/b\xff", 3}};
    row.code = "link-count";
    row.message = "link count wrong";
    row.tree = 5;
    row.inode = 257;
    row.paths = (struct bw_names){paths, COUNT(paths)};
    expect_success(bw_baseline_add_finding(baseline, &row));
    expect_success(bw_baseline_write(baseline, append, file));
    bw_baseline_free(baseline);
}

static void test_round_trip(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer file = {0}, again = {0};
    struct bw_baseline *baseline;
    make(&file);
    expect_success(bw_baseline_parse(file.data, file.length, &baseline));
    const struct bw_baseline_info info = bw_baseline_info(baseline);
    assert_int_equal(info.generation, 12);
    assert_int_equal(info.findings, 1);
    assert_true(info.finished);
    assert_int_equal(bw_baseline_leaf(baseline, 4096, 9)->checksum, 0x12345678);
    assert_null(bw_baseline_leaf(baseline, 4096, 10));
    assert_int_equal(bw_baseline_leaf(baseline, 8192, 10)->synology, 3);
    assert_int_equal(bw_baseline_group(baseline, 1 << 20)->references, 7);
    assert_null(bw_baseline_group(baseline, 0));
    assert_string_equal(baseline->findings.items[0].row.paths.data[1].data, "/b\xff");
    assert_string_equal(baseline->findings.items[0].row.severity, "error");
    expect_success(bw_baseline_write(baseline, append, &again));
    assert_int_equal(again.length, file.length);
    assert_memory_equal(again.data, file.data, file.length);
    bw_baseline_free(baseline);
}

/* Every byte is changed once, and the checksum made right again. */
static void test_hostile(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer file = {0};
    make(&file);
    const size_t end = file.length - sizeof(bw_le64);
    for (size_t i = 0; i < file.length; i++) {
        for (unsigned bit = 0; bit < 8; bit += 7) {
            BW_AUTO_FREE char *changed = malloc(file.length);
            struct bw_baseline *baseline;
            memcpy(changed, file.data, file.length);
            changed[i] = (char)(changed[i] ^ 1 << bit);
            BW_AUTO_ERROR struct bw_error *bad = bw_baseline_parse(changed, file.length, &baseline);
            assert_non_null(bad);
            assert_null(baseline);
            const bw_le64 sum = bw_put64(XXH3_64bits(changed, end));
            memcpy(changed + end, &sum, sizeof sum);
            bw_error_free(bw_baseline_parse(changed, file.length, &baseline));
            bw_baseline_free(baseline);
        }
        struct bw_baseline *baseline;
        BW_AUTO_ERROR struct bw_error *cut = bw_baseline_parse(file.data, i, &baseline);
        assert_non_null(cut);
    }
}
