/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the image writer itself, without the library: reads back the devices by hand, computes
 * parity a second way, and lists the expected paths explicitly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/image_writer.h"

enum { TOP = BW_SUBVOLUME_ROOT_INODE };

static const uint64_t all_profiles[] = {0,
                                        BW_GROUP_DUP,
                                        BW_GROUP_RAID0,
                                        BW_GROUP_RAID1,
                                        BW_GROUP_RAID1C3,
                                        BW_GROUP_RAID1C4,
                                        BW_GROUP_RAID10,
                                        BW_GROUP_RAID5,
                                        BW_GROUP_RAID6};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A file system of `files` files in two directories, written to memory. */
static struct iw_image *make_image(const struct iw_options *options, unsigned files)
{
    struct iw_image *image = iw_create(options);
    uint64_t directory = iw_directory(image, BW_TOP_SUBVOLUME, TOP, "directory");
    for (unsigned i = 0; i < files; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %u", i);
        iw_file(image, BW_TOP_SUBVOLUME, i % 2 ? directory : TOP, name);
    }
    iw_write_memory(image);
    return image;
}

/* Blocks in every row of the chunks, over several rows. */
static struct iw_options spread(uint64_t profile, unsigned devices)
{
    return (struct iw_options){.profile = profile,
                               .device_count = devices,
                               .nodesize = 8192,
                               .items_per_leaf = 4,
                               .pointers_per_node = 5,
                               .block_step = 5,
                               .chunk_gap = 1 << 20,
                               .device_extent_length = 1 << 20};
}

/* Superblocks. */

static void check_superblock(const struct iw_image *image, unsigned device, unsigned copy,
                             enum bw_checksum_type type)
{
    struct bw_disk_superblock super;
    uint64_t offset = iw_superblock_offset(copy);
    iw_device_read(image, device, offset, &super, sizeof super);
    assert_int_equal(bw_get64(super.magic), BW_SUPERBLOCK_MAGIC);
    assert_int_equal(bw_get64(super.bytenr), offset);
    assert_int_equal(bw_get64(super.device.devid), iw_devid(image, device));
    assert_int_equal(bw_get16(super.csum_type), type);
    assert_true(bw_checksum_matches_block(type, (const uint8_t *)&super, sizeof super));
    assert_int_equal(bw_get64(super.root), iw_root_block(image, BW_ROOT_TREE)->logical);
    assert_int_equal(bw_get64(super.chunk_root), iw_root_block(image, BW_CHUNK_TREE)->logical);
    assert_int_equal(bw_get64(super.device_count), iw_device_count(image));
}

static void test_superblocks(void **state)
{
    static const uint64_t devids[] = {7, 3, 900};
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        struct iw_options options = {.checksum_type = (enum bw_checksum_type)type,
                                     .device_count = 3,
                                     .devids = devids,
                                     .device_size = 80 << 20};
        struct iw_image *image = make_image(&options, 3);
        for (unsigned device = 0; device < 3; device++)
            for (unsigned copy = 1; copy <= 2; copy++)
                check_superblock(image, device, copy, (enum bw_checksum_type)type);
        assert_int_equal(iw_devid(image, 2), 900);
        iw_destroy(image);
    }
}

static void set_generation(struct bw_disk_superblock *super, void *closure)
{
    super->generation = bw_put64(*(const uint64_t *)closure);
}

static void test_superblock_edit(void **state)
{
    struct iw_options options = {.device_size = 80 << 20};
    struct iw_image *image = make_image(&options, 3);
    struct bw_disk_superblock super;
    uint64_t generation = 77;
    iw_superblock_edit(image, 0, 2, set_generation, &generation, true);
    iw_device_read(image, 0, iw_superblock_offset(1), &super, sizeof super);
    assert_int_equal(bw_get64(super.generation), 10);
    iw_device_read(image, 0, iw_superblock_offset(2), &super, sizeof super);
    assert_int_equal(bw_get64(super.generation), 77);
    assert_true(
        bw_checksum_matches_block(BW_CHECKSUM_CRC32C, (const uint8_t *)&super, sizeof super));
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, set_generation, &generation, false);
    iw_device_read(image, 0, iw_superblock_offset(1), &super, sizeof super);
    assert_false(
        bw_checksum_matches_block(BW_CHECKSUM_CRC32C, (const uint8_t *)&super, sizeof super));
    iw_destroy(image);
}

