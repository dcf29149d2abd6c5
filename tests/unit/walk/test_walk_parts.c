/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a walk by themselves: directory table, ordered output, worker pool, lists. */
#include <stdatomic.h>
#include <unistd.h>

#include "base/pool.h"
#include "support/walk_helpers.h"
#include "walk/leaves.h"
#include "walk/walk.h"

#define GROUP_SETUP limit_resources

/* Directories. */

static void check_path(const struct bw_directory_table *table, uint32_t index, const char *wanted)
{
    struct bw_buffer path = {0};
    bw_buffer_append(&path, "/", 1);
    bw_any_directory_path(table, NULL, index, &path);
    assert_int_equal(path.length, strlen(wanted));
    assert_memory_equal(path.data, wanted, path.length);
    bw_buffer_free(&path);
}

static uint32_t add(struct bw_directory_table *table, uint64_t inode, uint32_t parent,
                    const char *name)
{
    uint32_t index;
    expect_success(bw_directories_add(table, inode, parent, name, strlen(name), 1, &index));
    return index;
}

static void check_closing(struct bw_directory_table *table, uint32_t parent)
{
    const size_t count = table->count;
    uint32_t number;
    bool is_new;
    assert_false(bw_directories_is_closed(table, 5000));
    expect_success(bw_directories_close(table, 5000, &is_new));
    assert_true(is_new);
    expect_success(bw_directories_close(table, 5000, &is_new));
    assert_false(is_new);
    assert_true(bw_directories_is_closed(table, 5000));
    assert_int_equal(bw_directories_find(table, 5000), BW_NO_DIRECTORY);
    assert_int_equal(table->count, count + 1);
    expect_success(bw_directories_reopen(table, 5000, parent, "closed", 6, &number));
    check_path(table, number, "/a/closed/");
    assert_int_equal(bw_directories_get(table, number).wave, 0);
    assert_int_equal(table->count, count + 1);
}

static void test_directory_table(void **state)
{
    struct bw_directory_table table = {0};
    for (unsigned round = 0; round < 2; round++) {
        expect_success(bw_directories_reset(&table, TOP));
        uint32_t a = add(&table, 300, 0, "a"), b = add(&table, 290, a, "bb");
        check_path(&table, 0, "/");
        check_path(&table, a, "/a/");
        check_path(&table, b, "/a/bb/");
        assert_int_equal(bw_directories_find(&table, TOP), 0);
        assert_int_equal(bw_directories_find(&table, 290), b);
        assert_int_equal(bw_directories_find(&table, 301), BW_NO_DIRECTORY);
        assert_true(bw_directories_matches(&table, b, a, "bb", 2));
        assert_false(bw_directories_matches(&table, b, 0, "bb", 2));
        assert_false(bw_directories_matches(&table, b, a, "bc", 2));
        assert_false(bw_directories_matches(&table, b, a, "b", 1));
        uint32_t parent = b;
        for (uint64_t inode = 1000; inode < 3000; inode++)
            parent = add(&table, inode, inode % 9 ? parent : 0, "name");
        assert_int_equal(table.count, 2003);
        check_path(&table, bw_directories_find(&table, 2997 + 1), "/name/name/");
        check_closing(&table, a);
    }
    bw_directories_free(&table);
}

/* More of them than there are in a chunk of memory, with inodes of all lengths. */
static void test_many_directories(void **state)
{
    enum { COUNT = 30000 };
    struct bw_directory_table table = {0};
    expect_success(bw_directories_reset(&table, TOP));
    uint32_t *numbers = calloc(COUNT, sizeof *numbers);
    for (uint64_t i = 0; i < COUNT; i++)
        numbers[i] = add(&table, 1000 + (i << i % 48), i ? numbers[i / 2] : 0, i % 7 ? "x" : "");
    size_t count = 0;
    for (uint32_t number = 0; number != BW_NO_DIRECTORY; count++) {
        const struct bw_walked_directory directory = bw_directories_get(&table, number);
        if (count) {
            assert_int_equal(number, numbers[count - 1]);
            assert_int_equal(directory.parent, count > 1 ? numbers[(count - 1) / 2] : 0);
            assert_int_equal(directory.wave, 1);
        }
        number = bw_directories_next(&table, number, &directory);
    }
    assert_int_equal(count, COUNT + 1);
    for (uint64_t i = 0; i < COUNT; i += 11) {
        const uint32_t number = bw_directories_find(&table, 1000 + (i << i % 48));
        assert_int_equal(bw_directories_get(&table, number).inode, 1000 + (i << i % 48));
    }
    assert_int_equal(bw_directories_find(&table, 7), BW_NO_DIRECTORY);
    free(numbers);
    bw_directories_free(&table);
}

