/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps of space: the sums equal those of bw_fs_usage(), extents are in the right cells, and
 * overlapping chunks count once. */
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

static struct fixture make(unsigned chunks, uint64_t profile, unsigned devices)
{
    return (struct fixture){.image = iw_create(&(struct iw_options){.nodesize = 4096,
                                                                    .data_chunks = chunks,
                                                                    .data_profile = profile,
                                                                    .device_count = devices})};
}

static struct bw_space_map *open_map(const struct fixture *fixture, struct bw_space_map_options how)
{
    struct bw_space_map *map;
    how.struct_size = sizeof how;
    expect_success(bw_space_map_open(fixture->fs, &how, &map));
    return map;
}

/* The cells add up to the totals of the map. */
static void check_sums(const struct bw_space_map *map)
{
    const struct bw_space_map_info *info = bw_space_map_info(map);
    uint64_t bytes = 0, allocated = 0, used = 0;
    int64_t left = 0;
    for (size_t area = 0; area < info->area_count; area++)
        for (size_t i = 0; i < info->areas[area].cell_count; i++) {
            const struct bw_space_cell cell = bw_space_map_cell(map, area, i);
            uint64_t inside = 0;
            for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++)
                inside += cell.allocated[kind];
            assert_true(inside <= cell.bytes && cell.used <= inside);
            bytes += cell.bytes;
            allocated += inside;
            used += cell.used;
        }
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++) {
        allocated -= info->allocated[kind];
        left += (int64_t)info->used[kind];
    }
    assert_int_equal(bytes, info->bytes);
    assert_int_equal(allocated, 0);
    left -= (int64_t)used; /* cells round */
    assert_true(left < 128 && left > -128);
}

/* Zeros: one area for all devices, fine enough for a picture. */
static void test_zeros(void **state)
{
    struct fixture fixture = make(3, BW_GROUP_RAID1, 2);
    open_fixture(&fixture);
    struct bw_space_map *map = open_map(&fixture, (struct bw_space_map_options){.cells = 0});
    assert_int_equal(bw_space_map_info(map)->area_count, 1);
    assert_int_equal(bw_space_map_info(map)->areas[0].cell_count, 4096);
    check_sums(map);
    bw_space_map_close(map);
    close_fixture(&fixture);
}

static void check_profile(uint64_t profile, unsigned devices)
{
    struct fixture fixture = make(3, profile, devices);
    struct bw_usage *usage;
    open_fixture(&fixture);
    expect_success(bw_fs_usage(fixture.fs, &usage));
    for (unsigned i = 0; i < 3; i++) {
        struct bw_space_map *map =
            open_map(&fixture, (struct bw_space_map_options){.order = i == 2 ? BW_SPACE_LOGICAL
                                                                             : BW_SPACE_PHYSICAL,
                                                             .by_device = i == 1,
                                                             .cells = 64});
        const struct bw_space_map_info *info = bw_space_map_info(map);
        uint64_t data = 0;
        for (size_t group = 0; group < usage->group_count; group++)
            if (usage->groups[group].type & BW_GROUP_DATA)
                data += usage->groups[group].raw_size;
        assert_int_equal(info->bytes, usage->device_size);
        assert_int_equal(info->area_count, i == 1 ? devices : 1);
        assert_int_equal(info->allocated[BW_SPACE_DATA], data);
        check_sums(map);
        bw_space_map_close(map);
    }
    bw_usage_free(usage);
    close_fixture(&fixture);
}

static void test_sums(void **state)
{
    check_profile(0, 1);
    check_profile(BW_GROUP_RAID1, 2);
    check_profile(BW_GROUP_RAID10, 4);
    check_profile(BW_GROUP_RAID5, 3);
}

/* An extent of data of a tree. */
static void add_extent(struct iw_image *image, uint64_t bytenr, uint64_t length,
                       uint64_t generation, uint64_t tree)
{
    struct {
        struct bw_disk_extent_item item;
        uint8_t type;
        struct bw_disk_extent_data_ref reference;
    } __attribute__((packed)) extent = {.type = BW_EXTENT_DATA_REF};
    extent.item.references = bw_put64(1);
    extent.item.generation = bw_put64(generation);
    extent.item.flags = bw_put64(BW_EXTENT_DATA);
    extent.reference.root = bw_put64(tree);
    iw_item(image, BW_EXTENT_TREE, (struct bw_key){bytenr, BW_EXTENT_ITEM, length}, &extent,
            sizeof extent);
}