/* Blocks. */

static void check_copy(const struct iw_image *image, const struct iw_block *block, unsigned copy,
                       const struct iw_options *options)
{
    unsigned device;
    uint64_t offset;
    uint8_t *bytes = malloc(options->nodesize), *wanted = malloc(options->nodesize);
    assert_true(iw_locate(image, block->logical, copy, &device, &offset));
    iw_device_read(image, device, offset, bytes, options->nodesize);
    const struct bw_disk_header *header = (const void *)bytes;
    assert_true(bw_checksum_matches_block(options->checksum_type, bytes, options->nodesize));
    assert_int_equal(bw_get64(header->bytenr), block->logical);
    assert_int_equal(bw_get64(header->owner), block->tree);
    assert_int_equal(header->level, block->level);
    assert_int_equal(bw_get32(header->item_count), block->item_count);
    iw_block_bytes(image, block->logical, wanted);
    assert_memory_equal(bytes, wanted, options->nodesize);
    free(wanted);
    free(bytes);
}

static void check_all_blocks(const struct iw_image *image, const struct iw_options *options)
{
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        unsigned copies = iw_copies(image, block->logical), device;
        uint64_t offset;
        for (unsigned copy = 1; copy <= copies; copy++)
            check_copy(image, block, copy, options);
        assert_false(iw_locate(image, block->logical, copies + 1, &device, &offset));
    }
}

static void test_blocks_of_all_profiles(void **state)
{
    for (size_t i = 0; i < COUNT(all_profiles); i++) {
        struct iw_options options = spread(all_profiles[i], 0);
        struct iw_image *image = make_image(&options, 40);
        check_all_blocks(image, &options);
        iw_destroy(image);
    }
}

static void test_blocks_of_all_sizes(void **state)
{
    for (uint32_t nodesize = 4096; nodesize <= BW_MAX_NODESIZE; nodesize *= 2)
        for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
            struct iw_options options = {.nodesize = nodesize,
                                         .checksum_type = (enum bw_checksum_type)type,
                                         .profile = BW_GROUP_DUP,
                                         .separate_metadata_uuid = true,
                                         .mixed_groups = true};
            struct iw_image *image = make_image(&options, 100);
            check_all_blocks(image, &options);
            iw_destroy(image);
        }
}

static void test_no_two_copies_share_a_place(void **state)
{
    struct iw_options options = spread(BW_GROUP_RAID10, 6);
    struct iw_image *image = make_image(&options, 30);
    for (size_t i = 0; i < iw_block_count(image); i++)
        for (size_t k = 0; k <= i; k++)
            for (unsigned copy = 1; copy <= 2; copy++) {
                unsigned device, other_device;
                uint64_t offset, other_offset;
                iw_locate(image, iw_block(image, i)->logical, copy, &device, &offset);
                iw_locate(image, iw_block(image, k)->logical, 3 - copy, &other_device,
                          &other_offset);
                assert_true(device != other_device || offset != other_offset);
            }
    iw_destroy(image);
}

/* Every pointer of a node agrees with the header of its child. */
static void check_pointers(const struct iw_image *image, const struct iw_block *node,
                           uint32_t nodesize)
{
    uint8_t *bytes = malloc(nodesize), *child = malloc(nodesize);
    iw_block_bytes(image, node->logical, bytes);
    const struct bw_disk_key_pointer *pointers =
        (const void *)(bytes + sizeof(struct bw_disk_header));
    for (uint32_t i = 0; i < node->item_count; i++) {
        iw_block_bytes(image, bw_get64(pointers[i].bytenr), child);
        const struct bw_disk_header *header = (const void *)child;
        assert_int_equal(bw_get64(header->generation), bw_get64(pointers[i].generation));
        assert_int_equal(header->level + 1, node->level);
        assert_memory_equal(child + sizeof *header, &pointers[i].key, sizeof pointers[i].key);
    }
    free(child);
    free(bytes);
}