static void test_found_directories(void **state)
{
    struct bw_packed found = {0};
    const struct bw_walked_directory one = {.inode = UINT64_MAX,
                                            .parent = BW_FOUND_LOCAL - 1,
                                            .walked = true,
                                            .name = "name",
                                            .name_length = 4};
    const uint32_t first = bw_found_directory_add(&found, &one);
    assert_int_equal(first, BW_FOUND_LOCAL);
    const struct bw_walked_directory other = {
        .inode = 300, .parent = first, .name = "b", .name_length = 1};
    const uint32_t second = bw_found_directory_add(&found, &other) & ~BW_FOUND_LOCAL;
    bw_found_directory_set_place(&found, 0, 77);
    struct bw_walked_directory got = bw_found_directory_get(&found, 0);
    assert_true(got.inode == one.inode && got.parent == one.parent && got.walked);
    assert_memory_equal(got.name, "name", got.name_length);
    assert_int_equal(bw_packed_next(&found, 0, got.size), second);
    got = bw_found_directory_get(&found, second);
    assert_true(got.inode == 300 && got.parent == first && !got.walked && got.name_length == 1);
    assert_int_equal(bw_any_directory_place(&found, first), 77);
    assert_int_equal(bw_packed_next(&found, second, got.size), BW_NO_RECORD);
    bw_packed_free(&found);
}

/* The pool. */

struct tally {
    atomic_uint runs[500];
    atomic_uint workers[8];
};

static void run_tally(void *context, unsigned worker, size_t task)
{
    struct tally *tally = context;
    atomic_fetch_add(&tally->runs[task], 1);
    atomic_fetch_add(&tally->workers[worker], 1);
}

static void test_pool(void **state)
{
    for (unsigned threads = 1; threads <= 8; threads++) {
        struct bw_pool *pool = bw_pool_create(threads);
        struct tally tally = {0};
        for (size_t count = 0; count <= 500; count += 50)
            bw_pool_run(pool, count, run_tally, &tally);
        for (size_t task = 0; task < 500; task++)
            assert_int_equal(tally.runs[task], 10 - task / 50);
        unsigned total = 0;
        for (size_t worker = 0; worker < 8; worker++) {
            total += tally.workers[worker];
            assert_true(worker < threads || tally.workers[worker] == 0);
        }
        assert_int_equal(total, 50 * 55);
        bw_pool_destroy(pool);
    }
    bw_pool_destroy(NULL);
}

/* Ordered output. */

struct writing {
    struct bw_ordered_output output;
    struct bw_buffer written;
    size_t line_length;
    size_t fail_at; /* consume fails when so many bytes came; 0: never */
    atomic_uint inside;
    bool overlapped;
};

static struct bw_error *write_down(void *context, const char *bytes, size_t length)
{
    struct writing *writing = context;
    writing->overlapped |= atomic_fetch_add(&writing->inside, 1) != 0;
    bw_buffer_append(&writing->written, bytes, length);
    atomic_fetch_sub(&writing->inside, 1);
    if (writing->fail_at && writing->written.length >= writing->fail_at)
        return bw_error_create(BW_ERROR_STOPPED, "enough");
    return NULL;
}

/* Task n writes n % 5 lines, each of its number; some take longer than others. */
static void write_task(void *context, unsigned worker, size_t number)
{
    struct writing *writing = context;
    struct bw_buffer buffer;
    bw_output_begin(&writing->output, number, &buffer);
    if (number % 7 == 0)
        usleep(300);
    for (size_t line = 0; line < number % 5; line++) {
        bw_buffer_format(&buffer, "%*s%zu\n", (int)writing->line_length, "", number);
        bw_output_offer(&writing->output, number, &buffer);
    }
    bw_output_finish(&writing->output, number, &buffer);
}

static void check_order(const struct writing *writing, size_t tasks)
{
    struct bw_buffer wanted = {0};
    for (unsigned series = 0; series < 2; series++)
        for (size_t number = 0; number < tasks; number++)
            for (size_t line = 0; line < number % 5; line++)
                bw_buffer_format(&wanted, "%*s%zu\n", (int)writing->line_length, "", number);
    assert_int_equal(wanted.length, writing->written.length);
    assert_memory_equal(wanted.data, writing->written.data, wanted.length);
    bw_buffer_free(&wanted);
}

static void test_order_is_kept(void **state)
{
    static const size_t line_lengths[] = {0, 50000, BW_OUTPUT_LIMIT / 2 + 1000};
    for (unsigned threads = 1; threads <= 12; threads += 3)
        for (size_t i = 0; i < COUNT(line_lengths); i++) {
            struct writing writing = {.line_length = line_lengths[i]};
            struct bw_pool *pool = bw_pool_create(threads);
            const size_t tasks = i == 0 ? 200 : 20;
            bw_output_init(&writing.output, write_down, &writing);
            for (unsigned series = 0; series < 2; series++) {
                bw_output_restart(&writing.output);
                bw_pool_run(pool, tasks, write_task, &writing);
            }
            assert_null(bw_output_destroy(&writing.output));
            check_order(&writing, tasks);
            assert_false(writing.overlapped);
            bw_pool_destroy(pool);
            bw_buffer_free(&writing.written);
        }
}

