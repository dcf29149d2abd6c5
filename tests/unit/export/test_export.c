/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of export/ that need no image: known hashes, the table of hard links, mtree lines, and
 * the comparison of times. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/hash.h"
#include "export/archive.h"
#include "export/links.h"
#include "export/made_directories.h"
#include "export/target.h"
#include "fs/subvolume.h"

static void test_hashes(void **state)
{
    static const struct {
        enum bw_hash_algorithm algorithm;
        const char *name, *empty, *abc;
    } cases[] = {
        {BW_HASH_SHA256, "sha256",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {BW_HASH_MD5, "md5", "d41d8cd98f00b204e9800998ecf8427e",
         "900150983cd24fb0d6963f7d28e17f72"},
        {BW_HASH_BLAKE2B, "blake2b",
         "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419"
         "d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce",
         "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
         "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"},
        {BW_HASH_XXH64, "xxh64", "ef46db3751d8e999", "44bc2cf5ad770999"},
    };
    bw_hash_prepare();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bw_hash *hash;
        char text[BW_HASH_TEXT];
        assert_string_equal(bw_hash_names[cases[i].algorithm], cases[i].name);
        assert_null(bw_hash_create(cases[i].algorithm, &hash));
        bw_hash_end(hash, text);
        assert_string_equal(text, cases[i].empty);
        bw_hash_begin(hash);
        bw_hash_add(hash, "a", 1);
        bw_hash_add(hash, "bc", 2);
        bw_hash_end(hash, text);
        assert_string_equal(text, cases[i].abc);
        bw_hash_destroy(hash);
    }
    assert_null(bw_hash_names[BW_HASH_ALGORITHMS]);
}

static void test_zeros(void **state)
{
    static const uint8_t zeros[100001];
    char one[BW_HASH_TEXT], other[BW_HASH_TEXT];
    struct bw_hash *hash;
    assert_null(bw_hash_create(BW_HASH_SHA256, &hash));
    bw_hash_add(hash, zeros, sizeof zeros);
    bw_hash_end(hash, one);
    bw_hash_begin(hash);
    bw_hash_add_zeros(hash, sizeof zeros);
    bw_hash_end(hash, other);
    assert_string_equal(one, other);
    bw_hash_destroy(hash);
}

/* A file of one of some subvolumes, until the next call. */
static const struct bw_place *at(uint64_t subvolume, uint64_t inode)
{
    static struct bw_subvolume subvolumes[300];
    static struct bw_place place;
    subvolumes[subvolume].tree.id = subvolume;
    place = (struct bw_place){.subvolume = &subvolumes[subvolume], .inode = inode};
    return &place;
}

static void test_links(void **state)
{
    struct bw_links links;
    struct bw_link link;
    struct bw_buffer path = {0};
    bw_links_init(&links);
    assert_false(bw_links_find(&links, at(5, 257), &link));
    static const char *const names[] = {"top", "a/b/first", "a/b/second", "a/c/third",
                                        "a/b/fourth"};
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(bw_links_meet(&links, at(5, 300 + i), names[i], &link));
        assert_true(link.is_first);
        assert_int_equal(link.number, i);
    }
    /* The same inode of another subvolume is another file. */
    assert_true(bw_links_meet(&links, at(256, 301), "z", &link));
    assert_true(link.is_first);
    assert_true(bw_links_meet(&links, at(5, 301), "other", &link));
    assert_false(link.is_first || link.state == BW_LINK_MADE);
    bw_links_set(&links, link.number, BW_LINK_MADE);
    /* Nor are two files that a hash of both numbers takes for one. */
    uint64_t other = 400 ^ 257 * UINT64_C(0x9E3779B97F4A7C15) ^ 258 * UINT64_C(0x9E3779B97F4A7C15);
    assert_true(bw_links_meet(&links, at(257, 400), "one", &link) && link.is_first);
    assert_true(bw_links_meet(&links, at(258, other), "two", &link) && link.is_first);
    assert_true(bw_links_meet(&links, at(257, 400), "one's other", &link) && !link.is_first &&
                link.number == 6);
    assert_true(bw_links_meet(&links, at(258, other), "two's other", &link) && !link.is_first &&
                link.number == 7);
    assert_true(bw_links_find(&links, at(5, 301), &link));
    assert_int_equal(link.state, BW_LINK_MADE);
    for (size_t i = 0; i < 5; i++) {
        path.length = 0;
        bw_links_append_path(&links, i, &path);
        assert_int_equal(path.length, strlen(names[i]));
        assert_memory_equal(path.data, names[i], path.length);
    }
    bw_buffer_free(&path);
    bw_links_free(&links);
}

