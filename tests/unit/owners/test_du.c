/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space of files: which references make data shared, snapshots of some leaves, directories that
 * lead to themselves, no extent tree; and ranges of which each byte counts once. */
#include "btrfs-walk/space.h"

#include "base/range_set.h"
#include "ondisk/disk_items.h"
#include "support/data_image.h"

/* The entries from bw_du(): the last one is the start. */
struct taken {
    struct bw_du_entry last;
    unsigned entries;
};

static struct bw_error *take(void *context, const struct bw_du_entry *entry)
{
    struct taken *taken = context;
    taken->last = *entry;
    taken->entries++;
    return NULL;
}

static struct taken count(struct bw_fs *fs, const char *start)
{
    struct taken taken = {.entries = 0};
    const struct bw_du_options options = {
        .struct_size = sizeof options, .start = start, .visit = take, .context = &taken};
    expect_success(bw_du(fs, &options));
    return taken;
}

static void expect_sizes(const struct taken *taken, uint64_t total, uint64_t exclusive,
                         uint64_t shared, uint64_t set_shared)
{
    assert_int_equal(taken->last.total, total * SECTOR);
    assert_int_equal(taken->last.exclusive, exclusive * SECTOR);
    assert_int_equal(taken->last.shared, shared * SECTOR);
    assert_int_equal(taken->last.set_shared, set_shared * SECTOR);
}

static struct data_image *begin(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_inode(image, 64 * SECTOR, 0);
    return image;
}

/* The item of an extent of `sectors`, with `inlined` references of `each` in it. */
static void add_item(struct data_image *image, uint64_t sector, uint64_t sectors,
                     uint64_t references, unsigned inlined, uint32_t each)
{
    struct {
        struct bw_disk_extent_item item;
        struct bw_disk_inline_data_ref inlined[4];
    } __attribute__((packed))
    bytes = {.item = {.references = bw_put64(references), .flags = bw_put64(1)}};
    const struct bw_key key = {image->logical + sector * SECTOR, 168, sectors * SECTOR};
    for (unsigned i = 0; i < inlined; i++)
        bytes.inlined[i] = (struct bw_disk_inline_data_ref){
            BW_EXTENT_DATA_REF,
            {bw_put64(FS), bw_put64(image->inode), bw_put64(i * UINT64_C(4096)), bw_put32(each)}};
    iw_item(image->image, BW_TREE_EXTENT, key, &bytes,
            sizeof bytes.item + inlined * sizeof *bytes.inlined);
}

static void test_records_of_references_count(void **state)
{
    static const uint8_t once[4] = {1};
    struct data_image *image = begin();
    for (unsigned sector = 0; sector < 4; sector++)
        data_image_plain(image, sector * SECTOR, sector * SECTOR, SECTOR);
    data_image_plain(image, 4 * SECTOR, 1 * SECTOR, SECTOR); /* a part that was cut off */
    data_image_plain(image, 8 * SECTOR, 2 * SECTOR, SECTOR); /* the same data elsewhere */
    add_item(image, 0, 1, 1, 1, 1);
    add_item(image, 1, 1, 2, 1, 2);
    add_item(image, 2, 1, 2, 2, 1);
    add_item(image, 3, 1, 2, 1, 1);
    iw_item(image->image, BW_TREE_EXTENT,
            (struct bw_key){image->logical + 3 * SECTOR, BW_SHARED_DATA_REF, 1 << 20}, once,
            sizeof once);
    data_image_open(image, NULL);
    struct taken taken = count(image->fs, "/file");
    assert_int_equal(taken.entries, 1);
    expect_sizes(&taken, 6, 3, 3, 3);
    taken = count(image->fs, NULL);
    assert_int_equal(taken.entries, 2);
    expect_sizes(&taken, 6, 3, 3, 2);
    data_image_free(image);
}

/* Of a file in several leaves only some are shared with the snapshot; but an extent that has parts
 * in both is shared as a whole. */
