/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/check/data.c: joins bad sectors to findings, assigns checksums to chunks, and reads data in
 * windows. Also the list of chunks in check.c, and the order of the ranges that a log uses
 * (log.c). */
#include "check/data.h"
#include "support/walk_helpers.h"

enum { SECTOR = 4096, LENGTH = 4 << 20 };

/* A file system of two devices with several data chunks behind each other, and a check of it. */
struct bed {
    struct iw_image *image;
    struct report_log log;
    struct bw_fs *fs;
    struct bw_check_options options;
    struct bw_check check;
    struct bw_buffer text; /* findings and ranges */
    uint64_t data;         /* where the first data chunk begins */
};

static unsigned known_or_zero(uint64_t number)
{
    return number == BW_ABSENT ? 0 : (unsigned)number;
}

static struct bw_error *take_finding(void *context, const struct bw_findinginfo *finding)
{
    struct bed *bed = context;
    bw_buffer_format(&bed->text, "%s %u: %d+%u%s, device %u\n", finding->code,
                     known_or_zero(finding->mirror), (int)(finding->logical - bed->data) / SECTOR,
                     (unsigned)finding->length / SECTOR, finding->repairable ? " repairable" : "",
                     known_or_zero(finding->devid));
    return NULL;
}

static struct iw_image *make_image(void)
{
    const struct iw_options options = {.profile = BW_GROUP_RAID1,
                                       .data_profile = BW_GROUP_RAID1,
                                       .device_count = 2,
                                       .data_chunks = 2,
                                       .device_extent_length = LENGTH};
    return iw_create(&options);
}

static const struct iw_chunk *first_data_chunk(const struct iw_image *image)
{
    size_t i = 0;
    while (!(iw_chunk(image, i)->type & BW_GROUP_DATA))
        i++;
    return iw_chunk(image, i);
}

/* With an image that has been written. */
static void make_bed_of(struct bed *bed, struct iw_image *image)
{
    *bed = (struct bed){.image = image};
    bed->data = first_data_chunk(image)->logical;
    expect_success(open_image(image, &bed->log, &bed->fs));
    bed->options = (struct bw_check_options){.visit = take_finding, .all = true, .context = bed};
    bed->check = (struct bw_check){.fs = bed->fs, .options = &bed->options};
    expect_success(bw_check_begin(&bed->check));
}

static void make_bed(struct bed *bed, struct iw_image *image)
{
    iw_write_memory(image);
    make_bed_of(bed, image);
}

static void free_bed(struct bed *bed)
{
    bw_check_end(&bed->check);
    bw_fs_close(bed->fs);
    iw_destroy(bed->image);
    report_log_free(&bed->log);
    bw_buffer_free(&bed->text);
}

static void expect_text(struct bed *bed, const char *expected)
{
    assert_string_equal(bw_buffer_text(&bed->text), expected);
    bed->text.length = 0;
}

/* A sector that is bad. */
struct bad_sector {
    int sector; /* of the first data chunk */
    unsigned copy;
    bool repairable, unreadable;
};

static void add(struct bed *bed, struct bw_bad_ranges *bad, const struct bad_sector *sector)
{
    static const char mismatch[] = "checksum mismatch", unreadable[] = "cannot be read";
    const struct bw_bad_range range = {
        .code = sector->unreadable ? BW_CODE_data_unreadable : BW_CODE_data_checksum,
        .message = sector->unreadable ? unreadable : mismatch,
        .logical = bed->data + (uint64_t)(unsigned)sector->sector * SECTOR,
        .length = SECTOR,
        .copy = sector->copy,
        .repairable = sector->repairable};
    bw_bad_ranges_add(&bed->check, bad, &range);
}

static void report(struct bed *bed, struct bw_bad_ranges *bad, int open)
{
    bw_bad_ranges_report(&bed->check, bad,
                         open ? bed->data + (uint64_t)(unsigned)open * SECTOR : 0);
    assert_false(bed->check.no_memory);
    expect_success(bw_findings_flush(&bed->check));
}

/* Adjacent sectors are one finding, in any order, unless they differ in kind or lie in different
 * chunks. */
