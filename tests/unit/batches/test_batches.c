/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results in batches: the same, and in the same order, as callbacks get. Each way to end: the last
 * result, an error, an early end in any state of the function; several readers; and a check beside
 * another reader.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/walk_helpers.h"

#include "btrfs-walk/btrfs-walk.h"
#include "ondisk/disk.h"

enum { FILES = 5000 };

/* An image with more files than a batch has, and file names that do not fit into one batch. */
static void open_files(struct fixture *fixture)
{
    char name[64];
    *fixture = make_fixture();
    const uint64_t directory = iw_directory(fixture->image, FS, TOP, "directory");
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "file-with-a-name-that-has-more-letters-than-most-%u", i);
        iw_file(fixture->image, FS, directory, name);
    }
    open_fixture(fixture);
}

static void spoil(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->label[0] ^= 1;
}

/* An image with files of all kinds, and a bad superblock. */
static void open_sample(struct fixture *fixture)
{
    *fixture =
        (struct fixture){.image = sample_image(&(struct iw_options){.device_size = 66 << 20})};
    iw_superblock_edit(fixture->image, 0, 1, spoil, NULL, false);
    open_written(fixture);
}

/* Results as text. */

static struct bw_error *print_entry(void *context, const struct bw_entry *entry)
{
    const uint64_t transid = entry->inode ? entry->inode->transid : 0;
    bw_buffer_format(context, "%.*s %ju %ju %u %ju\n", (int)entry->path_length, entry->path,
                     (uintmax_t)bw_subvolume_id(entry->place.subvolume),
                     (uintmax_t)entry->place.inode, entry->place.type, (uintmax_t)transid);
    return NULL;
}

static struct bw_error *print_finding(void *context, const struct bw_findinginfo *finding)
{
    bw_buffer_format(context, "%s %s %s %ju", finding->code, finding->pass, finding->message,
                     (uintmax_t)finding->logical);
    for (size_t i = 0; i < finding->paths.length; i++)
        bw_buffer_format(context, " %.*s", (int)finding->paths.data[i].length,
                         finding->paths.data[i].data);
    bw_buffer_append_byte(context, '\n');
    return NULL;
}

static struct bw_error *print_owner(void *context, const struct bw_owner *owner)
{
    bw_buffer_format(context, "%u %ju %ju %.*s\n", owner->kind, (uintmax_t)owner->tree,
                     (uintmax_t)owner->logical, (int)owner->path.length,
                     owner->path.data ? owner->path.data : "");
    return NULL;
}

static struct bw_error *print_difference(void *context, const struct bw_difference *difference)
{
    bw_buffer_format(context, "%u %x %.*s %.*s", difference->status, difference->changes,
                     (int)difference->path_length, difference->path ? difference->path : "",
                     (int)difference->old_path_length,
                     difference->old_path ? difference->old_path : "");
    if (difference->entry)
        bw_buffer_format(context, " %o %.*s", difference->entry->mode,
                         (int)difference->entry->target_length,
                         difference->entry->target ? difference->entry->target : "");
    bw_buffer_append_byte(context, '\n');
    return NULL;
}

static struct bw_error *print_version(void *context, const struct bw_version *version)
{
    bw_buffer_format(context, "%.*s %ju %ju %ju\n", (int)version->path_length, version->path,
                     (uintmax_t)version->generation, (uintmax_t)version->place.inode,
                     (uintmax_t)bw_subvolume_id(version->place.subvolume));
    return NULL;
}

static struct bw_error *append_text(void *context, const char *text, size_t length)
{
    bw_buffer_append(context, text, length);
    return NULL;
}

static struct bw_error *append_bytes(void *context, const void *bytes, size_t length)
{
    return append_text(context, bytes, length);
}

static void print_batch(struct bw_buffer *text, const struct bw_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries)
            print_entry(text, &batch->entries[i]);
        if (batch->findings)
            print_finding(text, &batch->findings[i]);
        if (batch->owners)
            print_owner(text, &batch->owners[i]);
        if (batch->differences)
            print_difference(text, &batch->differences[i]);
        if (batch->versions)
            print_version(text, &batch->versions[i]);
    }
    bw_buffer_append(text, batch->text, batch->text_length);
}

