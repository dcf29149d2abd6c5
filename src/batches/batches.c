/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results in batches.
 *
 * A thread runs the function with callbacks of this file. They copy each result, with everything
 * that it points to, into the batch that is being filled. A reader gets this batch as a whole, so
 * there is no queue: while readers use their batches, the next one is filled, and the function
 * waits only when it is full.
 *
 * A reader that waits would get batches of a single result, because it is woken by the first. So it
 * waits a little longer for others, but never longer than LINGER.
 *
 * The copies of a batch are in blocks, which do not move; they are freed together.
 */
#include "btrfs-walk/batches.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/struct_size.h"
#include "base/thread.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"

enum {
    MOST_RESULTS = 1024, /* a batch with so many is full */
    MOST_BYTES = 256 << 10,
    BLOCK_SIZE = 32 << 10,
    LINGER = 2, /* milliseconds */
};

BW_VECTOR(bw_batch_entries, struct bw_entry);
BW_VECTOR(bw_batch_findings, struct bw_findinginfo);
BW_VECTOR(bw_batch_owners, struct bw_owner);
BW_VECTOR(bw_batch_differences, struct bw_difference);
BW_VECTOR(bw_batch_versions, struct bw_version);

/* Memory for copies. */
struct block {
    struct block *next;
    size_t used, size;
    _Alignas(8) char bytes[];
};

struct filled_batch {
    struct bw_batch batch; /* for the reader; set when it gets the batch. The first member */
    struct bw_batch_entries entries;
    struct bw_batch_findings findings;
    struct bw_batch_owners owners;
    struct bw_batch_differences differences;
    struct bw_batch_versions versions;
    struct bw_buffer text;
    struct block *blocks; /* the first one has room */
    size_t bytes;         /* of all copies and the text */
    bool failed;          /* memory has run out for a copy */
};

struct bw_batches {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t added, taken;  /* signalled for readers, and for the function */
    struct filled_batch *filling; /* NULL: no results since the last batch */
    struct bw_error *error;
    bool finished;       /* the function has ended */
    atomic_bool stopped; /* it should end */

    /* The function, and its arguments. */
    struct bw_error *(*run)(struct bw_batches *batches);
    struct bw_fs *fs;
    const struct bw_error *why; /* why the file system that is checked cannot be opened */
    struct bw_diff_side before, after;
    struct bw_send_side sent;
    void *summary;
    union {
        struct bw_walk_options walk;
        struct bw_check_options check;
        struct bw_owner_options owners;
        struct bw_diff_options diff;
        struct bw_versions_options versions;
        struct bw_send_options send;
    };

    /* Callbacks of the caller. */
    void *context;
    bool (*proceed)(void *context);
    bool (*check_progress)(void *context, const struct bw_check_progress *progress);
    void (*versions_progress)(void *context, size_t number, size_t count);
};

/* A batch. */

