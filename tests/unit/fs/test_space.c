/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Space: block groups in a large extent tree and lost ones, the map of devices with all profiles,
 * and chunks that contradict each other. */
#include "btrfs-walk/space.h"
#include "fs/fs.h"
#include "ondisk/superblock.h"
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

static struct fixture make(const struct iw_options *options)
{
    return (struct fixture){.image = iw_create(options)};
}

/* The addresses of chunks: data chunks come first, whatever the trees contain. */
static struct iw_image *laid_out(const struct iw_options *options)
{
    struct iw_image *image = iw_create(options);
    iw_write_memory(image);
    return image;
}

/* Block groups. */

enum { CHUNKS = 64, EXTENTS = 40 };

/* A leaf holds few extents, so that each block group has its own leaf. */
static void fill_extent_tree(struct iw_image *image, const struct iw_image *model)
{
    static const uint8_t item[24] = {1};
    iw_shape(image, BW_EXTENT_TREE, 8, 16, 0);
    for (size_t i = 0; i < CHUNKS; i++)
        for (unsigned j = 0; j < EXTENTS; j++)
            iw_item(image, BW_EXTENT_TREE,
                    (struct bw_key){iw_chunk(model, i)->logical + 4096 * (j + 1), 168, 4096}, item,
                    sizeof item);
}

static size_t find_all(const struct fixture *fixture)
{
    struct bw_block_groups *groups;
    struct bw_block_group_info group;
    size_t found = 0;
    expect_success(bw_block_groups_open(fixture->fs, &groups));
    for (size_t i = 0; i < iw_chunk_count(fixture->image); i++) {
        const struct iw_chunk *chunk = iw_chunk(fixture->image, i);
        struct bw_error *error = bw_block_groups_find(groups, chunk->logical, &group);
        found += !error;
        if (!error)
            assert_int_equal(group.length, chunk->length);
        else
            assert_int_equal(error->code, BW_ERROR_CORRUPT);
        bw_error_free(error);
    }
    expect_error(bw_block_groups_find(groups, 4096, &group), BW_ERROR_NOT_FOUND, NULL);
    bw_block_groups_close(groups);
    return found;
}

static void test_block_groups_are_searched(void **state)
{
    const struct iw_options options = {
        .nodesize = 4096, .data_chunks = CHUNKS, .device_extent_length = 1 << 20};
    struct fixture fixture = make(&options);
    struct iw_image *model = laid_out(&options);
    fill_extent_tree(fixture.image, model);
    open_fixture(&fixture);
    uint64_t before = bw_fs_bytes_read(fixture.fs);
    size_t count = iw_chunk_count(fixture.image);
    assert_int_equal(find_all(&fixture), count);
    /* The tree has about 330 leaves. Nodes are cached, so one leaf is read per block group. */
    assert_true((bw_fs_bytes_read(fixture.fs) - before) / 4096 <= count + count / 2);
    iw_destroy(model);
    close_fixture(&fixture);
}

static void test_usage_adds_up(void **state)
{
    struct fixture fixture = make(&(struct iw_options){
        .nodesize = 4096, .data_chunks = 3, .data_profile = BW_GROUP_RAID10, .device_count = 4});
    struct bw_usage *usage;
    open_fixture(&fixture);
    expect_success(bw_fs_usage(fixture.fs, &usage));
    uint64_t allocated = 0;
    for (size_t i = 0; i < usage->device_count; i++)
        allocated += usage->devices[i].allocated;
    assert_int_equal(usage->device_count, 4);
    assert_int_equal(allocated, usage->allocated);
    assert_int_equal(usage->unallocated, (int64_t)(usage->device_size - allocated));
    assert_int_equal(usage->groups[0].type, BW_GROUP_DATA | BW_GROUP_RAID10);
    assert_int_equal(usage->groups[0].chunks, 3);
    assert_int_equal(usage->groups[0].raw_size, 2 * usage->groups[0].size);
    assert_true(usage->data_ratio == 2 && usage->complete && !usage->several_profiles);
    bw_usage_free(usage);
    close_fixture(&fixture);
}

/* The map. */

