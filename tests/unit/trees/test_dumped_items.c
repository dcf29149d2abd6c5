/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/trees/dumped_items.c, sanitized_blocks.c: crafted leaves, in which items lie over each other,
 * are cut off, or have unknown types, reveal nothing; bytes outside of items become zeros; and no
 * contents that lie in place of numbers are in a sanitized block. */
#include "trees/metadump.h"

#include <inttypes.h>

#include "base/endian.h"
#include "ondisk/disk_items.h"
#include "support/walk_helpers.h"

enum { GENERATION = 1000, NODESIZE = 4096, HEAD = sizeof(struct bw_disk_header) };

static const struct bw_pseudonyms names = {"a key"};
static const uint8_t fsid[BW_UUID_SIZE] = "the fsid";
static const char secret[] = "a secret that must not be in the dump";

/* A leaf, which is filled with secrets. */
struct leaf {
    uint8_t block[NODESIZE];
};

static void begin(struct leaf *leaf, unsigned count)
{
    *leaf = (struct leaf){0};
    for (size_t at = HEAD; at + sizeof secret < NODESIZE; at += sizeof secret)
        memcpy(leaf->block + at, secret, sizeof secret);
    struct bw_disk_header *header = (void *)leaf->block;
    header->item_count = bw_put32(count);
}

static void set_item(struct leaf *leaf, unsigned slot, uint8_t type, uint32_t offset, uint32_t size)
{
    struct bw_disk_item *item = (void *)(leaf->block + HEAD + slot * sizeof *item);
    *item =
        (struct bw_disk_item){{bw_put64(257), type, bw_put64(1)}, bw_put32(offset), bw_put32(size)};
}

static uint8_t *bytes_at(struct leaf *leaf, uint32_t offset)
{
    return leaf->block + HEAD + offset;
}

static void clean(struct leaf *leaf, bool sanitize)
{
    uint8_t scratch[NODESIZE];
    const struct bw_dump_rules rules = {
        .checksum_type = BW_CHECKSUM_CRC32C,
        .fsid = fsid,
        .names = sanitize ? &names : NULL,
        .generation = GENERATION,
        .sectorsize = 4096,
        .checksum_size = 4,
    };
    bw_dumped_block_clean(&rules, leaf->block, NODESIZE, scratch);
    assert_true(bw_checksum_matches_block(BW_CHECKSUM_CRC32C, leaf->block, NODESIZE));
    assert_memory_equal(((struct bw_disk_header *)leaf->block)->fsid, fsid, sizeof fsid);
}

static bool has_secret(const struct leaf *leaf)
{
    return memmem(leaf->block, NODESIZE, "secret", 6) != NULL;
}

static void test_outside(void **state)
{
    struct leaf leaf;
    begin(&leaf, 0);
    clean(&leaf, false);
    assert_false(has_secret(&leaf));
    begin(&leaf, 1);
    set_item(&leaf, 0, BW_INODE_ITEM, 3000, 160);
    clean(&leaf, false);
    assert_true(has_secret(&leaf)); /* in the inode, which is unchanged */
    memset(bytes_at(&leaf, 3000), 0, 160);
    assert_false(has_secret(&leaf));
}

/* Contents, with a type that exists and with another one. */
static void test_contents(void **state)
{
    for (unsigned type = 0; type < 256; type++) {
        struct leaf leaf;
        begin(&leaf, 2);
        set_item(&leaf, 0, BW_EXTENT_DATA, 3000, 500);
        set_item(&leaf, 1, BW_EXTENT_CSUM, 2000, 500);
        struct bw_disk_file_extent *extent = (void *)bytes_at(&leaf, 3000);
        memset(extent, 0, offsetof(struct bw_disk_file_extent, disk_bytenr));
        extent->type = (uint8_t)type;
        clean(&leaf, false);
        if (type == BW_FILE_EXTENT_REGULAR || type == BW_FILE_EXTENT_PREALLOC)
            memset(bytes_at(&leaf, 3000), 0, sizeof *extent);
        assert_false(has_secret(&leaf));
    }
}

