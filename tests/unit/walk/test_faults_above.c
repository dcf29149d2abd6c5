/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that no checksum detects: injected above features/verify, or on disk with a graph that
 * lacks this layer. Wrong bytes reach the btree and the walk. Their results may be wrong, but both
 * must end, stay inside their blocks (checked by the sanitizers), and print only absolute paths.
 * Faults that are detectable without a checksum cause no wrong results.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static const char *const layers[] = {"verify", "read-ahead", "node-cache"};

enum { NODESIZE = 4096 };

static struct iw_image *make_image(void)
{
    return sample_image(
        &(struct iw_options){.nodesize = NODESIZE, .items_per_leaf = 6, .pointers_per_node = 4});
}

/* Valid absolute paths. */
static void expect_form(const struct walk_result *result)
{
    assert_true(result->bytes.length == 0 || result->bytes.data[result->bytes.length - 1] == '\0');
    assert_true(result->count < 10000);
    assert_int_equal(result->count, result->summary.files);
    for (size_t i = 0; i < result->count; i++) {
        const char *path = result->paths[i];
        size_t length = strlen(path);
        if (path[0] != '/' || length < 2 || path[length - 1] == '/' || strstr(path, "//"))
            fail_msg("\"%s\" is no absolute path", path);
    }
}

/* Walks if the file system opens at all; takes the error if not. */
static struct walk_result walk_if_open(struct bw_error *error, struct bw_fs *fs, unsigned threads)
{
    struct walk_result result = {0};
    if (!error) {
        result = walk_fs(fs, &(struct bw_walk_options){.threads = threads});
        expect_success(result.error);
        expect_form(&result);
    }
    bw_error_free(error);
    bw_fs_close(fs);
    return result;
}

static struct walk_result walk_with(const struct iw_image *image, const char *rule,
                                    const char *layer, unsigned seed, const char *rate,
                                    struct report_log *log)
{
    const char *paths[IW_MAX_DEVICES];
    struct graph_changes changes = {0};
    struct bw_fs *fs;
    insert_layer(&changes, "debug/error-gen@%s,action=%s,seed=%u,rate=%s", layer, rule, seed, rate);
    struct bw_error *error = open_changed(paths, iw_paths_of(image, paths), &changes, log, &fs);
    if (error)
        log->counts[BW_DAMAGE]++; /* the error is the report */
    return walk_if_open(error, fs, 1 + seed % 2 * 2);
}

static void for_rules(const char *const *actions, size_t count,
                      void (*check)(const struct iw_image *image, const struct walk_result *result,
                                    const char *action, const struct report_log *log))
{
    static const char *const rates[] = {"2%", "10%", "40%", "100%"};
    struct iw_image *image = make_image();
    for (size_t seed = 0; seed < 25; seed += sweep_step(5))
        for (size_t i = 0; i < count * COUNT(layers) * COUNT(rates); i++) {
            struct report_log log = {0};
            const char *action = actions[i % count], *rate = rates[i / count / COUNT(layers)];
            struct walk_result result = walk_with(image, action, layers[i / count % COUNT(layers)],
                                                  (unsigned)seed, rate, &log);
            check(image, &result, action, &log);
            walk_result_free(&result);
            report_log_free(&log);
        }
    iw_destroy(image);
}

/* A block that fails is lost, wherever it failed; an old one fails if it is a node, or does as well
 * as the new. */
static void expect_subset(const struct iw_image *image, const struct walk_result *result,
                          const char *action, const struct report_log *log)
{
    struct iw_paths all = iw_expected_paths(image);
    const char *example = "";
    if (count_foreign(result, &all, &example))
        fail_msg("%s above verify: \"%s\" is too much\n%s", action, example, log->text.data);
    if (result->count < all.count && !log->counts[BW_DAMAGE])
        fail_msg("%s above verify: %zu of %zu paths, and no damage", action, result->count,
                 all.count);
    iw_paths_free(&all);
}

static void test_failed_reads(void **state)
{
    static const char *const actions[] = {"eio", "short", "stale"};
    for_rules(actions, COUNT(actions), expect_subset);
}

static void expect_an_end(const struct iw_image *image, const struct walk_result *result,
                          const char *action, const struct report_log *log)
{
}

static void test_wrong_bytes(void **state)
{
    static const char *const actions[] = {"flip", "zero"};
    for_rules(actions, COUNT(actions), expect_an_end);
}

/* Graphs without features/verify. */

static const char *const top_layers[] = {
    "",
    "volume node-cache\n type performance/node-cache\n subvolumes chunk-map\nend-volume\n",
    ("volume read-ahead\n type performance/read-ahead\n subvolumes chunk-map\nend-volume\n"
     "volume node-cache\n type performance/node-cache\n subvolumes read-ahead\nend-volume\n"),
};

/* A volfile in memory, named for this process. */
static int write_volfile(const struct iw_image *image, const char *top, char *name, size_t size)
{
    int descriptor = memfd_create("volfile", 0);
    assert_true(descriptor >= 0);
    dprintf(descriptor,
            "volume device-1\n type storage/file\n option path %s\nend-volume\n"
            "volume chunk-map\n type cluster/chunk-map\n subvolumes device-1\nend-volume\n%s",
            iw_path(image, 0), top);
    snprintf(name, size, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

static struct walk_result walk_unverified(const struct iw_image *image, const char *top,
                                          unsigned threads)
{
    char name[64];
    int descriptor = write_volfile(image, top, name, sizeof name);
    const struct bw_graph_options graph = {.struct_size = sizeof graph, .file = name};
    const struct bw_fs_options options = {
        .struct_size = sizeof options, .superblock_copy = BW_ANY_SUPERBLOCK_COPY, .graph = &graph};
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_fs_open(&options, &fs);
    close(descriptor);
    return walk_if_open(error, fs, threads);
}

static void test_healthy_without_verify(void **state)
{
    struct iw_image *image = make_image();
    for (size_t i = 0; i < COUNT(top_layers); i++) {
        struct walk_result result = walk_unverified(image, top_layers[i], 2);
        expect_paths(image, &result);
        walk_result_free(&result);
    }
    iw_destroy(image);
}

/* Sequence of numbers that looks random. */
static uint64_t next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Turns around some bytes: mostly in the header and the first items, where they do most. Twice
 * restores. */
static void damage(struct iw_image *image, uint64_t seed)
{
    uint64_t state = seed;
    for (unsigned i = 0; i < 1 + seed % 4; i++) {
        const struct iw_block *block =
            iw_block(image, (size_t)next_number(&state) % iw_block_count(image));
        uint32_t room = next_number(&state) % 2 ? 256 : NODESIZE;
        uint32_t offset = (uint32_t)(next_number(&state) % room);
        uint32_t length = (uint32_t)(1 + next_number(&state) % 16);
        length = length < NODESIZE - offset ? length : NODESIZE - offset;
        iw_corrupt(image, block->logical, IW_ALL_COPIES, offset, length, IW_FLIP);
    }
}

static void test_damage_without_verify(void **state)
{
    struct iw_image *image = make_image();
    for (size_t seed = 0; seed < 1000; seed += sweep_step(5)) {
        damage(image, seed);
        struct walk_result result =
            walk_unverified(image, top_layers[seed % COUNT(top_layers)], 1 + (unsigned)seed % 3);
        walk_result_free(&result);
        damage(image, seed);
    }
    check_walk(image, NULL);
    iw_destroy(image);
}
