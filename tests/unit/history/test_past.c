/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/past: the index of found blocks, telling them from other bytes, and its file. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "history/history.h"
#include "history/scan.h"
#include "rescue/device_scan.h"
#include "rescue/rescue.h"
#include "support/walk_helpers.h"

static struct bw_found_block block_at(uint64_t bytenr, uint64_t generation)
{
    return (struct bw_found_block){.bytenr = bytenr, .generation = generation};
}

/* Batches as threads end their tasks: nearly in order, and one that is far away. */
static void test_index(void **state)
{
    static const uint64_t starts[] = {8, 0, 12, 4, 1u << 20, 16};
    struct bw_found_index index;
    bw_found_init(&index);
    bw_found_add(&index, NULL, 0);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct bw_found_block blocks[4];
        for (uint64_t k = 0; k < 4; k++)
            blocks[k] = block_at((starts[i] + k) << 14, 7);
        bw_found_add(&index, blocks, 4);
    }
    assert_false(index.unsorted);
    const struct bw_found_block others[] = {block_at(3 << 14, 9), block_at(3 << 14, 7),
                                            block_at(2 << 14, 1)};
    bw_found_add(&index, others, 3);
    assert_true(index.unsorted);
    bw_found_sort(&index);
    assert_int_equal(index.blocks.count, 26);
    for (size_t i = 1; i < index.blocks.count; i++)
        assert_true(index.blocks.items[i - 1].bytenr <= index.blocks.items[i].bytenr);
    assert_ptr_equal(bw_found_find(&index, 2 << 14, 1), &index.blocks.items[2]);
    assert_ptr_equal(bw_found_find(&index, 3 << 14, 9), &index.blocks.items[5]);
    assert_null(bw_found_find(&index, 3 << 14, 8));
    assert_null(bw_found_find(&index, UINT64_MAX, 8));
    assert_non_null(bw_found_find(&index, ((1u << 20) + 3) << 14, 7));
    bw_found_free(&index);
}

enum { NODESIZE = 4096 };

static void seal(uint8_t *bytes)
{
    bw_checksum_compute(BW_CHECKSUM_CRC32C, bytes + 32, NODESIZE - 32, bytes);
}

static struct bw_block_ids ids[1] = {{.fsid = "the file system"}};
static const struct bw_found_identity identity = {
    .ids = ids, .id_count = 1, .checksum_type = BW_CHECKSUM_CRC32C, .nodesize = NODESIZE};

static enum bw_found_kind kind_of(const uint8_t *bytes, uint64_t bytenr)
{
    struct bw_found_index index;
    struct bw_found_block block;
    bw_found_init(&index);
    const enum bw_found_kind kind = bw_found_recognise(&identity, &index, bytes, bytenr, &block);
    if (kind == BW_FOUND_BLOCK) {
        assert_int_equal(bw_found_owner(&index, &block), 5);
        assert_int_equal(block.generation, 3);
    }
    bw_found_free(&index);
    return kind;
}

static void test_recognise(void **state)
{
    uint8_t bytes[NODESIZE] = {0};
    struct bw_disk_header *header = (void *)bytes;
    assert_int_equal(kind_of(bytes, 0), BW_FOUND_ZEROS);
    bytes[NODESIZE - 1] = 1;
    assert_int_equal(kind_of(bytes, 0), BW_FOUND_NOTHING);
    memcpy(header->fsid, "the file system", BW_UUID_SIZE);
    header->bytenr = bw_put64(1 << 20);
    header->generation = bw_put64(3);
    header->owner = bw_put64(5);
    assert_int_equal(kind_of(bytes, 1 << 20), BW_FOUND_DAMAGED);
    seal(bytes);
    assert_int_equal(kind_of(bytes, 1 << 20), BW_FOUND_BLOCK);
    assert_int_equal(kind_of(bytes, BW_FOUND_ANYWHERE), BW_FOUND_BLOCK);
    assert_int_equal(kind_of(bytes, 2 << 20), BW_FOUND_DAMAGED);
    header->item_count = bw_put32(NODESIZE);
    seal(bytes);
    assert_int_equal(kind_of(bytes, 1 << 20), BW_FOUND_DAMAGED);
    header->item_count = bw_put32(0);
    header->owner = bw_put64(UINT64_MAX);
    seal(bytes);
    assert_int_equal(kind_of(bytes, 1 << 20), BW_FOUND_DAMAGED);
}

