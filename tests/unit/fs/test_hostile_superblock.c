/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks with a right checksum and numbers that make no sense: opening refuses them or does
 * without, and neither crashes nor hangs nor takes much memory.
 */
#include "base/cleanup.h"
#include "ondisk/superblock.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

typedef void editor(struct bw_disk_superblock *super);

#define EDITOR(name, statement)                        \
    static void name(struct bw_disk_superblock *super) \
    {                                                  \
        statement;                                     \
    }

EDITOR(no_nodesize, super->nodesize = bw_put32(0))
EDITOR(small_nodesize, super->nodesize = bw_put32(2048))
EDITOR(large_nodesize, super->nodesize = bw_put32(131072))
EDITOR(odd_nodesize, super->nodesize = bw_put32(12288))
EDITOR(huge_nodesize, super->nodesize = bw_put32(UINT32_C(1) << 31))
EDITOR(no_sectorsize, super->sectorsize = bw_put32(0))
EDITOR(small_sectorsize, super->sectorsize = bw_put32(512))
EDITOR(half_sectorsize, super->sectorsize = bw_put32(2048))
EDITOR(large_sectorsize, super->sectorsize = bw_put32(131072))
EDITOR(sector_above_node, super->sectorsize = bw_put32(32768))
EDITOR(large_array, super->system_chunk_array_size = bw_put32(2049))
EDITOR(huge_array, super->system_chunk_array_size = bw_put32(UINT32_MAX))
EDITOR(no_devices, super->device_count = bw_put64(0))
EDITOR(root_level, super->root_level = 8)
EDITOR(chunk_root_level, super->chunk_root_level = 255)
EDITOR(unaligned_root, super->root = bw_put64(bw_get64(super->root) + 1))
EDITOR(unaligned_chunk_root, super->chunk_root = bw_put64(bw_get64(super->chunk_root) + 512))
EDITOR(checksum_type, super->csum_type = bw_put16(4))
EDITOR(other_magic, super->magic = bw_put64(BW_SUPERBLOCK_MAGIC + 1))
EDITOR(other_place, super->bytenr = bw_put64(UINT64_C(4096)))
EDITOR(no_array, super->system_chunk_array_size = bw_put32(0))
EDITOR(cut_array,
       super->system_chunk_array_size = bw_put32(bw_get32(super->system_chunk_array_size) - 1))
EDITOR(tiny_array, super->system_chunk_array_size = bw_put32(5))
EDITOR(full_array, super->system_chunk_array_size = bw_put32(BW_SYSTEM_CHUNK_ARRAY_SIZE))
EDITOR(other_root, super->root = bw_put64(bw_get64(super->chunk_root)))
EDITOR(far_root, super->root = bw_put64((uint64_t)-65536))
EDITOR(far_chunk_root, super->chunk_root = bw_put64((uint64_t)-65536))
EDITOR(wrong_root_level, super->root_level = 5)
EDITOR(unknown_bit, super->incompat_flags = bw_put64(UINT64_C(1) << 40))
EDITOR(other_fsid, super->fsid[3] ^= 0xff)

static struct bw_disk_chunk *first_chunk(struct bw_disk_superblock *super)
{
    return (void *)(super->system_chunk_array + sizeof(struct bw_disk_key));
}

EDITOR(no_chunk_length, first_chunk(super)->length = bw_put64(0))
EDITOR(odd_chunk_length, first_chunk(super)->length = bw_put64(4097))
EDITOR(huge_chunk_length, first_chunk(super)->length = bw_put64((uint64_t)-4096))
EDITOR(no_stripes, first_chunk(super)->stripe_count = bw_put16(0))
EDITOR(many_stripes, first_chunk(super)->stripe_count = bw_put16(65535))
EDITOR(stripe_length, first_chunk(super)->stripe_length = bw_put64(0))
EDITOR(two_profiles,
       first_chunk(super)->type = bw_put64(BW_GROUP_SYSTEM | BW_GROUP_RAID0 | BW_GROUP_RAID1))
