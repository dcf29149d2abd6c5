/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of every kind of extent, good ones and hostile ones: damage costs its own range, and
 * nothing else. */
#include <zstd.h>

#include "support/data_image.h"

static void test_holes_and_parts(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, 2 * SECTOR);
    /* A gap; a hole that is written down; a part of an extent; one never written; the end inside a
     * sector. */
    data_image_extent(image, &(struct data_extent){.offset = 4 * SECTOR,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .ram = 2 * SECTOR,
                                                   .length = 2 * SECTOR,
                                                   .hole = true});
    data_image_extent(image, &(struct data_extent){.offset = 6 * SECTOR,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .disk = 10 * SECTOR,
                                                   .disk_length = 20 * SECTOR,
                                                   .ram = 20 * SECTOR,
                                                   .skip = 5 * SECTOR,
                                                   .length = 3 * SECTOR});
    data_image_extent(image, &(struct data_extent){.offset = 9 * SECTOR,
                                                   .type = BW_FILE_EXTENT_PREALLOC,
                                                   .disk = 40 * SECTOR,
                                                   .disk_length = 2 * SECTOR,
                                                   .ram = 2 * SECTOR,
                                                   .length = 2 * SECTOR});
    data_image_plain(image, 11 * SECTOR, 50 * SECTOR, 4 * SECTOR);
    data_image_read_all(image, 12 * SECTOR + 5, &result);
    assert_int_equal(result.bytes.length, 12 * SECTOR + 5);
    assert_int_equal(result.bad, 0);
    assert_int_equal(result.holes, 6 * SECTOR);
    data_expect_bytes(&result, 0, image->data, 2 * SECTOR);
    data_expect_all(&result, 2 * SECTOR, 0, 4 * SECTOR);
    data_expect_bytes(&result, 6 * SECTOR, image->data + 15 * SECTOR, 3 * SECTOR);
    data_expect_all(&result, 9 * SECTOR, 0, 2 * SECTOR);
    data_expect_bytes(&result, 11 * SECTOR, image->data + 50 * SECTOR, SECTOR + 5);
    data_image_finish(image, &result);
}

static void test_sparse(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    const uint64_t far = UINT64_C(1) << 60;
    data_image_plain(image, far, 0, SECTOR);
    data_image_read_all(image, far + far + 1, &result);
    assert_int_equal(result.bytes.length, SECTOR + 0);
    assert_int_equal(result.holes, 2 * far + 1 - SECTOR);
    assert_int_equal(result.bad, 0);
    data_image_finish(image, &result);
}

static void test_inline(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_inline(image, BW_COMPRESS_NONE, 100, image->data, 100);
    data_image_read_all(image, 150, &result);
    data_expect_bytes(&result, 0, image->data, 100);
    data_expect_all(&result, 100, 0, 50);
    data_image_finish(image, &result);
}

/* A zstd stream of a text, stored at the beginning of the data; returns the bytes it takes. */
static size_t store_stream(struct data_image *image, const char *text, size_t length)
{
    size_t size = ZSTD_compress(image->data, DATA_SIZE, text, length, 3);
    assert_false(ZSTD_isError(size));
    const size_t stored = (size + SECTOR - 1) / SECTOR * SECTOR;
    memset(image->data + size, 0, stored - size);
    return stored;
}

static struct data_extent compressed(uint64_t offset, uint64_t stored, uint64_t ram, uint64_t skip,
                                     uint64_t length)
{
    return (struct data_extent){.offset = offset,
                                .type = BW_FILE_EXTENT_REGULAR,
                                .compression = BW_COMPRESS_ZSTD,
                                .disk_length = stored,
                                .ram = ram,
                                .skip = skip,
                                .length = length};
}

enum { TEXT = 128 << 10 };

static char *make_text(size_t length)
{
    char *text = malloc(length);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)("0123456789abcdef"[i / 97 % 16]);
    return text;
}

static void test_compressed_parts(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_BLAKE2B);
    struct data_result result;
    char *text = make_text(TEXT);
    uint64_t stored = store_stream(image, text, TEXT);
    struct data_extent extent = compressed(0, stored, TEXT, 8 * SECTOR, 4 * SECTOR);
    data_image_checksums(image, 0, 100);
    data_image_extent(image, &extent);
    data_image_plain(image, 4 * SECTOR, 60 * SECTOR, SECTOR);
    extent = compressed(5 * SECTOR, stored, TEXT, 13 * SECTOR, 19 * SECTOR);
    data_image_extent(image, &extent);
    extent = compressed(24 * SECTOR, stored, TEXT, 0, TEXT);
    data_image_extent(image, &extent);
    data_image_read_all(image, 24 * SECTOR + TEXT, &result);
    assert_int_equal(result.bad, 0);
    data_expect_bytes(&result, 0, text + 8 * SECTOR, 4 * SECTOR);
    data_expect_bytes(&result, 4 * SECTOR, image->data + 60 * SECTOR, SECTOR);
    data_expect_bytes(&result, 5 * SECTOR, text + 13 * SECTOR, 19 * SECTOR);
    data_expect_bytes(&result, 24 * SECTOR, text, TEXT);
    free(text);
    data_image_finish(image, &result);
}

