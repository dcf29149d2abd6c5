/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output of a walk: a writer, which makes text or records of a file, and the order in which
 * they reach the caller.
 *
 * Tasks run in parallel, and each writes its files into a buffer of its own. Only the task whose
 * turn it is passes its buffer on, so the order does not depend on the number of threads. It does
 * so without the lock, since no other task gets its turn before it has finished; then it also
 * passes on the buffers of the tasks after it that have already finished. Tasks far ahead of their
 * turn wait, which limits the memory.
 *
 * For a visitor, the text of a file is a record in memory, in the machine's own byte order. A
 * sorted walk writes a key before the text of each file, keeps everything, and sorts pointers to
 * the keys at the end.
 */
#include "walk/walk.h"

#include <assert.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/walk.h"
#include "data/extent_scan.h"
#include "fs/fs.h"

/* Writers. */

static void append_row(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                       struct bw_repeated *repeated, struct bw_buffer *text)
{
    bw_rows_append_file(writer->rows, file, repeated, text);
}

/* Comes before the path, and before the inode, if there is one. The record ends at a multiple of
 * eight bytes, so that the next one is aligned. */
struct entry_record {
    uint64_t subvolume, number;
    uint32_t path_length;
    uint8_t type;
    bool has_inode;
};

static void append_entry(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                         struct bw_repeated *repeated, struct bw_buffer *text)
{
    static const char zeros[8];
    const struct entry_record record = {file->subvolume, file->number, (uint32_t)file->path_length,
                                        file->type, file->inode != NULL};
    (void)writer, (void)repeated;
    /* A record is written completely or not at all: the reader does not check where it ends. */
    if (!bw_buffer_reserve(text,
                           sizeof record + sizeof *file->inode + file->path_length + sizeof zeros))
        return;
    bw_buffer_append(text, &record, sizeof record);
    if (file->inode)
        bw_buffer_append(text, file->inode, sizeof *file->inode);
    bw_buffer_append(text, file->path, file->path_length);
    bw_buffer_append(text, zeros, -file->path_length % sizeof zeros);
}

static_assert(sizeof(struct entry_record) % 8 == 0 && sizeof(struct bw_inode) % 8 == 0,
              "records follow each other without gaps");

/* Passes the records that tasks have written to the visitor, which sees them where they are. */
static struct bw_error *visit_records(void *context, const char *bytes, size_t length)
{
    struct bw_receiver *receiver = context;
    for (const char *at = bytes, *end = bytes + length; at < end;) {
        const struct entry_record *record = (const void *)at;
        const struct bw_inode *inode = NULL;
        at += sizeof *record;
        if (record->has_inode) {
            inode = (const void *)at;
            at += sizeof *inode;
        }
        if (!receiver->subvolume || bw_subvolume_id(receiver->subvolume) != record->subvolume)
            receiver->subvolume = bw_subvolume_by_id(receiver->fs, record->subvolume);
        const struct bw_entry entry = {
            .path = at,
            .path_length = record->path_length,
            .place = {receiver->subvolume, record->number, record->type, 0},
            .inode = inode,
        };
        BW_TRY(receiver->options->visit(receiver->options->context, &entry));
        at += (record->path_length + 7u) / 8 * 8;
    }
    return NULL;
}

/* The order of tasks. */

void bw_output_init(struct bw_ordered_output *output, bw_bytes_visitor *consume, void *context)
{
    memset(output, 0, sizeof *output);
    output->consume = consume;
    output->context = context;
    output->window = 8;
    output->limit = BW_OUTPUT_LIMIT;
    pthread_mutex_init(&output->lock, NULL);
    pthread_cond_init(&output->moved, NULL);
}

struct bw_error *bw_output_destroy(struct bw_ordered_output *output)
{
    for (size_t i = 0; i < BW_OUTPUT_WINDOW; i++)
        bw_buffer_free(&output->held[i].buffer);
    while (output->spare_count)
        bw_buffer_free(&output->spare[--output->spare_count]);
    pthread_cond_destroy(&output->moved);
    pthread_mutex_destroy(&output->lock);
    return output->error;
}

void bw_output_restart(struct bw_ordered_output *output)
{
    output->head = 0;
}

void bw_output_fail(struct bw_ordered_output *output, struct bw_error *error)
{
    output = output->outer ? output->outer : output;
    pthread_mutex_lock(&output->lock);
    output->error = bw_error_first(output->error, error);
    atomic_store(&output->stopped, true);
    pthread_mutex_unlock(&output->lock);
}

/* Moves the contents of a buffer. */
static void move_buffer(struct bw_buffer *from, struct bw_buffer *to)
{
    *to = *from;
    *from = (struct bw_buffer){0};
}

