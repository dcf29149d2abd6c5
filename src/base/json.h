/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The private side of btrfs-walk/record.h: a writer that appends to a buffer, for statedumps, the
 * reports of debug layers, and commands with --json.
 */
#ifndef BW_BASE_JSON_H
#define BW_BASE_JSON_H

#include "base/buffer.h"
#include "btrfs-walk/record.h"

enum { BW_JSON_DEPTH = 32 };

/** A writer, in memory of the caller. Begins with bw_json_start(). */
struct bw_json {
    struct bw_buffer *buffer; /**< receives the text; its `failed` is set if memory ran out */
    bool indent;              /**< one member a line, indented; otherwise all in one line */
    unsigned depth;
    char closing[BW_JSON_DEPTH]; /**< what ends each open level: } or ] */
    bool empty[BW_JSON_DEPTH];   /**< nothing was written in it yet */
};

/** Begins to write one value. When it is complete (every level ended), the owner appends the
 * following text. */
struct bw_json bw_json_start(struct bw_buffer *buffer, bool indent);

/** Bytes of any kind as a string, which is not valid JSON unless they are UTF-8: for formats of
 * other programs that allow it. */
void bw_json_raw_bytes(struct bw_json *json, const char *name, const void *bytes, size_t length);

enum { BW_JSON_LEAD_ROOM = 32 };

/**
 * Begins a member that its writer formats, for values that are written millions of times: without
 * indentation, and from BW_JSON_LEAD_ROOM bytes of which the first `length` are a comma, the name
 * in quotes and a colon. Returns the place for the value, with `room` bytes; NULL if memory ran
 * out. Pass the end of the value to bw_json_member_end().
 */
static inline char *bw_json_member(struct bw_json *json, const char lead[BW_JSON_LEAD_ROOM],
                                   size_t length, size_t room)
{
    struct bw_buffer *buffer = json->buffer;
    if (!bw_buffer_reserve(buffer, BW_JSON_LEAD_ROOM + room) || !json->depth)
        return NULL;
    bool *empty = &json->empty[json->depth - 1];
    const size_t comma = *empty;
    char *at = buffer->data + buffer->length;
    memcpy(at, lead + comma, BW_JSON_LEAD_ROOM - 1);
    *empty = false;
    return at + length - comma;
}

static inline void bw_json_member_end(struct bw_json *json, const char *end)
{
    json->buffer->length = (size_t)(end - json->buffer->data);
}

/** Writes the name of a member in the same way. The next value, without a name, is its value. */
static inline void bw_json_name(struct bw_json *json, const char lead[BW_JSON_LEAD_ROOM],
                                size_t length)
{
    const char *at = bw_json_member(json, lead, length, 0);
    if (!at)
        return;
    bw_json_member_end(json, at);
    json->empty[json->depth - 1] = true;
}

#endif