/* Without checksums, all parts of a compressed extent are unverified: also those that come from the
 * extent that the reader has kept. */
static void test_kept_unverified(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    struct bw_data_reader *reader;
    char *text = make_text(TEXT);
    const uint64_t stored = store_stream(image, text, TEXT), second = 60 * SECTOR;
    memcpy(image->data + second, image->data, stored);
    data_image_checksums(image, 0, 20);
    /* Two parts of an extent with checksums, then two of one without. */
    for (unsigned i = 0; i < 4; i++) {
        struct data_extent extent =
            compressed(i * SECTOR, stored, TEXT, (3 + 2 * i) * SECTOR, SECTOR);
        extent.disk = i < 2 ? 0 : second;
        data_image_extent(image, &extent);
    }
    data_image_inode(image, 4 * SECTOR, 0);
    data_image_open(image, NULL);
    image->fs->ignored_checksums = BW_CHECKSUMS_DATA;
    const struct bw_data_file file = data_image_file(image, 4 * SECTOR, false);
    assert_null(bw_data_reader_create(image->fs, &reader));
    for (unsigned i = 0; i < 8; i++) {
        const struct bw_data_part *part;
        const uint64_t at = i % 4;
        bw_data_begin(reader, &file, at * SECTOR, SECTOR);
        assert_null(bw_data_next(reader, &part));
        assert_int_equal(part->kind, BW_DATA_BYTES);
        assert_memory_equal(part->bytes, text + (3 + 2 * at) * SECTOR, SECTOR);
        assert_int_equal(part->unverified, at >= 2);
    }
    bw_data_reader_destroy(reader);
    free(text);
    data_image_free(image);
}

/* Streams that are longer or shorter than their extents say: the extent counts. */
static void test_wrong_lengths(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    struct data_result result;
    char *text = make_text(8 << 20);
    uint64_t stored = store_stream(image, text, 8 << 20);
    data_image_checksums(image, 0, 100);
    struct data_extent extent = compressed(0, stored, 2 * SECTOR, 0, 2 * SECTOR);
    data_image_extent(image, &extent);
    extent = compressed(2 * SECTOR, stored, UINT64_C(1) << 40, 0, 2 * SECTOR);
    data_image_extent(image, &extent);
    extent = compressed(4 * SECTOR, stored, 2 * SECTOR, SECTOR, 2 * SECTOR);
    data_image_extent(image, &extent);
    extent = compressed(6 * SECTOR, stored, 2 * SECTOR, BW_MAX_COMPRESSED_EXTENT, 2 * SECTOR);
    data_image_extent(image, &extent);
    data_image_plain(image, 8 * SECTOR, 70 * SECTOR, SECTOR);
    data_image_read_all(image, 9 * SECTOR, &result);
    data_expect_bytes(&result, 0, text, 2 * SECTOR);
    /* Like the kernel, readers do not need the length of the whole extent. */
    data_expect_bytes(&result, 2 * SECTOR, text, 2 * SECTOR);
    data_expect_bytes(&result, 4 * SECTOR, text + SECTOR, 2 * SECTOR);
    data_expect_all(&result, 6 * SECTOR, '!', 2 * SECTOR);
    data_expect_bytes(&result, 8 * SECTOR, image->data + 70 * SECTOR, SECTOR);
    assert_int_equal(result.bad, 2 * SECTOR);
    free(text);
    data_image_finish(image, &result);
}

static void test_broken_stream(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    const struct data_extent extent = compressed(0, 4 * SECTOR, TEXT, 0, TEXT);
    data_image_extent(image, &extent);
    data_image_plain(image, TEXT, 9 * SECTOR, SECTOR);
    data_image_read_all(image, TEXT + SECTOR, &result);
    assert_int_equal(result.bad, TEXT);
    assert_non_null(strstr(result.first_error, "mirror 1 on device 1 at "));
    assert_non_null(strstr(result.first_error, "zstd: "));
    data_expect_bytes(&result, TEXT, image->data + 9 * SECTOR, SECTOR);
    data_image_finish(image, &result);
}