void bw_output_begin(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer)
{
    if (output->outer) {
        move_buffer(&output->text, buffer);
        return;
    }
    *buffer = (struct bw_buffer){0};
    const struct bw_walk_options *options = output->options;
    if (options && options->proceed && !options->proceed(options->context))
        bw_output_fail(output, bw_error_create(BW_ERROR_STOPPED, "the walk was stopped"));
    pthread_mutex_lock(&output->lock);
    while (number >= output->head + output->window)
        pthread_cond_wait(&output->moved, &output->lock);
    if (output->spare_count)
        *buffer = output->spare[--output->spare_count];
    pthread_mutex_unlock(&output->lock);
}

/* Called without the lock, and only for the task whose turn it is. */
static void write_out(struct bw_ordered_output *output, struct bw_buffer *buffer)
{
    struct bw_error *error = NULL;
    if (buffer->failed)
        error = bw_error_no_memory();
    else if (buffer->length && !bw_output_stopped(output))
        error = output->consume(output->context, buffer->data, buffer->length);
    if (error)
        bw_output_fail(output, error);
    buffer->length = 0;
}

void bw_output_offer(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer)
{
    if (buffer->length < BW_OUTPUT_CHUNK)
        return;
    if (output->outer) {
        bw_output_offer(output->outer, output->outer_task, buffer);
        return;
    }
    pthread_mutex_lock(&output->lock);
    while (output->head != number && buffer->length >= output->limit)
        pthread_cond_wait(&output->moved, &output->lock);
    bool turn = output->head == number;
    pthread_mutex_unlock(&output->lock);
    if (turn)
        write_out(output, buffer);
}

void bw_output_finish(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer)
{
    if (output->outer) {
        move_buffer(buffer, &output->text);
        return;
    }
    pthread_mutex_lock(&output->lock);
    size_t at = number % BW_OUTPUT_WINDOW;
    move_buffer(buffer, &output->held[at].buffer);
    output->held[at].finished = true;
    if (output->head == number) {
        while (at = output->head % BW_OUTPUT_WINDOW, output->held[at].finished) {
            struct bw_buffer ready;
            move_buffer(&output->held[at].buffer, &ready);
            output->held[at].finished = false;
            pthread_mutex_unlock(&output->lock);
            write_out(output, &ready);
            pthread_mutex_lock(&output->lock);
            if (output->spare_count < BW_OUTPUT_WINDOW && !ready.failed)
                output->spare[output->spare_count++] = ready;
            else
                bw_buffer_free(&ready);
            output->head++;
        }
        pthread_cond_broadcast(&output->moved);
    }
    pthread_mutex_unlock(&output->lock);
}

void bw_output_enter(struct bw_ordered_output *output, struct bw_ordered_output *outer, size_t task)
{
    output->outer = outer;
    output->outer_task = task;
    bw_output_begin(outer, task, &output->text);
}

void bw_output_leave(struct bw_ordered_output *output)
{
    bw_output_finish(output->outer, output->outer_task, &output->text);
    output->outer = NULL;
}

/* The sorting: headers with keys among the bytes, pointers to them, qsort(). */

/* Comes before the path (if entries are sorted by it) and the text. It is not aligned in the
 * buffer, so it is copied before it is used. */
struct sort_header {
    uint64_t key;
    uint32_t path_length, text_length;
};

/* Unknown values come last in both directions, and times before 1970 first. */
static uint64_t key_of(const struct bw_file_writer *writer, const struct bw_walked_file *file)
{
    uint64_t number = file->number;
    if (writer->order == BW_WALK_BY_PATH || (!file->inode && writer->order != BW_WALK_BY_INODE))
        return UINT64_MAX;
    if (writer->order == BW_WALK_BY_SIZE)
        number = file->inode->size;
    else if (writer->order == BW_WALK_BY_MTIME)
        number = (uint64_t)bw_time_nanoseconds(&file->inode->mtime) ^ UINT64_C(1) << 63;
    return writer->reverse ? ~number : number;
}

static void append_sortable(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                            struct bw_repeated *repeated, struct bw_buffer *text)
{
    struct sort_header sort_header = {.key = key_of(writer, file)};
    const size_t start = text->length;
    if (writer->order == BW_WALK_BY_PATH)
        sort_header.path_length = (uint32_t)file->path_length;
    bw_buffer_append(text, &sort_header, sizeof sort_header);
    bw_buffer_append(text, file->path, sort_header.path_length);
    const size_t begin = text->length;
    writer->inner->append(writer->inner, file, repeated, text);
    sort_header.text_length = (uint32_t)(text->length - begin);
    if (!text->failed)
        memcpy(text->data + start, &sort_header, sizeof sort_header);
}

/* Keeps the texts of a sorted walk. */
static struct bw_error *keep_texts(void *context, const char *bytes, size_t length)
{
    struct bw_buffer *sorted = context;
    bw_buffer_append(sorted, bytes, length);
    return bw_buffer_error(sorted);
}

static struct sort_header header_at(const char *bytes)
{
    struct sort_header sort_header;
    memcpy(&sort_header, bytes, sizeof sort_header);
    return sort_header;
}