/* Reads to the end, and prints the batches after closing everything else. The first bytes may
 * differ. Returns the number of batches. */
static size_t expect_batches(struct bw_batches *batches, const struct bw_buffer *expected,
                             size_t skipped)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_batch *all[4096], *batch;
    size_t count = 0;
    for (;;) {
        expect_success(bw_batches_next(batches, &batch));
        if (!batch)
            break;
        assert_true(count < COUNT(all) && batch->count <= 1024);
        all[count++] = batch;
    }
    expect_success(bw_batches_next(batches, &batch));
    assert_null(batch);
    assert_true(bw_batches_wait(batches, 0));
    expect_success(bw_batches_close(batches));
    for (size_t i = 0; i < count; i++) {
        print_batch(&text, all[i]);
        bw_batch_close(all[i]);
    }
    assert_true(expected->length > skipped);
    assert_int_equal(text.length, expected->length);
    assert_memory_equal(text.data + skipped, expected->data + skipped, text.length - skipped);
    return count;
}

static void test_walk(void **state)
{
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_walk_summary summary, expected_summary;
    open_files(&fixture);
    for (unsigned with_inodes = 0; with_inodes < 2; with_inodes++)
        for (unsigned order = BW_WALK_UNSORTED; order <= BW_WALK_BY_PATH; order++) {
            BW_AUTO_BUFFER struct bw_buffer expected = {0};
            struct bw_walk_options options = {.struct_size = sizeof options,
                                              .types = BW_WALK_ALL,
                                              .order = order,
                                              .threads = 3,
                                              .visit_inodes = with_inodes};
            expect_success(bw_batches_open_walk(fixture.fs, &options, &summary, &batches));
            options.visit = print_entry;
            options.context = &expected;
            expect_success(bw_walk(fixture.fs, &options, &expected_summary));
            assert_in_range(expect_batches(batches, &expected, 0), FILES / 1024, FILES / 8);
            assert_memory_equal(&summary, &expected_summary, sizeof summary);
        }
    close_fixture(&fixture);
}

static void test_rows(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_rows *rows;
    open_files(&fixture);
    expect_success(
        bw_rows_create("fileinfo",
                       &(struct bw_rows_options){.struct_size = sizeof(struct bw_rows_options),
                                                 .members = "path,size",
                                                 .terminator = '\n'},
                       &rows));
    struct bw_walk_options options = {.struct_size = sizeof options, .rows = rows};
    expect_success(bw_batches_open_walk(fixture.fs, &options, NULL, &batches));
    options.consume = append_text;
    options.context = &expected;
    expect_success(bw_walk(fixture.fs, &options, NULL));
    expect_batches(batches, &expected, 0);
    bw_rows_destroy(rows);
    close_fixture(&fixture);
}

static void test_empty(void **state)
{
    struct fixture fixture = make_fixture();
    struct bw_batches *batches;
    struct bw_batch *batch;
    const struct bw_walk_options options = {.struct_size = sizeof options};
    open_fixture(&fixture);
    expect_success(bw_batches_open_walk(fixture.fs, &options, NULL, &batches));
    while (!bw_batches_wait(batches, 1))
        continue;
    expect_success(bw_batches_next(batches, &batch));
    assert_null(batch);
    expect_success(bw_batches_next(batches, &batch));
    assert_null(batch);
    expect_success(bw_batches_close(batches));
    expect_success(bw_batches_close(NULL));
    bw_batch_close(NULL);
    close_fixture(&fixture);
}

