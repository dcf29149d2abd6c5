/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stream: many files in order, work on the workers, errors, and every file ended exactly once.
 */
#include <sys/resource.h>

#include "support/data_image.h"

enum { FILES = 700, LARGE = 300, LARGE_SIZE = 6 << 20 };

/* Files that all read the same extents; number LARGE is larger than a block. */
struct job {
    struct data_image *image;
    uint64_t sizes[FILES];
    size_t given, ended;
    size_t current;  /* whose parts come */
    uint64_t offset; /* of its next part */
    size_t stop_at;  /* file at which `take` fails; FILES: never */
    size_t complete;
    bool work[FILES];     /* done by a worker */
    uint64_t read[FILES]; /* bytes, by the workers */
};

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct job *job = context;
    *got = job->given < FILES;
    if (!*got)
        return NULL;
    uint64_t size = job->sizes[job->given];
    *file = (struct bw_stream_file){.data = data_image_file(job->image, size, false),
                                    .length = UINT64_MAX,
                                    .user = (void *)(uintptr_t)job->given++};
    return NULL;
}

static struct bw_error *take(void *context, const struct bw_stream_file *file,
                             const struct bw_data_part *part)
{
    struct job *job = context;
    size_t number = (uintptr_t)file->user;
    assert_int_equal(number, job->current);
    assert_int_equal(part->offset, job->offset);
    if (number == job->stop_at)
        return bw_error_create(BW_ERROR_STOPPED, "enough");
    if (part->kind == BW_DATA_BYTES && part->offset < DATA_SIZE)
        assert_memory_equal(part->bytes, job->image->data + part->offset,
                            (size_t)(part->length < DATA_SIZE - part->offset
                                         ? part->length
                                         : DATA_SIZE - part->offset));
    job->offset += part->length;
    return NULL;
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct job *job = context;
    size_t number = (uintptr_t)file->user;
    assert_int_equal(number, job->ended);
    if (complete && !job->work[number])
        assert_int_equal(job->offset, job->sizes[number]);
    job->ended++;
    job->complete += complete;
    job->current = job->ended;
    job->offset = 0;
    return NULL;
}

static struct bw_error *work(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file)
{
    struct job *job = context;
    size_t number = (uintptr_t)file->user;
    job->work[number] = true;
    const struct bw_data_part *part;
    bw_data_begin(reader, &file->data, 0, UINT64_MAX);
    for (;;) {
        BW_TRY(bw_data_next(reader, &part));
        if (!part)
            return NULL;
        job->read[number] += part->length;
    }
}

static struct bw_error *work_and_fail(void *context, struct bw_data_reader *reader,
                                      const struct bw_stream_file *file)
{
    if ((uintptr_t)file->user == 50)
        return bw_error_create(BW_ERROR_SYSTEM, "no room");
    return work(context, reader, file);
}

static struct data_image *make(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_checksums(image, 0, 200);
    for (unsigned i = 0; i < LARGE_SIZE / DATA_SIZE; i++)
        data_image_plain(image, (uint64_t)i * DATA_SIZE, 0, 190 * SECTOR);
    data_image_inode(image, LARGE_SIZE, 0);
    data_image_open(image, NULL);
    return image;
}

static struct job begin(struct data_image *image)
{
    struct job job = {.image = image, .stop_at = FILES};
    for (size_t i = 0; i < FILES; i++)
        job.sizes[i] = i == LARGE ? LARGE_SIZE : i * 37 % 9000;
    return job;
}

static const unsigned threads[] = {1, 2, 8};

typedef struct bw_error *worker(void *context, struct bw_data_reader *reader,
                                const struct bw_stream_file *file);

static struct bw_error *run(const struct data_image *image, unsigned thread_count, struct job *job,
                            worker *whole, uint64_t limit)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = thread_count,
                                     .next = next,
                                     .work = whole,
                                     .work_limit = limit,
                                     .visit = take,
                                     .finish = finish,
                                     .context = job};
    return bw_stream_run(image->fs, &stream);
}

static void test_order(void **state)
{
    struct data_image *image = make();
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct job job = begin(image);
        expect_success(run(image, threads[i], &job, NULL, 0));
        assert_int_equal(job.ended, FILES);
        assert_int_equal(job.complete, FILES);
    }
    data_image_free(image);
}

