/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing events. In text, names are escaped and members without a translation are `-`; in JSON
 * they are left out.
 */
#include "probe/print.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "record/show.h"

enum { GATHER_BYTES = 32 << 10 };

static uint64_t thread_id(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

static void append_text(struct bw_probe_printer *printer, const struct bw_probe_event *event)
{
    const struct bw_record *record = event->probe->record;
    struct bw_buffer *text = &printer->text;
    uint64_t since = event->time - printer->begin;
    bw_buffer_format(text, "%4" PRIu64 ".%09" PRIu64 " %" PRIu64 " %s", since / 1000000000,
                     since % 1000000000, thread_id(), event->probe->name);
    for (unsigned i = 0; i < record->member_count; i++) {
        if (record->members[i].lazy && !(event->members & UINT64_C(1) << i))
            continue;
        bw_buffer_format(text, " %s=", record->members[i].name);
        if (event->members & UINT64_C(1) << i)
            bw_show_word(&record->members[i], event->record, text);
        else
            bw_buffer_append_byte(text, '-');
    }
}

static void append_json(struct bw_probe_printer *printer, const struct bw_probe_event *event)
{
    struct bw_json json = bw_json_start(&printer->text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "probe", event->probe->name);
    bw_json_number(&json, "time", event->time);
    bw_json_number(&json, "thread", thread_id());
    for (unsigned i = 0; i < event->probe->record->member_count; i++)
        if (event->members & UINT64_C(1) << i)
            bw_show_json(&event->probe->record->members[i], event->record, &json);
    bw_json_end(&json);
}

static void flush(struct bw_probe_printer *printer)
{
    struct bw_buffer *text = &printer->text;
    if (!printer->error && text->failed)
        printer->error = bw_error_no_memory();
    if (!printer->error && text->length)
        printer->error = printer->write(printer->context, text->data, text->length);
    text->length = 0;
}

static void take(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_printer *printer =
        (void *)((char *)consumer - offsetof(struct bw_probe_printer, consumer));
    pthread_mutex_lock(&printer->lock);
    if (!printer->begin)
        printer->begin = event->time;
    /* An event of another thread may have a time of before the first one that came here. */
    if (event->time < printer->begin)
        printer->begin = event->time;
    if (!printer->error && printer->printed < printer->maximum) {
        printer->printed++;
        (printer->json ? append_json : append_text)(printer, event);
        bw_buffer_append_byte(&printer->text, '\n');
        if (!printer->gather || printer->text.length >= GATHER_BYTES ||
            printer->printed == printer->maximum)
            flush(printer);
    }
    pthread_mutex_unlock(&printer->lock);
}

void bw_probe_printer_init(struct bw_probe_printer *printer)
{
    printer->consumer.take = take;
    pthread_mutex_init(&printer->lock, NULL);
}

void bw_probe_printer_flush(struct bw_probe_printer *printer)
{
    pthread_mutex_lock(&printer->lock);
    flush(printer);
    pthread_mutex_unlock(&printer->lock);
}

struct bw_error *bw_probe_printer_finish(struct bw_probe_printer *printer)
{
    flush(printer);
    bw_buffer_free(&printer->text);
    pthread_mutex_destroy(&printer->lock);
    return printer->error;
}
