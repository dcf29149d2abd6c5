/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks that list more, or less, than all regular files: types, starts, depth, filters, order. */
#include "btrfs-walk/walk.h"
#include "support/walk_helpers.h"

/* Entries in the order they came, a line each: "TYPE SUBVOLUME:INODE PATH". */
struct listing {
    struct bw_buffer text; /* ends with NUL when the walk is over */
    size_t count, with_inode;
    size_t stop_at; /* 0: never */
};

static struct bw_error *take(void *context, const struct bw_entry *file)
{
    static const char letters[] = "?fdcbpsl";
    struct listing *listing = context;
    assert_true(file->place.type < sizeof letters - 1);
    bw_buffer_format(&listing->text, "%c %llu:%llu %.*s\n", letters[file->place.type],
                     (unsigned long long)bw_subvolume_id(file->place.subvolume),
                     (unsigned long long)file->place.inode, (int)file->path_length, file->path);
    listing->with_inode += file->inode != NULL;
    if (file->inode && file->place.type == BW_FILE_DIRECTORY)
        assert_int_equal(file->inode->mode & 0170000, 0040000);
    listing->count++;
    return listing->count == listing->stop_at ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

/* A walk whose visitor is take(). */
static struct bw_error *walk_entries(struct bw_fs *fs, const struct bw_walk_options *given,
                                     struct listing *listing, struct bw_walk_summary *summary)
{
    struct bw_walk_options options = *given;
    options.struct_size = sizeof options;
    options.visit = take;
    options.context = listing;
    return bw_walk(fs, &options, summary);
}

static struct listing list_with(const struct iw_image *image, bool inodes,
                                const struct bw_walk_options *options, struct report_log *log)
{
    struct listing listing = {0};
    struct bw_walk_summary summary;
    struct bw_fs *fs;
    expect_success(open_image(image, log, &fs));
    struct bw_walk_options wanted = *options;
    wanted.visit_inodes = inodes;
    expect_success(walk_entries(fs, &wanted, &listing, &summary));
    assert_int_equal(summary.files, listing.count);
    bw_fs_close(fs);
    bw_buffer_append_byte(&listing.text, '\0');
    return listing;
}

static void expect_listing(const struct iw_image *image, const struct bw_walk_options *options,
                           const char *text)
{
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct bw_walk_options more = *options;
        more.threads = threads;
        struct listing entries = list_with(image, true, &more, NULL);
        struct listing names = list_with(image, false, &more, NULL);
        assert_string_equal(entries.text.data, text);
        assert_string_equal(names.text.data, text);
        assert_int_equal(entries.with_inode, entries.count);
        bw_buffer_free(&entries.text);
        bw_buffer_free(&names.text);
    }
}

/* A file system with a bit of everything, in few leaves or in many. */
static struct iw_image *make_image(unsigned items_per_leaf)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = items_per_leaf});
    uint64_t a = iw_directory(image, FS, TOP, "a"); /* 257 */
    uint64_t b = iw_directory(image, FS, a, "b");   /* 258 */
    uint64_t file = iw_file(image, FS, b, "file");  /* 259 */
    iw_link(image, FS, file, TOP, "hard");
    iw_symlink(image, FS, a, "link", "b/file");                /* 260 */
    iw_make(image, FS, b, "pipe", BW_FILE_FIFO);               /* 261 */
    iw_make(image, FS, b, "disk", BW_FILE_BLOCK_DEVICE);       /* 262 */
    iw_make(image, FS, TOP, "null", BW_FILE_CHARACTER_DEVICE); /* 263 */
    iw_make(image, FS, TOP, "sock", BW_FILE_SOCKET);           /* 264 */
    iw_symlink(image, FS, TOP, "to-a", "a");                   /* 265 */
    iw_subvolume(image, 256, FS, b, "sub", 0);
    iw_file(image, 256, TOP, "in sub"); /* 257 */
    iw_subvolume(image, 257, 256, TOP, "inner", 0);
    iw_file(image, 257, TOP, "in inner");
    iw_snapshot(image, 258, 256, FS, TOP, "snapshot", BW_ROOT_READ_ONLY);
    iw_write_memory(image);
    return image;
}

