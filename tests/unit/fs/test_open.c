/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening: which superblock copy, which of the images given belong together, in any order, seeds,
 * backup roots.
 */
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static void set_generation(struct bw_disk_superblock *super, void *closure)
{
    super->generation = bw_put64(*(const uint64_t *)closure);
}

static void set_label(struct bw_disk_superblock *super, void *closure)
{
    snprintf(super->label, sizeof super->label, "%s", (const char *)closure);
}

static void forget_root(struct bw_disk_superblock *super, void *closure)
{
    super->root = bw_put64(bw_get64(super->chunk_root));
}

/* Superblock copies. */

static void test_copies(void **state)
{
    for (int broken = 0; broken < 2; broken++) {
        struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
        const char *path = iw_path(image, 0);
        struct bw_fs *fs;
        struct report_log log = {0};
        iw_superblock_edit(image, 0, (unsigned)broken + 1, set_label,
                           (void *)(uintptr_t) "not sealed", false);
        check_walk(image, &log);
        assert_int_equal(report_log_count(&log, "crc32c checksum mismatch"), 1);
        for (int copy = 0; copy < 3; copy++) {
            const int number = copy ? copy : BW_SUPERBLOCK_COPY_0;
            struct bw_error *error = open_paths(&path, 1, number, NULL, &fs);
            if (copy == 1 - broken)
                expect_success(error);
            else
                expect_error(error, BW_ERROR_NOT_BTRFS,
                             copy == 2 ? "too small for a superblock copy" : "checksum");
            bw_fs_close(fs);
        }
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* The copy with the higher generation counts, even if it is worse. */
static void test_newest_copy(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
    const char *path = iw_path(image, 0);
    uint64_t older = 9;
    struct bw_fs *fs;
    iw_superblock_edit(image, 0, 1, set_generation, &older, true);
    check_walk(image, NULL);
    expect_error(open_paths(&path, 1, BW_SUPERBLOCK_COPY_0, NULL, &fs), BW_ERROR_CORRUPT,
                 "generation mismatch, want 9 have 10");
    iw_destroy(image);
}

/* A second superblock copy after the end of the file system belongs to something else. */
static void test_leftover_copy(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){0});
    uint8_t super[BW_SUPERBLOCK_SIZE];
    iw_truncate_device(image, 0, 70 << 20);
    iw_device_read(image, 0, iw_superblock_offset(1), super, sizeof super);
    struct bw_disk_superblock *disk = (void *)super;
    disk->bytenr = bw_put64(iw_superblock_offset(2));
    disk->generation = bw_put64(99);
    bw_checksum_compute(BW_CHECKSUM_CRC32C, super + 32, sizeof super - 32, super);
    iw_device_write(image, 0, iw_superblock_offset(2), super, sizeof super);
    check_walk(image, NULL);
    iw_destroy(image);
}

static void test_nothing_to_open(void **state)
{
    struct bw_fs *fs;
    const char *missing = "/nonexistent/device";
    expect_error(open_paths(NULL, 0, -1, NULL, &fs), BW_ERROR_USAGE, "no image given");
    expect_error(open_paths(&missing, 1, -1, NULL, &fs), BW_ERROR_SYSTEM, "/nonexistent/device");
    assert_null(fs);
}

/* Several devices. */

static const uint64_t devids[] = {3, 9, 1, 20};

static struct iw_image *make_devices(uint32_t identity, uint64_t profile)
{
    return sample_image(&(struct iw_options){.identity = identity,
                                             .profile = profile,
                                             .device_count = 4,
                                             .devids = devids,
                                             .nodesize = 4096,
                                             .block_step = 16});
}

/* All orders of four devices. */
static void test_orders(void **state)
{
    struct iw_image *image = make_devices(0, BW_GROUP_RAID0);
    for (unsigned order = 0; order < 256; order++) {
        const char *paths[4];
        unsigned used = 0;
        for (unsigned i = 0; i < 4; i++) {
            paths[i] = iw_path(image, order >> 2 * i & 3);
            used |= 1u << (order >> 2 * i & 3);
        }
        if (used == 15)
            check_walk_of(image, paths, 4, NULL);
    }
    iw_destroy(image);
}

