/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs: commands, and the contents that belong between them. The order (full.c, incremental.c) runs
 * in its own thread and pushes jobs into a bounded queue. The stream of data takes them as files,
 * reads their contents with many threads, and delivers them in order.
 *
 * Waking a thread for each job would cost more than making it. So the stream is woken when the
 * queue has several jobs, and the order when half of it is free.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "data/reader.h"
#include "stream/sender.h"

enum {
    LARGE_JOB = 64 << 10, /* commands; then a job ends, even without data */
    OUTPUT = 256 << 10,   /* bytes that are written at once */
    QUEUE = 64,           /* jobs */
    SEVERAL = 8,          /* jobs for which a thread is woken */
};

struct bw_send_job {
    struct bw_buffer commands; /* complete ones, before the data */
    size_t tail;               /* so many bytes of them are about the inode of the job before;
                                * SIZE_MAX: all, and so are the data */
    struct bw_data_file file;
    uint64_t offset, length; /* the data; length 0: none */
    bool encoded;
    struct bw_file_extent extent; /* if encoded */
    struct bw_encoded_range range;
    struct bw_buffer path;
    struct bw_buffer undo;  /* commands that remove the file again */
    struct bw_buffer bytes; /* what a worker has read */
    struct bw_error *error; /* why it could not read them */
    struct bw_send_job *next;
};

struct bw_send_jobs {
    struct bw_send_job *current; /* that commands are appended to */

    /* The queue, and spare jobs. */
    pthread_mutex_t lock;
    pthread_cond_t filled_up, drained;
    struct bw_send_job *first, **last; /* complete ones */
    unsigned count;
    struct bw_send_job *spare;
    bool ended;             /* the order is done, */
    struct bw_error *error; /* or has ended with this error */
    bool stopped;           /* the stream has ended */

    /* Delivery. */
    struct bw_buffer output;
    bool began;         /* the commands of the job being delivered are written */
    size_t write, data; /* where in the output the WRITE begins that is being filled */
    uint64_t filled;    /* bytes of data in that WRITE; 0: none is open */
    bool bad;           /* skip all commands for the current file */
    uint64_t lost;
};

/* Encoded writes. */

static uint32_t encoded_compression(const struct bw_sender *sender, uint8_t compression)
{
    uint32_t number = BW_ENCODED_LZO_4K;
    if (compression != BW_COMPRESS_LZO)
        return compression == BW_COMPRESS_ZLIB ? BW_ENCODED_ZLIB : BW_ENCODED_ZSTD;
    for (uint32_t size = 4096; size < sender->sent->fs->superblock.sectorsize; size *= 2)
        number++;
    return number;
}

size_t bw_send_encoded_begin(struct bw_sender *sender, const struct bw_file_extent *extent,
                             const struct bw_encoded_range *range, const struct bw_buffer *path,
                             struct bw_buffer *to, size_t *data)
{
    size_t at = bw_command_begin(to, BW_COMMAND_ENCODED_WRITE);
    bw_attribute_add(to, BW_ATTRIBUTE_PATH, path->data, path->length);
    bw_attribute_add_number(to, BW_ATTRIBUTE_FILE_OFFSET, range->offset);
    bw_attribute_add_number(to, BW_ATTRIBUTE_UNENCODED_FILE_LEN, range->length);
    bw_attribute_add_number(to, BW_ATTRIBUTE_UNENCODED_LEN, extent->ram_bytes);
    bw_attribute_add_number(to, BW_ATTRIBUTE_UNENCODED_OFFSET, range->skip);
    bw_attribute_add_number32(to, BW_ATTRIBUTE_COMPRESSION,
                              encoded_compression(sender, extent->compression));
    if (!extent->inline_data)
        bw_attribute_add_number32(to, BW_ATTRIBUTE_ENCRYPTION, 0);
    *data = bw_data_attribute_begin(to, sender->options.version);
    return at;
}

/* Making jobs. */

static struct bw_send_job *create_job(struct bw_send_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    struct bw_send_job *job = jobs->spare;
    if (job)
        jobs->spare = job->next;
    pthread_mutex_unlock(&jobs->lock);
    job = job ? job : calloc(1, sizeof *job);
    if (job)
        job->tail = SIZE_MAX;
    return job;
}

static void free_job(struct bw_send_job *job)
{
    bw_buffer_free(&job->commands);
    bw_buffer_free(&job->path);
    bw_buffer_free(&job->undo);
    bw_buffer_free(&job->bytes);
    bw_error_free(job->error);
    free(job);
}