static void test_check(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_check_summary *summary, *expected_summary;
    open_sample(&fixture);
    struct bw_check_options options = {.struct_size = sizeof options, .all = true};
    expect_success(bw_batches_open_check(fixture.fs, NULL, &options, &summary, &batches));
    options.visit = print_finding;
    options.context = &expected;
    expect_success(bw_check(fixture.fs, &options, &expected_summary));
    expect_batches(batches, &expected, 0);
    assert_true(summary->finished);
    assert_int_equal(summary->totals[BW_FINDING_ERROR], expected_summary->totals[BW_FINDING_ERROR]);
    bw_check_summary_free(summary);
    bw_check_summary_free(expected_summary);
    close_fixture(&fixture);
}

static void test_check_images(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_check_summary *summary, *expected_summary;
    struct bw_error *why = bw_error_create(BW_ERROR_CORRUPT, "a reason");
    open_sample(&fixture);
    struct bw_check_options options = {.struct_size = sizeof options};
    expect_success(bw_batches_open_check(fixture.fs, why, &options, &summary, &batches));
    options.visit = print_finding;
    options.context = &expected;
    expect_success(bw_check_images(fixture.fs, why, &options, &expected_summary));
    expect_batches(batches, &expected, 0);
    bw_check_summary_free(summary);
    bw_check_summary_free(expected_summary);
    bw_error_free(why);
    close_fixture(&fixture);
}

static void test_owners(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture;
    struct bw_batches *batches;
    open_sample(&fixture);
    const struct iw_block *block = iw_root_block(fixture.image, FS);
    const struct bw_address_range range = {block->logical, 1};
    struct bw_owner_options options = {
        .struct_size = sizeof options, .ranges = &range, .count = 1, .no_extent_tree = true};
    expect_success(bw_batches_open_owners(fixture.fs, &options, &batches));
    options.visit = print_owner;
    options.context = &expected;
    expect_success(bw_owners_find(fixture.fs, &options));
    expect_batches(batches, &expected, 0);
    close_fixture(&fixture);
}

static void test_diff(void **state)
{
    for (unsigned with_list = 0; with_list < 2; with_list++) {
        BW_AUTO_BUFFER struct bw_buffer expected = {0};
        static const char lines[] = "#mtree\n./link type=link link=elsewhere mode=0777\n";
        struct fixture fixture = make_fixture();
        struct bw_batches *batches;
        struct bw_diff_summary summary = {0}, expected_summary = {0};
        struct bw_list *list = NULL;
        iw_subvolume(fixture.image, 300, FS, TOP, "other", 0);
        iw_file(fixture.image, 300, TOP, "new");
        iw_symlink(fixture.image, 300, TOP, "link", "target");
        open_fixture(&fixture);
        struct bw_diff_side before = {.fs = fixture.fs, .subvolume = fixture.top};
        const struct bw_diff_side after = {.fs = fixture.fs,
                                           .subvolume = bw_subvolume_by_id(fixture.fs, 300)};
        if (with_list) {
            expect_success(bw_list_open(lines, sizeof lines - 1, &list));
            before = (struct bw_diff_side){.list = list};
        }
        struct bw_diff_options options = {.struct_size = sizeof options, .by_path = true};
        expect_success(bw_batches_open_diff(&before, &after, &options, &summary, &batches));
        options.visit = print_difference;
        options.context = &expected;
        expect_success(bw_diff(&before, &after, &options, &expected_summary));
        expect_batches(batches, &expected, 0);
        assert_memory_equal(&summary, &expected_summary, sizeof summary);
        bw_list_close(list);
        close_fixture(&fixture);
    }
}

static void count_call(void *context, size_t number, size_t count)
{
    ++*(size_t *)context;
}

static void test_versions(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture = make_fixture();
    struct bw_batches *batches;
    size_t calls = 0;
    iw_file(fixture.image, FS, TOP, "file");
    open_fixture(&fixture);
    const char *const path = iw_path(fixture.image, 0);
    const struct bw_fs_options images = {
        .struct_size = sizeof images, .paths = &path, .path_count = 1};
    struct bw_versions_options options = {.struct_size = sizeof options,
                                          .images = &images,
                                          .path = "/file",
                                          .progress = count_call,
                                          .context = &calls};
    expect_success(bw_batches_open_versions(fixture.fs, &options, &batches));
    options.visit = print_version;
    options.progress = NULL;
    options.context = &expected;
    expect_success(bw_versions(fixture.fs, &options));
    expect_batches(batches, &expected, 0);
    assert_true(calls > 0);
    close_fixture(&fixture);
}

