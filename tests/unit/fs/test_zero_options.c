/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zero is the best default: option structures with nothing but their size and what they cannot do
 * without. test_probes, test_data_stream, test_space_map and roots.sh have those of their parts. */
#include "support/walk_helpers.h"

#include "btrfs-walk/check.h"
#include "btrfs-walk/history.h"
#include "ondisk/disk.h"

static void spoil(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->label[0] ^= 3; /* two bits: one would be corrected */
}

/* Without a good superblock copy 0. */
static struct iw_image *make_damaged(void)
{
    struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
    iw_superblock_edit(image, 0, 1, spoil, NULL, false);
    return image;
}

/* Only the images, which have no default. */
static struct bw_fs_options options_of(const char *const *path)
{
    struct bw_fs_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.paths = path;
    options.path_count = 1;
    return options;
}

static struct bw_fs *open_damaged(const struct iw_image *image)
{
    const char *const path = iw_path(image, 0);
    const struct bw_fs_options options = options_of(&path);
    struct bw_fs *fs = NULL;
    expect_success(bw_fs_open(&options, &fs));
    return fs;
}

static void test_damaged_superblock(void **state)
{
    struct iw_image *image = make_damaged();
    struct bw_fs *fs = open_damaged(image);
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 0});
    expect_success(result.error);
    expect_paths(image, &result);
    walk_result_free(&result);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* The numbers of single copies, and -1, which programs have that were built with version 0.2.0. */
static void test_copies(void **state)
{
    static const struct {
        int number;
        enum bw_error_code code;
        const char *message;
    } copies[] = {
        {BW_ANY_SUPERBLOCK_COPY, 0, NULL},
        {BW_SUPERBLOCK_COPY_0, BW_ERROR_NOT_BTRFS, "superblock copy 0 at 65536: crc32c checksum"},
        {BW_SUPERBLOCK_COPY_1, 0, NULL},
        {BW_SUPERBLOCK_COPY_2, BW_ERROR_NOT_BTRFS, "too small"},
        {-1, 0, NULL},
        {-2, BW_ERROR_USAGE, "no superblock copy of the number -2"},
        {4, BW_ERROR_USAGE, "no superblock copy of the number 4"},
    };
    struct iw_image *image = make_damaged();
    const char *const path = iw_path(image, 0);
    struct bw_fs_options options = options_of(&path);
    for (size_t i = 0; i < COUNT(copies); i++) {
        struct bw_fs *fs = NULL;
        options.superblock_copy = copies[i].number;
        struct bw_error *error = bw_fs_open(&options, &fs);
        if (copies[i].message)
            expect_error(error, copies[i].code, copies[i].message);
        else
            expect_success(error);
        bw_fs_close(fs);
    }
    iw_destroy(image);
}

static struct bw_error *count_paths(void *context, const char *paths, size_t length)
{
    for (size_t i = 0; i < length; i++)
        *(size_t *)context += !paths[i];
    return NULL;
}

/* All files are listed, and names with line feeds do not confuse: a NUL ends each path. */
static void test_walk(void **state)
{
    struct iw_image *image = make_damaged();
    struct bw_fs *fs = open_damaged(image);
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 0});
    struct bw_walk_summary summary;
    size_t listed = 0;
    const struct bw_walk_options walk = {
        .struct_size = sizeof walk, .consume = count_paths, .context = &listed};
    expect_success(bw_walk(fs, &walk, &summary));
    assert_int_equal(listed, result.count);
    walk_result_free(&result);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* The current generation is found without a scan, and the check is complete. */
static void test_states_and_check(void **state)
{
    struct iw_image *image = make_damaged();
    struct bw_fs *fs = open_damaged(image);
    struct bw_history_facts facts;
    struct bw_history *past = NULL;
    expect_success(bw_history_open(
        fs, &(struct bw_history_options){.struct_size = sizeof(struct bw_history_options)}, &past));
    bw_history_facts(past, &facts);
    assert_true(facts.scanned);
    assert_int_equal(bw_history_entry(past, 0)->missing, 0);
    assert_true(bw_history_entry(past, 0)->assessed);
    bw_history_close(past);
    const struct bw_check_options how = {.struct_size = sizeof how};
    struct bw_check_summary *summary;
    expect_success(bw_check(fs, &how, &summary));
    assert_true(summary->finished && summary->blocks > 0);
    bw_check_summary_free(summary);
    bw_fs_close(fs);
    iw_destroy(image);
}