static void test_levels(void **state)
{
    struct iw_options options = {.nodesize = 4096, .items_per_leaf = 2, .pointers_per_node = 2};
    struct iw_image *image = iw_create(&options);
    for (char name[] = "a"; *name <= 'z'; ++*name)
        iw_file(image, BW_TOP_SUBVOLUME, TOP, name);
    iw_shape(image, BW_CHUNK_TREE, 0, 0, 7);
    iw_shape(image, BW_ROOT_TREE, 0, 0, 6);
    iw_set_generation(image, BW_TOP_SUBVOLUME, 9);
    iw_write_memory(image);
    assert_int_equal(iw_root_block(image, BW_CHUNK_TREE)->level, 7);
    assert_int_equal(iw_root_block(image, BW_ROOT_TREE)->level, 6);
    assert_int_equal(iw_root_block(image, BW_TOP_SUBVOLUME)->level, 6); /* 106 items */
    assert_int_equal(iw_root_block(image, BW_TOP_SUBVOLUME)->generation, 9);
    assert_non_null(iw_block_find(image, BW_TOP_SUBVOLUME, 0, 52));
    assert_null(iw_block_find(image, BW_TOP_SUBVOLUME, 0, 53));
    for (size_t i = 0; i < iw_block_count(image); i++)
        if (iw_block(image, i)->level)
            check_pointers(image, iw_block(image, i), options.nodesize);
    iw_destroy(image);
}

/* Parity. */

/* The product in the field of 256 elements, computed the slow way: multiply the polynomials, then
 * reduce by 0x11d. */
static uint8_t multiply(uint8_t a, uint8_t b)
{
    unsigned product = 0;
    for (unsigned bit = 0; bit < 8; bit++)
        product ^= (b >> bit & 1) * ((unsigned)a << bit);
    for (unsigned bit = 15; bit >= 8; bit--)
        if (product >> bit & 1)
            product ^= 0x11du << (bit - 8);
    return (uint8_t)product;
}

/* Checks one row, its stripes in order D0, D1, ..., P, Q. */
static void check_row(void **stripes, int count, bool has_q)
{
    const int data = count - (has_q ? 2 : 1);
    for (size_t at = 0; at<BW_STRIPE_LENGTH; at += data> 1 ? 37 : 1) {
        uint8_t p = 0, q = 0, weight = 1;
        for (int i = 0; i < data; i++, weight = multiply(weight, 2)) {
            uint8_t byte = ((const uint8_t *)stripes[i])[at];
            p ^= byte;
            q ^= multiply(byte, weight);
        }
        assert_int_equal(p, ((const uint8_t *)stripes[data])[at]);
        if (has_q)
            assert_int_equal(q, ((const uint8_t *)stripes[data + 1])[at]);
    }
}

static void check_chunk_parity(const struct iw_image *image, const struct iw_chunk *chunk)
{
    void *stripes[IW_MAX_DEVICES];
    const bool has_q = chunk->type & BW_GROUP_RAID6;
    const unsigned count = chunk->stripe_count, data = count - (has_q ? 2 : 1);
    const uint64_t rows = chunk->length / data / BW_STRIPE_LENGTH;
    for (unsigned i = 0; i < count; i++)
        stripes[i] = aligned_alloc(64, BW_STRIPE_LENGTH);
    for (uint64_t row = 0; row < rows; row++) {
        for (unsigned i = 0; i < count; i++) {
            unsigned stripe = (unsigned)((i + row) % count);
            iw_device_read(image, chunk->stripes[stripe].device,
                           chunk->stripes[stripe].offset + row * BW_STRIPE_LENGTH, stripes[i],
                           BW_STRIPE_LENGTH);
        }
        check_row(stripes, (int)count, has_q);
    }
    for (unsigned i = 0; i < count; i++)
        free(stripes[i]);
}