static void *allocate(struct filled_batch *filled, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    struct block *block = filled->blocks;
    if (!block || block->size - block->used < size) {
        const size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = malloc(sizeof *block + room);
        if (!block) {
            filled->failed = true;
            return NULL;
        }
        *block = (struct block){filled->blocks, 0, room};
        filled->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    filled->bytes += size;
    return memory;
}

/* A copy with a NUL after it; NULL without text or memory. */
static void *keep(struct filled_batch *filled, const void *bytes, size_t length)
{
    if (!bytes)
        return NULL;
    char *copy = allocate(filled, length + 1);
    if (copy) {
        memcpy(copy, bytes, length);
        copy[length] = 0;
    }
    return copy;
}

static const char *keep_text(struct filled_batch *filled, const char *text)
{
    return keep(filled, text, text ? strlen(text) : 0);
}

static size_t count_results(const struct filled_batch *filled)
{
    return filled->entries.count + filled->findings.count + filled->owners.count +
           filled->differences.count + filled->versions.count;
}

static bool is_full(const struct filled_batch *filled)
{
    return filled && (filled->bytes >= MOST_BYTES || count_results(filled) >= MOST_RESULTS);
}

void bw_batch_close(struct bw_batch *batch)
{
    struct filled_batch *filled = (struct filled_batch *)batch;
    if (!filled)
        return;
    while (filled->blocks) {
        struct block *block = filled->blocks;
        filled->blocks = block->next;
        free(block);
    }
    bw_batch_entries_free(&filled->entries);
    bw_batch_findings_free(&filled->findings);
    bw_batch_owners_free(&filled->owners);
    bw_batch_differences_free(&filled->differences);
    bw_batch_versions_free(&filled->versions);
    bw_buffer_free(&filled->text);
    free(filled);
}

/* Adding results, in threads of the function, one after the other. Between begin_result() and
 * end_result(), the lock is held. Readers are woken by a new batch, and by a full one. */

static struct bw_error *begin_result(struct bw_batches *batches, struct filled_batch **filled)
{
    pthread_mutex_lock(&batches->lock);
    while (is_full(batches->filling) && !batches->stopped)
        pthread_cond_wait(&batches->taken, &batches->lock);
    struct bw_error *error = NULL;
    if (batches->stopped) {
        error = bw_error_create(BW_ERROR_STOPPED, "stopped");
    } else if (!batches->filling) {
        batches->filling = calloc(1, sizeof *batches->filling);
        if (batches->filling)
            pthread_cond_broadcast(&batches->added);
        else
            error = bw_error_no_memory();
    }
    *filled = batches->filling;
    if (error)
        pthread_mutex_unlock(&batches->lock);
    return error;
}

/* `error` comes from adding the result to its vector. */
static struct bw_error *end_result(struct bw_batches *batches, struct bw_error *error)
{
    struct filled_batch *filled = batches->filling;
    if (!error && (filled->failed || filled->text.failed))
        error = bw_error_no_memory();
    if (is_full(filled))
        pthread_cond_broadcast(&batches->added);
    pthread_mutex_unlock(&batches->lock);
    return error;
}

static struct bw_error *add_entry(void *context, const struct bw_entry *entry)
{
    struct bw_entry copy = *entry;
    struct filled_batch *filled;
    BW_TRY(begin_result(context, &filled));
    copy.path = keep(filled, entry->path, entry->path_length);
    copy.inode = keep(filled, entry->inode, sizeof *entry->inode);
    filled->bytes += sizeof copy;
    return end_result(context, bw_batch_entries_push(&filled->entries, copy));
}

/* Replaces everything that a member of a record points to by a copy. Records within the record are
 * listed by functions that work only during the call. */
static void keep_member(struct filled_batch *filled, enum bw_member_type type, void *member)
{
    struct bw_bytes *bytes = member;
    struct bw_names *names = member;
    switch (type) {
    case BW_TYPE_TEXT:
        *(const char **)member = keep_text(filled, *(const char **)member);
        break;
    case BW_TYPE_BYTES:
        bytes->data = keep(filled, bytes->data, bytes->length);
        break;
    case BW_TYPE_NAMES:
        names->data = keep(filled, names->data, names->length * sizeof *names->data);
        for (size_t i = 0; names->data && i < names->length; i++) {
            struct bw_bytes *name = (struct bw_bytes *)&names->data[i];
            name->data = keep(filled, name->data, name->length);
        }
        break;
    case BW_TYPE_STRIPES:
        *(struct bw_stripes *)member = (struct bw_stripes){0};
        break;
    case BW_TYPE_RECORD:
    case BW_TYPE_RECORDS:
        *(struct bw_records *)member = (struct bw_records){0};
        break;
    case BW_TYPE_JSON:
        *(struct bw_json_value *)member = (struct bw_json_value){0};
        break;
    case BW_TYPE_U64:
    case BW_TYPE_I64:
    case BW_TYPE_KEY:
        break;
    }
}

static struct bw_error *add_finding(void *context, const struct bw_findinginfo *finding)
{
    const struct bw_record *record = bw_record_find("findinginfo");
    struct bw_findinginfo copy = *finding;
    struct filled_batch *filled;
    BW_TRY(begin_result(context, &filled));
    for (unsigned i = 0; i < record->member_count; i++)
        keep_member(filled, record->members[i].type, (char *)&copy + record->members[i].offset);
    filled->bytes += sizeof copy;
    return end_result(context, bw_batch_findings_push(&filled->findings, copy));
}

static struct bw_error *add_owner(void *context, const struct bw_owner *owner)
{
    struct bw_owner copy = *owner;
    struct filled_batch *filled;
    BW_TRY(begin_result(context, &filled));
    copy.path.data = keep(filled, owner->path.data, owner->path.length);
    filled->bytes += sizeof copy;
    return end_result(context, bw_batch_owners_push(&filled->owners, copy));
}

static const struct bw_diff_entry *keep_diff_entry(struct filled_batch *filled,
                                                   const struct bw_diff_entry *entry)
{
    struct bw_diff_entry *copy = keep(filled, entry, sizeof *entry);
    if (copy) {
        copy->target = keep(filled, entry->target, entry->target_length);
        copy->hash = keep_text(filled, entry->hash);
        copy->hash_name = keep_text(filled, entry->hash_name);
    }
    return copy;
}

static struct bw_error *add_difference(void *context, const struct bw_difference *difference)
{
    struct bw_difference copy = *difference;
    struct filled_batch *filled;
    BW_TRY(begin_result(context, &filled));
    copy.path = keep(filled, difference->path, difference->path_length);
    copy.old_path = keep(filled, difference->old_path, difference->old_path_length);
    copy.old_entry = keep_diff_entry(filled, difference->old_entry);
    copy.entry = keep_diff_entry(filled, difference->entry);
    filled->bytes += sizeof copy;
    return end_result(context, bw_batch_differences_push(&filled->differences, copy));
}

/* The file system of an older generation is closed after the call. */
static struct bw_error *add_version(void *context, const struct bw_version *version)
{
    struct bw_batches *batches = context;
    struct bw_version copy = *version;
    struct filled_batch *filled;
    BW_TRY(begin_result(batches, &filled));
    copy.path = keep(filled, version->path, version->path_length);
    copy.fs = NULL;
    if (version->place.subvolume)
        copy.place.subvolume =
            bw_subvolume_by_id(batches->fs, bw_subvolume_id(version->place.subvolume));
    filled->bytes += sizeof copy;
    return end_result(batches, bw_batch_versions_push(&filled->versions, copy));
}

static struct bw_error *add_text(void *context, const char *text, size_t length)
{
    struct filled_batch *filled;
    BW_TRY(begin_result(context, &filled));
    bw_buffer_append(&filled->text, text, length);
    filled->bytes += length;
    return end_result(context, NULL);
}

static struct bw_error *add_bytes(void *context, const void *bytes, size_t length)
{
    return add_text(context, bytes, length);
}

/* The functions. Callbacks of the caller get the context of the caller. */

static bool should_proceed(void *context)
{
    struct bw_batches *batches = context;
    return !batches->stopped && (!batches->proceed || batches->proceed(batches->context));
}

static bool pass_check_progress(void *context, const struct bw_check_progress *progress)
{
    struct bw_batches *batches = context;
    return !batches->stopped &&
           (!batches->check_progress || batches->check_progress(batches->context, progress));
}

static void pass_versions_progress(void *context, size_t number, size_t count)
{
    struct bw_batches *batches = context;
    if (batches->versions_progress)
        batches->versions_progress(batches->context, number, count);
}

static struct bw_error *run_walk(struct bw_batches *batches)
{
    return bw_walk(batches->fs, &batches->walk, batches->summary);
}

static struct bw_error *run_check(struct bw_batches *batches)
{
    if (batches->why)
        return bw_check_images(batches->fs, batches->why, &batches->check, batches->summary);
    return bw_check(batches->fs, &batches->check, batches->summary);
}

static struct bw_error *run_owners(struct bw_batches *batches)
{
    return bw_owners_find(batches->fs, &batches->owners);
}

static struct bw_error *run_diff(struct bw_batches *batches)
{
    return bw_diff(&batches->before, &batches->after, &batches->diff, batches->summary);
}

static struct bw_error *run_versions(struct bw_batches *batches)
{
    return bw_versions(batches->fs, &batches->versions);
}

static struct bw_error *run_send(struct bw_batches *batches)
{
    return bw_send(&batches->sent, &batches->send, batches->summary);
}

static void *run_thread(void *context)
{
    struct bw_batches *batches = context;
    struct bw_error *error = batches->run(batches);
    pthread_mutex_lock(&batches->lock);
    if (error && error->code == BW_ERROR_STOPPED && batches->stopped) {
        bw_error_free(error);
        error = NULL;
    }
    batches->error = error;
    batches->finished = true;
    pthread_cond_broadcast(&batches->added);
    pthread_mutex_unlock(&batches->lock);
    return NULL;
}

/* Opening and closing. */

static struct bw_error *create(struct bw_error *(*run)(struct bw_batches *batches),
                               struct bw_fs *fs, void *summary, struct bw_batches **batches)
{
    *batches = calloc(1, sizeof **batches);
    if (!*batches)
        return bw_error_no_memory();
    (*batches)->run = run;
    (*batches)->fs = fs;
    (*batches)->summary = summary;
    return NULL;
}

static struct bw_error *callback_is_set(void)
{
    return bw_error_create(BW_ERROR_USAGE, "batches receive the results: no callback may be set");
}

/* Starts the thread, which owns nothing. `*created` becomes NULL, except after an error. */
static struct bw_error *start(struct bw_batches **created, struct bw_batches **opened)
{
    struct bw_batches *batches = *created;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&batches->added, &attributes);
    pthread_cond_init(&batches->taken, NULL);
    pthread_mutex_init(&batches->lock, NULL);
    pthread_condattr_destroy(&attributes);
    const int problem = bw_thread_start(&batches->thread, run_thread, batches);
    if (problem)
        return bw_error_from_errno(problem, "cannot start a thread");
    *opened = BW_TAKE(*created);
    return NULL;
}