/* In a tree of files, an item whose type damage has changed may contain names. */
static void test_wrong_types(void **state)
{
    for (unsigned type = 0; type < 256; type++) {
        struct leaf leaf;
        begin(&leaf, 1);
        ((struct bw_disk_header *)leaf.block)->owner = bw_put64(BW_FIRST_SUBVOLUME);
        set_item(&leaf, 0, (uint8_t)type, 3000, 500);
        clean(&leaf, true);
        if (has_secret(&leaf))
            fail_msg("type %u", type);
    }
}

static void test_overlapping(void **state)
{
    struct leaf leaf;
    begin(&leaf, 4);
    set_item(&leaf, 0, BW_EXTENT_DATA, 3000, 500);
    memset(bytes_at(&leaf, 3000), 0, sizeof(struct bw_disk_file_extent));
    set_item(&leaf, 1, BW_INODE_ITEM, 3100, 160);  /* over the contents */
    set_item(&leaf, 2, BW_INODE_ITEM, 10, 160);    /* over the table of items */
    set_item(&leaf, 3, BW_INODE_ITEM, 3900, 5000); /* beyond the end */
    clean(&leaf, false);
    assert_false(has_secret(&leaf));
    static const uint8_t zeros[160];
    assert_memory_equal(bytes_at(&leaf, 3100), zeros, sizeof zeros);
}

/* Without names: items with a name that is cut off, and items of unknown types. */
static void test_names(void **state)
{
    static const uint8_t types[] = {BW_DIR_ITEM,     BW_DIR_INDEX,    BW_XATTR_ITEM,
                                    BW_INODE_REF,    BW_INODE_EXTREF, BW_ROOT_REF,
                                    BW_ROOT_BACKREF, BW_STRING_ITEM,  99};
    for (size_t i = 0; i < sizeof types; i++) {
        struct leaf leaf;
        begin(&leaf, 1);
        set_item(&leaf, 0, types[i], 3000, 500); /* the letters are great lengths */
        clean(&leaf, true);
        assert_false(has_secret(&leaf));
    }
}

/* Several entries in one item: each name is replaced, the values are removed. */
static void test_several(void **state)
{
    struct leaf leaf;
    static const char *const given[] = {"security.selinux", "user.secretsecre"};
    const uint32_t size = sizeof(struct bw_disk_dir_item) + 16 + 8;
    begin(&leaf, 1);
    set_item(&leaf, 0, BW_XATTR_ITEM, NODESIZE - HEAD - 2 * size, 2 * size);
    uint8_t *bytes = bytes_at(&leaf, NODESIZE - HEAD - 2 * size);
    for (unsigned i = 0; i < 2; i++) {
        struct bw_disk_dir_item *entry = (void *)(bytes + i * size);
        *entry = (struct bw_disk_dir_item){
            .name_length = bw_put16(16), .data_length = bw_put16(8), .type = BW_ENTRY_IS_XATTR};
        memcpy(entry + 1, given[i], 16);
    }
    clean(&leaf, true);
    assert_false(has_secret(&leaf));
    const char *first = (const char *)bytes + sizeof(struct bw_disk_dir_item);
    assert_memory_equal(first, given[0], 16);
    assert_memory_equal(first + size, "user.", 5);
    assert_int_equal(bw_name_hash(first + size, 16), bw_name_hash(given[1], 16));
    assert_memory_not_equal(first + size, given[1], 16);
}

/* Numbers of an inode: which are kept, and that the others are replaced; two of them show that
 * there is no inode. */
