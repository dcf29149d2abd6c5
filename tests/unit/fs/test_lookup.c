/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From paths to inodes: names, hashes, subvolumes, "..", links; and what of that survives damage.
 */
#include "btree/find_leaf.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

/* Two pairs of names that have the same hash. */
static const char *const collisions[] = {"081763fa5c", "fff22fd34c", "3519a2105c", "a06ea6bb7a"};

static void expect_place(const struct fixture *fixture, const char *path, bool follow,
                         uint64_t subvolume, uint64_t inode, uint8_t type)
{
    struct bw_place place;
    struct bw_error *error = bw_lookup(fixture->fs, NULL, path, follow, &place);
    if (error)
        print_message("%s: %s\n", path, error->message);
    expect_success(error);
    assert_int_equal(place.subvolume->tree.id, subvolume);
    assert_int_equal(place.inode, inode);
    assert_int_equal(place.type, type);
}

static void expect_nothing(const struct fixture *fixture, const char *path, const char *reason)
{
    struct bw_place place;
    expect_error(bw_lookup(fixture->fs, NULL, path, true, &place), BW_ERROR_NOT_FOUND, reason);
}

static void test_names(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t a = iw_directory(fixture.image, FS, TOP, "a"),
             b = iw_directory(fixture.image, FS, a, "b");
    uint64_t file = iw_file(fixture.image, FS, b, "file");
    char longest[BW_NAME_MAX + 2] = "";
    memset(longest, 'x', BW_NAME_MAX);
    uint64_t long_one = iw_file(fixture.image, FS, TOP, longest);
    uint64_t bytes = iw_file(fixture.image, FS, TOP, "\xff\n ");
    open_fixture(&fixture);
    static const char *const top[] = {
        "/", "//", ".", "/..", "a/..", "/a/b/../../..", "a/./b/.././.."};
    for (size_t i = 0; i < COUNT(top); i++)
        expect_place(&fixture, top[i], false, FS, TOP, BW_FILE_DIRECTORY);
    static const char *const same[] = {"/a/b/file", "a/b/file", "//a///b/./file",
                                       "/../a/b/../b/file"};
    for (size_t i = 0; i < COUNT(same); i++)
        expect_place(&fixture, same[i], false, FS, file, BW_FILE_REGULAR);
    expect_place(&fixture, "/a/b/", false, FS, b, BW_FILE_DIRECTORY);
    expect_place(&fixture, longest, false, FS, long_one, BW_FILE_REGULAR);
    expect_place(&fixture, "\xff\n ", false, FS, bytes, BW_FILE_REGULAR);
    longest[BW_NAME_MAX] = 'x';
    expect_nothing(&fixture, longest, "no such file");
    expect_nothing(&fixture, "", "'': no such file");
    expect_nothing(&fixture, "/a/c/file", "/a/c/file: no such file");
    expect_nothing(&fixture, "/a/b/fil", "no such file");
    expect_nothing(&fixture, "/a/b/file/", "not a directory");
    expect_nothing(&fixture, "/a/b/file/x", "not a directory");
    expect_nothing(&fixture, "/a/b/file/..", "not a directory");
    close_fixture(&fixture);
}

static void test_equal_hashes(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t inodes[COUNT(collisions)];
    for (size_t i = 0; i < COUNT(collisions); i++)
        inodes[i] = iw_file(fixture.image, FS, TOP, collisions[i]);
    uint32_t hash = bw_name_hash(collisions[0], strlen(collisions[0]));
    assert_int_equal(hash, bw_name_hash(collisions[1], strlen(collisions[1])));
    iw_remove_entry(fixture.image, FS, TOP, collisions[2]);
    open_fixture(&fixture);
    expect_place(&fixture, collisions[0], false, FS, inodes[0], BW_FILE_REGULAR);
    expect_place(&fixture, collisions[1], false, FS, inodes[1], BW_FILE_REGULAR);
    expect_nothing(&fixture, collisions[2], "no such file");
    close_fixture(&fixture);
}

