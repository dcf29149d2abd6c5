/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public headers: subvolumes, inodes, listing directories in steps, and walks with a visitor.
 * The functions that commands use are tested with the commands. */
#include "btrfs-walk/inode.h"
#include "ondisk/items.h"
#include "support/walk_helpers.h"

/* Names of a listing, each with a '\n' after it. */
static void list(const struct fixture *fixture, const char *path, uint64_t position,
                 unsigned at_most, struct bw_buffer *names, uint64_t *end)
{
    struct bw_place place;
    struct bw_directory *directory;
    const struct bw_directory_entry *entry;
    expect_success(bw_lookup(fixture->fs, NULL, path, true, &place));
    expect_success(bw_directory_open(fixture->fs, &place, position, &directory));
    while (at_most--) {
        expect_success(bw_directory_next(directory, &entry));
        if (!entry)
            break;
        bw_buffer_append(names, entry->name, entry->name_length);
        bw_buffer_append_byte(names, '\n');
        *end = entry->position;
    }
    bw_directory_close(directory);
}

static void fill_directory(struct iw_image *image, unsigned count)
{
    uint64_t directory = iw_directory(image, FS, TOP, "many");
    char name[16];
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "file-%u", i);
        iw_file(image, FS, directory, name);
    }
}

/* A listing in one go, and one that is continued by new handles, are the same. */
static void compare_listings(const struct fixture *fixture, unsigned step, size_t count)
{
    struct bw_buffer whole = {0}, parts = {0};
    uint64_t position = BW_DIRECTORY_START, unused;
    list(fixture, "/many", BW_DIRECTORY_START, UINT32_MAX, &whole, &unused);
    for (size_t before = SIZE_MAX; before != parts.length;) {
        before = parts.length;
        list(fixture, "/many", position, step, &parts, &position);
    }
    size_t lines = 0;
    for (size_t i = 0; i < whole.length; i++)
        lines += whole.data[i] == '\n';
    assert_int_equal(lines, count);
    bw_buffer_append_byte(&whole, '\0');
    bw_buffer_append_byte(&parts, '\0');
    size_t same = 0;
    while (whole.data[same] && whole.data[same] == parts.data[same])
        same++;
    const char *wanted = whole.data + same, *found = parts.data + same;
    for (; wanted > whole.data && wanted[-1] != '\n'; wanted--)
        found--;
    if (whole.data[same] || parts.data[same])
        fail_msg("a listing continued after every %u entries has '%.*s', not '%.*s'", step,
                 (int)strcspn(found, "\n"), found, (int)strcspn(wanted, "\n"), wanted);
    bw_buffer_free(&whole);
    bw_buffer_free(&parts);
}

static void test_directory(void **state)
{
    struct fixture fixture = make_fixture();
    fill_directory(fixture.image, 1500);
    open_fixture(&fixture);
    compare_listings(&fixture, 1, 1500);
    compare_listings(&fixture, 512, 1500);
    compare_listings(&fixture, 700, 1500);
    assert_int_equal(fixture.log.counts[BW_DAMAGE], 0);
    struct bw_place place;
    struct bw_directory *directory;
    expect_success(bw_lookup(fixture.fs, NULL, "/many/file-7", true, &place));
    expect_error(bw_directory_open(fixture.fs, &place, 0, &directory), BW_ERROR_USAGE,
                 "not a directory");
    close_fixture(&fixture);
}

/* Where a block with DIR_INDEX items is lost the names come from elsewhere, and can be continued.
 */
static void test_lost_directory(void **state)
{
    struct fixture fixture = make_fixture();
    fill_directory(fixture.image, 300);
    iw_write_memory(fixture.image);
    const struct bw_key key = {257, BW_DIR_INDEX, 100};
    const struct iw_block *block = iw_block_of_key(fixture.image, FS, key);
    iw_corrupt(fixture.image, block->logical, IW_ALL_COPIES, 200, 4, IW_FLIP);
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    compare_listings(&fixture, 1, 300);
    compare_listings(&fixture, 100, 300);
    compare_listings(&fixture, 299, 300);
    assert_true(fixture.log.counts[BW_DAMAGE] > 0);
    close_fixture(&fixture);
}

