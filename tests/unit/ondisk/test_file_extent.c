/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/format/file_extent: EXTENT_DATA items, good ones and such as no kernel would write. */
#include "ondisk/items.h"
#include "support/walk_helpers.h"

enum { SECTOR = 4096, HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr) };

/* The bytes of an item, and where in the file it stands. */
struct subject {
    union {
        struct bw_disk_file_extent disk;
        uint8_t bytes[HEAD + 8192];
    } item;
    uint64_t position;
    uint32_t size;
};

/* Twelve sectors at 1 MiB, of which the file takes the middle four at 64 KiB. */
static struct subject make_regular(void)
{
    struct subject subject = {.position = 65536, .size = sizeof subject.item.disk};
    subject.item.disk = (struct bw_disk_file_extent){
        .generation = bw_put64(7),
        .ram_bytes = bw_put64(12 * SECTOR),
        .type = BW_FILE_EXTENT_REGULAR,
        .disk_bytenr = bw_put64(1 << 20),
        .disk_num_bytes = bw_put64(12 * SECTOR),
        .offset = bw_put64(4 * SECTOR),
        .num_bytes = bw_put64(4 * SECTOR),
    };
    return subject;
}

static struct subject make_compressed(void)
{
    struct subject subject = make_regular();
    subject.item.disk.compression = BW_COMPRESS_ZSTD;
    subject.item.disk.disk_num_bytes = bw_put64(SECTOR);
    return subject;
}

static struct subject make_inline(uint32_t length, uint64_t ram_bytes, uint8_t compression)
{
    struct subject subject = {.size = HEAD + length};
    subject.item.disk.generation = bw_put64(7);
    subject.item.disk.ram_bytes = bw_put64(ram_bytes);
    subject.item.disk.compression = compression;
    memset(subject.item.bytes + HEAD, 'x', length);
    return subject;
}

static struct bw_error *decode_at(const struct subject *subject, uint32_t sectorsize,
                                  struct bw_file_extent *extent)
{
    uint8_t *bytes = malloc(subject->size + !subject->size);
    assert_non_null(bytes);
    memcpy(bytes, &subject->item, subject->size);
    const struct bw_item item = {{257, BW_EXTENT_DATA, subject->position}, bytes, subject->size};
    struct bw_error *error = bw_file_extent_decode(&item, sectorsize, extent);
    if (!error && extent->inline_data) {
        assert_ptr_equal(extent->inline_data, bytes + HEAD);
        assert_int_equal(extent->inline_length, subject->size - HEAD);
    }
    free(bytes);
    return error;
}

static void expect_bad(struct subject subject, enum bw_error_code code, const char *text)
{
    struct bw_file_extent extent;
    char full[200];
    snprintf(full, sizeof full, "extent of inode 257 at %llu: %s",
             (unsigned long long)subject.position, text);
    expect_error(decode_at(&subject, SECTOR, &extent), code, full);
}

static struct bw_file_extent expect_good(struct subject subject)
{
    struct bw_file_extent extent;
    expect_success(decode_at(&subject, SECTOR, &extent));
    return extent;
}

/* Good ones. */

static void test_regular(void **state)
{
    struct bw_file_extent extent = expect_good(make_regular());
    assert_int_equal(extent.generation, 7);
    assert_int_equal(extent.ram_bytes, 12 * SECTOR);
    assert_int_equal(extent.compression, BW_COMPRESS_NONE);
    assert_int_equal(extent.encryption, 0);
    assert_int_equal(extent.other_encoding, 0);
    assert_int_equal(extent.type, BW_FILE_EXTENT_REGULAR);
    assert_int_equal(extent.disk_bytenr, 1 << 20);
    assert_int_equal(extent.disk_num_bytes, 12 * SECTOR);
    assert_int_equal(extent.offset, 4 * SECTOR);
    assert_int_equal(extent.num_bytes, 4 * SECTOR);
    assert_null(extent.inline_data);
    extent = expect_good(make_compressed());
    assert_int_equal(extent.compression, BW_COMPRESS_ZSTD);
    assert_int_equal(extent.disk_num_bytes, SECTOR);
    assert_int_equal(extent.ram_bytes, 12 * SECTOR);
}

static void test_zeros(void **state)
{
    struct subject subject = make_regular();
    subject.item.disk.type = BW_FILE_EXTENT_PREALLOC;
    struct bw_file_extent extent = expect_good(subject);
    assert_int_equal(extent.type, BW_FILE_EXTENT_PREALLOC);
    subject = make_regular();
    subject.item.disk.disk_bytenr = subject.item.disk.disk_num_bytes = bw_put64(0);
    extent = expect_good(subject);
    assert_int_equal(extent.disk_bytenr, 0);
    subject.item.disk.num_bytes = bw_put64(UINT64_C(1) << 62); /* a hole need not end where
                                                                  ram_bytes says */
    extent = expect_good(subject);
    assert_true(extent.num_bytes == UINT64_C(1) << 62);
}