/* Pushes the current job into the queue, and begins another one. */
static struct bw_error *end_job(struct bw_sender *sender)
{
    struct bw_send_jobs *jobs = sender->jobs;
    struct bw_send_job *job = jobs->current;
    if (job->commands.failed || job->path.failed || job->undo.failed)
        return bw_error_no_memory();
    struct bw_send_job *next = create_job(jobs);
    if (!next)
        return bw_error_no_memory();
    jobs->current = next;
    sender->commands = &next->commands;
    job->next = NULL;
    pthread_mutex_lock(&jobs->lock);
    while (jobs->count >= QUEUE && !jobs->stopped)
        pthread_cond_wait(&jobs->drained, &jobs->lock);
    *jobs->last = job;
    jobs->last = &job->next;
    if (++jobs->count == SEVERAL)
        pthread_cond_signal(&jobs->filled_up);
    const bool stopped = jobs->stopped;
    pthread_mutex_unlock(&jobs->lock);
    return stopped ? bw_error_create(BW_ERROR_STOPPED, "stopped") : NULL;
}

struct bw_error *bw_send_cut(struct bw_sender *sender)
{
    return sender->commands->length >= LARGE_JOB ? end_job(sender) : NULL;
}

static void set_file(struct bw_sender *sender, struct bw_send_job *job)
{
    struct bw_send_inode *current = &sender->current;
    current->is_changed = true;
    const struct bw_place place = {.subvolume = sender->sent->subvolume, .inode = current->number};
    job->file = bw_data_file_of(&place, &current->inode);
    bw_buffer_append(&job->path, current->path.data, current->path.length);
    bw_buffer_append(&job->undo, current->undo.data, current->undo.length);
}

struct bw_error *bw_send_add_data(struct bw_sender *sender, uint64_t offset, uint64_t length)
{
    struct bw_send_job *job = sender->jobs->current;
    set_file(sender, job);
    job->offset = offset;
    job->length = length;
    return end_job(sender);
}

struct bw_error *bw_send_add_encoded(struct bw_sender *sender, const struct bw_file_extent *extent,
                                     const struct bw_encoded_range *range)
{
    struct bw_send_job *job = sender->jobs->current;
    set_file(sender, job);
    job->offset = range->offset;
    job->length = range->length;
    job->encoded = true;
    job->extent = *extent;
    job->range = *range;
    return end_job(sender);
}

void bw_send_end_inode(struct bw_sender *sender)
{
    struct bw_send_job *job = sender->jobs->current;
    if (job->tail == SIZE_MAX)
        job->tail = job->commands.length;
}

static void *run_order(void *context)
{
    struct bw_sender *sender = context;
    struct bw_send_jobs *jobs = sender->jobs;
    struct bw_error *error = sender->parent ? bw_send_incremental(sender) : bw_send_full(sender);
    if (!error && !sender->options.no_end)
        bw_command_end(sender->commands, bw_command_begin(sender->commands, BW_COMMAND_END));
    if (!error)
        error = end_job(sender);
    pthread_mutex_lock(&jobs->lock);
    jobs->ended = true;
    jobs->error = error;
    pthread_cond_signal(&jobs->filled_up);
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* The stream asks for jobs, and reads their data. */

static struct bw_error *next_job(void *context, struct bw_stream_file *file, bool *got)
{
    struct bw_sender *sender = context;
    struct bw_send_jobs *jobs = sender->jobs;
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->first && !jobs->ended)
        pthread_cond_wait(&jobs->filled_up, &jobs->lock);
    struct bw_send_job *job = jobs->first;
    struct bw_error *error = job ? NULL : BW_TAKE(jobs->error);
    if (job) {
        jobs->first = job->next;
        if (!jobs->first)
            jobs->last = &jobs->first;
        if (jobs->count-- == QUEUE / 2)
            pthread_cond_signal(&jobs->drained);
    }
    pthread_mutex_unlock(&jobs->lock);
    *got = job;
    if (!job)
        return error;
    *file = (struct bw_stream_file){.user = job};
    if (job->length) {
        file->data = job->file;
        file->offset = job->offset;
        file->length = job->length;
    }
    return NULL;
}

static size_t held_bytes(void *context, const struct bw_stream_file *file)
{
    const struct bw_sender *sender = context;
    const struct bw_send_job *job = file->user;
    const size_t read = sender->options.compressed && job->length <= BW_SEND_DATA ? job->length : 0;
    return job->commands.length + job->path.length + job->undo.length + read;
}

/* Reads a small job as a whole. Stored bytes that cannot be read are read as data, for some of it
 * may be readable. */