static const char everything[] = "d 5:256 /\n"
                                 "d 5:257 /a\n"
                                 "f 5:259 /hard\n"
                                 "c 5:263 /null\n"
                                 "s 5:264 /sock\n"
                                 "l 5:265 /to-a\n"
                                 "d 5:258 /a/b\n"
                                 "l 5:260 /a/link\n"
                                 "f 5:259 /a/b/file\n"
                                 "p 5:261 /a/b/pipe\n"
                                 "b 5:262 /a/b/disk\n"
                                 "d 258:256 /snapshot\n"
                                 "f 258:257 /snapshot/in sub\n"
                                 "d 258:2 /snapshot/inner\n"
                                 "d 256:256 /a/b/sub\n"
                                 "f 256:257 /a/b/sub/in sub\n"
                                 "d 257:256 /a/b/sub/inner\n"
                                 "f 257:257 /a/b/sub/inner/in inner\n";

static void test_types(void **state)
{
    struct iw_image *image = make_image(0);
    expect_listing(image, &(struct bw_walk_options){.types = BW_WALK_ALL}, everything);
    expect_listing(
        image, &(struct bw_walk_options){0},
        "f 5:259 /hard\nf 5:259 /a/b/file\nf 258:257 /snapshot/in sub\nf 256:257 /a/b/sub/in sub\n"
        "f 257:257 /a/b/sub/inner/in inner\n");
    expect_listing(image, &(struct bw_walk_options){.types = BW_WALK_SYMLINKS | BW_WALK_FIFOS},
                   "l 5:265 /to-a\nl 5:260 /a/link\np 5:261 /a/b/pipe\n");
    expect_listing(
        image, &(struct bw_walk_options){.types = BW_WALK_DIRECTORIES, .no_snapshots = true},
        "d 5:256 /\nd 5:257 /a\nd 5:258 /a/b\nd 256:256 /a/b/sub\nd 257:256 /a/b/sub/inner\n");
    iw_destroy(image);
}

/* The contents of a directory follow it, whatever the shape of the tree. */
static void test_order(void **state)
{
    for (unsigned items = 1; items < 6; items++) {
        struct iw_image *image = make_image(items);
        struct listing listing =
            list_with(image, true, &(struct bw_walk_options){.types = BW_WALK_ALL}, NULL);
        assert_int_equal(listing.count, 18);
        for (char *line = listing.text.data; *line; line = strchr(line, '\n') + 1) {
            char parent[128];
            char *path = strchr(line, '/'), *end = strchr(path, '\n');
            while (*end != '/')
                end--;
            snprintf(parent, sizeof parent, " %.*s\n", end == path ? 1 : (int)(end - path), path);
            char *place = strstr(listing.text.data, parent);
            assert_non_null(place);
            assert_true(place < path);
        }
        bw_buffer_free(&listing.text);
        iw_destroy(image);
    }
}

/* Leaves that snapshots share are read once, and tell all of them of all types. */
static void test_shared_leaves(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    iw_subvolume(image, 256, FS, TOP, "source", 0);
    for (unsigned i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        iw_make(image, 256, TOP, name, (uint8_t)(i % 8));
    }
    iw_snapshot(image, 300, 256, FS, TOP, "first", 0);
    iw_snapshot(image, 301, 256, FS, TOP, "second", 0);
    iw_write_memory(image);
    for (unsigned type = 1; type < 8; type++)
        for (unsigned threads = 1; threads <= 4; threads += 3) {
            const struct bw_walk_options options = {.types = 1 << type, .threads = threads};
            struct listing listing = list_with(image, true, &options, NULL);
            assert_int_equal(listing.count, 3 * 125 + (type == BW_FILE_DIRECTORY ? 4 : 0));
            assert_int_equal(listing.with_inode, listing.count);
            bw_buffer_free(&listing.text);
        }
    iw_destroy(image);
}

/* The directory that contains a subvolume has lost the reference to its parent, but the parent has
 * its entry: the parts list everything once. */
static void test_parts_without_reference(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    const uint64_t directory = iw_directory(image, FS, TOP, "directory");
    iw_subvolume(image, 256, FS, directory, "sub", 0);
    iw_subvolume(image, 257, 256, TOP, "inner", 0);
    iw_file(image, 257, TOP, "file");
    iw_remove_item(image, FS, (struct bw_key){directory, BW_INODE_REF, TOP});
    iw_write_memory(image);
    for (unsigned parts = 1; parts <= 3; parts++) {
        size_t count = 0;
        for (unsigned part = 1; part <= parts; part++) {
            const struct bw_walk_options options = {
                .types = BW_WALK_ALL, .part = part, .parts = parts};
            struct listing listing = list_with(image, true, &options, NULL);
            count += listing.count;
            bw_buffer_free(&listing.text);
        }
        assert_int_equal(count, 5);
    }
    iw_destroy(image);
}

