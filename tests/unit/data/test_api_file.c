/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public headers: one file, read at offsets and in parts, and its extents with holes joined. */
#include "btrfs-walk/file.h"
#include "support/walk_helpers.h"

#include "support/data_image.h"

static struct bw_file *open_file(struct data_image *image)
{
    const struct bw_place place = {bw_subvolume_by_id(image->fs, FS), image->inode, 0, 0};
    struct bw_file *file;
    expect_success(bw_file_open(image->fs, &place, NULL, &file));
    return file;
}

/* Two sectors of data, a hole that two items describe, an extent that was never written. */
static struct data_image *sample(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_plain(image, 0, 0, 2 * SECTOR);
    data_image_extent(image, &(struct data_extent){.offset = 2 * SECTOR,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .ram = SECTOR,
                                                   .length = SECTOR,
                                                   .hole = true});
    data_image_extent(image, &(struct data_extent){.offset = 3 * SECTOR,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .ram = SECTOR,
                                                   .length = SECTOR,
                                                   .hole = true});
    data_image_extent(image, &(struct data_extent){.offset = 4 * SECTOR,
                                                   .type = BW_FILE_EXTENT_PREALLOC,
                                                   .disk = 8 * SECTOR,
                                                   .disk_length = SECTOR,
                                                   .ram = SECTOR,
                                                   .length = SECTOR});
    data_image_inode(image, 5 * SECTOR - 10, 0);
    data_image_checksums(image, 0, 2);
    return image;
}

