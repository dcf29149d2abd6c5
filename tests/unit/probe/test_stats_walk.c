/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statistics of a walk agree with its counters. */
#include "probe/probe.h"
#include "probe/stats.h"
#include "support/debug_bench.h"
#include "support/stats_bench.h"

/* The number of that name that comes first behind a text. */
static uint64_t number_behind(const char *report, const char *text, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(report, text);
    assert_non_null(at);
    at = strstr(at, quoted);
    assert_non_null(at);
    return strtoull(at + strlen(quoted), NULL, 10);
}

/* Opens and walks an image with a consumer; returns the number of bytes read. */
static uint64_t walk_watched(const struct iw_image *image, struct bw_probes *probes)
{
    struct bw_fs *fs;
    const char *paths[IW_MAX_DEVICES];
    const struct bw_fs_options options = {.struct_size = sizeof(struct bw_fs_options),
                                          .paths = paths,
                                          .path_count = iw_paths_of(image, paths),
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
                                          .probes = probes};
    expect_success(bw_fs_open(&options, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
    expect_paths(image, &result);
    uint64_t bytes = bw_fs_bytes_read(fs);
    walk_result_free(&result);
    bw_fs_close(fs);
    return bytes;
}

/* The counts by probe, by layer and by the file system agree. The report is written after the graph
 * was destroyed. */
static void test_walk(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){0});
    struct bw_probe_stats *of_probes = stats_make(false, "fop-unwind,cache-*");
    struct bw_probe_stats *of_layers = stats_make(true, NULL);
    struct bw_probes *probes;
    expect_success(bw_probes_create(&probes));
    bw_probes_add(probes, bw_probe_stats_consumer(of_probes));
    bw_probes_add(probes, bw_probe_stats_consumer(of_layers));
    uint64_t bytes = walk_watched(image, probes);
    char *by_probe = stats_json(of_probes), *by_layer = stats_json(of_layers);
    static const char unwind[] = "{\"probe\":\"fop-unwind\"";
    assert_int_equal(number_behind(by_probe, unwind, "count"), stats_sum_of(by_layer, "calls"));
    assert_int_equal(number_behind(by_probe, unwind, "total_ns"),
                     stats_sum_of(by_layer, "total_ns"));
    assert_int_equal(number_behind(by_layer, "\"layer_type\":\"storage/file\"", "bytes"), bytes);
    assert_int_equal(stats_sum_of(by_layer, "errors"), 0);
    assert_in_range(stats_sum_of(by_layer, "share_permille"), 990, 1010);
    free(by_layer);
    free(by_probe);
    bw_probes_destroy(probes);
    bw_probe_stats_destroy(of_layers);
    bw_probe_stats_destroy(of_probes);
    iw_destroy(image);
}