static void test_work(void **state)
{
    struct data_image *image = make();
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct job job = begin(image);
        expect_success(run(image, threads[i], &job, work, 5000));
        assert_int_equal(job.complete, FILES);
        for (size_t file = 0; file < FILES; file++) {
            assert_int_equal(job.work[file], job.sizes[file] <= 5000);
            assert_int_equal(job.read[file], job.work[file] ? job.sizes[file] : 0);
        }
    }
    data_image_free(image);
}

/* A caller that does not limit the files for workers. */
static void test_work_by_default(void **state)
{
    struct data_image *image = make();
    struct job job = begin(image);
    expect_success(run(image, 2, &job, work, 0));
    assert_int_equal(job.complete, FILES);
    for (size_t file = 0; file < FILES; file++)
        assert_int_equal(job.work[file], job.sizes[file] <= 32 << 20);
    data_image_free(image);
}

static void test_stop(void **state)
{
    struct data_image *image = make();
    static const size_t stops[] = {1, 299, LARGE, 699};
    for (size_t i = 0; i < COUNT(threads); i++)
        for (size_t stop = 0; stop < COUNT(stops); stop++) {
            struct job job = begin(image);
            job.stop_at = stops[stop];
            expect_error(run(image, threads[i], &job, NULL, 0), BW_ERROR_STOPPED, "enough");
            assert_int_equal(job.complete, stops[stop]);
            assert_int_equal(job.ended, job.given);
        }
    data_image_free(image);
}

static void test_failing_work(void **state)
{
    struct data_image *image = make();
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct job job = begin(image);
        expect_error(run(image, threads[i], &job, work_and_fail, UINT64_MAX), BW_ERROR_SYSTEM,
                     "no room");
        assert_true(job.complete <= 50);
        assert_int_equal(job.ended, job.given);
    }
    data_image_free(image);
}

enum { MANY_BLOCKS = 128 << 20 };

static struct bw_error *next_of_one(void *context, struct bw_stream_file *file, bool *got)
{
    struct job *job = context;
    *got = !job->given++;
    *file = (struct bw_stream_file){.data = data_image_file(job->image, MANY_BLOCKS, false),
                                    .length = UINT64_MAX};
    return NULL;
}

static struct bw_error *take_any(void *context, const struct bw_stream_file *file,
                                 const struct bw_data_part *part)
{
    struct job *job = context;
    assert_int_equal(part->kind, BW_DATA_BYTES);
    job->offset += part->length;
    return NULL;
}

static struct bw_error *end_one(void *context, const struct bw_stream_file *file, bool complete)
{
    assert_true(complete);
    return NULL;
}

/* A file of many blocks takes the memory of a few, which are used again. */
static void test_blocks_are_used_again(void **state)
{
    enum { EXTENT = 128 * SECTOR };
    struct rusage before, after;
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_checksums(image, 0, 128);
    for (uint64_t offset = 0; offset < MANY_BLOCKS; offset += EXTENT)
        data_image_plain(image, offset, 0, EXTENT);
    data_image_inode(image, MANY_BLOCKS, 0);
    data_image_open(image, NULL);
    struct job job = {.image = image};
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = 1,
                                     .next = next_of_one,
                                     .visit = take_any,
                                     .finish = end_one,
                                     .context = &job};
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    expect_success(bw_stream_run(image->fs, &stream));
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_int_equal(job.offset, MANY_BLOCKS);
    assert_true((after.ru_maxrss - before.ru_maxrss) * 1024 < MANY_BLOCKS / 2);
    data_image_free(image);
}

/* Memory is aligned for direct reads, without gaps. */
static void test_memory(void **state)
{
    static const struct {
        size_t length, room;
    } takes[] = {{1, 4096}, {4096, 4096}, {4097, 8192}, {8192, 8192}, {0, 0}};
    struct bw_data_block block = {0};
    assert_true(bw_data_block_reserve(&block));
    const size_t whole = bw_data_block_room(&block);
    size_t used = 0;
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        assert_ptr_equal(bw_data_block_allocate(&block, takes[i].length), block.bytes + used);
        used += takes[i].room;
        assert_int_equal(bw_data_block_room(&block), whole - used);
    }
    bw_data_block_allocate(&block, whole - used - 1);
    assert_int_equal(bw_data_block_room(&block), 0);
    bw_data_block_free(&block);
}
