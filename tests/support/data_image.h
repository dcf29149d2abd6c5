/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images with one file, "/file", whose extents a test describes byte by byte: for the tests of
 * reading data. The data lie in one chunk, whose logical address is known before the image is
 * written.
 */
#ifndef BW_TESTS_DATA_IMAGE_H
#define BW_TESTS_DATA_IMAGE_H

#include "data/reader.h"
#include "fs/fs.h"
#include "support/walk_helpers.h"

struct data_image {
    struct iw_image *image;
    enum bw_checksum_type checksum;
    uint64_t logical; /**< where the data chunk begins */
    uint64_t inode;
    uint8_t *data; /**< bytes at `logical`, DATA_SIZE of them: any, until data_image_open() stores
                      them */
    struct bw_fs *fs;
    struct report_log log;
};

enum { DATA_SIZE = 1 << 20, SECTOR = 4096 };

/** Begins an image with a data chunk of this profile, and with random data. */
struct data_image *data_image_create(uint64_t profile, enum bw_checksum_type checksum);
void data_image_free(struct data_image *image);

/** An extent, of which `disk` is the offset from the beginning of the data chunk. */
struct data_extent {
    uint64_t offset; /**< in the file */
    uint8_t type, compression;
    uint64_t disk, disk_length;
    uint64_t ram, skip, length;
    bool hole; /**< disk_bytenr 0 */
};
void data_image_extent(struct data_image *image, const struct data_extent *extent);
/** One that is not compressed. */
void data_image_plain(struct data_image *image, uint64_t offset, uint64_t disk, uint64_t length);
void data_image_inline(struct data_image *image, uint8_t compression, uint64_t ram,
                       const void *bytes, size_t length);
/** Size and flags of the inode. */
void data_image_inode(struct data_image *image, uint64_t size, uint64_t flags);
/** Checksums of sectors [first, first + count) of the data, in one item. */
void data_image_checksums(struct data_image *image, uint32_t first, uint32_t count);

/** Writes the image and its data, and opens it. `before`, if not NULL, damages the devices first.
 */
void data_image_open(struct data_image *image, void (*before)(struct data_image *image));

/** The number of the copy that is read first: data come from each device in turn, 2 MiB at a time,
 * and the file lies within one such part. `direct` is the number of copies on different devices. */
unsigned data_image_first_copy(const struct data_image *image, unsigned direct);

/** The file, as a stream takes it. */
struct bw_data_file data_image_file(const struct data_image *image, uint64_t size, bool unchecked);

/** The result of reading: bytes, with '!' for bad ones, and the first error. */
struct data_result {
    struct bw_buffer bytes;
    uint64_t holes, bad; /**< bytes */
    size_t bad_parts;
    char first_error[1024];
    unsigned finished;
};
/** Reads a range with a stream; the same with one thread and with four, and with bw_data_next(). */
void data_image_read(struct data_image *image, const struct bw_data_file *file, uint64_t offset,
                     uint64_t length, struct data_result *result);
void data_result_free(struct data_result *result);

/* An image with checksums of its first blocks. */
struct data_image *data_image_begin(void);
/* Reads a file of that size, after giving it an inode. */
void data_image_read_all(struct data_image *image, uint64_t size, struct data_result *result);
/* Frees both. */
void data_image_finish(struct data_image *image, struct data_result *result);
/* Compares the result at an offset with these bytes, or with one repeated byte. */
void data_expect_bytes(const struct data_result *result, uint64_t offset, const void *bytes,
                       size_t length);
void data_expect_all(const struct data_result *result, uint64_t offset, char byte, size_t length);

#endif