static void test_consumer_error(void **state)
{
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        struct writing writing = {.fail_at = 100};
        struct bw_pool *pool = bw_pool_create(threads);
        bw_output_init(&writing.output, write_down, &writing);
        bw_output_restart(&writing.output);
        bw_pool_run(pool, 300, write_task, &writing);
        assert_true(bw_output_stopped(&writing.output));
        expect_error(bw_output_destroy(&writing.output), BW_ERROR_STOPPED, "enough");
        assert_in_range(writing.written.length, 100, 200);
        bw_pool_destroy(pool);
        bw_buffer_free(&writing.written);
    }
}

static void test_first_error_counts(void **state)
{
    struct writing writing = {0};
    bw_output_init(&writing.output, write_down, &writing);
    assert_false(bw_output_stopped(&writing.output));
    bw_output_fail(&writing.output, bw_error_create(BW_ERROR_CORRUPT, "first"));
    bw_output_fail(&writing.output, bw_error_create(BW_ERROR_USAGE, "second"));
    bw_output_restart(&writing.output);
    write_task(&writing, 0, 0);
    expect_error(bw_output_destroy(&writing.output), BW_ERROR_CORRUPT, "first");
    assert_int_equal(writing.written.length, 0);
}

/* Entry lists. */

static void test_entry_list(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 16384});
    uint64_t directory = iw_directory(image, FS, TOP, "directory");
    iw_file(image, FS, TOP, "one");
    iw_symlink(image, FS, TOP, "symlink", "one");
    iw_file(image, FS, directory, "two");
    iw_subvolume(image, 256, FS, directory, "nest", 0);
    iw_write_memory(image);
    uint8_t block[16384];
    iw_block_bytes(image, iw_root_block(image, FS)->logical, block);
    struct bw_node leaf = bw_node_view(block, sizeof block);
    struct bw_buffer list = {0};
    assert_true(bw_entry_list_make(&leaf, false, &list));
    struct bw_entry_list_cursor cursor = bw_entry_list_begin(&list, false), entries;
    static const struct {
        uint64_t inode, child;
        const char *name;
        uint8_t type, location;
    } wanted[] = {{TOP, 257, "directory", BW_FILE_DIRECTORY, BW_INODE_ITEM},
                  {TOP, 0, "one", BW_FILE_REGULAR, BW_INODE_ITEM},
                  {257, 0, "two", BW_FILE_REGULAR, BW_INODE_ITEM},
                  {257, 256, "nest", BW_FILE_DIRECTORY, BW_ROOT_ITEM}};
    size_t at = 0;
    uint64_t inode;
    struct bw_dir_entry entry;
    while (bw_entry_list_next_directory(&cursor, &inode, &entries))
        for (; bw_entry_list_next_entry(&entries, &entry); at++) {
            assert_true(at < COUNT(wanted));
            assert_int_equal(inode, wanted[at].inode);
            assert_int_equal(entry.type, wanted[at].type);
            assert_int_equal(entry.location.type, wanted[at].location);
            assert_int_equal(entry.name_length, strlen(wanted[at].name));
            assert_memory_equal(entry.name, wanted[at].name, entry.name_length);
            if (wanted[at].child)
                assert_int_equal(entry.location.objectid, wanted[at].child);
        }
    assert_int_equal(at, COUNT(wanted));
    bw_buffer_free(&list);
    iw_destroy(image);
}

/* The pointer to a leaf; valid until the next call. */
static const struct bw_block_pointer *leaf_at(uint64_t bytenr, uint64_t generation)
{
    static struct bw_block_pointer pointer;
    pointer =
        (struct bw_block_pointer){.bytenr = bytenr, .expectation = {.generation = generation}};
    return &pointer;
}

static void test_entry_cache(void **state)
{
    struct bw_entry_cache *cache = bw_entry_cache_create(100000);
    struct bw_buffer list = {0}, found = {0};
    size_t hits = 0;
    for (unsigned i = 0; i < 1000; i++)
        bw_buffer_append_byte(&list, (char)i);
    for (uint64_t n = 0; n < 500; n++) {
        list.data[0] = (char)n;
        bw_entry_cache_put(cache, leaf_at(n << 14, 7), &list);
    }
    for (uint64_t n = 0; n < 500; n++) {
        bool has = bw_entry_cache_has(cache, leaf_at(n << 14, 7));
        assert_int_equal(bw_entry_cache_get(cache, leaf_at(n << 14, 7), &found), has);
        assert_false(bw_entry_cache_get(cache, leaf_at(n << 14, 8), &found));
        if (has && bw_entry_cache_get(cache, leaf_at(n << 14, 7), &found)) {
            assert_int_equal(found.length, 1000);
            assert_int_equal(found.data[0], (char)n);
        }
        hits += has;
    }
    assert_in_range(hits, 50, 100);
    bw_buffer_free(&list);
    bw_buffer_free(&found);
    bw_entry_cache_destroy(cache);
    bw_entry_cache_destroy(NULL);
}
