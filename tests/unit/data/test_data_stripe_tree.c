/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data whose places the raid stripe tree tells: every profile that has one, items of old and new
 * kernels, copies that are bad or missing, and trees that are damaged or lie.
 */
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"
#include "support/data_image.h"
#include "support/image_writer_internal.h"

#define GROUP_SETUP limit_resources

enum {
    SECTORS = 74,
    FILE_SIZE = SECTORS * SECTOR,
    FAR = 20 << 20, /* offset of the places on the devices, behind all chunks */
    OLD_HEAD = 8
};

static const struct shape {
    uint64_t profile;
    unsigned devices, copies;
} shapes[] = {
    {BW_GROUP_DUP, 1, 2},     {BW_GROUP_RAID0, 2, 1},   {BW_GROUP_RAID1, 2, 2},
    {BW_GROUP_RAID1C3, 3, 3}, {BW_GROUP_RAID1C4, 4, 4}, {BW_GROUP_RAID10, 4, 2},
};

/* One extent of the tree: sectors, and where they are put. */
struct extent {
    unsigned first, count, number;
};

/* Extents of 1 to 13 sectors, without a gap between them; false behind the last. */
static bool next_extent(struct extent *extent)
{
    extent->first += extent->count;
    extent->number += extent->count > 0;
    extent->count = 1 + extent->number * 5 % 13;
    if (extent->count > SECTORS - extent->first)
        extent->count = SECTORS - extent->first;
    return extent->count > 0;
}

static struct bw_disk_raid_stride place_of(const struct shape *shape, const struct extent *extent,
                                           unsigned copy)
{
    uint64_t row = (uint64_t)copy * SECTORS + (SECTORS - extent->first - extent->count);
    return (struct bw_disk_raid_stride){.devid =
                                            bw_put64(1 + (extent->number + copy) % shape->devices),
                                        .physical = bw_put64(FAR + row * SECTOR)};
}

static void add_extents(struct data_image *image, const struct shape *shape, size_t head)
{
    struct extent extent = {0};
    while (next_extent(&extent)) {
        uint8_t item[OLD_HEAD + BW_STRIPE_PLACES * sizeof(struct bw_disk_raid_stride)] = {1};
        for (unsigned copy = 0; copy < shape->copies; copy++) {
            const struct bw_disk_raid_stride place = place_of(shape, &extent, copy);
            memcpy(item + head + copy * sizeof place, &place, sizeof place);
        }
        iw_item(image->image, BW_RAID_STRIPE_TREE,
                (struct bw_key){image->logical + extent.first * SECTOR, BW_RAID_STRIPE,
                                extent.count * SECTOR},
                item, head + shape->copies * sizeof(struct bw_disk_raid_stride));
    }
}

static void set_feature(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->incompat_flags =
        bw_put64(bw_get64(superblock->incompat_flags) | BW_INCOMPAT_RAID_STRIPE_TREE);
}

/* Moves the data to where the stripe tree points, and erases them where the chunk points. */
static void place_data(struct data_image *image, const struct shape *shape)
{
    struct extent extent = {0};
    while (next_extent(&extent))
        for (unsigned copy = 0; copy < shape->copies; copy++) {
            const struct bw_disk_raid_stride place = place_of(shape, &extent, copy);
            iw_device_write(image->image, (unsigned)bw_get64(place.devid) - 1,
                            bw_get64(place.physical), image->data + extent.first * SECTOR,
                            extent.count * SECTOR);
        }
    for (unsigned sector = 0; sector < SECTORS; sector++)
        iw_corrupt(image->image, image->logical + sector * SECTOR, IW_ALL_COPIES, 0, SECTOR,
                   IW_FLIP);
    iw_superblock_edit(image->image, IW_ALL_DEVICES, 1, set_feature, NULL, true);
}

/* An image whose tree is written, but not opened. */
static struct data_image *make(const struct shape *shape, size_t head)
{
    struct data_image *image = data_image_create(shape->profile, BW_CHECKSUM_CRC32C);
    data_image_plain(image, 0, 0, SECTORS * SECTOR);
    data_image_checksums(image, 0, SECTORS);
    data_image_inode(image, FILE_SIZE, 0);
    iw_put_root_item(image->image, BW_RAID_STRIPE_TREE, 0, NULL);
    add_extents(image, shape, head);
    iw_shape(image->image, BW_RAID_STRIPE_TREE, 3, 2, 0);
    return image;
}