EDITOR(raid6_of_one, first_chunk(super)->type = bw_put64(BW_GROUP_SYSTEM | BW_GROUP_RAID6))
EDITOR(raid10_of_one, first_chunk(super)->type = bw_put64(BW_GROUP_SYSTEM | BW_GROUP_RAID10))
EDITOR(other_key, super->system_chunk_array[8] = BW_DEVICE_ITEM)

static const struct refusal {
    const char *name;
    editor *edit;
    enum bw_error_code code;
    const char *text;
} refusals[] = {
    {"no nodesize", no_nodesize, BW_ERROR_NOT_BTRFS, "invalid nodesize 0"},
    {"small nodesize", small_nodesize, BW_ERROR_NOT_BTRFS, "invalid nodesize 2048"},
    {"large nodesize", large_nodesize, BW_ERROR_NOT_BTRFS, "invalid nodesize 131072"},
    {"odd nodesize", odd_nodesize, BW_ERROR_NOT_BTRFS, "invalid nodesize 12288"},
    {"huge nodesize", huge_nodesize, BW_ERROR_NOT_BTRFS, "invalid nodesize"},
    {"no sectorsize", no_sectorsize, BW_ERROR_NOT_BTRFS, "invalid sectorsize 0"},
    {"small sectorsize", small_sectorsize, BW_ERROR_NOT_BTRFS, "invalid sectorsize 512"},
    {"half sectorsize", half_sectorsize, BW_ERROR_UNSUPPORTED, "sectors of 2048 bytes are not"},
    {"large sectorsize", large_sectorsize, BW_ERROR_NOT_BTRFS, "invalid sectorsize 131072"},
    {"sector above node", sector_above_node, BW_ERROR_NOT_BTRFS, "invalid nodesize"},
    {"large array", large_array, BW_ERROR_NOT_BTRFS, "invalid sys_chunk_array_size 2049"},
    {"huge array", huge_array, BW_ERROR_NOT_BTRFS, "invalid sys_chunk_array_size"},
    {"no devices", no_devices, BW_ERROR_NOT_BTRFS, "invalid num_devices 0"},
    {"root level", root_level, BW_ERROR_NOT_BTRFS, "invalid root level 8"},
    {"chunk root level", chunk_root_level, BW_ERROR_NOT_BTRFS, "invalid chunk_root level 255"},
    {"unaligned root", unaligned_root, BW_ERROR_NOT_BTRFS, "unaligned root address"},
    {"unaligned chunk root", unaligned_chunk_root, BW_ERROR_NOT_BTRFS,
     "unaligned chunk_root address"},
    {"checksum type", checksum_type, BW_ERROR_UNSUPPORTED, "unknown checksum type 4"},
    {"magic", other_magic, BW_ERROR_NOT_BTRFS, "a superblock whose magic is damaged"},
    {"place", other_place, BW_ERROR_NOT_BTRFS, "bytenr mismatch, want 65536 have 4096"},
    {"no array", no_array, BW_ERROR_CORRUPT, NULL},
    {"cut array", cut_array, BW_ERROR_CORRUPT, "system chunk array is cut off"},
    {"tiny array", tiny_array, BW_ERROR_CORRUPT, "system chunk array is cut off, 5 bytes left"},
    {"full array", full_array, BW_ERROR_CORRUPT, "system chunk array is cut off"},
    {"far chunk root", far_chunk_root, BW_ERROR_CORRUPT, NULL},
    {"unknown bit", unknown_bit, BW_ERROR_UNSUPPORTED, "40"},
    {"other fsid", other_fsid, BW_ERROR_CORRUPT, "block of another file system"},
    {"no chunk length", no_chunk_length, BW_ERROR_CORRUPT, "invalid length 0"},
    {"odd chunk length", odd_chunk_length, BW_ERROR_CORRUPT, "invalid length 4097"},
    {"huge chunk length", huge_chunk_length, BW_ERROR_CORRUPT, "invalid length"},
    {"no stripes", no_stripes, BW_ERROR_CORRUPT, NULL},
    {"many stripes", many_stripes, BW_ERROR_CORRUPT, "cut off"},
    {"stripe length", stripe_length, BW_ERROR_CORRUPT, "invalid stripe length 0"},
    {"two profiles", two_profiles, BW_ERROR_CORRUPT, "invalid profile bits"},
    {"RAID6 of one", raid6_of_one, BW_ERROR_CORRUPT, "invalid stripe count 1"},
    {"RAID10 of one", raid10_of_one, BW_ERROR_CORRUPT, "invalid stripe count 1"},
    {"other key", other_key, BW_ERROR_CORRUPT, "cut off"},
};