struct bw_error *bw_batches_open_walk(struct bw_fs *fs, const struct bw_walk_options *given,
                                      struct bw_walk_summary *summary, struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    BW_TRY(create(run_walk, fs, summary, &batches));
    struct bw_walk_options *options = &batches->walk;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->visit || options->consume)
        return callback_is_set();
    batches->context = options->context;
    batches->proceed = options->proceed;
    options->context = batches;
    options->proceed = should_proceed;
    if (options->rows)
        options->consume = add_text;
    else
        options->visit = add_entry;
    return start(&batches, opened);
}

struct bw_error *bw_batches_open_check(struct bw_fs *fs, const struct bw_error *why,
                                       const struct bw_check_options *given,
                                       struct bw_check_summary **summary,
                                       struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    *summary = NULL;
    BW_TRY(create(run_check, fs, summary, &batches));
    struct bw_check_options *options = &batches->check;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->visit)
        return callback_is_set();
    batches->why = why;
    batches->context = options->context;
    batches->check_progress = options->progress;
    options->context = batches;
    options->progress = pass_check_progress;
    options->visit = add_finding;
    return start(&batches, opened);
}

struct bw_error *bw_batches_open_owners(struct bw_fs *fs, const struct bw_owner_options *given,
                                        struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    BW_TRY(create(run_owners, fs, NULL, &batches));
    struct bw_owner_options *options = &batches->owners;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->visit)
        return callback_is_set();
    options->context = batches;
    options->visit = add_owner;
    return start(&batches, opened);
}

