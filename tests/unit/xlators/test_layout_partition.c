/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/partition: tables of all kinds, made byte by byte, good ones and hostile ones. */
#include <inttypes.h>
#include <zlib.h>

#include "base/endian.h"
#include "graph/graph.h"
#include "support/fake_layer.h"
#include "xlators/layout/partition_table.h"

enum { SIZE = 3 << 20, ENTRY = 128, ENTRIES = 128 };

struct bench {
    struct fake_layer fake;
    uint8_t *bytes;
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *disk;
};

static struct bench *make_bench(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    bench->bytes = calloc(1, SIZE);
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = SIZE};
    bench->graph = fake_graph(&bench->log);
    bench->disk = add_fake_device(bench->graph, &bench->fake);
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    free(bench->bytes);
    free(bench);
}

/* An entry of an MBR or of the boot record of a logical partition, which becomes one by it. */
static void put_entry(uint8_t *record, unsigned index, uint8_t type, uint32_t start, uint32_t count)
{
    uint8_t *entry = record + 446 + 16 * (size_t)index;
    entry[4] = type;
    put_le32(entry + 8, start);
    put_le32(entry + 12, count);
    record[510] = 0x55;
    record[511] = 0xaa;
}

static void seal_header(uint8_t *header)
{
    put_le32(header + 16, 0);
    put_le32(header + 16, (uint32_t)crc32(0, header, 92));
}

static void put_header(struct bench *bench, uint32_t sector, uint64_t own, uint64_t other,
                       uint64_t entries)
{
    uint8_t *header = bench->bytes + own * sector;
    uint64_t last = SIZE / sector - 1, table = ENTRY * ENTRIES / sector;
    memcpy(header, "EFI PART", 8);
    put_le32(header + 8, 0x10000);
    put_le32(header + 12, 92);
    put_le64(header + 24, own);
    put_le64(header + 32, other);
    put_le64(header + 40, 2 + table);
    put_le64(header + 48, last - table - 1);
    put_le64(header + 72, entries);
    put_le32(header + 80, ENTRIES);
    put_le32(header + 84, ENTRY);
    put_le32(header + 88, (uint32_t)crc32(0, bench->bytes + entries * sector, ENTRY * ENTRIES));
    seal_header(header);
}

/* Partition 1 is "boot" and partition 3 "root"; both begin at 1 MiB and 2 MiB. */
static void put_gpt(struct bench *bench, uint32_t sector)
{
    uint64_t last = SIZE / sector - 1, backup = last - ENTRY * ENTRIES / sector;
    uint8_t *entries = bench->bytes + 2 * sector;
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *entry = entries + 2 * (size_t)i * ENTRY;
        memset(entry, 0x11 * (int)(i + 1), 32);
        put_le64(entry + 32, (1 + i) * (1u << 20) / sector);
        put_le64(entry + 40, ((1 + i) * (1u << 20) + (512 << 10)) / sector - 1);
        for (size_t k = 0; k < 4; k++)
            entry[56 + 2 * k] = (uint8_t)(i ? "root" : "boot")[k];
    }
    memcpy(bench->bytes + backup * sector, entries, ENTRY * ENTRIES);
    put_header(bench, sector, 1, last, 2);
    put_header(bench, sector, last, 1, backup);
    put_entry(bench->bytes, 0, 0xee, 1, (uint32_t)last);
}

/* Two primary partitions, and two logical ones in an extended one. */
static void put_mbr(struct bench *bench)
{
    put_entry(bench->bytes, 0, 0x83, 8, 100);
    put_entry(bench->bytes, 1, 0x05, 1000, 3000);
    put_entry(bench->bytes, 3, 0x83, 5000, 100);
    put_entry(bench->bytes + 1000 * 512, 0, 0x83, 10, 200);
    put_entry(bench->bytes + 1000 * 512, 1, 0x05, 1500, 500);
    put_entry(bench->bytes + 2500 * 512, 0, 0x83, 20, 300);
}

static struct bw_error *try_partition(struct bench *bench, const char *wanted,
                                      struct bw_xlator **made)
{
    const struct option_value options[] = {{"partition", wanted}, {0}};
    return graph_add_above(bench->graph, bench->disk, "layout/partition", "partition", options,
                           made);
}

