/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/trees/dumped_items.c: crafted leaves, in which items lie over each other, are cut off, or
 * have unknown types, reveal nothing; and bytes outside of items become zeros. */
#include "trees/dumped_items.h"

#include "base/endian.h"
#include "ondisk/disk_items.h"
#include "support/walk_helpers.h"

enum { NODESIZE = 4096, HEAD = sizeof(struct bw_disk_header) };

static const struct bw_pseudonyms names = {"a key"};
static const uint8_t fsid[BW_UUID_SIZE] = "the fsid";
static const char secret[] = "a secret that must not be in the dump";

/* A leaf, which is filled with secrets. */
struct leaf {
    uint8_t block[NODESIZE];
    struct bw_dumped_facts facts;
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
        .checksum_type = BW_CHECKSUM_CRC32C, .fsid = fsid, .names = sanitize ? &names : NULL};
    bw_dumped_block_clean(&rules, leaf->block, NODESIZE, scratch, &leaf->facts);
    assert_true(bw_checksum_matches_block(BW_CHECKSUM_CRC32C, leaf->block, NODESIZE));
    assert_memory_equal(((struct bw_disk_header *)leaf->block)->fsid, fsid, sizeof fsid);
}

static bool has_secret(const struct leaf *leaf)
{
    return memmem(leaf->block, NODESIZE, "secret", 6) != NULL;
}

static void test_outside(void **state)
{
    (void)state;
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
    bw_dumped_facts_free(&leaf.facts);
}

/* Contents, with a type that exists and with another one. */
static void test_contents(void **state)
{
    (void)state;
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
        bw_dumped_facts_free(&leaf.facts);
    }
}

/* In a tree of files, an item whose type damage has changed may contain names. */
static void test_wrong_types(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        struct leaf leaf;
        begin(&leaf, 1);
        ((struct bw_disk_header *)leaf.block)->owner = bw_put64(BW_FIRST_SUBVOLUME);
        set_item(&leaf, 0, (uint8_t)type, 3000, 500);
        clean(&leaf, true);
        if (has_secret(&leaf))
            fail_msg("type %u", type);
        bw_dumped_facts_free(&leaf.facts);
    }
}

static void test_overlapping(void **state)
{
    (void)state;
    struct leaf leaf;
    begin(&leaf, 4);
    set_item(&leaf, 0, BW_EXTENT_DATA, 3000, 500);
    memset(bytes_at(&leaf, 3000), 0, sizeof(struct bw_disk_file_extent));
    set_item(&leaf, 1, BW_INODE_ITEM, 3100, 160);  /* over the contents */
    set_item(&leaf, 2, BW_INODE_ITEM, 10, 160);    /* over the table of items */
    set_item(&leaf, 3, BW_INODE_ITEM, 3900, 5000); /* beyond the end */
    clean(&leaf, false);
    assert_false(has_secret(&leaf));
    assert_int_equal(leaf.facts.counts[BW_DUMPED_REMOVED], 3);
    bw_dumped_facts_free(&leaf.facts);
}

/* Without names: items with a name that is cut off, and items of unknown types. */
static void test_names(void **state)
{
    (void)state;
    static const uint8_t types[] = {BW_DIR_ITEM,     BW_DIR_INDEX,    BW_XATTR_ITEM,
                                    BW_INODE_REF,    BW_INODE_EXTREF, BW_ROOT_REF,
                                    BW_ROOT_BACKREF, BW_STRING_ITEM,  99};
    for (size_t i = 0; i < sizeof types; i++) {
        struct leaf leaf;
        begin(&leaf, 1);
        set_item(&leaf, 0, types[i], 3000, 500); /* the letters are great lengths */
        clean(&leaf, true);
        assert_false(has_secret(&leaf));
        bw_dumped_facts_free(&leaf.facts);
    }
}

/* Several entries in one item: each name is replaced, the values are removed. */
static void test_several(void **state)
{
    (void)state;
    struct leaf leaf;
    const uint32_t size = sizeof(struct bw_disk_dir_item) + 11 + 8;
    begin(&leaf, 1);
    set_item(&leaf, 0, BW_XATTR_ITEM, 3000, 2 * size);
    for (unsigned i = 0; i < 2; i++) {
        struct bw_disk_dir_item *entry = (void *)bytes_at(&leaf, 3000 + i * size);
        *entry = (struct bw_disk_dir_item){.name_length = bw_put16(11), .data_length = bw_put16(8)};
        memcpy(entry + 1, i ? "user.secret" : "system.name", 11);
    }
    clean(&leaf, true);
    assert_false(has_secret(&leaf));
    const char *first = (const char *)bytes_at(&leaf, 3000 + sizeof(struct bw_disk_dir_item));
    assert_memory_equal(first, "system.name", 11);
    assert_memory_equal(first + size, "user.", 5);
    assert_int_equal(bw_name_hash(first + size, 11), bw_name_hash("user.secret", 11));
    assert_int_equal(leaf.facts.counts[BW_DUMPED_XATTR_NAMES], 2);
    assert_int_equal(leaf.facts.counts[BW_DUMPED_XATTR_NAMES_REPLACED], 1);
    assert_int_equal(leaf.facts.xattr_name_count, 1);
    bw_dumped_facts_free(&leaf.facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),     cmocka_unit_test(test_contents),
        cmocka_unit_test(test_wrong_types), cmocka_unit_test(test_overlapping),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_several),
    };
    bw_error_free(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