/* The subvolume has no UUID, so the stream begins with a random one. */
static void test_send(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer expected = {0};
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_send_summary summary, expected_summary;
    open_files(&fixture);
    const struct bw_send_side side = {.fs = fixture.fs, .subvolume = fixture.top};
    struct bw_send_options options = {.struct_size = sizeof options};
    expect_success(bw_batches_open_send(&side, &options, &summary, &batches));
    options.write = append_bytes;
    options.context = &expected;
    expect_success(bw_send(&side, &options, &expected_summary));
    expect_batches(batches, &expected, 100);
    assert_int_equal(summary.bytes, expected.length);
    close_fixture(&fixture);
}

/* The end comes at any time, also while the function waits because its batch is full. */
static void test_early_end(void **state)
{
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_batch *batch = NULL;
    open_files(&fixture);
    const struct bw_walk_options options = {.struct_size = sizeof options, .visit_inodes = true};
    for (unsigned count = 0; count < 3; count++)
        for (unsigned pause = 0; pause < 2; pause++) {
            expect_success(bw_batches_open_walk(fixture.fs, &options, NULL, &batches));
            for (unsigned i = 0; i < count; i++) {
                expect_success(bw_batches_next(batches, &batch));
                bw_batch_close(batch);
            }
            if (pause)
                bw_batches_wait(batches, 1000);
            expect_success(bw_batches_close(batches));
        }
    close_fixture(&fixture);
}

static void test_stop(void **state)
{
    struct fixture fixture;
    struct bw_batches *batches;
    struct bw_batch *batch;
    open_files(&fixture);
    const struct bw_walk_options options = {.struct_size = sizeof options};
    expect_success(bw_batches_open_walk(fixture.fs, &options, NULL, &batches));
    assert_true(bw_batches_wait(batches, 100000));
    bw_batches_stop(batches);
    expect_success(bw_batches_next(batches, &batch));
    assert_null(batch);
    while (!bw_batches_wait(batches, 1000))
        continue;
    bw_batches_stop(batches);
    expect_success(bw_batches_close(batches));
    close_fixture(&fixture);
}

static bool never(void *context)
{
    ++*(atomic_uint *)context;
    return false;
}

static bool never_check(void *context, const struct bw_check_progress *progress)
{
    return never(context);
}

/* Errors of the function come after its results, once: from the next or from the close. */
static void test_errors(void **state)
{
    struct fixture fixture;
    struct bw_batches *batches = NULL;
    struct bw_batch *batch;
    struct bw_check_summary *summary;
    atomic_uint calls = 0;
    open_sample(&fixture);
    const struct bw_walk_options unknown = {.struct_size = sizeof unknown, .order = 99};
    for (unsigned from_close = 0; from_close < 2; from_close++) {
        expect_success(bw_batches_open_walk(fixture.fs, &unknown, NULL, &batches));
        while (!bw_batches_wait(batches, 1000))
            continue;
        if (!from_close) {
            expect_error(bw_batches_next(batches, &batch), BW_ERROR_USAGE, "unknown order 99");
            assert_null(batch);
            expect_success(bw_batches_next(batches, &batch));
            assert_null(batch);
            expect_success(bw_batches_close(batches));
        } else {
            expect_error(bw_batches_close(batches), BW_ERROR_USAGE, "unknown order 99");
        }
    }
    /* A callback of the caller stops it: this is an error. */
    const struct bw_walk_options stopping = {
        .struct_size = sizeof stopping, .proceed = never, .context = &calls};
    expect_success(bw_batches_open_walk(fixture.fs, &stopping, NULL, &batches));
    expect_error(bw_batches_next(batches, &batch), BW_ERROR_STOPPED, NULL);
    expect_success(bw_batches_close(batches));
    const struct bw_check_options check = {
        .struct_size = sizeof check, .progress = never_check, .context = &calls};
    expect_success(bw_batches_open_check(fixture.fs, NULL, &check, &summary, &batches));
    struct bw_error *error = NULL;
    do {
        error = bw_batches_next(batches, &batch);
        bw_batch_close(batch);
    } while (!error && batch);
    expect_error(error, BW_ERROR_STOPPED, NULL);
    expect_success(bw_batches_close(batches));
    bw_check_summary_free(summary);
    assert_true(calls >= 2);

    const struct bw_walk_options visiting = {.struct_size = sizeof visiting, .visit = print_entry};
    expect_error(bw_batches_open_walk(fixture.fs, &visiting, NULL, &batches), BW_ERROR_USAGE,
                 "no callback");
    expect_error(bw_batches_open_walk(fixture.fs, &(struct bw_walk_options){0}, NULL, &batches),
                 BW_ERROR_USAGE, "size");
    close_fixture(&fixture);
}

