/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk: trees, keys and ranges of keys as text, in both directions; formats of other images.
 */
#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "ondisk/foreign.h"
#include "ondisk/structure.h"
#include "ondisk/tree_title.h"
#include "support/walk_helpers.h"

static void test_tree_ids(void **state)
{
    static const struct {
        const char *text;
        uint64_t id;
    } cases[] = {
        {"5", 5},
        {"fs", 5},
        {"FS_TREE", 5},
        {"BTRFS_FS_TREE_OBJECTID", 5},
        {"-9", BW_DATA_RELOC_TREE},
        {"data-reloc", BW_DATA_RELOC_TREE},
        {"DATA_RELOC_TREE", BW_DATA_RELOC_TREE},
        {"device", BW_DEVICE_TREE},
        {"checksum", BW_CSUM_TREE},
        {"TREE_LOG", BW_TREE_LOG},
        {"tree-reloc", BW_TREE_RELOC},
        {"18446744073709551615", UINT64_MAX},
        {"free_space_tree", BW_FREE_SPACE_TREE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t id = 0;
        expect_success(bw_tree_id_parse(cases[i].text, &id));
        assert_int_equal(id, cases[i].id);
    }
    static const char *const unknown[] = {
        "",
        "-",
        "5x",
        "x5",
        "-tree",
        "tree",
        "18446744073709551616",
        "btrfs-",
        /* longer than any name, and a name as its beginning */
        "extent-extent-extent-extent-extent-extent-extent-extent-extent-extent-extent",
    };
    for (size_t i = 0; i < COUNT(unknown); i++) {
        uint64_t id;
        expect_error(bw_tree_id_parse(unknown[i], &id), BW_ERROR_USAGE,
                     "give an id or one of root, extent, chunk");
    }
    for (size_t i = 0; bw_tree_names[i]; i++) {
        uint64_t id;
        expect_success(bw_tree_id_parse(bw_tree_names[i], &id));
        const struct bw_tree_title title = bw_tree_title(id);
        assert_int_equal(strncmp(title.text, "the ", 4) == 0, id != BW_TOP_SUBVOLUME);
    }
    assert_string_equal(bw_tree_title(5).text, "subvolume 5");
    assert_string_equal(bw_tree_title(256).text, "subvolume 256");
    assert_string_equal(bw_tree_title(255).text, "tree 255");
    assert_string_equal(bw_tree_title(UINT64_MAX - 255).text, "tree 18446744073709551360");
}

static void test_key_ranges(void **state)
{
    static const struct {
        const char *text;
        struct bw_key first, last;
    } cases[] = {
        {"256", {256, 0, 0}, {256, UINT8_MAX, UINT64_MAX}},
        {"256,1", {256, 1, 0}, {256, 1, UINT64_MAX}},
        {"256,inode_item,7", {256, BW_INODE_ITEM, 7}, {256, BW_INODE_ITEM, 7}},
        {"256 INODE_ITEM 7", {256, BW_INODE_ITEM, 7}, {256, BW_INODE_ITEM, 7}},
        {"256..257,1", {256, 0, 0}, {257, 1, UINT64_MAX}},
        {"..257", {0, 0, 0}, {257, UINT8_MAX, UINT64_MAX}},
        {"256..", {256, 0, 0}, {UINT64_MAX, UINT8_MAX, UINT64_MAX}},
        {"orphan,48,-1",
         {BW_ORPHAN, BW_ORPHAN_ITEM, UINT64_MAX},
         {BW_ORPHAN, BW_ORPHAN_ITEM, UINT64_MAX}},
        {"DEV_ITEMS", {1, 0, 0}, {1, UINT8_MAX, UINT64_MAX}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_key first, last;
        expect_success(bw_key_range_parse(cases[i].text, &first, &last));
        assert_int_equal(bw_key_compare(&first, &cases[i].first), 0);
        assert_int_equal(bw_key_compare(&last, &cases[i].last), 0);
    }
    static const struct {
        const char *text, *problem;
    } wrong[] = {
        {"", "a range of keys is empty"},
        {"x", "the object id is not a number"},
        {",1", "the object id is not a number"},
        {"1,NO_ITEM", "the type is unknown"},
        {"1,256", "the type is unknown"},
        {"1,INODE", "the type is unknown"},
        {"1,INODE_ITEM_", "the type is unknown"},
        {"1,1,x", "the offset is not a number"},
        {"1,1,", "nothing follows the comma"},
        {"1,", "nothing follows the comma"},
        {"1,1,1,1", "it has more than three parts"},
        {"1..1,1,x", "the offset is not a number"},
        {"x..1", "the object id is not a number"},
        {"2..1", "the range of keys '2..1' ends before it begins"},
        {"1,2..1,1", "ends before it begins"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct bw_key first, last;
        expect_error(bw_key_range_parse(wrong[i].text, &first, &last), BW_ERROR_USAGE,
                     wrong[i].problem);
    }
}

/* The name of an object id depends on the type. */
static void test_key_texts(void **state)
{
    static const struct {
        struct bw_key key;
        const char *text;
    } cases[] = {
        {{256, BW_INODE_ITEM, 0}, "(256 INODE_ITEM 0)"},
        {{BW_ORPHAN, BW_ORPHAN_ITEM, 257}, "(ORPHAN ORPHAN_ITEM 257)"},
        {{BW_FREE_SPACE_OBJECT, BW_UNTYPED, 4096}, "(FREE_SPACE UNTYPED 4096)"},
        {{256, BW_UNTYPED, 4096}, "(256 UNKNOWN.0 4096)"},
        {{0, BW_PERSISTENT_ITEM, 1}, "(DEV_STATS PERSISTENT_ITEM 1)"},
        {{1, BW_PERSISTENT_ITEM, 1}, "(1 PERSISTENT_ITEM 1)"},
        {{1, BW_DEVICE_EXTENT, 65536}, "(1 DEV_EXTENT 65536)"},
        {{1, BW_DEVICE_ITEM, 2}, "(DEV_ITEMS DEV_ITEM 2)"},
        {{2, BW_DEVICE_ITEM, 2}, "(EXTENT_TREE DEV_ITEM 2)"},
        {{256, BW_CHUNK_ITEM, 65536}, "(FIRST_CHUNK_TREE CHUNK_ITEM 65536)"},
        {{257, BW_CHUNK_ITEM, 65536}, "(257 CHUNK_ITEM 65536)"},
        {{0, BW_QGROUP_INFO, (UINT64_C(3) << 48) + 7}, "(0 QGROUP_INFO 3/7)"},
        {{0, BW_QGROUP_LIMIT, 256}, "(0 QGROUP_LIMIT 0/256)"},
        {{(UINT64_C(1) << 48) + 5, BW_QGROUP_RELATION, 256}, "(1/5 QGROUP_RELATION 0/256)"},
        {{255, BW_UUID_SUBVOLUME, 1}, "(0x00000000000000ff UUID_KEY_SUBVOL 0x0000000000000001)"},
        {{1, BW_UUID_RECEIVED, 254},
         "(0x0000000000000001 UUID_KEY_RECEIVED_SUBVOL 0x00000000000000fe)"},
        {{BW_TREE_RELOC, BW_ROOT_ITEM, 5}, "(TREE_RELOC ROOT_ITEM FS_TREE)"},
        {{256, BW_ROOT_ITEM, UINT64_MAX}, "(256 ROOT_ITEM 18446744073709551615)"},
        {{256, BW_DIR_INDEX, UINT64_MAX}, "(256 DIR_INDEX -1)"},
        {{BW_SYNOLOGY_FIRST_TREE, BW_ROOT_ITEM, 0}, "(SYNOLOGY_USER_QUOTA_TREE ROOT_ITEM 0)"},
        {{204, BW_ROOT_ITEM, 0}, "(204 ROOT_ITEM 0)"},
        {{UINT64_MAX - 20, BW_ROOT_ITEM, 0}, "(18446744073709551595 ROOT_ITEM 0)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[BW_KEY_TEXT];
        BW_AUTO_BUFFER struct bw_buffer appended = {0};
        assert_string_equal(bw_key_text(&cases[i].key, text), cases[i].text);
        bw_print_key(&appended, &cases[i].key);
        assert_int_equal(appended.length, strlen(text));
        assert_memory_equal(appended.data, text, appended.length);
    }
    char text[BW_KEY_TEXT];
    assert_string_equal(bw_tree_id_text(5, text), "FS_TREE");
    assert_string_equal(bw_tree_id_text(256, text), "256");
}

/* Magics are compared completely, and never behind the end of the bytes. */
static void test_foreign_formats(void **state)
{
    uint8_t bytes[512] = "QFI\xfb";
    assert_string_equal(bw_foreign_by_magic(bytes, 4)->name, "a qcow2 image");
    assert_null(bw_foreign_by_magic(bytes, 3));
    bytes[3] = 0;
    assert_null(bw_foreign_by_magic(bytes, sizeof bytes));
    memcpy(bytes + 257, "ustar", 5);
    assert_string_equal(bw_foreign_by_magic(bytes, 262)->name, "a tar archive");
    assert_null(bw_foreign_by_magic(bytes, 261));
    assert_null(bw_foreign_by_magic(bytes, 0));
    assert_string_equal(bw_foreign_by_type("gpt")->name, "a disk with a GPT partition table");
    assert_null(bw_foreign_by_type("gp"));
}
