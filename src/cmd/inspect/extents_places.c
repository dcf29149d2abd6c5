/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stripes of one device that lie behind one another are one range of it. Where a row has parity its
 * device is left out by the data, and filled by the parity: so with that, too, a device has one
 * range for an extent.
 */
#include "cmd/inspect/extents_places.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "graph/wind.h"

/* Ranges that may still grow; if there are more, they are written. */
enum { MOST_SPANS = 256 };

struct span {
    struct bw_location start;
    uint64_t length;
    bool nowhere, parity;
};

struct spans {
    struct span items[MOST_SPANS];
    unsigned count, next; /* next: the one behind the last that has grown */
    bool several;         /* what is written is not all in one piece */
    const char *separator;
    struct bw_buffer *text;
};

static struct bw_error *map(const struct bw_fs *fs, struct bw_range range, unsigned copy,
                            struct bw_map_reply *reply)
{
    uint32_t length = range.length > UINT32_MAX ? UINT32_MAX : (uint32_t)range.length;
    return bw_wind_map(NULL, fs->reader.top, range.address, length, copy, reply);
}

bool extents_next_part(const struct bw_fs *fs, struct bw_range *rest, struct extents_part *part)
{
    struct bw_map_reply reply = {.length = 0};
    if (!rest->length)
        return false;
    BW_AUTO_ERROR struct bw_error *error = map(fs, *rest, 1, &reply);
    uint64_t length = reply.length ? reply.length : rest->length;
    *part = (struct extents_part){{rest->address, length}, error ? 0 : reply.copies};
    rest->address += length;
    rest->length -= length;
    return true;
}

bool extents_place(const struct bw_fs *fs, const struct extents_part *part, unsigned number,
                   struct bw_location *place)
{
    struct bw_map_reply reply;
    if (number > part->copies)
        return false;
    BW_AUTO_ERROR struct bw_error *error = map(fs, part->range, number, &reply);
    if (error)
        return false;
    /* There are many ways to compute a copy from Q, but one Q. */
    bool again = number > 1 && reply.location.rebuilt && place->rebuilt &&
                 place->devid == reply.location.devid;
    *place = reply.location;
    return !again;
}

static void write_spans(struct spans *spans)
{
    for (unsigned i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->nowhere)
            bw_buffer_format(spans->text, "%snowhere", spans->separator);
        else
            bw_buffer_format(spans->text, "%s%" PRIu64 ":%" PRIu64, spans->separator,
                             span->start.devid, span->start.offset);
        if (spans->several)
            bw_buffer_format(spans->text, "+%" PRIu64, span->length);
        bw_buffer_format(spans->text, "%s%s", span->parity ? " (parity)" : "",
                         span->nowhere || span->start.present ? "" : " (missing)");
        spans->separator = ",";
    }
    spans->count = spans->next = 0;
}

/* Makes a span larger by what touches it; false if that does not. */
static bool grow(struct span *span, const struct span *by)
{
    const uint64_t start = span->start.offset, end = start + span->length;
    const uint64_t by_start = by->start.offset, by_end = by_start + by->length;
    if (span->nowhere != by->nowhere || span->start.devid != by->start.devid || by_start > end ||
        by_end < start)
        return false;
    span->parity &= by->parity;
    span->start.offset = by_start < start ? by_start : start;
    span->length = (by_end > end ? by_end : end) - span->start.offset;
    return true;
}

/* Stripes come round in the same order: most often the next span is the one to grow. */
static void add_span(struct spans *spans, const struct span *span)
{
    for (unsigned i = 0; i < spans->count; i++) {
        unsigned at = (spans->next + i) % spans->count;
        if (grow(&spans->items[at], span)) {
            spans->next = at + 1;
            return;
        }
    }
    if (spans->count == MOST_SPANS) {
        spans->several = true;
        write_spans(spans);
    }
    spans->items[spans->count++] = *span;
}

static void add_part(const struct bw_fs *fs, const struct extents_part *part, struct spans *spans)
{
    struct bw_location place;
    if (!part->copies)
        add_span(spans,
                 &(struct span){{.offset = part->range.address}, part->range.length, true, false});
    for (unsigned number = 1; extents_place(fs, part, number, &place); number++)
        add_span(spans, &(struct span){place, part->range.length, false, place.rebuilt});
}

void extents_append_places(const struct bw_fs *fs, struct bw_range range, struct bw_buffer *text)
{
    struct spans spans = {.separator = "", .text = text};
    struct extents_part part;
    while (extents_next_part(fs, &range, &part)) {
        spans.several |= range.length != 0;
        add_part(fs, &part, &spans);
    }
    write_spans(&spans);
}
