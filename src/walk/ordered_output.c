/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing the output of tasks in their order. Only the task whose turn it is writes. It does so
 * without the lock, since no other task gets its turn before it has finished. Then it also writes
 * the output of the tasks after it that have already finished.
 */
#include "walk/output.h"

#include "base/cleanup.h"

void bw_output_init(struct bw_ordered_output *output, bw_bytes_taker *consume, void *context)
{
    memset(output, 0, sizeof *output);
    output->consume = consume;
    output->context = context;
    output->window = 8;
    pthread_mutex_init(&output->lock, NULL);
    pthread_cond_init(&output->moved, NULL);
}

struct bw_error *bw_output_destroy(struct bw_ordered_output *output)
{
    bw_output_restart(output);
    while (output->spare_count)
        bw_buffer_free(&output->spare[--output->spare_count]);
    pthread_cond_destroy(&output->moved);
    pthread_mutex_destroy(&output->lock);
    return output->error;
}

void bw_output_restart(struct bw_ordered_output *output)
{
    output->head = 0;
    for (size_t i = 0; i < BW_OUTPUT_WINDOW; i++) {
        bw_buffer_free(&output->held[i].buffer);
        output->held[i].finished = false;
    }
}

void bw_output_fail(struct bw_ordered_output *output, struct bw_error *error)
{
    pthread_mutex_lock(&output->lock);
    output->error = bw_error_first(output->error, error);
    atomic_store(&output->stopped, true);
    pthread_mutex_unlock(&output->lock);
}

static void recycle(struct bw_ordered_output *output, struct bw_buffer *buffer)
{
    buffer->length = 0;
    if (output->spare_count < BW_OUTPUT_WINDOW && !buffer->failed)
        output->spare[output->spare_count++] = *buffer;
    else
        bw_buffer_free(buffer);
    *buffer = (struct bw_buffer){0};
}

void bw_output_begin(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer)
{
    *buffer = (struct bw_buffer){0};
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
    pthread_mutex_lock(&output->lock);
    while (output->head != number && buffer->length >= BW_OUTPUT_LIMIT)
        pthread_cond_wait(&output->moved, &output->lock);
    bool turn = output->head == number;
    pthread_mutex_unlock(&output->lock);
    if (turn)
        write_out(output, buffer);
}

void bw_output_finish(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer)
{
    pthread_mutex_lock(&output->lock);
    size_t at = number % BW_OUTPUT_WINDOW;
    output->held[at].buffer = *buffer;
    output->held[at].finished = true;
    *buffer = (struct bw_buffer){0};
    if (output->head == number) {
        while (at = output->head % BW_OUTPUT_WINDOW, output->held[at].finished) {
            struct bw_buffer ready = output->held[at].buffer;
            output->held[at].buffer = (struct bw_buffer){0};
            output->held[at].finished = false;
            pthread_mutex_unlock(&output->lock);
            write_out(output, &ready);
            pthread_mutex_lock(&output->lock);
            recycle(output, &ready);
            output->head++;
        }
        pthread_cond_broadcast(&output->moved);
    }
    pthread_mutex_unlock(&output->lock);
}
