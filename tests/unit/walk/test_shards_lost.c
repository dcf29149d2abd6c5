/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shards of damaged file systems: whichever blocks are lost, the parts together list each entry of
 * a single walk, no entry twice, and none at a wrong path.
 */
#include "support/walk_helpers.h"

enum { SNAPSHOT = 256, DIRECTORIES = 120 };

static void make_files(struct iw_image *image, uint64_t directory, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %u", i);
        iw_file(image, FS, directory, name);
    }
}

/* Directories in each other, whose entries begin and end anywhere in leaves and nodes. One of them
 * is moved with all below it, so that its parent has a greater number. */
static struct iw_image *make_image(bool with_snapshot)
{
    struct iw_image *image = iw_create(
        &(struct iw_options){.nodesize = 4096, .items_per_leaf = 7, .pointers_per_node = 40});
    uint64_t directories[DIRECTORIES] = {TOP};
    for (unsigned i = 1; i < DIRECTORIES; i++) {
        const unsigned parent = i < 4 ? 0 : i / 8 * 2 + i % 2;
        char name[32];
        snprintf(name, sizeof name, "directory %u", i);
        directories[i] = iw_directory(image, FS, directories[parent], name);
        make_files(image, directories[i], i * 5 % 13);
    }
    if (with_snapshot) {
        iw_snapshot(image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
        iw_use_full_references(image, SNAPSHOT);
    }
    iw_move(image, FS, directories[2], TOP, "directory 2", directories[DIRECTORIES - 1], "moved");
    iw_write_memory(image);
    return image;
}

static struct walk_result walk_part(struct bw_fs *fs, unsigned shard, unsigned shards)
{
    const struct bw_walk_options options = {.types = BW_WALK_FILES | BW_WALK_DIRECTORIES,
                                            .threads = 1,
                                            .shard = shard,
                                            .shards = shards};
    struct walk_result result = walk_fs(fs, &options);
    expect_success(result.error);
    return result;
}

/* Fails if a list has a path twice, or one that another list lacks. Both are sorted. */
static void check_subset(const char *what, unsigned seed, char *const *paths, size_t count,
                         const struct walk_result *all)
{
    for (size_t i = 0, at = 0; i < count; i++) {
        while (at < all->count && strcmp(all->paths[at], paths[i]) < 0)
            at++;
        if (at == all->count || strcmp(all->paths[at++], paths[i]) != 0)
            fail_msg("seed %u: %s: \"%s\"", seed, what, paths[i]);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of all parts, sorted. The strings belong to `parts`. */
static struct walk_result join_parts(struct walk_result *parts, unsigned shards)
{
    struct walk_result all = {0};
    for (unsigned i = 0; i < shards; i++)
        all.count += parts[i].count;
    all.paths = calloc(all.count + 1, sizeof *all.paths);
    for (size_t i = 0, at = 0; i < shards; at += parts[i++].count)
        memcpy(all.paths + at, parts[i].paths, parts[i].count * sizeof *all.paths);
    qsort(all.paths, all.count, sizeof *all.paths, by_bytes);
    return all;
}

/* Walks with the seed of the faults, as a whole and in parts. */
static void check_seed(const struct iw_image *image, unsigned seed, const struct walk_result *known)
{
    enum { SHARDS = 3 };
    struct graph_changes changes = {0};
    const char *paths[IW_MAX_DEVICES];
    struct walk_result parts[SHARDS];
    struct bw_fs *fs;
    insert_layer(&changes, "debug/error-gen@verify,kind=tree-block,rate=%u%%,seed=%u",
                 3 + seed % 20, seed);
    struct bw_error *error = open_changed(paths, iw_paths_of(image, paths), &changes, NULL, &fs);
    if (error) {
        bw_error_free(error);
        return;
    }
    struct walk_result whole = walk_part(fs, 0, 0);
    for (unsigned i = 0; i < SHARDS; i++)
        parts[i] = walk_part(fs, i + 1, SHARDS);
    struct walk_result all = join_parts(parts, SHARDS);
    check_subset("not there, or twice in one walk", seed, whole.paths, whole.count, known);
    check_subset("not there, or twice in the parts", seed, all.paths, all.count, known);
    check_subset("missing in the parts", seed, whole.paths, whole.count, &all);
    walk_result_free(&whole);
    for (unsigned i = 0; i < SHARDS; i++)
        walk_result_free(&parts[i]);
    free(all.paths);
    bw_fs_close(fs);
}

static void check_seeds(bool with_snapshot)
{
    struct iw_image *image = make_image(with_snapshot);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result known = walk_part(fs, 0, 0);
    for (unsigned seed = 1; seed <= 8; seed++)
        check_seed(image, seed, &known);
    walk_result_free(&known);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_subvolume(void **state)
{
    (void)state;
    check_seeds(false);
}

static void test_snapshot(void **state)
{
    (void)state;
    check_seeds(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subvolume),
        cmocka_unit_test(test_snapshot),
    };
    return cmocka_run_group_tests(tests, limit_resources, NULL);
}
