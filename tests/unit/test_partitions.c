/* SPDX-License-Identifier: GPL-2.0-or-later */
/* btrfs-walk/partition.h, and opening file systems in partitions, on disks made in memory. */
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/endian.h"
#include "btrfs-walk/partition.h"
#include "support/walk_helpers.h"

enum { PARTITIONS = 4, FIRST = 1 << 20 };

/* A disk with an MBR. */
struct disk {
    int descriptor;
    char path[32];
    uint8_t record[512];
    unsigned count; /* of partitions */
    uint64_t end;   /* of the last one */
};

static void put_number(uint8_t *at, uint64_t value)
{
    bw_le32 raw = bw_put32((uint32_t)value);
    memcpy(at, &raw, sizeof raw);
}

static struct disk make_disk(void)
{
    struct disk disk = {.descriptor = memfd_create("disk", MFD_CLOEXEC), .end = FIRST};
    snprintf(disk.path, sizeof disk.path, "/proc/self/fd/%d", disk.descriptor);
    disk.record[510] = 0x55;
    disk.record[511] = 0xaa;
    return disk;
}

/* Makes another partition, and copies a device of an image into it. */
static void add_device(struct disk *disk, const struct iw_image *image, unsigned device)
{
    static uint8_t bytes[65536];
    uint64_t size = iw_device_size(image, device);
    uint8_t *entry = disk->record + 446 + 16 * (size_t)disk->count++;
    entry[4] = 0x83;
    put_number(entry + 8, disk->end / 512);
    put_number(entry + 12, size / 512);
    assert_int_equal(pwrite(disk->descriptor, disk->record, 512, 0), 512);
    for (uint64_t done = 0; done < size; done += sizeof bytes) {
        iw_device_read(image, device, done, bytes, sizeof bytes);
        assert_int_equal(pwrite(disk->descriptor, bytes, sizeof bytes, (off_t)(disk->end + done)),
                         sizeof bytes);
    }
    disk->end += size;
}

static struct bw_fs_options options_of(const char *const *paths, size_t count,
                                       const char *partition, struct report_log *log)
{
    return (struct bw_fs_options){.struct_size = sizeof(struct bw_fs_options),
                                  .paths = paths,
                                  .path_count = count,
                                  .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
                                  .reporter = report_log_reporter(log),
                                  .partition = partition};
}

/* Opens disks, and expects the paths of an image. */
static void check_open(const struct iw_image *image, const char *const *paths, size_t count,
                       const char *partition)
{
    struct report_log log = {.counts = {0}};
    const struct bw_fs_options options = options_of(paths, count, partition, &log);
    struct bw_fs *fs = NULL;
    expect_success(bw_fs_open(&options, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    expect_success(result.error);
    expect_paths(image, &result);
    assert_int_equal(log.counts[BW_WARNING] + log.counts[BW_DAMAGE], 0);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&log);
}

static void check_refused(const char *path, const char *partition, enum bw_error_code code,
                          const char *message)
{
    const struct bw_fs_options options = options_of(&path, 1, partition, NULL);
    struct bw_fs *fs = NULL;
    expect_error(bw_fs_open(&options, &fs), code, message);
}

/* Two file systems, one of two devices; their partitions are mixed. */
struct bench {
    struct iw_image *pair, *single;
    struct disk disk;
};

static struct bench make_bench(void)
{
    struct bench bench = {.pair = sample_image(&(struct iw_options){.profile = BW_GROUP_RAID1}),
                          .single =
                              sample_image(&(struct iw_options){.identity = 7, .label = "alone"}),
                          .disk = make_disk()};
    add_device(&bench.disk, bench.pair, 1);
    add_device(&bench.disk, bench.single, 0);
    add_device(&bench.disk, bench.pair, 0);
    return bench;
}

static void free_bench(struct bench *bench)
{
    iw_destroy(bench->pair);
    iw_destroy(bench->single);
    close(bench->disk.descriptor);
}

static void test_choice(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    const char *const paths[] = {bench.disk.path};
    check_refused(paths[0], NULL, BW_ERROR_AMBIGUOUS, "there are several file systems");
    check_open(bench.pair, paths, 1, "1");
    check_open(bench.pair, paths, 1, "3");
    check_open(bench.single, paths, 1, "2");
    check_open(bench.single, paths, 1, "alone");
    check_refused(paths[0], "4", BW_ERROR_NOT_FOUND, "there are: 1, 2 (alone), 3");
    free_bench(&bench);
}

/* A device given besides decides; the other one comes from the disk, even if that has more. */
static void test_with_device(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    struct disk disk = make_disk();
    add_device(&disk, bench.pair, 0);
    add_device(&disk, bench.single, 0);
    const char *const paths[] = {iw_path(bench.pair, 1), disk.path};
    check_open(bench.pair, paths, 2, NULL);
    close(disk.descriptor);
    free_bench(&bench);
}

/* What the tables say. */
struct seen {
    size_t tables, stop_after;
    uint64_t offsets[PARTITIONS];
    char labels[PARTITIONS][sizeof((struct bw_partition_info){0}.label)];
    size_t count;
};

static struct bw_error *take_table(void *context, const struct bw_partition_table *table)
{
    struct seen *seen = context;
    assert_string_equal(table->kind, "dos");
    assert_int_equal(table->sector_size, 512);
    seen->count = table->count;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        assert_true(partition->btrfs);
        assert_string_equal(partition->content, "btrfs");
        assert_string_equal(partition->type_name, "Linux");
        assert_int_equal(partition->room, partition->length);
        seen->offsets[i] = partition->offset;
        snprintf(seen->labels[i], sizeof seen->labels[i], "%s", partition->label);
    }
    return ++seen->tables == seen->stop_after ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static void test_tables(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    const char *const paths[] = {bench.disk.path, bench.disk.path};
    struct bw_fs_options options = options_of(paths, 2, NULL, NULL);
    struct seen seen = {.tables = 0};
    expect_success(bw_partition_tables(&options, take_table, &seen));
    assert_int_equal(seen.tables, 2);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.offsets[0], FIRST);
    assert_string_equal(seen.labels[1], "alone");
    seen = (struct seen){.stop_after = 1};
    expect_error(bw_partition_tables(&options, take_table, &seen), BW_ERROR_STOPPED, "enough");
    /* Not of an image that is a file system, nor with options of an older library. */
    options.offset = FIRST;
    options.path_count = 1;
    seen = (struct seen){.tables = 0};
    expect_success(bw_partition_tables(&options, take_table, &seen));
    assert_int_equal(seen.tables, 0);
    options.struct_size = offsetof(struct bw_fs_options, partition);
    expect_success(bw_partition_tables(&options, take_table, &seen));
    assert_int_equal(seen.tables, 1);
    free_bench(&bench);
}

static void test_missing_file(void **state)
{
    (void)state;
    const char *const paths[] = {"/nonexistent"};
    const struct bw_fs_options options = options_of(paths, 1, NULL, NULL);
    expect_error(bw_partition_tables(&options, take_table, NULL), BW_ERROR_SYSTEM, "cannot open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_with_device),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, limit_time, NULL);
}