static void test_start(void **state)
{
    static const struct {
        const char *subvolume, *start, *text;
    } cases[] = {
        {NULL, "/", everything},
        {NULL, "/a/b/sub",
         "d 256:256 /a/b/sub\nf 256:257 /a/b/sub/in sub\nd 257:256 /a/b/sub/inner\n"
         "f 257:257 /a/b/sub/inner/in inner\n"},
        {NULL, "a/link", "l 5:260 /a/link\n"},
        {NULL, "/a/b/file", "f 5:259 /a/b/file\n"},
        {NULL, "/hard", "f 5:259 /hard\n"},
        {NULL, "/to-a", "l 5:265 /to-a\n"},
        {NULL, "/to-a/b/pipe", "p 5:261 /a/b/pipe\n"},
        {NULL, "/snapshot/inner", "d 258:2 /snapshot/inner\n"},
        {NULL, "/snapshot/inner//", "d 258:2 /snapshot/inner\n"},
        {"256", "inner", "d 257:256 /inner\nf 257:257 /inner/in inner\n"},
        {"256", "/in sub", "f 256:257 /in sub\n"},
        {"256", NULL, "d 256:256 /\nf 256:257 /in sub\nd 257:256 /inner\n"},
        {"256", "/", "d 256:256 /\nf 256:257 /in sub\nd 257:256 /inner\n"},
        {"/snapshot", "/", "d 258:256 /\nf 258:257 /in sub\nd 258:2 /inner\n"},
        {NULL, "/to-a/",
         "d 5:257 /a\nd 5:258 /a/b\nl 5:260 /a/link\nf 5:259 /a/b/file\np 5:261 /a/b/pipe\n"
         "b 5:262 /a/b/disk\nd 256:256 /a/b/sub\nf 256:257 /a/b/sub/in sub\n"
         "d 257:256 /a/b/sub/inner\nf 257:257 /a/b/sub/inner/in inner\n"},
    };
    struct iw_image *image = make_image(0);
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_listing(image,
                       &(struct bw_walk_options){.subvolume = cases[i].subvolume,
                                                 .start = cases[i].start,
                                                 .types = BW_WALK_ALL},
                       cases[i].text);
    expect_listing(image, &(struct bw_walk_options){.start = "/a/link"}, "");
    expect_listing(image, &(struct bw_walk_options){.start = "/a", .subvolume = "5"},
                   "f 5:259 /a/b/file\n");
    iw_destroy(image);
}

/* Whether nested subvolumes are entered does not depend on how their parent was named, unless by
 * default. */
static void test_nested(void **state)
{
    static const struct {
        const char *subvolume, *start;
        enum bw_nested nested;
        const char *text;
    } cases[] = {
        {"256", NULL, BW_NESTED_ENTER, "f 256:257 /in sub\nf 257:257 /inner/in inner\n"},
        {"256", "/", BW_NESTED_ENTER, "f 256:257 /in sub\nf 257:257 /inner/in inner\n"},
        {"256", NULL, BW_NESTED_SKIP, "f 256:257 /in sub\n"},
        {"256", "inner", BW_NESTED_SKIP, "f 257:257 /inner/in inner\n"},
        {NULL, "/a/b/sub", BW_NESTED_SKIP, "f 256:257 /a/b/sub/in sub\n"},
        {NULL, "/a", BW_NESTED_SKIP, "f 5:259 /a/b/file\n"},
        {"5", "/a", BW_NESTED_ENTER,
         "f 5:259 /a/b/file\nf 256:257 /a/b/sub/in sub\nf 257:257 /a/b/sub/inner/in inner\n"},
    };
    struct iw_image *image = make_image(0);
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_listing(image,
                       &(struct bw_walk_options){.subvolume = cases[i].subvolume,
                                                 .start = cases[i].start,
                                                 .nested = cases[i].nested},
                       cases[i].text);
    iw_destroy(image);
}

