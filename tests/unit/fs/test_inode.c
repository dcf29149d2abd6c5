/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about an inode: reading one or many inodes, entries, links, attributes, access control
 * lists, numbers of extents. */
#include "btrfs-walk/inode.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "fs/lookup.h"
#include "ondisk/acl.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

/* Spoils the leaf that holds a key. */
static void lose_leaf_of(const struct fixture *fixture, struct bw_key key)
{
    const struct iw_block *leaf = iw_block_of_key(fixture->image, FS, key);
    iw_corrupt(fixture->image, leaf->logical, IW_ALL_COPIES, 0, 100, IW_ZERO);
}

static void test_inodes(void **state)
{
    struct fixture fixture = make_fixture();
    iw_shape(fixture.image, FS, 3, 0, 0);
    struct bw_wanted_inode wanted[40] = {0};
    char name[16];
    for (size_t i = 0; i < 39; i++) {
        snprintf(name, sizeof name, "%zu", i);
        wanted[i].number =
            iw_make(fixture.image, FS, TOP, name, i % 2 ? BW_FILE_FIFO : BW_FILE_REGULAR);
        if (i % 3 == 0)
            iw_property(fixture.image, FS, wanted[i].number, "user.a", "x");
        if (i % 5 == 0)
            iw_property(fixture.image, FS, wanted[i].number, i % 2 ? BW_ACL_ACCESS : BW_ACL_DEFAULT,
                        "x");
    }
    wanted[39].number = wanted[38].number + 100;
    open_fixture(&fixture);
    struct bw_inode inode;
    expect_success(bw_inode_read(fixture.fs, &fixture.top->tree, wanted[1].number, &inode));
    assert_int_equal(inode.mode & 0170000, 010000);
    expect_error(bw_inode_read(fixture.fs, &fixture.top->tree, wanted[39].number, &inode),
                 BW_ERROR_NOT_FOUND, "there is no inode");
    expect_success(bw_inodes_get(fixture.fs, fixture.top, wanted, COUNT(wanted), true));
    for (size_t i = 0; i < 39; i++) {
        assert_true(wanted[i].found);
        assert_int_equal(wanted[i].has_acl, i % 5 == 0);
        assert_int_equal(wanted[i].inode.mode & 0170000, i % 2 ? 010000 : 0100000);
    }
    assert_false(wanted[39].found);
    close_fixture(&fixture);
}

static void test_lost_inodes(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_wanted_inode wanted[40] = {0};
    char name[16];
    iw_shape(fixture.image, FS, 4, 0, 0);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        snprintf(name, sizeof name, "%zu", i);
        wanted[i].number = iw_file(fixture.image, FS, TOP, name);
    }
    iw_write_memory(fixture.image);
    lose_leaf_of(&fixture, (struct bw_key){wanted[20].number, BW_INODE_ITEM, 0});
    open_written(&fixture);
    expect_success(bw_inodes_get(fixture.fs, fixture.top, wanted, COUNT(wanted), false));
    size_t found = 0;
    for (size_t i = 0; i < COUNT(wanted); i++)
        found += wanted[i].found;
    assert_in_range(found, COUNT(wanted) - 4, COUNT(wanted) - 1);
    assert_false(wanted[20].found);
    assert_int_equal(fixture.log.counts[BW_DAMAGE], 1);
    struct bw_inode inode;
    expect_error(bw_inode_read(fixture.fs, &fixture.top->tree, wanted[20].number, &inode),
                 BW_ERROR_CORRUPT, NULL);
    close_fixture(&fixture);
}

/* Names of a directory, each after a space. */
static void append_name(void *context, const struct bw_directory_entry *entry)
{
    struct bw_buffer *names = context;
    bw_buffer_append_byte(names, ' ');
    bw_buffer_append(names, entry->name, entry->name_length);
    if (bw_place_is_empty(&entry->place))
        bw_buffer_append_byte(names, '*');
}

static void read_directory(struct bw_fs *fs, const struct bw_place *place,
                           void (*take)(void *context, const struct bw_directory_entry *entry),
                           void *context)
{
    struct bw_directory *directory;
    const struct bw_directory_entry *entry;
    expect_success(bw_directory_open(fs, place, BW_DIRECTORY_START, &directory));
    while (expect_success(bw_directory_next(directory, &entry)), entry)
        take(context, entry);
    bw_directory_close(directory);
}

