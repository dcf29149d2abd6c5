/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Items that hold several entries: directory entries, names of inodes, roots and references to
 * them.
 */
#include "ondisk/items.h"
#include "ondisk/node.h"
#include "support/walk_helpers.h"

static struct bw_disk_key disk_key(uint64_t objectid, uint8_t type, uint64_t offset)
{
    return (struct bw_disk_key){bw_put64(objectid), type, bw_put64(offset)};
}

static struct bw_item item_of(const uint8_t *bytes, size_t size, struct bw_key key)
{
    return (struct bw_item){key, bytes, (uint32_t)size};
}

static size_t put_entry(uint8_t *at, const char *name, uint16_t data_length, uint8_t type)
{
    const struct bw_disk_dir_item entry = {.location = disk_key(300, BW_INODE_ITEM, 0),
                                           .data_length = bw_put16(data_length),
                                           .name_length = bw_put16((uint16_t)strlen(name)),
                                           .type = type};
    memcpy(at, &entry, sizeof entry);
    memcpy(at + sizeof entry, name, strlen(name));
    memset(at + sizeof entry + strlen(name), 'D', data_length);
    return sizeof entry + strlen(name) + data_length;
}

static void test_dir_entries(void **state)
{
    uint8_t bytes[256];
    size_t size = put_entry(bytes, "one", 0, BW_FILE_REGULAR);
    size += put_entry(bytes + size, "three", 7, BW_FILE_DIRECTORY | 0x80);
    struct bw_item item = item_of(bytes, size, (struct bw_key){256, BW_DIR_ITEM, 1});
    struct bw_cursor cursor = bw_cursor_of(&item);
    struct bw_dir_entry entry;
    assert_true(bw_dir_entry_next(&cursor, &entry));
    assert_int_equal(entry.name_length, 3);
    assert_memory_equal(entry.name, "one", 3);
    assert_int_equal(entry.location.objectid, 300);
    assert_true(bw_dir_entry_next(&cursor, &entry));
    assert_memory_equal(entry.name, "three", 5);
    assert_int_equal(entry.type, BW_FILE_DIRECTORY);
    assert_false(bw_dir_entry_next(&cursor, &entry));
    assert_false(bw_cursor_bad(&cursor));
    for (size_t cut = 1; cut < size; cut++) {
        unsigned whole = 0;
        /* Copied to separate memory, so that reading too far is detected. */
        uint8_t *copy = malloc(cut);
        memcpy(copy, bytes, cut);
        item = item_of(copy, cut, item.key);
        for (cursor = bw_cursor_of(&item); bw_dir_entry_next(&cursor, &entry);)
            whole++;
        assert_int_equal(whole, cut >= 33);
        assert_int_equal(bw_cursor_bad(&cursor), cut != 33);
        free(copy);
    }
}

static void test_inode_refs(void **state)
{
    uint8_t bytes[64], extended[64];
    const struct bw_disk_inode_ref ref = {bw_put64(9), bw_put16(2)};
    const struct bw_disk_inode_extref extref = {bw_put64(777), bw_put64(8), bw_put16(3)};
    memcpy(bytes, &ref, sizeof ref);
    memcpy(bytes + 10, "ab", 2);
    memcpy(bytes + 12, bytes, 12);
    memcpy(extended, &extref, sizeof extref);
    memcpy(extended + 18, "xyz", 3);
    for (size_t size = 0; size <= 24; size++) {
        struct bw_item item = item_of(bytes, size, (struct bw_key){300, BW_INODE_REF, 256});
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_inode_ref found;
        unsigned count = 0;
        for (; bw_inode_ref_next(&cursor, &item.key, &found); count++) {
            assert_int_equal(found.parent, 256);
            assert_int_equal(found.index, 9);
            assert_memory_equal(found.name, "ab", 2);
        }
        assert_int_equal(count, size / 12);
        assert_int_equal(bw_cursor_bad(&cursor), size % 12 != 0);
    }
    for (size_t size = 0; size <= 21; size++) {
        struct bw_item item = item_of(extended, size, (struct bw_key){300, BW_INODE_EXTREF, 12345});
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_inode_ref found;
        assert_int_equal(bw_inode_ref_next(&cursor, &item.key, &found), size == 21);
        assert_int_equal(bw_cursor_bad(&cursor), size != 0 && size != 21);
        if (size == 21) {
            assert_int_equal(found.parent, 777);
            assert_int_equal(found.index, 8);
            assert_memory_equal(found.name, "xyz", 3);
        }
    }
}

static void test_root_items(void **state)
{
    struct bw_disk_root_item disk = {.generation = bw_put64(7),
                                     .bytenr = bw_put64(65536),
                                     .last_snapshot = bw_put64(6),
                                     .reference_count = bw_put32(1),
                                     .level = 3,
                                     .generation_v2 = bw_put64(7),
                                     .parent_uuid = {1}};
    struct bw_root_item root;
    struct bw_item item =
        item_of((const void *)&disk, sizeof disk, (struct bw_key){256, BW_ROOT_ITEM, 0});
    expect_success(bw_root_item_decode(&item, &root));
    assert_int_equal(root.root.bytenr, 65536);
    assert_int_equal(root.root.generation, 7);
    assert_int_equal(root.root.level, 3);
    assert_int_equal(root.last_snapshot, 6);
    assert_true(root.is_snapshot);
    disk.generation_v2 = bw_put64(6); /* an old kernel wrote last */
    expect_success(bw_root_item_decode(&item, &root));
    assert_false(root.is_snapshot);
    disk.generation_v2 = bw_put64(7);
    for (item.size = 239; item.size < sizeof disk; item.size++) {
        expect_success(bw_root_item_decode(&item, &root));
        assert_false(root.is_snapshot);
    }
    item.size = 238;
    expect_error(bw_root_item_decode(&item, &root), BW_ERROR_CORRUPT, "invalid size 238");
    item.size = 0;
    expect_error(bw_root_item_decode(&item, &root), BW_ERROR_CORRUPT, "invalid size 0");
    item.size = sizeof disk;
    disk.level = 8;
    expect_error(bw_root_item_decode(&item, &root), BW_ERROR_CORRUPT, "invalid level 8");
}

static void test_root_refs(void **state)
{
    uint8_t bytes[64];
    const struct bw_disk_root_ref disk = {bw_put64(257), bw_put64(4), bw_put16(5)};
    memcpy(bytes, &disk, sizeof disk);
    memcpy(bytes + sizeof disk, "child", 5);
    for (size_t size = 0; size <= 23; size++) {
        struct bw_root_ref ref;
        struct bw_item item = item_of(bytes, size, (struct bw_key){256, BW_ROOT_BACKREF, 5});
        assert_int_equal(bw_root_ref_decode(&item, &ref), size == 23);
        if (size < 23)
            continue;
        assert_int_equal(ref.directory, 257);
        assert_int_equal(ref.index, 4);
        assert_memory_equal(ref.name, "child", 5);
    }
}
