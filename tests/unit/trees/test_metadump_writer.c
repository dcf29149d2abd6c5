/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metadumps of hostile images. tests/command/metadump.sh compares those of good ones. */
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "support/image_writer.h"
#include "support/walk_helpers.h"

static struct bw_error *count_bytes(void *context, const char *bytes, size_t length)
{
    *(size_t *)context += length;
    return NULL;
}

/* An extent in the root tree that is longer than any space cache needs no memory, and no attempt to
 * read it. */
static void test_endless_space_cache(void **state)
{
    const struct bw_disk_file_extent extent = {.ram_bytes = bw_put64(UINT64_C(1) << 33),
                                               .type = BW_FILE_EXTENT_REGULAR,
                                               .disk_bytenr = bw_put64(1 << 20),
                                               .disk_num_bytes = bw_put64(UINT64_C(1) << 33),
                                               .num_bytes = bw_put64(UINT64_C(1) << 33)};
    const struct bw_metadump_options options = {.struct_size = sizeof options};
    struct fixture fixture = make_fixture();
    size_t bytes = 0;
    iw_item(fixture.image, BW_ROOT_TREE, (struct bw_key){256, BW_EXTENT_DATA, 0}, &extent,
            sizeof extent);
    open_fixture(&fixture);
    expect_success(bw_metadump_write(fixture.fs, &options, count_bytes, &bytes));
    assert_true(bytes > 0);
    assert_int_equal(bw_fs_status(fixture.fs).damages, 0);
    close_fixture(&fixture);
}
