/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contents of files of an image, compared with files of this machine or with hashes. Small files
 * are read and compared by the threads of a stream; the parts of large ones come in order. Holes on
 * both sides are not read, and holes alone are hashed as zeros.
 */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/hash.h"
#include "diff/entries.h"
#include "fs/fs.h"

enum {
    PIECE = 128 << 10, /* bytes of a file that are compared at a time */
    MOST_HASHES = 2,   /* of a file */
};

/* Hashing more zeros would take hours. */
#define MOST_ZEROS (UINT64_C(16) << 40)

/* A file that is being read. */
struct bw_content {
    struct bw_fs *fs;
    struct bw_content_job *job;
    struct bw_hash *hashes[MOST_HASHES];
    enum bw_hash_algorithm algorithms[MOST_HASHES];
    unsigned hash_count;
    uint64_t zeros;
    int descriptor;  /* -1: there is no file to compare with */
    uint8_t *buffer; /* PIECE bytes; NULL until it is needed */
};

/* The files of a stream. */
struct run {
    struct bw_fs *fs;
    const struct bw_diff_options *options;
    struct bw_content_job *jobs;
    size_t count, next;
};

/* Reports why the contents cannot be compared; only missing memory is an error. */
static struct bw_error *mark_unknown(struct bw_content *content, struct bw_error *error)
{
    content->job->is_unknown = true;
    return bw_fs_report_damage(content->fs, error);
}

static struct bw_error *begin_content(struct bw_fs *fs, struct bw_content_job *job)
{
    struct bw_content *content = job->running = calloc(1, sizeof *content);
    if (!content)
        return bw_error_no_memory();
    content->fs = fs;
    content->job = job;
    content->descriptor = -1;
    for (unsigned i = 0; i < BW_HASH_ALGORITHMS && content->hash_count < MOST_HASHES; i++) {
        if (!(job->algorithms >> i & 1))
            continue;
        content->algorithms[content->hash_count] = i;
        struct bw_error *error = bw_hash_create(i, &content->hashes[content->hash_count]);
        if (error)
            return mark_unknown(content, error);
        content->hash_count++;
    }
    if (job->algorithms)
        return NULL;
    struct bw_error *error =
        job->other->class->open_file(job->other, job->other_file, &content->descriptor);
    return error ? mark_unknown(content, error) : NULL;
}

/* Whether more of the file can change the result. */
static bool is_needed(const struct bw_content *content)
{
    return content->descriptor >= 0 || (content->hash_count && !content->job->is_unknown);
}

/* Compares a part with the file of this machine, sector by sector. */
static struct bw_error *compare_bytes(struct bw_content *content, const struct bw_data_part *part)
{
    static const uint8_t zeros[BW_MAX_NODESIZE];
    struct bw_content_job *job = content->job;
    const uint64_t live_size = job->other_file->facts.size;
    const size_t sectorsize = content->fs->superblock.sectorsize;
    const uint64_t part_end = part->offset + part->length;
    const uint64_t end = part_end < live_size ? part_end : live_size;
    for (uint64_t at = part->offset, length; at < end; at += length) {
        length = end - at;
        if (part->kind == BW_DATA_HOLE) { /* a hole on both sides is equal */
            const off_t data = lseek(content->descriptor, (off_t)at, SEEK_DATA);
            if (data < 0 && errno == ENXIO)
                return NULL;
            const uint64_t hole = data < 0 ? 0 : (uint64_t)data - at;
            if (hole) {
                length = hole < length ? hole : length;
                continue;
            }
        }
        length = length < PIECE ? length : PIECE;
        if (!content->buffer)
            content->buffer = malloc(PIECE);
        if (!content->buffer)
            return bw_error_no_memory();
        const ssize_t got =
            bw_folder_read(content->descriptor, content->buffer, (size_t)length, at);
        if (got < (ssize_t)length)
            return mark_unknown(content,
                                bw_error_from_errno(got < 0 ? errno : EIO, "%s: reading at %llu",
                                                    job->other_file->path, (unsigned long long)at));
        const uint8_t *bytes = part->bytes ? part->bytes + (at - part->offset) : NULL;
        for (size_t i = 0; i < length; i += sectorsize) {
            const size_t size = length - i < sectorsize ? (size_t)length - i : sectorsize;
            if (memcmp(bytes ? bytes + i : zeros, content->buffer + i, size) != 0)
                job->bytes += size;
        }
    }
    return NULL;
}