static void test_bad_ranges(void **state)
{
    enum { LAST = LENGTH / SECTOR - 1 };
    static const struct bad_sector sectors[] = {
        {7, 1, true, false},     {5, 1, true, false},        {6, 1, true, false},
        {9, 1, true, false},     {6, 2, true, false},        {7, 2, true, false},
        {8, 1, false, false},    {4, 1, true, true},         {3, 1, true, true},
        {LAST, 2, false, false}, {LAST + 1, 2, false, false}};
    struct bed bed;
    struct bw_bad_ranges bad = {0};
    make_bed(&bed, make_image());
    for (size_t i = 0; i < COUNT(sectors); i++)
        add(&bed, &bad, &sectors[i]);
    report(&bed, &bad, 0);
    expect_text(&bed, "data-checksum 1: 5+3 repairable, device 1\n"
                      "data-checksum 2: 6+2 repairable, device 2\n"
                      "data-checksum 1: 8+1, device 1\n"
                      "data-checksum 1: 9+1 repairable, device 1\n"
                      "data-checksum 2: 1023+1, device 2\n"
                      "data-checksum 2: 1024+1, device 1\n"
                      "data-unreadable 1: 3+2 repairable, device 1\n");
    assert_true(bw_check_has_bad(&bed.check, bed.data + 5 * (uint64_t)SECTOR, 1));
    assert_false(bw_check_has_bad(&bed.check, bed.data + 10 * (uint64_t)SECTOR, SECTOR));
    report(&bed, &bad, 0);
    expect_text(&bed, "");
    bw_bad_ranges_free(&bad);
    free_bed(&bed);
}

/* A range that ends at the end of the window may continue in the next one. */
static void test_open_range(void **state)
{
    struct bed bed;
    struct bw_bad_ranges bad = {0};
    make_bed(&bed, make_image());
    add(&bed, &bad, &(struct bad_sector){1, 1, false, false});
    add(&bed, &bad, &(struct bad_sector){3, 1, false, false});
    report(&bed, &bad, 4);
    expect_text(&bed, "data-checksum 1: 1+1, device 1\n");
    add(&bed, &bad, &(struct bad_sector){4, 1, false, false});
    report(&bed, &bad, 0);
    expect_text(&bed, "data-checksum 1: 3+2, device 1\n");
    bw_bad_ranges_free(&bad);
    free_bed(&bed);
}

static struct bw_error *take_summed(void *context, const struct bw_data_range *range)
{
    struct bed *bed = context;
    bw_buffer_format(&bed->text, "%d+%u of chunk %d: %u\n",
                     (int)(range->logical - bed->data) / SECTOR, (unsigned)range->length / SECTOR,
                     (int)(range->chunk->logical - bed->data) / LENGTH, *range->checksums);
    return NULL;
}

/* Checksums of eight sectors, numbered from `first` on. */
static const uint8_t *checksums(unsigned first)
{
    static uint8_t bytes[8 * 4];
    for (unsigned i = 0; i < 8; i++)
        bytes[4 * i] = (uint8_t)(first + i);
    return bytes;
}

static struct bw_item item_at(uint64_t logical, uint32_t sectors, unsigned first)
{
    return (struct bw_item){.key = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, logical},
                            .data = checksums(first),
                            .size = 4 * sectors};
}

static void test_summed_item(void **state)
{
    struct bed bed;
    make_bed(&bed, make_image());
    const uint64_t next = bed.data + LENGTH;
    const struct iw_chunk *last = iw_chunk(bed.image, iw_chunk_count(bed.image) - 1);
    const uint64_t end = last->logical + last->length;
    uint64_t done = 0;
    struct bw_item item = item_at(next - 2 * SECTOR, 5, 10);
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    expect_text(&bed, "1022+2 of chunk 0: 10\n1024+3 of chunk 1: 12\n");
    assert_int_equal(done, next + 3 * SECTOR);

    item = item_at(next + SECTOR, 4, 20); /* overlaps the previous one */
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    expect_text(&bed, "1027+2 of chunk 1: 22\n");
    item = item_at(next + SECTOR, 4, 20); /* and is not handed out again */
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    item = item_at(next + 100, 4, 20);
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    item = item_at(UINT64_MAX - SECTOR + 1, 4, 20);
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    item = item_at(end - SECTOR, 4, 20);
    item.key.type = BW_EXTENT_DATA;
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    expect_text(&bed, "");
    item.key.type = BW_EXTENT_CSUM; /* no chunk contains the rest */
    expect_success(bw_summed_item(&bed.check, &item, &done, take_summed, &bed));
    expect_text(&bed, "4095+1 of chunk 3: 20\n");
    free_bed(&bed);
}