static void test_subvolumes(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    uint64_t home = iw_directory(image, FS, TOP, "users");
    iw_subvolume(image, 256, FS, home, "me", 0);
    uint64_t inside = iw_directory(image, 256, TOP, "inside");
    iw_subvolume(image, 257, 256, inside, "nest", 0);
    uint64_t egg = iw_file(image, 257, TOP, "egg");
    iw_snapshot(image, 300, 256, FS, TOP, "snapshot", 0);
    iw_symlink(image, 256, TOP, "link", "/inside");
    open_fixture(&fixture);
    expect_place(&fixture, "/users/me", false, 256, TOP, BW_FILE_DIRECTORY);
    expect_place(&fixture, "/users/me/inside/nest/egg", false, 257, egg, BW_FILE_REGULAR);
    expect_place(&fixture, "/users/me/inside/nest/..", false, 256, inside, BW_FILE_DIRECTORY);
    expect_place(&fixture, "/users/me/..", false, FS, home, BW_FILE_DIRECTORY);
    /* In the snapshot the entry is stale. */
    expect_place(&fixture, "/snapshot/inside/nest", false, 300, BW_EMPTY_DIRECTORY,
                 BW_FILE_DIRECTORY);
    expect_place(&fixture, "/snapshot/inside/nest/..", false, 300, inside, BW_FILE_DIRECTORY);
    expect_nothing(&fixture, "/snapshot/inside/nest/egg", "no such file");
    expect_nothing(&fixture, "/users/me/link", "no such file or directory: inside");
    /* The same seen from the subvolume: nothing is above it, and links begin at its top. */
    const struct bw_subvolume *from = bw_subvolume_by_id(fixture.fs, 256);
    static const char *const paths[] = {"/inside", "inside/../../inside", "link", "/link/nest/..",
                                        "link/"};
    struct bw_place place;
    for (size_t i = 0; i < COUNT(paths); i++) {
        expect_success(bw_lookup(fixture.fs, from, paths[i], true, &place));
        assert_int_equal(place.inode, inside);
        assert_ptr_equal(place.subvolume, from);
    }
    expect_error(bw_lookup(fixture.fs, from, "/users/me", true, &place), BW_ERROR_NOT_FOUND,
                 "no such file");
    close_fixture(&fixture);
}

static void test_inode_of_stale_entry(void **state)
{
    struct fixture fixture = make_fixture();
    iw_subvolume(fixture.image, 256, FS, TOP, "one", 0);
    uint64_t around = iw_directory(fixture.image, 256, TOP, "around");
    iw_subvolume(fixture.image, 257, 256, around, "nest", 0);
    iw_snapshot(fixture.image, 300, 256, FS, TOP, "snapshot", 0);
    /* Items that a hostile image has under the number of the empty directory are not its entries.
     */
    iw_entry(fixture.image, 300,
             &(struct iw_entry){.directory = BW_EMPTY_DIRECTORY,
                                .name = "trap",
                                .type = BW_FILE_REGULAR,
                                .location = {TOP, BW_INODE_ITEM, 0}});
    open_fixture(&fixture);
    struct bw_place place;
    struct bw_inode inode, outer;
    expect_success(bw_lookup(fixture.fs, NULL, "/snapshot/around/nest", false, &place));
    assert_true(bw_place_is_empty(&place));
    assert_int_equal(place.directory, around);
    expect_success(bw_inode_get(fixture.fs, &place, &inode));
    place.inode = around;
    expect_success(bw_inode_get(fixture.fs, &place, &outer));
    assert_int_equal(inode.mode, 040755);
    assert_int_equal(inode.size, 0);
    assert_int_equal(inode.link_count, 1);
    assert_memory_equal(&inode.mtime, &outer.mtime, sizeof inode.mtime);
    expect_nothing(&fixture, "/snapshot/around/nest/trap", "no such file");
    close_fixture(&fixture);
}

static void test_links(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    uint64_t a = iw_directory(image, FS, TOP, "a"), b = iw_directory(image, FS, a, "b");
    uint64_t file = iw_file(image, FS, b, "file");
    uint64_t up = iw_symlink(image, FS, b, "up", "../b/file");
    iw_symlink(image, FS, TOP, "absolute", "/a//b/");
    iw_symlink(image, FS, TOP, "to absolute", "absolute");
    iw_symlink(image, FS, a, "above", "../../../a");
    iw_symlink(image, FS, TOP, "dangling", "a/none");
    iw_symlink(image, FS, TOP, "through", "a/b/file/..");
    open_fixture(&fixture);
    expect_place(&fixture, "/a/b/up", false, FS, up, BW_FILE_SYMLINK);
    expect_place(&fixture, "/a/b/up", true, FS, file, BW_FILE_REGULAR);
    expect_place(&fixture, "/absolute/up", true, FS, file, BW_FILE_REGULAR);
    expect_place(&fixture, "/absolute", true, FS, b, BW_FILE_DIRECTORY);
    expect_place(&fixture, "/absolute/", false, FS, b, BW_FILE_DIRECTORY);
    expect_place(&fixture, "/absolute/..", false, FS, a, BW_FILE_DIRECTORY);
    expect_place(&fixture, "/to absolute/file", false, FS, file, BW_FILE_REGULAR);
    expect_place(&fixture, "/a/above/above/b", false, FS, b, BW_FILE_DIRECTORY);
    expect_nothing(&fixture, "/a/b/up/", "not a directory");
    expect_nothing(&fixture, "/a/b/up/x", "not a directory");
    expect_nothing(&fixture, "/dangling", "/dangling: no such file or directory: none");
    expect_nothing(&fixture, "/through", "not a directory");
    close_fixture(&fixture);
}