static struct bw_error *add_part(void *context, const struct bw_data_part *part)
{
    struct bw_content *content = context;
    const char *path = content->job->other_file->path;
    if (part->kind == BW_DATA_BAD)
        return mark_unknown(content, bw_error_prefix(bw_error_copy(part->error), "%s", path));
    if (content->descriptor >= 0)
        return compare_bytes(content, part);
    if (part->kind == BW_DATA_HOLE)
        content->zeros += part->length;
    if (content->zeros > MOST_ZEROS && !content->job->is_unknown)
        return mark_unknown(
            content,
            bw_error_create(BW_ERROR_USAGE, "%s: not hashed: more than 16 TiB of holes", path));
    for (unsigned i = 0; i < content->hash_count && !content->job->is_unknown; i++)
        if (part->kind == BW_DATA_BYTES)
            bw_hash_add(content->hashes[i], part->bytes, (size_t)part->length);
        else
            bw_hash_add_zeros(content->hashes[i], part->length);
    return NULL;
}

static struct bw_error *end_content(struct bw_content_job *job)
{
    struct bw_content *content = BW_TAKE(job->running);
    bool is_equal = false, failed = false;
    for (unsigned i = 0; i < content->hash_count; i++) {
        char text[BW_HASH_TEXT];
        bw_hash_end(content->hashes[i], text);
        bw_hash_destroy(content->hashes[i]);
        if (job->is_unknown || is_equal)
            continue;
        is_equal = strcasecmp(text, job->other_file->facts.hash) == 0;
        if (job->hash && !is_equal)
            continue;
        free(job->hash);
        job->hash = strdup(text);
        job->algorithm = content->algorithms[i];
        failed |= !job->hash;
    }
    job->differs = content->hash_count ? !is_equal && !job->is_unknown : job->bytes > 0;
    if (content->descriptor >= 0)
        close(content->descriptor);
    free(content->buffer);
    free(content);
    return failed ? bw_error_no_memory() : NULL;
}

/* The stream. */

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct run *run = context;
    *got = run->next < run->count;
    if (!*got)
        return NULL;
    struct bw_content_job *job = &run->jobs[run->next++];
    *file = (struct bw_stream_file){.data = job->data, .length = UINT64_MAX, .user = job};
    return NULL;
}

static struct bw_error *read_file(void *context, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct run *run = context;
    struct bw_content_job *job = file->user;
    BW_TRY(begin_content(run->fs, job));
    if (!is_needed(job->running))
        return NULL;
    const struct bw_data_part *part;
    bw_data_begin(reader, &file->data, 0, UINT64_MAX);
    for (;;) {
        BW_TRY(bw_data_next(reader, &part));
        if (!part)
            return NULL;
        BW_TRY(add_part(job->running, part));
    }
}

static struct bw_error *visit_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct run *run = context;
    struct bw_content_job *job = file->user;
    if (!job->running)
        BW_TRY(begin_content(run->fs, job));
    if (run->options->proceed && !run->options->proceed(run->options->context))
        return bw_error_create(BW_ERROR_STOPPED, "the comparison was stopped");
    return is_needed(job->running) ? add_part(job->running, part) : NULL;
}

static struct bw_error *finish_file(void *context, const struct bw_stream_file *file, bool complete)
{
    struct run *run = context;
    struct bw_content_job *job = file->user;
    if (complete && !job->running) /* an empty file */
        BW_TRY(begin_content(run->fs, job));
    return job->running ? end_content(job) : NULL;
}

struct bw_error *bw_content_jobs_run(struct bw_fs *fs, const struct bw_diff_options *options,
                                     struct bw_content_job *jobs, size_t count)
{
    struct run run = {.fs = fs, .options = options, .jobs = jobs, .count = count};
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = options->threads,
                                     .next = next_file,
                                     .work = read_file,
                                     .visit = visit_part,
                                     .finish = finish_file,
                                     .context = &run};
    if (!count)
        return NULL;
    bw_hash_prepare();
    struct bw_error *error = bw_stream_run(fs, &stream);
    for (size_t i = 0; i < count; i++) /* after an error, some may be unfinished */
        if (jobs[i].running)
            bw_error_free(end_content(&jobs[i]));
    return error;
}
