/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults in all copies of one block, with each profile: the walk loses only what the block
 * alone contains, reports exactly that, and lists the rest. Also the layers and causes in errors.
 */
#include "ondisk/tree_title.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static const struct profile {
    uint64_t flag;
    unsigned devices;
} profiles[] = {
    {0, 1},
    {BW_GROUP_DUP, 1},
    {BW_GROUP_RAID1, 2},
    {BW_GROUP_RAID1C3, 3},
    {BW_GROUP_RAID10, 4},
    {BW_GROUP_RAID5, 3},
    {BW_GROUP_RAID6, 4},
};

static const char *const actions[] = {"eio", "flip", "zero", "short", "stale"};

enum { NODESIZE = 4096, SUBVOLUME = 256 };

static void make_files(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                       const char *prefix)
{
    for (unsigned i = 0; i < 9; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %u", prefix, i);
        iw_file(image, subvolume, directory, name);
    }
}

/* Directories in directories, one that was moved, links; a subvolume in one of them; many chunks.
 */
static struct iw_image *make_image(const struct profile *profile)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = NODESIZE,
                                                            .checksum_type = BW_CHECKSUM_SHA256,
                                                            .items_per_leaf = 8,
                                                            .pointers_per_node = 5,
                                                            .profile = profile->flag,
                                                            .device_count = profile->devices,
                                                            .data_chunks = 20});
    uint64_t outer = iw_directory(image, FS, TOP, "outer");
    make_files(image, FS, outer, "in outer");
    uint64_t inner = iw_directory(image, FS, outer, "inner");
    make_files(image, FS, inner, "in inner");
    uint64_t linked = iw_file(image, FS, inner, "linked");
    iw_link(image, FS, linked, TOP, "linked at the top");
    iw_next_inode(image, FS, 9000);
    uint64_t late = iw_directory(image, FS, TOP, "late");
    iw_move(image, FS, inner, outer, "inner", late, "moved");
    iw_subvolume(image, SUBVOLUME, FS, TOP, "subvolume", 0);
    uint64_t directory = iw_directory(image, SUBVOLUME, TOP, "directory");
    make_files(image, SUBVOLUME, directory, "in subvolume");
    make_files(image, SUBVOLUME, TOP, "at its top");
    iw_write_memory(image);
    return image;
}

/* Opens an image in which every mirror of a block fails. */
static struct bw_error *open_without(const struct iw_image *image, const struct iw_block *lost,
                                     const char *action, struct report_log *log, struct bw_fs **fs)
{
    const char *paths[IW_MAX_DEVICES];
    struct graph_changes changes = {0};
    insert_layer(&changes, "debug/error-gen@chunk-map,start=%llu,end=%llu,action=%s",
                 (unsigned long long)lost->logical, (unsigned long long)lost->logical + NODESIZE,
                 action);
    return open_changed(paths, iw_paths_of(image, paths), &changes, log, fs);
}