static void test_overlap(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, SECTOR);
    data_image_plain(image, SECTOR, 10 * SECTOR, 5 * SECTOR);
    data_image_plain(image, 3 * SECTOR, 20 * SECTOR, 2 * SECTOR);
    data_image_read_all(image, 8 * SECTOR, &result);
    data_expect_bytes(&result, 0, image->data, SECTOR);
    data_expect_all(&result, SECTOR, '!', 2 * SECTOR);
    assert_non_null(strstr(result.first_error, "reaches into the next extent"));
    data_expect_bytes(&result, 3 * SECTOR, image->data + 20 * SECTOR, 2 * SECTOR);
    data_expect_all(&result, 5 * SECTOR, 0, 3 * SECTOR);
    data_image_finish(image, &result);
}

static void test_nonsense(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, SECTOR);
    data_image_plain(image, SECTOR, 0, 0);                   /* of no length */
    data_image_plain(image, 2 * SECTOR, 77, SECTOR);         /* unaligned */
    data_image_plain(image, 3 * SECTOR, 1ull << 50, SECTOR); /* nowhere */
    data_image_plain(image, 4 * SECTOR, 0, 1ull << 62); /* larger than anything; past the end */
    iw_item(image->image, FS, (struct bw_key){image->inode, BW_EXTENT_DATA, 6 * SECTOR}, "short",
            5);
    data_image_plain(image, 7 * SECTOR, 98 * SECTOR, 4 * SECTOR); /* half without checksums */
    data_image_read_all(image, 20 * SECTOR, &result);
    data_expect_bytes(&result, 0, image->data, SECTOR);
    data_expect_all(&result, SECTOR, '!', 6 * SECTOR);
    data_expect_bytes(&result, 7 * SECTOR, image->data + 98 * SECTOR, 2 * SECTOR);
    data_expect_all(&result, 9 * SECTOR, '!', 2 * SECTOR);
    data_expect_all(&result, 11 * SECTOR, 0, 9 * SECTOR);
    data_image_finish(image, &result);
}

/* An extent that is huge, but could be: it ends with its chunk. */
static void test_past_device(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, UINT64_C(1) << 30);
    data_image_read_all(image, UINT64_C(1) << 30, &result);
    assert_int_equal(result.bad, (UINT64_C(1) << 30) - 100 * SECTOR);
    data_expect_bytes(&result, 0, image->data, 100 * SECTOR);
    data_image_finish(image, &result);
}

static void swap_keys(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *items = (void *)(block + sizeof(struct bw_disk_header));
    uint32_t count = bw_get32(((const struct bw_disk_header *)block)->item_count);
    const struct bw_disk_item last = items[count - 1];
    items[count - 1] = items[count - 2];
    items[count - 2] = last;
}