/* Each copy of a piece, and the way back from it. */
static void check_piece(const struct fixture *fixture, const struct bw_device_map *map,
                        uint64_t logical, const struct bw_mapping *first)
{
    for (unsigned copy = 1; copy <= first->copies && copy <= 4; copy++) {
        struct bw_mapping there;
        struct bw_device_place back;
        expect_success(bw_fs_map(fixture->fs, logical, first->length, copy, &there));
        expect_success(bw_device_map_find(map, there.devid, there.offset, there.length, &back));
        assert_int_equal(back.use, BW_USE_CHUNK);
        assert_int_equal(back.length, there.length);
        if (there.rebuilt) {
            assert_int_equal(back.parity, copy == 2 ? 1 : 2);
            assert_int_equal(back.copy, 0);
            continue;
        }
        assert_int_equal(back.logical, logical);
        assert_int_equal(back.copy, copy);
        assert_int_equal(back.parity, 0);
    }
}

/* What `stat -f` printed on mounts of kernel 6.18: the devices were uneven, full, or neither. */
static void test_space_as_on_a_mount(void **state)
{
    enum { D = BW_GROUP_DATA, M = BW_GROUP_METADATA, S = BW_GROUP_SYSTEM, BLOCK = 4096 };
    static const struct {
        uint64_t reserve;
        struct {
            uint64_t type, size, used;
        } groups[3];
        struct {
            uint64_t size, allocated;
        } devices[5];
        uint64_t blocks, free, available;
    } mounts[] = {
        {5767168,
         {{D | BW_GROUP_RAID1, 1423966208, 1423900672},
          {M | BW_GROUP_RAID1, 268435456, 1622016},
          {S | BW_GROUP_RAID1, 8388608, 16384}},
         {{629145600, 628097024}, {1073741824, 1072693248}, {2147483648, 1700790272}},
         470016,
         120576,
         16},
        {5767168,
         {{D | BW_GROUP_RAID5, 3058696192, 3058696192},
          {M | BW_GROUP_RAID5, 201326592, 3489792},
          {S | BW_GROUP_RAID5, 12582912, 16384}},
         {{629145600, 628097024},
          {1073741824, 1072693248},
          {2147483648, 1571815424},
          {1572864000, 1571815424}},
         1324032,
         575016,
         0},
        {5767168,
         {{D | BW_GROUP_RAID6, 344260608, 80740352},
          {M | BW_GROUP_RAID1C3, 268435456, 212992},
          {S | BW_GROUP_RAID1C3, 8388608, 16384}},
         {{629145600, 114753536},
          {1073741824, 114753536},
          {2147483648, 391577600},
          {1073741824, 391577600},
          {814743552, 391577600}},
         1401088,
         1379800,
         459008},
        {5767168,
         {{D | BW_GROUP_RAID10, 3204972544, 3204907008},
          {M | BW_GROUP_RAID10, 134217728, 3473408},
          {S | BW_GROUP_RAID10, 16777216, 16384}},
         {{629145600, 613416960},
          {1073741824, 1072693248},
          {2147483648, 2146435072},
          {2147483648, 2146435072},
          {734003200, 732954624}},
         821760,
         37052,
         16},
        {1441792,
         {{D | M | BW_GROUP_DUP, 100663296, 52518912}, {S | BW_GROUP_DUP, 8388608, 4096}},
         {{314572800, 218103808}},
         38400,
         25225,
         23402},
        {5767168,
         {{D | BW_GROUP_DUP, 184549376, 104857600},
          {M | BW_GROUP_DUP, 53673984, 245760},
          {S | BW_GROUP_DUP, 8388608, 16384}},
         {{1073741824, 493223936}},
         131072,
         104000,
         90192},
        /* nothing is left for metadata */
        {5767168,
         {{D, 143654912, 143589376}, {M, 8388608, 327680}, {S, 4194304, 16384}},
         {{157286400, 156237824}},
         38400,
         1852,
         0},
    };
    struct fixture fixture = make(&(struct iw_options){.nodesize = 4096});
    open_fixture(&fixture);
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        struct bw_usage_group groups[3] = {{0}};
        struct bw_usage_device devices[5] = {{.info = {.devid = 1}}};
        struct bw_usage usage = {.groups = groups, .devices = devices};
        struct bw_space space;
        usage.global_reserve = mounts[i].reserve;
        fixture.fs->superblock.total_bytes = 0;
        for (; usage.group_count < 3 && mounts[i].groups[usage.group_count].type;
             usage.group_count++) {
            groups[usage.group_count].type = mounts[i].groups[usage.group_count].type;
            groups[usage.group_count].size = mounts[i].groups[usage.group_count].size;
            groups[usage.group_count].used = mounts[i].groups[usage.group_count].used;
        }
        for (; usage.device_count < 5 && mounts[i].devices[usage.device_count].size;
             usage.device_count++) {
            struct bw_device_info *info = &devices[usage.device_count].info;
            info->total_bytes = mounts[i].devices[usage.device_count].size;
            info->bytes_used = mounts[i].devices[usage.device_count].allocated;
            fixture.fs->superblock.total_bytes += info->total_bytes;
        }
        expect_success(bw_fs_space(fixture.fs, &usage, &space));
        assert_int_equal(space.size / BLOCK, mounts[i].blocks);
        assert_int_equal(space.free / BLOCK, mounts[i].free);
        assert_int_equal(space.available / BLOCK, mounts[i].available);
    }
    close_fixture(&fixture);
}