static struct walk_result walk_without(const struct iw_image *image, const struct iw_block *lost,
                                       const char *action, struct report_log *log)
{
    struct bw_fs *fs;
    expect_success(open_without(image, lost, action, log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    expect_success(result.error);
    bw_fs_close(fs);
    return result;
}

static bool in_subvolume(const char *path)
{
    return strncmp(path, "/subvolume/", strlen("/subvolume/")) == 0;
}

/* Which paths must be there: of the tree that lost the block, what the model can tell; all of the
 * other. */
static struct iw_paths required_paths(const struct iw_image *image, const struct iw_block *lost)
{
    struct iw_paths required = iw_expected_paths(image), told = {0};
    size_t kept = 0;
    if (lost->tree == FS)
        told = recoverable_paths(image, lost);
    for (size_t i = 0, at = 0; i < required.count; i++) {
        char *path = required.paths[i];
        while (at < told.count && strcmp(told.paths[at], path) < 0)
            at++;
        bool is_told = at < told.count && strcmp(told.paths[at], path) == 0;
        bool keep = lost->tree == FS ? is_told || in_subvolume(path) : !in_subvolume(path);
        if (keep)
            required.paths[kept++] = path;
        else
            free(path);
    }
    required.count = kept;
    iw_paths_free(&told);
    return required;
}

/* Checks that no path is made up and no recoverable path is missing; returns whether the list is
 * complete. */
static bool expect_between(const struct iw_image *image, const struct iw_block *lost,
                           const struct walk_result *result, const char *action)
{
    struct iw_paths all = iw_expected_paths(image), required = required_paths(image, lost);
    const char *example = "";
    if (count_foreign(result, &all, &example))
        fail_msg("%s of block %llu of tree %llu: \"%s\" is too much", action,
                 (unsigned long long)lost->logical, (unsigned long long)lost->tree, example);
    if (count_missing(result, &required, &example))
        fail_msg("%s of block %llu of tree %llu: \"%s\" is missing", action,
                 (unsigned long long)lost->logical, (unsigned long long)lost->tree, example);
    bool complete = result->count == all.count;
    iw_paths_free(&required);
    iw_paths_free(&all);
    return complete;
}

/* The lost block is reported once, and nothing else. */
static void expect_report(const struct iw_block *lost, const struct report_log *log,
                          const char *action)
{
    char start[128];
    snprintf(start, sizeof start, "damage features/verify tree block %llu of %s (level %u): ",
             (unsigned long long)lost->logical, bw_tree_title(lost->tree).text, lost->level);
    const char *text = log->text.length ? log->text.data : "nothing";
    if (log->counts[BW_DAMAGE] != 1 || log->counts[BW_WARNING] || log->counts[BW_NOTE] ||
        report_log_count(log, start) != 1)
        fail_msg("%s: expected one \"%s\", not: %s", action, start, text);
}

/* Loses a block in each way; whether the walk came to need it. */
static bool lose_block(const struct iw_image *image, const struct iw_block *lost)
{
    size_t needed = 0;
    for (size_t i = 0; i < COUNT(actions); i++) {
        struct report_log log = {0};
        struct walk_result result = walk_without(image, lost, actions[i], &log);
        bool complete = expect_between(image, lost, &result, actions[i]);
        if (!complete || log.text.length) {
            expect_report(lost, &log, actions[i]);
            needed++;
        }
        assert_int_equal(result.summary.lost_blocks, log.counts[BW_DAMAGE]);
        walk_result_free(&result);
        report_log_free(&log);
    }
    assert_true(needed == 0 || needed == COUNT(actions));
    return needed;
}

static void test_blocks_of_subvolumes(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i += variant_step()) {
        struct iw_image *image = make_image(&profiles[i]);
        size_t needed = 0;
        for (size_t at = 0; at < iw_block_count(image); at++)
            if (iw_block(image, at)->tree == FS || iw_block(image, at)->tree == SUBVOLUME)
                needed += lose_block(image, iw_block(image, at));
        assert_true(needed > 10);
        assert_true(lose_block(image, iw_root_block(image, FS)));
        assert_true(lose_block(image, iw_root_block(image, SUBVOLUME)));
        iw_destroy(image);
    }
}

/* The chunks in a lost leaf of the chunk tree are found elsewhere, as far as they are needed; the
 * message names the block. */
static void test_leaves_of_the_chunk_tree(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i += variant_step()) {
        struct iw_image *image = make_image(&profiles[i]);
        const struct iw_block *lost;
        for (size_t nth = 0; (lost = iw_block_find(image, BW_CHUNK_TREE, 0, nth)); nth++) {
            struct report_log log = {0};
            char text[128];
            snprintf(text, sizeof text, "tree block %llu of the chunk tree (level 0): ",
                     (unsigned long long)lost->logical);
            struct walk_result result =
                walk_without(image, lost, actions[nth % COUNT(actions)], &log);
            expect_success(result.error);
            expect_paths(image, &result);
            assert_int_equal(report_log_count(&log, text), 1);
            assert_int_equal(report_log_count(&log, "the chunk tree is lost"), 1);
            walk_result_free(&result);
            report_log_free(&log);
        }
        iw_destroy(image);
    }
}

/* The trees are rebuilt; the message names the block. Other actions affect all blocks that a scan
 * reads together. */