static void test_paths(void **state)
{
    static const char *const paths[] = {"",       "/",       "/a/b/c", "/a/b",  "/a/bc",
                                        "/a/b/c", "rel/x/y", "rel",    "/a/b/d"};
    struct bw_path_store store = {0};
    uint32_t numbers[9], file;
    for (size_t i = 0; i < 9; i++)
        assert_true(bw_path_store_directory(&store, paths[i], strlen(paths[i]), &numbers[i]));
    assert_int_equal(numbers[2], numbers[5]); /* each directory is kept once */
    assert_true(bw_path_store_add(&store, "/a/b/c/file", strlen("/a/b/c/file"), &file));
    struct bw_buffer whole = {0};
    bw_path_store_append(&store, file, &whole);
    assert_int_equal(whole.length, strlen("/a/b/c/file"));
    assert_memory_equal(whole.data, "/a/b/c/file", whole.length);
    bw_buffer_free(&whole);
    for (size_t i = 0; i < 9; i++) {
        struct bw_buffer path = {0};
        bw_path_store_append(&store, numbers[i], &path);
        assert_int_equal(path.length, strlen(paths[i]));
        if (path.length)
            assert_memory_equal(path.data, paths[i], path.length);
        bw_buffer_free(&path);
    }
    bw_path_store_free(&store);
}

/* The data of a directory in the list. */
struct made {
    char path[40];
    struct bw_place place;
    struct bw_inode inode;
};

enum { MADE = 40000 };

/* Directories of all kinds, with numbers and times of all lengths; `i` is in the path as
 * hexadecimal digits. */
static struct made made_directory(uint64_t i)
{
    static const char subvolumes[3];
    struct made made = {
        .place = {(const struct bw_subvolume *)&subvolumes[i % 50 ? 0 : 1 + i % 100 / 50],
                  256 + (i << i % 40), i % 9 ? BW_FILE_DIRECTORY : BW_FILE_REGULAR, i % 13 ? 0 : i},
        .inode = {.mtime = {(int64_t)(i * i) - 5000, (long)(i * 24001)},
                  .uid = (uint32_t)(i % 3 ? 1000 : i << 16),
                  .gid = (uint32_t)(i % 30),
                  .mode = S_IFDIR | (i & 07777),
                  .flags = i % 5}};
    made.inode.ctime = made.inode.atime = made.inode.mtime;
    if (i % 4 == 0)
        made.inode.ctime = (struct timespec){INT64_MIN, 999999999};
    if (i % 6 == 0)
        made.inode.atime = (struct timespec){INT64_MAX, 0};
    (void)snprintf(made.path, sizeof made.path, "%" PRIx64 "/%" PRIx64, i / 16, i);
    return made;
}

static struct bw_error *check_made(void *context, const char *path, size_t length,
                                   const struct bw_made_directory *directory)
{
    uint8_t *times = context;
    if (!strchr(path, '/'))
        return NULL;
    const uint64_t i = strtoull(strchr(path, '/') + 1, NULL, 16);
    const struct made made = made_directory(i);
    const struct bw_inode inode = bw_made_directory_inode(directory);
    assert_string_equal(path, made.path);
    assert_int_equal(length, strlen(path));
    assert_int_equal(times[i]++, 0);
    assert_ptr_equal(directory->place.subvolume, made.place.subvolume);
    assert_true(directory->place.inode == made.place.inode);
    assert_true(directory->place.type == made.place.type);
    assert_true(directory->place.directory == made.place.directory);
    assert_memory_equal(&inode.atime, &made.inode.atime, sizeof inode.atime);
    assert_memory_equal(&inode.ctime, &made.inode.ctime, sizeof inode.ctime);
    assert_memory_equal(&inode.mtime, &made.inode.mtime, sizeof inode.mtime);
    assert_true(inode.uid == made.inode.uid && inode.gid == made.inode.gid);
    assert_true(inode.mode == made.inode.mode && inode.flags == made.inode.flags);
    return NULL;
}