static struct bw_error *read_job(void *context, struct bw_data_reader *reader,
                                 const struct bw_stream_file *file)
{
    struct bw_send_job *job = file->user;
    (void)context;
    if (!job->length)
        return NULL;
    if (job->encoded) {
        const size_t stored = (size_t)job->extent.disk_num_bytes;
        if (!bw_buffer_reserve(&job->bytes, stored))
            return bw_error_no_memory();
        BW_AUTO_ERROR struct bw_error *error =
            bw_data_read_stored(reader, &job->file, &job->extent, (uint8_t *)job->bytes.data);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        if (!error) {
            job->bytes.length = stored;
            return NULL;
        }
        job->encoded = false;
    }

    const struct bw_data_part *part;
    bw_data_begin(reader, &job->file, job->offset, job->length);
    for (;;) {
        BW_TRY(bw_data_next(reader, &part));
        if (!part)
            return bw_buffer_error(&job->bytes);
        const size_t length = (size_t)part->length;
        if (part->kind == BW_DATA_BYTES) {
            bw_buffer_append(&job->bytes, part->bytes, length);
        } else if (bw_buffer_reserve(&job->bytes, length)) {
            memset(job->bytes.data + job->bytes.length, 0, length);
            job->bytes.length += length;
        }
        if (part->kind == BW_DATA_BAD && !job->error)
            job->error = bw_error_copy(part->error);
    }
}

/* Delivery. */

static struct bw_error *flush_output(struct bw_sender *sender, size_t most)
{
    struct bw_buffer *output = &sender->jobs->output;
    BW_TRY(bw_buffer_error(output));
    if (output->length <= most || sender->jobs->filled)
        return NULL;
    sender->summary.bytes += output->length;
    BW_TRY(sender->options.write(sender->options.context, output->data, output->length));
    output->length = 0;
    return NULL;
}

/* Writes the commands of a job; those about a file that was left out are not written. */
static struct bw_error *begin_job(struct bw_sender *sender, const struct bw_send_job *job)
{
    struct bw_send_jobs *jobs = sender->jobs;
    if (jobs->began)
        return NULL;
    const bool continues_file = job->tail == SIZE_MAX;
    size_t from = 0;
    if (jobs->bad)
        from = continues_file ? job->commands.length : job->tail;
    jobs->began = true;
    jobs->bad &= continues_file;
    if (from < job->commands.length)
        bw_buffer_append(&jobs->output, job->commands.data + from, job->commands.length - from);
    return flush_output(sender, OUTPUT);
}

static void end_write(struct bw_sender *sender)
{
    struct bw_send_jobs *jobs = sender->jobs;
    if (!jobs->filled)
        return;
    bw_data_attribute_end(&jobs->output, jobs->data, sender->options.version);
    bw_command_end(&jobs->output, jobs->write);
    jobs->filled = 0;
}

/* Writes data, in WRITE commands that are as long as the protocol allows; NULL: zeros. */
static struct bw_error *write_data(struct bw_sender *sender, const struct bw_send_job *job,
                                   uint64_t offset, const uint8_t *bytes, uint64_t length)
{
    struct bw_send_jobs *jobs = sender->jobs;
    struct bw_buffer *output = &jobs->output;
    const uint64_t limit = sender->options.version >= 2 ? BW_SEND_DATA : BW_SEND_DATA_V1;
    for (uint64_t done = 0, step; done < length; done += step) {
        if (!jobs->filled) {
            jobs->write = bw_command_begin(output, BW_COMMAND_WRITE);
            bw_attribute_add(output, BW_ATTRIBUTE_PATH, job->path.data, job->path.length);
            bw_attribute_add_number(output, BW_ATTRIBUTE_FILE_OFFSET, offset + done);
            jobs->data = bw_data_attribute_begin(output, sender->options.version);
        }
        step = limit - jobs->filled < length - done ? limit - jobs->filled : length - done;
        if (bytes) {
            bw_buffer_append(output, bytes + done, (size_t)step);
        } else if (bw_buffer_reserve(output, (size_t)step)) {
            memset(output->data + output->length, 0, (size_t)step);
            output->length += step;
        }
        jobs->filled += step;
        if (jobs->filled == limit)
            end_write(sender);
        BW_TRY(flush_output(sender, OUTPUT));
    }
    return NULL;
}

/* With BW_SEND_SKIP, the receiver removes the file, and all further commands for it are omitted. */
static struct bw_error *tolerate_bad_range(struct bw_sender *sender, const struct bw_send_job *job,
                                           uint64_t offset, uint64_t length,
                                           const struct bw_error *error)
{
    struct bw_send_jobs *jobs = sender->jobs;
    struct bw_error *bad =
        bw_error_prefix(bw_error_copy(error), "%.*s: %" PRIu64 " bytes at %" PRIu64,
                        (int)job->path.length, job->path.data, length, offset);
    if (sender->options.damage == BW_SEND_STOP)
        return bad;
    bw_fs_report(sender->sent->fs, BW_DAMAGE, bad);
    jobs->lost++;
    if (sender->options.damage == BW_SEND_ZERO)
        return NULL;
    end_write(sender);
    jobs->bad = true;
    bw_buffer_append(&jobs->output, job->undo.data, job->undo.length);
    return NULL;
}