static void expect_names(struct fixture *fixture, const struct bw_place *directory,
                         const char *expected)
{
    struct bw_buffer names = {0};
    read_directory(fixture->fs, directory, append_name, &names);
    assert_string_equal(bw_buffer_text(&names), expected);
    bw_buffer_free(&names);
}

static void test_directory(void **state)
{
    struct fixture fixture = make_fixture();
    iw_file(fixture.image, FS, TOP, "z");
    iw_directory(fixture.image, FS, TOP, "y");
    iw_subvolume(fixture.image, 256, FS, TOP, "sub", 0);
    iw_subvolume(fixture.image, 257, 256, TOP, "nest", 0);
    iw_file(fixture.image, 256, TOP, "a");
    iw_snapshot(fixture.image, 300, 256, FS, TOP, "snap", 0);
    const struct iw_entry bad = {.directory = TOP,
                                 .name = "a/b",
                                 .type = BW_FILE_REGULAR,
                                 .location = {TOP, BW_INODE_ITEM, 0}};
    iw_entry(fixture.image, FS, &bad);
    const struct iw_entry nowhere = {
        .directory = TOP, .name = "nowhere", .type = BW_FILE_REGULAR, .location = {1, 2, 3}};
    iw_entry(fixture.image, FS, &nowhere);
    open_fixture(&fixture);
    struct bw_place place = bw_place_top(bw_subvolume_by_id(fixture.fs, FS));
    expect_names(&fixture, &place, " z y sub snap");
    assert_int_equal(report_log_count(&fixture.log, "invalid name"), 1);
    assert_int_equal(report_log_count(&fixture.log, "points to (1 2 3)"), 1);
    place = bw_place_top(bw_subvolume_by_id(fixture.fs, 256));
    expect_names(&fixture, &place, " nest a");
    place = bw_place_top(bw_subvolume_by_id(fixture.fs, 300));
    expect_names(&fixture, &place, " nest* a");
    place.inode = BW_EMPTY_DIRECTORY;
    expect_names(&fixture, &place, "");
    close_fixture(&fixture);
}

static void count_name(void *context, const struct bw_directory_entry *entry)
{
    size_t *counts = context, number = 0;
    assert_int_equal(sscanf(entry->name, "file %zu", &number), 1);
    counts[number]++;
}

/* Each name once, although leaves with directory indexes, or with both kinds of items, are lost. */
static void check_lost(bool both)
{
    struct fixture fixture = make_fixture();
    char name[32];
    size_t counts[60] = {0};
    iw_shape(fixture.image, FS, 10, 0, 0);
    for (size_t i = 0; i < COUNT(counts); i++) {
        snprintf(name, sizeof name, "file %zu:", i);
        iw_file(fixture.image, FS, TOP, name);
    }
    iw_write_memory(fixture.image);
    lose_leaf_of(&fixture, (struct bw_key){TOP, BW_DIR_INDEX, 30});
    for (size_t i = 20; both && i < 40; i++) {
        snprintf(name, sizeof name, "file %zu:", i);
        lose_leaf_of(&fixture, (struct bw_key){TOP, BW_DIR_ITEM, bw_name_hash(name, strlen(name))});
    }
    open_written(&fixture);
    const struct bw_place place = bw_place_top(bw_subvolume_by_id(fixture.fs, FS));
    read_directory(fixture.fs, &place, count_name, counts);
    for (size_t i = 0; i < COUNT(counts); i++)
        assert_int_equal(counts[i], 1);
    assert_true(fixture.log.counts[BW_DAMAGE] >= 1);
    close_fixture(&fixture);
}

static void test_lost_index(void **state)
{
    check_lost(false);
    check_lost(true);
}

static void put_extent(struct fixture *fixture, uint64_t inode, uint64_t offset, uint8_t type,
                       uint8_t compression, const void *data, size_t length, uint64_t ram_bytes)
{
    struct {
        struct bw_disk_file_extent head;
        uint8_t data[4096];
    } item = {.head = {.generation = bw_put64(10),
                       .ram_bytes = bw_put64(ram_bytes),
                       .compression = compression,
                       .type = type}};
    size_t size = sizeof item.head;
    if (type == BW_FILE_EXTENT_INLINE) {
        size = offsetof(struct bw_disk_file_extent, disk_bytenr);
        memcpy((uint8_t *)&item + size, data, length);
        size += length;
    } else {
        item.head.disk_bytenr = bw_put64(length ? 1 << 20 : 0);
        item.head.disk_num_bytes = bw_put64(length);
        item.head.num_bytes = bw_put64(ram_bytes);
    }
    iw_item(fixture->image, FS, (struct bw_key){inode, BW_EXTENT_DATA, offset}, &item, size);
}