/* Adds a directory; and once more, which changes nothing, if it may come twice. */
static void add_made(struct bw_made_directories *directories, const struct made *made)
{
    assert_null(bw_made_directories_add(directories, made->path, strlen(made->path), &made->place,
                                        &made->inode));
    if (!directories->complete)
        assert_null(bw_made_directories_add(directories, made->path, strlen(made->path),
                                            &(struct bw_place){0}, &made->inode));
}

static void add_all_made(struct bw_made_directories *directories)
{
    for (uint64_t i = 0; i < MADE; i++) {
        const struct made made = made_directory(i);
        const size_t above = (size_t)(strchr(made.path, '/') - made.path);
        if (directories->complete && i % 16 == 0)
            assert_null(bw_made_directories_add(directories, made.path, above, &made.place,
                                                &(struct bw_inode){.size = 2}));
        add_made(directories, &made);
    }
}

static void visit_all_made(const struct bw_made_directories *directories)
{
    uint8_t *times = calloc(MADE, 1);
    assert_null(bw_made_directories_visit(directories, check_made, times));
    for (uint64_t i = 0; i < MADE; i++)
        assert_int_equal(times[i], 1);
    free(times);
}

static void test_made_directories(void **state)
{
    struct bw_made_directories directories = {0};
    add_all_made(&directories);
    assert_int_equal(directories.leaves.count, 0);
    visit_all_made(&directories);
    bw_made_directories_free(&directories);
}

/* One that has no entries takes less memory, unless it turns out to contain something. */
static void test_leaves(void **state)
{
    struct bw_made_directories directories = {.complete = true};
    const struct bw_place place = {0};
    const struct bw_inode inode = {.mode = S_IFDIR | 0700};
    add_all_made(&directories);
    assert_in_range(directories.leaves.count, MADE / 10, MADE / 7);
    visit_all_made(&directories);
    assert_null(bw_made_directories_add(&directories, "leaf", 4, &place, &inode));
    assert_null(bw_made_directories_add(&directories, "leaf/contents", 13, &place, &inode));
    assert_int_equal(directories.leaves.count, 0);
    bw_made_directories_free(&directories);
}

static struct bw_error *append_bytes(void *text, const char *bytes, size_t length)
{
    bw_buffer_append(text, bytes, length);
    return NULL;
}

static void test_mtree(void **state)
{
    const struct bw_inode inode = {
        .mode = S_IFREG | 0644, .size = 3, .uid = 7, .link_count = 1, .mtime = {-1, 999999999}};
    const struct bw_archive_entry entry = {.path = "a b\n\\\xff", .inode = &inode, .hash = "00ff"};
    struct bw_buffer text = {0};
    struct bw_archive *archive;
    uint64_t wanted = 0;
    assert_null(bw_archive_create(BW_ARCHIVE_MTREE, append_bytes, &text, &archive));
    assert_null(bw_archive_begin(archive, &entry, &wanted));
    bw_archive_destroy(archive);
    assert_int_equal(wanted, 0);
    assert_string_equal(bw_buffer_text(&text),
                        "#mtree\n./a\\040b\\012\\134\\377 type=file mode=0644 uid=7 gid=0 nlink=1 "
                        "time=-1.999999999 size=3 sha256digest=00ff\n");
    bw_buffer_free(&text);
}

/* An extreme time, and one that must not change. */
static void test_times(void **state)
{
    static const struct timespec zero = {0, 0}, half = {0, 500000000}, second = {1, 0};
    static const struct timespec first = {INT64_MIN, 0}, last = {INT64_MAX, 999999999};
    assert_true(bw_target_is_same_time(&half, &half));
    assert_true(bw_target_is_same_time(&zero, &half));
    assert_true(bw_target_is_same_time(&zero, &second));
    assert_false(bw_target_is_same_time(&half, &zero));
    assert_false(bw_target_is_same_time(&second, &zero));
    assert_false(bw_target_is_same_time(&zero, &first));
    assert_false(bw_target_is_same_time(&zero, &last));
    assert_false(bw_target_is_same_time(&first, &last));
}