static struct bw_error *deliver_part(void *context, const struct bw_stream_file *file,
                                     const struct bw_data_part *part)
{
    struct bw_sender *sender = context;
    const struct bw_send_job *job = file->user;
    BW_TRY(begin_job(sender, job));
    if (sender->jobs->bad)
        return NULL;
    if (part->kind == BW_DATA_BAD)
        BW_TRY(tolerate_bad_range(sender, job, part->offset, part->length, part->error));
    if (sender->jobs->bad)
        return NULL;
    return write_data(sender, job, part->offset, part->bytes, part->length);
}

/* Ends a job, after writing what a worker has read; the job becomes a spare one. */
static struct bw_error *finish_job(void *context, const struct bw_stream_file *file, bool complete)
{
    struct bw_sender *sender = context;
    struct bw_send_jobs *jobs = sender->jobs;
    struct bw_send_job *job = file->user;
    struct bw_buffer *output = &jobs->output;
    struct bw_error *error = complete ? begin_job(sender, job) : NULL;
    const bool has_bytes = complete && !error && job->bytes.length && !jobs->bad;
    if (has_bytes && job->error)
        error = tolerate_bad_range(sender, job, job->offset, job->length, job->error);
    if (has_bytes && !error && !jobs->bad && job->encoded) {
        size_t data;
        size_t at =
            bw_send_encoded_begin(sender, &job->extent, &job->range, &job->path, output, &data);
        bw_buffer_append(output, job->bytes.data, job->bytes.length);
        bw_data_attribute_end(output, data, sender->options.version);
        bw_command_end(output, at);
    } else if (has_bytes && !error && !jobs->bad) {
        error = write_data(sender, job, job->offset, (const uint8_t *)job->bytes.data,
                           job->bytes.length);
    }
    end_write(sender);
    jobs->began = false;

    struct bw_buffer *buffers[] = {&job->commands, &job->path, &job->undo, &job->bytes};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        buffers[i]->length = 0;
        if (buffers[i]->capacity > LARGE_JOB)
            bw_buffer_free(buffers[i]);
    }
    bw_error_free(BW_TAKE(job->error));
    job->length = 0;
    job->encoded = false;
    pthread_mutex_lock(&jobs->lock);
    job->next = jobs->spare;
    jobs->spare = job;
    pthread_mutex_unlock(&jobs->lock);
    if (error || !complete)
        return error;
    return flush_output(sender, OUTPUT);
}

/* Everything. */

static void free_jobs(struct bw_send_job *job)
{
    while (job) {
        struct bw_send_job *next = job->next;
        free_job(job);
        job = next;
    }
}

void bw_send_jobs_destroy(struct bw_send_jobs *jobs)
{
    if (!jobs)
        return;
    free_jobs(jobs->first);
    free_jobs(jobs->spare);
    if (jobs->current)
        free_job(jobs->current);
    bw_buffer_free(&jobs->output);
    bw_error_free(jobs->error);
    pthread_cond_destroy(&jobs->filled_up);
    pthread_cond_destroy(&jobs->drained);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

struct bw_error *bw_send_jobs_create(struct bw_sender *sender)
{
    struct bw_send_jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return bw_error_no_memory();
    jobs->last = &jobs->first;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->filled_up, NULL);
    pthread_cond_init(&jobs->drained, NULL);
    sender->jobs = jobs;
    jobs->current = create_job(jobs);
    if (!jobs->current)
        return bw_error_no_memory();
    sender->commands = &jobs->current->commands;
    return NULL;
}

struct bw_error *bw_send_run(struct bw_sender *sender)
{
    const struct bw_stream stream = {
        .struct_size = sizeof stream,
        .threads = sender->options.threads,
        .next = next_job,
        .work = sender->options.compressed ? read_job : NULL,
        .work_limit = BW_SEND_DATA,
        .visit = deliver_part,
        .finish = finish_job,
        .held = held_bytes,
        .context = sender,
    };
    struct bw_send_jobs *jobs = sender->jobs;
    pthread_t thread;
    const int problem = bw_thread_start(&thread, run_order, sender);
    if (problem)
        return bw_error_from_errno(problem, "cannot start a thread");
    struct bw_error *error = bw_stream_run(sender->sent->fs, &stream);
    pthread_mutex_lock(&jobs->lock);
    jobs->stopped = true;
    pthread_cond_signal(&jobs->drained);
    pthread_mutex_unlock(&jobs->lock);
    pthread_join(thread, NULL);
    sender->summary.lost += jobs->lost;
    return error ? error : flush_output(sender, 0);
}