static struct bw_error *gather(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* Whether a file that is cut or changed is refused. */
static bool is_read(struct bw_fs *fs, const char *bytes, size_t length)
{
    struct bw_history past = {.fs = fs};
    bw_found_init(&past.index);
    const bool read = bw_history_read_index(&past, bytes, length);
    assert_int_equal(past.index.blocks.count, read ? 1500 : 0);
    bw_found_free(&past.index);
    return read;
}

static void test_file(void **state)
{
    struct bw_fs fs = {.superblock = {.nodesize = NODESIZE, .generation = 9}};
    struct bw_history past = {.fs = &fs};
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_found_init(&past.index);
    past.index.owners.items = calloc(1, sizeof *past.index.owners.items);
    past.index.owners.count = 1;
    for (uint64_t i = 0; i < 1500; i++) {
        const struct bw_found_block block = block_at(i << 12, 7);
        bw_found_add(&past.index, &block, 1);
    }
    assert_null(bw_history_write_index(&past, gather, &text));
    bw_found_free(&past.index);
    assert_true(bw_history_is_index(text.data, text.length));
    assert_true(is_read(&fs, text.data, text.length));
    for (size_t cut = 0; cut < text.length; cut += 977)
        assert_false(is_read(&fs, text.data, cut));
    for (size_t at = 0; at < text.length; at += 1 + text.length / 300) {
        text.data[at] ^= 1;
        if (at < 72 || at >= 96) /* between them are numbers that are only shown */
            assert_false(is_read(&fs, text.data, text.length));
        text.data[at] ^= 1;
    }
    fs.superblock.generation = 10;
    assert_false(is_read(&fs, text.data, text.length));
}

static size_t matches_in(const struct bw_fs *fs, struct bw_device_range *ranges, size_t count)
{
    struct bw_device_scan scan;
    assert_null(bw_device_scan_begin(&scan, fs));
    assert_null(bw_device_scan_run(&scan, ranges, count));
    const size_t matches = scan.matches.count;
    free(scan.identity.ids);
    bw_device_scan_free(&scan);
    return matches;
}

/* Chunks of a damaged tree may all lie in one place. */
static void test_overlapping_ranges(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_device_range whole = {0, 0, UINT64_MAX};
    struct bw_device_range ranges[] = {{0, 5 << 20, UINT64_MAX}, {0, 0, UINT64_MAX},
                                       {0, 4097, 3 << 20},       {0, 0, 2 << 20},
                                       {0, 1 << 20, 8 << 20},    {7, 0, UINT64_MAX}};
    open_fixture(&fixture);
    const size_t count = matches_in(fixture.fs, &whole, 1);
    assert_true(count > 0);
    assert_int_equal(matches_in(fixture.fs, ranges, COUNT(ranges)), count);
    struct bw_device_range parts[] = {
        {0, 3 << 20, 1 << 30}, {0, 0, 2 << 20}, {0, 1 << 20, 2 << 20}};
    assert_int_equal(matches_in(fixture.fs, parts, COUNT(parts)), count);
    close_fixture(&fixture);
}

/* A sector that cannot be read takes the block that lies there, and no other one. */
static void test_bad_sector(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_device_range whole = {0, 0, UINT64_MAX};
    struct graph_changes changes = {0};
    struct bw_fs *fs;
    unsigned device;
    uint64_t offset;
    open_fixture(&fixture);
    const char *path = iw_path(fixture.image, 0);
    const uint64_t lost = iw_root_block(fixture.image, BW_CSUM_TREE)->logical;
    assert_true(iw_locate(fixture.image, lost, 1, &device, &offset));
    insert_layer(&changes, "debug/error-gen@device-1,kind=raw,start=%llu,end=%llu",
                 (unsigned long long)offset, (unsigned long long)offset + NODESIZE);
    expect_success(open_changed(&path, 1, &changes, NULL, &fs));
    const size_t left = matches_in(fs, &whole, 1);
    bw_fs_close(fs);
    assert_int_equal(left + 1, matches_in(fixture.fs, &whole, 1));
    close_fixture(&fixture);
}

/* A leaf with items of a byte, which is `value`; the offsets of their keys end with 0. */
static void add_leaf(struct bw_newest *newest, uint64_t rank, const uint64_t *offsets,
                     uint8_t value)
{
    uint8_t bytes[NODESIZE] = {0};
    struct bw_disk_header *header = (void *)bytes;
    struct bw_disk_item *items = (void *)(header + 1);
    uint32_t count = 0;
    for (; offsets[count]; count++) {
        const uint32_t end = NODESIZE - (uint32_t)sizeof *header - count - 1;
        items[count].key.objectid = bw_put64(1);
        items[count].key.type = BW_ROOT_ITEM;
        items[count].key.offset = bw_put64(offsets[count]);
        items[count].offset = bw_put32(end);
        items[count].size = bw_put32(1);
        bytes[sizeof *header + end] = value;
    }
    header->item_count = bw_put32(count);
    const struct bw_node leaf = bw_node_view(bytes, NODESIZE);
    assert_null(bw_newest_add(newest, &leaf, rank, 0));
}

/* An item that a newer leaf lacks between its first and last key was deleted before the leaf was
 * written. */
static void test_newest(void **state)
{
    static const uint64_t oldest[] = {1, 3, 5, 9, 0}, newer[] = {2, 5, 0}, present[] = {7, 8, 0};
    static const uint64_t kept[][2] = {{1, 'a'}, {2, 'b'}, {5, 'b'}, {7, 'c'}, {8, 'c'}, {9, 'a'}};
    const struct bw_key between = {1, BW_ROOT_ITEM, 7}, before = {1, BW_ROOT_ITEM, 6};
    struct bw_newest newest = {0};
    add_leaf(&newest, 4, oldest, 'a');
    add_leaf(&newest, BW_PRESENT_RANK, present, 'c');
    add_leaf(&newest, 6, newer, 'b');
    assert_null(bw_newest_settle(&newest));
    assert_int_equal(newest.items.count, COUNT(kept));
    for (size_t i = 0; i < newest.items.count; i++) {
        const struct bw_item item = bw_newest_view(&newest, &newest.items.items[i]);
        assert_int_equal(item.key.offset, kept[i][0]);
        assert_int_equal(*item.data, kept[i][1]);
    }
    assert_true(bw_newest_is_present(&newest, &between));
    assert_false(bw_newest_is_present(&newest, &before));
    bw_newest_free(&newest);
}

/* The addresses in tree blocks show which device extent is which stripe. */
static void test_stripe_order(void **state)
{
    static const uint64_t PIECE = 65536, BASE = 1 << 20;
    enum { BLOCKS = 16 };
    struct bw_block_match matches[BLOCKS];
    struct bw_image images[2] = {{.superblock.device.devid = 1}, {.superblock.device.devid = 2}};
    const struct bw_found_extent extents[] = {{BASE, 1, 4 * PIECE, 8 * PIECE},
                                              {BASE, 2, 6 * PIECE, 8 * PIECE}};
    struct bw_device_scan scan = {
        .images = images, .image_count = 2, .matches.items = matches, .matches.count = BLOCKS};
    const struct bw_chunk_set set = {0};
    int order[BW_MOST_STRIPES];
    size_t work = 1000;
    const struct bw_derived_chunk chunk = {
        &scan, BASE, BLOCKS * PIECE, BW_GROUP_METADATA, bw_raid_profile_of(BW_GROUP_RAID0), extents,
        2,     2,    &work};
    /* The first piece of each row is on device 2. */
    for (uint64_t i = 0; i < BLOCKS; i++)
        matches[i] = (struct bw_block_match){.bytenr = BASE + i * PIECE,
                                             .offset = (i % 2 ? 4 : 6) * PIECE + i / 2 * PIECE,
                                             .image = i % 2 ? 0 : 1};
    memset(order, -1, sizeof order);
    assert_true(bw_stripe_order_prove(&chunk, &set, order));
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    /* Votes for both: nothing is proven. */
    for (uint64_t i = 0; i < BLOCKS / 2; i++)
        matches[i].image = !matches[i].image,
        matches[i].offset = (matches[i].image ? 6 : 4) * PIECE + i / 2 * PIECE;
    memset(order, -1, sizeof order);
    assert_false(bw_stripe_order_prove(&chunk, &set, order));
}

/* Chunks may claim more than there is: what the devices have is scanned. */
static void test_claims(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_scan_ranges ranges = {0};
    struct bw_chunk_list chunks;
    open_fixture(&fixture);
    expect_success(bw_fs_chunks(fixture.fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++)
        expect_success(bw_scan_add_chunk(fixture.fs, &chunks.items[i], &ranges));
    const uint64_t once = ranges.bytes, all = bw_xlator_size(fixture.fs->images[0].storage);
    assert_true(once > 0 && once < all);
    assert_int_equal(ranges.left_out, 0);
    for (size_t i = 0; i < chunks.count; i++)
        for (size_t k = 0; k < 2 * all / once; k++)
            expect_success(bw_scan_add_chunk(fixture.fs, &chunks.items[i], &ranges));
    assert_true(ranges.bytes >= all && ranges.bytes < all + BW_SCAN_PIECE);
    assert_true(ranges.left_out > 0);
    bw_scan_range_list_free(&ranges.ranges);
    bw_chunk_list_free(&chunks);
    close_fixture(&fixture);
}

/* All proofs share one budget of work. */
static void test_work(void **state)
{
    struct bw_block_match matches[4] = {{.level = 1}};
    static const struct bw_image image;
    const struct bw_device_scan scan = {
        .images = &image, .matches.items = matches, .matches.count = COUNT(matches)};
    const struct bw_chunk_set set = {0};
    int order[BW_MOST_STRIPES];
    size_t work = 6;
    const struct bw_derived_chunk chunk = {.scan = &scan, .type = BW_GROUP_METADATA, .work = &work};
    assert_true(bw_stripe_order_prove(&chunk, &set, order));
    assert_int_equal(work, 2);
    assert_false(bw_stripe_order_prove(&chunk, &set, order));
    assert_int_equal(work, 0);
}

/* Writes an index of three blocks of three trees, found in the order of `first`, `first + step`. */
static void write_found(unsigned first, unsigned step, struct bw_buffer *text)
{
    struct bw_fs fs = {.superblock = {.nodesize = NODESIZE, .generation = 9}};
    struct bw_history past = {.fs = &fs};
    bw_found_init(&past.index);
    for (unsigned i = 0, number = first; i < 3; i++, number = (number + step) % 3) {
        uint8_t bytes[NODESIZE] = {0};
        struct bw_disk_header *header = (void *)bytes;
        struct bw_found_block block;
        memcpy(header->fsid, "the file system", BW_UUID_SIZE);
        header->bytenr = bw_put64((number + 1) << 20);
        header->generation = bw_put64(3);
        header->owner = bw_put64(number + 5);
        seal(bytes);
        assert_int_equal(
            bw_found_recognise(&identity, &past.index, bytes, BW_FOUND_ANYWHERE, &block),
            BW_FOUND_BLOCK);
        bw_found_add(&past.index, &block, 1);
    }
    bw_found_sort(&past.index);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(bw_found_owner(&past.index, &past.index.blocks.items[i]), i + 5);
    assert_null(bw_history_write_index(&past, gather, text));
    bw_found_free(&past.index);
}

/* The file does not depend on the order in which threads find blocks. */
static void test_same_file(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer ascending = {0};
    write_found(0, 1, &ascending);
    for (unsigned i = 1; i < 6; i++) {
        BW_AUTO_BUFFER struct bw_buffer other = {0};
        write_found(i % 3, 1 + i / 3, &other);
        assert_int_equal(other.length, ascending.length);
        assert_memory_equal(other.data, ascending.data, ascending.length);
    }
}