static void test_no_such_start(void **state)
{
    static const char *const starts[] = {"/nothing", "/a/b/file/", "/a/b/file/x",
                                         "/snapshot/inner/x"};
    struct iw_image *image = make_image(0);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    for (size_t i = 0; i < COUNT(starts); i++) {
        const struct bw_walk_options options = {.start = starts[i]};
        struct listing listing = {0};
        expect_error(walk_entries(fs, &options, &listing, NULL), BW_ERROR_NOT_FOUND, starts[i]);
        assert_int_equal(listing.count, 0);
    }
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_maxdepth(void **state)
{
    struct iw_image *image = make_image(0);
    struct bw_walk_options options = {.types = BW_WALK_DIRECTORIES, .has_maxdepth = true};
    expect_listing(image, &options, "d 5:256 /\n");
    options.maxdepth = 1;
    expect_listing(image, &options, "d 5:256 /\nd 5:257 /a\nd 258:256 /snapshot\n");
    options.maxdepth = 3;
    expect_listing(
        image, &options,
        "d 5:256 /\nd 5:257 /a\nd 5:258 /a/b\nd 258:256 /snapshot\nd 258:2 /snapshot/inner\n"
        "d 256:256 /a/b/sub\n");
    options.start = "/a";
    options.types = BW_WALK_ALL;
    options.maxdepth = 1;
    expect_listing(image, &options, "d 5:257 /a\nd 5:258 /a/b\nl 5:260 /a/link\n");
    options.subvolume = "256";
    options.start = NULL;
    expect_listing(image, &options, "d 256:256 /\nf 256:257 /in sub\nd 257:256 /inner\n");
    options.maxdepth = 0;
    expect_listing(image, &options, "d 256:256 /\n");
    iw_destroy(image);
}

static void expect_selected(const struct iw_image *image, const char *condition,
                            const char *argument, const char *text)
{
    struct bw_walk_options options = {.types = BW_WALK_ALL};
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_add(selection, condition, argument));
    options.selection = selection;
    expect_listing(image, &options, text);
    bw_selection_destroy(selection);
}

static void test_selection(void **state)
{
    struct iw_image *image = make_image(0);
    expect_selected(
        image, "name", "in*",
        "f 258:257 /snapshot/in sub\nd 258:2 /snapshot/inner\nf 256:257 /a/b/sub/in sub\n"
        "d 257:256 /a/b/sub/inner\nf 257:257 /a/b/sub/inner/in inner\n");
    expect_selected(image, "name", "/", "d 5:256 /\n");
    expect_selected(image, "links", "2", "f 5:259 /hard\nf 5:259 /a/b/file\n");
    expect_selected(
        image, "exclude", "b",
        "d 5:256 /\nd 5:257 /a\nf 5:259 /hard\nc 5:263 /null\ns 5:264 /sock\nl 5:265 /to-a\n"
        "l 5:260 /a/link\nd 258:256 /snapshot\nf 258:257 /snapshot/in sub\n"
        "d 258:2 /snapshot/inner\n");
    expect_selected(image, "exclude", "/a*",
                    "d 5:256 /\nf 5:259 /hard\nc 5:263 /null\ns 5:264 /sock\nl 5:265 /to-a\n"
                    "d 258:256 /snapshot\nf 258:257 /snapshot/in sub\nd 258:2 /snapshot/inner\n");
    expect_selected(image, "exclude", "/", "");
    iw_destroy(image);
}