/* Opens `count` images and counts the messages. In the end, everything is listed. */
static void check_extra(const struct iw_image *image, const char *const *paths, size_t count,
                        const char *text, size_t unused)
{
    struct report_log log = {0};
    struct bw_fs *fs;
    expect_success(open_paths(paths, count, BW_ANY_SUPERBLOCK_COPY, &log, &fs));
    assert_int_equal(bw_fs_status(fs).unused_images, unused);
    assert_int_equal(bw_fs_status(fs).missing_devices, 0);
    if (report_log_count(&log, text) != 1)
        fail_msg("\"%s\" is not said once: %s", text, log.text.length ? log.text.data : "");
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
    expect_paths(image, &result);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&log);
}

static void test_foreign_image(void **state)
{
    struct iw_image *image = make_devices(0, BW_GROUP_RAID1),
                    *other = make_devices(1, BW_GROUP_RAID1);
    const char *paths[5];
    for (unsigned at = 1; at < 5; at++) {
        for (unsigned i = 0, device = 0; i < 5; i++)
            paths[i] = i == at ? iw_path(other, 0) : iw_path(image, device++);
        check_extra(image, paths, 5, "it belongs to another file system", 1);
    }
    iw_destroy(other);
    iw_destroy(image);
}

static void test_image_without_superblock(void **state)
{
    struct iw_image *image = make_devices(0, BW_GROUP_RAID1), *other = make_devices(1, 0);
    iw_truncate_device(other, 0, 10000);
    for (unsigned at = 0; at < 5; at++) {
        const char *paths[5];
        for (unsigned i = 0, device = 0; i < 5; i++)
            paths[i] = i == at ? iw_path(other, 0) : iw_path(image, device++);
        check_extra(image, paths, 5, "it is all zeros", 1);
    }
    iw_destroy(other);
    iw_destroy(image);
}

static void test_duplicates(void **state)
{
    struct iw_image *image = make_devices(0, BW_GROUP_RAID5);
    const char *paths[8];
    for (unsigned at = 0; at < 5; at++)
        for (unsigned twin = 0; twin < 4; twin++) {
            for (unsigned i = 0, device = 0; i < 5; i++)
                paths[i] = i == at ? iw_path(image, twin) : iw_path(image, device++);
            check_extra(image, paths, 5, "duplicate of device", 0);
        }
    iw_destroy(image);
}

/* One device missed the last transactions: its superblock is old, and so are its blocks. */
static void test_stale_device(void **state)
{
    for (unsigned stale = 0; stale < 4; stale++) {
        struct iw_image *image = make_devices(0, BW_GROUP_RAID1);
        uint64_t older = 8, offset;
        const char *paths[IW_MAX_DEVICES];
        for (size_t i = 0; i < iw_block_count(image); i++)
            for (unsigned copy = 1, device;
                 iw_locate(image, iw_block(image, i)->logical, copy, &device, &offset); copy++)
                if (device == stale)
                    iw_stale_block(image, iw_block(image, i)->logical, copy);
        iw_superblock_edit(image, stale, IW_ALL_COPIES, set_generation, &older, true);
        iw_superblock_edit(image, stale, IW_ALL_COPIES, forget_root, NULL, true);
        for (unsigned first = 0; first < 4; first++) {
            for (unsigned i = 0; i < 4; i++)
                paths[i] = iw_path(image, (first + i) % 4);
            check_extra(image, paths, 4, "is stale: device", 0);
        }
        iw_destroy(image);
    }
}

static void test_missing_devices(void **state)
{
    struct iw_image *image = make_devices(0, 0);
    for (unsigned missing = 0; missing < 4; missing++) {
        const char *paths[4];
        struct report_log log = {0};
        struct bw_fs *fs;
        size_t count = 0;
        for (unsigned i = 0; i < 4; i++)
            if (i != missing)
                paths[count++] = iw_path(image, i);
        struct bw_error *error = open_paths(paths, count, BW_ANY_SUPERBLOCK_COPY, &log, &fs);
        if (error) {
            expect_error(error, BW_ERROR_MISSING_DEVICE, "is missing");
        } else {
            assert_int_equal(bw_fs_status(fs).missing_devices, 1);
            assert_int_equal(report_log_count(&log, "is missing: the file system is degraded"), 1);
        }
        bw_fs_close(fs);
        report_log_free(&log);
    }
    iw_destroy(image);
}

