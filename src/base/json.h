/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The private side of btrfs-walk/json.h: a writer that appends to a buffer, for statedumps, the
 * reports of debug layers, and commands with --json.
 */
#ifndef BW_BASE_JSON_H
#define BW_BASE_JSON_H

#include "base/buffer.h"
#include "btrfs-walk/json.h"

enum { BW_JSON_DEPTH = 32 };

/** A writer; lives where its owner wants. Begins with bw_json_start(). */
struct bw_json {
    struct bw_buffer *buffer; /**< receives the text; its `failed` is set if memory ran out */
    bool indent;              /**< one member a line, indented; otherwise all in one line */
    unsigned depth;
    char closing[BW_JSON_DEPTH]; /**< what ends each open level: } or ] */
    bool empty[BW_JSON_DEPTH];   /**< nothing was written in it yet */
};

/** Begins to write one value. When it is complete (every level ended), the owner appends what
 * follows it. */
struct bw_json bw_json_start(struct bw_buffer *buffer, bool indent);

enum { BW_JSON_NAME_ROOM = 32 };

/**
 * Writes the name of a member, for what is written a million times: without indentation, and from
 * BW_JSON_NAME_ROOM bytes of which the first `length` are the name in quotes and a colon. The next
 * value, without a name, is that of the member.
 */
static inline void bw_json_name(struct bw_json *json, const char quoted[BW_JSON_NAME_ROOM],
                                size_t length)
{
    struct bw_buffer *buffer = json->buffer;
    if (!bw_buffer_reserve(buffer, BW_JSON_NAME_ROOM + 1) || !json->depth)
        return;
    buffer->data[buffer->length] = ',';
    buffer->length += !json->empty[json->depth - 1];
    memcpy(buffer->data + buffer->length, quoted, BW_JSON_NAME_ROOM);
    buffer->length += length;
    json->empty[json->depth - 1] = true;
}

/** The same for a name that is a literal. */
#define BW_JSON_NAME(json, name)                                          \
    do {                                                                  \
        static const char bw_quoted[BW_JSON_NAME_ROOM] = "\"" name "\":"; \
        bw_json_name((json), bw_quoted, sizeof(name) + 2);                \
    } while (0)

#endif