static void apply(struct bw_disk_superblock *super, void *closure)
{
    (*(editor *const *)closure)(super);
}

static void forget_backups(struct bw_disk_superblock *super)
{
    memset(super->backup_roots, 0, sizeof super->backup_roots);
}

static void edit_all(struct iw_image *image, editor *edit)
{
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, apply, &edit, true);
}

static void test_refusals(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
        struct bw_fs *fs;
        edit_all(image, forget_backups);
        edit_all(image, refusals[i].edit);
        struct report_log log = {0};
        struct bw_error *error = open_image(image, &log, &fs);
        if (!error && !refusals[i].text)
            assert_int_equal(report_log_count(&log, "the chunk tree is lost: it was rebuilt"), 1);
        else if (!error)
            fail_msg("%s: was opened", refusals[i].name);
        else
            expect_error(error, refusals[i].code, refusals[i].text);
        if (!error)
            bw_fs_close(fs);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* Superblocks can be shown even if they are invalid: opening only the images never fails because of
 * their contents. Decoding a bad mirror fails, and its bytes are available. */
static void test_images_alone(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
        const char *path = iw_path(image, 0);
        struct bw_fs *fs;
        uint64_t offset;
        struct bw_superblock_info info;
        struct bw_disk_superblock bytes;
        const struct bw_fs_options options = {
            .struct_size = sizeof options, .paths = &path, .path_count = 1, .superblock_copy = -1};
        iw_superblock_edit(image, 0, 2, apply, &(editor *){refusals[i].edit}, true);
        expect_success(bw_fs_open_images(&options, &fs));
        expect_success(bw_fs_read_superblock(fs, 0, 0, &info));
        bw_error_free(bw_fs_read_superblock(fs, 0, 1, &info));
        expect_success(bw_fs_copy_superblock(fs, 0, 1, (uint8_t *)&bytes, &offset));
        assert_int_equal(offset, 64 << 20);
        assert_int_equal(bw_get64(bytes.device.devid), info.devid);
        expect_error(bw_fs_copy_superblock(fs, 0, 2, (uint8_t *)&bytes, &offset),
                     BW_ERROR_NOT_FOUND, "too small");
        expect_error(bw_fs_copy_superblock(fs, 1, 0, (uint8_t *)&bytes, &offset),
                     BW_ERROR_NOT_FOUND, "image 1");
        assert_string_equal(bw_fs_image_path(fs, 0), path);
        bw_fs_close(fs);
        iw_destroy(image);
    }
}

