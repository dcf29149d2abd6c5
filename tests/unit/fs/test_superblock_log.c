/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks of zoned devices: logs in two zones of any length, in every state that writing leaves
 * them in, with entries that are bad.
 */
#include "support/fake_layer.h"
#include "support/image_writer_internal.h"

#include "fs/fs.h"
#include "fs/opening.h"
#include "ondisk/superblock.h"

enum { MIB = 1 << 20, ENTRY = BW_SUPERBLOCK_SIZE };

/* A device without anything but logs. */
struct bench {
    struct iw_image *image;
    struct bw_graph *graph;
    struct bw_xlator *storage;
    struct bw_disk_superblock entry;
};

static void set_zoned(struct bw_disk_superblock *super, void *closure)
{
    super->incompat_flags = bw_put64(bw_get64(super->incompat_flags) | BW_INCOMPAT_ZONED);
}

static void seal(struct bw_disk_superblock *super)
{
    memset(super->csum, 0, sizeof super->csum);
    bw_checksum_compute(BW_CHECKSUM_CRC32C, (const uint8_t *)super + BW_CSUM_SIZE,
                        sizeof *super - BW_CSUM_SIZE, super->csum);
}

static struct bench make_bench(uint64_t size)
{
    struct bench bench = {.image = iw_create(&(struct iw_options){.device_size = size})};
    iw_write_memory(bench.image);
    iw_superblock_edit(bench.image, 0, 1, set_zoned, NULL, true);
    iw_device_read(bench.image, 0, bw_superblock_offset(0), &bench.entry, sizeof bench.entry);
    const struct bw_disk_superblock nothing = {.magic = bw_put64(0)};
    iw_device_write(bench.image, 0, bw_superblock_offset(0), &nothing, sizeof nothing);
    const struct option_value options[] = {{"path", iw_path(bench.image, 0)}, {0}};
    bench.graph = fake_graph(NULL);
    bench.storage = add_layer(bench.graph, "storage/file", NULL, options);
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    iw_destroy(bench->image);
}

/* Entries of generations from `first` on, from an offset on. */
static void write_log(struct bench *bench, uint64_t offset, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        bench->entry.generation = bw_put64(first + i);
        seal(&bench->entry);
        iw_device_write(bench->image, 0, offset + i * ENTRY, &bench->entry, ENTRY);
    }
}

static void wipe(struct bench *bench, uint64_t offset, uint64_t length)
{
    uint8_t *zeros = calloc(1, (size_t)length);
    iw_device_write(bench->image, 0, offset, zeros, (size_t)length);
    free(zeros);
}

static void expect_entry(struct bench *bench, uint64_t wanted, uint64_t newer_bad)
{
    const struct bw_superblock_log log = {.storage = bench->storage};
    struct bw_superblock_entry entry;
    uint64_t before = bw_xlator_counters(bench->storage, BW_REQUEST_SUPER).requests;
    assert_true(bw_superblock_log_find(&log, &entry));
    assert_int_equal(entry.offset, wanted);
    assert_int_equal(entry.newer_bad, newer_bad);
    assert_in_range(bw_xlator_counters(bench->storage, BW_REQUEST_SUPER).requests - before, 1, 900);
}

static void expect_offset(struct bench *bench, uint64_t wanted)
{
    expect_entry(bench, wanted, 0);
}

static void test_one_zone(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 6, 16, 17, 18, 100, 511, 1000, 1024};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct bench bench = make_bench(32 * MIB);
        write_log(&bench, 0, 5, counts[i]);
        expect_offset(&bench, (counts[i] - 1) * ENTRY);
        free_bench(&bench);
    }
}

/* Zones of every length, in turn: the second begins, is full, the first begins again. */
static void test_turns(void **state)
{
    for (uint64_t zone = 4 * MIB; zone <= 16 * MIB; zone *= 2) {
        struct bench bench = make_bench(64 * MIB);
        uint64_t full = zone / ENTRY;
        write_log(&bench, 0, 1, full);
        expect_offset(&bench, zone - ENTRY);
        write_log(&bench, zone, 1 + full, 1);
        expect_offset(&bench, zone);
        write_log(&bench, zone, 1 + full, 300);
        expect_offset(&bench, zone + 299 * ENTRY);
        write_log(&bench, zone, 1 + full, full);
        expect_offset(&bench, 2 * zone - ENTRY);
        wipe(&bench, 0, zone);
        expect_offset(&bench, 2 * zone - ENTRY);
        write_log(&bench, 0, 1 + 2 * full, 700);
        expect_offset(&bench, 699 * ENTRY);
        write_log(&bench, 0, 1 + 2 * full, full);
        expect_offset(&bench, zone - ENTRY);
        wipe(&bench, zone, zone);
        write_log(&bench, zone, 1 + 3 * full, 20);
        expect_offset(&bench, zone + 19 * ENTRY);
        free_bench(&bench);
    }
}

/* Zones may hold less than they are long. */
static void test_capacity(void **state)
{
    enum { HOLDS = 3 * MIB / ENTRY };
    struct bench bench = make_bench(32 * MIB);
    write_log(&bench, 0, 1, HOLDS);
    expect_offset(&bench, (HOLDS - 1) * ENTRY);
    write_log(&bench, 8 * MIB, HOLDS + 1, HOLDS);
    expect_offset(&bench, 8 * MIB + (HOLDS - 1) * ENTRY);
    wipe(&bench, 0, 8 * MIB);
    write_log(&bench, 0, 2 * HOLDS + 1, 30);
    expect_offset(&bench, 29 * ENTRY);
    free_bench(&bench);
}

