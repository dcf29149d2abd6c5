/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data through every profile with bad copies: replaced sector by sector, rebuilt from parity, or told. */
#include "support/data_image.h"
#include "support/image_writer_internal.h"

enum { FILE_SIZE = 300000 };

static const struct {
    uint64_t profile;
    unsigned copies; /* stored ones */
    bool parity;
} profiles[] = {
    {0, 1, false},
    {BW_GROUP_DUP, 2, false},
    {BW_GROUP_RAID0, 1, false},
    {BW_GROUP_RAID1, 2, false},
    {BW_GROUP_RAID1C3, 3, false},
    {BW_GROUP_RAID1C4, 4, false},
    {BW_GROUP_RAID10, 2, false},
    {BW_GROUP_RAID5, 1, true},
    {BW_GROUP_RAID6, 1, true},
};

static struct data_image *make(uint64_t profile, enum bw_checksum_type checksum,
                               void (*before)(struct data_image *))
{
    struct data_image *image = data_image_create(profile, checksum);
    data_image_plain(image, 0, 0, FILE_SIZE / SECTOR * SECTOR + SECTOR);
    data_image_checksums(image, 0, 40);
    data_image_checksums(image, 40, FILE_SIZE / SECTOR + 1 - 40);
    data_image_inode(image, FILE_SIZE, 0);
    data_image_open(image, before);
    return image;
}

static void expect_whole(struct data_image *image)
{
    struct data_result result;
    const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_string_equal(result.first_error, "");
    assert_int_equal(result.bytes.length, FILE_SIZE);
    assert_memory_equal(result.bytes.data, image->data, FILE_SIZE);
    data_result_free(&result);
    data_image_read(image, &file, 70001, 5000, &result);
    assert_int_equal(result.bytes.length, 5000);
    assert_memory_equal(result.bytes.data, image->data + 70001, 5000);
    data_result_free(&result);
}

static void test_healthy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(profiles); i++)
        for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
            struct data_image *image = make(profiles[i].profile, (enum bw_checksum_type)type, NULL);
            expect_whole(image);
            assert_int_equal(image->log.counts[BW_NOTE], 0);
            data_image_free(image);
        }
}

static void spoil_first_copy(struct data_image *image)
{
    iw_corrupt(image->image, image->logical + 5 * SECTOR, 1, 100, 50, IW_FLIP);
    for (unsigned sector = 30; sector < 33; sector++)
        iw_corrupt(image->image, image->logical + sector * SECTOR, 1, 0, SECTOR, IW_ZERO);
}

static void test_bad_copy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].copies < 2 && !profiles[i].parity)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_CRC32C, spoil_first_copy);
        expect_whole(image);
        assert_true(report_log_count(&image->log, "data at ") >= 2);
        assert_int_equal(report_log_count(&image->log, "used copy 2 instead of a bad one (copy 1 on device "),
                         image->log.counts[BW_NOTE]);
        assert_int_equal(image->log.counts[BW_DAMAGE], 0);
        data_image_free(image);
    }
}

/* No copy is good as a whole. */
static void spoil_in_turn(struct data_image *image)
{
    for (unsigned sector = 0; sector < 32; sector++)
        iw_corrupt(image->image, image->logical + sector * SECTOR,
                   1 + sector % iw_copies(image->image, image->logical), 7, 1, IW_FLIP);
}

static void test_combined(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].copies < 2)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_XXHASH64, spoil_in_turn);
        expect_whole(image);
        assert_int_equal(image->log.counts[BW_DAMAGE], 0);
        data_image_free(image);
    }
}

static void remove_device(struct data_image *image)
{
    unsigned device;
    uint64_t offset;
    iw_locate(image->image, image->logical, 1, &device, &offset);
    iw_remove_device(image->image, device);
}

static void test_missing_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if ((profiles[i].copies < 2 && !profiles[i].parity) || profiles[i].profile == BW_GROUP_DUP)
            continue;
        if (!(profiles[i].profile & (BW_GROUP_RAID1 | BW_GROUP_RAID1C3)))
            continue; /* metadata are single there */
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_CRC32C, remove_device);
        expect_whole(image);
        data_image_free(image);
    }
}

static void spoil_all(struct data_image *image)
{
    iw_corrupt(image->image, image->logical + 5 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
    iw_corrupt(image->image, image->logical + 6 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
    iw_corrupt(image->image, image->logical + 50 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
}

static void test_no_good_copy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].parity)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_SHA256, spoil_all);
        const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
        struct data_result result;
        char last[64];
        data_image_read(image, &file, 0, UINT64_MAX, &result);
        assert_int_equal(result.bad, 3 * SECTOR);
        assert_int_equal(result.bad_parts, 2);
        assert_non_null(strstr(result.first_error, " of tree 5 at 20480: data at "));
        snprintf(last, sizeof last, "copy %u on device ", profiles[i].copies);
        assert_non_null(strstr(result.first_error, last));
        assert_non_null(strstr(result.first_error, "sha256 checksum mismatch"));
        assert_memory_equal(result.bytes.data, image->data, 5 * SECTOR);
        assert_memory_equal(result.bytes.data + 5 * SECTOR, "!!!!", 4);
        assert_memory_equal(result.bytes.data + 7 * SECTOR, image->data + 7 * SECTOR, 43 * SECTOR);
        data_result_free(&result);

        /* Whoever does not ask for checksums gets what is there. */
        const struct bw_data_file unchecked = data_image_file(image, FILE_SIZE, true);
        data_image_read(image, &unchecked, 0, UINT64_MAX, &result);
        assert_int_equal(result.bad, 0);
        assert_memory_not_equal(result.bytes.data + 5 * SECTOR, image->data + 5 * SECTOR, SECTOR);
        data_result_free(&result);
        data_image_free(image);
    }
}

/* Reads that fail: of copy 1 in one sector, of copy 2 in another. */
static void test_read_errors(void **state)
{
    (void)state;
    struct data_image *image = make(BW_GROUP_RAID1, BW_CHECKSUM_CRC32C, NULL);
    bw_fs_close(image->fs);
    image->fs = NULL;
    struct graph_changes changes = {.count = 0};
    const char *paths[IW_MAX_DEVICES];
    size_t count = iw_paths_of(image->image, paths);
    for (unsigned copy = 1; copy <= 2; copy++) {
        unsigned device;
        uint64_t offset;
        iw_locate(image->image, image->logical + 4 * copy * SECTOR, copy, &device, &offset);
        insert_layer(&changes, "debug/error-gen@device-%u,action=eio,start=%llu,end=%llu", device + 1,
                     (unsigned long long)offset, (unsigned long long)offset + SECTOR - 1);
    }
    expect_success(open_changed(paths, count, &changes, &image->log, &image->fs));
    expect_whole(image);
    assert_true(report_log_count(&image->log, "used copy ") > 0);
    data_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),      cmocka_unit_test(test_bad_copy),
        cmocka_unit_test(test_combined),     cmocka_unit_test(test_missing_device),
        cmocka_unit_test(test_no_good_copy), cmocka_unit_test(test_read_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