/* The partition must be this range of the disk. */
static void check_range(struct bench *bench, const char *wanted, uint64_t offset, uint64_t length)
{
    struct bw_xlator *made = NULL;
    uint8_t have[4];
    expect_success(try_partition(bench, wanted, &made));
    assert_int_equal(bw_xlator_size(made), length);
    put_le32(bench->bytes + offset + length - 4, 0x12345678);
    expect_success(read_range(made, length - 4, have, 4));
    assert_memory_equal(have, bench->bytes + offset + length - 4, 4);
    expect_error(read_range(made, length - 3, have, 4), BW_ERROR_CORRUPT, "the partition ends at");
    bw_graph_remove(bench->graph, made);
}

static void check_refused(struct bench *bench, const char *wanted, enum bw_error_code code,
                          const char *message)
{
    struct bw_xlator *made = NULL;
    expect_error(try_partition(bench, wanted, &made), code, message);
}

static void test_mbr(void **state)
{
    struct bench *bench = make_bench();
    put_mbr(bench);
    put_le32(bench->bytes + 440, 0xcafe0001);
    check_range(bench, "1", 8 * 512, 100 * 512);
    check_range(bench, "4", 5000 * 512, 100 * 512);
    check_range(bench, "5", 1010 * 512, 200 * 512);
    check_range(bench, "6", 2520 * 512, 300 * 512);
    check_range(bench, "CAFE0001-06", 2520 * 512, 300 * 512);
    check_refused(bench, "3", BW_ERROR_NOT_FOUND,
                  "there is no partition 3; there are: 1, 2, 4, 5, 6");
    check_refused(bench, "", BW_ERROR_NOT_FOUND, "there is no partition ; there are");
    assert_int_equal(bench->log.counts[BW_WARNING], 0);
    free_bench(bench);
}

static void check_gpt(struct bench *bench)
{
    check_range(bench, "1", 1 << 20, 512 << 10);
    check_range(bench, "root", 2 << 20, 512 << 10);
    check_range(bench, "22222222-2222-2222-2222-222222222222", 2 << 20, 512 << 10);
    check_refused(bench, "2", BW_ERROR_NOT_FOUND,
                  "there is no partition 2; there are: 1 (boot), 3 (root)");
}

/* With both sizes of sectors; from the second header if the first is bad; without an MBR. */
static void test_gpt(void **state)
{
    for (uint32_t sector = 512; sector <= 4096; sector *= 8) {
        struct bench *bench = make_bench();
        put_gpt(bench, sector);
        check_gpt(bench);
        bench->bytes[sector + 20] ^= 1;
        check_gpt(bench);
        memset(bench->bytes, 0, 34 * 512);
        check_gpt(bench);
        bench->bytes[SIZE - sector] = 0;
        check_refused(bench, "1", BW_ERROR_NOT_FOUND, "no partition table");
        free_bench(bench);
    }
}

static void test_same_name(void **state)
{
    struct bench *bench = make_bench();
    put_gpt(bench, 512);
    memcpy(bench->bytes + 1024 + 56, bench->bytes + 1024 + 2 * ENTRY + 56, 8);
    put_header(bench, 512, 1, SIZE / 512 - 1, 2);
    check_refused(bench, "root", BW_ERROR_USAGE,
                  "several partitions are called root: give one of the numbers 1, 3");
    free_bench(bench);
}

/* A truncated image: the existing part of a partition is used. */
static void test_cut(void **state)
{
    struct bench *bench = make_bench();
    put_gpt(bench, 512);
    bench->fake.size = (2 << 20) + 8192;
    check_range(bench, "3", 2 << 20, 8192);
    assert_int_equal(report_log_count(&bench->log, "partition 3 is cut off: the image has 8192 of "
                                                   "its 524288 bytes"),
                     1);
    bench->fake.size = 2 << 20;
    check_refused(bench, "3", BW_ERROR_CORRUPT, "partition 3 begins at 2097152, after the end");
    check_range(bench, "1", 1 << 20, 512 << 10);
    free_bench(bench);
}