/* The result is the same for a leaf with unordered items, and damage is reported once. */
static void test_disorder(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    for (unsigned i = 0; i < 4; i++)
        data_image_plain(image, i * SECTOR, (90 - 7 * i) * SECTOR, SECTOR);
    data_image_inode(image, 4 * SECTOR, 0);
    data_image_open(image, NULL);
    bw_fs_close(image->fs);
    const struct bw_key key = {image->inode, BW_EXTENT_DATA, 3 * SECTOR};
    iw_rewrite_block(image->image, iw_block_of_key(image->image, FS, key)->logical, swap_keys, NULL,
                     true);
    expect_success(open_image(image->image, &image->log, &image->fs));
    const struct bw_data_file file = data_image_file(image, 4 * SECTOR, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    for (unsigned i = 0; i < 4; i++)
        data_expect_bytes(&result, i * SECTOR, image->data + (90 - 7 * i) * SECTOR, SECTOR);
    assert_int_equal(report_log_count(&image->log, "its keys are out of order"), 1);
    data_image_finish(image, &result);
}

/* A lost leaf takes the ranges it told of along. */
static void test_lost_leaf(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    iw_shape(image->image, FS, 4, 0, 0);
    for (unsigned i = 0; i < 40; i++)
        data_image_plain(image, i * SECTOR, i * SECTOR, SECTOR);
    data_image_inode(image, 40 * SECTOR, 0);
    data_image_open(image, NULL);
    bw_fs_close(image->fs);
    const struct bw_key key = {image->inode, BW_EXTENT_DATA, 20 * SECTOR};
    const struct iw_block *leaf = iw_block_of_key(image->image, FS, key);
    const size_t first = (size_t)leaf->first_key.offset;
    const size_t end = (size_t)leaf->last_key.offset + SECTOR;
    iw_corrupt(image->image, leaf->logical, IW_ALL_COPIES, 0, 100, IW_FLIP);
    expect_success(open_image(image->image, &image->log, &image->fs));
    const struct bw_data_file file = data_image_file(image, 40 * SECTOR, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bad, end - first);
    data_expect_bytes(&result, 0, image->data, first);
    data_expect_all(&result, first, '!', end - first);
    data_expect_bytes(&result, end, image->data + end, 40 * SECTOR - end);
    data_image_finish(image, &result);
}

static void test_lost_checksums(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    struct data_result result;
    data_image_plain(image, 0, 0, 10 * SECTOR);
    data_image_checksums(image, 2, 3);
    data_image_read_all(image, 10 * SECTOR, &result);
    data_expect_all(&result, 0, '!', 2 * SECTOR);
    data_expect_bytes(&result, 2 * SECTOR, image->data + 2 * SECTOR, 3 * SECTOR);
    data_expect_all(&result, 5 * SECTOR, '!', 5 * SECTOR);
    assert_non_null(strstr(result.first_error, ": no checksum"));
    data_image_finish(image, &result);
}

static void spoil_checksum_tree(struct data_image *image)
{
    iw_corrupt(image->image, iw_root_block(image->image, BW_CSUM_TREE)->logical, IW_ALL_COPIES, 0,
               100, IW_FLIP);
}

/* That a block of the checksum tree is lost is another thing than that it has no checksums. */
static void test_lost_checksum_leaf(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    char expected[128];
    data_image_plain(image, 0, 0, 10 * SECTOR);
    const struct data_extent extent = compressed(10 * SECTOR, 4 * SECTOR, TEXT, 0, TEXT);
    data_image_extent(image, &extent);
    data_image_inode(image, 10 * SECTOR + TEXT, 0);
    data_image_open(image, spoil_checksum_tree);
    const uint64_t starts[] = {0, 10 * SECTOR};
    for (size_t i = 0; i < COUNT(starts); i++) {
        const struct bw_data_file file = data_image_file(image, 10 * SECTOR + TEXT, false);
        data_image_read(image, &file, starts[i], 10 * SECTOR, &result);
        snprintf(expected, sizeof expected, ": their checksums are lost with tree block %llu",
                 (unsigned long long)iw_root_block(image->image, BW_CSUM_TREE)->logical);
        assert_non_null(strstr(result.first_error, expected));
        assert_int_equal(result.bad, 10 * SECTOR);
        data_result_free(&result);
    }
    data_image_free(image);
}

static void cut_checksum_root(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *item = (void *)(block + sizeof(struct bw_disk_header));
    while (bw_get64(item->key.objectid) != BW_CSUM_TREE)
        item++;
    item->size = bw_put32(8);
}

static void spoil_checksum_root(struct data_image *image)
{
    const struct bw_key key = {BW_CSUM_TREE, BW_ROOT_ITEM, 0};
    iw_rewrite_block(image->image, iw_block_of_key(image->image, 1, key)->logical,
                     cut_checksum_root, NULL, true);
}

/* A checksum tree whose root item makes no sense is none: it has no block that could be lost. */
static void test_no_checksum_tree(void **state)
{
    struct data_image *image = data_image_begin();
    struct data_result result;
    data_image_plain(image, 0, 0, 2 * SECTOR);
    data_image_inode(image, 2 * SECTOR, 0);
    data_image_open(image, spoil_checksum_root);
    const struct bw_data_file file = data_image_file(image, 2 * SECTOR, false);
    data_image_read(image, &file, 0, 2 * SECTOR, &result);
    data_expect_all(&result, 0, '!', 2 * SECTOR);
    assert_non_null(strstr(result.first_error, ": no checksum"));
    data_image_finish(image, &result);
}

/* Reading a text fails, and the error has the advice. */
static void test_text_without_checksums(void **state)
{
    struct data_image *image = data_image_begin();
    data_image_plain(image, 0, 0, SECTOR);
    data_image_inode(image, SECTOR, 0);
    data_image_open(image, spoil_checksum_root);
    const struct bw_place place = {bw_subvolume_by_id(image->fs, FS), image->inode, 0, 0};
    struct bw_buffer BW_AUTO_BUFFER text = {0};
    BW_AUTO_ERROR struct bw_error *error = bw_data_read_text(image->fs, &place, SECTOR, &text);
    assert_int_equal(error->code, BW_ERROR_NO_CHECKSUM);
    assert_string_equal(error->advice, "`ignore_checksums data` reads them without");
    data_image_free(image);
}