static const struct shape *shape_of_hook; /* for the hooks of data_image_open() */

static void place(struct data_image *image)
{
    place_data(image, shape_of_hook);
}

static struct data_image *open_with(struct data_image *image, const struct shape *shape,
                                    void (*before)(struct data_image *))
{
    shape_of_hook = shape;
    data_image_open(image, before);
    return image;
}

/* Reads all of the file, of which the sectors from `first` on are bad. */
static void expect_bad(struct data_image *image, unsigned first, unsigned count,
                       const char *message)
{
    const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
    struct data_result result;
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bytes.length, FILE_SIZE);
    assert_int_equal(result.bad, count * SECTOR);
    for (size_t i = 0; i < FILE_SIZE; i++)
        assert_int_equal((uint8_t)result.bytes.data[i],
                         i / SECTOR - first < count ? '!' : image->data[i]);
    if (!strstr(result.first_error, message))
        fail_msg("%s", result.first_error);
    data_result_free(&result);
}

static void test_healthy(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t head = 0; head <= OLD_HEAD; head += OLD_HEAD) {
            struct data_image *image = open_with(make(&shapes[i], head), &shapes[i], place);
            expect_bad(image, 0, 0, "");
            assert_int_equal(image->log.counts[BW_NOTE], 0);
            assert_int_equal(image->log.counts[BW_DAMAGE], 0);
            data_image_free(image);
        }
}

static void test_map(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct data_image *image = open_with(make(&shapes[i], 0), &shapes[i], place);
        struct extent extent = {0};
        while (next_extent(&extent))
            for (unsigned copy = 0; copy < shapes[i].copies; copy++) {
                const struct bw_disk_raid_stride place = place_of(&shapes[i], &extent, copy);
                uint64_t inside = extent.count > 1 ? SECTOR : 0;
                struct bw_map_reply reply;
                expect_success(bw_wind_map(NULL, image->fs->reader.top,
                                           image->logical + extent.first * SECTOR + inside, 1 << 20,
                                           copy + 1, &reply));
                assert_int_equal(reply.copies, shapes[i].copies);
                assert_int_equal(reply.location.devid, bw_get64(place.devid));
                assert_int_equal(reply.location.offset, bw_get64(place.physical) + inside);
                assert_in_range(reply.length, 1, extent.count * SECTOR - inside);
                assert_true(reply.location.present);
            }
        data_image_free(image);
    }
}

static unsigned first_copy(const struct data_image *image, const struct shape *shape)
{
    return data_image_first_copy(image, shape->devices > 1 ? shape->copies : 1);
}

/* The copy of everything that is read first is bad. */
static void place_and_spoil(struct data_image *image)
{
    struct extent extent = {0};
    const unsigned copy = first_copy(image, shape_of_hook);
    place(image);
    while (next_extent(&extent)) {
        const struct bw_disk_raid_stride place = place_of(shape_of_hook, &extent, copy - 1);
        iw_device_write(image->image, (unsigned)bw_get64(place.devid) - 1, bw_get64(place.physical),
                        "bad", 3);
    }
}

static void place_and_remove(struct data_image *image)
{
    place(image);
    iw_remove_device(image->image, 1);
}

static void test_copies(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].copies < 2)
            continue;
        struct data_image *image = open_with(make(&shapes[i], 0), &shapes[i], place_and_spoil);
        expect_bad(image, 0, 0, "");
        const unsigned first = first_copy(image, &shapes[i]);
        char message[64];
        snprintf(message, sizeof message,
                 "used mirror %u instead of a bad one (mirror %u on device ", first == 1 ? 2 : 1,
                 first);
        assert_true(report_log_count(&image->log, message) > 0);
        data_image_free(image);
    }
    struct data_image *image = open_with(make(&shapes[2], 0), &shapes[2], place_and_remove);
    expect_bad(image, 0, 0, "");
    data_image_free(image);
}

/* An extent with an incomplete item. */
static struct bw_key key_of(const struct data_image *image, unsigned number, struct extent *extent)
{
    *extent = (struct extent){0};
    while (next_extent(extent) && extent->number < number)
        ;
    return (struct bw_key){image->logical + extent->first * SECTOR, BW_RAID_STRIPE,
                           extent->count * SECTOR};
}