static void expect_target(struct fixture *fixture, uint64_t inode, const char *expected)
{
    struct bw_buffer target = {0};
    bw_buffer_append(&target, "=", 1);
    expect_success(bw_symlink_read(fixture->fs, &fixture->top->tree, inode, &target));
    assert_int_equal(target.length, 1 + strlen(expected));
    assert_memory_equal(target.data + 1, expected, strlen(expected));
    bw_buffer_free(&target);
}

static void test_symlinks(void **state)
{
    /* "compressed" as zlib stores it, without compressing it. */
    static const uint8_t zlib[] = {0x78, 0x01, 0x01, 0x0a, 0x00, 0xf5, 0xff, 'c', 'o', 'm', 'p',
                                   'r',  'e',  's',  's',  'e',  'd',  0,    0,   0,   0};
    struct fixture fixture = make_fixture();
    uint64_t plain = iw_symlink(fixture.image, FS, TOP, "plain", "../a b/\xff");
    uint64_t cut = iw_make(fixture.image, FS, TOP, "cut", BW_FILE_SYMLINK);
    iw_inline_data(fixture.image, FS, cut, "to\0rest", 7);
    uint64_t packed = iw_make(fixture.image, FS, TOP, "packed", BW_FILE_SYMLINK);
    put_extent(&fixture, packed, 0, BW_FILE_EXTENT_INLINE, BW_COMPRESS_ZLIB, zlib, sizeof zlib, 10);
    uint64_t broken = iw_make(fixture.image, FS, TOP, "broken", BW_FILE_SYMLINK);
    put_extent(&fixture, broken, 0, BW_FILE_EXTENT_INLINE, BW_COMPRESS_ZSTD, zlib, sizeof zlib, 10);
    uint64_t regular = iw_make(fixture.image, FS, TOP, "regular", BW_FILE_SYMLINK);
    put_extent(&fixture, regular, 0, BW_FILE_EXTENT_REGULAR, BW_COMPRESS_NONE, NULL, 4096, 4096);
    uint64_t empty = iw_make(fixture.image, FS, TOP, "empty", BW_FILE_SYMLINK);
    open_fixture(&fixture);
    expect_target(&fixture, plain, "../a b/\xff");
    expect_target(&fixture, cut, "to");
    expect_target(&fixture, packed, "compressed");
    struct bw_buffer target = {0};
    expect_error(bw_symlink_read(fixture.fs, &fixture.top->tree, broken, &target), BW_ERROR_CORRUPT,
                 "zstd");
    expect_error(bw_symlink_read(fixture.fs, &fixture.top->tree, regular, &target),
                 BW_ERROR_CORRUPT, "not inline");
    expect_error(bw_symlink_read(fixture.fs, &fixture.top->tree, empty, &target),
                 BW_ERROR_NOT_FOUND, "no target");
    assert_int_equal(target.length, 0);
    bw_buffer_free(&target);
    close_fixture(&fixture);
}

/* Names in INODE_REF and in INODE_EXTREF, which follow each other. */
static void test_hard_links(void **state)
{
    struct fixture fixture = make_fixture();
    const uint64_t directory = iw_directory(fixture.image, FS, TOP, "d");
    const uint64_t file = iw_file(fixture.image, FS, TOP, "first");
    iw_link(fixture.image, FS, file, TOP, "second");
    iw_link_extended(fixture.image, FS, file, directory, "third");
    open_fixture(&fixture);
    const struct bw_place place = {bw_subvolume_by_id(fixture.fs, FS), file, BW_FILE_REGULAR, TOP};
    struct bw_buffer names = {0};
    struct bw_hard_links *links;
    expect_success(bw_hard_links_open(fixture.fs, &place, &links));
    for (const struct bw_inode_name *name; (name = bw_hard_links_next(links));) {
        bw_buffer_format(&names, "%s/", name->directory == directory ? "d" : "");
        bw_buffer_append(&names, name->name, name->name_length);
        bw_buffer_append_byte(&names, ' ');
    }
    expect_success(bw_hard_links_close(links));
    assert_string_equal(bw_buffer_text(&names), "/first /second d/third ");
    bw_buffer_free(&names);
    close_fixture(&fixture);
}

