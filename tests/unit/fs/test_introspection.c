/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/fs/introspection.c: whether images were changed since they were opened, and which. */
#include <fcntl.h>
#include <unistd.h>

#include "ondisk/checksum.h"
#include "ondisk/disk.h"
#include "support/walk_helpers.h"

enum { SUPERBLOCK = 64 << 10, SIZE = 4096 };

/* Writes a superblock with another generation and log; `sealed`: with its checksum. */
static void write_superblock(const struct fixture *fixture, uint64_t generation, uint64_t log,
                             bool sealed)
{
    struct bw_disk_superblock disk;
    const int file = open(iw_path(fixture->image, 0), O_RDWR);
    assert_int_equal(pread(file, &disk, sizeof disk, SUPERBLOCK), sizeof disk);
    disk.generation = bw_put64(bw_get64(disk.generation) + generation);
    disk.log_root = bw_put64(log);
    if (sealed)
        bw_checksum_compute(BW_CHECKSUM_CRC32C, (const uint8_t *)&disk + BW_CSUM_SIZE,
                            sizeof disk - BW_CSUM_SIZE, disk.csum);
    assert_int_equal(pwrite(file, &disk, sizeof disk, SUPERBLOCK), sizeof disk);
    close(file);
}

static void test_changes(void **state)
{
    struct fixture fixture = make_fixture();
    open_fixture(&fixture);
    expect_success(bw_fs_find_change(fixture.fs));
    write_superblock(&fixture, 0, 1 << 20, true);
    expect_error(bw_fs_find_change(fixture.fs), BW_ERROR_CORRUPT, "its log has changed");
    write_superblock(&fixture, 3, 0, true);
    expect_error(bw_fs_find_change(fixture.fs), BW_ERROR_CORRUPT, "it had generation ");
    write_superblock(&fixture, (uint64_t)-4, 0, true); /* an older one is no change */
    expect_success(bw_fs_find_change(fixture.fs));
    write_superblock(&fixture, 9, 0, false);
    expect_success(bw_fs_find_change(fixture.fs));
    close_fixture(&fixture);
}

struct files {
    const struct iw_image *image;
    size_t count, fail_at;
};

static struct bw_error *take(void *context, const char *path, bool written)
{
    struct files *files = context;
    assert_false(written);
    assert_string_equal(path, iw_path(files->image, (unsigned)files->count));
    return ++files->count == files->fail_at ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static void test_files(void **state)
{
    struct fixture fixture = {.image = iw_create(&(struct iw_options){.device_count = 2})};
    open_fixture(&fixture);
    struct files files = {.image = fixture.image};
    expect_success(bw_fs_files(fixture.fs, take, &files));
    assert_int_equal(files.count, 2);
    files = (struct files){.image = fixture.image, .fail_at = 1};
    expect_error(bw_fs_files(fixture.fs, take, &files), BW_ERROR_STOPPED, "enough");
    assert_int_equal(files.count, 1);
    close_fixture(&fixture);
}