static void test_inline(void **state)
{
    struct bw_file_extent extent = expect_good(make_inline(100, 100, BW_COMPRESS_NONE));
    assert_int_equal(extent.type, BW_FILE_EXTENT_INLINE);
    assert_int_equal(extent.inline_length, 100);
    assert_int_equal(extent.num_bytes, 100);
    assert_int_equal(extent.offset, 0);
    assert_int_equal(extent.disk_bytenr, 0);
    expect_good(make_inline(1, 1, BW_COMPRESS_NONE));
    expect_good(make_inline(8000, 8000, BW_COMPRESS_NONE));
    for (uint8_t compression = BW_COMPRESS_ZLIB; compression < BW_COMPRESS_TYPES; compression++) {
        extent = expect_good(make_inline(100, SECTOR, compression));
        assert_int_equal(extent.num_bytes, SECTOR);
        assert_int_equal(extent.inline_length, 100);
    }
}

/* There are file systems on which ram_bytes of an extent that is not compressed is too small. */
static void test_ram_bytes_matter_to_compression_only(void **state)
{
    struct subject subject = make_regular();
    subject.item.disk.ram_bytes = bw_put64(SECTOR);
    expect_good(subject);
    subject = make_compressed();
    subject.item.disk.ram_bytes = bw_put64(7 * SECTOR);
    expect_bad(subject, BW_ERROR_CORRUPT,
               "offset 16384 and num_bytes 16384 pass the end, ram_bytes is 28672");
}

/* Bad ones. */

static void test_sizes_of_items(void **state)
{
    struct subject subject = make_regular();
    for (subject.size = 0; subject.size < 70; subject.size++)
        if (subject.size != sizeof subject.item.disk)
            expect_bad(subject, BW_ERROR_CORRUPT, "invalid item size");
    for (uint32_t size = 0; size < HEAD; size++) {
        subject = make_inline(100, 100, BW_COMPRESS_NONE);
        subject.size = size;
        expect_bad(subject, BW_ERROR_CORRUPT, "invalid item size");
    }
}

static void test_encodings(void **state)
{
    struct subject subject = make_regular();
    for (unsigned type = BW_FILE_EXTENT_TYPES; type < 256; type++) {
        subject.item.disk.type = (uint8_t)type;
        expect_bad(subject, BW_ERROR_CORRUPT, "invalid type");
    }
    subject = make_regular();
    for (unsigned compression = BW_COMPRESS_TYPES; compression < 256; compression++) {
        subject.item.disk.compression = (uint8_t)compression;
        expect_bad(subject, BW_ERROR_UNSUPPORTED, "unknown compression");
    }
    subject = make_regular();
    subject.item.disk.encryption = 1;
    expect_bad(subject, BW_ERROR_UNSUPPORTED, "encryption 1");
}

static void test_bad_inline(void **state)
{
    struct subject subject = make_inline(100, 100, BW_COMPRESS_NONE);
    subject.position = SECTOR;
    expect_bad(subject, BW_ERROR_CORRUPT, "inline, but not at the beginning");
    expect_bad(make_inline(100, 99, BW_COMPRESS_NONE), BW_ERROR_CORRUPT,
               "invalid ram_bytes 99 of 100 bytes");
    expect_bad(make_inline(100, UINT64_MAX, BW_COMPRESS_NONE), BW_ERROR_CORRUPT,
               "invalid ram_bytes");
    expect_bad(make_inline(100, 100 + (UINT64_C(1) << 32), BW_COMPRESS_NONE), BW_ERROR_CORRUPT,
               "invalid ram");
    expect_bad(make_inline(0, 0, BW_COMPRESS_NONE), BW_ERROR_CORRUPT, "invalid ram_bytes 0");
    expect_bad(make_inline(0, 100, BW_COMPRESS_LZO), BW_ERROR_CORRUPT,
               "invalid ram_bytes 100 of 0 bytes");
    expect_bad(make_inline(100, 0, BW_COMPRESS_LZO), BW_ERROR_CORRUPT,
               "invalid ram_bytes 0 of 100 bytes");
    expect_bad(make_inline(100, SECTOR + 1, BW_COMPRESS_LZO), BW_ERROR_CORRUPT,
               "invalid ram_bytes 4097");
    expect_bad(make_inline(SECTOR + 1, 10, BW_COMPRESS_LZO), BW_ERROR_CORRUPT,
               "invalid ram_bytes 10");
}

