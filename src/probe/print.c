/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing events as text: seconds since the beginning, thread, probe, then NAME=VALUE for each
 * member, with names escaped and "-" for members that the probe does not fill; or as JSON, which
 * omits these.
 */
#include "probe/probe.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/struct_size.h"
#include "record/rows.h"

enum { GATHER_BYTES = 32 << 10, SECOND = 1000000000 };

/* Events as lines. */

/* The system call gettid(2) is made only once per thread: the number never changes, so it is not
 * part of the printer's state. The TLS model makes reading it a plain load. */
static uint32_t thread_number(void)
{
    static _Thread_local uint32_t number __attribute__((tls_model("initial-exec")));
    if (!number)
        number = (uint32_t)syscall(SYS_gettid);
    return number;
}

struct bw_error *bw_event_format_init(bool json, const bool selected[BW_PROBES_MAX],
                                      struct bw_event_format *format)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .style = json ? BW_ROWS_JSON_LINES
                                                          : (enum bw_rows_style)BW_ROWS_WORDS};
    unsigned count;
    const struct bw_probe *table = bw_probe_table(&count);
    *format = (struct bw_event_format){.json = json};
    for (unsigned i = 0; i < count; i++)
        if (selected[i])
            BW_TRY(bw_rows_create(table[i].record->name, &options, &format->rows[i]));
    return NULL;
}

void bw_event_format_free(struct bw_event_format *format)
{
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        bw_rows_destroy(format->rows[i]);
}

static void append_text(struct bw_buffer *text, const char *words)
{
    bw_buffer_append(text, words, strlen(words));
}

/* BEFORE NUMBER */
static void append_number(struct bw_buffer *text, const char *before, uint64_t number)
{
    char digits[BW_DECIMAL_ROOM];
    append_text(text, before);
    bw_buffer_append(text, digits, (size_t)(bw_decimal(digits, number) - digits));
}

/* Appends seconds with nine decimals, aligned; an event of another thread may precede the
 * beginning. */
static void append_time(struct bw_buffer *text, uint64_t time, uint64_t begin)
{
    bool before = time < begin;
    uint64_t since = before ? begin - time : time - begin;
    uint32_t fraction = (uint32_t)(since % SECOND);
    char digits[9] = {(char)('0' + fraction / 100000000)};
    bw_decimal_eight(digits + 1, fraction % 100000000);
    for (uint64_t limit = 1000; limit > 1 && since / SECOND < limit; limit /= 10)
        bw_buffer_append_byte(text, ' ');
    append_number(text, before ? "-" : "", since / SECOND);
    bw_buffer_append_byte(text, '.');
    bw_buffer_append(text, digits, sizeof digits);
}

void bw_event_append(const struct bw_event_format *format, const struct bw_probe_event *event,
                     const struct bw_event_context *context, struct bw_buffer *text)
{
    const struct bw_rows *rows = format->rows[event->probe->number];
    if (!format->json) {
        append_time(text, event->time, context->begin);
        append_number(text, " ", thread_number());
        bw_buffer_append_byte(text, ' ');
        append_text(text, event->probe->name);
        bw_rows_append_members(rows, event->record, event->members, text);
        return;
    }
    bw_buffer_append_byte(text, '{');
    if (context->number)
        append_number(text, "\"number\":", context->number);
    append_text(text, context->number ? ",\"probe\":\"" : "\"probe\":\"");
    append_text(text, event->probe->name);
    append_number(text, "\",\"time\":", event->time);
    append_number(text, ",\"thread\":", thread_number());
    bw_rows_append_members(rows, event->record, event->members, text);
    append_text(text, context->cut ? ",\"cut\":true}" : "}");
}

/* The printer. */

struct bw_probe_printer {
    struct bw_probe_consumer consumer;
    struct bw_probe_printer_options options;
    struct bw_event_format format;
    pthread_mutex_t lock; /* protects the following members */
    struct bw_buffer text;
    uint64_t printed;
    uint64_t begin;         /* time of the earliest event */
    struct bw_error *error; /* the first error */
};

static void flush_text(struct bw_probe_printer *printer)
{
    struct bw_buffer *text = &printer->text;
    if (!printer->error && text->failed)
        printer->error = bw_error_no_memory();
    if (!printer->error && text->length)
        printer->error =
            printer->options.consume(printer->options.context, text->data, text->length);
    text->length = 0;
}

static void print_event(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_printer *printer = (struct bw_probe_printer *)consumer; /* `consumer` is its
                                                                             * first member */
    const struct bw_probe_printer_options *options = &printer->options;
    const uint64_t maximum = options->maximum ? options->maximum : UINT64_MAX;
    pthread_mutex_lock(&printer->lock);
    /* an event of another thread may be earlier than the first one received */
    if (!printer->begin || event->time < printer->begin)
        printer->begin = event->time;
    if (!printer->error && printer->printed < maximum) {
        printer->printed++;
        bw_event_append(&printer->format, event,
                        &(struct bw_event_context){.begin = printer->begin}, &printer->text);
        bw_buffer_append_byte(&printer->text, '\n');
        if (!options->gather || printer->text.length >= GATHER_BYTES || printer->printed == maximum)
            flush_text(printer);
    }
    pthread_mutex_unlock(&printer->lock);
}

struct bw_error *bw_probe_printer_create(const struct bw_probe_printer_options *given,
                                         const bool selected[BW_PROBES_MAX],
                                         struct bw_probe_printer **result)
{
    struct bw_probe_printer_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_probe_printer *printer = calloc(1, sizeof *printer);
    if (!printer)
        return bw_error_no_memory();
    printer->options = options;
    printer->consumer.visit = print_event;
    memcpy(printer->consumer.selected, selected, sizeof printer->consumer.selected);
    memset(printer->consumer.lazy, 0xff, sizeof printer->consumer.lazy); /* it prints all members */
    pthread_mutex_init(&printer->lock, NULL);
    struct bw_error *error = bw_event_format_init(options.json, selected, &printer->format);
    if (error)
        bw_error_free(bw_probe_printer_destroy(printer));
    else
        *result = printer;
    return error;
}

struct bw_probe_consumer *bw_probe_printer_consumer(struct bw_probe_printer *printer)
{
    return &printer->consumer;
}

void bw_probe_printer_flush(struct bw_probe_printer *printer)
{
    pthread_mutex_lock(&printer->lock);
    flush_text(printer);
    pthread_mutex_unlock(&printer->lock);
}

struct bw_error *bw_probe_printer_destroy(struct bw_probe_printer *printer)
{
    if (!printer)
        return NULL;
    flush_text(printer);
    struct bw_error *error = printer->error;
    bw_event_format_free(&printer->format);
    bw_buffer_free(&printer->text);
    pthread_mutex_destroy(&printer->lock);
    free(printer);
    return error;
}