static void test_some_leaves_are_shared(void **state)
{
    struct data_image *image = begin();
    iw_shape(image->image, FS, 3, 0, 0);
    for (unsigned sector = 0; sector < 30; sector++)
        data_image_plain(image, sector * SECTOR, (sector == 29 ? 0 : sector) * SECTOR, SECTOR);
    for (unsigned sector = 0; sector < 29; sector++)
        add_item(image, sector, 1, sector ? 1 : 2, 1, sector ? 1 : 2);
    add_item(image, 30, 1, 1, 1, 1);
    iw_snapshot(image->image, 256, FS, 0, 0, NULL, 0);
    data_image_plain(image, 28 * SECTOR, 30 * SECTOR, SECTOR);
    data_image_open(image, NULL);
    const struct taken taken = count(image->fs, NULL);
    assert_int_equal(taken.last.total, 30 * SECTOR);
    /* The changed leaf: the new extent, perhaps a neighbour, and the part that stays shared. */
    assert_in_range(taken.last.exclusive, 1 * SECTOR, 2 * SECTOR);
    assert_int_equal(taken.last.exclusive + taken.last.shared, taken.last.total);
    assert_int_equal(taken.last.set_shared, taken.last.shared - SECTOR);
    data_image_free(image);
}

static void test_directory_in_itself(void **state)
{
    struct data_image *image = begin();
    const struct iw_entry entry = {.directory = iw_directory(image->image, FS, TOP, "below"),
                                   .name = "top",
                                   .type = BW_FILE_DIRECTORY,
                                   .location = {TOP, 1, 0}};
    data_image_plain(image, 0, 0, SECTOR);
    iw_entry(image->image, FS, &entry);
    data_image_open(image, NULL);
    const struct taken taken = count(image->fs, NULL);
    assert_int_equal(taken.entries, 4);
    expect_sizes(&taken, 1, 1, 0, 0);
    assert_int_equal(report_log_count(&image->log, "has a second entry"), 1);
    data_image_free(image);
}

/* The ROOT_ITEM of the extent tree becomes an item of another type. */
static void hide_extent_tree(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *items = (void *)(block + sizeof(struct bw_disk_header));
    assert_int_equal(bw_get64(items[0].key.objectid), BW_TREE_EXTENT);
    items[0].key.type = 131;
}

static void remove_extent_tree(struct data_image *image)
{
    const struct iw_block *root = iw_root_block(image->image, BW_TREE_ROOT);
    iw_rewrite_block(image->image, root->logical, hide_extent_tree, NULL, true);
}

static void test_no_extent_tree(void **state)
{
    struct data_image *image = begin();
    data_image_plain(image, 0, 0, SECTOR);
    data_image_open(image, remove_extent_tree);
    const struct taken taken = count(image->fs, NULL);
    assert_int_equal(taken.last.total, SECTOR);
    assert_false(taken.last.sharing_known);
    assert_int_equal(report_log_count(&image->log, "shared space is unknown"), 1);
    data_image_free(image);
}

static void test_ranges_count_once(void **state)
{
    struct bw_range_set ranges = {.ranges.count = 0};
    uint64_t expected = 0;
    for (unsigned i = 0; i < 10000; i++) {
        const uint64_t at = i * UINT64_C(7919) % 1000 * 10;
        assert_null(bw_range_set_insert(&ranges, at, at + 5));
        assert_null(bw_range_set_insert(&ranges, at + 3, at + 7));
        assert_true(ranges.ranges.capacity < 5000);
    }
    expected += 1000 * 7;
    assert_int_equal(bw_range_set_total(&ranges), expected);
    assert_null(bw_range_set_insert(&ranges, UINT64_MAX - 10, UINT64_MAX));
    assert_int_equal(bw_range_set_total(&ranges), expected + 10);
    bw_range_set_free(&ranges);
}

static void test_options(void **state)
{
    struct data_image *image = begin();
    struct bw_du_options options = {.struct_size = sizeof options};
    struct bw_compression_options wrong = {.struct_size = 1};
    struct bw_compression_count *sums;
    struct bw_compression_info info;
    data_image_plain(image, 0, 0, SECTOR);
    data_image_open(image, NULL);
    expect_error(bw_du(image->fs, &options), BW_ERROR_USAGE, "no callback was given");
    options.visit = take;
    options.start = "/none";
    expect_error(bw_du(image->fs, &options), BW_ERROR_NOT_FOUND, NULL);
    expect_error(bw_compression_open(image->fs, &wrong, &sums), BW_ERROR_USAGE, NULL);
    expect_success(bw_compression_open(image->fs, NULL, &sums));
    expect_error(bw_compression_add(sums, "none", NULL), BW_ERROR_NOT_FOUND, NULL);
    expect_success(bw_compression_add(sums, NULL, NULL));
    expect_success(bw_compression_sum(sums, &info));
    assert_int_equal(info.files, 1);
    assert_int_equal(info.total.disk, SECTOR);
    bw_compression_close(sums);
    data_image_free(image);
}