static void test_numbers(void **state)
{
    static const uint64_t all = UINT64_MAX;
    static const struct {
        size_t offset, size;
        uint64_t number, result;
    } cases[] = {
        {offsetof(struct bw_disk_inode_item, generation), 8, GENERATION, GENERATION},
        {offsetof(struct bw_disk_inode_item, generation), 8, GENERATION + 1, all},
        {offsetof(struct bw_disk_inode_item, size), 8, INT64_MAX, INT64_MAX},
        {offsetof(struct bw_disk_inode_item, size), 8, INT64_MAX - 4095, INT64_MAX - 4095},
        {offsetof(struct bw_disk_inode_item, size), 8, UINT64_C(0x6162636465666768), all},
        {offsetof(struct bw_disk_inode_item, size), 8, UINT64_C(0x62636465666768),
         UINT64_C(0x62636465666768)},
        {offsetof(struct bw_disk_inode_item, bytes), 8, -UINT64_C(4096), -UINT64_C(4096)},
        {offsetof(struct bw_disk_inode_item, bytes), 8, INT64_MAX, all},
        {offsetof(struct bw_disk_inode_item, link_count), 4, 65535, 65535},
        {offsetof(struct bw_disk_inode_item, link_count), 4, 65536, UINT32_MAX},
        {offsetof(struct bw_disk_inode_item, uid), 4, 0x61626364, 0x61626364},
        {offsetof(struct bw_disk_inode_item, mode), 4, 0100644, 0100644},
        {offsetof(struct bw_disk_inode_item, mode), 4, 0x61626364, UINT32_MAX},
        {offsetof(struct bw_disk_inode_item, flags), 8, 3 | UINT64_C(5) << 40,
         3 | UINT64_C(1) << 40},
        {offsetof(struct bw_disk_inode_item, reserved), 8, 1, 0},
        {offsetof(struct bw_disk_inode_item, mtime), 8, UINT64_C(1) << 39, UINT64_C(1) << 39},
        {offsetof(struct bw_disk_inode_item, mtime), 8, UINT64_C(1) << 40, 0},
        {offsetof(struct bw_disk_inode_item, mtime) + 8, 4, 1000000000, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned two = 0; two < 2; two++) {
            struct leaf leaf = {0};
            const uint32_t size = sizeof(struct bw_disk_inode_item), at = NODESIZE - HEAD - size;
            ((struct bw_disk_header *)leaf.block)->item_count = bw_put32(1);
            set_item(&leaf, 0, BW_INODE_ITEM, at, size);
            struct bw_disk_inode_item *inode = (void *)bytes_at(&leaf, at);
            const bw_le64 number = bw_put64(cases[i].number), result = bw_put64(cases[i].result);
            inode->sequence = bw_put64(two ? INT64_MAX : 7);
            memcpy((uint8_t *)inode + cases[i].offset, &number, cases[i].size);
            clean(&leaf, true);
            const bool impossible = cases[i].number != cases[i].result && cases[i].result;
            static const uint8_t zeros[sizeof *inode];
            if (two && impossible)
                assert_memory_equal(inode, zeros, sizeof *inode);
            else if (memcmp((uint8_t *)inode + cases[i].offset, &result, cases[i].size) != 0)
                fail_msg("case %zu", i);
            if (!two)
                assert_int_equal(bw_get64(inode->sequence), 7);
        }
}

/* Blocks with random items, over which text is written. */

static uint64_t seed;

static unsigned dice(unsigned sides)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % sides;
}

/* A text in which four bytes occur once. */
static void write_text(uint8_t *target, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const unsigned start = dice(26 * 26);
    for (size_t i = 0; i < length; i++)
        target[i] = (uint8_t)letters[i % 2 ? (start + i * i) % 26 : (start / 26 + 5 * i) % 26];
}