/* Equal entries stay in the order in which they came, the order of their addresses. */
static int compare_texts(const void *a, const void *b, void *reverse)
{
    const int direction = *(const bool *)reverse ? -1 : 1;
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const struct sort_header one = header_at(left), other = header_at(right);
    if (one.key != other.key)
        return one.key < other.key ? -1 : 1;
    const int difference = bw_compare_bytes(left + sizeof one, one.path_length,
                                            right + sizeof other, other.path_length);
    if (difference)
        return difference > 0 ? direction : -direction;
    return left < right ? -1 : left > right;
}

/* Passes the texts on in their order, many at a time. */
static struct bw_error *pass_sorted(const struct bw_buffer *sorted, bool reverse,
                                    bw_bytes_visitor *consume, void *context)
{
    struct sort_header header;
    BW_SCOPED(bw_const_strings) struct bw_const_strings places = {0};
    BW_AUTO_BUFFER struct bw_buffer chunk = {0};
    for (size_t at = 0; at < sorted->length;) {
        header = header_at(sorted->data + at);
        BW_TRY(bw_const_strings_push(&places, sorted->data + at));
        at += sizeof header + header.path_length + header.text_length;
    }
    if (places.count)
        qsort_r(places.items, places.count, sizeof *places.items, compare_texts, &reverse);
    for (size_t i = 0; i < places.count; i++) {
        header = header_at(places.items[i]);
        bw_buffer_append(&chunk, places.items[i] + sizeof header + header.path_length,
                         header.text_length);
        if (chunk.length < BW_OUTPUT_CHUNK && i + 1 < places.count)
            continue;
        BW_TRY(bw_buffer_error(&chunk));
        BW_TRY(consume(context, chunk.data, chunk.length));
        chunk.length = 0;
    }
    return NULL;
}

/* The receiver. */

static void free_receiver(struct bw_receiver *receiver)
{
    bw_sharing_destroy(receiver->sharing);
    bw_user_names_close(receiver->user_names);
    bw_buffer_free(&receiver->sorted);
}

struct bw_error *bw_receiver_open(struct bw_receiver *receiver, struct bw_fs *fs,
                                  const struct bw_walk_options *options)
{
    const struct bw_rows *rows = options->rows;
    const struct bw_subvolume *from = NULL;
    struct bw_file_writer *inner = &receiver->inner;
    struct bw_error *error = NULL;
    *receiver = (struct bw_receiver){.fs = fs, .options = options};
    if (!options->visit && rows && bw_rows_record(rows) != &bw_fileinfo_record)
        return bw_error_create(BW_ERROR_USAGE, "a walk writes rows of the record %s, not %s",
                               bw_fileinfo_record.name, bw_rows_record(rows)->name);

    /* Records for a visitor, or rows; without any, paths with a NUL after each. */
    receiver->consume = options->consume;
    receiver->context = options->context;
    if (options->visit) {
        *inner = (struct bw_file_writer){.append = append_entry, .is_records = true};
        inner->needs = options->visit_inodes ? BW_FILE_NEEDS_INODE : 0;
        receiver->consume = visit_records;
        receiver->context = receiver;
    } else {
        *inner = (struct bw_file_writer){.append = append_row, .rows = rows};
        inner->is_path = bw_rows_are_paths(rows, &inner->escape, &inner->terminator);
        inner->needs = inner->is_path ? 0 : bw_rows_needs(rows);
    }

    /* The writer may need more than inodes. */
    if (inner->needs & BW_FILE_NEEDS_USER_NAMES) {
        if (options->subvolume)
            error = bw_subvolume_by_name(fs, options->subvolume, &from);
        if (!error)
            error = bw_user_names_open(fs, from, &receiver->user_names);
        inner->user_names = receiver->user_names;
    }
    if (!error && inner->needs & BW_FILE_NEEDS_SHARED)
        error = bw_sharing_create(fs, false, NULL, &receiver->sharing);
    inner->sharing = receiver->sharing;

    receiver->writer = *inner;
    if (options->order) {
        const bool by_inode =
            options->order == BW_WALK_BY_SIZE || options->order == BW_WALK_BY_MTIME;
        receiver->writer = (struct bw_file_writer){.append = append_sortable,
                                                   .needs = inner->needs,
                                                   .user_names = inner->user_names,
                                                   .sharing = inner->sharing,
                                                   .order = options->order,
                                                   .reverse = options->reverse,
                                                   .inner = inner};
        if (by_inode)
            receiver->writer.needs |= BW_FILE_NEEDS_INODE;
        receiver->pass = receiver->consume;
        receiver->pass_context = receiver->context;
        receiver->consume = keep_texts;
        receiver->context = &receiver->sorted;
    }
    if (error)
        free_receiver(receiver);
    return error;
}

struct bw_error *bw_receiver_close(struct bw_receiver *receiver, struct bw_error *error)
{
    if (receiver->sharing && !error)
        bw_sharing_report(receiver->sharing);
    if (receiver->options->order)
        error = bw_error_first(error, pass_sorted(&receiver->sorted, receiver->options->reverse,
                                                  receiver->pass, receiver->pass_context));
    free_receiver(receiver);
    return error;
}