/* The same in one copy only, the other is good: everything is listed. */
static void test_other_copy_serves(void **state)
{
    for (size_t i = 0; i < 19; i++) {
        struct iw_image *image = sample_image(&(struct iw_options){.device_size = 66 << 20});
        editor *edit = refusals[i].edit;
        struct report_log log = {0};
        iw_superblock_edit(image, 0, 1 + i % 2, apply, &edit, true);
        check_walk(image, &log);
        assert_int_equal(report_log_count(&log, "rejected"), 1);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* Root tree pointers that lead nowhere: the tree is found without them and without backups. */
static void test_bad_root_pointers(void **state)
{
    editor *const edits[] = {other_root, far_root, wrong_root_level};
    for (size_t i = 0; i < COUNT(edits); i++)
        for (unsigned backups = 0; backups < 2; backups++) {
            struct iw_image *image = sample_image(&(struct iw_options){0});
            struct report_log log = {0};
            struct bw_fs *fs;
            if (!backups)
                edit_all(image, forget_backups);
            edit_all(image, edits[i]);
            expect_success(open_image(image, &log, &fs));
            /* A backup of the same transaction is the better one. */
            assert_int_equal(report_log_count(&log, backups ? "using the root tree of generation"
                                                            : "was rebuilt from tree blocks"),
                             1);
            struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
            expect_paths(image, &result);
            walk_result_free(&result);
            bw_fs_close(fs);
            report_log_free(&log);
            iw_destroy(image);
        }
}

/* A remap tree: its root is a pointer like the others. */
EDITOR(remap_far,
       super->incompat_flags = bw_put64(bw_get64(super->incompat_flags) | BW_INCOMPAT_REMAP_TREE);
       super->remap_root = bw_put64((uint64_t)-65536))
EDITOR(remap_other_tree, remap_far(super); super->remap_root = super->root)
EDITOR(remap_unaligned, remap_far(super); super->remap_root = bw_put64(bw_get64(super->root) + 17))
EDITOR(remap_level, remap_far(super); super->remap_root = super->root;
       super->remap_root_level = 255)
EDITOR(remap_level_8, remap_far(super); super->remap_root = super->root;
       super->remap_root_level = 8)

static void test_bad_remap_roots(void **state)
{
    editor *const edits[] = {remap_far, remap_other_tree, remap_unaligned, remap_level_8,
                             remap_level};
    for (size_t i = 0; i < COUNT(edits); i++) {
        struct iw_image *image = sample_image(&(struct iw_options){0});
        struct bw_fs *fs;
        edit_all(image, edits[i]);
        struct bw_error *error = open_image(image, NULL, &fs);
        bw_error_free(error);
        bw_fs_close(fs);
        iw_destroy(image);
    }
}

/* Every byte of the superblock's first half changed in turn, with a right checksum. */
static void test_any_byte(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){.nodesize = 4096});
    uint8_t before[BW_SUPERBLOCK_SIZE], after[BW_SUPERBLOCK_SIZE];
    iw_device_read(image, 0, iw_superblock_offset(1), before, sizeof before);
    for (size_t at = 32; at < 811 + 200; at++) {
        memcpy(after, before, sizeof after);
        after[at] ^= 0xff;
        bw_checksum_compute(BW_CHECKSUM_CRC32C, after + 32, sizeof after - 32, after);
        iw_device_write(image, 0, iw_superblock_offset(1), after, sizeof after);
        struct bw_fs *fs;
        struct bw_error *error = open_image(image, NULL, &fs);
        if (!error) {
            struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
            walk_result_free(&result);
        }
        bw_error_free(error);
        bw_fs_close(fs);
    }
    iw_destroy(image);
}

static void test_truncated_devices(void **state)
{
    static const uint64_t sizes[] = {
        0, 1, 65536, 65536 + 4095, 69632, 1 << 20, (1 << 20) + 4096, 5 << 20, (5 << 20) + 20000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct iw_image *image = sample_image(&(struct iw_options){0});
        struct report_log log = {0};
        struct bw_fs *fs;
        iw_truncate_device(image, 0, sizes[i]);
        struct bw_error *error = open_image(image, &log, &fs);
        if (sizes[i] < 69632)
            expect_error(error, BW_ERROR_NOT_BTRFS, NULL);
        else if (error)
            expect_error(error, BW_ERROR_CORRUPT, "ends at");
        if (fs) {
            struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
            assert_null(result.error);
            assert_true(log.counts[BW_DAMAGE] > 0);
            walk_result_free(&result);
        }
        bw_fs_close(fs);
        report_log_free(&log);
        iw_destroy(image);
    }
}
