/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * src/format: checksums with known answers, feature bits, superblock, chunk items. Tree blocks and
 * their items are in test_node.c.
 */
#include "btrfs-walk/fs.h"
#include "btrfs-walk/tree.h"
#include "ondisk/bit_flip.h"
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"
#include "support/walk_helpers.h"

/* Checksums. */

static void check_sum(enum bw_checksum_type type, const char *text, const char *hexadecimal)
{
    uint8_t result[32];
    char written[65] = "";
    memset(result, 0xee, sizeof result);
    bw_checksum_compute(type, text, strlen(text), result);
    for (size_t i = 0; i < bw_checksum_size(type); i++)
        snprintf(written + 2 * i, 3, "%02x", result[i]);
    assert_string_equal(written, hexadecimal);
    for (size_t i = bw_checksum_size(type); i < sizeof result; i++)
        assert_int_equal(result[i], 0);
}

static void test_checksums(void **state)
{
    check_sum(BW_CHECKSUM_CRC32C, "123456789", "839206e3");
    check_sum(BW_CHECKSUM_CRC32C, "", "00000000");
    check_sum(BW_CHECKSUM_XXHASH64, "", "99e9d85137db46ef");
    check_sum(BW_CHECKSUM_XXHASH64, "abc", "990977adf52cbc44");
    check_sum(BW_CHECKSUM_SHA256, "abc",
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sum(BW_CHECKSUM_BLAKE2B, "abc",
              "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void test_checksum_names(void **state)
{
    static const char *const names[] = {"crc32c", "xxhash64", "sha256", "blake2b"};
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        assert_true(bw_checksum_known(type));
        assert_string_equal(bw_checksum_name((enum bw_checksum_type)type), names[type]);
    }
    assert_false(bw_checksum_known(BW_CHECKSUM_TYPES));
    assert_false(bw_checksum_known(UINT16_MAX));
}

static void test_block_checksums(void **state)
{
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        uint8_t block[4096];
        memset(block, 0x5a, sizeof block);
        bw_checksum_compute((enum bw_checksum_type)type, block + 32, sizeof block - 32, block);
        assert_true(bw_checksum_matches_block((enum bw_checksum_type)type, block, sizeof block));
        block[4095] ^= 1;
        assert_false(bw_checksum_matches_block((enum bw_checksum_type)type, block, sizeof block));
        block[4095] ^= 1;
        block[bw_checksum_size((enum bw_checksum_type)type) - 1] ^= 0x80;
        assert_false(bw_checksum_matches_block((enum bw_checksum_type)type, block, sizeof block));
    }
}

/* The numbers that "default" and ".." have on every disk. */
static void test_name_hash(void **state)
{
    assert_int_equal(bw_name_hash("default", 7), 2378154706u);
    assert_int_equal(bw_name_hash("ethgufec", 8), bw_name_hash("ibvunkku", 8));
    assert_int_not_equal(bw_name_hash("a", 1), bw_name_hash("b", 1));
}

/* Feature bits. */

static void test_flag_names(void **state)
{
    static const struct {
        const char *(*name_of)(unsigned bit);
        unsigned bit;
        const char *name;
    } names[] = {
        {bw_incompat_name, 0, "mixed-backref"},    {bw_incompat_name, 8, "skinny-metadata"},
        {bw_incompat_name, 15, "encrypt"},         {bw_incompat_name, 17, "remap-tree"},
        {bw_compat_ro_name, 0, "free-space-tree"}, {bw_compat_ro_name, 3, "block-group-tree"},
        {bw_super_flag_name, 0, "written"},        {bw_super_flag_name, 32, "seeding"},
        {bw_super_flag_name, 34, "metadump-v2"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(names[i].name_of(names[i].bit), names[i].name);
    for (unsigned bit = 18; bit < 70; bit++)
        assert_null(bw_incompat_name(bit));
    assert_null(bw_compat_ro_name(64));
    assert_null(bw_super_flag_name(64));
}

static void test_features(void **state)
{
    expect_success(bw_features_check(0));
    expect_success(bw_features_check(0x7fff | 1u << 16 | 1u << 17));
    expect_error(bw_features_check(1u << 15), BW_ERROR_UNSUPPORTED,
                 "bits 15 (encrypt) (incompat_flags 0x8000)");
    for (unsigned bit = 18; bit < 64; bit++) {
        char text[32];
        snprintf(text, sizeof text, "bits %u (incompat", bit);
        expect_error(bw_features_check(UINT64_C(1) << bit | 3), BW_ERROR_UNSUPPORTED, text);
    }
    expect_error(bw_features_check(UINT64_C(5) << 61), BW_ERROR_UNSUPPORTED,
                 "bits 61, 63 (incompat_flags 0xa0");
}

/* Superblocks. */

static void make_superblock(struct bw_disk_superblock *disk)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.label = "label", .separate_metadata_uuid = true});
    iw_shape(image, BW_ROOT_TREE, 0, 0, 3);
    iw_write_memory(image);
    iw_device_read(image, 0, iw_superblock_offset(1), disk, sizeof *disk);
    iw_destroy(image);
}