/* Appends an item that is valid: its numbers are small. Returns its size. */
static uint32_t write_item(uint8_t type, uint8_t *at)
{
    struct bw_disk_dir_item *entry = (void *)at;
    struct bw_disk_inode_ref *ref = (void *)at;
    struct bw_disk_file_extent *extent = (void *)at;
    struct bw_disk_chunk *chunk = (void *)at;
    const unsigned length = 5 + dice(40);
    switch (type) {
    case BW_INODE_ITEM:
        return sizeof(struct bw_disk_inode_item);
    case BW_ROOT_ITEM:
        return sizeof(struct bw_disk_root_item);
    case BW_INODE_REF:
        ref->name_length = bw_put16((uint16_t)length);
        write_text((uint8_t *)(ref + 1), length);
        return (uint32_t)sizeof *ref + length;
    case BW_XATTR_ITEM:
    case BW_DIR_ITEM:
        entry->name_length = bw_put16((uint16_t)length);
        entry->data_length = bw_put16(type == BW_XATTR_ITEM ? 20 : 0);
        entry->type = type == BW_XATTR_ITEM ? BW_ENTRY_IS_XATTR : BW_FILE_REGULAR;
        write_text((uint8_t *)(entry + 1), length + (type == BW_XATTR_ITEM ? 20 : 0));
        return (uint32_t)sizeof *entry + length + (type == BW_XATTR_ITEM ? 20 : 0);
    case BW_EXTENT_DATA:
        extent->type = (uint8_t)dice(2);
        extent->disk_num_bytes = bw_put64(4096);
        extent->num_bytes = bw_put64(4096);
        if (extent->type == BW_FILE_EXTENT_INLINE)
            write_text((uint8_t *)&extent->disk_bytenr, 32);
        return sizeof *extent;
    case BW_CHUNK_ITEM:
        chunk->stripe_count = bw_put16(2);
        chunk->length = bw_put64(4096);
        return sizeof *chunk + 2 * sizeof(struct bw_disk_stripe);
    case BW_EXTENT_ITEM:
        at[sizeof(struct bw_disk_extent_item)] = BW_EXTENT_DATA_REF;
        return sizeof(struct bw_disk_extent_item) + sizeof(struct bw_disk_inline_data_ref);
    default:
        return 40;
    }
}

static unsigned write_leaf(struct leaf *leaf)
{
    static const uint8_t types[] = {BW_INODE_ITEM,
                                    BW_INODE_REF,
                                    BW_XATTR_ITEM,
                                    BW_DIR_ITEM,
                                    BW_ROOT_ITEM,
                                    BW_EXTENT_DATA,
                                    BW_CHUNK_ITEM,
                                    BW_EXTENT_ITEM,
                                    BW_STRING_ITEM,
                                    BW_QGROUP_INFO,
                                    99};
    const unsigned count = 3 + dice(8);
    uint32_t offset = NODESIZE - HEAD;
    *leaf = (struct leaf){0};
    struct bw_disk_header *header = (void *)leaf->block;
    header->item_count = bw_put32(count);
    header->owner = bw_put64(dice(2) ? BW_FIRST_SUBVOLUME : 1);
    for (unsigned slot = 0; slot < count; slot++) {
        uint8_t bytes[512] = {0};
        const uint8_t type = types[dice(sizeof types)];
        const uint32_t size = write_item(type, bytes);
        offset -= size;
        memcpy(bytes_at(leaf, offset), bytes, size);
        set_item(leaf, slot, type, offset, size);
        ((struct bw_disk_item *)bytes_at(leaf, 0))[slot].key.objectid = bw_put64(257 + slot);
    }
    write_text(bytes_at(leaf, count * (uint32_t)sizeof(struct bw_disk_item)),
               offset - count * sizeof(struct bw_disk_item));
    return count;
}

/* How many bytes of a text, at most, may be in a block: without a place that is known to be a
 * number, three. */
static void assert_no_text(const struct leaf *leaf, const uint8_t *text, size_t length, size_t most)
{
    for (size_t i = 0; i + most < length; i++)
        if (memmem(leaf->block + HEAD, NODESIZE - HEAD, text + i, most + 1))
            fail_msg("%zu: '%.*s' at %zu", i, (int)most + 1, (const char *)text + i,
                     (size_t)((uint8_t *)memmem(leaf->block, NODESIZE, text + i, most + 1) -
                              leaf->block));
}

static bool is_text(const uint8_t *at)
{
    return at[0] >= 'A' && at[1] >= 'A' && at[2] >= 'A' && at[3] >= 'A';
}