static void test_reading(void **state)
{
    struct data_image *image = sample();
    uint8_t bytes[6 * SECTOR];
    size_t got;
    data_image_open(image, NULL);
    struct bw_file *file = open_file(image);
    assert_int_equal(bw_file_inode(file)->size, 5 * SECTOR - 10);
    memset(bytes, 0xee, sizeof bytes);
    expect_success(bw_file_read(file, 0, bytes, sizeof bytes, &got));
    assert_int_equal(got, 5 * SECTOR - 10);
    assert_memory_equal(bytes, image->data, 2 * SECTOR);
    for (size_t i = 2 * SECTOR; i < got; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(bytes[got], 0xee);
    expect_success(bw_file_read(file, SECTOR + 7, bytes, 20, &got));
    assert_int_equal(got, 20);
    assert_memory_equal(bytes, image->data + SECTOR + 7, 20);
    expect_success(bw_file_read(file, 5 * SECTOR, bytes, 20, &got));
    assert_int_equal(got, 0);
    bw_file_close(file);
    data_image_free(image);
}

static void damage_second_sector(struct data_image *image)
{
    iw_corrupt(image->image, image->logical + SECTOR, IW_ALL_COPIES, 0, 4, IW_FLIP);
}

/* A read stops before an unreadable part, and fails only if it starts there. */
static void test_bad_part(void **state)
{
    struct data_image *image = sample();
    uint8_t bytes[4 * SECTOR];
    size_t got;
    data_image_open(image, damage_second_sector);
    struct bw_file *file = open_file(image);
    expect_success(bw_file_read(file, 0, bytes, sizeof bytes, &got));
    assert_int_equal(got, SECTOR);
    expect_error(bw_file_read(file, SECTOR, bytes, 10, &got), BW_ERROR_CORRUPT, "checksum");
    assert_int_equal(got, 0);
    expect_success(bw_file_read(file, 2 * SECTOR, bytes, 10, &got));
    assert_int_equal(got, 10);
    bw_file_close(file);

    const struct bw_file_options unchecked = {.struct_size = sizeof unchecked, .unchecked = true};
    const struct bw_place place = {bw_subvolume_by_id(image->fs, FS), image->inode, 0, 0};
    expect_success(bw_file_open(image->fs, &place, &unchecked, &file));
    expect_success(bw_file_read(file, 0, bytes, sizeof bytes, &got));
    assert_int_equal(got, sizeof bytes);
    bw_file_close(file);
    data_image_free(image);
}

struct expected_part {
    enum bw_data_kind kind;
    uint64_t offset, length;
};

/* Reads the rest of a range. A part may come in several pieces. */
static void expect_parts(struct bw_file *file, const struct expected_part *expected, size_t count)
{
    const struct bw_data_part *part;
    for (size_t i = 0; i < count; i++)
        for (uint64_t at = 0; at < expected[i].length; at += part->length) {
            expect_success(bw_file_next_part(file, &part));
            assert_non_null(part);
            assert_int_equal(part->kind, expected[i].kind);
            assert_int_equal(part->offset, expected[i].offset + at);
            assert_in_range(part->length, 1, expected[i].length - at);
            assert_int_equal(part->bytes != NULL, part->kind == BW_DATA_BYTES);
            assert_int_equal(part->error != NULL, part->kind == BW_DATA_BAD);
        }
    expect_success(bw_file_next_part(file, &part));
    assert_null(part);
}

/* The parts of a range: data, what cannot be read, holes. The last one ends with the file. */
static void test_parts(void **state)
{
    static const struct expected_part whole[] = {
        {BW_DATA_BYTES, 0, SECTOR},
        {BW_DATA_BAD, SECTOR, SECTOR},
        {BW_DATA_HOLE, 2 * SECTOR, 3 * SECTOR - 10},
    };
    static const struct expected_part middle[] = {
        {BW_DATA_BAD, 2 * SECTOR - 5, 5},
        {BW_DATA_HOLE, 2 * SECTOR, 7},
    };
    struct data_image *image = sample();
    const struct bw_data_part *part;
    uint8_t bytes[10];
    size_t got;
    data_image_open(image, damage_second_sector);
    struct bw_file *file = open_file(image);

    /* without a range, and with an empty one */
    expect_parts(file, NULL, 0);
    expect_success(bw_file_begin_parts(file, 5 * SECTOR, UINT64_MAX));
    expect_parts(file, NULL, 0);

    expect_success(bw_file_begin_parts(file, 0, UINT64_MAX));
    expect_parts(file, whole, COUNT(whole));

    /* another range ends the previous one, and so does reading */
    expect_success(bw_file_begin_parts(file, 0, UINT64_MAX));
    expect_success(bw_file_next_part(file, &part));
    assert_memory_equal(part->bytes, image->data, part->length);
    expect_success(bw_file_begin_parts(file, 2 * SECTOR - 5, 12));
    expect_parts(file, middle, COUNT(middle));
    expect_success(bw_file_begin_parts(file, 0, UINT64_MAX));
    expect_success(bw_file_read(file, 3, bytes, sizeof bytes, &got));
    assert_int_equal(got, sizeof bytes);
    expect_parts(file, NULL, 0);
    bw_file_close(file);
    data_image_free(image);
}

static void test_extents(void **state)
{
    struct data_image *image = sample();
    const struct bw_extent *extent;
    data_image_open(image, NULL);
    struct bw_file *file = open_file(image);
    static const struct {
        enum bw_extent_kind kind;
        uint64_t offset, length;
    } expected[] = {
        {BW_EXTENT_REGULAR, 0, 2 * SECTOR},
        {BW_EXTENT_HOLE, 2 * SECTOR, 2 * SECTOR},
        {BW_EXTENT_UNWRITTEN, 4 * SECTOR, SECTOR},
    };
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(expected); i++) {
            expect_success(bw_file_next_extent(file, &extent));
            assert_non_null(extent);
            assert_int_equal(extent->kind, expected[i].kind);
            assert_int_equal(extent->offset, expected[i].offset);
            assert_int_equal(extent->length, expected[i].length);
        }
        expect_success(bw_file_next_extent(file, &extent));
        assert_null(extent);
        bw_file_seek_extent(file, 0);
    }
    bw_file_seek_extent(file, 3 * SECTOR + 1);
    expect_success(bw_file_next_extent(file, &extent));
    assert_int_equal(extent->offset, 3 * SECTOR + 1);
    assert_int_equal(extent->length, SECTOR - 1);
    bw_file_close(file);
    data_image_free(image);
}

static void test_refusals(void **state)
{
    struct data_image *image = sample();
    struct bw_file *file;
    data_image_open(image, NULL);
    const struct bw_place top = bw_place_top(bw_subvolume_by_id(image->fs, FS));
    expect_error(bw_file_open(image->fs, &top, NULL, &file), BW_ERROR_USAGE, "not a regular file");
    data_image_free(image);
}