static void test_extents(void **state)
{
    struct fixture fixture = make(1, 0, 1), model = make(1, 0, 1);
    iw_write_memory(model.image);
    size_t chunk = 0;
    while (!(iw_chunk(model.image, chunk)->type & BW_GROUP_DATA))
        chunk++;
    const uint64_t data = iw_chunk(model.image, chunk)->logical;
    const uint64_t length = iw_chunk(model.image, chunk)->length;
    add_extent(fixture.image, data, length / 2, 3, 300);
    add_extent(fixture.image, data + length / 2, length / 4, 5, 301);
    add_extent(fixture.image, data + length / 2 + 4096, UINT64_MAX / 2, 6, 301); /* overlaps */
    open_fixture(&fixture);
    struct bw_space_map *map = open_map(
        &fixture, (struct bw_space_map_options){.detail = BW_SPACE_EXTENTS, .cells = 4096});
    const struct bw_space_map_info *info = bw_space_map_info(map);
    assert_int_equal(info->used[BW_SPACE_DATA], length);
    assert_int_equal(info->owner_count, 2);
    assert_true(info->owners[0].bytes >= info->owners[1].bytes);
    check_sums(map);
    bool old = false, new = false;
    for (size_t i = 0; i < 4096; i++) {
        const struct bw_space_cell cell = bw_space_map_cell(map, 0, i);
        old |= cell.owner == 300 && cell.generation == 3 && cell.used == cell.bytes;
        new |= cell.owner == 301 && cell.generation > 3;
    }
    assert_true(old && new);
    bw_space_map_close(map);
    iw_destroy(model.image);
    close_fixture(&fixture);
}

/* Item of a tree block, or data if `length` is set, with a reference by the address of a block, or
 * by a tree. */
static void add_by_address(struct iw_image *image, uint64_t bytenr, uint64_t length, uint8_t kind,
                           uint64_t source)
{
    struct {
        struct bw_disk_extent_item item;
        uint8_t type;
        uint64_t source;
        uint32_t count; /* of data */
    } __attribute__((packed)) extent = {.type = kind, .count = 1};
    extent.item.references = bw_put64(1);
    extent.item.generation = bw_put64(3);
    extent.item.flags = bw_put64(length ? BW_EXTENT_DATA : BW_EXTENT_TREE_BLOCK);
    memcpy(&extent.source, &(const uint64_t[]){htole64(source)}, sizeof source);
    const struct bw_key key = {bytenr, length ? BW_EXTENT_ITEM : BW_METADATA_ITEM, length};
    iw_item(image, BW_EXTENT_TREE, key, &extent, sizeof extent - (length ? 0 : 4));
}

/* References by addresses lead through blocks to trees; those in circles lead nowhere. */
static void test_owners_by_address(void **state)
{
    struct fixture fixture = make(1, 0, 1), model = make(1, 0, 1);
    iw_write_memory(model.image);
    size_t chunk = 0;
    while (!(iw_chunk(model.image, chunk)->type & BW_GROUP_DATA))
        chunk++;
    const uint64_t data = iw_chunk(model.image, chunk)->logical, step = 1 << 16;
    const uint64_t block = data + (UINT64_C(1) << 40); /* outside of chunks: without a size */
    add_by_address(fixture.image, data, step, BW_SHARED_DATA_REF, block);
    add_by_address(fixture.image, data + step, step, BW_SHARED_DATA_REF, block + 2 * step);
    add_by_address(fixture.image, data + 2 * step, 2 * step, BW_SHARED_DATA_REF, block + 4 * step);
    add_by_address(fixture.image, data + 4 * step, 4 * step, BW_SHARED_DATA_REF, block + 9 * step);
    add_by_address(fixture.image, block, 0, BW_SHARED_BLOCK_REF, block + step);
    add_by_address(fixture.image, block + step, 0, BW_TREE_BLOCK_REF, 300);
    add_by_address(fixture.image, block + 2 * step, 0, BW_SHARED_BLOCK_REF, block + 3 * step);
    add_by_address(fixture.image, block + 3 * step, 0, BW_SHARED_BLOCK_REF, block + 2 * step);
    add_by_address(fixture.image, block + 4 * step, 0, BW_SHARED_BLOCK_REF, block + 4 * step);
    open_fixture(&fixture);
    struct bw_space_map *map =
        open_map(&fixture, (struct bw_space_map_options){.detail = BW_SPACE_EXTENTS});
    const struct bw_space_map_info *info = bw_space_map_info(map);
    assert_true(info->owner_count > 3); /* also the trees of the file system */
    const struct bw_space_owner expected[] = {
        {0, 5 * step}, {BW_TREE_RELOC, 2 * step}, {300, step}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(info->owners[i].id, expected[i].id);
        assert_int_equal(info->owners[i].bytes, expected[i].bytes);
    }
    assert_int_equal(info->used[BW_SPACE_DATA], 8 * step);
    check_sums(map);
    bw_space_map_close(map);
    iw_destroy(model.image);
    close_fixture(&fixture);
}

static void test_refusals(void **state)
{
    struct fixture fixture = make(1, 0, 1);
    struct bw_space_map *map;
    const struct bw_space_map_options wrong[] = {
        {.struct_size = sizeof *wrong, .cells = BW_SPACE_MOST_CELLS + 1},
        {.struct_size = sizeof *wrong, .order = BW_SPACE_LOGICAL, .by_device = true},
    };
    open_fixture(&fixture);
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_error(bw_space_map_open(fixture.fs, &wrong[i], &map), BW_ERROR_USAGE, NULL);
    expect_error(
        bw_space_map_open(fixture.fs,
                          &(struct bw_space_map_options){.struct_size = sizeof *wrong, .devid = 77},
                          &map),
        BW_ERROR_NOT_FOUND, "no device 77");
    assert_null(map);
    bw_space_map_close(NULL);
    close_fixture(&fixture);
}