static void seal(struct bw_disk_superblock *disk)
{
    bw_checksum_compute(BW_CHECKSUM_CRC32C, disk->csum + BW_CSUM_SIZE, sizeof *disk - BW_CSUM_SIZE,
                        disk->csum);
}

static void test_superblock_decode(void **state)
{
    struct bw_disk_superblock disk;
    struct bw_superblock super;
    make_superblock(&disk);
    expect_success(bw_superblock_decode(&disk, 65536, &super));
    assert_string_equal(super.label, "label");
    assert_int_equal(super.generation, 10);
    assert_int_equal(super.root.generation, 10);
    assert_int_equal(super.root.level, 3);
    assert_int_equal(super.root.bytenr, bw_get64(disk.root));
    assert_int_equal(super.chunk_root.bytenr, bw_get64(disk.chunk_root));
    assert_int_equal(super.nodesize, 16384);
    assert_int_equal(super.sectorsize, 4096);
    assert_int_equal(super.device_count, 1);
    assert_int_equal(super.device.devid, 1);
    assert_int_equal(super.backup_roots[2].tree_root.bytenr, super.root.bytenr);
    assert_int_equal(super.backup_roots[2].tree_root.level, 3);
    assert_int_equal(super.backup_roots[0].tree_root.bytenr, 0);
    assert_memory_equal(super.metadata_uuid, disk.metadata_uuid, BW_UUID_SIZE);
    assert_memory_not_equal(super.metadata_uuid, super.fsid, BW_UUID_SIZE);
    assert_int_equal(super.remap_root.bytenr, 0);
}

static void test_metadata_uuid_counts_only_with_its_bit(void **state)
{
    struct bw_disk_superblock disk;
    struct bw_superblock super;
    make_superblock(&disk);
    disk.incompat_flags = bw_put64(bw_get64(disk.incompat_flags) & ~BW_INCOMPAT_METADATA_UUID);
    seal(&disk);
    expect_success(bw_superblock_decode(&disk, 65536, &super));
    assert_memory_equal(super.metadata_uuid, super.fsid, BW_UUID_SIZE);
}

/* A label without a terminator stays inside its place. */
static void test_full_label(void **state)
{
    struct bw_disk_superblock disk;
    struct bw_superblock super;
    make_superblock(&disk);
    memset(disk.label, 'x', sizeof disk.label);
    seal(&disk);
    expect_success(bw_superblock_decode(&disk, 65536, &super));
    assert_int_equal(strlen(super.label), BW_LABEL_SIZE);
}

static struct bw_error *keep_text(void *context, const char *text, size_t length)
{
    bw_buffer_append(context, text, length);
    return NULL;
}

static void expect_line(const struct bw_disk_superblock *disk, const char *line)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    expect_success(bw_superblock_print((const uint8_t *)disk, keep_text, &text));
    bw_buffer_append_byte(&text, '\0');
    if (!strstr(text.data, line))
        fail_msg("the text of the superblock lacks '%s': %s", line, text.data);
}

/* The text says for each type of checksum how long it is and whether it matches; only an unknown
 * one is printed with all bytes of its field. */
static void test_superblock_text(void **state)
{
    struct bw_disk_superblock disk;
    make_superblock(&disk);
    expect_line(&disk, "\ncsum_type\t\t0 (crc32c)\ncsum_size\t\t4\ncsum\t\t\t0x");
    expect_line(&disk, " [match]\nbytenr\t\t\t65536\n");
    expect_line(&disk, "\nmagic\t\t\t_BHRfS_M [match]\n");
    expect_line(&disk, "\ndev_item.fsid\t\t");
    disk.incompat_flags = bw_put64(bw_get64(disk.incompat_flags) & ~BW_INCOMPAT_METADATA_UUID);
    disk.magic = bw_put64(0);
    expect_line(&disk, " [DON'T MATCH]\nbytenr\t\t\t65536\n");
    expect_line(&disk, "\nmagic\t\t\t........ [DON'T MATCH]\n");
    disk.csum_type = bw_put16(BW_CHECKSUM_BLAKE2B);
    bw_checksum_compute(BW_CHECKSUM_BLAKE2B, disk.csum + BW_CSUM_SIZE, sizeof disk - BW_CSUM_SIZE,
                        disk.csum);
    expect_line(&disk, "\ncsum_type\t\t3 (blake2)\ncsum_size\t\t32\n");
    expect_line(&disk, " [match]\nbytenr\t\t\t65536\n");
    disk.csum_type = bw_put16(BW_CHECKSUM_TYPES);
    expect_line(&disk, "\ncsum_type\t\t4 (INVALID)\ncsum_size\t\t32\n");
    expect_line(&disk, " [UNKNOWN CSUM TYPE OR SIZE]\nbytenr\t\t\t65536\n");
}