static struct bw_error *append_name(void *context, const struct bw_inode_name *name)
{
    bw_buffer_format(context, "%llu/%.*s ", (unsigned long long)name->directory,
                     (int)name->name_length, name->name);
    return NULL;
}

static struct bw_error *refuse_name(void *context, const struct bw_inode_name *name)
{
    return bw_error_create(BW_ERROR_USAGE, "refused");
}

static void expect_path(const struct fixture *fixture, const struct bw_place *place,
                        const char *expected)
{
    char *path;
    size_t length;
    expect_success(bw_inode_path(fixture->fs, place, &path, &length));
    assert_string_equal(path, expected);
    assert_int_equal(length, strlen(expected));
    free(path);
}

static void test_inodes(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    struct bw_buffer names = {0};
    struct bw_place place;
    char *target;
    uint64_t home = iw_directory(image, FS, TOP, "users");
    iw_subvolume(image, 256, FS, home, "me", 0);
    uint64_t inside = iw_directory(image, 256, TOP, "inside");
    uint64_t file = iw_file(image, 256, inside, "file");
    iw_link(image, 256, file, TOP, "second");
    iw_link_extended(image, 256, file, TOP, "third");
    iw_symlink(image, 256, TOP, "link", "inside/file");
    open_fixture(&fixture);
    const struct bw_subvolume *me = bw_subvolume_by_id(fixture.fs, 256);

    expect_success(bw_lookup_number(fixture.fs, me, file, &place));
    assert_int_equal(place.type, BW_FILE_REGULAR);
    expect_success(bw_inode_names(fixture.fs, &place, append_name, &names));
    assert_string_equal(bw_buffer_text(&names), "256/second 257/file 256/third ");
    names.length = 0;
    expect_error(bw_inode_names(fixture.fs, &place, refuse_name, NULL), BW_ERROR_USAGE, "refused");

    /* Two cursors over the same names, one of which is closed before the end. */
    struct bw_hard_links *links, *others;
    expect_success(bw_hard_links_open(fixture.fs, &place, &links));
    expect_success(bw_hard_links_open(fixture.fs, &place, &others));
    for (const struct bw_inode_name *name; (name = bw_hard_links_next(links));) {
        append_name(&names, name);
        if (names.length < 20)
            append_name(&names, bw_hard_links_next(others));
    }
    assert_string_equal(bw_buffer_text(&names), "256/second 256/second 257/file 256/third ");
    assert_null(bw_hard_links_next(links));
    expect_success(bw_hard_links_close(links));
    expect_success(bw_hard_links_close(others));
    expect_success(bw_hard_links_close(NULL));
    expect_path(&fixture, &place, "/users/me/second");
    expect_error(bw_lookup_number(fixture.fs, me, 4711, &place), BW_ERROR_NOT_FOUND, NULL);

    place = bw_place_top(me);
    expect_path(&fixture, &place, "/users/me");
    place = bw_place_top(fixture.top);
    expect_path(&fixture, &place, "/");

    expect_success(bw_lookup(fixture.fs, me, "/link", false, &place));
    expect_success(bw_inode_readlink(fixture.fs, &place, &target, NULL));
    assert_string_equal(target, "inside/file");
    free(target);
    bw_buffer_free(&names);
    close_fixture(&fixture);
}

