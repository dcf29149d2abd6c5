/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of free ranges of hostile images. tests/command/free.sh reads those of good ones. */
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

struct counts {
    uint64_t bytes, bad;
};

static struct bw_error *count(void *context, const struct bw_data_part *part)
{
    struct counts *counts = context;
    *(part->kind == BW_DATA_BAD ? &counts->bad : &counts->bytes) += part->length;
    return NULL;
}

/* A chunk of an exbibyte: the part that the device has is read, and the rest is bad as a whole. */
static void test_chunk_larger_than_devices(void **state)
{
    const uint64_t huge = UINT64_C(1) << 60;
    const struct iw_options options = {.data_chunks = 2};
    struct iw_image *model = iw_create(&options);
    struct fixture fixture = {.image = iw_create(&options)};
    struct counts counts = {0};
    iw_write_memory(model);
    const struct iw_chunk *last = iw_chunk(model, iw_chunk_count(model) - 1);
    struct {
        struct bw_disk_chunk chunk;
        struct bw_disk_stripe stripe;
    } item = {{.length = bw_put64(huge),
               .owner = bw_put64(BW_EXTENT_TREE),
               .stripe_length = bw_put64(BW_STRIPE_LENGTH),
               .type = bw_put64(BW_GROUP_DATA),
               .sector_size = bw_put32(4096),
               .stripe_count = bw_put16(1),
               .sub_stripes = bw_put16(1)},
              {.devid = bw_put64(1), .offset = bw_put64(last->stripes[0].offset)}};
    iw_uuid(model, IW_UUID_DEVICE, 1, item.stripe.device_uuid);
    iw_item(fixture.image, BW_CHUNK_TREE,
            (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, last->logical + last->length}, &item,
            sizeof item);
    open_fixture(&fixture);
    const struct bw_free_range range = {
        .kind = BW_FREE_UNUSED, .logical = last->logical + last->length, .length = huge};
    expect_success(bw_free_read(fixture.fs, &range, count, &counts));
    assert_true(counts.bytes >= last->length && counts.bytes < UINT64_C(1) << 40);
    assert_true(counts.bad >= huge / 2);
    assert_true(counts.bytes + counts.bad == huge);
    iw_destroy(model);
    close_fixture(&fixture);
}