static void test_loops(void **state)
{
    struct fixture fixture = make_fixture();
    char name[16], target[16];
    iw_symlink(fixture.image, FS, TOP, "self", "self");
    iw_symlink(fixture.image, FS, TOP, "ping", "pong");
    iw_symlink(fixture.image, FS, TOP, "pong", "./ping/x");
    for (int i = 0; i <= 41; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(target, sizeof target, "l%d", i + 1);
        iw_symlink(fixture.image, FS, TOP, name, target);
    }
    uint64_t end = iw_file(fixture.image, FS, TOP, "l42");
    open_fixture(&fixture);
    expect_nothing(&fixture, "/self",
                   "/self: too many symbolic links, the last is self (inode 257 of subvolume 5)");
    expect_nothing(&fixture, "/ping/a", "too many symbolic links");
    expect_nothing(&fixture, "/l1", "too many symbolic links, the last is l41");
    expect_place(&fixture, "/l2", true, FS, end, BW_FILE_REGULAR);
    close_fixture(&fixture);
}

/* Entries that point to nothing a file could be. */
static void test_odd_entries(void **state)
{
    struct fixture fixture = make_fixture();
    static const struct bw_key locations[] = {
        {300, BW_INODE_REF, 0}, {0, BW_INODE_ITEM, 0}, {BW_EMPTY_DIRECTORY, BW_INODE_ITEM, 0}};
    char name[2] = "a";
    for (size_t i = 0; i < COUNT(locations); i++, name[0]++)
        iw_entry(fixture.image, FS,
                 &(struct iw_entry){.directory = TOP,
                                    .name = name,
                                    .type = BW_FILE_DIRECTORY,
                                    .location = locations[i]});
    iw_entry(fixture.image, FS,
             &(struct iw_entry){.directory = TOP,
                                .name = "no such subvolume",
                                .type = BW_FILE_DIRECTORY,
                                .location = {999, BW_ROOT_ITEM, UINT64_MAX}});
    open_fixture(&fixture);
    struct bw_place place;
    for (name[0] = 'a'; name[0] < 'd'; name[0]++)
        expect_error(bw_lookup(fixture.fs, NULL, name, true, &place), BW_ERROR_CORRUPT,
                     "an entry points to");
    expect_place(&fixture, "no such subvolume", true, FS, BW_EMPTY_DIRECTORY, BW_FILE_DIRECTORY);
    expect_nothing(&fixture, "no such subvolume/x", "no such file");
    close_fixture(&fixture);
}

static void test_entry_without_item(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t file = iw_file(fixture.image, FS, TOP, "file");
    iw_entry(fixture.image, FS,
             &(struct iw_entry){.directory = TOP,
                                .name = "indexed",
                                .type = BW_FILE_REGULAR,
                                .location = {file, BW_INODE_ITEM, 0},
                                .without_item = true});
    open_fixture(&fixture);
    expect_place(&fixture, "/indexed", false, FS, file, BW_FILE_REGULAR);
    close_fixture(&fixture);
}

enum { MANY = 60 };

/* A directory whose items and indexes fill several leaves each. */
static struct fixture make_many(uint64_t inodes[static MANY])
{
    struct fixture fixture = make_fixture();
    char name[32];
    iw_shape(fixture.image, FS, 10, 0, 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file %d", i);
        inodes[i] = iw_file(fixture.image, FS, TOP, name);
    }
    return fixture;
}

static void lose_leaf_of(const struct fixture *fixture, struct bw_key key)
{
    const struct iw_block *leaf = iw_block_of_key(fixture->image, FS, key);
    iw_corrupt(fixture->image, leaf->logical, IW_ALL_COPIES, 0, 100, IW_ZERO);
}