static struct bw_error *refuse(void *context, const struct bw_data_range *range)
{
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

static void test_summed_scan(void **state)
{
    struct bed bed;
    struct iw_image *layout = make_image();
    iw_write_memory(layout);
    const uint64_t data = first_data_chunk(layout)->logical;
    iw_destroy(layout);
    struct iw_image *image = make_image();
    for (unsigned i = 0; i < 3; i++)
        iw_item(image, BW_CSUM_TREE,
                (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM,
                                data + (uint64_t)i * 16 * SECTOR},
                checksums(10 * i), 8 * 4);
    make_bed(&bed, image);
    assert_int_equal(bed.data, data);
    expect_success(bw_summed_scan(&bed.check, take_summed, &bed));
    expect_text(&bed, "0+8 of chunk 0: 0\n16+8 of chunk 0: 10\n32+8 of chunk 0: 20\n");
    expect_error(bw_summed_scan(&bed.check, refuse, NULL), BW_ERROR_STOPPED, "enough");
    free_bed(&bed);
}

/* More ranges than fit into a window: each is read once. */
static void test_windows(void **state)
{
    enum { RANGES = 70000 };
    static const uint8_t zeros[SECTOR];
    uint8_t checksum[BW_CSUM_SIZE];
    struct bed bed;
    make_bed(&bed,
             iw_create(&(struct iw_options){.data_chunks = 1, .device_extent_length = 288 << 20}));
    bw_checksum_compute(BW_CHECKSUM_CRC32C, zeros, SECTOR, checksum);
    struct bw_data_range range = {
        .chunk = bw_check_chunk(&bed.check, bed.data), .length = SECTOR, .checksums = checksum};
    struct bw_data_check *data = bw_data_check_begin(&bed.check);
    assert_non_null(data);
    for (unsigned i = 0; i < RANGES; i++) {
        range.logical = bed.data + (uint64_t)i * SECTOR;
        expect_success(bw_data_check_add(data, &range));
    }
    expect_success(bw_data_check_end(data, NULL));
    expect_success(bw_findings_flush(&bed.check));
    assert_int_equal(bed.check.data_bytes, (uint64_t)RANGES * SECTOR);
    expect_text(&bed, "");
    free_bed(&bed);
}

/* A chunk with one stripe, of which the first sectors were moved to a chunk with parity, where a
 * second copy can be computed only. */
static void test_moved_chunk(void **state)
{
    const struct iw_options options = {.data_profile = BW_GROUP_RAID5,
                                       .device_count = 3,
                                       .data_chunks = 2,
                                       .incompat_flags = BW_INCOMPAT_REMAP_TREE};
    struct iw_image *model = iw_create(&options), *image = iw_create(&options);
    iw_write_memory(model);
    const struct iw_chunk *first = first_data_chunk(model);
    const uint64_t data = first->logical;
    const struct {
        struct bw_disk_chunk chunk;
        struct bw_disk_stripe stripe;
    } old = {{.length = bw_put64(first->length / 2),
              .owner = bw_put64(BW_EXTENT_TREE),
              .stripe_length = bw_put64(BW_STRIPE_LENGTH),
              .type = bw_put64(BW_GROUP_DATA | BW_GROUP_REMAPPED),
              .sector_size = bw_put32(SECTOR),
              .stripe_count = bw_put16(1),
              .sub_stripes = bw_put16(1)},
             {.devid = bw_put64(1), .offset = bw_put64(first->stripes[0].offset)}};
    const bw_le64 target = bw_put64(data + first->length);
    iw_item(image, BW_CHUNK_TREE, (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, data}, &old,
            sizeof old);
    iw_item(image, BW_REMAP_TREE, (struct bw_key){data, BW_REMAP, 16 * SECTOR}, &target,
            sizeof target);
    iw_write_memory(image);
    iw_use_remap_tree(image);
    struct bed bed;
    make_bed_of(&bed, image);
    const struct bw_checked_chunk *chunk = bw_check_chunk(&bed.check, data);
    assert_non_null(chunk);
    assert_int_equal(chunk->copies, 1);
    assert_int_equal(chunk->all_copies, 2);
    iw_destroy(model);
    free_bed(&bed);
}

/* A range that several files share is read once; of two ranges, the shorter one comes first. */
static void test_log_space(void **state)
{
    struct bed bed;
    make_bed(&bed, make_image());
    bw_log_claim_space(&bed.check, bed.data, SECTOR, FS, 300);
    bw_log_claim_space(&bed.check, bed.data, 2 * SECTOR, FS, 301);
    bw_log_claim_space(&bed.check, bed.data, SECTOR, FS, 302);
    expect_success(bw_log_check_space(&bed.check));
    expect_success(bw_findings_flush(&bed.check));
    expect_text(&bed, "log-overlap 0: 0+2, device 0\n");
    free_bed(&bed);
}