/* The second zone may contain anything: superblocks of other file systems, or other data. */
static void test_data(void **state)
{
    struct bench bench = make_bench(32 * MIB);
    const struct bw_disk_superblock own = bench.entry;
    write_log(&bench, 0, 1, 20);
    for (uint64_t zone = 4 * MIB; zone <= 16 * MIB; zone *= 2)
        write_log(&bench, zone, 999, 1);
    expect_offset(&bench, 19 * ENTRY);
    bench.entry.device.uuid[0] ^= 1;
    for (uint64_t zone = 4 * MIB; zone <= 16 * MIB; zone *= 2)
        write_log(&bench, zone, 999, 1);
    bench.entry = own;
    write_log(&bench, 0, 1, 4 * MIB / ENTRY); /* the zone is full, but that is no second one */
    expect_offset(&bench, 4 * MIB - ENTRY);
    free_bench(&bench);
}

static void test_bad_entries(void **state)
{
    struct bench bench = make_bench(32 * MIB);
    write_log(&bench, 0, 1, 200);
    iw_device_write(bench.image, 0, 199 * ENTRY + 1000, "bad", 3); /* the last one */
    expect_entry(&bench, 198 * ENTRY, 199 * ENTRY);
    iw_device_write(bench.image, 0, 199 * ENTRY, &bench.entry, ENTRY);
    for (uint64_t bad = 0; bad < 195; bad += 1 + bad / 3) {
        wipe(&bench, bad * ENTRY, 4 * ENTRY);
        expect_offset(&bench, 199 * ENTRY);
        write_log(&bench, 0, 1, 200);
    }
    wipe(&bench, 0, 32 * MIB);
    write_log(&bench, 0, 1, 1);
    iw_device_write(bench.image, 0, 1000, "bad", 3);
    expect_offset(&bench, 0); /* a bad one is better than none */
    free_bench(&bench);
}

/* The file system has got another id. */
static void test_new_id(void **state)
{
    struct bench bench = make_bench(32 * MIB);
    write_log(&bench, 0, 1, 20);
    bench.entry.fsid[0] ^= 1;
    write_log(&bench, 20 * ENTRY, 21, 5);
    expect_offset(&bench, 24 * ENTRY);
    free_bench(&bench);
}

static bool find_log(const struct bench *bench, unsigned copy, const struct bw_superblock *known,
                     uint64_t *offset)
{
    struct bw_superblock_entry entry;
    bool found =
        bw_superblock_log_find(&(struct bw_superblock_log){bench->storage, copy, known}, &entry);
    *offset = entry.offset;
    return found;
}

static void test_no_log(void **state)
{
    uint64_t offset;
    struct bench bench = make_bench(32 * MIB);
    assert_false(find_log(&bench, 0, NULL, &offset));
    bench.entry.incompat_flags = bw_put64(0);
    write_log(&bench, 0, 1, 20); /* not of a zoned device */
    assert_false(find_log(&bench, 0, NULL, &offset));
    for (unsigned copy = 1; copy < BW_SUPERBLOCK_COPIES; copy++)
        assert_false(find_log(&bench, copy, NULL, &offset));
    free_bench(&bench);
}

/* A superblock at 64 KiB is all there is of a device without zones; of another one it is an old
 * entry. */
static void test_known(void **state)
{
    struct bench bench = make_bench(32 * MIB);
    struct bw_superblock known, other;
    uint64_t offset;
    write_log(&bench, bw_superblock_offset(0), 7, 1);
    expect_success(bw_superblock_decode(&bench.entry, bw_superblock_offset(0), &known));
    assert_false(find_log(&bench, 0, &known, &offset));
    write_log(&bench, 4 * MIB, 999, 1);
    assert_false(find_log(&bench, 0, &known, &offset));
    write_log(&bench, 0, 1, 100);
    assert_true(find_log(&bench, 0, &known, &offset));
    assert_int_equal(offset, 99 * ENTRY);
    other = known;
    other.device.uuid[0] ^= 1;
    assert_false(find_log(&bench, 0, &other, &offset));
    wipe(&bench, 0, 10 * ENTRY); /* the beginning of the log is bad */
    assert_true(find_log(&bench, 0, &known, &offset));
    assert_int_equal(offset, 99 * ENTRY);
    free_bench(&bench);
}

/* An old entry lies where other devices have their superblock. */
static void test_opening(void **state)
{
    for (uint64_t count = 1; count <= 60; count += 16) {
        struct iw_image *image =
            sample_image(&(struct iw_options){.device_size = 66 * MIB, .generation = 1000});
        struct bench bench = {.image = image};
        struct report_log log = {0};
        struct bw_fs *fs;
        iw_superblock_edit(image, 0, 1, set_zoned, NULL, true);
        iw_device_read(image, 0, bw_superblock_offset(0), &bench.entry, ENTRY);
        uint64_t generation = bw_get64(bench.entry.generation);
        wipe(&bench, bw_superblock_offset(0), ENTRY);
        wipe(&bench, bw_superblock_offset(1), ENTRY);
        bench.entry.root = bw_put64(4096); /* the trees of old superblocks are gone */
        write_log(&bench, 0, generation + 1 - count, count);
        iw_device_read(image, 0, (count - 1) * ENTRY, &bench.entry, ENTRY);
        const struct iw_block *root = iw_root_block(image, BW_ROOT_TREE);
        bench.entry.root = bw_put64(root->logical);
        write_log(&bench, (count - 1) * ENTRY, generation, 1);
        check_walk(image, &log);
        assert_int_equal(log.counts[BW_WARNING], 0);
        expect_success(open_image(image, NULL, &fs));
        assert_int_equal(fs->superblock.generation, generation);
        bw_fs_close(fs);
        report_log_free(&log);
        iw_destroy(image);
    }
}