static void test_superblock_rejections(void **state)
{
    struct bw_disk_superblock disk;
    struct bw_superblock super;
    static const struct bw_disk_superblock nothing;
    expect_error(bw_superblock_decode(&nothing, 65536, &super), BW_ERROR_NOT_BTRFS,
                 "no btrfs magic");
    make_superblock(&disk);
    expect_error(bw_superblock_decode(&disk, 64 << 20, &super), BW_ERROR_CORRUPT,
                 "bytenr mismatch, want 67108864 have 65536");
    disk.label[0] ^= 1;
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT,
                 "crc32c checksum mismatch");
    disk.csum_type = bw_put16(2);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT,
                 "sha256 checksum mismatch");
    disk.csum_type = bw_put16(5);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_UNSUPPORTED,
                 "unknown checksum type 5");
    disk.csum_type = bw_put16(77);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT,
                 "unknown checksum type 77");
}

/* Any flipped bit is corrected; two are not. */
static void test_superblock_corrections(void **state)
{
    struct bw_disk_superblock good, disk;
    struct bw_superblock super;
    struct bw_bit_flip flip;
    make_superblock(&good);
    disk = good;
    uint8_t *bytes = (uint8_t *)&disk;
    assert_false(bw_superblock_correct(bytes, 65536, &super, &flip));
    for (uint32_t bit = 0; bit < sizeof disk * 8; bit += 1 + bit / 2048) {
        if (bit >= 32 && bit < BW_CSUM_SIZE * 8)
            continue; /* behind the CRC-32C */
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(bw_superblock_correct(bytes, 65536, &super, &flip));
        assert_int_equal(flip.byte * 8 + flip.bit, bit);
        assert_memory_equal(&disk, &good, sizeof disk);
        assert_string_equal(super.label, "label");
    }
    disk.label[3] ^= 9;
    const struct bw_disk_superblock bad = disk;
    assert_false(bw_superblock_correct(bytes, 65536, &super, &flip));
    assert_memory_equal(&disk, &bad, sizeof disk);

    /* The corrected one fails another check. */
    disk = good;
    disk.device_count = bw_put64(0);
    seal(&disk);
    disk.label[3] ^= 1;
    assert_false(bw_superblock_correct(bytes, 65536, &super, &flip));
}

/* A root that no one could have written; the level is an index further on. */
static void test_remap_root_is_checked(void **state)
{
    struct bw_disk_superblock disk;
    struct bw_superblock super;
    make_superblock(&disk);
    disk.incompat_flags = bw_put64(bw_get64(disk.incompat_flags) | BW_INCOMPAT_REMAP_TREE);
    disk.remap_root = disk.root;
    disk.remap_root_level = 8;
    seal(&disk);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT,
                 "remap_root level 8");
}

static void test_superblock_places(void **state)
{
    assert_int_equal(bw_superblock_offset(0), 65536);
    assert_int_equal(bw_superblock_offset(1), 67108864);
    assert_true(bw_superblock_offset(2) == UINT64_C(274877906944));
}

/* Chunks. */

struct chunk_item {
    struct bw_disk_chunk chunk;
    struct bw_disk_stripe stripes[300];
};

static struct chunk_item make_chunk(uint64_t type, uint16_t stripes)
{
    struct chunk_item item = {.chunk = {.length = bw_put64(1 << 20),
                                        .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                                        .type = bw_put64(type | BW_GROUP_METADATA),
                                        .stripe_count = bw_put16(stripes),
                                        .sub_stripes = bw_put16(type & BW_GROUP_RAID10 ? 2 : 1)}};
    for (uint16_t i = 0; i < stripes && i < COUNT(item.stripes); i++)
        item.stripes[i].devid = bw_put64(i + 1u);
    return item;
}

static size_t size_of(uint16_t stripes)
{
    return sizeof(struct bw_disk_chunk) + stripes * sizeof(struct bw_disk_stripe);
}

