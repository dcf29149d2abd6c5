/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks of images of every RAID profile: healthy, with devices missing, and with copies that are
 * bad. Whatever the profile can do without, nothing of the listing may be missing.
 */
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static const struct profile {
    uint64_t flag;
    unsigned devices;
    unsigned expendable; /* how many devices may be missing, whichever they are */
} profiles[] = {
    {0, 1, 0},
    {0, 3, 0},
    {BW_GROUP_DUP, 1, 0},
    {BW_GROUP_RAID0, 2, 0},
    {BW_GROUP_RAID0, 5, 0},
    {BW_GROUP_RAID1, 2, 1},
    {BW_GROUP_RAID1, 3, 1},
    {BW_GROUP_RAID1C3, 3, 2},
    {BW_GROUP_RAID1C4, 4, 3},
    {BW_GROUP_RAID10, 4, 1},
    {BW_GROUP_RAID10, 6, 1},
    {BW_GROUP_RAID5, 2, 1},
    {BW_GROUP_RAID5, 3, 1},
    {BW_GROUP_RAID5, 4, 1},
    {BW_GROUP_RAID5, 6, 1},
    {BW_GROUP_RAID6, 3, 2},
    {BW_GROUP_RAID6, 4, 2},
    {BW_GROUP_RAID6, 5, 2},
    {BW_GROUP_RAID6, 7, 2},
};

static struct iw_image *make_image(const struct profile *profile)
{
    return spread_image(
        (struct iw_options){.profile = profile->flag, .device_count = profile->devices});
}

/* Walks without the devices of a bit mask. */
static void check_without(const struct iw_image *image, unsigned missing, struct report_log *log)
{
    const char *paths[IW_MAX_DEVICES];
    size_t count = 0;
    for (unsigned i = 0; i < iw_device_count(image); i++)
        if (!(missing >> i & 1))
            paths[count++] = iw_path(image, i);
    check_walk_of(image, paths, count, log);
}

static void test_healthy(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        struct iw_image *image = make_image(&profiles[i]);
        struct report_log log = {0};
        check_walk(image, &log);
        assert_int_equal(log.text.length, 0);
        iw_destroy(image);
    }
}

static void test_missing_devices(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        struct iw_image *image = make_image(&profiles[i]);
        for (unsigned missing = 1; missing + 1 < 1u << profiles[i].devices; missing++) {
            struct report_log log = {0};
            unsigned count = (unsigned)__builtin_popcount(missing);
            if (count > profiles[i].expendable)
                continue;
            check_without(image, missing, &log);
            assert_int_equal(log.counts[BW_WARNING], count);
            assert_int_equal(report_log_count(&log, "is missing: the file system is degraded"),
                             count);
            report_log_free(&log);
        }
        iw_destroy(image);
    }
}

static void flip_copy(struct iw_image *image, const struct iw_block *block, unsigned copy)
{
    iw_corrupt(image, block->logical, copy, 1000, 512, IW_FLIP);
}

/* All blocks have the same copy bad; then the next. Flipping twice restores. */
static void test_bad_copies(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        struct iw_image *image = make_image(&profiles[i]);
        unsigned copies = iw_copies(image, iw_block(image, 0)->logical);
        for (unsigned copy = 1; copies > 1 && copy <= copies; copy++) {
            struct report_log log = {0};
            for (size_t at = 0; at < iw_block_count(image); at++)
                flip_copy(image, iw_block(image, at), copy);
            check_walk(image, &log);
            assert_int_equal(log.counts[BW_WARNING], 0);
            assert_true(copy > 1 ? log.counts[BW_NOTE] == 0 : log.counts[BW_NOTE] > 5);
            for (size_t at = 0; at < iw_block_count(image); at++)
                flip_copy(image, iw_block(image, at), copy);
            report_log_free(&log);
        }
        iw_destroy(image);
    }
}

/* With parity: each block bad by itself, and with RAID6, its P bad or a device missing besides. */
static void check_bad_block(struct iw_image *image, const struct iw_block *block, bool two)
{
    struct report_log log = {0};
    flip_copy(image, block, 1);
    check_walk(image, &log);
    assert_true(log.counts[BW_NOTE] <= 1);
    if (two) {
        iw_corrupt_parity(image, block->logical, 0, 1000, 512, IW_FLIP);
        check_walk(image, NULL);
        iw_corrupt_parity(image, block->logical, 0, 1000, 512, IW_FLIP);
        check_without(image, 1u << block->logical % 7 % iw_device_count(image), NULL);
    }
    flip_copy(image, block, 1);
    report_log_free(&log);
}

static void test_bad_blocks_under_parity(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (!(profiles[i].flag & (BW_GROUP_RAID5 | BW_GROUP_RAID6)))
            continue;
        struct iw_image *image = make_image(&profiles[i]);
        for (size_t at = 0; at < iw_block_count(image); at += 3)
            check_bad_block(image, iw_block(image, at), profiles[i].flag == BW_GROUP_RAID6);
        iw_destroy(image);
    }
}

/* One copy is of an older transaction, with a right checksum: what a lost write leaves. */
static void test_stale_copies(void **state)
{
    static const uint64_t flags[] = {BW_GROUP_DUP, BW_GROUP_RAID1, BW_GROUP_RAID10,
                                     BW_GROUP_RAID1C4};
    for (size_t i = 0; i < COUNT(flags); i++) {
        struct report_log log = {0};
        struct iw_image *image =
            sample_image(&(struct iw_options){.profile = flags[i], .items_per_leaf = 5});
        for (size_t at = 0; at < iw_block_count(image); at++)
            iw_stale_block(image, iw_block(image, at)->logical, 1);
        check_walk(image, &log);
        assert_true(report_log_count(&log, "generation mismatch, want 10 have 9") > 10);
        report_log_free(&log);
        iw_destroy(image);
    }
}

static void test_mixed_profiles(void **state)
{
    static const uint64_t pairs[][2] = {
        {BW_GROUP_RAID1, BW_GROUP_RAID5}, {BW_GROUP_RAID10, 0}, {BW_GROUP_DUP, BW_GROUP_RAID6}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct iw_image *image = sample_image(&(struct iw_options){.has_system_profile = true,
                                                                   .system_profile = pairs[i][0],
                                                                   .profile = pairs[i][1],
                                                                   .device_count = 5,
                                                                   .data_chunks = 9,
                                                                   .data_profile = BW_GROUP_RAID1C3,
                                                                   .items_per_leaf = 4,
                                                                   .mixed_groups = i == 1});
        check_walk(image, NULL);
        iw_destroy(image);
    }
}