/* An MBR does not contain its sector size; the position of a btrfs reveals it. */
static void test_large_sectors(void **state)
{
    struct bench *bench = make_bench();
    put_entry(bench->bytes, 0, 0x83, 256, 500);
    check_range(bench, "1", 256 * 512, 500 * 512);
    memcpy(bench->bytes + 256 * 4096 + 65536 + 64, "_BHRfS_M", 8);
    check_range(bench, "1", 256 * 4096, 500 * 4096);
    free_bench(bench);
}

static void test_nothing(void **state)
{
    static const uint64_t sizes[] = {0, 1, 511, 512, 4095, 4096, 65536, SIZE};
    struct bench *bench = make_bench();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        bench->fake.size = sizes[i];
        check_refused(bench, "1", BW_ERROR_NOT_FOUND, "no partition table");
    }
    bench->fake.size = SIZE;
    put_mbr(bench);
    bench->fake.broken[0] = true;
    check_refused(bench, "1", BW_ERROR_NOT_FOUND, "no partition table");
    free_bench(bench);
}

/* Chains of boot records that lead back, or to themselves, and a GPT of 2^32 - 1 entries. */
static void test_endless(void **state)
{
    struct bench *bench = make_bench();
    put_mbr(bench);
    put_entry(bench->bytes + 2500 * 512, 1, 0x05, 0, 500);
    check_range(bench, "6", 2520 * 512, 300 * 512);
    put_entry(bench->bytes + 1000 * 512, 1, 0x05, 0, 500);
    check_range(bench, "5", 1010 * 512, 200 * 512);
    put_gpt(bench, 512);
    for (uint64_t header = 512; header < SIZE; header += SIZE - 1024) {
        put_le32(bench->bytes + header + 80, UINT32_MAX / ENTRY);
        seal_header(bench->bytes + header);
    }
    check_refused(bench, "1", BW_ERROR_NOT_FOUND, "no partition table");
    free_bench(bench);
}

/* A long chain ends after as many partitions as Linux would take. */
static void test_many(void **state)
{
    struct bench *bench = make_bench();
    struct bw_partition_table table;
    put_entry(bench->bytes, 0, 0x05, 8, 5000);
    for (uint32_t i = 0; i < 2000; i++) {
        put_entry(bench->bytes + (8 + 2 * i) * 512, 0, 0x83, 1, 1);
        put_entry(bench->bytes + (8 + 2 * i) * 512, 1, 0x05, 2 * (i + 1), 2);
    }
    expect_success(bw_partition_table_read(bench->disk, &table));
    assert_int_equal(table.count, BW_PARTITIONS);
    assert_true(table.partitions[0].extended);
    assert_string_equal(table.partitions[0].type_name, "Extended");
    assert_int_equal(table.partitions[255].number, 4 + 255);
    bw_partition_table_free(&table);
    free_bench(bench);
}

/* Any bytes of a table may be wrong: there is an answer, and partitions are within the disk. */
static void test_flips(void **state)
{
    uint32_t seed = 1;
    struct bench *bench = make_bench();
    for (unsigned round = 0; round < 300; round++) {
        struct bw_partition_table table;
        memset(bench->bytes, 0, 64 << 10);
        if (round % 3)
            put_gpt(bench, round % 3 == 1 ? 512 : 4096);
        else
            put_mbr(bench);
        for (unsigned i = 0; i < 4; i++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t at = (seed >> 8) % 200;
            size_t sector = round % 3 == 1 ? 512 : round % 3 == 2 ? 4096 : i % 2 ? 1000 * 512 : 0;
            bench->bytes[round % 3 ? sector + at : sector + 312 + at] ^= (uint8_t)(seed >> 24);
        }
        if (round % 3)
            seal_header(bench->bytes + (round % 3 == 1 ? 512 : 4096));
        struct bw_error *error = bw_partition_table_read(bench->disk, &table);
        for (size_t i = 0; !error && i < table.count; i++) {
            const struct bw_partition_info *partition = &table.partitions[i];
            assert_true(partition->room <= partition->length);
            assert_true(!partition->room || partition->offset + partition->room <= SIZE);
        }
        if (error)
            expect_error(error, BW_ERROR_NOT_FOUND, NULL);
        else
            bw_partition_table_free(&table);
    }
    free_bench(bench);
}