struct bw_error *bw_batches_open_diff(const struct bw_diff_side *before,
                                      const struct bw_diff_side *after,
                                      const struct bw_diff_options *given,
                                      struct bw_diff_summary *summary, struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    BW_TRY(create(run_diff, NULL, summary, &batches));
    struct bw_diff_options *options = &batches->diff;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->visit)
        return callback_is_set();
    batches->before = *before;
    batches->after = *after;
    batches->context = options->context;
    batches->proceed = options->proceed;
    options->context = batches;
    options->proceed = should_proceed;
    options->visit = add_difference;
    return start(&batches, opened);
}

struct bw_error *bw_batches_open_versions(struct bw_fs *present,
                                          const struct bw_versions_options *given,
                                          struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    BW_TRY(create(run_versions, present, NULL, &batches));
    struct bw_versions_options *options = &batches->versions;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->visit)
        return callback_is_set();
    batches->context = options->context;
    batches->versions_progress = options->progress;
    options->context = batches;
    options->progress = pass_versions_progress;
    options->visit = add_version;
    return start(&batches, opened);
}

struct bw_error *bw_batches_open_send(const struct bw_send_side *side,
                                      const struct bw_send_options *given,
                                      struct bw_send_summary *summary, struct bw_batches **opened)
{
    BW_AUTO_FREE struct bw_batches *batches = NULL;
    BW_TRY(create(run_send, NULL, summary, &batches));
    struct bw_send_options *options = &batches->send;
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    if (options->write)
        return callback_is_set();
    batches->sent = *side;
    options->context = batches;
    options->write = add_bytes;
    return start(&batches, opened);
}