static void test_map_and_back(void **state)
{
    static const struct {
        uint64_t profile;
        unsigned devices;
    } cases[] = {{0, 1},
                 {BW_GROUP_DUP, 1},
                 {BW_GROUP_RAID0, 3},
                 {BW_GROUP_RAID1, 2},
                 {BW_GROUP_RAID1C3, 3},
                 {BW_GROUP_RAID1C4, 4},
                 {BW_GROUP_RAID10, 4},
                 {BW_GROUP_RAID5, 2},
                 {BW_GROUP_RAID5, 4},
                 {BW_GROUP_RAID6, 3},
                 {BW_GROUP_RAID6, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture = make(&(struct iw_options){.data_chunks = 2,
                                                           .data_profile = cases[i].profile,
                                                           .device_count = cases[i].devices,
                                                           .device_extent_length = 5 << 16});
        struct bw_device_map *map;
        open_fixture(&fixture);
        expect_success(bw_device_map_open(fixture.fs, &map));
        const struct iw_chunk *chunk = iw_chunk(fixture.image, 0);
        struct bw_mapping first;
        for (uint64_t at = chunk->logical; at < chunk->logical + chunk->length;
             at += first.length) {
            expect_success(bw_fs_map(fixture.fs, at, 1 << 20, 1, &first));
            check_piece(&fixture, map, at, &first);
        }
        bw_device_map_close(map);
        close_fixture(&fixture);
    }
}

/* Ranges cover each device once. */
static void test_ranges_cover_devices(void **state)
{
    struct fixture fixture = make(&(struct iw_options){.device_count = 3, .data_chunks = 2});
    struct bw_device_map *map;
    uint64_t devid = 0, end = 0;
    open_fixture(&fixture);
    expect_success(bw_device_map_open(fixture.fs, &map));
    for (size_t i = 0; i < bw_device_map_count(map); i++) {
        const struct bw_device_range *range = bw_device_map_range(map, i);
        if (range->devid != devid)
            end = 0;
        devid = range->devid;
        assert_int_equal(range->offset, end);
        assert_int_equal(range->use == BW_USE_RESERVED, end < 1 << 20);
        end += range->length;
    }
    assert_int_equal(devid, 3);
    struct bw_device_place place;
    expect_success(bw_device_map_find(map, 1, 65536 + 100, UINT64_MAX, &place));
    assert_int_equal(place.use, BW_USE_SUPERBLOCK);
    assert_int_equal(place.length, 4096 - 100);
    expect_success(bw_device_map_find(map, 3, end, 5, &place));
    assert_int_equal(place.use, BW_USE_OUTSIDE);
    assert_int_equal(place.length, 5);
    expect_success(bw_device_map_find(map, 3, UINT64_MAX, 1, &place));
    assert_int_equal(place.use, BW_USE_OUTSIDE);
    expect_error(bw_device_map_find(map, 4, 0, 1, &place), BW_ERROR_NOT_FOUND, "no device 4");
    bw_device_map_close(map);
    close_fixture(&fixture);
}

/* A device without a stripe, after those that have some. */
static void test_last_device_is_empty(void **state)
{
    struct fixture fixture = make(&(struct iw_options){.device_count = 3});
    struct bw_device_map *map;
    open_fixture(&fixture);
    expect_success(bw_device_map_open(fixture.fs, &map));
    const struct bw_device_range *last = bw_device_map_range(map, bw_device_map_count(map) - 1);
    assert_int_equal(last->devid, 3);
    assert_int_equal(last->use, BW_USE_UNALLOCATED);
    assert_int_equal(last->offset, 1 << 20);
    bw_device_map_close(map);
    close_fixture(&fixture);
}

/* Puts the only stripe of a data chunk at another offset. */
static void move_stripe(struct iw_image *image, const struct iw_chunk *chunk, uint64_t offset)
{
    uint8_t item[256];
    size_t size = iw_chunk_item(image, chunk, item);
    struct bw_disk_stripe *stripe = (void *)(item + sizeof(struct bw_disk_chunk));
    stripe->offset = bw_put64(offset);
    iw_item(image, BW_CHUNK_TREE, (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical},
            item, size);
}

/* A stripe within another, and one beyond the end of everything. */
static void test_stripes_that_overlap(void **state)
{
    const struct iw_options options = {.data_chunks = 4};
    struct iw_image *model = laid_out(&options);
    struct fixture fixture = make(&options);
    struct bw_device_map *map;
    struct bw_device_place place;
    struct bw_usage *usage;
    const struct iw_chunk *first = iw_chunk(model, 0), *second = iw_chunk(model, 1);
    move_stripe(fixture.image, second, first->stripes[0].offset + 65536);
    move_stripe(fixture.image, iw_chunk(model, 2), UINT64_MAX - 4096);
    open_fixture(&fixture);
    expect_success(bw_device_map_open(fixture.fs, &map));
    assert_int_equal(bw_fs_status(fixture.fs).damages, 2);
    expect_success(bw_device_map_find(map, 1, first->stripes[0].offset + 65535, 9999, &place));
    assert_int_equal(place.logical, first->logical + 65535);
    expect_success(bw_device_map_find(map, 1, first->stripes[0].offset + 65536, 9999, &place));
    assert_int_equal(place.logical, second->logical);
    expect_success(bw_fs_usage(fixture.fs, &usage));
    bw_usage_free(usage);
    bw_device_map_close(map);
    iw_destroy(model);
    close_fixture(&fixture);
}

/* The remap-tree feature. */

static void expect_place(const struct bw_device_map *map, uint64_t offset, uint64_t logical,
                         unsigned copy, uint64_t length)
{
    struct bw_device_place place;
    expect_success(bw_device_map_find(map, 1, offset, UINT64_MAX, &place));
    assert_int_equal(place.use, BW_USE_CHUNK);
    assert_int_equal(place.copy, copy);
    assert_int_equal(place.length, length);
    if (copy)
        assert_int_equal(place.logical, logical);
}

/* A part of the first chunk was moved to the second one: the new place belongs to the old address,
 * and the old place to no address. */
static void test_moved_range(void **state)
{
    enum { SKIP = 1 << 16, LENGTH = 1 << 17 };
    const struct iw_options options = {.data_chunks = 2, .incompat_flags = BW_INCOMPAT_REMAP_TREE};
    struct iw_image *model = laid_out(&options);
    struct fixture fixture = make(&options);
    const struct iw_chunk *from = iw_chunk(model, 0), *to = iw_chunk(model, 1);
    bw_le64 target = bw_put64(to->logical);
    struct bw_device_map *map;
    iw_item(fixture.image, BW_REMAP_TREE, (struct bw_key){from->logical + SKIP, BW_REMAP, LENGTH},
            &target, sizeof target);
    iw_write_memory(fixture.image);
    iw_use_remap_tree(fixture.image);
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    expect_success(bw_device_map_open(fixture.fs, &map));
    uint64_t old = from->stripes[0].offset, new = to->stripes[0].offset;
    expect_place(map, old, from->logical, 1, SKIP);
    expect_place(map, old + SKIP, 0, 0, LENGTH);
    expect_place(map, old + SKIP + LENGTH, from->logical + SKIP + LENGTH, 1,
                 from->length - SKIP - LENGTH);
    expect_place(map, new + 4096, from->logical + SKIP + 4096, 1, LENGTH - 4096);
    expect_place(map, new + LENGTH, to->logical + LENGTH, 1, to->length - LENGTH);
    bw_device_map_close(map);
    iw_destroy(model);
    close_fixture(&fixture);
}