static void test_stop(void **state)
{
    struct iw_image *image = make_image(0);
    struct listing listing = {.stop_at = 3};
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    expect_error(walk_entries(fs, &(struct bw_walk_options){.types = BW_WALK_ALL}, &listing, NULL),
                 BW_ERROR_STOPPED, "enough");
    assert_int_equal(listing.count, 3);
    bw_buffer_free(&listing.text);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* Equal entries stay in the order of the walk. */
static void test_sorted(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    static const char *const names[] = {"b", "a", "a-", "a b"};
    static const char content[] = "0123456789";
    uint64_t directory = iw_directory(image, FS, TOP, "a ");
    for (size_t i = 0; i < COUNT(names); i++)
        iw_inline_data(image, FS, iw_file(image, FS, i == 1 ? directory : TOP, names[i]), content,
                       9 - i);
    iw_file(image, FS, TOP, "none");
    iw_file(image, FS, TOP, "nothing");
    iw_write_memory(image);
    expect_listing(image,
                   &(struct bw_walk_options){.order = BW_WALK_BY_PATH,
                                             .types = BW_WALK_FILES | BW_WALK_DIRECTORIES},
                   "d 5:256 /\nd 5:257 /a \nf 5:259 /a /a\nf 5:261 /a b\nf 5:260 /a-\nf 5:258 "
                   "/b\nf 5:262 /none\n"
                   "f 5:263 /nothing\n");
    expect_listing(
        image, &(struct bw_walk_options){.order = BW_WALK_BY_SIZE},
        "f 5:262 /none\nf 5:263 /nothing\nf 5:261 /a b\nf 5:260 /a-\nf 5:259 /a /a\nf 5:258 /b\n");
    expect_listing(image, &(struct bw_walk_options){.order = BW_WALK_BY_MTIME, .start = "/a "},
                   "f 5:259 /a /a\n");
    iw_destroy(image);
}

/* Damage: entries recovered through the names of inodes have the right position and type. */

static bool has_line(const char *text, const char *line, size_t length)
{
    for (; *text; text = strchr(text, '\n') + 1)
        if (strncmp(text, line, length) == 0 && text[length] == '\n')
            return true;
    return false;
}

/* All lines of `part` are in `whole`, each once. */
static void expect_part(const char *part, const char *whole)
{
    for (const char *line = part; *line; line = strchr(line, '\n') + 1) {
        const size_t length = strcspn(line, "\n");
        if (!has_line(whole, line, length))
            fail_msg("should not be listed: %.*s", (int)length, line);
        assert_false(has_line(line + length + 1, line, length));
    }
}

static void test_each_leaf_lost(void **state)
{
    for (size_t leaf = 0;; leaf++) {
        struct iw_image *image = make_image(3);
        const struct iw_block *block = iw_block_find(image, FS, 0, leaf);
        struct report_log log = {0};
        if (!block) {
            assert_true(leaf > 15);
            iw_destroy(image);
            return;
        }
        iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
        struct listing listing =
            list_with(image, true, &(struct bw_walk_options){.types = BW_WALK_ALL}, &log);
        expect_part(listing.text.data, everything);
        assert_true(listing.count >= 16);
        bw_buffer_free(&listing.text);
        report_log_free(&log);
        iw_destroy(image);
    }
}

static void test_two_leaves_lost(void **state)
{
    for (size_t pair = 0; pair < 1000; pair++) {
        struct iw_image *image = make_image(2);
        const struct iw_block *one = iw_block_find(image, FS, 0, pair / 32);
        const struct iw_block *other = iw_block_find(image, FS, 0, pair % 32);
        struct report_log log = {0};
        if (one && other) {
            iw_corrupt(image, one->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
            iw_corrupt(image, other->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
            struct listing listing =
                list_with(image, true, &(struct bw_walk_options){.types = BW_WALK_ALL}, &log);
            expect_part(listing.text.data, everything);
            assert_true(listing.count >= 12);
            bw_buffer_free(&listing.text);
        }
        report_log_free(&log);
        iw_destroy(image);
    }
}

static void test_lost_and_left_out(void **state)
{
    struct iw_image *image = make_image(1);
    const struct iw_block *block =
        iw_block_of_key(image, FS, (struct bw_key){257, BW_DIR_INDEX, 2});
    struct bw_walk_options options = {.types = BW_WALK_ALL, .has_maxdepth = true, .maxdepth = 2};
    struct bw_selection *selection;
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
    struct listing listing = list_with(image, true, &options, NULL);
    assert_null(strstr(listing.text.data, "/a/b/"));
    assert_non_null(strstr(listing.text.data, "d 5:258 /a/b\n"));
    expect_part(listing.text.data, everything);
    bw_buffer_free(&listing.text);
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_add(selection, "exclude", "/a/b"));
    options = (struct bw_walk_options){.types = BW_WALK_ALL, .selection = selection};
    listing = list_with(image, true, &options, NULL);
    assert_null(strstr(listing.text.data, "/a/b"));
    assert_non_null(strstr(listing.text.data, "/a/link\n"));
    bw_buffer_free(&listing.text);
    options = (struct bw_walk_options){.types = BW_WALK_ALL, .start = "/a"};
    listing = list_with(image, true, &options, NULL);
    assert_null(strstr(listing.text.data, "/hard"));
    assert_non_null(strstr(listing.text.data, "f 5:259 /a/b/file\n"));
    bw_buffer_free(&listing.text);
    bw_selection_destroy(selection);
    iw_destroy(image);
}
