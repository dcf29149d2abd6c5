/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extents that begin or end outside of chunks, and files that end within a bad range. */
#include "support/data_image.h"

/* Extents where there is no chunk: nothing is read for them, however long they are. */
static void test_nowhere(void **state)
{
    const uint64_t huge = UINT64_C(10) << 30;
    struct data_image *image = data_image_begin();
    struct data_result result;
    for (unsigned i = 0; i < 20; i++)
        data_image_plain(image, i * huge, UINT64_C(1) << 50, huge);
    data_image_plain(image, 20 * huge, 0, SECTOR);
    data_image_inode(image, 20 * huge + SECTOR, BW_INODE_NODATASUM);
    data_image_open(image, NULL);
    const struct bw_data_file file = data_image_file(image, 20 * huge + SECTOR, true);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bad, 20 * huge);
    assert_true(result.bad_parts <= 20);
    assert_non_null(strstr(result.first_error, "the chunk tree has no chunk for logical address"));
    assert_memory_equal(result.bytes.data, image->data, SECTOR);
    assert_in_range(bw_xlator_counters(image->fs->reader.top, BW_REQUEST_DATA).requests, 1, 3);
    data_image_finish(image, &result);
}

/* One that begins before the first chunk is bad up to that, and no further. */
static void test_before_chunk(void **state)
{
    const uint64_t first_chunk = 22020096;
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, first_chunk - 2 * SECTOR - image->logical, 5 * SECTOR);
    data_image_inode(image, 5 * SECTOR, BW_INODE_NODATASUM);
    data_image_open(image, NULL);
    const struct bw_data_file file = data_image_file(image, 5 * SECTOR, true);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bytes.length, 5 * SECTOR);
    assert_int_equal(result.bad, 2 * SECTOR);
    data_expect_all(&result, 0, '!', 2 * SECTOR);
    data_image_finish(image, &result);
}

/* An extent that continues after its chunk: from there on, nothing is read. */
static void test_behind_chunk(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, UINT64_C(10) << 30);
    data_image_inode(image, UINT64_C(10) << 30, BW_INODE_NODATASUM);
    data_image_open(image, NULL);
    const struct bw_data_file file = data_image_file(image, UINT64_C(10) << 30, true);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bytes.length + result.bad, UINT64_C(10) << 30);
    assert_true(bw_xlator_counters(image->fs->reader.top, BW_REQUEST_DATA).requests < 3 * 1024);
    data_image_finish(image, &result);
}

/* Iterates over all pieces up to the largest possible offset; returns the end of the last piece
 * that is not a hole. */
static uint64_t last_end(struct data_image *image, uint64_t size, unsigned *bad)
{
    const struct bw_data_file file = data_image_file(image, size, false);
    struct bw_extent_cursor cursor;
    struct bw_extent_piece piece;
    uint64_t at = 0, end = 0;
    bool got;
    *bad = 0;
    bw_extents_init(&cursor, image->fs);
    bw_extents_seek(&cursor, &file, 0, INT64_MAX);
    for (;;) {
        expect_success(bw_extents_next(&cursor, &piece, &got));
        if (!got)
            break;
        assert_int_equal(piece.extent.offset, at);
        assert_true(piece.extent.length > 0);
        at += piece.extent.length;
        end = piece.extent.kind == BW_EXTENT_HOLE ? end : at;
        *bad += piece.extent.kind == BW_EXTENT_BAD;
        bw_error_free(piece.extent.error);
    }
    assert_int_equal(at, INT64_MAX);
    bw_extents_free(&cursor);
    return end;
}

/* A bad range at the end of a file ends with the file. */
static void test_bad_end(void **state)
{
    struct data_image *image = data_image_begin();
    const uint64_t size = 39 * SECTOR + 5;
    unsigned bad;
    iw_shape(image->image, FS, 4, 0, 0);
    for (unsigned i = 0; i < 40; i++)
        data_image_plain(image, i * SECTOR, i * SECTOR, SECTOR);
    iw_item(image->image, FS, (struct bw_key){image->inode, BW_EXTENT_DATA, 44 * SECTOR}, "short",
            5);
    data_image_inode(image, size, 0);
    data_image_open(image, NULL);
    /* A bad item after the end of the file is reported, with a length of one sector. */
    assert_int_equal(last_end(image, size, &bad), 45 * SECTOR);
    assert_int_equal(bad, 1);
    /* One inside ends with the file. */
    assert_int_equal(last_end(image, 47 * SECTOR, &bad), 47 * SECTOR);
    bw_fs_close(image->fs);
    const struct bw_key key = {image->inode, BW_EXTENT_DATA, 44 * SECTOR};
    iw_corrupt(image->image, iw_block_of_key(image->image, FS, key)->logical, IW_ALL_COPIES, 0, 100,
               IW_FLIP);
    expect_success(open_image(image->image, &image->log, &image->fs));
    assert_int_equal(last_end(image, size, &bad), 40 * SECTOR);
    assert_int_equal(last_end(image, 47 * SECTOR - 1, &bad), 47 * SECTOR);
    assert_int_equal(bad, 1);
    data_image_free(image);
}