struct reading {
    struct bw_batches *batches;
    atomic_uint count;
};

static void *read_batches(void *context)
{
    struct reading *reading = context;
    struct bw_batch *batch;
    while (!bw_batches_next(reading->batches, &batch) && batch) {
        reading->count += (unsigned)batch->count;
        bw_batch_close(batch);
    }
    return NULL;
}

/* Each entry goes to one of several readers; all of them see the end, or that it was stopped. */
static void test_readers(void **state)
{
    struct fixture fixture;
    pthread_t threads[4];
    open_files(&fixture);
    for (unsigned is_stopped = 0; is_stopped < 2; is_stopped++) {
        const struct bw_walk_options options = {.struct_size = sizeof options};
        struct reading reading = {0};
        expect_success(bw_batches_open_walk(fixture.fs, &options, NULL, &reading.batches));
        for (size_t i = 0; i < COUNT(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, read_batches, &reading), 0);
        if (is_stopped)
            bw_batches_stop(reading.batches);
        for (size_t i = 0; i < COUNT(threads); i++)
            pthread_join(threads[i], NULL);
        if (!is_stopped)
            assert_int_equal(reading.count, FILES);
        expect_success(bw_batches_close(reading.batches));
    }
    close_fixture(&fixture);
}

struct listing {
    struct bw_fs *fs;
    size_t subvolumes;
};

static void *list_subvolumes(void *context)
{
    struct listing *listing = context;
    for (unsigned i = 0; i < 20; i++) {
        struct bw_subvolume_infos *infos = NULL;
        bw_error_free(bw_subvolume_infos_open(listing->fs, true, &infos));
        while (infos && bw_subvolume_infos_next(infos))
            listing->subvolumes++;
        bw_error_free(bw_subvolume_infos_close(infos));
    }
    return NULL;
}

static struct bw_error *ignore_finding(void *context, const struct bw_findinginfo *finding)
{
    return NULL;
}

/* A check while another thread reads the root tree. A build with SANITIZE=thread shows if they
 * share what one of them changes. */
static void test_beside_check(void **state)
{
    struct fixture fixture;
    open_sample(&fixture);
    const struct bw_check_options options = {.struct_size = sizeof options,
                                             .visit = ignore_finding};
    struct listing alone = {.fs = fixture.fs}, beside = alone;
    struct bw_check_summary *summary = NULL;
    pthread_t thread;
    list_subvolumes(&alone);
    assert_int_equal(pthread_create(&thread, NULL, list_subvolumes, &beside), 0);
    struct bw_error *error = bw_check(fixture.fs, &options, &summary);
    pthread_join(thread, NULL);
    expect_success(error);
    bw_check_summary_free(summary);
    assert_true(alone.subvolumes > 0);
    assert_int_equal(beside.subvolumes, alone.subvolumes);
    close_fixture(&fixture);
}