void bw_batches_stop(struct bw_batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    batches->stopped = true;
    struct filled_batch *discarded = BW_TAKE(batches->filling);
    pthread_cond_broadcast(&batches->added);
    pthread_cond_broadcast(&batches->taken);
    pthread_mutex_unlock(&batches->lock);
    bw_batch_close((struct bw_batch *)discarded);
}

struct bw_error *bw_batches_close(struct bw_batches *batches)
{
    if (!batches)
        return NULL;
    bw_batches_stop(batches);
    pthread_join(batches->thread, NULL);
    struct bw_error *error = batches->error;
    pthread_cond_destroy(&batches->added);
    pthread_cond_destroy(&batches->taken);
    pthread_mutex_destroy(&batches->lock);
    free(batches);
    return error;
}

/* Reading. */

static struct timespec time_after(unsigned milliseconds)
{
    return bw_clock_after((uint64_t)milliseconds * 1000000);
}

struct bw_error *bw_batches_next(struct bw_batches *batches, struct bw_batch **batch)
{
    pthread_mutex_lock(&batches->lock);
    bool has_lingered = false;
    while (!batches->finished && !batches->stopped && !is_full(batches->filling) &&
           !(batches->filling && has_lingered)) {
        if (batches->filling) {
            const struct timespec end = time_after(LINGER);
            has_lingered = pthread_cond_timedwait(&batches->added, &batches->lock, &end) != 0;
        } else {
            pthread_cond_wait(&batches->added, &batches->lock);
        }
    }
    struct filled_batch *filled = BW_TAKE(batches->filling);
    struct bw_error *error = NULL;
    if (!filled)
        error = BW_TAKE(batches->error);
    pthread_cond_signal(&batches->taken);
    pthread_mutex_unlock(&batches->lock);

    *batch = NULL;
    if (filled) {
        filled->batch = (struct bw_batch){
            .count = count_results(filled),
            .entries = filled->entries.items,
            .findings = filled->findings.items,
            .owners = filled->owners.items,
            .differences = filled->differences.items,
            .versions = filled->versions.items,
            .text = filled->text.data,
            .text_length = filled->text.length,
        };
        *batch = &filled->batch;
    }
    return error;
}

bool bw_batches_wait(struct bw_batches *batches, unsigned milliseconds)
{
    const struct timespec end = time_after(milliseconds);
    int problem = 0;
    pthread_mutex_lock(&batches->lock);
    while (!batches->filling && !batches->finished && problem != ETIMEDOUT)
        problem = pthread_cond_timedwait(&batches->added, &batches->lock, &end);
    const bool is_ready = batches->filling || batches->finished;
    pthread_mutex_unlock(&batches->lock);
    return is_ready;
}
