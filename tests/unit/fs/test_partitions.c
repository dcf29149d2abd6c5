/* SPDX-License-Identifier: GPL-2.0-or-later */
/* btrfs-walk/image.h, and opening file systems in partitions, on disks made in memory. */
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/endian.h"
#include "btrfs-walk/image.h"
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
    struct bench bench = make_bench();
    const char *const paths[] = {bench.disk.path};
    check_refused(paths[0], NULL, BW_ERROR_AMBIGUOUS, "several partitions contain file systems");
    check_open(bench.pair, paths, 1, "1");
    check_open(bench.pair, paths, 1, "3");
    check_open(bench.single, paths, 1, "2");
    check_open(bench.single, paths, 1, "alone");
    check_refused(paths[0], "4", BW_ERROR_NOT_FOUND, "there are: 1, 2 (alone), 3");
    check_refused(iw_path(bench.single, 0), "4", BW_ERROR_NOT_FOUND, "has no partition table");
    free_bench(&bench);
}

/* The list has all partitions, of which the option `devices` selects a file system. */
static void test_list(void **state)
{
    struct bench bench = make_bench();
    const char *const paths[] = {bench.disk.path};
    struct bw_fs_options options = options_of(paths, 1, NULL, NULL);
    struct bw_image_info info;
    struct bw_fs *fs = NULL;
    expect_success(bw_fs_list_devices(&options, &fs));
    assert_int_equal(bw_fs_image_count(fs), 3);
    assert_false(bw_fs_image_info(fs, 3, &info));
    assert_true(bw_fs_image_info(fs, 1, &info));
    assert_true(info.has_superblock);
    assert_string_equal(info.superblock.label, "alone");
    assert_string_equal(info.container, "MBR partition 2");
    assert_string_equal(info.path, bench.disk.path);
    assert_false(info.is_joined || info.has_failed || info.error);

    /* The devices of the pair are the first and the last. */
    char names[2][80];
    const char *const selected[] = {names[0], names[1]};
    for (size_t i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "%s", bw_fs_image_path(fs, 2 * i));
    bw_fs_close(fs);
    struct report_log log = {.counts = {0}};
    options.reporter = report_log_reporter(&log);
    options.devices = selected;
    options.device_count = 2;
    expect_success(bw_fs_open(&options, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    expect_paths(bench.pair, &result);
    assert_int_equal(log.counts[BW_WARNING] + log.counts[BW_DAMAGE], 0);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&log);
    snprintf(names[1], sizeof names[1], "absent");
    expect_error(bw_fs_open(&options, &fs), BW_ERROR_NOT_FOUND, "there is no device absent");
    free_bench(&bench);
}

/* A device given besides decides; the other one comes from the disk, even if that has more. */
static void test_with_device(void **state)
{
    struct bench bench = make_bench();
    struct disk disk = make_disk();
    add_device(&disk, bench.pair, 0);
    add_device(&disk, bench.single, 0);
    const char *const paths[] = {iw_path(bench.pair, 1), disk.path};
    check_open(bench.pair, paths, 2, NULL);
    close(disk.descriptor);
    free_bench(&bench);
}

/* Clones: partitions that claim to be the same device. */

/* Which partition is read as each device. */
struct devices {
    uint64_t partitions[3]; /* by device id */
};

static void check_devices(const char *const *paths, size_t count, const char *partition,
                          uint64_t generation, struct devices want)
{
    struct report_log log = {.counts = {0}};
    const struct bw_fs_options options = options_of(paths, count, partition, &log);
    struct bw_superblock_info superblock;
    struct devices have = {{0}};
    struct bw_device_list listed;
    struct bw_fs *fs = NULL;
    expect_success(bw_fs_open(&options, &fs));
    bw_fs_superblock(fs, &superblock);
    assert_int_equal(superblock.generation, generation);
    expect_success(bw_fs_devices(fs, &listed));
    for (size_t i = 0; i < listed.count; i++) {
        assert_in_range(listed.items[i].devid, 1, 2);
        have.partitions[listed.items[i].devid] = listed.items[i].partition;
    }
    bw_device_list_free(&listed);
    assert_memory_equal(&have, &want, sizeof want);
    assert_int_equal(log.counts[BW_WARNING] + log.counts[BW_DAMAGE], 0);
    assert_int_equal(bw_fs_status(fs).missing_devices + bw_fs_status(fs).unused_images, 0);
    bw_fs_close(fs);
    report_log_free(&log);
}

/* A file system of two devices, and a copy of it that was changed later. */
struct clones {
    struct iw_image *old, *new;
    struct disk disk;
};

static struct clones make_clones(void)
{
    struct iw_options options = {.profile = BW_GROUP_RAID1, .generation = 10};
    struct clones clones = {.old = sample_image(&options), .disk = make_disk()};
    options.generation = 12;
    clones.new = sample_image(&options);
    return clones;
}

static void free_clones(struct clones *clones)
{
    iw_destroy(clones->old);
    iw_destroy(clones->new);
    close(clones->disk.descriptor);
}

/* The chosen partition is read, together with the other device of the same generation. */
static void test_clones(void **state)
{
    struct clones clones = make_clones();
    add_device(&clones.disk, clones.old, 0);
    add_device(&clones.disk, clones.new, 0);
    add_device(&clones.disk, clones.new, 1);
    add_device(&clones.disk, clones.old, 1);
    const char *paths[] = {clones.disk.path, iw_path(clones.old, 1)};
    check_refused(paths[0], NULL, BW_ERROR_AMBIGUOUS, "partition 1 (generation 10) and ");
    check_refused(paths[0], NULL, BW_ERROR_AMBIGUOUS,
                  "partition 2 (generation 12) are both device 1 of the file system ");
    check_devices(paths, 1, "1", 10, (struct devices){{0, 1, 4}});
    check_devices(paths, 1, "2", 12, (struct devices){{0, 2, 3}});
    check_devices(paths, 1, "3", 12, (struct devices){{0, 2, 3}});
    check_devices(paths, 1, "4", 10, (struct devices){{0, 1, 4}});
    /* An image given by itself is a choice, too; 0 is no partition. */
    check_devices(paths, 2, NULL, 10, (struct devices){{0, 1, 0}});
    free_clones(&clones);
}

/* Clones that nothing tells apart but the choice. */
static void test_equal_clones(void **state)
{
    struct clones clones = make_clones();
    add_device(&clones.disk, clones.old, 0);
    add_device(&clones.disk, clones.old, 1);
    add_device(&clones.disk, clones.old, 1);
    const char *const path = clones.disk.path;
    check_refused(path, NULL, BW_ERROR_AMBIGUOUS, "are both device 2 of the file system ");
    check_refused(path, "1", BW_ERROR_AMBIGUOUS, "partition 3 (generation 10) are both device 2");
    check_devices(&path, 1, "2", 10, (struct devices){{0, 1, 2}});
    check_devices(&path, 1, "3", 10, (struct devices){{0, 1, 3}});
    free_clones(&clones);
}

/* A second disk with the same table: the first disk with that partition counts. */
static void test_cloned_disks(void **state)
{
    struct report_log log = {.counts = {0}};
    struct clones clones = make_clones();
    struct disk other = make_disk();
    add_device(&clones.disk, clones.old, 0);
    add_device(&clones.disk, clones.old, 1);
    add_device(&other, clones.new, 0);
    const char *const paths[] = {clones.disk.path, other.path};
    struct bw_fs_options options = options_of(paths, 2, NULL, &log);
    struct bw_superblock_info superblock;
    struct bw_fs *fs = NULL;
    expect_error(bw_fs_open(&options, &fs), BW_ERROR_AMBIGUOUS, "are both device 1 of");
    options.partition = "1";
    expect_success(bw_fs_open(&options, &fs));
    bw_fs_superblock(fs, &superblock);
    assert_int_equal(superblock.generation, 10);
    assert_int_equal(bw_fs_status(fs).unused_images, 0);
    assert_int_equal(log.counts[BW_WARNING], 1);
    assert_int_equal(report_log_count(&log, "is not used: its devices are read from elsewhere"), 1);
    bw_fs_close(fs);
    report_log_free(&log);
    close(other.descriptor);
    free_clones(&clones);
}

/* The partition tables. */
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
    const char *const paths[] = {"/nonexistent"};
    const struct bw_fs_options options = options_of(paths, 1, NULL, NULL);
    expect_error(bw_partition_tables(&options, take_table, NULL), BW_ERROR_SYSTEM, "cannot open");
}