/* Directories in the order of writing: "a" first, "a!" again. */
static struct bw_error *note_directory(void *context, const char *path,
                                       const struct bw_made_directory *directory,
                                       enum bw_directory_turn turn)
{
    assert_int_equal(directory->mode & S_IFMT, S_IFDIR);
    bw_buffer_format(context, " %s%s", *path ? path : ".", turn == BW_DIRECTORY_AGAIN ? "!" : "");
    return NULL;
}

/* Names of a walk: a '|' after a directory, and a '-' as well if its owner may not write to it. */
static void expect_order_with(const char *const *names, const char *expected, bool complete)
{
    struct bw_buffer text = {0};
    struct bw_directory_order order = {
        .write = note_directory, .context = &text, .all.complete = complete};
    const struct bw_place place = {0};
    for (; *names; names++) {
        size_t length = strcspn(*names, "|");
        const struct bw_inode inode = {.mode = S_IFDIR | (strchr(*names, '-') ? 0500 : 0700)};
        if ((*names)[length]) {
            assert_null(bw_made_directories_add(&order.all, *names, length, &place, &inode));
            continue;
        }
        assert_null(bw_directory_order_enter(&order, *names, length));
        bw_buffer_format(&text, " %s", *names);
    }
    assert_null(bw_directory_order_end(&order));
    assert_string_equal(bw_buffer_text(&text), expected);
    bw_buffer_free(&text);
    bw_directory_order_free(&order);
}

static void expect_order(const char *const *names, const char *expected)
{
    expect_order_with(names, expected, false);
    expect_order_with(names, expected, true);
}

static void test_directory_order(void **state)
{
    /* A level at a time, as the walk has it. */
    expect_order((const char *[]){"|", "a|", "b|", "x", "a/c|", "a/1", "b/1", "a/c/1", NULL},
                 " . x a a/1 b b/1 a/c a/c/1 a! .!");
    /* Names with common prefixes, and an empty directory. */
    expect_order(
        (const char *[]){"a|", "ab|", "a/b|", "a/bc|", "a/b/1", "a/bc/1", "ab/1", "a/2", NULL},
        " a a/b a/b/1 a/bc a/bc/1 ab ab/1 a/2 a!");
    /* A directory that tar has finished, and then enters again through a new one in it. */
    expect_order((const char *[]){"a|", "a/1", "b|", "b/1", "a/c|", "a/c/1", "a/2", "b/d|", "b/e|",
                                  "b/d/1", "b/2", NULL},
                 " a a/1 b b/1 a/c a/c/1 a/2 b/d b/d/1 b/2 b/e b! a!");
    expect_order((const char *[]){"a|", "a/b|", "a/b/1", "c|", "c/1", "a/b/d|", "a/b/d/1", "a/e|",
                                  "a/e/1", NULL},
                 " a a/b a/b/1 c c/1 a/b/d a/b/d/1 a/e a/e/1 a/b! a!");
    expect_order((const char *[]){"q|", "q/p|", "q/p/1", "q/r|", "q/r/1", "s|", "s/1", "q/p/d|",
                                  "q/p/d/1", "q/r/2", "q/2", NULL},
                 " q q/p q/p/1 q/r q/r/1 s s/1 q/p/d q/p/d/1 q/r/2 q/2 q/r! q/p! q!");
    /* A closed descriptor. */
    expect_order((const char *[]){"a|-", "a/1", "b|-", NULL}, " a a/1 b b! a!");
    /* Only some of them belong to the archive. */
    expect_order((const char *[]){"x/y/z|", "x/y/z/1", "x/2", "x/y/3", "x/y/z/4", NULL},
                 " x/y/z x/y/z/1 x/2 x/y/3 x/y/z/4 x/y/z!");
    expect_order((const char *[]){"1", "a/1", NULL}, " 1 a/1");
    /* Directories without entries, and between them one that has some. */
    expect_order((const char *[]){"|", "a|", "b|", "b/1", "c|", "b/d|", "b/e|-", "b/f|", NULL},
                 " . b b/1 a c b/d b/e b/f b/e! b! .!");
    /* A directory that comes after one in it. */
    expect_order((const char *[]){"a/b|", "c|", "a|", "c/1", "a/b/1", "a/1", NULL},
                 " c c/1 a a/b a/b/1 a/1");
    expect_order((const char *[]){"a/b|-", "|", "a|-", NULL}, " . a a/b a/b! a! .!");
}