static void test_no_item(void **state)
{
    struct data_image *image = make(&shapes[2], 0);
    struct extent extent;
    iw_remove_item(image->image, BW_RAID_STRIPE_TREE, key_of(image, 4, &extent));
    open_with(image, &shapes[2], place);
    expect_bad(image, extent.first, extent.count,
               "the raid stripe tree has no entry for logical address ");
    data_image_free(image);
}

static void test_bad_items(void **state)
{
    static const struct {
        struct bw_disk_raid_stride place;
        size_t size;
        const char *message;
    } cases[] = {
        {{{{0}}, {{0}}}, 0, "invalid size 0"},
        {{{{0}}, {{0}}}, 15, "invalid size 15"},
        {{{{0}}, {{0}}}, 17, "invalid size 17"},
        {{{{0}}, {{0}}}, 5 * 16, "invalid size 80"},
        {{{{1}}, {{255, 255, 255, 255, 255, 255, 255, 255}}},
         16,
         "invalid place 18446744073709551615"},
        {{{{9}}, {{0}}}, 16, "device 9 is missing"},
        {{{{1}}, {{255, 255, 255, 255, 255, 0}}}, 16, " ends at "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct data_image *image = make(&shapes[2], 0);
        struct extent extent;
        struct bw_key key = key_of(image, 3, &extent);
        uint8_t item[100] = {0};
        memcpy(item, &cases[i].place, sizeof cases[i].place);
        iw_item(image->image, BW_RAID_STRIPE_TREE, key, item, cases[i].size);
        open_with(image, &shapes[2], place);
        expect_bad(image, extent.first, extent.count, cases[i].message);
        data_image_free(image);
    }
}

/* Rewriting data in place makes extents within the first one; some of them are longer. */
static const struct {
    unsigned first, count;
    uint64_t row; /* of the place */
} nested[] = {{0, SECTORS, 0}, {10, 30, 100}, {12, 1, 200}, {14, 2, 210},
              {20, 0, 300},    {60, 1, 220},  {73, 1, 230}};

/* A sector is in the extent that begins last among those that contain it. */
static unsigned extent_at(unsigned sector)
{
    unsigned at = COUNT(nested) - 1;
    while (sector - nested[at].first >= nested[at].count)
        at--;
    return at;
}

static void place_nested(struct data_image *image)
{
    place(image);
    for (unsigned sector = 0; sector < SECTORS; sector++) {
        unsigned at = extent_at(sector);
        iw_device_write(image->image, 0,
                        FAR + (nested[at].row + sector - nested[at].first) * SECTOR,
                        image->data + sector * SECTOR, SECTOR);
    }
}

static void test_nested(void **state)
{
    struct data_image *image = make(&shapes[1], 0);
    struct extent extent = {0};
    while (next_extent(&extent))
        iw_remove_item(image->image, BW_RAID_STRIPE_TREE, key_of(image, extent.number, &extent));
    for (size_t i = 0; i < COUNT(nested); i++) {
        const struct bw_disk_raid_stride item = {
            .devid = bw_put64(1), .physical = bw_put64(FAR + nested[i].row * SECTOR)};
        iw_item(image->image, BW_RAID_STRIPE_TREE,
                (struct bw_key){image->logical + nested[i].first * SECTOR, BW_RAID_STRIPE,
                                nested[i].count * SECTOR},
                &item, sizeof item);
    }
    open_with(image, &shapes[1], place_nested);
    expect_bad(image, 0, 0, "");
    data_image_free(image);
}

/* One extent that began long before. */
static void place_in_a_row(struct data_image *image)
{
    place(image);
    iw_device_write(image->image, 0, FAR, image->data, FILE_SIZE);
}

static void test_long_extent(void **state)
{
    enum { BEFORE = 16 << 20 };
    struct data_image *image = make(&shapes[1], 0);
    struct extent extent = {0};
    const struct bw_disk_raid_stride item = {.devid = bw_put64(1),
                                             .physical = bw_put64(FAR - BEFORE)};
    while (next_extent(&extent))
        iw_remove_item(image->image, BW_RAID_STRIPE_TREE, key_of(image, extent.number, &extent));
    iw_item(image->image, BW_RAID_STRIPE_TREE,
            (struct bw_key){image->logical - BEFORE, BW_RAID_STRIPE, BEFORE + FILE_SIZE}, &item,
            sizeof item);
    open_with(image, &shapes[1], place_in_a_row);
    expect_bad(image, 0, 0, "");
    data_image_free(image);
}

/* Sectors of the file whose items are in a leaf. */
static struct extent extent_of_leaf(const struct data_image *image, const struct iw_block *leaf)
{
    return (struct extent){
        .first = (unsigned)((leaf->first_key.objectid - image->logical) / SECTOR),
        .count = (unsigned)((leaf->last_key.objectid + leaf->last_key.offset -
                             leaf->first_key.objectid) /
                            SECTOR),
    };
}

static void lose_leaf(struct data_image *image)
{
    place(image);
    iw_corrupt(image->image, iw_block_find(image->image, BW_RAID_STRIPE_TREE, 0, 1)->logical,
               IW_ALL_COPIES, 100, 100, IW_FLIP);
}

static void test_lost_leaf(void **state)
{
    struct data_image *image = open_with(make(&shapes[2], 0), &shapes[2], lose_leaf);
    const struct extent lost =
        extent_of_leaf(image, iw_block_find(image->image, BW_RAID_STRIPE_TREE, 0, 1));
    assert_in_range(lost.count, 3, 40);
    expect_bad(image, lost.first, lost.count, " of the raid stripe tree");
    assert_int_equal(image->log.counts[BW_DAMAGE], 1);
    data_image_free(image);
}

/* A node above the leaves is lost: the extent tree still knows the leaves. */
static void lose_node(struct data_image *image)
{
    place(image);
    iw_corrupt(image->image, iw_block_find(image->image, BW_RAID_STRIPE_TREE, 1, 0)->logical,
               IW_ALL_COPIES, 100, 100, IW_FLIP);
}

static void test_lost_node(void **state)
{
    struct data_image *image = open_with(make(&shapes[2], 0), &shapes[2], lose_node);
    expect_bad(image, 0, 0, "");
    data_image_free(image);
}

/* The root of the stripe tree is at an address that only the stripe tree could map. */
static void point_into_data(uint8_t *block, uint32_t nodesize, void *closure)
{
    const struct data_image *image = closure;
    struct bw_node leaf = bw_node_view(block, nodesize);
    for (uint32_t slot = 0; slot < leaf.item_count; slot++) {
        struct bw_item item;
        if (!bw_leaf_item(&leaf, slot, &item) || item.key.objectid != BW_RAID_STRIPE_TREE ||
            item.key.type != BW_ROOT_ITEM)
            continue;
        const bw_le64 address = bw_put64(image->logical);
        memcpy(block + (item.data - block) + offsetof(struct bw_disk_root_item, bytenr), &address,
               sizeof address);
    }
}

static void point_to_itself(struct data_image *image)
{
    const struct iw_block *leaf = iw_block_of_key(
        image->image, BW_ROOT_TREE, (struct bw_key){BW_RAID_STRIPE_TREE, BW_ROOT_ITEM, 0});
    place(image);
    iw_rewrite_block(image->image, leaf->logical, point_into_data, image, true);
}

static void test_circle(void **state)
{
    struct data_image *image = open_with(make(&shapes[2], 0), &shapes[2], point_to_itself);
    expect_bad(image, 0, 0, ""); /* the extent tree still knows the leaves */
    assert_int_equal(image->log.counts[BW_DAMAGE], 1);
    data_image_free(image);
}

static void place_without_tree(struct data_image *image)
{
    iw_superblock_edit(image->image, IW_ALL_DEVICES, 1, set_feature, NULL, true);
}

/* The feature, but no tree. */
static void test_no_tree(void **state)
{
    struct data_image *image = data_image_create(BW_GROUP_RAID1, BW_CHECKSUM_CRC32C);
    data_image_plain(image, 0, 0, SECTORS * SECTOR);
    data_image_inode(image, FILE_SIZE, 0);
    data_image_open(image, place_without_tree);
    expect_bad(image, 0, SECTORS, "the raid stripe tree, with the positions of data, is lost");
    data_image_free(image);
}