static void check_parity(const struct iw_image *image)
{
    for (size_t i = 0; i < iw_chunk_count(image); i++)
        check_chunk_parity(image, iw_chunk(image, i));
}

static void test_parity(void **state)
{
    for (unsigned devices = 3; devices <= 6; devices++)
        for (unsigned raid6 = 0; raid6 <= 1; raid6++) {
            struct iw_options options = spread(raid6 ? BW_GROUP_RAID6 : BW_GROUP_RAID5, devices);
            struct iw_image *image = make_image(&options, 40);
            check_parity(image);
            iw_destroy(image);
        }
}

static void fill(uint8_t *block, uint32_t nodesize, void *closure)
{
    memset(block + 200, *(const uint8_t *)closure, nodesize - 200);
}

/* Rewriting keeps parity right even where the stored block is damaged, so that the block can be
 * rebuilt. */
static void test_rewriting_brings_parity_along(void **state)
{
    struct iw_options options = spread(BW_GROUP_RAID6, 5);
    struct iw_image *image = make_image(&options, 40);
    const struct iw_block *leaf = iw_block_find(image, BW_TOP_SUBVOLUME, 0, 3);
    uint8_t first = 0xa5, second = 0x3c;
    iw_rewrite_block(image, leaf->logical, fill, &first, true);
    check_copy(image, leaf, 1, &options);
    check_parity(image);
    iw_corrupt(image, leaf->logical, 1, 0, 4096, IW_FLIP);
    iw_rewrite_block(image, leaf->logical, fill, &second, true);
    check_copy(image, leaf, 1, &options);
    check_parity(image);
    iw_destroy(image);
}

/* Damage. */

static bool is_sound(const struct iw_image *image, uint64_t logical, unsigned copy,
                     uint64_t *generation)
{
    uint8_t bytes[8192];
    unsigned device;
    uint64_t offset;
    assert_true(iw_locate(image, logical, copy, &device, &offset));
    iw_device_read(image, device, offset, bytes, sizeof bytes);
    *generation = bw_get64(((const struct bw_disk_header *)bytes)->generation);
    return bw_checksum_matches_block(BW_CHECKSUM_CRC32C, bytes, sizeof bytes);
}

static void test_damage_is_where_it_was_asked_for(void **state)
{
    struct iw_options options = spread(BW_GROUP_RAID1C3, 3);
    struct iw_image *image = make_image(&options, 40);
    uint64_t logical = iw_block_find(image, BW_TOP_SUBVOLUME, 0, 2)->logical, generation;
    iw_corrupt(image, logical, 2, 500, 1, IW_FLIP);
    iw_stale_block(image, logical, 3);
    assert_true(is_sound(image, logical, 1, &generation));
    assert_int_equal(generation, 10);
    assert_false(is_sound(image, logical, 2, &generation));
    assert_int_equal(generation, 10);
    assert_true(is_sound(image, logical, 3, &generation));
    assert_int_equal(generation, 9);
    iw_destroy(image);
}

static void test_devices_go_away(void **state)
{
    struct iw_options options = spread(BW_GROUP_RAID1, 3);
    struct iw_image *image = make_image(&options, 4);
    const char *paths[IW_MAX_DEVICES];
    assert_int_equal(iw_paths_of(image, paths), 3);
    iw_remove_device(image, 1);
    assert_int_equal(iw_paths_of(image, paths), 2);
    assert_null(iw_path(image, 1));
    assert_string_equal(paths[1], iw_path(image, 2));
    FILE *file = fopen(paths[1], "rb");
    assert_non_null(file);
    fclose(file);
    iw_destroy(image);
}