static void test_roots_that_all_depends_on(void **state)
{
    static const uint64_t trees[] = {BW_CHUNK_TREE, BW_ROOT_TREE};
    for (size_t i = 0; i < COUNT(profiles) * COUNT(trees) * 2; i++) {
        struct iw_image *image = make_image(&profiles[i % COUNT(profiles)]);
        const struct iw_block *lost =
            iw_root_block(image, trees[i / COUNT(profiles) % COUNT(trees)]);
        const char *action = actions[i / COUNT(profiles) / COUNT(trees)];
        struct report_log log = {0};
        char text[128];
        snprintf(text, sizeof text,
                 "tree block %llu of %s (level %u): ", (unsigned long long)lost->logical,
                 bw_tree_title(lost->tree).text, lost->level);
        struct walk_result result = walk_without(image, lost, action, &log);
        expect_success(result.error);
        expect_paths(image, &result);
        assert_int_equal(report_log_count(&log, text), 1);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* A walk reads the extent tree only if something is lost. */
static void test_extent_tree(void **state)
{
    for (size_t i = 0; i < COUNT(profiles) * COUNT(actions); i++) {
        struct iw_image *image = make_image(&profiles[i % COUNT(profiles)]);
        struct report_log log = {0};
        struct walk_result result = walk_without(image, iw_root_block(image, BW_EXTENT_TREE),
                                                 actions[i / COUNT(profiles)], &log);
        expect_paths(image, &result);
        assert_int_equal(log.text.length, 0);
        walk_result_free(&result);
        iw_destroy(image);
    }
}

/* The way of an error. */

static void append_error(struct bw_buffer *text, const struct bw_error *error, int depth)
{
    bw_buffer_format(text, "%*s%d:", depth, "", error->code);
    for (const struct bw_error_hop *hop = error->way; hop; hop = hop->next)
        bw_buffer_format(text, " %s/%s at %llu", hop->layer, hop->volume,
                         (unsigned long long)hop->address);
    bw_buffer_format(text, "\n");
    for (const struct bw_error *cause = error->causes; cause; cause = cause->next)
        append_error(text, cause, depth + 1);
}

/* Records the layers and causes of each error. */
static void note_way(void *context, enum bw_severity severity, const struct bw_error *error)
{
    if (severity == BW_DAMAGE)
        append_error(context, error, 0);
}

static void expect_ways(const struct iw_image *image, const struct graph_changes *changes,
                        const char *expected)
{
    const char *paths[IW_MAX_DEVICES];
    struct bw_graph_edit edits[COUNT(changes->changes)];
    struct bw_buffer text = {0};
    for (size_t i = 0; i < changes->count; i++)
        edits[i] = (struct bw_graph_edit){changes->changes[i].kind, changes->changes[i].text};
    const struct bw_fs_options options = {
        .struct_size = sizeof(struct bw_fs_options),
        .paths = paths,
        .path_count = iw_paths_of(image, paths),
        .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
        .graph = &(struct bw_graph_options){.struct_size = sizeof(struct bw_graph_options),
                                            .edits = edits,
                                            .edit_count = changes->count},
        .reporter = {note_way, &text}};
    struct bw_fs *fs;
    expect_success(bw_fs_open(&options, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
    expect_success(result.error);
    walk_result_free(&result);
    bw_fs_close(fs);
    assert_string_equal(bw_buffer_text(&text), expected);
    bw_buffer_free(&text);
}

/* The way of a tree block's error through the default graph; read-ahead only takes hints, reads go
 * past it.
 */
#define WAY_FROM_VERIFY \
    " features/verify/verify at %llu performance/node-cache/node-cache at %llu\n"

/* Both copies fail, each in its own way: one is not read, the other one is not what it should be.
 */
static void test_way_through_two_copies(void **state)
{
    struct iw_image *image = make_image(&(struct profile){BW_GROUP_RAID1, 2});
    unsigned long long at = iw_root_block(image, FS)->logical;
    unsigned devices[2];
    uint64_t offsets[2];
    char expected[1024];
    struct graph_changes changes = {0};
    for (unsigned copy = 0; copy < 2; copy++) {
        assert_true(iw_locate(image, at, copy + 1, &devices[copy], &offsets[copy]));
        insert_layer(&changes, "debug/error-gen@device-%u,start=%llu,end=%llu,action=%s",
                     devices[copy] + 1, (unsigned long long)offsets[copy],
                     (unsigned long long)offsets[copy] + NODESIZE, copy ? "flip" : "eio");
    }
    snprintf(expected, sizeof expected,
             "%d:" WAY_FROM_VERIFY " %d: debug/error-gen/error-gen@device-%u at %llu "
             "cluster/chunk-map/chunk-map at %llu\n %d: features/verify/verify at %llu\n",
             BW_ERROR_CORRUPT, at, at, BW_ERROR_SYSTEM, devices[0] + 1,
             (unsigned long long)offsets[0], at, BW_ERROR_CORRUPT, at);
    expect_ways(image, &changes, expected);
    iw_destroy(image);
}

/* A stripe cannot be read, nor can another one that it would be computed from. */
static void test_way_through_parity(void **state)
{
    struct iw_image *image = make_image(&(struct profile){BW_GROUP_RAID5, 3});
    unsigned long long at = iw_root_block(image, FS)->logical;
    unsigned device, parity_device;
    uint64_t offset, parity_offset;
    char expected[1024];
    struct graph_changes changes = {0};
    assert_true(iw_locate(image, at, 1, &device, &offset));
    assert_true(iw_locate_parity(image, at, 0, &parity_device, &parity_offset));
    insert_layer(&changes, "debug/error-gen@device-%u,start=%llu,end=%llu,action=short", device + 1,
                 (unsigned long long)offset, (unsigned long long)offset + NODESIZE);
    insert_layer(&changes, "debug/error-gen@device-%u,start=%llu,end=%llu,kind=raw",
                 parity_device + 1, (unsigned long long)parity_offset,
                 (unsigned long long)parity_offset + NODESIZE);
    snprintf(expected, sizeof expected,
             "%d:" WAY_FROM_VERIFY " %d: debug/error-gen/error-gen@device-%u at %llu "
             "cluster/chunk-map/chunk-map at %llu\n %d: cluster/chunk-map/chunk-map at %llu\n"
             "  %d: debug/error-gen/error-gen@device-%u at %llu\n",
             BW_ERROR_SYSTEM, at, at, BW_ERROR_CORRUPT, device + 1, (unsigned long long)offset, at,
             BW_ERROR_SYSTEM, at, BW_ERROR_SYSTEM, parity_device + 1,
             (unsigned long long)parity_offset);
    expect_ways(image, &changes, expected);
    iw_destroy(image);
}