static void test_chunk_profiles(void **state)
{
    static const struct {
        uint64_t flag;
        uint16_t fewest, most;
        const char *name;
    } profiles[] = {
        {0, 1, 1, "single"},
        {BW_GROUP_DUP, 2, 2, "DUP"},
        {BW_GROUP_RAID0, 1, UINT16_MAX, "RAID0"},
        {BW_GROUP_RAID1, 2, 2, "RAID1"},
        {BW_GROUP_RAID1C3, 3, 3, "RAID1C3"},
        {BW_GROUP_RAID1C4, 4, 4, "RAID1C4"},
        {BW_GROUP_RAID10, 2, UINT16_MAX, "RAID10"},
        {BW_GROUP_RAID5, 2, 255, "RAID5"},
        {BW_GROUP_RAID6, 3, 255, "RAID6"},
    };
    for (size_t i = 0; i < COUNT(profiles); i++) {
        struct bw_chunk chunk;
        struct chunk_item item = make_chunk(profiles[i].flag, profiles[i].fewest);
        const uint8_t *bytes = (const void *)&item;
        expect_success(bw_chunk_decode(4096, bytes, size_of(profiles[i].fewest), &chunk));
        assert_string_equal(chunk.profile->name, profiles[i].name);
        assert_int_equal(chunk.stripe_count, profiles[i].fewest);
        assert_int_equal(chunk.length, 1 << 20);
        assert_int_equal(bw_get64(chunk.stripes[0].devid), 1);
        item = make_chunk(profiles[i].flag, (uint16_t)(profiles[i].fewest - 1));
        expect_error(bw_chunk_decode(4096, bytes, sizeof item, &chunk), BW_ERROR_CORRUPT,
                     "invalid stripe count");
        if (profiles[i].most > 4)
            continue;
        item = make_chunk(profiles[i].flag, (uint16_t)(profiles[i].most + 1));
        expect_error(bw_chunk_decode(4096, bytes, sizeof item, &chunk), BW_ERROR_CORRUPT,
                     "invalid stripe count");
    }
    assert_null(bw_raid_profile_of(BW_GROUP_RAID5 | BW_GROUP_RAID6));
    assert_null(bw_raid_profile_of(BW_GROUP_RAID0 | BW_GROUP_DUP | BW_GROUP_DATA));
}

static void expect_bad_chunk(const struct chunk_item *item, size_t size, uint64_t logical,
                             const char *text)
{
    struct bw_chunk chunk;
    expect_error(bw_chunk_decode(logical, (const void *)item, size, &chunk), BW_ERROR_CORRUPT,
                 text);
}

static void test_hostile_chunks(void **state)
{
    struct chunk_item item = make_chunk(0, 1);
    for (size_t size = 0; size < size_of(1); size++)
        expect_bad_chunk(&item, size, 0, "invalid item size");
    item = make_chunk(BW_GROUP_RAID0, 200);
    expect_bad_chunk(&item, size_of(199), 0, "invalid item size");
    item = make_chunk(0, UINT16_MAX);
    expect_bad_chunk(&item, sizeof item, 0, "invalid item size");
    static const uint64_t lengths[] = {0, 1, 4095, 4097, UINT64_MAX};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        item = make_chunk(0, 1);
        item.chunk.length = bw_put64(lengths[i]);
        expect_bad_chunk(&item, sizeof item, 0, "invalid length");
    }
    item = make_chunk(0, 1);
    expect_bad_chunk(&item, sizeof item, (uint64_t)-4096, "invalid length");
    item.chunk.stripe_length = bw_put64(4096);
    expect_bad_chunk(&item, sizeof item, 0, "invalid stripe length 4096");
    item = make_chunk(BW_GROUP_RAID10, 3);
    expect_bad_chunk(&item, sizeof item, 0, "sub stripes");
    item = make_chunk(BW_GROUP_RAID10, 4);
    item.chunk.sub_stripes = bw_put16(0);
    expect_bad_chunk(&item, sizeof item, 0, "invalid sub stripes 0");
    item = make_chunk(BW_GROUP_RAID6, 256);
    expect_bad_chunk(&item, sizeof item, 0, "invalid stripe count 256");
}

static void test_tree_names(void **state)
{
    static const struct {
        uint64_t id;
        const char *name;
    } trees[] = {
        {0, "0"},
        {13, "REMAP_TREE"},
        {199, "199"},
        {200, "SYNOLOGY_USER_QUOTA_TREE"},
        {203, "SYNOLOGY_BLOCK_GROUP_CACHE_TREE"},
        {204, "204"},
        {206, "SYNOLOGY_EXTENT_USAGE_TREE"},
        {207, "207"},
        {256, "256"},
        {BW_DATA_RELOC_TREE, "DATA_RELOC_TREE"},
    };
    char text[BW_KEY_TEXT];
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        assert_string_equal(bw_tree_id_text(trees[i].id, text), trees[i].name);
}