static void test_lost_items(void **state)
{
    uint64_t inodes[MANY];
    struct fixture fixture = make_many(inodes);
    iw_write_memory(fixture.image);
    lose_leaf_of(&fixture, (struct bw_key){TOP, BW_DIR_ITEM, bw_name_hash("file 7", 6)});
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file %d", i);
        expect_place(&fixture, name, false, FS, inodes[i], BW_FILE_REGULAR);
    }
    /* It may have been in the lost leaf, but then its index would tell. Still, the look-up is not
     * sure. */
    struct bw_place place;
    bw_error_free(bw_lookup(fixture.fs, NULL, "file 7x", true, &place));
    close_fixture(&fixture);
}

/* Both are lost: the inodes know their names. */
static void test_lost_items_and_indexes(void **state)
{
    uint64_t inodes[MANY];
    struct fixture fixture = make_many(inodes);
    iw_subvolume(fixture.image, 256, FS, TOP, "sub", 0);
    iw_link_extended(fixture.image, FS, inodes[5], TOP, "extended");
    iw_write_memory(fixture.image);
    static const char *const lost[] = {"file 7", "file 8", "sub", "extended"};
    for (size_t i = 0; i < COUNT(lost); i++)
        lose_leaf_of(&fixture,
                     (struct bw_key){TOP, BW_DIR_ITEM, bw_name_hash(lost[i], strlen(lost[i]))});
    for (uint64_t index = 2; index < MANY + 4; index += 5)
        lose_leaf_of(&fixture, (struct bw_key){TOP, BW_DIR_INDEX, index});
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    expect_place(&fixture, "file 7", false, FS, inodes[7], BW_FILE_REGULAR);
    expect_place(&fixture, "file 8", false, FS, inodes[8], BW_FILE_REGULAR);
    expect_place(&fixture, "extended", false, FS, inodes[5], BW_FILE_REGULAR);
    expect_place(&fixture, "sub", false, 256, TOP, BW_FILE_DIRECTORY);
    struct bw_place place;
    expect_error(bw_lookup(fixture.fs, NULL, "none", true, &place), BW_ERROR_CORRUPT, "none: ");
    close_fixture(&fixture);
}

static size_t count_items(struct fixture *fixture, struct bw_key first, struct bw_key last)
{
    const struct bw_tree *tree = &bw_subvolume_by_id(fixture->fs, FS)->tree;
    struct bw_item_range range;
    size_t count = 0;
    bw_item_range_begin(&range, &fixture->fs->reader, tree, first, last);
    for (; bw_item_range_next(&range); count++)
        assert_null(range.error);
    expect_success(bw_item_range_end(&range, NULL));
    return count;
}

static void test_item_range(void **state)
{
    uint64_t inodes[MANY];
    struct fixture fixture = make_many(inodes);
    open_fixture(&fixture);
    const struct bw_key inode = {inodes[3], BW_INODE_ITEM, 0};
    assert_int_equal(count_items(&fixture, (struct bw_key){TOP, BW_DIR_INDEX, 0},
                                 (struct bw_key){TOP, BW_DIR_INDEX, UINT64_MAX}),
                     MANY);
    assert_int_equal(count_items(&fixture, inode, inode), 1);
    assert_int_equal(count_items(&fixture, inode, (struct bw_key){0}), 0);
    assert_in_range(count_items(&fixture, (struct bw_key){0}, BW_KEY_MAX), 4 * MANY, 5 * MANY);
    close_fixture(&fixture);
}

/* No image can be made to have names that collide, since the hash of a name is another each time a
 * file system is opened. */
static void test_hashes_are_seeded(void **state)
{
    uint64_t hashes[2];
    struct iw_image *image = sample_image(&(struct iw_options){.nodesize = 4096});
    for (unsigned i = 0; i < 2; i++) {
        struct bw_fs *fs;
        expect_success(open_image(image, NULL, &fs));
        hashes[i] = bw_fs_name_hash(fs, TOP, "name", 4);
        assert_true(bw_fs_name_hash(fs, TOP, "name", 4) == hashes[i]);
        assert_true(bw_fs_name_hash(fs, TOP + 1, "name", 4) != hashes[i]);
        bw_fs_close(fs);
    }
    assert_true(hashes[0] != hashes[1]);
    iw_destroy(image);
}