static struct bw_error *append_xattr(void *context, const struct bw_xattr *xattr)
{
    struct bw_buffer *text = context;
    bw_buffer_append(text, xattr->name, xattr->name_length);
    bw_buffer_append_byte(text, '=');
    bw_buffer_append(text, xattr->value, xattr->value_length);
    bw_buffer_append_byte(text, ';');
    return NULL;
}

static void test_xattrs(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t file = iw_file(fixture.image, FS, TOP, "file"),
             other = iw_file(fixture.image, FS, TOP, "other");
    /* The same hash: one item. */
    iw_property(fixture.image, FS, file, "081763fa5c", "one");
    iw_property(fixture.image, FS, file, "fff22fd34c", "");
    iw_property(fixture.image, FS, other, "user.a", "whole");
    struct bw_key key = {other, BW_XATTR_ITEM, bw_name_hash("user.a", 6)};
    size_t size;
    uint8_t *bytes = iw_item_bytes(fixture.image, FS, key, &size);
    uint8_t copy[256];
    memcpy(copy, bytes, size);
    key.offset++;
    iw_item(fixture.image, FS, key, copy, size - 1); /* cut off */
    open_fixture(&fixture);
    struct bw_buffer text = {0};
    expect_success(bw_inode_xattrs(fixture.fs,
                                   &(struct bw_place){.subvolume = fixture.top, .inode = file},
                                   append_xattr, &text));
    assert_string_equal(bw_buffer_text(&text), "081763fa5c=one;fff22fd34c=;");
    assert_int_equal(fixture.log.counts[BW_DAMAGE], 0);
    text.length = 0;
    expect_success(bw_inode_xattrs(fixture.fs,
                                   &(struct bw_place){.subvolume = fixture.top, .inode = other},
                                   append_xattr, &text));
    assert_string_equal(bw_buffer_text(&text), "user.a=whole;");
    assert_int_equal(report_log_count(&fixture.log, "attribute is cut off"), 1);
    text.length = 0;
    expect_success(bw_inode_xattrs(fixture.fs,
                                   &(struct bw_place){.subvolume = fixture.top, .inode = TOP},
                                   append_xattr, &text));
    assert_int_equal(text.length, 0);

    /* Damage is reported once, at the end of its item. */
    struct bw_xattrs *xattrs;
    expect_success(bw_xattrs_open(
        fixture.fs, &(struct bw_place){.subvolume = fixture.top, .inode = other}, &xattrs));
    const struct bw_xattr *xattr = bw_xattrs_next(xattrs);
    assert_non_null(xattr);
    assert_int_equal(xattr->value_length, 5);
    assert_null(bw_xattrs_next(xattrs));
    assert_null(bw_xattrs_next(xattrs));
    expect_success(bw_xattrs_close(xattrs));
    expect_success(bw_xattrs_close(NULL));
    assert_int_equal(report_log_count(&fixture.log, "attribute is cut off"), 2);
    bw_buffer_free(&text);
    close_fixture(&fixture);
}

static void test_extent_count(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t file = iw_file(fixture.image, FS, TOP, "file");
    put_extent(&fixture, file, 0, BW_FILE_EXTENT_REGULAR, BW_COMPRESS_ZSTD, NULL, 4096, 8192);
    put_extent(&fixture, file, 8192, BW_FILE_EXTENT_REGULAR, BW_COMPRESS_NONE, NULL, 4096, 4096);
    put_extent(&fixture, file, 12288, BW_FILE_EXTENT_PREALLOC, BW_COMPRESS_NONE, NULL, 4096, 4096);
    put_extent(&fixture, file, 16384, BW_FILE_EXTENT_REGULAR, BW_COMPRESS_NONE, NULL, 0, 4096);
    put_extent(&fixture, file, 20480, 77, BW_COMPRESS_NONE, NULL, 4096, 4096);
    open_fixture(&fixture);
    struct bw_extent_count count;
    expect_success(bw_file_count_extents(
        fixture.fs, &(struct bw_place){.subvolume = fixture.top, .inode = file}, &count));
    assert_int_equal(count.total, 4);
    assert_int_equal(count.regular, 2);
    assert_int_equal(count.unwritten, 1);
    assert_int_equal(count.holes, 1);
    assert_int_equal(count.compressions[BW_COMPRESS_ZSTD], 1);
    assert_int_equal(count.compressions[BW_COMPRESS_NONE], 2);
    assert_int_equal(report_log_count(&fixture.log, "invalid type 77"), 1);
    close_fixture(&fixture);
}