/* No four bytes of all texts of a leaf: names, values, contents, free space. Bytes that are kept
 * are at their old place; elsewhere, a replaced name may have the same ones by chance. */
static void assert_no_texts(const struct leaf *leaf, const struct leaf *before)
{
    for (size_t i = HEAD; i < NODESIZE - 3; i++)
        if (is_text(leaf->block + i) && memcmp(leaf->block + i, before->block + i, 4) == 0)
            fail_msg("seed %" PRIu64 ": '%.4s' at %zu", seed, (const char *)leaf->block + i, i);
}

/* A header that promises more items, an item of another size or type, a level. */
static void test_promises(void **state)
{
    for (seed = 1; seed < 20000 / variant_step();) {
        struct leaf leaf;
        const uint64_t first = seed;
        const unsigned count = write_leaf(&leaf), slot = dice(count);
        struct bw_disk_header *header = (void *)leaf.block;
        struct bw_disk_item *items = (void *)bytes_at(&leaf, 0), *item = items + slot;
        switch (dice(6)) {
        case 0:
            header->item_count = bw_put32(dice((NODESIZE - HEAD) / sizeof *item));
            break;
        case 1:
            header->level = (uint8_t)(1 + dice(7));
            header->item_count = bw_put32(1 + dice((NODESIZE - HEAD) / 33));
            break;
        case 2:
            item->size = bw_put32(bw_get32(item->size) ^ 1u << dice(10));
            break;
        case 3:
            item->offset = bw_put32(bw_get32(item->offset) ^ 1u << dice(12));
            break;
        case 4:
            item->key.type = (uint8_t)dice(256);
            break;
        default: /* an extent whose contents are claimed to be on disk */
            for (unsigned i = 0; i < count; i++)
                if (items[i].key.type == BW_EXTENT_DATA)
                    ((struct bw_disk_file_extent *)bytes_at(&leaf, bw_get32(items[i].offset)))
                        ->type = BW_FILE_EXTENT_REGULAR;
        }
        const struct leaf before = leaf;
        clean(&leaf, true);
        assert_no_texts(&leaf, &before);
        seed = first + 1;
    }
}

/* Text at any place. A number that is known can keep 7 bytes of it; the owners and permissions of
 * an inode, which are next to each other, 10. Longer texts show that there is no number. */
static void test_sprayed(void **state)
{
    for (seed = 1; seed < 20000 / variant_step();) {
        struct leaf leaf;
        uint8_t text[64];
        const uint64_t first = seed;
        write_leaf(&leaf);
        const size_t length = 9 + dice(sizeof text - 9);
        write_text(text, length);
        memcpy(bytes_at(&leaf, dice((unsigned)(NODESIZE - HEAD - length))), text, length);
        clean(&leaf, true);
        assert_no_text(&leaf, text, length, 10);
        seed = first + 1;
    }
}

/* A block that text fills, with any header. */
static void test_filled(void **state)
{
    for (seed = 1; seed < 5000 / variant_step();) {
        struct leaf leaf = {0};
        const uint64_t first = seed;
        struct bw_disk_header *header = (void *)leaf.block;
        write_text(leaf.block + HEAD, NODESIZE - HEAD);
        header->level = (uint8_t)dice(3);
        header->item_count = bw_put32(dice((NODESIZE - HEAD) / 33));
        header->owner = bw_put64(1 + dice(10));
        header->generation = bw_put64(GENERATION);
        const struct leaf before = leaf;
        clean(&leaf, true);
        assert_no_texts(&leaf, &before);
        seed = first + 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),     cmocka_unit_test(test_contents),
        cmocka_unit_test(test_wrong_types), cmocka_unit_test(test_overlapping),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_several),
        cmocka_unit_test(test_numbers),     cmocka_unit_test(test_promises),
        cmocka_unit_test(test_sprayed),     cmocka_unit_test(test_filled),
    };
    bw_error_free(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
