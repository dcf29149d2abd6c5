/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files whose inodes are lost: what their extents tell, and what the feed of an extraction makes of
 * it. */
#include "support/data_image.h"
#include "support/image_writer_internal.h"

#include <sys/stat.h>

#include "export/entry_queue.h"
#include "recovery/recovery.h"

#define GROUP_SETUP limit_resources

static struct data_image *make(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    iw_remove_item(image->image, FS, (struct bw_key){image->inode, BW_INODE_ITEM, 0});
    return image;
}

static struct bw_error *salvage(const struct data_image *image, struct bw_inode *inode)
{
    const struct bw_place place = {bw_subvolume_by_id(image->fs, FS), image->inode, 0, 0};
    return bw_inode_salvage(image->fs, &place, inode);
}

static void expect_size(struct data_image *image, uint64_t size)
{
    struct bw_inode inode;
    data_image_open(image, NULL);
    if (size) {
        expect_success(salvage(image, &inode));
        assert_int_equal(inode.size, size);
        assert_int_equal(inode.mode, S_IFREG | 0600);
        assert_int_equal(inode.link_count, 1);
    } else {
        expect_error(salvage(image, &inode), BW_ERROR_NOT_FOUND, "is lost, and all of its extents");
    }
    data_image_free(image);
}

static void test_sizes(void **state)
{
    struct data_image *image = make();
    expect_size(image, 0);

    image = make();
    data_image_inline(image, BW_COMPRESS_NONE, 5, "bytes", 5);
    expect_size(image, 5);

    image = make();
    data_image_plain(image, 0, 0, SECTOR);
    data_image_plain(image, 8 * SECTOR, SECTOR, 3 * SECTOR);
    expect_size(image, 11 * SECTOR);

    /* Preallocated and invalid extents are ignored. */
    image = make();
    data_image_plain(image, 0, 0, SECTOR);
    data_image_extent(image, &(struct data_extent){.offset = 2 * SECTOR,
                                                   .type = BW_FILE_EXTENT_PREALLOC,
                                                   .disk = 4 * SECTOR,
                                                   .disk_length = SECTOR,
                                                   .ram = SECTOR,
                                                   .length = SECTOR});
    data_image_extent(image, &(struct data_extent){.offset = 5 * SECTOR,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .disk = 8 * SECTOR,
                                                   .disk_length = SECTOR,
                                                   .ram = SECTOR,
                                                   .length = SECTOR + 1});
    expect_size(image, SECTOR);

    image = make(); /* no file ends there */
    data_image_plain(image, UINT64_C(1) << 63, 0, SECTOR);
    expect_size(image, 0);
}

static void count_missed(void *context, const char *start, struct bw_error *error)
{
    assert_null(start);
    ++*(unsigned *)context;
    expect_error(error, BW_ERROR_CORRUPT,
                 "/file: its inode is lost: its size is the end of its last extent");
}

/* A walk of a single file; returns the number of messages. */
static unsigned feed_file(struct data_image *image, bool salvage, struct bw_stream_file *file)
{
    static const unsigned passes[] = {BW_WALK_FILES, 0};
    const struct bw_starting_points starts = {.count = 0};
    unsigned missed = 0;
    struct bw_entry_queue *feed;
    struct bw_export_entry *item;
    expect_success(bw_entry_queue_create(image->fs,
                                         &(struct bw_entry_queue_options){.starts = &starts,
                                                                          .passes = passes,
                                                                          .salvage = salvage,
                                                                          .missed = count_missed,
                                                                          .context = &missed},
                                         &feed));
    expect_success(bw_entry_queue_next(feed, &item));
    assert_string_equal(item->path.data, "/file");
    assert_int_equal(item->has_inode, salvage);
    *file = bw_export_entry_stream_file(item);
    bw_entry_queue_release(feed, item);
    expect_success(bw_entry_queue_next(feed, &item));
    assert_null(item);
    bw_entry_queue_destroy(feed);
    return missed;
}

static void test_feed(void **state)
{
    struct data_image *image = make();
    struct bw_stream_file file;
    struct data_result result;
    data_image_plain(image, SECTOR, 0, 3 * SECTOR);
    data_image_checksums(image, 0, 2); /* without checksums, it may never have had any */
    data_image_open(image, NULL);
    assert_int_equal(feed_file(image, false, &file), 0);
    assert_int_equal(file.length, 0);
    assert_int_equal(feed_file(image, true, &file), 1);
    data_image_read(image, &file.data, 0, UINT64_MAX, &result);
    assert_int_equal(result.bytes.length, 4 * SECTOR);
    assert_int_equal(result.holes, SECTOR);
    assert_memory_equal(result.bytes.data + SECTOR, image->data, 3 * SECTOR);
    data_result_free(&result);
    data_image_free(image);
}