/* Seeds: device 1 has another fsid, the seeding flag and the blocks of before. */
static void turn_into_seed(struct bw_disk_superblock *super, void *closure)
{
    const uint64_t older = 5;
    super->flags = bw_put64(bw_get64(super->flags) | BW_SUPER_FLAG_SEEDING);
    memset(super->fsid, 0x5e, BW_UUID_SIZE);
    super->device_count = bw_put64(1);
    set_generation(super, (void *)(uintptr_t)&older);
}

static void give_seed_id(uint8_t *block, uint32_t nodesize, void *closure)
{
    memset(((struct bw_disk_header *)block)->fsid, 0x5e, BW_UUID_SIZE);
}

static void test_seed(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){
        .device_count = 2, .nodesize = 4096, .items_per_leaf = 5, .data_chunks = 1});
    const char *const forward[] = {iw_path(image, 0), iw_path(image, 1)};
    const char *const backward[] = {iw_path(image, 1), iw_path(image, 0)};
    size_t changed = 0;
    for (size_t i = 0; i < iw_block_count(image); i++) {
        unsigned device;
        uint64_t offset;
        iw_locate(image, iw_block(image, i)->logical, 1, &device, &offset);
        if (device == 0) {
            iw_rewrite_block(image, iw_block(image, i)->logical, give_seed_id, NULL, true);
            changed++;
        }
    }
    assert_true(changed > 5 && changed < iw_block_count(image));
    iw_superblock_edit(image, 0, IW_ALL_COPIES, turn_into_seed, NULL, true);
    check_walk_of(image, forward, 2, NULL);
    check_walk_of(image, backward, 2, NULL);
    iw_destroy(image);
}

/* The root of the root tree is lost, and so is the newest transaction. */
static void swap_root(struct bw_disk_superblock *super, void *closure)
{
    /* Makes the current root a backup root; the current root pointer becomes invalid. */
    struct bw_disk_backup_root good = super->backup_roots[2];
    memset(super->backup_roots, 0, sizeof super->backup_roots);
    super->backup_roots[*(unsigned *)closure] = good;
    super->generation = bw_put64(11);
    super->root = super->chunk_root;
}

static void test_backup_roots(void **state)
{
    for (unsigned place = 0; place < BW_BACKUP_ROOTS; place++) {
        struct iw_image *image = sample_image(&(struct iw_options){0});
        struct report_log log = {0};
        struct bw_fs *fs;
        iw_superblock_edit(image, 0, IW_ALL_COPIES, swap_root, &place, true);
        expect_success(open_image(image, &log, &fs));
        assert_int_equal(report_log_count(&log, "was rebuilt from tree blocks"), 1);
        assert_int_equal(bw_fs_status(fs).damages, 1);
        struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
        expect_paths(image, &result);
        walk_result_free(&result);
        bw_fs_close(fs);
        report_log_free(&log);
        iw_destroy(image);
    }
}

static void lose_chunk_root(struct bw_disk_superblock *super, void *closure)
{
    super->chunk_root = bw_put64(bw_get64(super->chunk_root) + 65536);
}

static void test_backup_chunk_root(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){0});
    struct report_log log = {0};
    struct bw_fs *fs;
    iw_superblock_edit(image, 0, IW_ALL_COPIES, lose_chunk_root, NULL, true);
    expect_success(open_image(image, &log, &fs));
    assert_int_equal(report_log_count(&log, "using the chunk tree of generation"), 1);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

static void set_log_root(struct bw_disk_superblock *super, void *closure)
{
    super->log_root = super->root;
}

static void test_log_tree(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){0});
    struct report_log log = {0};
    struct bw_fs *fs;
    iw_superblock_edit(image, 0, IW_ALL_COPIES, set_log_root, NULL, true);
    expect_success(open_image(image, &log, &fs));
    assert_true(bw_fs_status(fs).log_tree);
    assert_true(bw_fs_status(fs).log_replayed);
    assert_int_equal(report_log_count(&log, "it is replayed"), 1);
    assert_int_equal(report_log_count(&log, "log root tree: "), 1);
    assert_int_equal(bw_fs_status(fs).damages, 1);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}