#define ACL_ENTRY(tag, permissions, id) tag, 0, permissions, 0, (id)&255, (id) >> 8 & 255, 0, 0

static void test_acls(void **state)
{
    static const uint8_t list[] = {2,
                                   0,
                                   0,
                                   0,
                                   ACL_ENTRY(1, 7, 0),
                                   ACL_ENTRY(2, 6, 1000),
                                   ACL_ENTRY(4, 5, 0),
                                   ACL_ENTRY(8, 4, 5),
                                   ACL_ENTRY(16, 3, 0),
                                   ACL_ENTRY(32, 0, 0)};
    static const char text[] =
        "# user::rwx\n# user:1000:rw-\n# group::r-x\n# group:5:r--\n# mask::-wx\n"
        "# other::---\n";
    struct bw_buffer buffer = {0};
    assert_true(bw_acl_append_text(list, sizeof list, "# ", &buffer));
    assert_int_equal(buffer.length, strlen(text));
    assert_memory_equal(buffer.data, text, buffer.length);
    buffer.length = 0;
    assert_true(bw_acl_append_text(list, 4, "", &buffer));
    assert_false(bw_acl_append_text(list, 3, "", &buffer));
    assert_false(bw_acl_append_text(list, 0, "", &buffer));
    assert_false(bw_acl_append_text(list, sizeof list - 1, "", &buffer));
    uint8_t bad[sizeof list];
    for (size_t i = 0; i < 3; i++) {
        static const size_t places[] = {0, 4 + 5 * 8, 4 + 5 * 8 + 2}; /* version, a tag, permissions
                                                                       */
        memcpy(bad, list, sizeof list);
        bad[places[i]] = 9;
        assert_false(bw_acl_append_text(bad, sizeof bad, "", &buffer));
    }
    assert_int_equal(buffer.length, 0);
    bw_buffer_free(&buffer);
    struct bw_xattr xattr = {.name = (const uint8_t *)BW_ACL_DEFAULT, .name_length = 24};
    bool is_default;
    assert_true(bw_xattr_is_acl(&xattr, &is_default) && is_default);
    xattr.name = (const uint8_t *)BW_ACL_ACCESS;
    xattr.name_length = 23;
    assert_true(bw_xattr_is_acl(&xattr, &is_default) && !is_default);
    xattr.name_length = 22;
    assert_false(bw_xattr_is_acl(&xattr, &is_default));
}

/* Lists that take the place of others have as many entries, in the order that the kernel wants. */
static void test_filled_acls(void **state)
{
    static const char *const texts[] = {
        [0] = "",
        [3] = "user::r-x\ngroup::r-x\nother::r-x\n",
        [4] = "user::r-x\ngroup::r-x\nmask::r-x\nother::r-x\n",
        [6] = "user::r-x\nuser:0:r-x\nuser:0:r-x\ngroup::r-x\nmask::r-x\nother::r-x\n",
    };
    for (size_t count = 0; count < sizeof texts / sizeof *texts; count++) {
        uint8_t bytes[4 + 8 * 6] = {0};
        struct bw_buffer buffer = {0};
        bw_acl_fill(bytes, 4 + 8 * count);
        assert_true(bw_acl_append_text(bytes, 4 + 8 * count, "", &buffer));
        bw_buffer_append_byte(&buffer, '\0');
        if (texts[count])
            assert_string_equal(buffer.data, texts[count]);
        bw_buffer_free(&buffer);
    }
    uint8_t bytes[11] = {0}; /* the length of no list */
    static const uint8_t zeros[sizeof bytes];
    bw_acl_fill(bytes, sizeof bytes);
    bw_acl_fill(bytes, 3);
    assert_memory_equal(bytes, zeros, sizeof bytes);
}

static void test_flag_names(void **state)
{
    assert_string_equal(bw_inode_flag_name(0), "NODATASUM");
    assert_string_equal(bw_inode_flag_name(11), "COMPRESS");
    assert_string_equal(bw_inode_flag_name(32), "VERITY");
    assert_null(bw_inode_flag_name(12));
    assert_null(bw_inode_flag_name(64));
}
