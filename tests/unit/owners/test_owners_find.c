/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Owners of ranges: when the search ends. tests/command/owner.sh compares what it finds. */
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "support/data_image.h"

static struct bw_error *refuse(void *context, const struct bw_owner *owner)
{
    unsigned *calls = context;
    ++*calls;
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

/* After an error, no more owners come: not of leaves either that the scan had selected before. */
static void test_error_of_visitor_ends(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    unsigned calls = 0;
    data_image_inode(image, 8 * SECTOR, 0);
    for (uint64_t i = 0; i < 8; i++)
        data_image_plain(image, i * SECTOR, i * SECTOR, SECTOR);
    iw_shape(image->image, FS, 2, 0, 0);
    data_image_open(image, NULL);
    const struct iw_block *last = iw_block_of_key(
        image->image, FS, (struct bw_key){image->inode, BW_EXTENT_DATA, 7 * SECTOR});
    const struct bw_address_range ranges[] = {{image->logical, SECTOR}, {last->logical, 1}};
    const struct bw_owner_options options = {.struct_size = sizeof options,
                                             .ranges = ranges,
                                             .count = 2,
                                             .no_extent_tree = true,
                                             .visit = refuse,
                                             .context = &calls};
    expect_error(bw_owners_find(image->fs, &options), BW_ERROR_STOPPED, "enough");
    assert_int_equal(calls, 1);
    data_image_free(image);
}