static void test_subvolumes(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    const struct bw_subvolume *found = NULL;
    struct bw_subvolume_info info, original;
    char *path;
    uint64_t home = iw_directory(image, FS, TOP, "users");
    iw_subvolume(image, 300, FS, home, "me", 0);
    iw_snapshot(image, 400, 300, FS, TOP, "snapshot", 0);
    open_fixture(&fixture);

    static const uint64_t ids[] = {FS, 300, 400};
    size_t count = 0;
    for (const struct bw_subvolume *each = NULL; (each = bw_subvolume_next(fixture.fs, each));)
        assert_int_equal(bw_subvolume_id(each), ids[count++]);
    assert_int_equal(count, COUNT(ids));
    assert_null(bw_subvolume_by_id(fixture.fs, 301));

    expect_success(bw_subvolume_by_name(fixture.fs, "/users/me", &found));
    expect_success(bw_subvolume_get(fixture.fs, found, &original));
    assert_int_equal(original.id, 300);
    assert_int_equal(original.parent, FS);
    assert_int_equal(original.directory, home);
    assert_memory_equal(original.name, "me", 2);
    assert_int_equal(original.name_length, 2);
    assert_false(original.is_snapshot);

    expect_success(bw_subvolume_by_name(fixture.fs, "400", &found));
    expect_success(bw_subvolume_get(fixture.fs, found, &info));
    assert_true(info.is_snapshot);
    expect_success(bw_subvolume_path(fixture.fs, found, &path, NULL));
    assert_string_equal(path, "/snapshot");
    free(path);
    const struct bw_subvolume *snapshot = found;
    expect_success(bw_subvolume_by_uuid(fixture.fs, info.uuid, &found));
    assert_ptr_equal(found, snapshot);
    const uint8_t unknown[BW_UUID_SIZE] = {1, 2, 3};
    expect_error(bw_subvolume_by_uuid(fixture.fs, unknown, &found), BW_ERROR_NOT_FOUND, "UUID");
    iw_corrupt(fixture.image, iw_root_block(fixture.image, 1)->logical, IW_ALL_COPIES, 0, 100,
               IW_FLIP);
    expect_error(bw_subvolume_by_uuid(fixture.fs, unknown, &found), BW_ERROR_CORRUPT,
                 "the root tree");
    expect_error(bw_subvolume_by_name(fixture.fs, "nothing", &found), BW_ERROR_NOT_FOUND, NULL);
    close_fixture(&fixture);
}

static struct bw_error *append_entry(void *context, const struct bw_entry *entry)
{
    bw_buffer_format(context, "%llu:%llu:%.*s:%s\n",
                     (unsigned long long)bw_subvolume_id(entry->place.subvolume),
                     (unsigned long long)entry->place.inode, (int)entry->path_length, entry->path,
                     entry->inode ? "inode" : "name");
    return NULL;
}

static void test_visitor(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_buffer text = {0};
    struct bw_walk_options options = {
        .struct_size = sizeof options, .visit = append_entry, .context = &text};
    iw_file(fixture.image, FS, TOP, "one");
    iw_subvolume(fixture.image, 256, FS, TOP, "sub", 0);
    iw_file(fixture.image, 256, TOP, "two");
    open_fixture(&fixture);
    expect_success(bw_walk(fixture.fs, &options, NULL));
    options.visit_inodes = true;
    options.types = BW_WALK_DIRECTORIES;
    expect_success(bw_walk(fixture.fs, &options, NULL));
    assert_string_equal(bw_buffer_text(&text), "5:257:/one:name\n256:257:/sub/two:name\n"
                                               "5:256:/:inode\n256:256:/sub:inode\n");
    options.visit = NULL;
    expect_error(bw_walk(fixture.fs, &options, NULL), BW_ERROR_USAGE, "consumer or a visitor");
    bw_buffer_free(&text);
    close_fixture(&fixture);
}

/* Options of older and newer callers. */
static void test_struct_size(void **state)
{
    struct fixture fixture = make_fixture();
    struct {
        struct bw_walk_options options;
        uint64_t later;
    } newer = {.options = {.visit = append_entry}};
    struct bw_buffer text = {0};
    open_fixture(&fixture);
    newer.options.context = &text;
    expect_error(bw_walk(fixture.fs, &newer.options, NULL), BW_ERROR_USAGE, "struct_size");
    newer.options.struct_size = sizeof newer;
    expect_success(bw_walk(fixture.fs, &newer.options, NULL));
    newer.later = 1;
    expect_error(bw_walk(fixture.fs, &newer.options, NULL), BW_ERROR_USAGE, "newer version");
    bw_buffer_free(&text);
    close_fixture(&fixture);
}