static void test_alignment(void **state)
{
    static const struct {
        size_t offset;
        const char *name;
    } fields[] = {
        {offsetof(struct bw_disk_file_extent, ram_bytes), "unaligned ram_bytes"},
        {offsetof(struct bw_disk_file_extent, disk_bytenr), "unaligned disk_bytenr"},
        {offsetof(struct bw_disk_file_extent, disk_num_bytes), "unaligned disk_num_bytes"},
        {offsetof(struct bw_disk_file_extent, offset), "unaligned offset"},
        {offsetof(struct bw_disk_file_extent, num_bytes), "unaligned num_bytes"},
    };
    for (size_t i = 0; i < COUNT(fields); i++)
        for (unsigned bit = 0; bit < 12; bit++) {
            struct subject subject = make_regular();
            subject.item.bytes[fields[i].offset + bit / 8] ^= (uint8_t)(1 << bit % 8);
            expect_bad(subject, BW_ERROR_CORRUPT, fields[i].name);
        }
    struct subject subject = make_regular();
    subject.position = 65536 + 2048;
    expect_bad(subject, BW_ERROR_CORRUPT, "unaligned offset in the file");
}

/* Alignment to sectors of 4 KiB does not suffice for larger ones. */
static void test_sector_sizes(void **state)
{
    struct bw_file_extent extent;
    struct subject subject = make_regular();
    expect_success(decode_at(&subject, 16384, &extent));
    expect_error(decode_at(&subject, 65536, &extent), BW_ERROR_CORRUPT, "unaligned ram_bytes");
    subject = make_inline(5000, 40000, BW_COMPRESS_ZLIB);
    expect_success(decode_at(&subject, 65536, &extent));
    expect_error(decode_at(&subject, 16384, &extent), BW_ERROR_CORRUPT, "invalid ram_bytes 40000");
}

static void expect_bad_piece(struct subject subject, uint64_t offset, uint64_t num_bytes,
                             const char *text)
{
    subject.item.disk.offset = bw_put64(offset);
    subject.item.disk.num_bytes = bw_put64(num_bytes);
    expect_bad(subject, BW_ERROR_CORRUPT, text);
}

static void test_pieces(void **state)
{
    const uint64_t huge = (uint64_t)-SECTOR;
    const struct subject made[] = {make_regular(), make_compressed()};
    for (size_t i = 0; i < COUNT(made); i++) {
        expect_bad_piece(made[i], 0, 0, "invalid num_bytes 0");
        expect_bad_piece(made[i], 0, huge, "invalid num_bytes");
        expect_bad_piece(made[i], 0, 13 * SECTOR, "offset 0 and num_bytes 53248 pass the end");
        expect_bad_piece(made[i], 9 * SECTOR, 4 * SECTOR,
                         "offset 36864 and num_bytes 16384 pass the end");
        expect_bad_piece(made[i], 13 * SECTOR, SECTOR, "offset 53248 and");
        expect_bad_piece(made[i], huge, 2 * SECTOR, "offset 18446744073709547520 and");
        struct subject subject = made[i];
        subject.item.disk.offset = bw_put64(0);
        subject.item.disk.num_bytes = bw_put64(12 * SECTOR);
        expect_good(subject);
        subject.position = (uint64_t)-8 * SECTOR;
        expect_bad(subject, BW_ERROR_CORRUPT, "invalid num_bytes 49152");
    }
}

static void test_places_on_disk(void **state)
{
    struct subject subject = make_regular();
    subject.item.disk.disk_num_bytes = bw_put64(0);
    expect_bad(subject, BW_ERROR_CORRUPT, "invalid disk_num_bytes 0 at 1048576");
    subject = make_regular();
    subject.item.disk.disk_bytenr = bw_put64((uint64_t)-4 * SECTOR);
    expect_bad(subject, BW_ERROR_CORRUPT, "invalid disk_num_bytes 49152 at");
    subject = make_compressed();
    subject.item.disk.ram_bytes = bw_put64(BW_MAX_COMPRESSED_EXTENT);
    subject.item.disk.disk_num_bytes = bw_put64(BW_MAX_COMPRESSED_EXTENT);
    expect_good(subject);
    subject.item.disk.ram_bytes = bw_put64(BW_MAX_COMPRESSED_EXTENT + SECTOR);
    expect_bad(subject, BW_ERROR_CORRUPT, "compressed, and too long: ram_bytes 135168");
    subject = make_compressed();
    subject.item.disk.disk_num_bytes = bw_put64(BW_MAX_COMPRESSED_EXTENT + SECTOR);
    expect_bad(subject, BW_ERROR_CORRUPT,
               "compressed, and too long: ram_bytes 49152, disk_num_bytes 135168");
}
